//! Options of AF_PACKET sockets that rustix has no function for (packet(7)).

#![allow(unsafe_code)]

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::ffi::{c_int, c_ushort};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

const ADD_MEMBERSHIP: c_int = 1;
const IGNORE_OUTGOING: c_int = 23;
const PROMISCUOUS: c_ushort = 1;

/// `struct packet_mreq`.
#[repr(C)]
struct Membership {
    index: c_int,
    kind: c_ushort,
    len: c_ushort,
    address: [u8; 8],
}

/// From now on `socket` gets no copies of what leaves by its interface. Since Linux 4.20.
pub(crate) fn ignore_outgoing(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, IGNORE_OUTGOING, &1_i32)
}

/// Interface number `index` is promiscuous until what is returned is dropped, or its process ends, in whatever way. The
/// socket itself gets nothing: it has no protocol.
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
