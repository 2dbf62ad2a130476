//! A project's own files: `Pulumi.yaml` and `Pulumi.<stack>.yaml`.

mod config;
mod declaration;
mod discover;
mod edit;
mod file;
mod key;
mod render;
mod settings;
mod splice;
mod value;

pub use config::{ConfigMap, ResolvedConfig, parse_key, resolve};
pub use declaration::{ConfigType, Declaration, DeclaredDefault};
pub use discover::{find_project_file, own_project_file};
pub use file::{PackageSpec, PluginPath, Plugins, Project, ProjectRuntime};
pub use key::{ConfigKey, KeyError};
pub use settings::StackSettings;
pub use value::{ConfigValue, PlaceError};

#[cfg(test)]
mod tests;
