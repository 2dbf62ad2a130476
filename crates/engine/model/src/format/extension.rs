//! Extensions of packages, in a state file and in a journal.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::error::StateError;
use super::fields::StateFields;
use crate::package::Parameterization;

pub(crate) fn json(extension: &Parameterization) -> Value {
    json!({
        "name": extension.name,
        "version": extension.version.to_string(),
        "value": STANDARD.encode(&extension.value),
    })
}

pub(crate) fn read(mut fields: StateFields) -> Result<Parameterization, StateError> {
    let version = fields.string("version")?;
    let value = fields.string("value")?;
    Ok(Parameterization {
        name: fields.required("name")?,
        version: semver::Version::parse(&version)
            .map_err(|_| fields.wrong_type("version", "a version"))?,
        value: STANDARD
            .decode(value)
            .map_err(|_| fields.wrong_type("value", "base64"))?,
    })
}
