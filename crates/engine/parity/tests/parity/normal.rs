//! Takes out of a record what may differ between two right runs: times, ids that providers draw at
//! random, and where on this machine things are. Nothing else is touched.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::case::Case;
use crate::side::Side;
use crate::tools::Tools;

pub(crate) struct Normal {
    /// Texts and what stands for them, the longest first.
    places: Vec<(String, String)>,
    /// Ids of provider resources, which engines draw at random.
    ids: BTreeMap<String, String>,
    random: Vec<(&'static str, &'static str)>,
    outside: Regex,
}

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
        let random = case.random.iter().map(|entry| {
            entry
                .rsplit_once('/')
                .expect("a random property is given as type/property")
        });
        Self {
            places,
            ids: BTreeMap::new(),
            random: random.collect(),
            outside: Regex::new(r"^project:///(?:\.\./)+.*?([^/#]+#.*)$").expect("it is valid"),
        }
    }

    /// Learns the ids of providers from a state. Each gets the name of its provider and a number.
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
            if !type_.starts_with("pulumi:providers:") || self.ids.contains_key(id) {
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

    pub(crate) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(entries) => {
                let mut entries: Map<_, _> = entries
                    .iter()
                    .map(|(key, value)| (self.text(key), self.value(value)))
                    .collect();
                self.hide_random(&mut entries);
                Value::Object(entries)
            }
            other => other.clone(),
        }
    }

    /// Hides what a provider made up, in anything that looks like a resource.
    fn hide_random(&self, entries: &mut Map<String, Value>) {
        let Some(type_) = entries
            .get("type")
            .and_then(Value::as_str)
            .map(str::to_owned)
        else {
            return;
        };
        for (_, property) in self.random.iter().filter(|(of, _)| *of == type_) {
            if let Some(id) = entries.get_mut("id").filter(|_| *property == "id") {
                *id = hidden(id);
            }
            for part in ["inputs", "outputs"] {
                let found = entries
                    .get_mut(part)
                    .and_then(|part| part.get_mut(property));
                if let Some(found) = found {
                    *found = hidden(found);
                }
            }
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
        if let Some(position) = entries.get_mut("sourcePosition") {
            *position = self.position(position).into();
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

/// What it was is not shown, but that it was something, and of which kind.
fn hidden(value: &Value) -> Value {
    match value {
        Value::String(text) if text.is_empty() => value.clone(),
        Value::String(_) => "<random>".into(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| match key.as_str() {
                "plaintext" => (key.clone(), "<random>".into()),
                _ => (key.clone(), value.clone()),
            })
            .collect(),
        other => other.clone(),
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
