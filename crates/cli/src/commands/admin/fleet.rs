//! `nimbus component impact|preview|upgrade|rollout …` on a server: instances of components on their way to a later version.

use nimbus_control_client::encoded;
use nimbus_core::Result;
use serde_json::{Value, json};

use super::AdminReport;
use super::server::{Connection, ServerArgs};

#[derive(clap::Args, Debug)]
pub(crate) struct ImpactArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// The component
    name: String,
    /// The version; without it the newest that can be used
    #[arg(long, value_name = "VERSION")]
    to: Option<i32>,
    /// Only instances of this environment
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// Only instances on simulated clouds
    #[arg(long)]
    rehearsal: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PreviewVersionArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// The component
    name: String,
    /// The version
    #[arg(long, value_name = "VERSION")]
    to: i32,
    /// Only instances of these environments
    #[arg(long, value_name = "NAME")]
    environment: Vec<String>,
    /// Instances on simulated clouds instead of real ones
    #[arg(long)]
    rehearsal: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct UpgradeArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// The instance, by its id (nimbus component instances NAME)
    instance: String,
    /// The version; without it the newest that can be used
    #[arg(long, value_name = "VERSION")]
    to: Option<i32>,
    /// Why, for whoever looks at the run
    #[arg(long)]
    message: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum RolloutCommand {
    /// Upgrade the instances of a component in waves, in the tenant and all below it
    Start(Box<StartArgs>),
    /// List roll-outs, newest first
    List(RolloutListArgs),
    /// Show a roll-out with its instances
    Show(RolloutArgs),
    /// Let nothing further of a roll-out start
    Pause(RolloutArgs),
    /// Go on with a roll-out that waits, or begin one that is planned
    Resume(RolloutArgs),
    /// Stop a roll-out for good; what was started goes on to its own end
    Stop(RolloutArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The component
    name: String,
    /// The version; without it the newest that can be used
    #[arg(long, value_name = "VERSION")]
    to: Option<i32>,
    /// So many instances in each wave, such as 1,5,20; whatever is left is one more
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', conflicts_with_all = ["percentages", "waves"])]
    counts: Vec<u32>,
    /// So much of all of them has been started with each wave, in percent, such as 10,50,100
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        conflicts_with = "waves"
    )]
    percentages: Vec<u8>,
    /// Environments of a wave, such as dev,test; once for each wave
    #[arg(long = "wave", value_name = "NAMES")]
    waves: Vec<String>,
    /// So many instances may fail before nothing further starts
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    max_failures: u32,
    /// Wait for `rollout resume` before each wave but the first
    #[arg(long)]
    pause_between_waves: bool,
    /// Only instances of these environments
    #[arg(long, value_name = "NAME")]
    environment: Vec<String>,
    /// Instances on simulated clouds instead of real ones
    #[arg(long)]
    rehearsal: bool,
    /// Leave out instances that cannot take the version, instead of refusing
    #[arg(long)]
    skip_unfit: bool,
    /// Only make the plan; `rollout resume` begins it
    #[arg(long)]
    plan_only: bool,
    /// Why, for whoever looks at it
    #[arg(long)]
    message: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RolloutListArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Only those of this component
    #[arg(long, value_name = "NAME")]
    component: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RolloutArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The roll-out, by its id
    rollout: String,
}

const ROLLOUT_COLUMNS: &[&str] = &[
    "id",
    "component",
    "to_version",
    "status",
    "wave",
    "requested_at",
    "message",
];

impl RolloutCommand {
    pub(super) fn server(&self) -> &ServerArgs {
        match self {
            Self::Start(args) => &args.server,
            Self::List(args) => &args.server,
            Self::Show(args) | Self::Pause(args) | Self::Resume(args) | Self::Stop(args) => {
                &args.server
            }
        }
    }
}

