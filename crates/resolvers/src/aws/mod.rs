//! Questions to AWS, signed by hand.
//!
//! Four questions, one check and a service that keeps keys do not need an SDK: a request is a form or a JSON document, its
//! signature is some hashing, and the answer is a few fields. Credentials are found where every AWS
//! tool finds them. Secrets are never part of an error or of a `Debug` text.

mod answers;
mod credentials;
mod error;
mod kms;
mod profile;
mod questions;
mod settings;
mod sign;
mod source;
mod transport;

pub use answers::Found;
pub use error::AwsError;
pub use kms::MasterKey;
pub use settings::{Settings, Variables};

use answers::{image, parameter, secret, zones};
use credentials::Vault;
use questions::Question;
use transport::{Body, Call, Service, Transport};

/// The account behind the credentials of this machine.
pub struct Aws {
    settings: Settings,
    transport: Transport,
    vault: Vault,
}

/// Whose credentials these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub account: String,
    pub arn: String,
    /// Where the credentials were found.
    pub source: String,
}

impl Aws {
    pub fn new(settings: Settings) -> Result<Self, AwsError> {
        Ok(Self {
            transport: Transport::new(settings.attempts())?,
            vault: Vault::default(),
            settings,
        })
    }

    /// Answers `{{RUNTIME:aws:<query>:<parameters>}}` for a region.
    pub async fn lookup(
        &self,
        region: &str,
        query: &str,
        parameters: &[String],
    ) -> Result<Found, AwsError> {
        match Question::read(query, parameters)? {
            Question::Image { owner, name } => {
                let form = questions::describe_images(&owner, &name);
                let text = self.ask(region, Service::Ec2, form).await?;
                image(&text)
            }
            Question::Zones { count } => {
                let form = questions::describe_zones();
                let text = self.ask(region, Service::Ec2, form).await?;
                zones(&text, count)
            }
            Question::Parameter { name } => {
                let body = questions::get_parameter(&name);
                absent_if(self.ask(region, Service::Ssm, body).await, |code| {
                    matches!(code, "ParameterNotFound" | "ParameterVersionNotFound")
                })
                .and_then(|text| text.map_or(Ok(Found::Absent), |text| parameter(&text)))
            }
            Question::Secret { id, member } => {
                let body = questions::get_secret(&id);
                absent_if(
                    self.ask(region, Service::SecretsManager, body).await,
                    |code| code == "ResourceNotFoundException",
                )
                .and_then(|text| {
                    text.map_or(Ok(Found::Absent), |text| secret(&text, member.as_deref()))
                })
            }
        }
    }

    /// Who AWS says we are.
    pub async fn identity(&self, region: &str) -> Result<Identity, AwsError> {
        let form = questions::caller_identity();
        let text = self.ask(region, Service::Sts, form).await?;
        let (account, arn) = answers::identity(&text)?;
        Ok(Identity {
            account,
            arn,
            source: self.settings.source()?.describe(),
        })
    }

    /// The region that this machine is set up for.
    pub fn region(&self) -> Option<String> {
        self.settings.region()
    }

    async fn ask(&self, region: &str, service: Service, body: Body) -> Result<String, AwsError> {
        let credentials = self
            .vault
            .credentials(&self.settings, &self.transport, region)
            .await?;
        let call = Call {
            service,
            region,
            endpoint: self.settings.endpoint(service, region)?,
            body,
        };
        self.transport.send(&call, Some(&credentials)).await
    }
}

/// Refuses what [`Aws::lookup`] would not even ask.
pub fn check(query: &str, parameters: &[String]) -> Result<(), AwsError> {
    Question::read(query, parameters).map(|_| ())
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
