//! A provider behaves the same through the protocol as in this process. The client is the one that
//! the embedded engine has for plugins.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nimbus_engine_model::{
    Asset, Naming, NamingMode, PackageDescriptor, Parameterization, PropertyMap, PropertyValue, Urn,
};
use nimbus_engine_plugin::{HostOptions, PluginHost, PluginSearch, PluginTimeouts, Tenancy};
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckFailure, CheckRequest, CheckResponse, ConfigureRequest,
    ConstructRequest, ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest,
    DiffResponse, EngineEvent, EventSink, InvokeRequest, InvokeResponse, LoadError, Provider,
    ProviderError, ProviderHost, ReadRequest, ReadResponse, UpdateRequest, UpdateResponse,
};
use nimbus_engine_serve::ProviderServer;
use nimbus_rehearsal::{Answers, Declarations, FaultOrders, Rehearsal, SimulatedWorld};

const VPC: &str = "aws:ec2/vpc:Vpc";

struct Nobody;

impl EventSink for Nobody {
    fn emit(&self, _: EngineEvent) {}
}

fn aws() -> PackageDescriptor {
    PackageDescriptor {
        name: "aws".to_owned(),
        version: Some("7.1.0".parse().unwrap()),
        ..PackageDescriptor::default()
    }
}

fn engine(server: &ProviderServer) -> PluginHost {
    let patient = Duration::from_secs(60);
    PluginHost::new(HostOptions {
        engine_address: "127.0.0.1:1".to_owned(),
        project: "shop".to_owned(),
        directory: ".".into(),
        program_folder: ".".into(),
        python: None,
        runtime_options: BTreeMap::new(),
        config_json: None,
        environment: BTreeMap::new(),
        strangers: None,
        tenancy: Tenancy::Single,
        search: PluginSearch {
            running: [("aws".to_owned(), server.port())].into(),
            ..PluginSearch::default()
        },
        limits: PluginTimeouts {
            start: patient,
            quick: patient,
            slow: patient,
            grace: patient,
            shutdown: patient,
        },
        shared: None,
        events: Arc::new(Nobody),
    })
}

fn configuration(region: &str) -> ConfigureRequest {
    ConfigureRequest {
        urn: Some(urn("pulumi:providers:aws", region)),
        name: region.to_owned(),
        type_: "pulumi:providers:aws".to_owned(),
        id: Some("id".to_owned()),
        inputs: map([("region", region.into())]),
    }
}

fn urn(type_: &str, name: &str) -> Urn {
    Urn::new("dev", "p", None, type_, name)
}

fn map<const N: usize>(entries: [(&str, PropertyValue); N]) -> PropertyMap {
    let owned = entries.map(|(key, value)| (key.to_owned(), value));
    owned.into_iter().collect()
}

/// The simulated cloud behind the protocol, next to one of the same kind in this process.
struct Twins {
    _server: ProviderServer,
    served: Arc<dyn Provider>,
    own: Arc<dyn Provider>,
}

fn cloud(orders: &[&str]) -> Arc<Rehearsal> {
    let mut all = FaultOrders::default();
    for order in orders {
        all.add(order).unwrap();
    }
    let answers = Answers::load(Path::new("no/such/file")).unwrap();
    let world = SimulatedWorld::in_memory();
    Arc::new(Rehearsal::new(world, Declarations::default(), all, answers).unwrap())
}

impl Twins {
    async fn new(orders: &[&str]) -> Self {
        let server = ProviderServer::start(cloud(orders), aws()).await.unwrap();
        let served = engine(&server).load(&aws()).await.unwrap();
        let own = cloud(orders).load(&aws()).await.unwrap();
        for provider in [&served, &own] {
            provider
                .configure(configuration("eu-west-1"))
                .await
                .unwrap();
        }
        Self {
            _server: server,
            served,
            own,
        }
    }

    async fn create(&self, request: CreateRequest) -> [Result<CreateResponse, ProviderError>; 2] {
        let served = self.served.create(request.clone()).await;
        [served, self.own.create(request).await]
    }
}

fn create(name: &str, properties: PropertyMap) -> CreateRequest {
    CreateRequest {
        urn: Some(urn(VPC, name)),
        name: name.to_owned(),
        type_: VPC.to_owned(),
        properties,
        ..CreateRequest::default()
    }
}

fn rich() -> PropertyMap {
    let asset = Asset::Text {
        hash: "00".repeat(32),
        text: "hello".to_owned(),
    };
    map([
        ("cidrBlock", "10.0.0.0/16".into()),
        ("count", 3.0.into()),
        ("password", PropertyValue::secret("hunter2".into())),
        ("list", vec![PropertyValue::from(true), "x".into()].into()),
        (
            "nested",
            map([("key", PropertyValue::secret("s".into()))]).into(),
        ),
        ("file", PropertyValue::Asset(asset)),
    ])
}

