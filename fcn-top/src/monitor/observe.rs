//! Processes one packet: classifies it, and updates the tables that it belongs to.

use super::Monitor;
use super::interfaces::Sort;
use super::reporter::{
    MIRROR_CLOCK, PLACES_APART, PLACES_FORGOTTEN, PLACES_LATE, PLACES_MANY, PLACES_UNCLEAR,
    PacketContext, SAMPLES_AGAIN, SAMPLES_CUT,
};
use super::samples::OneIn;
use crate::packet::Packet;
use crate::record::RowId;
use crate::tables::{FlowStep, TrafficStep};
use fcn_observe::RowKey;
use fcn_observe::correlator::{Capture, NotificationPacket};
use fcn_observe::malformed::Malformed;
use fcn_observe::rules::{Duties, crosses};
use fcn_observe::sightings::{CapturePoint, hides_interface};
use fcn_observe::{Class, DataPacket, FlowKey, access};
use fcn_wire::frame::{Ip, Upper};
use fcn_wire::ioam::Trace;
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::{
    Claim, End, Findings, Frame, IcrcCheck, Kind, LinkType, Message, Mirror, Notification, Profile,
    sflow,
};
use std::net::IpAddr;

/// Warning when a mirror's clock is set.
const JUMPED: &str = "--mirror-clock: a mirror's clock departed from the capture's by more than a second, as if it had been set; times across that moment are wrong by as much";
/// Warning about unrelated clocks of mirrors.
const UNRELATED: &str = "--mirror-clock: clocks of several switches, or of several engines of one, are unrelated unless they follow IEEE 1588; times from one to another mean nothing";
/// ICMPv6 Parameter Problem (RFC 4443 section 3.4), code 2: unrecognized IPv6 option.
const UNRECOGNIZED_OPTION: [u8; 2] = [4, 2];
/// Length of an ICMPv6 Parameter Problem before the packet that it quotes, in octets.
const QUOTED_AT: usize = 8;
/// Maximum length of an IPv6 packet without a jumbo payload, in octets.
const LONGEST_PACKET: usize = 40 + u16::MAX as usize;

/// Result of processing a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Row that it is about, if it is a notification.
    pub row: Option<RowId>,
    /// True if that row counts it: a copy from another capture point counts only in a row of that
    /// point.
    pub counts: bool,
    /// Flow that it is data of. The flow of a notification is known to its row.
    pub flow: Option<FlowKey>,
    /// Octets of the IP packet, if it is RoCEv2 data that was not captured before.
    pub octets: u32,
    /// True if it was captured before at another capture point.
    pub copy: bool,
    /// True if it is data marked CE that was not marked where it was captured before.
    pub ce: bool,
    /// True if it is data whose PSN does not advance: retransmitted, or out of order.
    pub back: bool,
    /// True if it carries samples of other packets; the results for these are in
    /// [`Monitor::of_samples`].
    pub samples: bool,
}

impl Monitor {
    /// Processes a packet.
    #[inline]
    pub fn observe(&mut self, packet: &Packet<'_>) -> Observed {
        let interface = self.interfaces.place(packet.interface);
        let packet = Packet {
            interface,
            ..*packet
        };
        if packet.at < self.captured {
            self.stamped_back(self.captured - packet.at);
        }
        self.observe_at(&packet, self.settings.sampled, false)
    }

    /// Returns the results for the samples in the last datagram that had any.
    pub fn of_samples(&self) -> &[Observed] {
        &self.of_samples
    }

