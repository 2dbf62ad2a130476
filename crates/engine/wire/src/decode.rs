//! From a peer to the engine.
//!
//! Secrets and resource references are always kept. A peer may send anything: what does not fit
//! is an error, never a guess.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nimbus_engine_model::format::signature;
use nimbus_engine_model::{
    Archive, Asset, OutputValue, PropertyMap, PropertyValue, ResourceReference, Urn,
};
use nimbus_engine_proto::{Kind, ListValue, Struct, Value};

use crate::error::{WireError, WireProblem};
use crate::{UnknownEncoding, reserved};

/// What the engine is ready to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AcceptedValues {
    pub unknowns: UnknownEncoding,
    pub outputs: Outputs,
}

/// What becomes of output values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Outputs {
    /// Their value, as secret or unknown as they are; dependencies are lost.
    #[default]
    Flatten,
    Keep,
    /// Kept, and secrets and unknown values become outputs as well.
    Upgrade,
}

/// Properties as a peer sent them. Reads an absent struct as no properties.
pub fn decode(
    properties: Option<Struct>,
    expect: AcceptedValues,
) -> Result<PropertyMap, WireError> {
    decode_fields(properties.unwrap_or_default(), expect)
}

/// One value; `None` when it is dropped because it is not known.
pub fn decode_value(
    value: Value,
    expect: AcceptedValues,
) -> Result<Option<PropertyValue>, WireError> {
    let value = match value.kind {
        None | Some(Kind::NullValue(_)) => PropertyValue::Null,
        Some(Kind::BoolValue(value)) => PropertyValue::Bool(value),
        Some(Kind::NumberValue(value)) => PropertyValue::Number(value),
        Some(Kind::StringValue(text)) if is_unknown(&text, expect) => return unknown(expect),
        Some(Kind::StringValue(text)) => PropertyValue::String(text),
        Some(Kind::ListValue(list)) => PropertyValue::Array(decode_items(list, expect)?),
        Some(Kind::StructValue(object)) => return decode_object(object, expect),
    };
    Ok(Some(value))
}

fn decode_fields(object: Struct, expect: AcceptedValues) -> Result<PropertyMap, WireError> {
    let mut map = PropertyMap::new();
    for (key, value) in object.fields {
        match decode_value(value, expect) {
            Ok(Some(value)) => drop(map.insert(key, value)),
            Ok(None) => {}
            Err(error) => return Err(error.under_key(&key)),
        }
    }
    Ok(map)
}

/// A dropped element leaves null in its place, so that the others keep theirs.
fn decode_items(list: ListValue, expect: AcceptedValues) -> Result<Vec<PropertyValue>, WireError> {
    let decode_item = |(index, value)| match decode_value(value, expect) {
        Ok(value) => Ok(value.unwrap_or_default()),
        Err(error) => Err(error.under_index(index)),
    };
    list.values
        .into_iter()
        .enumerate()
        .map(decode_item)
        .collect()
}

/// A preview gives a program this text for a configuration value that nobody knows yet. What the program
/// writes around it, a name or a whole document, is not known either: taken literally, a plan would promise
/// values that no deploy can have.
fn is_unknown(text: &str, expect: AcceptedValues) -> bool {
    let within = || expect.unknowns == UnknownEncoding::Keep && text.contains(reserved::UNKNOWN);
    reserved::is_unknown(text) || within()
}

fn unknown(expect: AcceptedValues) -> Result<Option<PropertyValue>, WireError> {
    match (expect.unknowns, expect.outputs) {
        (UnknownEncoding::Reject, _) => Err(WireError::new(WireProblem::Unknown)),
        (UnknownEncoding::Drop, _) => Ok(None),
        (UnknownEncoding::Keep, Outputs::Upgrade) => Ok(Some(output(OutputValue::default()))),
        (UnknownEncoding::Keep, _) => Ok(Some(PropertyValue::Computed)),
    }
}

fn output(value: OutputValue) -> PropertyValue {
    PropertyValue::Output(Box::new(value))
}

