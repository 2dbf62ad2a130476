//! The console's cookies.

use axum::http::{HeaderMap, HeaderValue, header};
use nimbus_control_app::SignedIn;

pub(crate) const SESSION: &str = "nimbus_session";
pub(crate) const REFRESH: &str = "nimbus_refresh";
const REFRESH_PATH: &str = "/api/v1/auth";

/// The value of a cookie.
pub(crate) fn read<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(own, _)| *own == name)
        .map(|(_, value)| value)
}

/// Cookies that scripts cannot read and other sites cannot send.
pub(crate) fn set(headers: &mut HeaderMap, signed_in: &SignedIn, secure: bool) {
    put(
        headers,
        SESSION,
        &signed_in.access_token,
        "/",
        signed_in.access_seconds,
        secure,
    );
    put(
        headers,
        REFRESH,
        &signed_in.refresh_token,
        REFRESH_PATH,
        signed_in.refresh_seconds,
        secure,
    );
}

pub(crate) fn clear(headers: &mut HeaderMap, secure: bool) {
    put(headers, SESSION, "", "/", 0, secure);
    put(headers, REFRESH, "", REFRESH_PATH, 0, secure);
}

fn put(headers: &mut HeaderMap, name: &str, value: &str, path: &str, seconds: u32, secure: bool) {
    let secure = if secure { "; Secure" } else { "" };
    let text = format!(
        "{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.append(header::SET_COOKIE, value);
    }
}
