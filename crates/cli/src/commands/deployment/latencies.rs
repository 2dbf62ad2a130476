//! `nimbus latencies`: how long calls took in real runs, as a file for rehearsals.

use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_local::{DeploymentPlace, Records, RunFiles};
use nimbus_orchestrator::{ResourceStatus, RunEvent};
use nimbus_rehearsal::{EXAMPLE, Measurements};
use nimbus_runs::ports::RunStore as _;
use nimbus_runs::{NamedText, RehearsalChoice};
use schemars::JsonSchema;
use serde::Serialize;

use super::local::find_place;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct LatenciesArgs {
    /// Deployment whose runs are looked at
    #[arg(value_name = "DEPLOYMENT-ID", required_unless_present = "example")]
    id: Option<String>,
    /// Only runs of this environment
    #[arg(long, short, value_parser = super::environment)]
    environment: Option<EnvironmentName>,
    /// Print the file that is shipped as an example
    #[arg(long, conflicts_with_all = ["id", "environment"])]
    example: bool,
}

pub(crate) async fn run(args: LatenciesArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let Some(id) = &args.id else {
        context.output.raw(EXAMPLE)?;
        return Ok(CommandOutcome::Done);
    };
    let place = find_place(id, false, context)?;
    let (runs, measurements) = measured(&place, args.environment).await?;
    if measurements.is_empty() {
        let message = format!("no real run of {id} says how long its steps took");
        return Err(Error::new(ErrorCode::RUN_UNKNOWN, message)
            .with_help("`nimbus latencies --example` prints a file to begin with"));
    }
    let origin = format!("Measured in {runs} runs of {id}.");
    context.output.result(&LatenciesReport {
        deployment: id.clone(),
        runs,
        file: measurements.to_yaml(&origin),
        measured: measurements.all().into_iter().map(Into::into).collect(),
    })?;
    Ok(CommandOutcome::Done)
}

/// What the calls of real runs took, and how many runs there are.
async fn measured(
    place: &DeploymentPlace,
    environment: Option<EnvironmentName>,
) -> Result<(usize, Measurements)> {
    let store =
        RunFiles::new(&Records::of(&place.deployment.directory, false).beneath(&place.workspace));
    let mut measurements = Measurements::default();
    let mut runs = 0;
    for environment in place.environments(environment) {
        for record in store.of_environment(environment).await? {
            runs += 1;
            for event in store.events(record.run).await? {
                measure(&event, &mut measurements);
            }
        }
    }
    Ok((runs, measurements))
}

/// A rehearsal that was told nothing of latencies knows what real runs of its environment took, without
/// waiting for as long: so it can say what the cloud takes beside what it takes itself.
pub(super) async fn with_measured(
    mut choice: RehearsalChoice,
    place: &DeploymentPlace,
    environment: EnvironmentName,
) -> Result<RehearsalChoice> {
    if choice.latencies.is_some() || choice.latency.is_some() || choice.orders.is_some() {
        return Ok(choice);
    }
    let (runs, measurements) = measured(place, Some(environment)).await?;
    if !measurements.is_empty() {
        let name = format!("what {runs} real runs took");
        choice.latencies = Some(NamedText {
            text: measurements.to_yaml(&name),
            name,
        });
        choice.time_scale = choice.time_scale.or(Some(0.0));
    }
    Ok(choice)
}

fn measure(event: &RunEvent, measurements: &mut Measurements) {
    if let RunEvent::Resource {
        status: ResourceStatus::Done,
        op,
        type_,
        seconds: Some(seconds),
        ..
    } = event
    {
        measurements.add(type_, op, *seconds);
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct LatenciesReport {
    deployment: String,
    /// How many runs were looked at.
    runs: usize,
    measured: Vec<MeasuredCall>,
    /// The file, as `--latencies` reads it.
    file: String,
}

/// How long one call to one type took, in seconds.
#[derive(JsonSchema, Serialize)]
struct MeasuredCall {
    #[serde(rename = "type")]
    type_: String,
    /// `create`, `read`, `update` or `delete`.
    call: &'static str,
    count: usize,
    p50: f64,
    p95: f64,
}

impl From<nimbus_rehearsal::Measured> for MeasuredCall {
    fn from(measured: nimbus_rehearsal::Measured) -> Self {
        Self {
            type_: measured.type_,
            call: measured.call,
            count: measured.count,
            p50: measured.p50,
            p95: measured.p95,
        }
    }
}

impl Report for LatenciesReport {
    const SCHEMA: &'static str = "nimbus/latencies/1";

    fn text(&self, _: Terminal) -> String {
        self.file.clone()
    }
}
