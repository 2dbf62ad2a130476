//! Replacements and what depends on them: what goes along, in which order, and what keeps it from going.

use futures::FutureExt as _;
use nimbus_engine_deploy::DeployError;
use nimbus_engine_model::{AliasSpec, Goal};

use super::replacing::{Change, one};
use super::support::*;

/// a ← hard (replaced by a change of a), soft (updated), loose (depends only), harder ← hard.
async fn family(rig: &mut AnsweringRig, value: &'static str) -> RigRun {
    rig.up(move |m| {
        async move {
            let a = m
                .resource("a", |goal| {
                    set(goal, "replace", value);
                    goal.delete_before_replace = Some(true);
                })
                .await?;
            let hard = m
                .resource("hard", |goal| depend(goal, "replaceOn", &a))
                .await?;
            m.resource("soft", |goal| depend(goal, "plain", &a)).await?;
            m.resource("loose", |goal| goal.dependencies = vec![a.urn.clone()])
                .await?;
            m.resource("harder", |goal| depend(goal, "replaceOn", &hard))
                .await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
}

#[tokio::test]
async fn deleting_first_takes_along_exactly_the_dependants_that_would_be_replaced() {
    let mut rig = AnsweringRig::new();
    family(&mut rig, "1").await.ok();
    let run = family(&mut rig, "2").await.ok();
    assert_eq!(
        run.step_lines(),
        [
            "delete-replaced harder",
            "delete-replaced hard",
            "delete-replaced a",
            "replace a",
            "create-replacement a",
            "replace hard",
            "create-replacement hard",
            "update soft",
            "replace harder",
            "create-replacement harder",
        ]
    );
    assert_eq!(rig.provider.objects.lock().len(), 5);
    assert!(
        rig.snapshot
            .resources
            .iter()
            .all(|state| !state.pending_replacement)
    );
}

#[tokio::test]
async fn a_dependant_that_is_no_longer_wanted_goes_without_a_second_delete() {
    let mut rig = AnsweringRig::new();
    family(&mut rig, "1").await.ok();
    rig.take_calls();
    let run = one(&mut rig, |goal| {
        set(goal, "replace", "2");
        goal.delete_before_replace = Some(true);
    })
    .await
    .ok();
    let calls = rig.take_calls();
    let deletes_of_hard = calls
        .iter()
        .filter(|call| call.starts_with("delete hard "))
        .count();
    assert_eq!(deletes_of_hard, 1, "{calls:?}");
    assert!(
        run.step_lines()
            .contains(&"remove-pending-replace hard".to_owned()),
        "{:?}",
        run.step_lines()
    );
    assert_eq!(rig.names(), ["proj-test", "default", "a"]);
}

#[tokio::test]
async fn a_protected_dependant_keeps_everything_in_place() {
    let mut rig = AnsweringRig::new();
    family(&mut rig, "1").await.ok();
    rig.edit("harder", |state| state.protect = true);
    rig.take_calls();
    let run = family(&mut rig, "2").await;
    assert!(matches!(
        run.error(),
        DeployError::Protected { cause: Some(_), .. }
    ));
    assert!(rig.take_calls().is_empty());
}

async fn bound(
    rig: &mut AnsweringRig,
    value: &'static str,
    dbr: bool,
    bind: fn(&mut Goal),
) -> RigRun {
    rig.up(move |m| {
        async move {
            m.resource("a", |goal| {
                set(goal, "replace", value);
                goal.delete_before_replace = Some(dbr);
            })
            .await?;
            m.resource("b", bind).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
}

#[tokio::test]
async fn resources_bound_to_a_replaced_one_are_replaced_with_it() {
    let binds: [(Change, &str); 2] = [
        (|goal| goal.replace_with = vec![urn("a")], "replaceWith"),
        (|goal| goal.deleted_with = Some(urn("a")), "deletedWith"),
    ];
    for (bind, key) in binds {
        let mut rig = AnsweringRig::new();
        bound(&mut rig, "1", false, bind).await.ok();
        let run = bound(&mut rig, "2", false, bind).await.ok();
        let replaced = run
            .step_events()
            .find(|step| step.op.as_str() == "replace" && step.urn.name() == "b")
            .unwrap_or_else(|| panic!("{key}: {:?}", run.step_lines()));
        assert_eq!(replaced.replace_keys, [key]);
    }
}

#[tokio::test]
async fn what_is_deleted_with_another_is_not_deleted_on_its_own() {
    let mut rig = AnsweringRig::new();
    let bind: fn(&mut Goal) = |goal| goal.deleted_with = Some(urn("a"));
    bound(&mut rig, "1", true, bind).await.ok();
    rig.take_calls();
    let run = bound(&mut rig, "2", true, bind).await.ok();
    assert_eq!(
        run.step_lines(),
        [
            "delete-replaced b",
            "delete-replaced a",
            "replace a",
            "create-replacement a",
            "replace b",
            "create-replacement b",
        ]
    );
    assert_eq!(rig.take_calls(), ["delete a id-1", "create a", "create b"]);
}

#[tokio::test]
async fn a_dependant_that_is_renamed_while_it_is_dragged_along_is_made_anew() {
    let mut rig = AnsweringRig::new();
    let program = |value: &'static str, name: &'static str| {
        move |m: ClosureMonitor| {
            async move {
                let a = m
                    .resource("a", |goal| {
                        set(goal, "replace", value);
                        goal.delete_before_replace = Some(true);
                    })
                    .await?;
                m.resource(name, |goal| {
                    depend(goal, "replaceOn", &a);
                    let spec = AliasSpec {
                        name: Some("old".to_owned()),
                        ..AliasSpec::default()
                    };
                    goal.aliases = vec![nimbus_engine_model::Alias::Spec(spec)];
                })
                .await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    rig.up(program("1", "old")).await.ok();
    rig.take_calls();
    rig.up(program("2", "new")).await.ok();
    assert_eq!(
        rig.take_calls(),
        ["delete old id-2", "delete a id-1", "create a", "create new"]
    );
    assert_eq!(rig.names(), ["proj-test", "default", "a", "new"]);
}

#[tokio::test]
async fn a_delete_that_is_still_pending_goes_along_with_a_delete_before_replace() {
    let mut rig = AnsweringRig::new();
    let program = |a: &'static str, b: &'static str| {
        move |m: ClosureMonitor| {
            async move {
                let a = m
                    .resource("a", |goal| {
                        set(goal, "replace", a);
                        goal.delete_before_replace = Some(true);
                    })
                    .await?;
                m.resource("b", |goal| {
                    set(goal, "replace", b);
                    depend(goal, "replaceOn", &a);
                })
                .await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    rig.up(program("1", "1")).await.ok();
    rig.answers(|answers| answers.delete = Some(Box::new(|_| Some(Err(failed("busy"))))));
    rig.up(program("1", "2")).await.error();
    assert_eq!(rig.names(), ["proj-test", "default", "a", "b", "b"]);
    rig.default_answers();
    let run = rig.up(program("2", "2")).await.ok();
    assert_eq!(
        run.step_lines(),
        [
            "delete b",
            "delete-replaced b",
            "delete-replaced a",
            "replace a",
            "create-replacement a",
            "replace b",
            "create-replacement b",
        ]
    );
    assert_eq!(rig.names(), ["proj-test", "default", "a", "b"]);
    assert_eq!(rig.provider.objects.lock().len(), 2);
}

#[tokio::test]
async fn a_chain_of_resources_that_go_with_one_another_is_replaced_link_by_link() {
    let mut rig = AnsweringRig::new();
    let program = |value: &'static str| {
        move |m: ClosureMonitor| {
            async move {
                m.resource("a", |goal| {
                    set(goal, "replace", value);
                    goal.delete_before_replace = Some(true);
                })
                .await?;
                m.resource("b", |goal| goal.deleted_with = Some(urn("a")))
                    .await?;
                m.resource("c", |goal| goal.deleted_with = Some(urn("b")))
                    .await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    rig.up(program("1")).await.ok();
    rig.take_calls();
    rig.up(program("2")).await.ok();
    assert_eq!(
        rig.take_calls(),
        ["delete a id-1", "create a", "create b", "create c"],
        "deleting the first takes the others along"
    );
}
