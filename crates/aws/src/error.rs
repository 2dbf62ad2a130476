//! What can go wrong between a question and its answer.

use nimbus_core::{Error, ErrorCode};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AwsError {
    #[error(
        "there is no query `{query}`; there are latestAmiId, availabilityZones, ssmParameter and secret"
    )]
    UnknownQuery { query: String },
    #[error("{query} takes {takes}")]
    Parameters {
        query: &'static str,
        takes: &'static str,
    },
    #[error("there are no AWS credentials: {looked}")]
    NoCredentials { looked: String },
    #[error("the AWS profile `{profile}` {problem}")]
    AwsProfile { profile: String, problem: String },
    #[error("{place} cannot be used: {problem}")]
    Unusable { place: String, problem: String },
    #[error("AWS refuses {action}: {message} ({code})")]
    Refused {
        action: String,
        code: String,
        message: String,
    },
    #[error("{endpoint} does not answer: {problem}")]
    Unreachable { endpoint: String, problem: String },
    #[error("the answer to {action} is not understood: {problem}")]
    NotUnderstood { action: String, problem: String },
}

impl AwsError {
    /// What the user can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::UnknownQuery { .. } | Self::Parameters { .. } => {
                "correct the placeholder in the manifest"
            }
            Self::NoCredentials { .. } => {
                "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; \
                 `nimbus validate-aws` checks them"
            }
            Self::AwsProfile { .. } => {
                "correct the profile, or sign in again with `aws sso login` if it is one of single \
                 sign-on; `nimbus validate-aws` checks it"
            }
            Self::Unusable { .. } => {
                "correct the file or the variable; `nimbus validate-aws` checks them"
            }
            Self::Refused { .. } => {
                "check that the credentials are current and may do this; \
                 `nimbus validate-aws` shows whose they are"
            }
            Self::Unreachable { .. } => {
                "check the network, the region, and AWS_ENDPOINT_URL if it is set"
            }
            Self::NotUnderstood { .. } => "check AWS_ENDPOINT_URL: is that an AWS API?",
        }
    }
}

impl From<AwsError> for Error {
    fn from(error: AwsError) -> Self {
        let code = match &error {
            AwsError::UnknownQuery { .. } | AwsError::Parameters { .. } => {
                ErrorCode::RESOLUTION_FAILED
            }
            AwsError::NoCredentials { .. }
            | AwsError::AwsProfile { .. }
            | AwsError::Unusable { .. } => ErrorCode::AWS_CREDENTIALS,
            AwsError::Refused { .. } => ErrorCode::AWS_REFUSED,
            AwsError::Unreachable { .. } | AwsError::NotUnderstood { .. } => {
                ErrorCode::AWS_UNAVAILABLE
            }
        };
        let help = error.help();
        Self::new(code, error.to_string())
            .with_help(help)
            .with_source(error)
    }
}
