//! A bound AF_XDP socket: registers memory, maps rings, and obtains the best mode. Sending and
//! receiving are elsewhere.

use super::ring::{Consumer, Producer, Ring};
use super::umem::{Layout, Umem};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpOptionsFlags,
    XdpStatistics, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Maximum time for which binding to a busy queue is retried: the kernel is late to close a
/// previous socket.
const BUSY_FOR: Duration = Duration::from_secs(3);
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Copy mode: copying of frames between our memory and the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMode {
    /// Zero copy if the driver supports it, otherwise copies.
    Best,
    /// Only zero copy.
    Never,
    /// Only copies, whatever the driver supports.
    Always,
}

/// Reason why a queue could not be opened: what failed, on which queue, and what to do about it.
#[derive(Debug, Error)]
#[error("{interface} queue {queue}: {step}: {error}{}", self.advice())]
pub struct XdpError {
    pub(super) interface: String,
    pub(super) queue: u32,
    pub(super) step: Step,
    pub(super) error: io::Error,
}

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Step {
    #[error("cannot open an AF_XDP socket")]
    Socket,
    #[error("cannot map {octets} octets of memory")]
    Memory { octets: usize },
    #[error("cannot share {octets} octets of memory with the kernel")]
    Register { octets: usize },
    #[error("cannot set up the rings")]
    Rings,
    #[error("cannot bind an AF_XDP socket{}", if *zero_copy { " for zero copy" } else { "" })]
    Bind { zero_copy: bool, frags: bool },
    #[error("cannot load the XDP program")]
    LoadProgram,
    #[error("cannot attach the XDP program")]
    AttachProgram,
    #[error("cannot add the socket to the XDP program's map")]
    SocketMap,
}

impl XdpError {
    /// True if permissions are missing.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        self.error.kind() == io::ErrorKind::PermissionDenied
    }

    /// True if the kernel refused the queue, rather than a resource of the socket.
    pub(super) const fn is_bind(&self) -> bool {
        matches!(self.step, Step::Bind { .. })
    }

    /// Returns a short reason why a mode was not obtained.
    pub(super) fn reason(&self) -> String {
        let Step::Bind {
            zero_copy: true, ..
        } = self.step
        else {
            return self.to_string();
        };
        match self.error.raw_os_error() {
            Some(libc::EOPNOTSUPP) => "zero copy: unsupported by the driver".to_owned(),
            _ => format!("zero copy: {}", self.error),
        }
    }

    /// Returns advice on what to do about the error.
    fn advice(&self) -> &'static str {
        match (self.step, self.error.raw_os_error()) {
            (Step::Socket, Some(libc::EAFNOSUPPORT)) => {
                "; this kernel has no AF_XDP (CONFIG_XDP_SOCKETS); use the AF_PACKET backend"
            }
            (Step::Socket, Some(libc::EPERM)) => "; this needs CAP_NET_RAW",
            (Step::LoadProgram | Step::AttachProgram | Step::SocketMap, Some(libc::EPERM)) => {
                "; this needs CAP_BPF and CAP_NET_ADMIN"
            }
            (Step::Register { .. }, Some(libc::ENOBUFS | libc::ENOMEM | libc::EPERM)) => {
                "; raise the limit of locked memory (ulimit -l), or give the program CAP_IPC_LOCK"
            }
            (Step::Bind { .. }, Some(libc::EBUSY)) => {
                "; another program has an AF_XDP socket on this queue (ss --xdp); stop it, or choose another queue"
            }
            (Step::Bind { frags: true, .. }, Some(libc::EINVAL)) => {
                "; frames of more than one chunk need Linux 6.6; use the AF_PACKET backend, or a smaller MTU"
            }
            (Step::Bind { .. }, Some(libc::EINVAL)) => "; does that queue exist? (ethtool -l)",
            (Step::Bind { .. }, Some(libc::ENETDOWN)) => "; bring it up (ip link set up)",
            (Step::AttachProgram, Some(libc::EBUSY | libc::EEXIST)) => {
                "; another XDP program is attached; remove it (ip link set dev IF xdp off), or use the AF_PACKET backend"
            }
            _ => "",
        }
    }
}

/// Requirements of a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketConfig<'a> {
    pub interface: &'a str,
    pub index: u32,
    pub queue: u32,
    pub layout: Layout,
    /// Number of slots for receiving, which come first; the others are for sending.
    pub receive: usize,
    pub copy_mode: CopyMode,
}

/// A bound socket.
// The socket is closed before the memory is unmapped: fields are dropped in this order.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    pub transmit: Option<Producer<XdpDesc>>,
    pub completion: Consumer<u64>,
    pub fill: Producer<u64>,
    pub receive: Option<Consumer<XdpDesc>>,
    pub umem: Umem,
    pub zero_copy: bool,
    /// Reason why frames are copied although zero copy was requested.
    pub why_copying: Option<XdpError>,
}

