//! Templates: after any sequence of changes the frame equals one built with those values.

use fcn_wire::bth::{BthRepr, ExtendedHeader, Reth, Roce};
use fcn_wire::cnp::CnpRepr;
use fcn_wire::compose::{OptionPart, Part, UdpChecksum, packet};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::{Policy, Reading, Verdict};
use fcn_wire::ioam::{IoamOption, OptType};
use fcn_wire::template::{Change, Field, Template};
use fcn_wire::{End, Frame, LinkType, Opcode, Profile, Qp};
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Headers between the IP header and UDP.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Extension {
    None,
    /// A Fast CNP with option 1 or 2.
    FastCnp(u8),
    /// An IOAM-like option whose data may change, and the proxy's address.
    Options,
}

#[derive(Clone, Debug)]
struct Shape {
    v4: bool,
    extension: Extension,
    reading: Reading,
    opcode: Opcode,
    payload: Vec<u8>,
    /// Number of zero octets after the packet, as Ethernet pads short frames.
    trailer: usize,
    vlan: bool,
}

impl Shape {
    fn fields(&self) -> Vec<Field> {
        let mut fields = vec![
            Field::Psn,
            Field::AckRequest,
            Field::DestQp,
            Field::UdpSource,
            Field::SourceAddress,
            Field::DestinationAddress,
            Field::TrafficClass,
            Field::Ecn,
            Field::HopLimit,
            if self.v4 {
                Field::Identification
            } else {
                Field::FlowLabel
            },
        ];
        let extended = self.opcode.extended_headers().unwrap();
        if extended.contains(&ExtendedHeader::Reth) {
            fields.push(Field::RethAddress);
            fields.push(Field::RethKey);
        }
        if extended.contains(&ExtendedHeader::Aeth) {
            fields.push(Field::AethMsn);
        }
        if matches!(self.extension, Extension::FastCnp(_)) {
            fields.push(Field::FastCnpOriginalDestination);
        }
        fields
    }

