//! Frames out and in by AF_PACKET, through pnet: works on every interface, but needs a system call
//! for each frame.

use crate::packet_options::{self, enable_vlan_tags, ignore_outgoing};
use crate::slots::Slots;
use crate::transmit::{Counts, Mode, ModeKind, Slot, Transmit, TransmitError};
use pnet::datalink::{self, Channel, Config, DataLinkReceiver, DataLinkSender, NetworkInterface};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::time::Duration;
use thiserror::Error;

/// Maximum time that a call blocks.
const WRITE_TIMEOUT: Duration = Duration::from_millis(100);

/// Size of the receive buffer in octets: seconds of some thousand frames each, including the
/// kernel's own overhead per frame.
const WAITING: usize = 16 << 20;

/// Reason why an AF_PACKET socket could not be opened.
#[derive(Debug, Error)]
#[error(
    "{interface}: cannot open an AF_PACKET socket: {error}{}",
    if self.is_permission() { "; this needs CAP_NET_RAW" } else { "" }
)]
pub struct PacketSocketError {
    interface: String,
    error: io::Error,
}

impl PacketSocketError {
    /// True if permissions are missing.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        self.error.kind() == io::ErrorKind::PermissionDenied
    }
}

type Ends = (Box<dyn DataLinkSender>, Box<dyn DataLinkReceiver>);

fn channel(interface: &str, config: Config) -> Result<Ends, PacketSocketError> {
    let fail = |error| PacketSocketError {
        interface: interface.to_owned(),
        error,
    };
    let found: Option<NetworkInterface> = datalink::interfaces()
        .into_iter()
        .find(|i| i.name == interface);
    let found = found.ok_or_else(|| fail(io::Error::from_raw_os_error(libc::ENODEV)))?;
    match datalink::channel(&found, config).map_err(fail)? {
        Channel::Ethernet(sender, receiver) => Ok((sender, receiver)),
        _ => Err(fail(io::ErrorKind::Unsupported.into())),
    }
}

/// Sends frames by AF_PACKET. The kernel chooses the queue.
pub struct PacketTransmit {
    sender: Box<dyn DataLinkSender>,
    slots: Slots,
    mode: Mode,
}

impl PacketTransmit {
    /// Opens a socket for frames of up to `max_frame_len` octets, of which `slots` can wait.
    ///
    /// # Errors
    /// Permissions are missing, or there is no such interface.
    pub fn open(
        interface: &str,
        (slots, max_frame_len): (usize, usize),
        why_not_better: Vec<String>,
    ) -> Result<Self, PacketSocketError> {
        let config = Config {
            write_buffer_size: 0,
            read_buffer_size: 0,
            write_timeout: Some(WRITE_TIMEOUT),
            // The state of the interface is left unchanged.
            promiscuous: false,
            ..Config::default()
        };
        let (sender, _) = channel(interface, config)?;
        let slots = Slots::new(slots, max_frame_len);
        let mode = Mode {
            target: interface.to_owned(),
            queue: None,
            kind: ModeKind::PacketSocket,
            why_not_better,
            slots: slots.extent(),
        };
        Ok(Self {
            sender,
            slots,
            mode,
        })
    }
}

impl Transmit for PacketTransmit {
    fn take(&mut self) -> Option<Slot> {
        self.slots.take()
    }

    fn bytes(&mut self, slot: &Slot) -> &mut [u8] {
        self.slots.bytes(slot)
    }

    fn push(&mut self, slot: Slot, len: usize) {
        self.slots.push(slot, len);
    }

    fn flush(&mut self) -> Result<(), TransmitError> {
        while let Some(frame) = self.slots.first() {
            let result = self.sender.send_to(frame, None);
            self.slots.counts.kicks += 1;
            match result {
                Some(Ok(())) => self.slots.sent(),
                // Temporarily no room: try later.
                Some(Err(error)) if error.kind() == io::ErrorKind::TimedOut => return Ok(()),
                Some(Err(error)) => {
                    return TransmitError::from_io(&self.mode.target, error).map_or(Ok(()), Err);
                }
                None => {
                    let interface = self.mode.target.clone();
                    let error = io::ErrorKind::Unsupported.into();
                    return Err(TransmitError::Kernel { interface, error });
                }
            }
        }
        Ok(())
    }