    /// Processes a packet whose interface is an index in the list. `one_in` is set for a sample,
    /// one in that many packets; `is_carried` is true if it was inside another packet.
    fn observe_at(
        &mut self,
        packet: &Packet<'_>,
        one_in: Option<OneIn>,
        is_carried: bool,
    ) -> Observed {
        // A copy of a few octets, so that the frame does not borrow the monitor.
        let profile = self.settings.profile.clone();
        // Large: constructed in place, not moved.
        let mut frame = Frame::empty(&profile);
        frame.reparse(packet.bytes, packet.wire_len, packet.link);
        self.unread.prove(&mut frame, packet.at);
        let frame = &frame;
        // Capture point: where a mirror copied the packet, or where it was captured.
        let mut interface = packet.interface;
        self.captured = packet.at;
        let mut at = packet.at;
        if let Some(mirror) = frame.mirror() {
            interface = self.interfaces.mirrored(interface, mirror);
            if self.settings.mirror_clock {
                at = self.mirror_time(interface, mirror, at);
            }
        }
        let packet = &Packet {
            interface,
            at,
            ..*packet
        };
        self.now = self.now.max(packet.at);
        // Clocks of interfaces may differ, and files may be merged in any order.
        let started = self.started.get_or_insert(packet.at);
        *started = packet.at.min(*started);
        let icrc = if self.settings.verify_icrc {
            IcrcCheck::On
        } else {
            IcrcCheck::Off
        };
        // Reused for each packet, because creating it takes longer than clearing it.
        let mut findings = self.findings.take().unwrap_or_default();
        findings.clear();
        // Computed only if there is something to report: it is large.
        let end = (!frame.is_complete()).then(|| frame.end());
        let copies = self.totals.copies;
        self.locals.roce(packet.interface, frame);
        (self.unread).check_version(frame, packet.link, &mut findings);
        self.totals.roce_v1 += u64::from(frame.is_roce_v1());
        // Most packets are data.
        let (sort, observed) = if let Some(data) = DataPacket::from_frame(frame) {
            frame.check(icrc, &mut findings);
            let observed = match one_in {
                None => self.data(packet, frame, &data, &mut findings),
                Some(one_in) => self.data_sampled(packet, frame, &data, one_in),
            };
            (Sort::Data, observed)
        } else if let Some(gist) = Notification::from_frame(frame) {
            self.locals.notified(packet.interface, &gist);
            let observed = self.notified(packet, frame, (&gist, one_in), icrc, &mut findings);
            (Sort::Notification, observed)
        } else if let Some(samples) = frame.samples().filter(|_| !is_carried) {
            self.findings = Some(findings);
            return self.samples(packet, frame, &samples);
        } else {
            let session = self.routing.learn_frame(frame, &mut findings);
            frame.check_in_session(icrc, session, &mut findings);
            let malformed = Malformed::from_frame(frame, &findings);
            let sort = match end {
                _ if malformed.is_some() => Sort::Undecodable,
                Some(End::Malformed(_)) => Sort::Undecodable,
                Some(End::Cut { .. }) if !self.is_readable(frame) => Sort::Cut,
                _ => Sort::Other,
            };
            if let Some(why) = frame.unread() {
                self.unread.count(why);
                self.totals.unread += 1;
            }
            if frame.global_pause().is_some() {
                self.totals.global_pauses += 1;
                self.paused(packet, frame);
            }
            match malformed {
                Some(broken) => self.malformed(packet, frame, broken, &mut findings),
                None => self.other(packet, frame, one_in.is_some()),
            }
            (sort, Observed::default())
        };
        let is_copy = self.totals.copies > copies;
        let bad = end.filter(|end| matches!(end, End::Malformed(_)) || sort == Sort::Cut);
        if (bad.is_some() || !findings.is_empty()) && !(is_copy && sort == Sort::Undecodable) {
            self.report(packet, frame, &findings, bad);
        }
        self.findings = Some(findings);
        let is_incomplete = matches!(end, Some(End::Cut { .. }));
        let is_roce = matches!(sort, Sort::Notification | Sort::Data);
        self.totals.incomplete += u64::from(is_roce && is_incomplete);
        self.totals.samples += u64::from(one_in.is_some());
        self.count(packet, sort, is_copy);
        observed
    }

