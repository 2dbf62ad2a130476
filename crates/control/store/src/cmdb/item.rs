//! Items as they are read: one, lists by name, and what happened to one.

use serde_json::Value;
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::{ListPage, NamedCursor, StoreError, TenantTx, Timestamp};

/// An item.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredItem {
    pub id: Uuid,
    pub name: String,
    pub class: String,
    pub provider_type: Option<String>,
    /// What it is, whatever its cloud calls it.
    pub semantic_type: Option<String>,
    pub compartment_id: Option<Uuid>,
    pub cloud_resource_id: Option<String>,
    pub attributes: Value,
    pub left_out: Vec<String>,
    pub pulumi_urn: Option<String>,
    pub state_version: Option<String>,
    /// `run` or `import`.
    pub source: String,
    pub deployment: Option<String>,
    pub environment: Option<String>,
    pub rehearsal: bool,
    pub unit: Option<String>,
    pub import_key: Option<String>,
    pub external: bool,
    /// `active` or `decommissioned`.
    pub status: String,
    pub run: Option<Uuid>,
    pub revision: i32,
    pub all_words: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl StoredItem {
    pub fn place(&self) -> NamedCursor {
        NamedCursor {
            name: self.name.clone(),
            id: self.id,
        }
    }
}

/// Which items, by what became of the things that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemStatus {
    #[default]
    Active,
    Decommissioned,
    Any,
}

/// Which items. Everything that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct ItemFilter {
    pub status: ItemStatus,
    pub class: Option<String>,
    pub semantic_type: Option<String>,
    pub provider: Option<String>,
    pub compartment: Option<Uuid>,
    pub deployment: Option<String>,
    pub environment: Option<String>,
    pub unit: Option<String>,
    pub rehearsal: Option<bool>,
    pub source: Option<String>,
    pub cloud_resource_id: Option<String>,
    /// Only those in these environments, and those in none; all of them when absent.
    pub environments: Option<Vec<String>>,
    /// Each begins a word of the item.
    pub words: Vec<String>,
    /// Each is a word of the item.
    pub exact_words: Vec<String>,
}

/// Something that happened to an item.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredHistory {
    pub revision: i32,
    pub change: String,
    pub changes: Value,
    pub state_version: Option<String>,
    pub run: Option<Uuid>,
    pub person: Option<Uuid>,
    pub at: Timestamp,
}

pub(super) const SELECT: &str = "SELECT i.id, i.name, c.name AS class, c.provider_type,
     (SELECT s.resource_type FROM nimbus_core.semantic_provider_resource_types s
      WHERE c.name = ANY(s.resources) ORDER BY s.resource_type LIMIT 1) AS semantic_type,
     i.compartment_id, i.cloud_resource_id, i.attributes, i.left_out, i.pulumi_urn, i.state_version, i.source,
     i.deployment, i.environment, i.rehearsal, i.unit, i.import_key, i.external, i.status, i.run, i.revision,
     i.all_words, i.created_at, i.updated_at, i.deleted_at
     FROM configuration_items i JOIN ci_classes c ON c.tenant_id = i.tenant_id AND c.id = i.ci_class_id ";

/// How many items of a type there are.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct ItemCount {
    pub provider: String,
    pub kind: String,
    pub items: i64,
}

/// Comes after every word that begins with the same letters.
const LAST_LETTER: char = '\u{10FFFF}';

impl TenantTx {
    /// Items by name.
    pub async fn item_list(
        &mut self,
        filter: &ItemFilter,
        page: &ListPage<NamedCursor>,
    ) -> Result<Vec<StoredItem>, StoreError> {
        let mut query = QueryBuilder::<Postgres>::new(SELECT);
        narrow(&mut query, filter);
        if let Some(after) = &page.after {
            query
                .push(" AND (i.name, i.id) > (")
                .push_bind(after.name.clone());
            query.push(", ").push_bind(after.id).push(")");
        }
        query.push(" ORDER BY i.name, i.id LIMIT ");
        query.push_bind(i64::from(page.limit));
        Ok(query.build_query_as().fetch_all(self.connection()).await?)
    }

