//! GraphQL: documents in a request, or over a socket.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{FromRequest as _, FromRequestParts as _, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use nimbus_control_app::{Call, Failure, RequestContext};
use nimbus_control_auth::operation;
use nimbus_control_graphql::{
    AttemptGate, GraphqlAnswer, GraphqlBatch, GraphqlCaller, GraphqlRefusal, LiveCaller, PROTOCOL,
    execute, live,
};
use nimbus_core::ErrorCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tracing::{Instrument as _, warn};

use super::ApiResult;
use crate::ApiState;
use crate::caller::{RequestCircumstances, SignedCall, SocketCall};
use crate::cookies;
use crate::extract::{ListFilter, ensure_storable, is_json, whole_body};
use crate::live_socket::LiveSocket;
use crate::route::Route;

/// Bytes of a document and its variables over a socket.
const MOST_SAID: usize = 256 * 1024;

/// The media type of GraphQL's own answers, in which a status says what became of the request.
pub(crate) const OWN_MEDIA: &str = "application/graphql-response+json";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::GRAPHQL, carry_out)
            .takes::<GraphqlDocument>()
            .gives::<GraphqlResult>(),
        Route::new(operation::GRAPHQL_LIVE, watch).asks::<SocketQuery>(),
    ]
}

/// A document to be carried out. Up to ten come as an array.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes what another crate reads")]
struct GraphqlDocument {
    query: String,
    /// Which operation of the document, where it has several.
    #[serde(default, rename = "operationName")]
    operation_name: Option<String>,
    #[serde(default)]
    variables: Option<Map<String, Value>>,
    /// Taken and not read.
    #[serde(default)]
    extensions: Option<Map<String, Value>>,
}

/// The answer to a document, or an array of them.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes what another crate writes")]
struct GraphqlResult {
    data: Option<Value>,
    /// Each with the problem's form in `extensions`.
    #[serde(default)]
    errors: Vec<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SocketQuery {
    /// A bearer token, for clients that cannot send headers.
    #[allow(dead_code, reason = "it is read with the caller")]
    access_token: Option<String>,
}

async fn carry_out(
    State(state): State<ApiState>,
    RequestCircumstances(context): RequestCircumstances,
    request: Request,
) -> ApiResult<Response> {
    let (mut parts, body) = request.into_parts();
    let media = AnswerMedia::wanted(&parts.headers);
    let call = match is_anonymous(&parts.headers) {
        true => None,
        false => Some(SignedCall::from_request_parts(&mut parts, &state).await?.0),
    };
    if !is_json(&parts.headers) {
        return Err(Failure::field("content-type", "this takes application/json").into());
    }
    let bytes = Bytes::from_request(Request::from_parts(parts, body), &state).await;
    let bytes = bytes.map_err(|rejection| whole_body(&rejection))?;
    ensure_storable(&bytes)?;
    let batch = match GraphqlBatch::read(&bytes, state.introspection) {
        Ok(batch) => batch,
        Err(refusal) => return refuse(&state, call.as_ref(), &context, &refusal, media).await,
    };
    match &call {
        Some(call) => {
            state.limits.take_more(&call.who, batch.root_fields())?;
            state.app.note_read(call, operation::GRAPHQL).await?;
        }
        None if batch.is_open() => {
            let requests = batch.root_fields();
            state.limits.take_more_of_address(context.ip, requests)?;
        }
        None => return Err(Failure::not_signed_in().into()),
    }
    let caller = GraphqlCaller {
        app: state.app.clone(),
        call,
        attempt: attempts(&state, &context),
        context,
    };
    if !batch.changes() {
        return Ok(media.answer(execute(caller, batch).await));
    }
    // By itself: whoever asked may go away in the middle, and what changes is finished.
    let task = tokio::spawn(execute(caller, batch).in_current_span());
    let done = task.await.map_err(|error| {
        let message = "a request ended in the middle";
        nimbus_core::Error::new(ErrorCode::INTERNAL, message).with_source(error)
    })?;
    Ok(media.answer(done))
}

/// Nobody says who they are.
fn is_anonymous(headers: &HeaderMap) -> bool {
    !headers.contains_key(header::AUTHORIZATION)
        && cookies::read(headers, cookies::SESSION).is_none()
}

fn attempts(state: &ApiState, context: &RequestContext) -> AttemptGate {
    let (limits, ip) = (Arc::clone(&state.limits), context.ip);
    Arc::new(move || limits.take_sign_in(ip))
}

/// Documents that are not carried out are refused in GraphQL's own form.
async fn refuse(
    state: &ApiState,
    call: Option<&Call>,
    context: &RequestContext,
    refusal: &GraphqlRefusal,
    media: AnswerMedia,
) -> ApiResult<Response> {
    let refused = GraphqlAnswer::refusal(refusal, context.trace_id);
    let Some(call) = call else {
        return match refusal.is_open() {
            true => Ok(media.answer(refused)),
            false => Err(Failure::not_signed_in().into()),
        };
    };
    let failure = refusal.failure();
    let noted = state.app.note_failure(call, operation::GRAPHQL, failure);
    if let Err(other) = noted.await {
        warn!(error = %other.error.log_text(), "a refused document is not in the audit trail");
    }
    Ok(media.answer(refused))
}

/// In which form a client takes answers, by the specification of GraphQL over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerMedia {
    /// GraphQL's own, also for whoever says nothing: a document that is refused has a status that says so.
    Own,
    /// JSON, for clients that know only that: whatever answers with JSON on the way may have a status of its own, so
    /// whoever looks for errors finds them in the body.
    Json,
}

