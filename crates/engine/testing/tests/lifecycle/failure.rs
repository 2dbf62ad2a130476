//! What goes wrong, and what is known afterwards.

use nimbus_engine_model::{OperationKind, StepOp};
use nimbus_engine_testing::{Rig, ScriptedResource};

use crate::{A, B, assert_ok, assert_steps, program};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_failed_create_stops_the_run_keeps_what_was_done_and_deletes_nothing() {
    let mut rig = Rig::new();
    assert_ok(&rig.up(&program([ScriptedResource::custom(A, "old")])).await);
    rig.fault(|faults| faults.create_fails = names(&["bad"]));
    let run = rig
        .up(&program([
            ScriptedResource::custom(A, "good"),
            ScriptedResource::custom(A, "bad"),
            ScriptedResource::custom(A, "later"),
        ]))
        .await;
    assert!(!run.succeeded());
    let recorded: Vec<_> = rig
        .snapshot
        .resources
        .iter()
        .map(|r| r.urn.name())
        .collect();
    assert!(
        recorded.contains(&"old") && recorded.contains(&"good"),
        "{recorded:?}"
    );
    assert!(
        !recorded.contains(&"bad") && !recorded.contains(&"later"),
        "{recorded:?}"
    );
    assert!(
        rig.snapshot.pending_operations.is_empty(),
        "the provider said what happened"
    );
}

#[tokio::test]
async fn an_unknown_create_stays_pending() {
    let mut rig = Rig::new();
    rig.fault(|faults| faults.create_unknown = names(&["a"]));
    let run = rig.up(&program([ScriptedResource::custom(A, "a")])).await;
    assert!(!run.succeeded());
    assert_eq!(rig.snapshot.pending_operations.len(), 1);
    assert_eq!(
        rig.snapshot.pending_operations[0].kind,
        OperationKind::Creating
    );
    assert_eq!(run.outcome.unknown.len(), 1);
}

#[tokio::test]
async fn an_unknown_delete_keeps_the_resource_and_says_so() {
    let mut rig = Rig::new();
    assert_ok(&rig.up(&program([ScriptedResource::custom(A, "a")])).await);
    rig.fault(|faults| faults.delete_unknown = names(&["a"]));
    assert!(!rig.destroy().await.succeeded());
    assert!(rig.snapshot.resources.iter().any(|r| r.urn.name() == "a"));
    assert_eq!(
        rig.snapshot.pending_operations[0].kind,
        OperationKind::Deleting
    );
}

#[tokio::test]
async fn a_half_made_resource_is_recorded_and_updated_next_time() {
    let mut rig = Rig::new();
    let one = program([ScriptedResource::custom(A, "a")]);
    rig.fault(|faults| faults.create_half = names(&["a"]));
    assert!(!rig.up(&one).await.succeeded());
    let a = rig
        .snapshot
        .resources
        .iter()
        .find(|r| r.urn.name() == "a")
        .unwrap();
    assert_eq!(a.id.as_deref(), Some("id-1"));
    assert!(!a.init_errors.is_empty());
    rig.fault(|_| ());
    let run = rig.up(&one).await;
    assert_ok(&run);
    assert_steps(&run, &["update a"]);
    let a = rig
        .snapshot
        .resources
        .iter()
        .find(|r| r.urn.name() == "a")
        .unwrap();
    assert!(a.init_errors.is_empty());
}

#[tokio::test]
async fn a_failed_update_keeps_the_old_record() {
    let mut rig = Rig::new();
    let with = |v: &str| program([ScriptedResource::custom(A, "a").prop("foo", v)]);
    assert_ok(&rig.up(&with("1")).await);
    let before = rig.snapshot.resources.clone();
    rig.fault(|faults| faults.update_fails = names(&["a"]));
    assert!(!rig.up(&with("2")).await.succeeded());
    assert_eq!(rig.snapshot.resources, before);
}

