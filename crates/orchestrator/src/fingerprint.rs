//! Skip with proof: a digest of everything that decides what a unit's run would do.
//!
//! A fingerprint is a list of named inputs, each with its own digest, so that two of them can be
//! compared and the difference named. Values of configurations enter through a keyed digest: a plain
//! one of a short secret could be guessed by whoever reads the record. What is not in the list cannot
//! change the outcome; if something else can, it belongs in the list.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest, Sha256};

/// Stands where a digest would, for what is not known yet.
const UNKNOWN: &str = "unknown";

/// A workspace's own secret, with which private inputs are digested.
#[derive(Clone)]
pub struct DigestKey([u8; 32]);

impl DigestKey {
    pub const LENGTH: usize = 32;

    pub fn new(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    fn digest(&self, content: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length will do");
        mac.update(content);
        hex::encode(mac.finalize().into_bytes())
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestKey")
    }
}

/// Inputs by kind and name, with a digest each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    inputs: BTreeMap<FingerprintInput, String>,
}

/// What can change a unit's outcome.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FingerprintInput {
    /// A file of the program, lock files included.
    ProgramFile(String),
    /// A value of the resolved configuration.
    Config(String),
    /// An environment variable that the configuration reads.
    Environment(String),
    /// An output of another unit: `network:vpcId`.
    UpstreamOutput(String),
    /// The answer of a resolver or query.
    Resolved(String),
    /// A tool: the engine, an SDK, a provider.
    Version(String),
}

/// Why a unit runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunReason {
    NeverDeployed,
    LastRunFailed,
    Drifted,
    Forced,
    /// What is recorded is not what its last run left: another backend, nothing, or somebody else's.
    StateMoved,
    /// It is asked for that what is there be looked at first.
    LookedUp,
    Changed(Vec<InputDifference>),
    /// It was returned to an earlier state, and a deploy would apply these again; none when what it
    /// was made from then is not recorded.
    RolledBack(Vec<InputDifference>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputDifference {
    pub input: FingerprintInput,
    pub change: InputChange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputChange {
    Added,
    Removed,
    Modified,
}

/// What a unit is since it was last touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastOutcome {
    /// It was begun and did not end well, or nobody knows how it ended.
    Unfinished,
    Succeeded,
    /// It is what an earlier state says, proved by a look at what is there.
    RolledBack,
}

impl LastOutcome {
    /// Whether the unit is whole, and others may build on it.
    pub fn is_whole(self) -> bool {
        match self {
            Self::Succeeded | Self::RolledBack => true,
            Self::Unfinished => false,
        }
    }
}

/// What is remembered of a unit's last run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRun {
    pub outcome: LastOutcome,
    pub drifted: bool,
    /// What is recorded now is not what it left.
    pub state_moved: bool,
    /// What the unit was made from; empty when a rollback led to a state of which that is unknown.
    pub fingerprint: Fingerprint,
}

impl Fingerprint {
    /// Adds an input by its content. Only its digest is kept.
    pub fn add(&mut self, input: FingerprintInput, content: impl AsRef<[u8]>) {
        let digest = Sha256::digest(content.as_ref());
        self.inputs.insert(input, hex::encode(digest));
    }

    /// Adds an input by the sha256 of its content, for what is too large to be held.
    pub fn add_digest(&mut self, input: FingerprintInput, digest: &[u8; 32]) {
        self.inputs.insert(input, hex::encode(digest));
    }

    /// Adds an input that may be secret. Without the key nobody can try values.
    pub fn add_private(
        &mut self,
        key: &DigestKey,
        input: FingerprintInput,
        content: impl AsRef<[u8]>,
    ) {
        self.inputs.insert(input, key.digest(content.as_ref()));
    }

    /// Adds an input that is not known yet: equal to nothing, itself included.
    pub fn add_unknown(&mut self, input: FingerprintInput) {
        self.inputs.insert(input, UNKNOWN.to_owned());
    }

    /// Whether what an input will be was not known.
    pub fn is_unknown(&self, input: &FingerprintInput) -> bool {
        self.inputs
            .get(input)
            .is_some_and(|digest| digest == UNKNOWN)
    }

    /// One digest over the files of the program.
    pub fn program_digest(&self) -> String {
        let files = self.inputs.iter();
        let files = files.filter(|(input, _)| matches!(input, FingerprintInput::ProgramFile(_)));
        Self {
            inputs: files.map(|(i, d)| (i.clone(), d.clone())).collect(),
        }
        .digest()
    }

