//! Roles, who has them, and why somebody may.

use std::collections::BTreeMap;

use async_graphql::{Context, ID, InputObject, Json, Object};
use nimbus_control_app::{Failure, PermissionQuestion, RoleAssignment, RoleView, RowCursor};

use crate::act::{FieldResult, act, asked};
use crate::nodes::{ExplanationNode, RoleAssignmentNode, RoleNode};
use crate::page::{Listed, PageArgs, connection, list_cost, listed, page};
use crate::scalars::{GraphTime, named, read_time};

#[derive(Default)]
pub(crate) struct RoleQueries;

/// What is asked about somebody.
#[derive(InputObject)]
#[graphql(name = "PermissionQuestion")]
struct QuestionArgs {
    user_id: ID,
    permission: String,
    environment: Option<String>,
    /// Tags of the thing that is asked about, as an object of texts.
    tags: Option<Json<BTreeMap<String, String>>>,
    /// From this address instead of yours.
    ip: Option<String>,
    /// At this time instead of now.
    at: Option<GraphTime>,
    /// In this place instead of yours.
    location: Option<String>,
}

#[Object]
impl RoleQueries {
    /// Roles: those that are built in, with the beginning of the list, then a tenant's own by name.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn roles(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<RoleNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
            let rows = asked.app().role_list(asked.call()?, tenant, page).await?;
            let full = rows.iter().filter(|row| !row.built_in).count() >= limit;
            let place = |row: &RoleView| row.role.name.clone();
            Ok(listed(rows, full, place, RoleNode::from))
        })
        .await
    }

    /// Who has which role, newest first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn role_assignments(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<RoleAssignmentNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.assignment_list(call, tenant, page).await?;
            let place = |row: &RoleAssignment| {
                let (at, id) = (row.created_at, row.id);
                RowCursor { at, id }.to_string()
            };
            let node = |row| RoleAssignmentNode::new(tenant, row);
            Ok(connection(rows, limit, place, node))
        })
        .await
    }

    /// Whether somebody may do something, and which rules say so.
    async fn explain_permission(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        question: QuestionArgs,
    ) -> FieldResult<ExplanationNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let ip = question.ip.map(|text| text.parse()).transpose();
            let question = PermissionQuestion {
                user: named("userId", &question.user_id)?,
                key: question.permission,
                environment: question.environment,
                tags: question.tags.map(|Json(tags)| tags).unwrap_or_default(),
                ip: ip.map_err(|_| Failure::field("ip", "this is not an address"))?,
                at: read_time("at", question.at)?,
                location: question.location,
            };
            let decision = asked.app().explain(asked.call()?, tenant, question).await?;
            Ok(decision.into())
        })
        .await
    }
}
