//! What to know before one decides on a plan, who has looked at what, drafts, and how the installation is.

use async_graphql::{ID, Json, SimpleObject};
use nimbus_control_wire::{
    DatabaseView, DraftView, OneWayStep, PlanReview, PlanRisk, ReviewMark, RollbackForecast,
    RunnersView, SealItem, SystemCheck, SystemView,
};

use crate::scalars::{AnyJson, GraphTime};

/// What somebody who decides on a plan should know.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "PlanReview")]
pub(crate) struct ReviewNode {
    /// Worst first.
    risks: Vec<RiskNode>,
    /// What the plan was made from, and what of it moved.
    seal: Vec<SealNode>,
    /// What would be undone after a failure.
    forecast: ForecastNode,
    /// Everything up to this event of the plan is in it.
    seq: i64,
}

impl From<PlanReview> for ReviewNode {
    fn from(review: PlanReview) -> Self {
        Self {
            risks: review.risks.into_iter().map(RiskNode::from).collect(),
            seal: review.seal.into_iter().map(SealNode::from).collect(),
            forecast: review.forecast.into(),
            seq: review.seq,
        }
    }
}

/// Something that should be read before a decision.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "PlanRisk")]
struct RiskNode {
    /// The same for the same risk of another plan.
    key: String,
    /// `not_planned`, `data`, `delete`, `replace`, `access`, `public` or `unknown`.
    kind: String,
    unit: String,
    title: String,
    about: String,
    /// Whether a rollback brings back what was there.
    reversible: bool,
    /// How many resources or values it is about.
    count: u64,
}

impl From<PlanRisk> for RiskNode {
    fn from(risk: PlanRisk) -> Self {
        Self {
            key: risk.key,
            kind: risk.kind,
            unit: risk.unit,
            title: risk.title,
            about: risk.about,
            reversible: risk.reversible,
            count: risk.count,
        }
    }
}

/// One thing that a plan was made from.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "PlanSealItem")]
struct SealNode {
    /// `programs`, `manifest`, `state`, `steps` or `newest`.
    kind: String,
    name: String,
    /// What it was.
    proof: String,
    /// What moved; absent while it holds.
    moved: Option<String>,
}

impl From<SealItem> for SealNode {
    fn from(item: SealItem) -> Self {
        Self {
            kind: item.kind,
            name: item.name,
            proof: item.proof,
            moved: item.moved,
        }
    }
}

/// What would be undone after a failure, and what could not be.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "RollbackForecast")]
struct ForecastNode {
    /// Units that would go back, in the order in which they would.
    units: Vec<String>,
    /// Steps whose resource would be a new one, without what was in the old.
    one_way: Vec<OneWayNode>,
}

impl From<RollbackForecast> for ForecastNode {
    fn from(forecast: RollbackForecast) -> Self {
        let one_way = forecast.one_way.into_iter();
        Self {
            units: forecast.units,
            one_way: one_way.map(OneWayNode::from).collect(),
        }
    }
}

/// A step that has no way back.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "OneWayStep")]
struct OneWayNode {
    unit: String,
    urn: String,
    #[graphql(name = "type")]
    resource_type: String,
    name: String,
    /// `delete` or `replace`.
    op: String,
    /// Whether something is in it that cannot be made again.
    data: bool,
}

impl From<OneWayStep> for OneWayNode {
    fn from(step: OneWayStep) -> Self {
        Self {
            unit: step.unit,
            urn: step.urn,
            resource_type: step.type_,
            name: step.name,
            op: step.op,
            data: step.data,
        }
    }
}

/// That somebody looked at something in plans of an environment.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ReviewMark")]
pub(crate) struct MarkNode {
    /// Such as `unit:network` or a risk's key.
    item: String,
    /// Of what was looked at: a mark holds where the same would change.
    digest: String,
    user_id: ID,
    /// Their address, where the tenant knows them.
    email: Option<String>,
    at: GraphTime,
}

impl From<ReviewMark> for MarkNode {
    fn from(mark: ReviewMark) -> Self {
        Self {
            item: mark.item,
            digest: mark.digest,
            user_id: mark.person.into(),
            email: mark.name,
            at: GraphTime(mark.at),
        }
    }
}

/// Something that you have begun to write. Nobody else sees it.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Draft")]
pub(crate) struct DraftNode {
    id: String,
    /// What it will be, such as `deployment`.
    kind: String,
    content: AnyJson,
    updated_at: GraphTime,
    /// It is forgotten then, unless it is changed.
    expires_at: GraphTime,
}

impl From<DraftView> for DraftNode {
    fn from(draft: DraftView) -> Self {
        Self {
            id: draft.id,
            kind: draft.kind,
            content: Json(draft.content),
            updated_at: GraphTime(draft.updated_at),
            expires_at: GraphTime(draft.expires_at),
        }
    }
}

/// How the installation is, looked at now.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "SystemStatus")]
pub(crate) struct SystemNode {
    version: String,
    server_time: GraphTime,
    checks: Vec<SystemCheckNode>,
    runners: RunnersNode,
    database: DatabaseNode,
}

impl From<SystemView> for SystemNode {
    fn from(view: SystemView) -> Self {
        let checks = view.checks.into_iter();
        Self {
            version: view.version,
            server_time: GraphTime(view.server_time),
            checks: checks.map(SystemCheckNode::from).collect(),
            runners: view.runners.into(),
            database: view.database.into(),
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "SystemCheck")]
struct SystemCheckNode {
    /// `database`, `isolation`, `sandbox`, `keys`, `clock`, `packages` or `mail`.
    kind: String,
    name: String,
    /// `ok`, `warning` or `failed`.
    status: String,
    message: String,
    /// What to do, or what it costs to leave it so.
    help: Option<String>,
}

impl From<SystemCheck> for SystemCheckNode {
    fn from(check: SystemCheck) -> Self {
        Self {
            kind: check.kind,
            name: check.name,
            status: check.status,
            message: check.message,
            help: check.help,
        }
    }
}

/// Who carries runs out.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "SystemRunners")]
struct RunnersNode {
    /// Runs at once on this server, of all tenants together.
    places: u64,
    /// Of one customer.
    per_customer: u64,
    /// Runs that are carried out, on all servers.
    running: u64,
    queued: u64,
    /// Servers that carry one out now.
    servers: u64,
    /// A run is stopped after so long.
    most_seconds: u64,
}

impl From<RunnersView> for RunnersNode {
    fn from(view: RunnersView) -> Self {
        Self {
            places: view.places,
            per_customer: view.per_customer,
            running: view.running,
            queued: view.queued,
            servers: view.servers,
            most_seconds: view.most_seconds,
        }
    }
}

/// The database of the installation.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "SystemDatabase")]
struct DatabaseNode {
    version: String,
    bytes: u64,
    tenants: u64,
    /// `schema_with_rls` or `shared`.
    isolation: String,
    /// The newest migration.
    schema: String,
    /// Connections that are open.
    connections: u64,
    most_connections: u64,
    /// How long a question and its answer took.
    milliseconds: f64,
}

impl From<DatabaseView> for DatabaseNode {
    fn from(view: DatabaseView) -> Self {
        Self {
            version: view.version,
            bytes: view.bytes,
            tenants: view.tenants,
            isolation: view.isolation,
            schema: view.schema,
            connections: view.connections,
            most_connections: view.most_connections,
            milliseconds: view.milliseconds,
        }
    }
}
