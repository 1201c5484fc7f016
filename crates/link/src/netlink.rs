//! Netlink requests to the kernel, and its answers, undecoded.

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io;
use std::iter;
use std::time::Duration;

/// Maximum number of requests for a list that keeps changing.
const ATTEMPTS: usize = 8;
/// Receive timeout. The kernel answers immediately, unless its lock of the network configuration is
/// held.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A netlink socket in the namespace of the thread that opened it.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket for rtnetlink.
    pub(crate) fn open() -> io::Result<Self> {
        Self::with_protocol(NETLINK_ROUTE)
    }

    /// Opens a socket for a netlink protocol.
    pub(crate) fn with_protocol(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        // Connected, so that only the kernel's messages are received.
        socket.connect(&SocketAddr::new(0, 0))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Returns the payloads of all messages of type `kind` that answer `request`.
    pub(crate) fn dump(
        &mut self,
        request: impl NetlinkSerializable + Clone,
        kind: u16,
    ) -> io::Result<Vec<Vec<u8>>> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            self.send(request.clone(), NLM_F_DUMP)?;
            match self.receive(kind, true) {
                Err(e) if attempts < ATTEMPTS && is_passing(&e) => self.flush(),
                done => return done,
            }
        }
    }

    /// Returns the payload of the one message that answers `request`.
    pub(crate) fn get(
        &mut self,
        request: impl NetlinkSerializable,
        kind: u16,
    ) -> io::Result<Vec<u8>> {
        self.send(request, 0)?;
        let answer = self.receive(kind, false)?.pop();
        answer.ok_or_else(|| io::Error::other("the kernel did not answer"))
    }

    fn send(&mut self, request: impl NetlinkSerializable, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
        message.finalize();
        let mut octets = vec![0; message.buffer_len()];
        message.serialize(&mut octets);
        self.socket.send(&octets, 0)?;
        Ok(())
    }

    fn receive(&mut self, kind: u16, list: bool) -> io::Result<Vec<Vec<u8>>> {
        let mut answers = Vec::new();
        let mut changed = false;
        loop {
            let datagram = match self.socket.recv_from_full() {
                Ok((datagram, _)) => datagram,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "the kernel does not answer",
                    ));
                }
                Err(e) => return Err(e),
            };
            for message in messages(&datagram) {
                // The rest of an abandoned answer.
                if message.sequence_number() != self.sequence {
                    continue;
                }
                changed |= message.flags() & NLM_F_DUMP_INTR != 0;
                let payload = message.payload();
                if message.message_type() == libc::NLMSG_ERROR as u16
                    || message.message_type() == libc::NLMSG_DONE as u16
                {
                    failure(payload)?;
                    if changed {
                        return Err(io::Error::from_raw_os_error(libc::EINTR));
                    }
                    return Ok(answers);
                }
                if message.message_type() == kind {
                    answers.push(payload.to_vec());
                    if !list {
                        return Ok(answers);
                    }
                }
            }
        }
    }

    /// Discards the rest of an abandoned answer.
    fn flush(&self) {
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let more = self.socket.recv(&mut buffer, libc::MSG_DONTWAIT);
            let lost = |e: &io::Error| e.raw_os_error() == Some(libc::ENOBUFS);
            if more.is_err_and(|e| !lost(&e)) {
                return;
            }
        }
    }
}

/// True if the request should be repeated: the list changed while it was read, or did not fit.
fn is_passing(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EINTR | libc::ENOBUFS))
}

/// Converts the error number that ends an answer; 0 is success.
fn failure(payload: &[u8]) -> io::Result<()> {
    match payload.first_chunk().map(|code| i32::from_ne_bytes(*code)) {
        None | Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

/// Iterates over the messages of a datagram, up to the first malformed one.
pub(crate) fn messages(mut rest: &[u8]) -> impl Iterator<Item = NetlinkBuffer<&[u8]>> {
    iter::from_fn(move || {
        let message = NetlinkBuffer::new_checked(rest).ok()?;
        let len = usize::try_from(message.length()).ok()?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut octets = Vec::new();
        octets.extend((16 + payload.len() as u32).to_ne_bytes());
        octets.extend(kind.to_ne_bytes());
        octets.extend([0; 10]);
        octets.extend(payload);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    #[test]
    fn messages_one_after_another() {
        let datagram = [message(16, b"one"), message(17, b""), message(18, b"three")].concat();
        let found: Vec<_> = messages(&datagram)
            .map(|m| (m.message_type(), m.payload()))
            .collect();
        let expected: [(u16, &[u8]); 3] = [(16, b"one"), (17, b""), (18, b"three")];
        assert_eq!(found, expected);
        assert_eq!(messages(&datagram[..datagram.len() - 4]).count(), 2);
    }

    #[test]
    fn failures() {
        assert!(failure(&0_i32.to_ne_bytes()).is_ok());
        assert!(failure(&[]).is_ok());
        let e = failure(&(-libc::ENODEV).to_ne_bytes()).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENODEV));
        assert!(failure(&i32::MIN.to_ne_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_octets_end(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(messages(&octets).count() <= octets.len() / 16);
        }
    }
}
