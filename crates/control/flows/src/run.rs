//! A run from when it is queued to when its row has ended. Who carries it out is found by the row, not here.

use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{ErrorCode, Result, TenantId};
use nimbus_workflows::{
    Definitions, Durable, Fail, FlowDef, FlowFailure, FlowId, NewFlow, StepDef, StepOptions,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::approval::wait_for_approval;
use crate::platform::{PATIENT, may_pass};
use crate::port::{RunRows, RunStanding};

/// The query how far a run is, as of its workflow's last look.
pub const GET_DEPLOYMENT_PROGRESS: &str = "get_deployment_progress";
/// The signal after a run's row has changed.
pub const RUN_CHANGED: &str = "run_changed";
/// The row is looked at this often when nobody says anything, in case a signal was lost. Waits double up to the last.
const FIRST_WAIT: Duration = Duration::from_secs(15);
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Which run. One that failed can be asked to go on, and has another life then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFlowInput {
    pub tenant: TenantId,
    pub run: Uuid,
    pub life: i32,
}

impl RunFlowInput {
    /// The name of its workflow.
    pub fn flow_id(&self) -> Result<FlowId> {
        let Self { tenant, run, life } = self;
        FlowId::new(format!("run:{tenant}:{run}:{life}"))
    }
}

/// How a run ended, when it did not fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFlowOutput {
    /// `succeeded`, `cancelled` and so on, as the run says.
    pub result: Option<String>,
}

/// The workflow of a run, by what the run does; a deploy that takes an instance to another version is an `upgrade`. `None` for what no workflow is known for.
pub fn new_run_flow(action: &str, input: &RunFlowInput) -> Result<Option<NewFlow>> {
    let flow = match action {
        "deploy" => ComponentDeployWorkflow::NAME,
        "upgrade" => ComponentUpgradeWorkflow::NAME,
        "destroy" => ComponentDestroyWorkflow::NAME,
        "preview" => ComponentPreviewWorkflow::NAME,
        "refresh" => ComponentRefreshWorkflow::NAME,
        "rollback" => ComponentRollbackWorkflow::NAME,
        _ => return Ok(None),
    };
    let encoded = serde_json::to_value(input)
        .map_err(|error| nimbus_core::Error::new(ErrorCode::WORKFLOW_INVALID, error.to_string()))?;
    Ok(Some(NewFlow {
        id: input.flow_id()?,
        flow: flow.to_owned(),
        input: encoded,
    }))
}

