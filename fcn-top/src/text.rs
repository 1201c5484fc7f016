//! How values are written out for people: numbers with their units, short enough for a column; addresses masked or named
//! where that is asked for; nothing in it that a terminal would act on.

mod units;

pub use fcn_tool::clean::clean;
pub use units::{bits, change, count, rate, share, span};

use crate::names::{Names, Pseudonyms};
use crate::record::{Answer, Cell, Column, Holds, Maker, PointRecord, QpRecord};
use crate::tables::Totals;
use fcn_observe::rules::NOTIFIERS;
use fcn_observe::time::nanos;
use fcn_tool::quantity::counted;
use fcn_wire::Origin;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What a notifier is by what it sends, and by who made its plain CNPs, where that is inferred. What is cut off at the end does not
/// turn it into another.
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

/// How many have notified beside the one that is named, where there are several.
pub fn more_notifiers(row: &QpRecord) -> Option<String> {
    let more = row.notifiers.saturating_sub(1);
    // Beyond that they are not told apart.
    let least = if more < NOTIFIERS as u32 {
        ""
    } else {
        "at least "
    };
    (more > 0).then(|| format!("and {least}{more} more"))
}

/// The number of flows that a notifier has notified, where it is not just a number, as rows tell the first four notifiers
/// apart.
pub fn flows_unclear(point: &PointRecord) -> Option<String> {
    match point.flows {
        0 if point.total > 0 => Some("?".to_owned()),
        flows if point.flows_at_least => Some(format!("≥{}", count(flows))),
        _ => None,
    }
}

/// What stands before a value in that column of a row where it is an estimate.
pub fn estimate(row: &QpRecord, column: &str) -> &'static str {
    if row.is_estimate(column) { "~" } else { "" }
}

/// What the number of a row's notifications rests on, where it is an estimate.
pub fn samples(row: &QpRecord) -> Option<String> {
    let one_in = row.sampled.filter(|_| row.is_estimate("total"))?;
    let (low, high) = (row.total_low?, row.total_high?);
    Some(format!(
        "~{} by samples, one in {}; 95 % interval {} to {}",
        count(row.total),
        count(one_in),
        count(low),
        count(high)
    ))
}

/// That time stamps go back, how often and by how much, where they do.
pub fn stamps_back(totals: &Totals) -> Option<String> {
    let times = totals.stamps_back;
    (times > 0).then(|| {
        format!(
            "go back from one packet to the next {}, by {} at most",
            counted(times, "time"),
            span(totals.stamps_back_most)
        )
    })
}

/// Why there is no verdict on a row: there may be data of its sender all the same.
pub const NO_VERDICT: &str =
    "none: no data seen is known to be its (by RDMA CM or acknowledgements)";

/// What would help to tell whether a sender obeys, behind the evidence that does not suffice.
pub fn would_help(row: &QpRecord) -> String {
    row.advice
        .map_or_else(String::new, |advice| format!("; {advice} would help"))
}

/// Fewer notifications measured than this are told beside a verdict.
pub const FEW: u64 = 20;

/// What is told beside a verdict that rests on few notifications: how many.
pub fn few(row: &QpRecord) -> Option<String> {
    let decided = matches!(row.verdict, Some(Answer::Obeys | Answer::DoesNotObey));
    (decided && row.measured < FEW).then(|| format!("({})", row.measured))
}

/// Whether some rows differ in nothing but where their notifications were seen.
pub fn differ_by_place<'r>(rows: impl IntoIterator<Item = &'r QpRecord>) -> bool {
    let mut keys = HashSet::new();
    !rows.into_iter().all(|row| {
        let key = (row.told, row.kind, row.sender, row.sender_qp);
        keys.insert((key, row.receiver, row.receiver_qp, row.flow_label))
    })
}

/// Why the mean rate of a row may be more than its peak, where one is.
pub fn mean_and_peak<'r>(rows: impl IntoIterator<Item = &'r QpRecord>) -> Option<&'static str> {
    let is_more = |row: &QpRecord| row.rate_mean > row.rate_peak && row.rate_peak.is_some();
    rows.into_iter().any(is_more).then_some(
        "Mean/s, from a row's first to its last, may exceed Peak/s, the most in a second, if that is less.",
    )
}

