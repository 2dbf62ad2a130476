//! Workers on a real database: whose runs they take, whose they do not, and for how long.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_control_runs::{DriverSettings, RunCarrier, RunDriver, RunLimits, RunVerdict};
use nimbus_control_store::{
    Isolation, NewDeployment, NewRun, NewTenant, NewUser, RunEnd, StoreError, StoredRun, UserChange,
};
use nimbus_control_testing::TestDatabase;
use nimbus_core::{TenantId, UserId};
use nimbus_engine_operations::Cancellation;
use nimbus_orchestrator::RunResult;
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs whose programs do not end, however politely they are asked. Tells what begins.
struct Endless(mpsc::UnboundedSender<(TenantId, String)>);

#[async_trait]
impl RunCarrier for Endless {
    async fn carry(
        &self,
        tenant: TenantId,
        run: &StoredRun,
        cancellation: &Cancellation,
    ) -> RunVerdict {
        self.0.send((tenant, run.deployment.clone())).unwrap();
        cancellation.killed().await;
        RunVerdict::Ended(RunResult::Interrupted)
    }
}

struct Workers {
    driver: RunDriver,
    wakeup: Arc<Notify>,
    begun: mpsc::UnboundedReceiver<(TenantId, String)>,
}

impl Workers {
    fn start(database: &TestDatabase, limits: RunLimits) -> Self {
        let (sender, begun) = mpsc::unbounded_channel();
        let wakeup = Arc::new(Notify::new());
        let settings = DriverSettings {
            server: Uuid::new_v4(),
            limits,
        };
        let carrier = Arc::new(Endless(sender));
        let store = database.store.clone();
        let driver = RunDriver::start(store, carrier, settings, Arc::clone(&wakeup));
        Self {
            driver,
            wakeup,
            begun,
        }
    }

    async fn next(&mut self) -> (TenantId, String) {
        let next = tokio::time::timeout(PATIENCE, self.begun.recv());
        next.await.unwrap().unwrap()
    }
}

fn limits(at_once: usize, time: Duration) -> RunLimits {
    RunLimits {
        at_once,
        per_tenant: None,
        time,
    }
}

async fn tenant(database: &TestDatabase, parent: TenantId, slug: &str) -> TenantId {
    let new = NewTenant::new(parent, slug, slug.to_uppercase());
    let made: Result<_, StoreError> = database
        .store
        .registry_tx(parent, async |tx| tx.tenant_create(&new).await)
        .await;
    made.unwrap().id
}

async fn user(database: &TestDatabase, tenant: TenantId, name: &str) -> UserId {
    let new = NewUser {
        service_account: false,
        email: format!("{name}@acme.example"),
        display_name: name.to_owned(),
        password_hash: None,
    };
    let made: Result<_, StoreError> = database
        .store
        .tenant_tx(tenant, async |tx| tx.user_create(&new).await)
        .await;
    made.unwrap().user_id()
}

/// A run of a deployment of its own.
async fn queue(database: &TestDatabase, tenant: TenantId, user: UserId, id: &str) -> StoredRun {
    let queued: Result<_, StoreError> = database
        .store
        .tenant_tx(tenant, async |tx| {
            let new = NewDeployment {
                id: id.to_owned(),
                organization: "o".to_owned(),
                project: "p".to_owned(),
                template: "t".to_owned(),
                manifest: String::new(),
                created_by: user,
            };
            tx.deployment_create(&new).await?;
            let new = NewRun {
                deployment: id.to_owned(),
                action: "deploy".to_owned(),
                environment: "dev".to_owned(),
                rehearsal: true,
                request: json!({}),
                catalog: json!({}),
                requested_by: user,
                trace_id: None,
            };
            tx.run_queue(&new).await
        })
        .await;
    queued.unwrap()
}

async fn run_of(database: &TestDatabase, tenant: TenantId, id: Uuid) -> StoredRun {
    let found: Result<_, StoreError> = database
        .store
        .tenant_tx(tenant, async |tx| tx.run_find(id).await)
        .await;
    found.unwrap()
}

async fn ended(database: &TestDatabase, tenant: TenantId, id: Uuid) -> StoredRun {
    let over = async {
        loop {
            let run = run_of(database, tenant, id).await;
            if run.status == "ended" {
                return run;
            }
            // tidy-allow(sleep): a row is looked at until somebody else has written it
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, over).await.unwrap()
}

/// One customer has endless programs, and tenants below it that have more of them. Whoever comes later still finds a
/// place.
#[tokio::test]
async fn a_customer_with_endless_runs_does_not_have_every_place() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let greedy = tenant(&database, database.root, "greedy").await;
    let below = tenant(&database, greedy, "below").await;
    let quiet = tenant(&database, database.root, "quiet").await;
    let mut waiting = Vec::new();
    for (tenant, ids) in [(greedy, ["D1", "D2", "D3"]), (below, ["D4", "D5", "D6"])] {
        let who = user(&database, tenant, "eve").await;
        for id in ids {
            waiting.push((tenant, queue(&database, tenant, who, id).await.id));
        }
    }
    let mut workers = Workers::start(&database, limits(3, PATIENCE * 10));
    let first = [workers.next().await, workers.next().await];
    assert!(
        first.iter().all(|(tenant, _)| *tenant != quiet),
        "{first:?}"
    );
    let who = user(&database, quiet, "bob").await;
    queue(&database, quiet, who, "D9").await;
    workers.wakeup.notify_one();
    // The third place was kept for somebody else.
    assert_eq!(workers.next().await, (quiet, "D9".to_owned()));
    let mut queued = 0;
    for (tenant, id) in waiting {
        queued += usize::from(run_of(&database, tenant, id).await.status == "queued");
    }
    assert_eq!(queued, 4);
    workers.driver.stop().await;
}

