//! An event: as it is published, as it is sent, and the place of one in its tenant's log.

use std::fmt;
use std::str::FromStr;

use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::kind::EventKind;

/// No event has more data than this; what is larger is left out, and read from where it belongs.
const MOST_DATA_BYTES: usize = 8 * 1024;

/// Something that happened, to be told once its transaction is committed.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub kind: EventKind,
    /// Ids of what it is about: whoever watches one of them hears it.
    pub subjects: Vec<String>,
    pub environment: Option<String>,
    pub person: Option<Uuid>,
    pub data: Value,
    pub trace_id: Option<String>,
}

impl NewEvent {
    pub fn new(kind: EventKind, subject: impl fmt::Display, data: Value) -> Self {
        let large = data.to_string().len() > MOST_DATA_BYTES;
        Self {
            kind,
            subjects: vec![subject.to_string()],
            environment: None,
            person: None,
            data: if large {
                serde_json::json!({"resource_id": subject.to_string(), "too_large": true})
            } else {
                data
            },
            trace_id: None,
        }
    }

    pub fn about(mut self, subject: impl fmt::Display) -> Self {
        self.subjects.push(subject.to_string());
        self
    }

    pub fn in_environment(mut self, environment: &str) -> Self {
        self.environment = Some(environment.to_owned());
        self
    }

    pub fn of_person(mut self, person: Option<Uuid>) -> Self {
        self.person = person;
        self
    }

    pub fn traced(mut self, trace_id: Option<String>) -> Self {
        self.trace_id = trace_id;
        self
    }
}

/// An event of a tenant's log. What clients get is the form of document 002, with the cursor to come back with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveEvent {
    #[serde(rename = "type")]
    pub kind: String,
    pub tenant_id: TenantId,
    pub data: Value,
    pub timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Never given twice: the same event has the same id wherever it is read.
    pub id: Uuid,
    /// You have everything up to here.
    pub cursor: LiveCursor,
    #[serde(skip)]
    pub subjects: Vec<String>,
    #[serde(skip)]
    pub environment: Option<String>,
    #[serde(skip)]
    pub person: Option<Uuid>,
}

/// A place in the log of a tenant. A log that begins anew, after a restore, has another epoch, and places of the old
/// one are known to be of another log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct LiveCursor {
    pub epoch: Uuid,
    pub seq: i64,
}

impl fmt::Display for LiveCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch.simple(), self.seq)
    }
}

/// A text that is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorError;

impl fmt::Display for CursorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("give the `cursor` of an event, as it was sent")
    }
}

impl std::error::Error for CursorError {}

impl FromStr for LiveCursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (epoch, seq) = text.split_once('.').ok_or(CursorError)?;
        let seq: i64 = seq.parse().map_err(|_| CursorError)?;
        if seq < 0 {
            return Err(CursorError);
        }
        Ok(Self {
            epoch: Uuid::try_parse(epoch).map_err(|_| CursorError)?,
            seq,
        })
    }
}

impl Serialize for LiveCursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LiveCursor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind;

    #[test]
    fn cursors_survive_text_and_nothing_else_is_one() {
        let cursor = LiveCursor {
            epoch: Uuid::new_v4(),
            seq: 41,
        };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        let wrong = [
            "",
            ".",
            "1",
            "x.1",
            &format!("{}.-1", cursor.epoch),
            "a.b.c",
        ];
        for text in wrong {
            assert_eq!(text.parse::<LiveCursor>(), Err(CursorError), "{text}");
        }
    }

    #[test]
    fn an_event_is_sent_in_the_form_of_the_document() {
        let event = LiveEvent {
            kind: "tenant.created".into(),
            tenant_id: TenantId::from(Uuid::nil()),
            data: serde_json::json!({"resource_id": "x"}),
            timestamp: "2026-01-01T00:00:00Z".into(),
            trace_id: Some("t".into()),
            id: Uuid::nil(),
            cursor: LiveCursor::default(),
            subjects: vec!["hidden".into()],
            environment: Some("hidden".into()),
            person: None,
        };
        let sent = serde_json::to_value(&event).unwrap();
        for field in ["type", "tenant_id", "data", "timestamp", "trace_id"] {
            assert!(sent.get(field).is_some(), "{field}");
        }
        assert!(!sent.to_string().contains("hidden"));
    }

    #[test]
    fn what_is_too_large_is_left_out_and_says_so() {
        let data = serde_json::json!({"text": "x".repeat(MOST_DATA_BYTES)});
        let event = NewEvent::new(kind::TENANT_UPDATED, "t1", data);
        assert_eq!(event.data["too_large"], true);
        assert_eq!(event.data["resource_id"], "t1");
    }
}
