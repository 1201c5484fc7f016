//! Correlation of packets: the flow that a notification is about, its copies at other capture
//! points, the nodes that generated and translated it, and the sender's response.
//!
//! Every front end feeds a [`Correlator`] and adds what it counts, stores or draws. Nothing here
//! decides about display.
//!
//! Flows and the inference of their QPs are kept by pairs of hosts. Shared between pairs are: the
//! host that a QP was last paired with, connections by RDMA CM, flow labels of WAN tunnels,
//! translations by proxies and ingress PEs, evidence for the nodes that generated CNPs, and
//! sightings of the same packet at several capture points.

use crate::bounded::Bounded;
use crate::class::{Class, ClassRelation, Classes};
use crate::data::{
    DataPacket, Ecn, FlowKey, Sequence, acknowledges, answers_read, begins_answer, ends_message,
};
use crate::exchange::{Acks, COPIED_WITHIN, EarlyNak, Exchange, Incident, Reply, Sent, cause_of};
use crate::flow_table::{FlowStart, FlowTable, Sequenced, is_near};
use crate::labels::Labels;
use crate::marks::Marks;
use crate::obedience::{Obedience, Order, UnattributedNotification, Verdict};
use crate::origin::{Cnp, Inference, Origins, PathMarks, SeenData};
use crate::pauses::{LINK_SPEED, PauseFinding, PauseTable, Pauser, Scope};
use crate::receivers::{FlowMarks, Receivers};
use crate::resolve::Resolver;
use crate::resolved::Resolved;
use crate::sightings::{CapturePoint, Identity, Sighting, Sightings};
use crate::topic::RowKey;
use crate::translation::{Attribution, Translations};
use crate::trimmed::Destination;
use fcn_wire::bth::{AckKind, MAX_24, Transport};
use fcn_wire::{Frame, Kind, Message, Notification, Opcode, Origin, Qp, Rule, Subject};
use std::net::IpAddr;
use std::num::NonZeroU64;

/// Maximum number of QPs whose acknowledgements are counted before their flow is known.
const EARLY_ACKS: usize = 4096;
/// Maximum time in ns from a CNP to its copy by the same capture \[choice\], if it is unknown
/// whether packets from the receiver have copies.
const CNP_COPIED_WITHIN: u64 = 10_000;
/// Half the PSNs.
const HALF: u32 = MAX_24 / 2;
/// Minimum time in ns between the last packet of a connection and the first of another one of the
/// same QP \[choice\]: copies in a capture are nearer.
const RECONNECTED_AFTER: u64 = 1_000_000;

/// Time and capture point of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Capture {
    /// Time stamp in ns.
    pub at: u64,
    /// Time of capture in ns, which differs from `at` if that is by a mirror's clock.
    pub captured: u64,
    /// Frame number.
    pub frame: u32,
    /// Capture point.
    pub point: CapturePoint,
    /// True if the packet is remembered, to recognise it at another capture point.
    pub watched: bool,
    /// True for a sample: the packets before it, and their times, are unknown.
    pub has_several_points: bool,
    /// True for a sample, which has no known predecessor.
    pub sampled: bool,
}

impl Capture {
    /// Returns the capture of a packet at `at`, with a single capture point.
    #[must_use]
    pub const fn at_single_point(at: u64) -> Self {
        Self {
            at,
            captured: at,
            frame: 0,
            point: CapturePoint::new(0),
            watched: false,
            has_several_points: false,
            sampled: false,
        }
    }

    const fn sighting(&self, ce: bool) -> Sighting {
        Sighting {
            at: self.at,
            frame: self.frame,
            point: self.point,
            ce,
        }
    }
}

/// Data packet of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Flow that it belongs to.
    pub key: FlowKey,
    /// Sighting.
    pub sighting: Sighting,
    /// First sighting of the same packet at another capture point.
    pub earlier: Option<Sighting>,
    /// Length of the innermost IP packet in octets.
    pub octets: u64,
    /// Sequence that its PSN belongs to.
    pub sequence: Sequence,
    /// UDP source port.
    pub source_port: u16,
    /// Fields by which the network may choose the packet's path.
    pub entropy: u32,
    /// True if it ends a message.
    pub ends_message: bool,
    /// True if it asks for an acknowledgement.
    pub asks_for_ack: bool,
    /// Traffic class.
    pub class: Option<Class>,
    /// ECN field of its innermost IP header: that of a tunnel is not its sender's choice.
    pub ecn: Ecn,
    /// True if its sender is known to handle Fast CNPs.
    pub able: bool,
    /// Order by PSN; `None` for a copy and for a sample.
    pub order: Option<Order>,
    /// True if it is marked CE and its first sighting was not.
    pub new_mark: bool,
    /// True if its receiver now counts as silent: it answers no mark with a CNP.
    pub silent: bool,
    /// Broken rule about CE marks next to Fast CNPs.
    pub rule: Option<Rule>,
    /// True if it is a retransmission, as far as known.
    pub is_resent: bool,
    /// True if it is a copy by the same capture, as those of most of the flow's packets.
    pub is_copy: bool,
    /// Time of the first packet of the flow's previous connection, if it begins another one.
    pub reconnects: Option<u64>,
    /// Something else wrong with its flow.
    pub incident: Option<Incident>,
}

