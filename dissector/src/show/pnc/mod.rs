//! Proxy Node Capability in routing messages: items at every prefix concerned, and at the message
//! if no prefix can be assigned. Wireshark's own decoding stays; parts around the capability that
//! it does not decode are added here.
//!
//! `fcn-wire` decides what is read and what is broken: the display follows its walk.

mod bgp;
mod igp;
#[cfg(test)]
mod tests;

use crate::names::{F, Node, P};
use crate::plan::{Mark, Plan, Range, range};
use fcn_wire::finding::{Finding, Findings};
use fcn_wire::pnc::bgp::Session;
use fcn_wire::pnc::{self, Advertisement, Protocol, Walk, walk_checked};
use fcn_wire::{Profile, Rule};
use std::net::IpAddr;

/// Maximum number of prefixes shown per message: more than a BGP message of 4096 octets or an LSP
/// holds.
pub const MAX_PREFIXES: usize = 1024;
/// Maximum number of attributes with next hop characteristics shown per segment.
pub const MAX_ATTRIBUTES: usize = 256;
/// Maximum number of characteristics shown per segment.
pub const MAX_CHARACTERISTICS: usize = 1024;

/// A routing message.
#[derive(Clone, Copy, Debug)]
pub struct Routing<'a> {
    /// Routing protocol.
    pub protocol: Protocol,
    /// Octets as captured: an IS-IS PDU, an OSPF packet, or a part of a BGP session.
    pub bytes: &'a [u8],
    /// Offset of these octets in the data source.
    pub start: usize,
    /// Number of octets on the wire.
    pub wire_len: usize,
    /// State of the BGP session.
    pub session: Session,
    /// Offsets in `bytes` of the prefixes that have lost their PNC, according to earlier messages.
    pub not_kept: &'a [u32],
    /// Code points that apply.
    pub profile: &'a Profile,
}

impl Routing<'_> {
    /// Returns a range in the data source.
    fn place(&self, offset: usize, len: usize) -> Range {
        range(self.start + offset, len)
    }

    fn lacks_pnc(&self, found: &Advertisement<'_>) -> bool {
        self.not_kept.contains(&range(found.offset, 0).start)
    }
}

/// Prefixes of a message that has data of ours; errors in it go to `findings`.
struct Prefixes<'a> {
    walk: Walk<'a>,
    /// True if it has flags, or attribute 39; errors in other messages are not reported.
    has_pnc_data: bool,
}

impl<'a> Prefixes<'a> {
    fn in_message(message: &Routing<'a>, findings: &mut Findings) -> Option<Self> {
        let Routing {
            protocol,
            bytes,
            wire_len,
            profile,
            ..
        } = *message;
        let walk = walk_checked(protocol, bytes, wire_len, profile, findings);
        let has_pnc_data = walk.is_some();
        let lacking = || {
            let any = !message.not_kept.is_empty() && findings.is_empty();
            let walk = any.then(|| pnc::walk(protocol, bytes, wire_len, profile).ok());
            walk.flatten().flatten()
        };
        let walk = walk.or_else(lacking)?.in_session(message.session);
        Some(Self { walk, has_pnc_data })
    }

    fn next(&mut self, findings: &mut Findings) -> Option<Advertisement<'a>> {
        if self.has_pnc_data {
            self.walk.next_checked(findings)
        } else {
            self.walk.next()
        }
    }
}

/// Plans the items for `message`; most messages have none.
pub fn routing(plan: &mut Plan, message: &Routing<'_>) {
    let mut findings = Findings::new();
    let mut progress = Progress::default();
    if message.protocol == Protocol::Bgp {
        bgp::show(plan, message, &mut findings, &mut progress);
    } else {
        igp::show(plan, message, &mut findings, &mut progress);
    }
    rest(plan, message, &findings, &progress);
}

/// Parts of a message that have been shown, and counts of those left out.
#[derive(Debug, Default)]
struct Progress {
    /// Bit mask of the findings that have been shown.
    findings: u32,
    prefixes: usize,
    left_out: LeftOut,
}

#[derive(Debug, Default)]
struct LeftOut {
    prefixes: usize,
    attributes: usize,
    characteristics: usize,
}

impl Progress {
    fn has(&self, finding: usize) -> bool {
        self.findings >> finding & 1 != 0
    }

    /// Adds the findings from index `from` on for which `belongs` returns true.
    fn experts(
        &mut self,
        plan: &mut Plan,
        message: &Routing<'_>,
        (findings, from): (&Findings, usize),
        belongs: impl Fn(&Finding) -> bool,
    ) {
        for (i, finding) in findings.as_slice().iter().enumerate().skip(from) {
            if !self.has(i) && belongs(finding) {
                self.findings |= 1 << i;
                plan.expert(finding.rule, message.place(finding.offset, finding.len));
            }
        }
    }

