//! Programs and templates of a tenant.

use async_graphql::SimpleObject;
use nimbus_control_app::{StackEntry, TemplateEntry};
use serde::{Deserialize, Serialize};

/// A registered program.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Stack")]
pub(crate) struct StackNode {
    name: String,
    description: Option<String>,
    dependencies: Vec<String>,
    /// Whether the tenant has files of its own for it.
    custom: bool,
    /// As it is written, in YAML; absent in lists.
    template: Option<String>,
}

impl From<StackEntry> for StackNode {
    fn from(entry: StackEntry) -> Self {
        Self {
            name: entry.name,
            description: entry.description,
            dependencies: entry.dependencies,
            custom: entry.custom,
            template: entry.template,
        }
    }
}

/// A template for deployments.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Template")]
pub(crate) struct TemplateNode {
    name: String,
    description: Option<String>,
    custom: bool,
    /// As it is written, in YAML; absent in lists.
    content: Option<String>,
}

impl From<TemplateEntry> for TemplateNode {
    fn from(entry: TemplateEntry) -> Self {
        Self {
            name: entry.name,
            description: entry.description,
            custom: entry.custom,
            content: entry.content,
        }
    }
}