/// Flow of data. `E` is the caller's data about it.
#[derive(Clone, Debug, Default)]
pub struct Flow<E> {
    /// Time of its first packet in ns.
    pub first: u64,
    /// Latest time of its packets in ns, copies included.
    pub latest: u64,
    /// UDP source port of its last packet.
    source_port: u16,
    /// Traffic class of its last packet.
    pub class: Option<Class>,
    marks: Marks,
    obedience: Obedience,
    answers: FlowMarks,
    /// Number of data packets before which flow control paused their path.
    pub pauses: u32,
    was_cnp_copy: bool,
    /// True if acknowledgements of its data were captured more than once, as its data is.
    has_ack_copies: bool,
    /// Acknowledgements, retransmissions and silences.
    pub exchange: Exchange,
    /// The caller's data.
    pub extra: E,
}

impl<E: Default> Flow<E> {
    fn new(at: u64) -> Self {
        Self {
            first: at,
            latest: at,
            ..Self::default()
        }
    }
}

impl<E> Flow<E> {
    /// Processes a data packet of the flow and completes `data`.
    #[inline]
    fn data(
        &mut self,
        data: &mut Data,
        (watched, several): (bool, bool),
        early: impl FnOnce(u32) -> Option<EarlyNak>,
    ) {
        let at = data.sighting.at;
        self.latest = self.latest.max(at);
        self.source_port = data.source_port;
        // A switch may have changed the class of a copy.
        if data.earlier.is_none() {
            self.first = self.first.min(at);
            self.class = data.class;
            let order = self.obedience.sequenced(data.sequence, data.sighting.point);
            if order.counts() {
                self.obedience.data(at, data.octets, data.entropy);
                if data.ends_message {
                    self.obedience.message_ends();
                }
                if data.sighting.ce {
                    self.obedience.marked();
                }
            }
            data.order = Some(order);
            let resent = self.exchange.resent;
            let sent = Sent {
                at,
                sequence: data.sequence,
                order,
                asks_for_ack: data.asks_for_ack,
                ecn: data.class.map(|_| data.ecn),
            };
            data.incident = self.exchange.data(&sent, early);
            data.is_resent = self.exchange.resent != resent;
            data.is_copy = order == Order::Copied && !data.is_resent && self.obedience.has_copies();
        }
        let sighting = Sighting {
            at: self.latest,
            ..data.sighting
        };
        data.rule = (self.marks).data(sighting, data.able, (watched, several), data.earlier);
    }

    /// Records whether flow control has paused the path of `data` since the flow's latest packet.
    #[cold]
    fn check_pauses(
        &mut self,
        pauses: &PauseTable,
        capture: &Capture,
        frame: &Frame<'_>,
        data: &Data,
    ) {
        let Some(source) = frame.ethernet_source() else {
            return;
        };
        let class = data.class.and_then(Class::priority);
        if pauses.paused_since(capture.point, source, class, self.latest) {
            self.pauses = self.pauses.saturating_add(1);
            self.obedience.path_paused();
        }
    }

    /// Processes a notification about the flow; returns the broken rule about CE marks.
    fn notified(
        &mut self,
        capture: &Capture,
        context: &NotificationContext,
        missed: Option<u64>,
    ) -> Option<Rule> {
        if let Some(last) = missed {
            self.obedience.missed(last);
        }
        let is_copy = context.earlier.is_some();
        self.obedience
            .notified_at(capture.at, capture.point, is_copy);
        if is_copy {
            return None;
        }
        if context.attribution.answers {
            self.marks.answered();
        }
        let at = capture.at.max(self.latest);
        (context.is_fast)
            .then(|| {
                self.marks
                    .notified(at, capture.point, capture.has_several_points)
            })
            .flatten()
    }

    /// Returns true if a CNP about it is a copy, as its data is captured more than once.
    fn is_copied(&mut self, at: u64) -> bool {
        let within = match self.has_ack_copies {
            true => COPIED_WITHIN,
            false => CNP_COPIED_WITHIN,
        };
        let is_copy = !self.was_cnp_copy && self.answers.is_within(at, within);
        self.was_cnp_copy = is_copy && self.obedience.has_copies();
        self.was_cnp_copy
    }

