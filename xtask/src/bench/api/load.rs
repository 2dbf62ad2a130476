//! A load: several connections that ask one after the other, each as fast as it is answered.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

/// One connection that stays open.
pub(super) struct LoadConnection {
    reader: BufReader<TcpStream>,
}

/// What came back.
pub(super) struct LoadAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl LoadAnswer {
    pub(super) fn json(&self) -> Result<Value> {
        let text = String::from_utf8_lossy(&self.body);
        if !(200..300).contains(&self.status) {
            bail!("{}: {text}", self.status);
        }
        Ok(serde_json::from_slice(&self.body).unwrap_or_default())
    }
}

impl LoadConnection {
    pub(super) fn open(server: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(server).context("the server does not answer")?;
        Self::on(stream)
    }

    /// From another address of this machine, for what is counted by address.
    pub(super) fn open_from(server: SocketAddr, own: Ipv4Addr) -> Result<Self> {
        Self::on(connect_from(server, own)?)
    }

    fn on(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self {
            reader: BufReader::new(stream),
        })
    }

    pub(super) fn ask(
        &mut self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Result<LoadAnswer> {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: bench\r\ncontent-length: {}\r\n",
            body.len()
        );
        if !body.is_empty() {
            head.push_str("content-type: application/json\r\n");
        }
        if let Some(token) = token {
            head.push_str(&format!("authorization: Bearer {token}\r\n"));
        }
        self.reader
            .get_mut()
            .write_all(format!("{head}\r\n{body}").as_bytes())?;
        self.read()
    }

    fn read(&mut self) -> Result<LoadAnswer> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|text| text.parse().ok());
        let status = status.with_context(|| format!("`{line}` is not an answer"))?;
        let mut length = 0;
        loop {
            line.clear();
            self.reader.read_line(&mut line)?;
            let header = line.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        Ok(LoadAnswer { status, body })
    }
}

/// Connects from an address of this machine.
pub(super) fn connect_from(server: SocketAddr, own: Ipv4Addr) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((own, 0)).into())?;
    socket
        .connect(&server.into())
        .context("the server does not answer on an address of IPv4")?;
    Ok(TcpStream::from(socket))
}

/// What a connection asks the how-manieth time.
pub(super) type Question<'a> = dyn Fn(u64) -> (&'static str, String, Option<Value>) + Sync + 'a;

/// Asks for a while on so many connections; how often it was answered, and how fast.
pub(super) fn run(
    server: SocketAddr,
    token: &str,
    connections: usize,
    duration: Duration,
    question: &Question<'_>,
) -> Result<Value> {
    let (number, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let began = Instant::now();
    let results = thread::scope(|scope| {
        let (number, stop) = (&number, &stop);
        let workers: Vec<_> = (0..connections)
            .map(|worker| {
                scope.spawn(move || -> Result<(Vec<Duration>, u64, u64)> {
                    // A server takes a limited number of connections of one address.
                    let last = u8::try_from(worker / 100 % 200).unwrap_or(0);
                    let open =
                        || LoadConnection::open_from(server, Ipv4Addr::new(127, 9, 1, last + 1));
                    let mut connection = open()?;
                    let (mut times, mut shed, mut failed) = (Vec::new(), 0, 0);
                    while !stop.load(Ordering::Relaxed) {
                        let (method, path, body) = question(number.fetch_add(1, Ordering::Relaxed));
                        let asked = Instant::now();
                        let Ok(answer) = connection.ask(method, &path, Some(token), body.as_ref())
                        else {
                            failed += 1;
                            connection = open()?;
                            continue;
                        };
                        match answer.status {
                            200..300 => times.push(asked.elapsed()),
                            429 | 503 => shed += 1,
                            _ => failed += 1,
                        }
                    }
                    Ok((times, shed, failed))
                })
            })
            .collect();
        thread::sleep(duration);
        stop.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .map(|worker| worker.join())
            .collect::<Vec<_>>()
    });
    let took = began.elapsed().as_secs_f64();
    let (mut times, mut shed, mut failed) = (Vec::new(), 0, 0);
    for result in results {
        let Ok(result) = result else {
            bail!("a connection ended in a defect");
        };
        let (mut some, more_shed, more_failed) = result?;
        times.append(&mut some);
        shed += more_shed;
        failed += more_failed;
    }
    times.sort();
    let at = |part: f64| {
        let place = ((times.len().max(1) - 1) as f64 * part) as usize;
        let time = times.get(place).copied().unwrap_or_default();
        (time.as_secs_f64() * 10_000.0).round() / 10.0
    };
    Ok(json!({
        "connections": connections,
        "per_second": (times.len() as f64 / took).round(),
        "median_ms": at(0.5),
        "p99_ms": at(0.99),
        "shed": shed,
        "failed": failed,
    }))
}
