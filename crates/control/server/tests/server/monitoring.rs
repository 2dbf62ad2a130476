//! What is shipped to watch and to run the server with: rules, dashboard, images, chart, unit.
//!
//! A rule whose metric does not exist never fires, and says nothing about it. So every name is compared with what the
//! server offers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use nimbus_control_metrics::Metrics;
use nimbus_document::Document;
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn deploy(file: &str) -> PathBuf {
    repository().join("deploy").join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(deploy(file)).unwrap()
}

fn yaml(file: &str) -> Value {
    let document = Document::parse(file, &read(file)).unwrap();
    document.to_json(document.root()).unwrap()
}

/// Names of metrics of ours in a query: words outside of texts.
fn names(query: &str) -> BTreeSet<String> {
    let unquoted: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    unquoted
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("nimbus_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

fn offered() -> BTreeSet<String> {
    let metrics = Metrics::default();
    metrics
        .names()
        .iter()
        .flat_map(|metric| metric.series())
        .collect()
}

/// Every query under `key`, wherever it is.
fn queries(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match inner {
                    Value::String(text) if name == key => found.push(text.clone()),
                    inner => queries(inner, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| queries(item, key, found)),
        _ => {}
    }
}

/// The alert of this name.
fn rule<'a>(rules: &'a Value, alert: &str) -> &'a Value {
    let groups = rules["groups"].as_array().unwrap();
    let mut all = groups.iter().flat_map(|group| group["rules"].as_array());
    let found = all.find_map(|rules| rules.iter().find(|rule| rule["alert"] == alert));
    found.unwrap_or_else(|| panic!("there is no alert {alert}"))
}

#[test]
fn names_are_found_between_functions_and_outside_of_texts() {
    let query = r#"sum by (le) (rate(nimbus_a_total{path="nimbus_b"}[5m])) / process_c > 2"#;
    let expected = ["nimbus_a_total", "process_c"].map(str::to_owned);
    assert_eq!(names(query), BTreeSet::from(expected));
}

#[test]
fn every_alert_asks_for_metrics_that_exist() {
    let rules = yaml("monitoring/alerts.yaml");
    let mut found = Vec::new();
    queries(&rules, "expr", &mut found);
    assert!(found.len() >= 10, "{found:?}");
    let offered = offered();
    for query in &found {
        let used = names(query);
        let missing: Vec<_> = used.difference(&offered).collect();
        assert!(missing.is_empty(), "{missing:?} in {query}");
        assert!(!used.is_empty() || query.starts_with("up{"), "{query}");
    }
    let mut alerts = Vec::new();
    queries(&rules, "alert", &mut alerts);
    // As the specification has them: above or below how much, and for how long.
    for (wanted, threshold, long) in [
        ("HighErrorRate", "> 0.05", "5m"),
        ("HighLatency", "> 2", "5m"),
        ("DatabaseConnectionPool", "< 0.1", "2m"),
    ] {
        let rule = rule(&rules, wanted);
        let query = rule["expr"].as_str().unwrap().trim_end();
        let bound = query.rfind(['<', '>']).map(|at| &query[at..]);
        assert_eq!(bound, Some(threshold), "{wanted}: {query}");
        assert_eq!(rule["for"], long, "{wanted}");
    }
    let latency = rule(&rules, "HighLatency")["expr"].to_string();
    assert!(latency.contains("histogram_quantile(0.99,"), "{latency}");
    let mut severities = Vec::new();
    queries(&rules, "severity", &mut severities);
    assert_eq!(severities.len(), alerts.len(), "each says how bad it is");
    let known = |severity: &String| severity == "critical" || severity == "warning";
    assert!(severities.iter().all(known), "{severities:?}");
}

