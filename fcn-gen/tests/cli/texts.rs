//! Help, lists and descriptions, compared with the committed ones in `snapshots/`; and the effect
//! of invalid options.

use crate::common::{fcn_gen, names};
use insta::assert_snapshot;
use std::path::Path;

const COMMANDS: [&str; 7] = [
    "list", "show", "write", "run", "compare", "emulate", "check",
];

#[test]
fn help_matches_snapshots() {
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let done = fcn_gen([command, flag]);
            assert_eq!((done.code, done.err.as_str()), (0, ""), "{command} {flag}");
            let length = if flag == "-h" { "short" } else { "long" };
            assert_snapshot!(format!("help-{command}-{length}"), done.text());
        }
    }
    let done = fcn_gen(["help"]);
    assert_eq!(done.code, 0);
    assert_snapshot!("help", done.text());
    assert_eq!(fcn_gen(["--help"]).text(), done.text());
}

#[test]
fn list_matches_snapshot() {
    let list = fcn_gen(["list"]);
    assert_eq!((list.code, list.err.as_str()), (0, ""));
    assert_snapshot!("list", list.text());
    let json = fcn_gen(["list", "--json"]).json();
    assert_eq!(json["schema"], "fcn-gen/list");
    let scenarios = json["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), list.text().lines().count());
    assert!(
        scenarios
            .iter()
            .all(|s| !s["about"].as_str().unwrap().is_empty())
    );
}

#[test]
fn listed_scenarios_can_be_shown_and_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    for scenario in fcn_gen(["list", "--json"]).json()["scenarios"]
        .as_array()
        .unwrap()
    {
        let name = scenario["name"].as_str().unwrap();
        let shown = fcn_gen(["show", name]);
        assert_eq!((shown.code, shown.err.as_str()), (0, ""), "{name}");
        let command = if scenario["kind"] == "stress" {
            format!("  fcn-gen run {name} --iface IF --duration 10s\n")
        } else {
            format!("  fcn-gen write {name} -o {name}.pcapng\n")
        };
        assert!(shown.text().contains(&command), "{name}");
        let file = folder.path().join(format!("{name}.toml"));
        std::fs::write(&file, fcn_gen(["show", name, "--toml"]).out).unwrap();
        let again = fcn_gen(["show".as_ref(), file.as_os_str(), "--json".as_ref()]).json();
        let first = fcn_gen(["show", name, "--json"]).json();
        for key in [
            "name",
            "about",
            "demonstrates",
            "parameters",
            "play",
            "topology",
        ] {
            assert_eq!(again[key], first[key], "{name}: {key}");
        }
    }
}

#[test]
fn shown_scenario_matches_snapshot() {
    let shown = fcn_gen([
        "show",
        "tiny.toml",
        "--set",
        "mechanism=fast-cnp",
        "--set",
        "message=1MiB",
    ]);
    assert_eq!((shown.code, shown.err.as_str()), (0, ""));
    assert_snapshot!("show-tiny", shown.text());
    let gallery = fcn_gen(["show", "formats"]);
    assert_snapshot!("show-formats", gallery.text());
    let json = fcn_gen(["show", "tiny.toml", "--json"]).json();
    assert_eq!(json["play"]["mechanism"], "cnp");
    assert_eq!(json["parameters"][0]["name"], "distance");
    assert_eq!(json["command"], "fcn-gen write tiny.toml -o tiny.pcapng");
}

