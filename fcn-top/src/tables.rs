//! What a screen or a report shows at one moment: copied out of the monitor, so that it goes on meanwhile.

use crate::order::Order;
use crate::record::RowId;
use crate::record::{CounterRecord, EventRecord, HopRecord, InterfaceRecord, LocalQpRecord};
use crate::record::{PointRecord, QpRecord};
use fcn_observe::FlowKey;
use fcn_wire::Kind;
use serde::Serialize;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// Sums over everything seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Packets.
    pub packets: u64,
    /// Octets of them on the wire.
    pub octets: u64,
    /// Notifications by kind, in the order of [`Kind::ALL`].
    #[serde(skip)]
    pub notifications: [u64; Kind::ALL.len()],
    /// Packets that were seen at another place before, and are counted there alone.
    pub copies: u64,
    /// Packets meant as notifications that cannot be read, among the undecodable.
    pub malformed: u64,
    /// How often a packet is stamped before the one before it.
    pub stamps_back: u64,
    /// By how much at most, in nanoseconds.
    pub stamps_back_most: u64,
    /// Packets that are samples: whatever counts packets here counts each as one.
    pub samples: u64,
    /// RoCEv2 data packets.
    pub data: u64,
    /// Of them marked CE.
    pub ce: u64,
    /// Packets that are neither and could be read.
    pub other: u64,
    /// Of them PFC frames that pause at least one class.
    pub pfc: u64,
    /// Packets of which the capture has too little to read them.
    pub cut: u64,
    /// Notifications and data of which the capture has not all octets, so that their ICRC, for one, cannot be verified.
    pub incomplete: u64,
    /// Packets that contradict themselves, are of a link type that is not read, or cannot be read as the notifications that
    /// they were meant as.
    pub undecodable: u64,
    /// Notifications with a wrong ICRC.
    pub icrc_bad: u64,
    /// [Findings](crate::record::EventRecord::is_finding) of severity note, warning, error.
    pub findings: [u64; 3],
    /// Of them those that are not named, as the packet shows more than are kept of one.
    pub findings_left_out: u64,
    /// QP rows kept, and how many of them have had to go, the least recently notified first.
    pub rows: u64,
    /// Rows gone.
    pub rows_evicted: u64,
    /// Data flows kept.
    pub flows: u64,
    /// Data flows gone, the least recently seen first.
    pub flows_evicted: u64,
    /// Notifiers kept.
    pub points: u64,
    /// Notifiers gone.
    pub points_evicted: u64,
}

impl Totals {
    /// Notifications of all kinds.
    pub fn notified(&self) -> u64 {
        self.notifications.iter().sum()
    }
}

/// One row, or one notifier, over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// Start of the first step, in nanoseconds since the epoch.
    pub start: u64,
    /// Length of a step, in nanoseconds.
    pub step: u64,
    /// What is later is not in it.
    pub until: u64,
    /// Notifications in each step.
    pub notifications: Vec<f32>,
    /// The most of them in any one millisecond (2^20 ns) of each step; empty where steps are shorter than that.
    pub most: Vec<f32>,
    /// Octets of the flow's data (IP packets) in each step; empty where no data was seen.
    pub data: Vec<f32>,
    /// Of a notifier, the deepest queue that it told of in each step; 0 where it told of none.
    pub queue: Vec<f32>,
    /// Of a notifier, the highest congestion level in each step.
    pub level: Vec<f32>,
    /// Who notified, and how often: at most four.
    pub notifiers: Vec<(IpAddr, u64)>,
}

/// What passed in a step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficStep {
    /// Notifications by kind, in the order of [`Kind::ALL`].
    pub notifications: [u32; Kind::ALL.len()],
    /// RoCEv2 data packets.
    pub data: u32,
    /// Of them marked CE.
    pub ce: u32,
    /// Octets of their IP packets.
    pub octets: u64,
}

/// All traffic over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Start of the first step, in nanoseconds since the epoch.
    pub start: u64,
    /// Length of a step, in nanoseconds.
    pub step: u64,
    /// What is later is not in it.
    pub until: u64,
    /// The steps.
    pub steps: Vec<TrafficStep>,
}

/// What passed of a flow in a step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStep {
    /// Notifications about it.
    pub notifications: u32,
    /// RoCEv2 data packets.
    pub data: u32,
    /// Of them marked CE.
    pub ce: u32,
    /// Octets of their IP packets.
    pub octets: u64,
}

/// A flow over a whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowCourse {
    /// Which.
    pub key: FlowKey,
    /// From when on it was told apart from the others, in nanoseconds since the epoch.
    pub since: u64,
    /// Notifications about it from then on.
    pub notified: u64,
    /// The steps of [`Course::traffic`].
    pub steps: Vec<FlowStep>,
}

/// A whole run over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Start of the first step, in nanoseconds since the epoch.
    pub start: u64,
    /// Length of a step, in nanoseconds.
    pub step: u64,
    /// All traffic, but for samples.
    pub traffic: Vec<TrafficStep>,
    /// Flows that are told apart, those that were notified most first.
    pub flows: Vec<FlowCourse>,
}

/// A packet behind a row that is still kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastPacket {
    /// When it was captured, in nanoseconds since the epoch.
    pub at: u64,
    /// Octets of the IP packet; 0 for a notification, and where it counts elsewhere already, and was marked CE on the way here.
    pub octets: u32,
    /// Whether it is marked CE.
    pub ce: bool,
    /// Whether its PSN is not behind that of the flow's packet before.
    pub back: bool,
}

