//! Colours: sixteen at most, no background but within bars, none where none are wanted.

use super::sample::{incast, lossy};
use super::{picture, press, text, typed};
use crossterm::event::KeyCode;
use fcn_top::text::Words;
use fcn_top::view::{App, Colours, Options, Tab};
use ratatui::style::{Color, Modifier};

const ALL: [Colours; 4] = [Colours::Auto, Colours::Dark, Colours::Light, Colours::None];

fn cell_at(app: &mut App<'_>, what: &str) -> ratatui::buffer::Cell {
    let buffer = picture(app, 120, 40);
    let text = text(&buffer);
    let found = text
        .lines()
        .enumerate()
        .find_map(|(y, line)| Some((y, line.find(what)?, line)));
    let (y, at, line) = found.unwrap_or_else(|| panic!("no `{what}` in\n{text}"));
    buffer[(line[..at].chars().count() as u16, y as u16)].clone()
}

#[test]
fn no_background_but_within_bars_and_the_terminals_colours() {
    let words = Words::default();
    for colours in ALL {
        for view in Tab::ALL {
            for keys in ["", "j", "?", "s", "c", "/x=", "p", "x"] {
                let mut app = App::new(
                    &Options {
                        view,
                        colours,
                        ..Options::default()
                    },
                    &words,
                );
                app.update(lossy(20));
                typed(&mut app, keys);
                for cell in &picture(&mut app, 100, 30).content {
                    // What is stacked goes on above the bar.
                    let is_bar = "▁▂▃▄▅▆▇".contains(cell.symbol());
                    assert!(is_bar || cell.bg == Color::Reset, "{cell:?}");
                    assert!(!matches!(
                        cell.fg,
                        Color::Rgb(..) | Color::Indexed(_) | Color::White | Color::Black
                    ));
                    assert!(
                        colours != Colours::None
                            || (cell.fg, cell.bg) == (Color::Reset, Color::Reset),
                        "{cell:?}"
                    );
                    let unreadable = match colours {
                        Colours::Light => cell.fg == Color::Yellow,
                        Colours::Dark => cell.fg == Color::Blue,
                        _ => matches!(cell.fg, Color::Blue | Color::Yellow),
                    };
                    assert!(!unreadable, "{colours:?}: {cell:?}");
                }
            }
        }
    }
}

#[test]
fn drops_stand_out() {
    let words = Words::default();
    for (colours, fg) in [
        (Colours::Dark, Color::LightRed),
        (Colours::Light, Color::Red),
        (Colours::Auto, Color::Red),
        (Colours::None, Color::Reset),
    ] {
        let mut app = App::new(
            &Options {
                colours,
                ..Options::default()
            },
            &words,
        );
        app.update(lossy(20));
        let lost = cell_at(&mut app, "drops");
        assert_eq!(lost.fg, fg);
        assert!(lost.modifier.contains(Modifier::BOLD));
        app.update(incast(21));
        let fine = cell_at(&mut app, "drops");
        assert_ne!((fine.fg, fine.modifier), (lost.fg, lost.modifier));
    }
}

#[test]
fn the_chosen_line_is_reversed_and_only_that() {
    let words = Words::default();
    for colours in ALL {
        let mut app = App::new(
            &Options {
                colours,
                ..Options::default()
            },
            &words,
        );
        app.update(incast(20));
        press(&mut app, KeyCode::Down);
        press(&mut app, KeyCode::Down);
        let buffer = picture(&mut app, 80, 24);
        for y in 6..23 {
            let reversed = (0..80)
                .filter(|&x| buffer[(x, y)].modifier.contains(Modifier::REVERSED))
                .count();
            assert_eq!(reversed, if y == 8 { 80 } else { 0 }, "line {y}");
        }
    }
}

#[test]
fn who_does_not_obey_stands_out() {
    let words = Words::default();
    let mut app = App::new(
        &Options {
            colours: Colours::Dark,
            ..Options::default()
        },
        &words,
    );
    app.update(incast(20));
    assert_eq!(cell_at(&mut app, "does not").fg, Color::LightRed);
    assert_eq!(cell_at(&mut app, "obeys").fg, Color::Green);
}
