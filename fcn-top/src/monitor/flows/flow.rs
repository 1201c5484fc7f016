//! Volume of a flow's data.

use crate::monitor::samples::{OneIn, Samples};
use crate::monitor::series::Series;
use crate::monitor::windows::{ENOUGH, Least, Ring};
use fcn_observe::Order;
use fcn_observe::correlator::Data;
use fcn_observe::data::Sequence;

/// Unit of the data series, in octets: 32 bits of it hold a terabit per second in the longest
/// steps.
pub const PART: u64 = 64;

/// Volume of a flow's data. Times are nanoseconds since the epoch; `now` is the monitor's clock.
#[derive(Clone, Debug)]
pub struct Volume {
    /// That of earlier connections of the same QPs.
    earlier: Option<Box<Earlier>>,
    /// Data packets captured, without copies at the same capture point.
    pub packets: u64,
    /// Octets of their IP packets.
    pub octets: u64,
    ce: u64,
    /// PSN of the connection's last packet, and of the last response to an RDMA READ.
    last_psns: [u32; 2],
    /// Octets not in the series yet: less than one unit.
    rest: u32,
    octets_by_time: Ring<u64>,
    /// True if the PSN of the last packet was captured before.
    repeated: bool,
    /// Samples by the point where they were taken; few flows have any.
    samples: Vec<Sampled>,
    /// Data over time, in units of [`PART`] octets.
    pub series: Series<u32>,
}

/// Data of a flow's earlier connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Earlier {
    /// Time of the first packet.
    pub first: u64,
    /// Packets.
    pub packets: u64,
    /// Octets of their IP packets.
    pub octets: u64,
    ce: u64,
}

/// Maximum number of sampling points kept apart for a flow: usually as many as its path has.
const PLACES: usize = 4;

/// Samples of a flow's data taken at one point. Each point on its path may sample it, and their
/// numbers must not be added up.
#[derive(Clone, Debug)]
struct Sampled {
    place: u32,
    packets: Samples,
    /// Samples marked CE.
    ce: u64,
    /// Octets of the samples, and of all packets that they stand for.
    octets: u64,
    octets_by_time: Ring<u64>,
}

/// Estimate of a flow's data from samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Packets.
    pub packets: u64,
    /// Octets of their IP packets.
    pub octets: u64,
    /// Sampling interval, on average: one in this many packets.
    pub sampled: u64,
    /// Bits per second of IP packets in the last second; `None` with too few samples.
    pub rate: Option<f64>,
    /// Fraction of the samples marked CE.
    pub ce_share: f64,
}

/// Observations from a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// True if its PSN does not advance: retransmitted, or out of order.
    pub back: bool,
    /// True if its PSN was captured before, as far as known.
    pub repeats: bool,
    /// True if it repeats a PSN directly after a packet that does not: so does every copy, but only
    /// the first packet of a go-back-N retransmission.
    pub follows_new: bool,
}

/// Stands for no PSN.
const NO_PSN: u32 = u32::MAX;

/// Returns true if a PSN is not ahead of another one; PSNs have 24 bits and wrap around.
const fn is_not_ahead(psn: u32, before: u32) -> bool {
    let ahead = psn.wrapping_sub(before) & 0xFF_FFFF;
    before != NO_PSN && (ahead == 0 || ahead >= 0x80_0000)
}

impl Default for Volume {
    fn default() -> Self {
        Self {
            earlier: None,
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
    /// Processes a data packet.
    #[inline]
    pub fn data(&mut self, data: &Data) -> Effect {
        if let Some(began) = data.reconnects {
            self.reconnect(began);
        }
        let Some(order) = data.order else {
            self.ce += u64::from(data.new_mark);
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
        let effect = Effect {
            back,
            repeats,
            follows_new,
        };
        if data.is_copy {
            return effect;
        }
        self.ce += u64::from(data.new_mark);
        self.packets += 1;
        self.octets = self.octets.saturating_add(data.octets);
        self.octets_by_time.add_at(data.sighting.at, data.octets);
        let octets = u64::from(self.rest) + data.octets;
        self.rest = (octets % PART) as u32;
        let parts = u32::try_from(octets / PART).unwrap_or(u32::MAX);
        self.series.add(data.sighting.at, parts);
        effect
    }

    /// Begins anew with another connection.
    #[cold]
    fn reconnect(&mut self, first: u64) {
        let mut earlier = self.earlier.take().unwrap_or_else(|| {
            Box::new(Earlier {
                first,
                ..Earlier::default()
            })
        });
        earlier.packets += self.packets;
        earlier.octets = earlier.octets.saturating_add(self.octets);
        earlier.ce += self.ce;
        *self = Self {
            earlier: Some(earlier),
            ..Self::default()
        };
    }

    /// Returns the data of earlier connections of the flow.
    pub fn earlier(&self) -> Option<&Earlier> {
        self.earlier.as_deref()
    }

    /// Processes a sample of its data, one in `one_in`, taken at a capture point. Samples do not
    /// show obedience.
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
            samples.ce += u64::from(data.sighting.ce);
            samples.octets = samples.octets.saturating_add(octets);
            samples.octets_by_time.add_at(data.sighting.at, octets);
        }
    }

    /// Returns the estimate from samples if there is no other data: that of the point with the most
    /// samples.
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
            octets: samples.octets,
            sampled: samples.packets.one_in().round() as u64,
            rate: octets.map(|octets| octets * 8.0),
            ce_share: samples.ce as f64 / count,
        })
    }

    /// Returns the data rate in the last complete second at `now`, or since `since` if that is
    /// shorter, in bits per second of IP packets: zero if the flow has fallen silent, `None` if the
    /// period is shorter and has few packets.
    pub fn data_rate(&self, now: u64, since: u64) -> Option<f64> {
        let least = Least::in_part(ENOUGH * self.packet());
        Some(self.octets_by_time.rate_1s(now, since, least)? * 8.0)
    }

    /// Returns the fraction of packets of all its connections marked CE, 0 to 1.
    pub fn ce_share_of_all(&self) -> Option<f64> {
        let (packets, ce) = self.earlier().map_or((0, 0), |all| (all.packets, all.ce));
        let packets = self.packets + packets;
        (packets > 0).then(|| (self.ce + ce) as f64 / packets as f64)
    }

    /// Returns the fraction of packets marked CE, 0 to 1.
    pub fn ce_share(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.ce as f64 / self.packets as f64)
    }

    /// Returns the mean length of a packet in octets.
    fn packet(&self) -> f64 {
        self.octets as f64 / self.packets.max(1) as f64
    }
}
