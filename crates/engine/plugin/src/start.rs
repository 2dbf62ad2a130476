//! From a package to a plugin that has been reached.
//!
//! First a plan is made, which says everything that the process depends on, so that one that is
//! there already can be used instead.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroU16;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nimbus_engine_files::ProjectFiles;
use nimbus_engine_model::{PackageDescriptor, PropertyMap};
use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use nimbus_engine_process::CodeOrigin;
use semver::Version;

use crate::error::PluginError;
use crate::folder;
use crate::lookup::{Located, PluginKind};
use crate::manifest::PluginManifest;
use crate::options::{HostOptions, PluginTimeouts};
use crate::plugin::{Greeting, Plugin};
use crate::pool::{DigestFields, KeyDigest};
use crate::process::{LaunchProgram, PluginLaunch, PluginOutput, PluginProcess};
use crate::runtime::{Dynamic, PluginSource, Runtimes};
use crate::sharing::SharingReach;
use crate::tenancy::{self, Tenancy};
use crate::untrusted::UntrustedCode;

/// Files in the home folder from which providers take credentials without being told.
const CREDENTIALS: &[&str] = &[
    ".aws/config",
    ".aws/credentials",
    ".azure/msal_token_cache.json",
    ".config/gcloud/application_default_credentials.json",
    ".kube/config",
];

/// What to start, and where it is.
#[derive(Clone)]
struct StartCommand {
    launch: PluginLaunch,
    folder: PathBuf,
    /// How loud what it prints is: compiled providers log through the engine, so their own output
    /// is for debugging; what a dynamic provider prints is the user's.
    severity: Severity,
    /// Compiled plugins have the engine's address as their only argument. It is not known before
    /// they are started.
    compiled: bool,
    /// A stranger's code, and where it runs.
    strangers: Option<UntrustedCode>,
}

#[derive(Clone)]
enum PluginStart {
    Running(NonZeroU16),
    Start(Box<StartCommand>),
}

/// How the provider of a package is started. It holds an environment, so it cannot be printed.
#[derive(Clone)]
pub(crate) struct StartPlan {
    label: String,
    package: PackageDescriptor,
    found: PluginStart,
    reach: SharingReach,
    /// It runs where no file of the program is.
    away: bool,
    tenancy: Tenancy,
    limits: PluginTimeouts,
}

impl StartPlan {
    /// Finds the provider of a package. Its process will be shared as widely as is right, and no
    /// wider than `widest`.
    pub(crate) fn new(
        options: &HostOptions,
        package: &PackageDescriptor,
        widest: SharingReach,
    ) -> Result<Self, PluginError> {
        let label = label(package);
        if let Some(why) = options.tenancy.refuses(package) {
            let plugin = label;
            return Err(PluginError::NotAllowed { plugin, why });
        }
        let (found, reach) = locate(options, package, &label, widest)?;
        let away = match &found {
            PluginStart::Running(_) => false,
            PluginStart::Start(start) => {
                reach == SharingReach::Everywhere || start.is_kept_away(options)
            }
        };
        Ok(Self {
            away,
            label,
            package: package.clone(),
            found,
            reach,
            tenancy: options.tenancy.clone(),
            limits: options.limits,
        })
    }

    pub(crate) fn not_started(&self, reason: &str) -> PluginError {
        PluginError::NotStarted {
            plugin: self.label.clone(),
            reason: reason.to_owned(),
        }
    }

    pub(crate) fn reach(&self) -> SharingReach {
        self.reach
    }

    /// Whether it runs in another folder than the program's.
    pub(crate) fn runs_elsewhere(&self) -> bool {
        self.away
    }

    /// Why its provider may not be given these inputs.
    pub(crate) fn refuses_inputs(&self, inputs: &PropertyMap) -> Option<String> {
        self.tenancy.refuses_inputs(&self.package.name, inputs)
    }

