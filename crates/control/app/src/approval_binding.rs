//! What an approval is of: when a run has to wait for one, and whether what people looked at is still what would be done.
//!
//! A request names the plan by its digest. A deploy that somebody asks for is approved with the plan of a preview; what
//! has none (a destroy, a rollback, a refresh that may take much out of the record, the components of a landing zone) is
//! approved as it was asked for. The run core holds the run to its plan once more before the first change.

use nimbus_approvals::{ApprovalChain, ApprovalProgress};
use nimbus_control_audit::canonical_json;
use nimbus_control_events::kind;
use nimbus_control_store::{
    NewApproval, StoredApproval, StoredApprovalPolicy, StoredDeployment, StoredRun, TenantTx,
};
use nimbus_core::{Error, ErrorCode};
use nimbus_orchestrator::RunAction;
use sha2::{Digest as _, Sha256};

use crate::app::App;
use crate::approval_notices::notify_of_approval;
use crate::approvals::{move_to, read, written};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::run_signals::takes_much_out;

impl App {
    /// Makes a run that was just queued wait, if its environment needs approval.
    pub(crate) async fn await_approval(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        run: &mut StoredRun,
        deployment: &StoredDeployment,
    ) -> Result<()> {
        if is_a_look(run) {
            return Ok(());
        }
        let Some(policy) = policy_for(tx, &run.environment, run.rehearsal).await? else {
            return Ok(());
        };
        let chain: ApprovalChain = read(&policy.chain)?;
        let progress = ApprovalProgress::begin(call.context.now);
        let planned_at = match run.plan {
            None => run.queued_at,
            Some(plan) => {
                let preview = tx.run_find(plan).await?;
                preview.began_at.unwrap_or(preview.queued_at)
            }
        };
        let new = NewApproval {
            plan_digest: plan_digest(run),
            manifest_digest: digest(&deployment.manifest),
            planned_at,
            chain: written(&chain)?,
            moved: move_to(&chain, &progress)?,
        };
        let request = tx.approval_create(run, &new).await?;
        run.approval = Some(request.id);
        self.tell_approval(tx, kind::APPROVAL_REQUIRED, &request)
            .await?;
        notify_of_approval(tx, &request, &chain, None, &progress).await
    }
}

/// Whether a run changes nothing that people would have to agree to. A refresh writes down what is there, and what it
/// finds is what they decide on next; one that may take much out of the record is no look.
fn is_a_look(run: &StoredRun) -> bool {
    match run.action.parse::<RunAction>() {
        Ok(RunAction::Preview) => true,
        Ok(RunAction::Refresh) => !takes_much_out(run),
        Ok(RunAction::Deploy | RunAction::Destroy | RunAction::Rollback) | Err(()) => false,
    }
}

/// The policy that a run has to meet, if there is one.
async fn policy_for(
    tx: &mut TenantTx,
    environment: &str,
    rehearsal: bool,
) -> Result<Option<StoredApprovalPolicy>> {
    let policy = tx.approval_policy_for(environment).await?;
    Ok(policy.filter(|policy| policy.rehearsals || !rehearsal))
}

/// Refuses a deploy without a plan where somebody has to approve it: they would not know what.
pub(crate) async fn require_plan(
    tx: &mut TenantTx,
    environment: &str,
    rehearsal: bool,
) -> Result<()> {
    let Some(policy) = policy_for(tx, environment, rehearsal).await? else {
        return Ok(());
    };
    let whose = match policy.environment.as_str() {
        "*" => "every environment".to_owned(),
        one => one.to_owned(),
    };
    let message = format!(
        "{environment} needs approval (the policy for {whose}), and what is approved is a plan"
    );
    Err(Error::new(ErrorCode::APPROVAL_NEEDS_PLAN, message)
        .with_help("make a preview, look at it, and give its id as `plan`")
        .into())
}

/// Refuses to approve what is no longer what people looked at.
pub(crate) async fn refuse_moved(
    tx: &mut TenantTx,
    request: &StoredApproval,
    run: Option<&StoredRun>,
) -> Result<()> {
    let run = run.ok_or_else(Failure::not_found)?;
    let mut reasons = Vec::new();
    if plan_digest(run) != request.plan_digest {
        reasons.push("the run has another plan".to_owned());
    }
    let deployment = tx.deployment_get(&request.deployment).await?;
    if digest(&deployment.manifest) != request.manifest_digest {
        reasons.push(format!(
            "the manifest was saved as revision {}",
            deployment.revision
        ));
    }
    if let Some(number) = tx.run_since(run, request.planned_at).await? {
        reasons.push(format!(
            "R{number:04} ran or runs in {}",
            request.environment
        ));
    }
    if reasons.is_empty() {
        return Ok(());
    }
    let message = format!("what was to be approved has moved: {}", reasons.join(", "));
    Err(Error::new(ErrorCode::PLAN_MOVED, message)
        .with_help("cancel the run or deny it, make a new preview and ask again")
        .into())
}

/// The digest of the plan that a run is held to; of what was asked where there is none.
fn plan_digest(run: &StoredRun) -> String {
    let sealed = &run.request["options"]["sealed_plan"];
    let bound = match sealed.is_null() {
        true => &run.request,
        false => sealed,
    };
    digest(&canonical_json(bound))
}

fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
