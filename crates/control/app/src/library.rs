//! Templates and programs of a tenant: the shipped library, and what the tenant puts over it.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_catalog::to_template;
use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{ComponentFilter, ListPage, StoreError, StoredVersion, TenantTx};
use nimbus_core::{ComponentName, Error, ErrorCode, TenantId};
use nimbus_document::Document;
use nimbus_orchestrator::{ComponentTemplate, ManifestTemplate, TemplateLibrary};
use serde_json::{Value, json};

use crate::app::{App, EVERY_ENVIRONMENT};
use crate::call::Call;
use crate::component_rows::contract_of;
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};
use crate::kept_paths::{check_beside, check_path};
use crate::versions::is_own;

pub(crate) const STACK_TEMPLATES: &str = "tools/templates/config/";
pub(crate) const SHIPPED: &str = "tools/templates/default/";
pub(crate) const CUSTOM: &str = "tools/templates/custom/";

/// One program may have so many files.
const MOST_FILES: usize = 500;
/// Components of the catalog that are read at once.
const CATALOG_PAGE: u32 = 100;

/// A registered program.
#[derive(Clone, Debug)]
pub struct StackEntry {
    pub name: String,
    pub description: Option<String>,
    pub dependencies: Vec<String>,
    /// Whether the tenant has files of its own for it.
    pub custom: bool,
    /// The template, as it is written.
    pub template: Option<String>,
}

/// A template for deployments.
#[derive(Clone, Debug)]
pub struct TemplateEntry {
    pub name: String,
    pub description: Option<String>,
    pub custom: bool,
    /// As it is written.
    pub content: Option<String>,
}

/// Every template file of a tenant, by path.
type Files = BTreeMap<String, Vec<u8>>;

impl App {
    /// Templates as a deployment of the tenant would see them.
    pub(crate) async fn library_in(&self, tx: &mut TenantTx) -> Result<TemplateLibrary> {
        let files = template_files(tx).await?;
        let mut library = TemplateLibrary::default();
        for (path, content) in &files {
            let document = Document::parse_bytes(path, content)?;
            if path.starts_with(STACK_TEMPLATES) {
                let template = ComponentTemplate::read(&document)?;
                library.stacks.insert(template.name.clone(), template);
            } else {
                let template = ManifestTemplate::read(&document)?;
                library.manifests.insert(template.name.clone(), template);
            }
        }
        self.add_catalog(tx, &mut library).await?;
        Ok(library)
    }

    /// Components of the catalog are stacks too, in their newest version. Programs of the tenant's own stand before
    /// them.
    async fn add_catalog(&self, tx: &mut TenantTx, library: &mut TemplateLibrary) -> Result<()> {
        let own = own_paths(tx).await?;
        let mut page = ListPage {
            after: None,
            limit: CATALOG_PAGE,
        };
        loop {
            let listed = tx
                .component_list(&ComponentFilter::default(), &page)
                .await?;
            for one in listed.iter().filter(|one| one.version > 0) {
                let name = one.name.parse::<ComponentName>();
                let name =
                    name.map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
                if is_own(&own, &name) {
                    continue;
                }
                let Some(version) = tx.version_newest(&one.name).await? else {
                    continue;
                };
                library
                    .stacks
                    .insert(name.clone(), catalog_template(&name, &version)?);
            }
            match listed.last() {
                Some(last) if listed.len() >= CATALOG_PAGE as usize => {
                    page.after = Some(last.name.clone());
                }
                _ => return Ok(()),
            }
        }
    }

