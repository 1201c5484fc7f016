//! Notifications and data of one flow on one time axis: steps of the series gathered into columns of the screen.

use crate::tables::Detail;

/// What one column of the charts stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bar {
    /// Notifications a second.
    pub notified: f64,
    /// The most notifications in any one millisecond.
    pub most: f64,
    /// Bits of data a second; nothing where no data was seen.
    pub bits: Option<f64>,
}

/// Columns from left to right, the last one ending at the moment shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bars {
    pub bars: Vec<Bar>,
    /// Time that a bar stands for, in nanoseconds.
    pub each: u64,
}

impl Bars {
    /// Time from the left edge to the right, in nanoseconds.
    pub(super) fn span(&self) -> u64 {
        self.each.saturating_mul(self.bars.len() as u64)
    }

    /// The bar that column `x` of `width` shows: fewer bars than columns take several each.
    pub(super) fn at(&self, x: u16, width: u16) -> Option<&Bar> {
        self.bars
            .get(usize::from(x) * self.bars.len() / usize::from(width.max(1)))
    }

    /// The greatest of something.
    pub(super) fn peak(&self, of: impl Fn(&Bar) -> f64) -> f64 {
        self.bars.iter().map(of).fold(0.0, f64::max)
    }
}

/// Gathers what `detail` has until `now` for `width` columns; with every `zoom` half as long a time.
pub(super) fn bars(detail: &Detail, now: u64, width: u16, zoom: u32) -> Bars {
    let there = detail.notifications.len().max(detail.data.len());
    let until = now
        .saturating_sub(detail.start)
        .div_ceil(detail.step.max(1));
    let end = there.min(usize::try_from(until).unwrap_or(usize::MAX));
    let width = usize::from(width);
    if detail.step == 0 || end == 0 || width == 0 {
        return Bars::default();
    }
    // Not so close that a step is wider than an eighth of the screen.
    let steps = (there >> zoom.min(30)).max(8).min(there);
    let first = end.saturating_sub(steps);
    let group = steps.div_ceil(width);
    let seconds = group as f64 * detail.step as f64 / 1e9;
    // What is not a number would spoil the whole scale.
    let part = |series: &[f32], from: usize, to: usize| {
        let part = series.get(from..to.min(series.len()))?.to_vec();
        Some(part.into_iter().map(f64::from).filter(|x| x.is_finite()))
    };
    let sum = |series: &[f32], from: usize, to: usize| {
        let all: f64 = part(series, from, to)?.sum();
        Some(all.max(0.0) / seconds)
    };
    // The groups end with the moment shown, so that the newest column is as long as the others.
    let count = (end - first).div_ceil(group);
    let bars = (0..count)
        .map(|number| {
            let to = end - (count - 1 - number) * group;
            let from = to.saturating_sub(group).max(first);
            Bar {
                notified: sum(&detail.notifications, from, to).unwrap_or(0.0),
                most: part(&detail.most, from, to).map_or(0.0, |most| most.fold(0.0, f64::max)),
                bits: sum(&detail.data, from, to).map(|octets| octets * 8.0),
            }
        })
        .collect();
    Bars {
        bars,
        each: detail.step.saturating_mul(group as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(steps: usize) -> Detail {
        Detail {
            start: 1_000,
            step: 100,
            notifications: (0..steps).map(|step| (step % 2) as f32).collect(),
            most: (0..steps).map(|step| (step % 3) as f32).collect(),
            data: (0..steps).map(|_| 25.0).collect(),
            notifiers: Vec::new(),
        }
    }

    #[test]
    fn steps_are_gathered_up_to_the_moment() {
        let all = bars(&detail(100), 11_000, 50, 0);
        assert_eq!((all.bars.len(), all.each, all.span()), (50, 200, 10_000));
        // One notification in 200 ns, 50 octets in 200 ns.
        assert_eq!(
            all.bars[7],
            Bar {
                notified: 5e6,
                most: 2.0,
                bits: Some(2e9)
            }
        );
        let earlier = bars(&detail(100), 2_000, 50, 0);
        assert_eq!(earlier.bars.len(), 5);
        assert_eq!(bars(&detail(100), 900, 50, 0).bars.len(), 0);
        let shown: Vec<_> = (0..100).map(|x| all.at(x, 100)).collect();
        assert!(shown[0] == shown[1] && shown[99] == all.bars.last() && !shown.contains(&None));
        let close = bars(&detail(100), 11_000, 50, 2);
        assert_eq!((close.bars.len(), close.each), (25, 100));
    }

    #[test]
    fn odd_series_do_no_harm() {
        let mut odd = detail(10);
        odd.notifications = vec![f32::NAN, f32::INFINITY, -1.0, f32::MAX];
        odd.data.clear();
        for width in 0..20 {
            for zoom in 0..40 {
                let bars = bars(&odd, u64::MAX, width, zoom);
                assert!(
                    bars.bars
                        .iter()
                        .all(|bar| bar.notified.is_finite() && bar.notified >= 0.0)
                );
            }
        }
        odd.step = 0;
        assert!(bars(&odd, u64::MAX, 9, 0).bars.is_empty());
        odd.step = u64::MAX;
        let _ = bars(&odd, u64::MAX, 9, 0).span();
    }
}
