//! What goes wrong, what is known afterwards, and what still happens.

use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt as _;
use nimbus_engine_model::{JournalEntry, OperationKind, StepOp};
use nimbus_engine_ports::{
    EngineEvent, InitFailure, Journal, JournalError, ProviderError, RegisterError, RegisterStatus,
};
use parking_lot::Mutex;

use super::support::*;
use nimbus_engine_deploy::DeployError;

async fn chain(rig: &mut AnsweringRig, value: &'static str) -> RigRun {
    rig.up(move |m| {
        async move {
            let a = m.resource("a", |goal| set(goal, "x", value)).await?;
            m.resource("b", |goal| depend(goal, "y", &a)).await?;
            m.resource("c", |goal| set(goal, "x", value)).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
}

fn fail_creating(rig: &AnsweringRig, name: &'static str, error: fn(&str) -> ProviderError) {
    rig.answers(|answers| {
        answers.create = Some(Box::new(move |request| {
            (request.name == name).then(|| Err(error("boom")))
        }));
    });
}

#[tokio::test]
async fn a_failed_create_stops_the_run_and_keeps_what_was_done() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            m.resource("old", |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    fail_creating(&rig, "b", failed);
    let run = chain(&mut rig, "1").await;
    let DeployError::StepsFailed { failures } = run.error() else {
        panic!("{:?}", run.error())
    };
    assert_eq!(
        (failures[0].urn.name(), failures[0].op),
        ("b", StepOp::Create)
    );
    assert!(!failures[0].unknown && run.outcome.unknown.is_empty());
    assert!(rig.find("a").is_some() && rig.find("old").is_some());
    assert!(rig.find("b").is_none() && rig.find("c").is_none());
    assert!(rig.snapshot.pending_operations.is_empty());
}

#[tokio::test]
async fn an_unknown_outcome_stays_pending_and_is_never_taken_for_a_failure() {
    let mut rig = AnsweringRig::new();
    fail_creating(&rig, "a", unknown);
    let run = chain(&mut rig, "1").await;
    let DeployError::StepsFailed { failures } = run.error() else {
        panic!("{:?}", run.error())
    };
    assert!(failures[0].unknown);
    assert_eq!(run.outcome.unknown.len(), 1);
    let [pending] = rig.snapshot.pending_operations.as_slice() else {
        panic!("nothing pending")
    };
    assert_eq!(
        (pending.kind, pending.resource.urn.name()),
        (OperationKind::Creating, "a")
    );
    assert!(
        run.entries
            .iter()
            .any(|entry| matches!(entry, JournalEntry::Unknown { .. }))
    );
    // The next run says so.
    rig.default_answers();
    assert!(chain(&mut rig, "1").await.says("nobody knows"));
}

#[tokio::test]
async fn an_unknown_update_or_delete_keeps_the_record() {
    let mut rig = AnsweringRig::new();
    chain(&mut rig, "1").await.ok();
    rig.answers(|answers| answers.update = Some(Box::new(|_| Some(Err(unknown("died"))))));
    chain(&mut rig, "2").await.error();
    assert_eq!(rig.resource("a").inputs["x"], "1".into());
    assert_eq!(
        rig.snapshot.pending_operations[0].kind,
        OperationKind::Updating
    );
    rig.snapshot.pending_operations.clear();
    rig.default_answers();
    rig.answers(|answers| answers.delete = Some(Box::new(|_| Some(Err(unknown("died"))))));
    rig.destroy().await.error();
    assert!(
        rig.snapshot
            .pending_operations
            .iter()
            .all(|p| p.kind == OperationKind::Deleting)
    );
    assert!(rig.find("a").is_some() && rig.find("default").is_some());
}

#[tokio::test]
async fn a_create_without_an_id_is_unknown() {
    let mut rig = AnsweringRig::new();
    rig.answers(|answers| answers.create = Some(Box::new(|_| Some(Ok(Default::default())))));
    let run = chain(&mut rig, "1").await;
    assert_eq!(
        run.outcome.unknown.len(),
        1,
        "something was made, nobody knows what"
    );
}

#[tokio::test]
async fn a_half_done_update_records_new_outputs_with_the_old_inputs() {
    let mut rig = AnsweringRig::new();
    chain(&mut rig, "1").await.ok();
    rig.answers(|answers| {
        answers.update = Some(Box::new(|request| {
            Some(Err(ProviderError::InitFailed(Box::new(InitFailure {
                id: request.id.clone(),
                properties: props(&[("x", "half".into())]),
                inputs: None,
                reasons: vec!["not ready".to_owned()],
                refresh_before_update: false,
            }))))
        }));
    });
    let run = chain(&mut rig, "2").await;
    run.error();
    let a = rig.resource("a");
    assert_eq!(a.inputs["x"], "1".into());
    assert_eq!(a.outputs["x"], "half".into());
    assert_eq!(a.init_errors, ["not ready"]);
    assert!(rig.snapshot.pending_operations.is_empty());
    let shown = run.events.iter().find_map(|event| match event {
        EngineEvent::ResourceFailed { step, .. } => step.new.clone(),
        _ => None,
    });
    assert_eq!(shown.unwrap().init_errors, ["not ready"]);
}

#[tokio::test]
async fn going_on_after_an_error_leaves_out_only_what_depends_on_it() {
    let mut rig = AnsweringRig::new();
    rig.options.continue_on_error = true;
    fail_creating(&rig, "a", failed);
    let run = rig
        .up(|m| {
            async move {
                let a = m.resource("a", |_| ()).await?;
                assert_eq!(a.status, RegisterStatus::Failed);
                let b = m.resource("b", |goal| depend(goal, "x", &a)).await?;
                assert_eq!(b.status, RegisterStatus::Skipped);
                let deep = m.resource("deep", |goal| depend(goal, "x", &b)).await?;
                assert_eq!(deep.status, RegisterStatus::Skipped);
                let c = m.resource("c", |_| ()).await?;
                assert_eq!(c.status, RegisterStatus::Succeeded);
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await;
    let DeployError::StepsFailed { failures } = run.error() else {
        panic!("{:?}", run.error())
    };
    assert_eq!(failures.len(), 1);
    assert_eq!(rig.names(), ["proj-test", "default", "c"]);
}

#[tokio::test]
async fn what_depends_on_a_failure_is_not_deleted_for_being_absent() {
    let mut rig = AnsweringRig::new();
    rig.options.continue_on_error = true;
    rig.up(|m| {
        async move {
            let a = m.resource("a", |goal| set(goal, "x", "1")).await?;
            m.resource("b", |goal| depend(goal, "y", &a)).await?;
            m.resource("unwanted", |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    rig.answers(|answers| answers.update = Some(Box::new(|_| Some(Err(failed("no"))))));
    // The language never gets to register b, because what it needs has no outputs.
    let run = rig
        .up(|m| {
            async move {
                let a = m.resource("a", |goal| set(goal, "x", "2")).await?;
                assert_eq!(a.status, RegisterStatus::Failed);
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await;
    run.error();
    assert!(rig.find("b").is_some());
    assert!(
        rig.find("unwanted").is_none(),
        "what does not depend on the failure goes"
    );
}

#[tokio::test]
async fn a_failed_delete_keeps_what_it_depends_on() {
    let mut rig = AnsweringRig::new();
    chain(&mut rig, "1").await.ok();
    rig.answers(|answers| {
        answers.delete = Some(Box::new(|request| {
            (request.name == "b").then(|| Err(failed("in use")))
        }));
    });
    rig.options.continue_on_error = true;
    rig.destroy().await.error();
    assert!(rig.find("b").is_some() && rig.find("a").is_some() && rig.find("default").is_some());
    assert!(rig.find("c").is_none());
}

#[tokio::test]
async fn after_a_cancel_running_steps_end_and_none_is_started() {
    let mut rig = AnsweringRig::new();
    let cancel = rig.cancel.clone();
    rig.answers(|answers| {
        answers.create = Some(Box::new(move |request| {
            if request.name == "a" {
                cancel.cancel();
            }
            None
        }));
    });
    let run = rig
        .up(|m| {
            async move {
                let a = m.resource("a", |_| ()).await;
                assert!(a.is_ok(), "it was running: {a:?}");
                let b = m.resource("b", |_| ()).await;
                assert!(matches!(b, Err(RegisterError::ShuttingDown)), "{b:?}");
                Err(RegisterError::ShuttingDown)
            }
            .boxed()
        })
        .await;
    assert!(matches!(run.error(), DeployError::Cancelled));
    assert!(rig.find("a").is_some(), "what was done is recorded");
    assert!(
        rig.take_calls().contains(&"cancel".to_owned()),
        "providers are asked to hurry"
    );
}

#[tokio::test]
async fn a_cancelled_operation_begins_nothing() {
    let mut rig = AnsweringRig::new();
    chain(&mut rig, "1").await.ok();
    rig.take_calls();
    rig.cancel.cancel();
    assert!(matches!(
        rig.destroy().await.error(),
        DeployError::Cancelled
    ));
    assert!(rig.take_calls().iter().all(|call| call == "cancel"));
    assert_eq!(rig.names().len(), 5);
}

/// Takes so many entries and no more, as a disk that fills up.
struct Full {
    left: Mutex<usize>,
}

#[async_trait]
impl Journal for Full {
    async fn append(&self, _: JournalEntry) -> Result<(), JournalError> {
        let mut left = self.left.lock();
        *left = left
            .checked_sub(1)
            .ok_or_else(|| JournalError::Unwritable {
                message: "disk full".to_owned(),
            })?;
        Ok(())
    }
}

#[tokio::test]
async fn nothing_happens_that_cannot_be_written_down_first() {
    for room in 0..12 {
        let rig = AnsweringRig::new();
        let (mut spec, _) = rig.spec(false);
        spec.journal = Arc::new(Full {
            left: Mutex::new(room),
        });
        let base = spec.base.clone();
        let program = lab_program();
        let outcome = nimbus_engine_deploy::update(spec, program).await;
        let made = rig.provider.objects.lock().len();
        let recorded = outcome
            .snapshot
            .resources
            .iter()
            .filter(|s| s.type_ == TYPE)
            .count();
        let pending = outcome.snapshot.pending_operations.len();
        assert!(
            made <= recorded + pending,
            "{made} made, {recorded} recorded, {pending} pending"
        );
        if outcome.result.is_err() {
            assert!(
                matches!(outcome.result, Err(DeployError::Journal(_))),
                "room for {room}"
            );
        }
        assert!(base.resources.is_empty());
    }
}

fn lab_program() -> Arc<dyn nimbus_engine_ports::Program> {
    program(|m| {
        async move {
            let a = m.resource("a", |_| ()).await?;
            m.resource("b", |goal| depend(goal, "x", &a)).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
}

#[tokio::test]
async fn a_plugin_that_cannot_be_loaded_fails_the_run_with_its_reason() {
    let mut rig = AnsweringRig::new();
    let run = rig
        .up(|m| {
            async move {
                let goal = nimbus_engine_model::Goal::new("pulumi:providers:missing", "p", true);
                m.registrar.register(goal).await?;
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(
        matches!(run.error(), DeployError::ProviderFailed { .. }),
        "{:?}",
        run.error()
    );
    assert!(run.says("not installed"));
}

#[tokio::test]
async fn states_that_contradict_themselves_are_refused() {
    let mut rig = AnsweringRig::new();
    chain(&mut rig, "1").await.ok();
    let twice = rig.resource("a");
    rig.snapshot.resources.push(twice);
    assert!(matches!(
        rig.destroy().await.error(),
        DeployError::BadState { .. }
    ));
    rig.snapshot.resources.pop();
    rig.edit("a", |state| state.id = None);
    rig.take_calls();
    assert!(matches!(
        rig.destroy().await.error(),
        DeployError::BadState { .. }
    ));
    assert!(rig.take_calls().is_empty());
}

#[tokio::test]
async fn a_failed_replacement_keeps_the_provider_that_the_old_one_needs() {
    let mut rig = AnsweringRig::new();
    rig.options.continue_on_error = true;
    let program = |provider: &'static str| {
        move |m: ClosureMonitor| {
            async move {
                let provider = m
                    .provider(provider, &[("replace", provider.into())])
                    .await?;
                m.resource("a", |goal| goal.provider = provider).await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    rig.up(program("first")).await.ok();
    fail_creating(&rig, "a", failed);
    rig.up(program("second")).await.error();
    assert_eq!(rig.names(), ["proj-test", "second", "first", "a"]);
    rig.default_answers();
    rig.up(program("second")).await.ok();
    assert_eq!(rig.names(), ["proj-test", "second", "a"]);
}

#[tokio::test]
async fn what_was_replaced_is_deleted_though_something_else_failed() {
    let mut rig = AnsweringRig::new();
    rig.options.continue_on_error = true;
    let program = |value: &'static str| {
        move |m: ClosureMonitor| {
            async move {
                m.resource("a", |goal| set(goal, "x", value)).await?;
                m.resource("b", |goal| {
                    set(goal, "replace", value);
                    if value == "1" {
                        goal.dependencies = vec![urn("a")];
                    }
                })
                .await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    rig.up(program("1")).await.ok();
    rig.answers(|answers| answers.update = Some(Box::new(|_| Some(Err(failed("no"))))));
    rig.up(program("2")).await.error();
    assert!(rig.snapshot.resources.iter().all(|state| !state.delete));
    assert_eq!(rig.provider.objects.lock().len(), 2);
}

#[tokio::test]
async fn a_provider_that_hangs_for_ever_is_left_behind_after_a_cancel() {
    let mut rig = AnsweringRig::new();
    rig.options.grace = std::time::Duration::from_millis(50);
    // Nobody else will ever come to this meeting.
    *rig.provider.meeting.lock() = Some(Arc::new(tokio::sync::Barrier::new(2)));
    let cancel = rig.cancel.clone();
    let fake = Arc::clone(&rig.provider);
    tokio::spawn(async move {
        while !fake.log.lock().iter().any(|call| call == "create a") {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    let run = chain(&mut rig, "1").await;
    assert!(matches!(run.error(), DeployError::Cancelled));
    assert_eq!(run.outcome.unknown.len(), 1);
    let [pending] = rig.snapshot.pending_operations.as_slice() else {
        panic!("nothing pending")
    };
    assert_eq!(pending.kind, OperationKind::Creating);
}

#[tokio::test]
async fn an_operation_that_nobody_waits_for_starts_nothing_more() {
    let rig = AnsweringRig::new();
    let meeting = Arc::new(tokio::sync::Barrier::new(2));
    *rig.provider.meeting.lock() = Some(Arc::clone(&meeting));
    let (spec, _) = rig.spec(false);
    let both = program(|m| {
        async move {
            // The second waits until the first lets it.
            let all = ["a", "b"].map(|name| m.resource(name, |_| ()));
            futures::future::try_join_all(all).await?;
            Ok(())
        }
        .boxed()
    });
    let mut operation = Box::pin(nimbus_engine_deploy::update(spec, both));
    while !rig
        .provider
        .log
        .lock()
        .iter()
        .any(|call| call == "create a")
    {
        let polled = futures::poll!(&mut operation);
        assert!(polled.is_pending());
        tokio::task::yield_now().await;
    }
    drop(operation);
    meeting.wait().await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(rig.take_calls(), ["create a"]);
}
