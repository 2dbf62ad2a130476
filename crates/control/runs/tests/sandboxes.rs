//! A run keeps the sandbox that it began in, whichever server goes on with it; on a real database.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::collections::BTreeMap;
use std::path::Path;

use nimbus_control_runs::{
    ProgramSettings, RunCarrier as _, RunVerdict, SandboxSettings, TenantPrograms, TenantRuns,
};
use nimbus_control_store::{
    HeldRun, Isolation, NewDeployment, NewRun, RunEnd, StoreError, StoredRun,
};
use nimbus_control_testing::TestDatabase;
use nimbus_control_vault::{KeyEncryptionKey, KeyRing};
use nimbus_core::{EnvironmentName, ErrorCode, UserId};
use nimbus_engine_operations::{Allowances, Cancellation, IsolationMode, ProgramNetwork};
use nimbus_orchestrator::{RunAction, RunResult};
use nimbus_runs::{RunChoices, RunRequest, SandboxChoice};
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};
use uuid::Uuid;

/// Nothing in it runs: what matters is decided before a program starts.
const MANIFEST: &str = "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {deploymentId: D1, organization: o, \
    project: p, template: t}\nspec:\n  environments: {dev: {enabled: true, account: '111111111111', region: eu-west-1}}\n  \
    stacks: {}\n";

const STRICT: IsolationMode = IsolationMode::Strict { allow_weak: false };

/// Servers on one database.
struct Servers {
    database: TestDatabase,
    ring: KeyRing,
}

impl Servers {
    async fn new(binaries: &Path) -> Self {
        let database = TestDatabase::new(binaries, Isolation::SchemaWithRls).await;
        let new = NewDeployment {
            id: "D1".to_owned(),
            organization: "o".to_owned(),
            project: "p".to_owned(),
            template: "t".to_owned(),
            manifest: MANIFEST.to_owned(),
            created_by: UserId::random(),
        };
        let made: Result<_, StoreError> = database
            .store
            .tenant_tx(database.root, async |tx| tx.deployment_create(&new).await)
            .await;
        made.unwrap();
        Self {
            database,
            ring: KeyRing::new(KeyEncryptionKey::generate(), Vec::new()),
        }
    }

    /// One that keeps programs from so much; `None`: from nothing.
    fn server(&self, folder: &Path, mode: Option<IsolationMode>) -> TenantRuns {
        let sandbox = mode.map(|mode| SandboxSettings {
            mode,
            network: ProgramNetwork::None,
            limits: Default::default(),
            environment: Vec::new(),
            roots: Vec::new(),
            allowances: Allowances::default(),
        });
        let programs = TenantPrograms::new(ProgramSettings {
            folder: folder.to_owned(),
            node_modules: None,
            sandbox,
        });
        TenantRuns::new(self.database.store.clone(), self.ring.clone(), programs)
    }

    async fn queue(&self, request: &Value) {
        let new = NewRun {
            deployment: "D1".to_owned(),
            action: "deploy".to_owned(),
            environment: "dev".to_owned(),
            rehearsal: true,
            request: request.clone(),
            catalog: json!({}),
            requested_by: UserId::random(),
            trace_id: None,
        };
        let queued: Result<_, StoreError> = self
            .database
            .store
            .tenant_tx(self.database.root, async |tx| tx.run_queue(&new).await)
            .await;
        queued.unwrap();
    }

    async fn take(&self, server: Uuid) -> StoredRun {
        let taken: Result<_, StoreError> = self
            .database
            .store
            .tenant_tx(self.database.root, async |tx| tx.run_take(server).await)
            .await;
        taken.unwrap().expect("a run waits")
    }

    /// Gives a run back as its worker would.
    async fn release(&self, run: &StoredRun, end: &RunEnd) {
        let released: Result<_, StoreError> = self
            .database
            .store
            .tenant_tx(self.database.root, async |tx| {
                tx.run_release(&held(run), end).await
            })
            .await;
        released.unwrap();
    }

