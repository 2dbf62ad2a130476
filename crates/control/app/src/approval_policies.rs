//! Which environments need approval and by whom, and who decides in whose place.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use nimbus_approvals::{ApprovalChain, ApprovalNeed, ApprovalState, ApprovalStep, Approver};
use nimbus_control_auth::operation;
use nimbus_control_store::{NewApprovalPolicy, StoredApprovalPolicy, StoredDelegation, TenantTx};
use nimbus_control_wire::{
    Approval, ApprovalDelegation, ApprovalPolicy, ApprovalVote, PolicyStep, SetApprovalPolicy,
    StepApprover, StepNeed,
};
use nimbus_core::{EnvironmentName, TenantId, UserId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{App, EVERY_ENVIRONMENT};
use crate::approvals::{ApprovalEntry, read, written};
use crate::call::Call;
use crate::failure::{Failure, Result};

/// As long as a step may take.
const MOST_DELEGATED: SignedDuration = SignedDuration::from_hours(24 * 90);
const MOST_DELEGATES: usize = 20;

impl App {
    pub async fn approval_policy_list(
        &self,
        call: &Call,
        tenant: TenantId,
    ) -> Result<Vec<ApprovalPolicy>> {
        let operation = operation::LIST_APPROVAL_POLICIES;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.approval_policies().await?;
                self.audit(tx, &call.context, permit.record()).await?;
                found.into_iter().map(policy_of).collect()
            })
            .await
    }

    /// Sets who has to agree in an environment, or in all (`*`) that have no policy of their own. Requests that wait
    /// keep the policy that they were made under.
    pub async fn approval_policy_put(
        &self,
        call: &Call,
        tenant: TenantId,
        environment: &str,
        input: SetApprovalPolicy,
    ) -> Result<ApprovalPolicy> {
        let operation = operation::PUT_APPROVAL_POLICY;
        let permit = self.permit(call, operation, tenant).await?;
        ensure_environment(environment)?;
        self.ensure_in(call, &permit, environment)?;
        let chain = chain_of(&input)?;
        let new = NewApprovalPolicy {
            environment: environment.to_owned(),
            chain: written(&chain)?,
            rehearsals: input.rehearsals,
            set_by: call.who.user,
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                ensure_known(tx, &chain).await?;
                let before = tx.approval_policy_get(environment).await?;
                tx.approval_policy_put(&new).await?;
                let after = tx.approval_policy_get(environment).await?;
                let after = after.ok_or_else(Failure::not_found)?;
                let record = permit
                    .record()
                    .on(environment)
                    .before(before.as_ref().map_or(Value::Null, told))
                    .after(told(&after));
                self.audit(tx, &call.context, record).await?;
                policy_of(after)
            })
            .await
    }

    pub async fn approval_policy_delete(
        &self,
        call: &Call,
        tenant: TenantId,
        environment: &str,
    ) -> Result<()> {
        let operation = operation::DELETE_APPROVAL_POLICY;
        let permit = self.permit(call, operation, tenant).await?;
        ensure_environment(environment)?;
        self.ensure_in(call, &permit, environment)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let before = tx.approval_policy_get(environment).await?;
                tx.approval_policy_delete(environment).await?;
                let record = permit
                    .record()
                    .on(environment)
                    .before(before.as_ref().map_or(Value::Null, told));
                self.audit(tx, &call.context, record).await
            })
            .await
    }

    /// Whom the caller lets decide in their place.
    pub async fn delegation_list(
        &self,
        call: &Call,
        tenant: TenantId,
    ) -> Result<Vec<ApprovalDelegation>> {
        let permit = self
            .permit(call, operation::LIST_DELEGATIONS, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.delegations_of(call.who.user).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found.into_iter().map(delegation_of).collect())
            })
            .await
    }

    /// Lets somebody of the tenant decide in the caller's place. They need the permission themselves.
    pub async fn delegation_put(
        &self,
        call: &Call,
        tenant: TenantId,
        delegate: UserId,
        until: &str,
    ) -> Result<ApprovalDelegation> {
        let permit = self.permit(call, operation::PUT_DELEGATION, tenant).await?;
        let until = until_of(until, call.context.now)?;
        if delegate == call.who.user {
            return Err(Failure::field("user", "this is you"));
        }
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.user_get(delegate).await?;
                let known = tx.delegations_of(call.who.user).await?;
                let is_new = known.iter().all(|one| one.delegate != Uuid::from(delegate));
                if is_new && known.len() >= MOST_DELEGATES {
                    let words = format!("you have {MOST_DELEGATES} already");
                    return Err(Failure::field("user", words));
                }
                let until = nimbus_control_store::Timestamp(until);
                let put = tx.delegation_put(call.who.user, delegate, until).await?;
                let put = delegation_of(put);
                let record = permit
                    .record()
                    .on(delegate)
                    .after(json!({"until": put.until}));
                self.audit(tx, &call.context, record).await?;
                Ok(put)
            })
            .await
    }

    pub async fn delegation_delete(
        &self,
        call: &Call,
        tenant: TenantId,
        delegate: UserId,
    ) -> Result<()> {
        let permit = self
            .permit(call, operation::DELETE_DELEGATION, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.delegation_delete(call.who.user, delegate).await?;
                self.audit(tx, &call.context, permit.record().on(delegate))
                    .await
            })
            .await
    }
}

