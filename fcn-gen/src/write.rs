//! Plays a scenario into a capture file with its ground truth: both are written, or neither.
//!
//! `pace.rs` decides when packets go into a pipe that is read in real time.

use crate::gallery::{self, EPOCH, Selection};
use crate::mirror::{Mirroring, Mirrors};
use crate::pace::{Pacer, Turn};
use crate::pending::Pending;
use crate::report::{REPORT_SCHEMA, REPORT_VERSION, Report};
use crate::scenario::model::Simulation;
use crate::scenario::{self, Play, Scenario, Source};
use crate::sim::{self, Captured, Sink};
use crate::truth::{self, Truth};
use crate::units::Ps;
use fcn_link::capture_file::{CaptureWriter, Interface, Options};
use fcn_link::temporary::folder_of;
use fcn_observe::time::nanos;
use fcn_tool::failure::{Failure, Result};
use fcn_wire::LinkType;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Parameters of a write.
#[derive(Clone, Debug)]
pub struct Request {
    /// The scenario.
    pub source: Source,
    /// Changed parameters: `key=value`.
    pub sets: Vec<String>,
    /// Seed that replaces the scenario's.
    pub seed: Option<u64>,
    /// Octets kept of each packet, instead of the scenario's setting; 0 keeps all.
    pub snap_len: Option<u32>,
    /// File of the ground truth.
    pub truth: Option<PathBuf>,
    /// Mirroring applied to frames, if any.
    pub mirror: Option<Mirroring>,
}

/// Destination of the capture.
pub enum Output<'a> {
    /// A file, which appears completely or not at all.
    File(PathBuf),
    /// A writer: standard output.
    Writer(&'a mut (dyn Write + Send)),
    /// A writer that gets each packet when it is due.
    Paced(&'a mut (dyn Write + Send), Pacer<'a>),
}

/// Callback for progress: elapsed and total virtual time.
pub type Progress<'a> = &'a dyn Fn(Ps, Ps);

/// Plays `request` into `output`; ends with an error once `stop` is set.
///
/// # Errors
/// The scenario cannot be loaded or fails, the capture or the truth cannot be written, no packet
/// was captured, or it was stopped. Neither file remains then.
pub fn write(
    request: &Request,
    output: Output<'_>,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<Report> {
    let began = Instant::now();
    let scenario = load(request)?;
    if matches!(scenario.play, Play::Stress(_)) {
        return Err(Failure::usage("a stress scenario has no end")
            .and(&scenario.name)
            .and("set a number of packets: fcn-gen run NAME -o FILE --count N"));
    }
    let path = match &output {
        Output::File(path) => Some(path.clone()),
        Output::Writer(_) | Output::Paced(..) => None,
    };
    check_truth(request.truth.as_deref(), path.as_deref())?;
    // Created before the work, so that an unwritable truth file is reported before a long
    // simulation.
    let pending = request.truth.as_deref().map(Pending::create).transpose()?;
    let played = match &scenario.play {
        Play::Simulation(simulation) => {
            let mirrors = (request.mirror).map(|how| Mirrors::new(how, simulation.seed));
            play_simulation(&scenario, (simulation, mirrors), output, stop, progress)
        }
        Play::Gallery(gallery) => play_gallery(&scenario, gallery, request, output, stop),
        Play::Stress(_) => unreachable!("refused above"),
    };
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::interrupted("nothing was written"));
    }
    let (writer, truth) = played?;
    if truth.vantage_points.iter().all(|point| point.packets == 0) {
        return Err(Failure::failed("no packet was captured")
            .and(&scenario.name)
            .and("name a vantage point that packets pass, or play for longer"));
    }
    finish(writer, path.as_deref(), pending, &truth)?;
    Ok(report(
        request,
        &scenario,
        &truth,
        path.as_deref(),
        began.elapsed(),
    ))
}

/// Gives both files their final names; if the second rename fails, removes the first file.
fn finish(
    writer: CaptureWriter<'_>,
    path: Option<&Path>,
    pending: Option<Pending>,
    truth: &Truth,
) -> Result {
    let document = pending.as_ref().map(|_| truth.document()).transpose()?;
    writer.finish().map_err(capture_failure)?;
    let result = match (pending, document) {
        (Some(pending), Some(document)) => pending.finish(&document),
        _ => Ok(()),
    };
    if let (Err(_), Some(path)) = (&result, path)
        && path.is_file()
    {
        fs::remove_file(path).map_err(|error| Failure::io("remove", path, &error))?;
    }
    result
}

