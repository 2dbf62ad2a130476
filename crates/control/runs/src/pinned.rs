//! Versions of the catalog that a run is made of, as files of its workspace.
//!
//! Which versions these are was decided when the run was queued and stands in its row. They lie where a registered
//! program would lie: a template below `tools`, and files below `stacks`.

use std::collections::BTreeMap;

use nimbus_catalog::{ComponentContract, to_template};
use nimbus_control_store::{StoreError, StoredVersion};
use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_orchestrator::schema::ordered;
use nimbus_resolvers::ParameterContract;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::vault::TenantVault;

/// Versions by stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct PinnedVersions {
    stacks: BTreeMap<String, PinnedVersion>,
}

/// Whose component, and which of its versions.
#[derive(Clone, Debug, Deserialize)]
struct PinnedVersion {
    owner: Uuid,
    name: String,
    version: i32,
}

impl PinnedVersions {
    /// As a run's row keeps them.
    pub(crate) fn read(value: &Value) -> Result<Self> {
        let stacks = serde_json::from_value(value.clone()).map_err(|error| {
            let message = format!("the versions of a run cannot be read: {error}");
            Error::new(ErrorCode::INTERNAL, message)
        })?;
        Ok(Self { stacks })
    }

    /// Adds to a digest what these are: a version stays as it was published, so its name is enough.
    pub(crate) fn add_to(&self, whole: &mut Sha256) {
        for (stack, one) in &self.stacks {
            whole.update(format!(
                "catalog {stack} {} {} {}\n",
                one.owner, one.name, one.version
            ));
        }
    }

    /// Whether a path is of one of these stacks.
    pub(crate) fn has(&self, path: &str) -> bool {
        let stack = path
            .strip_prefix("stacks/")
            .and_then(|rest| rest.split_once('/'))
            .filter(|(_, rest)| rest.starts_with("src/"))
            .map(|(stack, _)| stack);
        let template = path
            .strip_prefix("tools/templates/config/")
            .and_then(|file| file.strip_suffix(".yaml"));
        stack
            .or(template)
            .is_some_and(|stack| self.stacks.contains_key(stack))
    }

    /// What those versions say of their parameters that have some which resolvers answer.
    pub(crate) async fn contracts(
        &self,
        vault: &TenantVault,
    ) -> Result<BTreeMap<ComponentName, ParameterContract>> {
        bound_contracts(self.contract_parts(vault).await?)
    }

    /// Inputs and bindings of those versions.
    pub(crate) async fn contract_parts(&self, vault: &TenantVault) -> Result<ContractParts> {
        let mut parts = BTreeMap::new();
        for (stack, one) in &self.stacks {
            let found = vault
                .tx(async |tx| tx.version_contract(one.owner, &one.name, one.version).await)
                .await?;
            let (inputs, bindings) = found.ok_or(StoreError::NotFound("version of a component"))?;
            let bindings = bindings.as_object().cloned().unwrap_or_default();
            parts.insert(component(stack)?, (inputs, bindings));
        }
        Ok(parts)
    }

    /// Their files, by path in the workspace.
    pub(crate) async fn files(&self, vault: &TenantVault) -> Result<BTreeMap<String, String>> {
        let mut files = BTreeMap::new();
        for (stack, one) in &self.stacks {
            let found = vault
                .tx(async |tx| tx.version_of(one.owner, &one.name, one.version).await)
                .await?;
            let found = found.ok_or(StoreError::NotFound("version of a component"))?;
            let path = format!("tools/templates/config/{stack}.yaml");
            files.insert(path, template(stack, &found)?);
            for (path, text) in found.code.as_object().into_iter().flatten() {
                let text = text.as_str().unwrap_or_default().to_owned();
                files.insert(format!("stacks/{stack}/{path}"), text);
            }
        }
        Ok(files)
    }
}

/// Inputs and bindings by component.
pub(crate) type ContractParts = BTreeMap<ComponentName, (Value, Map<String, Value>)>;

/// The contracts with inputs that resolvers answer.
pub(crate) fn bound_contracts(
    parts: ContractParts,
) -> Result<BTreeMap<ComponentName, ParameterContract>> {
    let mut contracts = BTreeMap::new();
    for (component, (inputs, bindings)) in parts {
        let contract = ParameterContract::read(&inputs, &bindings)?;
        if contract.is_bound() {
            contracts.insert(component, contract);
        }
    }
    Ok(contracts)
}

/// The stack template of a version, as the JSON that YAML is too.
fn template(stack: &str, version: &StoredVersion) -> Result<String> {
    let name = component(stack)?;
    let resolvers = serde_json::from_value(version.resolver_bindings.clone());
    let contract = ComponentContract {
        inputs: version.input_schema.clone(),
        outputs: version.output_schema.clone(),
        resolvers: resolvers.map_err(|error| Error::new(ErrorCode::INTERNAL, error.to_string()))?,
    };
    let settings = version.settings.as_object().cloned().unwrap_or_default();
    let template = to_template(&name, &version.description, &contract, &settings);
    Ok(ordered(Value::Object(template)).to_string())
}

fn component(stack: &str) -> Result<ComponentName> {
    stack
        .parse()
        .map_err(|error: nimbus_core::Malformed| Error::new(ErrorCode::INTERNAL, error.to_string()))
}
