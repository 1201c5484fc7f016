//! The rings shared with the kernel: single producer, single consumer, indices that wrap at 2^32.
//!
//! Both indices are kept in private copies. The kernel's index is read again only if the copy shows
//! nothing to do. The kernel zeroes the rings of a new socket, and the copies start with their
//! contents.

use super::sys::Mapping;
use rustix::net::xdp::{XdpDesc, XdpRingFlags, XdpRingOffset};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// An entry of a ring: plain integers.
pub(super) trait Entry: Copy {}

impl Entry for u64 {}

impl Entry for XdpDesc {}

/// A ring of which we are one end.
#[derive(Debug)]
pub(super) struct Ring<T> {
    // The pointers point into this mapping.
    _memory: Mapping,
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    flags: *const AtomicU32,
    entries: *mut T,
    size: u32,
}

// SAFETY: the pointers point into the mapping that goes with them.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    pub(super) fn new(
        socket: BorrowedFd<'_>,
        at: u64,
        offsets: &XdpRingOffset,
        size: u32,
    ) -> io::Result<Self> {
        let len = offsets.desc as usize + size as usize * size_of::<T>();
        Self::over(Mapping::of_ring(socket, len, at)?, offsets, size)
    }

    fn over(memory: Mapping, offsets: &XdpRingOffset, size: u32) -> io::Result<Self> {
        let within = |offset: u64, octets: usize| -> io::Result<*mut u8> {
            let offset = offset as usize;
            if offset
                .checked_add(octets)
                .is_none_or(|end| end > memory.len())
                || !offset.is_multiple_of(4)
            {
                return Err(io::Error::other("the kernel returned an invalid ring"));
            }
            // SAFETY: within the mapping, as was just checked.
            Ok(unsafe { memory.start().add(offset) })
        };
        let producer = within(offsets.producer, 4)?.cast_const().cast();
        let consumer = within(offsets.consumer, 4)?.cast_const().cast();
        let Some(flags) = offsets.flags else {
            return Err(io::Error::other("the kernel is older than Linux 5.4"));
        };
        let flags = within(flags, 4)?.cast_const().cast();
        let entries = within(offsets.desc, size as usize * size_of::<T>())?;
        if !entries.addr().is_multiple_of(align_of::<T>()) || !size.is_power_of_two() {
            return Err(io::Error::other("the kernel returned an invalid ring"));
        }
        Ok(Self {
            _memory: memory,
            producer,
            consumer,
            flags,
            entries: entries.cast(),
            size,
        })
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        // SAFETY: in the mapping, aligned, and only ever accessed atomically.
        unsafe { &*self.producer }
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.consumer }
    }

    #[inline]
    fn needs_wakeup(&self) -> bool {
        // SAFETY: as above.
        let flags = unsafe { &*self.flags };
        XdpRingFlags::from_bits_retain(flags.load(Ordering::Relaxed))
            .contains(XdpRingFlags::XDP_RING_NEED_WAKEUP)
    }

    #[inline]
    fn entry(&self, index: u32) -> *mut T {
        // SAFETY: the mask keeps it within the ring's `size` entries, all of them in the mapping.
        unsafe { self.entries.add((index & (self.size - 1)) as usize) }
    }
}

/// Our end of a ring that we fill: transmit, fill.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Index of entries written.
    filled: u32,
    /// Index of entries submitted.
    submitted: u32,
    /// The kernel's index, as last read.
    consumed: u32,
}

impl<T: Entry> Producer<T> {
    pub(super) fn new(ring: Ring<T>) -> Self {
        let filled = ring.producer().load(Ordering::Relaxed);
        let consumed = ring.consumer().load(Ordering::Acquire);
        Self {
            ring,
            filled,
            submitted: filled,
            consumed,
        }
    }

    /// Returns the number of free entries, which is exact only up to `wanted`.
    #[inline]
    pub(super) fn free(&mut self, wanted: u32) -> u32 {
        let free = |consumed: u32, p: &Self| p.ring.size - p.filled.wrapping_sub(consumed);
        if free(self.consumed, self) < wanted {
            self.consumed = self.ring.consumer().load(Ordering::Acquire);
        }
        free(self.consumed, self)
    }

    /// Writes an entry; returns false, and writes nothing, if the ring is full.
    #[inline]
    pub(super) fn write(&mut self, entry: T) -> bool {
        if self.free(1) == 0 {
            return false;
        }
        // SAFETY: the entry is ours until it is submitted: fewer than `size` are between us and the
        // kernel.
        unsafe { self.ring.entry(self.filled).write(entry) };
        self.filled = self.filled.wrapping_add(1);
        true
    }

