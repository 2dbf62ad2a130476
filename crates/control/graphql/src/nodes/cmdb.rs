//! Configuration items, what they have to do with each other, and imports of them.

use async_graphql::connection::{ConnectionNameType, DefaultEdgeName, EmptyFields};
use async_graphql::{Enum, ID, Json, OutputType, SimpleObject};
use nimbus_control_app::SearchKind;
use nimbus_control_wire::{
    CmdbHit, ConfigurationItem, ImportJob, ItemClass, ItemCompartment, ItemGraph, ItemHistoryEntry,
    ItemRelationship, UnitSync,
};
use serde_json::Value;

use crate::scalars::{AnyJson, GraphTime};

/// Something that a tenant has.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ConfigurationItem")]
pub(crate) struct ItemNode {
    id: ID,
    name: String,
    /// The type of a resource, such as `aws:ec2/vpc:Vpc`, `nimbus:unit`, or a class that somebody made.
    class: String,
    provider_type: Option<String>,
    /// What it is in the semantic layer.
    semantic_type: Option<String>,
    compartment_id: Option<ID>,
    cloud_resource_id: Option<String>,
    /// What the cloud says of it, without secrets. Of a unit these are its outputs.
    attributes: AnyJson,
    /// Names of attributes that are too large to be kept here.
    left_out: Vec<String>,
    pulumi_urn: Option<String>,
    /// SHA-256 of the state in which it last changed.
    state_version: Option<String>,
    /// `run` or `import`.
    source: String,
    deployment_id: Option<String>,
    environment: Option<String>,
    rehearsal: bool,
    unit: Option<String>,
    /// By which imports name it.
    key: Option<String>,
    external: bool,
    /// `active` or `decommissioned`.
    status: String,
    run_id: Option<ID>,
    revision: i32,
    created_at: GraphTime,
    updated_at: GraphTime,
    deleted_at: Option<GraphTime>,
}

impl From<ConfigurationItem> for ItemNode {
    fn from(item: ConfigurationItem) -> Self {
        Self {
            id: item.id.into(),
            name: item.name,
            class: item.class,
            provider_type: item.provider,
            semantic_type: item.semantic_type,
            compartment_id: item.compartment.map(ID::from),
            cloud_resource_id: item.cloud_resource_id,
            attributes: Json(Value::Object(item.attributes)),
            left_out: item.left_out,
            pulumi_urn: item.urn,
            state_version: item.state_version,
            source: item.source,
            deployment_id: item.deployment,
            environment: item.environment,
            rehearsal: item.rehearsal,
            unit: item.unit,
            key: item.key,
            external: item.external,
            status: item.status,
            run_id: item.run.map(ID::from),
            revision: item.revision,
            created_at: GraphTime(item.created_at),
            updated_at: GraphTime(item.updated_at),
            deleted_at: item.decommissioned_at.map(GraphTime),
        }
    }
}

/// The name that the founding document gives to a page of items.
pub(crate) struct ResourceConnectionName;

impl ConnectionNameType for ResourceConnectionName {
    fn type_name<T: OutputType>() -> String {
        "ResourceConnection".to_owned()
    }
}

/// A page of items.
pub(crate) type ListedItems = async_graphql::connection::Connection<
    String,
    ItemNode,
    EmptyFields,
    EmptyFields,
    ResourceConnectionName,
    DefaultEdgeName,
>;

/// Something that happened to an item.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ItemHistoryEntry")]
pub(crate) struct ItemHistoryNode {
    revision: i32,
    /// `created`, `updated`, `decommissioned`, `recommissioned` or `moved`.
    change: String,
    /// What is different, by field, with both values.
    changes: AnyJson,
    state_version: Option<String>,
    run_id: Option<ID>,
    user_id: Option<ID>,
    at: GraphTime,
}

impl From<ItemHistoryEntry> for ItemHistoryNode {
    fn from(entry: ItemHistoryEntry) -> Self {
        Self {
            revision: entry.revision,
            change: entry.change,
            changes: Json(entry.changes),
            state_version: entry.state_version,
            run_id: entry.run.map(ID::from),
            user_id: entry.user.map(ID::from),
            at: GraphTime(entry.at),
        }
    }
}

/// One item has to do with another.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ItemRelationship")]
pub(crate) struct RelationshipNode {
    id: ID,
    source_id: ID,
    target_id: ID,
    /// What the source does to the target, such as `contains` or `depends_on`.
    relationship: String,
    attributes: AnyJson,
    /// `run`, `import` or `person`.
    said_by: String,
    created_at: GraphTime,
}

impl From<ItemRelationship> for RelationshipNode {
    fn from(one: ItemRelationship) -> Self {
        Self {
            id: one.id.into(),
            source_id: one.source.into(),
            target_id: one.target.into(),
            relationship: one.relationship,
            attributes: Json(one.attributes),
            said_by: one.said_by,
            created_at: GraphTime(one.created_at),
        }
    }
}

/// An item of a graph, and how many relationships away it is.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "GraphItem")]
struct GraphItemNode {
    depth: u32,
    item: ItemNode,
}

/// What is around an item.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ItemGraph")]
pub(crate) struct ItemGraphNode {
    /// Nearest first.
    items: Vec<GraphItemNode>,
    relationships: Vec<RelationshipNode>,
    /// Whether this is everything as far as was asked.
    complete: bool,
}

