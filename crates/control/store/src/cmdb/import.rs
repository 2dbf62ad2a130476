//! What people import: items by keys of theirs. All of a file, or nothing of it.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_control_cmdb::{ImportLine, ItemChange, KnownItem, changes_between};
use serde_json::{Map, Value};
use sqlx::FromRow;
use uuid::Uuid;

use super::write::{ItemWrite, WriteOrigin};
use crate::{ListPage, RowCursor, StoreError, TenantTx, Timestamp};

/// A line that was checked, with the compartment that it names.
#[derive(Clone, Debug)]
pub struct CheckedImport {
    pub line: ImportLine,
    pub compartment: Option<Uuid>,
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ImportCounts {
    pub created: u64,
    pub updated: u64,
    pub decommissioned: u64,
    pub unchanged: u64,
}

/// An import that was tried.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredImport {
    pub id: Uuid,
    pub format: String,
    /// `succeeded` or `failed`.
    pub status: String,
    pub dry_run: bool,
    pub counts: Value,
    /// The first problems: line and message.
    pub problems: Value,
    pub problem_count: i32,
    pub requested_by: Uuid,
    pub at: Timestamp,
}

/// The same, to be recorded.
#[derive(Clone, Debug)]
pub struct NewImport {
    pub format: &'static str,
    pub status: &'static str,
    pub dry_run: bool,
    pub counts: ImportCounts,
    pub problems: Value,
    pub problem_count: i32,
    pub requested_by: Uuid,
}

#[derive(FromRow)]
struct KeyRow {
    id: Uuid,
    import_key: String,
    digest: Vec<u8>,
    active: bool,
    revision: i32,
}

const COLUMNS: &str =
    "id, format, status, dry_run, counts, problems, problem_count, requested_by, at";

impl TenantTx {
    /// Items of imports by key, which nobody changes until the transaction ends.
    pub async fn items_of_keys(&mut self, keys: &[String]) -> Result<Vec<KnownItem>, StoreError> {
        let rows: Vec<KeyRow> = sqlx::query_as(
            "SELECT id, import_key, digest, deleted_at IS NULL AS active, revision FROM configuration_items
             WHERE source = 'import' AND import_key = ANY($1) ORDER BY id FOR UPDATE",
        )
        .bind(keys)
        .fetch_all(self.connection())
        .await?;
        let known = |row: KeyRow| KnownItem {
            id: row.id,
            urn: row.import_key,
            digest: row.digest,
            active: row.active,
            revision: row.revision,
        };
        Ok(rows.into_iter().map(known).collect())
    }

    /// Writes what a file says. Its relationships are those that its items begin; others of the same items go.
    pub async fn items_import(
        &mut self,
        items: &[CheckedImport],
        known: &[KnownItem],
        by: Uuid,
    ) -> Result<ImportCounts, StoreError> {
        let recorded: BTreeMap<&str, &KnownItem> =
            known.iter().map(|one| (one.urn.as_str(), one)).collect();
        let ids: Vec<Uuid> = known.iter().map(|one| one.id).collect();
        let before = self.items_content(&ids).await?;
        let mut counts = ImportCounts::default();
        let mut writes = Vec::new();
        for item in items {
            let line = &item.line;
            let digest = line.content.digest();
            let known = recorded.get(line.key.as_str()).copied();
            let change = match known {
                None if !line.active => ItemChange::Decommissioned,
                None => ItemChange::Created,
                Some(known) if known.active && !line.active => ItemChange::Decommissioned,
                Some(known) if !known.active && line.active => ItemChange::Recommissioned,
                Some(known) if known.digest != digest => ItemChange::Updated,
                Some(_) => {
                    counts.unchanged += 1;
                    continue;
                }
            };
            match change {
                ItemChange::Created | ItemChange::Recommissioned => counts.created += 1,
                ItemChange::Updated => counts.updated += 1,
                ItemChange::Decommissioned => counts.decommissioned += 1,
            }
            let old = known.and_then(|known| before.get(&known.id));
            writes.push(ItemWrite {
                id: known.map_or_else(Uuid::new_v4, |known| known.id),
                key: &line.key,
                content: Some(&line.content),
                digest: Some(digest),
                compartment: item.compartment,
                revision: known.map_or(1, |known| known.revision + 1),
                change: change.as_str(),
                changes: old.map_or_else(Map::new, |old| changes_between(old, &line.content)),
                active: line.active,
            });
        }
        self.items_write(&WriteOrigin::Import { by }, &writes)
            .await?;
        let mut keys: BTreeMap<&str, Uuid> =
            known.iter().map(|one| (one.urn.as_str(), one.id)).collect();
        keys.extend(writes.iter().map(|write| (write.key, write.id)));
        self.import_edges(items, &keys).await?;
        Ok(counts)
    }

    async fn import_edges(
        &mut self,
        items: &[CheckedImport],
        keys: &BTreeMap<&str, Uuid>,
    ) -> Result<(), StoreError> {
        let own: Vec<Uuid> = items
            .iter()
            .filter_map(|item| keys.get(item.line.key.as_str()).copied())
            .collect();
        sqlx::query("DELETE FROM ci_relationships WHERE source = 'import' AND source_ci = ANY($1)")
            .bind(&own)
            .execute(self.connection())
            .await?;
        let mut wanted = BTreeSet::new();
        for item in items.iter().filter(|item| item.line.active) {
            for relation in &item.line.relations {
                let ends = (
                    keys.get(item.line.key.as_str()),
                    keys.get(relation.target.as_str()),
                );
                if let (Some(source), Some(target)) = ends {
                    wanted.insert((*source, *target, relation.relationship.as_str()));
                }
            }
        }
        let (mut sources, mut targets, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for (source, target, word) in wanted {
            sources.push(source);
            targets.push(target);
            words.push(word);
        }
        sqlx::query(
            "INSERT INTO ci_relationships (source_ci, target_ci, relationship, source)
             SELECT g.source_ci, g.target_ci, g.relationship, 'import'
             FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS g (source_ci, target_ci, relationship)
             ON CONFLICT (tenant_id, source_ci, target_ci, relationship) DO NOTHING",
        )
        .bind(&sources)
        .bind(&targets)
        .bind(&words)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn import_add(&mut self, new: &NewImport) -> Result<StoredImport, StoreError> {
        let statement = format!(
            "INSERT INTO ci_imports (id, format, status, dry_run, counts, problems, problem_count, requested_by)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING {COLUMNS}"
        );
        let counts = serde_json::to_value(new.counts).unwrap_or_default();
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(Uuid::new_v4())
            .bind(new.format)
            .bind(new.status)
            .bind(new.dry_run)
            .bind(counts)
            .bind(&new.problems)
            .bind(new.problem_count)
            .bind(new.requested_by)
            .fetch_one(self.connection())
            .await?)
    }

    /// Newest first.
    pub async fn import_list(
        &mut self,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<StoredImport>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        let statement = format!(
            "SELECT {COLUMNS} FROM ci_imports WHERE $1::timestamptz IS NULL OR (at, id) < ($1, $2)
             ORDER BY at DESC, id DESC LIMIT $3"
        );
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(at)
            .bind(id)
            .bind(i64::from(page.limit))
            .fetch_all(self.connection())
            .await?)
    }
}
