//! `deploy`, `preview`, `destroy`, `rollback`, `refresh` and `resume` on a server.

use std::path::PathBuf;

use nimbus_control_client::{RemoteDeployments, StartedAction};
use nimbus_control_wire::{Run, StartRun};
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{Manifest, OnFailure, RunAction, RunId};

use super::following::FollowedRun;
use super::plan_file;
use super::{deployment_id, manifest_of, no_option};
use crate::commands::deployment::local::{EngineRunArgs, RunArgs};
use crate::commands::deployment::run::{
    ChangeArgs, DeployArgs, DestroyArgs, PreviewArgs, PreviewEndingArgs, RefreshDeploymentArgs,
    ResumeArgs, RollbackArgs, VersionsReport, demand_confirmation, on_failure, rehearsal_note,
};
use crate::commands::program::confirm;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

/// Options of a run that only mean something on this machine.
fn refuse_local(how: &EngineRunArgs, context: &CommandContext) -> Result<()> {
    if !how.orders.choice(context)?.is_empty() {
        let instead = "rehearse with orders on local files: `nimbus workspace pull` brings them";
        return Err(no_option("an order to the simulated cloud", instead));
    }
    if how.backend.is_some() {
        return Err(no_option(
            "--backend",
            "a server keeps state in its database",
        ));
    }
    if how.engine.is_official() {
        return Err(no_option("--engine pulumi", "a server has its own engine"));
    }
    if !how.policies.requests(context).is_empty() {
        let instead = "policies of a server are its operator's";
        return Err(no_option("--policy-pack", instead));
    }
    Ok(())
}

fn refuse_trace(trace: Option<&std::path::Path>) -> Result<()> {
    match trace {
        Some(_) => Err(no_option(
            "--trace",
            "`nimbus logs` has how long steps took",
        )),
        None => Ok(()),
    }
}

/// What every run is asked for.
fn asked(run: &RunArgs, parallel: usize, components: Option<Vec<ComponentName>>) -> StartRun {
    let names = |chosen: Vec<ComponentName>| chosen.iter().map(ToString::to_string).collect();
    StartRun {
        environment: run.environment.to_string(),
        rehearsal: run.how.rehearse,
        parallel: Some(parallel),
        stacks: components.map(names),
        transpile_only: run.how.no_typecheck,
        ..StartRun::default()
    }
}

fn changing(
    run: &RunArgs,
    change: &ChangeArgs,
    components: Option<Vec<ComponentName>>,
    context: &CommandContext,
) -> Result<StartRun> {
    refuse_local(&run.how, context)?;
    refuse_trace(change.trace.file())?;
    Ok(StartRun {
        message: change.message.clone(),
        ..asked(run, change.parallel, components)
    })
}

/// Queues a run and watches it. The run, and how it ended.
async fn start(
    remote: &RemoteDeployments,
    manifest: &Manifest,
    action: (RunAction, StartedAction),
    asked: StartRun,
    ending: PreviewEndingArgs,
    context: &CommandContext,
) -> Result<(Run, Result<CommandOutcome>)> {
    let environment: EnvironmentName = asked.environment.parse()?;
    let id = manifest.metadata.id.as_str();
    let run = remote.start(id, action.1, &asked).await?;
    rehearsal_note(asked.rehearsal, context);
    let followed = FollowedRun {
        remote,
        manifest,
        action: action.0,
        environment,
        rehearsal: asked.rehearsal,
        ending,
        only_watching: false,
    };
    let ended = followed.to_its_end(run.clone(), 0, context).await;
    Ok((run, ended))
}

pub(super) async fn deploy(
    args: DeployArgs,
    components: Option<Vec<ComponentName>>,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    if args.refresh {
        let instead = "look first with `nimbus refresh`: what has drifted is deployed again";
        return Err(no_option("--refresh", instead));
    }
    let manifest = manifest_of(remote, &deployment_id(&run.id)).await?;
    demand_confirmation(args.consent(), &manifest, context)?;
    let word = match on_failure(args.on_failure) {
        OnFailure::Automatic => "automatic",
        OnFailure::Rollback => "rollback",
        OnFailure::Hold => "hold",
        OnFailure::Continue => "continue",
    };
    let asked = StartRun {
        force: args.force,
        skip_gate: args.skip_gate.clone(),
        on_failure: Some(word.to_owned()),
        plan: args
            .plan
            .as_ref()
            .map(|file| plan_file::load(file, remote.server(), context))
            .transpose()?,
        ..changing(run, &args.change, components, context)?
    };
    if !args.is_answered() {
        let (id, environment) = (&manifest.metadata.id, run.environment);
        let question = format!("Deploy {id} to {environment} at {}?", remote.server());
        confirm(context, &question).await?;
    }
    let action = (RunAction::Deploy, StartedAction::Deploy);
    let ending = PreviewEndingArgs::default();
    let (_, ended) = start(remote, &manifest, action, asked, ending, context).await?;
    ended
}

