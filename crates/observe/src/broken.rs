//! Packets that were meant as notifications and cannot be read as such: who sent them.

use fcn_wire::finding::Family;
use fcn_wire::frame::Ip;
use fcn_wire::{Findings, Frame, Gist, Message, Origin, Severity};
use std::net::IpAddr;

/// A notification that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Who sent it.
    pub notifier: IpAddr,
    /// Where it was to go.
    pub told: IpAddr,
    /// What it would come from.
    pub origin: Origin,
}

impl Broken {
    /// What `frame` was meant as, by its `findings`: `None` for notifications that can be read, those that the capture has
    /// cut, and everything else.
    #[must_use]
    pub fn of(frame: &Frame<'_>, findings: &Findings) -> Option<Self> {
        // What carries the option in a header of another kind is one all the same.
        let is_fast = || matches!(frame.message(), Message::FastCnp(_));
        let mut families = (findings.into_iter())
            .map(|finding| finding.rule.info())
            .filter(|info| info.severity == Severity::Error)
            .map(|info| info.family)
            .filter(|family| {
                let ours = [
                    Family::Cnp,
                    Family::FastCnp,
                    Family::ProxyCn,
                    Family::WanFcn,
                ];
                ours.contains(family) || *family == Family::Roce && is_fast()
            });
        let family = families.next()?;
        let Ip {
            source,
            destination,
            ..
        } = *frame.ip()?;
        if Gist::of(frame).is_some() {
            return None;
        }
        Some(Self {
            notifier: source,
            told: destination,
            origin: if family == Family::Cnp && !is_fast() {
                Origin::Receiver
            } else {
                Origin::Switch
            },
        })
    }
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

    fn broken(bytes: &[u8]) -> Option<Broken> {
        with_frame(bytes, |frame| {
            let mut findings = Findings::new();
            frame.check(IcrcCheck::On, &mut findings);
            Broken::of(frame, &findings)
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
    fn who_sent_what_cannot_be_read_is_known() {
        let by = |notifier: std::net::Ipv6Addr, origin| {
            Some(Broken {
                notifier: notifier.into(),
                told: SENDER.into(),
                origin,
            })
        };
        let cnp = [Part::Cnp(CnpRepr::new(QP))];
        let good = fast_cnp(&cnp);
        assert_eq!(broken(&good), None);
        // An option of a wrong length, one before data, and a CNP that is none.
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
        let wan = build(&[
            ip(SWITCH.into(), SENDER.into()),
            udp(1022),
            Part::Bytes(&[1]),
        ]);
        let found = broken(&wan);
        assert!(
            found.is_none() || found == by(SWITCH, Origin::Switch),
            "{found:?}"
        );
    }

    #[test]
    fn what_the_capture_has_cut_is_not_broken() {
        let whole = fast_cnp(&[Part::Cnp(CnpRepr::new(QP))]);
        for keep in 40..whole.len() {
            let profile = fcn_wire::Profile::DEFAULT;
            let link = fcn_wire::LinkType::RawIp;
            let frame = Frame::parse(&whole[..keep], whole.len(), link, &profile);
            let mut findings = Findings::new();
            frame.check(IcrcCheck::On, &mut findings);
            assert_eq!(Broken::of(&frame, &findings), None, "{keep}");
        }
    }
}
