//! Components as rows and as definitions: what is read of a draft or a version, and what becomes of one that was written.

use std::collections::BTreeMap;

use nimbus_catalog::{
    ComponentContract, ComponentDefinition, ContractChanges, FileDifference, ProgramLanguage,
};
use nimbus_control_store::{DraftContent, ListPage, StoredComponent, StoredVersion, TenantTx};
use nimbus_core::{ComponentName, Error, ErrorCode};
use nimbus_document::Document;
use nimbus_orchestrator::schema::ordered;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::failure::{Failure, Result};
use crate::kept_paths::{check_beside, check_path};
use crate::library::read_tenant_template;

/// One program may have so many files.
const MOST_FILES: usize = 500;
/// All of them together.
const MOST_CODE_BYTES: usize = 900 * 1024;

/// A component as somebody wrote it.
#[derive(Clone, Debug)]
pub struct ComponentInput {
    pub display_name: String,
    pub description: String,
    pub provider: String,
    pub semantic_type: String,
    pub language: String,
    pub contract: ComponentContract,
    pub settings: Map<String, Value>,
    pub files: BTreeMap<String, String>,
    /// Whether it belongs to the platform, so that nobody edits it by mistake.
    pub system: bool,
}

/// How a draft is published.
#[derive(Clone, Debug)]
pub struct PublishInput {
    pub changelog: String,
    /// Also when somebody who uses it could not take the new version as they are.
    pub allow_breaking: bool,
    /// How instances get over it, where it breaks the contract of the one before.
    pub upgrade_workflow: Option<String>,
}

/// A component with the newest version that there is of it.
#[derive(Clone, Debug)]
pub struct ComponentView {
    pub component: StoredComponent,
    /// Whether it is the operator's, for everybody.
    pub shared: bool,
    pub newest: Option<StoredVersion>,
}

/// A version, and whether it was made just now: what is published already is not published again.
#[derive(Clone, Debug)]
pub struct PublishedVersion {
    pub version: StoredVersion,
    pub created: bool,
}

/// What is different between two versions.
#[derive(Clone, Debug)]
pub struct VersionDifference {
    pub from: i32,
    pub to: i32,
    pub contract: ContractChanges,
    pub files: Vec<FileDifference>,
}

/// The tenant's own component, or else the operator's.
pub(crate) async fn seen(tx: &mut TenantTx, name: &str) -> Result<ComponentView> {
    let own = tx.component_find(name).await?;
    let (component, shared) = match own {
        Some(own) => (own, false),
        None => {
            let shared = tx.component_shared(name).await?;
            (shared.ok_or_else(Failure::not_found)?, true)
        }
    };
    let newest = match component.version {
        0 => None,
        version => tx.version_of(component.tenant_id, name, version).await?,
    };
    Ok(ComponentView {
        component,
        shared,
        newest,
    })
}

pub(crate) async fn versions(
    tx: &mut TenantTx,
    view: &ComponentView,
    page: &ListPage<i32>,
) -> Result<Vec<StoredVersion>> {
    let of = &view.component;
    Ok(match view.shared {
        true => tx.versions_shared(of.id, &of.name, page).await?,
        false => tx.versions_own(of.id, page).await?,
    })
}

pub(crate) async fn one_version(
    tx: &mut TenantTx,
    name: &str,
    version: i32,
) -> Result<StoredVersion> {
    let view = seen(tx, name).await?;
    let page = ListPage {
        after: Some(version.saturating_add(1)),
        limit: 1,
    };
    let found = versions(tx, &view, &page).await?.into_iter().next();
    found
        .filter(|one| one.version == version)
        .ok_or_else(Failure::not_found)
}

