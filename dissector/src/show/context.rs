//! What the memory knows about a frame beside what its packet says.

use crate::memory::{DataContext, Linked, NoticeContext};
use crate::names::F;
use crate::plan::{Anchor, Mark, Op, Plan, at};

/// Plans what is known about a notification, into the subtree that [`summary`](super::summary) leaves open. It stands at
/// `start` in the data source.
pub fn notice(plan: &mut Plan<'_>, context: &NoticeContext, start: usize) {
    let here = at(start, 0);
    let frame = |plan: &mut Plan<'_>, field: F, number: u32| {
        plan.push(Op::Uint(field, here, number, Mark::Generated));
    };
    let linked = |plan: &mut Plan<'_>, fields: (F, F), to: Option<Linked>| {
        if let Some(to) = to {
            frame(plan, fields.0, to.frame);
            plan.push(Op::Span(fields.1, here, to.delay, Mark::Generated));
        }
    };
    if let Some(sender) = context.flow_sender {
        let fields = (F::FcnSender4, F::FcnSender6);
        plan.address(fields, here, sender, Mark::Generated);
    }
    if let Some((qp, by)) = context.sender_qp {
        plan.push(Op::Uint(F::FcnSenderQp, here, qp.get(), Mark::Generated));
        let by = plan.text(format_args!("{}", by.id()));
        plan.push(Op::Text(F::FcnSenderQpBy, here, by, Mark::Generated));
    }
    linked(plan, (F::FcnData, F::FcnDataDelay), context.data);
    let marked = context.data.filter(|_| context.answers);
    linked(plan, (F::FcnMarked, F::FcnMarkedDelay), marked);
    let translation = (F::FcnTranslates, F::FcnTranslationDelay);
    linked(plan, translation, context.translates);
    if let Some(by) = context.translated_by {
        frame(plan, F::FcnTranslatedBy, by);
    }
    let span = context.interval.and_then(|span| i64::try_from(span).ok());
    if let Some(span) = span {
        plan.push(Op::Span(F::FcnInterval, here, span, Mark::Generated));
    }
    for (field, rate) in [
        (F::FcnRateBefore, context.rate_before),
        (F::FcnRateAfter, context.rate_after),
    ] {
        if let Some(rate) = rate {
            plan.push(Op::Uint64(field, here, rate, Mark::Generated));
        }
    }
    if let Some(verdict) = context.verdict {
        let answer = plan.text(format_args!("{}", verdict.answer.id()));
        plan.push(Op::Text(F::FcnVerdict, here, answer, Mark::Generated));
        let evidence = plan.text(format_args!("{}", verdict.evidence));
        plan.push(Op::Text(F::FcnEvidence, here, evidence, Mark::Generated));
        plan.push(Op::Uint(
            F::FcnMeasured,
            here,
            verdict.measured,
            Mark::Generated,
        ));
    }
    if context.flows_forgotten > 0 {
        let said = plan.text(format_args!(
            "the data that it is about may be among the flows that had to be forgotten ({})",
            context.flows_forgotten
        ));
        plan.push(Op::Text(F::FcnForgotten, here, said, Mark::Generated));
    }
    if let Some(first) = context.copy_of {
        frame(plan, F::FcnCopyOf, first);
    }
    for rule in context.broken.into_iter().flatten() {
        plan.expert(rule, here);
    }
}

/// Plans the word that what was known about a notification had to be forgotten.
pub fn forgotten(plan: &mut Plan<'_>, start: usize) {
    let said = plan.text(format_args!(
        "too many notifications came after this one to remember what it was about"
    ));
    plan.push(Op::Text(
        F::FcnForgotten,
        at(start, 0),
        said,
        Mark::Generated,
    ));
}

/// Plans what a data frame led to. Its packet stands at `start` in the data source.
pub fn data(plan: &mut Plan<'_>, context: &DataContext, start: usize) {
    let here = at(start, 0);
    plan.push(Op::Goto(Anchor::Aside));
    plan.push(Op::OpenGenerated(F::FcnDataNode, here));
    match context.count {
        0 => plan.label(format_args!("Congestion notification: data beside one")),
        1 => plan.label(format_args!(
            "Congestion notification: in frame {}",
            context.led[0]
        )),
        count => plan.label(format_args!(
            "Congestion notification: in {count} frames, first in {}",
            context.led[0]
        )),
    }
    for frame in context.led.into_iter().filter(|frame| *frame != 0) {
        plan.push(Op::Uint(F::FcnNotifiedBy, here, frame, Mark::Generated));
    }
    if let Some(rule) = context.rule {
        plan.expert(rule, here);
    }
}
