//! The list of rules that packets can break, and the findings that report broken rules.
//!
//! All tools take severity, text and section from here: the dissector for expert info, the monitor
//! for events and audit lines. The code of each format (`check` of each view) detects broken rules.
//! The rules in [`Rule::MULTI_PACKET`] need more data than the bytes of one packet.

use crate::draft::{bgp_nhc, fast_cnp, proxy_cn, wan_fcn};
use crate::identified;
use core::fmt;

identified! {
    /// Severity of a broken rule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    Severity {
        /// Unusual but allowed; worth knowing.
        Note = "note",
        /// Breaks a rule, but a receiver can still act on the message.
        Warning = "warning",
        /// Breaks a rule so that a receiver cannot or must not act on the message.
        Error = "error",
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// Format to which a rule belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Packet around any of our messages.
    Packet,
    /// Traffic class of a notification.
    Class,
    /// Any RoCEv2 packet.
    Roce,
    /// Plain CNP, and the CNP part of a Fast CNP.
    Cnp,
    /// Fast CNP options.
    FastCnp,
    /// IOAM trace, in a data packet or copied into a Fast CNP.
    Ioam,
    /// Notification to the proxy node.
    ProxyCn,
    /// Proxy Network Node Address option.
    ProxyAddress,
    /// Fast CNP in the WAN.
    WanFcn,
    /// Proxy Node Capability in routing.
    Pnc,
    /// Priority-based flow control.
    Pfc,
}

macro_rules! rules {
    ($( $(#[$doc:meta])* $name:ident = $id:literal, $family:ident, $severity:ident, $section:expr, $text:literal; )+) => {
        /// A rule of a draft, an RFC or the InfiniBand specification that a packet can break.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Rule { $( #[doc = $text] #[doc = ""] #[doc = concat!("Source: ", $section)] $name, )+ }

        impl Rule {
            /// All rules, in the order of the list.
            pub const ALL: &'static [Self] = &[ $( Self::$name, )+ ];

            /// Returns the entry of the rule in the list.
            #[must_use]
            pub const fn info(self) -> &'static RuleInfo {
                const INFO: &[RuleInfo] = &[ $( RuleInfo {
                    id: $id,
                    family: Family::$family,
                    severity: Severity::$severity,
                    section: $section,
                    text: $text,
                }, )+ ];
                &INFO[self as usize]
            }

            /// Returns the name of the expert item in the Wireshark plugin, for filters: the rule's
            /// own identifier, prefixed with the name of the protocol that shows it unless it
            /// begins with that.
            #[must_use]
            pub fn filter_name(self) -> String {
                let RuleInfo { id, family, .. } = self.info();
                match family {
                    Family::Ioam => format!("fastcnp.{id}"),
                    Family::Pfc => format!("rocev2.{id}"),
                    Family::Class => format!("fcn.{id}"),
                    _ => (*id).to_owned(),
                }
            }
        }
    };
}

/// Entry of one rule in the list.
#[derive(Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// Stable identifier, dotted, lower case: the name in filters, reports and JSON.
    pub id: &'static str,
    /// Format to which it belongs.
    pub family: Family,
    /// Severity if it is broken.
    pub severity: Severity,
    /// Source of the rule.
    pub section: &'static str,
    /// One sentence that states what was found, not what the rule requires.
    pub text: &'static str,
}

