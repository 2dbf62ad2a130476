//! Figures of the audit trail and of signing in: `cargo xtask bench tenancy` runs this and keeps what it
//! prints.
//!
//! Arguments: the folder of PostgreSQL's programs, how many audit entries, how many sign-ins. The cluster
//! is a durable one, as in an installation.

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nimbus_control_app::{
    App, AppKeys, AppSettings, Call, ChainVerdict, GivenKeys, LoginInput, RequestContext,
    SetupInput,
};
use nimbus_control_audit::{Actor, AuditRecord, SigningKey};
use nimbus_control_postgres::{ADMINISTRATOR, Binaries, Cluster, ClusterOptions, DataDir, PORT};
use nimbus_control_store::{
    Credentials, DatabaseAddress, Host, NewTenant, Roles, Store, StoreConfig, StoreError, Tls,
};
use nimbus_core::{TenantId, TraceId};
use serde_json::{Value, json};

/// Tenants that record at the same time.
const WRITERS: usize = 8;
const EMAIL: &str = "owner@operator.example";
const PASSWORD: &str = "glass lamp river 9";

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [binaries, entries, logins] = arguments.as_slice() else {
        return Err("give the folder of PostgreSQL's programs, entries and sign-ins".into());
    };
    let folder = tempfile::Builder::new().prefix("nimbus-bench-").tempdir()?;
    let data = DataDir::claim(folder.path())?;
    let roles = Roles::for_database("nimbus");
    let mut options = ClusterOptions::new(
        data.path().join("postgres"),
        [roles.owner, roles.app, roles.readonly],
    );
    options.binaries = Binaries::at(&PathBuf::from(binaries));
    let cluster = Cluster::start(&options).await?;
    let figures = measure(
        cluster.socket(),
        folder.path(),
        entries.parse()?,
        logins.parse()?,
    )
    .await;
    cluster.stop().await;
    writeln!(
        std::io::stdout(),
        "{}",
        serde_json::to_string_pretty(&figures?)?
    )?;
    Ok(())
}

async fn measure(socket: &Path, folder: &Path, entries: usize, logins: usize) -> Outcome<Value> {
    let address = DatabaseAddress {
        host: Host::Socket(socket.to_owned()),
        port: PORT,
        database: "bench".to_owned(),
        tls: Tls::Disable,
    };
    let administrator = Credentials {
        user: ADMINISTRATOR.to_owned(),
        password: None,
    };
    let mut config = StoreConfig::new(address, administrator);
    config.roles = Roles::for_database("nimbus");
    let (store, _) = Store::open(config).await?;
    let root = store.operator_ensure("Operator").await?;
    store.setup_offer("token").await?;
    let keys = AppKeys::in_folder(&folder.join("keys"), GivenKeys::default())?;
    let settings = AppSettings::new("nimbus", folder.join("audit"));
    let app = App::open(store.clone(), keys, settings).await?;
    let signed_in = app
        .setup_complete(
            &context(),
            SetupInput {
                token: "token".to_owned(),
                email: EMAIL.to_owned(),
                display_name: "Owner".to_owned(),
                password: PASSWORD.to_owned(),
            },
        )
        .await
        .map_err(|failure| failure.error)?;
    let mut tenants = Vec::new();
    for number in 0..WRITERS {
        let new = NewTenant::new(root, format!("t{number}"), "Bench");
        let tenant: Result<_, StoreError> = store
            .registry_tx(root, async |tx| tx.tenant_create(&new).await)
            .await;
        tenants.push(tenant?.id);
    }
    let one = append(&store, &tenants[..1], entries).await?;
    let many = append(&store, &tenants[1..], entries / WRITERS + 1).await?;
    let who = app
        .authenticate(&context(), &signed_in.access_token)
        .await
        .map_err(|failure| failure.error)?;
    let call = Call {
        who,
        context: context(),
    };
    let started = Instant::now();
    let report = app
        .audit_verify(&call, tenants[0])
        .await
        .map_err(|failure| failure.error)?;
    let verified = started.elapsed();
    // The bench signs with a key of its own, so only entries without a proof are written, and all of
    // them have to be there.
    let intact = matches!(report.verdict, ChainVerdict::Intact { entries: found, .. } if found == entries as u64);
    let login = sign_in(&app, logins).await?;
    Ok(json!({
        "audit_entries": entries,
        "audit_append_per_s_one_tenant": rate(entries, one),
        "audit_append_per_s_seven_tenants": rate((entries / WRITERS + 1) * (WRITERS - 1), many),
        "audit_verify_per_s": rate(entries, verified),
        "audit_intact": intact,
        "logins": logins,
        "logins_per_s": rate(logins, login),
    }))
}

fn context() -> RequestContext {
    RequestContext {
        ip: None,
        user_agent: None,
        location: None,
        trace_id: TraceId::random(),
        now: Timestamp::now(),
    }
}

/// Each tenant's entries one after the other, each in a transaction of its own; tenants side by side.
async fn append(store: &Store, tenants: &[TenantId], entries: usize) -> Outcome<Duration> {
    let started = Instant::now();
    let writers: Vec<_> = tenants
        .iter()
        .map(|&tenant| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = SigningKey::generate();
                for number in 0..entries {
                    let record = AuditRecord::new(Actor::system(), "bench.append", "bench")
                        .on(number)
                        .after(json!({"number": number, "name": "an entry of usual length"}));
                    store
                        .tenant_tx(tenant, async |tx| {
                            tx.audit_append(&key, Timestamp::now(), record).await
                        })
                        .await?;
                }
                Ok::<_, StoreError>(())
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    Ok(started.elapsed())
}

/// As many at once as there are cores, with the password hash of an installation.
async fn sign_in(app: &App, logins: usize) -> Outcome<Duration> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let started = Instant::now();
    let workers: Vec<_> = (0..cores)
        .map(|worker| {
            let app = app.clone();
            tokio::spawn(async move {
                for _ in (worker..logins).step_by(cores) {
                    let input = LoginInput {
                        tenant: String::new(),
                        email: EMAIL.to_owned(),
                        password: PASSWORD.to_owned(),
                    };
                    app.login(&context(), input)
                        .await
                        .map_err(|failure| failure.error)?;
                }
                Ok::<_, nimbus_core::Error>(())
            })
        })
        .collect();
    for worker in workers {
        worker.await??;
    }
    Ok(started.elapsed())
}

fn rate(count: usize, took: Duration) -> u64 {
    (count as f64 / took.as_secs_f64()) as u64
}
