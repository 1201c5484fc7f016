//! RoCEv2 packets: FECN, BECN, ICRC, and the plain CNP.

use super::{PayloadAt, Source, open_message};
use crate::names::{F, Node, P, Remark, UNVERIFIED};
use crate::plan::{ColumnText, Mark, Op, Plan, range};
use fcn_observe::malformed::Malformed;
use fcn_wire::bth::{BTH_LEN, Bth, Opcode};
use fcn_wire::cnp::{CNP_BODY_LEN, Cnp, RESERVED_LEN};
use fcn_wire::finding::{Family, Finding, Findings, Rule};
use fcn_wire::frame::{End, Frame};
use fcn_wire::icrc::{ICRC_LEN, Verdict};
use fcn_wire::message::{IcrcCheck, Message, check_icrc, check_roce, icrc_rule};
use fcn_wire::notification::{Kind, Notification};
use std::net::IpAddr;

/// A RoCEv2 packet, as Wireshark passes it.
#[derive(Clone, Copy, Debug)]
pub struct RoceAt {
    /// UDP payload, which begins with the BTH.
    pub at: PayloadAt,
    /// Fast CNP option of the same packet, matched by addresses; used if the IP header cannot be
    /// found.
    pub option_presence: OptionPresence,
}

/// Presence of a Fast CNP option that belongs to a RoCEv2 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionPresence {
    /// None.
    No,
    /// In the same data source.
    Here,
    /// In another data source: reassembly left it behind.
    Elsewhere,
}

impl RoceAt {
    fn is_fast(&self, frame: Option<&Frame<'_>>) -> bool {
        frame.map_or(self.option_presence != OptionPresence::No, |frame| {
            matches!(frame.message(), Message::FastCnp(_))
        })
    }

    /// Returns it with the length in the packet's own headers, if that is greater: a quotation ends
    /// early.
    fn with_stated_length(mut self, frame: Option<&Frame<'_>>) -> Self {
        if let Some(datagram) = frame.and_then(|frame| frame.datagram()) {
            self.at.reported = self.at.reported.max(datagram.payload_len);
        }
        self
    }
}

/// Fields of the CNP part, which a plain CNP and a Fast CNP name differently.
pub(super) type CnpFields = [F; 7];
const PLAIN: CnpFields = F::CnpOpcode.run();
pub(super) const FAST: CnpFields = F::FastOpcode.run();

/// Plans the items for a RoCEv2 packet.
pub fn roce(plan: &mut Plan, source: &Source<'_>, place: &RoceAt) {
    let payload = source.payload(&place.at);
    let found = source.frame_of_payload(&place.at);
    let frame = found.as_ref().map(|(_, frame)| frame);
    let place = &place.with_stated_length(frame);
    let (start, whole) = (place.at.start, place.at.whole());

    if !source.quoted {
        plan.root();
        plan.protocol(P::Roce, whole, Mark::Hidden);
    }
    let bth = Bth::new_checked(payload).ok();
    if bth.is_some() {
        plan.goto(Node::Bth, start);
        plan.add(F::RoceFecn, range(start + 4, 1), payload[4]);
        plan.add(F::RoceBecn, range(start + 4, 1), payload[4]);
    }

    let is_cnp = bth.is_some_and(|bth| bth.opcode() == Opcode::CNP);
    let trimming = frame.filter(|_| !source.quoted).and_then(Frame::trimming);
    if let Some(sign) = trimming {
        plan.text(F::RoceTrimmed, whole, format_args!("{}", sign.id()));
        plan.remark(Remark::Trimmed, whole);
    }
    let mut findings = Findings::new();
    if place.at.is_whole() && trimming.is_none() {
        check_roce(payload, &mut findings);
    }
    if let Some((base, frame)) = &found {
        around(plan, *base, frame);
    }
    plan.goto(Node::InfiniBand, start);
    icrc(plan, source, &place.at, frame);
    for finding in &findings {
        if !(is_cnp && is_cnp_rule(finding.rule)) {
            plan.expert(finding.rule, range(start + finding.offset, finding.len));
        }
    }
    if let Some((base, frame)) = &found {
        ioam_rules(plan, *base, frame);
    }
    let (protocol, quotation, fields) = match place.option_presence {
        _ if !is_cnp => return,
        _ if !place.is_fast(frame) => (P::Cnp, F::CnpQuoted, &PLAIN),
        // The option is shown in its own data source; the CNP behind it is in this one.
        OptionPresence::Elsewhere if frame.is_none() => (P::FastCnp, F::FastQuoted, &FAST),
        _ => return,
    };
    let is_plain = protocol == P::Cnp;
    open_message(plan, source, (protocol, quotation), whole);
    if let Some(line) = line(frame, place, bth) {
        let quoted = if source.quoted && is_plain {
            "Quoted "
        } else {
            ""
        };
        plan.label(format_args!("{quoted}{line}"));
    }
    if let Some((_, sender)) = place.at.addresses
        && is_plain
    {
        let fields = (F::CnpSender4, F::CnpSender6);
        plan.address(fields, range(start, 0), sender, Mark::Generated);
    }
    cnp_part(plan, source, &place.at, fields);
}

