//! The same promises in a real S3 API.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use nimbus_core::ErrorCode;
use nimbus_engine_backend::store::StorageAddress;
use nimbus_engine_backend::{
    Backend, BackendError, BackendOptions, EnvironmentVariables, LeaseError, Stack, UpdateResult,
};
use nimbus_engine_ports::JournalError;
use nimbus_test_tools::{AwsServer, Tool, tool_or_skip};

use crate::child::{ENTRY, say};
use crate::leases::sayings;
use crate::support::*;

struct Bucket(AwsServer);

const ADDRESS: &str = "s3://states/team a?region=eu-west-1&endpoint=http://127.0.0.1:PORT\
                       &s3ForcePathStyle=true&awssdk=v2";

/// Opens what a server on this port keeps.
async fn open(address: &str, port: u16, options: BackendOptions) -> Result<Backend, BackendError> {
    let environment = EnvironmentVariables::fixed([
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("HOME", "/nowhere"),
    ]);
    let address = address.replace("PORT", &port.to_string());
    let address = StorageAddress::parse(&address, Path::new("/"), &environment)?;
    Backend::open(&address, &environment, options).await
}

impl Bucket {
    /// One named `states` on a server of its own.
    fn start(program: &Path) -> Self {
        let server = AwsServer::start(program);
        server.make_bucket("states");
        Self(server)
    }

    async fn open(&self, address: &str) -> Result<Backend, BackendError> {
        let clock = std::sync::Arc::new(nimbus_engine_backend::SystemLeaseClock::default());
        open(address, self.0.port(), options(clock)).await
    }

    async fn stack(&self) -> Stack {
        self.open(ADDRESS).await.unwrap().stack(shop_dev())
    }
}

#[tokio::test]
async fn updates_history_and_recovery_work_in_a_real_bucket() {
    let bucket = Bucket::start(&tool_or_skip!(Tool::S3Server));
    let stack = bucket.stack().await;
    stack.create(owner()).await.unwrap();
    deploy(&stack, &["a"]).await;
    deploy(&stack, &["a", "b"]).await;
    assert_eq!(stack.history().await.unwrap().len(), 2);

    let session = begin(&stack).await;
    for entry in [begins(1, "c"), succeeds(1, "c"), begins(2, "d")] {
        session.journal().append(entry).await.unwrap();
    }
    session.end().await.unwrap();
    let other = bucket.stack().await;
    let session = begin(&other).await;
    assert_eq!(session.recovered()[0].unknown.len(), 1);
    let snapshot = session.snapshot().unwrap();
    assert_eq!(names(snapshot), ["c", "a", "b"]);
    assert_eq!(pending(snapshot), ["d"]);
    session.end().await.unwrap();
    assert!(other.interrupted().await.unwrap().is_none());
    other.remove(true, owner(), &keyring()).await.unwrap();
    assert!(!stack.exists().await.unwrap());
}

