//! Interpretation of the innermost packet of a frame, and the rules that it breaks.
//!
//! `frame.rs` locates the layers. The [`Notification`](crate::Notification), on which every tool
//! builds, is in `notification.rs`.

use crate::bth::{BTH_LEN, Bth, Opcode, Qp, Roce};
use crate::claim::Claim;
use crate::cnm::Cnm;
use crate::cnp::Cnp;
use crate::error::Result;
use crate::fast_cnp::FastCnpRepr;
use crate::finding::{Findings, Rule};
use crate::frame::{Datagram, End, Frame, OptionsHeader, Upper};
use crate::header::{ICRC_LEN, ipv6, udp};
use crate::icrc::Verdict;
use crate::infiniband;
use crate::ioam::{IoamOption, Trace};
use crate::ip::is_node_address;
use crate::ipv6_ext::{Ipv6Option, Options};
use crate::layer::Layer;
use crate::pfc::{self, Pfc};
use crate::pnc::bgp::Session;
use crate::pnc::{self, Protocol};
use crate::profile::Profile;
use crate::proxy_address::ProxyAddress;
use crate::proxy_cn::{Family, ProxyCn};
use crate::rdma_cm::Cm;
use crate::wan_fcn::WanFcn;
use std::net::{IpAddr, Ipv6Addr};

/// A Fast CNP: its option, and the CNP after it.
#[derive(Clone, Copy, Debug)]
pub struct FastCnpMessage<'a> {
    /// Options header that contains the option; a Hop-by-Hop header is a defect.
    pub header: OptionsHeader<'a>,
    /// The raw option in that header; the first one if there are several.
    pub option: Ipv6Option<'a>,
    /// The parsed option.
    pub parsed: Result<FastCnpRepr<'a>>,
    /// The CNP, if a complete one follows and is read; it is not read after an option that runs
    /// past its header.
    pub cnp: Option<Cnp<'a>>,
    /// The transport header, if RoCEv2 follows and that much was captured.
    pub bth: Option<Bth<'a>>,
}

impl FastCnpMessage<'_> {
    /// Returns the offset of the option in the frame.
    #[must_use]
    pub const fn option_at(&self) -> usize {
        self.header.start + self.option.offset
    }
}

