//! Records of reads are written together, in order, and never mixed up or lost unnoticed.

use nimbus_control_audit::{Actor, AuditRecord, Priority};
use nimbus_core::TenantId;
use serde_json::{Value, json};

use crate::support::{Answer, Installation, installation, text};

fn trace(answer: &Answer) -> String {
    answer.headers["x-trace-id"].to_str().unwrap().to_owned()
}

/// Traces of the entries of a kind, in the order of the chain.
async fn traces(nimbus: &Installation, token: &str, tenant: &str, action: &str) -> Vec<String> {
    entries(nimbus, token, tenant, action)
        .await
        .iter()
        .map(|entry| text(&entry["trace_id"]))
        .collect()
}

async fn entries(nimbus: &Installation, token: &str, tenant: &str, action: &str) -> Vec<Value> {
    let path = format!("/api/v1/tenants/{tenant}/audit?action={action}&limit=1000");
    let answer = nimbus.get(&path, token).await.ok();
    let mut items = answer["items"].as_array().unwrap().clone();
    items.sort_by_key(|entry| entry["sequence"].as_u64());
    items
}

async fn is_intact(nimbus: &Installation, token: &str, tenant: &str) -> bool {
    let path = format!("/api/v1/tenants/{tenant}/audit/verify");
    nimbus.get(&path, token).await.ok()["intact"] == true
}

fn counter(nimbus: &Installation, line: &str) -> u64 {
    let text = nimbus.database.store.metrics().text();
    let value = text.lines().find_map(|found| found.strip_prefix(line));
    value.map_or(0, |value| value.trim().parse().unwrap())
}

#[tokio::test]
async fn reads_of_each_tenant_are_in_its_own_trail_in_the_order_of_their_answers() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let umbrella = nimbus.tenant(&owner, "umbrella").await;
    let mut expected: [Vec<String>; 2] = Default::default();
    for round in 0..6 {
        for (place, tenant) in [&acme, &umbrella].into_iter().enumerate() {
            let path = format!("/api/v1/tenants/{tenant}/users");
            let answer = nimbus.get(&path, &owner).await;
            expected[place].push(trace(&answer));
            answer.ok();
        }
        if round == 3 {
            // A change in between is recorded at once, and the chain goes on after it.
            nimbus.user(&owner, &acme, "jane@acme.example", None).await;
        }
    }
    let [of_acme, of_umbrella] = expected;
    assert_eq!(traces(&nimbus, &owner, &acme, "users.list").await, of_acme);
    assert_eq!(
        traces(&nimbus, &owner, &umbrella, "users.list").await,
        of_umbrella
    );
    nimbus.app.checkpoint_audit(jiff::Timestamp::now()).await;
    assert!(is_intact(&nimbus, &owner, &acme).await);
    assert!(is_intact(&nimbus, &owner, &umbrella).await);
}

#[tokio::test]
async fn a_read_waits_and_a_change_and_a_refusal_do_not() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus
        .user(&owner, &acme, "jane@acme.example", Some("viewer"))
        .await;
    let jane = nimbus.token("acme", "jane@acme.example").await;
    let tenant: TenantId = acme.parse().unwrap();
    let store = &nimbus.database.store;
    store.audit_flush_all().await;
    let last = async || {
        let head = store.audit_head(tenant).unwrap();
        head.sequence
    };
    let before = last().await;
    let users = format!("/api/v1/tenants/{acme}/users");
    nimbus.get(&users, &jane).await.ok();
    assert_eq!(last().await, before, "a read waits for others");
    assert_eq!(counter(&nimbus, "nimbus_audit_reads_waiting "), 1);
    let groups = format!("/api/v1/tenants/{acme}/groups");
    let refused = nimbus.post(&groups, &jane, json!({"name": "x"})).await;
    assert_eq!(refused.status, 403);
    assert_eq!(last().await, before + 1, "a refusal does not");
    nimbus
        .post(&groups, &owner, json!({"name": "x"}))
        .await
        .ok();
    assert_eq!(last().await, before + 2, "nor does a change");
    assert_eq!(store.audit_flush(tenant).await.unwrap(), 1);
    assert_eq!(last().await, before + 3);
    assert!(is_intact(&nimbus, &owner, &acme).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_and_writers_at_once_leave_one_sound_chain() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let tenant: TenantId = acme.parse().unwrap();
    let (users, groups) = (
        format!("/api/v1/tenants/{acme}/users"),
        format!("/api/v1/tenants/{acme}/groups"),
    );
    let readers = futures::future::join_all((0..60).map(|_| nimbus.get(&users, &owner)));
    let writers = futures::future::join_all((0..10).map(|number| {
        let body = json!({"name": format!("group{number}")});
        nimbus.post(&groups, &owner, body)
    }));
    let store = &nimbus.database.store;
    let flushes = futures::future::join_all((0..20).map(|_| store.audit_flush(tenant)));
    let (read, written, flushed) = futures::join!(readers, writers, flushes);
    assert!(
        read.iter()
            .chain(&written)
            .all(|answer| answer.status.is_success())
    );
    assert!(flushed.iter().all(Result::is_ok));
    assert_eq!(
        traces(&nimbus, &owner, &acme, "users.list").await.len(),
        60,
        "each once"
    );
    nimbus.app.checkpoint_audit(jiff::Timestamp::now()).await;
    assert!(is_intact(&nimbus, &owner, &acme).await);
}

