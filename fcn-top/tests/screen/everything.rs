//! Arbitrary keys, clicks, sizes and measurements cause no panic, and only cells that a terminal
//! can show.

use super::sample::{empty, incast};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use fcn_top::record::RowId;
use fcn_top::record::{Answer, Evidence, InterfaceRecord, QpRecord};
use fcn_top::tables::{Detail, Details, PastPacket, Tables, Traffic, TrafficStep, WantedDetails};
use fcn_top::text::Formatter;
use fcn_top::view::{App, Options, Tab};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

#[derive(Clone, Debug)]
enum Step {
    Key(KeyCode, bool),
    Mouse(MouseEventKind, u16, u16),
    Paste(String),
    Draw(u16, u16),
    Update(Box<Tables>),
    Ended(bool),
    Detail(Detail, Vec<u64>),
}

fn code() -> impl Strategy<Value = KeyCode> {
    prop_oneof![
        6 => proptest::sample::select("12345678qspcrxJVPv/?[]{}()<>gGhjklnN+-=0 d".chars().collect::<Vec<_>>()).prop_map(KeyCode::Char),
        1 => any::<char>().prop_map(KeyCode::Char),
        4 => proptest::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::Home,
            KeyCode::End, KeyCode::PageUp, KeyCode::PageDown, KeyCode::Tab, KeyCode::BackTab, KeyCode::Backspace,
            KeyCode::Delete, KeyCode::F(1), KeyCode::Insert,
        ]),
    ]
}

fn odd() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0),
        any::<f64>(),
        0.0..1e6
    ]
}

fn tables() -> impl Strategy<Value = Tables> {
    let row = (
        any::<u64>(),
        odd(),
        odd(),
        any::<Option<u32>>(),
        any::<Option<std::net::IpAddr>>(),
        any::<u64>(),
    );
    (
        any::<u64>(),
        prop::collection::vec(row, 0..60),
        any::<String>(),
        any::<bool>(),
        0..300u64,
    )
        .prop_map(|(now, rows, name, small, second)| {
            let now = if small { incast(second).now } else { now };
            let qps = rows
                .into_iter()
                .map(|(id, rate, share, qp, sender, total)| {
                    let record = QpRecord {
                        rate_1s: Some(rate),
                        rate_10s: Some(share),
                        verdict: Some(Answer::Obeys),
                        evidence: Some(Evidence::Chance {
                            chance: rate as f32,
                        }),
                        change: Some(rate),
                        measured: total,
                        data_rate: Some(rate),
                        qp,
                        flow_label: qp,
                        sender,
                        total,
                        interface: Some(name.as_str().into()),
                        ..empty(now)
                    };
                    (RowId(id % 50), record)
                });
            let base = incast(second);
            Tables {
                now,
                qps: qps.collect(),
                interfaces: vec![InterfaceRecord {
                    name: name.as_str().into(),
                    about: name.as_str().into(),
                    dropped_kernel: Some(now),
                    ..base.interfaces[0].clone()
                }],
                ..base
            }
        })
}

fn detail() -> impl Strategy<Value = Detail> {
    let values = || prop::collection::vec(any::<f32>(), 0..70);
    (any::<u64>(), any::<u64>(), values(), values()).prop_map(
        |(start, step, notifications, data)| Detail {
            until: u64::MAX,
            start,
            step,
            most: notifications.clone(),
            queue: notifications.clone(),
            level: notifications.clone(),
            notifications,
            data,
            notifiers: Vec::new(),
        },
    )
}

/// Returns time series for the requested rows and points.
fn details(wanted: &WantedDetails, detail: &Detail, at: &[u64]) -> Details {
    let packet = |&at: &u64| PastPacket {
        at,
        octets: at as u32,
        ce: at % 3 == 0,
        reordered: at % 5 == 0,
    };
    Details {
        traffic: Traffic {
            start: detail.start,
            step: detail.step,
            until: detail.until,
            steps: vec![TrafficStep::default(); detail.data.len()],
        },
        rows: wanted
            .rows
            .iter()
            .map(|row| (*row, detail.clone()))
            .collect(),
        points: wanted
            .points
            .iter()
            .map(|who| (*who, detail.clone()))
            .collect(),
        packets: at.iter().map(packet).collect(),
        notified: at
            .split_first()
            .map(|(since, times)| (*since, times.to_vec())),
    }
}

fn step() -> impl Strategy<Value = Step> {
    let kind = proptest::sample::select(vec![
        MouseEventKind::Down(MouseButton::Left),
        MouseEventKind::ScrollDown,
        MouseEventKind::ScrollUp,
        MouseEventKind::ScrollLeft,
        MouseEventKind::ScrollRight,
        MouseEventKind::Moved,
    ]);
    let side = || prop_oneof![3 => 0u16..140, 1 => 0u16..12];
    prop_oneof![
        12 => (code(), prop::bool::weighted(0.05)).prop_map(|(code, control)| Step::Key(code, control)),
        4 => (kind, any::<u16>(), any::<u16>()).prop_map(|(kind, x, y)| Step::Mouse(kind, x % 150, y % 60)),
        1 => any::<String>().prop_map(Step::Paste),
        4 => (side(), side()).prop_map(|(width, height)| Step::Draw(width, height.min(60))),
        3 => tables().prop_map(|tables| Step::Update(Box::new(tables))),
        1 => any::<bool>().prop_map(Step::Ended),
        2 => (detail(), prop::collection::vec(any::<u64>(), 0..40)).prop_map(|(detail, at)| Step::Detail(detail, at)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nothing_makes_it_panic(steps in prop::collection::vec(step(), 1..60)) {
        let formatter = Formatter::default();
        let mut app = App::new(&Options::default(), &formatter);
        app.update(incast(1));
        for step in steps {
            match step {
                Step::Key(code, control) => {
                    let held = if control { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
                    app.key(KeyEvent::new(code, held));
                }
                Step::Mouse(kind, column, row) => {
                    app.mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE });
                }
                Step::Paste(text) => app.paste(&text),
                Step::Draw(width, height) => {
                    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
                    terminal.draw(|frame| app.draw(frame)).unwrap();
                    for cell in &terminal.backend().buffer().content {
                        prop_assert!(!cell.symbol().chars().any(char::is_control), "{cell:?}");
                    }
                }
                Step::Update(tables) => app.update(*tables),
                Step::Detail(detail, at) => {
                    let wanted = app.wanted_details();
                    app.detail(details(&wanted, &detail, &at));
                }
                Step::Ended(ended) => app.ended(ended.then(|| "end of file".to_owned())),
            }
            let _ = (app.wanted(), app.effects());
        }
    }
}

#[test]
fn every_size_can_be_drawn() {
    let formatter = Formatter::default();
    for view in Tab::ALL {
        let mut app = App::new(
            &Options {
                view,
                ..Options::default()
            },
            &formatter,
        );
        app.update(incast(3));
        for keys in ["", "?", "s", "c", "/"] {
            super::typed(&mut app, keys);
            for width in (0..180).step_by(29) {
                for height in (0..50).step_by(9) {
                    let _ = super::picture(&mut app, width, height);
                }
            }
            super::press(&mut app, KeyCode::Esc);
        }
    }
}
