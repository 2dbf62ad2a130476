//! Commands that run a deployment: `deploy`, `preview`, `destroy`, `refresh`, `resume` and `rollback`.
//!
//! Arguments, questions and views. What a run does is in `crates/runs`; `runner` puts its ports
//! together and shows what happens.

mod forecast;
mod preview;
mod refresh;
mod resume;
mod rollback;
mod runner;
mod summary;
mod view;

use std::path::PathBuf;
use std::time::Duration;

use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{Manifest, OnFailure, RunAction};
use nimbus_runs::{RunChoices, SealedPlan};

use super::latencies::with_measured;
use super::local::{RunArgs, find_place};
use crate::commands::program::{ConfirmAnswer, confirm, confirm_or_details};
use crate::commands::trace::TraceArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

pub(crate) use preview::{PreviewArgs, PreviewEndingArgs, PreviewFormat, changes_found, preview};
pub(crate) use refresh::{RefreshDeploymentArgs, refresh};
pub(crate) use resume::{ResumeArgs, resume};
pub(crate) use rollback::{RollbackArgs, VersionsReport, rollback};
pub(crate) use runner::{LocalRunner, next_step, outcome, rehearsal_note};
pub(crate) use summary::{RunAddress, RunSummary};
pub(crate) use view::{RunTitle, RunView, changes_text};

/// How long a run waits for another one when nobody says.
const USUAL_WAIT: &str = "10m";

#[derive(clap::Args, Debug)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Run every stack, changed or not
    #[arg(long)]
    pub(crate) force: bool,
    /// Look at what is there first, and put right what differs; every stack runs
    #[arg(long, conflicts_with = "plan")]
    pub(crate) refresh: bool,
    /// With --refresh: believe it when much of what is recorded is gone
    #[arg(long, requires = "refresh")]
    pub(crate) allow_mass_removal: bool,
    /// Needed for the last environment, such as prod, or where the manifest says so
    #[arg(long)]
    pub(crate) confirm: bool,
    /// What to do when a stack fails; by itself a run rolls back when a resource cannot be made, a
    /// limit is reached, state is damaged, or it takes twice as long as planned
    #[arg(long, value_enum)]
    pub(crate) on_failure: Option<OnFailureArg>,
    /// Do what this plan of `preview --save` says, and nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Deploy although the environment before this one is not ready; the reason is recorded
    #[arg(long, value_name = "REASON")]
    pub(crate) skip_gate: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DeployStackArgs {
    #[command(flatten)]
    pub(crate) deploy: DeployArgs,
    /// Stack
    #[arg(value_name = "STACK", value_parser = component)]
    pub(crate) stack: ComponentName,
    /// Only show what would change
    #[arg(long)]
    pub(crate) preview: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Needed for the last environment, such as prod, or where the manifest says so
    #[arg(long)]
    pub(crate) confirm: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DestroyStackArgs {
    #[command(flatten)]
    pub(crate) destroy: DestroyArgs,
    /// Stack
    #[arg(value_name = "STACK", value_parser = component)]
    pub(crate) stack: ComponentName,
}

/// What every command that changes something takes.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ChangeArgs {
    /// Do it without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Stacks at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) parallel: usize,
    /// Wait while another run changes the environment, such as 90s, 10m or 1h
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = USUAL_WAIT,
          value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    /// Why: recorded with the run and shown by `status`
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// What somebody said about changing an environment for real.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenConsent<'a> {
    run: &'a RunArgs,
    action: RunAction,
    confirm: bool,
    yes: bool,
}

impl DeployArgs {
    pub(crate) fn consent(&self) -> GivenConsent<'_> {
        GivenConsent {
            run: &self.run,
            action: RunAction::Deploy,
            confirm: self.confirm,
            yes: self.change.yes,
        }
    }

    /// Whether nobody needs to be asked: a plan that somebody saved and handed on is an answer already.
    pub(crate) fn is_answered(&self) -> bool {
        self.change.yes || self.confirm || self.plan.is_some() || self.run.how.rehearse
    }

    pub(crate) fn trace_file(&self) -> Option<&std::path::Path> {
        self.change.trace.file()
    }
}

