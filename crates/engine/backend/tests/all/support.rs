//! What the tests of this crate share: clocks, places, states, and processes to be killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use nimbus_engine_backend::store::{MemoryStorage, Storage, StorageAddress};
use nimbus_engine_backend::{
    Backend, BackendOptions, EnvironmentVariables, KeyServices, Keyring, LeaseClock, LeaseSettings,
    Owner, SessionRequest, Stack, StackRef, StackSession, UpdateInfo, UpdateKind, UpdateResult,
};
use nimbus_engine_model::{
    ActId, JournalChange, JournalEntry, OperationKind, PendingOperation, PropertyValue,
    ResourceState, Snapshot, Urn,
};
use parking_lot::Mutex;

/// A clock that moves when it is told to.
#[derive(Debug)]
pub(crate) struct ManualClock {
    wall: Mutex<Timestamp>,
    elapsed: Mutex<Duration>,
}

impl ManualClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            wall: Mutex::new("2026-01-01T00:00:00Z".parse().unwrap()),
            elapsed: Mutex::default(),
        })
    }

    /// Time passes.
    pub(crate) fn advance(&self, duration: Duration) {
        *self.wall.lock() += duration;
        *self.elapsed.lock() += duration;
    }

    /// Somebody sets the wall clock; no time passes.
    pub(crate) fn jump(&self, seconds: i64) {
        let mut wall = self.wall.lock();
        *wall += jiff::SignedDuration::from_secs(seconds);
    }
}

impl LeaseClock for ManualClock {
    fn now(&self) -> Timestamp {
        // A tick per look keeps names with times apart.
        let mut wall = self.wall.lock();
        *wall += Duration::from_nanos(1);
        *wall
    }

    fn monotonic(&self) -> Duration {
        *self.elapsed.lock()
    }
}

/// No heartbeat: tests renew when they mean to.
pub(crate) fn options(clock: Arc<dyn LeaseClock>) -> BackendOptions {
    BackendOptions {
        clock,
        lease: LeaseSettings {
            lifetime: Duration::from_secs(60),
            heartbeat: None,
        },
        free_bytes: 0,
        ..BackendOptions::default()
    }
}

pub(crate) async fn local(root: &Path) -> Backend {
    let address = StorageAddress::Local(root.to_owned());
    let options = options(Arc::new(nimbus_engine_backend::SystemLeaseClock::default()));
    Backend::open(&address, &EnvironmentVariables::fixed([]), options)
        .await
        .unwrap()
}

/// A bucket in memory whose clock is the backend's own.
pub(crate) async fn bucket(clock: &Arc<ManualClock>) -> (Backend, Arc<dyn Storage>) {
    let clock = Arc::clone(clock) as Arc<dyn LeaseClock>;
    let storage = Arc::new(MemoryStorage::new(Arc::clone(&clock))) as Arc<dyn Storage>;
    let backend = Backend::in_storage(Arc::clone(&storage), options(clock))
        .await
        .unwrap();
    (backend, storage)
}

pub(crate) fn shop_dev() -> StackRef {
    StackRef::new("shop", "dev").unwrap()
}

pub(crate) fn owner() -> Owner {
    Owner::current("a test")
}

/// Without a passphrase: states of tests encode their secrets as base64, if they have any.
pub(crate) fn keyring() -> Arc<Keyring> {
    Keyring::new(EnvironmentVariables::fixed([]), KeyServices::Any)
}

pub(crate) fn request() -> SessionRequest {
    SessionRequest {
        kind: UpdateKind::Update,
        owner: owner(),
        keyring: keyring(),
        secrets: Default::default(),
        expected: None,
    }
}

pub(crate) async fn begin(stack: &Stack) -> StackSession {
    stack.begin(request()).await.unwrap()
}

pub(crate) async fn created(backend: &Backend) -> Stack {
    let stack = backend.stack(shop_dev());
    stack.create(owner()).await.unwrap();
    stack
}

pub(crate) fn update(result: UpdateResult) -> UpdateInfo {
    UpdateInfo {
        kind: UpdateKind::Update,
        start_time: 1,
        message: "a test".into(),
        environment: None,
        config: serde_json::json!({"shop:size": "small"}),
        version: 0,
        result,
        end_time: 2,
        resource_changes: Some([("create".to_owned(), 1)].into()),
    }
}

pub(crate) fn urn(name: &str) -> Urn {
    Urn::new("dev", "shop", None, "test:index:Thing", name)
}

/// A component, which needs no provider.
pub(crate) fn resource(name: &str) -> Arc<ResourceState> {
    let mut state = ResourceState::new(urn(name), false);
    state
        .inputs
        .insert("name".into(), PropertyValue::from(name));
    Arc::new(state)
}

pub(crate) fn snapshot(names: &[&str]) -> Snapshot {
    Snapshot {
        resources: names.iter().map(|name| resource(name)).collect(),
        ..Snapshot::default()
    }
}

pub(crate) fn begins(act: u64, name: &str) -> JournalEntry {
    JournalEntry::Begin {
        act: ActId(act),
        operation: PendingOperation {
            kind: OperationKind::Creating,
            resource: resource(name),
        },
    }
}

pub(crate) fn succeeds(act: u64, name: &str) -> JournalEntry {
    JournalEntry::Success {
        act: ActId(act),
        change: JournalChange {
            state: Some(resource(name)),
            ..JournalChange::default()
        },
    }
}

/// One whole update that leaves these resources.
pub(crate) async fn deploy(stack: &Stack, names: &[&str]) {
    let session = begin(stack).await;
    let update = update(UpdateResult::Succeeded);
    session.finish(snapshot(names), &update).await.unwrap();
}

pub(crate) fn names(snapshot: &Snapshot) -> Vec<String> {
    let resources = snapshot.resources.iter();
    resources
        .map(|resource| resource.urn.name().to_owned())
        .collect()
}

pub(crate) fn pending(snapshot: &Snapshot) -> Vec<String> {
    let pending = snapshot.pending_operations.iter();
    pending
        .map(|operation| operation.resource.urn.name().to_owned())
        .collect()
}

/// Names what the child process is to do; absent in the test runner itself.
pub(crate) const ROLE: &str = "NIMBUS_TEST_ROLE";
pub(crate) const ROOT: &str = "NIMBUS_TEST_ROOT";

/// This test binary again, running only its test `entry` in a given role.
pub(crate) fn child(entry: &str, role: &str, root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", entry, "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(ROOT, root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

/// Ends a process the hard way, and waits until it is gone.
pub(crate) fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The role of this process, with the folder to work in.
pub(crate) fn role() -> Option<(String, std::path::PathBuf)> {
    let role = std::env::var(ROLE).ok()?;
    Some((role, std::env::var_os(ROOT)?.into()))
}
