//! Commands that run a deployment: `deploy`, `preview`, `destroy`, `resume` and `rollback`.
//!
//! They decide what is done; `session` does it, from the lock to the last line. Everything that
//! happens passes `hub` once.

mod checks;
mod crew;
mod events;
mod forecast;
mod hub;
mod planning;
mod preview;
mod readiness;
mod resume;
mod rollback;
mod seal;
mod session;
mod summary;
mod view;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_operations::Cancellation;
use nimbus_local::{Gates, Recovery, RunStore};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::gate;
use nimbus_orchestrator::record::{RunChoices, RunKind};
use nimbus_orchestrator::run::{Direction, OnFailure, RunResult};
use nimbus_orchestrator::unit::Board;

use self::crew::Work;
use self::seal::SealedPlan;
use self::session::{Order, carry_out, lock};
use super::local::{Place, RunArgs, allow, open};
use crate::commands::program::confirm;
use crate::context::Context;
use crate::exit::Outcome;

pub(crate) use preview::{PreviewArgs, preview};
pub(crate) use resume::{ResumeArgs, resume};
pub(crate) use rollback::{RollbackArgs, VersionsReport, rollback};
pub(crate) use summary::RunSummary;

/// How long a run waits for another one when nobody says.
const USUAL_WAIT: &str = "10m";

#[derive(clap::Args, Debug)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    how: HowArgs,
    /// Run every stack, changed or not
    #[arg(long)]
    force: bool,
    /// Needed for prod
    #[arg(long)]
    confirm: bool,
    /// What to do when a stack fails; by itself a run rolls back when a resource cannot be made, a
    /// limit is reached, state is damaged, or it takes twice as long as planned
    #[arg(long, value_enum)]
    on_failure: Option<Failure>,
    /// Do what this plan of `preview --save` says, and nothing else
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Deploy although the environment before this one is not ready; the reason is recorded
    #[arg(long, value_name = "REASON")]
    skip_gate: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DeployStackArgs {
    #[command(flatten)]
    deploy: DeployArgs,
    /// Stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Only show what would change
    #[arg(long)]
    preview: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    how: HowArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DestroyStackArgs {
    #[command(flatten)]
    destroy: DestroyArgs,
    /// Stack
    #[arg(value_name = "STACK")]
    stack: String,
}

/// What every command that changes something takes.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct HowArgs {
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Stacks at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    parallel: usize,
    /// Wait while another run changes the environment, such as 90s, 10m or 1h
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = USUAL_WAIT,
          value_parser = duration)]
    wait: Option<Duration>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Failure {
    /// Return every stack that was changed to its last good state
    Rollback,
    /// Stop and leave everything as it is
    Hold,
    /// Also run what does not depend on the failure
    Continue,
}

pub(crate) async fn deploy(args: DeployArgs, context: &Context) -> Result<Outcome> {
    deploy_chosen(args, None, context).await
}

pub(crate) async fn deploy_stack(args: DeployStackArgs, context: &Context) -> Result<Outcome> {
    if args.preview {
        return preview::preview_chosen(args.deploy.run, Some(vec![args.stack]), context).await;
    }
    deploy_chosen(args.deploy, Some(args.stack), context).await
}