#[tokio::test]
async fn values_of_every_kind_survive_and_secrets_stay_secret() {
    let twins = Twins::new(&[]).await;
    let [served, own] = twins.create(create("main", rich())).await;
    let (served, own) = (served.unwrap(), own.unwrap());
    assert_eq!(served, own);
    let secret = &served.properties["password"];
    assert_eq!(*secret, PropertyValue::secret("hunter2".into()));

    let read = ReadRequest {
        urn: Some(urn(VPC, "main")),
        name: "main".to_owned(),
        type_: VPC.to_owned(),
        id: served.id.clone(),
        inputs: rich(),
        state: served.properties.clone(),
    };
    let seen = twins.served.read(read.clone()).await.unwrap();
    let own = twins.own.read(read).await.unwrap();
    assert_eq!((&seen.id, &seen.inputs), (&own.id, &own.inputs));
    assert_eq!(seen.outputs["password"], own.outputs["password"]);
}

#[tokio::test]
async fn a_preview_keeps_what_is_not_known_and_makes_nothing() {
    let twins = Twins::new(&[]).await;
    let inputs = map([
        ("cidrBlock", PropertyValue::Computed),
        ("password", PropertyValue::secret(PropertyValue::Computed)),
    ]);
    let request = CreateRequest {
        preview: true,
        ..create("main", inputs.clone())
    };
    let [served, own] = twins.create(request).await;
    let served = served.unwrap();
    assert_eq!(served, own.unwrap());
    assert_eq!(served.id, "");
    assert_eq!(served.properties["cidrBlock"], PropertyValue::Computed);

    let check = CheckRequest {
        urn: Some(urn(VPC, "main")),
        news: inputs,
        allow_unknowns: true,
        ..CheckRequest::default()
    };
    let checked = twins.served.check(check.clone()).await.unwrap();
    assert_eq!(checked, twins.own.check(check).await.unwrap());
}

#[tokio::test]
async fn a_difference_names_the_same_keys_and_the_same_replacements() {
    let twins = Twins::new(&[]).await;
    let request = DiffRequest {
        urn: Some(urn(VPC, "main")),
        type_: VPC.to_owned(),
        id: "vpc-1".to_owned(),
        old_inputs: map([("cidrBlock", "10.0.0.0/16".into()), ("a", "1".into())]),
        new_inputs: map([("cidrBlock", "10.1.0.0/16".into()), ("b", "1".into())]),
        ..DiffRequest::default()
    };
    let served = twins.served.diff(request.clone()).await.unwrap();
    assert_eq!(served.replace_keys, ["cidrBlock"]);
    assert!(served.replaces());
    assert_eq!(served, twins.own.diff(request).await.unwrap());
}

#[tokio::test]
async fn a_half_made_object_arrives_with_everything_that_is_known_of_it() {
    let twins = Twins::new(&["{on: create, nth: 1, do: half, message: not ready}"]).await;
    let inputs = map([("password", PropertyValue::secret("p".into()))]);
    let [served, own] = twins.create(create("main", inputs)).await;
    let (Err(ProviderError::InitFailed(served)), Err(ProviderError::InitFailed(own))) =
        (served, own)
    else {
        panic!("both are half-made")
    };
    assert_eq!(served, own);
    assert!(served.reasons[0].contains("not ready"), "{served:?}");
    assert!(served.properties["password"].contains_secrets());
}

#[tokio::test]
async fn a_refusal_is_a_refusal_and_a_lost_answer_is_of_unknown_outcome() {
    let orders = [
        "{on: create, name: a, do: fail, message: no room}",
        "{on: create, name: b, do: lose}",
    ];
    let twins = Twins::new(&orders).await;
    let [served, own] = twins.create(create("a", rich())).await;
    let (served, own) = (served.unwrap_err(), own.unwrap_err());
    assert!(matches!(served, ProviderError::Failed { .. }), "{served:?}");
    assert_eq!(served.to_string(), own.to_string());

    let [served, own] = twins.create(create("b", rich())).await;
    let (served, own) = (served.unwrap_err(), own.unwrap_err());
    assert!(
        matches!(served, ProviderError::Unknown { .. }),
        "{served:?}"
    );
    assert_eq!(served.to_string(), own.to_string());
}

