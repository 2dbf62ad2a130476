//! Functions of the program around steps.

use std::sync::atomic::Ordering;

use futures::FutureExt as _;
use nimbus_engine_model::{Goal, HookKind};

use super::support::*;
use crate::DeployError;

fn hook(goal: &mut Goal, kind: HookKind, name: &str) {
    goal.hooks.entry(kind).or_default().push(name.to_owned());
}

async fn one(lab: &mut Lab, change: fn(&mut Goal)) -> Run {
    lab.up(move |m| {
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
    let mut lab = Lab::new();
    lab.hooks.failing.lock().push("guard".to_owned());
    let run = one(&mut lab, |goal| hook(goal, HookKind::BeforeCreate, "guard")).await;
    assert!(matches!(run.error(), DeployError::StepsFailed { .. }));
    assert!(lab.take_calls().is_empty());
    assert!(lab.snapshot.pending_operations.is_empty());
}

#[tokio::test]
async fn a_failing_hook_after_a_step_fails_the_run_but_the_step_is_recorded() {
    let mut lab = Lab::new();
    lab.hooks.failing.lock().push("after".to_owned());
    let run = one(&mut lab, |goal| hook(goal, HookKind::AfterCreate, "after")).await;
    assert!(
        matches!(run.error(), DeployError::HookFailed { .. }),
        "{:?}",
        run.error()
    );
    assert_eq!(lab.resource("a").id.as_deref(), Some("id-1"));
    assert!(lab.find("later").is_none(), "nothing more is started");
}

#[tokio::test]
async fn hooks_of_a_component_run_when_its_outputs_are_known() {
    let mut lab = Lab::new();
    let hooks = std::sync::Arc::clone(&lab.hooks);
    lab.up(move |m| {
        let hooks = std::sync::Arc::clone(&hooks);
        async move {
            let comp = m
                .component("comp", |goal| {
                    hook(goal, HookKind::BeforeCreate, "before");
                    hook(goal, HookKind::AfterCreate, "after");
                })
                .await?;
            assert_eq!(*hooks.calls.lock(), ["BeforeCreate comp"]);
            m.registrar.register_outputs(comp.urn, props(&[])).await?;
            assert_eq!(
                *hooks.calls.lock(),
                ["BeforeCreate comp", "AfterCreate comp"]
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
    let mut lab = Lab::new();
    lab.hooks.retries.store(2, Ordering::Relaxed);
    let tries = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&tries);
    lab.answers(|answers| {
        answers.create = Some(Box::new(move |request| {
            let first = request.name == "a" && counted.fetch_add(1, Ordering::Relaxed) < 2;
            first.then(|| Err(failed("flaky")))
        }));
    });
    one(&mut lab, |goal| hook(goal, HookKind::OnError, "again"))
        .await
        .ok();
    assert_eq!(tries.load(Ordering::Relaxed), 3);
    assert_eq!(*lab.hooks.calls.lock(), ["retry a 1", "retry a 2"]);
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
        let mut lab = Lab::new();
        lab.hooks.retries.store(5, Ordering::Relaxed);
        lab.answers(|answers| {
            answers.create = Some(Box::new(move |_| Some(Err(error.clone()))));
        });
        one(&mut lab, |goal| hook(goal, HookKind::OnError, "again"))
            .await
            .error();
        assert_eq!(lab.take_calls(), ["create a"], "{why}");
    }
}

#[tokio::test]
async fn only_hooks_that_want_to_run_in_previews_do() {
    let lab = Lab::new();
    lab.preview(|m| {
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
    assert_eq!(*lab.hooks.calls.lock(), ["AfterCreate a"]);
}

#[tokio::test]
async fn delete_hooks_need_a_program_that_has_them() {
    let mut lab = Lab::new();
    one(&mut lab, |goal| {
        hook(goal, HookKind::BeforeDelete, "farewell");
    })
    .await
    .ok();
    lab.hooks.missing.lock().push("farewell".to_owned());
    let run = lab.destroy().await;
    assert!(matches!(run.error(), DeployError::HooksNeedProgram { .. }));
    assert!(lab.find("a").is_some());
    lab.hooks.missing.lock().clear();
    lab.destroy().await.ok();
    assert_eq!(*lab.hooks.calls.lock(), ["BeforeDelete a"]);
}

#[tokio::test]
async fn an_error_hook_that_never_gives_up_is_given_up_on() {
    let mut lab = Lab::new();
    lab.hooks.retries.store(usize::MAX, Ordering::Relaxed);
    lab.answers(|answers| answers.create = Some(Box::new(|_| Some(Err(failed("always"))))));
    let run = one(&mut lab, |goal| hook(goal, HookKind::OnError, "again")).await;
    run.error();
    assert!(run.says("gave up"));
    assert_eq!(lab.take_calls().len(), 100);
}
