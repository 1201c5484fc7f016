//! Judges the record of a congestion point's check.

use super::super::bench::{Record, parse};
use super::super::judge::{ClassifiedFrames, DeviceFrame, Ledger, data, rates};
use super::super::plan::{DataSent, OtherSent, Plan, Setup, Step, kinds, mask_mutable_fields};
use super::super::statements::{Statement, Test};
use super::super::traffic::Traffic;
use super::thresholds;
use super::timing::{self, Identified};
use super::{EACH, INCAPABLE, LEAKING, MIXED, ONE, PACKETS, TRACE, TRACED, switch};
use crate::scenario::model::NodeKind;
use crate::units::Ps;
use fcn_node::FlowKey;
use fcn_node::congestion_point::Ability;
use fcn_observe::DataPacket;
use fcn_wire::compose;
use fcn_wire::finding::Family;
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::proxy_cn::FiveTuple;
use fcn_wire::{Frame, Kind, LinkType, Message, Profile, Rule, Subject};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;

/// The data packets sent, by the fields that a notification can name.
struct Index<'p> {
    profile: &'p Profile,
    all: &'p [DataSent],
    flows: HashMap<FlowKey, &'p DataSent>,
    senders: HashSet<IpAddr>,
    pairs: HashSet<(IpAddr, IpAddr)>,
    tuples: HashMap<FiveTuple, &'p DataSent>,
    labels: HashMap<u32, &'p DataSent>,
    others: HashMap<FlowKey, &'p OtherSent>,
    other_ports: HashMap<(IpAddr, u16), &'p OtherSent>,
}

impl<'p> Index<'p> {
    fn new(plan: &'p Plan, profile: &'p Profile) -> Self {
        let (sent, others) = (&plan.sent, &plan.others);
        let tuple = |sent: &DataSent| FiveTuple {
            source: sent.flow.sender,
            destination: sent.flow.receiver,
            protocol: next_header::UDP,
            source_port: sent.port,
            destination_port: profile.rocev2_port,
        };
        let label = |sent: &'p DataSent| Some((sent.outer?.0, sent));
        Self {
            flows: sent.iter().map(|sent| (sent.flow, sent)).collect(),
            senders: sent.iter().map(|sent| sent.flow.sender).collect(),
            pairs: (sent
                .iter()
                .map(|sent| (sent.flow.sender, sent.flow.receiver)))
            .collect(),
            profile,
            all: sent,
            tuples: sent.iter().map(|sent| (tuple(sent), sent)).collect(),
            labels: sent.iter().filter_map(label).collect(),
            others: others.iter().map(|other| (other.key, other)).collect(),
            other_ports: (others.iter())
                .map(|other| ((other.key.sender, other.port), other))
                .collect(),
        }
    }

    /// Returns the packet that was quoted: its PSN is its index.
    fn quoted(&self, quoted: &[u8]) -> Option<&'p DataSent> {
        let frame = Frame::parse(quoted, quoted.len(), LinkType::RawIp, self.profile);
        match frame.message() {
            Message::Roce(bth, _) => self.all.get(bth.psn() as usize),
            _ => self.tuples.get(&FiveTuple::from_packet(quoted)?).copied(),
        }
    }
}