#[tokio::test]
async fn an_object_is_changed_deleted_and_then_missing() {
    let twins = Twins::new(&[]).await;
    let [made, _] = twins.create(create("main", rich())).await;
    let made = made.unwrap();
    let new_inputs = map([("tags", map([("a", "b".into())]).into())]);
    let update = UpdateRequest {
        urn: Some(urn(VPC, "main")),
        id: made.id.clone(),
        old_inputs: rich(),
        old_outputs: made.properties.clone(),
        new_inputs,
        ..UpdateRequest::default()
    };
    let update = UpdateRequest {
        name: "main".to_owned(),
        type_: VPC.to_owned(),
        ..update
    };
    let served = twins.served.update(update.clone()).await.unwrap();
    assert_eq!(served, twins.own.update(update.clone()).await.unwrap());

    let delete = DeleteRequest {
        urn: Some(urn(VPC, "main")),
        name: "main".to_owned(),
        type_: VPC.to_owned(),
        id: made.id.clone(),
        ..DeleteRequest::default()
    };
    twins.served.delete(delete).await.unwrap();
    let read = ReadRequest {
        urn: Some(urn(VPC, "main")),
        type_: VPC.to_owned(),
        id: made.id,
        ..ReadRequest::default()
    };
    assert_eq!(twins.served.read(read).await.unwrap().id, None);
    let error = twins.served.update(update).await.unwrap_err();
    assert!(error.to_string().contains("NotFound"), "{error}");
}

#[tokio::test]
async fn functions_answer_and_unknown_ones_say_which_file_to_edit() {
    let twins = Twins::new(&[]).await;
    let ask = |token: &str| InvokeRequest {
        token: token.to_owned(),
        ..InvokeRequest::default()
    };
    let known = ask("aws:index/getCallerIdentity:getCallerIdentity");
    let served = twins.served.invoke(known.clone()).await.unwrap();
    assert_eq!(served, twins.own.invoke(known).await.unwrap());
    let error = twins.served.invoke(ask("aws:x:nothing")).await.unwrap_err();
    let own = twins.own.invoke(ask("aws:x:nothing")).await.unwrap_err();
    assert_eq!(error.to_string(), own.to_string());
}

#[tokio::test]
async fn connections_do_not_share_their_configuration() {
    let server = ProviderServer::start(cloud(&[]), aws()).await.unwrap();
    let ask = InvokeRequest {
        token: "aws:index/getRegion:getRegion".to_owned(),
        ..InvokeRequest::default()
    };
    let mut regions = Vec::new();
    let mut open = Vec::new();
    for region in ["eu-west-1", "us-east-1"] {
        let provider = engine(&server).load(&aws()).await.unwrap();
        provider.configure(configuration(region)).await.unwrap();
        open.push(provider);
    }
    for provider in &open {
        let answer = provider.invoke(ask.clone()).await.unwrap();
        regions.push(answer.properties["name"].clone());
    }
    assert_eq!(regions, ["eu-west-1", "us-east-1"].map(PropertyValue::from));
}

#[tokio::test]
async fn remote_components_are_refused_by_name() {
    let twins = Twins::new(&[]).await;
    let request = ConstructRequest {
        type_: "aws:x:Component".to_owned(),
        ..ConstructRequest::default()
    };
    let served = twins.served.construct(request.clone()).await.unwrap_err();
    let own = twins.own.construct(request).await.unwrap_err();
    assert_eq!(served.to_string(), own.to_string());
}

/// Keeps what it was asked, and answers what a cloud never would.
struct Witness {
    checks: Mutex<Vec<CheckRequest>>,
    creates: Mutex<Vec<CreateRequest>>,
    loaded: Mutex<Vec<PackageDescriptor>>,
    closed: tokio::sync::Semaphore,
}

struct Seen(Arc<Witness>);

struct Host(Arc<Witness>);

#[async_trait]
impl ProviderHost for Host {
    async fn load(&self, package: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError> {
        self.0.loaded.lock().unwrap().push(package.clone());
        Ok(Arc::new(Seen(Arc::clone(&self.0))))
    }
}

fn missing<T>(method: &'static str) -> Result<T, ProviderError> {
    Err(ProviderError::Unimplemented { method })
}

#[async_trait]
impl Provider for Seen {
    async fn check_config(&self, _: CheckRequest) -> Result<CheckResponse, ProviderError> {
        missing("CheckConfig")
    }
    async fn diff_config(&self, _: DiffRequest) -> Result<DiffResponse, ProviderError> {
        missing("DiffConfig")
    }
    async fn configure(&self, _: ConfigureRequest) -> Result<(), ProviderError> {
        Ok(())
    }
    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        let properties = request.news.clone();
        self.0.checks.lock().unwrap().push(request);
        let failure = CheckFailure {
            property: "a.b".to_owned(),
            reason: "too long".to_owned(),
        };
        Ok(CheckResponse {
            properties,
            failures: vec![failure],
        })
    }
    async fn diff(&self, _: DiffRequest) -> Result<DiffResponse, ProviderError> {
        Ok(DiffResponse::default())
    }
    async fn create(&self, request: CreateRequest) -> Result<CreateResponse, ProviderError> {
        self.0.creates.lock().unwrap().push(request);
        Err(ProviderError::Cancelled)
    }
    async fn read(&self, _: ReadRequest) -> Result<ReadResponse, ProviderError> {
        missing("Read")
    }
    async fn update(&self, _: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        missing("Update")
    }
    async fn delete(&self, _: DeleteRequest) -> Result<(), ProviderError> {
        missing("Delete")
    }
    async fn invoke(&self, _: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        missing("Invoke")
    }
    async fn call(&self, request: CallRequest) -> Result<CallResponse, ProviderError> {
        Ok(CallResponse {
            properties: request.args,
            dependencies: request.arg_dependencies,
            failures: Vec::new(),
        })
    }
    async fn construct(&self, _: ConstructRequest) -> Result<ConstructResponse, ProviderError> {
        missing("Construct")
    }
    async fn cancel(&self) -> Result<(), ProviderError> {
        Ok(())
    }
    async fn close(&self) {
        self.0.closed.add_permits(1);
    }
}