    /// Everything that makes the process what it is, before it is configured.
    pub(crate) fn digest(&self, mut fields: DigestFields, owner: &str) -> KeyDigest {
        let package = &self.package;
        fields.add(owner);
        fields.add(self.reach.as_str());
        self.tenancy.add_to(&mut fields);
        fields.add(&package.name).add(&package.download_url);
        fields.add_optional(package.version.as_ref().map(Version::to_string));
        for (platform, checksum) in &package.checksums {
            fields.add(platform).add(checksum);
        }
        if let Some(parameter) = &package.parameterization {
            fields.add(&parameter.name).add(&parameter.value);
            fields.add(parameter.version.to_string());
        }
        match &self.found {
            PluginStart::Running(port) => {
                fields.add("running").add(port.get().to_le_bytes());
            }
            PluginStart::Start(start) => {
                fields.add("start").add_path(start.launch.program.path());
                fields.add_stamp(start.launch.program.path());
                fields.add_path(&start.launch.directory);
                for argument in &start.launch.arguments {
                    fields.add(argument.as_bytes());
                }
                let environment = &start.launch.environment;
                fields.add_variables(environment);
                if let Some(home) = environment.get(OsStr::new("HOME")) {
                    for file in CREDENTIALS {
                        fields.add_stamp(&Path::new(home).join(file));
                    }
                }
            }
        }
        fields.digest()
    }

    /// Starts and greets the provider, which finds the engine at this address.
    pub(crate) async fn start(
        self,
        engine_address: String,
        audience: Arc<dyn EventSink>,
    ) -> Result<Plugin, PluginError> {
        let label = self.label;
        let mut engine_address = engine_address;
        let mut enclosed = None;
        let (port, process, folder) = match self.found {
            PluginStart::Running(port) => (port, None, None),
            PluginStart::Start(start) if start.strangers.is_some() => {
                let not_started = |reason| PluginError::NotStarted {
                    plugin: label.clone(),
                    reason,
                };
                let output = PluginOutput::new(Arc::clone(&audience), start.severity);
                let StartCommand {
                    launch,
                    folder,
                    strangers,
                    ..
                } = *start;
                let prepared = match &strangers {
                    Some(strangers) => {
                        let root = &launch.directory;
                        let audience = Arc::clone(&audience);
                        strangers
                            .enclose(&launch, root, &engine_address, audience)
                            .await
                    }
                    None => Err("it has no sandbox".to_owned()),
                };
                let mut prepared = prepared.map_err(not_started)?;
                let started = prepared.start(&label, output, self.limits.start).await;
                let (process, port) = started.map_err(not_started)?;
                engine_address.clone_from(&prepared.address);
                enclosed = Some(prepared);
                (port, Some(process), Some(folder))
            }
            PluginStart::Start(mut start) => {
                let output = PluginOutput::new(Arc::clone(&audience), start.severity);
                if start.compiled {
                    start.launch.arguments.push(engine_address.clone().into());
                }
                let (command, patience) = (start.launch.command(), self.limits.start);
                let origin = CodeOrigin::Operators;
                let started = PluginProcess::start(command, origin, &label, output, patience).await;
                let (process, port) = started.map_err(|error| PluginError::NotStarted {
                    plugin: label.clone(),
                    reason: error.to_string(),
                })?;
                (port, Some(process), Some(start.folder))
            }
        };
        let greeting = Greeting {
            label: &label,
            engine_address: &engine_address,
            folder,
            parameterization: self.package.parameterization.as_ref(),
            knows_itself: self.reach != SharingReach::Everywhere,
            limits: self.limits,
        };
        let plugin = Plugin::reach(port, process, enclosed, &greeting).await;
        let plugin = plugin.map_err(|reason| PluginError::Refused {
            plugin: label,
            reason,
        })?;
        warn_of_other_version(audience.as_ref(), &self.package, &plugin);
        Ok(plugin)
    }
}

