//! A real AWS API on this machine, served by moto for as long as a test needs it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Somebody else may take the port between our asking for a free one and the server's opening it.
const ATTEMPTS: usize = 5;

/// Ends when it is dropped.
pub struct AwsServer {
    server: Child,
    port: u16,
}

impl Drop for AwsServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl AwsServer {
    /// Starts the server that [`crate::Tool::S3Server`] names and waits until it answers.
    pub fn start(program: &Path) -> Self {
        Self::start_with(program, &[])
    }

    /// The same with variables that moto reads.
    pub fn start_with(program: &Path, variables: &[(&str, &str)]) -> Self {
        let mut attempts = (0..ATTEMPTS).map(|_| Self::attempt(program, variables));
        attempts
            .find_map(|started| started)
            .expect("the server ends as soon as it is started")
    }

    fn attempt(program: &Path, variables: &[(&str, &str)]) -> Option<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let server = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server can be started");
        let mut started = Self { server, port };
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = started.server.try_wait().expect("it is a child of ours");
            if ended.is_some() {
                return None;
            }
            std::thread::yield_now();
        }
        Some(started)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn make_bucket(&self, name: &str) {
        self.ask(&format!("PUT /{name}"), &[], "");
    }

    /// The body of the answer to a request such as `PUT /bucket`, which must succeed.
    pub fn ask(&self, what: &str, headers: &[(&str, &str)], body: &str) -> String {
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let request = format!(
            "{what} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        let mut connection = connection.expect("the server listens");
        connection
            .write_all(request.as_bytes())
            .expect("the server reads");
        let mut answer = String::new();
        connection
            .read_to_string(&mut answer)
            .expect("the server answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{what}: {answer}");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        body.to_owned()
    }
}
