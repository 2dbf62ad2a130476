//! `nimbus decommission`: the end of a deployment of which nothing is left in the cloud.

use nimbus_core::Result;
use nimbus_local::Decommission;
use schemars::JsonSchema;
use serde::Serialize;

use super::local::find_place;
use crate::commands::admin::ServerArgs;
use crate::commands::program::{confirm, sandbox_settings};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct DecommissionArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Do it without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Look here for state too; places that recorded runs used are looked at anyway
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<String>,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

pub(crate) async fn run(
    args: DecommissionArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let place = find_place(&args.id, false, context)?;
    let id = place.deployment.manifest.metadata.id.to_string();
    let directory = place.deployment.directory.display().to_string();
    let command = format!("{} decommission", context.program);
    let sandbox = sandbox_settings(context)?;
    let backend = args.backend.as_deref();
    let decommission = Decommission::open(place, backend, sandbox.as_ref(), &command).await?;
    if !args.yes {
        let question = format!("Archive {id} and remove it from this workspace?");
        confirm(context, &question).await?;
    }
    let done = decommission.carry_out().await?;
    context.output.result(&DecommissionReport {
        deployment: id,
        archive: done.archive.display().to_string(),
        files: done.files,
        directory,
        states: done.states,
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct DecommissionReport {
    deployment: String,
    /// File with everything that was recorded of it.
    archive: String,
    /// How many files the archive holds.
    files: usize,
    /// What was removed.
    directory: String,
    /// Empty stacks that were removed from where else state was kept.
    states: Vec<String>,
}

impl Report for DecommissionReport {
    const SCHEMA: &'static str = "nimbus/decommission/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let Self {
            deployment,
            archive,
            files,
            directory,
            states,
        } = self;
        let mut page = ReportPage::default();
        page.line(format!("{mark} {deployment} is decommissioned"));
        page.line(format!("  archive: {archive} ({files} files)"));
        page.line(format!("  removed: {directory}"));
        for state in states {
            page.line(format!("  removed: state of {state}"));
        }
        page.line(format!(
            "  to bring it back: nimbus workspace restore {archive} --into {directory}"
        ));
        page.into_text()
    }
}
