//! Property values from their JSON form in files.
//!
//! Secrets are left closed here: each becomes an entry of a table, and the value holds the entry's
//! number until the table is opened (see [`super::sealed`]). So a file needs one pass, and all its
//! secrets can be decrypted in one batch.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::signature;
use crate::package::UNKNOWN_ID;
use crate::path::{PathSegment, PropertyPath};
use crate::urn::Urn;
use crate::value::{Archive, Asset, OutputValue, PropertyMap, PropertyValue, ResourceReference};

/// Nesting that is certainly not a property any more. It bounds secrets inside secrets too.
const MAX_DEPTH: usize = 256;

/// A secret that was not opened yet.
#[derive(Clone, Debug)]
pub(crate) enum SealedSecret {
    Ciphertext(String),
    /// The file shows the secret, as exports do on request.
    Open(PropertyValue),
}

/// What is wrong with a property value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertyProblem {
    #[error("its signature {signature:?} is not known")]
    UnknownSignature { signature: String },
    #[error("it is a malformed {what}: {problem}")]
    Malformed {
        what: &'static str,
        problem: &'static str,
    },
    #[error("it is nested too deeply")]
    TooDeep,
}

/// A problem and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PropertyError {
    /// Innermost step first: they are added on the way out.
    steps: Vec<PathSegment>,
    pub(crate) problem: PropertyProblem,
}

impl PropertyError {
    fn new(problem: PropertyProblem) -> Self {
        Self {
            steps: Vec::new(),
            problem,
        }
    }

    fn malformed(what: &'static str, problem: &'static str) -> Self {
        Self::new(PropertyProblem::Malformed { what, problem })
    }

    pub(crate) fn inside(mut self, step: impl Into<PathSegment>) -> Self {
        self.steps.push(step.into());
        self
    }

    pub(crate) fn path(&self) -> PropertyPath {
        PropertyPath::new(self.steps.iter().rev().cloned())
    }
}

type Decoded<T> = Result<T, PropertyError>;

/// Reads values. `secrets` is the table; without one, "ciphertexts" are plain text, as they are
/// inside another secret.
pub(crate) struct Decoder<'t> {
    secrets: Option<&'t mut Vec<SealedSecret>>,
    depth: usize,
}

impl<'t> Decoder<'t> {
    pub(crate) fn new(secrets: &'t mut Vec<SealedSecret>) -> Self {
        Self {
            secrets: Some(secrets),
            depth: 0,
        }
    }

    pub(crate) fn map(&mut self, map: Map<String, Value>) -> Decoded<PropertyMap> {
        map.into_iter()
            .map(|(key, value)| match self.value(value) {
                Ok(value) => Ok((key, value)),
                Err(error) => Err(error.inside(key.as_str())),
            })
            .collect()
    }

    pub(crate) fn value(&mut self, value: Value) -> Decoded<PropertyValue> {
        if self.depth >= MAX_DEPTH {
            return Err(PropertyError::new(PropertyProblem::TooDeep));
        }
        self.depth += 1;
        let decoded = self.nested(value);
        self.depth -= 1;
        decoded
    }

    fn nested(&mut self, value: Value) -> Decoded<PropertyValue> {
        Ok(match value {
            Value::Null => PropertyValue::Null,
            Value::Bool(value) => PropertyValue::Bool(value),
            Value::Number(number) => PropertyValue::Number(
                number
                    .as_f64()
                    .ok_or_else(|| PropertyError::malformed("number", "it is too large"))?,
            ),
            Value::String(text) if text == UNKNOWN_ID => PropertyValue::Computed,
            Value::String(text) => PropertyValue::String(text),
            Value::Array(items) => PropertyValue::Array(
                items
                    .into_iter()
                    .enumerate()
                    .map(|(index, item)| self.value(item).map_err(|error| error.inside(index)))
                    .collect::<Decoded<_>>()?,
            ),
            Value::Object(map) => self.object(map)?,
        })
    }

