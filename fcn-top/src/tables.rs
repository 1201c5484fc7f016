//! Contents of a screen or report at one moment, copied out of the monitor so that it can continue.

use crate::order::Order;
use crate::record::RowId;
use crate::record::{CounterRecord, EventRecord, HopRecord, InterfaceRecord, LocalQpRecord};
use crate::record::{FlowRecord, PauseRecord, PointRecord, QpRecord, ReceiverRecord};
use crate::record::{TrimmedRecord, UnreadRecord};
use fcn_observe::FlowKey;
use fcn_wire::Kind;
use serde::Serialize;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// Sums over everything captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Packets.
    pub packets: u64,
    /// Their octets on the wire.
    pub octets: u64,
    /// Notifications by kind, in the order of [`Kind::ALL`].
    #[serde(skip)]
    pub notifications: [u64; Kind::ALL.len()],
    /// Packets captured before at another capture point, where they are counted.
    pub copies: u64,
    /// Packets intended as notifications that cannot be decoded, included in `undecodable`.
    pub malformed: u64,
    /// Number of packets stamped earlier than their predecessor.
    pub stamps_back: u64,
    /// Largest step back, in nanoseconds.
    pub stamps_back_most: u64,
    /// Packets that are samples; every count of packets here counts each of them once.
    pub samples: u64,
    /// RoCEv2 data packets.
    pub data: u64,
    /// Data packets marked CE.
    pub ce: u64,
    /// Decodable packets that are neither.
    pub other: u64,
    /// PFC frames that pause at least one class, included in `other`.
    pub pfc: u64,
    /// PAUSE frames (IEEE 802.3x), which stop all classes, included in `other`.
    pub global_pauses: u64,
    /// Congestion notification messages of bridges (IEEE 802.1Q clause 33.4), included in `other`.
    pub cnms: u64,
    /// RoCEv2 packets that a switch has trimmed, included in `other`.
    pub trimmed: u64,
    /// RoCE v1 packets, included in `data` and `other`.
    pub roce_v1: u64,
    /// Packets not read although they may be RoCE or carry it, included in `other`.
    pub unread: u64,
    /// Packets truncated by the capture too much to decode.
    pub cut: u64,
    /// Notifications and data that the capture truncated, so that, for example, their ICRC cannot
    /// be verified.
    pub incomplete: u64,
    /// Packets that contradict themselves, have an unsupported link type, or cannot be decoded as
    /// the notifications that they were intended as.
    pub undecodable: u64,
    /// Notifications with a wrong ICRC.
    pub icrc_bad: u64,
    /// [Findings](crate::record::EventRecord::is_finding) of severity note, warning, error.
    pub findings: [u64; 3],
    /// Findings not listed individually, because a packet has more than are kept of one.
    pub findings_left_out: u64,
    /// QP rows kept.
    pub rows: u64,
    /// QP rows evicted, least recently notified first.
    pub rows_evicted: u64,
    /// Data flows kept.
    pub flows: u64,
    /// Data flows evicted, least recently seen first.
    pub flows_evicted: u64,
    /// Notifiers kept.
    pub notifiers: u64,
    /// Notifiers evicted.
    pub notifiers_evicted: u64,
}

impl Totals {
    /// Notifications of all kinds.
    pub fn notified(&self) -> u64 {
        self.notifications.iter().sum()
    }
}

/// Time series of one row or one notifier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// Start of the first step, in nanoseconds since the epoch.
    pub start: u64,
    /// Length of a step, in nanoseconds.
    pub step: u64,
    /// End of the data.
    pub until: u64,
    /// Notifications in each step.
    pub notifications: Vec<f32>,
    /// Maximum in any millisecond (2^20 ns) of each step; empty if steps are shorter than that.
    pub most: Vec<f32>,
    /// Octets of the flow's data (IP packets) in each step; empty if no data was captured.
    pub data: Vec<f32>,
    /// For a notifier: the deepest queue reported in each step, 0 if none was reported.
    pub queue: Vec<f32>,
    /// For a notifier: the highest congestion level in each step.
    pub level: Vec<f32>,
    /// Notifiers and their numbers of notifications; at most four.
    pub notifiers: Vec<(IpAddr, u64)>,
}

