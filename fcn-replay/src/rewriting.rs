//! Changes to frames, done by fcn-wire: the same for all loops, or different for each loop.

use crate::omissions::Reason;
use crate::rules::{self, Vary};
use fcn_link::capture_file::MAX_PACKET;
use fcn_tool::failure;
use fcn_tool::quantity::counted;
use fcn_wire::rewrite::{LoopVariation, PriorIcrc, RewriteError, Rules};
use fcn_wire::{LinkType, Profile};

/// Maximum growth of a frame in octets: a VLAN tag and an Ethernet header.
const GROWTH: usize = 18;

/// Changes to frames before they are sent.
#[derive(Debug)]
pub struct Rewriting {
    /// Rules for each interface: for all loops, and for the current one.
    sides: [(LoopVariation, Rules); 2],
    /// True if frames with an Ethernet header are unchanged in the current loop, and in all loops.
    idle: (bool, bool),
    vary: Vec<Vary>,
    profile: Profile,
    out: Vec<u8>,
    /// Number of frames whose ICRC could not be repaired, and of frames found to have a wrong ICRC.
    unrepaired: u64,
    wrong: u64,
    /// Number of frames that may retain addresses; counted if addresses are mapped.
    unopened: Option<u64>,
    /// True in the first loop, in which frames are counted.
    counting: bool,
}

impl Rewriting {
    /// Creates the changes from the options; `own` are the interfaces' addresses.
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

    /// Begins loop `loop_`, counted from 0.
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

    /// Returns the differences between loops, for frames that were processed by
    /// [`apply`](Self::apply) in loop 0.
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

    /// Returns `packet` as it is to be sent by the interface `side`.
    ///
    /// # Errors
    /// The reason why it cannot be sent.
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
            .filter(|_| self.counting && done.may_contain_unmapped)
        {
            *unopened += 1;
        }
        match done.icrc {
            _ if !self.counting => {}
            PriorIcrc::Unrepaired => self.unrepaired += 1,
            PriorIcrc::Bad => self.wrong += 1,
            _ => {}
        }
        self.out.get(..done.len).ok_or(Reason::Rewriting)
    }

    /// Returns the number of frames that may retain addresses; `None` if addresses are not mapped.
    #[must_use]
    pub const fn unopened(&self) -> Option<u64> {
        self.unopened
    }

    /// Returns remarks for human readers.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.unrepaired > 0 {
            lines.push(format!(
                "ICRC unchanged in {} with contradictory length fields",
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

/// Differences between loops, for frames in memory; none by default.
#[derive(Clone, Debug, Default)]
pub struct Variation {
    rules: Option<Box<Varied>>,
}

#[derive(Clone, Debug)]
struct Varied {
    variation: LoopVariation,
    /// Rules for `loop_`.
    rules: Rules,
    loop_: u64,
    profile: Profile,
}

impl Variation {
    /// True if the frames of loop `loop_` differ from those of loop 0.
    #[inline]
    #[must_use]
    pub fn differs(&self, loop_: u64) -> bool {
        loop_ > 0 && self.rules.is_some()
    }

    /// Writes `frame` as changed for loop `loop_` to the start of `out`. Its length is unchanged.
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
