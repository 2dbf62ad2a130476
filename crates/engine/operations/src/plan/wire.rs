//! A plan as JSON. Property values are written as in a state file, secrets encrypted.

use std::collections::BTreeMap;

use nimbus_engine_deploy::{DeploymentPlan, GoalPlan, PlannedDiff, ResourcePlan};
use nimbus_engine_model::format::{StateError, read_property, write_property};
use nimbus_engine_model::secrets::Crypter;
use nimbus_engine_model::{
    Alias, AliasParent, AliasSpec, CustomTimeouts, PropertyMap, PropertyValue, StepOp, Urn,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

type WireResources = BTreeMap<Urn, WireResource>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WireResource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    goal: Option<WireGoal>,
    ops: Vec<StepOp>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    outputs: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<[u8; 32]>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireGoal {
    #[serde(rename = "type")]
    type_: String,
    name: String,
    custom: bool,
    inputs: WireDiff,
    outputs: WireDiff,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<Urn>,
    protect: bool,
    dependencies: Vec<Urn>,
    provider: String,
    property_dependencies: BTreeMap<String, Vec<Urn>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delete_before_replace: Option<bool>,
    ignore_changes: Vec<String>,
    additional_secret_outputs: Vec<String>,
    aliases: Vec<WireAlias>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    import_id: Option<String>,
    custom_timeouts: CustomTimeouts,
}

#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireDiff {
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    adds: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deletes: Vec<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    updates: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum WireAlias {
    Urn(Urn),
    Spec {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        type_: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stack: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<String>,
        /// Absent: the present parent. `null`: none.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "parent")]
        parent: Option<Option<Urn>>,
    },
}

/// Tells a `null` from an absent field.
mod parent {
    use nimbus_engine_model::Urn;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Option<Urn>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.clone().flatten().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Option<Urn>>, D::Error> {
        Option::deserialize(deserializer).map(Some)
    }
}

pub(super) fn write(
    plan: &DeploymentPlan,
    crypter: &dyn Crypter,
) -> Result<WireResources, StateError> {
    plan.resources
        .iter()
        .map(|(urn, resource)| Ok((urn.clone(), write_resource(resource, crypter)?)))
        .collect()
}

pub(super) fn read(
    base_serial: String,
    resources: WireResources,
    crypter: &dyn Crypter,
) -> Result<DeploymentPlan, StateError> {
    let resources = resources
        .into_iter()
        .map(|(urn, resource)| Ok((urn, read_resource(resource, crypter)?)))
        .collect::<Result<_, StateError>>()?;
    Ok(DeploymentPlan {
        base_serial,
        resources,
    })
}

fn write_resource(plan: &ResourcePlan, crypter: &dyn Crypter) -> Result<WireResource, StateError> {
    Ok(WireResource {
        goal: plan
            .goal
            .as_ref()
            .map(|goal| write_goal(goal, crypter))
            .transpose()?,
        ops: plan.ops.clone(),
        outputs: write_map(&plan.outputs, crypter)?,
        seed: plan.seed,
    })
}

fn read_resource(wire: WireResource, crypter: &dyn Crypter) -> Result<ResourcePlan, StateError> {
    Ok(ResourcePlan {
        goal: wire.goal.map(|goal| read_goal(goal, crypter)).transpose()?,
        ops: wire.ops,
        outputs: read_map(&wire.outputs, crypter)?,
        seed: wire.seed,
    })
}

fn write_goal(goal: &GoalPlan, crypter: &dyn Crypter) -> Result<WireGoal, StateError> {
    Ok(WireGoal {
        type_: goal.type_.clone(),
        name: goal.name.clone(),
        custom: goal.custom,
        inputs: write_diff(&goal.inputs, crypter)?,
        outputs: write_diff(&goal.outputs, crypter)?,
        parent: goal.parent.clone(),
        protect: goal.protect,
        dependencies: goal.dependencies.clone(),
        provider: goal.provider.clone(),
        property_dependencies: goal.property_dependencies.clone(),
        delete_before_replace: goal.delete_before_replace,
        ignore_changes: goal.ignore_changes.clone(),
        additional_secret_outputs: goal.additional_secret_outputs.clone(),
        aliases: goal.aliases.iter().map(write_alias).collect(),
        import_id: goal.import_id.clone(),
        custom_timeouts: goal.custom_timeouts,
    })
}

fn read_goal(wire: WireGoal, crypter: &dyn Crypter) -> Result<GoalPlan, StateError> {
    Ok(GoalPlan {
        type_: wire.type_,
        name: wire.name,
        custom: wire.custom,
        inputs: read_diff(&wire.inputs, crypter)?,
        outputs: read_diff(&wire.outputs, crypter)?,
        parent: wire.parent,
        protect: wire.protect,
        dependencies: wire.dependencies,
        provider: wire.provider,
        property_dependencies: wire.property_dependencies,
        delete_before_replace: wire.delete_before_replace,
        ignore_changes: wire.ignore_changes,
        additional_secret_outputs: wire.additional_secret_outputs,
        aliases: wire.aliases.into_iter().map(read_alias).collect(),
        import_id: wire.import_id,
        custom_timeouts: wire.custom_timeouts,
    })
}

fn write_diff(diff: &PlannedDiff, crypter: &dyn Crypter) -> Result<WireDiff, StateError> {
    Ok(WireDiff {
        adds: write_map(&diff.adds, crypter)?,
        deletes: diff.deletes.clone(),
        updates: write_map(&diff.updates, crypter)?,
    })
}

fn read_diff(wire: &WireDiff, crypter: &dyn Crypter) -> Result<PlannedDiff, StateError> {
    Ok(PlannedDiff {
        adds: read_map(&wire.adds, crypter)?,
        deletes: wire.deletes.clone(),
        updates: read_map(&wire.updates, crypter)?,
    })
}

fn write_map(map: &PropertyMap, crypter: &dyn Crypter) -> Result<Map<String, Value>, StateError> {
    let text = write_property(&PropertyValue::Object(map.clone()), crypter)?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => Ok(map),
        _ => Err(StateError::NotAState {
            problem: "a planned value is nested too deeply",
        }),
    }
}

fn read_map(map: &Map<String, Value>, crypter: &dyn Crypter) -> Result<PropertyMap, StateError> {
    let text = Value::Object(map.clone()).to_string();
    match read_property(text.as_bytes(), crypter)? {
        PropertyValue::Object(map) => Ok(map),
        _ => Err(StateError::NotAState {
            problem: "planned properties are not a map",
        }),
    }
}

fn write_alias(alias: &Alias) -> WireAlias {
    match alias {
        Alias::Urn(urn) => WireAlias::Urn(urn.clone()),
        Alias::Spec(spec) => WireAlias::Spec {
            name: spec.name.clone(),
            type_: spec.type_.clone(),
            stack: spec.stack.clone(),
            project: spec.project.clone(),
            parent: match &spec.parent {
                AliasParent::Same => None,
                AliasParent::None => Some(None),
                AliasParent::Urn(urn) => Some(Some(urn.clone())),
            },
        },
    }
}

fn read_alias(wire: WireAlias) -> Alias {
    match wire {
        WireAlias::Urn(urn) => Alias::Urn(urn),
        WireAlias::Spec {
            name,
            type_,
            stack,
            project,
            parent,
        } => Alias::Spec(AliasSpec {
            name,
            type_,
            stack,
            project,
            parent: match parent {
                None => AliasParent::Same,
                Some(None) => AliasParent::None,
                Some(Some(urn)) => AliasParent::Urn(urn),
            },
        }),
    }
}
