//! A rehearsal: the real program on a simulated cloud, with a state of its own.
//!
//! State and world of a rehearsal are in a folder beside the program that nothing else uses, under
//! a passphrase that protects nothing. The stack's settings are read and never written.

use std::path::PathBuf;
use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::project::Project;
use nimbus_engine_backend::{Environment, Keyring};
use nimbus_engine_operations::{
    EmbeddedEngine, Engine, GivenConfig, OfficialEngine, Processes, StackLocation, Workspace,
};
use nimbus_engine_ports::ProviderHost;
use nimbus_local::unit_environment;
use nimbus_rehearsal::{Answers, Declarations, Orders, Rehearsal, World};

use super::engine::EngineArgs;
use crate::context::Context;

/// Where rehearsals keep everything, in the folder of the program.
const FOLDER: &str = ".nimbus/rehearsal";

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

/// What the simulated cloud is told to do.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct OrderArgs {
    /// Orders for the rehearsal: what fails, what is slow
    #[arg(long, value_name = "FILE", requires = "rehearse")]
    orders: Option<PathBuf>,

    /// One more order, as in the file: 'on: create, nth: 2, do: fail'; may be repeated
    #[arg(long, value_name = "ORDER", requires = "rehearse")]
    order: Vec<String>,

    /// How long each call to the simulated cloud takes, unless orders say otherwise
    #[arg(long, value_name = "SECONDS", requires = "rehearse", value_parser = seconds)]
    latency: Option<f64>,
}

impl OrderArgs {
    pub(crate) fn read(&self, context: &Context) -> Result<Orders> {
        let mut orders = match &self.orders {
            Some(file) => Orders::read(&context.directory.join(file))?,
            None => Orders::default(),
        };
        for order in &self.order {
            orders.add(order)?;
        }
        if let Some(seconds) = self.latency {
            orders.slow_down(seconds);
        }
        Ok(orders)
    }
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    if seconds.is_finite() && seconds >= 0.0 {
        Ok(seconds)
    } else {
        Err("a time is zero or more".to_owned())
    }
}

impl RehearsalArgs {
    /// Where the operation looks for state, and who carries it out.
    pub(super) async fn engine(
        &self,
        real: StackLocation,
        context: &Context,
    ) -> Result<(StackLocation, Box<dyn Engine>)> {
        match (self.rehearse, self.engine.is_official()) {
            (false, false) => return Ok((real, Box::new(EmbeddedEngine::new()))),
            (false, true) => return Ok((real, Box::new(OfficialEngine::new()))),
            (true, _) => {}
        }
        let keys = Keyring::new(Environment::process());
        let project = Project::find(&real.directory)?;
        let root = project.directory().to_owned();
        let folder = root.join(FOLDER);
        let unwritable = |error: std::io::Error| {
            let message = format!("cannot write {}: {error}", folder.display());
            Error::new(ErrorCode::FILE_UNWRITABLE, message)
        };
        std::fs::create_dir_all(&folder).map_err(unwritable)?;
        let location = StackLocation {
            backend: Some(format!("file://{}", folder.display())),
            ..real
        };
        let workspace = Workspace::open(&location, &keys).await?;
        let file = folder.join(format!("world-{}.jsonl", workspace.access.name.stack()));
        let rehearsal = Rehearsal::new(
            World::open(&file).map_err(unwritable)?,
            declarations(&project, &location),
            self.orders.read(context)?,
            Answers::load(&root.join("rehearsal/invokes.yaml"))?,
        );
        let simulated: Arc<dyn ProviderHost> = Arc::new(rehearsal.map_err(unwritable)?);
        let (environment, config) = (unit_environment(true), workspace.config()?);
        if self.engine.is_official() {
            let engine = OfficialEngine::with(environment)
                .given(GivenConfig::of_resolved(&config))
                .simulating(Some(simulated));
            return Ok((location, Box::new(engine)));
        }
        let processes = Arc::new(Processes::simulating(simulated));
        let engine = EmbeddedEngine::with(environment, processes).given_resolved(config);
        Ok((location, Box::new(engine)))
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