    /// Returns true if notifications about it were captured.
    #[must_use]
    pub const fn is_notified(&self) -> bool {
        self.obedience.is_notified()
    }

    /// Returns a packet with that PSN and meaning as a reply to the flow's data.
    const fn reply(&self, capture: &Capture, reply: (u32, AckKind), is_copy: bool) -> Reply {
        Reply {
            at: capture.at,
            psn: reply.0,
            kind: reply.1,
            is_copy,
            beside_data: self.obedience.is_captured_at(capture.point),
        }
    }

    fn seen(&self, is_whole: bool) -> SeenData {
        SeenData {
            first: self.first,
            unanswered: self.marks.unanswered(),
            whole: is_whole,
        }
    }
}

impl<E> Sequenced for Flow<E> {
    fn highest_psn(&self) -> Option<u32> {
        self.obedience.highest_psn()
    }

    fn succeed(&mut self, previous: &mut Self) {
        self.first = previous.first;
        self.exchange = previous.exchange.succeeded();
        self.pauses = previous.pauses;
        std::mem::swap(&mut self.extra, &mut previous.extra);
    }
}

/// Last data packet that carried a flow label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// Its flow.
    pub flow: FlowKey,
    /// Its time in ns.
    pub at: u64,
    /// Its frame number.
    pub frame: u32,
}

/// Notification, with further properties of its packet.
#[derive(Clone, Copy, Debug)]
pub struct NotificationPacket<'a> {
    /// The notification.
    pub notification: &'a Notification,
    /// UDP source port; 0 if there is none.
    pub port: u16,
    /// UDP payload.
    pub payload: &'a [u8],
    /// Traffic class.
    pub class: Option<Class>,
    /// Marks of its path, for a CNP.
    pub marks: Option<PathMarks>,
}

impl<'a> NotificationPacket<'a> {
    /// Returns the notification with the properties of its packet, `frame`.
    #[inline]
    #[must_use]
    pub fn new(notification: &'a Notification, frame: &'a Frame<'_>) -> Self {
        let (port, payload) = (frame.datagram()).map_or((0, &[][..]), |datagram| {
            (datagram.source_port, datagram.payload)
        });
        let signs = (notification.kind == Kind::Cnp)
            .then(|| PathMarks::from_frame(frame))
            .flatten();
        Self {
            notification,
            port,
            payload,
            class: Class::from_frame(frame),
            marks: signs,
        }
    }
}

/// Subject and source of a notification.
#[derive(Clone, Copy, Debug)]
pub struct NotificationContext {
    /// First sighting of the same packet at another capture point.
    pub earlier: Option<Sighting>,
    /// Flow that it is about.
    pub flow: Option<FlowKey>,
    /// Traffic class of that flow's last data packet.
    pub data_class: Option<Class>,
    /// Node that it comes from.
    pub attribution: Attribution,
    is_fast: bool,
}

/// Notifications of one kind about one QP or flow.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    classes: Classes,
    missed: UnattributedNotification,
}

impl Topic {
    /// Compares the class of a notification with that of the flow's data; returns the rule that is
    /// broken.
    pub fn class(&mut self, class: Option<Class>, context: &NotificationContext) -> Option<Rule> {
        self.classes.add(class?, context.data_class)
    }

    /// Returns the class of the last notification.
    #[must_use]
    pub const fn last_class(&self) -> Option<Class> {
        self.classes.last()
    }

    /// Returns how notifications are queued compared with data of the class `data`.
    #[must_use]
    pub fn class_relation(&self, data: Option<Class>) -> Option<ClassRelation> {
        self.classes.class_relation(data)
    }
}

/// Findings from a notification about its flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotificationFindings {
    /// Broken rule about CE marks next to Fast CNPs.
    pub rule: Option<Rule>,
    /// Evidence for the node that generated it, for a CNP.
    pub cnp: Option<Cnp>,
}

/// Meaning of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// Notification, with its subject and source.
    Notification(Notification, NotificationContext),
    /// Data.
    Data(Data),
    /// Neither.
    Other,
}

