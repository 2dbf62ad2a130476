//! Components of the catalog, their versions and rules, and the semantic layer.

use async_graphql::{ID, Json, SimpleObject};
use nimbus_control_app::{
    ComponentView, DeployedComponent, FileChange, PublishedVersion, SemanticCloud, SemanticMapping,
    SemanticType, StoredComponent, StoredRule, StoredVersion, VersionDifference,
};
use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::scalars::{AnyJson, GraphTime, maybe_time};

/// Whether something belongs to somebody else than the tenant that asks: to the operator, or to a tenant further up.
pub(super) fn is_others(owner: Uuid, tenant: TenantId) -> bool {
    owner != Uuid::from(tenant)
}

/// A component.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Component")]
pub(crate) struct ComponentNode {
    name: String,
    display_name: String,
    description: String,
    /// A cloud of the semantic layer.
    provider: String,
    semantic_type: String,
    /// `typescript` or `python`.
    language: String,
    /// Whether it is the operator's, for everybody.
    shared: bool,
    /// Whether it belongs to the platform.
    system: bool,
    /// The newest version; absent without one.
    version: Option<i32>,
    /// Counts changes of the draft.
    revision: i64,
    updated_at: GraphTime,
    /// As it is edited. Only where one component of your own is asked for.
    draft: Option<ComponentDraftNode>,
    /// The newest version in full. Only where one component is asked for.
    newest: Option<ComponentVersionNode>,
}

impl ComponentNode {
    pub(crate) fn new(tenant: TenantId, row: StoredComponent) -> Self {
        Self {
            shared: is_others(row.tenant_id, tenant),
            name: row.name,
            display_name: row.display_name,
            description: row.description,
            provider: row.provider,
            semantic_type: row.semantic_type,
            language: row.language,
            system: row.is_system,
            version: Some(row.version).filter(|version| *version > 0),
            revision: row.revision,
            updated_at: row.updated_at.into(),
            draft: None,
            newest: None,
        }
    }

    /// With everything that there is of it. Of another's component the draft is not shown.
    pub(crate) fn whole(tenant: TenantId, view: ComponentView) -> Self {
        let row = &view.component;
        let draft = (!view.shared).then(|| ComponentDraftNode {
            contract: ContractNode {
                inputs: Json(row.input_schema.clone()),
                outputs: Json(row.output_schema.clone()),
                resolvers: Json(row.resolver_bindings.clone()),
            },
            settings: Json(row.settings.clone()),
            files: Json(row.code.clone()),
        });
        Self {
            draft,
            newest: view.newest.map(ComponentVersionNode::whole),
            ..Self::new(tenant, view.component)
        }
    }
}

/// A component as it is edited.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "ComponentDraft")]
struct ComponentDraftNode {
    contract: ContractNode,
    /// What else its stack template says.
    settings: AnyJson,
    /// Texts by path below its folder.
    files: AnyJson,
}

/// What a component takes and gives.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "ComponentContract")]
struct ContractNode {
    /// JSON Schema of an object with a property for each input.
    inputs: AnyJson,
    /// JSON Schema of an object with a property for each output.
    outputs: AnyJson,
    /// Inputs that a resolver answers, by name.
    resolvers: AnyJson,
}

/// A published version. It stays as it is.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "ComponentVersion")]
pub(crate) struct ComponentVersionNode {
    name: String,
    version: i32,
    /// Major when the contract broke somebody's use, minor when it has more, patch otherwise.
    semantic_version: String,
    provider: String,
    semantic_type: String,
    language: String,
    contract: ContractNode,
    settings: AnyJson,
    /// Texts by path below its folder; absent in lists.
    files: Option<AnyJson>,
    /// SHA-256 over everything that a deployment is made from.
    digest: String,
    changelog: String,
    /// What is different from the version before.
    changes: Vec<DifferenceNode>,
    published_at: GraphTime,
    published_by: ID,
    deprecated_at: Option<GraphTime>,
    /// Why it should not be used any more.
    deprecation: Option<String>,
    /// How instances get over it, where it breaks the contract of the one before.
    upgrade_workflow: Option<String>,
}

impl ComponentVersionNode {
    /// With its files.
    pub(crate) fn whole(row: StoredVersion) -> Self {
        Self {
            files: Some(Json(row.code.clone())),
            ..Self::from(row)
        }
    }
}

impl From<StoredVersion> for ComponentVersionNode {
    fn from(row: StoredVersion) -> Self {
        Self {
            name: row.name,
            version: row.version,
            semantic_version: row.semantic_version,
            provider: row.provider,
            semantic_type: row.semantic_type,
            language: row.language,
            contract: ContractNode {
                inputs: Json(row.input_schema),
                outputs: Json(row.output_schema),
                resolvers: Json(row.resolver_bindings),
            },
            settings: Json(row.settings),
            files: None,
            digest: hex::encode(&row.digest),
            changelog: row.changelog,
            // A row that another version wrote says less, and not something wrong.
            changes: serde_json::from_value(row.changes).unwrap_or_default(),
            published_at: row.published_at.into(),
            published_by: row.published_by.to_string().into(),
            deprecated_at: maybe_time(row.deprecated_at),
            deprecation: row.deprecation,
            upgrade_workflow: row.upgrade_workflow,
        }
    }
}

/// One difference between two contracts.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "ContractDifference")]
struct DifferenceNode {
    /// `inputs.size`, `outputs.url`, `resolvers.name`.
    place: String,
    message: String,
    /// Whether it breaks somebody's use.
    breaking: bool,
}

/// A file that is not the same in two versions.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ChangedFile")]
struct ChangedFileNode {
    path: String,
    /// `added`, `removed` or `changed`.
    change: &'static str,
    /// In the unified form.
    text: String,
}

