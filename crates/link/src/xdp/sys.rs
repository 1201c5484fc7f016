//! System calls of AF_XDP and BPF for which rustix has no safe function: mappings and bpf(2). Their
//! use is elsewhere.

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// A memory mapping, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    start: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to whoever owns this value, as a Box would.
unsafe impl Send for Mapping {}

impl Mapping {
    const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// Maps new memory filled with zeros, with its pages present.
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: the kernel chooses the address, so no memory of ours is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, Self::ACCESS, flags) }?;
        let start = start.cast();
        Ok(Self { start, len })
    }

    /// Maps a ring of a socket, shared with the kernel.
    pub(super) fn of_ring(socket: BorrowedFd<'_>, len: usize, at: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as above.
        let start = unsafe { mmap(ptr::null_mut(), len, Self::ACCESS, flags, socket, at) }?;
        let start = start.cast();
        Ok(Self { start, len })
    }

    pub(super) const fn start(&self) -> *mut u8 {
        self.start
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and nothing borrowed from it outlives this value.
        let _ = unsafe { munmap(self.start.cast(), self.len) };
    }
}

/// The required calls of bpf(2).
pub(super) mod bpf {
    use super::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, io};

    const MAP_CREATE: i64 = 0;
    const MAP_UPDATE: i64 = 2;
    const PROGRAM_LOAD: i64 = 5;
    const LINK_CREATE: i64 = 28;
    const MAP_TYPE_XSKMAP: u32 = 17;
    const PROGRAM_TYPE_XDP: u32 = 6;
    const ATTACH_XDP: u32 = 37;
    /// Flag: the program supports frames of several buffers.
    const HAS_FRAGS: u32 = 1 << 5;
    const NAME: [u8; 16] = *b"fcn_link\0\0\0\0\0\0\0\0";

    /// Maximum length of an attribute, in octets; the rest of a shorter one is zero.
    const ATTRIBUTE_LEN: usize = 128;

    /// Calls bpf(2).
    ///
    /// # Safety
    /// `attribute` must be the one that `command` requires, and its addresses valid during the
    /// call.
    unsafe fn call<T: Copy>(command: i64, attribute: &T) -> io::Result<i32> {
        const { assert!(size_of::<T>() <= ATTRIBUTE_LEN) };
        let mut octets = [0u64; ATTRIBUTE_LEN / 8];
        // SAFETY: `octets` has room for it, and they do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(
                std::ptr::from_ref(attribute).cast::<u8>(),
                octets.as_mut_ptr().cast(),
                size_of::<T>(),
            );
        }
        // SAFETY: `octets` is valid for the length given; the caller is responsible for its
        // contents.
        let result =
            unsafe { libc::syscall(libc::SYS_bpf, command, octets.as_ptr(), ATTRIBUTE_LEN) };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(result as i32)
        }
    }

    fn owned(fd: i32) -> OwnedFd {
        // SAFETY: the kernel has just given us this descriptor, and no one else has it.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }

    /// Creates a map from queue numbers to AF_XDP sockets.
    pub(in super::super) fn socket_map(entries: u32) -> io::Result<OwnedFd> {
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Attribute {
            kind: u32,
            key: u32,
            value: u32,
            entries: u32,
            flags: u32,
            inner: u32,
            node: u32,
            name: [u8; 16],
        }
        let attribute = Attribute {
            kind: MAP_TYPE_XSKMAP,
            key: 4,
            value: 4,
            entries,
            flags: 0,
            inner: 0,
            node: 0,
            name: NAME,
        };
        // SAFETY: the attribute of this command, without addresses.
        unsafe { call(MAP_CREATE, &attribute) }.map(owned)
    }

    /// Puts a socket into the map of sockets.
    pub(in super::super) fn put_socket(
        map: BorrowedFd<'_>,
        queue: u32,
        socket: BorrowedFd<'_>,
    ) -> io::Result<()> {
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Attribute {
            map: u32,
            pad: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let value = socket.as_raw_fd() as u32;
        let attribute = Attribute {
            map: map.as_raw_fd() as u32,
            pad: 0,
            key: (&raw const queue).addr() as u64,
            value: (&raw const value).addr() as u64,
            flags: 0,
        };
        // SAFETY: the attribute of this command; key and value are of the map's sizes and live
        // during the call.
        unsafe { call(MAP_UPDATE, &attribute) }.map(drop)
    }

    /// Loads an XDP program.
    pub(in super::super) fn load(program: &[u64], frags: bool) -> io::Result<OwnedFd> {
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Attribute {
            kind: u32,
            instructions: u32,
            program: u64,
            license: u64,
            log_level: u32,
            log_len: u32,
            log: u64,
            kernel: u32,
            flags: u32,
            name: [u8; 16],
        }
        const LICENSE: &[u8] = b"Dual MIT/GPL\0";
        let attribute = Attribute {
            kind: PROGRAM_TYPE_XDP,
            instructions: program.len() as u32,
            program: program.as_ptr().addr() as u64,
            license: LICENSE.as_ptr().addr() as u64,
            log_level: 0,
            log_len: 0,
            log: 0,
            kernel: 0,
            flags: if frags { HAS_FRAGS } else { 0 },
            name: NAME,
        };
        // SAFETY: the attribute of this command; program and licence live during the call.
        unsafe { call(PROGRAM_LOAD, &attribute) }.map(owned)
    }

    /// Attaches an XDP program for the lifetime of the descriptor, at most that of the process.
    pub(in super::super) fn attach(
        program: BorrowedFd<'_>,
        interface: u32,
        flags: u32,
    ) -> io::Result<OwnedFd> {
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Attribute {
            program: u32,
            interface: u32,
            kind: u32,
            flags: u32,
        }
        let attribute = Attribute {
            program: program.as_raw_fd() as u32,
            interface,
            kind: ATTACH_XDP,
            flags,
        };
        // SAFETY: the attribute of this command, without addresses.
        unsafe { call(LINK_CREATE, &attribute) }.map(owned)
    }
}
