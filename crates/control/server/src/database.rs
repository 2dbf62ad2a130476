//! The database of a server: a private one that is looked after, or somebody else's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nimbus_control_postgres::{
    ADMINISTRATOR, Binaries, Cluster, ClusterOptions, DataDir, PORT, PostgresError,
};
use nimbus_control_store::{
    Credentials, DatabaseAddress, Host, Isolation, MigrationReport, Roles, Store, StoreConfig, Tls,
};
use nimbus_core::Result;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::stopping::{self, StopClock};

const PRIVATE_DATABASE: &str = "nimbus";
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Where the rows are.
#[derive(Clone, Debug)]
pub enum DatabaseLocation {
    /// A cluster of our own in the data directory, with these programs or those that are found.
    Private {
        binaries: Option<PathBuf>,
    },
    External(StoreConfig),
}

#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    pub data_dir: PathBuf,
    pub place: DatabaseLocation,
    pub isolation: Isolation,
    pub pool_size: u32,
}

/// A database that is open and migrated.
#[derive(Debug)]
pub struct Database {
    pub store: Store,
    pub migrated: MigrationReport,
    cluster: Option<ClusterSupervisor>,
    // Last, so that nobody else gets the folder before PostgreSQL is gone.
    _claim: DataDir,
}

impl Database {
    /// Refuses a data directory that another process has, and a database that does not keep tenants
    /// apart.
    pub async fn open(options: &DatabaseOptions) -> Result<Self> {
        let claim = DataDir::claim(&options.data_dir)?;
        let (cluster, config) = match &options.place {
            DatabaseLocation::Private { binaries } => {
                let keeper = ClusterSupervisor::start(claim.path(), binaries.as_deref()).await?;
                let config = private_config(&keeper.socket);
                (Some(keeper), config)
            }
            DatabaseLocation::External(config) => (None, config.clone()),
        };
        let opened = Store::open(configured(config, options)).await;
        match opened {
            Ok((store, migrated)) => Ok(Self {
                store,
                migrated,
                cluster,
                _claim: claim,
            }),
            Err(error) => {
                if let Some(keeper) = cluster {
                    keeper.stop_within(StopClock::start().for_database()).await;
                }
                Err(error.into())
            }
        }
    }

    /// Closes every connection, then ends the private cluster.
    pub async fn close(self) {
        self.close_within(StopClock::start()).await;
    }

    /// The same in what is left of the time for a stop.
    pub(crate) async fn close_within(self, clock: StopClock) {
        // A connection that somebody still has ends with the process, or with the cluster.
        let given_back = self.store.close();
        clock
            .within(stopping::CONNECTIONS, "connections", given_back)
            .await;
        if let Some(keeper) = self.cluster {
            keeper.stop_within(clock.for_database()).await;
        }
    }

    /// The database of a server that runs on the data directory right now, without claiming it. None
    /// if none runs.
    pub async fn of_running(options: &DatabaseOptions) -> Result<Option<Store>> {
        match DataDir::claim(&options.data_dir) {
            Ok(_) => Ok(None),
            Err(PostgresError::InUse { path }) => {
                let config = match &options.place {
                    DatabaseLocation::Private { .. } => {
                        private_config(&Cluster::socket_of(&path.join("postgres")))
                    }
                    DatabaseLocation::External(config) => config.clone(),
                };
                let store = Store::connect(configured(config, options));
                store.ping().await?;
                Ok(Some(store))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn configured(mut config: StoreConfig, options: &DatabaseOptions) -> StoreConfig {
    config.isolation = options.isolation;
    config.pool_size = options.pool_size;
    config
}

fn private_config(socket: &Path) -> StoreConfig {
    let address = DatabaseAddress {
        host: Host::Socket(socket.to_owned()),
        port: PORT,
        database: PRIVATE_DATABASE.to_owned(),
        tls: Tls::Disable,
    };
    let administrator = Credentials {
        user: ADMINISTRATOR.to_owned(),
        password: None,
    };
    StoreConfig::new(address, administrator)
}

/// Keeps the private cluster running: one that ends by itself is started again.
#[derive(Debug)]
struct ClusterSupervisor {
    socket: PathBuf,
    stop: watch::Sender<Option<Duration>>,
    task: JoinHandle<()>,
}

impl ClusterSupervisor {
    async fn start(data_dir: &Path, binaries: Option<&Path>) -> Result<Self, PostgresError> {
        let roles = Roles::for_database(PRIVATE_DATABASE);
        let folder = data_dir.join("postgres");
        let mut options = ClusterOptions::new(folder, [roles.owner, roles.app, roles.readonly]);
        options.binaries = match binaries {
            Some(folder) => Some(Binaries::at(folder).ok_or_else(|| PostgresError::Missing {
                looked: vec![folder.to_owned()],
            })?),
            None => None,
        };
        let cluster = Cluster::start(&options).await?;
        let socket = cluster.socket().to_owned();
        let (stop, stopped) = watch::channel(None);
        let task = tokio::spawn(keep(cluster, options, stopped));
        Ok(Self { socket, stop, task })
    }

    /// Ends the cluster, which has so much time to write everything.
    async fn stop_within(self, patience: Duration) {
        self.stop.send_replace(Some(patience));
        if let Err(error) = self.task.await {
            warn!(%error, "PostgreSQL's keeper went wrong");
        }
    }
}

async fn keep(
    mut cluster: Cluster,
    options: ClusterOptions,
    mut stopped: watch::Receiver<Option<Duration>>,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::select! {
            patience = patience_of(&mut stopped) => {
                cluster.stop_within(patience).await;
                return;
            }
            () = cluster.ended() => warn!("PostgreSQL ended by itself and is started again"),
        }
        cluster = loop {
            match Cluster::start(&options).await {
                Ok(cluster) => break cluster,
                Err(error) => warn!(%error, "PostgreSQL does not start; trying again"),
            }
            tokio::select! {
                _ = patience_of(&mut stopped) => return,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        };
        info!("PostgreSQL runs again");
        pause = FIRST_PAUSE;
    }
}

/// Waits until the cluster is to end, and says how long that may take.
async fn patience_of(stopped: &mut watch::Receiver<Option<Duration>>) -> Duration {
    // An error is a keeper that was dropped.
    let told = stopped.wait_for(Option::is_some).await;
    let patience = told.ok().and_then(|patience| *patience);
    patience.unwrap_or_else(|| StopClock::start().for_database())
}

pub(crate) async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    // An error is a keeper that was dropped.
    let _ = stopped.wait_for(|&stop| stop).await;
}
