//! What a server has of deployments, looked at: `status`, `logs`, `runs`, `list`, states; and small changes of them.

use jiff::Timestamp;
use nimbus_control_client::{RemoteDeployments, RunUpdate, follow_run};
use nimbus_control_wire::{NumberedEvent, Run, SignGate};
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_local::{EnvironmentStates, log_lines};
use nimbus_orchestrator::{RunAction, RunEvent, RunResult, RunTally};
use serde_json::json;

use super::following::FollowedRun;
use super::operations::{RunChoice, action_of};
use super::{deployment_id, manifest_of, named, no_option};
use crate::commands::admin::AdminReport;
use crate::commands::deployment::decommission::DecommissionArgs;
use crate::commands::deployment::environments::{EnvironmentsReport, SwitchArgs};
use crate::commands::deployment::export_state::{ExportStateArgs, deliver};
use crate::commands::deployment::gate::{GateArgs, GateReport};
use crate::commands::deployment::list::DeploymentListReport;
use crate::commands::deployment::logs::{LogFilter, LogsArgs};
use crate::commands::deployment::resources::{FoundResource, FoundResourcesReport, ResourcesArgs};
use crate::commands::deployment::run::{PreviewEndingArgs, RunAddress, RunSummary, next_step};
use crate::commands::deployment::run_view::RunViewReport;
use crate::commands::deployment::runs::{ChosenRunArgs, ListedRun, RunsCommand};
use crate::commands::deployment::status::{StatusArgs, StatusReport, to_the_second};
use crate::commands::program::confirm;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

pub(crate) use crate::commands::deployment::runs::RunsReport;

