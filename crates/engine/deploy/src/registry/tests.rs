use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use nimbus_engine_model::{PackageDescriptor, PropertyValue};
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckFailure, ConstructRequest, ConstructResponse, CreateRequest,
    DeleteRequest, InvokeRequest, InvokeResponse, LoadError, ReadRequest, ReadResponse,
    UpdateRequest,
};
use uuid::Uuid;

use super::*;

/// Counts loads and remembers what it was configured with.
#[derive(Default)]
struct Plugins {
    loads: AtomicUsize,
    configured: Arc<Mutex<Vec<PropertyMap>>>,
    closed: Arc<AtomicUsize>,
    refuses: bool,
}

struct Plugin {
    configured: Arc<Mutex<Vec<PropertyMap>>>,
    closed: Arc<AtomicUsize>,
    refuses: bool,
}

#[async_trait]
impl ProviderHost for Plugins {
    async fn load(&self, _: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Plugin {
            configured: Arc::clone(&self.configured),
            closed: Arc::clone(&self.closed),
            refuses: self.refuses,
        }))
    }
}

#[async_trait]
impl Provider for Plugin {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        let failure = CheckFailure {
            property: "region".to_owned(),
            reason: "bad".to_owned(),
        };
        let failures = if self.refuses {
            vec![failure]
        } else {
            Vec::new()
        };
        let mut properties = request.news;
        properties.remove(VERSION);
        Ok(CheckResponse {
            properties,
            failures,
        })
    }
    async fn diff_config(&self, _: DiffRequest) -> Result<DiffResponse, ProviderError> {
        Err(ProviderError::Unimplemented {
            method: "DiffConfig",
        })
    }
    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        self.configured.lock().push(request.inputs);
        Ok(())
    }
    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        Ok(CheckResponse {
            properties: request.news,
            failures: Vec::new(),
        })
    }
    async fn diff(&self, _: DiffRequest) -> Result<DiffResponse, ProviderError> {
        Ok(DiffResponse::default())
    }
    async fn create(&self, _: CreateRequest) -> Result<CreateResponse, ProviderError> {
        Ok(CreateResponse::default())
    }
    async fn read(&self, _: ReadRequest) -> Result<ReadResponse, ProviderError> {
        Ok(ReadResponse::default())
    }
    async fn update(&self, _: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        Ok(UpdateResponse::default())
    }
    async fn delete(&self, _: DeleteRequest) -> Result<(), ProviderError> {
        Ok(())
    }
    async fn invoke(&self, _: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        Ok(InvokeResponse::default())
    }
    async fn call(&self, _: CallRequest) -> Result<CallResponse, ProviderError> {
        Ok(CallResponse::default())
    }
    async fn construct(&self, _: ConstructRequest) -> Result<ConstructResponse, ProviderError> {
        Err(ProviderError::Unimplemented {
            method: "Construct",
        })
    }
    async fn cancel(&self) -> Result<(), ProviderError> {
        Ok(())
    }
    async fn close(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }
}

struct OneId;

impl IdSource for OneId {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(7)
    }
    fn seed(&self) -> [u8; 32] {
        [0; 32]
    }
}

fn urn(name: &str) -> Urn {
    Urn::new("s", "p", None, "pulumi:providers:pkg", name)
}

fn region(value: impl Into<PropertyValue>) -> PropertyMap {
    PropertyMap::from([("region".to_owned(), value.into())])
}

fn registry(plugins: &Arc<Plugins>, dry_run: bool) -> Registry {
    Registry::new(
        Arc::clone(plugins) as _,
        Arc::new(OneId),
        dry_run,
        Extensions::new(),
    )
}

#[tokio::test]
async fn a_checked_provider_is_configured_once_and_found_by_its_reference() {
    let plugins = Arc::new(Plugins::default());
    let registry = registry(&plugins, false);
    let checked = registry
        .check(&urn("mine"), None, &region("x"))
        .await
        .unwrap();
    let made = registry
        .create(&urn("mine"), &checked.properties)
        .await
        .unwrap();
    assert_eq!(
        plugins.loads.load(Ordering::Relaxed),
        1,
        "the checked one is used"
    );
    assert_eq!(*plugins.configured.lock(), [region("x")]);
    let reference = ProviderRef {
        urn: urn("mine"),
        id: made.id,
    };
    assert!(registry.get(&reference).is_some());
}

