//! What is remembered of units, and what is told of it.

use nimbus_control_store::{Isolation, NewDeployment, NewRun, TenantChange};
use nimbus_control_testing::TestDatabase;
use nimbus_control_vault::{KeyEncryptionKey, KeyRing};
use nimbus_core::UserId;
use nimbus_orchestrator::{Fingerprint, LastOutcome, RememberedRun};
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::programs::ProgramSettings;

const DEV: EnvironmentName = EnvironmentName::DEV;

/// A deployment with a run that somebody has.
async fn tables(database: &TestDatabase) -> DeploymentTables {
    let by = UserId::random();
    let taken: Result<_, StoreError> = database
        .store
        .tenant_tx(database.root, async |tx| {
            let new = NewDeployment {
                id: "D1".to_owned(),
                organization: "o".to_owned(),
                project: "p".to_owned(),
                template: "t".to_owned(),
                manifest: String::new(),
                created_by: by,
            };
            tx.deployment_create(&new).await?;
            let new = NewRun {
                deployment: "D1".to_owned(),
                action: "deploy".to_owned(),
                environment: "dev".to_owned(),
                rehearsal: false,
                request: json!({}),
                catalog: json!({}),
                requested_by: by,
                trace_id: None,
            };
            tx.run_queue(&new).await?;
            tx.run_take(Uuid::new_v4()).await
        })
        .await;
    let run = taken.unwrap().unwrap();
    let ring = KeyRing::new(KeyEncryptionKey::generate(), Vec::new());
    let vault = TenantVault::open(&database.store, &ring, database.root)
        .await
        .unwrap();
    let held = HeldRun {
        deployment: run.deployment,
        number: run.number,
        epoch: run.epoch,
    };
    let texts = TenantTexts::new(&ProgramSettings {
        folder: "/nowhere/runs".into(),
        node_modules: None,
        sandbox: None,
    });
    DeploymentTables::new(vault, held, false, texts)
}

fn memory(drifted: bool) -> UnitMemory {
    UnitMemory {
        last_run: Some(RememberedRun {
            outcome: LastOutcome::Succeeded,
            drifted,
            seconds: 1,
            resources: 1,
            fingerprint: Fingerprint::default(),
            state: None,
            stack: None,
            run: None,
            before: None,
        }),
        ..UnitMemory::default()
    }
}

/// What was told of drift so far.
async fn told(database: &TestDatabase) -> Vec<Value> {
    let store = &database.store;
    let relay = Uuid::new_v4();
    store.live_hold(relay, 60.0).await.unwrap();
    while !store.live_relay(relay, 500).await.unwrap().is_empty() {}
    store.live_let_go(relay).await.unwrap();
    let read: Result<_, StoreError> = store
        .tenant_tx(database.root, async |tx| {
            let mut from = tx.live_head().await?;
            from.seq = 0;
            tx.live_after(from, 1000).await
        })
        .await;
    let events = read.unwrap().into_iter();
    let drift = events.filter(|event| event.kind == "drift.detected");
    drift.map(|event| event.data).collect()
}

#[tokio::test]
async fn drift_is_told_when_it_is_found_and_not_again() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let tables = tables(&database).await;
    let network: ComponentName = "network".parse().unwrap();
    let save = async |drifted| {
        let memory = memory(drifted);
        UnitMemories::save(&tables, &network, DEV, &memory)
            .await
            .unwrap();
    };
    save(false).await;
    assert_eq!(told(&database).await, Vec::<Value>::new());
    save(true).await;
    save(true).await;
    let found = json!({
        "resource_id": "network",
        "resource_type": "units",
        "deployment": "D1",
        "environment": "dev",
        "rehearsal": false,
        "run": "R0001",
    });
    assert_eq!(told(&database).await, std::slice::from_ref(&found));
    // Put right, and found again.
    save(false).await;
    save(true).await;
    assert_eq!(told(&database).await, [found.clone(), found]);
    let root = database.root;
    let counted = |severity: &str| {
        let series =
            format!("nimbus_drift_detected_total{{tenant_id=\"{root}\",severity=\"{severity}\"}}");
        let text = database.store.metrics().text();
        let line = text.lines().find(|line| line.starts_with(&series));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
    };
    assert_eq!(counted("warning"), Some(2), "told twice, counted twice");
    // A tenant that wants no alerts is counted, and no alert speaks of it.
    let silenced: Result<_, StoreError> = database
        .store
        .registry_tx(root, async |tx| {
            let change = TenantChange {
                settings: Some(json!({"drift_alerts": false})),
                ..TenantChange::default()
            };
            tx.tenant_update(root, &change).await
        })
        .await;
    silenced.unwrap();
    save(false).await;
    save(true).await;
    assert_eq!(counted("silenced"), Some(1));
    assert_eq!(counted("warning"), Some(2));
}

#[test]
fn drift_in_production_matters_most() {
    let severity = |environment: &str, rehearsal| {
        drift_severity(&EnvironmentKey {
            deployment: "D1".to_owned(),
            environment: environment.to_owned(),
            rehearsal,
        })
    };
    assert_eq!(severity("prod", false), "critical");
    assert_eq!(severity("stage", false), "warning");
    assert_eq!(severity("prod", true), "info");
}
