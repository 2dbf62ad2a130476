//! Why a resolver does not answer: each refusal names the rule and whose it is.

use nimbus_core::{Error, ErrorCode};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolverError {
    #[error("there is no resolver `{name}`; there are {known}")]
    UnknownResolver { name: String, known: String },
    #[error("the resolver {resolver} has no output `{output}`; it has {known}")]
    UnknownOutput {
        resolver: String,
        output: String,
        known: String,
    },
    #[error("the input `{input}` of the resolver {resolver}: {problem}")]
    Input {
        resolver: String,
        input: String,
        problem: String,
    },
    #[error("the resolver {resolver} has no `{key}` for {scope}")]
    NotConfigured {
        resolver: String,
        key: String,
        scope: String,
    },
    #[error("the configuration of the resolver {resolver}, `{key}`: {problem}")]
    Config {
        resolver: String,
        key: String,
        problem: String,
    },
    #[error("`{text}` is no block of addresses: {problem}")]
    NotABlock { text: String, problem: String },
    #[error("the pool {pool} ({cidr}) overlaps the pool {other} ({other_cidr}) of {owner}")]
    PoolOverlap {
        pool: String,
        cidr: String,
        other: String,
        other_cidr: String,
        owner: String,
    },
    #[error("{cidr} lies outside of the pool {parent} ({parent_cidr}) of {owner}")]
    OutsideParent {
        cidr: String,
        parent: String,
        parent_cidr: String,
        owner: String,
    },
    #[error("there is no pool `{pool}` for {scope}")]
    PoolUnknown { pool: String, scope: String },
    #[error("the pool {pool} ({cidr}) of {owner} has no free {wanted}")]
    PoolExhausted {
        pool: String,
        cidr: String,
        owner: String,
        wanted: String,
    },
    #[error("{cidr} of the pool {pool} is taken by {holder}")]
    BlockTaken {
        cidr: String,
        pool: String,
        holder: String,
    },
    #[error("the pool {pool} is in use by {users}")]
    PoolInUse { pool: String, users: String },
    #[error("the name `{name}` of a {resource_type} breaks the rule of {owner}: {rule}")]
    NameRule {
        name: String,
        resource_type: String,
        rule: String,
        owner: String,
    },
    #[error("the name `{name}` of a {resource_type} is taken by {holder}")]
    NameTaken {
        name: String,
        resource_type: String,
        holder: String,
    },
    #[error("the catalog of {owner} has no image for {wanted}; it has {known}")]
    ImageUnknown {
        wanted: String,
        known: String,
        owner: String,
    },
    #[error("{}", .0.join("; "))]
    Parameters(Vec<String>),
    #[error("the parameter `{input}` is not known: {problem}")]
    Unresolved { input: String, problem: String },
    /// What keeps leases failed; the code is its own.
    #[error("{message}")]
    Service {
        code: ErrorCode,
        message: String,
        help: Option<String>,
    },
}

impl ResolverError {
    /// A wrong input of a question.
    pub fn input(
        resolver: impl ToString,
        input: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self::Input {
            resolver: resolver.to_string(),
            input: input.into(),
            problem: problem.into(),
        }
    }

    /// A wrong key of a configuration.
    pub fn config(
        resolver: impl ToString,
        key: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self::Config {
            resolver: resolver.to_string(),
            key: key.into(),
            problem: problem.into(),
        }
    }

    pub fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownResolver { .. } | Self::UnknownOutput { .. } => {
                ErrorCode::RESOLVER_UNKNOWN
            }
            Self::Input { .. } | Self::NotABlock { .. } => ErrorCode::RESOLVER_INPUT_INVALID,
            Self::NotConfigured { .. } => ErrorCode::RESOLVER_NOT_CONFIGURED,
            Self::Config { .. } => ErrorCode::RESOLVER_CONFIG_INVALID,
            Self::PoolOverlap { .. } => ErrorCode::POOL_OVERLAP,
            Self::OutsideParent { .. } => ErrorCode::POOL_OUTSIDE_PARENT,
            Self::PoolUnknown { .. } => ErrorCode::POOL_UNKNOWN,
            Self::PoolExhausted { .. } => ErrorCode::POOL_EXHAUSTED,
            Self::BlockTaken { .. } => ErrorCode::BLOCK_TAKEN,
            Self::PoolInUse { .. } => ErrorCode::POOL_IN_USE,
            Self::NameRule { .. } => ErrorCode::NAME_RULE_BROKEN,
            Self::NameTaken { .. } => ErrorCode::NAME_TAKEN,
            Self::ImageUnknown { .. } => ErrorCode::IMAGE_UNKNOWN,
            Self::Parameters(_) => ErrorCode::PARAMETERS_INVALID,
            Self::Unresolved { .. } => ErrorCode::PARAMETER_UNRESOLVED,
            Self::Service { code, .. } => *code,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::UnknownResolver { .. } | Self::UnknownOutput { .. } | Self::Input { .. } => {
                "`nimbus resolver list` shows inputs and outputs of every resolver"
            }
            Self::NotConfigured { .. } | Self::Config { .. } => {
                "ask whoever runs the platform to set it with `nimbus resolver configure`"
            }
            Self::NotABlock { .. } => "write a network such as 10.0.0.0/16 or fd00::/48",
            Self::PoolOverlap { .. } => {
                "choose other addresses, or make it a child with `--parent`"
            }
            Self::OutsideParent { .. } => "choose a block inside of the parent",
            Self::PoolUnknown { .. } => "`nimbus ipam list` shows the pools",
            Self::PoolExhausted { .. } => {
                "destroy what is no longer needed, or ask the owner of the pool for a larger one"
            }
            Self::BlockTaken { .. } => "`nimbus ipam leases` shows who has what",
            Self::PoolInUse { .. } => "release what it has first",
            Self::NameRule { .. } => {
                "shorten the pattern or its parts; the rule is set with `nimbus resolver configure`"
            }
            Self::NameTaken { .. } => "put {seq} into the pattern, or choose another number",
            Self::ImageUnknown { .. } => "`nimbus image list` shows the catalog",
            Self::Parameters(_) | Self::Unresolved { .. } => return None,
            Self::Service { help, .. } => return help.clone(),
        };
        Some(help.to_owned())
    }
}

impl From<ResolverError> for Error {
    fn from(error: ResolverError) -> Self {
        let coded = Self::new(error.code(), error.to_string());
        match error.help() {
            Some(help) => coded.with_help(help),
            None => coded,
        }
    }
}

/// What another part said, kept with its code.
impl From<&Error> for ResolverError {
    fn from(error: &Error) -> Self {
        Self::Service {
            code: error.code(),
            message: error.message().to_owned(),
            help: error.help().map(ToString::to_string),
        }
    }
}
