//! A provider plugin that has been reached: greeted, parameterised, not configured.

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use nimbus_engine_model::Parameterization;
use nimbus_engine_proto as proto;
use proto::parameterize_request::{Parameters, ParametersValue};
use semver::Version;
use tonic::Code;

use crate::link::{CallError, PluginConnection};
use crate::lookup::parse_version;
use crate::options::PluginTimeouts;
use crate::process::PluginProcess;
use crate::untrusted::Enclosed;

pub(crate) struct Plugin {
    pub(crate) link: PluginConnection,
    /// What the plugin said in the handshake; older ones say it when they are configured.
    pub(crate) protocol: Option<Protocol>,
    /// As the plugin itself reports it.
    pub(crate) version: Option<Version>,
    /// Serves the address at which the plugin finds the engine, if it has one of its own.
    pub(crate) engine: Option<Box<dyn Send + Sync>>,
    /// The extensions of its package that it was told of. Held while it is told, so that nobody asks
    /// for one before it is served.
    extensions: tokio::sync::Mutex<BTreeSet<String>>,
    /// Where it runs, if that is a sandbox.
    _enclosed: Option<Enclosed>,
}

/// What a provider understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Protocol {
    pub(crate) accepts_secrets: bool,
    pub(crate) accepts_resources: bool,
    pub(crate) accepts_outputs: bool,
    pub(crate) accepts_byte_strings: bool,
    pub(crate) supports_preview: bool,
    pub(crate) supports_naming: bool,
}

impl From<proto::ProviderHandshakeResponse> for Protocol {
    /// Whoever knows the handshake knows previews.
    fn from(response: proto::ProviderHandshakeResponse) -> Self {
        Self {
            accepts_secrets: response.accept_secrets,
            accepts_resources: response.accept_resources,
            accepts_outputs: response.accept_outputs,
            accepts_byte_strings: response.accepts_byte_string,
            supports_preview: true,
            supports_naming: response.supports_autonaming_configuration,
        }
    }
}

impl From<proto::ConfigureResponse> for Protocol {
    fn from(response: proto::ConfigureResponse) -> Self {
        Self {
            accepts_secrets: response.accept_secrets,
            accepts_resources: response.accept_resources,
            accepts_outputs: response.accept_outputs,
            accepts_byte_strings: false,
            supports_preview: response.supports_preview,
            supports_naming: response.supports_autonaming_configuration,
        }
    }
}

/// How to get to know a plugin.
pub(crate) struct Greeting<'a> {
    /// Names the plugin in messages.
    pub(crate) label: &'a str,
    pub(crate) engine_address: &'a str,
    /// Where the plugin is; not known of one that somebody else started.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) parameterization: Option<&'a Parameterization>,
    /// Whether it will be told which provider resource it is.
    pub(crate) knows_itself: bool,
    pub(crate) limits: PluginTimeouts,
}

impl Plugin {
    /// Reaches the plugin and exchanges what must be known before its first call. The error says
    /// what went wrong, without the plugin's name.
    pub(crate) async fn reach(
        port: NonZeroU16,
        process: Option<PluginProcess>,
        enclosed: Option<Enclosed>,
        greeting: &Greeting<'_>,
    ) -> Result<Self, String> {
        let attached = process.is_none();
        let limit = greeting.limits.start;
        let inside = enclosed
            .as_ref()
            .and_then(|enclosed| enclosed.dialer.as_ref());
        let link = PluginConnection::open(greeting.label, port, process, inside, limit).await?;
        let link = link.of_stranger(enclosed.is_some());
        let protocol = handshake(&link, greeting).await?;
        if attached {
            attach(&link, greeting).await?;
        }
        if let Some(parameterization) = greeting.parameterization {
            parameterize(&link, parameterization, greeting.limits.quick).await?;
        }
        let version = version(&link, limit).await?;
        Ok(Self {
            link,
            protocol,
            version,
            engine: None,
            extensions: tokio::sync::Mutex::default(),
            _enclosed: enclosed,
        })
    }

