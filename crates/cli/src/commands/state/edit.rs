//! `nimbus state delete`, `rename` and `unprotect`: what is recorded of a resource, edited by hand.
//!
//! Nothing in the cloud changes. The difference is shown first, and the state before it stays in the
//! stack's history.

use nimbus_core::Result;
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_display::{Paint, StepDetail, StyledLine, snapshot_diff_lines};
use nimbus_engine_model::edit::{
    DeleteRules, EditError, delete_resource, rename_resource, unprotect,
};
use nimbus_engine_model::{Snapshot, Urn};
use nimbus_engine_operations::{PreparedEdit, StackAccess};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::program::{LocationArgs, confirm};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct StateDeleteArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// The resource to forget; what it stands for stays in the cloud
    #[arg(value_name = "URN", value_parser = urn)]
    urn: Urn,

    /// Also forget whatever depends on it
    #[arg(long)]
    target_dependents: bool,

    /// Also when it is protected
    #[arg(long)]
    force: bool,

    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct StateRenameArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// The resource
    #[arg(value_name = "URN", value_parser = urn)]
    urn: Urn,

    /// Its new name, as the program gives it
    #[arg(value_name = "NEW-NAME")]
    name: String,

    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct StateUnprotectArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// The resource
    #[arg(value_name = "URN", value_parser = urn, required_unless_present = "all")]
    urn: Option<Urn>,

    /// Every resource of the stack
    #[arg(long, conflicts_with = "urn")]
    all: bool,

    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

/// For clap.
pub(super) fn urn(text: &str) -> std::result::Result<Urn, String> {
    Urn::parse(text).map_err(|error| error.to_string())
}

pub(super) async fn delete(
    args: StateDeleteArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let rules = DeleteRules {
        with_dependents: args.target_dependents,
        protected: args.force,
    };
    let edit = |state: &Snapshot| delete_resource(state, &args.urn, rules);
    apply(&args.location, "delete", args.yes, edit, context).await
}

pub(super) async fn rename(
    args: StateRenameArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let edit = |state: &Snapshot| rename_resource(state, &args.urn, &args.name);
    apply(&args.location, "rename", args.yes, edit, context).await
}

pub(super) async fn unprotected(
    args: StateUnprotectArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let edit = |state: &Snapshot| unprotect(state, args.urn.as_ref());
    apply(&args.location, "unprotect", args.yes, edit, context).await
}

async fn apply(
    location: &LocationArgs,
    verb: &'static str,
    yes: bool,
    edit: impl FnOnce(&Snapshot) -> std::result::Result<Snapshot, EditError>,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let location = location.location(context)?;
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &context.key_services()?,
    )
    .await?;
    let prepared = PreparedEdit::open(&access, edit).await?;
    let difference = snapshot_diff_lines(&prepared.before, &prepared.after, StepDetail::Short);
    let mut report = StateEditReport {
        stack: access.name.to_string(),
        verb,
        changed: false,
        removed: gone(&prepared.before, &prepared.after),
        added: gone(&prepared.after, &prepared.before),
        diff: difference.iter().map(StyledLine::plain).collect(),
    };
    if prepared.has_changes() {
        if !yes {
            show(&difference, context)?;
            let question = format!("Make this the state of {}?", access.name);
            confirm(context, &question).await?;
        }
        prepared.write(&format!("nimbus state {verb}")).await?;
        report.changed = true;
    }
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

pub(super) fn show(lines: &[StyledLine], context: &CommandContext) -> Result<()> {
    if context.output.is_json() {
        return Ok(());
    }
    let paint = if context.output.stdout_terminal().color {
        Paint::Colour
    } else {
        Paint::Plain
    };
    context.output.raw(&paint.lines(lines))
}

/// Names that one state has and another one does not.
fn gone(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let left: std::collections::HashSet<&Urn> =
        after.resources.iter().map(|one| &one.urn).collect();
    let urns = before.resources.iter().map(|one| &one.urn);
    urns.filter(|urn| !left.contains(urn))
        .map(ToString::to_string)
        .collect()
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct StateEditReport {
    /// `organization/<project>/<stack>`.
    stack: String,
    /// `delete`, `rename` or `unprotect`.
    verb: &'static str,
    /// Whether there was anything to change.
    changed: bool,
    /// URNs that are not recorded any more.
    removed: Vec<String>,
    /// URNs that were not recorded before.
    added: Vec<String>,
    /// Lines as people read them; secrets are `[secret]`.
    diff: Vec<String>,
}

impl Report for StateEditReport {
    const SCHEMA: &'static str = "nimbus/state-edit/1";

    fn text(&self, terminal: Terminal) -> String {
        if !self.changed {
            return "Nothing had to be changed\n".to_owned();
        }
        let mark = terminal.paint(TextStyle::Good, "✓");
        let mut page = ReportPage::default();
        page.line(format!("{mark} the state of {} is changed", self.stack));
        for urn in &self.removed {
            page.line(format!("  - {urn}"));
        }
        for urn in &self.added {
            page.line(format!("  + {urn}"));
        }
        page.into_text()
    }
}