    /// Counts a packet that is stamped `by` nanoseconds before the previous one.
    #[cold]
    fn stamped_back(&mut self, by: u64) {
        self.totals.stamps_back += 1;
        self.totals.stamps_back_most = self.totals.stamps_back_most.max(by);
    }

    /// Returns the time at which a mirror copied a frame whose copy was captured at `at`, or `at`
    /// if that time is unusable.
    #[cold]
    fn mirror_time(&mut self, place: u32, mirror: &Mirror, at: u64) -> u64 {
        match self.mirror_clocks.copied_at(mirror, at) {
            Ok(copied) => {
                self.interfaces.has_clock(place, copied.clock);
                if copied.jumped {
                    self.reporter.doubt(at, (MIRROR_CLOCK, JUMPED));
                }
                if self.mirror_clocks.are_unrelated() {
                    self.reporter.doubt(at, (MIRROR_CLOCK, UNRELATED));
                }
                copied.at
            }
            Err(refusal) => {
                self.reporter.doubt(at, (MIRROR_CLOCK, refusal.text()));
                at
            }
        }
    }

    /// Processes the packets sampled in an sFlow datagram, each as a packet of its own. Datagrams
    /// of samples inside them were sent to another host and are ignored.
    #[cold]
    fn samples(
        &mut self,
        packet: &Packet<'_>,
        frame: &Frame<'_>,
        datagram: &sflow::Datagram<'_>,
    ) -> Observed {
        let header = datagram.header();
        let (agent, part) = (header.agent, header.sub_agent);
        let (missing, again) = self.sequences.missing((agent, part), header.sequence);
        if again {
            self.reporter.doubt(packet.at, SAMPLES_AGAIN);
        }
        if missing > 0 {
            self.reporter
                .samples_lost(&self.about(packet, frame), missing);
        }
        let mut of_samples = std::mem::take(&mut self.of_samples);
        of_samples.clear();
        for sampled in datagram.packets() {
            let interface = (self.interfaces).sampled(packet.interface, agent, &sampled.sample);
            let packet = Packet {
                bytes: sampled.bytes,
                wire_len: sampled.wire_len,
                link: sampled.link,
                interface,
                ..*packet
            };
            let one_in = OneIn::new(sampled.sample.rate);
            of_samples.push(self.observe_at(&packet, one_in, true));
        }
        let samples = !of_samples.is_empty();
        self.of_samples = of_samples;
        self.now = self.now.max(packet.at);
        if datagram.is_cut() {
            self.reporter.doubt(packet.at, SAMPLES_CUT);
            self.reporter.end(&self.about(packet, frame), &frame.end());
            self.count(packet, Sort::Cut, false);
        } else if !samples {
            self.count(packet, Sort::Other, false);
        }
        Observed {
            samples,
            ..Observed::default()
        }
    }

    /// Returns the context for reporting on a packet.
    fn about<'a>(&self, packet: &'a Packet<'a>, frame: &'a Frame<'a>) -> PacketContext<'a> {
        PacketContext {
            packet,
            frame,
            interface: self.interfaces.name(packet.interface),
        }
    }

    /// Returns true if capture points are distinguished, and so packets are recognised when
    /// captured again.
    #[inline]
    const fn is_several(&self, packet: &Packet<'_>) -> bool {
        self.interfaces.are_several() || matches!(packet.link, LinkType::LinuxCooked2)
    }

    /// Returns true if packets are remembered, because they may be captured again at another point.
    #[inline]
    const fn remembers(&self, packet: &Packet<'_>) -> bool {
        self.later_interfaces || self.is_several(packet)
    }

    /// Returns time and capture point of a packet, for the correlator.
    #[inline]
    fn capture(&self, packet: &Packet<'_>, sampled: bool) -> Capture {
        Capture {
            at: packet.at,
            captured: self.captured,
            frame: packet.number as u32,
            point: CapturePoint::for_packet(packet.interface, packet.link, packet.bytes),
            watched: !sampled && self.remembers(packet),
            has_several_points: !sampled && self.is_several(packet),
            sampled,
        }
    }

