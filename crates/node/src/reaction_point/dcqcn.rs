//! DCQCN's rate control at the sender (Zhu et al., "Congestion Control for Large-Scale RDMA
//! Deployments", SIGCOMM 2015, section 3.1, equations 1 to 4 and the algorithm for the reaction
//! point).
//!
//! R_C is the current rate, R_T the target rate, alpha the estimate of the path's congestion.
//! - A CNP cuts the rate: R_T = R_C, R_C = R_C·(1 − alpha/2), alpha = (1 − g)·alpha + g (equation
//!   1); both timers and both counters restart.
//! - Without a CNP for K, alpha = (1 − g)·alpha, and again every K (equation 2).
//! - Every T, and every B octets sent, the rate rises by one step. Timer and byte counter count
//!   their own steps:
//!   - fast recovery, for the first F steps of either: R_C = (R_T + R_C)/2 (equation 3);
//!   - hyper increase, once both have counted more than F: R_T = R_T + R_HAI, then as above;
//!   - additive increase otherwise: R_T = R_T + R_AI, then as above (equation 4).
//!
//! A flow starts at line rate, with alpha 1: the first CNP halves the rate. R_C and R_T never
//! exceed the line rate, and R_C never falls below R_min. The notification point ensures that CNPs
//! arrive at most every N = 50 µs. Nothing runs between calls: [`Controller::on_timer`] applies pending
//! timer steps.
//!
//! NICs and the simulator published with HPCC differ from the paper in what [`Params`] marks as
//! theirs: they cut at most once an interval instead of limiting CNPs, move alpha once a tick, and
//! keep the target rate of an unfinished recovery.

use super::controller::{Answer, Controller, Notice};
use core::time::Duration;
use fcn_observe::time::{Time, nanos};

/// Maximum number of timer steps that one [`Controller::on_timer`] applies; the others remain pending.
/// From R_min to 400 Gbit/s takes 10 000 additive steps by default.
const MAX_STEPS: u32 = 16_384;
/// Distance from the line rate, in bit/s, below which the line rate counts as reached: halving the
/// gap alone would never end.
const NEAR: f64 = 1.0;

/// The parameters, under their published names. The defaults are the paper's, except those marked
/// as a choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// g: weight of a new observation in alpha, 0 to 1. Default 1/256.
    pub g: f64,
    /// K: alpha decays if no CNP arrives for this long. Default 55 µs; must exceed N, the interval
    /// between CNPs.
    pub k: Duration,
    /// T: period of the timer that raises the rate. Default 55 µs.
    pub t: Duration,
    /// B: octets sent per rate increase; 0: none, and the timer's steps alone lead to hyper
    /// increase, from the second one after F. Default 10 MB.
    pub b: u64,
    /// F: number of steps of fast recovery. Default 5.
    pub f: u32,
    /// R_AI: additive increase, bit/s. Default 40 Mbit/s.
    pub r_ai: f64,
    /// R_HAI: hyper increase, bit/s. Default 400 Mbit/s \[choice: ten times R_AI\].
    pub r_hai: f64,
    /// R_min: minimum rate, bit/s. Default 40 Mbit/s \[choice: the paper has no such limit; one
    /// additive step\].
    pub r_min: f64,
    /// Least time between two cuts; a CNP before that cuts then. Default 0. NICs:
    /// `rate_reduce_monitor_period`.
    pub cut_interval: Duration,
    /// True if every cut sets R_T to R_C, as in the paper; otherwise only a cut after a step of the
    /// timer does. Default true. NICs: `clamp_tgt_rate`.
    pub clamp_target_rate: bool,
    /// True if alpha moves once every K, up if a CNP has come since and down if not; otherwise up
    /// with each cut, and down after K without one, as in the paper. Default false. NICs:
    /// `dce_tcp_rtt` is K.
    pub alpha_per_tick: bool,
    /// Least share of the rate that a cut leaves, 0 to 1. Default 0; alpha alone leaves a half.
    /// NICs: `rpg_min_dec_fac`.
    pub least_factor: f64,
}

impl Params {
    /// Parameters in the simulator published with HPCC (alibaba-edu,
    /// High-Precision-Congestion-Control, `run.py --cc dcqcn`) for a link of `line_rate` bit/s. Its
    /// receivers echo every mark.
    #[must_use]
    pub fn hpcc_ns3(line_rate: f64) -> Self {
        Self {
            k: Duration::from_micros(1),
            t: Duration::from_micros(300),
            b: 0,
            f: 1,
            r_ai: line_rate / 5_000.0,
            r_hai: line_rate / 500.0,
            r_min: 1e9,
            cut_interval: Duration::from_micros(4),
            clamp_target_rate: false,
            alpha_per_tick: true,
            ..Self::default()
        }
    }

