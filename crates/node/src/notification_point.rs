//! The notification point: a receiver that answers CE marks with CNPs, or with its own Fast CNPs
//! (draft-xiao-rtgwg-rocev2-fast-cnp section 4 leaves open whether it needs to, and does not
//! exclude it).

use crate::limiter::Interval;
use crate::outgoing::OutgoingNotification;
use crate::reasons::counters;
use core::time::Duration;
use fcn_observe::data::{DataPacket, Ecn};
use fcn_observe::time::Time;
use fcn_wire::Qp;
use std::net::IpAddr;

/// Configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// N: minimum time between two CNPs of one flow. Default 50 µs (DCQCN section 3.1).
    pub interval: Duration,
    /// Maximum number of flows remembered. Default 65 536.
    pub flows: usize,
    /// Enables Fast CNPs if data packets are IPv6. Their source and original destination are the
    /// receiver's address, so that senders can distinguish them from a switch's. Default false.
    pub fast_cnp: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interval: Duration::from_micros(50),
            flows: 65_536,
            fast_cnp: false,
        }
    }
}

counters! {
    /// Counters of a notification point.
    pub struct Counters {
        /// Data packets received.
        pub packets: u64,
        /// Data packets marked CE.
        pub marked: u64,
        /// CNPs sent, including Fast CNPs.
        pub cnps: u64,
        /// Fast CNPs sent.
        pub fast_cnps: u64,
        /// CE marks not answered because the last CNP of the flow was too recent.
        pub suppressed: u64,
        /// Flows forgotten because the table was full.
        pub evicted: u64,
    }
}

/// A notification point.
#[derive(Debug)]
pub struct NotificationPoint {
    fast_cnp: bool,
    interval: Interval,
    counters: Counters,
}

impl NotificationPoint {
    /// Creates a receiver that has not processed any packet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            fast_cnp: config.fast_cnp,
            interval: Interval::new(config.interval, config.flows),
            counters: Counters::default(),
        }
    }

    /// Returns the CNP or Fast CNP to send, if any, for a data packet that arrived. `sender_qp` is
    /// the QP at the sender.
    ///
    /// DCQCN section 3.1: a marked packet is answered immediately, unless a CNP for the flow was
    /// sent less than N ago.
    pub fn on_data(
        &mut self,
        now: Time,
        packet: &DataPacket<'_>,
        sender_qp: Qp,
    ) -> Option<OutgoingNotification> {
        self.counters.packets += 1;
        if packet.ecn != Ecn::Ce {
            return None;
        }
        self.counters.marked += 1;
        if !self.interval.admit(now, packet.flow()) {
            self.counters.suppressed += 1;
            return None;
        }
        self.counters.evicted = self.interval.evicted();
        self.counters.cnps += 1;
        if let (true, IpAddr::V6(receiver), IpAddr::V6(sender)) =
            (self.fast_cnp, packet.destination, packet.source)
        {
            self.counters.fast_cnps += 1;
            return Some(OutgoingNotification::FastCnp {
                source: receiver,
                destination: sender,
                original_destination: receiver,
                qp: packet.dest_qp,
            });
        }
        Some(OutgoingNotification::Cnp {
            source: packet.destination,
            destination: packet.source,
            qp: sender_qp,
        })
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RECEIVER, SENDER};

    fn data(qp: u32, ecn: Ecn) -> DataPacket<'static> {
        DataPacket {
            source: IpAddr::from([10, 0, 0, 1]),
            destination: IpAddr::from([10, 0, 0, 2]),
            source_port: 49152,
            destination_port: 4791,
            dest_qp: Qp::truncate(qp),
            ecn,
            outer: None,
            trace: None,
            proxy_option: None,
        }
    }

    fn cnp(qp: u32) -> Option<OutgoingNotification> {
        Some(OutgoingNotification::Cnp {
            source: IpAddr::from([10, 0, 0, 2]),
            destination: IpAddr::from([10, 0, 0, 1]),
            qp: Qp::truncate(qp + 0x100),
        })
    }

    #[test]
    fn a_flow_gets_at_most_one_cnp_an_interval() {
        let mut node = NotificationPoint::new(Config::default());
        let steps = [
            (0, 1, Ecn::Ect0, None),
            (0, 1, Ecn::NotCapable, None),
            (0, 1, Ecn::Ect1, None),
            (100, 1, Ecn::Ce, cnp(1)),
            (100, 1, Ecn::Ce, None),
            (100, 2, Ecn::Ce, cnp(2)),
            (50_099, 1, Ecn::Ce, None),
            (50_100, 1, Ecn::Ce, cnp(1)),
            (50_101, 2, Ecn::Ce, cnp(2)),
        ];
        for (nanos, qp, ecn, want) in steps {
            let got = node.on_data(
                Time::from_nanos(nanos),
                &data(qp, ecn),
                Qp::truncate(qp + 0x100),
            );
            assert_eq!(got, want, "{nanos} {qp} {ecn:?}");
        }
        let want = Counters {
            packets: 9,
            marked: 6,
            cnps: 4,
            fast_cnps: 0,
            suppressed: 2,
            evicted: 0,
        };
        assert_eq!(node.counters(), &want);
    }

    #[test]
    fn fast_cnps_have_its_own_address_and_need_ipv6() {
        let mut node = NotificationPoint::new(Config {
            fast_cnp: true,
            ..Config::default()
        });
        let v6 = DataPacket {
            source: SENDER.into(),
            destination: RECEIVER.into(),
            ..data(1, Ecn::Ce)
        };
        let want = OutgoingNotification::FastCnp {
            source: RECEIVER,
            destination: SENDER,
            original_destination: RECEIVER,
            qp: Qp::truncate(1),
        };
        let sender_qp = Qp::truncate(0x101);
        let at = |nanos| Time::from_nanos(nanos);
        assert_eq!(node.on_data(at(0), &v6, sender_qp), Some(want));
        assert_eq!(node.on_data(at(1), &v6, sender_qp), None, "too soon");
        assert_eq!(node.on_data(at(2), &data(1, Ecn::Ce), sender_qp), cnp(1));
        assert_eq!((node.counters().cnps, node.counters().fast_cnps), (2, 1));
    }

    #[test]
    fn a_full_table_forgets_the_flow_answered_longest_ago() {
        let mut node = NotificationPoint::new(Config {
            flows: 1,
            ..Config::default()
        });
        for (nanos, qp, want) in [(0, 1, cnp(1)), (1, 2, cnp(2)), (2, 1, cnp(1)), (3, 1, None)] {
            let got = node.on_data(
                Time::from_nanos(nanos),
                &data(qp, Ecn::Ce),
                Qp::truncate(qp + 0x100),
            );
            assert_eq!(got, want, "{nanos}");
        }
        assert_eq!(node.counters().evicted, 2);
    }
}
