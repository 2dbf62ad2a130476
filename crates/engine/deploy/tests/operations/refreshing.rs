//! The record follows the world, unless the world could not be seen.

use std::sync::Arc;

use futures::FutureExt as _;
use nimbus_engine_model::{
    OperationKind, PendingOperation, PropertyMap, PropertyValue, ResourceState, StepOp,
};
use nimbus_engine_ports::{
    CreateResponse, DiffKind, InitFailure, ProviderError, ReadResponse, RegisterError,
};

use super::support::*;
use nimbus_engine_deploy::{DeployError, Targets};

fn many(
    count: usize,
) -> impl Fn(ClosureMonitor) -> futures::future::BoxFuture<'static, Result<(), RegisterError>> {
    move |m| {
        async move {
            for i in 1..=count {
                m.resource(&format!("r{i}"), |goal| set(goal, "x", "1"))
                    .await?;
            }
            m.done();
            Ok(())
        }
        .boxed()
    }
}

#[tokio::test]
async fn drift_is_recorded_shown_from_its_own_side_and_put_right_by_the_next_run() {
    let mut rig = AnsweringRig::new();
    rig.up(many(2)).await.ok();
    rig.provider
        .objects
        .lock()
        .insert("id-1".to_owned(), props(&[("x", "drifted".into())]));
    let run = rig.refresh().await.ok();
    assert_eq!(
        run.outcome.changes,
        [(StepOp::Update, 1), (StepOp::Same, 2)].into()
    );
    let r1 = rig.resource("r1");
    assert_eq!(
        (&r1.inputs["x"], &r1.outputs["x"]),
        (&"drifted".into(), &"drifted".into())
    );
    assert!(r1.modified.is_some());
    let run = rig.up(many(2)).await.ok();
    assert_eq!(run.step_lines(), ["update r1"]);
}

#[tokio::test]
async fn a_refresh_shows_what_was_added_as_added() {
    let mut rig = AnsweringRig::new();
    rig.up(many(1)).await.ok();
    rig.answers(|answers| {
        answers.diff = Some(Box::new(|request| {
            // What is there has an input that the record does not ask for.
            assert_eq!(request.old_inputs["extra"], "1".into());
            let mut diff = compare(&request.old_inputs, &request.new_inputs);
            if let Some(extra) = diff.detailed.as_mut().and_then(|d| d.get_mut("extra")) {
                extra.kind = DiffKind::Delete;
            }
            Some(Ok(diff))
        }));
    });
    let found = props(&[("x", "1".into()), ("extra", "1".into())]);
    rig.provider.objects.lock().insert("id-1".to_owned(), found);
    let run = rig.refresh().await.ok();
    let shown = run.events.iter().find_map(|event| match event {
        nimbus_engine_ports::EngineEvent::ResourceOutputs { step, .. }
            if step.urn.name() == "r1" =>
        {
            step.detailed_diff.clone()
        }
        _ => None,
    });
    assert_eq!(shown.unwrap()["extra"].kind, DiffKind::Add);
}

#[tokio::test]
async fn a_vanished_object_leaves_the_record_and_references_to_it_too() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            for i in 1..=10 {
                m.resource(&format!("r{i}"), |_| ()).await?;
            }
            let r1 = m.registrar.resource(&urn("r1")).unwrap();
            m.resource("user", |goal| goal.dependencies = vec![r1.urn.clone()])
                .await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    rig.provider.objects.lock().remove("id-1");
    let run = rig.refresh().await.ok();
    assert_eq!(run.count(StepOp::Delete), 1);
    assert!(rig.find("r1").is_none());
    assert!(rig.resource("user").dependencies.is_empty());
}

#[tokio::test]
async fn whoever_cannot_look_removes_nothing() {
    for error in [
        failed("401"),
        unknown("connection lost"),
        ProviderError::Cancelled,
    ] {
        let mut rig = AnsweringRig::new();
        rig.up(many(12)).await.ok();
        rig.provider.objects.lock().remove("id-2");
        rig.provider
            .objects
            .lock()
            .insert("id-3".to_owned(), props(&[("x", "drifted".into())]));
        rig.answers(|answers| {
            answers.read = Some(Box::new(move |request| {
                (request.name == "r1").then(|| Err(error.clone()))
            }));
        });
        let run = rig.refresh().await;
        let DeployError::StepsFailed { failures } = run.error() else {
            panic!()
        };
        assert_eq!(failures.len(), 1);
        assert!(rig.find("r1").is_some(), "it was not seen");
        assert!(
            rig.find("r2").is_some(),
            "it was seen to be gone, but not by a reliable eye"
        );
        assert_eq!(rig.resource("r3").inputs["x"], "drifted".into());
    }
}

