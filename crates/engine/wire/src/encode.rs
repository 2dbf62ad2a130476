//! From the engine to a peer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nimbus_engine_model::format::signature;
use nimbus_engine_model::{
    Archive, Asset, OutputValue, PropertyMap, PropertyValue, ResourceReference,
};
use nimbus_engine_proto::{Kind, ListValue, Struct, Value};

use crate::error::{WireError, WireProblem};
use crate::{UnknownEncoding, reserved};

/// What the receiver accepts. The default is a peer that understands nothing special and gets no
/// unknown values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Accept {
    pub unknowns: UnknownEncoding,
    /// Otherwise secrets are sent in the clear, unmarked.
    pub secrets: bool,
    /// Otherwise a reference becomes the id of the resource, or the URN of a component.
    pub resources: bool,
    /// Otherwise outputs become their value, marked secret or unknown by the other means.
    pub outputs: bool,
    /// Otherwise a string that is not UTF-8 is an error.
    pub byte_strings: bool,
    /// Send only the hashes of assets and archives.
    pub hashes_only: bool,
    /// Leave out top-level keys that begin with two underscores.
    pub skip_internal: bool,
}

/// Properties as a peer with these abilities can read them.
pub fn encode(properties: &PropertyMap, accept: Accept) -> Result<Struct, WireError> {
    let visible = properties
        .iter()
        .filter(|(key, _)| !(accept.skip_internal && is_internal(key)));
    encode_entries(visible, accept)
}

/// One value; `None` when it is dropped because it is not known.
pub fn encode_value(value: &PropertyValue, accept: Accept) -> Result<Option<Value>, WireError> {
    let kind = match value {
        PropertyValue::Null => Kind::NullValue(0),
        PropertyValue::Bool(value) => Kind::BoolValue(*value),
        PropertyValue::Number(value) => Kind::NumberValue(*value),
        PropertyValue::String(text) => Kind::StringValue(text.clone()),
        PropertyValue::Bytes(bytes) => byte_string(bytes, accept)?,
        PropertyValue::Array(items) => Kind::ListValue(encode_items(items, accept)?),
        PropertyValue::Object(map) => Kind::StructValue(encode_entries(map.iter(), accept)?),
        PropertyValue::Asset(asset) => encode_asset(asset, accept),
        PropertyValue::Archive(archive) => encode_archive(archive, accept)?,
        PropertyValue::Computed => return unknown(accept),
        PropertyValue::Secret(inner) => return encode_secret(inner, accept),
        PropertyValue::Output(output) => return encode_output(output, accept),
        PropertyValue::ResourceReference(reference) => {
            return encode_reference(reference, accept);
        }
    };
    Ok(Some(kind.into()))
}

fn is_internal(key: &str) -> bool {
    key.starts_with("__")
}

fn encode_entries<'a>(
    entries: impl Iterator<Item = (&'a String, &'a PropertyValue)>,
    accept: Accept,
) -> Result<Struct, WireError> {
    let mut fields = Struct::default().fields;
    for (key, value) in entries {
        if let Some(value) = encode_value(value, accept).map_err(|error| error.under_key(key))? {
            fields.insert(key.clone(), value);
        }
    }
    Ok(Struct { fields })
}

fn encode_items(items: &[PropertyValue], accept: Accept) -> Result<ListValue, WireError> {
    let mut values = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        values.extend(encode_value(item, accept).map_err(|error| error.under_index(index))?);
    }
    Ok(ListValue { values })
}

fn unknown(accept: Accept) -> Result<Option<Value>, WireError> {
    match accept.unknowns {
        UnknownEncoding::Keep => Ok(Some(text(reserved::UNKNOWN))),
        UnknownEncoding::Drop => Ok(None),
        UnknownEncoding::Reject => Err(WireError::new(WireProblem::Unknown)),
    }
}

fn byte_string(bytes: &[u8], accept: Accept) -> Result<Kind, WireError> {
    if !accept.byte_strings {
        return Err(WireError::new(WireProblem::ByteString));
    }
    Ok(signed(
        signature::BYTES,
        [("value", Some(text(&STANDARD.encode(bytes))))],
    ))
}

/// A secret whose value is dropped is dropped with it: without a value it would be malformed.
fn encode_secret(inner: &PropertyValue, accept: Accept) -> Result<Option<Value>, WireError> {
    let Some(value) = encode_value(inner, accept)? else {
        return Ok(None);
    };
    if !accept.secrets {
        return Ok(Some(value));
    }
    Ok(Some(
        signed(signature::SECRET, [("value", Some(value))]).into(),
    ))
}

