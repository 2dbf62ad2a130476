//! Programs that are run before a destroy or a refresh, and only listened to.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use nimbus_engine_model::{HookKind, StepOp};
use nimbus_engine_ports::{RegisterError, RegisterResult};

use super::support::*;
use nimbus_engine_deploy::DeployError;

/// The recorded stack: `a` behind a provider that is configured with `old`, inside `comp`.
async fn recorded() -> AnsweringRig {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            let provider = m.provider("prov", &[("key", "old".into())]).await?;
            let comp = m.component("comp", |_| ()).await?;
            let outputs = props(&[("is", "recorded".into())]);
            m.registrar
                .register_outputs(comp.urn.clone(), outputs)
                .await?;
            m.resource("a", |goal| {
                goal.provider = provider;
                goal.parent = Some(comp.urn);
                set(goal, "x", "1");
            })
            .await?;
            m.resource("gone", |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    rig.provider.log.lock().clear();
    rig
}

/// The same program later: another configuration, another input, a hook and a new resource with
/// one that needs it.
fn changed(m: ClosureMonitor) -> BoxFuture<'static, Result<(), RegisterError>> {
    async move {
        let provider = m.provider("prov", &[("key", "new".into())]).await?;
        let comp = m.component("comp", |_| ()).await?;
        let outputs = props(&[("is", "computed".into())]);
        m.registrar
            .register_outputs(comp.urn.clone(), outputs)
            .await?;
        let a = m
            .resource("a", |goal| {
                goal.provider = provider;
                goal.parent = Some(comp.urn);
                set(goal, "x", "2");
                let hooks = goal.hooks.entry(HookKind::BeforeDelete).or_default();
                hooks.push("farewell".to_owned());
            })
            .await?;
        assert_eq!(a.id.as_deref(), Some("id-1"));
        let new = m.resource("new", |_| ()).await?;
        assert_left_out(&new);
        let needs_new = m
            .resource("needs-new", |goal| depend(goal, "on", &new))
            .await?;
        assert_left_out(&needs_new);
        m.done();
        Ok(())
    }
    .boxed()
}

fn assert_left_out(result: &RegisterResult) {
    assert!(result.elided && result.id.is_none(), "{result:?}");
}

#[tokio::test]
async fn a_destroy_that_runs_the_program_configures_anew_calls_hooks_and_creates_nothing() {
    let mut rig = recorded().await;
    let (spec, watch) = rig.spec(false);
    let outcome = nimbus_engine_deploy::destroy_with_program(spec, program(changed)).await;
    let run = watch.into_run(outcome).ok();
    let calls = std::mem::take(&mut *rig.provider.log.lock());
    let at = |wanted: &str| calls.iter().position(|call| call.contains(wanted));
    let configured = at("configure prov key=\"new\"").unwrap_or_else(|| panic!("{calls:?}"));
    assert!(configured < at("delete a").unwrap(), "{calls:?}");
    assert!(at("delete gone").is_some(), "{calls:?}");
    assert!(
        at("create").is_none() && at("update").is_none(),
        "{calls:?}"
    );
    assert_eq!(rig.hooks.calls(), ["BeforeDelete farewell a"]);
    assert!(run.outcome.snapshot.resources.is_empty());
    assert_eq!(run.count(StepOp::Create), 0);
    rig.snapshot = run.outcome.snapshot;
}

#[tokio::test]
async fn the_journal_of_such_a_destroy_tells_the_same_as_the_outcome() {
    let rig = recorded().await;
    let (spec, watch) = rig.spec(false);
    let outcome = nimbus_engine_deploy::destroy_with_program(spec, program(changed)).await;
    let run = watch.into_run(outcome).ok();
    // Whoever finds the journal after any of its entries can replay it.
    for length in 0..=run.entries.len() {
        nimbus_engine_model::replay(&rig.snapshot, &run.entries[..length]).unwrap();
    }
    let whole = nimbus_engine_model::replay(&rig.snapshot, &run.entries).unwrap();
    assert_eq!(whole.resources, run.outcome.snapshot.resources);
}

#[tokio::test]
async fn a_program_that_fails_keeps_everything_from_being_deleted() {
    let rig = recorded().await;
    let (spec, watch) = rig.spec(false);
    let failing = program(|m| {
        async move {
            m.component("comp", |_| ()).await?;
            Err(RegisterError::Invalid {
                message: "no".to_owned(),
            })
        }
        .boxed()
    });
    let run = watch.into_run(nimbus_engine_deploy::destroy_with_program(spec, failing).await);
    assert!(matches!(run.error(), DeployError::ProgramFailed { .. }));
    assert!(rig.take_calls().is_empty());
    assert_eq!(
        run.outcome.snapshot.resources.len(),
        rig.snapshot.resources.len()
    );
}

#[tokio::test]
async fn a_preview_of_such_a_destroy_shows_the_deletes_and_does_nothing() {
    let rig = recorded().await;
    let (spec, watch) = rig.spec(true);
    let outcome = nimbus_engine_deploy::destroy_with_program(spec, program(changed)).await;
    let run = watch.into_run(outcome).ok();
    assert!(run.entries.is_empty());
    assert!(
        rig.take_calls()
            .iter()
            .all(|call| !call.starts_with("delete"))
    );
    for step in ["delete a", "delete gone", "delete comp", "delete prov"] {
        assert!(
            run.step_lines().contains(&step.to_owned()),
            "{:?}",
            run.step_lines()
        );
    }
}

#[tokio::test]
async fn a_refresh_that_runs_the_program_looks_through_providers_that_are_configured_anew() {
    let mut rig = recorded().await;
    let (spec, watch) = rig.spec(false);
    let outcome = nimbus_engine_deploy::refresh_with_program(spec, program(changed)).await;
    let run = watch.into_run(outcome).ok();
    let calls = std::mem::take(&mut *rig.provider.log.lock());
    let at = |wanted: &str| calls.iter().position(|call| call.contains(wanted));
    let configured = at("configure prov key=\"new\"").unwrap_or_else(|| panic!("{calls:?}"));
    assert!(configured < at("read a").unwrap(), "{calls:?}");
    assert!(at("read gone").is_some(), "{calls:?}");
    assert!(
        at("create").is_none() && at("update").is_none(),
        "{calls:?}"
    );
    rig.snapshot = run.outcome.snapshot;
    assert_eq!(rig.resource("a").inputs["x"], "1".into());
    assert_eq!(rig.resource("comp").outputs["is"], "recorded".into());
    assert_eq!(rig.resource("prov").inputs["key"], "new".into());
    assert!(rig.find("new").is_none() && rig.find("gone").is_some());
}
