//! A place from which the official command line runs a program under another name.
//!
//! A program is shared by many stacks, whose projects and configuration are only known when they
//! run. The official command line takes both from files, so a private folder holds them, with a
//! link to the program. Secrets in it are encrypted with the stack's own key.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::unwritable;
use nimbus_engine_backend::StackSecrets;
use nimbus_engine_backend::project::{ConfigKey, ConfigValue, PluginPath, Project, StackSettings};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::given::GivenConfig;

/// The link to the program.
const PROGRAM: &str = "program";

/// Removed when dropped.
pub(super) struct WorkspaceCopy {
    folder: TempDir,
    config: PathBuf,
}

impl WorkspaceCopy {
    /// `project` has the name that it runs under.
    pub(super) fn make(
        project: &Project,
        stack: &str,
        given: &GivenConfig,
        secrets: &StackSecrets,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("nimbus-").tempdir();
        let folder = folder.map_err(|error| unwritable(&std::env::temp_dir(), error))?;
        let link = folder.path().join(PROGRAM);
        symlink(project.directory(), &link).map_err(|error| unwritable(&link, error))?;
        let file = folder.path().join("Pulumi.yaml");
        let text = project_file(project).to_string();
        fs::write(&file, text).map_err(|error| unwritable(&file, error))?;
        let config = folder.path().join(format!("Pulumi.{stack}.yaml"));
        settings(&config, &project.name, given, secrets)?.save()?;
        Ok(Self { folder, config })
    }

    pub(super) fn directory(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn config(&self) -> &Path {
        &self.config
    }
}

/// The project under its name of this run, with every path as seen from the copy.
fn project_file(project: &Project) -> Value {
    let root = project.directory();
    let runtime = project.runtime.clone().unwrap_or_default();
    let mut options = runtime.options;
    if let Some(Value::String(path)) = options.get_mut("virtualenv") {
        *path = root.join(&path).display().to_string();
    }
    let main = match &project.main {
        Some(main) => format!("{PROGRAM}/{}", main.trim_start_matches("./")),
        None => format!("{PROGRAM}/"),
    };
    let paths = |plugins: &[PluginPath]| {
        let entry = |plugin: &PluginPath| {
            let path = root.join(&plugin.path).display().to_string();
            let mut entry = Map::from_iter([
                ("name".to_owned(), json!(plugin.name)),
                ("path".to_owned(), json!(path)),
            ]);
            if let Some(version) = &plugin.version {
                entry.insert("version".to_owned(), json!(version));
            }
            Value::Object(entry)
        };
        plugins.iter().map(entry).collect::<Vec<_>>()
    };
    let plugins = &project.plugins;
    // JSON is YAML.
    json!({
        "name": project.name,
        "runtime": {"name": runtime.name, "options": options},
        "main": main,
        "plugins": {
            "providers": paths(&plugins.providers),
            "languages": paths(&plugins.languages),
            "analyzers": paths(&plugins.analyzers),
        },
    })
}

fn settings(
    path: &Path,
    project: &str,
    given: &GivenConfig,
    secrets: &StackSecrets,
) -> Result<StackSettings> {
    let mut settings = StackSettings::read(path, project)?;
    // The key comes first: without it the official command line would make another one.
    secrets.crypter().map_err(Error::from)?;
    if let Some(provider) = secrets.provider() {
        settings.set_secrets(&provider)?;
    }
    for (key, value, secret) in given.values() {
        let key = ConfigKey::parse(key)
            .map_err(|error| Error::new(ErrorCode::CONFIG_KEY, format!("{key}: {error}")))?;
        if secret {
            let text = GivenConfig::text(value);
            settings.set_secret(&key, &[], &text, secrets)?;
        } else {
            settings.set(&key, &[], written(value))?;
        }
    }
    Ok(settings)
}

fn written(value: &Value) -> ConfigValue {
    match value {
        Value::Null => ConfigValue::Null,
        Value::Bool(value) => ConfigValue::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => ConfigValue::Int(number),
            (None, Some(number)) => ConfigValue::UInt(number),
            (None, None) => ConfigValue::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => ConfigValue::Text(text.clone()),
        Value::Array(items) => ConfigValue::List(items.iter().map(written).collect()),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (key.clone(), written(value)));
            ConfigValue::Map(entries.collect())
        }
    }
}
