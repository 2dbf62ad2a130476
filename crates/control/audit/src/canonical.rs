//! One text per JSON value, and one byte string per list of fields.

use serde_json::Value;

/// JSON without spaces and with sorted keys. What is stored is this text itself, so that a
/// database that formats numbers in its own way cannot break the chain.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<_> = object.keys().collect();
            keys.sort_unstable();
            text.push('{');
            for (position, key) in keys.into_iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write(&object[key], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// Fields with their lengths in front, so that moving text from one field to the next changes the
/// bytes; an absent field differs from an empty one.
#[derive(Default)]
pub(crate) struct FieldBytes(Vec<u8>);

impl FieldBytes {
    pub(crate) fn put(mut self, field: &[u8]) -> Self {
        self.0.push(1);
        self.0
            .extend_from_slice(&(field.len() as u64).to_be_bytes());
        self.0.extend_from_slice(field);
        self
    }

    pub(crate) fn put_optional(mut self, field: Option<&str>) -> Self {
        match field {
            Some(field) => self.put(field.as_bytes()),
            None => {
                self.0.push(0);
                self
            }
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn key_order_and_spaces_do_not_matter() {
        let one: Value =
            serde_json::from_str(r#"{"b": [1, {"d":2,"c":null}], "a": "é\n"}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"a":"é\n","b":[1,{"c":null,"d":2}]}"#).unwrap();
        assert_eq!(canonical_json(&one), canonical_json(&other));
        assert_eq!(
            canonical_json(&one),
            r#"{"a":"é\n","b":[1,{"c":null,"d":2}]}"#
        );
        assert_ne!(canonical_json(&json!(["1"])), canonical_json(&json!([1])));
    }

    #[test]
    fn text_cannot_move_between_fields() {
        let bytes = |one: &str, two: Option<&str>| {
            FieldBytes::default()
                .put(one.as_bytes())
                .put_optional(two)
                .into_bytes()
        };
        assert_ne!(bytes("ab", Some("c")), bytes("a", Some("bc")));
        assert_ne!(bytes("a", None), bytes("a", Some("")));
    }
}
