//! What is remembered of one flow.

use super::Data;
use super::changes::Changes;
use super::rate::Rate;
use crate::monitor::series::Series;
use fcn_observe::fetch::fetch;
use fcn_observe::rules::Beside;
use fcn_observe::{Obedience, Verdict};

/// A flow of which data was seen. Times are nanoseconds since the epoch; `now` is the monitor's clock.
#[derive(Clone, Debug)]
pub struct Flow {
    first: u64,
    last: u64,
    packets: u64,
    octets: u64,
    ce: u64,
    beside: Beside,
    last_psn: u32,
    /// The interface that it was seen on first: on another its packets are the same ones.
    interface: u32,
    rate: Rate,
    changes: Changes,
    obedience: Obedience,
    series: Series<u64>,
}

impl Flow {
    pub(super) fn new(at: u64, interface: u32) -> Self {
        Self {
            first: at,
            last: at,
            packets: 0,
            octets: 0,
            ce: 0,
            beside: Beside::default(),
            last_psn: 0,
            interface,
            rate: Rate::default(),
            changes: Changes::new(),
            obedience: Obedience::new(),
            series: Series::new(),
        }
    }

    pub(super) fn data(&mut self, at: u64, data: &Data) -> bool {
        let at = at.max(self.last);
        self.packets += 1;
        self.octets = self.octets.saturating_add(data.ip_octets);
        self.ce += u64::from(data.ce);
        self.last_psn = data.psn;
        self.rate.add(self.last, at, data.ip_octets);
        self.changes.data(self.last, at, data.ip_octets);
        if data.interface == self.interface {
            self.obedience.data(at, data.ip_octets, data.entropy);
        }
        self.series.add(at, data.ip_octets);
        self.last = at;
        self.beside.is_broken(at, data.ce, data.able)
    }

    /// Has every part fetched from memory that [`data`](Self::data) is going to touch.
    #[inline]
    pub(super) fn fetch(&self) {
        fetch(&self.first);
        fetch(&self.octets);
        self.rate.fetch();
        self.changes.fetch();
        self.obedience.fetch();
        self.series.fetch();
    }

    pub(super) fn notified(&mut self, at: u64, fast_from_switch: bool) {
        let at = at.max(self.last);
        self.changes.notified(self.first, self.last, at);
        self.obedience.notified(at);
        if fast_from_switch {
            self.beside.notified(at);
        }
    }

    /// Data in the second before `now`, in bits a second of IP packets: ten steps of 100 ms, the running one included.
    /// Always there: zero where the flow has fallen silent.
    #[must_use]
    pub fn data_rate(&self, now: u64) -> Option<f64> {
        Some(self.rate.sum(self.last, now.max(self.last)) * 8.0)
    }

    /// Data packets seen.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Octets of their IP packets.
    #[must_use]
    pub const fn octets(&self) -> u64 {
        self.octets
    }

    /// Part of the packets that was marked CE, 0 to 1.
    #[must_use]
    pub fn ce_share(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.ce as f64 / self.packets as f64)
    }

    /// Octets of a packet, on average.
    fn packet(&self) -> f64 {
        self.octets as f64 / self.packets.max(1) as f64
    }

    /// How the data of 1 ms changed from before notifications to after them: −0.5 is half. Sums over all notifications
    /// measured are compared; one counts as soon as 1 ms has passed by `now`.
    #[must_use]
    pub fn change_1ms(&self, now: u64) -> Option<f64> {
        self.changes.change(0, self.packet(), now)
    }

    /// The same with 10 ms before and after.
    #[must_use]
    pub fn change_10ms(&self, now: u64) -> Option<f64> {
        self.changes.change(1, self.packet(), now)
    }

    /// Whether it obeys.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.obedience.verdict()
    }

    /// Octets over time.
    #[must_use]
    pub const fn series(&self) -> &Series<u64> {
        &self.series
    }

    /// Packet sequence number of the last packet.
    #[must_use]
    pub const fn last_psn(&self) -> u32 {
        self.last_psn
    }

    /// When the first packet was seen.
    #[must_use]
    pub const fn first_seen(&self) -> u64 {
        self.first
    }

    /// When the last packet was seen.
    #[must_use]
    pub const fn last_seen(&self) -> u64 {
        self.last
    }
}
