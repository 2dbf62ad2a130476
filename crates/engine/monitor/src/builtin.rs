//! The provider of the built-in package `pulumi`: references to other stacks, resources by URN,
//! and stashes.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use nimbus_engine_model::{PropertyMap, PropertyValue, ResourceState, Urn};
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckFailure, CheckRequest, CheckResponse, ConfigureRequest,
    ConstructRequest, ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest,
    DiffResponse, Diffs, InvokeRequest, InvokeResponse, Provider, ProviderError, ReadRequest,
    ReadResponse, Registrar, UpdateRequest, UpdateResponse,
};
use uuid::Uuid;

/// The package that this provider serves.
pub const BUILTIN_PACKAGE: &str = "pulumi";

const STACK_REFERENCE: &str = "pulumi:pulumi:StackReference";
const STASH: &str = "pulumi:index:Stash";

/// Reads what other stacks offer.
#[async_trait]
pub trait StackReader: Send + Sync {
    /// The outputs of a stack, secrets marked. The name is as the program wrote it.
    async fn outputs(&self, name: &str) -> Result<PropertyMap, StackReadError>;
    /// For each resource of a stack, by URN, its type and outputs.
    async fn resource_outputs(&self, name: &str) -> Result<PropertyMap, StackReadError>;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StackReadError {
    #[error("there is no stack {name}")]
    NotFound { name: String },
    #[error("stack {name} cannot be read: {reason}")]
    Unreadable { name: String, reason: String },
}

/// The resources of the running deployment, for a provider that exists before it.
#[derive(Default)]
pub struct RunningResources {
    registrar: OnceLock<Weak<dyn Registrar>>,
}

impl RunningResources {
    /// Called once, when the deployment starts. It holds the provider, not the other way round.
    pub fn bind(&self, registrar: &Arc<dyn Registrar>) {
        // A second deployment would be a second provider.
        let _ = self.registrar.set(Arc::downgrade(registrar));
    }

    fn get(&self, urn: &Urn) -> Option<Arc<ResourceState>> {
        self.registrar.get()?.upgrade()?.resource(urn)
    }
}

pub struct BuiltinProvider {
    stacks: Arc<dyn StackReader>,
    resources: Arc<RunningResources>,
}

impl BuiltinProvider {
    pub fn new(stacks: Arc<dyn StackReader>, resources: Arc<RunningResources>) -> Self {
        Self { stacks, resources }
    }

    async fn stack_reference(&self, inputs: &PropertyMap) -> Result<PropertyMap, ProviderError> {
        let name = text(inputs, "name")?;
        let outputs = self.stacks.outputs(name).await.map_err(failed)?;
        let secret = outputs.iter().filter(|(_, value)| value.contains_secrets());
        let secret = secret.map(|(key, _)| key.as_str().into()).collect();
        Ok(PropertyMap::from([
            ("name".to_owned(), name.into()),
            ("outputs".to_owned(), PropertyValue::Object(outputs)),
            ("secretOutputNames".to_owned(), PropertyValue::Array(secret)),
        ]))
    }

    async fn stack_resources(&self, inputs: &PropertyMap) -> Result<PropertyMap, ProviderError> {
        let name = text(inputs, "stackName")?;
        let outputs = self.stacks.resource_outputs(name).await.map_err(failed)?;
        Ok(PropertyMap::from([
            ("name".to_owned(), name.into()),
            ("outputs".to_owned(), PropertyValue::Object(outputs)),
        ]))
    }

    fn resource(&self, inputs: &PropertyMap) -> Result<PropertyMap, ProviderError> {
        let text = text(inputs, "urn")?;
        let urn = Urn::parse(text).map_err(failed)?;
        let state = self.resources.get(&urn);
        let state = state.ok_or_else(|| failed(format!("there is no resource {urn}")))?;
        let id = state.id.as_deref().unwrap_or_default();
        Ok(PropertyMap::from([
            ("urn".to_owned(), text.into()),
            ("id".to_owned(), id.into()),
            ("provider".to_owned(), state.provider.as_str().into()),
            (
                "state".to_owned(),
                PropertyValue::Object(state.outputs.clone()),
            ),
        ]))
    }
}

fn failed(error: impl ToString) -> ProviderError {
    ProviderError::failed(error.to_string())
}

fn unknown_type(type_: &str) -> ProviderError {
    failed(format!("the built-in package has no resource type {type_}"))
}

fn text<'a>(inputs: &'a PropertyMap, key: &str) -> Result<&'a str, ProviderError> {
    let value = inputs.get(key).map(|value| match value {
        PropertyValue::Secret(inner) => inner,
        other => other,
    });
    value
        .and_then(PropertyValue::as_str)
        .ok_or_else(|| failed(format!("{key} must be a string")))
}

/// Type of the resource in question; the URN knows it best.
fn type_of<'a>(urn: &'a Option<Urn>, type_: &'a str) -> &'a str {
    urn.as_ref().map_or(type_, Urn::type_)
}

