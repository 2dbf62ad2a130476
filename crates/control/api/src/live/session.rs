//! One connection: what it is told, as long as it may hear it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use nimbus_control_app::{Call, Failure, LiveEvent, LivePart, LiveRoom};
use nimbus_control_wire::CloseCode;
use nimbus_core::{ErrorCode, TenantId};
use serde_json::json;
use socketioxide::extract::SocketRef;
use socketioxide::{SendError, SocketError};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use super::rooms::TenantRooms;
use super::{Admitted, RoomAnswer, RoomChange, RoomOrder, RoomRequest};
use crate::ApiState;
use crate::socket::SocketSlot;

/// How often it is asked again whether they may: somebody who may not any more is out within five seconds.
const ASKED_AGAIN: Duration = Duration::from_secs(2);
/// For a question of that kind; a database that does not answer lets nobody listen on for longer.
const ANSWERED: Duration = Duration::from_secs(2);
/// Whoever does not read for so long is let go.
const READING: Duration = Duration::from_secs(20);
/// Until there may be room for the next event.
const FULL: Duration = Duration::from_millis(10);
const MOST_ROOMS: usize = 100;

/// Why a connection ends; `None` when the client left.
type SocketEnd = Option<CloseCode>;

pub(super) struct LiveSession {
    state: ApiState,
    socket: SocketRef,
    call: Call,
    credential: Arc<Zeroizing<String>>,
    since: Option<nimbus_control_app::LiveCursor>,
    place: SocketSlot,
    tenants: BTreeMap<TenantId, TenantRooms>,
    asked: Instant,
}

impl LiveSession {
    pub(super) fn new(
        state: ApiState,
        socket: SocketRef,
        admitted: Admitted,
        place: SocketSlot,
    ) -> Self {
        Self {
            state,
            socket,
            call: admitted.call,
            credential: admitted.credential,
            since: admitted.since,
            place,
            tenants: BTreeMap::new(),
            asked: Instant::now(),
        }
    }

    /// Tells until the client is gone or may not hear any more, or the server stops.
    pub(super) async fn run(
        mut self,
        mut orders: mpsc::Receiver<RoomOrder>,
        gone: CancellationToken,
    ) {
        let stop = self.state.sockets.stop.clone();
        let ending = tokio::select! {
            () = gone.cancelled() => None,
            () = stop.cancelled() => Some(CloseCode::Stopping),
            ending = self.tell(&mut orders) => ending,
        };
        self.place.ended(ending);
        // A server that stops closes the transport, and the client comes back by itself.
        if let Some(code) = ending
            && code != CloseCode::Stopping
        {
            let _ = self.socket.emit("closing", &json!({"code": code.number()}));
            let _ = self.socket.clone().disconnect();
        }
    }

    async fn tell(&mut self, orders: &mut mpsc::Receiver<RoomOrder>) -> SocketEnd {
        if let Err(ending) = self.welcome().await {
            return ending;
        }
        loop {
            if let Err(ending) = self.tell_news().await {
                return ending;
            }
            let asking = sleep_until(self.asked + ASKED_AGAIN);
            let feeds = self.tenants.values_mut();
            let changes: Vec<_> = feeds.map(|rooms| Box::pin(rooms.feed.changed())).collect();
            let changed = async {
                match changes.is_empty() {
                    true => std::future::pending().await,
                    false => drop(select_all(changes).await),
                }
            };
            let order = tokio::select! {
                () = changed => None,
                () = asking => None,
                Some(order) = orders.recv() => Some(order),
            };
            if let Some((change, answer)) = order {
                match self.obey(change).await {
                    // Whoever does not wait for the answer has left.
                    Ok(said) => drop(answer.send(said)),
                    Err(ending) => return ending,
                }
            }
        }
    }

    /// Everybody is in the rooms of their tenant and of themselves.
    async fn welcome(&mut self) -> Result<(), SocketEnd> {
        let who = &self.call.who;
        let (home, user) = (who.home, who.user);
        let app = self.state.app.clone();
        let feed = app.live_feed(&self.call, home, self.since).await;
        let feed = feed.map_err(|failure| Some(ended(&failure)))?;
        let cursor = feed.cursor();
        let mut rooms = TenantRooms::new(feed);
        for (name, room) in [
            (format!("tenant:{home}"), LiveRoom::Tenant(home)),
            (format!("user:{user}"), LiveRoom::User(user)),
        ] {
            rooms.told.enter(name, room, cursor.seq);
        }
        let names = rooms.told.names();
        self.tenants.insert(home, rooms);
        let welcome = json!({
            "tenant_id": home,
            "user_id": user,
            "rooms": names,
            "cursor": cursor,
        });
        self.emit("ready", &welcome).await
    }

