//! Somebody holds connections: half-open, with a body that never ends, or idle.

use std::time::{Duration, Instant};

use nimbus_control_server::ConnectionLimits;
use nimbus_test_tools::{Tool, tool_or_skip};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::support::{Running, folder, options};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection from an address of this machine that is not the usual one.
async fn connect_from(address: &str, server: &Running) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(format!("{address}:0").parse().unwrap())?;
    socket.connect(server.address).await
}

/// How long the slowest of some requests took.
async fn slowest(server: &Running, path: &str) -> Duration {
    let mut worst = Duration::ZERO;
    for _ in 0..50 {
        let begun = Instant::now();
        let answer = timeout(PATIENCE, server.get(path))
            .await
            .expect("it is answered");
        assert_eq!(answer.status, 200, "{}", answer.body);
        worst = worst.max(begun.elapsed());
    }
    worst
}

/// Eleven hundred connections that send something and never a whole request, from one address.
async fn flood(server: &Running, from: &str, sent: &str) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..1100 {
        // The server may push others out, and may refuse.
        if let Ok(Ok(mut stream)) = timeout(PATIENCE, connect_from(from, server)).await {
            let _ = stream.write_all(sent.as_bytes()).await;
            held.push(stream);
        }
    }
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_connections_of_one_address_leave_everybody_else_unharmed() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    let calm = slowest(&server, "/live").await;
    for sent in [
        "",
        "GET /live HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
    ] {
        // From elsewhere, and from where everybody else comes from too.
        for from in ["127.0.0.2", "127.0.0.1"] {
            let held = flood(&server, from, sent).await;
            assert!(held.len() > 1000, "{} were opened", held.len());
            let worst = slowest(&server, "/live").await;
            println!(
                "{} held by {from} after {sent:?}: slowest {worst:?}, before {calm:?}",
                held.len()
            );
            assert!(worst < Duration::from_secs(2) + calm * 5, "{worst:?}");
            assert_eq!(server.get("/ready").await.status, 200);
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_keeps_the_server_waiting_is_ended() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let mut options = options(folder.path(), &binaries);
    let short = Duration::from_millis(300);
    options.connections = ConnectionLimits {
        request: short,
        idle: short,
        ..ConnectionLimits::default()
    };
    let server = Running::start(&options).await;
    let request = "GET /live HTTP/1.1\r\nHost: x\r\n";
    for sent in [
        String::new(),
        request.to_owned(),
        // Answered, and then silent.
        format!("{request}\r\n"),
        "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{".to_owned(),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let ended = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "{sent:?} is held for ever");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_soft_limit_of_open_files_is_raised() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    // Wherever it is at its highest already; by so little that no other test of this process notices.
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard - 1, hard).unwrap();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (hard, hard));
    server.stop().await;
}

/// What comes before a body is held for every connection, and whoever sends it need not have signed in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_without_an_end_is_refused() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    for (bytes, status) in [(24 << 10, "200"), (200 << 10, "431")] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let filler = "a".repeat(bytes);
        let head = format!(
            "GET /live HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: {filler}\r\n\r\n"
        );
        // The server may have closed the connection before the last of it was sent.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{bytes}: {answer}"
        );
    }
    server.stop().await;
}
