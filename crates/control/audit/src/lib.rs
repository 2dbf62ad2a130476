//! The form of the audit trail.
//!
//! Each tenant has one chain of entries. An entry's hash covers its own content and the hash before
//! it, so an edit, a removal, an insertion or a change of order shows at the first entry that does
//! not fit. The end of a chain could still be cut off, and whoever owns the database could write a
//! whole new chain: checkpoints, signed and kept outside the database, tell of both.
//!
//! This crate stores nothing and asks no clock. Reading order: `entry` (what is recorded and the
//! bytes that are hashed), `redact` (what must not be recorded), `checkpoint` (signatures),
//! `verify` (the judgement), `export` (JSON Lines and CSV), `archive` (the form outside of the
//! database).

mod archive;
mod canonical;
mod checkpoint;
mod entry;
mod export;
mod redact;
mod verify;

pub use archive::{from_archive_line, to_archive_line};
pub use canonical::canonical_json;
pub use checkpoint::{Checkpoint, SigningKey, SigningKeyError, VerifyingKey};
pub use entry::{Actor, ActorKind, AuditEntry, AuditRecord, ChainHash, Outcome, Priority};
pub use export::{CSV_HEADER, to_csv_line, to_json_line};
pub use redact::{REDACTED, redact};
pub use verify::{ChainFault, ChainVerdict, FaultKind, Verifier};