rules! {
    PacketLength = "fcn.packet.length", Packet, Error, "RFC 768, RFC 791 section 3.1, RFC 8200 section 3",
        "An IP, UDP or option length contradicts the packet: more than it holds, or less than IP carries";

    ClassWithData = "class.with_data", Class, Note, "RFC 2474, IEEE 802.1Q",
        "The notifications share the data's traffic class: if data of that class queues or is paused on their path, they are late";
    ClassSeveral = "class.several", Class, Note, "RFC 2474, IEEE 802.1Q",
        "The notifications about the flow use several traffic classes";

    RoceMalformed = "rocev2.malformed", Roce, Error, "IBTA vol. 1 Annex A17",
        "The RoCEv2 packet is shorter than the headers of its opcode and the ICRC";
    RoceIcrcBad = "rocev2.icrc.bad", Roce, Error, "IBTA vol. 1 Annex A17.3.3",
        "The ICRC matches none of the known ways to compute it";
    RoceIcrcSwapped = "rocev2.icrc.swapped", Roce, Error, "IBTA vol. 1 Annex A17.3.3",
        "The octets of the ICRC are in the opposite order: the most significant one comes first";
    RoceIcrcMissing = "rocev2.icrc.missing", Roce, Error, "IBTA vol. 1 Annex A17.3.3",
        "There is no ICRC: a placeholder is in its place, or the packet ends before it";
    RoceVersions = "rocev2.versions.both", Roce, Warning, "IBTA vol. 1 Annex A16, Annex A17",
        "RoCE v1 and RoCEv2 run between the same two hosts: a connection needs GIDs of the same version at both ends";
    RoceTver = "rocev2.tver.nonzero", Roce, Warning, "IBTA vol. 1 section 9.2.4",
        "The transport header version is not 0";
    RoceIbCnp = "rocev2.opcode.infiniband_cnp", Roce, Error, "IBTA vol. 1 Annex A17.9.3",
        "Opcode 0x80 is the InfiniBand CNP (Annex A10); the RoCEv2 CNP is 0x81";

    CnpMalformed = "cnp.malformed", Cnp, Error, "IBTA vol. 1 Annex A17.9.3",
        "The CNP does not consist of BTH, 16 reserved octets and ICRC";
    CnpBecn = "cnp.becn.clear", Cnp, Warning, "IBTA vol. 1 Annex A17.9.3",
        "BECN is 0; a CNP has BECN 1";
    CnpPsn = "cnp.psn.nonzero", Cnp, Warning, "IBTA vol. 1 Annex A17.9.3",
        "The PSN is not 0; a CNP has PSN 0";
    CnpReserved = "cnp.reserved.nonzero", Cnp, Warning, "IBTA vol. 1 Annex A17.9.3",
        "The 16 reserved octets are not all 0";

    FastCnpMalformed = "fastcnp.malformed", FastCnp, Error, fast_cnp!("section 4"),
        "The Fast CNP option cannot be read";
    FastCnpAction = "fastcnp.type.action", FastCnp, Error, fast_cnp!("section 4"),
        "The two top bits of the option type are not 10 (discard and send ICMPv6 Parameter Problem)";
    FastCnpChange = "fastcnp.type.change", FastCnp, Error, fast_cnp!("section 4"),
        "The third bit of the option type is not 0 (option data does not change en route)";
    FastCnpHopByHop = "fastcnp.header.hop_by_hop", FastCnp, Error, fast_cnp!("section 4"),
        "The option is in a Hop-by-Hop Options header; it belongs in a Destination Options header";
    FastCnpSeveral = "fastcnp.option.several", FastCnp, Error, fast_cnp!("section 4"),
        "More than one Fast CNP option; a Fast CNP carries exactly one";
    FastCnpSeveralHeaders = "fastcnp.header.several", FastCnp, Warning, fast_cnp!("section 4"),
        "More than one Destination Options header; a Fast CNP has one";
    FastCnpNotCnp = "fastcnp.not_a_cnp", FastCnp, Error, fast_cnp!("section 4"),
        "The option is followed by something other than a CNP";
    FastCnpLength1 = "fastcnp.option1.length", FastCnp, Error, fast_cnp!("section 4"),
        "Opt Data Len of option 1 is not 16";
    FastCnpAlignment = "fastcnp.alignment", FastCnp, Warning, fast_cnp!("section 4, RFC 8200 section 4.2"),
        "The option is not aligned as in the draft's figure (option 1 at 4n+2, option 2 at 4n)";
    FastCnpReserved = "fastcnp.reserved.nonzero", FastCnp, Warning, fast_cnp!("section 4, RFC 9486 section 3"),
        "The reserved octet of option 2 is not 0";
    FastCnpIoamType = "fastcnp.ioam_opt_type.unknown", FastCnp, Error, fast_cnp!("section 4, RFC 9197 section 4.4"),
        "The IOAM option type is neither pre-allocated (0) nor incremental trace (1)";
    FastCnpAddressed = "fastcnp.destination.is_receiver", FastCnp, Error, fast_cnp!("section 4"),
        "The Fast CNP is addressed to the data packet's destination instead of its source";
    FastCnpSource = "fastcnp.source.not_loopback", FastCnp, Warning, fast_cnp!("section 4"),
        "The source cannot be a switch's loopback address (link-local, multicast, unspecified or ::1)";
    FastCnpOriginal = "fastcnp.original_destination.invalid", FastCnp, Warning, fast_cnp!("section 4"),
        "The original destination address cannot be a receiver's (unspecified, multicast or loopback)";
    FastCnpRate = "fastcnp.rate.exceeded", FastCnp, Warning, fast_cnp!("section 5; limit chosen by us"),
        "A notifier exceeds the rate limit of Fast CNPs about one flow";
    FastCnpMarked = "fastcnp.ce.also_marked", FastCnp, Warning, fast_cnp!("section 4"),
        "The data packet that caused a Fast CNP is also marked CE, although its sender is known to handle Fast CNPs";
    FastCnpMarkUnclear = "fastcnp.ce.unclear", FastCnp, Note, fast_cnp!("section 4"),
        "Data is marked CE although a switch sent a Fast CNP about its flow and its sender handles those; it may not be the packet that caused it";
    FastCnpUntrusted = "fastcnp.source.untrusted", FastCnp, Error, fast_cnp!("section 5"),
        "The source is not on the access list: it may be forged, or outside the domain";
    FastCnpBorder = "fastcnp.border.crossed", FastCnp, Warning, fast_cnp!("section 5"),
        "The Fast CNP is addressed across the domain's border, which must drop it; if captured after the border, it was not dropped";

    IoamMalformed = "ioam.malformed", Ioam, Error, "RFC 9197 section 4.4",
        "The IOAM trace cannot be read";
    IoamNodeLen = "ioam.node_len.mismatch", Ioam, Error, "RFC 9197 section 4.4.1",
        "NodeLen does not match the data that the trace type specifies";
    IoamNodeLenZero = "ioam.node_len.zero", Ioam, Error, "RFC 9197 section 4.4.1",
        "NodeLen is 0, but there is node data";
    IoamRemaining = "ioam.remaining_len.excess", Ioam, Error, "RFC 9197 section 4.4.1",
        "RemainingLen is larger than the node data list";
    IoamRagged = "ioam.node_list.ragged", Ioam, Error, "RFC 9197 section 4.4.1",
        "The node data list is not a whole number of nodes";
    IoamUndefined = "ioam.trace_type.undefined", Ioam, Error, "RFC 9197 section 4.4.1",
        "The trace type has undefined bits (12 to 21) set; the encapsulating node must set them to 0";
    IoamReservedBit = "ioam.trace_type.reserved", Ioam, Warning, "RFC 9197 section 4.4.1",
        "Bit 23 of the trace type is reserved and must be 0";
    IoamFlag = "ioam.flags.undefined", Ioam, Note, "RFC 9197 section 4.4.1",
        "The undefined trace flag is set";
    IoamReserved = "ioam.reserved.nonzero", Ioam, Warning, "RFC 9197 section 4.4.1, RFC 9486 section 3",
        "A reserved octet is not 0";
    IoamOverflow = "ioam.overflow", Ioam, Note, "RFC 9197 section 4.4.1",
        "Overflow: a node had too little room for its data, so the trace is incomplete";

    ProxyCnMalformed = "proxycn.malformed", ProxyCn, Error, proxy_cn!("section 4; layout chosen by us"),
        "The proxy notification is too short for its five-tuple and level";
    ProxyCnChecksum = "proxycn.checksum.bad", ProxyCn, Error, "RFC 768, RFC 8200 section 8.1",
        "The UDP checksum is wrong, or 0 over IPv6: the destination drops the notification";
    ProxyCnReserved = "proxycn.reserved.nonzero", ProxyCn, Warning, proxy_cn!("section 4; layout chosen by us"),
        "The reserved bits are not 0";
    ProxyCnTooLong = "proxycn.length.excess", ProxyCn, Error, proxy_cn!("section 4"),
        "The IP packet is longer than 576 octets (IPv4) or 1280 octets (IPv6)";
    ProxyCnTuple = "proxycn.tuple.mismatch", ProxyCn, Warning, proxy_cn!("section 4"),
        "The five-tuple disagrees with the invoking packet";
    ProxyCnFamily = "proxycn.family.unclear", ProxyCn, Warning, proxy_cn!("section 4; layout chosen by us"),
        "The invoking packet does not show whether the five-tuple is IPv4 or IPv6; the outer header's version was assumed";
    ProxyCnInvokingNone = "proxycn.invoking.missing", ProxyCn, Warning, proxy_cn!("section 4"),
        "No invoking packet follows the five-tuple";
    ProxyCnInvokingShort = "proxycn.invoking.short", ProxyCn, Note, proxy_cn!("section 4"),
        "The notification quotes less of the invoking packet than would fit";
    ProxyCnRate = "proxycn.rate.exceeded", ProxyCn, Warning, proxy_cn!("section 6; limit chosen by us"),
        "A notifier exceeds the rate limit of proxy notifications about one flow";
    ProxyCnUntrusted = "proxycn.source.untrusted", ProxyCn, Error, proxy_cn!("section 6"),
        "The source is not on the access list: it may be forged, or outside the domain";
    ProxyCnBorder = "proxycn.border.crossed", ProxyCn, Warning, proxy_cn!("section 6"),
        "The proxy notification is addressed across the domain's border, which must drop it; if captured after the border, it was not dropped";

    ProxyAddressLength = "proxycn.option.length", ProxyAddress, Error, proxy_cn!("section 5.2"),
        "Opt Data Len of the proxy address option is not 16";
    ProxyAddressType = "proxycn.option.type", ProxyAddress, Error, proxy_cn!("section 5.2"),
        "The three top bits of the option type are not 000";
    ProxyAddressHopByHop = "proxycn.option.hop_by_hop", ProxyAddress, Error, proxy_cn!("section 5.2"),
        "The option is in a Hop-by-Hop Options header; it belongs in a Destination Options header";
    ProxyAddressSeveral = "proxycn.option.several", ProxyAddress, Warning, proxy_cn!("section 5.2"),
        "More than one proxy address option; the packet carries one";
    ProxyAddressInvalid = "proxycn.option.address", ProxyAddress, Warning, proxy_cn!("section 5.2"),
        "The proxy address cannot be a node's (unspecified, multicast or loopback)";

    WanFcnMalformed = "wanfcn.malformed", WanFcn, Error, wan_fcn!("section 4.2"),
        "The FCN message is too short for its flow label and level";
    WanFcnChecksum = "wanfcn.checksum.bad", WanFcn, Error, "RFC 768, RFC 8200 section 8.1",
        "The UDP checksum is wrong, or 0 over IPv6: the destination drops the FCN";
    WanFcnLength = "wanfcn.length", WanFcn, Warning, wan_fcn!("section 4.2"),
        "The UDP length is not 12";
    WanFcnReserved = "wanfcn.reserved.nonzero", WanFcn, Warning, wan_fcn!("section 4.2"),
        "The reserved bits are not 0 (ignored on receipt)";
    WanFcnRate = "wanfcn.rate.exceeded", WanFcn, Warning, wan_fcn!("section 6; limit chosen by us"),
        "A notifier exceeds the rate limit of FCNs about one flow label";
    WanFcnUntrusted = "wanfcn.source.untrusted", WanFcn, Error, wan_fcn!("section 6; access list chosen by us"),
        "The source is not on the access list: it may be forged, or outside the domain";
    WanFcnBorder = "wanfcn.border.crossed", WanFcn, Warning, wan_fcn!("section 6; border filter chosen by us"),
        "The FCN is addressed across the border of its controlled domain, which must drop it; if captured after the border, it was not dropped";

    PncMalformed = "pnc.malformed", Pnc, Error, proxy_cn!("section 5.1"),
        "The routing message around the Proxy Node Capability cannot be read";
    PncFlagsLength = "pnc.flags.length", Pnc, Error, "RFC 7794 section 2.1, RFC 9792 section 2",
        "The flags are empty, or in OSPF not a multiple of 4 octets: the LSA is malformed and must be ignored";
    PncFlagsExcess = "pnc.flags.excess", Pnc, Warning, "RFC 9792 section 2",
        "The Prefix Extended Flags are longer than their set bits require";
    PncNhcLength = "pnc.bgp.length", Pnc, Error, proxy_cn!("section 5.1.4"),
        "The PNC characteristic has a value; its length must be 0";
    PncNhcOrder = "pnc.bgp.order", Pnc, Warning, bgp_nhc!("section 2.2"),
        "Characteristic codes are not in increasing order";
    PncNhcNextHop = "pnc.bgp.next_hop", Pnc, Error, bgp_nhc!("section 2.3"),
        "The attribute's next hop does not match the route's (a link-local one alone also needs the BGP Identifier): its characteristics do not apply";
    PncNhcMalformed = "pnc.bgp.malformed", Pnc, Error, bgp_nhc!("section 2.4"),
        "The Next Hop Dependent Characteristics attribute cannot be read; only this attribute is discarded";
    PncNhcFlags = "pnc.bgp.attribute_flags", Pnc, Error, bgp_nhc!("section 2, RFC 7606 section 3"),
        "The Next Hop Dependent Characteristics attribute is not marked optional and transitive";
    PncNhcDuplicate = "pnc.bgp.duplicate", Pnc, Warning, bgp_nhc!("section 2.1"),
        "The same characteristic with the same value occurs twice";
    PncSeveral = "pnc.several", Pnc, Warning, "RFC 7794 section 2.1, RFC 7684 section 2.1, RFC 9792 section 2, RFC 8362 section 4, RFC 7606 section 3",
        "Flags, a prefix TLV or an attribute that counts only once is repeated; only the first is used";
    PncNotHost = "pnc.prefix.not_host", Pnc, Warning, proxy_cn!("section 5.1; reading chosen by us"),
        "PNC is set on a prefix that is not a host prefix (/32 or /128)";
    PncNotKept = "pnc.not_preserved", Pnc, Warning, proxy_cn!("sections 5.1.1 to 5.1.3"),
        "PNC is set for the prefix at its origin, but missing where a router passes it on; a fragment not captured yet may have it";

    PfcMalformed = "pfc.malformed", Pfc, Error, "IEEE 802.1Q clause 36.1",
        "The PFC frame is shorter than its class vector and pause times";
    PfcDestination = "pfc.destination", Pfc, Warning, "IEEE 802.1Q clause 36.1",
        "The destination is not 01-80-C2-00-00-01";
    PfcVector = "pfc.vector.reserved", Pfc, Warning, "IEEE 802.1Q clause 36.1",
        "The upper octet of the class-enable vector is not 0";
}