    /// Makes written entries visible to the kernel.
    #[inline]
    pub(super) fn submit(&mut self) {
        if self.submitted != self.filled {
            self.submitted = self.filled;
            self.ring.producer().store(self.filled, Ordering::Release);
        }
    }

    /// Returns the number of submitted entries that the kernel has not taken.
    #[inline]
    pub(super) fn outstanding(&mut self) -> u32 {
        self.consumed = self.ring.consumer().load(Ordering::Acquire);
        self.submitted.wrapping_sub(self.consumed)
    }

    /// True if the kernel asks to be notified of new entries.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// Our end of a ring that the kernel fills: completion, receive.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    read: u32,
    /// The kernel's index, as last read.
    produced: u32,
}

impl<T: Entry> Consumer<T> {
    pub(super) fn new(ring: Ring<T>) -> Self {
        let read = ring.consumer().load(Ordering::Relaxed);
        let produced = ring.producer().load(Ordering::Acquire);
        Self {
            ring,
            read,
            produced,
        }
    }

    /// Returns the next entry, if there is one. [`release`](Self::release) returns it to the
    /// kernel.
    #[inline]
    pub(super) fn next(&mut self) -> Option<T> {
        if self.read == self.produced {
            self.produced = self.ring.producer().load(Ordering::Acquire);
            if self.read == self.produced {
                return None;
            }
        }
        // SAFETY: between our index and the kernel's, so the kernel has written it and will not
        // write it now.
        let entry = unsafe { self.ring.entry(self.read).read() };
        self.read = self.read.wrapping_add(1);
        Some(entry)
    }

    /// Returns the entries read to the kernel.
    #[inline]
    pub(super) fn release(&mut self) {
        self.ring.consumer().store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u32 = 8;
    const OFFSETS: XdpRingOffset = XdpRingOffset {
        producer: 0,
        consumer: 64,
        flags: Some(128),
        desc: 192,
    };

    /// Creates both ends of a ring in ordinary memory, with its indices at `start`.
    fn ends(start: u32) -> (Producer<u64>, Consumer<u64>) {
        let ring = |memory: Mapping| Ring::<u64>::over(memory, &OFFSETS, SIZE).unwrap();
        let ours = ring(Mapping::anonymous(4096).unwrap());
        ours.producer().store(start, Ordering::Relaxed);
        ours.consumer().store(start, Ordering::Relaxed);
        // The mapping belongs to `ours`: the tests keep the producer longer than the consumer.
        let theirs = Ring {
            _memory: Mapping::anonymous(4096).unwrap(),
            producer: ours.producer,
            consumer: ours.consumer,
            flags: ours.flags,
            entries: ours.entries,
            size: SIZE,
        };
        (Producer::new(ours), Consumer::new(theirs))
    }

    #[test]
    fn entries_pass_in_order_and_indices_wrap() {
        let (mut to, mut from) = ends(u32::MAX - 20);
        let (mut sent, mut received) = (0u64, 0u64);
        for round in 0..100 {
            let wanted = round % (SIZE + 1);
            assert_eq!(to.free(SIZE), SIZE);
            for _ in 0..wanted {
                assert!(to.write(sent));
                sent += 1;
            }
            assert_eq!(from.next(), None, "not submitted yet");
            to.submit();
            assert_eq!(to.outstanding(), wanted);
            while let Some(entry) = from.next() {
                assert_eq!(entry, received);
                received += 1;
            }
            from.release();
            assert_eq!(to.outstanding(), 0);
        }
        assert_eq!(sent, received);
        assert!(sent > 300);
    }

    #[test]
    fn a_full_ring_takes_nothing() {
        let (mut to, mut from) = ends(u32::MAX - 3);
        for i in 0..SIZE {
            assert!(to.write(i.into()));
        }
        assert!(!to.write(99));
        to.submit();
        assert_eq!(from.next(), Some(0));
        assert!(!to.write(99), "read, but not released");
        from.release();
        assert!(to.write(99));
    }

    #[test]
    fn an_invalid_ring_is_refused() {
        let ring = |offsets: &XdpRingOffset, size| {
            Ring::<u64>::over(Mapping::anonymous(4096).unwrap(), offsets, size).is_err()
        };
        assert!(ring(&OFFSETS, 7));
        assert!(ring(&OFFSETS, 1024));
        let odd = XdpRingOffset {
            desc: 196,
            ..OFFSETS
        };
        assert!(ring(&odd, SIZE));
        let far = XdpRingOffset {
            producer: u64::MAX,
            ..OFFSETS
        };
        assert!(ring(&far, SIZE));
    }
}
