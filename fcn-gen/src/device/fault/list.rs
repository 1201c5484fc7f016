//! The faults.

use super::edit::{Layout, insert, insert_extension, lengthen, original_at, put};
use super::{Class, Context, Effect, Fault, Parameter, Received, Sent, State};
use crate::device::Role;
use crate::scenario::model::{Host, NodeId, NodeKind, Simulation, Switch};
use crate::sim::live::OutgoingFrame;
use crate::units::Ps;
use fcn_node::outgoing::{DataPacketContext, OutgoingNotification};
use fcn_node::reaction_point::Control;
use fcn_observe::DataPacket;
use fcn_wire::bth::BTH_LEN;
use fcn_wire::cnp::{CnpRepr, RESERVED_LEN};
use fcn_wire::emit::{self, Carrier};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::header::{ethernet, ipv4, ipv6, udp};
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::{Message, Qp, ip};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use Effect::{Configuration, Octets, Sent as Sends};
use Parameter::{None as Plain, Number, Time};
use Role::{CongestionPoint, IngressPe, Proxy, Receiver, Sender};

const ALL: &[Role] = &[CongestionPoint, Receiver, Sender, Proxy, IngressPe];
const NOTIFIERS: &[Role] = &[CongestionPoint, Receiver, Proxy, IngressPe];
const SWITCHES: &[Role] = &[CongestionPoint, Proxy, IngressPe];
const SWITCH: &[Role] = &[CongestionPoint];
const ENDS: &[Role] = &[CongestionPoint, Receiver];

/// An address that no node of a scenario has.
const STRANGER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 9);
const STRANGER4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
/// Interval between notifications that a fault adds: fewer than any limit on a rate.
const SELDOM: Ps = Ps(1_000_000_000);
/// BTH offsets.
const OPCODE: usize = 0;
const FLAGS: usize = 1;
const PKEY: usize = 2;
const BECN: usize = 4;
const DEST_QP: usize = 5;
const PSN: usize = 9;

const fn fault(
    name: &'static str,
    parameter: Parameter,
    roles: &'static [Role],
    about: &'static str,
    effect: Effect,
) -> Fault {
    Fault {
        name,
        parameter,
        roles,
        about,
        effect,
    }
}