    /// Default parameters of ConnectX NICs (NVIDIA, "DCQCN CC Parameters"). Their receivers send a
    /// CNP every 4 µs at most (`min_time_between_cnps`).
    #[must_use]
    pub fn connectx() -> Self {
        Self {
            g: 5.0 / 1024.0,
            k: Duration::from_micros(1),
            t: Duration::from_micros(300),
            b: 32_767,
            f: 1,
            r_ai: 5e6,
            r_hai: 50e6,
            r_min: 1e6,
            cut_interval: Duration::from_micros(4),
            clamp_target_rate: false,
            alpha_per_tick: true,
            least_factor: 0.5,
        }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self {
            g: 1.0 / 256.0,
            k: Duration::from_micros(55),
            t: Duration::from_micros(55),
            b: 10_000_000,
            f: 5,
            r_ai: 40e6,
            r_hai: 400e6,
            r_min: 40e6,
            cut_interval: Duration::ZERO,
            clamp_target_rate: true,
            alpha_per_tick: false,
            least_factor: 0.0,
        }
    }
}

/// Rate control of one flow.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    params: Params,
    line_rate: f64,
    /// R_C.
    rate: f64,
    /// R_T.
    target: f64,
    alpha: f64,
    /// Time of the last change of alpha, and of the last expiry of the rate timer.
    alpha_at: Time,
    timer_at: Time,
    /// Steps counted by the timer and by octets since the last CNP.
    timer_steps: u32,
    byte_steps: u32,
    /// Octets sent since the last byte step.
    octets: u64,
    /// True if the rate is below the line rate: otherwise steps have no effect.
    recovering: bool,
    /// True if a CNP has ever arrived: before, alpha stays 1.
    notified: bool,
    /// True if a CNP has arrived since alpha last moved.
    notified_in_tick: bool,
    /// Time before which no cut is allowed.
    cut_from: Time,
    /// True if a CNP waits for that time.
    cut_pending: bool,
}

impl Dcqcn {
    /// Creates a flow at line rate, in bit/s.
    #[must_use]
    pub const fn new(params: Params, line_rate: f64) -> Self {
        Self {
            params,
            line_rate,
            rate: line_rate,
            target: line_rate,
            alpha: 1.0,
            alpha_at: Time::from_nanos(0),
            timer_at: Time::from_nanos(0),
            timer_steps: 0,
            byte_steps: 0,
            octets: 0,
            recovering: false,
            notified: false,
            notified_in_tick: false,
            cut_from: Time::from_nanos(0),
            cut_pending: false,
        }
    }

    /// Returns R_T, the target rate in bit/s.
    #[must_use]
    pub const fn target(&self) -> f64 {
        self.target
    }

    /// Returns alpha, 0 to 1.
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    #[cold]
    fn byte_counter(&mut self) {
        // At most one step per packet, even if B is less than a packet's length.
        self.octets = (self.octets - self.params.b).min(self.params.b);
        self.byte_steps = self.byte_steps.saturating_add(1);
        self.step();
    }

    #[cold]
    fn rate_timer(&mut self, now: Time) {
        let period = nanos(self.params.t).max(1);
        for _ in 0..MAX_STEPS {
            if !self.recovering || nanos(now.saturating_sub(self.timer_at)) < period {
                return;
            }
            self.timer_at += Duration::from_nanos(period);
            self.timer_steps = self.timer_steps.saturating_add(1);
            self.step();
        }
    }

    /// Applies equation 2 as often as it is due.
    #[cold]
    fn decay(&mut self, now: Time) {
        let period = nanos(self.params.k).max(1);
        let times = nanos(now.saturating_sub(self.alpha_at)) / period;
        self.alpha_at += Duration::from_nanos(period.saturating_mul(times));
        let mut times = times;
        if self.params.alpha_per_tick && times > 0 && core::mem::take(&mut self.notified_in_tick) {
            self.alpha = (1.0 - self.params.g) * self.alpha + self.params.g;
            times -= 1;
        }
        // After that many, the power is 0 for any reasonable g.
        let times = i32::try_from(times).unwrap_or(i32::MAX);
        self.alpha *= (1.0 - self.params.g).powi(times);
    }