#[tokio::test]
async fn a_provider_keeps_its_version_and_what_the_engine_put_there() {
    let plugins = Arc::new(Plugins::default());
    let registry = registry(&plugins, false);
    let package = PackageDescriptor {
        version: Some(semver::Version::new(1, 0, 0)),
        ..PackageDescriptor::default()
    };
    let inputs = provider_inputs::provider_inputs(&package, region("x"));
    let checked = registry.check(&urn("mine"), None, &inputs).await.unwrap();
    assert_eq!(checked.properties, inputs);
    registry
        .create(&urn("mine"), &checked.properties)
        .await
        .unwrap();
    assert!(
        !plugins.configured.lock()[0].contains_key(INTERNAL),
        "not the provider's business"
    );
}

#[tokio::test]
async fn an_unknown_configuration_is_not_sent_and_everything_stays_unknown() {
    let plugins = Arc::new(Plugins::default());
    let registry = registry(&plugins, true);
    let inputs = region(PropertyValue::Computed);
    registry.check(&urn("mine"), None, &inputs).await.unwrap();
    let made = registry.create(&urn("mine"), &inputs).await.unwrap();
    assert_eq!(made.id, UNKNOWN_ID);
    assert!(plugins.configured.lock().is_empty());
    let handle = registry
        .get(&ProviderRef {
            urn: urn("mine"),
            id: made.id,
        })
        .unwrap();
    assert!(!handle.configured);
    let created = handle
        .provider
        .create(CreateRequest::default())
        .await
        .unwrap();
    assert_eq!(created, CreateResponse::default());
}

#[tokio::test]
async fn a_refused_configuration_leaves_nothing_behind() {
    let plugins = Arc::new(Plugins {
        refuses: true,
        ..Plugins::default()
    });
    let registry = registry(&plugins, false);
    let checked = registry
        .check(&urn("mine"), None, &region("x"))
        .await
        .unwrap();
    assert_eq!(checked.failures.len(), 1);
    assert!(registry.state.lock().waiting.is_empty());
}

#[tokio::test]
async fn without_a_comparison_of_its_own_a_provider_is_compared_by_outputs() {
    let plugins = Arc::new(Plugins::default());
    let registry = registry(&plugins, false);
    registry
        .check(&urn("mine"), None, &region("y"))
        .await
        .unwrap();
    let diff = |old: &str| {
        registry.diff(DiffRequest {
            urn: Some(urn("mine")),
            id: "1".to_owned(),
            old_outputs: region(old),
            new_inputs: region("y"),
            ..DiffRequest::default()
        })
    };
    assert_eq!(diff("y").await.unwrap().changes, Diffs::None);
    assert_eq!(diff("x").await.unwrap().changes, Diffs::Some);
}

#[tokio::test]
async fn resources_find_a_renamed_provider_under_its_recorded_name() {
    let plugins = Arc::new(Plugins::default());
    let registry = registry(&plugins, false);
    registry.register_alias(&urn("new"), &urn("old"));
    registry.same(&urn("new"), "1", &region("x")).await.unwrap();
    for name in ["new", "old"] {
        let reference = ProviderRef {
            urn: urn(name),
            id: "1".to_owned(),
        };
        assert!(registry.get(&reference).is_some(), "{name}");
    }
}

#[tokio::test]
async fn a_recorded_provider_is_loaded_once_and_every_plugin_is_closed() {
    let plugins = Arc::new(Plugins::default());
    let registry = registry(&plugins, false);
    let mut recorded = ResourceState::new(urn("mine"), true);
    recorded.id = Some("1".to_owned());
    recorded.inputs = region("x");
    let base = Base::new(vec![Arc::new(recorded)]).unwrap();
    let reference = format!("{}::1", urn("mine"));
    registry.ensure(&base, &reference).await.unwrap();
    registry.ensure(&base, &reference).await.unwrap();
    assert_eq!(plugins.loads.load(Ordering::Relaxed), 1);
    let other = registry.ensure(&base, &format!("{}::2", urn("mine"))).await;
    assert!(other.is_err(), "an id that is not recorded");
    registry.close().await;
    assert_eq!(plugins.closed.load(Ordering::Relaxed), 1);
}
