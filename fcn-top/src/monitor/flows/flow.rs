//! What is remembered of one flow.

use super::{Data, Notified};
use crate::monitor::samples::{OneIn, Samples};
use crate::monitor::series::Series;
use crate::monitor::windows::{ENOUGH, Least, Ring};
use fcn_observe::data::Sequence;
use fcn_observe::marks::Marks;
use fcn_observe::origin::SeenData;
use fcn_observe::sightings::{Look, Sightings};
use fcn_observe::{Class, Obedience, Order, Sequenced, Verdict};
use fcn_wire::Rule;

/// Octets that the data over time is told in: 32 bits of them are a terabit a second in the longest steps.
pub const PART: u64 = 64;

/// A flow of which data was seen. Times are nanoseconds since the epoch; `now` is the monitor's clock.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// When the first packet was seen.
    pub first: u64,
    /// When the last packet was seen.
    pub last: u64,
    /// Data packets seen.
    pub packets: u64,
    /// Octets of their IP packets.
    pub octets: u64,
    ce: u64,
    /// Packet sequence numbers of the last packet of its connection, and of the last that answers an RDMA READ.
    last_psns: [u32; 2],
    /// What the last packet is queued by.
    pub class: Option<Class>,
    /// Octets that are not in the series yet: less than a part.
    rest: u32,
    marks: Marks,
    octets_by_time: Ring<u64>,
    obedience: Obedience,
    /// Whether the last packet had a PSN that was seen before.
    repeated: bool,
    /// By where they were taken; few flows have any.
    samples: Vec<Sampled>,
    /// Data over time, in parts of [`PART`] octets.
    pub series: Series<u32>,
}

/// Places of which the samples of a flow are kept apart: as many as its path has, usually.
const PLACES: usize = 4;

/// Samples of a flow's data that were taken at one place: at each place on its path there may be some, which must not be added
/// up.
#[derive(Clone, Debug)]
struct Sampled {
    place: u32,
    packets: Samples,
    /// Of them those marked CE.
    ce: u64,
    /// Octets of them, and of all that they stand for.
    octets: u64,
    octets_by_time: Ring<u64>,
}

/// What samples tell of a flow's data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Packets.
    pub packets: u64,
    /// Of how many one was sampled, on average.
    pub sampled: u64,
    /// Bits a second of IP packets in the last second; `None` where it has too few samples.
    pub rate: Option<f64>,
    /// Part of the samples that was marked CE.
    pub ce_share: f64,
}

/// What a data packet shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The rule about CE marks beside Fast CNPs that it shows broken.
    pub rule: Option<Rule>,
    /// Whether its PSN is not ahead of that of the packet before: sent again, or out of order.
    pub back: bool,
    /// Whether its PSN was seen before, as far as that is known.
    pub repeats: bool,
    /// Whether that is so right behind a packet of which it is not: as a copy does, and a sender that goes back does once.
    pub follows_new: bool,
}

/// The PSN of no packet.
const NO_PSN: u32 = u32::MAX;

/// Whether a PSN is not ahead of another, of 24 bits that begin anew.
const fn is_not_ahead(psn: u32, before: u32) -> bool {
    let ahead = psn.wrapping_sub(before) & 0xFF_FFFF;
    before != NO_PSN && (ahead == 0 || ahead >= 0x80_0000)
}

impl Flow {
    /// One whose first packet was seen at that time.
    pub fn new(at: u64) -> Self {
        Self {
            first: at,
            last: at,
            last_psns: [NO_PSN; 2],
            ..Self::default()
        }
    }

    pub fn data(&mut self, stamp: u64, data: &Data) -> Effect {
        let at = stamp.max(self.last);
        let Data { look, earlier, .. } = *data;
        let new_mark = look.ce && earlier.is_none_or(|earlier| !earlier.ce);
        self.ce += u64::from(new_mark);
        let several = (data.several, data.several);
        let rule = (self.marks).data(Look { at, ..look }, data.able, several, earlier);
        if earlier.is_some() {
            return Effect {
                rule,
                back: false,
                repeats: false,
                follows_new: false,
            };
        }
        let order = self.obedience.sequenced(data.sequence, look.place);
        let last = match data.sequence {
            _ if order == Order::Overtaken => None,
            Sequence::Connection(psn) | Sequence::Request(psn) => Some((psn, 0)),
            Sequence::Answer(psn) => Some((psn, 1)),
            Sequence::Datagram => None,
        };
        let back = last.is_some_and(|(psn, of)| {
            is_not_ahead(psn, std::mem::replace(&mut self.last_psns[of], psn))
        });
        let repeats = order.repeats();
        let follows_new = repeats && !self.repeated;
        self.repeated = repeats;
        self.packets += 1;
        self.octets = self.octets.saturating_add(data.ip_octets);
        self.class = data.class;
        self.octets_by_time.add_at(stamp, data.ip_octets);
        if order.counts() {
            self.obedience.data(stamp, data.ip_octets, data.entropy);
            if data.ends_message {
                self.obedience.message_ends();
            }
            if look.ce {
                self.obedience.marked();
            }
        }
        let octets = u64::from(self.rest) + data.ip_octets;
        self.rest = (octets % PART) as u32;
        self.series
            .add(stamp, u32::try_from(octets / PART).unwrap_or(u32::MAX));
        self.first = self.first.min(stamp);
        self.last = at;
        Effect {
            rule,
            back,
            repeats,
            follows_new,
        }
    }