    fn object(&mut self, mut map: Map<String, Value>) -> Decoded<PropertyValue> {
        let Some(signature) = map.remove(signature::KEY) else {
            return self.map(map).map(PropertyValue::Object);
        };
        match signature.as_str() {
            Some(signature::SECRET) => self.secret(&map),
            Some(signature::ASSET) => asset(&map).map(PropertyValue::Asset),
            Some(signature::ARCHIVE) => self.archive(map).map(PropertyValue::Archive),
            Some(signature::RESOURCE_REFERENCE) => {
                reference(&map).map(PropertyValue::ResourceReference)
            }
            Some(signature::OUTPUT) => self.output(map),
            Some(signature::BYTES) => bytes(&map),
            Some(signature::FLOAT) => float(&map),
            _ => Err(PropertyError::new(PropertyProblem::UnknownSignature {
                signature: signature
                    .as_str()
                    .map_or_else(|| signature.to_string(), str::to_owned),
            })),
        }
    }

    fn secret(&mut self, map: &Map<String, Value>) -> Decoded<PropertyValue> {
        let malformed = |problem| Err(PropertyError::malformed("secret", problem));
        let text = |key| text_field(map, key, "secret");
        let secret = match (text("ciphertext")?, text("plaintext")?) {
            (Some(ciphertext), None) => match &mut self.secrets {
                Some(_) => SealedSecret::Ciphertext(ciphertext.to_owned()),
                None => SealedSecret::Open(self.plaintext(ciphertext)?),
            },
            (None, Some(plaintext)) => SealedSecret::Open(self.plaintext(plaintext)?),
            _ => return malformed("expected either a ciphertext or a plaintext"),
        };
        let content = match (&mut self.secrets, secret) {
            (Some(table), secret) => {
                table.push(secret);
                entry_number(table.len() - 1)
            }
            (None, SealedSecret::Open(value)) => value,
            (None, SealedSecret::Ciphertext(_)) => return malformed("it is sealed twice"),
        };
        Ok(PropertyValue::Secret(Box::new(content)))
    }

    /// The value inside a secret. It counts as nested where the secret stands.
    fn plaintext(&self, text: &str) -> Decoded<PropertyValue> {
        plaintext_at(text, self.depth)
    }

    fn archive(&mut self, mut map: Map<String, Value>) -> Decoded<Archive> {
        let owned =
            |key| Ok::<_, PropertyError>(text_field(&map, key, "archive")?.map(str::to_owned));
        let (hash, path, uri) = (
            owned("hash")?.unwrap_or_default(),
            owned("path")?,
            owned("uri")?,
        );
        if let Some(path) = path {
            return Ok(Archive::Path { hash, path });
        }
        if let Some(uri) = uri {
            return Ok(Archive::Uri { hash, uri });
        }
        let assets = match map.remove("assets") {
            Some(Value::Object(assets)) => self.map(assets)?,
            Some(Value::Null) | None if !hash.is_empty() => return Ok(Archive::HashOnly { hash }),
            Some(Value::Null) | None => PropertyMap::new(),
            Some(_) => {
                return Err(PropertyError::malformed(
                    "archive",
                    "its assets are no object",
                ));
            }
        };
        for (name, member) in &assets {
            if !matches!(member, PropertyValue::Asset(_) | PropertyValue::Archive(_)) {
                let error = PropertyError::malformed("archive", "a member is no asset or archive");
                return Err(error.inside(name.as_str()));
            }
        }
        Ok(Archive::Assets { hash, assets })
    }

    fn output(&mut self, mut map: Map<String, Value>) -> Decoded<PropertyValue> {
        let malformed = |problem| PropertyError::malformed("output", problem);
        let secret = match map.get("secret") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(secret)) => *secret,
            Some(_) => return Err(malformed("its secret is no boolean")),
        };
        let dependencies = match map.remove("dependencies") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(urns)) => urns
                .iter()
                .map(|urn| urn.as_str().and_then(|text| Urn::parse(text).ok()))
                .collect::<Option<_>>()
                .ok_or_else(|| malformed("a dependency is no URN"))?,
            Some(_) => return Err(malformed("its dependencies are no array")),
        };
        let value = map
            .remove("value")
            .map(|value| self.value(value))
            .transpose()?;
        Ok(PropertyValue::Output(Box::new(OutputValue {
            value,
            secret,
            dependencies,
        })))
    }
}

/// The value that the decrypted text of a secret describes.
pub(crate) fn plaintext(text: &str) -> Decoded<PropertyValue> {
    plaintext_at(text, 0)
}

