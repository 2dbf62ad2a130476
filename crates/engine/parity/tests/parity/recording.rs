//! What the official engine did, kept in the repository, so that every machine compares with it.
//!
//! A recording is text, a line for each fact, so that a change can be read in a review. It holds less
//! than a comparison of two live runs looks at: of events not the states they carry, of calls only
//! their names, of the state only what the step changed and nothing of where in the program it came
//! from. What is left out is said again by the state, or follows from it.
//!
//! Only a run with `NIMBUS_PARITY_RECORD=1` and the official command line writes recordings; every
//! other run with that command line checks them.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

use crate::case::Case;

/// The last record that has a state.
pub(crate) fn later(before: Option<Value>, record: Value) -> Option<Value> {
    if record["state"].is_null() {
        before
    } else {
        Some(record)
    }
}

/// The part of a record that is kept. `before` is the record of the last step that had a state.
pub(crate) fn digest(title: &str, record: &Value, before: Option<&Value>) -> String {
    let mut lines = vec![format!("== {title}"), end(record)];
    lines.extend(texts(&record["messages"]).map(|message| format!("says {message}")));
    lines.extend(texts(&record["policies"]).map(|said| format!("policy {said}")));
    lines.extend(grouped("event", &record["events"], event));
    lines.extend(grouped("call", &record["calls"], call));
    lines.extend(texts(&record["notes"]).map(|note| format!("note {note}")));
    if !record["state"].is_null() {
        lines.extend(changes(
            &record["state"],
            before.map(|before| &before["state"]),
        ));
        let things = record["world"].as_object().into_iter().flatten();
        let names: Vec<_> = things.map(|(name, _)| name.as_str()).collect();
        lines.push(format!("world {}", names.join(" ")).trim_end().to_owned());
    }
    lines.push(String::new());
    lines.join("\n") + "\n"
}

/// How it ended, and what the summary counts.
fn end(record: &Value) -> String {
    let mut line = record["end"].as_str().unwrap_or_default().to_owned();
    for (op, count) in record["summary"]["changes"]
        .as_object()
        .into_iter()
        .flatten()
    {
        line.push_str(&format!(" {op}={count}"));
    }
    line
}

/// A state without the resources that are as they were.
fn changes(state: &Value, before: Option<&Value>) -> Vec<String> {
    let resources = |state: &Value| -> Vec<Value> {
        let all = state["resources"].as_array().into_iter().flatten();
        all.map(essence).collect()
    };
    let known: Vec<_> = before.map(resources).unwrap_or_default();
    let known: Vec<_> = known.into_iter().map(aged).collect();
    let now = resources(state);
    let mut lines = Vec::new();
    for (key, value) in state.as_object().into_iter().flatten() {
        let is_usual = match key.as_str() {
            "resources" => true,
            "version" => *value == 3,
            "secrets" => *value == "passphrase",
            // Names what was loaded, which has its own lines.
            "plugins" => true,
            _ => is_empty(value),
        };
        if !is_usual {
            lines.push(format!("state {key} {value}"));
        }
    }
    let changed = now.iter().filter(|resource| !known.contains(resource));
    lines.extend(changed.map(|resource| {
        let mut rest = resource.clone();
        let urn = rest
            .as_object_mut()
            .and_then(|entries| entries.remove("urn"));
        let urn = urn.as_ref().and_then(Value::as_str).unwrap_or_default();
        format!("has {urn} {rest}")
    }));
    let gone = known.iter().filter(|resource| !now.contains(resource));
    let still = |urn: &Value| now.iter().any(|resource| resource["urn"] == *urn);
    lines.extend(
        gone.filter(|resource| !still(&resource["urn"]))
            .map(|resource| format!("lacks {}", resource["urn"].as_str().unwrap_or_default())),
    );
    lines
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    }
}

/// Texts longer than this are code of programs, which live comparisons look at.
const LONGEST_TEXT: usize = 200;

/// A resource without what its name says already and without where in the program it came from.
fn essence(resource: &Value) -> Value {
    let mut resource = shortened(resource);
    if let Some(entries) = resource.as_object_mut() {
        for key in ["type", "sourcePosition", "stackTrace"] {
            entries.remove(key);
        }
    }
    resource
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => "<long text>".into(),
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), shortened(value)))
            .collect(),
        other => other.clone(),
    }
}

/// A resource as it looks one step later.
fn aged(mut resource: Value) -> Value {
    for key in ["created", "modified"] {
        if resource[key] == "<now>" {
            resource[key] = "<before>".into();
        }
    }
    resource
}

/// Such as `begins update {"diffs":["label"]}`.
fn event(event: &Value) -> String {
    let mut rest = event.clone();
    if let Some(entries) = rest.as_object_mut() {
        entries.retain(|key, value| match key.as_str() {
            "is" | "op" | "old" | "new" | "type" | "provider" | "urn" => false,
            "logical" => value == false,
            _ => true,
        });
    }
    let word = |key: &str| event[key].as_str().unwrap_or_default();
    match rest.as_object() {
        Some(entries) if !entries.is_empty() => format!("{} {} {rest}", word("is"), word("op")),
        _ => format!("{} {}", word("is"), word("op")),
    }
}

fn call(call: &Value) -> String {
    call["method"].as_str().unwrap_or_default().to_owned()
}

/// A line for every item, or for everything about a resource where only that has an order.
fn grouped(word: &str, value: &Value, text: impl Fn(&Value) -> String) -> Vec<String> {
    let all = |items: &Value| -> Vec<String> {
        items.as_array().into_iter().flatten().map(&text).collect()
    };
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| {
                let urn = item["urn"].as_str().unwrap_or("-");
                format!("{word} {urn}: {}", text(item))
            })
            .collect(),
        Value::Object(groups) => groups
            .iter()
            .map(|(urn, items)| format!("{word} {urn}: {}", all(items).join(", ")))
            .collect(),
        _ => Vec::new(),
    }
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn file(case: &Case) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("recordings")
        .join(format!("{}.txt", case.program))
}

/// Whether the case was ever recorded.
pub(crate) fn exists(case: &Case) -> bool {
    file(case).exists()
}

/// Whether there is a recording to compare with, and nobody asked for a new one.
pub(crate) fn is_compared(case: &Case) -> bool {
    exists(case) && !is_asked_for(case)
}

fn is_asked_for(case: &Case) -> bool {
    case.records && env::var_os("NIMBUS_PARITY_RECORD").is_some()
}

/// The recorded steps, one text each.
pub(crate) fn read(case: &Case) -> Vec<String> {
    let file = file(case);
    let text = fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}; record the case", file.display()));
    let steps = text.split_inclusive("\n\n").map(str::to_owned);
    steps.collect()
}

/// After a live run: writes the recording if that was asked for, else checks it.
pub(crate) fn keep(case: &Case, steps: &[String]) {
    if is_asked_for(case) {
        let file = file(case);
        fs::create_dir_all(file.parent().expect("a file in a folder")).unwrap();
        fs::write(file, steps.concat()).unwrap();
        return;
    }
    if !exists(case) {
        return;
    }
    for (recorded, done) in read(case).iter().zip(steps) {
        assert!(
            recorded == done,
            "{}: the official engine does not do what was recorded; record again with \
             NIMBUS_PARITY_RECORD=1 and look at the difference\n{recorded}\nnow\n{done}",
            case.program
        );
    }
}
