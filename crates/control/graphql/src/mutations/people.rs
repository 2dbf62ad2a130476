//! Changes of people, groups, keys and sessions.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{GroupPatch, KeyInput, NewGroup, UserInput, UserPatch};

use crate::act::{FieldResult, act, act_once, asked};
use crate::nodes::{ApiKeyNode, GroupNode, UserNode};
use crate::scalars::{named, thing};

#[derive(Default)]
pub(crate) struct PeopleChanges;

/// A user or a service account to be made.
#[derive(InputObject)]
#[graphql(name = "CreateUserInput")]
struct NewUserArgs {
    /// For a service account its name.
    email: String,
    #[graphql(default)]
    display_name: String,
    #[graphql(secret)]
    password: Option<String>,
    #[graphql(default)]
    service_account: bool,
}

/// What changes about a user.
#[derive(InputObject)]
#[graphql(name = "UpdateUserInput")]
struct UserChangeArgs {
    display_name: Option<String>,
    disabled: Option<bool>,
    #[graphql(secret)]
    password: Option<String>,
}

/// A group to be made.
#[derive(InputObject)]
#[graphql(name = "CreateGroupInput")]
struct NewGroupArgs {
    name: String,
    #[graphql(default)]
    description: String,
}

/// What changes about a group.
#[derive(InputObject)]
#[graphql(name = "UpdateGroupInput")]
struct GroupChangeArgs {
    name: Option<String>,
    description: Option<String>,
}

/// A key to be made.
#[derive(InputObject)]
#[graphql(name = "CreateApiKeyInput")]
struct NewKeyArgs {
    service_account_id: ID,
    name: String,
    scopes: Vec<String>,
    /// 1 to 3650; without it never.
    expires_in_days: Option<u32>,
}

#[Object]
impl PeopleChanges {
    /// Make a user or a service account.
    #[graphql(complexity = "100 + child_complexity")]
    async fn create_user(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: NewUserArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<UserNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let new = UserInput {
                service_account: input.service_account,
                email: input.email,
                display_name: input.display_name,
                password: input.password,
            };
            let made = asked.app().user_create(asked.call()?, tenant, new).await?;
            Ok(made.into())
        })
        .await
    }

    /// Rename, disable, enable or give a password.
    #[graphql(complexity = "100 + child_complexity")]
    async fn update_user(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        input: UserChangeArgs,
    ) -> FieldResult<UserNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let patch = UserPatch {
                display_name: input.display_name,
                disabled: input.disabled,
                password: input.password,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let changed = app.user_update(call, tenant, thing(&id)?, patch).await?;
            Ok(changed.into())
        })
        .await
    }

    /// Delete a user or a service account.
    async fn delete_user(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.user_delete(call, tenant, thing(&id)?).await?;
            Ok(true)
        })
        .await
    }

    /// End one session of somebody.
    async fn revoke_user_session(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        user_id: ID,
        id: ID,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let (user, session) = (thing(&user_id)?, thing(&id)?);
            app.user_revoke_session(call, tenant, user, session).await?;
            Ok(true)
        })
        .await
    }

    /// End all sessions of somebody; how many there were.
    async fn revoke_user_sessions(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        user_id: ID,
    ) -> FieldResult<u64> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.user_revoke_sessions(call, tenant, thing(&user_id)?)
                .await
        })
        .await
    }

    /// Make a group.
    #[graphql(complexity = "20 + child_complexity")]
    async fn create_group(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: NewGroupArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<GroupNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let new = NewGroup {
                name: input.name,
                description: input.description,
            };
            let made = asked.app().group_create(asked.call()?, tenant, new).await?;
            Ok(GroupNode::new(tenant, made))
        })
        .await
    }

    /// Rename or describe a group.
    async fn update_group(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        input: GroupChangeArgs,
    ) -> FieldResult<GroupNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let patch = GroupPatch {
                name: input.name,
                description: input.description,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let changed = app.group_update(call, tenant, thing(&id)?, patch).await?;
            Ok(GroupNode::new(tenant, changed))
        })
        .await
    }

    /// Delete a group.
    async fn delete_group(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.group_delete(call, tenant, thing(&id)?).await?;
            Ok(true)
        })
        .await
    }

    /// Put somebody into a group.
    async fn add_group_member(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        user_id: ID,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let (group, user) = (thing(&id)?, thing(&user_id)?);
            app.group_add(call, tenant, group, user).await?;
            Ok(true)
        })
        .await
    }

    /// Take somebody out of a group.
    async fn remove_group_member(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        user_id: ID,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let (group, user) = (thing(&id)?, thing(&user_id)?);
            app.group_remove(call, tenant, group, user).await?;
            Ok(true)
        })
        .await
    }

    /// Make an API key; its secret is shown once.
    #[graphql(complexity = "20 + child_complexity")]
    async fn create_api_key(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: NewKeyArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<ApiKeyNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, true, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let new = KeyInput {
                service_account: named("serviceAccountId", &input.service_account_id)?,
                name: input.name,
                scopes: input.scopes,
                expires_in_days: input.expires_in_days,
            };
            let made = asked.app().key_create(asked.call()?, tenant, new).await?;
            Ok(ApiKeyNode::created(tenant, made))
        })
        .await
    }

    /// Revoke an API key.
    async fn revoke_api_key(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.key_revoke(call, tenant, thing(&id)?).await?;
            Ok(true)
        })
        .await
    }
}
