//! A line to a plugin: one connection, and calls that say how they failed.
//!
//! When a call fails it matters whether the plugin *answered* that it failed, or whether no valid
//! answer came: in the second case nobody knows what happened. gRPC libraries blur the two, since
//! a broken connection and an undecodable message are reported as a status too. So the channel is
//! watched from below: only a status that was seen on the wire counts as an answer.
//!
//! A line is never re-dialled. When the plugin dies its port may go to somebody else.

use std::io;
use std::num::NonZeroU16;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use hyper_util::rt::TokioIo;
use nimbus_engine_proto::MAX_MESSAGE_BYTES;
use nimbus_engine_proto::analyzer_client::AnalyzerClient;
use nimbus_engine_proto::resource_provider_client::ResourceProviderClient;
use nimbus_engine_sandbox::Dialer;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use tower::Service;

use crate::process::PluginProcess;

/// How long the end of a process may lag behind the end of its connection.
const EXIT_LAG: Duration = Duration::from_millis(500);
/// Between two attempts to reach a plugin that has just started.
const REDIAL: Duration = Duration::from_millis(20);

/// Why a call brought no result.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The plugin answered with an error.
    Answered(Status),
    /// No valid answer came: the plugin died, hung, or sent nonsense.
    Lost { message: String },
    /// The plugin was gone before the call, so nothing was asked.
    Gone { message: String },
    /// We did not wait for the answer, which would have changed nothing.
    Abandoned,
}

pub(crate) struct PluginConnection {
    /// Names the plugin in messages.
    label: String,
    channel: Observed,
    /// `None` when somebody else started the plugin.
    process: Option<PluginProcess>,
    /// The largest answer that is read.
    most_bytes: usize,
}

/// The largest answer of a stranger's plugin. Many calls are under way at a time, and what is read takes
/// many times as much as what was sent.
const MOST_OF_STRANGERS: usize = 16 << 20;

impl PluginConnection {
    /// Connects, trying again for as long as the plugin lives and `patience` lasts: some announce
    /// their port a moment before they listen.
    pub(crate) async fn open(
        label: &str,
        port: NonZeroU16,
        process: Option<PluginProcess>,
        inside: Option<&Dialer>,
        patience: Duration,
    ) -> Result<Self, String> {
        let deadline = Instant::now() + patience;
        loop {
            let error = match dial(port, inside).await {
                Ok(channel) => {
                    let channel = Observed(channel);
                    return Ok(Self {
                        label: label.to_owned(),
                        channel,
                        process,
                        most_bytes: MAX_MESSAGE_BYTES,
                    });
                }
                Err(error) => error,
            };
            let ended = process.as_ref().and_then(PluginProcess::exit_status);
            if let Some(status) = ended {
                return Err(format!("it ended ({status}) before it could be reached"));
            }
            if Instant::now() + REDIAL >= deadline {
                return Err(format!("nobody answers on its port {port}: {error}"));
            }
            tokio::time::sleep(REDIAL).await;
        }
    }

    /// The same for a plugin that is code of a stranger's.
    pub(crate) fn of_stranger(self, strangers: bool) -> Self {
        let most_bytes = match strangers {
            true => MOST_OF_STRANGERS,
            false => self.most_bytes,
        };
        Self { most_bytes, ..self }
    }

    pub(crate) fn process(&self) -> Option<&PluginProcess> {
        self.process.as_ref()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.process
            .as_ref()
            .is_none_or(|process| process.exit_status().is_none())
    }