    fn build(&self) -> Vec<u8> {
        let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
        let trace = [0, 7, 8, 0, 0x80, 0, 0, 0, 64, 0, 0, 1];
        let original_destination = address(9);
        let option = match self.extension {
            Extension::FastCnp(1) => FastCnpRepr::Option1 {
                original_destination,
            },
            _ => FastCnpRepr::Option2 {
                ioam: IoamOption {
                    reserved: 0,
                    opt_type: OptType::Preallocated,
                    body: &trace,
                },
                original_destination,
            },
        };
        let fast_cnp = [OptionPart::FastCnp(option)];
        let hop_by_hop = [OptionPart::Raw(0x31, (4, 0), &[0xA5; 10])];
        let destination = [OptionPart::Raw(0x1E, (4, 2), &[7; 16])];
        let reth = Reth {
            address: 1 << 40,
            rkey: 5,
            length: 9000,
        }
        .to_bytes();
        let mut parts = vec![Part::Ethernet {
            source: [2; 6],
            destination: [4; 6],
        }];
        if self.vlan {
            parts.push(Part::Vlan {
                id: 7,
                priority: 3,
                service: false,
            });
        }
        if self.v4 {
            parts.push(Part::Ipv4 {
                source: Ipv4Addr::new(192, 0, 2, 1),
                destination: Ipv4Addr::new(192, 0, 2, 2),
                tos: 0x42,
                ttl: 64,
                id: 0xFFFF,
                options: &[1, 1, 1, 0],
            });
        } else {
            parts.push(Part::Ipv6 {
                source: address(1),
                destination: address(2),
                traffic_class: 0x42,
                flow_label: 0xF_1234,
                hop_limit: 64,
            });
        }
        match self.extension {
            Extension::None => {}
            Extension::FastCnp(_) => parts.push(Part::DestinationOptions(&fast_cnp)),
            Extension::Options => {
                parts.push(Part::HopByHop(&hop_by_hop));
                parts.push(Part::DestinationOptions(&destination));
            }
        }
        parts.push(Part::Udp {
            source: 0xC001,
            destination: 4791,
            checksum: UdpChecksum::Zero,
        });
        if self.opcode == Opcode::CNP {
            parts.push(Part::Cnp(CnpRepr::new(Qp::truncate(0x1234))));
        } else {
            parts.push(Part::Bth(BthRepr::new(
                self.opcode,
                Qp::truncate(0x1234),
                0xFF_FFFE,
            )));
            for header in self.opcode.extended_headers().unwrap() {
                parts.push(Part::Bytes(&reth[..header.octets()]));
            }
            parts.push(Part::Bytes(&self.payload));
        }
        parts.push(Part::Icrc(Policy::Compute(self.reading)));
        let mut bytes = packet(&parts, &Profile::DEFAULT).unwrap();
        bytes.extend(vec![0; self.trailer]);
        bytes
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    let extension = prop_oneof![
        Just(Extension::None),
        Just(Extension::FastCnp(1)),
        Just(Extension::FastCnp(2)),
        Just(Extension::Options),
    ];
    let opcode = proptest::sample::select(vec![
        Opcode::RC_SEND_ONLY,
        Opcode::RC_WRITE_FIRST,
        Opcode::RC_WRITE_ONLY_IMM,
        Opcode::RC_ACKNOWLEDGE,
        Opcode::CNP,
    ]);
    let reading = proptest::sample::select(&Reading::ALL[..]);
    (
        any::<bool>(),
        extension,
        reading,
        opcode,
        vec(any::<u8>(), 0..300),
        0usize..20,
        any::<bool>(),
    )
        .prop_map(
            |(v4, extension, reading, opcode, payload, trailer, vlan)| Shape {
                v4: v4 && extension == Extension::None,
                extension,
                reading,
                opcode: if matches!(extension, Extension::FastCnp(_)) {
                    Opcode::CNP
                } else {
                    opcode
                },
                payload,
                trailer,
                vlan,
            },
        )
}

/// Returns a change of `field` to a value derived from `seed`.
fn change(field: Field, seed: u128, v4: bool) -> Change {
    let address = if v4 {
        IpAddr::V4(Ipv4Addr::from(seed as u32))
    } else {
        IpAddr::V6(Ipv6Addr::from(seed))
    };
    match field {
        Field::Psn => Change::Psn(seed as u32),
        Field::AckRequest => Change::AckRequest(seed & 1 == 1),
        Field::DestQp => Change::DestQp(Qp::truncate(seed as u32)),
        Field::UdpSource => Change::UdpSource(seed as u16),
        Field::SourceAddress => Change::SourceAddress(address),
        Field::DestinationAddress => Change::DestinationAddress(address),
        Field::FastCnpOriginalDestination => {
            Change::FastCnpOriginalDestination(Ipv6Addr::from(seed))
        }
        Field::RethAddress => Change::RethAddress(seed as u64),
        Field::RethKey => Change::RethKey(seed as u32),
        Field::AethMsn => Change::AethMsn(seed as u32),
        Field::Identification => Change::Identification(seed as u16),
        Field::FlowLabel => Change::FlowLabel(seed as u32),
        Field::TrafficClass => Change::TrafficClass(seed as u8),
        Field::Ecn => Change::Ecn(seed as u8),
        Field::HopLimit => Change::HopLimit(seed as u8),
    }
}

/// Returns the change that would set `field` to its present value in `frame`, as read by its views.
fn read(frame: &Frame<'_>, field: Field) -> Change {
    let datagram = frame.datagram().unwrap();
    let roce = Roce::new_checked(datagram.payload).unwrap();
    let (ip, bth) = (datagram.ip, roce.bth());
    match field {
        Field::Psn => Change::Psn(bth.psn()),
        Field::AckRequest => Change::AckRequest(bth.ack_request()),
        Field::DestQp => Change::DestQp(bth.dest_qp()),
        Field::UdpSource => Change::UdpSource(datagram.source_port),
        Field::SourceAddress => Change::SourceAddress(ip.source),
        Field::DestinationAddress => Change::DestinationAddress(ip.destination),
        Field::FastCnpOriginalDestination => {
            let option = frame.options_headers().find_map(|header| {
                header
                    .readable()
                    .find_map(|o| FastCnpRepr::parse(o.kind, o.data, frame.profile()))
            });
            Change::FastCnpOriginalDestination(option.unwrap().unwrap().original_destination())
        }
        Field::RethAddress => Change::RethAddress(roce.reth().unwrap().address),
        Field::RethKey => Change::RethKey(roce.reth().unwrap().rkey),
        Field::AethMsn => Change::AethMsn(roce.aeth().unwrap().msn),
        Field::Identification => {
            let header = etherparse::Ipv4Header::from_slice(&frame.bytes()[ip.start..])
                .unwrap()
                .0;
            Change::Identification(header.identification)
        }
        Field::FlowLabel => Change::FlowLabel(ip.flow_label),
        Field::TrafficClass => Change::TrafficClass(ip.traffic_class),
        Field::Ecn => Change::Ecn(ip.ecn()),
        Field::HopLimit => Change::HopLimit(ip.hop_limit),
    }
}

/// Returns the change with its value truncated to the field's width.
fn cut(change: Change) -> Change {
    match change {
        Change::Psn(n) => Change::Psn(n & 0xFF_FFFF),
        Change::AethMsn(n) => Change::AethMsn(n & 0xFF_FFFF),
        Change::FlowLabel(n) => Change::FlowLabel(n & 0xF_FFFF),
        Change::Ecn(n) => Change::Ecn(n & 3),
        other => other,
    }
}

fn parse(bytes: &[u8]) -> Frame<'_> {
    Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT)
}

