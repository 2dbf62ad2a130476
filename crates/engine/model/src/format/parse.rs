//! The outline of a state file.
//!
//! Everything small becomes a JSON tree and is taken apart later; resources are converted one by
//! one while they are read, so that a large file is never in memory as a tree. Keys may come in any
//! order, and the version may come last: nothing here depends on it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::decode::SealedSecret;
use super::error::{StateError, StatePart};
use super::fields::StateFields;
use super::resource;
use crate::resource::{OperationKind, ResourceState};

/// A file with either form of content.
#[derive(Default)]
pub(super) struct ParsedFile {
    pub(super) checkpoint: Option<ParsedCheckpoint>,
    /// `None` when there is no such key; `Some(None)` when it is null.
    pub(super) deployment: Option<Option<ParsedDeployment>>,
    pub(super) fields: Map<String, Value>,
}

#[derive(Default)]
pub(super) struct ParsedCheckpoint {
    pub(super) latest: Option<ParsedDeployment>,
    pub(super) fields: Map<String, Value>,
}

#[derive(Default)]
pub(super) struct ParsedDeployment {
    pub(super) resources: Vec<ResourceState>,
    pub(super) pending_operations: Vec<(OperationKind, ResourceState)>,
    pub(super) fields: Map<String, Value>,
}

/// What is collected on the way.
#[derive(Default)]
struct ParseContext {
    secrets: Vec<SealedSecret>,
    /// Why reading stopped, when it was not the JSON.
    problem: Option<StateError>,
}

pub(super) fn parse(bytes: &[u8]) -> Result<(ParsedFile, Vec<SealedSecret>), StateError> {
    if bytes.is_empty() {
        return Err(StateError::Empty);
    }
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(StateError::NulByte { offset });
    }
    let mut session = ParseContext::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let parsed = ObjectSeed::<ParsedFile>::new(&mut session)
        .deserialize(&mut json)
        .and_then(|parsed| json.end().map(|()| parsed));
    match (parsed, session.problem) {
        (Ok(Some(file)), _) => Ok((file, session.secrets)),
        (Ok(None), _) => Err(StateError::NotAState {
            problem: "it is null",
        }),
        (Err(_), Some(problem)) => Err(problem),
        (Err(error), None) => Err(json_error(&error)),
    }
}

pub(crate) fn json_error(error: &serde_json::Error) -> StateError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    // The message repeats the position, which the variants carry.
    let message = text
        .split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned();
    if error.is_eof() {
        StateError::Truncated { line, column }
    } else if message.starts_with("recursion limit") {
        StateError::TooDeep { line, column }
    } else if error.is_data() {
        StateError::Shape {
            line,
            column,
            message,
        }
    } else {
        StateError::Syntax {
            line,
            column,
            message,
        }
    }
}

/// An object whose keys are dealt with as they come.
trait FromKeys: Default {
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: String,
        map: &mut A,
        session: &mut ParseContext,
    ) -> Result<(), A::Error>;
}

impl FromKeys for ParsedFile {
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: String,
        map: &mut A,
        session: &mut ParseContext,
    ) -> Result<(), A::Error> {
        match key.as_str() {
            "checkpoint" => self.checkpoint = map.next_value_seed(ObjectSeed::new(session))?,
            "deployment" => self.deployment = Some(map.next_value_seed(ObjectSeed::new(session))?),
            _ => drop(self.fields.insert(key, map.next_value()?)),
        }
        Ok(())
    }
}

impl FromKeys for ParsedCheckpoint {
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: String,
        map: &mut A,
        session: &mut ParseContext,
    ) -> Result<(), A::Error> {
        match key.as_str() {
            "latest" => self.latest = map.next_value_seed(ObjectSeed::new(session))?,
            _ => drop(self.fields.insert(key, map.next_value()?)),
        }
        Ok(())
    }
}

impl FromKeys for ParsedDeployment {
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: String,
        map: &mut A,
        session: &mut ParseContext,
    ) -> Result<(), A::Error> {
        match key.as_str() {
            "resources" => {
                self.resources = map.next_value_seed(ListSeed {
                    session,
                    read: read_resource,
                })?;
            }
            "pending_operations" => {
                self.pending_operations = map.next_value_seed(ListSeed {
                    session,
                    read: read_pending,
                })?;
            }
            _ => drop(self.fields.insert(key, map.next_value()?)),
        }
        Ok(())
    }
}

struct ObjectSeed<'s, T> {
    session: &'s mut ParseContext,
    kind: PhantomData<T>,
}

impl<'s, T> ObjectSeed<'s, T> {
    fn new(session: &'s mut ParseContext) -> Self {
        Self {
            session,
            kind: PhantomData,
        }
    }
}

impl<'de, T: FromKeys> DeserializeSeed<'de> for ObjectSeed<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: FromKeys> Visitor<'de> for ObjectSeed<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        let mut object = T::default();
        while let Some(key) = map.next_key()? {
            object.take(key, &mut map, self.session)?;
        }
        Ok(Some(object))
    }
}

type ReadItem<T> = fn(Map<String, Value>, usize, &mut Vec<SealedSecret>) -> Result<T, StateError>;

/// A list whose items are converted as they come.
struct ListSeed<'s, T> {
    session: &'s mut ParseContext,
    read: ReadItem<T>,
}

impl<'de, T> DeserializeSeed<'de> for ListSeed<'_, T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T> Visitor<'de> for ListSeed<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(map) = seq.next_element()? {
            match (self.read)(map, items.len(), &mut self.session.secrets) {
                Ok(item) => items.push(item),
                Err(problem) => {
                    self.session.problem = Some(problem);
                    return Err(A::Error::custom("see the session's problem"));
                }
            }
        }
        Ok(items)
    }
}

fn read_resource(
    map: Map<String, Value>,
    index: usize,
    secrets: &mut Vec<SealedSecret>,
) -> Result<ResourceState, StateError> {
    resource::read(map, StatePart::Resource { index, urn: None }, secrets)
}

fn read_pending(
    map: Map<String, Value>,
    index: usize,
    secrets: &mut Vec<SealedSecret>,
) -> Result<(OperationKind, ResourceState), StateError> {
    read_operation(
        map,
        StatePart::PendingOperation { index, urn: None },
        secrets,
    )
}

pub(crate) fn read_operation(
    map: Map<String, Value>,
    place: StatePart,
    secrets: &mut Vec<SealedSecret>,
) -> Result<(OperationKind, ResourceState), StateError> {
    let mut fields = StateFields::new(map, place.clone());
    let kind = fields.required("type")?;
    let Some(kind) = OperationKind::parse(&kind) else {
        return Err(StateError::UnknownName {
            place,
            field: "type",
            text: kind,
        });
    };
    let resource = resource::read(fields.object("resource")?, place, secrets)?;
    Ok((kind, resource))
}
