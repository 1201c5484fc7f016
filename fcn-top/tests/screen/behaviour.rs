//! Keys and mouse.

use super::sample::{self, SECOND, START, change, incast};
use super::{click, picture, place, press, seen, text, typed};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};
use fcn_top::record::{EventRecord, QpRecord, RowId};
use fcn_top::tables::{Details, Tables, TrafficStep, WantedDetails};
use fcn_top::text::Formatter;
use fcn_top::view::{App, Effect, Format, Options, Tab};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::path::{Path, PathBuf};

fn busy(formatter: &Formatter) -> App<'_> {
    let mut app = App::new(&Options::default(), formatter);
    app.update(incast(20));
    app
}

/// Returns the lines of the table of QPs.
fn lines(app: &mut App<'_>) -> Vec<String> {
    seen(app)
        .lines()
        .skip(8)
        .take_while(|line| !line.is_empty())
        // Without the second lines shown if there is room.
        .filter(|line| line.contains('→') || line.contains("label"))
        .map(str::to_owned)
        .collect()
}

/// Returns the reversed line.
fn chosen(app: &mut App<'_>) -> Option<(u16, String)> {
    let buffer = picture(app, 120, 40);
    let text = text(&buffer);
    let reversed = |y: u16| {
        buffer[(0, y)]
            .modifier
            .contains(ratatui::style::Modifier::REVERSED)
    };
    (8..39)
        .find(|&y| reversed(y))
        .map(|y| (y, text.lines().nth(y.into()).unwrap().to_owned()))
}

#[test]
fn a_selected_row_stays_selected_while_the_order_changes() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    assert_eq!(chosen(&mut app), None);
    typed(&mut app, "jjjj");
    let (y, line) = chosen(&mut app).unwrap();
    let sender = line
        .split_whitespace()
        .find(|word| word.starts_with("10.0."));
    let sender = sender.unwrap().to_owned();
    for round in 0..20u64 {
        let mut tables = incast(21 + round);
        change(&mut tables, |rows| {
            for (i, (_, record)) in (0u64..).zip(&mut *rows) {
                record.rate_1s = Some(((i * 7 + round * 5) % 13) as f64);
            }
            rows.reverse();
        });
        app.update(tables);
        let (_, line) = chosen(&mut app).unwrap();
        assert!(line.contains(&sender), "{line}");
    }
    typed(&mut app, "r");
    assert!(chosen(&mut app).unwrap().1.contains(&sender));
    // It disappears: the line now at its position is selected.
    let mut tables = incast(50);
    let gone = |record: &QpRecord| record.sender.is_some_and(|at| at.to_string() == sender);
    change(&mut tables, |rows| rows.retain(|(_, record)| !gone(record)));
    app.update(tables);
    assert!(!chosen(&mut app).unwrap().1.contains(&sender));
    press(&mut app, KeyCode::Esc);
    assert_eq!(chosen(&mut app), None);
    let _ = y;
}

#[test]
fn the_selected_row_stays_visible_and_the_wheel_leaves_it() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    let one = tables.qps[0].1.clone();
    tables.qps = (0..1000)
        .map(|i| {
            (
                RowId(i),
                QpRecord {
                    rate_1s: Some((1000 - i) as f64),
                    qp: Some(i as u32),
                    ..one.clone()
                },
            )
        })
        .collect();
    app.update(tables.clone());
    let _ = seen(&mut app);
    typed(&mut app, "jG");
    assert!(seen(&mut app).contains("0x3e7"));
    press(&mut app, KeyCode::PageUp);
    let (y, _) = chosen(&mut app).unwrap();
    assert!(y < 10);
    app.mouse(MouseEvent {
        kind: MouseEventKind::ScrollUp,
        column: 5,
        row: 9,
        modifiers: KeyModifiers::NONE,
    });
    for _ in 0..30 {
        app.mouse(MouseEvent {
            kind: MouseEventKind::ScrollUp,
            column: 5,
            row: 9,
            modifiers: KeyModifiers::NONE,
        });
    }
    assert_eq!(chosen(&mut app), None);
    typed(&mut app, "g");
    assert_eq!(chosen(&mut app).unwrap().0, 8);
    // It sinks to the bottom, and the screen follows it.
    change(&mut tables, |rows| rows[0].1.rate_1s = Some(-1.0));
    tables.now += 5 * SECOND;
    app.update(tables);
    assert_eq!(chosen(&mut app).unwrap().0, 29);
}

#[test]
fn sorting_by_keys_mouse_and_list() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    assert!(seen(&mut app).contains("by notified ▼"));
    typed(&mut app, ">>");
    assert!(seen(&mut app).contains("by smoothed rate ▼"));
    assert!(lines(&mut app)[0].contains("→0x8a"));
    typed(&mut app, "r");
    assert!(
        lines(&mut app)[0].contains("0x1231"),
        "{:?}",
        lines(&mut app)
    );
    let (x, y) = place(&mut app, "sender →");
    click(&mut app, x + 2, y);
    assert!(seen(&mut app).contains("by Sender ▲"));
    assert!(lines(&mut app)[0].contains("10.0.1.10 →"));
    click(&mut app, x, y);
    assert!(seen(&mut app).contains("by Sender ▼"));
    typed(&mut app, "sG");
    press(&mut app, KeyCode::Enter);
    assert!(seen(&mut app).contains("by ICRC ▼"), "{}", seen(&mut app));
    // Invisible columns become visible.
    typed(&mut app, "s");
    for _ in 0..60 {
        press(&mut app, KeyCode::Up);
    }
    press(&mut app, KeyCode::Enter);
    let wide = text(&picture(&mut app, 80, 24));
    for _ in 0..21 {
        typed(&mut app, ">");
        let _ = picture(&mut app, 80, 24);
    }
    assert_ne!(text(&picture(&mut app, 80, 24)), wide);
    assert!(text(&picture(&mut app, 80, 24)).contains("▼findings"));
}

#[test]
fn sorting_by_a_hidden_column_keeps_the_important_ones() {
    let formatter = Formatter::default();
    for (width, height) in [(80, 24), (100, 30), (132, 24), (132, 40), (200, 50)] {
        let mut app = busy(&formatter);
        let _ = picture(&mut app, width, height);
        typed(&mut app, ">");
        let seen = text(&picture(&mut app, width, height));
        let heading = seen.lines().find(|line| line.contains("▼total")).unwrap();
        for part in ["sender → receiver", "QP", "verdict"] {
            assert!(heading.contains(part), "{part}: {seen}");
        }
        let is_whole = heading.contains("findings");
        assert_ne!(seen.contains(" more column"), is_whole, "{seen}");
        // From the list as well.
        let mut app = busy(&formatter);
        typed(&mut app, "sj");
        press(&mut app, KeyCode::Enter);
        let listed = text(&picture(&mut app, width, height));
        assert!(listed.contains("sender → receiver"), "{listed}");
    }
}

#[test]
fn a_filter_applies_while_typed() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    assert_eq!(lines(&mut app).len(), 13);
    typed(&mut app, "/kind=cnp");
    assert_eq!(lines(&mut app).len(), 8);
    // Half a word matches nothing: the table stays, with a message.
    typed(&mut app, " rate_1");
    assert_eq!(lines(&mut app).len(), 8);
    let none = "No line matches · shown: kind=cnp r\n";
    let pic = seen(&mut app);
    assert!(pic.contains(none), "{pic}");
    for _ in 0..7 {
        press(&mut app, KeyCode::Backspace);
    }
    typed(&mut app, " (");
    let pic = seen(&mut app);
    assert!(pic.contains("at character 11"), "{pic}");
    // The last valid filter remains in effect, which is shown at every width.
    assert_eq!(lines(&mut app).len(), 8);
    assert!(pic.contains(" · shown: kind=cnp\n"), "{pic}");
    let narrow = text(&picture(&mut app, 40, 10));
    assert!(narrow.contains("… · shown: kind=cnp\n"), "{narrow}");
    press(&mut app, KeyCode::Enter);
    assert!(seen(&mut app).contains("at character 11"));
    press(&mut app, KeyCode::Esc);
    assert_eq!(lines(&mut app).len(), 13);
    typed(&mut app, "/nothing at all");
    press(&mut app, KeyCode::Enter);
    assert!(seen(&mut app).contains("0 of 13 rows"));
    press(&mut app, KeyCode::Esc);
    typed(&mut app, "/proxy");
    press(&mut app, KeyCode::Enter);
    assert_eq!(lines(&mut app).len(), 1);
    // Each table has its own.
    typed(&mut app, "2");
    app.update(incast(20));
    assert!(seen(&mut app).contains("4 notifiers"));
    typed(&mut app, "1");
    assert!(seen(&mut app).contains("1 of 13 rows"));
    press(&mut app, KeyCode::Esc);
    assert_eq!(lines(&mut app).len(), 13);
    app.paste("ignored");
    typed(&mut app, "/");
    app.paste("wan_fcn\nrest");
    assert_eq!(lines(&mut app).len(), 1);
}