/// What stands where there is nothing to be said.
pub const NOTHING: &str = "–";

/// How things are written out. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Words {
    privacy: Option<Arc<Pseudonyms>>,
    names: Option<Arc<Names>>,
    zone: TimeZone,
}

impl Default for Words {
    /// Addresses as they are, moments in UTC.
    fn default() -> Self {
        Self::new(TimeZone::UTC)
    }
}

impl Words {
    /// Addresses as they are, moments in `zone`.
    pub const fn new(zone: TimeZone) -> Self {
        Self {
            privacy: None,
            names: None,
            zone,
        }
    }

    /// Addresses masked by new pseudonyms, moments in UTC.
    pub fn masked() -> Self {
        Self::default().with_privacy(Arc::new(Pseudonyms::default()))
    }

    /// With addresses masked everywhere.
    pub fn with_privacy(mut self, pseudonyms: Arc<Pseudonyms>) -> Self {
        self.privacy = Some(pseudonyms);
        self
    }

    /// With names in place of addresses, as far as they are known. A mask goes before a name.
    pub fn with_names(mut self, names: Arc<Names>) -> Self {
        self.names = Some(names);
        self
    }

    /// Waits for the names of these addresses, where names are looked up, so long at most; says what is missing.
    pub fn wait(
        &self,
        addresses: impl IntoIterator<Item = IpAddr>,
        most: Duration,
    ) -> Option<String> {
        let names = self.names.as_ref()?;
        (!names.wait(addresses, most)).then(|| {
            format!(
                "names: not all were found within {}; addresses stand for the others",
                span(nanos(most))
            )
        })
    }

    /// Whether addresses are masked.
    pub const fn masks(&self) -> bool {
        self.privacy.is_some()
    }

    /// Whether addresses may be shown as something else.
    pub const fn alters_addresses(&self) -> bool {
        self.privacy.is_some() || self.names.is_some()
    }

    /// An address as people are to see it: its mask, its name, or itself.
    pub fn address(&self, address: IpAddr) -> String {
        if let Some(pseudonyms) = &self.privacy {
            return pseudonyms.pseudonym(address);
        }
        match self.names.as_ref().and_then(|names| names.get(address)) {
            Some(name) => name.to_string(),
            None => address.to_string(),
        }
    }

    /// An address as programs are to see it: its mask or itself, never a name.
    pub fn exact_address(&self, address: IpAddr) -> String {
        match &self.privacy {
            Some(pseudonyms) => pseudonyms.pseudonym(address),
            None => address.to_string(),
        }
    }

