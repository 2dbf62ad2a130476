//! What can go wrong between a program and the server.

use nimbus_core::{Error, ErrorCode};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the server at {server} does not answer: {reason}")]
    Unreachable { server: String, reason: String },
    #[error("the connection to the server at {server} broke: {reason}")]
    Broken { server: String, reason: String },
    #[error("the server at {server} answered in a way that is not understood: {reason}")]
    Answer { server: String, reason: String },
    /// The server's own error.
    #[error("{message}")]
    Refused {
        status: u16,
        message: String,
        /// Such as `NIM-0855`.
        reference: String,
        trace_id: String,
        /// What the server says that one can do.
        help: Option<String>,
    },
    #[error("nobody is signed in at {server}")]
    NotSignedIn { server: String },
    #[error("the file {path} cannot be used: {reason}")]
    File { path: String, reason: String },
    #[error("there is no profile `{name}`")]
    NoProfile { name: String },
    #[error("the profile `{name}` is of {of}, not of {server}")]
    OtherServer {
        name: String,
        of: String,
        server: String,
    },
    #[error("there are several sign-ins at {server}: {}", names.join(", "))]
    SeveralProfiles { server: String, names: Vec<String> },
    #[error("`{text}` is not the address of a server")]
    Address { text: String },
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error {
            ClientError::Unreachable { .. } | ClientError::Broken { .. } => Self::new(
                ErrorCode::SERVER_UNREACHABLE,
                message,
            )
            .with_help(
                "see whether the server runs, or sign in to another one: nimbus login --server URL",
            ),
            ClientError::Answer { .. } => Self::new(ErrorCode::SERVER_ANSWER, message)
                .with_help("check the address, and that client and server are of the same version"),
            ClientError::NotSignedIn { .. } => Self::new(ErrorCode::SIGN_IN_NEEDED, message)
                .with_help("run `nimbus login --server URL`, or set NIMBUS_TOKEN to an API key"),
            ClientError::File { .. } | ClientError::NoProfile { .. } => {
                Self::new(ErrorCode::PROFILE_UNUSABLE, message)
                    .with_help("`nimbus login` writes it anew")
            }
            ClientError::OtherServer { .. } | ClientError::SeveralProfiles { .. } => {
                Self::new(ErrorCode::PROFILE_UNUSABLE, message)
                    .with_help("name the one that is meant with --profile, or leave --server out")
            }
            ClientError::Address { .. } => Self::new(ErrorCode::INPUT_INVALID, message)
                .with_help("an address looks like https://nimbus.example or http://127.0.0.1:8000"),
            ClientError::Refused {
                status,
                reference,
                trace_id,
                help,
                ..
            } => {
                let code = ErrorCode::parse(&reference).unwrap_or(ErrorCode::SERVER_ANSWER);
                let error = Self::new(code, message).with_detail(format!("trace id {trace_id}"));
                match help {
                    // Nothing that the server knows helps somebody whom it does not know.
                    _ if status == 401 => error.with_help(
                        "the sign-in has ended or was never made: run `nimbus login`, or set NIMBUS_TOKEN to an API key",
                    ),
                    Some(help) => error.with_help(help),
                    None => error,
                }
            }
        }
    }
}
