//! A provider played by the test, and the host that talks to it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroU16;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nimbus_engine_model::{PackageDescriptor, PropertyMap, PropertyValue, Urn};
use nimbus_engine_plugin::{HostOptions, PluginHost, PluginSearch, PluginTimeouts, Tenancy};
use nimbus_engine_ports::{
    ConfigureRequest, EngineEvent, EventSink, Provider, ProviderHost, Severity,
};
use nimbus_engine_proto as proto;
use proto::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use proto::{Kind, Struct, Value};
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::{Request, Response, Status};

pub(crate) type Handler<Q, A> =
    Box<dyn Fn(Q) -> Pin<Box<dyn Future<Output = Result<A, Status>> + Send>> + Send + Sync>;

/// A method that answers at once.
pub(crate) fn answer<Q, A: Send + 'static>(
    answer: impl Fn(Q) -> Result<A, Status> + Send + Sync + 'static,
) -> Option<Handler<Q, A>> {
    Some(Box::new(move |request| {
        let answer = answer(request);
        Box::pin(async move { answer })
    }))
}

/// A method that never answers.
pub(crate) fn hang<Q, A: Send + 'static>() -> Option<Handler<Q, A>> {
    Some(Box::new(|_| Box::pin(std::future::pending())))
}

macro_rules! fake {
    ($($method:ident: $request:ty => $answer:ty;)*) => {
        /// Methods that are `None` are not implemented.
        #[derive(Default)]
        pub(crate) struct Fake {
            $(pub(crate) $method: Option<Handler<$request, $answer>>,)*
        }

        struct Server {
            fake: Fake,
            calls: Arc<Mutex<Vec<&'static str>>>,
        }

        #[tonic::async_trait]
        impl ResourceProvider for Server {
            $(async fn $method(
                &self,
                request: Request<$request>,
            ) -> Result<Response<$answer>, Status> {
                self.calls.lock().unwrap().push(stringify!($method));
                match &self.fake.$method {
                    Some(handler) => handler(request.into_inner()).await.map(Response::new),
                    None => Err(Status::unimplemented("not part of this test")),
                }
            })*
        }
    };
}

fake! {
    handshake: proto::ProviderHandshakeRequest => proto::ProviderHandshakeResponse;
    parameterize: proto::ParameterizeRequest => proto::ParameterizeResponse;
    get_schema: proto::GetSchemaRequest => proto::GetSchemaResponse;
    check_config: proto::CheckRequest => proto::CheckResponse;
    diff_config: proto::DiffRequest => proto::DiffResponse;
    configure: proto::ConfigureRequest => proto::ConfigureResponse;
    invoke: proto::InvokeRequest => proto::InvokeResponse;
    call: proto::CallRequest => proto::CallResponse;
    check: proto::CheckRequest => proto::CheckResponse;
    diff: proto::DiffRequest => proto::DiffResponse;
    create: proto::CreateRequest => proto::CreateResponse;
    read: proto::ReadRequest => proto::ReadResponse;
    update: proto::UpdateRequest => proto::UpdateResponse;
    delete: proto::DeleteRequest => ();
    construct: proto::ConstructRequest => proto::ConstructResponse;
    cancel: () => ();
    get_plugin_info: () => proto::PluginInfo;
    attach: proto::PluginAttach => ();
}

/// A provider that runs in the test's own process.
pub(crate) struct Running {
    pub(crate) port: NonZeroU16,
    calls: Arc<Mutex<Vec<&'static str>>>,
    /// Of its own, so that it can be stopped with all its connections.
    runtime: Mutex<Option<Runtime>>,
}

impl Running {
    pub(crate) async fn start(mut fake: Fake) -> Self {
        if fake.attach.is_none() {
            fake.attach = answer(|_| Ok(()));
        }
        let calls = Arc::new(Mutex::new(Vec::new()));
        let service = ResourceProviderServer::new(Server {
            fake,
            calls: calls.clone(),
        })
        .max_decoding_message_size(proto::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(proto::MAX_MESSAGE_BYTES);
        let (port, runtime) = serve(service).await;
        Self {
            port,
            calls,
            runtime: Mutex::new(Some(runtime)),
        }
    }

    /// Cuts every connection, as the death of the process would.
    pub(crate) fn die(&self) {
        if let Some(runtime) = self.runtime.lock().unwrap().take() {
            runtime.shutdown_background();
        }
    }

    /// The calls since the greeting.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        let calls = self.calls.lock().unwrap();
        let greeting = ["handshake", "attach", "get_plugin_info", "parameterize"];
        calls
            .iter()
            .copied()
            .filter(|call| !greeting.contains(call))
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.die();
    }
}

/// Serves on a free port, in a runtime of its own.
pub(crate) async fn serve<S>(service: S) -> (NonZeroU16, Runtime)
where
    S: tower::Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (sender, port) = tokio::sync::oneshot::channel();
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        sender.send(listener.local_addr().unwrap().port()).unwrap();
        tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener))
            .await
            .unwrap();
    });
    (NonZeroU16::new(port.await.unwrap()).unwrap(), runtime)
}

