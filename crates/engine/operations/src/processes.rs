//! Launches real processes: plugins, policy packs and the program itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::{PASSPHRASE, PASSPHRASE_FILE};
use nimbus_engine_language::{
    LanguageProgram, ProgramEnvironment, ProgramPorts, ProgramSpec, ProjectTrust, Runtime,
    TypeChecker, WarmStarts, default_packages, install_dependencies, install_python_dependencies,
    python_environment,
};
use nimbus_engine_model::PackageDescriptor;
use nimbus_engine_monitor::{
    BuiltinProvider, EngineEndpoint, HookRegistry, Listen, OwnFiles, OwnFilesHost, RunningResources,
};
use nimbus_engine_plugin::{
    HostOptions, KeepWarm, PluginHost, PluginSearch, PluginTimeouts, ProviderPool, SharedPlugins,
    Tenancy, UntrustedCode,
};
use nimbus_engine_ports::{
    Analyzer, Diagnostic, EngineEvent, EventSink, HookRunner, Program, ProviderHost, Severity,
};
use nimbus_engine_sandbox::{ProgramNetwork, Sandbox, SandboxSettings, code_of_program};

use crate::assets;
use crate::callback_servers::CallbackPorts;
use crate::host::BuiltInHost;
use crate::isolation;
use crate::project_parts::{
    Language, config_json, pack_options, program_folder, project_plugins, runtime_options,
};
use crate::request::{OperationOptions, PackagePolicy};
use crate::required::packages_of;
use crate::runtime::{OperationRuntime, RuntimeLauncher, RuntimeSetup};

/// How long a program may take to end when asked to.
const PROGRAM_GRACE: Duration = Duration::from_secs(10);

/// Variables that open the stack's secrets; programs get their configuration opened instead.
const NOT_FOR_PROGRAMS: [&str; 2] = [PASSPHRASE, PASSPHRASE_FILE];

/// Starts processes with this environment. Clones share their plugins.
#[derive(Clone)]
pub struct Processes {
    environment: BTreeMap<OsString, OsString>,
    limits: PluginTimeouts,
    /// Stands in for every plugin.
    simulated: Option<Arc<dyn ProviderHost>>,
    /// One for all programs that are started from here: they have most of the work in common.
    checker: Option<Arc<TypeChecker>>,
    /// The same for processes that are started ahead.
    warm: Arc<WarmStarts>,
    /// Plugins that outlive the operation they were started for.
    shared: SharedPlugins,
}

impl Processes {
    /// With the environment of this process.
    pub fn new() -> Self {
        let environment = std::env::vars_os().collect();
        let checker = typescript_cache(&environment).map(|cache| TypeChecker::new(&cache));
        Self {
            environment,
            limits: PluginTimeouts::default(),
            simulated: None,
            checker: checker.map(Arc::new),
            warm: Arc::new(WarmStarts::when_idle()),
            shared: shared_plugins(KeepWarm::FOR_A_RUN),
        }
    }

    /// For a server: plugins that nobody uses stay for some minutes.
    pub fn in_server() -> Self {
        Self {
            shared: shared_plugins(KeepWarm::FOR_A_SERVER),
            ..Self::new()
        }
    }

    /// For operations of this owner. Owners share no plugin, even if everything else is equal.
    pub fn owned_by(&self, owner: impl Into<String>) -> Self {
        let mut own = self.clone();
        own.shared.owner = owner.into();
        own
    }

    /// Shares plugins of these packages between programs in different folders.
    pub fn sharing(mut self, packages: impl IntoIterator<Item = String>) -> Self {
        self.shared.everywhere = Arc::new(packages.into_iter().collect());
        self
    }

    /// With these variables and no others: for operations of somebody who is not the operator.
    pub fn with_variables(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.environment = variables.into_iter().collect();
        self
    }

    /// Ends all plugins, those of clones too. Nothing can be run afterwards.
    pub async fn close(&self) {
        self.shared.pool.close().await;
    }

    /// With providers that are not plugins, as in a rehearsal. The program is the real one.
    pub fn simulating(providers: Arc<dyn ProviderHost>) -> Self {
        Self {
            simulated: Some(providers),
            ..Self::new()
        }
    }
}