#[tokio::test]
async fn losing_many_objects_at_once_is_not_believed() {
    for (total, gone, believed) in [
        (20, 2, true),
        (20, 3, false),
        (100, 5, true),
        (100, 6, false),
    ] {
        let mut rig = AnsweringRig::new();
        rig.up(many(total)).await.ok();
        let before = rig.snapshot.resources.clone();
        for i in 1..=gone {
            rig.provider.objects.lock().remove(&format!("id-{i}"));
        }
        let run = rig.refresh().await;
        assert_eq!(run.outcome.result.is_ok(), believed, "{gone} of {total}");
        if !believed {
            assert!(matches!(run.error(), DeployError::MassRemoval { .. }));
            assert_eq!(rig.snapshot.resources, before);
            rig.options.allow_mass_removal = true;
            rig.refresh().await.ok();
        }
        assert_eq!(rig.snapshot.resources.len(), before.len() - gone);
    }
}

#[tokio::test]
async fn a_mass_removal_also_stops_an_update_that_refreshes_first() {
    let mut rig = AnsweringRig::new();
    rig.up(many(10)).await.ok();
    rig.provider.objects.lock().clear();
    rig.take_calls();
    rig.options.refresh = true;
    let run = rig.up(many(10)).await;
    assert!(matches!(run.error(), DeployError::MassRemoval { .. }));
    assert!(
        rig.take_calls()
            .iter()
            .all(|call| call.starts_with("read "))
    );
}

#[tokio::test]
async fn an_update_that_refreshes_first_decides_by_what_is_there() {
    let mut rig = AnsweringRig::new();
    rig.up(many(20)).await.ok();
    rig.provider.objects.lock().remove("id-1");
    rig.provider
        .objects
        .lock()
        .insert("id-2".to_owned(), props(&[("x", "drifted".into())]));
    rig.options.refresh = true;
    let run = rig.up(many(20)).await.ok();
    let steps: Vec<_> = run
        .step_lines()
        .into_iter()
        .filter(|step| !step.starts_with("refresh "))
        .collect();
    assert_eq!(steps, ["create r1", "update r2"]);
    assert_eq!(run.count(StepOp::Refresh), 0);
    assert_eq!(rig.snapshot.resources.len(), 22);
}

#[tokio::test]
async fn a_failed_look_stops_the_update_that_wanted_it() {
    let mut rig = AnsweringRig::new();
    rig.up(many(2)).await.ok();
    rig.answers(|answers| answers.read = Some(Box::new(|_| Some(Err(failed("401"))))));
    rig.options.refresh = true;
    rig.take_calls();
    rig.up(many(3)).await.error();
    assert!(
        rig.take_calls()
            .iter()
            .all(|call| call.starts_with("read "))
    );
}

#[tokio::test]
async fn providers_may_want_to_look_before_every_update() {
    let mut rig = AnsweringRig::new();
    rig.answers(|answers| {
        answers.create = Some(Box::new(|request| {
            (request.name == "r1").then(|| {
                Ok(CreateResponse {
                    id: "flagged".to_owned(),
                    properties: request.properties.clone(),
                    refresh_before_update: true,
                })
            })
        }));
    });
    rig.up(many(2)).await.ok();
    assert!(rig.resource("r1").refresh_before_update);
    rig.provider
        .objects
        .lock()
        .insert("flagged".to_owned(), props(&[("x", "drifted".into())]));
    rig.take_calls();
    let run = rig.up(many(2)).await.ok();
    assert_eq!(run.step_lines(), ["refresh r1", "update r1"]);
    assert_eq!(rig.take_calls()[0], "read r1 flagged");
}

