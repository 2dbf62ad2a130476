//! Resolvers: platform services that answer inputs at run time, decided without any I/O.
//!
//! A resolver has typed inputs and outputs ([`definition`]). A question is asked for a unit
//! ([`question`]); what the answer takes from a pool or a sequence is a lease ([`lease`]), held by
//! a plan or a run until the run commits or releases it. [`register`] keeps leases in memory, for files
//! and tests; the control plane keeps them in tables and decides with the same functions. [`pipeline`]
//! makes the parameters of a component from defaults, the user's values and resolvers.
//!
//! To add a resolver: a variant of [`ResolverKind`] with its definition, its configuration in
//! [`config`], and its arm in [`register`] and in the store.

pub mod address;
pub mod config;
pub mod definition;
pub mod error;
pub mod images;
pub mod ipam;
pub mod lease;
pub mod naming;
pub mod pipeline;
pub mod question;
pub mod register;
pub mod secrets;
pub mod space;

pub use address::{AddressBlock, AddressFamily};
pub use config::{
    ImageConfig, IpamConfig, NamingConfig, ResolverLayer, ResolverSettings, SecretConfig,
};
pub use definition::{FieldType, ResolverDefinition, ResolverField, ResolverKind};
pub use error::ResolverError;
pub use images::ImageEntry;
pub use ipam::{PoolDefinition, PoolPurpose};
pub use lease::{LeaseHolder, LeaseStatus, LeaseUnit, ResolverLease, Settlement};
pub use pipeline::{GivenParameters, ParameterContract, ParameterResolver, ResolvedParameters};
pub use question::{ResolverAnswer, ResolverBinding, ResolverQuestion, UnitFacts};
pub use register::LeaseRegister;
pub use space::FreeSpace;
