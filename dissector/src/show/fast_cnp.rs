//! Options headers: the Fast CNP options and the proxy address option in place, and the Fast CNP as
//! a whole.

use super::roce::{FAST, cnp_part};
use super::{PayloadAt, Source, ioam, is_extension_of_innermost, open_message};
use crate::locate::HeaderKind;
use crate::names::{F, Node, P};
use crate::plan::{ColumnText, Mark, Plan, range};
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

/// An options header that contains options of ours.
#[derive(Clone, Copy, Debug)]
pub struct OptionsAt {
    /// Offset of the header in the data source.
    pub start: usize,
    /// True for a Hop-by-Hop Options header, false for a Destination Options header.
    pub hop_by_hop: bool,
    /// Source and destination of the IPv6 packet.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// RoCEv2 packet with the same addresses in the same data source; used if the packet was
    /// reassembled from fragments.
    pub roce_noted: Option<PayloadAt>,
    /// True if no note follows it: Wireshark may have stopped before it reached UDP.
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

/// Maximum number of our options shown in one header; a valid packet has one.
pub const MAX_SHOWN: usize = 32;

/// Returns whether an options header needs items of ours, and whether it has a Fast CNP option. It
/// needs items if it has an option of ours, or one that Wireshark may stop at, because it runs past
/// the header or is an unreadable IOAM trace.
pub fn has_known_options(header: &[u8], profile: &Profile) -> (bool, bool) {
    let (mut any, mut fast) = (false, false);
    for option in Options::new(Layer::DestinationOptions, header) {
        let kind = match option {
            Ok(option) => {
                any |= option.kind == profile.ioam_option && !is_ioam(option.data);
                option.kind
            }
            Err(e) => {
                any = true;
                overrunning_option(header, &e).map_or(0, |(_, kind)| kind)
            }
        };
        let is_fast = profile.is_fast_cnp(kind);
        fast |= is_fast;
        any |= is_fast || kind == profile.proxy_address_option;
    }
    (any, fast)
}

/// Returns true if the data of an IOAM option can be read; a trace must be readable to its end.
fn is_ioam(data: &[u8]) -> bool {
    IoamOption::parse(data).is_ok_and(|option| option.trace().is_none_or(|trace| trace.is_ok()))
}

/// Returns the offset and type of the option that runs past its header, if `e` reports one.
fn overrunning_option(header: &[u8], e: &Error) -> Option<(usize, u8)> {
    let at = match e.kind {
        fcn_wire::ErrorKind::Length { .. } => e.offset.checked_sub(1)?,
        _ => e.offset,
    };
    Some((at, *header.get(at)?))
}

/// Plans the items for an options header, and for the Fast CNP that its option makes of the packet.
pub fn options(plan: &mut Plan, data_source: &Source<'_>, place: &OptionsAt) {
    let Some(units) = data_source.bytes.get(place.start + 1) else {
        return;
    };
    let len = (usize::from(*units) + 1) * 8;
    let header = data_source.slice(place.start, len);
    let source = place.addresses.map(|(source, _)| source);
    let found = source.and_then(|source| {
        data_source.frame_around(place.start, HeaderKind::ExtensionHeader, source)
    });
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
    // A header that its packet does not contain completely cannot be judged.
    plan.suppress_findings(data_source.quoted || !is_whole);

    let mut first_fast = None;
    let mut has_proxy = false;
    let mut shown = 0;
    for option in Options::new(place.layer(), header) {
        if let Ok(option) = option
            && !data_source.profile.is_fast_cnp(option.kind)
            && option.kind != data_source.profile.proxy_address_option
        {
            continue;
        }
        shown += 1;
        match option {
            Ok(option) if shown > MAX_SHOWN => {
                plan.count_omitted(broken_by(data_source, place, &option).as_slice().len());
            }
            Ok(option) if data_source.profile.is_fast_cnp(option.kind) => {
                first_fast.get_or_insert(option.offset);
                fast_option(plan, data_source, place, &option);
            }
            Ok(option) => {
                has_proxy = true;
                proxy_option(plan, data_source, place, &option);
            }
            // The capture cut it: it does not run past its header.
            Err(_) if header.len() < len => {}
            Err(e) => {
                if plan_overrun(plan, data_source, place, header, &e) {
                    first_fast.get_or_insert(e.offset.saturating_sub(1));
                }
            }
        }
    }

    plan.suppress_findings(data_source.quoted);
    let mut packet_findings = Findings::new();
    let mut is_first = true;
    if let Some((start, frame)) = &found {
        let icrc = match place.is_last {
            true => data_source.icrc_check(),
            false => IcrcCheck::Off,
        };
        frame.check(icrc, &mut packet_findings);
        let ours = frame
            .options_headers()
            .find(|header| has_known_options(header.bytes, data_source.profile).0);
        is_first = ours.is_none_or(|header| header.start + start == place.start);
    }
    if has_proxy && is_first && packet_findings.has(Rule::ProxyAddressSeveral) {
        plan.expert(Rule::ProxyAddressSeveral, range(place.start, header.len()));
    }
    // Adds the findings that `check` left out, if they are about the same options.
    if innermost && is_first {
        plan.count_omitted(packet_findings.dropped().saturating_sub(plan.omitted()));
    }
    if let Some((start, frame)) = found.as_ref().filter(|_| innermost && place.is_last) {
        let behind = (place.start + header.len()).saturating_sub(*start);
        unreached_findings(plan, *start, frame, behind, &packet_findings);
    }
    let Some(option_at) = first_fast else { return };
    if is_fast_already_shown(data_source, place, found.as_ref()) {
        return;
    }
    let packet = Packet {
        found: found.filter(|_| innermost),
        findings: packet_findings,
        option_at: place.start + option_at,
    };
    fast_cnp(plan, data_source, place, &packet);
}

/// Plans the `findings` about the part of the packet `behind` an options header, if Wireshark did
/// not reach it because an option stopped it. A Fast CNP whose option lies before that is
/// [shown](whole) together with that part.
fn unreached_findings(
    plan: &mut Plan,
    base: usize,
    frame: &Frame<'_>,
    behind: usize,
    findings: &Findings,
) {
    let is_fast_shown = (frame.options_headers())
        .any(|header| header.start < behind && has_known_options(header.bytes, frame.profile()).1);
    plan.root();
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
            plan.expert(finding.rule, range(base + finding.offset, finding.len));
        }
    }
}

