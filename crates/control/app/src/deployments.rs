//! Deployments: made from a template, changed by their manifest, taken out of use.

use std::collections::BTreeMap;

use nimbus_control_auth::access::Resource;
use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_auth::role::SWITCH_ENVIRONMENT;
use nimbus_control_store::{
    DeploymentFilter, ListPage, NewDeployment, StoreError, StoredDeployment, Tenant, TenantFilter,
    TenantTx,
};
use nimbus_core::{DeploymentId, EnvironmentName, Error, ErrorCode, TenantId};
use nimbus_document::Document;
use nimbus_orchestrator::{FILE_NAME, InitAnswers, Manifest, edit, init_file, render};
use serde_json::{Value, json};

use crate::app::{App, Permit};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::gates::managed_changes;
use crate::input;
use crate::repeat::RequestKey;
use crate::runs_left::leave_something;

/// The largest manifest that is kept.
const MOST_MANIFEST_BYTES: usize = 512 * 1024;
/// So many seconds are tried for an id that nobody has.
const ID_ATTEMPTS: u64 = 120;

/// What a deployment is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentInput {
    pub id: Option<String>,
    pub organization: String,
    pub project: String,
    pub domain: String,
    pub template: Option<String>,
    pub description: Option<String>,
    /// Account of each environment.
    pub accounts: BTreeMap<String, String>,
    pub variables: BTreeMap<String, String>,
    /// Also stacks that the template leaves off.
    pub all_stacks: bool,
    /// A manifest that says all of this itself.
    pub manifest: Option<String>,
}

impl DeploymentInput {
    /// Whether anything besides a manifest was given.
    fn names_values(&self) -> bool {
        let rest = Self {
            manifest: None,
            ..self.clone()
        };
        rest != Self::default()
    }
}