/// Judges a congestion point.
pub fn judge(
    setup: &Setup<'_>,
    plan: &Plan,
    record: &Record,
    classified: &ClassifiedFrames<'_>,
    ledger: &mut Ledger,
) {
    let kinds = kinds(setup);
    let met = plan.steps.iter().find(|step| step.id == EACH);
    let met = met.map_or(Err(ledger.missing.clone()), |step| {
        congestion(&setup.simulation.profile, step, record, classified)
    });
    if setup.off {
        let data = plan.sent.len();
        return off(&kinds, met.map(|()| data), classified, ledger);
    }
    use Statement as S;
    let index = Index::new(plan, &setup.simulation.profile);
    let traffic = Traffic::new(setup, record, classified, ledger);
    let mut told = Vec::new();
    for kind in kinds {
        let (first, others): (S, &[S]) = match kind {
            Kind::ProxyCn => (
                S::ProxyCnSent,
                &[S::ProxyCnToProxy, S::ProxyCnTupleCopied, S::ProxyCnQuote],
            ),
            Kind::WanFcn => (S::WanFcnSent, &[S::WanFcnToIngress, S::WanFcnLabel]),
            _ => (
                S::FastCnpSent,
                &[
                    S::FastCnpFromLoopback,
                    S::FastCnpToSender,
                    S::FastCnpQpCopied,
                    S::FastCnpOriginalCopied,
                    S::FastCnpOptionByTrace,
                ],
            ),
        };
        let of_kind: Vec<&DeviceFrame<'_>> = classified
            .generated
            .iter()
            .filter(|frame| frame.is_of(kind))
            .collect();
        let visible = is_seen(setup, kind).map_err(str::to_owned);
        match visible.and_then(|()| met.clone()) {
            // A notification shows that there was congestion.
            Err(why) if of_kind.is_empty() => ledger.record_untestable_all(&[first], &why),
            // Its messages cannot be told from others, for a reason that is blamed already.
            Ok(()) if of_kind.is_empty() && ledger.blames_format(first, &[family(kind)]) => {}
            _ => {
                let why = || match classified.generated.len() {
                    0 => "data met congestion, but the device sent no notification".to_owned(),
                    others => format!(
                        "data met congestion, but none of the device's {others} messages is of \
                         this kind with the configured code points"
                    ),
                };
                ledger.holds(first, !of_kind.is_empty(), why, &[]);
                let more = of_kind.len().saturating_sub(1);
                ledger.record_times(Test::Statement(first), more);
            }
        }
        ledger.record_untestable_all(others, "the device sent no such message");
        // A notification that names no data packet exceeds no flow's limit.
        let mut identified = Vec::new();
        for own in &of_kind {
            if own.notification.is_some() {
                ledger.record_judgeable_all(others);
            }
            let about = match kind {
                Kind::ProxyCn => proxy_cn(setup, &index, own, ledger),
                Kind::WanFcn => wan_fcn(&index, own, ledger),
                _ => fast_cnp(setup, &index, own, ledger),
            };
            if let Some(sent) = about {
                identified.push(*own);
                told.push(Identified { frame: own, sent });
            }
        }
        if kind == Kind::FastCnp1 {
            marks(setup, &index, &of_kind, classified, ledger);
            if !of_kind.is_empty() {
                let why = "no Fast CNP of the device identifies its data packet";
                ledger.record_untestable(Test::Rule(Rule::FastCnpMarked), why);
                if plan.time(TRACED).is_some() {
                    ledger.record_untestable_all(&[S::FastCnpTraceCopied], why);
                }
            }
        }
        let tried = plan.steps.iter().find(|step| step.id == ONE);
        let tried = tried.is_some_and(|step| beyond(setup, plan, step));
        rates(setup, &identified, tried, ledger);
        if kind == Kind::WanFcn && plan.time(INCAPABLE).is_some() && met.is_ok() {
            ledger.record_times(Test::Statement(S::WanFcnCapable), of_kind.len());
        }
        let border = match kind {
            Kind::ProxyCn => Rule::ProxyCnBorder,
            Kind::WanFcn => Rule::WanFcnBorder,
            _ => Rule::FastCnpBorder,
        };
        if plan.time(LEAKING).is_some() {
            ledger.record_judgeable(Test::Rule(border));
        }
    }
    let why = "the device added no node data to a trace";
    ledger.record_untestable_all(&[S::TraceOwnNode], why);
    if plan.time(MIXED).is_some() {
        if told.is_empty() {
            let why = "no notification of the device names a data packet";
            ledger.record_untestable_all(&[S::CongestionData], why);
        } else {
            ledger.record_times(Test::Statement(S::CongestionData), plan.others.len());
        }
    }
    let thresholds = thresholds(setup);
    timing::judge(setup, (plan, record), &traffic, thresholds, &told, ledger);
}

/// Returns the family of the rules about notifications of that kind.
const fn family(kind: Kind) -> Family {
    match kind {
        Kind::ProxyCn => Family::ProxyCn,
        Kind::WanFcn => Family::WanFcn,
        _ => Family::FastCnp,
    }
}

