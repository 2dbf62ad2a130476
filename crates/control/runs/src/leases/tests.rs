//! Runs in memory whose leases are in a real database: the same table as in memory alone.

use std::sync::Arc;

use nimbus_control_store::{
    HeldRun, Isolation, NewDeployment, NewInstance, NewRule, NewRun, ResolverPlace, RunEnd,
};
use nimbus_control_testing::TestDatabase;
use nimbus_control_vault::{KeyEncryptionKey, KeyRing};
use nimbus_core::UserId;
use nimbus_orchestrator::{OnFailure, RunAction};
use nimbus_runs::{EventBus, ResumeRequest, RunChoices, RunRequest, RunSession, resume};
use nimbus_runs_testing::{Crash, RecordedWorld, UnitFault};
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::programs::ProgramSettings;
use crate::tenant_texts::TenantTexts;
use crate::vault::TenantVault;

const DEV: EnvironmentName = EnvironmentName::DEV;

const MANIFEST: &str = "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {deploymentId: D1, organization: o, \
    project: p, template: t}\nspec:\n  environments: {dev: {enabled: true, account: '111111111111', region: eu-west-1}}\n  \
    stacks:\n    network: {enabled: true, config: {dev: {cidr: '{{RUNTIME:ipam:cidr:prefix_length=26}}'}}}\n    app: \
    {enabled: true, config: {dev: {net: '{{RUNTIME:network:out}}', name: '{{RUNTIME:naming:name:resource_type=vm}}', \
    password: '{{RUNTIME:secret:value:name=db}}'}}}\n";

fn programs_of_nobody() -> ProgramSettings {
    ProgramSettings {
        folder: "/nowhere/runs".into(),
        node_modules: None,
        sandbox: None,
    }
}

fn request(action: RunAction, on_failure: OnFailure, to_version: Option<u32>) -> RunRequest {
    RunRequest {
        action,
        deployment: "D1".parse().unwrap(),
        environment: DEV,
        rehearsal: false,
        user: "ann".to_owned(),
        host: "here".to_owned(),
        choices: RunChoices {
            on_failure,
            to_version,
            parallel: 1,
            ..RunChoices::default()
        },
        manifest: String::new(),
        manifest_parts: BTreeMap::new(),
        plan: String::new(),
    }
}

fn deployment(by: UserId) -> NewDeployment {
    NewDeployment {
        id: "D1".to_owned(),
        organization: "o".to_owned(),
        project: "p".to_owned(),
        template: "t".to_owned(),
        manifest: String::new(),
        created_by: by,
    }
}

struct ServedWorld {
    world: RecordedWorld,
    tables: DeploymentTables,
    contracts: BTreeMap<ComponentName, ParameterContract>,
}

impl ServedWorld {
    async fn new(database: &TestDatabase) -> Self {
        let by = UserId::random();
        let set_up: Result<_, StoreError> = database
            .store
            .tenant_tx(database.root, async |tx| {
                let pool = json!({"name": "lan", "cidr": "10.0.0.0/24"});
                let pool = serde_json::from_value(pool).unwrap();
                tx.pool_create(&pool, None, by).await?;
                for (resolver, config) in [
                    (ResolverKind::Ipam, json!({"pool": "lan"})),
                    (
                        ResolverKind::Naming,
                        json!({"pattern": "{env}-{type}-{seq:03d}"}),
                    ),
                ] {
                    let config = config.as_object().unwrap().clone();
                    let place = ResolverPlace::default();
                    tx.resolver_configure(resolver, &place, &config, by).await?;
                }
                Ok(())
            })
            .await;
        set_up.unwrap();
        let ring = KeyRing::new(KeyEncryptionKey::generate(), Vec::new());
        let vault = TenantVault::open(&database.store, &ring, database.root)
            .await
            .unwrap();
        let held = HeldRun {
            deployment: "D1".to_owned(),
            number: 1,
            epoch: 1,
        };
        let programs = ["network", "app"].map(|name| (name, "v1"));
        Self {
            world: RecordedWorld::with_manifest(MANIFEST, &programs),
            tables: DeploymentTables::new(
                vault,
                held,
                false,
                TenantTexts::new(&programs_of_nobody()),
            ),
            contracts: BTreeMap::new(),
        }
    }

