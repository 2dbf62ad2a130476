//! What was deployed, for whoever may look: resources, outputs, whole states. No secret is opened for it.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_cmdb::shown;
use nimbus_control_wire::{
    DeploymentOutputs, DeploymentState, RepairUnit, ResourceView, StateExport, UnitHealth,
    UnitRepairReport, UnitStateVersion, UnitStateView,
};
use nimbus_core::{
    ComponentName, DeploymentId, EnvironmentName, Error, ErrorCode, TenantId, UnitName,
};
use nimbus_orchestrator::Manifest;
use serde_json::{Value, json};

use crate::app::App;
use crate::call::Call;
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};

/// The state of one unit, as it is recorded.
#[derive(Clone, Debug)]
pub struct StoredUnitState {
    /// The component that the unit is of.
    pub unit: String,
    pub stack: String,
    pub checkpoint: Value,
    pub modified: Timestamp,
}

/// Which environment.
#[derive(Clone, Debug)]
pub struct StatePlace {
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
}

/// Which component and environment a stack's name stands for. Both parts may have dashes, so the manifest decides; a
/// stack that it does not know any more belongs to the environment with the longest name that fits.
#[derive(Clone, Debug)]
pub struct UnitNames {
    deployment: DeploymentId,
    known: BTreeMap<String, (ComponentName, EnvironmentName)>,
    environments: Vec<EnvironmentName>,
}

impl UnitNames {
    pub fn of(manifest: &Manifest) -> Self {
        let deployment = manifest.metadata.id.clone();
        let environments: Vec<_> = manifest.environments.keys().copied().collect();
        let mut known = BTreeMap::new();
        for component in manifest.stacks.keys() {
            for environment in &environments {
                let unit = UnitName::new(&deployment, component, *environment);
                known.insert(unit.to_string(), (component.clone(), *environment));
            }
        }
        Self {
            deployment,
            known,
            environments,
        }
    }

    /// The component, if the stack is one of the environment.
    pub fn component(&self, stack: &str, environment: &str) -> Option<String> {
        if let Some((component, place)) = self.known.get(stack) {
            return (place.as_str() == environment).then(|| component.to_string());
        }
        let rest = stack.strip_prefix(self.deployment.as_str())?;
        let rest = rest.strip_prefix('-')?;
        let found = self.environments.iter().filter_map(|place| {
            let component = rest.strip_suffix(place.as_str())?.strip_suffix('-')?;
            (!component.is_empty()).then_some((component, place.as_str()))
        });
        let (component, place) = found.max_by_key(|(_, place)| place.len())?;
        (place == environment).then(|| component.to_owned())
    }
}

/// The state of one unit over time; read by whoever knows the engine.
#[async_trait]
pub trait UnitStateSource: Send + Sync {
    /// The name of its Pulumi stack.
    fn stack(&self) -> &str;

    /// Newest first.
    async fn versions(&self) -> nimbus_core::Result<Vec<UnitStateVersion>>;

    /// A version in the official export form, the current one without a number; nothing if it is not kept.
    async fn version(&self, number: Option<u64>) -> nimbus_core::Result<Option<Value>>;

    /// How it is, without the difference; then the state and its mended copy.
    async fn examine(&self) -> nimbus_core::Result<(UnitHealth, Value, Value)>;

    /// What was done, without the difference; then the state before and after it.
    async fn edit(
        &self,
        edit: &RepairUnit,
    ) -> nimbus_core::Result<(UnitRepairReport, Value, Value)>;
}

/// Where states are read from; they are not this crate's business.
#[async_trait]
pub trait StateSource: Send + Sync {
    /// The unit, if anything was ever recorded of it.
    async fn unit(
        &self,
        tenant: TenantId,
        place: &StatePlace,
        names: &UnitNames,
        unit: &str,
    ) -> nimbus_core::Result<Option<Box<dyn UnitStateSource>>>;

    async fn of_environment(
        &self,
        tenant: TenantId,
        place: &StatePlace,
        names: &UnitNames,
    ) -> nimbus_core::Result<Vec<StoredUnitState>>;
}

impl fmt::Debug for dyn StateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateSource(..)")
    }
}

impl App {
    pub async fn deployment_state(
        &self,
        call: &Call,
        tenant: TenantId,
        place: StatePlace,
    ) -> Result<DeploymentState> {
        let operation = operation::DEPLOYMENT_STATE;
        let found = self.recorded(call, operation, tenant, &place).await?;
        Ok(DeploymentState {
            units: found
                .into_iter()
                .map(|state| UnitStateView {
                    resources: resources(&state.checkpoint).map(resource).collect(),
                    unit: state.unit,
                    stack: state.stack,
                    modified_at: state.modified.to_string(),
                })
                .collect(),
            deployment: place.deployment,
            environment: place.environment,
            rehearsal: place.rehearsal,
        })
    }

    pub async fn deployment_outputs(
        &self,
        call: &Call,
        tenant: TenantId,
        place: StatePlace,
    ) -> Result<DeploymentOutputs> {
        let operation = operation::DEPLOYMENT_OUTPUTS;
        let found = self.recorded(call, operation, tenant, &place).await?;
        Ok(DeploymentOutputs {
            units: found
                .into_iter()
                .map(|state| (state.unit, outputs(&state.checkpoint)))
                .collect(),
            deployment: place.deployment,
            environment: place.environment,
            rehearsal: place.rehearsal,
        })
    }

