//! `nimbus worker`: carry runs of a server out on this machine, and see to workers from anywhere.

use std::path::PathBuf;

use nimbus_control_client::encoded;
use nimbus_control_wire::WorkerAbilities;
use nimbus_control_worker::{
    JoinedWorker, ProgramSettings, SandboxSettings, WorkerOptions, missing_isolation,
};
use nimbus_core::{Error, ErrorCode, Result};
use serde_json::json;

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::commands::control::{default_data_dir, run_options, stop_requested};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    join: JoinArgs,
    #[command(subcommand)]
    command: Option<WorkerCommand>,
}

/// How this machine joins.
#[derive(clap::Args, Debug)]
struct JoinArgs {
    /// File with the key that `worker token` printed; also NIMBUS_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Name in lists; without it this machine's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Runs at once; without it runs.at_once
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    slots: Option<u32>,
    /// Where programs are written out; made if it does not exist
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Join without TLS over a network on which nobody else can listen
    #[arg(long)]
    allow_plain_http: bool,
}

#[derive(Debug, clap::Subcommand)]
enum WorkerCommand {
    /// List workers, with what each can do and has to do
    List {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Make the key that a worker joins with; it is printed once
    Token {
        #[command(flatten)]
        server: ServerArgs,
        /// What the worker's service account is called
        name: String,
        /// Days until the key expires; without it, it does not
        #[arg(long, value_name = "DAYS")]
        expires: Option<u32>,
    },
    /// Let a worker take no more runs; what it has goes on
    Drain {
        #[command(flatten)]
        server: ServerArgs,
        /// Name, from `worker list`
        worker: String,
    },
    /// Let a worker take runs again
    Resume {
        #[command(flatten)]
        server: ServerArgs,
        /// Name, from `worker list`
        worker: String,
    },
}

/// What workers may do, and nothing else.
const ROLE: &str = "worker";
const PERMISSION: &str = "system:worker:join";

const COLUMNS: &[&str] = &["name", "status", "slots", "running", "version", "seen_at"];
const DETAIL: &[&str] = &[
    "id",
    "name",
    "status",
    "slots",
    "running",
    "version",
    "abilities",
    "joined_at",
    "seen_at",
];

pub(crate) async fn run(args: WorkerArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let report = match args.command {
        None => return join(args.join, context).await,
        Some(WorkerCommand::List { server }) => {
            let mut server = Connection::open(&server, context).await?;
            let path = server.path("workers", &[]);
            AdminReport::list(server.client.get(&path).await?, COLUMNS)
        }
        Some(WorkerCommand::Token {
            server,
            name,
            expires,
        }) => {
            let server = Connection::open(&server, context).await?;
            token(server, &name, expires).await?
        }
        Some(WorkerCommand::Drain { server, worker }) => {
            let mut server = Connection::open(&server, context).await?;
            let path = server.path(&format!("workers/{}/drain", encoded(&worker)), &[]);
            AdminReport::item(server.client.post(&path, &json!({})).await?, DETAIL)
        }
        Some(WorkerCommand::Resume { server, worker }) => {
            let mut server = Connection::open(&server, context).await?;
            let path = server.path(&format!("workers/{}/resume", encoded(&worker)), &[]);
            AdminReport::item(server.client.post(&path, &json!({})).await?, DETAIL)
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

/// A service account with a role that has one permission, and a key that is limited to it.
async fn token(mut server: Connection, name: &str, expires: Option<u32>) -> Result<AdminReport> {
    let tenant = server.tenant().await?;
    let roles = server.client.list(&format!("{tenant}/roles")).await?;
    let known = roles["items"].as_array().into_iter().flatten();
    if !known.into_iter().any(|role| role["name"] == ROLE) {
        let body = json!({"name": ROLE, "description": "carries runs out on another machine",
            "grants": [{"permissions": [PERMISSION]}]});
        server
            .client
            .post(&format!("{tenant}/roles"), &body)
            .await?;
    }
    let body = json!({"email": name, "service_account": true});
    let account = server
        .client
        .post(&format!("{tenant}/users"), &body)
        .await?;
    let body = json!({"role": ROLE, "user_id": account["id"]});
    server
        .client
        .post(&format!("{tenant}/role-assignments"), &body)
        .await?;
    let body = json!({"service_account_id": account["id"], "name": name, "scopes": [PERMISSION],
        "expires_in_days": expires});
    let key = server.client.post(&format!("{tenant}/keys"), &body).await?;
    Ok(AdminReport::item(
        key,
        &["id", "name", "scopes", "expires_at", "secret"],
    ))
}

async fn join(args: JoinArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let Some(server) = &context.server else {
        let message = "a worker needs the address of its server";
        return Err(Error::new(ErrorCode::INPUT_INVALID, message)
            .with_help("nimbus worker --server https://nimbus.example --token-file FILE"));
    };
    let mut runs = run_options(context)?;
    if let Some(slots) = args.slots {
        runs.limits.at_once = usize::try_from(slots).unwrap_or(usize::MAX);
    }
    runs.limits.at_once = runs.limits.at_once.max(1);
    let data_dir = match &args.data_dir {
        Some(folder) => context.directory.join(folder),
        None => default_data_dir()?.join("worker"),
    };
    let tried = tokio::task::spawn_blocking(missing_isolation).await;
    let options = WorkerOptions {
        server: server.url.clone(),
        key: key(&args, context)?,
        name: match args.name {
            Some(name) => name,
            None => machine_name(),
        },
        limits: runs.limits,
        abilities: WorkerAbilities {
            sandbox: sandbox_word(runs.sandbox.as_ref()).to_owned(),
            missing: tried.ok().flatten().unwrap_or_default(),
            languages: languages(),
        },
        programs: ProgramSettings {
            folder: data_dir.join("runs"),
            node_modules: runs.node_modules,
            sandbox: runs.sandbox,
        },
        plain: args.allow_plain_http,
    };
    // Heard from the beginning, so that joining can be given up.
    let mut stop = Box::pin(stop_requested()?);
    let worker = tokio::select! {
        worker = JoinedWorker::join(options) => worker?,
        () = &mut stop => return Err(Error::new(ErrorCode::CANCELLED, "stopped while joining")),
    };
    let view = serde_json::to_value(worker.view()).unwrap_or_default();
    context.output.result(&AdminReport::item(view, DETAIL))?;
    let refused = tokio::select! {
        () = stop => false,
        () = worker.refused() => true,
    };
    worker.stop().await;
    if refused {
        let message = "the server no longer takes this worker's key";
        return Err(Error::new(ErrorCode::WORKER_REFUSED, message)
            .with_help("make another one: nimbus worker token NAME"));
    }
    Ok(CommandOutcome::Done)
}

fn key(args: &JoinArgs, context: &CommandContext) -> Result<String> {
    let text = match &args.token_file {
        Some(file) => {
            let path = context.directory.join(file);
            std::fs::read_to_string(&path).map_err(|error| {
                let message = format!("{} cannot be read: {error}", path.display());
                Error::new(ErrorCode::FILE_UNREADABLE, message)
            })?
        }
        None => std::env::var("NIMBUS_TOKEN").unwrap_or_default(),
    };
    let key = text.trim().to_owned();
    if key.is_empty() {
        let message = "a worker needs the key that it joins with";
        return Err(Error::new(ErrorCode::INPUT_INVALID, message)
            .with_help("`nimbus worker token NAME` makes one; give it with --token-file"));
    }
    nimbus_telemetry::register_secret(&key);
    Ok(key)
}

fn sandbox_word(sandbox: Option<&SandboxSettings>) -> &'static str {
    match sandbox {
        None => "off",
        Some(settings) if settings.is_strict() => "strict",
        Some(_) => "best_effort",
    }
}

/// Languages whose runtimes are found here.
fn languages() -> Vec<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |program: &str| std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    [("nodejs", "node"), ("python", "python3")]
        .iter()
        .filter(|(_, program)| found(program))
        .map(|(language, _)| (*language).to_owned())
        .collect()
}

fn machine_name() -> String {
    let name = nix::unistd::gethostname().ok();
    let name = name.and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty())
        .unwrap_or_else(|| "worker".to_owned())
}
