//! Entries as JSON Lines and as CSV.

use serde_json::{Value, json};

use crate::entry::AuditEntry;

/// The columns of the CSV form, in order.
pub const CSV_HEADER: &str = "sequence,timestamp,actor_kind,user_id,original_user,action,resource_type,resource_id,\
     outcome,priority,old_value,new_value,trace_id,ip_address,previous_hash,hash,proof";

/// One line, with its line break. Holds everything that verification needs.
pub fn to_json_line(entry: &AuditEntry) -> String {
    let record = &entry.record;
    let value = |text: Option<&str>| -> Value {
        text.and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or(Value::Null)
    };
    let line = json!({
        "tenant_id": entry.tenant.to_string(),
        "sequence": entry.sequence,
        "timestamp": entry.at.to_string(),
        "actor_kind": record.actor.kind.as_str(),
        "user_id": record.actor.id,
        "original_user": record.actor.original,
        "action": record.action,
        "resource_type": record.resource_type,
        "resource_id": record.resource_id,
        "outcome": record.outcome.as_str(),
        "priority": record.priority.as_str(),
        "old_value": value(record.old_value()),
        "new_value": value(record.new_value()),
        "trace_id": record.trace_id,
        "ip_address": record.ip_address,
        "previous_hash": entry.previous.to_string(),
        "hash": entry.hash.to_string(),
        "proof": entry.proof,
    });
    line.to_string() + "\n"
}

/// One line, with its line break.
pub fn to_csv_line(entry: &AuditEntry) -> String {
    let record = &entry.record;
    let optional = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let fields = [
        entry.sequence.to_string(),
        entry.at.to_string(),
        record.actor.kind.as_str().to_owned(),
        record.actor.id.clone(),
        optional(record.actor.original.as_deref()),
        record.action.clone(),
        record.resource_type.clone(),
        optional(record.resource_id.as_deref()),
        record.outcome.as_str().to_owned(),
        record.priority.as_str().to_owned(),
        optional(record.old_value()),
        optional(record.new_value()),
        optional(record.trace_id.as_deref()),
        optional(record.ip_address.as_deref()),
        entry.previous.to_string(),
        entry.hash.to_string(),
        optional(entry.proof.as_deref()),
    ];
    let line: Vec<_> = fields.iter().map(|field| quote(field)).collect();
    line.join(",") + "\r\n"
}

/// Quoted where needed. Text that a spreadsheet would run as a formula gets a leading apostrophe.
fn quote(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula {
        format!("'{field}")
    } else {
        field.to_owned()
    };
    if formula || text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use nimbus_core::TenantId;

    use super::*;
    use crate::entry::{Actor, AuditRecord};

    fn entry(name: &str) -> AuditEntry {
        let record = AuditRecord::new(Actor::system(), "users.create", "user")
            .on(name)
            .after(json!({"name": name}));
        AuditEntry::append(TenantId::random(), None, Timestamp::UNIX_EPOCH, record)
    }

    #[test]
    fn a_json_line_is_one_line_with_the_values_as_json() {
        let line = to_json_line(&entry("a\nb"));
        assert_eq!(line.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["new_value"]["name"], "a\nb");
        assert_eq!(value["timestamp"], "1970-01-01T00:00:00Z");
    }

    #[test]
    fn csv_has_as_many_fields_as_its_header_and_runs_no_formula() {
        let line = to_csv_line(&entry("plain"));
        assert!(line.ends_with("\r\n"));
        assert!(line.contains(r#""{""name"":""plain""}""#), "{line}");
        assert_eq!(CSV_HEADER.split(',').count(), 17);
        assert_eq!(
            line.replace(r#""{""name"":""plain""}""#, "")
                .split(',')
                .count(),
            17
        );
        assert_eq!(quote("=cmd()"), r#""'=cmd()""#);
        assert_eq!(quote("a,b"), r#""a,b""#);
        assert_eq!(quote("plain"), "plain");
    }
}