fn locate(
    options: &HostOptions,
    package: &PackageDescriptor,
    label: &str,
    widest: SharingReach,
) -> Result<(PluginStart, SharingReach), PluginError> {
    let dynamic = Dynamic::of_package(&package.name);
    let kind = PluginKind::Resource;
    let version = package.version.as_ref();
    let located = options.search.locate(kind, &package.name, version);
    let environment = environment(options, package, dynamic);
    let files = match (dynamic, &options.strangers) {
        (Some(_), Some(strangers)) => strangers.files_of(&options.directory),
        _ => Ok(ProjectFiles::UNRESTRICTED),
    };
    let files = files.map_err(|reason| PluginError::NotStarted {
        plugin: label.to_owned(),
        reason,
    })?;
    let runtimes = runtimes(options, &environment, &files);
    let start = match (located, dynamic) {
        (Ok(Located::Running { port }), _) => {
            return Ok((PluginStart::Running(port), SharingReach::Operation));
        }
        // The program's own SDK has it, whatever else lies on the search path.
        (_, Some(language)) => StartCommand {
            launch: runtimes.dynamic(language, label)?,
            folder: options.program_folder.clone(),
            severity: Severity::Info,
            compiled: false,
            strangers: options.strangers.clone(),
        },
        (Ok(Located::Program { path }), None) => StartCommand {
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            launch: PluginLaunch {
                program: LaunchProgram::OnPath(path),
                arguments: Vec::new(),
                directory: options.directory.clone(),
                environment,
            },
            severity: Severity::Debug,
            compiled: true,
            strangers: None,
        },
        (Ok(Located::Source { folder }), None) => {
            let file = folder.join("PulumiPlugin.yaml");
            let manifest =
                PluginManifest::read(&files, &file).map_err(|source| PluginError::Manifest {
                    manifest: file,
                    source,
                })?;
            let launch = runtimes.source(PluginSource::Provider, &folder, &manifest, label)?;
            StartCommand {
                launch,
                folder,
                severity: Severity::Debug,
                compiled: false,
                strangers: None,
            }
        }
        (Err(source), None) => {
            return Err(PluginError::NotFound {
                plugin: package.name.clone(),
                source,
            });
        }
    };
    refuse_strangers(options, package, &start, label)?;
    let reach = reach(options, package, &start).min(widest);
    let start = match reach {
        SharingReach::Everywhere => start.anywhere(options),
        SharingReach::Operation | SharingReach::Folder if start.is_kept_away(options) => {
            start.anywhere(options)
        }
        SharingReach::Operation | SharingReach::Folder => start,
    };
    Ok((PluginStart::Start(Box::new(start)), reach))
}

impl StartCommand {
    /// Interpreters and tools take settings and modules from the folder that they run in. A plugin that
    /// runs outside of the sandbox does not run where a stranger's files are.
    fn is_kept_away(&self, options: &HostOptions) -> bool {
        options.tenancy != Tenancy::Single && self.strangers.is_none()
    }

    /// Runs where no file of a program is, and without knowing of any program.
    fn anywhere(mut self, options: &HostOptions) -> Self {
        self.launch.directory.clone_from(&self.folder);
        let of_program = program_variables(options);
        let environment = &mut self.launch.environment;
        environment.retain(|name, _| !of_program.contains_key(name));
        self
    }
}

/// How widely the process may be shared, as far as its start says.
fn reach(options: &HostOptions, package: &PackageDescriptor, start: &StartCommand) -> SharingReach {
    let Some(shared) = &options.shared else {
        return SharingReach::Operation;
    };
    let project = [options.directory.as_path(), &options.program_folder];
    let kind = PluginKind::Resource;
    let version = package.version.as_ref();
    let projects_own = options.search.is_in_project(kind, &package.name, version)
        || tenancy::is_brought_along(&start.folder, &project);
    if !start.compiled || projects_own {
        return SharingReach::Operation;
    }
    let reviewed = package.parameterization.is_none() && shared.everywhere.contains(&package.name);
    let mut variables = start.launch.environment.values();
    let names_folder = |value: &OsString| {
        let text = value.to_str();
        text.is_some_and(|text| folder::text_names(&options.directory, text))
    };
    if reviewed && !variables.any(names_folder) {
        SharingReach::Everywhere
    } else {
        SharingReach::Folder
    }
}

