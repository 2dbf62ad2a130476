//! `--trace FILE`: the whole run as a tree that Perfetto and Chrome open.

use std::collections::BTreeMap;

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::Value;

use crate::support::Site;

struct TraceTree(Vec<Value>);

impl TraceTree {
    fn read(site: &Site, file: &str) -> Self {
        let text = std::fs::read_to_string(site.path(file)).unwrap();
        Self(serde_json::from_str(&text).unwrap())
    }

    fn named(&self, name: &str) -> Vec<&Value> {
        self.0
            .iter()
            .filter(|event| event["name"] == name)
            .collect()
    }

    fn parent(&self, event: &Value) -> Option<&Value> {
        let parent = &event["args"]["parent"];
        self.0
            .iter()
            .find(|one| !parent.is_null() && one["args"]["span"] == *parent)
    }

    /// Names from the root down to an event.
    fn path(&self, event: &Value) -> String {
        let name = event["name"].as_str().unwrap();
        match self.parent(event) {
            Some(parent) => format!("{} > {name}", self.path(parent)),
            None => name.to_owned(),
        }
    }

    /// How many spans there are at each path.
    fn shape(&self) -> BTreeMap<String, usize> {
        let mut shape = BTreeMap::new();
        for event in &self.0 {
            *shape.entry(self.path(event)).or_default() += 1;
        }
        shape
    }
}

#[test]
fn a_rehearsed_deploy_is_traced_from_the_run_to_the_provider_call() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let file = site.path("trace.json").display().to_string();
    site.rehearse("deploy", &["--json", "--trace", &file]).ok();
    let tree = TraceTree::read(&site, "trace.json");
    let shape = tree.shape();
    assert_eq!(shape["run"], 1, "{shape:?}");
    assert_eq!(shape["run > unit"], 2, "{shape:?}");
    assert_eq!(shape["run > unit > operation"], 2, "{shape:?}");
    for path in [
        "run > unit > operation > step",
        "run > unit > operation > step > provider_call",
        "run > unit > operation > provider_call",
    ] {
        assert!(shape.contains_key(path), "{path} is not in {shape:?}");
    }
    let stray: Vec<_> = shape
        .keys()
        .filter(|path| !path.starts_with("run"))
        .collect();
    assert!(stray.is_empty(), "outside of the run: {stray:?}");

    let run = &tree.named("run")[0]["args"];
    assert_eq!(run["run"], "R0001");
    assert_eq!(run["action"], "deploy");
    assert_eq!(run["units"], 2);
    assert_eq!(run["outcome"], "succeeded");
    let creates: Vec<_> = tree
        .named("provider_call")
        .into_iter()
        .filter(|call| call["args"]["method"] == "Create")
        .collect();
    assert!(!creates.is_empty());
    for create in creates {
        assert_eq!(create["args"]["outcome"], "ok");
        let step = tree.parent(create).unwrap();
        assert_eq!(step["args"]["op"], "create", "{step}");
    }
}

#[test]
fn a_failure_is_traced_with_its_cause_and_without_its_words() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::new(&sdk, &[("a", &[])]);
    let orders = site.orders(
        "orders: [{on: create, name: a-first, do: fail, message: 'VpcLimitExceeded: five are there'}]\n",
    );
    let file = site.path("trace.json").display().to_string();
    let ran = site.rehearse("deploy", &["--json", "--orders", &orders, "--trace", &file]);
    let summary = ran.with(1).summary();
    assert!(
        summary["trigger"].to_string().contains("limit"),
        "{summary}"
    );
    let tree = TraceTree::read(&site, "trace.json");
    let failed = |event: &&Value| event["args"]["outcome"] == "failed";
    let steps = tree.named("step");
    let step = steps.into_iter().find(failed).unwrap();
    assert_eq!(step["args"]["cause"], "service-limit");
    let unit = tree.named("unit").into_iter().find(failed).unwrap();
    assert_eq!(unit["args"]["component"], "a");
    let text = std::fs::read_to_string(site.path("trace.json")).unwrap();
    assert!(
        !text.contains("five are there"),
        "words are not part of a trace"
    );
    assert_eq!(tree.named("run")[0]["args"]["outcome"], "rolled_back");
}
