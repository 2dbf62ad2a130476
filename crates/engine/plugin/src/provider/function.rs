//! Functions and methods of a provider.

use std::collections::BTreeMap;

use nimbus_engine_model::Urn;
use nimbus_engine_ports::{
    CallRequest, CallResponse, InvokeRequest, InvokeResponse, ProviderError,
};
use nimbus_engine_proto as proto;
use nimbus_engine_wire::{Accept, AcceptedValues, Outputs, UnknownEncoding, decode};
use proto::call_request::ArgumentDependencies;

use super::failure::nonsense;
use super::secrets::mark_all;
use super::session::{CallContext, failures, keep_if, receive};

impl CallContext {
    pub(crate) async fn invoke(
        &self,
        request: InvokeRequest,
    ) -> Result<InvokeResponse, ProviderError> {
        const METHOD: &str = "Invoke";
        let secret = request.args.values().any(|value| value.contains_secrets());
        let message = proto::InvokeRequest {
            tok: request.token,
            args: self.send(&request.args, self.accept(UnknownEncoding::Drop))?,
            preview: request.preview,
        };
        let response = self
            .call(
                METHOD,
                self.limits.slow,
                message,
                |mut client, request| async move { client.invoke(request).await },
            )
            .await?;
        let mut properties = receive(METHOD, response.r#return, UnknownEncoding::Reject)?;
        self.restore_paths(&mut properties, &request.args);
        if secret && !self.protocol.accepts_secrets {
            mark_all(&mut properties);
        }
        Ok(InvokeResponse {
            properties,
            failures: failures(response.failures),
        })
    }

    pub(crate) async fn call_method(
        &self,
        request: CallRequest,
    ) -> Result<CallResponse, ProviderError> {
        const METHOD: &str = "Call";
        let context = request.context;
        let accept = Accept {
            unknowns: UnknownEncoding::Keep,
            secrets: true,
            resources: true,
            outputs: self.protocol.accepts_outputs,
            byte_strings: self.protocol.accepts_byte_strings,
            ..Accept::default()
        };
        let arg_dependencies = dependencies(request.arg_dependencies, |urns| {
            ArgumentDependencies { urns }
        });
        let message = proto::CallRequest {
            tok: request.token,
            args: self.send(&request.args, accept)?,
            arg_dependencies,
            project: context.project,
            stack: context.stack,
            organization: context.organization,
            config: context.config,
            config_secret_keys: context.config_secret_keys.into_iter().collect(),
            dry_run: context.dry_run,
            parallel: context.parallel,
            monitor_endpoint: context.monitor_endpoint,
            accepts_output_values: true,
            stack_trace_handle: request.stack_trace_handle,
        };
        let response = self
            .call(
                METHOD,
                self.limits.slow,
                message,
                |mut client, request| async move { client.call(request).await },
            )
            .await?;
        let expect = AcceptedValues {
            unknowns: keep_if(context.dry_run),
            outputs: Outputs::Keep,
        };
        let mut properties =
            decode(response.r#return, expect).map_err(|error| nonsense(METHOD, error))?;
        self.restore_paths(&mut properties, &request.args);
        let urns = response
            .return_dependencies
            .into_iter()
            .map(|(key, d)| (key, d.urns));
        Ok(CallResponse {
            properties,
            dependencies: parse_dependencies(METHOD, urns)?,
            failures: failures(response.failures),
        })
    }
}

pub(super) fn dependencies<T>(
    urns: BTreeMap<String, Vec<Urn>>,
    wrap: impl Fn(Vec<String>) -> T,
) -> BTreeMap<String, T> {
    urns.into_iter()
        .map(|(key, urns)| (key, wrap(texts(&urns))))
        .collect()
}

pub(super) fn texts(urns: &[Urn]) -> Vec<String> {
    urns.iter().map(ToString::to_string).collect()
}

pub(super) fn parse_dependencies(
    method: &str,
    dependencies: impl Iterator<Item = (String, Vec<String>)>,
) -> Result<BTreeMap<String, Vec<Urn>>, ProviderError> {
    let parse = |(key, urns): (String, Vec<String>)| {
        let urns = urns
            .iter()
            .map(|urn| Urn::parse(urn))
            .collect::<Result<_, _>>();
        urns.map(|urns| (key, urns))
            .map_err(|error| nonsense(method, error))
    };
    dependencies.map(parse).collect()
}
