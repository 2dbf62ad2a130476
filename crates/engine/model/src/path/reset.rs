//! `ignoreChanges`: putting old values back into new inputs.
//!
//! The rules decide what a user's infrastructure looks like, so they follow the official engine to
//! the letter, including what happens on a mismatch: places that can be reset are reset, and the
//! answer `false` means that some place could not be (an element was added to or removed from an
//! array, or something on the way exists on one side only). Array lengths never change.

use super::{PathSegment, PropertyPath};
use crate::value::{PropertyMap, PropertyValue};

const NULL: PropertyValue = PropertyValue::Null;

/// Both sides at one depth, with what was learnt about secrecy on the way down.
#[derive(Clone, Copy)]
struct Secrecy {
    old: bool,
    new: bool,
}

impl Secrecy {
    /// A value from a secret place must not become public in its new place.
    fn carry(self, value: &PropertyValue) -> PropertyValue {
        if self.old && !self.new {
            PropertyValue::secret(value.clone())
        } else {
            value.clone()
        }
    }
}

impl PropertyPath {
    /// Gives every place in `new` that this path names the value that it has in `old`. Keys that
    /// are missing from `old` are removed; nothing is created on the way to the last step.
    pub fn reset(&self, old: &PropertyMap, new: &mut PropertyMap) -> bool {
        let Some((first, rest)) = self.segments().split_first() else {
            return false;
        };
        let secrecy = Secrecy {
            old: false,
            new: false,
        };
        match first {
            PathSegment::Key(_) if first.is_wildcard() => every_key(rest, old, new, secrecy),
            PathSegment::Key(key) => one_key(key, rest, Some(old), new, secrecy),
            // A map has no elements: that place is equally absent from both.
            PathSegment::Index(index) => *index >= 0,
        }
    }
}

fn reset(
    path: &[PathSegment],
    old: &PropertyValue,
    new: &mut PropertyValue,
    outer: Secrecy,
) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return false;
    };
    let (old, old_secret) = unwrap(old);
    let (new, new_secret) = unwrap_mut(new);
    let secrecy = Secrecy {
        old: outer.old || old_secret,
        new: outer.new || new_secret,
    };
    match first {
        PathSegment::Index(index) => {
            usize::try_from(*index).is_ok_and(|index| one_index(index, rest, old, new, secrecy))
        }
        PathSegment::Key(_) if first.is_wildcard() => everything(rest, old, new, secrecy),
        PathSegment::Key(key) => match new {
            PropertyValue::Object(new) => one_key(key, rest, old.as_object(), new, secrecy),
            // Not an object now. That is a mismatch only if the place exists in the old value.
            _ if rest.is_empty() => old.as_object().is_none_or(|old| !old.contains_key(key)),
            _ => old.as_object().is_none(),
        },
    }
}

fn one_key(
    key: &str,
    rest: &[PathSegment],
    old: Option<&PropertyMap>,
    new: &mut PropertyMap,
    secrecy: Secrecy,
) -> bool {
    if rest.is_empty() {
        match old.and_then(|old| old.get(key)) {
            Some(value) => new.insert(key.to_owned(), secrecy.carry(value)),
            None => new.remove(key),
        };
        return true;
    }
    let Some(old) = old else {
        return false;
    };
    match (old.get(key), new.get_mut(key)) {
        (None, None) => true,
        (Some(_), None) => false,
        (old, Some(new)) => reset(rest, old.unwrap_or(&NULL), new, secrecy),
    }
}

fn one_index(
    index: usize,
    rest: &[PathSegment],
    old: &PropertyValue,
    new: &mut PropertyValue,
    secrecy: Secrecy,
) -> bool {
    let (old, new) = match (old, new) {
        (PropertyValue::Array(old), PropertyValue::Array(new)) => (old, new),
        (PropertyValue::Array(_), _) | (_, PropertyValue::Array(_)) => return false,
        _ => return true,
    };
    match (old.get(index), new.get_mut(index)) {
        (Some(old), Some(new)) if rest.is_empty() => {
            *new = secrecy.carry(old);
            true
        }
        (Some(old), Some(new)) => reset(rest, old, new, secrecy),
        (None, None) => rest.is_empty(),
        _ => false,
    }
}

fn everything(
    rest: &[PathSegment],
    old: &PropertyValue,
    new: &mut PropertyValue,
    secrecy: Secrecy,
) -> bool {
    match (old, new) {
        (PropertyValue::Object(old), PropertyValue::Object(new)) => {
            every_key(rest, old, new, secrecy)
        }
        (PropertyValue::Array(old), PropertyValue::Array(new)) => {
            every_index(rest, old, new, secrecy)
        }
        // The kind changed as a whole: there is nothing to put back, which is no mismatch when
        // the wildcard is the end of the path.
        (_, PropertyValue::Object(_) | PropertyValue::Array(_)) => rest.is_empty(),
        _ => false,
    }
}

fn every_key(
    rest: &[PathSegment],
    old: &PropertyMap,
    new: &mut PropertyMap,
    secrecy: Secrecy,
) -> bool {
    if rest.is_empty() {
        *new = old
            .iter()
            .map(|(key, value)| (key.clone(), secrecy.carry(value)))
            .collect();
        return true;
    }
    old.iter().all(|(key, old)| {
        new.get_mut(key)
            .is_some_and(|new| reset(rest, old, new, secrecy))
    })
}

fn every_index(
    rest: &[PathSegment],
    old: &[PropertyValue],
    new: &mut [PropertyValue],
    secrecy: Secrecy,
) -> bool {
    for (old, new) in old.iter().zip(new.iter_mut()) {
        if rest.is_empty() {
            *new = secrecy.carry(old);
        } else if !reset(rest, old, new, secrecy) {
            return false;
        }
    }
    old.len() == new.len()
}

fn unwrap(value: &PropertyValue) -> (&PropertyValue, bool) {
    match value {
        PropertyValue::Secret(inner) => (unwrap(inner).0, true),
        other => (other, false),
    }
}

fn unwrap_mut(value: &mut PropertyValue) -> (&mut PropertyValue, bool) {
    match value {
        PropertyValue::Secret(inner) => (unwrap_mut(inner).0, true),
        other => (other, false),
    }
}
