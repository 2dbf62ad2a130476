//! What happens in a tenant, as somebody may hear it: in order, from where they left off, nothing twice.
//!
//! This is what every transport of live events reads from: Socket.IO, and subscriptions of GraphQL. Whoever has a
//! [`LiveFeed`] calls [`read`](LiveFeed::read) until it has nothing, waits for [`changed`](LiveFeed::changed), and asks
//! every few seconds whether the caller still may ([`renew`](LiveFeed::renew)).

use std::collections::HashMap;
use std::sync::Arc;

use nimbus_control_auth::access::Resource;
use nimbus_control_auth::operation;
use nimbus_control_auth::permission::{self, Tier};
use nimbus_control_events::{Audience, LiveCursor, LiveEvent, NoticeTopic, kind};
use nimbus_core::{TenantId, UserId};
use uuid::Uuid;

use crate::app::App;
use crate::call::{Call, RequestContext};
use crate::failure::{Failure, Result};
use crate::live_log::{LogPart, TenantLog};
use crate::topic_watchers::TopicWatch;

/// Environments have names of their tenant.
const MOST_DECIDED: usize = 1000;

/// What somebody listens to, named as document 002 names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LiveRoom {
    /// Everything of a tenant.
    Tenant(TenantId),
    /// What is about a person.
    User(UserId),
    /// What is about a deployment, a run, a configuration item, a user or a tenant.
    Resource(String),
    /// What is about a deployment (`D1BRV40`), or about one of its environments (`D1BRV40/dev`).
    StackInstance(String),
}

impl LiveRoom {
    /// Reads `tenant:{id}` and the like.
    pub fn parse(text: &str) -> Result<Self> {
        let wanted = || {
            Failure::field(
                "room",
                "give tenant:{id}, user:{id}, resource:{id} or stack_instance:{id}",
            )
        };
        let (kind, id) = text.split_once(':').ok_or_else(wanted)?;
        // Ids are looked up, and a database takes no letter that cannot be stored.
        let letters = id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._:/@+-".contains(&byte));
        if id.is_empty() || id.len() > 200 || !letters {
            return Err(wanted());
        }
        match kind {
            "tenant" => Ok(Self::Tenant(id.parse().map_err(|_| Failure::not_found())?)),
            "user" => Ok(Self::User(id.parse().map_err(|_| Failure::not_found())?)),
            "resource" => Ok(Self::Resource(id.to_owned())),
            "stack_instance" => Ok(Self::StackInstance(id.to_owned())),
            _ => Err(wanted()),
        }
    }

    /// Whether an event is told in this room.
    pub fn has(&self, event: &LiveEvent) -> bool {
        match self {
            Self::Tenant(tenant) => event.tenant_id == *tenant && !is_private(event),
            Self::User(user) => event.person == Some(Uuid::from(*user)),
            Self::Resource(id) | Self::StackInstance(id) => {
                !is_private(event) && event.subjects.contains(id)
            }
        }
    }
}

fn is_private(event: &LiveEvent) -> bool {
    kind::find(&event.kind).is_none_or(|kind| kind.audience == Audience::Person)
}

/// Whether events of this type exist.
pub fn is_event_type(name: &str) -> bool {
    kind::find(name).is_some()
}

/// What comes next.
#[derive(Debug)]
pub enum LivePart {
    /// Events that the caller may hear, and whether there is more at once.
    Events {
        events: Vec<Arc<LiveEvent>>,
        more: bool,
    },
    /// Events between these places were left out; what they changed is to be read anew.
    Gap { from: LiveCursor, to: LiveCursor },
}

