//! Connections: how many there are, and how long one may keep the server waiting.
//!
//! A connection *waits* while its next request has not arrived whole, and *works* while the answer is being
//! made or sent. Only those that wait can be had for nothing, so only they are taken away: when there are
//! too many, of one network or of all, whoever waits longest makes room for whoever comes. A flood of
//! half-open connections thus pushes itself out, and a client that sends its request is served.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response};
use http_body::Frame;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nimbus_control_api::{Front, NetworkOfCaller};
use nimbus_control_metrics::Metrics;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tower::ServiceExt as _;
use tracing::{debug, warn};

use crate::database::told_to_stop;
use crate::stopping;

/// What a request may have before its body, and as much again may have arrived with the last of it. Tokens and cookies
/// of ours have some kilobytes.
const LARGEST_HEAD: usize = 32 << 10;

/// What connections may use.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Of everybody.
    pub most: usize,
    /// Of one network, unless it is a trusted proxy's.
    pub most_of_network: usize,
    /// For a request to arrive whole, once the connection is open or its first byte came.
    pub request: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// For an answer to go on.
    pub answer: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            most: 10_000,
            most_of_network: 500,
            request: Duration::from_secs(15),
            idle: Duration::from_secs(75),
            answer: Duration::from_secs(120),
        }
    }
}

impl ConnectionLimits {
    /// No more than there can be: every connection is an open file, and the database needs some too.
    pub(crate) fn within_open_files(mut self) -> Self {
        let spare = 256;
        if let Some(files) = raise_open_files() {
            let files = usize::try_from(files).unwrap_or(usize::MAX);
            self.most = self.most.min(files.saturating_sub(spare).max(spare));
        }
        self
    }
}

/// Raises the soft limit of open files to the hard one; what it is then.
fn raise_open_files() -> Option<u64> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
        return Some(hard);
    }
    Some(soft)
}

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
    /// No request has arrived whole yet.
    TrackedRequestBody,
    /// A request was answered and none has begun since.
    Idle,
    Working,
}

struct OpenConnection {
    network: Option<NetworkOfCaller>,
    phase: ConnectionPhase,
    since: Instant,
    leave: Option<oneshot::Sender<()>>,
}

/// Every connection there is.
struct ConnectionTable {
    limits: ConnectionLimits,
    taken: HashMap<u64, OpenConnection>,
    networks: HashMap<NetworkOfCaller, usize>,
    next: u64,
    metrics: Arc<Metrics>,
}

impl ConnectionTable {
    /// A place for a new connection, if need be that of one that waits.
    fn take(&mut self, network: Option<NetworkOfCaller>) -> Option<(u64, oneshot::Receiver<()>)> {
        if let Some(own) = network
            && self.networks.get(&own).copied().unwrap_or_default() >= self.limits.most_of_network
            && !self.push_out(|connection| connection.network == Some(own))
        {
            return None;
        }
        if self.taken.len() >= self.limits.most && !self.push_out(|_| true) {
            return None;
        }
        let id = self.next;
        self.next += 1;
        let (leave, left) = oneshot::channel();
        self.taken.insert(
            id,
            OpenConnection {
                network,
                phase: ConnectionPhase::TrackedRequestBody,
                since: Instant::now(),
                leave: Some(leave),
            },
        );
        if let Some(network) = network {
            *self.networks.entry(network).or_default() += 1;
        }
        self.metrics.set_connections(self.taken.len());
        Some((id, left))
    }

    /// Takes the place of whoever waits longest. False if nobody waits.
    fn push_out(&mut self, which: impl Fn(&OpenConnection) -> bool) -> bool {
        let longest = self
            .taken
            .iter()
            .filter(|(_, connection)| {
                connection.phase != ConnectionPhase::Working && which(connection)
            })
            .min_by_key(|(_, connection)| connection.since)
            .map(|(id, _)| *id);
        longest.is_some_and(|id| {
            self.metrics.connection_ended("made_room");
            self.leave(id);
            true
        })
    }

