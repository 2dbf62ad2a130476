//! Previews: the same decisions, nothing done, unknown stays unknown.

use futures::FutureExt as _;
use nimbus_engine_model::{PropertyValue, StepOp};
use nimbus_engine_ports::EngineEvent;

use super::support::*;
use nimbus_engine_deploy::DeployError;

fn two(
    value: &'static str,
) -> impl Fn(
    ClosureMonitor,
) -> futures::future::BoxFuture<'static, Result<(), nimbus_engine_ports::RegisterError>> {
    move |m| {
        async move {
            let a = m.resource("a", |goal| set(goal, "replace", value)).await?;
            m.resource("b", |goal| depend(goal, "x", &a)).await?;
            m.done();
            Ok(())
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_preview_decides_alike_and_touches_nothing() {
    let mut rig = AnsweringRig::new();
    let preview = rig.preview(two("1")).await.ok();
    assert_eq!(preview.step_lines(), ["create a", "create b"]);
    assert!(preview.entries.is_empty() && rig.take_calls().is_empty());
    rig.up(two("1")).await.ok();
    rig.take_calls();
    let preview = rig.preview(two("2")).await.ok();
    assert_eq!(
        preview.step_lines(),
        [
            "create-replacement a",
            "replace a",
            "update b",
            "delete-replaced a"
        ]
    );
    assert!(rig.take_calls().is_empty());
    assert!(preview.events.iter().all(|event| match event {
        EngineEvent::ResourcePre { planning, .. } => *planning,
        _ => true,
    }));
}

#[tokio::test]
async fn ids_and_outputs_of_what_does_not_exist_yet_are_unknown() {
    let rig = AnsweringRig::new();
    let run = rig
        .preview(|m| {
            async move {
                let a = m.resource("a", |goal| set(goal, "x", "1")).await?;
                assert_eq!(a.id, None);
                assert_eq!(a.outputs["x"], "1".into());
                assert_eq!(a.outputs["out"], PropertyValue::Computed);
                m.resource("b", |goal| depend(goal, "y", &a)).await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    let b = run
        .step_events()
        .find(|step| step.urn.name() == "b")
        .unwrap();
    assert_eq!(b.new.as_ref().unwrap().inputs["y"], PropertyValue::Computed);
    assert_eq!(run.count(StepOp::Create), 3);
}

#[tokio::test]
async fn a_preview_shows_everything_that_is_wrong_and_fails() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            for name in ["a", "b"] {
                m.resource(name, |goal| {
                    set(goal, "replace", "1");
                    goal.protect = Some(true);
                })
                .await?;
            }
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    let run = rig
        .preview(|m| {
            async move {
                for name in ["a", "b"] {
                    m.resource(name, |goal| {
                        set(goal, "replace", "2");
                        goal.protect = Some(true);
                    })
                    .await?;
                }
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(matches!(run.error(), DeployError::Protected { .. }));
    let complaints = run.events.iter().filter(|event| match event {
        EngineEvent::Diagnostic(diagnostic) => diagnostic.message.contains("is protected"),
        _ => false,
    });
    assert_eq!(complaints.count(), 2);
}
