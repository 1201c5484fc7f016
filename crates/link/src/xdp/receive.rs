//! Frames in by AF_XDP: those of one receive queue, instead of to the rest of the kernel.

use super::ring::Consumer;
use super::socket::Socket;
use rustix::net::xdp::{XdpDesc, XdpDescOptions};
use rustix::net::{RecvFlags, recv};

/// The kernel keeps so much of a chunk in front of a frame.
pub(super) const HEADROOM: usize = 256;
/// So many pieces are given back together.
const TOGETHER: usize = 32;

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
