//! The pace of one flow after notifications, compared with a prediction from its own past.

use super::pace::Gap;

/// Numbers of gaps after a notification over which the pace is averaged, each separately. Windows
/// of up to 256 find one obeying sender in 200 more.
const WINDOWS: [u8; 9] = [1, 2, 3, 5, 8, 12, 20, 32, 64];
/// Numbers of gaps whose mean pace predicts the next one.
const PAST: [u8; 5] = [1, 2, 4, 16, 64];
/// Coefficients of the prediction: the constant, and one for each mean.
const TERMS: usize = PAST.len() + 1;
/// Number of gaps remembered: that of the longest window.
const REMEMBERED: usize = 64;
/// Number of gaps long after a notification whose pace is evaluated: from the 64th on.
const FAR: usize = 32;
/// Positions in a message whose usual pace is learnt, by octaves: gap 1, gaps 2 and 3, 4 to 7, …,
/// from 128 on.
const POSITIONS: usize = 8;
/// Weight, in gaps, of the assumption that a position has no pace of its own.
const PRIOR: f32 = 4.0;
/// Sums are halved after this many gaps: old data fades, and single-precision sums stay exact
/// enough.
pub(super) const FADES: u32 = 1 << 16;
/// Number of gaps after which the prediction is fitted again.
const FITTED: u32 = 64;
/// Resolution of a remembered pace: 1/2048 of a natural logarithm.
const PACE: f32 = 2048.0;
/// Resolution of a remembered deviation from the prediction.
const DEVIATION: f32 = 8192.0;
/// Maximum distance from the median, as a logarithm; larger ones are clipped.
const CLIPPED: f32 = 2.0;
/// A single gap longer than recent ones by this logarithm is a pause of the application.
const PAUSE: f32 = 2.08;
/// Minimum part of the spread of single notifications that counts as the error of their mean:
/// without it, 1 % of the senders that never slow down were reported to obey, by a few
/// notifications in step with their messages.
const SINGLE: f64 = 0.6;
/// Gaps after a notification in which a pause may be a response, as bits of [`Response::notified`].
const SOON: u128 = 0xFF;
/// Minimum ratio of a slowdown's standard error to the usual variation long after notifications.
const RHYTHM: f64 = 0.5;
/// Minimum excess of gaps that contain a notification, as a logarithm and in standard errors, that
/// may be a reaction.
const LONGER: f64 = 0.2;
const LONGER_ERRORS: f64 = 3.0;
/// Minimum standard error of a mean, as a logarithm: clocks of captures are no better.
const FINEST: f64 = 1e-3;

/// Sums over gaps, for one window that ends at each.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: f32,
    sum: f32,
    squares: f32,
}

impl Sums {
    fn add(&mut self, value: f32) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn fade(&mut self) {
        self.count /= 2.0;
        self.sum /= 2.0;
        self.squares /= 2.0;
    }

    fn mean(&self) -> f64 {
        f64::from(self.sum) / f64::from(self.count)
    }

    fn variance(&self) -> f64 {
        let (n, mean) = (f64::from(self.count), self.mean());
        ((f64::from(self.squares) / n - mean * mean) * n / (n - 1.0)).max(0.0)
    }
}

/// One window right after notifications.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    sums: Sums,
    /// Number of notifications that are at least the window apart.
    apart: f32,
    /// Number of the gap at which the last of them was counted.
    counted: u32,
}

/// Slowdown in one window after notifications.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    /// Gaps in the window.
    pub window: u8,
    /// Mean logarithm of the gap per octet, beyond the prediction: 0.69 is half the rate.
    pub slower: f64,
    /// Standard error of `slower`, from the variation of all gaps, that of single notifications,
    /// and that long after them.
    pub error: f64,
    /// `slower` in standard errors.
    pub errors: f64,
    /// Number of notifications.
    pub count: f64,
}

