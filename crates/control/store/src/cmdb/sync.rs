//! Items of an environment after a run: equal to what the states of its units say, in the transaction in which the run
//! ends.
//!
//! A unit whose state was not written since its items were made from it is not looked at: a run that changes nothing
//! costs two small reads. The run has its environment, so nobody else writes these items meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_control_cmdb::{
    ItemChange, ItemContent, KnownItem, PlannedWrite, StateEdge, UNIT_CLASS, UnitSnapshot,
    changes_between, plan_unit,
};
use nimbus_control_events::{NewEvent, kind};
use serde_json::{Map, json};
use sqlx::FromRow;
use uuid::Uuid;

use super::write::{ItemWrite, WriteOrigin};
use crate::{EnvironmentKey, ListPage, RowCursor, StoreError, TenantTx, Timestamp};

/// What the states of an environment say, as far as they were written since.
#[derive(Clone, Debug)]
pub struct CmdbSync {
    pub of: EnvironmentKey,
    /// The business project; new items go into its compartment.
    pub project: String,
    pub run: Uuid,
    pub units: Vec<UnitSnapshot>,
    /// Which unit needs which, of all units of the environment.
    pub needs: BTreeSet<(String, String)>,
    /// Units whose states cannot be read, and why. Their items stay as they are.
    pub unreadable: Vec<(String, String)>,
}

/// What a sync changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncCounts {
    pub created: u64,
    pub updated: u64,
    pub decommissioned: u64,
}

/// From which write of its state the items of a unit are.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct KnownSync {
    pub unit: String,
    pub tag: Option<Uuid>,
}

/// The same, for people.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct StoredSync {
    pub id: Uuid,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub unit: String,
    pub items: i32,
    pub run: Uuid,
    pub problem: Option<String>,
    pub synced_at: Timestamp,
}

#[derive(FromRow)]
struct KnownRow {
    id: Uuid,
    pulumi_urn: String,
    digest: Vec<u8>,
    active: bool,
    revision: i32,
}

/// Stands for all units of an environment; no component can be called so.
const ALL_UNITS: &str = "*";

