//! Components, rules, the semantic layer and landing zones as they go over the wire.

use std::collections::BTreeMap;

use nimbus_control_app as app;
use nimbus_control_wire::{
    Binding, CatalogComponent, ChangedFile, Cloud, ComponentDetail, ComponentDraft,
    ComponentInstance, ComponentVersion, Constraints, Contract, ContractDifference, GovernanceRule,
    KindInCloud, ResourceKind, SetRule, VersionChanges, ZoneComponent, ZoneDetail, ZoneDraft,
    ZoneEnvironment, ZoneEnvironmentDetail, ZoneResolver, ZoneSummary, ZoneTemplate,
};
use nimbus_core::TenantId;
use serde_json::{Map, Value};

use crate::wire::{maybe_time, time};

/// Whether a row belongs to somebody else than the tenant that asks: then it is the operator's.
fn is_shared(owner: uuid::Uuid, tenant: TenantId) -> bool {
    owner != uuid::Uuid::from(tenant)
}

pub(crate) fn component(row: app::StoredComponent, tenant: TenantId) -> CatalogComponent {
    CatalogComponent {
        shared: is_shared(row.tenant_id, tenant),
        name: row.name,
        display_name: row.display_name,
        description: row.description,
        provider: row.provider,
        semantic_type: row.semantic_type,
        language: row.language,
        system: row.is_system,
        version: Some(row.version).filter(|version| *version > 0),
        revision: row.revision,
        updated_at: time(row.updated_at),
    }
}

pub(crate) fn component_detail(view: app::ComponentView, tenant: TenantId) -> ComponentDetail {
    let row = &view.component;
    let draft = (!view.shared).then(|| ComponentDraft {
        name: Some(row.name.clone()),
        display_name: row.display_name.clone(),
        description: row.description.clone(),
        provider: row.provider.clone(),
        semantic_type: row.semantic_type.clone(),
        language: row.language.clone(),
        contract: contract(
            &row.input_schema,
            &row.output_schema,
            &row.resolver_bindings,
        ),
        settings: object(&row.settings),
        files: files(&row.code),
        system: row.is_system,
    });
    ComponentDetail {
        draft,
        newest: view.newest.map(version),
        component: component(view.component, tenant),
    }
}

