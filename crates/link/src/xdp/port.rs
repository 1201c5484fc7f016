//! Receives and sends frames by one AF_XDP socket: a queue cannot have a second one.

use super::program::{Program, ProgramMode};
use super::receive::{HEADROOM, Receiving};
use super::socket::{CopyMode, Socket, SocketConfig, Step, XdpError};
use super::transmit::Sending;
use super::umem::Layout;
use crate::transmit::{Counts, TransmitError};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// A queue of an interface, in both directions.
#[derive(Debug)]
pub struct XdpPort {
    socket: Socket,
    receiving: Receiving,
    sending: Sending,
    interface: String,
    mode: ProgramMode,
    _program: Arc<Program>,
}

impl XdpPort {
    /// Returns the memory for frames that a queue shares with the kernel, in octets; parameters as
    /// in [`open`](Self::open).
    #[must_use]
    pub fn memory((slots, max_frame_len): (usize, usize)) -> u64 {
        Layout::new(2 * slots.max(1), max_frame_len, HEADROOM).octets() as u64
    }

    /// Opens `queue` of the interface with this name and index for frames of up to `max_frame_len`
    /// octets; `slots` of them can wait in each direction. From now on, frames received by this
    /// queue do not reach the rest of the kernel.
    ///
    /// # Errors
    /// As for [`XdpTransmit::open`](super::XdpTransmit::open), or another program is attached.
    pub fn open(
        interface: &str,
        index: u32,
        queue: u32,
        (slots, max_frame_len): (usize, usize),
        copy_mode: CopyMode,
        program: Arc<Program>,
    ) -> Result<Self, XdpError> {
        let slots = slots.max(1);
        let mut socket = Socket::open(&SocketConfig {
            interface,
            index,
            queue,
            layout: Layout::new(2 * slots, max_frame_len, HEADROOM),
            receive: slots,
            copy_mode,
        })?;
        program.give(queue, socket.fd()).map_err(|error| XdpError {
            interface: interface.to_owned(),
            queue,
            step: Step::SocketMap,
            error,
        })?;
        Ok(Self {
            receiving: Receiving::of(&mut socket, max_frame_len),
            sending: Sending::of(&mut socket, slots, slots),
            socket,
            interface: interface.to_owned(),
            mode: program.mode(),
            _program: program,
        })
    }

    /// Describes how frames are received and sent.
    #[must_use]
    pub fn mode(&self) -> String {
        let copying = match self.socket.zero_copy {
            true => "zero copy",
            false => "copy",
        };
        format!("AF_XDP, {copying}, {} mode", self.mode)
    }

    /// Returns the reason why frames are copied although zero copy was requested.
    #[must_use]
    pub fn why_copying(&self) -> Option<String> {
        self.socket.why_copying.as_ref().map(XdpError::reason)
    }

    /// Returns the descriptor to poll for frames.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// Passes waiting frames to `take`, in order, at most `most`; does not block. Returns their
    /// number.
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(&[u8])) -> usize {
        self.receiving.drain(&mut self.socket, most, &mut take)
    }

    /// Queues the frame that consists of `header` and `rest`; it leaves with the next
    /// [`flush`](Self::flush). Returns false if it is empty or too long, or no slot is free.
    pub fn send(&mut self, header: &[u8], rest: &[u8]) -> bool {
        let len = header.len() + rest.len();
        if len == 0 || len > self.sending.slot_len {
            return false;
        }
        let Some(slot) = self.sending.take(&mut self.socket) else {
            return false;
        };
        // SAFETY: a `Slot` is given out only while the kernel does not have it, and there is one
        // for each.
        let room = unsafe { self.socket.umem.slot_mut(slot.index()) };
        let (first, second) = room.split_at_mut(header.len());
        first.copy_from_slice(header);
        second[..rest.len()].copy_from_slice(rest);
        self.sending.push(&slot, len);
        true
    }

    /// Hands queued frames to the kernel.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub fn flush(&mut self) -> Result<(), TransmitError> {
        self.sending.flush(&mut self.socket, &self.interface)
    }

    /// Returns the number of frames lost since the socket was opened because they were not fetched
    /// in time.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.socket.statistics().map_or(0, |counted| {
            counted.rx_dropped
                + counted.rx_ring_full.unwrap_or_default()
                + counted.rx_fill_ring_empty_descs.unwrap_or_default()
        })
    }

    /// Returns the counters of frames sent.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.sending.counts
    }
}
