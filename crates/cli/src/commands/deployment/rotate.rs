//! `nimbus rotate`: forget values that were made up once, so that the next deploy makes new ones.

use nimbus_core::{ComponentName, EnvironmentName, Result, printable_line};
use nimbus_local::{EnvironmentLockFiles, MemoryFiles};
use nimbus_runs::{RotateRequest, rotate};
use schemars::JsonSchema;
use serde::Serialize;

use super::environment;
use super::local::find_place;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct RotateArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Stack
    stack: String,
    /// Environment, such as dev
    #[arg(long, short, value_parser = environment)]
    environment: EnvironmentName,
    /// Only this calculation, such as password or password:32:admin; all when left out
    #[arg(long, value_name = "CALCULATION")]
    only: Option<String>,
    /// Those of the rehearsal
    #[arg(long)]
    rehearse: bool,
}

pub(crate) async fn run(args: RotateArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let place = find_place(&args.id, args.rehearse, context)?;
    let manifest = &place.deployment.manifest;
    let component = args.stack.parse::<ComponentName>().ok();
    let Some(component) = component.filter(|name| manifest.stacks.contains_key(name)) else {
        return Err(super::unknown_stack(&args.id, &args.stack, manifest));
    };
    let command = format!("{} rotate {}", context.program, args.id);
    let rotation = RotateRequest {
        component: &component,
        environment: args.environment,
        only: args.only.as_deref(),
    };
    let memories = MemoryFiles::new(&place.records);
    let locks = EnvironmentLockFiles::new(&place.records);
    let forgotten = rotate(&memories, &locks, rotation, &command).await?;
    let shown = |name: &String| name.trim_end_matches(':').to_owned();
    context.output.result(&RotateReport {
        deployment: args.id,
        stack: args.stack,
        environment: args.environment.to_string(),
        forgotten: forgotten.iter().map(shown).collect(),
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct RotateReport {
    deployment: String,
    stack: String,
    environment: String,
    /// Calculations whose values the next deploy makes anew.
    forgotten: Vec<String>,
}

impl Report for RotateReport {
    const SCHEMA: &'static str = "nimbus/rotate/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let list = printable_line(&self.forgotten.join(", ")).into_owned();
        let Self {
            deployment,
            stack,
            environment,
            ..
        } = self;
        format!(
            "{mark} The next deploy makes anew: {list}\n  nimbus deploy {deployment} --environment {environment}  ({stack})\n"
        )
    }
}
