//! The statements of the drafts. Each names the rules of the list that it corresponds to, a test of
//! this module, or the reason why it cannot be observed from outside. The tests of a role and the
//! page in `docs/` are generated from these statements and the list of rules.

use crate::device::Role;
use clap::ValueEnum;
use fcn_wire::draft::{Draft, FAST_CNP, PROXY_CN, WAN_FCN};
use fcn_wire::finding::Family;
use fcn_wire::{Rule, Severity};
use std::fmt::Write as _;

fcn_wire::identified! {
    /// Requirement level of a statement.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    Force {
        /// MUST, MUST NOT.
        Must = "must",
        /// SHOULD, RECOMMENDED.
        Should = "should",
        /// A description of a node's behaviour.
        Says = "says",
        /// The source is silent; this project's choice.
        Chosen = "chosen",
    }
}

/// Way of observing a statement from outside.
#[derive(Clone, Copy, Debug)]
pub enum Observability {
    /// By its own test, for these roles.
    Test(&'static [Role]),
    /// By these rules of the list.
    Rules(&'static [Rule]),
    /// Not at all, for this reason.
    Not(&'static str),
}

/// Entry of the list for one statement.
#[derive(Debug)]
pub struct Info {
    /// Stable identifier, dotted, lower case.
    pub id: &'static str,
    /// The draft; `None` for another source, which `section` names.
    pub draft: Option<&'static Draft>,
    /// Section in the source.
    pub section: &'static str,
    /// Requirement level.
    pub force: Force,
    /// The requirement.
    pub text: &'static str,
    /// Way of observing it.
    pub observability: Observability,
}

macro_rules! statements {
    ($( $name:ident = $id:literal, $draft:expr, $section:literal, $force:ident, $seen:expr, $text:literal; )+) => {
        /// A statement of a draft about what a node does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Statement { $( #[doc = $text] $name, )+ }

        impl Statement {
            /// All statements.
            pub const ALL: &'static [Self] = &[ $( Self::$name, )+ ];

            /// Returns the statement's entry in the list.
            #[must_use]
            pub const fn info(self) -> &'static Info {
                const INFO: &[Info] = &[ $( Info {
                    id: $id, draft: $draft, section: $section, force: Force::$force, text: $text,
                    observability: $seen,
                }, )+ ];
                &INFO[self as usize]
            }
        }
    };
}

use Observability::{Not, Rules, Test as At};
use Role::{CongestionPoint, IngressPe, Proxy, Receiver, Sender};

/// Roles that send notifications.
const NOTIFIERS: &[Role] = &[CongestionPoint, Receiver, Proxy, IngressPe];
/// Roles that forward data.
const FORWARDERS: &[Role] = &[CongestionPoint, Proxy, IngressPe];

statements! {
    FastCnpSent = "fastcnp.sent", Some(&FAST_CNP), "section 4", Says, At(&[CongestionPoint]),
        "A congested switch sends Fast CNPs to the senders of the data packets";
    FastCnpNotMarked = "fastcnp.not_marked", Some(&FAST_CNP), "section 4", Must, Rules(&[Rule::FastCnpMarked]),
        "A switch that knows that the sender handles Fast CNPs does not mark the packet that caused one";
    FastCnpFromLoopback = "fastcnp.source.own", Some(&FAST_CNP), "section 4", Says, At(&[CongestionPoint]),
        "The source is the loopback address of the switch";
    FastCnpToSender = "fastcnp.destination.copied", Some(&FAST_CNP), "section 4", Says, At(&[CongestionPoint]),
        "The destination is the data packet's source";
    FastCnpQpCopied = "fastcnp.dest_qp.copied", Some(&FAST_CNP), "section 4", Says, At(&[CongestionPoint, Receiver]),
        "The Destination QP is the data packet's";
    FastCnpOriginalCopied = "fastcnp.original_destination.copied", Some(&FAST_CNP), "section 4", Says, At(&[CongestionPoint, Receiver]),
        "The option has the data packet's destination address";
    FastCnpOneOption = "fastcnp.one_option", Some(&FAST_CNP), "section 4", Says,
        Rules(&[Rule::FastCnpHopByHop, Rule::FastCnpSeveral, Rule::FastCnpSeveralHeaders, Rule::FastCnpNotCnp, Rule::FastCnpMalformed]),
        "A Fast CNP is a CNP after one Destination Options header with one option";
    FastCnpOptionType = "fastcnp.option_type", Some(&FAST_CNP), "section 4", Must, Rules(&[Rule::FastCnpAction, Rule::FastCnpChange]),
        "The top bits of the option type are 10, and the third is 0";
    FastCnpOptionLength = "fastcnp.option_length", Some(&FAST_CNP), "section 4", Says, Rules(&[Rule::FastCnpLength1]),
        "Opt Data Len of option 1 is 16";
    FastCnpOptionByTrace = "fastcnp.option.by_trace", Some(&FAST_CNP), "section 4", Says, At(&[CongestionPoint]),
        "Option 2 is for data packets with an IOAM trace, option 1 for those without";
    FastCnpTraceCopied = "fastcnp.trace.copied", Some(&FAST_CNP), "section 4", Says, At(&[CongestionPoint]),
        "Option 2 has the IOAM trace of the data packet";
    FastCnpByReceiver = "fastcnp.source.receiver", Some(&FAST_CNP), "section 4", Says, At(&[Receiver]),
        "A receiver's own Fast CNP has the original destination as its source";
    FastCnpObeyed = "fastcnp.obeyed", Some(&FAST_CNP), "section 4", Says, At(&[Sender]),
        "A sender slows down or detours the QP that the original destination and the Destination QP identify";
    FastCnpTraceObeyed = "fastcnp.obeyed.option2", Some(&FAST_CNP), "section 4", Says, At(&[Sender]),
        "A sender also obeys Fast CNPs with option 2";
    FastCnpOthersLeft = "fastcnp.obeyed.that_qp_alone", Some(&FAST_CNP), "section 4", Says, At(&[Sender]),
        "The sender's other QPs keep their rates";
    FastCnpPairCounts = "fastcnp.obeyed.by_both", Some(&FAST_CNP), "section 4", Says, At(&[Sender]),
        "The same Destination QP with another original destination is another QP";
    FastCnpAlgorithm = "fastcnp.algorithm", Some(&FAST_CNP), "section 4", Says,
        Not("how a sender derives a rate from the trace is up to its congestion control"),
        "The trace is used to decide how to reduce the rate";
    FastCnpDetour = "fastcnp.detour", Some(&FAST_CNP), "section 4", Says,
        Not("it is optional; a sender that detours counts as one that obeys"),
        "A sender may detour the congested switch";
    FastCnpCheckSource = "fastcnp.check_source", Some(&FAST_CNP), "section 4", Says,
        Not("comparing the source with the original destination is optional, and only detours depend on it"),
        "A sender can distinguish a switch's Fast CNP from a receiver's";
    FastCnpMark = "fastcnp.mark_unknown", Some(&FAST_CNP), "section 4", Says,
        Not("if a switch does not know the sender's ability, it may mark or not"),
        "If the ability is unknown, the switch may mark as well";
    FastCnpDomain = "fastcnp.domain", Some(&FAST_CNP), "section 5", Must,
        Not("operators decide in which networks a feature is used"),
        "Fast CNP is applied in a controlled domain";
    FastCnpLimited = "fastcnp.limited", Some(&FAST_CNP), "section 5", Should, Rules(&[Rule::FastCnpRate]),
        "Generating Fast CNPs is rate-limited";
    FastCnpAccessList = "fastcnp.access_list", Some(&FAST_CNP), "section 5", Must, At(&[Sender]),
        "A Fast CNP from a source that is not on the access list is not accepted";
    FastCnpBorder = "fastcnp.border", Some(&FAST_CNP), "section 5", Must, Rules(&[Rule::FastCnpBorder]),
        "The domain's border drops inbound and outbound Fast CNPs";
    FastCnpSwitch = "fastcnp.configurable", Some(&FAST_CNP), "section 5", Must,
        Not("using the option shows that it exists: the other tests need the feature on, fastcnp.off_by_default needs it off"),
        "There is a configuration option to enable or disable Fast CNP";
    FastCnpOff = "fastcnp.off_by_default", Some(&FAST_CNP), "section 5", Must, At(&[CongestionPoint, Receiver, Sender]),
        "Fast CNP is disabled by default";

    NotificationHops = "notification.hop_limit", None, "RFC 8200 section 3; reading chosen by us", Chosen, At(NOTIFIERS),
        "The hop limit lets a notification pass routers: it is at least 2";
    NotificationNotCe = "notification.ecn", None, "RFC 3168 section 5", Says, At(NOTIFIERS),
        "A notification is not sent with ECN field 11 (CE)";
    NotificationMac = "notification.mac", None, "IEEE 802.3 clause 3.2", Says, At(NOTIFIERS),
        "A notification is sent from one station to one station";
    NotificationHeaders = "notification.headers", None, "the drafts' formats; RFC 8200 section 4", Says, At(NOTIFIERS),
        "A notification has no header and no option but those of its format";
    NotificationChecksum = "notification.udp_checksum", None, "RFC 768, IBTA vol. 1 Annex A17", Says, At(NOTIFIERS),
        "The UDP checksum of a CNP or Fast CNP is 0 or right";
    NotificationPkey = "notification.p_key", None, "IBTA vol. 1 section 10.9", Says, At(NOTIFIERS),
        "The P_Key is that of a partition";
    NotificationReserved = "notification.bth_reserved", None, "IBTA vol. 1 section 9.2", Says, At(NOTIFIERS),
        "The reserved bits of the BTH are 0";

    CongestionLatency = "congestion.latency", None, "limit chosen by us (--max-latency)", Chosen, At(&[CongestionPoint]),
        "A notification leaves soon after the packet that it is about has come";
    CongestionShare = "congestion.share", None, "limit chosen by us (--min-share)", Chosen, At(&[CongestionPoint]),
        "Enough of the flows whose packets find the queue above Kmax are told";
    CongestionAgain = "congestion.again", None, "limit chosen by us (--max-latency)", Chosen, At(&[CongestionPoint]),
        "A flow whose packets keep finding the queue above Kmax is told again and again";
    CongestionQueue = "congestion.queue", None, "the drafts' section 4; half of Kmin chosen by us", Says, At(&[CongestionPoint]),
        "No notification is about a packet that found less than half of Kmin in the queue";
    CongestionData = "congestion.data_alone", None, "the drafts' section 4; reading chosen by us", Chosen, At(&[CongestionPoint]),
        "No notification is about an acknowledgement, a CNP or multicast; no Fast CNP about TCP";
    CongestionOnce = "congestion.once", None, "reading chosen by us", Chosen, At(&[CongestionPoint]),
        "A packet causes one notification of a switch at most";
    TraceOwnNode = "ioam.own_node", None, "RFC 9197 section 4.4.2; reading chosen by us", Chosen, At(&[CongestionPoint]),
        "A switch that adds node data to a trace knows some of it: not all octets are 0xFF";

    ForwardedAll = "forwarded.all", None, "reading chosen by us", Chosen, At(FORWARDERS),
        "Data are forwarded, unless the queue is above Kmax; one packet in a hundred may be lost";
    ForwardedOnce = "forwarded.once", None, "reading chosen by us", Chosen, At(FORWARDERS),
        "A data packet is forwarded once";
    ForwardedOrder = "forwarded.order", None, "reading chosen by us", Chosen, At(FORWARDERS),
        "The data of a flow keep their order";
    ForwardedEcn = "forwarded.ecn", None, "RFC 3168 section 5", Must, At(FORWARDERS),
        "The ECN field of forwarded data is kept, or set to CE if it was 01 or 10";

    CnpSent = "cnp.sent", None, "IBTA vol. 1 Annex A17.9.3", Says, At(&[Receiver]),
        "A receiver answers CE-marked data with CNPs to the sender";
    CnpQp = "cnp.dest_qp.sender", None, "IBTA vol. 1 Annex A17.9.3", Says, At(&[Receiver]),
        "The Destination QP is the QP at the sender";
    CnpWithCause = "cnp.for_marks_alone", None, "IBTA vol. 1 Annex A17.9.3", Says, At(&[Receiver]),
        "No CNP is sent if no data are marked CE";
    CnpInterval = "cnp.limited", None, "DCQCN (SIGCOMM 2015) section 3.1", Says, At(&[Receiver]),
        "At most one CNP about a flow is sent in each interval";
    CnpLatency = "cnp.latency", None, "limit chosen by us (--max-latency)", Chosen, At(&[Receiver]),
        "A notification follows a mark on its flow soon: it is not late, and they end with the marks";
    CnpShare = "cnp.share", None, "limits chosen by us (--max-latency, --min-share)", Chosen, At(&[Receiver]),
        "Enough of the bursts of marks are answered in time";
    CnpEachFlow = "cnp.each_flow", None, "IBTA vol. 1 Annex A17.9.3", Says, At(&[Receiver]),
        "Each flow with marked data is notified about";
    CnpObeyed = "cnp.obeyed", None, "IBTA vol. 1 Annex A17.9.3", Says, At(&[Sender]),
        "A sender slows down the QP that a CNP names";
    CnpOthersLeft = "cnp.obeyed.that_qp_alone", None, "IBTA vol. 1 Annex A17.9.3", Says, At(&[Sender]),
        "The sender's other QPs keep their rates";

    SenderRecovers = "reaction.recovers", None, "DCQCN (SIGCOMM 2015) section 3.1; how much chosen by us", Says, At(&[Sender]),
        "When the notifications end, the rate rises again";

    ProxyCnSent = "proxycn.sent", Some(&PROXY_CN), "section 4", Says, At(&[CongestionPoint]),
        "A congested node notifies the proxy node";
    ProxyCnToProxy = "proxycn.destination.proxy", Some(&PROXY_CN), "section 5", Says, At(&[CongestionPoint]),
        "It notifies the sender's proxy node: the one advertised, or the one named by the data packet's option";
    ProxyCnTupleCopied = "proxycn.tuple.copied", Some(&PROXY_CN), "section 4", Says, At(&[CongestionPoint]),
        "The five-tuple is the data packet's";
    ProxyCnQuote = "proxycn.invoking.copied", Some(&PROXY_CN), "section 4", Says, At(&[CongestionPoint]),
        "The invoking packet is the data packet, as much of it as fits";
    ProxyCnLength = "proxycn.length", Some(&PROXY_CN), "section 4", Says, Rules(&[Rule::ProxyCnTooLong]),
        "The packet is no longer than 576 octets (IPv4) or the minimum MTU (IPv6)";
    ProxyCnLevel = "proxycn.level", Some(&PROXY_CN), "section 4", Says,
        Not("every value of the three bits is valid, and the device chooses the queue depth for each"),
        "Level 0 is the lowest and 7 the highest";
    ProxyCnKept = "proxycn.pnc_kept", Some(&PROXY_CN), "sections 5.1.1 to 5.1.3", Must,
        Not("it needs routers in two levels or areas; fcn-top --audit finds it in a capture (pnc.not_preserved)"),
        "The capability is kept when a prefix crosses levels or areas";
    ProxyCnAdvertised = "proxycn.pnc_format", Some(&PROXY_CN), "section 5.1", Says,
        Rules(&[Rule::PncMalformed, Rule::PncNotHost, Rule::PncNhcLength]),
        "A proxy advertises the capability with its host prefix";
    ProxyAddress = "proxycn.option_format", Some(&PROXY_CN), "section 5.2", Must,
        Rules(&[Rule::ProxyAddressType, Rule::ProxyAddressLength]),
        "The proxy address option has type bits 000 and length 16";
    ProxyTranslates = "proxy.sent", Some(&PROXY_CN), "section 3", Says, At(&[Proxy]),
        "The proxy node notifies the traffic sender in a way that it supports: for RoCEv2, by CNPs";
    ProxyToSender = "proxy.destination.sender", Some(&PROXY_CN), "section 3", Says, At(&[Proxy]),
        "The notification goes to the sender of the flow";
    ProxyQp = "proxy.dest_qp.sender", Some(&PROXY_CN), "section 3", Says, At(&[Proxy]),
        "The CNP names the flow's QP at the sender";
    ProxyCnDomain = "proxycn.domain", Some(&PROXY_CN), "section 6", Must,
        Not("operators decide in which networks a feature is used"),
        "Proxy notification is applied in a controlled domain";
    ProxyCnLimited = "proxycn.limited", Some(&PROXY_CN), "section 6", Should, Rules(&[Rule::ProxyCnRate]),
        "Generating notifications is rate-limited";
    ProxyLimited = "proxy.limited", Some(&PROXY_CN), "section 6", Should, At(&[Proxy]),
        "Receiving notifications is rate-limited: not every one of a burst becomes a CNP";
    ProxyAccessList = "proxy.access_list", Some(&PROXY_CN), "section 6", Chosen, At(&[Proxy]),
        "A notification from a source that is not on the access list is not translated";
    ProxyCnBorder = "proxycn.border", Some(&PROXY_CN), "section 6", Must, Rules(&[Rule::ProxyCnBorder]),
        "The domain's border drops inbound and outbound notifications";
    ProxyCnSwitch = "proxycn.configurable", Some(&PROXY_CN), "section 6", Must,
        Not("using the option shows that it exists, as with fastcnp.configurable"),
        "There is a configuration option to enable or disable the feature";
    ProxyCnOff = "proxycn.off_by_default", Some(&PROXY_CN), "section 6", Must, At(&[CongestionPoint, Proxy]),
        "Proxy notification is disabled by default";

    WanFcnSent = "wanfcn.sent", Some(&WAN_FCN), "section 4", Says, At(&[CongestionPoint]),
        "A congested node in the WAN sends FCNs to the ingress PE";
    WanFcnToIngress = "wanfcn.destination.ingress", Some(&WAN_FCN), "section 4", Says, At(&[CongestionPoint]),
        "The FCN goes to the ingress PE of the packet's tunnel";
    WanFcnLabel = "wanfcn.flow_label.copied", Some(&WAN_FCN), "section 4.2", Says, At(&[CongestionPoint]),
        "The flow label is that of the packet's outer IPv6 header";
    WanFcnCapable = "wanfcn.capable_alone", Some(&WAN_FCN), "section 4.1; reading chosen by us", Says, At(&[CongestionPoint]),
        "FCNs are about packets whose outer ECN field is 01 or 10";
    WanFcnLength = "wanfcn.udp_length", Some(&WAN_FCN), "section 4.2", Says, Rules(&[Rule::WanFcnLength]),
        "The UDP length is 12";
    WanFcnReserved = "wanfcn.reserved_zero", Some(&WAN_FCN), "section 4.2", Must, Rules(&[Rule::WanFcnReserved]),
        "The reserved bits are 0 on transmission";
    WanFcnLevel = "wanfcn.level", Some(&WAN_FCN), "section 4.2", Says,
        Not("every value of the three bits is valid, and the device chooses the queue depth for each"),
        "Level 1 is the lowest and 7 the highest; 0 is none";
    IngressTranslates = "ingress.sent", Some(&WAN_FCN), "section 4", Says, At(&[IngressPe]),
        "The ingress PE translates FCNs into CNPs, which the sender supports";
    IngressToSender = "ingress.destination.sender", Some(&WAN_FCN), "section 4", Says, At(&[IngressPe]),
        "The CNP goes to the sender of the flow";
    IngressQp = "ingress.dest_qp.sender", Some(&WAN_FCN), "section 4.1", Says, At(&[IngressPe]),
        "The CNP names the QP at the sender, learned during connection setup";
    IngressReserved = "ingress.reserved_ignored", Some(&WAN_FCN), "section 4.2", Must, At(&[IngressPe]),
        "Reserved bits of an FCN are ignored on receipt";
    IngressLabels = "ingress.labels", Some(&WAN_FCN), "section 4.1; reading chosen by us", Says, At(&[IngressPe]),
        "Each flow's packets have one outer flow label, which no other flow has";
    IngressEcn = "ingress.ecn.copied", Some(&WAN_FCN), "section 4.1; reading chosen by us", Says, At(&[IngressPe]),
        "The ECN field is copied into the outer header";
    WanFcnDomain = "wanfcn.domain", Some(&WAN_FCN), "section 6", Must,
        Not("operators decide in which networks a feature is used"),
        "FCN is applied in a controlled domain";
    WanFcnBorder = "wanfcn.border", Some(&WAN_FCN), "section 6; border filter chosen by us", Chosen, Rules(&[Rule::WanFcnBorder]),
        "The domain's border drops inbound and outbound FCNs";
    WanFcnLimited = "wanfcn.limited", Some(&WAN_FCN), "section 6", Should, Rules(&[Rule::WanFcnRate]),
        "Generating FCNs is rate-limited";
    IngressLimited = "ingress.limited", Some(&WAN_FCN), "section 6; receiving chosen by us", Chosen, At(&[IngressPe]),
        "Not every FCN of a burst becomes a CNP";
    IngressAccessList = "ingress.access_list", Some(&WAN_FCN), "section 6; access list chosen by us", Chosen, At(&[IngressPe]),
        "An FCN from a source that is not on the access list is not translated";
    WanFcnSwitch = "wanfcn.configurable", Some(&WAN_FCN), "section 6", Must,
        Not("using the option shows that it exists, as with fastcnp.configurable"),
        "There is a configuration option to enable or disable the feature";
    WanFcnOff = "wanfcn.off_by_default", Some(&WAN_FCN), "section 6", Must, At(&[CongestionPoint, IngressPe]),
        "FCN is disabled by default";
}

impl Statement {
    /// Returns true if it concerns a device's default configuration, before anything is enabled.
    #[must_use]
    pub fn is_off(self) -> bool {
        self.info().id.ends_with(".off_by_default")
    }

    /// Returns true if a role cannot be judged without it: the check of a device for which it could
    /// not be tested is inconclusive.
    #[must_use]
    pub fn is_core(self) -> bool {
        use Statement as S;
        let core = [
            S::FastCnpSent,
            S::ProxyCnSent,
            S::WanFcnSent,
            S::CnpSent,
            S::FastCnpObeyed,
            S::CnpObeyed,
            S::ProxyTranslates,
            S::IngressTranslates,
        ];
        self.is_off() || core.contains(&self)
    }

    /// Returns true if it is about notifications with a BTH.
    #[must_use]
    pub fn is_about_cnps(self) -> bool {
        matches!(
            self,
            Self::NotificationChecksum | Self::NotificationPkey | Self::NotificationReserved
        )
    }

    /// Returns its source: draft and section.
    #[must_use]
    pub fn source(self) -> String {
        let Info { draft, section, .. } = self.info();
        draft.map_or_else(
            || (*section).to_owned(),
            |draft| format!("{draft} {section}"),
        )
    }
}

/// A test that a device passes or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// No frame breaks this rule.
    Rule(Rule),
    /// The device does what the statement says.
    Statement(Statement),
}

impl Test {
    /// Returns its name for reports, `--only` and `--skip`.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Rule(rule) => rule.info().id,
            Self::Statement(statement) => statement.info().id,
        }
    }

    /// Returns the source of the tested requirement.
    #[must_use]
    pub fn section(self) -> String {
        match self {
            Self::Rule(rule) => rule.info().section.to_owned(),
            Self::Statement(statement) => statement.source(),
        }
    }

    /// Returns the text: for a rule, how it is broken; for a statement, the requirement.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Rule(rule) => rule.info().text,
            Self::Statement(statement) => statement.info().text,
        }
    }

    /// Returns true if a check without it is inconclusive.
    #[must_use]
    pub fn is_core(self) -> bool {
        matches!(self, Self::Statement(statement) if statement.is_core())
    }

    /// Returns true if breaking it is only worth a note.
    #[must_use]
    pub fn is_note(self) -> bool {
        matches!(self, Self::Rule(rule) if rule.info().severity == Severity::Note)
    }
}