#[tokio::test]
async fn an_unhealthy_object_is_a_warning_and_updated_next_time() {
    let mut rig = AnsweringRig::new();
    rig.up(many(1)).await.ok();
    rig.answers(|answers| {
        answers.read = Some(Box::new(|request| {
            Some(Err(ProviderError::InitFailed(Box::new(InitFailure {
                id: request.id.clone(),
                properties: request.state.clone(),
                inputs: Some(request.inputs.clone()),
                reasons: vec!["crash loop".to_owned()],
                refresh_before_update: false,
            }))))
        }));
    });
    let run = rig.refresh().await.ok();
    assert!(run.says("crash loop"));
    assert_eq!(rig.resource("r1").init_errors, ["crash loop"]);
    assert_eq!(rig.up(many(1)).await.ok().step_lines(), ["update r1"]);
}

#[tokio::test]
async fn only_targets_are_looked_at() {
    let mut rig = AnsweringRig::new();
    rig.up(many(3)).await.ok();
    rig.take_calls();
    rig.options.targets = Targets {
        patterns: vec!["**::r2".to_owned()],
        dependents: false,
    };
    rig.refresh().await.ok();
    assert_eq!(rig.take_calls(), ["read r2 id-2"]);
    rig.options.targets = Targets::default();
    rig.options.excludes = Targets {
        patterns: vec!["**::r2".to_owned()],
        dependents: false,
    };
    rig.refresh().await.ok();
    assert_eq!(rig.take_calls(), ["read r1 id-1", "read r3 id-3"]);
    rig.options.excludes = Targets::urns([&urn("nobody")]);
    assert!(matches!(
        rig.refresh().await.error(),
        DeployError::UnknownTargets { .. }
    ));
}

