//! What can be wrong with what a program asks for.
//!
//! A message is read by the person who wrote the program: it says what is wrong and with which
//! resource or function, and never repeats a property's value, which may be secret.

use nimbus_engine_model::UrnError;
use nimbus_engine_wire::WireError;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MonitorError {
    /// The deployment ends; whoever caused that has already said why.
    #[error("the deployment is ending")]
    Ending,
    #[error("{what}: {text:?} is not a URN")]
    BadUrn { what: String, text: String },
    #[error("{type_:?} is not a resource type: expected package:module:name")]
    BadType { type_: String },
    #[error("the resource {name:?} has no type")]
    NoType { name: String },
    #[error(
        "the resource {name:?} of type {type_:?} cannot be recorded: there is a NUL character in it"
    )]
    NotRecordable { type_: String, name: String },
    #[error("package {package} has version {text:?}, which is not a semantic version: {reason}")]
    BadVersion {
        package: String,
        text: String,
        reason: String,
    },
    #[error("{text:?} is not a duration such as 30s, 5m or 1h30m")]
    BadDuration { text: String },
    #[error("{text:?} is not a property path")]
    BadPropertyPath { text: String },
    #[error("{text:?} is not a provider reference")]
    BadProviderReference { text: String },
    #[error("{what} cannot be read: {reason}")]
    BadProperties { what: String, reason: String },
    #[error("{what} cannot be sent: {reason}")]
    UnsendableProperties { what: String, reason: String },
    #[error("envVarMappings belong to provider resources only")]
    EnvVarMappingsOnResource,
    #[error("state migrations are not supported")]
    StateMigrations,
    #[error("a package needs a name")]
    PackageWithoutName,
    #[error("the package reference {reference:?} was not registered")]
    UnknownPackage { reference: String },
    #[error("there is no provider {reference}")]
    UnknownProvider { reference: String },
    #[error(
        "the default provider of package {package} is disabled by pulumi:disable-default-providers; \
         {token} must be given an explicit provider"
    )]
    DefaultProviderDenied { package: String, token: String },
    #[error("the default provider of package {package} could not be set up")]
    DefaultProviderFailed { package: String },
    #[error("the configuration pulumi:disable-default-providers must be a JSON array of strings")]
    BadDisableDefaultProviders,
    #[error("{0}")]
    BadMethodCall(String),
    #[error("{what} failed: {message}")]
    Callback { what: String, message: String },
    #[error("{what} has no address to call back to")]
    CallbackWithoutTarget { what: String },
    #[error("{0}")]
    BadHook(String),
    #[error("{path}: {reason}")]
    Asset { path: String, reason: String },
    #[error("{token}: {message}")]
    Provider { token: String, message: String },
    #[error(
        "the program has the engine hold more than {mebibytes} MiB for it in one run; the limit is set \
         by engine.sandbox_requests_mib"
    )]
    RequestsTooMuch { mebibytes: u64 },
    #[error(
        "requests and answers of the program that are under way have more than {mebibytes} MiB together, \
         an eighth of engine.sandbox_requests_mib"
    )]
    RequestsTooLarge { mebibytes: u64 },
    #[error("the program has more than {count} requests under way, and one in a sandbox may not")]
    RequestsUnderWay { count: usize },
    #[error("the program has more than {count} {what}, and one in a sandbox may not")]
    TooManyFunctions { what: &'static str, count: usize },
    #[error(
        "{resource:?} has more than {count} {what}, and a resource of a program in a sandbox may not"
    )]
    TooManyOptions {
        resource: String,
        what: &'static str,
        count: usize,
    },
    /// The deployment refused the request.
    #[error("{message}")]
    Refused { message: String },
}

impl MonitorError {
    pub(crate) fn bad_urn(what: impl Into<String>, error: UrnError) -> Self {
        Self::BadUrn {
            what: what.into(),
            text: error.text,
        }
    }

    pub(crate) fn unreadable(what: impl Into<String>, error: &WireError) -> Self {
        Self::BadProperties {
            what: what.into(),
            reason: error.to_string(),
        }
    }

    pub(crate) fn unsendable(what: impl Into<String>, error: &WireError) -> Self {
        Self::UnsendableProperties {
            what: what.into(),
            reason: error.to_string(),
        }
    }
}

/// The deployment ends: this call gets no other answer, and neither does any that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deployment is ending")]
pub struct Ending;
