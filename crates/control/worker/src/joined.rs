//! From joining to leaving.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nimbus_control_runs::{
    DriverSettings, ProgramSettings, RemoteCarrier, RunDriver, RunLimits, TenantPrograms,
};
use nimbus_control_wire::{JoinWorker, WorkerAbilities, WorkerOrders, WorkerView};
use nimbus_core::{ErrorCode, Result};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::queue::RemoteQueue;
use crate::server::WorkerServer;

/// How often a worker says that it is there, and hears what it is to do.
const BEAT: Duration = Duration::from_secs(2);
/// A sign of life that takes longer is worth less than the next one.
const BEAT_TIME: Duration = Duration::from_secs(5);

/// How a worker joins.
#[derive(Debug)]
pub struct WorkerOptions {
    pub server: String,
    /// Of a service account that may join.
    pub key: String,
    pub name: String,
    pub limits: RunLimits,
    pub programs: ProgramSettings,
    pub abilities: WorkerAbilities,
    /// Whether a network without TLS will do.
    pub plain: bool,
}

/// A worker that takes runs.
#[derive(Debug)]
pub struct JoinedWorker {
    view: WorkerView,
    server: WorkerServer,
    driver: RunDriver,
    beats: JoinHandle<()>,
    refused: CancellationToken,
}

impl JoinedWorker {
    /// Joins, and takes runs from then on.
    ///
    /// # Errors
    ///
    /// When the server does not answer or refuses it, or its folder cannot be used.
    pub async fn join(options: WorkerOptions) -> Result<Self> {
        let folder = options.programs.folder.clone();
        let settings = DriverSettings::of_folder(&folder, options.limits)?;
        let id = settings.server;
        let server = WorkerServer::new(&options.server, options.key, id, options.plain)?;
        let slots = u32::try_from(options.limits.at_once).unwrap_or(u32::MAX);
        let join = JoinWorker {
            id: id.to_string(),
            name: options.name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            slots,
            abilities: options.abilities,
        };
        let view = server.ask("/api/v1/workers", &json!(join)).await?;
        let running = Arc::new(AtomicU32::new(0));
        let refused = CancellationToken::new();
        let queue = RemoteQueue::new(server.clone(), Arc::clone(&running));
        let programs = TenantPrograms::new(options.programs);
        let carrier = RemoteCarrier::new(Arc::new(server.clone()), programs);
        let driver = RunDriver::start_on(
            Arc::new(queue),
            Arc::new(carrier),
            options.limits,
            Arc::new(Notify::new()),
        );
        let beats = Beats {
            server: server.clone(),
            join,
            running,
            refused: refused.clone(),
        };
        Ok(Self {
            view,
            beats: tokio::spawn(beats.go_on()),
            server,
            driver,
            refused,
        })
    }

    pub fn view(&self) -> &WorkerView {
        &self.view
    }

    /// Returns when the server no longer takes this worker's key.
    pub async fn refused(&self) {
        self.refused.cancelled().await;
    }

    /// Takes no more runs, hands those back that are under way at their next step, and leaves.
    pub async fn stop(self) {
        self.driver.stop().await;
        self.beats.abort();
        if let Err(error) = self.server.leave().await
            && !self.refused.is_cancelled()
        {
            warn!(error = %error.log_text(), "the server was not told that this worker leaves");
        }
    }
}

/// Says again and again that the worker is there.
struct Beats {
    server: WorkerServer,
    join: JoinWorker,
    running: Arc<AtomicU32>,
    refused: CancellationToken,
}

impl Beats {
    async fn go_on(self) {
        let mut draining = false;
        loop {
            tokio::time::sleep(BEAT).await;
            let body = json!({"running": self.running.load(Ordering::Relaxed)});
            let path = self.server.path("/beat");
            let beat = self
                .server
                .once::<WorkerOrders>(&path, &body, BEAT_TIME)
                .await;
            match beat {
                Ok(orders) => {
                    if orders.drain != draining {
                        info!(drain = orders.drain, "the operator decides about new runs");
                    }
                    draining = orders.drain;
                }
                Err(failure) if failure.again => {
                    warn!(error = %failure.error.log_text(), "the server does not hear this worker");
                }
                // A server that was set up anew, or a database from a backup, does not know it.
                Err(failure) if failure.error.code() == ErrorCode::RESOURCE_NOT_FOUND => {
                    let join = json!(self.join);
                    let joined = self.server.ask::<WorkerView>("/api/v1/workers", &join);
                    if let Err(error) = joined.await {
                        warn!(error = %error.log_text(), "the server does not let this worker join again");
                    }
                }
                Err(failure) => {
                    warn!(error = %failure.error.log_text(), "the server refuses this worker");
                    self.refused.cancel();
                    return;
                }
            }
        }
    }
}
