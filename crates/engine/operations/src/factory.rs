//! Puts an engine together for whoever runs a single program.
//!
//! Commands say what they want and get an [`Engine`]; how one is made, and what a simulated cloud
//! needs besides, is known here alone.

use std::sync::Arc;

use nimbus_engine_backend::project::ResolvedConfig;
use nimbus_engine_backend::{EnvironmentVariables, KeyServices, Keyring};
use nimbus_engine_ports::ProviderHost;

use crate::embedded::EmbeddedEngine;
use crate::engine::Engine;
use crate::given::GivenConfig;
use crate::official::OfficialEngine;
use crate::processes::Processes;

/// Who carries an operation out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    Embedded,
    /// An installed `pulumi`.
    Official,
}

/// Where providers come from.
pub enum ProviderSource {
    /// Plugins of this machine, in the environment of this process.
    Installed {
        /// Packages whose providers are shared between folders; the reviewed ones when absent.
        shared: Option<Vec<String>>,
    },
    /// One that stands in for all of them. Its states have keys of their own, so what the
    /// configuration's secrets are is given resolved.
    Simulated {
        host: Arc<dyn ProviderHost>,
        environment: EnvironmentVariables,
        config: ResolvedConfig,
    },
}

/// An engine of this kind over these providers, which asks these services for keys.
pub fn engine_for(
    kind: EngineKind,
    providers: ProviderSource,
    services: KeyServices,
) -> Box<dyn Engine> {
    let keys = |environment| Keyring::new(environment, services);
    match (kind, providers) {
        (EngineKind::Embedded, ProviderSource::Installed { shared }) => {
            let processes = match shared {
                Some(packages) => Processes::new().sharing(packages),
                None => Processes::new(),
            };
            let environment = EnvironmentVariables::process();
            let processes = Arc::new(processes);
            Box::new(EmbeddedEngine::with_keys(keys(environment), processes))
        }
        // Which processes it shares is its own business.
        (EngineKind::Official, ProviderSource::Installed { .. }) => {
            let environment = EnvironmentVariables::process();
            Box::new(OfficialEngine::with_keys(keys(environment)))
        }
        (
            EngineKind::Embedded,
            ProviderSource::Simulated {
                host,
                environment,
                config,
            },
        ) => {
            let processes = Arc::new(Processes::simulating(host));
            let engine = EmbeddedEngine::with_keys(keys(environment), processes);
            Box::new(engine.given_resolved(config))
        }
        (
            EngineKind::Official,
            ProviderSource::Simulated {
                host,
                environment,
                config,
            },
        ) => Box::new(
            OfficialEngine::with_keys(keys(environment))
                .given(GivenConfig::of_resolved(&config))
                .simulating(Some(host)),
        ),
    }
}