/// Rules about a Fast CNP as a whole.
const OF_FAST_CNP: [Rule; 5] = [
    Rule::FastCnpSeveral,
    Rule::FastCnpSeveralHeaders,
    Rule::FastCnpNotCnp,
    Rule::FastCnpAddressed,
    Rule::FastCnpSource,
];

/// Returns true if an earlier header of the same packet has a Fast CNP option: the packet is one
/// Fast CNP.
fn is_fast_already_shown(
    source: &Source<'_>,
    place: &OptionsAt,
    found: Option<&(usize, Frame<'_>)>,
) -> bool {
    found.is_some_and(|(start, frame)| {
        frame
            .options_headers()
            .find(|header| has_known_options(header.bytes, source.profile).1)
            .is_some_and(|header| header.start + start < place.start)
    })
}

/// Returns the text appended to the Info column of a packet that quotes a Fast CNP: usually an
/// ICMPv6 error from a sender that does not recognise the option.
pub fn quotation(data_source: &Source<'_>, place: &OptionsAt) -> Option<ColumnText> {
    let (source, _) = place.addresses?;
    let (_, frame) = data_source.frame_around(place.start, HeaderKind::ExtensionHeader, source)?;
    let notification = Notification::from_frame(&frame)?;
    Some(ColumnText::new(format_args!(" [quotes {notification}]")))
}

struct Packet<'a> {
    found: Option<(usize, Frame<'a>)>,
    findings: Findings,
    option_at: usize,
}

/// Plans the Fast CNP as a whole: notifier and sender, the CNP behind the option, and the rules
/// about the whole packet.
fn fast_cnp(plan: &mut Plan, data_source: &Source<'_>, place: &OptionsAt, packet: &Packet<'_>) {
    let found = packet.found.as_ref();
    let reassembled = found.is_none_or(|(_, frame)| matches!(frame.end(), End::Fragment { .. }));
    let roce = found
        .filter(|(_, frame)| frame.is_roce())
        .and_then(|(start, frame)| {
            let datagram = frame.datagram()?;
            Some(PayloadAt {
                start: start + datagram.payload_at(),
                captured: datagram.payload.len(),
                reported: datagram.payload_len,
                addresses: place.addresses,
            })
        })
        .or(place.roce_noted.filter(|_| reassembled));
    let quoted = match roce {
        Some(roce) => roce.whole(),
        None => range(packet.option_at, 0),
    };
    open_message(plan, data_source, (P::FastCnp, F::FastQuoted), quoted);
    let quoted = if data_source.quoted { "Quoted " } else { "" };
    match found.and_then(|(_, frame)| Notification::from_frame(frame)) {
        Some(notification) => plan.label(format_args!("{quoted}{notification}")),
        None => plan.label(format_args!("{quoted}Fast CNP")),
    }
    let option = found
        .and_then(|(_, frame)| match frame.message() {
            fcn_wire::message::Message::FastCnp(message) => message.parsed.ok(),
            _ => None,
        })
        .or_else(|| read_option(data_source, packet.option_at));
    if let (Some((IpAddr::V6(source), IpAddr::V6(destination))), Some(option)) =
        (addresses(place, packet), option)
    {
        let nowhere = range(packet.option_at, 0);
        let receiver = option.original_destination();
        let from_receiver = source == receiver;
        if !from_receiver {
            plan.ipv6(F::FastSwitch, nowhere, source, Mark::Generated);
        }
        plan.generated(F::FastFromReceiver, nowhere, from_receiver);
        plan.ipv6(F::FastSender, nowhere, destination, Mark::Generated);
        plan.ipv6(F::FastReceiver, nowhere, receiver, Mark::Generated);
    }
    if let Some(roce) = roce {
        let bth = Bth::new_checked(data_source.payload(&roce));
        if bth.is_ok_and(|bth| bth.opcode() == Opcode::CNP) {
            cnp_part(plan, data_source, &roce, &FAST);
        }
    }
    if let Some((base, _)) = found {
        let of_all = |rule: &Rule| OF_FAST_CNP.contains(rule);
        for finding in (&packet.findings)
            .into_iter()
            .filter(|finding| of_all(&finding.rule))
        {
            plan.packet_expert(finding.rule, range(base + finding.offset, finding.len));
        }
    } else if roce.is_none()
        && place.addresses.is_some()
        && !data_source.quoted
        && data_source.bytes.len() >= data_source.wire_len
    {
        // A tunnel follows, or something that is not an IP packet.
        plan.expert(Rule::FastCnpNotCnp, range(packet.option_at, 2));
    }
}

fn addresses(place: &OptionsAt, packet: &Packet<'_>) -> Option<(IpAddr, IpAddr)> {
    match packet.found.as_ref().and_then(|(_, frame)| frame.ip()) {
        Some(ip) => Some((ip.source, ip.destination)),
        None => place.addresses,
    }
}

fn read_option<'a>(source: &Source<'a>, option_at: usize) -> Option<FastCnpRepr<'a>> {
    let [kind, len] = *source.slice(option_at, 2).first_chunk::<2>()?;
    let data = source.slice(option_at + 2, usize::from(len));
    (data.len() == usize::from(len))
        .then(|| FastCnpRepr::parse(kind, data, source.profile)?.ok())
        .flatten()
}

