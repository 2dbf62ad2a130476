//! A second opinion about a checkpoint before it replaces the last one.
//!
//! [`check_checkpoint`] decodes the bytes as the official command line does: field by field, each
//! with the type that it expects there, and the values with the signatures that it knows. It shares
//! nothing with the writer and the reader of this crate, so a mistake that both of them make alike
//! is found here. What is refused is a defect of Nimbus, not of the user's stack: the last good
//! state stays.
//!
//! Like the official decoder it takes a null for an absent field and passes over fields that it
//! does not know. Contradictions between resources are not judged here: they are
//! [`integrity`](crate::integrity)'s.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::signature;
use super::time;
use crate::path::PropertyPath;

/// Why the official command line would refuse a checkpoint, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {problem}")]
pub struct StrictError {
    /// Such as `checkpoint.latest.resources[3].hideDiff[0]`.
    pub path: String,
    pub problem: String,
}

/// Features that the official command line knows, at the version that Nimbus is compared with.
const FEATURES: [&str; 8] = [
    "refreshBeforeUpdate",
    "views",
    "hooks",
    "taint",
    "replaceWith",
    "snippets-prototype",
    "extensionParameterization",
    "byteString",
];

/// What a field must hold.
#[derive(Clone, Copy)]
enum Shape {
    Anything,
    Text,
    Flag,
    Number,
    Time,
    /// A version of a plugin, which may lack parts.
    Version,
    /// A property path in its text form.
    Path,
    /// Bytes in their text form.
    Base64,
    /// A property value, with signatures.
    Property,
    List(&'static Shape),
    /// An object whose keys are anybody's.
    Table(&'static Shape),
    Record(&'static [(&'static str, Shape)]),
}

use Shape::{
    Anything, Base64, Flag, List, Number, Path, Property, Record, Table, Text, Time, Version,
};

const TEXTS: Shape = List(&Text);

const RESOURCE: &[(&str, Shape)] = &[
    ("urn", Text),
    ("custom", Flag),
    ("delete", Flag),
    ("id", Text),
    ("type", Text),
    ("inputs", Table(&Property)),
    ("outputs", Table(&Property)),
    ("parent", Text),
    ("protect", Flag),
    ("taint", Flag),
    ("external", Flag),
    ("dependencies", TEXTS),
    ("initErrors", TEXTS),
    ("provider", Text),
    ("propertyDependencies", Table(&TEXTS)),
    ("pendingReplacement", Flag),
    ("additionalSecretOutputs", TEXTS),
    ("aliases", TEXTS),
    ("customTimeouts", Record(TIMEOUTS)),
    ("importID", Text),
    ("retainOnDelete", Flag),
    ("deletedWith", Text),
    ("replaceWith", TEXTS),
    ("created", Time),
    ("modified", Time),
    ("sourcePosition", Text),
    ("stackTrace", List(&Record(&[("sourcePosition", Text)]))),
    ("ignoreChanges", TEXTS),
    ("hideDiff", List(&Path)),
    ("replaceOnChanges", TEXTS),
    ("replacementTrigger", Property),
    ("refreshBeforeUpdate", Flag),
    ("viewOf", Text),
    ("resourceHooks", Table(&TEXTS)),
    ("extensionRef", Text),
    ("snippetID", Text),
];

const TIMEOUTS: &[(&str, Shape)] = &[
    ("create", Number),
    ("update", Number),
    ("delete", Number),
    ("read", Number),
];

const MANIFEST: &[(&str, Shape)] = &[
    ("time", Time),
    ("magic", Text),
    ("version", Text),
    ("plugins", List(&Record(PLUGIN))),
];

const PLUGIN: &[(&str, Shape)] = &[
    ("name", Text),
    ("path", Text),
    ("type", Text),
    ("version", Version),
];

const OPERATION: &[(&str, Shape)] = &[("resource", Record(RESOURCE)), ("type", Text)];

const INTEGRITY_ERROR: &[(&str, Shape)] = &[
    ("version", Text),
    ("command", Text),
    ("error", Text),
    ("env_vars", Table(&Text)),
];

