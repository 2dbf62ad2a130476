//! What can be watched: a run, a deployment, an audit trail, and what happens in a tenant or is asked of a person.

use async_graphql::{Context, ID, Subscription};
use futures::Stream;
use nimbus_control_app::{
    AuditFeed, DeploymentFeed, EventTopic, Failure, LiveRoom, RequestContext, RunChoice, RunFeed,
    operation,
};
use nimbus_core::{TenantId, UserId};

use crate::act::{FieldResult, act_as, asked};
use crate::event_feed::{EventWish, WatchedEvents, listen, named_room, told};
use crate::nodes::{
    ApprovalNode, AuditNode, DriftNode, NotificationNode, ProgressNode, ResourceChangeNode,
    RunNode, StateChangeNode, TenantEventNode,
};
use crate::scalars::thing;
use crate::watching::{Feed, watch};

pub(crate) struct LiveQueries;

struct WatchedRun {
    feed: RunFeed,
    tenant: TenantId,
}

impl Feed for WatchedRun {
    type Item = ProgressNode;

    async fn read(&mut self) -> Result<(Vec<ProgressNode>, bool), Failure> {
        let part = self.feed.read().await?;
        let frames = part.frames.into_iter();
        let tenant = self.tenant;
        let told = frames.map(|frame| ProgressNode::new(tenant, frame));
        Ok((told.collect(), part.complete))
    }

    async fn changed(&mut self) {
        self.feed.changed().await;
    }

    async fn ensure_allowed(
        &mut self,
        at: &RequestContext,
        credential: &str,
    ) -> Result<(), Failure> {
        self.feed.ensure_allowed(at, credential).await
    }

    fn heartbeat(&self) -> Option<ProgressNode> {
        Some(ProgressNode::new(self.tenant, self.feed.heartbeat()))
    }
}

struct WatchedDeployment {
    feed: DeploymentFeed,
    tenant: TenantId,
}

impl Feed for WatchedDeployment {
    type Item = RunNode;

    async fn read(&mut self) -> Result<(Vec<RunNode>, bool), Failure> {
        let run = self.feed.read().await?;
        let told = run.map(|run| RunNode::new(self.tenant, run));
        Ok((told.into_iter().collect(), false))
    }

    async fn changed(&mut self) {
        self.feed.changed().await;
    }

    async fn ensure_allowed(
        &mut self,
        at: &RequestContext,
        credential: &str,
    ) -> Result<(), Failure> {
        self.feed.ensure_allowed(at, credential).await
    }
}

struct WatchedTrail {
    feed: AuditFeed,
    tenant: TenantId,
}

impl Feed for WatchedTrail {
    type Item = AuditNode;

    async fn read(&mut self) -> Result<(Vec<AuditNode>, bool), Failure> {
        let entries = self.feed.read().await?.into_iter();
        let tenant = self.tenant;
        let told = entries.map(|entry| AuditNode::new(tenant, entry));
        Ok((told.collect(), false))
    }

    async fn changed(&mut self) {
        self.feed.changed().await;
    }

    async fn ensure_allowed(
        &mut self,
        at: &RequestContext,
        credential: &str,
    ) -> Result<(), Failure> {
        self.feed.ensure_allowed(at, credential).await
    }
}

