//! Invariants that hold for any octets, one function per parser. libFuzzer searches for octets that
//! violate them; the corpus test of `fcn-wire` (`tests/corpus.rs`) runs the same functions over the
//! committed corpus.
//!
//! A function panics if its parser violates an invariant: it does not panic, reported ranges lie
//! within the input, iterators end, writing the parsed values restores the input, and a truncated
//! capture is never reported as a broken packet.

use fcn_wire::bth::{Bth, BthRepr, ExtendedHeader, Opcode, Roce};
use fcn_wire::claim::must_prove_roce;
use fcn_wire::cnp::{CNP_BODY_LEN, CNP_LEN, Cnp, CnpRepr};
use fcn_wire::fast_cnp::{FastCnpRepr, MAX_TRACE_LEN};
use fcn_wire::frame::{MAX_LAYERS, MAX_TUNNELS, Span, Upper};
use fcn_wire::icrc::{self, ICRC_LEN, Policy, Reading, Verdict};
use fcn_wire::ioam::{
    self, IoamOption, Node, NodeValues, OptType, TRACE_HEADER_LEN, Trace, TraceRepr, TraceType,
    Value,
};
use fcn_wire::ipv6_ext::{ExtHeaders, Ipv6Option, Options, OptionsWriter};
use fcn_wire::mad::{MAD_HEADER_LEN, MAD_LEN, Mad, MadRepr};
use fcn_wire::message::check_roce;
use fcn_wire::pfc::{self, PFC_DESTINATION, PFC_LEN, Pfc, PfcRepr};
use fcn_wire::pnc::bgp::{CharacteristicRepr, NhcRepr};
use fcn_wire::pnc::isis::{LspRepr, ReachKind, ReachRepr};
use fcn_wire::pnc::{
    self, Advertisement, Flooding, Level, Prefix, Protocol, bgp_update, ospf2 as v2, ospf3 as v3,
};
use fcn_wire::proxy_address::{OPTION_LEN, ProxyAddress};
use fcn_wire::proxy_cn::{Family, ProxyCn, ProxyCnRepr, invoking_room};
use fcn_wire::rdma_cm::{Cm, CmRepr, IpCm, Path, gid_to_ip};
use fcn_wire::rewrite::{PriorIcrc, Rules, VlanTag};
use fcn_wire::sflow;
use fcn_wire::wan_fcn::{MAX_FLOW_LABEL, WAN_FCN_LEN, WanFcn, WanFcnRepr};
use fcn_wire::{
    End, ErrorKind, Finding, Findings, Frame, IcrcCheck, Kind, Layer, LinkType, Message,
    Notification, Origin, Profile, Rule, Subject, Trimming,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A target: a function that must not panic for any octets.
pub type Target = fn(&[u8]);

/// All targets with their names, which are also the names of their folders in `corpus/`.
pub const ALL: &[(&str, Target)] = &[
    ("frame", frame),
    ("notification", notification),
    ("ipv6_options", ipv6_options),
    ("ioam", ioam),
    ("fast_cnp", fast_cnp),
    ("proxy_address", proxy_address),
    ("proxy_cn", proxy_cn),
    ("wan_fcn", wan_fcn),
    ("roce", roce),
    ("icrc", icrc),
    ("pfc", pfc),
    ("rdma_cm", rdma_cm),
    ("sflow", sflow),
    ("rewrite", rewrite),
    ("isis", isis),
    ("ospf2", ospf2),
    ("ospf3", ospf3),
    ("bgp", bgp),
    ("profile", profile),
];

/// The defaults, and profiles that need `force`: colliding code points, and code points of padding.
pub static PROFILES: [Profile; 4] = [
    Profile::DEFAULT,
    Profile {
        fast_cnp_option1: 0x1E,
        fast_cnp_option2: 0x31,
        proxy_cn_port: 4791,
        wan_fcn_port: 4789,
        ..Profile::DEFAULT
    },
    Profile {
        fast_cnp_option1: 0,
        fast_cnp_option2: 1,
        proxy_address_option: 1,
        ioam_option: 0,
        wan_fcn_port: 0,
        proxy_cn_port: 0,
        bgp_pnc_characteristic: 0,
        ..Profile::DEFAULT
    },
    Profile {
        fast_cnp_option1: 0xFE,
        fast_cnp_option2: 0x3E,
        proxy_address_option: 0xDE,
        rocev2_port: 1021,
        ..Profile::DEFAULT
    },
];

/// Link types that [`Frame`] opens.
pub const LINKS: [LinkType; 7] = [
    LinkType::Ethernet,
    LinkType::RawIp,
    LinkType::LinuxCooked,
    LinkType::LinuxCooked2,
    LinkType::Null,
    LinkType::InfiniBand,
    LinkType::Erf,
];

/// Number of octets before the frame in an input of [`frame`] and [`notification`]: link type,
/// profile, number of octets that the capture left out (2), and the position at which the frame is
/// cut again (in 256ths of its length).
pub const FRAME_PREFIX: usize = 5;

struct Capture<'a> {
    bytes: &'a [u8],
    wire_len: usize,
    link: LinkType,
    profile: &'static Profile,
    cuts: [usize; 3],
}

impl<'a> Capture<'a> {
    fn from_input(data: &'a [u8]) -> Option<Self> {
        let ([link, profile, missing @ .., cut], bytes) =
            data.split_first_chunk::<FRAME_PREFIX>()?;
        let missing = usize::from(u16::from_be_bytes(*missing));
        let cut = usize::from(*cut) * bytes.len() / 256;
        Some(Self {
            bytes,
            wire_len: bytes.len() + missing,
            link: LINKS[usize::from(*link) % LINKS.len()],
            profile: &PROFILES[usize::from(*profile) % PROFILES.len()],
            cuts: [cut, bytes.len() / 2, bytes.len().saturating_sub(1)],
        })
    }

    fn parse(&self, len: usize) -> Frame<'a> {
        Frame::parse(&self.bytes[..len], self.wire_len, self.link, self.profile)
    }
}

/// [`Frame`]: located layers lie at the stated offsets, within their carriers; a cut changes
/// nothing before the cut.
pub fn frame(data: &[u8]) {
    let Some(capture) = Capture::from_input(data) else {
        return;
    };
    let whole = capture.parse(capture.bytes.len());
    located(&whole);
    for len in capture.cuts {
        let cut = capture.parse(len.min(capture.bytes.len()));
        located(&cut);
        // What is left of a trimmed packet is needed to know its length.
        let mut spans = cut.spans().to_vec();
        for (span, uncut) in spans.iter_mut().zip(whole.spans()) {
            if is_trimmed(&whole) {
                span.end = uncut.end;
            }
        }
        assert!(
            whole.spans().starts_with(&spans),
            "{:?} is no beginning of {:?}",
            cut.spans(),
            whole.spans()
        );
        match (cut.end(), whole.end()) {
            (End::Cut { .. }, _) => {}
            (End::Malformed(_), End::Malformed(_)) => {}
            (cut, whole) => assert_eq!(cut, whole, "cut to {len}"),
        }
    }
    // The same octets with none left out: nothing is cut, except by a mirror.
    let short = Frame::parse(capture.bytes, 0, capture.link, capture.profile);
    located(&short);
    let cut = matches!(short.end(), End::Cut { .. }) || short.is_cut();
    assert!(!cut || is_cut_by_mirror(&short));
}

