//! A PostgreSQL as somebody else would run it: on a port, with passwords.

use std::net::TcpListener;
use std::path::Path;

use nimbus_control_postgres::{
    ADMINISTRATOR, Binaries, Cluster, ClusterOptions, DataDir, Durability,
};
use nimbus_control_store::{Credentials, DatabaseAddress, Host, StoreConfig, Tls};
use sqlx::AssertSqlSafe;
use tempfile::TempDir;

use crate::administrator::connect;

/// It ends with the value.
#[derive(Debug)]
pub struct TcpCluster {
    pub port: u16,
    pub user: &'static str,
    pub password: &'static str,
    cluster: Cluster,
    _claim: DataDir,
    _folder: TempDir,
}

impl TcpCluster {
    /// With a role that may make roles and databases, and is no superuser.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(binaries: &Path) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("nimbus-tcp-")
            .tempdir()
            .expect("a folder");
        let claim = DataDir::claim(folder.path()).expect("the folder is new");
        let mut started = None;
        // Free now; somebody else may take it before PostgreSQL does, so several are tried.
        for _ in 0..10 {
            let port = free_port();
            let mut options = ClusterOptions::new(claim.path().join("postgres"), []);
            options.durability = Durability::Careless;
            options.binaries = Binaries::at(binaries);
            options.tcp_port = Some(port);
            if let Ok(cluster) = Cluster::start(&options).await {
                started = Some((cluster, port));
                break;
            }
        }
        let (cluster, port) = started.expect("PostgreSQL starts on some port");
        let (user, password) = ("nimbus_operator", "a password of the test");
        let role = format!(
            "CREATE ROLE {user} LOGIN NOSUPERUSER CREATEROLE CREATEDB PASSWORD '{password}'"
        );
        run(&cluster, port, role).await;
        Self {
            port,
            user,
            password,
            cluster,
            _claim: claim,
            _folder: folder,
        }
    }

    /// Gives the role another password, as somebody else would.
    ///
    /// # Panics
    /// If that fails.
    pub async fn set_password(&self, password: &str) {
        let statement = format!("ALTER ROLE {} PASSWORD '{password}'", self.user);
        run(&self.cluster, self.port, statement).await;
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

async fn run(cluster: &Cluster, port: u16, statement: String) {
    let address = DatabaseAddress {
        host: Host::Socket(cluster.socket().to_owned()),
        port,
        database: "postgres".to_owned(),
        tls: Tls::Disable,
    };
    let administrator = Credentials {
        user: ADMINISTRATOR.to_owned(),
        password: None,
    };
    let mut connection = connect(&StoreConfig::new(address, administrator)).await;
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .expect("the administrator makes roles");
}
