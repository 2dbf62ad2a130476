//! The environments of a deployment, in the order of promotion.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Environment {
    Dev,
    Stage,
    Prod,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an environment; there are dev, stage and prod{}",
    hint(text)
)]
pub struct UnknownEnvironment {
    pub text: String,
}

fn hint(text: &str) -> &'static str {
    match text {
        "staging" => " (staging is called stage since 3.1; `migrate-environment-names` renames it)",
        _ => "",
    }
}

impl Environment {
    pub const ALL: [Self; 3] = [Self::Dev, Self::Stage, Self::Prod];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Stage => "stage",
            Self::Prod => "prod",
        }
    }

    /// The one that must be deployed and tested before this one.
    pub fn promoted_from(self) -> Option<Self> {
        match self {
            Self::Dev => None,
            Self::Stage => Some(Self::Dev),
            Self::Prod => Some(Self::Stage),
        }
    }
}

impl FromStr for Environment {
    type Err = UnknownEnvironment;

    fn from_str(text: &str) -> Result<Self, UnknownEnvironment> {
        let unknown = || UnknownEnvironment {
            text: text.to_owned(),
        };
        Self::ALL
            .into_iter()
            .find(|environment| environment.as_str() == text)
            .ok_or_else(unknown)
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
