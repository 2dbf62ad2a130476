//! An environment of a landing zone from when it is asked for to when it can be used: what has to be in it is deployed by a
//! run, then resolvers are configured. A zone's own environment, `platform`, comes with publishing the zone.

use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{Error, ErrorCode, Result, TenantId};
use nimbus_workflows::{
    Definitions, Durable, Fail, FlowDef, FlowFailure, FlowId, NewFlow, StepDef, StepOptions,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::platform::{PATIENT, may_pass};
use crate::port::{BootstrapStanding, RunRows};
use crate::run::RUN_CHANGED;

/// As the workflow of a run does: signals may be lost.
const FIRST_WAIT: Duration = Duration::from_secs(15);
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Which environment. One that failed can be asked for again, and is bootstrapped another time then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootstrapInput {
    pub tenant: TenantId,
    pub environment: Uuid,
    /// From 1.
    pub attempt: i32,
}

impl BootstrapInput {
    /// The name of its workflow.
    pub fn flow_id(&self) -> Result<FlowId> {
        let Self {
            tenant,
            environment,
            attempt,
        } = self;
        FlowId::new(format!("zone:{tenant}:{environment}:{attempt}"))
    }

    pub fn new_flow(&self) -> Result<NewFlow> {
        NewFlow::of::<LandingZoneBootstrapWorkflow>(self.flow_id()?, self)
            .map_err(|fail| Error::new(ErrorCode::WORKFLOW_INVALID, fail.to_string()))
    }
}

/// Waits for what has to be in an environment, then configures resolvers.
#[derive(Debug)]
pub struct LandingZoneBootstrapWorkflow;

impl FlowDef for LandingZoneBootstrapWorkflow {
    const NAME: &'static str = "LandingZoneBootstrapWorkflow";
    type In = BootstrapInput;
    /// The environment's status; nothing if it is gone.
    type Out = Option<String>;

    async fn run(durable: &dyn Durable, input: BootstrapInput) -> Result<Option<String>, Fail> {
        let patient = || StepOptions::default().attempts(PATIENT);
        let mut wait = FIRST_WAIT;
        loop {
            let standing = durable.step::<DeployServices>(&input, patient()).await?;
            let Some(standing) = standing else {
                return Ok(None);
            };
            match standing.status.as_str() {
                "provisioning" => {
                    let told = durable.receive_raw(RUN_CHANGED, Some(wait)).await?;
                    wait = match told {
                        Some(_) => FIRST_WAIT,
                        None => wait.saturating_mul(2).min(LONGEST_WAIT),
                    };
                }
                "configuring" => {
                    durable
                        .step::<ConfigureResolvers>(&input, patient())
                        .await?;
                }
                "failed" => {
                    let message = match standing.run {
                        Some(run) => format!("the run {run} did not succeed"),
                        None => "its resolvers were not configured".to_owned(),
                    };
                    let failure = FlowFailure::new(ErrorCode::WORKFLOW_RUN_FAILED, message);
                    return Err(Fail::App(failure.lasting()));
                }
                _ => return Ok(Some(standing.status)),
            }
        }
    }
}

struct DeployServices;

impl StepDef for DeployServices {
    const NAME: &'static str = "deploy_services";
    type In = BootstrapInput;
    type Out = Option<BootstrapStanding>;
}

struct ConfigureResolvers;

impl StepDef for ConfigureResolvers {
    const NAME: &'static str = "configure_resolvers";
    type In = BootstrapInput;
    type Out = ();
}

pub(crate) fn define(definitions: &mut Definitions, runs: &Arc<dyn RunRows>) {
    let work = Arc::clone(runs);
    definitions.step::<DeployServices, _, _>(move |_, input| {
        let work = Arc::clone(&work);
        async move {
            let standing = work.bootstrap_standing(input.tenant, input.environment, input.attempt);
            standing.await.map_err(|error| may_pass(&error))
        }
    });
    let work = Arc::clone(runs);
    definitions.step::<ConfigureResolvers, _, _>(move |_, input| {
        let work = Arc::clone(&work);
        async move {
            let done = work.configure_resolvers(input.tenant, input.environment);
            done.await.map_err(|error| may_pass(&error))
        }
    });
    definitions.flow::<LandingZoneBootstrapWorkflow>();
}
