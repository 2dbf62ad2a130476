//! What the server counts, scraped as Prometheus would.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_control_app::operation::OPERATIONS;
use nimbus_control_metrics::Metrics;
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::support::{Running, call, folder, options, send, set_up};

/// One line of an exposition.
#[derive(Debug)]
struct Series {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

struct Scrape {
    text: String,
    series: Vec<Series>,
}

impl Scrape {
    async fn of(server: &Running) -> Self {
        let answer = server.get("/metrics").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(
            answer.head.contains("application/openmetrics-text"),
            "{}",
            answer.head
        );
        let lines = answer.body.lines().filter(|line| !line.starts_with('#'));
        Self {
            series: lines.map(series).collect(),
            text: answer.body,
        }
    }

    /// The sum of what has this name and these labels.
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |series: &&Series| {
            series.name == name
                && labels
                    .iter()
                    .all(|(label, value)| series.labels.get(*label).is_some_and(|is| is == value))
        };
        self.series
            .iter()
            .filter(fits)
            .map(|series| series.value)
            .sum()
    }

    fn values_of(&self, label: &str) -> BTreeSet<&str> {
        self.series
            .iter()
            .filter_map(|series| series.labels.get(label))
            .map(String::as_str)
            .collect()
    }
}

fn series(line: &str) -> Series {
    let (left, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = left.split_once('{').unwrap_or((left, "}"));
    let mut rest = labels.trim_end_matches('}');
    let mut found = BTreeMap::new();
    while let Some((label, tail)) = rest.split_once("=\"") {
        let (text, after) = tail.split_once('"').unwrap();
        found.insert(label.trim_start_matches(',').to_owned(), text.to_owned());
        rest = after;
    }
    Series {
        name: name.to_owned(),
        labels: found,
        value: value.parse().unwrap_or(f64::NAN),
    }
}

#[tokio::test]
async fn what_happens_is_counted_and_labels_are_few_and_name_nobody() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    let owner = set_up(&server).await;
    let root = server.store.tenant_find(&[]).await.unwrap();
    let before = Scrape::of(&server).await;
    assert_eq!(before.value("nimbus_active_tenants", &[]), 1.0);

    let made = call(
        &server,
        "POST",
        &format!("/api/v1/tenants/{root}/tenants"),
        Some(&owner),
        &json!({"slug": "acme", "name": "Acme"}),
    )
    .await;
    let acme = made["id"].as_str().unwrap();
    let path = format!("/api/v1/tenants/{acme}");
    for _ in 0..3 {
        call(&server, "GET", &path, Some(&owner), &Value::Null).await;
    }
    let wrong = json!({"email": "owner@operator.example", "password": "wrong"});
    call(&server, "POST", "/api/v1/auth/login", None, &wrong).await;
    call(
        &server,
        "GET",
        "/api/v1/auth/me",
        Some("nonsense"),
        &Value::Null,
    )
    .await;
    call(&server, "BREW", "/coffee-0001", None, &Value::Null).await;
    // Whoever looks at the trail finds the reads in it, so they are written then.
    let trail = format!("{path}/audit");
    call(&server, "GET", &trail, Some(&owner), &Value::Null).await;
    let after = Scrape::of(&server).await;

    let grew = |name: &str, labels: &[(&str, &str)]| {
        after.value(name, labels) - before.value(name, labels)
    };
    let template = "/api/v1/tenants/{tenant}";
    let read = [("method", "GET"), ("path", template), ("status", "200")];
    assert_eq!(grew("nimbus_http_requests_total", &read), 3.0);
    assert_eq!(
        grew("nimbus_http_request_duration_seconds_count", &read[..2]),
        3.0
    );
    let created = [("action", "tenants.create")];
    assert_eq!(grew("nimbus_audit_events_total", &created), 1.0);
    let reads = [("action", "tenants.get"), ("resource_type", "tenants")];
    assert_eq!(grew("nimbus_audit_events_total", &reads), 3.0);
    assert_eq!(
        grew("nimbus_sign_ins_total", &[("outcome", "refused")]),
        1.0
    );
    assert_eq!(grew("nimbus_errors_total", &[("code", "NIM-0854")]), 1.0);
    assert!(grew("nimbus_db_queries_total", &[]) > 10.0);
    assert!(grew("nimbus_db_query_duration_seconds_count", &[]) > 10.0);
    assert_eq!(after.value("nimbus_active_tenants", &[]), 2.0);
    assert_eq!(after.value("nimbus_active_users", &[]), 1.0);
    assert_eq!(after.value("nimbus_ready", &[]), 1.0);
    assert_eq!(after.value("nimbus_db_pool_size", &[]), 5.0);
    let connections = after.value("nimbus_db_pool_connections", &[]);
    assert!((1.0..=5.0).contains(&connections), "{connections}");
    assert!(after.value("process_resident_memory_bytes", &[]) > 1e6);

    // Every family says what it is, and there is none that is not on the list.
    let listed: BTreeMap<String, &str> = Metrics::default()
        .names()
        .iter()
        .map(|metric| (metric.name.clone(), metric.kind))
        .collect();
    for line in after.text.lines().filter(|line| line.starts_with("# TYPE")) {
        let mut words = line.split(' ').skip(2);
        let (name, kind) = (words.next().unwrap(), words.next().unwrap());
        assert_eq!(listed.get(name), Some(&kind), "{line}");
    }
    let paths: BTreeSet<&str> = OPERATIONS.iter().map(|operation| operation.path).collect();
    for path in after.values_of("path") {
        let known = paths.contains(path) || path == "other" || path.matches('/').count() <= 3;
        assert!(known && !path.contains("coffee"), "{path}");
    }
    assert!(!after.text.contains("BREW"), "methods are known ones");
    for secret in [acme, "acme", "owner@", &root.to_string()] {
        assert!(
            !after.text.contains(secret),
            "{secret} is nobody's business"
        );
    }

    call(&server, "DELETE", &path, Some(&owner), &Value::Null).await;
    let last = Scrape::of(&server).await;
    assert_eq!(last.value("nimbus_active_tenants", &[]), 1.0);
    server.stop().await;
}

