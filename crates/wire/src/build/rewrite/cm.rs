//! QPs, PSNs and addresses in RDMA CM messages. `rdma_cm.rs` parses the messages.

use super::walk::Walk;
use crate::error::ErrorKind;
use crate::mad::{MAD_HEADER_LEN, Mad};
use crate::octets::{ipv6_at, u8_at};
use crate::rdma_cm::field::{dreq, ip_cm, path, rep, req};
use crate::rdma_cm::{Cm, Kind, REJ_INFORMATION_LEN, gid_to_ip};
use std::net::IpAddr;

/// Attribute ID of MRA, which announces that the response will take longer.
const MESSAGE_RECEIPT: u16 = 0x11;

/// Rewrites the message in `mad`, which begins at `at` and may be cut.
pub(super) fn rewrite(walk: &mut Walk<'_, '_>, at: usize, mad: &[u8]) {
    let (kind, has_ip_cm) = match Cm::new_lax(mad) {
        Ok(Cm::ConnectRequest(request)) => (
            Kind::ConnectRequest,
            request.service_id().ip_protocol_port().is_some(),
        ),
        // The additional information about the reason may contain a GID.
        Ok(Cm::ConnectReject(reject)) if reject.information() == [0; REJ_INFORMATION_LEN] => return,
        Ok(cm) => (cm.kind(), false),
        // Short: the message is truncated.
        Err(e) if matches!(e.kind, ErrorKind::Short { .. }) => match Mad::new_checked(mad) {
            Ok(header) => (Kind::from_attribute(header.attribute_id()), false),
            Err(_) => return,
        },
        Err(_) => {
            walk.may_contain_unmapped = true;
            return;
        }
    };
    let (at, data) = (
        at + MAD_HEADER_LEN,
        mad.get(MAD_HEADER_LEN..).unwrap_or_default(),
    );
    let has = |place: usize, len: usize| data.len() >= place + len;
    let (qp, psn) = match kind {
        Kind::ConnectRequest => (req::LOCAL_QPN, Some(req::STARTING_PSN)),
        Kind::ConnectReply => (rep::LOCAL_QPN, Some(rep::STARTING_PSN)),
        Kind::DisconnectRequest => (dreq::REMOTE_QPN, None),
        Kind::ReadyToUse | Kind::DisconnectReply | Kind::Other(MESSAGE_RECEIPT) => return,
        _ => {
            walk.may_contain_unmapped = true;
            return;
        }
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
    let gids = [req::PRIMARY, req::ALTERNATE]
        .map(|path| [path + path::LOCAL_GID, path + path::REMOTE_GID]);
    for gid in gids.into_iter().flatten().filter(|gid| has(*gid, 16)) {
        match gid_to_ip(ipv6_at(data, gid)) {
            IpAddr::V4(_) => walk.ipv4(at + gid + ip_cm::IPV4_IN_ADDRESS),
            IpAddr::V6(_) => walk.ipv6(at + gid),
        }
    }
    if !has_ip_cm {
        return;
    }
    let version = u8_at(data, req::PRIVATE + ip_cm::IP_VERSION) >> 4;
    let addresses = [ip_cm::SOURCE, ip_cm::DESTINATION].map(|at| req::PRIVATE + at);
    for address in addresses.into_iter().filter(|a| has(*a, 16)) {
        match version {
            4 => walk.ipv4(at + address + ip_cm::IPV4_IN_ADDRESS),
            6 => walk.ipv6(at + address),
            _ => walk.may_contain_unmapped = true,
        }
    }
}
