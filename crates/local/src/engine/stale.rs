//! What a restored state still says of things that did not come back as they were.
//!
//! A recorded state is applied as it is. Where a provider had to make something anew, or gives it other values,
//! whoever was recorded with the earlier ones names what is gone. Compared are values, so
//! that a resource that came back under the same name is no reason to complain of whoever uses the name.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_engine_model::{PropertyMap, PropertyValue, ResourceState, Snapshot, Urn};

/// The shortest text that is looked for inside of others. Shorter ones are in too many by chance.
const WITHIN: usize = 4;

/// For each resource that is not what it was: what still names what it was. Names only, never values.
pub(super) fn stale_values(then: &Snapshot, now: &Snapshot) -> Vec<String> {
    let recorded: BTreeMap<&Urn, &ResourceState> = live(then)
        .map(|resource| (&resource.urn, resource))
        .collect();
    let mut told = Vec::new();
    for resource in live(now).filter(|resource| is_object(resource)) {
        let Some(before) = recorded.get(&resource.urn) else {
            continue;
        };
        let current = texts_of(resource);
        let gone: BTreeSet<String> = texts_of(before).difference(&current).cloned().collect();
        if gone.is_empty() {
            continue;
        }
        let changed = ChangedObject {
            urn: &resource.urn,
            made_anew: before.id != resource.id,
            gone,
            current,
        };
        let users: BTreeSet<String> = live(now).flat_map(|user| changed.named_by(user)).collect();
        if users.is_empty() {
            continue;
        }
        let users: Vec<&str> = users.iter().map(String::as_str).collect();
        let what = if changed.made_anew {
            "was made anew"
        } else {
            "came back with other values"
        };
        let name = resource.urn.name();
        told.push(format!(
            "{name} {what}, and what it was is still in {}",
            users.join(", ")
        ));
    }
    told
}

fn live(snapshot: &Snapshot) -> impl Iterator<Item = &ResourceState> {
    let all = snapshot.resources.iter().map(AsRef::as_ref);
    all.filter(|state: &&ResourceState| !state.delete)
}

/// Whether a provider made it. References to providers are made anew by the restore itself.
fn is_object(resource: &ResourceState) -> bool {
    resource.custom && !resource.type_.starts_with("pulumi:providers:")
}

/// A resource that is not what was recorded.
struct ChangedObject<'a> {
    urn: &'a Urn,
    made_anew: bool,
    /// What it had and no longer has.
    gone: BTreeSet<String>,
    /// What it has.
    current: BTreeSet<String>,
}

impl ChangedObject<'_> {
    /// Where a resource still has what this one was.
    fn named_by(&self, user: &ResourceState) -> Vec<String> {
        if user.urn == *self.urn {
            return Vec::new();
        }
        let name = user.urn.name();
        let from_here = user
            .property_dependencies
            .iter()
            .filter(|(_, of)| of.contains(self.urn));
        let inputs = from_here.filter_map(|(property, _)| {
            let value = user.inputs.get(property)?;
            self.is_stale(value).then(|| format!("{name}.{property}"))
        });
        // Outputs of components and of the stack are recorded without saying where they are from.
        let outputs: &PropertyMap = &user.outputs;
        let outputs = outputs.iter().filter(|_| !user.custom);
        let outputs = outputs.filter(|(_, value)| mentions_any(value, &self.gone));
        let outputs = outputs.map(|(output, _)| match user.parent {
            Some(_) => format!("{name}.{output}"),
            None => format!("output {output}"),
        });
        inputs.chain(outputs).collect()
    }

    /// Whether a value that is from this resource is from what it was. What was calculated of a resource that was made
    /// anew cannot be recognised; it counts unless something of it is as it is now.
    fn is_stale(&self, value: &PropertyValue) -> bool {
        mentions_any(value, &self.gone) || self.made_anew && !mentions_any(value, &self.current)
    }
}

/// Everything that a resource tells of itself.
fn texts_of(resource: &ResourceState) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    texts.extend(resource.id.clone());
    let values = resource.outputs.values().chain(resource.inputs.values());
    for value in values {
        collect(value, &mut texts);
    }
    texts.retain(|text| !text.is_empty());
    texts
}