    /// Takes in a sample of its data, one in so many, that was taken at a place. Whether it obeys, samples do not tell.
    pub fn sampled(&mut self, at: u64, data: &Data, place: u32, one_in: OneIn) {
        self.class = data.class;
        let known = self.samples.iter().position(|known| known.place == place);
        let number = match known {
            Some(number) => number,
            None if self.samples.len() < PLACES => {
                self.samples.push(Sampled {
                    place,
                    packets: Samples::default(),
                    ce: 0,
                    octets: 0,
                    octets_by_time: Ring::default(),
                });
                self.samples.len() - 1
            }
            None => return,
        };
        if let Some(samples) = self.samples.get_mut(number) {
            let octets = data.ip_octets.saturating_mul(one_in.get().into());
            samples.packets.add(one_in);
            samples.ce += u64::from(data.look.ce);
            samples.octets = samples.octets.saturating_add(octets);
            samples.octets_by_time.add_at(at, octets);
        }
    }

    /// What samples tell, where there is nothing else: those of the place that has sampled most.
    pub fn estimate(&self, now: u64, since: u64) -> Option<Estimate> {
        let most = self
            .samples
            .iter()
            .max_by_key(|samples| samples.packets.sum);
        let samples = most.filter(|_| self.packets == 0)?;
        let count = samples.packets.count as f64;
        let least = Least::of_samples(samples.octets as f64 / count);
        let octets = samples.octets_by_time.rate_1s(now, since, least);
        Some(Estimate {
            packets: samples.packets.sum,
            sampled: samples.packets.one_in().round() as u64,
            rate: octets.map(|octets| octets * 8.0),
            ce_share: samples.ce as f64 / count,
        })
    }

    /// A notification about it was seen again, at that place.
    pub fn notified_again(&mut self, at: u64, place: fcn_observe::sightings::Place) {
        self.obedience.notified_at(at, place, true);
    }

    pub fn notified(&mut self, at: u64, notified: &Notified) -> Option<Rule> {
        if let Some(last) = notified.missed {
            self.obedience.missed(last);
        }
        self.obedience.notified_at(at, notified.place, false);
        let at = at.max(self.last);
        if notified.answers {
            self.marks.answered();
        }
        let Notified { place, several, .. } = *notified;
        let rule = (notified.fast).then(|| self.marks.notified(at, place, several));
        rule.flatten()
    }

    /// Data in the last second that is over at `now`, or since `since` where that is less, in bits a second of IP packets:
    /// zero where the flow has fallen silent, `None` where that is less and holds few packets.
    pub fn data_rate(&self, now: u64, since: u64) -> Option<f64> {
        let least = Least::in_part(ENOUGH * self.packet());
        Some(self.octets_by_time.rate_1s(now, since, least)? * 8.0)
    }

    /// What tells who made a CNP about it; `whole` is whether its connection was seen to be set up.
    pub fn seen(&self, whole: bool) -> SeenData {
        SeenData {
            first: self.first,
            unanswered: self.marks.unanswered(),
            whole,
        }
    }

    /// Part of the packets that was marked CE, 0 to 1.
    pub fn ce_share(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.ce as f64 / self.packets as f64)
    }

    /// Octets of a packet, on average.
    fn packet(&self) -> f64 {
        self.octets as f64 / self.packets.max(1) as f64
    }

    /// Whether it obeys; its packets are among these.
    pub fn verdict(&self, sightings: &Sightings) -> Verdict {
        self.obedience.verdict_among(sightings)
    }
}

impl Sequenced for Flow {
    fn highest_psn(&self) -> Option<u32> {
        self.obedience.highest_psn()
    }
}
