//! Frames in by AF_XDP: those of one receive queue, instead of to the rest of the kernel.

use super::program::{Program, ProgramMode};
use super::ring::Consumer;
use super::socket::{Copying, Socket, Step, Wanted, XdpError};
use super::umem::Layout;
use rustix::event::PollFlags;
use rustix::net::xdp::{XdpDesc, XdpDescOptions};
use rustix::net::{RecvFlags, recv};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The kernel keeps so much of a chunk in front of a frame.
pub(super) const HEADROOM: usize = 256;
/// So many pieces are given back together.
const TOGETHER: usize = 32;

/// A receive queue.
#[derive(Debug)]
pub struct XdpReceive {
    socket: Socket,
    receiving: Receiving,
    mode: ProgramMode,
    _program: Arc<Program>,
}

/// The part of a socket that receives.
#[derive(Debug)]
pub(super) struct Receiving {
    ring: Consumer<XdpDesc>,
    /// A frame of several chunks, put together.
    whole: Vec<u8>,
    /// Whether a frame has been found too long, and its remaining pieces are to be passed over.
    too_long: bool,
    longest: usize,
}

impl XdpReceive {
    /// Opens `queue` of the interface with this name and number for frames of up to `longest` octets; `slots` of them
    /// can wait. From now on they do not reach the rest of the kernel.
    ///
    /// # Errors
    /// As for [`XdpTransmit::open`](super::XdpTransmit::open), or another program is attached.
    pub fn open(
        interface: &str,
        index: u32,
        queue: u32,
        (slots, longest): (usize, usize),
        copying: Copying,
        program: Arc<Program>,
    ) -> Result<Self, XdpError> {
        let slots = slots.max(1);
        let mut socket = Socket::open(&Wanted {
            interface,
            index,
            queue,
            layout: Layout::new(slots, longest, HEADROOM),
            receive: slots,
            transmit: false,
            copying,
        })?;
        give(&program, interface, queue, &socket)?;
        Ok(Self {
            receiving: Receiving::of(&mut socket, longest),
            socket,
            mode: program.mode(),
            _program: program,
        })
    }

    /// How frames come in.
    #[must_use]
    pub fn mode(&self) -> String {
        describe(&self.socket, self.mode)
    }

    /// Frames lost since the socket was opened because they were not fetched in time.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        dropped(&self.socket)
    }

    /// Gives every frame that is there to `take`, in order; waits for the first, at most `for_`. Returns how many.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&mut self, for_: Duration, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        // No more than there are chunks: a sender that is as fast as we are would else keep us here.
        let layout = *self.socket.umem.layout();
        let most = layout.slots * layout.chunks;
        let Self {
            socket, receiving, ..
        } = self;
        let count = receiving.drain(socket, most, &mut take);
        if count > 0 {
            return Ok(count);
        }
        let events = socket.wait(PollFlags::IN, for_)?;
        if events.intersects(PollFlags::ERR | PollFlags::HUP) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(receiving.drain(socket, most, &mut take))
    }
}

/// From now on frames of `queue` go to `socket`.
pub(super) fn give(
    program: &Program,
    interface: &str,
    queue: u32,
    socket: &Socket,
) -> Result<(), XdpError> {
    program.give(queue, socket.fd()).map_err(|error| XdpError {
        interface: interface.to_owned(),
        queue,
        step: Step::SocketMap,
        error,
    })
}

/// How frames come in by `socket`.
pub(super) fn describe(socket: &Socket, mode: ProgramMode) -> String {
    let copying = if socket.zero_copy {
        "zero copy"
    } else {
        "copy"
    };
    format!("AF_XDP, {copying}, {mode} mode")
}

/// Frames that `socket` lost because they were not fetched in time.
pub(super) fn dropped(socket: &Socket) -> u64 {
    socket.statistics().map_or(0, |counted| {
        counted.rx_dropped
            + counted.rx_ring_full.unwrap_or_default()
            + counted.rx_fill_ring_empty_descs.unwrap_or_default()
    })
}

impl Receiving {
    /// That of a socket that was opened for receiving frames of up to `longest` octets.
    pub(super) fn of(socket: &mut Socket, longest: usize) -> Self {
        let ring = socket.receive.take();
        Self {
            ring: ring.unwrap_or_else(|| unreachable!("opened for receiving")),
            whole: Vec::with_capacity(longest),
            too_long: false,
            longest,
        }
    }

    /// Takes `most` pieces at most, and gives back every few, or the kernel would run out of chunks.
    pub(super) fn drain(
        &mut self,
        socket: &mut Socket,
        most: usize,
        take: &mut impl FnMut(&[u8]),
    ) -> usize {
        let mut count = 0;
        let chunk = socket.umem.layout().chunk as u64;
        for taken in 1..=most {
            let Some(piece) = self.ring.next() else { break };
            // SAFETY: the kernel gave it to us with the descriptor, and gets it back only below.
            let octets = unsafe { socket.umem.at(piece.addr as usize, piece.len as usize) };
            let last = !piece.options.contains(XdpDescOptions::XDP_PKT_CONTD);
            if let Some(octets) = octets {
                if last && self.whole.is_empty() && !self.too_long {
                    take(octets);
                    count += 1;
                } else if self.whole.len() + octets.len() > self.longest {
                    self.too_long = true;
                } else {
                    self.whole.extend_from_slice(octets);
                }
            }
            if last && !self.whole.is_empty() {
                if !self.too_long {
                    take(&self.whole);
                    count += 1;
                }
                self.whole.clear();
            }
            self.too_long &= !last;
            socket.fill.write(piece.addr / chunk * chunk);
            if taken % TOGETHER == 0 {
                self.give_back(socket);
            }
        }
        self.give_back(socket);
        count
    }

    fn give_back(&mut self, socket: &mut Socket) {
        self.ring.release();
        socket.fill.submit();
        // A driver that once ran out of chunks asks for this; without it nothing is received ever after.
        if socket.fill.needs_wakeup() {
            let _ = recv(socket.fd(), [0; 0].as_mut_slice(), RecvFlags::DONTWAIT);
        }
    }
}
