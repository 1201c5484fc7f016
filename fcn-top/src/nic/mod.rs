//! Counters of this host's RDMA devices, compared with captured packets: `known.rs` has the
//! meanings of counters, `read.rs` reads them and the queue pairs, `command.rs` shows them without
//! packets. This module computes their growth, without I/O.

pub mod command;
pub mod known;
pub mod read;
#[cfg(test)]
mod tests;

use crate::monitor::{LocalTraffic, Monitor};
use crate::record::{CounterRecord, LocalQpRecord};
use crate::tables::Nics;
use fcn_link::rdma::{CounterSet, Port, QueuePair};
use fcn_tool::quantity::grouped;
use known::{Quantity, quantity, rdma_driver};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Maximum number of QPs listed for a set of counters.
const NAMED: usize = 16;
/// Maximum number of vanished counters kept.
const VANISHED: usize = 1_000;

/// Data read at one moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Ports and their counters.
    pub ports: Vec<(Port, Vec<(String, u64)>)>,
    /// Counters that are bound to queue pairs, or optional.
    pub sets: Vec<CounterSet>,
    /// Queue pairs.
    pub queue_pairs: Vec<QueuePair>,
    /// Names of processes and their containers, by process ID.
    pub processes: HashMap<u32, Process>,
    /// Reason for missing data.
    pub missing: Option<String>,
    /// True if interfaces are not named, because their names may contain addresses; then nothing is
    /// compared with captured packets.
    pub private: bool,
}

/// A process, as far as known.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Process name.
    pub name: Option<Arc<str>>,
    /// Its container.
    pub container: Option<Arc<str>>,
}

/// Key of a counter: device, port, set, and name. The empty name stands for the packets captured at
/// the port.
type Key = (String, u32, Option<u32>, String);

/// Values of a counter when it was first read, or when it went back.
#[derive(Clone, Copy, Debug)]
struct Base {
    value: u64,
    traffic: Option<LocalTraffic>,
    last: u64,
    /// True if it was read more than once.
    again: bool,
    resets: u64,
}

/// The first readings of counters.
#[derive(Debug, Default)]
pub struct Watch {
    bases: HashMap<Key, Base>,
    /// Counters of ports in the last result.
    last: Vec<CounterRecord>,
}