/// Returns an error if no congestion point of the scenario sends such messages where they can be
/// observed.
fn is_seen(setup: &Setup<'_>, kind: Kind) -> Result<(), &'static str> {
    let mut paths = setup.flow_paths().into_iter();
    match kind {
        Kind::FastCnp1 if !paths.any(|way| way.flow.source.is_ipv6()) => {
            Err("Fast CNP does not support IPv4: packets are marked instead")
        }
        Kind::ProxyCn if switch(setup).is_some_and(|switch| switch.proxy.is_some()) => {
            Err("the device is itself a proxy: notifications to itself are not sent on a link")
        }
        _ => Ok(()),
    }
}

/// Returns an error unless data met congestion in a step: packets left with increasing delay, or
/// did not leave at all.
fn congestion(
    profile: &Profile,
    step: &Step,
    record: &Record,
    classified: &ClassifiedFrames<'_>,
) -> Result<(), String> {
    let mut came: HashMap<FlowKey, Ps> = HashMap::new();
    for (_, passed, bytes) in record.iter().filter(|(_, passed, _)| !passed.by_device) {
        if step.time.contains(&passed.at)
            && let Some(data) = DataPacket::from_frame(&parse(bytes, profile))
        {
            came.insert(data.flow(), passed.at);
        }
    }
    let left = data(&classified.forwarded).filter_map(|(frame, data)| {
        let came = came.get(&data.flow())?;
        Some((*came, frame.captured.at))
    });
    let left: Vec<_> = left.collect();
    let (Some(first), Some(last)) = (left.first(), left.last()) else {
        return Err("the device forwarded no data".to_owned());
    };
    // Any link may lose a frame or two.
    if left.len() * 10 < came.len() * 9 {
        return Ok(());
    }
    let (came, left) = (last.0.since(first.0), last.1.since(first.1));
    // A tenth longer is within the variation of any device.
    match left.0 > came.0 + came.0 / 10 {
        true => Ok(()),
        false => Err(uncongested(classified)),
    }
}

/// Returns true if the packets of a step arrived faster than the limit on notifications permits.
fn beyond(setup: &Setup<'_>, plan: &Plan, step: &Step) -> bool {
    let frames = plan
        .frames
        .iter()
        .filter(|planned| step.time.contains(&planned.at));
    let times: Vec<Ps> = frames.map(|planned| planned.at).collect();
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return false;
    };
    let span = last.since(*first).as_nanos() + fcn_observe::rules::TOLERANCE;
    let allowed = u128::from(span) * u128::from(setup.limits.flow_rate) / 1_000_000_000;
    // Packets that fill the queue cause no notifications.
    let telling = (times.len() as u64).min(PACKETS);
    u128::from(telling) > allowed + 1
}

/// Describes a device at which data met no congestion.
fn uncongested(classified: &ClassifiedFrames<'_>) -> String {
    let mut text = "data left as fast as they arrived: there was no congestion".to_owned();
    let is_notification = |own: &DeviceFrame<'_>| own.notification.is_some();
    if classified.generated.iter().any(is_notification) {
        return text;
    }
    text.push_str("; the device notified nobody");
    let mut marked = false;
    let mut hop_limits = BTreeSet::new();
    for (frame, data) in data(&classified.forwarded) {
        marked |= data.ecn == fcn_observe::Ecn::Ce;
        hop_limits.extend(frame.parsed.ip().map(|ip| ip.hop_limit));
    }
    if !marked && hop_limits == BTreeSet::from([compose::DEFAULT_HOP_LIMIT]) {
        text.push_str(
            " and left hop limit and ECN of the data as they were, like a bridge (is the link to \
             the receiver as slow as in the scenario?)",
        );
    }
    text
}

fn off(
    kinds: &[Kind],
    met: Result<usize, String>,
    classified: &ClassifiedFrames<'_>,
    ledger: &mut Ledger,
) {
    for (kind, statement) in [
        (Kind::FastCnp1, Statement::FastCnpOff),
        (Kind::ProxyCn, Statement::ProxyCnOff),
        (Kind::WanFcn, Statement::WanFcnOff),
    ] {
        if !kinds.contains(&kind) {
            ledger.record_untestable_all(&[statement], "the scenario has another mechanism");
            continue;
        }
        match &met {
            Ok(data) => ledger.record_times(Test::Statement(statement), *data),
            Err(why) => ledger.record_untestable_all(&[statement], why),
        }
        for frame in classified.generated.iter().filter(|own| own.is_of(kind)) {
            let why = || format!("the device sent a {kind} although the feature was not enabled");
            ledger.fails(statement, why, &[frame.index]);
        }
    }
}

