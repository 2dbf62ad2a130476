//! What a unit is given: its configuration with every placeholder filled in and every bound input answered, the
//! outputs of its neighbours, and the fingerprint over all of it.

use std::collections::BTreeMap;

use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{
    Fingerprint, FingerprintInput, LookupValue, PulumiStack, ResolvedUnitConfig, UnitConfigValue,
    UnitMemory, own_parameter, resolve, whole_key,
};
use nimbus_resolvers::pipeline::ParameterOrigin;
use nimbus_resolvers::{GivenParameters, ParameterResolver, ResolverError, UnitFacts};
use serde_json::{Map, Value};

use super::RunContext;
use crate::leases::{give_back, holder};
use crate::lookups::UnitLookups;
use crate::ports::UnitContract;

/// What stands for a secret where parameters are kept to be looked at.
const HIDDEN: &str = "[secret]";

impl RunContext {
    /// What the units that this run looked at have, under the names by which programs refer to them.
    pub(super) async fn neighbours(&self) -> BTreeMap<PulumiStack, BTreeMap<String, LookupValue>> {
        let outputs = self.outputs.lock().await;
        let named = outputs.iter().map(|(component, outputs)| {
            let stack = self.manifest.pulumi_stack(component, self.environment);
            (stack, outputs.clone())
        });
        named.collect()
    }

    pub(super) async fn resolve(
        &self,
        component: &ComponentName,
        memory: &mut UnitMemory,
    ) -> Result<ResolvedUnitConfig> {
        let entry = self.manifest.stacks.get(component);
        let config = entry.and_then(|entry| entry.config.get(&self.environment));
        let config = config.cloned().unwrap_or_default();
        let held = std::mem::take(memory);
        let holder = holder(self.run);
        let lookups = UnitLookups::new(self, self.facts(component), holder, held);
        let answered = self.answered(component, &config, &lookups).await;
        let asked = lookups.into_asked();
        *memory = asked.memory;
        let mut resolution = match answered {
            Ok(resolution) => resolution,
            Err(error) => {
                // A unit that cannot be answered whole takes nothing.
                give_back(&self.ports, self.environment, holder, &asked.taken).await;
                return Err(error);
            }
        };
        self.taken.lock().extend(asked.taken);
        let mut shown = self.shown.lock();
        shown.insert(component.clone(), asked.answers);
        drop(shown);
        let namespace = self.manifest.namespace(component);
        let namespaced = |(key, value): (String, UnitConfigValue)| {
            // In one spelling: an engine reads the older one as the same key.
            (whole_key(namespace, &key), value)
        };
        resolution.config = resolution.config.into_iter().map(namespaced).collect();
        if let Some(target) = self.target().filter(|target| !target.region.is_empty()) {
            let region = UnitConfigValue::Known {
                value: target.region.clone().into(),
                secret: false,
            };
            let config = &mut resolution.config;
            config.entry("aws:region".to_owned()).or_insert(region);
        }
        Ok(resolution)
    }

    /// The configuration of a unit: placeholders first, then what its contract has besides.
    async fn answered(
        &self,
        component: &ComponentName,
        config: &Map<String, Value>,
        lookups: &UnitLookups<'_>,
    ) -> Result<ResolvedUnitConfig> {
        let resolved = resolve(config, lookups).await;
        let mut resolution = resolved.map_err(|error| {
            let message = format!("stack {component}, {}: {error}", self.environment);
            let spot = error.spot(component, self.environment);
            let help = "correct the placeholder, or deploy what it refers to first";
            // A resolver that refuses says by its own code which rule it was.
            let (code, own) = lookups
                .refusal()
                .unwrap_or((ErrorCode::RESOLUTION_FAILED, None));
            self.pointed(Some(&spot), code, message)
                .with_help(own.unwrap_or_else(|| help.to_owned()))
        })?;
        let resolvers = &self.ports.resolvers;
        let contract = resolvers.contract(self.environment, component).await?;
        if let Some(contract) = contract {
            let bound = self.bind(component, &contract, lookups, &mut resolution.config);
            bound.await?;
        }
        Ok(resolution)
    }

    /// Makes a component's own parameters by its contract: defaults, what the manifest gives over them, what resolvers
    /// answer over both, and then everything is held to the contract and the rules.
    async fn bind(
        &self,
        component: &ComponentName,
        contract: &UnitContract,
        lookups: &UnitLookups<'_>,
        config: &mut BTreeMap<String, UnitConfigValue>,
    ) -> Result<()> {
        let mut given = GivenParameters::default();
        for (key, value) in &*config {
            let Some(name) = self.own_input(component, key) else {
                continue;
            };
            match value {
                UnitConfigValue::Known { value, secret } => {
                    given.values.insert(name.to_owned(), value.clone());
                    if *secret {
                        given.secret.insert(name.to_owned());
                    }
                }
                UnitConfigValue::Unknown => {
                    given.unknown.insert(name.to_owned());
                }
            }
        }
        let resolver = ParameterResolver {
            service: lookups,
            checks: contract.rules.iter().map(AsRef::as_ref).collect(),
        };
        let resolved = resolver.resolve(&contract.parameters, &given).await;
        let resolved = resolved.map_err(|error| self.unbound(component, &error))?;
        let made = resolved.origins.iter().filter(|(_, origin)| match origin {
            ParameterOrigin::Default | ParameterOrigin::Resolver { .. } => true,
            ParameterOrigin::User => false,
        });
        let made = made.map(|(name, _)| {
            let value = UnitConfigValue::Known {
                value: resolved.values.get(name).cloned().unwrap_or_default(),
                secret: resolved.secret.contains(name),
            };
            (name.clone(), value)
        });
        let unknown = resolved.unknown.iter();
        let unknown = unknown.map(|name| (name.clone(), UnitConfigValue::Unknown));
        let made: BTreeMap<_, _> = made.chain(unknown).collect();
        // A key may be written with the program's name in front of it.
        config.retain(|key, _| {
            let own = self.own_input(component, key);
            own.is_none_or(|name| !made.contains_key(name))
        });
        config.extend(made);
        Ok(())
    }

