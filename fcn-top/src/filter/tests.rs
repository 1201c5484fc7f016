//! Filters, and messages for errors in them.

use super::*;
use crate::record::{Cell, EventRecord, Holds, HopRecord, InterfaceRecord, PointRecord, QpRecord};
use crate::tests::sample;
use crate::text::Formatter;
use fcn_wire::Kind;
use proptest::prelude::*;

fn passes(text: &str, record: &QpRecord) -> bool {
    Filter::parse::<QpRecord>(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .matches_shown(record, &Formatter::default())
}

#[test]
fn tests_follow_the_language() {
    let row = QpRecord {
        sender: Some("2001:db8::a".parse().unwrap()),
        notifier: "198.18.1.3".parse().unwrap(),
        qp: Some(0x1234),
        kind: Kind::FastCnp2,
        rate_1s: Some(120.0),
        gap_p50: Some(49_000),
        ce_share: Some(0.1),
        data_rate: Some(2.5e9),
        change: Some(-0.42),
        total: 1_500,
        level: None,
        last_seen: 1_763_799_300_000_000_000,
        interface: Some("Eth 1/7".into()),
        ..sample::qp()
    };
    for text in [
        "",
        "  ",
        "fast_cnp",
        "FAST_CNP_2",
        "2001:db8::/32",
        "198.18.1.3",
        "198.18.0.0/15",
        "2001:DB8",
        "4660",
        "0x1234",
        "qp=0x1234",
        "qp = 4660",
        "kind=fast_cnp",
        "kind=fast_cnp_2",
        "kind!=cnp",
        "kind~fast",
        "rate>100",
        "rate_1s>=120",
        "rate<0.2k",
        "gap_p50<50us",
        "gap<=49000",
        "gap=0.049ms",
        "ce_share>=10%",
        "ce=0.1",
        "data>1G",
        "data_rate=2500M",
        "sender=2001:db8::/64",
        "sender!=10.0.0.0/8",
        "sender~db8",
        "notifier=198.18.1.3",
        "notifier!=198.18.1.4",
        "change<-40%",
        "change>=-0.42",
        "total=1.5k",
        "total!=1501",
        "level=none",
        "level!=3",
        "qp!=none",
        "not level=3",
        "interface=\"eth 1/7\"",
        "interface~1/7",
        "\"eth 1\"",
        "last_seen>2025-11-22T08:14:59Z",
        "last_seen=1763799300000000000",
        "cnp rate>100",
        "cnp and rate>100",
        "nothing or cnp",
        "nothing or cnp and rate>100",
        "not nothing",
        "not (nothing or rate<100)",
        "! nothing",
        "not not cnp",
        "cnp && rate>1 || nothing",
        "kind==fast_cnp",
        "(((cnp)))",
    ] {
        assert!(passes(text, &row), "{text}");
    }
    for text in [
        "nothing",
        "10.0.0.0/8",
        "198.18.1.4",
        "466",
        "kind=cnp",
        "kind!=fast_cnp",
        "rate>120",
        "gap<49us",
        "ce>10%",
        "level=0",
        "level>0",
        "level<1",
        "level!=none",
        "qp=none",
        "cnp nothing",
        "nothing or rate<1",
        "not cnp",
        "(nothing or cnp) rate<1",
        "\"eth  1\"",
        "last_seen<2025-11-22T08:14:59Z",
        "sender=10.0.0.0/8",
    ] {
        assert!(!passes(text, &row), "{text}");
    }
}

#[test]
fn errors_have_a_position() {
    for (text, at, what) in [
        (
            "rat>100",
            0,
            "there is no column `rat`; did you mean `rate_1s`?",
        ),
        ("cnp rate>", 9, "expected a rate: 100, 2.5k or 10G"),
        (
            "rate>fast",
            5,
            "`fast` is not a valid rate: write 100, 2.5k or 10G",
        ),
        (
            "rate~1",
            4,
            "`~` is for texts, names and addresses; here write = != < <= > >=",
        ),
        ("kind>cnp", 4, "kinds have no order; write = != or ~"),
        (
            "kind=cnpp",
            5,
            "there is no kind `cnpp`; did you mean `cnp`?",
        ),
        (
            "sender<10.0.0.1",
            6,
            "addresses have no order; write = != or ~",
        ),
        (
            "sender=10.0.0.300",
            7,
            "`10.0.0.300` is not a valid address: write 10.0.0.1, 10.0.0.0/8 or 2001:db8::/32",
        ),
        (
            "gap<5fortnights",
            4,
            "`5fortnights` is not a valid duration: write 45us, 1.5ms or 2s",
        ),
        (
            "qp=abc",
            3,
            "`abc` is not a valid whole number: write 1000, 10k or 0x1234",
        ),
        ("(cnp", 4, "expected `)`"),
        ("cnp)", 3, "`)` without `(`"),
        (
            "cnp or",
            6,
            "expected a test: a word, an address, or a column with a value",
        ),
        (
            "= 3",
            0,
            "expected a test: a word, an address, or a column with a value, not `=`",
        ),
        ("\"abc", 0, "the quotation mark is not closed"),
        (
            "a ()",
            3,
            "expected a test: a word, an address, or a column with a value, not `)`",
        ),
        (
            "\"kind\"=cnp",
            6,
            "expected a test: a word, an address, or a column with a value, not `=`",
        ),
        (
            "µ rate=é",
            7,
            "`é` is not a valid rate: write 100, 2.5k or 10G",
        ),
        (
            "2001:db8::/129",
            0,
            "`2001:db8::/129` is not a valid prefix: write 10.0.0.0/8 or 2001:db8::/32",
        ),
    ] {
        let error = Filter::parse::<QpRecord>(text).expect_err(text);
        assert_eq!((error.at, error.what.as_str()), (at, what), "{text}");
    }
    let deep = format!("{}cnp{}", "(".repeat(40), ")".repeat(40));
    assert!(
        Filter::parse::<QpRecord>(&deep)
            .unwrap_err()
            .what
            .contains("32")
    );
    let deep = format!("{}cnp", "not ".repeat(40));
    assert!(
        Filter::parse::<QpRecord>(&deep)
            .unwrap_err()
            .what
            .contains("32")
    );
    let long = "a ".repeat(600);
    assert!(
        Filter::parse::<QpRecord>(&long)
            .unwrap_err()
            .what
            .contains("1000")
    );
    let error = Filter::parse::<EventRecord>("severity>=wrning").unwrap_err();
    assert_eq!(
        error.to_string(),
        "at character 11: there is no severity `wrning`; did you mean `warning`?"
    );
}

#[test]
fn severities_are_ordered() {
    let events = sample::tables().events;
    let filter = Filter::parse::<EventRecord>("severity>=warning").unwrap();
    for event in &events {
        assert_eq!(
            filter.matches_shown(event, &Formatter::default()),
            event.severity >= fcn_wire::Severity::Warning
        );
    }
    assert!(
        events
            .iter()
            .any(|event| filter.matches_shown(event, &Formatter::default()))
    );
    assert!(
        !events
            .iter()
            .all(|event| filter.matches_shown(event, &Formatter::default()))
    );
}

#[test]
fn masks_match_their_addresses() {
    let row = sample::qp();
    let formatter = Formatter::masked();
    let mask = formatter.address(row.notifier);
    let filter = Filter::parse::<QpRecord>(&mask).unwrap();
    assert!(!filter.matches_shown(&row, &Formatter::default()));
    assert!(filter.matches_shown(&row, &formatter));
    let real = Filter::parse::<QpRecord>(&row.notifier.to_string()).unwrap();
    assert!(real.matches_shown(&row, &formatter));
}

/// Returns true if a cell fits a column of that type.
fn fits(holds: Holds, cell: &Cell<'_>) -> bool {
    match cell {
        Cell::None => true,
        Cell::Name(_) => holds == Holds::Name,
        Cell::Text(_) | Cell::Evidence(_) => holds == Holds::Text,
        Cell::Address(_) => holds == Holds::Address,
        Cell::Count(_) => {
            matches!(
                holds,
                Holds::Count | Holds::Number | Holds::Qp | Holds::Label
            )
        }
        Cell::Rate(_) => holds == Holds::Rate,
        Cell::Bits(_) => holds == Holds::Bits,
        Cell::Share(_) => holds == Holds::Share,
        Cell::Change(_) => holds == Holds::Change,
        Cell::Span(_) => holds == Holds::Span,
        Cell::Moment(_) => holds == Holds::Moment,
    }
}

#[test]
fn every_column_matches_its_own_value() {
    fn all<R: Record>(records: &[R]) {
        for record in records {
            for (number, column) in R::COLUMNS.iter().enumerate() {
                let cell = record.cell(number);
                assert!(fits(column.holds, &cell), "{}", column.id);
                let value = match cell {
                    Cell::None => "none".to_owned(),
                    Cell::Name(text) | Cell::Text(text) => {
                        format!("{text:?}").replace("\\u{1b}", "\u{1b}")
                    }
                    Cell::Evidence(evidence) => format!("{:?}", evidence.to_string()),
                    Cell::Address(address) => address.to_string(),
                    Cell::Count(n) | Cell::Span(n) | Cell::Moment(n) => n.to_string(),
                    Cell::Rate(x) | Cell::Bits(x) | Cell::Share(x) | Cell::Change(x) => {
                        x.to_string()
                    }
                };
                let text = format!("{}={value}", column.id);
                let filter =
                    Filter::parse::<R>(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                assert!(
                    filter.matches_shown(record, &Formatter::default()),
                    "{text}"
                );
                let other = format!("{}!={value}", column.id);
                assert!(
                    !Filter::parse::<R>(&other)
                        .unwrap()
                        .matches_shown(record, &Formatter::default()),
                    "{other}"
                );
            }
        }
    }
    let tables = sample::tables();
    let rows: Vec<QpRecord> = tables.qps.iter().map(|(_, row)| row.clone()).collect();
    all(&rows);
    all::<PointRecord>(&tables.points);
    all::<HopRecord>(&tables.hops);
    all::<EventRecord>(&tables.events);
    all::<InterfaceRecord>(&tables.interfaces);
}

#[test]
fn the_examples_of_the_help_are_filters() {
    let examples = LANGUAGE.lines().rev().take(3);
    let mut count = 0;
    for example in examples.flat_map(|line| line.trim().split("    ")) {
        let example = example.trim();
        if example.is_empty() {
            continue;
        }
        count += 1;
        if example.contains("severity") {
            Filter::parse::<EventRecord>(example).unwrap();
        } else {
            Filter::parse::<QpRecord>(example).unwrap();
        }
    }
    assert_eq!(count, 6);
}

fn piece() -> impl Strategy<Value = String> {
    let words = proptest::sample::select(vec![
        "and",
        "or",
        "not",
        "(",
        ")",
        "=",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "~",
        "cnp",
        "kind",
        "rate",
        "sender",
        "10.0.0.0/8",
        "::1",
        "qp",
        "0x12",
        "10k",
        "5us",
        "12%",
        "none",
        "\"a b\"",
        "\"none\"",
        "gap",
        "ce",
        "data",
        "kind=cnp",
        "rate>1e3",
        "change<-50%",
        "first_seen>0",
        "interface~x",
        "fast_cnp",
        "!",
        "&&",
        "||",
        "\"",
        "\\",
        " ",
    ]);
    prop_oneof![4 => words.prop_map(str::to_owned), 1 => "\\PC{0,4}"]
}

proptest! {
    #[test]
    fn any_text_is_a_filter_or_an_error(text in any::<String>()) {
        match Filter::parse::<QpRecord>(&text) {
            Ok(filter) => { let _ = filter.matches_shown(&sample::qp(), &Formatter::default()); }
            Err(error) => prop_assert!(error.at <= text.chars().count()),
        }
    }

    #[test]
    fn tokens_in_any_order_are_a_filter_or_an_error(pieces in proptest::collection::vec(piece(), 0..24)) {
        let text = pieces.join(" ");
        match Filter::parse::<QpRecord>(&text) {
            Ok(filter) => { let _ = filter.matches_shown(&sample::qp(), &Formatter::default()); }
            Err(error) => prop_assert!(error.at <= text.chars().count()),
        }
    }
}