#[test]
fn a_pause_freezes_the_screen_and_shows_its_duration() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    let before = lines(&mut app);
    typed(&mut app, "p");
    // At once, with the tables that the view did not show.
    app.update(incast(20));
    let mut tables = incast(32);
    change(&mut tables, |rows| rows.truncate(2));
    app.update(tables.clone());
    assert_eq!(lines(&mut app), before);
    assert!(seen(&mut app).contains("PAUSED 12 s"), "{}", seen(&mut app));
    // Other views show the same moment.
    typed(&mut app, "2");
    assert!(seen(&mut app).contains("4 notifiers"));
    typed(&mut app, "1");
    assert!(app.wanted().first.is_some(), "few rows of now are wanted");
    typed(&mut app, " ");
    // The paused rows remain until newer ones arrive; the time of graphs advances.
    let qps = |lines: &[String]| -> Vec<String> {
        let qp = |line: &String| {
            line.split_whitespace()
                .find(|word| word.contains("0x"))
                .map(str::to_owned)
        };
        lines.iter().filter_map(qp).collect()
    };
    assert_eq!(qps(&lines(&mut app)), qps(&before));
    assert!(app.wanted().qps && app.wanted().first.is_none());
    app.update(tables);
    assert_eq!(lines(&mut app).len(), 2);
    assert!(seen(&mut app).contains("LIVE"));
}

#[test]
fn a_paused_screen_does_not_change() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    let below_tabs = |app: &mut App<'_>, second: u64| {
        let details = sample::details(&app.wanted_details(), START + second * SECOND);
        let seen = seen_with(app, &details);
        seen.split_once('\n').unwrap().1.to_owned()
    };
    for keys in ["1p", "3", "2"] {
        typed(&mut app, keys);
        app.update(incast(20));
        // The visible lines are known after drawing.
        let _ = below_tabs(&mut app, 20);
        let before = below_tabs(&mut app, 20);
        for second in 21..35 {
            let mut tables = incast(second);
            change(&mut tables, |rows| {
                for (at, (_, row)) in (0u64..).zip(&mut *rows) {
                    row.rate_1s = Some((at * second) as f64);
                }
                rows.reverse();
            });
            app.update(tables);
            assert_eq!(below_tabs(&mut app, second), before);
        }
    }
}

#[test]
fn it_goes_back_in_time() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    // Before and at the first packet, there was nothing to show.
    app.update(Tables::default());
    for second in [0, 1, 2, 4] {
        app.update(incast(second));
    }
    typed(&mut app, "(");
    assert!(seen(&mut app).contains("FROZEN -2 s"), "{}", seen(&mut app));
    typed(&mut app, ")");
    for second in 0..200 {
        let mut tables = incast(second);
        change(&mut tables, |rows| {
            rows.truncate(1);
            rows[0].1.rate_1s = Some((5_000 + second) as f64);
        });
        app.update(tables);
    }
    assert!(lines(&mut app)[0].contains("5,199"));
    typed(&mut app, "[[[");
    assert!(lines(&mut app)[0].contains("5,196"), "{}", seen(&mut app));
    assert!(seen(&mut app).contains("FROZEN -3 s"));
    typed(&mut app, "(");
    assert!(lines(&mut app)[0].contains("5,080"));
    typed(&mut app, "}");
    assert!(lines(&mut app)[0].contains("5,090"));
    // Time advances, the picture does not.
    for second in 200..400 {
        app.update(incast(second));
    }
    assert!(lines(&mut app)[0].contains("5,090"));
    typed(&mut app, ")");
    assert!(seen(&mut app).contains("LIVE"));
}

#[test]
fn an_earlier_moment_has_its_own_events() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    typed(&mut app, "5");
    let at = |second: u64| {
        let mut tables = incast(20 + second);
        let line = |number: u64| EventRecord {
            at: START + number,
            last: START + number,
            ..incast(0).events[1].clone()
        };
        // More than is remembered of a moment, and the last of them repeats.
        tables.events = (0..310).map(line).collect();
        tables.events.push(EventRecord {
            at: START + 5 * SECOND,
            last: tables.now,
            times: 700 + second,
            ..incast(0).events[2].clone()
        });
        if second > 3 {
            tables.events.push(line(20 * SECOND));
        }
        tables
    };
    for second in 1..6 {
        app.update(at(second));
    }
    typed(&mut app, "[[");
    app.update(at(6));
    for keys in ["jj", "\n"] {
        match keys {
            "\n" => press(&mut app, KeyCode::Enter),
            keys => typed(&mut app, keys),
        }
        let seen = seen(&mut app);
        for part in ["703", "08:15:23"] {
            assert!(seen.contains(part), "{part}: {seen}");
        }
        for later in ["704", "705", "706", "08:15:24", "08:15:26"] {
            assert!(!seen.contains(later), "{later}: {seen}");
        }
    }
    press(&mut app, KeyCode::Esc);
    press(&mut app, KeyCode::Esc);
    typed(&mut app, "[");
    press(&mut app, KeyCode::Esc);
    assert!(!seen(&mut app).contains("703"));
}

#[test]
fn the_flow_of_a_frozen_moment_shows_nothing_later() {
    let formatter = Formatter::default();
    for stands in ["p", "[[["] {
        let mut app = App::new(&Options::default(), &formatter);
        for second in 9..15 {
            app.update(incast(second));
        }
        let shown = if stands == "p" { 14 } else { 11 };
        typed(&mut app, stands);
        app.update(incast(20));
        for keys in ["3", "N", "N", "n", "n"] {
            typed(&mut app, keys);
            let seen = seen(&mut app);
            assert!(seen.contains(&format!("08:15:{shown}\n")), "{keys}: {seen}");
            let mut later = (shown + 1..21).map(|second| format!("08:15:{second}"));
            let below = seen.split_once('\n').unwrap().1;
            assert!(later.all(|later| !below.contains(&later)), "{keys}: {seen}");
            assert!(keys == "3" || seen.contains("▲"), "{keys}: {seen}");
        }
        // The selected notification does not exist yet at an earlier moment.
        typed(&mut app, ")");
        app.update(incast(20));
        let _ = seen(&mut app);
        typed(&mut app, "N");
        assert!(seen(&mut app).contains("of the last 100 at"));
        typed(&mut app, "(");
        let seen = seen(&mut app);
        assert!(seen.contains("08:15:09\n"), "{seen}");
        assert!(!seen.contains(" at 08:15:1"), "{seen}");
    }
}

#[test]
fn a_missing_earlier_moment_is_reported() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    app.ended(Some("end of a.pcap".to_owned()));
    for key in ["[", "{", "("] {
        assert!(!seen(&mut app).contains("[ back"));
        typed(&mut app, key);
        let said = seen(&mut app);
        assert!(
            said.contains("no earlier moment is kept; a capture"),
            "{said}"
        );
        press(&mut app, KeyCode::Esc);
    }
}

#[test]
fn only_shown_tables_are_requested() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    let wanted = app.wanted();
    assert!(
        wanted.qps
            && !wanted.points
            && !wanted.hops
            && !wanted.events
            && app.wanted_details().packets.is_none()
    );
    typed(&mut app, "5");
    assert!(app.wanted().events && !app.wanted().qps);
    typed(&mut app, "1");
    press(&mut app, KeyCode::Enter);
    assert!(app.wanted().qps && app.wanted_details().packets == Some(RowId(9)));
    // Everything once a second, to be remembered.
    app.update(Tables {
        now: START + 20 * SECOND + 900_000_000,
        ..incast(20)
    });
    let wanted = app.wanted();
    assert!(wanted.qps && wanted.points && wanted.hops && wanted.events);
}