    /// Counts a packet captured before at another point, and reports doubts about such recognition.
    fn recognised(&mut self, capture: &Capture, is_copy: bool) {
        if !capture.watched {
            return;
        }
        self.totals.copies += u64::from(is_copy);
        let sightings = self.correlator.sightings();
        for (is_so, doubt) in [
            (sightings.forgot(), PLACES_FORGOTTEN),
            (sightings.is_unsure(), PLACES_LATE),
            (sightings.clocks_differ(), PLACES_APART),
            (sightings.has_more_places(), PLACES_MANY),
        ] {
            if is_so {
                self.reporter.doubt(capture.at, doubt);
            }
        }
    }

    /// Counts a packet of an unsupported link type.
    pub fn count_unread(&mut self, packet: &Packet<'_>) {
        let interface = self.interfaces.place(packet.interface);
        let packet = Packet {
            interface,
            ..*packet
        };
        self.count(&packet, Sort::Undecodable, false);
    }

    #[inline]
    fn count(&mut self, packet: &Packet<'_>, sort: Sort, is_copy: bool) {
        self.interfaces.count(packet, sort);
        let totals = &mut self.totals;
        totals.packets += 1;
        totals.octets += packet.octets();
        if is_copy {
            return;
        }
        match sort {
            // Already counted by kind.
            Sort::Notification => self.windows.add(packet.at),
            Sort::Data => totals.data += 1,
            Sort::Other => totals.other += 1,
            Sort::Cut => totals.cut += 1,
            Sort::Undecodable => totals.undecodable += 1,
        }
    }

    fn notified(
        &mut self,
        packet: &Packet<'_>,
        frame: &Frame<'_>,
        (notification, one_in): (&Notification, Option<OneIn>),
        icrc: IcrcCheck,
        findings: &mut Findings,
    ) -> Observed {
        let at = packet.at;
        let is_sample = one_in.is_some();
        // Samples of several capture points may cover the same packets.
        let by_place = self.settings.per_interface || is_sample;
        let key = RowKey::new(notification, by_place.then_some(packet.interface));
        let capture = self.capture(packet, is_sample);
        let several = self.is_several(packet);
        let notice = NotificationPacket::new(notification, frame);
        let about = self.correlator.about(&capture, &notice);
        let is_copy = about.earlier.is_some();
        self.recognised(&capture, is_copy);
        if hides_interface(packet.link) && !several {
            self.reporter.doubt(at, PLACES_UNCLEAR);
        }
        let notification = &Notification {
            origin: about.attribution.origin,
            ..*notification
        };
        let Self {
            settings,
            rows,
            notifiers,
            totals,
            traffic,
            courses,
            correlator,
            ..
        } = self;
        let (id, row) = rows.entry(key, notification);
        if several {
            row.seen_on(packet.interface, at, is_copy);
        }
        let told = correlator.notified(&capture, &notice, &about, &mut row.topic);
        // The capture point that captured a CNP first is nearest to its origin.
        if let Some(cnp) = told.cnp
            && (!is_copy || settings.per_interface)
        {
            row.makers.add(cnp, correlator.origins());
        }
        // If interfaces are counted separately, each has its own row with its own packets.
        let counts = !is_copy || row.total == 0 || settings.per_interface;
        let observed = Observed {
            row: Some(id),
            counts,
            copy: is_copy,
            ..Observed::default()
        };
        if !counts {
            return observed;
        }
        let class = notice.class.filter(|_| !is_copy);
        // Reported again only after an expected one.
        let is_unexpected = |class: &Class| settings.is_unexpected(key.kind(), class.dscp());
        let unexpected = class.filter(is_unexpected).filter(|_| {
            row.topic
                .last_class()
                .is_none_or(|last| !is_unexpected(&last))
        });
        let class_rule = row.topic.class(class, &about);
        let counted = row.count(at, notification, one_in, settings.flow_rate);
        if is_copy {
            return observed;
        }
        frame.check(icrc, findings);
        if let Some((rule, (_, header))) = class_rule.zip(Class::found(frame)) {
            findings.push(rule, header.start, 2);
        }
        let trusted = || settings.trusts(notification.notifier);
        let hint = counted.notifier.as_ref().map_or(u32::MAX, |n| n.point);
        let (place, point) = notifiers.entry(hint, notification.notifier, trusted);
        point.count(at, notification, is_sample);
        if let Some(notifier) = counted.notifier {
            notifier.point = place;
        }
        let kind = notification.kind;
        if let (Some(duties), Some(ip)) = (Duties::for_kind(kind), frame.ip()) {
            let (offset, len) = source_of(ip);
            if let Some(rule) = duties
                .rate_about(&notification.subject)
                .filter(|_| counted.too_fast)
            {
                findings.push(rule, offset, len);
            }
            if point.trusted == Some(false) {
                findings.push(duties.source, offset, len);
            }
            if let Some(rule) = crosses(&settings.domain, notification) {
                findings.push(rule, offset, len);
            }
            if let Some(rule) = told.rule {
                findings.push(rule, offset, len);
            }
        }
        if !findings.is_empty() {
            let number = number_of(findings);
            let icrc_bad = findings.has_icrc();
            row.count_findings(number, icrc_bad);
            point.count_findings(number);
            totals.icrc_bad += u64::from(icrc_bad);
        }
        let mut step = TrafficStep::default();
        if let Some(count) = totals.notifications.get_mut(kind as usize) {
            *count += 1;
            step.notifications[kind as usize] = 1;
        }
        traffic.add(at, step);
        if let Some(courses) = courses.as_mut().filter(|_| !is_sample) {
            courses.notified(at, kind, about.flow, row.total);
        }
        if let Some(trace) = trace_of(kind, frame) {
            self.paths.observe(at, &trace);
        }
        if let Some(class) = unexpected {
            let about = self.about(packet, frame);
            self.reporter.unexpected_class(&about, class.dscp());
        }
        observed
    }

