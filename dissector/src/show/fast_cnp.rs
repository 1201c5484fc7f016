//! Options headers: the Fast CNP options in their place, the proxy address option, and the Fast CNP as a whole.

use super::roce::{FAST, OptionNoted, RoceAt, cnp_part};
use super::{Scene, ioam, is_extension_of_innermost};
use crate::locate::Known;
use crate::names::{F, P};
use crate::plan::{Anchor, ColumnText, Mark, Op, Plan, at};
use fcn_wire::bth::{Bth, Opcode};
use fcn_wire::error::Error;
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::finding::Family;
use fcn_wire::finding::{Findings, Rule};
use fcn_wire::frame::{End, Frame};
use fcn_wire::ioam::IoamOption;
use fcn_wire::ipv6_ext::{Ipv6Option, Options};
use fcn_wire::message::IcrcCheck;
use fcn_wire::notification::Notification;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::{Layer, Profile};
use std::net::IpAddr;

/// An options header with options of ours in it.
#[derive(Clone, Copy, Debug)]
pub struct OptionsAt {
    /// First octet of the header in the data source.
    pub start: usize,
    /// Whether it is a Hop-by-Hop Options header; else it is a Destination Options header.
    pub hop_by_hop: bool,
    /// Source and destination of the IPv6 packet.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// A RoCEv2 packet with the same addresses in the same data source; counts where the packet was reassembled from fragments.
    pub roce_noted: Option<RoceAt>,
    /// Whether nothing was noted behind it: Wireshark may have given up before it came to UDP.
    pub is_last: bool,
}

impl OptionsAt {
    const fn layer(&self) -> Layer {
        if self.hop_by_hop {
            Layer::HopByHop
        } else {
            Layer::DestinationOptions
        }
    }
}

/// Most options of ours shown in one header; a packet has one.
pub const MAX_SHOWN: usize = 32;

/// Whether something is to be said of an options header, and whether it has a Fast CNP option: it has an option of ours in it,
/// or one that Wireshark may stop at, which runs past it or is no IOAM trace that can be read.
pub fn has_ours(header: &[u8], profile: &Profile) -> (bool, bool) {
    let (mut any, mut fast) = (false, false);
    for option in Options::new(Layer::DestinationOptions, header) {
        let kind = match option {
            Ok(option) => {
                any |= option.kind == profile.ioam_option && !is_ioam(option.data);
                option.kind
            }
            Err(e) => {
                any = true;
                kind_of_overrun(header, &e).unwrap_or(0)
            }
        };
        let is_fast = profile.is_fast_cnp(kind);
        fast |= is_fast;
        any |= is_fast || kind == profile.proxy_address_option;
    }
    (any, fast)
}

/// Whether the data of an IOAM option can be read, a trace's to its end.
fn is_ioam(data: &[u8]) -> bool {
    IoamOption::parse(data).is_ok_and(|option| option.trace().is_none_or(|trace| trace.is_ok()))
}

/// The type of the option that runs past its header, where that is what `e` says.
fn kind_of_overrun(header: &[u8], e: &Error) -> Option<u8> {
    let at = match e.kind {
        fcn_wire::ErrorKind::Length { .. } => e.offset.checked_sub(1)?,
        _ => e.offset,
    };
    header.get(at).copied()
}

