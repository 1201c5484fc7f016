//! Formats values for people: numbers with units, short enough for a column; addresses masked or
//! resolved if requested; no terminal control characters.

mod units;

pub use fcn_tool::clean::clean;
pub use units::{bits, change, count, rate, share, span};

use crate::names::{Names, Pseudonyms};
use crate::record::{
    Answer, Cell, Column, FlowRecord, Holds, Maker, PointRecord, QpRecord, UnreadRecord,
};
use crate::tables::Totals;
use fcn_observe::rules::NOTIFIERS;
use fcn_observe::time::nanos;
use fcn_tool::quantity::{counted, grouped};
use fcn_wire::profile::ROCEV2_PORT;
use fcn_wire::{Kind, Origin};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Describes the role of a notifier: by the messages it sends, and by the inferred origin of its
/// plain CNPs. Truncation at the end does not turn one role into another.
pub const fn acts_as(role: Origin, made_by: Option<Maker>) -> &'static str {
    match (role, made_by) {
        (Origin::Switch, _) => "switch",
        (Origin::Proxy, _) => "proxy, inferred",
        (Origin::IngressPe, _) => "ingress PE, inferred",
        (Origin::Unknown, Some(Maker::Network)) => "network, inferred",
        (Origin::Unknown, Some(Maker::Receiver)) => "receiver, inferred",
        (Origin::Unknown, _) => "unknown",
        (Origin::Receiver | Origin::Ambiguous, Some(Maker::Receiver))
        | (Origin::Receiver, None) => "receiver",
        (_, Some(Maker::ReceiverOrImitation)) => "receiver or imitation",
        (_, Some(Maker::Network)) => "network, in receiver's name",
        (_, Some(Maker::Proxy)) => "proxy, in receiver's name",
        (_, Some(Maker::IngressPe)) => "ingress PE, in receiver's name",
        (_, Some(Maker::Mixed)) => "network and receiver",
        (_, Some(Maker::Unknown) | None) => "network or receiver",
    }
}

/// Number of notifiers other than the named one, if there are any.
pub fn more_notifiers(row: &QpRecord) -> Option<String> {
    let more = row.notifiers.saturating_sub(1);
    // Notifiers beyond the limit are not distinguished.
    let least = if more < NOTIFIERS as u32 {
        ""
    } else {
        "at least "
    };
    (more > 0).then(|| format!("and {least}{more} more"))
}

/// Number of flows notified by a notifier, if it is not exact: rows distinguish only their first
/// four notifiers.
pub fn flows_unclear(point: &PointRecord) -> Option<String> {
    match point.flows {
        0 if point.total > 0 => Some("?".to_owned()),
        flows if point.flows_at_least => Some(format!("≥{}", count(flows))),
        _ => None,
    }
}

/// Prefix of a value in the given column of a row: `~` if it is an estimate.
pub fn estimate(row: &QpRecord, column: &str) -> &'static str {
    if row.is_estimate(column) { "~" } else { "" }
}

/// Sampling behind a row's number of notifications, if it is an estimate.
pub fn samples(row: &QpRecord) -> Option<String> {
    let one_in = row.sampled.filter(|_| row.is_estimate("total"))?;
    let (low, high) = (row.total_low?, row.total_high?);
    Some(format!(
        "~{} from samples, one in {}; 95 % interval {} to {}",
        count(row.total),
        count(one_in),
        count(low),
        count(high)
    ))
}

/// Number and extent of time stamps that go back, if there are any.
pub fn stamps_back(totals: &Totals) -> Option<String> {
    let times = totals.stamps_back;
    (times > 0).then(|| {
        format!(
            "go back from one packet to the next {}, by at most {}",
            counted(times, "time"),
            span(totals.stamps_back_most)
        )
    })
}

