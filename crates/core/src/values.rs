//! Small values that cannot be built wrong.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorCode};

/// A text that does not follow the grammar of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}: it {rule}")]
pub struct Malformed {
    what: &'static str,
    text: String,
    rule: &'static str,
}

impl Malformed {
    /// `rule` completes the sentence "it …".
    pub fn new(what: &'static str, text: &str, rule: &'static str) -> Self {
        // An id in a message should not be a page long.
        let text = text.chars().take(80).collect();
        Self { what, text, rule }
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Error::new(ErrorCode::MALFORMED_ID, malformed.to_string())
    }
}

/// The name of a component, a stack, an environment: a DNS label, because it ends up in host names,
/// Kubernetes objects and file names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let valid = (1..=63).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && !text.ends_with('-');
        if valid {
            return Ok(Self(text.to_owned()));
        }
        let rule = "must be 1 to 63 lower-case letters, digits or hyphens, start with a letter \
                    and not end with a hyphen";
        Err(Malformed::new("name", text, rule))
    }
}

impl TryFrom<String> for Name {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            pub const FIRST: Self = Self(1);

            /// For values read back from storage.
            pub fn from_stored(value: u64) -> Self {
                Self(value)
            }

            pub fn get(self) -> u64 {
                self.0
            }

            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.checked_add(1).expect("counting to 2^64 takes longer than anyone has"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}

counters! {
    /// The term of a writer. A new writer takes the next one, and a write with an older one is
    /// refused.
    Epoch;
    /// The version of a state. Every accepted change takes the next one.
    Serial;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels() {
        for text in ["a", "data-platform", "k8s", &"a".repeat(63)] {
            assert_eq!(text.parse::<Name>().unwrap().as_str(), text);
        }
        for text in [
            "",
            "-a",
            "a-",
            "A",
            "1a",
            "a_b",
            "a.b",
            "ä",
            &"a".repeat(64),
        ] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }

    #[test]
    fn counters_go_up() {
        assert!(Epoch::FIRST.next() > Epoch::FIRST);
        assert_eq!(Serial::FIRST.next().next().get(), 3);
        assert_eq!(Epoch::from_stored(7).to_string(), "7");
    }

    #[test]
    fn a_long_wrong_text_is_cut_in_the_message() {
        let error = "x".repeat(5000).parse::<Name>().unwrap_err();
        assert!(error.to_string().len() < 300);
        assert_eq!(Error::from(error).code(), ErrorCode::MALFORMED_ID);
    }
}