/// Plans what is shown of an options header, and of the Fast CNP that it makes of the packet.
pub fn options(plan: &mut Plan<'_>, scene: &Scene<'_>, place: &OptionsAt) {
    let Some(units) = scene.bytes.get(place.start + 1) else {
        return;
    };
    let len = (usize::from(*units) + 1) * 8;
    let header = scene.slice(place.start, len);
    let source = place.addresses.map(|(source, _)| source);
    let found =
        source.and_then(|source| scene.frame_around(place.start, Known::ExtensionHeader, source));
    let own = found.as_ref().filter(|(start, frame)| {
        (place.start.checked_sub(*start))
            .is_some_and(|place| is_extension_of_innermost(frame, place))
    });
    let innermost = own.is_some();
    let is_whole = match own {
        Some((start, frame)) => {
            (frame.spans().iter()).any(|span| start + span.start == place.start)
        }
        None => header.len() == len,
    };
    // What a header breaks that its packet does not hold whole, nobody can tell.
    plan.silence(scene.quoted || !is_whole);

    let mut first_fast = None;
    let mut has_proxy = false;
    let mut shown = 0;
    for option in Options::new(place.layer(), header) {
        if let Ok(option) = option
            && !scene.profile.is_fast_cnp(option.kind)
            && option.kind != scene.profile.proxy_address_option
        {
            continue;
        }
        shown += 1;
        match option {
            Ok(option) if shown > MAX_SHOWN => {
                plan.leave_out(broken_by(scene, place, &option).as_slice().len());
            }
            Ok(option) if scene.profile.is_fast_cnp(option.kind) => {
                first_fast.get_or_insert(option.offset);
                fast_option(plan, scene, place, &option);
            }
            Ok(option) => {
                has_proxy = true;
                proxy_option(plan, scene, place, &option);
            }
            // What the capture cut off does not run past its header.
            Err(_) if header.len() < len => {}
            Err(e) => {
                if overrun(plan, scene, place, header, &e) {
                    first_fast.get_or_insert(e.offset.saturating_sub(1));
                }
            }
        }
    }

    plan.silence(scene.quoted);
    let mut packet_findings = Findings::new();
    let mut is_first = true;
    if let Some((start, frame)) = &found {
        let icrc = if scene.check_icrc && place.is_last {
            IcrcCheck::On
        } else {
            IcrcCheck::Off
        };
        frame.check(icrc, &mut packet_findings);
        let ours = frame
            .options_headers()
            .find(|header| has_ours(header.bytes, scene.profile).0);
        is_first = ours.is_none_or(|header| header.start + start == place.start);
    }
    if has_proxy && is_first && packet_findings.has(Rule::ProxyAddressSeveral) {
        plan.expert(Rule::ProxyAddressSeveral, at(place.start, header.len()));
    }
    // As many as `check` has left out, where it is about the same options.
    if innermost && is_first {
        plan.leave_out(packet_findings.dropped().saturating_sub(plan.left_out()));
    }
    if let Some((start, frame)) = found.as_ref().filter(|_| innermost && place.is_last) {
        let behind = (place.start + header.len()).saturating_sub(*start);
        unseen(plan, *start, frame, behind, &packet_findings);
    }
    let Some(option_at) = first_fast else { return };
    if is_fast_already_shown(scene, place, found.as_ref()) {
        return;
    }
    let packet = Packet {
        found: found.filter(|_| innermost),
        findings: packet_findings,
        option_at: place.start + option_at,
    };
    whole(plan, scene, place, &packet);
}

/// Plans what `findings` say of the packet `behind` an options header, to which Wireshark did not come: an option may have
/// stopped it. A Fast CNP whose option lies before that is [shown](whole) with its part behind.
fn unseen(plan: &mut Plan<'_>, base: usize, frame: &Frame<'_>, behind: usize, findings: &Findings) {
    let is_fast_shown = (frame.options_headers())
        .any(|header| header.start < behind && has_ours(header.bytes, frame.profile()).1);
    plan.push(Op::Goto(Anchor::Root));
    for finding in findings {
        let is_shown = match finding.rule.info().family {
            _ if OF_FAST_CNP.contains(&finding.rule) => is_fast_shown,
            Family::FastCnp | Family::ProxyAddress => finding.offset < behind,
            Family::Cnp => is_fast_shown,
            Family::Ioam => {
                let option = frame.option_around(finding.offset);
                finding.offset < behind
                    && option.is_some_and(|(_, kind)| frame.profile().is_fast_cnp(kind))
            }
            _ => false,
        };
        if !is_shown {
            plan.expert(finding.rule, at(base + finding.offset, finding.len));
        }
    }
}