#[tokio::test]
async fn inputs_that_a_provider_refuses_change_nothing() {
    let mut rig = Rig::new();
    rig.fault(|faults| faults.check_fails = names(&["a"]));
    let run = rig.up(&program([ScriptedResource::custom(A, "a")])).await;
    assert!(!run.succeeded());
    assert!(rig.cloud.log().is_empty());
    assert!(
        run.diagnostics()
            .iter()
            .any(|d| d.message.contains("not acceptable"))
    );
}

#[tokio::test]
async fn continue_on_error_finishes_what_does_not_depend_on_the_failure() {
    let mut rig = Rig::new();
    rig.options.continue_on_error = true;
    rig.fault(|faults| faults.create_fails = names(&["bad"]));
    let run = rig
        .up(&program([
            ScriptedResource::custom(A, "bad"),
            ScriptedResource::custom(B, "dependant").from_output("x", "bad", "computed"),
            ScriptedResource::custom(A, "other"),
        ]))
        .await;
    assert!(!run.succeeded());
    assert_eq!(
        rig.cloud.ids().len(),
        1,
        "other was made, dependant was not"
    );
    assert!(
        rig.snapshot
            .resources
            .iter()
            .any(|r| r.urn.name() == "other")
    );
    assert!(
        rig.snapshot
            .resources
            .iter()
            .all(|r| r.urn.name() != "dependant")
    );
}

#[tokio::test]
async fn continue_on_error_deletes_nothing_whose_replacement_is_left_out() {
    let mut rig = Rig::new();
    rig.options.continue_on_error = true;
    let kept = |size: &str| {
        ScriptedResource::custom(B, "kept")
            .prop("replace", size)
            .depends_on("bad")
            .option(|goal| goal.delete_before_replace = Some(true))
    };
    assert_ok(
        &rig.up(&program([ScriptedResource::custom(A, "bad"), kept("1")]))
            .await,
    );
    let before = rig.cloud.ids();
    rig.fault(|faults| faults.update_fails = names(&["bad"]));
    let bad = ScriptedResource::custom(A, "bad").prop("x", "2");
    assert!(!rig.up(&program([bad, kept("2")])).await.succeeded());
    assert_eq!(rig.cloud.ids(), before, "nothing would have come instead");
    let recorded = |name: &str| {
        let live = rig.snapshot.resources.iter().filter(|r| !r.delete);
        live.filter(|r| r.urn.name() == name).count()
    };
    assert_eq!((recorded("bad"), recorded("kept")), (1, 1));
}

#[tokio::test]
async fn a_failed_delete_keeps_its_dependencies_too() {
    let mut rig = Rig::new();
    assert_ok(
        &rig.up(&program([
            ScriptedResource::custom(A, "base"),
            ScriptedResource::custom(A, "top").depends_on("base"),
        ]))
        .await,
    );
    rig.fault(|faults| faults.delete_fails = names(&["top"]));
    assert!(!rig.destroy().await.succeeded());
    assert_eq!(rig.cloud.ids().len(), 2, "base is still needed by top");
}

#[tokio::test]
async fn a_cancelled_run_starts_nothing_more() {
    let mut rig = Rig::new();
    rig.cancel.cancel();
    let run = rig.up(&program([ScriptedResource::custom(A, "a")])).await;
    assert!(!run.succeeded());
    assert!(rig.cloud.log().is_empty());
    assert_eq!(run.count(StepOp::Create), 0);
}

#[tokio::test]
async fn a_diff_that_the_provider_cannot_make_is_made_by_the_engine() {
    let mut rig = Rig::new();
    let with = |v: &str| program([ScriptedResource::custom(A, "a").prop("foo", v)]);
    assert_ok(&rig.up(&with("1")).await);
    rig.fault(|faults| faults.diff_unknown = names(&["a"]));
    assert_steps(&rig.up(&with("1")).await, &[]);
    assert_steps(&rig.up(&with("2")).await, &["update a"]);
}