/// A run that does not end is stopped, then ended, and says why; its place is somebody else's.
#[tokio::test]
async fn a_run_that_does_not_end_is_ended_and_says_why() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let acme = tenant(&database, database.root, "acme").await;
    let who = user(&database, acme, "eve").await;
    let first = queue(&database, acme, who, "D1").await;
    let second = queue(&database, acme, who, "D2").await;
    let mut workers = Workers::start(&database, limits(1, Duration::from_millis(300)));
    assert_eq!(workers.next().await.1, "D1");
    let run = ended(&database, acme, first.id).await;
    assert_eq!(run.result.as_deref(), Some("interrupted"));
    let problem = run.problem.unwrap();
    assert_eq!(problem["code"], "NIM-0887", "{problem}");
    assert_eq!(workers.next().await.1, "D2");
    ended(&database, acme, second.id).await;
    workers.driver.stop().await;
}

/// Somebody looked for creates of unknown outcome before they let the run go on. What its worker then leaves open when it
/// dies, nobody has looked for.
#[tokio::test]
async fn that_creates_may_be_forgotten_is_told_to_the_first_worker_only() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let acme = tenant(&database, database.root, "acme").await;
    let who = user(&database, acme, "eve").await;
    let run = queue(&database, acme, who, "D1").await;
    let again = RunEnd {
        status: "queued",
        wish: Some("forget_creates"),
        result: None,
        problem: None,
    };
    let taken: Result<_, StoreError> = database
        .store
        .tenant_tx(acme, async |tx| {
            tx.run_set(run.id, &again).await?;
            tx.run_take(Uuid::new_v4()).await
        })
        .await;
    let taken = taken.unwrap().unwrap();
    assert_eq!(taken.wish.as_deref(), Some("forget_creates"));
    let left = run_of(&database, acme, run.id).await;
    assert_eq!(left.wish.as_deref(), Some("resume"));
}

/// What somebody queued who is disabled or deleted meanwhile does not begin, be they of the tenant or of one above it.
#[tokio::test]
async fn runs_of_people_who_were_shut_out_meanwhile_do_not_begin() {
    let database =
        TestDatabase::new(&tool_or_skip!(Tool::Postgres), Isolation::SchemaWithRls).await;
    let acme = tenant(&database, database.root, "acme").await;
    let disabled = user(&database, acme, "disabled").await;
    let deleted = user(&database, acme, "deleted").await;
    let above = user(&database, database.root, "above").await;
    let stays = user(&database, database.root, "stays").await;
    let mut refused = Vec::new();
    for (who, id) in [(disabled, "D1"), (deleted, "D2"), (above, "D3")] {
        refused.push(queue(&database, acme, who, id).await.id);
    }
    queue(&database, acme, stays, "D4").await;
    let disable = UserChange {
        disabled: Some(true),
        ..UserChange::default()
    };
    let out: Result<_, StoreError> = database
        .store
        .tenant_tx(acme, async |tx| {
            tx.user_update(disabled, &disable).await?;
            tx.user_delete(deleted).await
        })
        .await;
    out.unwrap();
    let out: Result<_, StoreError> = database
        .store
        .tenant_tx(database.root, async |tx| {
            tx.user_update(above, &disable).await
        })
        .await;
    out.unwrap();
    let mut workers = Workers::start(&database, limits(1, PATIENCE * 10));
    assert_eq!(workers.next().await, (acme, "D4".to_owned()));
    for id in refused {
        let run = run_of(&database, acme, id).await;
        assert_eq!((run.status.as_str(), run.began_at), ("ended", None));
        assert_eq!(run.result.as_deref(), Some("failed"));
        assert_eq!(run.problem.unwrap()["code"], "NIM-0855");
    }
    workers.driver.stop().await;
}

/// Programs of tenants, and what their rehearsals made, are nobody else's on the machine; also in a folder that was
/// there before.
#[test]
fn the_folder_of_runs_is_the_servers_alone() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let open = || DriverSettings::of_folder(&runs, limits(1, PATIENCE)).unwrap();
    let mode = || std::fs::metadata(&runs).unwrap().permissions().mode() & 0o777;
    let first = open();
    assert_eq!(mode(), 0o700);
    std::fs::set_permissions(&runs, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(open().server, first.server, "its name stays");
    assert_eq!(mode(), 0o700);
}
