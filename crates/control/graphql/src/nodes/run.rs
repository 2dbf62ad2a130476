//! Runs: as lists have them, in detail, their log, and what is told of one while it goes on.

use async_graphql::{ComplexObject, Context, ID, Json, SimpleObject};
use nimbus_control_app::{QueuedRun, StoredEvent, StoredRun, describe_run};
use nimbus_control_wire::{
    NumberedEvent, ProgressFrame, Run, RunDetail, RunLogPage, RunProblem, RunUnit, UnitResource,
    UnitResources,
};
use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{DeploymentNode, UserNode};
use crate::act::FieldResult;
use crate::loaders::{DeploymentKey, UserKey, load};
use crate::scalars::{AnyJson, GraphTime};

/// A run of a deployment.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Run", complex)]
pub(crate) struct RunNode {
    #[graphql(skip)]
    tenant: TenantId,
    #[graphql(skip)]
    requester: Option<Uuid>,
    id: ID,
    /// `R0001`: counted within the deployment.
    number: String,
    deployment_id: String,
    environment: String,
    /// `deploy`, `destroy`, `preview`, `rollback` or `refresh`.
    action: String,
    rehearsal: bool,
    /// `queued`, `running`, `paused` or `ended`.
    status: String,
    /// How many runs of the tenant come before it, while it is queued.
    position: Option<i64>,
    /// `succeeded`, `failed`, `interrupted`, `rolled_back`, `needs_attention` or `cancelled`.
    result: Option<String>,
    /// Why it could not go on.
    problem: Option<RunProblemNode>,
    /// What somebody wants of it: `cancel` or `pause`.
    wish: Option<String>,
    /// The preview whose plan it is held to.
    plan: Option<ID>,
    /// The approval that it waits for, while it does.
    approval: Option<ID>,
    /// The name by which who asked is known.
    user: Option<String>,
    /// Why, in their words.
    message: Option<String>,
    /// `automatic`, `rollback`, `hold` or `continue`, where it was said.
    on_failure: Option<String>,
    /// Why it was deployed although the environment before was not ready.
    skip_gate: Option<String>,
    queued_at: GraphTime,
    began_at: Option<GraphTime>,
    ended_at: Option<GraphTime>,
    /// The number of its newest event.
    last_seq: i64,
}

/// Why a run could not go on.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "RunProblem")]
struct RunProblemNode {
    code: String,
    message: String,
    help: Option<String>,
}

impl From<RunProblem> for RunProblemNode {
    fn from(problem: RunProblem) -> Self {
        Self {
            code: problem.code,
            message: problem.message,
            help: problem.help,
        }
    }
}

impl RunNode {
    pub(crate) fn new(tenant: TenantId, run: Run) -> Self {
        Self {
            tenant,
            requester: run.requested_by.parse().ok(),
            id: run.id.into(),
            number: run.number,
            deployment_id: run.deployment,
            environment: run.environment,
            action: run.action,
            rehearsal: run.rehearsal,
            status: run.status,
            position: run.position,
            result: run.result,
            problem: run.problem.map(RunProblemNode::from),
            wish: run.wish,
            plan: run.plan.map(ID::from),
            approval: run.approval.map(ID::from),
            user: run.user,
            message: run.message,
            on_failure: run.on_failure,
            skip_gate: run.skip_gate,
            queued_at: GraphTime(run.queued_at),
            began_at: run.began_at.map(GraphTime),
            ended_at: run.ended_at.map(GraphTime),
            last_seq: run.last_seq,
        }
    }

    pub(crate) fn queued(tenant: TenantId, run: QueuedRun) -> Self {
        Self::new(tenant, describe_run(run))
    }

    pub(crate) fn stored(tenant: TenantId, run: StoredRun) -> Self {
        let position = None;
        Self::queued(tenant, QueuedRun { run, position })
    }
}

#[ComplexObject]
impl RunNode {
    /// Who asked for it, if they are of the tenant.
    async fn requested_by(&self, ctx: &Context<'_>) -> FieldResult<Option<UserNode>> {
        let Some(user) = self.requester else {
            return Ok(None);
        };
        Ok(load(ctx, UserKey(self.tenant, user))
            .await?
            .map(UserNode::from))
    }

    /// The deployment that it is of.
    async fn deployment(&self, ctx: &Context<'_>) -> FieldResult<Option<DeploymentNode>> {
        let key = DeploymentKey(self.tenant, self.deployment_id.clone());
        let found = load(ctx, key).await?;
        Ok(found.map(|row| DeploymentNode::new(self.tenant, row)))
    }
}

