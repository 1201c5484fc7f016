use super::*;
use fcn_wire::icrc::Reading;
use fcn_wire::{End, Findings, Frame, IcrcCheck, Layer, Message, Notification, Severity};
use std::collections::BTreeSet;

const DEFAULT: Profile = Profile::DEFAULT;

fn play(gallery: &str, family: &str, profile: &Profile) -> Capture {
    let mut selection = Selection::all_of(gallery);
    let mut families = selection.gallery.families.iter();
    selection.family = families.find(|known| known.name == family);
    assert_eq!(selection.family_name(), family);
    selection.profile = profile.clone();
    selection.play()
}

fn whole(gallery: &str) -> Capture {
    play(gallery, ALL_FAMILIES, &DEFAULT)
}

fn parse<'p>(packet: &'p Packet, profile: &'p Profile) -> Frame<'p> {
    Frame::parse(&packet.bytes, packet.wire_len, packet.link, profile)
}

fn broken(packet: &Packet, profile: &Profile) -> Vec<Rule> {
    let mut findings = Findings::new();
    parse(packet, profile).check(IcrcCheck::On, &mut findings);
    assert_eq!(findings.dropped(), 0, "{}", packet.comment);
    findings.into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn packets_break_exactly_the_listed_rules() {
    for gallery in all() {
        for (number, packet) in (1..).zip(&whole(gallery.name).packets) {
            let about = format!("{} packet {number}: {}", gallery.name, packet.comment);
            assert_eq!(broken(packet, &DEFAULT), packet.breaks, "{about}");
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
        let fragment = about.starts_with("First") || about.starts_with("Last");
        match parse(&packet, &DEFAULT).end() {
            End::Complete => assert!(packet.is_whole() && !fragment, "{about}"),
            End::Cut { .. } => {
                let is_trimmed = parse(&packet, &DEFAULT).trimming().is_some();
                assert!(!packet.is_whole() || is_trimmed, "{about}");
            }
            End::Fragment { .. } => assert!(fragment, "{about}"),
            End::Malformed(e) => panic!("{about}: {e}"),
        }
    }
}

#[test]
fn valid_packets_in_malformed_are_described_as_such() {
    for packet in whole("malformed").packets {
        let good = packet.comment.starts_with("A good one");
        assert_eq!(packet.breaks.is_empty(), good, "{}", packet.comment);
    }
}

#[test]
fn malformed_covers_all_rules() {
    use Rule::{FastCnpAction, FastCnpChange, ProxyAddressType};
    let shown = |profile: &Profile| -> BTreeSet<Rule> {
        let packets = play("malformed", ALL_FAMILIES, profile).packets;
        let rules = packets.iter().flat_map(|packet| broken(packet, profile));
        rules.collect()
    };
    let usual = shown(&DEFAULT);
    let mut never = Rule::ALL.to_vec();
    never.retain(|rule| !usual.contains(rule) && !Rule::MULTI_PACKET.contains(rule));
    assert_eq!(never, [FastCnpAction, FastCnpChange, ProxyAddressType]);
    // The other rules are shown with code points that the drafts forbid.
    let text = "force = true\nfast_cnp_option1 = 0x3E\nfast_cnp_option2 = 0xBE\n\
        proxy_address_option = 0x5E";
    let forced = shown(&Profile::from_toml(text).unwrap());
    for rule in never {
        assert!(forced.contains(&rule), "{rule}");
    }
}

#[test]
fn families_make_up_the_whole_gallery() {
    for gallery in all() {
        let whole = whole(gallery.name);
        assert_eq!(whole.about, gallery.about);
        let mut rest = whole.packets.iter();
        for family in gallery.families {
            let alone = play(gallery.name, family.name, &DEFAULT);
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
    let mut names = Vec::new();
    for gallery in all() {
        names.push(gallery.name.to_owned());
        for family in gallery.families {
            assert_ne!(family.name, ALL_FAMILIES);
            names.push(format!("{}-{}", gallery.name, family.name));
        }
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    let fit = |name: &String| name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    assert!(names.iter().all(fit), "{names:?}");
}

#[test]
fn time_increases() {
    for gallery in all() {
        let packets = whole(gallery.name).packets;
        assert_eq!(packets[0].at, 0);
        assert!(packets.windows(2).all(|two| two[0].at < two[1].at));
    }
}

#[test]
fn code_points_follow_the_profile() {
    let other = "fast_cnp_option1 = 0x9A\nfast_cnp_option2 = 0x9B\nproxy_address_option = 0x1A\n\
        proxy_cn_port = 901\nwan_fcn_port = 902\nrocev2_port = 903\nioam_option = 0x3B\n\
        bgp_pnc_characteristic = 40000\nicrc_reading = \"A2\"";
    let other = Profile::from_toml(other).unwrap();
    let default = whole("formats").packets;
    let moved = play("formats", ALL_FAMILIES, &other).packets;
    assert_eq!(default.len(), moved.len());
    for (before, after) in default.iter().zip(&moved) {
        let about = &after.comment;
        for rule in broken(after, &other) {
            assert_eq!(rule.info().severity, Severity::Note, "{about}: {rule}");
        }
        let notification = |packet, profile| {
            let found = Notification::from_frame(&parse(packet, profile));
            found.map(|n| (n.kind, n.destination, n.level))
        };
        let (before, after) = (notification(before, &DEFAULT), notification(after, &other));
        assert_eq!(before, after, "{about}");
    }
}

#[test]
fn no_code_point_is_refused() {
    for code in (0..=u8::MAX).step_by(3) {
        let mut profile = DEFAULT;
        (profile.fast_cnp_option1, profile.fast_cnp_option2) = (code, !code);
        (profile.proxy_address_option, profile.ioam_option) = (code, code);
        profile.rocev2_port = u16::from(code) * 257;
        profile.icrc_reading = Reading::ALL[usize::from(code) % Reading::ALL.len()];
        play("formats", ALL_FAMILIES, &profile);
        play("malformed", ALL_FAMILIES, &profile);
    }
}

#[test]
fn connections_are_parsed_in_tunnels() {
    let packets = play("formats", "rdma-cm", &DEFAULT).packets;
    let mut read = 0;
    for packet in &packets {
        let frame = parse(packet, &DEFAULT);
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
    let mut packets = play("formats", "wan-fcn", &DEFAULT).packets;
    packets.retain(|packet| packet.comment.contains("SR-MPLS"));
    let mut stacks = Vec::new();
    for packet in &packets {
        let (about, frame) = (&packet.comment, parse(packet, &DEFAULT));
        let mut labels = frame.spans().to_vec();
        labels.retain(|span| span.layer == Layer::Mpls);
        let octets = |at: usize| packet.bytes[at..at + 4].try_into().unwrap();
        let entries = labels.iter().map(|span| octets(span.start));
        let stack: Vec<u32> = entries.map(u32::from_be_bytes).collect();
        let (bottom, others) = stack.split_last().unwrap();
        assert_eq!(bottom & 0x100, 0x100, "{about}");
        assert!(others.iter().all(|entry| entry & 0x100 == 0), "{about}");
        for (entry, before) in stack.iter().skip(1).zip(&stack) {
            let is_entropy = before >> 12 == 7;
            assert_eq!(entry & 0xFF == 0, is_entropy, "{about}: TTL");
            assert_eq!(entry >> 12 == 0xABCDE, is_entropy, "{about}");
        }
        stacks.push(stack.len());
    }
    assert_eq!(stacks, [2, 4, 6, 4]);
}
