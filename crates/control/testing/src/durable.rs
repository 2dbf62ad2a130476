//! A cluster with everything forced to disk, as an installation has one: what is measured is measured on it.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use nimbus_control_postgres::{ADMINISTRATOR, Binaries, Cluster, ClusterOptions, DataDir, PORT};
use nimbus_control_store::{Credentials, DatabaseAddress, Host, StoreConfig, Tls};
use tempfile::TempDir;

use crate::cluster::roles;

/// A private PostgreSQL in a folder that goes with it.
pub struct DurableCluster {
    cluster: Cluster,
    // Held until the cluster has stopped: nobody else may take the folder.
    _data: DataDir,
    _folder: TempDir,
}

impl DurableCluster {
    /// Starts one with the programs in `binaries`.
    ///
    /// # Errors
    ///
    /// When there is no folder for it, or PostgreSQL does not start.
    pub async fn start(binaries: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let folder = tempfile::Builder::new().prefix("nimbus-bench-").tempdir()?;
        let data = DataDir::claim(folder.path())?;
        let roles = roles();
        let mut options = ClusterOptions::new(
            data.path().join("postgres"),
            [roles.owner, roles.app, roles.readonly],
        );
        options.binaries = Binaries::at(binaries);
        Ok(Self {
            cluster: Cluster::start(&options).await?,
            _data: data,
            _folder: folder,
        })
    }

    pub fn socket(&self) -> &Path {
        self.cluster.socket()
    }

    /// A database of it, asked by so many at once.
    pub fn database(&self, name: &str, pool_size: u32) -> StoreConfig {
        let address = DatabaseAddress {
            host: Host::Socket(self.socket().to_owned()),
            port: PORT,
            database: name.to_owned(),
            tls: Tls::Disable,
        };
        let administrator = Credentials {
            user: ADMINISTRATOR.to_owned(),
            password: None,
        };
        let mut config = StoreConfig::new(address, administrator);
        config.roles = roles();
        config.pool_size = pool_size;
        config.acquire_timeout = Duration::from_secs(60);
        config
    }

    /// The same for whoever takes an address as a text.
    pub fn url(&self, database: &str) -> String {
        let socket = self.socket().display();
        format!("postgres://{ADMINISTRATOR}@localhost/{database}?host={socket}")
    }

    pub async fn stop(self) {
        self.cluster.stop().await;
    }
}
