//! The HTTP server, from its first to its last connection.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nimbus_control_app::{App, FanOut};
use nimbus_control_store::{SetupStatus, Store, StoreError};
use nimbus_control_valkey::ValkeyFanOut;
use nimbus_core::{Error, ErrorCode, Result};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use zeroize::Zeroizing;

use crate::api::{self, ApiOptions};
use crate::connections::{self, ConnectionLimits};
use crate::database::{Database, DatabaseLocation, DatabaseOptions, told_to_stop};
use crate::demo::{self, DemoSite};
use crate::http::{self, ServerState};
use crate::readiness::Readiness;
use crate::restoring;
use crate::runs::{self, RunOptions};
use crate::stopping::{self, StopClock};
use crate::workflows::{self, WorkflowOptions};

#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub listen: SocketAddr,
    pub database: DatabaseOptions,
    /// Folder with the keys of the installation; in the data directory if there is none. Servers on one
    /// database share it.
    pub keys: Option<PathBuf>,
    /// Name of the operator, as tenants see it.
    pub operator: String,
    pub api: ApiOptions,
    pub connections: ConnectionLimits,
    pub runs: RunOptions,
    pub workflows: WorkflowOptions,
    /// Where servers tell each other of new events; without one through the database.
    pub valkey: Option<Zeroizing<String>>,
}

/// A server that is ready. Requests are answered by [`serve`](Self::serve).
#[derive(Debug)]
pub struct ControlServer {
    listener: TcpListener,
    address: SocketAddr,
    database: Database,
    app: App,
    api: ApiOptions,
    connections: ConnectionLimits,
    runs: RunOptions,
    workflows: WorkflowOptions,
    data_dir: PathBuf,
    /// Where a private database is.
    private: Option<PathBuf>,
    setup_token: Option<String>,
    fan_out: Arc<dyn FanOut>,
}

impl ControlServer {
    /// Takes the address first, because that fails fastest, then the data directory and the database.
    pub async fn start(options: &ServerOptions) -> Result<Self> {
        let listener = listen(options.listen).await?;
        let address = listener
            .local_addr()
            .map_err(|error| cannot_listen(options.listen, error))?;
        restoring::ensure_finished(&options.database.data_dir)?;
        let database = Database::open(&options.database).await?;
        let prepared = prepare(&database, options).await;
        match prepared {
            Ok((app, setup_token, fan_out)) => Ok(Self {
                fan_out,
                app,
                api: options.api.clone(),
                connections: options.connections.within_open_files(),
                runs: options.runs.clone(),
                workflows: options.workflows.clone(),
                data_dir: options.database.data_dir.clone(),
                private: match options.database.place {
                    DatabaseLocation::Private { .. } => Some(options.database.data_dir.clone()),
                    DatabaseLocation::External(_) => None,
                },
                listener,
                address,
                database,
                setup_token,
            }),
            Err(error) => {
                database.close().await;
                Err(error)
            }
        }
    }

