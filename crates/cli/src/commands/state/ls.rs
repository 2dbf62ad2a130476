//! `nimbus state ls`: the resources of a stack, or the stacks of a backend.

use nimbus_core::Result;
use nimbus_engine_backend::Environment;
use nimbus_engine_display::pending_line;
use nimbus_engine_model::{Operation, ResourceState};
use nimbus_engine_operations::{StackAccess, backend_of};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::program::PlaceArgs;
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Report;
use crate::style::{Terminal, Tone};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    place: PlaceArgs,

    /// The stack whose resources to list; without one, the stacks are listed
    #[arg(long, short, value_name = "NAME")]
    stack: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    let environment = Environment::process();
    let Some(stack) = &args.stack else {
        let backend = backend_of(&args.place.location("", context), &environment).await?;
        let stacks = backend.stacks().await?;
        context.output.result(&StacksReport {
            stacks: stacks.iter().map(ToString::to_string).collect(),
        })?;
        return Ok(Outcome::Done);
    };
    let access = StackAccess::open(&args.place.location(stack, context), &environment).await?;
    let state = access.stack().load_unverified().await?;
    let snapshot = state.snapshot.unwrap_or_default();
    context.output.result(&ResourcesReport {
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
        problems: state.findings.iter().map(ToString::to_string).collect(),
    })?;
    Ok(Outcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct StacksReport {
    /// Full names: `organization/<project>/<stack>`.
    stacks: Vec<String>,
}

impl Report for StacksReport {
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
pub(crate) struct ResourcesReport {
    /// `organization/<project>/<stack>`.
    stack: String,
    /// How many states Nimbus has seen, this one included.
    version: u64,
    /// Dependencies before dependants.
    resources: Vec<ListedResource>,
    /// Acts whose outcome nobody knows.
    unknown: Vec<UnknownOutcome>,
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
    fn new(operation: &Operation) -> Self {
        Self {
            kind: operation.kind.as_str(),
            urn: operation.resource.urn.to_string(),
            id: operation.resource.id.clone(),
            shown: pending_line(operation).plain(),
        }
    }
}

impl Report for ResourcesReport {
    const SCHEMA: &'static str = "nimbus/state-ls/1";

    fn text(&self, terminal: Terminal) -> String {
        if self.resources.is_empty() && self.unknown.is_empty() {
            return "The stack has no resources\n".to_owned();
        }
        let mut text = String::new();
        for resource in &self.resources {
            text.push_str(&resource.urn);
            if let Some(id) = &resource.id {
                text.push_str(&terminal.paint(Tone::Faint, &format!("  {id}")));
            }
            let flags = resource.flags();
            if !flags.is_empty() {
                text.push_str(&terminal.paint(Tone::Warning, &format!("  [{flags}]")));
            }
            text.push('\n');
        }
        for unknown in &self.unknown {
            let line = format!("{}: nobody knows what became of it\n", unknown.shown);
            text.push_str(&terminal.paint(Tone::Warning, &line));
        }
        for problem in &self.problems {
            text.push_str(&terminal.paint(Tone::Bad, &format!("broken: {problem}\n")));
        }
        text
    }
}