/// Fields of an option's type and length octets.
type Head = [F; 5];
const FAST_HEAD: Head = F::FastOptionType.run();
const PROXY_HEAD: Head = F::ProxyOptionType.run();

fn head(plan: &mut Plan, fields: &Head, start: usize, option: &Ipv6Option<'_>) {
    let [kind, action, change, rest, length] = *fields;
    let here = range(start, 1);
    plan.open_word(
        kind,
        here,
        option.kind,
        Mark::ShownByWireshark(Node::OptionType, here.start),
    );
    for part in [action, change, rest] {
        plan.add(part, here, option.kind);
    }
    plan.close();
    let here = range(start + 1, 1);
    let len = option.data.len() as u32;
    plan.known(length, here, len, Node::OptionLength);
}

/// Returns the rules that an option of ours violates by itself.
fn broken_by(source: &Source<'_>, place: &OptionsAt, option: &Ipv6Option<'_>) -> Findings {
    let mut findings = Findings::new();
    let check = if source.profile.is_fast_cnp(option.kind) {
        FastCnpRepr::check
    } else {
        ProxyAddress::check
    };
    check(option, place.layer(), source.profile, &mut findings);
    findings
}

fn fast_option(plan: &mut Plan, source: &Source<'_>, place: &OptionsAt, option: &Ipv6Option<'_>) {
    let start = place.start + option.offset;
    let number = match option.kind == source.profile.fast_cnp_option1 {
        true => 1u8,
        false => 2,
    };
    plan.goto(Node::Ipv6Option, start);
    plan.open(F::FastOption, range(start, option.len()), Mark::Plain);
    plan.label(format_args!("Fast CNP option {number}"));
    plan.marked(F::FastOptionNumber, range(start, 1), number, Mark::Hidden);
    head(plan, &FAST_HEAD, start, option);
    let data = start + 2;
    let parsed = FastCnpRepr::parse(option.kind, option.data, source.profile);
    if let Some(Ok(parsed)) = parsed {
        if let FastCnpRepr::Option2 { ioam: inner, .. } = parsed {
            plan.replace(Node::OptionUnknown, data);
            plan.add(F::FastOptionReserved, range(data, 1), inner.reserved);
            let kind = inner.opt_type.code();
            plan.add(F::FastOptionIoamType, range(data + 1, 1), kind);
            match parsed.trace() {
                Some(trace) => ioam::trace(plan, data + 2, &trace),
                None if !inner.body.is_empty() => {
                    plan.octets(F::FastOptionIoamBody, range(data + 2, inner.body.len()));
                }
                None => {}
            }
        }
        let here = range(data + parsed.address_at(option.data.len()), 16);
        let destination = parsed.original_destination();
        plan.ipv6(F::FastOptionDestination, here, destination, Mark::Plain);
    }
    for finding in &broken_by(source, place, option) {
        let here = range(place.start + finding.offset, finding.len);
        match (finding.rule, parsed) {
            (Rule::FastCnpMalformed | Rule::FastCnpLength1, Some(Err(e))) => {
                plan.expert_with(finding.rule, here, format_args!("{e}"));
            }
            (rule, _) => plan.expert(rule, here),
        }
    }
    plan.close();
}

