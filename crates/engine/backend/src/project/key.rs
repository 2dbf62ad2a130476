//! Configuration keys: `<namespace>:<name>`.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ConfigKey {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a configuration key")]
pub struct KeyError {
    pub text: String,
}

impl ConfigKey {
    /// `None` for a namespace with a colon: the key could not be read back.
    pub fn new(namespace: &str, name: &str) -> Option<Self> {
        let fits = !namespace.contains(':') && !name.contains(':');
        fits.then(|| Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Reads `<namespace>:<name>` or the older `<namespace>:config:<name>`.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let parts: Vec<&str> = text.split(':').collect();
        let key = match parts[..] {
            [namespace, name] => Self::new(namespace, name),
            [namespace, "config", name] => Self::new(namespace, name),
            _ => None,
        };
        key.ok_or_else(|| KeyError {
            text: text.to_owned(),
        })
    }

    /// The same, where a name alone means the project's own key.
    pub fn parse_in(text: &str, project: &str) -> Result<Self, KeyError> {
        if text.contains(':') {
            return Self::parse(text);
        }
        let key = Self::new(project, text).filter(|_| !text.is_empty());
        key.ok_or_else(|| KeyError {
            text: text.to_owned(),
        })
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ConfigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.namespace, self.name)
    }
}

impl TryFrom<String> for ConfigKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::parse(&text)
    }
}

impl From<ConfigKey> for String {
    fn from(key: ConfigKey) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_their_three_spellings() {
        let shown = |text: &str| ConfigKey::parse_in(text, "shop").map(|key| key.to_string());
        assert_eq!(shown("size").unwrap(), "shop:size");
        assert_eq!(shown("aws:region").unwrap(), "aws:region");
        assert_eq!(shown("aws:config:region").unwrap(), "aws:region");
        assert_eq!(shown("a.b[0]").unwrap(), "shop:a.b[0]");
        for text in ["", "a:b:c", "a:b:c:d"] {
            assert!(shown(text).is_err(), "{text}");
        }
        assert!(
            ConfigKey::parse("size").is_err(),
            "no project to complete it with"
        );
    }
}
