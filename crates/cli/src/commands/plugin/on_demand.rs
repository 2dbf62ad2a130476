//! A plugin that a preview asked for and this machine lacks.
//!
//! Packages bring plugins along that many programs never use, so nothing is installed before it was
//! missed. Only what has a version is installed, from where `nimbus plugin install` would take it.

use std::path::Path;

use nimbus_config::PluginInstallation;
use nimbus_core::Result;
use nimbus_engine_install::{InstallKind, Order};
use nimbus_engine_operations::required_plugins;

use super::install::{fetch, mirror, order_of};
use super::store;
use crate::commands::program::{is_attended, sandbox_settings};
use crate::context::CommandContext;

/// How an operation says that it lacks one.
const LACKING: &str = "no plugin for package ";

/// Installs the plugins whose absence was complained about, if the settings allow it here, and says
/// whether there were any.
pub(crate) async fn install_missing(
    complaints: &[String],
    folder: &Path,
    context: &CommandContext,
) -> Result<bool> {
    let lacking: Vec<&String> = complaints
        .iter()
        .filter(|message| message.contains(LACKING))
        .collect();
    if lacking.is_empty() {
        return Ok(false);
    }
    let sandbox = sandbox_settings(context)?;
    let allowed = match context.settings()?.settings.engine.install_plugins.value {
        PluginInstallation::Never => false,
        PluginInstallation::Terminal => is_attended(context),
        PluginInstallation::Always => true,
    };
    if !allowed || sandbox.as_ref().is_some_and(|one| one.is_strict()) {
        return Ok(false);
    }
    let Ok((packages, _)) = required_plugins(folder, sandbox.as_ref()).await else {
        return Ok(false);
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
        let is_meant = lacking.iter().any(|told| names(told, order.name.as_str()));
        if is_meant && order.version.is_some() && !is_there(&order) {
            missing.push(order);
        }
    }
    if missing.is_empty() {
        return Ok(false);
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
    fetch(&missing, source.as_ref(), context).await?;
    Ok(true)
}

/// Whether a complaint is about this package.
fn names(message: &str, name: &str) -> bool {
    let mut told = message.split(LACKING).skip(1);
    told.any(|rest| {
        let end = rest.find([' ', ':']).unwrap_or(rest.len());
        &rest[..end] == name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_meant_when_its_whole_name_is_said() {
        assert!(names("no plugin for package aws 7.0.0: not there", "aws"));
        assert!(names("no plugin for package aws: not there", "aws"));
        assert!(!names("no plugin for package aws-native 1.0.0: aws", "aws"));
    }
}
