//! Replacement: create first or delete first, and what it drags along.

use nimbus_engine_model::PropertyValue;
use nimbus_engine_testing::{CloudAct, Rig, ScriptedResource, render_snapshot};

use crate::{A, B, assert_ok, assert_steps, program};

fn created(id: &str) -> CloudAct {
    CloudAct::Created { id: id.to_owned() }
}

fn deleted(id: &str) -> CloudAct {
    CloudAct::Deleted { id: id.to_owned() }
}

#[tokio::test]
async fn a_replacement_is_created_before_the_old_one_is_deleted() {
    let mut rig = Rig::new();
    let with = |v: &str| program([ScriptedResource::custom(A, "a").prop("replace", v)]);
    assert_ok(&rig.up(&with("1")).await);
    let run = rig.up(&with("2")).await;
    assert_ok(&run);
    assert_steps(
        &run,
        &["create-replacement a", "replace a", "delete-replaced a"],
    );
    assert_eq!(rig.cloud.log()[1..], [created("id-2"), deleted("id-1")]);
}

#[tokio::test]
async fn delete_before_replace_turns_the_order_round() {
    let mut rig = Rig::new();
    let with = |v: &str| {
        program([ScriptedResource::custom(A, "a")
            .prop("replace", v)
            .option(|goal| goal.delete_before_replace = Some(true))])
    };
    assert_ok(&rig.up(&with("1")).await);
    let run = rig.up(&with("2")).await;
    assert_ok(&run);
    assert_steps(
        &run,
        &["delete-replaced a", "replace a", "create-replacement a"],
    );
    assert_eq!(rig.cloud.log()[1..], [deleted("id-1"), created("id-2")]);
}

#[tokio::test]
async fn the_provider_may_ask_for_delete_before_replace_and_the_program_may_refuse() {
    for (option, expected) in [
        (None, vec![deleted("id-1"), created("id-2")]),
        (Some(false), vec![created("id-2"), deleted("id-1")]),
    ] {
        let mut rig = Rig::new();
        rig.fault(|faults| faults.delete_before_replace = vec!["a".to_owned()]);
        let with = |v: &str| {
            program([ScriptedResource::custom(A, "a")
                .prop("replace", v)
                .option(|goal| goal.delete_before_replace = option)])
        };
        assert_ok(&rig.up(&with("1")).await);
        assert_ok(&rig.up(&with("2")).await);
        assert_eq!(rig.cloud.log()[1..], expected[..], "{option:?}");
    }
}

#[tokio::test]
async fn delete_before_replace_takes_the_dependants_that_would_be_replaced_too() {
    let mut rig = Rig::new();
    let with = |v: &str| {
        program([
            ScriptedResource::custom(A, "a")
                .prop("replace", v)
                .option(|goal| goal.delete_before_replace = Some(true)),
            ScriptedResource::custom(B, "hard").from_output("replaceOn", "a", "computed"),
            ScriptedResource::custom(B, "soft").from_output("plain", "a", "computed"),
        ])
    };
    assert_ok(&rig.up(&with("1")).await);
    let run = rig.up(&with("2")).await;
    assert_ok(&run);
    assert_steps(
        &run,
        &[
            "delete-replaced hard",
            "delete-replaced a",
            "replace a",
            "create-replacement a",
            "replace hard",
            "create-replacement hard",
            "update soft",
        ],
    );
    assert_eq!(rig.cloud.ids().len(), 3);
}

#[tokio::test]
async fn a_failed_create_after_delete_leaves_a_pending_replacement_that_the_next_run_finishes() {
    let mut rig = Rig::new();
    let with = |v: &str| {
        program([ScriptedResource::custom(A, "a")
            .prop("replace", v)
            .option(|goal| goal.delete_before_replace = Some(true))])
    };
    assert_ok(&rig.up(&with("1")).await);
    rig.fault(|faults| faults.create_fails = vec!["a".to_owned()]);
    assert!(!rig.up(&with("2")).await.succeeded());
    insta::assert_snapshot!(render_snapshot(&rig.snapshot), @r"
    proj-test
    default id=00000000-0000-0000-0000-000000000001
    a id=id-1 replace=1 +pending-replacement
    ");
    rig.fault(|_| ());
    assert_ok(&rig.up(&with("2")).await);
    insta::assert_snapshot!(render_snapshot(&rig.snapshot), @r"
    proj-test
    default id=00000000-0000-0000-0000-000000000001
    a id=id-2 replace=2
    ");
}

#[tokio::test]
async fn a_failed_delete_of_the_replaced_one_is_finished_by_the_next_run() {
    let mut rig = Rig::new();
    let with = |v: &str| program([ScriptedResource::custom(A, "a").prop("replace", v)]);
    assert_ok(&rig.up(&with("1")).await);
    rig.fault(|faults| faults.delete_fails = vec!["a".to_owned()]);
    assert!(!rig.up(&with("2")).await.succeeded());
    assert_eq!(
        rig.snapshot.resources.iter().filter(|r| r.delete).count(),
        1
    );
    rig.fault(|_| ());
    let run = rig.up(&with("2")).await;
    assert_ok(&run);
    assert_steps(&run, &["delete-replaced a"]);
    assert_eq!(rig.cloud.ids(), ["id-2"]);
}

#[tokio::test]
async fn replace_on_changes_turns_an_update_into_a_replacement() {
    for path in ["foo", "*"] {
        let mut rig = Rig::new();
        let with = |v: &str| {
            program([ScriptedResource::custom(A, "a")
                .prop("foo", v)
                .option(|goal| goal.replace_on_changes = vec![path.to_owned()])])
        };
        assert_ok(&rig.up(&with("1")).await);
        let run = rig.up(&with("2")).await;
        assert_ok(&run);
        assert_steps(
            &run,
            &["create-replacement a", "replace a", "delete-replaced a"],
        );
    }
}

#[tokio::test]
async fn a_replacement_trigger_replaces_when_its_value_changes() {
    let mut rig = Rig::new();
    let with = |v: &str| {
        program([ScriptedResource::custom(A, "a")
            .option(|goal| goal.replacement_trigger = PropertyValue::from(v))])
    };
    assert_ok(&rig.up(&with("1")).await);
    assert_steps(&rig.up(&with("1")).await, &[]);
    assert_steps(
        &rig.up(&with("2")).await,
        &["create-replacement a", "replace a", "delete-replaced a"],
    );
}

#[tokio::test]
async fn replace_with_follows_its_resource() {
    let mut rig = Rig::new();
    let with = |v: &str| {
        program([
            ScriptedResource::custom(A, "a").prop("replace", v),
            ScriptedResource::custom(A, "b").replace_with("a"),
        ])
    };
    assert_ok(&rig.up(&with("1")).await);
    let run = rig.up(&with("2")).await;
    assert_ok(&run);
    assert_eq!(rig.cloud.ids(), ["id-3", "id-4"]);
}
