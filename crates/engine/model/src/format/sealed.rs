//! A deployment whose secrets are still closed.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::Offset;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::decode::{self, SealedSecret};
use super::encode;
use super::error::{StateError, StatePart};
use super::extension;
use super::fields::StateFields;
use super::parse::ParsedDeployment;
use super::resource;
use crate::integrity::{self, IntegrityFinding};
use crate::package::Parameterization;
use crate::path::PropertyPath;
use crate::resource::{OperationKind, PendingOperation, ResourceState};
use crate::secrets::{CiphertextCache, Crypter};
use crate::snapshot::{IntegrityRecord, PluginRecord, SecretsProvider, Snapshot, SnapshotManifest};
use crate::urn::Urn;
use crate::value::{PropertyMap, PropertyValue};

/// What a state file records, before its secrets are decrypted. It can be checked and asked how
/// its secrets are kept; to work with it, [`open`](Self::open) it.
#[derive(Debug)]
pub struct SealedDeployment {
    manifest: SnapshotManifest,
    secrets_provider: Option<SecretsProvider>,
    pub(super) resources: Vec<ResourceState>,
    pub(super) pending_operations: Vec<(OperationKind, ResourceState)>,
    extensions: BTreeMap<String, Arc<Parameterization>>,
    integrity_error: Option<IntegrityRecord>,
    extra: Map<String, Value>,
    secrets: Vec<SealedSecret>,
}

impl SealedDeployment {
    pub(super) fn new(
        parsed: ParsedDeployment,
        secrets: Vec<SealedSecret>,
    ) -> Result<Self, StateError> {
        let mut fields = StateFields::new(parsed.fields, StatePart::File);
        Ok(Self {
            manifest: manifest(fields.object("manifest")?)?,
            secrets_provider: secrets_provider(fields.raw("secrets_providers"))?,
            resources: parsed.resources,
            pending_operations: parsed.pending_operations,
            extensions: extensions(fields.object("extensions")?)?,
            integrity_error: integrity_error(fields.object("metadata")?)?,
            extra: fields.rest(),
            secrets,
        })
    }

    pub fn manifest(&self) -> &SnapshotManifest {
        &self.manifest
    }

    /// Who can open the secrets.
    pub fn secrets_provider(&self) -> Option<&SecretsProvider> {
        self.secrets_provider.as_ref()
    }

    /// Whether anything has to be decrypted.
    pub fn has_secrets(&self) -> bool {
        self.secrets
            .iter()
            .any(|secret| matches!(secret, SealedSecret::Ciphertext(_)))
    }

    /// Every rule that the deployment breaks.
    pub fn findings(&self) -> Vec<IntegrityFinding> {
        let resources: Vec<_> = self.resources.iter().collect();
        integrity::verify_parts(&self.manifest, &resources)
    }

    /// Refuses a deployment that breaks a rule.
    pub fn verify(&self) -> Result<(), StateError> {
        let mut findings = self.findings().into_iter();
        match findings.next() {
            None => Ok(()),
            Some(first) => Err(StateError::Integrity {
                first,
                more: findings.len(),
            }),
        }
    }

    /// Refuses the deployment of another stack. Every URN names its stack and project.
    pub fn check_stack(&self, project: &str, stack: &str) -> Result<(), StateError> {
        let foreign = |urn: &&Urn| urn.stack() != stack || urn.project() != project;
        match self
            .resources
            .iter()
            .map(|resource| &resource.urn)
            .find(foreign)
        {
            None => Ok(()),
            Some(urn) => Err(StateError::WrongStack {
                expected: format!("stack {stack} of project {project}"),
                found: format!("stack {} of project {} ({urn})", urn.stack(), urn.project()),
            }),
        }
    }