    pub async fn state_export(
        &self,
        call: &Call,
        tenant: TenantId,
        place: StatePlace,
    ) -> Result<StateExport> {
        let operation = operation::EXPORT_STATE;
        let found = self.recorded(call, operation, tenant, &place).await?;
        let export = |state: StoredUnitState| {
            let version = state.checkpoint["version"].clone();
            let deployment = state.checkpoint["checkpoint"]["latest"].clone();
            let document = json!({"version": version, "deployment": deployment});
            (state.unit, document)
        };
        Ok(StateExport {
            units: found.into_iter().map(export).collect(),
            exported_at: call.context.now.to_string(),
            deployment: place.deployment,
            environment: place.environment,
            rehearsal: place.rehearsal,
        })
    }

    async fn recorded(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        place: &StatePlace,
    ) -> Result<Vec<StoredUnitState>> {
        let environment = Some(place.environment.as_str());
        let permit = self.permit_in(call, operation, tenant, environment).await?;
        let names = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.deployment_get(&place.deployment).await?;
                let names = UnitNames::of(&read_manifest(&found.manifest)?);
                let record = permit.record().on(&found.id).after(json!({
                    "environment": place.environment,
                    "rehearsal": place.rehearsal,
                }));
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(names)
            })
            .await?;
        Ok(self
            .state_source()?
            .of_environment(tenant, place, &names)
            .await?)
    }

    pub(crate) fn state_source(&self) -> Result<&dyn StateSource> {
        match self.inner.states.get() {
            Some(source) => Ok(source.as_ref()),
            None => {
                let message = "this process has no states";
                Err(Error::new(ErrorCode::INTERNAL, message).into())
            }
        }
    }
}

fn resources(checkpoint: &Value) -> impl Iterator<Item = &Value> {
    let list = &checkpoint["checkpoint"]["latest"]["resources"];
    list.as_array().into_iter().flatten()
}

fn resource(recorded: &Value) -> ResourceView {
    let text = |name: &str| recorded[name].as_str().map(str::to_owned);
    let flag = |name: &str| recorded[name].as_bool().unwrap_or_default();
    let dependencies = recorded["dependencies"].as_array().into_iter().flatten();
    ResourceView {
        urn: text("urn").unwrap_or_default(),
        type_: text("type").unwrap_or_default(),
        id: text("id").filter(|id| !id.is_empty()),
        parent: text("parent").filter(|parent| !parent.is_empty()),
        dependencies: dependencies
            .filter_map(|urn| urn.as_str().map(str::to_owned))
            .collect(),
        custom: flag("custom"),
        protect: flag("protect"),
        external: flag("external"),
    }
}

fn outputs(checkpoint: &Value) -> BTreeMap<String, Value> {
    let root = resources(checkpoint).find(|resource| resource["type"] == "pulumi:pulumi:Stack");
    let outputs = root.and_then(|root| root["outputs"].as_object());
    let outputs = outputs.into_iter().flatten();
    outputs
        .map(|(name, value)| (name.clone(), shown(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use nimbus_control_cmdb::{SECRET, SIGNATURE};

    use super::*;

    const RESOURCE: &str = "5cf8f73096256a8f31e491e813e4eb8e";

    #[test]
    fn a_stack_belongs_to_one_component_in_one_environment() {
        let manifest = "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {deploymentId: D1, \
            organization: o, project: p, template: t}\nspec:\n  environments: {prod: {enabled: true, \
            account: '111111111111', region: eu-west-1}, eu-prod: {enabled: true, account: \
            '111111111111', region: eu-west-1}}\n  stacks:\n    app: {enabled: true}\n    \
            web-eu: {enabled: false}\n";
        let manifest = read_manifest(manifest).unwrap();
        let names = UnitNames::of(&manifest);
        let component = |stack: &str, place: &str| names.component(stack, place);
        assert_eq!(component("D1-app-prod", "prod").as_deref(), Some("app"));
        assert_eq!(component("D1-app-eu-prod", "prod"), None);
        assert_eq!(
            component("D1-app-eu-prod", "eu-prod").as_deref(),
            Some("app")
        );
        // The manifest says whose dash it is.
        assert_eq!(
            component("D1-web-eu-prod", "prod").as_deref(),
            Some("web-eu")
        );
        assert_eq!(component("D1-web-eu-prod", "eu-prod"), None);
        // What is no longer in it is still found, in one place.
        assert_eq!(
            component("D1-old-eu-prod", "eu-prod").as_deref(),
            Some("old")
        );
        assert_eq!(component("D1-old-eu-prod", "prod"), None);
        assert_eq!(component("D2-app-prod", "prod"), None);
        assert_eq!(component("D1-prod", "prod"), None);
    }

    #[test]
    fn secrets_in_outputs_are_named_and_not_shown() {
        let secret = json!({SIGNATURE: SECRET, "ciphertext": "v1:x"});
        let odd = json!({SIGNATURE: "of a later version", "plaintext": "hush"});
        let resource = json!({SIGNATURE: RESOURCE, "urn": "u", "id": "i"});
        let checkpoint = json!({"version": 3, "checkpoint": {"latest": {"resources": [
            {"urn": "u", "type": "pulumi:pulumi:Stack",
             "outputs": {"url": "https://x", "deep": [{"password": secret}], "odd": odd, "bucket": resource}},
        ]}}});
        let found = outputs(&checkpoint);
        assert_eq!(found["url"], "https://x");
        assert_eq!(found["deep"], json!([{"password": {"secret": true}}]));
        assert_eq!(found["odd"], json!({"secret": true}));
        assert_eq!(found["bucket"], json!({"kind": "resource", "urn": "u"}));
    }
}
