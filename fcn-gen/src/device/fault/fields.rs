//! Fields of sent frames by name (`bth.pkey`), for faults that change one of them.

use super::edit::original_at;
use fcn_wire::bth::{Aeth, BTH_LEN, BthRepr, ExtendedHeader, Reth};
use fcn_wire::frame::Datagram;
use fcn_wire::header::{Field, ethernet, ipv4, ipv6, udp};
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{Frame, Layer, Message};

/// Headers whose fields have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    Ethernet,
    Ipv4,
    Ipv6,
    Options,
    FastCnp,
    Original,
    Udp,
    Bth,
    Cnp,
    Aeth,
    Reth,
    ProxyCn,
    WanFcn,
    Icrc,
}

/// A Destination Options header, from its first octet.
const OPTIONS: &[Field] = &[
    Field::new("next_header", &[(0, 0, 8)]),
    Field::new("length", &[(1, 0, 8)]),
];
/// The option of a Fast CNP, from its type.
const FAST_CNP: &[Field] = &[
    Field::new("action", &[(0, 0, 2)]),
    Field::new("change", &[(0, 2, 1)]),
    Field::new("type", &[(0, 3, 5)]),
    Field::new("length", &[(1, 0, 8)]),
];
/// The address in the option of a Fast CNP, whose place depends on the option.
const ORIGINAL: &[Field] = &[Field::new("original_destination", &[(0, 0, 128)])];
/// The octets of a CNP after its BTH.
const CNP: &[Field] = &[Field::new("reserved", &[(0, 0, 128)])];
/// A notification to a proxy over IPv6.
const PROXY_CN: &[Field] = &[
    Field::new("source", &[(0, 0, 128)]),
    Field::new("destination", &[(16, 0, 128)]),
    Field::new("protocol", &[(32, 0, 8)]),
    Field::new("source_port", &[(33, 0, 16)]),
    Field::new("destination_port", &[(35, 0, 16)]),
    Field::new("level", &[(37, 0, 3)]),
    Field::new("reserved", &[(37, 3, 21)]),
    Field::new("quoted_version", &[(40, 0, 4)]),
    Field::new("quoted_source", &[(48, 0, 128)]),
];
/// The ICRC.
const ICRC: &[Field] = &[Field::new("icrc", &[(0, 0, 32)])];

const HEADERS: &[(&str, Header, &[Field])] = &[
    ("ethernet", Header::Ethernet, ethernet::FIELDS),
    ("ipv4", Header::Ipv4, ipv4::FIELDS),
    ("ipv6", Header::Ipv6, ipv6::FIELDS),
    ("options", Header::Options, OPTIONS),
    ("fast_cnp", Header::FastCnp, FAST_CNP),
    ("fast_cnp", Header::Original, ORIGINAL),
    ("udp", Header::Udp, udp::FIELDS),
    ("bth", Header::Bth, BthRepr::FIELDS),
    ("cnp", Header::Cnp, CNP),
    ("aeth", Header::Aeth, Aeth::FIELDS),
    ("reth", Header::Reth, Reth::FIELDS),
    ("proxy_cn", Header::ProxyCn, PROXY_CN),
    ("wan_fcn", Header::WanFcn, WanFcnRepr::FIELDS),
    ("trailer", Header::Icrc, ICRC),
];

/// A field with the header that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedField {
    header: Header,
    prefix: &'static str,
    field: &'static Field,
}

impl NamedField {
    /// Returns all fields.
    pub fn all() -> impl Iterator<Item = Self> {
        HEADERS.iter().flat_map(|(prefix, header, fields)| {
            fields.iter().map(move |field| Self {
                header: *header,
                prefix,
                field,
            })
        })
    }

    /// Returns the field of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|field| field.name() == name)
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.prefix, self.field.name)
    }

    /// Returns its width in bits.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.field.width()
    }

    /// Returns true if the field is a checksum, which is not to be repaired after a change of it.
    #[must_use]
    pub fn is_checksum(&self) -> bool {
        self.header == Header::Icrc || self.field.name == "checksum"
    }

    /// Returns the offset in the frame of its header; `None` if the frame has no such header.
    pub fn locate(&self, frame: &Frame<'_>) -> Option<usize> {
        let ip = frame.ip();
        let payload = frame.datagram().map(Datagram::payload_at);
        let roce = || payload.filter(|_| frame.is_roce());
        let extended = |wanted: ExtendedHeader| match frame.message() {
            Message::Roce(bth, Some(_)) => {
                let headers = bth.opcode().extended_headers()?;
                let before = headers.iter().take_while(|header| **header != wanted);
                let at = BTH_LEN + before.map(|header| header.octets()).sum::<usize>();
                headers.contains(&wanted).then_some(roce()? + at)
            }
            _ => None,
        };
        match (self.header, frame.message()) {
            (Header::Ethernet, _) => Some(0),
            (Header::Ipv4, _) => ip.filter(|ip| ip.source.is_ipv4()).map(|ip| ip.start),
            (Header::Ipv6, _) => ip.filter(|ip| ip.source.is_ipv6()).map(|ip| ip.start),
            (Header::Options, _) => (frame.spans().iter())
                .find(|span| span.layer == Layer::DestinationOptions)
                .map(|span| span.start),
            (Header::FastCnp, Message::FastCnp(message)) => Some(message.option_at()),
            (Header::Original, Message::FastCnp(message)) => original_at(&message),
            (Header::Udp, _) => frame.datagram().map(|datagram| datagram.start),
            (Header::Bth, _) => roce(),
            (Header::Cnp, Message::Cnp(_) | Message::FastCnp(_)) => Some(roce()? + BTH_LEN),
            (Header::Aeth, _) => extended(ExtendedHeader::Aeth),
            (Header::Reth, _) => extended(ExtendedHeader::Reth),
            (Header::ProxyCn, Message::ProxyCn(_)) => {
                payload.filter(|_| ip.is_some_and(|ip| ip.source.is_ipv6()))
            }
            (Header::WanFcn, Message::WanFcn(_)) => payload,
            (Header::Icrc, _) => {
                let datagram = frame.datagram().filter(|_| frame.is_roce())?;
                (datagram.payload_at() + datagram.payload_len).checked_sub(4)
            }
            _ => None,
        }
    }

    /// Writes a value, or the complement of the present one, to the field of the header at `at`.
    pub fn write(&self, bytes: &mut [u8], at: usize, value: Option<u128>) {
        let Some(header) = bytes.get_mut(at..) else {
            return;
        };
        let value = value.unwrap_or_else(|| !self.field.get(header));
        self.field.set(header, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_found() {
        let names: Vec<String> = NamedField::all().map(|field| field.name()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for name in &names {
            assert_eq!(NamedField::named(name).unwrap().name(), *name);
        }
        assert_eq!(NamedField::named("bth.pkey").unwrap().width(), 16);
        assert_eq!(NamedField::named("bth"), None);
    }
}
