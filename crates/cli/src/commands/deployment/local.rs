//! What the commands that run a deployment have in common: their arguments, and how these become the
//! choices of a request.

use nimbus_core::{EnvironmentName, Result};
use nimbus_engine_operations::{ProgramNetwork, SandboxSettings};
use nimbus_engine_sandbox::{IsolationMode, ResourceLimits};
use nimbus_local::{DeploymentPlace, policy_pack_choice};
use nimbus_runs::{EngineChoice, RunChoices, SandboxChoice, SandboxLimits};

use crate::commands::admin::ServerArgs;
use crate::commands::program::{
    EngineArgs, OrderArgs, PolicyArgs, sandbox_settings, shared_providers,
};
use crate::context::CommandContext;

/// How a deployment is run.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Environment, such as dev
    #[arg(long, short, value_parser = super::environment)]
    pub(crate) environment: EnvironmentName,
    #[command(flatten)]
    pub(crate) how: EngineRunArgs,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

/// How units are run, whatever the environment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct EngineRunArgs {
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

/// Finds a deployment of the workspace.
pub(crate) fn find_place(
    id: &str,
    rehearsal: bool,
    context: &CommandContext,
) -> Result<DeploymentPlace> {
    DeploymentPlace::find(super::workspace(context)?, id, rehearsal)
}

impl EngineRunArgs {
    /// For real, with everything as usual.
    pub(crate) fn plain(no_typecheck: bool) -> Self {
        Self {
            rehearse: false,
            orders: OrderArgs::default(),
            backend: None,
            no_typecheck,
            engine: EngineArgs::default(),
            policies: PolicyArgs::default(),
        }
    }

    /// What of these is part of a request, and is recorded with it.
    pub(crate) fn choices(&self, context: &CommandContext) -> Result<RunChoices> {
        let packs = self.policies.requests(context).into_iter();
        let sandbox = sandbox_settings(context)?;
        Ok(RunChoices {
            backend: self.backend.clone(),
            engine: if self.engine.is_official() {
                EngineChoice::Official
            } else {
                EngineChoice::Embedded
            },
            sandbox: sandbox_choice(sandbox.as_ref()),
            typecheck: !self.no_typecheck,
            policy_packs: packs
                .map(|pack| policy_pack_choice(pack.folder, pack.config, sandbox.as_ref()))
                .collect(),
            shared_providers: shared_providers(context)?,
            rehearsal: self.orders.choice(context)?,
            ..RunChoices::default()
        })
    }
}

fn sandbox_choice(settings: Option<&SandboxSettings>) -> SandboxChoice {
    let Some(settings) = settings else {
        return SandboxChoice::Off;
    };
    let network = match settings.network {
        ProgramNetwork::None => "none",
        ProgramNetwork::Full => "full",
    };
    let network = network.to_owned();
    let limits = settings.limits;
    let walls = Some(SandboxLimits {
        memory_bytes: limits.memory_bytes,
        processes: limits.processes,
        open_files: limits.open_files,
        file_bytes: limits.file_bytes,
        temporary_bytes: limits.temporary_bytes,
        temporary_files: limits.temporary_files,
        output_bytes: limits.output_bytes,
        environment: settings.environment.clone(),
        roots: settings.roots.clone(),
    });
    match settings.mode {
        IsolationMode::BestEffort => SandboxChoice::BestEffort { network, walls },
        IsolationMode::Strict { allow_weak } => SandboxChoice::Strict {
            network,
            allow_weak,
            walls,
        },
    }
}

/// The sandbox of a recorded request. What an older record does not have is this machine's.
pub(crate) fn sandbox_of(
    choice: &SandboxChoice,
    context: &CommandContext,
) -> Result<Option<SandboxSettings>> {
    let (mode, network, walls) = match choice {
        SandboxChoice::Off => return Ok(None),
        SandboxChoice::BestEffort { network, walls } => (IsolationMode::BestEffort, network, walls),
        SandboxChoice::Strict {
            network,
            allow_weak,
            walls,
        } => {
            let allow_weak = *allow_weak;
            (IsolationMode::Strict { allow_weak }, network, walls)
        }
    };
    let network = match network.as_str() {
        "full" => ProgramNetwork::Full,
        // What cannot be understood is not allowed more than nothing.
        _ => ProgramNetwork::None,
    };
    let settings = sandbox_settings(context)?;
    // What strangers may use of the operator's is the operator's word of now, not of then.
    let allowances = settings
        .as_ref()
        .map(|settings| settings.allowances.clone())
        .unwrap_or_default();
    // So is what the engine itself may spend on them.
    let limits = settings.as_ref().map(|settings| settings.limits);
    if let Some(walls) = walls.clone() {
        return Ok(Some(SandboxSettings {
            allowances,
            mode,
            network,
            limits: ResourceLimits {
                memory_bytes: walls.memory_bytes,
                processes: walls.processes,
                open_files: walls.open_files,
                file_bytes: walls.file_bytes,
                temporary_bytes: walls.temporary_bytes,
                temporary_files: walls.temporary_files,
                output_bytes: walls.output_bytes,
                request_bytes: limits.unwrap_or_default().request_bytes,
            },
            roots: walls.roots,
            environment: walls.environment,
        }));
    }
    Ok(Some(SandboxSettings {
        mode,
        network,
        limits: settings
            .as_ref()
            .map(|settings| settings.limits)
            .unwrap_or_default(),
        roots: settings
            .as_ref()
            .map(|settings| settings.roots.clone())
            .unwrap_or_default(),
        allowances,
        environment: settings
            .map(|settings| settings.environment)
            .unwrap_or_default(),
    }))
}
