//! Protection, retention, secrets, ignored changes, reading.

use futures::FutureExt as _;
use nimbus_engine_model::{Goal, PropertyValue, StepOp};
use nimbus_engine_ports::CheckResponse;

use super::support::*;
use crate::DeployError;

async fn one(lab: &mut Lab, change: fn(&mut Goal)) -> Run {
    lab.up(move |m| {
        async move {
            m.resource("a", change).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
}

async fn nothing(lab: &mut Lab) -> Run {
    lab.up(|m| {
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
    let mut lab = Lab::new();
    let protect = |goal: &mut Goal| {
        set(goal, "replace", "1");
        goal.protect = Some(true);
    };
    one(&mut lab, protect).await.ok();
    let replace = one(&mut lab, |goal| {
        set(goal, "replace", "2");
        goal.protect = Some(true);
    })
    .await;
    assert!(matches!(
        replace.error(),
        DeployError::Protected { cause: None, .. }
    ));
    assert!(nothing(&mut lab).await.outcome.result.is_err());
    assert!(lab.destroy().await.outcome.result.is_err());
    assert_eq!(lab.take_calls(), ["create a"]);
    // Lifting it and replacing may happen in one run.
    let lifted = one(&mut lab, |goal| set(goal, "replace", "2")).await.ok();
    assert_eq!(lifted.steps().len(), 3);
    nothing(&mut lab).await.ok();
}

#[tokio::test]
async fn all_protected_resources_are_named_at_once_and_the_rest_goes() {
    let mut lab = Lab::new();
    lab.up(|m| {
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
    let run = lab.destroy().await;
    let DeployError::StepsFailed { failures } = run.error() else {
        panic!("{:?}", run.error())
    };
    assert_eq!(failures.len(), 2);
    assert!(lab.find("c").is_none());
    for name in ["a", "b", "base", "default"] {
        assert!(
            lab.find(name).is_some(),
            "{name} is protected or needed by what is"
        );
    }
    lab.options.ignore_protect = true;
    lab.destroy().await.ok();
    assert!(lab.snapshot.resources.is_empty());
}

#[tokio::test]
async fn retained_objects_are_forgotten_and_left() {
    let mut lab = Lab::new();
    one(&mut lab, |goal| goal.retain_on_delete = Some(true))
        .await
        .ok();
    let run = nothing(&mut lab).await.ok();
    assert_eq!(run.steps(), ["delete a"]);
    assert_eq!(lab.take_calls(), ["create a"]);
    assert!(lab.find("a").is_none());
}

#[tokio::test]
async fn what_goes_with_its_owner_is_not_deleted_on_its_own() {
    let mut lab = Lab::new();
    lab.up(|m| {
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
    lab.take_calls();
    lab.destroy().await.ok();
    assert_eq!(lab.take_calls(), ["delete owner id-1"]);
}

#[tokio::test]
async fn ignored_changes_reach_neither_check_nor_diff_nor_update() {
    let mut lab = Lab::new();
    one(&mut lab, |goal| {
        set(goal, "x", "1");
        set(goal, "y", "1");
    })
    .await
    .ok();
    let run = one(&mut lab, |goal| {
        set(goal, "x", "2");
        set(goal, "y", "2");
        goal.ignore_changes = vec!["x".to_owned()];
    })
    .await
    .ok();
    assert_eq!(run.steps(), ["update a"]);
    let a = lab.resource("a");
    assert_eq!(
        (a.inputs["x"].clone(), a.inputs["y"].clone()),
        ("1".into(), "2".into())
    );
    assert_eq!(a.ignore_changes, ["x"]);
}

#[tokio::test]
async fn secrets_among_the_inputs_and_named_outputs_stay_secret() {
    let mut lab = Lab::new();
    // A provider that does not understand secrets returns them in the open.
    lab.answers(|answers| {
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
    let run = lab
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
        lab.resource("a").outputs["token"],
        PropertyValue::Secret(_)
    ));
}

#[tokio::test]
async fn refused_inputs_change_nothing_and_secrets_are_not_shown() {
    let mut lab = Lab::new();
    lab.answers(|answers| {
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
    let run = one(&mut lab, |goal| {
        set(goal, "password", PropertyValue::secret("hunter2".into()));
    })
    .await;
    assert!(matches!(run.error(), DeployError::CheckFailed { .. }));
    assert!(run.says("too short") && !run.says("hunter2"));
    assert!(lab.take_calls().is_empty());
}

#[tokio::test]
async fn reading_records_an_external_object_that_is_never_deleted() {
    let mut lab = Lab::new();
    lab.fake
        .objects
        .lock()
        .insert("theirs".to_owned(), props(&[("x", "1".into())]));
    let reading = |m: Monitor| {
        async move {
            let r = m.read("r", "theirs").await?;
            assert_eq!(r.outputs["x"], "1".into());
            m.done();
            Ok(())
        }
        .boxed()
    };
    let run = lab.up(reading).await.ok();
    assert_eq!(run.steps(), ["read r"]);
    assert!(lab.resource("r").external);
    assert_eq!(run.count(StepOp::Read), 0, "a first look is no change");
    assert_eq!(lab.up(reading).await.ok().steps(), ["read r"]);
    let run = nothing(&mut lab).await.ok();
    assert_eq!(run.steps(), ["discard r"]);
    assert!(lab.fake.objects.lock().contains_key("theirs"));
}

#[tokio::test]
async fn reading_what_is_not_there_fails() {
    let mut lab = Lab::new();
    let run = lab
        .up(|m| {
            async move {
                m.read("r", "nobody").await?;
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(run.says("there is no object nobody"));
    assert!(lab.find("r").is_none());
    assert!(run.outcome.unknown.is_empty(), "looking changes nothing");
}

#[tokio::test]
async fn a_managed_resource_may_give_way_to_a_read_one_and_back() {
    let mut lab = Lab::new();
    lab.fake
        .objects
        .lock()
        .insert("theirs".to_owned(), props(&[]));
    one(&mut lab, |_| ()).await.ok();
    let read = |id: &'static str| {
        move |m: Monitor| {
            async move {
                m.read("a", id).await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    let run = lab.up(read("theirs")).await.ok();
    assert_eq!(
        run.steps(),
        ["read-replacement a", "replace a", "delete-replaced a"]
    );
    assert!(lab.resource("a").external);
    let run = one(&mut lab, |_| ()).await.ok();
    assert_eq!(
        run.steps(),
        ["create-replacement a", "replace a", "discard-replaced a"]
    );
    assert!(!lab.resource("a").external);
    let ids: Vec<String> = lab.fake.objects.lock().keys().cloned().collect();
    assert_eq!(ids, ["id-2", "theirs"]);
    // Reading the very object that was managed only lets go of it.
    let run = lab.up(read("id-2")).await.ok();
    assert_eq!(run.steps(), ["read a"]);
    assert!(lab.fake.objects.lock().contains_key("id-2"));
}

#[tokio::test]
async fn time_limits_reach_the_provider() {
    let mut lab = Lab::new();
    let limits = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&limits);
    lab.answers(|answers| {
        answers.create = Some(Box::new(move |request| {
            seen.lock().push(request.timeout);
            None
        }));
    });
    one(&mut lab, |goal| goal.custom_timeouts.create = 1.5)
        .await
        .ok();
    assert_eq!(
        *limits.lock(),
        [Some(std::time::Duration::from_millis(1500))]
    );
}

#[tokio::test]
async fn inputs_of_an_object_that_was_only_read_say_nothing_about_a_new_one() {
    let mut lab = Lab::new();
    lab.fake
        .objects
        .lock()
        .insert("theirs".to_owned(), props(&[]));
    lab.up(|m| {
        async move {
            m.read("a", "theirs").await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    lab.answers(|answers| {
        answers.check = Some(Box::new(|request| {
            assert_eq!(request.olds, None);
            None
        }));
    });
    one(&mut lab, |_| ()).await.ok();
}
