//! A comparison drawn as SVG: egress queue and total rate over time, and the reaction time over the
//! parameter.
//!
//! Drawing only; equal comparisons give identical octets.

use crate::compare::figures::{REACTION_TIME, Unit, show};
use crate::compare::{Comparison, Group};
use crate::scenario::model::Mechanism;
use crate::sim::outcome::Metrics;
use crate::units::Ps;
use fcn_tool::failure::{Failure, Result};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, KeyPointHint, Ranged, ValueFormatter};
use plotters::prelude::*;

/// Width of the drawing, in pixels.
const WIDTH: u32 = 1_100;
/// Height of a row of panels, in pixels.
const ROW: u32 = 340;
/// Height of the title, in pixels.
const TITLE: u32 = 44;
/// Height of the legend, in pixels.
const LEGEND: u32 = 34;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = core::result::Result<(), Box<dyn std::error::Error>>;

/// Draws the comparison as an SVG document.
///
/// # Errors
/// The drawing library fails.
pub fn svg(comparison: &Comparison) -> Result<String> {
    let rows = comparison.groups.len() + usize::from(comparison.over.is_some());
    let height = TITLE + LEGEND + ROW * u32::try_from(rows).unwrap_or(u32::MAX / ROW / 2);
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
    draw(&area, comparison, rows)
        .map_err(|error| Failure::failed("cannot draw the comparison").and(error.to_string()))?;
    drop(area);
    Ok(text)
}

fn draw(area: &Area<'_>, comparison: &Comparison, rows: usize) -> Drawn {
    area.fill(&WHITE)?;
    let (title, below) = area.split_vertically(TITLE);
    let heading = heading(comparison);
    title.draw(&Text::new(heading, (16, 14), ("sans-serif", 24)))?;
    let (legend, panels) = below.split_vertically(LEGEND);
    draw_legend(&legend, comparison)?;
    let mut panels = panels.split_evenly((rows, 1)).into_iter();
    if let Some(key) = &comparison.over
        && let Some(panel) = panels.next()
    {
        draw_reaction(&panel, key, comparison)?;
    }
    for (group, panel) in comparison.groups.iter().zip(panels) {
        let (left, right) = panel.split_horizontally(WIDTH / 2);
        let suffix = match (&comparison.over, &group.value) {
            (Some(key), Some(value)) => format!(" at {key} {value}"),
            _ => String::new(),
        };
        let queue = (
            format!("Deepest egress queue{suffix}"),
            "queue",
            Unit::Octets,
        );
        draw_over_time(&left, queue, group, |metrics| {
            let series = metrics.queue_over_time.iter();
            series.map(|(at, octets)| (*at, *octets as f64)).collect()
        })?;
        let rate = (
            format!("Sum of senders' rates{suffix}"),
            "rate",
            Unit::BitsPerSecond,
        );
        draw_over_time(&right, rate, group, |metrics| {
            metrics.rate_over_time.clone()
        })?;
    }
    area.present()?;
    Ok(())
}

fn heading(comparison: &Comparison) -> String {
    let (seed, seeds) = comparison.seeds;
    let name = &comparison.scenario;
    if seeds == 1 {
        format!("{name}, seed {seed}")
    } else {
        format!("{name}: over time with seed {seed}; reaction times are medians of {seeds} seeds")
    }
}

/// Returns the mechanism's colour from Okabe and Ito's palette, which people with colour blindness
/// can distinguish.
const fn colour(mechanism: Mechanism) -> RGBColor {
    match mechanism {
        Mechanism::None => RGBColor(0, 0, 0),
        Mechanism::Pfc => RGBColor(230, 159, 0),
        Mechanism::Cnp => RGBColor(213, 94, 0),
        Mechanism::SwitchCnp => RGBColor(240, 228, 66),
        Mechanism::FastCnp => RGBColor(0, 114, 178),
        Mechanism::FastCnpIoam => RGBColor(86, 180, 233),
        Mechanism::Proxy => RGBColor(0, 158, 115),
        Mechanism::WanFcn => RGBColor(204, 121, 167),
    }
}

/// Returns the mechanisms that were played in any group, in the order of the comparison.
fn played(comparison: &Comparison) -> Vec<Mechanism> {
    let mut found = Vec::new();
    for (mechanism, _) in comparison.groups.iter().flat_map(Group::played) {
        if !found.contains(&mechanism) {
            found.push(mechanism);
        }
    }
    found
}

fn draw_legend(area: &Area<'_>, comparison: &Comparison) -> Drawn {
    let mut x = 16;
    for mechanism in played(comparison) {
        let (line, id) = ([(x, 16), (x + 28, 16)], mechanism.id());
        area.draw(&PathElement::new(line, stroke(mechanism)))?;
        area.draw(&Text::new(id, (x + 36, 9), ("sans-serif", 17)))?;
        x += 60 + 9 * i32::try_from(id.len()).unwrap_or(0);
    }
    Ok(())
}

