//! What happens in a run, numbered, and document 004's word for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Events of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEvents {
    pub items: Vec<NumberedEvent>,
    /// Give this as `after` to read on.
    pub next: i64,
    /// Whether there is nothing after these and there will not be.
    pub complete: bool,
}

/// What happened, and its place in its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NumberedEvent {
    pub seq: i64,
    /// One word for what happened, such as `stack_started`.
    pub kind: String,
    /// As `nimbus deploy --json` prints it.
    pub event: Value,
}

impl NumberedEvent {
    pub fn new(seq: i64, event: Value) -> Self {
        Self {
            seq,
            kind: event_kind(&event).to_owned(),
            event,
        }
    }
}

/// Document 004's word for an event of a run.
pub fn event_kind(event: &Value) -> &'static str {
    let word = |name: &str| event[name].as_str().unwrap_or_default();
    match (word("event"), word("status")) {
        ("run", "started") => "deployment_started",
        ("run", "resumed") => "deployment_resumed",
        ("run", "undoing") => "rollback_started",
        ("run", "late") => "warning",
        ("run", "ended") if word("result") == "succeeded" => "deployment_completed",
        ("run", _) => "deployment_ended",
        ("plan", _) => "plan",
        ("layer", "started") => "layer_started",
        ("layer", _) => "layer_completed",
        ("unit", "running") => "stack_started",
        ("unit", "succeeded" | "skipped") => "stack_completed",
        ("unit", "failed") => "error_occurred",
        ("unit", "not_started") => "warning",
        ("unit", "rolling_back") => "rollback_started",
        ("unit", _) => "stack_rolled_back",
        ("resource", "failed") => "error_occurred",
        ("resource", "done") => match word("op") {
            "create" | "create-replacement" | "import" => "resource_created",
            "update" => "resource_updated",
            "delete" | "delete-replaced" => "resource_deleted",
            _ => "resource_changed",
        },
        ("resource", _) => "resource_started",
        ("check", "failed") => "error_occurred",
        ("check", "warned") => "warning",
        ("check", _) => "check",
        ("diagnostic", _) => match word("level") {
            "error" => "error_occurred",
            "warning" => "warning",
            _ => "log",
        },
        _ => "log",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_word_of_the_document_has_its_event() {
        let words = [
            (
                json!({"event": "run", "status": "started"}),
                "deployment_started",
            ),
            (
                json!({"event": "layer", "status": "started"}),
                "layer_started",
            ),
            (
                json!({"event": "unit", "status": "running"}),
                "stack_started",
            ),
            (
                json!({"event": "resource", "status": "done", "op": "create"}),
                "resource_created",
            ),
            (
                json!({"event": "unit", "status": "succeeded"}),
                "stack_completed",
            ),
            (
                json!({"event": "layer", "status": "completed"}),
                "layer_completed",
            ),
            (
                json!({"event": "run", "status": "ended", "result": "succeeded"}),
                "deployment_completed",
            ),
            (
                json!({"event": "diagnostic", "level": "error"}),
                "error_occurred",
            ),
            (
                json!({"event": "unit", "status": "failed"}),
                "error_occurred",
            ),
            (
                json!({"event": "diagnostic", "level": "warning"}),
                "warning",
            ),
        ];
        for (event, word) in words {
            assert_eq!(event_kind(&event), word, "{event}");
        }
        assert_eq!(event_kind(&Value::Null), "log");
    }
}
