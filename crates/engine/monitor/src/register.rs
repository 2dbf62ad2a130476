//! From a registration to a goal, or to the provider that constructs it.
//!
//! The order is part of the contract with programs: inherit from the parent; run transforms (own,
//! then the ancestors', nearest first, then the stack's); add the parent's providers; choose the
//! provider; only then make something of it.

use std::collections::BTreeMap;

use nimbus_engine_model::provider_inputs;
use nimbus_engine_model::{
    Goal, PropertyMap, PropertyPath, ProviderRef, ROOT_STACK_TYPE, Urn, provider_package,
};
use nimbus_engine_ports::{RegisterResult, RegisterStatus};

use crate::error::{Ending, MonitorError};
use crate::inheritance::{Child, Legacy, Transforms};
use crate::monitor::{Handover, Monitor, parse_provider};
use crate::options::ResourceOptions;
use crate::outputs::{self, PropertyDependencies};
use crate::packages::{PluginHints, check_recordable, check_type, package_of, parse_version};
use crate::requests::{Registration, RegistrationResult};
use crate::tracker::Existence;
use crate::transforms::TransformedResource;

/// A registration after transforms, with everything decided that is decided before its steps.
pub(crate) struct PreparedRegistration {
    pub(crate) request: Registration,
    /// With output values for remote components, without for all others.
    pub(crate) properties: PropertyMap,
    pub(crate) options: ResourceOptions,
    pub(crate) dependencies: Vec<Urn>,
    pub(crate) property_dependencies: PropertyDependencies,
    /// `None` for local components and for providers themselves.
    pub(crate) provider: Option<ProviderRef>,
    pub(crate) own_transforms: Transforms,
}

impl Monitor {
    pub async fn register(&self, request: Registration) -> Result<RegistrationResult, Ending> {
        let parent = request.parent.as_ref();
        let subject = self.presumed_urn(parent, &request.type_, &request.name);
        let _in_flight = self.tracker.begin(parent);
        let takes_failures = request.takes_failures;
        // On the heap: it is the largest future there is, and many of them wait at once.
        let work = Box::pin(self.register_unguarded(request));
        let registered = self.or_abort(Some(subject), work).await?;
        if registered.status != RegisterStatus::Succeeded {
            // Its dependents may never be asked for now, so nothing may be deleted for their lack.
            self.lifecycle.fail();
            if !takes_failures {
                return Err(self.lifecycle.abort());
            }
        }
        Ok(registered)
    }

    async fn register_unguarded(
        &self,
        request: Registration,
    ) -> Result<RegistrationResult, MonitorError> {
        check(&request)?;
        self.refuse_long_lists(&request.name, &request.options)?;
        self.refuse_untold_dependencies(&request)?;
        let takes_partial_values = request.takes_partial_values;
        let prepared = self.prepare(request).await?;
        let mut registered = if prepared.request.remote {
            self.construct(&prepared).await?
        } else {
            self.submit(&prepared).await?
        };
        self.remember(prepared, &registered);
        if !takes_partial_values {
            registered
                .outputs
                .retain(|_, value| !value.contains_unknowns());
        }
        Ok(registered)
    }

    async fn prepare(&self, request: Registration) -> Result<PreparedRegistration, MonitorError> {
        let own_transforms = self.own_transforms(&request);
        let mut transforms = own_transforms.clone();
        transforms.extend(self.inheritance.transforms_above(request.parent.as_ref()));
        transforms.extend(self.stack_transforms());

        let properties = self.with_asset_hashes(request.properties.clone()).await?;
        let options = self.inherited_options(&request);
        let told = told_dependencies(&request, &properties);
        let asked = RequestedResource {
            properties,
            options,
            told,
        };
        let mut settled = if transforms.is_empty() {
            asked.settle()
        } else {
            let mut transformed = asked.transform(&request, &transforms).await?;
            transformed.properties = self.with_asset_hashes(transformed.properties).await?;
            self.refuse_long_lists(&request.name, &transformed.options)?;
            transformed
        };
        if !request.remote {
            settled.properties = outputs::flatten(settled.properties);
        }
        if let (Some(parent), false) = (&request.parent, request.custom) {
            self.inheritance
                .inherit_providers(&mut settled.options, parent);
        }
        let provider = self.choose_provider(&request, &settled.options).await?;
        if let Some(package) = provider_package(&request.type_) {
            self.complete_provider(&request, package, &mut settled)?;
        }
        Ok(PreparedRegistration {
            properties: settled.properties,
            options: settled.options,
            dependencies: settled.dependencies,
            property_dependencies: settled.property_dependencies,
            provider,
            own_transforms,
            request,
        })
    }