/// Correlator of packets.
///
/// Processes packets in the order of the capture, each once, by [`ingest`](Self::ingest). Callers
/// that keep their own data with flows and topics call its parts instead: [`data`](Self::data),
/// [`about`](Self::about) and [`notified`](Self::notified) for a notification, and
/// [`other`](Self::other). Bounded by the limits passed to [`new`](Self::new).
#[derive(Debug)]
pub struct Correlator<E> {
    /// Topics of the notifications processed by `ingest`.
    topics: Bounded<RowKey, Topic>,
    /// Acknowledgements from a host to a QP of another that is not known to send a flow, and the
    /// PSN of the last one.
    early_acks: Bounded<(IpAddr, IpAddr, Qp), (Acks, u32)>,
    /// NAKs among these that the sender has not responded to, by PSN.
    early_naks: Bounded<(IpAddr, IpAddr, u32), Option<EarlyNak>>,
    flows: FlowTable<Flow<E>>,
    resolver: Resolver,
    labels: Labels<Labelled>,
    sightings: Sightings,
    translations: Translations,
    origins: Origins,
    receivers: Receivers,
    pauses: PauseTable,
}

impl<E: Default> Correlator<E> {
    /// Returns a correlator that remembers at most `flows` flows, and at most `connections` each of
    /// connections, flow labels and hosts.
    #[must_use]
    pub fn new(flows: usize, connections: usize) -> Self {
        Self {
            topics: Bounded::new(flows),
            early_acks: Bounded::new(EARLY_ACKS.min(flows)),
            early_naks: Bounded::new(EARLY_ACKS.min(flows)),
            flows: FlowTable::new(flows.max(1)),
            resolver: Resolver::new(connections.max(1)),
            labels: Labels::new(connections),
            sightings: Sightings::default(),
            translations: Translations::new(connections),
            origins: Origins::new(connections),
            receivers: Receivers::default(),
            pauses: PauseTable::new(LINK_SPEED),
        }
    }

    /// Processes a packet.
    pub fn ingest(&mut self, capture: &Capture, frame: &Frame<'_>) -> Outcome {
        // Most packets are data.
        if let Some(data) = DataPacket::from_frame(frame) {
            let data = self.data(capture, frame, (&data, false), |_, _| ());
            return data.map_or(Outcome::Other, |(data, ())| Outcome::Data(data));
        }
        if let Some(notification) = Notification::from_frame(frame) {
            let notice = NotificationPacket::new(&notification, frame);
            let about = self.about(capture, &notice);
            let key = RowKey::new(&notification, None);
            let topic = (self.topics).get_or_insert_with(key, capture.at, Topic::default);
            let mut topic = std::mem::take(topic);
            self.notified(capture, &notice, &about, &mut topic);
            if let Some(place) = self.topics.get_mut(&key) {
                *place = topic;
            }
            return Outcome::Notification(notification, about);
        }
        self.pause(capture, frame);
        self.other(capture, frame);
        Outcome::Other
    }