/// Everything that the audience was told.
#[derive(Default)]
pub(crate) struct Audience(Mutex<Vec<(Severity, String)>>);

impl EventSink for Audience {
    fn emit(&self, event: EngineEvent) {
        if let EngineEvent::Diagnostic(diagnostic) = event {
            self.0
                .lock()
                .unwrap()
                .push((diagnostic.severity, diagnostic.message));
        }
    }
}

impl Audience {
    pub(crate) fn told(&self, severity: Severity) -> Vec<String> {
        let told = self.0.lock().unwrap();
        let matching = told.iter().filter(|(told, _)| *told == severity);
        matching.map(|(_, message)| message.clone()).collect()
    }
}

pub(crate) const LIMITS: PluginTimeouts = PluginTimeouts {
    start: Duration::from_secs(20),
    quick: Duration::from_secs(20),
    slow: Duration::from_secs(20),
    grace: Duration::from_millis(50),
    shutdown: Duration::from_secs(2),
};

/// Options that reach nothing but what the test adds.
pub(crate) fn options(audience: &Arc<Audience>, folder: &Path) -> HostOptions {
    HostOptions {
        engine_address: "127.0.0.1:1".to_owned(),
        project: "shop".to_owned(),
        directory: folder.to_owned(),
        program_folder: folder.to_owned(),
        python: None,
        runtime_options: BTreeMap::new(),
        config_json: None,
        environment: std::env::vars_os().collect(),
        strangers: None,
        tenancy: Tenancy::Single,
        search: PluginSearch::default(),
        limits: LIMITS,
        shared: None,
        events: audience.clone(),
    }
}

pub(crate) fn package(name: &str) -> PackageDescriptor {
    PackageDescriptor {
        name: name.to_owned(),
        ..PackageDescriptor::default()
    }
}

/// A provider of package `fake`, loaded from a host that finds it running.
pub(crate) struct Rig {
    pub(crate) running: Running,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) audience: Arc<Audience>,
}

impl Rig {
    pub(crate) async fn loaded(fake: Fake) -> Self {
        Self::with_limits(fake, LIMITS).await
    }

    pub(crate) async fn with_limits(fake: Fake, limits: PluginTimeouts) -> Self {
        let running = Running::start(fake).await;
        let audience = Arc::new(Audience::default());
        let mut options = options(&audience, Path::new("."));
        options.limits = limits;
        options.search.running = [("fake".to_owned(), running.port)].into();
        let provider = PluginHost::new(options)
            .load(&package("fake"))
            .await
            .unwrap();
        Self {
            running,
            provider,
            audience,
        }
    }

    /// Configured with a known configuration.
    pub(crate) async fn configured(fake: Fake) -> Self {
        let rig = Self::loaded(fake).await;
        rig.provider.configure(configuration([])).await.unwrap();
        rig
    }
}

pub(crate) fn configuration<const N: usize>(
    inputs: [(&str, PropertyValue); N],
) -> ConfigureRequest {
    ConfigureRequest {
        urn: Some(urn("pulumi:providers:fake", "default")),
        name: "default".to_owned(),
        type_: "pulumi:providers:fake".to_owned(),
        id: Some("provider-id".to_owned()),
        inputs: map(inputs),
    }
}

/// A provider that accepts everything special, or nothing.
pub(crate) fn modern() -> Fake {
    Fake {
        handshake: answer(|_| {
            Ok(proto::ProviderHandshakeResponse {
                accept_secrets: true,
                accept_resources: true,
                accept_outputs: true,
                accepts_byte_string: true,
                ..Default::default()
            })
        }),
        configure: answer(|_| Ok(proto::ConfigureResponse::default())),
        ..Fake::default()
    }
}

pub(crate) fn simple() -> Fake {
    Fake {
        configure: answer(|_| {
            Ok(proto::ConfigureResponse {
                supports_preview: true,
                ..Default::default()
            })
        }),
        ..Fake::default()
    }
}

pub(crate) fn urn(type_: &str, name: &str) -> Urn {
    Urn::new("dev", "shop", None, type_, name)
}

pub(crate) fn map<const N: usize>(entries: [(&str, PropertyValue); N]) -> PropertyMap {
    entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

pub(crate) fn secret(value: impl Into<PropertyValue>) -> PropertyValue {
    PropertyValue::secret(value.into())
}

pub(crate) fn object<const N: usize>(fields: [(&str, Value); N]) -> Struct {
    Struct {
        fields: fields
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    }
}

pub(crate) fn s(text: &str) -> Value {
    Kind::StringValue(text.to_owned()).into()
}

pub(crate) const UNKNOWN: &str = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
const SIGNATURE: &str = "4dabf18193072939515e22adb298388d";

/// A secret on the wire.
pub(crate) fn wire_secret(value: Value) -> Value {
    let signature = s("1b47061264138c4ac30d75fd1eb44270");
    Kind::StructValue(object([(SIGNATURE, signature), ("value", value)])).into()
}
