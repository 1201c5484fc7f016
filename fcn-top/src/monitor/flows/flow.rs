//! Volume of a flow's data.

use crate::monitor::samples::{OneIn, Samples};
use crate::monitor::series::Series;
use crate::monitor::windows::{ENOUGH, Least, Ring};
use fcn_observe::Order;
use fcn_observe::correlator::Data;
use fcn_observe::data::Sequence;

/// Octets that the data over time is told in: 32 bits of them are a terabit a second in the longest steps.
pub const PART: u64 = 64;

/// Volume of a flow's data. Times are nanoseconds since the epoch; `now` is the monitor's clock.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Data packets seen.
    pub packets: u64,
    /// Octets of their IP packets.
    pub octets: u64,
    ce: u64,
    /// Packet sequence numbers of the last packet of its connection, and of the last that answers an RDMA READ.
    last_psns: [u32; 2],
    /// Octets that are not in the series yet: less than a part.
    rest: u32,
    octets_by_time: Ring<u64>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
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

impl Default for Volume {
    fn default() -> Self {
        Self {
            packets: 0,
            octets: 0,
            ce: 0,
            last_psns: [NO_PSN; 2],
            rest: 0,
            octets_by_time: Ring::default(),
            repeated: false,
            samples: Vec::new(),
            series: Series::default(),
        }
    }
}

impl Volume {
    /// Takes in a data packet.
    #[inline]
    pub fn data(&mut self, data: &Data) -> Effect {
        self.ce += u64::from(data.new_mark);
        let Some(order) = data.order else {
            return Effect::default();
        };
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
        self.octets = self.octets.saturating_add(data.octets);
        self.octets_by_time.add_at(data.look.at, data.octets);
        let octets = u64::from(self.rest) + data.octets;
        self.rest = (octets % PART) as u32;
        let parts = u32::try_from(octets / PART).unwrap_or(u32::MAX);
        self.series.add(data.look.at, parts);
        Effect {
            back,
            repeats,
            follows_new,
        }
    }

    /// Takes in a sample of its data, one in so many, that was taken at a place. Whether it obeys, samples do not tell.
    pub fn sampled(&mut self, data: &Data, place: u32, one_in: OneIn) {
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
            let octets = data.octets.saturating_mul(one_in.get().into());
            samples.packets.add(one_in);
            samples.ce += u64::from(data.look.ce);
            samples.octets = samples.octets.saturating_add(octets);
            samples.octets_by_time.add_at(data.look.at, octets);
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

    /// Data in the last second that is over at `now`, or since `since` where that is less, in bits a second of IP packets:
    /// zero where the flow has fallen silent, `None` where that is less and holds few packets.
    pub fn data_rate(&self, now: u64, since: u64) -> Option<f64> {
        let least = Least::in_part(ENOUGH * self.packet());
        Some(self.octets_by_time.rate_1s(now, since, least)? * 8.0)
    }

    /// Part of the packets that was marked CE, 0 to 1.
    pub fn ce_share(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.ce as f64 / self.packets as f64)
    }

    /// Octets of a packet, on average.
    fn packet(&self) -> f64 {
        self.octets as f64 / self.packets.max(1) as f64
    }
}
