//! Which processes runs share, as the settings want it.

use nimbus_core::Result;

use crate::context::CommandContext;

/// The packages whose providers are shared between folders, if the user says which.
pub(crate) fn shared_providers(context: &CommandContext) -> Result<Option<Vec<String>>> {
    let settings = context.settings()?;
    let chosen = settings.settings.engine.shared_providers.value.as_ref();
    Ok(chosen.map(|packages| packages.names().to_vec()))
}
