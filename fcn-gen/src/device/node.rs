//! A node on links, as the loop of `emulate` drives it, and one with faults.

use super::fault::Injector;
use crate::sim::live::{Counters, LiveNode, OutgoingFrame};
use crate::units::Ps;

/// A node on numbered links. It neither waits nor reads a clock.
pub trait LinkNode {
    /// Processes a frame received on `link`.
    fn on_frame(&mut self, now: Ps, link: usize, bytes: &[u8]);

    /// Processes all due events.
    fn on_timer(&mut self, now: Ps);

    /// Returns the time of the next event.
    fn next_timer(&mut self) -> Option<Ps>;

    /// Appends the frames to send to `frames`.
    fn take_outgoing(&mut self, frames: &mut Vec<OutgoingFrame>);

    /// Takes back the buffer of a sent frame.
    fn recycle(&mut self, octets: Vec<u8>);

    /// Returns the reason why the node cannot continue, if there is one.
    fn failure(&mut self) -> Option<String>;

    /// Stops posting messages; [`is_quiet`](Self::is_quiet) returns true when the connections are
    /// taken down.
    fn stop(&mut self, now: Ps);

    /// Returns true if nothing that begins here sends or waits for an answer.
    fn is_quiet(&self) -> bool;

    /// Returns true if the connection of any flow that begins here was ever open.
    fn has_opened(&self) -> bool;

    /// Returns the payload delivered here, in octets; the sum of the rates of flows that begin
    /// here, in bit/s; and the depth of the deepest queue, in octets.
    fn figures(&mut self) -> (u64, f64, u64);

    /// Returns the counters of the roles.
    fn counters(&self) -> Counters;
}

impl LinkNode for LiveNode<'_> {
    fn on_frame(&mut self, now: Ps, link: usize, bytes: &[u8]) {
        self.on_frame(now, link, bytes);
    }

    fn on_timer(&mut self, now: Ps) {
        self.on_timer(now);
    }

    fn next_timer(&mut self) -> Option<Ps> {
        self.next_timer()
    }

    fn take_outgoing(&mut self, frames: &mut Vec<OutgoingFrame>) {
        self.take_outgoing(frames);
    }

    fn recycle(&mut self, octets: Vec<u8>) {
        self.recycle(octets);
    }

    fn failure(&mut self) -> Option<String> {
        self.failure()
    }

    fn stop(&mut self, now: Ps) {
        self.stop(now);
    }

    fn is_quiet(&self) -> bool {
        self.is_quiet()
    }

    fn has_opened(&self) -> bool {
        self.has_opened()
    }

    fn figures(&mut self) -> (u64, f64, u64) {
        self.figures()
    }

    fn counters(&self) -> Counters {
        self.counters()
    }
}

/// A node, with faults between it and its links if there are any.
pub struct Faulty<N> {
    /// The node.
    pub node: N,
    /// Injector of the faults; `None` for a node without.
    pub injector: Option<Injector>,
}

impl<N: LinkNode> LinkNode for Faulty<N> {
    fn on_frame(&mut self, now: Ps, link: usize, bytes: &[u8]) {
        let Some(injector) = &mut self.injector else {
            return self.node.on_frame(now, link, bytes);
        };
        for bytes in injector.on_received(now, link, bytes) {
            self.node.on_frame(now, link, &bytes);
        }
    }

    fn on_timer(&mut self, now: Ps) {
        if let Some(injector) = &mut self.injector {
            while let Some((link, bytes)) = injector.take_due(now) {
                self.node.on_frame(now, link, &bytes);
            }
        }
        self.node.on_timer(now);
    }

    fn next_timer(&mut self) -> Option<Ps> {
        let held = self.injector.as_ref().and_then(Injector::next_timer);
        self.node.next_timer().into_iter().chain(held).min()
    }

    fn take_outgoing(&mut self, frames: &mut Vec<OutgoingFrame>) {
        let Some(injector) = &mut self.injector else {
            return self.node.take_outgoing(frames);
        };
        let mut own = Vec::new();
        self.node.take_outgoing(&mut own);
        injector.on_sent(&mut own);
        frames.append(&mut own);
    }

    fn recycle(&mut self, octets: Vec<u8>) {
        self.node.recycle(octets);
    }

    fn failure(&mut self) -> Option<String> {
        self.node.failure()
    }

    fn stop(&mut self, now: Ps) {
        self.node.stop(now);
    }

    fn is_quiet(&self) -> bool {
        self.node.is_quiet()
    }

    fn has_opened(&self) -> bool {
        self.node.has_opened()
    }

    fn figures(&mut self) -> (u64, f64, u64) {
        self.node.figures()
    }

    fn counters(&self) -> Counters {
        self.node.counters()
    }
}
