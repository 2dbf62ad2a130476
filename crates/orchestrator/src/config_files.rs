//! `config/<stack>.<environment>.yaml`: what a run reads of a stack's configuration.
//!
//! Nimbus writes these files from the manifest, and people edit them. So what was written is
//! remembered, and each key is compared three ways: one that nobody touched follows the manifest, one
//! that was edited counts, and one that was changed here and there is refused with both places.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_document::{Document, Span};
use serde_json::{Map, Value, json};

use crate::edit;
use crate::manifest::Manifest;
use crate::parameters::{own_parameter, whole_key};
use crate::spot::ManifestSpot;
use crate::yaml;

/// The folder of a deployment that has its configuration files.
pub const CONFIG_FOLDER: &str = "config";

/// The file in that folder which remembers what was written into the others.
pub const WRITTEN_FILE: &str = ".written.json";

/// The region, which a program's provider reads and an environment has.
pub(crate) const REGION: &str = "aws:region";

/// What was written last, by file and by key.
pub type WrittenConfigs = BTreeMap<String, Map<String, Value>>;

/// Configuration files as they are, by name, and what was written into them.
#[derive(Clone, Debug, Default)]
pub struct ConfigFiles {
    pub files: BTreeMap<String, Document>,
    pub written: WrittenConfigs,
}

/// What came of comparing the files with the manifest.
#[derive(Clone, Debug, Default)]
pub struct MergedConfigs {
    pub overrides: ConfigOverrides,
    /// Files that follow the manifest, with the text that they get.
    pub follow: BTreeMap<String, String>,
    /// What the files have of the manifest then.
    pub written: WrittenConfigs,
}

/// Values that a configuration file gives, and not the manifest.
#[derive(Clone, Debug, Default)]
pub struct ConfigOverrides {
    files: BTreeMap<String, Document>,
    /// By component, environment and key as the manifest has it; the file, and its key there.
    places: BTreeMap<(ComponentName, EnvironmentName, String), (String, String)>,
}

impl ConfigOverrides {
    /// Where the value of a key is, if a file gives it.
    pub fn place(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
        key: &str,
    ) -> Option<(&Document, Span)> {
        let place = (component.clone(), environment, key.to_owned());
        let (file, key) = self.places.get(&place)?;
        let document = self.files.get(file)?;
        Some((document, ManifestSpot::of(&["config", key]).span(document)))
    }

    /// Where something is that was found wrong: in a file, if the value comes from one.
    pub fn locate<'a>(
        &'a self,
        spot: &ManifestSpot,
        manifest: &'a Document,
    ) -> (&'a Document, Span) {
        let path: Vec<&str> = spot.path.iter().map(String::as_str).collect();
        let ["spec", "stacks", component, "config", environment, key, ..] = path.as_slice() else {
            return (manifest, spot.span(manifest));
        };
        let unit = component.parse().ok().zip(environment.parse().ok());
        let place =
            unit.and_then(|(component, environment)| self.place(&component, environment, key));
        let Some((document, span)) = place else {
            return (manifest, spot.span(manifest));
        };
        let inside = spot.text.as_deref().and_then(|text| {
            let start = span.start + document.source(span).find(text)?;
            Some(Span::new(start, start + text.len()))
        });
        (document, inside.unwrap_or(span))
    }

    /// An error that points to where something was found wrong.
    pub fn point(
        &self,
        spot: &ManifestSpot,
        manifest: &Document,
        code: ErrorCode,
        message: String,
    ) -> Error {
        let (document, span) = self.locate(spot, manifest);
        document.error(code, span, message, "here")
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Keys that files give, by component and environment.
    pub fn keys(&self) -> impl Iterator<Item = (&ComponentName, EnvironmentName, &str)> {
        self.places
            .keys()
            .map(|(component, environment, key)| (component, *environment, key.as_str()))
    }
}

/// The name of a unit's configuration file.
pub fn config_file(component: &ComponentName, environment: EnvironmentName) -> String {
    format!("{component}.{environment}.yaml")
}

/// The configuration files of a manifest: enabled stacks × environments.
pub fn configs(manifest: &Manifest) -> BTreeMap<String, String> {
    let named = written_configs(manifest).into_iter();
    named
        .map(|(name, values)| (name, config_text(values)))
        .collect()
}

/// What the manifest says of each file, by key.
pub fn written_configs(manifest: &Manifest) -> WrittenConfigs {
    let units = units(manifest).into_iter();
    units
        .map(|(component, environment)| {
            let values = wanted(manifest, &component, environment);
            (config_file(&component, environment), values)
        })
        .collect()
}

