//! What a cloud refuses to delete: objects whose owner said so.
//!
//! Clouds say it with a property of the object, under a few names. Protection is looked at where a
//! cloud looks at it: when the object is deleted, also as the last step of a replacement.

use serde_json::{Map, Value};

/// Properties that protect an object while they are on.
const SWITCHES: &[&str] = &[
    "deletionProtection",
    "deletionProtectionEnabled",
    "disableApiTermination",
    "enableDeletionProtection",
];

/// The property that forbids the deletion of an object with these inputs, if one does.
pub(crate) fn protecting(inputs: &Map<String, Value>) -> Option<&'static str> {
    let is_on = |value: &Value| match value {
        Value::Bool(on) => *on,
        Value::String(word) => matches!(word.as_str(), "ACTIVE" | "ENABLED" | "true"),
        _ => false,
    };
    SWITCHES
        .iter()
        .copied()
        .find(|key| inputs.get(*key).is_some_and(is_on))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_protected_by_what_its_owner_said_and_by_nothing_else() {
        for (inputs, expected) in [
            (
                json!({"deletionProtection": true}),
                Some("deletionProtection"),
            ),
            (
                json!({"deletionProtection": "ACTIVE"}),
                Some("deletionProtection"),
            ),
            (
                json!({"enableDeletionProtection": true}),
                Some("enableDeletionProtection"),
            ),
            (json!({"deletionProtection": "INACTIVE"}), None),
            (json!({"deletionProtectionEnabled": false}), None),
            (json!({"skipFinalSnapshot": true}), None),
        ] {
            assert_eq!(
                protecting(inputs.as_object().unwrap()),
                expected,
                "{inputs}"
            );
        }
    }
}