#[test]
fn enter_opens_and_escape_returns() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    typed(&mut app, "jjj");
    press(&mut app, KeyCode::Enter);
    let pic = seen(&mut app);
    assert!(
        pic.contains(", a column") && pic.contains("Verdict"),
        "{pic}"
    );
    press(&mut app, KeyCode::Down);
    assert_ne!(app.wanted_details().packets, None);
    press(&mut app, KeyCode::Esc);
    assert_eq!(lines(&mut app).len(), 13);
    typed(&mut app, "2");
    app.update(incast(20));
    typed(&mut app, "j");
    press(&mut app, KeyCode::Enter);
    let pic = seen(&mut app);
    assert!(
        pic.contains("8 of 13 rows") && pic.contains("only 10.0.9.20"),
        "{pic}"
    );
    press(&mut app, KeyCode::Esc);
    assert!(seen(&mut app).contains("13 rows  by"));
    // A rule opens to its packets, and a packet to its details.
    typed(&mut app, "5");
    app.update(incast(20));
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Enter);
    let pic = seen(&mut app);
    assert!(
        pic.contains("1 of 4 events") && pic.contains("only rocev2.icrc.bad"),
        "{pic}"
    );
    press(&mut app, KeyCode::Enter);
    assert!(seen(&mut app).contains("IBTA vol. 1 Annex A17.3.3"));
    press(&mut app, KeyCode::Esc);
    // A click on a tab, on a line, and on the selected line.
    let (x, y) = place(&mut app, "1 QPs");
    click(&mut app, x, y);
    app.update(incast(20));
    let _ = seen(&mut app);
    click(&mut app, 3, 10);
    assert_eq!(chosen(&mut app).unwrap().0, 10);
    click(&mut app, 3, 10);
    assert!(seen(&mut app).contains(", a column"));
}

#[test]
fn exports_ask_for_a_name_and_report_the_result() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    typed(&mut app, "2x");
    assert!(seen(&mut app).contains("select a row"));
    // The first is explained without a selection.
    typed(&mut app, "1x");
    app.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
    press(&mut app, KeyCode::Enter);
    assert!(seen(&mut app).contains("a file needs a name"));
    typed(&mut app, "q.pcapng");
    press(&mut app, KeyCode::Enter);
    assert_eq!(
        app.effects(),
        [Effect::Export {
            row: RowId(9),
            to: PathBuf::from("q.pcapng")
        }]
    );
    assert_eq!(app.effects(), []);
    app.exported(
        Path::new("q.pcapng"),
        Err("cannot write: q.pcapng:\x1b[2J full".to_owned()),
    );
    assert!(seen(&mut app).contains("cannot write: q.pcapng:\u{fffd}[2J full"));
    app.exported(Path::new("q.pcapng"), Ok((5, 7_000)));
    let message = "5 packets written to q.pcapng; 7,000 older ones of all rows evicted (--keep)";
    assert!(seen(&mut app).contains(message));
    for (key, format) in [("J", Format::Json), ("V", Format::Csv), ("v", Format::Csv)] {
        typed(&mut app, "/cnp rate>400");
        press(&mut app, KeyCode::Enter);
        typed(&mut app, key);
        press(&mut app, KeyCode::Enter);
        let effects = app.effects();
        let [Effect::Write { text, to }] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!(text.lines, 8);
        let rates: Vec<f64> = match format {
            Format::Json => {
                let json: serde_json::Value = serde_json::from_slice(&text.octets).unwrap();
                assert_eq!(
                    (&json["table"], &json["at"]),
                    (&"qps".into(), &(START + 20 * SECOND).into())
                );
                let rows = json["rows"].as_array().unwrap().iter();
                rows.map(|row| row["rate_1s"].as_f64().unwrap()).collect()
            }
            Format::Csv => {
                let mut csv = csv::Reader::from_reader(&text.octets[..]);
                let at = csv
                    .headers()
                    .unwrap()
                    .iter()
                    .position(|id| id == "rate_1s")
                    .unwrap();
                csv.records()
                    .map(|row| row.unwrap()[at].parse().unwrap())
                    .collect()
            }
        };
        assert_eq!(rates.len(), 8);
        assert!(rates.is_sorted_by(|a, b| a >= b));
        app.wrote(to, Ok(8));
        assert!(seen(&mut app).contains("8 lines written to fcn-top-qps."));
        press(&mut app, KeyCode::Esc);
        press(&mut app, KeyCode::Esc);
    }
}

#[test]
fn columns_are_selected_and_moved() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    assert!(
        seen(&mut app)
            .lines()
            .nth(7)
            .unwrap()
            .starts_with("▼notified")
    );
    typed(&mut app, "cJ");
    typed(&mut app, "jj ");
    press(&mut app, KeyCode::Enter);
    let heading = seen(&mut app).lines().nth(7).unwrap().to_owned();
    assert!(
        heading.starts_with(" total") && !heading.contains("sender →"),
        "{heading}"
    );
    typed(&mut app, "cd");
    assert!(
        seen(&mut app)
            .lines()
            .nth(7)
            .unwrap()
            .starts_with("▼notified")
    );
    let all = text(&picture(&mut app, 80, 24));
    for _ in 0..3 {
        press(&mut app, KeyCode::Right);
    }
    let scrolled = text(&picture(&mut app, 80, 24));
    let heading = scrolled.lines().nth(6).unwrap();
    assert!(
        heading.starts_with("▼notified") && !heading.contains("sender →"),
        "{heading}"
    );
    for _ in 0..3 {
        press(&mut app, KeyCode::Left);
    }
    assert_eq!(text(&picture(&mut app, 80, 24)), all);
}

#[test]
fn empty_columns_are_hidden_unless_requested() {
    let formatter = Formatter::default();
    let mut tables = incast(20);
    let (_, mut one) = tables.qps[1].clone();
    (one.level_max, one.queue_max) = (None, None);
    let row = |i: u64| (RowId(i), one.clone());
    tables.qps = (0..2_000).map(row).collect();
    // The last of all shown lines, none of which is on the screen.
    tables.qps[1_999].1.level_max = Some(3);
    tables.qps[1_999].1.rate_1s = Some(0.1);
    let mut app = App::new(&Options::default(), &formatter);
    app.update(tables);
    let heading = text(&picture(&mut app, 300, 40));
    let heading = heading.lines().nth(7).unwrap();
    assert!(heading.contains("level") && !heading.contains("deepest queue"));

    typed(&mut app, "c");
    let list = text(&picture(&mut app, 120, 80));
    let mut items = list
        .lines()
        .filter(|line| line.contains("[x]") || line.contains("[ ]"));
    for _ in 0..items.position(|item| item.contains("queue_max")).unwrap() {
        press(&mut app, KeyCode::Down);
    }
    typed(&mut app, " ");
    press(&mut app, KeyCode::Enter);
    let heading = text(&picture(&mut app, 300, 40));
    assert!(heading.lines().nth(7).unwrap().contains("deepest queue"));
}

#[test]
fn the_header_takes_at_most_a_quarter_of_the_height() {
    let formatter = Formatter::default();
    for height in 10..=80 {
        let mut app = busy(&formatter);
        let picture = text(&picture(&mut app, 80, height));
        let head = picture
            .lines()
            .position(|line| line.starts_with("▼notified"));
        assert!(head.unwrap() <= usize::from(height) / 4, "{picture}");
        // Signs of congestion, completeness and problems are always visible.
        for part in ["drops 0", "3 errors, 17 warnings", "eth1 is down"] {
            assert!(picture.contains(part), "{picture}");
        }
    }
}

#[test]
fn the_graph_at_the_top_has_its_scale_at_every_height() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    for (width, height) in [
        (80, 20),
        (80, 24),
        (99, 27),
        (100, 24),
        (132, 24),
        (80, 28),
        (200, 50),
    ] {
        let seen = text(&picture(&mut app, width, height));
        let head: Vec<_> = seen.lines().skip(2).take(4).collect();
        let is_on_top = head[0].starts_with("most ");
        let is_beside = head[1].starts_with("rate 2,234/s, most ");
        let is_below = head[2].starts_with("most ");
        let shown = [is_on_top, is_beside, is_below];
        let expected = [
            height < 28 && width < 100,
            height < 28 && width >= 100,
            height >= 28,
        ];
        assert_eq!(shown, expected, "{seen}");
        assert!(
            head.iter().any(|line| line.starts_with("rate 2,234/s")),
            "{seen}"
        );
    }
}

