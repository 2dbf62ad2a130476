//! What must not be recorded.
//!
//! Whatever sits under a key whose name says that it is a secret is replaced, whole. Guessing
//! errs on the safe side: a harmless value that is hidden is a nuisance, a recorded secret is for
//! ever, since the chain does not let it be removed.

use serde_json::Value;

/// What stands in a secret's place.
pub const REDACTED: &str = "[redacted]";

/// Words that make a key secret, wherever they stand in it.
const SECRET_WORDS: &[&str] = &[
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "passphrase",
    "password",
    "passwd",
    "privatekey",
    "recoverycode",
    "secret",
    "signature",
    "token",
];

/// Keys that only look secret.
const HARMLESS: &[&str] = &["tokenexpiry", "passwordchangedat", "secretversion"];

/// The value with every secret replaced.
pub fn redact(value: Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .into_iter()
                .map(|(key, value)| {
                    let value = if is_secret(&key) && !value.is_null() {
                        Value::from(REDACTED)
                    } else {
                        redact(value)
                    };
                    (key, value)
                })
                .collect(),
        ),
        Value::Array(items) => items.into_iter().map(redact).collect(),
        scalar => scalar,
    }
}

fn is_secret(key: &str) -> bool {
    let plain: String = key
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    !HARMLESS.contains(&plain.as_str()) && SECRET_WORDS.iter().any(|word| plain.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_go_at_any_depth_and_in_any_spelling() {
        let value = json!({
            "name": "visible",
            "Password": "canary",
            "nested": [{"api-key": "canary", "refresh_token": {"deep": ["canary"]}}],
            "AWS_SECRET_ACCESS_KEY": "canary",
            "privateKey": "canary",
        });
        let text = redact(value).to_string();
        assert!(!text.contains("canary"), "{text}");
        assert!(text.contains("visible"), "{text}");
        assert_eq!(text.matches(REDACTED).count(), 5, "{text}");
    }

    #[test]
    fn an_absent_secret_stays_absent() {
        assert_eq!(redact(json!({"password": null})), json!({"password": null}));
        assert_eq!(
            redact(json!({"token_expiry": 60})),
            json!({"token_expiry": 60})
        );
    }
}
