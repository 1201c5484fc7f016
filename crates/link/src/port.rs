//! An interface on which one thread receives and sends frames: by AF_XDP, with a socket for each
//! receive queue, otherwise by AF_PACKET. Several ports can be waited for together ([`wait`]). A
//! port that goes down, or is gone, neither receives nor sends until it is back;
//! [`Port::poll_link`] handles that.

use crate::backend::{BackendChoice, OpenError};
use crate::interface::{Interface, LinkEvent, LinkWatch};
use crate::packet_options::promiscuous;
use crate::packet_socket::PacketPort;
use crate::privilege;
use crate::transmit::{Counts, TransmitError};
use crate::xdp::{CopyMode, Program, XdpError, XdpPort};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Maximum number of frames received from a queue before other queues get their turn. If
/// [`Port::receive`] returns fewer, none was left.
pub const TURN: usize = 64;

/// Reason why no more frames arrive: the interface is gone or down.
#[derive(Debug, Error)]
#[error("cannot receive frames from the interface: {0}")]
pub struct ReceiveError(#[from] io::Error);

/// Options for opening a port.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Requested backend.
    pub backend: BackendChoice,
    /// Number of frames that can wait in each direction, on each queue.
    pub slots: usize,
    /// Maximum length of a frame without FCS, in octets.
    pub max_frame_len: usize,
}

/// An interface in both directions. It is promiscuous while the port is open.
pub struct Port {
    interface: String,
    options: Options,
    queues: Queues,
    mode: String,
    watch: Option<LinkWatch>,
    refused: u64,
    outages: Outages,
    outage: Option<Outage>,
    /// A frame in one piece, for a socket that needs it so.
    whole: Vec<u8>,
    /// Counters of sockets that were closed.
    closed_counts: (Counts, Option<u64>),
    // Keeps the interface promiscuous until it is closed, even if the process is killed.
    _promiscuous: Option<OwnedFd>,
}

/// Periods in which an interface was down, without carrier or gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    /// Number of outages.
    pub count: u64,
    /// Total duration.
    pub time: Duration,
    /// Frames to be sent during outages, which are lost.
    pub lost: u64,
}

/// State of an interface that cannot be used.
struct Outage {
    since: Instant,
    why: String,
    /// True if [`Port::poll_link`] has reported it.
    is_reported: bool,
}

enum Queues {
    Xdp(Vec<XdpPort>),
    Packet(Box<PacketPort>),
    /// The interface cannot be used now.
    Unavailable,
}

impl Port {
    /// Opens `interface`. With AF_XDP its frames do not reach the rest of the kernel.
    ///
    /// # Errors
    /// Permissions are missing, or none of the requested backends is available.
    pub fn open(interface: &Interface, options: &Options) -> Result<Self, OpenError> {
        let (queues, mode) = open(interface, options)?;
        // Some drivers do not support it, as they do not filter. If a driver does filter, this text
        // explains why frames for others are missing.
        let (promiscuous, mode) = match promiscuous(interface.index()) {
            Ok(held) => (Some(held), mode),
            Err(error) => (None, format!("{mode}, not promiscuous: {error}")),
        };
        Ok(Self {
            interface: interface.name().to_owned(),
            options: *options,
            queues,
            mode,
            // Without it, sending and receiving report most events.
            watch: LinkWatch::new(interface).ok(),
            refused: 0,
            outages: Outages::default(),
            outage: None,
            whole: Vec::new(),
            closed_counts: (Counts::default(), Some(0)),
            _promiscuous: promiscuous,
        })
    }

    /// Returns how frames are received and sent, and why not in a better mode.
    #[must_use]
    pub fn mode(&self) -> &str {
        &self.mode
    }

