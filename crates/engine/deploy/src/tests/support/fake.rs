//! A provider whose answers tests replace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use nimbus_engine_model::{PackageDescriptor, PropertyMap, PropertyValue};
use nimbus_engine_ports::*;
use parking_lot::Mutex;

type Reply<Q, A> = Box<dyn Fn(&Q) -> Option<Result<A, ProviderError>> + Send + Sync>;

/// Answers that replace the default ones; `None` falls back to them.
#[derive(Default)]
pub(in crate::tests) struct Replies {
    pub check_config: Option<Reply<CheckRequest, CheckResponse>>,
    pub diff_config: Option<Reply<DiffRequest, DiffResponse>>,
    pub configure: Option<Reply<ConfigureRequest, ()>>,
    pub check: Option<Reply<CheckRequest, CheckResponse>>,
    pub diff: Option<Reply<DiffRequest, DiffResponse>>,
    pub create: Option<Reply<CreateRequest, CreateResponse>>,
    pub read: Option<Reply<ReadRequest, ReadResponse>>,
    pub update: Option<Reply<UpdateRequest, UpdateResponse>>,
    pub delete: Option<Reply<DeleteRequest, ()>>,
}

#[derive(Default)]
pub(in crate::tests) struct Fake {
    pub replies: Mutex<Replies>,
    /// `create a`, `delete a id-1` and so on, in order.
    pub calls: Mutex<Vec<String>>,
    /// Objects that exist, with their inputs.
    pub objects: Mutex<BTreeMap<String, PropertyMap>>,
    /// Creates wait here for each other.
    pub meeting: Mutex<Option<Arc<tokio::sync::Barrier>>>,
    next_id: AtomicUsize,
}

impl Fake {
    fn call(&self, text: String) {
        self.calls.lock().push(text);
    }

    fn reply<Q, A>(
        &self,
        pick: impl Fn(&Replies) -> &Option<Reply<Q, A>>,
        request: &Q,
    ) -> Option<Result<A, ProviderError>> {
        pick(&self.replies.lock())
            .as_ref()
            .and_then(|reply| reply(request))
    }

    fn outputs(id: &str, inputs: &PropertyMap) -> PropertyMap {
        let mut outputs = inputs.clone();
        let out = if id.is_empty() {
            PropertyValue::Computed
        } else {
            format!("out of {id}").into()
        };
        outputs.insert("out".to_owned(), out);
        outputs
    }
}

pub(in crate::tests) fn failed(message: &str) -> ProviderError {
    ProviderError::failed(message.to_owned())
}

pub(in crate::tests) fn unknown(message: &str) -> ProviderError {
    ProviderError::Unknown {
        message: message.to_owned(),
    }
}

/// Key by key; keys that start with `replace` replace.
pub(in crate::tests) fn compare(old: &PropertyMap, new: &PropertyMap) -> DiffResponse {
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
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
impl Provider for Fake {
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
        self.call(format!("configure {} {}", request.name, shown.join(" ")));
        self.reply(|r| &r.configure, &request).unwrap_or(Ok(()))
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
            self.call(format!("create {}", request.name));
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
        let properties = Self::outputs(&id, &request.properties);
        Ok(CreateResponse {
            id,
            properties,
            refresh_before_update: false,
        })
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        self.call(format!("read {} {}", request.name, request.id));
        if let Some(reply) = self.reply(|r| &r.read, &request) {
            return reply;
        }
        Ok(match self.objects.lock().get(&request.id) {
            None => ReadResponse::default(),
            Some(inputs) => ReadResponse {
                outputs: Self::outputs(&request.id, inputs),
                inputs: Some(inputs.clone()),
                id: Some(request.id),
                refresh_before_update: false,
            },
        })
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        if !request.preview {
            self.call(format!("update {} {}", request.name, request.id));
        }
        if let Some(reply) = self.reply(|r| &r.update, &request) {
            return reply;
        }
        if !request.preview {
            self.objects
                .lock()
                .insert(request.id.clone(), request.new_inputs.clone());
        }
        let properties = Self::outputs(&request.id, &request.new_inputs);
        Ok(UpdateResponse {
            properties,
            refresh_before_update: false,
        })
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        self.call(format!("delete {} {}", request.name, request.id));
        if let Some(reply) = self.reply(|r| &r.delete, &request) {
            return reply;
        }
        self.objects.lock().remove(&request.id);
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
        self.call("cancel".to_owned());
        Ok(())
    }

    async fn close(&self) {}
}

pub(super) struct Host(pub(super) Arc<Fake>);

#[async_trait]
impl ProviderHost for Host {
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
