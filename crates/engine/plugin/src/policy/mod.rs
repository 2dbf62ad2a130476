//! Policy packs: plugins that look at resources instead of making them.

mod config;
mod convert;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_engine_files::ProjectFiles;
use nimbus_engine_ports::{
    AnalyzeRequest, Analyzer, AnalyzerError, AnalyzerResource, PolicyDiagnostic, PolicyInfo,
    Remediation, Severity,
};
use nimbus_engine_process::{CodeIsolation, CodeOrigin};
use nimbus_engine_proto as proto;
use nimbus_engine_proto::analyzer_client::AnalyzerClient;
use tonic::{Request, Response, Status};

use crate::error::PluginError;
use crate::link::{CallError, Observed, PluginConnection};
use crate::manifest::PluginManifest;
use crate::options::{HostOptions, PluginTimeouts};
use crate::plugin::{optional, reason};
use crate::process::{PluginOutput, PluginProcess};
use crate::provider::mark_like;
use crate::runtime::PluginSource;
use crate::start::runtimes;
use crate::untrusted::Enclosed;

/// Which pack to run, and what to tell it. It holds secrets, so it cannot be printed.
#[derive(Clone, Default)]
pub struct PolicyPackOptions {
    /// The folder with `PulumiPolicy.yaml`.
    pub folder: PathBuf,
    /// The user's configuration of its policies.
    pub policies: Option<serde_json::Map<String, serde_json::Value>>,
    pub stack: String,
    pub project: String,
    pub organization: String,
    pub dry_run: bool,
    /// The stack's configuration, secrets in the clear.
    pub config: BTreeMap<String, String>,
    pub config_secret_keys: BTreeSet<String>,
    pub tags: BTreeMap<String, String>,
}

/// A policy pack that runs.
pub struct PolicyPack {
    link: PluginConnection,
    info: PolicyInfo,
    /// From the manifest; it goes before what the code says.
    version: Option<String>,
    limits: PluginTimeouts,
    /// Where it runs, if that is a sandbox. Dropped after its process.
    _enclosed: Option<Enclosed>,
}

impl PolicyPack {
    pub(crate) async fn start(
        options: &HostOptions,
        pack: PolicyPackOptions,
    ) -> Result<Self, PluginError> {
        let label = format!("the policy pack in {}", pack.folder.display());
        let refused = |reason| PluginError::Refused {
            plugin: label.clone(),
            reason,
        };
        let file = pack.folder.join("PulumiPolicy.yaml");
        let files = match &options.strangers {
            Some(strangers) => strangers.files_of(&pack.folder).map_err(refused)?,
            None => ProjectFiles::UNRESTRICTED,
        };
        let manifest =
            PluginManifest::read(&files, &file).map_err(|source| PluginError::Manifest {
                manifest: file,
                source,
            })?;
        let environment = environment(options, &pack);
        let launch = runtimes(options, &environment, &files).source(
            PluginSource::PolicyPack,
            &pack.folder,
            &manifest,
            &label,
        )?;
        let output = PluginOutput::new(options.events.clone(), Severity::Info);
        let limit = options.limits.start;
        let not_started = |reason| PluginError::NotStarted {
            plugin: label.clone(),
            reason,
        };
        let (enclosed, process, port) = match &options.strangers {
            Some(strangers) => {
                let (engine, audience) = (&options.engine_address, options.events.clone());
                let enclosed = strangers.enclose(&launch, &pack.folder, engine, audience);
                let mut enclosed = enclosed.await.map_err(not_started)?;
                let started = enclosed.start(&label, output, limit).await;
                let (process, port) = started.map_err(not_started)?;
                (Some(enclosed), process, port)
            }
            None => {
                let (command, origin) = (
                    launch.command(),
                    CodeOrigin::Tenants(CodeIsolation::OwnProject),
                );
                let started = PluginProcess::start(command, origin, &label, output, limit).await;
                let (process, port) = started.map_err(|error| not_started(error.to_string()))?;
                (None, process, port)
            }
        };
        let inside = enclosed
            .as_ref()
            .and_then(|enclosed| enclosed.dialer.as_ref());
        let link = PluginConnection::open(&label, port, Some(process), inside, limit)
            .await
            .map_err(refused)?
            .of_stranger(enclosed.is_some());
        let engine = enclosed
            .as_ref()
            .map_or(&options.engine_address, |enclosed| &enclosed.address);
        let info = greet(&link, options, engine, pack).await.map_err(refused)?;
        let info = PolicyInfo {
            name: info.name,
            version: manifest.version.clone().unwrap_or(info.version),
            // A pack without remediations answers with none.
            supports_remediation: true,
        };
        Ok(Self {
            link,
            info,
            version: manifest.version,
            limits: options.limits,
            _enclosed: enclosed,
        })
    }