    /// Decrypts all secrets, in one batch. The cache remembers their ciphertexts, so that writing
    /// the snapshot again leaves secrets that did not change as they are.
    pub fn open(
        mut self,
        crypter: &dyn Crypter,
    ) -> Result<(Snapshot, CiphertextCache), StateError> {
        let places = self.places();
        let locate = |entry: usize| match places.get(entry) {
            Some(Some(at)) => (at.place.clone(), at.path.clone()),
            _ => (StatePart::File, PropertyPath::default()),
        };
        let mut values = open_table(&self.secrets, crypter, locate)?;
        let mut cache = CiphertextCache::default();
        for ((place, secret), value) in places.iter().zip(&self.secrets).zip(&values) {
            if let (Some(place), SealedSecret::Ciphertext(text), Some(value)) =
                (place, secret, value)
            {
                // Keyed by the text that this writer would encrypt, whoever wrote the file.
                let plaintext = Zeroizing::new(encode::plaintext(value));
                cache.insert(
                    (place.urn.clone(), place.path.clone()),
                    &plaintext,
                    text.clone(),
                );
            }
        }
        let resources = self.resources.iter_mut();
        let pending = self
            .pending_operations
            .iter_mut()
            .map(|(_, resource)| resource);
        resources
            .chain(pending)
            .for_each(|resource| unseal_resource(resource, &mut values));
        Ok((self.into_snapshot(), cache))
    }

    /// Where each entry of the table stands.
    fn places(&self) -> Vec<Option<SecretPosition>> {
        let mut places: Vec<Option<SecretPosition>> = Vec::new();
        places.resize_with(self.secrets.len(), || None);
        let mut note = |place: StatePart, resource: &ResourceState| {
            resource::each_secret(resource, &mut |path, content| {
                if let Some(slot) = decode::entry_of(content).and_then(|at| places.get_mut(at)) {
                    let (place, urn) = (place.clone(), resource.urn.clone());
                    *slot = Some(SecretPosition {
                        place,
                        urn,
                        path: path.clone(),
                    });
                }
            });
        };
        for (index, resource) in self.resources.iter().enumerate() {
            note(
                StatePart::Resource {
                    index,
                    urn: Some(resource.urn.to_string()),
                },
                resource,
            );
        }
        for (index, (_, resource)) in self.pending_operations.iter().enumerate() {
            note(
                StatePart::PendingOperation {
                    index,
                    urn: Some(resource.urn.to_string()),
                },
                resource,
            );
        }
        places
    }

    fn into_snapshot(self) -> Snapshot {
        let operation = |(kind, resource)| PendingOperation {
            kind,
            resource: Arc::new(resource),
        };
        Snapshot {
            manifest: self.manifest,
            secrets_provider: self.secrets_provider,
            resources: self.resources.into_iter().map(Arc::new).collect(),
            pending_operations: self.pending_operations.into_iter().map(operation).collect(),
            extensions: self.extensions,
            integrity_error: self.integrity_error,
            extra: self.extra,
        }
    }
}

struct SecretPosition {
    place: StatePart,
    urn: Urn,
    path: PropertyPath,
}

/// Opens every secret of a table, in one batch. `locate` says where an entry stands.
pub(crate) fn open_table(
    secrets: &[SealedSecret],
    crypter: &dyn Crypter,
    locate: impl Fn(usize) -> (StatePart, PropertyPath),
) -> Result<Vec<Option<PropertyValue>>, StateError> {
    let mut values: Vec<Option<PropertyValue>> = Vec::with_capacity(secrets.len());
    let (mut closed, mut ciphertexts) = (Vec::new(), Vec::new());
    for (entry, secret) in secrets.iter().enumerate() {
        match secret {
            SealedSecret::Open(value) => values.push(Some(value.clone())),
            SealedSecret::Ciphertext(text) => {
                values.push(None);
                closed.push(entry);
                ciphertexts.push(text.as_str());
            }
        }
    }
    let texts = crypter.decrypt_all(&ciphertexts).map_err(|failed| {
        let (place, path) = locate(closed.get(failed.index).copied().unwrap_or_default());
        StateError::Secret {
            place,
            path,
            error: failed.error,
        }
    })?;
    for (entry, text) in closed.into_iter().zip(texts) {
        let value = decode::plaintext(&text).map_err(|error| {
            let (place, path) = locate(entry);
            StateError::BadProperty {
                place,
                path,
                problem: error.problem,
            }
        })?;
        values[entry] = Some(value);
    }
    Ok(values)
}