    /// Checks if the interface went away or is back, and reopens it if it is back; to be called
    /// several times a second. Returns a message for users if something has changed.
    pub fn poll_link(&mut self) -> Option<String> {
        if self.outage.is_none() {
            while let Some(event) = self.watch.as_mut().and_then(LinkWatch::poll) {
                if event != LinkEvent::Back {
                    self.mark_away(event.to_string());
                    break;
                }
            }
        }
        // Went away now, or was found to be away by sending or receiving since the last call.
        let outage = self.outage.as_mut()?;
        if !std::mem::replace(&mut outage.is_reported, true) {
            return Some(format!("{}: {}", self.interface, outage.why));
        }
        let interface = Interface::named(&self.interface).ok()?;
        if !interface.is_up() || !interface.has_carrier() {
            return None;
        }
        // If it cannot be opened now, it may be the next time.
        let again = Self::open(&interface, &self.options).ok()?;
        let lasted = self.outage.take()?.since.elapsed();
        let mut outages = self.outages;
        outages.time += lasted;
        *self = Self {
            refused: self.refused,
            outages,
            closed_counts: self.closed_counts,
            ..again
        };
        Some(format!(
            "{}: it is back, after {lasted:.1?}",
            self.interface
        ))
    }

    /// Marks the interface as unusable, perhaps temporarily.
    fn mark_away(&mut self, why: String) {
        if self.outage.is_some() {
            return;
        }
        self.closed_counts = (self.counts(), self.lost());
        self.queues = Queues::Unavailable;
        self.watch = None;
        self._promiscuous = None;
        self.outages.count += 1;
        self.outage = Some(Outage {
            since: Instant::now(),
            why,
            is_reported: false,
        });
    }

    /// Returns the outages so far.
    #[must_use]
    pub fn outages(&self) -> Outages {
        let since = self.outage.as_ref().map(|outage| outage.since.elapsed());
        Outages {
            time: self.outages.time + since.unwrap_or_default(),
            ..self.outages
        }
    }

    /// Returns the reason why it cannot be used now, if any.
    #[must_use]
    pub fn outage_reason(&self) -> Option<&str> {
        self.outage.as_ref().map(|outage| outage.why.as_str())
    }

    /// Passes waiting frames to `take`, those of each queue in order; does not block. Returns their
    /// number. Frames beyond one turn follow with the next call.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) -> usize {
        let received = match &mut self.queues {
            Queues::Xdp(queues) => Ok(queues
                .iter_mut()
                .map(|queue| queue.receive(TURN, &mut take))
                .sum()),
            Queues::Packet(port) => port.receive(TURN, &mut take),
            Queues::Unavailable => Ok(0),
        };
        received.unwrap_or_else(|error| {
            self.mark_away(error.to_string());
            0
        })
    }

    /// Queues the frame that consists of `header` and `rest`; it leaves with the next
    /// [`flush`](Self::flush) at the latest. Returns false if the frame is lost: it was too long,
    /// there was no room for it, or the interface is away.
    ///
    /// # Errors
    /// The kernel refuses frames for a reason other than that the interface is gone or down.
    pub fn send(&mut self, header: &[u8], rest: &[u8]) -> Result<bool, TransmitError> {
        let sent = match &mut self.queues {
            // All frames use one queue, to keep their order.
            Queues::Xdp(queues) => match queues.first_mut() {
                Some(queue) => match queue.send(header, rest) {
                    true => Ok(true),
                    false => queue.flush().map(|()| queue.send(header, rest)),
                },
                None => Ok(false),
            },
            Queues::Packet(port) => {
                self.whole.clear();
                self.whole.extend_from_slice(header);
                self.whole.extend_from_slice(rest);
                port.send(&self.whole)
            }
            Queues::Unavailable => {
                self.outages.lost += 1;
                return Ok(false);
            }
        };
        let sent = self.or_away(sent)?;
        match (sent, &self.outage) {
            (None, _) | (_, Some(_)) => self.outages.lost += 1,
            (Some(sent), None) => self.refused += u64::from(!sent),
        }
        Ok(sent == Some(true))
    }

    /// Hands queued frames to the kernel.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn flush(&mut self) -> Result<(), TransmitError> {
        let flushed = match &mut self.queues {
            Queues::Xdp(queues) => queues.first_mut().map_or(Ok(()), XdpPort::flush),
            Queues::Packet(_) | Queues::Unavailable => Ok(()),
        };
        self.or_away(flushed).map(drop)
    }

    /// Returns `None` if the interface has gone away.
    fn or_away<T>(&mut self, result: Result<T, TransmitError>) -> Result<Option<T>, TransmitError> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(error @ (TransmitError::Gone { .. } | TransmitError::Down { .. })) => {
                let why = match error {
                    TransmitError::Gone { .. } => LinkEvent::Gone,
                    _ => LinkEvent::Down,
                };
                // Frames not handed over yet are lost.
                let counts = self.counts();
                self.outages.lost += counts.pushed - counts.completed;
                self.mark_away(why.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the counters of frames sent.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let now = match &self.queues {
            Queues::Xdp(queues) => queues
                .iter()
                .map(XdpPort::counts)
                .fold(Counts::default(), Counts::plus),
            Queues::Packet(port) => port.counts(),
            Queues::Unavailable => Counts::default(),
        };
        self.closed_counts.0.plus(now)
    }

    /// Returns the number of frames that could not be sent: too long, or no room.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the number of incoming frames lost because they were not fetched in time; `None` if
    /// unknown.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        let now = match &self.queues {
            Queues::Xdp(queues) => Some(queues.iter().map(XdpPort::dropped).sum()),
            Queues::Packet(_) => None,
            Queues::Unavailable => Some(0),
        };
        self.closed_counts
            .1
            .zip(now)
            .map(|(before, now): (u64, u64)| before + now)
    }
}

