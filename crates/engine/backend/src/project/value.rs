//! Configuration values, secrets still encrypted.
//!
//! A stack's file may say `size: 3` or `size: "3"`; programs receive text in both cases, so a
//! plain value at the top is text here too. Inside lists and mappings kinds are kept.

use std::collections::BTreeMap;

use nimbus_document::{Node, NodeKind, Number};
use nimbus_engine_model::{PathSegment, PropertyPath};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum ConfigValue {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(String),
    /// The ciphertext of a text.
    Secure(String),
    List(Vec<ConfigValue>),
    Map(BTreeMap<String, ConfigValue>),
}

/// Why a value cannot be put where a path says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error("{path} is not a list")]
    NotAList { path: String },
    #[error("{path} is not a mapping")]
    NotAMapping { path: String },
    #[error("{path} has {length} elements, so {index} is out of range")]
    OutOfRange {
        path: String,
        length: usize,
        index: i64,
    },
    #[error("a mapping with the single key `secure` stands for an encrypted value")]
    Reserved,
}

const SECURE: &str = "secure";

impl ConfigValue {
    pub(crate) fn from_node(node: &Node) -> Self {
        match &node.kind {
            NodeKind::Null => Self::Null,
            NodeKind::Bool(value) => Self::Bool(*value),
            NodeKind::Number(Number::Int(value)) => Self::Int(*value),
            NodeKind::Number(Number::UInt(value)) => Self::UInt(*value),
            NodeKind::Number(Number::Float(value)) => Self::Float(*value),
            NodeKind::String(text) => Self::Text(text.clone()),
            NodeKind::Sequence(items) => Self::List(items.iter().map(Self::from_node).collect()),
            NodeKind::Mapping(mapping) => {
                if let (1, Some(ciphertext)) = (mapping.len(), secure_text(node)) {
                    return Self::Secure(ciphertext.to_owned());
                }
                let entries = mapping.iter();
                Self::Map(
                    entries
                        .map(|(key, entry)| (key.to_owned(), Self::from_node(&entry.value)))
                        .collect(),
                )
            }
        }
    }

