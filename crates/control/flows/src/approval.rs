//! A request for approval from when it is made to when it is decided. People decide through the use case; the signal
//! only wakes the chain, and time decides by its timers.

use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{Result, TenantId};
use nimbus_workflows::{Definitions, Durable, Fail, FlowDef, FlowId, StepDef, StepOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::platform::{PATIENT, may_pass};
use crate::port::{ApprovalStanding, RunRows};

/// The query who approved, and who is waited for.
pub const GET_APPROVAL_STATUS: &str = "get_approval_status";
/// The signal after a decision.
pub const APPROVAL_DECISION: &str = "approval_decision";
/// The chain is looked at this often when nobody says anything, in case a signal was lost.
const LONGEST_WAIT: u64 = 60 * 60;
/// A deadline lies this far back when it is looked at, so that one look is enough.
const MARGIN: u64 = 1;
const CHILD: &str = "approval";

/// Which request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalFlowInput {
    pub tenant: TenantId,
    pub approval: Uuid,
}

/// Waits until a request is decided.
#[derive(Debug)]
pub struct ApprovalChainWorkflow;

impl FlowDef for ApprovalChainWorkflow {
    const NAME: &'static str = "ApprovalChainWorkflow";
    type In = ApprovalFlowInput;
    /// How it was decided; nothing if the request is gone.
    type Out = Option<String>;

    async fn run(durable: &dyn Durable, input: ApprovalFlowInput) -> Result<Option<String>, Fail> {
        loop {
            let standing = durable
                .step::<CheckApprovalStatus>(&input, StepOptions::default().attempts(PATIENT))
                .await?;
            let Some(standing) = standing else {
                return Ok(None);
            };
            let said = json!({
                "status": standing.status,
                "approved": standing.approved,
                "pending": standing.pending,
            });
            durable.publish(GET_APPROVAL_STATUS, said).await?;
            if standing.status != "pending" {
                return Ok(Some(standing.status));
            }
            let left = standing.seconds_left.unwrap_or(LONGEST_WAIT);
            let wait = Duration::from_secs(left.saturating_add(MARGIN).min(LONGEST_WAIT));
            durable.receive_raw(APPROVAL_DECISION, Some(wait)).await?;
        }
    }
}

pub(crate) async fn wait_for_approval(
    durable: &dyn Durable,
    tenant: TenantId,
    approval: Uuid,
) -> Result<Option<String>, Fail> {
    let input = ApprovalFlowInput { tenant, approval };
    durable.child::<ApprovalChainWorkflow>(CHILD, &input).await
}

/// The workflow that waits for a run's approval.
pub fn approval_flow_of(run: &FlowId) -> Result<FlowId> {
    run.child(CHILD)
}

struct CheckApprovalStatus;

impl StepDef for CheckApprovalStatus {
    const NAME: &'static str = "check_approval_status";
    type In = ApprovalFlowInput;
    type Out = Option<ApprovalStanding>;
}

pub(crate) fn define(definitions: &mut Definitions, runs: &Arc<dyn RunRows>) {
    let work = Arc::clone(runs);
    definitions.step::<CheckApprovalStatus, _, _>(move |_, input| {
        let work = Arc::clone(&work);
        async move {
            let standing = work.approval_standing(input.tenant, input.approval).await;
            standing.map_err(|error| may_pass(&error))
        }
    });
    definitions.flow::<ApprovalChainWorkflow>();
}
