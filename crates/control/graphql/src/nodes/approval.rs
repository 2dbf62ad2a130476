//! Runs that wait for people, what was decided on them, and which environments need that.

use async_graphql::{ID, SimpleObject};
use nimbus_control_wire::{
    Approval, ApprovalPolicy, ApprovalVote, PolicyStep, StepApprover, StepNeed,
};
use serde::{Deserialize, Serialize};

use crate::scalars::GraphTime;

/// Where a request for approval is after a decision.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "ApprovalResult")]
pub(crate) struct ApprovalResultNode {
    id: ID,
    /// The run that waits for it.
    run_id: ID,
    deployment_id: String,
    environment: String,
    /// `pending`, `approved`, `rejected`, `expired` or `withdrawn`.
    status: String,
    /// The name of the step that is waited for.
    step: Option<String>,
    /// When the time of that step is over.
    deadline: Option<GraphTime>,
    /// The digest of what is approved.
    plan_digest: String,
}

impl ApprovalResultNode {
    pub(crate) fn new(approval: Approval) -> Self {
        Self {
            id: approval.id.into(),
            run_id: approval.run.into(),
            deployment_id: approval.deployment,
            environment: approval.environment,
            status: approval.status,
            step: approval.step,
            deadline: approval.deadline.map(GraphTime),
            plan_digest: approval.plan_digest,
        }
    }
}

/// A run that waits for people, or waited.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Approval")]
pub(crate) struct ApprovalRequestNode {
    id: ID,
    /// The run that waits for it.
    run_id: ID,
    /// `R0001`: counted within the deployment.
    run_number: String,
    deployment_id: String,
    environment: String,
    rehearsal: bool,
    /// `deploy`, `destroy`, `rollback` or `refresh`.
    action: String,
    /// The preview whose plan is approved.
    plan_id: Option<ID>,
    /// SHA-256 of that plan; of what was asked where there is none.
    plan_digest: String,
    /// `pending`, `approved`, `rejected`, `expired` or `withdrawn`.
    status: String,
    /// As the policy had them when the run was asked for.
    steps: Vec<ApprovalStepNode>,
    /// Whether whoever asked may decide as well, where they are an approver.
    own_requests: bool,
    /// The name of the step that is waited for.
    step: Option<String>,
    /// Whether others may decide as well, because the first time was over.
    escalated: bool,
    /// Whether a decision of yours would count now.
    yours: bool,
    /// When the time of that step is over.
    deadline: Option<GraphTime>,
    /// Oldest first.
    decisions: Vec<ApprovalVoteNode>,
    requested_by_id: ID,
    requested_at: GraphTime,
    ended_at: Option<GraphTime>,
}

impl From<Approval> for ApprovalRequestNode {
    fn from(approval: Approval) -> Self {
        let steps = approval.steps.into_iter();
        let decisions = approval.decisions.into_iter();
        Self {
            id: approval.id.into(),
            run_id: approval.run.into(),
            run_number: approval.run_number,
            deployment_id: approval.deployment,
            environment: approval.environment,
            rehearsal: approval.rehearsal,
            action: approval.action,
            plan_id: approval.plan.map(ID::from),
            plan_digest: approval.plan_digest,
            status: approval.status,
            steps: steps.map(ApprovalStepNode::from).collect(),
            own_requests: approval.own_requests,
            step: approval.step,
            escalated: approval.escalated,
            yours: approval.yours,
            deadline: approval.deadline.map(GraphTime),
            decisions: decisions.map(ApprovalVoteNode::from).collect(),
            requested_by_id: approval.requested_by.into(),
            requested_at: GraphTime(approval.requested_at),
            ended_at: approval.ended_at.map(GraphTime),
        }
    }
}

/// One step of a policy. All have to be approved, one after the other.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ApprovalStep")]
struct ApprovalStepNode {
    name: String,
    approvers: Vec<StepApproverNode>,
    /// `any`, `all` or `quorum`.
    needs: &'static str,
    /// How many different people, of a quorum.
    quorum: Option<u32>,
    timeout_seconds: u64,
    /// Who may decide as well when the time is over.
    escalate_to: Vec<StepApproverNode>,
}

impl From<PolicyStep> for ApprovalStepNode {
    fn from(step: PolicyStep) -> Self {
        let (needs, quorum) = match step.needs {
            StepNeed::Any => ("any", None),
            StepNeed::All => ("all", None),
            StepNeed::Quorum(people) => ("quorum", Some(people)),
        };
        let nodes = |approvers: Vec<StepApprover>| {
            let approvers = approvers.into_iter();
            approvers.map(StepApproverNode::from).collect()
        };
        Self {
            name: step.name,
            approvers: nodes(step.approvers),
            needs,
            quorum,
            timeout_seconds: step.timeout_seconds,
            escalate_to: nodes(step.escalate_to),
        }
    }
}

/// Somebody who may decide: one of the two.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "StepApprover")]
struct StepApproverNode {
    user_id: Option<ID>,
    /// Anybody who is in it when they decide.
    group_id: Option<ID>,
}

impl From<StepApprover> for StepApproverNode {
    fn from(approver: StepApprover) -> Self {
        match approver {
            StepApprover::User(user) => Self {
                user_id: Some(user.into()),
                group_id: None,
            },
            StepApprover::Group(group) => Self {
                user_id: None,
                group_id: Some(group.into()),
            },
        }
    }
}

/// What somebody decided.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ApprovalDecision")]
struct ApprovalVoteNode {
    /// The name of the step.
    step: String,
    by_id: ID,
    /// Who had asked them to decide in their place.
    for_user_id: Option<ID>,
    /// `approve` or `reject`.
    verdict: String,
    comment: String,
    at: GraphTime,
}

impl From<ApprovalVote> for ApprovalVoteNode {
    fn from(vote: ApprovalVote) -> Self {
        Self {
            step: vote.step,
            by_id: vote.by.into(),
            for_user_id: vote.for_user.map(ID::from),
            verdict: vote.verdict,
            comment: vote.comment,
            at: GraphTime(vote.at),
        }
    }
}

/// Who has to agree before a run changes an environment.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ApprovalPolicy")]
pub(crate) struct ApprovalPolicyNode {
    /// Its name, or `*` for all that have no policy of their own.
    environment: String,
    steps: Vec<ApprovalStepNode>,
    /// Whether whoever asks may decide as well, where they are an approver.
    own_requests: bool,
    /// Whether runs on a simulated cloud need approval as well.
    rehearsals: bool,
    set_by_id: ID,
    set_at: GraphTime,
}

impl From<ApprovalPolicy> for ApprovalPolicyNode {
    fn from(policy: ApprovalPolicy) -> Self {
        let steps = policy.steps.into_iter();
        Self {
            environment: policy.environment,
            steps: steps.map(ApprovalStepNode::from).collect(),
            own_requests: policy.own_requests,
            rehearsals: policy.rehearsals,
            set_by_id: policy.set_by.into(),
            set_at: GraphTime(policy.set_at),
        }
    }
}
