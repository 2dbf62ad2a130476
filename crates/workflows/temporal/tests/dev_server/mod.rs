//! Temporal's development server: one for all tests, in memory, and one with files for a test that kills
//! it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use nimbus_workflows_temporal::{TemporalOptions, TemporalRuntime};
use nimbus_workflows_testing::eventually;
use tempfile::TempDir;

/// More than there are tests.
const NAMESPACES: usize = 40;

/// The server ends when nobody holds the other end of its starter's input any more, so also when the test
/// program is killed.
const STARTER: &str = r#""$@" & server=$!; cat > /dev/null; kill -9 $server; wait"#;

pub(crate) struct DevServer {
    program: PathBuf,
    port: u16,
    files: Option<TempDir>,
    starter: Option<Child>,
}

impl DevServer {
    fn new(program: &Path, files: Option<TempDir>) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut server = Self {
            program: program.to_owned(),
            port,
            files,
            starter: None,
        };
        server.resume();
        server
    }

    /// One that can be killed and started again.
    pub(crate) fn with_files(program: &Path) -> Self {
        Self::new(program, Some(tempfile::tempdir().unwrap()))
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends it, as a machine that loses its power does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut starter) = self.starter.take() {
            drop(starter.stdin.take());
            starter.wait().unwrap();
        }
    }

    pub(crate) fn resume(&mut self) {
        let mut command = Command::new("sh");
        command.args(["-c", STARTER, "sh"]).arg(&self.program);
        command.args(["server", "start-dev", "--headless", "--ip", "127.0.0.1"]);
        command.args(["--port", &self.port.to_string(), "--log-level", "never"]);
        match &self.files {
            Some(folder) => {
                command
                    .arg("--db-filename")
                    .arg(folder.path().join("temporal.db"));
            }
            None => {
                for number in 0..NAMESPACES {
                    command.arg("--namespace").arg(format!("test-{number}"));
                }
            }
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.starter = Some(command.spawn().unwrap());
    }

    /// Waits until it does.
    pub(crate) async fn answers(&self) {
        let options = TemporalOptions::new(self.address(), "default");
        eventually("the server answers", async || {
            TemporalRuntime::open(options.clone()).await.is_ok()
        })
        .await;
    }
}

impl Drop for DevServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The server of all tests; it ends with the test program.
pub(crate) async fn shared(program: &Path) -> &'static DevServer {
    static SHARED: OnceLock<DevServer> = OnceLock::new();
    let server = SHARED.get_or_init(|| DevServer::new(program, None));
    server.answers().await;
    server
}

/// One that no other test has.
pub(crate) fn namespace() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(number < NAMESPACES, "there are more tests than namespaces");
    format!("test-{number}")
}