impl DeployStackArgs {
    pub(crate) fn trace_file(&self) -> Option<&std::path::Path> {
        self.deploy.trace_file()
    }
}

impl DestroyArgs {
    pub(crate) fn consent(&self) -> GivenConsent<'_> {
        GivenConsent {
            run: &self.run,
            action: RunAction::Destroy,
            confirm: self.confirm,
            yes: self.change.yes,
        }
    }

    /// Whether nobody needs to be asked.
    pub(crate) fn is_answered(&self) -> bool {
        self.change.yes || self.confirm || self.run.how.rehearse
    }

    pub(crate) fn trace_file(&self) -> Option<&std::path::Path> {
        self.change.trace.file()
    }
}

impl DestroyStackArgs {
    pub(crate) fn trace_file(&self) -> Option<&std::path::Path> {
        self.destroy.trace_file()
    }
}

/// For clap: the name of a component, or why it is none.
fn component(text: &str) -> std::result::Result<ComponentName, String> {
    text.parse::<ComponentName>()
        .map_err(|error| error.to_string())
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum OnFailureArg {
    /// Return every stack that was changed to its last good state
    Rollback,
    /// Stop and leave everything as it is
    Hold,
    /// Also run what does not depend on the failure
    Continue,
}

pub(crate) async fn deploy(args: DeployArgs, context: &CommandContext) -> Result<CommandOutcome> {
    Box::pin(deploy_chosen(args, None, context)).await
}

pub(crate) async fn deploy_stack(
    args: DeployStackArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let chosen = Some(vec![args.stack]);
    if args.preview {
        return preview::preview_chosen(args.deploy.run, chosen, context).await;
    }
    Box::pin(deploy_chosen(args.deploy, chosen, context)).await
}

async fn deploy_chosen(
    args: DeployArgs,
    components: Option<Vec<ComponentName>>,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    let place = find_place(&run.id, run.how.rehearse, context)?;
    // A courtesy: whoever forgot it need not wait for the lock to hear so.
    demand_confirmation(args.consent(), &place.deployment.manifest, context)?;
    let choices = RunChoices {
        force: args.force,
        refresh: args.refresh,
        allow_mass_removal: args.allow_mass_removal,
        parallel: args.change.parallel,
        on_failure: on_failure(args.on_failure),
        components,
        sealed_plan: args
            .plan
            .as_ref()
            .map(|file| load_plan(file, context))
            .transpose()?,
        skip_gate: args.skip_gate.clone(),
        message: args.change.message.clone(),
        ..run.how.choices(context)?
    };
    let environment = run.environment;
    let mut choices = choices;
    if run.how.rehearse {
        choices.rehearsal = with_measured(choices.rehearsal, &place, environment).await?;
    }
    let runner = LocalRunner::open(place, environment, choices.clone(), None, context)?;
    let request = runner.request(RunAction::Deploy, choices);
    let session = runner.session(request, args.change.wait, context).await?;
    // Asked of the manifest that counts: whoever held the lock may have written that it is needed.
    demand_confirmation(args.consent(), session.manifest(), context)?;
    runner.rehearsal_note(context);
    let planned = session.plan().await?;
    if let Some(plan) = planned.plan() {
        let active = plan.units().filter(|unit| !unit.is_skipped()).count();
        if active > 0 {
            context.output.progress(&plan.to_string());
        }
        if let Some(interrupted) = planned.interrupted() {
            context.output.note(&format!(
                "run {interrupted} was interrupted; `{} resume {} --environment {environment}{}` would go on \
                 with it, this starts anew",
                context.program,
                run.id,
                if run.how.rehearse { " --rehearse" } else { "" }
            ));
        }
        if !args.is_answered() && active > 0 {
            let stacks = if active == 1 { "stack" } else { "stacks" };
            let question = format!("Deploy {active} {stacks} to {environment}?");
            while confirm_or_details(context, &question).await? == ConfirmAnswer::Details {
                let chosen = planned.request().choices.components.clone();
                preview::show_details(run.clone(), chosen, context).await?;
            }
        }
    }
    runner
        .carry_out(planned, run.how.engine.is_official(), context)
        .await
}

pub(crate) async fn destroy(args: DestroyArgs, context: &CommandContext) -> Result<CommandOutcome> {
    Box::pin(destroy_chosen(args, None, context)).await
}

pub(crate) async fn destroy_stack(
    args: DestroyStackArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    Box::pin(destroy_chosen(
        args.destroy,
        Some(vec![args.stack]),
        context,
    ))
    .await
}

async fn destroy_chosen(
    args: DestroyArgs,
    components: Option<Vec<ComponentName>>,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    let place = find_place(&run.id, run.how.rehearse, context)?;
    demand_confirmation(args.consent(), &place.deployment.manifest, context)?;
    let choices = RunChoices {
        parallel: args.change.parallel,
        on_failure: OnFailure::Hold,
        components: components.clone(),
        message: args.change.message.clone(),
        ..run.how.choices(context)?
    };
    let environment = run.environment;
    let runner = LocalRunner::open(place, environment, choices.clone(), None, context)?;
    let request = runner.request(RunAction::Destroy, choices);
    // Nobody is asked about an environment that cannot be destroyed, or that somebody else changes.
    let session = runner.session(request, args.change.wait, context).await?;
    demand_confirmation(args.consent(), session.manifest(), context)?;
    if !args.is_answered() {
        let what = match &components {
            Some(chosen) => chosen
                .iter()
                .map(|one| one.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            None => "everything".to_owned(),
        };
        let question = format!("Delete {what} of {} in {environment}?", run.id);
        confirm(context, &question).await?;
    }
    runner.rehearsal_note(context);
    let planned = session.plan().await?;
    runner
        .carry_out(planned, run.how.engine.is_official(), context)
        .await
}

/// Nobody changes production by accident, and takes it away less still.
pub(crate) fn demand_confirmation(
    given: GivenConsent<'_>,
    manifest: &Manifest,
    context: &CommandContext,
) -> Result<()> {
    let (id, environment) = (&given.run.id, given.run.environment);
    let needed = manifest.needs_confirmation(environment);
    let somebody = context.output.stderr_terminal().interactive && !context.output.is_json();
    if !needed || given.run.how.rehearse || given.confirm || (somebody && !given.yes) {
        return Ok(());
    }
    let (what, look) = match given.action {
        RunAction::Destroy => ("destroying", "discover-resources"),
        RunAction::Deploy | RunAction::Preview | RunAction::Refresh | RunAction::Rollback => {
            ("a deployment to", "preview")
        }
    };
    let program = context.program;
    let message = format!("{what} {environment} needs --confirm");
    Err(Error::new(ErrorCode::CONFIRMATION_NEEDED, message).with_help(format!(
        "look at `{program} {look} {id} --environment {environment}` first, then run it again with --confirm"
    )))
}

fn load_plan(file: &std::path::Path, context: &CommandContext) -> Result<SealedPlan> {
    let path = context.directory.join(file);
    let bytes = std::fs::read(&path).map_err(|error| {
        let message = format!("cannot read the plan {}: {error}", path.display());
        Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error)
    })?;
    SealedPlan::from_bytes(&path.display().to_string(), &bytes)
}

pub(crate) fn on_failure(asked: Option<OnFailureArg>) -> OnFailure {
    match asked {
        None => OnFailure::Automatic,
        Some(OnFailureArg::Rollback) => OnFailure::Rollback,
        Some(OnFailureArg::Hold) => OnFailure::Hold,
        Some(OnFailureArg::Continue) => OnFailure::Continue,
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
