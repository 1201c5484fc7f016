//! Cost of a notification in the monitor: finding its layers, observing the packet, and both
//! including reading it from a cached file; alternating CNPs and Fast CNPs, in random order over
//! 1,000, 10,000 and 100,000 QPs. Also the memory taken by 100,000 QPs with a data flow each.
//! Medians of rounds, in processor time, to reduce the influence of other processes; every round
//! begins with an empty monitor. Numbers as arguments replace those numbers of QPs.
#![allow(missing_docs, reason = "a benchmark has no users")]

use fcn_link::capture_file::{CaptureReader, CaptureWriter, Interface, Options};
use fcn_top::monitor::{Monitor, Settings};
use fcn_top::packet::Packet;
use fcn_wire::bth::BthRepr;
use fcn_wire::cnp::CnpRepr;
use fcn_wire::compose::{OptionPart, Part, UdpChecksum, packet};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::{Policy, Reading};
use fcn_wire::template::{Change, Field, Template};
use fcn_wire::{Frame, LinkType, Opcode, Profile, Qp};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::net::Ipv6Addr;
use std::path::Path;

const ROUNDS: usize = 5;
const PACKETS: u64 = 1_000_000;
const START: u64 = 1_767_225_600_000_000_000;
/// Nanoseconds between packets.
const APART: u64 = 500;
const MOST_QPS: u32 = 100_000;
/// Memory limit for the rows and data flows of that many QPs.
const MEMORY_LIMIT: f64 = 560.0;

const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
const ICRC: Part<'_> = Part::Icrc(Policy::Compute(Reading::Covered));

fn template(source: Ipv6Addr, destination: Ipv6Addr, inner: &[Part<'_>]) -> Template {
    let ethernet = Part::Ethernet {
        source: [2, 0, 0, 0, 0, 1],
        destination: [2, 0, 0, 0, 0, 2],
    };
    let ipv6 = Part::Ipv6 {
        source,
        destination,
        traffic_class: 2,
        flow_label: 5,
        hop_limit: 64,
    };
    let parts = [&[ethernet, ipv6], inner, &[ICRC]].concat();
    let frame = packet(&parts, &Profile::DEFAULT).expect("the benchmark's frames can be built");
    let fields = [Field::DestQp];
    Template::new(frame, LinkType::Ethernet, &Profile::DEFAULT, &fields).expect("a template")
}

const UDP: Part<'_> = Part::Udp {
    source: 0xC000,
    destination: 4791,
    checksum: UdpChecksum::Zero,
};

fn templates() -> [Template; 2] {
    let cnp = Part::Cnp(CnpRepr::new(Qp::truncate(1)));
    let option = [OptionPart::FastCnp(FastCnpRepr::Option1 {
        original_destination: RECEIVER,
    })];
    let options = Part::DestinationOptions(&option);
    [
        template(RECEIVER, SENDER, &[UDP, cnp]),
        template(SWITCH, SENDER, &[options, UDP, cnp]),
    ]
}

/// Returns packet `n` for that many QPs: Fast CNPs for odd ones, CNPs for even ones.
fn set(templates: &mut [Template; 2], n: u64, qps: u32) -> &[u8] {
    let scattered = (n as u32).wrapping_mul(0x9E37_79B1) ^ (n as u32 >> 7);
    let qp = ((u64::from(scattered) * u64::from(qps)) >> 32) as u32;
    let template = &mut templates[(qp % 2) as usize];
    let qp = Change::DestQp(Qp::truncate(qp + 16));
    template.set(qp).expect("prepared");
    template.bytes()
}

fn write(path: &Path, qps: u32) {
    let interface = Interface {
        name: "eth0",
        description: "",
        link: LinkType::Ethernet,
        snap_len: 0,
    };
    let mut writer =
        CaptureWriter::create(path, &Options::default(), &[interface]).expect("create");
    let mut templates = templates();
    for n in 0..PACKETS {
        let frame = set(&mut templates, n, qps);
        let len = frame.len() as u32;
        (writer.packet(0, START + n * APART, frame, len)).expect("write");
    }
    writer.finish().expect("finish");
}

