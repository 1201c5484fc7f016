//! Items shown for each message: plans made from octets with the views of `fcn-wire`. Nothing here
//! calls Wireshark.
#![forbid(unsafe_code)]

mod connection;
pub mod context;
mod ethernet;
mod fast_cnp;
mod ioam;
mod lines;
mod pfc;
pub mod pnc;
mod proxy_cn;
mod roce;
mod summary;
mod wan_fcn;

pub use connection::{Notified, Record};
pub use ethernet::{TAG_LEN, cn_tag, cnm, csig};
pub use fast_cnp::{OptionsAt, has_known_options, options, quotation};
pub use lines::{DEEPEST_QUEUE, Group, Listed};
pub use pfc::mac_control;
pub use proxy_cn::{claim, flow_ports, proxy_cn};
pub use roce::{OptionPresence, RoceAt, info, roce, with_remark};
pub use summary::{gist, summary};
pub use wan_fcn::wan_fcn;

use crate::locate::{HeaderKind, ip_header};
use crate::names::{F, P};
use crate::plan::{ColumnText, Mark, Plan, Range, range};
use fcn_observe::malformed::Malformed;
use fcn_wire::Profile;
use fcn_wire::claim::proves_roce;
use fcn_wire::frame::{Frame, LinkType};
use fcn_wire::icrc::Verdict;
use fcn_wire::{Findings, IcrcCheck, Rule};
use std::net::IpAddr;

/// The payload of a UDP datagram, or a header, as Wireshark passes it.
#[derive(Clone, Copy, Debug)]
pub struct PayloadAt {
    /// Offset in the data source.
    pub start: usize,
    /// Number of octets captured.
    pub captured: usize,
    /// Number of octets on the wire.
    pub reported: usize,
    /// Source and destination of the IP packet, if it is IP.
    pub addresses: Option<(IpAddr, IpAddr)>,
}

impl PayloadAt {
    const fn is_whole(&self) -> bool {
        self.captured == self.reported
    }

    fn whole(&self) -> Range {
        range(self.start, self.captured)
    }
}

/// The octets to be shown, and the parameters for reading them.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Data source as captured: the frame, or reassembled octets.
    pub bytes: &'a [u8],
    /// Length of the data source on the wire, in octets.
    pub wire_len: usize,
    /// Code points that apply.
    pub profile: &'a Profile,
    /// True if ICRCs are to be verified.
    pub check_icrc: bool,
    /// True if this is quoted in another packet (an ICMP error, a proxy notification).
    pub quoted: bool,
    /// Link type, if the data source is the frame itself: it is then parsed as every other tool
    /// does.
    pub link: Option<LinkType>,
}

impl<'a> Source<'a> {
    /// Parses the packet whose IP header begins at `start`; offsets are relative to `start`.
    fn frame(&self, start: usize) -> Frame<'a> {
        let bytes = self.bytes.get(start..).unwrap_or_default();
        if self.quoted {
            return quoted_frame(bytes, self.profile);
        }
        let wire_len = self.wire_len.saturating_sub(start);
        Frame::parse(bytes, wire_len, LinkType::RawIp, self.profile)
    }

    /// Returns the packet around a UDP payload, and the offset of its IP header.
    fn frame_of_payload(&self, place: &PayloadAt) -> Option<(usize, Frame<'a>)> {
        let (source, _) = place.addresses?;
        let (start, frame) =
            self.frame_around(place.start.checked_sub(8)?, HeaderKind::Udp, source)?;
        let found = frame.datagram()?.payload_at() + start;
        (found == place.start).then_some((start, frame))
    }

    /// Returns a UDP payload, as far as captured.
    fn payload(&self, place: &PayloadAt) -> &'a [u8] {
        self.slice(place.start, place.captured)
    }

    const fn icrc_check(&self) -> IcrcCheck {
        match self.check_icrc {
            true => IcrcCheck::On,
            false => IcrcCheck::Off,
        }
    }

    /// Returns the packet with the header `kind` at `place`, and the offset that the offsets of
    /// its layers are relative to: 0 for the frame, if the header belongs to the frame's innermost
    /// packet, otherwise the packet's own IP header.
    fn frame_around(
        &self,
        place: usize,
        kind: HeaderKind,
        source: IpAddr,
    ) -> Option<(usize, Frame<'a>)> {
        if let Some(link) = self.link.filter(|_| !self.quoted) {
            let mut frame = Frame::empty(self.profile);
            frame.reparse(self.bytes, self.wire_len, link);
            let is_there = match kind {
                HeaderKind::Udp => {
                    (frame.datagram()).is_some_and(|datagram| datagram.start == place)
                }
                HeaderKind::ExtensionHeader => is_extension_of_innermost(&frame, place),
            };
            if is_there {
                return Some((0, frame));
            }
        }
        let start = self.ip_header(place, kind, source)?;
        Some((start, self.frame(start)))
    }

    fn ip_header(&self, place: usize, kind: HeaderKind, source: IpAddr) -> Option<usize> {
        match source {
            IpAddr::V4(source) => ip_header(self.bytes, place, kind, &source.octets()),
            IpAddr::V6(source) => ip_header(self.bytes, place, kind, &source.octets()),
        }
    }

    fn slice(&self, start: usize, len: usize) -> &'a [u8] {
        let rest = self.bytes.get(start..).unwrap_or_default();
        rest.get(..len).unwrap_or(rest)
    }
}

