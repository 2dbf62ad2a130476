//! Figures of resolvers: `cargo xtask bench control-plane` runs this and keeps what it prints.
//!
//! Arguments: the folder of PostgreSQL's programs and how many allocations. The cluster is a durable one, as in an
//! installation. Every answer goes the whole way: configuration in force, the pool, the lock, the lease.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nimbus_control_store::{LeaseAsk, ResolverPlace, Store, StoreError};
use nimbus_control_testing::DurableCluster;
use nimbus_core::{TenantId, UserId};
use nimbus_resolvers::{
    AddressBlock, LeaseHolder, ResolverKind, ResolverQuestion, Settlement, UnitFacts,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// So many ask at once.
const WORKERS: usize = 16;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let binaries = arguments
        .next()
        .ok_or("no folder of PostgreSQL's programs")?;
    let count = arguments.next().ok_or("no number of allocations")?;
    let count: usize = count.to_string_lossy().parse()?;
    let cluster = DurableCluster::start(Path::new(&binaries)).await?;
    let figures = measure(&cluster, count).await;
    cluster.stop().await;
    let figures = serde_json::to_string_pretty(&figures?)?;
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}

async fn measure(cluster: &DurableCluster, count: usize) -> Outcome<Value> {
    let config = cluster.database("nimbus", u32::try_from(WORKERS)?);
    let (store, _) = Store::open(config).await?;
    let root = store.operator_ensure("Operator").await?;
    set_up(&store, root).await?;
    let one = allocate(&store, root, count, |_| "shared".to_owned(), "one pool").await?;
    let several = |number: usize| format!("pool-{}", number % WORKERS);
    let many = allocate(&store, root, count, several, "a pool for each of sixteen").await?;
    Ok(json!([one, many]))
}

async fn set_up(store: &Store, root: TenantId) -> Outcome<()> {
    let by = UserId::random();
    let names =
        (0..WORKERS).map(|number| (format!("pool-{number}"), format!("10.{number}.0.0/16")));
    let all = names.chain([("shared".to_owned(), "172.16.0.0/12".to_owned())]);
    for (name, cidr) in all {
        let pool = serde_json::from_value(json!({"name": name, "cidr": cidr}))?;
        let made: Result<_, StoreError> = store
            .tenant_tx(root, async |tx| tx.pool_create(&pool, None, by).await)
            .await;
        made?;
    }
    let place = ResolverPlace::default();
    let config = json!({"prefix_length": 29});
    let config = config.as_object().cloned().unwrap_or_default();
    let set: Result<_, StoreError> = store
        .tenant_tx(root, async |tx| {
            tx.resolver_configure(ResolverKind::Ipam, &place, &config, by)
                .await
        })
        .await;
    Ok(set?)
}

fn asker(tenant: TenantId, component: String) -> LeaseAsk {
    LeaseAsk {
        tenant,
        facts: UnitFacts {
            deployment: "D1".to_owned(),
            environment: "dev".to_owned(),
            component,
            ..UnitFacts::default()
        },
        rehearsal: false,
        holder: LeaseHolder::Run(1),
        epoch: 1,
    }
}

async fn allocate(
    store: &Store,
    tenant: TenantId,
    count: usize,
    pool_of: impl Fn(usize) -> String,
    what: &str,
) -> Outcome<Value> {
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for worker in 0..WORKERS {
        let store = store.clone();
        let jobs: Vec<_> = (worker..count)
            .step_by(WORKERS)
            .map(|number| (format!("{what}-{number}"), pool_of(number)))
            .collect();
        tasks.spawn(async move {
            let mut given = Vec::new();
            for (component, pool) in jobs {
                let began = Instant::now();
                let inputs = json!({"parent_scope": pool});
                let inputs = inputs.as_object().cloned().unwrap_or_default();
                let question = ResolverQuestion::new(ResolverKind::Ipam, inputs)?;
                let seal = |_: Uuid, _| Ok(Vec::new());
                let ask = asker(tenant, component);
                let answer = store.resolver_answer(&ask, &question, &seal).await?;
                let cidr = answer.outputs["cidr"].as_str().unwrap_or_default();
                given.push((cidr.parse::<AddressBlock>()?, began.elapsed()));
            }
            Outcome::Ok(given)
        });
    }
    let mut given = Vec::new();
    while let Some(done) = tasks.join_next().await {
        given.extend(done??);
    }
    let took = begun.elapsed();
    let distinct: BTreeSet<_> = given.iter().map(|(block, _)| *block).collect();
    let mut times: Vec<_> = given.iter().map(|(_, time)| *time).collect();
    times.sort();
    let at = |part: usize| {
        times
            .get(times.len() * part / 100)
            .map_or(0, Duration::as_micros)
    };
    let release = Instant::now();
    let units: Vec<_> = (0..count)
        .map(|number| (format!("{what}-{number}"), Settlement::Destroyed))
        .collect();
    let ask = asker(tenant, String::new());
    store.leases_settle(&ask, 1, &units).await?;
    Ok(json!({
        "what": what,
        "allocations": given.len(),
        "duplicates": given.len() - distinct.len(),
        "per_second": (given.len() as f64 / took.as_secs_f64()).round(),
        "p50_us": u64::try_from(at(50))?,
        "p99_us": u64::try_from(at(99))?,
        "released_per_second": (count as f64 / release.elapsed().as_secs_f64()).round(),
    }))
}
