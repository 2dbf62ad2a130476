//! Taking known fields out of a JSON object. What remains is not known and is kept.
//!
//! A null is as good as absent, and so is an empty string where a name is expected: the official
//! engine leaves out what is empty.

use jiff::Timestamp;
use jiff::tz::Offset;
use serde_json::{Map, Value};

use super::error::{StateError, StatePart};
use super::time;
use crate::path::{PathSegment, PropertyPath};
use crate::urn::Urn;

pub(crate) struct StateFields {
    map: Map<String, Value>,
    pub(crate) place: StatePart,
}

type FieldResult<T> = Result<T, StateError>;

impl StateFields {
    pub(crate) fn new(map: Map<String, Value>, place: StatePart) -> Self {
        Self { map, place }
    }

    /// The fields of `value`, which must be an object.
    pub(crate) fn of(value: Value, place: StatePart, field: &str) -> FieldResult<Self> {
        match value {
            Value::Object(map) => Ok(Self::new(map, place)),
            _ => Err(wrong_type(&place, field, "an object")),
        }
    }

    /// What nobody took.
    pub(crate) fn rest(self) -> Map<String, Value> {
        self.map
    }

    pub(crate) fn raw(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    pub(crate) fn string(&mut self, field: &'static str) -> FieldResult<String> {
        match self.raw(field) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(self.wrong_type(field, "a string")),
        }
    }

    pub(crate) fn name(&mut self, field: &'static str) -> FieldResult<Option<String>> {
        Ok(Some(self.string(field)?).filter(|text| !text.is_empty()))
    }

    pub(crate) fn required(&mut self, field: &'static str) -> FieldResult<String> {
        let missing = StateError::MissingField {
            place: self.place.clone(),
            field,
        };
        self.name(field)?.ok_or(missing)
    }

    pub(crate) fn bool(&mut self, field: &'static str) -> FieldResult<bool> {
        match self.raw(field) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(value),
            Some(_) => Err(self.wrong_type(field, "a boolean")),
        }
    }

    pub(crate) fn number(&mut self, field: &'static str) -> FieldResult<f64> {
        match self.raw(field) {
            None => Ok(0.0),
            Some(value) => value
                .as_f64()
                .ok_or_else(|| self.wrong_type(field, "a number")),
        }
    }

    pub(crate) fn object(&mut self, field: &'static str) -> FieldResult<Map<String, Value>> {
        match self.raw(field) {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map),
            Some(_) => Err(self.wrong_type(field, "an object")),
        }
    }

    pub(crate) fn array(&mut self, field: &'static str) -> FieldResult<Vec<Value>> {
        match self.raw(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.wrong_type(field, "an array")),
        }
    }

    pub(crate) fn strings(&mut self, field: &'static str) -> FieldResult<Vec<String>> {
        let value = self.raw(field).unwrap_or(Value::Null);
        self.as_strings(field, value)
    }

    pub(crate) fn as_strings(&self, field: &str, value: Value) -> FieldResult<Vec<String>> {
        let wrong = || self.wrong_type(field, "an array of strings");
        match value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => items
                .into_iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text),
                    _ => Err(wrong()),
                })
                .collect(),
            _ => Err(wrong()),
        }
    }

    /// Property paths as text. Lists of keys and indices are taken as well: earlier versions of
    /// Nimbus wrote those, and the next write makes text of them, which others can read.
    pub(crate) fn paths(&mut self, field: &'static str) -> FieldResult<Vec<PropertyPath>> {
        let wrong = |fields: &Self| fields.wrong_type(field, "an array of property paths");
        let items = self.array(field)?;
        items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => PropertyPath::parse(&text).map_err(|_| wrong(self)),
                Value::Array(segments) => segments
                    .iter()
                    .map(segment)
                    .collect::<Option<Vec<_>>>()
                    .map(PropertyPath::new)
                    .ok_or_else(|| wrong(self)),
                _ => Err(wrong(self)),
            })
            .collect()
    }

    pub(crate) fn urn(&mut self, field: &'static str) -> FieldResult<Option<Urn>> {
        self.name(field)?
            .map(|text| self.as_urn(field, &text))
            .transpose()
    }

    pub(crate) fn urns(&mut self, field: &'static str) -> FieldResult<Vec<Urn>> {
        let value = self.raw(field).unwrap_or(Value::Null);
        self.as_urns(field, value)
    }

    /// Empty entries are left out: no engine means anything by them.
    pub(crate) fn as_urns(&self, field: &str, value: Value) -> FieldResult<Vec<Urn>> {
        let texts = self.as_strings(field, value)?;
        let named = texts.iter().filter(|text| !text.is_empty());
        named.map(|text| self.as_urn(field, text)).collect()
    }

    pub(crate) fn as_urn(&self, field: &str, text: &str) -> FieldResult<Urn> {
        let bad = || StateError::BadUrn {
            place: self.place.clone(),
            field: field.to_owned(),
            text: text.to_owned(),
        };
        Urn::parse(text).map_err(|_| bad())
    }

    pub(crate) fn time(&mut self, field: &'static str) -> FieldResult<Option<(Timestamp, Offset)>> {
        match self.raw(field) {
            None => Ok(None),
            Some(value) => {
                let read = value.as_str().and_then(time::read);
                read.map(Some)
                    .ok_or_else(|| self.wrong_type(field, "a time"))
            }
        }
    }

    pub(crate) fn wrong_type(&self, field: &str, expected: &'static str) -> StateError {
        wrong_type(&self.place, field, expected)
    }
}

fn segment(value: &Value) -> Option<PathSegment> {
    match value {
        Value::String(key) => Some(PathSegment::from(key.as_str())),
        other => other.as_i64().map(PathSegment::Index),
    }
}

fn wrong_type(place: &StatePart, field: &str, expected: &'static str) -> StateError {
    StateError::WrongType {
        place: place.clone(),
        field: field.to_owned(),
        expected,
    }
}
