//! RoCEv2 packets: FECN, BECN, ICRC, and the plain CNP.

use super::Scene;
use crate::names::{F, P, UNVERIFIED};
use crate::plan::{Anchor, ColumnText, Mark, Op, Plan, at};
use fcn_wire::bth::{BTH_LEN, Bth, Opcode};
use fcn_wire::cnp::{CNP_BODY_LEN, Cnp, RESERVED_LEN};
use fcn_wire::finding::{Family, Finding, Findings, Rule};
use fcn_wire::frame::{End, Frame};
use fcn_wire::icrc::{ICRC_LEN, Verdict};
use fcn_wire::message::{IcrcCheck, Message, check_icrc, check_roce};
use fcn_wire::notification::{Kind, Notification};
use std::net::IpAddr;

/// A RoCEv2 packet, as Wireshark hands it over.
#[derive(Clone, Copy, Debug)]
pub struct RoceAt {
    /// First octet of the BTH in the data source.
    pub payload: usize,
    /// Octets of the UDP payload captured.
    pub captured: usize,
    /// Octets of the UDP payload on the wire.
    pub reported: usize,
    /// Source and destination of the IP packet, where it is IP.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// A Fast CNP option came with it, by its addresses; counts where the IP header cannot be found.
    pub option_noted: OptionNoted,
}

/// Whether a Fast CNP option was seen that belongs to a RoCEv2 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionNoted {
    /// No.
    No,
    /// Yes, in the same data source.
    Here,
    /// Yes, in another data source: reassembly left it behind.
    Elsewhere,
}

impl RoceAt {
    const fn is_whole(&self) -> bool {
        self.captured == self.reported
    }

    fn is_fast(&self, frame: Option<&Frame<'_>>) -> bool {
        frame.map_or(self.option_noted != OptionNoted::No, |frame| {
            matches!(frame.message(), Message::FastCnp(_))
        })
    }

    /// With the length that the packet's own headers state, where that is more: a quotation ends early.
    fn told_by(self, frame: Option<&Frame<'_>>) -> Self {
        let stated = frame
            .and_then(|frame| frame.datagram())
            .map_or(0, |datagram| datagram.payload_len);
        Self {
            reported: self.reported.max(stated),
            ..self
        }
    }
}

/// Fields of the CNP part, which a plain CNP and a Fast CNP name differently.
pub(super) struct CnpFields {
    opcode: F,
    pkey: F,
    fecn: F,
    becn: F,
    dest_qp: F,
    psn: F,
    reserved: F,
}

const PLAIN: CnpFields = CnpFields {
    opcode: F::CnpOpcode,
    pkey: F::CnpPkey,
    fecn: F::CnpFecn,
    becn: F::CnpBecn,
    dest_qp: F::CnpDestQp,
    psn: F::CnpPsn,
    reserved: F::CnpReserved,
};

pub(super) const FAST: CnpFields = CnpFields {
    opcode: F::FastOpcode,
    pkey: F::FastPkey,
    fecn: F::FastFecn,
    becn: F::FastBecn,
    dest_qp: F::FastDestQp,
    psn: F::FastPsn,
    reserved: F::FastReserved,
};

/// Plans what is shown of a RoCEv2 packet.
pub fn roce(plan: &mut Plan<'_>, scene: &Scene<'_>, place: &RoceAt) {
    let payload = scene.slice(place.payload, place.captured);
    let found = scene.frame_of_payload(place.payload, place.addresses.map(|(source, _)| source));
    let frame = found.as_ref().map(|(_, frame)| frame);
    let place = &place.told_by(frame);

    if !scene.quoted {
        plan.push(Op::Goto(Anchor::Root));
        plan.push(Op::Protocol(
            P::Roce,
            at(place.payload, place.captured),
            Mark::Hidden,
        ));
    }
    let bth = Bth::new_checked(payload).ok();
    if let Some(bth) = bth {
        let ecn = u32::from(bth.fecn()) << 7 | u32::from(bth.becn()) << 6;
        plan.push(Op::Goto(Anchor::Bth(start(place.payload))));
        plan.flag(F::RoceFecn, at(place.payload + 4, 1), ecn);
        plan.flag(F::RoceBecn, at(place.payload + 4, 1), ecn);
    }

    let is_cnp = bth.is_some_and(|bth| bth.opcode() == Opcode::CNP);
    let is_fast = place.is_fast(frame);
    let mut findings = Findings::new();
    if place.is_whole() {
        check_roce(payload, &mut findings);
    }
    if let Some((base, frame)) = &found {
        around(plan, *base, frame);
    }
    plan.push(Op::Goto(Anchor::InfiniBand(start(place.payload))));
    icrc(plan, scene, place, frame);
    for finding in &findings {
        if !(is_cnp && is_cnp_rule(finding.rule)) {
            plan.expert(
                finding.rule,
                at(place.payload + finding.offset, finding.len),
            );
        }
    }
    if let Some((base, frame)) = &found {
        ioam_rules(plan, *base, frame);
    }
    if is_cnp && !is_fast {
        plan.push(Op::Goto(Anchor::Root));
        let whole = at(place.payload, place.captured);
        if scene.quoted {
            plan.push(Op::Open(F::CnpQuoted, whole));
        } else {
            plan.push(Op::Protocol(P::Cnp, whole, Mark::Plain));
        }
        if let Some(line) = line(frame, place, bth) {
            plan.label(format_args!(
                "{}{line}",
                if scene.quoted { "Quoted " } else { "" }
            ));
        }
        if let Some((_, sender)) = place.addresses {
            let fields = (F::CnpSender4, F::CnpSender6);
            plan.address(fields, at(place.payload, 0), sender, Mark::Generated);
        }
        cnp_part(plan, scene, place, &PLAIN);
    } else if is_cnp && frame.is_none() && place.option_noted == OptionNoted::Elsewhere {
        // The option is shown where it lies; the CNP behind it lies here.
        plan.push(Op::Goto(Anchor::Root));
        let whole = at(place.payload, place.captured);
        if scene.quoted {
            plan.push(Op::Open(F::FastQuoted, whole));
        } else {
            plan.push(Op::Protocol(P::FastCnp, whole, Mark::Plain));
        }
        if let Some(line) = line(frame, place, bth) {
            plan.label(format_args!("{line}"));
        }
        cnp_part(plan, scene, place, &FAST);
    }
}

