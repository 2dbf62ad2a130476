//! Approvals: a run whose environment needs one waits, people decide, and time decides when they do not.
//!
//! Who may decide and when enough have is the core's (`nimbus_approvals`). Here a request is bound to what is approved, the
//! plan by its digest and the manifest by its own, and the run follows the request: it goes on, or ends without having
//! begun. Whoever locks both locks the run first.

use jiff::Timestamp;
use nimbus_approvals::{
    ApprovalChain, ApprovalDecision, ApprovalProgress, ApprovalRefusal, ApprovalState,
    ApprovalVerdict,
};
use nimbus_control_audit::{Actor, AuditRecord};
use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_events::{EventKind, NewEvent, kind};
use nimbus_control_store::{
    ApprovalFilter, ApprovalMove, ListPage, RowCursor, RunEnd, StoreError, StoredApproval,
    StoredDecision, StoredRun, TenantTx, WorkTurn,
};
use nimbus_core::{Error, ErrorCode, TenantId, UserId};
use serde_json::{Value, json};
use tracing::warn;
use uuid::Uuid;

use crate::app::App;
use crate::approval_binding::refuse_moved;
use crate::approval_notices::notify_of_approval;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::input;

const MOST_COMMENT_LETTERS: usize = 2_000;
const STATUSES: &[&str] = &["pending", "approved", "rejected", "expired", "withdrawn"];

/// A request with what was decided on it.
#[derive(Clone, Debug)]
pub struct ApprovalEntry {
    pub request: StoredApproval,
    /// Oldest first.
    pub decisions: Vec<StoredDecision>,
    /// Whether a decision of whoever asks would count now.
    pub yours: bool,
}

/// What somebody says to a request.
#[derive(Clone, Debug)]
pub enum ApprovalAnswer {
    Grant { comment: String },
    Deny { reason: String },
}

impl ApprovalAnswer {
    fn operation(&self) -> Operation {
        match self {
            Self::Grant { .. } => operation::GRANT_APPROVAL,
            Self::Deny { .. } => operation::DENY_APPROVAL,
        }
    }

    fn verdict(&self) -> ApprovalVerdict {
        match self {
            Self::Grant { .. } => ApprovalVerdict::Approve,
            Self::Deny { .. } => ApprovalVerdict::Reject,
        }
    }

    fn words(&self) -> Result<String> {
        match self {
            Self::Grant { comment } => input::text("comment", comment, MOST_COMMENT_LETTERS),
            Self::Deny { reason } => input::text("reason", reason, MOST_COMMENT_LETTERS),
        }
    }
}

