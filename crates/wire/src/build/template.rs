//! Prebuilt RoCEv2 frames whose fields change from packet to packet. The ICRC is patched, not
//! recomputed.
//!
//! The ICRC is linear over GF(2): the effect of a changed octet on it depends only on the octet's
//! position. Each field therefore has one table per octet, and a patch costs the same for any
//! payload size. `compose.rs` builds the whole frame; `template/layout.rs` locates its fields and
//! patches them.

mod layout;

use crate::bth::Qp;
use crate::error::Error;
use crate::frame::{Frame, LinkType};
use crate::profile::Profile;
use layout::Layout;
use std::net::{IpAddr, Ipv6Addr};

macro_rules! fields {
    ($($(#[$doc:meta])* $field:ident($value:ty),)+) => {
        /// A field of the innermost packet that can change from packet to packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Field {
            $($(#[$doc])* $field,)+
        }

        /// A field and its new value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Change {
            $($(#[$doc])* $field($value),)+
        }

        impl Change {
            /// Returns the field that changes.
            #[inline]
            #[must_use]
            pub const fn field(&self) -> Field {
                match self {
                    $(Self::$field(_) => Field::$field,)+
                }
            }
        }
    };
}

fields! {
    /// PSN of the BTH, modulo 2^24.
    Psn(u32),
    /// Acknowledge request of the BTH.
    AckRequest(bool),
    /// DestQP of the BTH.
    DestQp(Qp),
    /// UDP source port: the flow's entropy.
    UdpSource(u16),
    /// IP source address, of the frame's own family.
    SourceAddress(IpAddr),
    /// IP destination address, of the frame's own family.
    DestinationAddress(IpAddr),
    /// Data packet's destination in a Fast CNP option 1 or 2.
    FastCnpOriginalDestination(Ipv6Addr),
    /// Virtual address of the RETH.
    RethAddress(u64),
    /// Remote key of the RETH.
    RethKey(u32),
    /// Message sequence number of the AETH, modulo 2^24.
    AethMsn(u32),
    /// IPv4 identification.
    Identification(u16),
    /// IPv6 flow label, of which the low 20 bits are used. Not covered by the ICRC.
    FlowLabel(u32),
    /// TOS or traffic class: DSCP (6 bits), ECN (2 bits). Not covered by the ICRC.
    TrafficClass(u8),
    /// ECN: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced; the low two bits are used.
    /// Not covered by the ICRC.
    Ecn(u8),
    /// TTL or hop limit. Not covered by the ICRC.
    HopLimit(u8),
}

/// Reason why a frame cannot be a template, or a change cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The frame is not a complete RoCEv2 frame with correct checksums.
    #[error("this frame cannot be a template: {0}")]
    Frame(Error),
    /// The frame does not have the field.
    #[error("the frame has no {field:?} to change: {why}")]
    Lacks {
        /// The missing field.
        field: Field,
        /// Reason why it is missing.
        why: &'static str,
    },
    /// The template was created without this field.
    #[error("{0:?} cannot be changed: list it when creating the template")]
    NotPrepared(Field),
    /// IPv4 address for an IPv6 frame, or vice versa.
    #[error("{0:?} cannot be changed: the address and the frame differ in IP version")]
    Family(Field),
    /// The buffer is shorter than the frame.
    #[error("the frame needs {need} octets, the buffer has {have}")]
    Buffer {
        /// Length of the frame in octets.
        need: usize,
        /// Length of the buffer in octets.
        have: usize,
    },
}

impl From<Error> for TemplateError {
    fn from(e: Error) -> Self {
        Self::Frame(e)
    }
}

/// A complete RoCEv2 frame, with the tables that keep its ICRC correct while fields change.
///
/// A clone shares the tables: create one template for each layout (same headers, same payload
/// length) and clone it for each flow.
#[derive(Clone, Debug)]
pub struct Template {
    bytes: Vec<u8>,
    layout: Layout,
}

impl Template {
    /// Creates a template of the whole frame `bytes`, in which `fields` will change.
    ///
    /// The ICRC stays correct by the reading by which it is correct now. Fields that the ICRC does
    /// not cover in any reading ([`FlowLabel`](Field::FlowLabel) and those after it) need not be in
    /// `fields`. Each octet of the other fields takes 128 octets of tables.
    ///
    /// # Errors
    /// Fails if the frame is cut, malformed, a fragment, or not RoCEv2; if it has a UDP checksum
    /// (RoCEv2 sends 0, and a patched field would invalidate it), a wrong IPv4 header checksum or
    /// an ICRC that no reading yields; or if it lacks one of `fields`.
    pub fn new(
        bytes: Vec<u8>,
        link: LinkType,
        profile: &Profile,
        fields: &[Field],
    ) -> Result<Self, TemplateError> {
        let frame = Frame::parse(&bytes, bytes.len(), link, profile);
        let mut layout = Layout::from_frame(&frame)?;
        for field in fields {
            layout.prepare(&frame, *field)?;
        }
        Ok(Self { bytes, layout })
    }

    /// Returns the current frame.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Applies `change` to the template's own frame and patches the ICRC and the IPv4 header
    /// checksum.
    ///
    /// # Errors
    /// Fails if the field was not named in [`new`](Self::new) or does not exist in a frame of this
    /// IP version. Nothing changes then.
    #[inline(always)]
    pub fn set(&mut self, change: Change) -> Result<(), TemplateError> {
        Edit::new(&self.layout, &mut self.bytes).set(change)
    }

    /// Starts changes in `out`, which begins with a frame of this template, possibly modified
    /// since. The ICRC is read and written only once.
    ///
    /// # Errors
    /// Fails if `out` is shorter than the frame.
    #[inline(always)]
    pub fn edit<'a>(&'a self, out: &'a mut [u8]) -> Result<Edit<'a>, TemplateError> {
        let (need, have) = (self.bytes.len(), out.len());
        let frame = out
            .get_mut(..need)
            .ok_or(TemplateError::Buffer { need, have })?;
        Ok(Edit::new(&self.layout, frame))
    }
}

/// Changes of one frame. Dropping this writes the correct ICRC to the frame.
#[derive(Debug)]
pub struct Edit<'a> {
    layout: &'a Layout,
    frame: &'a mut [u8],
    icrc: u32,
}

impl<'a> Edit<'a> {
    #[inline(always)]
    fn new(layout: &'a Layout, frame: &'a mut [u8]) -> Self {
        let icrc = layout.icrc(frame);
        Self {
            layout,
            frame,
            icrc,
        }
    }

    /// Applies `change`.
    ///
    /// # Errors
    /// Fails if the field was not named in [`Template::new`] or does not exist in a frame of this
    /// IP version. Nothing changes then.
    #[inline(always)]
    pub fn set(&mut self, change: Change) -> Result<(), TemplateError> {
        self.layout.apply(self.frame, &mut self.icrc, change)
    }
}

impl Drop for Edit<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.layout.put_icrc(self.frame, self.icrc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bth::{BthRepr, Opcode};
    use crate::compose::{Part, UdpChecksum, packet};
    use crate::icrc::{Policy, Reading};
    use std::net::Ipv4Addr;

    const PAYLOAD: Part<'_> = Part::Bytes(&[0x5A; 32]);
    const ICRC: Part<'_> = Part::Icrc(Policy::Compute(Reading::Covered));
    const IPV4: Part<'_> = Part::Ipv4 {
        source: Ipv4Addr::new(192, 0, 2, 1),
        destination: Ipv4Addr::new(192, 0, 2, 2),
        tos: 2,
        ttl: 64,
        id: 7,
        options: &[],
    };
    const IPV6: Part<'_> = Part::Ipv6 {
        source: Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 1),
        destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 2),
        traffic_class: 2,
        flow_label: 5,
        hop_limit: 64,
    };

    const fn udp(destination: u16, checksum: UdpChecksum) -> Part<'static> {
        Part::Udp {
            source: 0xC000,
            destination,
            checksum,
        }
    }

    const ROCE: Part<'_> = udp(4791, UdpChecksum::Zero);

    fn send() -> Part<'static> {
        Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, Qp::truncate(9), 1))
    }

    fn bytes(parts: &[Part<'_>]) -> Vec<u8> {
        packet(parts, &Profile::DEFAULT).unwrap()
    }

    fn template(bytes: Vec<u8>, fields: &[Field]) -> Result<Template, TemplateError> {
        Template::new(bytes, LinkType::RawIp, &Profile::DEFAULT, fields)
    }

    #[test]
    fn incomplete_roce_frames_are_refused_with_the_reason() {
        let good = bytes(&[IPV4, ROCE, send(), PAYLOAD, ICRC]);
        template(good.clone(), &[]).unwrap();
        let edited = |at: usize, flip: u8| {
            let mut bad = good.clone();
            bad[at] ^= flip;
            bad
        };
        let zero = Part::Icrc(Policy::Zero);
        let summed = udp(4791, UdpChecksum::Compute);
        for (bad, reason) in [
            (Vec::new(), "needs 1 octets"),
            (edited(0, 0xF0), "version"),
            (good[..good.len() - 1].to_vec(), "total length"),
            (edited(10, 1), "header checksum"),
            (edited(good.len() - 1, 1), "ICRC"),
            (edited(60, 1), "ICRC"),
            (bytes(&[IPV4, ROCE, send(), PAYLOAD, zero]), "ICRC"),
            (bytes(&[IPV4, summed, send(), PAYLOAD, ICRC]), "checksum"),
            (
                bytes(&[IPV4, udp(4790, UdpChecksum::Zero), send(), PAYLOAD]),
                "destination port",
            ),
            (
                bytes(&[IPV4, ROCE, Part::Bytes(&[4; 10])]),
                "Base Transport Header",
            ),
            (bytes(&[IPV4, PAYLOAD]), "protocol"),
            (
                bytes(&[
                    IPV6,
                    Part::Fragment {
                        offset: 8,
                        more: false,
                        id: 1,
                    },
                    PAYLOAD,
                ]),
                "fragment",
            ),
        ] {
            let e = template(bad.clone(), &[]).unwrap_err().to_string();
            assert!(
                e.starts_with("this frame cannot be a template: ") && e.contains(reason),
                "{e} for {bad:x?}"
            );
        }
    }

    #[test]
    fn a_tunnel_with_a_udp_checksum_is_refused() {
        let ethernet = Part::Ethernet {
            source: [2; 6],
            destination: [4; 6],
        };
        let inner = [
            Part::Vxlan { vni: 1 },
            ethernet,
            IPV6,
            ROCE,
            send(),
            PAYLOAD,
            ICRC,
        ];
        for (checksum, refused) in [(UdpChecksum::Zero, false), (UdpChecksum::Compute, true)] {
            let mut parts = vec![IPV4, udp(4789, checksum)];
            parts.extend(inner);
            assert_eq!(template(bytes(&parts), &[Field::Psn]).is_err(), refused);
        }
    }

    #[test]
    fn missing_fields_are_refused_on_creation() {
        let v4 = bytes(&[IPV4, ROCE, send(), PAYLOAD, ICRC]);
        let v6 = bytes(&[IPV6, ROCE, send(), PAYLOAD, ICRC]);
        for (bytes, field) in [
            (&v4, Field::FlowLabel),
            (&v6, Field::Identification),
            (&v4, Field::FastCnpOriginalDestination),
            (&v6, Field::FastCnpOriginalDestination),
            (&v6, Field::RethAddress),
            (&v6, Field::AethMsn),
        ] {
            let refused = template(bytes.clone(), &[Field::Psn, field]);
            assert!(
                matches!(refused, Err(TemplateError::Lacks { field: f, .. }) if f == field),
                "{refused:?}"
            );
        }
        let routed = [
            IPV6,
            Part::SegmentRouting {
                left: 0,
                segments: &[Ipv6Addr::LOCALHOST],
            },
            ROCE,
            send(),
            ICRC,
        ];
        template(bytes(&routed), &[Field::SourceAddress]).unwrap();
        template(bytes(&routed), &[Field::DestinationAddress]).unwrap_err();
    }

    #[test]
    fn a_refused_change_changes_nothing() {
        let v4 = bytes(&[IPV4, ROCE, send(), PAYLOAD, ICRC]);
        let mut t = template(v4.clone(), &[Field::SourceAddress]).unwrap();
        let six = IpAddr::V6(Ipv6Addr::LOCALHOST);
        for (change, error) in [
            (Change::Psn(1), TemplateError::NotPrepared(Field::Psn)),
            (
                Change::SourceAddress(six),
                TemplateError::Family(Field::SourceAddress),
            ),
            (
                Change::DestinationAddress(six),
                TemplateError::NotPrepared(Field::DestinationAddress),
            ),
            (
                Change::Identification(1),
                TemplateError::NotPrepared(Field::Identification),
            ),
        ] {
            assert_eq!(t.set(change), Err(error));
            assert!(!error.to_string().is_empty());
        }
        let no_label = t.set(Change::FlowLabel(1));
        assert!(matches!(
            no_label,
            Err(TemplateError::Lacks {
                field: Field::FlowLabel,
                ..
            })
        ));
        assert_eq!(t.bytes(), v4);
    }

    #[test]
    fn a_short_buffer_is_left_unchanged() {
        let v4 = bytes(&[IPV4, ROCE, send(), PAYLOAD, ICRC]);
        let t = template(v4.clone(), &[Field::Psn]).unwrap();
        let (need, have) = (v4.len(), v4.len() - 1);
        let mut short = vec![0xEE; have];
        let error = t.edit(&mut short).unwrap_err();
        assert_eq!(error, TemplateError::Buffer { need, have });
        assert_eq!(short, [0xEE; 75]);
        let mut long = vec![0xEE; need + 3];
        long[..need].copy_from_slice(t.bytes());
        t.edit(&mut long).unwrap().set(Change::Psn(1)).unwrap();
        assert_eq!(long[..need], v4);
        assert_eq!(long[need..], [0xEE; 3]);
    }
}
