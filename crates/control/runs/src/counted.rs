//! What runs come to, as numbers for whoever runs the server.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use nimbus_control_metrics::{Metrics, OTHER, known_word};
use nimbus_control_store::RunEnd;
use nimbus_orchestrator::{ResourceStatus, RunEvent};

const ACTIONS: &[&str] = &["deploy", "destroy", "preview", "rollback", "refresh"];
const RESULTS: &[&str] = &[
    "succeeded",
    "failed",
    "interrupted",
    "rolled_back",
    "needs_attention",
];
/// What a unit can end with.
const UNIT_ENDS: &[&str] = &[
    "succeeded",
    "skipped",
    "failed",
    "not_started",
    "rolled_back",
];
const STEPS: &[&str] = &[
    "same",
    "create",
    "update",
    "delete",
    "replace",
    "create-replacement",
    "delete-replaced",
    "read",
    "refresh",
    "import",
];

/// Counts a run whose row was left like this. One that is paused, or goes on elsewhere, did not end.
pub(crate) fn count_end(metrics: &Metrics, action: &str, end: &RunEnd, took: Duration) {
    if let ("ended", Some(result)) = (end.status, end.result.as_deref()) {
        let (action, result) = (known_word(action, ACTIONS), known_word(result, RESULTS));
        metrics.run_ended(action, result, took);
    }
}

/// Counts what ended, once it is recorded.
pub(crate) fn count(metrics: &Metrics, events: &[RunEvent]) {
    for event in events {
        match event {
            RunEvent::Unit {
                unit,
                status,
                seconds,
                ..
            } if UNIT_ENDS.contains(&status.as_str()) => {
                let status = known_word(status, UNIT_ENDS);
                metrics.unit_ended(status, shipped_stack(unit.as_str()), *seconds);
            }
            RunEvent::Resource { status, op, .. } => {
                let outcome = match status {
                    ResourceStatus::Done => "done",
                    ResourceStatus::Failed => "failed",
                    ResourceStatus::Planned | ResourceStatus::Started => continue,
                };
                metrics.resource_step(known_word(op, STEPS), outcome);
            }
            RunEvent::Unit { .. }
            | RunEvent::Run { .. }
            | RunEvent::Plan { .. }
            | RunEvent::Check { .. }
            | RunEvent::Diagnostic { .. } => {}
        }
    }
}

/// Stacks of the shipped library by name, and those of tenants together: names of tenants' things are theirs.
fn shipped_stack(unit: &str) -> &'static str {
    static SHIPPED: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    let shipped = SHIPPED.get_or_init(|| {
        let name = |(path, _): &(&'static str, _)| path.strip_prefix("stacks/")?.split('/').next();
        nimbus_library::files().iter().filter_map(name).collect()
    });
    shipped.get(unit).copied().unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nimbus_core::ComponentName;

    use super::*;

    fn unit(name: &str, status: &str) -> RunEvent {
        RunEvent::Unit {
            at: String::new(),
            unit: name.parse::<ComponentName>().unwrap(),
            status: status.to_owned(),
            message: None,
            reason: None,
            seconds: Some(3),
            changes: BTreeMap::new(),
            attention: false,
            open_creates: false,
        }
    }

    fn step(op: &str, status: ResourceStatus) -> RunEvent {
        RunEvent::Resource {
            at: String::new(),
            unit: "network".parse::<ComponentName>().unwrap(),
            status,
            op: op.to_owned(),
            type_: "aws:ec2/vpc:Vpc".to_owned(),
            name: "vpc".to_owned(),
            urn: "urn:pulumi:dev::p::aws:ec2/vpc:Vpc::vpc".to_owned(),
            id: None,
            seconds: None,
            properties: Vec::new(),
        }
    }

    #[test]
    fn a_run_is_counted_by_what_it_did_and_what_it_came_to() {
        let metrics = Metrics::default();
        let end = |status: &'static str, result: Option<&str>| RunEnd {
            status,
            wish: None,
            result: result.map(str::to_owned),
            problem: None,
        };
        let took = Duration::from_secs(90);
        count_end(&metrics, "deploy", &end("ended", Some("succeeded")), took);
        count_end(&metrics, "deploy", &end("ended", Some("failed")), took);
        count_end(
            &metrics,
            "deploy",
            &end("paused", Some("interrupted")),
            took,
        );
        count_end(&metrics, "destroy", &end("running", None), took);
        let text = metrics.text();
        for line in [
            r#"nimbus_runs_total{action="deploy",result="succeeded"} 1"#,
            r#"nimbus_runs_total{action="deploy",result="failed"} 1"#,
            r#"nimbus_run_duration_seconds_sum{action="deploy"} 180.0"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(
            !text.contains("interrupted") && !text.contains("destroy"),
            "{text}"
        );
    }

    #[test]
    fn ends_are_counted_and_tenants_own_names_are_not_told() {
        let metrics = Metrics::default();
        count(
            &metrics,
            &[
                unit("network", "running"),
                unit("network", "succeeded"),
                unit("acme-secret-project", "skipped"),
                step("create", ResourceStatus::Started),
                step("create", ResourceStatus::Done),
                step("create", ResourceStatus::Failed),
                step("hack", ResourceStatus::Done),
            ],
        );
        let text = metrics.text();
        for line in [
            r#"nimbus_units_total{status="succeeded"} 1"#,
            r#"nimbus_units_total{status="skipped"} 1"#,
            r#"nimbus_unit_duration_seconds_count{stack="network"} 1"#,
            r#"nimbus_unit_duration_seconds_count{stack="other"} 1"#,
            r#"nimbus_resource_operations_total{operation="create",outcome="done"} 1"#,
            r#"nimbus_resource_operations_total{operation="create",outcome="failed"} 1"#,
            r#"nimbus_resource_operations_total{operation="other",outcome="done"} 1"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("acme") && !text.contains("hack"), "{text}");
    }
}
