//! QPs, PSNs and addresses in RDMA CM messages. What the messages say is read by `rdma_cm.rs`.

use super::packet::Walk;
use crate::error::ErrorKind;
use crate::mad::{MAD_HEADER_LEN, Mad};
use crate::octets::{ipv6_at, u8_at};
use crate::rdma_cm::{Cm, Kind, gid_to_ip};
use std::net::IpAddr;

/// Places from the start of the MAD (InfiniBand volume 1 sections 12.6.5 to 12.6.10, Annex A11.2.2), as `rdma_cm.rs`
/// reads them; a test compares the two.
mod field {
    use super::MAD_HEADER_LEN;

    pub const REQ_LOCAL_QPN: usize = MAD_HEADER_LEN + 32;
    pub const REQ_STARTING_PSN: usize = MAD_HEADER_LEN + 44;
    /// GIDs of the primary path, then of the alternate one: local, remote.
    pub const REQ_GIDS: [usize; 4] = [
        MAD_HEADER_LEN + 56,
        MAD_HEADER_LEN + 72,
        MAD_HEADER_LEN + 100,
        MAD_HEADER_LEN + 116,
    ];
    pub const REQ_PRIVATE: usize = MAD_HEADER_LEN + 140;
    /// In the private data: IP version (4 bits).
    pub const IP_CM_VERSION: usize = REQ_PRIVATE + 1;
    /// In the private data: source and destination address.
    pub const IP_CM_ADDRESSES: [usize; 2] = [REQ_PRIVATE + 4, REQ_PRIVATE + 20];
    pub const REP_LOCAL_QPN: usize = MAD_HEADER_LEN + 12;
    pub const REP_STARTING_PSN: usize = MAD_HEADER_LEN + 20;
    pub const DREQ_REMOTE_QPN: usize = MAD_HEADER_LEN + 8;
}

/// An IPv4 address is in the last four octets of sixteen.
const IPV4_IN_ADDRESS: usize = 12;

/// Rewrites the message in `mad`, which begins at `at` and may be cut.
pub(super) fn rewrite(walk: &mut Walk<'_, '_>, at: usize, mad: &[u8]) {
    let (kind, has_ip_cm) = match Cm::new_lax(mad) {
        Ok(Cm::ConnectRequest(request)) => (
            Kind::ConnectRequest,
            request.service_id().ip_protocol_port().is_some(),
        ),
        Ok(cm) => (cm.kind(), false),
        // Short: it is such a message, cut before its end.
        Err(e) if matches!(e.kind, ErrorKind::Short { .. }) => match Mad::new_checked(mad) {
            Ok(header) => (Kind::from_attribute(header.attribute_id()), false),
            Err(_) => return,
        },
        Err(_) => return,
    };
    let has = |place: usize, len: usize| mad.len() >= place + len;
    let (qp, psn) = match kind {
        Kind::ConnectRequest => (field::REQ_LOCAL_QPN, Some(field::REQ_STARTING_PSN)),
        Kind::ConnectReply => (field::REP_LOCAL_QPN, Some(field::REP_STARTING_PSN)),
        Kind::DisconnectRequest => (field::DREQ_REMOTE_QPN, None),
        _ => return,
    };
    if has(qp, 3) {
        walk.qp(at + qp);
    }
    if let Some(psn) = psn.filter(|psn| has(*psn, 3)) {
        walk.psn(at + psn);
    }
    if kind != Kind::ConnectRequest {
        return;
    }
    for gid in field::REQ_GIDS.into_iter().filter(|gid| has(*gid, 16)) {
        match gid_to_ip(ipv6_at(mad, gid)) {
            IpAddr::V4(_) => walk.ipv4(at + gid + IPV4_IN_ADDRESS),
            IpAddr::V6(_) => walk.ipv6(at + gid),
        }
    }
    if !has_ip_cm {
        return;
    }
    let version = u8_at(mad, field::IP_CM_VERSION) >> 4;
    for address in field::IP_CM_ADDRESSES.into_iter().filter(|a| has(*a, 16)) {
        match version {
            4 => walk.ipv4(at + address + IPV4_IN_ADDRESS),
            6 => walk.ipv6(at + address),
            _ => {}
        }
    }
}
