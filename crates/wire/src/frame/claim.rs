//! Decides if a UDP datagram to the port of RoCEv2, proxy notifications or FCNs in the WAN is ours
//! or another protocol's.
//!
//! The last two ports are experimental and below 1024: NFS and RPC clients bind them, and RADIUS,
//! SIP or tunnels may use them by chance. A datagram is therefore ours only if it is sent *to* the
//! port and its content leaves no doubt; a datagram sent *from* the port to another one never is.
//! Remaining doubt is decided in favour of the other protocol. All tools use this module.
//!
//! | | ours | ours, but broken |
//! |---|---|---|
//! | WAN FCN | UDP length 12 (reserved bits that are set are a finding), except SIP keep-alives of four octets (line ends, zeros) | UDP length 11, or 13 to 16 |
//! | proxy notification | header and the first 20 (IPv4) or 40 (IPv6) octets of a parseable invoking packet with the header's addresses, within 576 or 1280 octets | the addresses agree so far, or the five-tuple is RoCEv2's and the reserved bits after it are 0 |
//!
//! Datagrams from one of the two ports to one of them may be exchanged by clients and servers of
//! other protocols, and many implementations take packets from RoCEv2's port for RoCEv2. In these
//! cases an FCN is ours only if its reserved bits are 0 and its flow label is not 0, and nothing is
//! classified as a broken message of ours. The addresses of a proxy notification, which occur in it
//! twice, are reliable from any port.
//!
//! A broken message is not a [`Notification`](crate::Notification), and no role acts on it;
//! [`Frame::check`](crate::Frame::check) reports its findings. A port other than the default was
//! chosen for this purpose: any message to it that is not ours is broken.
//!
//! RoCEv2's port is assigned, but any client may happen to use it and then receives answers from
//! other protocols' ports. RoCEv2 is sent from ports from 49152 on, which spread it over paths, and
//! CNPs also from port 0: datagrams from these ports are accepted as RoCEv2. From any other port it
//! has to [prove](proves_roce) itself; what fails belongs to other protocols. A port other than the
//! assigned one was chosen for RoCEv2, so no proof is needed there. A kernel's filter may let more
//! through than this.

use crate::bth::{BTH_LEN, Bth, Opcode, Qp};
use crate::cnp::{CNP_BODY_LEN, CNP_LEN, RESERVED_LEN};
use crate::header::ipv4;
use crate::icrc::Verdict;
use crate::ipv6_ext::next_header;
use crate::octets::{u8_at, u16_at};
use crate::profile::{Profile, ROCEV2_PORT};
use crate::proxy_cn::{Family, ProxyCn, TupleMatch};
use crate::wan_fcn::{WAN_FCN_LEN, WanFcn};

/// Owner of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// One of our messages, beyond doubt.
    Ours,
    /// Apparently meant as one of our messages, but broken: displayed as such if no other protocol
    /// claims it.
    Broken,
    /// May belong to any protocol.
    Others,
}

/// Maximum length of a UDP payload classified as a broken FCN. Other protocols on such a port (RPC,
/// RADIUS, DNS, SIP) have longer messages; NAT keep-alives of one or two octets are excluded, too.
pub const MAX_BROKEN_WAN_FCN_LEN: usize = 8;

/// First of the source ports from which RoCEv2 is sent to spread it over paths: the dynamic ports
/// (RFC 6335), which are not assigned to any protocol.
const FIRST_DYNAMIC_PORT: u16 = 0xC000;

/// Returns true if a datagram from port `from` to RoCEv2's port has to [prove](proves_roce) that it
/// is RoCEv2.
#[inline]
#[must_use]
pub const fn must_prove_roce(from: u16, rocev2_port: u16) -> bool {
    from != 0 && from < FIRST_DYNAMIC_PORT && rocev2_port == ROCEV2_PORT
}

/// SIP keep-alives through NAT: line ends (RFC 5626 section 4.4.1), which as an FCN would have
/// reserved bits set that no node sets; or zeros, as common SIP servers send them, which would be
/// an FCN without a flow label.
const KEEP_ALIVE: [[u8; WAN_FCN_LEN]; 2] = [*b"\r\n\r\n", [0; WAN_FCN_LEN]];

/// Data for deciding which protocol a UDP datagram belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// UDP source and destination port.
    pub ports: (u16, u16),
    /// UDP payload as far as captured.
    pub payload: &'a [u8],
    /// Length of the payload on the wire, in octets.
    pub payload_len: usize,
    /// IP version of the enclosing packet.
    pub outer: Family,
    /// Length of that packet, in octets.
    pub outer_len: usize,
}