impl Rule {
    /// Rules that one packet's bytes cannot break: they need several packets, or a list of the
    /// nodes' roles.
    pub const MULTI_PACKET: &'static [Self] = &[
        Self::RoceVersions,
        Self::ClassWithData,
        Self::ClassSeveral,
        Self::FastCnpRate,
        Self::FastCnpMarked,
        Self::FastCnpMarkUnclear,
        Self::FastCnpUntrusted,
        Self::FastCnpBorder,
        Self::ProxyCnRate,
        Self::ProxyCnUntrusted,
        Self::ProxyCnBorder,
        Self::WanFcnRate,
        Self::WanFcnUntrusted,
        Self::WanFcnBorder,
        Self::PncNotKept,
    ];
}

impl Rule {
    /// Returns true if a packet that breaks the rule has a wrong ICRC or none.
    #[must_use]
    pub const fn is_icrc(self) -> bool {
        matches!(
            self,
            Self::RoceIcrcBad | Self::RoceIcrcSwapped | Self::RoceIcrcMissing
        )
    }

    /// Returns true if a message that breaks the rule cannot be parsed.
    #[must_use]
    pub fn is_malformed(self) -> bool {
        self.info().id.ends_with("malformed")
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().id)
    }
}

/// A broken rule, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// Offset of the field that shows it, in octets from the start of the caller's slice.
    pub offset: usize,
    /// Length of that field, in octets.
    pub len: usize,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.rule.info();
        write!(
            f,
            "{}: {} at octet {} [{}; {}]",
            info.severity, info.text, self.offset, info.id, info.section
        )
    }
}