    /// Where it listens, with the port that port 0 became.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where people reach it.
    pub fn url(&self) -> String {
        self.api.url(self.address)
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The page that finishes the first run, with the secret that opens it. None if somebody did.
    pub fn setup_link(&self) -> Option<String> {
        let token = self.setup_token.as_ref()?;
        Some(format!("{}/setup?token={token}", self.url()))
    }

    /// Makes this an installation to look at, or finds that it is one.
    ///
    /// # Errors
    ///
    /// When it was set up for something else.
    pub async fn fill_demo(&mut self) -> Result<DemoSite> {
        let site = demo::fill(&self.app, self.setup_token.as_deref()).await?;
        self.setup_token = None;
        Ok(site)
    }

    /// Gives everything back without having served.
    pub async fn close(self) {
        write_last_reads(&self.database.store, StopClock::start()).await;
        self.database.close().await;
    }

    /// Answers requests until `stop` is ready, finishes those under way and closes everything.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let (draining, drained) = watch::channel(false);
        let (readiness, looking) = Readiness::watch(self.database.store.clone(), self.private);
        let probes = http::router(ServerState {
            readiness,
            draining: drained.clone(),
            store: self.database.store.clone(),
            front: self.api.front.clone(),
            readers: self.api.metrics_readers.clone(),
        });
        let ending = CancellationToken::new();
        let routes = api::router(&self.app, &self.api, self.address, ending.clone());
        let router = probes.merge(routes);
        let live = self.app.start_live(self.fan_out);
        let deliveries = self.app.start_deliveries();
        let chores = tokio::spawn(api::look_after(self.app.clone()));
        let store = self.database.store.clone();
        let reads = tokio::spawn(async move { store.write_reads().await });
        let driver = runs::start(&self.app, &self.runs, &self.data_dir)?;
        let workflows = workflows::start(&self.app, &self.workflows);
        let clock = Arc::new(OnceLock::new());
        let started = Arc::clone(&clock);
        let told = tokio::spawn(async move {
            stop.await;
            let _ = started.set(StopClock::start());
            info!("stopping: new requests are refused, those under way are finished");
            draining.send_replace(true);
            // Whoever watches goes to another server, or comes back to this one.
            ending.cancel();
        });
        let front = self.api.front.clone();
        let serving = connections::serve(
            self.listener,
            router,
            front,
            self.connections,
            Arc::clone(self.database.store.metrics()),
            drained.clone(),
        );
        let mut draining = drained.clone();
        // Beside the requests, because a step takes longer than any of them.
        let runs = tokio::spawn(async move {
            told_to_stop(&mut draining).await;
            stopping::within(stopping::RUNS, "runs", driver.stop()).await;
        });
        let mut draining = drained;
        let patience = async move {
            told_to_stop(&mut draining).await;
            tokio::time::sleep(stopping::REQUESTS).await;
        };
        tokio::select! {
            () = serving => {}
            () = patience => warn!("requests that did not finish in time were dropped"),
        }
        told.abort();
        looking.abort();
        chores.abort();
        // Before runs are waited for: whoever ends the process meanwhile takes none of them away.
        reads.abort();
        let mut clock = clock.get().copied().unwrap_or_else(StopClock::start);
        write_last_reads(&self.database.store, clock).await;
        let waiting = Instant::now();
        if let Err(error) = runs.await {
            warn!(%error, "runs were not waited for");
        }
        clock.leave_out(waiting.elapsed());
        // After the runs, whose ends their workflows hear of, and before what their steps use is gone.
        let ended = workflows.stop();
        clock.within(stopping::WORKFLOWS, "workflows", ended).await;
        let sent = deliveries.stop();
        clock.within(stopping::DELIVERIES, "deliveries", sent).await;
        // After the last change: what it tells is on its way when this returns.
        clock.within(stopping::EVENTS, "events", live.stop()).await;
        let signed = self.app.checkpoint_audit(jiff::Timestamp::now());
        clock
            .within(stopping::CHECKPOINTS, "checkpoints", signed)
            .await;
        self.database.close_within(clock).await;
        Ok(())
    }
}

/// Nobody asks any more, so what waits is all there is.
async fn write_last_reads(store: &Store, clock: StopClock) {
    let mut waiting = None;
    let flush = async { waiting = Some(store.audit_flush_all().await.waiting) };
    clock
        .within(stopping::READS, "records of reads", flush)
        .await;
    match waiting {
        Some(0) => {}
        Some(count) => error!(
            count,
            "records of reads are lost: the database did not take them"
        ),
        None => error!("records of reads may be lost: the database did not answer"),
    }
}

type Prepared = (App, Option<String>, Arc<dyn FanOut>);

async fn prepare(database: &Database, options: &ServerOptions) -> Result<Prepared> {
    let store = &database.store;
    if store.restore_unfinished().await? {
        return Err(StoreError::RestoreUnfinished.into());
    }
    store.operator_ensure(&options.operator).await?;
    let app = api::open(options, store.clone()).await?;
    let fan_out: Arc<dyn FanOut> = match &options.valkey {
        Some(address) => {
            let installation = store.installation_id().await?;
            Arc::new(ValkeyFanOut::new(address, installation)?)
        }
        None => Arc::new(store.notifications()),
    };
    if store.setup_status().await? != SetupStatus::Open {
        return Ok((app, None, fan_out));
    }
    let token = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
    let offered = store.setup_offer(&token).await?.then_some(token);
    Ok((app, offered, fan_out))
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| cannot_listen(address, error))
}

fn cannot_listen(address: SocketAddr, error: std::io::Error) -> Error {
    Error::new(
        ErrorCode::LISTEN_FAILED,
        format!("cannot listen on {address}: {error}"),
    )
    .with_help("give another --listen, or end what uses it")
    .with_source(error)
}