/// Describes the DSCPs of data, acknowledgements and CNPs, if those of one kind differ, or those of
/// data and its acknowledgements.
pub fn classes<'a>(
    flows: &[FlowRecord],
    rows: impl Iterator<Item = &'a QpRecord>,
) -> Option<String> {
    let of_data = flows.iter().filter_map(|flow| flow.data_dscp);
    let of_acks = flows.iter().filter_map(|flow| flow.ack_dscp);
    let cnps = rows.filter(|row| row.kind == Kind::Cnp);
    let of_cnps = cnps.filter_map(|row| row.dscp);
    let differ = flows.iter().any(|flow| {
        let dscps = flow.data_dscp.zip(flow.ack_dscp);
        dscps.is_some_and(|(data, acks)| data != acks)
    });
    let kinds = [
        ("data", count_each(of_data), "flow"),
        ("acknowledgements", count_each(of_acks), "flow"),
        ("CNPs", count_each(of_cnps), "QP"),
    ];
    if !differ && kinds.iter().all(|(_, dscps, _)| dscps.len() < 2) {
        return None;
    }
    let kinds = kinds.iter().filter(|(_, dscps, _)| !dscps.is_empty());
    let kinds = kinds.map(|(kind, dscps, of)| {
        let dscps = dscps
            .iter()
            .map(|(dscp, count)| format!("{dscp} ({})", counted(*count, of)));
        format!("{kind} {}", dscps.collect::<Vec<_>>().join(", "))
    });
    let kinds = kinds.collect::<Vec<_>>().join("; ");
    Some(format!("DSCP of {kinds}"))
}

/// Returns how often each value occurs, in their order.
fn count_each(values: impl Iterator<Item = u8>) -> BTreeMap<u8, u64> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_insert(0) += 1;
    }
    counts
}

/// Describes the packets that were not read although they may be RoCE.
pub fn unread(records: &[UnreadRecord]) -> Option<String> {
    const MOST: usize = 3;
    let kinds = ["roce_unproven", "ether_type", "gre_protocol", "fragment"];
    let of_kind = |kind: &&str| {
        let those: Vec<_> = records
            .iter()
            .filter(|record| record.kind == *kind)
            .collect();
        let packets = those.iter().map(|record| record.packets).sum::<u64>();
        let numbers: Vec<_> = (those.iter().take(MOST))
            .filter_map(|record| record.number)
            .map(|number| match *kind {
                "roce_unproven" => number.to_string(),
                _ => format!("{number:#06x}"),
            })
            .collect();
        let more = if those.len() > MOST {
            " and others"
        } else {
            ""
        };
        let numbers = numbers.join(", ") + more;
        let (them, were) = match packets {
            0 => return None,
            1 => (counted(1, "packet"), "was"),
            _ => (counted(packets, "packet"), "were"),
        };
        Some(match *kind {
            "roce_unproven" => format!(
                "{them} to port {ROCEV2_PORT} {were} not taken for RoCEv2: no ICRC matches, and RoCEv2 is not sent from port {numbers}"
            ),
            "ether_type" => format!("{them} of EtherType {numbers} {were} not opened"),
            "gre_protocol" => format!("{them} of GRE protocol {numbers} {were} not opened"),
            _ => format!("{} {were} not read", counted(packets, "fragment")),
        })
    };
    let parts: Vec<_> = kinds.iter().filter_map(of_kind).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Reason for a missing verdict on a row. There may still be data of its sender.
pub const NO_VERDICT: &str =
    "none: no captured data is known to be its (by RDMA CM or acknowledgements)";

/// Additional data needed for a verdict, appended to insufficient evidence.
pub fn would_help(row: &QpRecord) -> String {
    row.advice
        .map_or_else(String::new, |advice| format!("; {advice} would help"))
}

/// Number of measured notifications below which the number is shown beside a verdict.
pub const FEW: u64 = 20;

/// Number of notifications behind a verdict, if they are few.
pub fn few(row: &QpRecord) -> Option<String> {
    let decided = matches!(row.verdict, Some(Answer::Obeys | Answer::DoesNotObey));
    (decided && row.measured < FEW).then(|| format!("({})", row.measured))
}

/// Stalls of a flow and exhausted retries, if there are any.
pub fn flow_trouble(flow: &FlowRecord) -> Option<String> {
    let stalls = flow
        .stall_after
        .zip(flow.stall_max)
        .map(|(cause, longest)| {
            let (after, longest) = (cause.words(), span(longest));
            let times = match flow.stalls {
                1 => format!("{after}, then {longest} without data"),
                times => format!(
                    "{after}, then up to {longest} without data, {} times",
                    grouped(times)
                ),
            };
            match flow.stalls_all > flow.stalls {
                true => format!(
                    "{times}; {} in all, {} together",
                    counted(flow.stalls_all, "stall"),
                    span(flow.stalled)
                ),
                false => times,
            }
        });
    let exhausted = flow.exhausted.then(|| {
        let tries = flow.tries.unwrap_or(0);
        format!("retries probably exhausted: one packet sent {tries} times and not acknowledged")
    });
    let parts: Vec<_> = exhausted.into_iter().chain(stalls).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// True if some rows differ only in the capture point of their notifications.
pub fn differ_by_place<'r>(rows: impl IntoIterator<Item = &'r QpRecord>) -> bool {
    let mut keys = HashSet::new();
    !rows.into_iter().all(|row| {
        let key = (row.destination, row.kind, row.sender, row.sender_qp);
        keys.insert((key, row.receiver, row.receiver_qp, row.flow_label))
    })
}

/// Explains why the mean rate of a row may exceed its peak, if one does.
pub fn mean_and_peak<'r>(rows: impl IntoIterator<Item = &'r QpRecord>) -> Option<&'static str> {
    let is_more = |row: &QpRecord| row.rate_mean > row.rate_peak && row.rate_peak.is_some();
    rows.into_iter().any(is_more).then_some(
        "Mean/s, from first to last, may exceed Peak/s, the most in a second, if that time is shorter.",
    )
}

