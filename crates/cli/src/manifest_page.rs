//! The reference of the files that people write, made from their schemas.

use std::fmt::Write as _;

use nimbus_orchestrator::schema;
use serde_json::Value;

/// The page and the schemas themselves.
pub(crate) fn documents() -> Vec<(String, String)> {
    let schemas = schema::all();
    let mut documents = vec![("manifest.md".to_owned(), page(&schemas))];
    documents.extend(
        schemas
            .iter()
            .map(|(name, schema)| (format!("schemas/{name}"), format!("{schema:#}\n"))),
    );
    documents
}

const INTRODUCTION: &str = "# Manifest, templates and init files\n\n\
    Generated from the code; `cargo xtask tidy` checks that it is current. `nimbus new` writes the schemas to \
    `tools/schemas/` of a workspace, and the files it makes name them in their first line, so that editors complete \
    and check while you type.\n\n\
    Values of a configuration may be placeholders, which are filled in when a unit runs:\n\n\
    | Placeholder | Value |\n|---|---|\n\
    | `{{RUNTIME:<stack>:<output>}}` | An output of another stack of the same deployment and environment; makes it a dependency |\n\
    | `{{RUNTIME:aws:latestAmiId:<name>}}` | Newest image: `amazonLinux2`, `amazonLinux2023` (each also with `Arm64`), `ubuntu2204`, `ubuntu2404`, `debian12`, `windows2022`, or `OWNER/NAME-PATTERN` |\n\
    | `{{RUNTIME:aws:availabilityZones[:<count>]}}` | Zones of the region |\n\
    | `{{RUNTIME:aws:ssmParameter:<name>}}` | A parameter; an encrypted one is secret |\n\
    | `{{RUNTIME:aws:secret:<name or ARN>[#<member>]}}` | A secret of Secrets Manager, or one member of it |\n\
    | `{{RUNTIME:calculate:subnets:<network>:<prefix>:<count>}}` | The first networks of that size, IPv4 or IPv6 |\n\
    | `{{RUNTIME:calculate:timestamp[:<name>]}}` | Time of the first deploy, or of the plan that it is held to |\n\
    | `{{RUNTIME:calculate:password[:<length>[:<name>]]}}` | A secret of 8 to 256 characters |\n\
    | `{{RUNTIME:calculate:uuid[:<name>]}}` | A random UUID |\n\
    | `{{RUNTIME:<resolver>:<output>:<input>=<value>[:…]}}` | An answer of `ipam`, `naming`, `image_catalog` or `secret`; `nimbus resolver list` shows inputs and outputs |\n\
    | `{{RUNTIME:env:<variable>}}` | A variable of the process's environment |\n\n\
    A default follows `|`: `{{RUNTIME:env:OWNER|nobody}}`. The last word `secret` makes the value a secret: \
    `{{RUNTIME:env:TOKEN|secret}}`. Placeholders stand inside texts and inside each other. What was made up once stays the \
    same until `nimbus rotate`.\n\n\
    `{secret: NAME}` in the place of a value is a secret of the deployment, which `nimbus secret set` keeps encrypted beside \
    the manifest.\n";

fn page(schemas: &[(&str, Value)]) -> String {
    let mut page = INTRODUCTION.to_owned();
    for (name, schema) in schemas {
        let _ = write!(page, "\n## {}\n", text(schema, "title"));
        let _ = write!(
            page,
            "\n{}\nSchema: [`{name}`](schemas/{name}).\n",
            paragraph(schema)
        );
        table(&mut page, schema);
        let definitions = schema.get("$defs").and_then(Value::as_object);
        for (name, definition) in definitions.into_iter().flatten() {
            if definition.get("properties").is_some() {
                let _ = write!(page, "\n### {name}\n\n{}", paragraph(definition));
                table(&mut page, definition);
            }
        }
    }
    page
}

fn paragraph(schema: &Value) -> String {
    match text(schema, "description") {
        "" => String::new(),
        description => format!("{}\n", one_line(description)),
    }
}

fn table(page: &mut String, schema: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    page.push_str("\n| Key | Type | |\n|---|---|---|\n");
    for (key, property) in properties {
        let must = if required.contains(&key.as_str()) {
            " (required)"
        } else {
            ""
        };
        let about = one_line(text(property, "description")).replace('|', "\\|");
        let _ = writeln!(page, "| `{key}`{must} | {} | {about} |", kind(property));
    }
}

/// The type in a few words; other tables are named.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(constant) = schema.get("const") {
        return format!("`{}`", constant.as_str().unwrap_or_default());
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let kinds: Vec<String> = choices
            .iter()
            .map(kind)
            .filter(|kind| kind != "nothing")
            .collect();
        return kinds.join(" or ");
    }
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return "anything".to_owned(),
    };
    let name = names
        .into_iter()
        .find(|name| *name != "null")
        .unwrap_or("nothing");
    match name {
        "array" => format!(
            "list of {}",
            schema.get("items").map_or_else(String::new, kind)
        ),
        "object" => match schema.get("additionalProperties") {
            Some(inner @ Value::Object(_)) => format!("mapping to {}", kind(inner)),
            _ => "mapping".to_owned(),
        },
        "string" => match schema.get("pattern").and_then(Value::as_str) {
            Some(pattern) => format!("text `{}`", pattern.replace('|', "\\|")),
            None => "text".to_owned(),
        },
        "boolean" => "true or false".to_owned(),
        "integer" => "whole number".to_owned(),
        other => other.to_owned(),
    }
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_manifest_is_in_the_page() {
        let page = page(&schema::all());
        for key in [
            "`deploymentId` (required)",
            "`environments` (required)",
            "`allStacks`",
            "list of text",
        ] {
            assert!(page.contains(key), "{key}: {page}");
        }
        assert!(
            !page.contains("anything |  |"),
            "a key has neither type nor description"
        );
    }
}
