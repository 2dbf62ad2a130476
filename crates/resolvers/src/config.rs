//! Configuration of resolvers: one document for each, in layers.
//!
//! A layer is a JSON object with the keys of one of the types below. Layers lie over each other key by
//! key, the nearest on top: the operator's below the tenant's, and inside of one tenant the general one
//! below that of a landing zone, and that below the one of an environment.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definition::ResolverKind;
use crate::error::ResolverError;
use crate::images::ImageEntry;
use crate::ipam::{PoolDefinition, check_pools};
use crate::naming::NamePattern;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IpamConfig {
    /// The pool of blocks.
    pub pool: Option<String>,
    /// The pool of addresses.
    pub address_pool: Option<String>,
    /// How large a block is that does not say.
    pub prefix_length: Option<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamingConfig {
    pub pattern: Option<String>,
    /// What a name is completed with to be found in the domain name system.
    pub domain: Option<String>,
    /// By type of resource, shorter than what the cloud allows.
    #[serde(default)]
    pub max_length: BTreeMap<String, usize>,
    /// What `{type}` is written as.
    #[serde(default)]
    pub abbreviations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageConfig {
    /// Whose images are answered.
    pub cloud: Option<String>,
    /// Instead of that of the environment.
    pub region: Option<String>,
    /// Which storage holds templates; their ids begin with it.
    pub storage_pool: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretConfig {
    /// Of a secret that does not say.
    #[serde(default = "default_length")]
    pub length: usize,
    #[serde(default)]
    pub symbols: bool,
}

fn default_length() -> usize {
    32
}

impl Default for SecretConfig {
    fn default() -> Self {
        Self {
            length: default_length(),
            symbols: false,
        }
    }
}

/// The configuration of one resolver at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolverLayer {
    pub resolver: ResolverKind,
    pub config: Map<String, Value>,
}

impl ResolverLayer {
    /// Refuses keys that nobody reads and values of another type.
    pub fn check(&self) -> Result<(), ResolverError> {
        let mut settings = ResolverSettings::default();
        settings.lay(self)?;
        if let Some(pattern) = &settings.naming.pattern {
            NamePattern::parse(pattern)?;
        }
        let length = settings.secret.length;
        if !(8..=256).contains(&length) {
            let problem = "it has to be a number from 8 to 256";
            return Err(ResolverError::config(
                ResolverKind::Secret,
                "length",
                problem,
            ));
        }
        Ok(())
    }
}

/// Everything that answers depend on, in force at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolverSettings {
    pub pools: Vec<PoolDefinition>,
    pub ipam: IpamConfig,
    pub naming: NamingConfig,
    pub images: ImageConfig,
    /// Nearest first; shipped ones are not in it.
    pub catalog: Vec<ImageEntry>,
    pub secret: SecretConfig,
}

impl ResolverSettings {
    /// Lays a nearer layer over what is there.
    pub fn lay(&mut self, layer: &ResolverLayer) -> Result<(), ResolverError> {
        let ResolverLayer { resolver, config } = layer;
        match resolver {
            ResolverKind::Ipam => self.ipam = over(*resolver, &self.ipam, config)?,
            ResolverKind::Naming => self.naming = over(*resolver, &self.naming, config)?,
            ResolverKind::ImageCatalog => self.images = over(*resolver, &self.images, config)?,
            ResolverKind::Secret => self.secret = over(*resolver, &self.secret, config)?,
        }
        Ok(())
    }

    /// Reads the file of a workspace, with what it says for one environment on top.
    pub fn read(value: &Value, environment: &str) -> Result<Self, ResolverError> {
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct WrittenConfig {
            pools: Vec<PoolDefinition>,
            images: Vec<ImageEntry>,
            resolvers: BTreeMap<String, Map<String, Value>>,
            environments: BTreeMap<String, BTreeMap<String, Map<String, Value>>>,
        }
        let written = match value {
            Value::Null => WrittenConfig::default(),
            value => serde_json::from_value(value.clone()).map_err(|error| {
                ResolverError::config("workspace", "resolvers.yaml", error.to_string())
            })?,
        };
        check_pools(&written.pools, "this workspace")?;
        let mut settings = Self {
            pools: written.pools,
            catalog: written.images,
            ..Self::default()
        };
        for layers in written.environments.values() {
            for (name, config) in layers {
                layer(name, config)?.check()?;
            }
        }
        let own = written.environments.get(environment);
        for (name, config) in written.resolvers.iter().chain(own.into_iter().flatten()) {
            let layer = layer(name, config)?;
            layer.check()?;
            settings.lay(&layer)?;
        }
        Ok(settings)
    }
}

fn layer(name: &str, config: &Map<String, Value>) -> Result<ResolverLayer, ResolverError> {
    Ok(ResolverLayer {
        resolver: name.parse()?,
        config: config.clone(),
    })
}

fn over<T: Serialize + DeserializeOwned>(
    resolver: ResolverKind,
    below: &T,
    above: &Map<String, Value>,
) -> Result<T, ResolverError> {
    let below = serde_json::to_value(below);
    let mut all = match below {
        Ok(Value::Object(below)) => below,
        _ => Map::new(),
    };
    for (key, value) in above {
        all.insert(key.clone(), value.clone());
    }
    serde_json::from_value(Value::Object(all)).map_err(|error| {
        let keys: Vec<_> = above.keys().map(String::as_str).collect();
        ResolverError::config(resolver, keys.join(", "), error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_environment_lies_over_the_general_configuration_key_by_key() {
        let file = json!({
            "pools": [{"name": "corp", "cidr": "10.0.0.0/8"}],
            "resolvers": {"ipam": {"pool": "corp", "prefix_length": 24},
                "naming": {"pattern": "{env}-{seq}"}},
            "environments": {"prod": {"ipam": {"prefix_length": 20}}},
        });
        let dev = ResolverSettings::read(&file, "dev").unwrap();
        let prod = ResolverSettings::read(&file, "prod").unwrap();
        assert_eq!(
            (dev.ipam.prefix_length, prod.ipam.prefix_length),
            (Some(24), Some(20))
        );
        assert_eq!(prod.ipam.pool.as_deref(), Some("corp"));
        assert_eq!(prod.naming, dev.naming);
        assert_eq!(
            ResolverSettings::read(&Value::Null, "dev").unwrap(),
            ResolverSettings::default()
        );
    }

    #[test]
    fn keys_that_nobody_reads_are_refused_wherever_they_are() {
        for (file, says) in [
            (
                json!({"resolvers": {"ipam": {"pol": "x"}}}),
                "unknown field `pol`",
            ),
            (json!({"resolvers": {"ipam": {"pool": 3}}}), "invalid type"),
            (json!({"resolvers": {"dns": {}}}), "no resolver `dns`"),
            (
                json!({"environments": {"prod": {"naming": {"pattern": "{x}"}}}}),
                "there is no {x}",
            ),
            (
                json!({"resolvers": {"secret": {"length": 4}}}),
                "from 8 to 256",
            ),
            (json!({"pool": []}), "unknown field `pool`"),
            (
                json!({"pools": [{"name": "a", "cidr": "10.0.0.1/8"}]}),
                "10.0.0.0/8 begins there",
            ),
        ] {
            let error = ResolverSettings::read(&file, "dev")
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