/// Everything about a run up to one of its events, except for its resources and its log.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "RunDetail")]
pub(crate) struct RunDetailNode {
    run: RunNode,
    /// Everything up to this event is in it.
    seq: i64,
    planned_minutes: u64,
    usual_seconds: Option<u64>,
    /// How often it was started or gone on with.
    attempts: u32,
    /// Whether it undoes its work.
    undoing: bool,
    trigger: Option<String>,
    message: Option<String>,
    /// Units by layer; a layer needs only those before it.
    layers: Vec<Vec<String>>,
    units: Vec<RunUnitNode>,
    checks: Vec<CheckNode>,
    totals: AnyJson,
    /// What failed first.
    cause: Option<AnyJson>,
    /// What a person must look at.
    attention: Vec<String>,
}

/// A check of what was deployed.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "RunCheck")]
struct CheckNode {
    name: String,
    status: String,
    message: Option<String>,
    seconds: Option<u64>,
}

impl RunDetailNode {
    pub(crate) fn new(tenant: TenantId, detail: RunDetail) -> Self {
        let checks = detail.checks.into_iter().map(|check| CheckNode {
            name: check.name,
            status: check.status,
            message: check.message,
            seconds: check.seconds,
        });
        Self {
            run: RunNode::new(tenant, detail.run),
            seq: detail.seq,
            planned_minutes: detail.planned_minutes,
            usual_seconds: detail.usual_seconds,
            attempts: detail.attempts,
            undoing: detail.undoing,
            trigger: detail.trigger,
            message: detail.message,
            layers: detail.layers,
            units: detail.units.into_iter().map(RunUnitNode::from).collect(),
            checks: checks.collect(),
            totals: Json(json!(detail.totals)),
            cause: detail.cause.map(|cause| Json(json!(cause))),
            attention: detail.attention,
        }
    }
}

/// One unit of a run.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "RunUnit")]
struct RunUnitNode {
    name: String,
    layer: usize,
    needs: Vec<String>,
    needed_by: Vec<String>,
    /// `waiting`, `running`, `succeeded`, `skipped`, `failed`, `not_started`, `rolling_back` or `rolled_back`.
    status: String,
    decision: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    attention: bool,
    planned_minutes: u64,
    usual_seconds: Option<u64>,
    started_at: Option<GraphTime>,
    ended_at: Option<GraphTime>,
    seconds: Option<u64>,
    /// By operation, once it ended.
    changes: AnyJson,
    /// As far as it has come.
    resources: AnyJson,
}

impl From<RunUnit> for RunUnitNode {
    fn from(unit: RunUnit) -> Self {
        Self {
            name: unit.name,
            layer: unit.layer,
            needs: unit.needs,
            needed_by: unit.needed_by,
            status: unit.status,
            decision: unit.decision,
            reason: unit.reason,
            message: unit.message,
            attention: unit.attention,
            planned_minutes: unit.planned_minutes,
            usual_seconds: unit.usual_seconds,
            started_at: unit.started_at.map(GraphTime),
            ended_at: unit.ended_at.map(GraphTime),
            seconds: unit.seconds,
            changes: Json(json!(unit.changes)),
            resources: Json(json!(unit.resources)),
        }
    }
}

/// Resources of one unit of a run, in the order in which they were first seen.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "UnitResources")]
pub(crate) struct UnitResourcesNode {
    seq: i64,
    unit: RunUnitNode,
    resources: Vec<ResourceNode>,
    /// Give this as `after` for more; absent at the end.
    next: Option<u64>,
}

/// A step on one resource.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "UnitResource")]
struct ResourceNode {
    urn: String,
    #[graphql(name = "type")]
    type_: String,
    name: String,
    op: String,
    status: String,
    id: Option<String>,
    started_at: Option<GraphTime>,
    ended_at: Option<GraphTime>,
    seconds: Option<f64>,
    /// What it changes. Secrets are never in it.
    properties: AnyJson,
}

impl From<UnitResource> for ResourceNode {
    fn from(step: UnitResource) -> Self {
        Self {
            urn: step.urn,
            type_: step.type_,
            name: step.name,
            op: step.op,
            status: step.status,
            id: step.id,
            started_at: step.started_at.map(GraphTime),
            ended_at: step.ended_at.map(GraphTime),
            seconds: step.seconds,
            properties: Json(json!(step.properties)),
        }
    }
}