fn proxy_option(plan: &mut Plan, source: &Source<'_>, place: &OptionsAt, option: &Ipv6Option<'_>) {
    let start = place.start + option.offset;
    plan.goto(Node::Ipv6Option, start);
    plan.protocol(P::ProxyOption, range(start, option.len()), Mark::Plain);
    head(plan, &PROXY_HEAD, start, option);
    let parsed = ProxyAddress::parse(option.kind, option.data, source.profile);
    if let Some(Ok(ProxyAddress(address))) = parsed {
        let here = range(start + 2, 16);
        plan.ipv6(F::ProxyOptionAddress, here, address, Mark::Plain);
    }
    plan.experts(&broken_by(source, place, option), place.start);
    plan.close();
}

/// Plans an option of ours that runs past its header; returns true if it is a Fast CNP option.
fn plan_overrun(
    plan: &mut Plan,
    source: &Source<'_>,
    place: &OptionsAt,
    header: &[u8],
    e: &Error,
) -> bool {
    let Some((option_at, kind)) = overrunning_option(header, e) else {
        return false;
    };
    let fast = source.profile.is_fast_cnp(kind);
    if !fast && kind != source.profile.proxy_address_option {
        return false;
    }
    let start = place.start + option_at;
    let rest = range(start, header.len() - option_at);
    plan.goto(Node::Ipv6Option, start);
    let rule = if fast {
        plan.open(F::FastOption, rest, Mark::Plain);
        plan.label(format_args!(
            "Fast CNP option, truncated at the end of its header"
        ));
        Rule::FastCnpMalformed
    } else {
        plan.protocol(P::ProxyOption, rest, Mark::Plain);
        Rule::ProxyAddressLength
    };
    plan.expert_with(rule, range(place.start + e.offset, 1), format_args!("{e}"));
    plan.close();
    fast
}
