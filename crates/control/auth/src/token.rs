//! Access tokens: short-lived, signed, and naming a session.
//!
//! A token is a JSON Web Token with exactly one header form and one algorithm, HMAC-SHA-256. There
//! is nothing to negotiate, so there is nothing to confuse: a header that differs from the one that
//! is written here, in any byte that matters, is refused. What somebody may do is never read from a
//! token; it is read on the server, through the session that the token names.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nimbus_core::{TenantId, UserId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::secret::{self, ServerKeys};

const PURPOSE: &str = "nimbus/auth/access-token/1";
const ALGORITHM: &str = "HS256";
const TYPE: &str = "at+jwt";
/// Nothing that we write is longer.
const MAX_LENGTH: usize = 2048;
/// How far clocks of several servers may differ.
const LEEWAY_SECONDS: i64 = 5;

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    pub iss: String,
    pub aud: String,
    /// The user or service account.
    pub sub: UserId,
    pub tenant_id: TenantId,
    /// The session, which can be revoked.
    pub sid: Uuid,
    pub iat: i64,
    pub nbf: i64,
    pub exp: i64,
    pub jti: Uuid,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenHeader {
    alg: String,
    typ: String,
    kid: String,
}

/// Why a token does not count. All of them look the same from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token is not well formed")]
    Malformed,
    #[error("the token is not signed by a key of this server")]
    Signature,
    #[error("the token was made for another server or another use")]
    Audience,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    Early,
}

/// Makes and reads tokens of one server.
#[derive(Clone, Debug)]
pub struct AccessTokens {
    keys: ServerKeys,
    issuer: String,
}

/// Who a token is made for.
#[derive(Clone, Copy, Debug)]
pub struct TokenSubject {
    pub user: UserId,
    pub tenant: TenantId,
    pub session: Uuid,
}

impl AccessTokens {
    const AUDIENCE: &str = "nimbus-api";

    pub fn new(keys: ServerKeys, issuer: impl Into<String>) -> Self {
        Self {
            keys,
            issuer: issuer.into(),
        }
    }

    pub fn issue(&self, subject: TokenSubject, now: i64, lifetime_seconds: u32) -> String {
        let claims = Claims {
            iss: self.issuer.clone(),
            aud: Self::AUDIENCE.to_owned(),
            sub: subject.user,
            tenant_id: subject.tenant,
            sid: subject.session,
            iat: now,
            nbf: now,
            exp: now + i64::from(lifetime_seconds),
            jti: Uuid::new_v4(),
        };
        self.sign(&claims)
    }

    fn sign(&self, claims: &Claims) -> String {
        let key = self.keys.active();
        let header = TokenHeader {
            alg: ALGORITHM.to_owned(),
            typ: TYPE.to_owned(),
            kid: key.id().to_owned(),
        };
        let signed = format!("{}.{}", encode(&header), encode(claims));
        let code = key.authenticate(PURPOSE, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(code))
    }

    /// What the token says, if it is ours and alive.
    pub fn read(&self, token: &str, now: i64) -> Result<Claims, TokenError> {
        if token.len() > MAX_LENGTH {
            return Err(TokenError::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let header: TokenHeader = decode(header)?;
        if header.alg != ALGORITHM || header.typ != TYPE {
            return Err(TokenError::Malformed);
        }
        let key = self.keys.find(&header.kid).ok_or(TokenError::Signature)?;
        let given = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| TokenError::Malformed)?;
        if !secret::equal(&given, &key.authenticate(PURPOSE, signed.as_bytes())) {
            return Err(TokenError::Signature);
        }
        let claims: Claims = decode(claims)?;
        if claims.iss != self.issuer || claims.aud != Self::AUDIENCE {
            return Err(TokenError::Audience);
        }
        if now >= claims.exp {
            return Err(TokenError::Expired);
        }
        if now + LEEWAY_SECONDS < claims.nbf {
            return Err(TokenError::Early);
        }
        Ok(claims)
    }
}

fn encode(value: &impl Serialize) -> String {
    let json = serde_json::to_vec(value).expect("plain fields have a JSON form");
    URL_SAFE_NO_PAD.encode(json)
}

fn decode<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, TokenError> {
    let json = URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| TokenError::Malformed)?;
    serde_json::from_slice(&json).map_err(|_| TokenError::Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::secret::ServerKey;

    const NOW: i64 = 1_800_000_000;

    fn tokens() -> AccessTokens {
        AccessTokens::new(
            ServerKeys::new(ServerKey::generate(), Vec::new()),
            "https://a",
        )
    }

    fn subject() -> TokenSubject {
        TokenSubject {
            user: UserId::random(),
            tenant: TenantId::random(),
            session: Uuid::new_v4(),
        }
    }

    /// A token of this key with header and claims of somebody's choice.
    fn forged(tokens: &AccessTokens, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encode(header), encode(claims));
        let code = tokens
            .keys
            .active()
            .authenticate(PURPOSE, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(code))
    }

