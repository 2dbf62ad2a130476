//! From item to item: relationships, and what is around an item.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use super::item::StoredItem;
use crate::{ListPage, StoreError, TenantTx, Timestamp};

/// One item has to do with another.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredRelationship {
    pub id: Uuid,
    pub source_ci: Uuid,
    pub target_ci: Uuid,
    pub relationship: String,
    pub attributes: Value,
    /// Who says so: `run`, `import` or `person`.
    pub source: String,
    pub created_at: Timestamp,
}

/// A relationship to be made.
#[derive(Clone, Debug)]
pub struct NewRelationship {
    pub source_ci: Uuid,
    pub target_ci: Uuid,
    pub relationship: String,
    pub attributes: Value,
}

/// How far to go from an item.
#[derive(Clone, Copy, Debug)]
pub struct GraphLimits {
    pub depth: u32,
    /// So many items, the first one included.
    pub items: u32,
}

/// What is around an item.
#[derive(Clone, Debug)]
pub struct GraphPart {
    /// Items with how far away they are, nearest first.
    pub items: Vec<(u32, StoredItem)>,
    pub relationships: Vec<StoredRelationship>,
    /// Whether this is everything as far as was asked.
    pub complete: bool,
}

const COLUMNS: &str = "id, source_ci, target_ci, relationship, attributes, source, created_at";

/// Between so many items there are rarely more relationships than this for each.
const EDGES_PER_ITEM: u32 = 8;

impl TenantTx {
    /// Relationships of an item, either way round.
    pub async fn relationship_list(
        &mut self,
        item: Uuid,
        page: &ListPage<Uuid>,
    ) -> Result<Vec<StoredRelationship>, StoreError> {
        // Two lookups by index instead of one that fits neither.
        let statement = format!(
            "SELECT {COLUMNS} FROM (
                 SELECT {COLUMNS} FROM ci_relationships WHERE source_ci = $1
                 UNION ALL SELECT {COLUMNS} FROM ci_relationships WHERE target_ci = $1) r
             WHERE $2::uuid IS NULL OR r.id > $2 ORDER BY r.id LIMIT $3"
        );
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(item)
            .bind(page.after)
            .bind(i64::from(page.limit))
            .fetch_all(self.connection())
            .await?)
    }

    pub async fn relationship_add(
        &mut self,
        new: &NewRelationship,
    ) -> Result<StoredRelationship, StoreError> {
        let statement = format!(
            "INSERT INTO ci_relationships (source_ci, target_ci, relationship, attributes, source)
             VALUES ($1, $2, $3, $4, 'person') RETURNING {COLUMNS}"
        );
        let made = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(new.source_ci)
            .bind(new.target_ci)
            .bind(&new.relationship)
            .bind(&new.attributes)
            .fetch_one(self.connection())
            .await;
        match made {
            Ok(made) => Ok(made),
            Err(sqlx::Error::Database(error)) if error.is_foreign_key_violation() => {
                Err(StoreError::NotFound("item"))
            }
            Err(error) => {
                let what = || format!("this `{}`", new.relationship);
                Err(StoreError::from(error).exists_if_taken(what))
            }
        }
    }

    /// A relationship that nobody changes until the transaction ends.
    pub async fn relationship_lock(&mut self, id: Uuid) -> Result<StoredRelationship, StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM ci_relationships WHERE id = $1 FOR UPDATE");
        sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("relationship"))
    }

    pub async fn relationship_delete(&mut self, id: Uuid) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM ci_relationships WHERE id = $1")
            .bind(id)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// What is around an item, level by level. Each item is met once, so a circle ends where it began; what would be too
    /// much is not gone into, and the answer says so.
    pub async fn item_graph(
        &mut self,
        root: Uuid,
        limits: GraphLimits,
    ) -> Result<GraphPart, StoreError> {
        let most = usize::try_from(limits.items).unwrap_or(usize::MAX);
        let mut met: BTreeMap<Uuid, u32> = BTreeMap::from([(root, 0)]);
        let mut edges: BTreeMap<Uuid, StoredRelationship> = BTreeMap::new();
        let mut level = vec![root];
        let mut complete = true;
        for depth in 1..=limits.depth {
            if level.is_empty() {
                break;
            }
            let (found, all) = self.edges_of(&level, limits.items).await?;
            complete &= all;
            let mut next = BTreeSet::new();
            for edge in found {
                let (source, target) = (edge.source_ci, edge.target_ci);
                let new = [source, target]
                    .into_iter()
                    .find(|end| !met.contains_key(end));
                if let Some(new) = new {
                    if met.len() >= most {
                        complete = false;
                        continue;
                    }
                    met.insert(new, depth);
                    next.insert(new);
                }
                edges.insert(edge.id, edge);
            }
            level = next.into_iter().collect();
        }
        let ids: Vec<Uuid> = met.keys().copied().collect();
        let mut items: Vec<(u32, StoredItem)> = self
            .items_get(&ids)
            .await?
            .into_iter()
            .map(|item| (met.get(&item.id).copied().unwrap_or_default(), item))
            .collect();
        // By name before; this keeps that order inside a level.
        items.sort_by_key(|(depth, _)| *depth);
        Ok(GraphPart {
            items,
            relationships: edges.into_values().collect(),
            complete,
        })
    }

    /// Relationships of these items, and whether these are all.
    async fn edges_of(
        &mut self,
        items: &[Uuid],
        most_items: u32,
    ) -> Result<(Vec<StoredRelationship>, bool), StoreError> {
        let most = i64::from(most_items.saturating_mul(EDGES_PER_ITEM));
        let mut found = Vec::new();
        let mut all = true;
        for column in ["source_ci", "target_ci"] {
            let statement =
                format!("SELECT {COLUMNS} FROM ci_relationships WHERE {column} = ANY($1) LIMIT $2");
            // One more than is wanted says whether there are more.
            let mut part: Vec<StoredRelationship> = sqlx::query_as(sqlx::AssertSqlSafe(statement))
                .bind(items)
                .bind(most.saturating_add(1))
                .fetch_all(self.connection())
                .await?;
            if i64::try_from(part.len()).is_ok_and(|count| count > most) {
                all = false;
                part.pop();
            }
            found.append(&mut part);
        }
        // In one order, whatever the database found first: the same question has the same answer.
        found.sort_by_key(|edge| edge.id);
        Ok((found, all))
    }
}
