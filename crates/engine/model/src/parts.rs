//! What a value consists of, one level down: the one place that knows where values are inside
//! values, so that whoever looks for something names only what is special to it.

use std::collections::btree_map;
use std::{option, slice};

use crate::value::{Archive, PropertyValue};

/// The values directly inside a value.
pub struct ValueParts<'a>(PartsIter<'a>);

enum PartsIter<'a> {
    Items(slice::Iter<'a, PropertyValue>),
    Members(btree_map::Values<'a, String, PropertyValue>),
    Single(option::IntoIter<&'a PropertyValue>),
}

/// The values directly inside a value, to be changed.
pub struct PartsMut<'a>(InnerMut<'a>);

enum InnerMut<'a> {
    Items(slice::IterMut<'a, PropertyValue>),
    Members(btree_map::ValuesMut<'a, String, PropertyValue>),
    Single(option::IntoIter<&'a mut PropertyValue>),
}

impl PropertyValue {
    pub fn parts(&self) -> ValueParts<'_> {
        ValueParts(match self {
            Self::Array(items) => PartsIter::Items(items.iter()),
            Self::Object(map) | Self::Archive(Archive::Assets { assets: map, .. }) => {
                PartsIter::Members(map.values())
            }
            Self::Secret(inner) => PartsIter::Single(Some(&**inner).into_iter()),
            Self::Output(output) => PartsIter::Single(output.value.as_ref().into_iter()),
            Self::ResourceReference(reference) => {
                PartsIter::Single(reference.id.as_deref().into_iter())
            }
            Self::Null
            | Self::Bool(_)
            | Self::Number(_)
            | Self::String(_)
            | Self::Bytes(_)
            | Self::Asset(_)
            | Self::Archive(_)
            | Self::Computed => PartsIter::Single(None.into_iter()),
        })
    }

    pub fn parts_mut(&mut self) -> PartsMut<'_> {
        PartsMut(match self {
            Self::Array(items) => InnerMut::Items(items.iter_mut()),
            Self::Object(map) | Self::Archive(Archive::Assets { assets: map, .. }) => {
                InnerMut::Members(map.values_mut())
            }
            Self::Secret(inner) => InnerMut::Single(Some(&mut **inner).into_iter()),
            Self::Output(output) => InnerMut::Single(output.value.as_mut().into_iter()),
            Self::ResourceReference(reference) => {
                InnerMut::Single(reference.id.as_deref_mut().into_iter())
            }
            Self::Null
            | Self::Bool(_)
            | Self::Number(_)
            | Self::String(_)
            | Self::Bytes(_)
            | Self::Asset(_)
            | Self::Archive(_)
            | Self::Computed => InnerMut::Single(None.into_iter()),
        })
    }
}

impl<'a> Iterator for ValueParts<'a> {
    type Item = &'a PropertyValue;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            PartsIter::Items(items) => items.next(),
            PartsIter::Members(members) => members.next(),
            PartsIter::Single(single) => single.next(),
        }
    }
}

impl<'a> Iterator for PartsMut<'a> {
    type Item = &'a mut PropertyValue;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            InnerMut::Items(items) => items.next(),
            InnerMut::Members(members) => members.next(),
            InnerMut::Single(single) => single.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{OutputValue, ResourceReference};

    #[test]
    fn both_ways_of_looking_find_every_value_inside_a_value() {
        let leaf = || PropertyValue::from("leaf");
        let members = || [("a".to_owned(), leaf()), ("b".to_owned(), leaf())].into();
        let cases = [
            (PropertyValue::Array(vec![leaf(), leaf(), leaf()]), 3),
            (PropertyValue::Object(members()), 2),
            (
                PropertyValue::Archive(Archive::Assets {
                    hash: String::new(),
                    assets: members(),
                }),
                2,
            ),
            (PropertyValue::secret(leaf()), 1),
            (
                PropertyValue::Output(Box::new(OutputValue {
                    value: Some(leaf()),
                    ..OutputValue::default()
                })),
                1,
            ),
            (PropertyValue::Output(Box::default()), 0),
            (
                PropertyValue::ResourceReference(ResourceReference {
                    urn: crate::test_support::urn("x"),
                    id: Some(Box::new(leaf())),
                    package_version: String::new(),
                }),
                1,
            ),
            (leaf(), 0),
            (PropertyValue::Computed, 0),
        ];
        for (mut value, count) in cases {
            assert_eq!(value.parts().count(), count, "{value:?}");
            value.parts_mut().for_each(|part| *part = true.into());
            assert_eq!(value.parts_mut().count(), count, "{value:?}");
            assert!(value.parts().all(|part| *part == true.into()), "{value:?}");
        }
    }
}