impl App {
    /// Newest first.
    pub async fn approval_list(
        &self,
        call: &Call,
        tenant: TenantId,
        filter: ApprovalFilter,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<ApprovalEntry>> {
        let permit = self.permit(call, operation::LIST_APPROVALS, tenant).await?;
        if let Some(status) = &filter.status
            && !STATUSES.contains(&status.as_str())
        {
            let words = format!("give one of {}", STATUSES.join(", "));
            return Err(Failure::field("status", words));
        }
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let requests = tx.approval_list(&filter, &page).await?;
                let ids: Vec<Uuid> = requests.iter().map(|request| request.id).collect();
                let decisions = tx.decisions_on(&ids).await?;
                let entry = |request: StoredApproval| ApprovalEntry {
                    decisions: decisions
                        .iter()
                        .filter(|decision| decision.request == request.id)
                        .cloned()
                        .collect(),
                    request,
                    yours: false,
                };
                let mut entries: Vec<_> = requests.into_iter().map(entry).collect();
                self.mark_own(tx, call, &permit.resource, &mut entries)
                    .await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(entries)
            })
            .await
    }

    pub async fn approval_get(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
    ) -> Result<ApprovalEntry> {
        let permit = self.permit(call, operation::GET_APPROVAL, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let mut entry = entry_of(tx, id).await?;
                if !self.reaches(call, &permit, &entry.request.environment) {
                    return Err(Failure::not_found());
                }
                let one = std::slice::from_mut(&mut entry);
                self.mark_own(tx, call, &permit.resource, one).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(entry)
            })
            .await
    }

    /// Approves or rejects. The last approval lets the run go on, a rejection ends it.
    pub async fn approval_decide(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
        answer: ApprovalAnswer,
    ) -> Result<ApprovalEntry> {
        let permit = self.permit(call, answer.operation(), tenant).await?;
        let words = answer.words()?;
        let verdict = answer.verdict();
        let decided = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.approval_get(id).await?;
                self.ensure_in(call, &permit, &found.environment)?;
                let run = run_of(tx, &found).await?;
                let request = tx.approval_lock(id).await?;
                let (chain, progress) = progress_of(tx, &request).await?;
                let mut resource = permit.resource.clone();
                resource.environment = Some(request.environment.clone());
                let decider = self.decider(tx, call, &resource).await?;
                let requester = UserId::from(request.requested_by);
                let now = call.context.now;
                let next = progress
                    .decide(&chain, requester, &decider, verdict, &words, now)
                    .map_err(refused)?;
                if verdict == ApprovalVerdict::Approve {
                    refuse_moved(tx, &request, run.as_ref()).await?;
                }
                if let Some(decision) = next.decisions.last() {
                    tx.decision_add(&stored_decision(id, decision)).await?;
                }
                self.approval_moves(tx, &request, &chain, &next).await?;
                let record = permit
                    .record()
                    .on(id)
                    .before(json!({"status": request.status}))
                    .after(json!({
                        "status": next.state.word(),
                        "run": request.run.to_string(),
                        "plan_digest": request.plan_digest,
                        "comment": words.trim(),
                    }));
                self.audit(tx, &call.context, record).await?;
                let mut entry = entry_of(tx, id).await?;
                let one = std::slice::from_mut(&mut entry);
                self.mark_own(tx, call, &permit.resource, one).await?;
                Ok::<_, Failure>(entry)
            })
            .await?;
        // After the commit: a worker that looks sooner would find nothing.
        self.inner.wakeup.notify_one();
        self.flow_hears(tenant, decided.request.run);
        Ok(decided)
    }

    /// Whoever asked no longer wants the run that waits. The run is locked.
    pub(crate) async fn approval_withdraw(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        id: Uuid,
    ) -> Result<()> {
        let request = tx.approval_lock(id).await?;
        let (chain, progress) = progress_of(tx, &request).await?;
        let next = progress
            .withdraw(call.who.user, call.context.now)
            .map_err(refused)?;
        self.approval_moves(tx, &request, &chain, &next).await
    }

    /// Lets time decide on one request if it is due, and says where it is then. The workflow that waits for the request
    /// calls this; nothing when it is gone.
    pub(crate) async fn approval_looked_at(
        &self,
        tenant: TenantId,
        id: Uuid,
        now: Timestamp,
    ) -> Result<Option<StoredApproval>> {
        let store = &self.inner.store;
        let looked = store.tenant_tx(tenant, async |tx| {
            let found = tx.approval_get(id).await?;
            let due = found.deadline.is_some_and(|deadline| deadline.0 <= now);
            if found.status != "pending" || !due {
                return Ok(found);
            }
            self.time_out(tx, id, now).await?;
            Ok::<_, Failure>(tx.approval_get(id).await?)
        });
        match looked.await {
            Ok(found) => Ok(Some(found)),
            Err(failure) if failure.error.code() == ErrorCode::RESOURCE_NOT_FOUND => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Lets time decide where nobody did: others may decide as well, or the request expires and its run ends. How many
    /// requests moved. Each request's workflow does this for its own; this is for all of them at once.
    pub async fn sweep_approvals(&self, now: Timestamp) -> Result<usize> {
        let mut moved = 0;
        // A run that waits keeps its tenant among those with work.
        for WorkTurn { tenant, .. } in self.inner.store.work_turns().await? {
            match self.time_out_approvals(tenant, now).await {
                Ok(count) => moved += count,
                // Deleted since; its runs wait for nobody.
                Err(failure) if failure.error.code() == ErrorCode::RESOURCE_NOT_FOUND => {}
                Err(failure) => {
                    warn!(error = %failure.error.log_text(), %tenant, "approvals were not timed out");
                }
            }
        }
        Ok(moved)
    }

    async fn time_out_approvals(&self, tenant: TenantId, now: Timestamp) -> Result<usize> {
        let at = nimbus_control_store::Timestamp(now);
        let store = &self.inner.store;
        let due = store.tenant_tx(tenant, async |tx| tx.approvals_due(at).await);
        let mut moved = 0;
        for id in due.await? {
            // One by one: a request that cannot be read keeps no other from its end.
            let ended = store.tenant_tx(tenant, async |tx| self.time_out(tx, id, now).await);
            if ended.await? {
                moved += 1;
            }
        }
        Ok(moved)
    }

    async fn time_out(&self, tx: &mut TenantTx, id: Uuid, now: Timestamp) -> Result<bool> {
        let found = tx.approval_get(id).await?;
        run_of(tx, &found).await?;
        let request = tx.approval_lock(id).await?;
        let (chain, progress) = progress_of(tx, &request).await?;
        // Somebody was faster.
        let Some(next) = progress.time_out(&chain, now) else {
            return Ok(false);
        };
        self.approval_moves(tx, &request, &chain, &next).await?;
        let action = match &next.state {
            ApprovalState::Pending { .. } => "approvals.escalate",
            ApprovalState::Approved { .. }
            | ApprovalState::Rejected { .. }
            | ApprovalState::Expired { .. }
            | ApprovalState::Withdrawn { .. } => "approvals.expire",
        };
        let record = AuditRecord::new(Actor::system(), action, "approvals")
            .on(id)
            .before(json!({"status": request.status}))
            .after(json!({"status": next.state.word(), "run": request.run.to_string()}));
        tx.audit_append(&self.inner.keys.audit, now, record).await?;
        Ok(true)
    }

    /// Records where a request is from now on, tells it, and does to its run what follows.
    async fn approval_moves(
        &self,
        tx: &mut TenantTx,
        request: &StoredApproval,
        chain: &ApprovalChain,
        next: &ApprovalProgress,
    ) -> Result<()> {
        let before: ApprovalState = read(&request.state)?;
        let moved = tx.approval_move(request.id, &move_to(chain, next)?).await?;
        match &next.state {
            ApprovalState::Pending { .. } | ApprovalState::Withdrawn { .. } => {}
            ApprovalState::Approved { .. } => tx.run_approved(request.run).await?,
            ApprovalState::Rejected { reason, .. } => {
                let message = format!("the run was denied: {reason}");
                let help = "talk to whoever denied it; a new run is asked for anew";
                let end = run_end(ErrorCode::APPROVAL_DENIED, &message, help);
                tx.run_set(request.run, &end).await?;
            }
            ApprovalState::Expired { step, .. } => {
                let name = chain.steps.get(*step).map_or("", |step| step.name.as_str());
                let message = format!("nobody decided on step {name} in time");
                let help = "ask again when somebody is there to decide";
                let end = run_end(ErrorCode::APPROVAL_EXPIRED, &message, help);
                tx.run_set(request.run, &end).await?;
            }
        }
        let told = match &next.state {
            ApprovalState::Pending { .. } => kind::APPROVAL_CHANGED,
            ApprovalState::Approved { .. }
            | ApprovalState::Rejected { .. }
            | ApprovalState::Expired { .. }
            | ApprovalState::Withdrawn { .. } => kind::APPROVAL_COMPLETED,
        };
        self.tell_approval(tx, told, &moved).await?;
        notify_of_approval(tx, &moved, chain, Some(&before), next).await
    }

    /// Tells those who may see approvals.
    pub(crate) async fn tell_approval(
        &self,
        tx: &mut TenantTx,
        kind: EventKind,
        request: &StoredApproval,
    ) -> Result<()> {
        let event = NewEvent::new(kind, request.id, approval_data(request))
            .about(request.run)
            .about(&request.deployment)
            .about(format!("{}/{}", request.deployment, request.environment))
            .in_environment(&request.environment);
        Ok(tx.live_publish(&[event]).await?)
    }
}

/// The run of a request, locked. It may be gone once the request has ended.
async fn run_of(tx: &mut TenantTx, request: &StoredApproval) -> Result<Option<StoredRun>> {
    match tx.run_lock(request.run).await {
        Err(StoreError::NotFound(_)) => Ok(None),
        found => Ok(Some(found?)),
    }
}

async fn entry_of(tx: &mut TenantTx, id: Uuid) -> Result<ApprovalEntry> {
    Ok(ApprovalEntry {
        request: tx.approval_get(id).await?,
        decisions: tx.decisions_on(&[id]).await?,
        yours: false,
    })
}

async fn progress_of(
    tx: &mut TenantTx,
    request: &StoredApproval,
) -> Result<(ApprovalChain, ApprovalProgress)> {
    let decisions = tx.decisions_on(&[request.id]).await?;
    let progress = ApprovalProgress {
        state: read(&request.state)?,
        decisions: decisions.into_iter().map(core_decision).collect(),
    };
    Ok((read(&request.chain)?, progress))
}

/// What is told live of a request.
pub(crate) fn approval_data(request: &StoredApproval) -> Value {
    json!({
        "resource_id": request.id,
        "run": request.run,
        "deployment": request.deployment,
        "environment": request.environment,
        "requested_by": request.requested_by,
        "changes": {"status": request.status, "state": request.state},
    })
}

/// What the approvals core wrote.
pub(crate) fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T> {
    serde_json::from_value(value.clone()).map_err(|error| {
        let message = format!("an approval cannot be read: {error}");
        Failure::new(ErrorCode::INTERNAL, message)
    })
}

pub(crate) fn written(value: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(value)
        .map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))
}

