//! Figures of the queue of runs: `cargo xtask bench control-plane` runs this and keeps what it prints.
//!
//! Arguments: the folder of PostgreSQL's programs and how many runs. Runs are rows that workers take; the engine here does
//! nothing, so that what is measured is the queue: queueing, taking with an epoch, the end. Then a tenant with all of the
//! runs at once, and ten others who come later with one each and say how long they waited.

use std::collections::HashMap;
use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nimbus_control_runs::{DriverSettings, RunCarrier, RunDriver, RunLimits, RunVerdict};
use nimbus_control_store::{
    NewDeployment, NewRun, NewTenant, NewUser, Store, StoreError, StoredRun,
};
use nimbus_control_testing::DurableCluster;
use nimbus_core::{TenantId, UserId};
use nimbus_engine_operations::Cancellation;
use nimbus_orchestrator::RunResult;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Runs at once on this server.
const PLACES: usize = 8;
const TENANTS: usize = 20;
const QUIET: usize = 10;
/// What a run takes where waiting is measured.
const WORK: Duration = Duration::from_millis(50);

/// Does nothing, for so long, and tells which run began when.
struct NoOpCarrier {
    work: Duration,
    begun: mpsc::UnboundedSender<(Uuid, Instant)>,
}

#[async_trait]
impl RunCarrier for NoOpCarrier {
    async fn carry(&self, _: TenantId, run: &StoredRun, cancellation: &Cancellation) -> RunVerdict {
        // Whoever stopped listening has its figures.
        let _ = self.begun.send((run.id, Instant::now()));
        tokio::select! {
            () = tokio::time::sleep(self.work) => RunVerdict::Ended(RunResult::Succeeded),
            () = cancellation.killed() => RunVerdict::Ended(RunResult::Interrupted),
        }
    }
}

struct BenchTenant {
    id: TenantId,
    user: UserId,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let binaries = arguments
        .next()
        .ok_or("no folder of PostgreSQL's programs")?;
    let count = arguments.next().ok_or("no number of runs")?;
    let count: usize = count.to_string_lossy().parse()?;
    let cluster = DurableCluster::start(Path::new(&binaries)).await?;
    let figures = measure(&cluster, count).await;
    cluster.stop().await;
    let figures = serde_json::to_string_pretty(&figures?)?;
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}

async fn measure(cluster: &DurableCluster, count: usize) -> Outcome<Value> {
    let (store, _) = Store::open(cluster.database("nimbus", 16)).await?;
    let root = store.operator_ensure("Operator").await?;
    let mut tenants = Vec::new();
    for number in 0..TENANTS {
        tenants.push(tenant(&store, root, &format!("t{number}")).await?);
    }
    let rate = rate(&store, &tenants, count).await?;
    let fairness = fairness(&store, &tenants, count).await?;
    Ok(json!({"rate": rate, "fairness": fairness}))
}

/// All runs of all tenants, queued first and then carried out.
async fn rate(store: &Store, tenants: &[BenchTenant], count: usize) -> Outcome<Value> {
    let queueing = Instant::now();
    let mut queued = Vec::new();
    for number in 0..count {
        let tenant = &tenants[number % tenants.len()];
        let run = queue(store, tenant, &format!("DA{number}")).await?;
        queued.push((tenant.id, run));
    }
    let queued_in = queueing.elapsed();
    let (driver, _, _begun) = workers(store, Duration::ZERO);
    let carrying = Instant::now();
    for (tenant, run) in &queued {
        ended(store, *tenant, *run).await?;
    }
    let carried_in = carrying.elapsed();
    driver.stop().await;
    let per_second = |time: Duration| (count as f64 / time.as_secs_f64()).round();
    Ok(json!({
        "runs": count,
        "tenants": tenants.len(),
        "at_once": PLACES,
        "queued_per_second": per_second(queued_in),
        "carried_out_per_second": per_second(carried_in),
    }))
}

