//! Settings of the monitor, independent of their source (command line, configuration file).

use super::samples::OneIn;
use fcn_observe::access;
use fcn_observe::pauses::LINK_SPEED;
use fcn_observe::rules::FLOW_RATE;
use fcn_wire::pnc::Prefix;
use fcn_wire::{DscpSet, Kind, Profile};
use std::net::IpAddr;
use std::num::NonZeroU64;

/// Decoding options, and limits on what the monitor keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Code points for decoding.
    pub profile: Profile,
    /// Limits on what is kept.
    pub limits: Limits,
    /// True if the same QP captured on two interfaces has two rows.
    pub per_interface: bool,
    /// True if interfaces are shown by number, because names may contain an address in any
    /// spelling.
    pub hides_names: bool,
    /// True if the time of a mirror's copy is taken from the mirror's own clock, if usable.
    pub mirror_clock: bool,
    /// True if the ICRC of every completely captured RoCEv2 packet is verified. Costs time that
    /// grows with packet length.
    pub verify_icrc: bool,
    /// Trusted senders of Fast CNPs, proxy notifications and WAN FCNs; empty for no list and no
    /// suspicion (draft-xiao-rtgwg-rocev2-fast-cnp section 5).
    pub trust: Vec<Prefix>,
    /// Senders known to handle Fast CNPs, so that their data needs no CE mark in addition
    /// (draft-xiao-rtgwg-rocev2-fast-cnp section 4).
    pub able: Vec<Prefix>,
    /// The domain whose border no notification except CNPs may cross; empty for no border
    /// (draft-xiao-rtgwg-rocev2-fast-cnp section 5, draft-xiao-rtgwg-proxy-congestion-notification
    /// section 6, draft-he-rtgwg-wan-fcn section 6).
    pub domain: Vec<Prefix>,
    /// Maximum notifications per second, of any kind except CNPs, from one notifier about one flow
    /// (the same sections ask for a limit and leave its value open), counted by
    /// [`NotifierRate`](fcn_observe::rules::NotifierRate); 0 for no check.
    pub flow_rate: u32,
    /// Speed of the links in bit/s, for how long pauses last.
    pub link_speed: NonZeroU64,
    /// DSCPs that plain CNPs are expected with; empty for any.
    pub cnp_dscp: DscpSet,
    /// Sampling interval, one packet in this many, if the captured packets are samples; sFlow
    /// samples carry their own.
    pub sampled: Option<OneIn>,
}

impl Settings {
    /// Returns true if notifications of `kind` with that DSCP are unexpected.
    pub fn is_unexpected(&self, kind: Kind, dscp: u8) -> bool {
        kind == Kind::Cnp && self.cnp_dscp != DscpSet::EMPTY && !self.cnp_dscp.contains(dscp)
    }

    /// Returns true if that address may notify; `None` without a list.
    pub fn trusts(&self, notifier: IpAddr) -> Option<bool> {
        (!self.trust.is_empty()).then(|| access::list_contains(&self.trust, notifier))
    }
}

/// Maximum number of entries in each table; 0 counts as 1. The least recently used entry is evicted
/// first, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rows: notified QPs and flows, by kind.
    pub rows: usize,
    /// Data flows.
    pub flows: usize,
    /// Notifiers.
    pub points: usize,
    /// IOAM paths.
    pub paths: usize,
    /// Lines of the log.
    pub events: usize,
    /// Connections learnt from RDMA CM and from acknowledgements.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rows: 100_000,
            flows: 100_000,
            points: 10_000,
            paths: 1_000,
            events: 10_000,
            connections: 100_000,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: Profile::DEFAULT,
            limits: Limits::default(),
            per_interface: false,
            hides_names: false,
            mirror_clock: false,
            verify_icrc: true,
            trust: Vec::new(),
            able: Vec::new(),
            domain: Vec::new(),
            flow_rate: FLOW_RATE,
            link_speed: LINK_SPEED,
            cnp_dscp: DscpSet::EMPTY,
            sampled: None,
        }
    }
}
