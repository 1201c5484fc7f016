use super::*;
use fcn_wire::{End, Findings, Frame, IcrcCheck, Message, Severity};
use std::collections::BTreeSet;

fn play(gallery: &str, family: &str, profile: &Profile) -> Result<Capture, String> {
    let mut selection = Selection::all_of(gallery);
    let mut families = selection.gallery.families.iter();
    selection.family = families.find(|known| known.name == family);
    assert_eq!(selection.family_name(), family);
    selection.profile = profile.clone();
    selection.play()
}

fn whole(gallery: &str) -> Capture {
    play(gallery, ALL_FAMILIES, &Profile::DEFAULT).unwrap()
}

fn broken(packet: &Packet, profile: &Profile) -> Vec<Rule> {
    let mut findings = Findings::new();
    Frame::parse(&packet.bytes, packet.wire_len, packet.link, profile)
        .check(IcrcCheck::On, &mut findings);
    assert_eq!(findings.dropped(), 0, "{}", packet.comment);
    findings.into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn packets_break_exactly_the_listed_rules() {
    for gallery in all() {
        for (number, packet) in (1..).zip(&whole(&gallery.name).packets) {
            assert_eq!(
                broken(packet, &Profile::DEFAULT),
                packet.breaks,
                "{} packet {number}: {}",
                gallery.name,
                packet.comment
            );
        }
    }
}

#[test]
fn formats_break_no_rules_but_notes_and_are_parsed_completely() {
    for packet in whole("formats").packets {
        let about = &packet.comment;
        for rule in &packet.breaks {
            assert_eq!(rule.info().severity, Severity::Note, "{about}: {rule}");
        }
        let profile = Profile::DEFAULT;
        let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, &profile);
        let fragment = ["First", "Last"]
            .iter()
            .any(|which| about.starts_with(which));
        match frame.end() {
            End::Complete => assert!(packet.is_whole() && !fragment, "{about}"),
            End::Cut { .. } => assert!(!packet.is_whole(), "{about}"),
            End::Fragment { .. } => assert!(fragment, "{about}"),
            End::Malformed(e) => panic!("{about}: {e}"),
        }
    }
}

#[test]
fn valid_packets_in_malformed_are_described_as_such() {
    for packet in whole("malformed").packets {
        assert_eq!(
            packet.breaks.is_empty(),
            packet.comment.starts_with("A good one"),
            "{}",
            packet.comment
        );
    }
}

#[test]
fn malformed_covers_all_rules() {
    let shown = |profile: &Profile| -> BTreeSet<Rule> {
        let capture = play("malformed", ALL_FAMILIES, profile).unwrap();
        capture
            .packets
            .iter()
            .flat_map(|packet| broken(packet, profile))
            .collect()
    };
    let usual = shown(&Profile::DEFAULT);
    let never: Vec<_> = Rule::ALL
        .iter()
        .filter(|rule| !usual.contains(rule) && !Rule::MULTI_PACKET.contains(rule))
        .collect();
    assert_eq!(
        never,
        [
            &Rule::FastCnpAction,
            &Rule::FastCnpChange,
            &Rule::ProxyAddressType
        ]
    );
    // The other rules are shown with code points that the drafts forbid.
    let text = "force = true\nfast_cnp_option1 = 0x3E\nfast_cnp_option2 = 0xBE\nproxy_address_option = 0x5E";
    let forced = shown(&Profile::from_toml(text).unwrap());
    for rule in never {
        assert!(forced.contains(rule), "{rule}");
    }
}

#[test]
fn families_make_up_the_whole_gallery() {
    for gallery in all() {
        let whole = whole(&gallery.name);
        assert_eq!(whole.about, gallery.about);
        let mut rest = whole.packets.iter();
        for family in &gallery.families {
            let alone = play(&gallery.name, &family.name, &Profile::DEFAULT).unwrap();
            assert_eq!(alone.about, family.about);
            assert_eq!(alone.packets[0].at, 0);
            for packet in alone.packets {
                let same = rest.next().unwrap();
                let at = same.at;
                assert_eq!(*same, Packet { at, ..packet });
            }
        }
        assert_eq!(rest.next(), None);
    }
}

