//! A cluster in a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::server::{self, PostgresServer};
use crate::{PostgresError, files, leftover};

/// The superuser of a private cluster.
pub const ADMINISTRATOR: &str = "postgres";

/// Part of the socket's name; nothing listens on it unless [`ClusterOptions::tcp_port`] says so.
pub const PORT: u16 = 5432;

/// Whether what was committed survives a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    #[default]
    Durable,
    /// For tests: nothing is forced to disk.
    Careless,
}

/// Where a cluster is and whom it lets in.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The cluster's own folder; its parent exists.
    pub folder: PathBuf,
    /// Roles, apart from the administrator, as which the own user may connect.
    pub roles: Vec<String>,
    pub durability: Durability,
    pub max_connections: u32,
    /// Port on the loopback for roles with a password. Nimbus itself uses the socket alone.
    pub tcp_port: Option<u16>,
    /// Programs to use instead of those that are found.
    pub binaries: Option<Binaries>,
}

impl ClusterOptions {
    pub fn new(folder: impl Into<PathBuf>, roles: impl IntoIterator<Item = String>) -> Self {
        Self {
            folder: folder.into(),
            roles: roles.into_iter().collect(),
            durability: Durability::default(),
            max_connections: 100,
            tcp_port: None,
            binaries: None,
        }
    }
}

/// A running cluster. It ends with the value, and with the process in any case.
#[derive(Debug)]
pub struct Cluster {
    server: PostgresServer,
    socket: PathBuf,
}

impl Cluster {
    /// Initialises the cluster if it is new, and starts it.
    pub async fn start(options: &ClusterOptions) -> Result<Self, PostgresError> {
        let account = Account::find()?;
        let data = &options.folder;
        files::check_reachable(data, &account)?;
        files::private_folder(data, &account)?;
        let binaries = match &options.binaries {
            Some(binaries) => binaries.clone(),
            None => Binaries::find(version_of(data))?,
        };
        if version_of(data).is_none() {
            initialise(&binaries, data, &account).await?;
        }
        leftover::clear(data).await?;
        files::write_access(data, &account, options)?;
        let socket = files::socket_folder(data);
        files::check_reachable(&socket, &account)?;
        files::private_folder(&socket, &account)?;
        let mut command = server::command(&binaries.program("postgres"), data, &account);
        command.arg("-D").arg(data).arg("-k").arg(&socket);
        for (name, value) in settings(options) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        server::end_with_parent(&mut command);
        let server = PostgresServer::start(command).await?;
        Ok(Self { server, socket })
    }

    /// The folder of the socket of the cluster in `folder`, running or not.
    pub fn socket_of(folder: &Path) -> PathBuf {
        files::socket_folder(folder)
    }

    /// The folder of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn pid(&self) -> i32 {
        self.server.pid()
    }

    /// Waits until the server is gone, wanted or not.
    pub async fn ended(&mut self) {
        self.server.ended().await;
    }

    /// Ends it: clients are dropped, everything is written.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// The same with so much time to write everything, and [`END_PATIENCE`](crate::END_PATIENCE) to end
    /// without.
    pub async fn stop_within(self, patience: Duration) {
        self.server.stop_within(patience).await;
    }
}

fn settings(options: &ClusterOptions) -> Vec<(&'static str, String)> {
    let listen = options.tcp_port.map_or("", |_| "127.0.0.1");
    let mut settings = vec![
        ("listen_addresses", listen.to_owned()),
        ("port", options.tcp_port.unwrap_or(PORT).to_string()),
        ("unix_socket_permissions", "0700".to_owned()),
        ("max_connections", options.max_connections.to_string()),
        // A schema per tenant means many tables, and deleting one locks all of its own.
        ("max_locks_per_transaction", "256".to_owned()),
        ("jit", "off".to_owned()),
        ("lc_messages", "C".to_owned()),
        ("log_destination", "stderr".to_owned()),
        ("logging_collector", "off".to_owned()),
        // The detail of an error holds values of rows.
        ("log_error_verbosity", "terse".to_owned()),
        ("log_min_error_statement", "panic".to_owned()),
        // Nor has a statement that somebody wants to see because it is slow.
        ("log_parameter_max_length", "0".to_owned()),
        ("log_parameter_max_length_on_error", "0".to_owned()),
        ("password_encryption", "scram-sha-256".to_owned()),
    ];
    if options.durability == Durability::Careless {
        let careless = ["fsync", "synchronous_commit", "full_page_writes"];
        settings.extend(careless.map(|name| (name, "off".to_owned())));
    }
    settings
}

/// The major version of the data, or none if the cluster is not initialised.
fn version_of(data: &Path) -> Option<u32> {
    fs::read_to_string(data.join("PG_VERSION"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// `PG_VERSION` comes last into its place: a folder that an interrupted initialisation left is emptied
/// and made again.
async fn initialise(
    binaries: &Binaries,
    data: &Path,
    account: &Account,
) -> Result<(), PostgresError> {
    let unfinished = data.with_file_name("postgres-new");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)
            .map_err(PostgresError::folder(&unfinished, "it cannot be removed"))?;
    }
    files::private_folder(&unfinished, account)?;
    let mut command = server::command(&binaries.program("initdb"), &unfinished, account);
    command.arg("-D").arg(&unfinished).args([
        "-U",
        ADMINISTRATOR,
        "--auth=reject",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
    ]);
    let mut command = tokio::process::Command::from(command);
    let output = command
        .stdin(Stdio::null())
        .kill_on_drop(true)
        // tidy-allow(start): PostgreSQL's tools, the operator's
        .output()
        .await
        .map_err(PostgresError::io("initdb does not run"))?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(PostgresError::NotInitialised { log });
    }
    // An empty folder is replaced in one step; one with anything in it is somebody's data.
    // tidy-allow(copy): it holds nothing yet, and what the server writes into it the server syncs
    fs::rename(&unfinished, data).map_err(PostgresError::folder(
        data,
        "it is neither empty nor a cluster",
    ))
}