/// What a Fast CNP breaks as a whole.
const OF_FAST_CNP: [Rule; 5] = [
    Rule::FastCnpSeveral,
    Rule::FastCnpSeveralHeaders,
    Rule::FastCnpNotCnp,
    Rule::FastCnpAddressed,
    Rule::FastCnpSource,
];

/// Whether an earlier header of the same packet has a Fast CNP option: the packet is one Fast CNP.
fn is_fast_already_shown(
    scene: &Scene<'_>,
    place: &OptionsAt,
    found: Option<&(usize, Frame<'_>)>,
) -> bool {
    found.is_some_and(|(start, frame)| {
        frame
            .options_headers()
            .find(|header| has_ours(header.bytes, scene.profile).1)
            .is_some_and(|header| header.start + start < place.start)
    })
}

/// The text that the Info column of a packet gets which quotes a Fast CNP: an ICMPv6 error from a sender that does not
/// know the option, mostly.
pub fn quotation(scene: &Scene<'_>, place: &OptionsAt) -> Option<ColumnText> {
    let (source, _) = place.addresses?;
    let (_, frame) = scene.frame_around(place.start, Known::ExtensionHeader, source)?;
    let notification = Notification::read(&frame)?;
    Some(ColumnText::new(format_args!(" [quotes {notification}]")))
}

struct Packet<'a> {
    found: Option<(usize, Frame<'a>)>,
    findings: Findings,
    option_at: usize,
}

/// Plans the Fast CNP as a whole: who notifies whom, the CNP behind the option, and the rules about all of it.
fn whole(plan: &mut Plan<'_>, scene: &Scene<'_>, place: &OptionsAt, packet: &Packet<'_>) {
    let reassembled = packet
        .found
        .as_ref()
        .is_none_or(|(_, frame)| matches!(frame.end(), End::Fragment { .. }));
    let roce = packet
        .found
        .as_ref()
        .filter(|(_, frame)| frame.is_roce())
        .and_then(|(start, frame)| {
            let datagram = frame.datagram()?;
            Some(RoceAt {
                payload: start + datagram.payload_at(),
                captured: datagram.payload.len(),
                reported: datagram.payload_len,
                addresses: place.addresses,
                option_noted: OptionNoted::Here,
            })
        })
        .or(place.roce_noted.filter(|_| reassembled));
    let range = match roce {
        Some(roce) => at(roce.payload, roce.captured),
        None => at(packet.option_at, 0),
    };
    plan.push(Op::Goto(Anchor::Root));
    if scene.quoted {
        plan.push(Op::Open(F::FastQuoted, range));
    } else {
        plan.push(Op::Protocol(P::FastCnp, range, Mark::Plain));
    }
    let quoted = if scene.quoted { "Quoted " } else { "" };
    let notification = packet
        .found
        .as_ref()
        .and_then(|(_, frame)| Notification::read(frame));
    match notification {
        Some(notification) => plan.label(format_args!("{quoted}{notification}")),
        None => plan.label(format_args!("{quoted}Fast CNP")),
    }
    let option = packet
        .found
        .as_ref()
        .and_then(|(_, frame)| match frame.message() {
            fcn_wire::message::Message::FastCnp(message) => message.parsed.ok(),
            _ => None,
        })
        .or_else(|| read_option(scene, packet.option_at));
    if let (Some((IpAddr::V6(source), IpAddr::V6(destination))), Some(option)) =
        (addresses(place, packet), option)
    {
        let nowhere = at(packet.option_at, 0);
        let receiver = option.original_destination();
        let from_receiver = source == receiver;
        if !from_receiver {
            plan.ipv6(F::FastSwitch, nowhere, source, Mark::Generated);
        }
        plan.push(Op::Flag(
            F::FastFromReceiver,
            nowhere,
            u32::from(from_receiver),
            Mark::Generated,
        ));
        plan.ipv6(F::FastSender, nowhere, destination, Mark::Generated);
        plan.ipv6(F::FastReceiver, nowhere, receiver, Mark::Generated);
    }
    if let Some(roce) = roce {
        let bth = Bth::new_checked(scene.slice(roce.payload, roce.captured));
        if bth.is_ok_and(|bth| bth.opcode() == Opcode::CNP) {
            cnp_part(plan, scene, &roce, &FAST);
        }
    }
    let base = packet.found.as_ref().map_or(0, |(start, _)| *start);
    for finding in &packet.findings {
        if OF_FAST_CNP.contains(&finding.rule) && packet.found.is_some() {
            plan.expert_of_all(finding.rule, at(base + finding.offset, finding.len));
        }
    }
    if packet.found.is_none() && roce.is_none() && place.addresses.is_some() && !scene.quoted {
        // A tunnel follows, or something that is no IP packet at all.
        let cut = scene.bytes.len() < scene.wire_len;
        if !cut {
            plan.expert(Rule::FastCnpNotCnp, at(packet.option_at, 2));
        }
    }
}

fn addresses(place: &OptionsAt, packet: &Packet<'_>) -> Option<(IpAddr, IpAddr)> {
    match packet.found.as_ref().and_then(|(_, frame)| frame.ip()) {
        Some(ip) => Some((ip.source, ip.destination)),
        None => place.addresses,
    }
}

fn read_option<'a>(scene: &Scene<'a>, option_at: usize) -> Option<FastCnpRepr<'a>> {
    let [kind, len] = *scene.slice(option_at, 2).first_chunk::<2>()?;
    let data = scene.slice(option_at + 2, usize::from(len));
    (data.len() == usize::from(len))
        .then(|| FastCnpRepr::parse(kind, data, scene.profile)?.ok())
        .flatten()
}