/// Message in the innermost packet of a frame.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// A plain CNP.
    Cnp(Cnp<'a>),
    /// A Fast CNP, well-formed or not: any packet with one of its options.
    FastCnp(FastCnpMessage<'a>),
    /// Notification to the proxy node.
    ProxyCn(ProxyCn<'a>),
    /// Fast CNP in the WAN.
    WanFcn(WanFcn<'a>),
    /// Any other RoCEv2 packet, or a native InfiniBand packet; with the whole packet if all of it
    /// was captured and can be parsed.
    Roce(Bth<'a>, Option<Roce<'a>>),
    /// An RDMA CM message (or another one of its management class) in a RoCEv2 packet to the
    /// general services QP.
    RdmaCm(Roce<'a>, Cm<'a>),
    /// Priority-based flow control.
    Pfc(Pfc<'a>),
    /// Congestion notification message of a bridge.
    Cnm(Cnm<'a>),
    /// Not one of our messages, or not readable.
    Other,
}

/// Selects whether a check includes the ICRC, whose cost grows with the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcrcCheck {
    /// Verify the ICRC.
    On,
    /// Skip the ICRC.
    Off,
}

impl<'a> Frame<'a> {
    /// Returns the transport header of the innermost packet, if that is RoCEv2 or native InfiniBand
    /// without a Fast CNP option.
    #[inline]
    #[must_use]
    pub fn bth(&self) -> Option<Bth<'a>> {
        let (packet, _) = self.transport()?;
        let bth = Bth::new_checked(packet).ok()?;
        self.fast_cnp_option().is_none().then_some(bth)
    }

    /// Returns the message in the innermost packet.
    #[inline]
    #[must_use]
    pub fn message(&self) -> Message<'a> {
        if let Some(found) = self.fast_cnp() {
            return Message::FastCnp(found);
        }
        match self.upper() {
            Upper::Udp(datagram) => self.udp_message(datagram),
            Upper::InfiniBand(packet) => infiniband_message(packet),
            Upper::MacControl(_, bytes, _) => {
                Pfc::new_checked(bytes).map_or(Message::Other, Message::Pfc)
            }
            Upper::Cnm(_, bytes) => Cnm::new_checked(bytes).map_or(Message::Other, Message::Cnm),
            _ => Message::Other,
        }
    }

    fn udp_message(&self, datagram: &Datagram<'a>) -> Message<'a> {
        let (port, payload) = (datagram.destination_port, datagram.payload);
        let profile = self.profile();
        // A notified node drops a packet with an option that runs past its header (RFC 8200 section
        // 4.2).
        let is_read = !self.has_overrunning_option();
        if self.is_roce() {
            let Ok(bth) = Bth::new_checked(payload) else {
                return Message::Other;
            };
            let whole = datagram.is_whole().then_some(payload);
            if let Some(Ok(cnp)) = whole.filter(|_| is_read).map(Cnp::new_checked) {
                return Message::Cnp(cnp);
            }
            return roce_message(bth, whole);
        }
        let is_ours = datagram.claim(profile) == Claim::Ours;
        if !is_ours || !is_read || self.has_bad_checksum(datagram) {
            return Message::Other;
        }
        if port == profile.proxy_cn_port {
            let outer = Family::from_address(datagram.ip.source);
            ProxyCn::new_checked(payload, outer).map_or(Message::Other, Message::ProxyCn)
        } else {
            WanFcn::new_checked(payload).map_or(Message::Other, Message::WanFcn)
        }
    }

    #[inline]
    fn fast_cnp(&self) -> Option<FastCnpMessage<'a>> {
        let (header, offset) = self.fast_cnp_option()?;
        let (option, parsed) = read_fast_cnp(&header, offset, self.profile())?;
        let roce = self.datagram().filter(|_| self.is_roce());
        Some(FastCnpMessage {
            header,
            option,
            parsed,
            cnp: roce
                .filter(|datagram| datagram.is_whole() && !self.has_overrunning_option())
                .and_then(|datagram| Cnp::new_checked(datagram.payload).ok()),
            bth: roce.and_then(|datagram| Bth::new_checked(datagram.payload).ok()),
        })
    }

    /// Returns true if the innermost packet has an option that is not in the profile, and whose
    /// type makes nodes that do not recognise it discard the packet (RFC 8200 section 4.2).
    #[must_use]
    pub fn has_discard_option(&self) -> bool {
        let profile = self.profile();
        let is_known = |kind| {
            profile.is_fast_cnp(kind)
                || [profile.ioam_option, profile.proxy_address_option].contains(&kind)
        };
        self.options_headers().any(|header| {
            let mut options = header.readable();
            options.any(|option| option.kind >> 6 != 0 && !is_known(option.kind))
        })
    }

    /// Returns the IOAM trace in a Hop-by-Hop header of the innermost packet, with its offset in
    /// the frame.
    #[must_use]
    pub fn ioam_trace(&self) -> Option<(usize, Trace<'a>)> {
        self.options_headers()
            .filter(|header| header.layer == Layer::HopByHop)
            .find_map(|header| {
                let kind = self.profile().ioam_option;
                let mut options = header.readable().filter(|option| option.kind == kind);
                // Other IOAM options may be present besides the trace (RFC 9197 section 4).
                options.find_map(|option| {
                    let trace = IoamOption::parse(option.data).ok()?.trace()?.ok()?;
                    Some((header.start + option.offset + 4, trace))
                })
            })
    }

    /// Returns the proxy node's address that a data packet carries in its Destination Options.
    #[must_use]
    pub fn proxy_address(&self) -> Option<Ipv6Addr> {
        self.options_headers()
            .filter(|header| header.layer == Layer::DestinationOptions)
            .find_map(|header| {
                header
                    .readable()
                    .find_map(|option| {
                        ProxyAddress::parse(option.kind, option.data, self.profile())?.ok()
                    })
                    .map(|option| option.0)
            })
    }

    /// Returns the IS-IS, OSPF or BGP message of the innermost packet, with its offset.
    #[must_use]
    pub fn routing(&self) -> Option<(Protocol, usize, &'a [u8])> {
        Some(match self.upper() {
            Upper::IsIs(at, bytes) => (Protocol::IsIs, *at, *bytes),
            Upper::Bgp(at, bytes) => (Protocol::Bgp, *at, *bytes),
            Upper::Ospf(ip, bytes) if ip.source.is_ipv4() => (Protocol::Ospf2, ip.payload, *bytes),
            Upper::Ospf(ip, bytes) => (Protocol::Ospf3, ip.payload, *bytes),
            _ => return None,
        })
    }

    /// Adds every rule that the innermost packet breaks, with offsets from the start of the frame.
    ///
    /// [`end`](Self::end) reports if the frame cannot be parsed at all, or only in part.
    pub fn check(&self, icrc: IcrcCheck, findings: &mut Findings) {
        self.check_in_session(icrc, Session::default(), findings);
    }

    /// Checks like [`check`](Self::check), with the state of the BGP session to which the packet
    /// may belong.
    pub fn check_in_session(&self, icrc: IcrcCheck, session: Session, findings: &mut Findings) {
        self.check_enclosing_headers(findings);
        self.check_options(findings);
        match self.upper() {
            Upper::Udp(datagram) => self.check_datagram(datagram, icrc, findings),
            Upper::MacControl(at, bytes, destination) => {
                let cut = self.is_cut();
                findings.within(*at, |f| pfc::inspect(bytes, cut, *destination, f));
            }
            _ => self.check_routing(session, findings),
        }
    }

    /// Adds the rules that IP and UDP around one of our messages break: lengths, and the checksum
    /// of a notification in UDP.
    pub fn check_enclosing_headers(&self, findings: &mut Findings) {
        if let Some(at) = self.contradicting_length().filter(|_| self.is_checked()) {
            findings.push(Rule::PacketLength, at, 2);
        }
        if self.has_overrunning_option() && self.is_checked() {
            self.check_foreign_overrun(findings);
        }
        let Some(datagram) = self.datagram() else {
            return;
        };
        let (port, profile) = (datagram.destination_port, self.profile());
        let rule = if port == profile.proxy_cn_port {
            Rule::ProxyCnChecksum
        } else {
            Rule::WanFcnChecksum
        };
        if !self.is_roce()
            && datagram.claim(profile) != Claim::Others
            && self.has_bad_checksum(datagram)
        {
            findings.push(rule, datagram.start + udp::CHECKSUM, 2);
        }
    }

    /// Reports an option that runs past its header, if its type does not have a rule of its own.
    #[cold]
    fn check_foreign_overrun(&self, findings: &mut Findings) {
        let profile = self.profile();
        for header in self.options_headers() {
            let mut options = header.options();
            options.by_ref().for_each(drop);
            if let Some((at, kind)) = overrunning(&header, &options)
                && rule_of_overrun(kind, profile).is_none()
            {
                findings.push(Rule::PacketLength, header.start + at, 1);
            }
        }
    }

    /// Returns true if a notification in UDP is dropped for its checksum. If a length contradicts
    /// the packet, the range that the checksum covers is unknown.
    fn has_bad_checksum(&self, datagram: &Datagram<'a>) -> bool {
        datagram.has_bad_checksum() && self.contradicting_length().is_none()
    }

    fn check_routing(&self, session: Session, findings: &mut Findings) {
        let Some((protocol, at, bytes)) = self.routing() else {
            return;
        };
        findings.within(at, |findings| {
            let wire_len = self
                .spans()
                .last()
                .map_or(0, |span| span.end.saturating_sub(at));
            let walk = pnc::walk_checked(protocol, bytes, wire_len, self.profile(), findings);
            if let Some(walk) = walk {
                walk.in_session(session).check(findings);
            }
        });
    }

    fn check_options(&self, findings: &mut Findings) {
        let profile = self.profile();
        let (mut fast, mut proxy, mut destination_headers) = (0usize, false, 0usize);
        // Other protocols use IOAM, too: ignore the trace of a packet that is neither RoCEv2 nor
        // one of our messages.
        let ours = self.is_roce()
            || self.fast_cnp_option().is_some()
            || (self.datagram()).is_some_and(|datagram| datagram.claim(profile) != Claim::Others);
        for header in self.options_headers() {
            destination_headers += usize::from(header.layer == Layer::DestinationOptions);
            findings.within(header.start, |findings| {
                let mut options = header.options();
                for option in options.by_ref() {
                    let Ok(option) = option else { break };
                    let (kind, at) = (option.kind, option.offset);
                    if option.is_padding() {
                        continue;
                    }
                    if profile.is_fast_cnp(kind) {
                        fast += 1;
                        if fast == 2 {
                            findings.push(Rule::FastCnpSeveral, at, option.len());
                        }
                        FastCnpRepr::check(&option, header.layer, profile, findings);
                    } else if kind == profile.proxy_address_option {
                        if core::mem::replace(&mut proxy, true) {
                            findings.push(Rule::ProxyAddressSeveral, at, option.len());
                        }
                        ProxyAddress::check(&option, header.layer, profile, findings);
                    } else if kind == profile.ioam_option && ours {
                        match IoamOption::parse(option.data) {
                            Ok(option) => findings.within(at + 2, |f| option.check(f)),
                            Err(_) => findings.push(Rule::IoamMalformed, at + 1, 1),
                        }
                    }
                }
                if let Some((at, kind)) = overrunning(&header, &options)
                    && let Some(rule) = rule_of_overrun(kind, profile)
                {
                    findings.push(rule, at, 1);
                }
            });
        }
        if let Some(message) = self.fast_cnp() {
            let at = message.option_at();
            if destination_headers > 1 {
                findings.push(
                    Rule::FastCnpSeveralHeaders,
                    message.header.start,
                    message.header.bytes.len(),
                );
            }
            self.check_fast_cnp(&message, at, findings);
        }
    }

    fn check_fast_cnp(&self, message: &FastCnpMessage<'a>, at: usize, findings: &mut Findings) {
        let not_cnp = match (message.bth, self.walk_end()) {
            (Some(bth), _) => bth.opcode() != Opcode::CNP,
            // The part that was cut off, or that is in another fragment, may be a CNP.
            (None, End::Cut { .. } | End::Fragment { .. }) => false,
            // A packet that ends within its transport header shows only that RoCEv2 was meant.
            (None, _) => !self.is_roce(),
        };
        if not_cnp {
            findings.push(Rule::FastCnpNotCnp, at, message.option.len());
        }
        let (Some(ip), Ok(option)) = (self.ip(), message.parsed) else {
            return;
        };
        let original = IpAddr::V6(option.original_destination());
        if ip.destination == original && ip.source != original {
            findings.push(Rule::FastCnpAddressed, ip.start + ipv6::DESTINATION, 16);
        }
        if let IpAddr::V6(source) = ip.source
            && (source.is_unicast_link_local() || !is_node_address(ip.source))
        {
            findings.push(Rule::FastCnpSource, ip.start + ipv6::SOURCE, 16);
        }
    }

    fn check_datagram(&self, datagram: &Datagram<'a>, icrc: IcrcCheck, findings: &mut Findings) {
        let profile = self.profile();
        let (port, payload) = (datagram.destination_port, datagram.payload);
        if !self.is_roce() && datagram.claim(profile) == Claim::Others {
            return;
        }
        if !datagram.is_whole() {
            let outer = Family::from_address(datagram.ip.source);
            if port == profile.proxy_cn_port
                && let Ok(message) = ProxyCn::new_checked(payload, outer)
            {
                findings.within(datagram.payload_at(), |findings| {
                    message.check_header(outer, datagram.ip.end - datagram.ip.start, findings);
                });
            }
            return;
        }
        if self.trimming().is_some() {
            return;
        }
        findings.within(datagram.payload_at(), |findings| {
            if self.is_roce() {
                check_roce(payload, findings);
                if icrc == IcrcCheck::On {
                    check_icrc(self.verify_icrc(), payload, findings);
                }
            } else if port == profile.proxy_cn_port {
                let outer = Family::from_address(datagram.ip.source);
                match ProxyCn::new_checked(payload, outer) {
                    Ok(message) => {
                        message.check(outer, datagram.ip.end - datagram.ip.start, findings);
                    }
                    Err(_) => findings.push(Rule::ProxyCnMalformed, 0, payload.len()),
                }
            } else if port == profile.wan_fcn_port {
                match WanFcn::new_checked(payload) {
                    Ok(message) => message.check(findings),
                    Err(_) => findings.push(Rule::WanFcnMalformed, 0, payload.len()),
                }
            }
        });
    }
}

#[cold]
fn infiniband_message<'a>(packet: &infiniband::Packet<'a>) -> Message<'a> {
    match packet.bth() {
        Some(bth) => roce_message(bth, packet.is_whole().then_some(packet.payload)),
        None => Message::Other,
    }
}