/// Placeholder for an empty cell.
pub const NOTHING: &str = "–";

/// Formatting options for values. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Formatter {
    privacy: Option<Arc<Pseudonyms>>,
    names: Option<Arc<Names>>,
    zone: TimeZone,
}

impl Default for Formatter {
    /// Plain addresses, times in UTC.
    fn default() -> Self {
        Self::new(TimeZone::UTC)
    }
}

impl Formatter {
    /// Plain addresses, times in `zone`.
    pub const fn new(zone: TimeZone) -> Self {
        Self {
            privacy: None,
            names: None,
            zone,
        }
    }

    /// Addresses masked by new pseudonyms, times in UTC.
    pub fn masked() -> Self {
        Self::default().with_privacy(Arc::new(Pseudonyms::default()))
    }

    /// Masks addresses everywhere.
    pub fn with_privacy(mut self, pseudonyms: Arc<Pseudonyms>) -> Self {
        self.privacy = Some(pseudonyms);
        self
    }

    /// Shows names in place of addresses, if resolved. Masking takes precedence.
    pub fn with_names(mut self, names: Arc<Names>) -> Self {
        self.names = Some(names);
        self
    }

    /// Waits at most `most` for the names of these addresses, if names are resolved; returns a
    /// description of missing ones.
    pub fn wait(
        &self,
        addresses: impl IntoIterator<Item = IpAddr>,
        most: Duration,
    ) -> Option<String> {
        let names = self.names.as_ref()?;
        (!names.wait(addresses, most)).then(|| {
            format!(
                "names: some were not resolved within {}; their addresses are shown",
                span(nanos(most))
            )
        })
    }

    /// Returns true if addresses are masked.
    pub const fn masks(&self) -> bool {
        self.privacy.is_some()
    }

    /// Returns true if addresses may be masked or replaced by names.
    pub const fn alters_addresses(&self) -> bool {
        self.privacy.is_some() || self.names.is_some()
    }

    /// Formats an address for people: its mask, its name, or itself.
    pub fn address(&self, address: IpAddr) -> String {
        if let Some(pseudonyms) = &self.privacy {
            return pseudonyms.pseudonym(address);
        }
        match self.names.as_ref().and_then(|names| names.get(address)) {
            Some(name) => name.to_string(),
            None => address.to_string(),
        }
    }

    /// Formats an address for programs: its mask or itself, never a name.
    pub fn exact_address(&self, address: IpAddr) -> String {
        match &self.privacy {
            Some(pseudonyms) => pseudonyms.pseudonym(address),
            None => address.to_string(),
        }
    }