/// Which courses over time are wanted; that of all traffic always comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedDetails {
    /// Those of these rows.
    pub rows: Vec<RowId>,
    /// Those of these notifiers.
    pub points: Vec<IpAddr>,
    /// The packets kept of this row, and when its notifications came.
    pub packets: Option<RowId>,
}

/// Courses over time.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// Of all traffic.
    pub traffic: Traffic,
    /// Of rows; those that have had to go are missing.
    pub rows: HashMap<RowId, Detail>,
    /// Of notifiers.
    pub points: HashMap<IpAddr, Detail>,
    /// The packets kept of a row and of the flow that it is about, the oldest first.
    pub packets: Vec<PastPacket>,
    /// From when on the time of every notification is remembered, and those of that row, the oldest first.
    pub notified: Option<(u64, Vec<u64>)>,
}

/// Packets dropped by the kernel and by an interface, or by all of them, where that is known.
pub type Dropped = (Option<u64>, Option<u64>);

/// What this host's RDMA devices count, and their queue pairs.
#[derive(Clone, Debug, Default)]
pub struct Nics {
    /// What their drivers count.
    pub counters: Vec<CounterRecord>,
    /// Their queue pairs.
    pub local_qps: Vec<LocalQpRecord>,
    /// What was seen and what the NIC counts, side by side: a port, and a sentence about it.
    pub sentences: Vec<(String, String)>,
    /// Why something is missing: there is no device, or the kernel does not tell.
    pub missing: Option<Arc<str>>,
}

/// The tables at one moment. What was not wanted is empty.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// The moment, in nanoseconds since the epoch: that of the last packet, or the clock's.
    pub now: u64,
    /// The earliest time that a packet is stamped with; `None` before there is one.
    pub started: Option<u64>,
    /// From when on packets were watched.
    pub since: u64,
    /// What each QP is told.
    pub qps: Vec<(RowId, QpRecord)>,
    /// Who tells.
    pub points: Vec<PointRecord>,
    /// What IOAM traces say, hop by hop, path by path.
    pub hops: Vec<HopRecord>,
    /// The log, oldest first.
    pub events: Vec<EventRecord>,
    /// Where packets come from.
    pub interfaces: Vec<InterfaceRecord>,
    /// What this host's RDMA devices count, as of the last second.
    pub nics: Arc<Nics>,
    /// Sums.
    pub totals: Totals,
    /// Notifications a second in the last second; `None` where less was watched and too few came in it.
    pub rate_1s: Option<f64>,
    /// RoCEv2 data in the last second that is over, in octets a second of IP packets; `None` where that is less and holds few.
    pub data_rate: Option<f64>,
    /// Part of the packets of RoCEv2 data in the last second that is over which are marked CE; `None` where there are none.
    pub ce_1s: Option<f64>,
    /// How often each rule was found broken, by its identifier, since the beginning and whatever the log has forgotten;
    /// rules that were not are left out.
    pub rules: Vec<(&'static str, u64)>,
}

impl Tables {
    /// The time from the earliest stamp to the moment, in nanoseconds; 0 before the first packet.
    pub fn span(&self) -> u64 {
        let started = self.started.unwrap_or(self.now);
        self.now.saturating_sub(started)
    }

    /// The addresses in some of the rows and in all other tables, some of them more than once.
    pub fn addresses<'t>(
        &'t self,
        rows: impl IntoIterator<Item = &'t QpRecord>,
    ) -> impl Iterator<Item = IpAddr> {
        let rows = rows.into_iter().flat_map(QpRecord::addresses);
        let points = self.points.iter().map(|point| point.notifier);
        let events = self.events.iter().flat_map(|event| [event.from, event.to]);
        rows.chain(points).chain(events.flatten())
    }

    /// The row of that name.
    pub fn qp(&self, id: RowId) -> Option<&QpRecord> {
        let row = self.qps.iter().find(|(other, _)| *other == id);
        row.map(|(_, record)| record)
    }

    /// Packets dropped by the kernel and by the interfaces, of all that say so; `None` where none does.
    pub fn dropped(&self) -> Dropped {
        let sum = |field: fn(&InterfaceRecord) -> Option<u64>| {
            let known = self.interfaces.iter().filter_map(field);
            known.reduce(u64::saturating_add)
        };
        (sum(|i| i.dropped_kernel), sum(|i| i.dropped_interface))
    }
}

/// Which of the tables are wanted; interfaces and sums always come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What each QP is told.
    pub qps: bool,
    /// Of those rows only so many (or a few more) that come first in that order.
    pub first: Option<(Order, usize)>,
    /// Who tells.
    pub points: bool,
    /// IOAM paths.
    pub hops: bool,
    /// The log.
    pub events: bool,
}

impl Wanted {
    /// All of them, whole.
    pub const ALL: Self = Self {
        qps: true,
        first: None,
        points: true,
        hops: true,
        events: true,
    };
}

/// What a screen watches.
pub trait Watched {
    /// The tables as they are now.
    fn tables(&self, wanted: Wanted) -> Tables;

    /// Courses over time as they are now.
    fn details(&self, wanted: &WantedDetails) -> Details;

    /// Writes the packets kept that stand behind a row (its notifications and its flow's data) into a new pcapng file;
    /// returns how many, and how many packets of whatever row had left before.
    ///
    /// # Errors
    /// What failed, on what, and what to do.
    fn export(&self, row: RowId, to: &Path) -> Result<(u64, u64), String>;

    /// What has come to an end, where all input has: "end of file", or why it broke off.
    fn ended(&self) -> Option<String>;
}