impl Watch {
    /// Processes a reading and returns the growth of the counters, compared with the packets
    /// captured by the monitor, if there is one.
    pub fn take(&mut self, reading: &Reading, monitor: Option<&mut Monitor>) -> Nics {
        let mut nics = Nics {
            missing: reading.missing.as_deref().map(Arc::from),
            ..Nics::default()
        };
        let mut before = std::mem::take(&mut self.bases);
        let last = std::mem::take(&mut self.last);
        let listens = monitor.is_some() && !reading.private;
        let mut monitor = monitor;
        let mut watched = Vec::new();
        for (port, counters) in &reading.ports {
            let name = port.interface.as_deref();
            // If several devices share an interface, its packets cannot be assigned to one of them.
            let same = |other: &&(Port, _)| name.is_some() && other.0.interface.as_deref() == name;
            let shown = name.filter(|_| !reading.private);
            let shared = reading.ports.iter().filter(same).count() > 1;
            let seen = monitor.as_deref_mut().zip(name).filter(|_| !shared);
            let seen = seen.and_then(|(monitor, name)| monitor.watch_local(name, &port.addresses));
            if seen.is_some_and(|(_, is_new)| is_new) {
                before.retain(|key, _| (&key.0, key.1) != (&port.device, port.number));
            }
            let seen = seen.map(|(seen, _)| seen);
            watched.extend(seen.map(|_| port));
            let mut take = |set: Option<u32>, name: &str, value: u64| {
                let key = (port.device.clone(), port.number, set, name.to_owned());
                let base = before.remove(&key).map_or_else(
                    || {
                        let is_it = |old: &&CounterRecord| {
                            set.is_none() && is_of(old, port) && *old.counter == *name
                        };
                        // A counter that reappears is watched from the start, like one that goes
                        // back.
                        let gone = last.iter().find(|old| old.vanished && is_it(old));
                        Base::new(value, seen, gone.map_or(0, |old| old.resets + 1))
                    },
                    |base| base.then(value, seen),
                );
                self.bases.insert(key, base);
                base
            };
            let driver: Option<Arc<str>> =
                port.driver.as_deref().map(|name| rdma_driver(name).into());
            let record = |(name, value): &(String, u64), base: Base, qps: Option<Arc<str>>| {
                let quantity = quantity(driver.as_deref(), name);
                let seen = base
                    .seen_since(seen)
                    .filter(|_| qps.is_none())
                    .zip(quantity);
                CounterRecord {
                    device: port.device.as_str().into(),
                    port: port.number,
                    interface: shown.map(Arc::from),
                    driver: driver.clone(),
                    counter: name.as_str().into(),
                    quantity,
                    qps,
                    value: *value,
                    growth: base.again.then(|| value.saturating_sub(base.value)),
                    seen: seen.and_then(|(seen, quantity)| same_seen(quantity, &seen)),
                    resets: base.resets,
                    vanished: false,
                }
            };
            let first = nics.counters.len();
            let sets = reading.sets.iter().filter(|set| {
                *set.device == port.device && set.port.is_none_or(|number| number == port.number)
            });
            for counter in counters {
                let base = take(None, &counter.0, counter.1);
                nics.counters.push(record(counter, base, None));
            }
            for set in sets {
                let qps = set.id.map(|_| qps(&set.bound));
                for counter in &set.counters {
                    // Counters in sysfs were read with the others of the port.
                    if set.id.is_none() && counters.iter().any(|(name, _)| *name == counter.0) {
                        continue;
                    }
                    let base = take(set.id, &counter.0, counter.1);
                    nics.counters.push(record(counter, base, qps.clone()));
                }
            }
            let at_port = take(None, "", 0).seen_since(seen);
            let old = last.iter().filter(|old| is_of(old, port));
            let (_, new) = nics.counters.split_at(first);
            let is_here = |old: &CounterRecord| {
                new.iter()
                    .any(|new| new.qps.is_none() && new.counter == old.counter)
            };
            let gone: Vec<_> = old.filter(|old| !is_here(old)).map(vanished).collect();
            nics.counters.extend(gone);
            let (_, own) = nics.counters.split_at(first);
            let mut sentence = sentence(own, port, at_port, listens);
            if shared && listens {
                sentence += "; it has several RDMA devices, so nothing is compared";
            }
            let name = named(&port.device, port.number, shown);
            nics.sentences.push((name, sentence));
        }
        let is_gone =
            |old: &&CounterRecord| !reading.ports.iter().any(|(port, _)| is_of(old, port));
        for old in last.iter().filter(is_gone) {
            let interface = old.interface.as_deref();
            let name = named(&old.device, old.port, interface);
            if nics.sentences.last().is_none_or(|(last, _)| *last != name) {
                let sentence = "vanished; its last values are shown";
                nics.sentences.push((name, sentence.to_owned()));
            }
            nics.counters.push(vanished(old));
        }
        let mut kept = 0;
        nics.counters.retain(|counter| {
            kept += usize::from(counter.vanished);
            !counter.vanished || kept <= VANISHED
        });
        nics.counters.sort_by(|a, b| {
            let rank = |record: &CounterRecord| (record.quantity.is_none(), record.quantity);
            let whole = |record: &CounterRecord| record.qps.is_some();
            (&a.device, a.port, whole(a), rank(a)).cmp(&(&b.device, b.port, whole(b), rank(b)))
        });
        nics.local_qps = local_qps(reading, &watched, monitor.as_deref());
        // Sets bound to queue pairs disappear with them.
        let of_ports = nics.counters.iter().filter(|one| one.qps.is_none());
        self.last = of_ports.cloned().collect();
        nics
    }
}

