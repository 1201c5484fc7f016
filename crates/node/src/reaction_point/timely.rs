//! TIMELY: rate control from the gradient of the round-trip time (Mittal et al., "TIMELY: RTT-based
//! Congestion Control for the Datacenter", SIGCOMM 2015, section 4.3, algorithm 1).
//!
//! Each completed segment has a round-trip time:
//! - The difference to the one before is averaged with weight α, and divided by the minimum
//!   round-trip time: the gradient.
//! - Below T_low the rate rises by δ; above T_high it is multiplied by 1 − β·(1 − T_high/RTT).
//! - In between it is multiplied by 1 − β·gradient if that is positive; otherwise it rises by δ, or
//!   by five times as much once that has been so for five segments (HAI).
//!
//! Notifications have no effect. The round-trip time here is that of the packet which completes the
//! segment, so that the time to send the segment is not part of it, as in the paper.

use super::controller::{Ack, Answer, Controller, Notice};
use core::time::Duration;
use fcn_observe::time::Time;

/// Number of segments with a falling round-trip time after which the rate rises faster, and the
/// factor for it.
const HAI: u32 = 5;

/// The parameters, under their published names. The defaults are the paper's, as Zhu et al. ("ECN or
/// Delay", CoNEXT 2016, table 2) list them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// α: weight of a new difference in the average, 0 to 1. Default 0.875.
    pub alpha: f64,
    /// β: multiplicative decrease, 0 to 1. Default 0.8.
    pub beta: f64,
    /// δ: additive increase, bit/s. Default 10 Mbit/s.
    pub delta: f64,
    /// T_low. Default 50 µs.
    pub t_low: Duration,
    /// T_high. Default 500 µs.
    pub t_high: Duration,
    /// Minimum round-trip time, which the gradient is relative to. Default 20 µs.
    pub min_rtt: Duration,
    /// Segment: octets acknowledged for each change of the rate. Default 16 kB.
    pub segment: u64,
    /// Minimum rate, bit/s. Default 10 Mbit/s \[choice: one δ\].
    pub r_min: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            alpha: 0.875,
            beta: 0.8,
            delta: 10e6,
            t_low: Duration::from_micros(50),
            t_high: Duration::from_micros(500),
            min_rtt: Duration::from_micros(20),
            segment: 16_000,
            r_min: 10e6,
        }
    }
}

/// Rate control of one flow.
#[derive(Clone, Debug)]
pub struct Timely {
    params: Params,
    line_rate: f64,
    rate: f64,
    /// Octets acknowledged since the last change.
    octets: u64,
    /// Round-trip time of the last segment, and average difference, in seconds.
    rtt: Option<f64>,
    difference: f64,
    /// Number of consecutive segments with a gradient of 0 or less.
    falling: u32,
}

impl Timely {
    /// Creates a flow at line rate, in bit/s.
    #[must_use]
    pub const fn new(params: Params, line_rate: f64) -> Self {
        Self {
            params,
            line_rate,
            rate: line_rate,
            octets: 0,
            rtt: None,
            difference: 0.0,
            falling: 0,
        }
    }

    fn segment(&mut self, rtt: f64) {
        let params = self.params;
        let Some(before) = self.rtt.replace(rtt) else {
            return;
        };
        self.difference = (1.0 - params.alpha) * self.difference + params.alpha * (rtt - before);
        let gradient = self.difference / params.min_rtt.as_secs_f64().max(1e-9);
        self.falling = match gradient {
            ..=0.0 => self.falling.saturating_add(1),
            _ => 0,
        };
        let high = params.t_high.as_secs_f64();
        let wanted = if rtt < params.t_low.as_secs_f64() {
            self.rate + params.delta
        } else if rtt > high {
            self.rate * (1.0 - params.beta * (1.0 - high / rtt))
        } else if gradient <= 0.0 {
            let times = if self.falling >= HAI { HAI } else { 1 };
            self.rate + f64::from(times) * params.delta
        } else {
            self.rate * (1.0 - params.beta * gradient)
        };
        let floor = params.r_min.min(self.line_rate);
        self.rate = wanted.max(floor).min(self.line_rate);
    }
}

impl Controller for Timely {
    fn on_notification(&mut self, _: Time, _: &Notice<'_>) -> Answer {
        Answer::Ignore
    }

    fn on_ack(&mut self, _: Time, ack: &Ack) {
        self.octets += ack.octets;
        if self.octets >= self.params.segment {
            self.octets = 0;
            self.segment(ack.rtt.as_secs_f64());
        }
    }

    fn rate(&self) -> f64 {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ack(micros: f64) -> Ack {
        Ack {
            rtt: Duration::from_nanos((micros * 1e3) as u64),
            octets: 16_000,
        }
    }

    /// The rates were computed by this Python program, written from the paper:
    ///
    /// ```python
    /// rate, prev, diff, n = 10e9, None, 0.0, 0
    /// for rtt in [60, 61, 63, 66, 65, 64, 63, 62, 61, 60, 700, 40, 52]:
    ///     if prev is None: prev = rtt; continue
    ///     diff = 0.125*diff + 0.875*(rtt-prev); prev = rtt
    ///     g = diff/20; n = n+1 if g <= 0 else 0
    ///     if rtt < 50: rate += 10e6
    ///     elif rtt > 500: rate *= 1 - 0.8*(1 - 500/rtt)
    ///     elif g <= 0: rate += (50e6 if n >= 5 else 10e6)
    ///     else: rate *= 1 - 0.8*g
    ///     rate = min(max(rate, 10e6), 10e9); print(round(rate))
    /// ```
    #[test]
    fn rates_follow_the_published_algorithm() {
        let mut flow = Timely::new(Params::default(), 10e9);
        let rtts = [
            60.0, 61.0, 63.0, 66.0, 65.0, 64.0, 63.0, 62.0, 61.0, 60.0, 700.0, 40.0, 52.0,
        ];
        let rates = rtts.map(|rtt| {
            flow.on_ack(Time::from_nanos(0), &ack(rtt));
            flow.rate().round()
        });
        let expected = [
            10_000_000_000.0,
            9_650_000_000.0,
            8_932_281_250.0,
            7_911_349_417.0,
            7_921_349_417.0,
            7_931_349_417.0,
            7_941_349_417.0,
            7_951_349_417.0,
            8_001_349_417.0,
            8_051_349_417.0,
            6_211_040_978.0,
            6_221_040_978.0,
            6_231_040_978.0,
        ];
        assert_eq!(rates, expected);
    }

    #[test]
    fn parts_of_a_segment_change_nothing() {
        let mut flow = Timely::new(Params::default(), 10e9);
        flow.on_ack(Time::from_nanos(0), &ack(100.0));
        let part = Ack {
            octets: 15_999,
            ..ack(900.0)
        };
        flow.on_ack(Time::from_nanos(0), &part);
        assert_eq!(flow.rate(), 10e9);
        flow.on_ack(Time::from_nanos(0), &Ack { octets: 1, ..part });
        assert!(flow.rate() < 10e9);
    }

    proptest! {
        #[test]
        fn the_rate_stays_in_its_range(rtts in proptest::collection::vec(0u64..10_000_000, 0..100)) {
            let mut flow = Timely::new(Params::default(), 10e9);
            for rtt in rtts {
                let ack = Ack { rtt: Duration::from_nanos(rtt), octets: 16_000 };
                flow.on_ack(Time::from_nanos(0), &ack);
                prop_assert!((10e6..=10e9).contains(&flow.rate()));
            }
        }
    }
}
