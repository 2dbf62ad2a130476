use nimbus_engine_model::PropertyValue;

use super::*;
use crate::error::DeployError;

fn urn() -> Urn {
    Urn::new("s", "p", None, "pkg:m:T", "a")
}

fn map(entries: &[(&str, &str)]) -> PropertyMap {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).into()))
        .collect()
}

fn planned(ops: &[StepOp], old: &PropertyMap, new: &PropertyMap) -> Constraint {
    let mut making = Constraint::new(None, true);
    let goal = Goal::new("pkg:m:T", "a", true);
    making.goal(&urn(), &goal, None, old, new, [1; 32]).unwrap();
    for op in ops {
        making.step(&urn(), *op).unwrap();
    }
    let plan = making.take_plan("7").unwrap();
    assert_eq!(plan.base_serial, "7");
    Constraint::new(Some(plan), false)
}

fn violation(result: Result<(), DeployError>) -> bool {
    matches!(result, Err(DeployError::PlanViolated { .. }))
}

#[test]
fn less_is_allowed_and_more_is_not() {
    use StepOp::*;
    let allowed = [
        (Update, Same),
        (Create, Same),
        (Replace, Update),
        (CreateReplacement, Same),
        (Delete, Delete),
    ];
    for (planned, op) in allowed {
        assert!(allows(planned, op), "{op} where {planned} was planned");
    }
    for (planned, op) in [
        (Same, Update),
        (Update, Replace),
        (Create, Update),
        (Delete, Same),
    ] {
        assert!(!allows(planned, op), "{op} where {planned} was planned");
    }
}

#[test]
fn each_step_is_struck_off_and_the_rest_is_missed() {
    let nothing = PropertyMap::new();
    let mut constraint = planned(&[StepOp::Update], &nothing, &nothing);
    assert!(violation(constraint.check_complete(|_| true)));
    constraint.step(&urn(), StepOp::Same).unwrap();
    constraint.check_complete(|_| true).unwrap();
    assert!(
        violation(constraint.step(&urn(), StepOp::Same)),
        "no more steps were planned"
    );
}

#[test]
fn what_the_plan_does_not_mention_stays() {
    let mut constraint = planned(&[], &PropertyMap::new(), &PropertyMap::new());
    let other = Urn::new("s", "p", None, "pkg:m:T", "other");
    constraint.step(&other, StepOp::Same).unwrap();
    assert!(violation(constraint.step(&other, StepOp::Create)));
}

#[test]
fn a_planned_delete_of_what_is_gone_is_not_missed() {
    let mut making = Constraint::new(None, true);
    making.step(&urn(), StepOp::Delete).unwrap();
    let constraint = Constraint::new(making.take_plan(""), false);
    constraint.check_complete(|_| false).unwrap();
    assert!(violation(constraint.check_complete(|_| true)));
}

#[test]
fn inputs_must_change_as_planned() {
    let old = map(&[("same", "1"), ("change", "1"), ("drop", "1")]);
    let new = map(&[("same", "1"), ("change", "2"), ("add", "1")]);
    let check = |inputs: &PropertyMap| {
        let mut constraint = planned(&[], &old, &new);
        let goal = Goal::new("pkg:m:T", "a", true);
        constraint.goal(&urn(), &goal, None, &old, inputs, [1; 32])
    };
    check(&new).unwrap();
    let wrong = [
        map(&[("same", "1"), ("change", "3"), ("add", "1")]),
        map(&[("same", "2"), ("change", "2"), ("add", "1")]),
        map(&[("same", "1"), ("change", "2")]),
        map(&[("same", "1"), ("change", "2"), ("add", "1"), ("drop", "1")]),
        map(&[("same", "1"), ("change", "2"), ("add", "1"), ("extra", "1")]),
        map(&[("change", "2"), ("add", "1")]),
        old.clone(),
    ];
    for inputs in &wrong {
        assert!(violation(check(inputs)), "{inputs:?}");
    }
}

#[test]
fn what_was_unknown_may_become_anything_or_nothing() {
    let old = map(&[("change", "1")]);
    let new = PropertyMap::from([
        ("change".to_owned(), PropertyValue::Computed),
        ("add".to_owned(), PropertyValue::Computed),
    ]);
    for inputs in [
        map(&[("change", "2"), ("add", "x")]),
        map(&[("change", "2")]),
        map(&[]),
    ] {
        let mut constraint = planned(&[], &old, &new);
        let goal = Goal::new("pkg:m:T", "a", true);
        constraint
            .goal(&urn(), &goal, None, &old, &inputs, [1; 32])
            .unwrap();
    }
}

#[test]
fn options_must_be_as_planned_but_a_new_provider_may_get_its_id() {
    let provider = "urn:pulumi:s::p::pulumi:providers:pkg::default";
    let with = |set: fn(&mut Goal)| {
        let mut goal = Goal::new("pkg:m:T", "a", true);
        goal.provider = format!("{provider}::1");
        set(&mut goal);
        goal
    };
    let check = |goal: &Goal| {
        let mut base = with(|_| ());
        base.provider = format!("{provider}::{}", nimbus_engine_model::UNKNOWN_ID);
        let nothing = PropertyMap::new();
        GoalPlan::new(&base, PlannedDiff::default()).check(goal, &nothing, &nothing)
    };
    check(&with(|_| ())).unwrap();
    let changes: [fn(&mut Goal); 6] = [
        |goal| goal.protect = Some(true),
        |goal| goal.delete_before_replace = Some(false),
        |goal| goal.ignore_changes = vec!["x".to_owned()],
        |goal| goal.dependencies = vec![Urn::root_stack("s", "p")],
        |goal| goal.import_id = Some("id".to_owned()),
        |goal| goal.provider = "urn:pulumi:s::p::pulumi:providers:pkg::other::1".to_owned(),
    ];
    for change in changes {
        assert!(check(&with(change)).is_err());
    }
}
