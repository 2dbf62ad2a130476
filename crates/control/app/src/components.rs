//! Components: drafts, versions and who uses them.
//!
//! Components of the operator's own tenant are everybody's once they are published; a tenant has its own beside them.
//! A draft is checked whenever it is saved, so what is published was read, understood and compared with its contract.

use std::sync::Arc;

use nimbus_catalog::{
    ComponentDefinition, ContractChanges, ProgramLanguage, SurfaceReader, UpgradeWorkflow,
    VersionStep, compare, compare_claims, compare_files, next_version,
};
use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{
    ComponentFilter, ListPage, NewVersion, StoreError, StoredComponent, StoredVersion, TenantTx,
};
use nimbus_core::{ComponentName, Error, ErrorCode, TenantId};
use serde_json::{Value, json};

use crate::app::{App, EVERY_ENVIRONMENT, Permit};
use crate::call::Call;
use crate::component_rows::{
    ComponentInput, ComponentView, PublishInput, PublishedVersion, VersionDifference, bound,
    complete, contract_of, digest_of, files_of, one_version, protected, readable, seen, versions,
    written,
};
use crate::failure::{Failure, FieldProblem, Result};
use crate::input;

/// How long somebody should wait when too many programs are being read.
const READING_PAUSE_SECONDS: u64 = 10;
/// Publishing for every tenant needs this beside what the operation needs.
const PUBLISH_FOR_ALL: &str = "component:definition:publish";

impl App {
    /// From now on programs are read with this. The first one stays.
    pub fn read_programs_with(&self, reader: Arc<dyn SurfaceReader>) {
        // An error is a server that has one already.
        let _ = self.inner.surfaces.set(reader);
    }

    pub async fn component_list(
        &self,
        call: &Call,
        tenant: TenantId,
        filter: ComponentFilter,
        page: ListPage<String>,
    ) -> Result<Vec<StoredComponent>> {
        let operation = operation::LIST_COMPONENTS;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.component_list(&filter, &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn component_get(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
    ) -> Result<ComponentView> {
        let operation = operation::GET_COMPONENT;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let view = seen(tx, name).await?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                Ok(view)
            })
            .await
    }

