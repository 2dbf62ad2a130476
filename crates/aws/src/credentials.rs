//! Keys, and how they are kept while they are good.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use tokio::sync::Mutex;

use crate::chain;
use crate::error::AwsError;
use crate::settings::AwsSettings;

/// Keys of somebody, as requests are signed with.
#[derive(Clone)]
pub struct AwsCredentials {
    pub access_key: String,
    pub secret_key: SecretString,
    /// Comes with keys that are lent.
    pub token: Option<SecretString>,
    pub(super) expires: Option<Timestamp>,
    /// Where they were found, for people.
    pub(super) place: String,
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AwsCredentials(from {})", self.place)
    }
}

impl AwsCredentials {
    pub(super) fn new(key: &str, secret: &str, token: Option<&str>, place: String) -> Self {
        Self {
            access_key: key.to_owned(),
            secret_key: secret.into(),
            token: token.map(SecretString::from),
            expires: None,
            place,
        }
    }

    /// Whether they will last for another request.
    fn is_good(&self, now: Timestamp) -> bool {
        let soon = SignedDuration::from_mins(5);
        self.expires
            .is_none_or(|end| end.duration_since(now) > soon)
    }
}

/// Keeps credentials while they are good; asks for them once however many wait.
#[derive(Default)]
pub(super) struct CredentialCache {
    kept: Mutex<Option<AwsCredentials>>,
}

impl CredentialCache {
    pub(super) async fn credentials(
        &self,
        settings: &AwsSettings,
        region: &str,
    ) -> Result<AwsCredentials, AwsError> {
        let mut kept = self.kept.lock().await;
        if let Some(credentials) = kept.as_ref().filter(|c| c.is_good(Timestamp::now())) {
            return Ok(credentials.clone());
        }
        let credentials = chain::find(settings, region).await?;
        Ok(kept.insert(credentials).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> AwsCredentials {
        AwsCredentials::new("AKIA", "hush", Some("token"), "a test".to_owned())
    }

    #[test]
    fn keys_that_end_soon_are_not_good() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let ending = |text: &str| AwsCredentials {
            expires: Some(text.parse().unwrap()),
            ..keys()
        };
        assert!(ending("2026-01-01T13:00:00Z").is_good(now));
        assert!(!ending("2026-01-01T12:04:00Z").is_good(now));
        assert!(keys().is_good(now));
    }

    #[test]
    fn nothing_of_a_key_is_printed() {
        assert_eq!(format!("{:?}", keys()), "AwsCredentials(from a test)");
    }
}
