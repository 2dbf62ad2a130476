//! Saved plans hold a later operation to what was seen.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use nimbus_engine_model::{PropertyValue, StepOp};
use nimbus_engine_ports::RegisterError;

use super::support::*;
use nimbus_engine_deploy::{DeployError, DeploymentPlan};

fn program(
    value: &'static str,
    extra: bool,
) -> impl Fn(ClosureMonitor) -> BoxFuture<'static, Result<(), RegisterError>> {
    move |m| {
        async move {
            let a = m.resource("a", |goal| set(goal, "x", value)).await?;
            m.resource("b", |goal| depend(goal, "y", &a)).await?;
            if extra {
                m.resource("extra", |_| ()).await?;
            }
            *m.outputs.lock() = Some(props(&[("value", value.into())]));
            Ok(())
        }
        .boxed()
    }
}

async fn plan(rig: &mut AnsweringRig, value: &'static str, extra: bool) -> DeploymentPlan {
    rig.options.generate_plan = true;
    let plan = rig
        .preview(program(value, extra))
        .await
        .ok()
        .outcome
        .plan
        .unwrap();
    rig.options.generate_plan = false;
    plan
}

#[tokio::test]
async fn what_was_planned_is_done_even_where_it_was_unknown() {
    let mut rig = AnsweringRig::new();
    rig.options.base_serial = "1".to_owned();
    let plan = plan(&mut rig, "1", false).await;
    let b = &plan.resources[&urn("b")];
    assert_eq!(b.ops, [StepOp::Create]);
    let inputs = &b.goal.as_ref().unwrap().inputs;
    assert_eq!(inputs.adds["y"], PropertyValue::Computed);
    rig.options.plan = Some(plan);
    rig.up(program("1", false)).await.ok();
    assert_eq!(rig.resource("b").inputs["y"], "out of id-1".into());
}

#[tokio::test]
async fn anything_else_is_refused_before_it_happens() {
    let mut rig = AnsweringRig::new();
    rig.up(program("1", false)).await.ok();
    rig.options.plan = Some(plan(&mut rig, "2", false).await);
    rig.take_calls();
    let other_value = rig.up(program("3", false)).await;
    assert!(matches!(
        other_value.error(),
        DeployError::PlanViolated { .. }
    ));
    assert!(rig.take_calls().is_empty());
    let more = rig.up(program("2", true)).await;
    assert!(matches!(more.error(), DeployError::PlanViolated { .. }));
    assert!(rig.find("extra").is_none());
}

#[tokio::test]
async fn planned_deletes_are_done_and_unplanned_ones_refused() {
    let mut rig = AnsweringRig::new();
    rig.up(program("1", true)).await.ok();
    let keeps = plan(&mut rig, "1", true).await;
    let deletes = plan(&mut rig, "1", false).await;
    rig.options.plan = Some(keeps);
    let run = rig.up(program("1", false)).await;
    assert!(matches!(run.error(), DeployError::PlanViolated { .. }));
    assert!(rig.find("extra").is_some());
    rig.options.plan = Some(deletes);
    rig.up(program("1", false)).await.ok();
    assert!(rig.find("extra").is_none());
}

#[tokio::test]
async fn a_plan_that_is_not_carried_out_in_full_is_violated() {
    let mut rig = AnsweringRig::new();
    let planned = plan(&mut rig, "1", true).await;
    rig.options.plan = Some(planned);
    let run = rig.up(program("1", false)).await;
    assert!(
        matches!(run.error(), DeployError::PlanViolated { .. }),
        "{:?}",
        run.error()
    );
}

#[tokio::test]
async fn a_plan_for_another_state_is_stale() {
    let mut rig = AnsweringRig::new();
    rig.options.base_serial = "1".to_owned();
    rig.options.plan = Some(plan(&mut rig, "1", false).await);
    rig.options.base_serial = "2".to_owned();
    let run = rig.up(program("1", false)).await;
    assert!(matches!(run.error(), DeployError::StalePlan { .. }));
    assert!(rig.take_calls().is_empty());
}

#[tokio::test]
async fn generated_names_come_out_as_planned() {
    let mut rig = AnsweringRig::new();
    rig.answers(|answers| {
        answers.check = Some(Box::new(|request| {
            let mut properties = request.news.clone();
            properties.insert(
                "name".to_owned(),
                format!("{:?}", request.random_seed).into(),
            );
            Some(Ok(nimbus_engine_ports::CheckResponse {
                properties,
                failures: Vec::new(),
            }))
        }));
    });
    let mut planned = plan(&mut rig, "1", false).await;
    for resource in planned.resources.values_mut() {
        // As if another process with other chance had made the plan.
        resource.seed = resource.seed.map(|_| [9; 32]);
        if let Some(goal) = &mut resource.goal
            && goal.inputs.adds.contains_key("name")
        {
            let name = format!("{:?}", [9_u8; 32].to_vec());
            goal.inputs.adds.insert("name".to_owned(), name.into());
        }
    }
    rig.options.plan = Some(planned);
    rig.up(program("1", false)).await.ok();
}

#[tokio::test]
async fn what_a_plan_does_not_mention_must_not_change_in_any_way() {
    let mut rig = AnsweringRig::new();
    rig.up(program("1", false)).await.ok();
    let mut silent = plan(&mut rig, "1", false).await;
    silent.resources.remove(&urn("b"));
    rig.options.plan = Some(silent);
    rig.up(program("1", false)).await.ok();
    let run = rig
        .up(|m| {
            async move {
                let a = m.resource("a", |goal| set(goal, "x", "1")).await?;
                m.resource("b", |goal| {
                    depend(goal, "y", &a);
                    goal.protect = Some(true);
                })
                .await?;
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(matches!(run.error(), DeployError::PlanViolated { .. }));
    assert!(!rig.resource("b").protect);
}
