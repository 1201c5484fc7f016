//! Sends frames by AF_XDP: slots, the transmit and the completion ring.

use super::program::Program;
use super::ring::Producer;
use super::socket::{CopyMode, Socket, SocketConfig, XdpError};
use super::umem::Layout;
use crate::backend::SlotCount;
use crate::slots::assert_fits;
use crate::transmit::{Counts, Mode, ModeKind, Slot, Transmit, TransmitError};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::xdp::{XdpDesc, XdpDescOptions};
use rustix::net::{SendFlags, send};
use std::sync::Arc;
use std::time::Duration;

/// A transmit queue.
#[derive(Debug)]
pub struct XdpTransmit {
    socket: Socket,
    sending: Sending,
    mode: Mode,
    // Attached for the lifetime of the socket.
    _program: Option<Arc<Program>>,
}

/// The sending part of a socket.
#[derive(Debug)]
pub(super) struct Sending {
    transmit: Producer<XdpDesc>,
    /// The first slot: those before it are for receiving.
    first: u32,
    /// Free slots. The last one returned is used first, as it is in the cache.
    free: Vec<u32>,
    /// Number of pieces of each slot that the kernel has.
    pieces: Box<[u8]>,
    chunk: usize,
    pub(super) slot_len: usize,
    pub(super) counts: Counts,
}

impl XdpTransmit {
    /// Returns the memory that a queue shares with the kernel, in octets, for this number of frames
    /// and their maximum length in octets.
    #[must_use]
    pub fn memory((slots, max_frame_len): (SlotCount, usize)) -> u64 {
        layout(slots.zero_copy, max_frame_len).octets() as u64
    }

    /// Opens `queue` of the interface with this name and index, for this number of frames in flight
    /// and their maximum length without FCS, in octets.
    ///
    /// `program` attaches the XDP program. It is called at most once, and only for zero copy, for
    /// which several drivers need it. Copies need none.
    ///
    /// # Errors
    /// The kernel has no AF_XDP, permissions are missing, there is no such queue, or another socket
    /// has it.
    pub fn open(
        interface: &str,
        index: u32,
        queue: u32,
        (slots, max_frame_len): (SlotCount, usize),
        copy_mode: CopyMode,
        program: impl FnOnce() -> Result<Arc<Program>, XdpError>,
    ) -> Result<Self, XdpError> {
        let open = |slots, copying| {
            Socket::open(&SocketConfig {
                interface,
                index,
                queue,
                layout: layout(slots, max_frame_len),
                receive: 0,
                copy_mode: copying,
            })
        };
        let copies = || open(slots.copying, CopyMode::Always);
        let mut why_not_better = Vec::new();
        let (mut socket, attached) = match copy_mode {
            CopyMode::Always => {
                why_not_better.push("zero copy: not requested".to_owned());
                (copies()?, None)
            }
            CopyMode::Never | CopyMode::Best => {
                let most = slots.zero_copy.max(slots.copying);
                // The socket comes first: a driver without zero copy refuses at that point, and its
                // receive path is left unchanged.
                let both = open(most, copy_mode).and_then(|socket| {
                    let attached = socket.zero_copy.then(program).transpose()?;
                    Ok((socket, attached))
                });
                match both {
                    // Too much memory for the permissions, or no program: copies may need less.
                    Err(error) if copy_mode == CopyMode::Best && !error.is_bind() => {
                        why_not_better.push(error.reason());
                        (copies()?, None)
                    }
                    both => both?,
                }
            }
        };
        why_not_better.extend(socket.why_copying.take().map(|why| why.reason()));
        let kind = match &attached {
            Some(program) => {
                why_not_better.extend(program.why_not_driver().map(str::to_owned));
                ModeKind::XdpZeroCopy(program.mode())
            }
            None => ModeKind::XdpCopy,
        };
        let layout = *socket.umem.layout();
        // Copies use only a few slots, however many there are: those stay in the cache.
        let slots = match kind {
            ModeKind::XdpCopy => slots.copying,
            _ => slots.zero_copy,
        }
        .clamp(1, layout.slots);
        let mode = Mode {
            target: interface.to_owned(),
            queue: Some(queue),
            kind,
            why_not_better,
            slots: (slots, layout.slot_len()),
        };
        Ok(Self {
            sending: Sending::of(&mut socket, 0, slots),
            mode,
            _program: attached,
            socket,
        })
    }
}

impl Sending {
    /// Returns the sending part of a socket that was opened for sending from `slots` slots,
    /// beginning with `first`.
    pub(super) fn of(socket: &mut Socket, first: usize, slots: usize) -> Self {
        let layout = *socket.umem.layout();
        let transmit = socket.transmit.take();
        Self {
            transmit: transmit.unwrap_or_else(|| unreachable!("opened for sending")),
            first: first as u32,
            free: (first as u32..(first + slots) as u32).collect(),
            pieces: vec![0; slots].into_boxed_slice(),
            chunk: layout.chunk,
            slot_len: layout.slot_len(),
            counts: Counts::default(),
        }
    }

