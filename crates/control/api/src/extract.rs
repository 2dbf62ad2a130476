//! Bodies, path segments and queries, with refusals in our own form.

use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use nimbus_control_app::Failure;
use nimbus_core::ErrorCode;
use serde::de::DeserializeOwned;

use crate::ApiState;
use crate::problem::ApiError;

/// A JSON body. Fields that the operation does not take are refused, not ignored.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<ApiState> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, ApiError> {
        match axum::Json::<T>::from_request(request, state).await {
            Ok(axum::Json(value)) => Ok(Self(value)),
            Err(rejection) => Err(refused(&rejection).into()),
        }
    }
}

fn refused(rejection: &JsonRejection) -> Failure {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Failure::field("body", "it is larger than this server accepts");
    }
    match rejection {
        // Says which field and what it should be; the input itself is not repeated.
        JsonRejection::JsonDataError(error) => Failure::field("body", error.body_text()),
        JsonRejection::MissingJsonContentType(_) => {
            Failure::field("content-type", "this takes application/json")
        }
        _ => Failure::field("body", "this is not JSON"),
    }
}

/// Path segments; one that is malformed is a thing that does not exist.
pub(crate) struct Segments<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<ApiState> for Segments<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(_) => Err(Failure::not_found().into()),
        }
    }
}

/// The query.
pub(crate) struct Filter<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<ApiState> for Filter<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(error) => Err(Failure::new(ErrorCode::INPUT_INVALID, error.body_text()).into()),
        }
    }
}
