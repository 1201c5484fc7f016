//! Whether a flow takes another path after notifications: its entropy (UDP source port, flow label) changes.

/// Changes of a flow's entropy between notifications, counted in packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    entropy: u32,
    /// Data packets since the last notification.
    packets: u32,
    /// Where the first and the last change since then was; 0 for none.
    turns: (u32, u32),
    /// Whether a notification was seen, and whether the entropy has changed after one.
    notified: bool,
    pub turned: bool,
    /// Notifications with a change in the first, and in the second half of the packets up to the next one.
    early: u16,
    late: u16,
    /// Notifications with several changes before the next one.
    twice: u16,
}

impl Path {
    /// Takes in a data packet; `first` where none came before.
    #[inline]
    pub fn packet(&mut self, entropy: u32, first: bool) {
        self.packets = self.packets.saturating_add(1);
        if self.entropy != entropy {
            self.entropy = entropy;
            if !first && self.notified {
                self.turn();
            }
        }
    }

    #[cold]
    fn turn(&mut self) {
        self.turned = true;
        let at = self.packets;
        self.turns = (if self.turns.0 == 0 { at } else { self.turns.0 }, at);
    }

    /// Takes in a notification.
    pub fn notify(&mut self) {
        let length = core::mem::take(&mut self.packets);
        let (first, last) = core::mem::take(&mut self.turns);
        self.notified = true;
        if first == 0 {
            return;
        }
        let counts = [&mut self.early, &mut self.late, &mut self.twice];
        if counts.iter().any(|count| **count == u16::MAX) {
            counts.into_iter().for_each(|count| *count /= 2);
        }
        self.twice += u16::from(first != last);
        let half = length.div_ceil(2);
        self.early += u16::from(last <= half);
        self.late += u16::from(first > half);
    }

    /// Notifications after which it takes another path, where that is more often than by chance or by a clock of its own.
    pub fn other(&self) -> Option<u32> {
        let (early, late) = (f64::from(self.early), f64::from(self.late));
        // A sender that changes it by a clock of its own does so twice between some notifications, or in step with them.
        let own_clock = self.twice > self.early / 4 || 2.0 * late >= early;
        let chance = 3.0 * (early + late).sqrt().min(early - 0.5);
        let is_sure = early >= 3.0 && early - late > chance && !own_clock;
        is_sure.then_some(self.early.into())
    }
}
