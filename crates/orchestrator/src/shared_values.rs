//! Values that a manifest has once and stacks inherit: all of them (`spec.defaults`), all in one
//! environment (`spec.environments.<environment>.defaults`), or one stack in every environment
//! (`spec.stacks.<stack>.defaults`). The nearer one wins, and `config` of a stack is nearest.
//!
//! In memory each unit has everything that it inherits in its `config`. What is kept here says only
//! what is written where.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, EnvironmentName, Result};
use nimbus_document::View;
use serde_json::{Map, Value};

use crate::manifest::Manifest;
use crate::parameters::whole_key;
use crate::template::object;

/// What is written once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedValues {
    /// For every stack in every environment.
    pub all: Map<String, Value>,
    /// For every stack in one environment.
    pub environments: BTreeMap<EnvironmentName, Map<String, Value>>,
    /// For one stack in every environment.
    pub stacks: BTreeMap<ComponentName, Map<String, Value>>,
    /// Stacks that only inherit what is their own.
    pub apart: BTreeSet<ComponentName>,
}

impl SharedValues {
    pub(crate) fn read(spec: &View<'_>) -> Result<Self> {
        let mut shared = Self::default();
        if let Some(defaults) = spec.optional("defaults")? {
            shared.all = object(&defaults)?;
        }
        for (name, view) in spec.required("environments")?.entries()? {
            if let Some(defaults) = view.optional("defaults")? {
                let environment = name.parse::<EnvironmentName>();
                let environment = environment
                    .map_err(|error| view.error(error.to_string(), "of this environment"))?;
                shared.environments.insert(environment, object(&defaults)?);
            }
        }
        for (name, view) in spec.required("stacks")?.entries()? {
            let component = name.parse::<ComponentName>();
            let component =
                component.map_err(|error| view.error(error.to_string(), "of this component"))?;
            if let Some(defaults) = view.optional("defaults")? {
                shared.stacks.insert(component.clone(), object(&defaults)?);
            }
            let inherit = view.optional("inherit")?.map(|v| v.bool()).transpose()?;
            if inherit == Some(false) {
                shared.apart.insert(component);
            }
        }
        Ok(shared)
    }

    /// What a unit has without any configuration of its own.
    pub fn inherited(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
    ) -> Map<String, Value> {
        let mut values = Map::new();
        if !self.apart.contains(component) {
            values.extend(self.all.clone());
            let of_environment = self.environments.get(&environment).cloned();
            values.extend(of_environment.unwrap_or_default());
        }
        values.extend(self.stacks.get(component).cloned().unwrap_or_default());
        values
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty() && self.environments.is_empty() && self.stacks.is_empty()
    }

    /// Only what every unit below it has: a value that somebody took away from a unit cannot be
    /// inherited by it.
    fn kept(&self, manifest: &Manifest) -> Self {
        let has = |component: &ComponentName, environment: &EnvironmentName, key: &str| {
            let entry = manifest.stacks.get(component);
            let config = entry.and_then(|entry| entry.config.get(environment));
            config.is_some_and(|config| config.contains_key(key))
        };
        let mut inheriting = manifest.stacks.keys().collect::<Vec<_>>();
        inheriting.retain(|component| !self.apart.contains(*component));
        let everywhere = |environments: &[&EnvironmentName], key: &str| {
            let units = inheriting.iter();
            let mut units = units.flat_map(|one| environments.iter().map(move |e| (*one, *e)));
            units.all(|(component, environment)| has(component, environment, key))
        };
        let environments: Vec<_> = manifest.environments.keys().collect();
        let mut kept = self.clone();
        kept.all.retain(|key, _| everywhere(&environments, key));
        for (environment, values) in &mut kept.environments {
            values.retain(|key, _| everywhere(&[environment], key));
        }
        for (component, values) in &mut kept.stacks {
            values.retain(|key, _| environments.iter().all(|e| has(component, e, key)));
        }
        kept.environments.retain(|_, values| !values.is_empty());
        kept.stacks.retain(|_, values| !values.is_empty());
        kept
    }
}

