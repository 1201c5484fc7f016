//! What wrappers note of a packet, kept with it until the postdissector asks: a wrapper may never see the dissector behind
//! it return. What is noted is the users' business.

use super::{ids, scratch, sys};
use crate::names::P;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Most that is noted of one packet by one protocol; more than that is no traffic but an attack.
const MAX_NOTES: usize = 16;

/// The notes of one packet, in its pool.
#[derive(Clone, Copy)]
pub struct Notes<T: Copy> {
    len: usize,
    lost: u32,
    list: [MaybeUninit<T>; MAX_NOTES],
}

impl<T: Copy> Notes<T> {
    /// Copies of the notes, in their order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.list.iter().take(self.len).map(|note| {
            // SAFETY: `note` writes the first `len`.
            unsafe { note.assume_init_read() }
        })
    }

    /// How many more there were than are kept.
    pub const fn lost(&self) -> u32 {
        self.lost
    }
}

/// The packet that something was noted of last: all others need not be asked for their notes.
static NOTED: AtomicPtr<sys::packet_info> = AtomicPtr::new(ptr::null_mut());

/// Whether anything may have been noted of this packet.
pub fn any(pinfo: *mut sys::packet_info) -> bool {
    NOTED.load(Ordering::Relaxed) == pinfo
}

/// Done with the packet: the next one may lie in the same place.
pub fn done() {
    NOTED.store(ptr::null_mut(), Ordering::Relaxed);
}

/// The packet's notes of a protocol, or null.
///
/// # Safety
/// `pinfo` comes from Wireshark, and each protocol notes one type.
pub unsafe fn of<T: Copy>(pinfo: *mut sys::packet_info, protocol: P) -> *mut Notes<T> {
    // SAFETY: `pinfo` is live; only `note` stores under this protocol and key.
    unsafe { sys::p_get_proto_data((*pinfo).pool, pinfo, ids::protocol(protocol), 0).cast() }
}

/// Notes something, and gives its place; null where there are too many.
///
/// # Safety
/// As for [`of`].
pub unsafe fn note<T: Copy>(pinfo: *mut sys::packet_info, protocol: P, new: T) -> *mut T {
    // SAFETY: `pinfo` is live; the memory is the packet's, and `len` never exceeds the list.
    unsafe {
        let mut all = of::<T>(pinfo, protocol);
        if all.is_null() {
            all = scratch::<Notes<T>>(pinfo, 1).as_mut_ptr().cast();
            all.write(Notes {
                len: 0,
                lost: 0,
                list: [const { MaybeUninit::uninit() }; MAX_NOTES],
            });
            let id = ids::protocol(protocol);
            sys::p_add_proto_data((*pinfo).pool, pinfo, id, 0, all.cast());
            NOTED.store(pinfo, Ordering::Relaxed);
        }
        let len = (*all).len;
        if len == MAX_NOTES {
            (*all).lost = (*all).lost.saturating_add(1);
            return ptr::null_mut();
        }
        (*all).len = len + 1;
        let place = (&raw mut (*all).list).cast::<T>().add(len);
        place.write(new);
        place
    }
}
