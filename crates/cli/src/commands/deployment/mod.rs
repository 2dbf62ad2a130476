//! Deployments on local files: a workspace, its templates, and what is made of them.
//!
//! The names are those that users of the platform know, without a noun in front.

pub(crate) mod adopt;
pub(crate) mod decommission;
pub(crate) mod environments;
pub(crate) mod export_state;
pub(crate) mod gate;
pub(crate) mod graph;
pub(crate) mod init;
pub(crate) mod latencies;
pub(crate) mod list;
pub(crate) mod local;
pub(crate) mod locks;
pub(crate) mod logs;
pub(crate) mod new;
pub(crate) mod prompt;
pub(crate) mod resources;
pub(crate) mod rotate;
pub(crate) mod run;
pub(crate) mod run_view;
pub(crate) mod runs;
pub(crate) mod secret;
pub(crate) mod stacks;
pub(crate) mod status;
pub(crate) mod templates;
pub(crate) mod validate;
pub(crate) mod why;

use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_engine_sandbox::SandboxSettings;
use nimbus_orchestrator::Manifest;
use nimbus_workspace::Workspace;

use crate::commands::program::sandbox_settings;
use crate::context::CommandContext;

/// The workspace that a command works on. With `strict` it is a stranger's, and everything in it is looked at
/// before anything is read or written; its files are opened from the folder that was looked at.
pub(crate) fn workspace(context: &CommandContext) -> Result<Workspace> {
    let workspace = Workspace::find(&context.directory)?;
    match sandbox_settings(context)?.filter(SandboxSettings::is_strict) {
        Some(sandbox) => workspace.contained(&sandbox.roots),
        None => Ok(workspace),
    }
}

/// For clap: an environment, or why it is none.
pub(crate) fn environment(text: &str) -> std::result::Result<EnvironmentName, String> {
    text.parse::<EnvironmentName>()
        .map_err(|error| error.to_string())
}

/// A stack that is not in the manifest, with the nearest that is.
pub(crate) fn unknown_stack(id: &str, stack: &str, manifest: &Manifest) -> Error {
    let message = format!("deployment {id} has no stack {stack}");
    let known = manifest.stacks.keys().map(|name| name.as_str());
    let error = Error::new(ErrorCode::STACK_UNKNOWN, message);
    match nimbus_document::did_you_mean(stack, known) {
        Some(help) => error.with_help(help),
        None => error.with_help("`nimbus graph` shows the stacks of a deployment"),
    }
}

pub(crate) fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::USAGE, message)
}
