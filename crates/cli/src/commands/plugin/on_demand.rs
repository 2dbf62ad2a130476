//! Plugins that a program needs and this machine lacks, installed before an operation begins.
//!
//! Only what has a version is installed, from where `nimbus plugin install` would take it. Whatever
//! goes wrong before that is left to the operation, which says better what is missing.

use std::path::Path;

use nimbus_config::PluginInstallation;
use nimbus_core::Result;
use nimbus_engine_install::{InstallKind, Order};
use nimbus_engine_operations::required_plugins;

use super::install::{fetch, mirror, order_of};
use super::store;
use crate::commands::program::{is_attended, sandbox_settings};
use crate::context::CommandContext;

/// Installs what is missing, if the settings allow it here.
pub(crate) async fn install_missing(folder: &Path, context: &CommandContext) -> Result<()> {
    let sandbox = sandbox_settings(context)?;
    let allowed = match context.settings()?.settings.engine.install_plugins.value {
        PluginInstallation::Never => false,
        PluginInstallation::Terminal => is_attended(context),
        PluginInstallation::Always => true,
    };
    if !allowed || sandbox.as_ref().is_some_and(|one| one.is_strict()) {
        return Ok(());
    }
    let Ok((packages, _)) = required_plugins(folder, sandbox.as_ref()).await else {
        return Ok(());
    };
    let installed = store()?.list()?;
    let source = mirror(context)?;
    let mut missing = Vec::new();
    for package in packages {
        let order = order_of(package, source.as_ref())?;
        let is_there = |order: &Order| {
            installed.iter().any(|one| {
                one.kind == InstallKind::Resource
                    && one.name == order.name
                    && Some(&one.version) == order.version.as_ref()
            })
        };
        let program = format!("pulumi-resource-{}", order.name);
        if order.version.is_some() && !is_there(&order) && which::which(&program).is_err() {
            missing.push(order);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    for order in &missing {
        let version = order.version.as_ref().map(ToString::to_string);
        let note = format!(
            "installing the plugin {} {}, which the program needs",
            order.name,
            version.unwrap_or_default()
        );
        context.output.note(&note);
    }
    fetch(&missing, source.as_ref(), context).await.map(drop)
}
