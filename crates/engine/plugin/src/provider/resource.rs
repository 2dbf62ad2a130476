//! Check, diff, create, read, update and delete.

use nimbus_engine_model::{Naming, NamingMode, PropertyMap};
use nimbus_engine_ports::{
    CheckRequest, CheckResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest,
    DiffResponse, InitFailure, ProviderError, ReadRequest, ReadResponse, UpdateRequest,
    UpdateResponse,
};
use nimbus_engine_proto as proto;
use nimbus_engine_proto::check_request::AutonamingOptions;
use nimbus_engine_proto::check_request::autonaming_options::Mode as AutonamingMode;
use nimbus_engine_proto::{ErrorResourceInitFailed, status_detail};
use nimbus_engine_wire::UnknownEncoding;

use super::diff::decode_diff;
use super::failure::{failure, nonsense};
use super::secrets::{mark_like, restore_contents};
use super::session::{CallContext, failures, keep_if, keep_or_reject, receive, seconds, text};
use crate::link::CallError;

impl CallContext {
    pub(crate) async fn check(
        &self,
        request: CheckRequest,
    ) -> Result<CheckResponse, ProviderError> {
        const METHOD: &str = "Check";
        let accept = self.accept(keep_if(request.allow_unknowns));
        let message = proto::CheckRequest {
            urn: text(request.urn.as_ref()),
            name: request.name,
            r#type: request.type_,
            // Providers written for Node cannot read an absent value here.
            olds: self.send(&request.olds.unwrap_or_default(), accept)?,
            news: self.send(&request.news, accept)?,
            random_seed: request.random_seed,
            autonaming: self.naming(request.naming),
        };
        let response = self
            .call(
                METHOD,
                self.limits.quick,
                message,
                |mut client, request| async move { client.check(request).await },
            )
            .await?;
        let unknowns = keep_or_reject(request.allow_unknowns);
        let mut properties = receive(METHOD, response.inputs, unknowns)?;
        self.mark_like(&mut properties, &request.news);
        Ok(CheckResponse {
            properties,
            failures: failures(response.failures),
        })
    }

    /// What the plugin is told about names, if it would understand.
    fn naming(&self, naming: Option<Naming>) -> Option<AutonamingOptions> {
        let naming = naming.filter(|_| self.protocol.supports_naming)?;
        let mode = match naming.mode {
            NamingMode::Propose => AutonamingMode::Propose,
            NamingMode::Enforce => AutonamingMode::Enforce,
            NamingMode::Disable => AutonamingMode::Disable,
        };
        Some(AutonamingOptions {
            proposed_name: naming.proposed,
            mode: mode.into(),
        })
    }