impl AnswerMedia {
    fn wanted(headers: &HeaderMap) -> Self {
        let given: Vec<&str> = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        let weight = |kinds: &[&str]| {
            // The most exact range that fits counts, whatever its weight.
            let fitting = kinds.iter().find_map(|kind| {
                let mut ranges = given.iter().flat_map(|value| value.split(','));
                ranges.find_map(|range| weight_of(range, kind))
            });
            fitting.unwrap_or_default()
        };
        let own = weight(&[OWN_MEDIA, "application/*", "*/*"]);
        let json = weight(&["application/json", "application/*", "*/*"]);
        match json > own {
            true => Self::Json,
            false => Self::Own,
        }
    }

    fn answer(self, answer: GraphqlAnswer) -> Response {
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
        match self {
            Self::Own => {
                let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(OWN_MEDIA))];
                (status, kind, Json(answer.body)).into_response()
            }
            Self::Json if answer.refused => (StatusCode::OK, Json(answer.body)).into_response(),
            Self::Json => (status, Json(answer.body)).into_response(),
        }
    }
}

/// The weight of a range of media types in thousandths, if it is this one.
fn weight_of(range: &str, kind: &str) -> Option<u32> {
    let mut parts = range.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case(kind) {
        return None;
    }
    let weight = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("q")
            .then_some(value.trim())
    });
    let weight = weight.map_or(Ok(1.0), str::parse::<f64>);
    // What is no weight is none.
    let weight = weight.ok().filter(|weight| (0.0..=1.0).contains(weight));
    Some(weight.map_or(0, |weight| (weight * 1000.0).round() as u32))
}

async fn watch(
    State(state): State<ApiState>,
    caller: SocketCall,
    ListFilter(_): ListFilter<SocketQuery>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let SocketCall { call, credential } = caller;
    state.app.note_read(&call, operation::GRAPHQL_LIVE).await?;
    let upgrade =
        upgrade.map_err(|_| Failure::field("upgrade", "this is a WebSocket; ask for one"))?;
    let upgrade = upgrade
        .max_message_size(MOST_SAID)
        .max_frame_size(MOST_SAID)
        .protocols([PROTOCOL]);
    if upgrade.selected_protocol().is_none() {
        let words = format!("ask for {PROTOCOL}");
        return Err(Failure::field("sec-websocket-protocol", words).into());
    }
    let place = state.sockets.take()?;
    let stop = state.sockets.stop.clone();
    Ok(upgrade.on_upgrade(move |socket| async move {
        let context = call.context.clone();
        let asks_again = LiveCaller {
            context: context.clone(),
            credential,
        };
        let caller = GraphqlCaller {
            app: state.app.clone(),
            attempt: attempts(&state, &context),
            call: None,
            context,
        };
        let (limits, who) = (Arc::clone(&state.limits), call.who);
        let count = move |requests| (0..requests).try_for_each(|_| limits.take_caller(&who));
        let (socket, said) = LiveSocket::new(socket, state.app, asks_again.clone(), stop, place);
        socket.follow(live(caller, asks_again, count, said)).await;
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &'static str) -> AnswerMedia {
        let mut headers = HeaderMap::new();
        if !accept.is_empty() {
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        }
        AnswerMedia::wanted(&headers)
    }

    #[test]
    fn only_who_asks_for_json_and_nothing_else_gets_it() {
        for own in [
            "",
            "*/*",
            "application/*",
            "application/graphql-response+json",
            "application/json;q=0.9, application/graphql-response+json",
            "application/graphql-response+json; charset=utf-8, application/json; charset=utf-8",
            "APPLICATION/GraphQL-Response+JSON",
            "text/html",
            "application/json;q=0",
            "application/json;q=many",
            "application/json, */*",
        ] {
            assert_eq!(wanted(own), AnswerMedia::Own, "{own}");
        }
        for json in [
            "application/json",
            "application/json; charset=utf-8",
            "application/graphql-response+json;q=0.5, application/json",
            "application/json, */*;q=0.1",
            "text/html, application/json;q=0.2",
        ] {
            assert_eq!(wanted(json), AnswerMedia::Json, "{json}");
        }
    }
}