fn only_property(key: &str, news: PropertyMap) -> CheckResponse {
    let failure = |property: &str, reason: String| CheckResponse {
        properties: PropertyMap::new(),
        failures: vec![CheckFailure {
            property: property.to_owned(),
            reason,
        }],
    };
    if let Some(other) = news.keys().find(|other| *other != key) {
        return failure(other, format!("there is no property {other:?}"));
    }
    if !news.contains_key(key) {
        return failure(key, format!("the property {key:?} is missing"));
    }
    CheckResponse {
        properties: news,
        failures: Vec::new(),
    }
}

/// Previews have no id.
fn new_id(preview: bool) -> String {
    if preview {
        String::new()
    } else {
        Uuid::new_v4().to_string()
    }
}

#[async_trait]
impl Provider for BuiltinProvider {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        Ok(CheckResponse {
            properties: request.news,
            failures: Vec::new(),
        })
    }

    async fn diff_config(&self, _request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        Ok(DiffResponse {
            changes: Diffs::None,
            ..DiffResponse::default()
        })
    }

    async fn configure(&self, _request: ConfigureRequest) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        match type_of(&request.urn, &request.type_) {
            STACK_REFERENCE => {
                let mut checked = only_property("name", request.news);
                let name = checked.properties.get("name");
                let acceptable = name.is_none_or(|name| {
                    matches!(name, PropertyValue::String(_) | PropertyValue::Computed)
                });
                if !acceptable {
                    checked.failures.push(CheckFailure {
                        property: "name".to_owned(),
                        reason: "the property \"name\" must be a string".to_owned(),
                    });
                }
                Ok(checked)
            }
            STASH => Ok(only_property("input", request.news)),
            other => Err(unknown_type(other)),
        }
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        let (key, replaces) = match type_of(&request.urn, &request.type_) {
            STACK_REFERENCE => ("name", true),
            STASH => ("input", false),
            other => return Err(unknown_type(other)),
        };
        if request.old_inputs.get(key) == request.new_inputs.get(key) {
            return Ok(DiffResponse {
                changes: Diffs::None,
                ..DiffResponse::default()
            });
        }
        let keys = vec![key.to_owned()];
        let (replace_keys, changed_keys) = if replaces {
            (keys, Vec::new())
        } else {
            (Vec::new(), keys)
        };
        Ok(DiffResponse {
            changes: Diffs::Some,
            replace_keys,
            changed_keys,
            ..DiffResponse::default()
        })
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateResponse, ProviderError> {
        let properties = match type_of(&request.urn, &request.type_) {
            STACK_REFERENCE => self.stack_reference(&request.properties).await?,
            STASH => {
                let input = request.properties.get("input").cloned().unwrap_or_default();
                stash(input.clone(), input)
            }
            other => return Err(unknown_type(other)),
        };
        Ok(CreateResponse {
            id: new_id(request.preview),
            properties,
            refresh_before_update: false,
        })
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        let outputs = match type_of(&request.urn, &request.type_) {
            STACK_REFERENCE => {
                if !request.inputs.contains_key("name") {
                    return Err(failed("a stack reference cannot be imported"));
                }
                let state = if request.state.contains_key("name") {
                    &request.state
                } else {
                    &request.inputs
                };
                self.stack_reference(state).await?
            }
            STASH if request.inputs.is_empty() => {
                return Err(failed("a stash cannot be imported"));
            }
            STASH => request.state,
            other => return Err(unknown_type(other)),
        };
        Ok(ReadResponse {
            id: Some(request.id),
            outputs,
            inputs: Some(request.inputs),
            refresh_before_update: false,
        })
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        match type_of(&request.urn, &request.type_) {
            // A stash keeps the output of its first input.
            STASH => {
                let input = request.new_inputs.get("input").cloned().unwrap_or_default();
                let output = request
                    .old_outputs
                    .get("output")
                    .cloned()
                    .unwrap_or_default();
                Ok(UpdateResponse {
                    properties: stash(input, output),
                    refresh_before_update: false,
                })
            }
            other => Err(unknown_type(other)),
        }
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        match type_of(&request.urn, &request.type_) {
            STACK_REFERENCE | STASH => Ok(()),
            other => Err(unknown_type(other)),
        }
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        let properties = match request.token.as_str() {
            "pulumi:pulumi:readStackOutputs" => self.stack_reference(&request.args).await?,
            "pulumi:pulumi:readStackResourceOutputs" => self.stack_resources(&request.args).await?,
            "pulumi:pulumi:getResource" => self.resource(&request.args)?,
            other => {
                return Err(failed(format!(
                    "the built-in package has no function {other}"
                )));
            }
        };
        Ok(InvokeResponse {
            properties,
            failures: Vec::new(),
        })
    }

    async fn call(&self, _request: CallRequest) -> Result<CallResponse, ProviderError> {
        Err(ProviderError::Unimplemented { method: "Call" })
    }

    async fn construct(
        &self,
        _request: ConstructRequest,
    ) -> Result<ConstructResponse, ProviderError> {
        Err(ProviderError::Unimplemented {
            method: "Construct",
        })
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn close(&self) {}
}

fn stash(input: PropertyValue, output: PropertyValue) -> PropertyMap {
    PropertyMap::from([("input".to_owned(), input), ("output".to_owned(), output)])
}
