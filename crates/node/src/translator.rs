//! The translator: stands between the network and a host whose NIC does not know Fast CNPs, and
//! turns those for the host into plain CNPs, which every RoCEv2 NIC understands \[choice: the drafts
//! have no such node; its access list and checks are those of a sender\].
//!
//! A Fast CNP names the receiver and the QP there, a plain CNP the QP at the sender. That one is
//! learnt from passing frames: RDMA CM, acknowledgements, UDP source ports ([`SenderQps`]). The
//! plain CNP is what the receiver would have sent: from its address, to the sender. Everything else
//! passes unchanged.

use crate::reaction_point::{self, Ignored, accept_fast_cnp};
use crate::reasons::reasons;
use crate::sender_qps::{KnownBy, SenderQps};
use fcn_observe::data::FlowKey;
use fcn_observe::time::Time;
use fcn_wire::cnp::CnpRepr;
use fcn_wire::emit::{self, Carrier};
use fcn_wire::header::{ipv6, udp};
use fcn_wire::message::FastCnpMessage;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Frame, Layer, Message, Qp};

/// Length of the IP packet of a plain CNP over IPv6, in octets.
pub const CNP_PACKET: usize = ipv6::LEN + udp::LEN + fcn_wire::cnp::CNP_LEN;

/// Configuration.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Enables the translator. Default false.
    pub enabled: bool,
    /// Nodes whose Fast CNPs are translated. Empty: none.
    pub access_list: Vec<Prefix>,
    /// Maximum number of connections remembered, and of flows whose acknowledgements are tracked.
    /// Default 65 536.
    pub connections: usize,
    /// QPs at the host, by flow, that need not be learnt.
    pub qps: Vec<(FlowKey, Qp)>,
}

impl Config {
    /// Creates a configuration with this access list; disabled.
    #[must_use]
    pub const fn new(access_list: Vec<Prefix>) -> Self {
        Self {
            enabled: false,
            access_list,
            connections: 65_536,
            qps: Vec::new(),
        }
    }
}

reasons! {
    /// Reason why a Fast CNP did not become a plain one.
    Untranslated {
        /// The translator is disabled.
        Disabled = disabled,
        /// The source is not on the access list.
        NotOnAccessList = not_on_access_list,
        /// The frame cannot be parsed, or violates a rule with severity error.
        Malformed = malformed,
        /// The ICRC is wrong.
        BadIcrc = bad_icrc,
        /// The Fast CNP is in a tunnel.
        InTunnel = in_tunnel,
        /// The host's QP is neither configured nor learnt.
        UnknownConnection = unknown_connection,
    }
    /// Counters of a translator: actions, and reasons for leaving a Fast CNP as it is.
    {
        /// Fast CNPs turned into plain ones.
        translated,
        /// Those about a QP that was inferred from packets.
        inferred,
    }
}

/// A translator.
#[derive(Debug)]
pub struct Translator {
    acceptance: reaction_point::Config,
    qps: SenderQps,
    counters: Counters,
}