/// Lets the files count: what they say otherwise than when they were written is put into `manifest`.
///
/// # Errors
///
/// When a file is not understood, or a key was changed there and in the manifest.
pub fn merge_configs(
    manifest: &mut Manifest,
    document: &Document,
    found: &ConfigFiles,
) -> Result<MergedConfigs> {
    // Of stacks that are switched off and files that are gone, what was written stays known.
    let mut merged = MergedConfigs {
        written: found.written.clone(),
        ..MergedConfigs::default()
    };
    let mut conflicts = Vec::new();
    for (component, environment) in units(manifest) {
        let name = config_file(&component, environment);
        let wanted = wanted(manifest, &component, environment);
        let Some(file) = found.files.get(&name) else {
            merged
                .follow
                .insert(name.clone(), config_text(wanted.clone()));
            merged.written.insert(name, wanted);
            continue;
        };
        let there = read(file)?;
        let known = found.written.get(&name);
        let mut written = Map::new();
        let mut changes = Vec::new();
        let keys = wanted.keys().chain(there.keys());
        let keys = keys.chain(known.into_iter().flat_map(Map::keys));
        for key in keys.cloned().collect::<BTreeSet<String>>() {
            let (ours, theirs) = (wanted.get(&key), there.get(&key));
            let before = known.map(|known| known.get(&key));
            let last = if ours == theirs || before == Some(theirs) {
                if ours != theirs {
                    changes.push((key.clone(), ours.cloned()));
                }
                ours
            } else if before == Some(ours) {
                let unit = (&component, environment);
                merged
                    .overrides
                    .note(manifest, unit, (file, &name), &key, theirs)?;
                ours
            } else {
                let at = ConflictPlace {
                    component: &component,
                    environment,
                    key: &key,
                    recorded: known.is_some(),
                };
                conflicts.push(at.words(manifest, document, file));
                continue;
            };
            if let Some(last) = last {
                written.insert(key, last.clone());
            }
        }
        if !changes.is_empty() {
            let text = followed(file, there, &changes)?;
            merged.follow.insert(name.clone(), text);
        }
        merged.written.insert(name, written);
    }
    refuse(&conflicts)?;
    Ok(merged)
}

impl ConfigOverrides {
    /// Puts what a file says into the manifest, and remembers where it came from.
    fn note(
        &mut self,
        manifest: &mut Manifest,
        (component, environment): (&ComponentName, EnvironmentName),
        (file, name): (&Document, &str),
        key: &str,
        value: Option<&Value>,
    ) -> Result<()> {
        if key == REGION && value.is_none() {
            let span = ManifestSpot::of(&["config"]).span(file);
            let message = format!("{name} has no {REGION}, which environment {environment} gives");
            return Err(file
                .error(ErrorCode::DOCUMENT_SHAPE, span, message, "it belongs here")
                .with_help(
                    "put it back, or take `region` out of the environment in the manifest",
                ));
        }
        let named = manifest_key(manifest, component, environment, key);
        let Some(entry) = manifest.stacks.get_mut(component) else {
            return Ok(());
        };
        let config = entry.config.entry(environment).or_default();
        match value {
            Some(value) => config.insert(named.clone(), value.clone()),
            None => config.remove(&named),
        };
        if value.is_some() {
            let place = (component.clone(), environment, named);
            let at = (name.to_owned(), key.to_owned());
            self.places.insert(place, at);
            self.files
                .entry(name.to_owned())
                .or_insert_with(|| file.clone());
        }
        Ok(())
    }
}

/// Units that have a configuration file.
fn units(manifest: &Manifest) -> Vec<(ComponentName, EnvironmentName)> {
    let mut units = Vec::new();
    for (component, _) in manifest.enabled() {
        let environments = manifest.environments.keys();
        units.extend(environments.map(|environment| (component.clone(), *environment)));
    }
    units
}

/// What the manifest says of a unit, with keys in a namespace as Pulumi has them, and the region that
/// its provider works in, if there is one.
fn wanted(
    manifest: &Manifest,
    component: &ComponentName,
    environment: EnvironmentName,
) -> Map<String, Value> {
    let mut config = Map::new();
    let target = manifest.environments.get(&environment);
    if let Some(target) = target.filter(|target| !target.region.is_empty()) {
        config.insert(REGION.to_owned(), json!(target.region));
    }
    let entry = manifest.stacks.get(component);
    let values = entry.and_then(|entry| entry.config.get(&environment));
    for (key, value) in values.into_iter().flatten() {
        config.insert(namespaced(manifest, component, key), value.clone());
    }
    config
}

/// A key with its namespace.
pub(crate) fn namespaced(manifest: &Manifest, component: &ComponentName, key: &str) -> String {
    whole_key(manifest.namespace(component), key)
}

