//! Pages conform to the exposition format, series are bounded and never decrease, and the page is
//! served over HTTP.

use super::*;
use crate::output::metrics::FAMILIES;
use crate::record::RowId;
use crate::tests::sample;
use fcn_tool::metrics::http;
use insta::assert_snapshot;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// Parses the samples of a page and checks the rules of the format: names, labels, escapes, unique
/// series, each metric preceded by its HELP and TYPE.
fn checked(page: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let (mut current, mut seen) = (String::new(), Vec::new());
    assert!(page.ends_with('\n'));
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            current = rest.split(' ').next().unwrap().to_owned();
            assert!(is_name(&current) && !seen.contains(&current), "{line}");
            seen.push(current.clone());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, current);
            assert!(["counter", "gauge"].contains(&kind));
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            assert_eq!(name, current, "{line}");
            let mut rest = series.strip_prefix(name).unwrap();
            if !rest.is_empty() {
                rest = rest.strip_prefix('{').unwrap();
                loop {
                    let (label, behind) = rest.split_once("=\"").unwrap();
                    assert!(is_name(label), "{line}");
                    let mut chars = behind.char_indices();
                    let end = loop {
                        match chars.next().unwrap() {
                            (_, '\\') => {
                                assert!(['\\', '"', 'n'].contains(&chars.next().unwrap().1));
                            }
                            (at, '"') => break at,
                            (_, c) => assert!(!c.is_control()),
                        }
                    };
                    rest = &behind[end + 1..];
                    match rest.strip_prefix(',') {
                        Some(more) => rest = more,
                        None => break,
                    }
                }
                assert_eq!(rest, "}", "{line}");
            }
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite());
            assert!(
                samples.insert(series.to_owned(), value).is_none(),
                "twice: {line}"
            );
        }
    }
    let all: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
    assert_eq!(seen, all);
    samples
}

fn page_of(tables: &Tables) -> BTreeMap<String, f64> {
    checked(&Exposition::new(QPS, Formatter::default()).page(tables))
}

#[test]
fn the_page_matches_its_snapshot() {
    let page = Exposition::new(QPS, Formatter::default()).page(&sample::tables());
    assert_snapshot!("metrics", page);
    let samples = checked(&page);
    assert_eq!(
        samples["fcn_top_notifications_total{kind=\"fast_cnp_2\"}"],
        12_345.0
    );
    assert_eq!(
        samples["fcn_top_findings_total{rule=\"cnp.psn.nonzero\",severity=\"warning\"}"],
        4.0
    );
    checked(&Exposition::new(QPS, Formatter::default()).page(&Tables::default()));
}

#[test]
fn the_number_of_series_is_bounded() {
    let mut tables = sample::tables();
    let (point, row) = (tables.points[0].clone(), tables.qps[0].1.clone());
    let interface = tables.interfaces[0].clone();
    let flow = tables.flows[0].clone();
    for i in 0..2_000u32 {
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + i));
        tables.points.push(PointRecord {
            notifier: address,
            total: u64::from(i),
            ..point.clone()
        });
        let row = QpRecord {
            sender: Some(address),
            ..row.clone()
        };
        tables.qps.push((RowId(100 + u64::from(i)), row));
        tables.interfaces.push(interface.clone());
        let sender = address;
        tables.flows.push(FlowRecord {
            sender,
            data_rate: Some(1e9 + f64::from(i)),
            stalled: if i % 20 == 1 { u64::from(i) } else { 0 },
            ..flow.clone()
        });
    }
    let samples = page_of(&tables);
    let count = |name: &str| {
        samples
            .keys()
            .filter(|series| series.starts_with(name))
            .count()
    };
    assert_eq!(count("fcn_top_notifier_notifications_total"), NOTIFIERS + 1);
    assert_eq!(count("fcn_top_qp_notifications_per_second"), QPS);
    assert_eq!(count("fcn_top_qp_notifications_total"), QPS);
    assert_eq!(count("fcn_top_interface_up"), INTERFACES);
    assert_eq!(count("fcn_top_flow_resent_packets"), FLOWS);
    let has = |sender: u32| {
        let sender = Ipv4Addr::from_bits(0x0A00_0000 + sender);
        let label = format!("fcn_top_flow_stalled_seconds{{sender=\"{sender}\"");
        samples.keys().any(|series| series.starts_with(&label))
    };
    assert!(
        has(1_981) && has(1_021) && !has(1_001),
        "those that stalled longest"
    );
    assert!(has(1_999) && !has(1), "and those with the most data");
    assert!(samples.len() < 2_100, "{}", samples.len());
    let none = checked(&Exposition::new(0, Formatter::default()).page(&tables));
    assert!(!none.keys().any(|series| series.starts_with("fcn_top_qp_")));
}