/// What of a preview a server is asked for.
pub(super) struct ServerPreview {
    pub(super) parallel: usize,
    pub(super) components: Option<Vec<ComponentName>>,
    pub(super) ending: PreviewEndingArgs,
    /// Where to write which plan it made.
    pub(super) save: Option<PathBuf>,
}

/// Options of a preview that a server does not have.
pub(super) fn refuse_of_preview(args: &PreviewArgs) -> Result<()> {
    if args.diff {
        let instead =
            "without it the preview counts what would change, resource by resource with --json";
        return Err(no_option("--diff", instead));
    }
    refuse_trace(args.trace_file())
}

pub(super) async fn preview(
    run: RunArgs,
    asked_for: ServerPreview,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let ServerPreview {
        parallel,
        components,
        ending,
        save,
    } = asked_for;
    ending.format.check(context)?;
    refuse_local(&run.how, context)?;
    let manifest = manifest_of(remote, &deployment_id(&run.id)).await?;
    let asked = asked(&run, parallel, components);
    let action = (RunAction::Preview, StartedAction::Preview);
    let (run, ended) = start(remote, &manifest, action, asked, ending, context).await?;
    let Some(file) = save else {
        return ended;
    };
    // A preview that finds changes where none were expected has shown them, and has a plan.
    let succeeded = match &ended {
        Ok(CommandOutcome::Done | CommandOutcome::WouldChange) => true,
        Ok(_) => false,
        Err(error) => error.code() == ErrorCode::CHANGES_FOUND,
    };
    if succeeded {
        plan_file::save(&file, remote.server(), &run, context)?;
    } else {
        let note = "no plan was saved: the preview did not succeed";
        context.output.note(note);
    }
    ended
}

pub(super) async fn destroy(
    args: DestroyArgs,
    components: Option<Vec<ComponentName>>,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    let manifest = manifest_of(remote, &deployment_id(&run.id)).await?;
    let environment = run.environment;
    if !manifest.environments.contains_key(&environment) {
        return Err(manifest.unknown_environment(environment));
    }
    demand_confirmation(args.consent(), &manifest, context)?;
    let asked = changing(run, &args.change, components.clone(), context)?;
    if !args.is_answered() {
        let names = |chosen: &Vec<ComponentName>| {
            let names: Vec<&str> = chosen.iter().map(|one| one.as_str()).collect();
            names.join(", ")
        };
        let what = components
            .as_ref()
            .map_or_else(|| "everything".to_owned(), names);
        let question = format!(
            "Delete {what} of {} in {environment} at {}?",
            manifest.metadata.id,
            remote.server()
        );
        confirm(context, &question).await?;
    }
    let action = (RunAction::Destroy, StartedAction::Destroy);
    let ending = PreviewEndingArgs::default();
    let (_, ended) = start(remote, &manifest, action, asked, ending, context).await?;
    ended
}

pub(super) async fn rollback(
    args: RollbackArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    let manifest = manifest_of(remote, &deployment_id(&run.id)).await?;
    let (id, environment) = (manifest.metadata.id.as_str(), run.environment);
    if !manifest.environments.contains_key(&environment) {
        return Err(manifest.unknown_environment(environment));
    }
    if args.list {
        let versions = remote
            .versions(id, environment.as_str(), run.how.rehearse)
            .await?;
        context
            .output
            .result(&VersionsReport::of_server(run, versions))?;
        return Ok(CommandOutcome::Done);
    }
    let asked = StartRun {
        to_version: args.to_version,
        forget_creates: args.forget_creates,
        ..changing(run, &args.change, None, context)?
    };
    if !args.change.yes && !run.how.rehearse {
        let target = match args.to_version {
            Some(version) => format!("version {version}"),
            None => "the version before".to_owned(),
        };
        let question = format!(
            "Return {environment} of {id} to {target} at {}?",
            remote.server()
        );
        confirm(context, &question).await?;
    }
    let action = (RunAction::Rollback, StartedAction::RollBack);
    let ending = PreviewEndingArgs::default();
    let (_, ended) = start(remote, &manifest, action, asked, ending, context).await?;
    ended
}