    pub(crate) fn from_json(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => number
                .as_i64()
                .map(Self::Int)
                .or_else(|| number.as_u64().map(Self::UInt))
                .or_else(|| number.as_f64().map(Self::Float))
                .unwrap_or(Self::Null),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Value::Object(map) => {
                if let (1, Some(Value::String(ciphertext))) = (map.len(), map.get(SECURE)) {
                    return Self::Secure(ciphertext.clone());
                }
                let entries = map.iter();
                Self::Map(
                    entries
                        .map(|(k, v)| (k.clone(), Self::from_json(v)))
                        .collect(),
                )
            }
        }
    }

    /// As it is written to files: encrypted values as `{secure: …}`.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Secure(ciphertext) => {
                let mut map = serde_json::Map::new();
                map.insert(SECURE.to_owned(), Value::String(ciphertext.clone()));
                Value::Object(map)
            }
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(map) => {
                Value::Object(map.iter().map(|(k, v)| (k.clone(), v.to_json())).collect())
            }
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::from(*value),
            Self::UInt(value) => Value::from(*value),
            Self::Float(value) => number(*value),
            Self::Text(text) => Value::String(text.clone()),
        }
    }

    /// What the value is at the top of a stack's configuration.
    pub(crate) fn at_top(self) -> Self {
        match self {
            Self::Null => Self::Text(String::new()),
            Self::Bool(_) | Self::Int(_) | Self::UInt(_) | Self::Float(_) => {
                Self::Text(self.to_json().to_string())
            }
            other => other,
        }
    }

    /// Whether any part is encrypted.
    pub fn is_secure(&self) -> bool {
        match self {
            Self::Secure(_) => true,
            Self::List(items) => items.iter().any(Self::is_secure),
            Self::Map(map) => map.values().any(Self::is_secure),
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::UInt(_)
            | Self::Float(_)
            | Self::Text(_) => false,
        }
    }

    /// The part at a path below this value.
    pub fn get(&self, path: &[PathSegment]) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        let child = match (self, first) {
            (Self::List(items), PathSegment::Index(index)) => {
                items.get(usize::try_from(*index).ok()?)
            }
            (Self::Map(map), PathSegment::Key(key)) => map.get(key),
            _ => None,
        };
        child?.get(rest)
    }

    /// Puts `new` at a path below this value, which is itself at `place`. A list grows by one at
    /// most. At the top of a key, something that is no container gives way to one.
    pub fn set(
        &mut self,
        place: &PropertyPath,
        path: &[PathSegment],
        new: Self,
    ) -> Result<(), PlaceError> {
        let Some((first, rest)) = path.split_first() else {
            *self = new;
            return Ok(());
        };
        let at_top = place.segments().len() <= 1;
        let is_container = matches!(self, Self::List(_) | Self::Map(_));
        if matches!(self, Self::Null) || (at_top && !is_container) {
            *self = match first {
                PathSegment::Index(_) => Self::List(Vec::new()),
                PathSegment::Key(_) => Self::Map(BTreeMap::new()),
            };
        }
        let inner_place = place.child(first.clone());
        match (self, first) {
            (Self::List(items), PathSegment::Index(index)) => {
                let position = usize::try_from(*index).ok().filter(|i| *i <= items.len());
                let Some(position) = position else {
                    let (path, length) = (place.to_string(), items.len());
                    return Err(PlaceError::OutOfRange {
                        path,
                        length,
                        index: *index,
                    });
                };
                if position == items.len() {
                    items.push(Self::Null);
                }
                items[position].set(&inner_place, rest, new)
            }
            (Self::Map(map), PathSegment::Key(key)) => {
                let would_be_reserved = rest.is_empty()
                    && key == SECURE
                    && map.keys().all(|other| other == SECURE)
                    && matches!(new, Self::Text(_));
                if would_be_reserved {
                    return Err(PlaceError::Reserved);
                }
                let child = map.entry(key.clone()).or_insert(Self::Null);
                child.set(&inner_place, rest, new)
            }
            (_, PathSegment::Index(_)) => Err(PlaceError::NotAList {
                path: place.to_string(),
            }),
            (_, PathSegment::Key(_)) => Err(PlaceError::NotAMapping {
                path: place.to_string(),
            }),
        }
    }

    /// Takes away what is at a path below this value. What is not there counts as removed.
    pub fn remove(&mut self, path: &[PathSegment]) -> Result<(), PlaceError> {
        let Some((first, rest)) = path.split_first() else {
            return Ok(());
        };
        match (self, first) {
            (Self::List(items), PathSegment::Index(index)) => {
                let position = usize::try_from(*index).ok().filter(|i| *i < items.len());
                match position {
                    Some(position) if rest.is_empty() => {
                        items.remove(position);
                        Ok(())
                    }
                    Some(position) => items[position].remove(rest),
                    None => Ok(()),
                }
            }
            (Self::Map(map), PathSegment::Key(key)) if rest.is_empty() => {
                let leaves_secure_text = map.len() == 2
                    && key != SECURE
                    && map.contains_key(key)
                    && matches!(map.get(SECURE), Some(Self::Text(_)));
                if leaves_secure_text {
                    return Err(PlaceError::Reserved);
                }
                map.remove(key);
                Ok(())
            }
            (Self::Map(map), PathSegment::Key(key)) => {
                map.get_mut(key).map_or(Ok(()), |child| child.remove(rest))
            }
            _ => Ok(()),
        }
    }
}

/// A plain text that means a truth value or a whole number becomes one where kinds are kept.
pub(crate) fn coerced(text: &str) -> ConfigValue {
    match text {
        "true" => return ConfigValue::Bool(true),
        "false" => return ConfigValue::Bool(false),
        _ => {}
    }
    // `0123` is an identifier of some kind, not the number 123.
    if text.len() > 1 && text.starts_with('0') {
        return ConfigValue::Text(text.to_owned());
    }
    let int = text.parse().ok().map(ConfigValue::Int);
    let uint = || text.parse().ok().map(ConfigValue::UInt);
    int.or_else(uint)
        .unwrap_or_else(|| ConfigValue::Text(text.to_owned()))
}

