//! `nimbus plugin ls`: what is installed.

use std::fmt::Write as _;

use jiff::Timestamp;
use nimbus_core::Result;
use nimbus_engine_install::InstalledPlugin;
use schemars::JsonSchema;
use serde::Serialize;

use super::store;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct PluginLsArgs {}

pub(crate) async fn run(_: PluginLsArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let store = store()?;
    let plugins: Vec<_> = store.list()?.into_iter().map(PluginEntry::from).collect();
    context.output.result(&PluginListReport {
        folder: store.folder().display().to_string(),
        size: plugins.iter().map(|plugin| plugin.size).sum(),
        plugins,
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct PluginListReport {
    /// Where plugins are kept.
    folder: String,
    /// Bytes of all of them.
    size: u64,
    /// By kind, name and version.
    plugins: Vec<PluginEntry>,
}

#[derive(JsonSchema, Serialize)]
struct PluginEntry {
    /// `resource`, `analyzer`, `language`, `converter` or `tool`.
    kind: String,
    name: String,
    version: String,
    folder: String,
    /// Bytes of all its files.
    size: u64,
    /// When it was installed, as RFC 3339.
    installed: Option<String>,
}

impl From<InstalledPlugin> for PluginEntry {
    fn from(entry: InstalledPlugin) -> Self {
        let installed = entry
            .installed
            .and_then(|time| Timestamp::try_from(time).ok());
        Self {
            kind: entry.kind.to_string(),
            name: entry.name.to_string(),
            version: entry.version.to_string(),
            folder: entry.folder.display().to_string(),
            size: entry.size,
            installed: installed.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        }
    }
}

impl Report for PluginListReport {
    const SCHEMA: &'static str = "nimbus/plugin-ls/1";

    fn text(&self, terminal: Terminal) -> String {
        if self.plugins.is_empty() {
            return format!("no plugin is installed in {}\n", self.folder);
        }
        let width = |of: fn(&PluginEntry) -> usize| self.plugins.iter().map(of).max().unwrap_or(0);
        let name = width(|plugin| plugin.name.len()).max(4);
        let version = width(|plugin| plugin.version.len()).max(7);
        let heading = format!(
            "{:<name$}  {:<version$}  {:<9}  {:>9}",
            "NAME", "VERSION", "KIND", "SIZE"
        );
        let mut text = terminal.paint(TextStyle::Heading, &heading) + "\n";
        for plugin in &self.plugins {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{:<name$}  {:<version$}  {:<9}  {:>9}",
                plugin.name,
                plugin.version,
                plugin.kind,
                shown_size(plugin.size)
            );
        }
        let _ = writeln!(text, "{} in {}", shown_size(self.size), self.folder);
        text
    }
}

/// Bytes as people read them.
fn shown_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let sizes = [0, 999, 1_000, 2_500_000, 3_000_000_000].map(shown_size);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "2.5 MB", "3.0 GB"]);
    }
}
