//! Programs that are run before a destroy or a refresh, and only listened to.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use nimbus_engine_model::{HookKind, StepOp};
use nimbus_engine_ports::{RegisterError, RegisterResult};

use super::support::*;
use crate::DeployError;

/// The recorded stack: `a` behind a provider that is configured with `old`, inside `comp`.
async fn recorded() -> Lab {
    let mut lab = Lab::new();
    lab.up(|m| {
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
    lab.fake.calls.lock().clear();
    lab
}

/// The same program later: another configuration, another input, a hook and a new resource with
/// one that needs it.
fn changed(m: Monitor) -> BoxFuture<'static, Result<(), RegisterError>> {
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
    let mut lab = recorded().await;
    let (spec, watch) = lab.spec(false);
    let outcome = crate::destroy_with_program(spec, program(changed)).await;
    let run = watch.into_run(outcome).ok();
    let calls = std::mem::take(&mut *lab.fake.calls.lock());
    let at = |wanted: &str| calls.iter().position(|call| call.contains(wanted));
    let configured = at("configure prov key=\"new\"").unwrap_or_else(|| panic!("{calls:?}"));
    assert!(configured < at("delete a").unwrap(), "{calls:?}");
    assert!(at("delete gone").is_some(), "{calls:?}");
    assert!(
        at("create").is_none() && at("update").is_none(),
        "{calls:?}"
    );
    assert_eq!(*lab.hooks.calls.lock(), ["BeforeDelete a"]);
    assert!(run.outcome.snapshot.resources.is_empty());
    assert_eq!(run.count(StepOp::Create), 0);
    lab.snapshot = run.outcome.snapshot;
}

#[tokio::test]
async fn the_journal_of_such_a_destroy_tells_the_same_as_the_outcome() {
    let lab = recorded().await;
    let (spec, watch) = lab.spec(false);
    let outcome = crate::destroy_with_program(spec, program(changed)).await;
    let run = watch.into_run(outcome).ok();
    // Whoever finds the journal after any of its entries can replay it.
    for length in 0..=run.entries.len() {
        nimbus_engine_model::replay(&lab.snapshot, &run.entries[..length]).unwrap();
    }
    let whole = nimbus_engine_model::replay(&lab.snapshot, &run.entries).unwrap();
    assert_eq!(whole.resources, run.outcome.snapshot.resources);
}

#[tokio::test]
async fn a_program_that_fails_keeps_everything_from_being_deleted() {
    let lab = recorded().await;
    let (spec, watch) = lab.spec(false);
    let failing = program(|m| {
        async move {
            m.component("comp", |_| ()).await?;
            Err(RegisterError::Invalid {
                message: "no".to_owned(),
            })
        }
        .boxed()
    });
    let run = watch.into_run(crate::destroy_with_program(spec, failing).await);
    assert!(matches!(run.error(), DeployError::ProgramFailed { .. }));
    assert!(lab.take_calls().is_empty());
    assert_eq!(
        run.outcome.snapshot.resources.len(),
        lab.snapshot.resources.len()
    );
}

#[tokio::test]
async fn a_preview_of_such_a_destroy_shows_the_deletes_and_does_nothing() {
    let lab = recorded().await;
    let (spec, watch) = lab.spec(true);
    let outcome = crate::destroy_with_program(spec, program(changed)).await;
    let run = watch.into_run(outcome).ok();
    assert!(run.entries.is_empty());
    assert!(
        lab.take_calls()
            .iter()
            .all(|call| !call.starts_with("delete"))
    );
    for step in ["delete a", "delete gone", "delete comp", "delete prov"] {
        assert!(run.steps().contains(&step.to_owned()), "{:?}", run.steps());
    }
}

#[tokio::test]
async fn a_refresh_that_runs_the_program_looks_through_providers_that_are_configured_anew() {
    let mut lab = recorded().await;
    let (spec, watch) = lab.spec(false);
    let outcome = crate::refresh_with_program(spec, program(changed)).await;
    let run = watch.into_run(outcome).ok();
    let calls = std::mem::take(&mut *lab.fake.calls.lock());
    let at = |wanted: &str| calls.iter().position(|call| call.contains(wanted));
    let configured = at("configure prov key=\"new\"").unwrap_or_else(|| panic!("{calls:?}"));
    assert!(configured < at("read a").unwrap(), "{calls:?}");
    assert!(at("read gone").is_some(), "{calls:?}");
    assert!(
        at("create").is_none() && at("update").is_none(),
        "{calls:?}"
    );
    lab.snapshot = run.outcome.snapshot;
    assert_eq!(lab.resource("a").inputs["x"], "1".into());
    assert_eq!(lab.resource("comp").outputs["is"], "recorded".into());
    assert_eq!(lab.resource("prov").inputs["key"], "new".into());
    assert!(lab.find("new").is_none() && lab.find("gone").is_some());
}
