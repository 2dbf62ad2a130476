//! The monitor over gRPC: the services that programs and constructed components talk to, and the
//! calls back into them.

mod admission;
mod callbacks;
mod convert;
mod engine;
mod meter;
mod monitor;
mod options;
mod version_range;

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use nimbus_engine_proto::MAX_MESSAGE_BYTES;
use nimbus_engine_proto::engine_server::EngineServer;
use nimbus_engine_proto::resource_monitor_server::ResourceMonitorServer;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::{Router, TcpIncoming};
use tower::layer::util::{Identity, Stack};

use crate::confinement::RequestLimits;
use crate::monitor::{Monitor, MonitorPorts, MonitorSettings};
use admission::Admission;
use callbacks::CallbackClients;
use engine::EngineService;
use meter::{Meter, MeterLayer};
use monitor::MonitorService;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A free port of the loopback interface.
    Loopback,
    /// A socket at this path, for programs without a network. The path must be free.
    UnixSocket(PathBuf),
}

/// The monitor and the engine's own service, served at one address until dropped or stopped.
pub struct MonitorServer {
    monitor: Arc<Monitor>,
    running: RunningServer,
}

impl MonitorServer {
    pub async fn start(
        listen: &Listen,
        mut settings: MonitorSettings,
        ports: MonitorPorts,
    ) -> io::Result<Self> {
        let bound = Bound::new(listen).await?;
        settings.context.monitor_endpoint.clone_from(&bound.address);
        let events = Arc::clone(&ports.events);
        let confinement = settings.confinement.clone();
        let monitor = Arc::new(Monitor::new(settings, ports));
        let meter = confinement.as_ref().map(|confined| {
            let monitor = Arc::downgrade(&monitor);
            Meter::new(confined.requests, move |error| {
                if let Some(monitor) = monitor.upgrade() {
                    let _ = monitor.abort_with(None, error);
                }
            })
        });
        let callbacks = CallbackClients::new(confinement, meter.clone());
        let service = MonitorService::new(Arc::clone(&monitor), callbacks);
        let most = largest_message(meter.as_ref());
        let service = ResourceMonitorServer::new(service)
            .max_decoding_message_size(most)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let engine = engine_service(events, most);
        let router = server(meter.clone()).add_service(service);
        Ok(Self {
            monitor,
            running: bound.serve(router.add_service(engine), meter.as_ref()),
        })
    }

    /// What programs are given to connect to: `host:port` or `unix:path`.
    pub fn address(&self) -> &str {
        &self.running.address
    }

    pub fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }

    /// Lets waiting calls end and closes the address.
    pub async fn stop(mut self) {
        self.monitor.release();
        self.running.stop().await;
    }
}

/// The engine's own service alone, for plugins that run without a program.
pub struct EngineEndpoint {
    running: RunningServer,
}

impl EngineEndpoint {
    /// With limits for code that is not trusted.
    pub async fn start(
        listen: &Listen,
        events: Arc<dyn EventSink>,
        limits: Option<RequestLimits>,
    ) -> io::Result<Self> {
        let bound = Bound::new(listen).await?;
        let meter = limits.map(|limits| {
            let events = Arc::clone(&events);
            Meter::new(limits, move |error| {
                events.emit(EngineEvent::Diagnostic(Diagnostic {
                    severity: Severity::Error,
                    urn: None,
                    message: error.to_string(),
                    stream_id: 0,
                    ephemeral: false,
                }));
            })
        });
        let engine = engine_service(events, largest_message(meter.as_ref()));
        let router = server(meter.clone()).add_service(engine);
        Ok(Self {
            running: bound.serve(router, meter.as_ref()),
        })
    }

    pub fn address(&self) -> &str {
        &self.running.address
    }

    pub async fn stop(mut self) {
        self.running.stop().await;
    }
}

fn engine_service(events: Arc<dyn EventSink>, most: usize) -> EngineServer<EngineService> {
    EngineServer::new(EngineService::new(events))
        .max_decoding_message_size(most)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// Room for two messages of a program that is not trusted.
fn largest_message(meter: Option<&Arc<Meter>>) -> usize {
    let metered = meter.map(|meter| {
        let limits = meter.limits();
        limits.message_bytes.min(limits.under_way_bytes() / 2)
    });
    let metered = metered.and_then(|bytes| usize::try_from(bytes).ok());
    metered.map_or(MAX_MESSAGE_BYTES, |bytes| bytes.min(MAX_MESSAGE_BYTES))
}

/// A server whose requests are counted, for programs that are not trusted.
type MeteredServer = Stack<MeterLayer, Identity>;

/// A program may have any number of registrations under way; none may wait for another to end. One
/// that is not trusted is turned away when they are too many.
fn server(meter: Option<Arc<Meter>>) -> Server<MeteredServer> {
    let streams = meter.as_ref().map(|meter| meter.limits().streams);
    Server::builder()
        .max_concurrent_streams(Some(streams.unwrap_or(u32::MAX)))
        .layer(MeterLayer(meter))
}

/// An address that is taken and not served yet.
struct Bound {
    address: String,
    listener: MonitorListener,
}

enum MonitorListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Bound {
    async fn new(listen: &Listen) -> io::Result<Self> {
        match listen {
            Listen::Loopback => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
                Ok(Self {
                    address: listener.local_addr()?.to_string(),
                    listener: MonitorListener::Tcp(listener),
                })
            }
            Listen::UnixSocket(path) => Ok(Self {
                address: format!("unix:{}", path.display()),
                listener: MonitorListener::Unix(UnixListener::bind(path)?),
            }),
        }
    }

    fn serve(self, router: Router<MeteredServer>, meter: Option<&Arc<Meter>>) -> RunningServer {
        let connections = meter.map(|meter| meter.limits().connections);
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let task = tokio::spawn(async move {
            let served = match self.listener {
                MonitorListener::Tcp(listener) => {
                    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                    router.serve_with_incoming_shutdown(incoming, stopped).await
                }
                MonitorListener::Unix(listener) => {
                    let incoming = Admission::new(listener, connections).connections();
                    router.serve_with_incoming_shutdown(incoming, stopped).await
                }
            };
            if let Err(error) = served {
                tracing::warn!(%error, "a server of the engine ended");
            }
        });
        RunningServer {
            address: self.address,
            stop,
            task,
        }
    }
}

struct RunningServer {
    address: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningServer {
    async fn stop(&mut self) {
        self.stop.cancel();
        // A peer that keeps its connection open must not keep the engine.
        self.task.abort();
        let _ = (&mut self.task).await;
        self.remove_socket();
    }

    fn remove_socket(&self) {
        if let Some(path) = self.address.strip_prefix("unix:") {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.task.abort();
        self.remove_socket();
    }
}
