//! Hooks run around steps, stop them, and ask for another try.

use nimbus_engine_model::HookKind;
use nimbus_engine_testing::{Rig, ScriptedResource};

use crate::{A, assert_ok, program};

#[tokio::test]
async fn hooks_run_before_and_after_each_kind_of_step() {
    let mut rig = Rig::new();
    let with = |foo: &str| {
        program([ScriptedResource::custom(A, "a")
            .prop("foo", foo)
            .hook(HookKind::BeforeCreate, "bc")
            .hook(HookKind::AfterCreate, "ac")
            .hook(HookKind::BeforeUpdate, "bu")
            .hook(HookKind::AfterUpdate, "au")
            .hook(HookKind::BeforeDelete, "bd")
            .hook(HookKind::AfterDelete, "ad")])
    };
    assert_ok(&rig.up(&with("1")).await);
    assert_ok(&rig.up(&with("2")).await);
    assert_ok(&rig.up(&program([])).await);
    assert_eq!(
        rig.hooks.calls(),
        [
            "BeforeCreate bc a",
            "AfterCreate ac a",
            "BeforeUpdate bu a",
            "AfterUpdate au a",
            "BeforeDelete bd a",
            "AfterDelete ad a",
        ]
    );
}

#[tokio::test]
async fn a_failing_before_hook_stops_the_step() {
    let mut rig = Rig::new();
    rig.hooks.fail("bc");
    let run = rig
        .up(&program([
            ScriptedResource::custom(A, "a").hook(HookKind::BeforeCreate, "bc")
        ]))
        .await;
    assert!(!run.succeeded());
    assert!(rig.cloud.log().is_empty());
}

#[tokio::test]
async fn an_error_hook_asks_for_another_try() {
    let mut rig = Rig::new();
    rig.fault(|faults| faults.create_fails = vec!["a".to_owned()]);
    rig.hooks.retry("again", 2);
    let run = rig
        .up(&program([
            ScriptedResource::custom(A, "a").hook(HookKind::OnError, "again")
        ]))
        .await;
    assert!(!run.succeeded());
    assert_eq!(
        rig.hooks.calls(),
        ["retry? again 1", "retry? again 2", "retry? again 3"]
    );
}
