//! What a run said of stacks and of resources.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// How each stack ended.
pub(crate) struct Statuses(pub(crate) BTreeMap<String, String>);

impl Statuses {
    /// From the last event of a run, which sums it up.
    pub(crate) fn read(stdout: &str) -> Self {
        let last = stdout.lines().last().unwrap_or_default();
        let summary: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{stdout}"));
        let units = summary["units"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let status = |unit: &Value| (text(&unit["name"]), text(&unit["status"]));
        Self(units.iter().map(status).collect())
    }

    pub(crate) fn with(&self, wanted: &str) -> BTreeSet<&str> {
        let all = self.0.iter();
        all.filter(|(_, status)| *status == wanted)
            .map(|(stack, _)| stack.as_str())
            .collect()
    }
}

/// What was done to resources, in the order in which it was written down.
pub(crate) struct ResourceSteps(Vec<Value>);

impl ResourceSteps {
    pub(crate) fn read(stdout: &str) -> Self {
        let lines = stdout.lines().map(serde_json::from_str::<Value>);
        let steps = lines
            .filter_map(Result::ok)
            .filter(|event| event["event"] == "resource");
        Self(steps.collect())
    }

    /// Position of an event of one resource.
    pub(crate) fn position(&self, name: &str, kind: &str, status: &str) -> usize {
        let found = self.0.iter().position(|event| {
            event["name"] == name
                && event["status"] == status
                && event["type"].as_str().is_some_and(|t| t.ends_with(kind))
        });
        found.unwrap_or_else(|| panic!("no {kind} {name} {status}"))
    }

    /// One resource was finished before the other was begun.
    pub(crate) fn assert_before(&self, first: (&str, &str), second: (&str, &str)) {
        let (done, begun) = (
            self.position(first.0, first.1, "done"),
            self.position(second.0, second.1, "started"),
        );
        assert!(done < begun, "{first:?} must be done before {second:?}");
    }

    /// Resources of these types with which something else was done than make, change and read.
    pub(crate) fn losses(&self, types: &[&str]) -> BTreeSet<String> {
        let lost = self.0.iter().filter_map(|event| {
            let text = |key: &str| event[key].as_str().unwrap_or_default();
            let counts = types.iter().any(|kind| text("type").ends_with(kind))
                && (text("op").contains("replace") || text("op").contains("delete"));
            counts.then(|| format!("{} {}", text("op"), text("name")))
        });
        lost.collect()
    }

    /// Everything was deleted after all that needed it; `needs` is what was recorded before.
    pub(crate) fn assert_deleted_in_order(&self, needs: &BTreeMap<String, BTreeSet<String>>) {
        let at = |urn: &str, status: &str| {
            self.0
                .iter()
                .position(|event| event["urn"] == urn && event["status"] == status)
        };
        let mut compared = 0;
        for (user, needed) in needs {
            for needed in needed {
                if let (Some(gone), Some(begun)) = (at(user, "done"), at(needed, "started")) {
                    assert!(gone < begun, "{user} must be gone before {needed}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 50, "only {compared} orders could be compared");
    }

    /// The last step of one stack is before the first of the other.
    pub(crate) fn assert_stack_before(&self, first: &str, second: &str) {
        let last = self.0.iter().rposition(|event| event["unit"] == first);
        let begun = self.0.iter().position(|event| event["unit"] == second);
        let (last, begun) = (last.unwrap(), begun.unwrap());
        assert!(last < begun, "{first} must be gone before {second}");
    }
}

/// What holds data, or what others know by its name or address.
pub(crate) const STATEFUL: &[&str] = &[
    ":Vpc",
    ":Subnet",
    "rds/instance:Instance",
    "rds/cluster:Cluster",
    "rds/proxy:Proxy",
    "dynamodb/table:Table",
    ":ReplicationGroup",
    ":LoadBalancer",
    ":Bucket",
    ":FileSystem",
    "efs/accessPoint:AccessPoint",
    "kms/key:Key",
    ":Secret",
    ":UserPool",
    ":Repository",
    "eks/cluster:Cluster",
    "ecs/cluster:Cluster",
    ":Zone",
    ":Queue",
    "apigatewayv2/api:Api",
];
