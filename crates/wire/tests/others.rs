//! Other protocols' packets to and from our ports are not claimed.

mod others_support;

use fcn_wire::{Findings, Frame, IcrcCheck, LinkType, Message, Notification, Profile};

#[test]
fn other_protocols_at_our_ports_stay_what_they_are() {
    let frames = others_support::frames();
    assert!(frames.len() > 60);
    for other in &frames {
        let (bytes, name) = (&other.bytes, &other.name);
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT);
        assert!(matches!(frame.message(), Message::Other), "{name}");
        assert_eq!(Notification::from_frame(&frame), None, "{name}");
        let mut findings = Findings::new();
        frame.check(IcrcCheck::On, &mut findings);
        assert!(findings.is_empty(), "{name}: {findings:?}");
    }
}
