//! Content of every notification, regardless of its kind: one parser and one subtree for all of
//! them.

use super::{Notified, PayloadAt, Source};
use crate::names::{F, Node, P};
use crate::plan::{Mark, Plan, Range};
use fcn_wire::frame::{Frame, LinkType};
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::notification::Notification;
use std::net::IpAddr;

/// Returns the content of the notification at `place`; `None` if there is no readable one.
/// `options` is the options header with a Fast CNP option that belongs to it, from any data source.
pub fn gist(
    source: &Source<'_>,
    place: &PayloadAt,
    options: Option<&[u8]>,
) -> Option<Notification> {
    match source.frame_of_payload(place) {
        Some((_, frame)) => Notification::from_frame(&frame),
        None => reassembled(source, place, options.unwrap_or_default()),
    }
}

const UDP_HEADER_LEN: usize = 8;
/// Octets of a payload that suffice to read its content: the longest begins with a five-tuple and
/// quotes the packet that it is about up to that packet's BTH.
const ENOUGH: usize = 512;
const LONGEST_OPTIONS: usize = 2048;

/// Parses a message whose IP header stayed with its first fragment: puts an equivalent header in
/// front of it.
fn reassembled(
    data_source: &Source<'_>,
    place: &PayloadAt,
    options: &[u8],
) -> Option<Notification> {
    let datagram = data_source.slice(
        place.start.checked_sub(UDP_HEADER_LEN)?,
        place.captured.min(ENOUGH) + UDP_HEADER_LEN,
    );
    if options.len() > LONGEST_OPTIONS {
        return None;
    }
    let behind_ip = options.len() + UDP_HEADER_LEN + place.reported;
    let mut packet = [0; 40 + LONGEST_OPTIONS + UDP_HEADER_LEN + ENOUGH];
    let ip_len = match place.addresses? {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            packet[0] = 0x45;
            packet[2..4].copy_from_slice(&u16::try_from(20 + behind_ip).ok()?.to_be_bytes());
            packet[9] = next_header::UDP;
            packet[12..16].copy_from_slice(&source.octets());
            packet[16..20].copy_from_slice(&destination.octets());
            20
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet[0] = 0x60;
            packet[4..6].copy_from_slice(&u16::try_from(behind_ip).ok()?.to_be_bytes());
            packet[6] = if options.is_empty() {
                next_header::UDP
            } else {
                next_header::DESTINATION_OPTIONS
            };
            packet[8..24].copy_from_slice(&source.octets());
            packet[24..40].copy_from_slice(&destination.octets());
            40
        }
        _ => return None,
    };
    let (datagram_at, end) = (
        ip_len + options.len(),
        ip_len + options.len() + datagram.len(),
    );
    packet[ip_len..datagram_at].copy_from_slice(options);
    if !options.is_empty() {
        // Next header may have been a Fragment header.
        packet[ip_len] = next_header::UDP;
    }
    packet[datagram_at..end].copy_from_slice(datagram);
    let frame = Frame::parse(
        &packet[..end],
        ip_len + behind_ip,
        LinkType::RawIp,
        data_source.profile,
    );
    Notification::from_frame(&frame)
}

/// Plans the subtree that all kinds of notifications share, and leaves it open for the context.
pub fn summary(plan: &mut Plan, notified: &Notified, whole: Range) {
    let gist = &notified.gist;
    let here = Range { len: 0, ..whole };
    if let Some(hops) = gist.hops {
        // From the trace, which the Fast CNP's own subtree shows.
        plan.goto(Node::FastCnp, whole.start as usize);
        if let Some(depth) = gist.deepest_queue {
            plan.generated(F::FcnQueue, here, depth);
        }
        plan.generated(F::FcnHops, here, hops);
    }
    plan.below_top_level();
    plan.protocol(P::Fcn, whole, Mark::Generated);
    plan.label(format_args!(
        "Congestion notification: {}",
        gist.kind.name()
    ));
    let text = |plan: &mut Plan, field: F, text: &str| {
        plan.text(field, here, format_args!("{text}"));
    };
    // The packet's own subtree shows this content, under the names of its format.
    plan.hidden(F::FcnKind, here, gist.kind.id());
    plan.hidden(F::FcnKindName, here, gist.kind.name());
    text(plan, F::FcnNotifierRole, gist.origin.id());
    let notifier = (F::FcnNotifier4, F::FcnNotifier6);
    plan.address(notifier, here, gist.notifier, Mark::Hidden);
    if let Some(sender) = gist.sender {
        let fields = (F::FcnSender4, F::FcnSender6);
        plan.address(fields, here, sender, Mark::Hidden);
    }
    if let Some((side, qp)) = gist.subject.qp() {
        plan.marked(F::FcnQp, here, qp.get(), Mark::Hidden);
        plan.hidden(F::FcnQpSide, here, side.id());
    }
    if let Some(level) = gist.level {
        plan.marked(F::FcnLevel, here, level, Mark::Hidden);
    }
    if let Some(ends) = notified.ends() {
        let [sender, other] = ends.map(|end| plan.store_text(format_args!("{end}")));
        for (field, end) in [
            (F::FcnEnd, sender),
            (F::FcnEndSender, sender),
            (F::FcnEnd, other),
            (F::FcnEndOther, other),
        ] {
            plan.stored(field, here, end, Mark::Hidden);
        }
    }
}