#[test]
fn a_short_file_has_counts_in_place_of_rates() {
    let formatter = Formatter::default();
    let mut tables = incast(20);
    tables.started = Some(tables.now - SECOND / 3);
    tables.rate_1s = None;
    change(&mut tables, |rows| {
        for (_, row) in rows {
            (row.rate_now, row.rate_1s, row.rate_10s) = (None, None, None);
            row.total = row.qp.map_or(1, |qp| u64::from(qp % 1_000));
        }
    });
    for point in &mut tables.points {
        (point.rate_now, point.rate_1s, point.rate_10s) = (None, None, None);
    }
    let mut app = App::new(&Options::default(), &formatter);
    app.update(tables);
    let qps = seen(&mut app);
    assert!(
        qps.lines().nth(3).unwrap().starts_with("56,210 in all "),
        "{qps}"
    );
    let heading = qps.lines().nth(7).unwrap().trim_start();
    assert!(heading.starts_with("total course"), "{qps}");
    // Those notified most come first.
    let first = |line: &String| line.split_whitespace().next().unwrap().parse().unwrap();
    let totals: Vec<u64> = lines(&mut app).iter().map(first).collect();
    assert_eq!(totals.len(), 13);
    assert!(totals.is_sorted_by(|a, b| a >= b), "{totals:?}");
    typed(&mut app, "2");
    for text in [qps, seen(&mut app)] {
        assert!(!text.contains("–/s"), "{text}");
    }
}

#[test]
fn options_apply_and_invalid_ones_are_reported() {
    let formatter = Formatter::default();
    let options = Options {
        order: "total".to_owned(),
        filter: "cnp".to_owned(),
        ..Options::default()
    };
    let mut app = App::new(&options, &formatter);
    app.update(incast(20));
    let pic = seen(&mut app);
    assert!(
        pic.contains("by total ▲") && pic.contains("filter cnp"),
        "{pic}"
    );
    let options = Options {
        order: "-nothing".to_owned(),
        ..Options::default()
    };
    assert!(seen(&mut App::new(&options, &formatter)).contains("no column `nothing`"));
}

#[test]
fn help_is_available_everywhere_and_scrolls() {
    let formatter = Formatter::default();
    for view in Tab::ALL {
        let mut app = App::new(
            &Options {
                view,
                ..Options::default()
            },
            &formatter,
        );
        app.update(incast(20));
        press(&mut app, KeyCode::F(1));
        let top = text(&picture(&mut app, 80, 24));
        assert!(top.contains(&format!("Help: {}", view.title())));
        press(&mut app, KeyCode::PageDown);
        assert_ne!(text(&picture(&mut app, 80, 24)), top);
        typed(&mut app, "G");
        assert!(text(&picture(&mut app, 80, 24)).contains("severity>=warning"));
        typed(&mut app, "q");
        assert!(!text(&picture(&mut app, 80, 24)).contains("Help:"));
        assert_eq!(app.effects(), []);
        typed(&mut app, "q");
        assert_eq!(app.effects(), [Effect::Quit]);
    }
    // Ctrl-C quits from everywhere.
    for keys in ["?", "/", "s", "jx"] {
        let mut app = busy(&formatter);
        typed(&mut app, keys);
        app.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert_eq!(app.effects(), [Effect::Quit]);
    }
}

#[test]
fn notifications_of_a_flow_can_be_stepped_through_and_zoomed() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    press(&mut app, KeyCode::Enter);
    assert!(seen(&mut app).contains("20.0 s"));
    let bar = |app: &mut App<'_>, what: &str| -> String {
        let seen = seen(app);
        let line = seen.lines().find(|line| line.starts_with(what));
        line.unwrap_or_else(|| panic!("no {what} in\n{seen}"))
            .to_owned()
    };
    assert!(!bar(&mut app, "Notifications  most").contains("from sums"));
    press(&mut app, KeyCode::Left);
    let last = bar(&mut app, "Notification 100 of the last 100 at");
    assert!(last.contains("08:15:19.800"), "{last}");
    // Packets of the following second are not captured yet.
    assert!(
        last.contains(" before") && !last.contains("after"),
        "{last}"
    );
    // A hundred packets on both sides are enough for rates, half as many are not.
    typed(&mut app, "NNNNNNN");
    let around = bar(&mut app, "Notification 93 of the last 100 at");
    assert!(
        around.contains("bit/s before, ") && around.contains("bit/s after"),
        "{around}"
    );
    typed(&mut app, "+");
    let around = bar(&mut app, "Notification 93 of the last 100 at");
    assert!(
        around.contains(" packets before, ") && around.contains(" packets after"),
        "{around}"
    );
    typed(&mut app, "0NN");
    assert!(bar(&mut app, "Notification 99 of the last 100 at").contains("08:15:19.600"));
    typed(&mut app, "+++++");
    // Each has its own column now, and the selected one is in the middle.
    let picture = seen(&mut app);
    let mark = picture
        .lines()
        .find(|line| line.contains('▲') && !line.contains("by"));
    let place = mark.and_then(|line| line.chars().position(|c| c == '▲'));
    assert!(place.is_some_and(|at| (50..70).contains(&at)), "{picture}");
    assert!(picture.contains("625 ms"), "{picture}");
    // There are few packets around it, whose rate would be chance.
    let around = bar(&mut app, "Notification 99 of the last 100 at");
    assert!(
        around.contains("packets before, ") && around.contains("packets after"),
        "{around}"
    );
    press(&mut app, KeyCode::Right);
    assert!(seen(&mut app).contains("Notification 100 of the last 100 at"));
    // Another row starts afresh.
    press(&mut app, KeyCode::Down);
    app.update(incast(20));
    assert!(!seen(&mut app).contains("of the last 100 at"));
}

/// Returns the screen with these time series.
fn seen_with(app: &mut App<'_>, details: &Details) -> String {
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    terminal.draw(|frame| app.draw(frame)).unwrap();
    app.detail(details.clone());
    terminal.draw(|frame| app.draw(frame)).unwrap();
    text(terminal.backend().buffer())
}

#[test]
fn notifications_are_marked_after_their_packets_were_dropped() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    press(&mut app, KeyCode::Enter);
    let mut details = sample::details(&app.wanted_details(), START + 20 * SECOND);
    // Each step has one, according to the sums; three are remembered individually.
    let steps = details.rows.values_mut().next().unwrap();
    let columns = |seen: &str| {
        let marks = seen.lines().find(|line| line.contains('·')).unwrap();
        marks.chars().filter(|c| *c == '·').count()
    };
    steps.notifications.fill(1.0);
    details.packets.drain(..1_900);
    details.notified = Some((0, [5, 9, 14].map(|at| START + at * SECOND).to_vec()));
    let seen = seen_with(&mut app, &details);
    assert_eq!(columns(&seen), 3, "{seen}");
    assert!(
        seen.contains("Data  most") && seen.contains("from sums of 268 ms"),
        "{seen}"
    );
    assert!(seen.contains("CE marks  kept since 08:15:19.000"), "{seen}");
    // If no single one is remembered, each step is marked once.
    details.notified = None;
    let seen = seen_with(&mut app, &details);
    assert_eq!(columns(&seen), 64, "{seen}");
    assert_eq!(seen.matches("from sums of 268 ms").count(), 2, "{seen}");
}

