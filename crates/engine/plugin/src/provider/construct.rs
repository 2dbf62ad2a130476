//! Remote components: the provider's own program, running against our monitor.

use nimbus_engine_model::{
    Alias, AliasParent, AliasSpec, CustomTimeouts, HookKind, PropertyMap, PropertyValue, Urn,
};
use nimbus_engine_ports::{ConstructOptions, ConstructRequest, ConstructResponse, ProviderError};
use nimbus_engine_proto as proto;
use nimbus_engine_wire::{Accept, AcceptedValues, Outputs, UnknownEncoding, decode, encode_value};
use proto::alias::spec::Parent;
use proto::construct_request as wire;
use proto::resource_monitor_client::ResourceMonitorClient;

use super::failure::{nonsense, unsendable};
use super::function::{dependencies, parse_dependencies, texts};
use super::session::{CallContext, keep_if, text};
use crate::monitor::connect;

const METHOD: &str = "Construct";

impl CallContext {
    pub(crate) async fn construct(
        &self,
        request: ConstructRequest,
    ) -> Result<ConstructResponse, ProviderError> {
        if !self.protocol.accepts_secrets {
            let message = "a provider of components must accept secrets, and this one does not";
            return Err(ProviderError::failed(message.to_owned()));
        }
        let dry_run = request.context.dry_run;
        let inputs = request.inputs.clone();
        let message = self.construct_message(request)?;
        let response = self
            .call(
                METHOD,
                self.limits.slow,
                message,
                |mut client, request| async move { client.construct(request).await },
            )
            .await?;
        let expect = AcceptedValues {
            unknowns: keep_if(dry_run),
            outputs: Outputs::Keep,
        };
        let mut outputs =
            decode(response.state, expect).map_err(|error| nonsense(METHOD, error))?;
        self.restore_paths(&mut outputs, &inputs);
        let urns = response
            .state_dependencies
            .into_iter()
            .map(|(key, d)| (key, d.urns));
        Ok(ConstructResponse {
            urn: Urn::parse(&response.urn).map_err(|error| nonsense(METHOD, error))?,
            outputs,
            output_dependencies: parse_dependencies(METHOD, urns)?,
        })
    }

    fn construct_message(
        &self,
        request: ConstructRequest,
    ) -> Result<proto::ConstructRequest, ProviderError> {
        let accept = Accept {
            outputs: self.protocol.accepts_outputs,
            ..self.accept(UnknownEncoding::Keep)
        };
        let context = request.context;
        let options = request.options;
        let replacement_trigger =
            replacement_trigger(&options.replacement_trigger, context.dry_run)?;
        Ok(proto::ConstructRequest {
            project: context.project,
            stack: context.stack,
            organization: context.organization,
            config: context.config,
            config_secret_keys: context.config_secret_keys.into_iter().collect(),
            dry_run: context.dry_run,
            parallel: context.parallel,
            monitor_endpoint: context.monitor_endpoint,
            r#type: request.type_,
            name: request.name,
            parent: text(request.parent.as_ref()),
            inputs: self.send(&request.inputs, accept)?,
            input_dependencies: dependencies(request.input_dependencies, |urns| {
                wire::PropertyDependencies { urns }
            }),
            custom_timeouts: custom_timeouts(&options.custom_timeouts),
            resource_hooks: hooks(&options),
            protect: options.protect,
            providers: options.providers,
            dependencies: texts(&options.dependencies),
            additional_secret_outputs: options.additional_secret_outputs,
            deleted_with: text(options.deleted_with.as_ref()),
            delete_before_replace: options.delete_before_replace,
            ignore_changes: options.ignore_changes,
            replace_on_changes: options.replace_on_changes,
            retain_on_delete: options.retain_on_delete,
            accepts_output_values: true,
            stack_trace_handle: request.stack_trace_handle,
            replace_with: texts(&options.replace_with),
            aliases: options.aliases.into_iter().map(alias).collect(),
            replacement_trigger,
        })
    }
}

/// Stands in for a provider whose configuration is not known yet: the component is registered
/// without children, so that the program can go on.
pub(crate) async fn construct_unconfigured(
    request: ConstructRequest,
) -> Result<ConstructResponse, ProviderError> {
    let failed = |message: String| ProviderError::failed(message);
    let channel = connect(&request.context.monitor_endpoint)
        .await
        .map_err(failed)?;
    let registration = proto::RegisterResourceRequest {
        r#type: request.type_,
        name: request.name,
        parent: text(request.parent.as_ref()),
        ..proto::RegisterResourceRequest::default()
    };
    let response = ResourceMonitorClient::new(channel)
        .register_resource(registration)
        .await
        .map_err(|status| failed(status.message().to_owned()))?;
    Ok(ConstructResponse {
        urn: Urn::parse(&response.into_inner().urn).map_err(|error| nonsense(METHOD, error))?,
        outputs: PropertyMap::new(),
        output_dependencies: Default::default(),
    })
}

fn replacement_trigger(
    trigger: &PropertyValue,
    dry_run: bool,
) -> Result<Option<proto::Value>, ProviderError> {
    if *trigger == PropertyValue::Null {
        return Ok(None);
    }
    let accept = Accept {
        unknowns: keep_if(dry_run),
        secrets: true,
        resources: true,
        outputs: true,
        ..Accept::default()
    };
    encode_value(trigger, accept).map_err(unsendable)
}

fn custom_timeouts(timeouts: &CustomTimeouts) -> Option<wire::CustomTimeouts> {
    let duration = |seconds: f64| {
        if seconds == 0.0 {
            String::new()
        } else {
            format!("{seconds}s")
        }
    };
    (!timeouts.is_empty()).then(|| wire::CustomTimeouts {
        create: duration(timeouts.create),
        update: duration(timeouts.update),
        delete: duration(timeouts.delete),
        read: String::new(),
    })
}

fn hooks(options: &ConstructOptions) -> Option<wire::ResourceHooksBinding> {
    let named = |kind| options.hooks.get(&kind).cloned().unwrap_or_default();
    (!options.hooks.is_empty()).then(|| wire::ResourceHooksBinding {
        before_create: named(HookKind::BeforeCreate),
        after_create: named(HookKind::AfterCreate),
        before_update: named(HookKind::BeforeUpdate),
        after_update: named(HookKind::AfterUpdate),
        before_delete: named(HookKind::BeforeDelete),
        after_delete: named(HookKind::AfterDelete),
        on_error: named(HookKind::OnError),
    })
}

fn alias(alias: Alias) -> proto::Alias {
    let alias = match alias {
        Alias::Urn(urn) => proto::alias::Alias::Urn(urn.to_string()),
        Alias::Spec(AliasSpec {
            name,
            type_,
            stack,
            project,
            parent,
        }) => proto::alias::Alias::Spec(proto::alias::Spec {
            name: name.unwrap_or_default(),
            r#type: type_.unwrap_or_default(),
            stack: stack.unwrap_or_default(),
            project: project.unwrap_or_default(),
            parent: match parent {
                AliasParent::Same => None,
                AliasParent::None => Some(Parent::NoParent(true)),
                AliasParent::Urn(urn) => Some(Parent::ParentUrn(urn.to_string())),
            },
        }),
    };
    proto::Alias { alias: Some(alias) }
}
