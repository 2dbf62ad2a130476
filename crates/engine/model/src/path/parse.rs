//! Reading a path from text.

use super::{PathSegment, WILDCARD};

/// Why a text is not a property path. Offsets are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("property path {path:?} must start with a name or an index")]
    LeadingDot { path: String },
    #[error("property path {path:?} ends with a dot; a name or an index is missing")]
    TrailingDot { path: String },
    #[error("property path {path:?}: the quote opened at {offset} is not closed")]
    OpenQuote { path: String, offset: usize },
    #[error("property path {path:?}: the bracket opened at {offset} is not closed")]
    OpenBracket { path: String, offset: usize },
    #[error("property path {path:?}: {index:?} is not an array index; quote it if it is a key")]
    BadIndex { path: String, index: String },
}

impl From<PathError> for nimbus_core::Error {
    fn from(error: PathError) -> Self {
        Self::new(nimbus_core::ErrorCode::PROPERTY_PATH, error.to_string())
            .with_help("write paths like a.b[0][\"key with spaces\"]")
    }
}

pub(super) fn parse(path: &str) -> Result<Vec<PathSegment>, PathError> {
    if path.starts_with('.') {
        return Err(PathError::LeadingDot {
            path: path.to_owned(),
        });
    }
    let mut segments = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let offset = path.len() - rest.len();
        let (segment, length) = if let Some(after_dot) = rest.strip_prefix('.') {
            if after_dot.is_empty() {
                return Err(PathError::TrailingDot {
                    path: path.to_owned(),
                });
            }
            (None, 1)
        } else if rest.starts_with("[\"") {
            let (key, length) = quoted(path, offset)?;
            (Some(PathSegment::Key(key)), length)
        } else if rest.starts_with('[') {
            let (segment, length) = indexed(path, offset)?;
            (Some(segment), length)
        } else {
            let length = rest.find(['.', '[']).unwrap_or(rest.len());
            (Some(PathSegment::Key(rest[..length].to_owned())), length)
        };
        segments.extend(segment);
        rest = &rest[length..];
    }
    Ok(segments)
}

/// A key written `["…"]` at `offset`, and the length of that text. Only `\"` is an escape.
fn quoted(path: &str, offset: usize) -> Result<(String, usize), PathError> {
    let start = offset + 2;
    let mut key = String::new();
    let mut chars = path[start..].char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' if path[start + at + 1..].starts_with(']') => return Ok((key, at + 4)),
            '"' => {
                return Err(PathError::OpenBracket {
                    path: path.to_owned(),
                    offset,
                });
            }
            '\\' if matches!(chars.peek(), Some((_, '"'))) => {
                chars.next();
                key.push('"');
            }
            other => key.push(other),
        }
    }
    Err(PathError::OpenQuote {
        path: path.to_owned(),
        offset: offset + 1,
    })
}

/// An index or a wildcard written `[…]` at `offset`, and the length of that text.
fn indexed(path: &str, offset: usize) -> Result<(PathSegment, usize), PathError> {
    let inside = &path[offset + 1..];
    let Some(end) = inside.find(']') else {
        return Err(PathError::OpenBracket {
            path: path.to_owned(),
            offset,
        });
    };
    let text = &inside[..end];
    let segment = if text == WILDCARD {
        PathSegment::Key(WILDCARD.to_owned())
    } else {
        PathSegment::Index(text.parse().map_err(|_| PathError::BadIndex {
            path: path.to_owned(),
            index: text.to_owned(),
        })?)
    };
    Ok((segment, end + 2))
}
