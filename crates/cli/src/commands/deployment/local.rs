//! What the commands that run a deployment have in common: their arguments, and how these become the
//! choices of a request.

use nimbus_core::{EnvironmentName, Result};
use nimbus_engine_operations::{ProgramNetwork, SandboxSettings};
use nimbus_engine_sandbox::{IsolationMode, ResourceLimits};
use nimbus_local::{DeploymentPlace, policy_pack_choice, sandbox_choice};
use nimbus_runs::{EngineChoice, RunChoices, SandboxChoice};

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

/// The sandbox of a recorded request. What an older record does not have is this machine's.
///
/// A record lies in the workspace. Where the operator asks for `strict`, the workspace is a stranger's, and
/// what the record says about its own sandbox is not believed.
pub(crate) fn sandbox_of(
    choice: &SandboxChoice,
    context: &CommandContext,
) -> Result<Option<SandboxSettings>> {
    let settings = sandbox_settings(context)?;
    if settings.as_ref().is_some_and(SandboxSettings::is_strict) {
        return Ok(settings);
    }
    let (mode, network, recorded) = match choice {
        SandboxChoice::Off => return Ok(None),
        SandboxChoice::BestEffort { network, limits } => {
            (IsolationMode::BestEffort, network, limits)
        }
        SandboxChoice::Strict {
            network,
            allow_weak,
            limits,
        } => {
            let allow_weak = *allow_weak;
            (IsolationMode::Strict { allow_weak }, network, limits)
        }
    };
    let network = match network.as_str() {
        "full" => ProgramNetwork::Full,
        // What cannot be understood is not allowed more than nothing.
        _ => ProgramNetwork::None,
    };
    // What strangers may use of the operator's is the operator's word of now, not of then.
    let allowances = settings
        .as_ref()
        .map(|settings| settings.allowances.clone())
        .unwrap_or_default();
    // So is what the engine itself may spend on them.
    let limits = settings.as_ref().map(|settings| settings.limits);
    if let Some(recorded) = recorded.clone() {
        return Ok(Some(SandboxSettings {
            allowances,
            mode,
            network,
            limits: ResourceLimits {
                memory_bytes: recorded.memory_bytes,
                processes: recorded.processes,
                open_files: recorded.open_files,
                file_bytes: recorded.file_bytes,
                temporary_bytes: recorded.temporary_bytes,
                temporary_files: recorded.temporary_files,
                output_bytes: recorded.output_bytes,
                request_bytes: limits.unwrap_or_default().request_bytes,
            },
            roots: recorded.roots,
            environment: recorded.environment,
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