    /// Processes a packet intended as a notification that cannot be decoded.
    #[cold]
    fn malformed(
        &mut self,
        packet: &Packet<'_>,
        frame: &Frame<'_>,
        malformed: Malformed,
        findings: &mut Findings,
    ) {
        if self.is_seen_before(packet, frame, (malformed.notifier, malformed.destination)) {
            return;
        }
        let trusted = || self.settings.trusts(malformed.notifier);
        let (_, point) = self.notifiers.entry(u32::MAX, malformed.notifier, trusted);
        point.count_malformed(packet.at, malformed.origin);
        point.count_findings(number_of(findings));
        self.totals.malformed += 1;
    }

    /// Returns true if another capture point has captured this packet between two hosts, which is
    /// neither a notification nor data.
    fn is_seen_before(
        &mut self,
        packet: &Packet<'_>,
        frame: &Frame<'_>,
        (source, destination): (IpAddr, IpAddr),
    ) -> bool {
        let capture = self.capture(packet, false);
        let earlier = (self.correlator).first_sighting(&capture, frame, (source, destination));
        self.recognised(&capture, earlier.is_some());
        earlier.is_some()
    }

    fn data(
        &mut self,
        packet: &Packet<'_>,
        frame: &Frame<'_>,
        data: &DataPacket<'_>,
        findings: &mut Findings,
    ) -> Observed {
        let (at, capture) = (packet.at, self.capture(packet, false));
        let able = access::list_contains(&self.settings.able, data.source);
        let shown = self
            .correlator
            .data(&capture, frame, (data, able), |flow, data| {
                flow.extra.data(data)
            });
        let Some((shown, effect)) = shown else {
            return Observed::default();
        };
        if shown.silent {
            let about = self.about(packet, frame);
            self.reporter.silent(&about);
        }
        let is_copy = shown.earlier.is_some();
        self.recognised(&capture, is_copy);
        if hides_interface(packet.link) && !capture.has_several_points {
            self.reporter.doubt(at, PLACES_UNCLEAR);
        }
        // It may be marked after the point that captured it first.
        let new_mark = shown.new_mark;
        self.totals.ce += u64::from(new_mark);
        // A mark counts at the time when its packet was captured first.
        let counts_at = shown.earlier.map_or(at, |earlier| earlier.at);
        let octets = if is_copy { 0 } else { shown.octets };
        if !is_copy || new_mark {
            let step = FlowStep {
                notifications: 0,
                data: (!is_copy).into(),
                ce: new_mark.into(),
                octets,
            };
            if let Some(courses) = &mut self.courses {
                courses.data(counts_at, shown.key, step);
            }
            self.data_by_time.add_at(counts_at, step);
            self.traffic.add(counts_at, step.into());
        }
        if let Some((rule, ip)) = shown.rule.zip(frame.ip()) {
            // The octets with the ECN field.
            let (offset, len) = if ip.source.is_ipv4() { (1, 1) } else { (0, 2) };
            findings.push(rule, ip.start + offset, len);
        }
        if let Some(incident) = shown.incident {
            let about = self.about(packet, frame);
            self.reporter.incident(&about, incident);
        }
        self.repeated += u64::from(effect.repeats);
        self.repeated_singly += u64::from(effect.follows_new);
        self.learn_path(at, data);
        Observed {
            row: None,
            counts: false,
            flow: Some(shown.key),
            octets: octets as u32,
            copy: is_copy,
            ce: new_mark,
            back: effect.back,
            samples: false,
        }
    }