    fn good_header(tokens: &AccessTokens) -> Value {
        json!({"alg": "HS256", "typ": "at+jwt", "kid": tokens.keys.active().id()})
    }

    fn good_claims(tokens: &AccessTokens) -> Value {
        let token = tokens.issue(subject(), NOW, 600);
        serde_json::to_value(tokens.read(&token, NOW).unwrap()).unwrap()
    }

    #[test]
    fn a_token_names_its_session_until_it_expires() {
        let tokens = tokens();
        let subject = subject();
        let token = tokens.issue(subject, NOW, 600);
        let claims = tokens.read(&token, NOW + 599).unwrap();
        assert_eq!(claims.sid, subject.session);
        assert_eq!(
            (claims.sub, claims.tenant_id),
            (subject.user, subject.tenant)
        );
        assert_eq!(tokens.read(&token, NOW + 600), Err(TokenError::Expired));
        assert_eq!(tokens.read(&token, NOW - 60), Err(TokenError::Early));
        assert!(
            tokens.read(&token, NOW - 5).is_ok(),
            "clocks may differ a little"
        );
    }

    #[test]
    fn other_algorithms_types_and_headers_are_refused_even_with_a_right_code() {
        let tokens = tokens();
        let claims = good_claims(&tokens);
        assert!(
            tokens
                .read(&forged(&tokens, &good_header(&tokens), &claims), NOW)
                .is_ok()
        );
        for (field, value) in [
            ("alg", json!("none")),
            ("alg", json!("None")),
            ("alg", json!("RS256")),
            ("alg", json!("HS512")),
            ("typ", json!("JWT")),
            ("typ", json!("refresh")),
            ("kid", json!("../../dev/null")),
            ("kid", json!("' or 1=1 --")),
            ("kid", Value::Null),
            ("jku", json!("https://evil.example/keys")),
            ("jwk", json!({"kty": "oct", "k": "AA"})),
            ("crit", json!(["b64"])),
        ] {
            let mut header = good_header(&tokens);
            header[field] = value;
            let token = forged(&tokens, &header, &claims);
            assert!(tokens.read(&token, NOW).is_err(), "{header}");
        }
    }

    #[test]
    fn other_issuers_audiences_and_claims_are_refused_even_with_a_right_code() {
        let tokens = tokens();
        for (field, value) in [
            ("iss", json!("https://b")),
            ("aud", json!("other")),
            ("exp", json!(NOW)),
            ("nbf", json!(NOW + 3600)),
            ("tenant_id", json!("not an id")),
            ("sub", Value::Null),
            ("roles", json!(["provider_admin"])),
        ] {
            let mut claims = good_claims(&tokens);
            claims[field] = value;
            let token = forged(&tokens, &good_header(&tokens), &claims);
            assert!(tokens.read(&token, NOW).is_err(), "{claims}");
        }
    }

    #[test]
    fn a_token_without_signature_or_of_another_key_is_refused() {
        let tokens = tokens();
        let token = tokens.issue(subject(), NOW, 600);
        let unsigned = format!("{}.", token.rsplit_once('.').unwrap().0);
        assert_eq!(tokens.read(&unsigned, NOW), Err(TokenError::Signature));
        let stranger = AccessTokens::new(
            ServerKeys::new(ServerKey::generate(), Vec::new()),
            "https://a",
        );
        assert_eq!(stranger.read(&token, NOW), Err(TokenError::Signature));
        assert_eq!(
            tokens.read(&"a".repeat(1_000_000), NOW),
            Err(TokenError::Malformed)
        );
    }

    #[test]
    fn tokens_of_the_old_key_live_on_after_a_new_one_came() {
        let old = ServerKey::generate();
        let before = AccessTokens::new(ServerKeys::new(old.clone(), Vec::new()), "https://a");
        let token = before.issue(subject(), NOW, 600);
        let after = AccessTokens::new(
            ServerKeys::new(ServerKey::generate(), vec![old]),
            "https://a",
        );
        assert!(after.read(&token, NOW).is_ok());
        let fresh = after.issue(subject(), NOW, 600);
        assert_eq!(before.read(&fresh, NOW), Err(TokenError::Signature));
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_refused(position in any::<prop::sample::Index>(), with in "[A-Za-z0-9._-]") {
            let tokens = tokens();
            let token = tokens.issue(subject(), NOW, 600);
            let at = position.index(token.len());
            let changed = format!("{}{with}{}", &token[..at], &token[at + 1..]);
            // The last character of base64 has bits that do not count.
            prop_assume!(changed != token && at + 1 != token.len());
            prop_assert!(tokens.read(&changed, NOW).is_err());
        }

        #[test]
        fn text_of_any_kind_is_refused_quietly(text in ".*") {
            prop_assert!(tokens().read(&text, NOW).is_err());
        }
    }
}
