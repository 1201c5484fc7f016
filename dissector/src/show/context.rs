//! Items for the context of a frame: what the memory holds beyond the packet itself.

use crate::memory::{Conclusions, DataContext, FrameTime, Links, Notice};
use crate::names::{F, Node, Remark};
use crate::plan::{Mark, Plan, Range, range};
use fcn_observe::exchange::Incident;
use fcn_observe::{Class, Resolved};

/// Plans the context of a notification, in the subtree that [`summary`](super::summary) leaves
/// open. The notification begins at `start` in the data source.
pub fn notice(plan: &mut Plan, notice: &Notice, conclusions: &Conclusions, start: usize) {
    let here = range(start, 0);
    let linked = |plan: &mut Plan, (frame, delay): (F, F), to: Option<FrameTime>| {
        if let Some(to) = to {
            plan.generated(frame, here, to.frame);
            plan.generated(delay, here, notice.delay(to).cast_unsigned());
        }
    };
    if let Some(sender) = notice.flow_sender() {
        let fields = (F::FcnSender4, F::FcnSender6);
        plan.address(fields, here, sender, Mark::Generated);
    }
    if let Some(generated_by) = conclusions.generated_by {
        plan.text(
            F::FcnMadeBy,
            here,
            format_args!("{}", generated_by.maker.id()),
        );
        plan.text(
            F::FcnMadeByEvidence,
            here,
            format_args!("{}", generated_by.evidence),
        );
    }
    classes(plan, notice, here);
    if let Some((qp, from)) = notice.sender_qp {
        if from == Resolved::Packet {
            plan.marked(F::FcnSenderQp, here, qp.get(), Mark::Hidden);
            plan.hidden(F::FcnSenderQpFrom, here, from.id());
        } else {
            plan.generated(F::FcnSenderQp, here, qp.get());
            plan.text(F::FcnSenderQpFrom, here, format_args!("{}", from.id()));
        }
    }
    if let Some((flow, from)) = notice.flow.zip(notice.flow_from) {
        plan.generated(F::FcnReceiverQp, here, flow.receiver_qp.get());
        plan.text(F::FcnReceiverQpFrom, here, format_args!("{}", from.id()));
    }
    linked(plan, (F::FcnData, F::FcnDataDelay), notice.data);
    let marked = notice.data.filter(|_| notice.is_ce_mark);
    linked(plan, (F::FcnMarked, F::FcnMarkedDelay), marked);
    let translation = (F::FcnTranslates, F::FcnTranslationDelay);
    linked(plan, translation, notice.translates);
    if let Some(frame) = notice.may_translate {
        plan.generated(F::FcnMayTranslate, here, frame);
    }
    if let Some(by) = notice.translated_by {
        plan.generated(F::FcnTranslatedBy, here, by);
    }
    let is_span = |span: &u64| i64::try_from(*span).is_ok();
    if let Some(span) = notice.interval.filter(is_span) {
        plan.generated(F::FcnGap, here, span);
    }
    for (field, rate) in [
        (F::FcnRateBefore, notice.rate_before),
        (F::FcnRateAfter, notice.rate_after),
    ] {
        if let Some(rate) = rate {
            plan.generated(field, here, rate);
        }
    }
    if let Some(verdict) = conclusions.verdict {
        plan.text(F::FcnVerdict, here, format_args!("{}", verdict.answer.id()));
        plan.text(F::FcnEvidence, here, format_args!("{}", verdict.evidence));
        if let Some(advice) = verdict.advice {
            plan.text(F::FcnAdvice, here, format_args!("{advice}"));
        }
        plan.generated(F::FcnMeasured, here, verdict.measured);
    }
    if conclusions.flows_forgotten > 0 {
        let count = conclusions.flows_forgotten;
        let why = format_args!("its flow may be one of the {count} forgotten to limit memory");
        plan.text(F::FcnForgotten, here, why);
    }
    if let Some(first) = notice.copy_of {
        plan.generated(F::FcnCopyOf, here, first);
    }
    for rule in notice.broken.into_iter().flatten() {
        plan.expert(rule, here);
    }
}

/// Plans the traffic classes of the notification and of its flow's data.
fn classes(plan: &mut Plan, notice: &Notice, here: Range) {
    // The packet's own headers show these.
    if let Some(class) = notice.class {
        plan.marked(F::FcnDscp, here, class.dscp(), Mark::Hidden);
        plan.hidden(F::FcnEcn, here, class.ecn().id());
        if let Some(priority) = class.priority() {
            plan.marked(F::FcnVlanPriority, here, priority, Mark::Hidden);
        }
    }
    let of_data = notice.data_class;
    for (field, value) in [
        (F::FcnDataDscp, of_data.map(Class::dscp)),
        (F::FcnDataVlanPriority, of_data.and_then(Class::priority)),
    ] {
        if let Some(value) = value {
            plan.generated(field, here, value);
        }
    }
    if let Some(relation) = notice.class_relation {
        plan.text(F::FcnClass, here, format_args!("{}", relation.id()));
    }
}

/// Plans the remark that the context of a notification had to be forgotten.
pub fn forgotten(plan: &mut Plan, start: usize) {
    let why = format_args!("too many notifications followed to remember this one");
    plan.text(F::FcnForgotten, range(start, 0), why);
}

/// Plans the links of a packet to an earlier one of its connection. Its BTH begins at `start` in
/// the data source.
pub fn links(plan: &mut Plan, links: Links, start: usize) {
    let here = range(start, 0);
    plan.goto(Node::InfiniBand, start);
    match links {
        Links::Retransmission(first, after) => {
            plan.generated(F::RoceRetransmission, here, first.frame);
            plan.generated(F::RoceRetransmitted, here, after);
        }
        Links::Acknowledgement(data, time) => {
            plan.generated(F::RoceAcknowledges, here, data);
            if let Some(time) = time {
                plan.generated(F::RoceRoundTrip, here, time);
            }
        }
        Links::Refusal(data) => plan.generated(F::RoceRefuses, here, data),
    }
}

/// Plans the expert info about the flow of a packet, whose BTH begins at `start` in the data source.
pub fn incident(plan: &mut Plan, incident: Incident, start: usize) {
    let here = range(start, 0);
    plan.goto(Node::InfiniBand, start);
    match incident {
        Incident::NotEct => plan.remark(Remark::NotEct, here),
        Incident::Tries => plan.remark(Remark::Exhausted, here),
        Incident::Silence { cause, length, .. } => {
            let (after, us) = (cause.words(), length / 1_000);
            let (ms, us) = (us / 1_000, us % 1_000);
            plan.remark_with(
                Remark::Stalled,
                here,
                format_args!("{after}, then {ms}.{us:03} ms without data"),
            );
        }
    }
}

/// Plans the notifications that a data frame led to. Its packet begins at `start` in the data
/// source.
pub fn data(plan: &mut Plan, context: &DataContext, start: usize) {
    let here = range(start, 0);
    plan.below_top_level();
    plan.open(F::FcnDataNode, here, Mark::Generated);
    match context.count {
        0 => plan.label(format_args!("Congestion notification: data of its flow")),
        1 => plan.label(format_args!(
            "Congestion notification: in frame {}",
            context.frames[0]
        )),
        count => plan.label(format_args!(
            "Congestion notification: in {count} frames, first in {}",
            context.frames[0]
        )),
    }
    for frame in context.frames.into_iter().filter(|frame| *frame != 0) {
        plan.generated(F::FcnNotifiedBy, here, frame);
    }
    if let Some(rule) = context.rule {
        plan.expert(rule, here);
    }
}