fn stroke(mechanism: Mechanism) -> ShapeStyle {
    colour(mechanism).stroke_width(2)
}

/// Points of a line, in the units of the axes.
type Series = Vec<(f64, f64)>;

fn draw_over_time(
    area: &Area<'_>,
    (caption, name, unit): (String, &str, Unit),
    group: &Group,
    series: fn(&Metrics) -> Vec<(Ps, f64)>,
) -> Drawn {
    let played = group.played();
    let lines: Vec<_> = played
        .filter_map(|(mechanism, runs)| Some((mechanism, series(runs.first()?))))
        .collect();
    let points = || lines.iter().flat_map(|(_, series)| series);
    let end = points()
        .map(|(at, _)| at.as_seconds_f64())
        .fold(1e-9, f64::max);
    let top = points().map(|(_, y)| *y).fold(1.0, f64::max);
    let (time_name, per_second) = time_scale(end);
    let scaled = |series: &Vec<(Ps, f64)>| -> Series {
        let series = series.iter();
        series
            .map(|(at, y)| (at.as_seconds_f64() * per_second, *y))
            .collect()
    };
    let lines: Vec<_> = lines
        .iter()
        .map(|(m, series)| (*m, scaled(series)))
        .collect();
    let time = format!("time ({time_name})");
    let x = (0.0..end * per_second, &*time, 6);
    let y = (0.0..top * 1.05, name, unit);
    chart(area, &caption, x, &|x| plain(*x), y, &lines, false)
}

/// Draws lines over axes. Each axis has a range and a name; `x_labels` is the number of labels of
/// the horizontal one. With `dots`, the points are drawn, too.
fn chart<X, Y>(
    area: &Area<'_>,
    caption: &str,
    (x, x_name, x_labels): (X, &str, usize),
    x_label: &dyn Fn(&f64) -> String,
    (y, y_name, unit): (Y, &str, Unit),
    lines: &[(Mechanism, Series)],
    dots: bool,
) -> Drawn
where
    X: AsRangedCoord<Value = f64, CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>>,
    Y: AsRangedCoord<Value = f64, CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>>,
{
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(96)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(x_name)
        .y_desc(y_name)
        .x_labels(x_labels)
        .y_labels(6)
        .x_label_formatter(&x_label)
        .y_label_formatter(&|y| show(unit, *y))
        .label_style(("sans-serif", 14))
        .draw()?;
    for (place, (mechanism, series)) in lines.iter().enumerate() {
        chart.draw_series(LineSeries::new(series.iter().copied(), stroke(*mechanism)))?;
        // Decreasing radius, so that all dots are visible if several mechanisms have the same
        // reaction time.
        let radius = 3 + i32::try_from(lines.len() - 1 - place).unwrap_or(0);
        let dot = |point: &(f64, f64)| Circle::new(*point, radius, colour(*mechanism).filled());
        chart.draw_series(series.iter().filter(|_| dots).map(dot))?;
    }
    Ok(())
}

/// Returns the unit for a time axis that ends after `seconds`, and the number of these units per
/// second.
fn time_scale(seconds: f64) -> (&'static str, f64) {
    if seconds < 1e-3 {
        ("µs", 1e6)
    } else if seconds < 1.0 {
        ("ms", 1e3)
    } else {
        ("s", 1.0)
    }
}

/// Formats a number with at most three decimals, without trailing zeros.
fn plain(value: f64) -> String {
    ((value * 1e3).round() / 1e3).to_string()
}

/// Draws the reaction time of each mechanism over the parameter's values, evenly spaced in the
/// given order.
fn draw_reaction(area: &Area<'_>, key: &str, comparison: &Comparison) -> Drawn {
    let times = |mechanism: Mechanism| -> Series {
        let of_group = |(index, group): (usize, &Group)| {
            let (_, runs) = group.played().find(|(m, _)| *m == mechanism)?;
            Some((index as f64, REACTION_TIME.spread(runs)?.median))
        };
        let groups = comparison.groups.iter().enumerate();
        groups.filter_map(of_group).collect()
    };
    let mechanisms = played(comparison).into_iter();
    let lines: Vec<_> = mechanisms.map(|m| (m, times(m))).collect();
    let values = || lines.iter().flat_map(|(_, series)| series).map(|(_, y)| *y);
    let least = values().fold(f64::INFINITY, f64::min);
    let top = values().fold(0.0, f64::max);
    if top <= 0.0 {
        let (text, at) = ("No sender slowed down", (WIDTH as i32 / 2 - 80, 100));
        area.draw(&Text::new(text, at, ("sans-serif", 18)))?;
        return Ok(());
    }
    let caption = format!("Reaction time over {key}");
    let groups = comparison.groups.iter();
    let values: Vec<&str> = groups.filter_map(|group| group.value.as_deref()).collect();
    let x = (Ordinals(values.len()), key, values.len().max(2));
    let place = |x: &f64| {
        values
            .get(x.round() as usize)
            .map_or_else(String::new, ToString::to_string)
    };
    let (name, unit) = ("onset to first cut", Unit::Nanoseconds);
    // Over distances, reaction times span decades; a time of 0 cannot be shown on a logarithmic
    // axis.
    if least > 0.0 && top / least > 20.0 {
        let y = (least / 1.5..top * 1.5).log_scale();
        chart(area, &caption, x, &place, (y, name, unit), &lines, true)
    } else {
        let y = 0.0..top * 1.1;
        chart(area, &caption, x, &place, (y, name, unit), &lines, true)
    }
}

