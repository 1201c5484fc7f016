//! Files for deployment of fcn-top, checked by the programs that read them.

use std::path::PathBuf;
use std::process::Command;

use xtask::{cargo, process};

fn deploy(name: &str) -> PathBuf {
    cargo::root().unwrap().join("docs/deploy").join(name)
}

#[test]
fn prometheus_reads_the_alerts() {
    if process::which("promtool").is_none() {
        fcn_skip::skipped!("promtool is not installed (in Debian: package prometheus)");
        return;
    }
    let mut promtool = Command::new("promtool");
    process::stdout(promtool.args(["check", "rules"]).arg(deploy("alerts.yml"))).unwrap();
}

#[test]
fn systemd_reads_the_service() {
    if process::which("systemd-analyze").is_none() {
        fcn_skip::skipped!("systemd-analyze is not installed (in Debian: package systemd)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("fcn-top.service");
    let unit = std::fs::read_to_string(deploy("fcn-top.service")).unwrap();
    // A program that exists.
    let program = "ExecStart=/usr/bin/fcn-top ";
    assert!(unit.contains(program));
    std::fs::write(&copy, unit.replace(program, "ExecStart=/bin/true ")).unwrap();
    let mut verify = Command::new("systemd-analyze");
    let output = process::output(verify.args(["verify", "--man=no"]).arg(&copy)).unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    let ours: Vec<&str> = complaint
        .lines()
        .filter(|line| line.contains("fcn-top"))
        .collect();
    assert!(output.status.success() && ours.is_empty(), "{complaint}");
}

#[test]
fn package_scripts_run_in_any_shell() {
    let folder = cargo::root().unwrap().join("crates/xtask/src/dist");
    for name in [
        "debian/config",
        "debian/postinst",
        "debian/prerm",
        "debian/postrm",
        "trial.sh",
    ] {
        let mut shell = Command::new("sh");
        process::stdout(shell.arg("-n").arg(folder.join(name))).unwrap();
    }
}
