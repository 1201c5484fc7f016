//! Malformed notifications: packets meant as notifications that cannot be parsed, and their
//! sources.

use fcn_wire::finding::Family;
use fcn_wire::frame::Ip;
use fcn_wire::{Claim, Findings, Frame, Message, Notification, Origin, Rule, Severity};
use std::net::IpAddr;

/// A notification that cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Its source.
    pub notifier: IpAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// Origin of notifications of its kind.
    pub origin: Origin,
}

impl Malformed {
    /// Returns the notification that `frame` was meant as, according to its `findings`: `None` for
    /// notifications that can be parsed, those truncated by the capture, and everything else.
    #[must_use]
    pub fn from_frame(frame: &Frame<'_>, findings: &Findings) -> Option<Self> {
        // A packet with the option counts even if a header of another kind carries the option.
        let is_fast = || matches!(frame.message(), Message::FastCnp(_));
        let family = datagram(frame).or_else(|| {
            (findings.into_iter()).find_map(|finding| {
                let info = finding.rule.info();
                match info.family {
                    // A prototype's CNP with InfiniBand's opcode.
                    _ if finding.rule == Rule::RoceIbCnp => Some(Family::Cnp),
                    Family::Cnp | Family::FastCnp | Family::ProxyCn | Family::WanFcn => {
                        (info.severity == Severity::Error).then_some(info.family)
                    }
                    Family::Roce | Family::Packet => {
                        (info.severity == Severity::Error && is_fast()).then_some(info.family)
                    }
                    _ => None,
                }
            })
        })?;
        let Ip {
            source,
            destination,
            ..
        } = *frame.ip()?;
        if Notification::from_frame(frame).is_some() {
            return None;
        }
        Some(Self {
            notifier: source,
            destination,
            origin: if family == Family::Cnp && !is_fast() {
                Origin::Receiver
            } else {
                Origin::Switch
            },
        })
    }
}

/// Returns the kind of a datagram to a port of ours that is claimed as broken.
fn datagram(frame: &Frame<'_>) -> Option<Family> {
    let profile = frame.profile();
    let datagram = (frame.datagram()).filter(|datagram| !frame.is_roce() && datagram.is_whole())?;
    if datagram.claim(profile) != Claim::Broken {
        return None;
    }
    Some(if datagram.destination_port == profile.wan_fcn_port {
        Family::WanFcn
    } else {
        Family::ProxyCn
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ICRC, RECEIVER, SENDER, SWITCH, build, ip, udp, with_frame};
    use fcn_wire::bth::BthRepr;
    use fcn_wire::cnp::CnpRepr;
    use fcn_wire::compose::{OptionPart, Part};
    use fcn_wire::fast_cnp::FastCnpRepr;
    use fcn_wire::{IcrcCheck, Opcode, Qp};

    fn broken(bytes: &[u8]) -> Option<Malformed> {
        with_frame(bytes, |frame| {
            let mut findings = Findings::new();
            frame.check(IcrcCheck::On, &mut findings);
            Malformed::from_frame(frame, &findings)
        })
    }

    const QP: Qp = Qp::truncate(7);

    fn fast_cnp(last: &[Part<'_>]) -> Vec<u8> {
        let option = [OptionPart::FastCnp(FastCnpRepr::Option1 {
            original_destination: RECEIVER,
        })];
        let front = [
            ip(SWITCH.into(), SENDER.into()),
            Part::DestinationOptions(&option),
            udp(4791),
        ];
        build(&[&front, last, &[ICRC]].concat())
    }

    #[test]
    fn the_source_of_a_malformed_notification_is_reported() {
        let by = |notifier: std::net::Ipv6Addr, origin| {
            Some(Malformed {
                notifier: notifier.into(),
                destination: SENDER.into(),
                origin,
            })
        };
        let cnp = [Part::Cnp(CnpRepr::new(QP))];
        let good = fast_cnp(&cnp);
        assert_eq!(broken(&good), None);
        // An option of a wrong length, an option before data, and a CNP that is too short.
        let mut wrong = good.clone();
        wrong[43] = 15;
        assert_eq!(broken(&wrong), by(SWITCH, Origin::Switch));
        let data = [
            Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, QP, 1)),
            Part::Bytes(&[0; 16]),
        ];
        assert_eq!(broken(&fast_cnp(&data)), by(SWITCH, Origin::Switch));
        let short = build(&[
            ip(RECEIVER.into(), SENDER.into()),
            udp(4791),
            Part::Bth(BthRepr::new(Opcode::CNP, QP, 0)),
            Part::Bytes(&[0; 8]),
            ICRC,
        ]);
        assert_eq!(broken(&short), by(RECEIVER, Origin::Receiver));
        // InfiniBand's opcode, UDP lengths that no FCN has, a notification that quotes another
        // flow's packet.
        let mut infiniband = build(&[ip(RECEIVER.into(), SENDER.into()), udp(4791), cnp[0], ICRC]);
        infiniband[48] = 0x80;
        assert_eq!(broken(&infiniband), by(RECEIVER, Origin::Receiver));
        let to = |port, bytes: &[u8]| {
            broken(&build(&[
                ip(SWITCH.into(), SENDER.into()),
                udp(port),
                Part::Bytes(bytes),
            ]))
        };
        for len in [3, 5, 8] {
            assert_eq!(to(1022, &vec![7; len]), by(SWITCH, Origin::Switch), "{len}");
        }
        let mut notification = [&RECEIVER.octets()[..], &SENDER.octets()].concat();
        notification.extend([17, 0xC0, 0, 0x12, 0xB7, 0, 0, 0]);
        notification.extend(&good);
        assert_eq!(to(1021, &notification), by(SWITCH, Origin::Switch));
        // Datagrams of other protocols.
        for (port, len) in [(1021, 60), (1022, 60), (1022, 1), (1023, 4)] {
            assert_eq!(to(port, &vec![7; len]), None, "{port} {len}");
        }
    }

    #[test]
    fn a_truncated_notification_is_not_malformed() {
        let whole = fast_cnp(&[Part::Cnp(CnpRepr::new(QP))]);
        for keep in 40..whole.len() {
            let profile = fcn_wire::Profile::DEFAULT;
            let link = fcn_wire::LinkType::RawIp;
            let frame = Frame::parse(&whole[..keep], whole.len(), link, &profile);
            let mut findings = Findings::new();
            frame.check(IcrcCheck::On, &mut findings);
            assert_eq!(Malformed::from_frame(&frame, &findings), None, "{keep}");
        }
    }
}
