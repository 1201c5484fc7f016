//! What the memory knows about a frame beside what its packet says.

use crate::memory::{FrameTime, Led, Notice, Outcome};
use crate::names::F;
use crate::plan::{At, Mark, Plan, at};
use fcn_observe::Class;

/// Plans what is known about a notification, into the subtree that [`summary`](super::summary) leaves open. It stands at
/// `start` in the data source.
pub fn notice(plan: &mut Plan, notice: &Notice, outcome: &Outcome, start: usize) {
    let here = at(start, 0);
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
    if let Some(made) = outcome.made {
        plan.text(F::FcnMadeBy, here, format_args!("{}", made.maker.id()));
        plan.text(
            F::FcnMadeByEvidence,
            here,
            format_args!("{}", made.evidence),
        );
    }
    classes(plan, notice, here);
    if let Some((qp, by)) = notice.sender_qp {
        plan.generated(F::FcnSenderQp, here, qp.get());
        plan.text(F::FcnSenderQpBy, here, format_args!("{}", by.id()));
    }
    linked(plan, (F::FcnData, F::FcnDataDelay), notice.data);
    let marked = notice.data.filter(|_| notice.answers);
    linked(plan, (F::FcnMarked, F::FcnMarkedDelay), marked);
    let translation = (F::FcnTranslates, F::FcnTranslationDelay);
    linked(plan, translation, notice.translates);
    if let Some(by) = notice.translated_by {
        plan.generated(F::FcnTranslatedBy, here, by);
    }
    let is_span = |span: &u64| i64::try_from(*span).is_ok();
    if let Some(span) = notice.interval.filter(is_span) {
        plan.generated(F::FcnInterval, here, span);
    }
    for (field, rate) in [
        (F::FcnRateBefore, notice.rate_before),
        (F::FcnRateAfter, notice.rate_after),
    ] {
        if let Some(rate) = rate {
            plan.generated(field, here, rate);
        }
    }
    if let Some(verdict) = outcome.verdict {
        plan.text(F::FcnVerdict, here, format_args!("{}", verdict.answer.id()));
        plan.text(F::FcnEvidence, here, format_args!("{}", verdict.evidence));
        plan.generated(F::FcnMeasured, here, verdict.measured);
    }
    if outcome.flows_forgotten > 0 {
        let count = outcome.flows_forgotten;
        let why = format_args!(
            "the data that it is about may be among the flows that had to be forgotten ({count})"
        );
        plan.text(F::FcnForgotten, here, why);
    }
    if let Some(first) = notice.copy_of {
        plan.generated(F::FcnCopyOf, here, first);
    }
    for rule in notice.broken.into_iter().flatten() {
        plan.expert(rule, here);
    }
}

/// Plans by what the notification is queued, and the data of its flow.
fn classes(plan: &mut Plan, notice: &Notice, here: At) {
    if let Some(class) = notice.class {
        plan.generated(F::FcnDscp, here, class.dscp());
        plan.text(F::FcnEcn, here, format_args!("{}", class.ecn().id()));
    }
    let of_data = notice.data_class;
    for (field, value) in [
        (F::FcnVlanPriority, notice.class.and_then(Class::priority)),
        (F::FcnDataDscp, of_data.map(Class::dscp)),
        (F::FcnDataVlanPriority, of_data.and_then(Class::priority)),
    ] {
        if let Some(value) = value {
            plan.generated(field, here, value);
        }
    }
    if let Some(company) = notice.company {
        plan.text(F::FcnClass, here, format_args!("{}", company.id()));
    }
}

/// Plans the word that what was known about a notification had to be forgotten.
pub fn forgotten(plan: &mut Plan, start: usize) {
    let why =
        format_args!("too many notifications came after this one to remember what it was about");
    plan.text(F::FcnForgotten, at(start, 0), why);
}

/// Plans what a data frame led to. Its packet stands at `start` in the data source.
pub fn data(plan: &mut Plan, led: &Led, start: usize) {
    let here = at(start, 0);
    plan.aside();
    plan.open(F::FcnDataNode, here, Mark::Generated);
    match led.count {
        0 => plan.label(format_args!("Congestion notification: data beside one")),
        1 => plan.label(format_args!(
            "Congestion notification: in frame {}",
            led.frames[0]
        )),
        count => plan.label(format_args!(
            "Congestion notification: in {count} frames, first in {}",
            led.frames[0]
        )),
    }
    for frame in led.frames.into_iter().filter(|frame| *frame != 0) {
        plan.generated(F::FcnNotifiedBy, here, frame);
    }
    if let Some(rule) = led.rule {
        plan.expert(rule, here);
    }
}
