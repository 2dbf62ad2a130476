//! Strict JSON to tree.
//!
//! JSON is not read as YAML: surrogate escapes, long keys and the exact grammar differ, and a
//! person who writes a trailing comma deserves to be told so.

use nimbus_core::{Error, ErrorCode, Result};

use crate::document::DocumentLimits;
use crate::node::{Mapping, MappingEntry, Node, NodeKind, Number};
use crate::source::{SourceText, Span};

/// Reads the one value in `source`; `start` is where its text begins, after a byte order mark.
pub(crate) fn parse(source: &SourceText, start: usize, limits: &DocumentLimits) -> Result<Node> {
    let mut reader = Reader {
        source,
        text: &source.text,
        at: start,
        nodes: 0,
        limits,
    };
    reader.space();
    let root = reader.value(0)?;
    reader.space();
    if reader.at < reader.text.len() {
        return Err(reader.wrong("there is more after the end of the value", None));
    }
    Ok(root)
}

struct Reader<'a> {
    source: &'a SourceText,
    text: &'a str,
    at: usize,
    nodes: usize,
    limits: &'a DocumentLimits,
}

impl Reader<'_> {
    /// Recursion is bounded by the depth limit, which is checked before each level.
    fn value(&mut self, depth: usize) -> Result<Node> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            let nodes = self.limits.nodes;
            return Err(self.over_limit(format!("has more than {nodes} values")));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.mapping(depth)?,
            Some(b'[') => self.sequence(depth)?,
            Some(b'"') => NodeKind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => NodeKind::Number(self.number()?),
            Some(byte) if byte.is_ascii_alphabetic() => self.word()?,
            Some(b'\'') => {
                return Err(self.wrong("a text in single quotes", Some("use double quotes")));
            }
            Some(b']' | b'}') => {
                return Err(self.wrong("a value is missing", Some("remove the comma before it")));
            }
            Some(b'/') => return Err(self.comment()),
            Some(_) => return Err(self.wrong("a value is expected", None)),
            None => return Err(self.wrong("the file ends where a value is expected", None)),
        };
        Ok(Node {
            kind,
            span: Span::new(start, self.at),
        })
    }

    fn mapping(&mut self, depth: usize) -> Result<NodeKind> {
        self.enter(depth)?;
        let mut mapping = Mapping::default();
        if self.take(b'}') {
            return Ok(NodeKind::Mapping(mapping));
        }
        loop {
            let (key, key_span) = self.key(&mapping)?;
            let value = self.value(depth + 1)?;
            mapping
                .entries
                .insert(key, MappingEntry { key_span, value });
            if !self.more(b'}', "a comma or `}` is expected")? {
                return Ok(NodeKind::Mapping(mapping));
            }
        }
    }

    fn key(&mut self, mapping: &Mapping) -> Result<(String, Span)> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => {}
            Some(b'}') => {
                let help = Some("remove the comma before `}`");
                return Err(self.wrong("a comma without another key", help));
            }
            Some(b'/') => return Err(self.comment()),
            _ => return Err(self.wrong("a key in double quotes is expected", None)),
        }
        let key = self.string()?;
        let span = Span::new(start, self.at);
        if let Some(first) = mapping.entry(&key) {
            let line = self.source.position(first.key_span.start).line;
            let message = format!("the key `{key}` is there twice");
            return Err(self
                .source
                .error(ErrorCode::DOCUMENT_SYNTAX, span, message, "second time")
                .with_help(format!(
                    "it is already set on line {line}; keep one of them"
                )));
        }
        self.space();
        if !self.take(b':') {
            return Err(self.wrong("a `:` is expected after the key", None));
        }
        Ok((key, span))
    }

    fn sequence(&mut self, depth: usize) -> Result<NodeKind> {
        self.enter(depth)?;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(NodeKind::Sequence(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if !self.more(b']', "a comma or `]` is expected")? {
                return Ok(NodeKind::Sequence(items));
            }
        }
    }

    fn enter(&mut self, depth: usize) -> Result<()> {
        if depth >= self.limits.depth {
            let depth = self.limits.depth;
            return Err(self.over_limit(format!("nests deeper than {depth} levels")));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    /// After a member: true for a comma, false for the closing bracket.
    fn more(&mut self, close: u8, expected: &str) -> Result<bool> {
        self.space();
        if self.take(b',') {
            return Ok(true);
        }
        if self.take(close) {
            return Ok(false);
        }
        Err(self.wrong(expected, None))
    }

    fn word(&mut self) -> Result<NodeKind> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let kind = match &rest[..length] {
            "null" => NodeKind::Null,
            "true" => NodeKind::Bool(true),
            "false" => NodeKind::Bool(false),
            word => {
                let message = format!("`{word}` is not a JSON value");
                return Err(self.wrong(&message, Some("put a text in double quotes")));
            }
        };
        self.at += length;
        Ok(kind)
    }

    fn number(&mut self) -> Result<Number> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let whole = self.digits()?;
        if whole.len() > 1 && whole.starts_with('0') {
            self.at = start;
            return Err(self.wrong("a number starts with 0", Some("remove the leading zero")));
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
            integer = false;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
            integer = false;
        }
        let text = &self.text[start..self.at];
        if integer && text != "-0" {
            if let Ok(value) = text.parse() {
                return Ok(Number::Int(value));
            }
            if let Ok(value) = text.parse() {
                return Ok(Number::UInt(value));
            }
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Number::Float(value)),
            _ => {
                self.at = start;
                Err(self.wrong("a number is out of range", None))
            }
        }
    }

    fn digits(&mut self) -> Result<&str> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if start == self.at {
            return Err(self.wrong("a digit is expected", None));
        }
        Ok(&self.text[start..self.at])
    }

    fn string(&mut self) -> Result<String> {
        let open = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .find(|c| c == '"' || c == '\\' || c < ' ')
                .unwrap_or(rest.len());
            text.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(b'\n' | b'\r') => {
                    return Err(self.wrong(
                        "a text runs over the end of its line",
                        Some("close the quote, or write the line break as \\n"),
                    ));
                }
                Some(_) => {
                    let help = Some("write it as an escape such as \\t");
                    return Err(self.wrong("a control character inside a text", help));
                }
                None => {
                    self.at = open;
                    return Err(self.wrong("a quoted text is never closed", None));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let start = self.at;
        let letter = self.text.as_bytes().get(start + 1).copied();
        self.at += 2;
        Ok(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(start),
            Some(_) | None => {
                self.at = start;
                let help = Some("double the backslash if it is meant as such");
                return Err(self.wrong("a backslash escape is not known", help));
            }
        })
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char> {
        let first = self.hex4(start)?;
        if let Some(single) = char::from_u32(first) {
            return Ok(single);
        }
        if first < 0xDC00 && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let second = self.hex4(start)?;
            if (0xDC00..0xE000).contains(&second) {
                let combined = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return char::from_u32(combined).ok_or_else(|| self.unpaired(start));
            }
        }
        Err(self.unpaired(start))
    }

    fn unpaired(&mut self, escape: usize) -> Error {
        self.at = escape;
        self.wrong("half of a surrogate pair", None)
    }

    fn hex4(&mut self, escape: usize) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                self.at += 4;
                Ok(value)
            }
            None => {
                self.at = escape;
                Err(self.wrong("\\u needs four hexadecimal digits", None))
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes one punctuation byte and the space after it.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
            if !matches!(byte, b'}' | b']') {
                self.space();
            }
        }
        found
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn comment(&self) -> Error {
        self.wrong(
            "JSON has no comments",
            Some("remove it, or name the file .yaml"),
        )
    }

    fn wrong(&self, what: &str, help: Option<&str>) -> Error {
        let next = self.text[self.at..]
            .chars()
            .next()
            .map_or(0, char::len_utf8);
        let error = self.source.error(
            ErrorCode::DOCUMENT_SYNTAX,
            Span::new(self.at, self.at + next),
            format!("{} is not valid JSON: {what}", self.source.name),
            "here",
        );
        match help {
            Some(help) => error.with_help(help),
            None => error,
        }
    }

    fn over_limit(&self, what: String) -> Error {
        self.source.error(
            ErrorCode::DOCUMENT_LIMIT,
            Span::at(self.at),
            format!("{} {what}", self.source.name),
            "the limit is reached here",
        )
    }
}
