//! Users and service accounts, and the groups they are in.

use nimbus_core::UserId;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// A user or a service account, without the password.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct User {
    pub id: Uuid,
    pub kind: String,
    pub email: String,
    pub display_name: String,
    pub mfa_enabled: bool,
    pub disabled_at: Option<Timestamp>,
    pub last_login: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl User {
    pub fn user_id(&self) -> UserId {
        self.id.into()
    }
}

/// A user to be created.
#[derive(Clone, Debug)]
pub struct NewUser {
    pub service_account: bool,
    pub email: String,
    pub display_name: String,
    pub password_hash: Option<String>,
}

/// What of a user changes.
#[derive(Clone, Debug, Default)]
pub struct UserChange {
    pub display_name: Option<String>,
    pub disabled: Option<bool>,
    pub password_hash: Option<String>,
}

/// A group with how many are in it.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Group {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub members: i64,
    pub created_at: Timestamp,
}

const USER: &str =
    "id, kind, email, display_name, mfa_enabled, disabled_at, last_login, created_at";

fn user_query(statement: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(statement.replace("{}", USER))
}

impl TenantTx {
    pub async fn user_create(&mut self, new: &NewUser) -> Result<User, StoreError> {
        let kind = if new.service_account {
            "service_account"
        } else {
            "user"
        };
        let email = new.email.to_lowercase();
        sqlx::query_as(user_query(
            "INSERT INTO nimbus_core.users (id, kind, email, display_name, password_hash)
             VALUES ($1, $2, $3, $4, $5) RETURNING {}",
        ))
        .bind(Uuid::new_v4())
        .bind(kind)
        .bind(&email)
        .bind(&new.display_name)
        .bind(&new.password_hash)
        .fetch_one(self.connection())
        .await
        .map_err(|error| StoreError::from(error).exists_if_taken(|| format!("the user {email}")))
    }

    pub async fn user_get(&mut self, id: UserId) -> Result<User, StoreError> {
        let user = sqlx::query_as(user_query(
            "SELECT {} FROM nimbus_core.users WHERE id = $1 AND deleted_at IS NULL",
        ))
        .bind(Uuid::from(id))
        .fetch_optional(self.connection())
        .await?;
        user.ok_or(StoreError::NotFound("user"))
    }

