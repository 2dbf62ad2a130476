//! The AWS client: images, zones, parameters and secrets of an account, who the caller is, and the
//! key management service.
//!
//! Four queries, one check and a service that keeps keys do not need an SDK: a request is a form or a
//! JSON document, its signature is some hashing, and the response is a few fields. Credentials are
//! another matter: AWS' own library finds them where every AWS tool does. Secrets are never part of an error or of a `Debug` text.
//! Nothing here knows of manifests or placeholders.

mod chain;
mod credentials;
mod error;
mod http;
mod kms;
mod profile;
mod queries;
mod responses;
mod settings;
mod sign;
mod transport;

pub use credentials::AwsCredentials;
pub use error::AwsError;
pub use kms::MasterKey;
pub use responses::AwsValue;
pub use settings::{AwsSettings, AwsVariables};

use credentials::CredentialCache;
use queries::AwsQuery;
use responses::{image, parameter, secret, zones};
use transport::{AwsCall, AwsService, AwsTransport, RequestBody};

/// The account behind the credentials of this machine.
pub struct Aws {
    settings: AwsSettings,
    transport: AwsTransport,
    vault: CredentialCache,
}

/// Whose credentials these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    pub account: String,
    pub arn: String,
    /// Where the credentials were found.
    pub source: String,
}

/// Says nothing of the settings: they may be secrets.
impl std::fmt::Debug for Aws {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Aws(..)")
    }
}

impl Aws {
    pub fn new(settings: AwsSettings) -> Result<Self, AwsError> {
        Ok(Self {
            transport: AwsTransport::new(settings.attempts())?,
            vault: CredentialCache::default(),
            settings,
        })
    }

    /// What a query of this name, with these parameters, finds in a region.
    pub async fn lookup(
        &self,
        region: &str,
        query: &str,
        parameters: &[String],
    ) -> Result<AwsValue, AwsError> {
        match AwsQuery::read(query, parameters)? {
            AwsQuery::Image { owner, name } => {
                let form = queries::describe_images(&owner, &name);
                let text = self.ask(region, AwsService::Ec2, form).await?;
                image(&text)
            }
            AwsQuery::Zones { count } => {
                let form = queries::describe_zones();
                let text = self.ask(region, AwsService::Ec2, form).await?;
                zones(&text, count)
            }
            AwsQuery::Parameter { name } => {
                let body = queries::get_parameter(&name);
                absent_if(self.ask(region, AwsService::Ssm, body).await, |code| {
                    matches!(code, "ParameterNotFound" | "ParameterVersionNotFound")
                })
                .and_then(|text| text.map_or(Ok(AwsValue::Absent), |text| parameter(&text)))
            }
            AwsQuery::Secret { id, member } => {
                let body = queries::get_secret(&id);
                absent_if(
                    self.ask(region, AwsService::SecretsManager, body).await,
                    |code| code == "ResourceNotFoundException",
                )
                .and_then(|text| {
                    text.map_or(Ok(AwsValue::Absent), |text| {
                        secret(&text, member.as_deref())
                    })
                })
            }
        }
    }

    /// Who AWS says we are.
    pub async fn identity(&self, region: &str) -> Result<CallerIdentity, AwsError> {
        let form = queries::caller_identity();
        let text = self.ask(region, AwsService::Sts, form).await?;
        let (account, arn) = responses::identity(&text)?;
        Ok(CallerIdentity {
            account,
            arn,
            source: self.credentials(region).await?.place,
        })
    }

    /// The region that this machine is set up for.
    pub fn region(&self) -> Option<String> {
        self.settings.region()
    }

    /// Keys that are good for another request. Whoever lends them is asked in this region.
    pub async fn credentials(&self, region: &str) -> Result<AwsCredentials, AwsError> {
        self.vault.credentials(&self.settings, region).await
    }

    async fn ask(
        &self,
        region: &str,
        service: AwsService,
        body: RequestBody,
    ) -> Result<String, AwsError> {
        let credentials = self.credentials(region).await?;
        let call = AwsCall {
            service,
            region,
            endpoint: self.settings.endpoint(service, region)?,
            body,
        };
        self.transport.send(&call, &credentials).await
    }
}

/// Refuses what [`Aws::lookup`] would not even ask.
pub fn check(query: &str, parameters: &[String]) -> Result<(), AwsError> {
    AwsQuery::read(query, parameters).map(|_| ())
}

/// `None` for a refusal that means that the thing does not exist.
fn absent_if(
    answer: Result<String, AwsError>,
    means_absent: impl Fn(&str) -> bool,
) -> Result<Option<String>, AwsError> {
    match answer {
        Ok(text) => Ok(Some(text)),
        Err(AwsError::Refused { code, .. }) if means_absent(&code) => Ok(None),
        Err(error) => Err(error),
    }
}