/// Traffic in one step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficStep {
    /// Notifications by kind, in the order of [`Kind::ALL`].
    pub notifications: [u32; Kind::ALL.len()],
    /// RoCEv2 data packets.
    pub data: u32,
    /// Data packets marked CE.
    pub ce: u32,
    /// Octets of the data's IP packets.
    pub octets: u64,
}

/// Time series of all traffic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Start of the first step, in nanoseconds since the epoch.
    pub start: u64,
    /// Length of a step, in nanoseconds.
    pub step: u64,
    /// End of the data.
    pub until: u64,
    /// The steps.
    pub steps: Vec<TrafficStep>,
}

/// Traffic of a flow in one step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStep {
    /// Notifications about it.
    pub notifications: u32,
    /// RoCEv2 data packets.
    pub data: u32,
    /// Data packets marked CE.
    pub ce: u32,
    /// Octets of the data's IP packets.
    pub octets: u64,
}

/// A flow over a whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowCourse {
    /// The flow.
    pub key: FlowKey,
    /// Start of separate counting for this flow, in nanoseconds since the epoch.
    pub since: u64,
    /// Notifications about it since then.
    pub notified: u64,
    /// Steps, aligned with those of [`Course::traffic`].
    pub steps: Vec<FlowStep>,
}

/// Time series of a whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Start of the first step, in nanoseconds since the epoch.
    pub start: u64,
    /// Length of a step, in nanoseconds.
    pub step: u64,
    /// All traffic except samples.
    pub traffic: Vec<TrafficStep>,
    /// Flows counted separately, most notified first.
    pub flows: Vec<FlowCourse>,
}

/// A kept packet of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastPacket {
    /// Capture time, in nanoseconds since the epoch.
    pub at: u64,
    /// Octets of the IP packet; 0 for a notification, and for a packet that is already counted
    /// elsewhere and was marked CE on its way here.
    pub octets: u32,
    /// True if it is marked CE.
    pub ce: bool,
    /// True if its PSN does not advance: retransmitted, or out of order.
    pub reordered: bool,
}

/// Requested time series; that of all traffic is always included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedDetails {
    /// Rows whose series are requested.
    pub rows: Vec<RowId>,
    /// Notifiers whose series are requested.
    pub points: Vec<IpAddr>,
    /// Row whose kept packets and notification times are requested.
    pub packets: Option<RowId>,
}

/// Time series.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// Series of all traffic.
    pub traffic: Traffic,
    /// Series of rows, without evicted ones.
    pub rows: HashMap<RowId, Detail>,
    /// Series of notifiers.
    pub points: HashMap<IpAddr, Detail>,
    /// Kept packets of a row and its flow, oldest first.
    pub packets: Vec<PastPacket>,
    /// Start of the period in which the time of every notification is remembered, and the
    /// notification times of that row, oldest first.
    pub notified: Option<(u64, Vec<u64>)>,
}

/// Packets dropped by the kernel and by an interface, or by all interfaces, if known.
pub type Dropped = (Option<u64>, Option<u64>);

/// Counters and queue pairs of this host's RDMA devices.
#[derive(Clone, Debug, Default)]
pub struct Nics {
    /// Driver counters.
    pub counters: Vec<CounterRecord>,
    /// Queue pairs.
    pub local_qps: Vec<LocalQpRecord>,
    /// Comparison of captured traffic with the NIC's counters: a port, and a sentence about it.
    pub sentences: Vec<(String, String)>,
    /// Reason for missing data: no device, or the kernel does not provide it.
    pub missing: Option<Arc<str>>,
}

