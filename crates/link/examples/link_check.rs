//! Checks AF_XDP on interfaces of this machine given as arguments: for drivers that the test suite
//! does not cover, for instance in an emulated guest.
//!
//!     link_check exchange NEAR FAR zero-copy|copy|best   # connected interfaces
//!     link_check send IF [program]   # until killed; optionally with an XDP program
//!
//! Prints a line for each check. The exit code is 1 if one failed.

#[path = "../tests/common/check.rs"]
mod check;

use check::{Exchange, Numbered, blast, exchange};
use fcn_link::backend::{self, BackendChoice, Options, SlotCount};
use fcn_link::interface::Interface;
use fcn_link::sender::{self, Job, Settings};
use fcn_link::transmit::ModeKind;
use fcn_link::xdp::{CopyMode, Program};
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// If opening a queue takes longer than this, it is repeated less often.
const SLOW: Duration = Duration::from_millis(400);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["exchange", near, far, copying] => checks(near, far, copying),
        ["send", interface] => send(interface, false),
        ["send", interface, "program"] => send(interface, true),
        _ => {
            eprintln!(
                "link_check exchange NEAR FAR zero-copy|copy|best, or: link_check send IF [program]"
            );
            ExitCode::from(2)
        }
    }
}

/// Sends until it is killed.
fn send(name: &str, with_program: bool) -> ExitCode {
    let interface = Interface::named(name).unwrap();
    let _program = with_program
        .then(|| Program::attach(name, interface.index(), interface.receive_queues()).unwrap());
    let options = Options {
        backend: BackendChoice::Xdp(CopyMode::Best),
        queues: 1,
        slots: SlotCount::default(),
        max_frame_len: 94,
    };
    let queue = backend::open(&interface, &options).unwrap().remove(0);
    println!("sending by {}", queue.mode());
    let job = Job {
        queue,
        source: Numbered::free(0, u64::MAX, 94),
        settings: Settings::TOP,
    };
    sender::run(
        vec![job],
        &[&interface],
        &AtomicBool::new(false),
        &mut |_| {},
    );
    ExitCode::FAILURE
}

/// Kills a process that is sending, then sends.
fn killed(near: &str, copy_mode: CopyMode) -> Result<String, String> {
    let this = std::env::current_exe().unwrap();
    let mut child = Command::new(this)
        .args(["send", near])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let sent = blast(near, BackendChoice::Xdp(copy_mode), 1, 1_000, 94).sent();
    if line.starts_with("sending") && sent == 1_000 {
        Ok(format!("{sent} frames behind it"))
    } else {
        Err(format!("{sent} frames behind `{line}`"))
    }
}

fn checks(near: &str, far: &str, copying: &str) -> ExitCode {
    let copy_mode = match copying {
        "zero-copy" => CopyMode::Never,
        "copy" => CopyMode::Always,
        _ => CopyMode::Best,
    };
    let there = Interface::named(near).unwrap();
    let destination = Interface::named(far).unwrap().mac().unwrap();
    println!(
        "{near}: {}, MTU {}, {} queues",
        there.driver().unwrap_or("?"),
        there.mtu(),
        there.transmit_queues()
    );
    let longest = there.mtu() as usize + 14;
    let mut lens = vec![60, 61, 94, 118, 1086, longest - 1, longest];
    lens.extend(
        [2047, 2048, 2049, 4095, 4096, 4097]
            .into_iter()
            .filter(|len| *len <= longest),
    );
    let mut good = true;
    let mut check = |what: &str, result: Result<String, String>| {
        good &= result.is_ok();
        match result {
            Ok(text) => println!("ok      {what}: {text}"),
            Err(text) => println!("FAILED  {what}: {text}"),
        }
    };
    let all_queues = there.transmit_queues().min(2);
    for by in [BackendChoice::PacketSocket, BackendChoice::Xdp(copy_mode)] {
        for queues in 1..=all_queues {
            let plan = Exchange {
                backend: BackendChoice::Xdp(copy_mode),
                queues,
                count: 2_000,
                lens: lens.clone(),
                by,
                always_more: false,
            };
            let outcome = exchange(&plan, (near, || {}), (far, || {}), destination);
            let total = plan.count * u64::from(queues);
            let sent = outcome.report.sent();
            let what = format!(
                "every octet arrives, {queues} queues, received by {}",
                outcome.received_by
            );
            let kind = outcome.report.queues[0].mode.kind;
            let wrong_mode =
                copy_mode == CopyMode::Never && !matches!(kind, ModeKind::XdpZeroCopy(_));
            check(
                &what,
                if outcome.complaints.is_empty()
                    && outcome.arrived == total
                    && sent == total
                    && !wrong_mode
                {
                    Ok(format!("{total} frames; {}", outcome.report.queues[0].mode))
                } else {
                    Err(format!(
                        "{} of {total} arrived, {sent} sent; {kind}; {}",
                        outcome.arrived, outcome.complaints
                    ))
                },
            );
        }
    }
    // If attaching a program takes the link down, each round takes more than a second.
    let since = Instant::now();
    let mut sent = blast(near, BackendChoice::Xdp(copy_mode), 1, 5, 94).sent();
    let rounds = if since.elapsed() < SLOW { 200 } else { 10 };
    for _ in 1..rounds {
        sent += blast(near, BackendChoice::Xdp(copy_mode), 1, 5, 94).sent();
    }
    check(
        &format!("opened and closed {rounds} times"),
        if sent == rounds * 5 {
            Ok(format!("{sent} frames"))
        } else {
            Err(format!("{sent} frames"))
        },
    );
    check("killed and started again", killed(near, copy_mode));
    let count = 100_000;
    let before = Interface::named(far)
        .unwrap()
        .counters()
        .unwrap()
        .rx_packets;
    let report = blast(
        near,
        BackendChoice::Xdp(copy_mode),
        all_queues,
        count / u64::from(all_queues),
        94,
    );
    let arrived = Interface::named(far)
        .unwrap()
        .counters()
        .unwrap()
        .rx_packets
        - before;
    check(
        "no slot is lost",
        if report.sent() == count && report.unfinished() == 0 {
            Ok(format!(
                "{count} frames in {:.1} s, {arrived} counted on the far side",
                report.seconds
            ))
        } else {
            Err(format!(
                "{} sent, {} unfinished",
                report.sent(),
                report.unfinished()
            ))
        },
    );
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