pub(super) async fn impact(args: ImpactArgs, server: &mut Connection) -> Result<AdminReport> {
    let to = args.to.map(|version| version.to_string());
    let mut query = Vec::new();
    query.extend(to.as_deref().map(|to| ("version", to)));
    query.extend(
        args.environment
            .as_deref()
            .map(|name| ("environment", name)),
    );
    if args.rehearsal {
        query.push(("rehearsal", "true"));
    }
    let path = format!("components/{}/impact", encoded(&args.name));
    let found = server.client.get(&server.path(&path, &query)).await?;
    let text = told_impact(&found);
    Ok(AdminReport::done(found, text))
}

pub(super) async fn preview(
    args: PreviewVersionArgs,
    server: &mut Connection,
) -> Result<AdminReport> {
    let path = format!("components/{}/previews", encoded(&args.name));
    let body = json!({
        "version": args.to,
        "environments": some(&args.environment),
        "rehearsal": args.rehearsal,
    });
    let asked = server.client.post(&server.path(&path, &[]), &body).await?;
    let columns = &[
        "tenant_name",
        "deployment",
        "environment",
        "stack",
        "version",
        "run",
        "problem",
    ];
    Ok(AdminReport::list(asked, columns))
}

pub(super) async fn upgrade(args: UpgradeArgs, server: &mut Connection) -> Result<AdminReport> {
    let path = format!("instances/{}/upgrade", encoded(&args.instance));
    let body = json!({"version": args.to, "message": args.message});
    let run = server.client.post(&server.path(&path, &[]), &body).await?;
    let columns = &[
        "id",
        "number",
        "deployment",
        "environment",
        "status",
        "approval",
        "message",
    ];
    Ok(AdminReport::item(run, columns))
}

pub(super) async fn rollout(
    command: RolloutCommand,
    server: &mut Connection,
) -> Result<AdminReport> {
    let (args, signal) = match command {
        RolloutCommand::Start(args) => return start(*args, server).await,
        RolloutCommand::List(args) => {
            let component = args.component.as_deref();
            let query: Vec<_> = component
                .map(|name| ("component", name))
                .into_iter()
                .collect();
            let path = server.path("rollouts", &query);
            return Ok(AdminReport::list(
                server.client.list(&path).await?,
                ROLLOUT_COLUMNS,
            ));
        }
        RolloutCommand::Show(args) => (args, None),
        RolloutCommand::Pause(args) => (args, Some("pause")),
        RolloutCommand::Resume(args) => (args, Some("resume")),
        RolloutCommand::Stop(args) => (args, Some("stop")),
    };
    let path = format!("rollouts/{}", encoded(&args.rollout));
    let shown = match signal {
        None => server.client.get(&server.path(&path, &[])).await?,
        Some(signal) => {
            let path = server.path(&format!("{path}/{signal}"), &[]);
            server.client.post(&path, &json!({})).await?
        }
    };
    let text = told_rollout(&shown);
    Ok(AdminReport::done(shown, text))
}

async fn start(args: StartArgs, server: &mut Connection) -> Result<AdminReport> {
    let path = format!("components/{}/rollouts", encoded(&args.name));
    let groups: Vec<Vec<&str>> = args
        .waves
        .iter()
        .map(|names| names.split(',').map(str::trim).collect())
        .collect();
    let body = json!({
        "version": args.to,
        "waves": {
            "counts": some(&args.counts),
            "percentages": some(&args.percentages),
            "environments": some(&groups),
        },
        "max_failures": args.max_failures,
        "pause_between_waves": args.pause_between_waves,
        "environments": some(&args.environment),
        "rehearsal": args.rehearsal,
        "skip_unfit": args.skip_unfit,
        "plan_only": args.plan_only,
        "message": args.message,
    });
    let made = server.client.post(&server.path(&path, &[]), &body).await?;
    let text = told_rollout(&made);
    Ok(AdminReport::done(made, text))
}

/// A list, if it has something.
fn some<T>(list: &[T]) -> Option<&[T]> {
    Some(list).filter(|list| !list.is_empty())
}

fn word<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_default()
}

fn place(of: &Value) -> String {
    let rehearsal = if of["rehearsal"] == true {
        " (rehearsal)"
    } else {
        ""
    };
    format!(
        "{} {} {} {}{rehearsal}",
        word(of, "tenant_name"),
        word(of, "deployment"),
        word(of, "environment"),
        word(of, "stack"),
    )
}

