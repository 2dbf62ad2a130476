//! Many Pulumi programs as one deployment: manifests, templates, placeholders, graph, plan and execution.

pub mod calculate;
pub mod environment;
pub mod execute;
pub mod fingerprint;
pub mod graph;
pub mod manifest;
pub mod memory;
pub mod naming;
pub mod placeholder;
pub mod plan;
pub mod program;
pub mod render;
pub mod resolve;
pub mod run;
pub mod spot;
pub mod template;
pub mod unit;
pub mod validate;
pub mod variables;
pub mod workspace;
pub mod yaml;
