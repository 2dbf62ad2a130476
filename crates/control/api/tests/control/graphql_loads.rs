//! What lists name is loaded together: as many statements for many items as for few.

use serde_json::{Value, json};

use crate::support::{Installation, installation, text};

/// Items of each list, more than the library resolves in one turn: those have to be loaded at once too.
const MANY: usize = 40;

/// Each is asked for some items and for many. What a document names twice, on two levels, may or may not be known when it
/// is named again; no document here does.
const DOCUMENTS: &[&str] = &[
    "query($first: Int) { list: deployments(filter: {tenantId: \"acme\"}, pagination: {first: $first}) {
         nodes { id createdBy { email } runs(first: 2) { number deployment { id } } environments { name lastRun { number } } } } }",
    "query($first: Int) { list: runs(filter: {tenantId: \"acme\"}, pagination: {first: $first}) {
         nodes { id requestedBy { email } deployment { id runs(first: 3) { number } environments { name } } } } }",
    "query($first: Int) { list: groups(filter: {tenantId: \"acme\"}, pagination: {first: $first}) {
         nodes { name members(first: 5) { email } } } }",
    "query($first: Int) { list: roleAssignments(tenantId: \"acme\", pagination: {first: $first}) {
         nodes { role user { email } group { name members(first: 1) { email } } } } }",
];

/// A tenant in which every list has many items.
async fn filled(nimbus: &Installation, owner: &str) {
    let acme = nimbus.tenant(owner, "acme").await;
    let ann = nimbus.user(owner, &acme, "ann@acme.example", None).await;
    nimbus.deployments(&acme, &ann, MANY).await;
    let groups = format!("/api/v1/tenants/{acme}/groups");
    let assignments = format!("/api/v1/tenants/{acme}/role-assignments");
    for number in 0..MANY {
        let group = json!({"name": format!("group {number}")});
        let group = text(&nimbus.post(&groups, owner, group).await.ok()["id"]);
        let member = format!("{groups}/{group}/members/{ann}");
        nimbus.call("PUT", &member, Some(owner), None).await.ok();
        let role = json!({"role": "viewer", "group_id": group});
        nimbus.post(&assignments, owner, role).await.ok();
    }
}

#[tokio::test]
async fn what_lists_name_is_loaded_together_however_many_there_are() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    filled(&nimbus, &owner).await;
    for document in DOCUMENTS {
        let few = statements(&nimbus, &owner, document, 2).await;
        let many = statements(&nimbus, &owner, document, MANY).await;
        assert_eq!(few, many, "statements for 2 and for {MANY}: {document}");
    }
}

/// The same where loads and the document that waits for them are on threads of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lists_name_is_loaded_together_beside_other_threads() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    filled(&nimbus, &owner).await;
    for document in DOCUMENTS {
        let few = statements(&nimbus, &owner, document, 2).await;
        let many = statements(&nimbus, &owner, document, MANY).await;
        assert_eq!(few, many, "statements for 2 and for {MANY}: {document}");
    }
}

#[tokio::test]
async fn tenants_and_those_above_and_below_them_are_loaded_together() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    for slug in ["acme", "beta", "gamma", "delta"] {
        nimbus.tenant(&owner, slug).await;
    }
    let document = "query($first: Int) { list: tenants(pagination: {first: $first}) {
         nodes { slug parent { slug } children(first: 3) { slug } } } }";
    let few = statements(&nimbus, &owner, document, 2).await;
    let many = statements(&nimbus, &owner, document, 5).await;
    assert_eq!(few, many, "statements for 2 and for 5");
}

/// What a document costs, at the least of a few times: a session or a connection may need something of its own once.
async fn statements(nimbus: &Installation, owner: &str, document: &str, first: usize) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..3 {
        // What was asked before is recorded before it is counted.
        nimbus.database.store.audit_flush_all().await;
        let before = queries(nimbus);
        let data = nimbus.data(owner, document, json!({"first": first})).await;
        least = least.min(queries(nimbus) - before);
        let items = data["list"]["nodes"].as_array().map_or(0, Vec::len);
        assert_eq!(items, first, "{document}");
        assert!(!has_nothing(&data), "{data}");
    }
    least
}

/// Whether a list of what an item names is empty.
fn has_nothing(data: &Value) -> bool {
    match data {
        Value::Array(items) => items.is_empty() || items.iter().any(has_nothing),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name != "children" && has_nothing(value)),
        _ => false,
    }
}

/// Statements for tenants until now.
fn queries(nimbus: &Installation) -> u64 {
    let text = nimbus.database.store.metrics().text();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("nimbus_db_queries_total "));
    line.and_then(|number| number.parse().ok()).unwrap()
}
