//! From a package to a plugin that has been reached.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_ports::{Diagnostic, EngineEvent, Severity};

use crate::error::PluginError;
use crate::lookup::{Located, PluginKind};
use crate::manifest::Manifest;
use crate::options::HostOptions;
use crate::plugin::{Greeting, Plugin};
use crate::process::{Launch, Output, PluginProcess};
use crate::runtime::{Dynamic, Runtimes, Source};
use crate::tenancy::{self, Tenancy};

/// What to start, and where it is.
struct Start {
    launch: Launch,
    folder: PathBuf,
    /// How loud what it prints is: compiled providers log through the engine, so their own output
    /// is for debugging; what a dynamic provider prints is the user's.
    severity: Severity,
}

/// Finds, starts and greets the provider of a package.
pub(crate) async fn start_provider(
    options: &HostOptions,
    package: &PackageDescriptor,
) -> Result<Plugin, PluginError> {
    let label = label(package);
    let (port, process, folder) = match locate(options, package, &label)? {
        Found::Running(port) => (port, None, None),
        Found::Start(start) => {
            let output = Output::new(options.events.clone(), start.severity);
            let started =
                PluginProcess::start(start.launch, &label, output, options.limits.start).await;
            let (process, port) = started.map_err(|error| PluginError::NotStarted {
                plugin: label.clone(),
                reason: error.to_string(),
            })?;
            (port, Some(process), Some(start.folder))
        }
    };
    let greeting = Greeting {
        label: &label,
        engine_address: &options.engine_address,
        folder,
        parameterization: package.parameterization.as_ref(),
        limits: options.limits,
    };
    let plugin = Plugin::reach(port, process, &greeting).await;
    let plugin = plugin.map_err(|reason| PluginError::Refused {
        plugin: label,
        reason,
    })?;
    warn_of_other_version(options, package, &plugin);
    Ok(plugin)
}

enum Found {
    Running(std::num::NonZeroU16),
    Start(Start),
}

fn locate(
    options: &HostOptions,
    package: &PackageDescriptor,
    label: &str,
) -> Result<Found, PluginError> {
    let dynamic = Dynamic::of_package(&package.name);
    let environment = environment(options, package, dynamic);
    let runtimes = runtimes(options, &environment);
    let located = options.search.locate(
        PluginKind::Resource,
        &package.name,
        package.version.as_ref(),
    );
    let start = match (located, dynamic) {
        (Ok(Located::Running { port }), _) => return Ok(Found::Running(port)),
        // The program's own SDK has it, whatever else lies on the search path.
        (_, Some(language)) => Start {
            launch: runtimes.dynamic(language, label)?,
            folder: options.program_folder.clone(),
            severity: Severity::Info,
        },
        (Ok(Located::Program { path }), None) => Start {
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            launch: Launch {
                program: path,
                arguments: vec![options.engine_address.clone().into()],
                directory: options.directory.clone(),
                environment,
            },
            severity: Severity::Debug,
        },
        (Ok(Located::Source { folder }), None) => {
            let file = folder.join("PulumiPlugin.yaml");
            let manifest = Manifest::read(&file).map_err(|source| PluginError::Manifest {
                manifest: file,
                source,
            })?;
            let launch = runtimes.source(Source::Provider, &folder, &manifest, label)?;
            Start {
                launch,
                folder,
                severity: Severity::Debug,
            }
        }
        (Err(source), None) => {
            return Err(PluginError::NotFound {
                plugin: package.name.clone(),
                source,
            });
        }
    };
    refuse_strangers(options, &start, dynamic, label)?;
    Ok(Found::Start(start))
}

/// Plugins run outside of any sandbox, so a tenant's own code may not be one.
fn refuse_strangers(
    options: &HostOptions,
    start: &Start,
    dynamic: Option<Dynamic>,
    label: &str,
) -> Result<(), PluginError> {
    let project = [options.directory.as_path(), &options.program_folder];
    let brought_along = dynamic.is_some() || tenancy::is_brought_along(&start.folder, &project);
    if options.tenancy == Tenancy::Several && brought_along {
        return Err(PluginError::BroughtAlong {
            plugin: label.to_owned(),
        });
    }
    Ok(())
}

pub(crate) fn runtimes<'a>(
    options: &'a HostOptions,
    environment: &'a BTreeMap<OsString, OsString>,
) -> Runtimes<'a> {
    Runtimes {
        python: options.python.as_deref(),
        engine: &options.engine_address,
        program_folder: &options.program_folder,
        directory: &options.directory,
        environment,
    }
}

/// The environment of a provider: what the host gives to all, what this provider shall see under
/// another name, and what the protocol adds.
fn environment(
    options: &HostOptions,
    package: &PackageDescriptor,
    dynamic: Option<Dynamic>,
) -> BTreeMap<OsString, OsString> {
    let own = tenancy::environment(&options.environment, &package.name, options.tenancy);
    let mut environment = own.clone();
    for (ours, theirs) in &package.environment {
        if let Some(value) = own.get(OsStr::new(ours)) {
            environment.insert(theirs.into(), value.clone());
        }
    }
    for (name, value) in &options.runtime_options {
        environment.insert(
            format!("PULUMI_RUNTIME_{}", name.to_uppercase()).into(),
            value.into(),
        );
    }
    if !options.project.is_empty() {
        environment.insert("PULUMI_PROJECT".into(), options.project.clone().into());
        if dynamic == Some(Dynamic::Node) {
            environment.insert(
                "PULUMI_NODEJS_PROJECT".into(),
                options.project.clone().into(),
            );
        }
    }
    if let (Some(_), Some(config)) = (dynamic, &options.config_json) {
        environment.insert("PULUMI_CONFIG".into(), config.into());
    }
    environment
}

fn label(package: &PackageDescriptor) -> String {
    match &package.version {
        Some(version) => format!("the plugin {} {version}", package.name),
        None => format!("the plugin {}", package.name),
    }
}

fn warn_of_other_version(options: &HostOptions, package: &PackageDescriptor, plugin: &Plugin) {
    let Some((wanted, found)) = package.version.as_ref().zip(plugin.version.as_ref()) else {
        return;
    };
    if found.cmp_precedence(wanted).is_ge() {
        return;
    }
    options.events.emit(EngineEvent::Diagnostic(Diagnostic {
        severity: Severity::Warning,
        urn: None,
        message: format!(
            "the plugin {} should have version {wanted} and has {found}: an older one may lie on \
             the search path",
            package.name
        ),
        stream_id: 0,
        ephemeral: false,
    }));
}