/// The draft's rows, bound to a cloud and a type that there are.
pub(crate) async fn bound(
    tx: &mut TenantTx,
    definition: &ComponentDefinition,
) -> Result<DraftContent> {
    let clouds = tx.semantic_clouds().await?;
    if !clouds.iter().any(|cloud| cloud.name == definition.cloud) {
        let known: Vec<_> = clouds.into_iter().map(|cloud| cloud.name).collect();
        let message = format!("give one of {}", known.join(", "));
        return Err(Failure::field("provider", message));
    }
    let semantic_type = tx.semantic_type_named(&definition.semantic_type).await?;
    let semantic_type = semantic_type.ok_or_else(|| {
        Failure::field(
            "semantic_type",
            "there is no such type; see /api/v1/semantic/types",
        )
    })?;
    let contract = &definition.contract;
    Ok(DraftContent {
        display_name: definition.display_name.clone(),
        description: definition.description.clone(),
        provider: definition.cloud.clone(),
        semantic_type,
        language: definition.language.to_string(),
        code: json!(definition.files),
        input_schema: contract.inputs.clone(),
        output_schema: contract.outputs.clone(),
        resolver_bindings: json!(contract.resolvers),
        settings: Value::Object(definition.settings.clone()),
    })
}

/// A draft as it was written.
pub(crate) fn written(draft: &StoredComponent) -> Result<ComponentInput> {
    Ok(ComponentInput {
        display_name: draft.display_name.clone(),
        description: draft.description.clone(),
        provider: draft.provider.clone(),
        semantic_type: draft.semantic_type.clone(),
        language: draft.language.clone(),
        contract: contract(
            &draft.input_schema,
            &draft.output_schema,
            &draft.resolver_bindings,
        )?,
        settings: draft.settings.as_object().cloned().unwrap_or_default(),
        files: files_of(&draft.code),
        system: draft.is_system,
    })
}

pub(crate) fn contract_of(version: &StoredVersion) -> Result<ComponentContract> {
    contract(
        &version.input_schema,
        &version.output_schema,
        &version.resolver_bindings,
    )
}

fn contract(inputs: &Value, outputs: &Value, resolvers: &Value) -> Result<ComponentContract> {
    let resolvers = serde_json::from_value(resolvers.clone())
        .map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
    Ok(ComponentContract {
        inputs: inputs.clone(),
        outputs: outputs.clone(),
        resolvers,
    })
}

pub(crate) fn files_of(code: &Value) -> BTreeMap<String, String> {
    let files = code.as_object().into_iter().flatten();
    files
        .filter_map(|(path, text)| Some((path.clone(), text.as_str()?.to_owned())))
        .collect()
}

/// Files with what Pulumi wants beside a program, if it is not there.
pub(crate) fn complete(
    name: &ComponentName,
    language: ProgramLanguage,
    mut files: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>> {
    if files.is_empty() || files.len() > MOST_FILES {
        return Err(Failure::field("files", format!("give 1 to {MOST_FILES}")));
    }
    for path in files.keys() {
        check_path(path)?;
        if !path.starts_with("src/") {
            let message = format!("`{path}` is not below src/, where the program is");
            return Err(Failure::field("files", message));
        }
    }
    check_beside(files.keys().map(String::as_str))?;
    if files.values().map(String::len).sum::<usize>() > MOST_CODE_BYTES {
        let message = format!("together they have more than {MOST_CODE_BYTES} bytes");
        return Err(Failure::field("files", message));
    }
    let runtime = match language {
        ProgramLanguage::TypeScript => "nodejs",
        ProgramLanguage::Python => "python",
    };
    files
        .entry("src/Pulumi.yaml".to_owned())
        .or_insert_with(|| format!("name: {name}\nruntime: {runtime}\n"));
    Ok(files)
}

/// Whether deployments can read the template that the component becomes.
pub(crate) fn readable(definition: &ComponentDefinition) -> Result<()> {
    let template = Value::Object(definition.template()).to_string();
    let path = format!("{}.yaml", definition.name);
    read_tenant_template(&Document::parse_bytes(&path, template.as_bytes())?)?;
    Ok(())
}

/// Over everything that a deployment is made from.
pub(crate) fn digest_of(definition: &ComponentDefinition) -> Vec<u8> {
    let whole = json!({
        "template": definition.template(),
        "resolvers": definition.contract.resolvers,
        "files": definition.files,
        "cloud": definition.cloud,
        "type": definition.semantic_type,
        "display_name": definition.display_name,
        "language": definition.language.as_str(),
    });
    Sha256::digest(ordered(whole).to_string()).to_vec()
}

pub(crate) fn protected(name: &str) -> Failure {
    Error::new(
        ErrorCode::COMPONENT_PROTECTED,
        format!("{name} belongs to the platform"),
    )
    .with_help("make a component of your own under another name")
    .into()
}