/// Pace of the flow in the 64 gaps after notifications; a gap lies between packets, or between
/// bursts. Of the [`WINDOWS`], it measures the `N` longest.
#[derive(Clone, Debug)]
pub(super) struct Response<const N: usize> {
    /// Number of gaps so far.
    gaps: u32,
    /// The first pace, relative to which others are stored.
    base: f32,
    /// Running median, relative to which outliers are clipped.
    median: f32,
    /// Recent pace, by which pauses are recognised.
    late: f32,
    paused: bool,
    /// Gaps soon after a notification, and pauses among them and elsewhere.
    soon: f32,
    pauses: [f32; 2],
    /// Numbers of gaps from notifications to pauses.
    lags: Sums,
    /// Number of pauses that contain a notification.
    stops: f32,
    paces: [i16; REMEMBERED],
    past: [i32; PAST.len()],
    deviations: [i16; REMEMBERED],
    sums: [i32; N],
    /// Bitmap of the last gaps that contain a notification; the lowest bit is the last gap.
    notified: u128,
    /// Normal equations of the prediction: upper triangle, and right-hand side.
    matrix: [f32; TERMS * (TERMS + 1) / 2],
    right: [f32; TERMS],
    terms: [f32; TERMS],
    /// Sums of the mean deviations in each window over all its positions, and of their squares.
    all: [f32; N],
    all_squares: [f32; N],
    after: [Window; N],
    /// Sums of deviations 64 to 95 gaps after a notification, and the number of notifications.
    far: [f32; FAR],
    notifications: f32,
    /// Gaps since the last idle one.
    position: u32,
    /// Number and sum of the deviations at each position. Senders that begin together share a link
    /// at first, and are notified then: a slower pace there is no response.
    by_position: [[f32; 2]; POSITIONS],
    /// Pace of the gaps that contain a notification; time of all gaps, and their pace weighted by
    /// it.
    own: Sums,
    time: f32,
    pace_by_time: f32,
}

impl<const N: usize> Response<N> {
    /// Lengths of the windows, in gaps.
    const LENGTHS: [u8; N] = {
        let mut lengths = [0; N];
        let mut number = 0;
        while number < N {
            lengths[number] = WINDOWS[WINDOWS.len() - N + number];
            number += 1;
        }
        lengths
    };
    /// The bit of each window: `n` for `n + 1` gaps.
    const ENDS: u64 = {
        let (mut ends, mut number) = (0, 0);
        while number < N {
            ends |= 1 << (Self::LENGTHS[number] - 1);
            number += 1;
        }
        ends
    };

    /// Returns the state of a flow whose pace was `before`, if known.
    pub fn new(before: Option<f32>) -> Self {
        let mut terms = [0.0; TERMS];
        // The mean of the last 16, until there is enough data for a better prediction.
        terms[4] = 1.0;
        let start = before.unwrap_or(f32::NAN);
        Self {
            gaps: 0,
            base: start,
            median: start,
            late: start,
            paused: false,
            soon: 0.0,
            pauses: [0.0; 2],
            lags: Sums::default(),
            stops: 0.0,
            paces: [0; REMEMBERED],
            past: [0; PAST.len()],
            deviations: [0; REMEMBERED],
            sums: [0; N],
            notified: 0,
            matrix: [0.0; TERMS * (TERMS + 1) / 2],
            right: [0.0; TERMS],
            terms,
            all: [0.0; N],
            all_squares: [0.0; N],
            after: [Window::default(); N],
            far: [0.0; FAR],
            notifications: 0.0,
            position: 0,
            by_position: [[0.0; 2]; POSITIONS],
            own: Sums::default(),
            time: 0.0,
            pace_by_time: 0.0,
        }
    }

    /// Processes the next gap. Returns its pace relative to the first one, without pauses.
    pub fn gap(&mut self, gap: Gap) -> f32 {
        let Gap {
            pace,
            length,
            notified,
            idle,
        } = gap;
        if self.base.is_nan() {
            (self.base, self.median, self.late) = (pace, pace, pace);
        }
        if !idle {
            let pace = pace - self.base;
            self.time += length;
            self.pace_by_time += length * pace;
            if notified {
                self.own.add(pace);
            }
        }
        let pace = match idle {
            true => self.late,
            false => self.without_pause(pace, notified),
        };
        let pace = pace.clamp(self.median - CLIPPED, self.median + CLIPPED);
        self.median += (pace - self.median).clamp(-1.0, 1.0) / 32.0;
        let pace = pace - self.base;
        let known = self.known();
        let predicted: f32 = known.iter().zip(self.terms).map(|(a, b)| a * b).sum();
        let deviation = pace - predicted;
        let deviation = deviation - self.usual_deviation(deviation, idle);
        self.remember(pace, deviation, notified);
        self.learn(&known, pace);
        self.gaps += 1;
        if self.gaps.is_multiple_of(FITTED) || self.gaps < FITTED && self.gaps.is_multiple_of(16) {
            self.fit();
        }
        if self.gaps.is_multiple_of(FADES) {
            self.fade();
        }
        pace
    }

    /// Returns the usual deviation at this position in a message, and learns from `deviation`
    /// unless the gap is `idle`.
    fn usual_deviation(&mut self, deviation: f32, idle: bool) -> f32 {
        let octave = (self.position.saturating_add(1).ilog2() as usize).min(POSITIONS - 1);
        let [count, sum] = &mut self.by_position[octave];
        let usual = *sum / (*count + PRIOR);
        if idle {
            self.position = 0;
        } else {
            *count += 1.0;
            *sum += deviation;
            self.position = self.position.saturating_add(1);
        }
        usual
    }