/// A key of a file as the manifest has it, or would have it.
fn manifest_key(
    manifest: &Manifest,
    component: &ComponentName,
    environment: EnvironmentName,
    key: &str,
) -> String {
    let entry = manifest.stacks.get(component);
    let values = entry.and_then(|entry| entry.config.get(&environment));
    if values.is_some_and(|values| values.contains_key(key)) {
        return key.to_owned();
    }
    let namespace = manifest.namespace(component);
    // As the manifest spells it, so that the file changes that value and does not stand beside it.
    let whole = whole_key(namespace, key);
    let mut spelled = values.into_iter().flat_map(Map::keys);
    if let Some(spelled) = spelled.find(|one| whole_key(namespace, one) == whole) {
        return spelled.clone();
    }
    match own_parameter(namespace, key) {
        Some(own) if !own.contains(':') => own.to_owned(),
        Some(_) | None => key.to_owned(),
    }
}

fn config_text(values: Map<String, Value>) -> String {
    let header = [
        "Written from the manifest. An edit here counts for this stack in this environment; keys that"
            .to_owned(),
        "are left as they are follow the manifest. Placeholders are resolved at run time.".to_owned(),
    ];
    yaml::write(
        &header,
        &Map::from_iter([(CONFIG_FOLDER.to_owned(), Value::Object(values))]),
    )
}

/// The values of a file, by key.
fn read(file: &Document) -> Result<Map<String, Value>> {
    let view = file.view();
    if view.node().is_null() {
        return Ok(Map::new());
    }
    view.only_keys(&[CONFIG_FOLDER])?;
    let Some(config) = view.optional(CONFIG_FOLDER)? else {
        return Ok(Map::new());
    };
    for (key, value) in config.entries()? {
        let encrypted = value.node().as_mapping();
        if encrypted.is_some_and(|map| map.len() == 1 && map.get("secure").is_some()) {
            let message =
                format!("`{key}` is encrypted for a stack of Pulumi, not for this deployment");
            return Err(value.error(message, "cannot be read here").with_help(
                "set it with `nimbus secret set DEPLOYMENT NAME`, and write {secret: NAME} here",
            ));
        }
        if !key.contains(':') {
            let message = format!("`{key}` is in no namespace");
            return Err(value
                .error(message, "of this key")
                .with_help("write it as the others are, with the project's name before it"));
        }
    }
    match file.to_json(config.node())? {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

/// The text of a file with some keys as the manifest has them now. Comments stay where that is
/// possible.
fn followed(
    file: &Document,
    mut there: Map<String, Value>,
    changes: &[(String, Option<Value>)],
) -> Result<String> {
    let scalar = |value: &Value| !value.is_object() && !value.is_array();
    let in_place = changes.iter().all(|(key, value)| {
        there.get(key).is_some_and(scalar) && value.as_ref().is_some_and(scalar)
    });
    if in_place {
        let mut edited = file.clone();
        for (key, value) in changes {
            let value = value.clone().unwrap_or_default();
            let text = edit::set(&edited, &[CONFIG_FOLDER, key], &value)?;
            edited = Document::parse(file.name(), &text)?;
        }
        return Ok(edited.text().to_owned());
    }
    for (key, value) in changes {
        match value {
            Some(value) => there.insert(key.clone(), value.clone()),
            None => there.remove(key),
        };
    }
    edit::set(file, &[CONFIG_FOLDER], &Value::Object(there))
}

/// A key that was changed in both places.
struct ConflictPlace<'a> {
    component: &'a ComponentName,
    environment: EnvironmentName,
    key: &'a str,
    /// Whether it is known what was written.
    recorded: bool,
}

impl ConflictPlace<'_> {
    fn words(&self, manifest: &Manifest, document: &Document, file: &Document) -> String {
        let at = |document: &Document, span: Span| {
            format!("{}:{}", document.name(), document.position(span).line)
        };
        let key = manifest_key(manifest, self.component, self.environment, self.key);
        let spot = match self.key {
            REGION => ManifestSpot::of(&["spec", "environments", &self.environment, "region"]),
            _ => ManifestSpot::config(self.component, self.environment, &key),
        };
        let here = at(
            file,
            ManifestSpot::of(&[CONFIG_FOLDER, self.key]).span(file),
        );
        let there = at(document, spot.span(document));
        let what = match self.recorded {
            true => "changed in both places",
            false => "not the same in both places",
        };
        format!("`{}` is {what}: {here} and {there}", self.key)
    }
}

fn refuse(conflicts: &[String]) -> Result<()> {
    if conflicts.is_empty() {
        return Ok(());
    }
    let message = format!("configuration {}", conflicts.join("; "));
    Err(Error::new(ErrorCode::CONFIG_CONFLICT, message).with_help(
        "give both the same value, or put one back as it was; a file that is deleted is written \
         again from the manifest",
    ))
}
