//! A PostgreSQL as somebody else would run it: on a port, with passwords.

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use nimbus_control_postgres::{
    ADMINISTRATOR, Binaries, Cluster, ClusterOptions, DataDir, Durability,
};
use nimbus_control_store::{Credentials, DatabaseAddress, Host, StoreConfig, Tls};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sqlx::{AssertSqlSafe, PgConnection};
use tempfile::TempDir;

use crate::administrator::connect;

/// It ends with the value.
#[derive(Debug)]
pub struct TcpCluster {
    pub port: u16,
    pub user: &'static str,
    pub password: &'static str,
    cluster: Cluster,
    claim: DataDir,
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
            claim,
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

impl TcpCluster {
    /// Of every connection with this name, whether it is encrypted.
    ///
    /// # Panics
    /// If nobody can tell.
    pub async fn encrypted(&self, application: &str) -> Vec<bool> {
        let mut connection = administrator(&self.cluster, self.port).await;
        sqlx::query_scalar(
            "SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.application_name = $1",
        )
        .bind(application)
        .fetch_all(&mut connection)
        .await
        .expect("the administrator sees all of them")
    }
}

/// Somebody who vouches for servers.
pub struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// What those are given who are to believe it.
    pub certificate: String,
}

impl Default for TestAuthority {
    fn default() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).expect("it signs itself").pem();
        Self {
            issuer: Issuer::new(parameters, key),
            certificate,
        }
    }
}

impl TestAuthority {
    /// Certificate and key of a server of this name, as PEM.
    ///
    /// # Panics
    /// If the name cannot be one.
    pub fn vouch(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let signed = parameters.signed_by(&key, &self.issuer);
        (
            signed.expect("the authority signs").pem(),
            key.serialize_pem(),
        )
    }
}

impl TcpCluster {
    /// Speaks TLS from now on, with a certificate for this name.
    ///
    /// # Panics
    /// If that fails.
    pub async fn use_tls(&self, authority: &TestAuthority, name: &str) {
        let (certificate, key) = authority.vouch(name);
        let folder = self.claim.path().join("postgres");
        let owner = std::fs::metadata(&folder).expect("the folder is there");
        for (file, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = folder.join(file);
            std::fs::write(&path, text).expect("it can be written");
            // PostgreSQL refuses a key that others can read.
            let private = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&path, private).expect("it is ours");
            chown(&path, Some(owner.uid()), Some(owner.gid())).expect("it is ours to give");
        }
        run(
            &self.cluster,
            self.port,
            "ALTER SYSTEM SET ssl = on".to_owned(),
        )
        .await;
        run(
            &self.cluster,
            self.port,
            "SELECT pg_reload_conf()".to_owned(),
        )
        .await;
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

async fn run(cluster: &Cluster, port: u16, statement: String) {
    let mut connection = administrator(cluster, port).await;
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .expect("the administrator makes roles");
}

async fn administrator(cluster: &Cluster, port: u16) -> PgConnection {
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
    connect(&StoreConfig::new(address, administrator)).await
}