    fn ports(&self) -> Arc<nimbus_runs::ports::RunPorts> {
        let mut ports = self.world.ports(&Crash::never());
        let leases = LeaseTables::new(&self.tables);
        ports.resolvers = Box::new(leases.with_contracts(self.contracts.clone()));
        Arc::new(ports)
    }

    async fn run(
        &self,
        action: RunAction,
        on_failure: OnFailure,
        to_version: Option<u32>,
    ) -> RunResult {
        let request = request(action, on_failure, to_version);
        let session = RunSession::open(self.ports(), request, "test", None)
            .await
            .unwrap();
        let planned = session.plan().await.unwrap();
        let bus = Arc::new(EventBus::default());
        planned
            .carry_out(bus, CancellationToken::new())
            .await
            .unwrap()
            .result
    }

    async fn go_on(&self) -> RunResult {
        let run = self
            .world
            .read(|contents| *contents.runs.keys().next_back().unwrap());
        let resumption = ResumeRequest {
            run,
            forget_creates: false,
        };
        let planned = resume(self.ports(), resumption, "test", None)
            .await
            .unwrap();
        let bus = Arc::new(EventBus::default());
        planned
            .carry_out(bus, CancellationToken::new())
            .await
            .unwrap()
            .result
    }

    /// Statuses by unit and resolver.
    async fn held(&self) -> Vec<String> {
        let held = LeaseTables::new(&self.tables).held(DEV).await.unwrap();
        let mut held: Vec<_> = held
            .iter()
            .map(|one| {
                format!(
                    "{} {} {}",
                    one.unit.component,
                    one.resolver,
                    one.status.as_str()
                )
            })
            .collect();
        held.sort();
        held
    }

    fn faulty(&self, name: &str, fault: UnitFault) {
        self.world
            .change(|contents| contents.faults.insert(name.parse().unwrap(), fault));
    }
}

const ALL: [&str; 3] = [
    "app naming committed",
    "app secret committed",
    "network ipam committed",
];

#[tokio::test]
async fn leases_in_the_database_follow_runs() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let served = ServedWorld::new(&database).await;
    let broken = UnitFault {
        deploy: true,
        ..UnitFault::default()
    };
    // Undone: everything comes back.
    served.faulty("app", broken);
    let result = served
        .run(RunAction::Deploy, OnFailure::Rollback, None)
        .await;
    assert_eq!(result, RunResult::RolledBack);
    assert_eq!(served.held().await, Vec::<String>::new());
    // Held: what may be in use stays, and going on commits the same.
    let result = served.run(RunAction::Deploy, OnFailure::Hold, None).await;
    assert_eq!(result, RunResult::Failed);
    let open = [
        "app naming leased",
        "app secret leased",
        "network ipam committed",
    ];
    assert_eq!(served.held().await, open);
    served.world.change(|contents| contents.faults.clear());
    assert_eq!(served.go_on().await, RunResult::Succeeded);
    assert_eq!(served.held().await, ALL);
    let dump = database.dump().await;
    assert!(
        dump.contains("nimbus-secret:"),
        "only references are in the open"
    );
    // Another size, undone: as it was.
    served.world.change(|contents| {
        contents.manifest = contents
            .manifest
            .replace("prefix_length=26", "prefix_length=27");
    });
    served.faulty("app", broken);
    served.world.change(|contents| {
        contents
            .programs
            .values_mut()
            .for_each(|code| *code = "v2".to_owned());
    });
    let result = served
        .run(RunAction::Deploy, OnFailure::Rollback, None)
        .await;
    assert_eq!(result, RunResult::RolledBack);
    assert_eq!(served.held().await, ALL);
    // Deployed: the old block stays for a rollback. Rolled back, then destroyed.
    served.world.change(|contents| contents.faults.clear());
    served.run(RunAction::Deploy, OnFailure::Hold, None).await;
    assert_eq!(served.held().await.len(), 4);
    let result = served
        .run(RunAction::Rollback, OnFailure::Hold, Some(1))
        .await;
    assert_eq!(result, RunResult::Succeeded);
    assert_eq!(served.held().await.len(), 4);
    served.run(RunAction::Destroy, OnFailure::Hold, None).await;
    assert_eq!(served.held().await, Vec::<String>::new());
}

