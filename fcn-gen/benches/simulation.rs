//! Packets per second that the simulator plays and writes on one core, and a check that its memory
//! stays constant.
//!
//! `cargo bench -p fcn-gen`. Prints figures without a verdict, since machines differ. The baseline
//! is the simulation without output.

use fcn_gen::scenario::model::Simulation;
use fcn_gen::scenario::{self, Play, Source};
use fcn_gen::sim::{Captured, Sink, play};
use fcn_link::capture_file::{CaptureWriter, Interface, Options};
use fcn_wire::LinkType;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// Rounds of each measurement, alternating.
const ROUNDS: usize = 5;

/// Writes packets, and counts them.
struct File {
    writer: CaptureWriter<'static>,
    packets: u64,
}

impl Sink for File {
    fn take(&mut self, packet: Captured<'_>) -> Result<(), Box<dyn Error>> {
        self.packets += 1;
        let interface = packet.vantage_point as u32;
        self.writer
            .packet_with(interface, packet.at, packet.len, packet.wire_len, |out| {
                (packet.fill)(out);
            })?;
        Ok(())
    }
}

/// A measured configuration.
struct Way<'a> {
    name: &'static str,
    /// Octets kept of a packet, and the output file; `None` if nothing is written.
    write: Option<(u32, &'a Path)>,
    seconds: Vec<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` requests a list of tests: there are none.
    if std::env::args().any(|argument| argument == "--list") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("incast.pcapng");
    let text = include_str!("incast.toml");
    let one_switch = load(&one_switch_source(text), &[])?;
    memory(&one_switch)?;
    measure(
        "incast, 1,000 flows of 100 hosts, one switch, captured at the receiver's port",
        &one_switch,
        &file,
    )?;
    let span = load(&one_switch_source(text), &[r#"vantage=["s1:*"]"#])?;
    measure(
        "the same, captured at every port of the switch",
        &span,
        &file,
    )?;
    let sets = [
        "senders=1000",
        "rate=100G",
        "defaults.link.rate=400G",
        "mtu=1024",
        "mechanism=cnp",
        "duration=20ms",
    ];
    let built_in = load(&Source::Builtin("incast".to_owned()), &sets)?;
    measure(
        "built-in incast, 1,000 senders over leaf, spine and leaf",
        &built_in,
        &file,
    )
}

fn one_switch_source(text: &str) -> Source {
    Source::Text {
        name: "incast.toml".to_owned(),
        text: text.to_owned(),
    }
}

fn load(source: &Source, sets: &[&str]) -> Result<Box<Simulation>, Box<dyn Error>> {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    match scenario::load(source, &sets)?.play {
        Play::Simulation(simulation) => Ok(simulation),
        Play::Gallery(_) | Play::Stress(_) => Err("only simulations are simulated".into()),
    }
}

fn measure(title: &str, simulation: &Simulation, file: &Path) -> Result<(), Box<dyn Error>> {
    let null = Path::new("/dev/null");
    let mut ways = [
        ("simulation alone", None),
        (
            "and pcapng, first 128 octets, to /dev/null",
            Some((128, null)),
        ),
        ("and pcapng, first 128 octets, to a file", Some((128, file))),
        ("and pcapng, whole packets, to /dev/null", Some((0, null))),
        ("and pcapng, whole packets, to a file", Some((0, file))),
    ]
    .map(|(name, write)| Way {
        name,
        write,
        seconds: Vec::new(),
    });
    let mut captured = 0;
    let mut on_links = 0;
    for _ in 0..ROUNDS {
        for way in &mut ways {
            let began = Instant::now();
            let (packets, links) = run(simulation, way.write)?;
            way.seconds.push(began.elapsed().as_secs_f64());
            captured = captured.max(packets);
            on_links = links;
        }
    }
    println!(
        "{title}: {captured} packets captured, {on_links} put on links; {ROUNDS} rounds in turn"
    );
    let mut alone = 0.0;
    for way in &mut ways {
        way.seconds.sort_by(f64::total_cmp);
        let (best, median) = (way.seconds[0], way.seconds[ROUNDS / 2]);
        if way.write.is_none() {
            alone = median;
        }
        let rate = |seconds: f64| captured as f64 / seconds / 1e6;
        println!(
            "  {:<45} {:>5.2} million captured packets/s (best {:.2}), {:>5.0} ns each, {:>5.2} million on links/s, {:.2} of the first",
            way.name,
            rate(median),
            rate(best),
            median * 1e9 / captured as f64,
            on_links as f64 / median / 1e6,
            median / alone,
        );
    }
    Ok(())
}

/// Returns the number of packets captured, and of packets put on links.
fn run(simulation: &Simulation, write: Option<(u32, &Path)>) -> Result<(u64, u64), Box<dyn Error>> {
    let Some((snap_len, path)) = write else {
        let outcome = play(simulation, "bench", None, &mut |_| true)?;
        return Ok((0, outcome.metrics.packets));
    };
    let mut simulation = simulation.clone();
    simulation.snap_len = snap_len;
    let interfaces: Vec<_> = simulation
        .vantage_points
        .iter()
        .map(|_| Interface {
            name: "",
            description: "",
            link: LinkType::Ethernet,
            snap_len,
        })
        .collect();
    let mut file = File {
        writer: CaptureWriter::create(path, &Options::default(), &interfaces)?,
        packets: 0,
    };
    let outcome = play(&simulation, "bench", Some(&mut file), &mut |_| true)?;
    file.writer.finish()?;
    Ok((file.packets, outcome.metrics.packets))
}

/// Prints the peak memory after a simulation, and after one ten times as long.
fn memory(simulation: &Simulation) -> Result<(), Box<dyn Error>> {
    let null = Path::new("/dev/null");
    run(simulation, Some((128, null)))?;
    let Some(before) = peak() else {
        println!("memory: SKIPPED, /proc/self/status tells no VmHWM here");
        return Ok(());
    };
    let mut long = simulation.clone();
    long.duration.0 *= 10;
    let (packets, _) = run(&long, Some((128, null)))?;
    let after = peak().unwrap_or(0);
    println!(
        "memory: at most {before} kB before, {after} kB after a simulation ten times as long ({packets} packets)"
    );
    Ok(())
}

fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