impl Default for Processes {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl RuntimeLauncher for Processes {
    async fn set_up(&self, setup: RuntimeSetup<'_>) -> Result<Box<dyn OperationRuntime>> {
        let language = Language::of(&setup.workspace.project, setup.request.needs_program())?;
        let isolation = ProgramIsolation::of(&setup).await?;
        self.dependencies(&setup, language.as_ref()).await?;
        let packages = self
            .packages(&setup, language.as_ref(), &isolation.trust)
            .await?;
        let endpoint =
            EngineEndpoint::start(&Listen::Loopback, Arc::clone(&setup.events), None).await;
        let endpoint = endpoint.map_err(|error| {
            Error::new(ErrorCode::INTERNAL, "no local port can be opened").with_source(error)
        })?;
        let options = self
            .host_options(&setup, language.as_ref(), endpoint.address(), &isolation)
            .await?;
        let plugins = Arc::new(PluginHost::new(options));
        let resources = Arc::new(RunningResources::default());
        let builtin = BuiltinProvider::new(Arc::clone(&setup.stacks), Arc::clone(&resources));
        let hooks = Arc::new(HookRegistry::new(Arc::clone(&setup.events)));
        let providers = match &self.simulated {
            Some(simulated) => Arc::clone(simulated),
            None => Arc::clone(&plugins) as _,
        };
        let providers = isolation.own_files_only(providers, &setup);
        let mut running = RunningProcesses {
            endpoint,
            host: Arc::new(BuiltInHost::new(builtin, providers)),
            plugins,
            hooks,
            analyzers: Vec::new(),
            program: None,
            packages,
        };
        match self
            .complete(&mut running, setup, language, resources, isolation)
            .await
        {
            Ok(()) => Ok(Box::new(running)),
            Err(error) => {
                Box::new(running).tear_down().await;
                Err(error)
            }
        }
    }
}

impl Processes {
    /// What needs plugins to be there already: policy packs and the program.
    async fn complete(
        &self,
        running: &mut RunningProcesses,
        setup: RuntimeSetup<'_>,
        language: Option<Language>,
        resources: Arc<RunningResources>,
        isolation: ProgramIsolation,
    ) -> Result<()> {
        for pack in &setup.request.options.policy_packs {
            let pack = running
                .plugins
                .start_policy_pack(pack_options(pack, &setup)?)
                .await?;
            running.analyzers.push(pack);
        }
        let Some(language) = language.filter(|_| setup.request.needs_program()) else {
            return Ok(());
        };
        let sandboxed = setup.request.options.sandbox.as_ref();
        let network = sandboxed.map_or(ProgramNetwork::Full, |settings| settings.network);
        let ports = ProgramPorts {
            events: Arc::clone(&setup.events),
            hooks: Arc::clone(&running.hooks),
            assets: assets::reader(network),
            resources,
            cancel: setup.cancellation.stop_token().clone(),
        };
        let trust = isolation.trust.clone();
        let spec = self.program_spec(setup, language, running.packages.clone(), isolation);
        let program = LanguageProgram::prepare(spec, ports).await;
        let program = program.map_err(|error| error.explained(&trust))?;
        running.program = Some(Arc::new(program));
        Ok(())
    }

    fn program_spec(
        &self,
        setup: RuntimeSetup<'_>,
        language: Language,
        packages: BTreeMap<String, PackageDescriptor>,
        isolation: ProgramIsolation,
    ) -> ProgramSpec {
        let mut environment = self.environment.clone();
        environment.retain(|name, _| !NOT_FOR_PROGRAMS.iter().any(|hidden| name == hidden));
        let project = &setup.workspace.project;
        let sandbox = setup.request.options.sandbox.as_ref();
        let readable = sandbox.map(|settings| settings.roots.clone());
        ProgramSpec {
            runtime: language.runtime,
            options: language.options,
            root: project.directory().to_owned(),
            main: project.main.clone(),
            context: setup.context,
            args: setup.request.options.program_arguments.clone(),
            environment: ProgramEnvironment::Only(environment),
            listen: Listen::Loopback,
            typescript_cache: typescript_cache(&self.environment),
            transpile_only: setup.request.options.transpile_only,
            checker: self.checker.clone(),
            warm: Some(Arc::clone(&self.warm)),
            packages,
            files: isolation.trust.files().clone(),
            sandbox: isolation.sandbox,
            readable: readable.unwrap_or_default(),
            grace: PROGRAM_GRACE,
        }
    }

