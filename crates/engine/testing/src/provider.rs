//! A provider that keeps its objects in a [`Cloud`] and fails on demand.
//!
//! Rules that tests rely on: a property whose name starts with `replace` forces a replacement when
//! it changes; outputs are the inputs plus `computed`, which is `<id>!`; reading returns what the
//! cloud holds. Types of the package `ext` are served only after the provider was told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{PackageDescriptor, Parameterization, PropertyMap, PropertyValue};
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckFailure, CheckRequest, CheckResponse, ConfigureRequest,
    ConstructRequest, ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffKind,
    DiffRequest, DiffResponse, Diffs, InitFailure, InvokeRequest, InvokeResponse, LoadError,
    PropertyDiff, Provider, ProviderError, ProviderHost, ReadRequest, ReadResponse, UpdateRequest,
    UpdateResponse,
};
use parking_lot::Mutex;

use crate::cloud::Cloud;

/// The package that extends every other one.
pub const EXTENSION: &str = "ext";

/// What a provider does wrong, by resource name.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub create_fails: Vec<String>,
    /// The object is made, and then the provider dies.
    pub create_unknown: Vec<String>,
    /// The object is made and reports that it did not become ready.
    pub create_half: Vec<String>,
    pub update_fails: Vec<String>,
    pub delete_fails: Vec<String>,
    /// The object is deleted, and then the provider dies.
    pub delete_unknown: Vec<String>,
    pub read_fails: Vec<String>,
    pub check_fails: Vec<String>,
    /// Asks for delete-before-replace.
    pub delete_before_replace: Vec<String>,
    /// Says that it cannot tell whether something changed.
    pub diff_unknown: Vec<String>,
}

#[derive(Clone)]
pub struct FakeProvider {
    cloud: Arc<Cloud>,
    faults: Arc<Mutex<Faults>>,
    /// The packages that it serves beside its own.
    extensions: Arc<Mutex<BTreeSet<String>>>,
}

impl FakeProvider {
    pub fn new(cloud: Arc<Cloud>, faults: Arc<Mutex<Faults>>) -> Self {
        Self {
            cloud,
            faults,
            extensions: Arc::default(),
        }
    }

    fn serves(&self, type_: &str) -> Result<(), ProviderError> {
        let package = type_.split(':').next().unwrap_or_default();
        if package == EXTENSION && !self.extensions.lock().contains(package) {
            return Err(ProviderError::failed(format!("nobody told it of {type_}")));
        }
        Ok(())
    }

    fn has(&self, pick: impl Fn(&Faults) -> &Vec<String>, name: &str) -> bool {
        pick(&self.faults.lock())
            .iter()
            .any(|faulty| faulty == name)
    }
}

fn failed(what: &str, name: &str) -> ProviderError {
    ProviderError::failed(format!("{what} of {name} failed"))
}

fn died(what: &str, name: &str) -> ProviderError {
    ProviderError::Unknown {
        message: format!("the provider died during {what} of {name}"),
    }
}

fn outputs(id: &str, inputs: &PropertyMap) -> PropertyMap {
    let mut outputs = inputs.clone();
    outputs.insert("computed".to_owned(), PropertyValue::from(format!("{id}!")));
    outputs
}

fn preview_outputs(inputs: &PropertyMap) -> PropertyMap {
    let mut outputs = inputs.clone();
    outputs.insert("computed".to_owned(), PropertyValue::Computed);
    outputs
}

/// Differences between two maps, key by key, in this provider's rules.
fn compare(old: &PropertyMap, new: &PropertyMap) -> BTreeMap<String, PropertyDiff> {
    let keys = old.keys().chain(new.keys());
    keys.filter(|key| old.get(*key) != new.get(*key))
        .map(|key| {
            let kind = match (old.contains_key(key), new.contains_key(key)) {
                (true, false) => DiffKind::Delete,
                (false, _) => DiffKind::Add,
                (true, true) => DiffKind::Update,
            };
            let kind = if key.starts_with("replace") {
                kind.as_replace()
            } else {
                kind
            };
            (
                key.clone(),
                PropertyDiff {
                    kind,
                    input_diff: true,
                },
            )
        })
        .collect()
}

