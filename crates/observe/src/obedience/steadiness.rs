//! Variation of a pace by itself, at each time scale.

/// Block lengths: 1, 2, 4 to 512 gaps.
const LEVELS: usize = 10;
/// Minimum number of pairs of blocks for a level to count.
const ENOUGH: f32 = 4.0;

/// Allan variance: half the mean squared difference between the means of neighbouring blocks, for
/// blocks of 1, 2, 4, … gaps.
///
/// For independent gaps it halves from level to level; further variation of the rate shows at the
/// level that corresponds to its duration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steadiness {
    /// The block at each level that still waits for its neighbour, if its bit is set.
    blocks: [f32; LEVELS],
    waiting: u16,
    squares: [f32; LEVELS],
    pairs: [f32; LEVELS],
}

impl Steadiness {
    /// Adds the next value, in two steps on average.
    pub fn add(&mut self, mut value: f32) {
        for level in 0..LEVELS {
            let first = self.blocks[level];
            self.waiting ^= 1 << level;
            if self.waiting & 1 << level != 0 {
                self.blocks[level] = value;
                return;
            }
            self.squares[level] += (value - first).powi(2) / 2.0;
            self.pairs[level] += 1.0;
            value = f32::midpoint(first, value);
        }
    }

    /// Halves the weight of old data.
    pub fn fade(&mut self) {
        for sum in self.squares.iter_mut().chain(&mut self.pairs) {
            *sum /= 2.0;
        }
    }

    /// Returns the largest standard deviation of the pace beyond that of independent gaps, as a
    /// logarithm, over blocks of up to `longest` gaps. One standard error is attributed to chance.
    pub fn swing(&self, longest: f64) -> f64 {
        let level = |level: usize| f64::from(self.squares[level]) / f64::from(self.pairs[level]);
        let independent = level(0);
        let mut most = 0.0_f64;
        for number in 1..LEVELS {
            let length = f64::from(1_u32 << number);
            if self.pairs[number] < ENOUGH || length > longest {
                break;
            }
            let chance = (2.0 / f64::from(self.pairs[number])).sqrt();
            most = most.max(level(number) * (1.0 - chance) - independent / length);
        }
        most.sqrt()
    }
}