/// Plans the rules that IP and UDP around the message in `frame` violate; offsets are relative to
/// `base`.
pub(super) fn around(plan: &mut Plan, base: usize, frame: &Frame<'_>) {
    let mut findings = Findings::new();
    frame.check_enclosing_headers(&mut findings);
    if !findings.is_empty() {
        plan.root();
        plan.experts(&findings, base);
    }
}

/// Plans the rules that the packet's own IOAM trace violates, in its option; Wireshark decodes the
/// trace itself.
fn ioam_rules(plan: &mut Plan, base: usize, frame: &Frame<'_>) {
    let mut findings = Findings::new();
    frame.check(IcrcCheck::Off, &mut findings);
    let is_ioam = |finding: &&Finding| finding.rule.info().family == Family::Ioam;
    for finding in (&findings).into_iter().filter(is_ioam) {
        if let Some((option_at, kind)) = frame.option_around(finding.offset)
            && !frame.profile().is_fast_cnp(kind)
        {
            plan.goto(Node::Ipv6Option, base + option_at);
            plan.expert(finding.rule, range(base + finding.offset, finding.len));
        }
    }
}

/// Plans the CNP part: its fields as far as captured, and the rules that it violates.
pub(super) fn cnp_part(
    plan: &mut Plan,
    source: &Source<'_>,
    place: &PayloadAt,
    [opcode, pkey, fecn, becn, dest_qp, psn, reserved]: &CnpFields,
) {
    let base = place.start;
    let payload = source.payload(place);
    if let Ok(bth) = Bth::new_checked(payload) {
        let here = range(base, 1);
        let mark = Mark::AfterWiresharkItem(Node::BthOpcode, here.start);
        plan.marked(*opcode, here, bth.opcode().0, mark);
        plan.known(*pkey, range(base + 2, 2), bth.pkey(), Node::BthPkey);
        // Together with the BTH, our fields of any RoCEv2 packet are shown.
        let mark = Mark::ShownByWireshark(Node::Bth, here.start);
        for bit in [*fecn, *becn] {
            plan.marked(bit, range(base + 4, 1), payload[4], mark);
        }
        plan.add(*dest_qp, range(base + 5, 3), bth.dest_qp().get());
        plan.known(*psn, range(base + 9, 3), bth.psn(), Node::BthPsn);
        let octets = &payload[BTH_LEN..payload.len().min(CNP_BODY_LEN)];
        if !octets.is_empty() {
            plan.octets(*reserved, range(base + BTH_LEN, octets.len()));
            if octets.len() == RESERVED_LEN && octets.iter().all(|octet| *octet == 0) {
                plan.append(format_args!(" (all zero)"));
            }
        }
    }
    if !place.is_whole() {
        return;
    }
    let mut findings = Findings::new();
    check_roce(payload, &mut findings);
    for finding in &findings {
        let here = range(base + finding.offset, finding.len);
        match (finding.rule, Cnp::new_checked(payload)) {
            (Rule::CnpMalformed, Err(e)) => {
                plan.expert_with(Rule::CnpMalformed, here, format_args!("{e}"));
            }
            (rule, _) if is_cnp_rule(rule) => plan.expert(rule, here),
            _ => {}
        }
    }
}

fn is_cnp_rule(rule: Rule) -> bool {
    rule.info().family == Family::Cnp
}

fn icrc(plan: &mut Plan, source: &Source<'_>, place: &PayloadAt, frame: Option<&Frame<'_>>) {
    let end = range(place.start + place.captured, 0);
    let unchecked = |plan: &mut Plan, why: &str| {
        plan.text(F::RoceIcrcUnchecked, end, format_args!("{why}"));
    };
    if !place.is_whole() {
        plan.generated(F::RoceIcrcStatus, end, UNVERIFIED);
        let why = match source.quoted {
            false if frame.is_some_and(|frame| frame.trimming().is_some()) => TRIMMED,
            true => "only the beginning of the packet is quoted",
            false => "the capture cut the packet short",
        };
        return unchecked(plan, why);
    }
    let payload = source.payload(place);
    // Shorter than a BTH and an ICRC: `check_roce` reports that.
    let Some((before, field)) = payload
        .split_last_chunk::<ICRC_LEN>()
        .filter(|(before, _)| before.len() >= BTH_LEN)
    else {
        return;
    };
    let here = range(place.start + before.len(), ICRC_LEN);
    let carried = u32::from_le_bytes(*field);
    let verdict = match frame {
        Some(frame) if source.check_icrc => frame.verify_icrc(),
        _ => Verdict::Unchecked,
    };
    let rule = icrc_rule(verdict, payload).unwrap_or(Rule::RoceIcrcBad);
    match verdict {
        Verdict::Good(reading) => {
            plan.push(Op::Icrc(here.start, carried, Some(rule)));
            if let Some(reading) = reading {
                plan.text(F::RoceIcrcMatches, here, format_args!("{reading}"));
                plan.append(format_args!(" ({})", reading.describe()));
            }
        }
        Verdict::Bad { expected, .. } => {
            plan.push(Op::Icrc(here.start, expected, Some(rule)));
        }
        Verdict::Unchecked => {
            plan.push(Op::Icrc(here.start, carried, None));
            unchecked(plan, why_unchecked(source, frame));
        }
    }
    let mut findings = Findings::new();
    check_icrc(verdict, payload, &mut findings);
    for finding in &findings {
        // Wireshark's own checksum item has the expert info of this rule.
        let here = range(place.start + finding.offset, finding.len);
        plan.found(Op::Found(finding.rule, here));
    }
}

