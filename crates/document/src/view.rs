//! Typed access whose errors say what was expected, what is there, and where.

use std::fmt::Display;
use std::str::FromStr;

use nimbus_core::{Error, ErrorCode, Result};
use serde::de::DeserializeOwned;

use crate::document::Document;
use crate::node::{Mapping, Node, NodeKind};
use crate::source::Span;
use crate::suggest::did_you_mean;

/// A value together with its document and its path, such as `config.items[2].name`.
#[derive(Clone, Debug)]
pub struct View<'a> {
    document: &'a Document,
    node: &'a Node,
    path: String,
}

impl<'a> View<'a> {
    pub(crate) fn new(document: &'a Document, node: &'a Node) -> Self {
        Self {
            document,
            node,
            path: String::new(),
        }
    }

    pub fn node(&self) -> &'a Node {
        self.node
    }

    pub fn document(&self) -> &'a Document {
        self.document
    }

    pub fn span(&self) -> Span {
        self.node.span
    }

    /// Path from the root; empty for the root itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of a key that may be absent. A key without a value counts as absent.
    pub fn optional(&self, key: &str) -> Result<Option<View<'a>>> {
        let value = self.mapping()?.get(key).filter(|node| !node.is_null());
        Ok(value.map(|node| self.child(key, node)))
    }

    /// The value of a key that must be there.
    pub fn required(&self, key: &str) -> Result<View<'a>> {
        let missing = || {
            let place = if self.path.is_empty() {
                self.document.name()
            } else {
                &self.path
            };
            self.error(
                format!("{place} has no `{key}`"),
                format!("`{key}` belongs here"),
            )
        };
        self.optional(key)?.ok_or_else(missing)
    }

    pub fn str(&self) -> Result<&'a str> {
        self.node.as_str().ok_or_else(|| self.expected("a text"))
    }

    pub fn bool(&self) -> Result<bool> {
        self.node
            .as_bool()
            .ok_or_else(|| self.expected("true or false"))
    }

    pub fn i64(&self) -> Result<i64> {
        self.node
            .as_i64()
            .ok_or_else(|| self.expected("a whole number"))
    }

    pub fn u64(&self) -> Result<u64> {
        self.node
            .as_u64()
            .ok_or_else(|| self.expected("a whole number that is not negative"))
    }

    pub fn f64(&self) -> Result<f64> {
        self.node.as_f64().ok_or_else(|| self.expected("a number"))
    }

    /// The text of any scalar, numbers and booleans as they are spelled in the file.
    pub fn scalar_text(&self) -> Result<&'a str> {
        match &self.node.kind {
            NodeKind::String(text) => Ok(text),
            NodeKind::Bool(_) | NodeKind::Number(_) => Ok(self.document.source(self.node.span)),
            NodeKind::Null | NodeKind::Sequence(_) | NodeKind::Mapping(_) => {
                Err(self.expected("a text"))
            }
        }
    }

    /// A text that a type can check, such as a name or a version.
    pub fn parse<T: FromStr<Err: Display>>(&self) -> Result<T> {
        let text = self.scalar_text()?;
        text.parse().map_err(|error: T::Err| {
            self.error(
                format!("`{text}` {}is not valid: {error}", self.in_place()),
                "here",
            )
        })
    }

    pub fn mapping(&self) -> Result<&'a Mapping> {
        self.node
            .as_mapping()
            .ok_or_else(|| self.expected("a mapping"))
    }

    /// Keys and values of a mapping as written.
    pub fn entries(&self) -> Result<impl Iterator<Item = (&'a str, View<'a>)>> {
        let mapping = self.mapping()?;
        Ok(mapping
            .iter()
            .map(|(key, entry)| (key, self.child(key, &entry.value))))
    }

    pub fn items(&self) -> Result<impl ExactSizeIterator<Item = View<'a>>> {
        let items = self
            .node
            .as_sequence()
            .ok_or_else(|| self.expected("a list"))?;
        Ok(items.iter().enumerate().map(|(index, node)| View {
            document: self.document,
            node,
            path: format!("{}[{index}]", self.path),
        }))
    }

    /// Refuses keys outside `valid`, with the nearest valid one.
    pub fn only_keys(&self, valid: &[&str]) -> Result<()> {
        for (key, entry) in self.mapping()?.iter() {
            if valid.contains(&key) {
                continue;
            }
            let message = format!("unknown key `{key}`{}", self.under());
            let error = self.document.error(
                ErrorCode::DOCUMENT_SHAPE,
                entry.key_span,
                message,
                "not a known key",
            );
            return Err(match did_you_mean(key, valid.iter().copied()) {
                Some(help) => error.with_help(help),
                None => error,
            });
        }
        Ok(())
    }

    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T> {
        self.document.deserialize_node(self.node)
    }

    /// An error about this value; `label` is written under it.
    pub fn error(&self, message: impl Into<String>, label: impl Into<String>) -> Error {
        self.document
            .error(ErrorCode::DOCUMENT_SHAPE, self.node.span, message, label)
    }

    fn expected(&self, what: &str) -> Error {
        let place = if self.path.is_empty() {
            self.document.name()
        } else {
            &self.path
        };
        let found = self.node.kind.describe();
        let error = self.error(
            format!("{place} must be {what}"),
            format!("this is {found}"),
        );
        match &self.node.kind {
            NodeKind::String(text) if what == "true or false" && yes_or_no(text) => {
                error.with_help("write true or false; yes and no are texts")
            }
            NodeKind::Bool(_) | NodeKind::Number(_) if what == "a text" => {
                error.with_help("put it in quotes")
            }
            _ => error,
        }
    }

    fn child(&self, key: &str, node: &'a Node) -> View<'a> {
        let path = if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        };
        View {
            document: self.document,
            node,
            path,
        }
    }

    fn in_place(&self) -> String {
        if self.path.is_empty() {
            String::new()
        } else {
            format!("in {} ", self.path)
        }
    }

    fn under(&self) -> String {
        if self.path.is_empty() {
            String::new()
        } else {
            format!(" under {}", self.path)
        }
    }
}

fn yes_or_no(text: &str) -> bool {
    ["yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(text))
}
