//! Roles of a tenant's own making, and who has which role.

use nimbus_core::UserId;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// A custom role; what its grants mean is not known here.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct CustomRole {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub grants: Value,
    pub created_at: Timestamp,
}

/// Who has a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    User(UserId),
    Group(Uuid),
}

#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct RoleAssignment {
    pub id: Uuid,
    pub role: String,
    pub user_id: Option<Uuid>,
    pub group_id: Option<Uuid>,
    /// The group's name.
    pub group_name: Option<String>,
    pub reach: String,
    pub conditions: Value,
    pub created_at: Timestamp,
}

const ASSIGNMENT: &str = "a.id, a.role, a.user_id, a.group_id, g.name AS group_name, a.reach, a.conditions, a.created_at";

fn assignments(rest: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!(
        "SELECT {ASSIGNMENT} FROM nimbus_core.role_assignments a
         LEFT JOIN nimbus_core.groups g ON g.tenant_id = a.tenant_id AND g.id = a.group_id {rest}"
    ))
}

impl TenantTx {
    pub async fn role_create(
        &mut self,
        name: &str,
        description: &str,
        grants: &Value,
    ) -> Result<CustomRole, StoreError> {
        sqlx::query_as(
            "INSERT INTO nimbus_core.roles (id, name, description, grants) VALUES ($1, $2, $3, $4)
             RETURNING id, name, description, grants, created_at",
        )
        .bind(Uuid::new_v4())
        .bind(name)
        .bind(description)
        .bind(grants)
        .fetch_one(self.connection())
        .await
        .map_err(|error| StoreError::from(error).exists_if_taken(|| format!("the role {name}")))
    }

    pub async fn role_update(
        &mut self,
        name: &str,
        description: &str,
        grants: &Value,
    ) -> Result<(), StoreError> {
        let updated = sqlx::query(
            "UPDATE nimbus_core.roles SET description = $2, grants = $3 WHERE name = $1",
        )
        .bind(name)
        .bind(description)
        .bind(grants)
        .execute(self.connection())
        .await?;
        if updated.rows_affected() == 0 {
            Err(StoreError::NotFound("role"))
        } else {
            Ok(())
        }
    }

    pub async fn role_list(&mut self) -> Result<Vec<CustomRole>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT id, name, description, grants, created_at FROM nimbus_core.roles ORDER BY name LIMIT 500",
        )
        .fetch_all(self.connection())
        .await?)
    }

    /// Deletes a role that nobody has any more.
    pub async fn role_delete(&mut self, name: &str) -> Result<(), StoreError> {
        let used: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM nimbus_core.role_assignments WHERE role = $1)",
        )
        .bind(name)
        .fetch_one(self.connection())
        .await?;
        if used {
            return Err(StoreError::Invalid {
                what: format!("the role {name}"),
                why: "is still assigned to somebody".to_owned(),
            });
        }
        let deleted = sqlx::query("DELETE FROM nimbus_core.roles WHERE name = $1")
            .bind(name)
            .execute(self.connection())
            .await?;
        if deleted.rows_affected() == 0 {
            Err(StoreError::NotFound("role"))
        } else {
            Ok(())
        }
    }

    pub async fn role_assign(
        &mut self,
        role: &str,
        holder: Holder,
        reach: &str,
        conditions: &Value,
    ) -> Result<RoleAssignment, StoreError> {
        let (user, group) = match holder {
            Holder::User(user) => (Some(Uuid::from(user)), None),
            Holder::Group(group) => (None, Some(group)),
        };
        let id = Uuid::new_v4();
        let inserted = sqlx::query(
            "INSERT INTO nimbus_core.role_assignments (id, role, user_id, group_id, reach, conditions)
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(id)
        .bind(role)
        .bind(user)
        .bind(group)
        .bind(reach)
        .bind(conditions)
        .execute(self.connection())
        .await;
        if let Err(error) = inserted {
            if error
                .as_database_error()
                .is_some_and(|error| error.is_foreign_key_violation())
            {
                return Err(StoreError::NotFound("user or group"));
            }
            return Err(
                StoreError::from(error).exists_if_taken(|| format!("the assignment of {role}"))
            );
        }
        self.role_assignment(id).await
    }

    pub async fn role_assignment(&mut self, id: Uuid) -> Result<RoleAssignment, StoreError> {
        let found = sqlx::query_as(assignments("WHERE a.id = $1"))
            .bind(id)
            .fetch_optional(self.connection())
            .await?;
        found.ok_or(StoreError::NotFound("role assignment"))
    }

    pub async fn role_unassign(&mut self, id: Uuid) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM nimbus_core.role_assignments WHERE id = $1")
            .bind(id)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    pub async fn role_assignments(&mut self) -> Result<Vec<RoleAssignment>, StoreError> {
        Ok(
            sqlx::query_as(assignments("ORDER BY a.role, a.created_at LIMIT 1000"))
                .fetch_all(self.connection())
                .await?,
        )
    }

    /// What a user has, directly and through groups.
    pub async fn role_assignments_of(
        &mut self,
        user: UserId,
    ) -> Result<Vec<RoleAssignment>, StoreError> {
        Ok(sqlx::query_as(assignments(
            "WHERE a.user_id = $1
                OR a.group_id IN (SELECT m.group_id FROM nimbus_core.group_members m WHERE m.user_id = $1)",
        ))
        .bind(Uuid::from(user))
        .fetch_all(self.connection())
        .await?)
    }

    /// How many users who can sign in have a role without condition, not counting one assignment.
    /// Whoever would take the last one away is told.
    pub async fn role_holders_besides(
        &mut self,
        role: &str,
        assignment: Option<Uuid>,
        user: Option<UserId>,
    ) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT count(DISTINCT u.id) FROM nimbus_core.role_assignments a
             LEFT JOIN nimbus_core.group_members m ON m.group_id = a.group_id
             JOIN nimbus_core.users u ON u.id = COALESCE(a.user_id, m.user_id)
             WHERE a.role = $1 AND a.conditions = '{}' AND u.deleted_at IS NULL AND u.disabled_at IS NULL
               AND u.kind = 'user' AND ($2::uuid IS NULL OR a.id <> $2) AND ($3::uuid IS NULL OR u.id <> $3)",
        )
        .bind(role)
        .bind(assignment)
        .bind(user.map(Uuid::from))
        .fetch_one(self.connection())
        .await?)
    }
}