#[test]
fn samples_have_no_time_series() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    change(&mut tables, |rows| {
        rows.truncate(1);
        for (_, row) in rows {
            (row.sampled, row.data_sampled) = (Some(4), Some(4));
            (row.rate_now, row.rate_1s, row.rate_10s) = (None, None, None);
            (row.rate_mean, row.rate_peak) = (None, None);
        }
    });
    app.update(tables);
    for view in ["1", "3", "n"] {
        typed(&mut app, view);
        let mut details = sample::details(&app.wanted_details(), START + 20 * SECOND);
        for course in details.rows.values_mut() {
            course.data.clear();
        }
        let seen = seen_with(&mut app, &details);
        for graph in ["Notifications", "Data"] {
            assert!(
                seen.contains(&format!("{graph}  samples: no time course")),
                "{seen}"
            );
        }
        assert!(seen.contains("~12,000 in all\n"), "{seen}");
        assert!(
            seen.contains(" ×~") && seen.contains("Data           ~"),
            "{seen}"
        );
        assert!(seen.contains(", ~612,345 packets, CE"), "{seen}");
        for part in ["most 0", "CE marks", "no data of this flow", ": data"] {
            assert!(!seen.contains(part), "{part}: {seen}");
        }
    }
}

#[test]
fn samples_of_several_capture_points_are_not_added_up() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    change(&mut tables, |rows| {
        let (_, one) = rows[0].clone();
        *rows = [("leaf1", 172), ("spine1", 128), ("leaf2", 108)]
            .iter()
            .zip(1..)
            .map(|((place, total), id)| {
                let row = QpRecord {
                    total: *total,
                    sampled: Some(4),
                    interface: Some((*place).into()),
                    ..one.clone()
                };
                (RowId(id), row)
            })
            .collect();
    });
    app.update(tables.clone());
    typed(&mut app, "2");
    let mut details = sample::details(&app.wanted_details(), tables.now);
    for (id, row) in &tables.qps {
        let course = details.rows.get_mut(id).unwrap();
        course.notifiers = vec![(row.notifier, row.total)];
    }
    let seen = seen_with(&mut app, &details);
    assert_eq!(seen.matches(" ~172").count(), 2, "{seen}");
    assert!(seen.contains("~108") && !seen.contains("408"), "{seen}");
}

#[test]
fn estimated_totals_are_marked_at_every_size() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    tables.points.truncate(1);
    let point = &mut tables.points[0];
    (point.total, point.samples, point.rate_1s) = (201, 201, None);
    (point.queue_max, point.level_max) = (None, None);
    app.update(tables);
    typed(&mut app, "2");
    for (width, height) in [(40, 10), (60, 20), (80, 24), (160, 45)] {
        let seen = text(&picture(&mut app, width, height));
        assert!(seen.contains(" samples "), "{seen}");
        assert_eq!(seen.matches(" 201").count(), 2, "{seen}");
    }
}

#[test]
fn shortened_capture_points_and_addresses_stay_distinct() {
    let formatter = Formatter::default();
    for (place, sender) in [(true, false), (false, true)] {
        let mut app = App::new(&Options::default(), &formatter);
        let mut tables = incast(20);
        change(&mut tables, |rows| {
            let (_, one) = rows[0].clone();
            let row = |number: u64| {
                let (place, sender) = (u64::from(place) * number, u64::from(sender) * number);
                let name = format!("rack12-leaf-switch-0{place}-port-7");
                let sender = format!("2001:db8:{sender}:aaaa:bbbb:cccc::17");
                let row = QpRecord {
                    interface: Some(name.as_str().into()),
                    sender: Some(sample::address(&sender)),
                    sampled: Some(4),
                    ..one.clone()
                };
                (RowId(number), row)
            };
            *rows = (1..=2).map(row).collect();
        });
        app.update(tables.clone());
        for (view, kind) in [("1", "obeys"), ("2", " cnp ")] {
            typed(&mut app, view);
            let details = sample::details(&app.wanted_details(), tables.now);
            app.detail(details);
            for width in [80, 120] {
                let seen = text(&picture(&mut app, width, 36));
                let is_row = |line: &&str| line.contains("→ 10.0.9.20") && line.contains(kind);
                let rows: Vec<_> = seen.lines().filter(is_row).collect();
                assert!(rows.len() == 2 && rows[0] != rows[1], "{seen}");
            }
        }
    }
}

#[test]
fn rows_differing_by_capture_point_show_it_at_every_width() {
    let formatter = Formatter::default();
    let (long, short) = (["leaf1:s1", "leaf1:spine1"], ["eth0", "eth1"]);
    for (places, sampled, width) in [
        (long, None, 80),
        (long, Some(4), 80),
        (long, None, 132),
        (long, Some(4), 132),
        (short, None, 132),
    ] {
        let mut app = App::new(&Options::default(), &formatter);
        let mut tables = incast(20);
        change(&mut tables, |rows| {
            let (_, one) = rows[0].clone();
            let row = |(place, id): (&str, u64)| {
                let interface = Some(place.into());
                let row = QpRecord {
                    sampled,
                    interface,
                    ..one.clone()
                };
                (RowId(id), row)
            };
            *rows = places.into_iter().zip(1..).map(row).collect();
        });
        app.update(tables.clone());
        for view in ["1", "2"] {
            typed(&mut app, view);
            let seen = text(&picture(&mut app, width, 36));
            assert!(seen.contains("seen on"), "{seen}");
            for place in places {
                let mut lines = seen.lines();
                let is_in = |line: &str| line.contains(place) && line.contains("10.0.1.10 →");
                assert!(lines.any(is_in), "{place}: {seen}");
            }
        }
    }
    // For other rows it is only the first capture point.
    let mut app = busy(&formatter);
    assert!(!text(&picture(&mut app, 300, 80)).contains("seen on"));
}

#[test]
fn a_matrix_of_some_rows_is_not_shown() {
    let formatter = Formatter::default();
    for (rows, shown) in [(256, true), (257, false)] {
        let mut app = App::new(&Options::default(), &formatter);
        let mut tables = incast(20);
        change(&mut tables, |all| {
            let (_, one) = all[0].clone();
            *all = (0..rows).map(|id| (RowId(id), one.clone())).collect();
        });
        app.update(tables);
        typed(&mut app, "2");
        let details = sample::details(&app.wanted_details(), START + 20 * SECOND);
        let seen = seen_with(&mut app, &details);
        assert_eq!(seen.contains("by capture point"), shown, "{seen}");
        // Its flows may be kept even if none is among those examined.
        let seen = seen_with(&mut app, &Details::default());
        let none = "none is among the 256 notified most (Enter shows them)";
        assert_eq!(seen.contains(none), !shown, "{seen}");
        assert_eq!(seen.contains("none is kept"), shown, "{seen}");
    }
}

#[test]
fn a_matrix_counts_packets_of_several_capture_points_once() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    change(&mut tables, |rows| {
        let (_, one) = rows[0].clone();
        let row = |(place, id): (&str, u64)| {
            let interface = Some(place.into());
            (
                RowId(id),
                QpRecord {
                    interface,
                    ..one.clone()
                },
            )
        };
        *rows = ["leaf1", "leaf2"].into_iter().zip(1..).map(row).collect();
    });
    let notifier = tables.points[0].notifier;
    app.update(tables);
    typed(&mut app, "2");
    let mut details = sample::details(&app.wanted_details(), START + 20 * SECOND);
    for (row, count) in details.rows.values_mut().zip([1_111, 1_000]) {
        row.notifiers = vec![(notifier, count)];
    }
    let seen = seen_with(&mut app, &details);
    let heading = seen
        .lines()
        .position(|line| line.contains("by capture point"));
    let below = seen.lines().skip(heading.expect(&seen) + 1);
    let counts: Vec<_> = below
        .map(|line| line.trim_end().rsplit("  ").next())
        .collect();
    assert!(counts.contains(&Some("1,111")), "{seen}");
}

#[test]
fn the_flow_follows_the_first_row_until_the_user_moves() {
    let formatter = Formatter::default();
    let options = Options {
        view: Tab::Flow,
        ..Options::default()
    };
    for (keys, row) in [("", 3), ("j", 1), ("+", 9)] {
        let mut app = App::new(&options, &formatter);
        app.update(incast(20));
        assert_eq!(app.wanted_details().packets, Some(RowId(9)));
        typed(&mut app, keys);
        let mut tables = incast(26);
        change(&mut tables, |rows| rows[2].1.rate_1s = Some(9_000.0));
        app.update(tables);
        assert_eq!(app.wanted_details().packets, Some(RowId(row)), "{keys}");
    }
}

