//! Does a flow slow down when it is notified? Three answers, with the evidence; [`Answer`] says what they mean.
//!
//! Time is counted in gaps, not in seconds, so that a rack, a WAN and a lab at a hundredth of a network's speed are judged alike,
//! and an application's pauses do not matter. The *pace* is the logarithm of a gap's length per octet: 0.69 more is half the rate.
//!
//! - *Response* (`response.rs`): the pace of the 1 to 64 gaps after a notification, less what the flow's own past predicts,
//!   averaged over notifications. The gap that contains the notification is left out: a long one contains more of them. The
//!   prediction is a regression on the means of the last 1, 2, 4, 16 and 64 gaps, as notifications come when a sender is fast,
//!   and what is fast becomes slower by itself.
//! - *Bursts* (`pace.rs`): packets sent back to back are one burst, of four at least. A sender may slow down within its messages or between its
//!   bursts; the response is measured both from packet to packet and from burst to burst.
//! - *Before*: a flow that is slower while it is notified than it was before the first notification has been held down.
//! - *Steadiness* (`steadiness.rs`): a pace that varies by itself at the time scale of notifications may be an answer that comes
//!   too late to be told from chance; only steady flows are said not to obey.
//! - *Path* (`path.rs`): the entropy (UDP source port, flow label) changes soon after notifications, rather than at other times.
//!
//! `judge.rs` makes an answer of these, and `evidence.rs` says what it rests on. Nothing is kept of single packets: 200 octets a
//! flow, and 2 KB more once it is notified about.

mod evidence;
mod judge;
mod pace;
mod path;
mod response;
mod steadiness;
#[cfg(test)]
mod tests;

use crate::data::Sequence;
use crate::sightings::Place;
use fcn_wire::bth::MAX_24;
use pace::{Pace, Quiet};
use path::Path;
use response::Response;

pub use evidence::{Advice, Answer, Evidence, Slower, Unit, Verdict};

/// When the last notification came before the flow was known that it is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Missed(Option<u64>);

impl Missed {
    /// Another one comes at `at`, whose flow is known or not: when the last one came that the flow has not heard of, if any.
    pub const fn another(&mut self, at: u64, is_known: bool) -> Option<u64> {
        match is_known {
            true => self.0.take(),
            false => {
                self.0 = Some(at);
                None
            }
        }
    }
}

/// Notifications in a row that do not come by where the data is seen, after which they are no longer waited for there.
const AWAITED: u8 = 32;

/// What is kept of a flow once it is notified about.
#[derive(Clone, Debug)]
struct Notified {
    /// From packet to packet, and from burst to burst.
    packets: Response,
    bursts: Response,
    /// Pace while it is notified, in batches of bursts.
    during: Quiet,
    /// Bursts since the last notification.
    since: u32,
}

/// What one flow carries to be judged. Times are nanoseconds of any clock; those that go back count as the latest one.
#[derive(Clone, Debug, Default)]
pub struct Obedience {
    pace: Pace,
    path: Path,
    /// Pace before the first notification.
    before: Quiet,
    /// What follows notifications.
    notified: Option<Box<Notified>>,
    /// Data packets.
    packets: u32,
    /// Notifications with data after them, and data packets since the first of them.
    measured: u32,
    packets_since: u32,
    /// The answer when this many notifications had been measured last, and when it is looked at next.
    earlier: Answer,
    next: u32,
    /// Data packets marked CE until the last notification, and since.
    marked: u32,
    marked_since: u32,
    /// Data packets stamped before one that came earlier.
    late: u32,
    psns: LastPsns,
    /// Where its data was seen, and the notifications about it as they counted, one [bit](Place::bit) each.
    places: u16,
    /// Where its data was seen last, before any other place: a [number](Place::short), which few others have.
    data_at: u8,
    /// How many notifications that were seen elsewhere are expected to come by there as well; 0 if they do not.
    awaited: u8,
    datagrams: bool,
    /// Whether notifications came that were not known to be about it.
    known_late: bool,
}

/// How a data packet follows those before it, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It is new.
    New,
    /// Its PSN was seen before.
    Repeated,
    /// Others of its flow have overtaken it at another place: it was on its way from there before that place was looked at.
    Overtaken,
}

/// Which of the last 32 PSNs were seen, as of RFC 6479: what overtakes by less repeats none. One that is further behind is taken
/// for a copy where it follows one that is new: a sender that goes back goes on from there.
#[derive(Clone, Copy, Debug, Default)]
struct LastPsns {
    /// One bit each, the lowest for the highest PSN.
    seen: u32,
    highest: u32,
    /// Where that was seen.
    place: Place,
    /// Whether the last one was new.
    was_new: bool,
}

