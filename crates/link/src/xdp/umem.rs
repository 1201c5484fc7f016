//! The memory shared with the kernel: chunks, and slots of one or more chunks each.

use super::sys::Mapping;
use std::io;

/// Chunk sizes that the kernel accepts, in octets. One page is the maximum without huge pages.
const CHUNKS: [usize; 2] = [2048, 4096];

/// Layout of slots in memory. A frame that is longer than a chunk continues in the next one, which
/// is adjacent, so that it is one slice for us and several descriptors for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Length of a chunk, in octets.
    pub chunk: usize,
    /// Number of chunks per slot.
    pub chunks: usize,
    /// Number of slots.
    pub slots: usize,
}

impl Layout {
    /// Computes the layout for slots of at least `max_frame_len` octets. On receiving, the kernel
    /// reserves `headroom` octets of each chunk.
    pub(super) fn new(slots: usize, max_frame_len: usize, headroom: usize) -> Self {
        let [small, large] = CHUNKS;
        if max_frame_len + headroom <= small {
            return Self {
                chunk: small,
                chunks: 1,
                slots,
            };
        }
        Self {
            chunk: large,
            chunks: max_frame_len.div_ceil(large - headroom).max(1),
            slots,
        }
    }

    pub(super) const fn slot_len(&self) -> usize {
        self.chunk * self.chunks
    }

    pub(super) const fn octets(&self) -> usize {
        self.slot_len() * self.slots
    }
}

/// The mapped memory.
#[derive(Debug)]
pub(super) struct Umem {
    memory: Mapping,
    layout: Layout,
}

impl Umem {
    pub(super) fn new(layout: Layout) -> io::Result<Self> {
        Ok(Self {
            memory: Mapping::anonymous(layout.octets())?,
            layout,
        })
    }

    pub(super) const fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) const fn start(&self) -> *mut u8 {
        self.memory.start()
    }

    pub(super) const fn len(&self) -> usize {
        self.memory.len()
    }

    /// Returns the octets of slot `index`.
    ///
    /// # Safety
    /// The kernel must not have this slot.
    #[inline]
    pub(super) unsafe fn slot_mut(&mut self, index: usize) -> &mut [u8] {
        assert!(index < self.layout.slots, "slot {index}");
        let len = self.layout.slot_len();
        // SAFETY: within the mapping by the assertion; `&mut self` excludes other accesses of ours,
        // and the caller excludes the kernel's.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().add(index * len), len) }
    }

    /// Returns `len` octets at offset `at`; `None` if they are not all in the mapping.
    ///
    /// # Safety
    /// The kernel must not have them.
    #[inline]
    pub(super) unsafe fn at(&self, at: usize, len: usize) -> Option<&[u8]> {
        if at.checked_add(len)? > self.memory.len() {
            return None;
        }
        // SAFETY: within the mapping, and the kernel does not have them by the caller's promise.
        Some(unsafe { std::slice::from_raw_parts(self.memory.start().add(at), len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_long_enough_for_the_longest_frame() {
        for (max_frame_len, chunk, chunks) in [
            (94, 2048, 1),
            (1514, 2048, 1),
            (2048, 2048, 1),
            (2049, 4096, 1),
            (4096, 4096, 1),
            (4097, 4096, 2),
            (9014, 4096, 3),
            (65_549, 4096, 17),
        ] {
            let layout = Layout::new(8, max_frame_len, 0);
            assert_eq!(
                (layout.chunk, layout.chunks),
                (chunk, chunks),
                "{max_frame_len}"
            );
            assert!(layout.slot_len() >= max_frame_len);
        }
        assert_eq!(Layout::new(8, 2000, 256).chunk, 4096);
    }

    #[test]
    fn slots_do_not_overlap() {
        let mut umem = Umem::new(Layout::new(4, 5000, 0)).unwrap();
        for i in 0..4 {
            // SAFETY: the kernel does not know this memory.
            unsafe { umem.slot_mut(i) }.fill(i as u8 + 1);
        }
        for i in 0..4u8 {
            // SAFETY: as above.
            let slot = unsafe { umem.at(i as usize * 8192, 8192) }.unwrap();
            assert!(slot.iter().all(|octet| *octet == i + 1));
        }
        // SAFETY: as above.
        assert!(unsafe { umem.at(4 * 8192 - 1, 2) }.is_none());
    }
}
