//! Functions of the program that change what it asks for.

use async_trait::async_trait;
use nimbus_engine_model::{PropertyMap, TypeToken, Urn};

use crate::error::MonitorError;
use crate::options::{InvokeOptions, ResourceOptions};

/// Changes properties and options of a resource before anything is made of them.
#[async_trait]
pub trait ResourceTransform: Send + Sync {
    async fn transform(
        &self,
        subject: &TransformedResource,
        properties: PropertyMap,
        options: ResourceOptions,
    ) -> Result<(PropertyMap, ResourceOptions), MonitorError>;
}

/// Changes arguments and options of an invoke before it is sent.
#[async_trait]
pub trait InvokeTransform: Send + Sync {
    async fn transform(
        &self,
        token: &str,
        args: PropertyMap,
        options: InvokeOptions,
    ) -> Result<(PropertyMap, InvokeOptions), MonitorError>;
}

/// The resource that a transform is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformedResource {
    pub type_: TypeToken,
    pub name: String,
    pub custom: bool,
    pub parent: Option<Urn>,
}
