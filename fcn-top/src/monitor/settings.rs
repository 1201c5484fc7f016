//! The monitor's settings, wherever they come from (command line, configuration file).

use super::samples::OneIn;
use fcn_observe::access;
use fcn_observe::rules::FLOW_RATE;
use fcn_wire::Profile;
use fcn_wire::pnc::Prefix;
use std::net::IpAddr;

/// How the monitor reads and what it keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The code points to read with.
    pub profile: Profile,
    /// How much is kept at most.
    pub limits: Limits,
    /// Whether the same QP seen on two interfaces has two rows.
    pub per_interface: bool,
    /// Whether interfaces have their numbers in place of names, in which addresses may be hidden in any spelling.
    pub hides_names: bool,
    /// Whether the time of a mirror's copy is what its own clock says, where it can be used.
    pub mirror_clock: bool,
    /// Whether the ICRC of every RoCEv2 packet captured whole is verified. Costs time that grows with the packets.
    pub verify_icrc: bool,
    /// Who may send Fast CNPs, proxy notifications and WAN FCNs; empty: no such list, nobody is suspected
    /// (draft-xiao-rtgwg-rocev2-fast-cnp section 5).
    pub trust: Vec<Prefix>,
    /// Senders that are known to handle Fast CNPs, so that their data need no CE mark beside one
    /// (draft-xiao-rtgwg-rocev2-fast-cnp section 4).
    pub able: Vec<Prefix>,
    /// The domain, whose border no notification may cross but CNPs; empty: no such border (draft-xiao-rtgwg-rocev2-fast-cnp
    /// section 5, draft-xiao-rtgwg-proxy-congestion-notification section 6, draft-he-rtgwg-wan-fcn section 6).
    pub domain: Vec<Prefix>,
    /// Notifications of whatever kind but CNPs that one notifier may send about one flow in a second (the same sections ask
    /// for a limit and leave its value open), counted by [`NotifierRate`](fcn_observe::rules::NotifierRate); 0: not checked.
    pub flow_rate: u32,
    /// Of how many packets one is captured, where those captured are samples; samples that say so themselves (sFlow) know
    /// better.
    pub sampled: Option<OneIn>,
}

impl Settings {
    /// Whether that address may notify; `None` where there is no list of who may.
    pub fn trusts(&self, notifier: IpAddr) -> Option<bool> {
        (!self.trust.is_empty()).then(|| access::lists(&self.trust, notifier))
    }
}

/// How many entries each table holds at most; 0 counts as 1. What has been used longest ago leaves first, and is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rows: QPs and flows that are told to slow down, by kind.
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
            sampled: None,
        }
    }
}
