//! Cost of a picture: update and drawing at 200 × 50 with 10,000 and with 100,000 QPs, and the
//! share of a core at four pictures per second.

use fcn_top::record::RowId;
use fcn_top::record::{Answer, Evidence, QpRecord, QpSide};
use fcn_top::tables::Tables;
use fcn_top::text::Formatter;
use fcn_top::view::{App, Options};
use fcn_wire::{Kind, Origin};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

const QPS: u32 = 10_000;
const MANY: u32 = 100_000;
const PICTURES: u32 = 100;

fn row(i: u32, round: u32) -> (RowId, QpRecord) {
    let sender = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + i / 16));
    // Every rate changes between pictures, so that the order changes.
    let rate = f64::from((i ^ round).wrapping_mul(2_654_435_761) >> 16);
    let record = QpRecord {
        sender: Some(sender),
        qp: Some(i),
        qp_side: Some(QpSide::Sender),
        kind: Kind::Cnp,
        notifier_role: Origin::Receiver,
        notifier: IpAddr::V4(Ipv4Addr::from_bits(0x0a01_0000 + i % 64)),
        notifiers: 1,
        destination: sender,
        flow_label: None,
        sender_qp: Some(i),
        sender_qp_from: None,
        receiver: None,
        receiver_qp: None,
        receiver_qp_from: None,
        interface: None,
        path: None,
        rate_now: Some(rate),
        rate_1s: Some(rate),
        rate_10s: Some(rate),
        rate_mean: Some(rate),
        rate_peak: Some(rate),
        total: rate as u64,
        total_low: None,
        total_high: None,
        sampled: None,
        gap_min: Some(1),
        gap_p50: Some(50_000),
        gap_p90: Some(90_000),
        gap_p99: Some(99_000),
        level: None,
        level_max: None,
        queue: None,
        queue_max: None,
        dscp: Some(48),
        ecn: None,
        vlan_priority: None,
        data_dscp: Some(26),
        data_vlan_priority: None,
        class: None,
        ce_share: Some(0.1),
        data_rate: Some(1e9),
        data_packets: Some(12_345),
        data_sampled: None,
        change: Some(-0.4),
        measured: 12,
        verdict: Some(Answer::Obeys),
        evidence: Some(Evidence::SlowerThanBefore { less: 0.4 }),
        advice: None,
        made_by: None,
        made_by_evidence: None,
        first_seen: 1,
        last_seen: 2,
        icrc_bad: 0,
        findings: 0,
    };
    (RowId(i.into()), record)
}

fn tables(qps: u32, round: u32) -> Tables {
    Tables {
        now: 1_763_799_300_000_000_000 + u64::from(round) * 250_000_000,
        qps: (0..qps).map(|i| row(i, round)).collect(),
        ..Tables::default()
    }
}

fn measure(name: &str, filter: &str, qps: u32) {
    let formatter = Formatter::default();
    let options = Options {
        filter: filter.to_owned(),
        ..Options::default()
    };
    let mut app = App::new(&options, &formatter);
    let mut terminal =
        Terminal::new(TestBackend::new(200, 50)).expect("memory is all that it needs");
    let (mut spent, mut worst) = (Duration::ZERO, Duration::ZERO);
    for round in 0..PICTURES {
        let next = tables(qps, round);
        let began = Instant::now();
        app.update(next);
        terminal
            .draw(|frame| app.draw(frame))
            .expect("memory is all that it needs");
        black_box(terminal.backend().buffer());
        let took = began.elapsed();
        spent += took;
        worst = worst.max(took);
    }
    let mean = spent / PICTURES;
    println!(
        "{name}: update and drawing {:.2} ms (worst {:.2} ms): {:.2} % of a core at 4 pictures a second",
        mean.as_secs_f64() * 1e3,
        worst.as_secs_f64() * 1e3,
        mean.as_secs_f64() * 4.0 * 100.0
    );
}

fn main() {
    // `cargo test --all-targets` also runs benchmarks, without this argument; there is nothing to
    // test here.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    println!("200 × 50 cells, {QPS} QPs, every rate changed, the table copied beforehand");
    measure("all QPs", "", QPS);
    measure("filtered", "kind=cnp sender=10.0.0.0/8 rate>100", QPS);
    measure("any cell", "10.1.0.7", QPS);
    println!("the same with {MANY} QPs");
    measure("all QPs", "", MANY);
}
