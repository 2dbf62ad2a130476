//! A provider that answers as told and records what it was asked.
//!
//! Unless told otherwise it accepts everything, sees a difference in every changed input, replaces
//! when an input whose name starts with `replace` changes, and returns its inputs and `out` as
//! outputs. It has no functions, methods and components but those that a test gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use nimbus_engine_model::{PackageDescriptor, Parameterization, PropertyMap, PropertyValue};
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckRequest, CheckResponse, ConfigureRequest, ConstructRequest,
    ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffKind, DiffRequest,
    DiffResponse, Diffs, InvokeRequest, InvokeResponse, LoadError, PropertyDiff, Provider,
    ProviderError, ProviderHost, ReadRequest, ReadResponse, UpdateRequest, UpdateResponse,
};
use parking_lot::Mutex;
use tokio::sync::Barrier;

type Reply<Request, Response> =
    Box<dyn Fn(Request) -> Result<Response, ProviderError> + Send + Sync>;
type PartialReply<Request, Response> =
    Box<dyn Fn(&Request) -> Option<Result<Response, ProviderError>> + Send + Sync>;

/// Answers that replace the default ones; `None` falls back to them.
#[derive(Default)]
pub struct ProviderReplies {
    pub check_config: Option<PartialReply<CheckRequest, CheckResponse>>,
    pub diff_config: Option<PartialReply<DiffRequest, DiffResponse>>,
    pub configure: Option<PartialReply<ConfigureRequest, ()>>,
    pub check: Option<PartialReply<CheckRequest, CheckResponse>>,
    pub diff: Option<PartialReply<DiffRequest, DiffResponse>>,
    pub create: Option<PartialReply<CreateRequest, CreateResponse>>,
    pub read: Option<PartialReply<ReadRequest, ReadResponse>>,
    pub update: Option<PartialReply<UpdateRequest, UpdateResponse>>,
    pub delete: Option<PartialReply<DeleteRequest, ()>>,
}

/// See the module's documentation.
#[derive(Default)]
pub struct AnsweringProvider {
    pub replies: Mutex<ProviderReplies>,
    /// `create a`, `delete a id-1` and so on, in order.
    pub log: Mutex<Vec<String>>,
    /// Objects that exist, with their inputs.
    pub objects: Mutex<BTreeMap<String, PropertyMap>>,
    /// Creates wait here for each other.
    pub meeting: Mutex<Option<Arc<Barrier>>>,
    next_id: AtomicUsize,
    on_invoke: Option<Reply<InvokeRequest, InvokeResponse>>,
    on_call: Option<Reply<CallRequest, CallResponse>>,
    on_construct: Option<Reply<ConstructRequest, ConstructResponse>>,
    invokes: Mutex<Vec<InvokeRequest>>,
    method_calls: Mutex<Vec<CallRequest>>,
    constructs: Mutex<Vec<ConstructRequest>>,
}

impl AnsweringProvider {
    #[must_use]
    pub fn on_invoke(
        mut self,
        reply: impl Fn(InvokeRequest) -> Result<InvokeResponse, ProviderError> + Send + Sync + 'static,
    ) -> Self {
        self.on_invoke = Some(Box::new(reply));
        self
    }

    #[must_use]
    pub fn on_call(
        mut self,
        reply: impl Fn(CallRequest) -> Result<CallResponse, ProviderError> + Send + Sync + 'static,
    ) -> Self {
        self.on_call = Some(Box::new(reply));
        self
    }

    #[must_use]
    pub fn on_construct(
        mut self,
        reply: impl Fn(ConstructRequest) -> Result<ConstructResponse, ProviderError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.on_construct = Some(Box::new(reply));
        self
    }

    pub fn invokes(&self) -> Vec<InvokeRequest> {
        self.invokes.lock().clone()
    }

    pub fn calls(&self) -> Vec<CallRequest> {
        self.method_calls.lock().clone()
    }

    pub fn constructs(&self) -> Vec<ConstructRequest> {
        self.constructs.lock().clone()
    }

    fn note(&self, text: String) {
        self.log.lock().push(text);
    }

    fn reply<Request, Response>(
        &self,
        pick: impl Fn(&ProviderReplies) -> &Option<PartialReply<Request, Response>>,
        request: &Request,
    ) -> Option<Result<Response, ProviderError>> {
        pick(&self.replies.lock())
            .as_ref()
            .and_then(|reply| reply(request))
    }
}

fn unimplemented<T>(method: &'static str) -> Result<T, ProviderError> {
    Err(ProviderError::Unimplemented { method })
}

fn outputs(id: &str, inputs: &PropertyMap) -> PropertyMap {
    let mut outputs = inputs.clone();
    let out = match id {
        "" => PropertyValue::Computed,
        id => format!("out of {id}").into(),
    };
    outputs.insert("out".to_owned(), out);
    outputs
}