const SNIPPET: &[(&str, Shape)] = &[
    ("uuid", Text),
    ("name", Text),
    ("type", Text),
    ("code", Text),
    ("descriptor", Record(PACKAGE)),
    ("references", Table(&Text)),
];

const PACKAGE: &[(&str, Shape)] = &[
    ("name", Text),
    ("version", Version),
    ("downloadURL", Text),
    ("parameterization", Record(EXTENSION)),
];

const EXTENSION: &[(&str, Shape)] = &[("name", Text), ("version", Version), ("value", Base64)];

const DEPLOYMENT: &[(&str, Shape)] = &[
    ("manifest", Record(MANIFEST)),
    (
        "secrets_providers",
        Record(&[("type", Text), ("state", Anything)]),
    ),
    ("resources", List(&Record(RESOURCE))),
    ("pending_operations", List(&Record(OPERATION))),
    (
        "metadata",
        Record(&[("integrity_error", Record(INTEGRITY_ERROR))]),
    ),
    ("snippets", List(&Record(SNIPPET))),
    ("extensions", Table(&Record(EXTENSION))),
];

const CHECKPOINT: &[(&str, Shape)] = &[
    ("stack", Text),
    ("config", Table(&Anything)),
    ("latest", Record(DEPLOYMENT)),
];

const FILE: &[(&str, Shape)] = &[
    ("version", Number),
    ("features", TEXTS),
    ("checkpoint", Record(CHECKPOINT)),
];

/// Refuses what the official command line could not load.
pub fn check_checkpoint(bytes: &[u8]) -> Result<(), StrictError> {
    let mut walk = StrictWalk(String::new());
    let file: Value = serde_json::from_slice(bytes).map_err(|error| StrictError {
        path: "the file".to_owned(),
        problem: format!("is not JSON: {error}"),
    })?;
    if !file.is_object() {
        return Err(StrictError {
            path: "the file".to_owned(),
            problem: "is not an object".to_owned(),
        });
    }
    walk.value(&file, Record(FILE))?;
    walk.version(&file)?;
    let latest = &file["checkpoint"]["latest"];
    walk.at("checkpoint.latest.secrets_providers")
        .secrets(&latest["secrets_providers"])?;
    let resources = latest["resources"].as_array().into_iter().flatten();
    for (index, resource) in resources.enumerate() {
        walk.at(&format!("checkpoint.latest.resources[{index}]"))
            .required(resource)?;
    }
    let pending = latest["pending_operations"]
        .as_array()
        .into_iter()
        .flatten();
    for (index, operation) in pending.enumerate() {
        let path = format!("checkpoint.latest.pending_operations[{index}].resource");
        walk.at(&path).required(&operation["resource"])?;
    }
    Ok(())
}

/// Where in the file something is.
struct StrictWalk(String);

impl StrictWalk {
    fn at(&self, path: &str) -> Self {
        Self(path.to_owned())
    }

    fn wrong<T>(&self, problem: impl Into<String>) -> Result<T, StrictError> {
        Err(StrictError {
            path: self.0.clone(),
            problem: problem.into(),
        })
    }

    /// Looks at something one step further down.
    fn below(
        &mut self,
        step: &str,
        look: impl FnOnce(&mut Self) -> Result<(), StrictError>,
    ) -> Result<(), StrictError> {
        let length = self.0.len();
        if length > 0 && !step.starts_with('[') {
            self.0.push('.');
        }
        self.0.push_str(step);
        look(self)?;
        self.0.truncate(length);
        Ok(())
    }