    fn leave(&mut self, id: u64) {
        let Some(mut connection) = self.taken.remove(&id) else {
            return;
        };
        self.metrics.set_connections(self.taken.len());
        if let Some(leave) = connection.leave.take() {
            // An error is a connection that ended by itself.
            let _ = leave.send(());
        }
        if let Some(network) = connection.network
            && let Some(count) = self.networks.get_mut(&network)
        {
            *count -= 1;
            if *count == 0 {
                self.networks.remove(&network);
            }
        }
    }

    /// Ends those that had their time.
    fn sweep(&mut self) {
        let limits = self.limits;
        let over = |connection: &OpenConnection| {
            let allowed = match connection.phase {
                ConnectionPhase::TrackedRequestBody => limits.request,
                ConnectionPhase::Idle => limits.idle,
                ConnectionPhase::Working => limits.answer,
            };
            connection.since.elapsed() > allowed
        };
        let late: Vec<u64> = self
            .taken
            .iter()
            .filter(|(_, connection)| over(connection))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            self.metrics.connection_ended("late");
            self.leave(id);
        }
    }

    fn set(&mut self, id: u64, phase: ConnectionPhase) {
        if let Some(connection) = self.taken.get_mut(&id) {
            connection.phase = phase;
            connection.since = Instant::now();
        }
    }
}

/// One connection's place, given back when it is dropped.
#[derive(Clone)]
struct ConnectionGuard {
    table: Arc<Mutex<ConnectionTable>>,
    id: u64,
}

impl ConnectionGuard {
    fn set(&self, phase: ConnectionPhase) {
        self.table.lock().set(self.id, phase);
    }
}

