//! Parameters of a stress: the mix, flows and queue pairs. Values only; all are within the ranges
//! given here.

use super::pattern::Pattern;
use fcn_wire::bth::Opcode;
use fcn_wire::fast_cnp::MAX_TRACE_LEN;
use fcn_wire::ioam::TRACE_HEADER_LEN;
use fcn_wire::proxy_cn::Family;
use fcn_wire::{Profile, Qp};
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ioam::IoamTrace;

/// QP number of the first connection: 0 and 1 are the management QPs.
const FIRST_QP: u32 = 2;
/// Maximum number of connections: each has its own QP number, and the last number means multicast.
pub const MOST_CONNECTIONS: u32 = 0x00FF_FFFF - FIRST_QP;
/// Maximum number of nodes whose data fit the trace of a Fast CNP.
pub const MOST_TRACE_NODES: usize =
    (MAX_TRACE_LEN - TRACE_HEADER_LEN) / (IoamTrace::TYPE.node_len() * 4);

fcn_wire::identified! {
    /// A kind of frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
    #[serde(rename_all = "snake_case")]
    Kind {
        /// CNP over IPv6, from the receiver.
        Cnp = "cnp",
        /// CNP over IPv4, from the receiver.
        CnpIpv4 = "cnp_ipv4",
        /// Fast CNP with option 1, from a switch.
        #[serde(rename = "fast_cnp_1")]
        FastCnp1 = "fast_cnp_1",
        /// Fast CNP with option 2 and a trace, from a switch.
        #[serde(rename = "fast_cnp_2")]
        FastCnp2 = "fast_cnp_2",
        /// Notification to a proxy node, over IPv6.
        ProxyCn = "proxy_cn",
        /// Notification to a proxy node, over IPv4.
        ProxyCnIpv4 = "proxy_cn_ipv4",
        /// FCN in the WAN, to an ingress PE.
        WanFcn = "wan_fcn",
        /// RoCEv2 data over IPv6.
        Data = "data",
        /// RoCEv2 data over IPv4.
        DataIpv4 = "data_ipv4",
        /// Priority-based flow control.
        Pfc = "pfc",
    }
}

impl Kind {
    /// Returns true if it is RoCEv2 data.
    #[must_use]
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::DataIpv4)
    }

    /// Returns the family of its IP header.
    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::CnpIpv4 | Self::ProxyCnIpv4 | Self::DataIpv4 => Family::V4,
            _ => Family::V6,
        }
    }
}

/// Opcode of data packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataOpcode {
    /// RC SEND Only.
    SendOnly,
    /// RC SEND Middle.
    SendMiddle,
    /// RC RDMA WRITE Only, with a RETH.
    WriteOnly,
    /// RC RDMA WRITE Middle.
    WriteMiddle,
}

impl DataOpcode {
    /// Returns the opcode of the BTH.
    #[must_use]
    pub const fn opcode(self) -> Opcode {
        match self {
            Self::SendOnly => Opcode::RC_SEND_ONLY,
            Self::SendMiddle => Opcode::RC_SEND_MIDDLE,
            Self::WriteOnly => Opcode::RC_WRITE_ONLY,
            Self::WriteMiddle => Opcode::RC_WRITE_MIDDLE,
        }
    }
}

/// Addresses of hosts, numbered upwards from the first one after each base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// Base of the IPv6 addresses.
    pub ipv6: Ipv6Addr,
    /// Base of the IPv4 addresses.
    pub ipv4: Ipv4Addr,
}

impl Hosts {
    /// Returns the IPv6 address of host `number`, from 0.
    #[inline]
    #[must_use]
    pub fn v6(&self, number: u32) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.ipv6.to_bits().wrapping_add(u128::from(number) + 1))
    }

    /// Returns the address of host `number` in that family.
    #[inline]
    #[must_use]
    pub fn at(&self, number: u32, family: Family) -> IpAddr {
        match family {
            Family::V6 => self.v6(number).into(),
            Family::V4 => self.v4(number).into(),
        }
    }

    /// Returns the IPv4 address of host `number`, from 0.
    #[inline]
    #[must_use]
    pub fn v4(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.ipv4.to_bits().wrapping_add(number).wrapping_add(1))
    }
}

/// Parameters of a stress.
#[derive(Clone, Debug, PartialEq)]
pub struct Stress {
    /// Seed of entropy ports and flow labels.
    pub seed: u64,
    /// Code points.
    pub profile: Profile,
    /// Kinds with their weights: at least one, none of weight 0.
    pub mix: Vec<(Kind, u32)>,
    /// Order of the kinds: indices into `mix`.
    pub pattern: Pattern,
    /// Number of flows, each a pair of a sender's and a receiver's address: 1 to `connections`.
    pub flows: u32,
    /// Number of connections over all flows, each with its own QP number: at most
    /// [`MOST_CONNECTIONS`].
    pub connections: u32,
    /// Bases of data senders' addresses.
    pub senders: Hosts,
    /// Bases of data receivers' addresses.
    pub receivers: Hosts,
    /// Opcode of data packets.
    pub opcode: DataOpcode,
    /// Payload of a data packet in octets, a multiple of 4.
    pub payload: usize,
    /// Number of nodes in the trace of Fast CNPs with option 2: 0 to [`MOST_TRACE_NODES`].
    pub trace_nodes: usize,
    /// Congestion levels (0 to 7) that notifications have in turn; at least one.
    pub levels: Vec<u8>,
    /// Share of the data packets that are marked CE, 0 to 1; the others are ECT(0).
    pub ce: f64,
}

impl Stress {
    /// Returns the number of hosts on each side that suffices for every flow to be a different
    /// pair.
    #[must_use]
    pub const fn hosts(flows: u32) -> u32 {
        let root = flows.isqrt();
        if root * root < flows { root + 1 } else { root }
    }

    /// Returns the share of each kind among the frames, in percent.
    pub fn shares(&self) -> impl Iterator<Item = (Kind, f64)> {
        let weights = self.mix.iter().map(|(_, weight)| u64::from(*weight));
        let whole = weights.sum::<u64>() as f64;
        let mix = self.mix.iter();
        mix.map(move |(kind, weight)| (*kind, f64::from(*weight) * 100.0 / whole))
    }

    /// Returns the QP number of connection `number`, from 0.
    #[inline]
    #[must_use]
    pub const fn qp(number: u32) -> Qp {
        Qp::truncate(FIRST_QP + number)
    }

    /// Returns the number of frames of each kind among the first `frames` frames of a queue, in the
    /// order of the mix.
    #[must_use]
    pub fn kinds_of(&self, frames: u64) -> Vec<(Kind, u64)> {
        let counts = self.pattern.counts(frames);
        self.mix
            .iter()
            .zip(counts)
            .map(|((kind, _), count)| (*kind, count))
            .collect()
    }
}
