//! What a step did, in a form in which two engines can be compared: how it ended, the events of each
//! resource, the calls that reached the provider, the state that is left, and what really exists.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::case::{Case, Step};
use crate::engine::Told;
use crate::normal::Normal;
use crate::side::Side;

/// Builds the record of one step.
pub(crate) struct Recorder<'a> {
    pub(crate) case: &'a Case,
    pub(crate) step: &'a Step,
    pub(crate) normal: &'a Normal,
    pub(crate) since: Timestamp,
}

impl Recorder<'_> {
    pub(crate) fn record(&self, told: &Told, state: &Value, side: &Side) -> Value {
        let mut record = json!({
            "end": if told.succeeded { "succeeds" } else { "fails" },
            "summary": self.summary(&told.events),
            "events": self.events(told),
            "messages": self.messages(told),
            "policies": self.policies(&told.events),
            "calls": self.calls(&side.take_calls()),
            "notes": self.normal.value(&json!(side.take_notes())),
            "state": self.state(state),
            "world": self.world(side),
        });
        // Compared as text, so keys have one order.
        record.sort_all_objects();
        record
    }

    fn summary(&self, events: &[Value]) -> Value {
        let summary = events.iter().find_map(|event| event.get("summaryEvent"));
        let Some(summary) = summary else {
            return Value::Null;
        };
        json!({
            "changes": summary["resourceChanges"],
            "isPreview": summary["isPreview"],
            "result": summary["result"],
        })
    }

    /// Steps by resource, or all in one list where there is only one possible order.
    fn events(&self, told: &Told) -> Value {
        let names = [
            ("resourcePreEvent", "begins"),
            ("resOutputsEvent", "ends"),
            ("resOpFailedEvent", "fails"),
        ];
        let mut stack_ended = false;
        let steps = told.events.iter().filter_map(|event| {
            let (metadata, word) = names
                .iter()
                .find_map(|(name, word)| Some((event.get(name)?.get("metadata")?, word)))?;
            if *word == "ends" && metadata["type"] == "pulumi:pulumi:Stack" && !told.succeeded {
                // Whether a program still gets to its outputs when something else has failed
                // is chance.
                if std::mem::replace(&mut stack_ended, true) {
                    return None;
                }
            }
            (!is_internal(metadata)).then(|| self.step(metadata, word))
        });
        self.group(steps.collect(), "urn")
    }

    fn step(&self, metadata: &Value, word: &str) -> Value {
        let mut step = self.normal.value(metadata);
        if let Some(entries) = step.as_object_mut() {
            entries.insert("is".to_owned(), word.into());
            forget_the_moment(entries, word == "ends" && metadata["op"] != "replace");
            entries.retain(|_, value| !value.is_null() && *value != "");
            for key in ["keys", "diffs"] {
                if let Some(Value::Array(names)) = entries.get_mut(key) {
                    *names = in_any_order(std::mem::take(names));
                }
            }
        }
        step
    }

    /// What was said, apart from debugging. Each engine has its own words for errors and a closing
    /// one of its own, so of errors only the resources count; and what a program prints to standard
    /// error is told apart by the official engine alone, and while it is ended is its own affair.
    fn messages(&self, told: &Told) -> Value {
        let said = told
            .events
            .iter()
            .filter_map(|event| event.get("diagnosticEvent"));
        let mut messages: Vec<_> = said
            .filter_map(|said| {
                let urn = self.normal.text(said["urn"].as_str().unwrap_or_default());
                let text = self
                    .normal
                    .text(said["message"].as_str().unwrap_or_default());
                match said["severity"].as_str()? {
                    "debug" => None,
                    "info" | "info#err" if !told.succeeded && urn.is_empty() => None,
                    "info#err" => Some(format!("info {urn}: {}", text.trim())),
                    "error" => (!urn.is_empty()).then(|| format!("error {urn}")),
                    "warning" => {
                        let text = self.normal.warning(text.trim());
                        Some(format!("warning {urn}: {text}"))
                    }
                    other => Some(format!("{other} {urn}: {}", text.trim())),
                }
            })
            .collect();
        messages.sort();
        messages.dedup();
        messages.into_iter().map(Value::String).collect()
    }

    /// What policy packs said, without the colours of each engine.
    fn policies(&self, events: &[Value]) -> Value {
        let mut said = Vec::new();
        for event in events {
            let violation = event.get("policyEvent").map(|event| ("violation", event));
            let remedy = event
                .get("policyRemediationEvent")
                .map(|event| ("remediation", event));
            let Some((word, event)) = violation.or(remedy) else {
                continue;
            };
            let text = |key: &str| self.normal.text(event[key].as_str().unwrap_or_default());
            let facts = [
                "policyName",
                "enforcementLevel",
                "policyPackVersion",
                "resourceUrn",
            ];
            let facts = facts.map(text).join(" ");
            said.push(format!("{word} {facts}"));
        }
        said.sort();
        said.into_iter().map(Value::String).collect()
    }

    fn calls(&self, log: &str) -> Value {
        let calls = log.lines().map(|line| {
            let mut call = serde_json::from_str(line).expect("the provider writes JSON");
            Value::sort_all_objects(&mut call);
            self.normal.value(&call)
        });
        let (unordered, mut calls): (Vec<_>, Vec<_>) = calls.partition(has_no_order);
        // The official engine starts every provider that the state names, Nimbus those that it has
        // something to ask. With a program they are the same, provided that something is asked.
        let all_count = self.step.runs_program() && !calls.is_empty();
        let invoked = |call: &Value| call["method"] == "invoke" || call["method"] == "call";
        let unordered = unordered
            .into_iter()
            .filter(|call| all_count || invoked(call));
        let mut unordered = in_any_order(unordered.collect());
        // One for each process. How many there are is an engine's own affair: Nimbus shares them.
        let is_handshake = |call: &Value| call["method"] == "handshake";
        unordered.dedup_by(|a, b| is_handshake(a) && is_handshake(b));
        calls.extend(unordered);
        self.group(calls, "urn")
    }

    fn group(&self, items: Vec<Value>, key: &str) -> Value {
        if self.case.ordered {
            return Value::Array(items);
        }
        let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for mut item in items {
            let owner = item.as_object_mut().and_then(|entries| entries.remove(key));
            let owner = owner.as_ref().and_then(Value::as_str).unwrap_or("-");
            groups.entry(owner.to_owned()).or_default().push(item);
        }
        json!(groups)
    }

    fn state(&self, state: &Value) -> Value {
        if state.is_null() {
            return Value::Null;
        }
        let deployment = &state["deployment"];
        let resources = deployment["resources"].as_array().into_iter().flatten();
        let mut resources: Vec<_> = resources
            .map(|resource| self.normal.resource(resource, self.since))
            .collect();
        if !self.case.ordered {
            // The order of what is independent is chance; that references come later is checked
            // by whichever engine reads the state next.
            resources.sort_by_key(|resource| {
                let text = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
                (text("urn"), resource["delete"] == true, text("id"))
            });
        }
        json!({
            "version": state["version"],
            "features": state["features"],
            "plugins": self.normal.value(&deployment["manifest"]["plugins"]),
            "secrets": deployment["secrets_providers"]["type"],
            "metadata": deployment["metadata"],
            "pending": self.normal.value(&deployment["pending_operations"]),
            "resources": resources,
        })
    }

    fn world(&self, side: &Side) -> Value {
        let things = side.things().into_iter().map(|(name, text)| {
            let content = serde_json::from_str(&text).unwrap_or(Value::String(text));
            (name, self.normal.value(&content))
        });
        Value::Object(things.collect())
    }
}

