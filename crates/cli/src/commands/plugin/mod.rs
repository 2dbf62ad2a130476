//! `nimbus plugin …`: provider and policy plugins, in the folder that the official command line
//! uses too.

mod install;
mod ls;
mod on_demand;
mod progress;
mod rm;

use clap::Subcommand;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_install::{InstallKind, PluginName, PluginStore, parse_version};
use nimbus_engine_operations::plugin_folder;
use semver::Version;

use crate::context::CommandContext;
use crate::exit::CommandOutcome;

pub(crate) use install::InstallReport;
pub(crate) use ls::PluginListReport as PluginsReport;
pub(crate) use on_demand::install_missing;
pub(crate) use rm::RemoveReport;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Download plugins, or take them from a folder
    Install(install::PluginInstallArgs),
    /// List the installed plugins
    Ls(ls::PluginLsArgs),
    /// Remove installed plugins
    Rm(rm::PluginRmArgs),
}

impl PluginCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Install(args) => install::run(args, context).await,
            Self::Ls(args) => ls::run(args, context).await,
            Self::Rm(args) => rm::run(args, context).await,
        }
    }
}

fn store() -> Result<PluginStore> {
    Ok(PluginStore::new(plugin_folder()?))
}

/// A plugin as it is named on the command line: `[KIND] NAME [VERSION]`, or `NAME@VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    kind: InstallKind,
    name: PluginName,
    version: Option<Version>,
}

impl Named {
    /// `None` if nothing was named.
    fn parse(words: &[String]) -> Result<Option<Self>> {
        let (kind, rest) = match words {
            // A plugin may itself be called `tool`: a kind is one only before a name.
            [first, rest @ ..] if !rest.is_empty() => match InstallKind::parse(first) {
                Some(kind) => (kind, rest),
                None => (InstallKind::Resource, words),
            },
            _ => (InstallKind::Resource, words),
        };
        let (name, version) = match rest {
            [] => return Ok(None),
            [name] => match name.split_once('@') {
                Some((name, version)) => (name, Some(version)),
                None => (name.as_str(), None),
            },
            [name, version] => (name.as_str(), Some(version.as_str())),
            _ => {
                let message = format!("{:?} is not one plugin", words.join(" "));
                return Err(Error::new(ErrorCode::USAGE, message)
                    .with_help("write [KIND] NAME [VERSION], such as `resource aws 7.0.0`"));
            }
        };
        Ok(Some(Self {
            kind,
            name: PluginName::parse(name)?,
            version: version.map(parse_version).transpose()?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &str) -> Option<(InstallKind, String, Option<String>)> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let named = Named::parse(&words).expect("it is understood")?;
        let version = named.version.map(|version| version.to_string());
        Some((named.kind, named.name.to_string(), version))
    }

    #[test]
    fn plugins_are_named_in_every_common_form() {
        let aws = |version: Option<&str>| {
            let version = version.map(str::to_owned);
            Some((InstallKind::Resource, "aws".to_owned(), version))
        };
        assert_eq!(named("aws"), aws(None));
        assert_eq!(named("aws v7.0.0"), aws(Some("7.0.0")));
        assert_eq!(named("aws@7.0.0"), aws(Some("7.0.0")));
        assert_eq!(named("resource aws 7.0.0"), aws(Some("7.0.0")));
        let pack = Some((InstallKind::Analyzer, "pack".to_owned(), None));
        assert_eq!(named("analyzer pack"), pack);
        let tool = Some((InstallKind::Resource, "tool".to_owned(), None));
        assert_eq!(named("tool"), tool);
        assert_eq!(named(""), None);
        let words = ["resource", "aws", "7.0.0", "more"].map(str::to_owned);
        assert!(Named::parse(&words).is_err());
    }
}