    /// One digest over all inputs. Lengths are part of it, so that no two lists read the same.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        for (input, digest) in &self.inputs {
            let name = input.to_string();
            hasher.update((name.len() as u64).to_be_bytes());
            hasher.update(name.as_bytes());
            hasher.update(digest.as_bytes());
        }
        hex::encode(hasher.finalize())
    }

    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    pub fn inputs(&self) -> impl Iterator<Item = (&FingerprintInput, &str)> {
        self.inputs
            .iter()
            .map(|(input, digest)| (input, digest.as_str()))
    }

    /// From what [`FingerprintInput`]'s text form and [`Fingerprint::inputs`] give.
    pub fn from_parts(parts: BTreeMap<String, String>) -> Result<Self, UnknownInput> {
        let input = |(text, digest): (String, String)| Ok((text.parse()?, digest));
        Ok(Self {
            inputs: parts.into_iter().map(input).collect::<Result<_, _>>()?,
        })
    }

    /// What is different from an earlier one.
    pub fn changes_since(&self, earlier: &Self) -> Vec<InputDifference> {
        let mut changes = Vec::new();
        for (input, digest) in &self.inputs {
            let change = match earlier.inputs.get(input) {
                None => InputChange::Added,
                Some(old) if old != digest || digest == UNKNOWN => InputChange::Modified,
                Some(_) => continue,
            };
            changes.push(InputDifference {
                input: input.clone(),
                change,
            });
        }
        for input in earlier
            .inputs
            .keys()
            .filter(|input| !self.inputs.contains_key(*input))
        {
            changes.push(InputDifference {
                input: input.clone(),
                change: InputChange::Removed,
            });
        }
        changes.sort_by(|a, b| a.input.cmp(&b.input));
        changes
    }
}

/// Why a unit must run; `None` when it can be skipped.
pub fn must_run(now: &Fingerprint, last: Option<&LastRun>, forced: bool) -> Option<RunReason> {
    let Some(last) = last else {
        return Some(RunReason::NeverDeployed);
    };
    if forced {
        return Some(RunReason::Forced);
    }
    let changes = || now.changes_since(&last.fingerprint);
    match last.outcome {
        LastOutcome::Unfinished => Some(RunReason::LastRunFailed),
        LastOutcome::Succeeded | LastOutcome::RolledBack if last.drifted => {
            Some(RunReason::Drifted)
        }
        LastOutcome::Succeeded | LastOutcome::RolledBack if last.state_moved => {
            Some(RunReason::StateMoved)
        }
        // Without a record of what it was made from nothing can be proved, so it runs.
        LastOutcome::RolledBack if last.fingerprint.is_empty() => {
            Some(RunReason::RolledBack(Vec::new()))
        }
        LastOutcome::Succeeded => Some(changes())
            .filter(|changes| !changes.is_empty())
            .map(RunReason::Changed),
        LastOutcome::RolledBack => Some(changes())
            .filter(|changes| !changes.is_empty())
            .map(RunReason::RolledBack),
    }
}

/// A text that names no kind of input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no input of a fingerprint")]
pub struct UnknownInput {
    pub text: String,
}

impl FromStr for FingerprintInput {
    type Err = UnknownInput;

    fn from_str(text: &str) -> Result<Self, UnknownInput> {
        let make = |prefix: &str, kind: fn(String) -> Self| {
            Some(kind(text.strip_prefix(prefix)?.to_owned()))
        };
        make("file ", Self::ProgramFile)
            .or_else(|| make("config ", Self::Config))
            .or_else(|| make("environment variable ", Self::Environment))
            .or_else(|| make("output ", Self::UpstreamOutput))
            .or_else(|| make("resolved ", Self::Resolved))
            .or_else(|| make("version of ", Self::Version))
            .ok_or_else(|| UnknownInput {
                text: text.to_owned(),
            })
    }
}

impl fmt::Display for FingerprintInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProgramFile(name) => write!(f, "file {name}"),
            Self::Config(name) => write!(f, "config {name}"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::UpstreamOutput(name) => write!(f, "output {name}"),
            Self::Resolved(name) => write!(f, "resolved {name}"),
            Self::Version(name) => write!(f, "version of {name}"),
        }
    }
}

impl fmt::Display for RunReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverDeployed => f.write_str("no run before left it here"),
            Self::LastRunFailed => f.write_str("its last run did not succeed"),
            Self::Drifted => f.write_str("it has drifted"),
            Self::Forced => f.write_str("it is forced"),
            Self::StateMoved => {
                f.write_str("its recorded state is not the one that its last run left")
            }
            Self::LookedUp => f.write_str("what is there is looked at first"),
            Self::Changed(differences) => write_differences(f, differences),
            Self::RolledBack(differences) if differences.is_empty() => {
                f.write_str("it was rolled back")
            }
            Self::RolledBack(differences) => {
                f.write_str("it was rolled back; applies again: ")?;
                write_differences(f, differences)
            }
        }
    }
}

