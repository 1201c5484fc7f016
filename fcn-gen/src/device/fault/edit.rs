//! Changes of a frame's octets: headers put in front, lengths, checksums and ICRC after them.

use fcn_wire::frame::Datagram;
use fcn_wire::header::{ethernet, ipv4, ipv6};
use fcn_wire::message::FastCnpMessage;
use fcn_wire::rewrite::Rules;
use fcn_wire::{Frame, Layer, LinkType, Message, Profile};

/// Places in a frame that faults change, in octets from its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// The innermost IP header.
    pub ip: usize,
    /// True if it is IPv6.
    pub is_v6: bool,
    /// End of the IP packet.
    pub end: usize,
    /// The UDP header, if there is one.
    pub udp: Option<usize>,
    /// The BTH of a RoCEv2 packet.
    pub bth: Option<usize>,
    /// The Destination Options header, with its end.
    pub options: Option<(usize, usize)>,
    /// The original destination in the option of a Fast CNP.
    pub original: Option<usize>,
    /// True if it is a notification to a proxy.
    pub is_proxy_cn: bool,
}

/// Returns the offset of the original destination in a Fast CNP.
#[must_use]
pub fn original_at(message: &FastCnpMessage<'_>) -> Option<usize> {
    let option = message.parsed.ok()?;
    Some(message.option_at() + 2 + option.address_at(message.option.data.len()))
}

/// Parses a frame as it is on the wire.
#[must_use]
pub fn parse<'a>(bytes: &'a [u8], profile: &'a Profile) -> Frame<'a> {
    Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile)
}

impl Layout {
    /// Locates the places in a frame; `None` if it has no IP header.
    #[must_use]
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        let ip = frame.ip()?;
        let datagram = frame.datagram();
        let options = frame.spans().iter();
        let options = options
            .rev()
            .find(|span| span.layer == Layer::DestinationOptions);
        Some(Self {
            ip: ip.start,
            is_v6: ip.source.is_ipv6(),
            end: ip.end.min(frame.bytes().len()),
            udp: datagram.map(|datagram| datagram.start),
            bth: datagram
                .filter(|_| frame.is_roce())
                .map(Datagram::payload_at),
            options: options.map(|span| (span.start, span.header_end)),
            original: match frame.message() {
                Message::FastCnp(message) => original_at(&message),
                _ => None,
            },
            is_proxy_cn: matches!(frame.message(), Message::ProxyCn(_)),
        })
    }
}

/// Replaces octets from `at` on.
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.get_mut(..value.len()))
    {
        place.copy_from_slice(value);
    }
}

/// Inserts octets into an IP packet at `at`, and adds their number to its length.
pub fn insert(bytes: &mut Vec<u8>, layout: &Layout, at: usize, octets: &[u8]) {
    if at > bytes.len() {
        return;
    }
    bytes.splice(at..at, octets.iter().copied());
    lengthen(
        bytes,
        layout.ip
            + if layout.is_v6 {
                ipv6::LENGTH
            } else {
                ipv4::LENGTH
            },
        octets.len(),
    );
}

/// Adds to the length field at `at`; a wrapped negative number is subtracted.
pub fn lengthen(bytes: &mut [u8], at: usize, by: usize) {
    let old = bytes.get(at..).and_then(|rest| rest.first_chunk());
    let new = old
        .map_or(0, |old| u16::from_be_bytes(*old))
        .wrapping_add(by as u16);
    put(bytes, at, &new.to_be_bytes());
}

/// Inserts an extension header of 8 octets, the first of which is set here, after the IPv6 header.
pub fn insert_extension(bytes: &mut Vec<u8>, layout: &Layout, kind: u8, mut header: [u8; 8]) {
    if !layout.is_v6 {
        return;
    }
    let next = layout.ip + ipv6::NEXT;
    header[0] = bytes.get(next).copied().unwrap_or_default();
    put(bytes, next, &[kind]);
    insert(bytes, layout, layout.ip + ipv6::LEN, &header);
}

/// Recomputes all checksums and the ICRC, so that they fit a change. A UDP checksum of 0 stays.
pub fn repair(bytes: &mut Vec<u8>, profile: &Profile) {
    let mut out = vec![0; bytes.len() + ethernet::LEN];
    let rules = Rules::default().repair();
    let done = rules.apply(bytes, bytes.len(), LinkType::Ethernet, profile, &mut out);
    if let Ok(done) = done {
        out.truncate(done.len);
        *bytes = out;
    }
}
