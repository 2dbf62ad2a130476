//! Many sockets at once: how long they take to connect, what they hear of each event and how late, and how long it takes
//! until all of them are back after they were cut off together.
//!
//! The client speaks Engine.IO and Socket.IO over WebSocket in plain texts, as little of it as is needed. Some threads
//! share the sockets and wait for all of theirs with one call.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use super::load::connect_from;

/// Threads that share the sockets.
const THREADS: usize = 8;
/// A server takes so many of one network; see its limits.
const PER_ADDRESS: usize = 400;
/// Connecting takes no longer than this, or is counted as failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// One socket.
struct BenchSocket {
    stream: TcpStream,
    read: Vec<u8>,
    ready: bool,
}

/// What the threads tell each other.
struct Told {
    /// When each event was asked for; its number is in its name.
    asked: Mutex<Vec<Instant>>,
    delays: Mutex<Vec<Duration>>,
    heard: AtomicUsize,
    lost: AtomicUsize,
    stop: AtomicBool,
}

impl BenchSocket {
    /// Connected and welcomed, or why not.
    fn open(server: SocketAddr, token: &str, number: usize) -> Result<Self> {
        let place = u8::try_from(number / PER_ADDRESS % 250).unwrap_or(0);
        let stream = connect_from(server, Ipv4Addr::new(127, 9, 2, place + 1))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut socket = Self {
            stream,
            read: Vec::new(),
            ready: false,
        };
        let head = "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nhost: bench\r\nupgrade: websocket\r\n\
                    connection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
        socket.stream.write_all(head.as_bytes())?;
        while !socket.read.windows(4).any(|part| part == b"\r\n\r\n") {
            socket.fill()?;
        }
        if !socket.read.starts_with(b"HTTP/1.1 101") {
            let said = String::from_utf8_lossy(&socket.read).into_owned();
            bail!("refused: {}", said.lines().next().unwrap_or_default());
        }
        let end = socket.read.windows(4).position(|part| part == b"\r\n\r\n");
        socket.read.drain(..end.unwrap_or(0) + 4);
        socket.say(&format!("40{}", json!({"token": token})))?;
        while !socket.ready {
            socket.fill()?;
            while let Some(text) = socket.next()? {
                socket.take(&text, None)?;
            }
        }
        socket.stream.set_nonblocking(true)?;
        Ok(socket)
    }