    /// Ends the pack's process.
    pub async fn close(&self) {
        if let Some(process) = self.link.process() {
            process.end(self.limits.shutdown).await;
        }
    }

    async fn call<M, R, F>(
        &self,
        method: &'static str,
        message: M,
        send: impl FnOnce(AnalyzerClient<Observed>, Request<M>) -> F,
    ) -> Result<Option<R>, AnalyzerError>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let result = call(&self.link, method, self.limits.quick, message, send).await;
        optional(result).map_err(|error| self.error(reason(error)))
    }

    fn error(&self, message: impl std::fmt::Display) -> AnalyzerError {
        AnalyzerError {
            pack: self.info.name.clone(),
            message: message.to_string(),
        }
    }

    fn diagnostics(
        &self,
        response: Option<proto::AnalyzeResponse>,
    ) -> Result<Vec<PolicyDiagnostic>, AnalyzerError> {
        let diagnostics = response
            .map(|response| response.diagnostics)
            .unwrap_or_default();
        let version = self.version.as_deref();
        diagnostics
            .into_iter()
            .map(|diagnostic| convert::diagnostic(diagnostic, version))
            .collect::<Result<_, _>>()
            .map_err(|error| self.error(error))
    }
}

#[async_trait]
impl Analyzer for PolicyPack {
    fn info(&self) -> &PolicyInfo {
        &self.info
    }

    async fn analyze(
        &self,
        request: &AnalyzeRequest,
    ) -> Result<Vec<PolicyDiagnostic>, AnalyzerError> {
        let message = convert::request(request, convert::VISIBLE).map_err(|e| self.error(e))?;
        let send =
            |mut client: AnalyzerClient<_>, request| async move { client.analyze(request).await };
        let response = self.call("Analyze", message, send).await?;
        self.diagnostics(response)
    }

    async fn remediate(&self, request: &AnalyzeRequest) -> Result<Vec<Remediation>, AnalyzerError> {
        // What comes back replaces the inputs, so internal ones must take part.
        let message = convert::request(request, convert::WHOLE).map_err(|e| self.error(e))?;
        let send =
            |mut client: AnalyzerClient<_>, request| async move { client.remediate(request).await };
        let response: Option<proto::RemediateResponse> =
            self.call("Remediate", message, send).await?;
        let remediations = response
            .map(|response| response.remediations)
            .unwrap_or_default();
        let version = self.version.as_deref();
        let mut remedies = remediations
            .into_iter()
            .map(|remediation| convert::remediation(remediation, version))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| self.error(error))?;
        // A policy that copies properties loses their marks.
        let corrected = remedies
            .iter_mut()
            .filter_map(|remedy| remedy.properties.as_mut());
        corrected.for_each(|properties| mark_like(properties, &request.properties));
        Ok(remedies)
    }

    async fn analyze_stack(
        &self,
        resources: &[AnalyzerResource],
    ) -> Result<Vec<PolicyDiagnostic>, AnalyzerError> {
        let resources = resources
            .iter()
            .map(convert::resource)
            .collect::<Result<_, _>>();
        let resources = resources.map_err(|error| self.error(error))?;
        let message = proto::AnalyzeStackRequest { resources };
        let send = |mut client: AnalyzerClient<_>, request| async move {
            client.analyze_stack(request).await
        };
        let response = self.call("AnalyzeStack", message, send).await?;
        self.diagnostics(response)
    }

    async fn cancel(&self) {
        let send =
            |mut client: AnalyzerClient<_>, request| async move { client.cancel(request).await };
        // A pack that does not listen is ended with the run.
        let _ = call(&self.link, "Cancel", self.limits.shutdown, (), send).await;
    }
}

