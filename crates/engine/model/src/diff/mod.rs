//! Structural differences between property maps.
//!
//! The comparison is the official engine's. A null is as good as absent, secrets compare by what is
//! inside them and never equal a plain value, assets and archives compare by hash, references by
//! URN and id. The result borrows from both sides: nothing is copied.

mod detailed;
mod equal;

use std::collections::BTreeMap;

use crate::path::PropertyPath;
use crate::value::{PropertyMap, PropertyValue};

pub use detailed::PathChange;
pub use equal::{deep_equals, maps_equal};

/// What a comparison treats as a difference.
#[derive(Clone, Copy, Default)]
pub struct DiffOptions<'a> {
    /// Skip keys that start with `__`: book-keeping of SDKs and providers.
    pub ignore_internal: bool,
    /// Skip these places and everything below them.
    pub ignore_paths: &'a [PropertyPath],
    pub unknowns: UnknownComparison,
}

/// How a value that is not known yet compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum UnknownComparison {
    /// It equals only another unknown.
    #[default]
    Differ,
    /// It equals everything, and may turn out to be absent: for checking a plan's promise.
    MatchAnything,
}

/// How two maps differ, key by key.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ObjectDiff<'a> {
    pub adds: BTreeMap<&'a str, &'a PropertyValue>,
    pub deletes: BTreeMap<&'a str, &'a PropertyValue>,
    pub sames: BTreeMap<&'a str, &'a PropertyValue>,
    pub updates: BTreeMap<&'a str, ValueDiff<'a>>,
}

/// How two arrays differ, element by element at the same index.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ArrayDiff<'a> {
    pub adds: BTreeMap<usize, &'a PropertyValue>,
    pub deletes: BTreeMap<usize, &'a PropertyValue>,
    pub sames: BTreeMap<usize, &'a PropertyValue>,
    pub updates: BTreeMap<usize, ValueDiff<'a>>,
}

/// Two values that differ.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueDiff<'a> {
    pub old: &'a PropertyValue,
    pub new: &'a PropertyValue,
    /// Where they differ, when both are arrays or both are objects.
    pub inner: Option<NestedDiff<'a>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NestedDiff<'a> {
    Array(ArrayDiff<'a>),
    Object(ObjectDiff<'a>),
}

/// Whether a key is book-keeping that users are not shown.
pub fn is_internal_key(key: &str) -> bool {
    key.starts_with("__")
}

/// How `new` differs from `old`; `None` when it does not.
pub fn diff<'a>(
    old: &'a PropertyMap,
    new: &'a PropertyMap,
    options: &DiffOptions<'_>,
) -> Option<ObjectDiff<'a>> {
    DiffWalk {
        options,
        path: PropertyPath::default(),
    }
    .objects(old, new)
}

/// As [`diff`], for single values.
pub fn diff_values<'a>(
    old: &'a PropertyValue,
    new: &'a PropertyValue,
    options: &DiffOptions<'_>,
) -> Option<ValueDiff<'a>> {
    DiffWalk {
        options,
        path: PropertyPath::default(),
    }
    .values(old, new)
}

struct DiffWalk<'o> {
    options: &'o DiffOptions<'o>,
    /// Where the comparison is.
    path: PropertyPath,
}

impl DiffWalk<'_> {
    fn ignores(&self, key: &str) -> bool {
        if self.options.ignore_internal && is_internal_key(key) {
            return true;
        }
        let ignored = self.options.ignore_paths;
        !ignored.is_empty() && {
            let place = self.path.child(key);
            ignored.iter().any(|path| path.contains(&place))
        }
    }

    fn objects<'a>(
        &mut self,
        old: &'a PropertyMap,
        new: &'a PropertyMap,
    ) -> Option<ObjectDiff<'a>> {
        let mut diff = ObjectDiff::default();
        for (key, was) in old {
            if !self.ignores(key) {
                self.key(&mut diff, key, was, new.get(key));
            }
        }
        for (key, is) in new {
            if !old.contains_key(key) && *is != PropertyValue::Null && !self.ignores(key) {
                diff.adds.insert(key, is);
            }
        }
        diff.any_changes().then_some(diff)
    }

    fn key<'a>(
        &mut self,
        diff: &mut ObjectDiff<'a>,
        key: &'a str,
        was: &'a PropertyValue,
        is: Option<&'a PropertyValue>,
    ) {
        let Some(is) = is else {
            let may_vanish = self.options.unknowns == UnknownComparison::MatchAnything
                && *was == PropertyValue::Computed;
            if *was != PropertyValue::Null && !may_vanish {
                diff.deletes.insert(key, was);
            }
            return;
        };
        self.path.push(key);
        let changed = self.values(was, is);
        self.path.pop();
        match changed {
            None => drop(diff.sames.insert(key, self.same(was, is))),
            Some(_) if *was == PropertyValue::Null => drop(diff.adds.insert(key, is)),
            Some(_) if *is == PropertyValue::Null => drop(diff.deletes.insert(key, was)),
            Some(change) => drop(diff.updates.insert(key, change)),
        }
    }

    fn values<'a>(
        &mut self,
        old: &'a PropertyValue,
        new: &'a PropertyValue,
    ) -> Option<ValueDiff<'a>> {
        let inner = match (old, new) {
            (PropertyValue::Array(was), PropertyValue::Array(is)) => {
                Some(NestedDiff::Array(self.arrays(was, is)?))
            }
            (PropertyValue::Object(was), PropertyValue::Object(is)) => {
                Some(NestedDiff::Object(self.objects(was, is)?))
            }
            _ if equal::values(old, new, self.options.unknowns) => return None,
            _ => None,
        };
        Some(ValueDiff { old, new, inner })
    }

    fn arrays<'a>(
        &mut self,
        old: &'a [PropertyValue],
        new: &'a [PropertyValue],
    ) -> Option<ArrayDiff<'a>> {
        let both = old.len().min(new.len());
        let mut diff = ArrayDiff {
            adds: new.iter().enumerate().skip(both).collect(),
            deletes: old.iter().enumerate().skip(both).collect(),
            ..ArrayDiff::default()
        };
        for (index, (was, is)) in old.iter().zip(new).enumerate() {
            self.path.push(index);
            let changed = self.values(was, is);
            self.path.pop();
            match changed {
                None => drop(diff.sames.insert(index, self.same(was, is))),
                Some(change) => drop(diff.updates.insert(index, change)),
            }
        }
        let unchanged = diff.adds.is_empty() && diff.deletes.is_empty() && diff.updates.is_empty();
        (!unchanged).then_some(diff)
    }

    /// Which of two equal values to report: the one that may be known.
    fn same<'a>(&self, old: &'a PropertyValue, new: &'a PropertyValue) -> &'a PropertyValue {
        match self.options.unknowns {
            UnknownComparison::Differ => old,
            UnknownComparison::MatchAnything => new,
        }
    }
}

impl<'a> ObjectDiff<'a> {
    pub fn any_changes(&self) -> bool {
        !(self.adds.is_empty() && self.deletes.is_empty() && self.updates.is_empty())
    }

    pub fn changed(&self, key: &str) -> bool {
        self.adds.contains_key(key)
            || self.deletes.contains_key(key)
            || self.updates.contains_key(key)
    }

    /// Every key that was added, deleted or updated, in order.
    pub fn changed_keys(&self) -> Vec<&'a str> {
        let mut keys: Vec<_> = self
            .adds
            .keys()
            .chain(self.deletes.keys())
            .chain(self.updates.keys())
            .copied()
            .collect();
        keys.sort_unstable();
        keys
    }
}

#[cfg(test)]
mod tests;
