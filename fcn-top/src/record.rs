//! Contents of the tables: one record type for each kind of row, with its columns.
//!
//! Columns are declared here only; screens, sorting, filters, JSON, CSV and reports all use these
//! declarations. `text.rs` formats cells; the values are the monitor's.

use crate::nic::known::Quantity;
use derive_more::Display;
use fcn_wire::{Kind, Origin, Severity};
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;

/// Identifies a row for as long as it is kept. Values are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub u64);

impl RowId {
    /// Index of the row's slot, unique among the rows kept, below the largest number of rows ever
    /// kept at once.
    pub(crate) const fn place(self) -> u32 {
        self.0 as u32
    }
}

/// State of an interface that is not captured on itself: packets captured on all interfaces
/// together passed it, or a mirror copied them from it.
pub const INDIRECT: &str = "passed";

/// State of the interface of the built-in capture, also in exports of its packets.
pub const MADE_UP: &str = "demo: made-up traffic";

/// A value in a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Unknown, or not applicable.
    None,
    /// A name from a fixed list.
    Name(&'static str),
    /// Free text.
    Text(&'a str),
    /// Evidence of a conclusion, as text.
    Evidence(EvidenceCell),
    /// An address; masked, or with its name, if requested.
    Address(IpAddr),
    /// A quantity, or an identifier (a QP, a flow label, a frame).
    Count(u64),
    /// A rate per second.
    Rate(f64),
    /// Bits per second.
    Bits(f64),
    /// A fraction of a whole, 0 to 1.
    Share(f64),
    /// A relative change: 0.5 is growth by half, −0.5 is a decline by half.
    Change(f64),
    /// A duration in nanoseconds.
    Span(u64),
    /// A time, in nanoseconds since the epoch.
    Moment(u64),
}

/// A column of a table.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Stable identifier in filters, JSON, CSV and `--sort`.
    pub id: &'static str,
    /// Heading on the screen.
    pub title: &'static str,
    /// Meaning, with unit and range, in one sentence.
    pub about: &'static str,
    /// Preferred width on the screen, in characters.
    #[serde(skip)]
    pub width: u16,
    /// Type of its cells that are not empty.
    pub holds: Holds,
}

impl Column {
    /// Number of decimals of the second in its times: as many as fit.
    pub const fn digits(&self) -> usize {
        if self.width >= 15 { 6 } else { 3 }
    }
}

/// Type of a column's cells: determines how a filter parses values for it, and how values are
/// formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// [`Cell::Name`].
    Name,
    /// [`Cell::Text`] and [`Cell::Evidence`].
    Text,
    /// [`Cell::Address`].
    Address,
    /// [`Cell::Count`]: a quantity.
    Count,
    /// [`Cell::Count`]: an identifier.
    Number,
    /// [`Cell::Count`]: a QP number, 24 bits.
    Qp,
    /// [`Cell::Count`]: a flow label, 20 bits.
    Label,
    /// [`Cell::Rate`].
    Rate,
    /// [`Cell::Bits`].
    Bits,
    /// [`Cell::Share`].
    Share,
    /// [`Cell::Change`].
    Change,
    /// [`Cell::Span`].
    Span,
    /// [`Cell::Moment`].
    Moment,
}

impl Holds {
    /// Returns true if it is a number, which is aligned to the right.
    pub const fn is_number(self) -> bool {
        !matches!(self, Self::Name | Self::Text | Self::Address | Self::Moment)
    }
}

/// A row of a table.
pub trait Record {
    /// Name of the table, in schemas and on screens.
    const TABLE: &'static str;
    /// Columns, in their default order.
    const COLUMNS: &'static [Column];

    /// Value in the column of that index; [`Cell::None`] if there is no value.
    fn cell(&self, column: usize) -> Cell<'_>;
}

/// Returns the index of the column with identifier `id`.
pub fn column_named<R: Record>(id: &str) -> Option<usize> {
    R::COLUMNS.iter().position(|column| column.id == id)
}

macro_rules! records {
    ($( $(#[$doc:meta])* $name:ident, $table:literal, {
        $( $field:ident : $type:ty = $title:literal, $width:literal, $holds:ident, $about:literal, |$value:ident| $cell:expr; )+
    } )+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $( #[doc = $about] pub $field: $type, )+ }

        impl Record for $name {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [Column] = &[ $( Column {
                id: stringify!($field), title: $title, about: $about, width: $width, holds: Holds::$holds,
            }, )+ ];

            fn cell(&self, column: usize) -> Cell<'_> {
                let mut at = 0;
                $(
                    if column == at {
                        let $value = &self.$field;
                        return $cell;
                    }
                    at += 1;
                )+
                let _ = at;
                Cell::None
            }
        }
    )+};
}

pub(crate) use records;

/// Applies `f` to the value, if there is one.
fn some<T: Copy>(value: &Option<T>, f: impl FnOnce(T) -> Cell<'static>) -> Cell<'static> {
    value.map_or(Cell::None, f)
}

fn count<T: Copy + Into<u64>>(value: &Option<T>) -> Cell<'static> {
    some(value, |value| Cell::Count(value.into()))
}

pub use fcn_observe::exchange::Cause;
pub use fcn_observe::obedience::{Slower, Unit};
pub use fcn_observe::origin::{self, Maker};
pub use fcn_observe::receivers::Pacing;
pub use fcn_observe::{Advice, Answer, ClassRelation, Ecn, Evidence, Resolved};
pub use fcn_wire::notification::Side as QpSide;