fn is_of(counter: &CounterRecord, port: &Port) -> bool {
    (&*counter.device, counter.port) == (&*port.device, port.number)
}

fn vanished(counter: &CounterRecord) -> CounterRecord {
    CounterRecord {
        vanished: true,
        ..counter.clone()
    }
}

/// Describes a port.
fn named(device: &str, port: u32, interface: Option<&str>) -> String {
    let interface = interface.map(|name| format!(" ({name})"));
    format!("{device} port {port}{}", interface.unwrap_or_default())
}

/// Returns the queue pairs, each with the number of its notifications captured by the monitor, if
/// its port is watched.
fn local_qps(
    reading: &Reading,
    watched: &[&Port],
    monitor: Option<&Monitor>,
) -> Vec<LocalQpRecord> {
    let is_local = |address| watched.iter().any(|port| port.addresses.contains(&address));
    let told = monitor.map(|monitor| monitor.local_notifications(is_local));
    let told = told.unwrap_or_default();
    let of_pair = |pair: &QueuePair| {
        let ports = watched.iter().filter(|port| {
            *port.device == *pair.device && pair.port.is_none_or(|n| n == port.number)
        });
        let of_port = |port: &&Port| -> u64 {
            let addresses = port.addresses.iter();
            addresses
                .filter_map(|address| told.get(&(*address, pair.number)))
                .sum()
        };
        local_qp(
            pair,
            reading,
            ports.map(of_port).reduce(u64::saturating_add),
        )
    };
    reading.queue_pairs.iter().map(of_pair).collect()
}

impl Base {
    const fn new(value: u64, traffic: Option<LocalTraffic>, resets: u64) -> Self {
        Self {
            value,
            traffic,
            last: value,
            again: false,
            resets,
        }
    }

    /// Returns its state at the next reading.
    fn then(self, value: u64, traffic: Option<LocalTraffic>) -> Self {
        let went_back = value < self.last;
        // Comparison restarts when capturing on the interface starts or stops.
        if went_back || self.traffic.is_some() != traffic.is_some() {
            return Self::new(value, traffic, self.resets + u64::from(went_back));
        }
        Self {
            last: value,
            again: true,
            ..self
        }
    }

    fn seen_since(&self, now: Option<LocalTraffic>) -> Option<LocalTraffic> {
        let (now, then) = now.zip(self.traffic)?;
        self.again.then(|| LocalTraffic {
            cnps_to: now.cnps_to.saturating_sub(then.cnps_to),
            fast_cnps_to: now.fast_cnps_to.saturating_sub(then.fast_cnps_to),
            cnps_from: now.cnps_from.saturating_sub(then.cnps_from),
            marked_to: now.marked_to.saturating_sub(then.marked_to),
        })
    }
}

/// Returns the captured packets of the quantity that a NIC counts. CNPs captured on the way in are
/// those that it received, handled or ignored.
const fn same_seen(quantity: Quantity, traffic: &LocalTraffic) -> Option<u64> {
    match quantity {
        Quantity::CnpReceived | Quantity::CnpHandled | Quantity::CnpIgnored => {
            Some(traffic.cnps_to)
        }
        Quantity::CnpSent => Some(traffic.cnps_from),
        Quantity::EcnMarked => Some(traffic.marked_to),
        _ => None,
    }
}

