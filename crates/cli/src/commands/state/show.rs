//! `nimbus state show`: what is recorded of one resource.

use nimbus_core::{Error, ErrorCode, Result, printable_line};
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_model::{ResourceState, Snapshot, Urn};
use nimbus_engine_operations::StackAccess;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::commands::program::LocationArgs;
use crate::commands::values::shown_map;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct StateShowArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// URN of the resource, or its name if no other resource has it
    #[arg(value_name = "URN")]
    urn: String,

    /// Print secrets in the clear
    #[arg(long)]
    show_secrets: bool,
}

pub(crate) async fn run(args: StateShowArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let location = args.location.location(context)?;
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &context.key_services()?,
    )
    .await?;
    let stack = access.stack();
    // Without secrets to show, no passphrase is needed and broken states can be looked at.
    let snapshot = if args.show_secrets {
        stack.load(&access.keyring).await?.snapshot
    } else {
        stack.load_unverified().await?.snapshot
    };
    let snapshot = snapshot.unwrap_or_default();
    let resource = find(&snapshot, &args.urn)?;
    context
        .output
        .result(&ResourceReport::new(resource, args.show_secrets))?;
    Ok(CommandOutcome::Done)
}

fn find<'s>(snapshot: &'s Snapshot, text: &str) -> Result<&'s ResourceState> {
    let live = || {
        snapshot
            .resources
            .iter()
            .filter(|resource| !resource.delete)
    };
    let by_urn = live().find(|resource| resource.urn.as_str() == text);
    if let Some(found) = by_urn {
        return Ok(found);
    }
    let named: Vec<_> = live()
        .filter(|resource| resource.urn.name() == text)
        .collect();
    match named[..] {
        [one] => Ok(one),
        [] => {
            let message = format!("the state has no resource {text}");
            Err(Error::new(ErrorCode::RESOURCE_UNKNOWN, message)
                .with_help("`nimbus state ls` lists every resource with its URN"))
        }
        [first, ..] => {
            let message = format!("{} resources are named {text}", named.len());
            Err(Error::new(ErrorCode::RESOURCE_UNKNOWN, message)
                .with_help(format!("give the URN, such as {}", first.urn)))
        }
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ResourceReport {
    urn: String,
    #[serde(rename = "type")]
    type_: String,
    id: Option<String>,
    custom: bool,
    parent: Option<String>,
    /// `<provider urn>::<id>`; empty for components.
    provider: String,
    protect: bool,
    external: bool,
    dependencies: Vec<String>,
    /// When it was made and last changed, if that is known.
    created: Option<String>,
    modified: Option<String>,
    /// Why it is not complete.
    init_errors: Vec<String>,
    inputs: Map<String, Value>,
    outputs: Map<String, Value>,
}

impl ResourceReport {
    fn new(state: &ResourceState, show_secrets: bool) -> Self {
        Self {
            urn: state.urn.to_string(),
            type_: state.type_.clone(),
            id: state.id.clone(),
            custom: state.custom,
            parent: state.parent.as_ref().map(Urn::to_string),
            provider: state.provider.clone(),
            protect: state.protect,
            external: state.external,
            dependencies: state.dependencies.iter().map(Urn::to_string).collect(),
            created: state.created.map(|time| time.to_string()),
            modified: state.modified.map(|time| time.to_string()),
            init_errors: state.init_errors.clone(),
            inputs: shown_map(&state.inputs, show_secrets),
            outputs: shown_map(&state.outputs, show_secrets),
        }
    }
}

impl Report for ResourceReport {
    const SCHEMA: &'static str = "nimbus/state-show/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = terminal.paint(TextStyle::Heading, &printable_line(&self.urn)) + "\n";
        let mut fact = |name: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                text.push_str(&format!("  {name:<10} {}\n", printable_line(value)));
            }
        };
        fact("type", Some(&self.type_));
        fact("id", self.id.as_deref());
        fact("parent", self.parent.as_deref());
        fact("provider", Some(&self.provider));
        fact("protected", self.protect.then_some("yes"));
        fact("external", self.external.then_some("yes"));
        fact("created", self.created.as_deref());
        fact("modified", self.modified.as_deref());
        for dependency in &self.dependencies {
            fact("depends on", Some(dependency));
        }
        for error in &self.init_errors {
            fact("incomplete", Some(error));
        }
        for (name, map) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            if !map.is_empty() {
                let json = format!("{:#}", Value::Object(map.clone()));
                let indented = json.replace('\n', "\n  ");
                text.push_str(&format!("  {name}\n  {indented}\n"));
            }
        }
        text
    }
}
