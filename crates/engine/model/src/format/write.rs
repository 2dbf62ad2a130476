//! Writing whole state files.

use serde_json::Value;

use super::encode::SecretEncoding;
use super::error::StateError;
use super::gojson::{GoJsonWriter, Layout};
use super::read::CheckpointHead;
use super::seal::{Spot, seal};
use super::{extension, feature, resource, time};
use crate::resource::ResourceState;
use crate::secrets::{CiphertextCache, Crypter};
use crate::snapshot::{IntegrityRecord, SecretsProvider, Snapshot, SnapshotManifest};

/// Order of fields in parts of the file that this version does not interpret.
const CARRIED_ORDER: [&str; 16] = [
    "url",
    "owner",
    "project",
    "stack",
    "insecure",
    "encryptedkey",
    "uuid",
    "name",
    "type",
    "code",
    "version",
    "downloadURL",
    "parameterization",
    "value",
    "descriptor",
    "references",
];

/// A part of a deployment that is only carried along; it is written before extensions.
const SNIPPETS: &str = "snippets";

/// How secrets are written.
pub enum SecretsMode<'a> {
    /// Encrypted. Secrets that the cache knows keep their ciphertext; afterwards the cache knows
    /// exactly what was written.
    Encrypt {
        crypter: &'a dyn Crypter,
        cache: &'a mut CiphertextCache,
    },
    /// In the open, because a user asked for it.
    Show,
}

/// A backend's file for one stack. `None` when nothing was ever deployed.
pub fn write_checkpoint(
    head: &CheckpointHead,
    snapshot: Option<&Snapshot>,
    secrets: SecretsMode<'_>,
    layout: Layout,
) -> Result<Vec<u8>, StateError> {
    let mut writer = GoJsonWriter::new(layout);
    begin(&mut writer, snapshot);
    writer.key("checkpoint");
    writer.begin_object();
    writer.key("stack");
    writer.string(&head.stack);
    if let Some(config) = head.extra.get("config") {
        writer.key("config");
        writer.json(config, &[]);
    }
    if let Some(snapshot) = snapshot {
        writer.key("latest");
        deployment(&mut writer, snapshot, secrets)?;
    }
    for (key, value) in head.extra.iter().filter(|(key, _)| *key != "config") {
        writer.key(key);
        writer.json(value, &[]);
    }
    writer.end_object();
    writer.end_object();
    Ok(writer.finish())
}

/// What `stack export` writes.
pub fn write_export(
    snapshot: Option<&Snapshot>,
    secrets: SecretsMode<'_>,
    layout: Layout,
) -> Result<Vec<u8>, StateError> {
    let mut writer = GoJsonWriter::new(layout);
    begin(&mut writer, snapshot);
    writer.key("deployment");
    match snapshot {
        Some(snapshot) => deployment(&mut writer, snapshot, secrets)?,
        None => writer.null(),
    }
    writer.end_object();
    Ok(writer.finish())
}

fn begin(writer: &mut GoJsonWriter, snapshot: Option<&Snapshot>) {
    let features = snapshot.map(feature::used).unwrap_or_default();
    writer.begin_object();
    writer.key("version");
    writer.integer(if features.is_empty() { 3 } else { 4 });
    if !features.is_empty() {
        writer.key("features");
        writer.begin_array();
        features.iter().for_each(|feature| writer.string(feature));
        writer.end_array();
    }
}

fn deployment(
    writer: &mut GoJsonWriter,
    snapshot: &Snapshot,
    secrets: SecretsMode<'_>,
) -> Result<(), StateError> {
    match secrets {
        SecretsMode::Show => write_deployment(writer, snapshot, &mut SecretEncoding::Shown),
        SecretsMode::Encrypt { crypter, cache } => {
            let (ciphertexts, used) = seal(spots(snapshot), crypter, cache)?;
            *cache = used;
            let mut ciphertexts = ciphertexts.into_iter();
            write_deployment(
                writer,
                snapshot,
                &mut SecretEncoding::Sealed(&mut ciphertexts),
            );
        }
    }
    Ok(())
}

