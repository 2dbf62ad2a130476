//! What of a recorded value may be known. Nothing that is marked as a secret is, at any depth, and no content of files.

use serde_json::{Value, json};

/// By this key the official format marks values that are not plain. The marks are its constants; whoever shows a
/// state needs no engine for it.
pub const SIGNATURE: &str = "4dabf18193072939515e22adb298388d";
pub const SECRET: &str = "1b47061264138c4ac30d75fd1eb44270";
const RESOURCE: &str = "5cf8f73096256a8f31e491e813e4eb8e";

/// A value without what is secret in it, at any depth.
pub fn shown(value: &Value) -> Value {
    match value {
        // Nothing of what is marked is shown, also where the mark is one that is not known here.
        Value::Object(entries) if entries.contains_key(SIGNATURE) => {
            match entries[SIGNATURE].as_str() {
                Some(RESOURCE) => json!({"kind": "resource", "urn": entries.get("urn")}),
                Some(SECRET) => json!({"secret": true}),
                _ if entries.contains_key("ciphertext") || entries.contains_key("plaintext") => {
                    json!({"secret": true})
                }
                _ => json!({"kind": "asset"}),
            }
        }
        Value::Object(entries) => entries
            .iter()
            .map(|(name, value)| (name.clone(), shown(value)))
            .collect(),
        Value::Array(items) => items.iter().map(shown).collect(),
        plain => plain.clone(),
    }
}
