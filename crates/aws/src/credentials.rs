//! Keys, and how they are had and kept while they are good.

use std::fmt;
use std::fs;

use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::credential_source::CredentialSource;
use crate::error::AwsError;
use crate::queries;
use crate::responses::{TemporaryCredentials, lent};
use crate::settings::AwsSettings;
use crate::transport::{AwsCall, AwsService, AwsTransport, RequestBody};

#[derive(Clone)]
pub(super) struct AwsCredentials {
    pub(super) access_key: String,
    pub(super) secret_key: SecretString,
    pub(super) token: Option<SecretString>,
    expires: Option<Timestamp>,
    /// Where they were found, for people.
    pub(super) place: String,
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AwsCredentials(from {})", self.place)
    }
}

impl PartialEq for AwsCredentials {
    fn eq(&self, other: &Self) -> bool {
        self.access_key == other.access_key
            && self.secret_key.expose_secret() == other.secret_key.expose_secret()
    }
}

impl AwsCredentials {
    pub(super) fn fixed(key: &str, secret: &str, token: Option<&str>, place: &str) -> Self {
        Self {
            access_key: key.to_owned(),
            secret_key: secret.into(),
            token: token.map(SecretString::from),
            expires: None,
            place: place.to_owned(),
        }
    }

    fn lent(lent: TemporaryCredentials, place: &str) -> Result<Self, AwsError> {
        let mut credentials = Self::fixed(
            &lent.access_key_id,
            &lent.secret_access_key,
            Some(&lent.session_token),
            place,
        );
        credentials.expires = Some(time(&lent.expiration, place)?);
        Ok(credentials)
    }

    /// Whether they will last for another request.
    fn is_good(&self, now: Timestamp) -> bool {
        let soon = SignedDuration::from_mins(5);
        self.expires
            .is_none_or(|end| end.duration_since(now) > soon)
    }
}

fn time(text: &str, place: &str) -> Result<Timestamp, AwsError> {
    text.parse()
        .map_err(|error: jiff::Error| AwsError::Unusable {
            place: place.to_owned(),
            problem: format!("it says that its keys end at `{text}`: {error}"),
        })
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
        transport: &AwsTransport,
        region: &str,
    ) -> Result<AwsCredentials, AwsError> {
        let mut kept = self.kept.lock().await;
        if let Some(credentials) = kept.as_ref().filter(|c| c.is_good(Timestamp::now())) {
            return Ok(credentials.clone());
        }
        let broker = CredentialBroker {
            settings,
            transport,
            region,
        };
        let credentials = broker.take(&settings.source()?).await?;
        Ok(kept.insert(credentials).clone())
    }
}

struct CredentialBroker<'a> {
    settings: &'a AwsSettings,
    transport: &'a AwsTransport,
    region: &'a str,
}

impl CredentialBroker<'_> {
    async fn take(&self, source: &CredentialSource) -> Result<AwsCredentials, AwsError> {
        let place = source.describe();
        match source {
            CredentialSource::Keys(credentials) => Ok(credentials.clone()),
            CredentialSource::WebIdentity {
                role,
                session,
                token_file,
            } => {
                let unreadable = |error: std::io::Error| AwsError::Unusable {
                    place: token_file.clone(),
                    problem: error.to_string(),
                };
                let token = fs::read_to_string(token_file).map_err(unreadable)?;
                let body = queries::assume_role_with_token(role, session, token.trim());
                AwsCredentials::lent(lent(&self.exchange(body, None).await?)?, &place)
            }
            CredentialSource::Role {
                role,
                session,
                external_id,
                from,
            } => {
                let own = Box::pin(self.take(from)).await?;
                let body = queries::assume_role(role, session, external_id.as_deref());
                AwsCredentials::lent(lent(&self.exchange(body, Some(&own)).await?)?, &place)
            }
            CredentialSource::Process { command } => from_process(command, &place).await,
        }
    }

    async fn exchange(
        &self,
        body: RequestBody,
        own: Option<&AwsCredentials>,
    ) -> Result<String, AwsError> {
        let call = AwsCall {
            service: AwsService::Sts,
            region: self.region,
            endpoint: self.settings.endpoint(AwsService::Sts, self.region)?,
            body,
        };
        self.transport.send(&call, own).await
    }
}

/// Runs the program of a profile. It is the user's own setting, as any AWS tool would run it.
async fn from_process(command: &str, place: &str) -> Result<AwsCredentials, AwsError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct ProcessCredentials {
        access_key_id: String,
        secret_access_key: String,
        session_token: Option<String>,
        expiration: Option<String>,
    }
    let unusable = |problem: String| AwsError::Unusable {
        place: place.to_owned(),
        problem,
    };
    let output = Command::new("sh")
        .args(["-c", command])
        // tidy-allow(start): the command is the operator's, from the configuration of AWS
        .output()
        .await
        .map_err(|error| unusable(error.to_string()))?;
    if !output.status.success() {
        return Err(unusable(format!("it ended with {}", output.status)));
    }
    // What it printed may be keys, so it is not shown.
    let printed: ProcessCredentials = serde_json::from_slice(&output.stdout)
        .map_err(|_| unusable("it did not print credentials as JSON".to_owned()))?;
    let mut credentials = AwsCredentials::fixed(
        &printed.access_key_id,
        &printed.secret_access_key,
        printed.session_token.as_deref(),
        place,
    );
    if let Some(expiration) = &printed.expiration {
        credentials.expires = Some(time(expiration, place)?);
    }
    Ok(credentials)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_end_soon_are_not_good() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let ending = |text: &str| AwsCredentials {
            expires: Some(text.parse().unwrap()),
            ..AwsCredentials::fixed("k", "s", None, "a test")
        };
        assert!(ending("2026-01-01T13:00:00Z").is_good(now));
        assert!(!ending("2026-01-01T12:04:00Z").is_good(now));
        assert!(AwsCredentials::fixed("k", "s", None, "a test").is_good(now));
    }

    #[test]
    fn nothing_of_a_key_is_printed() {
        let credentials = AwsCredentials::fixed("AKIA", "hush", Some("token"), "a test");
        assert_eq!(format!("{credentials:?}"), "AwsCredentials(from a test)");
    }

    #[tokio::test]
    async fn a_process_that_misbehaves_is_told_without_what_it_printed() {
        let ok = r#"echo '{"Version":1,"AccessKeyId":"A","SecretAccessKey":"B"}'"#;
        assert_eq!(from_process(ok, "p").await.unwrap().access_key, "A");
        for bad in ["echo hush", "echo hush; exit 3"] {
            let error = from_process(bad, "p").await.unwrap_err().to_string();
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