    fn value(&mut self, value: &Value, shape: Shape) -> Result<(), StrictError> {
        match (shape, value) {
            (Property, value) => self.property(value),
            // Its decoder leaves a field as it is when it meets a null.
            (Anything, _) | (_, Value::Null) => Ok(()),
            (Text, Value::String(_)) | (Flag, Value::Bool(_)) | (Number, Value::Number(_)) => {
                Ok(())
            }
            (Time, Value::String(text)) if time::read(text).is_some() => Ok(()),
            (Version, Value::String(text)) if is_version(text) => Ok(()),
            (Path, Value::String(text)) if PropertyPath::parse(text).is_ok() => Ok(()),
            (Base64, Value::String(text)) if BASE64.decode(text).is_ok() => Ok(()),
            (List(item), Value::Array(items)) => self.items(items, *item),
            (Table(entry), Value::Object(entries)) => self.entries(entries, *entry),
            (Record(fields), Value::Object(entries)) => self.fields(entries, fields),
            (Text, _) => self.wrong("is not a text"),
            (Flag, _) => self.wrong("is neither true nor false"),
            (Number, _) => self.wrong("is not a number"),
            (Time, _) => self.wrong("is not a time"),
            (Version, _) => self.wrong("is not a version"),
            (Path, _) => self.wrong("is not a property path in its text form"),
            (Base64, _) => self.wrong("is not base64"),
            (List(_), _) => self.wrong("is not a list"),
            (Table(_) | Record(_), _) => self.wrong("is not an object"),
        }
    }

    fn items(&mut self, items: &[Value], shape: Shape) -> Result<(), StrictError> {
        for (index, item) in items.iter().enumerate() {
            self.below(&format!("[{index}]"), |walk| walk.value(item, shape))?;
        }
        Ok(())
    }

    fn entries(&mut self, entries: &Map<String, Value>, shape: Shape) -> Result<(), StrictError> {
        for (key, entry) in entries {
            self.below(key, |walk| walk.value(entry, shape))?;
        }
        Ok(())
    }

    fn fields(
        &mut self,
        entries: &Map<String, Value>,
        fields: &[(&'static str, Shape)],
    ) -> Result<(), StrictError> {
        for (key, value) in entries {
            // Its decoder does not tell upper from lower case in the names of fields.
            let field = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
            if let Some((_, shape)) = field {
                self.below(key, |walk| walk.value(value, *shape))?;
            }
        }
        Ok(())
    }

    /// Who keeps the secrets: it must know the kind, and be able to begin with what it is told. Whether
    /// the passphrase is the right one is found out later.
    fn secrets(&self, provider: &Value) -> Result<(), StrictError> {
        let kind = provider["type"].as_str().unwrap_or_default();
        match kind {
            "passphrase" => match provider["state"]["salt"].as_str() {
                Some(salt) if is_salt(salt) => Ok(()),
                _ => self.wrong("has no salt of a passphrase"),
            },
            "" | "service" | "cloud" | "b64" => Ok(()),
            other => self.wrong(format!("names {other}, which is not known")),
        }
    }

    fn version(&self, file: &Value) -> Result<(), StrictError> {
        let version = self.at("version");
        let features = self.at("features");
        match file["version"].as_u64() {
            Some(3) => Ok(()),
            Some(4) => {
                let listed = file["features"].as_array().into_iter().flatten();
                let unknown = listed
                    .filter_map(Value::as_str)
                    .find(|feature| !FEATURES.contains(feature));
                match unknown {
                    Some(feature) => features.wrong(format!("names {feature}, which is not known")),
                    None => Ok(()),
                }
            }
            _ => version.wrong("is neither 3 nor 4"),
        }
    }

    fn required(&self, resource: &Value) -> Result<(), StrictError> {
        let text = |field: &str| resource[field].as_str().unwrap_or_default();
        if text("urn").is_empty() {
            return self.wrong("has no urn");
        }
        if text("type").is_empty() {
            return self.wrong("has no type");
        }
        if resource["custom"] != true && !text("id").is_empty() {
            return self.wrong("is a component and has an id");
        }
        Ok(())
    }

    /// A property value: what carries a signature must be what the signature says.
    fn property(&mut self, value: &Value) -> Result<(), StrictError> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
            Value::Array(items) => self.items(items, Property),
            Value::Object(entries) => {
                // What is inside is decoded first, whatever the signature.
                self.entries(entries, Property)?;
                match entries.get(signature::KEY) {
                    None => Ok(()),
                    Some(Value::String(sign)) => self.signed(entries, sign),
                    Some(_) => self.wrong("has a signature that is not a text"),
                }
            }
        }
    }