    /// Packages that are missing are installed from the lock file. In a sandbox nothing is run for
    /// the program outside of it.
    async fn dependencies(
        &self,
        setup: &RuntimeSetup<'_>,
        language: Option<&Language>,
    ) -> Result<()> {
        let sandboxed = setup.request.options.sandbox.is_some();
        let installs = setup.request.options.packages == PackagePolicy::Install;
        let wanted = setup.request.needs_program() && installs && !sandboxed;
        let cache = cache(&self.environment).filter(|_| wanted);
        let (Some(cache), Some(language)) = (cache, language) else {
            return Ok(());
        };
        let (project, events) = (&setup.workspace.project, setup.events.as_ref());
        let folder = program_folder(project);
        match language.runtime {
            Runtime::Node => install_dependencies(&folder, &cache, events).await?,
            Runtime::Python => {
                let root = project.directory();
                install_python_dependencies(root, &folder, &language.options, &cache, events)
                    .await?
            }
        };
        Ok(())
    }

    /// What the program's installed packages need. What cannot be understood is told and skipped.
    async fn packages(
        &self,
        setup: &RuntimeSetup<'_>,
        language: Option<&Language>,
        trust: &ProjectTrust,
    ) -> Result<BTreeMap<String, PackageDescriptor>> {
        let Some(language) = language else {
            return Ok(BTreeMap::new());
        };
        let project = &setup.workspace.project;
        let needed = setup.request.needs_program();
        let found = packages_of(project, language, needed, trust).await?;
        for problem in &found.problems {
            warn(setup.events.as_ref(), problem);
        }
        Ok(default_packages(&found.packages))
    }

    async fn host_options(
        &self,
        setup: &RuntimeSetup<'_>,
        language: Option<&Language>,
        engine_address: &str,
        isolation: &ProgramIsolation,
    ) -> Result<HostOptions> {
        let project = &setup.workspace.project;
        let folder = program_folder(project);
        let python = match language {
            Some(language) if language.runtime == Runtime::Python => {
                let (root, trust) = (project.directory(), &isolation.trust);
                let found = python_environment(root, &folder, &language.options, trust);
                match found.await {
                    Ok(environment) => Some(environment.interpreter().to_owned()),
                    Err(_) if !setup.request.needs_program() => None,
                    Err(error) => return Err(error.explained(&isolation.trust)),
                }
            }
            _ => None,
        };
        let search = PluginSearch::from_environment(&self.environment, project_plugins(project)?)
            .map_err(|error| Error::new(ErrorCode::PLUGIN_NOT_FOUND, error.to_string()))?;
        Ok(HostOptions {
            engine_address: engine_address.to_owned(),
            project: project.name.clone(),
            directory: project.directory().to_owned(),
            program_folder: folder,
            python,
            runtime_options: runtime_options(project),
            config_json: Some(config_json(&setup.config.values)),
            environment: self.environment.clone(),
            tenancy: tenancy(setup.request.options.sandbox.as_ref()),
            strangers: isolation.strangers_code(&setup.request.options),
            search,
            limits: self.limits,
            shared: Some(self.shared.clone()),
            events: Arc::clone(&setup.events),
        })
    }
}

/// How the program of one operation is kept from everything else.
struct ProgramIsolation {
    sandbox: Option<Sandbox>,
    trust: ProjectTrust,
}

impl ProgramIsolation {
    async fn of(setup: &RuntimeSetup<'_>) -> Result<Self> {
        let settings = setup.request.options.sandbox.as_ref();
        let sandbox = match settings {
            Some(settings) => {
                let decided = isolation::decide(settings.clone()).await?;
                if let Some(warning) = &decided.warning {
                    warn(setup.events.as_ref(), warning);
                }
                Some(decided.sandbox)
            }
            None => None,
        };
        let root = setup.workspace.project.directory();
        let trust = ProjectTrust::of(settings, sandbox.as_ref(), root)?;
        Ok(Self { sandbox, trust })
    }

