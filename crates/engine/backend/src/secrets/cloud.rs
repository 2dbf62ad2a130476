//! Secrets under a data key that only a key management service can open, in the official format.
//!
//! The state holds the address of the service's key and the encrypted data key. The service is asked
//! once per data key, to open it; secrets are encrypted here. AWS is the service that is known.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nimbus_aws::{Aws, AwsError, AwsSettings, MasterKey};
use nimbus_engine_model::SecretsProvider;
use nimbus_engine_model::secrets::{CryptError, SymmetricCrypter};
use serde_json::json;
use url::Url;
use zeroize::Zeroizing;

use super::SecretsError;
use crate::environment::EnvironmentVariables;

/// A data key as it is written down: nobody can use it without the service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CloudKey {
    url: String,
    encrypted: Vec<u8>,
}

impl CloudKey {
    pub(crate) const KIND: &'static str = "cloud";

    /// As settings write it: an address and base64.
    pub(crate) fn written(url: &str, encrypted: &str) -> Result<Self, SecretsError> {
        let problem = "its encrypted key is not base64";
        Ok(Self {
            url: url.to_owned(),
            encrypted: STANDARD
                .decode(encrypted)
                .map_err(|_| CryptError::MalformedState { problem })?,
        })
    }

    pub(crate) fn of(provider: &SecretsProvider) -> Result<Self, SecretsError> {
        let field = |name: &str| provider.state.get(name).and_then(|value| value.as_str());
        match (field("url"), field("encryptedkey")) {
            (Some(url), Some(encrypted)) => Self::written(url, encrypted),
            _ => {
                let problem = "expected url and encryptedkey";
                Err(CryptError::MalformedState { problem }.into())
            }
        }
    }

    /// A new data key under the service's key at an address.
    pub(crate) fn create(
        url: &str,
        environment: &EnvironmentVariables,
    ) -> Result<(Self, SymmetricCrypter), SecretsError> {
        let key = Zeroizing::new(rand::random::<[u8; 32]>());
        let address = CloudKeyAddress::parse(url)?;
        let encrypted = address.ask(environment, async |aws, master| {
            aws.encrypt(master, key.as_slice()).await
        })?;
        let url = url.to_owned();
        Ok((Self { url, encrypted }, SymmetricCrypter::new(&key)))
    }

    pub(crate) fn open(
        &self,
        environment: &EnvironmentVariables,
    ) -> Result<SymmetricCrypter, SecretsError> {
        let address = CloudKeyAddress::parse(&self.url)?;
        let opened = address.ask(environment, async |aws, master| {
            aws.decrypt(master, &self.encrypted).await
        })?;
        let key: [u8; 32] =
            opened
                .as_slice()
                .try_into()
                .map_err(|_| CryptError::MalformedState {
                    problem: "the data key is not 32 bytes long",
                })?;
        Ok(SymmetricCrypter::new(&Zeroizing::new(key)))
    }

