//! The frames of one queue, built in the sender's slots.

use super::model::Stress;
use super::prototype::Prototypes;
use super::stream::Stream;
use super::walk::Share;
use crate::macs::Rewrite;
use fcn_link::sender::{Next, Source};

/// A number that is not a stream's.
const NOTHING: u8 = u8::MAX;

/// The endless frames of one of several queues.
pub struct StressSource {
    streams: Vec<Stream>,
    order: Vec<u8>,
    at: usize,
    /// Number of the stream whose frame each slot holds.
    held: Vec<u8>,
}

impl StressSource {
    /// Creates the frames of `queue`, from 0, of `queues` queues, for a link of at most `slots`
    /// slots.
    ///
    /// # Errors
    /// There are fewer flows than queues.
    pub fn new(
        stress: &Stress,
        prototypes: &Prototypes,
        (queue, queues): (u32, u32),
        slots: usize,
        macs: Rewrite,
    ) -> Result<Self, String> {
        if queues > stress.flows || queue >= queues {
            return Err(format!(
                "each flow stays on one queue, and {} flows are too few for {queues} queues",
                stress.flows
            ));
        }
        let share = Share { queue, queues };
        let streams = prototypes.0.iter().cloned();
        Ok(Self {
            streams: streams
                .map(|prototype| Stream::new(stress, prototype, share, macs))
                .collect(),
            order: stress.pattern.order().to_vec(),
            at: 0,
            held: vec![NOTHING; slots],
        })
    }

    #[inline]
    fn next(&mut self) -> Option<(u8, &mut Stream)> {
        let number = *self.order.get(self.at)?;
        self.streams
            .get_mut(usize::from(number))
            .map(|stream| (number, stream))
    }

    #[inline]
    const fn advance(&mut self) {
        self.at += 1;
        if self.at == self.order.len() {
            self.at = 0;
        }
    }
}

impl Source for StressSource {
    #[inline]
    fn peek(&mut self) -> Next {
        self.next().map_or(Next::End, |(_, stream)| Next::Frame {
            at: 0,
            len: stream.len(),
        })
    }

    #[inline]
    fn fill(&mut self, slot: usize, out: &mut [u8]) {
        let held = self.held.get(slot).copied();
        let Some((number, stream)) = self.next() else {
            return;
        };
        stream.fill(out, held != Some(number));
        if let Some(held) = self.held.get_mut(slot) {
            *held = number;
        }
        self.advance();
    }

    fn skip(&mut self) {
        if let Some((_, stream)) = self.next() {
            stream.skip();
        }
        self.advance();
    }
}
