//! Many items at once: rows, their history and their words, some hundred in a statement.

use nimbus_control_cmdb::{ItemContent, ItemDigest, item_words, provider_of};
use serde_json::{Map, Value, json};
use sqlx::FromRow;
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::{EnvironmentKey, StoreError, TenantTx};

/// So many rows in a statement.
const AT_ONCE: usize = 500;

/// Where items come from, and who says so.
#[derive(Clone, Debug)]
pub(super) enum WriteOrigin<'a> {
    Unit {
        of: &'a EnvironmentKey,
        unit: &'a str,
        state_version: &'a str,
        run: Uuid,
    },
    Import {
        by: Uuid,
    },
}

/// One item that is written.
#[derive(Clone, Debug)]
pub(super) struct ItemWrite<'a> {
    pub(super) id: Uuid,
    /// Its URN or the key of an import.
    pub(super) key: &'a str,
    /// What it says; nothing for one that is only decommissioned.
    pub(super) content: Option<&'a ItemContent>,
    pub(super) digest: Option<ItemDigest>,
    pub(super) compartment: Option<Uuid>,
    /// Counts from 1; more than that is an item that is there.
    pub(super) revision: i32,
    pub(super) change: &'static str,
    pub(super) changes: Map<String, Value>,
    pub(super) active: bool,
}

/// What an item said before.
#[derive(Debug, FromRow)]
struct ContentRow {
    id: Uuid,
    class: String,
    name: String,
    cloud_resource_id: Option<String>,
    attributes: Value,
    left_out: Vec<String>,
    external: bool,
}

impl TenantTx {
    /// Ids of classes by name, made where there are none.
    pub(super) async fn classes_ensure(
        &mut self,
        names: &[&str],
    ) -> Result<BTreeMap<String, Uuid>, StoreError> {
        let mut names: Vec<&str> = names.to_vec();
        // In one order: two runs that end at once wait for each other, and not for ever.
        names.sort_unstable();
        names.dedup();
        let providers: Vec<Option<&str>> = names.iter().map(|name| provider_of(name)).collect();
        sqlx::query(
            "INSERT INTO ci_classes (name, provider_type)
             SELECT g.name, g.provider FROM unnest($1::text[], $2::text[]) AS g (name, provider)
             ORDER BY g.name ON CONFLICT (tenant_id, name) DO NOTHING",
        )
        .bind(&names)
        .bind(&providers)
        .execute(self.connection())
        .await?;
        let found: Vec<(String, Uuid)> =
            sqlx::query_as("SELECT name, id FROM ci_classes WHERE name = ANY($1)")
                .bind(&names)
                .fetch_all(self.connection())
                .await?;
        Ok(found.into_iter().collect())
    }

    /// What items say, by id.
    pub(super) async fn items_content(
        &mut self,
        ids: &[Uuid],
    ) -> Result<BTreeMap<Uuid, ItemContent>, StoreError> {
        let rows: Vec<ContentRow> = sqlx::query_as(
            "SELECT i.id, c.name AS class, i.name, i.cloud_resource_id, i.attributes, i.left_out, i.external
             FROM configuration_items i JOIN ci_classes c ON c.tenant_id = i.tenant_id AND c.id = i.ci_class_id
             WHERE i.id = ANY($1)",
        )
        .bind(ids)
        .fetch_all(self.connection())
        .await?;
        let content = |row: ContentRow| {
            let mut content = ItemContent {
                class: row.class,
                name: row.name,
                cloud_resource_id: row.cloud_resource_id,
                external: row.external,
                ..ItemContent::default()
            };
            if let Value::Object(values) = row.attributes {
                content.attributes.values = values;
            }
            content.attributes.left_out = row.left_out;
            (row.id, content)
        };
        Ok(rows.into_iter().map(content).collect())
    }