#[test]
fn the_flow_is_the_first_row_without_a_selection() {
    let formatter = Formatter::default();
    for keys in ["3<<3", "31<3", "31j<3", "3j<<3"] {
        let mut app = busy(&formatter);
        for key in keys.chars() {
            match key {
                '<' => press(&mut app, KeyCode::Esc),
                key => typed(&mut app, &key.to_string()),
            }
        }
        assert_eq!(app.wanted_details().packets, Some(RowId(9)), "{keys}");
        assert!(seen(&mut app).contains("Verdict "), "{keys}");
    }
    // Rows that are filtered out still exist.
    let mut app = busy(&formatter);
    typed(&mut app, "/nothing at all");
    press(&mut app, KeyCode::Enter);
    typed(&mut app, "3");
    let seen = seen(&mut app);
    assert!(
        seen.contains("The filter matches none of 13 lines"),
        "{seen}"
    );
}

#[test]
fn a_notification_at_the_epoch_can_be_selected() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    (tables.now, tables.started) = (5_000, Some(0));
    app.update(tables);
    press(&mut app, KeyCode::Enter);
    let mut details = sample::details(&app.wanted_details(), START + 20 * SECOND);
    (details.notified, details.packets) = (Some((0, vec![3_000])), Vec::new());
    let _ = seen_with(&mut app, &details);
    typed(&mut app, "n");
    let seen = seen_with(&mut app, &details);
    assert!(seen.contains("Notification 1 of the last 1 at"), "{seen}");
}

#[test]
fn the_chart_follows_the_selected_notification() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    tables.now = START + 7_200 * SECOND;
    change(&mut tables, |rows| {
        rows.retain(|(_, record)| record.data_packets.is_some());
    });
    app.update(tables);
    press(&mut app, KeyCode::Enter);
    let mut details = sample::details(&app.wanted_details(), START + 7_200 * SECOND);
    details.notified = Some((0, vec![START + 600 * SECOND]));
    details.packets.clear();
    for course in details.rows.values_mut() {
        (course.start, course.step) = (START + 7_064 * SECOND, 1 << 31);
    }
    let _ = seen_with(&mut app, &details);
    typed(&mut app, "n");
    let seen = seen_with(&mut app, &details);
    let axis = |from, to| {
        let mut lines = seen.lines();
        lines.any(|line| line.starts_with(from) && line.ends_with(to))
    };
    assert!(axis("08:24:00", "08:26:00"), "{seen}");
    assert!(seen.contains("Notifications  most 1/s"), "{seen}");
    // Its data of that time was dropped, and is not reported as absent.
    assert!(seen.contains("\nData  kept since 10:12:44"), "{seen}");
}

#[test]
fn all_graphs_start_at_the_first_packet() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    tables.started = Some(START + 15 * SECOND);
    let mut details = sample::details(&app.wanted_details(), tables.now);
    // Neither data nor notifications arrived at once.
    details.traffic.start = START + 18 * SECOND;
    details.traffic.steps.truncate(4);
    app.update(tables);
    assert!(seen_with(&mut app, &details).contains("last 5.00 s"));
    typed(&mut app, "3");
    let seen = seen(&mut app);
    assert!(
        seen.contains("08:15:15  ") && seen.contains(" 5.00 s "),
        "{seen}"
    );
}

#[test]
fn data_and_marks_in_the_header_cover_the_last_second() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut head = |data, data_rate, ce_1s| {
        let mut tables = incast(20);
        (tables.totals.data, tables.totals.ce) = (data, data / 4);
        (tables.data_rate, tables.ce_1s) = (data_rate, ce_1s);
        app.update(tables);
        let seen = seen(&mut app);
        // Time series have data in every step.
        let at = |what| seen.split(what).nth(1).unwrap().lines().next().unwrap();
        (at("data  ").to_owned(), at("CE    ").trim().to_owned())
    };
    assert_eq!(
        head(80, Some(1e6), Some(0.5)),
        ("8.00 Mbit/s".to_owned(), "50 %".to_owned())
    );
    assert_eq!(
        head(80, Some(0.0), None),
        ("0 bit/s".to_owned(), "–".to_owned())
    );
    // If less was captured, all of it.
    assert_eq!(
        head(80, None, Some(0.5)),
        ("80 packets".to_owned(), "25 %".to_owned())
    );
    assert_eq!(
        head(0, Some(0.0), None),
        ("none".to_owned(), "–".to_owned())
    );
}

#[test]
fn rates_cover_only_captured_time() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    press(&mut app, KeyCode::Enter);
    assert!(seen(&mut app).contains("1,234 over 1 s, 990 over 10 s, 1,300 in the busiest second"));
    let mut tables = incast(20);
    tables.since = tables.now - 5 * SECOND - SECOND / 2;
    app.update(tables.clone());
    assert!(seen(&mut app).contains("1,234 over 1 s, 990 over 5 s"));
    tables.since = tables.now - SECOND / 2;
    change(&mut tables, |rows| {
        rows.iter_mut().for_each(|(_, row)| row.rate_10s = None);
    });
    app.update(tables);
    assert!(seen(&mut app).contains("1,234 over 0.5 s, 1,300 in the busiest second"));
}

#[test]
fn lines_keep_their_order_for_some_seconds() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    // The columns between the time series and the verdict do not depend on the rate.
    let senders = |app: &mut App<'_>| -> Vec<String> {
        let sender = |line: &String| line.chars().skip(30).take(20).collect();
        lines(app).iter().map(sender).collect()
    };
    let before = senders(&mut app);
    let turned = |app: &mut App<'_>, second| {
        let mut tables = incast(second);
        change(&mut tables, |rows| {
            for (i, (_, record)) in (1_u32..).zip(rows) {
                record.rate_1s = Some(f64::from(i) * 100.0);
            }
        });
        app.update(tables);
        senders(app)
    };
    assert_eq!(turned(&mut app, 21), before);
    assert_eq!(turned(&mut app, 24), before);
    app.ended(Some("end of file".to_owned()));
    let exact = senders(&mut app);
    assert_ne!(exact, before);
    app.ended(None);
    let after = turned(&mut app, 25);
    assert_ne!(after, before);
    // Requests take effect at once.
    typed(&mut app, "r");
    assert_ne!(senders(&mut app), after);
}

#[test]
fn notes_are_not_counted_as_problems() {
    let formatter = Formatter::default();
    for (findings, badge) in [
        ([9, 0, 0], "9 notes (5)"),
        ([9, 2, 0], "2 warnings (5)"),
        ([9, 0, 1], "1 error (5)"),
        ([0, 0, 0], "no findings"),
    ] {
        let mut app = busy(&formatter);
        let mut tables = incast(21);
        tables.totals.findings = findings;
        app.update(tables);
        let seen = seen(&mut app);
        assert!(seen.lines().nth(1).unwrap().ends_with(badge), "{seen}");
    }
}

#[test]
fn without_violations_the_number_of_checked_rules_is_shown() {
    let formatter = Formatter::default();
    let checked = "checked: 73 of 81 rules; not all: set --able, set --trust";
    let options = Options {
        view: Tab::Events,
        checked: checked.to_owned(),
        ..Options::default()
    };
    let mut app = App::new(&options, &formatter);
    let mut tables = incast(20);
    (tables.rules, tables.events) = (Vec::new(), Vec::new());
    tables.totals.packets = 5;
    app.update(tables);
    let narrow = text(&picture(&mut app, 80, 24));
    let narrow: Vec<&str> = narrow.split_whitespace().collect();
    let all = format!("No findings or events ({checked}) yet in 5 packets.");
    assert!(narrow.join(" ").contains(&all), "{narrow:?}");
    // With findings as well: there might be more.
    app.update(incast(21));
    assert!(seen(&mut app).contains(checked));
}

#[test]
fn a_masked_screen_hides_the_filter() {
    let formatter = Formatter::masked();
    let mut app = busy(&formatter);
    typed(&mut app, "/sender=10.0.1.11");
    press(&mut app, KeyCode::Enter);
    let shown = seen(&mut app);
    assert!(
        shown.contains(" filter …") && !shown.contains("10.0.1"),
        "{shown}"
    );
}

