//! Property values as programs, providers and state files exchange them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::hex::sha256_hex;
use crate::urn::Urn;

/// Properties of a resource. Ordered, so that everything derived from it is stable.
pub type PropertyMap = BTreeMap<String, PropertyValue>;

/// `Debug` never shows what is inside a secret, so a value may go to a log.
#[derive(Clone, PartialEq, Default)]
pub enum PropertyValue {
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    String(String),
    /// A string that is not valid UTF-8.
    Bytes(Vec<u8>),
    Array(Vec<PropertyValue>),
    Object(PropertyMap),
    Asset(Asset),
    Archive(Archive),
    Secret(Box<PropertyValue>),
    /// Not known yet: it appears in previews only.
    Computed,
    /// A value with its own provenance, sent to peers that asked for it.
    Output(Box<OutputValue>),
    ResourceReference(ResourceReference),
}

/// A value that knows whether it is known, secret and what it depends on.
#[derive(Clone, PartialEq, Default)]
pub struct OutputValue {
    /// `None` when not known yet.
    pub value: Option<PropertyValue>,
    pub secret: bool,
    pub dependencies: Vec<Urn>,
}

/// A reference to another resource. Its id is absent for components.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceReference {
    pub urn: Urn,
    /// `None` for components; `Some(Computed)` while unknown.
    pub id: Option<Box<PropertyValue>>,
    pub package_version: String,
}

/// What stands for a secret wherever people can read it.
pub const REDACTED: &str = "[secret]";

impl fmt::Debug for PropertyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => fmt::Debug::fmt(value, f),
            Self::Number(value) => fmt::Debug::fmt(value, f),
            Self::String(text) => fmt::Debug::fmt(text, f),
            Self::Bytes(bytes) => f.debug_tuple("Bytes").field(bytes).finish(),
            Self::Array(items) => fmt::Debug::fmt(items, f),
            Self::Object(map) => fmt::Debug::fmt(map, f),
            Self::Asset(asset) => fmt::Debug::fmt(asset, f),
            Self::Archive(archive) => fmt::Debug::fmt(archive, f),
            Self::Secret(_) => f.write_str(REDACTED),
            Self::Computed => f.write_str("Computed"),
            Self::Output(output) => fmt::Debug::fmt(output, f),
            Self::ResourceReference(reference) => fmt::Debug::fmt(reference, f),
        }
    }
}

impl fmt::Debug for OutputValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Output");
        match &self.value {
            Some(_) if self.secret => shown.field("value", &format_args!("{REDACTED}")),
            Some(value) => shown.field("value", value),
            None => shown.field("value", &PropertyValue::Computed),
        };
        shown.field("dependencies", &self.dependencies).finish()
    }
}

/// A file-like value. The hash identifies the content; it is empty until somebody computed it.
#[derive(Clone, Debug, PartialEq)]
pub enum Asset {
    Text {
        hash: String,
        text: String,
    },
    Path {
        hash: String,
        path: String,
    },
    Uri {
        hash: String,
        uri: String,
    },
    /// Only the hash is known, as in a state file.
    HashOnly {
        hash: String,
    },
}

/// A tree of files.
#[derive(Clone, Debug, PartialEq)]
pub enum Archive {
    Assets {
        hash: String,
        assets: BTreeMap<String, PropertyValue>,
    },
    Path {
        hash: String,
        path: String,
    },
    Uri {
        hash: String,
        uri: String,
    },
    HashOnly {
        hash: String,
    },
}

impl Asset {
    /// Hash of an asset that has no content.
    pub const EMPTY_TEXT_HASH: &'static str =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    pub fn hash(&self) -> &str {
        match self {
            Self::Text { hash, .. }
            | Self::Path { hash, .. }
            | Self::Uri { hash, .. }
            | Self::HashOnly { hash } => hash,
        }
    }

    /// The hash if it is recorded, or can be told without reading anything.
    pub fn known_hash(&self) -> Option<String> {
        match self {
            Self::Text { hash, text } if hash.is_empty() => Some(sha256_hex(text.as_bytes())),
            other if other.hash().is_empty() => None,
            other => Some(other.hash().to_owned()),
        }
    }
}

impl Archive {
    pub fn hash(&self) -> &str {
        match self {
            Self::Assets { hash, .. }
            | Self::Path { hash, .. }
            | Self::Uri { hash, .. }
            | Self::HashOnly { hash } => hash,
        }
    }

    /// The hash if it is recorded.
    pub fn known_hash(&self) -> Option<String> {
        Some(self.hash().to_owned()).filter(|hash| !hash.is_empty())
    }
}

