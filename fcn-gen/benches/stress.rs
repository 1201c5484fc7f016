//! Time to generate a frame of each kind, compared with copying a frame into the same slots.
//!
//! `cargo bench -p fcn-gen --bench stress`. Prints figures without a verdict, since machines
//! differ. Nothing is sent.

use fcn_gen::macs::Rewrite;
use fcn_gen::scenario::{self, Play, Source};
use fcn_gen::stress::{Kind, Prototypes, Stress, StressSource};
use fcn_link::sender::{Next, Source as _};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

/// Rounds of each measurement, alternating.
const ROUNDS: usize = 7;
/// Number of frames per round.
const FRAMES: usize = 1_000_000;
const SLOTS: usize = 1024;
const SLOT: usize = 2048;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` requests a list of tests: there are none.
    if std::env::args().any(|argument| argument == "--list") {
        return Ok(());
    }
    let rest = "10,000 flows, 1,000,000 QPs, 1,024 slots; median of 7 rounds, alternating";
    println!("{rest}\n");
    println!(
        "{:<14} {:>7} {:>12} {:>12} {:>7}",
        "kind", "octets", "fill, ns", "copy, ns", "ratio"
    );
    for kind in Kind::ALL {
        for payload in payloads(kind) {
            let mix = format!("stress.mix={{ {} = 1 }}", kind.id());
            measure(kind.id(), &stress(&[mix, format!("payload={payload}")])?)?;
        }
    }
    measure("stress-mix", &stress(&[])?)
}

/// Payload lengths: two where the cost must not depend on the payload.
const fn payloads(kind: Kind) -> &'static [u32] {
    match kind {
        Kind::Data | Kind::DataIpv4 | Kind::ProxyCn => &[64, 1024],
        _ => &[1024],
    }
}

fn stress(sets: &[String]) -> Result<Stress, Box<dyn Error>> {
    let scenario = scenario::load(&Source::Builtin("stress-mix".to_owned()), sets)?;
    match scenario.play {
        Play::Stress(stress) => Ok(*stress),
        _ => Err("no stress".into()),
    }
}

fn measure(name: &str, stress: &Stress) -> Result<(), Box<dyn Error>> {
    let prototypes = Prototypes::new(stress)?;
    let slots = stress.pattern.slots(SLOTS);
    let macs = Rewrite {
        source: Some([2; 6]),
        destination: Some([2; 6]),
    };
    let mut source = StressSource::new(stress, &prototypes, (0, 1), slots, macs)?;
    let mut memory = vec![0_u8; slots * SLOT];
    let len = prototypes.average(stress);
    let frame = vec![0x5A_u8; len];
    let (mut fill, mut copy) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let began = Instant::now();
        for n in 0..FRAMES {
            let slot = n % slots;
            if let Next::Frame { .. } = source.peek() {
                source.fill(slot, &mut memory[slot * SLOT..(slot + 1) * SLOT]);
            }
        }
        black_box(&mut memory);
        let filled = began.elapsed();
        let began = Instant::now();
        for n in 0..FRAMES {
            let at = n % slots * SLOT;
            memory[at..at + len].copy_from_slice(black_box(&frame));
        }
        black_box(&mut memory);
        let copied = began.elapsed();
        // The slots now have other content, unknown to the source, which does not affect the
        // figures. The first round is a warm-up.
        if round > 0 {
            fill.push(filled.as_secs_f64());
            copy.push(copied.as_secs_f64());
        }
    }
    let (fill, copy) = (median(fill), median(copy));
    println!(
        "{name:<14} {len:>7} {fill:>12.1} {copy:>12.1} {:>7.2}",
        fill / copy
    );
    Ok(())
}

/// Returns the median in nanoseconds per frame.
fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2] * 1e9 / FRAMES as f64
}
