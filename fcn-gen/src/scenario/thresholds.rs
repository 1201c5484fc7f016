//! Thresholds of switches' ports: those of the file, otherwise defaults that scale with the links.

use super::error::{Refusal, refuse};
use super::model::{Pfc, Thresholds};
use super::schema::SwitchKeys;
use crate::units::Rate;
use fcn_node::congestion_point::Marking;

/// Kmin per Mbit/s of the port's rate: 8 µs of it. Kmax is four times as deep, and Pmax is 0.2.
///
/// The simulator published with HPCC (SIGCOMM 2019) scales DCQCN's thresholds with the link, in a
/// ratio of 1 to 4, with Pmax 0.2, but four times as deep (400 kB and 1.6 MB at 100 Gbit/s);
/// DCQCN's own 5 kB, 200 kB and 1 % are for 40 Gbit/s. A quarter of HPCC's depth lets a few senders
/// cause visible congestion within a millisecond. It is the same under every mechanism, so that a
/// comparison compares mechanisms, not thresholds.
const KMIN_PER_MBIT: u64 = 1;
/// Minimum of the default Kmin: DCQCN's value.
const LEAST_KMIN: u64 = 5_000;
/// Pmax.
const PMAX: f64 = 0.2;
/// Octets of an egress queue per Mbit/s of the port's rate: 128 µs of it.
const QUEUE_PER_MBIT: u64 = 16;
/// Minimum of the default queue, in octets.
const LEAST_QUEUE: u64 = 80_000;
/// Octets from one ingress port at which PFC pauses it, per Mbit/s of the port's rate: twice Kmax,
/// since marks have to come before pauses (DCQCN, SIGCOMM 2015, section 4). It resumes at half of
/// that.
const XOFF_PER_MBIT: u64 = 8;
/// Minimum of the default Xoff, in octets.
const LEAST_XOFF: u64 = 40_000;

/// Returns the thresholds of a port of this rate; `path` returns the path of a switch's key.
pub(super) fn thresholds(
    switch: &SwitchKeys,
    rate: Rate,
    lossless: bool,
    path: impl Fn(&str) -> String,
) -> Result<Thresholds, Refusal> {
    let mbits = rate.bits_per_second() / 1_000_000;
    let queue = switch
        .queue
        .map_or((mbits * QUEUE_PER_MBIT).max(LEAST_QUEUE), |queue| queue.0);

    let marking = &switch.marking;
    let least = (mbits * KMIN_PER_MBIT).max(LEAST_KMIN);
    let kmin = marking.kmin.map_or(least, |kmin| kmin.0);
    let kmax = marking.kmax.map_or(kmin.saturating_mul(4), |kmax| kmax.0);
    if kmax < kmin {
        refuse!(
            path("marking.kmax"),
            "Kmax ({kmax}) must not be below Kmin ({kmin})"
        );
    }
    if kmin >= queue {
        let own = marking.kmin.map_or("queue", |_| "marking.kmin");
        refuse!(
            path(own),
            "Kmin ({kmin}) must be below the queue's limit ({queue}), or nothing is ever marked"
        );
    }

    let pause = &switch.pause;
    let usual = (mbits * XOFF_PER_MBIT).max(LEAST_XOFF).min(queue / 2);
    let xoff = pause.xoff.map_or(usual, |xoff| xoff.0);
    let xon = pause.xon.map_or(xoff / 2, |xon| xon.0);
    let own = |key, otherwise| path(if key { "pause.xoff" } else { otherwise });
    if lossless && xon >= xoff {
        let path = own(pause.xon.is_none(), "pause.xon");
        refuse!(path, "xon ({xon}) must be below xoff ({xoff})");
    }
    if lossless && xoff > queue {
        let path = own(pause.xoff.is_some(), "queue");
        refuse!(
            path,
            "xoff ({xoff}) is above the queue ({queue}), so PFC would never pause"
        );
    }
    Ok(Thresholds {
        marking: Marking {
            kmin,
            kmax,
            pmax: marking.pmax.map_or(PMAX, |pmax| pmax.0),
        },
        marks_at: marking.at.unwrap_or_default(),
        queue,
        pfc: lossless.then_some(Pfc {
            xoff,
            xon,
            quanta: pause.quanta.unwrap_or(u16::MAX),
        }),
    })
}
