//! Documents over a socket, in the protocol graphql-transport-ws.
//!
//! Whoever opened the socket proved who they are then. They are asked again for every document, so that nothing is
//! answered to somebody who may not any more; what is being watched asks by itself (`subscriptions`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_graphql::http::{WebSocket, WebSocketProtocols, WsMessage};
use async_graphql::{Data, Executor, Request, Response};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use nimbus_control_app::{Call, Failure, operation};
use nimbus_core::{Error, ErrorCode, TraceId};
use tracing::{Instrument as _, warn};

use crate::act::{GraphqlCaller, LiveCaller};
use crate::refusal::{in_form, refused_document};
use crate::request::{LiveDocument, checked};
use crate::schema;

/// The name under which a client asks for it.
pub const PROTOCOL: &str = "graphql-transport-ws";

/// Documents of one socket at once.
const MOST_OPEN: usize = 50;

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveMessage {
    Text(String),
    /// With the protocol's own number.
    Close(u16, String),
}

/// Answers what a client says on its socket. `count` is asked with how many requests a document stands for.
pub fn live<S>(
    caller: GraphqlCaller,
    live: LiveCaller,
    count: impl Fn(usize) -> Result<(), Failure> + Send + Sync + 'static,
    said: S,
) -> impl Stream<Item = LiveMessage> + Send + Unpin
where
    S: Stream<Item = Vec<u8>> + Send + Unpin + 'static,
{
    let executor = LiveExecutor {
        caller,
        live,
        count: Arc::new(count),
        open: Arc::default(),
    };
    let socket = WebSocket::new(executor, said, WebSocketProtocols::GraphQLWS);
    socket
        .map(|message| match message {
            WsMessage::Text(text) => LiveMessage::Text(text),
            WsMessage::Close(code, reason) => LiveMessage::Close(code, reason),
        })
        .boxed()
}

#[derive(Clone)]
struct LiveExecutor {
    caller: GraphqlCaller,
    live: LiveCaller,
    count: Arc<dyn Fn(usize) -> Result<(), Failure> + Send + Sync>,
    open: Arc<AtomicUsize>,
}

impl LiveExecutor {
    /// Reads a document, and counts the requests that it stands for beside the first.
    fn read(&self, request: Request) -> Result<LiveDocument, Failure> {
        let document = checked(request)?;
        (self.count)(document.root_fields.saturating_sub(1))?;
        Ok(document)
    }

    /// What is refused is recorded.
    async fn noted(&self, call: &Call, failure: Failure) -> Failure {
        let operation = operation::GRAPHQL_LIVE;
        let noted = self.caller.app.note_failure(call, operation, &failure);
        if let Err(other) = noted.await {
            warn!(error = %other.error.log_text(), "a refused document is not in the audit trail");
        }
        failure
    }

    async fn begin(self, request: Request) -> BoxStream<'static, Response> {
        let mut context = self.live.context.clone();
        context.now = Timestamp::now();
        context.trace_id = TraceId::random();
        let trace_id = context.trace_id;
        let place = Place::take(&self.open);
        let begun = async {
            let place = place.ok_or_else(|| Failure::wait(1))?;
            // Also what is refused costs something.
            (self.count)(1)?;
            let app = &self.caller.app;
            let who = app.authenticate(&context, &self.live.credential).await?;
            let call = Call {
                who,
                context: context.clone(),
            };
            let document = match self.read(request) {
                Ok(document) => document,
                Err(failure) => return Err(self.noted(&call, failure).await),
            };
            let caller = GraphqlCaller {
                call: Some(call),
                context,
                ..self.caller.clone()
            };
            let answers = schema::stream(caller, self.live.clone(), document.request);
            let answers = match document.changes {
                true => finished(answers, trace_id),
                false => answers,
            };
            Ok::<_, Failure>((answers, place))
        };
        match begun.await {
            Ok((responses, place)) => responses
                .map(move |mut response| {
                    let _ = &place;
                    let errors = response.errors.into_iter();
                    response.errors = errors.map(|error| in_form(error, trace_id)).collect();
                    response
                })
                .boxed(),
            Err(failure) => {
                let error = refused_document(&failure, trace_id);
                stream::iter([Response::from_errors(vec![error])]).boxed()
            }
        }
    }
}

/// By itself: whoever asked may go away in the middle, and what changes is finished.
fn finished(
    answers: BoxStream<'static, Response>,
    trace_id: TraceId,
) -> BoxStream<'static, Response> {
    let task = tokio::spawn(answers.collect::<Vec<_>>().in_current_span());
    let answers = async move {
        let done = task.await.unwrap_or_else(|error| {
            let message = "a document ended in the middle";
            let failure = Error::new(ErrorCode::INTERNAL, message).with_source(error);
            let error = refused_document(&failure.into(), trace_id);
            vec![Response::from_errors(vec![error])]
        });
        stream::iter(done)
    };
    stream::once(answers).flatten().boxed()
}

impl Executor for LiveExecutor {
    async fn execute(&self, request: Request) -> Response {
        let mut answers = self.clone().begin(request).await;
        answers.next().await.unwrap_or_default()
    }

    fn execute_stream(
        &self,
        request: Request,
        _: Option<Arc<Data>>,
    ) -> BoxStream<'static, Response> {
        stream::once(self.clone().begin(request)).flatten().boxed()
    }
}

/// One of the documents that a socket may have open; given back when it is dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        let taken = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
            (open < MOST_OPEN).then_some(open + 1)
        });
        taken.ok().map(|_| Self(Arc::clone(open)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
