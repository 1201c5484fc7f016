//! The postdissector: adds items for the wrappers' notes to the finished tree, passes the frame to
//! the memory, and feeds the tap.

use super::draw::{Drawing, add_protocol, draw, plan};
use super::messages::show_broken;
use super::note::{Note, NoteKind};
use super::notes::{self, Notes};
use super::packet::{Call, Packet, Tree, Wanted};
use super::wrappers::take_plain;
use super::{guard, ids, memory, routing, taps};
use crate::locate::HeaderKind;
use crate::memory::Context;
use crate::names::P;
use crate::plan::{Mark, Op, Plan, range};
use crate::show::{self, Notified, OptionPresence, PayloadAt, Record};
use core::ffi::c_int;
use fcn_observe::Class;
use fcn_observe::correlator::NotificationPacket;
use fcn_observe::malformed::Malformed;
use fcn_observe::origin::PathMarks;
use fcn_wire::Frame;
use fcn_wire::frame::Datagram;
use fcn_wire::notification::Notification;

/// Length of a UDP header in octets.
const UDP_HEADER_LEN: usize = 8;

/// Runs the postdissector on a packet.
pub fn post(call: Call<'_>) -> c_int {
    let (packet, tree) = (call.packet, call.tree);
    let plain = take_plain(call);
    let mut all = None;
    if notes::any(packet) {
        notes::done();
        routing::post(packet, tree);
        all = notes::for_packet::<Note<'_>>(packet);
    }
    let Some(all) = all else {
        if let Some(seen) = plain {
            remember(call, &seen);
        }
        return 0;
    };
    for seen in all.iter() {
        match seen.kind {
            NoteKind::Roce if !seen.returned && !seen.quoted => seen.set_columns(packet),
            NoteKind::Broken(protocol) => show_broken(call, &seen, protocol),
            NoteKind::Options {
                hop_by_hop,
                fast: true,
            } if seen.quoted => append_quotation(packet, &seen, hop_by_hop),
            _ => {}
        }
    }
    if let Some(seen) = innermost(all).or(plain) {
        remember(call, &seen);
    }
    let tapped = taps::has_listener();
    let wanted = match ids::has_expert_listener() {
        true => Wanted::Everything,
        false => tree.wanted(),
    };
    if wanted == Wanted::Everything {
        for seen in all.iter() {
            add(packet, tree, &seen);
        }
    } else if !tree.is_none() {
        add_protocols(packet, tree, all);
    }
    let mut is_notified = false;
    let summarizes = wanted != Wanted::Nothing;
    for seen in all.iter().filter(|_| tapped || summarizes) {
        let Some(gist) = gist(packet, &seen) else {
            continue;
        };
        is_notified = true;
        let number = packet.number();
        let mut notified = Notified::alone(gist);
        let mut is_copy = false;
        if let Some(Some(Context::Notice(context, _))) = guard(|| memory::context(number)) {
            is_copy = context.copy_of.is_some();
            notified.gist.origin = context.origin;
            notified.flow = context.flow.or_else(|| guard(|| memory::flow_of(&gist))?);
            notified.sender_qp = context.sender_qp.map(|(qp, _)| qp);
        }
        // A notification that was captured at several points counts once.
        if tapped && !is_copy {
            taps::queue(packet, Record::Notification(notified));
        }
        if summarizes {
            add_summary(packet, tree, &seen, &notified);
        }
    }
    if tapped && !is_notified {
        let broken = all.iter().find_map(|seen| broken(packet, &seen));
        if let Some(broken) = broken {
            taps::queue(packet, Record::Malformed(broken));
        }
    }
    if wanted == Wanted::Everything {
        add_links(packet, tree, all);
        add_effects(packet, tree, all);
    }
    0
}

/// Appends to the Info column that the packet quotes a Fast CNP.
fn append_quotation<'p>(packet: Packet<'p>, seen: &Note<'p>, hop_by_hop: bool) {
    let profile = seen.profile(packet);
    let place = seen.options_at(packet, hop_by_hop);
    if let Some(Some(text)) = guard(|| show::quotation(&seen.source(packet, &profile), &place)) {
        packet.append_info(text.as_c_str());
    }
}