/// Everything that a pack must hear and say before it can be asked.
async fn greet(
    link: &PluginConnection,
    options: &HostOptions,
    engine_address: &str,
    pack: PolicyPackOptions,
) -> Result<proto::AnalyzerInfo, String> {
    let folder = pack.folder.display().to_string();
    let handshake = proto::AnalyzerHandshakeRequest {
        engine_address: engine_address.to_owned(),
        root_directory: Some(folder.clone()),
        program_directory: Some(folder),
    };
    let stack = proto::AnalyzerStackConfigureRequest {
        stack: pack.stack,
        project: pack.project,
        organization: pack.organization,
        dry_run: pack.dry_run,
        config: pack.config,
        config_secret_keys: pack.config_secret_keys.into_iter().collect(),
        tags: pack.tags,
    };
    let limits = options.limits;
    let result = call(
        link,
        "Handshake",
        limits.start,
        handshake,
        |mut client, request| async move { client.handshake(request).await },
    );
    optional(result.await).map_err(reason)?;
    let result = call(
        link,
        "ConfigureStack",
        limits.quick,
        stack,
        |mut client, request| async move { client.configure_stack(request).await },
    );
    optional(result.await).map_err(reason)?;
    let result = call(
        link,
        "GetAnalyzerInfo",
        limits.quick,
        (),
        |mut client, request| async move { client.get_analyzer_info(request).await },
    );
    let info = result.await.map_err(reason)?;
    configure_policies(link, limits, &info, pack.policies).await?;
    Ok(info)
}

async fn configure_policies(
    link: &PluginConnection,
    limits: PluginTimeouts,
    info: &proto::AnalyzerInfo,
    given: Option<serde_json::Map<String, serde_json::Value>>,
) -> Result<(), String> {
    if !info.supports_config {
        return match given {
            Some(_) => Err("it takes no configuration, and one was given".to_owned()),
            None => Ok(()),
        };
    }
    let settled = config::parse(&given.unwrap_or_default())
        .and_then(|given| config::reconcile(info, given))?;
    let message = config::to_message(settled);
    let result = call(
        link,
        "Configure",
        limits.quick,
        message,
        |mut client, request| async move { client.configure(request).await },
    );
    result.await.map_err(reason)
}

async fn call<M, R, F>(
    link: &PluginConnection,
    method: &'static str,
    limit: Duration,
    message: M,
    send: impl FnOnce(AnalyzerClient<Observed>, Request<M>) -> F,
) -> Result<R, CallError>
where
    F: Future<Output = Result<Response<R>, Status>>,
{
    let client = link.analyzer();
    link.call(method, limit, message, |request| send(client, request))
        .await
}

/// Packs read what they run for from their environment; the calls above came later.
fn environment(options: &HostOptions, pack: &PolicyPackOptions) -> BTreeMap<OsString, OsString> {
    let mut environment = options.environment.clone();
    let facts = [
        ("ORGANIZATION", pack.organization.as_str()),
        ("PROJECT", &pack.project),
        ("STACK", &pack.stack),
        ("DRY_RUN", if pack.dry_run { "true" } else { "false" }),
    ];
    for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        environment.insert(format!("PULUMI_{name}").into(), value.into());
        environment.insert(format!("PULUMI_NODEJS_{name}").into(), value.into());
    }
    let config: serde_json::Map<_, _> = pack
        .config
        .iter()
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect();
    let config = serde_json::Value::Object(config).to_string();
    environment.insert("PULUMI_CONFIG".into(), config.into());
    environment
}
