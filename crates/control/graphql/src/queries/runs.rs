//! Runs: lists, one in detail, its events and its log.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{Failure, LogQuestion, RowCursor, RunFilter, StoredRun};
use uuid::Uuid;

use crate::act::{FieldResult, act, asked};
use crate::nodes::{
    RunDetailNode, RunEventNode, RunEventsNode, RunLogNode, RunNode, UnitResourcesNode,
};
use crate::page::{Listed, PageArgs, connection, items_cost, list_cost, page, size};
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct RunQueries;

/// Which runs.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "RunFilter")]
struct RunListChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    deployment: Option<String>,
    environment: Option<String>,
    action: Option<String>,
    status: Option<String>,
}

/// Which part of a log.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "RunLogFilter")]
struct LogChoices {
    unit: Option<String>,
    /// `debug`, `info`, `warning` or `error`: that one and worse.
    level: Option<String>,
    /// The last lines before this event; the last of all without `before` and `after`.
    before: Option<i64>,
    /// The first lines after this event.
    after: Option<i64>,
}

#[Object]
impl RunQueries {
    /// A run.
    async fn run(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<Option<RunNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let run: Uuid = thing(&id)?;
            let found = asked.app().run_get(asked.call()?, tenant, run).await?;
            Ok(Some(RunNode::queued(tenant, found)))
        })
        .await
    }

    /// Runs, newest first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn runs(
        &self,
        ctx: &Context<'_>,
        filter: Option<RunListChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<RunNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let given = filter.unwrap_or_default();
            let tenant = asked.tenant(given.tenant_id.as_ref()).await?;
            let filter = RunFilter {
                deployment: given.deployment,
                environment: given.environment,
                action: given.action,
                status: given.status,
                environments: None,
            };
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.run_list(call, tenant, filter, page).await?;
            let place = |row: &StoredRun| {
                let (at, id) = (row.queued_at, row.id);
                RowCursor { at, id }.to_string()
            };
            Ok(connection(rows, limit, place, |row| {
                RunNode::stored(tenant, row)
            }))
        })
        .await
    }

    /// Where a run stands, unit by unit.
    #[graphql(complexity = "100 + child_complexity")]
    async fn run_detail(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<Option<RunDetailNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let run: Uuid = thing(&id)?;
            let found = asked.app().run_detail(asked.call()?, tenant, run).await?;
            Ok(Some(RunDetailNode::new(tenant, found)))
        })
        .await
    }

    /// The resources of one unit of a run, in the order in which they were first seen.
    #[graphql(complexity = "100 + items_cost(first, child_complexity)")]
    async fn run_unit(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        unit: String,
        #[graphql(default)] after: u64,
        first: Option<u32>,
    ) -> FieldResult<Option<UnitResourcesNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let run: Uuid = thing(&id)?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app
                .run_unit(call, tenant, run, &unit, after, size(first)?)
                .await?;
            Ok(Some(found.into()))
        })
        .await
    }

    /// Events of a run after one of them, in order.
    #[graphql(complexity = "items_cost(first, child_complexity)")]
    async fn run_events(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        #[graphql(default)] after: i64,
        first: Option<u32>,
    ) -> FieldResult<Option<RunEventsNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            if after < 0 {
                return Err(Failure::field("after", "give 0 or the number of an event"));
            }
            let run: Uuid = thing(&id)?;
            let (app, call) = (asked.app(), asked.call()?);
            let (run, found) = app
                .run_events(call, tenant, run, after, size(first)?)
                .await?;
            let next = found.last().map_or(after, |last| last.seq);
            Ok(Some(RunEventsNode {
                items: found.into_iter().map(RunEventNode::from).collect(),
                next,
                complete: run.status == "ended" && next >= run.last_seq,
            }))
        })
        .await
    }

    /// Lines of a run's log, oldest first.
    #[graphql(complexity = "items_cost(first, child_complexity)")]
    async fn run_log(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        filter: Option<LogChoices>,
        first: Option<u32>,
    ) -> FieldResult<Option<RunLogNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let filter = filter.unwrap_or_default();
            let question = LogQuestion {
                unit: filter.unit,
                level: filter.level,
                before: filter.before,
                after: filter.after,
                limit: size(first)?,
            };
            let run: Uuid = thing(&id)?;
            let found = asked
                .app()
                .run_log(asked.call()?, tenant, run, question)
                .await?;
            Ok(Some(found.into()))
        })
        .await
    }
}
