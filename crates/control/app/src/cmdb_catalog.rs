//! Classes and compartments of configuration items, and the search over all three.

use std::fmt;
use std::str::FromStr;

use nimbus_catalog::schema_problems;
use nimbus_control_auth::operation;
use nimbus_control_cmdb::is_relationship;
use nimbus_control_store::{
    Compartment, ItemFilter, ListPage, NamedCursor, NewClass, NewCompartment, StoredClass, TenantTx,
};
use nimbus_control_wire::{AddCompartment, CmdbHit, SetItemClass};
use nimbus_core::{ErrorCode, TenantId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::cmdb::searched_words;
use crate::failure::{Failure, Result};
use crate::input;

const LARGEST_SCHEMA: usize = 32 * 1024;
const MOST_RELATIONSHIPS: usize = 50;

/// What can be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SearchKind {
    Compartment,
    Class,
    Resource,
}

impl SearchKind {
    pub const ALL: &[Self] = &[Self::Compartment, Self::Class, Self::Resource];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compartment => "compartment",
            Self::Class => "class",
            Self::Resource => "resource",
        }
    }
}

impl FromStr for SearchKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let known = Self::ALL.iter().find(|kind| kind.as_str() == text);
        known.copied().ok_or(())
    }
}

/// Where a search goes on: among things of one kind, after one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchCursor {
    kind: SearchKind,
    after: NamedCursor,
}

impl fmt::Display for SearchCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind.as_str(), self.after)
    }
}

impl FromStr for SearchCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, after) = text.split_once('.').ok_or(())?;
        Ok(Self {
            kind: kind.parse()?,
            after: after.parse().map_err(drop)?,
        })
    }
}

impl App {
    /// Classes by name.
    pub async fn class_list(
        &self,
        call: &Call,
        tenant: TenantId,
        text: Option<String>,
        page: ListPage<String>,
    ) -> Result<Vec<StoredClass>> {
        let permit = self.permit(call, operation::LIST_CLASSES, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.class_list(text.as_deref(), &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    /// Makes a class, or describes one that resources brought.
    pub async fn class_put(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        input: SetItemClass,
    ) -> Result<StoredClass> {
        let permit = self.permit(call, operation::PUT_CLASS, tenant).await?;
        let new = checked_class(name, input)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let put = tx.class_put(&new).await?;
                let record = permit.record().on(name).after(json!({
                    "provider": put.provider_type,
                    "relationships": put.relationships,
                    "description": put.description,
                }));
                self.audit(tx, &call.context, record).await?;
                Ok(put)
            })
            .await
    }

    pub async fn compartment_list(
        &self,
        call: &Call,
        tenant: TenantId,
        parent: Option<Uuid>,
        text: Option<String>,
        page: ListPage<NamedCursor>,
    ) -> Result<Vec<Compartment>> {
        let permit = self
            .permit(call, operation::LIST_COMPARTMENTS, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.compartment_page(parent, text.as_deref(), &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn compartment_get(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
    ) -> Result<Compartment> {
        let permit = self
            .permit(call, operation::GET_COMPARTMENT, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.compartment_get(id).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(found)
            })
            .await
    }

    pub async fn compartment_create(
        &self,
        call: &Call,
        tenant: TenantId,
        input: AddCompartment,
    ) -> Result<Compartment> {
        let permit = self
            .permit(call, operation::CREATE_COMPARTMENT, tenant)
            .await?;
        let name = input::name("name", &input.name, 200)?;
        if name.contains('/') {
            // Imports write a compartment as a path.
            return Err(Failure::field("name", "it has a `/`"));
        }
        let parent = input.parent.map(|id| id.parse()).transpose();
        let optional = |field, text: Option<String>| -> Result<Option<String>> {
            text.map(|text| input::name(field, &text, 200)).transpose()
        };
        let new = NewCompartment {
            name,
            parent: parent.map_err(|_| Failure::field("parent", "this is not an id"))?,
            cloud_id: optional("cloud_id", input.cloud_id)?,
            provider_type: optional("provider", input.provider)?,
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                if let Some(parent) = new.parent {
                    tx.compartment_get(parent)
                        .await
                        .map_err(|_| Failure::field("parent", "there is no such compartment"))?;
                }
                let made = tx.compartment_add(&new).await?;
                let record = permit
                    .record()
                    .on(made.id)
                    .after(json!({"name": made.name, "parent": made.parent_id}));
                self.audit(tx, &call.context, record).await?;
                Ok(made)
            })
            .await
    }

    /// Compartments, classes and items, in this order and by name, each with its place. Compartments and classes have the
    /// text in their names; each word of the text begins a word of an item.
    pub async fn cmdb_search(
        &self,
        call: &Call,
        tenant: TenantId,
        text: &str,
        kinds: &[SearchKind],
        page: ListPage<SearchCursor>,
    ) -> Result<Vec<(SearchCursor, CmdbHit)>> {
        let permit = self.permit(call, operation::SEARCH_CMDB, tenant).await?;
        let words = searched_words("query", text)?;
        let text = text.trim();
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let places = self.item_places(tx, call, &permit).await?;
                let mut hits = Vec::new();
                for &kind in SearchKind::ALL {
                    let left = page.limit as usize - hits.len();
                    let asked = kinds.is_empty() || kinds.contains(&kind);
                    let passed = page.after.as_ref().is_some_and(|after| after.kind > kind);
                    if left == 0 || !asked || passed {
                        continue;
                    }
                    let after = page.after.as_ref().filter(|after| after.kind == kind);
                    let part = ListPage {
                        after: after.map(|after| after.after.clone()),
                        limit: u32::try_from(left).unwrap_or(u32::MAX),
                    };
                    let filter = ItemFilter {
                        words: words.clone(),
                        environments: places.clone(),
                        ..ItemFilter::default()
                    };
                    hits.extend(hits_of(tx, kind, text, &filter, part).await?);
                }
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(hits)
            })
            .await
    }
}

