//! Swift: a window from the delay, compared with a target (Kumar et al., "Swift: Delay is Simple and
//! Effective for Congestion Control in the Datacenter", SIGCOMM 2020, section 3, algorithm 1).
//!
//! - The target delay is base + hops·h + max(0, min(α/√cwnd + β, fs_range)): flows with a small
//!   window get a larger one, so that many flows converge. α = fs_range / (1/√fs_min − 1/√fs_max),
//!   β = −α/√fs_max.
//! - Below the target, each acknowledged packet adds ai/cwnd to the window, or ai if the window is
//!   below one packet.
//! - Otherwise, at most once per round-trip time, the window is multiplied by
//!   max(1 − mdf·(delay − target)/delay, 1 − max_mdf).
//! - A window below one packet is a rate: cwnd packets per round-trip time.
//!
//! Notifications have no effect. The delay here is the round-trip time; the paper tells the hosts'
//! share of it apart, which hosts here do not have.

use super::controller::{Ack, Answer, Controller, Notice};
use core::time::Duration;
use fcn_observe::time::Time;

/// The parameters. The paper gives the algorithm's names and few values: all defaults are choices
/// \[choice\], from its figures where it has any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Base target delay. Default 25 µs.
    pub base_target: Duration,
    /// h: additional target per hop. Default 1 µs.
    pub hop: Duration,
    /// Number of hops on the path, which the paper reads from the hop limit. Default 3.
    pub hops: u32,
    /// fs_range: largest additional target for small windows. Default 100 µs.
    pub fs_range: Duration,
    /// fs_min: window in packets up to which a flow has all of it. Default 0.1.
    pub fs_min: f64,
    /// fs_max: window in packets from which it is zero. Default 100.
    pub fs_max: f64,
    /// ai: additive increase in packets per round-trip time. Default 1.
    pub ai: f64,
    /// mdf: multiplicative decrease, 0 to 1; the paper's β. Default 0.8.
    pub mdf: f64,
    /// max_mdf: largest decrease at once, 0 to 1. Default 0.5.
    pub max_mdf: f64,
    /// Octets of payload of a packet, in which the window counts. Default 4096.
    pub packet: u64,
    /// Minimum window in packets. Default 0.001.
    pub least_window: f64,
    /// Maximum window in packets, and the first one. Default 256.
    pub most_window: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            base_target: Duration::from_micros(25),
            hop: Duration::from_micros(1),
            hops: 3,
            fs_range: Duration::from_micros(100),
            fs_min: 0.1,
            fs_max: 100.0,
            ai: 1.0,
            mdf: 0.8,
            max_mdf: 0.5,
            packet: 4096,
            least_window: 0.001,
            most_window: 256.0,
        }
    }
}

impl Params {
    /// Returns the target delay in seconds for a window of `window` packets.
    #[must_use]
    pub fn target(&self, window: f64) -> f64 {
        let range = self.fs_range.as_secs_f64();
        let [least, most] = [self.fs_min, self.fs_max].map(|packets| packets.max(1e-9).sqrt());
        // Without a range of windows, the delay does not depend on the window.
        let slope = (1.0 / least - 1.0 / most).max(1e-9);
        let alpha = range / slope;
        let scaled = alpha / window.max(1e-9).sqrt() - alpha / most;
        let base = self.base_target.as_secs_f64() + f64::from(self.hops) * self.hop.as_secs_f64();
        base + scaled.min(range).max(0.0)
    }
}

/// Congestion control of one flow.
#[derive(Clone, Debug)]
pub struct Swift {
    params: Params,
    line_rate: f64,
    /// cwnd, in packets.
    window: f64,
    /// Round-trip time of the last acknowledgement, in seconds.
    rtt: f64,
    decreased_at: Option<Time>,
}

impl Swift {
    /// Creates a flow with the maximum window and at line rate, in bit/s.
    #[must_use]
    pub const fn new(params: Params, line_rate: f64) -> Self {
        Self {
            params,
            line_rate,
            window: params.most_window,
            rtt: 0.0,
            decreased_at: None,
        }
    }
}