fn collect(value: &PropertyValue, texts: &mut BTreeSet<String>) {
    match value {
        PropertyValue::String(text) => drop(texts.insert(text.clone())),
        PropertyValue::Number(number) => drop(texts.insert(number.to_string())),
        PropertyValue::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        PropertyValue::Object(map) => map.values().for_each(|item| collect(item, texts)),
        PropertyValue::Secret(inner) => collect(inner, texts),
        PropertyValue::Output(output) => {
            output.value.iter().for_each(|inner| collect(inner, texts));
        }
        PropertyValue::ResourceReference(reference) => {
            reference.id.iter().for_each(|id| collect(id, texts));
        }
        PropertyValue::Null
        | PropertyValue::Bool(_)
        | PropertyValue::Bytes(_)
        | PropertyValue::Asset(_)
        | PropertyValue::Archive(_)
        | PropertyValue::Computed => {}
    }
}

fn mentions_any(value: &PropertyValue, wanted: &BTreeSet<String>) -> bool {
    let mut texts = BTreeSet::new();
    collect(value, &mut texts);
    texts
        .iter()
        .any(|text| wanted.iter().any(|one| mentions(text, one)))
}

/// Whether a text is another or has it in it as a word of its own.
fn mentions(text: &str, wanted: &str) -> bool {
    if text == wanted {
        return true;
    }
    let inside = |(at, _): (usize, &str)| {
        let before = text[..at].chars().next_back();
        let after = text[at + wanted.len()..].chars().next();
        let of_a_word = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
        !of_a_word(before) && !of_a_word(after)
    };
    wanted.len() >= WITHIN && text.match_indices(wanted).any(inside)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn urn(type_: &str, name: &str) -> Urn {
        Urn::new("dev", "p", None, type_, name)
    }

    /// `sub` has what is made of a network's id, its name and its digest; the stack puts the id out.
    fn state(id: &str, named: &str) -> Snapshot {
        let text = |text: &str| PropertyValue::String(text.to_owned());
        let mut net = ResourceState::new(urn("a:b:Net", "net"), true);
        net.id = Some(id.to_owned());
        net.inputs.insert("label".to_owned(), text("main"));
        net.outputs.insert("label".to_owned(), text("main"));
        let mut sub = ResourceState::new(urn("a:b:Sub", "sub"), true);
        sub.id = Some("sub-1".to_owned());
        let secret = PropertyValue::Secret(Box::new(text(&format!("in/{named}"))));
        for (property, value) in [
            ("net", secret),
            ("label", text("main-sub")),
            ("digest", text("c0ffee")),
            ("free", text(named)),
        ] {
            sub.inputs.insert(property.to_owned(), value);
            if property != "free" {
                let of = vec![net.urn.clone()];
                sub.property_dependencies.insert(property.to_owned(), of);
            }
        }
        let mut stack = ResourceState::new(Urn::root_stack("dev", "p"), false);
        stack.outputs.insert("netId".to_owned(), text(named));
        stack.outputs.insert("label".to_owned(), text("main"));
        Snapshot {
            resources: [stack, net, sub].map(Arc::new).into(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn what_names_a_resource_that_was_made_anew_is_found_and_no_value_is_told() {
        let then = state("net-10", "net-10");
        assert_eq!(stale_values(&then, &state("net-10", "net-10")), [""; 0]);
        assert_eq!(
            stale_values(&then, &state("net-11", "net-10")),
            ["net was made anew, and what it was is still in output netId, sub.digest, sub.net"]
        );
        // Part of another word is another thing.
        assert!(!mentions("net-100", "net-10"));
        assert!(mentions("arn:net-10/x", "net-10"));
    }

    #[test]
    fn the_same_object_with_another_value_is_found_where_the_value_is() {
        let with = |address: &str| {
            let mut state = state("net-10", "net-10");
            let value = PropertyValue::String(address.to_owned());
            Arc::make_mut(&mut state.resources[1])
                .outputs
                .insert("address".to_owned(), value);
            let named = PropertyValue::String("10.0.0.1".to_owned());
            let sub = Arc::make_mut(&mut state.resources[2]);
            sub.inputs.insert("label".to_owned(), named);
            state
        };
        assert_eq!(
            stale_values(&with("10.0.0.1"), &with("10.0.0.2")),
            ["net came back with other values, and what it was is still in sub.label"]
        );
    }
}