impl From<ItemGraph> for ItemGraphNode {
    fn from(graph: ItemGraph) -> Self {
        let item = |one: nimbus_control_wire::GraphItem| GraphItemNode {
            depth: one.depth,
            item: one.item.into(),
        };
        Self {
            items: graph.items.into_iter().map(item).collect(),
            relationships: graph.relationships.into_iter().map(Into::into).collect(),
            complete: graph.complete,
        }
    }
}

/// What items can be.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ItemClass")]
pub(crate) struct ItemClassNode {
    name: String,
    provider_type: Option<String>,
    semantic_type: Option<String>,
    /// JSON Schema of what imported items of it say.
    attributes: AnyJson,
    /// Which relationships may begin at its items; every one when it is empty.
    relationships: Vec<String>,
    description: String,
    /// Whether somebody made or described it.
    described: bool,
    updated_at: GraphTime,
}

impl From<ItemClass> for ItemClassNode {
    fn from(class: ItemClass) -> Self {
        Self {
            name: class.name,
            provider_type: class.provider,
            semantic_type: class.semantic_type,
            attributes: Json(class.attributes),
            relationships: class.relationships,
            description: class.description,
            described: class.described,
            updated_at: GraphTime(class.updated_at),
        }
    }
}

/// A folder for items.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Compartment")]
pub(crate) struct CompartmentNode {
    id: ID,
    parent_id: Option<ID>,
    name: String,
    cloud_id: Option<String>,
    provider_type: Option<String>,
    created_at: GraphTime,
    /// Give this as `after` to read on behind this one.
    cursor: String,
}

impl From<ItemCompartment> for CompartmentNode {
    fn from(one: ItemCompartment) -> Self {
        Self {
            cursor: format!("{}.{}", one.id, one.name),
            id: one.id.into(),
            parent_id: one.parent.map(ID::from),
            name: one.name,
            cloud_id: one.cloud_id,
            provider_type: one.provider,
            created_at: GraphTime(one.created_at),
        }
    }
}

/// What can be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[graphql(name = "SearchType")]
pub(crate) enum SearchTypeNode {
    Compartment,
    Class,
    Resource,
}

impl From<SearchTypeNode> for SearchKind {
    fn from(one: SearchTypeNode) -> Self {
        match one {
            SearchTypeNode::Compartment => Self::Compartment,
            SearchTypeNode::Class => Self::Class,
            SearchTypeNode::Resource => Self::Resource,
        }
    }
}

/// Something that was found.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "SearchHit")]
pub(crate) struct SearchHitNode {
    /// `compartment`, `class` or `resource`.
    #[graphql(name = "type")]
    kind: String,
    id: ID,
    name: String,
    class: Option<String>,
    deployment_id: Option<String>,
    environment: Option<String>,
}

impl From<CmdbHit> for SearchHitNode {
    fn from(hit: CmdbHit) -> Self {
        Self {
            kind: hit.type_,
            id: hit.id.into(),
            name: hit.name,
            class: hit.class,
            deployment_id: hit.deployment,
            environment: hit.environment,
        }
    }
}

/// What was found: compartments, classes, then resources, each by name.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "SearchResults")]
pub(crate) struct SearchResultsNode {
    pub(crate) hits: Vec<SearchHitNode>,
    /// Give this as `after` to read on; absent at the end.
    pub(crate) end_cursor: Option<String>,
}

/// An import that was tried: all of the file was taken, or nothing.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ImportJob")]
pub(crate) struct ImportJobNode {
    id: ID,
    format: String,
    /// `succeeded` or `failed`.
    status: String,
    dry_run: bool,
    created: u64,
    updated: u64,
    decommissioned: u64,
    unchanged: u64,
    /// The first problems, by line.
    problems: Vec<LineProblemNode>,
    problem_count: i32,
    requested_by_id: ID,
    at: GraphTime,
}

/// What is wrong with a line of a file.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "LineProblem")]
struct LineProblemNode {
    line: u64,
    message: String,
}

impl From<ImportJob> for ImportJobNode {
    fn from(job: ImportJob) -> Self {
        let problem = |one: nimbus_control_wire::LineProblem| LineProblemNode {
            line: one.line,
            message: one.message,
        };
        Self {
            id: job.id.into(),
            format: job.format,
            status: job.status,
            dry_run: job.dry_run,
            created: job.created,
            updated: job.updated,
            decommissioned: job.decommissioned,
            unchanged: job.unchanged,
            problems: job.problems.into_iter().map(problem).collect(),
            problem_count: job.problem_count,
            requested_by_id: job.requested_by.into(),
            at: GraphTime(job.at),
        }
    }
}

/// From which state the items of a unit are.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "UnitSync")]
pub(crate) struct UnitSyncNode {
    deployment_id: String,
    environment: String,
    rehearsal: bool,
    unit: String,
    items: i32,
    run_id: ID,
    /// Why items are not what the state says, if they are not.
    problem: Option<String>,
    synced_at: GraphTime,
}

impl From<UnitSync> for UnitSyncNode {
    fn from(sync: UnitSync) -> Self {
        Self {
            deployment_id: sync.deployment,
            environment: sync.environment,
            rehearsal: sync.rehearsal,
            unit: sync.unit,
            items: sync.items,
            run_id: sync.run.into(),
            problem: sync.problem,
            synced_at: GraphTime(sync.synced_at),
        }
    }
}
