//! Signing in and out, and one's own sessions and password.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::LoginInput;

use crate::act::{FieldResult, act, asked};
use crate::nodes::AuthNode;
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct SignInChanges;

/// Who signs in.
#[derive(InputObject)]
#[graphql(name = "LoginInput")]
struct SignInArgs {
    /// Slugs joined by `/`; empty for the operator's own tenant.
    #[graphql(default)]
    tenant: String,
    email: String,
    #[graphql(secret)]
    password: String,
}

#[Object]
impl SignInChanges {
    /// Sign in. Nobody has to be signed in for it.
    #[graphql(complexity = "200 + child_complexity")]
    async fn login(&self, ctx: &Context<'_>, input: SignInArgs) -> FieldResult<AuthNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            (asked.caller.attempt)()?;
            let input = LoginInput {
                tenant: input.tenant,
                email: input.email,
                password: input.password,
            };
            let signed_in = asked.app().login(&asked.caller.context, input).await?;
            Ok(signed_in.into())
        })
        .await
    }

    /// Go on with a session by its refresh token. Nobody has to be signed in for it.
    #[graphql(complexity = "20 + child_complexity")]
    async fn refresh_token(
        &self,
        ctx: &Context<'_>,
        #[graphql(secret)] refresh_token: String,
    ) -> FieldResult<AuthNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let context = &asked.caller.context;
            Ok(asked.app().refresh(context, &refresh_token).await?.into())
        })
        .await
    }

    /// Sign out.
    async fn logout(&self, ctx: &Context<'_>) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            asked.app().logout(asked.call()?).await?;
            Ok(true)
        })
        .await
    }

    /// Change your own password; every other session ends.
    #[graphql(complexity = "200")]
    async fn change_password(
        &self,
        ctx: &Context<'_>,
        #[graphql(secret)] current_password: String,
        #[graphql(secret)] new_password: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            (asked.caller.attempt)()?;
            let (app, call) = (asked.app(), asked.call()?);
            app.change_password(call, current_password, new_password)
                .await?;
            Ok(true)
        })
        .await
    }

    /// End one of your own sessions.
    async fn revoke_my_session(&self, ctx: &Context<'_>, id: ID) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let (app, call) = (asked.app(), asked.call()?);
            app.end_own_session(call, thing(&id)?).await?;
            Ok(true)
        })
        .await
    }

    /// End your own other sessions; how many there were.
    async fn revoke_my_other_sessions(&self, ctx: &Context<'_>) -> FieldResult<u64> {
        let asked = asked(ctx)?;
        act(ctx, async {
            asked.app().end_other_sessions(asked.call()?).await
        })
        .await
    }
}