/// Evidence of a conclusion, or what is missing for one.
#[derive(Clone, Copy, Debug, Display, PartialEq)]
pub enum EvidenceCell {
    /// Evidence of a sender's obedience.
    Verdict(Evidence),
    /// Additional data needed for a verdict.
    Advice(Advice),
    /// Evidence of the origin of CNPs.
    Maker(origin::Evidence),
}

records! {
    /// Notifications of one kind to one sender's QP.
    QpRecord, "qps", {
        sender: Option<IpAddr> = "Sender", 22, Address, "Data sender asked to slow down; empty if neither the notification nor the traffic identifies it", |v| some(v, Cell::Address);
        qp: Option<u32> = "QP", 8, Qp, "The flow's QP, the same for every kind: the sender's if known (see sender_qp_from), else the receiver's", |v| count(v);
        qp_side: Option<QpSide> = "Of", 8, Name, "Whose QP it is: the sender's, or the receiver's, which Fast CNPs and proxy notifications name", |v| some(v, |v| Cell::Name(v.id()));
        kind: Kind = "Kind", 10, Name, "Kind of notification: cnp, fast_cnp_1, fast_cnp_2, proxy_cn, wan_fcn", |v| Cell::Name(v.id());
        notifier_role: Origin = "Acts as", 14, Name, "Role of the notifier, from the kind and the source address of its notifications, which anyone can forge (for the origin of CNPs with the receiver's address, see made_by): receiver, switch, or proxy and ingress_pe, which translate notifications; ambiguous if one of these was notified just before and may send in the receiver's name; unknown if its address is not that of the receiver of the CNP's flow. The role in most of the notifications; unknown ones count as proxy, ingress_pe or switch if it was one of these", |v| Cell::Name(v.id());
        notifier: IpAddr = "Notifier", 22, Address, "Source address of the notifications; if there are several, the one of the first four that sent the most", |v| Cell::Address(*v);
        notifiers: u32 = "Ns", 3, Count, "Number of notifiers; beyond 4 they are not distinguished", |v| Cell::Count((*v).into());
        destination: IpAddr = "To", 22, Address, "Destination address of the notifications: the sender, the proxy node or the ingress PE", |v| Cell::Address(*v);
        flow_label: Option<u32> = "Label", 7, Label, "Outer flow label that a WAN FCN names", |v| count(v);
        sender_qp: Option<u32> = "Own QP", 8, Qp, "The sender's QP, if known", |v| count(v);
        sender_qp_from: Option<Resolved> = "From", 6, Name, "How the sender's QP is known: packet (the notification names it), cm, port, acks, only", |v| some(v, |v| Cell::Name(v.id()));
        receiver: Option<IpAddr> = "Receiver", 22, Address, "The data receiver, if known", |v| some(v, Cell::Address);
        receiver_qp: Option<u32> = "Peer QP", 8, Qp, "The receiver's QP, if known", |v| count(v);
        receiver_qp_from: Option<Resolved> = "Peer from", 9, Name, "How the receiver's QP is known: packet (the notification names it), cm, port, acks, only; empty if it is known by a flow label", |v| some(v, |v| Cell::Name(v.id()));
        interface: Option<Arc<str>> = "If", 8, Text, "Capture interface, if there are several; a packet captured on two counts once, unless --per-interface counts them separately", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        path: Option<Arc<str>> = "Path", 60, Text, "Capture points that notifications passed, in order, and the time from each to the next: the median of the last 15 or, if they vary, the range of the middle half, with the number of notifications in brackets; paths of other notifications follow after a semicolon", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        rate_now: Option<f64> = "Now/s", 8, Rate, "Notifications per second in the last complete tenth of a second", |v| some(v, Cell::Rate);
        rate_1s: Option<f64> = "1 s", 8, Rate, "Notifications per second in the last second, by complete tenths; over less time if capturing began later and at least ten arrived", |v| some(v, Cell::Rate);
        rate_10s: Option<f64> = "10 s", 8, Rate, "Notifications per second in the last ten complete seconds of the clock, so up to a second old; over fewer if capturing began later and at least ten arrived", |v| some(v, Cell::Rate);
        rate_mean: Option<f64> = "Mean/s", 8, Rate, "Notifications per second from the first to the last; may exceed the peak if that is less than a second", |v| some(v, Cell::Rate);
        rate_peak: Option<f64> = "Peak/s", 8, Rate, "Most notifications in ten consecutive tenths of a second of the clock; empty if they are samples", |v| some(v, Cell::Rate);
        total: u64 = "Total", 9, Count, "Notifications since the row began; an estimate if sampled exceeds 1", |v| Cell::Count(*v);
        total_low: Option<u64> = "Low", 9, Count, "Lower limit of the 95 % interval of the number of notifications, from samples; empty if all were captured", |v| count(v);
        total_high: Option<u64> = "High", 9, Count, "Upper limit of the 95 % interval of the number of notifications, from samples", |v| count(v);
        sampled: Option<u64> = "1 in", 7, Count, "Average number of notifications per sample: total and rates are estimates; empty if all were captured", |v| count(v);
        gap_min: Option<u64> = "Gap min", 9, Span, "Shortest time between two notifications, in nanoseconds; empty if they did not arrive in order", |v| some(v, Cell::Span);
        gap_p50: Option<u64> = "Gap p50", 9, Span, "Median time between notifications, in nanoseconds (to 1 %)", |v| some(v, Cell::Span);
        gap_p90: Option<u64> = "Gap p90", 9, Span, "90th percentile of the time between notifications, in nanoseconds (to 1 %)", |v| some(v, Cell::Span);
        gap_p99: Option<u64> = "Gap p99", 9, Span, "99th percentile of the time between notifications, in nanoseconds (to 1 %)", |v| some(v, Cell::Span);
        level: Option<u8> = "Lvl", 3, Count, "Congestion level of the last notification, 0 to 7", |v| count(v);
        level_max: Option<u8> = "Max", 3, Count, "Highest congestion level, 0 to 7", |v| count(v);
        queue: Option<u32> = "Queue", 9, Count, "Deepest queue in the IOAM trace of the last notification, in the unit of its namespace", |v| count(v);
        queue_max: Option<u32> = "Queue max", 9, Count, "Deepest queue in any IOAM trace", |v| count(v);
        ce_share: Option<f64> = "CE", 6, Share, "Fraction of the flow's captured data packets that were marked CE, 0 to 1", |v| some(v, Cell::Share);
        dscp: Option<u8> = "DSCP", 4, Number, "DSCP of the last notification, 0 to 63", |v| count(v);
        ecn: Option<Ecn> = "ECN", 7, Name, "ECN field of the last notification: not_ect, ect_1, ect_0, ce", |v| some(v, |v| Cell::Name(v.id()));
        vlan_priority: Option<u8> = "PCP", 3, Number, "VLAN priority of the last notification, 0 to 7; empty without a tag", |v| count(v);
        data_dscp: Option<u8> = "Data DSCP", 9, Number, "DSCP of the flow's last data packet, 0 to 63", |v| count(v);
        data_vlan_priority: Option<u8> = "Data PCP", 8, Number, "VLAN priority of the flow's last data packet, 0 to 7; empty without a tag", |v| count(v);
        class: Option<ClassRelation> = "Class", 9, Name, "Class (DSCP and VLAN priority) of the notifications: apart from the data, with_data, or several; empty if DSCP and VLAN priority disagree", |v| some(v, |v| Cell::Name(v.id()));
        data_rate: Option<f64> = "Data", 11, Bits, "The flow's data in the last second, by complete tenths, in bits per second of IP packets; over less time if capturing began later and at least ten packets arrived", |v| some(v, Cell::Bits);
        data_packets: Option<u64> = "Packets", 9, Count, "The flow's captured data packets; an estimate if data_sampled exceeds 1", |v| count(v);
        data_sampled: Option<u64> = "Data 1 in", 9, Count, "Average number of the flow's data packets per sample, at the capture point that sampled most: their number and rate are estimates; empty if all were captured", |v| count(v);
        change: Option<f64> = "Change", 7, Change, "Least reduction of the flow's data after notifications, compared with other times, at the time scale that the evidence names: -0.5 is half; empty if the verdict is not obeys, or rests on another path", |v| some(v, Cell::Change);
        measured: u64 = "Meas", 6, Count, "Notifications of any kind about the flow, at any capture point, with data before the next one: the basis of the verdict", |v| Cell::Count(*v);
        verdict: Option<Answer> = "Verdict", 8, Name, "Whether the sender slows down when notified: obeys, does_not_obey, unclear; empty if no data is known to be its", |v| some(v, |v| Cell::Name(v.id()));
        evidence: Option<Evidence> = "Evidence", 130, Text, "Evidence of the verdict, in a sentence", |v| some(v, |v| Cell::Evidence(EvidenceCell::Verdict(v)));
        advice: Option<Advice> = "Would help", 45, Text, "What would help to decide whether the sender obeys; empty if the verdict is not unclear, or nothing is known to help", |v| some(v, |v| Cell::Evidence(EvidenceCell::Advice(v)));
        made_by: Option<Maker> = "Made by", 21, Name, "Inferred origin of plain CNPs, whatever their source address: receiver, receiver_or_imitation (the receiver, or a switch that imitates it), network (a switch, or a proxy or ingress PE notified out of sight of the capture), proxy, ingress_pe, mixed (the receiver and others), or unknown; empty for other kinds", |v| some(v, |v| Cell::Name(v.id()));
        made_by_evidence: Option<origin::Evidence> = "Made-by evidence", 80, Text, "Evidence of made_by, in a sentence; if there are several origins or too little evidence, the number of CNPs from each origin", |v| some(v, |v| Cell::Evidence(EvidenceCell::Maker(v)));
        first_seen: u64 = "First", 12, Moment, "First notification, in nanoseconds since the epoch", |v| Cell::Moment(*v);
        last_seen: u64 = "Last", 12, Moment, "Last notification, in nanoseconds since the epoch", |v| Cell::Moment(*v);
        icrc_bad: u64 = "ICRC", 5, Count, "Notifications whose ICRC was wrong", |v| Cell::Count(*v);
        findings: u64 = "Finds", 5, Count, "Findings about the notifications, of any severity", |v| Cell::Count(*v);
    }

    /// Data from one host to a QP of another, notified or not.
    FlowRecord, "flows", {
        sender: IpAddr = "Sender", 22, Address, "Source address of the data", |v| Cell::Address(*v);
        receiver: IpAddr = "Receiver", 22, Address, "Destination address of the data", |v| Cell::Address(*v);
        receiver_qp: u32 = "Peer QP", 8, Qp, "The receiver's QP, which the data names", |v| Cell::Count((*v).into());
        sender_qp: Option<u32> = "Own QP", 8, Qp, "The sender's QP, if known; acknowledgements name it, so without it none is counted", |v| count(v);
        sender_qp_from: Option<Resolved> = "From", 6, Name, "How the sender's QP is known: cm, port, acks, only", |v| some(v, |v| Cell::Name(v.id()));
        data_rate: Option<f64> = "Data", 11, Bits, "Data in the last second, by complete tenths, in bits per second of IP packets; over less time if capturing began later and at least ten packets arrived", |v| some(v, Cell::Bits);
        data_packets: u64 = "Packets", 9, Count, "Captured data packets, of all connections of the QP; copies of a capture that has packets twice are left out as soon as they are known; an estimate if data_sampled exceeds 1", |v| Cell::Count(*v);
        data_octets: u64 = "Octets", 13, Count, "Octets of their IP packets; an estimate if data_sampled exceeds 1", |v| Cell::Count(*v);
        data_sampled: Option<u64> = "Data 1 in", 9, Count, "Average number of data packets per sample, at the capture point that sampled most: their number, octets and rate are estimates, and nothing is known about their order; empty if all were captured", |v| count(v);
        ce_share: Option<f64> = "CE", 6, Share, "Fraction of the data packets that were marked CE, 0 to 1", |v| some(v, Cell::Share);
        ecn: Option<Ecn> = "ECN", 7, Name, "ECN capability of the data: the field of its last packet not marked CE (not_ect, ect_1, ect_0), or ce if all were; a switch cannot mark Not-ECT data", |v| some(v, |v| Cell::Name(v.id()));
        not_ect: u64 = "Not-ECT", 8, Count, "Data packets that are Not-ECT", |v| Cell::Count(*v);
        data_dscp: Option<u8> = "Data DSCP", 9, Number, "DSCP of the last data packet, 0 to 63", |v| count(v);
        data_vlan_priority: Option<u8> = "Data PCP", 8, Number, "VLAN priority of the last data packet, 0 to 7; empty without a tag", |v| count(v);
        ack_dscp: Option<u8> = "Ack DSCP", 8, Number, "DSCP of the last acknowledgement, 0 to 63", |v| count(v);
        ack_vlan_priority: Option<u8> = "Ack PCP", 7, Number, "VLAN priority of the last acknowledgement, 0 to 7; empty without a tag", |v| count(v);
        acks: u64 = "ACKs", 9, Count, "Positive acknowledgements; responses to RDMA READs are data of the other direction and not among them", |v| Cell::Count(*v);
        rnr_naks: u64 = "RNR", 6, Count, "RNR NAKs: the receiver was not ready", |v| Cell::Count(*v);
        nak_sequence: u64 = "NAK seq", 7, Count, "NAKs for a PSN sequence error: a packet is missing", |v| Cell::Count(*v);
        nak_invalid_request: u64 = "NAK inv", 7, Count, "NAKs for an invalid request, which end the connection, as do the next two", |v| Cell::Count(*v);
        nak_remote_access: u64 = "NAK acc", 7, Count, "NAKs for a remote access error", |v| Cell::Count(*v);
        nak_remote_operation: u64 = "NAK op", 6, Count, "NAKs for a remote operational error", |v| Cell::Count(*v);
        resent: u64 = "Resent", 8, Count, "Data packets retransmitted, as far as they differ from copies by the capture: after a NAK, after a silence of 1 ms, and in larger captures by their PSNs", |v| Cell::Count(*v);
        late: u64 = "Late", 6, Count, "Data packets out of order that no NAK had asked for", |v| Cell::Count(*v);
        stall_max: Option<u64> = "Stall max", 9, Span, "Longest stall, in nanoseconds: at least 100 µs without data before a retransmission", |v| some(v, Cell::Span);
        stall_after: Option<Cause> = "After", 10, Name, "What the longest stall followed: rnr_nak, nak (PSN sequence error), or unanswered (data that was not acknowledged)", |v| some(v, |v| Cell::Name(v.id()));
        stalls: u64 = "Stalls", 6, Count, "Number of stalls that followed the same", |v| Cell::Count(*v);
        stalls_all: u64 = "All", 6, Count, "Number of stalls, whatever they followed", |v| Cell::Count(*v);
        stalled: u64 = "Stalled", 9, Span, "Sum of all stalls, in nanoseconds", |v| Cell::Span(*v);
        tries: Option<u8> = "Tries", 5, Count, "Transmissions of the last packet that was sent several times, if it is not acknowledged and no newer data followed", |v| count(v);
        path_pauses: u64 = "Pauses", 6, Count, "Data packets before which PFC or PAUSE had paused their path since the flow's previous packet, on the link captured; the verdict does not count these gaps", |v| Cell::Count(*v);
        exhausted: bool = "Exhausted", 9, Name, "Whether the sender has probably exhausted its retries: it sent one packet 8 times, or 3 times and then nothing for twice as long as before the last time, without an acknowledgement", |v| Cell::Name(if *v { "yes" } else { "no" });
        rtt_min: Option<u64> = "RTT min", 9, Span, "Shortest time from a data packet that asks for an acknowledgement (AckReq) to that acknowledgement where the data is captured, in nanoseconds: there and back from the capture point to the receiver; empty if none asks", |v| some(v, Cell::Span);
        rtt_last: Option<u64> = "RTT", 9, Span, "The same time at the last packet that was sent once and acknowledged by itself, in nanoseconds", |v| some(v, Cell::Span);
        verdict: Option<Answer> = "Verdict", 8, Name, "Whether the sender slows down when notified, as in the rows of its notifications: obeys, does_not_obey, unclear; empty if it is not notified", |v| some(v, |v| Cell::Name(v.id()));
        first_seen: u64 = "First", 12, Moment, "First data packet, in nanoseconds since the epoch", |v| Cell::Moment(*v);
        last_seen: u64 = "Last", 12, Moment, "Last data packet, in nanoseconds since the epoch", |v| Cell::Moment(*v);
    }

    /// A notifier: a congestion point, or a receiver, proxy or ingress PE that sends CNPs.
    PointRecord, "notifiers", {
        notifier: IpAddr = "Notifier", 24, Address, "Source address of the notifications", |v| Cell::Address(*v);
        notifier_role: Origin = "Acts as", 20, Name, "Role of the notifier, from the kind and the source address of its notifications, which anyone can forge (for the origin of CNPs with the receiver's address, see made_by): receiver, switch, or proxy and ingress_pe, which translate; ambiguous if one of these was notified just before and may send in the receiver's name; unknown if its address is not that of the receiver of the CNP's flow. The role in most of the notifications; unknown ones count as proxy, ingress_pe or switch if it was one of these", |v| Cell::Name(v.id());
        made_by: Option<Maker> = "Made by", 21, Name, "Origin of its plain CNPs, from made_by of the rows kept: one that holds for all but one CNP in 33; else mixed, or unknown; empty if it sent none", |v| some(v, |v| Cell::Name(v.id()));
        trusted: Option<bool> = "Trusted", 7, Name, "Whether the --trust list contains it; empty without a list", |v| some(v, |v| Cell::Name(if v { "yes" } else { "no" }));
        flows: u64 = "Flows", 7, Count, "Flows that it has notified, each counted once for all kinds, from the rows kept, which distinguish their first four notifiers: unknown if 0 although total is not", |v| Cell::Count(*v);
        flows_at_least: bool = "More", 5, Name, "Whether it may have notified more flows: the rows kept account for fewer of its notifications than total", |v| Cell::Name(if *v { "yes" } else { "no" });
        rate_now: Option<f64> = "Now/s", 8, Rate, "Notifications per second in the last complete tenth of a second", |v| some(v, Cell::Rate);
        rate_1s: Option<f64> = "1 s", 8, Rate, "Notifications per second in the last second, by complete tenths; over less time if capturing began later and at least ten arrived", |v| some(v, Cell::Rate);
        rate_10s: Option<f64> = "10 s", 8, Rate, "Notifications per second in the last ten complete seconds of the clock, so up to a second old; over fewer if capturing began later and at least ten arrived", |v| some(v, Cell::Rate);
        rate_peak: Option<f64> = "Peak/s", 8, Rate, "Most notifications in ten consecutive tenths of a second of the clock; rates are empty if there are samples", |v| some(v, Cell::Rate);
        total: u64 = "Total", 9, Count, "Notifications captured", |v| Cell::Count(*v);
        samples: u64 = "Samples", 8, Count, "Samples among them, each counted as one: those of several capture points must not be added up", |v| Cell::Count(*v);
        cnp: u64 = "CNP", 8, Count, "Plain CNPs among them", |v| Cell::Count(*v);
        fast_cnp_1: u64 = "Fast 1", 8, Count, "Fast CNPs with option 1 among them", |v| Cell::Count(*v);
        fast_cnp_2: u64 = "Fast 2", 8, Count, "Fast CNPs with option 2 among them", |v| Cell::Count(*v);
        proxy_cn: u64 = "Proxy", 8, Count, "Notifications to a proxy node among them", |v| Cell::Count(*v);
        wan_fcn: u64 = "WAN", 8, Count, "WAN FCNs among them", |v| Cell::Count(*v);
        level_max: Option<u8> = "Lvl", 3, Count, "Highest congestion level, 0 to 7", |v| count(v);
        queue_max: Option<u32> = "Queue max", 9, Count, "Deepest queue in any IOAM trace it sent, in the unit of its namespace", |v| count(v);
        malformed: u64 = "Bad", 6, Count, "Its malformed notifications, which cannot be decoded and count nowhere else", |v| Cell::Count(*v);
        findings: u64 = "Finds", 6, Count, "Findings about its notifications, of any severity", |v| Cell::Count(*v);
        first_seen: u64 = "First", 12, Moment, "First notification, in nanoseconds since the epoch", |v| Cell::Moment(*v);
        last_seen: u64 = "Last", 12, Moment, "Last notification, in nanoseconds since the epoch", |v| Cell::Moment(*v);
    }

    /// A hop of a path reported by IOAM traces.
    HopRecord, "hops", {
        path: u32 = "Path", 5, Number, "Number of the path", |v| Cell::Count((*v).into());
        traces: u64 = "Traces", 8, Count, "Traces along this path", |v| Cell::Count(*v);
        hop: u8 = "Hop", 3, Number, "Position on the path; 1 is the node passed first", |v| Cell::Count((*v).into());
        node: Option<u64> = "Node", 10, Number, "Number of the node, from the trace", |v| count(v);
        namespace: u16 = "Ns", 6, Number, "IOAM namespace of the trace", |v| Cell::Count((*v).into());
        ingress: Option<u32> = "In", 6, Number, "Ingress interface in the last trace", |v| count(v);
        egress: Option<u32> = "Out", 6, Number, "Egress interface in the last trace", |v| count(v);
        queue: Option<u32> = "Queue", 9, Count, "Queue depth in the last trace, in the unit of the namespace", |v| count(v);
        queue_mean: Option<f64> = "Mean", 9, Rate, "Mean queue depth", |v| some(v, Cell::Rate);
        queue_max: Option<u32> = "Max", 9, Count, "Greatest queue depth", |v| count(v);
        delay: Option<u64> = "Transit", 9, Span, "Transit delay within the node in the last trace, in nanoseconds", |v| some(v, Cell::Span);
        delay_max: Option<u64> = "Transit max", 11, Span, "Greatest transit delay within the node, in nanoseconds", |v| some(v, Cell::Span);
        between: Option<u64> = "From prev", 9, Span, "Time from the previous node by both nodes' clocks in the last trace, in nanoseconds", |v| some(v, Cell::Span);
        last_seen: u64 = "Last", 12, Moment, "Last trace, in nanoseconds since the epoch", |v| Cell::Moment(*v);
    }

    /// A noteworthy occurrence.
    EventRecord, "events", {
        at: u64 = "Time", 15, Moment, "Time of the (first) occurrence, in nanoseconds since the epoch", |v| Cell::Moment(*v);
        severity: Severity = "Severity", 8, Name, "note, warning or error", |v| Cell::Name(v.id());
        what: &'static str = "What", 28, Name, "Identifier of the broken rule or of the event", |v| Cell::Name(v);
        times: u64 = "Times", 6, Count, "Consecutive occurrences; for losses, the number of packets", |v| Cell::Count(*v);
        last: u64 = "Last", 15, Moment, "Time of the last occurrence, in nanoseconds since the epoch: later than `at` if `times` exceeds 1", |v| Cell::Moment(*v);
        frame: Option<u64> = "Frame", 8, Number, "Number of the (first) frame that shows it, from 1", |v| count(v);
        interface: Option<Arc<str>> = "If", 8, Text, "Interface on which it was captured", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        from: Option<IpAddr> = "From", 22, Address, "Source address of the packet", |v| some(v, Cell::Address);
        to: Option<IpAddr> = "To", 22, Address, "Destination address of the packet", |v| some(v, Cell::Address);
        text: Arc<str> = "Text", 60, Text, "Description", |v| Cell::Text(v);
        section: &'static str = "Section", 40, Name, "Section that defines the rule", |v| if v.is_empty() { Cell::None } else { Cell::Name(v) };
    }

    /// A source of packets.
    InterfaceRecord, "interfaces", {
        name: Arc<str> = "Interface", 16, Text, "Name of the interface, or of that in the file, followed by its number if an earlier one has the same name", |v| Cell::Text(v);
        state: &'static str = "State", 8, Name, "up, down, gone, file, ended or damaged; passed for an interface that packets captured on all interfaces passed, or that mirrors copied from, whose own state is not observed", |v| Cell::Name(v);
        received: u64 = "Received", 10, Count, "Packets received, after the kernel's filter", |v| Cell::Count(*v);
        octets: u64 = "Octets", 12, Count, "Their octets on the wire, without a header added by the capture (cooked, loopback)", |v| Cell::Count(*v);
        rate_1s: Option<f64> = "1 s", 9, Rate, "Packets per second in the last second, by complete tenths; over less time if capturing began later and at least ten arrived", |v| some(v, Cell::Rate);
        notifications: u64 = "Notif", 9, Count, "Congestion notifications among them", |v| Cell::Count(*v);
        data: u64 = "Data", 10, Count, "RoCEv2 data packets among them", |v| Cell::Count(*v);
        other: u64 = "Other", 9, Count, "Other packets that could be decoded", |v| Cell::Count(*v);
        pfc: u64 = "PFC", 8, Count, "PFC frames among these that pause at least one class; a NIC that acts on them may keep them from the capture", |v| Cell::Count(*v);
        paused: Option<Arc<str>> = "Paused", 18, Text, "Number of these that pause each class (0 to 7), as in class 3 ×12, 4 ×2; empty if there are none", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        cut: u64 = "Cut", 6, Count, "Packets captured too short to decode", |v| Cell::Count(*v);
        undecodable: u64 = "Bad", 6, Count, "Packets that contradict themselves, have an unsupported link type, or are malformed notifications", |v| Cell::Count(*v);
        dropped_kernel: Option<u64> = "Drop krn", 9, Count, "Packets that the kernel dropped for lack of room, by libpcap or the file; empty for a file that does not report it", |v| count(v);
        dropped_interface: Option<u64> = "Drop if", 9, Count, "Packets that the interface dropped, by libpcap or the file; empty for a file that does not report it", |v| count(v);
        about: Arc<str> = "About", 30, Text, "Driver, link type, filter; or why nothing is received", |v| Cell::Text(v);
    }

    /// A receiver of data that was marked CE, or that sends CNPs.
    ReceiverRecord, "receivers", {
        receiver: IpAddr = "Receiver", 22, Address, "Address of the data receiver", |v| Cell::Address(*v);
        marked: u64 = "Marked", 9, Count, "Data packets to it that were marked CE", |v| Cell::Count(*v);
        expected: u64 = "Expected", 9, Count, "CNPs expected for these: one for the first mark of a flow, and one for the first mark 50 µs or more after the previous expected one", |v| Cell::Count(*v);
        cnps: u64 = "CNPs", 9, Count, "CNPs from its address", |v| Cell::Count(*v);
        unprompted: u64 = "Unprompted", 10, Count, "CNPs among these, about known flows, that follow no unanswered mark of the flow, nor a mark within 50 µs: the capture does not show marks, or another node generates CNPs", |v| Cell::Count(*v);
        answered: Option<f64> = "Answered", 8, Share, "CNPs that answer a mark, or whose flow was not known yet, as a fraction of those expected, 0 to 1; empty if none was expected", |v| some(v, Cell::Share);
        silent: bool = "Silent", 6, Name, "Whether it answers no mark: at least 32 marks and 8 expected CNPs, no CNP, although other packets from it were captured", |v| Cell::Name(if *v { "yes" } else { "no" });
        captured: bool = "Back", 4, Name, "Whether any acknowledgement or CNP from it was captured; if not, the capture may show only one direction", |v| Cell::Name(if *v { "yes" } else { "no" });
        delay_p50: Option<u64> = "Delay p50", 9, Span, "Median time from a mark to its CNP, in nanoseconds (to 1 %), of marks 50 µs or more after the flow's previous CNP; a longer interval between CNPs is part of it", |v| some(v, Cell::Span);
        delay_p99: Option<u64> = "Delay p99", 9, Span, "99th percentile of that time, in nanoseconds (to 1 %)", |v| some(v, Cell::Span);
        paced_by: Option<Pacing> = "Paced by", 9, Name, "Unit by which it limits its CNPs, from the gaps below: qp, addresses (the pair of them), port (all together), or none; empty if there are fewer than 32 of the gaps that distinguish them, if these show no clear limit, or if nearly every mark has its CNP", |v| some(v, |v| Cell::Name(v.id()));
        gap_qp: Option<u64> = "Gap QP", 9, Span, "Least gap between CNPs about the same QP, in nanoseconds: the 2nd percentile of at least 32", |v| some(v, Cell::Span);
        gap_addresses: Option<u64> = "Gap addr", 9, Span, "The same between CNPs about different QPs at one address", |v| some(v, Cell::Span);
        gap_port: Option<u64> = "Gap port", 9, Span, "The same between CNPs to different addresses", |v| some(v, Cell::Span);
        with_naks: u64 = "With NAK", 8, Count, "CNPs that came within 10 µs of a negative acknowledgement of the same flow", |v| Cell::Count(*v);
    }

    /// Pauses of a class, or of all traffic, from one sender at one capture point.
    PauseRecord, "pauses", {
        interface: Option<Arc<str>> = "Interface", 16, Text, "Interface on which they were captured", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        mac: Arc<str> = "From", 17, Text, "MAC address of the sender: its neighbour on the link is paused", |v| Cell::Text(v);
        class: Option<u8> = "Class", 5, Number, "Class paused by PFC, 0 to 7; empty for PAUSE (IEEE 802.3x), which pauses all traffic", |v| count(v);
        frames: u64 = "Frames", 9, Count, "Frames that pause", |v| Cell::Count(*v);
        quanta: u64 = "Quanta", 12, Count, "Sum of their pause times, in quanta of 512 bit times", |v| Cell::Count(*v);
        paused: u64 = "Paused", 9, Span, "Time paused, in nanoseconds: until the next frame, or for its pause time at the link's speed (--link-speed)", |v| Cell::Span(*v);
        share: Option<f64> = "Share", 6, Share, "That time as a fraction of the time captured, 0 to 1", |v| some(v, Cell::Share);
        episodes: u64 = "Episodes", 8, Count, "Episodes: series of frames of which each renews the pause within twice its pause time", |v| Cell::Count(*v);
        resumed: u64 = "XON", 8, Count, "Episodes that a pause time of 0 ended before their time", |v| Cell::Count(*v);
        timed_out: u64 = "Timed out", 9, Count, "Episodes that ended because no frame renewed them, XON after their time included", |v| Cell::Count(*v);
        longest: u64 = "Longest", 9, Span, "Length of the longest episode, in nanoseconds", |v| Cell::Span(*v);
        storm: bool = "Storm", 5, Name, "Whether an episode lasted 200 ms or longer", |v| Cell::Name(if *v { "yes" } else { "no" });
        first_seen: u64 = "First", 12, Moment, "First frame, in nanoseconds since the epoch", |v| Cell::Moment(*v);
        last_seen: u64 = "Last", 12, Moment, "Last frame, in nanoseconds since the epoch", |v| Cell::Moment(*v);
    }

    /// Packets of a flow that switches have trimmed instead of dropping them, at one capture point.
    TrimmedRecord, "trimmed", {
        interface: Option<Arc<str>> = "Interface", 16, Text, "Interface on which they were captured", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        sender: IpAddr = "Sender", 22, Address, "Source address of the flow's data; of these packets if it is unknown which way they go", |v| Cell::Address(*v);
        receiver: IpAddr = "Receiver", 22, Address, "Destination address of the data", |v| Cell::Address(*v);
        receiver_qp: u32 = "Peer QP", 8, Qp, "The receiver's QP, which these packets name whichever way they go", |v| Cell::Count((*v).into());
        to_receiver: u64 = "To receiver", 11, Count, "Trimmed packets sent on to the receiver", |v| Cell::Count(*v);
        to_source: u64 = "To source", 9, Count, "Trimmed packets sent back to the source of the data", |v| Cell::Count(*v);
        unknown: u64 = "Unknown", 8, Count, "Trimmed packets of which that is unknown: no data of the flow was captured, or both hosts use QPs of this number", |v| Cell::Count(*v);
        first_seen: u64 = "First", 12, Moment, "First trimmed packet, in nanoseconds since the epoch", |v| Cell::Moment(*v);
        last_seen: u64 = "Last", 12, Moment, "Last trimmed packet, in nanoseconds since the epoch", |v| Cell::Moment(*v);
    }

    /// Packets that were not read, although they may be RoCE or carry it, for one reason.
    UnreadRecord, "unread", {
        kind: &'static str = "Why", 14, Name, "roce_unproven: to RoCEv2's port, from a port that RoCEv2 is not sent from, and neither the ICRC nor consecutive PSNs prove RoCEv2; ether_type, gre_protocol: an encapsulation that is not opened; fragment: only complete datagrams are read", |v| Cell::Name(v);
        number: Option<u32> = "Number", 8, Number, "UDP source port, EtherType or GRE protocol; empty for fragments, and for further numbers beyond 64", |v| count(v);
        packets: u64 = "Packets", 10, Count, "Packets not read", |v| Cell::Count(*v);
    }

    /// A driver's counter of a port of an RDMA device of this host.
    CounterRecord, "counters", {
        device: Arc<str> = "Device", 12, Text, "Name of the RDMA device", |v| Cell::Text(v);
        port: u32 = "Port", 4, Number, "Its port, from 1", |v| Cell::Count((*v).into());
        interface: Option<Arc<str>> = "If", 10, Text, "Network interface of the port in this network namespace; empty if unknown", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        driver: Option<Arc<str>> = "Driver", 8, Text, "RDMA driver, which provides the counters; empty if unknown", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        counter: Arc<str> = "Counter", 26, Text, "The driver's name for it", |v| Cell::Text(v);
        quantity: Option<Quantity> = "Counts", 15, Name, "What it counts, if known: the same name for several drivers is the same quantity", |v| some(v, |v| Cell::Name(v.id()));
        qps: Option<Arc<str>> = "QPs", 10, Text, "QPs of this host that it is bound to (rdma statistic qp); empty if it counts for the whole port", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        value: u64 = "Value", 12, Count, "Value reported by the driver", |v| Cell::Count(*v);
        growth: Option<u64> = "Growth", 12, Count, "Growth since it was first read, or since it last decreased or reappeared; empty if it was read once", |v| count(v);
        seen: Option<u64> = "Seen", 12, Count, "How many of the same were captured on the interface in that time (to and from the port's addresses): CNPs, or packets marked CE; empty for other quantities, or if the interface is not captured", |v| count(v);
        resets: u64 = "Resets", 6, Count, "How often it decreased, because it was set to 0 or wrapped, or reappeared after it had vanished", |v| Cell::Count(*v);
        vanished: bool = "Vanished", 8, Name, "Whether it, or its device, has vanished: the values are those read last", |v| Cell::Name(if *v { "yes" } else { "no" });
    }

    /// A queue pair of an RDMA device of this host.
    LocalQpRecord, "local_qps", {
        device: Arc<str> = "Device", 12, Text, "Name of the RDMA device", |v| Cell::Text(v);
        port: Option<u32> = "Port", 4, Number, "Its port, from 1; empty before the QP is bound to one", |v| count(v);
        qp: u32 = "QP", 8, Qp, "Its number", |v| Cell::Count((*v).into());
        kind: Option<&'static str> = "Type", 8, Name, "smi, gsi, rc, uc, ud, raw_packet, xrc_ini, xrc_tgt, driver or other", |v| some(v, Cell::Name);
        state: Option<&'static str> = "State", 6, Name, "reset, init, rtr, rts, sqd, sqe or err", |v| some(v, Cell::Name);
        remote_qp: Option<u32> = "Peer QP", 8, Qp, "Number of the peer's QP; connected QPs only", |v| count(v);
        pid: Option<u32> = "PID", 8, Number, "Process that created it; empty if it is the kernel's, or of another PID namespace", |v| count(v);
        process: Option<Arc<str>> = "Process", 16, Text, "Name of that process, or in brackets the part of the kernel that created it; omitted with --privacy", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        container: Option<Arc<str>> = "Container", 14, Text, "Container of the process, from its cgroup: the first twelve digits of its ID, or its name; omitted with --privacy", |v| v.as_deref().map_or(Cell::None, Cell::Text);
        notified: Option<u64> = "Told", 9, Count, "Notifications about it, of all kinds, in the rows kept; empty if its port's interface is not captured", |v| count(v);
    }
}

