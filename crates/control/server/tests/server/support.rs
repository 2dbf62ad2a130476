//! A server in a folder of its own, and the plainest HTTP client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nimbus_control_server::{
    ApiOptions, ConnectionLimits, ControlServer, DatabaseLocation, DatabaseOptions, RunLimits,
    RunOptions, ServerOptions, WorkflowOptions,
};
use nimbus_control_store::{Isolation, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("nimbus-server-")
        .tempdir()
        .unwrap()
}

pub(crate) fn options(folder: &Path, binaries: &Path) -> ServerOptions {
    // Root's PostgreSQL runs as somebody else, who must pass through.
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    ServerOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        database: DatabaseOptions {
            data_dir: folder.join("data"),
            place: DatabaseLocation::Private {
                binaries: Some(binaries.to_owned()),
            },
            isolation: Isolation::SchemaWithRls,
            pool_size: 5,
        },
        keys: None,
        api: ApiOptions::default(),
        connections: ConnectionLimits::default(),
        runs: RunOptions {
            limits: RunLimits {
                at_once: 2,
                per_tenant: None,
                time: Duration::from_secs(600),
            },
            node_modules: None,
            sandbox: None,
        },
        workflows: WorkflowOptions::default(),
        operator: "Operator".to_owned(),
        valkey: None,
    }
}

/// A server that answers until it is stopped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) store: Store,
    pub(crate) setup_link: Option<String>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<nimbus_core::Result<()>>,
}

impl Running {
    pub(crate) async fn start(options: &ServerOptions) -> Self {
        let server = ControlServer::start(options).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        Self {
            address: server.address(),
            store: server.database().store.clone(),
            setup_link: server.setup_link(),
            task: tokio::spawn(server.serve(async move {
                let _ = stopped.await;
            })),
            stop,
        }
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        request(self.address, "GET", path).await
    }

    /// As a browser asks for an address.
    pub(crate) async fn get_page(&self, path: &str) -> Answer {
        send(self.address, "GET", path, "Accept: text/html\r\n", "").await
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

pub(crate) async fn request(address: SocketAddr, method: &str, path: &str) -> Answer {
    send(address, method, path, "", "").await
}

pub(crate) async fn post(address: SocketAddr, path: &str, body: &str) -> Answer {
    send(address, "POST", path, "", body).await
}

pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

/// The process number of the PostgreSQL of a data directory.
pub(crate) fn postmaster(data_dir: &Path) -> Option<i32> {
    let file: PathBuf = data_dir.join("postgres/postmaster.pid");
    std::fs::read_to_string(file)
        .ok()?
        .lines()
        .next()?
        .parse()
        .ok()
}

pub(crate) const PASSWORD: &str = "glass lamp river 9";

/// A server whose first run is finished, and the token of its administrator.
pub(crate) async fn set_up(server: &Running) -> String {
    let link = server.setup_link.clone().unwrap();
    let token = link.split_once("token=").unwrap().1;
    let body = json!({
        "token": token,
        "email": "owner@operator.example",
        "display_name": "Owner",
        "password": PASSWORD,
    });
    let done = call(server, "POST", "/api/v1/setup/complete", None, &body).await;
    done["access_token"].as_str().unwrap().to_owned()
}

pub(crate) async fn call(
    server: &Running,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> Value {
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let headers = authorization.unwrap_or_default();
    let answer = send(server.address, method, path, &headers, &body).await;
    if answer.body.is_empty() {
        Value::Null
    } else {
        answer.json()
    }
}
