//! The processes of real runs, as the settings want them.

use nimbus_core::Result;
use nimbus_engine_operations::Processes;

use crate::context::CommandContext;

/// Programs, plugins and policy packs in the environment of this process.
pub(super) fn real_processes(context: &CommandContext) -> Result<Processes> {
    let processes = Processes::new();
    Ok(match shared_providers(context)? {
        Some(packages) => processes.sharing(packages),
        None => processes,
    })
}

/// The packages whose providers are shared between folders, if the user says which.
pub(crate) fn shared_providers(context: &CommandContext) -> Result<Option<Vec<String>>> {
    let settings = context.settings()?;
    let chosen = settings.settings.engine.shared_providers.value.as_ref();
    Ok(chosen.map(|packages| packages.names().to_vec()))
}
