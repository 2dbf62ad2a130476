//! How large a schema is with its references followed, and the schema without them.
//!
//! A reference costs a few bytes, and whoever validates goes through what it leads to each time. Thirteen definitions
//! that refer to the next one four times each are 67 million, so size is counted as it is gone through. What refers to
//! itself in a circle has no size; a value that is deep enough makes it as expensive as its author likes.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Bytes of JSON that a schema may be with its references followed. One without any is smaller.
const MOST_EXPANDED: usize = 1024 * 1024;
/// References that lead to references.
const LONGEST_CHAIN: usize = 64;
/// Work that holding one value to one schema may be: bytes of the one times parts of the other.
const MOST_WORK: usize = 1 << 30;

/// Why a schema has no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpansionError {
    #[error("`{0}` leads nowhere in this schema; refer with # or #/ and the way to a definition")]
    Nowhere(String),
    #[error("`{0}` leads back to itself")]
    Circle(String),
    #[error("its references are more than {LONGEST_CHAIN} deep")]
    TooDeep,
    #[error("with its references followed it is larger than {MOST_EXPANDED} bytes of JSON")]
    TooLarge,
}

/// The size of a schema with its references followed.
pub(crate) fn expanded_size(schema: &Value) -> Result<usize, ExpansionError> {
    let mut counter = SizeCounter {
        root: schema,
        known: HashMap::new(),
    };
    let size = counter.size(schema, 0)?;
    match size > MOST_EXPANDED {
        true => Err(ExpansionError::TooLarge),
        false => Ok(size),
    }
}

/// Whether holding a value to a schema is more work than anybody gets done.
pub(crate) fn is_too_much(schema_size: usize, value: &Value) -> bool {
    schema_size.saturating_mul(parts(value)) > MOST_WORK
}

fn parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(parts).sum::<usize>(),
        Value::Object(entries) => 1 + entries.values().map(parts).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// A schema with what it refers to in place of the references, if it is not too large for that.
pub(crate) fn inlined(schema: &Value) -> Result<Value, ExpansionError> {
    expanded_size(schema)?;
    Ok(inline(schema, schema))
}

struct SizeCounter<'a> {
    root: &'a Value,
    /// Sizes by address of the reference; none while it is being counted.
    known: HashMap<&'a str, Option<usize>>,
}

impl<'a> SizeCounter<'a> {
    fn size(&mut self, value: &'a Value, chain: usize) -> Result<usize, ExpansionError> {
        let mut size: usize = 2;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => size += 4,
            Value::String(text) => size += text.len(),
            Value::Array(items) => {
                for item in items {
                    size = size.saturating_add(self.size(item, chain)?);
                }
            }
            Value::Object(entries) => {
                for (key, item) in entries {
                    let inner = self.size(item, chain)?;
                    size = size.saturating_add(key.len() + 3).saturating_add(inner);
                }
                if let Some(address) = reference(entries) {
                    size = size.saturating_add(self.target_size(address, chain)?);
                }
            }
        }
        Ok(size)
    }

    fn target_size(&mut self, address: &'a str, chain: usize) -> Result<usize, ExpansionError> {
        if chain >= LONGEST_CHAIN {
            return Err(ExpansionError::TooDeep);
        }
        match self.known.get(address) {
            Some(Some(size)) => return Ok(*size),
            Some(None) => return Err(ExpansionError::Circle(address.to_owned())),
            None => {}
        }
        let found = target(self.root, address);
        let found = found.ok_or_else(|| ExpansionError::Nowhere(address.to_owned()))?;
        self.known.insert(address, None);
        let size = self.size(found, chain + 1)?;
        self.known.insert(address, Some(size));
        Ok(size)
    }
}

/// What an object refers to. Both keywords are the same here: a schema refers to itself alone.
fn reference(entries: &Map<String, Value>) -> Option<&str> {
    let mut keys = ["$ref", "$dynamicRef"].into_iter();
    keys.find_map(|key| entries.get(key)?.as_str())
}

/// What is at an address in the same schema. Names (`#name`) and encoded letters are not followed.
fn target<'a>(root: &'a Value, address: &str) -> Option<&'a Value> {
    let way = address.strip_prefix('#')?;
    match way.contains('%') {
        true => None,
        false => root.pointer(way),
    }
}

fn inline(root: &Value, value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| inline(root, item)).collect(),
        Value::Object(entries) => {
            let own = entries.iter().filter(|(key, _)| {
                // Definitions are where they are used.
                !matches!(
                    key.as_str(),
                    "$ref" | "$dynamicRef" | "$defs" | "definitions"
                )
            });
            let mut own: Map<String, Value> = own
                .map(|(key, item)| (key.clone(), inline(root, item)))
                .collect();
            let target = reference(entries).and_then(|address| target(root, address));
            match target.map(|target| inline(root, target)) {
                None => {}
                Some(Value::Object(there)) if !there.keys().any(|key| own.contains_key(key)) => {
                    own.extend(there);
                }
                // Both hold.
                Some(there) => {
                    let all = own
                        .entry("allOf")
                        .or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(all) = all {
                        all.push(there);
                    }
                }
            }
            Value::Object(own)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Definitions each of which refers to the next one four times.
    pub(crate) fn bomb(levels: usize) -> Value {
        let mut definitions = Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(
                format!("d{level}"),
                json!({"allOf": [next, next, next, next]}),
            );
        }
        definitions.insert(format!("d{levels}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    }

    #[test]
    fn a_schema_that_grows_with_its_references_is_too_large() {
        assert!(expanded_size(&bomb(4)).is_ok());
        for levels in [13, 40] {
            assert_eq!(
                expanded_size(&bomb(levels)),
                Err(ExpansionError::TooLarge),
                "{levels}"
            );
        }
        assert_eq!(expanded_size(&bomb(2_000)), Err(ExpansionError::TooDeep));
    }

    #[test]
    fn circles_and_ways_to_nowhere_have_no_size() {
        for circle in [
            json!({"$ref": "#"}),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            json!({"properties": {"a": {"items": {"$ref": "#"}}}}),
            json!({"properties": {"a": {"$dynamicRef": "#"}}}),
        ] {
            let found = expanded_size(&circle);
            assert!(matches!(found, Err(ExpansionError::Circle(_))), "{circle}");
        }
        for nowhere in ["#/$defs/a", "#name", "#/%24defs", "other.json"] {
            let found = expanded_size(&json!({"$ref": nowhere}));
            assert!(
                matches!(found, Err(ExpansionError::Nowhere(_))),
                "{nowhere}"
            );
        }
    }

    #[test]
    fn what_is_referred_to_stands_in_place_of_the_reference() {
        let schema = json!({"properties": {"a": {"$ref": "#/$defs/x", "title": "A"}},
            "$defs": {"x": {"type": "integer"}}});
        let expected = json!({"properties": {"a": {"type": "integer", "title": "A"}}});
        assert_eq!(inlined(&schema), Ok(expected));
        let both =
            json!({"$ref": "#/$defs/x", "type": "number", "$defs": {"x": {"type": "integer"}}});
        let expected = json!({"type": "number", "allOf": [{"type": "integer"}]});
        assert_eq!(inlined(&both), Ok(expected));
    }
}
