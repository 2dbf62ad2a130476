//! What a running program talks to: resource registration, invokes, transforms, and their gRPC services.
//!
//! Two layers. The pipeline knows no transport: [`Monitor`] takes what a program asks for, gives
//! goals to the deployment through its `Registrar`, and keeps the book on how the program ends.
//! The services in `grpc` only read requests, call the pipeline and write answers.
//!
//! Reading order: `requests` and `options` (what is asked), `register` (the order of things),
//! `inheritance` (what children inherit), `default_providers`, `lifecycle` (how it ends), `grpc`.

mod assets;
mod builtin;
mod config;
mod confinement;
mod construct;
mod default_providers;
mod error;
mod features;
mod grpc;
mod hooks;
mod inheritance;
mod invoke;
mod lifecycle;
mod monitor;
mod options;
mod outputs;
mod own_files;
mod packages;
mod position;
mod read;
mod register;
mod requests;
mod tracker;
mod transforms;

pub use assets::{AssetReader, NoRemoteAssets};
pub use builtin::{
    BUILTIN_PACKAGE, BuiltinProvider, RunningResources, StackReadError, StackReader,
};
pub use config::package_config;
pub use confinement::{Confinement, Dial, RequestLimits};
pub use error::{Ending, MonitorError};
pub use grpc::{EngineEndpoint, Listen, MonitorServer};
pub use hooks::{ErrorHookCallback, Hook, HookCallback, HookRegistry};
pub use invoke::InvokeError;
pub use lifecycle::Completion;
pub use monitor::{Monitor, MonitorPorts, MonitorSettings};
pub use options::{InvokeOptions, ResourceOptions, Timeouts};
pub use own_files::{OwnFiles, OwnFilesHost};
pub use packages::RegisteredPackage;
pub use position::{RawOrigin, RawPosition};
pub use requests::{
    InvokeCall, Invoked, MethodCall, ReadCall, ReadDone, Registration, RegistrationResult,
};
pub use transforms::{InvokeTransform, ResourceTransform, TransformedResource};