fn write_differences(f: &mut fmt::Formatter<'_>, differences: &[InputDifference]) -> fmt::Result {
    for (at, difference) in differences.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let what = match difference.change {
            InputChange::Added => "is new",
            InputChange::Removed => "is gone",
            InputChange::Modified => "changed",
        };
        write!(f, "{comma}{} {what}", difference.input)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn last(fingerprint: &Fingerprint) -> LastRun {
        LastRun {
            outcome: LastOutcome::Succeeded,
            drifted: false,
            state_moved: false,
            fingerprint: fingerprint.clone(),
        }
    }

    fn some() -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add(FingerprintInput::ProgramFile("index.ts".to_owned()), "code");
        fingerprint.add(
            FingerprintInput::UpstreamOutput("network:vpcId".to_owned()),
            "vpc-1",
        );
        fingerprint
    }

    #[test]
    fn nothing_changed_is_the_only_reason_to_skip() {
        let now = some();
        assert_eq!(must_run(&now, None, false), Some(RunReason::NeverDeployed));
        assert_eq!(must_run(&now, Some(&last(&now)), false), None);
        assert_eq!(
            must_run(&now, Some(&last(&now)), true),
            Some(RunReason::Forced)
        );
        let failed = LastRun {
            outcome: LastOutcome::Unfinished,
            ..last(&now)
        };
        assert_eq!(
            must_run(&now, Some(&failed), false),
            Some(RunReason::LastRunFailed)
        );
        let drifted = LastRun {
            drifted: true,
            ..last(&now)
        };
        assert_eq!(
            must_run(&now, Some(&drifted), false),
            Some(RunReason::Drifted)
        );
        let moved = LastRun {
            state_moved: true,
            ..last(&now)
        };
        assert_eq!(
            must_run(&now, Some(&moved), false),
            Some(RunReason::StateMoved)
        );
    }

    #[test]
    fn the_reason_names_each_difference() {
        let before = some();
        let mut now = Fingerprint::default();
        now.add(
            FingerprintInput::ProgramFile("index.ts".to_owned()),
            "other code",
        );
        now.add(FingerprintInput::Config("network:zones".to_owned()), "3");
        let reason = must_run(&now, Some(&last(&before)), false).unwrap();
        assert_eq!(
            reason.to_string(),
            "file index.ts changed, config network:zones is new, output network:vpcId is gone"
        );
    }

    #[test]
    fn what_was_rolled_back_is_skipped_while_nothing_differs_from_that_version() {
        let rolled_back = |fingerprint: &Fingerprint| LastRun {
            outcome: LastOutcome::RolledBack,
            ..last(fingerprint)
        };
        let before = some();
        assert_eq!(must_run(&before, Some(&rolled_back(&before)), false), None);
        let mut now = some();
        now.add(FingerprintInput::ProgramFile("index.ts".to_owned()), "new");
        let reason = must_run(&now, Some(&rolled_back(&before)), false).unwrap();
        assert_eq!(
            reason.to_string(),
            "it was rolled back; applies again: file index.ts changed"
        );
        let unknown = rolled_back(&Fingerprint::default());
        let reason = must_run(&now, Some(&unknown), false).unwrap();
        assert_eq!(reason.to_string(), "it was rolled back");
    }

    #[test]
    fn a_private_value_cannot_be_guessed_without_the_key_and_counts_with_it() {
        let input = FingerprintInput::Config("db:password".to_owned());
        let digest = |key: u8, content: &str| {
            let mut fingerprint = Fingerprint::default();
            let key = DigestKey::new([key; DigestKey::LENGTH]);
            fingerprint.add_private(&key, input.clone(), content);
            fingerprint.digest()
        };
        assert_eq!(digest(1, "hunter2"), digest(1, "hunter2"));
        assert_ne!(digest(1, "hunter2"), digest(1, "hunter3"));
        assert_ne!(digest(1, "hunter2"), digest(2, "hunter2"));
        let mut plain = Fingerprint::default();
        plain.add(input.clone(), "hunter2");
        assert_ne!(digest(1, "hunter2"), plain.digest());
    }

    #[test]
    fn what_is_unknown_is_never_a_reason_to_skip() {
        let mut now = some();
        now.add_unknown(FingerprintInput::Resolved("x".to_owned()));
        assert!(must_run(&now, Some(&last(&now)), false).is_some());
    }

    fn inputs() -> impl Strategy<Value = Vec<(u8, String, String)>> {
        proptest::collection::vec((0..6_u8, "[a-c]{1,2}", "[x-z]{0,2}"), 0..8)
    }

    fn build(list: &[(u8, String, String)]) -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        for (kind, name, content) in list {
            let name = name.clone();
            let input = match kind {
                0 => FingerprintInput::ProgramFile(name),
                1 => FingerprintInput::Config(name),
                2 => FingerprintInput::Environment(name),
                3 => FingerprintInput::UpstreamOutput(name),
                4 => FingerprintInput::Resolved(name),
                _ => FingerprintInput::Version(name),
            };
            fingerprint.add(input, content);
        }
        fingerprint
    }

    proptest! {
        #[test]
        fn equal_inputs_skip_and_any_difference_runs(a in inputs(), b in inputs()) {
            let (a, b) = (build(&a), build(&b));
            prop_assert_eq!(must_run(&a, Some(&last(&b)), false).is_none(), a == b);
            prop_assert_eq!(a.digest() == b.digest(), a == b);
        }
    }
}
