//! Temporal's development server with its files on disk, which can be killed and started again.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The server ends when nobody holds the other end of its starter's input any more, so also when the test
/// program is killed.
const STARTER: &str = r#""$@" & server=$!; cat > /dev/null; kill -9 $server; wait"#;

/// A server that runs from the beginning. It has the namespace `default`.
pub struct TestTemporal {
    program: PathBuf,
    port: u16,
    files: TempDir,
    starter: Option<Child>,
}

impl TestTemporal {
    /// # Panics
    /// If it cannot be started.
    pub fn start(program: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let mut server = Self {
            program: program.to_owned(),
            port,
            files: tempfile::tempdir().expect("a folder"),
            starter: None,
        };
        server.resume();
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it, as a machine that loses its power does.
    pub fn kill(&mut self) {
        if let Some(mut starter) = self.starter.take() {
            drop(starter.stdin.take());
            // Nothing is left to be done about one that cannot be waited for.
            let _ = starter.wait();
        }
    }

    /// Starts it once more, with what it had.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn resume(&mut self) {
        let starter = Command::new("sh")
            .args(["-c", STARTER, "sh"])
            .arg(&self.program)
            .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1"])
            .args(["--port", &self.port.to_string(), "--log-level", "never"])
            .arg("--db-filename")
            .arg(self.files.path().join("temporal.db"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // tidy-allow(start): a server that a test was given
            .spawn();
        self.starter = Some(starter.expect("a shell"));
    }
}

impl Drop for TestTemporal {
    fn drop(&mut self) {
        self.kill();
    }
}