/// Bound inputs have no value when a run is queued, so rules hold for them once they are answered.
#[tokio::test]
async fn what_resolvers_answer_is_held_to_the_rules_and_kept_with_the_instance() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let mut served = ServedWorld::new(&database).await;
    let schema = json!({"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "cidr": {"type": "string"}}});
    let bindings = json!({
        "name": {"resolver": "naming", "output": "name", "inputs": {"resource_type": "lan"}}});
    let contract = ParameterContract::read(&schema, bindings.as_object().unwrap()).unwrap();
    served
        .contracts
        .insert("network".parse().unwrap(), contract);
    let by = UserId::random();
    let root = database.root;
    let set_up: Result<_, StoreError> = database
        .store
        .tenant_tx(root, async |tx| {
            tx.deployment_create(&deployment(by)).await?;
            for stack in ["network", "app"] {
                let new = NewInstance {
                    deployment: "D1".to_owned(),
                    environment: "dev".to_owned(),
                    rehearsal: false,
                    stack: stack.to_owned(),
                    component: stack.to_owned(),
                    version: None,
                    pulumi_stack: format!("D1-{stack}-dev"),
                    parameters: json!({}),
                    by,
                };
                tx.instance_reserve(&new).await?;
            }
            let rule = NewRule {
                component: "network".to_owned(),
                is_allowed: true,
                parameter_constraints: json!({"parameters": {"name": {"allowed": ["other"]}}}),
                max_instances: None,
                reason: String::new(),
                set_by: by,
                set_by_name: "ann".to_owned(),
                set_from: root,
            };
            tx.governance_put(&rule).await
        })
        .await;
    set_up.unwrap();
    let result = served.run(RunAction::Deploy, OnFailure::Hold, None).await;
    assert_eq!(result, RunResult::Failed);
    assert_eq!(served.held().await, Vec::<String>::new());
    let jobs = served.world.contents().jobs;
    assert!(jobs.is_empty(), "{jobs:?}");
    let allowed: Result<_, StoreError> = database
        .store
        .tenant_tx(root, async |tx| tx.governance_delete("network").await)
        .await;
    allowed.unwrap();
    let result = served.run(RunAction::Deploy, OnFailure::Hold, None).await;
    assert_eq!(result, RunResult::Succeeded);
    assert!(
        served
            .held()
            .await
            .contains(&"network naming committed".to_owned())
    );
    // With the instance is what it was deployed with, and no secret.
    let dump = database.dump().await;
    assert!(dump.contains("[secret]"), "{dump}");
    assert!(dump.contains("dev-lan-001"), "{dump}");
}

/// A run that was cancelled while nobody carried it out settles nothing itself; the next one does.
#[tokio::test]
async fn what_a_run_left_that_is_over_is_settled_by_its_record() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let served = ServedWorld::new(&database).await;
    let by = UserId::random();
    let run: Result<_, StoreError> = database
        .store
        .tenant_tx(database.root, async |tx| {
            tx.deployment_create(&deployment(by)).await?;
            let request = request(RunAction::Deploy, OnFailure::Hold, None);
            let new = NewRun {
                deployment: "D1".to_owned(),
                action: "deploy".to_owned(),
                environment: "dev".to_owned(),
                rehearsal: false,
                request: serde_json::to_value(&request).unwrap(),
                catalog: json!({}),
                requested_by: by,
                trace_id: None,
            };
            tx.run_queue(&new).await
        })
        .await;
    let run = run.unwrap();
    let leases = LeaseTables::new(&served.tables);
    let facts = UnitFacts {
        deployment: "D1".to_owned(),
        environment: "dev".to_owned(),
        component: "network".to_owned(),
        ..UnitFacts::default()
    };
    let inputs: Value = json!({"prefix_length": 26});
    let question =
        ResolverQuestion::new(ResolverKind::Ipam, inputs.as_object().unwrap().clone()).unwrap();
    leases
        .answer(&facts, LeaseHolder::Run(1), &question)
        .await
        .unwrap();
    leases.settle_ended(DEV).await.unwrap();
    assert_eq!(served.held().await.len(), 1, "the run is not over");
    let cancelled: Result<_, StoreError> = database
        .store
        .tenant_tx(database.root, async |tx| {
            let end = RunEnd {
                status: "ended",
                wish: None,
                result: Some("cancelled".to_owned()),
                problem: None,
            };
            tx.run_set(run.id, &end).await
        })
        .await;
    cancelled.unwrap();
    leases.settle_ended(DEV).await.unwrap();
    assert_eq!(served.held().await, Vec::<String>::new(), "it never began");
}
