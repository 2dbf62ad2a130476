//! Upgrades of instances, and roll-outs over many of them. What a state, a policy and waves mean is the catalog core's;
//! here they are JSON.

use nimbus_core::{TenantId, UserId};
use serde_json::{Value, json};
use sqlx::FromRow;
use uuid::Uuid;

use crate::{DeployedComponent, ListPage, RowCursor, Store, StoreError, TenantTx, Timestamp};

/// An instance of a component in the acting tenant or below it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct FleetInstance {
    pub tenant: Uuid,
    pub tenant_name: String,
    /// From the operator's tenant down to the instance's.
    pub tenant_path: Vec<Uuid>,
    pub id: Uuid,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub stack: String,
    pub version: Option<i32>,
    pub status: String,
}

/// Which instances of a tenant.
#[derive(Clone, Debug, Default)]
pub struct InstanceFilter {
    pub deployment: Option<String>,
    pub environment: Option<String>,
    pub component: Option<String>,
}

/// A roll-out as the database has it.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredRollout {
    pub id: Uuid,
    pub component: String,
    pub component_owner: Uuid,
    pub to_version: i32,
    pub waves: Value,
    pub policy: Value,
    pub state: Value,
    /// `planned`, `running`, `paused`, `stopped`, `failed` or `succeeded`.
    pub status: String,
    pub message: String,
    pub requested_by: Uuid,
    pub requested_from: Uuid,
    pub requested_at: Timestamp,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// A roll-out to be made.
#[derive(Clone, Debug)]
pub struct NewRollout {
    pub component: String,
    pub component_owner: Uuid,
    pub to_version: i32,
    pub waves: Value,
    pub policy: Value,
    pub state: Value,
    pub status: &'static str,
    pub message: String,
    pub requested_by: UserId,
    pub requested_from: TenantId,
}

/// One instance of a roll-out.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct RolloutInstance {
    pub wave: i32,
    pub place: i32,
    pub instance: Uuid,
    pub instance_tenant: Uuid,
    pub tenant_name: String,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub stack: String,
    pub from_version: i32,
    /// `waiting`, `starting`, `running`, `succeeded`, `failed` or `skipped`.
    pub status: String,
    pub run: Option<Uuid>,
    pub problem: Option<String>,
}

const COLUMNS: &str = "id, component, component_owner, to_version, waves, policy, state, status, message, requested_by, \
    requested_from, requested_at, updated_at, ended_at";
const PARTS: &str = "wave, place, instance, instance_tenant, tenant_name, deployment, environment, rehearsal, stack, \
    from_version, status, run, problem";
/// Longest reason that is kept of an instance.
const MOST_PROBLEM_LETTERS: usize = 2000;

fn sql(text: String) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(text)
}

impl Store {
    /// Tenants with roll-outs that are to go on.
    pub async fn rollout_tenants(&self) -> Result<Vec<TenantId>, StoreError> {
        let mut connection = self.app().acquire().await?;
        let found: Vec<Uuid> = sqlx::query_scalar("SELECT nimbus_core.rollout_tenants()")
            .fetch_all(&mut *connection)
            .await?;
        Ok(found.into_iter().map(TenantId::from).collect())
    }