#[test]
fn dry_run_of_check_prints_plan() {
    for (name, words) in [
        ("check-switch", "congestion-point"),
        ("check-receiver", "receiver --only cnp,rocev2.icrc"),
        ("check-sender-off", "sender --off --set flows=4"),
        ("check-proxy", "proxy --skip pnc"),
        ("check-ingress", "ingress-pe --node pe1"),
    ] {
        let words = format!("check {words} --dry-run");
        let done = fcn_gen(words.split(' '));
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{words}");
        assert_snapshot!(name, done.text());
    }
    let json = fcn_gen(["check", "receiver", "--dry-run", "--json"]).json();
    assert_eq!(
        (&json["schema"], &json["dry_run"]),
        (&"fcn-gen/check".into(), &true.into())
    );
    assert!(json["tests"].as_array().unwrap().len() > 10);
    for (words, why) in [
        ("check receiver", "--iface"),
        (
            "check receiver --dry-run --only fastcnp.sent",
            "no such test",
        ),
        ("check receiver --dry-run --only proxycn", "no such test"),
        ("check receiver --dry-run --only fast", "another mechanism"),
        ("check ingress-pe --dry-run", "pe1, pe2"),
        (
            "check congestion-point --dry-run --set mechanism=cnp",
            "none of the drafts' notifications",
        ),
        (
            "check congestion-point --dry-run --set rate=2G",
            "no data would meet congestion",
        ),
        ("check congestion-point --iface lo", "2 links"),
    ] {
        let done = fcn_gen(words.split(' '));
        assert_eq!(done.code, 2, "{words}: {}", done.err);
        assert!(done.err.contains(why), "{words}: {}", done.err);
    }
}