fn plaintext_at(text: &str, depth: usize) -> Decoded<PropertyValue> {
    let json: Value = serde_json::from_str(text)
        .map_err(|_| PropertyError::malformed("secret", "its plaintext is not JSON"))?;
    Decoder {
        secrets: None,
        depth,
    }
    .value(json)
}

/// What a sealed secret holds in place of its value.
fn entry_number(index: usize) -> PropertyValue {
    PropertyValue::Number(index as f64)
}

/// The entry of the table that a sealed secret stands for.
pub(crate) fn entry_of(content: &PropertyValue) -> Option<usize> {
    match content {
        PropertyValue::Number(number) => Some(*number as usize),
        _ => None,
    }
}

/// A string that may be absent; an empty one is as good as absent.
fn text_field<'m>(
    map: &'m Map<String, Value>,
    key: &str,
    what: &'static str,
) -> Decoded<Option<&'m str>> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(PropertyError::malformed(what, "a field is no string")),
    }
}

fn asset(map: &Map<String, Value>) -> Decoded<Asset> {
    let owned = |key| Ok::<_, PropertyError>(text_field(map, key, "asset")?.map(str::to_owned));
    let hash = owned("hash")?.unwrap_or_default();
    Ok(match (owned("path")?, owned("uri")?, owned("text")?) {
        (Some(path), _, _) => Asset::Path { hash, path },
        (None, Some(uri), _) => Asset::Uri { hash, uri },
        (None, None, Some(text)) => Asset::Text { hash, text },
        // An empty text is not written; only the hash tells it from content that is elsewhere.
        (None, None, None) if hash.is_empty() || hash == Asset::EMPTY_TEXT_HASH => Asset::Text {
            hash,
            text: String::new(),
        },
        (None, None, None) => Asset::HashOnly { hash },
    })
}

fn reference(map: &Map<String, Value>) -> Decoded<ResourceReference> {
    let malformed = |problem| PropertyError::malformed("resource reference", problem);
    let urn = map
        .get("urn")
        .and_then(Value::as_str)
        .ok_or_else(|| malformed("it has no URN"))?;
    let package_version = text_field(map, "packageVersion", "resource reference")?;
    Ok(ResourceReference {
        urn: Urn::parse(urn).map_err(|_| malformed("its URN is not well formed"))?,
        id: reference_id(map.get("id"))
            .map_err(|()| malformed("its id is no string"))?
            .map(Box::new),
        package_version: package_version.unwrap_or_default().to_owned(),
    })
}

/// An id is a string, and an empty one is not known yet. Some versions wrote `{"V": id}`.
fn reference_id(id: Option<&Value>) -> Result<Option<PropertyValue>, ()> {
    match id {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if id.is_empty() || id == UNKNOWN_ID => {
            Ok(Some(PropertyValue::Computed))
        }
        Some(Value::String(id)) => Ok(Some(PropertyValue::String(id.clone()))),
        Some(Value::Object(wrapped)) => match wrapped.get("V") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(id)) => Ok(Some(PropertyValue::String(id.clone()))),
            Some(Value::Object(_)) => Ok(Some(PropertyValue::Computed)),
            Some(_) => Err(()),
        },
        Some(_) => Err(()),
    }
}

fn bytes(map: &Map<String, Value>) -> Decoded<PropertyValue> {
    let malformed = |problem| PropertyError::malformed("byte string", problem);
    let encoded = map.get("value").and_then(Value::as_str);
    let encoded = encoded.ok_or_else(|| malformed("its value is no string"))?;
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|_| malformed("its value is not base64"))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => PropertyValue::String(text),
        Err(error) => PropertyValue::Bytes(error.into_bytes()),
    })
}

fn float(map: &Map<String, Value>) -> Decoded<PropertyValue> {
    let malformed = |problem| PropertyError::malformed("float", problem);
    let bits = map.get("value").and_then(Value::as_str);
    let bits = bits.ok_or_else(|| malformed("its value is no string"))?;
    let bits =
        u64::from_str_radix(bits, 16).map_err(|_| malformed("its value is not hexadecimal"))?;
    Ok(PropertyValue::Number(f64::from_bits(bits)))
}
