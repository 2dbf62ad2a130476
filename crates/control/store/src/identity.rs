//! Users and service accounts, and the groups they are in.

use nimbus_core::UserId;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, StoreError, TenantTx, Timestamp};

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

#[derive(FromRow)]
struct GroupMember {
    group_id: Uuid,
    #[sqlx(flatten)]
    user: User,
}

const USER: &str =
    "id, kind, email, display_name, mfa_enabled, disabled_at, last_login, created_at";

fn user_query(statement: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(statement.replace("{}", USER))
}

fn groups(rest: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!(
        "SELECT g.id, g.name, g.description, g.created_at,
                (SELECT count(*) FROM nimbus_core.group_members m
                 WHERE m.tenant_id = g.tenant_id AND m.group_id = g.id) AS members
         FROM nimbus_core.groups g {rest}"
    ))
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

    /// Those of them that there are, in no order.
    pub async fn users_named(&mut self, ids: &[Uuid]) -> Result<Vec<User>, StoreError> {
        Ok(sqlx::query_as(user_query(
            "SELECT {} FROM nimbus_core.users WHERE id = ANY($1) AND deleted_at IS NULL",
        ))
        .bind(ids)
        .fetch_all(self.connection())
        .await?)
    }

    /// In the order of their addresses, after the given one.
    pub async fn user_list(&mut self, page: &ListPage<String>) -> Result<Vec<User>, StoreError> {
        Ok(sqlx::query_as(user_query(
            "SELECT {} FROM nimbus_core.users
             WHERE deleted_at IS NULL AND ($1::text IS NULL OR email > $1) ORDER BY email LIMIT $2",
        ))
        .bind(&page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// The one with this address, or of this name for a service account.
    pub async fn user_by_email(&mut self, email: &str) -> Result<Option<User>, StoreError> {
        Ok(sqlx::query_as(user_query(
            "SELECT {} FROM nimbus_core.users WHERE email = $1 AND deleted_at IS NULL",
        ))
        .bind(email)
        .fetch_optional(self.connection())
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
        // Nobody else may ever read them.
        sqlx::query("DELETE FROM notifications WHERE person = $1")
            .bind(Uuid::from(id))
            .execute(self.connection())
            .await?;
        self.notification_settings_forget(id).await
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

    /// `looks_like` is the same for names that look the same.
    pub async fn group_create(
        &mut self,
        name: &str,
        looks_like: &str,
        description: &str,
    ) -> Result<Group, StoreError> {
        sqlx::query_as(
            "INSERT INTO nimbus_core.groups (id, name, looks_like, description) VALUES ($1, $2, $3, $4)
             RETURNING id, name, description, 0::bigint AS members, created_at",
        )
        .bind(Uuid::new_v4())
        .bind(name)
        .bind(looks_like)
        .bind(description)
        .fetch_one(self.connection())
        .await
        .map_err(|error| {
            StoreError::from(error).exists_if_taken(|| format!("a group that looks like {name}"))
        })
    }

    /// By name, after the given one.
    pub async fn group_list(&mut self, page: &ListPage<String>) -> Result<Vec<Group>, StoreError> {
        Ok(sqlx::query_as(groups(
            "WHERE $1::text IS NULL OR lower(g.name) > lower($1) ORDER BY lower(g.name) LIMIT $2",
        ))
        .bind(&page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn group_by_name(&mut self, name: &str) -> Result<Option<Group>, StoreError> {
        Ok(sqlx::query_as(groups("WHERE lower(g.name) = lower($1)"))
            .bind(name)
            .fetch_optional(self.connection())
            .await?)
    }

    async fn group_get(&mut self, id: Uuid) -> Result<Group, StoreError> {
        let group = sqlx::query_as(groups("WHERE g.id = $1"))
            .bind(id)
            .fetch_optional(self.connection())
            .await?;
        group.ok_or(StoreError::NotFound("group"))
    }

    /// Those of them that there are, in no order.
    pub async fn groups_named(&mut self, ids: &[Uuid]) -> Result<Vec<Group>, StoreError> {
        Ok(sqlx::query_as(groups("WHERE g.id = ANY($1)"))
            .bind(ids)
            .fetch_all(self.connection())
            .await?)
    }

    /// The first members of each of these groups, so many of each, with the group that they are in.
    pub async fn members_of_each(
        &mut self,
        groups: &[Uuid],
        limit: u32,
    ) -> Result<Vec<(Uuid, User)>, StoreError> {
        let found: Vec<GroupMember> = sqlx::query_as(user_query(
            "SELECT group_id, {} FROM (
                 SELECT m.group_id, u.*,
                        row_number() OVER (PARTITION BY m.group_id ORDER BY u.email) AS place
                 FROM nimbus_core.group_members m
                 JOIN nimbus_core.users u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
                 WHERE m.group_id = ANY($1) AND u.deleted_at IS NULL) placed
             WHERE place <= $2 ORDER BY group_id, email",
        ))
        .bind(groups)
        .bind(i64::from(limit))
        .fetch_all(self.connection())
        .await?;
        Ok(found
            .into_iter()
            .map(|row| (row.group_id, row.user))
            .collect())
    }

    /// The groups that somebody is in.
    pub async fn groups_of(&mut self, user: UserId) -> Result<Vec<Uuid>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT group_id FROM nimbus_core.group_members WHERE user_id = $1 ORDER BY group_id",
        )
        .bind(Uuid::from(user))
        .fetch_all(self.connection())
        .await?)
    }

    /// A group that nobody else gives roles or members until the transaction ends.
    pub async fn group_lock(&mut self, id: Uuid) -> Result<(), StoreError> {
        let found: Option<Uuid> =
            sqlx::query_scalar("SELECT id FROM nimbus_core.groups WHERE id = $1 FOR UPDATE")
                .bind(id)
                .fetch_optional(self.connection())
                .await?;
        found.map(drop).ok_or(StoreError::NotFound("group"))
    }

    /// The group before and after. A new name comes with what it looks like.
    pub async fn group_update(
        &mut self,
        id: Uuid,
        name: Option<(&str, &str)>,
        description: Option<&str>,
    ) -> Result<(Group, Group), StoreError> {
        let before = self.group_get(id).await?;
        let (name, looks_like) = name.unzip();
        sqlx::query(
            "UPDATE nimbus_core.groups SET name = COALESCE($2, name), looks_like = COALESCE($3, looks_like),
                    description = COALESCE($4, description)
             WHERE id = $1",
        )
        .bind(id)
        .bind(name)
        .bind(looks_like)
        .bind(description)
        .execute(self.connection())
        .await
        .map_err(|error| {
            StoreError::from(error).exists_if_taken(|| {
                format!("a group that looks like {}", name.unwrap_or_default())
            })
        })?;
        let after = self.group_get(id).await?;
        Ok((before, after))
    }

    /// In the order of their addresses, after the given one.
    pub async fn group_members(
        &mut self,
        id: Uuid,
        page: &ListPage<String>,
    ) -> Result<Vec<User>, StoreError> {
        self.group_get(id).await?;
        Ok(sqlx::query_as(user_query(
            "SELECT {} FROM nimbus_core.users u
             WHERE deleted_at IS NULL AND ($2::text IS NULL OR email > $2)
               AND EXISTS (SELECT FROM nimbus_core.group_members m
                           WHERE m.tenant_id = u.tenant_id AND m.group_id = $1 AND m.user_id = u.id)
             ORDER BY email LIMIT $3",
        ))
        .bind(id)
        .bind(&page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
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