    /// A text without anything that a terminal would act on, its addresses masked where that is asked for.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = clean(text);
        match &self.privacy {
            Some(pseudonyms) => Cow::Owned(pseudonyms.within(&text)),
            None => text,
        }
    }

    /// A value by itself.
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

    /// A value in its column: QPs and flow labels in hexadecimal, numbers of things apart from numbers that name something,
    /// moments as exact as there is room for.
    pub fn in_column(&self, column: &Column, cell: Cell<'_>) -> String {
        match (cell, column.holds) {
            (Cell::Count(qp), Holds::Qp) => format!("{qp:#x}"),
            (Cell::Count(label), Holds::Label) => format!("{label:#07x}"),
            (Cell::Count(number), Holds::Number) => number.to_string(),
            (Cell::Moment(at), _) => self.clock(at, column.digits()),
            (cell, _) => self.cell(cell),
        }
    }

    /// A value in its column of a row, marked where it is an estimate.
    pub fn of_row(&self, row: &QpRecord, column: &Column, cell: Cell<'_>) -> String {
        let text = self.in_column(column, cell);
        match cell {
            Cell::None => text,
            _ => format!("{}{text}", estimate(row, column.id)),
        }
    }

    /// The time of day, with so many digits (0 to 9) behind the second.
    pub fn clock(&self, nanoseconds: u64, digits: usize) -> String {
        self.moment(nanoseconds, "%H:%M:%S", digits, "")
    }

    /// The same, behind the day where that is another one than at `since`.
    pub fn clock_since(&self, since: u64, nanoseconds: u64, digits: usize) -> String {
        let day = |at| self.moment(at, "%Y-%m-%d", 0, "");
        let clock = self.clock(nanoseconds, digits);
        match day(nanoseconds) {
            day_of_it if day_of_it != day(since) => format!("{day_of_it} {clock}"),
            _ => clock,
        }
    }

    /// Day and time with microseconds, and the offset from UTC.
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
    use crate::record::{EventRecord, Grounds, Record, origin};
    use crate::tests::sample;

    #[test]
    fn a_role_does_not_contradict_who_made_the_cnps() {
        for role in Origin::ALL {
            for maker in Maker::ALL {
                let text = acts_as(role, Some(maker));
                let is_receiver = text == "receiver";
                let expected = [Origin::Receiver, Origin::Ambiguous].contains(&role)
                    && maker == Maker::Receiver;
                assert_eq!(is_receiver, expected, "{role:?} {maker:?}");
                // Cut as short as a column becomes, 11 cells, it ends in what shows that it was.
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
        let evidence = Cell::Evidence(Grounds::Maker(origin::Evidence::OtherMac(macs)));
        let plain = Words::default().cell(evidence);
        assert!(plain.contains("02:00:00:00:00:01"), "{plain}");
        let masked = Words::masked().cell(evidence);
        assert!(
            !masked.contains("02:00") && masked.contains("mac-"),
            "{masked}"
        );
    }

    #[test]
    fn moments_are_in_the_zone_wanted() {
        let at = 1_763_799_300_123_456_789;
        let words = Words::default();
        assert_eq!(words.cell(Cell::Moment(at)), "08:15:00.123");
        assert_eq!(words.clock(at, 0), "08:15:00");
        assert_eq!(words.clock(at, 9), "08:15:00.123456789");
        assert_eq!(words.day_and_time(at), "2025-11-22 08:15:00.123456 UTC");
        let day = 86_400_000_000_000;
        assert_eq!(words.clock_since(at - day / 4, at, 0), "08:15:00");
        let later = words.clock_since(at - day, at, 0);
        assert_eq!(later, "2025-11-22 08:15:00");
        let words = Words::new(TimeZone::fixed(jiff::tz::offset(2)));
        assert_eq!(words.cell(Cell::Moment(at)), "10:15:00.123");
        assert_eq!(words.day_and_time(at), "2025-11-22 10:15:00.123456 +02:00");
        assert_eq!(
            words.day_and_time(u64::MAX),
            "2554-07-22 01:34:33.709551 +02:00"
        );
    }

    #[test]
    fn columns_say_how_a_number_is_written() {
        let words = Words::default();
        let column = |id: &str| {
            QpRecord::COLUMNS
                .iter()
                .find(|column| column.id == id)
                .unwrap()
        };
        assert_eq!(words.in_column(column("qp"), Cell::Count(0x1234)), "0x1234");
        assert_eq!(
            words.in_column(column("flow_label"), Cell::Count(0x1234)),
            "0x01234"
        );
        assert_eq!(words.in_column(column("total"), Cell::Count(1234)), "1,234");
        let column = |id: &str| {
            EventRecord::COLUMNS
                .iter()
                .find(|column| column.id == id)
                .unwrap()
        };
        assert_eq!(
            words.in_column(column("frame"), Cell::Count(12345)),
            "12345"
        );
        assert_eq!(
            words.in_column(column("at"), Cell::Moment(5_000)),
            "00:00:00.000005"
        );
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_gets_through() {
        let words = Words::default();
        for text in [
            "a\x1b[2Jb",
            "a\rb",
            "a\u{9b}b",
            "a\u{202e}b",
            "a\nb",
            "a\u{7f}b",
            "a\u{2066}b",
        ] {
            let shown = words.cell(Cell::Text(text));
            assert!(shown.contains('\u{fffd}'), "{text:?}");
            assert!(!shown.chars().any(char::is_control), "{text:?}");
            assert!(!shown.contains(['\u{202e}', '\u{2066}']));
        }
        assert!(matches!(clean("größer → π"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_column_is_as_wide_as_it_says() {
        let words = Words::default();
        let wide = |text: &str| text.chars().count();
        let row = sample::qp();
        for (number, column) in QpRecord::COLUMNS.iter().enumerate() {
            let text = words.in_column(column, row.cell(number));
            assert!(
                wide(&text) <= usize::from(column.width),
                "{}: {text}",
                column.id
            );
        }
    }
}
