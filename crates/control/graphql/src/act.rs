//! What a field does around its use case: knows who asks, waits for its turn, records what failed, and does once what is
//! to happen once.

use std::sync::Arc;

use async_graphql::{Context, Error as FieldError, ID};
use futures::future::BoxFuture;
use nimbus_control_app::{App, Call, Failure, KeptAnswer, RequestContext, RequestKey};
use nimbus_control_auth::operation::{Need, Operation};
use nimbus_core::{Error, ErrorCode, TenantId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tracing::warn;
use zeroize::Zeroizing;

use crate::fields::operation_of;
use crate::refusal::refused;

// The schema is read from signatures, where the library knows a result by this name.
pub(crate) use async_graphql::FieldResult;

/// Use cases of one request that run at once. Every one takes a connection to the database.
const AT_ONCE: usize = 4;

/// Asked before somebody tries a password.
pub type AttemptGate = Arc<dyn Fn() -> Result<(), Failure> + Send + Sync>;

/// Who asks, and for whom it is done.
#[derive(Clone)]
pub struct GraphqlCaller {
    pub app: App,
    /// Nobody, for documents that only sign in.
    pub call: Option<Call>,
    pub context: RequestContext,
    pub attempt: AttemptGate,
}

/// With what somebody who watches proved who they are, to be asked again.
#[derive(Clone)]
pub struct LiveCaller {
    pub context: RequestContext,
    pub credential: Zeroizing<String>,
}

/// One request, as its fields see it.
pub(crate) struct AskedRequest {
    pub(crate) caller: GraphqlCaller,
    turns: Semaphore,
}

impl AskedRequest {
    pub(crate) fn new(caller: GraphqlCaller) -> Self {
        Self {
            caller,
            turns: Semaphore::new(AT_ONCE),
        }
    }

    pub(crate) fn app(&self) -> &App {
        &self.caller.app
    }

    pub(crate) fn call(&self) -> Result<&Call, Failure> {
        self.caller.call.as_ref().ok_or_else(Failure::not_signed_in)
    }

    /// The tenant that is named by id or slug, or the caller's own.
    pub(crate) async fn tenant(&self, named: Option<&ID>) -> Result<TenantId, Failure> {
        let named = named.map(|id| id.as_str());
        self.app().choose_tenant(self.call()?, named).await
    }

    /// Waits until fewer of the request's use cases are under way.
    pub(crate) async fn in_turn<T>(&self, work: impl Future<Output = T>) -> T {
        // It is never closed.
        let _turn = self.turns.acquire().await.ok();
        work.await
    }
}

pub(crate) fn asked<'a>(ctx: &Context<'a>) -> FieldResult<&'a AskedRequest> {
    ctx.data::<AskedRequest>()
}

/// Carries out what a field of a query or a mutation is for. A failure of somebody who is signed in is recorded, unless it
/// was already.
pub(crate) fn act<'a, T: Send + 'a>(
    ctx: &'a Context<'_>,
    work: impl Future<Output = Result<T, Failure>> + Send + 'a,
) -> BoxFuture<'a, FieldResult<T>> {
    act_as(ctx, field_operation(ctx), work)
}

/// As [`act`], for a field whose operation does not follow from its name. Boxed here: use cases are large, and every
/// field would carry one on its stack.
pub(crate) fn act_as<'a, T: Send + 'a>(
    ctx: &'a Context<'_>,
    operation: Option<Operation>,
    work: impl Future<Output = Result<T, Failure>> + Send + 'a,
) -> BoxFuture<'a, FieldResult<T>> {
    Box::pin(async move {
        let asked = asked(ctx)?;
        let done = asked.in_turn(work).await;
        match done {
            Ok(value) => Ok(value),
            Err(failure) => Err(noted(asked, operation, &failure).await),
        }
    })
}

async fn noted(
    asked: &AskedRequest,
    operation: Option<Operation>,
    failure: &Failure,
) -> FieldError {
    if let (Some(call), Some(operation)) = (&asked.caller.call, operation)
        && let Err(other) = asked.app().note_failure(call, operation, failure).await
    {
        let error = other.error.log_text();
        warn!(%error, operation = operation.id, "a failure is not in the audit trail");
    }
    refused(failure, asked.caller.context.trace_id)
}

fn field_operation(ctx: &Context<'_>) -> Option<Operation> {
    operation_of(ctx.field().name())
}

/// The key under which a request happens once, with everything that it asks for.
pub(crate) fn repeat_key(
    ctx: &Context<'_>,
    key: Option<String>,
) -> Result<Option<RequestKey>, Failure> {
    let Some(key) = key else {
        return Ok(None);
    };
    let valid = (1..=200).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    if !valid {
        let words = "give 1 to 200 visible ASCII characters";
        return Err(Failure::field("idempotencyKey", words));
    }
    let arguments = ctx.field().arguments().unwrap_or_default();
    let arguments: Vec<_> = arguments
        .into_iter()
        .map(|(name, value)| json!([name.as_str(), value.into_json().unwrap_or_default()]))
        .collect();
    Ok(Some(RequestKey {
        key,
        request: json!([ctx.field().name(), arguments]),
    }))
}

/// As [`act`], once for each key. The answer of before is given again; `secret` says that it was given once and not kept.
pub(crate) fn act_once<'a, T: Serialize + DeserializeOwned + Send + Sync + 'a>(
    ctx: &'a Context<'_>,
    key: Option<String>,
    secret: bool,
    work: impl Future<Output = Result<T, Failure>> + Send + 'a,
) -> BoxFuture<'a, FieldResult<T>> {
    act(ctx, async move {
        let Some(key) = repeat_key(ctx, key)? else {
            return work.await;
        };
        let asked = ctx
            .data::<AskedRequest>()
            .map_err(|_| Failure::not_signed_in())?;
        let (app, call) = (asked.app(), asked.call()?);
        let operation = field_operation(ctx).filter(|one| matches!(one.need, Need::Permission(_)));
        let operation =
            operation.ok_or_else(|| Failure::new(ErrorCode::INTERNAL, "a field without a need"))?;
        if let Some(earlier) = app.request_begin(call, operation, &key).await? {
            return again(earlier);
        }
        let done = work.await;
        let answer = done.as_ref().ok().map(|value| KeptAnswer {
            status: 200,
            body: (!secret).then(|| serde_json::to_value(value).unwrap_or_default()),
        });
        if let Err(failure) = app.request_end(call, &key, answer).await {
            let error = failure.error.log_text();
            warn!(%error, "the answer to a request with a key was not kept");
        }
        done
    })
}

fn again<T: DeserializeOwned>(earlier: KeptAnswer) -> Result<T, Failure> {
    let Some(body) = earlier.body else {
        let message = "this was done; its answer had a secret, which is shown once and not kept";
        return Err(Error::new(ErrorCode::ANSWER_GIVEN_ONCE, message)
            .with_help("if it did not arrive, revoke what was made and ask with a new key")
            .into());
    };
    let read: Result<T, _> = serde_json::from_value::<T>(match body {
        Value::Null => json!(true),
        body => body,
    });
    read.map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))
}