/// Returns true if a mirror truncated the frame, or a switch trimmed it: the length on the wire is
/// not the original one then.
fn is_cut_by_mirror(frame: &Frame<'_>) -> bool {
    frame.is_truncated_copy()
        || is_trimmed(frame)
        || frame.spans().iter().any(|span| truncates(frame, span))
}

/// Returns true if a switch trimmed the frame and left its lengths as they were.
fn is_trimmed(frame: &Frame<'_>) -> bool {
    frame.trimming() == Some(Trimming::Lengths)
}

/// Returns true if the layer is a mirror's header that indicates truncation.
fn truncates(frame: &Frame<'_>, span: &Span) -> bool {
    let flags = frame.bytes().get(span.start + 2);
    span.layer == Layer::Erspan && flags.is_some_and(|octet| octet & 4 != 0)
}

fn located(frame: &Frame<'_>) {
    let bytes = frame.bytes();
    assert!(frame.wire_len() >= bytes.len());
    assert!(frame.spans().len() <= MAX_LAYERS);
    let (mut at, mut limit, mut tunnels) = (0, frame.wire_len(), 0);
    let wire_len = if is_cut_by_mirror(frame) {
        usize::MAX / 2
    } else {
        limit
    };
    for span in frame.spans() {
        assert!(at <= span.start && span.start < span.header_end, "{span:?}");
        let is_longer = (frame.is_truncated_copy() || is_trimmed(frame))
            && matches!(span.layer, Layer::Ipv4 | Layer::Ipv6);
        assert!(span.header_end <= span.end, "{span:?}");
        assert!(span.end <= limit || is_longer, "{span:?}");
        assert!(span.header_end <= bytes.len(), "{span:?} was not captured");
        (at, limit) = (span.header_end, span.end);
        if truncates(frame, span) {
            limit = wire_len;
        }
        tunnels += usize::from(matches!(span.layer, Layer::Ipv4 | Layer::Ipv6));
    }
    assert!(tunnels <= MAX_TUNNELS);
    match frame.end() {
        End::Complete | End::Fragment { .. } => {}
        End::Cut { need, have, .. } => {
            assert!(have == bytes.len() && need > have && need <= wire_len);
        }
        End::Malformed(e) => {
            assert!(e.offset <= wire_len, "{e}");
            assert!(!e.to_string().is_empty());
            if let ErrorKind::Short { need, have } = e.kind {
                assert!(need > have && e.offset + have <= wire_len, "{e}");
            }
        }
    }
    let innermost = frame.spans().iter().rfind(|span| match span.layer {
        Layer::Ipv4 | Layer::Ipv6 | Layer::Lrh => true,
        Layer::Grh => frame.is_roce_v1(),
        _ => false,
    });
    assert_eq!(innermost.is_some(), frame.ip().is_some());
    if let (Some(span), Some(ip)) = (innermost, frame.ip()) {
        assert_eq!((span.start, span.end), (ip.start, ip.end));
        assert!(span.header_end <= ip.payload && ip.payload <= bytes.len());
        assert_eq!(span.layer == Layer::Ipv4, ip.source.is_ipv4());
        assert!(ip.flow_label <= MAX_FLOW_LABEL && ip.ecn() <= 3);
        for header in frame.options_headers() {
            assert!(header.start >= span.header_end);
            let end = header.start + header.bytes.len();
            assert_eq!(bytes.get(header.start..end), Some(header.bytes));
            assert!(header.readable().count() <= header.bytes.len());
        }
    }
    let rest = |at: usize, found: &[u8]| assert_eq!(bytes.get(at..at + found.len()), Some(found));
    match frame.upper() {
        Upper::Udp(datagram) => {
            rest(datagram.payload_at(), datagram.payload);
            assert!(datagram.payload.len() <= datagram.payload_len);
            assert!(datagram.payload_at() + datagram.payload_len <= datagram.ip.end);
            assert_eq!(Some(&datagram.ip), frame.ip());
            assert_eq!(datagram.is_whole(), !frame.is_cut());
        }
        Upper::Bgp(at, found)
        | Upper::IsIs(at, found)
        | Upper::MacControl(at, found, _)
        | Upper::Cnm(at, found) => {
            rest(*at, found);
        }
        Upper::InfiniBand(packet) => {
            rest(packet.ip.payload, packet.payload);
            assert!(packet.payload.len() <= packet.payload_len);
            assert_eq!(packet.is_whole(), !frame.is_cut());
            assert_eq!(Some(&packet.ip), frame.ip());
        }
        Upper::Ospf(ip, found) => rest(ip.payload, found),
        Upper::Other => {}
    }
    if let Verdict::Good(_) | Verdict::Bad { .. } = frame.verify_icrc() {
        assert!(frame.is_roce() && !frame.is_cut());
    }
    if let Some((at, trace)) = frame.ioam_trace() {
        rest(at, trace.bytes());
    }
}

/// Interpretation of a [`Frame`]: message, findings and notification agree, and a cut adds no
/// defect.
pub fn notification(data: &[u8]) {
    let Some(capture) = Capture::from_input(data) else {
        return;
    };
    let whole = capture.parse(capture.bytes.len());
    let (findings, notification) = findings_and_notification(&whole);
    for len in capture.cuts {
        let cut = capture.parse(len.min(capture.bytes.len()));
        let (of_cut, notification_of_cut) = findings_and_notification(&cut);
        // If a tunnel is cut inside, the outer packet is the innermost that is left. The start of a
        // BGP message in a segment is a guess that depends on the following octets; so is the owner
        // of a datagram to a port shared by RoCEv2 and a message, or of one that only its ICRC
        // shows to be RoCEv2.
        let start = |frame: &Frame<'_>| frame.ip().map(|ip| ip.start);
        let one_port = capture.profile.proxy_cn_port == capture.profile.rocev2_port;
        let needs_icrc = cut.datagram().is_some_and(|datagram| {
            must_prove_roce(datagram.source_port, capture.profile.rocev2_port)
        });
        let is_guess = one_port || needs_icrc || matches!(cut.upper(), Upper::Bgp(..));
        let same = start(&cut) == start(&whole) && !is_guess;
        if same && findings.dropped() == 0 {
            // For a frame that is malformed further on, only that is reported, and for a datagram
            // with a tunnel no length; the position of reserved bits depends on a message's family.
            let is_malformed = matches!(whole.end(), End::Malformed(_));
            let is_tunnel = whole.spans().len() > cut.spans().len();
            let named = |f: &&Finding| match f.rule {
                Rule::PacketLength => !is_malformed && !is_tunnel,
                rule => rule != Rule::ProxyCnReserved,
            };
            for finding in of_cut.as_slice().iter().filter(named) {
                assert!(
                    findings
                        .into_iter()
                        .any(|f| (f.rule, f.offset) == (finding.rule, finding.offset)),
                    "cut to {len}: {finding}, of the whole: {findings:?}"
                );
            }
        }
        // The family of a proxy notification can depend on a part that was cut off.
        if let Some(n) = notification_of_cut.filter(|n| n.kind != Kind::ProxyCn && !needs_icrc) {
            assert_eq!(Some(n), notification, "cut to {len}");
        }
    }
}