    pub async fn item_get(&mut self, id: Uuid) -> Result<StoredItem, StoreError> {
        let statement = sqlx::AssertSqlSafe(format!("{SELECT} WHERE i.id = $1"));
        sqlx::query_as(statement)
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("item"))
    }

    /// An item that nobody changes until the transaction ends.
    pub async fn item_lock(&mut self, id: Uuid) -> Result<StoredItem, StoreError> {
        sqlx::query("SELECT 1 FROM configuration_items WHERE id = $1 FOR UPDATE")
            .bind(id)
            .execute(self.connection())
            .await?;
        self.item_get(id).await
    }

    /// How many items there are that are not decommissioned, by provider and type. Only types of the semantic catalog
    /// are told by name.
    pub async fn item_counts(&mut self) -> Result<Vec<ItemCount>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT COALESCE(c.provider_type, 'other') AS provider,
                 CASE WHEN EXISTS (SELECT FROM nimbus_core.semantic_provider_resource_types s
                     WHERE c.name = ANY(s.resources)) THEN c.name ELSE 'other' END AS kind,
                 sum(n.items)::bigint AS items
             FROM (SELECT ci_class_id, count(*) AS items FROM configuration_items
                 WHERE deleted_at IS NULL GROUP BY ci_class_id) n
             JOIN ci_classes c ON c.id = n.ci_class_id
             GROUP BY 1, 2",
        )
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn items_get(&mut self, ids: &[Uuid]) -> Result<Vec<StoredItem>, StoreError> {
        let statement = sqlx::AssertSqlSafe(format!(
            "{SELECT} WHERE i.id = ANY($1) ORDER BY i.name, i.id"
        ));
        Ok(sqlx::query_as(statement)
            .bind(ids)
            .fetch_all(self.connection())
            .await?)
    }

    /// Puts an item into another compartment, which its history tells.
    pub async fn item_move(
        &mut self,
        item: &StoredItem,
        compartment: Option<Uuid>,
        by: Uuid,
    ) -> Result<StoredItem, StoreError> {
        let revision = item.revision + 1;
        sqlx::query(
            "UPDATE configuration_items SET compartment_id = $2, revision = $3, updated_at = now() WHERE id = $1",
        )
        .bind(item.id)
        .bind(compartment)
        .bind(revision)
        .execute(self.connection())
        .await
        .map_err(|error| match error {
            sqlx::Error::Database(error) if error.is_foreign_key_violation() => {
                StoreError::NotFound("compartment")
            }
            other => other.into(),
        })?;
        let before = item.compartment_id;
        let changes =
            serde_json::json!({"compartment_id": {"before": before, "after": compartment}});
        sqlx::query(
            "INSERT INTO ci_history (ci_id, revision, change, changes, person) VALUES ($1, $2, 'moved', $3, $4)",
        )
        .bind(item.id)
        .bind(revision)
        .bind(&changes)
        .bind(by)
        .execute(self.connection())
        .await?;
        self.live_publish_moved(item, &changes).await?;
        self.item_get(item.id).await
    }

    /// What happened to an item, newest first.
    pub async fn item_history(
        &mut self,
        id: Uuid,
        page: &ListPage<i32>,
    ) -> Result<Vec<StoredHistory>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT revision, change, changes, state_version, run, person, at FROM ci_history
             WHERE ci_id = $1 AND revision < $2 ORDER BY revision DESC LIMIT $3",
        )
        .bind(id)
        .bind(page.after.unwrap_or(i32::MAX))
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }
}

/// Only what is given is in the statement: conditions that may be absent would keep the planner from the index.
fn narrow(query: &mut QueryBuilder<Postgres>, filter: &ItemFilter) {
    query.push(match filter.status {
        ItemStatus::Active => " WHERE i.deleted_at IS NULL",
        ItemStatus::Decommissioned => " WHERE i.deleted_at IS NOT NULL",
        ItemStatus::Any => " WHERE true",
    });
    if let Some(class) = &filter.class {
        query.push(" AND i.ci_class_id = (SELECT k.id FROM ci_classes k WHERE k.name = ");
        query.push_bind(class.clone()).push(")");
    }
    if let Some(kind) = &filter.semantic_type {
        query.push(
            " AND i.ci_class_id IN (SELECT k.id FROM ci_classes k
               JOIN nimbus_core.semantic_provider_resource_types s ON k.name = ANY(s.resources)
               WHERE s.resource_type = ",
        );
        query.push_bind(kind.clone()).push(")");
    }
    if let Some(provider) = &filter.provider {
        query.push(" AND i.ci_class_id IN (SELECT k.id FROM ci_classes k WHERE k.provider_type = ");
        query.push_bind(provider.clone()).push(")");
    }
    if let Some(compartment) = filter.compartment {
        query
            .push(" AND i.compartment_id = ")
            .push_bind(compartment);
    }
    let texts = [
        (" AND i.deployment = ", &filter.deployment),
        (" AND i.environment = ", &filter.environment),
        (" AND i.unit = ", &filter.unit),
        (" AND i.source = ", &filter.source),
    ];
    for (condition, given) in texts {
        if let Some(text) = given {
            query.push(condition).push_bind(text.clone());
        }
    }
    if let Some(environments) = &filter.environments {
        query.push(" AND (i.environment IS NULL OR i.environment = ANY(");
        query.push_bind(environments.clone()).push("))");
    }
    if let Some(rehearsal) = filter.rehearsal {
        query.push(" AND i.rehearsal = ").push_bind(rehearsal);
    }
    if let Some(id) = &filter.cloud_resource_id {
        query.push(" AND md5(i.cloud_resource_id) = md5(");
        query.push_bind(id.clone()).push(")");
    }
    for word in &filter.words {
        let exists = " AND EXISTS (SELECT FROM ci_words w WHERE w.ci_id = i.id AND w.word >= ";
        query.push(exists).push_bind(word.clone());
        query.push(" AND w.word < ");
        query.push_bind(format!("{word}{LAST_LETTER}")).push(")");
    }
    for word in &filter.exact_words {
        let exists = " AND EXISTS (SELECT FROM ci_words w WHERE w.ci_id = i.id AND w.word = ";
        query.push(exists).push_bind(word.clone()).push(")");
    }
}