    pub async fn stack_list(
        &self,
        call: &Call,
        tenant: TenantId,
        page: ListPage<String>,
    ) -> Result<Vec<StackEntry>> {
        let permit = self.permit(call, operation::LIST_STACKS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let own = own_paths(tx).await?;
                let library = self.library_in(tx).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                let after = page.after.unwrap_or_default();
                let entries = library
                    .stacks
                    .values()
                    .filter(|one| one.name.as_str() > &*after);
                let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
                Ok(entries
                    .take(limit)
                    .map(|one| stack_entry(one, &own))
                    .collect())
            })
            .await
    }

    pub async fn stack_get(&self, call: &Call, tenant: TenantId, name: &str) -> Result<StackEntry> {
        let permit = self.permit(call, operation::GET_STACK, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let own = own_paths(tx).await?;
                let files = template_files(tx).await?;
                let path = format!("{STACK_TEMPLATES}{name}.yaml");
                let content = files.get(&path).ok_or_else(Failure::not_found)?;
                let template = ComponentTemplate::read(&Document::parse_bytes(&path, content)?)?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                let mut entry = stack_entry(&template, &own);
                entry.template = Some(String::from_utf8_lossy(content).into_owned());
                Ok(entry)
            })
            .await
    }

    /// Registers a program, or replaces it: its template and, by path below its folder, its files.
    pub async fn stack_put(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        name: &str,
        template: String,
        files: BTreeMap<String, String>,
    ) -> Result<StackEntry> {
        let permit = self.permit(call, operation, tenant).await?;
        // A program is the same in every environment that it is deployed to.
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        let name = name.parse::<ComponentName>();
        let name = name.map_err(|error| Failure::field("name", error.to_string()))?;
        let path = format!("{STACK_TEMPLATES}{name}.yaml");
        let read = read_tenant_template(&Document::parse_bytes(&path, template.as_bytes())?)?;
        if read.name != name {
            return Err(Failure::field("template", "its name is another one"));
        }
        if files.len() > MOST_FILES {
            return Err(Failure::field(
                "files",
                format!("there are more than {MOST_FILES}"),
            ));
        }
        for file in files.keys() {
            check_path(file)?;
        }
        check_beside(files.keys().map(String::as_str))?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let own = own_paths(tx).await?;
                let exists = own.contains(&path);
                if operation.id == operation::REGISTER_STACK.id && exists {
                    return Err(StoreError::Exists(format!("the stack {name}")).into());
                }
                if operation.id == operation::UPDATE_STACK.id && !exists {
                    return Err(Failure::not_found());
                }
                if !files.is_empty() {
                    tx.workspace_remove(&format!("stacks/{name}/")).await?;
                }
                tx.workspace_put(&path, template.as_bytes()).await?;
                for (file, content) in &files {
                    tx.workspace_put(&format!("stacks/{name}/{file}"), content.as_bytes())
                        .await?;
                }
                let record = permit
                    .record()
                    .on(&name)
                    .after(json!({"files": files.keys().collect::<Vec<_>>()}));
                self.audit(tx, &call.context, record).await?;
                let mut entry = stack_entry(&read, &own);
                entry.custom = true;
                Ok(entry)
            })
            .await
    }

    /// Takes the tenant's own program away. What is shipped stays.
    pub async fn stack_remove(&self, call: &Call, tenant: TenantId, name: &str) -> Result<()> {
        let permit = self
            .permit(call, operation::UNREGISTER_STACK, tenant)
            .await?;
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        let name: ComponentName = name.parse().map_err(|_| Failure::not_found())?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let path = format!("{STACK_TEMPLATES}{name}.yaml");
                refuse_in_use(tx, &name).await?;
                if tx.workspace_remove(&path).await? == 0 {
                    return Err(protected(&path));
                }
                tx.workspace_remove(&format!("stacks/{name}/")).await?;
                self.audit(tx, &call.context, permit.record().on(&name))
                    .await?;
                Ok(())
            })
            .await
    }

    pub async fn template_list(
        &self,
        call: &Call,
        tenant: TenantId,
        page: ListPage<String>,
    ) -> Result<Vec<TemplateEntry>> {
        let permit = self.permit(call, operation::LIST_TEMPLATES, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let own = own_paths(tx).await?;
                let library = self.library_in(tx).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                let after = page.after.unwrap_or_default();
                let entries = library.manifests.values().filter(|one| one.name > after);
                let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
                Ok(entries
                    .take(limit)
                    .map(|one| template_entry(one, &own))
                    .collect())
            })
            .await
    }

    pub async fn template_get(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
    ) -> Result<TemplateEntry> {
        let permit = self.permit(call, operation::GET_TEMPLATE, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let own = own_paths(tx).await?;
                let files = template_files(tx).await?;
                let found = [CUSTOM, SHIPPED].into_iter().find_map(|folder| {
                    let path = format!("{folder}{name}.yaml");
                    files.get(&path).map(|content| (path, content))
                });
                let (path, content) = found.ok_or_else(Failure::not_found)?;
                let template = ManifestTemplate::read(&Document::parse_bytes(&path, content)?)?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                let mut entry = template_entry(&template, &own);
                entry.content = Some(String::from_utf8_lossy(content).into_owned());
                Ok(entry)
            })
            .await
    }

    pub async fn template_create(
        &self,
        call: &Call,
        tenant: TenantId,
        content: String,
    ) -> Result<TemplateEntry> {
        let permit = self
            .permit(call, operation::CREATE_TEMPLATE, tenant)
            .await?;
        let document = Document::parse_bytes("template.yaml", content.as_bytes())?;
        let template = ManifestTemplate::read(&document)?;
        let file = format!("{}.yaml", template.name);
        check_path(&file)?;
        if shipped(&format!("{SHIPPED}{file}")) {
            return Err(StoreError::Exists(format!("the template {}", template.name)).into());
        }
        let path = format!("{CUSTOM}{file}");
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let mut own = own_paths(tx).await?;
                if !own.insert(path.clone()) {
                    return Err(
                        StoreError::Exists(format!("the template {}", template.name)).into(),
                    );
                }
                tx.workspace_put(&path, content.as_bytes()).await?;
                self.audit(tx, &call.context, permit.record().on(&template.name))
                    .await?;
                Ok(template_entry(&template, &own))
            })
            .await
    }

    /// Removes a template of the tenant's own.
    pub async fn template_delete(&self, call: &Call, tenant: TenantId, name: &str) -> Result<()> {
        let permit = self
            .permit(call, operation::DELETE_TEMPLATE, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let file = format!("{name}.yaml");
                if check_path(&file).is_err()
                    || tx.workspace_remove(&format!("{CUSTOM}{file}")).await? == 0
                {
                    return Err(protected(&format!("{SHIPPED}{file}")));
                }
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                Ok(())
            })
            .await
    }
}