/// What is different between two versions of a component.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "ComponentVersionChanges")]
pub(crate) struct VersionChangesNode {
    #[graphql(name = "from")]
    from_version: i32,
    #[graphql(name = "to")]
    to_version: i32,
    breaking: bool,
    contract: Vec<DifferenceNode>,
    files: Vec<ChangedFileNode>,
}

impl From<VersionDifference> for VersionChangesNode {
    fn from(difference: VersionDifference) -> Self {
        let breaking = difference.contract.is_breaking();
        let contract = difference.contract.changes.into_iter();
        let files = difference.files.into_iter();
        Self {
            from_version: difference.from,
            to_version: difference.to,
            breaking,
            contract: contract
                .map(|change| DifferenceNode {
                    place: change.place,
                    message: change.message,
                    breaking: change.breaking,
                })
                .collect(),
            files: files
                .map(|file| ChangedFileNode {
                    path: file.path,
                    change: match file.change {
                        FileChange::Added => "added",
                        FileChange::Removed => "removed",
                        FileChange::Changed => "changed",
                    },
                    text: file.text,
                })
                .collect(),
        }
    }
}

/// What became of a publication.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "PublishedComponent")]
pub(crate) struct PublishedComponentNode {
    /// False when the newest version is the same already.
    created: bool,
    version: ComponentVersionNode,
}

impl From<PublishedVersion> for PublishedComponentNode {
    fn from(published: PublishedVersion) -> Self {
        Self {
            created: published.created,
            version: published.version.into(),
        }
    }
}

/// A component of a deployment in an environment.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "ComponentInstance")]
pub(crate) struct ComponentInstanceNode {
    id: ID,
    deployment_id: String,
    environment: String,
    rehearsal: bool,
    stack: String,
    component: String,
    /// The version that it stays with; absent for a program of the workspace.
    version: Option<i32>,
    /// `pending`, `deploying`, `deployed`, `failed`, `destroying`, `destroyed` or `upgrading`.
    status: String,
    deployed_at: Option<GraphTime>,
    error: Option<String>,
    /// The name of its stack.
    pulumi_stack_name: String,
    /// What it was deployed with; secrets are marks.
    resolved_parameters: AnyJson,
    /// The run that upgrades it, while that is to come or under way.
    upgrade_run_id: Option<ID>,
    /// The version that it goes back to when that run comes to nothing.
    upgrade_from: Option<i32>,
    updated_at: GraphTime,
}

impl From<DeployedComponent> for ComponentInstanceNode {
    fn from(row: DeployedComponent) -> Self {
        Self {
            id: row.id.to_string().into(),
            deployment_id: row.deployment,
            environment: row.environment,
            rehearsal: row.rehearsal,
            stack: row.stack,
            component: row.component,
            version: row.component_version,
            status: row.status,
            deployed_at: maybe_time(row.deployed_at),
            error: row.error_message,
            pulumi_stack_name: row.pulumi_stack_name,
            resolved_parameters: Json(row.resolved_parameters),
            upgrade_run_id: row.upgrade_run.map(|run| run.to_string().into()),
            upgrade_from: row.upgrade_from,
            updated_at: row.updated_at.into(),
        }
    }
}

/// A rule that holds for a tenant.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "GovernanceRule")]
pub(crate) struct RuleNode {
    id: ID,
    /// A component's name, or `*` for all that have no rule of their own at that tenant.
    component: String,
    allowed: bool,
    /// Limits of parameters, a JSON Schema and expressions.
    constraints: AnyJson,
    /// Of the tenant and everything below it; any number when absent.
    max_instances: Option<i32>,
    reason: String,
    /// The tenant that it is set for.
    tenant_id: ID,
    tenant_name: String,
    /// Whether it comes from further up.
    inherited: bool,
    set_by: String,
    set_at: GraphTime,
}

impl RuleNode {
    pub(crate) fn new(tenant: TenantId, row: StoredRule) -> Self {
        Self {
            id: row.id.to_string().into(),
            component: row.component,
            allowed: row.is_allowed,
            constraints: Json(row.parameter_constraints),
            max_instances: row.max_instances,
            reason: row.reason,
            inherited: is_others(row.owner, tenant),
            tenant_id: row.owner.to_string().into(),
            tenant_name: row.owner_name,
            set_by: row.set_by_name,
            set_at: row.set_at.into(),
        }
    }
}

/// A cloud.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Cloud")]
pub(crate) struct CloudNode {
    pub(crate) name: String,
    pub(crate) display_name: String,
}

impl From<SemanticCloud> for CloudNode {
    fn from(row: SemanticCloud) -> Self {
        Self {
            name: row.name,
            display_name: row.display_name,
        }
    }
}

/// What a thing is, whatever a cloud calls it.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "SemanticType")]
pub(crate) struct SemanticTypeNode {
    name: String,
    aliases: Vec<String>,
    category: String,
    description: String,
}

impl From<SemanticType> for SemanticTypeNode {
    fn from(row: SemanticType) -> Self {
        Self {
            name: row.name,
            aliases: row.aliases,
            category: row.category,
            description: row.description,
        }
    }
}

/// What a type is in a cloud.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "SemanticMapping")]
pub(crate) struct SemanticMappingNode {
    semantic_type: String,
    provider: String,
    /// As the cloud calls it; none where it has nothing of the kind.
    names: Vec<String>,
    /// Types of Pulumi resources that are one.
    resources: Vec<String>,
    note: String,
}

impl From<SemanticMapping> for SemanticMappingNode {
    fn from(row: SemanticMapping) -> Self {
        Self {
            semantic_type: row.resource_type,
            provider: row.provider,
            names: row.names,
            resources: row.resources,
            note: row.note,
        }
    }
}
