//! When a request that carries a session cookie counts.
//!
//! A browser adds cookies to requests that other sites cause. So a cookie alone proves nothing for
//! a request that changes something: it must also come from the console's own origin and repeat, in
//! a header, a code that belongs to the session and that only the console's own pages can read.
//! Bearer tokens are never added by browsers and need none of this.

use uuid::Uuid;

use crate::secret::{self, ServerKeys};

const PURPOSE: &str = "nimbus/auth/csrf/1";

/// The header in which the console repeats the code.
pub const HEADER: &str = "x-nimbus-csrf";

/// What matters of a request.
#[derive(Clone, Copy, Debug)]
pub struct CsrfRequest<'a> {
    pub safe_method: bool,
    pub origin: Option<&'a str>,
    pub csrf_header: Option<&'a str>,
}

/// Why a request with a cookie does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forged {
    #[error("the request does not come from this site")]
    Origin,
    #[error("the request lacks the session's code")]
    Code,
}

/// The code of a session.
pub fn code(keys: &ServerKeys, session: Uuid) -> String {
    let key = keys.active();
    let code = key.authenticate(PURPOSE, session.as_bytes());
    format!("{}.{}", key.id(), hex::encode(code))
}

/// Whether the request counts. `own_origins` are the addresses under which the console is served.
pub fn check(
    keys: &ServerKeys,
    session: Uuid,
    own_origins: &[String],
    request: CsrfRequest<'_>,
) -> Result<(), Forged> {
    if request.safe_method {
        return Ok(());
    }
    let own = |origin: &str| own_origins.iter().any(|own| own == origin);
    if !request.origin.is_some_and(own) {
        return Err(Forged::Origin);
    }
    let given = request.csrf_header.and_then(|given| given.split_once('.'));
    let valid = given.is_some_and(|(id, given)| {
        keys.find(id).is_some_and(|key| {
            let expected = hex::encode(key.authenticate(PURPOSE, session.as_bytes()));
            secret::equal(expected.as_bytes(), given.as_bytes())
        })
    });
    if valid { Ok(()) } else { Err(Forged::Code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::ServerKey;

    #[test]
    fn only_the_consoles_own_pages_can_change_things_with_a_cookie() {
        let keys = ServerKeys::new(ServerKey::generate(), Vec::new());
        let session = Uuid::new_v4();
        let own = ["https://nimbus.example".to_owned()];
        let right = code(&keys, session);
        let of_another_session = code(&keys, Uuid::new_v4());
        let attempt = |safe_method, origin, csrf_header| {
            let request = CsrfRequest {
                safe_method,
                origin,
                csrf_header,
            };
            check(&keys, session, &own, request)
        };
        let here = Some("https://nimbus.example");
        assert_eq!(attempt(false, here, Some(&right)), Ok(()));
        assert_eq!(attempt(true, None, None), Ok(()), "reading needs no proof");
        for origin in [
            None,
            Some("null"),
            Some("http://nimbus.example"),
            Some("https://nimbus.example.evil.example"),
            Some("https://evil.example"),
            Some("https://sub.nimbus.example"),
        ] {
            assert_eq!(
                attempt(false, origin, Some(&right)),
                Err(Forged::Origin),
                "{origin:?}"
            );
        }
        for code in [
            None,
            Some(""),
            Some("x.y"),
            Some(of_another_session.as_str()),
        ] {
            assert_eq!(attempt(false, here, code), Err(Forged::Code), "{code:?}");
        }
    }
}
