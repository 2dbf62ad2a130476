//! The configuration of a provider: checked, compared, and handed over.

use std::collections::BTreeMap;

use nimbus_engine_model::{PropertyMap, PropertyValue, provider_package};
use nimbus_engine_ports::{
    CheckRequest, CheckResponse, ConfigureRequest, DiffRequest, DiffResponse, Diffs, ProviderError,
};
use nimbus_engine_proto as proto;
use nimbus_engine_wire::{Accept, UnknownEncoding};
use tonic::Code;

use super::diff::decode_diff;
use super::failure::failure;
use super::secrets::mark_like;
use super::session::{CallContext, failures, keep_if, keep_or_reject, receive, send, text};
use crate::link::CallError;
use crate::plugin::Protocol;

impl CallContext {
    pub(crate) async fn check_config(
        &self,
        request: CheckRequest,
    ) -> Result<CheckResponse, ProviderError> {
        const METHOD: &str = "CheckConfig";
        // What the provider understands is not settled yet, so it gets nothing special.
        let plain = Accept {
            unknowns: keep_if(request.allow_unknowns),
            ..Accept::default()
        };
        let message = proto::CheckRequest {
            urn: text(request.urn.as_ref()),
            name: request.name,
            r#type: request.type_.clone(),
            olds: request
                .olds
                .map(|olds| send(&olds, plain))
                .transpose()?
                .flatten(),
            news: send(&request.news, plain)?,
            ..proto::CheckRequest::default()
        };
        let result = self
            .try_call(
                METHOD,
                self.limits.quick,
                message,
                |mut client, request| async move { client.check_config(request).await },
            )
            .await;
        let response = match result {
            Ok(response) => response,
            // A provider that does not check accepts everything.
            Err(error) if is_missing(&error, &request.type_) => {
                return Ok(CheckResponse {
                    properties: request.news,
                    failures: Vec::new(),
                });
            }
            Err(error) => return Err(failure(METHOD, error)),
        };
        let unknowns = keep_or_reject(request.allow_unknowns);
        let mut properties = receive(METHOD, response.inputs, unknowns)?;
        mark_like(&mut properties, &request.news);
        Ok(CheckResponse {
            properties,
            failures: failures(response.failures),
        })
    }

    /// A provider that does not compare configurations never asks to be replaced: the other
    /// answer would replace all its resources for any change.
    pub(crate) async fn diff_config(
        &self,
        request: DiffRequest,
    ) -> Result<DiffResponse, ProviderError> {
        const METHOD: &str = "DiffConfig";
        let plain = Accept {
            unknowns: UnknownEncoding::Keep,
            ..Accept::default()
        };
        let message = proto::DiffRequest {
            urn: text(request.urn.as_ref()),
            name: request.name,
            r#type: request.type_.clone(),
            old_inputs: send(&request.old_inputs, plain)?,
            olds: send(&request.old_outputs, plain)?,
            news: send(&request.new_inputs, plain)?,
            ignore_changes: request.ignore_changes,
            ..proto::DiffRequest::default()
        };
        let result = self
            .try_call(
                METHOD,
                self.limits.quick,
                message,
                |mut client, request| async move { client.diff_config(request).await },
            )
            .await;
        match result {
            Ok(response) => Ok(decode_diff(response)),
            Err(error) if is_missing(&error, &request.type_) => Ok(undecided()),
            Err(error) if is_old_kubernetes_defect(&error, &request.type_) => Ok(undecided()),
            Err(error) => Err(failure(METHOD, error)),
        }
    }

    /// Hands the configuration over and learns what the provider understands. A process that many
    /// share is not told which provider resource it is.
    pub(crate) async fn configure(
        &self,
        request: &ConfigureRequest,
        knows_itself: bool,
    ) -> Result<Protocol, ProviderError> {
        let accept = Accept {
            unknowns: UnknownEncoding::Keep,
            secrets: true,
            resources: true,
            ..Accept::default()
        };
        let package = provider_package(&request.type_).unwrap_or_default();
        #[allow(deprecated, reason = "old providers read nothing but `variables`")]
        let message = proto::ConfigureRequest {
            variables: variables(package, &request.inputs),
            args: send(&request.inputs, accept)?,
            accept_secrets: true,
            accept_resources: true,
            sends_old_inputs: true,
            sends_old_inputs_to_delete: true,
            id: request.id.clone().filter(|_| knows_itself),
            urn: request
                .urn
                .as_ref()
                .filter(|_| knows_itself)
                .map(ToString::to_string),
            name: knows_itself.then(|| request.name.clone()),
            r#type: knows_itself.then(|| request.type_.clone()),
        };
        let response = self
            .call(
                "Configure",
                self.limits.quick,
                message,
                |mut client, request| async move { client.configure(request).await },
            )
            .await?;
        Ok(self
            .plugin
            .protocol
            .unwrap_or_else(|| Protocol::from(response)))
    }
}

