//! What one entry records, and how it is hashed.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::canonical::{FieldBytes, canonical_json};
use crate::redact::redact;

/// Who acted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub kind: ActorKind,
    /// The id of the user, service account or key; empty for nobody.
    pub id: String,
    /// Who really sits there, when somebody acts in another's name.
    pub original: Option<String>,
}

impl Actor {
    pub fn new(kind: ActorKind, id: impl fmt::Display) -> Self {
        Self {
            kind,
            id: id.to_string(),
            original: None,
        }
    }

    /// Somebody who did not sign in.
    pub fn nobody() -> Self {
        Self::new(ActorKind::Nobody, "")
    }

    /// Nimbus itself.
    pub fn system() -> Self {
        Self::new(ActorKind::System, "nimbus")
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($variant,)* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("`{text}` is none of: {}", [$($word),*].join(", "))),
                }
            }
        }
    };
}

words! {
    /// What sort of actor.
    ActorKind {
        User = "user",
        ServiceAccount = "service_account",
        System = "system",
        Nobody = "nobody",
    }
}

words! {
    /// How it ended.
    Outcome {
        Done = "done",
        Denied = "denied",
        Failed = "failed",
    }
}

words! {
    /// How much an entry matters; critical ones carry a signature of their own.
    Priority {
        Low = "low",
        Normal = "normal",
        High = "high",
        Critical = "critical",
    }
}

/// What happened, before it has a place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    pub actor: Actor,
    /// The operation, such as `users.create`.
    pub action: String,
    pub resource_type: String,
    pub resource_id: Option<String>,
    pub outcome: Outcome,
    pub priority: Priority,
    old_value: Option<String>,
    new_value: Option<String>,
    pub trace_id: Option<String>,
    pub ip_address: Option<String>,
}

impl AuditRecord {
    pub fn new(actor: Actor, action: &str, resource_type: &str) -> Self {
        Self {
            actor,
            action: action.to_owned(),
            resource_type: resource_type.to_owned(),
            resource_id: None,
            outcome: Outcome::Done,
            priority: Priority::Normal,
            old_value: None,
            new_value: None,
            trace_id: None,
            ip_address: None,
        }
    }

    pub fn on(mut self, resource_id: impl fmt::Display) -> Self {
        self.resource_id = Some(resource_id.to_string());
        self
    }

    /// The value before; secrets are removed here, so that none can be forgotten.
    pub fn before(mut self, value: Value) -> Self {
        self.old_value = Some(canonical_json(&redact(value)));
        self
    }

    /// The value after, without its secrets.
    pub fn after(mut self, value: Value) -> Self {
        self.new_value = Some(canonical_json(&redact(value)));
        self
    }

    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    pub fn old_value(&self) -> Option<&str> {
        self.old_value.as_deref()
    }

    pub fn new_value(&self) -> Option<&str> {
        self.new_value.as_deref()
    }

    /// Values as they were stored. They went through [`AuditRecord::before`] once and are not
    /// touched again: their exact text is what was hashed.
    pub fn with_stored_values(mut self, old: Option<String>, new: Option<String>) -> Self {
        self.old_value = old;
        self.new_value = new;
        self
    }
}

/// The hash of an entry and of everything before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChainHash(pub [u8; 32]);

impl ChainHash {
    /// Where a tenant's chain begins.
    pub fn genesis(tenant: TenantId) -> Self {
        let bytes = FieldBytes::default()
            .put(b"nimbus/audit/genesis/1")
            .put(tenant.to_string().as_bytes())
            .into_bytes();
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChainHash({self})")
    }
}

impl FromStr for ChainHash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || format!("`{text}` is not 64 hexadecimal digits");
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| malformed())?;
        Ok(Self(bytes))
    }
}

