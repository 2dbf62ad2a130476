//! Remote components: their provider constructs them and registers what is inside.

use nimbus_engine_ports::{
    CallRequest, CallResponse, ConstructOptions, ConstructRequest, RegisterStatus,
};

use crate::error::{Ending, MonitorError};
use crate::monitor::Monitor;
use crate::outputs;
use crate::packages::{PluginHints, package_of};
use crate::register::PreparedRegistration;
use crate::requests::{MethodCall, RegistrationResult};
use nimbus_engine_model::{PackageDescriptor, PropertyMap, PropertyValue, Urn, provider_package};

const SELF: &str = "__self__";

impl Monitor {
    /// Has the provider construct a component. What it registers meanwhile comes in as requests of
    /// their own.
    pub(crate) async fn construct(
        &self,
        prepared: &PreparedRegistration,
    ) -> Result<RegistrationResult, MonitorError> {
        let request = &prepared.request;
        let reference = prepared.provider.as_ref();
        let reference = reference.ok_or_else(|| MonitorError::UnknownProvider {
            reference: request.type_.clone(),
        })?;
        let provider = self.extended_provider(reference, &request.package_reference);
        let provider = provider.await?;
        let trace = self.positions.open(&request.origin);
        let construct = ConstructRequest {
            context: self.settings.context.clone(),
            type_: request.type_.clone(),
            name: request.name.clone(),
            parent: request.parent.clone(),
            // Whoever reads outputs upgrades secrets and unknown values too.
            inputs: outputs::upgrade(prepared.properties.clone()),
            input_dependencies: prepared.property_dependencies.clone(),
            options: construct_options(prepared)?,
            stack_trace_handle: trace.handle().to_owned(),
        };
        let constructed = provider.construct(construct).await;
        let constructed = constructed.map_err(|error| MonitorError::Provider {
            token: request.type_.clone(),
            message: error.to_string(),
        })?;
        let mut dependencies = constructed.output_dependencies;
        outputs::collect_by_property(&constructed.outputs, &mut dependencies);
        Ok(RegistrationResult {
            status: RegisterStatus::Succeeded,
            urn: constructed.urn,
            id: None,
            outputs: outputs::flatten(constructed.outputs),
            stable: Vec::new(),
            dependencies,
            unknown: false,
        })
    }

    /// Calls a method of a resource. A failure ends the deployment: programs cannot catch it.
    pub async fn call(&self, call: MethodCall) -> Result<CallResponse, Ending> {
        self.or_abort(None, self.call_unguarded(call)).await
    }

    async fn call_unguarded(&self, call: MethodCall) -> Result<CallResponse, MonitorError> {
        let (package, chosen) = self.method_provider(&call)?;
        let reference = self
            .provider_reference(&chosen, package, &call.token)
            .await?;
        let provider = self.extended_provider(&reference, &call.package_reference);
        let provider = provider.await?;
        let trace = self.positions.open(&call.origin);
        self.refuse_foreign_files(&call.args).await?;
        let args = outputs::upgrade(call.args);
        let mut arg_dependencies = call.arg_dependencies;
        outputs::collect_by_property(&args, &mut arg_dependencies);
        let request = CallRequest {
            context: self.settings.context.clone(),
            token: call.token.clone(),
            args,
            arg_dependencies,
            stack_trace_handle: trace.handle().to_owned(),
        };
        let answer = provider.call(request).await;
        let mut answer = answer.map_err(|error| MonitorError::Provider {
            token: call.token,
            message: error.to_string(),
        })?;
        outputs::collect_by_property(&answer.properties, &mut answer.dependencies);
        answer.properties = outputs::flatten(answer.properties);
        Ok(answer)
    }

    /// The package of a method and the provider chosen for it; empty for the default one.
    ///
    /// A method of a provider itself is served by that very provider; any other by the provider
    /// that was asked for, else by the one of the resource whose method it is.
    fn method_provider(
        &self,
        call: &MethodCall,
    ) -> Result<(PackageDescriptor, String), MonitorError> {
        let hints = PluginHints {
            version: &call.version,
            download_url: &call.plugin_download_url,
            checksums: &call.plugin_checksums,
        };
        let of_provider = provider_package(&call.token);
        let (package, chosen) = match of_provider {
            Some(method) => {
                let package = method.split_once('/').map(|(package, _)| package);
                let package = package.ok_or_else(|| bad_call(call, "it names no method"))?;
                (package, provider_itself(call)?)
            }
            None if !call.provider.is_empty() => (package_of(&call.token), call.provider.clone()),
            None => (package_of(&call.token), self.provider_of_self(call)?),
        };
        let package = self
            .packages
            .of_request(package, hints, &call.package_reference)?;
        Ok((package, chosen))
    }

    fn provider_of_self(&self, call: &MethodCall) -> Result<String, MonitorError> {
        let Some(this) = call.args.get(SELF) else {
            return Ok(String::new());
        };
        let (urn, _) = identity(this).ok_or_else(|| bad_call(call, "it has no __self__.urn"))?;
        let provider = self.inheritance.provider_of(&urn);
        provider.ok_or_else(|| bad_call(call, &format!("there is no resource {urn}")))
    }
}

fn bad_call(call: &MethodCall, reason: &str) -> MonitorError {
    MonitorError::BadMethodCall(format!("method {} cannot be called: {reason}", call.token))
}

fn provider_itself(call: &MethodCall) -> Result<String, MonitorError> {
    let this = call.args.get(SELF);
    let this = this.ok_or_else(|| bad_call(call, "it has no __self__"))?;
    match identity(this) {
        Some((urn, Some(id))) => Ok(format!("{urn}::{id}")),
        Some((_, None)) => Err(bad_call(call, "it has no __self__.id")),
        None => Err(bad_call(call, "it has no __self__.urn")),
    }
}

/// URN and id of the resource that a value stands for.
fn identity(value: &PropertyValue) -> Option<(Urn, Option<String>)> {
    match value {
        PropertyValue::ResourceReference(reference) => {
            let id = reference.id.as_deref().map(|id| match id {
                PropertyValue::String(id) => id.clone(),
                _ => nimbus_engine_model::UNKNOWN_ID.to_owned(),
            });
            Some((reference.urn.clone(), id))
        }
        PropertyValue::Object(map) => identity_of_object(map),
        PropertyValue::Output(output) => identity(output.value.as_ref()?),
        PropertyValue::Secret(inner) => identity(inner),
        _ => None,
    }
}

fn identity_of_object(map: &PropertyMap) -> Option<(Urn, Option<String>)> {
    let urn = Urn::parse(map.get("urn")?.as_str()?).ok()?;
    let id = map.get("id").and_then(PropertyValue::as_str);
    Some((urn, id.map(str::to_owned)))
}

fn construct_options(prepared: &PreparedRegistration) -> Result<ConstructOptions, MonitorError> {
    let options = &prepared.options;
    Ok(ConstructOptions {
        aliases: options.aliases.clone(),
        dependencies: prepared.dependencies.clone(),
        protect: options.protect,
        providers: options.providers.clone(),
        additional_secret_outputs: options.additional_secret_outputs.clone(),
        custom_timeouts: options.timeouts.in_seconds()?,
        deleted_with: options.deleted_with.clone(),
        replace_with: options.replace_with.clone(),
        delete_before_replace: options.delete_before_replace,
        ignore_changes: options.ignore_changes.clone(),
        replace_on_changes: options.replace_on_changes.clone(),
        replacement_trigger: outputs::flatten_value(options.replacement_trigger.clone()),
        retain_on_delete: options.retain_on_delete,
        hooks: options.hooks.clone(),
    })
}