/// Plans what IP and UDP around the message in `frame` break, which begins at `base`.
pub(super) fn around(plan: &mut Plan<'_>, base: usize, frame: &Frame<'_>) {
    let mut findings = Findings::new();
    frame.check_around(&mut findings);
    if !findings.is_empty() {
        plan.push(Op::Goto(Anchor::Root));
    }
    for finding in &findings {
        plan.expert(finding.rule, at(base + finding.offset, finding.len));
    }
}

/// Plans the rules that the packet's own IOAM trace breaks, in its option; Wireshark decodes the trace itself.
fn ioam_rules(plan: &mut Plan<'_>, base: usize, frame: &Frame<'_>) {
    let mut findings = Findings::new();
    frame.check(IcrcCheck::Off, &mut findings);
    let is_ioam = |finding: &&Finding| finding.rule.info().family == Family::Ioam;
    for finding in (&findings).into_iter().filter(is_ioam) {
        if let Some((option_at, kind)) = frame.option_around(finding.offset)
            && !frame.profile().is_fast_cnp(kind)
        {
            plan.push(Op::Goto(Anchor::Ipv6Option(start(base + option_at))));
            plan.expert(finding.rule, at(base + finding.offset, finding.len));
        }
    }
}

/// Plans the CNP part: its fields as far as captured, and the rules it breaks.
pub(super) fn cnp_part(plan: &mut Plan<'_>, scene: &Scene<'_>, place: &RoceAt, fields: &CnpFields) {
    let base = place.payload;
    let payload = scene.slice(base, place.captured);
    if let Ok(bth) = Bth::new_checked(payload) {
        let ecn = u32::from(bth.fecn()) << 7 | u32::from(bth.becn()) << 6;
        plan.uint(fields.opcode, at(base, 1), bth.opcode().0);
        plan.uint(fields.pkey, at(base + 2, 2), bth.pkey());
        plan.flag(fields.fecn, at(base + 4, 1), ecn);
        plan.flag(fields.becn, at(base + 4, 1), ecn);
        plan.uint(fields.dest_qp, at(base + 5, 3), bth.dest_qp().get());
        plan.uint(fields.psn, at(base + 9, 3), bth.psn());
        let reserved = payload.len().min(CNP_BODY_LEN) - BTH_LEN;
        if reserved > 0 {
            plan.push(Op::Bytes(fields.reserved, at(base + BTH_LEN, reserved)));
            let octets = &payload[BTH_LEN..BTH_LEN + reserved];
            if reserved == RESERVED_LEN && octets.iter().all(|octet| *octet == 0) {
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
        let here = at(base + finding.offset, finding.len);
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

fn icrc(plan: &mut Plan<'_>, scene: &Scene<'_>, place: &RoceAt, frame: Option<&Frame<'_>>) {
    let end = place.payload + place.captured;
    let unchecked = |plan: &mut Plan<'_>, why: &str| {
        let why = plan.text(format_args!("{why}"));
        plan.push(Op::Text(
            F::RoceIcrcUnchecked,
            at(end, 0),
            why,
            Mark::Generated,
        ));
    };
    if !place.is_whole() {
        plan.push(Op::Uint(
            F::RoceIcrcStatus,
            at(end, 0),
            UNVERIFIED,
            Mark::Generated,
        ));
        unchecked(
            plan,
            if scene.quoted {
                "only the beginning of the packet is quoted"
            } else {
                "the capture cut the packet short"
            },
        );
        return;
    }
    // Shorter than a BTH and an ICRC: `check_roce` names it.
    let Some(icrc_at) = place
        .captured
        .checked_sub(ICRC_LEN)
        .filter(|before| *before >= BTH_LEN)
        .map(|before| place.payload + before)
    else {
        return;
    };
    let field: [u8; ICRC_LEN] = scene
        .slice(icrc_at, ICRC_LEN)
        .try_into()
        .unwrap_or_default();
    let carried = u32::from_le_bytes(field);
    let verdict = match frame {
        Some(frame) if scene.check_icrc => frame.verify_icrc(),
        _ => Verdict::Unchecked,
    };
    match verdict {
        Verdict::Good(reading) => {
            plan.push(Op::Icrc(start(icrc_at), carried, true));
            if let Some(reading) = reading {
                let name = plan.text(format_args!("{}", reading.name()));
                plan.push(Op::Text(
                    F::RoceIcrcMatches,
                    at(icrc_at, ICRC_LEN),
                    name,
                    Mark::Generated,
                ));
                plan.append(format_args!(" ({})", reading.describe()));
            }
        }
        Verdict::Bad { expected, .. } => plan.push(Op::Icrc(start(icrc_at), expected, true)),
        Verdict::Unchecked => {
            plan.push(Op::Icrc(start(icrc_at), carried, false));
            unchecked(plan, why_unchecked(scene, frame));
        }
    }
    let mut findings = Findings::new();
    check_icrc(verdict, place.captured, &mut findings);
    for finding in &findings {
        // Wireshark's own checksum item has this rule's expert info.
        let here = at(place.payload + finding.offset, finding.len);
        plan.found(Op::Found(finding.rule, here));
    }
}

fn why_unchecked(scene: &Scene<'_>, frame: Option<&Frame<'_>>) -> &'static str {
    match frame {
        _ if !scene.check_icrc => "switched off in the preferences",
        None => "the IP header is not in front of it (reassembled from fragments, or not IP)",
        Some(frame) => match frame.end() {
            End::Fragment { .. } => "the packet is a fragment",
            End::Cut { .. } => "the capture cut the packet short",
            End::Malformed(_) => "a length field around it contradicts its surroundings",
            End::Complete => "the packet cannot be read so far",
        },
    }
}

/// The text for the Info column, and which protocol the packet is; `None` where it is no CNP of either kind.
pub fn info(scene: &Scene<'_>, place: &RoceAt) -> Option<(P, ColumnText)> {
    let bth = Bth::new_checked(scene.slice(place.payload, place.captured)).ok()?;
    if bth.opcode() != Opcode::CNP {
        return None;
    }
    let found = scene.frame_of_payload(place.payload, place.addresses.map(|(source, _)| source));
    let frame = found.as_ref().map(|(_, frame)| frame);
    let line = line(frame, place, Some(bth))?;
    let damage = damage(scene, place, frame);
    Some((
        if line.fast { P::FastCnp } else { P::Cnp },
        ColumnText::new(format_args!("{line}{damage}")),
    ))
}

/// What is wrong with a packet so that what its line says may be wrong, too: a text that goes behind it.
fn damage(scene: &Scene<'_>, place: &RoceAt, frame: Option<&Frame<'_>>) -> &'static str {
    let mut findings = Findings::new();
    match frame {
        Some(frame) => {
            let icrc = if scene.check_icrc {
                IcrcCheck::On
            } else {
                IcrcCheck::Off
            };
            frame.check(icrc, &mut findings);
        }
        None if place.is_whole() => {
            check_roce(scene.slice(place.payload, place.captured), &mut findings);
        }
        None => {}
    }
    let malformed = (findings.as_slice().iter()).any(|finding| finding.rule.is_malformed());
    match (malformed, findings.has(Rule::RoceIcrcBad)) {
        (false, false) => "",
        (true, false) => " [Malformed]",
        (false, true) => " [ICRC incorrect]",
        (true, true) => " [Malformed] [ICRC incorrect]",
    }
}

/// `text`, with the remark in brackets that ends what is in the Info column at present.
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

/// One line about a CNP of either kind.
fn line<'a>(
    frame: Option<&'a Frame<'a>>,
    place: &'a RoceAt,
    bth: Option<Bth<'a>>,
) -> Option<Line<'a>> {
    let bth = bth?;
    let notification = frame.and_then(|frame| Notification::read(frame));
    let (fast, option) = match (&notification, frame) {
        (Some(notification), _) => (notification.kind != Kind::Cnp, None),
        (None, Some(frame)) => match frame.message() {
            Message::FastCnp(message) => (true, message.parsed.ok()),
            _ => (false, None),
        },
        (None, None) => (place.option_noted != OptionNoted::No, None),
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
        // Not a whole one: say as much as there is.
        f.write_str(if self.fast { "Fast CNP" } else { "CNP" })?;
        if let Some((source, destination)) = self.place.addresses {
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

fn start(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