/// A request as answers have it.
///
/// # Errors
///
/// When another version wrote it in a form that this one does not know.
pub fn describe_approval(entry: ApprovalEntry) -> Result<Approval> {
    let ApprovalEntry {
        request,
        decisions,
        yours,
    } = entry;
    let chain: ApprovalChain = read(&request.chain)?;
    let state: ApprovalState = read(&request.state)?;
    let name = |place: usize| chain.steps.get(place).map(|step| step.name.clone());
    let (step, escalated) = match state {
        ApprovalState::Pending {
            step, escalated, ..
        } => (name(step), escalated),
        ApprovalState::Approved { .. }
        | ApprovalState::Rejected { .. }
        | ApprovalState::Expired { .. }
        | ApprovalState::Withdrawn { .. } => (None, false),
    };
    let vote = |decision: nimbus_control_store::StoredDecision| ApprovalVote {
        step: usize::try_from(decision.step)
            .ok()
            .and_then(name)
            .unwrap_or_default(),
        by: decision.person.to_string(),
        for_user: decision.for_person.map(|person| person.to_string()),
        verdict: decision.verdict,
        comment: decision.comment,
        at: decision.decided_at.0.to_string(),
    };
    Ok(Approval {
        id: request.id.to_string(),
        run: request.run.to_string(),
        run_number: format!("R{:04}", request.run_number),
        deployment: request.deployment,
        environment: request.environment,
        rehearsal: request.rehearsal,
        action: request.action,
        plan: request.plan.map(|plan| plan.to_string()),
        plan_digest: request.plan_digest,
        status: request.status,
        own_requests: chain.own_requests,
        step,
        escalated,
        yours,
        deadline: request.deadline.map(|time| time.0.to_string()),
        decisions: decisions.into_iter().map(vote).collect(),
        requested_by: request.requested_by.to_string(),
        requested_at: request.requested_at.0.to_string(),
        ended_at: request.ended_at.map(|time| time.0.to_string()),
        steps: chain.steps.iter().map(shown_step).collect(),
    })
}

fn ensure_environment(environment: &str) -> Result<()> {
    if environment == EVERY_ENVIRONMENT || environment.parse::<EnvironmentName>().is_ok() {
        return Ok(());
    }
    let words = "give the name of an environment, or * for all that have no policy of their own";
    Err(Failure::field("environment", words))
}

fn chain_of(input: &SetApprovalPolicy) -> Result<ApprovalChain> {
    let mut steps = Vec::new();
    for (number, step) in input.steps.iter().enumerate() {
        let place = |field: &str| format!("steps[{number}].{field}");
        steps.push(ApprovalStep {
            name: step.name.trim().to_owned(),
            approvers: approvers(&place("approvers"), &step.approvers)?,
            needs: match step.needs {
                StepNeed::Any => ApprovalNeed::Any,
                StepNeed::All => ApprovalNeed::All,
                StepNeed::Quorum(people) => ApprovalNeed::Quorum(people),
            },
            timeout_seconds: step.timeout_seconds,
            escalate_to: approvers(&place("escalate_to"), &step.escalate_to)?,
        });
    }
    let chain = ApprovalChain {
        steps,
        own_requests: input.own_requests,
    };
    chain
        .check()
        .map_err(|problem| Failure::field("steps", problem.to_string()))?;
    Ok(chain)
}