async fn hits_of(
    tx: &mut TenantTx,
    kind: SearchKind,
    text: &str,
    filter: &ItemFilter,
    page: ListPage<NamedCursor>,
) -> Result<Vec<(SearchCursor, CmdbHit)>> {
    let hit = |id: Uuid, name: String| {
        let after = NamedCursor {
            name: name.clone(),
            id,
        };
        let found = CmdbHit {
            type_: kind.as_str().to_owned(),
            id: id.to_string(),
            name,
            class: None,
            deployment: None,
            environment: None,
        };
        (SearchCursor { kind, after }, found)
    };
    Ok(match kind {
        SearchKind::Compartment => {
            let found = tx.compartment_page(None, Some(text), &page).await?;
            found.into_iter().map(|one| hit(one.id, one.name)).collect()
        }
        SearchKind::Class => {
            let page = ListPage {
                after: page.after.map(|after| after.name),
                limit: page.limit,
            };
            let found = tx.class_list(Some(text), &page).await?;
            found.into_iter().map(|one| hit(one.id, one.name)).collect()
        }
        SearchKind::Resource => {
            let found = tx.item_list(filter, &page).await?;
            let with_place = found.into_iter().map(|one| {
                let (place, found) = hit(one.id, one.name);
                let found = CmdbHit {
                    class: Some(one.class),
                    deployment: one.deployment,
                    environment: one.environment,
                    ..found
                };
                (place, found)
            });
            with_place.collect()
        }
    })
}

fn checked_class(name: &str, input: SetItemClass) -> Result<NewClass> {
    let name = input::name("class", name, 200)?;
    let provider = match &input.provider {
        Some(provider) => Some(input::name("provider", provider, 200)?),
        None => nimbus_control_cmdb::provider_of(&name).map(str::to_owned),
    };
    if input.relationships.len() > MOST_RELATIONSHIPS {
        let message = format!("give at most {MOST_RELATIONSHIPS}");
        return Err(Failure::field("relationships", message));
    }
    if !input.relationships.iter().all(|word| is_relationship(word)) {
        let message = "each has 1 to 64 lower-case letters, digits and `_`";
        return Err(Failure::field("relationships", message));
    }
    let attributes = Value::Object(input.attributes);
    if attributes.to_string().len() > LARGEST_SCHEMA {
        return Err(Failure::field("attributes", "the schema is too large"));
    }
    let empty = attributes.as_object().is_none_or(serde_json::Map::is_empty);
    let problems = if empty {
        Vec::new()
    } else {
        schema_problems("attributes", &attributes)
    };
    if let Some(first) = problems.first() {
        let message = format!("the schema of {name}: {first}");
        return Err(Failure::new(ErrorCode::CLASS_INVALID, message));
    }
    Ok(NewClass {
        name,
        provider_type: provider,
        attributes,
        relationships: json!(input.relationships),
        description: input::text("description", &input.description, 500)?,
    })
}