fn findings_and_notification(frame: &Frame<'_>) -> (Findings, Option<Notification>) {
    let (mut without, mut findings) = (Findings::new(), Findings::new());
    frame.check(IcrcCheck::Off, &mut without);
    frame.check(IcrcCheck::On, &mut findings);
    within(&findings, frame.wire_len());
    assert!(
        without
            .into_iter()
            .all(|finding| findings.into_iter().any(|f| f == finding)),
        "{without:?} {findings:?}"
    );
    let notification = Notification::from_frame(frame);
    if let Some(n) = &notification {
        assert!(n.to_string().contains("from"));
        assert!(n.level.is_none_or(|level| level <= 7));
        assert!(
            n.hops
                .is_none_or(|hops| usize::from(hops) <= frame.bytes().len())
        );
        assert_eq!(frame.ip().map(|ip| ip.source), Some(n.notifier));
    }
    let kind = notification.map(|n| n.kind);
    match frame.message() {
        Message::Cnp(cnp) => {
            assert_eq!(kind, Some(Kind::Cnp));
            let subject = notification.map(|n| n.subject);
            assert_eq!(subject, Some(Subject::SenderQp(cnp.dest_qp())));
        }
        Message::FastCnp(message) => {
            let option = message.option_at();
            let end = option + message.option.len();
            assert_eq!(frame.bytes().get(option), Some(&message.option.kind));
            assert!(end <= message.header.start + message.header.bytes.len());
            // A CNP cut off after its BTH is still recognised.
            let is_cut = frame
                .datagram()
                .is_some_and(|datagram| !datagram.is_whole());
            assert!(kind.is_none() || message.parsed.is_ok() && (message.cnp.is_some() || is_cut));
            assert!(kind.is_some() || message.parsed.is_err() || message.cnp.is_none());
            if let (Some(n), Ok(parsed)) = (&notification, message.parsed) {
                let receiver = IpAddr::V6(parsed.original_destination());
                assert_eq!(n.origin == Origin::Receiver, n.notifier == receiver);
                assert_eq!(n.kind == Kind::FastCnp1, parsed.number() == 1);
            }
        }
        Message::ProxyCn(_) => assert_eq!(kind, Some(Kind::ProxyCn)),
        Message::WanFcn(_) => assert_eq!(kind, Some(Kind::WanFcn)),
        Message::Roce(bth, _) => {
            let is_cut = frame
                .datagram()
                .is_some_and(|datagram| !datagram.is_whole());
            let opcode = match frame.upper() {
                Upper::InfiniBand(_) => Opcode::IB_CNP,
                _ => Opcode::CNP,
            };
            let may_tell = is_cut || opcode == Opcode::IB_CNP;
            assert!(
                kind.is_none() || kind == Some(Kind::Cnp) && may_tell && bth.opcode() == opcode
            );
        }
        Message::RdmaCm(..) | Message::Pfc(_) | Message::Cnm(_) | Message::Other => {
            assert_eq!(kind, None);
        }
    }
    (findings, notification)
}

fn within(findings: &Findings, len: usize) {
    for finding in findings {
        assert!(finding.offset + finding.len <= len, "{finding} of {len}");
        assert!(!finding.to_string().is_empty());
    }
}

/// Extension headers, and the options of an options header: parsed and written again.
pub fn ipv6_options(data: &[u8]) {
    let mut at = 40;
    let mut headers = ExtHeaders::new(data);
    for header in headers.by_ref() {
        match header {
            Ok(header) => {
                assert_eq!(header.start, at);
                assert!(header.len >= 8);
                at += header.len;
                assert!(at <= data.len());
            }
            Err(e) => assert!(e.offset == at || data.len() < 40, "{e}"),
        }
    }
    assert!(data.len() < 40 || headers.upper_start() == at);

    // The same octets as an options header.
    for (layer, header) in [(Layer::HopByHop, data), (Layer::DestinationOptions, data)] {
        let mut at = 2;
        let mut options = Vec::new();
        for option in Options::new(layer, header) {
            match option {
                Ok(option) => {
                    assert_eq!(option.offset, at);
                    at += option.len();
                    assert!(at <= header.len() && !option.is_empty());
                    options.push(option);
                }
                Err(e) => assert!(e.offset >= at && e.offset < header.len(), "{e}"),
            }
        }
        options.retain(|option| !option.is_padding());
        rewritten(layer, &options);
    }
}