#[tokio::test]
async fn a_real_bucket_keeps_two_writers_apart() {
    let bucket = Bucket::start(&tool_or_skip!(Tool::S3Server));
    let (a, b) = (bucket.stack().await, bucket.stack().await);
    a.create(owner()).await.unwrap();
    for round in 0..10 {
        let racers = [&a, &b, &a].map(|stack| {
            let stack = stack.clone();
            tokio::spawn(async move { stack.begin(request()).await })
        });
        let mut winners = Vec::new();
        for racer in racers {
            match racer.await.unwrap() {
                Ok(session) => winners.push(session),
                Err(BackendError::Lease(LeaseError::Held { .. })) => {}
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        assert_eq!(winners.len(), 1, "round {round}");
        for winner in winners {
            winner.lease().renew().await.unwrap();
            winner.end().await.unwrap();
        }
    }

    let first = begin(&a).await;
    first.journal().append(begins(1, "early")).await.unwrap();
    b.unlock().await.unwrap();
    let second = begin(&b).await;
    assert_eq!(second.recovered()[0].unknown.len(), 1);
    let late = first.journal().append(begins(2, "late")).await;
    assert!(
        matches!(late, Err(JournalError::LeaseLost { .. })),
        "{late:?}"
    );
    let update = update(UpdateResult::Succeeded);
    let stale = first
        .finish(snapshot(&["stale"]), &update)
        .await
        .unwrap_err();
    assert_eq!(stale.code(), ErrorCode::LEASE_LOST);
    second.finish(snapshot(&["fresh"]), &update).await.unwrap();
    let loaded = a.load(&keyring()).await.unwrap();
    assert_eq!(names(&loaded.snapshot.unwrap()), ["fresh"]);
}

#[tokio::test]
async fn a_bucket_that_is_not_there_is_named() {
    let bucket = Bucket::start(&tool_or_skip!(Tool::S3Server));
    let address = "s3://absent?endpoint=http://127.0.0.1:PORT&region=eu-west-1";
    let backend = bucket.open(address).await;
    let error = match backend {
        Ok(backend) => backend.stack(shop_dev()).create(owner()).await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.code(), ErrorCode::BACKEND_UNAVAILABLE, "{error}");
}

/// Names the port of the bucket's server to a process that is stopped.
const PORT: &str = "NIMBUS_TEST_PORT";

/// Holds the lease with signs of life and writes when it is told to. By its own clock no time passes, so
/// only the bucket can tell it that it was too slow.
pub(crate) async fn sleeper() {
    let port = std::env::var(PORT).unwrap().parse().unwrap();
    let mut options = options(ManualClock::new());
    options.lease.lifetime = Duration::from_secs(2);
    options.lease.heartbeat = Some(Duration::from_millis(300));
    let stack = open(ADDRESS, port, options).await.unwrap();
    let session = begin(&stack.stack(shop_dev())).await;
    say(&format!("held {}", session.lease().epoch()));
    for (act, name) in [(1, "early"), (2, "late")] {
        let heard = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
        assert_eq!(heard.await.unwrap().unwrap(), 1);
        match session.journal().append(begins(act, name)).await {
            Ok(()) => say("written"),
            Err(JournalError::LeaseLost { .. }) => say("fenced"),
            Err(error) => say(&format!("failed {error}")),
        }
    }
    let update = update(UpdateResult::Succeeded);
    let finished = session.finish(snapshot(&["stale"]), &update).await;
    say(&finished.map_or_else(|error| error.code().to_string(), |_| "saved".to_owned()));
}

/// F3: a process that is truly stopped, past its lease, and truly woken.
#[tokio::test]
async fn a_holder_that_was_stopped_past_its_lease_is_fenced_when_it_wakes() {
    use nix::sys::signal::{Signal, kill as signal};
    let bucket = Bucket::start(&tool_or_skip!(Tool::S3Server));
    let stack = bucket.stack().await;
    stack.create(owner()).await.unwrap();
    let mut holder = child(ENTRY, "sleeper", Path::new("/"))
        .env(PORT, bucket.0.port().to_string())
        .spawn()
        .unwrap();
    let mut said = sayings(&mut holder);
    let mut stdin = holder.stdin.take().unwrap();
    let held = said.next().unwrap();
    let epoch: u64 = held.strip_prefix("held ").unwrap().parse().unwrap();
    stdin.write_all(b"x").unwrap();
    assert_eq!(said.next().unwrap(), "written");
    let refused = stack.begin(request()).await.err().unwrap();
    assert_eq!(refused.code(), ErrorCode::STACK_LOCKED);

    let pid = nix::unistd::Pid::from_raw(holder.id().try_into().unwrap());
    signal(pid, Signal::SIGSTOP).unwrap();
    let started = Instant::now();
    let second = loop {
        match stack.begin(request()).await {
            Ok(session) => break session,
            Err(BackendError::Lease(LeaseError::Held { .. })) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(started.elapsed() < Duration::from_secs(60));
    };
    assert!(second.lease().epoch().get() > epoch);
    assert_eq!(second.recovered()[0].unknown.len(), 1, "the early write");
    signal(pid, Signal::SIGCONT).unwrap();
    stdin.write_all(b"x").unwrap();
    assert_eq!(said.next().unwrap(), "fenced");
    assert_eq!(said.next().unwrap(), ErrorCode::LEASE_LOST.to_string());
    assert!(holder.wait().unwrap().success());
    second.journal().append(begins(1, "second")).await.unwrap();
    let update = update(UpdateResult::Succeeded);
    second.finish(snapshot(&["fresh"]), &update).await.unwrap();
    let loaded = stack.load(&keyring()).await.unwrap();
    assert_eq!(names(&loaded.snapshot.unwrap()), ["fresh"]);
    assert!(stack.interrupted().await.unwrap().is_none());
}
