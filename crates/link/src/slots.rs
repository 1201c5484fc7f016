//! Frame slots in ordinary memory, for backends that do not share memory with the kernel.

use crate::transmit::{Counts, Slot};
use std::collections::VecDeque;

/// Buffers, free ones, and those that wait to be sent.
#[derive(Debug)]
pub(crate) struct Slots {
    buffers: Box<[u8]>,
    slot_len: usize,
    free: VecDeque<u32>,
    /// Slot and length in octets, in the order in which they were pushed.
    waiting: VecDeque<(u32, usize)>,
    pub(crate) counts: Counts,
}

impl Slots {
    /// Creates `count` slots of `slot_len` octets each; both are at least one.
    pub(crate) fn new(count: usize, slot_len: usize) -> Self {
        let (count, slot_len) = (count.max(1), slot_len.max(1));
        Self {
            buffers: vec![0; count * slot_len].into_boxed_slice(),
            slot_len,
            free: (0..count as u32).collect(),
            waiting: VecDeque::with_capacity(count),
            counts: Counts::default(),
        }
    }

    /// Returns the number of slots and the length of each in octets.
    pub(crate) fn extent(&self) -> (usize, usize) {
        (self.buffers.len() / self.slot_len, self.slot_len)
    }

    pub(crate) fn take(&mut self) -> Option<Slot> {
        self.free.pop_front().map(Slot)
    }

    pub(crate) fn bytes(&mut self, slot: &Slot) -> &mut [u8] {
        let at = slot.index() * self.slot_len;
        &mut self.buffers[at..at + self.slot_len]
    }

    pub(crate) fn push(&mut self, slot: Slot, len: usize) {
        assert_fits(len, self.slot_len);
        self.waiting.push_back((slot.0, len));
        self.counts.pushed += 1;
        self.counts.octets += len as u64;
    }

    /// Returns the first frame that waits.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        let (slot, len) = *self.waiting.front()?;
        let at = slot as usize * self.slot_len;
        self.buffers.get(at..at + len)
    }

    /// Marks that frame as sent.
    pub(crate) fn sent(&mut self) {
        if let Some((slot, _)) = self.waiting.pop_front() {
            self.free.push_back(slot);
            self.counts.completed += 1;
        }
    }
}

/// Asserts that a frame fits its slot; otherwise it is our mistake.
#[inline]
pub(crate) fn assert_fits(len: usize, slot_len: usize) {
    assert!(
        (1..=slot_len).contains(&len),
        "a frame of {len} octets in a slot of {slot_len}"
    );
}