fn rewritten(layer: Layer, options: &[Ipv6Option<'_>]) {
    let mut out = [0xEE; 512];
    let mut writer = OptionsWriter::new(layer, &mut out);
    let mut count = 0;
    for option in options {
        let align = [(1, 0), (4, 2), (4, 0), (8, 2)][usize::from(option.kind) % 4];
        if writer.option(align, option.kind, &[option.data]).is_err() {
            break;
        }
        count += 1;
    }
    let Ok(len) = writer.finish(17) else { return };
    assert_eq!(len % 8, 0);
    let again: Vec<_> = Options::new(layer, &out[..len])
        .map(|option| option.expect("what was written can be read"))
        .filter(|option| !option.is_padding())
        .collect();
    assert_eq!(again.len(), count);
    for (one, other) in again.iter().zip(options) {
        assert_eq!((one.kind, one.data), (other.kind, other.data));
    }
}

/// IOAM option and trace; the first octet selects nothing beyond the option's own second octet.
pub fn ioam(data: &[u8]) {
    let Ok(option) = IoamOption::parse(data) else {
        assert!(data.len() < 2);
        return;
    };
    assert_eq!([&option.prefix()[..], option.body].concat(), data);
    let mut findings = Findings::new();
    option.check(&mut findings);
    within(&findings, data.len());
    let Some(trace) = option.trace() else {
        assert!(!option.opt_type.is_trace());
        return;
    };
    let Ok(trace) = trace else {
        assert!(option.body.len() < TRACE_HEADER_LEN && findings.has(Rule::IoamMalformed));
        return;
    };
    let bytes = trace.bytes();
    assert_eq!(
        TraceRepr::parse(&trace).to_bytes(),
        bytes[..TRACE_HEADER_LEN]
    );

    let mut at = TRACE_HEADER_LEN + trace.free_len().unwrap_or(0);
    let mut failed = false;
    for node in trace.nodes() {
        assert!(!failed, "an error is the last item");
        match node {
            Ok(node) => {
                assert_eq!(node.offset, at);
                at += node.bytes.len();
                assert_eq!(bytes.get(node.offset..at), Some(node.bytes));
                node_rewritten(&node, trace.trace_type());
            }
            Err(e) => {
                failed = true;
                assert!(e.offset < bytes.len(), "{e}");
            }
        }
    }
    assert!(failed || at == bytes.len());
    // Every defect of the list has its finding.
    let broken = [
        Rule::IoamRemaining,
        Rule::IoamNodeLen,
        Rule::IoamNodeLenZero,
        Rule::IoamRagged,
    ];
    assert!(
        !failed || broken.iter().any(|rule| findings.has(*rule)),
        "{findings:?}"
    );
    assert_eq!(
        findings.has(Rule::IoamUndefined),
        trace.trace_type().has_undefined()
    );
    filled(&trace);
}

/// Parses a node's fields, and writes them again if that can yield the same octets.
fn node_rewritten(node: &Node<'_>, trace_type: TraceType) {
    let mut values = NodeValues::default();
    let mut at = node.offset;
    for field in node.fields() {
        assert_eq!(field.offset, at);
        at += field.len;
        match field.value {
            Value::HopLimitNodeId { hop_limit, node_id } => {
                (values.hop_limit, values.node_id) = (hop_limit, node_id.into());
            }
            Value::Interfaces { ingress, egress } => {
                (values.ingress, values.egress) = (ingress.into(), egress.into());
            }
            Value::TimestampSeconds(value) => values.seconds = value,
            Value::TimestampFraction(value) => values.fraction = value,
            Value::TransitDelay(value) => values.transit_delay = value,
            Value::NamespaceData(value) => values.namespace_data = value.into(),
            Value::QueueDepth(value) => values.queue_depth = value,
            Value::ChecksumComplement(value) => values.checksum_complement = value,
            Value::HopLimitNodeIdWide { hop_limit, node_id } => {
                (values.hop_limit, values.node_id) = (hop_limit, node_id);
            }
            Value::InterfacesWide { ingress, egress } => {
                (values.ingress, values.egress) = (ingress, egress);
            }
            Value::NamespaceDataWide(value) => values.namespace_data = value,
            Value::BufferOccupancy(value) => values.buffer_occupancy = value,
            Value::Undefined(_) => {}
            Value::Opaque { schema_id, data } => values.opaque = (schema_id, data),
        }
    }
    assert_eq!(at, node.offset + node.bytes.len());
    // A value in both its short and its wide form, or in an undefined field, cannot be restored.
    let twice = [(0, 8), (1, 9), (5, 10)]
        .iter()
        .any(|(short, wide)| trace_type.has(*short) && trace_type.has(*wide));
    if !twice && !trace_type.has_undefined() {
        let mut out = vec![0; values.buffer_len(trace_type)];
        assert_eq!(values.emit(trace_type, &mut out), Ok(node.bytes.len()));
        assert_eq!(out, node.bytes);
    }
}

/// Lets one more node fill in its data: it becomes the first of the list, and nothing else changes.
fn filled(trace: &Trace<'_>) {
    if trace.opt_type() != OptType::Preallocated {
        return;
    }
    let mut bytes = trace.bytes().to_vec();
    let values = NodeValues {
        node_id: 0xAB_CDEF,
        ..NodeValues::default()
    };
    let Ok(done) = ioam::fill_preallocated(&mut bytes, &values) else {
        assert!(trace.free_len().is_err());
        return;
    };
    let after = Trace::new_checked(OptType::Preallocated, &bytes).expect("as long as before");
    let (free, left) = (
        trace.free_len().expect("it was readable"),
        after.free_len().expect("it still is"),
    );
    if done {
        assert_eq!(free - left, values.buffer_len(trace.trace_type()));
        assert_eq!(bytes[..2], trace.bytes()[..2]);
        assert_eq!(
            bytes[4..TRACE_HEADER_LEN + left],
            trace.bytes()[4..TRACE_HEADER_LEN + left]
        );
        assert_eq!(
            bytes[TRACE_HEADER_LEN + free..],
            trace.bytes()[TRACE_HEADER_LEN + free..]
        );
    } else {
        let none = values.buffer_len(trace.trace_type()) == 0;
        assert!(left == free && (none || after.overflow()));
        assert_eq!(bytes[4..], trace.bytes()[4..]);
    }
}

/// A Fast CNP option: the first octet is its type, the second selects its header and position, the
/// rest is its data.
pub fn fast_cnp(data: &[u8]) {
    let [kind, place, data @ ..] = data else {
        return;
    };
    let data = &data[..data.len().min(255)];
    let layer = [Layer::DestinationOptions, Layer::HopByHop][usize::from(*place >> 7)];
    let (kind, offset) = (*kind, 2 + usize::from(*place & 7));
    let option = Ipv6Option { kind, offset, data };
    for profile in &PROFILES {
        let mut findings = Findings::new();
        FastCnpRepr::check(&option, layer, profile, &mut findings);
        within(&findings, offset + 2 + data.len());
        let Some(parsed) = FastCnpRepr::parse(kind, data, profile) else {
            assert!(findings.is_empty() && !profile.is_fast_cnp(kind));
            continue;
        };
        let Ok(option) = parsed else {
            assert!(findings.has(Rule::FastCnpMalformed) || findings.has(Rule::FastCnpLength1));
            continue;
        };
        let at = option.address_at(data.len());
        assert_eq!(
            data.get(at..at + 16),
            Some(&option.original_destination().octets()[..])
        );
        let mut out = vec![0xEE; option.header_len()];
        let mut writer = OptionsWriter::new(Layer::DestinationOptions, &mut out);
        option.emit(profile, &mut writer).expect("room enough");
        assert_eq!(writer.finish(17), Ok(option.header_len()));
        let emitted = Options::new(Layer::DestinationOptions, &out)
            .flatten()
            .find(|option| option.kind == kind && !option.is_padding());
        if let Some(emitted) = emitted {
            assert_eq!(
                FastCnpRepr::parse(kind, emitted.data, profile),
                Some(Ok(option))
            );
            if option.number() == 2 || data.len() == 16 {
                assert_eq!(emitted.data, data);
            }
        }
        if let FastCnpRepr::Option2 { ioam, .. } = option
            && let Some(Ok(trace)) = ioam.trace()
        {
            let address = option.original_destination();
            let (again, left_out) = FastCnpRepr::for_data_packet(address, Some(trace));
            assert!(!left_out && trace.bytes().len() <= MAX_TRACE_LEN);
            assert_eq!(again.data_len(), data.len());
        }
    }
}

/// The proxy address option, laid out as in [`fast_cnp`].
pub fn proxy_address(data: &[u8]) {
    let [kind, place, data @ ..] = data else {
        return;
    };
    let data = &data[..data.len().min(255)];
    let layer = [Layer::DestinationOptions, Layer::HopByHop][usize::from(*place >> 7)];
    let (kind, offset) = (*kind, 2 + usize::from(*place & 7));
    let option = Ipv6Option { kind, offset, data };
    for profile in &PROFILES {
        let mut findings = Findings::new();
        ProxyAddress::check(&option, layer, profile, &mut findings);
        within(&findings, offset + 2 + data.len());
        match ProxyAddress::parse(kind, data, profile) {
            None => assert!(findings.is_empty() && kind != profile.proxy_address_option),
            Some(Err(_)) => {
                assert!(data.len() < OPTION_LEN && findings.has(Rule::ProxyAddressLength));
            }
            Some(Ok(address)) => {
                let mut out = [0xEE; 24];
                let mut writer = OptionsWriter::new(Layer::DestinationOptions, &mut out);
                address.emit(profile, &mut writer).expect("room enough");
                assert_eq!(writer.finish(17), Ok(24));
                assert_eq!(out[4..20], data[..OPTION_LEN]);
            }
        }
    }
}

/// The proxy notification; the first octet selects the outer header, its top bits the length of the
/// outer packet.
pub fn proxy_cn(data: &[u8]) {
    let Some((selector, data)) = data.split_first() else {
        return;
    };
    let outer = [Family::V4, Family::V6][usize::from(selector & 1)];
    let outer_len = data.len() + usize::from(*selector >> 1) * 16;
    let Ok(message) = ProxyCn::new_checked(data, outer) else {
        assert!(data.len() < Family::V6.header_len());
        return;
    };
    let mut findings = Findings::new();
    message.check(outer, outer_len, &mut findings);
    within(&findings, data.len());
    let repr = ProxyCnRepr::parse(&message);
    let mut out = vec![0xEE; repr.buffer_len()];
    repr.emit(&mut out).expect("one family, room enough");
    assert_eq!(out, data);
    let family = message.family();
    assert_eq!(
        message.invoking_at() + message.invoking_packet().len(),
        data.len()
    );
    let room = invoking_room(outer, 48, family);
    assert!(room + family.header_len() + 48 <= outer.max_packet());
}

/// The WAN FCN.
pub fn wan_fcn(data: &[u8]) {
    let Ok(message) = WanFcn::new_checked(data) else {
        assert!(data.len() < WAN_FCN_LEN);
        return;
    };
    let mut findings = Findings::new();
    message.check(&mut findings);
    within(&findings, data.len());
    assert!(message.flow_label() <= MAX_FLOW_LABEL);
    assert_eq!(WanFcnRepr::parse(&message).to_bytes(), data[..WAN_FCN_LEN]);
}

/// BTH, extended headers and CNP.
pub fn roce(data: &[u8]) {
    let mut findings = Findings::new();
    check_roce(data, &mut findings);
    within(&findings, data.len());
    let Ok(bth) = Bth::new_checked(data) else {
        assert!(data.len() < 12 && findings.has(Rule::RoceMalformed));
        return;
    };
    assert_eq!(BthRepr::parse(&bth).to_bytes(), data[..12]);
    let _ = format!("{} {:?}", bth.opcode(), bth.opcode().transport());

    match Roce::new_checked(data) {
        Ok(packet) => {
            let opcode = bth.opcode();
            let extended = opcode.extended_len().unwrap_or(0);
            let parts = 12 + extended + packet.payload().len() + usize::from(bth.pad()) + ICRC_LEN;
            assert_eq!(parts, data.len());
            let has = |which| opcode.extended_headers().unwrap_or(&[]).contains(&which);
            let found = [
                (packet.reth().is_some(), ExtendedHeader::Reth),
                (packet.aeth().is_some(), ExtendedHeader::Aeth),
                (packet.deth().is_some(), ExtendedHeader::Deth),
                (packet.immediate().is_some(), ExtendedHeader::ImmDt),
            ];
            assert!(found.iter().all(|(found, which)| *found == has(*which)));
            if let Some(reth) = packet.reth() {
                assert_eq!(data[12..28], reth.to_bytes());
            }
            if let Some(aeth) = packet.aeth() {
                assert_eq!(data[12..16], aeth.to_bytes());
            }
            if let Some(deth) = packet.deth() {
                let mut expected = deth.to_bytes();
                expected[4] = data[16];
                assert_eq!(data[12..20], expected);
            }
            assert_eq!(packet.icrc().to_le_bytes(), data[data.len() - 4..]);
        }
        Err(e) => assert!(matches!(e.kind, ErrorKind::Short { need, have } if need > have)),
    }
    match Cnp::new_checked(data) {
        Ok(cnp) => {
            assert_eq!(data.len(), CNP_LEN);
            assert_eq!(CnpRepr::parse(&cnp).to_bytes(), data[..CNP_BODY_LEN]);
            assert_eq!(cnp.icrc().to_le_bytes(), data[CNP_BODY_LEN..]);
        }
        Err(_) => assert!(bth.opcode() != Opcode::CNP || findings.has(Rule::CnpMalformed)),
    }
}

/// The ICRC of the packet after the first two octets, one of which selects the start of UDP.
pub fn icrc(data: &[u8]) {
    let [udp, _, packet @ ..] = data else {
        return;
    };
    let udp = usize::from(*udp);
    let _ = icrc::verify(packet, udp);
    let Some((covered, _)) = packet.split_last_chunk::<ICRC_LEN>() else {
        return;
    };
    let v6 = covered.first().is_some_and(|octet| octet >> 4 == 6);
    for reading in Reading::ALL {
        let Some(crc) = icrc::compute(covered, udp, reading) else {
            assert!(
                reading == Reading::Rewritten || icrc::verify(packet, udp) == Verdict::Unchecked
            );
            continue;
        };
        let mut filled = packet.to_vec();
        assert!(icrc::fill(&mut filled, udp, Policy::Compute(reading)));
        assert_eq!(filled[covered.len()..], crc.to_le_bytes());
        assert!(matches!(icrc::verify(&filled, udp), Verdict::Good(_)));
        if reading == Reading::Covered {
            assert_eq!(crc, divided(covered, udp));
        }
        // Fields that a switch may change do not matter.
        let mut changed = covered.to_vec();
        let masked: &[usize] = if v6 { &[1, 2, 3, 7] } else { &[1, 8, 10, 11] };
        for at in masked.iter().copied().chain([udp + 6, udp + 7, udp + 12]) {
            // Soft-RoCE takes the octets after IPv6 for UDP, so it masks different ones.
            if reading != Reading::SoftRoce || udp == 40 || at < 40 || at >= udp + 8 {
                changed[at] ^= 0x5A;
            }
        }
        assert_eq!(icrc::compute(&changed, udp, reading), Some(crc));
    }
    let mut corrupt = packet.to_vec();
    if icrc::fill(&mut corrupt, udp, Policy::Corrupt) {
        assert_ne!(
            icrc::verify(&corrupt, udp),
            Verdict::Good(Some(Reading::Covered))
        );
        assert_ne!(icrc::verify(&corrupt, udp), Verdict::Good(None));
    }
}

/// Computes the ICRC by its definition, bit by bit, in the default reading.
fn divided(covered: &[u8], udp: usize) -> u32 {
    let mut copy = covered.to_vec();
    if copy[0] >> 4 == 6 {
        copy[0] |= 0x0F;
        copy[1..4].fill(0xFF);
        copy[7] = 0xFF;
        let headers = ExtHeaders::new(&covered[..udp]);
        for header in headers.map_while(Result::ok) {
            if !matches!(header.layer, Layer::HopByHop | Layer::DestinationOptions) {
                continue;
            }
            let bytes = &covered[header.start..header.start + header.len];
            for option in Options::new(header.layer, bytes).map_while(Result::ok) {
                if option.may_change() {
                    let at = header.start + option.offset + 2;
                    copy[at..at + option.data.len()].fill(0xFF);
                }
            }
        }
    } else {
        for at in [1, 8, 10, 11] {
            copy[at] = 0xFF;
        }
    }
    copy[udp + 6..udp + 8].fill(0xFF);
    copy[udp + 12] = 0xFF;
    let mut crc = u32::MAX;
    for octet in [0xFF; 8].iter().chain(&copy) {
        crc ^= u32::from(*octet);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
        }
    }
    !crc
}