    fn fill(&mut self) -> Result<()> {
        let mut part = [0; 16 * 1024];
        match self.stream.read(&mut part) {
            Ok(0) => bail!("closed"),
            Ok(count) => {
                self.read.extend_from_slice(&part[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A text of a client is masked; with zeros it stays what it is.
    fn say(&mut self, text: &str) -> Result<()> {
        let length = u16::try_from(text.len()).context("too long")?;
        let mut frame = vec![0x81];
        match length {
            0..126 => frame.push(0x80 | u8::try_from(length).unwrap_or(0)),
            _ => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&length.to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        Ok(self.stream.write_all(&frame)?)
    }

    /// The next whole message, if it is there.
    fn next(&mut self) -> Result<Option<String>> {
        let Some(&[first, second]) = self.read.first_chunk::<2>() else {
            return Ok(None);
        };
        let (length, begin) = match (second & 0x7f, self.read.get(2..4), self.read.get(2..10)) {
            (126, Some(long), _) => (usize::from(u16::from_be_bytes([long[0], long[1]])), 4),
            (127, _, Some(long)) => {
                let length = u64::from_be_bytes(long.try_into().unwrap_or_default());
                (usize::try_from(length)?, 10)
            }
            (126 | 127, _, _) => return Ok(None),
            (short, _, _) => (usize::from(short), 2),
        };
        if self.read.len() < begin + length {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&self.read[begin..begin + length]).into_owned();
        self.read.drain(..begin + length);
        match first & 0x0f {
            8 => bail!("closed"),
            _ => Ok(Some(text)),
        }
    }

    fn take(&mut self, text: &str, told: Option<&Told>) -> Result<()> {
        if text == "2" {
            return self.say("3");
        }
        if text.starts_with("44") {
            bail!("refused: {text}");
        }
        if text.starts_with("42[\"ready\"") {
            self.ready = true;
        }
        let (Some(told), true) = (told, text.starts_with("42[\"group.created\"")) else {
            return Ok(());
        };
        let number = text.split("\"fan-").nth(1);
        let number = number.and_then(|rest| rest.split('"').next()?.parse::<usize>().ok());
        let asked = told.asked.lock().unwrap_or_else(|held| held.into_inner());
        if let Some(asked) = number.and_then(|number| asked.get(number)) {
            let delay = asked.elapsed();
            let mut delays = told.delays.lock().unwrap_or_else(|held| held.into_inner());
            delays.push(delay);
            told.heard.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Opens all of them at once; those that came, how many did not, and how long it took.
fn open_all(
    server: SocketAddr,
    token: &str,
    count: usize,
) -> (Vec<Vec<BenchSocket>>, usize, Duration) {
    let began = Instant::now();
    let failed = AtomicUsize::new(0);
    let sockets = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let failed = &failed;
                scope.spawn(move || {
                    let mut own = Vec::new();
                    for number in (thread..count).step_by(THREADS) {
                        match BenchSocket::open(server, token, number) {
                            Ok(socket) => own.push(socket),
                            Err(_) => {
                                failed.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                    own
                })
            })
            .collect();
        let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ended.map(Result::unwrap_or_default).collect()
    });
    (sockets, failed.into_inner(), began.elapsed())
}

/// Hears until it is told to stop.
fn listen(sockets: &mut Vec<BenchSocket>, told: &Told) {
    while !told.stop.load(Ordering::Relaxed) {
        let ready: Vec<bool> = {
            let mut waited: Vec<PollFd<'_>> = sockets
                .iter()
                .map(|socket| PollFd::new(socket.stream.as_fd(), PollFlags::POLLIN))
                .collect();
            let _ = poll(&mut waited, PollTimeout::from(100u8));
            waited.iter().map(|one| one.any() == Some(true)).collect()
        };
        let mut ready = ready.into_iter();
        sockets.retain_mut(|socket| {
            if ready.next() != Some(true) {
                return true;
            }
            let heard = socket.fill().and_then(|()| {
                while let Some(text) = socket.next()? {
                    socket.take(&text, Some(told))?;
                }
                Ok(())
            });
            if heard.is_err() {
                told.lost.fetch_add(1, Ordering::Relaxed);
            }
            heard.is_ok()
        });
    }
}

/// Connects, tells them so many events through `publish`, cuts them off and lets them come back.
pub(super) fn measure(
    server: SocketAddr,
    token: &str,
    count: usize,
    events: usize,
    publish: &dyn Fn(usize) -> Result<()>,
    memory: &dyn Fn() -> Value,
) -> Result<Value> {
    let (mut sockets, refused, connected) = open_all(server, token, count);
    let open: usize = sockets.iter().map(Vec::len).sum();
    let with_sockets = memory();
    let told = Told {
        asked: Mutex::default(),
        delays: Mutex::default(),
        heard: AtomicUsize::new(0),
        lost: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
    };
    let began = Instant::now();
    let published = thread::scope(|scope| -> Result<Duration> {
        for own in &mut sockets {
            scope.spawn(|| listen(own, &told));
        }
        let told_all = (|| {
            for number in 0..events {
                let mut asked = told.asked.lock().unwrap_or_else(|held| held.into_inner());
                asked.push(Instant::now());
                drop(asked);
                publish(number)?;
            }
            Ok(())
        })();
        // The last of them is on its way for a while.
        let end = Instant::now() + PATIENCE;
        while told.heard.load(Ordering::Relaxed) + told.lost.load(Ordering::Relaxed) * events
            < open * events
            && Instant::now() < end
        {
            thread::sleep(Duration::from_millis(20));
        }
        let took = began.elapsed();
        told.stop.store(true, Ordering::Relaxed);
        told_all.map(|()| took)
    })?;
    drop(sockets);
    let mut delays = told.delays.into_inner().unwrap_or_default();
    delays.sort();
    let at = |part: f64| {
        let place = ((delays.len().max(1) - 1) as f64 * part) as usize;
        delays.get(place).map_or(0.0, |time| seconds(*time))
    };
    let heard = told.heard.into_inner();
    let (again, refused_again, back) = open_all(server, token, open);
    let came_back: usize = again.iter().map(Vec::len).sum();
    Ok(json!({
        "asked_for": count,
        "connected": open,
        "refused": refused,
        "connect_seconds": seconds(connected),
        "mb": with_sockets,
        "events": events,
        "heard": heard,
        "missing": (open * events).saturating_sub(heard),
        "messages_per_second": (heard as f64 / published.as_secs_f64()).round(),
        "median_seconds": at(0.5),
        "p99_seconds": at(0.99),
        "lost": told.lost.into_inner(),
        "came_back": came_back,
        "refused_again": refused_again,
        "back_seconds": seconds(back),
    }))
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}