    /// Processes a data packet; `able` is true if its sender is known to handle Fast CNPs. `keep`
    /// updates the caller's data about the flow. `None` if the frame has no IP header.
    #[inline]
    pub fn data<R>(
        &mut self,
        capture: &Capture,
        frame: &Frame<'_>,
        (packet, able): (&DataPacket<'_>, bool),
        keep: impl FnOnce(&mut Flow<E>, &Data) -> R,
    ) -> Option<(Data, R)> {
        let (ip, (_, len), bth) = (frame.ip()?, frame.transport()?, frame.bth()?);
        // The mark of a tunnel that is not terminated yet is in the tunnel's own header only.
        let ce = Ecn::from_bits(ip.ecn()) == Ecn::Ce || packet.ecn == Ecn::Ce;
        let sighting = capture.sighting(ce);
        let several = capture.has_several_points;
        let earlier = if capture.sampled {
            None
        } else {
            let marked = (several, ce);
            (self.origins).data(capture.at, capture.point, frame, (packet, &bth), marked);
            let identity = || self.sightings.data(packet, &bth, len);
            let identity = capture.watched.then(identity);
            self.see(capture, sighting, identity)
        };
        let mut data = Data {
            key: packet.flow(),
            sighting,
            earlier,
            octets: (ip.end - ip.start) as u64,
            sequence: Sequence::of(&bth),
            source_port: packet.source_port,
            entropy: packet.entropy(ip.flow_label),
            ends_message: ends_message(bth.opcode()),
            asks_for_ack: bth.ack_request(),
            class: Class::from_frame(frame),
            ecn: Ecn::from_bits(ip.ecn()),
            able,
            order: None,
            new_mark: ce && earlier.is_none_or(|earlier| !earlier.ce),
            silent: false,
            rule: None,
            is_resent: false,
            is_copy: false,
            reconnects: None,
            incident: None,
        };
        if let Some(outer) = &packet.outer {
            let labelled = Labelled {
                flow: data.key,
                at: sighting.at,
                frame: sighting.frame,
            };
            self.labels.learn(outer, labelled);
        }
        let port = data.sequence.port(data.source_port);
        // A sample's PSN says nothing about the packets since the sample before.
        let psn = data.sequence.of_connection().filter(|_| !capture.sampled);
        let make = || Flow::new(sighting.at);
        if psn == Some(0) && earlier.is_none() {
            self.restarts(&data.key, sighting.at, bth.opcode());
        }
        let (flow, begins) = (self.flows).data(data.key, sighting.at, (psn, port), make);
        self.resolver.begins(&data.key, begins, port);
        if begins == FlowStart::Anew {
            data.reconnects = Some(std::mem::replace(&mut flow.first, sighting.at));
        }
        if capture.sampled {
            flow.class = data.class;
        } else {
            if !self.pauses.is_empty() && earlier.is_none() {
                flow.check_pauses(&self.pauses, capture, frame, &data);
            }
            let naks = &mut self.early_naks;
            let (from, to) = (data.key.receiver, data.key.sender);
            flow.data(&mut data, (capture.watched, several), |psn| {
                // One NAK explains one retransmission.
                naks.get_mut(&(from, to, psn))?.take()
            });
            // A copy may be the first to be marked, at a capture point after the congested queue.
            let is_first =
                earlier.is_some() || (data.order).is_some_and(|order| order != Order::Copied);
            if data.new_mark && is_first {
                data.silent =
                    (self.receivers).marked(data.sighting.at, data.key.receiver, &mut flow.answers);
            }
        }
        let kept = keep(flow, &data);
        if data.incident == Some(Incident::Tries) && self.has_unpaired_acks(&data.key) {
            data.incident = None;
        }
        if !capture.sampled && answers_read(bth.opcode()) {
            if begins_answer(bth.opcode()) {
                let to = (packet.source, packet.destination, packet.dest_qp);
                let psn = (capture.at, bth.psn());
                (self.resolver).acknowledged(to, packet.source_port, psn, &self.flows);
            }
            if bth.opcode().0 & 0x1F != Opcode::RC_READ_RESPONSE_MIDDLE.0 {
                let request = self.resolver.flow_of(packet.destination, packet.dest_qp);
                if let Some(flow) = request.and_then(|key| self.flows.get_mut(&key)) {
                    let reply = flow.reply(capture, (bth.psn(), AckKind::Ack), earlier.is_some());
                    flow.exchange.answered(&reply);
                }
            }
        }
        Some((data, kept))
    }

    /// Checks, at a packet with PSN 0, whether it begins another connection: one whose every packet
    /// was acknowledged has nothing to retransmit, and nor has one of the unreliable service.
    #[cold]
    fn restarts(&mut self, key: &FlowKey, at: u64, opcode: Opcode) {
        let Some(flow) = self.flows.get(key) else {
            return;
        };
        // From the upper half, PSN 0 is ahead.
        let Some(highest @ 1..=HALF) = flow.highest_psn() else {
            return;
        };
        if at.saturating_sub(flow.latest) < RECONNECTED_AFTER {
            return;
        }
        let is_unpaired = || self.resolver.sender_qp(key).is_none();
        let is_complete = opcode.transport() == Transport::Uc
            || flow.exchange.has_answered(highest)
            || is_unpaired() && (self.early_acks_of(key)).any(|(_, last)| *last == highest);
        if is_complete {
            self.flows.ends(key);
        }
    }
}

impl<E> Correlator<E> {
    /// Finds the subject and the source of a notification.
    #[inline]
    pub fn about(
        &mut self,
        capture: &Capture,
        notice: &NotificationPacket<'_>,
    ) -> NotificationContext {
        let notification = notice.notification;
        let identity = || (self.sightings).message(notification, notice.port, notice.payload);
        let identity = (capture.watched && !capture.sampled).then(identity);
        let earlier = self.see(capture, capture.sighting(false), identity);
        // A QP named in a sample may belong to a flow that is not among the samples.
        if let Subject::SenderQp(qp) = notification.subject
            && !capture.sampled
        {
            let (from, to) = (notification.notifier, notification.destination);
            self.resolver.notified(from, to, qp);
        }
        let is_request = matches!(notification.kind, Kind::ProxyCn | Kind::WanFcn);
        let may_be_known = is_request || !self.flows.is_empty() || !self.translations.is_empty();
        if is_request {
            self.flows.indexed();
        }
        let flow = may_be_known.then(|| self.flow_of(notification)).flatten();
        let attribution = match capture.sampled {
            true => Attribution {
                origin: notification.origin,
                translates: None,
                is_translation: false,
                answers: false,
            },
            false => {
                let moment = (capture.at, capture.frame);
                let (key, copy_of) = (flow.as_ref(), earlier.map(|earlier| earlier.frame));
                if copy_of.is_none() {
                    (self.translations).request(moment, notification, key);
                }
                (self.translations).attribute(moment, notification, key, copy_of)
            }
        };
        NotificationContext {
            earlier,
            flow,
            data_class: flow.and_then(|flow| self.flows.get(&flow)?.class),
            attribution,
            is_fast: Marks::counts(notification),
        }
    }

