//! Snapshots of the screen: every view in every size, and special states.

use super::sample::{incast, lossy};
use super::{picture, press, text, typed};
use crossterm::event::KeyCode;
use fcn_top::tables::Tables;
use fcn_top::text::Formatter;
use fcn_top::view::{App, Options, Tab};
use insta::assert_snapshot;
use std::path::Path;

const SIZES: [(u16, u16); 4] = [(40, 10), (80, 24), (160, 45), (300, 80)];

/// Asserts that the picture matches its snapshot.
fn as_committed(name: &str, app: &mut App<'_>, (width, height): (u16, u16)) {
    assert_snapshot!(
        format!("{name}-{width}x{height}"),
        text(&picture(app, width, height))
    );
}

fn on(view: Tab, formatter: &Formatter) -> App<'_> {
    App::new(
        &Options {
            view,
            ..Options::default()
        },
        formatter,
    )
}

/// Returns a screen that has shown an incast for three seconds.
fn busy(view: Tab, formatter: &Formatter) -> App<'_> {
    let mut app = on(view, formatter);
    for second in 18..21 {
        app.update(incast(second));
    }
    app
}

#[test]
fn busy_views() {
    let formatter = Formatter::default();
    for view in Tab::ALL {
        for size in SIZES {
            let mut app = busy(view, &formatter);
            as_committed(&format!("busy-{}", view.id()), &mut app, size);
        }
    }
}

#[test]
fn empty_views() {
    let formatter = Formatter::default();
    for view in Tab::ALL {
        for size in SIZES {
            let mut app = on(view, &formatter);
            app.update(Tables::default());
            as_committed(&format!("empty-{}", view.id()), &mut app, size);
        }
    }
}

#[test]
fn states() {
    let formatter = Formatter::default();
    for size in SIZES {
        let mut app = busy(Tab::Qps, &formatter);
        typed(&mut app, "jjjp");
        app.update(incast(20));
        app.update(incast(27));
        as_committed("paused", &mut app, size);

        let mut app = busy(Tab::Qps, &formatter);
        typed(&mut app, "[[");
        as_committed("frozen", &mut app, size);

        let mut app = busy(Tab::Qps, &formatter);
        typed(&mut app, "/kind=cnp rate>300");
        as_committed("filtering", &mut app, size);
        press(&mut app, KeyCode::Enter);
        as_committed("filtered", &mut app, size);
        typed(&mut app, "/ and (");
        as_committed("filter-error", &mut app, size);

        let mut app = busy(Tab::Qps, &formatter);
        typed(&mut app, "?");
        as_committed("help", &mut app, size);

        let mut app = busy(Tab::Qps, &formatter);
        typed(&mut app, "jx");
        as_committed("export", &mut app, size);
        press(&mut app, KeyCode::Enter);
        app.exported(Path::new("fcn-top-qp-0x1200.pcapng"), Ok((12_345, 0)));
        as_committed("exported", &mut app, size);

        let mut app = busy(Tab::Qps, &formatter);
        app.ended(Some("end of file".to_owned()));
        as_committed("ended", &mut app, size);

        let mut app = busy(Tab::Qps, &formatter);
        typed(&mut app, "s");
        as_committed("sort", &mut app, size);

        let mut app = busy(Tab::Qps, &formatter);
        typed(&mut app, "c");
        as_committed("columns", &mut app, size);

        let mut app = busy(Tab::Events, &formatter);
        typed(&mut app, "j");
        press(&mut app, KeyCode::Enter);
        as_committed("event", &mut app, size);

        let mut app = busy(Tab::Notifiers, &formatter);
        typed(&mut app, "j");
        press(&mut app, KeyCode::Enter);
        as_committed("told-by", &mut app, size);

        let mut app = busy(Tab::Nics, &formatter);
        press(&mut app, KeyCode::Enter);
        as_committed("local-qps", &mut app, size);

        let mut app = busy(Tab::Interfaces, &formatter);
        app.update(lossy(21));
        as_committed("drops", &mut app, size);
    }
}

#[test]
fn small_terminals() {
    let formatter = Formatter::default();
    for view in Tab::ALL {
        as_committed(
            &format!("small-{}", view.id()),
            &mut busy(view, &formatter),
            (40, 10),
        );
    }
    as_committed("too-small", &mut busy(Tab::Qps, &formatter), (38, 9));
}

#[test]
fn masked_addresses() {
    let formatter = Formatter::masked();
    for view in Tab::ALL {
        for (keys, enter) in [
            ("", false),
            ("?", false),
            ("j", true),
            ("x", false),
            ("p", false),
        ] {
            let mut app = busy(view, &formatter);
            app.ended(Some("10.0.9.20 is cut".to_owned()));
            typed(&mut app, keys);
            if enter {
                press(&mut app, KeyCode::Enter);
            }
            let seen = super::seen(&mut app);
            for part in ["10.0.9", "10.255", "db8:ffff"] {
                assert!(!seen.contains(part) || keys == "?", "{part} in\n{seen}");
            }
        }
    }
}