    /// Counts a prefix as shown or left out; returns true if there is room to show it.
    fn reserve_prefix(&mut self) -> bool {
        let fits = self.prefixes < MAX_PREFIXES;
        if fits {
            self.prefixes += 1;
        } else {
            self.left_out.prefixes += 1;
        }
        fits
    }
}

const _: () = assert!(fcn_wire::finding::MAX_FINDINGS <= u32::BITS as usize);

/// Opens the item of a prefix.
fn open(plan: &mut Plan, place: Range, found: &Advertisement<'_>) {
    plan.protocol(P::Pnc, place, Mark::Plain);
    let name = P::Pnc.def().name;
    let state = match (found.pnc, found.carrier, found.flag_offset) {
        _ if found.ignored => "ignored with its LSA, which is malformed",
        (true, ..) => "advertised",
        (false, Some(_), Some(_)) if found.protocol() == Protocol::Bgp => {
            "advertised, but for another next hop"
        }
        (false, Some(_), None) if found.protocol() != Protocol::Bgp => "cannot be read",
        (false, None, _) if found.protocol() == Protocol::Bgp => "cannot be read",
        (false, ..) => "not advertised",
    };
    match found.prefix {
        Some(prefix) => plan.label(format_args!("{name} of {prefix}: {state}")),
        None => plan.label(format_args!("{name} of routes of another family: {state}")),
    }
}

/// Adds the prefix itself and the verdict.
fn verdict(plan: &mut Plan, place: Range, found: &Advertisement<'_>) {
    if let Some(prefix) = found.prefix {
        plan.text(F::PncPrefix, place, format_args!("{prefix}"));
        let fields = (F::PncPrefix4, F::PncPrefix6);
        plan.address(fields, place, prefix.address(), Mark::Hidden);
    }
    let is_bgp = found.protocol() == Protocol::Bgp;
    if found.carrier.is_some() && (is_bgp || found.flag_offset.is_some()) {
        plan.generated(F::PncCapable, place, found.pnc);
    }
}

/// Adds to the message: findings that belong to no prefix and no attribute, and the number of
/// omissions.
fn rest(plan: &mut Plan, message: &Routing<'_>, findings: &Findings, progress: &Progress) {
    let mut open = None;
    for (i, finding) in findings.as_slice().iter().enumerate() {
        if progress.has(i) {
            continue;
        }
        let around = match message.protocol {
            Protocol::Bgp => bgp::around(message, finding.offset),
            _ => (0, message.bytes.len()),
        };
        if open != Some(around) {
            open_message(plan, message, around);
            open = Some(around);
        }
        plan.expert(finding.rule, message.place(finding.offset, finding.len));
    }
    plan.count_omitted(findings.dropped());
    let left_out = [
        (F::PncLeftOut, progress.left_out.prefixes),
        (F::PncLeftOutAttributes, progress.left_out.attributes),
        (
            F::PncLeftOutCharacteristics,
            progress.left_out.characteristics,
        ),
        (F::PncLeftOutFindings, plan.omitted()),
    ];
    if left_out.iter().all(|(_, count)| *count == 0) {
        return;
    }
    if open.is_none() {
        open_message(plan, message, (0, message.bytes.len()));
    }
    for (field, count) in left_out.into_iter().filter(|(_, count)| *count > 0) {
        plan.generated(field, message.place(0, 0), count as u64);
    }
    plan.add_omitted_count(message.place(0, 0));
}

fn open_message(plan: &mut Plan, message: &Routing<'_>, (from, len): (usize, usize)) {
    let (node, offset) = match message.protocol {
        Protocol::IsIs => (Node::IsisLsp, igp::LSP_ITEM),
        Protocol::Ospf2 | Protocol::Ospf3 => (Node::Ospf, 0),
        Protocol::Bgp => (Node::Bgp, from),
    };
    plan.goto(node, message.start + offset);
    plan.protocol(P::Pnc, message.place(from, len), Mark::Plain);
    plan.label(format_args!(
        "{}: findings about the whole message",
        P::Pnc.def().name
    ));
}

/// Converts an address of 4 or 16 octets.
fn address_of(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(octets) {
        return Some(v4.into());
    }
    let v6 = <[u8; 16]>::try_from(octets).ok()?;
    Some(v6.into())
}

/// Returns true for PNC on a prefix that is not a host route: shown at the prefix, wherever the
/// flag is.
fn is_of_prefix(finding: &Finding) -> bool {
    finding.rule == Rule::PncNotHost
}

/// Reports that a frame contained more routing messages than were noted.
pub fn too_many(plan: &mut Plan, count: u32) {
    plan.root();
    plan.protocol(P::Pnc, range(0, 0), Mark::Generated);
    plan.generated(F::PncLeftOutMessages, range(0, 0), count);
}
