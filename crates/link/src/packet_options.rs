//! Options of AF_PACKET sockets that rustix does not provide (packet(7)), and VLAN tags, which the
//! kernel delivers separately from frames.

#![allow(
    unsafe_code,
    reason = "setsockopt(2) and recvmsg(2) take any octets; no library has these options"
)]

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::ffi::{c_int, c_ushort};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

const ADD_MEMBERSHIP: c_int = 1;
const AUXDATA: c_int = 8;
const IGNORE_OUTGOING: c_int = 23;
/// Length of a VLAN tag, and its offset in a frame, in octets.
const TAG: usize = 4;
const TAG_AT: usize = 12;
const PROMISCUOUS: c_ushort = 1;

/// The kernel's `struct packet_mreq`.
#[repr(C)]
struct Membership {
    index: c_int,
    kind: c_ushort,
    len: c_ushort,
    address: [u8; 8],
}

/// Stops `socket` from receiving copies of outgoing frames. Since Linux 4.20.
pub(crate) fn ignore_outgoing(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, IGNORE_OUTGOING, &1_i32)
}

/// Makes the interface with index `index` promiscuous until the returned descriptor is dropped, or
/// its process ends in any way. The socket itself receives nothing: it has no protocol.
pub(crate) fn promiscuous(index: u32) -> io::Result<OwnedFd> {
    let socket = socket_with(
        AddressFamily::PACKET,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let membership = Membership {
        index: index as c_int,
        kind: PROMISCUOUS,
        len: 0,
        address: [0; 8],
    };
    set(socket.as_fd(), ADD_MEMBERSHIP, &membership)?;
    Ok(socket)
}

/// Makes `socket` report the VLAN tag of each frame.
pub(crate) fn enable_vlan_tags(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, AUXDATA, &1_i32)
}

/// Receives a waiting frame with its outermost VLAN tag, and returns its range in `room`; `None` if
/// it does not fit. The socket must [report tags](tell_tags).
pub(crate) fn receive(socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<Option<Range<usize>>> {
    let behind = &mut room[TAG..];
    let mut part = libc::iovec {
        iov_base: behind.as_mut_ptr().cast(),
        iov_len: behind.len(),
    };
    // Has the alignment that the kernel's header of control messages needs.
    let mut control = [0_u64; 8];
    // SAFETY: every field may be 0.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the kernel writes into `behind` and `control`, as many octets as they have, and keeps
    // no reference.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let Ok(len) = usize::try_from(len) else {
        return Err(io::Error::last_os_error());
    };
    if message.msg_flags & libc::MSG_TRUNC != 0 {
        return Ok(None);
    }
    let mut tag = None;
    // SAFETY: `message` is what recvmsg(2) has filled in, and `control` is still there.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: it is null, or points to a whole header within `control`.
    while let Some(header) = unsafe { next.as_ref() } {
        if (header.cmsg_level, header.cmsg_type) == (libc::SOL_PACKET, AUXDATA) {
            // SAFETY: the kernel has put such a structure after a header of this kind; it need not
            // be aligned.
            let told = unsafe {
                let data = libc::CMSG_DATA(next).cast::<libc::tpacket_auxdata>();
                data.read_unaligned()
            };
            if told.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                tag = Some([
                    told.tp_vlan_tpid.to_be_bytes(),
                    told.tp_vlan_tci.to_be_bytes(),
                ]);
            }
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(&raw const message, next) };
    }
    match tag {
        Some(tag) if len >= TAG_AT => {
            room.copy_within(TAG..TAG + TAG_AT, 0);
            room[TAG_AT..TAG_AT + TAG].copy_from_slice(tag.as_flattened());
            Ok(Some(0..TAG + len))
        }
        _ => Ok(Some(TAG..TAG + len)),
    }
}

/// Allocates a buffer for [`receive`] of frames of up to `max_frame_len` octets.
pub(crate) fn room(max_frame_len: usize) -> Vec<u8> {
    vec![0; TAG + max_frame_len]
}

fn set<T>(socket: BorrowedFd<'_>, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many octets as `value` has, and keeps no reference to it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