    /// Returns the pace, or the recent pace instead of a single pause: pauses of an application do
    /// not reflect a rate.
    fn without_pause(&mut self, pace: f32, notified: bool) -> f32 {
        self.paused = pace - self.late > PAUSE && !self.paused;
        let is_soon = self.notified & SOON != 0;
        self.soon += f32::from(u8::from(is_soon));
        if self.paused {
            self.stops += f32::from(u8::from(notified));
            self.pauses[usize::from(!is_soon)] += 1.0;
            self.lags.add(self.notified.trailing_zeros() as f32);
            return self.late;
        }
        self.late += (pace - self.late).clamp(-1.0, 1.0) / 16.0;
        pace
    }

    /// Returns what predicts the next pace: 1 for the constant, and the mean paces of the last gaps.
    fn known(&self) -> [f32; TERMS] {
        let mut known = [1.0; TERMS];
        for ((mean, sum), length) in known[1..].iter_mut().zip(self.past).zip(PAST) {
            let gaps = self.gaps.clamp(1, length.into()) as i32;
            *mean = sum as f32 / (PACE * gaps as f32);
        }
        known
    }

    fn remember(&mut self, pace: f32, deviation: f32, notified: bool) {
        let at = self.gaps as usize;
        let place = |back: u8| (at.wrapping_sub(back.into())) % REMEMBERED;
        let pace = (pace * PACE) as i16;
        for (sum, back) in self.past.iter_mut().zip(PAST) {
            *sum += i32::from(pace) - i32::from(self.paces[place(back)]);
        }
        self.paces[place(0)] = pace;
        let deviation = (deviation * DEVIATION) as i16;
        self.notified = self.notified << 1 | u128::from(notified);
        self.notifications += f32::from(u8::from(notified));
        let mut far = (self.notified >> REMEMBERED) as u32;
        while far != 0 {
            self.far[far.trailing_zeros() as usize] += f32::from(deviation);
            far &= far - 1;
        }
        for (sum, length) in self.sums.iter_mut().zip(Self::LENGTHS) {
            *sum += i32::from(deviation) - i32::from(self.deviations[place(length)]);
        }
        self.deviations[place(0)] = deviation;
        let mut means = [0.0; N];
        for ((mean, sum), length) in means.iter_mut().zip(self.sums).zip(Self::LENGTHS) {
            // Windows that would begin before the first gap count as 0.
            let is_whole = self.gaps >= length.into();
            let whole = sum as f32 / (DEVIATION * f32::from(length));
            *mean = if is_whole { whole } else { 0.0 };
        }
        let sums = self.all.iter_mut().zip(&mut self.all_squares);
        for ((sum, squares), mean) in sums.zip(means) {
            *sum += mean;
            *squares += mean * mean;
        }
        self.end_windows(&means);
    }

    /// Records the mean deviations in the windows that began right after a notification.
    fn end_windows(&mut self, means: &[f32; N]) {
        // The lowest bit: a notification in the gap before the last one.
        let notified = (self.notified >> 1) as u64 & Self::ENDS;
        if notified == 0 {
            return;
        }
        for ((window, mean), length) in self.after.iter_mut().zip(means).zip(Self::LENGTHS) {
            if notified >> (length - 1) & 1 == 0 {
                continue;
            }
            window.sums.add(*mean);
            if window.apart == 0.0 || self.gaps - window.counted >= length.into() {
                window.apart += 1.0;
                window.counted = self.gaps;
            }
        }
    }

    fn learn(&mut self, known: &[f32; TERMS], pace: f32) {
        let mut sums = self.matrix.iter_mut();
        for (row, a) in known.iter().enumerate() {
            for (b, sum) in known[row..].iter().zip(&mut sums) {
                *sum += a * b;
            }
            self.right[row] += a * pace;
        }
    }

    /// Solves the normal equations, with a small constant added to the diagonal, as the paces of an
    /// even flow are all the same.
    #[cold]
    fn fit(&mut self) {
        let mut rows = [[0.0_f64; TERMS + 1]; TERMS];
        let places = (0..TERMS).flat_map(|row| (row..TERMS).map(move |column| (row, column)));
        for ((row, column), sum) in places.zip(self.matrix) {
            rows[row][column] = f64::from(sum);
            rows[column][row] = f64::from(sum);
        }
        for (number, row) in rows.iter_mut().enumerate() {
            row[number] += 1e-5 * f64::from(self.matrix[0]);
            row[TERMS] = f64::from(self.right[number]);
        }
        for pivot in 0..TERMS {
            // The matrix is positive definite: no pivoting is needed.
            let base = rows[pivot];
            for (number, row) in rows.iter_mut().enumerate() {
                if number != pivot {
                    let factor = row[pivot] / base[pivot];
                    for (to, from) in row.iter_mut().zip(base) {
                        *to -= factor * from;
                    }
                }
            }
        }
        for (number, (term, row)) in self.terms.iter_mut().zip(rows).enumerate() {
            *term = (row[TERMS] / row[number]) as f32;
        }
    }

