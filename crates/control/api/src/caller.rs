//! Who sends a request: a bearer token, an API key, or the console's cookie.

use std::sync::{Arc, OnceLock};

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use nimbus_control_app::{Call, Failure, Identity, RequestContext};
use nimbus_control_auth::csrf;
use nimbus_core::{Error, ErrorCode, TraceId};
use tracing::Span;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::pipeline::header_text;
use crate::problem::ApiError;
use crate::{ApiState, cookies};

/// The circumstances of a request, before its caller is known.
pub(crate) struct RequestCircumstances(pub(crate) RequestContext);

impl FromRequestParts<ApiState> for RequestCircumstances {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, ApiError> {
        Ok(Self(context(parts)))
    }
}

/// Tells the pipeline who called, once that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownCall(pub(crate) Arc<OnceLock<Call>>);

/// A request whose caller is known. Asking for one is asking for a sign-in.
pub(crate) struct SignedCall(pub(crate) Call);

impl FromRequestParts<ApiState> for SignedCall {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let known = parts.extensions.get::<KnownCall>().cloned();
        // Somebody before us asked already, for the same request.
        if let Some(call) = known.as_ref().and_then(|known| known.0.get()) {
            return Ok(Self(call.clone()));
        }
        let context = context(parts);
        let who = identify(parts, state, &context).await?;
        state.limits.take_caller(&who)?;
        let call = Call { who, context };
        name(state, &call);
        if let Some(known) = known {
            known.0.get_or_init(|| call.clone());
        }
        Ok(Self(call))
    }
}

/// As [`SignedCall`], for a worker: what a run writes is not counted as what somebody asks, for a run that had to wait
/// would lose its lease. Which operation it is decides whether the caller may; everybody else is refused there.
pub(crate) struct WorkerSigned(pub(crate) Call);

impl FromRequestParts<ApiState> for WorkerSigned {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let known = parts.extensions.get::<KnownCall>().cloned();
        let context = context(parts);
        let who = identify(parts, state, &context).await?;
        let ip = context.ip;
        let call = Call { who, context };
        name(state, &call);
        if let Some(known) = known {
            known.0.get_or_init(|| call.clone());
        }
        if !state.app.is_worker(&call) {
            state.limits.take_caller(&call.who)?;
        } else {
            state.limits.worker_proved(ip);
        }
        Ok(Self(call))
    }
}

/// As [`SignedCall`], for a socket: with what its caller proved who they are, to be asked again later.
///
/// A browser opens sockets for any site and sends its cookies along, so a cookie counts only from our own pages. Browsers
/// cannot send headers with a socket, so a token may be in the query, here and nowhere else.
pub(crate) struct SocketCall {
    pub(crate) call: Call,
    pub(crate) credential: Zeroizing<String>,
}

impl FromRequestParts<ApiState> for SocketCall {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let context = context(parts);
        let credential = socket_credential(parts, state)?;
        let who = state.app.authenticate(&context, &credential).await?;
        state.limits.take_caller(&who)?;
        let call = Call { who, context };
        name(state, &call);
        if let Some(known) = parts.extensions.get::<KnownCall>() {
            known.0.get_or_init(|| call.clone());
        }
        Ok(Self { call, credential })
    }
}

pub(crate) fn socket_credential(
    parts: &Parts,
    state: &ApiState,
) -> Result<Zeroizing<String>, Failure> {
    if let Some(value) = header_text(&parts.headers, header::AUTHORIZATION) {
        let bearer = value
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let (_, token) = bearer.ok_or_else(Failure::not_signed_in)?;
        return Ok(Zeroizing::new(token.trim().to_owned()));
    }
    let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
    let given = query.ok().and_then(|Query(pairs)| {
        let mut tokens = pairs.into_iter().filter(|(name, _)| name == "access_token");
        tokens.next().map(|(_, value)| value)
    });
    if let Some(token) = given {
        return Ok(Zeroizing::new(token));
    }
    let token =
        cookies::read(&parts.headers, cookies::SESSION).ok_or_else(Failure::not_signed_in)?;
    ensure_own_origin(state, &parts.headers)?;
    Ok(Zeroizing::new(token.to_owned()))
}

async fn identify(
    parts: &Parts,
    state: &ApiState,
    context: &RequestContext,
) -> Result<Identity, Failure> {
    if let Some(value) = header_text(&parts.headers, header::AUTHORIZATION) {
        let (scheme, token) = value.split_once(' ').ok_or_else(Failure::not_signed_in)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Failure::not_signed_in());
        }
        return state.app.authenticate(context, token.trim()).await;
    }
    let token =
        cookies::read(&parts.headers, cookies::SESSION).ok_or_else(Failure::not_signed_in)?;
    let who = state.app.authenticate(context, token).await?;
    let session = who.session.ok_or_else(Failure::not_signed_in)?;
    ensure_own(state, &parts.method, &parts.headers, session)?;
    Ok(who)
}

/// A cookie counts only for requests that the console itself makes.
fn ensure_own(
    state: &ApiState,
    method: &Method,
    headers: &HeaderMap,
    session: Uuid,
) -> Result<(), Failure> {
    let request = csrf::CsrfRequest {
        safe_method: method.is_safe(),
        origin: header_text(headers, header::ORIGIN),
        csrf_header: header_text(headers, csrf::HEADER),
    };
    csrf::check(state.app.server_keys(), session, &state.origins, request)
        .map_err(|forged| Error::new(ErrorCode::REQUEST_FORGED, forged.to_string()).into())
}

/// For requests that carry only the refresh cookie, which has no session to take a code from.
pub(crate) fn ensure_own_origin(state: &ApiState, headers: &HeaderMap) -> Result<(), Failure> {
    let origin = header_text(headers, header::ORIGIN);
    if origin.is_some_and(|origin| state.origins.iter().any(|own| own == origin)) {
        return Ok(());
    }
    Err(Error::new(ErrorCode::REQUEST_FORGED, csrf::Forged::Origin.to_string()).into())
}

/// From here on lines of the log say whose request it is.
fn name(state: &ApiState, call: &Call) {
    let (tenant, user) = (call.who.home.to_string(), call.who.user.to_string());
    let span = Span::current();
    span.record("tenant_id", &tenant);
    span.record("user_id", &user);
    state.app.store().metrics().user_seen(&user);
}

fn context(parts: &Parts) -> RequestContext {
    parts
        .extensions
        .get()
        .cloned()
        .unwrap_or_else(|| RequestContext {
            ip: None,
            location: None,
            user_agent: None,
            trace_id: TraceId::random(),
            now: jiff::Timestamp::now(),
        })
}
