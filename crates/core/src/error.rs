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

/// See the module's documentation.
pub struct Error(Box<Inner>);

struct Inner {
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
        Self(Box::new(Inner {
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

    /// Code, message, detail and every cause, for the log.
    pub fn log_text(&self) -> String {
        let mut text = format!("{}: {}", self.0.code, self.0.message);
        if let Some(detail) = &self.0.detail {
            text.push_str("; ");
            text.push_str(detail);
        }
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str("; caused by: ");
            text.push_str(&error.to_string());
            cause = error.source();
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
        self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
