//! Figures of tenancy: `cargo xtask bench tenancy` runs this and keeps what it prints.
//!
//! Arguments: the folder of PostgreSQL's programs, then numbers of tenants, rising. The cluster is a
//! durable one, as in an installation. With `migrate` and a socket it only migrates, to be killed.

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nimbus_control_postgres::{ADMINISTRATOR, Binaries, Cluster, ClusterOptions, DataDir, PORT};
use nimbus_control_store::{
    Credentials, DatabaseAddress, Host, Isolation, NewTenant, Roles, Store, StoreConfig,
    StoreError, Tls,
};
use nimbus_core::TenantId;
use serde_json::{Value, json};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};

/// Requests per figure.
const REQUESTS: usize = 2_000;
const ROWS_PER_TENANT: usize = 20;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|first| first == "migrate").is_some() {
        let socket = PathBuf::from(arguments.next().ok_or("no socket")?);
        let store = Store::connect(config(&socket, Isolation::SchemaWithRls));
        store.migrate().await?;
        return Ok(());
    }
    let binaries = PathBuf::from(
        arguments
            .next()
            .ok_or("no folder of PostgreSQL's programs")?,
    );
    let counts: Vec<usize> = arguments
        .map(|text| text.to_string_lossy().parse())
        .collect::<Result<_, _>>()?;
    let folder = tempfile::Builder::new().prefix("nimbus-bench-").tempdir()?;
    let data = DataDir::claim(folder.path())?;
    let roles = Roles::for_database("nimbus");
    let mut options = ClusterOptions::new(
        data.path().join("postgres"),
        [roles.owner, roles.app, roles.readonly],
    );
    options.binaries = Binaries::at(&binaries);
    let cluster = Cluster::start(&options).await?;
    let figures = measure(cluster.socket(), &counts, cluster.pid()).await;
    cluster.stop().await;
    let figures = serde_json::to_string_pretty(&figures?)?;
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}

async fn measure(socket: &Path, counts: &[usize], postmaster: i32) -> Outcome<Value> {
    let mut figures = Vec::new();
    for isolation in [Isolation::SchemaWithRls, Isolation::Shared] {
        let config = config(socket, isolation);
        let (store, _) = Store::open(config.clone()).await?;
        let root = store.operator_ensure("Operator").await?;
        let mut tenants = Vec::new();
        for &count in counts {
            let created = grow(&store, root, &mut tenants, count).await?;
            let protected = requests(&store, &tenants).await?;
            let bare = without_protection(&config, &store, &tenants).await?;
            figures.push(json!({
                "isolation": isolation.as_str(),
                "tenants": count,
                "create": summary(created),
                "request": summary(protected),
                "same_query_without_rls": summary(bare),
            }));
        }
        if isolation == Isolation::SchemaWithRls {
            figures.push(migration(socket, &config, &store).await?);
        }
        store.close().await;
    }
    figures.push(json!({ "own_rss_mb": rss_mb(std::process::id()), "postmaster_rss_mb": rss_mb(postmaster.unsigned_abs()) }));
    Ok(json!(figures))
}

fn config(socket: &Path, isolation: Isolation) -> StoreConfig {
    let address = DatabaseAddress {
        host: Host::Socket(socket.to_owned()),
        port: PORT,
        database: format!("bench_{}", isolation.as_str()),
        tls: Tls::Disable,
    };
    let administrator = Credentials {
        user: ADMINISTRATOR.to_owned(),
        password: None,
    };
    let mut config = StoreConfig::new(address, administrator);
    config.roles = Roles::for_database("nimbus");
    config.isolation = isolation;
    config
}

async fn grow(
    store: &Store,
    root: TenantId,
    tenants: &mut Vec<TenantId>,
    count: usize,
) -> Outcome<Vec<Duration>> {
    let mut took = Vec::new();
    while tenants.len() < count {
        let new = NewTenant::new(root, format!("t{}", tenants.len()), "Bench");
        let started = Instant::now();
        let created = store
            .registry_tx(root, async |tx| tx.tenant_create(&new).await)
            .await?;
        took.push(started.elapsed());
        store
            .tenant_tx(created.id, async |tx| {
                for number in 0..ROWS_PER_TENANT {
                    tx.compartment_create(&format!("c{number}"), None).await?;
                }
                Ok::<_, StoreError>(())
            })
            .await?;
        tenants.push(created.id);
    }
    Ok(took)
}