#[test]
fn counters_never_decrease_as_notifiers_come_and_go() {
    let mut exposition = Exposition::new(QPS, Formatter::default());
    let mut tables = sample::tables();
    let model = tables.points[0].clone();
    let mut truth = 0u64;
    // Totals of 150 notifiers, the most active of which change all the time, and the start of their
    // records.
    let mut totals = vec![(0u64, sample::START); 150];
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
    let mut away = 0;
    for step in 0..60u64 {
        tables.now = sample::after(100 * (step + 1));
        for (i, (total, _)) in totals.iter_mut().enumerate() {
            let more = (i as u64 * 7_919 + step * step * 104_729) % 1_000;
            *total += more;
            truth += more;
        }
        // A record is evicted and starts again; a new notifier appears.
        if step % 10 == 9 {
            totals[step as usize] = (0, tables.now);
            totals.push((50_000, tables.now - 1));
            truth += 50_000;
        }
        tables.totals.notifications = [truth, 0, 0, 0, 0];
        tables.points = (0..)
            .zip(&totals)
            .map(|(i, (total, first_seen))| PointRecord {
                notifier: IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + i)),
                total: *total,
                first_seen: *first_seen,
                ..model.clone()
            })
            .collect();
        let mut samples = checked(&exposition.page(&tables));
        samples.retain(|series, _| series.starts_with("fcn_top_notifier_notifications_total"));
        assert_eq!(samples.len(), NOTIFIERS + 1);
        for (series, value) in samples {
            // Even if it was missing from the pages in between.
            let before = last.insert(series.clone(), value).unwrap_or_default();
            assert!(value >= before, "{series} went from {before} to {value}");
        }
        away = away.max(last.len() - NOTIFIERS - 1);
        // No notification is lost or counted twice.
        assert_eq!(last.values().sum::<f64>(), truth as f64, "{step}");
    }
    assert!(away > 10, "hardly any notifier had to go");
}

#[test]
fn few_notifiers_are_all_shown_and_none_count_as_other() {
    let mut exposition = Exposition::new(QPS, Formatter::default());
    let mut tables = sample::tables();
    let other = "fcn_top_notifier_notifications_total{notifier=\"other\"}";
    assert_eq!(checked(&exposition.page(&tables))[other], 0.0);
    let mut new = tables.points[0].clone();
    new.notifier = "192.0.2.9".parse().unwrap();
    (new.total, new.first_seen) = (7, tables.now + 5);
    tables.now += 10;
    tables.points.push(new);
    tables.totals.notifications[0] += 7;
    let samples = checked(&exposition.page(&tables));
    assert_eq!(samples[other], 0.0);
    assert_eq!(
        samples["fcn_top_notifier_notifications_total{notifier=\"192.0.2.9\"}"],
        7.0
    );
}

#[test]
fn unknown_numbers_of_flows_are_omitted() {
    let mut tables = sample::tables();
    let flows = "fcn_top_notifier_flows{notifier=\"198.18.2.4\"}";
    assert_eq!(page_of(&tables).get(flows), Some(&1.0));
    for point in &mut tables.points {
        point.flows = 0;
    }
    assert_eq!(page_of(&tables).get(flows), None);
}

#[test]
fn duplicate_and_unusual_names_have_separate_series() {
    let mut tables = sample::tables();
    tables.interfaces[0].name = "a\\b\"c\nd".into();
    tables.interfaces.push(tables.interfaces[0].clone());
    let samples = page_of(&tables);
    assert!(
        samples.contains_key("fcn_top_interface_up{interface=\"a\\\\b\\\"c\u{fffd}d\"}"),
        "{samples:?}"
    );
    assert!(samples.contains_key("fcn_top_interface_up{interface=\"a\\\\b\\\"c\u{fffd}d#2\"}"));
}