fn decode_object(
    mut object: Struct,
    expect: AcceptedValues,
) -> Result<Option<PropertyValue>, WireError> {
    let Some(kind) = object.fields.remove(signature::KEY) else {
        return decode_fields(object, expect).map(|map| Some(PropertyValue::Object(map)));
    };
    let Some(Kind::StringValue(kind)) = kind.kind else {
        return Err(WireError::new(WireProblem::Signature));
    };
    match kind.as_str() {
        signature::SECRET => decode_secret(object, expect),
        signature::OUTPUT => decode_output(object, expect),
        signature::RESOURCE_REFERENCE => decode_reference(object, expect).map(Some),
        signature::ASSET => decode_asset(object).map(Some),
        signature::ARCHIVE => decode_archive(object).map(Some),
        signature::BYTES => decode_byte_string(object).map(Some),
        _ => Err(WireError::new(WireProblem::Signature)),
    }
}

fn decode_secret(
    mut object: Struct,
    expect: AcceptedValues,
) -> Result<Option<PropertyValue>, WireError> {
    let value = object.fields.remove("value");
    let value = value.ok_or_else(|| WireError::malformed("secret", "it has no value"))?;
    let Some(value) = decode_value(value, expect)? else {
        return Ok(None);
    };
    Ok(Some(mark_secret(value, expect)))
}

fn mark_secret(value: PropertyValue, expect: AcceptedValues) -> PropertyValue {
    match (expect.outputs, value) {
        (Outputs::Upgrade, PropertyValue::Output(mut inner)) => {
            inner.secret = true;
            PropertyValue::Output(inner)
        }
        (Outputs::Upgrade, value) => output(OutputValue {
            value: Some(value),
            secret: true,
            dependencies: Vec::new(),
        }),
        (Outputs::Flatten | Outputs::Keep, value) => PropertyValue::secret(value),
    }
}

fn decode_output(
    mut object: Struct,
    expect: AcceptedValues,
) -> Result<Option<PropertyValue>, WireError> {
    const WHAT: &str = "output value";
    let secret = match object.fields.remove("secret").map(|value| value.kind) {
        None => false,
        Some(Some(Kind::BoolValue(secret))) => secret,
        Some(_) => return Err(WireError::malformed(WHAT, "secret is not a boolean")),
    };
    let dependencies = decode_dependencies(object.fields.remove("dependencies"))?;
    let value = match object.fields.remove("value") {
        Some(value) => decode_value(value, expect)?,
        None if expect.unknowns == UnknownEncoding::Reject => {
            return Err(WireError::new(WireProblem::Unknown));
        }
        None => None,
    };
    if expect.outputs == Outputs::Flatten {
        let Some(value) = value.map_or_else(|| unknown(expect), |value| Ok(Some(value)))? else {
            return Ok(None);
        };
        return Ok(Some(if secret {
            PropertyValue::secret(value)
        } else {
            value
        }));
    }
    let value = value.filter(|value| *value != PropertyValue::Computed);
    Ok(Some(output(OutputValue {
        value,
        secret,
        dependencies,
    })))
}

fn decode_dependencies(value: Option<Value>) -> Result<Vec<Urn>, WireError> {
    const WHAT: &str = "output value";
    let list = match value.map(|value| value.kind) {
        None => return Ok(Vec::new()),
        Some(Some(Kind::ListValue(list))) => list,
        Some(_) => return Err(WireError::malformed(WHAT, "dependencies are not a list")),
    };
    let parse = |value: Value| match value.kind {
        Some(Kind::StringValue(text)) => {
            Urn::parse(&text).map_err(|_| WireError::malformed(WHAT, "a dependency is not a URN"))
        }
        _ => Err(WireError::malformed(WHAT, "a dependency is not a string")),
    };
    list.values.into_iter().map(parse).collect()
}

fn decode_reference(
    mut object: Struct,
    expect: AcceptedValues,
) -> Result<PropertyValue, WireError> {
    const WHAT: &str = "resource reference";
    let urn = text_field(&mut object, "urn", WHAT)?
        .ok_or_else(|| WireError::malformed(WHAT, "it has no urn"))?;
    let urn = Urn::parse(&urn).map_err(|_| WireError::malformed(WHAT, "its urn is not a URN"))?;
    let id = match object.fields.remove("id") {
        None => None,
        Some(id) => Some(Box::new(decode_reference_id(id, expect)?)),
    };
    let package_version = text_field(&mut object, "packageVersion", WHAT)?.unwrap_or_default();
    Ok(PropertyValue::ResourceReference(ResourceReference {
        urn,
        id,
        package_version,
    }))
}

