//! Opens the queues of an interface with the best backend it supports, or with the one requested.

use crate::interface::Interface;
use crate::packet_socket::{PacketSocketError, PacketTransmit};
use crate::privilege;
use crate::transmit::Mode;
use crate::xdp::{CopyMode, Program, XdpError, XdpTransmit};
use crate::{file_transmit::FileTransmit, transmit::Transmit};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// The requested backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// AF_XDP, falling back to AF_PACKET.
    #[default]
    Best,
    /// AF_XDP, with this copy mode.
    Xdp(CopyMode),
    /// AF_PACKET.
    PacketSocket,
}

/// Options for opening queues.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Requested backend.
    pub backend: BackendChoice,
    /// Number of queues, numbered from 0.
    pub queues: u32,
    /// Number of frames that can be in flight on each queue.
    pub slots: SlotCount,
    /// Maximum length of a frame without FCS, in octets.
    pub max_frame_len: usize,
}

/// Number of frames that can be in flight at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotCount {
    /// Slots if the driver reads our memory directly (zero copy): it reports completion late.
    pub zero_copy: usize,
    /// Slots if the kernel copies a frame and is done with it when the call returns. A small number
    /// stays in the cache.
    pub copying: usize,
}

impl SlotCount {
    /// The same number of slots for every backend.
    #[must_use]
    pub const fn all(slots: usize) -> Self {
        Self {
            zero_copy: slots,
            copying: slots,
        }
    }
}

impl Default for SlotCount {
    fn default() -> Self {
        Self {
            zero_copy: 1024,
            copying: 128,
        }
    }
}

/// A transmit queue of any backend.
pub enum Queue {
    /// AF_XDP.
    Xdp(Box<XdpTransmit>),
    /// AF_PACKET.
    Packet(Box<PacketTransmit>),
    /// A capture file.
    File(Box<FileTransmit>),
}

impl Queue {
    /// Returns the transmit mode of the queue.
    #[must_use]
    pub fn mode(&self) -> &Mode {
        match self {
            Self::Xdp(queue) => queue.mode(),
            Self::Packet(queue) => queue.mode(),
            Self::File(queue) => queue.mode(),
        }
    }

    /// True if frames are written immediately, regardless of their due time.
    #[must_use]
    pub const fn is_unpaced(&self) -> bool {
        matches!(self, Self::File(file) if !file.is_live())
    }

    /// Maximum length of a frame without FCS, in octets.
    #[must_use]
    pub fn slot_len(&self) -> usize {
        self.mode().slots.1
    }
}

/// Reason why an interface could not be opened for sending.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// More queues were requested than the interface has.
    #[error(
        "{interface}: {wanted} queues were requested, but it has {available} for sending (ethtool -L {interface} … sets more)"
    )]
    Queues {
        /// Name of the interface.
        interface: String,
        /// Number of queues requested.
        wanted: u32,
        /// Number of queues available.
        available: u32,
    },
    /// AF_XDP was requested but is not available.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// AF_PACKET, requested or the last fallback, is not available.
    #[error(transparent)]
    PacketSocket(#[from] PacketSocketError),
    /// A loopback interface does not support AF_XDP.
    #[error(
        "{interface}: a loopback interface has no AF_XDP; use the AF_PACKET backend, or a veth pair"
    )]
    Loopback {
        /// Name of the interface.
        interface: String,
    },
}

/// Opens `options.queues` queues of `interface`.
///
/// # Errors
/// The interface has fewer queues, or none of the requested backends is available.
pub fn open(interface: &Interface, options: &Options) -> Result<Vec<Queue>, OpenError> {
    let available = interface.transmit_queues();
    let queues = options.queues.max(1);
    if queues > available {
        return Err(OpenError::Queues {
            interface: interface.name().to_owned(),
            wanted: queues,
            available,
        });
    }
    let xdp = |copying| {
        if interface.is_loopback() {
            return Err(OpenError::Loopback {
                interface: interface.name().to_owned(),
            });
        }
        Ok(open_xdp(interface, queues, options, copying)?)
    };
    match options.backend {
        BackendChoice::Xdp(copying) => xdp(copying),
        BackendChoice::PacketSocket => packet_sockets(interface, queues, options, Vec::new()),
        BackendChoice::Best => xdp(CopyMode::Best).or_else(|error| {
            let why = vec![format!("AF_XDP: {error}")];
            packet_sockets(interface, queues, options, why)
        }),
    }
}

fn open_xdp(
    interface: &Interface,
    queues: u32,
    options: &Options,
    copy_mode: CopyMode,
) -> Result<Vec<Queue>, XdpError> {
    let slots = (options.slots, options.max_frame_len);
    let (name, index) = (interface.name(), interface.index());
    privilege::raise_memlock(XdpTransmit::memory(slots) * u64::from(queues));
    // One program for all queues, attached when the first queue needs it.
    let shared: OnceLock<Arc<Program>> = OnceLock::new();
    let program = || match shared.get() {
        Some(program) => Ok(Arc::clone(program)),
        None => {
            let program = Arc::new(Program::attach(name, index, interface.receive_queues())?);
            Ok(Arc::clone(shared.get_or_init(|| program)))
        }
    };
    let opened = (0..queues)
        .map(|queue| {
            XdpTransmit::open(name, index, queue, slots, copy_mode, program)
                .map(|queue| Queue::Xdp(Box::new(queue)))
        })
        .collect();
    if shared.get().is_some() {
        wait_for_carrier(name);
    }
    opened
}

/// Waits for the carrier: several drivers take the link down briefly when a program is attached.
/// Frames sent during that time would be delayed, which would falsify all times.
fn wait_for_carrier(name: &str) {
    const TIMEOUT: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_millis(10);
    // Drivers that take the link down do so within this time.
    thread::sleep(5 * PAUSE);
    let since = Instant::now();
    // If the carrier does not return, the link watch reports it.
    while since.elapsed() < TIMEOUT
        && Interface::named(name).is_ok_and(|interface| !interface.has_carrier())
    {
        thread::sleep(PAUSE);
    }
}

fn packet_sockets(
    interface: &Interface,
    queues: u32,
    options: &Options,
    why_not_better: Vec<String>,
) -> Result<Vec<Queue>, OpenError> {
    (0..queues)
        .map(|_| {
            let slots = (options.slots.copying, options.max_frame_len);
            let queue = PacketTransmit::open(interface.name(), slots, why_not_better.clone())?;
            Ok(Queue::Packet(Box::new(queue)))
        })
        .collect()
}
