//! Configuration values as YAML text.

use std::fmt::Write as _;

use nimbus_document::{Document, NodeKind};
use serde_json::Value;

use super::value::ConfigValue;

const STEP: usize = 2;

/// What stands behind a key's colon, the line break or blank before it included.
pub(super) fn after_key(value: &ConfigValue, key_indent: usize, newline: &str) -> String {
    let json = value.to_json();
    match inline(&json) {
        Some(text) => format!(" {text}"),
        None => format!("{newline}{}", block(&json, key_indent + STEP, newline)),
    }
}

/// One element of a list, from its dash on.
pub(super) fn item(value: &ConfigValue, dash_indent: usize, newline: &str) -> String {
    item_of(&value.to_json(), dash_indent, newline)
}

/// A text so that it reads back as the same text, as a key or as a value.
pub(super) fn scalar(text: &str) -> String {
    if is_safe_plain(text) {
        return text.to_owned();
    }
    // A JSON string is a double-quoted YAML scalar.
    Value::String(text.to_owned()).to_string()
}

/// Values that fit on the line of their key.
fn inline(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(scalar(text)),
        Value::Array(items) if !items.is_empty() => None,
        Value::Object(map) if !map.is_empty() => None,
        other => Some(other.to_string()),
    }
}

/// A list or mapping over several lines, without a line break at its end.
fn block(value: &Value, indent: usize, newline: &str) -> String {
    let pad = " ".repeat(indent);
    let lines: Vec<String> = match value {
        Value::Array(items) => {
            let items = items.iter();
            items
                .map(|value| format!("{pad}{}", item_of(value, indent, newline)))
                .collect()
        }
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| format!("{pad}{}", entry(key, value, indent, newline)))
            .collect(),
        scalar => vec![format!("{pad}{scalar}")],
    };
    lines.join(newline)
}

fn entry(key: &str, value: &Value, indent: usize, newline: &str) -> String {
    let mut text = format!("{}:", scalar(key));
    // Writing to a string cannot fail.
    let _ = match inline(value) {
        Some(value) => write!(text, " {value}"),
        None => write!(text, "{newline}{}", block(value, indent + STEP, newline)),
    };
    text
}

fn item_of(value: &Value, indent: usize, newline: &str) -> String {
    match inline(value) {
        Some(text) => format!("- {text}"),
        // The first line of a nested block goes on the dash's line.
        None => format!("- {}", block(value, indent + STEP, newline).trim_start()),
    }
}

fn is_safe_plain(text: &str) -> bool {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "_./:@+-=,".contains(c);
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "_/.".contains(c));
    starts_well
        && text.chars().all(harmless)
        && !text.ends_with(':')
        && !other_readers_disagree(text)
        && reads_as_text(text)
}

/// Dates, and words that were truth values in older YAML, mean something else to other readers.
fn other_readers_disagree(text: &str) -> bool {
    let date = text.len() >= 8
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.matches('-').count() >= 2;
    let words = ["y", "n", "yes", "no", "on", "off"];
    let sexagesimal = text.contains(':') && text.starts_with(|c: char| c.is_ascii_digit());
    date || sexagesimal || words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn reads_as_text(text: &str) -> bool {
    let document = Document::parse("value.yaml", &format!("key: {text}\n"));
    document.is_ok_and(|document| {
        let value = document.root().get("key");
        value.is_some_and(|node| matches!(&node.kind, NodeKind::String(read) if read == text))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read_back(text: &str) -> Value {
        let document = Document::parse("value.yaml", text).unwrap();
        document.to_json(document.root()).unwrap()
    }

    #[test]
    fn common_values_stay_readable() {
        for plain in [
            "t3.micro",
            "eu-west-1",
            "v1:AbC/+=:x",
            "a,b",
            "/etc/x",
            "10.0.0.0/16",
        ] {
            assert_eq!(scalar(plain), plain);
        }
        for quoted in [
            "",
            "3",
            "true",
            "null",
            "yes",
            "2024-01-02",
            "a: b",
            "# x",
            "1:30",
            "~",
        ] {
            assert!(scalar(quoted).starts_with('"'), "{quoted}");
        }
        let value = ConfigValue::from_json(&json!({"a": [1, {"b": "x"}], "c": {}, "d": [[1]]}));
        assert_eq!(
            after_key(&value, 2, "\n"),
            "\n    a:\n      - 1\n      - b: x\n    c: {}\n    d:\n      - - 1"
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~äß\n]{0,12}".prop_map(Value::from),
            "(yes|no|true|null|~|0x1f|1e3|2024-01-02|- a|a: b|#x|\\{\\}|secret)"
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ -~]{1,8}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_reads_back(json in any_json()) {
            let value = ConfigValue::from_json(&json);
            let text = format!("key:{}\n", after_key(&value, 0, "\n"));
            let read = read_back(&text);
            prop_assert_eq!(&read["key"], &value.to_json(), "{}", text);
            let list = format!("{}\n", item(&value, 0, "\n"));
            prop_assert_eq!(&read_back(&list)[0], &value.to_json(), "{}", list);
        }
    }
}