    /// Applies one increase: equation 3 or 4, or hyper increase. The counters already include it.
    fn step(&mut self) {
        let (most, least) = (
            self.timer_steps.max(self.byte_steps),
            self.timer_steps.min(self.byte_steps),
        );
        let hyper = match self.params.b {
            0 => most > self.params.f.saturating_add(1),
            _ => least > self.params.f,
        };
        if hyper {
            self.target += self.params.r_hai;
        } else if most > self.params.f {
            self.target += self.params.r_ai;
        }
        self.target = self.target.min(self.line_rate);
        self.rate = f64::midpoint(self.target, self.rate);
        if self.line_rate - self.rate < NEAR {
            self.rate = self.line_rate;
            self.recovering = false;
        }
    }

    fn floor(&self) -> f64 {
        self.params.r_min.min(self.line_rate)
    }
}

impl Dcqcn {
    /// Applies equation 1.
    fn cut(&mut self, now: Time) {
        let (g, least) = (self.params.g, self.params.least_factor);
        if self.params.clamp_target_rate || self.timer_steps > 0 || !self.notified {
            self.target = self.rate;
        }
        self.rate = (self.rate * (1.0 - self.alpha / 2.0).max(least)).max(self.floor());
        if !self.params.alpha_per_tick {
            self.alpha = (1.0 - g) * self.alpha + g;
        }
        // A clock that goes back does not set the timers back.
        if !self.params.alpha_per_tick || !self.notified {
            self.alpha_at = self.alpha_at.max(now);
        }
        self.timer_at = self.timer_at.max(now);
        self.cut_from = self.timer_at.saturating_add(self.params.cut_interval);
        self.cut_pending = false;
        self.timer_steps = 0;
        self.byte_steps = 0;
        self.octets = 0;
        self.recovering = self.rate < self.line_rate;
        self.notified = true;
    }

    /// Applies the steps of both timers that are due by `now`.
    fn run_timers(&mut self, now: Time) {
        if self.recovering && now.saturating_sub(self.timer_at) >= self.params.t {
            self.rate_timer(now);
        }
        if self.notified && now.saturating_sub(self.alpha_at) >= self.params.k {
            self.decay(now);
        }
    }
}

impl Controller for Dcqcn {
    /// Cuts the rate, or lets the CNP wait for the time at which the next cut is allowed.
    fn on_notification(&mut self, now: Time, _: &Notice<'_>) -> Answer {
        self.on_timer(now);
        self.notified_in_tick = self.notified;
        if now < self.cut_from && !self.params.cut_interval.is_zero() {
            self.cut_pending = true;
        } else {
            self.cut(now);
        }
        Answer::Slow
    }

    #[inline]
    fn on_sent(&mut self, octets: u32) {
        if self.recovering && self.params.b > 0 {
            self.octets += u64::from(octets);
            if self.octets >= self.params.b {
                self.byte_counter();
            }
        }
    }

    #[inline]
    fn on_timer(&mut self, now: Time) {
        if self.cut_pending && self.cut_from <= now {
            self.run_timers(self.cut_from);
            self.cut(self.cut_from);
        }
        self.run_timers(now);
    }

    fn next_timer(&self) -> Option<Time> {
        let timer = self.timer_at.saturating_add(self.params.t);
        let cut = self.cut_pending.then_some(self.cut_from);
        let timer = self.recovering.then_some(timer);
        cut.into_iter().chain(timer).min()
    }

