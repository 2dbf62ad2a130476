//! The HTTP server, from its first to its last connection.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nimbus_control_app::App;
use nimbus_control_store::{SetupStatus, Store, StoreError};
use nimbus_core::{Error, ErrorCode, Result};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::api::{self, ApiOptions};
use crate::connections::{self, ConnectionLimits};
use crate::database::{Database, DatabaseLocation, DatabaseOptions};
use crate::demo::{self, DemoSite};
use crate::http::{self, ServerState};
use crate::readiness::Readiness;
use crate::restoring;
use crate::runs::{self, RunOptions};

/// How long requests may take to finish once the server was told to stop.
const DRAIN_PATIENCE: Duration = Duration::from_secs(30);
/// How long the last records of reads may take to be written.
const FLUSH_PATIENCE: Duration = Duration::from_secs(10);

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
    data_dir: PathBuf,
    /// Where a private database is.
    private: Option<PathBuf>,
    setup_token: Option<String>,
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
            Ok((app, setup_token)) => Ok(Self {
                app,
                api: options.api.clone(),
                connections: options.connections.within_open_files(),
                runs: options.runs.clone(),
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
        write_last_reads(&self.database.store).await;
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
        let app = self.app.clone();
        let news = tokio::spawn(async move { app.pass_news_on().await });
        let chores = tokio::spawn(api::look_after(self.app.clone()));
        let store = self.database.store.clone();
        let reads = tokio::spawn(async move { store.write_reads().await });
        let driver = runs::start(&self.app, &self.runs, &self.data_dir)?;
        let stopping = tokio::spawn(async move {
            stop.await;
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
        let mut told = drained;
        let patience = async move {
            // An error is a server that ended by itself.
            let _ = told.wait_for(|&draining| draining).await;
            tokio::time::sleep(DRAIN_PATIENCE).await;
        };
        tokio::select! {
            () = serving => {}
            () = patience => warn!("requests that did not finish in time were dropped"),
        }
        stopping.abort();
        looking.abort();
        chores.abort();
        news.abort();
        // Before runs are waited for: whoever ends the process meanwhile takes none of them away.
        reads.abort();
        write_last_reads(&self.database.store).await;
        driver.stop().await;
        self.app.checkpoint_audit(jiff::Timestamp::now()).await;
        self.database.close().await;
        Ok(())
    }
}

/// Nobody asks any more, so what waits is all there is.
async fn write_last_reads(store: &Store) {
    let flush = tokio::time::timeout(FLUSH_PATIENCE, store.audit_flush_all());
    let lost = flush.await.map(|done| done.waiting);
    match lost {
        Ok(0) => {}
        Ok(count) => error!(
            count,
            "records of reads are lost: the database did not take them"
        ),
        Err(_) => error!("records of reads may be lost: the database did not answer"),
    }
}

async fn prepare(database: &Database, options: &ServerOptions) -> Result<(App, Option<String>)> {
    let store = &database.store;
    if store.restore_unfinished().await? {
        return Err(StoreError::RestoreUnfinished.into());
    }
    store.operator_ensure(&options.operator).await?;
    let app = api::open(options, store.clone()).await?;
    if store.setup_status().await? != SetupStatus::Open {
        return Ok((app, None));
    }
    let token = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
    let offered = store.setup_offer(&token).await?.then_some(token);
    Ok((app, offered))
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
