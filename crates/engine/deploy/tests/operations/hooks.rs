//! Functions of the program around steps.

use std::sync::atomic::Ordering;

use futures::FutureExt as _;
use nimbus_engine_model::{Goal, HookKind};

use super::support::*;
use nimbus_engine_deploy::DeployError;

fn hook(goal: &mut Goal, kind: HookKind, name: &str) {
    goal.hooks.entry(kind).or_default().push(name.to_owned());
}

async fn one(rig: &mut AnsweringRig, change: fn(&mut Goal)) -> RigRun {
    rig.up(move |m| {
        async move {
            m.resource("a", change).await?;
            m.resource("later", |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
}

#[tokio::test]
async fn a_failing_hook_before_a_step_stops_it_and_nothing_is_pending() {
    let mut rig = AnsweringRig::new();
    rig.hooks.fail("guard");
    let run = one(&mut rig, |goal| hook(goal, HookKind::BeforeCreate, "guard")).await;
    assert!(matches!(run.error(), DeployError::StepsFailed { .. }));
    assert!(rig.take_calls().is_empty());
    assert!(rig.snapshot.pending_operations.is_empty());
}

#[tokio::test]
async fn a_failing_hook_after_a_step_fails_the_run_but_the_step_is_recorded() {
    let mut rig = AnsweringRig::new();
    rig.hooks.fail("after");
    let run = one(&mut rig, |goal| hook(goal, HookKind::AfterCreate, "after")).await;
    assert!(
        matches!(run.error(), DeployError::HookFailed { .. }),
        "{:?}",
        run.error()
    );
    assert_eq!(rig.resource("a").id.as_deref(), Some("id-1"));
    assert!(rig.find("later").is_none(), "nothing more is started");
}

#[tokio::test]
async fn hooks_of_a_component_run_when_its_outputs_are_known() {
    let mut rig = AnsweringRig::new();
    let hooks = std::sync::Arc::clone(&rig.hooks);
    rig.up(move |m| {
        let hooks = std::sync::Arc::clone(&hooks);
        async move {
            let comp = m
                .component("comp", |goal| {
                    hook(goal, HookKind::BeforeCreate, "before");
                    hook(goal, HookKind::AfterCreate, "after");
                })
                .await?;
            assert_eq!(hooks.calls(), ["BeforeCreate before comp"]);
            m.registrar.register_outputs(comp.urn, props(&[])).await?;
            assert_eq!(
                hooks.calls(),
                ["BeforeCreate before comp", "AfterCreate after comp"]
            );
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
}

#[tokio::test]
async fn an_error_hook_gets_another_try() {
    let mut rig = AnsweringRig::new();
    rig.hooks.retry("again", 2);
    let tries = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&tries);
    rig.answers(|answers| {
        answers.create = Some(Box::new(move |request| {
            let first = request.name == "a" && counted.fetch_add(1, Ordering::Relaxed) < 2;
            first.then(|| Err(failed("flaky")))
        }));
    });
    one(&mut rig, |goal| hook(goal, HookKind::OnError, "again"))
        .await
        .ok();
    assert_eq!(tries.load(Ordering::Relaxed), 3);
    assert_eq!(rig.hooks.calls(), ["retry? again 1", "retry? again 2"]);
}

#[tokio::test]
async fn what_may_have_happened_is_not_tried_again() {
    for (error, why) in [
        (unknown("died"), "nobody knows whether it exists"),
        (
            nimbus_engine_ports::ProviderError::InitFailed(Default::default()),
            "it exists: another try would make a second one",
        ),
    ] {
        let mut rig = AnsweringRig::new();
        rig.hooks.retry("again", 5);
        rig.answers(|answers| {
            answers.create = Some(Box::new(move |_| Some(Err(error.clone()))));
        });
        one(&mut rig, |goal| hook(goal, HookKind::OnError, "again"))
            .await
            .error();
        assert_eq!(rig.take_calls(), ["create a"], "{why}");
    }
}

#[tokio::test]
async fn only_hooks_that_want_to_run_in_previews_do() {
    let rig = AnsweringRig::new();
    rig.preview(|m| {
        async move {
            m.resource("a", |goal| {
                hook(goal, HookKind::BeforeCreate, "sometimes");
                hook(goal, HookKind::AfterCreate, "always");
            })
            .await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    assert_eq!(rig.hooks.calls(), ["AfterCreate always a"]);
}

#[tokio::test]
async fn delete_hooks_need_a_program_that_has_them() {
    let mut rig = AnsweringRig::new();
    one(&mut rig, |goal| {
        hook(goal, HookKind::BeforeDelete, "farewell");
    })
    .await
    .ok();
    rig.hooks.forget("farewell");
    let run = rig.destroy().await;
    assert!(matches!(run.error(), DeployError::HooksNeedProgram { .. }));
    assert!(rig.find("a").is_some());
    rig.hooks.remember_all();
    rig.destroy().await.ok();
    assert_eq!(rig.hooks.calls(), ["BeforeDelete farewell a"]);
}

#[tokio::test]
async fn an_error_hook_that_never_gives_up_is_given_up_on() {
    let mut rig = AnsweringRig::new();
    rig.hooks.retry("again", usize::MAX);
    rig.answers(|answers| answers.create = Some(Box::new(|_| Some(Err(failed("always"))))));
    let run = one(&mut rig, |goal| hook(goal, HookKind::OnError, "again")).await;
    run.error();
    assert!(run.says("gave up"));
    assert_eq!(rig.take_calls().len(), 100);
}