    pub(crate) fn provider(&self) -> SecretsProvider {
        SecretsProvider {
            kind: Self::KIND.to_owned(),
            state: json!({ "url": self.url, "encryptedkey": self.encrypted() }),
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// As settings write it.
    pub(crate) fn encrypted(&self) -> String {
        STANDARD.encode(&self.encrypted)
    }
}

/// Where a service's key is, as `awskms://<id or alias/name>?region=…` says.
#[derive(Debug, PartialEq, Eq)]
struct CloudKeyAddress {
    url: String,
    id: String,
    region: Option<String>,
    profile: Option<String>,
    context: BTreeMap<String, String>,
}

impl CloudKeyAddress {
    fn parse(url: &str) -> Result<Self, SecretsError> {
        let wrong = |problem: &'static str| SecretsError::Address {
            url: url.to_owned(),
            problem,
        };
        let parsed: Url = url.parse().map_err(|_| wrong("it is not an address"))?;
        if parsed.scheme() != "awskms" {
            let kind = parsed.scheme().to_owned();
            return Err(SecretsError::Unsupported { kind });
        }
        // `awskms:///arn:…` has no host; `awskms://alias/name` has half of the id there.
        let host = parsed.host_str().unwrap_or_default();
        let id = format!("{host}{}", parsed.path());
        let id = id.trim_start_matches('/').to_owned();
        if id.is_empty() {
            return Err(wrong("it names no key"));
        }
        let mut address = Self {
            url: url.to_owned(),
            region: id.strip_prefix("arn:").and_then(region_of_arn),
            id,
            profile: None,
            context: BTreeMap::new(),
        };
        for (name, value) in parsed.query_pairs() {
            match name.as_ref() {
                "region" => address.region = Some(value.into_owned()),
                "profile" => address.profile = Some(value.into_owned()),
                // Which of two SDKs the official command line asks with.
                "awssdk" => {}
                other => {
                    let name = other
                        .strip_prefix("context_")
                        .ok_or_else(|| wrong("it has a parameter that is not known"))?;
                    address.context.insert(name.to_owned(), value.into_owned());
                }
            }
        }
        Ok(address)
    }

    /// Asks the service and waits. Opening a key is slow with a passphrase too.
    fn ask<T: Send>(
        &self,
        environment: &EnvironmentVariables,
        question: impl AsyncFnOnce(&Aws, &MasterKey) -> Result<T, AwsError> + Send,
    ) -> Result<T, SecretsError> {
        let failed = |error: AwsError| SecretsError::KeyService {
            url: self.url.clone(),
            error,
        };
        let variables = environment.aws(self.profile.as_deref());
        let aws = AwsSettings::load(variables)
            .and_then(Aws::new)
            .map_err(failed)?;
        let region = self.region.clone().or_else(|| aws.region());
        let master = MasterKey {
            id: self.id.clone(),
            region: region.ok_or_else(|| SecretsError::Address {
                url: self.url.clone(),
                problem: "neither it nor AWS_REGION names a region",
            })?,
            context: self.context.clone(),
        };
        blocking(async || question(&aws, &master).await)?.map_err(failed)
    }
}

/// `arn:<partition>:kms:<region>:…`, without its first part.
fn region_of_arn(rest: &str) -> Option<String> {
    let region = rest.split(':').nth(2)?;
    (!region.is_empty()).then(|| region.to_owned())
}

/// Waits on a thread of its own: whoever asks may be on one that must not start a runtime.
fn blocking<T: Send>(work: impl AsyncFnOnce() -> T + Send) -> Result<T, SecretsError> {
    let unavailable = |message: String| SecretsError::Crypt(CryptError::Unavailable { message });
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map(|runtime| runtime.block_on(work()))
        });
        thread
            .join()
            .map_err(|_| unavailable("the question to the key service broke off".to_owned()))?
            .map_err(|error| unavailable(error.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_by_id_alias_or_arn() {
        for (url, id, region) in [
            (
                "awskms://1234abcd-12ab?region=eu-west-1",
                "1234abcd-12ab",
                Some("eu-west-1"),
            ),
            (
                "awskms://alias/My/Key?region=eu-west-1&awssdk=v2",
                "alias/My/Key",
                Some("eu-west-1"),
            ),
            ("awskms://alias/key", "alias/key", None),
            (
                "awskms:///arn:aws:kms:us-east-1:111122223333:key/34ab?region=us-east-2",
                "arn:aws:kms:us-east-1:111122223333:key/34ab",
                Some("us-east-2"),
            ),
            (
                "awskms:///arn:aws:kms:us-east-1:111122223333:alias/x",
                "arn:aws:kms:us-east-1:111122223333:alias/x",
                Some("us-east-1"),
            ),
        ] {
            let address = CloudKeyAddress::parse(url).unwrap();
            assert_eq!(
                (address.id.as_str(), address.region.as_deref()),
                (id, region),
                "{url}"
            );
        }
        let full = CloudKeyAddress::parse("awskms://k?profile=p&context_stack=dev").unwrap();
        assert_eq!(full.profile.as_deref(), Some("p"));
        assert_eq!(full.context["stack"], "dev");
    }

    #[test]
    fn other_services_and_other_parameters_are_refused() {
        for (url, words) in [
            (
                "gcpkms://projects/p/locations/l",
                "`gcpkms` is not supported",
            ),
            ("awskms://", "names no key"),
            ("awskms://k?contxt_a=b", "parameter"),
            ("nothing", "not an address"),
        ] {
            let error = CloudKeyAddress::parse(url).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn what_is_written_down_comes_back_and_nonsense_is_refused() {
        let key = CloudKey::written("awskms://k", "AQID").unwrap();
        assert_eq!(key.encrypted, [1, 2, 3]);
        assert_eq!(CloudKey::of(&key.provider()).unwrap(), key);
        assert!(CloudKey::written("awskms://k", "?").is_err());
        let broken = SecretsProvider {
            kind: CloudKey::KIND.to_owned(),
            state: json!({ "url": 7 }),
        };
        assert!(CloudKey::of(&broken).is_err());
    }

    #[test]
    fn without_a_region_nobody_is_asked() {
        let nowhere = EnvironmentVariables::fixed([("HOME", "/absent")]);
        let error = CloudKey::create("awskms://k", &nowhere).unwrap_err();
        assert!(error.to_string().contains("AWS_REGION"), "{error}");
    }
}