/// Everything that is written with secrets in it, in the order of writing.
fn spots(snapshot: &Snapshot) -> impl Iterator<Item = (Spot, &ResourceState)> {
    let resources = snapshot.resources.iter().enumerate();
    let pending = snapshot.pending_operations.iter().enumerate();
    resources
        .map(|(index, resource)| (Spot::Resource(index), &**resource))
        .chain(pending.map(|(index, operation)| (Spot::Pending(index), &*operation.resource)))
}

fn write_deployment(
    writer: &mut GoJsonWriter,
    snapshot: &Snapshot,
    secrets: &mut SecretEncoding<'_>,
) {
    writer.begin_object();
    writer.key("manifest");
    manifest(writer, &snapshot.manifest);
    if let Some(provider) = &snapshot.secrets_provider {
        writer.key("secrets_providers");
        secrets_provider(writer, provider);
    }
    if !snapshot.resources.is_empty() {
        writer.key("resources");
        writer.begin_array();
        for resource in &snapshot.resources {
            resource::write(writer, resource, secrets);
        }
        writer.end_array();
    }
    if !snapshot.pending_operations.is_empty() {
        writer.key("pending_operations");
        writer.begin_array();
        for operation in &snapshot.pending_operations {
            writer.begin_object();
            writer.key("resource");
            resource::write(writer, &operation.resource, secrets);
            writer.key("type");
            writer.string(operation.kind.as_str());
            writer.end_object();
        }
        writer.end_array();
    }
    writer.key("metadata");
    metadata(writer, snapshot.integrity_error.as_ref());
    extra(writer, snapshot);
    writer.end_object();
}

fn extra(writer: &mut GoJsonWriter, snapshot: &Snapshot) {
    let mut carried = |key: &str, value: &Value| {
        writer.key(key);
        writer.json(value, &CARRIED_ORDER);
    };
    if let Some(snippets) = snapshot.extra.get(SNIPPETS) {
        carried(SNIPPETS, snippets);
    }
    if !snapshot.extensions.is_empty() {
        let entries = snapshot.extensions.iter();
        let entries = entries.map(|(reference, one)| (reference.clone(), extension::json(one)));
        carried("extensions", &Value::Object(entries.collect()));
    }
    for (key, value) in &snapshot.extra {
        if key != SNIPPETS {
            carried(key, value);
        }
    }
}

fn manifest(writer: &mut GoJsonWriter, manifest: &SnapshotManifest) {
    writer.begin_object();
    writer.key("time");
    writer.string(&time::write(manifest.time, manifest.offset));
    writer.key("magic");
    writer.string(&manifest.magic);
    writer.key("version");
    writer.string(&manifest.version);
    if !manifest.plugins.is_empty() {
        writer.key("plugins");
        writer.begin_array();
        for plugin in &manifest.plugins {
            writer.begin_object();
            for (key, text) in [
                ("name", &plugin.name),
                ("path", &plugin.path),
                ("type", &plugin.kind),
                ("version", &plugin.version),
            ] {
                writer.key(key);
                writer.string(text);
            }
            writer.end_object();
        }
        writer.end_array();
    }
    for (key, value) in &manifest.extra {
        writer.key(key);
        writer.json(value, &[]);
    }
    writer.end_object();
}

fn secrets_provider(writer: &mut GoJsonWriter, provider: &SecretsProvider) {
    writer.begin_object();
    writer.key("type");
    writer.string(&provider.kind);
    if !provider.state.is_null() {
        writer.key("state");
        writer.json(&provider.state, &CARRIED_ORDER);
    }
    writer.end_object();
}

fn metadata(writer: &mut GoJsonWriter, record: Option<&IntegrityRecord>) {
    writer.begin_object();
    if let Some(record) = record {
        writer.key("integrity_error");
        writer.begin_object();
        for (key, text) in [
            ("version", &record.version),
            ("command", &record.command),
            ("error", &record.error),
        ] {
            if !text.is_empty() {
                writer.key(key);
                writer.string(text);
            }
        }
        if !record.env_vars.is_empty() {
            writer.key("env_vars");
            writer.begin_object();
            for (name, value) in &record.env_vars {
                writer.key(name);
                writer.string(value);
            }
            writer.end_object();
        }
        writer.end_object();
    }
    writer.end_object();
}