    pub(crate) fn provider(&self) -> ResourceProviderClient<Observed> {
        ResourceProviderClient::new(self.channel.clone())
            .max_decoding_message_size(self.most_bytes)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(crate) fn analyzer(&self) -> AnalyzerClient<Observed> {
        AnalyzerClient::new(self.channel.clone())
            .max_decoding_message_size(self.most_bytes)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Makes one call, waiting no longer than `limit`.
    pub(crate) async fn call<M, R, F>(
        &self,
        method: &'static str,
        limit: Duration,
        message: M,
        send: impl FnOnce(Request<M>) -> F,
    ) -> Result<R, CallError>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let ended = self.process.as_ref().and_then(PluginProcess::exit_status);
        if let Some(status) = ended {
            let message = format!("{} has ended ({status})", self.label);
            return Err(CallError::Gone { message });
        }
        let answer = PeerStatus::default();
        let mut request = Request::new(message);
        request.extensions_mut().insert(answer.clone());
        match tokio::time::timeout(limit, Box::pin(send(request))).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) if answer.is(&status) => Err(CallError::Answered(status)),
            Ok(Err(status)) => Err(self.lost(method, &status).await),
            Err(_) => {
                let message = format!("{} did not answer {method} within {limit:?}", self.label);
                Err(CallError::Lost { message })
            }
        }
    }

    async fn lost(&self, method: &str, status: &Status) -> CallError {
        let exit = match &self.process {
            Some(process) => process.wait(EXIT_LAG).await,
            None => None,
        };
        let message = match exit {
            Some(exit) => format!("{} ended ({exit}) during {method}", self.label),
            None => {
                let cause = status.message();
                format!("{} gave no valid answer to {method}: {cause}", self.label)
            }
        };
        CallError::Lost { message }
    }
}

async fn dial(
    port: NonZeroU16,
    inside: Option<&Dialer>,
) -> Result<Channel, tonic::transport::Error> {
    Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?
        .http2_adaptive_window(true)
        .connect_with_connector(Once {
            port,
            inside: inside.cloned(),
            used: false,
        })
        .await
}

/// Dials once and never again.
struct Once {
    port: NonZeroU16,
    /// Reaches a plugin that is alone in its network.
    inside: Option<Dialer>,
    used: bool,
}

impl Service<http::Uri> for Once {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let used = std::mem::replace(&mut self.used, true);
        let port = self.port.get();
        let inside = self.inside.clone();
        Box::pin(async move {
            if used {
                return Err(io::Error::new(
                    io::ErrorKind::NotConnected,
                    "the connection is lost",
                ));
            }
            let stream = match inside {
                Some(dialer) => {
                    let dialled = tokio::task::spawn_blocking(move || dialer.connect(port));
                    let stream = dialled.await.map_err(io::Error::other)??;
                    stream.set_nonblocking(true)?;
                    TcpStream::from_std(stream)?
                }
                None => TcpStream::connect(("127.0.0.1", port)).await?,
            };
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        })
    }
}

/// The status that the peer sent for one call, if any.
#[derive(Clone, Default)]
struct PeerStatus(Arc<AtomicI32>);

impl PeerStatus {
    fn see(&self, headers: &HeaderMap) {
        let code = headers
            .get("grpc-status")
            .and_then(|value| value.to_str().ok());
        if let Some(code) = code.and_then(|code| code.parse::<i32>().ok()) {
            self.0.store(code, Ordering::Relaxed);
        }
    }

    /// Whether this error is what the peer said. Zero means that it said nothing, or that all
    /// went well, which no error can be.
    fn is(&self, status: &Status) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        seen != 0 && seen == i32::from(status.code())
    }
}

/// A channel that notes the status of each answer as it comes off the wire.
#[derive(Clone)]
pub(crate) struct Observed(Channel);

impl Service<http::Request<Body>> for Observed {
    type Response = http::Response<ObservedBody>;
    type Error = tonic::transport::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = request
            .extensions()
            .get::<PeerStatus>()
            .cloned()
            .unwrap_or_default();
        let response = self.0.call(request);
        Box::pin(async move {
            let response = response.await?;
            answer.see(response.headers());
            Ok(response.map(|body| ObservedBody { body, answer }))
        })
    }
}

pub(crate) struct ObservedBody {
    body: Body,
    answer: PeerStatus,
}

impl http_body::Body for ObservedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(trailers) = frame.as_ref().and_then(|f| f.as_ref().ok()?.trailers_ref()) {
            self.answer.see(trailers);
        }
        Poll::Ready(frame)
    }
}