    /// Takes back slots that the kernel has completed.
    #[inline]
    pub(super) fn reap(&mut self, socket: &mut Socket) {
        let mut any = false;
        while let Some(at) = socket.completion.next() {
            any = true;
            let slot = at as usize / self.slot_len;
            let place = slot.wrapping_sub(self.first as usize);
            let Some(pieces) = self.pieces.get_mut(place) else {
                continue;
            };
            *pieces = pieces.saturating_sub(1);
            if *pieces == 0 {
                self.counts.completed += 1;
                self.free.push(slot as u32);
            }
        }
        if any {
            socket.completion.release();
        }
    }

    /// Makes one system call; returns the progress it made.
    fn kick(&mut self, socket: &Socket, interface: &str) -> Result<Progress, TransmitError> {
        self.counts.kicks += 1;
        let before = self.transmit.outstanding();
        let result = send(socket.fd(), &[], SendFlags::DONTWAIT);
        let after = self.transmit.outstanding();
        if let Err(errno) = result {
            if let Some(error) = TransmitError::from_io(interface, errno.into()) {
                return Err(error);
            }
            // In copy mode the kernel reports this if the interface dropped the frame that it has
            // just taken.
            if errno == Errno::BUSY && after < before && !socket.zero_copy {
                self.counts.dropped += 1;
            }
        }
        Ok(if after == 0 {
            Progress::Done
        } else if after < before {
            Progress::Some
        } else {
            Progress::None
        })
    }

    #[inline]
    pub(super) fn take(&mut self, socket: &mut Socket) -> Option<Slot> {
        if self.free.is_empty() {
            self.reap(socket);
        }
        self.free.pop().map(Slot)
    }

    #[inline]
    pub(super) fn push(&mut self, slot: &Slot, len: usize) {
        assert_fits(len, self.slot_len);
        let mut at = slot.index() * self.slot_len;
        let mut left = len;
        let mut pieces = 0;
        while left > 0 {
            let piece = left.min(self.chunk);
            left -= piece;
            let mut options = XdpDescOptions::empty();
            options.set(XdpDescOptions::XDP_PKT_CONTD, left > 0);
            let queued = self.transmit.write(XdpDesc {
                addr: at as u64,
                len: piece as u32,
                options,
            });
            debug_assert!(queued, "the ring has room for every chunk");
            at += piece;
            pieces += 1;
        }
        let place = slot.index().wrapping_sub(self.first as usize);
        if let Some(place) = self.pieces.get_mut(place) {
            *place = pieces;
        }
        self.counts.pushed += 1;
        self.counts.octets += len as u64;
    }

    #[inline]
    pub(super) fn flush(
        &mut self,
        socket: &mut Socket,
        interface: &str,
    ) -> Result<(), TransmitError> {
        self.transmit.submit();
        if socket.zero_copy {
            if self.transmit.needs_wakeup() && self.transmit.outstanding() > 0 {
                self.kick(socket, interface)?;
            }
        } else {
            // A call sends at most 32. Completions need not be fetched in between: their ring has
            // room for all.
            while self.transmit.outstanding() > 0 && self.kick(socket, interface)? == Progress::Some
            {
            }
        }
        self.reap(socket);
        Ok(())
    }
}

/// Result of a kick.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Done,
    Some,
    None,
}

fn layout(slots: usize, max_frame_len: usize) -> Layout {
    Layout::new(slots.max(1), max_frame_len, 0)
}

impl Transmit for XdpTransmit {
    #[inline]
    fn slot_len(&self) -> usize {
        self.sending.slot_len
    }

    #[inline]
    fn take(&mut self) -> Option<Slot> {
        self.sending.take(&mut self.socket)
    }

    #[inline]
    fn bytes(&mut self, slot: &Slot) -> &mut [u8] {
        // SAFETY: a `Slot` is given out only while the kernel does not have it, and there is one
        // for each.
        unsafe { self.socket.umem.slot_mut(slot.index()) }
    }

    #[inline]
    fn push(&mut self, slot: Slot, len: usize) {
        self.sending.push(&slot, len);
    }

    fn flush(&mut self) -> Result<(), TransmitError> {
        self.sending.flush(&mut self.socket, &self.mode.target)
    }

    fn wait(&mut self, for_: Duration) -> Result<(), TransmitError> {
        self.flush()?;
        if !self.sending.free.is_empty() || self.in_flight() == 0 {
            return Ok(());
        }
        // Zero copy: the driver reports that it has sent something. In copy mode, polling sends.
        if let Err(errno) = self.socket.wait(PollFlags::OUT, for_)
            && let Some(error) = TransmitError::from_io(&self.mode.target, errno.into())
        {
            return Err(error);
        }
        self.sending.reap(&mut self.socket);
        Ok(())
    }

    fn quick_counts(&self) -> Counts {
        self.sending.counts
    }

    fn counts(&mut self) -> Counts {
        self.sending.reap(&mut self.socket);
        let counted = self.socket.statistics();
        self.sending.counts.invalid = counted.map_or(0, |counted| counted.tx_invalid_descs);
        self.sending.counts
    }

    fn mode(&self) -> &Mode {
        &self.mode
    }
}