/// Waits until a frame is available at one of `ports`, at most for `for_`, or until a signal
/// arrives.
///
/// # Errors
/// The kernel refuses to wait.
pub fn wait(ports: &mut [Port], for_: Duration) -> Result<(), ReceiveError> {
    let timeout = Timespec::try_from(for_).map_err(|_| io::Error::from(Errno::INVAL))?;
    let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(ports.len());
    let mut whose = Vec::with_capacity(ports.len());
    for (index, port) in ports.iter().enumerate() {
        let mut add = |fd| {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            whose.push(index);
        };
        match &port.queues {
            Queues::Xdp(queues) => queues.iter().for_each(|queue| add(queue.fd())),
            Queues::Packet(port) => add(port.fd()),
            Queues::Unavailable => {}
        }
    }
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(io::Error::from(errno).into()),
    }
    // Sending or receiving reports that an interface went away; AF_XDP sockets report it only here.
    let ended = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    let ended = fds.iter().map(|fd| fd.revents().intersects(ended));
    let gone: Vec<usize> = whose
        .into_iter()
        .zip(ended)
        .filter_map(|(port, gone)| gone.then_some(port))
        .collect();
    for port in gone {
        ports[port].mark_away(LinkEvent::Down.to_string());
    }
    Ok(())
}

/// Opens the sockets with the requested backend.
fn open(interface: &Interface, options: &Options) -> Result<(Queues, String), OpenError> {
    let name = interface.name();
    let is_loopback = interface.is_loopback();
    let loopback = || OpenError::Loopback {
        interface: name.to_owned(),
    };
    match options.backend {
        BackendChoice::Xdp(_) if is_loopback => Err(loopback()),
        BackendChoice::Xdp(copying) => Ok(open_xdp(interface, options, copying)?),
        BackendChoice::PacketSocket => open_packet(name, options.max_frame_len, None),
        BackendChoice::Best if is_loopback => open_packet(name, options.max_frame_len, None),
        BackendChoice::Best => match open_xdp(interface, options, CopyMode::Best) {
            Ok(opened) => Ok(opened),
            Err(error) => open_packet(name, options.max_frame_len, Some(error)),
        },
    }
}

fn open_packet(
    name: &str,
    max_frame_len: usize,
    why: Option<XdpError>,
) -> Result<(Queues, String), OpenError> {
    let port = PacketPort::open(name, max_frame_len)?;
    let why = why.map_or_else(String::new, |error| format!(" (AF_XDP: {error})"));
    Ok((Queues::Packet(Box::new(port)), format!("AF_PACKET{why}")))
}

fn open_xdp(
    interface: &Interface,
    options: &Options,
    copy_mode: CopyMode,
) -> Result<(Queues, String), XdpError> {
    let (name, index) = (interface.name(), interface.index());
    let count = interface.receive_queues().max(1);
    let slots = (options.slots, options.max_frame_len);
    privilege::raise_memlock(XdpPort::memory(slots) * u64::from(count));
    let program = Arc::new(Program::attach(name, index, count)?);
    let open = |queue| XdpPort::open(name, index, queue, slots, copy_mode, Arc::clone(&program));
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