/// Key by key; keys that start with `replace` replace.
pub fn compare(old: &PropertyMap, new: &PropertyMap) -> DiffResponse {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changed = keys
        .into_iter()
        .filter(|key| old.get(*key) != new.get(*key));
    let detailed: BTreeMap<String, PropertyDiff> = changed
        .map(|key| {
            let kind = if key.starts_with("replace") {
                DiffKind::UpdateReplace
            } else {
                DiffKind::Update
            };
            (
                key.clone(),
                PropertyDiff {
                    kind,
                    input_diff: true,
                },
            )
        })
        .collect();
    DiffResponse {
        changes: if detailed.is_empty() {
            Diffs::None
        } else {
            Diffs::Some
        },
        replace_keys: detailed
            .keys()
            .filter(|key| key.starts_with("replace"))
            .cloned()
            .collect(),
        changed_keys: detailed.keys().cloned().collect(),
        detailed: Some(detailed),
        ..DiffResponse::default()
    }
}

#[async_trait]
impl Provider for AnsweringProvider {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        self.reply(|r| &r.check_config, &request)
            .unwrap_or_else(|| {
                Ok(CheckResponse {
                    properties: request.news,
                    failures: Vec::new(),
                })
            })
    }

    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        self.reply(|r| &r.diff_config, &request)
            .unwrap_or_else(|| Ok(compare(&request.old_inputs, &request.new_inputs)))
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        let shown: Vec<String> = request
            .inputs
            .iter()
            .map(|(key, value)| format!("{key}={value:?}"))
            .collect();
        self.note(format!("configure {} {}", request.name, shown.join(" ")));
        self.reply(|r| &r.configure, &request).unwrap_or(Ok(()))
    }

    async fn extend(&self, extension: &Parameterization) -> Result<(), ProviderError> {
        self.note(format!("extend {}", extension.name));
        Ok(())
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        self.reply(|r| &r.check, &request).unwrap_or_else(|| {
            Ok(CheckResponse {
                properties: request.news,
                failures: Vec::new(),
            })
        })
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        self.reply(|r| &r.diff, &request)
            .unwrap_or_else(|| Ok(compare(&request.old_inputs, &request.new_inputs)))
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateResponse, ProviderError> {
        if !request.preview {
            self.note(format!("create {}", request.name));
            let meeting = self.meeting.lock().clone();
            if let Some(meeting) = meeting {
                meeting.wait().await;
            }
        }
        if let Some(reply) = self.reply(|r| &r.create, &request) {
            return reply;
        }
        let id = if request.preview {
            String::new()
        } else {
            let id = format!("id-{}", self.next_id.fetch_add(1, Ordering::Relaxed) + 1);
            self.objects
                .lock()
                .insert(id.clone(), request.properties.clone());
            id
        };
        let properties = outputs(&id, &request.properties);
        Ok(CreateResponse {
            id,
            properties,
            refresh_before_update: false,
        })
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        self.note(format!("read {} {}", request.name, request.id));
        if let Some(reply) = self.reply(|r| &r.read, &request) {
            return reply;
        }
        Ok(match self.objects.lock().get(&request.id) {
            None => ReadResponse::default(),
            Some(inputs) => ReadResponse {
                outputs: outputs(&request.id, inputs),
                inputs: Some(inputs.clone()),
                id: Some(request.id),
                refresh_before_update: false,
            },
        })
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        if !request.preview {
            self.note(format!("update {} {}", request.name, request.id));
        }
        if let Some(reply) = self.reply(|r| &r.update, &request) {
            return reply;
        }
        if !request.preview {
            self.objects
                .lock()
                .insert(request.id.clone(), request.new_inputs.clone());
        }
        let properties = outputs(&request.id, &request.new_inputs);
        Ok(UpdateResponse {
            properties,
            refresh_before_update: false,
        })
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        self.note(format!("delete {} {}", request.name, request.id));
        if let Some(reply) = self.reply(|r| &r.delete, &request) {
            return reply;
        }
        self.objects.lock().remove(&request.id);
        Ok(())
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        self.invokes.lock().push(request.clone());
        match &self.on_invoke {
            Some(reply) => reply(request),
            None => unimplemented("Invoke"),
        }
    }

    async fn call(&self, request: CallRequest) -> Result<CallResponse, ProviderError> {
        self.method_calls.lock().push(request.clone());
        match &self.on_call {
            Some(reply) => reply(request),
            None => unimplemented("Call"),
        }
    }

    async fn construct(
        &self,
        request: ConstructRequest,
    ) -> Result<ConstructResponse, ProviderError> {
        self.constructs.lock().push(request.clone());
        match &self.on_construct {
            Some(reply) => reply(request),
            None => unimplemented("Construct"),
        }
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.note("cancel".to_owned());
        Ok(())
    }

    async fn close(&self) {}
}

/// Has every package but one that is called `missing`.
pub(crate) struct AnsweringHost(pub(crate) Arc<AnsweringProvider>);

#[async_trait]
impl ProviderHost for AnsweringHost {
    async fn load(&self, package: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError> {
        if package.name == "missing" {
            return Err(LoadError::NotFound {
                package: package.name.clone(),
                version: None,
                reason: "not installed".to_owned(),
            });
        }
        Ok(Arc::clone(&self.0) as _)
    }
}