#[test]
fn names_are_unique_and_valid_in_file_names() {
    let mut names: Vec<_> = all().iter().map(|gallery| gallery.name.clone()).collect();
    for gallery in all() {
        let families = gallery.families.iter();
        names.extend(families.map(|family| format!("{}-{}", gallery.name, family.name)));
        assert!(
            gallery
                .families
                .iter()
                .all(|family| family.name != ALL_FAMILIES)
        );
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    let fit = |name: &String| name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    assert!(names.iter().all(fit), "{names:?}");
}

#[test]
fn time_increases() {
    for gallery in all() {
        let packets = whole(&gallery.name).packets;
        assert_eq!(packets[0].at, 0);
        assert!(packets.windows(2).all(|two| two[0].at < two[1].at));
    }
}

#[test]
fn code_points_follow_the_profile() {
    let other = "fast_cnp_option1 = 0x9A\nfast_cnp_option2 = 0x9B\nproxy_address_option = 0x1A\n\
         proxy_cn_port = 901\nwan_fcn_port = 902\nbgp_pnc_characteristic = 40000\nicrc_reading = \"A2\"";
    let other = Profile::from_toml(other).unwrap();
    let default = whole("formats").packets;
    let moved = play("formats", ALL_FAMILIES, &other).unwrap().packets;
    assert_eq!(default.len(), moved.len());
    for (before, after) in default.iter().zip(&moved) {
        let warned = |packet: &Packet, profile| {
            let rules = broken(packet, profile).into_iter();
            rules
                .filter(|rule| rule.info().severity > Severity::Note)
                .count()
        };
        assert_eq!(warned(after, &other), 0, "{}", after.comment);
        let notification = |packet: &Packet, profile| {
            let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, profile);
            fcn_wire::Notification::from_frame(&frame).map(|n| (n.kind, n.destination, n.level))
        };
        assert_eq!(
            notification(before, &Profile::DEFAULT),
            notification(after, &other),
            "{}",
            after.comment
        );
    }
}

#[test]
fn connections_are_parsed_in_tunnels() {
    let packets = play("formats", "rdma-cm", &Profile::DEFAULT)
        .unwrap()
        .packets;
    let mut read = 0;
    for packet in &packets {
        let profile = Profile::DEFAULT;
        let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, &profile);
        let expected = ["Connect", "Ready", "Disconnect"];
        let expected = expected.iter().any(|kind| packet.comment.starts_with(kind));
        let Message::RdmaCm(_, message) = frame.message() else {
            assert!(!expected, "{}", packet.comment);
            continue;
        };
        assert!(packet.comment.starts_with(&format!("{:?}", message.kind())));
        if let Some(qp) = message.local_qpn() {
            let text = format!("QP is {qp:#x}");
            assert!(packet.comment.ends_with(&text), "{}", packet.comment);
        }
        read += 1;
    }
    assert_eq!(read, 15);
}

#[test]
fn entropy_labels_follow_their_indicator_and_carry_the_flow_label() {
    let labels = |packet: &Packet| -> Vec<u32> {
        let profile = Profile::DEFAULT;
        let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, &profile);
        let spans = frame.spans().iter();
        let labels = spans.filter(|span| span.layer == fcn_wire::Layer::Mpls);
        let entry = |at: usize| packet.bytes[at..at + 4].try_into().unwrap();
        labels
            .map(|span| u32::from_be_bytes(entry(span.start)))
            .collect()
    };
    let packets = play("formats", "wan-fcn", &Profile::DEFAULT)
        .unwrap()
        .packets;
    let mut stacks = Vec::new();
    for packet in packets
        .iter()
        .filter(|packet| packet.comment.contains("SR-MPLS"))
    {
        let stack = labels(packet);
        let (bottom, others) = stack.split_last().unwrap();
        assert_eq!(bottom & 0x100, 0x100, "{}", packet.comment);
        assert!(
            others.iter().all(|entry| entry & 0x100 == 0),
            "{}",
            packet.comment
        );
        for (entry, before) in stack.iter().skip(1).zip(&stack) {
            let is_entropy = before >> 12 == 7;
            assert_eq!(entry & 0xFF == 0, is_entropy, "{}: TTL", packet.comment);
            assert_eq!(entry >> 12 == 0xABCDE, is_entropy, "{}", packet.comment);
        }
        stacks.push(stack.len());
    }
    assert_eq!(stacks, [2, 4, 6, 4]);
}