    /// Returns a text without terminal control characters, its addresses masked if requested.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = clean(text);
        match &self.privacy {
            Some(pseudonyms) => Cow::Owned(pseudonyms.within(&text)),
            None => text,
        }
    }

    /// Formats a single value.
    pub fn cell(&self, cell: Cell<'_>) -> String {
        match cell {
            Cell::None => NOTHING.to_owned(),
            Cell::Name(name) => name.to_owned(),
            Cell::Text(text) => self.text(text).into_owned(),
            Cell::Evidence(evidence) => self.text(&evidence.to_string()).into_owned(),
            Cell::Address(address) => self.address(address),
            Cell::Count(number) => count(number),
            Cell::Rate(value) => rate(value),
            Cell::Bits(value) => bits(value),
            Cell::Share(value) => share(value),
            Cell::Change(value) => change(value),
            Cell::Span(nanoseconds) => span(nanoseconds),
            Cell::Moment(nanoseconds) => self.clock(nanoseconds, 3),
        }
    }

    /// Formats a value for its column: QPs and flow labels in hexadecimal, quantities differently
    /// from identifiers, times with as many digits as the column has room for.
    pub fn in_column(&self, column: &Column, cell: Cell<'_>) -> String {
        match (cell, column.holds) {
            (Cell::Count(qp), Holds::Qp) => format!("{qp:#x}"),
            (Cell::Count(label), Holds::Label) => format!("{label:#07x}"),
            (Cell::Count(number), Holds::Number) => number.to_string(),
            (Cell::Moment(at), _) => self.clock(at, column.digits()),
            (cell, _) => self.cell(cell),
        }
    }

    /// Formats a value for its column of a row, marked if it is an estimate.
    pub fn of_row(&self, row: &QpRecord, column: &Column, cell: Cell<'_>) -> String {
        let text = self.in_column(column, cell);
        match cell {
            Cell::None => text,
            _ => format!("{}{text}", estimate(row, column.id)),
        }
    }

    /// Time of day, with `digits` (0 to 9) decimals of the second.
    pub fn clock(&self, nanoseconds: u64, digits: usize) -> String {
        self.moment(nanoseconds, "%H:%M:%S", digits, "")
    }

    /// Same, preceded by the date if it differs from that of `since`.
    pub fn clock_since(&self, since: u64, nanoseconds: u64, digits: usize) -> String {
        let day = |at| self.moment(at, "%Y-%m-%d", 0, "");
        let clock = self.clock(nanoseconds, digits);
        match day(nanoseconds) {
            day_of_it if day_of_it != day(since) => format!("{day_of_it} {clock}"),
            _ => clock,
        }
    }

    /// Date and time with microseconds, and the offset from UTC.
    pub fn day_and_time(&self, nanoseconds: u64) -> String {
        let zone = if self.zone == TimeZone::UTC {
            " UTC"
        } else {
            " %:z"
        };
        self.moment(nanoseconds, "%Y-%m-%d %H:%M:%S", 6, zone)
    }

    fn moment(&self, nanoseconds: u64, before: &str, digits: usize, behind: &str) -> String {
        let Ok(at) = Timestamp::from_nanosecond(i128::from(nanoseconds)) else {
            return NOTHING.to_owned();
        };
        let at = at.to_zoned(self.zone.clone());
        let mut text = at.strftime(before).to_string();
        if digits > 0 {
            let fraction = format!("{:09}", nanoseconds % 1_000_000_000);
            let _ = write!(text, ".{}", fraction.get(..digits).unwrap_or(&fraction));
        }
        let _ = write!(text, "{}", at.strftime(behind));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EventRecord, EvidenceCell, Record, origin};
    use crate::tests::sample;

    #[test]
    fn classes_are_described_if_they_differ() {
        let mut flow = sample::tables().flows[0].clone();
        let mut row = sample::qp();
        (flow.data_dscp, flow.ack_dscp, row.dscp) = (Some(26), Some(26), Some(48));
        row.kind = Kind::Cnp;
        let flows = [flow.clone(), flow];
        assert_eq!(classes(&flows, std::iter::once(&row)), None);
        let [mut other, same] = flows;
        other.ack_dscp = Some(0);
        let said = classes(&[other, same], std::iter::once(&row)).unwrap();
        assert_eq!(
            said,
            "DSCP of data 26 (2 flows); acknowledgements 0 (1 flow), 26 (1 flow); CNPs 48 (1 QP)"
        );
    }

    #[test]
    fn a_role_agrees_with_the_origin_of_the_cnps() {
        for role in Origin::ALL {
            for maker in Maker::ALL {
                let text = acts_as(role, Some(maker));
                let is_receiver = text == "receiver";
                let expected = [Origin::Receiver, Origin::Ambiguous].contains(&role)
                    && maker == Maker::Receiver;
                assert_eq!(is_receiver, expected, "{role:?} {maker:?}");
                // Truncated to the narrowest column, 11 cells, it ends in a mark of the truncation.
                assert!(
                    is_receiver || !text.starts_with("receiver") || text.len() > 11,
                    "{text}"
                );
            }
        }
        let mut row = sample::qp();
        let mut more = |notifiers| {
            row.notifiers = notifiers;
            more_notifiers(&row)
        };
        assert_eq!(more(1), None);
        assert_eq!(more(4).as_deref(), Some("and 3 more"));
        assert_eq!(more(5).as_deref(), Some("and at least 4 more"));
    }

    #[test]
    fn evidence_is_masked_too() {
        let [cnp, receiver] = [1, 2].map(|last| origin::Mac([2, 0, 0, 0, 0, last]));
        let macs = origin::Macs { cnp, receiver };
        let evidence = Cell::Evidence(EvidenceCell::Maker(origin::Evidence::OtherMac(macs)));
        let plain = Formatter::default().cell(evidence);
        assert!(plain.contains("02:00:00:00:00:01"), "{plain}");
        let masked = Formatter::masked().cell(evidence);
        assert!(
            !masked.contains("02:00") && masked.contains("mac-"),
            "{masked}"
        );
    }

    #[test]
    fn times_use_the_requested_zone() {
        let at = 1_763_799_300_123_456_789;
        let formatter = Formatter::default();
        assert_eq!(formatter.cell(Cell::Moment(at)), "08:15:00.123");
        assert_eq!(formatter.clock(at, 0), "08:15:00");
        assert_eq!(formatter.clock(at, 9), "08:15:00.123456789");
        assert_eq!(formatter.day_and_time(at), "2025-11-22 08:15:00.123456 UTC");
        let day = 86_400_000_000_000;
        assert_eq!(formatter.clock_since(at - day / 4, at, 0), "08:15:00");
        let later = formatter.clock_since(at - day, at, 0);
        assert_eq!(later, "2025-11-22 08:15:00");
        let in_zone = Formatter::new(TimeZone::fixed(jiff::tz::offset(2)));
        assert_eq!(in_zone.cell(Cell::Moment(at)), "10:15:00.123");
        assert_eq!(
            in_zone.day_and_time(at),
            "2025-11-22 10:15:00.123456 +02:00"
        );
        assert_eq!(
            in_zone.day_and_time(u64::MAX),
            "2554-07-22 01:34:33.709551 +02:00"
        );
    }

    #[test]
    fn columns_determine_number_formats() {
        let formatter = Formatter::default();
        let column = |id: &str| {
            QpRecord::COLUMNS
                .iter()
                .find(|column| column.id == id)
                .unwrap()
        };
        assert_eq!(
            formatter.in_column(column("qp"), Cell::Count(0x1234)),
            "0x1234"
        );
        assert_eq!(
            formatter.in_column(column("flow_label"), Cell::Count(0x1234)),
            "0x01234"
        );
        assert_eq!(
            formatter.in_column(column("total"), Cell::Count(1234)),
            "1,234"
        );
        let column = |id: &str| {
            EventRecord::COLUMNS
                .iter()
                .find(|column| column.id == id)
                .unwrap()
        };
        assert_eq!(
            formatter.in_column(column("frame"), Cell::Count(12345)),
            "12345"
        );
        assert_eq!(
            formatter.in_column(column("at"), Cell::Moment(5_000)),
            "00:00:00.000005"
        );
    }

    #[test]
    fn terminal_control_characters_are_removed() {
        let formatter = Formatter::default();
        for text in [
            "a\x1b[2Jb",
            "a\rb",
            "a\u{9b}b",
            "a\u{202e}b",
            "a\nb",
            "a\u{7f}b",
            "a\u{2066}b",
        ] {
            let shown = formatter.cell(Cell::Text(text));
            assert!(shown.contains('\u{fffd}'), "{text:?}");
            assert!(!shown.chars().any(char::is_control), "{text:?}");
            assert!(!shown.contains(['\u{202e}', '\u{2066}']));
        }
        assert!(matches!(clean("größer → π"), Cow::Borrowed(_)));
    }

    #[test]
    fn columns_fit_their_declared_width() {
        let formatter = Formatter::default();
        let wide = |text: &str| text.chars().count();
        let row = sample::qp();
        for (number, column) in QpRecord::COLUMNS.iter().enumerate() {
            let text = formatter.in_column(column, row.cell(number));
            assert!(
                wide(&text) <= usize::from(column.width),
                "{}: {text}",
                column.id
            );
        }
    }
}