pub(super) async fn refresh(
    args: RefreshDeploymentArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    let manifest = manifest_of(remote, &deployment_id(&run.id)).await?;
    let (id, environment) = (manifest.metadata.id.as_str(), run.environment);
    if !manifest.environments.contains_key(&environment) {
        return Err(manifest.unknown_environment(environment));
    }
    let asked = StartRun {
        allow_mass_removal: args.allow_mass_removal,
        ..changing(run, &args.change, None, context)?
    };
    if !args.change.yes && !run.how.rehearse {
        let server = remote.server();
        let question = format!("Record what {id} really has in {environment} at {server}?");
        confirm(context, &question).await?;
    }
    let action = (RunAction::Refresh, StartedAction::Refresh);
    let ending = PreviewEndingArgs::default();
    let (_, ended) = start(remote, &manifest, action, asked, ending, context).await?;
    ended
}

pub(super) async fn resume(
    args: ResumeArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    if !args.orders.choice(context)?.is_empty() {
        let instead = "rehearse with orders on local files: `nimbus workspace pull` brings them";
        return Err(no_option("an order to the simulated cloud", instead));
    }
    refuse_trace(args.trace_file())?;
    let choice = RunChoice {
        id: &args.id,
        environment: args.environment,
        number: args.number,
        rehearsal: args.rehearse,
    };
    let found = choice.find(remote).await?;
    let manifest = manifest_of(remote, &found.deployment).await?;
    let run = remote.resume(&found.id, args.forget_creates).await?;
    rehearsal_note(run.rehearsal, context);
    let followed = FollowedRun {
        remote,
        manifest: &manifest,
        action: action_of(&run)?,
        environment: run.environment.parse()?,
        rehearsal: run.rehearsal,
        ending: PreviewEndingArgs::default(),
        only_watching: false,
    };
    let since = run.last_seq;
    followed.to_its_end(run, since, context).await
}

/// The action of a run that was asked for earlier.
pub(super) fn action_of(run: &Run) -> Result<RunAction> {
    match run.action.as_str() {
        "deploy" => Ok(RunAction::Deploy),
        "destroy" => Ok(RunAction::Destroy),
        "rollback" => Ok(RunAction::Rollback),
        "refresh" => Ok(RunAction::Refresh),
        "preview" => Ok(RunAction::Preview),
        other => {
            let message =
                format!("the server has a run that is a {other}, which is not known here");
            Err(Error::new(ErrorCode::SERVER_ANSWER, message))
        }
    }
}

/// Which run is meant: by its number, or the newest of a deployment or an environment.
pub(super) struct RunChoice<'a> {
    /// A run or a deployment.
    pub(super) id: &'a str,
    pub(super) environment: Option<EnvironmentName>,
    pub(super) number: Option<RunId>,
    pub(super) rehearsal: bool,
}

impl RunChoice<'_> {
    pub(super) async fn find(&self, remote: &RemoteDeployments) -> Result<Run> {
        let by_number = self.id.parse::<RunId>().ok();
        let id = deployment_id(self.id);
        let (found, number) = match by_number {
            Some(number) => (remote.all_runs().await?, Some(number)),
            None => {
                // Whoever may not see the deployment sees none of its runs.
                manifest_of(remote, &id).await?;
                let environment = self.environment.as_ref().map(|name| name.as_str());
                (remote.runs(&id, environment).await?, self.number)
            }
        };
        let number = number.map(|number| number.to_string());
        let mut fitting = found.into_iter().filter(|run| match &number {
            Some(number) => run.number == *number,
            None => run.rehearsal == self.rehearsal && run.action != "preview",
        });
        let first = fitting.next();
        let several = by_number.is_some() && fitting.next().is_some();
        match first {
            Some(_) if several => {
                let message = format!("{} is a run of several deployments", self.id);
                Err(Error::new(ErrorCode::RUN_UNKNOWN, message)
                    .with_help("name the deployment, and the run with --run"))
            }
            Some(run) => Ok(run),
            None => {
                let what =
                    number.map_or_else(|| "no run yet".to_owned(), |one| format!("no run {one}"));
                let message = format!("there is {what} of {} at {}", self.id, remote.server());
                Err(Error::new(ErrorCode::RUN_UNKNOWN, message)
                    .with_help("`nimbus run list --server URL` shows what there is"))
            }
        }
    }
}
