//! What the commands that run a deployment have in common: where its state is, who answers for
//! providers, and how it is shown.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_operations::{Cancellation, StackLocation};
use nimbus_engine_ports::{EngineEvent, EventSink, Severity};
use nimbus_local::{
    EventsOf, LocalEngine, LocalOptions, LocalOutside, Recovery, digest_key, require_passphrase,
};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::unit::Board;
use nimbus_orchestrator::workspace::{Deployment, Workspace};
use nimbus_rehearsal::{Answers, Declarations, Observer, Rehearsal, World};

use crate::commands::program::{
    EngineArgs, OrderArgs, PolicyArgs, refuse_rehearsed, sandbox_settings, shared_providers,
};
use crate::context::Context;

/// How a deployment is run.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Environment: dev, stage or prod
    #[arg(long, short, value_parser = super::environment)]
    pub(crate) environment: Environment,
    /// Try it on a simulated cloud: no account is needed and nothing real is touched
    #[arg(long)]
    pub(crate) rehearse: bool,
    #[command(flatten)]
    pub(crate) orders: OrderArgs,
    /// Where state is kept: file:///dir or s3://bucket; default is the deployment's own directory
    #[arg(long, value_name = "URL", conflicts_with = "rehearse")]
    pub(crate) backend: Option<String>,
    /// Compile TypeScript without checking its types
    #[arg(long)]
    pub(crate) no_typecheck: bool,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
}

/// A deployment, and the directory that holds what is recorded of it: its own, or that of its
/// rehearsals.
pub(crate) struct Place {
    pub(crate) workspace: Workspace,
    pub(crate) deployment: Deployment,
    pub(crate) directory: PathBuf,
}

impl Place {
    /// The environment that is wanted, or all.
    pub(crate) fn environments(&self, wanted: Option<Environment>) -> Vec<Environment> {
        match wanted {
            Some(environment) => vec![environment],
            None => self
                .deployment
                .manifest
                .environments
                .keys()
                .copied()
                .collect(),
        }
    }

    /// Finds a deployment, whatever state its environments are in.
    pub(crate) fn find(id: &str, rehearsal: bool, context: &Context) -> Result<Self> {
        let workspace = super::workspace(context)?;
        let deployment = workspace.deployment(id)?;
        let directory = if rehearsal {
            deployment.directory.join(".nimbus/rehearsal")
        } else {
            deployment.directory.clone()
        };
        Ok(Self {
            workspace,
            deployment,
            directory,
        })
    }
}

/// Who hears what units say, and what is kept for going back and for going on.
pub(crate) struct Hands {
    pub(crate) events: EventsOf,
    pub(crate) keep: Option<PathBuf>,
    pub(crate) recovery: Recovery,
    /// Sees what a rehearsal does.
    pub(crate) observer: Observer,
}

/// A deployment with everything that is needed to look at it.
pub(crate) fn open(
    args: &RunArgs,
    context: &Context,
    cancellation: &Cancellation,
) -> Result<Board> {
    let hands = Hands {
        events: diagnostics(context),
        keep: None,
        recovery: Recovery::default(),
        observer: Observer::default(),
    };
    let place = Place::find(&args.id, args.rehearse, context)?;
    allow(&place.deployment, args.environment)?;
    board(args, place, hands, context, cancellation)
}