/// All faults.
pub const FAULTS: &[Fault] = &[
    // The octets of messages.
    fault(
        "icrc-wrong",
        Plain,
        ALL,
        "its ICRC is wrong",
        Octets(false, |bytes, layout| {
            if layout.bth.is_some() {
                flip(bytes, layout.end - 1, 1);
            }
        }),
    ),
    fault(
        "icrc-swapped",
        Plain,
        ALL,
        "the octets of its ICRC are in the opposite order",
        Octets(false, |bytes, layout| {
            if let (Some(_), Some(icrc)) = (layout.bth, bytes.get_mut(layout.end - 4..layout.end)) {
                icrc.reverse();
            }
        }),
    ),
    fault(
        "icrc-zero",
        Plain,
        ALL,
        "its ICRC is 0",
        Octets(false, |bytes, layout| {
            if layout.bth.is_some() {
                put(bytes, layout.end - 4, &[0; 4]);
            }
        }),
    ),
    fault(
        "udp-checksum-wrong",
        Plain,
        ALL,
        "its UDP checksum is wrong, and not 0",
        Octets(false, |bytes, layout| {
            if let Some(at) = layout.udp {
                flip(bytes, at + udp::CHECKSUM, 0x5A);
            }
        }),
    ),
    fault(
        "udp-length-wrong",
        Plain,
        ALL,
        "its UDP length is 1 too long",
        Octets(true, |bytes, layout| {
            if let Some(at) = layout.udp {
                lengthen(bytes, at + udp::LENGTH, 1);
            }
        }),
    ),
    fault(
        "hop-limit-0",
        Plain,
        ALL,
        "its hop limit or TTL is 0",
        Octets(true, |bytes, layout| {
            ip::set_hop_limit(after(bytes, layout.ip), 0);
        }),
    ),
    fault(
        "hop-limit-1",
        Plain,
        ALL,
        "its hop limit or TTL is 1",
        Octets(true, |bytes, layout| {
            ip::set_hop_limit(after(bytes, layout.ip), 1);
        }),
    ),
    fault(
        "notification-ce",
        Plain,
        NOTIFIERS,
        "its notifications are marked CE",
        Octets(true, |bytes, layout| {
            ip::set_traffic_class(after(bytes, layout.ip), 3, 3);
        }),
    ),
    fault(
        "pkey-0",
        Plain,
        ALL,
        "its P_Key is 0",
        Octets(true, |bytes, layout| {
            bth(bytes, layout, PKEY, &[0, 0]);
        }),
    ),
    fault(
        "bth-reserved",
        Plain,
        ALL,
        "the reserved bits of its BTH are 1",
        Octets(true, |bytes, layout| {
            bth_flip(bytes, layout, BECN, 0x3F);
            bth_flip(bytes, layout, PSN - 1, 0x7F);
        }),
    ),
    fault(
        "bth-flags",
        Plain,
        NOTIFIERS,
        "its notifications are solicited, migrated, request an acknowledgement",
        Octets(true, |bytes, layout| {
            bth_flip(bytes, layout, FLAGS, 0xC0);
            bth_flip(bytes, layout, PSN - 1, 0x80);
        }),
    ),
    fault(
        "bth-fecn",
        Plain,
        NOTIFIERS,
        "FECN is set in its notifications",
        Octets(true, |bytes, layout| {
            bth_flip(bytes, layout, BECN, 0x80);
        }),
    ),
    fault(
        "becn-clear",
        Plain,
        NOTIFIERS,
        "BECN is clear in its notifications",
        Octets(true, |bytes, layout| {
            bth_flip(bytes, layout, BECN, 0x40);
        }),
    ),
    fault(
        "psn",
        Plain,
        NOTIFIERS,
        "its notifications have a PSN",
        Octets(true, |bytes, layout| {
            bth(bytes, layout, PSN, &[0, 0, 7]);
        }),
    ),
    fault(
        "opcode-0x80",
        Plain,
        NOTIFIERS,
        "its CNPs have opcode 0x80, as on InfiniBand",
        Octets(true, |bytes, layout| {
            bth(bytes, layout, OPCODE, &[0x80]);
        }),
    ),
    fault(
        "cnp-reserved",
        Plain,
        NOTIFIERS,
        "a reserved octet of its CNPs is not 0",
        Octets(true, |bytes, layout| {
            bth(bytes, layout, 12 + 3, &[1]);
        }),
    ),
    fault(
        "cnp-short",
        Plain,
        NOTIFIERS,
        "its CNPs lack the reserved octets",
        Octets(true, |bytes, layout| {
            if let (Some(at), Some(udp)) = (layout.bth, layout.udp) {
                let reserved = at + BTH_LEN..at + BTH_LEN + RESERVED_LEN;
                if reserved.end < bytes.len() {
                    bytes.drain(reserved);
                    let length = if layout.is_v6 {
                        ipv6::LENGTH
                    } else {
                        ipv4::LENGTH
                    };
                    for at in [layout.ip + length, udp + udp::LENGTH] {
                        lengthen(bytes, at, 0_usize.wrapping_sub(RESERVED_LEN));
                    }
                }
            }
        }),
    ),
    fault(
        "qp-zero",
        Plain,
        NOTIFIERS,
        "its notifications name QP 0",
        Octets(true, |bytes, layout| {
            bth(bytes, layout, DEST_QP, &[0; 3]);
        }),
    ),
    fault(
        "qp-wrong",
        Plain,
        NOTIFIERS,
        "its notifications name the next QP",
        Octets(true, |bytes, layout| {
            if let Some(at) = layout.bth
                && let Some(last) = bytes.get_mut(at + DEST_QP + 2)
            {
                *last = last.wrapping_add(1);
            }
        }),
    ),
    fault(
        "source-wrong",
        Plain,
        NOTIFIERS,
        "its notifications come from an address that nobody has",
        Octets(true, |bytes, layout| {
            address(bytes, layout, ipv6::SOURCE, ipv4::SOURCE);
        }),
    ),
    fault(
        "destination-wrong",
        Plain,
        NOTIFIERS,
        "its notifications go to an address that nobody has",
        Octets(true, |bytes, layout| {
            address(bytes, layout, ipv6::DESTINATION, ipv4::DESTINATION);
        }),
    ),
    fault(
        "to-receiver",
        Plain,
        SWITCH,
        "its Fast CNPs go to the receiver of the data",
        Octets(true, |bytes, layout| {
            let original = layout.original.and_then(|at| bytes.get(at..at + 16));
            if let Some(original) = original.map(<[u8]>::to_vec) {
                put(bytes, layout.ip + ipv6::DESTINATION, &original);
            }
        }),
    ),
    fault(
        "original-wrong",
        Plain,
        ENDS,
        "its Fast CNPs have another original destination",
        Octets(true, |bytes, layout| {
            if let Some(at) = layout.original {
                put(bytes, at, &STRANGER.octets());
            }
        }),
    ),
    fault(
        "mac-broadcast",
        Plain,
        ALL,
        "it sends to the broadcast MAC address",
        Octets(false, |bytes, _| {
            put(bytes, ethernet::DESTINATION, &[0xFF; 6]);
        }),
    ),
    fault(
        "mac-multicast",
        Plain,
        ALL,
        "it sends to a multicast MAC address",
        Octets(false, |bytes, _| {
            put(bytes, ethernet::DESTINATION, &[0x33, 0x33, 0, 0, 0, 1]);
        }),
    ),
    fault(
        "mac-source-zero",
        Plain,
        ALL,
        "its source MAC address is 0",
        Octets(false, |bytes, _| {
            put(bytes, ethernet::SOURCE, &[0; 6]);
        }),
    ),
    fault(
        "tag-added",
        Plain,
        ALL,
        "it adds a VLAN tag",
        Octets(false, |bytes, _| {
            if bytes.len() >= ethernet::LEN {
                bytes.splice(ethernet::TYPE..ethernet::TYPE, [0x81, 0, 0, 5]);
            }
        }),
    ),
    fault(
        "fragment-header",
        Plain,
        ALL,
        "a Fragment header is in front (IPv6)",
        Octets(true, |bytes, layout| {
            insert_extension(bytes, layout, next_header::FRAGMENT, [0; 8]);
        }),
    ),
    fault(
        "routing-header",
        Plain,
        ALL,
        "a Routing header without segments left is in front (IPv6)",
        Octets(true, |bytes, layout| {
            insert_extension(
                bytes,
                layout,
                next_header::ROUTING,
                [0, 0, 253, 0, 0, 0, 0, 0],
            );
        }),
    ),
    fault(
        "hop-by-hop",
        Plain,
        ALL,
        "a Hop-by-Hop header with a router alert is in front (IPv6)",
        Octets(true, |bytes, layout| {
            insert_extension(
                bytes,
                layout,
                next_header::HOP_BY_HOP,
                [0, 0, 5, 2, 0, 0, 1, 0],
            );
        }),
    ),
    fault(
        "option-extra",
        Plain,
        ALL,
        "there is an unknown option that is skipped besides (IPv6)",
        Octets(true, |bytes, layout| {
            let option = [0x1D, 4, 0, 0, 0, 0, 1, 0];
            match layout.options {
                Some((start, end)) if layout.is_v6 => {
                    insert(bytes, layout, end, &option);
                    if let Some(units) = bytes.get_mut(start + 1) {
                        *units += 1;
                    }
                }
                _ => insert_extension(
                    bytes,
                    layout,
                    next_header::DESTINATION_OPTIONS,
                    [0, 0, 0x1D, 4, 0, 0, 0, 0],
                ),
            }
        }),
    ),
    fault(
        "trailer",
        Plain,
        ALL,
        "four octets follow the packet",
        Octets(false, |bytes, _| {
            bytes.extend([0xDE, 0xAD, 0xBE, 0xEF]);
        }),
    ),
    fault(
        "too-long",
        Plain,
        SWITCH,
        "its notifications to a proxy are longer than 1,280 octets",
        Octets(true, |bytes, layout| {
            if let (Some(at), true) = (layout.udp, layout.is_proxy_cn) {
                let room = 1_400_usize.saturating_sub(layout.end - layout.ip);
                insert(bytes, layout, layout.end, &vec![0; room]);
                lengthen(bytes, at + udp::LENGTH, room);
            }
        }),
    ),
    fault(
        "quote-short",
        Plain,
        SWITCH,
        "its notifications to a proxy quote 48 octets of the packet",
        Octets(true, |bytes, layout| {
            let quoted = fcn_wire::proxy_cn::Family::V6.header_len();
            if let (Some(udp), true) = (layout.udp, layout.is_proxy_cn) {
                let end = udp + udp::LEN + quoted + 48;
                let less = layout.end.saturating_sub(end);
                bytes.truncate(layout.end - less);
                let length = if layout.is_v6 {
                    ipv6::LENGTH
                } else {
                    ipv4::LENGTH
                };
                for at in [layout.ip + length, udp + udp::LENGTH] {
                    lengthen(bytes, at, 0_usize.wrapping_sub(less));
                }
            }
        }),
    ),
    fault(
        "field",
        Parameter::Field,
        ALL,
        "a field of its messages has this value, with checksums and ICRC right",
        Effect::Field,
    ),
    // When and how often.
    fault(
        "silent",
        Plain,
        NOTIFIERS,
        "it never notifies",
        Sends(|_, state, sent, out| match sent.is_own_notification() {
            true => state.changed += 1,
            false => out.push(sent.frame),
        }),
    ),
    fault(
        "one-in",
        Number(966),
        NOTIFIERS,
        "it sends one in N of its notifications",
        Sends(|_, state, sent, out| {
            if sent.is_own_notification() && !state.is_nth() {
                state.changed += 1;
            } else {
                out.push(sent.frame);
            }
        }),
    ),
    fault(
        "late",
        Time("100ms"),
        NOTIFIERS,
        "its notifications are late by TIME",
        Sends(|_, state, mut sent, out| {
            if sent.is_own_notification() {
                state.changed += 1;
                sent.frame.at = sent.frame.at + Ps(state.value);
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "bursts",
        Time("10ms"),
        NOTIFIERS,
        "it holds its notifications, and sends them together every TIME",
        Sends(|_, state, mut sent, out| {
            if sent.is_own_notification() && state.value > 0 {
                state.changed += 1;
                sent.frame.at = Ps(sent.frame.at.0.next_multiple_of(state.value));
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "stops-after",
        Number(100),
        NOTIFIERS,
        "it sends N notifications, and no more",
        Sends(|_, state, sent, out| {
            state.count += u64::from(sent.is_own_notification());
            if sent.is_own_notification() && state.count > state.value {
                state.changed += 1;
            } else {
                out.push(sent.frame);
            }
        }),
    ),
    fault(
        "twice",
        Plain,
        NOTIFIERS,
        "it sends each notification twice",
        Sends(|_, state, sent, out| {
            if sent.is_own_notification() {
                state.changed += 1;
                out.push(sent.frame.clone());
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "keeps-telling",
        Time("5ms"),
        NOTIFIERS,
        "it repeats each notification after TIME, congested or not",
        Sends(|_, state, sent, out| {
            if sent.is_own_notification() {
                state.changed += 1;
                let mut again = sent.frame.clone();
                (again.at, again.reaction) = (again.at + Ps(state.value), None);
                out.push(again);
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "half-of-qps",
        Plain,
        NOTIFIERS,
        "it never notifies about half of the QPs",
        Sends(|context, state, sent, out| {
            if sent.is_own_notification()
                && named_qp(context, &sent.frame.octets)
                    .is_some_and(|qp| scattered(qp.get().into()) % 2 == 1)
            {
                state.changed += 1;
            } else {
                out.push(sent.frame);
            }
        }),
    ),
    fault(
        "one-qp",
        Plain,
        NOTIFIERS,
        "all its CNPs name the QP of the first one",
        Sends(|context, state, mut sent, out| {
            let layout = Layout::of(&super::parse(&sent.frame.octets, &context.profile));
            if let (true, Some(at)) = (
                sent.is_own_notification(),
                layout.and_then(|layout| layout.bth),
            ) && let Some(qp) = named_qp(context, &sent.frame.octets)
            {
                if state.count == 0 {
                    (state.count, state.value) = (1, qp.get().into());
                }
                state.changed += u64::from(u64::from(qp.get()) != state.value);
                let first = (state.value as u32).to_be_bytes();
                put(&mut sent.frame.octets, at + DEST_QP, &first[1..]);
                super::edit::repair(&mut sent.frame.octets, &context.profile);
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "wrong-link",
        Plain,
        SWITCHES,
        "its notifications leave by another link",
        Sends(|context, state, mut sent, out| {
            if sent.is_own_notification() && context.rates.len() > 1 {
                state.changed += 1;
                sent.frame.link = (sent.frame.link + 1) % context.rates.len();
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "empty-queue",
        Plain,
        SWITCH,
        "it sends Fast CNPs about packets that found the queue empty, and no others",
        Sends(empty_queue),
    ),
    fault(
        "about-acks",
        Plain,
        SWITCH,
        "it sends Fast CNPs about acknowledgements, too",
        Effect::Received(|context, state, received, out| {
            about(
                context,
                state,
                received,
                received.class == Class::Acknowledgement,
                out,
            )
        }),
    ),
    fault(
        "about-cnps",
        Plain,
        SWITCH,
        "it sends Fast CNPs about CNPs, too",
        Effect::Received(|context, state, received, out| {
            about(
                context,
                state,
                received,
                matches!(received.frame.message(), Message::Cnp(_)),
                out,
            )
        }),
    ),
    fault(
        "about-others",
        Plain,
        SWITCH,
        "it sends Fast CNPs about TCP and UDP, too",
        Effect::Received(|context, state, received, out| {
            let is_other = received.class == Class::Other
                && received
                    .frame
                    .ip()
                    .is_some_and(|ip| [6, 17].contains(&ip.protocol));
            about(context, state, received, is_other, out)
        }),
    ),
    fault(
        "about-all-data",
        Plain,
        SWITCH,
        "it sends Fast CNPs about data whether its queue is congested or not",
        Effect::Received(|context, state, received, out| {
            about(context, state, received, received.class == Class::Data, out)
        }),
    ),
    fault(
        "no-rate-limit",
        Plain,
        NOTIFIERS,
        "it does not limit the rate of its notifications",
        Configuration(no_rate_limit),
    ),
    fault(
        "on-by-default",
        Plain,
        ALL,
        "features that have to be off by default are on",
        Configuration(on_by_default),
    ),
    fault(
        "believes-anybody",
        Plain,
        &[Sender, Proxy, IngressPe],
        "it has no access list",
        Configuration(believes_anybody),
    ),
    // What a switch forwards.
    fault(
        "loss",
        Number(20),
        SWITCHES,
        "it loses N percent of the data that it forwards",
        Sends(|_, state, sent, out| {
            if sent.is_forwarded_data() {
                state.count += 1;
                if scattered(state.count) % 100 < state.value {
                    state.changed += 1;
                    return;
                }
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "reorder",
        Number(8),
        SWITCHES,
        "one in N forwarded data packets is overtaken by three others",
        Sends(|context, state, mut sent, out| {
            if sent.is_forwarded_data() && state.is_nth() {
                state.changed += 1;
                sent.frame.at = sent.frame.at + frames_long(context, &sent.frame, 7);
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "delay",
        Time("5ms"),
        SWITCHES,
        "it forwards data TIME later than its queue takes",
        Sends(|_, state, mut sent, out| {
            if sent.is_forwarded_data() {
                state.changed += 1;
                sent.frame.at = sent.frame.at + Ps(state.value);
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "duplicate",
        Number(8),
        SWITCHES,
        "one in N forwarded data packets is sent twice",
        Sends(|_, state, sent, out| {
            if sent.is_forwarded_data() && state.is_nth() {
                state.changed += 1;
                out.push(sent.frame.clone());
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "corrupt",
        Number(8),
        SWITCHES,
        "an octet of one in N forwarded data packets is changed",
        Sends(|_, state, mut sent, out| {
            if sent.is_forwarded_data() && state.is_nth() {
                state.changed += 1;
                let at = sent.frame.octets.len().saturating_sub(8);
                flip(&mut sent.frame.octets, at, 1);
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "ecn-erased",
        Plain,
        SWITCHES,
        "it clears the ECN field of the data that it forwards",
        Sends(|context, state, mut sent, out| {
            if sent.is_forwarded_data() {
                outer_ecn(context, state, &mut sent.frame, 0);
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "marks-all",
        Plain,
        SWITCHES,
        "it marks all data that it forwards CE",
        Sends(|context, state, mut sent, out| {
            if sent.is_forwarded_data() {
                outer_ecn(context, state, &mut sent.frame, 3);
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "marks-notified",
        Plain,
        SWITCH,
        "it marks packets that cause a Fast CNP, although the sender handles these",
        Configuration(|simulation, node| {
            switch(simulation, node, |switch| switch.congestion.senders.clear());
        }),
    ),
    fault(
        "node-data-ones",
        Plain,
        SWITCH,
        "the node data that it writes into an IOAM trace are all ones",
        Sends(|context, state, mut sent, out| {
            if sent.is_forwarded_data() {
                node_data_ones(context, state, &mut sent.frame);
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "no-border",
        Plain,
        SWITCH,
        "it passes notifications across its domain's border",
        Configuration(|simulation, node| {
            switch(simulation, node, |switch| switch.border_filter = false);
        }),
    ),
    fault(
        "option-1-always",
        Plain,
        SWITCH,
        "its Fast CNPs have option 1 although the packet has a trace",
        Sends(|context, state, mut sent, out| {
            if let Some(octets) = with_option_1(context, &sent.frame.octets) {
                state.changed += 1;
                sent.frame.octets = octets;
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "one-label",
        Plain,
        &[IngressPe],
        "all flows have one outer flow label",
        Sends(|_, state, mut sent, out| {
            if sent.is_forwarded_data()
                && sent.frame.octets.get(12..14) == Some(&ethernet::IPV6.to_be_bytes())
            {
                let packet = after(&mut sent.frame.octets, ethernet::LEN);
                let label = ip::flow_label(packet);
                // The first label is everybody's.
                state.value = if state.value == 0 {
                    u64::from(label)
                } else {
                    state.value
                };
                state.changed += u64::from(u64::from(label) != state.value);
                ip::set_flow_label(packet, state.value as u32);
            }
            out.push(sent.frame);
        }),
    ),
    fault(
        "minds-reserved",
        Plain,
        &[IngressPe],
        "it ignores FCNs whose reserved bits are set",
        Effect::Received(|_, _, received, _| match received.frame.message() {
            Message::WanFcn(message) if message.reserved() != 0 => Vec::new(),
            _ => same(received),
        }),
    ),
    // Receivers.
    fault(
        "without-marks",
        Plain,
        &[Receiver],
        "it answers data that is not marked, too",
        Effect::Received(|_, _, received, _| {
            let mut bytes = received.bytes.to_vec();
            if let (Class::Data, Some(ip)) = (received.class, received.frame.ip()) {
                ip::set_traffic_class(after(&mut bytes, ip.start), 3, 3);
            }
            vec![(Ps(0), bytes)]
        }),
    ),
    // Senders.
    fault(
        "ignores",
        Plain,
        &[Sender],
        "it ignores all notifications",
        Configuration(|simulation, node| {
            host(simulation, node, |host, _| {
                host.reaction.control = Control::Fixed;
            });
        }),
    ),
    fault(
        "ignores-fast-cnp",
        Plain,
        &[Sender],
        "it ignores Fast CNPs",
        Configuration(|simulation, node| {
            host(simulation, node, |host, _| host.reaction.fast_cnp = false);
        }),
    ),
    fault(
        "ignores-option-2",
        Plain,
        &[Sender],
        "it ignores Fast CNPs with option 2",
        Effect::Received(|_, _, received, _| match received.frame.message() {
            Message::FastCnp(message)
                if message.parsed.is_ok_and(|option| option.number() == 2) =>
            {
                Vec::new()
            }
            _ => same(received),
        }),
    ),
    fault(
        "reacts-late",
        Time("50ms"),
        &[Sender],
        "it reacts to notifications TIME after they arrive",
        Effect::Received(|_, state, received, _| match received.class {
            Class::Notification => vec![(Ps(state.value), received.bytes.to_vec())],
            _ => same(received),
        }),
    ),
    fault(
        "barely-slows",
        Plain,
        &[Sender],
        "it slows down by five percent at most",
        Configuration(|simulation, node| {
            host(simulation, node, |host, rate| {
                if let Control::Dcqcn(params) = &mut host.reaction.control {
                    params.r_min = rate * 0.95;
                }
            });
        }),
    ),
    fault(
        "never-recovers",
        Plain,
        &[Sender],
        "its rate never rises again",
        Configuration(|simulation, node| {
            host(simulation, node, |host, _| {
                if let Control::Dcqcn(params) = &mut host.reaction.control {
                    (params.t, params.b) = (Duration::from_secs(3_600), u64::MAX);
                }
            });
        }),
    ),
    fault(
        "slows-all",
        Plain,
        &[Sender],
        "a notification about one QP slows all of them down",
        Effect::Received(slows_all),
    ),
    fault(
        "qp-alone",
        Plain,
        &[Sender],
        "it looks at the QP of a Fast CNP alone, not at its original destination",
        Effect::Received(|context, _, received, _| {
            let mut bytes = received.bytes.to_vec();
            if let Message::FastCnp(message) = received.frame.message()
                && let Some(cnp) = message.cnp
                && let Some((IpAddr::V6(receiver), ..)) =
                    (context.flows.iter()).find(|(.., qp)| *qp == cnp.dest_qp())
            {
                if let Some(at) = original_at(&message) {
                    put(&mut bytes, at, &receiver.octets());
                }
                super::edit::repair(&mut bytes, &context.profile);
            }
            vec![(Ps(0), bytes)]
        }),
    ),
];

fn same(received: &Received<'_>) -> Vec<(Ps, Vec<u8>)> {
    vec![(Ps(0), received.bytes.to_vec())]
}

fn after(bytes: &mut [u8], at: usize) -> &mut [u8] {
    bytes.get_mut(at..).unwrap_or_default()
}

fn flip(bytes: &mut [u8], at: usize, bits: u8) {
    if let Some(octet) = bytes.get_mut(at) {
        *octet ^= bits;
    }
}

fn bth(bytes: &mut [u8], layout: &Layout, at: usize, value: &[u8]) {
    if let Some(start) = layout.bth {
        put(bytes, start + at, value);
    }
}

fn bth_flip(bytes: &mut [u8], layout: &Layout, at: usize, bits: u8) {
    if let Some(start) = layout.bth {
        flip(bytes, start + at, bits);
    }
}

fn address(bytes: &mut [u8], layout: &Layout, at6: usize, at4: usize) {
    match layout.is_v6 {
        true => put(bytes, layout.ip + at6, &STRANGER.octets()),
        false => put(bytes, layout.ip + at4, &STRANGER4.octets()),
    }
}

/// Returns a number without a pattern for each number, the same in every run (SplitMix64).
const fn scattered(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns half the time that `halves` frames like this one take on its link.
fn frames_long(context: &Context, frame: &OutgoingFrame, halves: u64) -> Ps {
    let rate = context.rates.get(frame.link);
    let one = rate.map_or(Ps(0), |rate| rate.time(frame.octets.len() as u64 + 24));
    Ps(one.0 * halves / 2)
}

fn switch(simulation: &mut Simulation, node: NodeId, change: impl FnOnce(&mut Switch)) {
    if let NodeKind::Switch(switch) = &mut simulation.nodes[node].kind {
        change(switch);
    }
}

/// Changes a host, given the rate of its link in bit/s.
fn host(simulation: &mut Simulation, node: NodeId, change: impl FnOnce(&mut Host, f64)) {
    let link = simulation
        .links
        .iter()
        .find(|link| link.a == node || link.b == node);
    let rate = link.map_or(0.0, |link| link.rate.bits_per_second() as f64);
    if let NodeKind::Host(host) = &mut simulation.nodes[node].kind {
        change(host, rate);
    }
}

fn no_rate_limit(simulation: &mut Simulation, node: NodeId) {
    match &mut simulation.nodes[node].kind {
        NodeKind::Host(host) => {
            if let Some(point) = &mut host.notification {
                point.interval = Duration::ZERO;
            }
        }
        NodeKind::Switch(switch) => {
            switch.congestion.limits.interval = Duration::ZERO;
            if let Some(proxy) = &mut switch.proxy {
                proxy.config.limits.interval = Duration::ZERO;
            }
            if let Some(edge) = &mut switch.edge {
                edge.config.limits.interval = Duration::ZERO;
            }
        }
    }
}

fn on_by_default(simulation: &mut Simulation, node: NodeId) {
    match &mut simulation.nodes[node].kind {
        NodeKind::Host(host) => {
            host.reaction.fast_cnp = true;
            if let Some(point) = &mut host.notification {
                point.fast_cnp = true;
            }
        }
        NodeKind::Switch(switch) => {
            let congestion = &mut switch.congestion;
            (congestion.fast_cnp, congestion.proxy, congestion.wan_fcn) = (true, true, true);
            if let Some(proxy) = &mut switch.proxy {
                proxy.config.enabled = true;
            }
            if let Some(edge) = &mut switch.edge {
                edge.config.enabled = true;
            }
        }
    }
}

fn believes_anybody(simulation: &mut Simulation, node: NodeId) {
    match &mut simulation.nodes[node].kind {
        NodeKind::Host(host) => {
            let all = [
                IpAddr::V6(Ipv6Addr::UNSPECIFIED),
                IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            ];
            let all = all.map(|address| fcn_wire::pnc::Prefix::new(address, 0));
            host.reaction.access_list = all.into_iter().flatten().collect();
        }
        NodeKind::Switch(switch) => {
            if let Some(proxy) = &mut switch.proxy {
                proxy.config.congestion_points.clear();
            }
            if let Some(edge) = &mut switch.edge {
                edge.config.congestion_points.clear();
            }
        }
    }
}

/// Returns the QP that a notification names.
fn named_qp(context: &Context, bytes: &[u8]) -> Option<Qp> {
    match super::parse(bytes, &context.profile).message() {
        Message::Cnp(cnp) => Some(cnp.dest_qp()),
        Message::FastCnp(message) => message.cnp.map(|cnp| cnp.dest_qp()),
        _ => None,
    }
}

/// Builds a Fast CNP about a packet, to be sent back to where the packet came from.
fn fast_cnp_about(context: &Context, at: Ps, link: usize, bytes: &[u8]) -> Option<OutgoingFrame> {
    let frame = super::parse(bytes, &context.profile);
    let ip = frame.ip()?;
    let (IpAddr::V6(sender), IpAddr::V6(receiver)) = (ip.source, ip.destination) else {
        return None;
    };
    let qp = match frame.message() {
        Message::Roce(bth, _) => bth.dest_qp(),
        Message::Cnp(cnp) => cnp.dest_qp(),
        _ => Qp::truncate(0x123),
    };
    let outgoing = OutgoingNotification::FastCnp {
        source: context.address,
        destination: sender,
        original_destination: receiver,
        qp,
    };
    let mut packet = [0; OutgoingNotification::MAX_LEN];
    let data = DataPacket::from_frame(&frame);
    let invoking = data.map(|data| DataPacketContext::new(&data, &frame));
    let (len, _) = outgoing
        .emit(&invoking.unwrap_or_default(), &context.profile, &mut packet)
        .ok()?;
    let mut octets = Vec::with_capacity(ethernet::LEN + len);
    octets.extend_from_slice(bytes.get(6..12)?);
    octets.extend_from_slice(bytes.get(..6)?);
    octets.extend_from_slice(&ethernet::IPV6.to_be_bytes());
    octets.extend_from_slice(packet.get(..len)?);
    Some(OutgoingFrame {
        link,
        at,
        header: None,
        octets,
        reaction: None,
    })
}

/// Sends a Fast CNP about the received packet if it is one to notify about, but seldom enough for
/// any limit.
fn about(
    context: &Context,
    state: &mut State,
    received: &Received<'_>,
    is_wanted: bool,
    out: &mut Vec<OutgoingFrame>,
) -> Vec<(Ps, Vec<u8>)> {
    let last = state.last.get(&received.link).copied();
    if is_wanted
        && last.is_none_or(|last| received.now.since(last) >= SELDOM)
        && let Some(frame) = fast_cnp_about(context, received.now, received.link, received.bytes)
    {
        state.last.insert(received.link, received.now);
        state.changed += 1;
        out.push(frame);
    }
    same(received)
}

/// Drops the device's notifications; sends Fast CNPs about packets that leave as soon as they have
/// come.
fn empty_queue(context: &Context, state: &mut State, sent: Sent, out: &mut Vec<OutgoingFrame>) {
    if sent.is_own_notification() {
        state.changed += 1;
        return;
    }
    if sent.is_forwarded_data() {
        let (link, at) = (sent.frame.link, sent.frame.at);
        let last = state.last.insert(link, at);
        // Packets that follow each other closely have waited in the queue.
        let is_alone =
            last.is_none_or(|last| at.since(last) > frames_long(context, &sent.frame, 3));
        let source = sent
            .frame
            .octets
            .get(6..)
            .and_then(|rest| rest.first_chunk());
        let back = source.and_then(|source| state.links.get(source)).copied();
        if let (true, Some(back)) = (is_alone, back)
            && let Some(frame) = fast_cnp_about(context, at, back, &sent.frame.octets)
        {
            state.changed += 1;
            out.push(frame);
        }
    }
    out.push(sent.frame);
}

/// Sets the ECN field of the outermost IP header.
fn outer_ecn(context: &Context, state: &mut State, frame: &mut OutgoingFrame, ecn: u8) {
    let parsed = super::parse(&frame.octets, &context.profile);
    let spans = parsed.spans().iter();
    let mut spans =
        spans.filter(|span| [fcn_wire::Layer::Ipv4, fcn_wire::Layer::Ipv6].contains(&span.layer));
    if let Some(start) = spans.next().map(|span| span.start) {
        let before = frame.octets.get(start..start + 2).map(<[u8]>::to_vec);
        ip::set_traffic_class(after(&mut frame.octets, start), ecn, 3);
        state.changed += u64::from(frame.octets.get(start..start + 2) != before.as_deref());
    }
}

/// Overwrites the data of the last node in the trace of a packet.
fn node_data_ones(context: &Context, state: &mut State, frame: &mut OutgoingFrame) {
    let parsed = super::parse(&frame.octets, &context.profile);
    let place = parsed.ioam_trace().and_then(|(at, trace)| {
        let header = fcn_wire::ioam::TRACE_HEADER_LEN;
        let free = trace.free_len().ok()?;
        let len = usize::from(trace.node_len()) * 4;
        (header + free + len <= trace.bytes().len())
            .then_some(at + header + free..at + header + free + len)
    });
    if let Some(data) = place.and_then(|place| frame.octets.get_mut(place)) {
        data.fill(0xFF);
        state.changed += 1;
    }
}

/// Returns the Fast CNP with option 1 instead of option 2, if it is one.
fn with_option_1(context: &Context, bytes: &[u8]) -> Option<Vec<u8>> {
    let frame = super::parse(bytes, &context.profile);
    let (Message::FastCnp(message), Some(ip)) = (frame.message(), frame.ip()) else {
        return None;
    };
    let option = message.parsed.ok().filter(|option| option.number() == 2)?;
    let option = FastCnpRepr::Option1 {
        original_destination: option.original_destination(),
    };
    let carrier = Carrier::new(ip.source, ip.destination);
    let cnp = CnpRepr::parse(&message.cnp?);
    let mut packet = [0; OutgoingNotification::MAX_LEN];
    let len = emit::fast_cnp(&carrier, &option, &cnp, &context.profile, &mut packet).ok()?;
    Some([bytes.get(..ip.start)?, packet.get(..len)?].concat())
}

/// Multiplies a notification: one about each of the device's flows.
fn slows_all(
    context: &Context,
    _: &mut State,
    received: &Received<'_>,
    _: &mut Vec<OutgoingFrame>,
) -> Vec<(Ps, Vec<u8>)> {
    let Some(at) = Layout::of(received.frame).and_then(|layout| layout.bth) else {
        return same(received);
    };
    let about = |qp: &Qp| {
        let mut bytes = received.bytes.to_vec();
        put(&mut bytes, at + DEST_QP, &qp.get().to_be_bytes()[1..]);
        super::edit::repair(&mut bytes, &context.profile);
        (Ps(0), bytes)
    };
    let flows = context.flows.iter();
    match received.frame.message() {
        Message::Cnp(_) => flows.map(|(_, qp, _)| about(qp)).collect(),
        Message::FastCnp(message) if matches!(message.parsed, Ok(FastCnpRepr::Option1 { .. })) => {
            flows.map(|(.., qp)| about(qp)).collect()
        }
        _ => same(received),
    }
}