    /// A run that a worker took and began, and left when it died.
    async fn left_by_the_dead(&self, request: &Value) {
        self.queue(request).await;
        let dead = Uuid::new_v4();
        let run = self.take(dead).await;
        let begun: Result<_, StoreError> = self
            .database
            .store
            .tenant_tx(self.database.root, async |tx| {
                tx.run_begin(&held(&run), request).await
            })
            .await;
        begun.unwrap();
        let (store, tenant) = (&self.database.store, self.database.root);
        assert_eq!(store.runs_orphan(tenant, dead).await.unwrap(), 1);
    }

    async fn carry(&self, server: &TenantRuns, run: &StoredRun) -> RunVerdict {
        let tenant = self.database.root;
        server.carry(tenant, run, &Cancellation::new()).await
    }
}

fn held(run: &StoredRun) -> HeldRun {
    HeldRun {
        deployment: run.deployment.clone(),
        number: run.number,
        epoch: run.epoch,
    }
}

fn end(status: &'static str, wish: Option<&'static str>, result: Option<&str>) -> RunEnd {
    RunEnd {
        status,
        wish,
        result: result.map(str::to_owned),
        problem: None,
    }
}

fn request() -> RunRequest {
    RunRequest {
        action: RunAction::Deploy,
        deployment: "D1".parse().unwrap(),
        environment: EnvironmentName::DEV,
        rehearsal: true,
        user: "ann".to_owned(),
        host: "here".to_owned(),
        choices: RunChoices::default(),
        manifest: String::new(),
        manifest_parts: BTreeMap::new(),
        plan: String::new(),
    }
}

#[tokio::test]
async fn a_run_does_not_go_on_on_a_server_whose_sandbox_is_weaker() {
    let servers = Servers::new(&tool_or_skip!(Tool::Postgres)).await;
    let folder = tempfile::tempdir().unwrap();
    let strong = servers.server(folder.path(), Some(STRICT));

    // Whoever asks for a run says nothing of it; the server that carries it out records its own.
    servers
        .queue(&serde_json::to_value(request()).unwrap())
        .await;
    let first = servers.take(Uuid::new_v4()).await;
    let verdict = servers.carry(&strong, &first).await;
    assert!(
        matches!(verdict, RunVerdict::Ended(RunResult::Succeeded)),
        "{verdict:?}"
    );
    servers
        .release(&first, &end("ended", None, Some("succeeded")))
        .await;
    let begun: Result<_, StoreError> = servers
        .database
        .store
        .tenant_tx(servers.database.root, async |tx| {
            tx.run_find(first.id).await
        })
        .await;
    let recorded = begun.unwrap().request;
    let read: RunRequest = serde_json::from_value(recorded.clone()).unwrap();
    let sandbox = read.choices.sandbox;
    assert!(
        matches!(
            sandbox,
            SandboxChoice::Strict {
                allow_weak: false,
                ..
            }
        ),
        "{sandbox:?}"
    );

    for weaker in [
        None,
        Some(IsolationMode::BestEffort),
        Some(IsolationMode::Strict { allow_weak: true }),
    ] {
        servers.left_by_the_dead(&recorded).await;
        let weak = servers.server(folder.path(), weaker);
        let run = servers.take(Uuid::new_v4()).await;
        assert!(run.began_at.is_some(), "it goes on");
        let error = match servers.carry(&weak, &run).await {
            RunVerdict::Refused(error) => error,
            RunVerdict::Ended(result) => panic!("{weaker:?}: {result:?}"),
        };
        assert_eq!(error.code(), ErrorCode::PLAN_MOVED, "{weaker:?}: {error}");
        assert!(error.message().contains("sandbox"), "{weaker:?}: {error}");

        // One with as much as it began with goes on with the same run.
        servers
            .release(&run, &end("queued", Some("resume"), None))
            .await;
        let run = servers.take(Uuid::new_v4()).await;
        let verdict = servers.carry(&strong, &run).await;
        assert!(
            matches!(verdict, RunVerdict::Ended(RunResult::Succeeded)),
            "{weaker:?}: {verdict:?}"
        );
        servers
            .release(&run, &end("ended", None, Some("succeeded")))
            .await;
    }
}
