//! Headers that change what a request means: a key for repeating it, and the revision that it is about.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use nimbus_control_app::{Failure, RequestKey};
use serde::Serialize;

use crate::ApiState;
use crate::pipeline::header_text;
use crate::problem::ApiError;

/// `Idempotency-Key`, if there is one.
pub(crate) struct RepeatKey(Option<String>);

impl FromRequestParts<ApiState> for RepeatKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, ApiError> {
        let Some(key) = header_text(&parts.headers, "idempotency-key") else {
            return Ok(Self(None));
        };
        let valid =
            (1..=200).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
        if valid {
            return Ok(Self(Some(key.to_owned())));
        }
        Err(Failure::field("idempotency-key", "give 1 to 200 visible ASCII characters").into())
    }
}

impl RepeatKey {
    pub(crate) fn into_text(self) -> Option<String> {
        self.0
    }

    /// The key together with everything that was asked.
    pub(crate) fn of(self, asked: &impl Serialize) -> Option<RequestKey> {
        let request = serde_json::to_value(asked).unwrap_or_default();
        self.0.map(|key| RequestKey { key, request })
    }
}

/// The revision in `If-Match`, if there is one.
pub(crate) struct IfMatch(pub(crate) Option<i64>);

impl FromRequestParts<ApiState> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, ApiError> {
        let Some(text) = header_text(&parts.headers, header::IF_MATCH) else {
            return Ok(Self(None));
        };
        if text.trim() == "*" {
            return Ok(Self(None));
        }
        let number = text.trim().trim_matches('"').parse();
        match number {
            Ok(revision) => Ok(Self(Some(revision))),
            Err(_) => {
                Err(Failure::field("if-match", "this is not an `ETag` of this server").into())
            }
        }
    }
}

/// The entity tag of a revision.
pub(crate) fn etag(revision: i64) -> [(header::HeaderName, String); 1] {
    [(header::ETAG, format!("\"{revision}\""))]
}
