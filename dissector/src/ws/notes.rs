//! What wrappers note of a packet, kept with it until the postdissector asks: a wrapper may never see the dissector behind
//! it return. What is noted is the users' business.

use super::packet::Packet;
use super::{ids, sys};
use crate::names::P;
use core::cell::Cell;
use core::iter::successors;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Most that is noted of one packet by one protocol; more than that is no traffic but an attack.
const MAX_NOTES: usize = 16;

/// What can be noted.
///
/// # Safety
/// No other type has the same protocol.
pub unsafe trait Noted: Copy {
    /// The protocol that it is kept under.
    const PROTOCOL: P;
}

/// The notes of one packet, in its pool.
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
    /// Copies of the notes, in their order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'p, T> {
        successors(Some(self.first), |entry| entry.next.get()).map(|entry| entry.note.get())
    }

    /// How many more there were than are kept.
    pub fn lost(&self) -> u32 {
        self.lost.get()
    }
}

/// The packet that something was noted of last: all others need not be asked for their notes.
static NOTED: AtomicPtr<sys::packet_info> = AtomicPtr::new(ptr::null_mut());

/// Whether anything may have been noted of this packet.
pub fn any(packet: Packet<'_>) -> bool {
    NOTED.load(Ordering::Relaxed) == packet.0
}

/// Done with the packet: the next one may lie in the same place.
pub fn done() {
    NOTED.store(ptr::null_mut(), Ordering::Relaxed);
}

/// The packet's notes of that type.
pub fn for_packet<'p, T: Noted>(packet: Packet<'p>) -> Option<&'p Notes<'p, T>> {
    let pinfo = packet.0;
    // SAFETY: the packet is live; only `note` stores under this protocol and key, in the packet's pool, and one type.
    unsafe {
        let id = ids::protocol(T::PROTOCOL);
        let notes: *const Notes<'p, T> = sys::p_get_proto_data((*pinfo).pool, pinfo, id, 0).cast();
        notes.as_ref()
    }
}

/// Notes something, and gives its place; `None` where there are too many.
pub fn note<'p, T: Noted>(packet: Packet<'p>, new: T) -> Option<&'p Cell<T>> {
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
        // SAFETY: the packet is live, and what is kept lives in its pool.
        unsafe {
            sys::p_add_proto_data((*pinfo).pool, pinfo, id, 0, ptr::from_mut(notes).cast());
        }
        NOTED.store(pinfo, Ordering::Relaxed);
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
