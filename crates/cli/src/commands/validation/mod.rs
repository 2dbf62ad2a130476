//! Checks of what deployments rely on: `validate-aws` and `validate-pulumi`.

pub(crate) mod aws;
pub(crate) mod pulumi;
