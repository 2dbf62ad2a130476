//! Property values in their JSON form in files.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::gojson::GoJsonWriter;
use super::signature;
use crate::package::UNKNOWN_ID;
use crate::path::PropertyPath;
use crate::value::{Archive, Asset, PropertyMap, PropertyValue, ResourceReference};

/// How the secrets among the values are written.
pub(crate) enum SecretEncoding<'c> {
    /// These ciphertexts, in the order in which [`each_secret`] meets the secrets.
    Sealed(&'c mut dyn Iterator<Item = String>),
    /// In the open, for exports that were asked for it.
    Shown,
    /// Inside another secret, which is encrypted as a whole.
    Inner,
}

pub(crate) fn map(writer: &mut GoJsonWriter, map: &PropertyMap, secrets: &mut SecretEncoding<'_>) {
    writer.begin_object();
    for (key, content) in map {
        writer.key(key);
        value(writer, content, secrets);
    }
    writer.end_object();
}

pub(crate) fn value(
    writer: &mut GoJsonWriter,
    value: &PropertyValue,
    secrets: &mut SecretEncoding<'_>,
) {
    match value {
        PropertyValue::Null => writer.null(),
        PropertyValue::Bool(value) => writer.bool(*value),
        PropertyValue::Number(value) if value.is_finite() => writer.number(*value),
        PropertyValue::Number(value) => {
            signed(
                writer,
                signature::FLOAT,
                [("value", &format!("{:016x}", value.to_bits()))],
            );
        }
        PropertyValue::String(text) => writer.string(text),
        PropertyValue::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => writer.string(text),
            Err(_) => signed(
                writer,
                signature::BYTES,
                [("value", &STANDARD.encode(bytes))],
            ),
        },
        PropertyValue::Array(items) => {
            writer.begin_array();
            for item in items {
                self::value(writer, item, secrets);
            }
            writer.end_array();
        }
        PropertyValue::Object(object) => map(writer, object, secrets),
        PropertyValue::Asset(content) => asset(writer, content),
        PropertyValue::Archive(content) => archive(writer, content, secrets),
        PropertyValue::Secret(content) => secret(writer, content, secrets),
        // Files hold values only: what an output depends on is not written.
        PropertyValue::Output(output) => {
            let content = output.value.as_ref().unwrap_or(&PropertyValue::Computed);
            if output.secret {
                secret(writer, content, secrets);
            } else {
                self::value(writer, content, secrets);
            }
        }
        PropertyValue::Computed => writer.string(UNKNOWN_ID),
        PropertyValue::ResourceReference(content) => reference(writer, content),
    }
}

/// The JSON text that is encrypted for a secret with this content.
pub(crate) fn plaintext(content: &PropertyValue) -> String {
    let mut writer = GoJsonWriter::html_safe();
    value(&mut writer, content, &mut SecretEncoding::Inner);
    writer.finish_text()
}

/// Shows every outermost secret's place below `path`, and its content, to `visit`, in the order
/// in which they are written.
pub(crate) fn each_secret(
    path: &mut PropertyPath,
    value: &PropertyValue,
    visit: &mut impl FnMut(&PropertyPath, &PropertyValue),
) {
    match value {
        PropertyValue::Secret(content) => visit(path, content),
        PropertyValue::Output(output) => match &output.value {
            content if output.secret => {
                visit(path, content.as_ref().unwrap_or(&PropertyValue::Computed));
            }
            Some(content) => each_secret(path, content, visit),
            None => {}
        },
        PropertyValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index);
                each_secret(path, item, visit);
                path.pop();
            }
        }
        PropertyValue::Object(map) => each_secret_in(path, map, visit),
        PropertyValue::Archive(Archive::Assets { assets, .. }) => {
            each_secret_in(path, assets, visit);
        }
        _ => {}
    }
}

pub(crate) fn each_secret_in(
    path: &mut PropertyPath,
    map: &PropertyMap,
    visit: &mut impl FnMut(&PropertyPath, &PropertyValue),
) {
    for (key, value) in map {
        path.push(key.as_str());
        each_secret(path, value, visit);
        path.pop();
    }
}

fn secret(writer: &mut GoJsonWriter, content: &PropertyValue, secrets: &mut SecretEncoding<'_>) {
    match secrets {
        SecretEncoding::Sealed(ciphertexts) => {
            let ciphertext = ciphertexts
                .next()
                .expect("as many ciphertexts as secrets were made");
            signed(writer, signature::SECRET, [("ciphertext", &ciphertext)]);
        }
        SecretEncoding::Inner => {
            signed(
                writer,
                signature::SECRET,
                [("ciphertext", &plaintext(content))],
            );
        }
        SecretEncoding::Shown => {
            let mut inner = GoJsonWriter::html_safe();
            value(&mut inner, content, &mut SecretEncoding::Shown);
            signed(
                writer,
                signature::SECRET,
                [("plaintext", &inner.finish_text())],
            );
        }
    }
}

/// An object with a signature and string fields, which come in order.
fn signed<'f>(
    writer: &mut GoJsonWriter,
    signature: &str,
    fields: impl IntoIterator<Item = (&'f str, &'f String)>,
) {
    writer.begin_object();
    writer.key(signature::KEY);
    writer.string(signature);
    for (key, text) in fields {
        writer.key(key);
        writer.string(text);
    }
    writer.end_object();
}

fn asset(writer: &mut GoJsonWriter, asset: &Asset) {
    let (hash, content) = match asset {
        Asset::Text { hash, text } => (hash, Some(("text", text))),
        Asset::Path { hash, path } => (hash, Some(("path", path))),
        Asset::Uri { hash, uri } => (hash, Some(("uri", uri))),
        Asset::HashOnly { hash } => (hash, None),
    };
    let fields = [Some(("hash", hash)), content].into_iter().flatten();
    signed(
        writer,
        signature::ASSET,
        fields.filter(|(_, text)| !text.is_empty()),
    );
}

fn archive(writer: &mut GoJsonWriter, archive: &Archive, secrets: &mut SecretEncoding<'_>) {
    writer.begin_object();
    writer.key(signature::KEY);
    writer.string(signature::ARCHIVE);
    if let Archive::Assets { assets, .. } = archive {
        writer.key("assets");
        map(writer, assets, secrets);
    }
    let content = match archive {
        Archive::Path { path, .. } => Some(("path", path.as_str())),
        Archive::Uri { uri, .. } => Some(("uri", uri.as_str())),
        Archive::Assets { .. } | Archive::HashOnly { .. } => None,
    };
    for (key, text) in [Some(("hash", archive.hash())), content]
        .into_iter()
        .flatten()
    {
        if !text.is_empty() {
            writer.key(key);
            writer.string(text);
        }
    }
    writer.end_object();
}

fn reference(writer: &mut GoJsonWriter, reference: &ResourceReference) {
    let id = match reference.id.as_deref() {
        Some(PropertyValue::String(id)) => Some(id.clone()),
        Some(PropertyValue::Computed) => Some(String::new()),
        _ => None,
    };
    let mut fields = BTreeMap::from([
        ("packageVersion", reference.package_version.clone()),
        ("urn", reference.urn.to_string()),
    ]);
    fields.extend(id.map(|id| ("id", id)));
    signed(
        writer,
        signature::RESOURCE_REFERENCE,
        fields.iter().map(|(key, text)| (*key, text)),
    );
}