/// Priority-based flow control.
pub fn pfc(data: &[u8]) {
    let mut findings = Findings::new();
    let found = pfc::inspect(data, false, PFC_DESTINATION, &mut findings);
    within(&findings, data.len());
    let mut of_cut = Findings::new();
    assert_eq!(
        pfc::inspect(data, true, PFC_DESTINATION, &mut of_cut),
        found
    );
    assert!(!of_cut.has(Rule::PfcMalformed));
    let Some(view) = found else {
        assert!(Pfc::new_checked(data).is_err());
        return;
    };
    assert!(view.enabled().count() <= 8);
    assert!(
        view.enabled()
            .all(|(class, time)| view.time(class) == Some(time))
    );
    assert_eq!(PfcRepr::parse(&view).to_bytes(), data[..PFC_LEN]);
}

/// Management datagrams and RDMA CM.
pub fn rdma_cm(data: &[u8]) {
    let _ = IpCm::parse(data).map(|header| {
        let out = header.to_bytes().expect("one family");
        assert_eq!(IpCm::parse(&out), Ok(header));
    });
    let Ok(mad) = Mad::new_checked(data) else {
        assert!(data.len() < MAD_HEADER_LEN && Cm::new_lax(data).is_err());
        return;
    };
    assert!(mad.data().len() <= MAD_LEN - MAD_HEADER_LEN);
    let out = MadRepr::parse(&mad).to_bytes();
    assert_eq!(out[..18], data[..18]);
    assert_eq!(out[20..], data[20..MAD_HEADER_LEN]);

    let lax = Cm::new_lax(data);
    let strict = Cm::new_checked(data);
    assert!(strict.is_err() || strict == lax);
    if let Ok(view) = lax {
        let _ = (view.kind(), view.local_comm_id(), view.remote_comm_id());
        let _ = view.local_qpn().inspect(|qpn| assert!(*qpn < 1 << 24));
        if let Cm::ConnectRequest(request) = &view {
            let (primary, alternate) = (request.primary(), request.alternate());
            let _ = (
                gid_to_ip(primary.local_gid),
                gid_to_ip(primary.remote_gid),
                alternate == Path::default(),
            );
            let _ = (
                request.ip_cm(),
                request.path_mtu().octets(),
                request.service_id().to_string(),
            );
        }
    }
    if let Some(cm) = strict.ok().and_then(|view| CmRepr::parse(&view)) {
        let out = cm.to_bytes().expect("what was read can be written");
        let again = Cm::new_checked(&out).expect("so can what was written be read");
        assert_eq!(CmRepr::parse(&again), Some(cm));
    }
}