impl Manifest {
    /// Gives every unit what it inherits.
    pub(crate) fn inherit(&mut self) {
        if self.shared.is_empty() {
            return;
        }
        for (component, entry) in &mut self.stacks {
            let identity = entry.pulumi.as_ref();
            let namespace = identity.map_or(component.as_str(), |one| one.project.as_str());
            let whole = |key: &str| whole_key(namespace, key);
            for environment in self.environments.keys() {
                let inherited = self.shared.inherited(component, *environment);
                if inherited.is_empty() {
                    continue;
                }
                let config = entry.config.entry(*environment).or_default();
                // The same key may be written with and without its namespace.
                let own: BTreeSet<String> = config.keys().map(|key| whole(key)).collect();
                let missing = inherited.into_iter();
                config.extend(missing.filter(|(key, _)| !own.contains(&whole(key))));
            }
        }
    }

    /// What is written once, and of each unit's configuration what it does not inherit.
    pub(crate) fn layered(&self) -> (SharedValues, BTreeMap<ComponentName, OwnConfig>) {
        let shared = self.shared.kept(self);
        let mut own = BTreeMap::new();
        for (component, entry) in &self.stacks {
            let mut config = entry.config.clone();
            for (environment, values) in &mut config {
                let inherited = shared.inherited(component, *environment);
                values.retain(|key, value| inherited.get(key) != Some(value));
            }
            config.retain(|environment, values| {
                !values.is_empty() || shared.inherited(component, *environment).is_empty()
            });
            own.insert(component.clone(), config);
        }
        (shared, own)
    }
}

/// Configuration of a stack by environment, without what it inherits.
pub(crate) type OwnConfig = BTreeMap<EnvironmentName, Map<String, Value>>;

#[cfg(test)]
mod tests {
    use nimbus_document::Document;
    use serde_json::json;

    use super::*;

    const TEXT: &str = "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {deploymentId: D1, \
                        organization: o, project: shop, template: t}\nspec:\n  defaults: {team: all, \
                        domain: x}\n  environments:\n    test: {enabled: true, defaults: {tier: small}}\n    \
                        live: {enabled: true, defaults: {tier: large, domain: live}}\n  stacks:\n    \
                        web:\n      enabled: true\n      defaults: {size: 1, team: web}\n      \
                        config: {live: {size: 2}}\n    db: {enabled: true}\n    old: {enabled: true, \
                        inherit: false, config: {test: {a: 1}}}\n    kept: {enabled: true, pulumi: \
                        {project: p}, config: {test: {'p:team': mine}}}\n";

    fn read(text: &str) -> Manifest {
        Manifest::read(&Document::parse("m.yaml", text).unwrap()).unwrap()
    }

    fn config(manifest: &Manifest, stack: &str, environment: &str) -> Value {
        let config = &manifest.stacks[stack].config;
        json!(config.get(&environment.parse::<EnvironmentName>().unwrap()))
    }

    #[test]
    fn the_nearer_value_wins() {
        let manifest = read(TEXT);
        let web = json!({"team": "web", "domain": "x", "tier": "small", "size": 1});
        assert_eq!(config(&manifest, "web", "test"), web);
        let live = json!({"team": "web", "domain": "live", "tier": "large", "size": 2});
        assert_eq!(config(&manifest, "web", "live"), live);
        let db = json!({"team": "all", "domain": "x", "tier": "small"});
        assert_eq!(config(&manifest, "db", "test"), db);
        assert_eq!(config(&manifest, "old", "test"), json!({"a": 1}));
        assert_eq!(config(&manifest, "old", "live"), json!(null));
        let kept = json!({"p:team": "mine", "domain": "x", "tier": "small"});
        assert_eq!(config(&manifest, "kept", "test"), kept);
    }

    #[test]
    fn what_is_shared_is_written_once_and_read_back() {
        let manifest = read(TEXT);
        let text = manifest.write();
        // `kept` has a team of its own under another spelling, so it is written where it is inherited.
        assert_eq!(text.matches("domain: x").count(), 1, "{text}");
        assert_eq!(text.matches("tier: small").count(), 1, "{text}");
        let again = read(&text);
        assert_eq!(again.stacks, manifest.stacks);
        assert_eq!(read(&again.write()), again);

        // A value that a unit no longer has is not inherited by it.
        let mut without = manifest;
        let test = "test".parse::<EnvironmentName>().unwrap();
        let db = without.stacks.get_mut("db").unwrap();
        db.config.get_mut(&test).unwrap().remove("domain");
        assert_eq!(read(&without.write()).stacks, without.stacks);
    }
}