/// Fields of an option's type and length octets.
struct Head {
    kind: F,
    action: F,
    change: F,
    rest: F,
    length: F,
}

fn head(plan: &mut Plan<'_>, fields: &Head, start: usize, option: &Ipv6Option<'_>) {
    let kind = at(start, 1);
    plan.push(Op::OpenUint(fields.kind, kind, option.kind.into()));
    plan.uint(fields.action, kind, option.kind);
    plan.flag(fields.change, kind, option.kind);
    plan.uint(fields.rest, kind, option.kind);
    plan.push(Op::Close);
    plan.uint(fields.length, at(start + 1, 1), option.data.len() as u32);
}

/// What an option of ours breaks by itself.
fn broken_by(scene: &Scene<'_>, place: &OptionsAt, option: &Ipv6Option<'_>) -> Findings {
    let mut findings = Findings::new();
    let check = if scene.profile.is_fast_cnp(option.kind) {
        FastCnpRepr::check
    } else {
        ProxyAddress::check
    };
    check(
        option.kind,
        option.data,
        place.layer(),
        option.offset,
        scene.profile,
        &mut findings,
    );
    findings
}

const FAST_HEAD: Head = Head {
    kind: F::FastOptionType,
    action: F::FastOptionAction,
    change: F::FastOptionChange,
    rest: F::FastOptionRest,
    length: F::FastOptionLength,
};

