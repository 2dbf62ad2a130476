//! The JSON Schema of `config/nimbus.yaml`, for editors.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::load::children;
use crate::settings::{REGISTRY, SECTIONS, Settings};

/// The schema in draft 2020-12. It refuses what loading refuses, except values that only their
/// type can judge, such as addresses.
pub fn json_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = object_schema("", &mut generator);
    schema.insert(
        "$schema".into(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    schema.insert("title".into(), "Nimbus configuration".into());
    Value::Object(schema)
}

fn object_schema(prefix: &str, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let properties: Map<String, Value> = children(prefix)
        .into_iter()
        .map(|key| {
            let path = if prefix.is_empty() {
                key.to_owned()
            } else {
                format!("{prefix}.{key}")
            };
            (key.to_owned(), node_schema(&path, generator))
        })
        .collect();
    let mut object = Map::new();
    // A section whose keys are all commented out is null.
    object.insert("type".into(), json!(["object", "null"]));
    object.insert("properties".into(), Value::Object(properties));
    object.insert("additionalProperties".into(), false.into());
    object
}

fn node_schema(path: &str, generator: &mut SchemaGenerator) -> Value {
    let Some(index) = REGISTRY
        .iter()
        .position(|descriptor| descriptor.path == path)
    else {
        let mut section = object_schema(path, generator);
        if let Some((_, doc)) = SECTIONS.iter().find(|(section, _)| *section == path) {
            let lines: Vec<_> = doc.iter().map(|line| line.trim()).collect();
            section.insert("description".into(), lines.join(" ").into());
        }
        return Value::Object(section);
    };
    let descriptor = &REGISTRY[index];
    let mut schema = (descriptor.schema)(generator);
    schema.insert("description".into(), descriptor.doc().into());
    // Numbers are ports, sizes and times: zero is refused by all of them.
    if schema.get("minimum").is_some() {
        schema.insert("minimum".into(), 1.into());
    }
    let default = Settings::default().entries().swap_remove(index).value;
    if !default.is_null() {
        schema.insert("default".into(), default);
    }
    schema.to_value()
}
