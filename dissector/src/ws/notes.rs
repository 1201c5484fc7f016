//! Notes that wrappers attach to a packet, kept until the postdissector reads them: the wrapped
//! dissector may never return to its wrapper. Their users define what a note holds.

use super::packet::Packet;
use super::{ids, sys};
use crate::names::P;
use core::cell::Cell;
use core::iter::successors;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Maximum number of notes of one protocol about one packet; only an attack needs more.
const MAX_NOTES: usize = 16;

/// A type of note.
///
/// # Safety
/// No other type has the same protocol.
pub unsafe trait NoteType: Copy {
    /// Protocol that it is stored under.
    const PROTOCOL: P;
}

/// Notes about one packet, in its memory pool.
pub struct Notes<'p, T> {
    first: &'p Entry<'p, T>,
    last: Cell<&'p Entry<'p, T>>,
    len: Cell<usize>,
    lost: Cell<u32>,
}

struct Entry<'p, T> {
    note: Cell<T>,
    next: Cell<Option<&'p Self>>,
}

impl<'p, T: Copy> Notes<'p, T> {
    /// Returns copies of the notes, in their order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'p, T> {
        successors(Some(self.first), |entry| entry.next.get()).map(|entry| entry.note.get())
    }

    /// Number of notes that were not kept.
    pub fn lost(&self) -> u32 {
        self.lost.get()
    }
}

/// Last packet that has notes: no other packet need be queried.
static LAST_NOTED_PACKET: AtomicPtr<sys::packet_info> = AtomicPtr::new(ptr::null_mut());

/// Returns true if there may be notes about this packet.
pub fn any(packet: Packet<'_>) -> bool {
    LAST_NOTED_PACKET.load(Ordering::Relaxed) == packet.0
}

/// Ends the work on the packet: the next one may have the same address.
pub fn done() {
    LAST_NOTED_PACKET.store(ptr::null_mut(), Ordering::Relaxed);
}

/// Returns the packet's notes of this type.
pub fn for_packet<'p, T: NoteType>(packet: Packet<'p>) -> Option<&'p Notes<'p, T>> {
    let pinfo = packet.0;
    // SAFETY: the packet is live; only `note` stores under this protocol and key, in the packet's
    // pool, and only one type.
    unsafe {
        let id = ids::protocol(T::PROTOCOL);
        let notes: *const Notes<'p, T> = sys::p_get_proto_data((*pinfo).pool, pinfo, id, 0).cast();
        notes.as_ref()
    }
}

/// Stores a note, and returns a reference to it; `None` if there are too many.
pub fn note<'p, T: NoteType>(packet: Packet<'p>, new: T) -> Option<&'p Cell<T>> {
    let entry = |note| {
        let (note, next) = (Cell::new(note), Cell::new(None));
        &*packet.scratch(1)[0].write(Entry { note, next })
    };
    let Some(notes) = for_packet::<T>(packet) else {
        let first = entry(new);
        let notes = packet.scratch(1)[0].write(Notes {
            first,
            last: Cell::new(first),
            len: Cell::new(1),
            lost: Cell::new(0),
        });
        let (pinfo, id) = (packet.0, ids::protocol(T::PROTOCOL));
        // SAFETY: the packet is live, and the notes live in its pool.
        unsafe {
            sys::p_add_proto_data((*pinfo).pool, pinfo, id, 0, ptr::from_mut(notes).cast());
        }
        LAST_NOTED_PACKET.store(pinfo, Ordering::Relaxed);
        return Some(&first.note);
    };
    if notes.len.get() == MAX_NOTES {
        notes.lost.set(notes.lost.get().saturating_add(1));
        return None;
    }
    let last = entry(new);
    notes.last.replace(last).next.set(Some(last));
    notes.len.set(notes.len.get() + 1);
    Some(&last.note)
}