async fn witnessed(
    package: &PackageDescriptor,
) -> (Arc<Witness>, ProviderServer, Arc<dyn Provider>) {
    let witness = Arc::new(Witness {
        checks: Mutex::default(),
        creates: Mutex::default(),
        loaded: Mutex::default(),
        closed: tokio::sync::Semaphore::new(0),
    });
    let host = Arc::new(Host(Arc::clone(&witness)));
    let server = ProviderServer::start(host, aws()).await.unwrap();
    let provider = engine(&server).load(package).await.unwrap();
    provider.configure(configuration("r")).await.unwrap();
    (witness, server, provider)
}

#[tokio::test]
async fn requests_arrive_whole() {
    let (witness, _server, provider) = witnessed(&aws()).await;
    let naming = Naming {
        proposed: "thing-1".to_owned(),
        mode: NamingMode::Enforce,
        deliberate: false,
    };
    let check = CheckRequest {
        urn: Some(urn(VPC, "main")),
        name: "main".to_owned(),
        type_: VPC.to_owned(),
        olds: None,
        news: rich(),
        random_seed: vec![7; 32],
        naming: Some(naming),
        allow_unknowns: false,
    };
    let checked = provider.check(check.clone()).await.unwrap();
    assert_eq!(checked.failures[0].reason, "too long");
    assert_eq!(*witness.checks.lock().unwrap(), [check]);

    let request = CreateRequest {
        timeout: Some(Duration::from_secs(90)),
        ..create("main", rich())
    };
    let error = provider.create(request.clone()).await.unwrap_err();
    assert!(
        matches!(error, ProviderError::Failed { .. }),
        "nothing was done: {error:?}"
    );
    assert_eq!(*witness.creates.lock().unwrap(), [request]);

    let call = CallRequest {
        token: "aws:x:Y/method".to_owned(),
        args: rich(),
        arg_dependencies: [("count".to_owned(), vec![urn(VPC, "main")])].into(),
        ..CallRequest::default()
    };
    let answer = provider.call(call.clone()).await.unwrap();
    assert_eq!(answer.properties, call.args);
    assert_eq!(answer.dependencies, call.arg_dependencies);
    provider.cancel().await.unwrap();
}

#[tokio::test]
async fn what_a_provider_lacks_is_said_so() {
    let (_witness, _server, provider) = witnessed(&aws()).await;
    let error = provider.delete(DeleteRequest::default()).await.unwrap_err();
    assert!(
        matches!(error, ProviderError::Unimplemented { .. }),
        "{error:?}"
    );
    // Engines have an answer of their own to this one.
    let news = map([("region", "x".into())]);
    let request = CheckRequest {
        news: news.clone(),
        ..CheckRequest::default()
    };
    let checked = provider.check_config(request).await.unwrap();
    assert_eq!(checked.properties, news);
}

#[tokio::test]
async fn a_base_provider_becomes_the_package_that_is_asked_for() {
    let parameterization = Parameterization {
        name: "shop".to_owned(),
        version: "1.2.3".parse().unwrap(),
        value: b"schema".to_vec(),
    };
    let package = PackageDescriptor {
        parameterization: Some(parameterization),
        ..aws()
    };
    let (witness, _server, _provider) = witnessed(&package).await;
    assert_eq!(*witness.loaded.lock().unwrap(), [package]);
}

#[tokio::test]
async fn a_provider_is_closed_when_its_connection_ends() {
    let (witness, _server, provider) = witnessed(&aws()).await;
    drop(provider);
    let closed = tokio::time::timeout(Duration::from_secs(60), witness.closed.acquire()).await;
    closed.expect("it is closed").unwrap().forget();
}