/// A record with its place in a tenant's chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub tenant: TenantId,
    /// From 1, without gaps.
    pub sequence: u64,
    /// To the microsecond, which is what the database keeps.
    pub at: Timestamp,
    pub record: AuditRecord,
    pub previous: ChainHash,
    pub hash: ChainHash,
    /// Signature of the hash, on critical entries.
    pub proof: Option<String>,
}

impl AuditEntry {
    /// Puts a record after the given end of the chain.
    pub fn append(
        tenant: TenantId,
        last: Option<(u64, ChainHash)>,
        at: Timestamp,
        record: AuditRecord,
    ) -> Self {
        let (sequence, previous) = match last {
            Some((sequence, hash)) => (sequence + 1, hash),
            None => (1, ChainHash::genesis(tenant)),
        };
        let at = Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at);
        let mut entry = Self {
            tenant,
            sequence,
            at,
            record,
            previous,
            hash: previous,
            proof: None,
        };
        entry.hash = entry.computed_hash();
        entry
    }

    /// What the hash has to be.
    pub fn computed_hash(&self) -> ChainHash {
        let record = &self.record;
        let bytes = FieldBytes::default()
            .put(b"nimbus/audit/entry/1")
            .put(&self.previous.0)
            .put(self.tenant.to_string().as_bytes())
            .put(&self.sequence.to_be_bytes())
            .put(&self.at.as_microsecond().to_be_bytes())
            .put(record.actor.kind.as_str().as_bytes())
            .put(record.actor.id.as_bytes())
            .put_optional(record.actor.original.as_deref())
            .put(record.action.as_bytes())
            .put(record.resource_type.as_bytes())
            .put_optional(record.resource_id.as_deref())
            .put(record.outcome.as_str().as_bytes())
            .put(record.priority.as_str().as_bytes())
            .put_optional(record.old_value())
            .put_optional(record.new_value())
            .put_optional(record.trace_id.as_deref())
            .put_optional(record.ip_address.as_deref())
            .into_bytes();
        ChainHash(Sha256::digest(bytes).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_numbered_from_one_and_chained_from_the_tenants_own_beginning() {
        let tenant = TenantId::random();
        let record = AuditRecord::new(Actor::system(), "tenants.create", "tenant");
        let first = AuditEntry::append(tenant, None, Timestamp::UNIX_EPOCH, record.clone());
        assert_eq!(
            (first.sequence, first.previous),
            (1, ChainHash::genesis(tenant))
        );
        let second = AuditEntry::append(
            tenant,
            Some((first.sequence, first.hash)),
            Timestamp::UNIX_EPOCH,
            record,
        );
        assert_eq!((second.sequence, second.previous), (2, first.hash));
        assert_ne!(second.hash, first.hash);
        assert_ne!(
            ChainHash::genesis(tenant),
            ChainHash::genesis(TenantId::random())
        );
    }

    #[test]
    fn values_are_redacted_on_the_way_in() {
        let record = AuditRecord::new(Actor::nobody(), "users.create", "user")
            .before(json!({"password": "canary-old"}))
            .after(json!({"password": "canary-new", "email": "a@b"}));
        let text = format!("{record:?}");
        assert!(!text.contains("canary"), "{text}");
        assert!(text.contains("a@b"), "{text}");
    }

    #[test]
    fn a_time_finer_than_the_database_keeps_does_not_break_the_hash() {
        let at = Timestamp::from_nanosecond(1_700_000_000_123_456_789).unwrap();
        let record = AuditRecord::new(Actor::system(), "a", "b");
        let mut entry = AuditEntry::append(TenantId::random(), None, at, record);
        entry.at = Timestamp::from_microsecond(entry.at.as_microsecond()).unwrap();
        assert_eq!(entry.computed_hash(), entry.hash);
    }

    #[test]
    fn hashes_read_back() {
        let hash = ChainHash::genesis(TenantId::random());
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for text in ["", "zz", &"é".repeat(32)] {
            assert!(text.parse::<ChainHash>().is_err());
        }
    }
}
