//! Socket.IO: what happens in a tenant, told in rooms.
//!
//! Socket.IO is the protocol here and nothing more. A room is a filter over the log of its tenant and every connection has a
//! cursor, so that a client gets each event once, in order, from whichever server it is connected to, and a slow one
//! costs no memory. Only WebSocket is served as transport: connections of long polling would have to come back to the
//! server that knows them.

mod rooms;
mod session;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use nimbus_control_app::{Call, Failure, LiveCursor, RequestContext};
use nimbus_core::TraceId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use socketioxide::extract::{AckSender, Data, SocketRef, TryData};
use socketioxide::handler::ConnectHandler as _;
use socketioxide::{SocketIo, TransportType};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use self::session::LiveSession;
use crate::ApiState;
use crate::caller::socket_credential;

/// Where clients connect: the path that they have by themselves.
const PATH: &str = "/socket.io/";
/// Whoever connects proves within this time who they are.
const PROVED: Duration = Duration::from_secs(5);
const PING: Duration = Duration::from_secs(10);
const PONG: Duration = Duration::from_secs(10);
/// Events of a connection that wait for the network; an event has less than 10 KiB.
const BUFFERED: usize = 32;
/// Nobody has so much to say.
const MOST_SAID: usize = 16 * 1024;
/// Requests of a connection that wait.
const WAITING: usize = 16;

/// What a client gives when it connects.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SocketGreeting {
    /// An access token or an API key.
    token: Option<String>,
    /// Everything of the own tenant up to here is known.
    since: Option<LiveCursor>,
}

/// Somebody who may connect.
#[derive(Clone)]
struct Admitted {
    call: Call,
    credential: Arc<Zeroizing<String>>,
    since: Option<LiveCursor>,
}

/// What a client wants of its connection.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoomRequest {
    pub(super) room: String,
    /// Id or slug of the tenant in which the room is; the own one when absent.
    pub(super) tenant: Option<String>,
    /// Everything of the room up to here is known.
    pub(super) since: Option<LiveCursor>,
}

#[derive(Debug)]
pub(super) enum RoomChange {
    Join(RoomRequest),
    Leave(RoomRequest),
}

/// The answer to it.
pub(super) type RoomAnswer = Result<Value, Failure>;
pub(super) type RoomOrder = (RoomChange, oneshot::Sender<RoomAnswer>);

/// Serves Socket.IO beside the routes.
pub(crate) fn mount(router: Router<ApiState>, state: &ApiState) -> Router<ApiState> {
    let (service, io) = SocketIo::builder()
        .req_path(PATH.trim_end_matches('/'))
        .transports([TransportType::Websocket])
        .connect_timeout(PROVED)
        .ping_interval(PING)
        .ping_timeout(PONG)
        .max_buffer_size(BUFFERED)
        .ws_max_message_size(MOST_SAID)
        .ws_max_frame_size(MOST_SAID)
        .build_svc();
    let (admitting, connecting) = (state.clone(), state.clone());
    let admit = async move |socket: SocketRef, TryData(greeting): TryData<SocketGreeting>| {
        admit(&admitting, &socket, greeting.ok()).await
    };
    let connect = async move |socket: SocketRef| connect(&connecting, socket).await;
    io.ns("/", connect.with(admit));
    let stop = state.sockets.stop.clone();
    tokio::spawn(async move {
        stop.cancelled().await;
        // The transport ends, not the conversation: clients come back by themselves, here or elsewhere.
        io.close().await;
    });
    router.route_service(PATH, service)
}

/// Why somebody may not connect, as `connect_error` says it.
struct Refused(Failure);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = &self.0.error;
        write!(f, "{}: {}", error.code(), error.message())
    }
}

async fn admit(
    state: &ApiState,
    socket: &SocketRef,
    greeting: Option<SocketGreeting>,
) -> Result<(), Refused> {
    let wrong = || {
        Refused(Failure::field(
            "auth",
            "give `token`, and `since` if you have it",
        ))
    };
    // A client that gives nothing has null.
    let greeting = greeting.ok_or_else(wrong)?;
    let parts = socket.req_parts();
    let credential = match greeting.token {
        Some(token) => Zeroizing::new(token),
        None => socket_credential(parts, state).map_err(Refused)?,
    };
    let context = context_of(parts);
    let who = state.app.authenticate(&context, &credential).await;
    let who = who.map_err(Refused)?;
    state.limits.take_caller(&who).map_err(Refused)?;
    socket.extensions.insert(Admitted {
        call: Call { who, context },
        credential: Arc::new(credential),
        since: greeting.since,
    });
    Ok(())
}

fn context_of(parts: &axum::http::request::Parts) -> RequestContext {
    let known = parts.extensions.get::<RequestContext>().cloned();
    let mut context = known.unwrap_or_else(|| RequestContext {
        ip: None,
        user_agent: None,
        location: None,
        trace_id: TraceId::random(),
        now: jiff::Timestamp::now(),
    });
    context.now = jiff::Timestamp::now();
    context
}

async fn connect(state: &ApiState, socket: SocketRef) {
    let (Some(admitted), Ok(place)) = (socket.extensions.get::<Admitted>(), state.sockets.take())
    else {
        // The server is full; the client comes back.
        let _ = socket.disconnect();
        return;
    };
    let (orders, waiting) = mpsc::channel(WAITING);
    let gone = CancellationToken::new();
    let left = gone.clone();
    socket.on_disconnect(async move || left.cancel());
    on_request(
        state,
        &socket,
        &admitted,
        "subscribe",
        &orders,
        RoomChange::Join,
    );
    on_request(
        state,
        &socket,
        &admitted,
        "unsubscribe",
        &orders,
        RoomChange::Leave,
    );
    let session = LiveSession::new(state.clone(), socket, admitted, place);
    tokio::spawn(session.run(waiting, gone));
}

fn on_request(
    state: &ApiState,
    socket: &SocketRef,
    admitted: &Admitted,
    name: &'static str,
    orders: &mpsc::Sender<RoomOrder>,
    change: fn(RoomRequest) -> RoomChange,
) {
    let (limits, orders) = (Arc::clone(&state.limits), orders.clone());
    let who = admitted.call.who.clone();
    socket.on(
        name,
        async move |Data(value): Data<Value>, ack: AckSender| {
            let answer = async {
                limits.take_caller(&who)?;
                let wanted = serde_json::from_value::<RoomRequest>(value);
                let wanted = wanted.map_err(|_| {
                    Failure::field("room", "give `room`, and `tenant` and `since` if needed")
                })?;
                let (answer, answered) = oneshot::channel();
                if orders.try_send((change(wanted), answer)).is_err() {
                    return Err(Failure::wait(1));
                }
                answered.await.unwrap_or_else(|_| Err(Failure::wait(1)))
            };
            // A client that asked for no answer gets none.
            let _ = match answer.await {
                Ok(value) => ack.send(&value),
                Err(failure) => ack.send(&refusal_of(&failure)),
            };
        },
    );
}

#[derive(Serialize)]
struct RefusedRequest {
    ok: bool,
    error: Value,
}

fn refusal_of(failure: &Failure) -> RefusedRequest {
    let error = &failure.error;
    RefusedRequest {
        ok: false,
        error: json!({"code": error.code().to_string(), "message": error.message()}),
    }
}