    #[inline]
    fn rate(&self) -> f64 {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: f64 = 100e9;
    const T: u64 = 55_000;

    fn after(periods: u64) -> Time {
        Time::from_nanos(periods * T)
    }

    fn cut_once() -> Dcqcn {
        let mut flow = Dcqcn::new(Params::default(), LINE);
        flow.on_notification(after(0), &Notice::default());
        flow
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
    }

    #[test]
    fn a_flow_starts_at_line_rate_and_the_first_cnp_halves_it() {
        let mut flow = Dcqcn::new(Params::default(), LINE);
        flow.on_timer(after(1000));
        assert_eq!(
            (flow.rate(), flow.target(), flow.alpha()),
            (LINE, LINE, 1.0)
        );
        assert_eq!(flow.next_timer(), None);
        flow.on_notification(after(1000), &Notice::default());
        assert_eq!(
            (flow.rate(), flow.target(), flow.alpha()),
            (LINE / 2.0, LINE, 1.0)
        );
        assert_eq!(flow.next_timer(), Some(after(1001)));
        flow.on_notification(after(1000), &Notice::default());
        assert_eq!((flow.rate(), flow.target()), (LINE / 4.0, LINE / 2.0));
    }

    #[test]
    fn fast_recovery_halves_the_gap_f_times_and_then_the_target_rises() {
        let mut flow = cut_once();
        flow.on_notification(after(0), &Notice::default());
        let target = LINE / 2.0;
        let mut gap = LINE / 4.0;
        for step in 1..=5 {
            flow.on_timer(after(step));
            gap /= 2.0;
            assert!(close(target - flow.rate(), gap), "step {step}");
            assert_eq!(flow.target(), target);
        }
        for step in 6..=10u32 {
            let rate = flow.rate();
            flow.on_timer(after(step.into()));
            let target = target + f64::from(step - 5) * 40e6;
            assert_eq!(flow.target(), target);
            assert_eq!(flow.rate(), f64::midpoint(rate, target));
        }
    }

    #[test]
    fn a_timer_fires_at_its_time_and_not_before() {
        let mut flow = cut_once();
        flow.on_timer(Time::from_nanos(T - 1));
        assert_eq!(flow.rate(), LINE / 2.0);
        flow.on_timer(Time::from_nanos(T));
        assert_eq!(flow.rate(), LINE * 0.75);
        flow.on_timer(Time::from_nanos(0));
        assert_eq!(flow.rate(), LINE * 0.75);
        assert_eq!(flow.next_timer(), Some(after(2)));
    }

    #[test]
    fn octets_sent_raise_the_rate_too_and_both_counters_make_it_hyper() {
        let mut flow = cut_once();
        flow.on_notification(after(0), &Notice::default());
        let target = flow.target();
        let send_b = |flow: &mut Dcqcn| {
            for _ in 0..10_000 {
                flow.on_sent(1000);
            }
        };
        flow.on_sent(999);
        assert_eq!(flow.rate(), LINE / 4.0);
        send_b(&mut flow);
        assert_eq!(flow.rate(), LINE * 0.375);
        for _ in 1..5 {
            send_b(&mut flow);
        }
        assert_eq!(flow.target(), target);
        // The sixth step of one counter is additive; that of both is hyper.
        send_b(&mut flow);
        assert_eq!(flow.target(), target + 40e6);
        flow.on_timer(after(5));
        assert_eq!(flow.target(), target + 6.0 * 40e6);
        flow.on_timer(after(6));
        assert_eq!(flow.target(), target + 6.0 * 40e6 + 400e6);
    }

    #[test]
    fn a_cnp_restarts_timers_and_counters() {
        let mut flow = cut_once();
        flow.on_timer(after(8));
        for _ in 0..8 {
            flow.on_sent(10_000_000);
        }
        flow.on_sent(9_999_999);
        flow.on_notification(Time::from_nanos(8 * T + 7), &Notice::default());
        let cut = flow.rate();
        flow.on_sent(9_999_999);
        assert_eq!(flow.rate(), cut, "octets count anew");
        let (rate, target) = (flow.rate(), flow.target());
        flow.on_timer(after(9));
        assert_eq!(flow.rate(), rate);
        for step in 1..=5 {
            flow.on_timer(Time::from_nanos((8 + step) * T + 7));
        }
        assert_eq!(flow.target(), target, "fast recovery again");
    }

    #[test]
    fn the_rate_returns_to_line_rate_and_stays() {
        let mut flow = cut_once();
        for _ in 0..20 {
            flow.on_notification(after(0), &Notice::default());
        }
        assert_eq!(flow.rate(), 40e6);
        flow.on_timer(after(20_000));
        assert_eq!((flow.rate(), flow.next_timer()), (LINE, None));
        flow.on_sent(u32::MAX);
        flow.on_timer(Time::from_nanos(u64::MAX));
        assert_eq!(flow.rate(), LINE);
        assert!(flow.alpha() < 1e-300);
    }

    #[test]
    fn a_long_pause_is_caught_up_in_bounded_pieces() {
        let params = Params {
            r_ai: 1.0,
            ..Params::default()
        };
        let mut flow = Dcqcn::new(params, LINE);
        for _ in 0..10 {
            flow.on_notification(after(0), &Notice::default());
        }
        let mut owed = 0;
        while flow
            .next_timer()
            .is_some_and(|timer| timer <= after(40_000))
        {
            flow.on_timer(after(40_000));
            owed += 1;
        }
        assert_eq!(owed, 3);
    }

    #[test]
    fn no_parameters_make_it_hang_or_leave_its_range() {
        let zero = Params {
            g: 0.0,
            k: Duration::ZERO,
            t: Duration::ZERO,
            b: 0,
            f: 0,
            r_ai: 0.0,
            r_hai: 0.0,
            r_min: 0.0,
            alpha_per_tick: true,
            ..Params::default()
        };
        for line_rate in [LINE, 1.0, 0.0] {
            let mut flow = Dcqcn::new(zero, line_rate);
            for i in 0..5 {
                flow.on_notification(after(i * 1000), &Notice::default());
                flow.on_sent(u32::MAX);
                flow.on_timer(after(i * 1000 + 999));
                assert!((0.0..=line_rate).contains(&flow.rate()));
            }
        }
    }

    /// A sequence whose rates were computed by hand from the documented rules.
    #[test]
    fn nics_cut_once_an_interval_and_keep_the_target_until_the_timer_has_raised_the_rate() {
        let mut flow = Dcqcn::new(Params::hpcc_ns3(LINE), LINE);
        let us = |micros: u64| Time::from_nanos(micros * 1_000);
        let notify = |flow: &mut Dcqcn, micros| {
            flow.on_notification(us(micros), &Notice::default());
        };
        notify(&mut flow, 10);
        assert_eq!((flow.rate(), flow.target()), (LINE / 2.0, LINE));
        // Three CNPs within 4 us make one more cut, at their end; alpha has moved up in two of the
        // four ticks, but is 1 already, and down in the other two.
        for micros in [11, 12, 12] {
            notify(&mut flow, micros);
            assert_eq!(flow.rate(), LINE / 2.0);
        }
        assert_eq!(flow.next_timer(), Some(us(14)));
        flow.on_timer(us(14));
        let g = 1.0 / 256.0;
        // Ticks at 11 (no CNP since the first), 12 (one), 13 (two), 14 (none).
        let mut alpha = 1.0_f64;
        for up in [0.0, 1.0, 1.0, 0.0] {
            alpha = (1.0 - g) * alpha + g * up;
        }
        assert!(close(flow.alpha(), alpha), "{} {alpha}", flow.alpha());
        assert!(close(flow.rate(), LINE / 2.0 * (1.0 - alpha / 2.0)));
        assert_eq!(flow.target(), LINE, "no step of the timer in between");
        let rate = flow.rate();
        flow.on_timer(us(314));
        assert!(
            close(flow.rate(), f64::midpoint(LINE, rate)),
            "fast recovery"
        );
        let rate = flow.rate();
        notify(&mut flow, 320);
        assert_eq!(flow.target(), rate, "the timer has raised the rate");
    }

    /// The figures were computed by a Python program that steps through every microsecond and was
    /// written from NVIDIA's description of the parameters: a tick of alpha, then a waiting cut, the
    /// timer, CNPs, and octets sent.
    #[test]
    fn connectx_follows_the_documented_parameters() {
        let mut flow = Dcqcn::new(Params::connectx(), LINE);
        let us = |micros: u64| Time::from_nanos(micros * 1_000);
        let expected = [
            (0, 50_000_000_000.0, 100_000_000_000.0, 1.0),
            (4, 25_241_172_020.0, 100_000_000_000.0, 0.990353119),
            (9, 13_044_517_240.0, 100_000_000_000.0, 0.966409545),
            (100, 56_522_258_620.0, 100_000_000_000.0, 0.622179037),
            (309, 78_261_129_310.0, 100_000_000_000.0, 0.223680896),
            (400, 72_654_527_677.0, 78_261_129_310.0, 0.143279344),
            (500, 75_457_828_493.0, 78_261_129_310.0, 0.090830196),
            (700, 77_562_804_106.0, 78_266_129_310.0, 0.034125241),
            (900, 77_562_804_106.0, 78_266_129_310.0, 0.012820979),
        ];
        let events = [0, 2, 3, 4, 9, 100, 309, 400, 500, 700, 900];
        let mut expected = expected.into_iter().peekable();
        for micros in events {
            flow.on_timer(us(micros));
            if [0, 2, 3, 9, 400].contains(&micros) {
                flow.on_notification(us(micros), &Notice::default());
            }
            if [100, 500, 700].contains(&micros) {
                for _ in 0..40 {
                    flow.on_sent(1_000);
                }
            }
            if let Some((_, rate, target, alpha)) = expected.next_if(|(at, ..)| *at == micros) {
                assert_eq!((flow.rate().round(), flow.target().round()), (rate, target));
                assert!(
                    (flow.alpha() - alpha).abs() < 1e-9,
                    "{micros}: {}",
                    flow.alpha()
                );
            }
        }
        assert_eq!(expected.next(), None);
    }

    #[test]
    fn without_byte_counter_the_timer_alone_leads_to_hyper_increase() {
        let mut flow = Dcqcn::new(Params::hpcc_ns3(25e9), 25e9);
        flow.on_notification(after(0), &Notice::default());
        flow.on_timer(Time::from_nanos(4_000));
        flow.target = 10e9;
        let mut targets = Vec::new();
        for step in 1..=4 {
            flow.on_sent(10_000_000);
            flow.on_timer(Time::from_nanos(step * 300_000));
            targets.push(flow.target() - 10e9);
        }
        assert_eq!(targets, [0.0, 5e6, 55e6, 105e6]);
    }

    #[derive(Clone, Copy, Debug)]
    enum Input {
        Cnp,
        Sent(u32),
        Wait(u64),
    }

    fn inputs() -> impl Strategy<Value = Vec<Input>> {
        let input = prop_oneof![
            Just(Input::Cnp),
            (0u32..20_000_000).prop_map(Input::Sent),
            (0u64..2_000_000).prop_map(Input::Wait),
        ];
        proptest::collection::vec(input, 0..100)
    }

    proptest! {
        #[test]
        fn cuts_are_by_alpha_over_two_and_all_else_only_raises(inputs in inputs()) {
            let params = Params::default();
            let mut flow = Dcqcn::new(params, LINE);
            let mut now = 0;
            for input in inputs {
                let (rate, target, alpha) = (flow.rate(), flow.target(), flow.alpha());
                match input {
                    Input::Cnp => {
                        flow.on_notification(Time::from_nanos(now), &Notice::default());
                        prop_assert!(close(flow.rate(), (rate * (1.0 - alpha / 2.0)).max(params.r_min)));
                        prop_assert_eq!(flow.target(), rate);
                        prop_assert!(close(flow.alpha(), (1.0 - params.g) * alpha + params.g));
                    }
                    Input::Sent(octets) => {
                        flow.on_sent(octets);
                        prop_assert!(flow.rate() >= rate && flow.target() >= target && flow.alpha() == alpha);
                    }
                    Input::Wait(nanos) => {
                        now += nanos;
                        flow.on_timer(Time::from_nanos(now));
                        prop_assert!(flow.rate() >= rate && flow.target() >= target && flow.alpha() <= alpha);
                    }
                }
                prop_assert!((params.r_min..=LINE).contains(&flow.rate()));
                prop_assert!(flow.rate() <= flow.target() && flow.target() <= LINE);
                prop_assert!((0.0..=1.0).contains(&flow.alpha()));
            }
        }

        #[test]
        fn alpha_decays_by_one_minus_g_every_k(times in 0u32..2000, rest in 0..T) {
            let mut flow = cut_once();
            flow.on_timer(Time::from_nanos(u64::from(times) * T + rest));
            prop_assert!(close(flow.alpha(), (1.0f64 - 1.0 / 256.0).powf(times.into())));
        }

        #[test]
        fn alpha_settles_with_regular_cnps(every in 2u64..10) {
            // Between two CNPs, alpha decays for `every` periods: a = (1-g)·(1-g)^every·a + g.
            let mut flow = cut_once();
            for i in 1..=2000 {
                flow.on_notification(after(i * every), &Notice::default());
            }
            let q = (1.0f64 - 1.0 / 256.0).powf(every as f64 + 1.0);
            prop_assert!((flow.alpha() - 1.0 / 256.0 / (1.0 - q)).abs() < 1e-6);
        }

        #[test]
        fn the_number_of_calls_does_not_matter(mut looks in proptest::collection::vec(0u64..10_000_000, 0..50)) {
            let (mut often, mut once) = (cut_once(), cut_once());
            looks.sort_unstable();
            for look in &looks {
                often.on_timer(Time::from_nanos(*look));
            }
            once.on_timer(Time::from_nanos(looks.last().copied().unwrap_or(0)));
            prop_assert_eq!(often.rate(), once.rate());
            prop_assert_eq!(often.target(), once.target());
            prop_assert!(close(often.alpha(), once.alpha()));
        }
    }
}
