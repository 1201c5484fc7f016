//! QPs, PSNs and addresses in RDMA CM messages. What the messages say is read by `rdma_cm.rs`.

use super::walk::Walk;
use crate::error::ErrorKind;
use crate::mad::{MAD_HEADER_LEN, Mad};
use crate::octets::{ipv6_at, u8_at};
use crate::rdma_cm::field::ip_cm::IPV4_IN_ADDRESS;
use crate::rdma_cm::{Cm, Kind, gid_to_ip};
use std::net::IpAddr;

/// Places from the start of the MAD.
mod place {
    use super::MAD_HEADER_LEN;
    use crate::rdma_cm::field::{dreq, ip_cm, path, rep, req};

    pub const REQ_LOCAL_QPN: usize = MAD_HEADER_LEN + req::LOCAL_QPN;
    pub const REQ_STARTING_PSN: usize = MAD_HEADER_LEN + req::STARTING_PSN;
    /// GIDs of the primary path, then of the alternate one: local, remote.
    pub const REQ_GIDS: [usize; 4] = [
        MAD_HEADER_LEN + req::PRIMARY + path::LOCAL_GID,
        MAD_HEADER_LEN + req::PRIMARY + path::REMOTE_GID,
        MAD_HEADER_LEN + req::ALTERNATE + path::LOCAL_GID,
        MAD_HEADER_LEN + req::ALTERNATE + path::REMOTE_GID,
    ];
    pub const REQ_PRIVATE: usize = MAD_HEADER_LEN + req::PRIVATE;
    /// In the private data: IP version (4 bits).
    pub const IP_CM_VERSION: usize = REQ_PRIVATE + ip_cm::IP_VERSION;
    /// In the private data: source and destination address.
    pub const IP_CM_ADDRESSES: [usize; 2] = [
        REQ_PRIVATE + ip_cm::SOURCE,
        REQ_PRIVATE + ip_cm::DESTINATION,
    ];
    pub const REP_LOCAL_QPN: usize = MAD_HEADER_LEN + rep::LOCAL_QPN;
    pub const REP_STARTING_PSN: usize = MAD_HEADER_LEN + rep::STARTING_PSN;
    pub const DREQ_REMOTE_QPN: usize = MAD_HEADER_LEN + dreq::REMOTE_QPN;
}

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
        Kind::ConnectRequest => (place::REQ_LOCAL_QPN, Some(place::REQ_STARTING_PSN)),
        Kind::ConnectReply => (place::REP_LOCAL_QPN, Some(place::REP_STARTING_PSN)),
        Kind::DisconnectRequest => (place::DREQ_REMOTE_QPN, None),
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
    for gid in place::REQ_GIDS.into_iter().filter(|gid| has(*gid, 16)) {
        match gid_to_ip(ipv6_at(mad, gid)) {
            IpAddr::V4(_) => walk.ipv4(at + gid + IPV4_IN_ADDRESS),
            IpAddr::V6(_) => walk.ipv6(at + gid),
        }
    }
    if !has_ip_cm {
        return;
    }
    let version = u8_at(mad, place::IP_CM_VERSION) >> 4;
    for address in place::IP_CM_ADDRESSES.into_iter().filter(|a| has(*a, 16)) {
        match version {
            4 => walk.ipv4(at + address + IPV4_IN_ADDRESS),
            6 => walk.ipv6(at + address),
            _ => {}
        }
    }
}