    /// A component that another process constructs is registered twice: first by who wants it,
    /// then by who makes it. Only the first brings transforms, and the second has to run them.
    fn own_transforms(&self, request: &Registration) -> Transforms {
        let key = Handover {
            parent: request.parent.clone(),
            type_: request.type_.clone(),
            name: request.name.clone(),
        };
        let mut handed_over = self.handed_over.lock();
        if let Some(transforms) = handed_over.remove(&key) {
            return transforms;
        }
        if request.remote && !request.transforms.is_empty() {
            handed_over.insert(key, request.transforms.clone());
        }
        request.transforms.clone()
    }

    fn inherited_options(&self, request: &Registration) -> ResourceOptions {
        let mut options = request.options.clone();
        let child = Child {
            type_: &request.type_,
            custom: request.custom,
            remote: request.remote,
        };
        if let Some(parent) = &request.parent {
            self.inheritance.inherit(&mut options, child, parent);
        }
        if request.custom || request.remote {
            options.provider = self.inheritance.choose_provider(
                &options.provider,
                &options.providers,
                request.parent.as_ref(),
                package_of(&request.type_),
            );
        }
        options
    }

    async fn choose_provider(
        &self,
        request: &Registration,
        options: &ResourceOptions,
    ) -> Result<Option<ProviderRef>, MonitorError> {
        let is_provider = provider_package(&request.type_).is_some();
        let needs_provider = request.remote || (request.custom && !is_provider);
        if !needs_provider {
            return Ok(None);
        }
        for reference in options.providers.values() {
            parse_provider(reference)?;
        }
        let package = self.packages.of_request(
            package_of(&request.type_),
            plugin_hints(options),
            &request.package_reference,
        )?;
        let chosen = self.provider_reference(&options.provider, package, &request.type_);
        chosen.await.map(Some)
    }

    /// Says in the inputs of an explicit provider which plugin serves it.
    fn complete_provider(
        &self,
        request: &Registration,
        package: &str,
        settled: &mut SettledRequest,
    ) -> Result<(), MonitorError> {
        let inputs = &mut settled.properties;
        let options = &settled.options;
        if let Some(version) = parse_version(package, &options.version)? {
            provider_inputs::set_version(inputs, &version);
        }
        if !options.plugin_download_url.is_empty() {
            provider_inputs::set_download_url(inputs, &options.plugin_download_url);
        }
        if !request.env_var_mappings.is_empty() {
            provider_inputs::set_environment(inputs, &request.env_var_mappings);
        }
        let describes_plugin =
            !options.version.is_empty() || !options.plugin_download_url.is_empty();
        let installed = self
            .default_providers
            .installed(package)
            .filter(|_| !describes_plugin);
        if !request.package_reference.is_empty() {
            let described = self.packages.get(&request.package_reference)?;
            provider_inputs::set_package(inputs, &described);
            // Of a parameterised package the version of the plugin ends up beside the
            // configuration, and not that of the package: the official engine writes it last, and
            // another version would be an update whenever a stack changes hands.
            if let Some(version) = installed.and_then(|installed| installed.version.as_ref()) {
                provider_inputs::set_version(inputs, version);
            }
        } else if let Some(installed) = installed {
            // It gets the same plugin as the package's default provider.
            provider_inputs::set_package(inputs, installed);
        }
        Ok(())
    }

    /// Gives the goal to the deployment.
    async fn submit(
        &self,
        prepared: &PreparedRegistration,
    ) -> Result<RegistrationResult, MonitorError> {
        let goal = self.goal(prepared)?;
        let legacy = Legacy {
            protect: goal.protect,
            retain_on_delete: goal.retain_on_delete,
            deleted_with: goal.deleted_with.clone(),
            provider: goal.provider.clone(),
        };
        let RegisterResult {
            status,
            urn,
            id,
            outputs,
            stable,
            property_dependencies,
            elided,
        } = self.ports.registrar.register(goal).await?;
        self.inheritance.record_goal(&urn, legacy);
        if urn.type_() == ROOT_STACK_TYPE && status == RegisterStatus::Succeeded {
            self.lifecycle.stack_registered();
        }
        // The recorded outputs of a component may refer to resources that are not there yet.
        let outputs = if prepared.request.custom {
            outputs
        } else {
            PropertyMap::new()
        };
        Ok(RegistrationResult {
            status,
            urn,
            id,
            outputs,
            stable,
            dependencies: property_dependencies,
            unknown: elided,
        })
    }

