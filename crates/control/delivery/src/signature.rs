//! Signatures after Standard Webhooks: HMAC-SHA256 of id, time and body, with a secret of each receiver's own.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

/// What secrets begin with, so that they are known where they turn up.
pub const SECRET_PREFIX: &str = "whsec_";
const SECRET_BYTES: usize = 32;
/// What the standard asks for at least.
const FEWEST_BYTES: usize = 24;

/// What a receiver knows its sender by.
#[derive(Clone)]
pub struct WebhookSecret(Zeroizing<Vec<u8>>);

/// Says nothing about the text, which may be most of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the secret of a webhook")]
pub struct WebhookSecretError;

impl WebhookSecret {
    pub fn generate() -> Self {
        let bytes: [u8; SECRET_BYTES] = rand::random();
        Self(Zeroizing::new(bytes.to_vec()))
    }

    /// As it is shown to whoever sets up the receiver.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{SECRET_PREFIX}{}", STANDARD.encode(&*self.0)))
    }

    pub fn from_text(text: &str) -> Result<Self, WebhookSecretError> {
        let encoded = text.strip_prefix(SECRET_PREFIX).ok_or(WebhookSecretError)?;
        let bytes = Zeroizing::new(STANDARD.decode(encoded).map_err(|_| WebhookSecretError)?);
        match bytes.len() >= FEWEST_BYTES {
            true => Ok(Self(bytes)),
            false => Err(WebhookSecretError),
        }
    }

    /// The signature of one message at one moment, in seconds of Unix time.
    pub(crate) fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length is a key");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body.as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example_has_its_signature() {
        // From the specification of Standard Webhooks.
        let secret = WebhookSecret::from_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = secret.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_are_read_as_they_are_shown_and_too_short_ones_are_not() {
        let secret = WebhookSecret::generate();
        let text = secret.to_text();
        assert_eq!(&*WebhookSecret::from_text(&text).unwrap().to_text(), &*text);
        assert_ne!(&*WebhookSecret::generate().to_text(), &*text);
        assert!(!format!("{secret:?}").contains(&text[SECRET_PREFIX.len()..]));
        for wrong in ["", "whsec_", "whsec_c2hvcnQ=", "whsec_*", &text[1..]] {
            assert!(WebhookSecret::from_text(wrong).is_err(), "{wrong}");
        }
    }
}
