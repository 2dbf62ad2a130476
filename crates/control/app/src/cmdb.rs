//! Configuration items for whoever may see them: lists, one, its history, what is around it, and what people say about
//! them. Items of runs are made where runs end, and not here.

use std::collections::BTreeSet;

use nimbus_control_auth::operation;
use nimbus_control_cmdb::{attribute_word, is_relationship, query_words};
use nimbus_control_store::{
    GraphLimits, GraphPart, ItemFilter, ItemStatus, ListPage, NamedCursor, NewRelationship,
    RowCursor, StoredHistory, StoredItem, StoredRelationship, StoredSync, TenantTx,
};
use nimbus_control_wire::RelateItems;
use nimbus_core::{ErrorCode, TenantId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{App, EVERY_ENVIRONMENT, Permit};
use crate::call::Call;
use crate::failure::{Failure, Result};

/// As far as a graph goes.
const DEEPEST: u32 = 5;
const USUAL_DEPTH: u32 = 1;
const MOST_GRAPH_ITEMS: u32 = 2000;
const USUAL_GRAPH_ITEMS: u32 = 200;
/// So many words of a text are looked for.
const MOST_QUERY_WORDS: usize = 16;
const MOST_ATTRIBUTES: usize = 8;
/// The largest text of what a relationship says, as JSON.
const LARGEST_ATTRIBUTES: usize = 8 * 1024;

/// Which items, as they are asked for.
#[derive(Clone, Debug, Default)]
pub struct ItemQuestion {
    /// `active` when absent; `decommissioned` or `any`.
    pub status: Option<String>,
    pub class: Option<String>,
    pub semantic_type: Option<String>,
    pub provider: Option<String>,
    pub compartment: Option<String>,
    pub deployment: Option<String>,
    pub environment: Option<String>,
    pub unit: Option<String>,
    pub rehearsal: Option<bool>,
    pub source: Option<String>,
    pub cloud_resource_id: Option<String>,
    /// Words, each of which begins one of the item.
    pub text: Option<String>,
    /// `name=value`, with `.` between names inside of each other.
    pub attributes: Vec<String>,
}

impl App {
    /// Items by name.
    pub async fn item_list(
        &self,
        call: &Call,
        tenant: TenantId,
        question: ItemQuestion,
        page: ListPage<NamedCursor>,
    ) -> Result<Vec<StoredItem>> {
        let permit = self.permit(call, operation::LIST_ITEMS, tenant).await?;
        let mut filter = filter_of(question)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                filter.environments = self.item_places(tx, call, &permit).await?;
                let found = tx.item_list(&filter, &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn item_get(&self, call: &Call, tenant: TenantId, id: Uuid) -> Result<StoredItem> {
        let permit = self.permit(call, operation::GET_ITEM, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = self.item_seen(tx, call, &permit, id).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(found)
            })
            .await
    }

    /// Environments whose items the caller may see; nothing for all of them.
    pub(crate) async fn item_places(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        permit: &Permit,
    ) -> Result<Option<Vec<String>>> {
        let names = async || tx.item_environments().await;
        self.reached(call, permit, names).await
    }

    /// An item, if the caller may look into its environment. One elsewhere is not there.
    async fn item_seen(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        permit: &Permit,
        id: Uuid,
    ) -> Result<StoredItem> {
        let found = tx.item_get(id).await?;
        match self.sees_item(call, permit, &found) {
            true => Ok(found),
            false => Err(Failure::not_found()),
        }
    }

    fn sees_item(&self, call: &Call, permit: &Permit, item: &StoredItem) -> bool {
        let environment = item.environment.as_deref();
        environment.is_none_or(|environment| self.reaches(call, permit, environment))
    }

    /// Relationships whose both ends the caller may see.
    async fn seen_relationships(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        permit: &Permit,
        mut found: Vec<StoredRelationship>,
    ) -> Result<Vec<StoredRelationship>> {
        if self.reaches(call, permit, EVERY_ENVIRONMENT) {
            return Ok(found);
        }
        let ends = found.iter().flat_map(|one| [one.source_ci, one.target_ci]);
        let ends: Vec<Uuid> = ends.collect();
        let items = tx.items_get(&ends).await?;
        let seen = items
            .iter()
            .filter(|item| self.sees_item(call, permit, item));
        let seen: BTreeSet<Uuid> = seen.map(|item| item.id).collect();
        found.retain(|one| seen.contains(&one.source_ci) && seen.contains(&one.target_ci));
        Ok(found)
    }

    /// Puts an item into a compartment, or takes it out of any.
    pub async fn item_move(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
        compartment: Option<Uuid>,
    ) -> Result<StoredItem> {
        let permit = self.permit(call, operation::MOVE_ITEM, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                self.item_seen(tx, call, &permit, id).await?;
                let item = tx.item_lock(id).await?;
                if let Some(wanted) = compartment {
                    tx.compartment_get(wanted).await.map_err(|_| {
                        Failure::field("compartment", "there is no such compartment")
                    })?;
                }
                if item.compartment_id == compartment {
                    self.audit(tx, &call.context, permit.record().on(id))
                        .await?;
                    return Ok(item);
                }
                let moved = tx
                    .item_move(&item, compartment, call.who.user.into())
                    .await?;
                let record = permit
                    .record()
                    .on(id)
                    .before(json!({"compartment": item.compartment_id}))
                    .after(json!({"compartment": moved.compartment_id}));
                self.audit(tx, &call.context, record).await?;
                Ok(moved)
            })
            .await
    }

    /// What happened to an item, newest first.
    pub async fn item_history(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
        page: ListPage<i32>,
    ) -> Result<Vec<StoredHistory>> {
        let permit = self.permit(call, operation::ITEM_HISTORY, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                self.item_seen(tx, call, &permit, id).await?;
                let found = tx.item_history(id, &page).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(found)
            })
            .await
    }

    /// What is around an item, as far as was asked and no further than a server goes.
    pub async fn item_graph(
        &self,
        call: &Call,
        tenant: TenantId,
        id: Uuid,
        depth: Option<u32>,
        items: Option<u32>,
    ) -> Result<GraphPart> {
        let permit = self.permit(call, operation::ITEM_GRAPH, tenant).await?;
        let limits = GraphLimits {
            depth: bounded("depth", depth, USUAL_DEPTH, DEEPEST)?,
            items: bounded("items", items, USUAL_GRAPH_ITEMS, MOST_GRAPH_ITEMS)?,
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                self.item_seen(tx, call, &permit, id).await?;
                let mut found = tx.item_graph(id, limits).await?;
                found
                    .items
                    .retain(|(_, item)| self.sees_item(call, &permit, item));
                let shown: BTreeSet<Uuid> = found.items.iter().map(|(_, item)| item.id).collect();
                found
                    .relationships
                    .retain(|one| shown.contains(&one.source_ci) && shown.contains(&one.target_ci));
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(found)
            })
            .await
    }

    /// Relationships of an item, either way round.
    pub async fn relationship_list(
        &self,
        call: &Call,
        tenant: TenantId,
        item: Uuid,
        page: ListPage<Uuid>,
    ) -> Result<Vec<StoredRelationship>> {
        let permit = self
            .permit(call, operation::LIST_RELATIONSHIPS, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                self.item_seen(tx, call, &permit, item).await?;
                let mut found = Vec::new();
                let (mut after, limit) = (page.after, page.limit as usize);
                // What is left out makes no page shorter: a short one would be taken for the last.
                while found.len() < limit {
                    let part = ListPage {
                        after,
                        limit: page.limit,
                    };
                    let part = tx.relationship_list(item, &part).await?;
                    let more = part.len() == limit;
                    after = part.last().map(|last| last.id);
                    found.extend(self.seen_relationships(tx, call, &permit, part).await?);
                    if !more {
                        break;
                    }
                }
                found.truncate(limit);
                self.audit(tx, &call.context, permit.record().on(item))
                    .await?;
                Ok(found)
            })
            .await
    }

    pub async fn relationship_create(
        &self,
        call: &Call,
        tenant: TenantId,
        input: RelateItems,
    ) -> Result<StoredRelationship> {
        let permit = self.permit(call, operation::RELATE_ITEMS, tenant).await?;
        let id = |field: &'static str, text: &str| -> Result<Uuid> {
            text.parse()
                .map_err(|_| Failure::field(field, "this is not the id of an item"))
        };
        let (source, target) = (id("source", &input.source)?, id("target", &input.target)?);
        if source == target {
            return Err(Failure::field("target", "an item is not related to itself"));
        }
        if !is_relationship(&input.relationship) {
            let message = "it has 1 to 64 lower-case letters, digits and `_`";
            return Err(Failure::field("relationship", message));
        }
        let attributes = nimbus_control_audit::redact(Value::Object(input.attributes));
        if attributes.to_string().len() > LARGEST_ATTRIBUTES {
            return Err(Failure::field("attributes", "they are too large"));
        }
        let new = NewRelationship {
            source_ci: source,
            target_ci: target,
            relationship: input.relationship,
            attributes,
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let item = self.item_seen(tx, call, &permit, source).await?;
                self.item_seen(tx, call, &permit, target).await?;
                let class = tx.classes_named(std::slice::from_ref(&item.class)).await?;
                let allowed = class.first().map(|class| &class.relationships);
                if !allowed.is_none_or(|allowed| allows(allowed, &new.relationship)) {
                    let (class, word) = (&item.class, &new.relationship);
                    let message = format!("items of the class {class} begin no `{word}`");
                    return Err(Failure::new(ErrorCode::RELATIONSHIP_REFUSED, message));
                }
                let made = tx.relationship_add(&new).await?;
                let record = permit.record().on(made.id).after(json!({
                    "source": source,
                    "target": target,
                    "relationship": made.relationship,
                }));
                self.audit(tx, &call.context, record).await?;
                Ok(made)
            })
            .await
    }

    /// Takes a relationship back that somebody said. What runs and imports say, they say again.
    pub async fn relationship_delete(&self, call: &Call, tenant: TenantId, id: Uuid) -> Result<()> {
        let permit = self.permit(call, operation::UNRELATE_ITEMS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let known = tx.relationship_lock(id).await?;
                for end in [known.source_ci, known.target_ci] {
                    self.item_seen(tx, call, &permit, end).await?;
                }
                if known.source != "person" {
                    let message = format!("the last {} says that it is there", known.source);
                    return Err(Failure::new(ErrorCode::RELATIONSHIP_KEPT, message));
                }
                tx.relationship_delete(id).await?;
                let record = permit.record().on(id).before(json!({
                    "source": known.source_ci,
                    "target": known.target_ci,
                    "relationship": known.relationship,
                }));
                self.audit(tx, &call.context, record).await
            })
            .await
    }

    /// From which states items are, newest first.
    pub async fn sync_list(
        &self,
        call: &Call,
        tenant: TenantId,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<StoredSync>> {
        let permit = self.permit(call, operation::LIST_SYNCS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let places = self.item_places(tx, call, &permit).await?;
                let found = tx.sync_list(places.as_deref(), &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }
}

/// Whether a class lets its items begin a relationship. One that says nothing lets them begin every one.
pub(crate) fn allows(of_class: &Value, relationship: &str) -> bool {
    match of_class.as_array() {
        Some(words) if !words.is_empty() => words.iter().any(|word| word == relationship),
        Some(_) | None => true,
    }
}

/// A number that was asked for, which is never silently another one.
fn bounded(field: &'static str, given: Option<u32>, usual: u32, most: u32) -> Result<u32> {
    let given = given.unwrap_or(usual);
    if (1..=most).contains(&given) {
        Ok(given)
    } else {
        Err(Failure::field(field, format!("give 1 to {most}")))
    }
}

/// Words of a text that somebody searches for.
pub(crate) fn searched_words(field: &'static str, text: &str) -> Result<Vec<String>> {
    let words = query_words(text);
    if words.is_empty() {
        return Err(Failure::field(field, "it has no letter and no digit"));
    }
    if words.len() > MOST_QUERY_WORDS {
        let message = format!("give at most {MOST_QUERY_WORDS} words");
        return Err(Failure::field(field, message));
    }
    Ok(words)
}

fn filter_of(question: ItemQuestion) -> Result<ItemFilter> {
    let status = match question.status.as_deref() {
        None | Some("active") => ItemStatus::Active,
        Some("decommissioned") => ItemStatus::Decommissioned,
        Some("any") => ItemStatus::Any,
        Some(_) => {
            let message = "give active, decommissioned or any";
            return Err(Failure::field("status", message));
        }
    };
    if !matches!(question.source.as_deref(), None | Some("run" | "import")) {
        return Err(Failure::field("source", "give run or import"));
    }
    let compartment = question.compartment.map(|id| id.parse()).transpose();
    let compartment =
        compartment.map_err(|_| Failure::field("compartment", "this is not an id"))?;
    let words = match question.text.as_deref() {
        None => Vec::new(),
        Some(text) => searched_words("text", text)?,
    };
    if question.attributes.len() > MOST_ATTRIBUTES {
        let message = format!("give at most {MOST_ATTRIBUTES}");
        return Err(Failure::field("attribute", message));
    }
    let exact = question
        .attributes
        .iter()
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                Ok(attribute_word(name, value))
            }
            _ => Err(Failure::field("attribute", "write it as name=value")),
        });
    Ok(ItemFilter {
        status,
        class: question.class,
        semantic_type: question.semantic_type,
        provider: question.provider,
        compartment,
        deployment: question.deployment,
        environment: question.environment,
        unit: question.unit,
        rehearsal: question.rehearsal,
        source: question.source,
        cloud_resource_id: question.cloud_resource_id,
        // Whoever asks fills in what they may see.
        environments: None,
        words,
        exact_words: exact.collect::<Result<_>>()?,
    })
}