/// Returns what a note was meant as, if it cannot be read as a notification and no other dissector
/// accepted it.
fn broken<'p>(packet: Packet<'p>, seen: &Note<'p>) -> Option<Malformed> {
    let (known, place) = match seen.kind {
        _ if seen.quoted => return None,
        NoteKind::Roce if !seen.is_any_cnp() => return None,
        NoteKind::Broken(_) if !packet.is_plain_udp() => return None,
        NoteKind::Options { fast: true, .. } => (HeaderKind::ExtensionHeader, seen.at.start),
        NoteKind::Options { .. } | NoteKind::MacControl | NoteKind::Void => return None,
        NoteKind::Roce | NoteKind::Proxy | NoteKind::Wan | NoteKind::Broken(_) => {
            (HeaderKind::Udp, seen.at.start.checked_sub(UDP_HEADER_LEN)?)
        }
    };
    let profile = seen.profile(packet);
    let (source, _) = seen.at.addresses?;
    guard(|| show::broken(&seen.source(packet, &profile), place, known, source)).flatten()
}

/// Returns the content of a note, if it is a notification and not the quotation of one.
fn gist<'p>(packet: Packet<'p>, seen: &Note<'p>) -> Option<Notification> {
    let is_notification = match seen.kind {
        NoteKind::Roce => seen.is_cnp(),
        NoteKind::Proxy | NoteKind::Wan => true,
        _ => false,
    };
    if seen.quoted || !is_notification {
        return None;
    }
    let profile = seen.profile(packet);
    let options = seen
        .counterpart(packet, Note::is_fast_option)
        .and_then(|option| {
            let rest = option.ds.bytes().get(option.at.start..)?;
            rest.get(..option.at.captured)
        });
    guard(|| show::gist(&seen.source(packet, &profile), &seen.at, options)).flatten()
}

/// Passes the frame to the memory, for its innermost message, if it is dissected for the first
/// time.
fn remember<'p>(call: Call<'p>, seen: &Note<'p>) {
    let packet = call.packet;
    let Some(visit) = memory::first_visit(call.tvb, packet) else {
        return;
    };
    let inner = seen.ds.bytes();
    let profile = seen.profile(packet);
    let source = seen.source(packet, &profile);
    // From the link layer on, tunnels and their labels can be read as well.
    let link = (packet.link_type()).filter(|_| call.tvb.source().0 == seen.ds);
    let with_frame = |work: &mut dyn FnMut(&Frame<'_>)| {
        if let Some(link) = link {
            let mut whole = Frame::empty(&profile);
            whole.reparse(inner, source.wire_len, link);
            let is_same = whole.datagram().map(Datagram::payload_at) == Some(seen.at.start);
            if is_same || seen.kind == NoteKind::MacControl {
                return work(&whole);
            }
        }
        if let Some(frame) = show::frame(&source, &seen.at) {
            work(&frame);
        }
    };
    if let Some(gist) = gist(packet, seen) {
        guard(|| {
            let (mut signs, mut class) = (None, None);
            with_frame(&mut |frame| {
                (signs, class) = (PathMarks::from_frame(frame), Class::from_frame(frame));
            });
            let PayloadAt {
                start, captured, ..
            } = seen.at;
            let payload = inner.get(start..start + captured);
            let port = start.checked_sub(UDP_HEADER_LEN);
            let port = port.and_then(|at| inner.get(at..)?.first_chunk::<2>());
            let port = port.map_or(0, |octets| u16::from_be_bytes(*octets));
            let notice = NotificationPacket {
                notification: &gist,
                port,
                payload: payload.unwrap_or_default(),
                class,
                marks: signs,
            };
            memory::notification(visit, &notice);
        });
    } else if matches!(seen.kind, NoteKind::Roce | NoteKind::MacControl) {
        guard(|| with_frame(&mut |frame| memory::packet(visit, frame)));
    }
}

/// Returns the innermost message of a frame that is not quoted.
fn innermost<'p>(all: &Notes<'p, Note<'p>>) -> Option<Note<'p>> {
    let is_message = |kind| {
        use NoteKind::{MacControl, Proxy, Roce, Wan};
        matches!(kind, Roce | Proxy | Wan | MacControl)
    };
    all.iter()
        .filter(|seen| !seen.quoted && is_message(seen.kind))
        .last()
}

/// Makes a plan with `work`, and adds its items.
fn add_plan<'p>(
    packet: Packet<'p>,
    tree: Tree<'p>,
    seen: &Note<'p>,
    work: impl FnOnce(&mut Plan),
) -> Option<Drawing<'p>> {
    let (plan, ()) = plan(packet, seen.quoted, work)?;
    draw(packet, tree, seen.ds, plan);
    Some(plan)
}

