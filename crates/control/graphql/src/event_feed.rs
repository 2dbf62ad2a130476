//! What happens in a tenant, for somebody who watches part of it.
//!
//! It is read from the tenant's log after the place that its reader has, as everything is that is told live; who hears
//! what is decided for each event by its kind (`LiveFeed`). Here is only which of them a field asks for.

use std::sync::Arc;

use async_graphql::Context;
use futures::{Stream, StreamExt as _};
use nimbus_control_app::{
    EventTopic, Failure, LiveCursor, LiveEvent, LiveFeed, LivePart, LiveRoom, RequestContext,
    is_event_type,
};
use nimbus_core::{Error, ErrorCode, TenantId};

use crate::act::{AskedRequest, FieldResult};
use crate::watching::{Feed, watch};

/// Types that somebody names at once.
const MOST_TYPES: usize = 50;

/// Which events of a room are watched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EventWish {
    Everything,
    Topic(EventTopic),
    Types(Vec<String>),
}

impl EventWish {
    pub(crate) fn types<const N: usize>(types: [&str; N]) -> Self {
        Self::Types(types.map(str::to_owned).to_vec())
    }

    /// Of the types that somebody named. One that does not exist would never be told.
    pub(crate) fn known(types: Option<Vec<String>>) -> Result<Self, Failure> {
        let Some(types) = types else {
            return Ok(Self::Everything);
        };
        if types.is_empty() || types.len() > MOST_TYPES {
            let words = format!("give 1 to {MOST_TYPES} types, or none at all for everything");
            return Err(Failure::field("types", words));
        }
        if !types.iter().all(|name| is_event_type(name)) {
            let words = "there are events such as deployment.updated, and one of these is not";
            return Err(Failure::field("types", words));
        }
        Ok(Self::Types(types))
    }

    fn has(&self, kind: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Topic(topic) => EventTopic::of(kind) == *topic,
            Self::Types(types) => types.iter().any(|one| one == kind),
        }
    }
}

/// Events of a tenant's log that are watched.
pub(crate) struct WatchedEvents {
    feed: LiveFeed,
    room: LiveRoom,
    wish: EventWish,
}

impl Feed for WatchedEvents {
    type Item = Arc<LiveEvent>;

    async fn read(&mut self) -> Result<(Vec<Arc<LiveEvent>>, bool), Failure> {
        loop {
            match self.feed.read().await? {
                LivePart::Gap { from, to } => return Err(left_out(from, to)),
                LivePart::Events { mut events, more } => {
                    events.retain(|event| self.room.has(event) && self.wish.has(&event.kind));
                    if !events.is_empty() || !more {
                        return Ok((events, false));
                    }
                }
            }
        }
    }

    async fn changed(&mut self) {
        self.feed.changed().await;
    }

    async fn ensure_allowed(
        &mut self,
        at: &RequestContext,
        credential: &str,
    ) -> Result<(), Failure> {
        self.feed.renew(at, credential).await
    }

    fn may_tell(&mut self, event: &Arc<LiveEvent>) -> bool {
        self.feed.may_hear(event)
    }
}

/// Nobody goes on as if nothing were missing.
fn left_out(from: LiveCursor, to: LiveCursor) -> Failure {
    let message = format!("events after {from} were left out; the log goes on after {to}");
    Error::new(ErrorCode::EVENTS_LEFT_OUT, message)
        .with_help("read anew what you need, and watch on with the second place as `since`")
        .into()
}

/// The room of a thing, or of the whole tenant. A name that nothing can have is one of nothing.
pub(crate) fn named_room(
    tenant: TenantId,
    kind: &str,
    id: Option<String>,
) -> Result<LiveRoom, Failure> {
    match id {
        None => Ok(LiveRoom::Tenant(tenant)),
        Some(id) => LiveRoom::parse(&format!("{kind}:{id}")).map_err(|_| Failure::not_found()),
    }
}

/// Begins to watch a room that the caller may see.
pub(crate) async fn listen(
    asked: &AskedRequest,
    tenant: TenantId,
    room: LiveRoom,
    wish: EventWish,
    since: Option<String>,
) -> Result<WatchedEvents, Failure> {
    let since: Option<LiveCursor> = since
        .map(|text| text.parse())
        .transpose()
        .map_err(|_| Failure::field("since", "give the `cursor` of an event, as it was told"))?;
    let (app, call) = (asked.app(), asked.call()?);
    app.live_room_check(call, tenant, &room).await?;
    let feed = app.live_feed(call, tenant, since).await?;
    Ok(WatchedEvents { feed, room, wish })
}

/// Events as a field tells them.
pub(crate) fn told<T>(
    ctx: &Context<'_>,
    feed: WatchedEvents,
) -> FieldResult<impl Stream<Item = FieldResult<T>> + use<T>>
where
    T: for<'e> From<&'e LiveEvent> + Send + 'static,
{
    let events = watch(ctx, feed)?;
    Ok(events.map(|told| told.map(|event| T::from(event.as_ref()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_for_what_there_is() {
        assert_eq!(EventWish::known(None).unwrap(), EventWish::Everything);
        let named = EventWish::known(Some(vec!["run.status_changed".to_owned()])).unwrap();
        assert!(named.has("run.status_changed") && !named.has("unit.status_changed"));
        for wrong in [
            Vec::new(),
            vec!["everything".to_owned()],
            vec!["user.created".to_owned(), "*".to_owned()],
            vec!["user.created".to_owned(); MOST_TYPES + 1],
        ] {
            let refused = EventWish::known(Some(wrong)).unwrap_err();
            assert_eq!(refused.error.code(), ErrorCode::INPUT_INVALID);
        }
        let changes = EventWish::Topic(EventTopic::Resource);
        assert!(changes.has("deployment.updated") && !changes.has("audit.recorded"));
    }

    #[test]
    fn a_room_is_named_or_is_the_tenant() {
        let tenant = TenantId::random();
        let whole = named_room(tenant, "resource", None).unwrap();
        assert_eq!(whole, LiveRoom::Tenant(tenant));
        let one = named_room(tenant, "resource", Some("D1".to_owned())).unwrap();
        assert_eq!(one, LiveRoom::Resource("D1".to_owned()));
        for wrong in ["", "D1' OR 1", "D1\u{0}"] {
            let refused = named_room(tenant, "stack_instance", Some(wrong.to_owned()));
            let code = refused.unwrap_err().error.code();
            assert_eq!(code, ErrorCode::RESOURCE_NOT_FOUND, "{wrong}");
        }
    }
}