/// Classifies the InfiniBand packet that begins with `bth`, except for CNPs; `whole` is all of it,
/// if captured.
// Always inlined, because most RoCEv2 packets take this path.
#[inline(always)]
fn roce_message<'a>(bth: Bth<'a>, whole: Option<&'a [u8]>) -> Message<'a> {
    let roce = whole.and_then(|payload| Roce::new_checked(payload).ok());
    match roce.and_then(|roce| connection_management(&roce)) {
        Some((roce, cm)) => Message::RdmaCm(roce, cm),
        None => Message::Roce(bth, roce),
    }
}

/// Returns the RDMA CM message in `roce`: a datagram to the general services QP that holds a MAD of
/// that class.
fn connection_management<'a>(roce: &Roce<'a>) -> Option<(Roce<'a>, Cm<'a>)> {
    let bth = roce.bth();
    if bth.opcode() != Opcode::UD_SEND_ONLY || bth.dest_qp() != Qp::GSI {
        return None;
    }
    let cm = Cm::new_checked(roce.payload()).ok()?;
    Some((*roce, cm))
}

/// Reads the Fast CNP option at `offset` of `header`, even if it runs past the header: it is still
/// meant as one.
fn read_fast_cnp<'a>(
    header: &OptionsHeader<'a>,
    offset: usize,
    profile: &Profile,
) -> Option<(Ipv6Option<'a>, Result<FastCnpRepr<'a>>)> {
    match header.options().starting_at(offset).next()? {
        Ok(option) => {
            let parsed = FastCnpRepr::parse(option.kind, option.data, profile)?;
            Some((option, parsed))
        }
        Err(e) => {
            let kind = *header.bytes.get(offset)?;
            let data = header.bytes.get(offset + 2..)?;
            Some((Ipv6Option { kind, offset, data }, Err(e)))
        }
    }
}