#[Subscription(name = "Subscription")]
impl LiveQueries {
    /// How a run goes on: after one of its events, or with where it stands first.
    async fn run_progress(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        run_id: ID,
        since: Option<i64>,
    ) -> FieldResult<impl Stream<Item = FieldResult<ProgressNode>> + use<>> {
        let asked = asked(ctx)?;
        let operation = operation::RUN_PROGRESS;
        let feed = act_as(ctx, Some(operation), async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let choice = RunChoice::Id(thing(&run_id)?);
            let (app, call) = (asked.app(), asked.call()?);
            let feed = app
                .run_watch(call, operation, tenant, choice, since)
                .await?;
            Ok(WatchedRun { feed, tenant })
        });
        watch(ctx, feed.await?)
    }

    /// The newest run of a deployment, each time that it is another one or stands elsewhere.
    async fn deployment_status(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        deployment_id: String,
    ) -> FieldResult<impl Stream<Item = FieldResult<RunNode>> + use<>> {
        let asked = asked(ctx)?;
        let operation = operation::DEPLOYMENT_PROGRESS;
        let feed = act_as(ctx, Some(operation), async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let feed = app.deployment_watch(call, tenant, &deployment_id).await?;
            Ok(WatchedDeployment { feed, tenant })
        });
        watch(ctx, feed.await?)
    }

    /// What is added to a tenant's audit trail: after one of its entries, or from now on.
    async fn audit_event(
        &self,
        ctx: &Context<'_>,
        tenant_id: ID,
        after: Option<u64>,
    ) -> FieldResult<impl Stream<Item = FieldResult<AuditNode>> + use<>> {
        let asked = asked(ctx)?;
        let operation = operation::LIST_AUDIT;
        let feed = act_as(ctx, Some(operation), async {
            let tenant = asked.tenant(Some(&tenant_id)).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let feed = app.audit_watch(call, tenant, after).await?;
            Ok(WatchedTrail { feed, tenant })
        });
        watch(ctx, feed.await?)
    }

    /// Changes of resources of a tenant, or of one of them: after an event, or from now on.
    async fn resource_changed(
        &self,
        ctx: &Context<'_>,
        tenant_id: ID,
        resource_id: Option<String>,
        since: Option<String>,
    ) -> FieldResult<impl Stream<Item = FieldResult<ResourceChangeNode>> + use<>> {
        let asked = asked(ctx)?;
        let feed = act_as(ctx, Some(operation::GRAPHQL_LIVE), async {
            let tenant = asked.tenant(Some(&tenant_id)).await?;
            let room = named_room(tenant, "resource", resource_id)?;
            let wish = EventWish::Topic(EventTopic::Resource);
            listen(asked, tenant, room, wish, since).await
        });
        told::<ResourceChangeNode>(ctx, feed.await?)
    }

    /// How runs and units go from state to state, of a tenant, a deployment (`D1`) or an environment of it (`D1/dev`).
    async fn stack_state_changed(
        &self,
        ctx: &Context<'_>,
        tenant_id: ID,
        stack_instance: Option<String>,
        since: Option<String>,
    ) -> FieldResult<impl Stream<Item = FieldResult<StateChangeNode>> + use<>> {
        let asked = asked(ctx)?;
        let feed = act_as(ctx, Some(operation::GRAPHQL_LIVE), async {
            let tenant = asked.tenant(Some(&tenant_id)).await?;
            let room = named_room(tenant, "stack_instance", stack_instance)?;
            let wish = EventWish::Topic(EventTopic::State);
            listen(asked, tenant, room, wish, since).await
        });
        told::<StateChangeNode>(ctx, feed.await?)
    }

    /// Units of a tenant that are found not to be as their last run left them: after an event, or from now on.
    async fn drift_detected(
        &self,
        ctx: &Context<'_>,
        tenant_id: ID,
        since: Option<String>,
    ) -> FieldResult<impl Stream<Item = FieldResult<DriftNode>> + use<>> {
        let asked = asked(ctx)?;
        let feed = act_as(ctx, Some(operation::GRAPHQL_LIVE), async {
            let tenant = asked.tenant(Some(&tenant_id)).await?;
            let wish = EventWish::types(["drift.detected"]);
            listen(asked, tenant, LiveRoom::Tenant(tenant), wish, since).await
        });
        told::<DriftNode>(ctx, feed.await?)
    }

    /// Everything that happens in a tenant, or what is of these types: after an event, or from now on.
    async fn event_received(
        &self,
        ctx: &Context<'_>,
        tenant_id: ID,
        types: Option<Vec<String>>,
        since: Option<String>,
    ) -> FieldResult<impl Stream<Item = FieldResult<TenantEventNode>> + use<>> {
        let asked = asked(ctx)?;
        let feed = act_as(ctx, Some(operation::GRAPHQL_LIVE), async {
            let tenant = asked.tenant(Some(&tenant_id)).await?;
            let wish = EventWish::known(types)?;
            listen(asked, tenant, LiveRoom::Tenant(tenant), wish, since).await
        });
        told::<TenantEventNode>(ctx, feed.await?)
    }

    /// What awaits a decision of yours: after an event, or from now on.
    async fn approval_required(
        &self,
        ctx: &Context<'_>,
        user_id: ID,
        since: Option<String>,
    ) -> FieldResult<impl Stream<Item = FieldResult<ApprovalNode>> + use<>> {
        let feed = own_events(ctx, &user_id, "approval.required", since);
        told::<ApprovalNode>(ctx, feed.await?)
    }

    /// What you are notified of: after an event, or from now on.
    async fn notification_received(
        &self,
        ctx: &Context<'_>,
        user_id: ID,
        since: Option<String>,
    ) -> FieldResult<impl Stream<Item = FieldResult<NotificationNode>> + use<>> {
        let feed = own_events(ctx, &user_id, "notification.new", since);
        told::<NotificationNode>(ctx, feed.await?)
    }
}

/// Events about the caller, who cannot watch those of anybody else.
async fn own_events(
    ctx: &Context<'_>,
    user_id: &ID,
    kind: &'static str,
    since: Option<String>,
) -> FieldResult<WatchedEvents> {
    let asked = asked(ctx)?;
    let feed = act_as(ctx, Some(operation::GRAPHQL_LIVE), async {
        let room = LiveRoom::User(thing::<UserId>(user_id)?);
        let home = asked.call()?.who.home;
        listen(asked, home, room, EventWish::types([kind]), since).await
    });
    feed.await
}