/// Judges a Fast CNP; returns the data packet that it names.
fn fast_cnp<'p>(
    setup: &Setup<'_>,
    index: &Index<'p>,
    frame: &DeviceFrame<'_>,
    ledger: &mut Ledger,
) -> Option<&'p DataSent> {
    use Statement as S;
    let notification = frame.notification.as_ref()?;
    let Subject::ReceiverQp { receiver, qp } = notification.subject else {
        return None;
    };
    let shows = &[frame.index];
    let loopback = IpAddr::V6(setup.simulation.nodes[setup.device].ipv6);
    if notification.notifier != loopback {
        let why = || {
            format!(
                "the source is {}, but the device's address is {loopback}",
                notification.notifier
            )
        };
        ledger.fails(S::FastCnpFromLoopback, why, shows);
    }
    let sender = notification.destination;
    if !index.senders.contains(&sender) {
        let why = || format!("it was sent to {sender}, which has sent no data");
        ledger.fails(S::FastCnpToSender, why, shows);
        return None;
    }
    let key = FlowKey {
        sender,
        receiver,
        receiver_qp: qp,
    };
    if let Some(other) = index.others.get(&key) {
        let why = || format!("it is about {}", other.what);
        ledger.fails(S::CongestionData, why, shows);
        return None;
    }
    if !index.pairs.contains(&(sender, receiver)) {
        let why = || format!("{sender} has sent nothing to {receiver}");
        ledger.fails(S::FastCnpOriginalCopied, why, shows);
        return None;
    }
    let Some(sent) = index.flows.get(&key) else {
        let why = || format!("{sender} has sent nothing to QP {qp} of {receiver}");
        ledger.fails(S::FastCnpQpCopied, why, shows);
        return None;
    };
    if sent.link.is_some_and(|link| link != frame.captured.link) {
        let why = || format!("it left by a link that does not lead to {sender}");
        ledger.fails(S::FastCnpToSender, why, shows);
    }
    let has_trace = notification.kind == Kind::FastCnp2;
    if has_trace != sent.trace.is_some() {
        let why = || {
            let what = if has_trace {
                "no trace, but the option is 2"
            } else {
                "a trace, but the option is 1"
            };
            format!("the data packet had {what}")
        };
        ledger.fails(S::FastCnpOptionByTrace, why, shows);
    }
    if let (Message::FastCnp(message), Some(before)) = (frame.parsed.message(), &sent.trace)
        && let Some(trace) = message.parsed.ok().and_then(|option| option.trace())
    {
        if let Some(own) = own_node(trace.bytes()) {
            let why = || "each octet of it is 0xFF, as of a node that knows nothing".to_owned();
            let is_known = own.iter().any(|octet| *octet != 0xFF);
            ledger.holds(S::TraceOwnNode, is_known, why, shows);
        }
        ledger.record_judgeable_all(&[S::FastCnpTraceCopied]);
        if !continues(before, trace.bytes()) {
            let why = || {
                "the trace is not the data packet's trace plus the device's node data".to_owned()
            };
            ledger.fails(S::FastCnpTraceCopied, why, shows);
        }
    }
    Some(sent)
}

/// Returns true if a pre-allocated trace is a continuation of another one: nodes have added their
/// data.
fn continues(before: &[u8], after: &[u8]) -> bool {
    let node = TRACE.node_len() * 4;
    let header = fcn_wire::ioam::TRACE_HEADER_LEN;
    let namespace_and_type = |bytes: &[u8]| {
        (
            bytes.get(..2).map(<[u8]>::to_vec),
            bytes.get(4..7).map(<[u8]>::to_vec),
        )
    };
    before.len() == after.len()
        && namespace_and_type(before) == namespace_and_type(after)
        && before.get(header + 3 * node..) == after.get(header + 3 * node..)
}

/// Returns the data that the device wrote into a trace with room for three more nodes; `None` if it
/// wrote nothing.
fn own_node(trace: &[u8]) -> Option<&[u8]> {
    let node = TRACE.node_len() * 4;
    let header = fcn_wire::ioam::TRACE_HEADER_LEN;
    let own = trace.get(header + 2 * node..header + 3 * node)?;
    own.iter().any(|octet| *octet != 0).then_some(own)
}

