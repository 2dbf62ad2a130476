//! Protection, retention, secrets, ignored changes, reading.

use futures::FutureExt as _;
use nimbus_engine_model::{Goal, PropertyValue, StepOp};
use nimbus_engine_ports::CheckResponse;

use super::support::*;
use nimbus_engine_deploy::DeployError;

async fn one(rig: &mut AnsweringRig, change: fn(&mut Goal)) -> RigRun {
    rig.up(move |m| {
        async move {
            m.resource("a", change).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
}

async fn nothing(rig: &mut AnsweringRig) -> RigRun {
    rig.up(|m| {
        async move {
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
}

#[tokio::test]
async fn protection_forbids_replacing_and_deleting_until_it_is_lifted() {
    let mut rig = AnsweringRig::new();
    let protect = |goal: &mut Goal| {
        set(goal, "replace", "1");
        goal.protect = Some(true);
    };
    one(&mut rig, protect).await.ok();
    let replace = one(&mut rig, |goal| {
        set(goal, "replace", "2");
        goal.protect = Some(true);
    })
    .await;
    assert!(matches!(
        replace.error(),
        DeployError::Protected { cause: None, .. }
    ));
    assert!(nothing(&mut rig).await.outcome.result.is_err());
    assert!(rig.destroy().await.outcome.result.is_err());
    assert_eq!(rig.take_calls(), ["create a"]);
    // Lifting it and replacing may happen in one run.
    let lifted = one(&mut rig, |goal| set(goal, "replace", "2")).await.ok();
    assert_eq!(lifted.step_lines().len(), 3);
    nothing(&mut rig).await.ok();
}

#[tokio::test]
async fn all_protected_resources_are_named_at_once_and_the_rest_goes() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            m.resource("base", |_| ()).await?;
            m.resource("a", |goal| {
                goal.protect = Some(true);
                goal.dependencies = vec![urn("base")];
            })
            .await?;
            m.resource("b", |goal| goal.protect = Some(true)).await?;
            m.resource("c", |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    let run = rig.destroy().await;
    let DeployError::StepsFailed { failures } = run.error() else {
        panic!("{:?}", run.error())
    };
    assert_eq!(failures.len(), 2);
    assert!(rig.find("c").is_none());
    for name in ["a", "b", "base", "default"] {
        assert!(
            rig.find(name).is_some(),
            "{name} is protected or needed by what is"
        );
    }
    rig.options.ignore_protect = true;
    rig.destroy().await.ok();
    assert!(rig.snapshot.resources.is_empty());
}

#[tokio::test]
async fn retained_objects_are_forgotten_and_left() {
    let mut rig = AnsweringRig::new();
    one(&mut rig, |goal| goal.retain_on_delete = Some(true))
        .await
        .ok();
    let run = nothing(&mut rig).await.ok();
    assert_eq!(run.step_lines(), ["delete a"]);
    assert_eq!(rig.take_calls(), ["create a"]);
    assert!(rig.find("a").is_none());
}

#[tokio::test]
async fn what_goes_with_its_owner_is_not_deleted_on_its_own() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            m.resource("owner", |_| ()).await?;
            m.resource("part", |goal| goal.deleted_with = Some(urn("owner")))
                .await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    rig.take_calls();
    rig.destroy().await.ok();
    assert_eq!(rig.take_calls(), ["delete owner id-1"]);
}

#[tokio::test]
async fn ignored_changes_reach_neither_check_nor_diff_nor_update() {
    let mut rig = AnsweringRig::new();
    one(&mut rig, |goal| {
        set(goal, "x", "1");
        set(goal, "y", "1");
    })
    .await
    .ok();
    let run = one(&mut rig, |goal| {
        set(goal, "x", "2");
        set(goal, "y", "2");
        goal.ignore_changes = vec!["x".to_owned()];
    })
    .await
    .ok();
    assert_eq!(run.step_lines(), ["update a"]);
    let a = rig.resource("a");
    assert_eq!(
        (a.inputs["x"].clone(), a.inputs["y"].clone()),
        ("1".into(), "2".into())
    );
    assert_eq!(a.ignore_changes, ["x"]);
}

#[tokio::test]
async fn secrets_among_the_inputs_and_named_outputs_stay_secret() {
    let mut rig = AnsweringRig::new();
    // A provider that does not understand secrets returns them in the open.
    rig.answers(|answers| {
        answers.create = Some(Box::new(|request| {
            let mut properties = request.properties.clone();
            properties.insert("password".to_owned(), "hush".into());
            properties.insert("token".to_owned(), "t".into());
            let id = "id".to_owned();
            let response = nimbus_engine_ports::CreateResponse {
                id,
                properties,
                refresh_before_update: false,
            };
            Some(Ok(response))
        }));
    });
    let run = rig
        .up(|m| {
            async move {
                let a = m
                    .resource("a", |goal| {
                        set(goal, "password", PropertyValue::secret("hush".into()));
                        goal.additional_secret_outputs = vec!["token".to_owned(), "id".to_owned()];
                    })
                    .await?;
                for key in ["password", "token"] {
                    assert!(matches!(a.outputs[key], PropertyValue::Secret(_)), "{key}");
                }
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert!(run.says("id of a resource cannot be kept secret"));
    assert!(matches!(
        rig.resource("a").outputs["token"],
        PropertyValue::Secret(_)
    ));
}

#[tokio::test]
async fn refused_inputs_change_nothing_and_secrets_are_not_shown() {
    let mut rig = AnsweringRig::new();
    rig.answers(|answers| {
        answers.check = Some(Box::new(|request| {
            let failure = nimbus_engine_ports::CheckFailure {
                property: "password".to_owned(),
                reason: "too short".to_owned(),
            };
            let properties = request.news.clone();
            Some(Ok(CheckResponse {
                properties,
                failures: vec![failure],
            }))
        }));
    });
    let run = one(&mut rig, |goal| {
        set(goal, "password", PropertyValue::secret("hunter2".into()));
    })
    .await;
    assert!(matches!(run.error(), DeployError::CheckFailed { .. }));
    assert!(run.says("too short") && !run.says("hunter2"));
    assert!(rig.take_calls().is_empty());
}

#[tokio::test]
async fn reading_records_an_external_object_that_is_never_deleted() {
    let mut rig = AnsweringRig::new();
    rig.provider
        .objects
        .lock()
        .insert("theirs".to_owned(), props(&[("x", "1".into())]));
    let reading = |m: ClosureMonitor| {
        async move {
            let r = m.read("r", "theirs").await?;
            assert_eq!(r.outputs["x"], "1".into());
            m.done();
            Ok(())
        }
        .boxed()
    };
    let run = rig.up(reading).await.ok();
    assert_eq!(run.step_lines(), ["read r"]);
    assert!(rig.resource("r").external);
    assert_eq!(run.count(StepOp::Read), 0, "a first look is no change");
    assert_eq!(rig.up(reading).await.ok().step_lines(), ["read r"]);
    let run = nothing(&mut rig).await.ok();
    assert_eq!(run.step_lines(), ["discard r"]);
    assert!(rig.provider.objects.lock().contains_key("theirs"));
}

#[tokio::test]
async fn reading_what_is_not_there_fails() {
    let mut rig = AnsweringRig::new();
    let run = rig
        .up(|m| {
            async move {
                m.read("r", "nobody").await?;
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(run.says("there is no object nobody"));
    assert!(rig.find("r").is_none());
    assert!(run.outcome.unknown.is_empty(), "looking changes nothing");
}

#[tokio::test]
async fn a_managed_resource_may_give_way_to_a_read_one_and_back() {
    let mut rig = AnsweringRig::new();
    rig.provider
        .objects
        .lock()
        .insert("theirs".to_owned(), props(&[]));
    one(&mut rig, |_| ()).await.ok();
    let read = |id: &'static str| {
        move |m: ClosureMonitor| {
            async move {
                m.read("a", id).await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    let run = rig.up(read("theirs")).await.ok();
    assert_eq!(
        run.step_lines(),
        ["read-replacement a", "replace a", "delete-replaced a"]
    );
    assert!(rig.resource("a").external);
    let run = one(&mut rig, |_| ()).await.ok();
    assert_eq!(
        run.step_lines(),
        ["create-replacement a", "replace a", "discard-replaced a"]
    );
    assert!(!rig.resource("a").external);
    let ids: Vec<String> = rig.provider.objects.lock().keys().cloned().collect();
    assert_eq!(ids, ["id-2", "theirs"]);
    // Reading the very object that was managed only lets go of it.
    let run = rig.up(read("id-2")).await.ok();
    assert_eq!(run.step_lines(), ["read a"]);
    assert!(rig.provider.objects.lock().contains_key("id-2"));
}

#[tokio::test]
async fn time_limits_reach_the_provider() {
    let mut rig = AnsweringRig::new();
    let limits = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&limits);
    rig.answers(|answers| {
        answers.create = Some(Box::new(move |request| {
            seen.lock().push(request.timeout);
            None
        }));
    });
    one(&mut rig, |goal| goal.custom_timeouts.create = 1.5)
        .await
        .ok();
    assert_eq!(
        *limits.lock(),
        [Some(std::time::Duration::from_millis(1500))]
    );
}

#[tokio::test]
async fn inputs_of_an_object_that_was_only_read_say_nothing_about_a_new_one() {
    let mut rig = AnsweringRig::new();
    rig.provider
        .objects
        .lock()
        .insert("theirs".to_owned(), props(&[]));
    rig.up(|m| {
        async move {
            m.read("a", "theirs").await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    rig.answers(|answers| {
        answers.check = Some(Box::new(|request| {
            assert_eq!(request.olds, None);
            None
        }));
    });
    one(&mut rig, |_| ()).await.ok();
}