impl Socket {
    /// Opens a socket according to `config`.
    ///
    /// If the driver refuses zero copy, the same socket is bound again for copies. With a second
    /// socket, the kernel would release the memory of the first some milliseconds later, and take
    /// processor time from the first frames.
    pub(super) fn open(config: &SocketConfig<'_>) -> Result<Self, XdpError> {
        let error = |step, error| XdpError {
            interface: config.interface.to_owned(),
            queue: config.queue,
            step,
            error,
        };
        let refused = |step| move |errno: Errno| error(step, errno.into());
        let fail = |step| move |e| error(step, e);
        let fd = socket_with(
            AddressFamily::XDP,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(refused(Step::Socket))?;
        let layout = config.layout;
        let octets = layout.octets();
        let umem = Umem::new(layout).map_err(fail(Step::Memory { octets }))?;
        // The memory outlives the socket (see the order of the fields), and has this length.
        let registration = XdpUmemReg {
            addr: umem.start().addr() as u64,
            len: umem.len() as u64,
            chunk_size: layout.chunk as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&fd, registration).map_err(refused(Step::Register { octets }))?;
        let mut rings = Rings::set_up(fd.as_fd(), config).map_err(fail(Step::Rings))?;
        // Before the bind: a driver that finds the ring empty then waits to be woken.
        for chunk in 0..config.receive * layout.chunks {
            rings.fill.write((chunk * layout.chunk) as u64);
        }
        rings.fill.submit();
        let frags = layout.chunks > 1;
        let bind = |zero_copy| {
            bind_patiently(fd.as_fd(), config, zero_copy, frags)
                .map_err(refused(Step::Bind { zero_copy, frags }))
        };
        let why_copying = match config.copy_mode {
            CopyMode::Always => bind(false).map(|()| None)?,
            CopyMode::Never => bind(true).map(|()| None)?,
            CopyMode::Best => match bind(true) {
                Ok(()) => None,
                Err(why) => bind(false).map(|()| Some(why))?,
            },
        };
        let options = sockopt::xdp_options(&fd).map_err(refused(Step::Rings))?;
        Ok(Self {
            fd,
            transmit: Some(rings.transmit),
            completion: rings.completion,
            fill: rings.fill,
            receive: rings.receive,
            umem,
            zero_copy: options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY),
            why_copying,
        })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Waits for one of `events`, at most for `for_`, or until a signal arrives; returns the
    /// events.
    pub(super) fn wait(&self, events: PollFlags, for_: Duration) -> Result<PollFlags, Errno> {
        let timeout = Timespec::try_from(for_).map_err(|_| Errno::INVAL)?;
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), events)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(fds[0].revents()),
            Err(errno) => Err(errno),
        }
    }

    /// Returns the kernel's statistics; `None` if it does not report them.
    pub(super) fn statistics(&self) -> Option<XdpStatistics> {
        sockopt::xdp_statistics(&self.fd).ok()
    }
}

struct Rings {
    transmit: Producer<XdpDesc>,
    completion: Consumer<u64>,
    fill: Producer<u64>,
    receive: Option<Consumer<XdpDesc>>,
}

impl Rings {
    /// Sets up the rings. Every ring has room for every chunk, so that a full ring is a bug.
    fn set_up(socket: BorrowedFd<'_>, config: &SocketConfig<'_>) -> io::Result<Self> {
        let receive = config.receive > 0;
        let chunks = (config.layout.slots * config.layout.chunks) as u32;
        let size = chunks.next_power_of_two();
        sockopt::set_xdp_umem_fill_ring_size(socket, size)?;
        sockopt::set_xdp_umem_completion_ring_size(socket, size)?;
        if receive {
            sockopt::set_xdp_rx_ring_size(socket, size)?;
        }
        sockopt::set_xdp_tx_ring_size(socket, size)?;
        let offsets = sockopt::xdp_mmap_offsets(socket)?;
        let received = || Ring::new(socket, XDP_PGOFF_RX_RING, &offsets.rx, size);
        let (fill, completion) = (XDP_UMEM_PGOFF_FILL_RING, XDP_UMEM_PGOFF_COMPLETION_RING);
        Ok(Self {
            transmit: Producer::new(Ring::new(socket, XDP_PGOFF_TX_RING, &offsets.tx, size)?),
            completion: Consumer::new(Ring::new(socket, completion, &offsets.cr, size)?),
            fill: Producer::new(Ring::new(socket, fill, &offsets.fr, size)?),
            receive: receive.then(received).transpose()?.map(Consumer::new),
        })
    }
}

fn bind_patiently(
    socket: BorrowedFd<'_>,
    config: &SocketConfig<'_>,
    zero_copy: bool,
    frags: bool,
) -> rustix::io::Result<()> {
    let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    flags.set(SocketAddrXdpFlags::XDP_ZEROCOPY, zero_copy);
    flags.set(SocketAddrXdpFlags::XDP_COPY, !zero_copy);
    flags.set(SocketAddrXdpFlags::XDP_USE_SG, frags);
    let address = SocketAddrXdp::new(flags, config.index, config.queue);
    let since = Instant::now();
    loop {
        match bind(socket, &address) {
            Err(Errno::BUSY) if since.elapsed() < BUSY_FOR => thread::sleep(BUSY_PAUSE),
            result => return result,
        }
    }
}
