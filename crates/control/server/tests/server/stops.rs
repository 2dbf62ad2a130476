//! A stop takes as long as is documented, whoever holds on to the server.

use std::time::{Duration, Instant};

use nimbus_test_tools::{Tool, tool_or_skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::faults::children;
use crate::support::{Running, folder, options, postmaster, set_up};

/// What `docs/install.md` promises where no run is under way.
const PROMISED: Duration = Duration::from_secs(15);
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that sent this and stays.
async fn hold(server: &Running, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    stream
}

/// A text from a client, as a frame. The mask of zeros changes nothing in it.
fn frame(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(length.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    frame
}

/// A socket that is open and hears of a tenant.
async fn watch(server: &Running, token: &str) -> TcpStream {
    let mut stream = hold(
        server,
        "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    )
    .await;
    let connect = format!("40{{\"token\":\"{token}\"}}");
    stream.write_all(&frame(&connect)).await.unwrap();
    // The handshake, the transport's greeting and then the answer to the connect.
    let mut heard = Vec::new();
    let connected = async {
        let mut part = [0; 1024];
        while !String::from_utf8_lossy(&heard).contains("40{\"sid\"") {
            let count = stream.read(&mut part).await.unwrap();
            assert_ne!(count, 0, "{}", String::from_utf8_lossy(&heard));
            heard.extend(&part[..count]);
        }
    };
    timeout(PATIENCE, connected).await.expect("it is connected");
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_takes_no_longer_than_is_promised_whoever_holds_on() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    let token = set_up(&server).await;
    let sign_in = "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                   Content-Length: 1000\r\n\r\n{";
    let mut held = Vec::new();
    for _ in 0..50 {
        // Silent, with half a head, with half a body, and idle after an answer.
        held.push(hold(&server, "").await);
        held.push(hold(&server, "GET /live HTTP/1.1\r\nHost: x\r\nX-Slow: ").await);
        held.push(hold(&server, sign_in).await);
        held.push(hold(&server, "GET /live HTTP/1.1\r\nHost: x\r\n\r\n").await);
    }
    // One that nobody reads the answers of.
    let many = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(200);
    held.push(hold(&server, &many).await);
    let mut watching = watch(&server, &token).await;

    let begun = Instant::now();
    timeout(PATIENCE, server.stop()).await.expect("it stops");
    let took = begun.elapsed();
    assert!(took < PROMISED, "{took:?}");
    // Who watched was told, and is not left with a connection to nobody.
    let mut rest = Vec::new();
    let ended = timeout(PATIENCE, watching.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the socket is closed");
    drop(held);
}

/// A machine that is too busy, or a disk that hangs, must not keep whoever waits for the stop: each part of it that asks
/// the database is within its limit and all of them together were not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_hangs_does_not_keep_a_stop() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    let token = set_up(&server).await;
    // A read that is to be recorded, and events that are to be passed on.
    let _watching = watch(&server, &token).await;
    let options = options(folder.path(), &binaries);
    let first = Pid::from_raw(postmaster(&options.database.data_dir).unwrap());
    let mut processes = children(first);
    processes.push(first);
    for process in &processes {
        kill(*process, Signal::SIGSTOP).unwrap();
    }
    let begun = Instant::now();
    timeout(PATIENCE, server.stop()).await.expect("it stops");
    let took = begun.elapsed();
    // Those that outlive the one that is ended by the kernel would be left stopped.
    for process in &processes {
        let _ = kill(*process, Signal::SIGKILL);
    }
    assert!(took < PROMISED, "{took:?}");
    // What was acknowledged is there after the next start.
    let server = Running::start(&options).await;
    assert_eq!(server.get("/ready").await.status, 200);
    timeout(PATIENCE, server.stop()).await.expect("it stops");
}

/// What was asked for before the stop is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_under_way_is_answered_before_the_server_is_gone() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    set_up(&server).await;
    let address = server.address;
    let body = serde_json::json!({
        "email": "owner@operator.example",
        "password": crate::support::PASSWORD,
    });
    let body = body.to_string();
    let head = format!(
        "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    // Its last byte comes once the server was told: it arrives within the time that arrivals have.
    let (first, last) = body.split_at(body.len() - 1);
    let mut stream = hold(&server, &format!("{head}{first}")).await;
    // Seen by the server, because a later request of somebody else is answered.
    assert_eq!(server.get("/live").await.status, 200);
    let stopping = tokio::spawn(server.stop());
    // The listener is closed when the stop begins.
    let refused = async { while TcpStream::connect(address).await.is_ok() {} };
    timeout(PATIENCE, refused).await.expect("it stops");
    stream.write_all(last.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
    read.expect("it is answered").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    timeout(PATIENCE, stopping)
        .await
        .expect("it stops")
        .unwrap();
}
