//! Cost of building one frame from a template: fields and ICRC patched, compared with recomputing
//! the ICRC and with a plain copy of the frame. Reports medians of rounds that alternate between
//! the variants, so that a disturbance affects all of them.

use fcn_wire::bth::BthRepr;
use fcn_wire::cnp::CnpRepr;
use fcn_wire::compose::{OptionPart, Part, UdpChecksum, packet};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::{self, Policy, Reading};
use fcn_wire::template::{Change, Field, Template};
use fcn_wire::{Frame, LinkType, Opcode, Profile, Qp};
use std::hint::black_box;
use std::net::Ipv6Addr;
use std::time::Instant;

const ROUNDS: usize = 15;
const FRAMES_A_ROUND: u32 = 50_000;
const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
/// Octets of a data frame around its payload: Ethernet, IPv6, UDP, BTH, ICRC.
const DATA_OVERHEAD: usize = 14 + 40 + 8 + 12 + 4;

fn headers(source: Ipv6Addr, destination: Ipv6Addr) -> [Part<'static>; 2] {
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
    [ethernet, ipv6]
}

const UDP: Part<'_> = Part::Udp {
    source: 0xC000,
    destination: 4791,
    checksum: UdpChecksum::Zero,
};
const ICRC: Part<'_> = Part::Icrc(Policy::Compute(Reading::Covered));

fn fast_cnp() -> Vec<u8> {
    let [ethernet, ipv6] = headers(SWITCH, SENDER);
    let option = FastCnpRepr::Option1 {
        original_destination: RECEIVER,
    };
    let options = [OptionPart::FastCnp(option)];
    let cnp = Part::Cnp(CnpRepr::new(Qp::truncate(0x12)));
    let options = Part::DestinationOptions(&options);
    build(&[ethernet, ipv6, options, UDP, cnp, ICRC])
}

fn data(frame_len: usize) -> Vec<u8> {
    let payload: Vec<u8> = (0..frame_len - DATA_OVERHEAD).map(|i| i as u8).collect();
    let [ethernet, ipv6] = headers(SENDER, RECEIVER);
    let bth = Part::Bth(BthRepr::new(Opcode::RC_WRITE_MIDDLE, Qp::truncate(0x12), 0));
    build(&[ethernet, ipv6, UDP, bth, Part::Bytes(&payload), ICRC])
}

fn build(parts: &[Part<'_>]) -> Vec<u8> {
    packet(parts, &Profile::DEFAULT).expect("the benchmark's frames can be built")
}

/// A variant of building the frame of a given number.
struct Way<'a> {
    name: &'static str,
    frame: Box<dyn FnMut(u32) + 'a>,
    rounds: Vec<f64>,
}

fn way<'a>(name: &'static str, mut frame: impl FnMut(u32) + 'a) -> Way<'a> {
    // The loop is inside the closure that is called through a pointer, so that frames do not incur
    // this call.
    let frame = Box::new(move |first| (first..first + FRAMES_A_ROUND).for_each(&mut frame));
    Way {
        name,
        frame,
        rounds: Vec::new(),
    }
}

/// Runs the variants in turn; returns the median of each in nanoseconds per frame.
fn medians(ways: &mut [Way<'_>]) -> Vec<f64> {
    for round in 0..=ROUNDS as u32 {
        for way in &mut *ways {
            let start = Instant::now();
            (way.frame)(round * FRAMES_A_ROUND);
            let taken = start.elapsed().as_secs_f64() * 1e9 / f64::from(FRAMES_A_ROUND);
            // The first round warms up.
            if round > 0 {
                way.rounds.push(taken);
            }
        }
    }
    let median = |way: &mut Way<'_>| {
        way.rounds.sort_by(f64::total_cmp);
        way.rounds[way.rounds.len() / 2]
    };
    ways.iter_mut().map(median).collect()
}

