//! Which version of a state is meant.

use std::str::FromStr;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::{Stack, StackVersion};
use nimbus_engine_model::Snapshot;
use nimbus_engine_model::format::read_unverified;
use nimbus_engine_model::secrets::SealedText;

/// A version as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Current,
    /// A number in the stack's history.
    Number(usize),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "current" => Ok(Self::Current),
            number => number
                .parse()
                .map(Self::Number)
                .map_err(|_| "write a number from `nimbus state history`, or `current`".to_owned()),
        }
    }
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Current => f.write_str("current"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// The state with its secrets closed; empty when nothing was deployed then.
pub(super) async fn snapshot(stack: &Stack, which: Which) -> Result<Snapshot> {
    match which {
        Which::Current => Ok(stack.load_unverified().await?.snapshot.unwrap_or_default()),
        Which::Number(number) => {
            let version = find(stack, number).await?;
            parse(&stack.version_bytes(&version).await?)
        }
    }
}

pub(super) async fn find(stack: &Stack, number: usize) -> Result<StackVersion> {
    let mut versions = stack.history().await?.into_iter();
    versions
        .find(|version| version.number == number)
        .ok_or_else(|| {
            let message = format!("the history of {} has no version {number}", stack.name());
            Error::new(ErrorCode::STATE_VERSION_UNKNOWN, message)
                .with_help("`nimbus state history` lists the versions that there are")
        })
}

/// What a state file holds, whatever is wrong with it, secrets closed.
pub(super) fn parse(bytes: &[u8]) -> Result<Snapshot> {
    let file = read_unverified(bytes)?;
    let opened = file
        .deployment
        .map(|deployment| deployment.open(&SealedText));
    Ok(opened
        .transpose()?
        .map(|(snapshot, _)| snapshot)
        .unwrap_or_default())
}