fn read_record(number: usize) -> AuditRecord {
    AuditRecord::new(Actor::system(), "users.list", "users")
        .on(number)
        .priority(Priority::Low)
}

#[tokio::test]
async fn what_finds_no_room_is_counted_and_the_trail_says_that_it_is_missing() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let tenant: TenantId = acme.parse().unwrap();
    let store = &nimbus.database.store;
    // A database that takes nothing for a while is a queue that nobody empties.
    let now = jiff::Timestamp::now();
    for number in 0..5_012 {
        store.audit_later(tenant, now, read_record(number));
    }
    assert_eq!(counter(&nimbus, "nimbus_audit_reads_shed_total "), 12);
    assert_eq!(counter(&nimbus, "nimbus_audit_reads_waiting "), 5_000);
    store.audit_later(nimbus.root, now, read_record(0));
    let done = store.audit_flush_all().await;
    assert_eq!((done.written, done.waiting), (5_001, 0));
    let missing = entries(&nimbus, &owner, &acme, "audit.reads.shed").await;
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(missing[0]["new_value"]["missing"], 12);
    let root = nimbus.root.to_string();
    let others = entries(&nimbus, &owner, &root, "audit.reads.shed").await;
    assert!(others.is_empty(), "nobody else's are missing: {others:?}");
    assert!(is_intact(&nimbus, &owner, &acme).await);
}

#[tokio::test]
async fn a_database_that_refuses_records_for_good_is_told_in_the_trail() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let tenant: TenantId = acme.parse().unwrap();
    let store = &nimbus.database.store;
    let check = "ALTER TABLE nimbus_core.audit_logs ADD CONSTRAINT no_reads
                     CHECK (action <> 'users.list') NOT VALID";
    nimbus.database.run_as_administrator(check).await;
    let now = jiff::Timestamp::now();
    for number in 0..3 {
        store.audit_later(tenant, now, read_record(number));
    }
    assert!(store.audit_flush(tenant).await.is_err());
    assert_eq!(counter(&nimbus, "nimbus_audit_reads_shed_total "), 3);
    let again = "ALTER TABLE nimbus_core.audit_logs DROP CONSTRAINT no_reads";
    nimbus.database.run_as_administrator(again).await;
    let missing = entries(&nimbus, &owner, &acme, "audit.reads.shed").await;
    assert_eq!(missing[0]["new_value"]["missing"], 3, "{missing:?}");
    assert!(is_intact(&nimbus, &owner, &acme).await);
}

#[tokio::test]
async fn reads_of_a_tenant_are_recorded_before_it_is_deleted() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let path = format!("/api/v1/tenants/{acme}");
    let read = nimbus.get(&format!("{path}/users"), &owner).await;
    let of_read = trace(&read);
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    let restored = format!("/api/v1/tenants/{}/deleted/{acme}/restore", nimbus.root);
    nimbus.post(&restored, &owner, json!({})).await.ok();
    assert_eq!(
        traces(&nimbus, &owner, &acme, "users.list").await,
        [of_read]
    );
}