/// Whether a provider can be configured with this: it must not see unknown values.
pub(crate) fn is_known(inputs: &PropertyMap) -> bool {
    !inputs
        .iter()
        .any(|(key, value)| key != "version" && value.contains_unknowns())
}

fn undecided() -> DiffResponse {
    DiffResponse {
        changes: Diffs::Unknown,
        ..DiffResponse::default()
    }
}

/// Whether the provider does not have the method. Two old ones say so in a way of their own.
fn is_missing(error: &CallError, type_: &str) -> bool {
    let CallError::Answered(status) = error else {
        return false;
    };
    match (status.code(), provider_package(type_)) {
        (Code::Unimplemented, _) => true,
        (Code::Internal, Some("pulumi-nodejs")) => true,
        (Code::Unknown, Some("kubernetes")) => status.message().contains("Unimplemented"),
        _ => false,
    }
}

/// Old versions of the Kubernetes provider fail here when `kubeconfig` is the name of a file.
fn is_old_kubernetes_defect(error: &CallError, type_: &str) -> bool {
    const SIGN: &str = "cannot unmarshal string into Go value of type struct";
    let CallError::Answered(status) = error else {
        return false;
    };
    provider_package(type_) == Some("kubernetes") && status.message().contains(SIGN)
}

/// The old form of a configuration: flat text, everything that is not text as JSON.
fn variables(package: &str, inputs: &PropertyMap) -> BTreeMap<String, String> {
    let variable = |(key, value): (&String, &PropertyValue)| {
        let text = match plain_json(value) {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        (format!("{package}:config:{key}"), text)
    };
    inputs
        .iter()
        .filter(|(key, _)| *key != "version")
        .map(variable)
        .collect()
}

/// The value without marks. Files and references have no place in this form and become null.
fn plain_json(value: &PropertyValue) -> serde_json::Value {
    use serde_json::Value;
    match value {
        PropertyValue::Bool(value) => Value::Bool(*value),
        PropertyValue::Number(number) => json_number(*number),
        PropertyValue::String(text) => Value::String(text.clone()),
        PropertyValue::Bytes(bytes) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
        PropertyValue::Array(items) => items.iter().map(plain_json).collect(),
        PropertyValue::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), plain_json(value)))
            .collect(),
        PropertyValue::Secret(inner) => plain_json(inner),
        PropertyValue::Output(output) => output.value.as_ref().map_or(Value::Null, plain_json),
        PropertyValue::Null
        | PropertyValue::Computed
        | PropertyValue::Asset(_)
        | PropertyValue::Archive(_)
        | PropertyValue::ResourceReference(_) => Value::Null,
    }
}

/// Whole numbers are written without a fraction.
fn json_number(number: f64) -> serde_json::Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        return serde_json::Value::from(number as i64);
    }
    serde_json::Value::from(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map<const N: usize>(entries: [(&str, PropertyValue); N]) -> PropertyMap {
        entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }

    #[test]
    fn variables_are_text_and_everything_else_json_without_marks() {
        let inputs = map([
            ("version", "1.0.0".into()),
            ("region", "eu-west-1".into()),
            ("token", PropertyValue::secret("t".into())),
            ("retries", 3.0.into()),
            ("ratio", 0.5.into()),
            ("skip", true.into()),
            (
                "tags",
                map([("a", PropertyValue::secret("<b>".into()))]).into(),
            ),
            (
                "list",
                vec![PropertyValue::from("x"), PropertyValue::Null].into(),
            ),
        ]);
        let expected = [
            ("aws:config:list", "[\"x\",null]"),
            ("aws:config:ratio", "0.5"),
            ("aws:config:region", "eu-west-1"),
            ("aws:config:retries", "3"),
            ("aws:config:skip", "true"),
            ("aws:config:tags", "{\"a\":\"<b>\"}"),
            ("aws:config:token", "t"),
        ];
        let found = variables("aws", &inputs);
        let found: Vec<_> = found
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_the_version_may_be_unknown_in_a_configuration() {
        assert!(is_known(&map([
            ("version", PropertyValue::Computed),
            ("a", "x".into())
        ])));
        let nested = PropertyValue::secret(map([("b", PropertyValue::Computed)]).into());
        assert!(!is_known(&map([("a", nested)])));
    }
}
