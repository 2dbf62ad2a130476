//! The tree: what a document says, value by value, each with its place.

use indexmap::IndexMap;

use crate::source::Span;

/// One value and where it stands.
///
/// A value that came through an alias keeps the place of its anchor: that is where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub kind: NodeKind,
    pub span: Span,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Sequence(Vec<Node>),
    Mapping(Mapping),
}

/// A number as the source meant it. Ask [`crate::Document::source`] for its exact spelling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i64),
    /// Only for values beyond `i64::MAX`.
    UInt(u64),
    Float(f64),
}

/// Keys in the order they are written; no key occurs twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    pub(crate) entries: IndexMap<String, MappingEntry>,
}

/// The value of a key, and where the key stands.
#[derive(Clone, Debug, PartialEq)]
pub struct MappingEntry {
    pub key_span: Span,
    pub value: Node,
}

impl Node {
    /// The value of a key; `None` when this is not a mapping or has no such key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_mapping()?.get(key)
    }

    pub fn is_null(&self) -> bool {
        matches!(self.kind, NodeKind::Null)
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            NodeKind::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The text of a string. Numbers and booleans are not strings.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_i64(&self) -> Option<i64> {
        match self.kind {
            NodeKind::Number(Number::Int(value)) => Some(value),
            _ => None,
        }
    }

    pub fn as_u64(&self) -> Option<u64> {
        match self.kind {
            NodeKind::Number(Number::Int(value)) => u64::try_from(value).ok(),
            NodeKind::Number(Number::UInt(value)) => Some(value),
            _ => None,
        }
    }

    /// Any number, rounded to the nearest float.
    pub fn as_f64(&self) -> Option<f64> {
        match self.kind {
            NodeKind::Number(number) => Some(number.as_f64()),
            _ => None,
        }
    }

    pub fn as_sequence(&self) -> Option<&[Node]> {
        match &self.kind {
            NodeKind::Sequence(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_mapping(&self) -> Option<&Mapping> {
        match &self.kind {
            NodeKind::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }
}

impl NodeKind {
    /// The kind in words, for messages: "a list", "a number".
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Number(Number::Float(_)) => "a number with a fraction",
            Self::Number(_) => "a whole number",
            Self::String(_) => "a text",
            Self::Sequence(_) => "a list",
            Self::Mapping(_) => "a mapping",
        }
    }
}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::UInt(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl Mapping {
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    pub fn entry(&self, key: &str) -> Option<&MappingEntry> {
        self.entries.get(key)
    }

    /// Keys and values as written.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &MappingEntry)> {
        self.entries
            .iter()
            .map(|(key, entry)| (key.as_str(), entry))
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