/// One tenant has everything queued before the others come.
async fn fairness(store: &Store, tenants: &[BenchTenant], count: usize) -> Outcome<Value> {
    let (noisy, others) = tenants.split_first().ok_or("no tenants")?;
    let mut asked = HashMap::new();
    for number in 0..count {
        let run = queue(store, noisy, &format!("DB{number}")).await?;
        asked.insert(run, Instant::now());
    }
    let (driver, wakeup, mut begun) = workers(store, WORK);
    let mut waits: HashMap<Uuid, Duration> = HashMap::new();
    // The noisy one has its places before anybody else comes.
    for _ in 0..PLACES - 1 {
        let (run, at) = begun.recv().await.ok_or("the workers ended")?;
        waits.insert(run, at.duration_since(asked[&run]));
    }
    let mut quiet = Vec::new();
    for other in others.iter().take(QUIET) {
        let before = Instant::now();
        let run = queue(store, other, "DB").await?;
        asked.insert(run, before);
        quiet.push(run);
        wakeup.notify_one();
    }
    while !quiet.iter().all(|run| waits.contains_key(run)) {
        let (run, at) = begun.recv().await.ok_or("the workers ended")?;
        waits.insert(run, at.duration_since(asked[&run]));
    }
    let begun_of_noisy = waits.keys().filter(|run| !quiet.contains(run)).count();
    let mut waited: Vec<_> = quiet.iter().map(|run| waits[run].as_millis()).collect();
    waited.sort_unstable();
    driver.stop().await;
    let at = |index: usize| waited.get(index).copied().unwrap_or_default();
    Ok(json!({
        "noisy_runs": count,
        "still_queued_of_the_noisy": count - begun_of_noisy,
        "quiet_tenants": quiet.len(),
        "run_ms": u64::try_from(WORK.as_millis())?,
        "quiet_wait_p50_ms": u64::try_from(at(quiet.len() / 2))?,
        "quiet_wait_max_ms": u64::try_from(at(quiet.len() - 1))?,
    }))
}

type BegunRuns = mpsc::UnboundedReceiver<(Uuid, Instant)>;

fn workers(store: &Store, work: Duration) -> (RunDriver, Arc<Notify>, BegunRuns) {
    let (sender, begun) = mpsc::unbounded_channel();
    let wakeup = Arc::new(Notify::new());
    let carrier = Arc::new(NoOpCarrier {
        work,
        begun: sender,
    });
    let settings = DriverSettings {
        server: Uuid::new_v4(),
        limits: RunLimits {
            at_once: PLACES,
            per_tenant: None,
            time: Duration::from_secs(600),
        },
    };
    let driver = RunDriver::start(store.clone(), carrier, settings, Arc::clone(&wakeup));
    (driver, wakeup, begun)
}

async fn tenant(store: &Store, root: TenantId, slug: &str) -> Outcome<BenchTenant> {
    let new = NewTenant::new(root, slug, slug.to_uppercase());
    let made: Result<_, StoreError> = store
        .registry_tx(root, async |tx| tx.tenant_create(&new).await)
        .await;
    let id = made?.id;
    let new = NewUser {
        service_account: false,
        email: format!("{slug}@acme.example"),
        display_name: slug.to_owned(),
        password_hash: None,
    };
    let made: Result<_, StoreError> = store
        .tenant_tx(id, async |tx| tx.user_create(&new).await)
        .await;
    let user = made?.user_id();
    Ok(BenchTenant { id, user })
}

/// A run of a deployment of its own: runs of one environment wait for each other.
async fn queue(store: &Store, tenant: &BenchTenant, id: &str) -> Outcome<Uuid> {
    let queued: Result<_, StoreError> = store
        .tenant_tx(tenant.id, async |tx| {
            let new = NewDeployment {
                id: id.to_owned(),
                organization: "o".to_owned(),
                project: "p".to_owned(),
                template: "t".to_owned(),
                manifest: String::new(),
                created_by: tenant.user,
            };
            tx.deployment_create(&new).await?;
            let new = NewRun {
                deployment: id.to_owned(),
                action: "deploy".to_owned(),
                environment: "dev".to_owned(),
                rehearsal: true,
                request: json!({}),
                catalog: json!({}),
                requested_by: tenant.user,
                trace_id: None,
            };
            tx.run_queue(&new).await
        })
        .await;
    Ok(queued?.id)
}

/// Looks at the row until somebody has written its end.
async fn ended(store: &Store, tenant: TenantId, run: Uuid) -> Outcome<()> {
    loop {
        let found: Result<_, StoreError> = store
            .tenant_tx(tenant, async |tx| tx.run_find(run).await)
            .await;
        if found?.status == "ended" {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
