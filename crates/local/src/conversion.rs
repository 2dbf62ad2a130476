//! Between what engines output and what configurations hold.

use nimbus_engine_model::{PropertyMap, PropertyValue};
use nimbus_orchestrator::LookupValue;
use serde_json::Value;
use std::collections::BTreeMap;

/// Stands for a text that is not known yet. A program that hands it on makes its own input unknown
/// again, because the protocol uses the same text.
pub(crate) const UNKNOWN_TEXT: &str = nimbus_engine_model::UNKNOWN_ID;

pub(crate) fn lookup_values(outputs: &PropertyMap) -> BTreeMap<String, LookupValue> {
    outputs
        .iter()
        .map(|(key, value)| (key.clone(), lookup_value(value)))
        .collect()
}

/// What another stack would have, as a program that refers to it gets it.
pub(crate) fn property_values(outputs: &BTreeMap<String, LookupValue>) -> PropertyMap {
    let value = |value: &LookupValue| match value {
        LookupValue::Known { value, secret } if *secret => {
            Some(PropertyValue::secret(property(value)))
        }
        LookupValue::Known { value, .. } => Some(property(value)),
        LookupValue::Unknown => Some(PropertyValue::Computed),
        LookupValue::Absent => None,
    };
    outputs
        .iter()
        .filter_map(|(key, found)| Some((key.clone(), value(found)?)))
        .collect()
}

fn property(value: &Value) -> PropertyValue {
    match value {
        Value::Null => PropertyValue::Null,
        Value::Bool(value) => PropertyValue::Bool(*value),
        Value::Number(number) => PropertyValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => PropertyValue::from(text.as_str()),
        Value::Array(items) => PropertyValue::Array(items.iter().map(property).collect()),
        Value::Object(map) => PropertyValue::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), property(value)))
                .collect(),
        ),
    }
}

fn lookup_value(value: &PropertyValue) -> LookupValue {
    if value.contains_unknowns() {
        return LookupValue::Unknown;
    }
    LookupValue::Known {
        value: json(value),
        secret: value.contains_secrets(),
    }
}

fn json(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Null | PropertyValue::Computed => Value::Null,
        PropertyValue::Bool(value) => Value::Bool(*value),
        PropertyValue::Number(number) => whole(*number),
        PropertyValue::String(text) => Value::String(text.clone()),
        PropertyValue::Bytes(bytes) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
        PropertyValue::Array(items) => items.iter().map(json).collect(),
        PropertyValue::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), json(value)))
                .collect(),
        ),
        PropertyValue::Secret(inner) => json(inner),
        PropertyValue::Output(output) => output.value.as_ref().map_or(Value::Null, json),
        PropertyValue::ResourceReference(reference) => Value::String(reference.urn.to_string()),
        // Files do not travel between stacks.
        PropertyValue::Asset(_) | PropertyValue::Archive(_) => Value::Null,
    }
}

/// Whole numbers without a fraction, as programs write them.
fn whole(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        Value::from(number as i64)
    } else {
        serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_become_answers_with_their_marks() {
        let outputs = PropertyMap::from([
            ("count".to_owned(), PropertyValue::Number(3.0)),
            (
                "later".to_owned(),
                PropertyValue::Array(vec![PropertyValue::Computed]),
            ),
            (
                "password".to_owned(),
                PropertyValue::secret(PropertyValue::from("hush")),
            ),
        ]);
        let values = lookup_values(&outputs);
        assert_eq!(values["count"], LookupValue::open(json!(3)));
        assert_eq!(values["later"], LookupValue::Unknown);
        assert_eq!(
            values["password"],
            LookupValue::Known {
                value: json!("hush"),
                secret: true
            }
        );
    }
}