/// Parses a quoted packet, from its IP header on. It is truncated by design: its own length fields
/// give the original length.
fn quoted_frame<'a>(packet: &'a [u8], profile: &'a Profile) -> Frame<'a> {
    let wire_len = usize::from(u16::MAX) + 40;
    Frame::parse(packet, wire_len, LinkType::RawIp, profile)
}

/// Returns true if the extension header at `place` belongs to the innermost packet, even if the
/// packet does not contain all of it.
fn is_extension_of_innermost(frame: &Frame<'_>, place: usize) -> bool {
    (frame.ip()).is_some_and(|ip| ip.start < place && place <= ip.payload)
}

/// Work left for the caller after the plan of a message at one of our ports has been carried out.
#[derive(Clone, Copy, Debug)]
pub struct MessageResult {
    /// Text for the Info column.
    pub info: ColumnText,
    /// Offset of the invoking packet in the payload, and true if it is IPv6.
    pub invoking: Option<(usize, bool)>,
    /// Number of octets of the payload that were needed, but not captured.
    pub missing: Option<usize>,
}

impl MessageResult {
    const fn new(info: ColumnText) -> Self {
        Self {
            info,
            invoking: None,
            missing: None,
        }
    }
}

/// Source and destination of a broken message, if known, for the Info column.
struct Endpoints(Option<(IpAddr, IpAddr)>);

impl core::fmt::Display for Endpoints {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some((source, destination)) => write!(f, " from {source} → {destination}"),
            None => Ok(()),
        }
    }
}

/// Opens the item of a whole message, or of a quoted one.
fn open_message(plan: &mut Plan, source: &Source<'_>, (protocol, quotation): (P, F), whole: Range) {
    plan.root();
    if source.quoted {
        plan.open(quotation, whole, Mark::Plain);
    } else {
        plan.protocol(protocol, whole, Mark::Plain);
    }
}

/// Plans the rules that IP and UDP around a message violate.
pub fn around(plan: &mut Plan, source: &Source<'_>, place: &PayloadAt) {
    if let Some((base, frame)) = source.frame_of_payload(place) {
        roce::around(plan, base, &frame);
    }
}

/// Returns the packet around a RoCEv2 payload, from its IP header on; `None` if the header is not
/// in front of it.
pub fn frame<'a>(source: &Source<'a>, place: &PayloadAt) -> Option<Frame<'a>> {
    source.frame_of_payload(place).map(|(_, frame)| frame)
}

/// Returns what the packet with the header `kind` at `place` was meant as, if it cannot be read as
/// a notification.
pub fn broken(
    data_source: &Source<'_>,
    place: usize,
    kind: HeaderKind,
    source: IpAddr,
) -> Option<Malformed> {
    let (_, frame) = data_source.frame_around(place, kind, source)?;
    let mut findings = Findings::new();
    frame.check(IcrcCheck::Off, &mut findings);
    Malformed::from_frame(&frame, &findings)
}