/// The stack template of somebody who has a program on this server, below `stacks/` and nowhere else.
pub(crate) fn read_tenant_template(document: &Document) -> Result<ComponentTemplate> {
    let template = ComponentTemplate::read(document)?;
    if template.source.is_some() {
        let source = document.view().required("source")?;
        let message = "a server has no program of yours but the one below stacks/";
        return Err(source
            .error(message, "take `source` out and push the program's files")
            .into());
    }
    Ok(template)
}

/// The stack template of a version.
fn catalog_template(name: &ComponentName, version: &StoredVersion) -> Result<ComponentTemplate> {
    let contract = contract_of(version)?;
    let settings = version.settings.as_object().cloned().unwrap_or_default();
    let template = to_template(name, &version.description, &contract, &settings);
    let text = Value::Object(template).to_string();
    let path = format!("{STACK_TEMPLATES}{name}.yaml");
    Ok(ComponentTemplate::read(&Document::parse_bytes(
        &path,
        text.as_bytes(),
    )?)?)
}

/// What is shipped cannot be taken away; anything else was never there.
fn protected(path: &str) -> Failure {
    if shipped(path) {
        let message = "this is shipped with Nimbus and cannot be removed";
        Failure::new(ErrorCode::NOT_PERMITTED, message)
    } else {
        Failure::not_found()
    }
}

pub(crate) fn shipped(path: &str) -> bool {
    nimbus_library::files()
        .iter()
        .any(|(name, _)| *name == path)
}

pub(crate) async fn own_paths(tx: &mut TenantTx) -> Result<BTreeSet<String>> {
    let index = tx.workspace_index().await?;
    Ok(index.into_iter().map(|file| file.path).collect())
}

/// Shipped templates, and the tenant's own over them.
async fn template_files(tx: &mut TenantTx) -> Result<Files> {
    let is_template = |path: &str| {
        let folder = [STACK_TEMPLATES, SHIPPED, CUSTOM]
            .into_iter()
            .find_map(|folder| path.strip_prefix(folder));
        folder.is_some_and(|file| file.ends_with(".yaml") && !file.contains('/'))
    };
    let mut files: Files = nimbus_library::files()
        .iter()
        .filter(|(path, _)| is_template(path))
        .map(|(path, content)| ((*path).to_owned(), content.to_vec()))
        .collect();
    for path in own_paths(tx).await? {
        if is_template(&path)
            && let Some(content) = tx.workspace_content(&path).await?
        {
            files.insert(path, content);
        }
    }
    Ok(files)
}

fn stack_entry(template: &ComponentTemplate, own: &BTreeSet<String>) -> StackEntry {
    let name = template.name.to_string();
    StackEntry {
        description: Some(template.description.clone()).filter(|text| !text.is_empty()),
        dependencies: template
            .dependencies
            .iter()
            .map(ToString::to_string)
            .collect(),
        custom: own.contains(&format!("{STACK_TEMPLATES}{name}.yaml")),
        template: None,
        name,
    }
}

fn template_entry(template: &ManifestTemplate, own: &BTreeSet<String>) -> TemplateEntry {
    TemplateEntry {
        description: Some(template.description.clone()).filter(|text| !text.is_empty()),
        custom: own.contains(&format!("{CUSTOM}{}.yaml", template.name)),
        content: None,
        name: template.name.clone(),
    }
}

/// A stack of a run that waits or is under way stays until the run is over.
pub(crate) async fn refuse_in_use(tx: &mut TenantTx, stack: &ComponentName) -> Result<()> {
    for id in tx.deployments_with_runs().await? {
        let stored = tx.deployment_get(&id).await?;
        // One that cannot be read may have it.
        let uses = read_manifest(&stored.manifest)
            .map_or(true, |manifest| manifest.stacks.contains_key(stack));
        if uses {
            let message =
                format!("a run of {id} waits or is under way, and {stack} is one of its stacks");
            return Err(Error::new(ErrorCode::DEPLOYMENT_BUSY, message)
                .with_help("wait for it, or cancel it")
                .into());
        }
    }
    Ok(())
}
