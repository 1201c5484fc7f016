//! `compare`: every applicable mechanism has its figures, the others their reason, regardless of
//! the number of threads.

#[cfg(unix)]
use crate::common::interrupt;
use crate::common::{fcn_gen, names};

#[test]
fn fast_cnp_is_not_compared_over_ipv4() {
    let sets = ["--set", "ip=4", "--set", "duration=200us", "--seeds", "1"];
    let done = fcn_gen(
        [
            &["compare", "incast", "--mechanisms", "cnp,fast-cnp"][..],
            &sets,
        ]
        .concat(),
    );
    assert_eq!(done.code, 0, "{}", done.err);
    let why = "\nNot applicable: fast-cnp: Fast CNPs are IPv6 only, but all flows are IPv4\n";
    assert!(done.text().contains(why), "{}", done.text());
}

/// Of eight senders that lose packets most stall, and timeouts decide which. With 12 ms goodput was
/// 25 % lower under `none`, with 24 ms by a third: the halves of neither run showed that.
#[test]
fn goodput_that_timeouts_decide_is_not_compared() {
    let compare = |timeout: &str, duration: &str| {
        let sets = [timeout, duration].map(|set| ["--set", set]).concat();
        let args = [
            "compare",
            "incast",
            "--mechanisms",
            "cnp,none",
            "--seeds",
            "3",
        ];
        let done = fcn_gen([&args[..], &sets].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        done.text().to_owned()
    };
    for duration in ["duration=12ms", "duration=24ms"] {
        let text = compare("flow.load.retransmit_timeout=2ms", duration);
        assert!(
            text.contains("\nNot settled: none: 50 % of the measured time flows waited for"),
            "{text}"
        );
        assert!(!text.contains("goodput was"), "{text}");
        assert!(
            text.contains("the mean queue was longer under none."),
            "{text}"
        );
    }
    // Waiting for timeouts that are longer than the run is reported, too.
    let text = compare("flow.load.retransmit_timeout=1s", "duration=4ms");
    assert!(
        text.contains("waited for retransmission timeouts; it fits 0 of these"),
        "{text}"
    );
}

#[test]
fn mechanisms_are_compared_or_refused_with_a_reason() {
    let done = fcn_gen(["compare", "tiny.toml"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let text = done.text();
    let header = text.lines().nth(1).unwrap();
    for mechanism in ["none", "pfc", "cnp", "fast-cnp"] {
        assert!(
            header.split_whitespace().any(|word| word == mechanism),
            "{text}"
        );
    }
    assert!(text.contains("\nNot applicable: wan-fcn: "), "{text}");
    assert!(
        text.contains("\nCompared with receiver CNPs, which took "),
        "{text}"
    );
    assert_eq!(
        fcn_gen(["compare", "tiny.toml"]).text(),
        text,
        "the same figures each time"
    );
}

#[test]
fn json_has_a_group_for_each_value_and_a_spread_over_seeds() {
    let args = [
        "compare",
        "tiny.toml",
        "--mechanisms",
        "cnp,wan-fcn",
        "--seeds",
        "3",
        "--over",
        "distance=500ns,2km",
        "--json",
    ];
    let done = fcn_gen(args);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let json = done.json();
    assert_eq!(
        (json["schema"].as_str(), json["seeds"].as_u64()),
        (Some("fcn-gen/compare"), Some(3))
    );
    let groups = json["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert_eq!(
        (groups[0]["value"].as_str(), groups[1]["value"].as_str()),
        (Some("500ns"), Some("2km"))
    );
    let median = |group: &serde_json::Value| {
        let time = &group["mechanisms"][0]["figures"]["reaction_time_ns"];
        assert_eq!(time["seeds"], 3);
        let (min, median, max) = (&time["min"], &time["median"], &time["max"]);
        let [min, median, max] = [min, median, max].map(|value| value.as_f64().unwrap());
        assert!(min <= median && median <= max);
        median
    };
    assert!(median(&groups[1]) > median(&groups[0]), "farther is later");
    assert!(groups[0]["mechanisms"][1]["not_applicable"].is_string());
}

/// The seeds of a comparison are those of `write`: each truth has the same figures.
#[test]
fn seeds_are_the_same_as_for_write() {
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("a.json");
    let marks = |seed: &str| {
        let args = [
            "write",
            "tiny.toml",
            "-o",
            "-",
            "--quiet",
            "--seed",
            seed,
            "--force",
            "--truth",
        ];
        let done = fcn_gen(args.iter().copied().chain([truth.to_str().unwrap()]));
        assert_eq!(done.code, 0, "{}", done.err);
        let truth = std::fs::read_to_string(&truth).unwrap();
        let truth: fcn_gen::truth::Truth = serde_json::from_str(&truth).unwrap();
        truth.switches.iter().map(|s| s.marked).sum::<u64>() as f64
    };
    let done = fcn_gen([
        "compare",
        "tiny.toml",
        "--mechanisms",
        "cnp",
        "--seeds",
        "2",
        "--json",
    ]);
    let json = done.json();
    let found = &json["groups"][0]["mechanisms"][0]["figures"]["ce_marks"];
    let (one, other) = (marks("3"), marks("4"));
    assert_eq!(found["min"].as_f64(), Some(one.min(other)));
    assert_eq!(found["max"].as_f64(), Some(one.max(other)));
}

#[test]
fn drawing_is_written_completely_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    let draw = |file: &std::path::Path| {
        fcn_gen([
            "compare",
            "tiny.toml",
            "--mechanisms",
            "cnp,pfc",
            "--force",
            "--svg",
            file.to_str().unwrap(),
        ])
    };
    assert_eq!(draw(&file).code, 0);
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("tiny: over time with seed 3") && svg.contains("Deepest egress queue"));
    assert_eq!(draw(&file).code, 0);
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        svg,
        "nothing in it depends on when it was drawn"
    );
    let failed = draw(&folder.path().join("missing/a.svg"));
    assert_eq!((failed.code, failed.out.len()), (1, 0));
    assert!(
        failed.err.contains("check that its folder exists"),
        "{}",
        failed.err
    );
    assert_eq!(names(folder.path()), ["a.svg"]);
}