    /// The same providers, which a stranger's project cannot have read what is not its own.
    fn own_files_only(
        &self,
        providers: Arc<dyn ProviderHost>,
        setup: &RuntimeSetup<'_>,
    ) -> Arc<dyn ProviderHost> {
        let files = self.trust.files();
        if !files.is_restricted() {
            return providers;
        }
        let project = &setup.workspace.project;
        let sandbox = setup.request.options.sandbox.as_ref();
        let network = sandbox.map_or(ProgramNetwork::None, |settings| settings.network);
        let (root, folder) = (project.directory().to_owned(), program_folder(project));
        // Of the operator's roots, what the program is shown. One that is shown nothing is not run.
        let shown = code_of_program(files, &root, &folder).unwrap_or_default();
        let own = OwnFiles {
            files: files.only(&shown),
            folders: vec![root, folder],
            reaches_out: assets::reader(network).reaches_out(),
        };
        Arc::new(OwnFilesHost::new(providers, own))
    }

    /// Where dynamic providers and policy packs run, if they are strangers'.
    fn strangers_code(&self, options: &OperationOptions) -> Option<UntrustedCode> {
        let (settings, sandbox) = (options.sandbox.as_ref()?, self.sandbox.clone()?);
        sandbox.is_strict().then(|| UntrustedCode {
            sandbox,
            roots: settings.roots.clone(),
            servers: Arc::new(CallbackPorts),
        })
    }
}

fn shared_plugins(keep: KeepWarm) -> SharedPlugins {
    SharedPlugins {
        pool: ProviderPool::new(keep, PluginTimeouts::default(), Arc::new(CallbackPorts)),
        owner: String::new(),
        everywhere: SharedPlugins::reviewed(),
    }
}

/// A strict sandbox is for programs of strangers, and their plugins are treated accordingly.
pub(crate) fn tenancy(sandbox: Option<&SandboxSettings>) -> Tenancy {
    match sandbox {
        Some(sandbox) if sandbox.is_strict() => Tenancy::Several {
            providers: sandbox.allowances.providers.clone(),
        },
        Some(_) | None => Tenancy::Single,
    }
}

/// In the user's own cache, so that nobody else can put compiled code there.
fn typescript_cache(environment: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    cache(environment).map(|cache| cache.join("typescript"))
}

fn cache(environment: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let variable = |name: &str| {
        let value = environment.get(&OsString::from(name));
        value.filter(|value| !value.is_empty()).map(PathBuf::from)
    };
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    cache.map(|cache| cache.join("nimbus"))
}

struct RunningProcesses {
    endpoint: EngineEndpoint,
    plugins: Arc<PluginHost>,
    host: Arc<BuiltInHost>,
    hooks: Arc<HookRegistry>,
    analyzers: Vec<Arc<dyn Analyzer>>,
    program: Option<Arc<dyn Program>>,
    packages: BTreeMap<String, PackageDescriptor>,
}

#[async_trait]
impl OperationRuntime for RunningProcesses {
    fn host(&self) -> Arc<dyn ProviderHost> {
        Arc::clone(&self.host) as _
    }

    fn hooks(&self) -> Arc<dyn HookRunner> {
        Arc::clone(&self.hooks) as _
    }

    fn analyzers(&self) -> Vec<Arc<dyn Analyzer>> {
        self.analyzers.clone()
    }

    fn program(&self) -> Option<Arc<dyn Program>> {
        self.program.clone()
    }

    fn packages(&self) -> &BTreeMap<String, PackageDescriptor> {
        &self.packages
    }

    async fn tear_down(self: Box<Self>) {
        drop(self.program);
        self.plugins.shutdown().await;
        self.endpoint.stop().await;
    }
}

fn warn(events: &dyn EventSink, message: &str) {
    events.emit(EngineEvent::Diagnostic(Diagnostic {
        severity: Severity::Warning,
        urn: None,
        message: message.to_owned(),
        stream_id: 0,
        ephemeral: false,
    }));
}