#[test]
fn everything_that_tells_metrics_is_asked_and_in_the_compose_file() {
    let prometheus = yaml("monitoring/prometheus.yaml");
    let compose = yaml("compose/compose.yaml");
    let jobs = prometheus["scrape_configs"].as_array().unwrap();
    let target = |job: &str| {
        let found = jobs.iter().find(|found| found["job_name"] == job);
        let found = found.unwrap_or_else(|| panic!("nobody asks {job}"));
        found["static_configs"][0]["targets"][0]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (job, port) in [
        ("nimbus", "8000"),
        ("postgres", "9187"),
        ("valkey", "9121"),
        ("temporal", "9233"),
        ("pushgateway", "9091"),
    ] {
        let target = target(job);
        let (service, asked) = target.split_once(':').unwrap();
        assert_eq!(asked, port, "{job}");
        assert!(
            compose["services"][service].is_object(),
            "{service} is not in the compose file"
        );
    }
    // Temporal tells nothing unless it is told where to, and its usual port speaks gRPC.
    let temporal = &compose["services"]["temporal"]["environment"];
    assert_eq!(temporal["PROMETHEUS_ENDPOINT"], "0.0.0.0:9233");
    // Whoever does not push needs no Pushgateway, and what was pushed keeps its labels.
    let push = &compose["services"]["pushgateway"];
    assert_eq!(push["profiles"], serde_json::json!(["push"]));
    let pushed = jobs.iter().find(|job| job["job_name"] == "pushgateway");
    assert_eq!(pushed.unwrap()["honor_labels"], true);
}

#[test]
fn logs_are_collected_kept_for_a_while_and_found_in_grafana() {
    let promtail = yaml("monitoring/promtail.yaml");
    let loki = yaml("monitoring/loki.yaml");
    let compose = yaml("compose/compose.yaml");
    let sources = yaml("monitoring/grafana/provisioning/datasources/nimbus.yaml");
    let port = loki["server"]["http_listen_port"].as_u64().unwrap();
    let address = format!("http://loki:{port}");
    let push = promtail["clients"][0]["url"].as_str().unwrap();
    assert_eq!(push, format!("{address}/loki/api/v1/push"));
    // Retention needs somebody who deletes.
    assert_eq!(loki["limits_config"]["retention_period"], "744h");
    assert_eq!(loki["compactor"]["retention_enabled"], true);
    let sources = sources["datasources"].as_array().unwrap();
    let found = sources.iter().find(|source| source["type"] == "loki");
    assert_eq!(found.unwrap()["url"], address.as_str());
    // Few labels with few values: what names a tenant, a person or a request stays in the line.
    let mut labels = Vec::new();
    let stages = promtail["scrape_configs"][0]["pipeline_stages"].as_array();
    for stage in stages.unwrap() {
        for inner in stage["match"]["stages"].as_array().into_iter().flatten() {
            labels.extend(inner["labels"].as_object().into_iter().flatten());
        }
    }
    let labels: Vec<&str> = labels.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["level", "logger"]);
    for service in ["loki", "promtail", "grafana"] {
        let profiles = &compose["services"][service]["profiles"];
        assert_eq!(*profiles, serde_json::json!(["monitoring"]), "{service}");
    }
    let format = &compose["services"]["nimbus-backend"]["environment"]["NIMBUS_LOGGING_FORMAT"];
    assert_eq!(*format, "json", "what is not JSON has no labels");
}

#[test]
fn alerts_go_where_their_severity_says() {
    let manager = yaml("monitoring/alertmanager.yaml");
    let routes = manager["route"]["routes"].as_array().unwrap();
    let goes_to = |severity: &str| {
        let matcher = format!("severity=\"{severity}\"");
        let fits = |route: &&Value| {
            let matchers = route["matchers"].as_array();
            matchers.is_some_and(|matchers| matchers.iter().any(|text| *text == *matcher))
        };
        routes.iter().find(fits).unwrap()["receiver"].clone()
    };
    assert_eq!(goes_to("critical"), "pagerduty");
    assert_eq!(goes_to("warning"), "mail");
    // The webhook comes first, hears everything and lets it go on.
    assert_eq!(routes[0]["receiver"], "webhook");
    assert!(routes[0]["matchers"].is_null() && routes[0]["continue"] == true);
    for (receiver, kind) in [
        ("pagerduty", "pagerduty_configs"),
        ("mail", "email_configs"),
        ("webhook", "webhook_configs"),
    ] {
        let receivers = manager["receivers"].as_array().unwrap();
        let found = receivers.iter().find(|found| found["name"] == receiver);
        assert!(found.unwrap()[kind].is_array(), "{receiver}");
    }
}

#[test]
fn the_dashboard_shows_metrics_that_exist_and_all_of_them() {
    let dashboard: Value = serde_json::from_str(&read("monitoring/grafana/nimbus.json")).unwrap();
    let mut found = Vec::new();
    queries(&dashboard, "expr", &mut found);
    let used: BTreeSet<String> = found.iter().flat_map(|query| names(query)).collect();
    let offered = offered();
    let missing: Vec<_> = used.difference(&offered).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for metric in Metrics::default().names() {
        let shown = metric.series().iter().any(|series| used.contains(series));
        assert!(shown, "{} is on no panel", metric.name);
    }
    let ids: Vec<&Value> = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|panel| &panel["id"])
        .collect();
    let distinct: BTreeSet<String> = ids.iter().map(|id| id.to_string()).collect();
    assert_eq!(
        distinct.len(),
        ids.len(),
        "panels have numbers of their own"
    );
}