/// Returns the families of messages that a role sends, or writes into packets that it forwards.
#[must_use]
pub const fn families(role: Role) -> &'static [Family] {
    use Family::{Cnp, FastCnp, Ioam, Packet, Pnc, ProxyAddress, ProxyCn, Roce, WanFcn};
    match role {
        CongestionPoint => &[Packet, Roce, Cnp, FastCnp, Ioam, ProxyCn, WanFcn],
        Receiver => &[Packet, Roce, Cnp, FastCnp],
        Sender => &[Packet, Roce, Ioam, ProxyAddress],
        Proxy => &[Packet, Roce, Cnp, Pnc],
        IngressPe => &[Packet, Roce, Cnp],
    }
}

/// Rules over several packets that can be observed at one device.
const SEVERAL: [Rule; 7] = [
    Rule::FastCnpMarked,
    Rule::FastCnpRate,
    Rule::FastCnpBorder,
    Rule::ProxyCnRate,
    Rule::ProxyCnBorder,
    Rule::WanFcnRate,
    Rule::WanFcnBorder,
];

/// Returns the reason why no role is tested against a rule; `None` if one is.
#[must_use]
pub fn untested(rule: Rule) -> Option<&'static str> {
    if tests(Role::value_variants()).any(|(_, test)| test == Test::Rule(rule)) {
        return None;
    }
    Some(match rule {
        Rule::FastCnpUntrusted | Rule::ProxyCnUntrusted | Rule::WanFcnUntrusted => {
            "it is about who is notified; the access_list tests show whether a device obeys"
        }
        Rule::FastCnpMarkUnclear => "the bench captures each packet before and after the device",
        Rule::PncNotKept => "it needs routers in two levels or areas",
        _ => match rule.info().family {
            Family::Class => "no draft requires a traffic class",
            Family::Pfc => "the drafts do not cover PFC",
            _ => "no tested role sends it",
        },
    })
}

