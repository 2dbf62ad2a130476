//! A Valkey of a test's own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that ends with its test.
#[derive(Debug)]
pub struct TestValkey {
    binary: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    child: Option<Child>,
}

impl TestValkey {
    /// `binary` is what `tool_or_skip!(Tool::Valkey)` found.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(binary: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = free.local_addr().expect("it has an address").port();
        drop(free);
        let mut valkey = Self {
            binary: binary.to_owned(),
            folder: tempfile::tempdir().expect("a folder"),
            port,
            child: None,
        };
        valkey.resume();
        valkey
    }

    /// What a server is told of it.
    pub fn url(&self) -> String {
        format!("valkey://127.0.0.1:{}/0", self.port)
    }

    /// Ends it, as a machine that loses its power does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again on the same port.
    ///
    /// # Panics
    /// If it does not start.
    pub fn resume(&mut self) {
        let port = self.port.to_string();
        let child = Command::new(&self.binary)
            .args(["--bind", "127.0.0.1", "--port", &port, "--save", ""])
            .arg("--dir")
            .arg(self.folder.path())
            .stdout(Stdio::null())
            // tidy-allow(start): a server that a test was given
            .spawn();
        self.child = Some(child.expect("Valkey starts"));
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "Valkey answers");
            // tidy-allow(sleep): a process of somebody else's says nothing when it is ready
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for TestValkey {
    fn drop(&mut self) {
        self.kill();
    }
}