const TRIMMED: &str = "a switch has trimmed the packet";

fn why_unchecked(source: &Source<'_>, frame: Option<&Frame<'_>>) -> &'static str {
    match frame {
        _ if !source.check_icrc => "switched off in the preferences",
        None => "no IP header precedes it (reassembled from fragments, or not IP)",
        Some(frame) if frame.trimming().is_some() => TRIMMED,
        Some(frame) => match frame.end() {
            End::Fragment { .. } => "the packet is a fragment",
            End::Cut { .. } => "the capture cut the packet short",
            End::Malformed(_) => "a length field of an outer header is inconsistent",
            End::Complete => "the packet cannot be parsed this far",
        },
    }
}

/// Returns the protocol of the packet, and the text for the Info column; `None` if it is not a CNP
/// of either kind.
pub fn info(source: &Source<'_>, place: &RoceAt) -> Option<(P, ColumnText)> {
    let bth = Bth::new_checked(source.payload(&place.at)).ok()?;
    if bth.opcode() != Opcode::CNP {
        return None;
    }
    let found = source.frame_of_payload(&place.at);
    let frame = found.as_ref().map(|(_, frame)| frame);
    let line = line(frame, place, Some(bth))?;
    let remark = damage_remark(source, &place.at, frame);
    Some((
        if line.fast { P::FastCnp } else { P::Cnp },
        ColumnText::new(format_args!("{line}{remark}")),
    ))
}

/// Returns the remark for the Info column about damage that makes the rest of the line unreliable.
fn damage_remark(
    source: &Source<'_>,
    place: &PayloadAt,
    frame: Option<&Frame<'_>>,
) -> &'static str {
    let mut findings = Findings::new();
    match frame {
        Some(frame) => frame.check(source.icrc_check(), &mut findings),
        None if place.is_whole() => check_roce(source.payload(place), &mut findings),
        None => {}
    }
    let malformed = (findings.as_slice().iter()).any(|finding| finding.rule.is_malformed())
        || frame.is_some_and(|frame| Malformed::from_frame(frame, &findings).is_some());
    match (malformed, findings.has_icrc()) {
        (false, false) => "",
        (true, false) => " [Malformed]",
        (false, true) => " [ICRC incorrect]",
        (true, true) => " [Malformed] [ICRC incorrect]",
    }
}

/// Returns `text`, with the bracketed remark that currently ends the Info column.
pub fn with_remark(text: &ColumnText, present: &[u8]) -> ColumnText {
    let remark = present
        .iter()
        .position(|octet| *octet == b'[')
        .and_then(|at| core::str::from_utf8(&present[at..]).ok());
    match remark {
        Some(remark) => ColumnText::new(format_args!("{} {remark}", text.as_str())),
        None => *text,
    }
}

/// Returns the Info line of a CNP of either kind.
fn line<'a>(
    frame: Option<&'a Frame<'a>>,
    place: &'a RoceAt,
    bth: Option<Bth<'a>>,
) -> Option<Line<'a>> {
    let bth = bth?;
    let notification = frame.and_then(|frame| Notification::from_frame(frame));
    let (fast, option) = match (&notification, frame) {
        (Some(notification), _) => (notification.kind != Kind::Cnp, None),
        (None, Some(frame)) => match frame.message() {
            Message::FastCnp(message) => (true, message.parsed.ok()),
            _ => (false, None),
        },
        (None, None) => (place.option_presence != OptionPresence::No, None),
    };
    Some(Line {
        notification,
        fast,
        receiver: option.map(|option| IpAddr::V6(option.original_destination())),
        place,
        bth,
    })
}

struct Line<'a> {
    notification: Option<Notification>,
    fast: bool,
    receiver: Option<IpAddr>,
    place: &'a RoceAt,
    bth: Bth<'a>,
}

impl core::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if let Some(notification) = &self.notification {
            return write!(f, "{notification}");
        }
        // Incomplete: report as much as there is.
        f.write_str(if self.fast { "Fast CNP" } else { "CNP" })?;
        if let Some((source, destination)) = self.place.at.addresses {
            let role = match self.receiver {
                Some(receiver) if receiver == source => "receiver ",
                Some(_) => "switch ",
                None => "",
            };
            write!(f, " from {role}{source} → sender {destination}")?;
        }
        write!(f, ", QP {}", self.bth.dest_qp())?;
        if let Some(receiver) = self.receiver {
            write!(f, " at {receiver}")?;
        }
        Ok(())
    }
}
