//! What it costs to record one step, for states of several sizes: `cargo xtask bench journal`.
//!
//! The arguments are numbers of resources. For each, a stack with that state is made in a new folder
//! and an operation records steps as the engine does: the intent, durably, and then the outcome. A
//! JSON list with one object per size goes to standard output.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nimbus_engine_backend::store::StorageAddress;
use nimbus_engine_backend::{
    Backend, BackendOptions, EnvironmentVariables, KeyServices, Keyring, Owner, SessionRequest,
    StackRef, StackSession, UpdateInfo, UpdateKind, UpdateResult,
};
use nimbus_engine_model::{
    ActId, JournalChange, JournalEntry, OperationKind, PendingOperation, ResourceState, Snapshot,
    Urn,
};

/// How many steps are recorded for one figure.
const STEPS: u64 = 200;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let mut figures = Vec::new();
    for size in std::env::args().skip(1) {
        figures.push(measure(size.parse()?).await?);
    }
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", serde_json::Value::Array(figures))?;
    Ok(())
}

async fn measure(size: usize) -> Result<serde_json::Value> {
    let folder = tempfile::tempdir()?;
    let address = StorageAddress::Local(folder.path().to_owned());
    let options = BackendOptions::default();
    let backend = Backend::open(&address, &EnvironmentVariables::fixed([]), options).await?;
    let stack = backend.stack(StackRef::new("bench", "dev")?);
    stack.create(Owner::current("bench")).await?;
    let first = stack.begin(request()).await?;
    first.finish(state(size), &update()).await?;

    let session = stack.begin(request()).await?;
    let before = journal_size(folder.path())?;
    let mut times = record(&session).await?;
    let bytes = journal_size(folder.path())? - before;
    session.end().await?;
    times.sort();
    Ok(serde_json::json!({
        "resources": size,
        "steps": STEPS,
        "median_us": micros(times[times.len() / 2]),
        "p99_us": micros(times[times.len() * 99 / 100]),
        "bytes_per_step": bytes / STEPS,
    }))
}

/// Records steps one after the other and says how long each took.
async fn record(session: &StackSession) -> Result<Vec<Duration>> {
    let journal = session.journal();
    let mut times = Vec::new();
    for act in 1..=STEPS {
        let resource = resource(&format!("new-{act:06}"));
        let act = ActId(act);
        let operation = PendingOperation {
            kind: OperationKind::Creating,
            resource: Arc::clone(&resource),
        };
        let change = JournalChange {
            state: Some(resource),
            ..JournalChange::default()
        };
        let started = Instant::now();
        journal
            .append(JournalEntry::Begin { act, operation })
            .await?;
        journal
            .append(JournalEntry::Success { act, change })
            .await?;
        times.push(started.elapsed());
    }
    Ok(times)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The journal of the only stack.
fn journal_size(root: &Path) -> Result<u64> {
    let file = root.join(".nimbus/journal/bench/dev.jsonl");
    Ok(std::fs::metadata(file).map_or(0, |metadata| metadata.len()))
}

fn request() -> SessionRequest {
    SessionRequest {
        kind: UpdateKind::Update,
        owner: Owner::current("bench"),
        keyring: Keyring::new(EnvironmentVariables::fixed([]), KeyServices::Any),
        secrets: Default::default(),
        expected: None,
    }
}

fn update() -> UpdateInfo {
    UpdateInfo {
        kind: UpdateKind::Update,
        start_time: 0,
        message: String::new(),
        environment: None,
        config: serde_json::json!({}),
        version: 0,
        result: UpdateResult::Succeeded,
        end_time: 0,
        resource_changes: None,
    }
}

fn state(size: usize) -> Snapshot {
    let names = (0..size).map(|number| format!("old-{number}"));
    Snapshot {
        resources: names.map(|name| resource(&name)).collect(),
        ..Snapshot::default()
    }
}

/// A component, which needs no provider.
fn resource(name: &str) -> Arc<ResourceState> {
    let urn = Urn::new("dev", "bench", None, "bench:index:Thing", name);
    let mut state = ResourceState::new(urn, false);
    let text = "x".repeat(200);
    state.inputs.insert("text".to_owned(), text.as_str().into());
    Arc::new(state)
}
