//! Names of the things that a deployment is made of, one type each, so that a component cannot be
//! handed over where a Pulumi stack is meant.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::values::Malformed;

/// Whether a text is a lower-case label: letters, digits and inner hyphens, a letter first.
fn is_label(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && !text.ends_with('-')
}

/// A component within a deployment, such as `network`. It names folders and is part of the names of
/// Pulumi stacks.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ComponentName(Arc<str>);

impl ComponentName {
    /// With the longest usual id and environment a unit's name still fits into 63 characters, which
    /// is what most clouds allow.
    pub const LONGEST: usize = 40;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ComponentName {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        if is_label(text, Self::LONGEST) {
            return Ok(Self(text.into()));
        }
        let rule = "must be at most 40 lower-case letters, digits or `-`, start with a letter and \
                    not end with `-`";
        Err(Malformed::new("name of a component", text, rule))
    }
}

/// An environment of a deployment, such as `dev`: any name that its manifest gives. Which comes
/// after which is the order in which the manifest has them, so this type has none to offer but the
/// alphabet's.
///
/// The text is kept in place: environments are passed around by the hundred, and a copy is cheaper
/// than a shared allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EnvironmentName {
    bytes: [u8; Self::LONGEST],
    length: u8,
}

impl EnvironmentName {
    pub const LONGEST: usize = 20;
    /// What the shipped templates have.
    pub const DEV: Self = Self::constant("dev");
    pub const STAGE: Self = Self::constant("stage");
    pub const PROD: Self = Self::constant("prod");

    const fn constant(text: &str) -> Self {
        let mut bytes = [0; Self::LONGEST];
        let mut at = 0;
        while at < text.len() {
            bytes[at] = text.as_bytes()[at];
            at += 1;
        }
        Self {
            bytes,
            length: text.len() as u8,
        }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl FromStr for EnvironmentName {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        if is_label(text, Self::LONGEST) {
            return Ok(Self::constant(text));
        }
        let rule = "must be at most 20 lower-case letters, digits or `-`, start with a letter and \
                    not end with `-`, such as dev";
        Err(Malformed::new("name of an environment", text, rule))
    }
}

/// The Pulumi stack of one component of one deployment in one environment:
/// `<deployment-id>-<component>-<environment>`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnitName(Arc<str>);

impl UnitName {
    pub fn new(
        deployment: &crate::DeploymentId,
        component: &ComponentName,
        environment: EnvironmentName,
    ) -> Self {
        Self(format!("{deployment}-{component}-{environment}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! text_like {
    ($($name:ident),*) => {$(
        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                self.as_str()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }
    )*};
}

text_like!(ComponentName, EnvironmentName, UnitName);

macro_rules! from_text {
    ($($name:ident),*) => {$(
        impl TryFrom<String> for $name {
            type Error = Malformed;

            fn try_from(text: String) -> Result<Self, Malformed> {
                text.parse()
            }
        }
    )*};
}

from_text!(ComponentName, EnvironmentName);

// Maps by name are asked with plain texts: the order and the hash of both are the same.
impl Borrow<str> for ComponentName {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_follow_their_grammar_and_say_it_when_they_do_not() {
        for good in ["network", "a", "load-balancer-2"] {
            assert_eq!(good.parse::<ComponentName>().unwrap().as_str(), good);
        }
        for bad in ["", "Network", "2nd", "a-", "a_b", "../x", &"a".repeat(41)] {
            let error = bad.parse::<ComponentName>().unwrap_err().to_string();
            assert!(error.contains("lower-case letters"), "{error}");
        }
        for good in ["dev", "live", "eu-west-prod"] {
            assert_eq!(good.parse::<EnvironmentName>().unwrap(), *good);
        }
        assert!("twenty-one-characters".parse::<EnvironmentName>().is_err());
        assert_eq!("dev".parse(), Ok(EnvironmentName::DEV));
    }

    #[test]
    fn a_map_by_component_is_asked_with_a_text() {
        let map = BTreeMap::from([("network".parse::<ComponentName>().unwrap(), 1)]);
        assert_eq!(map.get("network"), Some(&1));
    }

    #[test]
    fn a_unit_is_named_after_what_it_belongs_to() {
        let unit = UnitName::new(
            &"D1".parse().unwrap(),
            &"network".parse().unwrap(),
            EnvironmentName::DEV,
        );
        assert_eq!(unit, "D1-network-dev");
    }

    #[test]
    fn names_are_written_as_texts_and_checked_when_they_are_read() {
        let text = serde_json::to_string(&EnvironmentName::STAGE).unwrap();
        assert_eq!(text, "\"stage\"");
        assert!(serde_json::from_str::<ComponentName>("\"no/way\"").is_err());
    }
}