    /// Processes a sample of data: it shows the kind of packet, but not the timing of the flow.
    #[cold]
    fn data_sampled(
        &mut self,
        packet: &Packet<'_>,
        frame: &Frame<'_>,
        data: &DataPacket<'_>,
        one_in: OneIn,
    ) -> Observed {
        let capture = self.capture(packet, true);
        let shown = self
            .correlator
            .data(&capture, frame, (data, false), |flow, data| {
                flow.extra.sampled(data, packet.interface, one_in);
            });
        let Some((shown, ())) = shown else {
            return Observed::default();
        };
        let (at, ce) = (packet.at, shown.sighting.ce);
        self.totals.ce += u64::from(ce);
        let step = FlowStep {
            notifications: 0,
            data: 1,
            ce: ce.into(),
            octets: shown.octets,
        };
        self.traffic.add(at, step.into());
        // Several capture points may have sampled the same octets.
        self.data_by_time.add_at(at, FlowStep { octets: 0, ..step });
        self.learn_path(at, data);
        Observed {
            flow: Some(shown.key),
            octets: shown.octets as u32,
            ce,
            ..Observed::default()
        }
    }

    /// Processes the IOAM trace of a data packet's path.
    #[inline]
    fn learn_path(&mut self, at: u64, data: &DataPacket<'_>) {
        let trace = data
            .trace
            .map(|(kind, bytes)| Trace::new_checked(kind, bytes));
        if let Some(Ok(trace)) = trace {
            self.paths.observe(at, &trace);
        }
    }

    /// Returns true if a packet truncated by the capture has everything needed.
    fn is_readable(&self, frame: &Frame<'_>) -> bool {
        match frame.message() {
            Message::Roce(..) => true,
            Message::Other => (frame.datagram()).is_some_and(|datagram| {
                !frame.is_roce() && datagram.claim(&self.settings.profile) == Claim::Others
            }),
            _ => false,
        }
    }