/// Judges that the packet that caused a Fast CNP is not marked.
fn marks(
    setup: &Setup<'_>,
    index: &Index<'_>,
    told: &[&DeviceFrame<'_>],
    classified: &ClassifiedFrames<'_>,
    ledger: &mut Ledger,
) {
    let Some(switch) = switch(setup) else { return };
    let is_able = |sender: IpAddr| {
        let senders = switch.congestion.senders.iter();
        let known = senders.filter(|(prefix, _)| prefix.contains(sender));
        let known = known.max_by_key(|(prefix, _)| prefix.bits());
        known.is_some_and(|(_, ability)| *ability == Ability::Able)
    };
    // Only QPs with a single packet: the flow of the rate step has many.
    let mut of_qp: HashMap<FlowKey, u32> = HashMap::new();
    let left: HashMap<FlowKey, (usize, bool)> = data(&classified.forwarded)
        .map(|(frame, data)| {
            *of_qp.entry(data.flow()).or_default() += 1;
            (data.flow(), (frame.index, data.ecn == fcn_observe::Ecn::Ce))
        })
        .collect();
    for own in told {
        let Some(notification) = &own.notification else {
            continue;
        };
        let Subject::ReceiverQp { receiver, qp } = notification.subject else {
            continue;
        };
        let key = FlowKey {
            sender: notification.destination,
            receiver,
            receiver_qp: qp,
        };
        if !is_able(key.sender) || of_qp.get(&key) != Some(&1) || !index.flows.contains_key(&key) {
            continue;
        }
        let Some((at, marked)) = left.get(&key) else {
            continue;
        };
        let test = Test::Rule(Rule::FastCnpMarked);
        ledger.record_judgeable(test);
        if *marked {
            let text = Rule::FastCnpMarked.info().text;
            ledger.fail(test, || format!("{text}: QP {qp}"), &[own.index, *at]);
        }
    }
}

/// Judges a notification to a proxy; returns the data packet that it names.
fn proxy_cn<'p>(
    setup: &Setup<'_>,
    index: &Index<'p>,
    frame: &DeviceFrame<'_>,
    ledger: &mut Ledger,
) -> Option<&'p DataSent> {
    use Statement as S;
    let (Some(notification), Message::ProxyCn(message)) =
        (&frame.notification, frame.parsed.message())
    else {
        return None;
    };
    let shows = &[frame.index];
    let tuple = message.five_tuple();
    let other = index.other_ports.get(&(tuple.source, tuple.source_port));
    // The senders that a proxy serves need not speak RoCE.
    if let Some(other) = other {
        if tuple.protocol == next_header::UDP {
            let why = || format!("it is about {}", other.what);
            ledger.fails(S::CongestionData, why, shows);
        }
        return None;
    }
    let sent = index.tuples.get(&tuple).copied();
    let mut findings = fcn_wire::Findings::new();
    frame.parsed.check(fcn_wire::IcrcCheck::Off, &mut findings);
    // A message that contradicts its own quotation is covered by the rule.
    if sent.is_none() && !findings.has(Rule::ProxyCnTuple) {
        let why = || {
            format!(
                "no data packet from {} to {} had source port {}",
                tuple.source, tuple.destination, tuple.source_port
            )
        };
        ledger.fails(S::ProxyCnTupleCopied, why, shows);
    }
    let quoted = mask_mutable_fields(message.invoking_packet());
    let is_quote = |sent: &&DataSent| mask_mutable_fields(&sent.packet).starts_with(&quoted);
    let cause = index.quoted(&quoted).filter(is_quote);
    if cause.is_none() {
        let why = || "the quoted packet was not sent".to_owned();
        ledger.fails(S::ProxyCnQuote, why, shows);
    }
    let sender = sent.map_or(tuple.source, |sent| sent.flow.sender);
    let proxies = setup
        .simulation
        .nodes
        .iter()
        .filter(|node| match &node.kind {
            NodeKind::Switch(switch) => switch
                .proxy
                .as_ref()
                .is_some_and(|proxy| proxy.serves.iter().any(|prefix| prefix.contains(sender))),
            NodeKind::Host(_) => false,
        });
    let mut proxies = proxies.flat_map(|node| [IpAddr::V6(node.ipv6), IpAddr::V4(node.ipv4)]);
    let to = notification.destination;
    if sent.is_some() && !proxies.any(|proxy| proxy == to) {
        let why = || format!("it was sent to {to}, which is not the proxy of {sender}");
        ledger.fails(S::ProxyCnToProxy, why, shows);
    }
    cause.or(sent)
}

/// Judges an FCN; returns the data packet that it names.
fn wan_fcn<'p>(
    index: &Index<'p>,
    frame: &DeviceFrame<'_>,
    ledger: &mut Ledger,
) -> Option<&'p DataSent> {
    use Statement as S;
    let (Some(notification), Message::WanFcn(message)) =
        (&frame.notification, frame.parsed.message())
    else {
        return None;
    };
    let shows = &[frame.index];
    let label = message.flow_label();
    let Some(sent) = index.labels.get(&label) else {
        let why = || format!("no packet had the outer flow label {label:#x}");
        ledger.fails(S::WanFcnLabel, why, shows);
        return None;
    };
    if let Some((_, ingress)) = sent.outer
        && notification.destination != ingress
    {
        let to = notification.destination;
        let why = || format!("it was sent to {to}, but the tunnel begins at {ingress}");
        ledger.fails(S::WanFcnToIngress, why, shows);
    }
    if sent.ecn == 0 {
        let why = || "it is about a packet whose outer ECN field was 00".to_owned();
        ledger.fails(S::WanFcnCapable, why, shows);
    }
    Some(sent)
}