impl LastPsns {
    fn see(&mut self, psn: u32, place: Place) -> Order {
        let ahead = psn.wrapping_sub(self.highest) & MAX_24;
        if self.seen == 0 || (1..0x80_0000).contains(&ahead) {
            (self.seen, self.highest) = (self.seen.checked_shl(ahead).unwrap_or(0) | 1, psn);
            (self.place, self.was_new) = (place, true);
            return Order::New;
        }
        if place != self.place {
            return Order::Overtaken;
        }
        let follows_new = core::mem::replace(&mut self.was_new, false);
        let behind = self.highest.wrapping_sub(psn) & MAX_24;
        let is_known = match 1_u32.checked_shl(behind) {
            None => follows_new,
            Some(bit) => {
                let is_known = self.seen & bit != 0;
                self.seen |= bit;
                is_known
            }
        };
        match is_known {
            true => Order::Repeated,
            false => Order::New,
        }
    }
}

impl Obedience {
    /// Takes in data of so many octets at `at`, sent with that entropy: whatever the network chooses a path by.
    #[inline]
    pub fn data(&mut self, at: u64, octets: u64, entropy: u32) {
        self.late = self.late.saturating_add(u32::from(self.pace.is_late(at)));
        self.path.packet(entropy, self.packets == 0);
        self.packets = self.packets.saturating_add(1);
        let gaps = self.pace.packet(at, octets);
        let Some(gaps) = gaps else {
            return;
        };
        match &mut self.notified {
            None => {
                if let Some((pace, _)) = gaps.burst {
                    self.before.add(pace);
                }
            }
            Some(notified) => {
                self.packets_since = self.packets_since.saturating_add(1);
                let (pace, contains) = gaps.packet;
                notified.packets.gap(pace, contains);
                if let Some((pace, contains)) = gaps.burst {
                    notified.burst(pace, contains);
                }
                if contains {
                    self.measure();
                }
            }
        }
    }

    /// Counts a notification with data after it, and looks at the answer each time that there are an eighth more.
    fn measure(&mut self) {
        self.measured = self.measured.saturating_add(1);
        if self.measured > self.next {
            self.next = self.measured + self.measured / 8;
            self.earlier = self.judge().0;
        }
    }

    /// Takes in the order of data with that PSN, seen at `place` and nowhere before. [`Order::New`] is to be followed by
    /// [`data`](Self::data).
    #[inline]
    pub fn sequenced(&mut self, sequence: Sequence, place: Place) -> Order {
        self.places |= place.bit();
        self.data_at = place.short();
        match sequence {
            Sequence::Connection(psn) => self.psns.see(psn, place),
            Sequence::Answer(_) => Order::New,
            Sequence::Datagram => {
                self.datagrams = true;
                Order::New
            }
        }
    }

    /// The highest PSN of its data that has PSNs of its own. What is sent again is behind it: acknowledgements of what was sent
    /// before go on.
    #[inline]
    #[must_use]
    pub fn highest_psn(&self) -> Option<u32> {
        (self.psns.seen != 0).then_some(self.psns.highest)
    }

    /// The latest data was marked CE before it was seen.
    pub const fn marked(&mut self) {
        self.marked_since = self.marked_since.saturating_add(1);
    }

    /// Whether marks, and so notifications, come of a queue that the data had passed when it was seen. What leaves a queue is
    /// the flow's share of the line, whatever it was sent at.
    const fn is_behind_queue(&self) -> bool {
        self.marked > self.measured / 4
    }

    /// Takes in that notifications came, until `at`, that were not known to be about it: when it was left alone is not known.
    pub fn missed(&mut self, at: u64) {
        if self.pace.has_begun_before(at) {
            self.before = Quiet::default();
            self.known_late = true;
        }
    }

    /// Takes in a notification seen at that place, first of all or (`again`) after another one. It counts when it passes where the
    /// data is seen: nearer to the receiver it was seen sooner, and the sender's answer to it would come too late, or to those
    /// after it.
    pub fn notified_at(&mut self, place: Place, again: bool) {
        let beside_data = place.short() == self.data_at || self.packets == 0;
        let counted = match (again, beside_data) {
            (false, true) => true,
            (false, false) => {
                let is_awaited = self.awaited > 0;
                self.awaited = self.awaited.saturating_sub(1);
                !is_awaited
            }
            (true, true) => std::mem::replace(&mut self.awaited, AWAITED) > 0,
            (true, false) => false,
        };
        if counted {
            self.places |= place.bit();
            self.notified();
        }
    }

    /// Takes in a notification, which lies in the gap from the data before it to the data after it.
    pub fn notified(&mut self) {
        if self.packets == 0 {
            return;
        }
        let marked = core::mem::take(&mut self.marked_since);
        self.marked = self.marked.saturating_add(marked);
        self.path.notify();
        self.pace.notify();
        self.notified.get_or_insert_with(|| {
            let before = self.before.mean();
            Box::new(Notified {
                packets: Response::new(None),
                bursts: Response::new(before),
                during: Quiet::default(),
                since: 0,
            })
        });
    }
}

impl Notified {
    fn burst(&mut self, pace: f32, contains: bool) {
        self.bursts.gap(pace, contains);
        self.during.add(pace);
        self.since = match contains {
            true => 0,
            false => self.since.saturating_add(1),
        };
    }
}