/// The events of a tenant, for somebody. Nothing is kept for them: what comes next is read when they are ready for it.
#[derive(Debug)]
pub struct LiveFeed {
    app: App,
    call: Call,
    tenant: TenantId,
    path: Vec<TenantId>,
    log: Arc<TenantLog>,
    cursor: LiveCursor,
    watch: TopicWatch,
    /// What was decided since the caller was last asked for: by permission and environment, which are few.
    decided: HashMap<(&'static str, Option<String>), bool>,
}

impl App {
    /// Begins to listen to a tenant: after a place of its log, or from now on. A tenant in which the caller may see
    /// nothing is not found.
    pub async fn live_feed(
        &self,
        call: &Call,
        tenant: TenantId,
        since: Option<LiveCursor>,
    ) -> Result<LiveFeed> {
        let path = self.path(call, tenant).await?;
        self.ensure_sees(call, &path)?;
        // First the watch, then the place: what is announced in between is heard.
        let watch = self.inner.watchers.join(NoticeTopic::Tenant(tenant));
        let log = self.inner.logs.of(tenant);
        let cursor = match since {
            Some(cursor) => cursor,
            None => log.head(&self.inner.store).await?,
        };
        let record = self
            .record_of(call, "live.listen", "live")
            .on(tenant)
            .priority(nimbus_control_audit::Priority::Low);
        let store = &self.inner.store;
        store.audit_later(call.who.home, call.context.now, record);
        Ok(LiveFeed {
            app: self.clone(),
            call: call.clone(),
            tenant,
            path,
            log,
            cursor,
            watch,
            decided: HashMap::new(),
        })
    }

    /// Whether the caller may join a room, which is in a tenant. What they may not see looks like what is not there.
    pub async fn live_room_check(
        &self,
        call: &Call,
        tenant: TenantId,
        room: &LiveRoom,
    ) -> Result<()> {
        let path = self.path(call, tenant).await?;
        match room {
            LiveRoom::Tenant(named) if *named == tenant => self.ensure_sees(call, &path),
            LiveRoom::User(user) if *user == call.who.user && tenant == call.who.home => Ok(()),
            LiveRoom::Tenant(_) | LiveRoom::User(_) => Err(Failure::not_found()),
            LiveRoom::StackInstance(id) => {
                let (deployment, environment) = match id.split_once('/') {
                    None => (id.as_str(), None),
                    Some((deployment, environment)) => (deployment, Some(environment)),
                };
                self.ensure_has(call, &path, operation::GET_DEPLOYMENT, environment)?;
                let store = &self.inner.store;
                let found = store.tenant_tx(tenant, async |tx| tx.deployment_get(deployment).await);
                found.await?;
                Ok(())
            }
            LiveRoom::Resource(id) => self.resource_check(call, tenant, &path, id).await,
        }
    }

    async fn resource_check(
        &self,
        call: &Call,
        tenant: TenantId,
        path: &[TenantId],
        id: &str,
    ) -> Result<()> {
        let store = &self.inner.store;
        let Ok(uuid) = id.parse::<Uuid>() else {
            self.ensure_has(call, path, operation::GET_DEPLOYMENT, None)?;
            let found = store.tenant_tx(tenant, async |tx| tx.deployment_get(id).await);
            found.await?;
            return Ok(());
        };
        if let Ok(run) = store
            .tenant_tx(tenant, async |tx| tx.run_find(uuid).await)
            .await
        {
            return self.ensure_has(call, path, operation::GET_RUN, Some(&run.environment));
        }
        let user = store.tenant_tx(tenant, async |tx| tx.user_get(uuid.into()).await);
        if user.await.is_ok() {
            return self.ensure_has(call, path, operation::GET_USER, None);
        }
        let item = store.tenant_tx(tenant, async |tx| tx.item_get(uuid).await);
        if let Ok(item) = item.await {
            let environment = item.environment.as_deref();
            return self.ensure_has(call, path, operation::GET_ITEM, environment);
        }
        let below = self.path(call, uuid.into()).await?;
        self.ensure_has(call, &below, operation::GET_TENANT, None)
    }

