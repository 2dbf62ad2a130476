//! The workflow of a request: it tells whoever has to decide, waits for decisions and for deadlines, and tells
//! whoever asked how it ended. It survives restarts, and so do its deadlines.

use std::time::Duration;

use nimbus_core::TenantId;
use nimbus_workflows::{Durable, Fail, FlowDef, StepDef, StepOptions};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The signal that says that something was decided. What it was is in the request's record.
pub const DECISION_SIGNAL: &str = "approval_decision";

/// Tables and mail servers come back; a request must not be lost because they were away for a while.
const ATTEMPTS: u32 = 20;

/// Which request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalFlowInput {
    pub tenant: TenantId,
    pub request: Uuid,
}

/// Where a request is, as its record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    Pending {
        step: usize,
        escalated: bool,
        /// Until the time is over.
        seconds_left: u64,
    },
    /// `approved`, `rejected`, `expired` or `withdrawn`.
    Ended(String),
}

/// Who is to be told of which step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalNotice {
    pub of: ApprovalFlowInput,
    pub step: usize,
    pub escalated: bool,
}

/// Reads where a request is.
#[derive(Debug)]
pub struct CheckApprovalStatus;

impl StepDef for CheckApprovalStatus {
    const NAME: &'static str = "check_approval_status";
    type In = ApprovalFlowInput;
    type Out = ApprovalStatus;
}

/// Tells everybody who may decide on a step that it waits for them.
#[derive(Debug)]
pub struct SendApprovalRequest;

impl StepDef for SendApprovalRequest {
    const NAME: &'static str = "send_approval_request";
    type In = ApprovalNotice;
    type Out = ();
}

/// Records that the time of a step is over, if it is.
#[derive(Debug)]
pub struct TimeOutApproval;

impl StepDef for TimeOutApproval {
    const NAME: &'static str = "time_out_approval";
    type In = ApprovalFlowInput;
    type Out = ();
}

/// Tells whoever asked how it ended.
#[derive(Debug)]
pub struct AnnounceApprovalEnd;

impl StepDef for AnnounceApprovalEnd {
    const NAME: &'static str = "send_notification";
    type In = ApprovalFlowInput;
    type Out = ();
}

/// From a request to its end. The answer is the word for it.
#[derive(Debug)]
pub struct ApprovalChainWorkflow;

impl FlowDef for ApprovalChainWorkflow {
    const NAME: &'static str = "ApprovalChainWorkflow";
    type In = ApprovalFlowInput;
    type Out = String;

    async fn run(durable: &dyn Durable, input: ApprovalFlowInput) -> Result<String, Fail> {
        let options = || StepOptions::default().attempts(ATTEMPTS);
        let mut told = None;
        loop {
            let status = durable
                .step::<CheckApprovalStatus>(&input, options())
                .await?;
            let (step, escalated, seconds) = match status {
                ApprovalStatus::Ended(word) => {
                    durable
                        .step::<AnnounceApprovalEnd>(&input, options())
                        .await?;
                    return Ok(word);
                }
                ApprovalStatus::Pending {
                    step,
                    escalated,
                    seconds_left,
                } => (step, escalated, seconds_left),
            };
            if told != Some((step, escalated)) {
                told = Some((step, escalated));
                let notice = ApprovalNotice {
                    of: input,
                    step,
                    escalated,
                };
                durable
                    .step::<SendApprovalRequest>(&notice, options())
                    .await?;
            }
            let time = Duration::from_secs(seconds);
            let decided = durable.receive_raw(DECISION_SIGNAL, Some(time)).await?;
            if decided.is_none() {
                durable.step::<TimeOutApproval>(&input, options()).await?;
            }
        }
    }
}
