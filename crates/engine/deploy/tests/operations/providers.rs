//! Providers as resources.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use nimbus_engine_model::{Alias, AliasSpec, Goal, PropertyValue, ProviderRef, provider_type};
use nimbus_engine_ports::{DiffResponse, Diffs, RegisterError};

use super::support::*;

fn program(
    region: &'static str,
) -> impl Fn(ClosureMonitor) -> BoxFuture<'static, Result<(), RegisterError>> {
    move |m| {
        async move {
            let provider = m.provider("mine", &[("region", region.into())]).await?;
            m.resource("a", |goal| goal.provider = provider).await?;
            m.done();
            Ok(())
        }
        .boxed()
    }
}

fn configurations(rig: &AnsweringRig) -> Vec<String> {
    let calls = std::mem::take(&mut *rig.provider.log.lock());
    calls
        .into_iter()
        .filter(|call| call.starts_with("configure"))
        .collect()
}

#[tokio::test]
async fn a_provider_is_created_kept_updated_and_deleted_like_any_resource() {
    let mut rig = AnsweringRig::new();
    let run = rig.up(program("x")).await.ok();
    assert_eq!(run.step_lines(), ["create mine", "create a"]);
    assert_eq!(configurations(&rig), ["configure mine region=\"x\""]);
    let id = rig.resource("mine").id.clone();
    assert_eq!(
        rig.resource("mine").outputs,
        props(&[("region", "x".into())])
    );

    assert!(rig.up(program("x")).await.ok().step_lines().is_empty());
    assert_eq!(configurations(&rig).len(), 1, "configured once in each run");

    let run = rig.up(program("y")).await.ok();
    assert_eq!(run.step_lines(), ["update mine"]);
    assert_eq!(configurations(&rig), ["configure mine region=\"y\""]);
    assert_eq!(rig.resource("mine").id, id);

    let run = rig.destroy().await.ok();
    assert_eq!(run.step_lines(), ["delete a", "delete mine"]);
}

#[tokio::test]
async fn a_provider_that_refuses_its_configuration_harms_only_whoever_uses_it() {
    let mut rig = AnsweringRig::new();
    rig.answers(|answers| {
        answers.configure = Some(Box::new(|request| {
            (request.name == "bad").then(|| Err(failed("no such region")))
        }));
    });
    let unused = |m: ClosureMonitor| {
        async move {
            m.provider("bad", &[("region", "nowhere".into())]).await?;
            m.resource("a", |_| {}).await?;
            m.done();
            Ok(())
        }
        .boxed()
    };
    rig.up(unused).await.ok();
    assert!(rig.resource("a").id.is_some());
    assert!(rig.up(unused).await.ok().step_lines().is_empty());

    let used = |m: ClosureMonitor| {
        async move {
            let provider = m.provider("bad", &[("region", "nowhere".into())]).await?;
            m.resource("a", |_| {}).await?;
            m.resource("b", |goal| goal.provider = provider).await?;
            m.done();
            Ok(())
        }
        .boxed()
    };
    let run = rig.up(used).await;
    let error = run.outcome.result.expect_err("b cannot be made");
    let said = format!("{error} {:?}", run.events);
    assert!(said.contains("no such region"), "{said}");
    assert!(rig.snapshot.pending_operations.is_empty());
}

#[tokio::test]
async fn a_provider_that_sees_no_difference_goes_on_with_what_it_had() {
    let mut rig = AnsweringRig::new();
    rig.up(program("x")).await.ok();
    configurations(&rig);
    rig.answers(|answers| {
        answers.diff_config = Some(Box::new(|_| {
            Some(Ok(DiffResponse {
                changes: Diffs::None,
                ..DiffResponse::default()
            }))
        }));
    });
    assert!(rig.up(program("y")).await.ok().step_lines().is_empty());
    assert_eq!(configurations(&rig), ["configure mine region=\"x\""]);
    assert_eq!(
        rig.resource("mine").inputs["region"],
        "y".into(),
        "the record follows"
    );
}

#[tokio::test]
async fn a_replaced_provider_replaces_its_resources() {
    let mut rig = AnsweringRig::new();
    rig.up(program("x")).await.ok();
    rig.answers(|answers| {
        answers.diff_config = Some(Box::new(|request| {
            let mut diff = compare(&request.old_inputs, &request.new_inputs);
            diff.replace_keys = diff.changed_keys.clone();
            Some(Ok(diff))
        }));
    });
    let run = rig.up(program("y")).await.ok();
    assert_eq!(
        run.step_lines(),
        [
            "create-replacement mine",
            "replace mine",
            "create-replacement a",
            "replace a",
            "delete-replaced a",
            "delete-replaced mine",
        ]
    );
    let replaced = run
        .step_events()
        .find(|s| s.op.as_str() == "replace" && s.urn.name() == "a");
    assert_eq!(replaced.unwrap().replace_keys, ["provider"]);
}

