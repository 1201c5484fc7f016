//! Links that carry frames, as the loops of `emulate` and `check` use them.

use fcn_link::port::{self, Port};
use std::time::Duration;

/// Numbered links that carry frames.
pub trait Wire {
    /// Returns the number of links.
    fn links(&self) -> usize;

    /// Passes the frames available at `link` to `take`, without waiting. Returns their number.
    ///
    /// # Errors
    /// The reason why no more frames can be received.
    fn receive(&mut self, link: usize, take: &mut dyn FnMut(&[u8])) -> Result<usize, String>;

    /// Sends the frame composed of `header` and `rest`, at the next flush at the latest; returns
    /// false if it cannot be sent.
    ///
    /// # Errors
    /// The reason why no more frames can be sent.
    fn send(&mut self, link: usize, header: &[u8], rest: &[u8]) -> Result<bool, String>;

    /// Hands over pending frames to be sent.
    ///
    /// # Errors
    /// The reason why no more frames can be sent.
    fn flush(&mut self) -> Result<(), String>;

    /// Waits for a frame, at most `for_`.
    ///
    /// # Errors
    /// The reason why no more frames can be received.
    fn wait(&mut self, for_: Duration) -> Result<(), String>;

    /// Handles links that go down and come back; returns messages about changes.
    fn tend(&mut self) -> Vec<String>;

    /// Returns true if a link is unusable at present.
    fn is_away(&self, link: usize) -> bool;
}

impl Wire for Vec<Port> {
    fn links(&self) -> usize {
        self.len()
    }

    fn receive(&mut self, link: usize, take: &mut dyn FnMut(&[u8])) -> Result<usize, String> {
        Ok(self.get_mut(link).map_or(0, |port| port.receive(take)))
    }

    fn send(&mut self, link: usize, header: &[u8], rest: &[u8]) -> Result<bool, String> {
        let port = self.get_mut(link);
        port.map_or(Ok(false), |port| port.send(header, rest))
            .map_err(|error| error.to_string())
    }

    fn flush(&mut self) -> Result<(), String> {
        self.iter_mut()
            .try_for_each(Port::flush)
            .map_err(|error| error.to_string())
    }

    fn wait(&mut self, for_: Duration) -> Result<(), String> {
        port::wait(self, for_).map_err(|error| error.to_string())
    }

    fn tend(&mut self) -> Vec<String> {
        self.iter_mut().filter_map(Port::poll_link).collect()
    }

    fn is_away(&self, link: usize) -> bool {
        self.get(link)
            .is_none_or(|port| port.outage_reason().is_some())
    }
}
