//! Names of workflows. A child's name begins with its parent's, so that cancelling reaches children
//! that do not exist yet.

use std::fmt;

use nimbus_core::{Error, ErrorCode};
use serde::{Deserialize, Serialize};

const SEPARATOR: char = '/';
const LONGEST: usize = 200;

/// The name of one execution; starting a name twice starts one execution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FlowId(String);

impl FlowId {
    /// The name of a workflow without a parent: letters, digits and `._:@-`, 200 at most.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        if text.contains(SEPARATOR) {
            return Err(wrong(&text));
        }
        Self::parse(text)
    }

    /// Any workflow's name, children's included.
    pub fn parse(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let fine = |part: &str| !part.is_empty() && part.chars().all(allowed);
        if text.len() <= LONGEST && text.split(SEPARATOR).all(fine) {
            return Ok(Self(text));
        }
        Err(wrong(&text))
    }

    /// The name of this workflow's child.
    pub fn child(&self, suffix: &str) -> Result<Self, Error> {
        if suffix.contains(SEPARATOR) {
            return Err(wrong(suffix));
        }
        Self::parse(format!("{}{SEPARATOR}{suffix}", self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This workflow and those that it is a child of, itself first.
    pub fn lineage(&self) -> impl Iterator<Item = &str> {
        let parents = self.0.rmatch_indices(SEPARATOR);
        std::iter::once(self.as_str()).chain(parents.map(|(end, _)| &self.0[..end]))
    }

    pub fn parent(&self) -> Option<Self> {
        self.lineage().nth(1).map(|parent| Self(parent.to_owned()))
    }

    /// What the names of all children, and theirs, begin with.
    pub fn children_prefix(&self) -> String {
        format!("{}{SEPARATOR}", self.0)
    }
}

fn allowed(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._:@-".contains(letter)
}

fn wrong(text: &str) -> Error {
    Error::new(
        ErrorCode::WORKFLOW_INVALID,
        format!(
            "`{}` is not a name of a workflow",
            text.chars().take(60).collect::<String>()
        ),
    )
    .with_help("use letters, digits and . _ : @ - only, 200 at most")
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for FlowId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl From<FlowId> for String {
    fn from(id: FlowId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_knows_its_lineage() {
        let root = FlowId::new("run-1").unwrap();
        let grandchild = root.child("a").unwrap().child("b").unwrap();
        assert_eq!(grandchild.to_string(), "run-1/a/b");
        let lineage: Vec<_> = grandchild.lineage().collect();
        assert_eq!(lineage, ["run-1/a/b", "run-1/a", "run-1"]);
        assert_eq!(grandchild.parent(), root.child("a").ok());
        assert_eq!(root.parent(), None);
    }

    #[test]
    fn wrong_names_are_refused() {
        let long = "x".repeat(201);
        for text in ["", "a b", "a/b", "ä", "a\n", "%", long.as_str()] {
            assert!(FlowId::new(text).is_err(), "{text}");
        }
        assert!(FlowId::parse("a/b").is_ok());
        for text in ["a//b", "/a", "a/"] {
            assert!(FlowId::parse(text).is_err(), "{text}");
        }
        assert!(FlowId::new("a").unwrap().child("b/c").is_err());
    }
}
