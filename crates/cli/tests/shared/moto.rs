//! An AWS API on this machine.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) struct Moto {
    server: Child,
    port: u16,
}

impl Drop for Moto {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Moto {
    pub(crate) fn start(program: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let server = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut moto = Self { server, port };
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = moto.server.try_wait().unwrap();
            assert!(ended.is_none(), "the server has ended");
            std::thread::yield_now();
        }
        moto
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