    /// In the order of their names, after the given one.
    pub async fn user_list(
        &mut self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<User>, StoreError> {
        Ok(sqlx::query_as(user_query(
            "SELECT {} FROM nimbus_core.users
             WHERE deleted_at IS NULL AND ($1::text IS NULL OR email > $1) ORDER BY email LIMIT $2",
        ))
        .bind(after)
        .bind(i64::from(limit.clamp(1, 500)))
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn user_update(
        &mut self,
        id: UserId,
        change: &UserChange,
    ) -> Result<User, StoreError> {
        let user = sqlx::query_as(user_query(
            "UPDATE nimbus_core.users SET
                display_name = COALESCE($2, display_name),
                disabled_at = CASE WHEN $3 IS NULL THEN disabled_at WHEN $3 THEN COALESCE(disabled_at, now()) END,
                password_hash = COALESCE($4, password_hash)
             WHERE id = $1 AND deleted_at IS NULL RETURNING {}",
        ))
        .bind(Uuid::from(id))
        .bind(&change.display_name)
        .bind(change.disabled)
        .bind(&change.password_hash)
        .fetch_optional(self.connection())
        .await?;
        user.ok_or(StoreError::NotFound("user"))
    }

    /// Hides the user; the name is free again, the audit trail still knows the id.
    pub async fn user_delete(&mut self, id: UserId) -> Result<(), StoreError> {
        let deleted = sqlx::query(
            "UPDATE nimbus_core.users SET deleted_at = now(), password_hash = NULL
             WHERE id = $1 AND deleted_at IS NULL",
        )
        .bind(Uuid::from(id))
        .execute(self.connection())
        .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::NotFound("user"));
        }
        sqlx::query("DELETE FROM nimbus_core.role_assignments WHERE user_id = $1")
            .bind(Uuid::from(id))
            .execute(self.connection())
            .await?;
        sqlx::query("DELETE FROM nimbus_core.group_members WHERE user_id = $1")
            .bind(Uuid::from(id))
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Somebody who may sign in with a password, and the stored hash.
    pub async fn user_credentials(
        &mut self,
        email: &str,
    ) -> Result<Option<(UserId, String)>, StoreError> {
        let found: Option<(Uuid, String)> = sqlx::query_as(
            "SELECT id, password_hash FROM nimbus_core.users
             WHERE email = $1 AND deleted_at IS NULL AND disabled_at IS NULL AND password_hash IS NOT NULL",
        )
        .bind(email.to_lowercase())
        .fetch_optional(self.connection())
        .await?;
        Ok(found.map(|(id, hash)| (id.into(), hash)))
    }

    pub async fn user_signed_in(&mut self, id: UserId) -> Result<(), StoreError> {
        sqlx::query("UPDATE nimbus_core.users SET last_login = now() WHERE id = $1")
            .bind(Uuid::from(id))
            .execute(self.connection())
            .await?;
        Ok(())
    }

    pub async fn group_create(
        &mut self,
        name: &str,
        description: &str,
    ) -> Result<Group, StoreError> {
        sqlx::query_as(
            "INSERT INTO nimbus_core.groups (id, name, description) VALUES ($1, $2, $3)
             RETURNING id, name, description, 0::bigint AS members, created_at",
        )
        .bind(Uuid::new_v4())
        .bind(name)
        .bind(description)
        .fetch_one(self.connection())
        .await
        .map_err(|error| StoreError::from(error).exists_if_taken(|| format!("the group {name}")))
    }

    pub async fn group_list(&mut self) -> Result<Vec<Group>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT g.id, g.name, g.description, g.created_at,
                    (SELECT count(*) FROM nimbus_core.group_members m WHERE m.group_id = g.id) AS members
             FROM nimbus_core.groups g ORDER BY g.name LIMIT 500",
        )
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn group_update(
        &mut self,
        id: Uuid,
        name: Option<&str>,
        description: Option<&str>,
    ) -> Result<(Group, Group), StoreError> {
        let find = |groups: Vec<Group>| groups.into_iter().find(|group| group.id == id);
        let before = find(self.group_list().await?).ok_or(StoreError::NotFound("group"))?;
        sqlx::query(
            "UPDATE nimbus_core.groups SET name = COALESCE($2, name), description = COALESCE($3, description)
             WHERE id = $1",
        )
        .bind(id)
        .bind(name)
        .bind(description)
        .execute(self.connection())
        .await
        .map_err(|error| {
            StoreError::from(error)
                .exists_if_taken(|| format!("the group {}", name.unwrap_or_default()))
        })?;
        let after = find(self.group_list().await?).ok_or(StoreError::NotFound("group"))?;
        Ok((before, after))
    }

    pub async fn group_members(&mut self, id: Uuid) -> Result<Vec<UserId>, StoreError> {
        let found: Option<Uuid> =
            sqlx::query_scalar("SELECT id FROM nimbus_core.groups WHERE id = $1")
                .bind(id)
                .fetch_optional(self.connection())
                .await?;
        found.ok_or(StoreError::NotFound("group"))?;
        let members: Vec<Uuid> = sqlx::query_scalar(
            "SELECT user_id FROM nimbus_core.group_members WHERE group_id = $1 ORDER BY user_id",
        )
        .bind(id)
        .fetch_all(self.connection())
        .await?;
        Ok(members.into_iter().map(UserId::from).collect())
    }

    pub async fn group_delete(&mut self, id: Uuid) -> Result<(), StoreError> {
        let deleted = sqlx::query("DELETE FROM nimbus_core.groups WHERE id = $1")
            .bind(id)
            .execute(self.connection())
            .await?;
        if deleted.rows_affected() == 0 {
            Err(StoreError::NotFound("group"))
        } else {
            Ok(())
        }
    }

    /// Whether anything changed.
    pub async fn group_add(&mut self, group: Uuid, user: UserId) -> Result<bool, StoreError> {
        self.user_get(user).await?;
        let found: Option<Uuid> =
            sqlx::query_scalar("SELECT id FROM nimbus_core.groups WHERE id = $1")
                .bind(group)
                .fetch_optional(self.connection())
                .await?;
        found.ok_or(StoreError::NotFound("group"))?;
        let added = sqlx::query(
            "INSERT INTO nimbus_core.group_members (group_id, user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        )
        .bind(group)
        .bind(Uuid::from(user))
        .execute(self.connection())
        .await?;
        Ok(added.rows_affected() == 1)
    }

    /// Whether anything changed.
    pub async fn group_remove(&mut self, group: Uuid, user: UserId) -> Result<bool, StoreError> {
        let removed = sqlx::query(
            "DELETE FROM nimbus_core.group_members WHERE group_id = $1 AND user_id = $2",
        )
        .bind(group)
        .bind(Uuid::from(user))
        .execute(self.connection())
        .await?;
        Ok(removed.rows_affected() == 1)
    }
}