    fn wait(&mut self, _: Duration) -> Result<(), TransmitError> {
        // Sending itself blocks.
        self.flush()
    }

    fn quick_counts(&self) -> Counts {
        self.slots.counts
    }

    fn mode(&self) -> &Mode {
        &self.mode
    }
}

/// Opens a socket for pnet whose buffer holds frames that wait while other threads have the
/// processor.
fn roomy_socket(interface: &str) -> Result<OwnedFd, PacketSocketError> {
    let fail = |error: rustix::io::Errno| PacketSocketError {
        interface: interface.to_owned(),
        error: error.into(),
    };
    let socket = socket(AddressFamily::PACKET, SocketType::RAW, None).map_err(fail)?;
    // Exceeding the system's limit needs CAP_NET_ADMIN.
    set_socket_recv_buffer_size_force(&socket, WAITING)
        .or_else(|_| set_socket_recv_buffer_size(&socket, WAITING))
        .map_err(fail)?;
    Ok(socket)
}

/// Sends and receives frames by one AF_PACKET socket. It does not receive what it sends.
pub struct PacketPort {
    sender: Box<dyn DataLinkSender>,
    /// The same socket, for receiving: pnet does not restore VLAN tags.
    socket: OwnedFd,
    room: Vec<u8>,
    interface: String,
    max_frame_len: usize,
    counts: Counts,
}

impl PacketPort {
    /// Opens a socket for frames of up to `max_frame_len` octets. Incoming frames reach the rest of
    /// the kernel as well.
    ///
    /// # Errors
    /// Permissions are missing, or there is no such interface.
    pub fn open(interface: &str, max_frame_len: usize) -> Result<Self, PacketSocketError> {
        let fail = |error| PacketSocketError {
            interface: interface.to_owned(),
            error,
        };
        let socket = roomy_socket(interface)?;
        ignore_outgoing(socket.as_fd()).map_err(fail)?;
        enable_vlan_tags(socket.as_fd()).map_err(fail)?;
        let same = socket.try_clone().map_err(fail)?;
        let config = Config {
            read_buffer_size: 0,
            write_buffer_size: 0,
            write_timeout: Some(WRITE_TIMEOUT),
            promiscuous: false,
            socket_fd: Some(socket.into_raw_fd()),
            ..Config::default()
        };
        let (sender, _) = channel(interface, config)?;
        Ok(Self {
            sender,
            socket: same,
            room: packet_options::room(max_frame_len),
            interface: interface.to_owned(),
            max_frame_len,
            counts: Counts::default(),
        })
    }

    /// Returns the descriptor to poll for frames.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Passes waiting frames to `take`, in order, at most `most`; does not block. Returns their
    /// number.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        for count in 0..most {
            match packet_options::receive(self.socket.as_fd(), &mut self.room) {
                Ok(Some(frame)) => take(&self.room[frame]),
                Ok(None) => {}
                Err(error) if is_later(&error) => return Ok(count),
                Err(error) => return Err(error),
            }
        }
        Ok(most)
    }

    /// Sends `frame`. Returns false if it is too long, or the kernel has no room for it.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub fn send(&mut self, frame: &[u8]) -> Result<bool, TransmitError> {
        if frame.is_empty() || frame.len() > self.max_frame_len {
            return Ok(false);
        }
        self.counts.kicks += 1;
        match self.sender.send_to(frame, None) {
            Some(Ok(())) => {
                self.counts.pushed += 1;
                self.counts.completed += 1;
                self.counts.octets += frame.len() as u64;
                Ok(true)
            }
            Some(Err(error)) if is_later(&error) => Ok(false),
            Some(Err(error)) => {
                TransmitError::from_io(&self.interface, error).map_or(Ok(false), Err)
            }
            None => Ok(false),
        }
    }

    /// Returns the counters of frames sent.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }
}

/// True if the error is temporary, and the call should be repeated.
fn is_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
