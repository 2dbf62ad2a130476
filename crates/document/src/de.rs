//! serde types from a tree.
//!
//! Values are handed to serde straight from the nodes, so that an error is caught at the value it
//! is about and can point at it; going through an intermediate format would lose the place.

use std::fmt::{self, Display};

use nimbus_core::{ErrorCode, Result};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, IntoDeserializer as _, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::document::Document;
use crate::node::{MappingEntry, Node, NodeKind, Number};
use crate::source::Span;
use crate::suggest::did_you_mean;

pub(crate) fn deserialize<T: DeserializeOwned>(document: &Document, node: &Node) -> Result<T> {
    T::deserialize(NodeDeserializer(node)).map_err(|DecodeFailure(failure)| {
        let span = failure.span.unwrap_or(node.span);
        let error = document.error(
            ErrorCode::DOCUMENT_SHAPE,
            span,
            format!("{}: {}", document.name(), failure.message),
            "here",
        );
        match failure.help {
            Some(help) => error.with_help(help),
            None => error,
        }
    })
}

/// Boxed because serde passes it through every level by value.
#[derive(Debug)]
struct DecodeFailure(Box<FailureAt>);

#[derive(Debug)]
struct FailureAt {
    message: String,
    help: Option<String>,
    span: Option<Span>,
}

impl DecodeFailure {
    /// Remembers the innermost place only.
    fn at(mut self, span: Span) -> Self {
        self.0.span.get_or_insert(span);
        self
    }

    fn with_help(message: String, help: Option<String>) -> Self {
        Self(Box::new(FailureAt {
            message,
            help,
            span: None,
        }))
    }
}

impl de::Error for DecodeFailure {
    fn custom<T: Display>(message: T) -> Self {
        Self::with_help(message.to_string(), None)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let help = did_you_mean(field, expected.iter().copied());
        Self::with_help(format!("unknown key `{field}`"), help)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let help = did_you_mean(variant, expected.iter().copied());
        Self::with_help(format!("`{variant}` is not one of the valid values"), help)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::with_help(format!("the key `{field}` is missing"), None)
    }
}

impl Display for DecodeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for DecodeFailure {}

/// Private, so that serde's view of a node is nobody else's business.
#[derive(Clone, Copy)]
struct NodeDeserializer<'de>(&'de Node);