impl TenantTx {
    /// From which writes of states the items of an environment are.
    pub async fn syncs_of(&mut self, of: &EnvironmentKey) -> Result<Vec<KnownSync>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT unit, tag FROM ci_syncs
             WHERE deployment = $1 AND environment = $2 AND rehearsal = $3 AND unit <> '*' ORDER BY unit",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .fetch_all(self.connection())
        .await?)
    }

    /// Makes items equal to states. With the run's row in hand, as the last thing of its end.
    pub async fn cmdb_sync(&mut self, sync: &CmdbSync) -> Result<SyncCounts, StoreError> {
        let mut counts = SyncCounts::default();
        if !sync.units.is_empty() {
            let of = &sync.of;
            let path = [sync.project.as_str(), of.environment.as_str()];
            let compartment = self.compartment_path(&path).await?;
            for unit in &sync.units {
                self.sync_unit(sync, unit, compartment, &mut counts).await?;
            }
            self.sync_needs(sync).await?;
        }
        for (unit, problem) in &sync.unreadable {
            self.sync_note(&sync.of, sync.run, unit, Some(problem))
                .await?;
        }
        self.sync_clear(&sync.of).await?;
        self.live_publish_items(sync, counts).await?;
        Ok(counts)
    }

    /// Notes that items of an environment are not what its states say, and why.
    pub async fn cmdb_sync_failed(
        &mut self,
        of: &EnvironmentKey,
        run: Uuid,
        problem: &str,
    ) -> Result<(), StoreError> {
        self.sync_note(of, run, ALL_UNITS, Some(problem)).await
    }

    /// Environments that items of runs are in, by name.
    pub async fn item_environments(&mut self) -> Result<Vec<String>, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT DISTINCT environment FROM ci_syncs ORDER BY environment")
                .fetch_all(self.connection())
                .await?,
        )
    }

    /// How far items are, newest first; only in these environments, or in all.
    pub async fn sync_list(
        &mut self,
        environments: Option<&[String]>,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<StoredSync>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        Ok(sqlx::query_as(
            "SELECT id, deployment, environment, rehearsal, unit, items, run, problem, synced_at FROM ci_syncs
             WHERE ($1::timestamptz IS NULL OR (synced_at, id) < ($1, $2))
               AND ($4::text[] IS NULL OR environment = ANY($4))
             ORDER BY synced_at DESC, id DESC LIMIT $3",
        )
        .bind(at)
        .bind(id)
        .bind(i64::from(page.limit))
        .bind(environments)
        .fetch_all(self.connection())
        .await?)
    }

    async fn sync_unit(
        &mut self,
        sync: &CmdbSync,
        unit: &UnitSnapshot,
        compartment: Uuid,
        counts: &mut SyncCounts,
    ) -> Result<(), StoreError> {
        let known = self.known_items(&sync.of, &unit.unit).await?;
        let planned = plan_unit(&known, &unit.items);
        let changed: Vec<Uuid> = planned
            .iter()
            .filter(|write| write.item.is_some())
            .filter_map(|write| write.known.map(|known| known.id))
            .collect();
        let before = self.items_content(&changed).await?;
        let writes: Vec<ItemWrite<'_>> = planned
            .iter()
            .map(|planned| write_of(planned, &before, compartment))
            .collect();
        let origin = WriteOrigin::Unit {
            of: &sync.of,
            unit: &unit.unit,
            state_version: &unit.state_version,
            run: sync.run,
        };
        self.items_write(&origin, &writes).await?;
        let mut ids: BTreeMap<&str, Uuid> =
            known.iter().map(|one| (one.urn.as_str(), one.id)).collect();
        for write in &writes {
            ids.insert(write.key, write.id);
        }
        for planned in &planned {
            match planned.change {
                ItemChange::Created | ItemChange::Recommissioned => counts.created += 1,
                ItemChange::Updated => counts.updated += 1,
                ItemChange::Decommissioned => counts.decommissioned += 1,
            }
        }
        self.sync_edges(&ids, &unit.edges).await?;
        let items = i32::try_from(unit.items.len()).unwrap_or(i32::MAX);
        sqlx::query(
            "INSERT INTO ci_syncs (deployment, environment, rehearsal, unit, tag, items, run)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (tenant_id, deployment, environment, rehearsal, unit) DO UPDATE
             SET tag = $5, items = $6, run = $7, problem = NULL, synced_at = clock_timestamp()",
        )
        .bind(&sync.of.deployment)
        .bind(&sync.of.environment)
        .bind(sync.of.rehearsal)
        .bind(&unit.unit)
        .bind(unit.tag)
        .bind(items)
        .bind(sync.run)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    async fn known_items(
        &mut self,
        of: &EnvironmentKey,
        unit: &str,
    ) -> Result<Vec<KnownItem>, StoreError> {
        let rows: Vec<KnownRow> = sqlx::query_as(
            "SELECT id, pulumi_urn, digest, deleted_at IS NULL AS active, revision FROM configuration_items
             WHERE source = 'run' AND deployment = $1 AND environment = $2 AND rehearsal = $3 AND unit = $4",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(unit)
        .fetch_all(self.connection())
        .await?;
        let known = |row: KnownRow| KnownItem {
            id: row.id,
            urn: row.pulumi_urn,
            digest: row.digest,
            active: row.active,
            revision: row.revision,
        };
        Ok(rows.into_iter().map(known).collect())
    }

    /// Relationships of a unit's resources with each other.
    async fn sync_edges(
        &mut self,
        ids: &BTreeMap<&str, Uuid>,
        edges: &[StateEdge],
    ) -> Result<(), StoreError> {
        let id = |urn: &str| ids.get(urn).copied();
        let wanted = edges.iter().filter_map(|edge| {
            Some((
                id(&edge.source)?,
                id(&edge.target)?,
                edge.relationship.to_owned(),
            ))
        });
        let all: Vec<Uuid> = ids.values().copied().collect();
        self.edges_among(&all, wanted.collect()).await
    }

    /// Relationships of an environment's units with each other.
    async fn sync_needs(&mut self, sync: &CmdbSync) -> Result<(), StoreError> {
        let of = &sync.of;
        let units: Vec<(String, Uuid)> = sqlx::query_as(
            "SELECT i.unit, i.id FROM configuration_items i
             WHERE i.source = 'run' AND i.deployment = $1 AND i.environment = $2 AND i.rehearsal = $3
               AND i.deleted_at IS NULL AND i.ci_class_id = (SELECT k.id FROM ci_classes k WHERE k.name = $4)",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(UNIT_CLASS)
        .fetch_all(self.connection())
        .await?;
        let ids: BTreeMap<String, Uuid> = units.into_iter().collect();
        let wanted = sync.needs.iter().filter_map(|(unit, needed)| {
            let pair = (*ids.get(unit)?, *ids.get(needed)?);
            Some((pair.0, pair.1, "depends_on".to_owned()))
        });
        let all: Vec<Uuid> = ids.values().copied().collect();
        self.edges_among(&all, wanted.collect()).await
    }

    /// Makes what runs said about these items and each other equal to this.
    async fn edges_among(
        &mut self,
        items: &[Uuid],
        wanted: BTreeSet<(Uuid, Uuid, String)>,
    ) -> Result<(), StoreError> {
        let known: Vec<(Uuid, Uuid, Uuid, String)> = sqlx::query_as(
            "SELECT id, source_ci, target_ci, relationship FROM ci_relationships
             WHERE source = 'run' AND source_ci = ANY($1) AND target_ci = ANY($1)",
        )
        .bind(items)
        .fetch_all(self.connection())
        .await?;
        let mut missing = wanted;
        let mut over = Vec::new();
        for (id, source, target, relationship) in known {
            if !missing.remove(&(source, target, relationship)) {
                over.push(id);
            }
        }
        sqlx::query("DELETE FROM ci_relationships WHERE id = ANY($1)")
            .bind(&over)
            .execute(self.connection())
            .await?;
        let (mut sources, mut targets, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for (source, target, word) in missing {
            sources.push(source);
            targets.push(target);
            words.push(word);
        }
        // What somebody said before stays theirs.
        sqlx::query(
            "INSERT INTO ci_relationships (source_ci, target_ci, relationship, source)
             SELECT g.source_ci, g.target_ci, g.relationship, 'run'
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

    async fn sync_note(
        &mut self,
        of: &EnvironmentKey,
        run: Uuid,
        unit: &str,
        problem: Option<&str>,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO ci_syncs (deployment, environment, rehearsal, unit, run, problem)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (tenant_id, deployment, environment, rehearsal, unit) DO UPDATE
             SET tag = NULL, run = $5, problem = $6, synced_at = clock_timestamp()",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(unit)
        .bind(run)
        .bind(problem)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// What failed for the environment as a whole is made up for.
    async fn sync_clear(&mut self, of: &EnvironmentKey) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM ci_syncs WHERE deployment = $1 AND environment = $2 AND rehearsal = $3 AND unit = $4",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(ALL_UNITS)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    async fn live_publish_items(
        &mut self,
        sync: &CmdbSync,
        counts: SyncCounts,
    ) -> Result<(), StoreError> {
        if counts == SyncCounts::default() {
            return Ok(());
        }
        let of = &sync.of;
        let data = json!({
            "resource_id": of.deployment,
            "resource_type": "cmdb",
            "deployment": of.deployment,
            "environment": of.environment,
            "rehearsal": of.rehearsal,
            "run": sync.run,
            "changes": {"created": counts.created, "updated": counts.updated,
                "decommissioned": counts.decommissioned},
        });
        let event = NewEvent::new(kind::CMDB_CHANGED, &of.deployment, data)
            .about(format!("{}/{}", of.deployment, of.environment))
            .in_environment(&of.environment);
        self.live_publish(&[event]).await
    }
}

fn write_of<'a>(
    planned: &PlannedWrite<'a>,
    before: &BTreeMap<Uuid, ItemContent>,
    compartment: Uuid,
) -> ItemWrite<'a> {
    let content = planned.item.map(|item| &item.content);
    let old = planned.known.and_then(|known| before.get(&known.id));
    let changes = match (old, content) {
        (Some(old), Some(new)) => changes_between(old, new),
        (None, _) | (_, None) => Map::new(),
    };
    let key = match (planned.item, planned.known) {
        (Some(item), _) => item.urn.as_str(),
        (None, Some(known)) => known.urn.as_str(),
        (None, None) => "",
    };
    ItemWrite {
        id: planned.known.map_or_else(Uuid::new_v4, |known| known.id),
        key,
        content,
        digest: planned.digest,
        // Whoever put an item elsewhere did it on purpose.
        compartment: planned.known.is_none().then_some(compartment),
        revision: planned.known.map_or(1, |known| known.revision + 1),
        change: planned.change.as_str(),
        changes,
        active: planned.change != ItemChange::Decommissioned,
    }
}
