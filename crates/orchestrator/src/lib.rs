//! Many Pulumi programs as one deployment: manifests, templates, placeholders, graph, plan and execution.

pub mod environment;
pub mod graph;
pub mod manifest;
pub mod naming;
pub mod placeholder;
pub mod render;
pub mod template;
pub mod variables;
pub mod workspace;
pub mod yaml;
