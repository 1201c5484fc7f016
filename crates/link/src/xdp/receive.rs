//! Receives frames by AF_XDP: those of one receive queue, which do not reach the rest of the
//! kernel.

use super::ring::Consumer;
use super::socket::Socket;
use rustix::net::xdp::{XdpDesc, XdpDescOptions};
use rustix::net::{RecvFlags, recv};

/// Octets that the kernel reserves in a chunk before a frame.
pub(super) const HEADROOM: usize = 256;
/// Number of pieces that are returned together.
const TOGETHER: usize = 32;

/// The receiving part of a socket.
#[derive(Debug)]
pub(super) struct Receiving {
    ring: Consumer<XdpDesc>,
    /// A frame of several chunks, reassembled.
    whole: Vec<u8>,
    /// True if a frame was found to be too long, and its remaining pieces are to be skipped.
    too_long: bool,
    max_frame_len: usize,
}

impl Receiving {
    /// Returns the receiving part of a socket that was opened for receiving frames of up to
    /// `max_frame_len` octets.
    pub(super) fn of(socket: &mut Socket, max_frame_len: usize) -> Self {
        let ring = socket.receive.take();
        Self {
            ring: ring.unwrap_or_else(|| unreachable!("opened for receiving")),
            whole: Vec::with_capacity(max_frame_len),
            too_long: false,
            max_frame_len,
        }
    }

    /// Takes at most `most` pieces, and returns them in small groups so that the kernel does not
    /// run out of chunks.
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
                } else if self.whole.len() + octets.len() > self.max_frame_len {
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
        // A driver that has run out of chunks needs this call; without it nothing would be received
        // any more.
        if socket.fill.needs_wakeup() {
            let _ = recv(socket.fd(), [0; 0].as_mut_slice(), RecvFlags::DONTWAIT);
        }
    }
}
