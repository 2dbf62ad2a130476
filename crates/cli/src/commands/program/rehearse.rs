//! A rehearsal: the real program on a simulated cloud, with a state of its own.
//!
//! State and world of a rehearsal are in a folder beside the program that nothing else uses, under
//! a passphrase that protects nothing. The stack's settings are read and never written.

use std::path::Path;
use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::{layout, unwritable};
use nimbus_engine_backend::project::Project;
use nimbus_engine_backend::{EnvironmentVariables, Keyring};
use nimbus_engine_operations::{
    Engine, EngineKind, ProviderSource, StackGrant, StackLocation, StackWorkspace, StateLocation,
    backend_address, engine_for, find_project,
};
use nimbus_engine_ports::ProviderHost;
use nimbus_local::unit_environment;
use nimbus_rehearsal::{Answers, Declarations, Observer, Rehearsal, SimulatedWorld};
use nimbus_workspace::require_own_folder;

use super::engine::EngineArgs;
use super::orders::OrderArgs;
use super::processes::shared_providers;
use super::sandbox::from_settings as sandbox_settings;
use crate::context::CommandContext;

/// Whether nothing real is to be touched.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Rehearsal")]
pub(crate) struct RehearsalArgs {
    /// Try it on a simulated cloud: no account is needed and nothing real is touched
    #[arg(long, conflicts_with = "backend")]
    pub(super) rehearse: bool,

    #[command(flatten)]
    orders: OrderArgs,

    #[command(flatten)]
    engine: EngineArgs,
}

impl RehearsalArgs {
    pub(super) fn is_official(&self) -> bool {
        self.engine.is_official()
    }

    /// Where the operation looks for state, and who carries it out.
    pub(super) async fn engine(
        &self,
        real: StackLocation,
        context: &CommandContext,
        observer: &Observer,
    ) -> Result<(StackLocation, Box<dyn Engine>)> {
        if !self.rehearse {
            refuse_rehearsed(&real.states())?;
        }
        let kind = if self.engine.is_official() {
            EngineKind::Official
        } else {
            EngineKind::Embedded
        };
        if !self.rehearse {
            let shared = shared_providers(context)?;
            let providers = ProviderSource::Installed { shared };
            let engine = engine_for(kind, providers, context.key_services()?);
            return Ok((real, engine));
        }
        let services = context.key_services()?;
        let keys = Keyring::new(EnvironmentVariables::process(), services.clone());
        let sandbox = sandbox_settings(context)?;
        let (project, files) = find_project(&real.directory, sandbox.as_ref())?;
        let root = project.directory().to_owned();
        if files.is_restricted() {
            // It reads answers from the one, and keeps its state in the other.
            require_own_folder(&root.join("rehearsal"))?;
            require_own_folder(&layout::beside(&root))?;
        }
        let folder = layout::rehearsal(&root);
        std::fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
        let location = StackLocation {
            backend: Some(format!("file://{}", folder.display())),
            // In a folder of its own there are no others' stacks.
            granted: StackGrant::by_operator(sandbox.as_ref()),
            ..real
        };
        let workspace = StackWorkspace::open(&location, &keys, sandbox.as_ref()).await?;
        let file = SimulatedWorld::file_in(&folder, workspace.access.name.stack());
        let rehearsal = Rehearsal::new(
            SimulatedWorld::open(&file)?,
            declarations(&project, &location),
            self.orders.read(context)?,
            Answers::load(&root.join("rehearsal/invokes.yaml"))?,
        );
        let simulated: Arc<dyn ProviderHost> = Arc::new(
            rehearsal
                .map_err(|error| unwritable(&folder, error))?
                .observed_by(observer.clone()),
        );
        let providers = ProviderSource::Simulated {
            host: simulated,
            environment: unit_environment(true),
            config: workspace.config()?,
        };
        Ok((location, engine_for(kind, providers, services)))
    }
}

/// Nothing real is done with what exists only in a simulated cloud.
pub(crate) fn refuse_rehearsed(real: &StateLocation) -> Result<()> {
    let project = match real.granted.is_strangers() {
        true => None,
        false => Project::find(&real.directory).ok(),
    };
    let address = backend_address(real, project.as_ref(), &EnvironmentVariables::process())?;
    match address.strip_prefix("file://").map(Path::new) {
        Some(folder) if SimulatedWorld::lives_in(folder) => {
            let message = format!("{} has the state of rehearsals", folder.display());
            Err(Error::new(ErrorCode::REHEARSED_STATE, message)
                .with_help("name the place of the real state, or give --rehearse"))
        }
        _ => Ok(()),
    }
}

/// Python programs may say where their packages are.
fn declarations(project: &Project, location: &StackLocation) -> Declarations {
    let declarations = Declarations::of_program(&location.directory);
    let options = project.runtime.as_ref().map(|runtime| &runtime.options);
    let environment = options.and_then(|options| options.get("virtualenv")?.as_str());
    match environment {
        Some(environment) => declarations.and_python(&project.directory().join(environment)),
        None => declarations,
    }
}