/// A whole request: a transaction for a tenant and one query, tenants in turn.
async fn requests(store: &Store, tenants: &[TenantId]) -> Outcome<Vec<Duration>> {
    let mut took = Vec::new();
    for number in 0..REQUESTS {
        let tenant = tenants[number * 7 % tenants.len()];
        let started = Instant::now();
        let rows = store
            .tenant_tx(tenant, async |tx| tx.compartment_list().await)
            .await?;
        took.push(started.elapsed());
        assert_eq!(rows.len(), ROWS_PER_TENANT);
    }
    Ok(took)
}

/// The same transaction and query as the superuser, whom row-level security does not hold.
async fn without_protection(
    config: &StoreConfig,
    store: &Store,
    tenants: &[TenantId],
) -> Outcome<Vec<Duration>> {
    let mut schemas = Vec::new();
    for tenant in tenants {
        schemas.push(
            store
                .tenant_tx(*tenant, async |tx| tx.tenant_get(*tenant).await)
                .await?
                .schema,
        );
    }
    let mut connection = administrator(config).await?;
    let mut took = Vec::new();
    for number in 0..REQUESTS {
        let index = number * 7 % tenants.len();
        let started = Instant::now();
        let mut tx = connection.begin().await?;
        sqlx::query("SELECT set_config('search_path', $1, true)")
            .bind(&schemas[index])
            .execute(&mut *tx)
            .await?;
        sqlx::query("SELECT id, name FROM compartments WHERE tenant_id = $1 AND deleted_at IS NULL ORDER BY name, id")
            .bind(uuid::Uuid::from(tenants[index]))
            .fetch_all(&mut *tx)
            .await?;
        tx.commit().await?;
        took.push(started.elapsed());
    }
    Ok(took)
}

/// Every schema is emptied and migrated again; once straight, once by a process that is killed half-way.
async fn migration(socket: &Path, config: &StoreConfig, store: &Store) -> Outcome<Value> {
    let mut administrator = administrator(config).await?;
    let mut empty = async || -> Outcome<()> {
        let schemas: Vec<String> = sqlx::query_scalar(
            "SELECT schema_name FROM nimbus_core.tenants WHERE parent_id IS NOT NULL",
        )
        .fetch_all(&mut administrator)
        .await?;
        for schema in schemas {
            let drop = format!("DROP SCHEMA {schema} CASCADE");
            sqlx::query(sqlx::AssertSqlSafe(drop))
                .execute(&mut administrator)
                .await?;
        }
        sqlx::query("DELETE FROM nimbus_core.tenant_migrations WHERE schema_name <> (SELECT schema_name FROM nimbus_core.tenants WHERE parent_id IS NULL)")
            .execute(&mut administrator)
            .await?;
        Ok(())
    };
    empty().await?;
    let straight = store.migrate().await?;
    empty().await?;
    let killed = kill_half_way(socket, straight.took)?;
    let resumed = store.migrate().await?;
    Ok(json!({
        "migrated_schemas": straight.schemas,
        "migration_ms": straight.took.as_millis() as u64,
        "killed_half_way": killed,
        "left_after_kill": resumed.schemas,
        "resumed_ms": resumed.took.as_millis() as u64,
    }))
}

/// Whether it was still at work.
fn kill_half_way(socket: &Path, whole: Duration) -> Outcome<bool> {
    let mut process = std::process::Command::new(std::env::current_exe()?)
        .arg("migrate")
        .arg(socket)
        .spawn()?;
    std::thread::sleep(whole / 2);
    let at_work = process.try_wait()?.is_none();
    process.kill()?;
    process.wait()?;
    Ok(at_work)
}

async fn administrator(config: &StoreConfig) -> Outcome<PgConnection> {
    let Host::Socket(folder) = &config.address.host else {
        return Err("the bench has a socket".into());
    };
    let options = PgConnectOptions::new_without_pgpass()
        .socket(folder)
        .port(PORT)
        .database(&config.address.database)
        .username(ADMINISTRATOR);
    Ok(PgConnection::connect_with(&options).await?)
}

/// Median, 95th and 99th of a hundred.
fn summary(mut samples: Vec<Duration>) -> Value {
    samples.sort();
    let at = |percent: usize| {
        samples
            .get(samples.len() * percent / 100)
            .map(|took| took.as_micros() as u64)
    };
    json!({ "samples": samples.len(), "p50_us": at(50), "p95_us": at(95), "p99_us": at(99) })
}

fn rss_mb(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1024)
}