/// Walks a routing message, whole and cut, and checks the invariants of all four protocols.
fn walked(protocol: Protocol, data: &[u8]) {
    let (findings, found) = walk(protocol, data, data.len());
    let Some((advertisements, _)) = found else {
        return;
    };
    // Defects in the missing rest of a message are not reported.
    for len in [
        data.len() / 2,
        data.len() * 3 / 4,
        data.len().saturating_sub(1),
    ] {
        let (of_cut, found) = walk(protocol, &data[..len], data.len());
        if findings.dropped() == 0 && protocol != Protocol::Bgp {
            for finding in &of_cut {
                assert!(
                    findings
                        .into_iter()
                        .any(|f| (f.rule, f.offset) == (finding.rule, finding.offset)),
                    "cut to {len}: {finding}, of the whole: {findings:?}"
                );
            }
        }
        if let Some((cut, _)) = found {
            assert!(
                cut <= advertisements || protocol == Protocol::Bgp,
                "cut to {len}"
            );
        }
    }
}

/// Returns the findings of a walk over a message of `wire_len` octets, the number of prefixes, and
/// the number of prefixes with PNC; `None` if it cannot be walked.
fn walk(protocol: Protocol, data: &[u8], wire_len: usize) -> (Findings, Option<(usize, usize)>) {
    let mut findings = Findings::new();
    let walk = pnc::walk(protocol, data, wire_len, &Profile::DEFAULT);
    let Ok(Some(mut walk)) = walk else {
        return (findings, None);
    };
    let plain: Vec<Advertisement<'_>> = walk.clone().take(data.len() + 1).collect();
    assert!(plain.len() <= data.len(), "bounded by the octets");
    let mut checked = Vec::new();
    while let Some(found) = walk.next_checked(&mut findings) {
        assert_eq!(found.protocol(), protocol);
        assert!(found.offset < data.len());
        if let Some(carrier) = found.carrier {
            let end = carrier.offset + carrier.octets.len();
            assert_eq!(data.get(carrier.offset..end), Some(carrier.octets));
        }
        if let Some(at) = found.flag_offset {
            assert!(at < data.len());
        }
        assert!(!found.pnc || (found.carrier.is_some() && found.flag_offset.is_some()));
        if let Some(prefix) = found.prefix {
            assert_eq!(Prefix::new(prefix.address(), prefix.bits()), Some(prefix));
        }
        checked.push(found);
    }
    assert_eq!(plain, checked);
    within(&findings, wire_len);
    let with = checked.iter().filter(|found| found.pnc).count();
    (findings, Some((checked.len(), with)))
}

/// Values for an emitter, drawn from the octets of an input; zeros after its end.
struct Draw<'a>(&'a [u8]);

impl Draw<'_> {
    fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn octets<const N: usize>(&mut self) -> [u8; N] {
        core::array::from_fn(|_| self.octet())
    }

    fn prefix(&mut self, v6: bool) -> Prefix {
        let bits = self.octet();
        let (address, most) = if v6 {
            (IpAddr::V6(Ipv6Addr::from(self.octets::<16>())), 129)
        } else {
            (IpAddr::V4(Ipv4Addr::from(self.octets::<4>())), 33)
        };
        Prefix::new(address, bits % most).expect("no longer than the address")
    }

    /// Flags of a prefix: absent, or four octets.
    fn flags(&mut self) -> Option<[u8; 4]> {
        (self.octet() & 1 == 1).then(|| self.octets())
    }
}

/// Walks a written message again and checks the number of prefixes, the number with PNC, and that
/// nothing is malformed.
fn expect(protocol: Protocol, bytes: &[u8], prefixes: usize, with: usize) {
    let (findings, found) = walk(protocol, bytes, bytes.len());
    assert_eq!(found, Some((prefixes, with)), "{bytes:02x?}");
    assert!(
        !findings.has(Rule::PncMalformed),
        "{findings:?} in {bytes:02x?}"
    );
    walked(protocol, bytes);
}

/// IS-IS: the octets as an LSP, and an LSP of values drawn from them.
pub fn isis(data: &[u8]) {
    walked(Protocol::IsIs, data);
    let mut draw = Draw(data);
    let level = [Level::L1, Level::L2][usize::from(draw.octet() & 1)];
    let lsp_id = draw.octets();
    let drawn: Vec<_> = (0..draw.octet() % 8)
        .map(|_| {
            let (kind, v6) = (draw.octet(), draw.octet() & 1 == 1);
            let id = u16::from_be_bytes(draw.octets());
            let kind = match kind % 3 {
                0 => ReachKind::Plain,
                1 => ReachKind::MultiTopology { id },
                _ => ReachKind::Srv6Locator { id, algorithm: 0 },
            };
            (kind, draw.prefix(v6), draw.octet() & 1 == 1, draw.flags())
        })
        .collect();
    let prefixes: Vec<_> = drawn
        .iter()
        .map(|(kind, prefix, down, flags)| ReachRepr {
            kind: *kind,
            prefix: *prefix,
            metric: 10,
            down: *down,
            flags: flags.as_ref().map(<[u8; 4]>::as_slice),
        })
        .collect();
    let lsp = LspRepr {
        level,
        lsp_id,
        sequence: 1,
        lifetime: 1200,
        area: &[0x49, 0, 1],
        hostname: "leaf",
        prefixes: &prefixes,
    };
    if let Ok(out) = lsp.to_bytes() {
        let with = drawn
            .iter()
            .filter(|(.., flags)| flags.is_some_and(|flags| flags[0] & 1 == 1));
        expect(Protocol::IsIs, &out, drawn.len(), with.count());
    }
}