/// An axis with this many evenly spaced positions, each labelled: 0, 1, …
#[derive(Clone, Copy)]
struct Ordinals(usize);

impl Ranged for Ordinals {
    type FormatOption = plotters::coord::ranged1d::NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value + 0.5) / self.0.max(1) as f64;
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        (0..self.0).map(|place| place as f64).collect()
    }

    fn range(&self) -> core::ops::Range<f64> {
        -0.5..self.0 as f64 - 0.5
    }
}

impl ValueFormatter<f64> for Ordinals {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixtures::{comparison, comparison_over, row};

    /// Returns the texts of an SVG document, after checking that its tags nest.
    fn texts(svg: &str) -> Vec<&str> {
        assert!(svg.starts_with("<svg "), "{}", &svg[..60]);
        let mut open = Vec::new();
        let mut texts = Vec::new();
        let mut rest = svg;
        while let Some((text, tag)) = rest.split_once('<') {
            assert!(!text.contains('>'), "{text}");
            if open.last() == Some(&"text") && !text.trim().is_empty() {
                texts.push(text.trim());
            }
            let (tag, after) = tag.split_once('>').unwrap();
            let name = tag
                .split([' ', '\n', '/'])
                .find(|name| !name.is_empty())
                .unwrap();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') {
                open.push(name);
            }
            rest = after;
        }
        assert!(open.is_empty() && rest.trim().is_empty());
        texts
    }

    #[test]
    fn panels_have_title_units_and_legend() {
        let svg = svg(&comparison()).unwrap();
        let texts = texts(&svg);
        for label in [
            "made-up, seed 1",
            "pfc",
            "cnp",
            "fast-cnp",
            "Deepest egress queue",
            "time (ms)",
            "queue",
            "rate",
        ] {
            assert!(texts.contains(&label), "{label} is not in {texts:?}");
        }
        assert!(
            texts.contains(&"Sum of senders&apos; rates")
                || texts.iter().any(|t| t.starts_with("Sum of senders"))
        );
        assert!(texts.iter().any(|text| text.ends_with(" kB")), "{texts:?}");
        assert!(
            texts.iter().any(|text| text.ends_with(" Gbit/s")),
            "{texts:?}"
        );
        assert!(
            !texts.contains(&"wan-fcn"),
            "what was not played has no line"
        );
        for mechanism in [Mechanism::Pfc, Mechanism::Cnp, Mechanism::FastCnp] {
            let RGBColor(r, g, b) = colour(mechanism);
            let lines = svg
                .matches(&format!("stroke=\"#{r:02X}{g:02X}{b:02X}\""))
                .count();
            assert_eq!(lines, 3, "a legend and two panels for {}", mechanism.id());
        }
    }

    #[test]
    fn parameter_values_are_on_an_axis() {
        let svg = svg(&comparison_over()).unwrap();
        let texts = texts(&svg);
        for label in [
            "Reaction time over distance",
            "distance",
            "1km",
            "100km",
            "onset to first cut",
        ] {
            assert!(texts.contains(&label), "{label} is not in {texts:?}");
        }
        assert_eq!(
            texts
                .iter()
                .filter(|t| t.starts_with("Deepest egress queue at distance "))
                .count(),
            2
        );
        // Two mechanisms at two values.
        assert_eq!(svg.matches("<circle").count(), 4);
    }

    #[test]
    fn equal_comparisons_give_identical_octets() {
        assert_eq!(
            svg(&comparison_over()).unwrap(),
            svg(&comparison_over()).unwrap()
        );
    }

    #[test]
    fn empty_comparison_is_drawn() {
        let mut empty = comparison_over();
        for group in &mut empty.groups {
            group.rows = vec![row(Mechanism::None, &[None])];
        }
        let drawn = svg(&empty).unwrap();
        assert!(texts(&drawn).contains(&"No sender slowed down"));
        for row in empty.groups.iter_mut().flat_map(|group| &mut group.rows) {
            for run in row.played.iter_mut().flatten() {
                run.queue_over_time.clear();
                run.rate_over_time.clear();
            }
        }
        texts(&svg(&empty).unwrap());
    }

    #[test]
    fn mechanisms_have_different_colours() {
        let colours: std::collections::BTreeSet<_> = Mechanism::ALL
            .map(colour)
            .into_iter()
            .map(|RGBColor(r, g, b)| (r, g, b))
            .collect();
        assert_eq!(colours.len(), Mechanism::ALL.len());
    }
}
