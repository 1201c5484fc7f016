//! An interface that frames come in and leave by, for one thread that does both: by AF_XDP, a socket for each receive queue, else
//! by AF_PACKET. Several ports are waited for together ([`wait`]).

use crate::backend::{OpenError, Wanted};
use crate::interface::Interface;
use crate::packet_options::promiscuous;
use crate::packet_socket::PacketPort;
use crate::privilege;
use crate::receive::ReceiveError;
use crate::transmit::{Counts, TransmitError};
use crate::xdp::{Copying, Program, XdpError, XdpPort};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Frames taken of a queue before others get their turn: where [`Port::receive`] gives fewer, none was left.
pub const TURN: usize = 64;

/// How a port is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// By which way.
    pub wanted: Wanted,
    /// Frames that can wait in each direction, on each queue.
    pub slots: usize,
    /// Octets of the longest frame, without FCS.
    pub longest: usize,
}

/// An interface, both ways. It is promiscuous while this is open.
pub struct Port {
    interface: String,
    queues: Queues,
    mode: String,
    refused: u64,
    // Until this is closed, also where the process is killed.
    _promiscuous: Option<OwnedFd>,
}

enum Queues {
    Xdp(Vec<XdpPort>),
    Packet(Box<PacketPort>),
}

impl Port {
    /// Opens `interface`. By AF_XDP its frames do not reach the rest of the kernel.
    ///
    /// # Errors
    /// Rights are missing, or none of the ways wanted is there.
    pub fn open(interface: &Interface, options: &Options) -> Result<Self, OpenError> {
        let name = interface.name();
        let is_loopback = interface.is_loopback();
        let loopback = || OpenError::Loopback {
            interface: name.to_owned(),
        };
        let (queues, mode) = match options.wanted {
            Wanted::Xdp(_) if is_loopback => return Err(loopback()),
            Wanted::Xdp(copying) => open_xdp(interface, options, copying)?,
            Wanted::PacketSocket => open_packet(name, options.longest, None)?,
            Wanted::Best if is_loopback => open_packet(name, options.longest, None)?,
            Wanted::Best => match open_xdp(interface, options, Copying::Best) {
                Ok(opened) => opened,
                Err(error) => open_packet(name, options.longest, Some(error))?,
            },
        };
        // Some drivers cannot, as they do not filter; where one filters, this says why frames for others stay away.
        let (promiscuous, mode) = match promiscuous(interface.index()) {
            Ok(held) => (Some(held), mode),
            Err(error) => (None, format!("{mode}, not promiscuous: {error}")),
        };
        Ok(Self {
            interface: name.to_owned(),
            queues,
            mode,
            refused: 0,
            _promiscuous: promiscuous,
        })
    }

    /// The interface's name.
    #[must_use]
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// How frames come in and leave, and why not in a better way.
    #[must_use]
    pub fn mode(&self) -> &str {
        &self.mode
    }

