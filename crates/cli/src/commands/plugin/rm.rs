//! `nimbus plugin rm`: remove what is not needed any more.

use std::fmt::Write as _;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_install::InstalledPlugin;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Named, store};
use crate::commands::program::confirm;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct PluginRmArgs {
    /// [KIND] NAME [VERSION]; without a version every one that is installed
    #[arg(value_name = "PLUGIN", required_unless_present = "all")]
    plugin: Vec<String>,

    /// Every plugin
    #[arg(long, conflicts_with = "plugin")]
    all: bool,

    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: PluginRmArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let store = store()?;
    let named = Named::parse(&args.plugin)?;
    let meant = |entry: &InstalledPlugin| match &named {
        None => true,
        Some(named) => {
            entry.kind == named.kind
                && entry.name == named.name
                && named
                    .version
                    .as_ref()
                    .is_none_or(|version| *version == entry.version)
        }
    };
    let entries: Vec<_> = store.list()?.into_iter().filter(meant).collect();
    if let (Some(named), []) = (&named, &entries[..]) {
        let message = format!(
            "the {} plugin {} is not installed so",
            named.kind, named.name
        );
        return Err(Error::new(ErrorCode::PLUGIN_NOT_FOUND, message)
            .with_help("`nimbus plugin ls` lists what is installed"));
    }
    if !args.yes && !entries.is_empty() {
        let names: Vec<_> = entries.iter().map(shown).collect();
        confirm(context, &format!("Remove {}?", names.join(", "))).await?;
    }
    let mut removed = Vec::new();
    for entry in &entries {
        store.remove(entry).await?;
        removed.push(shown(entry));
    }
    context.output.result(&RemoveReport { removed })?;
    Ok(CommandOutcome::Done)
}

fn shown(entry: &InstalledPlugin) -> String {
    format!("{}-{}-v{}", entry.kind, entry.name, entry.version)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct RemoveReport {
    /// `<kind>-<name>-v<version>` of each.
    removed: Vec<String>,
}

impl Report for RemoveReport {
    const SCHEMA: &'static str = "nimbus/plugin-rm/1";

    fn text(&self, _: Terminal) -> String {
        let mut text = String::new();
        for plugin in &self.removed {
            // Writing to a string does not fail.
            let _ = writeln!(text, "removed {plugin}");
        }
        text
    }
}