    /// Processes a packet that is neither a notification nor data.
    fn other(&mut self, packet: &Packet<'_>, frame: &Frame<'_>, is_sample: bool) {
        match frame.message() {
            Message::Roce(..) if frame.trimming().is_some() => {
                let hosts = frame.ip().map(|ip| (ip.source, ip.destination));
                let is_copy = !is_sample
                    && hosts.is_some_and(|hosts| self.is_seen_before(packet, frame, hosts));
                self.totals.trimmed += u64::from(!is_copy);
                if let Some((flow, destination)) = self.correlator.trimmed(frame) {
                    (self.trimmed).add(packet.at, flow, packet.interface, destination);
                }
            }
            Message::Roce(..) | Message::RdmaCm(..) => {
                let capture = self.capture(packet, is_sample);
                let earlier = self.correlator.other(&capture, frame);
                self.recognised(&capture, earlier.is_some());
            }
            Message::Pfc(pfc) => {
                let pauses = self.interfaces.pause(packet.interface, &pfc);
                self.totals.pfc += u64::from(pauses);
                self.paused(packet, frame);
            }
            Message::Cnm(_) => self.totals.cnms += 1,
            Message::Other if quotes_fast_cnp(frame) => {
                let hosts = frame.ip().map(|ip| (ip.source, ip.destination));
                if hosts.is_some_and(|hosts| self.is_seen_before(packet, frame, hosts)) {
                    return;
                }
                let about = self.about(packet, frame);
                self.reporter.unaware(&about);
            }
            _ => {}
        }
    }

    /// Processes a PFC or PAUSE frame.
    #[cold]
    fn paused(&mut self, packet: &Packet<'_>, frame: &Frame<'_>) {
        let capture = self.capture(packet, false);
        if let Some(finding) = self.correlator.pause(&capture, frame) {
            let about = self.about(packet, frame);
            self.reporter.pause(&about, finding);
        }
    }

    #[cold]
    fn report(
        &mut self,
        packet: &Packet<'_>,
        frame: &Frame<'_>,
        findings: &Findings,
        end: Option<End>,
    ) {
        let about = self.about(packet, frame);
        // Problems reported for one of our messages are not repeated for its packet.
        if let Some(end) = end.filter(|end| findings.is_empty() || matches!(end, End::Cut { .. })) {
            self.reporter.end(&about, &end);
        }
        self.totals.findings_left_out += findings.dropped() as u64;
        for finding in findings {
            self.reporter.finding(&about, finding);
        }
        self.reporter.left_out(&about, findings);
    }
}

/// Returns the number of findings, including those not listed.
fn number_of(findings: &Findings) -> u64 {
    (findings.as_slice().len() + findings.dropped()) as u64
}

/// Returns offset and length of the source address in the frame.
const fn source_of(ip: &Ip) -> (usize, usize) {
    match ip.source {
        IpAddr::V4(_) => (ip.start + 12, 4),
        IpAddr::V6(_) => (ip.start + 8, 16),
    }
}

/// Returns the IOAM trace in a Fast CNP with option 2.
fn trace_of<'a>(kind: Kind, frame: &Frame<'a>) -> Option<Trace<'a>> {
    if kind != Kind::FastCnp2 {
        return None;
    }
    match frame.message() {
        Message::FastCnp(message) => message.parsed.ok()?.trace(),
        _ => None,
    }
}

/// Returns true for an ICMPv6 Parameter Problem about the option of a Fast CNP.
fn quotes_fast_cnp(frame: &Frame<'_>) -> bool {
    let Some(ip) = frame.ip().filter(|ip| ip.protocol == next_header::ICMPV6) else {
        return false;
    };
    if !matches!(frame.upper(), Upper::Other) {
        return false;
    }
    let end = ip.end.min(frame.bytes().len());
    let Some(message) = frame.bytes().get(ip.payload..end) else {
        return false;
    };
    message.starts_with(&UNRECOGNIZED_OPTION)
        && (message.get(QUOTED_AT..)).is_some_and(|quoted| is_fast_cnp(quoted, frame.profile()))
}

fn is_fast_cnp(quoted: &[u8], profile: &Profile) -> bool {
    // The quoted packet is truncated by design: its own length fields have the original length.
    let quoted = Frame::parse(quoted, LONGEST_PACKET, LinkType::RawIp, profile);
    matches!(quoted.message(), Message::FastCnp(_))
}