/// Returns the tests of these roles.
pub fn tests(roles: &[Role]) -> impl Iterator<Item = (Role, Test)> + '_ {
    roles.iter().flat_map(|role| {
        let seen = |rule: &Rule| match Rule::MULTI_PACKET.contains(rule) {
            true => *role == CongestionPoint && SEVERAL.contains(rule),
            false => families(*role).contains(&rule.info().family),
        };
        let at = |statement: &Statement| match statement.info().observability {
            At(roles) => roles.contains(role),
            Rules(_) | Not(_) => false,
        };
        let statements = Statement::ALL.iter().copied().filter(at);
        let rules = Rule::ALL.iter().copied().filter(seen);
        let all = statements.map(Test::Statement).chain(rules.map(Test::Rule));
        all.map(|test| (*role, test))
    })
}

/// Returns the page in `docs/` about the tests and what they cannot cover.
#[must_use]
pub fn page() -> String {
    let mut text = String::from(
        "# What a conformance check covers\n\n\
         Generated from the lists that `fcn-gen check` tests by (`fcn-gen/src/check/statements.rs`, `crates/wire/src/rules/finding.rs`); a test keeps it up to date. `INSTA_UPDATE=always cargo test -p fcn-gen check` regenerates it.\n\n\
         ## Not observable from outside\n\n\
         | statement | source | level | why not |\n|---|---|---|---|\n",
    );
    let all = Statement::ALL
        .iter()
        .map(|statement| (statement, statement.info()));
    for (statement, info) in all.clone() {
        if let Not(why) = info.observability {
            let (text_of, force) = (info.text, info.force.id());
            let _ = writeln!(
                text,
                "| {text_of} | {} | {force} | {why} |",
                statement.source()
            );
        }
    }
    text.push_str(
        "\n## Seen\n\n| statement | source | level | test | role |\n|---|---|---|---|---|\n",
    );
    for (statement, info) in all {
        let (ids, roles) = match info.observability {
            At(roles) => {
                let roles: Vec<_> = roles.iter().map(|role| role.id()).collect();
                (format!("`{}`", info.id), roles.join(", "))
            }
            Rules(rules) => {
                let ids: Vec<_> = rules.iter().map(|rule| format!("`{rule}`")).collect();
                let roles = Role::value_variants().iter().filter(|role| {
                    let mut tests = tests(std::slice::from_ref(*role));
                    tests.any(|(_, test)| matches!(test, Test::Rule(rule) if rules.contains(&rule)))
                });
                let roles: Vec<_> = roles.map(|role| role.id()).collect();
                (ids.join(", "), roles.join(", "))
            }
            Not(_) => continue,
        };
        let (text_of, force) = (info.text, info.force.id());
        let _ = writeln!(
            text,
            "| {text_of} | {} | {force} | {ids} | {roles} |",
            statement.source()
        );
    }
    text.push_str(
        "\nIn addition, no frame of a role may break a rule about the formats of its messages: `fcn-gen check ROLE --dry-run` lists them.\n\n\
         ## Rules that no role is tested against\n\n| rule | why not |\n|---|---|\n",
    );
    for rule in Rule::ALL {
        if let Some(why) = untested(*rule) {
            let _ = writeln!(text, "| `{rule}` | {why} |");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    #[test]
    fn identifiers_are_unique_and_named_rules_are_tested() {
        let ids = Statement::ALL.iter().map(|s| s.info().id);
        let ids: Vec<_> = ids
            .chain(Rule::ALL.iter().map(|rule| rule.info().id))
            .collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        for statement in Statement::ALL {
            match statement.info().observability {
                At(roles) => assert!(!roles.is_empty(), "{statement:?}"),
                Rules(rules) => {
                    for rule in rules {
                        assert_eq!(untested(*rule), None, "{statement:?} {rule}");
                    }
                }
                Not(why) => assert!(!why.is_empty(), "{statement:?}"),
            }
        }
    }

    #[test]
    fn page_matches_the_list() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/conformance.md");
        if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
            fs::write(&path, page()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), page());
    }
}
