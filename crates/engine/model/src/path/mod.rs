//! Property paths: `a.b[0]["c d"].*`.
//!
//! A path is written by users (ignoreChanges, replaceOnChanges, config keys) and by providers
//! (detailed diffs), so reading is as tolerant as the official engine: a bare name runs up to the
//! next `.` or `[` whatever it contains, and a `.` before a `[` is accepted.
//!
//! `*` matches every key or index where paths are compared ([`PropertyPath::contains`]) or applied
//! to many places ([`PropertyPath::reset`]); everywhere else it is an ordinary key.

mod parse;
mod reset;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::{PropertyMap, PropertyValue};

pub use parse::PathError;

const WILDCARD: &str = "*";

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathSegment {
    Key(String),
    /// Negative indices can be written; they name no element.
    Index(i64),
}

/// A place inside a property map. The empty path is the map itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PropertyPath(Vec<PathSegment>);

impl PathSegment {
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Key(key) if key == WILDCARD)
    }

    fn matches(&self, other: &Self) -> bool {
        self.is_wildcard() || self == other
    }
}

impl From<&str> for PathSegment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for PathSegment {
    fn from(index: usize) -> Self {
        Self::Index(i64::try_from(index).unwrap_or(i64::MAX))
    }
}

impl PropertyPath {
    pub fn new(segments: impl IntoIterator<Item = PathSegment>) -> Self {
        Self(segments.into_iter().collect())
    }

    pub fn parse(text: &str) -> Result<Self, PathError> {
        parse::parse(text).map(Self)
    }

    pub fn segments(&self) -> &[PathSegment] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn push(&mut self, segment: impl Into<PathSegment>) {
        self.0.push(segment.into());
    }

    pub fn pop(&mut self) -> Option<PathSegment> {
        self.0.pop()
    }

    /// This path and one more step.
    pub fn child(&self, segment: impl Into<PathSegment>) -> Self {
        let mut path = self.clone();
        path.push(segment);
        path
    }

    /// The value at this path, if every step exists. Secrets are not looked through.
    pub fn get<'v>(&self, value: &'v PropertyValue) -> Option<&'v PropertyValue> {
        self.0.iter().try_fold(value, step)
    }

    /// As [`get`](Self::get), from a map. The empty path finds nothing: a map is no value.
    pub fn get_in<'v>(&self, map: &'v PropertyMap) -> Option<&'v PropertyValue> {
        let (first, rest) = self.0.split_first()?;
        let PathSegment::Key(key) = first else {
            return None;
        };
        rest.iter().try_fold(map.get(key)?, step)
    }

    fn get_mut<'v>(
        segments: &[PathSegment],
        value: &'v mut PropertyValue,
    ) -> Option<&'v mut PropertyValue> {
        segments
            .iter()
            .try_fold(value, |value, segment| match (value, segment) {
                (PropertyValue::Array(items), PathSegment::Index(index)) => {
                    items.get_mut(usize::try_from(*index).ok()?)
                }
                (PropertyValue::Object(map), PathSegment::Key(key)) => map.get_mut(key),
                _ => None,
            })
    }

    /// Puts `new` at this path. Only the last step may be missing, and only from an object;
    /// otherwise nothing happens and the answer is `false`.
    pub fn set(&self, root: &mut PropertyValue, new: PropertyValue) -> bool {
        let Some((last, parents)) = self.0.split_last() else {
            return false;
        };
        match (Self::get_mut(parents, root), last) {
            (Some(PropertyValue::Array(items)), PathSegment::Index(index)) => {
                let slot = usize::try_from(*index).ok().and_then(|i| items.get_mut(i));
                slot.map(|slot| *slot = new).is_some()
            }
            (Some(PropertyValue::Object(map)), PathSegment::Key(key)) => {
                map.insert(key.clone(), new);
                true
            }
            _ => false,
        }
    }

    /// Removes what is at this path. An array keeps its length: the element becomes null. `false`
    /// when a step on the way does not exist; a key that is missing already is no failure.
    pub fn delete(&self, root: &mut PropertyValue) -> bool {
        let Some((last, parents)) = self.0.split_last() else {
            return false;
        };
        match (Self::get_mut(parents, root), last) {
            (Some(PropertyValue::Array(items)), PathSegment::Index(index)) => {
                let slot = usize::try_from(*index).ok().and_then(|i| items.get_mut(i));
                slot.map(|slot| *slot = PropertyValue::Null).is_some()
            }
            (Some(PropertyValue::Object(map)), PathSegment::Key(key)) => {
                map.remove(key);
                true
            }
            _ => false,
        }
    }

    /// Whether `other` is this path or lies below it. `*` in this path matches any one step.
    pub fn contains(&self, other: &Self) -> bool {
        other.0.len() >= self.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|(own, other)| own.matches(other))
    }
}

fn step<'v>(value: &'v PropertyValue, segment: &PathSegment) -> Option<&'v PropertyValue> {
    match (value, segment) {
        (PropertyValue::Array(items), PathSegment::Index(index)) => {
            items.get(usize::try_from(*index).ok()?)
        }
        (PropertyValue::Object(map), PathSegment::Key(key)) => map.get(key),
        _ => None,
    }
}

impl fmt::Display for PropertyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                PathSegment::Index(index) => write!(f, "[{index}]")?,
                PathSegment::Key(key) if is_bare(key) => {
                    if position > 0 {
                        f.write_str(".")?;
                    }
                    f.write_str(key)?;
                }
                PathSegment::Key(key) => write!(f, "[\"{}\"]", key.replace('"', "\\\""))?,
            }
        }
        Ok(())
    }
}

/// Whether a key may be written without quotes. An empty key may not: it would vanish.
fn is_bare(key: &str) -> bool {
    !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl TryFrom<String> for PropertyPath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        Self::parse(&text)
    }
}

impl From<PropertyPath> for String {
    fn from(path: PropertyPath) -> Self {
        path.to_string()
    }
}

impl std::str::FromStr for PropertyPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests;
