//! Streams that are not of one run: what happens in a deployment, and what is added to an audit trail.
//!
//! A feed is read when its reader is ready and keeps nothing for anybody. What is told live says when to look; whoever
//! watches looks by themselves now and then, for news may be lost. Only its beginning is recorded: a trail that recorded
//! being watched would never come to rest.

use std::time::Duration;

use nimbus_control_audit::AuditEntry;
use nimbus_control_auth::access::Resource;
use nimbus_control_auth::operation::{self, Need, Operation};
use nimbus_control_events::NoticeTopic;
use nimbus_control_store::{AuditFilter, StoreError};
use nimbus_control_wire::Run;
use nimbus_core::{ErrorCode, TenantId};

use crate::app::App;
use crate::call::{Call, RequestContext};
use crate::failure::{Failure, Result};
use crate::run_view::describe_run;
use crate::runs::QueuedRun;
use crate::topic_watchers::TopicWatch;

/// News that come within this time are looked at together: a tenant may have many.
const WINDOW: Duration = Duration::from_millis(200);
/// Entries of a trail that are read at once.
const ENTRIES_AT_ONCE: u32 = 200;

/// What somebody may watch, to be asked again while they do.
#[derive(Clone, Debug)]
struct WatchedPlace {
    app: App,
    tenant: TenantId,
    operation: Operation,
}

impl WatchedPlace {
    async fn ensure_allowed(
        &self,
        context: &RequestContext,
        credential: &str,
        environment: Option<&str>,
    ) -> Result<()> {
        let who = self.app.authenticate(context, credential).await?;
        let call = Call {
            who,
            context: context.clone(),
        };
        let Need::Permission(key) = self.operation.need else {
            return Err(Failure::new(ErrorCode::INTERNAL, "nothing is needed"));
        };
        let kind = self.operation.id.split('.').next().unwrap_or_default();
        let path = self.app.path(&call, self.tenant).await?;
        let mut resource = Resource::in_tenant(&path, kind).ok_or_else(Failure::not_found)?;
        resource.environment = environment.map(str::to_owned);
        match self.app.has(&call, key, &resource) {
            true => Ok(()),
            false => Err(Failure::not_found()),
        }
    }
}

/// The newest run of a deployment, each time that it is another one or stands elsewhere.
#[derive(Debug)]
pub struct DeploymentFeed {
    place: WatchedPlace,
    deployment: String,
    shown: Option<Run>,
    /// Of the whole tenant: a run that begins is news of no run that was known.
    watch: TopicWatch,
}

impl DeploymentFeed {
    /// The run, if it changed since it was last read.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn read(&mut self) -> Result<Option<Run>> {
        let app = self.place.app.clone();
        let deployment = self.deployment.clone();
        let found = app
            .inner
            .store
            .tenant_tx(self.place.tenant, async |tx| {
                let row = match tx.run_newest(&deployment).await {
                    Ok(row) => row,
                    Err(StoreError::NotFound(_)) => return Ok::<_, Failure>(None),
                    Err(error) => return Err(error.into()),
                };
                let position = app.position(tx, &row).await?;
                Ok(Some(QueuedRun { run: row, position }))
            })
            .await?;
        let Some(queued) = found else {
            return Ok(None);
        };
        let run = describe_run(queued);
        let same = self.shown.as_ref().is_some_and(|shown| {
            let counted = Run {
                last_seq: run.last_seq,
                ..shown.clone()
            };
            counted == run
        });
        if same {
            return Ok(None);
        }
        self.shown = Some(run.clone());
        Ok(Some(run))
    }

    /// Returns when there may be something new.
    pub async fn changed(&mut self) {
        self.watch.changed().await;
        tokio::time::sleep(WINDOW).await;
    }

    /// Whether whoever watches still may, asked again now.
    ///
    /// # Errors
    ///
    /// When they may not any more, or when it could not be found out.
    pub async fn ensure_allowed(&self, context: &RequestContext, credential: &str) -> Result<()> {
        let environment = self.shown.as_ref().map(|run| run.environment.as_str());
        self.place
            .ensure_allowed(context, credential, environment)
            .await
    }
}

/// What is added to a tenant's audit trail.
#[derive(Debug)]
pub struct AuditFeed {
    place: WatchedPlace,
    after: u64,
    watch: TopicWatch,
}

impl AuditFeed {
    /// What was added since it was last read, oldest first.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn read(&mut self) -> Result<Vec<AuditEntry>> {
        let filter = AuditFilter {
            after: self.after,
            limit: ENTRIES_AT_ONCE,
            ..AuditFilter::default()
        };
        let store = &self.place.app.inner.store;
        let found = store
            .tenant_tx(self.place.tenant, async |tx| tx.audit_list(&filter).await)
            .await?;
        if let Some(last) = found.last() {
            self.after = last.sequence;
        }
        Ok(found)
    }

    /// Returns when there may be something new.
    pub async fn changed(&mut self) {
        self.watch.changed().await;
        tokio::time::sleep(WINDOW).await;
    }

    /// Whether whoever watches still may, asked again now.
    ///
    /// # Errors
    ///
    /// When they may not any more, or when it could not be found out.
    pub async fn ensure_allowed(&self, context: &RequestContext, credential: &str) -> Result<()> {
        self.place.ensure_allowed(context, credential, None).await
    }
}

impl App {
    /// Begins to watch a deployment.
    pub async fn deployment_watch(
        &self,
        call: &Call,
        tenant: TenantId,
        deployment: &str,
    ) -> Result<DeploymentFeed> {
        let operation = operation::DEPLOYMENT_PROGRESS;
        let permit = self.permit(call, operation, tenant).await?;
        // First the watch, then what is read: what is announced in between is heard.
        let watch = self.inner.watchers.join(NoticeTopic::Tenant(tenant));
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.deployment_get(deployment).await?;
                let record = permit.record().on(deployment);
                self.audit(tx, &call.context, record).await
            })
            .await?;
        Ok(DeploymentFeed {
            place: self.watched(tenant, operation),
            deployment: deployment.to_owned(),
            shown: None,
            watch,
        })
    }

    /// Begins to watch a tenant's audit trail: after an entry, or from now on.
    pub async fn audit_watch(
        &self,
        call: &Call,
        tenant: TenantId,
        after: Option<u64>,
    ) -> Result<AuditFeed> {
        let operation = operation::LIST_AUDIT;
        let permit = self.permit(call, operation, tenant).await?;
        let watch = self.inner.watchers.join(NoticeTopic::Tenant(tenant));
        self.inner.store.audit_flush(tenant).await?;
        let newest = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let newest = AuditFilter {
                    newest_first: true,
                    limit: 1,
                    ..AuditFilter::default()
                };
                let found = tx.audit_list(&newest).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok::<_, Failure>(found.first().map_or(0, |entry| entry.sequence))
            })
            .await?;
        Ok(AuditFeed {
            place: self.watched(tenant, operation),
            after: after.unwrap_or(newest).min(newest),
            watch,
        })
    }

    fn watched(&self, tenant: TenantId, operation: Operation) -> WatchedPlace {
        WatchedPlace {
            app: self.clone(),
            tenant,
            operation,
        }
    }
}
