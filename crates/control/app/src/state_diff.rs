//! What differs between two states, resource by resource and property by property. Pure, on the official format; nothing of
//! a secret is in the answer but that it changed.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use nimbus_control_cmdb::{SIGNATURE, shown};
use nimbus_control_wire::{PropertyRow, ResourceDifference};
use serde_json::Value;

/// A value that is shown is cut after so many characters; the export has it whole.
const MOST_SHOWN: usize = 4000;
/// Lists and objects are compared down to here, and as a whole below.
const DEEPEST: usize = 12;
/// Recorded beside inputs and outputs, and worth telling when it changes.
const FACTS: &[&str] = &["id", "parent", "provider", "protect", "external", "delete"];

/// Resources that are not the same in both, and how many are. Of states in the export form.
pub(crate) fn difference(old: &Value, new: &Value) -> (Vec<ResourceDifference>, u64) {
    let (old, new) = (by_key(old), by_key(new));
    let mut found = Vec::new();
    let mut same = 0;
    for (key, resource) in &new {
        let before = old.get(key).copied();
        if before == Some(*resource) {
            same += 1;
            continue;
        }
        let rows = properties(before, Some(*resource));
        if rows.is_empty() && before.is_some() {
            // Only what nobody asks for is different, such as when it was last looked at.
            same += 1;
            continue;
        }
        let op = if before.is_some() { "update" } else { "create" };
        found.push(described(resource, op, rows));
    }
    for (key, resource) in &old {
        if !new.contains_key(key) {
            let rows = properties(Some(*resource), None);
            found.push(described(resource, "delete", rows));
        }
    }
    (found, same)
}

/// By URN and by how many of the same came before it: an old one may wait for its delete.
fn by_key(state: &Value) -> IndexMap<(&str, usize), &Value> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let list = state["deployment"]["resources"].as_array();
    let mut found = IndexMap::new();
    for resource in list.into_iter().flatten() {
        let urn = resource["urn"].as_str().unwrap_or_default();
        let number = seen.entry(urn).or_default();
        found.insert((urn, *number), resource);
        *number += 1;
    }
    found
}

fn described(resource: &Value, op: &str, properties: Vec<PropertyRow>) -> ResourceDifference {
    let text = |name: &str| resource[name].as_str().unwrap_or_default().to_owned();
    let urn = text("urn");
    ResourceDifference {
        name: urn.rsplit("::").next().unwrap_or_default().to_owned(),
        type_: text("type"),
        urn,
        op: op.to_owned(),
        properties,
    }
}

fn properties(old: Option<&Value>, new: Option<&Value>) -> Vec<PropertyRow> {
    let mut rows = Vec::new();
    let side =
        |state: Option<&'_ Value>, name: &str| state.and_then(|state| state.get(name)).cloned();
    for part in ["inputs", "outputs"] {
        let (before, after) = (side(old, part), side(new, part));
        compare(part, before.as_ref(), after.as_ref(), 0, &mut rows);
    }
    // What a program gives and gets back the same is told once.
    let inputs: Vec<PropertyRow> = rows
        .iter()
        .filter(|row| row.path.starts_with("inputs."))
        .cloned()
        .collect();
    rows.retain(|row| {
        let Some(name) = row.path.strip_prefix("outputs.") else {
            return true;
        };
        !inputs.iter().any(|input| {
            input.path.strip_prefix("inputs.") == Some(name)
                && (&input.old, &input.new, input.secret) == (&row.old, &row.new, row.secret)
        })
    });
    for name in FACTS {
        // Of what comes or goes it says nothing that the tree does not say.
        if (old.is_none() || new.is_none()) && matches!(*name, "parent" | "provider") {
            continue;
        }
        compare(
            name,
            side(old, name).as_ref(),
            side(new, name).as_ref(),
            0,
            &mut rows,
        );
    }
    for row in &mut rows {
        if let Some(rest) = row.path.strip_prefix("inputs.") {
            row.path = rest.to_owned();
        }
    }
    rows
}

fn is_marked(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|entries| entries.contains_key(SIGNATURE))
}

