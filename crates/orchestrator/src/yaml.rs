//! Writing YAML that people read: block style, keys in order of the alphabet, quotes only where needed.
//!
//! It writes what `nimbus-document` reads; a property test holds the two together.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// A document of one mapping, with `header` lines as comments above it.
pub fn write(header: &[String], root: &Map<String, Value>) -> String {
    let mut text = String::new();
    for line in header {
        let _ = writeln!(text, "# {line}");
    }
    if root.is_empty() {
        text.push_str("{}\n");
    } else {
        mapping(&mut text, root, 0);
    }
    text
}

/// A single value on one line.
pub fn scalar(value: &Value) -> String {
    let mut text = String::new();
    inline(&mut text, value);
    text
}

fn mapping(text: &mut String, map: &Map<String, Value>, indent: usize) {
    // Whether a map keeps an order of its own depends on who else is in the build.
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    for (key, value) in entries {
        pad(text, indent);
        text.push_str(&scalar_text(key));
        text.push(':');
        after_key(text, value, indent);
    }
}

fn after_key(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            mapping(text, map, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            sequence(text, items, indent + 2);
        }
        scalar => {
            text.push(' ');
            inline(text, scalar);
            text.push('\n');
        }
    }
}

fn sequence(text: &mut String, items: &[Value], indent: usize) {
    for item in items {
        pad(text, indent);
        text.push('-');
        match item {
            Value::Object(map) if !map.is_empty() => {
                text.push('\n');
                mapping(text, map, indent + 2);
            }
            Value::Array(inner) if !inner.is_empty() => {
                text.push('\n');
                sequence(text, inner, indent + 2);
            }
            scalar => {
                text.push(' ');
                inline(text, scalar);
                text.push('\n');
            }
        }
    }
}

fn inline(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => {
            let _ = write!(text, "{value}");
        }
        Value::Number(number) => {
            let _ = write!(text, "{number}");
        }
        Value::String(string) => text.push_str(&scalar_text(string)),
        Value::Array(_) => text.push_str("[]"),
        Value::Object(_) => text.push_str("{}"),
    }
}

/// Plain where that cannot be misread, else double-quoted: JSON's escapes are YAML's too. JSON has
/// no need to escape DEL; YAML has.
fn scalar_text(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else {
        Value::from(text).to_string().replace('\u{7f}', "\\u007f")
    }
}

fn is_plain(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ' ');
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let reserved = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf",
    ];
    starts_well
        && text.chars().all(word)
        && !text.ends_with(' ')
        && !reserved
            .iter()
            .any(|reserved| reserved.eq_ignore_ascii_case(text))
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use nimbus_document::Document;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn it_reads_as_a_person_would_write_it() {
        let Value::Object(map) = json!({
            "name": "network",
            "cidr": "10.0.0.0/16",
            "account": "111111111111",
            "yes": "no",
            "zones": ["a", {"b": 1}],
            "none": null,
            "empty": {},
            "ref": "{{RUNTIME:network:vpcId}}",
        }) else {
            unreachable!()
        };
        let text = write(&["A comment".to_owned()], &map);
        let expected = r#"# A comment
account: "111111111111"
cidr: "10.0.0.0/16"
empty: {}
name: network
none: null
ref: "{{RUNTIME:network:vpcId}}"
"yes": "no"
zones:
  - a
  -
    b: 1
"#;
        assert_eq!(text, expected);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~äé\n\t\x7f]{0,12}".prop_map(Value::from),
            prop_oneof![
                "1e3",
                "0x1f",
                "~",
                "2001-01-01",
                "1_000",
                ".inf",
                "- a",
                "a: b",
                "#x"
            ]
            .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[ -~]{1,8}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in any_value()) {
            let map = Map::from_iter([("root".to_owned(), value)]);
            let text = write(&[], &map);
            let document = Document::parse("t.yaml", &text).map_err(|e| TestCaseError::fail(format!("{e:?}\n{text}")))?;
            prop_assert_eq!(document.to_json(document.root()).unwrap(), Value::Object(map), "{}", text);
        }
    }
}