/// Returns the remark for the Info column if the UDP checksum makes the notified node drop the
/// message.
fn checksum_remark(frame: Option<&Frame<'_>>) -> &'static str {
    let mut findings = Findings::new();
    if let Some(frame) = frame {
        frame.check_enclosing_headers(&mut findings);
    }
    if findings.has(Rule::ProxyCnChecksum) || findings.has(Rule::WanFcnChecksum) {
        " [UDP checksum incorrect]"
    } else {
        ""
    }
}

/// Returns true if a packet to RoCEv2's port, whose source port belongs to another protocol, proves
/// to be RoCEv2.
pub fn is_roce(source: &Source<'_>, place: &RoceAt) -> bool {
    match frame(source, &place.at) {
        Some(frame) => frame.is_roce(),
        // Reassembled, so its headers are not in front of it.
        None => proves_roce(
            source.payload(&place.at),
            place.at.reported,
            place.option_presence != OptionPresence::No,
            || Verdict::Unchecked,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::fast_cnp::MAX_SHOWN;
    use super::*;
    use crate::plan::{Item, ItemKind, Op, Value};
    use proptest::prelude::*;

    /// Makes a plan, and returns its steps and texts.
    fn planned(make: impl FnOnce(&mut Plan)) -> (Vec<Op>, Vec<u8>) {
        let mut plan = Plan::default();
        make(&mut plan);
        // All texts that the steps refer to lie within the store and are followed by a NUL.
        for op in plan.ops() {
            match op {
                Op::Label(text) | Op::Append(text) | Op::Expert(.., text) if text.len > 0 => {
                    assert_eq!(plan.store()[(text.start + text.len) as usize], 0);
                }
                Op::Add(Item {
                    value: Value::Stored(text),
                    ..
                }) => {
                    assert!((text.start + text.len) as usize <= plan.store().len());
                }
                _ => {}
            }
        }
        (plan.ops().to_vec(), plan.store().to_vec())
    }

    fn source(bytes: &[u8], quoted: bool) -> Source<'_> {
        Source {
            bytes,
            wire_len: bytes.len(),
            profile: &Profile::DEFAULT,
            check_icrc: true,
            quoted,
            link: None,
        }
    }

    fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
        let at = |at: usize| -> Option<IpAddr> {
            Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?))
        };
        Some((at(8)?, at(24)?))
    }

    /// Returns an IPv6 packet from 2001:db8::1 to 2001:db8::a, with `header` in front of UDP and a
    /// CNP for QP 0x12.
    fn with_header(header: &[u8], next: u8) -> Vec<u8> {
        let mut cnp = vec![0x81, 0, 0xFF, 0xFF, 0x40, 0, 0, 0x12, 0, 0, 0, 0];
        cnp.extend([0; 20]);
        let udp = (8 + cnp.len()) as u8;
        let len = header.len() as u16 + u16::from(udp);
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend(len.to_be_bytes());
        packet.extend([next, 64]);
        for host in [1, 0xA] {
            packet.extend([0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        packet.extend(header);
        packet.extend([0, 0, 0x12, 0xB7, 0, udp, 0, 0]);
        packet.extend(cnp);
        packet
    }

    fn shown(packet: &[u8], quoted: bool) -> (Vec<Op>, Vec<u8>) {
        planned(|plan| {
            let place = OptionsAt {
                start: 40,
                hop_by_hop: packet[6] == 0,
                addresses: addresses(packet),
                roce_noted: None,
                is_last: true,
            };
            options(plan, &source(packet, quoted), &place);
        })
    }

    fn option1() -> Vec<u8> {
        let mut header = vec![17, 2, 0x9E, 16];
        header.extend([0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xB]);
        header.extend([1, 2, 0, 0]);
        header
    }

    #[test]
    fn quotations_are_not_messages() {
        let packet = with_header(&option1(), 60);
        let opens = |ops: &[Op], protocol| {
            ops.iter()
                .any(|op| matches!(op, Op::Add(item) if item.kind == protocol))
        };
        let (ops, _) = shown(&packet, false);
        assert!(
            opens(&ops, ItemKind::Protocol(P::FastCnp)) && !opens(&ops, ItemKind::Protocol(P::Cnp))
        );
        let (ops, _) = shown(&packet, true);
        assert!(!opens(&ops, ItemKind::Protocol(P::FastCnp)));
        assert!(opens(&ops, ItemKind::Field(F::FastQuoted)));
    }

    #[test]
    fn items_opened_in_an_option_are_closed_in_it() {
        let (ops, ..) = shown(&with_header(&option1(), 60), false);
        let mut depth = 0i32;
        for op in ops {
            match op {
                Op::Add(Item { opens: true, .. }) => depth += 1,
                Op::Close => depth -= 1,
                Op::Goto(_) => {
                    assert!(depth == 0, "still open: {depth}");
                    depth = 0;
                }
                _ => {}
            }
            assert!((0..7).contains(&depth));
        }
    }

    #[test]
    fn plans_of_the_fullest_headers_are_bounded() {
        // One option with as many one-word nodes as fit, with the field that takes the most steps.
        for (bits, words) in [(0x80u8, 57), (0x40, 57), (0x02, 57)] {
            let mut data = vec![0, 1, 0, 1, 0x08, 0, bits, 0, 0, 0];
            data.extend(vec![1; words * 4]);
            data.truncate(255 - 17);
            data.extend([9; 16]);
            let mut header = vec![17, 0, 1, 0, 0x9F, data.len() as u8];
            header.extend(data);
            while header.len() % 8 != 0 {
                header.push(0);
            }
            header[1] = (header.len() / 8 - 1) as u8;
            let (ops, _) = shown(&with_header(&header, 60), false);
            assert!((100..700).contains(&ops.len()), "{}", ops.len());
        }
        // As many options as fit, well-formed or not, with as many violated rules as possible.
        for one in [
            &option1()[2..20],
            &[0x9E, 0],
            &[0x9F, 0],
            &[0x1E, 0],
            &[0xBE, 1, 7],
        ] {
            let mut header = vec![17, 255];
            while header.len() + one.len() <= 2048 {
                header.extend(one);
            }
            header.resize(2048, 0);
            let (ops, store) = shown(&with_header(&header, 0), false);
            let most = 96 + 30 * MAX_SHOWN;
            assert!(ops.len() < most && store.len() < 16 * most, "{one:x?}");
        }
    }

    proptest! {
        #[test]
        fn anything_can_be_planned(
            header in proptest::collection::vec(any::<u8>(), 8..300),
            kinds in proptest::collection::vec(prop::sample::select(vec![0x9Eu8, 0x9F, 0x1E, 1, 0x31]), 0..6),
            cut in 0usize..400,
            quoted: bool,
            payload in 0usize..100,
        ) {
            let mut header = header;
            header.resize(header.len().div_ceil(8) * 8, 0);
            header[0] = 17;
            header[1] = (header.len() / 8 - 1) as u8;
            let mut at = 2;
            for kind in kinds {
                if at + 1 < header.len() {
                    header[at] = kind;
                    at += 2 + usize::from(header[at + 1]);
                }
            }
            let packet = with_header(&header, 60);
            let packet = &packet[..packet.len().saturating_sub(cut).max(42)];
            shown(packet, quoted);
            let at = payload.min(packet.len());
            let here = PayloadAt {
                start: at,
                captured: packet.len() - at,
                reported: packet.len() - at,
                addresses: addresses(packet),
            };
            planned(|plan| {
                let place = RoceAt { at: here, option_presence: OptionPresence::No };
                roce(plan, &source(packet, quoted), &place);
                let _ = info(&source(packet, quoted), &place);
            });
            if let Some(gist) = gist(&source(packet, quoted), &here, packet.get(40..48)) {
                planned(|plan| {
                    summary(plan, &Notified::alone(gist), here.whole());
                });
            }
            planned(|plan| {
                let cut = PayloadAt { reported: packet.len(), ..here };
                proxy_cn(plan, &source(packet, quoted), &cut);
            });
            planned(|plan| {
                wan_fcn(plan, &source(packet, quoted), &here);
            });
        }
    }
}
