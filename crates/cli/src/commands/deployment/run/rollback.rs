//! `nimbus rollback`: return an environment to an earlier version.

use std::collections::BTreeMap;

use nimbus_control_wire::EnvironmentVersion;
use nimbus_core::Result;
use nimbus_local::VersionFiles;
use nimbus_orchestrator::{OnFailure, RunAction, VersionRecord};
use nimbus_runs::RunChoices;
use nimbus_runs::ports::VersionStore as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::ChangeArgs;
use super::runner::LocalRunner;
use crate::commands::deployment::local::{RunArgs, find_place};
use crate::commands::program::confirm;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct RollbackArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Version to return to; the one before the current when left out
    #[arg(long, visible_alias = "to", value_name = "VERSION")]
    pub(crate) to_version: Option<u32>,
    /// Creates of unknown outcome were looked for in the cloud, in vain: go back without them
    #[arg(long)]
    pub(crate) forget_creates: bool,
    /// List the versions instead
    #[arg(long, conflicts_with_all = ["to_version", "forget_creates"])]
    pub(crate) list: bool,
}

impl RollbackArgs {
    pub(crate) fn trace_file(&self) -> Option<&std::path::Path> {
        self.change.trace.file()
    }
}

pub(crate) async fn rollback(
    args: RollbackArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    let place = find_place(&run.id, run.how.rehearse, context)?;
    if args.list {
        let versions = VersionFiles::new(&place.records)
            .all(run.environment)
            .await?;
        context
            .output
            .result(&VersionsReport::new(run, &versions))?;
        return Ok(CommandOutcome::Done);
    }
    let choices = RunChoices {
        parallel: args.change.parallel,
        on_failure: OnFailure::Hold,
        to_version: args.to_version,
        forget_creates: args.forget_creates,
        message: args.change.message.clone(),
        ..run.how.choices(context)?
    };
    let environment = run.environment;
    let runner = LocalRunner::open(place, environment, choices.clone(), None, context)?;
    let request = runner.request(RunAction::Rollback, choices);
    let session = runner.session(request, args.change.wait, context).await?;
    let planned = session.plan().await?;
    if !args.change.yes && !run.how.rehearse {
        let target = match planned.request().choices.to_version {
            Some(0) | None => "what there was before the first run".to_owned(),
            Some(number) => format!("version {number}"),
        };
        let question = format!(
            "Return {} stacks of {environment} to {target}?",
            planned.graph().len()
        );
        confirm(context, &question).await?;
    }
    runner.rehearsal_note(context);
    runner
        .carry_out(planned, run.how.engine.is_official(), context)
        .await
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct VersionsReport {
    deployment: String,
    environment: String,
    /// Oldest first; the last one is what is there now.
    versions: Vec<ShownVersion>,
}

#[derive(JsonSchema, Serialize)]
struct ShownVersion {
    version: u32,
    run: String,
    /// `deploy`, `destroy` or `rollback`.
    kind: String,
    at: String,
    user: String,
    /// State of each unit: its number in the unit's own history.
    units: BTreeMap<String, usize>,
}

impl VersionsReport {
    /// Those that a server told of.
    pub(crate) fn of_server(run: &RunArgs, versions: Vec<EnvironmentVersion>) -> Self {
        let shown = versions.into_iter().map(|version| ShownVersion {
            version: version.version,
            run: version.run,
            kind: version.kind,
            at: version.at,
            user: version.user,
            units: version.units,
        });
        Self {
            deployment: run.id.clone(),
            environment: run.environment.to_string(),
            versions: shown.collect(),
        }
    }

    fn new(run: &RunArgs, versions: &[VersionRecord]) -> Self {
        let shown = versions.iter().map(|record| ShownVersion {
            version: record.version,
            run: record.run.to_string(),
            kind: record.kind.as_str().to_owned(),
            at: record.at.clone(),
            user: record.user.clone(),
            units: record
                .units
                .iter()
                .map(|(name, unit)| (name.to_string(), unit.state))
                .collect(),
        });
        Self {
            deployment: run.id.clone(),
            environment: run.environment.to_string(),
            versions: shown.collect(),
        }
    }
}

impl Report for VersionsReport {
    const SCHEMA: &'static str = "nimbus/versions/1";

    fn text(&self, terminal: Terminal) -> String {
        if self.versions.is_empty() {
            return format!("{} has no versions yet\n", self.environment);
        }
        let heading = format!(
            "{:>7}  {:<8} {:<9} {:<25} {:<12} STACKS",
            "VERSION", "RUN", "KIND", "AT", "BY"
        );
        let mut page = ReportPage::default();
        page.line(terminal.paint(TextStyle::Heading, &heading));
        for shown in &self.versions {
            let ShownVersion {
                version,
                run,
                kind,
                at,
                user,
                units,
            } = shown;
            let count = units.len();
            page.line(format!(
                "{version:>7}  {run:<8} {kind:<9} {at:<25} {user:<12} {count}"
            ));
        }
        page.into_text()
    }
}