/// Calls about a provider itself, of functions and of methods: they are independent of each other, so their
/// order is chance.
fn has_no_order(call: &Value) -> bool {
    let method = call["method"].as_str().unwrap_or_default();
    matches!(
        method,
        "handshake"
            | "parameterize"
            | "checkConfig"
            | "diffConfig"
            | "configure"
            | "invoke"
            | "call"
    )
}

fn in_any_order(mut values: Vec<Value>) -> Vec<Value> {
    values.sort_by_key(Value::to_string);
    values
}

/// An event shows a resource as it is at that moment. In the official engine the steps of a
/// replacement share one record, so what is to be seen of it depends on which of them wrote last;
/// and Nimbus knows at the beginning of a step what the official engine fills in at its end. So the
/// outcome counts only where a step ends.
fn forget_the_moment(entries: &mut Map<String, Value>, has_outcome: bool) {
    if let Some(new) = entries.get_mut("new").and_then(Value::as_object_mut) {
        new.retain(|key, _| has_outcome || (key != "id" && key != "outputs"));
    }
    if let Some(old) = entries.get_mut("old").and_then(Value::as_object_mut) {
        old.remove("delete");
    }
    let op = entries
        .get("op")
        .and_then(Value::as_str)
        .unwrap_or_default();
    // What an import found is told twice by the official engine, as old and as new.
    if op == "import" {
        entries.remove("old");
    }
}

/// Steps that the official command line keeps from everybody who reads its events.
fn is_internal(metadata: &Value) -> bool {
    let urn = metadata["urn"].as_str().unwrap_or_default();
    let type_ = metadata["type"].as_str().unwrap_or_default();
    let name = urn.rsplit("::").next().unwrap_or_default();
    let default_provider = type_.starts_with("pulumi:providers:") && name.starts_with("default");
    let internal = ["remove-pending-replace", "extend-parameterize"];
    default_provider || internal.iter().any(|op| metadata["op"] == *op)
}

/// Whether the summary counts nothing but resources that stayed as they are.
pub(crate) fn is_unchanged(record: &Value) -> bool {
    let changes = record["summary"]["changes"].as_object();
    changes.is_some_and(|changes| changes.keys().all(|op| op == "same"))
}