#[test]
fn the_header_labels_its_numbers() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    let mut tables = sample::lossy(20);
    tables.totals.notifications = [1, 0, 0, 0, 0];
    tables.totals.findings = [0; 3];
    app.update(tables.clone());
    // Problems have priority for space.
    let wide = seen(&mut app);
    assert!(
        wide.contains("  2 bad ICRC  4 unreadable  46 PFC pauses "),
        "{wide}"
    );
    (
        tables.totals.icrc_bad,
        tables.totals.cut,
        tables.totals.undecodable,
    ) = (0, 0, 0);
    app.update(tables.clone());
    let wide = seen(&mut app);
    for part in [
        "1 notification in all",
        " losses (5)",
        "data  9",
        "\nnotifications ",
        "\nrate 2,234/s ",
        "\nmost 2,",
    ] {
        assert!(wide.contains(part), "{wide}");
    }
    tables.totals.samples = 77;
    tables.interfaces[0].dropped_kernel = Some(0);
    app.update(tables);
    let narrow = text(&picture(&mut app, 80, 24));
    for part in [" 77 samples ", " 46 PFC pauses", "data  –"] {
        assert!(narrow.contains(part), "{narrow}");
    }
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let formatter = Formatter::default();
    for view in Tab::ALL {
        for keys in ["", "?", "c", "j"] {
            let options = Options {
                view,
                ascii: true,
                ..Options::default()
            };
            let mut app = App::new(&options, &formatter);
            app.update(incast(20));
            typed(&mut app, keys);
            let seen = seen(&mut app);
            assert!(seen.is_ascii(), "{seen}");
            // `<` and `>` are keys.
            let keys = seen.lines().last().unwrap();
            assert!(!keys.contains(['<', '>', '^']), "{keys}");
        }
    }
}

#[test]
fn a_picture_and_a_suspension_are_requested() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    typed(&mut app, "P");
    assert!(seen(&mut app).contains("fcn-top-qps.svg"));
    press(&mut app, KeyCode::Enter);
    assert_eq!(
        app.effects(),
        [Effect::Picture(PathBuf::from("fcn-top-qps.svg"))]
    );
    app.key(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL));
    assert_eq!(app.effects(), [Effect::Suspend]);
}

#[test]
fn repeating_events_show_their_last_time() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    press(&mut app, KeyCode::Char('5'));
    typed(&mut app, "jj");
    let rules = seen(&mut app);
    assert!(
        rules.contains("fastcnp.rate.exceeded 08:15:19.880"),
        "{rules}"
    );
    assert!(
        rules.contains("08:15:19.880000 ×14 since 08:15:17.000000 (frame 4809345)"),
        "{rules}"
    );
    press(&mut app, KeyCode::Enter);
    let packets = seen(&mut app);
    assert!(
        packets.contains("last     2025-11-22 08:15:19.880000"),
        "{packets}"
    );
}

#[test]
fn long_queues_of_a_node_are_separate_numbers() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    for hop in &mut tables.hops {
        (hop.queue, hop.queue_max) = (Some(1_572_864), Some(1_572_864));
    }
    app.update(tables);
    typed(&mut app, "4");
    for width in [80, 120, 200] {
        let paths = text(&picture(&mut app, width, 30));
        assert!(paths.contains("1,572,864 1,572,864 "), "{paths}");
    }
}

#[test]
fn current_values_are_marked_at_an_earlier_moment() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    for second in 0..4 {
        app.update(incast(second));
    }
    app.ended(Some("end of a.pcap".to_owned()));
    typed(&mut app, "2");
    let now = seen(&mut app);
    assert!(now.contains("flows notified ─") && now.contains("end of a.pcap"));
    typed(&mut app, "(");
    let earlier = seen(&mut app);
    assert!(earlier.contains("FROZEN"), "{earlier}");
    let title = "flows notified until now, verdicts of this moment ─";
    assert!(earlier.contains(title), "{earlier}");
    // Also if not all senders have room.
    let wide = text(&picture(&mut app, 120, 40));
    assert!(wide.contains(" 3/13 until now "), "{wide}");
    // The rate in the header is that of the moment shown, without a “now”.
    assert!(
        earlier.contains("\nrate 2,234/s ") && !earlier.contains("now 2,234"),
        "{earlier}"
    );
    assert!(!earlier.contains("end of a.pcap"), "{earlier}");
}

#[test]
fn dates_other_than_the_first_packets_are_shown() {
    const DAY: u64 = 86_400 * SECOND;
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    assert!(!seen(&mut app).contains("2025-"));
    tables.now += 2 * DAY;
    tables.points[0].last_seen += 2 * DAY;
    change(&mut tables, |rows| {
        rows.iter_mut().for_each(|(_, row)| row.last_seen += DAY);
    });
    app.update(tables);
    typed(&mut app, "j1");
    let row = seen(&mut app);
    assert!(row.contains("LIVE  2025-11-24 08:15:20"), "{row}");
    let seen_line = row.lines().find(|line| line.starts_with("Seen")).unwrap();
    // If the two dates differ, both are shown.
    let both = "2025-11-22 08:15:00.000 to 2025-11-23 ";
    assert!(seen_line.contains(both), "{row}");
    typed(&mut app, "6");
    let all = seen(&mut app);
    assert!(
        all.contains("UTC to 2025-11-24 08:15:20.000000, 48.0 h"),
        "{all}"
    );
    typed(&mut app, "2");
    let wide = text(&picture(&mut app, 240, 40));
    assert!(wide.contains(" 2025-11-24 08:15:20.000"), "{wide}");
}

#[test]
fn truncated_panels_are_marked() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    tables.rules.clear();
    tables.events.drain(..1);
    tables.events.truncate(1);
    tables.events[0].frame = Some(4_812_345);
    tables.events[0].times = 3;
    tables.events[0].last += SECOND;
    tables.events[0].from = Some(sample::address("2001:db8:ffff::3"));
    tables.events[0].to = Some(sample::address("2001:db8:1::1"));
    change(&mut tables, |rows| {
        for (_, row) in rows {
            (row.qp, row.flow_label) = (None, Some(0xabcde));
        }
    });
    app.update(tables);
    typed(&mut app, "5");
    let events = text(&picture(&mut app, 80, 24));
    assert!(
        events.contains(" since 08:15:13.000000 (frame 4812345) "),
        "{events}"
    );
    assert!(events.contains(" …:ffff::3 → …:db8:1::1\n"), "{events}");
    typed(&mut app, "2");
    for width in [80, 120] {
        let points = text(&picture(&mut app, width, 30));
        assert!(points.contains(" label 0xabcde "), "{points}");
    }
}

#[test]
fn addresses_take_precedence_over_bars() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    change(&mut tables, |rows| {
        for (number, (_, row)) in (0..).zip(rows) {
            row.rate_1s = Some(f64::from(100 - number));
            row.sender = Some([192, 168, 100, number].into());
            row.receiver = Some([192, 168, 200, 100 + number].into());
        }
    });
    app.update(tables);
    let wide = seen(&mut app);
    assert!(wide.contains("192.168.100.3 → 192.168.200.103"), "{wide}");
    // A graph that takes a few needed cells gets narrower, and stays.
    typed(&mut app, "2");
    let mut had = false;
    for width in 60..120 {
        let points = text(&picture(&mut app, width, 24));
        let has = points.contains(" course ");
        assert!(has || !had, "{width}: {points}");
        had |= has;
    }
    assert!(had);
    typed(&mut app, "1");
    let narrow = text(&picture(&mut app, 60, 20));
    for number in 0..5 {
        let ends = [format!("00.{number} → "), format!("00.10{number}")];
        let has = |line: &str| ends.iter().all(|end| line.contains(end));
        assert!(narrow.lines().any(has), "{narrow}");
    }
}

#[test]
fn unknown_notifiers_are_not_reported_as_none() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    change(&mut tables, |rows| rows[0].1.notifiers = 5);
    tables.points[3].flows = 0;
    tables.points[3].notifier = sample::address("10.255.7.9");
    app.update(tables);
    typed(&mut app, "gj");
    let row = seen(&mut app);
    let story = row.lines().find(|line| line.starts_with("Notified by"));
    assert!(story.unwrap().contains(", and more: "), "{row}");
    typed(&mut app, "2jjjj");
    let points = text(&picture(&mut app, 160, 40));
    let point = |times| {
        points
            .lines()
            .filter(|line| line.contains("10.255.7.9"))
            .nth(times)
    };
    assert!(point(0).unwrap().contains(" ? "), "{points}");
    assert!(point(2).unwrap().ends_with("  ?"), "{points}");
    let why = "unknown: rows keep only their first 4 notifiers";
    assert!(points.contains(why), "{points}");
}

