//! Roles of a tenant's own making, and who has which role.

use nimbus_core::UserId;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, RowCursor, StoreError, TenantTx, Timestamp};

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
    /// When it ends; none is never.
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// How a role is held: by how far, when and how long.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct RoleHolding {
    pub reach: String,
    pub conditions: Value,
    pub expires_at: Option<Timestamp>,
}

const ROLE: &str = "id, name, description, grants, created_at";
const ASSIGNMENT: &str = "a.id, a.role, a.user_id, a.group_id, g.name AS group_name, a.reach, a.conditions, \
    a.expires_at, a.created_at";

fn roles(rest: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("SELECT {ROLE} FROM nimbus_core.roles {rest}"))
}

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

    /// By name, after the given one.
    pub async fn role_list(
        &mut self,
        page: &ListPage<String>,
    ) -> Result<Vec<CustomRole>, StoreError> {
        Ok(sqlx::query_as(roles(
            "WHERE $1::text IS NULL OR name > $1 ORDER BY name LIMIT $2",
        ))
        .bind(&page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// Those of these names that exist.
    pub async fn roles_named(&mut self, names: &[String]) -> Result<Vec<CustomRole>, StoreError> {
        Ok(sqlx::query_as(roles("WHERE name = ANY ($1)"))
            .bind(names)
            .fetch_all(self.connection())
            .await?)
    }

    /// A role that nobody changes until the transaction ends.
    pub async fn role_hold(&mut self, name: &str) -> Result<Option<CustomRole>, StoreError> {
        Ok(sqlx::query_as(roles("WHERE name = $1 FOR SHARE"))
            .bind(name)
            .fetch_optional(self.connection())
            .await?)
    }

    /// A role that this transaction changes: nobody gives it to anybody meanwhile.
    pub async fn role_lock(&mut self, name: &str) -> Result<Option<CustomRole>, StoreError> {
        Ok(sqlx::query_as(roles("WHERE name = $1 FOR UPDATE"))
            .bind(name)
            .fetch_optional(self.connection())
            .await?)
    }

    /// Every different way in which a role is held by somebody.
    pub async fn role_holdings(&mut self, role: &str) -> Result<Vec<RoleHolding>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT DISTINCT reach, conditions, expires_at FROM nimbus_core.role_assignments WHERE role = $1",
        )
        .bind(role)
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
        held: &RoleHolding,
    ) -> Result<RoleAssignment, StoreError> {
        let (user, group) = match holder {
            Holder::User(user) => (Some(Uuid::from(user)), None),
            Holder::Group(group) => (None, Some(group)),
        };
        // One that ended is only in the way of the next.
        sqlx::query(
            "DELETE FROM nimbus_core.role_assignments
             WHERE role = $1 AND user_id IS NOT DISTINCT FROM $2 AND group_id IS NOT DISTINCT FROM $3
               AND expires_at <= now()",
        )
        .bind(role)
        .bind(user)
        .bind(group)
        .execute(self.connection())
        .await?;
        let id = Uuid::new_v4();
        let inserted = sqlx::query(
            "INSERT INTO nimbus_core.role_assignments (id, role, user_id, group_id, reach, conditions, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(id)
        .bind(role)
        .bind(user)
        .bind(group)
        .bind(&held.reach)
        .bind(&held.conditions)
        .bind(held.expires_at)
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

    /// Newest first, after the given place.
    pub async fn role_assignments(
        &mut self,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<RoleAssignment>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        Ok(sqlx::query_as(assignments(
            "WHERE $1::timestamptz IS NULL OR (a.created_at, a.id) < ($1, $2)
             ORDER BY a.created_at DESC, a.id DESC LIMIT $3",
        ))
        .bind(at)
        .bind(id)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// What a group carries.
    pub async fn role_assignments_of_group(
        &mut self,
        group: Uuid,
    ) -> Result<Vec<RoleAssignment>, StoreError> {
        Ok(sqlx::query_as(assignments("WHERE a.group_id = $1"))
            .bind(group)
            .fetch_all(self.connection())
            .await?)
    }

    /// What a user has and did not end, directly and through groups.
    pub async fn role_assignments_of(
        &mut self,
        user: UserId,
    ) -> Result<Vec<RoleAssignment>, StoreError> {
        Ok(sqlx::query_as(assignments(
            "WHERE (a.expires_at IS NULL OR a.expires_at > now())
               AND (a.user_id = $1
                 OR a.group_id IN (SELECT m.group_id FROM nimbus_core.group_members m WHERE m.user_id = $1))",
        ))
        .bind(Uuid::from(user))
        .fetch_all(self.connection())
        .await?)
    }

    /// How many people can sign in who have one of these roles without condition and for ever. Whoever may
    /// change the answer waits until this transaction ends, so that two who remove each other take turns.
    pub async fn administrators(
        &mut self,
        roles: &[&str],
        subtree_only: bool,
    ) -> Result<i64, StoreError> {
        sqlx::query(
            "SELECT pg_advisory_xact_lock(hashtextextended('nimbus/administrators/' || nimbus_core.current_tenant(), 0))",
        )
        .execute(self.connection())
        .await?;
        Ok(sqlx::query_scalar(
            "SELECT count(DISTINCT u.id) FROM nimbus_core.role_assignments a
             LEFT JOIN nimbus_core.group_members m ON m.tenant_id = a.tenant_id AND m.group_id = a.group_id
             JOIN nimbus_core.users u ON u.tenant_id = a.tenant_id AND u.id = COALESCE(a.user_id, m.user_id)
             WHERE a.role = ANY ($1) AND a.conditions = '{}' AND a.expires_at IS NULL
               AND ($2 = false OR a.reach = 'subtree')
               AND u.kind = 'user' AND u.deleted_at IS NULL AND u.disabled_at IS NULL AND u.password_hash IS NOT NULL",
        )
        .bind(roles)
        .bind(subtree_only)
        .fetch_one(self.connection())
        .await?)
    }
}