    /// Tells the plugin of an extension of its package, once.
    pub(crate) async fn extend(
        &self,
        extension: &Parameterization,
        limit: Duration,
    ) -> Result<(), String> {
        let mut told = self.extensions.lock().await;
        let reference = extension.reference();
        if !told.contains(&reference) {
            parameterize(&self.link, extension, limit).await?;
            told.insert(reference);
        }
        Ok(())
    }

    /// Asks the plugin to stop what it is doing.
    pub(crate) async fn cancel(&self, limit: Duration) -> Result<(), CallError> {
        let mut client = self.link.provider();
        let send = |request| async move { client.cancel(request).await };
        optional(self.link.call("Cancel", limit, (), send).await)?;
        // Some providers end when they are cancelled.
        self.link
            .process()
            .into_iter()
            .for_each(PluginProcess::expect_end);
        Ok(())
    }

    /// Ends the plugin's process: politely, then by force.
    pub(crate) async fn end(&self, limits: PluginTimeouts) {
        let Some(process) = self.link.process() else {
            return;
        };
        if process.exit_status().is_none() {
            // Its process is ended next whatever it says.
            let _ = self.cancel(limits.shutdown).await;
        }
        process.end(limits.shutdown).await;
    }
}

async fn handshake(
    link: &PluginConnection,
    greeting: &Greeting<'_>,
) -> Result<Option<Protocol>, String> {
    let folder = greeting
        .folder
        .as_ref()
        .map(|folder| folder.display().to_string());
    let request = proto::ProviderHandshakeRequest {
        engine_address: greeting.engine_address.to_owned(),
        root_directory: folder.clone(),
        program_directory: folder,
        configure_with_urn: greeting.knows_itself,
        // Nimbus has no server for the steps of views.
        supports_views: false,
        supports_refresh_before_update: true,
        invoke_with_preview: true,
        accepts_byte_string: true,
        mapper_target: None,
        loader_target: None,
        resolver_target: None,
    };
    let mut client = link.provider();
    let send = |request| async move { client.handshake(request).await };
    let response = link
        .call("Handshake", greeting.limits.start, request, send)
        .await;
    Ok(optional(response).map_err(reason)?.map(Protocol::from))
}

async fn attach(link: &PluginConnection, greeting: &Greeting<'_>) -> Result<(), String> {
    let request = proto::PluginAttach {
        address: greeting.engine_address.to_owned(),
    };
    let mut client = link.provider();
    let send = |request| async move { client.attach(request).await };
    link.call("Attach", greeting.limits.start, request, send)
        .await
        .map_err(reason)
}

/// Turns a base provider into the package that is wanted, or extends it by that.
async fn parameterize(
    link: &PluginConnection,
    wanted: &Parameterization,
    limit: Duration,
) -> Result<(), String> {
    let value = ParametersValue {
        name: wanted.name.clone(),
        version: wanted.version.to_string(),
        value: wanted.value.clone(),
    };
    let request = proto::ParameterizeRequest {
        parameters: Some(Parameters::Value(value)),
    };
    let mut client = link.provider();
    let send = |request| async move { client.parameterize(request).await };
    let response = link
        .call("Parameterize", limit, request, send)
        .await
        .map_err(reason)?;
    if response.name != wanted.name {
        return Err(format!(
            "asked to serve the package {}, it serves {}",
            wanted.name, response.name
        ));
    }
    Ok(())
}

async fn version(link: &PluginConnection, limit: Duration) -> Result<Option<Version>, String> {
    let mut client = link.provider();
    let send = |request| async move { client.get_plugin_info(request).await };
    let info = optional(link.call("GetPluginInfo", limit, (), send).await).map_err(reason)?;
    Ok(info.and_then(|info| parse_version(&info.version)))
}

/// A method that a plugin need not have.
pub(crate) fn optional<R>(result: Result<R, CallError>) -> Result<Option<R>, CallError> {
    match result {
        Ok(response) => Ok(Some(response)),
        Err(CallError::Answered(status)) if status.code() == Code::Unimplemented => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn reason(error: CallError) -> String {
    match error {
        CallError::Answered(status) => status.message().to_owned(),
        CallError::Lost { message } | CallError::Gone { message } => message,
        CallError::Abandoned => "nobody waited for its answer".to_owned(),
    }
}
