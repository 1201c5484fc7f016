//! What is changed in frames, done by fcn-wire: once for all loops, and for each loop.

use crate::left_out::Reason;
use crate::rules::{self, Vary};
use fcn_link::capture_file::MAX_PACKET;
use fcn_tool::failure;
use fcn_tool::quantity::counted;
use fcn_wire::rewrite::{IcrcWas, LoopVariation, RewriteError, Rules};
use fcn_wire::{LinkType, Profile};

/// Octets that a frame may become longer: a VLAN tag and an Ethernet header.
const GROWTH: usize = 18;

/// What is changed in frames before they are sent.
#[derive(Debug)]
pub struct Rewriting {
    /// By interface; for all loops, and for the present one.
    sides: [(LoopVariation, Rules); 2],
    /// Whether frames with an Ethernet header stay as they are in the present loop, in all loops.
    idle: (bool, bool),
    vary: Vec<Vary>,
    profile: Profile,
    out: Vec<u8>,
    /// Frames whose ICRC could not be repaired, and whose ICRC was wrong, where that was seen.
    unrepaired: u64,
    wrong: u64,
    /// Frames in which addresses may have stayed; counted where they are mapped.
    unopened: Option<u64>,
    /// Whether they are counted: in the first loop.
    counting: bool,
}

impl Rewriting {
    /// By the options; `own` are the interfaces' addresses.
    ///
    /// # Errors
    /// The options contradict each other.
    pub fn new(options: &rules::Rewriting, own: [Option<[u8; 6]>; 2]) -> failure::Result<Self> {
        let side = |own| {
            let rules = rules::rules(options, own)?;
            Ok((rules::variation(&rules, &options.vary)?, rules))
        };
        let [first, second] = own;
        let idle = !options.changes_anything();
        Ok(Self {
            sides: [side(first)?, side(second)?],
            idle: (idle, idle && options.vary.is_empty()),
            vary: options.vary.clone(),
            profile: Profile::default(),
            out: Vec::new(),
            unrepaired: 0,
            wrong: 0,
            unopened: (!options.map_ip.is_empty()).then_some(0),
            counting: true,
        })
    }

    /// The frames that follow are those of loop `loop_`, counted from 0.
    pub fn begin(&mut self, loop_: u64) {
        if loop_ == 0 {
            (self.unrepaired, self.wrong) = (0, 0);
            self.unopened = self.unopened.map(|_| 0);
        }
        self.counting = loop_ == 0;
        if self.vary.is_empty() {
            return;
        }
        for (variation, rules) in &mut self.sides {
            *rules = variation.rules(loop_);
        }
        self.idle.0 = self.idle.1 && loop_ == 0;
    }

    /// What differs from loop to loop, for frames that went through [`apply`](Self::apply) in loop 0.
    ///
    /// # Errors
    /// The options contradict each other.
    pub fn variation(&self) -> failure::Result<Variation> {
        if self.vary.is_empty() {
            return Ok(Variation::default());
        }
        let rules = Rules::default();
        Ok(Variation {
            rules: Some(Box::new(Varied {
                variation: rules::variation(&rules, &self.vary)?,
                rules,
                loop_: 0,
                profile: self.profile.clone(),
            })),
        })
    }

    /// `packet` as it is to be sent by the interface `side`.
    ///
    /// # Errors
    /// It cannot be sent, for this reason.
    pub fn apply<'a>(
        &'a mut self,
        packet: &'a [u8],
        link: LinkType,
        side: usize,
    ) -> Result<&'a [u8], Reason> {
        if link == LinkType::Ethernet && self.idle.0 {
            return Ok(packet);
        }
        let need = packet.len().max(MAX_PACKET) + GROWTH;
        if self.out.len() < need {
            self.out.resize(need, 0);
        }
        let [first, second] = &self.sides;
        let (_, rules) = if side == 0 { first } else { second };
        let done = rules
            .apply(packet, packet.len(), link, &self.profile, &mut self.out)
            .map_err(|error| match error {
                RewriteError::NoEtherType { .. } => Reason::LinkType,
                _ => Reason::Rewriting,
            })?;
        if done.link != LinkType::Ethernet {
            return Err(Reason::NoEthernet);
        }
        if let Some(unopened) = self
            .unopened
            .as_mut()
            .filter(|_| self.counting && done.unopened)
        {
            *unopened += 1;
        }
        match done.icrc {
            _ if !self.counting => {}
            IcrcWas::Unrepaired => self.unrepaired += 1,
            IcrcWas::Bad => self.wrong += 1,
            _ => {}
        }
        self.out.get(..done.len).ok_or(Reason::Rewriting)
    }

    /// Frames in which addresses may have stayed; `None` where they are not mapped.
    #[must_use]
    pub const fn unopened(&self) -> Option<u64> {
        self.unopened
    }

    /// What is to be said of it, for people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.unrepaired > 0 {
            lines.push(format!(
                "ICRC left as it was in {}, whose length fields contradict each other",
                counted(self.unrepaired, "frame")
            ));
        }
        if self.wrong > 0 {
            lines.push(format!(
                "{} with a wrong ICRC (--repair corrects it)",
                counted(self.wrong, "frame")
            ));
        }
        lines
    }
}

/// What differs from loop to loop in frames that are in memory; nothing by default.
#[derive(Clone, Debug, Default)]
pub struct Variation {
    rules: Option<Box<Varied>>,
}

#[derive(Clone, Debug)]
struct Varied {
    variation: LoopVariation,
    /// Those of `loop_`.
    rules: Rules,
    loop_: u64,
    profile: Profile,
}

impl Variation {
    /// Whether the frames of loop `loop_` differ from those of loop 0.
    #[inline]
    #[must_use]
    pub fn differs(&self, loop_: u64) -> bool {
        loop_ > 0 && self.rules.is_some()
    }

    /// Writes the frame that `frame` is in loop `loop_` to the start of `out`. Its length stays.
    pub fn write(&mut self, frame: &[u8], loop_: u64, out: &mut [u8]) {
        let varied = match self.rules.as_deref_mut().filter(|_| loop_ > 0) {
            None => false,
            Some(varied) => {
                if varied.loop_ != loop_ {
                    varied.rules = varied.variation.rules(loop_);
                    varied.loop_ = loop_;
                }
                let (rules, profile) = (&varied.rules, &varied.profile);
                rules
                    .apply(frame, frame.len(), LinkType::Ethernet, profile, out)
                    .is_ok()
            }
        };
        if !varied && let Some(out) = out.get_mut(..frame.len()) {
            out.copy_from_slice(frame);
        }
    }
}