impl Evidence<'_> {
    /// Classifies the datagram as a notification to a proxy node, an FCN in the WAN, or another
    /// protocol, if it is sent to the port of either.
    #[must_use]
    pub fn claim(&self, profile: &Profile) -> Claim {
        let (from, to) = self.ports;
        let default = &Profile::DEFAULT;
        let (claim, is_default) = if to == profile.proxy_cn_port {
            (self.proxy_cn(profile), to == default.proxy_cn_port)
        } else if to == profile.wan_fcn_port {
            (self.wan_fcn(), to == default.wan_fcn_port)
        } else {
            return Claim::Others;
        };
        let may_answer = [
            profile.proxy_cn_port,
            profile.wan_fcn_port,
            profile.rocev2_port,
        ]
        .contains(&from);
        match claim {
            Claim::Others if !is_default => Claim::Broken,
            Claim::Broken if is_default && may_answer => Claim::Others,
            Claim::Ours
                if is_default
                    && KEEP_ALIVE
                        .iter()
                        .any(|octets| octets.starts_with(self.payload)) =>
            {
                Claim::Others
            }
            Claim::Ours
                if is_default && may_answer && to == profile.wan_fcn_port && !self.names_flow() =>
            {
                Claim::Others
            }
            claim => claim,
        }
    }

    fn wan_fcn(&self) -> Claim {
        match self.payload_len {
            WAN_FCN_LEN => Claim::Ours,
            3..=MAX_BROKEN_WAN_FCN_LEN => Claim::Broken,
            _ => Claim::Others,
        }
    }

    /// Returns true if an FCN is as every node has to send it, and has a flow label other than 0.
    fn names_flow(&self) -> bool {
        WanFcn::new_checked(self.payload)
            .is_ok_and(|message| message.reserved() == 0 && message.flow_label() != 0)
    }

    fn proxy_cn(&self, profile: &Profile) -> Claim {
        let Ok(message) = ProxyCn::new_checked(self.payload, self.outer) else {
            return self.names_roce(&[Family::V4, Family::V6], profile);
        };
        let tuple = message.five_tuple();
        // Octets that are all the same agree with themselves.
        let filler = tuple.source == tuple.destination && message.reserved() != 0;
        if message.tuple_match() != TupleMatch::Addresses || filler {
            return self.names_roce(&[message.family()], profile);
        }
        if self.outer_len <= self.outer.max_packet() && parses(message.invoking_packet()) {
            Claim::Ours
        } else {
            Claim::Broken
        }
    }

    /// Returns [`Claim::Broken`] if the five-tuple, read as one of `families`, is RoCEv2's and the
    /// reserved bits after it are 0, as far as they were captured.
    fn names_roce(&self, families: &[Family], profile: &Profile) -> Claim {
        let is_roce = |family: &Family| {
            let reserved_end = 2 * family.address_len() + 8;
            self.payload.len() >= self.payload_len.min(reserved_end)
                && flow_port(self.payload, *family) == Some(profile.rocev2_port)
        };
        match families.iter().any(is_roce) {
            true => Claim::Broken,
            false => Claim::Others,
        }
    }
}

/// Returns true if a datagram to RoCEv2's port, of which `payload` was captured, proves to be
/// RoCEv2: by a preceding Fast CNP option, by having everything a CNP has and a QP that is not a
/// management QP (RoCEv2's CNP, or InfiniBand's, which prototypes send), or by its ICRC in any
/// reading or with its octets swapped. If the capture cut off what would decide it, a plausible transport header is
/// sufficient.
///
/// The ICRC comes last because its cost grows with the payload. Only datagrams from other
/// protocols' ports incur it.
#[must_use]
pub fn proves_roce(
    payload: &[u8],
    payload_len: usize,
    has_fast_cnp: bool,
    icrc: impl FnOnce() -> Verdict,
) -> bool {
    if has_fast_cnp {
        return true;
    }
    let Ok(bth) = Bth::new_checked(payload) else {
        return false;
    };
    let is_clean = bth.version() == 0 && bth.reserved6() == 0 && bth.reserved7() == 0;
    let is_cnp = matches!(bth.opcode(), Opcode::CNP | Opcode::IB_CNP)
        && payload.len() == CNP_LEN
        && payload_len == CNP_LEN
        && bth.dest_qp() > Qp::GSI
        && payload[BTH_LEN..CNP_BODY_LEN] == [0; RESERVED_LEN];
    is_clean && is_cnp
        || match icrc() {
            Verdict::Good(_) => true,
            verdict @ Verdict::Bad { .. } => verdict.is_swapped(),
            Verdict::Unchecked => {
                payload.len() < payload_len && is_clean && bth.opcode().name().is_some()
            }
        }
}