#[test]
fn the_dashboard_and_the_page_have_the_same_metrics() {
    let text = include_str!("../../../grafana/fcn-top.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() >= 8);
    assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
    let used: FxHashSet<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("fcn_top_"))
        .collect();
    for family in FAMILIES {
        assert!(used.contains(family.name), "{} is in no panel", family.name);
    }
    for name in used {
        assert!(
            FAMILIES.iter().any(|family| family.name == name),
            "{name} is not a metric"
        );
    }
}

/// Returns the metric names in a text, each with the contents of the braces directly after it, if
/// any.
fn metrics_of(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let starts = text.match_indices("fcn_top_").map(|(at, _)| &text[at..]);
    starts.map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let selected = behind
            .strip_prefix('{')
            .and_then(|rest| rest.split('}').next());
        (name, selected.unwrap_or_default())
    })
}

#[test]
fn alerts_use_existing_metrics_and_labels() {
    let text = include_str!("../../../../docs/deploy/alerts.yml");
    let mut alerts = 0;
    for alert in text.split("- alert: ").skip(1) {
        alerts += 1;
        let (name, rest) = alert.split_once('\n').unwrap();
        let (expression, annotations) = rest.split_once("annotations:").unwrap();
        let mut labels = FxHashSet::from_iter(["instance", "job"]);
        let mut used = 0;
        for (metric, selected) in metrics_of(expression) {
            used += 1;
            let family = FAMILIES.iter().find(|family| family.name == metric);
            let family = family.unwrap_or_else(|| panic!("{name}: {metric} is not a metric"));
            labels.extend(family.labels);
            for test in selected.split(',').filter(|test| !test.is_empty()) {
                let label = test.split(['=', '!']).next().unwrap();
                assert!(
                    family.labels.contains(&label),
                    "{name}: {metric} has no {label}"
                );
            }
        }
        assert!(used > 0 || expression.contains("up{job="), "{name}");
        let kept: Vec<&str> = named(expression, " by (", ')').collect();
        for part in annotations.split("$labels.").skip(1) {
            let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let label = &part[..end.unwrap()];
            assert!(labels.contains(label), "{name}: there is no label {label}");
            assert!(
                kept.is_empty() || kept.contains(&label),
                "{name}: {label} is summed away"
            );
        }
    }
    assert!(alerts >= 8, "{alerts}");
    assert!(text.contains("verdict=\"does_not_obey\"") && text.contains("severity=\"error\""));
}

/// Returns the comma-separated words after each `opening`, up to `end`.
fn named<'t>(text: &'t str, opening: &'t str, end: char) -> impl Iterator<Item = &'t str> {
    let lists = text.split(opening).skip(1);
    let lists = lists.map(move |rest| rest.split(end).next().unwrap());
    lists.flat_map(|list| list.split(',')).map(str::trim)
}

