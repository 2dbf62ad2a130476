//! The operations.

use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_model::HookKind;
use nimbus_engine_ports::{Program, ProgramError};

use crate::deployment::{Deployment, Gate, ProgramEnd, Scope};
use crate::error::DeployError;
use crate::import::ImportSpec;
use crate::outcome::Outcome;
use crate::spec::DeploymentSpec;

/// How long a program may take to end once nothing of what it asks for is done any more.
const GRACE: Duration = Duration::from_secs(30);

/// Brings the stack to what the program asks for; a preview when `options.dry_run` is set.
pub async fn update(spec: DeploymentSpec, program: Arc<dyn Program>) -> Outcome {
    operate(spec, false, async |deployment| {
        deployment.tell_policies();
        prepare(deployment).await?;
        deployment
            .refuse_unknown_targets(&[false, false, true])
            .await?;
        let run = run_program(deployment, program.as_ref()).await;
        let result = match run {
            Ok(()) if !deployment.troubles.is_stopped() => complete(deployment).await,
            Ok(()) => Ok(()),
            Err(error) => Err(error),
        };
        let ended = end_program(program.as_ref()).await;
        result?;
        ended
    })
    .await
}

/// Deletes what the stack has, or its targets.
pub async fn destroy(spec: DeploymentSpec) -> Outcome {
    operate(spec, false, async |deployment| {
        deployment
            .refuse_unknown_targets(&[true, true, false])
            .await?;
        refuse_lost_hooks(deployment)?;
        prepare(deployment).await?;
        deployment.delete_unwanted(ProgramEnd::NoProgram).await
    })
    .await
}

/// Records what is really there.
pub async fn refresh(spec: DeploymentSpec) -> Outcome {
    operate(spec, true, async |deployment| {
        deployment.refresh_base(Scope::Chosen).await
    })
    .await
}

/// Takes existing objects under management.
pub async fn import(spec: DeploymentSpec, imports: Vec<ImportSpec>) -> Outcome {
    operate(spec, false, async |deployment| {
        deployment.import_all(imports).await
    })
    .await
}

/// What all operations have in common.
async fn operate(
    spec: DeploymentSpec,
    refresh_only: bool,
    work: impl AsyncFnOnce(&Arc<Deployment>) -> Result<(), DeployError>,
) -> Outcome {
    let deployment = match Deployment::new(spec, refresh_only) {
        Ok(deployment) => deployment,
        Err(failed) => return (*failed).into(),
    };
    let watch = deployment.watch_for_cancel();
    if let Err(error) = work(&deployment).await {
        deployment.stop(error);
    }
    let outcome = deployment.outcome().await;
    watch.abort();
    outcome
}

/// Looks before changing anything, if that is asked for; otherwise says what is unknown.
async fn prepare(deployment: &Arc<Deployment>) -> Result<(), DeployError> {
    let flagged = deployment
        .base()
        .resources
        .iter()
        .any(|state| state.refresh_before_update);
    if deployment.options.refresh {
        deployment.refresh_base(Scope::Chosen).await?;
    } else if flagged {
        deployment.refresh_base(Scope::Flagged).await?;
    } else if !deployment.options.dry_run {
        deployment.warn_pending();
    }
    // Whoever could not look must not go on as if nothing had changed.
    deployment.troubles.refuse_after_failure()
}

/// Runs the program and waits until everything that it asked for is done.
async fn run_program(
    deployment: &Arc<Deployment>,
    program: &dyn Program,
) -> Result<(), DeployError> {
    let gate = Arc::new(Gate(Arc::clone(deployment)));
    let out_of_time = async {
        deployment.troubles.stopped().await;
        tokio::time::sleep(GRACE).await;
    };
    let ended = tokio::select! {
        ended = program.run(gate) => ended,
        () = out_of_time => Err(ProgramError::Cancelled),
    };
    deployment.settle().await;
    ended.map_err(program_failed)
}

/// Everything after the program has said what it wants.
async fn complete(deployment: &Arc<Deployment>) -> Result<(), DeployError> {
    let unknown = deployment
        .refuse_unknown_targets(&[true, false, false])
        .await;
    let deleted = deployment.delete_unwanted(ProgramEnd::Ended).await;
    deployment.finish_root_outputs().await?;
    deleted?;
    unknown?;
    if !deployment.troubles.has_any() && !deployment.troubles.is_stopped() {
        deployment.check_plan_complete().await?;
        deployment.analyze_stack().await?;
    }
    Ok(())
}

async fn end_program(program: &dyn Program) -> Result<(), DeployError> {
    match tokio::time::timeout(GRACE, program.finish()).await {
        Ok(ended) => ended.map_err(program_failed),
        Err(_) => Err(DeployError::ProgramFailed {
            message: "it did not end when it was done".to_owned(),
        }),
    }
}

fn program_failed(error: ProgramError) -> DeployError {
    DeployError::ProgramFailed {
        message: error.to_string(),
    }
}

/// Hooks are functions of the program; without it they can only be found missing too late.
fn refuse_lost_hooks(deployment: &Deployment) -> Result<(), DeployError> {
    let kinds = [HookKind::BeforeDelete, HookKind::AfterDelete];
    let base = deployment.base();
    let recorded = base.resources.iter().flat_map(|state| {
        kinds
            .iter()
            .filter_map(|kind| state.hooks.get(kind))
            .flatten()
    });
    let hooks: std::collections::BTreeSet<String> = recorded
        .filter(|hook| deployment.executor.hooks.runs_on_dry_run(hook).is_none())
        .cloned()
        .collect();
    if hooks.is_empty() {
        return Ok(());
    }
    Err(DeployError::HooksNeedProgram {
        hooks: hooks.into_iter().collect(),
    })
}