/// Maximum number of findings kept for one packet; further ones are only counted.
pub const MAX_FINDINGS: usize = 24;

/// Findings of one packet: bounded, without allocation.
///
/// `Copy`, so that it can be returned by a function that must not own anything (a Wireshark
/// callback).
#[derive(Clone, Copy)]
pub struct Findings {
    list: [Finding; MAX_FINDINGS],
    len: usize,
    dropped: usize,
    base: usize,
}

impl Findings {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        let unused = Finding {
            rule: Rule::RoceMalformed,
            offset: 0,
            len: 0,
        };
        Self {
            list: [unused; MAX_FINDINGS],
            len: 0,
            dropped: 0,
            base: 0,
        }
    }

    /// Adds a finding; `offset` is relative to the base set by [`within`](Self::within).
    pub fn push(&mut self, rule: Rule, offset: usize, len: usize) {
        let offset = self.base.saturating_add(offset);
        if let Some(place) = self.list.get_mut(self.len) {
            *place = Finding { rule, offset, len };
            self.len += 1;
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// Runs `check` with `base` added to every offset it pushes: for a part parsed from its own
    /// start.
    pub fn within<T>(&mut self, base: usize, check: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.base;
        self.base = outer.saturating_add(base);
        let out = check(self);
        self.base = outer;
        out
    }

    /// Returns the findings, in the order found.
    #[must_use]
    pub fn as_slice(&self) -> &[Finding] {
        self.list.get(..self.len).unwrap_or_default()
    }

    /// Returns the number of findings beyond [`MAX_FINDINGS`].
    #[must_use]
    pub const fn dropped(&self) -> usize {
        self.dropped
    }

    /// Returns true if nothing was found.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if a wrong or missing ICRC is among them.
    #[must_use]
    pub fn has_icrc(&self) -> bool {
        self.as_slice().iter().any(|finding| finding.rule.is_icrc())
    }

    /// Returns true if `rule` is among them.
    #[must_use]
    pub fn has(&self, rule: Rule) -> bool {
        self.as_slice().iter().any(|finding| finding.rule == rule)
    }

    /// Returns the highest severity among them.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.as_slice()
            .iter()
            .map(|finding| finding.rule.info().severity)
            .max()
    }

    /// Removes all findings.
    pub fn clear(&mut self) {
        self.len = 0;
        self.dropped = 0;
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Finding;
    type IntoIter = core::slice::Iter<'a, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.as_slice().iter()
    }
}