fn check(bytes: &[u8], shape: &Shape) -> Result<(), TestCaseError> {
    let frame = parse(bytes);
    prop_assert_eq!(frame.end(), End::Complete);
    let named = (shape.extension != Extension::None).then_some(shape.reading);
    prop_assert_eq!(frame.verify_icrc(), Verdict::Good(named));
    if shape.v4 {
        let ip = frame.ip().unwrap();
        let header = etherparse::Ipv4Header::from_slice(&bytes[ip.start..])
            .unwrap()
            .0;
        prop_assert_eq!(header.header_checksum, header.calc_header_checksum());
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_sequence_of_changes_leaves_a_valid_frame(
        shape in shape(),
        changes in vec((any::<proptest::sample::Index>(), any::<u128>()), 1..12),
    ) {
        let (bytes, fields) = (shape.build(), shape.fields());
        let mut template =
            Template::new(bytes.clone(), LinkType::Ethernet, &Profile::DEFAULT, &fields).unwrap();
        let shared = template.clone();
        let mut out = vec![0xEE; bytes.len() + 8];
        out[..bytes.len()].copy_from_slice(shared.bytes());
        for (index, seed) in changes {
            let change = change(*index.get(&fields), seed, shape.v4);
            let before: Vec<_> = fields.iter().map(|f| read(&parse(template.bytes()), *f)).collect();
            template.set(change).unwrap();
            check(template.bytes(), &shape)?;
            let frame = parse(template.bytes());
            prop_assert_eq!(read(&frame, change.field()), cut(change));
            // No other field changes, except that ECN is a part of the traffic class.
            let overlap = |f: Field| matches!(f, Field::Ecn | Field::TrafficClass);
            for (field, before) in fields.iter().zip(before) {
                if *field != change.field() && !(overlap(*field) && overlap(change.field())) {
                    prop_assert_eq!(read(&frame, *field), before);
                }
            }
            shared.edit(&mut out).unwrap().set(change).unwrap();
            prop_assert_eq!(&out[..bytes.len()], template.bytes());
            prop_assert_eq!(&out[bytes.len()..], [0xEE; 8]);
        }
        prop_assert_eq!(shared.bytes(), &bytes[..]);
    }

    #[test]
    fn undoing_changes_restores_the_frame(shape in shape(), seed: u128) {
        let (bytes, fields) = (shape.build(), shape.fields());
        let mut template =
            Template::new(bytes.clone(), LinkType::Ethernet, &Profile::DEFAULT, &fields).unwrap();
        let before: Vec<_> = fields.iter().map(|f| read(&parse(&bytes), *f)).collect();
        for field in &fields {
            template.set(change(*field, seed, shape.v4)).unwrap();
        }
        for undo in before {
            template.set(undo).unwrap();
        }
        prop_assert_eq!(template.bytes(), &bytes[..]);
    }

    #[test]
    fn arbitrary_octets_are_a_template_or_refused(
        mut bytes in shape().prop_map(|shape| shape.build()),
        at: proptest::sample::Index,
        flip in 1u8..=255,
        psn: u32,
    ) {
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(mut template) =
            Template::new(bytes, LinkType::Ethernet, &Profile::DEFAULT, &[Field::Psn])
        {
            template.set(Change::Psn(psn)).unwrap();
            prop_assert!(matches!(parse(template.bytes()).verify_icrc(), Verdict::Good(_)));
        }
    }
}