pub(crate) fn move_to(chain: &ApprovalChain, next: &ApprovalProgress) -> Result<ApprovalMove> {
    Ok(ApprovalMove {
        state: written(&next.state)?,
        status: next.state.word(),
        deadline: next.deadline(chain).map(nimbus_control_store::Timestamp),
    })
}

pub(crate) fn core_decision(stored: StoredDecision) -> ApprovalDecision {
    ApprovalDecision {
        step: usize::try_from(stored.step).unwrap_or_default(),
        by: stored.person.into(),
        for_user: stored.for_person.map(UserId::from),
        verdict: match stored.verdict.as_str() {
            "approve" => ApprovalVerdict::Approve,
            // The table takes no third word.
            _ => ApprovalVerdict::Reject,
        },
        comment: stored.comment,
        at: stored.decided_at.into(),
        covers: stored
            .covers
            .into_iter()
            .filter_map(|place| usize::try_from(place).ok())
            .collect(),
    }
}

fn stored_decision(request: Uuid, decision: &ApprovalDecision) -> StoredDecision {
    // Chains have ten steps and a hundred approvers at most.
    let small = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    StoredDecision {
        request,
        step: small(decision.step),
        person: decision.by.into(),
        for_person: decision.for_user.map(Uuid::from),
        verdict: match decision.verdict {
            ApprovalVerdict::Approve => "approve",
            ApprovalVerdict::Reject => "reject",
        }
        .to_owned(),
        comment: decision.comment.clone(),
        decided_at: nimbus_control_store::Timestamp(decision.at),
        covers: decision.covers.iter().copied().map(small).collect(),
    }
}

fn run_end(code: ErrorCode, message: &str, help: &str) -> RunEnd {
    RunEnd {
        status: "ended",
        wish: None,
        result: Some("cancelled".to_owned()),
        problem: Some(json!({"code": code.to_string(), "message": message, "help": help})),
    }
}

/// Why a decision does not count, with its code.
fn refused(refusal: ApprovalRefusal) -> Failure {
    let code = match &refusal {
        ApprovalRefusal::Ended { .. } => ErrorCode::APPROVAL_ENDED,
        ApprovalRefusal::TooLate { .. } => ErrorCode::APPROVAL_TOO_LATE,
        ApprovalRefusal::NotApprover { .. } => ErrorCode::APPROVAL_NOT_YOURS,
        ApprovalRefusal::OwnRequest => ErrorCode::APPROVAL_OWN_REQUEST,
        ApprovalRefusal::Twice { .. } => ErrorCode::APPROVAL_TWICE,
        ApprovalRefusal::ReasonNeeded => {
            return Failure::field("reason", refusal.to_string());
        }
    };
    Error::new(code, refusal.to_string()).into()
}
