//! What has to be written so that items are as they should be, and what that changes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::item::{ItemContent, ItemDigest};
use crate::state::StateItem;

/// An item that is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownItem {
    pub id: Uuid,
    pub urn: String,
    pub digest: Vec<u8>,
    pub active: bool,
    pub revision: i32,
}

/// What happens to an item; its history says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemChange {
    Created,
    Updated,
    /// It is no longer there.
    Decommissioned,
    /// It is there again.
    Recommissioned,
}

impl ItemChange {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Decommissioned => "decommissioned",
            Self::Recommissioned => "recommissioned",
        }
    }
}

/// One item that has to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedWrite<'a> {
    pub change: ItemChange,
    /// The one that is recorded, if it is.
    pub known: Option<&'a KnownItem>,
    /// What it says from now on; one that is decommissioned keeps what it said.
    pub item: Option<&'a StateItem>,
    pub digest: Option<ItemDigest>,
}

/// Writes that make what is recorded of a unit equal to its state. What is equal already is not in it.
pub fn plan_unit<'a>(known: &'a [KnownItem], wanted: &'a [StateItem]) -> Vec<PlannedWrite<'a>> {
    let recorded: BTreeMap<&str, &KnownItem> =
        known.iter().map(|one| (one.urn.as_str(), one)).collect();
    let mut writes = Vec::new();
    for item in wanted {
        let digest = item.content.digest();
        let known = recorded.get(item.urn.as_str()).copied();
        let change = match known {
            None => ItemChange::Created,
            Some(known) if !known.active => ItemChange::Recommissioned,
            Some(known) if known.digest != digest => ItemChange::Updated,
            Some(_) => continue,
        };
        writes.push(PlannedWrite {
            change,
            known,
            item: Some(item),
            digest: Some(digest),
        });
    }
    let stays: BTreeMap<&str, ()> = wanted.iter().map(|one| (one.urn.as_str(), ())).collect();
    for known in known {
        if known.active && !stays.contains_key(known.urn.as_str()) {
            writes.push(PlannedWrite {
                change: ItemChange::Decommissioned,
                known: Some(known),
                item: None,
                digest: None,
            });
        }
    }
    writes
}

/// What is different, by field: `{"field": {"before": …, "after": …}}`. Attributes are `attributes.<name>`.
pub fn changes_between(before: &ItemContent, after: &ItemContent) -> Map<String, Value> {
    let mut changes = Map::new();
    compare(&mut changes, "", &before.fields(), &after.fields());
    let (before, after) = (&before.attributes.values, &after.attributes.values);
    compare(&mut changes, "attributes.", before, after);
    changes
}

fn compare(
    changes: &mut Map<String, Value>,
    prefix: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) {
    for name in before.keys().chain(after.keys()) {
        let (old, new) = (before.get(name), after.get(name));
        if old != new {
            let change = json!({"before": old, "after": new});
            changes.insert(format!("{prefix}{name}"), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(urn: &str, size: i64) -> StateItem {
        let mut content = ItemContent {
            class: "demo:index:Thing".to_owned(),
            name: urn.to_owned(),
            ..ItemContent::default()
        };
        content
            .attributes
            .values
            .insert("size".to_owned(), json!(size));
        StateItem {
            urn: urn.to_owned(),
            content,
        }
    }

    fn known(item: &StateItem, active: bool) -> KnownItem {
        KnownItem {
            id: Uuid::new_v4(),
            urn: item.urn.clone(),
            digest: item.content.digest().to_vec(),
            active,
            revision: 1,
        }
    }

    #[test]
    fn only_what_differs_is_written_and_what_is_gone_is_decommissioned() {
        let (same, old, new) = (wanted("same", 1), wanted("moved", 1), wanted("moved", 2));
        let (back, gone, fresh) = (wanted("back", 1), wanted("gone", 1), wanted("fresh", 1));
        let recorded = [
            known(&same, true),
            known(&old, true),
            known(&back, false),
            known(&gone, true),
            known(&wanted("long-gone", 1), false),
        ];
        let state = [same, new, back, fresh];
        let writes = plan_unit(&recorded, &state);
        let told: Vec<_> = writes
            .iter()
            .map(|write| {
                let item = write.item.map(|item| item.urn.as_str());
                let known = write.known.map(|known| known.urn.as_str());
                (write.change, item.or(known).unwrap_or_default())
            })
            .collect();
        assert_eq!(
            told,
            [
                (ItemChange::Updated, "moved"),
                (ItemChange::Recommissioned, "back"),
                (ItemChange::Created, "fresh"),
                (ItemChange::Decommissioned, "gone"),
            ]
        );
    }

    #[test]
    fn a_change_names_its_fields_with_both_values() {
        let (before, mut after) = (wanted("x", 1).content, wanted("x", 2).content);
        after.cloud_resource_id = Some("i-2".to_owned());
        after
            .attributes
            .values
            .insert("new".to_owned(), json!(true));
        let changes = changes_between(&before, &after);
        assert_eq!(
            Value::Object(changes),
            json!({
                "attributes.new": {"before": null, "after": true},
                "attributes.size": {"before": 1, "after": 2},
                "cloud_resource_id": {"before": null, "after": "i-2"},
            })
        );
    }
}