/// Loads the scenario with all changes of the request.
pub(crate) fn load(request: &Request) -> Result<Scenario> {
    let scenario = scenario::load(&request.source, &request.sets)?;
    if let Play::Gallery(_) = scenario.play {
        if request.seed.is_none() {
            return Ok(scenario);
        }
        return Err(Failure::usage("a gallery has no seed")
            .and(scenario.name)
            .and("omit --seed: nothing in a gallery is random"));
    }
    let changes = [
        request.seed.map(|seed| format!("seed={seed}")),
        request.snap_len.map(|octets| format!("snap_len={octets}")),
    ];
    let mut sets = request.sets.clone();
    sets.extend(changes.into_iter().flatten());
    Ok(scenario::load(&request.source, &sets)?)
}

/// Refuses a truth that would go to standard output, or into the capture's file.
pub(crate) fn check_truth(truth: Option<&Path>, capture: Option<&Path>) -> Result {
    let Some(truth) = truth else { return Ok(()) };
    no_stdout("--truth", truth)?;
    match capture {
        Some(capture) if same_file(capture, truth) => {
            Err(Failure::usage("capture and truth name the same file")
                .and(truth.display().to_string())
                .and("name two files"))
        }
        _ => Ok(()),
    }
}

/// Refuses `-` for an option that requires a file.
pub(crate) fn no_stdout(option: &str, path: &Path) -> Result {
    if path == Path::new("-") {
        return Err(Failure::usage(option).and("-").and("name a file"));
    }
    Ok(())
}

/// Returns true if two paths name the same file, which need not exist yet; devices may be used for
/// both.
fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        let folder = fs::canonicalize(folder_of(path)).ok();
        let named = || Some(folder?.join(path.file_name()?));
        fs::canonicalize(path).ok().or_else(named)
    };
    let (one, other) = (real(one), real(other));
    one.is_some() && one == other && one.is_none_or(|path| !path.exists() || path.is_file())
}

/// Opens the capture file's writer.
fn open<'w, 'i>(
    output: Output<'w>,
    comment: &str,
    interfaces: impl IntoIterator<Item = (&'i str, LinkType)>,
    snap_len: u32,
) -> Result<CaptureWriter<'w>> {
    let interfaces = interfaces.into_iter().map(|(name, link)| Interface {
        name,
        description: "",
        link,
        snap_len,
    });
    let interfaces: Vec<_> = interfaces.collect();
    let options = Options {
        comment,
        application: concat!("fcn-gen ", env!("CARGO_PKG_VERSION")),
    };
    match output {
        Output::File(path) => CaptureWriter::create(&path, &options, &interfaces),
        Output::Writer(writer) | Output::Paced(writer, _) => {
            CaptureWriter::to(writer, &options, &interfaces)
        }
    }
    .map_err(capture_failure)
}

fn capture_failure(error: fcn_link::capture_file::Error) -> Failure {
    if error.is_broken_pipe() {
        Failure::closed_pipe()
    } else {
        Failure::failed("cannot write the capture").and(error.to_string())
    }
}

/// Writes the packets captured by a simulation to the file.
struct FileSink<'a, 'w> {
    writer: &'a mut CaptureWriter<'w>,
    pacer: Option<Pacer<'w>>,
    /// The simulation's start as a time stamp.
    epoch: u64,
    /// Mirrors, and buffers for a frame and its copy.
    mirrors: Option<(Mirrors, [Vec<u8>; 2])>,
    stop: &'a AtomicBool,
}

impl FileSink<'_, '_> {
    /// Flushes the packets before, and waits until a packet of that time is due.
    fn wait(&mut self, at: u64) -> Result {
        let Some(pacer) = &mut self.pacer else {
            return Ok(());
        };
        let turn = pacer.before(at.saturating_sub(self.epoch));
        if turn != Turn::Now {
            self.writer.flush().map_err(capture_failure)?;
        }
        match turn {
            Turn::FlushAndWait(until) if !pacer.wait(until) => Err(Failure::closed_pipe()),
            _ => Ok(()),
        }
    }
}

impl Sink for FileSink<'_, '_> {
    fn take(
        &mut self,
        packet: Captured<'_>,
    ) -> core::result::Result<(), Box<dyn std::error::Error>> {
        if self.stop.load(Ordering::Relaxed) {
            return Err("interrupted".into());
        }
        let Captured {
            vantage_point,
            at,
            wire_len,
            len,
            fill,
        } = packet;
        let interface = u32::try_from(vantage_point)?;
        self.wait(at)?;
        if let Some((mirrors, [frame, copy])) = &mut self.mirrors {
            frame.resize(len, 0);
            fill(frame);
            let wire_len = mirrors.copy((interface, at), frame, wire_len, copy);
            if copy.is_empty() {
                return Ok(());
            }
            let result = self.writer.packet(interface, at, copy, wire_len);
            return result.map_err(|error| capture_failure(error).into());
        }
        self.writer
            .packet_with(interface, at, len, wire_len, fill)
            .map_err(|error| capture_failure(error).into())
    }
}