fn approvers(place: &str, given: &[StepApprover]) -> Result<Vec<Approver>> {
    let parse = |(number, one): (usize, &StepApprover)| {
        let parsed = match one {
            StepApprover::User(id) => id.parse().map(Approver::User).ok(),
            StepApprover::Group(id) => id.parse().map(Approver::Group).ok(),
        };
        parsed.ok_or_else(|| Failure::field(format!("{place}[{number}]"), "this is not an id"))
    };
    given.iter().enumerate().map(parse).collect()
}

/// Approvers are people and groups of the tenant: of another one nothing is found here.
async fn ensure_known(tx: &mut TenantTx, chain: &ApprovalChain) -> Result<()> {
    let mut users = BTreeSet::new();
    let mut groups = BTreeSet::new();
    for approver in chain.steps.iter().flat_map(|step| step.approvers(true)) {
        match approver {
            Approver::User(user) => users.insert(Uuid::from(user)),
            Approver::Group(group) => groups.insert(group),
        };
    }
    let wanted: Vec<Uuid> = users.iter().copied().collect();
    for known in tx.users_named(&wanted).await? {
        users.remove(&known.id);
    }
    let wanted: Vec<Uuid> = groups.iter().copied().collect();
    for known in tx.groups_named(&wanted).await? {
        groups.remove(&known.id);
    }
    if let Some(user) = users.first() {
        return Err(Failure::field("steps", format!("there is no user {user}")));
    }
    if let Some(group) = groups.first() {
        return Err(Failure::field(
            "steps",
            format!("there is no group {group}"),
        ));
    }
    Ok(())
}

fn until_of(text: &str, now: Timestamp) -> Result<Timestamp> {
    let wrong = |words: &str| Failure::field("until", words);
    let until: Timestamp = text
        .parse()
        .map_err(|_| wrong("give a time such as 2030-01-31T12:00:00Z"))?;
    if until <= now {
        return Err(wrong("this is over already"));
    }
    let latest = now.saturating_add(MOST_DELEGATED);
    if latest.is_ok_and(|latest| until > latest) {
        return Err(wrong("give up to ninety days from now"));
    }
    Ok(until)
}

fn policy_of(row: StoredApprovalPolicy) -> Result<ApprovalPolicy> {
    let chain: ApprovalChain = read(&row.chain)?;
    Ok(ApprovalPolicy {
        environment: row.environment,
        steps: chain.steps.iter().map(shown_step).collect(),
        own_requests: chain.own_requests,
        rehearsals: row.rehearsals,
        set_by: row.set_by.to_string(),
        set_at: row.set_at.0.to_string(),
    })
}

fn told(row: &StoredApprovalPolicy) -> Value {
    json!({"environment": row.environment, "chain": row.chain, "rehearsals": row.rehearsals})
}

fn delegation_of(row: StoredDelegation) -> ApprovalDelegation {
    ApprovalDelegation {
        delegate: row.delegate.to_string(),
        until: row.until.0.to_string(),
    }
}

fn shown_step(step: &ApprovalStep) -> PolicyStep {
    let shown = |all: &[Approver]| {
        let one = |approver: &Approver| match approver {
            Approver::User(user) => StepApprover::User(user.to_string()),
            Approver::Group(group) => StepApprover::Group(group.to_string()),
        };
        all.iter().map(one).collect()
    };
    PolicyStep {
        name: step.name.clone(),
        approvers: shown(&step.approvers),
        needs: match step.needs {
            ApprovalNeed::Any => StepNeed::Any,
            ApprovalNeed::All => StepNeed::All,
            ApprovalNeed::Quorum(people) => StepNeed::Quorum(people),
        },
        timeout_seconds: step.timeout_seconds,
        escalate_to: shown(&step.escalate_to),
    }
}