    /// Everything that there is now.
    async fn tell_news(&mut self) -> Result<(), SocketEnd> {
        let tenants: Vec<_> = self.tenants.keys().copied().collect();
        for tenant in tenants {
            loop {
                self.ask_again().await?;
                let Some(rooms) = self.tenants.get_mut(&tenant) else {
                    break;
                };
                let part = rooms.feed.read().await;
                let part = part.map_err(|failure| Some(ended(&failure)))?;
                let more = match part {
                    LivePart::Gap { from, to } => {
                        rooms.told.skip_to(to);
                        let gap = json!({"tenant_id": tenant, "from": from, "to": to});
                        self.emit("gap", &gap).await?;
                        true
                    }
                    LivePart::Events { events, more } => {
                        for event in events {
                            self.tell_event(tenant, &event).await?;
                        }
                        more
                    }
                };
                if !more {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn tell_event(&mut self, tenant: TenantId, event: &LiveEvent) -> Result<(), SocketEnd> {
        // A slow client may have lost the permission since the event was read.
        self.ask_again().await?;
        let told = self.tenants.get_mut(&tenant);
        if told.is_some_and(|rooms| rooms.told.take(event) && rooms.feed.may_hear(event)) {
            self.emit(&event.kind, event).await?;
        }
        Ok(())
    }

    async fn obey(&mut self, change: RoomChange) -> Result<RoomAnswer, SocketEnd> {
        match change {
            RoomChange::Leave(wanted) => {
                let mut left = false;
                for rooms in self.tenants.values_mut() {
                    left |= rooms.told.leave(&wanted.room);
                }
                self.tenants.retain(|_, rooms| rooms.told.count() > 0);
                Ok(match left {
                    true => Ok(json!({"ok": true, "room": wanted.room})),
                    false => Err(Failure::not_found()),
                })
            }
            RoomChange::Join(wanted) => match self.find(&wanted).await {
                Err(failure) => Ok(Err(failure)),
                Ok((tenant, room)) => self.join(tenant, room, wanted).await,
            },
        }
    }

    async fn find(&self, wanted: &RoomRequest) -> Result<(TenantId, LiveRoom), Failure> {
        let room = LiveRoom::parse(&wanted.room)?;
        let app = &self.state.app;
        let tenant = match &room {
            LiveRoom::Tenant(tenant) => *tenant,
            _ => {
                app.choose_tenant(&self.call, wanted.tenant.as_deref())
                    .await?
            }
        };
        app.live_room_check(&self.call, tenant, &room).await?;
        let joined: usize = self.tenants.values().map(|rooms| rooms.told.count()).sum();
        if joined >= MOST_ROOMS {
            let message = format!("at most {MOST_ROOMS} rooms");
            return Err(Failure::new(ErrorCode::TOO_MANY_ROOMS, message));
        }
        Ok((tenant, room))
    }

    async fn join(
        &mut self,
        tenant: TenantId,
        room: LiveRoom,
        wanted: RoomRequest,
    ) -> Result<RoomAnswer, SocketEnd> {
        let app = self.state.app.clone();
        let name = wanted.room;
        if !self.tenants.contains_key(&tenant) {
            let feed = match app.live_feed(&self.call, tenant, wanted.since).await {
                Ok(feed) => feed,
                Err(failure) => return Ok(Err(failure)),
            };
            let cursor = feed.cursor();
            self.tenants.insert(tenant, TenantRooms::new(feed));
            return Ok(self.enter(tenant, name, room, cursor.seq));
        }
        let Some(known) = self.tenants.get(&tenant) else {
            return Ok(Err(Failure::not_found()));
        };
        let now = known.feed.cursor();
        let from = match wanted.since {
            // Also a place that is not read to yet, or of another log: the log itself says which.
            Some(since) if !known.told.has(&name) && since != now => {
                let mut earlier = match app.live_feed(&self.call, tenant, Some(since)).await {
                    Ok(feed) => feed,
                    Err(failure) => return Ok(Err(failure)),
                };
                let told = self.tell_earlier(tenant, &room, &mut earlier, now.seq);
                match told.await? {
                    true => since.seq,
                    false => now.seq,
                }
            }
            _ => now.seq,
        };
        Ok(self.enter(tenant, name, room, from))
    }

    fn enter(&mut self, tenant: TenantId, name: String, room: LiveRoom, from: i64) -> RoomAnswer {
        let rooms = self.tenants.get_mut(&tenant);
        let rooms = rooms.ok_or_else(Failure::not_found)?;
        let cursor = rooms.feed.cursor();
        let answer = json!({"ok": true, "room": name, "tenant_id": tenant, "cursor": cursor});
        rooms.told.enter(name, room, from);
        Ok(answer)
    }

    /// What happened in a room before it was joined, as far as no other room told it; whether all of it is still there.
    async fn tell_earlier(
        &mut self,
        tenant: TenantId,
        room: &LiveRoom,
        earlier: &mut nimbus_control_app::LiveFeed,
        until: i64,
    ) -> Result<bool, SocketEnd> {
        loop {
            self.ask_again().await?;
            let part = earlier.read().await;
            match part.map_err(|failure| Some(ended(&failure)))? {
                LivePart::Gap { from, to } => {
                    let gap = json!({"tenant_id": tenant, "from": from, "to": to});
                    self.emit("gap", &gap).await?;
                    return Ok(false);
                }
                LivePart::Events { events, more } => {
                    for event in events.iter().filter(|event| event.cursor.seq <= until) {
                        let known = self.tenants.get(&tenant);
                        let told = known.is_some_and(|rooms| rooms.told.has_told(event));
                        if room.has(event) && !told {
                            self.emit(&event.kind, event.as_ref()).await?;
                        }
                    }
                    if !more || earlier.cursor().seq >= until {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Waits until there is room; whoever does not read for long is let go.
    async fn emit<T: serde::Serialize + ?Sized>(
        &mut self,
        name: &str,
        what: &T,
    ) -> Result<(), SocketEnd> {
        let patience = Instant::now() + READING;
        loop {
            match self.socket.emit(name, what) {
                Ok(()) => return Ok(()),
                Err(SendError::Socket(SocketError::InternalChannelFull)) => {}
                Err(SendError::Socket(SocketError::Closed)) => return Err(None),
                Err(SendError::Serialize(_)) => return Err(Some(CloseCode::Failed)),
            }
            if Instant::now() >= patience {
                return Err(Some(CloseCode::NotReading));
            }
            self.ask_again().await?;
            sleep(FULL).await;
        }
    }

    /// Who it is and what they may, if it was not asked for a while.
    async fn ask_again(&mut self) -> Result<(), SocketEnd> {
        if self.asked.elapsed() < ASKED_AGAIN {
            return Ok(());
        }
        match timeout(ANSWERED, self.renew()).await {
            Ok(Ok(())) => {
                self.asked = Instant::now();
                Ok(())
            }
            Ok(Err(failure)) => Err(Some(ended(&failure))),
            Err(_) => Err(Some(CloseCode::Failed)),
        }
    }

    async fn renew(&mut self) -> Result<(), Failure> {
        self.call.context.now = jiff::Timestamp::now();
        let app = &self.state.app;
        let who = app
            .authenticate(&self.call.context, &self.credential)
            .await?;
        self.call.who = who;
        let mut lost = Vec::new();
        for (tenant, rooms) in &mut self.tenants {
            match rooms.feed.renewed(self.call.clone()).await {
                Ok(()) => {}
                Err(failure) if ended(&failure) == CloseCode::NotFound => lost.push(*tenant),
                Err(failure) => return Err(failure),
            }
        }
        for tenant in lost {
            // They may be in their own, and nothing of the other is there for them.
            let gone = self.tenants.remove(&tenant);
            let names = gone.map(|gone| gone.told.names()).unwrap_or_default();
            let _ = self
                .socket
                .emit("left", &json!({"tenant_id": tenant, "rooms": names}));
        }
        Ok(())
    }
}

fn ended(failure: &Failure) -> CloseCode {
    crate::socket::ended(failure)
}