/// Adds the items that are the same for every kind of notification.
fn add_summary<'p>(packet: Packet<'p>, tree: Tree<'p>, seen: &Note<'p>, notified: &Notified) {
    add_plan(packet, tree, seen, |plan| {
        show::summary(plan, notified, range(seen.at.start, seen.at.captured));
        match memory::context(packet.number()) {
            Some(Context::Notice(notice, outcome)) => {
                show::context::notice(plan, &notice, &outcome, seen.at.start);
            }
            Some(Context::Forgotten) => show::context::forgotten(plan, seen.at.start),
            Some(Context::Data(_)) | None => {}
        }
    });
}

/// Adds the earlier packet that a data packet repeats, or that an acknowledgement names, and what is
/// wrong with its flow.
fn add_links<'p>(packet: Packet<'p>, tree: Tree<'p>, all: &Notes<'p, Note<'p>>) {
    let number = packet.number();
    let Some(seen) = innermost(all) else {
        return;
    };
    if let Some(Some(links)) = guard(|| memory::links(number)) {
        add_plan(packet, tree, &seen, |plan| {
            show::context::links(plan, links, seen.at.start);
        });
    }
    if let Some(Some(incident)) = guard(|| memory::incident(number)) {
        add_plan(packet, tree, &seen, |plan| {
            show::context::incident(plan, incident, seen.at.start);
        });
    }
}

/// Adds the notifications that a data frame led to.
fn add_effects<'p>(packet: Packet<'p>, tree: Tree<'p>, all: &Notes<'p, Note<'p>>) {
    let number = packet.number();
    if let Some(seen) = innermost(all)
        && let Some(Some(Context::Data(context))) = guard(|| memory::context(number))
    {
        add_plan(packet, tree, &seen, |plan| {
            show::context::data(plan, &context, seen.at.start);
        });
    }
}

/// Adds only the protocols, to a tree that is not visible, so that protocol hierarchy statistics
/// count them.
fn add_protocols<'p>(packet: Packet<'p>, tree: Tree<'p>, all: &Notes<'p, Note<'p>>) {
    let mut has_fast = false;
    for seen in all.iter().filter(|seen| !seen.quoted) {
        let add = |protocol, mark| {
            add_protocol(
                tree,
                protocol,
                seen.ds,
                (seen.at.start, seen.at.captured),
                mark,
            );
        };
        match seen.kind {
            NoteKind::Roce => add(P::Roce, Mark::Hidden),
            NoteKind::Options { fast: true, .. } if !has_fast => {
                add(P::FastCnp, Mark::Plain);
                has_fast = true;
            }
            _ => {}
        }
        let is_cnp = seen.at.captured > 0 && seen.is_cnp();
        if is_cnp && matches!(seen.cnp_text(packet), Some((P::Cnp, _))) {
            add(P::Cnp, Mark::Plain);
        }
    }
}

/// Adds the items for one note.
fn add<'p>(packet: Packet<'p>, tree: Tree<'p>, seen: &Note<'p>) {
    match seen.kind {
        NoteKind::Void => return,
        // Another dissector accepted it in the end.
        NoteKind::Broken(_) if !packet.is_plain_udp() => return,
        _ => {}
    }
    let profile = seen.profile(packet);
    let fast = match seen.kind {
        NoteKind::Roce => seen.option_presence(packet),
        _ => OptionPresence::No,
    };
    let destination = packet.mac_destination();
    let plan = add_plan(packet, tree, seen, |plan| {
        let source = seen.source(packet, &profile);
        match seen.kind {
            NoteKind::Roce => show::roce(plan, &source, &seen.roce_at(fast)),
            NoteKind::Options { hop_by_hop, .. } => {
                let place = seen.options_at(packet, hop_by_hop);
                show::options(plan, &source, &place);
            }
            NoteKind::MacControl => {
                show::mac_control(plan, &source, &seen.at, destination);
            }
            // Shown already, except for the headers around them.
            NoteKind::Proxy | NoteKind::Wan | NoteKind::Broken(_) => {
                show::around(plan, &source, &seen.at);
            }
            NoteKind::Void => {}
        }
        plan.add_omitted_count(range(seen.at.start, 0));
    });
    // The Info text of a CNP always contains this; for data, the ICRC is computed only if details
    // are wanted.
    let is_data = seen.kind == NoteKind::Roce && !seen.quoted && !seen.is_cnp();
    if is_data
        && let Some(plan) = plan
        && plan.ops.iter().any(|op| matches!(op, Op::Found(..)))
    {
        packet.append_info(c" [ICRC incorrect]");
    }
}
