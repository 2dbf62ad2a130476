//! How much of a resource an item keeps: an inventory is read in lists, so one item is never as large as a state.
//!
//! Nothing is left out in silence: what an item does not have is named in it.

use nimbus_control_audit::redact;
use nimbus_core::printable;
use serde_json::{Map, Value};

use crate::shown::shown;

/// The longest text of one value.
const LONGEST_TEXT: usize = 2000;
/// The largest attribute, as JSON.
const LARGEST_ATTRIBUTE: usize = 8 * 1024;
/// All attributes of an item together, as JSON.
const LARGEST_ITEM: usize = 48 * 1024;
/// The longest name of an attribute.
const LONGEST_NAME: usize = 200;

/// What an item says about the thing that it stands for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ItemAttributes {
    pub values: Map<String, Value>,
    /// Names of attributes that are too large to be kept.
    pub left_out: Vec<String>,
}

/// What is kept of properties. Marked secrets and values whose names say that they are one are not.
pub fn kept_attributes(properties: &Map<String, Value>) -> ItemAttributes {
    let mut kept = ItemAttributes::default();
    let mut size = 0;
    // In an order of their own: the same state leaves out the same attributes, whoever wrote it.
    let mut names: Vec<&String> = properties.keys().collect();
    names.sort_unstable();
    for name in names {
        let mut value = Value::Object(Map::from_iter([(name.clone(), shown(&properties[name]))]));
        value = redact(value);
        tidy(&mut value);
        let Value::Object(entries) = value else {
            continue;
        };
        for (name, value) in entries {
            let length = value.to_string().len();
            if length > LARGEST_ATTRIBUTE || size + length > LARGEST_ITEM {
                kept.left_out.push(name);
            } else {
                size += length;
                kept.values.insert(name, value);
            }
        }
    }
    kept
}

/// Texts that a database stores and a terminal does not act on, names included.
fn tidy(value: &mut Value) {
    match value {
        Value::String(text) => *text = line(text, LONGEST_TEXT),
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(entries) => {
            *entries = std::mem::take(entries)
                .into_iter()
                .map(|(name, mut value)| {
                    tidy(&mut value);
                    (line(&name, LONGEST_NAME), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text without what a terminal would act on, and no longer than it may be. Says when it is cut.
pub(crate) fn line(text: &str, longest: usize) -> String {
    let plain = printable(text);
    if plain.len() <= longest {
        return plain.into_owned();
    }
    let end = plain.floor_char_boundary(longest);
    let left_out = plain.len() - end;
    format!("{}… ({left_out} bytes left out)", &plain[..end])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{SECRET, SIGNATURE};

    fn kept(properties: Value) -> ItemAttributes {
        kept_attributes(properties.as_object().unwrap())
    }

    #[test]
    fn nothing_secret_is_kept_marked_or_named_or_deep() {
        let found = kept(json!({
            "arn": "arn:aws:x",
            "masterPassword": "hunter2",
            "marked": {SIGNATURE: SECRET, "ciphertext": "v1:hunter2"},
            "deep": [{"connection": {"apiKey": "hunter2", "host": "db.example"}}],
            "file": {SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": "hunter2"},
        }));
        let text = Value::Object(found.values.clone()).to_string();
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(found.values["arn"], "arn:aws:x");
        assert_eq!(found.values["deep"][0]["connection"]["host"], "db.example");
        assert_eq!(found.values["file"], json!({"kind": "asset"}));
        assert!(found.left_out.is_empty());
    }

    #[test]
    fn what_is_too_large_is_named_and_odd_texts_are_tidied() {
        let list: Vec<String> = (0..2000).map(|n| format!("entry {n}")).collect();
        let found = kept(json!({
            "big": list, "long": "x".repeat(5000), "odd\u{0}\u{1b}[2J": "a\u{0}b",
        }));
        assert_eq!(found.left_out, ["big"]);
        assert!(
            found.values["long"]
                .as_str()
                .unwrap()
                .ends_with("(3000 bytes left out)")
        );
        let text = Value::Object(found.values).to_string();
        assert!(
            !text.contains("\\u0000") && !text.contains("\\u001b"),
            "{text}"
        );
    }
}