    /// Processes a notification with this `context`; it belongs to `topic`.
    #[inline]
    pub fn notified(
        &mut self,
        capture: &Capture,
        notice: &NotificationPacket<'_>,
        context: &NotificationContext,
        topic: &mut Topic,
    ) -> NotificationFindings {
        let mut findings = NotificationFindings::default();
        if capture.sampled {
            return findings;
        }
        let is_copy = context.earlier.is_some();
        let key = context.flow.as_ref();
        let mut flow = key.and_then(|key| self.flows.get_mut(key));
        if notice.notification.kind == Kind::Cnp {
            let seen = flow.as_ref().filter(|_| !is_copy).zip(key);
            let connections = self.resolver.connections();
            let seen = seen.map(|(flow, key)| flow.seen(connections.sender_qp(key).is_some()));
            let moment = (capture.at, capture.point);
            let by = (notice.notification, &context.attribution);
            let mut cnp = Cnp::new(moment, notice.marks, by, key, seen);
            self.origins.notified(&mut cnp);
            findings.cnp = Some(cnp);
        }
        let missed = (!is_copy)
            .then(|| topic.missed.another(capture.at, flow.is_some()))
            .flatten();
        if let Some(flow) = &mut flow {
            findings.rule = flow.notified(capture, context, missed);
        }
        let notification = notice.notification;
        let from_receiver = match context.attribution.origin {
            Origin::Receiver => true,
            Origin::Unknown => flow.is_none(),
            _ => false,
        };
        // A receiver may answer marks with Fast CNPs, too.
        let qp = match notification.subject {
            Subject::SenderQp(qp) if notification.kind == Kind::Cnp => Some(qp),
            Subject::ReceiverQp { receiver, qp } if receiver == notification.notifier => Some(qp),
            _ => None,
        };
        if let Some(qp) = qp
            && from_receiver
            && !is_copy
            && !(flow.as_deref_mut()).is_some_and(|flow| flow.is_copied(capture.at))
        {
            let about = (notification.notifier, notification.destination, qp);
            let answers = flow.map(|flow| &mut flow.answers);
            self.receivers.notified(capture.at, about, answers);
        }
        findings
    }

    /// Processes a packet that is neither a notification nor data. Returns its first sighting, if
    /// it is looked for.
    pub fn other(&mut self, capture: &Capture, frame: &Frame<'_>) -> Option<Sighting> {
        let ip = frame.ip()?;
        let hosts = (ip.source, ip.destination);
        match frame.message() {
            // The data that a sample acknowledges is mostly not among the samples.
            Message::Roce(bth, roce) if acknowledges(bth.opcode()) && !capture.sampled => {
                (self.origins).acknowledged(capture.at, capture.point, frame, &bth);
                self.receivers.heard(ip.source);
                let earlier = self.first_sighting(capture, frame, hosts);
                // Late copies look like acknowledgements of another connection.
                if earlier.is_none() {
                    let to = (ip.source, ip.destination, bth.dest_qp());
                    let port = frame.datagram().map_or(0, |datagram| datagram.source_port);
                    let psn = (capture.at, bth.psn());
                    (self.resolver).acknowledged(to, port, psn, &self.flows);
                }
                let kind = roce.and_then(|roce| roce.aeth()?.kind());
                let to = (ip.source, ip.destination, bth.dest_qp());
                let flow = self.resolver.flow_of(ip.destination, bth.dest_qp());
                if let Some(flow) = flow.and_then(|key| self.flows.get_mut(&key)) {
                    if flow.exchange.lacks_acks()
                        && let Some((acks, _)) = self.early_acks.get_mut(&to)
                    {
                        flow.exchange.adopt(std::mem::take(acks));
                    }
                    let round_trip = if let Some(kind) = kind {
                        let repeats =
                            flow.obedience.has_copies() && flow.exchange.repeats(bth.psn(), kind);
                        flow.has_ack_copies |= repeats;
                        let is_copy = repeats || earlier.is_some();
                        let reply = flow.reply(capture, (bth.psn(), kind), is_copy);
                        if !matches!(kind, AckKind::Ack) && !is_copy {
                            (self.receivers).refused(capture.at, ip.source, &mut flow.answers);
                        }
                        (flow.exchange).acknowledged(&reply, Class::from_frame(frame))
                    } else {
                        // The capture cut off what tells acknowledgements from NAKs.
                        (flow.obedience.is_captured_at(capture.point))
                            .then(|| flow.exchange.time(capture.at, bth.psn(), true))
                            .flatten()
                    };
                    (flow.obedience).acknowledged(bth.psn(), capture.point, round_trip);
                } else if let Some(kind) = kind.filter(|_| earlier.is_none()) {
                    self.acknowledged_early(capture.at, to, (bth.psn(), kind));
                }
                earlier
            }
            Message::RdmaCm(..) => {
                let earlier = self.first_sighting(capture, frame, hosts);
                // A late copy of a message that closed a connection would close the next one.
                if earlier.is_none() {
                    self.resolver.learn(frame);
                }
                earlier
            }
            _ => None,
        }
    }