/// Returns true if the flags of RFC 9792 have PNC, bit 2.
fn has_pnc(flags: Option<[u8; 4]>) -> bool {
    flags.is_some_and(|flags| flags[0] & 0x20 != 0)
}

/// OSPFv2: the octets as an LS Update, and one of values drawn from them.
pub fn ospf2(data: &[u8]) {
    walked(Protocol::Ospf2, data);
    let mut draw = Draw(data);
    let flooding =
        [Flooding::Link, Flooding::Area, Flooding::Domain][usize::from(draw.octet() % 3)];
    let router = Ipv4Addr::from(draw.octets::<4>());
    // If an LSA has a prefix twice, only the first one counts.
    let drawn: BTreeMap<_, _> = (0..draw.octet() % 8)
        .map(|_| (draw.prefix(false), draw.flags()))
        .collect();
    let prefixes: Vec<_> = drawn
        .iter()
        .map(|(prefix, flags)| v2::ExtendedPrefixRepr {
            route_type: 1,
            prefix: *prefix,
            tlv_flags: 0x40,
            flags: flags.as_ref().map(<[u8; 4]>::as_slice),
        })
        .collect();
    let (first, second) = prefixes.split_at(prefixes.len() / 2);
    let lsa = |opaque_id, prefixes| v2::LsaRepr {
        age: 1,
        flooding,
        opaque_id,
        advertising_router: router,
        sequence: 0x8000_0001,
        prefixes,
    };
    let lsas = [lsa(1, first), lsa(2, second)];
    let update = v2::LsUpdateRepr {
        router_id: router,
        area: Ipv4Addr::UNSPECIFIED,
        lsas: &lsas,
    };
    let out = update.to_bytes().expect("IPv4 alone");
    let with = drawn.values().filter(|flags| has_pnc(**flags));
    expect(Protocol::Ospf2, &out, drawn.len(), with.count());
}

/// OSPFv3: the octets as an LS Update, and one of values drawn from them.
pub fn ospf3(data: &[u8]) {
    walked(Protocol::Ospf3, data);
    let mut draw = Draw(data);
    let instance = [0, 64][usize::from(draw.octet() & 1)];
    let router = Ipv4Addr::from(draw.octets::<4>());
    let drawn: Vec<_> = (0..draw.octet() % 8)
        .map(|_| (draw.prefix(instance == 0), draw.flags()))
        .collect();
    let prefixes: Vec<_> = drawn
        .iter()
        .map(|(prefix, flags)| v3::PrefixRepr {
            prefix: *prefix,
            options: 0,
            metric: 10,
            flags: flags.as_ref().map(<[u8; 4]>::as_slice),
        })
        .collect();
    let lsa = |kind, link_state_id: usize, prefixes| v3::LsaRepr {
        kind,
        age: 1,
        link_state_id: link_state_id as u32,
        advertising_router: router,
        sequence: 0x8000_0001,
        prefixes,
    };
    let (single, many) = prefixes.split_at(prefixes.len().min(2));
    let kinds = [v3::LsaKind::InterAreaPrefix, v3::LsaKind::AsExternal];
    let mut lsas: Vec<_> = single
        .chunks(1)
        .zip(kinds)
        .enumerate()
        .map(|(id, (one, kind))| lsa(kind, id, one))
        .collect();
    lsas.push(lsa(v3::LsaKind::IntraAreaPrefix, 9, many));
    let update = v3::LsUpdateRepr {
        router_id: router,
        area: Ipv4Addr::UNSPECIFIED,
        instance,
        lsas: &lsas,
    };
    let out = update
        .to_bytes(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
        .expect("one family");
    let with = drawn.iter().filter(|(_, flags)| has_pnc(*flags));
    expect(Protocol::Ospf3, &out, drawn.len(), with.count());
}

/// BGP: the octets as a TCP segment, and an UPDATE of values drawn from them.
pub fn bgp(data: &[u8]) {
    walked(Protocol::Bgp, data);
    let code = Profile::DEFAULT.bgp_pnc_characteristic;
    let mut draw = Draw(data);
    let choice = draw.octet();
    let (v6, v6_hop) = (choice & 1 != 0, choice & 2 != 0);
    let address = |draw: &mut Draw<'_>| -> IpAddr {
        if v6_hop {
            Ipv6Addr::from(draw.octets::<16>()).into()
        } else {
            Ipv4Addr::from(draw.octets::<4>()).into()
        }
    };
    let next_hop = address(&mut draw);
    let other = address(&mut draw);
    let pnc = [CharacteristicRepr { code, value: &[] }];
    let both = [
        CharacteristicRepr {
            code: 1,
            value: &[7],
        },
        pnc[0],
    ];
    let nhc = (choice & 4 != 0).then_some(NhcRepr {
        afi: if v6 { 2 } else { 1 },
        safi: 1,
        next_hop: if choice & 8 != 0 { other } else { next_hop },
        characteristics: if choice & 16 != 0 { &pnc } else { &both },
    });
    // Prefixes as speakers send them: distinguishing them from path identifiers is guesswork if
    // bits are 0.
    let prefixes: Vec<_> = (0..draw.octet() % 6).map(|_| draw.prefix(v6)).collect();
    let Ok(out) = bgp_update(next_hop, &prefixes, nhc) else {
        assert!(
            v6 && !v6_hop,
            "only IPv6 prefixes with an IPv4 next hop are refused"
        );
        return;
    };
    let defaults = prefixes.iter().filter(|prefix| prefix.bits() == 0).count();
    // A link-local address alone does not identify a node.
    let is_global = !matches!(next_hop, IpAddr::V6(hop) if hop.is_unicast_link_local());
    let applies = nhc.is_some_and(|nhc| nhc.next_hop == next_hop && is_global);
    if defaults <= 1 && !prefixes.is_empty() {
        let with = if applies { prefixes.len() } else { 0 };
        expect(Protocol::Bgp, &out, prefixes.len(), with);
    } else {
        walked(Protocol::Bgp, &out);
    }
}

/// A profile: the octets as TOML, and each of their lines as an override.
pub fn profile(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Profile::from_toml(&text) {
        Ok(profile) => {
            assert_eq!(profile.validate(), Ok(()));
            assert_eq!(Profile::from_toml(&rendered(&profile)), Ok(profile));
        }
        Err(e) => assert!(!e.to_string().is_empty()),
    }
    let mut allowed = Profile::DEFAULT;
    let mut forced = Profile {
        force: true,
        ..Profile::DEFAULT
    };
    for line in text.lines() {
        let before = allowed.clone();
        match allowed.set(line) {
            Ok(()) => assert_eq!(allowed.validate(), Ok(())),
            Err(_) => assert_eq!(allowed, before),
        }
        if forced.set(line).is_ok() {
            assert_eq!(Profile::from_toml(&rendered(&forced)), Ok(forced.clone()));
        }
    }
}

