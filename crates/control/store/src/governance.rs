//! Rules about components as they arrive at a tenant, and instances that are held to them.

use std::collections::BTreeMap;

use nimbus_core::{TenantId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{EnvironmentKey, StoreError, TenantTx, Timestamp};

/// A rule that holds for a tenant, and whose it is.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, Deserialize)]
pub struct StoredRule {
    /// The tenant that it is set for, with everything below it.
    pub owner: Uuid,
    pub owner_name: String,
    /// One for the operator's own tenant, and so on down.
    pub depth: i32,
    pub id: Uuid,
    /// A component's name, or `*`.
    pub component: String,
    pub is_allowed: bool,
    pub parameter_constraints: Value,
    pub max_instances: Option<i32>,
    pub reason: String,
    pub set_by_name: String,
    /// The tenant that whoever set it belongs to.
    pub set_from: Uuid,
    pub set_at: Timestamp,
}

impl StoredRule {
    /// The rule's name, whose it is and who set it, for whoever is refused.
    pub fn whose(&self) -> String {
        let on = self.set_at.0.strftime("%Y-%m-%d");
        let reason = match self.reason.as_str() {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        format!(
            "the rule about `{}` of {}, set by {} on {on}{reason}",
            self.component, self.owner_name, self.set_by_name
        )
    }
}

/// The rule for every component that has none of its own.
const EVERY_COMPONENT: &str = "*";

/// The rules of a component: at each tenant its own, or else the one for all.
pub fn rules_in_force<'a>(
    rules: &'a [StoredRule],
    component: &str,
) -> impl Iterator<Item = &'a StoredRule> + use<'a> {
    let mut levels: BTreeMap<i32, &StoredRule> = BTreeMap::new();
    for rule in rules {
        if rule.component == component {
            levels.insert(rule.depth, rule);
        } else if rule.component == EVERY_COMPONENT {
            levels.entry(rule.depth).or_insert(rule);
        }
    }
    levels.into_values()
}

/// A rule to be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRule {
    pub component: String,
    pub is_allowed: bool,
    pub parameter_constraints: Value,
    pub max_instances: Option<i32>,
    pub reason: String,
    pub set_by: UserId,
    pub set_by_name: String,
    pub set_from: TenantId,
}

/// A component of a deployment in an environment, to be put down before a run is queued.
#[derive(Clone, Debug, PartialEq)]
pub struct NewInstance {
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub stack: String,
    pub component: String,
    /// Whose component, and which version, where it comes from the catalog.
    pub version: Option<(Uuid, i32)>,
    pub pulumi_stack: String,
    pub parameters: Value,
    pub by: UserId,
}

/// A component that is deployed, or about to be.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct DeployedComponent {
    pub id: Uuid,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub stack: String,
    pub component: String,
    pub component_owner: Option<Uuid>,
    pub component_version: Option<i32>,
    pub pulumi_stack_name: String,
    /// What it was deployed with, or is about to be; secrets are marks.
    pub resolved_parameters: Value,
    pub status: String,
    pub deployed_at: Option<Timestamp>,
    pub error_message: Option<String>,
    /// The run that upgrades it, while that is to come or under way, and the version that it goes back to otherwise.
    pub upgrade_run: Option<Uuid>,
    pub upgrade_from: Option<i32>,
    /// The last roll-out that was at it, with the run that it asked for.
    pub rollout: Option<Uuid>,
    pub rollout_run: Option<Uuid>,
    pub updated_at: Timestamp,
}

pub(crate) const INSTANCE: &str = "id, deployment, environment, rehearsal, stack, component, component_owner, \
    component_version, pulumi_stack_name, resolved_parameters, status, deployed_at, error_message, upgrade_run, \
    upgrade_from, rollout, rollout_run, updated_at";

