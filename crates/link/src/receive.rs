//! Frames in: what every backend offers. Backends are [`crate::xdp::XdpReceive`], [`crate::packet_socket::PacketReceive`]
//! and [`crate::capture_file::CaptureReader`].

use crate::capture_file::{CaptureReader, ReadError};
use crate::packet_socket::PacketReceive;
use crate::xdp::XdpReceive;
use std::fmt;
use std::io;
use std::time::Duration;

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
#[derive(Debug)]
pub enum ReceiveError {
    /// The interface is gone or down.
    Interface(io::Error),
    /// The file cannot be read on.
    File(ReadError),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(error) => write!(f, "the interface gives no frames: {error}"),
            Self::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReceiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Interface(error) => Some(error),
            Self::File(error) => Some(error),
        }
    }
}

impl Receive for XdpReceive {
    fn receive(
        &mut self,
        for_: Duration,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Arrived, ReceiveError> {
        match Self::receive(self, for_, take).map_err(ReceiveError::Interface)? {
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
        match Self::receive(self).map_err(ReceiveError::Interface)? {
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
        match self.next().map_err(ReceiveError::File)? {
            None => Ok(Arrived::End),
            Some(packet) => {
                take(packet.bytes);
                Ok(Arrived::Frames(1))
            }
        }
    }
}
