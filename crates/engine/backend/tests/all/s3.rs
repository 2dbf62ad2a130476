//! The same promises in a real S3 API.

use std::path::Path;

use nimbus_core::ErrorCode;
use nimbus_engine_backend::store::StorageAddress;
use nimbus_engine_backend::{Backend, BackendError, Environment, LeaseError, Stack, UpdateResult};
use nimbus_engine_ports::JournalError;
use nimbus_test_tools::{AwsServer, Tool, tool_or_skip};

use crate::support::*;

struct Bucket(AwsServer);

impl Bucket {
    /// One named `states` on a server of its own.
    fn start(program: &Path) -> Self {
        let server = AwsServer::start(program);
        server.make_bucket("states");
        Self(server)
    }

    async fn open(&self, address: &str) -> Result<Backend, BackendError> {
        let environment = Environment::fixed([
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("HOME", "/nowhere"),
        ]);
        let address = address.replace("PORT", &self.0.port().to_string());
        let address = StorageAddress::parse(&address, Path::new("/"), &environment)?;
        let clock = std::sync::Arc::new(nimbus_engine_backend::SystemLeaseClock::default());
        Backend::open(&address, &environment, options(clock)).await
    }

    async fn stack(&self) -> Stack {
        let address = "s3://states/team a?region=eu-west-1&endpoint=http://127.0.0.1:PORT\
                       &s3ForcePathStyle=true&awssdk=v2";
        self.open(address).await.unwrap().stack(shop_dev())
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