fn told_impact(impact: &Value) -> String {
    let mut lines = vec![format!(
        "{} to version {}: {} can take it, {} cannot, {} have it",
        word(impact, "component"),
        impact["to_version"],
        impact["fit"],
        impact["unfit"],
        impact["current"],
    )];
    for one in impact["instances"].as_array().into_iter().flatten() {
        let sign = match (one["current"] == true, one["fits"] == true) {
            (true, _) => "=",
            (false, true) => "+",
            (false, false) => "!",
        };
        let line = format!("{sign} {} (version {})", place(one), one["version"]);
        lines.push(line);
        for key in ["standing", "path"] {
            if let Some(reason) = one[key].as_str() {
                lines.push(format!("    {reason}"));
            }
        }
        for key in ["parameters", "dependents", "rules"] {
            let reasons = one[key].as_array().into_iter().flatten();
            let reasons = reasons.filter_map(Value::as_str);
            lines.extend(reasons.map(|reason| format!("    {reason}")));
        }
    }
    lines.join("\n")
}

fn told_rollout(rollout: &Value) -> String {
    let wave = match rollout["wave"].as_u64() {
        Some(wave) => format!(", wave {wave} of {}", rollout["waves"]),
        None => String::new(),
    };
    let why = match word(rollout, "paused_because") {
        "between_waves" => ": the wave before has ended",
        "asked" => ": somebody said so",
        _ => "",
    };
    let mut lines = vec![format!(
        "{}: {} to version {} is {}{wave}{why}",
        word(rollout, "id"),
        word(rollout, "component"),
        rollout["to_version"],
        word(rollout, "status"),
    )];
    for one in rollout["instances"].as_array().into_iter().flatten() {
        let mut line = format!("{} {} {}", one["wave"], word(one, "status"), place(one));
        if let Some(run) = one["run"].as_str() {
            line.push_str(&format!(", run {run}"));
        }
        lines.push(line);
        if let Some(problem) = one["problem"].as_str() {
            lines.push(format!("    {problem}"));
        }
    }
    let help = match word(rollout, "status") {
        "planned" | "paused" => Some("resume"),
        _ => None,
    };
    if let Some(next) = help {
        let id = word(rollout, "id");
        lines.push(format!("next: nimbus component rollout {next} {id}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impact_says_who_breaks_and_why() {
        let impact = json!({"component": "bucket", "to_version": 2, "fit": 1, "unfit": 1, "current": 0, "instances": [
            {"tenant_name": "Acme", "deployment": "D1", "environment": "dev", "stack": "bucket", "version": 1,
                "rehearsal": true, "fits": true, "current": false},
            {"tenant_name": "Other", "deployment": "D2", "environment": "prod", "stack": "bucket", "version": 1,
                "rehearsal": false, "fits": false, "current": false, "parameters": ["inputs.size: 9 is too much"]},
        ]});
        assert_eq!(
            told_impact(&impact),
            "bucket to version 2: 1 can take it, 1 cannot, 0 have it\n\
             + Acme D1 dev bucket (rehearsal) (version 1)\n\
             ! Other D2 prod bucket (version 1)\n    inputs.size: 9 is too much"
        );
    }

    #[test]
    fn a_rollout_that_waits_says_what_comes_next() {
        let rollout = json!({"id": "r1", "component": "bucket", "to_version": 2, "status": "paused", "wave": 2,
            "waves": 2, "paused_because": "between_waves", "instances": [
                {"wave": 1, "status": "succeeded", "tenant_name": "Acme", "deployment": "D1", "environment": "dev",
                    "stack": "bucket", "run": "u1"}]});
        assert_eq!(
            told_rollout(&rollout),
            "r1: bucket to version 2 is paused, wave 2 of 2: the wave before has ended\n\
             1 succeeded Acme D1 dev bucket, run u1\nnext: nimbus component rollout resume r1"
        );
    }
}