/// Returns pseudo-random numbers at almost no cost, so that every table entry is visited.
fn scatter(number: u32) -> u32 {
    number.wrapping_mul(0x9E37_79B1)
}

/// Measures one frame, whose `field` of three octets is at `at`; returns the median of patching in
/// place.
fn measure(name: &str, bytes: &[u8], field: Field, change: impl Fn(u32) -> Change + Copy) -> f64 {
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT);
    let datagram = frame.datagram().expect("a RoCEv2 frame");
    let (ip, udp) = (datagram.ip.start, datagram.start);
    let at = datagram.payload_at() + if field == Field::Psn { 9 } else { 5 };
    let template = Template::new(
        bytes.to_vec(),
        LinkType::Ethernet,
        &Profile::DEFAULT,
        &[field],
    );
    let template = template.expect("a template");
    let mut in_place = template.clone();
    let mut set_first = template.clone();
    let mut out = [(); 4].map(|()| bytes.to_vec());
    let [stamped, filled, computed, copied] = &mut out;
    let mut ways = [
        way("patched in place", |n| {
            in_place.set(change(scatter(n))).expect("prepared");
            black_box(in_place.bytes());
        }),
        way("copied and patched", |n| {
            stamped.copy_from_slice(template.bytes());
            let mut edit = template.edit(stamped).expect("room");
            edit.set(change(scatter(n))).expect("prepared");
            drop(edit);
            black_box(&stamped);
        }),
        way("patched and copied", |n| {
            set_first.set(change(scatter(n))).expect("prepared");
            filled.copy_from_slice(set_first.bytes());
            black_box(&filled);
        }),
        way("ICRC computed anew", |n| {
            computed[at..at + 3].copy_from_slice(&scatter(n).to_be_bytes()[1..]);
            icrc::fill(
                &mut computed[ip..],
                udp - ip,
                Policy::Compute(Reading::Covered),
            );
            black_box(&computed);
        }),
        way("plain copy", |_| {
            copied.copy_from_slice(black_box(bytes));
            black_box(&copied);
        }),
    ];
    let figures = medians(&mut ways);
    println!("{name}, {} octets, {field:?} changes:", bytes.len());
    for (way, figure) in ways.iter().zip(&figures) {
        println!(
            "  {:<20} {figure:>7.1} ns a frame, {:>6.2} of patched in place",
            way.name,
            figure / figures[0]
        );
    }
    figures[0]
}

/// Measures a Fast CNP for another flow: sender, receiver and QP change.
fn measure_whole_fast_cnp() {
    let fields = [
        Field::DestQp,
        Field::DestinationAddress,
        Field::FastCnpOriginalDestination,
    ];
    let template = Template::new(fast_cnp(), LinkType::Ethernet, &Profile::DEFAULT, &fields);
    let mut template = template.expect("a template");
    let mut ways = [way("patched in place", |n| {
        let host = u128::from(scatter(n) & 0xFFFF);
        let at = |net: Ipv6Addr| Ipv6Addr::from(u128::from(net) & !0xFFFF | host);
        for change in [
            Change::DestQp(Qp::truncate(scatter(n))),
            Change::DestinationAddress(at(SENDER).into()),
            Change::FastCnpOriginalDestination(at(RECEIVER)),
        ] {
            template.set(change).expect("prepared");
        }
        black_box(template.bytes());
    })];
    let figures = medians(&mut ways);
    println!("Fast CNP, QP and both addresses change:");
    println!("  {:<20} {:>7.1} ns a frame", ways[0].name, figures[0]);
}

fn main() {
    let qp = |n| Change::DestQp(Qp::truncate(n));
    let cnp = measure("Fast CNP", &fast_cnp(), Field::DestQp, qp);
    for len in [1086, 4170] {
        let patched = measure("Data frame", &data(len), Field::Psn, Change::Psn);
        println!(
            "  patching takes {:.2} of the Fast CNP's time",
            patched / cnp
        );
    }
    measure_whole_fast_cnp();
}