fn encode_output(output: &OutputValue, accept: Accept) -> Result<Option<Value>, WireError> {
    if !accept.outputs {
        let value = output.value.as_ref().unwrap_or(&PropertyValue::Computed);
        return if output.secret {
            encode_secret(value, accept)
        } else {
            encode_value(value, accept)
        };
    }
    let value = match &output.value {
        None | Some(PropertyValue::Computed) => None,
        Some(value) => encode_value(value, accept)?,
    };
    let dependencies = output
        .dependencies
        .iter()
        .map(|urn| text(urn.as_str()))
        .collect::<Vec<_>>();
    let dependencies = (!dependencies.is_empty()).then(|| {
        Kind::ListValue(ListValue {
            values: dependencies,
        })
        .into()
    });
    let secret = output.secret.then(|| Kind::BoolValue(true).into());
    let fields = [
        ("value", value),
        ("secret", secret),
        ("dependencies", dependencies),
    ];
    Ok(Some(signed(signature::OUTPUT, fields).into()))
}

fn encode_reference(
    reference: &ResourceReference,
    accept: Accept,
) -> Result<Option<Value>, WireError> {
    let ResourceReference {
        urn,
        id,
        package_version,
    } = reference;
    if !accept.resources {
        return match id {
            Some(id) => encode_value(id, accept),
            None => Ok(Some(text(urn.as_str()))),
        };
    }
    // An id that is not known is written as an empty one; a component has none at all.
    let id = id
        .as_deref()
        .map(|id| text(known_text(id).unwrap_or_default()));
    let version = (!package_version.is_empty()).then(|| text(package_version));
    let fields = [
        ("urn", Some(text(urn.as_str()))),
        ("name", Some(text(urn.name()))),
        ("type", Some(text(urn.type_()))),
        ("id", id),
        ("packageVersion", version),
    ];
    Ok(Some(signed(signature::RESOURCE_REFERENCE, fields).into()))
}

fn known_text(value: &PropertyValue) -> Option<&str> {
    match value {
        PropertyValue::String(text) => Some(text),
        PropertyValue::Output(output) => output.value.as_ref().and_then(known_text),
        _ => None,
    }
}

fn encode_asset(asset: &Asset, accept: Accept) -> Kind {
    let (hash, content) = match asset {
        Asset::Text { hash, text } => (hash, Some(("text", text))),
        Asset::Path { hash, path } => (hash, Some(("path", path))),
        Asset::Uri { hash, uri } => (hash, Some(("uri", uri))),
        Asset::HashOnly { hash } => (hash, None),
    };
    let content = content
        .filter(|_| !accept.hashes_only)
        .map_or(("text", None), |(key, content)| (key, Some(text(content))));
    signed(signature::ASSET, [("hash", hash_field(hash)), content])
}

fn encode_archive(archive: &Archive, accept: Accept) -> Result<Kind, WireError> {
    let (hash, content) = match archive {
        Archive::Assets { hash, .. }
        | Archive::Path { hash, .. }
        | Archive::Uri { hash, .. }
        | Archive::HashOnly { hash }
            if accept.hashes_only =>
        {
            (hash, ("path", None))
        }
        Archive::Assets { hash, assets } => {
            let members = encode_entries(assets.iter(), accept)?;
            (hash, ("assets", Some(Kind::StructValue(members).into())))
        }
        Archive::Path { hash, path } => (hash, ("path", Some(text(path)))),
        Archive::Uri { hash, uri } => (hash, ("uri", Some(text(uri)))),
        Archive::HashOnly { hash } => (hash, ("path", None)),
    };
    Ok(signed(
        signature::ARCHIVE,
        [("hash", hash_field(hash)), content],
    ))
}

fn hash_field(hash: &str) -> Option<Value> {
    (!hash.is_empty()).then(|| text(hash))
}

fn text(value: &str) -> Value {
    Kind::StringValue(value.to_owned()).into()
}

fn signed<const N: usize>(signature: &str, fields: [(&str, Option<Value>); N]) -> Kind {
    let fields = fields
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .chain([(signature::KEY.to_owned(), text(signature))])
        .collect();
    Kind::StructValue(Struct { fields })
}