    /// Processes an acknowledgement to a QP that is not known to send a flow.
    #[cold]
    fn acknowledged_early(
        &mut self,
        at: u64,
        to: (IpAddr, IpAddr, Qp),
        (psn, kind): (u32, AckKind),
    ) {
        let (acks, last) = (self.early_acks).get_or_insert_with(to, at, Default::default);
        acks.add(kind);
        *last = psn;
        if let Some(cause) = cause_of(kind) {
            let nak = Some(EarlyNak { at, cause });
            *(self.early_naks).get_or_insert_with((to.0, to.1, psn), at, || nak) = nak;
        }
    }

    /// Returns the first sighting of a packet between two hosts at another capture point.
    pub fn first_sighting(
        &mut self,
        capture: &Capture,
        frame: &Frame<'_>,
        (source, destination): (IpAddr, IpAddr),
    ) -> Option<Sighting> {
        if capture.sampled {
            return None;
        }
        let identity = || {
            let octets = frame.ip().and_then(|ip| {
                let end = ip.end.min(frame.bytes().len());
                frame.bytes().get(ip.payload..end)
            });
            (self.sightings).octets(source, destination, octets.unwrap_or_default())
        };
        let identity = capture.watched.then(identity);
        self.see(capture, capture.sighting(false), identity)
    }

    /// Records a sighting; returns the first one of the same packet, if packets are recognised by
    /// their `identity`.
    fn see(
        &mut self,
        capture: &Capture,
        sighting: Sighting,
        identity: Option<Identity>,
    ) -> Option<Sighting> {
        (self.sightings).see_captured(identity?, sighting, capture.captured)
    }

    /// Records that a packet passed that is not [watched](Capture::watched), for the time stamps of
    /// its capture point.
    pub fn passed(&mut self, capture: &Capture) {
        self.sightings.record_time_stamp(&capture.sighting(false));
    }

    /// Returns the flow that a notification is about, as far as known now. If the notification
    /// names no QP, the flow is found by its UDP source port: of several, the one with the latest
    /// packet.
    #[must_use]
    pub fn flow_of(&self, notification: &Notification) -> Option<FlowKey> {
        let Subject::Flow {
            tuple,
            receiver_qp: None,
        } = notification.subject
        else {
            let key = RowKey::new(notification, None);
            return self.flow_of_key(&key, notification.destination);
        };
        (self.flows.between(tuple.source, tuple.destination))
            .filter(|(_, flow)| flow.source_port == tuple.source_port)
            .max_by_key(|(_, flow)| flow.latest)
            .map(|(key, _)| *key)
    }

    /// Returns the flow whose data `frame` acknowledges, if it is an acknowledgement.
    #[must_use]
    pub fn flow_acknowledged(&self, frame: &Frame<'_>) -> Option<FlowKey> {
        let Message::Roce(bth, _) = frame.message() else {
            return None;
        };
        let acknowledges = acknowledges(bth.opcode());
        (acknowledges).then(|| {
            self.resolver
                .flow_of(frame.ip()?.destination, bth.dest_qp())
        })?
    }

    /// Returns the flow of a trimmed packet, and where the packet goes: `None` if it is no RoCEv2
    /// packet.
    #[must_use]
    pub fn trimmed(&self, frame: &Frame<'_>) -> Option<(FlowKey, Destination)> {
        let (Some(ip), Message::Roce(bth, _)) = (frame.ip(), frame.message()) else {
            return None;
        };
        let [forward, back] =
            [(ip.source, ip.destination), (ip.destination, ip.source)].map(|(sender, receiver)| {
                FlowKey {
                    sender,
                    receiver,
                    receiver_qp: bth.dest_qp(),
                }
            });
        let is_of = |key: &FlowKey| {
            let flow = self.flows.get(key);
            flow.is_some_and(|flow| {
                flow.highest_psn()
                    .is_none_or(|last| is_near(last, bth.psn()))
            })
        };
        Some(match (is_of(&forward), is_of(&back)) {
            (true, false) => (forward, Destination::Receiver),
            (false, true) => (back, Destination::Source),
            _ => (forward, Destination::Unknown),
        })
    }

