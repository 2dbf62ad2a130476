//! Configuration items as answers have them.

use nimbus_control_store::{
    Compartment, GraphPart, ImportCounts, StoredClass, StoredHistory, StoredImport, StoredItem,
    StoredRelationship, StoredSync,
};
use nimbus_control_wire::{
    ConfigurationItem, GraphItem, ImportJob, ItemClass, ItemCompartment, ItemGraph,
    ItemHistoryEntry, ItemRelationship, LineProblem, UnitSync,
};
use serde_json::Value;

pub fn describe_item(row: StoredItem) -> ConfigurationItem {
    ConfigurationItem {
        id: row.id.to_string(),
        name: row.name,
        class: row.class,
        provider: row.provider_type,
        semantic_type: row.semantic_type,
        compartment: row.compartment_id.map(|id| id.to_string()),
        cloud_resource_id: row.cloud_resource_id,
        attributes: match row.attributes {
            Value::Object(values) => values,
            _ => serde_json::Map::new(),
        },
        left_out: row.left_out,
        urn: row.pulumi_urn,
        state_version: row.state_version,
        source: row.source,
        deployment: row.deployment,
        environment: row.environment,
        rehearsal: row.rehearsal,
        unit: row.unit,
        key: row.import_key,
        external: row.external,
        status: row.status,
        run: row.run.map(|id| id.to_string()),
        revision: row.revision,
        searched_whole: row.all_words,
        created_at: row.created_at.0.to_string(),
        updated_at: row.updated_at.0.to_string(),
        decommissioned_at: row.deleted_at.map(|at| at.0.to_string()),
    }
}

pub fn describe_history(row: StoredHistory) -> ItemHistoryEntry {
    ItemHistoryEntry {
        revision: row.revision,
        change: row.change,
        changes: row.changes,
        state_version: row.state_version,
        run: row.run.map(|id| id.to_string()),
        user: row.person.map(|id| id.to_string()),
        at: row.at.0.to_string(),
    }
}

pub fn describe_relationship(row: StoredRelationship) -> ItemRelationship {
    ItemRelationship {
        id: row.id.to_string(),
        source: row.source_ci.to_string(),
        target: row.target_ci.to_string(),
        relationship: row.relationship,
        attributes: row.attributes,
        said_by: row.source,
        created_at: row.created_at.0.to_string(),
    }
}

pub fn describe_graph(part: GraphPart) -> ItemGraph {
    let item = |(depth, row)| GraphItem {
        depth,
        item: describe_item(row),
    };
    ItemGraph {
        items: part.items.into_iter().map(item).collect(),
        relationships: part
            .relationships
            .into_iter()
            .map(describe_relationship)
            .collect(),
        complete: part.complete,
    }
}

pub fn describe_class(row: StoredClass) -> ItemClass {
    ItemClass {
        name: row.name,
        provider: row.provider_type,
        semantic_type: row.semantic_type,
        attributes: row.attributes,
        // Written by this program alone, as a list of words.
        relationships: serde_json::from_value(row.relationships).unwrap_or_default(),
        description: row.description,
        described: row.described,
        updated_at: row.updated_at.0.to_string(),
    }
}

pub fn describe_compartment(row: Compartment) -> ItemCompartment {
    ItemCompartment {
        id: row.id.to_string(),
        parent: row.parent_id.map(|id| id.to_string()),
        name: row.name,
        cloud_id: row.cloud_id,
        provider: row.provider_type,
        created_at: row.created_at.0.to_string(),
    }
}

pub fn describe_import(row: StoredImport) -> ImportJob {
    let counts: ImportCounts = serde_json::from_value(row.counts).unwrap_or_default();
    let problems: Vec<LineProblem> = serde_json::from_value(row.problems).unwrap_or_default();
    ImportJob {
        id: row.id.to_string(),
        format: row.format,
        status: row.status,
        dry_run: row.dry_run,
        created: counts.created,
        updated: counts.updated,
        decommissioned: counts.decommissioned,
        unchanged: counts.unchanged,
        problems,
        problem_count: row.problem_count,
        requested_by: row.requested_by.to_string(),
        at: row.at.0.to_string(),
    }
}

pub fn describe_sync(row: StoredSync) -> UnitSync {
    UnitSync {
        deployment: row.deployment,
        environment: row.environment,
        rehearsal: row.rehearsal,
        unit: row.unit,
        items: row.items,
        run: row.run.to_string(),
        problem: row.problem,
        synced_at: row.synced_at.0.to_string(),
    }
}