impl App {
    /// The tenant that a request names by id or slug; the caller's own without one.
    pub async fn choose_tenant(&self, call: &Call, named: Option<&str>) -> Result<TenantId> {
        let Some(named) = named else {
            return Ok(call.who.home);
        };
        if let Ok(id) = named.parse() {
            return Ok(id);
        }
        // A slug has none, and a database takes none.
        if named.chars().any(char::is_control) {
            return Err(Failure::not_found());
        }
        let filter = TenantFilter {
            slug: Some(named.to_owned()),
            limit: 2,
            ..TenantFilter::default()
        };
        let found = self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| tx.tenant_list(&filter).await);
        match found.await?.as_slice() {
            [] => Err(Failure::not_found()),
            [tenant] => Ok(tenant.id),
            [one, other, ..] => Err(self.ambiguous(call, named, [one, other])),
        }
    }

    /// Which of two tenants of one name is meant nobody guesses. Whoever may not see both is not told of them.
    fn ambiguous(&self, call: &Call, named: &str, found: [&Tenant; 2]) -> Failure {
        let seen = |tenant: &Tenant| {
            Resource::in_tenant(&tenant.path, "tenants")
                .is_some_and(|resource| self.has(call, "tenant:definition:read", &resource))
        };
        if !found.iter().all(|tenant| seen(tenant)) {
            return Failure::not_found();
        }
        let [one, other] = found.map(|tenant| format!("{} ({})", tenant.id, tenant.name));
        let words = format!("several tenants are called `{named}`: {one} and {other}; give an id");
        Failure::field("tenant", words)
    }

    pub async fn deployment_list(
        &self,
        call: &Call,
        tenant: TenantId,
        filter: DeploymentFilter,
        page: ListPage<String>,
    ) -> Result<Vec<StoredDeployment>> {
        let permit = self
            .permit(call, operation::LIST_DEPLOYMENTS, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.deployment_list(&filter, &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn deployment_create(
        &self,
        call: &Call,
        tenant: TenantId,
        input: DeploymentInput,
        key: Option<RequestKey>,
    ) -> Result<StoredDeployment> {
        let operation = operation::CREATE_DEPLOYMENT;
        let permit = self.permit(call, operation, tenant).await?;
        let plan = match &input.manifest {
            Some(manifest) => Planned::Manifest(given_manifest(call, &input, manifest)?),
            None => Planned::Answers(Box::new(self.planned(call, &input).await?)),
        };
        let user = call.who.user;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                if let Some(earlier) = self.answered(tx, call, operation, key.as_ref()).await? {
                    let id = earlier["deployment"].as_str().unwrap_or_default();
                    return Ok(tx.deployment_get(id).await?);
                }
                let new = match plan {
                    Planned::Manifest(new) => new,
                    Planned::Answers(planned) => {
                        let (given, answers) = *planned;
                        let library = self.library_in(tx).await?;
                        let id = match given {
                            Some(id) => id,
                            None => free_id(tx, call).await?,
                        };
                        let rendered = render(&library, &id, &answers)?;
                        NewDeployment {
                            id: id.to_string(),
                            organization: answers.organization,
                            project: answers.project,
                            template: answers.template,
                            manifest: rendered.manifest.write(),
                            created_by: user,
                        }
                    }
                };
                let made = tx.deployment_create(&new).await?;
                let answer = json!({"deployment": made.id});
                self.keep_answer(tx, call, operation, key.as_ref(), &answer).await?;
                let record = permit.record().on(&made.id).after(
                    json!({"template": made.template, "organization": made.organization, "project": made.project}),
                );
                self.audit(tx, &call.context, record).await?;
                Ok(made)
            })
            .await
    }

    /// What a template is rendered with.
    async fn planned(
        &self,
        call: &Call,
        input: &DeploymentInput,
    ) -> Result<(Option<DeploymentId>, InitAnswers)> {
        let mut answers = answers(call, input)?;
        answers.user_email = self.address_of(call).await?;
        let given = input
            .id
            .as_deref()
            .map(str::parse::<DeploymentId>)
            .transpose();
        let given = given.map_err(|error| Failure::field("id", error.to_string()))?;
        Ok((given, answers))
    }

    /// The address of whoever calls, for templates that want somebody to write to. A service account has none.
    async fn address_of(&self, call: &Call) -> Result<String> {
        let user = call.who.user;
        let found = self.inner.store.tenant_tx(call.who.home, async |tx| {
            let found = tx.user_get(user).await?;
            Ok::<_, StoreError>(found.email)
        });
        let address = found.await?;
        Ok(if address.contains('@') {
            address
        } else {
            String::new()
        })
    }

    pub async fn deployment_get(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        id: &str,
    ) -> Result<StoredDeployment> {
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.deployment_get(id).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(found)
            })
            .await
    }

    /// Replaces the manifest, if it is still the one of `revision`.
    pub async fn deployment_write(
        &self,
        call: &Call,
        tenant: TenantId,
        id: &str,
        revision: Option<i64>,
        manifest: String,
    ) -> Result<StoredDeployment> {
        let operation = operation::UPDATE_DEPLOYMENT;
        let permit = self.permit(call, operation, tenant).await?;
        let parsed = read_manifest(&manifest)?;
        self.ensure_in_all(call, &permit, &parsed)?;
        if parsed.metadata.id.as_str() != id {
            return Err(Failure::field(
                "manifest",
                "it is the manifest of another deployment",
            ));
        }
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let before = tx.deployment_lock(id).await?;
                let was = read_manifest(&before.manifest)?;
                self.ensure_in_all(call, &permit, &was)?;
                keeps_its_names(&was, &parsed)?;
                self.ensure_manages(call, &permit, &was, &parsed)?;
                let revision = revision.unwrap_or(before.revision);
                let written = tx.deployment_write(id, revision, &manifest).await?;
                let record = permit
                    .record()
                    .on(id)
                    .before(json!({"revision": before.revision}))
                    .after(json!({"revision": written.revision}));
                self.audit(tx, &call.context, record).await?;
                Ok(written)
            })
            .await
    }

    /// Takes a deployment out of use. One that something is still deployed of is refused: destroy it first.
    pub async fn deployment_delete(&self, call: &Call, tenant: TenantId, id: &str) -> Result<()> {
        let operation = operation::DELETE_DEPLOYMENT;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let deployment = tx.deployment_lock(id).await?;
                if !tx.runs_open(id).await?.is_empty() {
                    return Err(busy(id));
                }
                let manifest = read_manifest(&deployment.manifest)?;
                self.ensure_in_all(call, &permit, &manifest)?;
                for environment in manifest.environments.keys() {
                    let runs = tx.runs_begun(id, environment.as_str(), false).await?;
                    if leave_something(&runs) {
                        let message = format!("{environment} of {id} is deployed");
                        return Err(Error::new(ErrorCode::DEPLOYMENT_BUSY, message)
                            .with_help("destroy it first")
                            .into());
                    }
                }
                tx.deployment_archive(id).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(())
            })
            .await
    }

    /// Switches an environment on or off: one word of the manifest.
    pub async fn environment_switch(
        &self,
        call: &Call,
        tenant: TenantId,
        id: &str,
        environment: &str,
        enabled: bool,
    ) -> Result<StoredDeployment> {
        let operation = if enabled {
            operation::ENABLE_ENVIRONMENT
        } else {
            operation::DISABLE_ENVIRONMENT
        };
        let permit = self
            .permit_in(call, operation, tenant, Some(environment))
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let deployment = tx.deployment_lock(id).await?;
                let document = parse(&deployment.manifest)?;
                let manifest = Manifest::read(&document)?;
                let name: EnvironmentName =
                    environment.parse().map_err(|_| Failure::not_found())?;
                if !manifest.environments.contains_key(&name) {
                    return Err(Failure::not_found());
                }
                let path = ["spec", "environments", name.as_str(), "enabled"];
                let text = edit::set(&document, &path, &Value::Bool(enabled))?;
                // What is kept can be read, whoever wrote it.
                read_manifest(&text)?;
                let written = tx.deployment_write(id, deployment.revision, &text).await?;
                let record = permit
                    .record()
                    .on(id)
                    .after(json!({"environment": name.as_str(), "enabled": enabled}));
                self.audit(tx, &call.context, record).await?;
                Ok(written)
            })
            .await
    }

    /// Whoever writes a manifest switches no environment that they may not switch by itself, and takes away no gate that
    /// they may not skip.
    fn ensure_manages(
        &self,
        call: &Call,
        permit: &Permit,
        was: &Manifest,
        wanted: &Manifest,
    ) -> Result<()> {
        for (name, change) in managed_changes(was, wanted) {
            let mut resource = permit.resource.clone();
            resource.environment = Some(name.to_string());
            if !self.has(call, SWITCH_ENVIRONMENT, &resource) {
                let message = format!(
                    "{change} of {name} needs the permission {SWITCH_ENVIRONMENT} in {name}"
                );
                return Err(Error::new(ErrorCode::NOT_PERMITTED, message)
                    .with_help("leave it as it is, or ask whoever administers the tenant")
                    .into());
            }
        }
        Ok(())
    }

    /// A manifest says what happens in each of its environments.
    fn ensure_in_all(&self, call: &Call, permit: &Permit, manifest: &Manifest) -> Result<()> {
        for environment in manifest.environments.keys() {
            self.ensure_in(call, permit, environment.as_str())?;
        }
        Ok(())
    }
}

