//! What can be wrong with a value, and where.

use std::fmt;

/// A value that cannot be sent, or that a peer should not have sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("property {}: {problem}", Path(.path))]
pub struct WireError {
    pub problem: WireProblem,
    /// From the inside out, because it is collected while unwinding.
    path: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireProblem {
    #[error("the value is not known yet, which is not allowed here")]
    Unknown,
    #[error("it holds bytes that are not UTF-8, and the receiver does not take those")]
    ByteString,
    #[error("malformed {what}: {reason}")]
    Malformed {
        what: &'static str,
        reason: &'static str,
    },
    #[error("an object with an unrecognised signature")]
    Signature,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Key(String),
    Index(usize),
}

impl WireError {
    pub(crate) fn new(problem: WireProblem) -> Self {
        Self {
            problem,
            path: Vec::new(),
        }
    }

    pub(crate) fn malformed(what: &'static str, reason: &'static str) -> Self {
        Self::new(WireProblem::Malformed { what, reason })
    }

    pub(crate) fn under_key(mut self, key: &str) -> Self {
        self.path.push(Segment::Key(key.to_owned()));
        self
    }

    pub(crate) fn under_index(mut self, index: usize) -> Self {
        self.path.push(Segment::Index(index));
        self
    }

    /// Where, in the usual notation: `a.b[0]["c d"]`.
    pub fn path(&self) -> String {
        Path(&self.path).to_string()
    }
}

struct Path<'a>(&'a [Segment]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().rev().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if !is_plain(key) => write!(f, "[{key:?}]")?,
                Segment::Key(key) if position == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
}