impl<'de> de::Deserializer<'de> for NodeDeserializer<'de> {
    type Error = DecodeFailure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeFailure> {
        match &self.0.kind {
            NodeKind::Null => visitor.visit_unit(),
            NodeKind::Bool(value) => visitor.visit_bool(*value),
            NodeKind::Number(Number::Int(value)) => visitor.visit_i64(*value),
            NodeKind::Number(Number::UInt(value)) => visitor.visit_u64(*value),
            NodeKind::Number(Number::Float(value)) => visitor.visit_f64(*value),
            NodeKind::String(text) => visitor.visit_borrowed_str(text),
            NodeKind::Sequence(items) => visitor.visit_seq(NodeItems(items.iter())),
            NodeKind::Mapping(mapping) => visitor.visit_map(Members {
                entries: mapping.entries.iter(),
                value: None,
            }),
        }
        .map_err(|failure| failure.at(self.0.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeFailure> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeFailure> {
        visitor
            .visit_newtype_struct(self)
            .map_err(|failure| failure.at(self.0.span))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeFailure> {
        match &self.0.kind {
            NodeKind::String(text) => {
                visitor.visit_enum(StrDeserializer::<DecodeFailure>::new(text))
            }
            NodeKind::Mapping(mapping) if mapping.len() == 1 => match mapping.entries.first() {
                Some((key, entry)) => visitor.visit_enum(Variant { key, entry }),
                None => Err(de::Error::custom("a variant is expected")),
            },
            _ => Err(de::Error::custom(
                "a text or a mapping with one key is expected",
            )),
        }
        .map_err(|failure: DecodeFailure| failure.at(self.0.span))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DecodeFailure> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

struct NodeItems<'de>(std::slice::Iter<'de, Node>);

impl<'de> SeqAccess<'de> for NodeItems<'de> {
    type Error = DecodeFailure;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeFailure> {
        self.0
            .next()
            .map(|node| {
                seed.deserialize(NodeDeserializer(node))
                    .map_err(|f| f.at(node.span))
            })
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Members<'de> {
    entries: indexmap::map::Iter<'de, String, MappingEntry>,
    value: Option<&'de Node>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = DecodeFailure;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeFailure> {
        let Some((key, entry)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(&entry.value);
        seed.deserialize(StrDeserializer::<DecodeFailure>::new(key))
            .map(Some)
            .map_err(|failure| failure.at(entry.key_span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeFailure> {
        let Some(node) = self.value.take() else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        seed.deserialize(NodeDeserializer(node))
            .map_err(|failure| failure.at(node.span))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// An externally tagged variant: one key, whose value is the content.
struct Variant<'de> {
    key: &'de str,
    entry: &'de MappingEntry,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = DecodeFailure;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), DecodeFailure> {
        let name: StrDeserializer<'_, DecodeFailure> = self.key.into_deserializer();
        let value = seed
            .deserialize(name)
            .map_err(|f| f.at(self.entry.key_span))?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = DecodeFailure;

    fn unit_variant(self) -> Result<(), DecodeFailure> {
        if self.entry.value.is_null() {
            return Ok(());
        }
        let failure: DecodeFailure = de::Error::custom(format!("`{}` takes no value", self.key));
        Err(failure.at(self.entry.value.span))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, DecodeFailure> {
        seed.deserialize(NodeDeserializer(&self.entry.value))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeFailure> {
        de::Deserializer::deserialize_any(NodeDeserializer(&self.entry.value), visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeFailure> {
        de::Deserializer::deserialize_any(NodeDeserializer(&self.entry.value), visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Program {
        name: String,
        runtime: Runtime,
        #[serde(default)]
        retries: u8,
        #[serde(default)]
        tags: BTreeMap<String, Option<String>>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Runtime {
        Nodejs,
        Python { toolchain: String },
        Binary(Vec<String>),
    }

    fn read(text: &str) -> Result<Program> {
        Document::parse("p.yaml", text)?.deserialize()
    }

    #[test]
    fn structs_enums_options_and_maps_are_read() {
        let program = read("name: web\nruntime: nodejs\nretries: 3\ntags: {a: x, b: }\n").unwrap();
        assert_eq!(
            program,
            Program {
                name: "web".into(),
                runtime: Runtime::Nodejs,
                retries: 3,
                tags: [
                    ("a".to_owned(), Some("x".to_owned())),
                    ("b".to_owned(), None)
                ]
                .into(),
            }
        );
        let runtime = read("name: w\nruntime: {python: {toolchain: uv}}\n")
            .unwrap()
            .runtime;
        assert_eq!(
            runtime,
            Runtime::Python {
                toolchain: "uv".into()
            }
        );
        let runtime = read("name: w\nruntime: {binary: [a, b]}\n")
            .unwrap()
            .runtime;
        assert_eq!(runtime, Runtime::Binary(vec!["a".into(), "b".into()]));
    }

    #[track_caller]
    fn refused(text: &str, line: usize, column: usize, message: &str, help: Option<&str>) {
        let error = read(text).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DOCUMENT_SHAPE);
        assert!(error.message().contains(message), "{}", error.message());
        assert_eq!(error.help(), help);
        let document = Document::parse("p.yaml", text).unwrap();
        let position = document.position(Span::at(error.spans()[0].offset));
        assert_eq!(
            (position.line, position.column),
            (line, column),
            "{}",
            error.message()
        );
    }

    #[test]
    fn errors_point_at_the_innermost_value() {
        let head = "name: web\nruntime: nodejs\n";
        refused(
            "name: 5\nruntime: nodejs\n",
            1,
            7,
            "expected a string",
            None,
        );
        refused(&format!("{head}retries: 300\n"), 3, 10, "300", None);
        refused(
            &format!("{head}tags:\n  a: [1]\n"),
            4,
            6,
            "invalid type",
            None,
        );
        refused(
            &format!("{head}retires: 1\n"),
            3,
            1,
            "retires",
            Some("did you mean `retries`?"),
        );
        refused("runtime: nodejs\n", 1, 1, "`name` is missing", None);
        refused(
            "name: w\nruntime: nodjs\n",
            2,
            10,
            "nodjs",
            Some("did you mean `nodejs`?"),
        );
        refused(
            "name: w\nruntime: {python: {toolchain: 1}}\n",
            2,
            31,
            "invalid type",
            None,
        );
        refused(
            "name: w\nruntime: {pyton: {}}\n",
            2,
            11,
            "pyton",
            Some("did you mean `python`?"),
        );
        refused(
            "name: w\nruntime: {nodejs: 1}\n",
            2,
            19,
            "takes no value",
            None,
        );
    }
}