impl QpRecord {
    /// Returns the known addresses in the row.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let ends = [self.sender, self.receiver].into_iter().flatten();
        ends.chain([self.notifier, self.destination])
    }

    /// Returns true if the value in that column is an estimate from samples.
    pub fn is_estimate(&self, column: &str) -> bool {
        let sampled = match column {
            "total" | "rate_now" | "rate_1s" | "rate_10s" | "rate_mean" => self.sampled,
            "data_rate" | "data_packets" => self.data_sampled,
            _ => None,
        };
        sampled > Some(1)
    }
}

impl FlowRecord {
    /// Returns true if the value in that column is an estimate from samples.
    pub fn is_estimate(&self, column: &str) -> bool {
        let is_estimated = matches!(column, "data_rate" | "data_packets" | "data_octets");
        is_estimated && self.data_sampled > Some(1)
    }
}

impl EventRecord {
    /// Returns an event of the capture as a whole: it happened once and has no packet.
    pub fn of_capture(at: u64, severity: Severity, what: &'static str, text: &str) -> Self {
        Self {
            at,
            last: at,
            severity,
            what,
            times: 1,
            frame: None,
            interface: None,
            from: None,
            to: None,
            text: text.into(),
            section: "",
        }
    }

    /// Returns true for a finding: something wrong or remarkable in a packet, such as a broken
    /// rule, a contradiction or truncated capture. Events of the capture itself are not findings.
    /// Every number of findings counts these, `times` each, by severity.
    pub const fn is_finding(&self) -> bool {
        self.frame.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound<R: Record>() {
        let mut ids: Vec<_> = R::COLUMNS.iter().map(|column| column.id).collect();
        assert!(!ids.is_empty());
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), R::COLUMNS.len());
        for (number, column) in R::COLUMNS.iter().enumerate() {
            assert_eq!(column_named::<R>(column.id), Some(number));
            assert!(
                column.width >= 2 && !column.about.ends_with('.'),
                "{}",
                column.id
            );
        }
    }

    #[test]
    fn every_column_can_be_named() {
        sound::<QpRecord>();
        sound::<FlowRecord>();
        sound::<PointRecord>();
        sound::<HopRecord>();
        sound::<EventRecord>();
        sound::<InterfaceRecord>();
        sound::<UnreadRecord>();
        sound::<ReceiverRecord>();
        sound::<PauseRecord>();
        sound::<TrimmedRecord>();
        sound::<CounterRecord>();
        sound::<LocalQpRecord>();
    }
}