/// Plugins run outside of any sandbox and hold credentials, so where programs are strangers' they
/// come from the operator's own folders, whatever a project, a package or a state says.
fn refuse_strangers(
    options: &HostOptions,
    package: &PackageDescriptor,
    start: &StartCommand,
    label: &str,
) -> Result<(), PluginError> {
    if options.tenancy == Tenancy::Single || start.strangers.is_some() {
        return Ok(());
    }
    let refused = |why: String| PluginError::BroughtAlong {
        plugin: label.to_owned(),
        why,
    };
    let (kind, version) = (PluginKind::Resource, package.version.as_ref());
    if options.search.is_in_project(kind, &package.name, version) {
        let why = "Pulumi.yaml says where it is";
        return Err(refused(why.to_owned()));
    }
    let project = [options.directory.as_path(), &options.program_folder];
    // Of a plugin in source its folder counts: what interprets it is found on the search path.
    let plugin = match start.compiled {
        true => start.launch.program.path(),
        false => start.folder.as_path(),
    };
    tenancy::check_operators(plugin, &options.search, &project).map_err(refused)
}

pub(crate) fn runtimes<'a>(
    options: &'a HostOptions,
    environment: &'a BTreeMap<OsString, OsString>,
    files: &'a ProjectFiles,
) -> Runtimes<'a> {
    Runtimes {
        python: options.python.as_deref(),
        engine: &options.engine_address,
        program_folder: &options.program_folder,
        directory: &options.directory,
        environment,
        files,
    }
}

/// The environment of a provider: what the host gives to all, what this provider shall see under
/// another name, and what the protocol adds.
fn environment(
    options: &HostOptions,
    package: &PackageDescriptor,
    dynamic: Option<Dynamic>,
) -> BTreeMap<OsString, OsString> {
    let own = tenancy::environment(&options.environment, &package.name, &options.tenancy);
    let mut environment = own.clone();
    for (ours, theirs) in &package.environment {
        // Programs say this, and a name such as LD_PRELOAD is not theirs to give.
        if !tenancy::may_have(OsStr::new(theirs), &package.name, &options.tenancy) {
            continue;
        }
        if let Some(value) = own.get(OsStr::new(ours)) {
            environment.insert(theirs.into(), value.clone());
        }
    }
    environment.extend(program_variables(options));
    if !options.project.is_empty() && dynamic == Some(Dynamic::Node) {
        environment.insert(
            "PULUMI_NODEJS_PROJECT".into(),
            options.project.clone().into(),
        );
    }
    if let (Some(_), Some(config)) = (dynamic, &options.config_json) {
        environment.insert("PULUMI_CONFIG".into(), config.into());
    }
    environment
}

/// What plugins are told about the program that they serve.
fn program_variables(options: &HostOptions) -> BTreeMap<OsString, OsString> {
    let runtime = options.runtime_options.iter().map(|(name, value)| {
        let name = format!("PULUMI_RUNTIME_{}", name.to_uppercase());
        (name.into(), value.into())
    });
    let project = (!options.project.is_empty())
        .then(|| ("PULUMI_PROJECT".into(), options.project.clone().into()));
    runtime.chain(project).collect()
}

fn label(package: &PackageDescriptor) -> String {
    match &package.version {
        Some(version) => format!("the plugin {} {version}", package.name),
        None => format!("the plugin {}", package.name),
    }
}

fn warn_of_other_version(audience: &dyn EventSink, package: &PackageDescriptor, plugin: &Plugin) {
    let Some((wanted, found)) = package.version.as_ref().zip(plugin.version.as_ref()) else {
        return;
    };
    if found.cmp_precedence(wanted).is_ge() {
        return;
    }
    audience.emit(EngineEvent::Diagnostic(Diagnostic {
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
