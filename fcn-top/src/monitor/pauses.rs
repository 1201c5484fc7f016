//! Pauses by Ethernet flow control, the receivers that ask for fewer packets by CNPs instead, and
//! packets that switches have trimmed: records of what [`fcn_observe`] measures.

use crate::record::{PauseRecord, ReceiverRecord, TrimmedRecord};
use fcn_observe::pauses::{PauseTable, STORM};
use fcn_observe::receivers::Receivers;
use fcn_observe::trimmed::TrimmedTable;
use std::cmp::Reverse;
use std::sync::Arc;

/// Maximum number of receivers listed.
const LISTED: usize = 1000;

/// Returns the pauses up to `now`, of a capture that lasts for `span` ns, longest first. Addresses
/// are replaced by numbers if `hides` is true; `name` returns the name of an interface.
pub fn pauses(
    table: &PauseTable,
    (now, span): (u64, u64),
    hides: bool,
    name: impl Fn(u32) -> Option<Arc<str>>,
) -> Vec<PauseRecord> {
    let mut records: Vec<_> = table
        .iter()
        .map(|(pauser, pauses)| {
            let (paused, longest) = (pauses.paused(now), pauses.longest(now));
            PauseRecord {
                interface: name(pauser.point.interface()),
                mac: mac(pauser.mac).into(),
                class: pauser.scope.class(),
                frames: pauses.frames,
                quanta: pauses.quanta,
                paused,
                share: (span > 0).then(|| (paused as f64 / span as f64).min(1.0)),
                episodes: pauses.episodes,
                resumed: pauses.resumed,
                timed_out: pauses.timed_out(now),
                longest,
                storm: longest >= STORM,
                first_seen: pauses.first,
                last_seen: pauses.last,
            }
        })
        .collect();
    records.sort_by(|a, b| {
        let key = |record: &PauseRecord| (Reverse(record.paused), record.class);
        (key(a), &a.interface, &a.mac).cmp(&(key(b), &b.interface, &b.mac))
    });
    if hides {
        hide_addresses(&mut records);
    }
    records
}

/// Replaces MAC addresses by numbers.
fn hide_addresses(records: &mut [PauseRecord]) {
    let mut known: Vec<Arc<str>> = Vec::new();
    for record in records {
        let number = known.iter().position(|mac| *mac == record.mac);
        let number = number.unwrap_or_else(|| {
            known.push(Arc::clone(&record.mac));
            known.len() - 1
        });
        record.mac = format!("#{number}").into();
    }
}

fn mac([a, b, c, d, e, f]: [u8; 6]) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

/// Returns the trimmed packets by flow and capture point, most first; `name` returns the name of an
/// interface.
pub fn trimmed(table: &TrimmedTable, name: impl Fn(u32) -> Option<Arc<str>>) -> Vec<TrimmedRecord> {
    let mut records: Vec<_> = table
        .iter()
        .map(|(flow, interface, trimmed)| TrimmedRecord {
            interface: name(interface),
            sender: flow.sender,
            receiver: flow.receiver,
            receiver_qp: flow.receiver_qp.get(),
            to_receiver: trimmed.to_receiver,
            to_source: trimmed.to_source,
            unknown: trimmed.unknown,
            first_seen: trimmed.first,
            last_seen: trimmed.last,
        })
        .collect();
    records.sort_by(|a, b| {
        let key = |record: &TrimmedRecord| {
            let all = record.to_receiver + record.to_source + record.unknown;
            let flow = (record.sender, record.receiver, record.receiver_qp);
            (Reverse(all), flow)
        };
        (key(a), &a.interface).cmp(&(key(b), &b.interface))
    });
    records.truncate(LISTED);
    records
}

/// Returns the receivers, most marks first.
pub fn receivers(receivers: &Receivers) -> Vec<ReceiverRecord> {
    let mut records: Vec<_> = receivers
        .iter()
        .map(|(address, receiver)| {
            let [delay_p50, delay_p99] = receiver.delays.percentiles([50, 99]);
            let least = receiver.least_gaps();
            ReceiverRecord {
                receiver: *address,
                marked: receiver.marked,
                expected: receiver.expected,
                cnps: receiver.cnps,
                unprompted: receiver.unprompted(),
                answered: receiver.share_answered(),
                silent: receiver.is_silent(),
                captured: receiver.is_captured,
                delay_p50,
                delay_p99,
                paced_by: receiver.pacing(),
                gap_qp: least.qp,
                gap_addresses: least.addresses,
                gap_port: least.port,
                with_naks: receiver.with_naks,
            }
        })
        .collect();
    records.sort_by_key(|record| {
        (
            Reverse(record.marked),
            Reverse(record.cnps),
            record.receiver,
        )
    });
    records.truncate(LISTED);
    records
}
