//! Frames in: what every backend offers. Backends are [`crate::xdp::XdpReceive`], [`crate::packet_socket::PacketReceive`]
//! and [`crate::capture_file::CaptureReader`].

use crate::capture_file::{CaptureReader, ReadError};
use crate::packet_socket::PacketReceive;
use crate::xdp::XdpReceive;
use std::io;
use std::time::Duration;
use thiserror::Error;

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// So many frames.
    Frames(usize),
    /// None in the time that one was willing to wait.
    None,
    /// None, and none will come: the end of a file.
    End,
}

/// Where frames come from.
pub trait Receive {
    /// Gives the frames that are there to `take`, in order. Where there are none, waits for the first: an interface for
    /// about `for_`, a file until it has one.
    ///
    /// # Errors
    /// The interface is gone, or the file cannot be read on.
    fn receive(
        &mut self,
        for_: Duration,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Arrived, ReceiveError>;
}

/// Why nothing more comes.
#[derive(Debug, Error)]
pub enum ReceiveError {
    /// The interface is gone or down.
    #[error("the interface gives no frames: {0}")]
    Interface(#[from] io::Error),
    /// The file cannot be read on.
    #[error("{0}")]
    File(#[from] ReadError),
}

impl Receive for XdpReceive {
    fn receive(
        &mut self,
        for_: Duration,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Arrived, ReceiveError> {
        match Self::receive(self, for_, take)? {
            0 => Ok(Arrived::None),
            count => Ok(Arrived::Frames(count)),
        }
    }
}

impl Receive for PacketReceive {
    /// Waits for a tenth of a second, whatever `for_` says.
    fn receive(
        &mut self,
        _: Duration,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Arrived, ReceiveError> {
        match Self::receive(self)? {
            None => Ok(Arrived::None),
            Some(frame) => {
                take(frame);
                Ok(Arrived::Frames(1))
            }
        }
    }
}

impl Receive for CaptureReader<'_> {
    fn receive(
        &mut self,
        _: Duration,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Arrived, ReceiveError> {
        match self.next()? {
            None => Ok(Arrived::End),
            Some(packet) => {
                take(packet.bytes);
                Ok(Arrived::Frames(1))
            }
        }
    }
}
