//! Where state lives: Pulumi's self-managed layout, journal, leases, history, secrets, stack
//! configuration.
//!
//! A [`Backend`] is a folder or a bucket. A [`Stack`] in it can be read by anybody; to change it,
//! [`begin`](Stack::begin) a [`StackSession`], which holds the stack's lease, settles what a crashed
//! predecessor left, hands out the journal and in the end writes the new state. [`project`] reads
//! and edits the files that a program keeps beside its code.
//!
//! The layout under `.pulumi` is the official one, so the official command line works on the same
//! state. What Nimbus adds lies in `.nimbus`. This crate runs no programs and calls no providers.

mod backend;
mod clock;
mod digest;
mod environment;
mod error;
mod journal;
mod layout;
mod lease;
mod location;
mod names;
pub mod project;
mod recovery;
mod secrets;
mod session;
mod stack;
pub mod store;
mod version;

/// What this engine calls itself in states that it writes.
pub const ENGINE_VERSION: &str = concat!("nimbus-v", env!("CARGO_PKG_VERSION"));

pub use backend::{Backend, BackendOptions, choose_address};
pub use clock::{LeaseClock, SystemLeaseClock};
pub use digest::{Digest, DigestError};
pub use environment::EnvironmentVariables;
pub use error::BackendError;
pub use journal::{Damaged, JournalReadError};
pub use lease::{
    HeldBy, Lease, LeaseError, LeaseSettings, Owner, PulumiLock, PulumiLockContent, Unlocked,
};
pub use names::{NameError, ORGANIZATION, StackRef};
pub use recovery::{
    JournalOutcome, KnownAct, RecordedOutcome, RecoveryReport, TornEnd, UnknownAct,
};
pub use secrets::{
    DeclaredSecrets, KeyServices, Keyring, PASSPHRASE, PASSPHRASE_FILE, SecretsError, StackSecrets,
    passphrase,
};
pub use session::{Finished, SessionRequest, StackSession};
pub use stack::{
    ImportOptions, Imported, LoadedState, Stack, StackVersion, Unverified, UpdateInfo, UpdateKind,
    UpdateResult,
};
pub use version::StateVersion;
