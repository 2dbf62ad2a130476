//! `Idempotency-Key` on every request that makes something.
//!
//! Deployments and runs look at it themselves, in the transaction that makes them. Here is everything else.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, FromRequestParts as _, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use nimbus_control_app::{Call, Failure, KeptAnswer, RequestKey, operation};
use nimbus_control_auth::operation::{Need, Operation};
use nimbus_core::{Error, ErrorCode};
use serde_json::{Value, json};
use tracing::{Instrument as _, Span, warn};

use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::whole_body;
use crate::headers::RepeatKey;
use crate::pipeline::operation_of;
use crate::problem::ApiError;

/// No answer that is kept is larger; what makes something says little about it.
const MOST_ANSWER_BYTES: usize = 1024 * 1024;

/// These keep their answers themselves.
const BY_THEMSELVES: &[Operation] = &[
    operation::CREATE_DEPLOYMENT,
    operation::DEPLOY,
    operation::DESTROY,
    operation::PREVIEW,
    operation::ROLL_BACK,
    operation::REFRESH_DEPLOYMENT,
    operation::DEPLOY_STACK,
];

/// These change nothing, or nothing the second time.
const WITHOUT: &[Operation] = &[
    operation::EXPLAIN,
    operation::EXPORT_STATE,
    operation::STORE_CONTENTS,
    operation::JOIN_WORKER,
    operation::DRAIN_WORKER,
    operation::RESUME_WORKER,
    operation::BEAT_WORKER,
    operation::TAKE_RUN,
    operation::CALL_RUN,
];

/// Their answers have a secret, which is not kept.
const SHOWN_ONCE: &[Operation] = &[
    operation::CREATE_KEY,
    operation::CREATE_WEBHOOK,
    operation::ROTATE_WEBHOOK,
];

fn is_in(operation: Operation, list: &[Operation]) -> bool {
    list.iter().any(|other| other.id == operation.id)
}

/// Whether an operation takes a key.
pub(crate) fn has_key(operation: Operation) -> bool {
    operation.method == "POST"
        && matches!(operation.need, Need::Permission(_))
        && !is_in(operation, WITHOUT)
}

/// Whether a key is looked at here.
fn takes_key(operation: Operation) -> bool {
    has_key(operation) && !is_in(operation, BY_THEMSELVES)
}

pub(crate) async fn once(
    State(state): State<ApiState>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let Some(operation) = operation_of(&request).filter(|operation| takes_key(*operation)) else {
        return Ok(next.run(request).await);
    };
    let (mut parts, body) = request.into_parts();
    let key = RepeatKey::from_request_parts(&mut parts, &state).await?;
    let Some(key) = key.into_text() else {
        return Ok(next.run(Request::from_parts(parts, body)).await);
    };
    let SignedCall(call) = SignedCall::from_request_parts(&mut parts, &state).await?;
    let bytes = Bytes::from_request(Request::from_parts(parts.clone(), body), &state).await;
    let bytes = bytes.map_err(|rejection| whole_body(&rejection))?;
    let asked: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let path = parts.uri.path_and_query().map(ToString::to_string);
    let key = RequestKey {
        key,
        request: json!([path, asked]),
    };
    if let Some(earlier) = state.app.request_begin(&call, operation, &key).await? {
        return again(earlier).map_err(ApiError::from);
    }
    let request = Request::from_parts(parts, Body::from(bytes));
    // By itself: whoever asked may go away in the middle, and the key says what became of the request.
    let carried_out =
        tokio::spawn(carry_out(state, call, operation, key, request, next).in_current_span());
    carried_out.await.map_err(|error| {
        let failed = Error::new(ErrorCode::INTERNAL, "a request ended in the middle");
        Failure::from(failed.with_source(error)).into()
    })
}

async fn carry_out(
    state: ApiState,
    call: Call,
    operation: Operation,
    key: RequestKey,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    let (response, answer) = match response.status().is_success() {
        true => kept(operation, response).await,
        false => (response, None),
    };
    if let Err(failure) = state.app.request_end(&call, &key, answer).await {
        let error = failure.error.log_text();
        Span::current()
            .in_scope(|| warn!(%error, "the answer to a request with a key was not kept"));
    }
    response
}

/// An answer, and what is kept of it.
async fn kept(operation: Operation, response: Response) -> (Response, Option<KeptAnswer>) {
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, MOST_ANSWER_BYTES)
        .await
        .unwrap_or_default();
    let shown_once = is_in(operation, SHOWN_ONCE);
    let answer = KeptAnswer {
        status: parts.status.as_u16(),
        body: (!shown_once).then(|| serde_json::from_slice(&bytes).unwrap_or_default()),
    };
    let response = Response::from_parts(parts, Body::from(bytes));
    (response, Some(answer))
}

/// The answer of before.
fn again(earlier: KeptAnswer) -> Result<Response, Failure> {
    let Some(body) = earlier.body else {
        let message = "this was done; its answer had a secret, which is shown once and not kept";
        return Err(Error::new(ErrorCode::ANSWER_GIVEN_ONCE, message)
            .with_help("if it did not arrive, revoke what was made and ask with a new key")
            .into());
    };
    let status = StatusCode::from_u16(earlier.status).unwrap_or(StatusCode::OK);
    let repeated = [("idempotent-replayed", "true")];
    Ok(match body {
        Value::Null => (status, repeated).into_response(),
        body => {
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (status, repeated, kind, body.to_string()).into_response()
        }
    })
}