fn rendered(profile: &Profile) -> String {
    let p = profile;
    let values = [
        u32::from(p.fast_cnp_option1),
        p.fast_cnp_option2.into(),
        p.proxy_address_option.into(),
        p.proxy_cn_port.into(),
        p.wan_fcn_port.into(),
        p.bgp_pnc_characteristic.into(),
        p.rocev2_port.into(),
        p.ioam_option.into(),
    ];
    let mut text: String = Profile::NAMES
        .iter()
        .zip(values)
        .map(|(name, value)| format!("{name} = {value:#x}\n"))
        .collect();
    text += &format!(
        "icrc_reading = \"{}\"\nforce = {}\n",
        p.icrc_reading, p.force
    );
    text
}

/// [`sflow`](mod@fcn_wire::sflow), after two octets with the number of those that the capture left
/// out: the number of packets is limited by the available space, and they lie within the datagram;
/// a cut leaves the same packets, up to the cut.
pub fn sflow(data: &[u8]) {
    let Some((missing, bytes)) = data.split_first_chunk::<2>() else {
        return;
    };
    let wire_len = bytes.len() + usize::from(u16::from_be_bytes(*missing));
    let Ok(whole) = sflow::Datagram::new_checked(bytes, wire_len) else {
        return;
    };
    let packets: Vec<_> = whole.packets().collect();
    // Headers of a sample, a record and a packet.
    assert!(packets.len() <= bytes.len() / 64);
    let range = bytes.as_ptr_range();
    for packet in &packets {
        let within = packet.bytes.as_ptr_range();
        assert!(range.start <= within.start && within.end <= range.end);
        assert!(packet.bytes.len() <= packet.wire_len && packet.sample.rate > 0);
    }
    for len in [bytes.len() / 2, bytes.len().saturating_sub(1)] {
        let Ok(cut) = sflow::Datagram::new_checked(&bytes[..len], wire_len) else {
            assert!(len < whole.header().header_len());
            continue;
        };
        assert!(cut.is_cut());
        for (cut, whole) in cut.packets().zip(&packets) {
            assert!(cut.sample == whole.sample && whole.bytes.starts_with(cut.bytes));
        }
    }
}

/// [`Rules`]: rewriting writes no more than it states and keeps the layers; rewriting back restores
/// the octets; no statement is made about an ICRC that was not captured.
pub fn rewrite(data: &[u8]) {
    let Some(capture) = Capture::from_input(data) else {
        return;
    };
    let apply = |rules: &Rules, packet: &[u8], room: usize| {
        let mut out = vec![0xEE; packet.len() + room];
        let (link, profile) = (capture.link, capture.profile);
        let wire_len = capture.wire_len.max(packet.len());
        let outcome = rules.apply(packet, wire_len, link, profile, &mut out);
        let len = outcome.map_or(0, |outcome| outcome.len);
        assert!(
            out.get(len..)
                .unwrap_or_default()
                .iter()
                .all(|octet| *octet == 0xEE)
        );
        out.truncate(len);
        outcome.ok().map(|outcome| (out, outcome))
    };
    let swapping = swapping_rules();
    let everything = everything_rules();
    for len in [capture.bytes.len()].into_iter().chain(capture.cuts) {
        let packet = &capture.bytes[..len.min(capture.bytes.len())];
        let (out, outcome) = apply(&swapping, packet, 0).expect("as long as it was");
        assert_eq!(out.len(), packet.len());
        let parse = |bytes| Frame::parse(bytes, capture.wire_len, capture.link, capture.profile);
        let (before, after) = (parse(packet), parse(&out));
        assert_eq!(before.spans(), after.spans());
        if before
            .datagram()
            .is_some_and(|datagram| !datagram.is_whole())
        {
            assert!(matches!(
                outcome.icrc,
                PriorIcrc::Absent | PriorIcrc::Unrepaired
            ));
        }
        let good = |frame: &Frame<'_>| matches!(frame.verify_icrc(), Verdict::Good(_));
        assert_eq!(good(&before), good(&after));
        // The IP version that a proxy notification is about is inferred partly from its addresses.
        if families(&before) != families(&after) {
            continue;
        }
        let (back, _) = apply(&swapping, &out, 0).expect("as long as it was");
        for (old, new) in packet.iter().zip(&back) {
            // A checksum of 0xFFFF is equivalent to 0.
            assert!(old == new || (*old, *new) == (0xFF, 0));
        }
        let same = apply(&Rules::default(), packet, 0).map(|(out, _)| out);
        assert_eq!(same.as_deref(), Some(packet));
        // These rules put a tag or an Ethernet header in front.
        if let Some((out, outcome)) = apply(&everything, packet, 18) {
            assert!(out.len() <= packet.len() + 18 && outcome.wire_len >= out.len());
        }
    }
}

/// Returns the families of the proxy notification in a frame, and of those that it or an ICMP
/// message quotes.
fn families(frame: &Frame<'_>) -> Vec<Family> {
    let (mut families, quoted) = match (frame.message(), frame.ip()) {
        (Message::ProxyCn(message), _) => (vec![message.family()], message.invoking_packet()),
        (Message::Other, Some(ip)) if matches!(ip.protocol, 1 | 58) => {
            let quoted = frame.bytes().get(ip.payload + 8..);
            (Vec::new(), quoted.unwrap_or_default())
        }
        _ => return Vec::new(),
    };
    let quoted = Frame::parse(quoted, 0, LinkType::RawIp, frame.profile());
    if !quoted.bytes().is_empty() {
        families.extend(self::families(&quoted));
    }
    families
}

/// Maps a quarter of all addresses to another one, so that about half of the found addresses are
/// changed. The first quarter has the unspecified address, which stays under any rules.
fn prefixes() -> [(Prefix, Prefix); 2] {
    let quarter = |address: IpAddr| Prefix::new(address, 2).expect("not too long");
    let v4 = |first| quarter(Ipv4Addr::new(first, 0, 0, 0).into());
    let v6 = |first| quarter(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0).into());
    [(v4(64), v4(128)), (v6(0x4000), v6(0x8000))]
}

fn swapping_rules() -> Rules {
    let mut rules = Rules::default();
    for (one, other) in prefixes() {
        rules = rules
            .map_prefix(one, other)
            .and_then(|r| r.map_prefix(other, one))
            .expect("of one length");
    }
    rules
}

fn everything_rules() -> Rules {
    let mut rules = Rules::default();
    for (one, other) in prefixes() {
        rules = rules.map_prefix(one, other).expect("of one length");
    }
    let tag = VlanTag {
        id: 9,
        priority: 1,
        service: true,
    };
    let rules = rules
        .source_mac([2; 6])
        .to_ethernet([4; 6], [6; 6])
        .add_psn(1)
        .add_qp(-5)
        .set_flow_label(3)
        .expect("20 bits")
        .set_udp_source(5)
        .repair();
    rules.push_vlan(tag).expect("a tag")
}
