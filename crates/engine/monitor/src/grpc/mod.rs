//! The monitor over gRPC: the services that programs and constructed components talk to, and the
//! calls back into them.

mod callbacks;
mod convert;
mod engine;
mod monitor;
mod options;
mod version_range;

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use nimbus_engine_ports::EventSink;
use nimbus_engine_proto::MAX_MESSAGE_BYTES;
use nimbus_engine_proto::engine_server::EngineServer;
use nimbus_engine_proto::resource_monitor_server::ResourceMonitorServer;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::{Router, TcpIncoming};

use crate::monitor::{Monitor, MonitorPorts, MonitorSettings};
use callbacks::CallbackClients;
use engine::EngineService;
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
        let callbacks = CallbackClients::new(settings.confinement.clone());
        let monitor = Arc::new(Monitor::new(settings, ports));
        let service = MonitorService::new(Arc::clone(&monitor), callbacks);
        let service = ResourceMonitorServer::new(service)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let router = server()
            .add_service(service)
            .add_service(engine_service(events));
        Ok(Self {
            monitor,
            running: bound.serve(router),
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
    pub async fn start(listen: &Listen, events: Arc<dyn EventSink>) -> io::Result<Self> {
        let bound = Bound::new(listen).await?;
        let router = server().add_service(engine_service(events));
        Ok(Self {
            running: bound.serve(router),
        })
    }

    pub fn address(&self) -> &str {
        &self.running.address
    }

    pub async fn stop(mut self) {
        self.running.stop().await;
    }
}

fn engine_service(events: Arc<dyn EventSink>) -> EngineServer<EngineService> {
    EngineServer::new(EngineService::new(events))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// A program may have any number of registrations under way; none may wait for another to end.
fn server() -> Server {
    Server::builder().max_concurrent_streams(Some(u32::MAX))
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

    fn serve(self, router: Router) -> RunningServer {
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let task = tokio::spawn(async move {
            let served = match self.listener {
                MonitorListener::Tcp(listener) => {
                    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                    router.serve_with_incoming_shutdown(incoming, stopped).await
                }
                MonitorListener::Unix(listener) => {
                    let incoming = UnixListenerStream::new(listener);
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
