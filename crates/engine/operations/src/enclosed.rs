//! Commands of a project that are not its program, such as checks: run in a sandbox like it.

use std::path::{Path, PathBuf};
use std::process::Command;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_sandbox::{Readable, SandboxSession, SandboxSettings};

use crate::isolation;

/// A command, and the sandbox that it starts in. The second has to outlive the process.
pub struct EnclosedCommand {
    pub command: Command,
    pub session: SandboxSession,
}

/// Closes a sandbox around a command. It sees its folder and these files, which lie beneath `root`, and it
/// has no variable but its own: `variables`, and those that every program may have.
///
/// # Errors
///
/// When this machine cannot isolate it as asked, or a folder is a link that leads out of `root`.
pub async fn enclose(
    settings: &SandboxSettings,
    root: &Path,
    command: &Command,
    readable: &[PathBuf],
    variables: &[&str],
) -> Result<EnclosedCommand> {
    let files = settings.files_of(root)?;
    let shown = |path: &PathBuf| {
        files.canonicalize(path).map_err(|error| {
            let message = format!("{} cannot be shown to a command: {error}", path.display());
            Error::new(ErrorCode::OUTSIDE_PROJECT, message).with_source(error)
        })
    };
    let exact = readable.iter().map(shown).collect::<Result<Vec<_>>>()?;
    let mut settings = settings.clone();
    let more = variables.iter().map(|name| (*name).to_owned());
    settings.environment.extend(more);
    let decided = isolation::decide(settings).await?;
    let mut session = decided.sandbox.open()?;
    let readable = Readable {
        named: Vec::new(),
        exact,
    };
    let command = session.enclose(command, &readable, &[])?;
    Ok(EnclosedCommand { command, session })
}