#[tokio::test]
async fn components_providers_and_external_objects_survive_as_they_are() {
    let mut rig = AnsweringRig::new();
    rig.provider
        .objects
        .lock()
        .insert("theirs".to_owned(), props(&[]));
    rig.up(|m| {
        async move {
            m.component("comp", |_| ()).await?;
            m.read("r", "theirs").await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    let before = rig.snapshot.resources.clone();
    rig.answers(|answers| {
        answers.diff = Some(Box::new(|request| {
            panic!("{} is not ours to compare", request.name)
        }));
    });
    let run = rig.refresh().await.ok();
    assert_eq!(rig.snapshot.resources, before);
    assert_eq!(run.count(StepOp::Update), 0);
}

#[tokio::test]
async fn looking_settles_interrupted_acts_but_not_creates() {
    let mut rig = AnsweringRig::new();
    rig.up(many(2)).await.ok();
    let pending = |rig: &AnsweringRig, kind, name| PendingOperation {
        kind,
        resource: rig.resource(name),
    };
    rig.snapshot.pending_operations = vec![
        pending(&rig, OperationKind::Updating, "r1"),
        pending(&rig, OperationKind::Deleting, "r2"),
    ];
    rig.refresh().await.ok();
    assert!(rig.snapshot.pending_operations.is_empty());
    rig.snapshot.pending_operations = vec![pending(&rig, OperationKind::Creating, "r1")];
    rig.refresh().await.ok();
    assert_eq!(
        rig.snapshot.pending_operations.len(),
        1,
        "nobody knows what to look for"
    );
}

/// A stack whose create of `r2` was cut short: it is pending, and nothing else knows of it.
async fn cut_short() -> AnsweringRig {
    let mut rig = AnsweringRig::new();
    rig.up(many(2)).await.ok();
    let made = rig.resource("r2");
    let mut pending = ResourceState::clone(&made);
    pending.id = None;
    pending.outputs.clear();
    pending.inputs.insert("name".to_owned(), "r2-7f3a".into());
    rig.snapshot.resources.retain(|known| known.urn != made.urn);
    rig.snapshot.pending_operations = vec![PendingOperation {
        kind: OperationKind::Creating,
        resource: Arc::new(pending),
    }];
    rig
}

/// A provider that has one object, with its name for an id.
fn has_one(rig: &AnsweringRig, size: &'static str) {
    rig.answers(|answers| {
        answers.read = Some(Box::new(move |request| {
            let is_there = request.id == "r2-7f3a" || request.name != "r2";
            let outputs = match request.name.as_str() {
                "r2" => props(&[("name", "r2-7f3a".into()), ("x", size.into())]),
                _ => request.state.clone(),
            };
            Some(Ok(ReadResponse {
                id: is_there.then(|| request.id.clone()),
                outputs,
                inputs: None,
                refresh_before_update: false,
            }))
        }));
    });
}

#[tokio::test]
async fn a_create_that_was_cut_short_is_found_by_the_name_of_its_object() {
    let mut rig = cut_short().await;
    has_one(&rig, "1");
    rig.refresh().await.ok();
    assert!(rig.snapshot.pending_operations.is_empty());
    assert_eq!(rig.resource("r2").id.as_deref(), Some("r2-7f3a"));
    rig.default_answers();
    let run = rig.up(many(2)).await.ok();
    assert!(
        !run.step_lines()
            .iter()
            .any(|step| step.starts_with("create")),
        "{:?}",
        run.step_lines()
    );
}

/// The same stack; the name of the object is another than its id, and the inputs have a token.
async fn cut_short_with_token(token: PropertyValue) -> AnsweringRig {
    let mut rig = cut_short().await;
    for operation in &mut rig.snapshot.pending_operations {
        let inputs = &mut Arc::make_mut(&mut operation.resource).inputs;
        inputs.insert("creationToken".to_owned(), token.clone());
    }
    rig.answers(|answers| {
        answers.read = Some(Box::new(|request| {
            let (id, outputs) = match (request.name.as_str(), request.id.as_str()) {
                ("r2", "token-1") => {
                    let found = [
                        ("name", "r2-7f3a".into()),
                        ("creationToken", "token-1".into()),
                    ];
                    (Some("i-0042".to_owned()), props(&found))
                }
                ("r2", _) => (None, PropertyMap::new()),
                _ => (Some(request.id.clone()), request.state.clone()),
            };
            Some(Ok(ReadResponse {
                id,
                outputs,
                inputs: None,
                refresh_before_update: false,
            }))
        }));
    });
    rig
}

#[tokio::test]
async fn a_create_that_was_cut_short_is_found_by_its_idempotency_token() {
    let mut rig = cut_short_with_token("token-1".into()).await;
    rig.refresh().await.ok();
    assert!(rig.snapshot.pending_operations.is_empty());
    assert_eq!(rig.resource("r2").id.as_deref(), Some("i-0042"));
}

#[tokio::test]
async fn a_token_that_is_secret_is_not_asked_for() {
    let mut rig = cut_short_with_token(PropertyValue::secret("token-1".into())).await;
    rig.refresh().await.ok();
    assert_eq!(rig.snapshot.pending_operations.len(), 1);
}

#[tokio::test]
async fn an_object_that_differs_from_what_was_asked_for_is_not_taken_for_it() {
    let mut rig = cut_short().await;
    has_one(&rig, "another");
    rig.refresh().await.ok();
    assert_eq!(rig.snapshot.pending_operations.len(), 1);
}

#[tokio::test]
async fn a_provider_that_finds_whatever_it_is_asked_for_is_not_believed() {
    let mut rig = cut_short().await;
    rig.answers(|answers| {
        answers.read = Some(Box::new(|request| {
            Some(Ok(ReadResponse {
                id: Some(request.id.clone()),
                outputs: props(&[("name", "r2-7f3a".into()), ("x", "1".into())]),
                inputs: None,
                refresh_before_update: false,
            }))
        }));
    });
    rig.refresh().await.ok();
    assert_eq!(rig.snapshot.pending_operations.len(), 1);
}

#[tokio::test]
async fn an_object_that_changed_its_id_is_followed() {
    let mut rig = AnsweringRig::new();
    rig.up(many(1)).await.ok();
    rig.answers(|answers| {
        answers.read = Some(Box::new(|request| {
            Some(Ok(ReadResponse {
                id: Some("renamed".to_owned()),
                outputs: request.state.clone(),
                inputs: None,
                refresh_before_update: false,
            }))
        }));
    });
    rig.refresh().await.ok();
    let r1 = rig.resource("r1");
    assert_eq!(r1.id.as_deref(), Some("renamed"));
    assert_eq!(
        r1.inputs["x"],
        "1".into(),
        "a provider that returns no inputs keeps them"
    );
}