    fn signed(&mut self, entries: &Map<String, Value>, sign: &str) -> Result<(), StrictError> {
        let text = |key: &str| entries.get(key).and_then(Value::as_str);
        let is_absent_or_text = |key: &str| entries.get(key).is_none_or(Value::is_string);
        match sign {
            signature::SECRET => match (text("ciphertext"), text("plaintext")) {
                (Some(_), None) => Ok(()),
                (None, Some(plaintext)) => match serde_json::from_str(plaintext) {
                    Ok(value) => self.property(&value),
                    // What it is stays unsaid: it is a secret.
                    Err(_) => self.wrong("is a secret whose plaintext is not JSON"),
                },
                _ => self.wrong("is a secret without exactly one of ciphertext and plaintext"),
            },
            signature::RESOURCE_REFERENCE => {
                if text("urn").is_none() {
                    self.wrong("is a reference without a urn")
                } else if !is_absent_or_text("packageVersion") || !is_absent_or_text("id") {
                    self.wrong("is a reference whose id or version is not a text")
                } else {
                    Ok(())
                }
            }
            signature::ASSET => self.one_source(entries, &["text", "path", "uri"]),
            signature::ARCHIVE => {
                self.one_source(entries, &["path", "uri"])?;
                self.archive(entries)
            }
            signature::BYTES => match text("value").map(|text| BASE64.decode(text)) {
                Some(Ok(_)) => Ok(()),
                _ => self.wrong("are bytes that are not base64"),
            },
            signature::FLOAT => match text("value").map(|text| u64::from_str_radix(text, 16)) {
                Some(Ok(_)) => Ok(()),
                _ => self.wrong("is a float whose bits are not hexadecimal"),
            },
            other => self.wrong(format!("has the signature {other}, which is not known")),
        }
    }

    /// An archive with a place is not asked for its members; one without has only assets and archives.
    fn archive(&self, entries: &Map<String, Value>) -> Result<(), StrictError> {
        let has_place = ["path", "uri"].iter().any(|key| {
            let place = entries.get(*key).and_then(Value::as_str);
            place.is_some_and(|place| !place.is_empty())
        });
        let is_member = |value: &Value| {
            let sign = value.get(signature::KEY).and_then(Value::as_str);
            matches!(sign, Some(signature::ASSET | signature::ARCHIVE))
        };
        match entries.get("assets") {
            _ if has_place => Ok(()),
            // An archive without members.
            None => Ok(()),
            Some(Value::Object(members)) if members.values().all(is_member) => Ok(()),
            Some(Value::Object(_)) => {
                self.wrong("is an archive with a member that is neither asset nor archive")
            }
            Some(_) => self.wrong("is an archive whose assets are not an object"),
        }
    }

    fn one_source(
        &self,
        entries: &Map<String, Value>,
        sources: &[&str],
    ) -> Result<(), StrictError> {
        let fields = sources.iter().chain(&["hash"]);
        for field in fields {
            if entries.get(*field).is_some_and(|value| !value.is_string()) {
                return self.wrong(format!("has a {field} that is not a text"));
            }
        }
        Ok(())
    }
}

/// A version, random bytes and something encrypted.
fn is_salt(text: &str) -> bool {
    let mut parts = text.splitn(3, ':');
    let is_known = parts.next() == Some("v1");
    let has_bytes = parts.next().is_some_and(|bytes| BASE64.decode(bytes).is_ok());
    is_known && has_bytes && parts.next().is_some()
}

/// Numbers with dots and what may follow them; a leading `v` and missing parts are forgiven.
fn is_version(text: &str) -> bool {
    let text = text.trim().trim_start_matches('v');
    if text.is_empty() {
        return true;
    }
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<_> = numbers.split('.').collect();
    parts.len() <= 3
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}
