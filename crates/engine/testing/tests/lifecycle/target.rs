//! Working on a part of the stack.

use nimbus_engine_deploy::Targets;
use nimbus_engine_testing::{Rig, ScriptedResource};

use crate::{A, B, assert_ok, assert_steps, program};

#[tokio::test]
async fn only_targets_are_updated() {
    let mut rig = Rig::new();
    let with = |v: &str| {
        program([
            ScriptedResource::custom(A, "a").prop("foo", v),
            ScriptedResource::custom(A, "b").prop("foo", v),
        ])
    };
    assert_ok(&rig.up(&with("1")).await);
    rig.options.targets = Targets::urns([&rig.urn(A, "a")]);
    let run = rig.up(&with("2")).await;
    assert_ok(&run);
    assert_steps(&run, &["update a"]);
    rig.options.targets = Targets::default();
    assert_steps(&rig.up(&with("2")).await, &["update b"]);
}

#[tokio::test]
async fn excluded_resources_are_left_alone() {
    let mut rig = Rig::new();
    let with = |v: &str| {
        program([
            ScriptedResource::custom(A, "a").prop("foo", v),
            ScriptedResource::custom(A, "b").prop("foo", v),
        ])
    };
    assert_ok(&rig.up(&with("1")).await);
    rig.options.excludes = Targets::urns([&rig.urn(A, "a")]);
    assert_steps(&rig.up(&with("2")).await, &["update b"]);
}

#[tokio::test]
async fn a_targeted_destroy_takes_dependants_only_when_told() {
    let mut rig = Rig::new();
    let all = program([
        ScriptedResource::custom(A, "a"),
        ScriptedResource::custom(B, "b").from_output("x", "a", "computed"),
        ScriptedResource::custom(A, "c"),
    ]);
    assert_ok(&rig.up(&all).await);
    rig.options.targets = Targets::urns([&rig.urn(A, "a")]);
    assert!(!rig.destroy().await.succeeded(), "b still needs a");
    assert_eq!(rig.cloud.ids().len(), 3);
    rig.options.targets.dependents = true;
    let run = rig.destroy().await;
    assert_ok(&run);
    assert_steps(&run, &["delete b", "delete a"]);
    assert_eq!(rig.cloud.ids(), ["id-3"]);
}

#[tokio::test]
async fn a_create_outside_the_targets_is_left_out_and_not_recorded() {
    let mut rig = Rig::new();
    rig.options.targets = Targets::urns([&rig.urn(A, "a")]);
    let run = rig
        .up(&program([
            ScriptedResource::custom(A, "a"),
            ScriptedResource::custom(A, "b"),
        ]))
        .await;
    assert_ok(&run);
    assert_steps(&run, &["create a"]);
    assert!(rig.snapshot.resources.iter().all(|r| r.urn.name() != "b"));
}

#[tokio::test]
async fn replace_targets_are_replaced_though_unchanged() {
    let mut rig = Rig::new();
    let one = program([ScriptedResource::custom(A, "a")]);
    assert_ok(&rig.up(&one).await);
    rig.options.replace_targets = vec![rig.urn(A, "a").to_string()];
    let run = rig.up(&one).await;
    assert_ok(&run);
    assert_steps(
        &run,
        &["create-replacement a", "replace a", "delete-replaced a"],
    );
}
