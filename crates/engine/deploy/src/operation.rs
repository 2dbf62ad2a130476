//! The operations.

use std::sync::Arc;

use nimbus_core::StackOperation;
use nimbus_engine_model::HookKind;
use nimbus_engine_ports::{Program, ProgramError};

use crate::deployment::{Deployment, KnownTargets, ProgramEnd, RefreshScope, RegistrationGate};
use crate::error::DeployError;
use crate::import::ImportSpec;
use crate::outcome::DeploymentOutcome;
use crate::spec::DeploymentSpec;

/// Brings the stack to what the program asks for; a preview when `options.dry_run` is set.
pub async fn update(spec: DeploymentSpec, program: Arc<dyn Program>) -> DeploymentOutcome {
    operate(spec, StackOperation::Update, async |deployment| {
        deployment.tell_policies();
        prepare(deployment).await?;
        deployment
            .refuse_unknown_targets(KnownTargets::REPLACED)
            .await?;
        run_program(deployment, program.as_ref()).await;
        if !deployment.failures.is_stopped()
            && let Err(error) = delete_unwanted(deployment).await
        {
            deployment.stop(error);
        }
        deployment.finish_root_outputs().await?;
        let judged = judge(deployment).await;
        // In any case: a program that waits to hear the end would wait for ever.
        let ended = end_program(deployment, program.as_ref()).await;
        judged?;
        ended
    })
    .await
}

/// Deletes what the stack has, or its targets.
pub async fn destroy(spec: DeploymentSpec) -> DeploymentOutcome {
    operate(spec, StackOperation::Destroy, async |deployment| {
        deployment
            .refuse_unknown_targets(KnownTargets::CHOSEN)
            .await?;
        // Before the refresh: what cannot be finished must not begin.
        refuse_lost_hooks(deployment)?;
        prepare(deployment).await?;
        deployment.delete_unwanted(ProgramEnd::NoProgram).await?;
        match deployment.failures.is_stopped() {
            true => Ok(()),
            false => deployment.check_plan_complete().await,
        }
    })
    .await
}

/// As [`destroy`], after the program was run: providers are configured as it says now, and its
/// delete hooks are there to be called. It creates and changes no other resource.
pub async fn destroy_with_program(
    spec: DeploymentSpec,
    program: Arc<dyn Program>,
) -> DeploymentOutcome {
    operate(spec, StackOperation::Destroy, async |deployment| {
        prepare(deployment).await?;
        listen_to(deployment, program.as_ref()).await?;
        if !deployment.failures.is_stopped() {
            deployment
                .refuse_unknown_targets(KnownTargets::CHOSEN)
                .await?;
            refuse_lost_hooks(deployment)?;
            deployment.delete_unwanted(ProgramEnd::NoProgram).await?;
        }
        end_program(deployment, program.as_ref()).await
    })
    .await
}

/// As [`refresh`], after the program was run: providers are configured as it says now.
pub async fn refresh_with_program(
    spec: DeploymentSpec,
    program: Arc<dyn Program>,
) -> DeploymentOutcome {
    operate(spec, StackOperation::Refresh, async |deployment| {
        listen_to(deployment, program.as_ref()).await?;
        if !deployment.failures.is_stopped() {
            deployment.refresh_base(RefreshScope::Chosen).await?;
        }
        end_program(deployment, program.as_ref()).await
    })
    .await
}

/// Runs the program and goes on from the record that it leaves.
async fn listen_to(deployment: &Arc<Deployment>, program: &dyn Program) -> Result<(), DeployError> {
    run_program(deployment, program).await;
    match deployment.failures.is_stopped() {
        true => Ok(()),
        false => deployment.start_over().await,
    }
}

/// Records what is really there.
pub async fn refresh(spec: DeploymentSpec) -> DeploymentOutcome {
    operate(spec, StackOperation::Refresh, async |deployment| {
        deployment.refresh_base(RefreshScope::Chosen).await
    })
    .await
}

/// Takes existing objects under management.
pub async fn import(spec: DeploymentSpec, imports: Vec<ImportSpec>) -> DeploymentOutcome {
    operate(spec, StackOperation::Import, async |deployment| {
        deployment.import_all(imports).await
    })
    .await
}

/// What all operations have in common.
async fn operate(
    spec: DeploymentSpec,
    operation: StackOperation,
    work: impl AsyncFnOnce(&Arc<Deployment>) -> Result<(), DeployError>,
) -> DeploymentOutcome {
    let deployment = match Deployment::new(spec, operation) {
        Ok(deployment) => deployment,
        Err(failed) => return (*failed).into(),
    };
    let _watch = deployment.watch();
    let out_of_time = async {
        deployment.failures.cancelled().await;
        tokio::time::sleep(deployment.options.grace).await;
    };
    // Whatever has not ended by then is left: its beginning is recorded, so it stays pending.
    let ended = tokio::select! {
        result = work(&deployment) => {
            if let Err(error) = result {
                deployment.stop(error);
            }
            deployment.settle().await;
            true
        }
        () = out_of_time => false,
    };
    if !ended {
        deployment.stop(DeployError::Cancelled);
    }
    deployment.outcome().await
}

/// Looks before changing anything, if that is asked for; otherwise says what is unknown.
async fn prepare(deployment: &Arc<Deployment>) -> Result<(), DeployError> {
    let flagged = deployment
        .base()
        .resources
        .iter()
        .any(|state| state.refresh_before_update);
    if deployment.options.refresh {
        deployment.refresh_base(RefreshScope::Chosen).await?;
    } else if flagged {
        deployment.refresh_base(RefreshScope::Flagged).await?;
    } else if !deployment.options.dry_run {
        deployment.warn_pending();
    }
    // Whoever could not look must not go on as if nothing had changed.
    deployment.failures.refuse_after_failure()
}

/// Runs the program and waits until everything that it asked for is done. If it fails, nothing more
/// is started: what it would have asked for next is not known.
async fn run_program(deployment: &Arc<Deployment>, program: &dyn Program) {
    let gate = Arc::new(RegistrationGate(Arc::clone(deployment)));
    let out_of_time = async {
        deployment.failures.stopped().await;
        tokio::time::sleep(deployment.options.grace).await;
    };
    let ended = tokio::select! {
        ended = program.run(gate) => ended,
        () = out_of_time => Err(ProgramError::Cancelled),
    };
    match ended {
        Ok(()) => {}
        // The program, or whoever stopped it, has said why.
        Err(error @ (ProgramError::AlreadyReported | ProgramError::Cancelled)) => {
            deployment.failures.stop(program_failed(error));
        }
        Err(error @ ProgramError::Failed { .. }) => deployment.stop(program_failed(error)),
    }
    deployment.settle().await;
}

async fn delete_unwanted(deployment: &Arc<Deployment>) -> Result<(), DeployError> {
    let known = deployment
        .refuse_unknown_targets(KnownTargets::TARGETS)
        .await;
    deployment.delete_unwanted(ProgramEnd::Ended).await?;
    known
}

/// Whether the whole is as it was planned and as the policies want it.
async fn judge(deployment: &Arc<Deployment>) -> Result<(), DeployError> {
    if deployment.failures.has_any() || deployment.failures.is_stopped() {
        return Ok(());
    }
    deployment.check_plan_complete().await?;
    deployment.analyze_stack().await
}

async fn end_program(deployment: &Deployment, program: &dyn Program) -> Result<(), DeployError> {
    match tokio::time::timeout(deployment.options.grace, program.finish()).await {
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
