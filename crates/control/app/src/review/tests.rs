use nimbus_orchestrator::RunEvent;
use serde_json::{Value, json};

use super::*;

fn fold(events: &[Value]) -> RunFold {
    let mut fold = RunFold::default();
    let plan = json!({"event": "plan", "at": "2026-01-01T00:00:00Z", "minutes": 1, "layers": [
        [{"unit": "network", "priority": 1, "decision": "run", "minutes": 1}],
        [{"unit": "database", "priority": 2, "decision": "run", "minutes": 1, "needs": ["network"]}],
    ]});
    for (seq, event) in std::iter::once(&plan).chain(events).enumerate() {
        let event: RunEvent = serde_json::from_value(event.clone()).unwrap();
        fold.apply(i64::try_from(seq).unwrap() + 1, &event);
    }
    fold
}

fn step(unit: &str, op: &str, type_: &str, name: &str, properties: Value) -> Value {
    json!({"event": "resource", "at": "2026-01-01T00:00:00Z", "unit": unit, "status": "planned",
        "op": op, "type": type_, "name": name, "urn": format!("urn:pulumi:s::p::{type_}::{name}"),
        "properties": properties})
}

#[test]
fn data_comes_before_deletes_replacements_open_networks_and_access() {
    let found = risks(&fold(&[
        step("network", "update", "aws:iam/role:Role", "r", json!([])),
        step(
            "network",
            "update",
            "aws:ec2/securityGroup:SecurityGroup",
            "sg",
            json!([{"path": "ingress[0].cidrBlocks[0]", "old": "\"10.0.0.0/8\"", "new": "\"0.0.0.0/0\""}]),
        ),
        step(
            "network",
            "update",
            "aws:ec2/securityGroup:SecurityGroup",
            "out",
            json!([{"path": "egress[0].cidrBlocks[0]", "new": "\"0.0.0.0/0\""}]),
        ),
        step("network", "delete", "aws:ec2/eip:Eip", "e", json!([])),
        step(
            "database",
            "replace",
            "aws:rds/instance:Instance",
            "orders",
            json!([{"path": "engine", "old": "\"a\"", "new": "\"b\"", "replaces": true}]),
        ),
        step(
            "database",
            "create-replacement",
            "aws:rds/instance:Instance",
            "orders",
            json!([]),
        ),
        step(
            "database",
            "create",
            "aws:ec2/eip:Eip",
            "f",
            json!([{"path": "x", "unknown": true}]),
        ),
    ]));
    let told: Vec<_> = found
        .iter()
        .map(|risk| {
            (
                risk.kind.as_str(),
                risk.unit.as_str(),
                risk.count,
                risk.reversible,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("data", "database", 1, false),
            ("delete", "network", 1, false),
            ("replace", "database", 1, false),
            ("public", "network", 1, true),
            ("access", "network", 3, true),
            ("unknown", "database", 1, true),
        ]
    );
    assert!(
        found[2].about.contains("Because of engine."),
        "{}",
        found[2].about
    );
}

#[test]
fn a_rollback_goes_from_the_last_layer_back_and_names_what_has_no_way_back() {
    let found = forecast(&fold(&[
        step("network", "update", "aws:ec2/vpc:Vpc", "v", json!([])),
        step("database", "delete", "aws:ec2/eip:Eip", "e", json!([])),
        step(
            "database",
            "replace",
            "aws:rds/instance:Instance",
            "orders",
            json!([]),
        ),
        step("database", "same", "aws:ec2/vpc:Vpc", "w", json!([])),
    ]));
    assert_eq!(found.units, ["database", "network"]);
    let steps: Vec<_> = found
        .one_way
        .iter()
        .map(|step| (step.name.as_str(), step.data))
        .collect();
    assert_eq!(steps, [("orders", true), ("e", false)]);
}