    /// Every tenant may have one: after a start, when nobody knows.
    pub async fn rollout_note_all(&self) -> Result<(), StoreError> {
        let mut connection = self.app().acquire().await?;
        sqlx::query("SELECT nimbus_core.rollout_note_all()")
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// A tenant that is gone has none.
    pub async fn rollout_forget(&self, tenant: TenantId) -> Result<(), StoreError> {
        let mut connection = self.app().acquire().await?;
        sqlx::query("SELECT nimbus_core.rollout_forget($1)")
            .bind(Uuid::from(tenant))
            .execute(&mut *connection)
            .await?;
        Ok(())
    }
}

impl TenantTx {
    /// Instances of a component, by its owner, in the acting tenant and below it; `most` of them.
    pub async fn fleet_instances(
        &mut self,
        component: &str,
        owner: Uuid,
        most: i64,
    ) -> Result<Vec<FleetInstance>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT tenant, tenant_name, tenant_path, id, deployment, environment, rehearsal, stack, version, status
             FROM nimbus_core.fleet_instances($1, $2, $3)",
        )
        .bind(component)
        .bind(owner)
        .bind(most)
        .fetch_all(self.connection())
        .await?)
    }

    /// Instances of the tenant, after the given one.
    pub async fn instance_list(
        &mut self,
        filter: &InstanceFilter,
        page: &ListPage<Uuid>,
    ) -> Result<Vec<DeployedComponent>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {} FROM deployed_components
             WHERE ($1::text IS NULL OR deployment = $1) AND ($2::text IS NULL OR environment = $2)
               AND ($3::text IS NULL OR component = $3) AND ($4::uuid IS NULL OR id > $4) ORDER BY id LIMIT $5",
            crate::governance::INSTANCE
        )))
        .bind(&filter.deployment)
        .bind(&filter.environment)
        .bind(&filter.component)
        .bind(page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn instance_get(&mut self, id: Uuid) -> Result<DeployedComponent, StoreError> {
        sqlx::query_as(sql(format!(
            "SELECT {} FROM deployed_components WHERE id = $1",
            crate::governance::INSTANCE
        )))
        .bind(id)
        .fetch_optional(self.connection())
        .await?
        .ok_or(StoreError::NotFound("instance"))
    }

    /// Those of them that there are, in no order.
    pub async fn instances_named(
        &mut self,
        ids: &[Uuid],
    ) -> Result<Vec<DeployedComponent>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {} FROM deployed_components WHERE id = ANY($1)",
            crate::governance::INSTANCE
        )))
        .bind(ids)
        .fetch_all(self.connection())
        .await?)
    }

    /// Says which version an instance has from now on. Its deployment has to be locked.
    pub async fn instance_pin(&mut self, id: Uuid, version: i32) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE deployed_components SET component_version = $2, updated_at = now() WHERE id = $1",
        )
        .bind(id)
        .bind(version)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Keeps the run that upgrades an instance, the version that it goes back to when that run comes to nothing, and the
    /// roll-out that asked for it.
    pub async fn instance_upgrade(
        &mut self,
        id: Uuid,
        run: Uuid,
        from: i32,
        rollout: Option<Uuid>,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE deployed_components SET upgrade_run = $2, upgrade_from = $3, rollout = COALESCE($4, rollout),
                 rollout_run = CASE WHEN $4::uuid IS NULL THEN rollout_run ELSE $2 END, updated_at = now()
             WHERE id = $1",
        )
        .bind(id)
        .bind(run)
        .bind(from)
        .bind(rollout)
        .execute(self.connection())
        .await?;
        sqlx::query("UPDATE runs SET upgrades = true WHERE id = $1")
            .bind(run)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Makes a roll-out with its instances; they come as they are, in the order of waves.
    pub async fn rollout_create(
        &mut self,
        new: &NewRollout,
        instances: &[RolloutInstance],
    ) -> Result<StoredRollout, StoreError> {
        let id = Uuid::new_v4();
        sqlx::query(
            "INSERT INTO rollouts (id, component, component_owner, to_version, waves, policy, state, status, message,
                 requested_by, requested_from)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        )
        .bind(id)
        .bind(&new.component)
        .bind(new.component_owner)
        .bind(new.to_version)
        .bind(&new.waves)
        .bind(&new.policy)
        .bind(&new.state)
        .bind(new.status)
        .bind(&new.message)
        .bind(Uuid::from(new.requested_by))
        .bind(Uuid::from(new.requested_from))
        .execute(self.connection())
        .await
        .map_err(|error| {
            let component = &new.component;
            StoreError::from(error).exists_if_taken(|| format!("a roll-out of {component}"))
        })?;
        let rows: Vec<Value> = instances.iter().map(row_of).collect();
        sqlx::query(
            "INSERT INTO rollout_instances (rollout, wave, place, instance, instance_tenant, tenant_name, deployment,
                 environment, rehearsal, stack, from_version, status, problem)
             SELECT $1, wave, place, instance, instance_tenant, tenant_name, deployment, environment, rehearsal, stack,
                 from_version, status, problem
             FROM jsonb_to_recordset($2) AS one(wave integer, place integer, instance uuid, instance_tenant uuid,
                 tenant_name text, deployment text, environment text, rehearsal boolean, stack text, from_version integer,
                 status text, problem text)",
        )
        .bind(id)
        .bind(Value::Array(rows))
        .execute(self.connection())
        .await?;
        self.rollout_note().await?;
        self.rollout_get(id).await
    }

    pub async fn rollout_get(&mut self, id: Uuid) -> Result<StoredRollout, StoreError> {
        self.rollout_row(id, "").await
    }

    /// A roll-out that nobody changes until the transaction ends.
    pub async fn rollout_lock(&mut self, id: Uuid) -> Result<StoredRollout, StoreError> {
        self.rollout_row(id, " FOR UPDATE").await
    }

    async fn rollout_row(&mut self, id: Uuid, how: &str) -> Result<StoredRollout, StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM rollouts WHERE id = $1{how}");
        sqlx::query_as(sql(statement))
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("roll-out"))
    }

    /// Newest first; of one component if it is named.
    pub async fn rollout_list(
        &mut self,
        component: Option<&str>,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<StoredRollout>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        Ok(sqlx::query_as(sql(format!(
            "SELECT {COLUMNS} FROM rollouts WHERE ($1::text IS NULL OR component = $1)
               AND ($2::timestamptz IS NULL OR (requested_at, id) < ($2, $3))
             ORDER BY requested_at DESC, id DESC LIMIT $4"
        )))
        .bind(component)
        .bind(at)
        .bind(id)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// Whether a roll-out of a component has not ended.
    pub async fn rollout_is_open(
        &mut self,
        component: &str,
        owner: Uuid,
    ) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM rollouts
                 WHERE component = $1 AND component_owner = $2 AND ended_at IS NULL)",
        )
        .bind(component)
        .bind(owner)
        .fetch_one(self.connection())
        .await?)
    }

    /// Roll-outs that have not ended, or of which something is still under way.
    pub async fn rollouts_open(&mut self) -> Result<Vec<Uuid>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT id FROM rollouts r WHERE ended_at IS NULL OR EXISTS (SELECT FROM rollout_instances i
                 WHERE i.tenant_id = r.tenant_id AND i.rollout = r.id AND i.status IN ('starting', 'running'))
             ORDER BY requested_at, id",
        )
        .fetch_all(self.connection())
        .await?)
    }

    /// By wave and place.
    pub async fn rollout_instances(
        &mut self,
        rollout: Uuid,
    ) -> Result<Vec<RolloutInstance>, StoreError> {
        Ok(sqlx::query_as(sql(format!(
            "SELECT {PARTS} FROM rollout_instances WHERE rollout = $1 ORDER BY wave, place"
        )))
        .bind(rollout)
        .fetch_all(self.connection())
        .await?)
    }

    /// Moves a roll-out that is locked.
    pub async fn rollout_move(
        &mut self,
        id: Uuid,
        state: &Value,
        status: &str,
    ) -> Result<StoredRollout, StoreError> {
        sqlx::query(
            "UPDATE rollouts SET state = $2, status = $3, updated_at = clock_timestamp(),
                 ended_at = CASE WHEN $3 IN ('planned', 'running', 'paused') THEN NULL
                     ELSE COALESCE(ended_at, clock_timestamp()) END
             WHERE id = $1",
        )
        .bind(id)
        .bind(state)
        .bind(status)
        .execute(self.connection())
        .await?;
        self.rollout_note().await?;
        self.rollout_get(id).await
    }

    /// Moves an instance of a roll-out that is locked.
    pub async fn rollout_instance_move(
        &mut self,
        rollout: Uuid,
        one: &RolloutInstance,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE rollout_instances SET status = $4, run = $5, problem = $6, updated_at = clock_timestamp()
             WHERE rollout = $1 AND wave = $2 AND place = $3",
        )
        .bind(rollout)
        .bind(one.wave)
        .bind(one.place)
        .bind(&one.status)
        .bind(one.run)
        .bind(one.problem.as_deref().map(shortened))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// The tenant has a roll-out, once this transaction is committed.
    pub async fn rollout_note(&mut self) -> Result<(), StoreError> {
        self.rollout_call("SELECT nimbus_core.rollout_note()").await
    }

    /// The tenant has none that is to go on, unless somebody makes one meanwhile. Whether that is so.
    pub async fn rollout_settle(&mut self) -> Result<bool, StoreError> {
        self.rollout_call("SELECT nimbus_core.rollout_turn()")
            .await?;
        if !self.rollouts_open().await?.is_empty() {
            return Ok(false);
        }
        self.rollout_call("SELECT nimbus_core.rollout_none()")
            .await?;
        Ok(true)
    }

    async fn rollout_call(&mut self, statement: &'static str) -> Result<(), StoreError> {
        sqlx::query(statement).execute(self.connection()).await?;
        Ok(())
    }
}

/// As a record of the database, so that all of them are one statement.
fn row_of(one: &RolloutInstance) -> Value {
    json!({
        "wave": one.wave,
        "place": one.place,
        "instance": one.instance,
        "instance_tenant": one.instance_tenant,
        "tenant_name": one.tenant_name,
        "deployment": one.deployment,
        "environment": one.environment,
        "rehearsal": one.rehearsal,
        "stack": one.stack,
        "from_version": one.from_version,
        "status": one.status,
        "problem": one.problem.as_deref().map(shortened),
    })
}

/// A reason that fits its column.
fn shortened(text: &str) -> String {
    text.chars().take(MOST_PROBLEM_LETTERS).collect()
}