impl From<UnitResources> for UnitResourcesNode {
    fn from(found: UnitResources) -> Self {
        Self {
            seq: found.seq,
            unit: found.unit.into(),
            resources: found
                .resources
                .into_iter()
                .map(ResourceNode::from)
                .collect(),
            next: found.next,
        }
    }
}

/// Something that happened in a run.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "RunEvent")]
pub(crate) struct RunEventNode {
    seq: i64,
    /// One word for what happened, such as `stack_started`.
    kind: String,
    event: AnyJson,
}

impl From<NumberedEvent> for RunEventNode {
    fn from(numbered: NumberedEvent) -> Self {
        Self {
            seq: numbered.seq,
            kind: numbered.kind,
            event: Json(numbered.event),
        }
    }
}

impl From<StoredEvent> for RunEventNode {
    fn from(stored: StoredEvent) -> Self {
        NumberedEvent::new(stored.seq, stored.event).into()
    }
}

/// Part of a run's events, in order.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "RunEvents")]
pub(crate) struct RunEventsNode {
    pub(crate) items: Vec<RunEventNode>,
    /// Give this as `after` for what follows.
    pub(crate) next: i64,
    /// Whether the run is over and everything was read.
    pub(crate) complete: bool,
}

/// Part of a run's log, oldest first.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "RunLog")]
pub(crate) struct RunLogNode {
    lines: Vec<LogLineNode>,
    /// Give this as `before` for what came before.
    first: Option<i64>,
    /// Give this as `after` for what comes after.
    last: Option<i64>,
    /// Whether there are more in the direction that was asked for.
    more: bool,
}

/// Something that a program, a provider, a check or the engine had to say.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "RunLogLine")]
struct LogLineNode {
    seq: i64,
    at: GraphTime,
    unit: Option<String>,
    /// `debug`, `info`, `warning` or `error`.
    level: String,
    message: String,
}

impl From<RunLogPage> for RunLogNode {
    fn from(page: RunLogPage) -> Self {
        let lines = page.lines.into_iter().map(|line| LogLineNode {
            seq: line.seq,
            at: GraphTime(line.at),
            unit: line.unit,
            level: line.level,
            message: line.message,
        });
        Self {
            lines: lines.collect(),
            first: page.first,
            last: page.last,
            more: page.more,
        }
    }
}

/// What is told to whoever watches a run.
#[derive(Clone, Debug, Default, SimpleObject)]
#[graphql(name = "RunProgress")]
pub(crate) struct ProgressNode {
    /// `snapshot`, `resumed`, `events`, `run`, `gap`, `heartbeat` or `complete`.
    kind: &'static str,
    /// Everything up to this event was told.
    seq: i64,
    run: Option<RunNode>,
    /// Where the run stands, in a snapshot.
    detail: Option<RunDetailNode>,
    /// What happened, in order and without gaps.
    events: Vec<RunEventNode>,
    /// The first event that is not told, in a gap. A snapshot follows.
    gap_from: Option<i64>,
}

impl ProgressNode {
    pub(crate) fn new(tenant: TenantId, frame: ProgressFrame) -> Self {
        match frame {
            ProgressFrame::Snapshot { seq, detail } => Self {
                kind: "snapshot",
                seq,
                run: Some(RunNode::new(tenant, detail.run.clone())),
                detail: Some(RunDetailNode::new(tenant, *detail)),
                ..Self::default()
            },
            ProgressFrame::Resumed { seq, run, .. } => Self {
                kind: "resumed",
                seq,
                run: Some(RunNode::new(tenant, *run)),
                ..Self::default()
            },
            ProgressFrame::Events { items } => {
                let events: Vec<_> = items.into_iter().map(RunEventNode::from).collect();
                Self {
                    kind: "events",
                    seq: events.last().map_or(0, |event| event.seq),
                    events,
                    ..Self::default()
                }
            }
            ProgressFrame::Run { run } => Self {
                kind: "run",
                seq: run.last_seq,
                run: Some(RunNode::new(tenant, *run)),
                ..Self::default()
            },
            ProgressFrame::Gap { from, to } => Self {
                kind: "gap",
                seq: to,
                gap_from: Some(from),
                ..Self::default()
            },
            ProgressFrame::Heartbeat { seq, .. } => Self {
                kind: "heartbeat",
                seq,
                ..Self::default()
            },
            ProgressFrame::Complete { seq, run } => Self {
                kind: "complete",
                seq,
                run: Some(RunNode::new(tenant, *run)),
                ..Self::default()
            },
        }
    }
}