/// Compares the CNPs captured on the way to a port, if captured, with its NIC's counters.
fn sentence(
    counters: &[CounterRecord],
    port: &Port,
    at_port: Option<LocalTraffic>,
    listens: bool,
) -> String {
    let words = [
        (Quantity::CnpReceived, "received"),
        (Quantity::CnpHandled, "handled"),
        (Quantity::CnpIgnored, "ignored"),
    ];
    let counted = words.iter().filter_map(|(quantity, word)| {
        let is_it = |one: &&CounterRecord| one.quantity == Some(*quantity) && one.qps.is_none();
        Some((counters.iter().find(is_it)?, *word))
    });
    let counted: Vec<(&CounterRecord, &str)> = counted.collect();
    let told = match counted.first() {
        Some((record, _)) => record.seen,
        None => at_port.map(|seen| seen.cnps_to),
    };
    let mut parts = Vec::new();
    match (told, &port.interface) {
        (Some(told), _) => {
            let fast = at_port.map_or(0, |seen| seen.fast_cnps_to);
            let mut text = format!("notified by {} CNPs", grouped(told));
            if fast > 0 {
                let _ = write!(text, " and {} Fast CNPs", grouped(fast));
            }
            parts.push(text);
        }
        (None, _) if !listens => {}
        (None, Some(_)) => parts.push("not captured".to_owned()),
        (None, None) => parts.push("it has no network interface in this namespace".to_owned()),
    }
    let all_grew = counted.iter().all(|(record, _)| record.growth.is_some());
    let known = counted.iter().map(|(record, word)| {
        let (count, since) = match record.growth {
            Some(growth) if all_grew => (growth, ""),
            _ if record.resets > 0 => (record.value, " since its last reset"),
            _ => (record.value, " since it was set up"),
        };
        format!("{word} {}{since}", grouped(count))
    });
    let known = known.collect::<Vec<_>>().join(", ");
    parts.push(match (counted.is_empty(), all_grew) {
        (true, _) => "no counter of CNPs was found".to_owned(),
        (_, true) => format!("the NIC {known}"),
        (_, false) => format!("the NIC has {known}"),
    });
    let has = |word: &str| counted.iter().any(|(_, other)| *other == word);
    if !counted.is_empty() && !has("handled") {
        parts.push("its driver does not report how many it handled".to_owned());
    }
    if told == Some(0) && counted.iter().any(|(record, _)| record.growth > Some(0)) {
        parts.push("the capture does not show what the NIC receives".to_owned());
    }
    let gone = counters.iter().filter(|one| one.vanished).count();
    if gone > 0 {
        let gone = fcn_tool::quantity::counted(gone as u64, "counter");
        parts.push(format!("{gone} vanished, with the last values"));
    }
    if all_grew && counted.iter().any(|(record, _)| record.resets > 0) {
        parts.push("all since the last reset".to_owned());
    }
    parts.join("; ")
}

/// Lists the QPs that counters are bound to.
fn qps(bound: &[u32]) -> Arc<str> {
    let named = bound.iter().take(NAMED).map(|qp| format!("{qp:#x}"));
    let mut text = named.collect::<Vec<_>>().join(" ");
    if bound.len() > NAMED {
        let _ = write!(text, " and {} more", bound.len() - NAMED);
    }
    if bound.is_empty() {
        text += "gone";
    }
    text.into()
}

fn local_qp(pair: &QueuePair, reading: &Reading, notified: Option<u64>) -> LocalQpRecord {
    let process = pair
        .pid
        .and_then(|pid| reading.processes.get(&pid))
        .cloned();
    let process = process.unwrap_or_default();
    let kernel = pair
        .kernel
        .as_deref()
        .map(|name| format!("[{name}]").into());
    LocalQpRecord {
        device: Arc::clone(&pair.device),
        port: pair.port,
        qp: pair.number,
        // `enum ib_qp_type` and `enum ib_qp_state` of the kernel.
        kind: pair.kind.map(|kind| match kind {
            0 => "smi",
            1 => "gsi",
            2 => "rc",
            3 => "uc",
            4 => "ud",
            8 => "raw_packet",
            9 => "xrc_ini",
            10 => "xrc_tgt",
            255 => "driver",
            _ => "other",
        }),
        state: pair.state.and_then(|state| {
            let states = ["reset", "init", "rtr", "rts", "sqd", "sqe", "err"];
            states.get(usize::from(state)).copied()
        }),
        remote_qp: pair.remote,
        pid: pair.pid,
        process: process.name.or(kernel),
        container: process.container,
        notified,
    }
}
