//! Dispatch by role: its plan, and its own judge after the rules that apply to all roles.

use super::bench::Record;
use super::judge::{Grade, Judgement, Ledger, by_rules, classify};
use super::plan::{Plan, Setup};
use super::{congestion_point, notification, receiver, sender, translator};
use crate::device::Role;
use fcn_tool::failure::Result;

/// Plans the check for the setup's role.
pub fn plan(setup: &Setup<'_>) -> Result<Plan> {
    match setup.role {
        Role::CongestionPoint => congestion_point::plan(setup),
        Role::Receiver => receiver::plan(setup),
        Role::Sender => sender::plan(setup),
        Role::Proxy | Role::IngressPe => translator::plan(setup),
    }
}

/// Judges a record.
#[must_use]
pub fn judge(setup: &Setup<'_>, plan: &Plan, record: &Record) -> Judgement {
    let sorted = classify(setup, record);
    let mut ledger = Ledger::new(plan);
    if !setup.off {
        for own in &sorted.generated {
            notification::judge(own, &mut ledger);
        }
        ledger.record_untestable_all(&notification::STATEMENTS, "the device sent no such message");
        by_rules(setup, &sorted, &mut ledger);
    }
    match setup.role {
        Role::CongestionPoint => {
            congestion_point::judge(setup, plan, record, &sorted, &mut ledger);
        }
        Role::Receiver => receiver::judge(setup, plan, record, &sorted, &mut ledger),
        Role::Sender => sender::judge(setup, plan, &sorted, &mut ledger),
        Role::Proxy | Role::IngressPe => {
            translator::judge(setup, plan, record, &sorted, &mut ledger);
        }
    }
    let outcomes = setup.wanted.iter().map(|test| ledger.outcome(*test));
    // A failure counts even if the scenario does not require the behaviour of the device.
    let outcomes = outcomes.filter(|outcome| {
        setup.applies(outcome.test) || !matches!(outcome.grade, Grade::Passed | Grade::Untested)
    });
    Judgement {
        outcomes: outcomes.collect(),
        latencies: ledger.latencies(),
    }
}