#[test]
fn pending_time_series_are_not_shown_as_empty() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    for (view, pending) in [("1", 13), ("2", 4), ("3", 1)] {
        typed(&mut app, view);
        let drawn = terminal.draw(|frame| app.draw(frame)).unwrap();
        let before = text(drawn.buffer);
        // At its end, it shows that a text continues.
        let alone = |line: &&str| line.contains(" … ") || line.trim() == "…";
        let lines = before.lines().skip(8).filter(alone).count();
        assert!(lines >= pending, "{before}");
        let course = seen(&mut app);
        let left = course.lines().skip(8).filter(alone).count();
        assert_eq!(left, 0, "{course}");
        app.detail(Details::default());
        app.update(incast(21));
    }
}

/// Returns a screen that has shown five minutes replayed fast, at the oldest remembered moment or
/// that far back, and its time series, of which little more than the last two minutes are kept.
fn long_ago<'w>(formatter: &'w Formatter, back: &str) -> (App<'w>, Details) {
    let mut app = App::new(&Options::default(), formatter);
    for second in (0..=300).step_by(10) {
        app.update(incast(second));
    }
    let wanted = WantedDetails {
        rows: incast(300).qps.iter().map(|(id, _)| *id).collect(),
        ..WantedDetails::default()
    };
    let mut details = sample::details(&wanted, START + 300 * SECOND);
    details.traffic.start = START + 164 * SECOND;
    details.traffic.step = 1 << 31;
    for course in details.rows.values_mut() {
        (course.start, course.step) = (details.traffic.start, 1 << 31);
    }
    typed(&mut app, back);
    (app, details)
}

#[test]
fn dropped_data_is_not_reported_as_absent() {
    let formatter = Formatter::default();
    let (mut app, details) = long_ago(&formatter, "(3");
    let seen = seen_with(&mut app, &details);
    assert!(seen.contains("FROZEN -4 min 40 s"), "{seen}");
    for part in ["\nNotifications", "\nData"] {
        let kept = format!("{part}  kept since 08:17:44.000\n");
        assert!(seen.contains(&kept), "{seen}");
    }
    let head = seen.lines().find(|line| line.starts_with("notifications "));
    assert!(head.unwrap().contains(" kept since 08:17:44 "), "{seen}");
}

#[test]
fn the_graph_at_the_top_begins_with_the_kept_data() {
    let formatter = Formatter::default();
    let (mut app, details) = long_ago(&formatter, "{{{");
    let seen = seen_with(&mut app, &details);
    assert!(seen.contains("FROZEN -30 s"), "{seen}");
    // 106 s of two minutes.
    assert!(seen.contains("\nlast 106 s "), "{seen}");
    typed(&mut app, ")");
    assert!(seen_with(&mut app, &details).contains("\nlast 2 minutes "));
}

#[test]
fn time_series_at_an_earlier_moment_reach_its_end() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    for second in 0..=60 {
        app.update(incast(second));
    }
    let mut details = sample::details(&app.wanted_details(), START + 60 * SECOND);
    let (start, step) = (START - START % (1 << 30), 1 << 30);
    (details.traffic.start, details.traffic.step) = (start, step);
    let one = details.traffic.steps[0];
    details.traffic.steps.fill(TrafficStep {
        notifications: [1; 5],
        ..one
    });
    for course in details.rows.values_mut() {
        (course.start, course.step) = (start, step);
        course.notifications = vec![1.0; 57];
    }
    // Widths of each graph in the header and in the rows, from left to right.
    let widths = |seen: &str| {
        let bars = seen.split(|c| !('▁'..='█').contains(&c));
        let widths = bars.map(|bars| bars.chars().count());
        widths.filter(|width| *width > 0).collect::<Vec<_>>()
    };
    let now = seen_with(&mut app, &details);
    typed(&mut app, "{{{{{");
    let then = seen_with(&mut app, &details);
    assert!(then.contains("FROZEN -50 s"), "{then}");
    assert_eq!(widths(&now), widths(&then), "{now}{then}");
}

#[test]
fn later_notifiers_are_not_shown_at_an_earlier_moment() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    for second in 0..20 {
        app.update(incast(second));
    }
    app.update(incast(20));
    let by = |seen: &str| {
        let line = seen.lines().find(|line| line.starts_with("Notified by"));
        line.unwrap().to_owned()
    };
    let now = by(&seen(&mut app));
    assert!(now.contains(" ×"), "{now}");
    typed(&mut app, "(");
    let then = by(&seen(&mut app));
    assert!(
        !then.contains(['×']) && !then.contains("until now"),
        "{then}"
    );
}

#[test]
fn a_pause_before_the_end_does_not_show_it() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    app.update(incast(20));
    typed(&mut app, "p");
    app.update(incast(20));
    app.ended(Some("end of a.pcap".to_owned()));
    let at_the_end = seen(&mut app);
    assert!(at_the_end.contains("PAUSED") && at_the_end.contains("end of a.pcap"));
    app.update(incast(60));
    let before = seen(&mut app);
    assert!(before.contains("PAUSED 40 s"), "{before}");
    assert!(!before.contains("end of a.pcap"), "{before}");
}

#[test]
fn evicted_notifiers_are_reported_beside_those_kept() {
    let formatter = Formatter::default();
    let mut app = App::new(&Options::default(), &formatter);
    let mut tables = incast(20);
    tables.totals.notifiers_evicted = 90_625;
    app.update(tables);
    typed(&mut app, "2");
    let seen = seen(&mut app);
    assert!(seen.contains("  90,625 more evicted "), "{seen}");
}

#[test]
fn rows_of_one_flow_are_distinct_on_the_smallest_screen() {
    let formatter = Formatter::default();
    let rows = |change_one: &dyn Fn(&mut QpRecord, u64)| {
        let mut tables = incast(20);
        change(&mut tables, |rows| {
            let (_, one) = rows[0].clone();
            let row = |id| {
                let mut row = one.clone();
                change_one(&mut row, id);
                (RowId(id), row)
            };
            *rows = (1..=3).map(row).collect();
        });
        tables
    };
    let by_kind = rows(&|row, id| row.kind = fcn_wire::Kind::ALL[id as usize]);
    let by_qp = rows(&|row, id| row.qp = Some(0xab_cde0 + id as u32));
    let by_both = rows(&|row, id| {
        (row.qp, row.interface) = (Some(0xab_cde0 + id as u32), Some("rack-1 port 17".into()));
        (row.sender, row.receiver) = (None, None);
        if id > 1 {
            row.interface = Some("rack-2 port 17".into());
            row.qp = Some(0xab_cde0);
        }
        if id > 2 {
            row.interface = Some("rack-3 port 17".into());
        }
    });
    for tables in [by_kind, by_qp, by_both] {
        let mut app = App::new(&Options::default(), &formatter);
        app.update(tables);
        let seen = text(&picture(&mut app, 40, 10));
        let rows: Vec<_> = seen.lines().skip(3).take(3).collect();
        assert!(rows[0] != rows[1] && rows[1] != rows[2], "{seen}");
        assert!(rows[0] != rows[2] && rows[2].contains("10.0."), "{seen}");
    }
}

#[test]
fn a_flow_opens_the_rows_of_its_notifications() {
    let formatter = Formatter::default();
    let mut app = busy(&formatter);
    press(&mut app, KeyCode::Char('8'));
    typed(&mut app, "/stalls>0");
    press(&mut app, KeyCode::Enter);
    let stalled = seen(&mut app);
    assert!(
        stalled.contains("10.0.1.12") && !stalled.contains("10.0.1.11"),
        "{stalled}"
    );
    // It is not notified.
    press(&mut app, KeyCode::Enter);
    assert!(seen(&mut app).contains("RNR NAK, then up to 655 ms without data"));
    typed(&mut app, "/");
    app.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
    typed(&mut app, "verdict=obeys");
    press(&mut app, KeyCode::Enter);
    press(&mut app, KeyCode::Enter);
    let rows = seen(&mut app);
    assert!(
        rows.contains("of 13 rows") && !rows.contains("0 of 13"),
        "{rows}"
    );
}