/// Returns the offset of the length octet of the option on which the walk over `header` has ended
/// (of the type octet, if the header ends after it), and the option's type.
fn overrunning(header: &OptionsHeader<'_>, options: &Options<'_>) -> Option<(usize, u8)> {
    let offset = options.failed_at()?;
    let kind = *header.bytes.get(offset)?;
    Some(((offset + 1).min(header.bytes.len() - 1), kind))
}

/// Returns the rule that an option of ours, of type `kind`, breaks by running past its header.
fn rule_of_overrun(kind: u8, profile: &Profile) -> Option<Rule> {
    match kind {
        _ if profile.is_fast_cnp(kind) => Some(Rule::FastCnpMalformed),
        _ if kind == profile.proxy_address_option => Some(Rule::ProxyAddressLength),
        _ if kind == profile.ioam_option => Some(Rule::IoamMalformed),
        _ => None,
    }
}

/// Adds the rules that a complete RoCEv2 packet breaks, except for the ICRC, with offsets from the
/// BTH.
pub fn check_roce(payload: &[u8], findings: &mut Findings) {
    match Bth::new_checked(payload) {
        Ok(bth) if bth.opcode() == Opcode::CNP => match Cnp::new_checked(payload) {
            Ok(cnp) => cnp.check(findings),
            Err(_) => findings.push(Rule::CnpMalformed, 0, payload.len()),
        },
        Ok(bth) if bth.opcode() == Opcode::IB_CNP => findings.push(Rule::RoceIbCnp, 0, 1),
        Ok(_) => match Roce::new_checked(payload) {
            Ok(roce) => roce.check(findings),
            Err(_) => findings.push(Rule::RoceMalformed, 0, payload.len()),
        },
        Err(_) => findings.push(Rule::RoceMalformed, 0, payload.len()),
    }
}