fn compare(
    path: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    depth: usize,
    rows: &mut Vec<PropertyRow>,
) {
    if old == new {
        return;
    }
    let whole = depth >= DEEPEST || [old, new].into_iter().flatten().any(is_marked);
    match (old, new) {
        (Some(Value::Object(before)), Some(Value::Object(after))) if !whole => {
            for name in before.keys() {
                let path = format!("{path}.{name}");
                compare(&path, before.get(name), after.get(name), depth + 1, rows);
            }
            for name in after.keys().filter(|name| !before.contains_key(*name)) {
                let path = format!("{path}.{name}");
                compare(&path, None, after.get(name), depth + 1, rows);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if !whole => {
            for number in 0..before.len().max(after.len()) {
                let path = format!("{path}[{number}]");
                let (one, other) = (before.get(number), after.get(number));
                compare(&path, one, other, depth + 1, rows);
            }
        }
        // What is there on one side only is told by its parts, so that each has a line.
        (None, Some(Value::Object(after))) if !whole && depth == 0 => {
            for (name, value) in after {
                compare(&format!("{path}.{name}"), None, Some(value), 1, rows);
            }
        }
        (Some(Value::Object(before)), None) if !whole && depth == 0 => {
            for (name, value) in before {
                compare(&format!("{path}.{name}"), Some(value), None, 1, rows);
            }
        }
        (old, new) => rows.push(PropertyRow {
            path: path.to_owned(),
            secret: [old, new]
                .into_iter()
                .flatten()
                .any(|value| is_secret(&shown(value))),
            old: old.map(text),
            new: new.map(text),
            unknown: false,
            replaces: false,
        }),
    }
}

fn is_secret(shown: &Value) -> bool {
    shown["secret"] == true
}

/// As JSON, without what is secret, and not without end.
fn text(value: &Value) -> String {
    let value = shown(value);
    if is_secret(&value) {
        return "\"[secret]\"".to_owned();
    }
    let text = value.to_string();
    match text.char_indices().nth(MOST_SHOWN) {
        None => text,
        Some((end, _)) => format!("{} … ({} bytes)", &text[..end], text.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use nimbus_control_cmdb::SECRET;

    fn state(resources: Value) -> Value {
        json!({"version": 3, "deployment": {"resources": resources}})
    }

    fn one(name: &str, more: Value) -> Value {
        let mut resource = json!({"urn": format!("urn:pulumi:s::p::t::{name}"), "type": "t"});
        for (key, value) in more.as_object().unwrap() {
            resource[key] = value.clone();
        }
        resource
    }

    #[test]
    fn what_is_added_removed_and_changed_is_told_by_its_properties() {
        let old = state(json!([
            one("kept", json!({"inputs": {"a": 1}})),
            one("gone", json!({"inputs": {"a": 1}, "id": "i-1"})),
            one(
                "changed",
                json!({"inputs": {"tags": {"team": "shop"}, "list": [1, 2]}, "outputs": {"tags": {"team": "shop"}, "arn": "x"}})
            ),
        ]));
        let new = state(json!([
            one("kept", json!({"inputs": {"a": 1}})),
            one(
                "changed",
                json!({"inputs": {"tags": {"team": "orders"}, "list": [1, 3]}, "outputs": {"tags": {"team": "orders"}, "arn": "y"}})
            ),
            one("added", json!({"inputs": {"size": 3}, "protect": true})),
        ]));
        let (found, same) = difference(&old, &new);
        assert_eq!(same, 1);
        let told: Vec<_> = found
            .iter()
            .map(|one| {
                let rows = one.properties.iter();
                let rows: Vec<_> = rows.map(|row| row.path.as_str()).collect();
                (one.name.as_str(), one.op.as_str(), rows)
            })
            .collect();
        // The same change of an input and of the output that follows from it is one line.
        assert_eq!(
            told,
            [
                (
                    "changed",
                    "update",
                    vec!["tags.team", "list[1]", "outputs.arn"]
                ),
                ("added", "create", vec!["size", "protect"]),
                ("gone", "delete", vec!["a", "id"]),
            ]
        );
        let team = &found[0].properties[0];
        assert_eq!(
            (team.old.as_deref(), team.new.as_deref()),
            (Some("\"shop\""), Some("\"orders\""))
        );
    }

    #[test]
    fn of_a_secret_only_that_it_changed_is_told() {
        let secret = |cipher: &str| json!({SIGNATURE: SECRET, "ciphertext": cipher});
        let old = state(json!([one(
            "db",
            json!({"inputs": {"password": secret("v1:one")}})
        )]));
        let new = state(json!([one(
            "db",
            json!({"inputs": {"password": secret("v1:two")}})
        )]));
        let (found, _) = difference(&old, &new);
        let row = &found[0].properties[0];
        assert!(row.secret);
        let told = serde_json::to_string(&found).unwrap();
        assert!(!told.contains("v1:") && told.contains("secret"), "{told}");
        // From nothing to a secret, deep inside.
        let plain = state(json!([one(
            "db",
            json!({"inputs": {"deep": [{"x": "was plain"}]}})
        )]));
        let hidden = state(json!([one(
            "db",
            json!({"inputs": {"deep": [{"x": secret("v1:z")}]}})
        )]));
        let (found, _) = difference(&plain, &hidden);
        assert!(found[0].properties[0].secret);
        assert!(!serde_json::to_string(&found).unwrap().contains("v1:z"));
    }

    #[test]
    fn a_resource_and_its_old_one_that_waits_for_its_delete_are_two() {
        let old = state(json!([one("x", json!({"id": "1"}))]));
        let new = state(json!([
            one("x", json!({"id": "2"})),
            one("x", json!({"id": "1", "delete": true}))
        ]));
        let (found, same) = difference(&old, &new);
        assert_eq!((found.len(), same), (2, 0));
        assert_eq!(found[1].op, "create");
    }
}