/// Answers until told to stop, and then finishes what is under way.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    front: Front,
    limits: ConnectionLimits,
    metrics: Arc<Metrics>,
    mut draining: watch::Receiver<bool>,
) {
    let table = Arc::new(Mutex::new(ConnectionTable {
        limits,
        taken: HashMap::new(),
        networks: HashMap::new(),
        next: 0,
        metrics: Arc::clone(&metrics),
    }));
    let mut connections = JoinSet::new();
    let told = draining.clone();
    let mut sweeping = tokio::time::interval((limits.request / 10).max(Duration::from_millis(10)));
    loop {
        tokio::select! {
            biased;
            () = told_to_stop(&mut draining) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let connection = table.lock().take(network_of(&front, peer.ip()));
                    match connection {
                        Some((id, left)) => {
                            let guard = ConnectionGuard { table: Arc::clone(&table), id };
                            connections.spawn(talk(stream, peer, router.clone(), guard, left, told.clone()));
                        }
                        None => {
                            metrics.connection_ended("refused");
                            debug!(%peer, "a connection was refused: all of its network's are at work");
                        }
                    }
                }
                Err(error) => {
                    // Out of files or memory: whoever waits longest gives theirs back.
                    warn!(%error, "a connection was not accepted");
                    if !table.lock().push_out(|_| true) {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            },
            _ = sweeping.tick() => table.lock().sweep(),
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    finish(connections, &table).await;
}

/// Waits for answers that are under way. Who waits for a request that does not arrive keeps nobody.
async fn finish(mut connections: JoinSet<()>, table: &Mutex<ConnectionTable>) {
    let begun = Instant::now();
    let mut sweeping = tokio::time::interval(stopping::ARRIVALS / 10);
    loop {
        tokio::select! {
            ended = connections.join_next() => if ended.is_none() {
                return;
            },
            _ = sweeping.tick() => {
                let mut table = table.lock();
                table.sweep();
                if begun.elapsed() >= stopping::ARRIVALS {
                    while table.push_out(|_| true) {}
                }
            }
        }
    }
}

/// Proxies bring everybody's requests, and are not counted.
fn network_of(front: &Front, peer: IpAddr) -> Option<NetworkOfCaller> {
    (!front.is_proxy(peer)).then(|| NetworkOfCaller::of_caller(peer))
}

async fn talk(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    guard: ConnectionGuard,
    mut left: oneshot::Receiver<()>,
    mut draining: watch::Receiver<bool>,
) {
    // Answers are small and somebody waits for them.
    let _ = stream.set_nodelay(true);
    let own = guard.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let router = router.clone();
        let guard = own.clone();
        async move {
            let mut request =
                request.map(|body| Body::new(TrackedRequestBody::new(body, guard.clone())));
            request.extensions_mut().insert(ConnectInfo(peer));
            let response = router.oneshot(request).await;
            guard.set(ConnectionPhase::Working);
            response.map(|response: Response<Body>| {
                response.map(|body| Body::new(TrackedResponseBody { body, guard }))
            })
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        // Held for every connection, before anybody has signed in.
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let mut told = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    debug!(%peer, %error, "a connection ended");
                }
                break;
            }
            // An error is a place that was taken away together with its sender.
            _ = &mut left => break,
            () = told_to_stop(&mut draining), if !told => {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
    guard.table.lock().leave(guard.id);
}

/// A request's body: the connection works once all of it is here.
struct TrackedRequestBody {
    body: Incoming,
    guard: ConnectionGuard,
}

impl TrackedRequestBody {
    fn new(body: Incoming, guard: ConnectionGuard) -> Self {
        let phase = if http_body::Body::is_end_stream(&body) {
            ConnectionPhase::Working
        } else {
            ConnectionPhase::TrackedRequestBody
        };
        guard.set(phase);
        Self { body, guard }
    }
}

impl http_body::Body for TrackedRequestBody {
    type Data = hyper::body::Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.guard.set(ConnectionPhase::Working);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body: the connection waits again once all of it is gone.
struct TrackedResponseBody {
    body: Body,
    guard: ConnectionGuard,
}

impl http_body::Body for TrackedResponseBody {
    type Data = hyper::body::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // It goes on.
        self.guard.set(ConnectionPhase::Working);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

impl Drop for TrackedResponseBody {
    fn drop(&mut self) {
        self.guard.set(ConnectionPhase::Idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(most: usize, most_of_network: usize) -> ConnectionTable {
        ConnectionTable {
            limits: ConnectionLimits {
                most,
                most_of_network,
                ..ConnectionLimits::default()
            },
            taken: HashMap::new(),
            networks: HashMap::new(),
            next: 0,
            metrics: Arc::default(),
        }
    }

    fn network(address: &str) -> Option<NetworkOfCaller> {
        Some(NetworkOfCaller::of_caller(address.parse().unwrap()))
    }

    #[test]
    fn whoever_waits_longest_makes_room_and_whoever_works_stays() {
        let mut table = table(3, 2);
        let (working, mut kept) = table.take(network("10.0.0.1")).unwrap();
        table.set(working, ConnectionPhase::Working);
        let (_, mut pushed) = table.take(network("10.0.0.1")).unwrap();
        let (_, mut newest) = table.take(network("10.0.0.1")).unwrap();
        assert!(pushed.try_recv().is_ok(), "the network had two already");
        assert!(kept.try_recv().is_err() && newest.try_recv().is_err());
        table.take(network("10.0.0.2")).unwrap();
        assert_eq!(table.taken.len(), 3);
        table.take(network("10.0.0.3")).unwrap();
        assert!(newest.try_recv().is_ok(), "all places were taken");
        assert!(kept.try_recv().is_err());
    }

    #[test]
    fn a_network_whose_connections_all_work_gets_no_more() {
        let mut table = table(10, 2);
        for _ in 0..2 {
            let (id, _) = table.take(network("2001:db8::1")).unwrap();
            table.set(id, ConnectionPhase::Working);
        }
        assert!(table.take(network("2001:db8::2")).is_none(), "the same /64");
        assert!(table.take(network("2001:db8:0:1::1")).is_some());
        table.leave(0);
        assert!(table.take(network("2001:db8::2")).is_some());
    }
}