#[test]
fn the_page_about_monitoring_names_every_metric() {
    let page = std::fs::read_to_string(repository().join("docs/monitoring.md")).unwrap();
    let offered = offered();
    for metric in Metrics::default().names() {
        assert!(
            page.contains(&format!("`{}", metric.name)),
            "{} is not in docs/monitoring.md",
            metric.name
        );
    }
    let unknown: Vec<_> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .flat_map(names)
        .filter(|name| !offered.contains(name) && !name.ends_with('_'))
        .filter(|name| {
            Metrics::default()
                .names()
                .iter()
                .all(|metric| &metric.name != name)
        })
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn promtool_accepts_rules_and_configuration_and_the_rules_fire_when_they_should() {
    let promtool = tool_or_skip!(Tool::Promtool);
    for arguments in [
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts_test.yaml"],
        ["check", "config", "prometheus.yaml"],
    ] {
        succeeds(
            Command::new(&promtool)
                .args(arguments)
                .current_dir(deploy("monitoring")),
        );
    }
}

#[test]
fn the_chart_is_accepted_and_refuses_what_cannot_work() {
    let helm = tool_or_skip!(Tool::Helm);
    let chart = deploy("helm/nimbus");
    succeeds(Command::new(&helm).arg("lint").arg("--strict").arg(&chart));
    let template = |values: &str| {
        let mut command = Command::new(&helm);
        command.arg("template").arg("test").arg(&chart);
        command.args(["--kube-version", "1.31.0"]);
        if !values.is_empty() {
            command.args(["--set", values]);
        }
        command
    };
    let text = succeeds(&mut template(""));
    for wanted in [
        "kind: StatefulSet",
        "runAsNonRoot: true",
        "readOnlyRootFilesystem: true",
        "allowPrivilegeEscalation: false",
        "path: /ready",
        "path: /live",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    assert!(!text.contains(":latest"), "{text}");
    let several = "replicas=3,database.host=db,database.existingSecret=db,keys.existingSecret=keys,\
                   ingress.enabled=true,serviceMonitor.enabled=true,networkPolicy.enabled=true";
    let text = succeeds(&mut template(several));
    for wanted in [
        "kind: PodDisruptionBudget",
        "kind: Ingress",
        "kind: ServiceMonitor",
        "kind: NetworkPolicy",
        "--keys=/etc/nimbus/keys",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    for (values, why) in [
        ("replicas=2", "database.host"),
        (
            "replicas=2,database.host=db,database.existingSecret=db",
            "keys.existingSecret",
        ),
        ("database.host=db", "database.existingSecret"),
    ] {
        let output = template(values).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(why),
            "{values}: {said}"
        );
    }
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}\n{said}");
    text
}

/// An exact version, not a name that moves.
fn is_pinned(image: &str) -> bool {
    let tag = image.rsplit_once(':').map(|(_, tag)| tag);
    tag.is_some_and(|tag| tag.chars().filter(char::is_ascii_digit).count() >= 3)
}

#[test]
fn images_are_pinned_and_run_without_root() {
    let compose = yaml("compose/compose.yaml");
    let services = compose["services"].as_object().unwrap();
    for wanted in [
        "nimbus-backend",
        "postgres",
        "minio",
        "valkey",
        "temporal",
        "temporal-ui",
        "loki",
        "grafana",
    ] {
        assert!(services.contains_key(wanted), "{wanted}");
    }
    for (name, service) in services {
        let image = service["image"].as_str().unwrap();
        assert!(
            is_pinned(image) || service["build"].is_object(),
            "{name}: {image}"
        );
        for port in service["ports"].as_array().into_iter().flatten() {
            let port = port.as_str().unwrap();
            assert!(
                port.starts_with("127.0.0.1:"),
                "{name} offers {port} to everybody"
            );
        }
        for secret in service["environment"].as_object().into_iter().flatten() {
            let (variable, value) = secret;
            let is_secret = variable.contains("PASS") || variable.contains("SECRET_KEY");
            let given = value.as_str().is_some_and(|value| value.starts_with("${"));
            assert!(!is_secret || given, "{name} has {variable} written down");
        }
    }
    let valkey = &services["valkey"];
    assert!(is_pinned(valkey["image"].as_str().unwrap()), "{valkey}");
    assert_eq!(
        valkey["ports"],
        serde_json::json!(["127.0.0.1:6379:6379"]),
        "at its usual port, for this machine alone"
    );
    let dockerfile = read("Dockerfile");
    for line in dockerfile.lines().filter(|line| line.starts_with("ARG ")) {
        let (_, image) = line.split_once('=').unwrap();
        assert!(is_pinned(image), "{line}");
    }
    let users: Vec<&str> = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("USER "))
        .collect();
    assert_eq!(users, ["10001:10001"]);
    let from = dockerfile.lines().filter(|line| line.starts_with("FROM "));
    for line in from {
        assert!(
            line.starts_with("FROM ${"),
            "{line} is not one of the pinned images"
        );
    }
}

#[test]
fn the_unit_delegates_control_groups_and_stops_in_order() {
    let unit = read("systemd/nimbus.service");
    for line in [
        "Delegate=cpu memory pids",
        "User=nimbus",
        "KillMode=mixed",
        "TimeoutStopSec=90s",
        "NIMBUS_LOGGING_FORMAT=json",
    ] {
        assert!(unit.contains(line), "{line}");
    }
}
