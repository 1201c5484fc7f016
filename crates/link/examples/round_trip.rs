//! Sends the frames of a capture, one each millisecond, and spins until a frame comes back;
//! measures the time that takes. Late or missing answers are counted separately.
//!
//!     round_trip IF CAPTURE COUNT

use fcn_link::backend::BackendChoice;
use fcn_link::capture_file::CaptureReader;
use fcn_link::interface::Interface;
use fcn_link::port::{Options, Port};
use fcn_link::xdp::CopyMode;
use hdrhistogram::Histogram;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const GAP: Duration = Duration::from_millis(1);
const LONGEST: usize = 1_514;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, capture, count] = &args[..] else {
        eprintln!("round_trip IF CAPTURE COUNT");
        return ExitCode::from(2);
    };
    let mut reader = CaptureReader::open(Path::new(capture)).unwrap();
    let mut frames = Vec::new();
    while let Some(packet) = reader.next().unwrap() {
        frames.push(packet.bytes.to_vec());
    }
    let options = Options {
        backend: BackendChoice::Xdp(CopyMode::Best),
        slots: 64,
        max_frame_len: LONGEST,
    };
    let mut port = Port::open(&Interface::named(name).unwrap(), &options).unwrap();
    let mut took = Histogram::<u64>::new(3).unwrap();
    let mut unanswered = 0;
    for frame in frames.iter().cycle().take(count.parse().unwrap()) {
        std::thread::sleep(GAP);
        // Late answers must not count for the following frames.
        while port.receive(|_| {}) > 0 {}
        let sent = Instant::now();
        assert!(port.send(frame, &[]).unwrap());
        port.flush().unwrap();
        let answered = loop {
            let came = port.receive(|_| {}) > 0;
            let after = sent.elapsed();
            if came || after > GAP {
                break came.then_some(after);
            }
        };
        match answered {
            Some(after) => took.record(after.as_nanos() as u64).unwrap(),
            None => unanswered += 1,
        }
    }
    let [p50, p99] = [0.5, 0.99].map(|share| took.value_at_quantile(share));
    println!(r#"{{"p50_ns": {p50}, "p99_ns": {p99}, "unanswered": {unanswered}}}"#);
    ExitCode::SUCCESS
}
