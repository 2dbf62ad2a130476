//! Finding the object of a create that was cut short, so that it need not be made twice.
//!
//! A create that nobody saw the end of has no id, and the protocol has no question "what have I
//! made". But the inputs of most objects hold their name, whether a program gave it or the provider
//! drew it, and many providers use the name as the id. Others take an idempotency token, under which
//! the object can be found. So an object is read under each name and token that the inputs hold. It is taken for the one that was made only if everything that the provider says
//! about it agrees with what was asked for, and only from a provider that really looks: one that
//! also finds an object under a name that nobody has given just repeats the question.

use std::sync::Arc;

use nimbus_engine_model::diff::deep_equals;
use nimbus_engine_model::{PropertyMap, PropertyValue, ResourceState, unwrapped_map};
use nimbus_engine_ports::{Provider, ReadRequest, ReadResponse, Severity};
use uuid::Uuid;

use super::Executor;

/// The key under which the SDKs hand the code of a dynamic provider along with its inputs.
const DYNAMIC_PROVIDER: &str = "__provider";

impl Executor {
    /// The resource that an interrupted create made, if its provider finds it by its name or token.
    pub(crate) async fn find_created(&self, pending: &ResourceState) -> Option<Arc<ResourceState>> {
        let provider = self.provider(pending).await.ok()?;
        let wanted = unwrapped_map(&pending.inputs);
        let tokens = tokens(&pending.inputs);
        for (property, name) in names(pending.urn.name(), &wanted).into_iter().chain(tokens) {
            let Some(found) = read_as(provider.as_ref(), pending, &name).await else {
                continue;
            };
            let described = found.inputs.as_ref().unwrap_or(&found.outputs);
            if !agrees(&wanted, &property, described) {
                continue;
            }
            let nobodys = format!("{name}-{}", Uuid::new_v4());
            if read_as(provider.as_ref(), pending, &nobodys)
                .await
                .is_some()
            {
                return None;
            }
            return Some(self.adopted(pending, found));
        }
        None
    }

    fn adopted(&self, pending: &ResourceState, found: ReadResponse) -> Arc<ResourceState> {
        let now = self.clock.now();
        let mut state = pending.clone();
        let id = found.id.unwrap_or_default();
        let message = format!(
            "the create that an earlier operation did not see the end of was done: its object was \
             found as {id} and is recorded"
        );
        self.diagnose(Severity::Info, Some(&state.urn), message);
        state.id = Some(id);
        state.outputs = found.outputs;
        state.refresh_before_update = found.refresh_before_update;
        state.created = Some(now);
        state.modified = Some(now);
        self.mark_secrets(&mut state);
        Arc::new(state)
    }
}

/// Whether there is an object with this id. A provider that cannot say has not found it.
async fn read_as(
    provider: &dyn Provider,
    pending: &ResourceState,
    id: &str,
) -> Option<ReadResponse> {
    // Without inputs and outputs this is what an import asks. A dynamic provider is the exception:
    // its code comes with the properties.
    let is_dynamic = pending.inputs.contains_key(DYNAMIC_PROVIDER);
    let properties = if is_dynamic {
        pending.inputs.clone()
    } else {
        PropertyMap::new()
    };
    let request = ReadRequest {
        urn: Some(pending.urn.clone()),
        name: pending.urn.name().to_owned(),
        type_: pending.type_.clone(),
        id: id.to_owned(),
        inputs: properties.clone(),
        state: properties,
    };
    let mut found = provider.read(request).await.ok()?;
    found.id = found.id.filter(|id| !id.is_empty());
    found.id.as_ref()?;
    // A dynamic provider gets back what it was sent, so only its outputs say anything.
    found.inputs = found
        .inputs
        .filter(|inputs| !is_dynamic && !inputs.is_empty());
    Some(found)
}

/// The inputs that may be the object's name: what begins with the resource's own name, as drawn
/// names do, first; then what is called a name.
fn names(resource: &str, inputs: &PropertyMap) -> Vec<(String, String)> {
    let texts = || {
        let texts = inputs.iter().filter_map(|(key, value)| match value {
            PropertyValue::String(text) if !text.is_empty() && !key.starts_with("__") => {
                Some((key.clone(), text.clone()))
            }
            _ => None,
        });
        texts.collect::<Vec<_>>()
    };
    let (mut likely, others): (Vec<_>, Vec<_>) = texts()
        .into_iter()
        .partition(|(_, text)| text.starts_with(resource));
    let named = others.into_iter().filter(|(key, _)| {
        let key = key.to_ascii_lowercase();
        key.ends_with("name") || key == "bucket" || key == "identifier"
    });
    likely.extend(named);
    likely
}

/// Inputs by which a repeated create is known for the same, in lower case.
const TOKENS: [&str; 6] = [
    "idempotencytoken",
    "idempotencykey",
    "clienttoken",
    "clientrequesttoken",
    "creationtoken",
    "callerreference",
];

/// The idempotency tokens among the inputs. One that is secret is not sent in place of an id, which
/// may be written to any log.
fn tokens(inputs: &PropertyMap) -> Vec<(String, String)> {
    let tokens = inputs.iter().filter_map(|(key, value)| match value {
        PropertyValue::String(text) if !text.is_empty() => {
            let is_token = TOKENS.contains(&key.to_ascii_lowercase().as_str());
            is_token.then(|| (key.clone(), text.clone()))
        }
        _ => None,
    });
    tokens.collect()
}

/// Whether the description has the name, and contradicts nothing that was asked for.
fn agrees(wanted: &PropertyMap, property: &str, described: &PropertyMap) -> bool {
    let described = unwrapped_map(described);
    let same = |key: &str, value: &PropertyValue| {
        described.get(key).map(|found| deep_equals(found, value))
    };
    let has_name = wanted
        .get(property)
        .is_some_and(|name| same(property, name) == Some(true));
    has_name
        && wanted
            .iter()
            .filter(|(key, _)| !key.starts_with("__"))
            .all(|(key, value)| same(key, value).unwrap_or(true))
}
