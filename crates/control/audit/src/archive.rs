//! Entries as they are kept outside of the database: one JSON object per line.
//!
//! Unlike an export, a line gives an entry back exactly. Values are kept as the text that was hashed, so
//! that an archive proves as much as the table that it came from.

use jiff::Timestamp;
use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};

use crate::entry::{Actor, ActorKind, AuditEntry, AuditRecord, Outcome, Priority};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchiveLine {
    tenant_id: TenantId,
    sequence: u64,
    /// Microseconds since 1970, which is what is hashed.
    at: i64,
    actor_kind: ActorKind,
    user_id: String,
    original_user: Option<String>,
    action: String,
    resource_type: String,
    resource_id: Option<String>,
    outcome: Outcome,
    priority: Priority,
    /// JSON as text.
    old_value: Option<String>,
    new_value: Option<String>,
    trace_id: Option<String>,
    ip_address: Option<String>,
    previous_hash: String,
    hash: String,
    proof: Option<String>,
}

/// One line, with its line break.
pub fn to_archive_line(entry: &AuditEntry) -> String {
    let record = &entry.record;
    let line = ArchiveLine {
        tenant_id: entry.tenant,
        sequence: entry.sequence,
        at: entry.at.as_microsecond(),
        actor_kind: record.actor.kind,
        user_id: record.actor.id.clone(),
        original_user: record.actor.original.clone(),
        action: record.action.clone(),
        resource_type: record.resource_type.clone(),
        resource_id: record.resource_id.clone(),
        outcome: record.outcome,
        priority: record.priority,
        old_value: record.old_value().map(str::to_owned),
        new_value: record.new_value().map(str::to_owned),
        trace_id: record.trace_id.clone(),
        ip_address: record.ip_address.clone(),
        previous_hash: entry.previous.to_string(),
        hash: entry.hash.to_string(),
        proof: entry.proof.clone(),
    };
    serde_json::to_string(&line).expect("a line has text and numbers only") + "\n"
}

/// The entry of a line; none if the line is not one that was written here.
pub fn from_archive_line(text: &str) -> Option<AuditEntry> {
    let line: ArchiveLine = serde_json::from_str(text).ok()?;
    let actor = Actor {
        kind: line.actor_kind,
        id: line.user_id,
        original: line.original_user,
    };
    let mut record = AuditRecord::new(actor, &line.action, &line.resource_type)
        .outcome(line.outcome)
        .priority(line.priority)
        .with_stored_values(line.old_value, line.new_value);
    record.resource_id = line.resource_id;
    record.trace_id = line.trace_id;
    record.ip_address = line.ip_address;
    Some(AuditEntry {
        tenant: line.tenant_id,
        sequence: line.sequence,
        at: Timestamp::from_microsecond(line.at).ok()?,
        record,
        previous: line.previous_hash.parse().ok()?,
        hash: line.hash.parse().ok()?,
        proof: line.proof,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_comes_back_to_the_last_byte() {
        let mut record = AuditRecord::new(Actor::system(), "users.update", "user")
            .on("line\nbreak \"quoted\" é")
            .before(json!({"b": 1, "a": [1.0, null, "x\ny"]}))
            .after(json!({"b": 2}))
            .outcome(Outcome::Denied)
            .priority(Priority::Critical);
        record.actor.original = Some("somebody".to_owned());
        record.trace_id = Some("t".to_owned());
        record.ip_address = Some("::1".to_owned());
        let at = Timestamp::from_microsecond(1_700_000_000_123_456).unwrap();
        let mut entry = AuditEntry::append(TenantId::random(), None, at, record);
        entry.proof = Some("proof".to_owned());
        let line = to_archive_line(&entry);
        assert_eq!(line.matches('\n').count(), 1);
        let back = from_archive_line(&line).unwrap();
        assert_eq!(back, entry);
        assert_eq!(back.computed_hash(), entry.hash);
    }

    #[test]
    fn a_line_of_somebody_else_is_no_entry() {
        let entry = AuditEntry::append(
            TenantId::random(),
            None,
            Timestamp::UNIX_EPOCH,
            AuditRecord::new(Actor::system(), "a", "b"),
        );
        let line = to_archive_line(&entry);
        for changed in [
            String::new(),
            "{}".to_owned(),
            line[..line.len() / 2].to_owned(),
            line.replace("\"at\":", "\"when\":"),
            line.replace("\"low\"", "\"none\"")
                .replace("\"normal\"", "\"none\""),
        ] {
            assert_eq!(from_archive_line(&changed), None, "{changed}");
        }
    }
}
