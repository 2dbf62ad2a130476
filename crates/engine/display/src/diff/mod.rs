//! Differences between two versions of a resource's properties, and how they are shown.
//!
//! A difference is a tree that holds only what differs. It comes from the provider's own list of
//! paths ([`detailed`]) or from comparing both sides ([`structural`]); [`render`] turns it into
//! lines. What lies inside a secret is never looked into: a secret differs as a whole.

mod detailed;
mod hide;
mod render;
mod structural;
mod text;
mod value;

use std::collections::BTreeMap;

use nimbus_engine_model::PropertyValue;

pub(crate) use detailed::{Sides, detailed};
pub(crate) use hide::hide;
pub(crate) use render::{Renderer, TextLimits};
pub(crate) use structural::structural;
pub(crate) use value::LinePrefix;

pub(crate) type DiffNodes = BTreeMap<String, DiffNode>;

/// A property that differs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DiffNode {
    pub(crate) change: PropertyChange,
    /// The difference is why the resource must be replaced.
    pub(crate) forces_replacement: bool,
}

impl DiffNode {
    pub(crate) fn new(change: PropertyChange) -> Self {
        Self {
            change,
            forces_replacement: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PropertyChange {
    Added(PropertyValue),
    Removed(PropertyValue),
    Set {
        old: PropertyValue,
        new: PropertyValue,
    },
    Object(DiffNodes),
    Array(BTreeMap<usize, DiffNode>),
}