#[tokio::test]
async fn items_of_all_tenants_are_counted_by_type_and_name_nothing_of_theirs() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let owner = set_up(&server).await;
    let root = server.store.tenant_find(&[]).await.unwrap();
    let mut places = vec![root.to_string()];
    for slug in ["acme", "globex"] {
        let path = format!("/api/v1/tenants/{root}/tenants");
        let body = json!({"slug": slug, "name": slug});
        let made = call(&server, "POST", &path, Some(&owner), &body).await;
        places.push(made["id"].as_str().unwrap().to_owned());
    }
    for place in &places {
        for class in ["aws:ec2/vpc:Vpc", "acme-secret-box"] {
            let class = class.replace('/', "%2F");
            let path = format!("/api/v1/cmdb/classes/{class}?tenant={place}");
            call(&server, "PUT", &path, Some(&owner), &json!({})).await;
        }
        let content = "{\"key\": \"a\", \"class\": \"aws:ec2/vpc:Vpc\"}\n\
                       {\"key\": \"b\", \"class\": \"aws:ec2/vpc:Vpc\", \"status\": \"decommissioned\"}\n\
                       {\"key\": \"c\", \"class\": \"acme-secret-box\"}\n";
        let path = format!("/api/v1/cmdb/imports?tenant={place}");
        let body = json!({"format": "jsonl", "content": content});
        let done = call(&server, "POST", &path, Some(&owner), &body).await;
        assert_eq!(done["status"], "succeeded", "{done}");
    }
    server.stop().await;
    // The first round of counting begins with the server.
    let server = Running::start(&options).await;
    let vpcs = [("provider", "aws"), ("type", "aws:ec2/vpc:Vpc")];
    let scrape = async {
        loop {
            let scrape = Scrape::of(&server).await;
            if scrape.value("nimbus_resources_total", &[]) > 0.0 {
                return scrape;
            }
            tokio::task::yield_now().await;
        }
    };
    let scrape = tokio::time::timeout(std::time::Duration::from_secs(60), scrape);
    let scrape = scrape.await.expect("counted within a minute");
    assert_eq!(scrape.value("nimbus_resources_total", &vpcs), 3.0);
    let own = [("type", "other")];
    assert_eq!(scrape.value("nimbus_resources_total", &own), 3.0);
    assert!(!scrape.text.contains("acme"), "{}", scrape.text);
    server.stop().await;
}

#[tokio::test]
async fn metrics_are_for_the_networks_that_the_operator_names() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let mut options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let passed_on = "X-Forwarded-For: 203.0.113.9\r\n";
    let answer = send(server.address, "GET", "/metrics", passed_on, "").await;
    assert_eq!(answer.status, 404, "{}", answer.body);
    assert_eq!(answer.json()["error"]["code"], "NOT_FOUND");
    assert_eq!(server.get("/metrics").await.status, 200);
    server.stop().await;
    options.api.metrics_readers =
        nimbus_control_server::MetricsReaders::parse("203.0.113.0/24").unwrap();
    let server = Running::start(&options).await;
    assert_eq!(server.get("/metrics").await.status, 404);
    server.stop().await;
}