impl TenantTx {
    /// Every rule that holds for a tenant, from the operator's down.
    pub async fn governance_rules(&mut self, of: TenantId) -> Result<Vec<StoredRule>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT owner, owner_name, depth, id, component, is_allowed, parameter_constraints, max_instances, reason,
                 set_by_name, set_from, set_at FROM nimbus_core.governance_rules($1)",
        )
        .bind(Uuid::from(of))
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn governance_put(&mut self, new: &NewRule) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO nimbus_core.component_governance (id, component, is_allowed, parameter_constraints,
                 max_instances, reason, set_by, set_by_name, set_from)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (tenant_id, component) DO UPDATE SET is_allowed = excluded.is_allowed,
                 parameter_constraints = excluded.parameter_constraints, max_instances = excluded.max_instances,
                 reason = excluded.reason, set_by = excluded.set_by, set_by_name = excluded.set_by_name,
                 set_from = excluded.set_from, set_at = now()",
        )
        .bind(Uuid::new_v4())
        .bind(&new.component)
        .bind(new.is_allowed)
        .bind(&new.parameter_constraints)
        .bind(new.max_instances)
        .bind(&new.reason)
        .bind(Uuid::from(new.set_by))
        .bind(&new.set_by_name)
        .bind(Uuid::from(new.set_from))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn governance_delete(&mut self, component: &str) -> Result<(), StoreError> {
        let deleted =
            sqlx::query("DELETE FROM nimbus_core.component_governance WHERE component = $1")
                .bind(component)
                .execute(self.connection())
                .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::NotFound("rule"));
        }
        Ok(())
    }

    /// Puts an instance down for a run that is about to be queued. One that is there stays with its version.
    pub async fn instance_reserve(&mut self, new: &NewInstance) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO deployed_components (id, deployment, environment, rehearsal, stack, component, component_owner,
                 component_version, pulumi_stack_name, resolved_parameters, deployed_by)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
             ON CONFLICT (tenant_id, deployment, environment, rehearsal, stack) DO UPDATE SET
                 resolved_parameters = excluded.resolved_parameters, deployed_by = excluded.deployed_by,
                 component_owner = excluded.component_owner, component_version = excluded.component_version,
                 status = CASE WHEN deployed_components.status = 'destroyed' THEN 'pending' ELSE deployed_components.status END,
                 updated_at = now()",
        )
        .bind(Uuid::new_v4())
        .bind(&new.deployment)
        .bind(&new.environment)
        .bind(new.rehearsal)
        .bind(&new.stack)
        .bind(&new.component)
        .bind(new.version.map(|(owner, _)| owner))
        .bind(new.version.map(|(_, version)| version))
        .bind(&new.pulumi_stack)
        .bind(&new.parameters)
        .bind(Uuid::from(new.by))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Keeps what an instance is about to be deployed with, all of it known and without secrets.
    pub async fn instance_parameters(
        &mut self,
        of: &EnvironmentKey,
        stack: &str,
        parameters: &Value,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE deployed_components SET resolved_parameters = $5, updated_at = now()
             WHERE deployment = $1 AND environment = $2 AND rehearsal = $3 AND stack = $4",
        )
        .bind(&of.deployment)
        .bind(&of.environment)
        .bind(of.rehearsal)
        .bind(stack)
        .bind(parameters)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Refuses when there are more instances of a component than a rule allows. After they were put down, in the same
    /// transaction: whoever wants the last one at the same time waits, and is refused.
    pub async fn instances_check(
        &mut self,
        component: &str,
        rehearsal: bool,
        added: i64,
    ) -> Result<(), StoreError> {
        let checked = sqlx::query("SELECT nimbus_core.instances_check($1, $2, $3)")
            .bind(component)
            .bind(rehearsal)
            .bind(added)
            .execute(self.connection())
            .await;
        checked.map(drop).map_err(|error| refused(error, component))
    }

    /// Instances of a deployment; of one environment if it is given.
    pub async fn instances_of(
        &mut self,
        deployment: &str,
    ) -> Result<Vec<DeployedComponent>, StoreError> {
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT {INSTANCE} FROM deployed_components WHERE deployment = $1 ORDER BY environment, rehearsal, stack"
        )))
        .bind(deployment)
        .fetch_all(self.connection())
        .await?)
    }

    /// Instances of a component, by deployment and environment, after the given one.
    pub async fn instances_of_component(
        &mut self,
        component: &str,
        page: &crate::ListPage<Uuid>,
    ) -> Result<Vec<DeployedComponent>, StoreError> {
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT {INSTANCE} FROM deployed_components
             WHERE component = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3"
        )))
        .bind(component)
        .bind(page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }
}

fn refused(error: sqlx::Error, component: &str) -> StoreError {
    let sqlx::Error::Database(database) = &error else {
        return error.into();
    };
    if database.code().as_deref() != Some("NB004") {
        return error.into();
    }
    let detail = database
        .try_downcast_ref::<sqlx::postgres::PgDatabaseError>()
        .and_then(sqlx::postgres::PgDatabaseError::detail)
        .unwrap_or_default();
    let mut parts = detail.split(' ');
    let mut number = || parts.next().and_then(|text| text.parse().ok());
    let (limit, used) = (number().unwrap_or_default(), number().unwrap_or_default());
    StoreError::InstancesExceeded {
        component: component.to_owned(),
        limit,
        used,
        rule: detail
            .split(' ')
            .nth(2)
            .and_then(|id| id.parse().ok())
            .unwrap_or_default(),
    }
}