impl Default for Findings {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Findings {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice() && self.dropped == other.dropped
    }
}

impl Eq for Findings {}

impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()?;
        if self.dropped > 0 {
            write!(f, " and {} more", self.dropped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_filterable() {
        for (i, rule) in Rule::ALL.iter().enumerate() {
            let info = rule.info();
            assert_eq!(*rule as usize, i);
            assert!(!info.section.is_empty() && !info.text.is_empty());
            assert!(
                info.id
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._".contains(&b)),
                "{}",
                info.id
            );
            assert!(
                Rule::ALL[i + 1..]
                    .iter()
                    .all(|other| other.info().id != info.id),
                "{}",
                info.id
            );
        }
    }

    #[test]
    fn offsets_nest_and_overflow_is_counted() {
        let mut findings = Findings::new();
        findings.within(10, |f| f.within(5, |f| f.push(Rule::CnpPsn, 1, 3)));
        assert_eq!(
            findings.as_slice(),
            [Finding {
                rule: Rule::CnpPsn,
                offset: 16,
                len: 3
            }]
        );
        for _ in 0..MAX_FINDINGS {
            findings.push(Rule::CnpBecn, 0, 1);
        }
        assert_eq!(
            (findings.as_slice().len(), findings.dropped()),
            (MAX_FINDINGS, 1)
        );
        assert_eq!(findings.worst(), Some(Severity::Warning));
    }
}
