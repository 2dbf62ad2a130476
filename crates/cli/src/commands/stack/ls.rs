//! `nimbus stack ls`.

use nimbus_core::Result;
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_operations::{backend_of, find_project};
use schemars::JsonSchema;
use serde::Serialize;

use super::selection;
use crate::commands::program::{ProgramLocationArgs, sandbox_settings};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct StackLsArgs {
    #[command(flatten)]
    place: ProgramLocationArgs,

    /// Of all projects that the backend has
    #[arg(long, short)]
    all: bool,
}

pub(crate) async fn run(args: StackLsArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let location = args.place.states(context)?;
    let sandbox = sandbox_settings(context)?;
    let project = match args.all {
        true => None,
        false => Some(find_project(&location.directory, sandbox.as_ref())?.0),
    };
    let selected = match &project {
        Some(_) => selection(&location, context)?,
        None => None,
    };
    let selected = selected.map(|selection| selection.get()).transpose()?;
    let selected = selected.flatten();
    let backend = backend_of(&location, &EnvironmentVariables::process()).await?;
    let mut stacks = Vec::new();
    for name in backend.stacks().await? {
        let own = project.as_ref();
        if own.is_some_and(|project| project.name != name.project()) {
            continue;
        }
        // A state that cannot be read is listed all the same: it is there.
        let state = backend.stack(name.clone())?.load_unverified().await.ok();
        let snapshot = state.and_then(|state| state.snapshot);
        let full = name.to_string();
        let short = name.stack().to_owned();
        stacks.push(ListedProjectStack {
            current: own.is_some()
                && selected
                    .as_ref()
                    .is_some_and(|one| *one == full || *one == short),
            name: if own.is_some() { short } else { full.clone() },
            stack: full,
            resources: snapshot.as_ref().map_or(0, |state| state.resources.len()),
            updated: snapshot
                .filter(|state| !state.resources.is_empty())
                .map(|state| state.manifest.time.to_string()),
        });
    }
    context.output.result(&ProjectStacksReport {
        project: project.map(|project| project.name),
        stacks,
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ProjectStacksReport {
    /// The project; `null` with `--all`.
    project: Option<String>,
    stacks: Vec<ListedProjectStack>,
}

#[derive(JsonSchema, Serialize)]
struct ListedProjectStack {
    name: String,
    /// `organization/<project>/<stack>`.
    stack: String,
    /// Whether commands work on it when none is named.
    current: bool,
    resources: usize,
    /// When its state was last written.
    updated: Option<String>,
}

impl Report for ProjectStacksReport {
    const SCHEMA: &'static str = "nimbus/stack-ls/1";

    fn text(&self, terminal: Terminal) -> String {
        if self.stacks.is_empty() {
            return "There are no stacks here; `nimbus stack init NAME` makes one\n".to_owned();
        }
        let width = self.stacks.iter().map(|one| one.name.len() + 1).max();
        let width = width.unwrap_or_default().max(4);
        let heading = format!("{:<width$}  {:<22}  RESOURCES", "NAME", "LAST UPDATE");
        let mut text = terminal.paint(TextStyle::Heading, &heading) + "\n";
        for one in &self.stacks {
            let mark = if one.current { "*" } else { "" };
            let name = format!("{}{mark}", one.name);
            let updated = one.updated.as_deref().unwrap_or("never");
            text.push_str(&format!(
                "{name:<width$}  {updated:<22}  {}\n",
                one.resources
            ));
        }
        text
    }
}