/// What a deployment is going to be made from.
enum Planned {
    Manifest(NewDeployment),
    Answers(Box<(Option<DeploymentId>, InitAnswers)>),
}

/// A deployment whose manifest was made elsewhere.
fn given_manifest(call: &Call, input: &DeploymentInput, manifest: &str) -> Result<NewDeployment> {
    if input.names_values() {
        let words = "it says everything itself; give nothing else with it";
        return Err(Failure::field("manifest", words));
    }
    let metadata = read_manifest(manifest)?.metadata;
    Ok(NewDeployment {
        id: metadata.id.to_string(),
        organization: metadata.organization,
        project: metadata.project,
        template: metadata.template,
        manifest: manifest.to_owned(),
        created_by: call.who.user,
    })
}

fn answers(call: &Call, input: &DeploymentInput) -> Result<InitAnswers> {
    for (field, text) in [
        ("organization", &input.organization),
        ("project", &input.project),
    ] {
        if text.trim().is_empty() {
            return Err(Failure::field(field, "it is missing"));
        }
        if input::name(field, text, 100)? != **text || text.contains('/') {
            let words = "it has a `/`, or white space that nobody sees";
            return Err(Failure::field(field, words));
        }
    }
    let mut accounts = BTreeMap::new();
    for (name, account) in &input.accounts {
        let name = name
            .parse::<EnvironmentName>()
            .map_err(|_| Failure::field("accounts", "this is not the name of an environment"))?;
        accounts.insert(name, account.clone());
    }
    let answers = InitAnswers {
        organization: input.organization.clone(),
        project: input.project.clone(),
        domain: input.domain.clone(),
        template: input
            .template
            .clone()
            .unwrap_or_else(|| "default".to_owned()),
        description: input.description.clone(),
        accounts,
        variables: input.variables.clone(),
        all_stacks: input.all_stacks,
        timestamp: call.context.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        ..InitAnswers::default()
    };
    init_file::check(&answers)?;
    Ok(answers)
}

pub(crate) async fn free_id(tx: &mut TenantTx, call: &Call) -> Result<DeploymentId> {
    let now = u64::try_from(call.context.now.as_second()).unwrap_or_default();
    for second in now..now + ID_ATTEMPTS {
        let id = DeploymentId::first_free(second, |_| false);
        if !tx.deployment_taken(id.as_str()).await? {
            return Ok(id);
        }
    }
    Err(Failure::new(
        ErrorCode::RESOURCE_EXISTS,
        "no id is free; give one",
    ))
}

fn parse(manifest: &str) -> Result<Document> {
    if manifest.len() > MOST_MANIFEST_BYTES {
        return Err(Failure::field(
            "manifest",
            "it is larger than this server accepts",
        ));
    }
    Ok(Document::parse_bytes(FILE_NAME, manifest.as_bytes())?)
}

pub(crate) fn read_manifest(manifest: &str) -> Result<Manifest> {
    Ok(Manifest::read(&parse(manifest)?)?)
}

/// States are found by project and unit. Under another project nothing of what is deployed would be found again: a destroy
/// would succeed and leave everything where it is.
fn keeps_its_names(was: &Manifest, will_be: &Manifest) -> Result<()> {
    if was.metadata.project == will_be.metadata.project {
        return Ok(());
    }
    let words = format!(
        "the project of a deployment stays {}: its states are found by it; make another deployment instead",
        was.metadata.project
    );
    Err(Failure::field("manifest", words))
}

fn busy(id: &str) -> Failure {
    Error::new(
        ErrorCode::DEPLOYMENT_BUSY,
        format!("runs of {id} are not over"),
    )
    .with_help("wait for them, or cancel them")
    .into()
}