/// Returns the UDP destination port of the flow in a notification to a proxy node, if the reserved
/// bits after the five-tuple, read as `family`, are 0 as far as they are present.
#[must_use]
pub fn flow_port(payload: &[u8], family: Family) -> Option<u16> {
    let behind = payload.get(2 * family.address_len()..)?;
    let names_port = behind.len() >= 5
        && u8_at(behind, 0) == next_header::UDP
        && behind.get(5).is_none_or(|octet| octet & 0x1F == 0)
        && behind.iter().skip(6).take(2).all(|octet| *octet == 0);
    names_port.then(|| u16_at(behind, 3))
}

/// Returns true if the IP header at the start of `packet`, of which 20 or 40 octets are present, is
/// plausible.
fn parses(packet: &[u8]) -> bool {
    let first = u8_at(packet, 0);
    let header = usize::from(first & 0x0F) * 4;
    first >> 4 != 4 || header >= ipv4::LEN && usize::from(u16_at(packet, ipv4::LENGTH)) >= header
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds an IPv4 packet with a UDP datagram.
    fn udp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0];
        packet.extend((28 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(ports.0.to_be_bytes());
        packet.extend(ports.1.to_be_bytes());
        packet.extend((8 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        packet
    }

    fn claim(ports: (u16, u16), payload: &[u8], profile: &Profile) -> Claim {
        let seen = Evidence {
            ports,
            payload,
            payload_len: payload.len(),
            outer: Family::V4,
            outer_len: 28 + payload.len(),
        };
        seen.claim(profile)
    }

    /// Builds a notification about `quoted` octets of a RoCEv2 packet over IPv4.
    fn notification(quoted: usize) -> Vec<u8> {
        let invoking = udp((50_000, 4791), &[7; 40]);
        let mut message = invoking[12..20].to_vec();
        message.extend([17, 0xC3, 0x50, 0x12, 0xB7, 5 << 5, 0, 0]);
        message.extend(&invoking[..quoted]);
        message
    }

    #[test]
    fn wan_fcn_needs_port_and_length() {
        let claimed = |ports, len| claim(ports, &vec![0; len], &Profile::DEFAULT);
        let fcn = [0x12, 0x34, 0x5A, 0];
        assert_eq!(claim((1, 1022), &fcn, &Profile::DEFAULT), Claim::Ours);
        assert_eq!(claim((1022, 1), &fcn, &Profile::DEFAULT), Claim::Others);
        for (len, expected) in [
            (4, Claim::Others),
            (0, Claim::Others),
            (2, Claim::Others),
            (3, Claim::Broken),
            (8, Claim::Broken),
            (9, Claim::Others),
            (28, Claim::Others),
        ] {
            assert_eq!(claimed((1, 1022), len), expected, "{len}");
        }
        assert_eq!(
            claim((5060, 1022), b"\r\n\r\n", &Profile::DEFAULT),
            Claim::Others
        );
        let mut other = Profile::DEFAULT;
        other.set("wan_fcn_port=900").unwrap();
        assert_eq!(claim((1, 900), &[0; 28], &other), Claim::Broken);
        assert_eq!(claim((1, 1022), &[0; 4], &other), Claim::Others);
    }

    #[test]
    fn datagrams_between_our_ports_may_belong_to_others() {
        let claimed = |ports, bytes: &[u8]| claim(ports, bytes, &Profile::DEFAULT);
        let fcn = [0x12, 0x34, 0x5A, 0];
        for from in [1021, 1022, 4791] {
            let wan = (from, 1022);
            assert_eq!(claimed(wan, &fcn), Claim::Ours);
            // Reserved bits set, no flow label, wrong length.
            for bytes in [
                &[0x12, 0x34, 0x5A, 1][..],
                &[0, 0, 0x0A, 0],
                &[0x12; 3],
                &[0x12; 8],
            ] {
                assert_eq!(claimed(wan, bytes), Claim::Others, "{bytes:?}");
                assert_ne!(claimed((1023, 1022), bytes), Claim::Others, "{bytes:?}");
            }
            let good = notification(28);
            assert_eq!(claimed((from, 1021), &good), Claim::Ours);
            assert_eq!(claimed((from, 1021), &good[..35]), Claim::Others);
        }
        // A port that was chosen for this has no other owner.
        let mut other = Profile::DEFAULT;
        other.set("wan_fcn_port=900").unwrap();
        assert_eq!(claim((900, 900), &[0; 4], &other), Claim::Ours);
        assert_eq!(claim((900, 900), &[0; 8], &other), Claim::Broken);
    }

    #[test]
    fn a_proxy_notification_quotes_a_packet_with_its_own_addresses() {
        let claimed = |bytes: &[u8]| claim((1, 1021), bytes, &Profile::DEFAULT);
        let good = notification(28);
        assert_eq!(claimed(&good), Claim::Ours);
        assert_eq!(claimed(&notification(20)), Claim::Ours);
        assert_eq!(claim((1021, 1), &good, &Profile::DEFAULT), Claim::Others);
        for len in [13, 15, 16, 17, 35] {
            assert_eq!(claimed(&good[..len]), Claim::Broken, "{len}");
        }
        for len in [0, 4, 12] {
            assert_eq!(claimed(&good[..len]), Claim::Others, "{len}");
        }
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            claimed(&bytes)
        };
        // Different ports or protocol only give a finding; so do reserved bits.
        assert_eq!(with(8, 6), Claim::Ours);
        assert_eq!(with(9, 0), Claim::Ours);
        assert_eq!(with(15, 1), Claim::Ours);
        // Different address, invalid header length, total length below it.
        assert_eq!(with(3, 99), Claim::Broken);
        assert_eq!(with(16, 0x43), Claim::Broken);
        let long = [&good[..], &[0; 576]].concat();
        assert_eq!(claimed(&long), Claim::Broken);
        let mut tcp = good.clone();
        (tcp[3], tcp[8]) = (99, 6);
        assert_eq!(claimed(&tcp), Claim::Others);
    }

    /// A message about an IPv6 flow over IPv4, whose invoking packet was cut off, is not a broken
    /// message about IPv4.
    #[test]
    fn roce_is_recognised_in_the_detected_family() {
        let mut message = vec![0x20; 32];
        message.extend([17, 0xC0, 0, 0x12, 0xB7, 0x40, 0, 0]);
        assert_eq!(claim((1, 1021), &message, &Profile::DEFAULT), Claim::Others);
        let over_v6 = Evidence {
            ports: (1, 1021),
            payload: &message,
            payload_len: 80,
            outer: Family::V6,
            outer_len: 128,
        };
        assert_eq!(over_v6.claim(&Profile::DEFAULT), Claim::Broken);
        let payload = &message[..38];
        let cut = Evidence { payload, ..over_v6 };
        assert_eq!(cut.claim(&Profile::DEFAULT), Claim::Others);
    }

    #[test]
    fn roce_from_foreign_ports_needs_proof() {
        for (from, must) in [
            (0, false),
            (1, true),
            (53, true),
            (0xBFFF, true),
            (0xC000, false),
        ] {
            assert_eq!(must_prove_roce(from, 4791), must, "{from}");
            assert!(!must_prove_roce(from, 4799));
        }
        const BAD: Verdict = Verdict::Bad {
            found: 1,
            expected: 2,
        };
        let proves = |bytes: &[u8], verdict| proves_roce(bytes, bytes.len(), false, || verdict);
        let mut data = [0; 40];
        (data[0], data[2]) = (0x04, 0xFF);
        assert!(proves(&data, Verdict::Good(None)));
        assert!(!proves(&data, BAD));
        // A truncated packet cannot be decided; a complete one can.
        let cut = |bytes: &[u8]| proves_roce(bytes, bytes.len() + 1, false, || Verdict::Unchecked);
        assert!(cut(&data));
        assert!(!proves(&data, Verdict::Unchecked));
        for (at, value) in [(0, 0x3F), (1, 1), (4, 1), (8, 1)] {
            let mut data = data;
            data[at] = value;
            assert!(!cut(&data), "{at}");
            assert!(proves(&data, Verdict::Good(None)), "{at}");
        }
        assert!(!cut(&data[..11]));
        assert!(proves_roce(&data, 40, true, || BAD) && proves_roce(&[], 0, true, || BAD));
        // A CNP is recognised by its content.
        let mut cnp = [0; CNP_LEN];
        for opcode in [0x80, 0x81] {
            cnp[0] = opcode;
            cnp[7] = 1;
            assert!(!proves(&cnp, BAD));
            cnp[7] = 2;
            assert!(proves(&cnp, BAD));
        }
        for (at, value) in [(1, 1), (4, 1), (8, 1), (12, 1), (27, 1), (0, 0x82)] {
            let mut cnp = cnp;
            cnp[at] = value;
            assert!(!proves(&cnp, BAD), "{at}");
        }
        assert!(!proves(&cnp[..31], BAD));
        assert!(!proves(&[&cnp[..], &[0]].concat(), BAD));
    }

    proptest! {
        #[test]
        fn longer_foreign_messages_are_not_claimed(payload in proptest::collection::vec(any::<u8>(), 20..600), wan: bool) {
            let port = if wan { 1022 } else { 1021 };
            prop_assert_eq!(claim((2049, port), &payload, &Profile::DEFAULT), Claim::Others);
        }
    }
}