impl PropertyValue {
    pub fn secret(value: PropertyValue) -> Self {
        match value {
            already @ Self::Secret(_) => already,
            other => Self::Secret(Box::new(other)),
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&PropertyMap> {
        match self {
            Self::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Whether any part of the value is not known yet.
    pub fn contains_unknowns(&self) -> bool {
        match self {
            Self::Computed => true,
            Self::Output(output) if output.value.is_none() => true,
            other => other.parts().any(Self::contains_unknowns),
        }
    }

    /// Resources that the outputs inside this value depend on.
    pub fn dependencies(&self) -> BTreeSet<Urn> {
        let mut urns = BTreeSet::new();
        self.walk(&mut |value| {
            if let Self::Output(output) = value {
                urns.extend(output.dependencies.iter().cloned());
            }
        });
        urns
    }

    /// Resources that this value refers to.
    pub fn references(&self) -> BTreeSet<Urn> {
        let mut urns = BTreeSet::new();
        self.walk(&mut |value| {
            if let Self::ResourceReference(reference) = value {
                urns.insert(reference.urn.clone());
            }
        });
        urns
    }

    /// Shows every value inside this one to `visit`, this one first.
    pub fn walk(&self, visit: &mut impl FnMut(&Self)) {
        visit(self);
        self.parts().for_each(|part| part.walk(visit));
    }

    /// The plain value: without marks of secrecy and provenance. What is not known stays so.
    pub fn unwrapped(&self) -> Self {
        match self {
            Self::Secret(inner) => inner.unwrapped(),
            Self::Output(output) => output
                .value
                .as_ref()
                .map_or(Self::Computed, Self::unwrapped),
            Self::Array(items) => Self::Array(items.iter().map(Self::unwrapped).collect()),
            Self::Object(map) => Self::Object(unwrapped_map(map)),
            Self::ResourceReference(reference) => Self::ResourceReference(ResourceReference {
                id: reference.id.as_ref().map(|id| Box::new(id.unwrapped())),
                ..reference.clone()
            }),
            other => other.clone(),
        }
    }

    /// Whether any part of the value is secret.
    pub fn contains_secrets(&self) -> bool {
        match self {
            Self::Secret(_) => true,
            Self::Output(output) if output.secret => true,
            other => other.parts().any(Self::contains_secrets),
        }
    }
}

/// [`PropertyValue::unwrapped`] for every value of a map.
pub fn unwrapped_map(map: &PropertyMap) -> PropertyMap {
    map.iter()
        .map(|(key, value)| (key.clone(), value.unwrapped()))
        .collect()
}

impl From<&str> for PropertyValue {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for PropertyValue {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<bool> for PropertyValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for PropertyValue {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<PropertyMap> for PropertyValue {
    fn from(map: PropertyMap) -> Self {
        Self::Object(map)
    }
}

impl From<Vec<PropertyValue>> for PropertyValue {
    fn from(items: Vec<PropertyValue>) -> Self {
        Self::Array(items)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_support::{urn, value};

    fn output(value: Option<PropertyValue>, dependency: &str) -> PropertyValue {
        PropertyValue::Output(Box::new(OutputValue {
            value,
            secret: false,
            dependencies: vec![urn(dependency)],
        }))
    }

    #[test]
    fn dependencies_are_collected_from_outputs_wherever_they_are() {
        let reference = PropertyValue::ResourceReference(ResourceReference {
            urn: urn("target"),
            id: Some(Box::new(output(None, "in-id"))),
            package_version: String::new(),
        });
        let whole = PropertyValue::secret(PropertyValue::Array(vec![
            output(Some(output(None, "inner")), "outer"),
            PropertyValue::Object([("r".to_owned(), reference)].into()),
        ]));
        assert_eq!(
            whole.dependencies(),
            [urn("inner"), urn("outer"), urn("in-id")].into()
        );
        assert_eq!(whole.references(), [urn("target")].into());
    }

    #[test]
    fn unwrapping_leaves_plain_values_and_unknowns() {
        let whole = PropertyMap::from([
            ("s".to_owned(), value(json!({"$secret": [{"$secret": 1}]}))),
            (
                "o".to_owned(),
                output(Some(PropertyValue::secret(2.0.into())), "a"),
            ),
            ("u".to_owned(), output(None, "a")),
        ]);
        assert_eq!(
            PropertyValue::Object(unwrapped_map(&whole)),
            value(json!({"s": [1], "o": 2, "u": {"$unknown": true}}))
        );
    }

    #[test]
    fn debug_text_has_no_secrets() {
        let hidden = value(json!({"open": 1, "list": [{"$secret": {"k": "hunter2"}}]}));
        assert_eq!(
            format!("{hidden:?}"),
            r#"{"list": [[secret]], "open": 1.0}"#
        );
        let output = PropertyValue::Output(Box::new(OutputValue {
            value: Some("hunter2".into()),
            secret: true,
            dependencies: Vec::new(),
        }));
        assert_eq!(
            format!("{output:?}"),
            "Output { value: [secret], dependencies: [] }"
        );
    }
}
