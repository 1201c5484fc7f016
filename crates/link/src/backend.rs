//! Opens the queues of an interface, with the best backend it supports or the one requested.

use crate::interface::Interface;
use crate::packet_socket::{PacketSocketError, PacketTransmit};
use crate::privilege;
use crate::transmit::Mode;
use crate::xdp::{Copying, Program, XdpError, XdpTransmit};
use crate::{file_transmit::FileTransmit, transmit::Transmit};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Which way out is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// AF_XDP, else AF_PACKET.
    #[default]
    Best,
    /// AF_XDP, in this way.
    Xdp(Copying),
    /// AF_PACKET.
    PacketSocket,
}

/// How queues are to be opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which way out.
    pub wanted: Wanted,
    /// How many queues, numbered from 0.
    pub queues: u32,
    /// Frames that can be under way at once, for each queue.
    pub slots: SlotCount,
    /// Octets of the longest frame, without FCS.
    pub longest: usize,
}

/// How many frames can be under way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotCount {
    /// Where the driver reads our memory: it says late that it has.
    pub zero_copy: usize,
    /// Where the kernel copies, and is done with a frame when the call returns: few, which stay in the cache.
    pub copying: usize,
}

impl SlotCount {
    /// So many, whatever the way.
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

/// A queue, by whichever way.
pub enum Queue {
    /// AF_XDP.
    Xdp(Box<XdpTransmit>),
    /// AF_PACKET.
    Packet(Box<PacketTransmit>),
    /// A capture file.
    File(Box<FileTransmit>),
}

impl Queue {
    /// How its frames leave.
    #[must_use]
    pub fn mode(&self) -> &Mode {
        match self {
            Self::Xdp(queue) => queue.mode(),
            Self::Packet(queue) => queue.mode(),
            Self::File(queue) => queue.mode(),
        }
    }

    /// Whether frames are written now, whenever they are due.
    #[must_use]
    pub const fn is_at_once(&self) -> bool {
        matches!(self, Self::File(file) if !file.is_live())
    }

    /// Octets of its longest frame, without FCS.
    #[must_use]
    pub fn slot_len(&self) -> usize {
        self.mode().slots.1
    }
}

/// Why an interface could not be opened for sending.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// More queues are asked for than there are.
    #[error(
        "{interface}: {wanted} queues were requested, but it has {there} for sending (ethtool -L {interface} … sets more)"
    )]
    Queues {
        /// The interface.
        interface: String,
        /// How many are asked for.
        wanted: u32,
        /// How many there are.
        there: u32,
    },
    /// AF_XDP is asked for, and there is none.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// AF_PACKET is asked for, or the last that is left.
    #[error(transparent)]
    PacketSocket(#[from] PacketSocketError),
    /// A loopback interface has no AF_XDP.
    #[error(
        "{interface}: a loopback interface has no AF_XDP; use the AF_PACKET backend, or a veth pair"
    )]
    Loopback {
        /// The interface.
        interface: String,
    },
}

/// Opens `options.queues` queues of `interface`.
///
/// # Errors
/// There are not so many, or none of the ways wanted is there.
pub fn open(interface: &Interface, options: &Options) -> Result<Vec<Queue>, OpenError> {
    let there = interface.transmit_queues();
    let queues = options.queues.max(1);
    if queues > there {
        return Err(OpenError::Queues {
            interface: interface.name().to_owned(),
            wanted: queues,
            there,
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
    match options.wanted {
        Wanted::Xdp(copying) => xdp(copying),
        Wanted::PacketSocket => packet_sockets(interface, queues, options, Vec::new()),
        Wanted::Best => xdp(Copying::Best).or_else(|error| {
            let why = vec![format!("AF_XDP: {error}")];
            packet_sockets(interface, queues, options, why)
        }),
    }
}

fn open_xdp(
    interface: &Interface,
    queues: u32,
    options: &Options,
    copying: Copying,
) -> Result<Vec<Queue>, XdpError> {
    let slots = (options.slots, options.longest);
    let (name, index) = (interface.name(), interface.index());
    privilege::raise_memlock(XdpTransmit::memory(slots) * u64::from(queues));
    // One for all queues, attached when the first of them needs it.
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
            XdpTransmit::open(name, index, queue, slots, copying, program)
                .map(|queue| Queue::Xdp(Box::new(queue)))
        })
        .collect();
    if shared.get().is_some() {
        wait_for_carrier(name);
    }
    opened
}

/// Several drivers take the link down for a moment when a program is attached. Frames sent then would wait, and all times
/// be wrong.
fn wait_for_carrier(name: &str) {
    const PATIENCE: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_millis(10);
    // The driver begins with it within this time.
    thread::sleep(5 * PAUSE);
    let since = Instant::now();
    // Where it does not come back, the one who watches the link says so.
    while since.elapsed() < PATIENCE
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
            let slots = (options.slots.copying, options.longest);
            let queue = PacketTransmit::open(interface.name(), slots, why_not_better.clone())?;
            Ok(Queue::Packet(Box::new(queue)))
        })
        .collect()
}