    #[cold]
    fn fade(&mut self) {
        for sum in self.matrix.iter_mut().chain(&mut self.right) {
            *sum /= 2.0;
        }
        for sum in self.all.iter_mut().chain(&mut self.all_squares) {
            *sum /= 2.0;
        }
        for window in &mut self.after {
            window.sums.fade();
            window.apart /= 2.0;
        }
        self.far.iter_mut().for_each(|sum| *sum /= 2.0);
        (self.by_position.as_flattened_mut().iter_mut()).for_each(|sum| *sum /= 2.0);
        self.notifications /= 2.0;
        self.soon /= 2.0;
        self.stops /= 2.0;
        self.lags.fade();
        self.own.fade();
        self.time /= 2.0;
        self.pace_by_time /= 2.0;
        self.pauses = self.pauses.map(|count| count / 2.0);
    }

    /// Returns the number of gaps so far.
    pub const fn gaps(&self) -> u32 {
        self.gaps
    }

    /// Returns true if its pauses may be a response.
    pub fn pauses(&self) -> bool {
        self.stops() || self.pauses_after()
    }

    /// Returns true if it pauses more often soon after notifications than at other times, which may
    /// be a response.
    fn pauses_after(&self) -> bool {
        let [soon, elsewhere] = self.pauses;
        let others = (self.all() - self.soon).max(1.0);
        let expected = elsewhere / others * self.soon;
        soon > 1.0 + expected + 3.0 * expected.sqrt()
    }

    /// Returns true if it pauses at most notifications, or always after the same time: it stops, or
    /// has nothing more to send.
    fn stops(&self) -> bool {
        let most = self.notifications / 2.0;
        // Pauses of its own begin anywhere between two notifications.
        let even = f64::from(self.all() / self.notifications) / 12.0_f64.sqrt();
        let at_once = self.stops > most && self.pauses.iter().sum::<f32>() < 2.0 * self.stops;
        at_once || self.lags.count > most && self.lags.variance().sqrt() < 0.5 * even
    }

    /// Returns true if the gaps that contain a notification are longer than the gap at a random
    /// moment is on average: the sender may stop at once, for a time shorter than is measured after
    /// notifications.
    pub fn stops_at_once(&self) -> bool {
        if self.own.count < 3.0 {
            return false;
        }
        let longer = self.own.mean() - f64::from(self.pace_by_time / self.time);
        let error = (self.own.variance() / f64::from(self.own.count)).sqrt();
        longer > LONGER && longer > LONGER_ERRORS * error.max(FINEST)
    }

    /// Returns the number of gaps so far, with less weight for old ones.
    const fn all(&self) -> f32 {
        self.matrix[0]
    }

    /// Returns the root mean square of windows of that length that begin long after notifications:
    /// a slowdown that also occurs there is their rhythm.
    fn rhythm(&self, length: u8, mean: f64) -> f64 {
        let length = FAR.min(length.into());
        let sums = self.far.windows(length).map(|lags| {
            let sum: f32 = lags.iter().sum();
            f64::from(sum / (DEVIATION * self.notifications * length as f32)) - mean
        });
        let (count, squares) = sums.fold((0.0, 0.0), |(n, sum), mean| (n + 1.0, sum + mean * mean));
        (squares / f64::max(count, 1.0)).sqrt()
    }

    /// Returns the sums over all positions of the window `number`.
    fn all_of(&self, number: usize) -> Sums {
        // The first position is at the gap with the number of the length.
        let fades = self.gaps / FADES;
        let without = f32::from(Self::LENGTHS[number]) * 0.5_f32.powi(fades as i32);
        Sums {
            count: self.all() - without,
            sum: self.all[number],
            squares: self.all_squares[number],
        }
    }

    /// Returns the slowdowns after notifications, by window.
    pub fn effects(&self) -> impl Iterator<Item = Effect> {
        let windows = self.after.iter().zip(Self::LENGTHS).enumerate();
        windows.filter_map(|(number, (window, length))| {
            let (all, after) = (self.all_of(number), window.sums);
            if after.count < 3.0 || all.count < 3.0 * f32::from(length) {
                return None;
            }
            let slower = after.mean() - all.mean();
            let apart = f64::from(window.apart).max(1.0);
            let chance = (all.variance() / apart).sqrt();
            let single = (after.variance() / apart).sqrt();
            let rhythm = self.rhythm(length, all.mean());
            let error = chance.max(SINGLE * single).max(RHYTHM * rhythm).max(FINEST);
            Some(Effect {
                window: length,
                slower,
                error,
                errors: slower / error,
                count: after.count.into(),
            })
        })
    }
}
