//! Prints the senders that are notified in a capture, how often, and whether they obey:
//! `cargo run -p fcn-observe --example who_obeys captures/incast.pcapng`

use fcn_link::capture_file::CaptureReader;
use fcn_observe::correlator::{Capture, Outcome};
use fcn_observe::{Correlator, FlowKey};
use fcn_wire::{Frame, Profile};
use std::collections::BTreeMap;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("no capture was named")?;
    let mut reader = CaptureReader::open(path.as_ref())?;
    let mut correlator = Correlator::<()>::new(10_000, 10_000);
    let mut told: BTreeMap<FlowKey, u64> = BTreeMap::new();
    while let Some(packet) = reader.next()? {
        let (len, link) = (packet.wire_len as usize, packet.link);
        let link = link.ok_or("unsupported link type")?;
        let frame = Frame::parse(packet.bytes, len, link, &Profile::DEFAULT);
        let outcome = correlator.ingest(&Capture::at_single_point(packet.at), &frame);
        if let Outcome::Notification(_, about) = outcome
            && let Some(flow) = about.flow
        {
            *told.entry(flow).or_default() += 1;
        }
    }
    for (key, count) in told {
        let (sender, receiver) = (key.sender, key.receiver);
        let qp = key.receiver_qp;
        print!("{sender} to QP {qp} of {receiver}: {count} notifications, ");
        match correlator.flows().get(&key) {
            Some(flow) => {
                let verdict = correlator.verdict(flow);
                println!("{}: {}", verdict.answer.id(), verdict.evidence);
            }
            None => println!("no data"),
        }
    }
    Ok(())
}