async fn deploy_chosen(
    args: DeployArgs,
    stack: Option<String>,
    context: &Context,
) -> Result<Outcome> {
    let run = &args.run;
    demand_confirmation(&args, context)?;
    let place = Place::find(&run.id, run.rehearse, context)?;
    allow(&place.deployment, run.environment)?;
    let gate = promotion(&place, &args);
    let warnings = readiness::require(&place, run, stack.as_deref(), gate, context).await?;
    let held = lock(&place, run, args.how.wait, "deploy", context).await?;
    // Whoever held the environment may have changed what this run starts from.
    let board = open(run, context, &Cancellation::default())?;
    let chosen = stack.map(|stack| vec![stack]);
    let graph = planning::graph(&board, chosen.as_deref())?;
    if let Some([stack]) = chosen.as_deref() {
        planning::require_needs(&board.manifest, run.environment, &board.directory, stack)?;
    }
    let sealed = match &args.plan {
        None => None,
        Some(file) => Some(Arc::new(sealed_plan(file, &board, &args, context).await?)),
    };
    rehearsal_note(run, context);
    let plan = planning::plan(&board, &graph, args.force).await?;
    context.output.progress(&plan.to_string());
    tell_interrupted(&place, run, context)?;
    let active = plan.units().filter(|unit| !unit.is_skipped()).count();
    let asks = !args.how.yes && !args.confirm && !run.rehearse && active > 0;
    if asks && context.output.stderr_terminal().interactive && !context.output.is_json() {
        let stacks = if active == 1 { "stack" } else { "stacks" };
        let question = format!("Deploy {active} {stacks} to {}?", run.environment);
        confirm(context, &question).await?;
    }
    let order = Order {
        kind: RunKind::Deploy,
        work: Work::Deploy {
            force: args.force,
            plan: sealed,
        },
        direction: Direction::Forward,
        graph,
        choices: RunChoices {
            force: args.force,
            parallel: args.how.parallel,
            on_failure: on_failure(args.on_failure),
            stacks: chosen,
            backend: run.backend.clone(),
            to_version: None,
        },
        plan: Some(plan),
        warnings,
        goes_on: None,
        recovery: Recovery::default(),
    };
    carry_out(order, run, place, held, context).await
}

pub(crate) async fn destroy(args: DestroyArgs, context: &Context) -> Result<Outcome> {
    destroy_chosen(args, None, context).await
}

pub(crate) async fn destroy_stack(args: DestroyStackArgs, context: &Context) -> Result<Outcome> {
    destroy_chosen(args.destroy, Some(vec![args.stack]), context).await
}

async fn destroy_chosen(
    args: DestroyArgs,
    stacks: Option<Vec<String>>,
    context: &Context,
) -> Result<Outcome> {
    let run = &args.run;
    let place = Place::find(&run.id, run.rehearse, context)?;
    allow(&place.deployment, run.environment)?;
    if !args.how.yes && !run.rehearse {
        let what = match &stacks {
            Some(stacks) => stacks.join(", "),
            None => "everything".to_owned(),
        };
        let question = format!("Delete {what} of {} in {}?", run.id, run.environment);
        confirm(context, &question).await?;
    }
    let held = lock(&place, run, args.how.wait, "destroy", context).await?;
    let board = open(run, context, &Cancellation::default())?;
    let graph = planning::graph(&board, stacks.as_deref())?;
    rehearsal_note(run, context);
    let order = Order {
        kind: RunKind::Destroy,
        work: Work::Destroy,
        direction: Direction::Reverse,
        graph,
        choices: RunChoices {
            force: false,
            parallel: args.how.parallel,
            on_failure: OnFailure::Hold,
            stacks,
            backend: run.backend.clone(),
            to_version: None,
        },
        plan: None,
        warnings: Vec::new(),
        goes_on: None,
        recovery: Recovery::default(),
    };
    carry_out(order, run, place, held, context).await
}

/// Nobody deploys to production by accident.
fn demand_confirmation(args: &DeployArgs, context: &Context) -> Result<()> {
    let prod = args.run.environment == Environment::Prod && !args.run.rehearse;
    let somebody = context.output.stderr_terminal().interactive && !context.output.is_json();
    if !prod || args.confirm || (somebody && !args.how.yes) {
        return Ok(());
    }
    let message = "a deployment to prod needs --confirm";
    Err(Error::new(ErrorCode::CONFIRMATION_NEEDED, message)
        .with_help("look at `nimbus preview` first, then run it again with --confirm"))
}

/// Environments are promoted in order. Returns what is worth a warning.
fn promotion(place: &Place, args: &DeployArgs) -> Result<Vec<String>> {
    let run = &args.run;
    let manifest = &place.deployment.manifest;
    let Some(before) = run.environment.promoted_from() else {
        return Ok(Vec::new());
    };
    if !manifest
        .environments
        .get(&before)
        .is_some_and(|e| e.enabled)
    {
        return Ok(Vec::new());
    }
    let runs = RunStore::of_deployment(&place.directory).of_environment(before)?;
    let last = match runs.first() {
        Some(run) => run.standing()?.result,
        None => None,
    };
    if last == Some(RunResult::Succeeded) {
        return open_items(place, before);
    }
    let state = match last {
        Some(result) => format!("its last run {}", result.word().replace('_', " ")),
        None if runs.is_empty() => "it was never deployed".to_owned(),
        None => "its last run did not end".to_owned(),
    };
    let message = format!("{} comes after {before}, and {state}", run.environment);
    match (&args.skip_gate, run.rehearse) {
        (Some(reason), _) => Ok(vec![format!("{message}; gate skipped: {reason}")]),
        (None, true) => Ok(vec![message]),
        (None, false) => Err(
            Error::new(ErrorCode::GATE_CLOSED, message).with_help(format!(
                "deploy {before} first, or give --skip-gate REASON; it is recorded"
            )),
        ),
    }
}

