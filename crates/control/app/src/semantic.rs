//! The semantic layer: the same for every tenant, edited by the operator.

use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{SemanticCloud, SemanticMapping, SemanticType, Timestamp};
use nimbus_core::TenantId;
use serde_json::{Value, json};

use crate::app::{App, Permit};
use crate::call::Call;
use crate::components::{is_operators, operator_only};
use crate::failure::{Failure, Result};
use crate::input;

/// Names in one list.
const MOST_NAMES: usize = 50;

/// A type as it is edited.
#[derive(Clone, Debug)]
pub struct SemanticTypeInput {
    pub aliases: Vec<String>,
    pub category: String,
    pub description: String,
}

/// What a type is in a cloud, as it is edited.
#[derive(Clone, Debug)]
pub struct SemanticMappingInput {
    pub names: Vec<String>,
    pub resources: Vec<String>,
    pub note: String,
}

impl App {
    pub async fn semantic_clouds(
        &self,
        call: &Call,
        tenant: TenantId,
    ) -> Result<Vec<SemanticCloud>> {
        let permit = self
            .permit(call, operation::LIST_SEMANTIC_CLOUDS, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.semantic_clouds().await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn semantic_types(&self, call: &Call, tenant: TenantId) -> Result<Vec<SemanticType>> {
        let permit = self
            .permit(call, operation::LIST_SEMANTIC_TYPES, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.semantic_types().await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn semantic_mappings(
        &self,
        call: &Call,
        tenant: TenantId,
        cloud: Option<String>,
    ) -> Result<Vec<SemanticMapping>> {
        let permit = self
            .permit(call, operation::LIST_SEMANTIC_MAPPINGS, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.semantic_mappings(cloud.as_deref()).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    /// What a resource of a program is.
    pub async fn semantic_classify(
        &self,
        call: &Call,
        tenant: TenantId,
        resource: &str,
    ) -> Result<SemanticMapping> {
        let permit = self
            .permit(call, operation::CLASSIFY_RESOURCE, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.semantic_classify(resource).await?;
                self.audit(tx, &call.context, permit.record().on(resource))
                    .await?;
                found.ok_or_else(Failure::not_found)
            })
            .await
    }

    pub async fn semantic_cloud_put(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        display_name: &str,
    ) -> Result<()> {
        let permit = self
            .editing(call, operation::PUT_SEMANTIC_CLOUD, tenant)
            .await?;
        let valid = (2..=32).contains(&name.len())
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if !valid {
            let message = "a cloud's name has 2 to 32 lower-case letters and digits";
            return Err(Failure::field("cloud", message));
        }
        let display_name = input::name("display_name", display_name, 200)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.semantic_cloud_put(name, &display_name, call.who.user)
                    .await?;
                let record = permit
                    .record()
                    .on(name)
                    .after(json!({"display_name": display_name}));
                self.audit(tx, &call.context, record).await
            })
            .await
    }

    pub async fn semantic_type_put(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        input: SemanticTypeInput,
    ) -> Result<SemanticType> {
        let permit = self
            .editing(call, operation::PUT_SEMANTIC_TYPE, tenant)
            .await?;
        let valid = (2..=64).contains(&name.len())
            && name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !valid {
            let message = "a type's name begins with a capital and has 2 to 64 letters and digits";
            return Err(Failure::field("type", message));
        }
        let category = input.category.trim();
        let plain = (1..=32).contains(&category.len())
            && category.bytes().all(|byte| byte.is_ascii_lowercase());
        if !plain {
            let message = "it has 1 to 32 lower-case letters";
            return Err(Failure::field("category", message));
        }
        let new = SemanticType {
            name: name.to_owned(),
            aliases: names("aliases", &input.aliases)?,
            category: category.to_owned(),
            description: input::text("description", &input.description, 500)?,
            updated_at: Timestamp(call.context.now),
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let all = tx.semantic_types().await?;
                refuse_taken(&all, &new)?;
                let before = all.iter().find(|one| one.name == name);
                tx.semantic_type_put(&new, call.who.user).await?;
                let record = permit
                    .record()
                    .on(name)
                    .before(before.map_or(Value::Null, told))
                    .after(told(&new));
                self.audit(tx, &call.context, record).await?;
                Ok(new)
            })
            .await
    }

    pub async fn semantic_type_delete(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
    ) -> Result<()> {
        let permit = self
            .editing(call, operation::DELETE_SEMANTIC_TYPE, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.semantic_type_delete(name).await?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await
            })
            .await
    }

    /// Says what a type is in a cloud.
    pub async fn semantic_mapping_put(
        &self,
        call: &Call,
        tenant: TenantId,
        place: (&str, &str),
        input: SemanticMappingInput,
    ) -> Result<SemanticMapping> {
        let permit = self
            .editing(call, operation::PUT_SEMANTIC_MAPPING, tenant)
            .await?;
        let (resource_type, cloud) = place;
        let new = SemanticMapping {
            resource_type: resource_type.to_owned(),
            provider: cloud.to_owned(),
            names: names("names", &input.names)?,
            resources: names("resources", &input.resources)?,
            note: input::text("note", &input.note, 500)?,
            updated_at: Timestamp(call.context.now),
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let types = tx.semantic_types().await?;
                let clouds = tx.semantic_clouds().await?;
                if !types.iter().any(|one| one.name == resource_type)
                    || !clouds.iter().any(|one| one.name == cloud)
                {
                    return Err(Failure::not_found());
                }
                let before = tx.semantic_mappings(Some(cloud)).await?;
                let before = before.iter().find(|one| one.resource_type == resource_type);
                let told = |one: &SemanticMapping| json!({"names": one.names, "resources": one.resources, "note": one.note});
                let before = before.map_or(Value::Null, told);
                tx.semantic_mapping_put(&new, call.who.user).await?;
                let record = permit
                    .record()
                    .on(format!("{resource_type}/{cloud}"))
                    .before(before)
                    .after(told(&new));
                self.audit(tx, &call.context, record).await?;
                Ok(new)
            })
            .await
    }

    /// The layer is the operator's, whatever somebody may do in another tenant.
    async fn editing(&self, call: &Call, operation: Operation, tenant: TenantId) -> Result<Permit> {
        let permit = self.permit(call, operation, tenant).await?;
        if !is_operators(&permit) {
            let message = "the semantic layer is the same for every tenant; the operator edits it";
            return Err(operator_only(message));
        }
        Ok(permit)
    }
}

fn told(of: &SemanticType) -> Value {
    json!({"aliases": of.aliases, "category": of.category, "description": of.description})
}

fn names(field: &'static str, given: &[String]) -> Result<Vec<String>> {
    if given.len() > MOST_NAMES {
        return Err(Failure::field(field, format!("give at most {MOST_NAMES}")));
    }
    given
        .iter()
        .map(|name| input::name(field, name, 200))
        .collect()
}

/// A name means one type.
fn refuse_taken(all: &[SemanticType], new: &SemanticType) -> Result<()> {
    let wanted: Vec<String> = new
        .aliases
        .iter()
        .chain([&new.name])
        .map(|name| name.to_lowercase())
        .collect();
    for other in all.iter().filter(|other| other.name != new.name) {
        let taken = other.aliases.iter().chain([&other.name]);
        for name in taken {
            if wanted.contains(&name.to_lowercase()) {
                let message = format!("`{name}` is {} already", other.name);
                return Err(Failure::field("aliases", message));
            }
        }
    }
    Ok(())
}
