//! A parsed file, and the checks that come before any parser.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use nimbus_core::{Error, ErrorCode, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::node::{Node, NodeKind, Number};
use crate::source::{Position, SourceText, Span};
use crate::view::View;
use crate::{de, json, yaml};

/// A file that was read: its text and the tree of its values.
#[derive(Clone, Debug)]
pub struct Document {
    source: SourceText,
    root: Node,
}

/// The language of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentFormat {
    Yaml,
    Json,
}

/// How much of a file Nimbus is willing to hold.
#[derive(Clone, Copy, Debug)]
pub struct DocumentLimits {
    pub bytes: usize,
    /// Collections within collections.
    pub depth: usize,
    /// Values after aliases are expanded.
    pub nodes: usize,
}

impl Default for DocumentLimits {
    /// Far above any file written by hand, far below what hurts.
    fn default() -> Self {
        Self {
            bytes: 16 << 20,
            depth: 100,
            nodes: 1_000_000,
        }
    }
}

impl DocumentFormat {
    /// JSON for names that end in `.json`, else YAML.
    pub fn of_name(name: &str) -> Self {
        let is_json = Path::new(name)
            .extension()
            .is_some_and(|ext| ext.eq_ignore_ascii_case("json"));
        if is_json { Self::Json } else { Self::Yaml }
    }
}

impl Document {
    /// Reads text. `name` is how the user knows the file; its extension decides the format.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        Self::parse_with(
            name,
            text,
            DocumentFormat::of_name(name),
            &DocumentLimits::default(),
        )
    }

    /// Reads bytes that should be UTF-8.
    pub fn parse_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        Self::parse(name, utf8(name, bytes)?)
    }

    pub fn parse_with(
        name: &str,
        text: &str,
        format: DocumentFormat,
        limits: &DocumentLimits,
    ) -> Result<Self> {
        if text.len() > limits.bytes {
            return Err(too_large(name, limits));
        }
        let source = SourceText::new(name, text);
        refuse_control_characters(&source)?;
        let start = if text.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        let root = match format {
            DocumentFormat::Yaml => yaml::parse(&source, start, limits)?,
            DocumentFormat::Json => json::parse(&source, start, limits)?,
        };
        Ok(Self { source, root })
    }

    /// Reads a file, with the path as the name shown to the user.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_as(path, &path.display().to_string())
    }

    /// Reads a file that the user knows by another name, such as a path relative to `-C`.
    pub fn read_as(path: &Path, name: &str) -> Result<Self> {
        let limits = DocumentLimits::default();
        let unreadable = |error: std::io::Error| {
            Error::new(
                ErrorCode::FILE_UNREADABLE,
                format!("cannot read {name}: {error}"),
            )
            .with_source(error)
        };
        let mut bytes = Vec::new();
        // One byte over the limit is enough to know, whatever the file system says of its size.
        File::open(path)
            .and_then(|file| file.take(limits.bytes as u64 + 1).read_to_end(&mut bytes))
            .map_err(unreadable)?;
        if bytes.len() > limits.bytes {
            return Err(too_large(name, &limits));
        }
        Self::parse_bytes(name, &bytes)
    }

    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The whole file, for edits in place: spans count from its start.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Typed access from the root, with errors that point into the file.
    pub fn view(&self) -> View<'_> {
        View::new(self, &self.root)
    }

    /// The exact text of a value as it is written.
    pub fn source(&self, span: Span) -> &str {
        self.source.slice(span)
    }

    pub fn position(&self, span: Span) -> Position {
        self.source.position(span.start)
    }

    /// An error that points at a place in this file; `label` is written under the marked text.
    pub fn error(
        &self,
        code: ErrorCode,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Error {
        self.source.error(code, span, message, label)
    }

    /// Reads the whole document as a serde type.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T> {
        self.deserialize_node(&self.root)
    }

    /// Reads one value of this document as a serde type.
    pub fn deserialize_node<T: DeserializeOwned>(&self, node: &Node) -> Result<T> {
        de::deserialize(self, node)
    }

    /// The same value for code that speaks JSON. Infinities and NaN have no JSON form.
    pub fn to_json(&self, node: &Node) -> Result<Value> {
        Ok(match &node.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(value) => Value::Bool(*value),
            NodeKind::Number(Number::Int(value)) => Value::from(*value),
            NodeKind::Number(Number::UInt(value)) => Value::from(*value),
            NodeKind::Number(Number::Float(value)) => {
                let number = serde_json::Number::from_f64(*value);
                Value::Number(number.ok_or_else(|| {
                    let message = "infinity and NaN have no JSON form";
                    self.error(
                        ErrorCode::DOCUMENT_SHAPE,
                        node.span,
                        message,
                        "not a finite number",
                    )
                })?)
            }
            NodeKind::String(text) => Value::String(text.clone()),
            NodeKind::Sequence(items) => Value::Array(
                items
                    .iter()
                    .map(|item| self.to_json(item))
                    .collect::<Result<_>>()?,
            ),
            NodeKind::Mapping(mapping) => Value::Object(
                mapping
                    .iter()
                    .map(|(key, entry)| Ok((key.to_owned(), self.to_json(&entry.value)?)))
                    .collect::<Result<_>>()?,
            ),
        })
    }
}

fn too_large(name: &str, limits: &DocumentLimits) -> Error {
    let mib = limits.bytes >> 20;
    Error::new(
        ErrorCode::DOCUMENT_LIMIT,
        format!("{name} is larger than {mib} MiB"),
    )
    .with_help("check that this is the file you meant; split it if it is")
}

fn utf8<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let line = bytes[..error.valid_up_to()]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1;
    let message = if utf16 {
        format!("{name} is UTF-16, not UTF-8")
    } else {
        format!("{name} has a byte on line {line} that is not UTF-8 text")
    };
    Err(Error::new(ErrorCode::DOCUMENT_SYNTAX, message).with_help("save the file as UTF-8"))
}

/// A NUL or an escape character never belongs in these files, and it could hide text on a
/// terminal.
fn refuse_control_characters(source: &SourceText) -> Result<()> {
    let control = |c: char| (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || c == '\u{7f}';
    let Some((offset, found)) = source.text.char_indices().find(|(_, c)| control(*c)) else {
        return Ok(());
    };
    Err(source
        .error(
            ErrorCode::DOCUMENT_SYNTAX,
            Span::new(offset, offset + 1),
            format!(
                "{} has the control character U+{:04X}",
                source.name, found as u32
            ),
            "control character",
        )
        .with_help("remove it; inside double quotes write it as an escape"))
}
