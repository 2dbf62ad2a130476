//! The official Socket.IO client in a process of its own, and a server that it connects to.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(40);

/// A router on a port, until it is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn new(routes: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let service = routes.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, service).await.unwrap();
        });
        Self { address, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) struct SocketIoClient {
    child: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// What came while something else was waited for.
    waiting: Vec<Value>,
    asked: u64,
}

impl SocketIoClient {
    /// `modules` is what `tool_or_skip!(Tool::SocketIoClient)` found.
    pub(crate) fn new(modules: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control/socket_io.cjs");
        let mut child = Command::new("node")
            .arg(script)
            .arg(modules)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            orders,
            lines,
            waiting: Vec::new(),
            asked: 0,
        }
    }

    /// Connected and welcomed; what the server said.
    pub(crate) async fn connected(modules: &Path, url: &str, auth: Value) -> (Self, Value) {
        let mut client = Self::new(modules);
        client
            .order(json!({"op": "connect", "url": url, "auth": auth}))
            .await;
        let ready = client.event("ready").await;
        (client, ready)
    }

    pub(crate) async fn order(&mut self, order: Value) {
        let line = format!("{order}\n");
        self.orders.write_all(line.as_bytes()).await.unwrap();
    }

    /// The next thing that is so, from what came since the last one.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.waiting.iter().position(&wanted) {
            return self.waiting.remove(place);
        }
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("nothing came after {:?}", self.waiting));
            let said: Value = serde_json::from_str(&line.unwrap().unwrap()).unwrap();
            if wanted(&said) {
                return said;
            }
            self.waiting.push(said);
        }
    }

    /// The next event of this name, or of any if it is empty; events before it are forgotten.
    pub(crate) async fn event(&mut self, name: &str) -> Value {
        let said = self
            .until(|said| said["on"] == "event" && said["name"] == name)
            .await;
        said["data"].clone()
    }

    /// The answer of the server to a request.
    pub(crate) async fn ask(&mut self, name: &str, message: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.order(json!({"op": "emit", "id": id, "name": name, "message": message}))
            .await;
        let said = self
            .until(|said| said["on"] == "answer" && said["id"] == id)
            .await;
        assert!(said.get("error").is_none(), "{said}");
        said["answer"].clone()
    }

    /// Events that came until now, without those of the protocol.
    pub(crate) fn heard(&mut self) -> Vec<Value> {
        let all = std::mem::take(&mut self.waiting);
        let events = all
            .into_iter()
            .filter(|said| said["on"] == "event" && said["data"].get("type").is_some());
        events.map(|said| said["data"].clone()).collect()
    }

    /// The process reads nothing any more, or again.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.id().unwrap();
        kill(Pid::from_raw(id.try_into().unwrap()), signal).unwrap();
    }
}