    /// Makes a draft, or replaces it if it is still the one of `revision`.
    pub async fn component_put(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        name: &str,
        input: ComponentInput,
        revision: Option<i64>,
    ) -> Result<StoredComponent> {
        let permit = self.permit(call, operation, tenant).await?;
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        let operators = is_operators(&permit);
        if input.system && !operators {
            return Err(operator_only(
                "only the operator has components of the platform",
            ));
        }
        let system = input.system;
        let definition = self.checked(name, input).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let draft = bound(tx, &definition).await?;
                let name = definition.name.as_str();
                let known = match operation.id == operation::CREATE_COMPONENT.id {
                    true => None,
                    false => Some(tx.component_lock(name).await?),
                };
                let stored = match &known {
                    None => tx.component_create(name, &draft, call.who.user).await?,
                    Some(known) => {
                        if known.is_system && !system {
                            return Err(protected(name));
                        }
                        if revision.is_some_and(|revision| revision != known.revision) {
                            return Err(StoreError::Stale("the component").into());
                        }
                        tx.component_write(known.id, &draft, call.who.user).await?
                    }
                };
                if system {
                    tx.component_mark_system(stored.id).await?;
                }
                let record = permit
                    .record()
                    .on(name)
                    .before(known.map_or(Value::Null, |one| json!({"revision": one.revision})))
                    .after(json!({
                        "revision": stored.revision,
                        "provider": stored.provider,
                        "semantic_type": stored.semantic_type,
                        "files": definition.files.keys().collect::<Vec<_>>(),
                    }));
                self.audit(tx, &call.context, record).await?;
                Ok(stored)
            })
            .await
    }

    /// Takes a component out of the catalog. Instances go on with their versions.
    pub async fn component_delete(&self, call: &Call, tenant: TenantId, name: &str) -> Result<()> {
        let operation = operation::DELETE_COMPONENT;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let known = tx.component_lock(name).await?;
                if known.is_system && !is_operators(&permit) {
                    return Err(protected(name));
                }
                tx.component_delete(known.id).await?;
                let record = permit
                    .record()
                    .on(name)
                    .before(json!({"version": known.version}));
                self.audit(tx, &call.context, record).await?;
                Ok(())
            })
            .await
    }

    /// Makes a version of the draft. It stays as it is from then on.
    pub async fn component_publish(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        input: PublishInput,
    ) -> Result<PublishedVersion> {
        let operation = operation::PUBLISH_COMPONENT;
        let permit = self.permit(call, operation, tenant).await?;
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        if is_operators(&permit) && !self.has(call, PUBLISH_FOR_ALL, &permit.resource) {
            let message = format!("for every tenant this needs the permission {PUBLISH_FOR_ALL}");
            return Err(Failure::new(ErrorCode::NOT_PERMITTED, message));
        }
        let changelog = input::text("changelog", &input.changelog, 10_000)?;
        if changelog.trim().is_empty() {
            return Err(Failure::field("changelog", "say what changed"));
        }
        let workflow = input
            .upgrade_workflow
            .as_deref()
            .map(str::parse::<UpgradeWorkflow>);
        let workflow = workflow
            .transpose()
            .map_err(|words| Failure::field("upgrade_workflow", words))?;
        let draft = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| tx.component_find(name).await)
            .await?
            .ok_or_else(Failure::not_found)?;
        // What was true when it was saved need not be true for this server's reader.
        let definition = self.checked(name, written(&draft)?).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let locked = tx.component_lock(name).await?;
                if locked.revision != draft.revision {
                    return Err(StoreError::Stale("the component").into());
                }
                let before = match locked.version {
                    0 => None,
                    version => tx.version_of(locked.tenant_id, name, version).await?,
                };
                let digest = digest_of(&definition);
                if let Some(before) = before.as_ref().filter(|one| one.digest == digest) {
                    self.audit(tx, &call.context, permit.record().on(name))
                        .await?;
                    return Ok(PublishedVersion {
                        version: before.clone(),
                        created: false,
                    });
                }
                let changes = match &before {
                    None => ContractChanges::default(),
                    Some(before) => compare(&contract_of(before)?, &definition.contract),
                };
                if changes.is_breaking() && !input.allow_breaking {
                    self.refuse_breaking(tx, &definition, &changes).await?;
                }
                if input.upgrade_workflow.is_some() && before.is_none() {
                    let words = "a first version has none before it to be upgraded from";
                    return Err(Failure::field("upgrade_workflow", words));
                }
                let step = VersionStep::of(&changes);
                let before_version = before.as_ref().map(|one| one.semantic_version.as_str());
                let new = NewVersion {
                    version: locked.version + 1,
                    semantic_version: next_version(before_version, step),
                    digest,
                    changelog,
                    changes: json!(changes.changes),
                    published_by: call.who.user,
                    upgrade_workflow: workflow.map(|one| one.to_string()),
                };
                let version = tx.version_publish(locked.id, &new).await?;
                let record = permit.record().on(name).after(json!({
                    "version": version.version,
                    "semantic_version": version.semantic_version,
                    "breaking": changes.is_breaking(),
                }));
                self.audit(tx, &call.context, record).await?;
                Ok(PublishedVersion {
                    version,
                    created: true,
                })
            })
            .await
    }

    /// Says of a version that it should not be used any more; without a reason, that it may be again.
    pub async fn version_deprecate(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        version: i32,
        why: Option<String>,
    ) -> Result<StoredVersion> {
        let operation = operation::DEPRECATE_COMPONENT;
        let permit = self.permit(call, operation, tenant).await?;
        let why = why
            .map(|text| input::text("reason", &text, 1000))
            .transpose()?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let known = tx.component_lock(name).await?;
                tx.version_deprecate(known.id, version, why.as_deref())
                    .await?;
                let changed = tx.version_of(known.tenant_id, name, version).await?;
                let record = permit
                    .record()
                    .on(name)
                    .after(json!({"version": version, "reason": why}));
                self.audit(tx, &call.context, record).await?;
                changed.ok_or_else(Failure::not_found)
            })
            .await
    }

    /// Versions, newest first.
    pub async fn version_list(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        page: ListPage<i32>,
    ) -> Result<Vec<StoredVersion>> {
        let operation = operation::LIST_COMPONENT_VERSIONS;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let view = seen(tx, name).await?;
                let versions = versions(tx, &view, &page).await?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                Ok(versions)
            })
            .await
    }

    pub async fn version_get(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        version: i32,
    ) -> Result<StoredVersion> {
        let operation = operation::GET_COMPONENT_VERSION;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = one_version(tx, name, version).await?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                Ok(found)
            })
            .await
    }

    /// What is different in version `to` since version `from`.
    pub async fn version_difference(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        from: i32,
        to: i32,
    ) -> Result<VersionDifference> {
        let operation = operation::COMPARE_COMPONENT_VERSIONS;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let old = one_version(tx, name, from).await?;
                let new = one_version(tx, name, to).await?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                Ok(VersionDifference {
                    from,
                    to,
                    contract: compare(&contract_of(&old)?, &contract_of(&new)?),
                    files: compare_files(&files_of(&old.code), &files_of(&new.code)),
                })
            })
            .await
    }

    /// A definition that can be used, or everything that is wrong with it.
    async fn checked(&self, name: &str, input: ComponentInput) -> Result<ComponentDefinition> {
        let name = name
            .parse::<ComponentName>()
            .map_err(|error| Failure::field("name", error.to_string()))?;
        let language = input
            .language
            .parse::<ProgramLanguage>()
            .map_err(|words| Failure::field("language", words))?;
        let display_name = match input.display_name.trim() {
            "" => name.to_string(),
            text => input::name("display_name", text, 200)?,
        };
        let definition = ComponentDefinition {
            description: input::text("description", &input.description, 2000)?,
            display_name,
            cloud: input.provider,
            semantic_type: input.semantic_type,
            language,
            contract: input.contract,
            settings: input.settings,
            files: complete(&name, language, input.files)?,
            name,
        };
        let mut problems: Vec<FieldProblem> = definition
            .contract
            .problems()
            .into_iter()
            .chain(definition.setting_problems())
            .map(|problem| FieldProblem {
                field: problem.place.into(),
                message: problem.message,
            })
            .collect();
        if problems.is_empty() {
            readable(&definition)?;
            problems = self.read_program(definition.clone()).await?;
        }
        if problems.is_empty() {
            return Ok(definition);
        }
        let words: Vec<String> = problems
            .iter()
            .map(|one| format!("{}: {}", one.field, one.message))
            .collect();
        let name = &definition.name;
        let message = format!("the component {name} cannot be used: {}", words.join("; "));
        Err(Failure {
            details: problems,
            ..Failure::new(ErrorCode::COMPONENT_INVALID, message)
        })
    }

    /// What is wrong with the program, and between it and the contract. Off the threads that serve requests: parsing is
    /// work, and programs are strangers'.
    async fn read_program(&self, definition: ComponentDefinition) -> Result<Vec<FieldProblem>> {
        let Some(reader) = self.inner.surfaces.get().cloned() else {
            let message = "no reader of programs was given to this server";
            return Err(Failure::new(ErrorCode::PROGRAMS_UNREADABLE, message));
        };
        // Whoever went away leaves the work behind, so the work holds its place and not the request.
        let Ok(waiting) = Arc::clone(&self.inner.reading_queue).try_acquire_owned() else {
            return Err(Failure::wait(READING_PAUSE_SECONDS));
        };
        let gone = || Failure::new(ErrorCode::INTERNAL, "reading the program ended by itself");
        let turn = Arc::clone(&self.inner.readings).acquire_owned().await;
        let turn = turn.map_err(|_| gone())?;
        let read = tokio::task::spawn_blocking(move || {
            let _place = (turn, waiting);
            let surface = reader.read(definition.language, &definition.files);
            surface.map(|surface| compare_claims(&definition.contract, &surface))
        });
        let read = read.await.map_err(|_| gone())?;
        Ok(match read {
            Ok(claims) => claims
                .into_iter()
                .map(|claim| FieldProblem {
                    field: "contract".into(),
                    message: claim.to_string(),
                })
                .collect(),
            Err(problems) => problems
                .into_iter()
                .map(|problem| FieldProblem {
                    field: format!("files.{}", problem.file).into(),
                    message: problem.to_string(),
                })
                .collect(),
        })
    }

    /// Refuses a version that somebody who uses the component could not take as they are, and names them all.
    async fn refuse_breaking(
        &self,
        tx: &mut TenantTx,
        definition: &ComponentDefinition,
        changes: &ContractChanges,
    ) -> Result<()> {
        let users = tx.component_users(definition.name.as_str()).await?;
        let broken: Vec<FieldProblem> = users
            .iter()
            .filter_map(|user| crate::wiring::broken_user(user, definition, changes))
            .collect();
        if broken.is_empty() {
            return Ok(());
        }
        let name = &definition.name;
        let reasons: Vec<String> = changes.breaking().map(ToString::to_string).collect();
        let message = format!(
            "a new version of {name} would break {} of those who use it ({})",
            broken.len(),
            reasons.join("; ")
        );
        let error = Error::new(ErrorCode::CONTRACT_BREAKS, message).with_help(
            "keep what they use, or publish with allow_breaking: they stay with their version until they are upgraded",
        );
        Err(Failure {
            details: broken,
            ..error.into()
        })
    }
}

/// Whether the tenant is the operator's own.
pub(crate) fn is_operators(permit: &Permit) -> bool {
    permit.resource.path.len() == 1
}

pub(crate) fn operator_only(message: &str) -> Failure {
    Error::new(ErrorCode::OPERATOR_ONLY, message)
        .with_help("ask whoever runs the installation")
        .into()
}
