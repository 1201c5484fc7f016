//! Octets that parts do not build: IOAM traces, the notification to the proxy node, the FCN, RDMA CM messages, PFC.
//! Routing messages are in `routing.rs`.

use super::EPOCH_SECONDS;
use super::cast::{ENTROPY, RECEIVER, RECEIVER4, SENDER, SENDER4};
use super::scene::Scene;
use fcn_wire::Result;
use fcn_wire::bth::{BthRepr, Deth, Opcode, Qp};
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::ioam::{IoamOption, NodeValues, OptType, TraceRepr, TraceType};
use fcn_wire::mad::GSI_Q_KEY;
use fcn_wire::pfc::{ETHERTYPE_MAC_CONTROL, PFC_LEN, PfcRepr};
use fcn_wire::proxy_cn::{FiveTuple, ProxyCnRepr};
use fcn_wire::rdma_cm::{CmRepr, MessageRepr};
use fcn_wire::wan_fcn::WanFcnRepr;
use std::net::IpAddr;

/// Hop limit, node identifier, interfaces, transit delay and queue depth: what control from telemetry wants.
pub const HOP_TRACE: TraceType = TraceType::from_bits(0b1100_1010 << 16);

/// What three switches on the path wrote: the last one is congested.
pub const PATH: [NodeValues<'static>; 3] = [
    hop(63, 0x00_0101, 1, 7, 820, 0),
    hop(62, 0x00_0201, 12, 3, 1_150, 4_096),
    hop(61, 0x00_0301, 5, 24, 48_300, 1_572_864),
];

const fn hop(
    hop_limit: u8,
    node_id: u64,
    ingress: u32,
    egress: u32,
    transit_delay: u32,
    queue_depth: u32,
) -> NodeValues<'static> {
    NodeValues {
        hop_limit,
        node_id,
        ingress,
        egress,
        seconds: EPOCH_SECONDS,
        fraction: 0x1234_5678,
        transit_delay,
        namespace_data: 0x0A0B_0C0D,
        queue_depth,
        checksum_complement: 0xFFFF_0000,
        buffer_occupancy: 2_097_152,
        opaque: (0, &[]),
    }
}

/// A trace of `trace_type` with room for `free` octets more, filled by `nodes` (in the order passed).
pub fn trace(
    opt_type: OptType,
    trace_type: TraceType,
    free: usize,
    nodes: &[NodeValues<'_>],
) -> Result<Vec<u8>> {
    let mut list = vec![0; free];
    for node in nodes.iter().rev() {
        let mut data = vec![0; node.buffer_len(trace_type)];
        node.emit(trace_type, &mut data)?;
        list.extend(data);
    }
    let repr = TraceRepr {
        opt_type,
        namespace_id: 1,
        node_len: trace_type.node_len() as u8,
        flags: 0,
        remaining_len: (free / 4) as u8,
        trace_type,
        reserved: 0,
        list: &list,
    };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out)?;
    Ok(out)
}

/// The IOAM option around a trace.
pub const fn ioam(opt_type: OptType, trace: &[u8]) -> OptionPart<'_> {
    OptionPart::Ioam(IoamOption {
        reserved: 0,
        opt_type,
        body: trace,
    })
}

/// Option 2 about the flow.
pub const fn option2(opt_type: OptType, trace: &[u8]) -> OptionPart<'_> {
    OptionPart::FastCnp(FastCnpRepr::Option2 {
        ioam: IoamOption {
            reserved: 0,
            opt_type,
            body: trace,
        },
        original_destination: RECEIVER,
    })
}

/// Parts and values that depend on the code points in use.
impl Scene {
    /// UDP of the notification to the proxy node.
    pub const fn proxy_udp(&self) -> Part<'static> {
        Part::udp_summed(61_000, self.profile().proxy_cn_port)
    }

    /// UDP of the FCN.
    pub const fn fcn_udp(&self) -> Part<'static> {
        Part::udp_summed(61_000, self.profile().wan_fcn_port)
    }

    /// The flow over IPv6.
    pub const fn tuple6(&self) -> FiveTuple {
        self.tuple(IpAddr::V6(SENDER), IpAddr::V6(RECEIVER))
    }

    /// The flow over IPv4.
    pub const fn tuple4(&self) -> FiveTuple {
        self.tuple(IpAddr::V4(SENDER4), IpAddr::V4(RECEIVER4))
    }

    const fn tuple(&self, source: IpAddr, destination: IpAddr) -> FiveTuple {
        FiveTuple {
            source,
            destination,
            protocol: 17,
            source_port: ENTROPY,
            destination_port: self.profile().rocev2_port,
        }
    }

    /// An RDMA CM message from one general services QP to the other, behind `ip` and what is in front of it.
    pub fn connection(
        &mut self,
        comment: &str,
        ip: &[Part<'_>],
        psn: u32,
        message: impl Into<MessageRepr>,
    ) -> Result<()> {
        let deth = Deth {
            qkey: GSI_Q_KEY,
            source_qp: Qp::GSI,
        };
        let mut mad = [0; CmRepr::LEN];
        CmRepr::new(0x0000_1234_5678_9ABC, message).emit(&mut mad)?;
        let udp = Part::udp(49_152, self.profile().rocev2_port);
        let roce = [
            udp,
            Part::Bth(BthRepr::new(Opcode::UD_SEND_ONLY, Qp::GSI, psn)),
            Part::Deth(deth),
            Part::Bytes(&mad),
            self.icrc(),
        ];
        self.say(comment, &[ip, &roce[..]].concat())?;
        Ok(())
    }
}

/// The notification to the proxy node about `five_tuple`, quoting `invoking`.
pub fn proxy_cn(five_tuple: FiveTuple, level: u8, invoking: &[u8]) -> Result<Vec<u8>> {
    let repr = ProxyCnRepr {
        five_tuple,
        level,
        reserved: 0,
        invoking,
    };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out)?;
    Ok(out)
}

/// The FCN.
pub fn fcn(flow_label: u32, level: u8, reserved: u16) -> Result<[u8; 4]> {
    let mut out = [0; 4];
    WanFcnRepr {
        flow_label,
        level,
        reserved,
    }
    .emit(&mut out)?;
    Ok(out)
}

/// A MAC control frame with `bytes` from the opcode on, padded to the least frame.
pub fn mac_control(destination: [u8; 6], bytes: &[u8]) -> Vec<u8> {
    let mut out = [
        &destination[..],
        &[2, 0, 0, 0, 0, 3],
        &ETHERTYPE_MAC_CONTROL.to_be_bytes(),
        bytes,
    ]
    .concat();
    out.resize(60, 0);
    out
}

/// The octets of a PFC frame from its opcode on.
pub fn pfc(pfc: &PfcRepr) -> Result<Vec<u8>> {
    let mut out = vec![0; PFC_LEN];
    pfc.emit(&mut out)?;
    Ok(out)
}
