//! Single property values as JSON text, outside a state file.

use serde_json::Value;

use super::decode::Decoder;
use super::encode::{self, SecretEncoding};
use super::error::{StateError, StatePart};
use super::gojson::{GoJsonWriter, Layout};
use super::sealed::{open_table, unseal};
use crate::path::PropertyPath;
use crate::secrets::Crypter;
use crate::value::PropertyValue;

/// Reads one value, opening its secrets.
pub fn read_property(json: &[u8], crypter: &dyn Crypter) -> Result<PropertyValue, StateError> {
    let json: Value =
        serde_json::from_slice(json).map_err(|error| super::parse::json_error(&error))?;
    let mut secrets = Vec::new();
    let mut value = Decoder::new(&mut secrets).value(json).map_err(|error| {
        let (place, path) = (StatePart::File, error.path());
        StateError::BadProperty {
            place,
            path,
            problem: error.problem,
        }
    })?;
    let nowhere = |_| (StatePart::File, PropertyPath::default());
    let mut opened = open_table(&secrets, crypter, nowhere)?;
    unseal(&mut value, &mut opened);
    Ok(value)
}

/// Writes one value on one line, with its secrets encrypted.
pub fn write_property(value: &PropertyValue, crypter: &dyn Crypter) -> Result<String, StateError> {
    let mut plaintexts = Vec::new();
    encode::each_secret(&mut PropertyPath::default(), value, &mut |_, content| {
        plaintexts.push(encode::plaintext(content));
    });
    let ciphertexts: Result<Vec<_>, _> = plaintexts
        .iter()
        .map(|plaintext| crypter.encrypt(plaintext))
        .collect();
    let mut writer = GoJsonWriter::new(Layout::Compact);
    let mut ciphertexts = ciphertexts.map_err(secret_error)?.into_iter();
    encode::value(
        &mut writer,
        value,
        &mut SecretEncoding::Sealed(&mut ciphertexts),
    );
    Ok(writer.finish_text())
}

fn secret_error(error: crate::secrets::CryptError) -> StateError {
    StateError::Secret {
        place: StatePart::File,
        path: PropertyPath::default(),
        error,
    }
}
