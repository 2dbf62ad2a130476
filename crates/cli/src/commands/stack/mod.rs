//! `nimbus stack …`: the stacks of a project directory, by the names that Pulumi's users know.
//!
//! The selected stack is remembered where the official command line remembers it. What belongs to
//! other groups (`output`, `export`, `history`) is pointed at from there; see `habits`.

mod init;
mod ls;
mod rename;
mod rm;
mod select;

use clap::Subcommand;
use nimbus_core::Result;
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_operations::{
    StackAccess, StackLocation, StackSelection, StateLocation, backend_address, find_project,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::program::{ProgramLocationArgs, refuse_rehearsed, sandbox_settings};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

pub(crate) use ls::ProjectStacksReport;

#[derive(Debug, Subcommand)]
pub(crate) enum StackCommand {
    /// List the stacks of the project, and which one is selected
    Ls(ls::StackLsArgs),
    /// Make a stack with nothing in it, and select it
    Init(init::StackInitArgs),
    /// Select the stack that commands work on when none is named
    Select(select::StackSelectArgs),
    /// Remove a stack, its history and its configuration file
    Rm(rm::StackRmArgs),
    /// Give a stack another name, with its history and its configuration file
    Rename(rename::StackRenameArgs),
}

impl StackCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Ls(args) => ls::run(args, context).await,
            Self::Init(args) => init::run(args, context).await,
            Self::Select(args) => select::run(args, context).await,
            Self::Rm(args) => rm::run(args, context).await,
            Self::Rename(args) => rename::run(args, context).await,
        }
    }
}

/// A stack of a project, and what remembers which one is selected.
struct ChosenStack {
    access: StackAccess,
    selection: Option<StackSelection>,
}

impl ChosenStack {
    async fn open(
        place: &ProgramLocationArgs,
        name: &str,
        context: &CommandContext,
    ) -> Result<Self> {
        Self::at(place.location(name, context)?, context).await
    }

    async fn at(location: StackLocation, context: &CommandContext) -> Result<Self> {
        refuse_rehearsed(&location.states())?;
        let access = StackAccess::open(
            &location,
            &EnvironmentVariables::process(),
            &context.key_services()?,
        )
        .await?;
        let selection = selection(&location.states(), context)?;
        Ok(Self { access, selection })
    }

    /// Whether this is the one that commands work on.
    fn is_selected(&self) -> Result<bool> {
        let selected = match &self.selection {
            Some(selection) => selection.get()?,
            None => None,
        };
        Ok(selected.is_some_and(|name| names(&name, &self.access)))
    }
}

/// Whether a name that somebody wrote down means this stack.
fn names(written: &str, access: &StackAccess) -> bool {
    let project = access.project.as_ref().map_or("", |project| &project.name);
    nimbus_engine_backend::StackRef::parse(written, project).is_ok_and(|one| one == access.name)
}

fn selection(location: &StateLocation, context: &CommandContext) -> Result<Option<StackSelection>> {
    let sandbox = sandbox_settings(context)?;
    let (project, _) = find_project(&location.directory, sandbox.as_ref())?;
    let environment = EnvironmentVariables::process();
    let backend = backend_address(location, Some(&project), &environment)?;
    Ok(StackSelection::of(&project, &backend, &environment))
}

/// What became of a stack.
#[derive(JsonSchema, Serialize)]
pub(crate) struct StackChangeReport {
    /// `organization/<project>/<stack>`.
    pub(super) stack: String,
    /// `made`, `selected`, `removed` or `renamed`.
    pub(super) change: &'static str,
    /// Whether it is the selected one now.
    pub(super) selected: bool,
    /// Its earlier name, when it has another one now.
    pub(super) earlier: Option<String>,
}

impl Report for StackChangeReport {
    const SCHEMA: &'static str = "nimbus/stack-change/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let Self { stack, change, .. } = self;
        let earlier = self.earlier.as_ref().map(|name| format!(", was {name}"));
        let selected = match (self.selected, *change) {
            (true, "made" | "renamed") => " and selected",
            _ => "",
        };
        format!(
            "{mark} {stack} is {change}{selected}{}\n",
            earlier.unwrap_or_default()
        )
    }
}