/// Adds the rule that an ICRC's verdict shows broken, for the packet `payload` from the BTH on;
/// offsets from the BTH.
pub fn check_icrc(verdict: Verdict, payload: &[u8], findings: &mut Findings) {
    if let Some(rule) = icrc_rule(verdict, payload) {
        let at = payload.len().saturating_sub(ICRC_LEN);
        findings.push(rule, at, ICRC_LEN);
    }
}

/// Returns the rule that an ICRC's verdict shows broken, for the packet `payload` from the BTH on.
#[must_use]
pub fn icrc_rule(verdict: Verdict, payload: &[u8]) -> Option<Rule> {
    match verdict {
        Verdict::Good(_) | Verdict::Unchecked => None,
        Verdict::Bad { found, .. } => Some(bad_icrc_rule(verdict, found, payload)),
    }
}

#[cold]
fn bad_icrc_rule(verdict: Verdict, found: u32, payload: &[u8]) -> Rule {
    if verdict.is_swapped() {
        Rule::RoceIcrcSwapped
    } else if PLACEHOLDERS.contains(&found) || ends_before_icrc(payload) {
        Rule::RoceIcrcMissing
    } else {
        Rule::RoceIcrcBad
    }
}

/// Values that senders without an ICRC write in its place.
const PLACEHOLDERS: [u32; 4] = [0, u32::MAX, 0xDEAD_BEEF, 0xEFBE_ADDE];

/// Returns true if a packet ends with the data whose length its RETH states.
fn ends_before_icrc(payload: &[u8]) -> bool {
    let Ok(roce) = Roce::new_checked(payload) else {
        return false;
    };
    let opcode = roce.bth().opcode();
    let is_whole = [Opcode::RC_WRITE_ONLY, Opcode::RC_WRITE_ONLY_IMM].contains(&opcode);
    let (true, Some(headers), Some(reth)) = (is_whole, opcode.extended_len(), roce.reth()) else {
        return false;
    };
    let length = usize::try_from(reth.length).ok();
    let data = length.and_then(|length| length.checked_next_multiple_of(4));
    data.and_then(|data| data.checked_add(BTH_LEN + headers)) == Some(payload.len())
}
