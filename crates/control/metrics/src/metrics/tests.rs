use super::*;

#[test]
fn names_are_registered_once_and_counters_are_called_totals() {
    let metrics = Metrics::default();
    let mut names: Vec<&str> = metrics
        .names()
        .iter()
        .map(|metric| metric.name.as_str())
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name is registered twice");
    metrics.request("GET", "/api/v1/tenants/{tenant}", 200, Duration::ZERO);
    metrics.request("BREW", OTHER, 405, Duration::ZERO);
    let text = metrics.text();
    assert!(
        text.contains("# TYPE nimbus_http_requests counter"),
        "{text}"
    );
    assert!(
        text.contains(
            r#"nimbus_http_requests_total{method="GET",path="/api/v1/tenants/{tenant}",status="200"} 1"#
        ),
        "{text}"
    );
    assert!(text.contains(r#"method="other""#), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn what_is_under_way_is_counted_until_it_ends() {
    let metrics = Metrics::default();
    let one = metrics.request_begins();
    let two = metrics.request_begins();
    assert!(metrics.text().contains("nimbus_http_requests_in_flight 2"));
    drop((one, two));
    assert!(metrics.text().contains("nimbus_http_requests_in_flight 0"));
}

#[test]
fn entries_of_too_many_kinds_are_counted_together() {
    let metrics = Metrics::default();
    for number in 0..(MOST_ACTIONS + 10) {
        metrics.audit_event(&format!("kind{number}"), "thing");
    }
    let text = metrics.text();
    let series = text
        .lines()
        .filter(|line| line.starts_with("nimbus_audit_events_total"));
    assert_eq!(series.count(), MOST_ACTIONS + 1);
    let rest = r#"nimbus_audit_events_total{action="other",resource_type="other"} 10"#;
    assert!(text.contains(rest), "{text}");
}