pub(crate) fn component_input(draft: ComponentDraft) -> app::ComponentInput {
    let resolvers = draft.contract.resolvers.into_iter();
    app::ComponentInput {
        display_name: draft.display_name,
        description: draft.description,
        provider: draft.provider,
        semantic_type: draft.semantic_type,
        language: draft.language,
        contract: app::ComponentContract {
            inputs: draft.contract.inputs,
            outputs: draft.contract.outputs,
            resolvers: resolvers
                .map(|(input, binding)| {
                    let binding = app::ContractBinding {
                        resolver: binding.resolver,
                        output: binding.output,
                        inputs: binding.inputs,
                    };
                    (input, binding)
                })
                .collect(),
        },
        settings: draft.settings,
        files: draft.files,
        system: draft.system,
    }
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn files(code: &Value) -> BTreeMap<String, String> {
    let entries = code.as_object().into_iter().flatten();
    entries
        .filter_map(|(path, text)| Some((path.clone(), text.as_str()?.to_owned())))
        .collect()
}

fn contract(inputs: &Value, outputs: &Value, resolvers: &Value) -> Contract {
    let bindings: BTreeMap<String, Binding> =
        serde_json::from_value(resolvers.clone()).unwrap_or_default();
    Contract {
        inputs: inputs.clone(),
        outputs: outputs.clone(),
        resolvers: bindings,
    }
}

/// A version with its files.
pub(crate) fn version(row: app::StoredVersion) -> ComponentVersion {
    ComponentVersion {
        files: Some(files(&row.code)),
        ..listed_version(row)
    }
}

/// A version as lists show it.
pub(crate) fn listed_version(row: app::StoredVersion) -> ComponentVersion {
    ComponentVersion {
        contract: contract(
            &row.input_schema,
            &row.output_schema,
            &row.resolver_bindings,
        ),
        settings: object(&row.settings),
        files: None,
        changes: serde_json::from_value(row.changes).unwrap_or_default(),
        name: row.name,
        version: row.version,
        semantic_version: row.semantic_version,
        provider: row.provider,
        semantic_type: row.semantic_type,
        language: row.language,
        digest: hex::encode(&row.digest),
        changelog: row.changelog,
        published_at: time(row.published_at),
        published_by: row.published_by.to_string(),
        deprecated_at: maybe_time(row.deprecated_at),
        deprecation: row.deprecation,
        upgrade_workflow: row.upgrade_workflow,
    }
}

pub(crate) fn version_changes(difference: app::VersionDifference) -> VersionChanges {
    VersionChanges {
        from: difference.from,
        to: difference.to,
        breaking: difference.contract.is_breaking(),
        contract: difference
            .contract
            .changes
            .into_iter()
            .map(|change| ContractDifference {
                place: change.place,
                message: change.message,
                breaking: change.breaking,
            })
            .collect(),
        files: difference
            .files
            .into_iter()
            .map(|file| ChangedFile {
                path: file.path,
                change: match file.change {
                    app::FileChange::Added => "added",
                    app::FileChange::Removed => "removed",
                    app::FileChange::Changed => "changed",
                }
                .to_owned(),
                text: file.text,
            })
            .collect(),
    }
}

pub(crate) fn instance(row: app::DeployedComponent) -> ComponentInstance {
    ComponentInstance {
        id: row.id.to_string(),
        deployment: row.deployment,
        environment: row.environment,
        rehearsal: row.rehearsal,
        stack: row.stack,
        component: row.component,
        version: row.component_version,
        status: row.status,
        deployed_at: maybe_time(row.deployed_at),
        error: row.error_message,
        upgrade_run: row.upgrade_run.map(|run| run.to_string()),
        upgrade_from: row.upgrade_from,
        updated_at: time(row.updated_at),
    }
}

pub(crate) fn rule(row: app::StoredRule, tenant: TenantId) -> GovernanceRule {
    GovernanceRule {
        id: row.id.to_string(),
        component: row.component,
        allowed: row.is_allowed,
        constraints: row.parameter_constraints,
        max_instances: row.max_instances,
        reason: row.reason,
        inherited: is_shared(row.owner, tenant),
        tenant: row.owner.to_string(),
        tenant_name: row.owner_name,
        set_by: row.set_by_name,
        set_at: time(row.set_at),
    }
}

pub(crate) fn rule_input(body: SetRule) -> Result<app::RuleInput, app::Failure> {
    Ok(app::RuleInput {
        allowed: body.allowed,
        constraints: constraints(&body.constraints)?,
        max_instances: body.max_instances,
        reason: body.reason,
    })
}

fn constraints(body: &Constraints) -> Result<app::ParameterRules, app::Failure> {
    // The same shape under other names; a difference would be noticed here.
    let value = serde_json::to_value(body).unwrap_or_default();
    serde_json::from_value(value)
        .map_err(|error| app::Failure::field("constraints", error.to_string()))
}

pub(crate) fn cloud(row: app::SemanticCloud) -> Cloud {
    Cloud {
        name: row.name,
        display_name: row.display_name,
    }
}

pub(crate) fn kind(row: app::SemanticType) -> ResourceKind {
    ResourceKind {
        name: row.name,
        aliases: row.aliases,
        category: row.category,
        description: row.description,
    }
}

pub(crate) fn kind_in_cloud(row: app::SemanticMapping) -> KindInCloud {
    KindInCloud {
        semantic_type: row.resource_type,
        provider: row.provider,
        names: row.names,
        resources: row.resources,
        note: row.note,
    }
}

fn components(value: &Value) -> Vec<ZoneComponent> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

pub(crate) fn placed(components: Vec<ZoneComponent>) -> Vec<app::PlacedComponent> {
    let components = components.into_iter();
    components
        .map(|one| app::PlacedComponent {
            component: one.component,
            parameters: one.parameters,
        })
        .collect()
}

pub(crate) fn zone(row: app::LandingZone, tenant: TenantId) -> ZoneSummary {
    ZoneSummary {
        shared: is_shared(row.tenant_id, tenant),
        system_services: components(&row.system_services),
        name: row.name,
        display_name: row.display_name,
        description: row.description,
        provider: row.provider,
        account: row.account,
        region: row.region,
        status: row.status,
        updated_at: time(row.updated_at),
        published_at: maybe_time(row.published_at),
    }
}

pub(crate) fn zone_detail(view: app::ZoneView, tenant: TenantId) -> ZoneDetail {
    ZoneDetail {
        zone: zone(view.zone, tenant),
        templates: view.templates.into_iter().map(zone_template).collect(),
        platform: view.platform.map(zone_environment),
        resolver_configs: view.resolver_configs.into_iter().map(resolver).collect(),
    }
}

fn resolver(one: app::ResolverConfiguration) -> ZoneResolver {
    ZoneResolver {
        resolver: one.resolver.to_string(),
        owner: one.owner_name,
        landing_zone: one.place.landing_zone.map(|zone| zone.name),
        environment: one.place.environment,
        config: one.config,
    }
}

pub(crate) fn environment_detail(view: app::ZoneEnvironmentView) -> ZoneEnvironmentDetail {
    ZoneEnvironmentDetail {
        environment: zone_environment(view.environment),
        resolver_scope: view.resolver_scope.into_iter().map(resolver).collect(),
        instances: view.instances.into_iter().map(instance).collect(),
        operations: view.operations.into_iter().map(str::to_owned).collect(),
    }
}

pub(crate) fn zone_template(row: app::EnvironmentTemplate) -> ZoneTemplate {
    ZoneTemplate {
        mandatory_components: components(&row.mandatory_components),
        name: row.name,
        description: row.description,
        updated_at: time(row.updated_at),
    }
}

pub(crate) fn zone_input(draft: ZoneDraft) -> app::ZoneInput {
    app::ZoneInput {
        display_name: draft.display_name,
        description: draft.description,
        provider: draft.provider,
        account: draft.account,
        region: draft.region,
        system_services: placed(draft.system_services),
        resolvers: draft.resolvers,
    }
}

pub(crate) fn zone_environment(row: app::TenantEnvironment) -> ZoneEnvironment {
    ZoneEnvironment {
        mandatory_components: components(&row.mandatory_components),
        name: row.name,
        zone: row.zone_name,
        template: row.template,
        platform: row.is_platform,
        rehearsal: row.rehearsal,
        status: row.status,
        deployment: row.deployment,
        run: row.run.map(|run| run.to_string()),
        created_at: time(row.created_at),
        updated_at: time(row.updated_at),
    }
}