    /// Writes items with their history and their words, and tells it.
    pub(super) async fn items_write(
        &mut self,
        origin: &WriteOrigin<'_>,
        writes: &[ItemWrite<'_>],
    ) -> Result<(), StoreError> {
        for part in writes.chunks(AT_ONCE) {
            let names: Vec<&str> = part
                .iter()
                .filter_map(|write| write.content.map(|content| content.class.as_str()))
                .collect();
            let classes = self.classes_ensure(&names).await?;
            let mut words = WordRows::default();
            let mut rows = Vec::with_capacity(part.len());
            for write in part {
                let mut row = row_of(write);
                if let Some(content) = write.content {
                    let all = words.add(write.id, content, origin);
                    row["all_words"] = json!(all);
                    row["ci_class_id"] = json!(classes.get(&content.class));
                }
                rows.push(row);
            }
            let is_new = |row: &&Value| row["revision"] == 1;
            let new: Value = rows.iter().filter(is_new).cloned().collect();
            let said = |row: &&Value| !is_new(row) && !row["digest"].is_null();
            let changed: Value = rows.iter().filter(said).cloned().collect();
            let only_gone = |row: &&Value| !is_new(row) && row["digest"].is_null();
            let gone: Value = rows.iter().filter(only_gone).cloned().collect();
            self.items_insert(origin, &new).await?;
            self.items_update(origin, &changed).await?;
            self.items_retire(origin, &gone).await?;
            self.history_add(origin, &rows.into_iter().collect())
                .await?;
            self.words_put(&words).await?;
        }
        self.live_publish_writes(origin, writes).await
    }

    async fn items_insert(
        &mut self,
        origin: &WriteOrigin<'_>,
        rows: &Value,
    ) -> Result<(), StoreError> {
        let (of, unit, state_version, run) = origin.unit();
        sqlx::query(
            "INSERT INTO configuration_items (id, compartment_id, ci_class_id, cloud_resource_id, name, attributes,
                 left_out, pulumi_urn, state_version, source, deployment, environment, rehearsal, unit, import_key,
                 external, run, digest, all_words, status, deleted_at)
             SELECT g.id, g.compartment, g.ci_class_id, g.cloud_resource_id, g.name, g.attributes, g.left_out,
                 CASE WHEN $2::text IS NOT NULL THEN g.key END, $6, CASE WHEN $2 IS NULL THEN 'import' ELSE 'run' END,
                 $2, $3, $4, $5, CASE WHEN $2 IS NULL THEN g.key END, g.external, $7, decode(g.digest, 'hex'),
                 g.all_words, g.status, CASE g.status WHEN 'decommissioned' THEN now() END
             FROM jsonb_to_recordset($1) AS g (id uuid, compartment uuid, ci_class_id uuid, cloud_resource_id text,
                 name text, attributes jsonb, left_out text[], key text, external boolean, digest text,
                 all_words boolean, status text)",
        )
        .bind(rows)
        .bind(of.map(|of| of.deployment.as_str()))
        .bind(of.map(|of| of.environment.as_str()))
        .bind(of.is_some_and(|of| of.rehearsal))
        .bind(unit)
        .bind(state_version)
        .bind(run)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    async fn items_update(
        &mut self,
        origin: &WriteOrigin<'_>,
        rows: &Value,
    ) -> Result<(), StoreError> {
        let (_, _, state_version, run) = origin.unit();
        sqlx::query(
            "UPDATE configuration_items i SET ci_class_id = g.ci_class_id, cloud_resource_id = g.cloud_resource_id,
                 name = g.name, attributes = g.attributes, left_out = g.left_out, external = g.external,
                 compartment_id = COALESCE(g.compartment, i.compartment_id),
                 digest = decode(g.digest, 'hex'), all_words = g.all_words, revision = g.revision, status = g.status,
                 deleted_at = CASE g.status WHEN 'decommissioned' THEN COALESCE(i.deleted_at, now()) END,
                 state_version = $2, run = COALESCE($3, i.run), updated_at = now()
             FROM jsonb_to_recordset($1) AS g (id uuid, compartment uuid, ci_class_id uuid, cloud_resource_id text,
                 name text, attributes jsonb, left_out text[], external boolean, digest text, all_words boolean,
                 revision integer, status text)
             WHERE i.id = g.id",
        )
        .bind(rows)
        .bind(state_version)
        .bind(run)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// What is gone keeps what it said last, and is found by it.
    async fn items_retire(
        &mut self,
        origin: &WriteOrigin<'_>,
        rows: &Value,
    ) -> Result<(), StoreError> {
        let (_, _, _, run) = origin.unit();
        sqlx::query(
            "UPDATE configuration_items i SET status = 'decommissioned', deleted_at = now(), updated_at = now(),
                 revision = g.revision, run = COALESCE($2, i.run)
             FROM jsonb_to_recordset($1) AS g (id uuid, revision integer) WHERE i.id = g.id",
        )
        .bind(rows)
        .bind(run)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    async fn history_add(
        &mut self,
        origin: &WriteOrigin<'_>,
        rows: &Value,
    ) -> Result<(), StoreError> {
        let (_, _, state_version, run) = origin.unit();
        let person = match origin {
            WriteOrigin::Unit { .. } => None,
            WriteOrigin::Import { by } => Some(*by),
        };
        sqlx::query(
            "INSERT INTO ci_history (ci_id, revision, change, changes, state_version, run, person)
             SELECT g.id, g.revision, g.change, g.changes, $2, $3, $4
             FROM jsonb_to_recordset($1) AS g (id uuid, revision integer, change text, changes jsonb)",
        )
        .bind(rows)
        .bind(state_version)
        .bind(run)
        .bind(person)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    async fn words_put(&mut self, words: &WordRows) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM ci_words WHERE ci_id = ANY($1)")
            .bind(&words.items)
            .execute(self.connection())
            .await?;
        sqlx::query(
            "INSERT INTO ci_words (word, ci_id) SELECT g.word, g.item
             FROM unnest($1::text[], $2::uuid[]) AS g (word, item)",
        )
        .bind(&words.words)
        .bind(&words.of)
        .execute(self.connection())
        .await?;
        Ok(())
    }
}

impl<'a> WriteOrigin<'a> {
    #[allow(clippy::type_complexity, reason = "columns of one row, bound in order")]
    fn unit(
        &self,
    ) -> (
        Option<&'a EnvironmentKey>,
        Option<&'a str>,
        Option<&'a str>,
        Option<Uuid>,
    ) {
        match self {
            Self::Unit {
                of,
                unit,
                state_version,
                run,
            } => (Some(of), Some(unit), Some(state_version), Some(*run)),
            Self::Import { .. } => (None, None, None, None),
        }
    }

    /// What an item is found by besides what it says.
    fn names(&self) -> Vec<&'a str> {
        match self {
            Self::Unit { of, unit, .. } => {
                vec![of.deployment.as_str(), of.environment.as_str(), unit]
            }
            Self::Import { .. } => Vec::new(),
        }
    }
}

fn row_of(write: &ItemWrite<'_>) -> Value {
    let status = if write.active {
        "active"
    } else {
        "decommissioned"
    };
    let mut row = json!({
        "id": write.id,
        "key": write.key,
        "compartment": write.compartment,
        "digest": write.digest.map(hex::encode),
        "revision": write.revision,
        "change": write.change,
        "changes": write.changes,
        "status": status,
    });
    if let Some(content) = write.content {
        row["cloud_resource_id"] = json!(content.cloud_resource_id);
        row["name"] = json!(content.name);
        row["attributes"] = json!(content.attributes.values);
        row["left_out"] = json!(content.attributes.left_out);
        row["external"] = json!(content.external);
    }
    row
}

/// Words of many items.
#[derive(Debug, Default)]
struct WordRows {
    items: Vec<Uuid>,
    words: Vec<String>,
    of: Vec<Uuid>,
}

impl WordRows {
    /// Whether all words of the item are in it.
    fn add(&mut self, id: Uuid, content: &ItemContent, origin: &WriteOrigin<'_>) -> bool {
        let (words, all) = item_words(content, &origin.names());
        self.items.push(id);
        self.of.extend(std::iter::repeat_n(id, words.len()));
        self.words.extend(words);
        all
    }
}