#[test]
fn page_has_the_printed_figures_and_is_reproducible() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.html");
    let name = file.to_str().unwrap();
    let args = [
        "compare",
        "tiny.toml",
        "--mechanisms",
        "cnp,pfc",
        "--json",
        "--force",
        "--html",
        name,
    ];
    let mut pages = Vec::new();
    for _ in 0..2 {
        let done = fcn_gen(args);
        assert_eq!(done.code, 0, "{}", done.err);
        let page = std::fs::read_to_string(&file).unwrap();
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let block = rest.split_once("</script>").unwrap().0;
        let data: serde_json::Value = serde_json::from_str(block).unwrap();
        assert_eq!(data["comparison"], done.json());
        pages.push(page);
    }
    assert!(pages[0] == pages[1]);
    assert_eq!(names(folder.path()), ["a.html"]);
}

#[cfg(unix)]
#[test]
fn interrupt_ends_all_threads_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    let args = ["compare", "tiny.toml", "--set", "duration=100s", "--svg"];
    let args = args.iter().copied().chain([file.to_str().unwrap()]);
    let done = interrupt(args, folder.path(), 1);
    assert_eq!(
        (done.code, done.out.len(), done.err.as_str()),
        (130, 0, "fcn-gen: interrupted: nothing was compared\n")
    );
    assert!(names(folder.path()).is_empty());
}

/// Thresholds are named, and the same for all, unless each mechanism has its best.
#[test]
fn each_mechanism_is_compared_at_its_best() {
    let sweep = "defaults.marking.kmin=5kB,40kB,90MB";
    let args = [
        "compare",
        "tiny.toml",
        "--mechanisms",
        "cnp,fast-cnp",
        "--seeds",
        "1",
        "--set",
        "defaults.marking.at=arrival",
    ];
    let plain = fcn_gen(args);
    assert_eq!(plain.code, 0, "{}", plain.err);
    let same = "; thresholds of every mechanism: Kmin 10 kB, Kmax 40 kB, Pmax 0.2 on arrival, queue 160 kB at 10 Gbit/s\n";
    assert!(plain.text().contains(same), "{}", plain.text());

    let best = |sweep: &str, more: &[&str]| {
        fcn_gen([&args[..], &["--each-at-its-best", sweep], more].concat())
    };
    let done = best("defaults.marking.kmin=5kB,40kB", &["--json"]);
    assert_eq!(done.code, 0, "{}", done.err);
    for row in done.json()["groups"][0]["mechanisms"].as_array().unwrap() {
        let best = &row["at_its_best"];
        let tried = best["tried"].as_array().unwrap();
        assert_eq!(tried.len(), 2);
        let kmin = row["thresholds"][0]["kmin_octets"].as_u64().unwrap();
        let value = best["value"].as_str().unwrap();
        assert_eq!(value, format!("{}kB", kmin / 1_000));
        let queue = |value: &str| {
            let one = tried.iter().find(|one| one["value"] == value).unwrap();
            one["mean_queue_octets"].as_f64().unwrap()
        };
        assert_eq!(queue(value), row["figures"]["mean_queue_octets"]["median"]);
    }
    let text = best("defaults.marking.kmin=5kB,40kB", &[]);
    let text = text.text();
    assert!(
        text.contains("\nThresholds: cnp: at its best with defaults.marking.kmin="),
        "{text}"
    );

    let refused = best(sweep, &[]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("must be below the queue's limit"),
        "{}",
        refused.err
    );
    let twice = best("defaults.marking.at=arrival", &[]);
    assert_eq!(twice.code, 2);
    assert!(
        twice.err.contains("its values override --set"),
        "{}",
        twice.err
    );
}

#[test]
fn both_points_of_marking_are_played_where_they_matter() {
    let compare = |more: &[&str]| {
        let args = [
            "compare",
            "tiny.toml",
            "--mechanisms",
            "pfc,cnp",
            "--seeds",
            "3",
            "--json",
        ];
        let done = fcn_gen([&args[..], more].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        let rows = &done.json()["groups"][0]["mechanisms"];
        [0, 1].map(|row| rows[row]["marked_elsewhere"].clone())
    };
    let [pfc, cnp] = compare(&[]);
    assert!(pfc.is_null(), "nothing is marked");
    assert!(
        cnp["figures"]["mean_queue_octets"]["median"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(
        compare(&["--set", "distance=20km", "--set", "duration=3ms"])[1].is_null(),
        "the round trip is long"
    );
    assert!(
        compare(&["--set", "defaults.marking.at=arrival"])[1].is_null(),
        "chosen"
    );
}