#[tokio::test]
async fn a_resource_may_move_to_another_provider_that_can_take_over() {
    let mut rig = AnsweringRig::new();
    rig.up(program("x")).await.ok();
    let moved = |m: ClosureMonitor| {
        async move {
            m.provider("mine", &[("region", "x".into())]).await?;
            let other = m.provider("other", &[("region", "x".into())]).await?;
            m.resource("a", |goal| goal.provider = other).await?;
            m.done();
            Ok(())
        }
        .boxed()
    };
    let run = rig.up(moved).await.ok();
    assert_eq!(run.step_lines(), ["create other"]);
    let provider = ProviderRef::parse(&rig.resource("a").provider).unwrap();
    assert_eq!(provider.urn.name(), "other");
}

#[tokio::test]
async fn a_renamed_provider_serves_its_resources_under_the_new_name() {
    let mut rig = AnsweringRig::new();
    rig.up(program("x")).await.ok();
    let comparisons = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&comparisons);
    rig.answers(|answers| {
        answers.diff_config = Some(Box::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            None
        }));
    });
    let run = rig
        .up(|m| {
            async move {
                let mut goal = Goal::new(provider_type("pkg"), "renamed", true);
                goal.properties = props(&[("region", "x".into())]);
                let spec = AliasSpec {
                    name: Some("mine".to_owned()),
                    ..AliasSpec::default()
                };
                goal.aliases = vec![Alias::Spec(spec)];
                let provider = m.registrar.register(goal).await?;
                let reference = format!("{}::{}", provider.urn, provider.id.unwrap());
                m.resource("a", |goal| goal.provider = reference).await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert!(run.step_lines().is_empty(), "{:?}", run.step_lines());
    assert_eq!(
        comparisons.load(Ordering::Relaxed),
        1,
        "it is compared for itself, not again for its resource"
    );
    let provider = ProviderRef::parse(&rig.resource("a").provider).unwrap();
    assert_eq!(provider.urn.name(), "renamed");
    rig.destroy().await.ok();
}

#[tokio::test]
async fn a_provider_configured_by_what_does_not_exist_yet_knows_nothing() {
    let rig = AnsweringRig::new();
    let run = rig
        .preview(|m| {
            async move {
                let a = m.resource("a", |_| ()).await?;
                let region = a.outputs["out"].clone();
                assert_eq!(region, PropertyValue::Computed);
                let provider = m.provider("mine", &[("region", region)]).await?;
                let b = m
                    .resource("b", |goal| {
                        set(goal, "x", "1");
                        goal.provider = provider.clone();
                    })
                    .await?;
                assert!(b.outputs.is_empty(), "nothing is known of it");
                let reference = ProviderRef::parse(&provider).unwrap();
                assert!(reference.is_unknown());
                assert!(m.registrar.provider(&reference).is_some());
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert_eq!(run.step_lines(), ["create a", "create mine", "create b"]);
    assert_eq!(configurations(&rig), ["configure default "]);
}

#[tokio::test]
async fn a_comparison_that_an_unknown_configuration_prevents_is_shown_as_an_update() {
    let mut rig = AnsweringRig::new();
    rig.up(program("x")).await.ok();
    let run = rig
        .preview(|m| {
            async move {
                let provider = m
                    .provider("mine", &[("region", PropertyValue::Computed)])
                    .await?;
                m.resource("a", |goal| goal.provider = provider).await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert_eq!(run.step_lines(), ["update mine", "update a"]);
    assert!(run.says("not known yet"));
}

#[tokio::test]
async fn resources_keep_a_recorded_provider_that_the_program_dropped() {
    let mut rig = AnsweringRig::new();
    rig.up(program("x")).await.ok();
    let reference = rig.resource("a").provider.clone();
    let run = rig
        .up(move |m| {
            let provider = reference.clone();
            async move {
                m.resource("a", |goal| goal.provider = provider).await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert!(run.step_lines().is_empty(), "{:?}", run.step_lines());
    assert!(rig.find("mine").is_some());
}