macro_rules! run_flows {
    ($($(#[$doc:meta])* $flow:ident = $name:literal, $step:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub(crate) struct $flow;

            impl FlowDef for $flow {
                const NAME: &'static str = $name;
                type In = RunFlowInput;
                type Out = RunFlowOutput;

                async fn run(durable: &dyn Durable, input: RunFlowInput) -> Result<RunFlowOutput, Fail> {
                    follow::<$step>(durable, &input).await
                }
            }
        )*

        fn define_flows(definitions: &mut Definitions) {
            $(definitions.flow::<$flow>();)*
        }
    };
}

run_flows! {
    /// Waits for people if they have to agree, then for the deploy.
    ComponentDeployWorkflow = "ComponentDeployWorkflow", PulumiUp;
    /// The same for a deploy with another version of a component, whose path was looked at when it was asked for.
    ComponentUpgradeWorkflow = "ComponentUpgradeWorkflow", PulumiUp;
    ComponentDestroyWorkflow = "ComponentDestroyWorkflow", PulumiDestroy;
    ComponentPreviewWorkflow = "ComponentPreviewWorkflow", PulumiPreview;
    ComponentRefreshWorkflow = "ComponentRefreshWorkflow", PulumiRefresh;
    ComponentRollbackWorkflow = "ComponentRollbackWorkflow", PulumiUp;
    /// The names of earlier documents; what they start is the same.
    PulumiDeployWorkflow = "PulumiDeployWorkflow", PulumiUp;
    PulumiDestroyWorkflow = "PulumiDestroyWorkflow", PulumiDestroy;
    PulumiPreviewWorkflow = "PulumiPreviewWorkflow", PulumiPreview;
}

/// The step that looks how far the row is, under the name of what is done to it.
macro_rules! looks {
    ($($step:ident = $name:literal;)*) => {
        $(
            struct $step;

            impl StepDef for $step {
                const NAME: &'static str = $name;
                type In = RunFlowInput;
                type Out = Option<RunStanding>;
            }
        )*

        fn define_looks(definitions: &mut Definitions, runs: &Arc<dyn RunRows>) {
            $(
                let work = Arc::clone(runs);
                definitions.step::<$step, _, _>(move |_, input| {
                    let work = Arc::clone(&work);
                    async move {
                        let standing = work.run_standing(input.tenant, input.run, input.life).await;
                        standing.map_err(|error| may_pass(&error))
                    }
                });
            )*
        }
    };
}

looks! {
    CheckRun = "check_run";
    PulumiUp = "pulumi_up";
    PulumiDestroy = "pulumi_destroy";
    PulumiPreview = "pulumi_preview";
    PulumiRefresh = "pulumi_refresh";
}

struct StopRun;

impl StepDef for StopRun {
    const NAME: &'static str = "stop_run";
    type In = RunFlowInput;
    type Out = ();
}

async fn follow<S>(durable: &dyn Durable, input: &RunFlowInput) -> Result<RunFlowOutput, Fail>
where
    S: StepDef<In = RunFlowInput, Out = Option<RunStanding>>,
{
    match wait_for_end::<S>(durable, input).await {
        // Somebody cancelled the workflow where it runs: its run must not go on without it.
        Err(Fail::Cancelled) => {
            let stop = StepOptions::default().attempts(10).shielded();
            durable.step::<StopRun>(input, stop).await?;
            Err(Fail::Cancelled)
        }
        ended => ended,
    }
}

async fn wait_for_end<S>(durable: &dyn Durable, input: &RunFlowInput) -> Result<RunFlowOutput, Fail>
where
    S: StepDef<In = RunFlowInput, Out = Option<RunStanding>>,
{
    let first = durable.step::<CheckRun>(input, patient()).await?;
    if let Some(approval) = first.and_then(|standing| standing.approval) {
        wait_for_approval(durable, input.tenant, approval).await?;
    }
    let mut wait = FIRST_WAIT;
    loop {
        let Some(standing) = durable.step::<S>(input, patient()).await? else {
            return Ok(RunFlowOutput { result: None });
        };
        let said = json!({
            "status": standing.status,
            "result": standing.result,
            "progress": standing.progress.unwrap_or_default(),
        });
        durable.publish(GET_DEPLOYMENT_PROGRESS, said).await?;
        if standing.is_ended() {
            return end_of(standing);
        }
        let told = durable.receive_raw(RUN_CHANGED, Some(wait)).await?;
        wait = match told {
            Some(_) => FIRST_WAIT,
            None => wait.saturating_mul(2).min(LONGEST_WAIT),
        };
    }
}

/// A workflow of a run that failed has failed, for the same reason.
fn end_of(standing: RunStanding) -> Result<RunFlowOutput, Fail> {
    let failed = standing.result.as_deref() == Some("failed");
    match (failed, standing.problem) {
        (true, problem) => {
            let (code, message) = problem.unwrap_or_else(|| {
                let code = ErrorCode::WORKFLOW_RUN_FAILED.to_string();
                (code, "the run failed; its events say where".to_owned())
            });
            let failure = FlowFailure::new(ErrorCode::WORKFLOW_RUN_FAILED, message).lasting();
            Err(Fail::App(FlowFailure { code, ..failure }))
        }
        (false, _) => Ok(RunFlowOutput {
            result: standing.result,
        }),
    }
}

fn patient() -> StepOptions {
    StepOptions::default().attempts(PATIENT)
}

pub(crate) fn define(definitions: &mut Definitions, runs: &Arc<dyn RunRows>) {
    define_looks(definitions, runs);
    let work = Arc::clone(runs);
    definitions.step::<StopRun, _, _>(move |_, input| {
        let work = Arc::clone(&work);
        async move {
            let stopped = work.stop_run(input.tenant, input.run).await;
            stopped.map_err(|error| may_pass(&error))
        }
    });
    define_flows(definitions);
}