pub(super) async fn status(
    args: StatusArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let id = deployment_id(&args.id);
    let told = remote.status(&id, args.rehearse).await;
    let told = told.map_err(|error| named(error.into(), &id, remote))?;
    let only = args.only();
    let mut shown = Vec::new();
    for environment in told.items {
        if only.is_some_and(|name| environment.name != name.as_str()) {
            continue;
        }
        let next = match &environment.last_run {
            Some(run) => next_of(run, remote, context).await?,
            None => None,
        };
        shown.push((environment, next));
    }
    let report = StatusReport::of_server(&args, id.clone(), shown);
    if report.is_empty()
        && let Some(environment) = only
    {
        return Err(manifest_of(remote, &id)
            .await?
            .unknown_environment(environment));
    }
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

pub(super) async fn list(
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let deployments = remote.deployments().await?;
    let report = DeploymentListReport::of_server(deployments);
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

pub(super) async fn logs(
    args: LogsArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let manifest = manifest_of(remote, &deployment_id(&args.id)).await?;
    let id = manifest.metadata.id.as_str();
    // The first one is where work begins.
    let first = manifest.environments.keys().next().copied();
    let environment = args.environment.or(first).ok_or_else(|| {
        let message = format!("deployment {id} has no environments");
        Error::new(ErrorCode::ENVIRONMENT_UNKNOWN, message)
    })?;
    let choice = RunChoice {
        id,
        environment: Some(environment),
        number: args.run,
        rehearsal: args.rehearse,
    };
    let run = choice.find(remote).await?;
    let filter = LogFilter::new(&args);
    let show = |items: &[NumberedEvent]| -> Result<()> {
        for item in items {
            for line in lines(item, args.stack.as_deref()) {
                filter.show(&line, context)?;
            }
        }
        Ok(())
    };
    if args.follow {
        let mut news = follow_run(remote.clone(), run.id, 0);
        while let Some(told) = news.recv().await {
            match told? {
                RunUpdate::Events(items) => show(&items)?,
                RunUpdate::Away { reason } => context.output.note(&reason),
                RunUpdate::Complete(_) => break,
                RunUpdate::Run(_) | RunUpdate::Back => {}
            }
        }
        return Ok(CommandOutcome::Done);
    }
    let mut after = 0;
    loop {
        let page = remote.events(&run.id, after).await?;
        show(&page.items)?;
        if page.items.is_empty() {
            return Ok(CommandOutcome::Done);
        }
        after = page.next;
    }
}

/// An event as lines of a log, if it is of the stack that is wanted.
fn lines(item: &NumberedEvent, stack: Option<&str>) -> Vec<String> {
    let Ok(event) = serde_json::from_value::<RunEvent>(item.event.clone()) else {
        return Vec::new();
    };
    let unit = event.unit_name().map(|name| name.as_str());
    if stack.is_some() && stack != unit {
        return Vec::new();
    }
    let at = item.event["at"].as_str().and_then(|at| at.parse().ok());
    log_lines(&event, at.unwrap_or_else(Timestamp::now))
}

pub(super) async fn runs(
    command: RunsCommand,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let (args, word) = match command {
        RunsCommand::List(args) => {
            let environment = args.environment.as_ref().map(|name| name.as_str());
            let found = match &args.id {
                Some(id) => {
                    let id = deployment_id(id);
                    manifest_of(remote, &id).await?;
                    remote.runs(&id, environment).await?
                }
                None => {
                    let mut all = remote.all_runs().await?;
                    all.retain(|run| environment.is_none_or(|only| run.environment == only));
                    all
                }
            };
            let runs = found.into_iter().map(listed).collect();
            context.output.result(&RunsReport { runs })?;
            return Ok(CommandOutcome::Done);
        }
        RunsCommand::View(args) => return view(args, remote, context).await,
        RunsCommand::Watch(args) => return watch(args, remote, context).await,
        RunsCommand::Cancel(args) => (args, "cancel"),
        RunsCommand::Pause(args) => (args, "pause"),
    };
    signal(args, word, remote, context).await
}

fn chosen(args: &ChosenRunArgs) -> RunChoice<'_> {
    RunChoice {
        id: &args.id,
        environment: args.environment,
        number: args.number,
        rehearsal: args.rehearse,
    }
}

/// The command that goes on from where a run was left, if it was left. One that never began has nothing to go on with.
async fn next_of(
    run: &Run,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<Option<String>> {
    let is_left = run.status == "paused" || run.status == "ended";
    // What another version calls a run is no reason not to tell of the environment.
    let recorded = action_of(run).is_ok_and(|action| action != RunAction::Preview);
    if !is_left || run.began_at.is_none() || !recorded {
        return Ok(None);
    }
    let tally = match tally_of(run, remote).await {
        Ok(tally) => tally,
        // Whoever may not read logs is told where things stand, and not what to do.
        Err(error) if error.code() == ErrorCode::NOT_PERMITTED => return Ok(None),
        Err(error) => return Err(error),
    };
    let place = RunAddress {
        deployment: &run.deployment,
        environment: run.environment.parse()?,
        rehearsal: run.rehearsal,
        backend: None,
    };
    let result = tally.result.unwrap_or(RunResult::Interrupted);
    let open = tally.leaves_creates_open();
    Ok(next_step(result, open, place, context))
}

/// What a run did so far, from its events.
async fn tally_of(run: &Run, remote: &RemoteDeployments) -> Result<RunTally> {
    let mut tally = RunTally::default();
    let mut after = 0;
    loop {
        let page = remote.events(&run.id, after).await?;
        let Some(last) = page.items.last() else {
            return Ok(tally);
        };
        after = last.seq;
        let known = |item: &NumberedEvent| serde_json::from_value(item.event.clone()).ok();
        page.items
            .iter()
            .filter_map(known)
            .for_each(|event: RunEvent| tally.hear(&event));
    }
}

async fn view(
    args: ChosenRunArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = chosen(&args).find(remote).await?;
    let tally = tally_of(&run, remote).await?;
    let place = RunAddress {
        deployment: &run.deployment,
        environment: run.environment.parse()?,
        rehearsal: run.rehearsal,
        backend: None,
    };
    let action = action_of(&run)?;
    let result = tally.result.unwrap_or(RunResult::Interrupted);
    let is_over = run.result.is_some();
    let next = match is_over && action != RunAction::Preview {
        true => {
            let open = tally.leaves_creates_open();
            next_step(result, open, place, context)
        }
        false => None,
    };
    let summary = RunSummary::of_tally(&tally, action, place, result, next);
    let summary = match is_over {
        true => summary,
        false => summary.still_running(),
    };
    let shown = listed(run);
    let report = RunViewReport::new(shown.started, shown.user, shown.message, summary);
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

async fn watch(
    args: ChosenRunArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = chosen(&args).find(remote).await?;
    let manifest = manifest_of(remote, &run.deployment).await?;
    let followed = FollowedRun {
        remote,
        manifest: &manifest,
        action: action_of(&run)?,
        environment: run.environment.parse()?,
        rehearsal: run.rehearsal,
        ending: PreviewEndingArgs::default(),
        only_watching: true,
    };
    followed.to_its_end(run, 0, context).await
}

async fn signal(
    args: ChosenRunArgs,
    word: &str,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = chosen(&args).find(remote).await?;
    let run = remote.signal(&run.id, word).await?;
    let runs = vec![listed(run)];
    context.output.result(&RunsReport { runs })?;
    Ok(CommandOutcome::Done)
}

fn listed(run: Run) -> ListedRun {
    let status = match (run.status.as_str(), &run.wish) {
        ("ended", _) => run.result.unwrap_or_default(),
        ("running", Some(wish)) if wish == "cancel" => "stopping".to_owned(),
        ("running", Some(wish)) if wish == "pause" => "pausing".to_owned(),
        (status, _) => status.to_owned(),
    };
    ListedRun {
        deployment: run.deployment,
        run: run.number,
        kind: run.action,
        environment: run.environment,
        rehearsal: run.rehearsal,
        status,
        started: to_the_second(run.began_at.as_deref().unwrap_or(&run.queued_at)),
        user: run.user.unwrap_or(run.requested_by),
        message: run.message,
    }
}

pub(super) async fn export(
    args: ExportStateArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    if run.how.backend.is_some() {
        return Err(no_option(
            "--backend",
            "a server keeps state in its database",
        ));
    }
    let id = deployment_id(&run.id);
    let export = remote
        .export(&id, run.environment.as_str(), run.how.rehearse)
        .await
        .map_err(|error| named(error.into(), &id, remote))?;
    let states = EnvironmentStates::of_server(
        export.deployment,
        export.environment,
        export.rehearsal,
        export.exported_at,
        export.units,
    );
    deliver(&states, &args, context)
}

pub(super) async fn resources(
    args: ResourcesArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    if args.backend.is_some() {
        return Err(no_option(
            "--backend",
            "a server keeps state in its database",
        ));
    }
    let ids = match &args.id {
        Some(id) => vec![deployment_id(id)],
        None => {
            let all = remote.deployments().await?.into_iter();
            all.map(|deployment| deployment.id).collect()
        }
    };
    let mut resources = Vec::new();
    for id in ids {
        let manifest = manifest_of(remote, &id).await?;
        let environments = manifest.environments.keys();
        for environment in
            environments.filter(|one| args.environment.is_none_or(|only| only == **one))
        {
            let state = remote
                .state(&id, environment.as_str(), args.rehearse)
                .await?;
            for unit in state.units {
                let found = unit
                    .resources
                    .into_iter()
                    .filter(|resource| resource.custom);
                resources.extend(found.map(|resource| {
                    FoundResource {
                        deployment: id.clone(),
                        environment: environment.to_string(),
                        stack: unit.unit.clone(),
                        name: resource
                            .urn
                            .rsplit("::")
                            .next()
                            .unwrap_or_default()
                            .to_owned(),
                        type_: resource.type_,
                        id: resource.id,
                        external: resource.external,
                    }
                }));
            }
        }
    }
    resources.retain(|found| {
        let wanted = args
            .type_
            .as_ref()
            .is_none_or(|text| found.type_.contains(text.as_str()));
        wanted && !found.type_.starts_with("pulumi:providers:")
    });
    context.output.result(&FoundResourcesReport { resources })?;
    Ok(CommandOutcome::Done)
}

pub(super) async fn switch(
    args: SwitchArgs,
    enabled: bool,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let id = deployment_id(&args.id);
    let manifest = manifest_of(remote, &id).await?;
    if !manifest.environments.contains_key(&args.environment) {
        return Err(manifest.unknown_environment(args.environment));
    }
    remote
        .switch(&id, args.environment.as_str(), enabled)
        .await?;
    let manifest = manifest_of(remote, &id).await?;
    context.output.result(&EnvironmentsReport::new(&manifest))?;
    Ok(CommandOutcome::Done)
}

/// Shows gates, after it recorded what was done.
pub(super) async fn gate(
    args: GateArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let id = deployment_id(&args.id);
    let manifest = manifest_of(remote, &id).await?;
    if let Some(environment) = args.environment
        && !manifest.environments.contains_key(&environment)
    {
        return Err(manifest.unknown_environment(environment));
    }
    if let (Some(item), Some(environment)) = (&args.pass, args.environment) {
        let sign = SignGate {
            note: args.note.clone(),
            rehearsal: args.rehearse,
        };
        remote
            .sign_gate(&id, environment.as_str(), item, &sign)
            .await?;
    }
    let mut gates = remote.gates(&id, args.rehearse).await?.items;
    if let Some(environment) = args.environment {
        gates.retain(|gate| gate.environment == environment.as_str());
    }
    context.output.result(&GateReport::of_server(gates))?;
    Ok(CommandOutcome::Done)
}

pub(super) async fn decommission(
    args: DecommissionArgs,
    remote: &RemoteDeployments,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    if args.backend.is_some() {
        return Err(no_option(
            "--backend",
            "a server keeps state in its database",
        ));
    }
    let id = deployment_id(&args.id);
    manifest_of(remote, &id).await?;
    if !args.yes {
        let question = format!("Take {id} at {} out of use?", remote.server());
        confirm(context, &question).await?;
    }
    remote.archive(&id).await?;
    let data = json!({"deployment": id, "server": remote.server()});
    let text = format!("{id} is out of use at {}", remote.server());
    context.output.result(&AdminReport::done(data, text))?;
    Ok(CommandOutcome::Done)
}
