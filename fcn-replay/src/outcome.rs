//! Result of processing a capture: part of the report, even if nothing was sent.

use crate::omissions::Tally;
use crate::pipeline::Pipeline;
use crate::rewriting::Rewriting;
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::counted;
use serde_json::{Value, json};

/// Result of processing a capture.
pub(crate) struct Outcome {
    tally: Tally,
    interfaces: Option<String>,
    cut: Vec<String>,
    rewritten: Vec<String>,
    unopened: Option<u64>,
    streamed: bool,
    /// True if all of the capture was read.
    is_whole: bool,
}

impl Outcome {
    pub(crate) fn new(pipeline: &Pipeline, streamed: bool) -> Self {
        Self {
            tally: pipeline.tally().clone(),
            interfaces: pipeline.about_interfaces(),
            cut: pipeline.cut().to_vec(),
            rewritten: Rewriting::lines(&pipeline.rewriting),
            unopened: pipeline.rewriting.unopened(),
            streamed,
            is_whole: pipeline.is_whole(),
        }
    }

    /// Returns names and texts for human readers.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = self.tally.lines();
        if let Some(text) = &self.interfaces {
            lines.push(("of", text.clone()));
        }
        lines.extend(
            self.rewritten
                .iter()
                .map(|text| ("rewriting", text.clone())),
        );
        if let Some(unopened @ 1..) = self.unopened {
            let frames = counted(unopened, "frame");
            lines.push(("warning", format!("{frames} may keep addresses: without an IP header, or with an option, message or payload that is not parsed")));
        }
        for cut in &self.cut {
            lines.push(("warning", cut.clone()));
        }
        lines
    }

    /// Returns the result as JSON, if `sent` frames were sent.
    pub(crate) fn json(&self, sent: u64) -> Value {
        let mut capture = self.tally.json();
        if let Value::Object(fields) = &mut capture {
            fields.insert("streamed".to_owned(), self.streamed.into());
            fields.insert("file_cut".to_owned(), (!self.cut.is_empty()).into());
            fields.insert("not_opened".to_owned(), self.unopened.into());
        }
        let loops = self.loops(sent);
        json!({ "capture": capture, "loops": loops })
    }

    /// Returns the number of complete loops sent.
    pub(crate) const fn loops(&self, sent: u64) -> u64 {
        match sent.checked_div(self.tally.selected) {
            Some(loops) if self.is_whole => loops,
            _ => 0,
        }
    }

    /// Fails if there is nothing to send.
    pub(crate) fn require_frames(&self) -> Result {
        if self.tally.selected > 0 {
            return Ok(());
        }
        let failure = Failure::failed("nothing to send").and(self.tally.in_short());
        Err(match self.cut.first() {
            Some(cut) => failure.and(cut.clone()),
            None => failure,
        })
    }

    /// Describes the frames to send, in one line.
    pub(crate) fn in_short(&self) -> String {
        format!(
            "{}, {}",
            counted(self.tally.selected, "frame"),
            counted(self.tally.octets, "octet")
        )
    }

    pub(crate) const fn tally(&self) -> &Tally {
        &self.tally
    }
}
