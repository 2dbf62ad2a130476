//! Configuration that is given to a run, instead of read from the stack's file.
//!
//! Whoever resolves values at run time hands them over in memory: nothing of it is written beside
//! the program, which many stacks share.

use std::collections::BTreeMap;

use nimbus_engine_backend::project::{ConfigMap, ResolvedConfig};
use nimbus_engine_model::{PropertyMap, PropertyValue};
use serde_json::Value;

/// Values by `namespace:name`.
#[derive(Clone, Default)]
pub struct GivenConfig {
    values: BTreeMap<String, GivenValue>,
}

#[derive(Clone)]
struct GivenValue {
    value: Value,
    secret: bool,
}

impl GivenConfig {
    pub fn set(&mut self, key: impl Into<String>, value: Value, secret: bool) {
        self.values.insert(key.into(), GivenValue { value, secret });
    }

    /// What was resolved already, for an engine that gets configuration only in files.
    pub fn of_resolved(config: &ResolvedConfig) -> Self {
        let mut given = Self::default();
        for (key, text) in &config.values {
            let written = match config.properties.get(key).map(bare) {
                Some(PropertyValue::Array(_) | PropertyValue::Object(_)) => {
                    serde_json::from_str(text).ok()
                }
                _ => None,
            };
            let value = written.unwrap_or_else(|| Value::from(text.as_str()));
            given.set(key.as_str(), value, config.secret_keys.contains(key));
        }
        given
    }

    /// Every value with its key, and whether it is secret.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&str, &Value, bool)> {
        let values = self.values.iter();
        values.map(|(key, given)| (key.as_str(), &given.value, given.secret))
    }

    /// Texts as they are, everything else as JSON.
    pub(crate) fn text(value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// As a program gets it. Secrets are left out of what is kept in the stack's history.
    pub(crate) fn resolved(&self) -> ResolvedConfig {
        let secret_keys = self.values.iter().filter(|(_, given)| given.secret);
        ResolvedConfig {
            encrypted: ConfigMap::default(),
            values: self
                .values
                .iter()
                .map(|(key, given)| (key.clone(), Self::text(&given.value)))
                .collect(),
            secret_keys: secret_keys.map(|(key, _)| key.clone()).collect(),
            properties: self
                .values
                .iter()
                .map(|(key, given)| (key.clone(), property(given)))
                .collect(),
        }
    }
}

fn bare(value: &PropertyValue) -> &PropertyValue {
    match value {
        PropertyValue::Secret(inner) => inner,
        other => other,
    }
}

fn property(given: &GivenValue) -> PropertyValue {
    let value = from_json(&given.value);
    if given.secret {
        PropertyValue::secret(value)
    } else {
        value
    }
}

fn from_json(value: &Value) -> PropertyValue {
    match value {
        Value::Null => PropertyValue::Null,
        Value::Bool(value) => PropertyValue::Bool(*value),
        Value::Number(number) => PropertyValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => PropertyValue::from(text.as_str()),
        Value::Array(items) => PropertyValue::Array(items.iter().map(from_json).collect()),
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| (key.clone(), from_json(value)));
            PropertyValue::Object(entries.collect::<PropertyMap>())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_resolved_reaches_a_program_unchanged() {
        let mut given = GivenConfig::default();
        given.set("a:text", json!("[1]"), false);
        given.set("a:list", json!(["x", 1]), false);
        given.set("a:hidden", json!({"password": "hush"}), true);
        let resolved = given.resolved();
        let again = GivenConfig::of_resolved(&resolved);
        assert_eq!(again.resolved().values, resolved.values);
        assert_eq!(again.resolved().secret_keys, resolved.secret_keys);
        assert!(again.values().any(|(_, value, _)| value.is_array()));
        assert!(again.values().any(|(_, value, _)| *value == json!("[1]")));
    }

    #[test]
    fn texts_stay_texts_and_the_rest_is_json() {
        let mut given = GivenConfig::default();
        given.set("a:text", json!("x"), false);
        given.set("a:list", json!(["x", 1]), false);
        given.set("a:password", json!("hush"), true);
        let resolved = given.resolved();
        assert_eq!(resolved.values["a:text"], "x");
        assert_eq!(resolved.values["a:list"], "[\"x\",1]");
        assert_eq!(
            resolved.secret_keys.iter().collect::<Vec<_>>(),
            ["a:password"]
        );
        assert!(matches!(
            resolved.properties["a:password"],
            PropertyValue::Secret(_)
        ));
        assert!(
            resolved.encrypted.is_empty(),
            "nothing of it reaches the history"
        );
    }
}
