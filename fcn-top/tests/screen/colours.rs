//! Colours: only those that are the same in every terminal, no background except within bars, none
//! if none are wanted.

use super::sample::{incast, lossy};
use super::{picture, press, text, typed};
use crossterm::event::KeyCode;
use fcn_top::text::Formatter;
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

/// Returns the relative luminance, by WCAG.
fn luminance(rgb: [u8; 3]) -> f64 {
    let linear = |level: u8| {
        let level = f64::from(level) / 255.0;
        if level <= 0.04045 {
            level / 12.92
        } else {
            ((level + 0.055) / 1.055).powf(2.4)
        }
    };
    let [red, green, blue] = rgb.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// Returns the contrast of a text on a background, by WCAG; that of the terminal's default text is
/// up to the user.
fn contrast(text: Color, ground: &[u8; 3]) -> f64 {
    let number = match text {
        Color::Reset => return f64::INFINITY,
        Color::Indexed(number @ 16..) => number - 16,
        _ => panic!("{text:?} is not the same in every terminal"),
    };
    let level = |step: u8| if step == 0 { 0 } else { 55 + step * 40 };
    let rgb = match number {
        grey @ 216.. => [8 + (grey - 216) * 10; 3],
        cube => [cube / 36, cube / 6 % 6, cube % 6].map(level),
    };
    let (a, b) = (luminance(rgb) + 0.05, luminance(*ground) + 0.05);
    a.max(b) / a.min(b)
}

#[test]
fn colours_are_readable_and_backgrounds_are_only_in_bars() {
    let formatter = Formatter::default();
    for colours in ALL {
        for view in Tab::ALL {
            for keys in ["", "j", "?", "s", "c", "/x=", "p", "x"] {
                let mut app = App::new(
                    &Options {
                        view,
                        colours,
                        ..Options::default()
                    },
                    &formatter,
                );
                app.update(lossy(20));
                typed(&mut app, keys);
                for cell in &picture(&mut app, 100, 30).content {
                    // A stacked bar continues above the first colour.
                    let is_bar = "▁▂▃▄▅▆▇".contains(cell.symbol());
                    assert!(is_bar || cell.bg == Color::Reset, "{cell:?}");
                    assert!(
                        colours != Colours::None
                            || (cell.fg, cell.bg) == (Color::Reset, Color::Reset),
                        "{cell:?}"
                    );
                    let grounds: &[[u8; 3]] = match colours {
                        Colours::Dark => &[[0; 3]],
                        Colours::Light => &[[255; 3]],
                        Colours::Auto | Colours::None => &[[0; 3], [255; 3]],
                    };
                    let least = if grounds.len() > 1 { 3.0 } else { 4.5 };
                    let readable = |ground| contrast(cell.fg, ground) >= least;
                    assert!(grounds.iter().all(readable), "{colours:?}: {cell:?}");
                }
            }
        }
    }
}

#[test]
fn drops_stand_out() {
    let formatter = Formatter::default();
    for (colours, fg) in [
        (Colours::Dark, Color::Indexed(203)),
        (Colours::Light, Color::Indexed(160)),
        (Colours::Auto, Color::Indexed(160)),
        (Colours::None, Color::Reset),
    ] {
        let mut app = App::new(
            &Options {
                colours,
                ..Options::default()
            },
            &formatter,
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
fn only_the_selected_line_is_reversed() {
    let formatter = Formatter::default();
    for colours in ALL {
        let mut app = App::new(
            &Options {
                colours,
                ..Options::default()
            },
            &formatter,
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
fn disobedient_senders_stand_out() {
    let formatter = Formatter::default();
    let mut app = App::new(
        &Options {
            colours: Colours::Dark,
            ..Options::default()
        },
        &formatter,
    );
    app.update(incast(20));
    assert_eq!(cell_at(&mut app, "does not").fg, Color::Indexed(203));
    assert_eq!(cell_at(&mut app, "obeys").fg, Color::Indexed(72));
}
