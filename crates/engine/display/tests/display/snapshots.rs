//! How two recorded states differ.

use std::sync::Arc;

use insta::assert_snapshot;
use nimbus_engine_display::{StepDetail, pending_line, snapshot_diff_lines};
use nimbus_engine_model::{OperationKind, PendingOperation, ResourceState, Snapshot};

use crate::support::{map, plain, secret, state};

fn snapshot<const N: usize>(resources: [ResourceState; N]) -> Snapshot {
    Snapshot {
        resources: resources.into_iter().map(Arc::new).collect(),
        ..Snapshot::default()
    }
}

fn named(name: &str) -> ResourceState {
    ResourceState {
        id: Some(format!("{name}-1")),
        ..state(
            "a:b:C",
            name,
            map([("size", 1.0.into()), ("key", secret("k"))]),
        )
    }
}

#[test]
fn resources_that_came_went_or_changed_are_told_apart() {
    let old = snapshot([named("same"), named("changed"), named("gone")]);
    let mut changed = named("changed");
    changed.inputs = map([("size", 2.0.into()), ("key", secret("l"))]);
    changed.protect = true;
    let mut replaced = named("changed");
    replaced.delete = true;
    let mut new = snapshot([named("same"), changed, replaced, named("came")]);
    new.pending_operations.push(PendingOperation {
        kind: OperationKind::Creating,
        resource: Arc::new(named("maybe")),
    });
    let lines = snapshot_diff_lines(&old, &new, StepDetail::Short);
    assert_snapshot!(plain(&lines));
}

#[test]
fn equal_states_differ_in_nothing_and_a_new_order_is_told() {
    let forth = snapshot([named("one"), named("two")]);
    let back = snapshot([named("two"), named("one")]);
    assert!(snapshot_diff_lines(&forth, &forth, StepDetail::Short).is_empty());
    let lines = snapshot_diff_lines(&forth, &back, StepDetail::Short);
    assert_eq!(plain(&lines), "~ order of resources\n");
}

#[test]
fn an_unknown_outcome_names_the_act_and_the_object() {
    let operation = PendingOperation {
        kind: OperationKind::Deleting,
        resource: Arc::new(named("db")),
    };
    assert_eq!(
        pending_line(&operation).plain(),
        "? deleting db (a:b:C) [id=db-1]"
    );
}
