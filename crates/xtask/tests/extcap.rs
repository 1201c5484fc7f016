//! The real tshark with this build of `fcn-gen` in its extcap folder: it lists the scenarios, and
//! captures the same packets that `fcn-gen write` writes. `fcn-gen` tests its behaviour without
//! Wireshark.

use pcap_file::pcapng::{Block, PcapNgReader};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use xtask::system::System;
use xtask::tshark::Tshark;
use xtask::{cargo, process};

/// Returns tshark, tshark's path of the folder with the program, and the program; `None`, with a
/// message, if there is no tshark.
fn ready() -> Option<(Tshark, PathBuf, PathBuf)> {
    // tshark captures with another program, which is not always installed with it.
    for program in ["tshark", "dumpcap"] {
        if System::of_tests().is_here() && process::which(program).is_none() {
            fcn_skip::skipped!("capturing from scenarios needs {program}");
            return None;
        }
    }
    let tshark = Tshark::stock().unwrap();
    let program = cargo::build_tool(cargo::GENERATOR, false).unwrap();
    let folder = tshark.extcap_folder(&program).unwrap();
    Some((tshark, folder, program))
}

fn run(tshark: &Tshark, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = tshark.command();
    command.env("WIRESHARK_EXTCAP_DIR", folder).args(arguments);
    process::output(&mut command).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns interface, time stamp and octets of each packet.
fn packets(capture: &[u8]) -> Vec<(u32, std::time::Duration, Vec<u8>)> {
    let mut reader = PcapNgReader::new(Cursor::new(capture)).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap().0 {
            let data = packet.data.into_owned();
            packets.push((packet.interface_id, packet.timestamp, data));
        }
    }
    packets
}

#[test]
fn every_scenario_is_an_interface() {
    let Some((tshark, folder, program)) = ready() else {
        return;
    };
    let listed = run(&tshark, &folder, &["-D"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let scenarios = process::stdout(Command::new(program).arg("list")).unwrap();
    assert!(scenarios.lines().count() > 10);
    for line in scenarios.lines() {
        let (name, about) = line.split_once(' ').unwrap();
        let interface = format!(". fcn-gen-{name} ({})\n", about.trim());
        assert!(listed.contains(&interface), "{interface} in {listed}");
    }
}

#[test]
fn a_capture_with_parameters_equals_the_written_one() {
    let Some((tshark, folder, program)) = ready() else {
        return;
    };
    let captured = run(
        &tshark,
        &folder,
        &[
            "-i",
            "fcn-gen-incast",
            "-o",
            "extcap.fcn_gen_incast.pace:1",
            "-o",
            "extcap.fcn_gen_incast.senders:3",
            "-o",
            "extcap.fcn_gen_incast.mechanism:cnp",
            "-o",
            "extcap.fcn_gen_incast.lossless:false",
            "-w",
            "-",
        ],
    );
    assert!(captured.status.success(), "{}", stderr(&captured));
    let expected = process::output(Command::new(program).args([
        "write",
        "incast",
        "-o",
        "-",
        "--set",
        "senders=3",
        "--set",
        "mechanism=cnp",
        "--set",
        "lossless=false",
    ]))
    .unwrap();
    let (captured, expected) = (packets(&captured.stdout), packets(&expected.stdout));
    assert!(expected.len() > 100);
    assert_eq!(captured.len(), expected.len());
    assert!(captured == expected);
}

#[test]
fn a_capture_that_is_stopped_early_has_not_failed() {
    let Some((tshark, folder, _)) = ready() else {
        return;
    };
    // Only the stop ends it.
    let arguments = [
        "-i",
        "fcn-gen-stress-cnp",
        "-o",
        "extcap.fcn_gen_stress_cnp.count:until-stopped",
        "-c",
        "10",
        "-w",
        "-",
    ];
    let output = run(&tshark, &folder, &arguments);
    let stderr = stderr(&output);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("10 packets captured"), "{stderr}");
    assert!(!stderr.contains("extcap pipe"), "{stderr}");
}

#[test]
fn wireshark_shows_errors() {
    let Some((tshark, folder, _)) = ready() else {
        return;
    };
    for (arguments, expected) in [
        (
            &["-o", "extcap.fcn_gen_incast.senders:many"][..],
            "bad scenario: incast.toml: --set senders=many: ",
        ),
        (&["-f", "udp"], "scenarios take no capture filter"),
    ] {
        let output = run(
            &tshark,
            &folder,
            &[&["-i", "fcn-gen-incast", "-w", "-"], arguments].concat(),
        );
        let stderr = stderr(&output);
        assert!(!output.status.success(), "{stderr}");
        assert!(stderr.contains(&format!("fcn-gen: {expected}")), "{stderr}");
    }
}
