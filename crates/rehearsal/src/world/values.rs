//! Properties as the world keeps them: no secrets, no files, no references.

use nimbus_engine_model::{Archive, Asset, PropertyMap, PropertyValue};
use serde_json::{Map, Value, json};

const SECRET: &str = "nimbus:rehearsal:secret";

/// Properties as the world keeps them: no secrets.
pub(crate) fn to_json(map: &PropertyMap) -> Map<String, Value> {
    map.iter()
        .map(|(key, value)| (key.clone(), value_to_json(value)))
        .collect()
}

fn value_to_json(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Null | PropertyValue::Computed => Value::Null,
        PropertyValue::Bool(value) => json!(value),
        PropertyValue::Number(value) => json!(value),
        PropertyValue::String(text) => json!(text),
        PropertyValue::Bytes(bytes) => json!(format!("{} bytes", bytes.len())),
        PropertyValue::Array(items) => items.iter().map(value_to_json).collect(),
        PropertyValue::Object(map) => Value::Object(to_json(map)),
        PropertyValue::Asset(asset) => json!({ "asset": asset_hash(asset) }),
        PropertyValue::Archive(archive) => json!({ "archive": archive_hash(archive) }),
        PropertyValue::Secret(_) => json!({ SECRET: true }),
        PropertyValue::Output(output) if output.secret => json!({ SECRET: true }),
        PropertyValue::Output(output) => output.value.as_ref().map_or(Value::Null, value_to_json),
        PropertyValue::ResourceReference(reference) => json!(reference.urn.as_str()),
    }
}

/// What the world says of an object, with the caller's value wherever the world kept none: for
/// secrets, files and references.
pub(crate) fn from_json(map: &Map<String, Value>, known: &PropertyMap) -> PropertyMap {
    let value =
        |(key, value): (&String, &Value)| (key.clone(), value_from_json(value, known.get(key)));
    map.iter().map(value).collect()
}

fn value_from_json(value: &Value, known: Option<&PropertyValue>) -> PropertyValue {
    if let Some(known) = known
        && value_to_json(known) == *value
    {
        return known.clone();
    }
    match value {
        Value::Null => PropertyValue::Null,
        Value::Bool(value) => PropertyValue::Bool(*value),
        Value::Number(number) => PropertyValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => PropertyValue::from(text.as_str()),
        Value::Array(items) => {
            let known = match known {
                Some(PropertyValue::Array(known)) => known.as_slice(),
                _ => &[],
            };
            let item = |(at, item)| value_from_json(item, known.get(at));
            PropertyValue::Array(items.iter().enumerate().map(item).collect())
        }
        Value::Object(map) => {
            let none = PropertyMap::new();
            let known = known.and_then(PropertyValue::as_object).unwrap_or(&none);
            PropertyValue::Object(from_json(map, known))
        }
    }
}

fn asset_hash(asset: &Asset) -> &str {
    match asset {
        Asset::Text { hash, .. }
        | Asset::Path { hash, .. }
        | Asset::Uri { hash, .. }
        | Asset::HashOnly { hash } => hash,
    }
}

fn archive_hash(archive: &Archive) -> &str {
    match archive {
        Archive::Assets { hash, .. }
        | Archive::Path { hash, .. }
        | Archive::Uri { hash, .. }
        | Archive::HashOnly { hash } => hash,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_written_and_come_back_from_the_caller() {
        let secret = PropertyValue::secret(PropertyValue::from("hush"));
        let nested = PropertyMap::from([("password".to_owned(), secret)]);
        let map = PropertyMap::from([("auth".to_owned(), PropertyValue::Object(nested))]);
        let json = to_json(&map);
        assert!(!Value::Object(json.clone()).to_string().contains("hush"));
        assert_eq!(from_json(&json, &map), map);
    }
}
