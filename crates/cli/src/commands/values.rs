//! Property values for people and scripts: plain JSON, secrets only on request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nimbus_engine_model::{
    Archive, Asset, PropertyMap, PropertyValue, REDACTED, UNKNOWN_ID, format::write_property,
    secrets::NoSecrets,
};
use serde_json::{Map, Value};

/// Properties as JSON. A secret is `[secret]` unless secrets are asked for.
pub(crate) fn shown_map(map: &PropertyMap, show_secrets: bool) -> Map<String, Value> {
    map.iter()
        .map(|(key, value)| (key.clone(), shown(value, show_secrets)))
        .collect()
}

pub(crate) fn shown(value: &PropertyValue, show_secrets: bool) -> Value {
    match value {
        PropertyValue::Null => Value::Null,
        PropertyValue::Bool(value) => Value::Bool(*value),
        PropertyValue::String(text) => Value::String(text.clone()),
        PropertyValue::Bytes(bytes) => Value::String(STANDARD.encode(bytes)),
        PropertyValue::Array(items) => items.iter().map(|item| shown(item, show_secrets)).collect(),
        PropertyValue::Object(map) => Value::Object(shown_map(map, show_secrets)),
        PropertyValue::Secret(inner) if show_secrets => shown(inner, show_secrets),
        PropertyValue::Secret(_) => Value::String(REDACTED.to_owned()),
        PropertyValue::Computed => Value::String(UNKNOWN_ID.to_owned()),
        PropertyValue::Output(output) => {
            let inner = output.value.as_ref().unwrap_or(&PropertyValue::Computed);
            if output.secret && !show_secrets {
                return Value::String(REDACTED.to_owned());
            }
            shown(inner, show_secrets)
        }
        PropertyValue::ResourceReference(reference) => {
            let id = reference.id.as_deref().map(|id| shown(id, show_secrets));
            serde_json::json!({ "urn": reference.urn.as_str(), "id": id })
        }
        PropertyValue::Asset(asset) => shown_asset(asset),
        PropertyValue::Archive(Archive::Assets { assets, .. }) => {
            Value::Object(shown_map(assets, show_secrets))
        }
        PropertyValue::Number(_) | PropertyValue::Archive(_) => as_in_state(value),
    }
}

fn shown_asset(asset: &Asset) -> Value {
    match asset {
        Asset::Text { text, .. } => Value::String(text.clone()),
        other => as_in_state(&PropertyValue::Asset(other.clone())),
    }
}

/// As a state file has it; such values hold no secrets.
fn as_in_state(value: &PropertyValue) -> Value {
    write_property(value, &NoSecrets)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_shown_on_request_only() {
        let secret = PropertyValue::secret("hunter2".into());
        let map: PropertyMap = [
            ("count".to_owned(), 3.0.into()),
            ("list".to_owned(), vec![secret, "plain".into()].into()),
        ]
        .into();
        assert_eq!(
            Value::Object(shown_map(&map, false)),
            json!({"count": 3, "list": ["[secret]", "plain"]})
        );
        assert_eq!(
            Value::Object(shown_map(&map, true)),
            json!({"count": 3, "list": ["hunter2", "plain"]})
        );
    }
}
