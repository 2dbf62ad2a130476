//! Runs that go on where an earlier attempt was interrupted.

use super::*;

#[test]
fn a_resumed_run_does_what_is_left_and_can_undo_what_was_done_before() {
    let units = |list: &[(&str, UnitState)]| EarlierAttempt {
        units: list
            .iter()
            .map(|(unit, state)| (name(unit), state.clone()))
            .collect(),
        ..EarlierAttempt::default()
    };
    let earlier = units(&[
        ("a", UnitState::Succeeded),
        ("x", UnitState::Skipped),
        ("b", UnitState::Running),
    ]);
    let mut run = run(OnFailure::Rollback, 10).after(earlier);
    assert_eq!(run.begin(), start(&["b", "c"]), "b did not end");
    run.unit_ended(&name("c"), UnitOutcome::Succeeded);
    let mut next = run.unit_ended(&name("b"), failed());
    let mut order = Vec::new();
    while let [RunCommand::RollBack(name)] = next.as_slice() {
        order.push(name.clone());
        next = run.rolled_back(&order[order.len() - 1], Ok(()));
    }
    assert_eq!(order, ["b", "c", "a"]);
}

#[test]
fn an_interrupted_rollback_goes_on_as_a_rollback() {
    let mut first = run(OnFailure::Rollback, 1);
    first.begin();
    first.unit_ended(&name("a"), UnitOutcome::Succeeded);
    assert_eq!(
        first.unit_ended(&name("b"), failed()),
        [RunCommand::RollBack(name("b"))]
    );
    assert_eq!(first.cancel(), []);
    assert_eq!(
        first.rolled_back(&name("b"), Err("stopped".to_owned())),
        [RunCommand::Finish(RunResult::Interrupted)]
    );
    let earlier = EarlierAttempt {
        units: vec![
            (name("a"), UnitState::Succeeded),
            (name("b"), UnitState::RollingBack),
        ],
        undoing: true,
        trigger: None,
    };
    let mut second = run(OnFailure::Rollback, 1).after(earlier);
    assert_eq!(second.begin(), [RunCommand::RollBack(name("b"))]);
    assert_eq!(
        second.rolled_back(&name("b"), Ok(())),
        [RunCommand::RollBack(name("a"))]
    );
    assert_eq!(
        second.rolled_back(&name("a"), Ok(())),
        [RunCommand::Finish(RunResult::RolledBack)]
    );
}

#[test]
fn a_rollback_that_goes_on_still_knows_what_began_it() {
    let earlier = EarlierAttempt {
        units: vec![(name("a"), UnitState::Succeeded)],
        undoing: true,
        trigger: Some(RollbackTrigger::ServiceLimit),
    };
    let mut second = run(OnFailure::Automatic, 1).after(earlier);
    assert_eq!(second.begin(), [RunCommand::RollBack(name("a"))]);
    assert_eq!(second.trigger(), Some(RollbackTrigger::ServiceLimit));

    let deploys = EarlierAttempt {
        trigger: Some(RollbackTrigger::ServiceLimit),
        ..EarlierAttempt::default()
    };
    let again = run(OnFailure::Automatic, 1).after(deploys);
    assert_eq!(
        again.trigger(),
        None,
        "an attempt that deploys decides anew"
    );
}

#[test]
fn a_rollback_that_goes_on_leaves_alone_what_a_stuck_unit_needs() {
    let stuck = UnitState::Stuck {
        message: "gone".to_owned(),
    };
    let earlier = EarlierAttempt {
        units: vec![
            (name("x"), UnitState::Succeeded),
            (name("a"), UnitState::Succeeded),
            (name("c"), UnitState::RollingBack),
            (name("d"), stuck),
            (name("b"), UnitState::RolledBack),
        ],
        undoing: true,
        trigger: None,
    };
    let mut second = run(OnFailure::Rollback, 4).after(earlier);
    assert_eq!(
        second.begin(),
        [RunCommand::RollBack(name("x"))],
        "d still uses c, and c uses a"
    );
    for (unit, because) in [("c", "d"), ("a", "d")] {
        let message = format!("left as it is: {because} could not be rolled back");
        assert_eq!(second.units()[unit], UnitState::Stuck { message });
    }
    assert_eq!(
        second.rolled_back(&name("x"), Ok(())),
        [RunCommand::Finish(RunResult::NeedsAttention)]
    );
}

#[test]
fn a_run_that_was_late_lets_what_had_begun_finish_and_starts_nothing_else() {
    let late = EarlierAttempt {
        units: vec![
            ("a".parse().unwrap(), UnitState::Succeeded),
            ("b".parse().unwrap(), UnitState::Running),
        ],
        undoing: false,
        trigger: Some(RollbackTrigger::Overtime),
    };
    let unit = |name: &str, needs: &[&str]| GraphUnit {
        name: name.parse().unwrap(),
        priority: 0,
        needs: needs.iter().map(|need| need.parse().unwrap()).collect(),
    };
    let graph = UnitGraph::new([unit("a", &[]), unit("b", &["a"]), unit("c", &["b"])]).unwrap();
    let run = Run::new(graph, RunDirection::Forward, OnFailure::Automatic, 4);
    let mut run = run.after(late);
    assert_eq!(run.begin(), [RunCommand::Start("b".parse().unwrap())]);
    let commands = run.unit_ended(&name("b"), UnitOutcome::Succeeded);
    assert_eq!(commands, [RunCommand::RollBack("b".parse().unwrap())]);
    assert!(matches!(run.units()["c"], UnitState::NotStarted { .. }));
    assert_eq!(run.trigger(), Some(RollbackTrigger::Overtime));
}
