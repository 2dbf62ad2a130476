//! Uniform resource names: `urn:pulumi:<stack>::<project>::<qualified type>::<name>`.
//!
//! The qualified type is the parents' types and the resource's own, joined by `$`; the root stack
//! is left out. The name may contain anything but NUL, `::` included, so parsing splits from the left.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

const PREFIX: &str = "urn:pulumi:";
const SEPARATOR: &str = "::";

/// Type of the resource that stands for the stack itself.
pub const ROOT_STACK_TYPE: &str = "pulumi:pulumi:Stack";

/// A resource type such as `aws:s3/bucket:Bucket`.
pub type TypeToken = String;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Urn(Arc<str>);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{text:?} is not a URN: expected urn:pulumi:<stack>::<project>::<type>::<name>")]
pub struct UrnError {
    pub text: String,
}

impl Urn {
    /// The URN of a resource; `parent_type` is the parent's qualified type, if it has a parent
    /// other than the root stack.
    pub fn new(
        stack: &str,
        project: &str,
        parent_type: Option<&str>,
        type_: &str,
        name: &str,
    ) -> Self {
        let text = match parent_type {
            Some(parent) if !parent.is_empty() && parent != ROOT_STACK_TYPE => {
                format!("{PREFIX}{stack}::{project}::{parent}${type_}::{name}")
            }
            _ => format!("{PREFIX}{stack}::{project}::{type_}::{name}"),
        };
        Self(text.into())
    }

    /// The URN of the stack's root resource.
    pub fn root_stack(stack: &str, project: &str) -> Self {
        Self::new(
            stack,
            project,
            None,
            ROOT_STACK_TYPE,
            &format!("{project}-{stack}"),
        )
    }

    /// Whether a text can be part of a URN that is recorded. A NUL cannot: some stores cut or refuse
    /// the text there.
    pub fn is_recordable(part: &str) -> bool {
        !part.contains('\0')
    }

    pub fn parse(text: &str) -> Result<Self, UrnError> {
        let well_formed = Self::is_recordable(text)
            && text
                .strip_prefix(PREFIX)
                .is_some_and(|rest| rest.splitn(4, SEPARATOR).count() == 4);
        if well_formed {
            Ok(Self(text.into()))
        } else {
            Err(UrnError {
                text: text.to_owned(),
            })
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn stack(&self) -> &str {
        self.part(0)
    }

    pub fn project(&self) -> &str {
        self.part(1)
    }

    /// Parents' types and own type, joined by `$`.
    pub fn qualified_type(&self) -> &str {
        self.part(2)
    }

    /// Own type, without the parents'.
    pub fn type_(&self) -> &str {
        let qualified = self.qualified_type();
        qualified.rsplit_once('$').map_or(qualified, |(_, own)| own)
    }

    pub fn name(&self) -> &str {
        self.part(3)
    }

    fn part(&self, index: usize) -> &str {
        self.0[PREFIX.len()..]
            .splitn(4, SEPARATOR)
            .nth(index)
            .unwrap_or_default()
    }
}

impl TryFrom<String> for Urn {
    type Error = UrnError;

    fn try_from(text: String) -> Result<Self, UrnError> {
        Self::parse(&text)
    }
}

impl From<Urn> for String {
    fn from(urn: Urn) -> Self {
        urn.0.as_ref().to_owned()
    }
}

impl fmt::Display for Urn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Urn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_names_may_contain_separators() {
        let urn = Urn::new(
            "dev",
            "shop",
            Some("my:mod:Parent"),
            "aws:s3:Bucket",
            "a::b",
        );
        assert_eq!(
            urn.as_str(),
            "urn:pulumi:dev::shop::my:mod:Parent$aws:s3:Bucket::a::b"
        );
        assert_eq!(urn.stack(), "dev");
        assert_eq!(urn.project(), "shop");
        assert_eq!(urn.qualified_type(), "my:mod:Parent$aws:s3:Bucket");
        assert_eq!(urn.type_(), "aws:s3:Bucket");
        assert_eq!(urn.name(), "a::b");
        assert_eq!(Urn::parse(urn.as_str()), Ok(urn));
    }

    #[test]
    fn the_root_stack_is_no_parent_in_a_type() {
        let child = Urn::new("dev", "shop", Some(ROOT_STACK_TYPE), "a:b:C", "n");
        assert_eq!(child.as_str(), "urn:pulumi:dev::shop::a:b:C::n");
        assert_eq!(
            Urn::root_stack("dev", "shop").as_str(),
            "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev"
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "urn:pulumi:",
            "urn:pulumi:a::b::c",
            "urn:other:a::b::c::d",
            "a::b::c::d",
            "urn:pulumi:a::b::c::d\0",
        ] {
            assert!(Urn::parse(text).is_err(), "{text}");
        }
    }
}
