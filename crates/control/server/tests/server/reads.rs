//! Records of reads: written soon, and before the server is gone.

use std::time::{Duration, Instant};

use nimbus_control_store::{AuditFilter, Store, StoreError};
use nimbus_core::TenantId;
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::Value;

use crate::support::{Running, call, folder, options, set_up};

/// How many entries a tenant's trail has of one kind, asked of the database itself.
async fn recorded(store: &Store, tenant: TenantId, action: &str) -> usize {
    let filter = AuditFilter {
        action: Some(action.to_owned()),
        limit: 1000,
        ..AuditFilter::default()
    };
    let entries: Result<_, StoreError> = store
        .tenant_tx(tenant, async |tx| tx.audit_list(&filter).await)
        .await;
    entries.unwrap().len()
}

#[tokio::test]
async fn reads_are_recorded_by_themselves_and_all_of_them_when_the_server_stops() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let owner = set_up(&server).await;
    let root = server.store.tenant_find(&[]).await.unwrap();
    let read = async |server: &Running| {
        let answer = call(server, "GET", "/api/v1/auth/me", Some(&owner), &Value::Null).await;
        assert!(answer["error"].is_null(), "{answer}");
    };
    for _ in 0..5 {
        read(&server).await;
    }
    // A second is promised; a machine with other tests on it has more time.
    let begun = Instant::now();
    while recorded(&server.store, root, "auth.me").await < 5 {
        assert!(begun.elapsed() < Duration::from_secs(20), "never recorded");
    }
    for _ in 0..15 {
        read(&server).await;
    }
    server.stop().await;

    let again = Running::start(&options).await;
    assert_eq!(recorded(&again.store, root, "auth.me").await, 20);
    let path = format!("/api/v1/tenants/{root}/audit/verify");
    let verdict = call(&again, "GET", &path, Some(&owner), &Value::Null).await;
    assert_eq!(verdict["intact"], true, "{verdict}");
    again.stop().await;
}