/// Reads the file and passes each packet to `act`.
fn read(path: &Path, mut act: impl FnMut(&Packet<'_>)) {
    let mut reader = CaptureReader::open(path).expect("open");
    let mut number = 0;
    while let Some(packet) = reader.next().expect("read") {
        number += 1;
        act(&Packet {
            at: packet.at,
            bytes: packet.bytes,
            wire_len: packet.wire_len as usize,
            link: LinkType::Ethernet,
            interface: packet.interface,
            number,
        });
    }
}

/// Returns the median of several rounds, in seconds.
fn median(mut round: impl FnMut() -> f64) -> f64 {
    let mut taken: Vec<_> = (0..ROUNDS).map(|_| round()).collect();
    taken.sort_by(f64::total_cmp);
    taken[ROUNDS / 2]
}

/// Returns this thread's processor time in seconds, including the kernel's work for it.
fn worked() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn timed(act: impl FnOnce()) -> f64 {
    let start = worked();
    act();
    worked() - start
}

fn say(what: &str, seconds: f64) {
    let each = seconds * 1e9 / PACKETS as f64;
    let rate = PACKETS as f64 / seconds / 1e6;
    println!("  {what:<24} {each:6.1} ns a packet  {rate:6.2} million packets/s");
}

fn observed(monitor: &Monitor, rows: u64) {
    let totals = monitor.totals();
    assert_eq!(totals.notified(), PACKETS);
    assert_eq!(totals.rows, rows);
    assert_eq!(totals.findings, [0; 3]);
}

fn speed(path: &Path, qps: u32) {
    write(path, qps);
    let mut rows = 0;
    let mut arena = Vec::new();
    read(path, |packet| {
        arena.extend_from_slice(packet.bytes);
    });
    let mut seen = vec![false; qps as usize];
    let mut templates = templates();
    let frames: Vec<usize> = (0..PACKETS)
        .map(|n| set(&mut templates, n, qps).len())
        .collect();
    for n in 0..PACKETS {
        let scattered = (n as u32).wrapping_mul(0x9E37_79B1) ^ (n as u32 >> 7);
        let qp = ((u64::from(scattered) * u64::from(qps)) >> 32) as usize;
        rows += u64::from(!std::mem::replace(&mut seen[qp], true));
    }
    println!("{qps} QPs ({rows} of them notified):");
    let each = |act: &mut dyn FnMut(u64, &[u8])| {
        let mut rest = &arena[..];
        for (n, len) in (0..).zip(&frames) {
            let (frame, behind) = rest.split_at(*len);
            rest = behind;
            act(n, frame);
        }
    };
    say(
        "layers found",
        median(|| {
            timed(|| {
                each(&mut |_, bytes| {
                    let link = LinkType::Ethernet;
                    black_box(Frame::parse(bytes, bytes.len(), link, &Profile::DEFAULT));
                });
            })
        }),
    );
    for (what, verify_icrc) in [("observed, no ICRC check", false), ("observed", true)] {
        let settings = Settings {
            verify_icrc,
            ..Settings::default()
        };
        say(
            what,
            median(|| {
                let mut monitor = Monitor::new(settings.clone());
                let taken = timed(|| {
                    each(&mut |n, bytes| {
                        black_box(monitor.observe(&Packet {
                            at: START + n * APART,
                            bytes,
                            wire_len: bytes.len(),
                            link: LinkType::Ethernet,
                            interface: 0,
                            number: n + 1,
                        }));
                    });
                });
                observed(&monitor, rows);
                taken
            }),
        );
    }
    say(
        "read",
        median(|| timed(|| read(path, |packet| _ = black_box(packet)))),
    );
    say(
        "read and observed",
        median(|| {
            let mut monitor = Monitor::new(Settings::default());
            let taken = timed(|| read(path, |packet| _ = monitor.observe(packet)));
            observed(&monitor, rows);
            taken
        }),
    );
}

/// Returns the resident memory in MB; `None` if the system does not report it.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// Every QP gets notifications and sends data: 20 packets each, in turn.
fn memory() {
    let payload = [7; 64];
    let bth = BthRepr::new(Opcode::RC_WRITE_MIDDLE, Qp::truncate(1), 0);
    let data = [UDP, Part::Bth(bth), Part::Bytes(&payload)];
    let mut data = template(SENDER, RECEIVER, &data);
    let [_, mut fast_cnp] = templates();
    let mut monitor = Monitor::new(Settings::default());
    let before = resident();
    for round in 0..20u64 {
        for qp in 0..MOST_QPS {
            let n = round * u64::from(MOST_QPS) + u64::from(qp);
            for (template, part) in [(&mut data, 0), (&mut fast_cnp, 1)] {
                let change = Change::DestQp(Qp::truncate(qp + 16));
                template.set(change).expect("prepared");
                // Gaps of many lengths, to fill the histograms.
                let at = START + (n << (round / 2)) * 1_000 + part;
                let bytes = template.bytes();
                monitor.observe(&Packet {
                    at,
                    bytes,
                    wire_len: bytes.len(),
                    link: LinkType::Ethernet,
                    interface: 0,
                    number: 2 * n + part + 1,
                });
            }
        }
    }
    let totals = monitor.totals();
    let wanted = (u64::from(MOST_QPS), u64::from(MOST_QPS));
    assert_eq!((totals.rows, totals.flows), wanted);
    match (before, resident()) {
        (Some(before), Some(after)) => {
            let rows = after - before;
            let verdict = if after <= MEMORY_LIMIT {
                "within"
            } else {
                "ABOVE"
            };
            println!(
                "{MOST_QPS} QPs with a data flow each: {after:.0} MB resident, {rows:.0} MB of it theirs; {verdict} the limit of {MEMORY_LIMIT:.0} MB"
            );
        }
        _ => println!("SKIPPED: the system does not tell how much memory is resident"),
    }
}

fn main() {
    let wanted: Vec<u32> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    if wanted.is_empty() {
        // Before anything else has allocated memory.
        memory();
    }
    let all = [1_000, 10_000, MOST_QPS];
    let wanted = if wanted.is_empty() { &all } else { &wanted[..] };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notifications.pcapng");
    for qps in wanted {
        speed(&path, *qps);
    }
}
