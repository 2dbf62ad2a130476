//! What a peer that knows no secrets or no asset contents makes us put back.
//!
//! Outputs of such a peer come back unmarked. An output is taken to be secret when the input of
//! the same name was; objects are compared key by key, so that one secret inside does not hide the
//! whole object, while a list with a secret anywhere becomes secret as a whole, because providers
//! reorder lists.

use std::collections::BTreeMap;

use nimbus_engine_model::{Archive, Asset, PropertyMap, PropertyValue};

/// Marks in `outputs` what was secret in `inputs`.
pub(crate) fn mark_like(outputs: &mut PropertyMap, inputs: &PropertyMap) {
    for (key, output) in outputs {
        match (output, inputs.get(key)) {
            (_, None) => {}
            (PropertyValue::Object(output), Some(PropertyValue::Object(input))) => {
                mark_like(output, input);
            }
            (output, Some(input)) if input.contains_secrets() => mark(output),
            (_, Some(_)) => {}
        }
    }
}

/// Marks every output secret, for calls where nothing says which input went where.
pub(crate) fn mark_all(outputs: &mut PropertyMap) {
    outputs.values_mut().for_each(mark);
}

fn mark(value: &mut PropertyValue) {
    if let PropertyValue::Output(output) = value {
        output.secret = true;
    } else {
        *value = PropertyValue::secret(std::mem::take(value));
    }
}

/// Gives assets that came back as a hash their contents again, if `known` has them.
pub(crate) fn restore_contents(values: &mut PropertyMap, known: &PropertyMap) {
    let mut contents = AssetContents::default();
    known.values().for_each(|value| contents.collect(value));
    values
        .values_mut()
        .for_each(|value| contents.restore(value));
}

#[derive(Default)]
struct AssetContents {
    assets: BTreeMap<String, Asset>,
    archives: BTreeMap<String, Archive>,
}

impl AssetContents {
    fn collect(&mut self, value: &PropertyValue) {
        match value {
            PropertyValue::Asset(asset) => {
                if let Some(hash) = known(asset.hash()) {
                    self.assets.insert(hash.to_owned(), asset.clone());
                }
            }
            PropertyValue::Archive(archive) => {
                if let Some(hash) = known(archive.hash()) {
                    self.archives.insert(hash.to_owned(), archive.clone());
                }
            }
            other => other.parts().for_each(|part| self.collect(part)),
        }
    }

    fn restore(&self, value: &mut PropertyValue) {
        match value {
            PropertyValue::Asset(asset @ Asset::HashOnly { .. }) => {
                let known = known(asset.hash()).and_then(|hash| self.assets.get(hash));
                *asset = known.unwrap_or(asset).clone();
            }
            PropertyValue::Archive(archive @ Archive::HashOnly { .. }) => {
                let known = known(archive.hash()).and_then(|hash| self.archives.get(hash));
                *archive = known.unwrap_or(archive).clone();
            }
            other => other.parts_mut().for_each(|part| self.restore(part)),
        }
    }
}

fn known(hash: &str) -> Option<&str> {
    Some(hash).filter(|hash| !hash.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map<const N: usize>(entries: [(&str, PropertyValue); N]) -> PropertyMap {
        entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }

    fn secret(value: impl Into<PropertyValue>) -> PropertyValue {
        PropertyValue::secret(value.into())
    }

    #[test]
    fn outputs_are_marked_like_the_inputs_of_the_same_name() {
        let inputs = map([
            ("password", secret("p")),
            ("plain", "x".into()),
            (
                "object",
                map([("inner", secret("i")), ("open", "o".into())]).into(),
            ),
            ("list", vec![PropertyValue::from("a"), secret("b")].into()),
            ("absent", secret("gone")),
        ]);
        let mut outputs = map([
            ("password", "p".into()),
            ("plain", "x".into()),
            (
                "object",
                map([("inner", "i".into()), ("open", "o".into())]).into(),
            ),
            ("list", vec![PropertyValue::from("b"), "a".into()].into()),
            ("new", "n".into()),
        ]);
        mark_like(&mut outputs, &inputs);
        let expected = map([
            ("password", secret("p")),
            ("plain", "x".into()),
            (
                "object",
                map([("inner", secret("i")), ("open", "o".into())]).into(),
            ),
            ("list", secret(vec![PropertyValue::from("b"), "a".into()])),
            ("new", "n".into()),
        ]);
        assert_eq!(outputs, expected);
    }

    #[test]
    fn an_object_that_was_secret_as_a_whole_comes_back_secret_as_a_whole() {
        let inputs = map([("object", secret(map([("inner", "i".into())])))]);
        let mut outputs = map([("object", map([("inner", "i".into())]).into())]);
        mark_like(&mut outputs, &inputs);
        assert_eq!(outputs, inputs);
    }

    #[test]
    fn what_is_marked_already_is_marked_once() {
        let mut outputs = map([("a", secret("x"))]);
        mark_all(&mut outputs);
        assert_eq!(outputs, map([("a", secret("x"))]));
    }

    #[test]
    fn contents_come_back_for_known_hashes_only() {
        let text = |hash: &str| Asset::Text {
            hash: hash.into(),
            text: "body".into(),
        };
        let hash_only = |hash: &str| PropertyValue::Asset(Asset::HashOnly { hash: hash.into() });
        let folder = Archive::Path {
            hash: "h2".into(),
            path: "./d".into(),
        };
        let known = map([
            ("a", secret(PropertyValue::Asset(text("h1")))),
            ("b", vec![PropertyValue::Archive(folder.clone())].into()),
        ]);
        let mut values = map([
            ("x", hash_only("h1")),
            ("y", hash_only("other")),
            (
                "z",
                secret(PropertyValue::Archive(Archive::HashOnly {
                    hash: "h2".into(),
                })),
            ),
        ]);
        restore_contents(&mut values, &known);
        let expected = map([
            ("x", PropertyValue::Asset(text("h1"))),
            ("y", hash_only("other")),
            ("z", secret(PropertyValue::Archive(folder))),
        ]);
        assert_eq!(values, expected);
    }
}
