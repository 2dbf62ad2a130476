//! Properties as they are written to the public stream: like in a state file, with blank secrets.

use nimbus_engine_model::format::write_property;
use nimbus_engine_model::secrets::{CryptError, Crypter};
use nimbus_engine_model::{Asset, PropertyMap, PropertyValue, REDACTED};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

pub(super) fn blinded_map(map: &PropertyMap) -> Map<String, Value> {
    let mut shown = PropertyValue::Object(map.clone());
    elide(&mut shown);
    let text = write_property(&shown, &Blind).expect("a crypter that knows no failure");
    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => map,
        // Nested more deeply than JSON readers go; such a value cannot be shown.
        _ => Map::new(),
    }
}

/// Takes out the content of files that are given as text: a file can be of any size, and its hash
/// says whether it changed.
fn elide(value: &mut PropertyValue) {
    match value {
        PropertyValue::Asset(Asset::Text { text, .. }) => *text = "<contents elided>".to_owned(),
        // Nothing of a secret is shown.
        PropertyValue::Secret(_) => {}
        other => other.parts_mut().for_each(elide),
    }
}

/// "Encrypts" everything to the same words, for good.
struct Blind;

impl Crypter for Blind {
    fn encrypt(&self, _plaintext: &str) -> Result<String, CryptError> {
        Ok(REDACTED.to_owned())
    }

    fn decrypt(&self, _ciphertext: &str) -> Result<Zeroizing<String>, CryptError> {
        Err(CryptError::NoProvider)
    }
}