/// Puts the opened values where their numbers stand.
pub(crate) fn unseal_resource(resource: &mut ResourceState, values: &mut [Option<PropertyValue>]) {
    unseal_map(&mut resource.inputs, values);
    unseal_map(&mut resource.outputs, values);
    unseal(&mut resource.replacement_trigger, values);
}

fn unseal_map(map: &mut PropertyMap, values: &mut [Option<PropertyValue>]) {
    map.values_mut().for_each(|value| unseal(value, values));
}

pub(crate) fn unseal(value: &mut PropertyValue, values: &mut [Option<PropertyValue>]) {
    match value {
        PropertyValue::Secret(content) => {
            let entry = decode::entry_of(content).and_then(|at| values.get_mut(at));
            if let Some(opened) = entry.and_then(Option::take) {
                **content = opened;
            }
        }
        other => other.parts_mut().for_each(|part| unseal(part, values)),
    }
}

fn manifest(map: Map<String, Value>) -> Result<SnapshotManifest, StateError> {
    let mut fields = StateFields::new(map, StatePart::Manifest);
    let (time, offset) = fields
        .time("time")?
        .unwrap_or_else(|| (go_zero_time(), Offset::UTC));
    let plugin = |plugin| {
        let mut fields = StateFields::of(plugin, StatePart::Manifest, "plugins")?;
        Ok(PluginRecord {
            name: fields.string("name")?,
            path: fields.string("path")?,
            kind: fields.string("type")?,
            version: fields.string("version")?,
        })
    };
    Ok(SnapshotManifest {
        time,
        offset,
        magic: fields.string("magic")?,
        version: fields.string("version")?,
        plugins: fields
            .array("plugins")?
            .into_iter()
            .map(plugin)
            .collect::<Result<_, _>>()?,
        extra: fields.rest(),
    })
}

/// A time that was never set, in Go.
fn go_zero_time() -> jiff::Timestamp {
    jiff::Timestamp::from_second(-62_135_596_800).unwrap_or(jiff::Timestamp::MIN)
}

fn secrets_provider(value: Option<Value>) -> Result<Option<SecretsProvider>, StateError> {
    let Some(value) = value else {
        return Ok(None);
    };
    let mut fields = StateFields::of(value, StatePart::SecretsProvider, "secrets_providers")?;
    let kind = fields.string("type")?;
    let state = fields.raw("state").unwrap_or(Value::Null);
    Ok(Some(SecretsProvider { kind, state }))
}

fn extensions(
    entries: Map<String, Value>,
) -> Result<BTreeMap<String, Arc<Parameterization>>, StateError> {
    let read = |(reference, value)| {
        let fields = StateFields::of(value, StatePart::File, "extensions")?;
        Ok((reference, Arc::new(extension::read(fields)?)))
    };
    entries.into_iter().map(read).collect()
}

fn integrity_error(metadata: Map<String, Value>) -> Result<Option<IntegrityRecord>, StateError> {
    let mut metadata = StateFields::new(metadata, StatePart::Metadata);
    let Some(record) = metadata.raw("integrity_error") else {
        return Ok(None);
    };
    let mut fields = StateFields::of(record, StatePart::Metadata, "integrity_error")?;
    let env_vars = fields
        .object("env_vars")?
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name, text)),
            _ => Err(fields.wrong_type("env_vars", "an object of strings")),
        });
    Ok(Some(IntegrityRecord {
        env_vars: env_vars.collect::<Result<_, _>>()?,
        version: fields.string("version")?,
        command: fields.string("command")?,
        error: fields.string("error")?,
    }))
}