    pub(crate) async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        let accept = self.accept_old(keep_if(request.allow_unknowns));
        let message = proto::DiffRequest {
            id: request.id,
            urn: text(request.urn.as_ref()),
            name: request.name,
            r#type: request.type_,
            old_inputs: self.send(&request.old_inputs, accept)?,
            olds: self.send(&request.old_outputs, accept)?,
            news: self.send(&request.new_inputs, accept)?,
            ignore_changes: request.ignore_changes,
        };
        let response = self
            .call(
                "Diff",
                self.limits.quick,
                message,
                |mut client, request| async move { client.diff(request).await },
            )
            .await?;
        Ok(decode_diff(response))
    }

    pub(crate) async fn create(
        &self,
        request: CreateRequest,
    ) -> Result<CreateResponse, ProviderError> {
        const METHOD: &str = "Create";
        let message = proto::CreateRequest {
            urn: text(request.urn.as_ref()),
            name: request.name,
            r#type: request.type_,
            properties: self.send(&request.properties, self.accept(keep_if(request.preview)))?,
            timeout: seconds(request.timeout),
            preview: request.preview,
            ..proto::CreateRequest::default()
        };
        let limit = self.act_limit(request.timeout);
        let result = self
            .try_call(METHOD, limit, message, |mut client, request| async move {
                client.create(request).await
            })
            .await;
        let response = match result {
            Ok(response) => response,
            Err(error) => {
                let error = self.act_failure(METHOD, error, &request.properties);
                return Err(require_id(error));
            }
        };
        if response.id.is_empty() && !request.preview {
            return Err(nonsense(METHOD, "it has no id"));
        }
        let unknowns = keep_or_reject(request.preview);
        let mut properties = receive(METHOD, response.properties, unknowns)?;
        self.mark_like(&mut properties, &request.properties);
        let refresh_before_update = response.refresh_before_update;
        Ok(CreateResponse {
            id: response.id,
            properties,
            refresh_before_update,
        })
    }

    pub(crate) async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        const METHOD: &str = "Read";
        let accept = self.accept_old(UnknownEncoding::Drop);
        let inputs = if request.inputs.is_empty() {
            None
        } else {
            self.send(&request.inputs, accept)?
        };
        let message = proto::ReadRequest {
            id: request.id.clone(),
            urn: text(request.urn.as_ref()),
            name: request.name,
            r#type: request.type_,
            properties: self.send(&request.state, accept)?,
            inputs,
            ..proto::ReadRequest::default()
        };
        let result = self
            .try_call(
                METHOD,
                self.limits.slow,
                message,
                |mut client, request| async move { client.read(request).await },
            )
            .await;
        let response = match result {
            Ok(response) => response,
            Err(error) => {
                let error = self.act_failure(METHOD, error, &request.state);
                return Err(or_id(error, &request.id));
            }
        };
        let mut outputs = receive(METHOD, response.properties, UnknownEncoding::Reject)?;
        let inputs = response
            .inputs
            .map(|inputs| receive(METHOD, Some(inputs), UnknownEncoding::Reject));
        let mut inputs = inputs.transpose()?;
        self.mark_like(&mut outputs, &request.state);
        restore_contents(&mut outputs, &request.inputs);
        if let Some(inputs) = &mut inputs {
            self.mark_like(inputs, &request.inputs);
            restore_contents(inputs, &request.inputs);
        }
        let id = (!response.id.is_empty()).then_some(response.id);
        let refresh_before_update = response.refresh_before_update;
        Ok(ReadResponse {
            id,
            outputs,
            inputs,
            refresh_before_update,
        })
    }

    pub(crate) async fn update(
        &self,
        request: UpdateRequest,
    ) -> Result<UpdateResponse, ProviderError> {
        const METHOD: &str = "Update";
        let old = self.accept_old(UnknownEncoding::Drop);
        let message = proto::UpdateRequest {
            id: request.id.clone(),
            urn: text(request.urn.as_ref()),
            name: request.name,
            r#type: request.type_,
            old_inputs: self.send(&request.old_inputs, old)?,
            olds: self.send(&request.old_outputs, old)?,
            news: self.send(&request.new_inputs, self.accept(keep_if(request.preview)))?,
            timeout: seconds(request.timeout),
            ignore_changes: request.ignore_changes,
            preview: request.preview,
            ..proto::UpdateRequest::default()
        };
        let limit = self.act_limit(request.timeout);
        let result = self
            .try_call(METHOD, limit, message, |mut client, request| async move {
                client.update(request).await
            })
            .await;
        let response = match result {
            Ok(response) => response,
            Err(error) => {
                let error = self.act_failure(METHOD, error, &request.new_inputs);
                return Err(or_id(error, &request.id));
            }
        };
        let unknowns = keep_or_reject(request.preview);
        let mut properties = receive(METHOD, response.properties, unknowns)?;
        self.mark_like(&mut properties, &request.new_inputs);
        let refresh_before_update = response.refresh_before_update;
        Ok(UpdateResponse {
            properties,
            refresh_before_update,
        })
    }

    pub(crate) async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        let accept = self.accept_old(UnknownEncoding::Drop);
        let message = proto::DeleteRequest {
            id: request.id,
            urn: text(request.urn.as_ref()),
            name: request.name,
            r#type: request.type_,
            old_inputs: self.send(&request.inputs, accept)?,
            properties: self.send(&request.outputs, accept)?,
            timeout: seconds(request.timeout),
            ..proto::DeleteRequest::default()
        };
        let limit = self.act_limit(request.timeout);
        self.call("Delete", limit, message, |mut client, request| async move {
            client.delete(request).await
        })
        .await
    }

    /// Puts back what the plugin could not be told about its inputs.
    fn mark_like(&self, outputs: &mut PropertyMap, inputs: &PropertyMap) {
        self.restore_paths(outputs, inputs);
        if !self.protocol.accepts_secrets {
            mark_like(outputs, inputs);
        }
    }

    /// A failed act may still have made something: the error's details say so.
    fn act_failure(
        &self,
        method: &'static str,
        error: CallError,
        inputs: &PropertyMap,
    ) -> ProviderError {
        let detail = match &error {
            CallError::Answered(status) => status_detail::<ErrorResourceInitFailed>(status),
            CallError::Lost { .. } | CallError::Gone { .. } | CallError::Abandoned => None,
        };
        match detail {
            None => failure(method, error),
            Some(detail) => self.init_failure(method, detail, inputs).map_or_else(
                |error| error,
                |found| ProviderError::InitFailed(Box::new(found)),
            ),
        }
    }

    fn init_failure(
        &self,
        method: &str,
        detail: ErrorResourceInitFailed,
        sent: &PropertyMap,
    ) -> Result<InitFailure, ProviderError> {
        let mut properties = receive(method, detail.properties, UnknownEncoding::Drop)?;
        self.mark_like(&mut properties, sent);
        let inputs = detail
            .inputs
            .map(|inputs| receive(method, Some(inputs), UnknownEncoding::Drop));
        let mut inputs = inputs.transpose()?;
        if let Some(inputs) = &mut inputs {
            self.mark_like(inputs, sent);
        }
        let mut reasons = detail.reasons;
        if reasons.is_empty() {
            reasons.push("the resource did not finish initialising".to_owned());
        }
        Ok(InitFailure {
            id: detail.id,
            properties,
            inputs,
            reasons,
            refresh_before_update: detail.refresh_before_update,
        })
    }
}

/// A resource that was made must have an id, or nobody can ever find it again.
fn require_id(error: ProviderError) -> ProviderError {
    match error {
        ProviderError::InitFailed(found) if found.id.is_empty() => {
            let reasons = found.reasons.join("; ");
            nonsense(
                "Create",
                format!("something was made, without an id: {reasons}"),
            )
        }
        other => other,
    }
}

/// An existing resource keeps its id when the provider does not repeat it.
fn or_id(error: ProviderError, id: &str) -> ProviderError {
    match error {
        ProviderError::InitFailed(mut found) if found.id.is_empty() => {
            found.id = id.to_owned();
            ProviderError::InitFailed(found)
        }
        other => other,
    }
}
