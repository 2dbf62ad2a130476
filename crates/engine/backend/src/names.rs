//! Names of projects and stacks.
//!
//! Both become parts of paths and keys, so nothing gets past these constructors that could mean
//! something to a file system.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The only organisation that self-managed backends know.
pub const ORGANIZATION: &str = "organization";

const LONGEST: usize = 100;

/// A project and a stack in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StackRef {
    project: String,
    stack: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what} name: {reason}")]
pub struct NameError {
    pub what: &'static str,
    pub text: String,
    pub reason: &'static str,
}

impl StackRef {
    pub fn new(project: &str, stack: &str) -> Result<Self, NameError> {
        check("project", project)?;
        check("stack", stack)?;
        Ok(Self {
            project: project.to_owned(),
            stack: stack.to_owned(),
        })
    }

    /// Reads `stack`, `organization/stack` or `organization/project/stack`. `project` is meant
    /// where the text names none.
    pub fn parse(text: &str, project: &str) -> Result<Self, NameError> {
        let error = |reason| NameError {
            what: "stack",
            text: text.to_owned(),
            reason,
        };
        let parts: Vec<&str> = text.split('/').collect();
        let (organization, project, stack) = match parts[..] {
            [stack] => (ORGANIZATION, project, stack),
            [organization, stack] => (organization, project, stack),
            [organization, project, stack] => (organization, project, stack),
            _ => return Err(error("write it as organization/<project>/<stack>")),
        };
        if organization != ORGANIZATION {
            return Err(error(
                "a self-managed backend knows one organisation, `organization`",
            ));
        }
        Self::new(project, stack)
    }

    pub fn project(&self) -> &str {
        &self.project
    }

    pub fn stack(&self) -> &str {
        &self.stack
    }
}

/// The full name: `organization/<project>/<stack>`.
impl fmt::Display for StackRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ORGANIZATION}/{}/{}", self.project, self.stack)
    }
}

/// Whether a name found in storage can be one of ours.
pub(crate) fn is_valid(text: &str) -> bool {
    check("stack", text).is_ok()
}

fn check(what: &'static str, text: &str) -> Result<(), NameError> {
    let reason = if text.is_empty() {
        "it is empty"
    } else if text.len() > LONGEST {
        "it is longer than 100 characters"
    } else if text == "." || text == ".." {
        "it would name a folder"
    } else if !text.bytes().all(allowed) {
        "only letters, digits, hyphens, underscores and periods are allowed"
    } else {
        return Ok(());
    };
    Err(NameError {
        what,
        text: text.chars().take(LONGEST).collect(),
        reason,
    })
}

fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_stack_is_read() {
        let expected = StackRef::new("shop", "dev").unwrap();
        for text in ["dev", "organization/dev", "organization/shop/dev"] {
            assert_eq!(StackRef::parse(text, "shop").unwrap(), expected, "{text}");
        }
        assert_eq!(expected.to_string(), "organization/shop/dev");
        let other = StackRef::parse("organization/net/dev", "shop").unwrap();
        assert_eq!(other.project(), "net");
    }

    #[test]
    fn names_cannot_leave_their_folder() {
        let long = "a".repeat(101);
        for text in [
            "",
            ".",
            "..",
            "a/b/c/d",
            "other/dev",
            "a b",
            "ä",
            "a\0b",
            "..\\x",
            &long,
        ] {
            assert!(StackRef::parse(text, "shop").is_err(), "{text:?}");
        }
        assert!(StackRef::new("..", "dev").is_err());
        assert!(StackRef::new("shop", &"a".repeat(100)).is_ok());
    }
}
