//! The pace of a flow: logarithms of the gaps between its packets, and between its bursts, per
//! octet.

use crate::float::Float;

/// Share of the usual long gap below which packets belong to one burst.
const BACK_TO_BACK: f32 = 0.25;
/// Minimum number of packets in a burst: with one, rate limiters that send two or four at once hide
/// half of the responses of DCQCN.
const BURST: u8 = 4;
/// Maximum ratio of a gap to the usual long one; longer gaps count as this. So a gap that occurs
/// once in more than 48 packets is a pause, and does not separate bursts.
const LONGEST: f32 = 4.0;
/// Number of gaps after which the usual long gap is known, and over which it is averaged.
const KNOWN: u16 = 64;
/// Bursts in a batch, whose mean pace is compared between times with and without notifications.
const BATCH: u8 = 16;

/// Share of packets that end a message above which ends are meaningless: each packet is a message.
const MESSAGES: f32 = 0.5;

/// A gap that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// Natural logarithm of nanoseconds per octet.
    pub pace: f32,
    /// Length in nanoseconds.
    pub length: f32,
    /// True if a notification lies in it.
    pub notified: bool,
    /// True if a message ended before it: there may have been nothing to send.
    pub idle: bool,
}

/// The gaps that a packet ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gaps {
    pub packet: Gap,
    /// The gap from burst to burst, if the packet begins one.
    pub burst: Option<Gap>,
}

/// A gap that has not ended.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    since: u64,
    octets: f32,
    notified: bool,
    idle: bool,
}

impl Open {
    /// Ends the gap at `at`, and begins the next one with `octets` octets.
    fn end(&mut self, at: u64, octets: f32) -> Gap {
        let length = (at - self.since) as f32;
        let pace = (length / self.octets.max(1.0)).natural_log();
        let Self { notified, idle, .. } = *self;
        *self = Self {
            since: at,
            octets,
            ..Self::default()
        };
        Gap {
            pace,
            length,
            notified,
            idle,
        }
    }
}

/// Converts packets into gaps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// The gap since the latest stamp; its octets are those of all packets with that stamp.
    packet: Open,
    /// The gap since the burst began.
    burst: Open,
    /// Mean gap, and mean squared gap: their quotient is the usual long gap.
    mean: f32,
    squares: f32,
    /// Number of gaps, up to that needed to know the usual long one.
    gaps: u16,
    begun: bool,
    /// Recent share of packets that end a message.
    messages: f32,
    /// Stamps in the burst so far.
    in_burst: u8,
}

impl Pace {
    /// Processes a packet at `at`, with those skipped just before it: `packets` packets of `octets`
    /// octets in total. Returns the gaps that it ends, once the usual long gap is known.
    #[inline]
    pub fn packet(&mut self, at: u64, octets: u64, packets: u32) -> Option<Gaps> {
        let packets = packets as f32;
        let octets = octets as f32 / packets;
        if !self.begun {
            self.begun = true;
            let open = Open {
                since: at,
                octets,
                ..Open::default()
            };
            (self.packet, self.burst, self.in_burst) = (open, open, 1);
            return None;
        }
        let unseen = (packets - 1.0) * octets;
        self.packet.octets += unseen;
        self.burst.octets += unseen;
        if at <= self.packet.since {
            self.packet.octets += octets;
            self.burst.octets += octets;
            return None;
        }
        let gap = (at - self.packet.since) as f32 / packets;
        self.messages -= self.messages / f32::from(KNOWN);
        let is_in_burst = !self.packet.idle
            && (self.in_burst < BURST || gap * self.mean < BACK_TO_BACK * self.squares);
        self.learn(gap);
        let packet = self.packet.end(at, octets);
        let burst = match is_in_burst {
            true => {
                self.burst.octets += octets;
                self.in_burst = self.in_burst.saturating_add(1);
                None
            }
            false => {
                self.in_burst = 1;
                Some(self.burst.end(at, octets))
            }
        };
        (self.gaps >= KNOWN).then_some(Gaps { packet, burst })
    }

    fn learn(&mut self, gap: f32) {
        let gap = match self.gaps < KNOWN {
            true => gap,
            false => gap.min(LONGEST * self.squares / self.mean),
        };
        self.gaps = (self.gaps + 1).min(KNOWN);
        let part = 1.0 / f32::from(self.gaps);
        self.mean += part * (gap - self.mean);
        self.squares += part * (gap * gap - self.squares);
    }

    /// Records that the latest packet ends a message.
    pub fn message_ends(&mut self) {
        self.messages += 1.0 / f32::from(KNOWN);
        if self.messages < MESSAGES {
            (self.packet.idle, self.burst.idle) = (true, true);
        }
    }

    /// Records that the latest gap is no choice of the sender's.
    pub const fn path_paused(&mut self) {
        (self.packet.idle, self.burst.idle) = (true, true);
    }

    /// Records a notification, which lies in the open gaps.
    pub const fn notify(&mut self) {
        self.packet.notified = true;
        self.burst.notified = true;
    }
}

/// Mean pace of batches of bursts, and its variance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batches {
    /// Sum and number of the incomplete batch.
    sum: f32,
    bursts: u8,
    pub batches: f32,
    mean: f32,
    /// Sum of squared differences from the mean.
    squares: f32,
}

impl Batches {
    pub fn add(&mut self, pace: f32) {
        self.sum += pace;
        self.bursts += 1;
        if self.bursts == BATCH {
            let mean = self.sum / f32::from(BATCH);
            (self.sum, self.bursts) = (0.0, 0);
            self.batches += 1.0;
            let off = mean - self.mean;
            self.mean += off / self.batches;
            self.squares += off * (mean - self.mean);
        }
    }

    /// Returns the mean pace; `None` before the first batch is complete.
    pub fn mean(&self) -> Option<f32> {
        (self.batches > 0.0).then_some(self.mean)
    }

    pub fn variance(&self) -> f64 {
        f64::from(self.squares / (self.batches - 1.0).max(1.0))
    }
}
