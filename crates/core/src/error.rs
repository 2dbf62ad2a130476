//! The one transport-neutral error.
//!
//! Crates below keep their own `thiserror` enums where a caller can act on a variant; at their
//! edge they become this. The text for the user and the text for the log are two fields, and there
//! is no `Display` that mixes them: `Display` is the user's text alone.

use std::fmt;
use std::sync::Arc;

use crate::codes::{ErrorCode, ErrorKind};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A place in an input file, with the text so that it can be shown.
#[derive(Clone, Debug)]
pub struct InputSpan {
    /// File name as the user knows it.
    pub name: String,
    pub text: Arc<str>,
    /// Byte offset and length in `text`.
    pub offset: usize,
    pub length: usize,
    /// What is marked there, in a few words.
    pub label: String,
}

impl InputSpan {
    /// Where the span starts, as editors count.
    pub fn line_and_column(&self) -> (usize, usize) {
        line_and_column(&self.text, self.offset)
    }
}

/// Line and column of a byte offset, both from 1, columns in characters. An offset past the end
/// or inside a character counts as the nearest place before it.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// See the module's documentation.
pub struct Error(Box<ErrorInner>);

struct ErrorInner {
    code: ErrorCode,
    message: String,
    detail: Option<String>,
    help: Option<String>,
    spans: Vec<InputSpan>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// `message` is for the user: what is wrong and where, without a final full stop.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorInner {
            code,
            message: message.into(),
            detail: None,
            help: None,
            spans: Vec::new(),
            source: None,
        }))
    }

    /// What the user can do next.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Text for the log only.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    pub fn with_span(mut self, span: InputSpan) -> Self {
        self.0.spans.push(span);
        self
    }

    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.code.kind()
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    pub fn spans(&self) -> &[InputSpan] {
        &self.0.spans
    }

    pub fn retryable(&self) -> bool {
        self.0.code.retryable()
    }

    /// Code, message, places, detail and every cause, for the log.
    pub fn log_text(&self) -> String {
        let mut text = format!("{}: {}", self.0.code, self.0.message);
        if let Some(detail) = &self.0.detail {
            text.push_str("; ");
            text.push_str(detail);
        }
        for span in &self.0.spans {
            let (line, column) = span.line_and_column();
            text.push_str(&format!("; at {}:{line}:{column}", span.name));
        }
        for cause in crate::causes(self) {
            text.push_str(&format!("; caused by: {cause}"));
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.log_text())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_where() {
        let error = Error::new(ErrorCode::DOCUMENT_SHAPE, "no").with_span(InputSpan {
            name: "a.yaml".into(),
            text: "x: 1\né: y\n".into(),
            offset: 9,
            length: 1,
            label: "here".into(),
        });
        assert_eq!(error.log_text(), "NIM-0007: no; at a.yaml:2:4");
        assert_eq!(line_and_column("é", 1), (1, 1), "inside a character");
        assert_eq!(line_and_column("a\n", 99), (2, 1), "past the end");
    }

    #[test]
    fn the_log_has_detail_and_causes_and_the_user_does_not() {
        let cause = std::io::Error::other("disk on fire");
        let error = Error::new(ErrorCode::FILE_UNREADABLE, "cannot read a.yaml")
            .with_detail("inode 7")
            .with_source(cause);
        assert_eq!(error.to_string(), "cannot read a.yaml");
        assert_eq!(
            error.log_text(),
            "NIM-0003: cannot read a.yaml; inode 7; caused by: disk on fire"
        );
    }
}