/// The tables at one moment. Those not requested are empty.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Time of the tables, in nanoseconds since the epoch: that of the last packet, or the clock's.
    pub now: u64,
    /// Earliest time stamp of a packet; `None` before the first packet.
    pub started: Option<u64>,
    /// Start of the capture.
    pub since: u64,
    /// Notifications to each QP.
    pub qps: Vec<(RowId, QpRecord)>,
    /// Data flows.
    pub flows: Vec<FlowRecord>,
    /// Notifiers.
    pub points: Vec<PointRecord>,
    /// IOAM traces, by path and hop.
    pub hops: Vec<HopRecord>,
    /// The log, oldest first.
    pub events: Vec<EventRecord>,
    /// Sources of packets.
    pub interfaces: Vec<InterfaceRecord>,
    /// Counters of this host's RDMA devices, as of the last second.
    pub nics: Arc<Nics>,
    /// Sums.
    pub totals: Totals,
    /// Notifications per second in the last second; `None` if less than a second was captured and
    /// too few arrived in it.
    pub rate_1s: Option<f64>,
    /// RoCEv2 data in the last complete second, in octets of IP packets per second; `None` if less
    /// was captured and has few packets.
    pub data_rate: Option<f64>,
    /// Fraction of RoCEv2 data packets in the last complete second that are marked CE; `None` if
    /// there are no such packets.
    pub ce_1s: Option<f64>,
    /// Violations of each rule by its identifier, since the beginning, regardless of what the log
    /// has dropped; only rules that were violated.
    pub rules: Vec<(&'static str, u64)>,
    /// Packets not read although they may be RoCE or carry it, by reason, most first.
    pub unread: Vec<UnreadRecord>,
    /// Receivers of marked data, most marks first.
    pub receivers: Vec<ReceiverRecord>,
    /// Pauses by sender and class, longest first.
    pub pauses: Vec<PauseRecord>,
    /// Trimmed packets by flow and capture point, most first.
    pub trimmed: Vec<TrimmedRecord>,
}

impl Tables {
    /// Returns the time from the earliest stamp to `now`, in nanoseconds; 0 before the first
    /// packet.
    pub fn span(&self) -> u64 {
        let started = self.started.unwrap_or(self.now);
        self.now.saturating_sub(started)
    }

    /// Returns the addresses in the given rows and in all other tables, with duplicates.
    pub fn addresses<'t>(
        &'t self,
        rows: impl IntoIterator<Item = &'t QpRecord>,
    ) -> impl Iterator<Item = IpAddr> {
        let rows = rows.into_iter().flat_map(QpRecord::addresses);
        let points = self.points.iter().map(|point| point.notifier);
        let events = self.events.iter().flat_map(|event| [event.from, event.to]);
        rows.chain(points).chain(events.flatten())
    }

    /// Returns the row with that id.
    pub fn qp(&self, id: RowId) -> Option<&QpRecord> {
        let row = self.qps.iter().find(|(other, _)| *other == id);
        row.map(|(_, record)| record)
    }

    /// Returns the packets dropped by the kernel and by the interfaces, summed over those that
    /// report them; `None` if no interface does.
    pub fn dropped(&self) -> Dropped {
        let sum = |field: fn(&InterfaceRecord) -> Option<u64>| {
            let known = self.interfaces.iter().filter_map(field);
            known.reduce(u64::saturating_add)
        };
        (sum(|i| i.dropped_kernel), sum(|i| i.dropped_interface))
    }
}

/// Requested tables; interfaces and sums are always included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Notifications to each QP.
    pub qps: bool,
    /// Limit to about that many rows, the first in that order.
    pub first: Option<(Order, usize)>,
    /// Data flows.
    pub flows: bool,
    /// Notifiers, without which receivers include those whose CNPs come from the network.
    pub points: bool,
    /// IOAM paths.
    pub hops: bool,
    /// The log.
    pub events: bool,
}

impl Wanted {
    /// All of them, without limits.
    pub const ALL: Self = Self {
        qps: true,
        first: None,
        flows: true,
        points: true,
        hops: true,
        events: true,
    };
}

/// A source of data for the screen.
pub trait TableSource {
    /// Returns the current tables.
    fn tables(&self, wanted: Wanted) -> Tables;

    /// Returns the current time series.
    fn details(&self, wanted: &WantedDetails) -> Details;

    /// Writes the kept packets of a row (its notifications and its flow's data) to a new pcapng
    /// file. Returns their number, and the number of packets of any row that were dropped from
    /// memory before.
    ///
    /// # Errors
    ///
    /// The packets cannot be exported. The text says what failed, on what, and what to do.
    fn export(&self, row: RowId, to: &Path) -> Result<(u64, u64), String>;

    /// Returns why the input ended, if all input has: "end of file", or the error.
    fn ended(&self) -> Option<String>;
}