    fn goal(&self, prepared: &PreparedRegistration) -> Result<Goal, MonitorError> {
        let request = &prepared.request;
        let options = &prepared.options;
        let origin = self.positions.origin(&request.origin);
        let import_id = Some(options.import_id.clone()).filter(|id| !id.is_empty());
        let provider = prepared.provider.as_ref();
        Ok(Goal {
            type_: request.type_.clone(),
            name: request.name.clone(),
            custom: request.custom,
            properties: prepared.properties.clone(),
            parent: request.parent.clone(),
            protect: options.protect,
            dependencies: prepared.dependencies.clone(),
            provider: provider.map(ToString::to_string).unwrap_or_default(),
            property_dependencies: prepared.property_dependencies.clone(),
            delete_before_replace: options.delete_before_replace,
            ignore_changes: options.ignore_changes.clone(),
            replace_on_changes: options.replace_on_changes.clone(),
            additional_secret_outputs: options.additional_secret_outputs.clone(),
            aliases: options.aliases.clone(),
            import_id,
            custom_timeouts: options.timeouts.in_seconds()?,
            retain_on_delete: options.retain_on_delete,
            deleted_with: options.deleted_with.clone(),
            replace_with: options.replace_with.clone(),
            replacement_trigger: outputs::flatten_value(options.replacement_trigger.clone()),
            hooks: options.hooks.clone(),
            source_position: origin.position,
            stack_trace: origin.stack_trace,
            hide_diff: hidden_paths(&options.hide_diff)?,
            // A provider is of the plugin's own package, which extensions share.
            extension: self
                .packages
                .extension(&request.package_reference)
                .filter(|_| request.custom && provider_package(&request.type_).is_none()),
        })
    }

    fn remember(&self, prepared: PreparedRegistration, registered: &RegistrationResult) {
        let PreparedRegistration {
            request,
            options,
            own_transforms,
            ..
        } = prepared;
        let existence = match (request.custom, &registered.id) {
            (false, _) => Existence::Component,
            (true, Some(_)) => Existence::Exists,
            (true, None) => Existence::Planned,
        };
        let urn = &registered.urn;
        self.tracker.record(urn, request.parent.as_ref(), existence);
        let providers = (!request.custom).then_some(options.providers);
        self.inheritance
            .record(urn, request.parent, own_transforms, providers);
    }
}

fn check(request: &Registration) -> Result<(), MonitorError> {
    if request.custom || request.remote {
        check_type(&request.type_)?;
    }
    check_recordable(&request.type_, &request.name)?;
    let is_provider = provider_package(&request.type_).is_some();
    if !request.env_var_mappings.is_empty() && !is_provider {
        return Err(MonitorError::EnvVarMappingsOnResource);
    }
    Ok(())
}

fn plugin_hints(options: &ResourceOptions) -> PluginHints<'_> {
    PluginHints {
        version: &options.version,
        download_url: &options.plugin_download_url,
        checksums: &options.plugin_checksums,
    }
}

/// What each property depends on, as far as the program told beside the properties. An SDK that
/// does not tell properties apart is taken to mean that each depends on everything.
fn told_dependencies(request: &Registration, properties: &PropertyMap) -> PropertyDependencies {
    match &request.property_dependencies {
        Some(told) => told.clone(),
        // Whoever knows remote components tells them apart.
        None if request.remote => BTreeMap::new(),
        None => properties
            .keys()
            .map(|key| (key.clone(), request.options.depends_on.clone()))
            .collect(),
    }
}

fn hidden_paths(paths: &[String]) -> Result<Vec<PropertyPath>, MonitorError> {
    let parsed = |text: &String| {
        PropertyPath::parse(text).map_err(|_| MonitorError::BadPropertyPath { text: text.clone() })
    };
    paths.iter().map(parsed).collect()
}

/// What is asked for, before transforms.
struct RequestedResource {
    properties: PropertyMap,
    options: ResourceOptions,
    told: PropertyDependencies,
}

/// What is asked for, with dependencies where the deployment wants them.
struct SettledRequest {
    properties: PropertyMap,
    options: ResourceOptions,
    dependencies: Vec<Urn>,
    property_dependencies: PropertyDependencies,
}

impl RequestedResource {
    fn settle(self) -> SettledRequest {
        let mut property_dependencies = self.told;
        outputs::collect_by_property(&self.properties, &mut property_dependencies);
        let mut dependencies = Vec::new();
        outputs::extend(&mut dependencies, self.options.depends_on.iter().cloned());
        SettledRequest {
            properties: self.properties,
            options: self.options,
            dependencies,
            property_dependencies,
        }
    }

    /// Transforms see dependencies inside the properties, and where they put them counts.
    async fn transform(
        self,
        request: &Registration,
        transforms: &Transforms,
    ) -> Result<SettledRequest, MonitorError> {
        let subject = TransformedResource {
            type_: request.type_.clone(),
            name: request.name.clone(),
            custom: request.custom,
            parent: request.parent.clone(),
        };
        let mut properties = outputs::attach(outputs::upgrade(self.properties), &self.told);
        let mut options = self.options;
        for transform in transforms {
            (properties, options) = transform.transform(&subject, properties, options).await?;
        }
        let mut property_dependencies = BTreeMap::new();
        outputs::collect_by_property(&properties, &mut property_dependencies);
        let mut dependencies = Vec::new();
        outputs::extend(&mut dependencies, options.depends_on.iter().cloned());
        let in_properties = property_dependencies.values().flatten().cloned();
        outputs::extend(&mut dependencies, in_properties);
        Ok(SettledRequest {
            properties,
            options,
            dependencies,
            property_dependencies,
        })
    }
}