/// Writes the samples still pending in the mirrors.
fn write_rest(mirrors: Option<(Mirrors, [Vec<u8>; 2])>, writer: &mut CaptureWriter<'_>) -> Result {
    let Some((mut mirrors, [_, mut rest])) = mirrors else {
        return Ok(());
    };
    while let Some((interface, at)) = mirrors.rest(&mut rest) {
        writer
            .packet(interface, at, &rest, rest.len() as u32)
            .map_err(capture_failure)?;
    }
    if mirrors.has_sampled_nothing() {
        return Err(fcn_tool::sending::nothing_sampled());
    }
    Ok(())
}

fn play_simulation<'w>(
    scenario: &Scenario,
    (simulation, mirrors): (&Simulation, Option<Mirrors>),
    output: Output<'w>,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<(CaptureWriter<'w>, Truth)> {
    let names = simulation.vantage_names();
    let interfaces = names.iter().map(|name| (&**name, LinkType::Ethernet));
    let (output, pacer) = match output {
        Output::Paced(writer, pacer) => (Output::Writer(writer), Some(pacer)),
        output => (output, None),
    };
    // Datagrams with samples may be longer than the snap length of frames.
    let samples = mirrors.as_ref().is_some_and(Mirrors::samples);
    let snap_len = if samples { 0 } else { simulation.snap_len };
    let mut writer = open(output, &scenario.about, interfaces, snap_len)?;
    let mut sink = FileSink {
        writer: &mut writer,
        pacer,
        epoch: simulation.epoch,
        mirrors: mirrors.map(|mirrors| (mirrors, Default::default())),
        stop,
    };
    let played = sim::play(simulation, &scenario.name, Some(&mut sink), &mut |now| {
        progress(now, simulation.duration);
        !stop.load(Ordering::Relaxed)
    });
    let mirrors = sink.mirrors.take();
    match played {
        Ok(outcome) => {
            write_rest(mirrors, &mut writer)?;
            Ok((writer, outcome.truth))
        }
        Err(error) => Err(match error.downcast::<Failure>() {
            // An error of the sink itself.
            Ok(failure) => *failure,
            Err(error) => Failure::failed("the simulation failed")
                .and(&scenario.name)
                .and(error.to_string()),
        }),
    }
}

fn play_gallery<'w>(
    scenario: &Scenario,
    selection: &Selection,
    request: &Request,
    output: Output<'w>,
    stop: &AtomicBool,
) -> Result<(CaptureWriter<'w>, Truth)> {
    let mut capture = selection.play();
    let snap_len = request.snap_len.unwrap_or(0);
    if snap_len > 0 {
        for packet in &mut capture.packets {
            packet.bytes.truncate(snap_len as usize);
        }
    }
    let links = capture.links();
    let interfaces = (links.iter()).map(|link| (gallery::interface_name(*link), *link));
    let mut writer = open(output, capture.about, interfaces, snap_len)?;
    let mut mirrors = (request.mirror).map(|how| (Mirrors::new(how, 0), Default::default()));
    let mut copy = Vec::new();
    for packet in &capture.packets {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let at = EPOCH + packet.at;
        let interface = capture.interface_of(packet) as u32;
        let (mut bytes, mut wire_len) = (&packet.bytes, packet.wire_len as u32);
        if packet.link == LinkType::Ethernet
            && let Some((mirrors, _)) = &mut mirrors
        {
            wire_len = mirrors.copy((interface, at), bytes, wire_len, &mut copy);
            if copy.is_empty() {
                continue;
            }
            bytes = &copy;
        }
        writer
            .packet_commented(interface, at, bytes, wire_len, &packet.comment)
            .map_err(capture_failure)?;
    }
    write_rest(mirrors, &mut writer)?;
    let truth = truth::of_gallery(&scenario.name, &capture, &selection.profile);
    Ok((writer, truth))
}

fn report(
    request: &Request,
    scenario: &Scenario,
    truth: &Truth,
    path: Option<&Path>,
    took: Duration,
) -> Report {
    let interfaces = truth.vantage_points.clone();
    let mut notifications = BTreeMap::new();
    for entry in &truth.notifications {
        *notifications.entry(entry.kind.clone()).or_default() += entry.total;
    }
    let is_simulation = matches!(scenario.play, Play::Simulation(_));
    let packets = interfaces.iter().map(|interface| interface.packets).sum();
    Report {
        schema: REPORT_SCHEMA.to_owned(),
        version: REPORT_VERSION,
        scenario: scenario.name.clone(),
        mechanism: is_simulation.then(|| truth.mechanism.clone()),
        seed: is_simulation.then_some(truth.seed),
        file: path.map_or_else(|| "-".to_owned(), |path| path.display().to_string()),
        truth: request
            .truth
            .as_ref()
            .map(|path| path.display().to_string()),
        packets,
        octets: interfaces.iter().map(|interface| interface.octets).sum(),
        interfaces,
        notifications,
        simulated_ns: truth.duration_ns,
        took_ns: nanos(took),
        packets_per_second: packets as f64 / took.as_secs_f64().max(1e-9),
    }
}