/// JSON text as Go writes it: keys sorted, and what is special in HTML as escapes.
pub(crate) fn json_text(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

/// Whole floats are written without a fraction.
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Value::from(value as i64);
    }
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn secure_text(node: &Node) -> Option<&str> {
    node.get(SECURE)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Vec<PathSegment> {
        PropertyPath::parse(text).unwrap().segments().to_vec()
    }

    fn key() -> PropertyPath {
        PropertyPath::new([PathSegment::from("key")])
    }

    fn set(start: Value, at: &str, new: Value) -> Result<Value, PlaceError> {
        let mut value = ConfigValue::from_json(&start);
        value.set(&key(), &path(at), ConfigValue::from_json(&new))?;
        Ok(value.to_json())
    }

    #[test]
    fn a_path_makes_the_containers_it_needs() {
        assert_eq!(
            set(json!(null), "a.b[0]", json!(1)),
            Ok(json!({"a": {"b": [1]}}))
        );
        assert_eq!(
            set(json!({"a": 1}), "b", json!(2)),
            Ok(json!({"a": 1, "b": 2}))
        );
        assert_eq!(set(json!([1]), "[1]", json!(2)), Ok(json!([1, 2])));
        assert_eq!(
            set(json!("text"), "a", json!(1)),
            Ok(json!({"a": 1})),
            "the top gives way"
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(matches!(
            set(json!({"a": 1}), "a.b", json!(1)),
            Err(PlaceError::NotAMapping { .. })
        ));
        assert!(matches!(
            set(json!({"a": 1}), "a[0]", json!(1)),
            Err(PlaceError::NotAList { .. })
        ));
        assert!(matches!(
            set(json!([1]), "[3]", json!(1)),
            Err(PlaceError::OutOfRange { .. })
        ));
        assert!(matches!(
            set(json!([1]), "[-1]", json!(1)),
            Err(PlaceError::OutOfRange { .. })
        ));
        assert_eq!(
            set(json!(null), "secure", json!("x")),
            Err(PlaceError::Reserved)
        );
    }

    #[test]
    fn removing_leaves_the_rest() {
        let mut value = ConfigValue::from_json(&json!({"a": [1, 2], "b": {"c": 3}}));
        value.remove(&path("a[0]")).unwrap();
        value.remove(&path("b.c")).unwrap();
        value.remove(&path("x.y")).unwrap();
        assert_eq!(value.to_json(), json!({"a": [2], "b": {}}));
        let mut risky = ConfigValue::from_json(&json!({"secure": "plain", "x": 1}));
        assert_eq!(risky.remove(&path("x")), Err(PlaceError::Reserved));
    }

    #[test]
    fn plain_values_at_the_top_are_text() {
        let top = |value| ConfigValue::from_json(&value).at_top();
        assert_eq!(top(json!(3)), ConfigValue::Text("3".into()));
        assert_eq!(top(json!(1.50)), ConfigValue::Text("1.5".into()));
        assert_eq!(top(json!(2.0)), ConfigValue::Text("2".into()));
        assert_eq!(top(json!(true)), ConfigValue::Text("true".into()));
        assert_eq!(top(json!(null)), ConfigValue::Text(String::new()));
        assert!(matches!(top(json!([1])), ConfigValue::List(_)));
    }

    #[test]
    fn secrets_are_seen_at_any_depth() {
        let value = ConfigValue::from_json(&json!({"a": [{"secure": "v1:x"}]}));
        assert!(value.is_secure());
        assert_eq!(
            value.get(&path("a[0]")),
            Some(&ConfigValue::Secure("v1:x".into()))
        );
        let plain = ConfigValue::from_json(&json!({"secure": "x", "other": 1}));
        assert!(!plain.is_secure());
    }

    #[test]
    fn texts_are_coerced_only_where_nothing_is_lost() {
        assert_eq!(coerced("12"), ConfigValue::Int(12));
        assert_eq!(coerced("18446744073709551615"), ConfigValue::UInt(u64::MAX));
        assert_eq!(coerced("true"), ConfigValue::Bool(true));
        assert_eq!(coerced("0"), ConfigValue::Int(0));
        for text in ["0123", "1.5", "yes", ""] {
            assert_eq!(coerced(text), ConfigValue::Text(text.into()));
        }
        assert_eq!(json_text(&json!("<a>&")), "\"\\u003ca\\u003e\\u0026\"");
    }
}
