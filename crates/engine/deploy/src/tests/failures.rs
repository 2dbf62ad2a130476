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
use crate::DeployError;

async fn chain(lab: &mut Lab, value: &'static str) -> Run {
    lab.up(move |m| {
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

fn fail_creating(lab: &Lab, name: &'static str, error: fn(&str) -> ProviderError) {
    lab.answers(|answers| {
        answers.create = Some(Box::new(move |request| {
            (request.name == name).then(|| Err(error("boom")))
        }));
    });
}

#[tokio::test]
async fn a_failed_create_stops_the_run_and_keeps_what_was_done() {
    let mut lab = Lab::new();
    lab.up(|m| {
        async move {
            m.resource("old", |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    fail_creating(&lab, "b", failed);
    let run = chain(&mut lab, "1").await;
    let DeployError::StepsFailed { failures } = run.error() else {
        panic!("{:?}", run.error())
    };
    assert_eq!(
        (failures[0].urn.name(), failures[0].op),
        ("b", StepOp::Create)
    );
    assert!(!failures[0].unknown && run.outcome.unknown.is_empty());
    assert!(lab.find("a").is_some() && lab.find("old").is_some());
    assert!(lab.find("b").is_none() && lab.find("c").is_none());
    assert!(lab.snapshot.pending_operations.is_empty());
}

#[tokio::test]
async fn an_unknown_outcome_stays_pending_and_is_never_taken_for_a_failure() {
    let mut lab = Lab::new();
    fail_creating(&lab, "a", unknown);
    let run = chain(&mut lab, "1").await;
    let DeployError::StepsFailed { failures } = run.error() else {
        panic!("{:?}", run.error())
    };
    assert!(failures[0].unknown);
    assert_eq!(run.outcome.unknown.len(), 1);
    let [pending] = lab.snapshot.pending_operations.as_slice() else {
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
    lab.default_answers();
    assert!(chain(&mut lab, "1").await.says("nobody knows"));
}

#[tokio::test]
async fn an_unknown_update_or_delete_keeps_the_record() {
    let mut lab = Lab::new();
    chain(&mut lab, "1").await.ok();
    lab.answers(|answers| answers.update = Some(Box::new(|_| Some(Err(unknown("died"))))));
    chain(&mut lab, "2").await.error();
    assert_eq!(lab.resource("a").inputs["x"], "1".into());
    assert_eq!(
        lab.snapshot.pending_operations[0].kind,
        OperationKind::Updating
    );
    lab.snapshot.pending_operations.clear();
    lab.default_answers();
    lab.answers(|answers| answers.delete = Some(Box::new(|_| Some(Err(unknown("died"))))));
    lab.destroy().await.error();
    assert!(
        lab.snapshot
            .pending_operations
            .iter()
            .all(|p| p.kind == OperationKind::Deleting)
    );
    assert!(lab.find("a").is_some() && lab.find("default").is_some());
}

#[tokio::test]
async fn a_create_without_an_id_is_unknown() {
    let mut lab = Lab::new();
    lab.answers(|answers| answers.create = Some(Box::new(|_| Some(Ok(Default::default())))));
    let run = chain(&mut lab, "1").await;
    assert_eq!(
        run.outcome.unknown.len(),
        1,
        "something was made, nobody knows what"
    );
}

#[tokio::test]
async fn a_half_done_update_records_new_outputs_with_the_old_inputs() {
    let mut lab = Lab::new();
    chain(&mut lab, "1").await.ok();
    lab.answers(|answers| {
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
    let run = chain(&mut lab, "2").await;
    run.error();
    let a = lab.resource("a");
    assert_eq!(a.inputs["x"], "1".into());
    assert_eq!(a.outputs["x"], "half".into());
    assert_eq!(a.init_errors, ["not ready"]);
    assert!(lab.snapshot.pending_operations.is_empty());
    let shown = run.events.iter().find_map(|event| match event {
        EngineEvent::ResourceFailed { step, .. } => step.new.clone(),
        _ => None,
    });
    assert_eq!(shown.unwrap().init_errors, ["not ready"]);
}

#[tokio::test]
async fn going_on_after_an_error_leaves_out_only_what_depends_on_it() {
    let mut lab = Lab::new();
    lab.options.continue_on_error = true;
    fail_creating(&lab, "a", failed);
    let run = lab
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
    assert_eq!(lab.names(), ["shop-dev", "default", "c"]);
}

#[tokio::test]
async fn what_depends_on_a_failure_is_not_deleted_for_being_absent() {
    let mut lab = Lab::new();
    lab.options.continue_on_error = true;
    lab.up(|m| {
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
    lab.answers(|answers| answers.update = Some(Box::new(|_| Some(Err(failed("no"))))));
    // The language never gets to register b, because what it needs has no outputs.
    let run = lab
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
    assert!(lab.find("b").is_some());
    assert!(
        lab.find("unwanted").is_none(),
        "what does not depend on the failure goes"
    );
}

#[tokio::test]
async fn a_failed_delete_keeps_what_it_depends_on() {
    let mut lab = Lab::new();
    chain(&mut lab, "1").await.ok();
    lab.answers(|answers| {
        answers.delete = Some(Box::new(|request| {
            (request.name == "b").then(|| Err(failed("in use")))
        }));
    });
    lab.options.continue_on_error = true;
    lab.destroy().await.error();
    assert!(lab.find("b").is_some() && lab.find("a").is_some() && lab.find("default").is_some());
    assert!(lab.find("c").is_none());
}

#[tokio::test]
async fn after_a_cancel_running_steps_end_and_none_is_started() {
    let mut lab = Lab::new();
    let cancel = lab.cancel.clone();
    lab.answers(|answers| {
        answers.create = Some(Box::new(move |request| {
            if request.name == "a" {
                cancel.cancel();
            }
            None
        }));
    });
    let run = lab
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
    assert!(lab.find("a").is_some(), "what was done is recorded");
    assert!(
        lab.take_calls().contains(&"cancel".to_owned()),
        "providers are asked to hurry"
    );
}

#[tokio::test]
async fn a_cancelled_operation_begins_nothing() {
    let mut lab = Lab::new();
    chain(&mut lab, "1").await.ok();
    lab.take_calls();
    lab.cancel.cancel();
    assert!(matches!(
        lab.destroy().await.error(),
        DeployError::Cancelled
    ));
    assert!(lab.take_calls().iter().all(|call| call == "cancel"));
    assert_eq!(lab.names().len(), 5);
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
        let lab = Lab::new();
        let (mut spec, _) = lab.spec(false);
        spec.journal = Arc::new(Full {
            left: Mutex::new(room),
        });
        let base = spec.base.clone();
        let program = lab_program();
        let outcome = crate::update(spec, program).await;
        let made = lab.fake.objects.lock().len();
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
    let mut lab = Lab::new();
    let run = lab
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
    let mut lab = Lab::new();
    chain(&mut lab, "1").await.ok();
    let twice = lab.resource("a");
    lab.snapshot.resources.push(twice);
    assert!(matches!(
        lab.destroy().await.error(),
        DeployError::BadState { .. }
    ));
    lab.snapshot.resources.pop();
    lab.edit("a", |state| state.id = None);
    lab.take_calls();
    assert!(matches!(
        lab.destroy().await.error(),
        DeployError::BadState { .. }
    ));
    assert!(lab.take_calls().is_empty());
}

#[tokio::test]
async fn a_failed_replacement_keeps_the_provider_that_the_old_one_needs() {
    let mut lab = Lab::new();
    lab.options.continue_on_error = true;
    let program = |provider: &'static str| {
        move |m: Monitor| {
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
    lab.up(program("first")).await.ok();
    fail_creating(&lab, "a", failed);
    lab.up(program("second")).await.error();
    assert_eq!(lab.names(), ["shop-dev", "second", "first", "a"]);
    lab.default_answers();
    lab.up(program("second")).await.ok();
    assert_eq!(lab.names(), ["shop-dev", "second", "a"]);
}

#[tokio::test]
async fn what_was_replaced_is_deleted_though_something_else_failed() {
    let mut lab = Lab::new();
    lab.options.continue_on_error = true;
    let program = |value: &'static str| {
        move |m: Monitor| {
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
    lab.up(program("1")).await.ok();
    lab.answers(|answers| answers.update = Some(Box::new(|_| Some(Err(failed("no"))))));
    lab.up(program("2")).await.error();
    assert!(lab.snapshot.resources.iter().all(|state| !state.delete));
    assert_eq!(lab.fake.objects.lock().len(), 2);
}

#[tokio::test]
async fn a_provider_that_hangs_for_ever_is_left_behind_after_a_cancel() {
    let mut lab = Lab::new();
    lab.options.grace = std::time::Duration::from_millis(50);
    // Nobody else will ever come to this meeting.
    *lab.fake.meeting.lock() = Some(Arc::new(tokio::sync::Barrier::new(2)));
    let cancel = lab.cancel.clone();
    let fake = Arc::clone(&lab.fake);
    tokio::spawn(async move {
        while !fake.calls.lock().iter().any(|call| call == "create a") {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    let run = chain(&mut lab, "1").await;
    assert!(matches!(run.error(), DeployError::Cancelled));
    assert_eq!(run.outcome.unknown.len(), 1);
    let [pending] = lab.snapshot.pending_operations.as_slice() else {
        panic!("nothing pending")
    };
    assert_eq!(pending.kind, OperationKind::Creating);
}

#[tokio::test]
async fn an_operation_that_nobody_waits_for_starts_nothing_more() {
    let lab = Lab::new();
    let meeting = Arc::new(tokio::sync::Barrier::new(2));
    *lab.fake.meeting.lock() = Some(Arc::clone(&meeting));
    let (spec, _) = lab.spec(false);
    let both = program(|m| {
        async move {
            // The second waits until the first lets it.
            let all = ["a", "b"].map(|name| m.resource(name, |_| ()));
            futures::future::try_join_all(all).await?;
            Ok(())
        }
        .boxed()
    });
    let mut operation = Box::pin(crate::update(spec, both));
    while !lab.fake.calls.lock().iter().any(|call| call == "create a") {
        let polled = futures::poll!(&mut operation);
        assert!(polled.is_pending());
        tokio::task::yield_now().await;
    }
    drop(operation);
    meeting.wait().await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(lab.take_calls(), ["create a"]);
}