    /// Returns the flow that notifications with that key to `destination` are about.
    #[must_use]
    pub fn flow_of_key(&self, key: &RowKey, destination: IpAddr) -> Option<FlowKey> {
        key.flow(
            |label| Some(self.labels.flow_of(destination, label)?.flow),
            |sender, qp| self.resolver.flow_of(sender, qp),
        )
    }

    /// Returns the last data packet that carried the flow label named by `notification`.
    #[must_use]
    pub fn labelled(&self, notification: &Notification) -> Option<&Labelled> {
        match notification.subject {
            Subject::FlowLabel(label) => self.labels.flow_of(notification.destination, label),
            _ => None,
        }
    }

    /// Returns the QP at the sender of `flow`, and the evidence for it.
    #[must_use]
    pub fn sender_qp(&self, flow: &FlowKey) -> Option<(Qp, Resolved)> {
        self.resolver.sender_qp(flow)
    }

    /// Returns the verdict on the sender of `flow`.
    #[must_use]
    pub fn verdict(&self, flow: &Flow<E>) -> Verdict {
        flow.obedience.verdict_among(&self.sightings)
    }

    /// Fixes the evidence for the node that generated `cnp`, before later packets come.
    pub fn settle(&self, cnp: &mut Cnp) {
        self.origins.settle(cnp);
    }

    /// Returns the node that generated `cnp`.
    #[must_use]
    pub fn maker(&self, cnp: &Cnp) -> Inference {
        self.origins.judge(cnp)
    }

    /// Returns the evidence for the nodes that generate CNPs.
    #[must_use]
    pub const fn origins(&self) -> &Origins {
        &self.origins
    }

    /// Sets the speed of the links in bit/s, for how long pauses last; forgets earlier pauses.
    pub fn set_link_speed(&mut self, speed: NonZeroU64) {
        self.pauses = PauseTable::new(speed);
    }

    /// Processes a PFC or PAUSE frame; ignores anything else. Returns what is remarkable.
    pub fn pause(&mut self, capture: &Capture, frame: &Frame<'_>) -> Option<PauseFinding> {
        let mac = frame.mac_control_source()?;
        let mut pause = |scope, quanta| {
            let pauser = Pauser {
                point: capture.point,
                mac,
                scope,
            };
            self.pauses.frame(capture.at, pauser, quanta)
        };
        if let Some(quanta) = frame.global_pause() {
            return pause(Scope::Link, quanta);
        }
        let Message::Pfc(pfc) = frame.message() else {
            return None;
        };
        let findings = pfc
            .enabled()
            .map(|(class, quanta)| pause(Scope::Class(class as u8), quanta));
        findings.fold(None, Option::or)
    }

    /// Returns the pauses by flow control.
    #[must_use]
    pub const fn pauses(&self) -> &PauseTable {
        &self.pauses
    }

    /// Returns true if acknowledgements of data between the flow's hosts were captured that belong
    /// to no known flow: they may be the flow's.
    #[must_use]
    pub fn has_unpaired_acks(&self, flow: &FlowKey) -> bool {
        self.resolver.sender_qp(flow).is_none() && self.early_acks_of(flow).next().is_some()
    }

    /// Returns the acknowledgements between the flow's hosts that belong to no known flow.
    fn early_acks_of(&self, flow: &FlowKey) -> impl Iterator<Item = &(Acks, u32)> {
        let hosts = (flow.receiver, flow.sender);
        let acks = self.early_acks.iter();
        acks.filter(move |((from, to, _), (acks, _))| {
            (*from, *to) == hosts && *acks != Acks::default()
        })
        .map(|(_, acks)| acks)
    }

    /// Returns the receivers.
    #[must_use]
    pub const fn receivers(&self) -> &Receivers {
        &self.receivers
    }

    /// Returns the packets captured at several capture points.
    #[must_use]
    pub const fn sightings(&self) -> &Sightings {
        &self.sightings
    }

    /// Takes over the sightings of another correlator that has processed the same capture.
    pub fn adopt_sightings(&mut self, other: Self) {
        self.sightings = other.sightings;
    }

    /// Returns the flows.
    #[must_use]
    pub const fn flows(&self) -> &FlowTable<Flow<E>> {
        &self.flows
    }

    /// Returns the flows, to change the caller's data about them.
    pub const fn flows_mut(&mut self) -> &mut FlowTable<Flow<E>> {
        &mut self.flows
    }
}
