//! `nimbus state ls`: the resources of a stack, or the stacks of a backend.

use nimbus_core::{Result, printable_line};
use nimbus_engine_backend::{EnvironmentVariables, RecoveryReport};
use nimbus_engine_display::pending_line;
use nimbus_engine_model::{PendingOperation, ResourceState};
use nimbus_engine_operations::{StackAccess, backend_of};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::program::ProgramLocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct StateLsArgs {
    #[command(flatten)]
    place: ProgramLocationArgs,

    /// The stack whose resources to list; without one, the stacks are listed
    #[arg(long, short, value_name = "NAME")]
    stack: Option<String>,
}

pub(crate) async fn run(args: StateLsArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let environment = EnvironmentVariables::process();
    let Some(stack) = &args.stack else {
        let backend = backend_of(&args.place.states(context)?, &environment).await?;
        let stacks = backend.stacks().await?;
        context.output.result(&StateStacksReport {
            stacks: stacks.iter().map(ToString::to_string).collect(),
        })?;
        return Ok(CommandOutcome::Done);
    };
    let location = args.place.location(stack, context)?;
    let access = StackAccess::open(&location, &environment, &context.key_services()?).await?;
    let state = access.stack().load_unverified().await?;
    let snapshot = state.snapshot.unwrap_or_default();
    let left_over = access.stack().interrupted().await?;
    let is_running = match &left_over {
        Some(_) => access.stack().holder().await?.is_some(),
        None => false,
    };
    context.output.result(&StateResourcesReport {
        stack: access.name.to_string(),
        version: state.version.serial.get(),
        resources: snapshot
            .resources
            .iter()
            .map(|r| ListedResource::new(r))
            .collect(),
        unknown: snapshot
            .pending_operations
            .iter()
            .map(UnknownOutcome::new)
            .collect(),
        journal: left_over.map(|report| JournalSummary::new(&report, is_running)),
        problems: state.findings.iter().map(ToString::to_string).collect(),
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct StateStacksReport {
    /// Full names: `organization/<project>/<stack>`.
    stacks: Vec<String>,
}

impl Report for StateStacksReport {
    const SCHEMA: &'static str = "nimbus/state-stacks/1";

    fn text(&self, _: Terminal) -> String {
        if self.stacks.is_empty() {
            return "There are no stacks here\n".to_owned();
        }
        self.stacks
            .iter()
            .map(|stack| format!("{stack}\n"))
            .collect()
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct StateResourcesReport {
    /// `organization/<project>/<stack>`.
    stack: String,
    /// How many states Nimbus has seen, this one included.
    version: u64,
    /// Dependencies before dependants.
    resources: Vec<ListedResource>,
    /// Acts whose outcome nobody knows.
    unknown: Vec<UnknownOutcome>,
    /// What an operation has written down that is not part of the state yet.
    journal: Option<JournalSummary>,
    /// Rules that the state breaks.
    problems: Vec<String>,
}

#[derive(JsonSchema, Serialize)]
struct ListedResource {
    urn: String,
    #[serde(rename = "type")]
    type_: String,
    name: String,
    id: Option<String>,
    parent: Option<String>,
    /// Made by a provider; otherwise a component.
    custom: bool,
    protect: bool,
    /// Read, not managed.
    external: bool,
    /// Replaced already and waiting for its delete.
    delete: bool,
}

#[derive(JsonSchema, Serialize)]
struct UnknownOutcome {
    /// `creating`, `updating`, `deleting`, `reading` or `importing`.
    kind: &'static str,
    urn: String,
    id: Option<String>,
    #[serde(skip)]
    shown: String,
}

#[derive(JsonSchema, Serialize)]
struct JournalSummary {
    started: String,
    /// Somebody holds the stack; otherwise the operation was interrupted.
    is_running: bool,
    /// How many acts have a recorded outcome.
    recorded: usize,
    /// Acts that were begun and have no outcome.
    open: Vec<OpenAct>,
}

#[derive(JsonSchema, Serialize)]
struct OpenAct {
    /// `creating`, `updating`, `deleting`, `reading` or `importing`.
    kind: &'static str,
    urn: String,
    id: Option<String>,
    #[serde(skip)]
    shown: String,
}

impl JournalSummary {
    fn new(report: &RecoveryReport, is_running: bool) -> Self {
        let open = report.unknown.iter().map(|act| OpenAct {
            kind: act.kind.as_str(),
            urn: act.urn.to_string(),
            id: act.id.clone(),
            shown: format!("? {} {}", act.kind.as_str(), act.urn.name()),
        });
        Self {
            started: report.started.to_string(),
            is_running,
            recorded: report.known.len(),
            open: open.collect(),
        }
    }

    fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        for act in &self.open {
            let what = if self.is_running {
                "under way"
            } else {
                "nobody knows what became of it"
            };
            let line = format!("{}: {what}\n", act.shown);
            text.push_str(&terminal.paint(TextStyle::Warning, &line));
        }
        let (started, recorded) = (&self.started, self.recorded);
        let line = if self.is_running {
            format!("An operation is running since {started}; {recorded} outcomes are recorded\n")
        } else {
            format!(
                "An operation that started at {started} was interrupted; its journal has {recorded} \
                 outcomes that the next operation on this stack brings in\n"
            )
        };
        text.push_str(&terminal.paint(TextStyle::Warning, &line));
        text
    }
}

impl ListedResource {
    fn new(state: &ResourceState) -> Self {
        Self {
            urn: state.urn.to_string(),
            type_: state.type_.clone(),
            name: state.urn.name().to_owned(),
            id: state.id.clone(),
            parent: state.parent.as_ref().map(ToString::to_string),
            custom: state.custom,
            protect: state.protect,
            external: state.external,
            delete: state.delete,
        }
    }

    fn flags(&self) -> String {
        let flags = [
            (self.protect, "protected"),
            (self.external, "external"),
            (self.delete, "waiting for delete"),
        ];
        let set: Vec<&str> = flags
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, word)| *word)
            .collect();
        set.join(", ")
    }
}

impl UnknownOutcome {
    fn new(operation: &PendingOperation) -> Self {
        Self {
            kind: operation.kind.as_str(),
            urn: operation.resource.urn.to_string(),
            id: operation.resource.id.clone(),
            shown: pending_line(operation).plain(),
        }
    }
}

impl Report for StateResourcesReport {
    const SCHEMA: &'static str = "nimbus/state-ls/1";

    fn text(&self, terminal: Terminal) -> String {
        if self.resources.is_empty() && self.unknown.is_empty() && self.journal.is_none() {
            return "The stack has no resources\n".to_owned();
        }
        let mut text = String::new();
        for resource in &self.resources {
            text.push_str(&printable_line(&resource.urn));
            if let Some(id) = &resource.id {
                text.push_str(
                    &terminal.paint(TextStyle::Faint, &format!("  {}", printable_line(id))),
                );
            }
            let flags = resource.flags();
            if !flags.is_empty() {
                text.push_str(&terminal.paint(TextStyle::Warning, &format!("  [{flags}]")));
            }
            text.push('\n');
        }
        for unknown in &self.unknown {
            let line = format!("{}: nobody knows what became of it\n", unknown.shown);
            text.push_str(&terminal.paint(TextStyle::Warning, &line));
        }
        if let Some(journal) = &self.journal {
            text.push_str(&journal.text(terminal));
        }
        for problem in &self.problems {
            text.push_str(&terminal.paint(TextStyle::Bad, &format!("broken: {problem}\n")));
        }
        text
    }
}
