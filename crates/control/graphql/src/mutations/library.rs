//! Changes of programs and templates.

use std::collections::BTreeMap;

use async_graphql::{Context, ID, InputObject, Json, Object};
use nimbus_control_app::{RunInput, operation};

use crate::act::{FieldResult, act, act_once, asked, repeat_key};
use crate::nodes::{RunNode, StackNode, TemplateNode};

#[derive(Default)]
pub(crate) struct LibraryChanges;

/// A program.
#[derive(InputObject)]
#[graphql(name = "StackInput")]
struct StackArgs {
    name: String,
    /// Its template, in YAML.
    template: String,
    /// Text files by path below the stack's folder, as an object; without any those of a program stay as they are.
    files: Option<Json<BTreeMap<String, String>>>,
}

/// One stack of a deployment to be deployed.
#[derive(InputObject)]
#[graphql(name = "DeployStackInput")]
struct StackRunArgs {
    deployment: String,
    environment: String,
    #[graphql(default)]
    rehearsal: bool,
    #[graphql(default)]
    force: bool,
}

#[Object]
impl LibraryChanges {
    /// Store a program.
    #[graphql(complexity = "20 + child_complexity")]
    async fn register_stack(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: StackArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<StackNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let files = input.files.map(|Json(files)| files).unwrap_or_default();
            let (app, call) = (asked.app(), asked.call()?);
            let operation = operation::REGISTER_STACK;
            let (name, template) = (&input.name, input.template);
            let stored = app.stack_put(call, operation, tenant, name, template, files);
            Ok(stored.await?.into())
        })
        .await
    }

    /// Replace a program.
    async fn update_stack(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: StackArgs,
    ) -> FieldResult<StackNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let files = input.files.map(|Json(files)| files).unwrap_or_default();
            let (app, call) = (asked.app(), asked.call()?);
            let operation = operation::UPDATE_STACK;
            let (name, template) = (&input.name, input.template);
            let stored = app.stack_put(call, operation, tenant, name, template, files);
            Ok(stored.await?.into())
        })
        .await
    }

    /// Delete a program.
    async fn unregister_stack(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            asked
                .app()
                .stack_remove(asked.call()?, tenant, &name)
                .await?;
            Ok(true)
        })
        .await
    }

    /// Queue a run that deploys one stack.
    #[graphql(complexity = "20 + child_complexity")]
    async fn deploy_stack(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        input: StackRunArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RunNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let key = repeat_key(ctx, idempotency_key)?;
            let run = RunInput {
                environment: input.environment,
                rehearsal: input.rehearsal,
                force: input.force,
                components: Some(vec![name]),
                ..RunInput::default()
            };
            let (app, call) = (asked.app(), asked.call()?);
            let operation = operation::DEPLOY_STACK;
            let deployment = &input.deployment;
            let queued = app.run_start(call, operation, tenant, deployment, run, key);
            Ok(RunNode::queued(tenant, queued.await?))
        })
        .await
    }

    /// Store a template, in YAML; its name is in it.
    #[graphql(complexity = "20 + child_complexity")]
    async fn create_template(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        content: String,
        idempotency_key: Option<String>,
    ) -> FieldResult<TemplateNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            Ok(app.template_create(call, tenant, content).await?.into())
        })
        .await
    }

    /// Delete a template.
    async fn delete_template(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.template_delete(call, tenant, &name).await?;
            Ok(true)
        })
        .await
    }
}