fn fast_option(plan: &mut Plan<'_>, scene: &Scene<'_>, place: &OptionsAt, option: &Ipv6Option<'_>) {
    let start = place.start + option.offset;
    let number = if option.kind == scene.profile.fast_cnp_option1 {
        1u8
    } else {
        2
    };
    plan.push(Op::Goto(Anchor::Ipv6Option(offset(start))));
    plan.push(Op::Open(F::FastOption, at(start, option.len())));
    plan.label(format_args!("Fast CNP option {number}"));
    plan.push(Op::Uint(
        F::FastOptionNumber,
        at(start, 1),
        number.into(),
        Mark::Generated,
    ));
    head(plan, &FAST_HEAD, start, option);
    let data = start + 2;
    let parsed = FastCnpRepr::parse(option.kind, option.data, scene.profile);
    if let Some(Ok(parsed)) = parsed {
        if let FastCnpRepr::Option2 { ioam: inner, .. } = parsed {
            plan.uint(F::FastOptionReserved, at(data, 1), inner.reserved);
            plan.uint(
                F::FastOptionIoamType,
                at(data + 1, 1),
                inner.opt_type.code(),
            );
            match parsed.trace() {
                Some(trace) => ioam::trace(plan, data + 2, &trace),
                None if !inner.body.is_empty() => plan.push(Op::Bytes(
                    F::FastOptionIoamBody,
                    at(data + 2, inner.body.len()),
                )),
                None => {}
            }
        }
        let address = data + parsed.address_at(option.data.len());
        plan.ipv6(
            F::FastOptionDestination,
            at(address, 16),
            parsed.original_destination(),
            Mark::Plain,
        );
    }
    for finding in &broken_by(scene, place, option) {
        let here = at(place.start + finding.offset, finding.len);
        match (finding.rule, parsed) {
            (Rule::FastCnpMalformed | Rule::FastCnpLength1, Some(Err(e))) => {
                plan.expert_with(finding.rule, here, format_args!("{e}"));
            }
            (rule, _) => plan.expert(rule, here),
        }
    }
    plan.push(Op::Close);
}

const PROXY_HEAD: Head = Head {
    kind: F::ProxyOptionType,
    action: F::ProxyOptionAction,
    change: F::ProxyOptionChange,
    rest: F::ProxyOptionRest,
    length: F::ProxyOptionLength,
};

fn proxy_option(
    plan: &mut Plan<'_>,
    scene: &Scene<'_>,
    place: &OptionsAt,
    option: &Ipv6Option<'_>,
) {
    let start = place.start + option.offset;
    plan.push(Op::Goto(Anchor::Ipv6Option(offset(start))));
    plan.push(Op::Protocol(
        P::ProxyOption,
        at(start, option.len()),
        Mark::Plain,
    ));
    head(plan, &PROXY_HEAD, start, option);
    if let Some(Ok(ProxyAddress(address))) =
        ProxyAddress::parse(option.kind, option.data, scene.profile)
    {
        plan.ipv6(
            F::ProxyOptionAddress,
            at(start + 2, 16),
            address,
            Mark::Plain,
        );
    }
    for finding in &broken_by(scene, place, option) {
        plan.expert(finding.rule, at(place.start + finding.offset, finding.len));
    }
    plan.push(Op::Close);
}

/// Plans an option of ours that runs past its header; says whether it is a Fast CNP option.
fn overrun(
    plan: &mut Plan<'_>,
    scene: &Scene<'_>,
    place: &OptionsAt,
    header: &[u8],
    e: &Error,
) -> bool {
    let Some(kind) = kind_of_overrun(header, e) else {
        return false;
    };
    let option_at = match e.kind {
        fcn_wire::ErrorKind::Length { .. } => e.offset - 1,
        _ => e.offset,
    };
    let start = place.start + option_at;
    let rest = at(start, header.len() - option_at);
    let (fast, rule) = if scene.profile.is_fast_cnp(kind) {
        (true, Rule::FastCnpMalformed)
    } else if kind == scene.profile.proxy_address_option {
        (false, Rule::ProxyAddressLength)
    } else {
        return false;
    };
    plan.push(Op::Goto(Anchor::Ipv6Option(offset(start))));
    if fast {
        plan.push(Op::Open(F::FastOption, rest));
        plan.label(format_args!(
            "Fast CNP option, cut off by the end of its header"
        ));
    } else {
        plan.push(Op::Protocol(P::ProxyOption, rest, Mark::Plain));
    }
    plan.expert_with(rule, at(place.start + e.offset, 1), format_args!("{e}"));
    plan.push(Op::Close);
    fast
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