/// The id of a custom resource. Unknown sentinels and the empty string say that it is not known.
fn decode_reference_id(id: Value, expect: AcceptedValues) -> Result<PropertyValue, WireError> {
    let keep = AcceptedValues {
        unknowns: UnknownEncoding::Keep,
        outputs: Outputs::Flatten,
    };
    let id = match decode_value(id, keep)? {
        Some(PropertyValue::String(id)) if id.is_empty() => PropertyValue::Computed,
        Some(id @ (PropertyValue::String(_) | PropertyValue::Computed)) => id,
        _ => {
            return Err(WireError::malformed(
                "resource reference",
                "its id is not a string",
            ));
        }
    };
    if id == PropertyValue::Computed && expect.unknowns == UnknownEncoding::Reject {
        return Err(WireError::new(WireProblem::Unknown));
    }
    Ok(id)
}

/// SDKs add marker keys of their own; only what is named here is read.
fn decode_asset(mut object: Struct) -> Result<PropertyValue, WireError> {
    const WHAT: &str = "asset";
    let hash = text_field(&mut object, "hash", WHAT)?.unwrap_or_default();
    let text = text_field(&mut object, "text", WHAT)?;
    let path = text_field(&mut object, "path", WHAT)?.unwrap_or_default();
    let uri = text_field(&mut object, "uri", WHAT)?.unwrap_or_default();
    let asset = if !path.is_empty() {
        Asset::Path { hash, path }
    } else if !uri.is_empty() {
        Asset::Uri { hash, uri }
    } else if let Some(text) = text {
        Asset::Text { hash, text }
    } else if hash.is_empty() || hash == reserved::EMPTY_ASSET_HASH {
        // Some peers leave an empty text out.
        Asset::Text {
            hash,
            text: String::new(),
        }
    } else {
        Asset::HashOnly { hash }
    };
    Ok(PropertyValue::Asset(asset))
}

fn decode_archive(mut object: Struct) -> Result<PropertyValue, WireError> {
    const WHAT: &str = "archive";
    let hash = text_field(&mut object, "hash", WHAT)?.unwrap_or_default();
    let path = text_field(&mut object, "path", WHAT)?.unwrap_or_default();
    let uri = text_field(&mut object, "uri", WHAT)?.unwrap_or_default();
    let assets = object.fields.remove("assets").map(|value| value.kind);
    let archive = if !path.is_empty() {
        Archive::Path { hash, path }
    } else if !uri.is_empty() {
        Archive::Uri { hash, uri }
    } else {
        match assets {
            Some(Some(Kind::StructValue(members))) => Archive::Assets {
                hash,
                assets: decode_members(members)?,
            },
            Some(_) => return Err(WireError::malformed(WHAT, "its assets are not an object")),
            None if hash.is_empty() || hash == reserved::EMPTY_ARCHIVE_HASH => Archive::Assets {
                hash,
                assets: BTreeMap::new(),
            },
            None => Archive::HashOnly { hash },
        }
    };
    Ok(PropertyValue::Archive(archive))
}

fn decode_members(members: Struct) -> Result<BTreeMap<String, PropertyValue>, WireError> {
    let decode_member = |(name, value): (String, Value)| {
        let member =
            decode_value(value, AcceptedValues::default()).map_err(|e| e.under_key(&name))?;
        match member {
            Some(member @ (PropertyValue::Asset(_) | PropertyValue::Archive(_))) => {
                Ok((name, member))
            }
            _ => Err(
                WireError::malformed("archive", "a member is neither asset nor archive")
                    .under_key(&name),
            ),
        }
    };
    members.fields.into_iter().map(decode_member).collect()
}

fn decode_byte_string(mut object: Struct) -> Result<PropertyValue, WireError> {
    const WHAT: &str = "byte string";
    let value = text_field(&mut object, "value", WHAT)?
        .ok_or_else(|| WireError::malformed(WHAT, "it has no value"))?;
    let bytes = STANDARD
        .decode(value)
        .map_err(|_| WireError::malformed(WHAT, "its value is not base64"))?;
    Ok(String::from_utf8(bytes).map_or_else(
        |error| PropertyValue::Bytes(error.into_bytes()),
        PropertyValue::String,
    ))
}

fn text_field(
    object: &mut Struct,
    key: &str,
    what: &'static str,
) -> Result<Option<String>, WireError> {
    match object.fields.remove(key).map(|value| value.kind) {
        None => Ok(None),
        Some(Some(Kind::StringValue(text))) => Ok(Some(text)),
        Some(_) => {
            Err(WireError::malformed(what, "a part that must be a string is not").under_key(key))
        }
    }
}