    /// The input that a key of a configuration is of; none of one that is another's, such as a provider's.
    fn own_input<'a>(&self, component: &ComponentName, key: &'a str) -> Option<&'a str> {
        own_parameter(self.manifest.namespace(component), key)
    }

    fn unbound(&self, component: &ComponentName, error: &ResolverError) -> Error {
        let message = format!("stack {component}, {}: {error}", self.environment);
        let told = Error::new(error.code(), message);
        match error.help() {
            Some(help) => told.with_help(help),
            None => told,
        }
    }

    /// What a resolver is told of a unit.
    fn facts(&self, component: &ComponentName) -> UnitFacts {
        let metadata = &self.manifest.metadata;
        UnitFacts {
            deployment: metadata.id.to_string(),
            environment: self.environment.to_string(),
            component: component.to_string(),
            organization: metadata.organization.clone(),
            project: metadata.project.clone(),
            region: self
                .target()
                .map(|target| target.region.clone())
                .unwrap_or_default(),
        }
    }

    /// A unit's own parameters for whoever looks at them later, without secrets.
    pub(super) fn parameters(
        &self,
        component: &ComponentName,
        config: &BTreeMap<String, UnitConfigValue>,
    ) -> Map<String, Value> {
        let own = config.iter().filter_map(|(key, value)| {
            let name = self.own_input(component, key)?;
            let value: Value = match value {
                UnitConfigValue::Known { secret: true, .. } => HIDDEN.into(),
                UnitConfigValue::Known { value, .. } => value.clone(),
                UnitConfigValue::Unknown => Value::Null,
            };
            Some((name.to_owned(), value))
        });
        own.collect()
    }

    pub(super) async fn fingerprint(
        &self,
        component: &ComponentName,
        resolution: &ResolvedUnitConfig,
    ) -> Result<Fingerprint> {
        let mut fingerprint = Fingerprint::default();
        let components = &self.ports.components;
        components.add_program(component, &mut fingerprint).await?;
        let key = &self.ports.key;
        for (name, value) in &resolution.config {
            let input = FingerprintInput::Config(name.clone());
            match value.fingerprint_text() {
                Some(text) => fingerprint.add_private(key, input, text),
                None => fingerprint.add_unknown(input),
            }
        }
        for (placeholder, value) in &resolution.lookups {
            let input = match placeholder.strip_prefix("{{RUNTIME:env:") {
                Some(_) => FingerprintInput::Environment(placeholder.clone()),
                None => FingerprintInput::Resolved(placeholder.clone()),
            };
            match value.fingerprint_text() {
                Some(text) => fingerprint.add_private(key, input, text),
                None => fingerprint.add_unknown(input),
            }
        }
        self.add_references(component, &mut fingerprint).await?;
        for (tool, version) in self.ports.engine.versions() {
            fingerprint.add(FingerprintInput::Version(tool), version);
        }
        Ok(fingerprint)
    }

    /// A program that existed before its deployment reads the stacks that it needs by itself, and nobody
    /// sees which of their outputs. So all of them count.
    async fn add_references(
        &self,
        component: &ComponentName,
        fingerprint: &mut Fingerprint,
    ) -> Result<()> {
        let entry = self.manifest.stacks.get(component);
        let Some(entry) = entry.filter(|entry| entry.pulumi.is_some()) else {
            return Ok(());
        };
        for needed in &entry.dependencies {
            if self.expected.lock().await.contains(needed) {
                let all = FingerprintInput::UpstreamOutput(format!("{needed}:*"));
                fingerprint.add_unknown(all);
                continue;
            }
            for (name, value) in self.outputs_of(needed).await? {
                let input = FingerprintInput::UpstreamOutput(format!("{needed}:{name}"));
                match value.fingerprint_text() {
                    Some(text) => fingerprint.add_private(&self.ports.key, input, text),
                    None => fingerprint.add_unknown(input),
                }
            }
        }
        Ok(())
    }

    /// Outputs of a unit as this run left them, or as recorded.
    pub async fn outputs_of(
        &self,
        component: &ComponentName,
    ) -> Result<BTreeMap<String, LookupValue>> {
        if let Some(known) = self.outputs.lock().await.get(component) {
            return Ok(known.clone());
        }
        let recorded = self.ports.engine.outputs(&self.address(component)).await?;
        Ok(recorded.unwrap_or_default())
    }
}

/// Only a preview may work with what is not known yet. A program that is deployed with it would make
/// real things of the protocol's word for "unknown".
pub(super) fn refuse_unknown(
    component: &ComponentName,
    config: &BTreeMap<String, UnitConfigValue>,
) -> Result<()> {
    let unknown = |value: &UnitConfigValue| matches!(value, UnitConfigValue::Unknown);
    let mut keys = config.iter().filter(|(_, value)| unknown(value));
    let Some((key, _)) = keys.next() else {
        return Ok(());
    };
    let message = format!("{component} would be deployed without knowing {key}");
    let help = format!("deploy what {key} refers to first, then {component} again");
    Err(Error::new(ErrorCode::RESOLUTION_FAILED, message).with_help(help))
}