/// A deployment with everything that is needed to run it.
pub(crate) fn board(
    args: &RunArgs,
    place: Place,
    hands: Hands,
    context: &Context,
    cancellation: &Cancellation,
) -> Result<Board> {
    let Place {
        workspace,
        deployment,
        directory,
    } = place;
    require_passphrase(args.rehearse)?;
    let kind = if args.rehearse { "rehearsal" } else { "state" };
    let state = deployment.directory.join(".nimbus").join(kind);
    std::fs::create_dir_all(&state).map_err(|error| unwritable(&state, &error))?;
    let simulated = match args.rehearse {
        false => None,
        true => {
            let cloud = rehearsal(args, context, &workspace, &state)?;
            Some(Arc::new(cloud.observed_by(hands.observer)) as _)
        }
    };
    if let Some(backend) = &args.backend {
        refuse_rehearsed(&StackLocation {
            directory: context.directory.clone(),
            stack: String::new(),
            backend: Some(backend.clone()),
        })?;
    }
    let backend = args
        .backend
        .clone()
        .unwrap_or_else(|| format!("file://{}", state.display()));
    let options = LocalOptions {
        backend,
        simulated,
        transpile_only: args.no_typecheck,
        parallel: None,
        policy_packs: args.policies.requests(context),
    };
    let mut engine = LocalEngine::new(options, hands.events, cancellation.clone())
        .recovering(hands.recovery)
        .sandboxed(sandbox_settings(context)?)
        .sharing(shared_providers(context)?)
        .official(args.engine.is_official());
    if let Some(folder) = hands.keep {
        engine = engine.keeping(folder);
    }
    let outside = LocalOutside::new(args.rehearse).with_keys(engine.keyring());
    let key = digest_key(workspace.root())?;
    Ok(Board::new(
        workspace,
        directory,
        deployment.manifest,
        args.environment,
        Arc::new(engine),
        Arc::new(outside),
        key,
    ))
}

/// Whether an environment may be deployed.
pub(crate) fn allow(deployment: &Deployment, environment: Environment) -> Result<()> {
    let id = &deployment.manifest.metadata.id;
    match deployment.manifest.environments.get(&environment) {
        Some(target) if target.enabled => Ok(()),
        Some(_) => {
            let message = format!("environment {environment} of {id} is not enabled");
            Err(Error::new(ErrorCode::ENVIRONMENT_DISABLED, message)
                .with_help(format!("nimbus enable-environment {id} {environment}")))
        }
        None => {
            let message = format!("deployment {id} has no environment {environment}");
            Err(Error::new(ErrorCode::ENVIRONMENT_UNKNOWN, message))
        }
    }
}

fn rehearsal(
    args: &RunArgs,
    context: &Context,
    workspace: &Workspace,
    directory: &Path,
) -> Result<Rehearsal> {
    let orders = args.orders.read(context)?;
    let answers = Answers::load(&workspace.root().join("rehearsal/invokes.yaml"))?;
    let declarations = declarations(&workspace.root().join("stacks"));
    let file = World::file_in(directory, args.environment.as_str());
    let world = World::open(&file)?;
    Rehearsal::new(world, declarations, orders, answers).map_err(|error| unwritable(&file, &error))
}

/// Programs share the modules of Node.js; each Python program may have packages of its own.
fn declarations(stacks: &Path) -> Declarations {
    let components = std::fs::read_dir(stacks).into_iter().flatten().flatten();
    let environments =
        components.flat_map(|component| ["venv", ".venv"].map(|name| component.path().join(name)));
    let shared = Declarations::of_program(stacks);
    environments.fold(shared, |found, environment| found.and_python(&environment))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(
        ErrorCode::FILE_UNWRITABLE,
        format!("cannot write {}: {error}", path.display()),
    )
}

/// Warnings and errors of units go to standard error, with the unit's name in front.
fn diagnostics(context: &Context) -> EventsOf {
    let quiet = context.output.is_json();
    let lock = Arc::new(Mutex::new(()));
    Arc::new(move |unit: &str| {
        Arc::new(UnitDiagnostics {
            unit: unit.to_owned(),
            quiet,
            lock: Arc::clone(&lock),
        }) as _
    })
}

struct UnitDiagnostics {
    unit: String,
    quiet: bool,
    lock: Arc<Mutex<()>>,
}

impl EventSink for UnitDiagnostics {
    fn emit(&self, event: EngineEvent) {
        let EngineEvent::Diagnostic(diagnostic) = event else {
            return;
        };
        if self.quiet || diagnostic.ephemeral || diagnostic.severity < Severity::Warning {
            return;
        }
        let _one_at_a_time = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let text = nimbus_telemetry::redact(&diagnostic.message);
        for line in text.lines() {
            // There is nowhere left to report that standard error is closed.
            let _ = writeln!(std::io::stderr(), "  {}: {line}", self.unit);
        }
    }
}