    fn ensure_has(
        &self,
        call: &Call,
        path: &[TenantId],
        operation: operation::Operation,
        environment: Option<&str>,
    ) -> Result<()> {
        let operation::Need::Permission(key) = operation.need else {
            return Err(Failure::not_found());
        };
        let kind = operation.id.split('.').next().unwrap_or_default();
        let mut resource = Resource::in_tenant(path, kind).ok_or_else(Failure::not_found)?;
        resource.environment = environment.map(str::to_owned);
        if self.has(call, key, &resource) {
            Ok(())
        } else {
            Err(Failure::not_found())
        }
    }

    /// Their own tenant, or one in which they may see something.
    fn ensure_sees(&self, call: &Call, path: &[TenantId]) -> Result<()> {
        let resource = Resource::in_tenant(path, "tenants").ok_or_else(Failure::not_found)?;
        let sees =
            permission::of_tier(Tier::ReadOnly).any(|read| self.has(call, read.key, &resource));
        if sees || path.last() == Some(&call.who.home) {
            Ok(())
        } else {
            Err(Failure::not_found())
        }
    }
}

impl LiveFeed {
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Everything up to here was read.
    pub fn cursor(&self) -> LiveCursor {
        self.cursor
    }

    /// What comes next, a limited number of events at once.
    pub async fn read(&mut self) -> Result<LivePart> {
        let news = self.watch.count();
        let store = &self.app.inner.store;
        match self.log.after(store, self.cursor, news).await? {
            LogPart::Gap(to) => {
                let from = std::mem::replace(&mut self.cursor, to);
                store.metrics().live_gap();
                Ok(LivePart::Gap { from, to })
            }
            LogPart::Events(events, more) => {
                if let Some(last) = events.last() {
                    self.cursor = last.cursor;
                }
                let more = more && !events.is_empty();
                let mut heard = Vec::with_capacity(events.len());
                for event in events {
                    if self.may_hear(&event) {
                        heard.push(event);
                    }
                }
                Ok(LivePart::Events {
                    events: heard,
                    more,
                })
            }
        }
    }

    /// Returns when there may be something new.
    pub async fn changed(&mut self) {
        self.watch.changed().await;
    }

    /// Who calls and what they may, asked again now. From then on events are decided by the answer.
    ///
    /// # Errors
    ///
    /// When they may not listen any more, or when it could not be found out.
    pub async fn renew(&mut self, context: &RequestContext, credential: &str) -> Result<()> {
        let who = self.app.authenticate(context, credential).await?;
        let context = context.clone();
        self.renewed(Call { who, context }).await
    }

    /// As [`renew`](Self::renew), when somebody found out already who calls.
    pub async fn renewed(&mut self, call: Call) -> Result<()> {
        self.call = call;
        self.decided.clear();
        self.path = self.app.path(&self.call, self.tenant).await?;
        self.app.ensure_sees(&self.call, &self.path)
    }

    /// Whether the caller may hear an event.
    pub fn may_hear(&mut self, event: &LiveEvent) -> bool {
        let Some(kind) = kind::find(&event.kind) else {
            return false;
        };
        let who = &self.call.who;
        let own = event.tenant_id == who.home && event.person == Some(Uuid::from(who.user));
        let key = match kind.audience {
            Audience::Person => return own,
            // Everybody would hear as often of it as there are people who are asked.
            Audience::PersonElse(_) if event.person.is_some() => return own,
            Audience::PersonOr(_) if own => return true,
            Audience::PersonElse(key) | Audience::PersonOr(key) | Audience::Permission(key) => key,
        };
        let question = (key, event.environment.clone());
        if let Some(decided) = self.decided.get(&question) {
            return *decided;
        }
        let Some(mut resource) = Resource::in_tenant(&self.path, "live") else {
            return false;
        };
        resource.environment.clone_from(&event.environment);
        let decided = self.app.has(&self.call, key, &resource);
        if self.decided.len() >= MOST_DECIDED {
            self.decided.clear();
        }
        self.decided.insert(question, decided);
        decided
    }
}
