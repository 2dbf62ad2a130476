//! Takes out of a record what may differ between two right runs: times, ids that providers draw at
//! random, and where on this machine things are. Nothing else is touched.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regex::Regex;
use serde_json::{Value, json};

use crate::case::Case;
use crate::side::Side;
use crate::tools::Tools;

/// A place in the script by which Nimbus starts programs.
const LAUNCHER: &str = "sdk:code";

pub(crate) struct Normal {
    /// Texts and what stands for them, the longest first.
    places: Vec<(String, String)>,
    /// Ids that engines draw at random.
    ids: BTreeMap<String, String>,
    outside: Regex,
    /// Warnings of the engines themselves, and what stands for each.
    warnings: Vec<(Regex, &'static str)>,
}

/// What each engine warns of in its own words. The names and reasons in them count.
const WARNINGS: [(&str, &str); 3] = [
    (
        r"^retrying \w+ due to on-error hook request \((\d+)/\d+\)$",
        "tries again: $1",
    ),
    (
        r"^trying again because an error hook asks for it \((\d+)\)$",
        "tries again: $1",
    ),
    (
        r#"(?s)^\w+ hook "(.+?)" failed: (.*)$"#,
        "hook $1 failed: $2",
    ),
];

impl Normal {
    pub(crate) fn new(case: &Case, side: &Side, tools: &Tools) -> Self {
        let mut places = vec![
            (side.root.display().to_string(), "<side>".to_owned()),
            (tools.node_sdk.display().to_string(), "<sdk>".to_owned()),
            (
                side.root
                    .parent()
                    .expect("a side is in a case's folder")
                    .display()
                    .to_string(),
                "<case>".to_owned(),
            ),
            // Names are shorter without what all have in common.
            (
                format!("urn:pulumi:dev::{}::", case.program),
                "::".to_owned(),
            ),
        ];
        if let Some(python) = &tools.python {
            let environment = python.ancestors().nth(2).expect("in <environment>/bin");
            places.push((environment.display().to_string(), "<python>".to_owned()));
        }
        Self {
            places,
            ids: BTreeMap::new(),
            outside: Regex::new(r"^project:///(?:\.\./)+.*?([^/#]+#.*)$").expect("it is valid"),
            warnings: WARNINGS
                .map(|(words, said)| (Regex::new(words).expect("it is valid"), said))
                .into(),
        }
    }

    /// Learns from a state the ids that engines draw. Each gets the name of its owner and a number.
    pub(crate) fn learn(&mut self, state: &Value) {
        for resource in state["deployment"]["resources"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let (Some(type_), Some(urn), Some(id)) = (
                resource["type"].as_str(),
                resource["urn"].as_str(),
                resource["id"].as_str(),
            ) else {
                continue;
            };
            let is_drawn = type_.starts_with("pulumi:providers:") || type_ == "pulumi:index:Stash";
            if !is_drawn || self.ids.contains_key(id) {
                continue;
            }
            let name = urn.rsplit("::").next().unwrap_or_default();
            let stem = format!("<{} {name} ", type_.rsplit(':').next().unwrap_or_default());
            let number = 1 + self
                .ids
                .values()
                .filter(|known| known.starts_with(&stem))
                .count();
            self.ids.insert(id.to_owned(), format!("{stem}{number}>"));
        }
    }

    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let places = self.places.iter().map(|(from, to)| (from, to));
        for (from, to) in places.chain(&self.ids) {
            if text.contains(from) {
                text = text.replace(from, to);
            }
        }
        text
    }

    /// A warning, in words that are the same for both engines.
    pub(crate) fn warning(&self, text: &str) -> String {
        let known = self.warnings.iter().find(|(words, _)| words.is_match(text));
        match known {
            Some((words, said)) => words.replace(text, *said).into_owned(),
            None => text.to_owned(),
        }
    }

    pub(crate) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| (self.text(key), self.value(value)));
                Value::Object(entries.collect())
            }
            other => other.clone(),
        }
    }

    /// A resource of a state: as it is, but with times and positions that can be compared.
    pub(crate) fn resource(&self, resource: &Value, since: Timestamp) -> Value {
        let mut resource = self.value(resource);
        let Some(entries) = resource.as_object_mut() else {
            return resource;
        };
        for key in ["created", "modified"] {
            if let Some(time) = entries.get_mut(key) {
                *time = age(time, since);
            }
        }
        // An SDK collects these while promises resolve, in whatever order they do.
        if let Some(Value::Array(dependencies)) = entries.get_mut("dependencies") {
            dependencies.sort_by_key(Value::to_string);
        }
        if let Some(Value::Object(mut properties)) = entries.remove("propertyDependencies") {
            for dependencies in properties.values_mut().filter_map(Value::as_array_mut) {
                dependencies.sort_by_key(Value::to_string);
            }
            // The official engine loses empty lists in a refresh, and nobody misses them.
            properties.retain(|_, dependencies| *dependencies != json!([]));
            if !properties.is_empty() {
                entries.insert("propertyDependencies".to_owned(), properties.into());
            }
        }
        if let Some(position) = entries.get("sourcePosition") {
            let position = self.position(position);
            entries.remove("sourcePosition");
            // What a program makes with a class of the SDK itself seems to come from whatever started
            // the program, which the official engine cannot name and Nimbus can.
            if position != LAUNCHER {
                entries.insert("sourcePosition".to_owned(), position.into());
            }
        }
        if let Some(Value::Array(frames)) = entries.get_mut("stackTrace") {
            let frames = frames
                .iter()
                .map(|frame| self.position(&frame["sourcePosition"]));
            // Each engine starts programs in its own way; what counts is the way through them.
            let own = frames.filter(|frame| frame != "-" && !frame.starts_with("sdk:"));
            let trace = own.collect::<Vec<_>>().join(" ").into();
            entries.insert("stackTrace".to_owned(), trace);
        }
        resource
    }

    /// Places in the program as they are. Places in an SDK by the name of the file alone: the official
    /// engine names the source that its authors had, this one the file that is installed.
    fn position(&self, position: &Value) -> String {
        let text = position.as_str().unwrap_or("-");
        match self.outside.captures(text) {
            Some(parts) => format!("sdk:{}", parts[1].split('.').next().unwrap_or_default()),
            None => text.trim_start_matches("project:///").to_owned(),
        }
    }
}

/// Whether a time is from this step or from an earlier one.
fn age(time: &Value, since: Timestamp) -> Value {
    let parsed = time
        .as_str()
        .and_then(|text| text.parse::<Timestamp>().ok());
    match parsed {
        Some(time) if time >= since => "<now>".into(),
        Some(_) => "<before>".into(),
        None => time.clone(),
    }
}