#[test]
fn every_label_in_the_dashboard_is_one_of_the_metric() {
    // Labels of the served samples, merged over all metrics that declare the same labels: not every
    // row has data.
    let mut served: BTreeMap<&[&str], FxHashSet<String>> = BTreeMap::new();
    let family_of = |name: &str| FAMILIES.iter().find(|family| family.name == name).unwrap();
    let page = Exposition::new(QPS, Formatter::default()).page(&sample::tables());
    for series in checked(&page).keys() {
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.split(',').filter_map(|label| label.split_once('='));
        let labels = labels.map(|(label, _)| label.to_owned());
        let served = served.entry(family_of(name).labels).or_default();
        served.extend(labels);
    }
    let text = include_str!("../../../grafana/fcn-top.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).unwrap();
    let mut checked = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap_or(&Vec::new()) {
            let query = target["expr"].as_str().unwrap();
            let legend = target["legendFormat"].as_str().unwrap_or_default();
            let metrics: Vec<&str> = query
                .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .filter(|word| word.starts_with("fcn_top_"))
                .collect();
            assert!(!metrics.is_empty(), "{query}");
            let matched = named(query, "{", '}').filter_map(|test| test.split(['=', '!']).next());
            let labels = matched
                .chain(named(query, " by (", ')'))
                .chain(named(legend, "{{", '}'));
            for label in labels.filter(|label| !["job", "instance"].contains(label)) {
                checked += 1;
                for metric in &metrics {
                    let labels = family_of(metric).labels;
                    // Or of one with a subset of its labels.
                    let served = (served.iter())
                        .filter(|(others, _)| others.iter().all(|other| labels.contains(other)))
                        .any(|(_, served)| served.contains(label));
                    assert!(served, "{metric} has no {label}: {query}");
                }
            }
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn addresses_to_serve_at_are_parsed() {
    for (text, expected) in [
        ("9464", "127.0.0.1:9464"),
        (":9464", "127.0.0.1:9464"),
        ("[::1]:1", "[::1]:1"),
        ("0.0.0.0:80", "0.0.0.0:80"),
    ] {
        assert_eq!(read_address(text), Ok(expected.parse().unwrap()));
    }
    for text in ["", "localhost", "10.0.0.1", "1.2.3.4:99999", "70000"] {
        assert!(read_address(text).is_err(), "{text}");
    }
}

fn ask(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_page_is_fetched_over_http() {
    let exposition = Exposition::new(QPS, Formatter::default());
    let address = read_address("0").unwrap();
    let server = serve(listen(address).unwrap(), exposition, sample::tables).unwrap();
    let answer = ask(
        &server,
        "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n",
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
    assert!(
        head.contains("content-type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(
        head.contains(&format!("content-length: {}", body.len())),
        "{head}"
    );
    checked(body);
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "200"),
        ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200"),
        (
            "GET http://x:1/metrics?y HTTP/1.1\r\nHost: x:1\r\n\r\n",
            "200",
        ),
        ("GET http://x:1/other HTTP/1.1\r\nHost: x:1\r\n\r\n", "404"),
        ("GET /other HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
        ("GET /metrics\r\n\r\n", "400"),
    ] {
        let answer = ask(&server, request);
        let (version, rest) = answer.split_once(' ').unwrap_or_default();
        assert!(version.starts_with("HTTP/1."), "{request:?}: {answer}");
        assert!(rest.starts_with(status), "{request:?}: {answer}");
    }
    let head = ask(&server, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    // The address is in use, and free again when the server is gone.
    let taken = server.address();
    let message = listen(taken).unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("cannot serve metrics: {taken}: ")),
        "{message}"
    );
    drop(server);
    assert!(TcpStream::connect(taken).is_err());
}

#[test]
fn endless_requests_are_refused_and_idle_ones_do_not_delay_shutdown() {
    let address = read_address("0").unwrap();
    let server = serve(
        listen(address).unwrap(),
        Exposition::new(1, Formatter::default()),
        sample::tables,
    )
    .unwrap();
    let mut long = "GET /metrics HTTP/1.1\r\nX: ".to_owned();
    long += &"a".repeat(http::HEAD - long.len());
    let answer = ask(&server, &long);
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let mut idle = TcpStream::connect(server.address()).unwrap();
    idle.write_all(b"GET /met").unwrap();
    drop(server);
    let mut rest = Vec::new();
    let _ = idle.read_to_end(&mut rest);
    assert!(rest.is_empty());
}

#[test]
fn idle_connections_do_not_block_others() {
    let address = read_address("0").unwrap();
    let exposition = Exposition::new(1, Formatter::default());
    let server = serve(listen(address).unwrap(), exposition, sample::tables).unwrap();
    let mut idle = Vec::new();
    for i in 0..3 * http::CONNECTIONS {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // Some have sent part of a request.
        stream.write_all(&b"GET /met"[..i % 8]).unwrap();
        idle.push(stream);
        if i % 16 == 0 {
            let answer = ask(&server, "GET /metrics HTTP/1.1\r\n\r\n");
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        }
    }
    // They do not accumulate: the first was closed, the last can still send its request.
    let mut rest = Vec::new();
    let _ = idle[1].read_to_end(&mut rest);
    assert!(rest.is_empty());
    let last = idle.last_mut().unwrap();
    let begun = (3 * http::CONNECTIONS - 1) % 8;
    last.write_all(&b"GET /metrics HTTP/1.0\r\n\r\n"[begun..])
        .unwrap();
    last.read_to_end(&mut rest).unwrap();
    assert!(rest.starts_with(b"HTTP/1.0 200 ") || rest.starts_with(b"HTTP/1.1 200 "));
}