#[test]
fn invalid_options_and_scenarios_exit_with_2_and_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pcapng");
    let file = file.to_str().unwrap();
    for args in [
        &[][..],
        &["frobnicate"],
        &["write", "tiny.toml"],
        &["write", "no-such-scenario", "-o", file],
        &["write", "no/such/file.toml", "-o", file],
        &["write", "tiny.toml", "-o", file, "--set", "colour=red"],
        &["write", "tiny.toml", "-o", file, "--set", "mechanism"],
        &["write", "tiny.toml", "-o", file, "--truth", file],
        &["write", "tiny.toml", "-o", file, "--seed", "one"],
        &["write", "formats", "-o", file, "--seed", "1"],
        &["write", "formats", "-o", file, "--set", "family=none-such"],
        &["write", "stress-mix", "-o", file],
        &["compare", "stress-mix"],
        &["run", "fast-cnp"],
        &["run", "fast-cnp", "--iface", "no-such-if"],
        &["run", "fast-cnp", "--iface", "no-such-if", "-o", file],
        &["run", "fast-cnp", "-o", file, "--queues", "2"],
        &["run", "fast-cnp", "-o", file, "--vantage", "nowhere:else"],
        &["run", "fast-cnp", "-o", file, "--line-rate"],
        &["run", "stress-mix", "-o", file],
        &[
            "run",
            "stress-mix",
            "-o",
            file,
            "--count",
            "5",
            "--speed",
            "2",
        ],
        &[
            "run",
            "stress-mix",
            "-o",
            file,
            "--count",
            "5",
            "--truth",
            "x",
        ],
        &[
            "run",
            "stress-mix",
            "-o",
            file,
            "--count",
            "5",
            "--set",
            "qps=20000000",
        ],
        &[
            "run",
            "stress-mix",
            "-o",
            file,
            "--count",
            "5",
            "--set",
            "flows=2000000",
        ],
        &["run", "formats", "-o", file, "--seed", "5"],
        &["run", "formats", "-o", file, "--forever"],
        &["run", "tiny.toml", "-o", file, "--forever"],
        &["run", "tiny.toml", "-o", file, "--top", "--duration", "1s"],
        &["run", "stress-mix", "-o", file, "--duration", "1s"],
        &["run", "stress-mix", "-o", file, "--count", "5", "--live"],
        &[
            "run",
            "stress-mix",
            "-o",
            file,
            "--rate",
            "1kpps",
            "--forever",
            "--duration",
            "1s",
        ],
        &["compare", "formats"],
        &["compare", "tiny.toml", "--mechanisms", "hope"],
        &["compare", "tiny.toml", "--set", "mechanism=cnp"],
        &["compare", "tiny.toml", "--over", "distance"],
        &["compare", "tiny.toml", "--over", "distance=1km,soon"],
        &[
            "compare",
            "tiny.toml",
            "--set",
            "distance=1m",
            "--over",
            "distance=1km",
        ],
        &["compare", "tiny.toml", "--svg", "-"],
        &["compare", "tiny.toml", "--html", "-"],
        &["run", "tiny.toml", "-o", file, "--truth", "-"],
        &["run", "tiny.toml", "-o", file, "--truth", file],
    ] {
        let done = fcn_gen(args);
        assert_eq!(done.code, 2, "{args:?}: {}", done.err);
        assert!(done.out.is_empty(), "{args:?}");
        assert!(
            done.err.starts_with("fcn-gen: ") && !done.err.contains('\x1b'),
            "{args:?}: {}",
            done.err
        );
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn invalid_scenario_reports_position_and_remedy() {
    let done = fcn_gen(["show", "tiny.toml", "--set", "mechanism=hope"]);
    assert_snapshot!("error-mechanism", &done.err);
    let done = fcn_gen(["show", "no-such-scenario"]);
    assert_snapshot!("error-unknown", &done.err);
}

#[test]
fn examples_in_the_help_run() {
    let mut helps = vec![fcn_gen(["--help"]).text().to_owned()];
    helps.extend(COMMANDS.map(|command| fcn_gen([command, "--help"]).text().to_owned()));
    let mut examples = Vec::new();
    for help in &helps {
        let these = fcn_examples::of(help, "fcn-gen");
        assert!(!these.is_empty(), "no examples: {help}");
        examples.extend(these);
    }
    examples.sort_unstable();
    examples.dedup();
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine.toml");
    // An example prints a line for each packet, and is stopped after a second and a half.
    let scenario = fcn_gen(["show", "incast", "--toml"]);
    let short = scenario
        .text()
        .replace("duration = \"20ms\"", "duration = \"1ms\"");
    assert_ne!(short, scenario.text());
    std::fs::write(&mine, short).unwrap();
    let plan = folder.path().join("switch.toml");
    let template = fcn_gen(["check", "congestion-point", "--plan-template"]);
    std::fs::write(&plan, template.text()).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_fcn-gen"));
    let files = [
        ("mine.toml", mine.as_path()),
        ("switch.toml", plan.as_path()),
    ];
    fcn_examples::run(&examples, program, &files);
}

#[test]
fn a_plan_is_the_same_as_its_options_and_is_outranked_by_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    let plan = "role = \"receiver\"\nspeed = 0.5\nonly = [\"cnp\"]\n[parameters]\nflows = 3\n";
    std::fs::write(&file, plan).unwrap();
    let name = file.to_str().unwrap();
    let run = |words: &str| {
        let words = words.split(' ').map(|word| word.replace("PLAN", name));
        let done = fcn_gen(words);
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        done.text().to_owned()
    };
    let all = "--only cnp --set flows=3 --dry-run";
    assert_eq!(
        run("check --plan PLAN --dry-run"),
        run(&format!("check receiver --speed 0.5 {all}"))
    );
    assert_eq!(
        run("check --plan PLAN --dry-run --speed 0.25 --set flows=2"),
        run(&format!("check receiver --speed 0.25 {all} --set flows=2"))
    );
    assert_eq!(
        run("check sender --plan PLAN --dry-run"),
        run(&format!("check sender --speed 0.5 {all}"))
    );
    std::fs::write(&file, "role = \"receiver\"\n\nspede = 0.5\n").unwrap();
    let done = fcn_gen(["check", "--plan", name]);
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(
        done.err.contains("plan.toml:3:9: spede: no such key; dut"),
        "{}",
        done.err
    );
    std::fs::write(&file, "speed = 0.5\n").unwrap();
    let done = fcn_gen(["check", "--plan", name]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("add role to the plan"), "{}", done.err);
}