#[async_trait]
impl Provider for FakeProvider {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        Ok(CheckResponse {
            properties: request.news,
            failures: Vec::new(),
        })
    }

    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        Ok(diff_response(
            compare(&request.old_inputs, &request.new_inputs),
            false,
        ))
    }

    async fn configure(&self, _: ConfigureRequest) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn extend(&self, extension: &Parameterization) -> Result<(), ProviderError> {
        self.extensions.lock().insert(extension.name.clone());
        Ok(())
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        self.serves(&request.type_)?;
        let failures = if self.has(|f| &f.check_fails, &request.name) {
            vec![CheckFailure {
                property: "foo".to_owned(),
                reason: "not acceptable".to_owned(),
            }]
        } else {
            Vec::new()
        };
        Ok(CheckResponse {
            properties: request.news,
            failures,
        })
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        if self.has(|f| &f.diff_unknown, &request.name) {
            return Ok(DiffResponse::default());
        }
        let before = self.has(|f| &f.delete_before_replace, &request.name);
        Ok(diff_response(
            compare(&request.old_inputs, &request.new_inputs),
            before,
        ))
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateResponse, ProviderError> {
        if request.preview {
            return Ok(CreateResponse {
                id: String::new(),
                properties: preview_outputs(&request.properties),
                refresh_before_update: false,
            });
        }
        if self.has(|f| &f.create_fails, &request.name) {
            return Err(failed("create", &request.name));
        }
        let inputs = request.properties;
        let id = self
            .cloud
            .create(&request.type_, request.urn.as_ref(), inputs.clone());
        if self.has(|f| &f.create_unknown, &request.name) {
            return Err(died("create", &request.name));
        }
        let properties = outputs(&id, &inputs);
        if self.has(|f| &f.create_half, &request.name) {
            return Err(ProviderError::InitFailed(Box::new(InitFailure {
                id,
                properties,
                inputs: Some(inputs),
                reasons: vec!["it never became ready".to_owned()],
                refresh_before_update: false,
            })));
        }
        Ok(CreateResponse {
            id,
            properties,
            refresh_before_update: false,
        })
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        self.serves(&request.type_)?;
        if self.has(|f| &f.read_fails, &request.name) {
            return Err(failed("read", &request.name));
        }
        Ok(match self.cloud.get(&request.id) {
            None => ReadResponse::default(),
            Some(object) => ReadResponse {
                outputs: outputs(&request.id, &object.inputs),
                inputs: Some(object.inputs),
                id: Some(request.id),
                refresh_before_update: false,
            },
        })
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        if request.preview {
            let properties = outputs(&request.id, &request.new_inputs);
            return Ok(UpdateResponse {
                properties,
                refresh_before_update: false,
            });
        }
        if self.has(|f| &f.update_fails, &request.name)
            || !self.cloud.update(&request.id, request.new_inputs.clone())
        {
            return Err(failed("update", &request.name));
        }
        let properties = outputs(&request.id, &request.new_inputs);
        Ok(UpdateResponse {
            properties,
            refresh_before_update: false,
        })
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        self.serves(&request.type_)?;
        if self.has(|f| &f.delete_fails, &request.name) {
            return Err(failed("delete", &request.name));
        }
        self.cloud.delete(&request.id);
        if self.has(|f| &f.delete_unknown, &request.name) {
            return Err(died("delete", &request.name));
        }
        Ok(())
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        Ok(InvokeResponse {
            properties: request.args,
            failures: Vec::new(),
        })
    }

    async fn call(&self, _: CallRequest) -> Result<CallResponse, ProviderError> {
        Err(ProviderError::Unimplemented { method: "Call" })
    }

    async fn construct(&self, _: ConstructRequest) -> Result<ConstructResponse, ProviderError> {
        Err(ProviderError::Unimplemented {
            method: "Construct",
        })
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn close(&self) {}
}

fn diff_response(detailed: BTreeMap<String, PropertyDiff>, before: bool) -> DiffResponse {
    let keys = |replace: bool| {
        detailed
            .iter()
            .filter(|(_, diff)| !replace || diff.kind.is_replace())
            .map(|(key, _)| key.clone())
            .collect::<Vec<_>>()
    };
    DiffResponse {
        changes: if detailed.is_empty() {
            Diffs::None
        } else {
            Diffs::Some
        },
        replace_keys: keys(true),
        changed_keys: keys(false),
        stable_keys: Vec::new(),
        delete_before_replace: before,
        detailed: Some(detailed),
    }
}

#[async_trait]
impl ProviderHost for FakeProvider {
    async fn load(&self, _: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError> {
        // A process of its own: what another was told it does not know.
        Ok(Arc::new(Self {
            extensions: Arc::default(),
            ..self.clone()
        }))
    }
}
