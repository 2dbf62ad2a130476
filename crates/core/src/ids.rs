//! The registry of typed ids.
//!
//! One type per kind of thing, so that a run's id cannot be handed to a function that wants a
//! tenant's. To add one: a line in `uuid_ids!`, in alphabetical order. An id with a grammar of its
//! own, such as [`DeploymentId`], has its own type below the registry.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::values::Malformed;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident, $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id that nothing else has.
            pub fn random() -> Self {
                Self(Uuid::new_v4())
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl FromStr for $name {
            type Err = Malformed;

            fn from_str(text: &str) -> Result<Self, Malformed> {
                let malformed = |_| Malformed::new($what, text, "must be a UUID");
                Uuid::parse_str(text).map(Self).map_err(malformed)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    )*};
}

uuid_ids! {
    /// A customer organisation in the tenant tree.
    TenantId, "tenant id";
    /// Somebody who signs in.
    UserId, "user id";
}

/// The id that joins every log line, span and error of one command or request: 32 hexadecimal
/// digits, not all zero, as W3C trace context has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

impl TraceId {
    pub fn random() -> Self {
        // Version bits are set in a UUID, so this is never zero.
        Self(Uuid::new_v4().as_u128())
    }

    pub fn as_u128(self) -> u128 {
        self.0
    }
}

impl FromStr for TraceId {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = hexadecimal
            .then(|| u128::from_str_radix(text, 16).ok())
            .flatten();
        value.filter(|value| *value != 0).map(Self).ok_or_else(|| {
            Malformed::new(
                "trace id",
                text,
                "must be 32 hexadecimal digits, not all zero",
            )
        })
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceId({self})")
    }
}

/// A deployment's id: `D` and upper-case base 36 digits, by default six of them, which are the
/// Unix second of its creation. Explicit ids match `^D[0-9A-Z]{1,15}$`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeploymentId(String);

impl DeploymentId {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    /// The id of a Unix second.
    pub fn at(unix_seconds: u64) -> Self {
        let mut digits = Vec::new();
        let mut rest = unix_seconds;
        while rest > 0 || digits.len() < 6 {
            digits.push(char::from(Self::DIGITS[(rest % 36) as usize]));
            rest /= 36;
        }
        digits.push('D');
        Self(digits.into_iter().rev().collect())
    }

    /// The id of the first second from `unix_seconds` on that is not taken.
    pub fn first_free(unix_seconds: u64, taken: impl Fn(&Self) -> bool) -> Self {
        let mut second = unix_seconds;
        loop {
            let id = Self::at(second);
            if !taken(&id) {
                return id;
            }
            second += 1;
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DeploymentId {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let digits = text.strip_prefix('D').unwrap_or("");
        let valid = (1..=15).contains(&digits.len())
            && digits.bytes().all(|byte| Self::DIGITS.contains(&byte));
        if valid {
            return Ok(Self(text.to_owned()));
        }
        let rule = "must be D and 1 to 15 upper-case letters or digits, such as D1T7Q2A";
        Err(Malformed::new("deployment id", text, rule))
    }
}

impl TryFrom<String> for DeploymentId {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<DeploymentId> for String {
    fn from(id: DeploymentId) -> Self {
        id.0
    }
}

impl fmt::Display for DeploymentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn deployment_ids_are_the_second_in_base_36() {
        for (second, id) in [
            (0, "D000000"),
            (35, "D00000Z"),
            (36, "D000010"),
            (1_700_000_000, "DS44WE8"),
            // The day six digits run out, a seventh appears.
            (36u64.pow(6) - 1, "DZZZZZZ"),
            (36u64.pow(6), "D1000000"),
        ] {
            assert_eq!(DeploymentId::at(second).as_str(), id);
            assert_eq!(
                id.parse::<DeploymentId>().unwrap(),
                DeploymentId::at(second)
            );
        }
        DeploymentId::at(u64::MAX)
            .as_str()
            .parse::<DeploymentId>()
            .unwrap();
    }

    #[test]
    fn a_taken_second_moves_on_to_the_next_free_one() {
        let taken: BTreeSet<_> = (100..103).map(DeploymentId::at).collect();
        assert_eq!(
            DeploymentId::first_free(100, |id| taken.contains(id)),
            DeploymentId::at(103)
        );
        assert_eq!(
            DeploymentId::first_free(99, |id| taken.contains(id)),
            DeploymentId::at(99)
        );
    }

    #[test]
    fn wrong_deployment_ids_are_refused() {
        for text in [
            "",
            "D",
            "d1ABC",
            "Dabc",
            "X123",
            "D-1",
            "D1 ",
            "D1234567890123456",
            "DÄ",
        ] {
            assert!(text.parse::<DeploymentId>().is_err(), "{text}");
        }
        assert!("D123456789012345".parse::<DeploymentId>().is_ok());
    }

    #[test]
    fn uuid_ids_read_back_and_say_what_they_are() {
        let id = TenantId::random();
        assert_eq!(id.to_string().parse::<TenantId>().unwrap(), id);
        let error = "12".parse::<TenantId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`12` is not a tenant id: it must be a UUID"
        );
    }

    #[test]
    fn trace_ids_are_32_digits_and_never_zero() {
        let id = TraceId::random();
        assert_eq!(id.to_string().len(), 32);
        assert_eq!(id.to_string().parse::<TraceId>().unwrap(), id);
        for text in [
            "",
            "0",
            &"0".repeat(32),
            &"g".repeat(32),
            &format!("+{}", "1".repeat(31)),
        ] {
            assert!(text.parse::<TraceId>().is_err(), "{text}");
        }
    }
}
