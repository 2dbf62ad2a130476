//! Bodies, path segments and queries, with refusals in our own form.
//!
//! What no operation can use is refused here, for every route there is and will be: characters that the
//! database does not store, pages of no size, cursors that were never given out.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use nimbus_control_app::{Failure, ListPage};
use nimbus_core::ErrorCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::ApiError;
use crate::{ApiState, MAX_BODY_BYTES};

/// A JSON body. Fields that the operation does not take are refused, not ignored.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<ApiState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            return Err(Failure::field("content-type", "this takes application/json").into());
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|rejection| whole_body(&rejection))?;
        Ok(Self(read_body(&bytes)?))
    }
}

/// Why a body did not arrive.
pub(crate) fn whole_body(rejection: &BytesRejection) -> Failure {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let message = format!("the body has more than {MAX_BODY_BYTES} bytes");
        Failure::new(ErrorCode::REQUEST_TOO_LARGE, message)
    } else {
        Failure::field("body", "it did not arrive whole")
    }
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let given = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next());
    given.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Refuses what is not JSON, and what cannot be stored.
pub(crate) fn ensure_storable(bytes: &[u8]) -> Result<(), Failure> {
    let whole: Value = serde_json::from_slice(bytes).map_err(|error| Failure::not_json(&error))?;
    refuse_unstorable(&whole, &mut String::new())
}

fn read_body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    ensure_storable(bytes)?;
    // From the text and not from the value: a field that is given twice is not one of the two.
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        // Says what the field should be; the input itself is not repeated beyond a word or a number.
        let message = plain_words(&error.inner().to_string());
        let message: String = message.chars().take(300).collect();
        if path == "." {
            Failure::field("body", message)
        } else {
            Failure::field(path, message)
        }
    })
}

/// What was expected, in words of JSON: names of Rust's types say nothing to whoever sends a request.
fn plain_words(message: &str) -> String {
    let Some((said, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    // The rest is where it stands in the text.
    let (kind, rest) = match expected.find(" at line ") {
        Some(end) => expected.split_at(end),
        None => (expected, ""),
    };
    let kind = match kind {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        kind if kind.starts_with("struct ") => "an object",
        kind if kind.starts_with("nonzero ") || kind.starts_with("a nonzero ") => {
            "a whole number above 0"
        }
        kind => kind,
    };
    format!("{said}, expected {kind}{rest}")
}

/// PostgreSQL stores every character but one.
fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}

fn unstorable(field: String) -> Failure {
    let field: String = field
        .chars()
        .filter(|letter| *letter != '\0')
        .take(200)
        .collect();
    Failure::field(field, "it has the character U+0000, which cannot be stored")
}

fn refuse_unstorable(value: &Value, path: &mut String) -> Result<(), Failure> {
    let end = path.len();
    match value {
        Value::String(text) if !is_storable(text) => return Err(unstorable(path.clone())),
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                path.push_str(&format!("[{number}]"));
                refuse_unstorable(item, path)?;
                path.truncate(end);
            }
        }
        Value::Object(entries) => {
            for (key, item) in entries {
                if end > 0 {
                    path.push('.');
                }
                path.push_str(key);
                if !is_storable(key) {
                    return Err(unstorable(path.clone()));
                }
                refuse_unstorable(item, path)?;
                path.truncate(end);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Path segments; one that is malformed is a thing that does not exist.
pub(crate) struct Segments<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<ApiState> for Segments<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        if let Ok(raw) = RawPathParams::from_request_parts(parts, state).await {
            for (name, value) in &raw {
                if !is_storable(value) {
                    return Err(unstorable(name.to_owned()).into());
                }
            }
        }
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(_) => Err(Failure::not_found().into()),
        }
    }
}

/// The query.
pub(crate) struct ListFilter<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<ApiState> for ListFilter<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|_| Failure::field("query", "this is not a query"))?
            .0;
        for (name, value) in &pairs {
            if !is_storable(name) || !is_storable(value) {
                return Err(unstorable(name.clone()).into());
            }
        }
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(error) => {
                let text = error.body_text();
                let named = pairs.into_iter().map(|(name, _)| name).find(|name| {
                    text.contains(&format!("{name}:")) || text.contains(&format!("`{name}`"))
                });
                Err(match named {
                    Some(name) => Failure::field(name, "this is not what it takes"),
                    None => Failure::new(ErrorCode::INPUT_INVALID, text),
                }
                .into())
            }
        }
    }
}

/// Which part of a list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PageQuery {
    /// The `next` of the page before.
    pub(crate) after: Option<String>,
    /// So many at once, 1 to 500.
    pub(crate) limit: Option<u32>,
}

/// The most items of one page.
const LARGEST_PAGE: u32 = 500;
const USUAL_PAGE: u32 = 100;

impl PageQuery {
    pub(crate) fn page<C: std::str::FromStr>(self) -> Result<ListPage<C>, Failure> {
        page(self.after, self.limit)
    }
}

/// The part of a list that a query asks for, which is never silently another one.
pub(crate) fn page<C: std::str::FromStr>(
    after: Option<String>,
    limit: Option<u32>,
) -> Result<ListPage<C>, Failure> {
    let after = after
        .map(|text| text.parse())
        .transpose()
        .map_err(|_| Failure::field("after", "this is not the `next` of a page"))?;
    Ok(ListPage {
        after,
        limit: page_size(limit, USUAL_PAGE, LARGEST_PAGE)?,
    })
}

pub(crate) fn page_size(given: Option<u32>, usual: u32, largest: u32) -> Result<u32, Failure> {
    let limit = given.unwrap_or(usual);
    if (1..=largest).contains(&limit) {
        Ok(limit)
    } else {
        Err(Failure::field("limit", format!("give 1 to {largest}")))
    }
}