/// What nobody has recorded of the environment before, as a warning.
fn open_items(place: &Place, before: Environment) -> Result<Vec<String>> {
    let evidence = Gates::of_deployment(&place.directory).evidence(before, true)?;
    let open: Vec<String> = gate::record(before, &evidence)
        .into_iter()
        .filter(|standing| !standing.done)
        .map(|standing| format!("{} ({})", standing.item.as_str(), standing.note))
        .collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "open in the gate of {before}: {}",
        open.join(", ")
    )])
}

/// Reads a plan and refuses it when anything that it was made from has moved.
async fn sealed_plan(
    file: &Path,
    board: &Board,
    args: &DeployArgs,
    context: &Context,
) -> Result<SealedPlan> {
    let plan = SealedPlan::load(&context.directory.join(file))?;
    let run = &args.run;
    plan.refuse_other(board.id().as_str(), run.environment, run.rehearse)?;
    let graph = planning::graph(board, None)?;
    let mut reasons = Vec::new();
    for name in graph.layers().into_iter().flatten() {
        let Some(sealed) = plan.units.get(name) else {
            reasons.push(format!("{name} is new"));
            continue;
        };
        if board.state_version(name).await? != sealed.state {
            reasons.push(format!("other start state of {name}"));
        }
        let needs = graph.needs(name).map(str::to_owned).collect();
        if sealed.needs != needs {
            reasons.push(format!("{name} has other dependencies"));
        }
        let prepared = board.prepare(name).await?;
        reasons.extend(plan.moved_inputs(name, sealed, &prepared.fingerprint));
        if !sealed.steps.is_empty() {
            // What its outputs will be is compared once it has them.
            board.expect_outputs(name).await;
        }
    }
    let gone = plan
        .units
        .keys()
        .filter(|name| graph.priority(name).is_none());
    reasons.extend(gone.map(|name| format!("{name} is gone")));
    if reasons.is_empty() {
        Ok(plan)
    } else {
        Err(seal::moved(&reasons))
    }
}

/// Says so when the last run of the environment was cut off.
fn tell_interrupted(place: &Place, run: &RunArgs, context: &Context) -> Result<()> {
    let runs = RunStore::of_deployment(&place.directory).of_environment(run.environment)?;
    let Some(last) = runs.first() else {
        return Ok(());
    };
    if matches!(last.standing()?.result, None | Some(RunResult::Interrupted)) {
        let id = last.record.run;
        context.output.note(&format!(
            "run {id} was interrupted; `{} resume` would go on with it, this starts anew",
            context.program
        ));
    }
    Ok(())
}

fn rehearsal_note(run: &RunArgs, context: &Context) {
    if run.rehearse {
        context
            .output
            .note("REHEARSAL: a simulated cloud; nothing real is touched");
    }
}

fn on_failure(asked: Option<Failure>) -> OnFailure {
    match asked {
        None => OnFailure::Automatic,
        Some(Failure::Rollback) => OnFailure::Rollback,
        Some(Failure::Hold) => OnFailure::Hold,
        Some(Failure::Continue) => OnFailure::Continue,
    }
}

/// For clap: `90s`, `10m`, `1h`, or seconds.
pub(super) fn duration(text: &str) -> std::result::Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let wrong = || format!("`{text}` is no duration; write 90s, 10m, 2h or 7d");
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let seconds = match &text[digits.len()..] {
        "" | "s" => Some(number),
        "m" => number.checked_mul(60),
        "h" => number.checked_mul(3600),
        "d" => number.checked_mul(86400),
        _ => None,
    };
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

fn unwritable(path: &Path, error: std::io::Error) -> Error {
    let message = format!("cannot write {}: {error}", path.display());
    Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        for text in [
            "",
            "m",
            "1w",
            "-1s",
            "99999999999999999999d",
            "18446744073709551615h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