    /// Gives frames that are there to `take`, those of a queue in order; does not wait. Returns how many: where there are
    /// more of them than one turn's, they come with the next call.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<usize, ReceiveError> {
        match &mut self.queues {
            Queues::Xdp(queues) => Ok(queues
                .iter_mut()
                .map(|queue| queue.receive(TURN, &mut take))
                .sum()),
            Queues::Packet(port) => Ok(port.receive(TURN, &mut take)?),
        }
    }

    /// Queues `frame`; it leaves with the next [`flush`](Self::flush) at the latest. False: it was too long, or there was no
    /// room for it, and it is lost.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub fn send(&mut self, frame: &[u8]) -> Result<bool, TransmitError> {
        let sent = match &mut self.queues {
            // All by one queue, so that frames keep their order.
            Queues::Xdp(queues) => match queues.first_mut() {
                Some(queue) => {
                    queue.send(frame) || {
                        queue.flush()?;
                        queue.send(frame)
                    }
                }
                None => false,
            },
            Queues::Packet(port) => port.send(frame)?,
        };
        self.refused += u64::from(!sent);
        Ok(sent)
    }

    /// Hands what was queued to the kernel.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub fn flush(&mut self) -> Result<(), TransmitError> {
        match &mut self.queues {
            Queues::Xdp(queues) => queues.first_mut().map_or(Ok(()), XdpPort::flush),
            Queues::Packet(_) => Ok(()),
        }
    }

    /// What became of the frames sent.
    #[must_use]
    pub fn counts(&self) -> Counts {
        match &self.queues {
            Queues::Xdp(queues) => queues
                .iter()
                .map(XdpPort::counts)
                .fold(Counts::default(), Counts::plus),
            Queues::Packet(port) => port.counts(),
        }
    }

    /// Frames that could not be sent: too long, or no room.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Frames that came in and were lost because they were not fetched in time. `None`: not known.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        match &self.queues {
            Queues::Xdp(queues) => Some(queues.iter().map(XdpPort::dropped).sum()),
            Queues::Packet(_) => None,
        }
    }
}

/// Waits until a frame is there at one of `ports`, at most `for_`, or until a signal comes.
///
/// # Errors
/// An interface is gone or down.
pub fn wait(ports: &[Port], for_: Duration) -> Result<(), ReceiveError> {
    let timeout = Timespec::try_from(for_).map_err(|_| io::Error::from(Errno::INVAL))?;
    let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(ports.len());
    for port in ports {
        match &port.queues {
            Queues::Xdp(queues) => {
                let queues = queues.iter();
                fds.extend(queues.map(|q| PollFd::from_borrowed_fd(q.fd(), PollFlags::IN)));
            }
            Queues::Packet(port) => {
                fds.push(PollFd::from_borrowed_fd(port.fd(), PollFlags::IN));
            }
        }
    }
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(io::Error::from(errno).into()),
    }
    // What ended is said by receiving or sending; a socket of AF_XDP says it here alone.
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    match fds.iter().any(|fd| fd.revents().intersects(gone)) {
        true => Err(io::Error::from(io::ErrorKind::NotConnected).into()),
        false => Ok(()),
    }
}

fn open_packet(
    name: &str,
    longest: usize,
    why: Option<XdpError>,
) -> Result<(Queues, String), OpenError> {
    let port = PacketPort::open(name, longest)?;
    let why = why.map_or_else(String::new, |error| format!(" (AF_XDP: {error})"));
    Ok((Queues::Packet(Box::new(port)), format!("AF_PACKET{why}")))
}

fn open_xdp(
    interface: &Interface,
    options: &Options,
    copying: Copying,
) -> Result<(Queues, String), XdpError> {
    let (name, index) = (interface.name(), interface.index());
    let count = interface.receive_queues().max(1);
    let slots = (options.slots, options.longest);
    // Where the limit cannot be raised the kernel refuses the memory, and that error says what to do.
    if let Ok(program) = std::env::current_exe() {
        let octets = XdpPort::memory(slots) * u64::from(count);
        let _ = privilege::ensure_memlock(octets, &program);
    }
    let program = Arc::new(Program::attach(name, index, count)?);
    let open = |queue| XdpPort::open(name, index, queue, slots, copying, Arc::clone(&program));
    let queues: Vec<_> = (0..count).map(open).collect::<Result<_, _>>()?;
    let mut mode = queues.first().map_or_else(String::new, XdpPort::mode);
    if count > 1 {
        mode = format!("{mode}, {count} queues");
    }
    let whys = queues.first().and_then(XdpPort::why_copying);
    let whys: Vec<_> = whys
        .into_iter()
        .chain(program.why_not_driver().map(str::to_owned))
        .collect();
    if !whys.is_empty() {
        mode = format!("{mode} ({})", whys.join("; "));
    }
    Ok((Queues::Xdp(queues), mode))
}