impl Controller for Swift {
    fn on_notification(&mut self, _: Time, _: &Notice<'_>) -> Answer {
        Answer::Ignore
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) {
        let params = self.params;
        let delay = ack.rtt.as_secs_f64();
        self.rtt = delay;
        let target = params.target(self.window);
        let packets = ack.octets as f64 / params.packet.max(1) as f64;
        let may_decrease = (self.decreased_at).is_none_or(|at| now.saturating_sub(at) >= ack.rtt);
        if delay < target {
            let times = if self.window >= 1.0 { self.window } else { 1.0 };
            self.window += params.ai / times * packets;
        } else if may_decrease {
            let factor = 1.0 - params.mdf * (delay - target) / delay.max(1e-12);
            self.window *= factor.max(1.0 - params.max_mdf);
            self.decreased_at = Some(now);
        }
        let least = params.least_window.max(1e-6);
        self.window = self.window.min(params.most_window).max(least);
    }

    fn rate(&self) -> f64 {
        if self.window >= 1.0 || self.rtt <= 0.0 {
            return self.line_rate;
        }
        let bits = self.window * self.params.packet as f64 * 8.0;
        (bits / self.rtt).min(self.line_rate)
    }

    fn window(&self) -> Option<u64> {
        Some((self.window.max(1.0) * self.params.packet as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The windows were computed by this Python program, written from the paper:
    ///
    /// ```python
    /// from math import sqrt
    /// a = 100/(1/sqrt(.1) - 1/sqrt(100)); b = -a/sqrt(100)
    /// w, last, now = 256.0, None, 0
    /// for rtt in [20, 20, 60, 60, 120, 200, 25, 30, 90, 25]:
    ///     now += 40; t = 25 + 3 + max(0, min(a/sqrt(w) + b, 100))
    ///     if rtt < t: w += (1/w if w >= 1 else 1)*16
    ///     elif last is None or now - last >= rtt:
    ///         w *= max(1 - .8*(rtt - t)/rtt, .5); last = now
    ///     w = min(max(w, .001), 256); print(round(w, 6))
    /// ```
    #[test]
    fn windows_follow_the_published_algorithm() {
        let mut flow = Swift::new(Params::default(), 25e9);
        let mut now = 0;
        let windows = [20, 20, 60, 60, 120, 200, 25, 30, 90, 25].map(|micros| {
            now += 40_000;
            let ack = Ack {
                rtt: Duration::from_micros(micros),
                octets: 16 * 4096,
            };
            flow.on_ack(Time::from_nanos(now), &ack);
            (flow.window * 1e6).round() / 1e6
        });
        let expected = [
            256.0, 256.0, 146.773333, 146.773333, 146.773333, 146.773333, 146.882345, 139.04862,
            139.04862, 139.163688,
        ];
        assert_eq!(windows, expected);
    }

    #[test]
    fn a_window_below_one_packet_is_a_rate() {
        let mut flow = Swift::new(Params::default(), 25e9);
        let ack = Ack {
            rtt: Duration::from_millis(2),
            octets: 4096,
        };
        for n in 1..=12 {
            flow.on_ack(Time::from_nanos(n * 2_000_000), &ack);
        }
        assert_eq!(flow.window, 256.0 / 4096.0);
        assert_eq!(flow.window(), Some(4096));
        assert_eq!(flow.rate(), 256.0 * 8.0 / 2e-3);
    }

    proptest! {
        #[test]
        fn window_and_rate_stay_in_their_range(rtts in proptest::collection::vec((0u64..10_000_000, 0u64..100_000), 0..100)) {
            let mut flow = Swift::new(Params::default(), 10e9);
            let mut now = 0;
            for (rtt, octets) in rtts {
                now += 1_000;
                let ack = Ack { rtt: Duration::from_nanos(rtt), octets };
                flow.on_ack(Time::from_nanos(now), &ack);
                prop_assert!((0.001..=256.0).contains(&flow.window));
                prop_assert!(flow.rate() > 0.0 && flow.rate() <= 10e9);
            }
        }
    }
}