impl Translator {
    /// Creates a translator that has not processed any frame.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            qps: SenderQps::new(&config.qps, config.connections),
            acceptance: reaction_point::Config {
                fast_cnp: config.enabled,
                access_list: config.access_list,
                ..reaction_point::Config::default()
            },
            counters: Counters::default(),
        }
    }

    /// Learns QPs from a frame that passes in either direction.
    pub fn learn(&mut self, now: Time, frame: &Frame<'_>) {
        self.qps.learn(now, frame);
    }

    /// Translates a frame to the host: if it is a Fast CNP, writes the plain CNP to send instead to
    /// `out`, with the link header as received. Returns false if the frame is no Fast CNP.
    ///
    /// The plain CNP keeps DSCP, ECN, hop limit, flow label, UDP source port and P_Key of the Fast
    /// CNP.
    ///
    /// # Errors
    /// The reason why a Fast CNP is not translated; each is counted.
    pub fn translate(
        &mut self,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Untranslated> {
        let Message::FastCnp(message) = frame.message() else {
            return Ok(false);
        };
        let done = self.plain_cnp(frame, &message, out);
        match done {
            Ok(()) => self.counters.translated += 1,
            Err(untranslated) => self.counters.count(untranslated),
        }
        done.map(|()| true)
    }

    fn plain_cnp(
        &mut self,
        frame: &Frame<'_>,
        message: &FastCnpMessage<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Untranslated> {
        let (receiver, receiver_qp) =
            accept_fast_cnp(&self.acceptance, frame, message).map_err(|ignored| match ignored {
                Ignored::FeatureOff => Untranslated::Disabled,
                Ignored::NotOnAccessList => Untranslated::NotOnAccessList,
                Ignored::BadIcrc => Untranslated::BadIcrc,
                _ => Untranslated::Malformed,
            })?;
        let (ip, port) = frame
            .datagram()
            .map(|datagram| (&datagram.ip, datagram.source_port))
            .ok_or(Untranslated::Malformed)?;
        let layers = frame.spans().iter();
        let mut packets = layers.filter(|span| matches!(span.layer, Layer::Ipv4 | Layer::Ipv6));
        if packets.next().is_none_or(|first| first.start != ip.start) {
            return Err(Untranslated::InTunnel);
        }
        let flow = FlowKey {
            sender: ip.destination,
            receiver,
            receiver_qp,
        };
        let (qp, by) = (self.qps.sender_qp(&flow)).ok_or(Untranslated::UnknownConnection)?;
        let carrier = Carrier {
            source: receiver,
            destination: ip.destination,
            traffic_class: ip.traffic_class,
            flow_label: ip.flow_label,
            hop_limit: ip.hop_limit,
            udp_source: port,
        };
        let mut cnp = CnpRepr::new(qp);
        if let Some(bth) = message.bth {
            cnp.bth.pkey = bth.pkey();
        }
        let link = frame.bytes().get(..ip.start).unwrap_or_default();
        out.clear();
        out.extend_from_slice(link);
        out.resize(link.len() + CNP_PACKET, 0);
        let packet = out.get_mut(link.len()..).unwrap_or_default();
        emit::cnp(&carrier, &cnp, frame.profile(), packet).map_err(|_| Untranslated::Malformed)?;
        self.counters.inferred += u64::from(by == KnownBy::Packets);
        Ok(())
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::{DataPacketContext, OutgoingNotification};
    use crate::testing::{RECEIVER, SENDER, SWITCH, Setup, data, hop, mutated, trace, with_frame};
    use fcn_wire::bth::BthRepr;
    use fcn_wire::icrc::Verdict;
    use fcn_wire::ioam::OptType;
    use fcn_wire::{IcrcCheck, LinkType, Opcode, Profile};
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    const OWN: Qp = Qp::truncate(0x111);
    const PEER: Qp = Qp::truncate(0x222);

    fn translator(change: impl FnOnce(&mut Config)) -> Translator {
        let mut config = Config::new(vec![Prefix::new(SWITCH.into(), 48).unwrap()]);
        config.enabled = true;
        change(&mut config);
        Translator::new(config)
    }

    fn connected(change: impl FnOnce(&mut Config)) -> Translator {
        let mut translator = translator(change);
        for message in Setup::v6().messages() {
            with_frame(&message, |frame| translator.learn(Time::default(), frame));
        }
        translator
    }

    fn fast_cnp(source: Ipv6Addr, qp: Qp, context: &DataPacketContext<'_>) -> Vec<u8> {
        let outgoing = OutgoingNotification::FastCnp {
            source,
            destination: SENDER,
            original_destination: RECEIVER,
            qp,
        };
        let mut out = [0; OutgoingNotification::MAX_LEN];
        let (len, _) = outgoing.emit(context, &Profile::DEFAULT, &mut out).unwrap();
        out[..len].to_vec()
    }

    fn good() -> Vec<u8> {
        fast_cnp(SWITCH, PEER, &DataPacketContext::default())
    }

    fn translate(
        translator: &mut Translator,
        bytes: &[u8],
    ) -> Result<Option<Vec<u8>>, Untranslated> {
        let mut out = vec![7; 3];
        let done = with_frame(bytes, |frame| translator.translate(frame, &mut out))?;
        Ok(done.then_some(out))
    }

    #[test]
    fn both_options_become_the_cnp_that_the_receiver_would_have_sent() {
        let trace = trace(&[hop(100, 90)]);
        let contexts = [
            DataPacketContext::default(),
            DataPacketContext {
                trace: Some((OptType::Preallocated, &trace)),
                ..DataPacketContext::default()
            },
        ];
        for context in contexts {
            let mut translator = connected(|_| ());
            let bytes = fast_cnp(SWITCH, PEER, &context);
            let cnp = translate(&mut translator, &bytes).unwrap().unwrap();
            let mut expected = [0; CNP_PACKET];
            let carrier = Carrier::new(RECEIVER.into(), SENDER.into());
            let written = emit::cnp(
                &carrier,
                &CnpRepr::new(OWN),
                &Profile::DEFAULT,
                &mut expected,
            );
            assert_eq!((written.unwrap(), &cnp[..]), (CNP_PACKET, &expected[..]));
            with_frame(&cnp, |frame| {
                assert_eq!(frame.verify_icrc(), Verdict::Good(None));
                let mut findings = fcn_wire::Findings::new();
                frame.check(IcrcCheck::On, &mut findings);
                assert!(findings.as_slice().is_empty());
            });
            let counters = translator.counters();
            assert_eq!((counters.translated, counters.inferred), (1, 0));
        }
    }

    #[test]
    fn link_header_and_vlan_tag_are_kept() {
        let tagged = [
            &[
                2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0x60, 5, 0x86, 0xDD,
            ][..],
            &good(),
        ]
        .concat();
        let frame = Frame::parse(&tagged, tagged.len(), LinkType::Ethernet, &Profile::DEFAULT);
        let mut out = Vec::new();
        assert_eq!(connected(|_| ()).translate(&frame, &mut out), Ok(true));
        assert_eq!((out.len(), &out[..18]), (18 + CNP_PACKET, &tagged[..18]));
    }

    #[test]
    fn qps_are_configured_or_inferred_from_acknowledgements() {
        let flow = FlowKey {
            sender: SENDER.into(),
            receiver: RECEIVER.into(),
            receiver_qp: PEER,
        };
        let qp_of = |cnp: Vec<u8>| {
            with_frame(&cnp, |frame| match frame.message() {
                Message::Cnp(cnp) => cnp.dest_qp(),
                _ => panic!("not a CNP"),
            })
        };
        let mut configured = translator(|config| config.qps = vec![(flow, Qp::truncate(7))]);
        let cnp = translate(&mut configured, &good()).unwrap().unwrap();
        assert_eq!(qp_of(cnp), Qp::truncate(7));
        let mut inferring = translator(|_| ());
        for psn in 50_000..50_003 {
            let mut packet = |from: Ipv6Addr, to: Ipv6Addr, opcode, qp| {
                use crate::testing::{ICRC, build, ip, udp};
                use fcn_wire::compose::Part;
                let bytes = build(&[
                    ip(from.into(), to.into()),
                    udp(4791),
                    Part::Bth(BthRepr::new(opcode, qp, psn)),
                    Part::Bytes(&[0; 4]),
                    ICRC,
                ]);
                with_frame(&bytes, |frame| inferring.learn(Time::default(), frame));
            };
            packet(SENDER, RECEIVER, Opcode::RC_SEND_ONLY, PEER);
            packet(RECEIVER, SENDER, Opcode::RC_ACKNOWLEDGE, OWN);
        }
        let cnp = translate(&mut inferring, &good()).unwrap().unwrap();
        assert_eq!((qp_of(cnp), inferring.counters().inferred), (OWN, 1));
    }

    #[test]
    fn each_reason_is_counted() {
        let stranger = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 1);
        let plain = DataPacketContext::default();
        let mut bad_icrc = good();
        *bad_icrc.last_mut().unwrap() ^= 1;
        let mut cut = good();
        cut.truncate(cut.len() - 20);
        let outer = Setup::v6().request();
        let mut tunnel = outer[..40].to_vec();
        tunnel[6] = 41;
        tunnel[4..6].copy_from_slice(&(good().len() as u16).to_be_bytes());
        tunnel.extend(good());
        for (bytes, why) in [
            (
                fast_cnp(stranger, PEER, &plain),
                Untranslated::NotOnAccessList,
            ),
            (bad_icrc, Untranslated::BadIcrc),
            (cut, Untranslated::Malformed),
            (tunnel, Untranslated::InTunnel),
            (
                fast_cnp(SWITCH, OWN, &plain),
                Untranslated::UnknownConnection,
            ),
        ] {
            let mut translator = connected(|_| ());
            assert_eq!(translate(&mut translator, &bytes), Err(why));
            let counted = translator
                .counters()
                .named()
                .filter(|(_, count)| *count > 0);
            assert_eq!(
                counted.map(|(_, count)| count).collect::<Vec<_>>(),
                [1],
                "{why:?}"
            );
        }
        let mut off = connected(|config| config.enabled = false);
        assert_eq!(translate(&mut off, &good()), Err(Untranslated::Disabled));
        let unlisted = &mut connected(|config| config.access_list.clear());
        assert_eq!(
            translate(unlisted, &good()),
            Err(Untranslated::NotOnAccessList)
        );
        // A closed connection's QP may belong to another one.
        let closed = &mut connected(|_| ());
        let close = Setup::v6().disconnect();
        with_frame(&close, |frame| closed.learn(Time::default(), frame));
        assert_eq!(
            translate(closed, &good()),
            Err(Untranslated::UnknownConnection)
        );
    }

    #[test]
    fn other_frames_are_not_translated() {
        let translator = &mut connected(|_| ());
        let packet = data(SENDER.into(), RECEIVER.into(), Opcode::RC_SEND_ONLY, PEER);
        for bytes in [packet, Setup::v6().request(), vec![0; 9], vec![]] {
            assert_eq!(translate(translator, &bytes), Ok(None));
        }
        assert_eq!(*translator.counters(), Counters::default());
    }

    proptest! {
        #[test]
        fn no_frame_panics(bytes in mutated(vec![good()])) {
            let translator = &mut connected(|_| ());
            if let Ok(Some(cnp)) = translate(translator, &bytes) {
                prop_assert_eq!(cnp.len(), CNP_PACKET);
            }
        }
    }
}
