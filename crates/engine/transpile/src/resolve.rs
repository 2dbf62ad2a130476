//! Which of the program's own files a name means.
//!
//! Only own files matter, so whatever leads into `node_modules` leads nowhere here, except for
//! links from there to packages of the same workspace. Names that Node.js would understand and this
//! does not are no harm: files that were not foreseen are compiled when they are asked for.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::options::ProjectSettings;
use crate::paths;

/// In the order in which Node.js tries them, with ours after its own.
const ENDINGS: [&str; 8] = [
    ".js", ".json", ".node", ".ts", ".tsx", ".cts", ".mts", ".mjs",
];

pub(crate) struct ModuleResolver<'a> {
    settings: &'a ProjectSettings,
}

impl<'a> ModuleResolver<'a> {
    pub(crate) fn new(settings: &'a ProjectSettings) -> Self {
        Self { settings }
    }

    /// The real path of an own file.
    pub(crate) fn resolve(&self, from: &Path, name: &str) -> Option<PathBuf> {
        let folder = from.parent()?;
        let found = if name.starts_with('.') || Path::new(name).is_absolute() {
            file_or_folder(&folder.join(name))
        } else {
            in_workspace(folder, name).or_else(|| self.by_paths(name))
        };
        let real = found?.canonicalize().ok()?;
        (!is_installed(&real)).then_some(real)
    }

    fn by_paths(&self, name: &str) -> Option<PathBuf> {
        let base = self.settings.base_url.as_deref();
        let candidates = paths::candidates(&self.settings.paths, base, name);
        candidates.iter().find_map(|path| file_or_folder(path))
    }
}

/// Whether a file belongs to an installed package.
pub(crate) fn is_installed(path: &Path) -> bool {
    path.components()
        .any(|part| part == Component::Normal("node_modules".as_ref()))
}

/// What Node.js takes a path for.
pub(crate) fn file_or_folder(path: &Path) -> Option<PathBuf> {
    file(path).or_else(|| {
        if !path.is_dir() {
            return None;
        }
        let manifest = manifest(path);
        let main = manifest
            .as_ref()
            .and_then(|manifest| manifest["main"].as_str());
        main.and_then(|main| file(&path.join(main)))
            .or_else(|| file(&path.join("index")))
    })
}

fn file(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    let ended = ENDINGS.iter().map(|ending| {
        let mut with = path.as_os_str().to_owned();
        with.push(ending);
        PathBuf::from(with)
    });
    // ES modules are named as they will be called once they are compiled.
    let replaced = match path.extension().and_then(|ending| ending.to_str()) {
        Some("js") => vec![path.with_extension("ts"), path.with_extension("tsx")],
        Some("mjs") => vec![path.with_extension("mts")],
        Some("cjs") => vec![path.with_extension("cts")],
        _ => Vec::new(),
    };
    ended.chain(replaced).find(|path| path.is_file())
}

pub(crate) fn manifest(folder: &Path) -> Option<Value> {
    let text = read_text(&folder.join("package.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// The text of a file. Whoever opens a pipe waits for ever, so nothing else is opened.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    std::fs::read_to_string(path)
}

/// A package that is linked into `node_modules` from elsewhere.
fn in_workspace(folder: &Path, name: &str) -> Option<PathBuf> {
    let end = match name.strip_prefix('@') {
        Some(scoped) => scoped.find('/').map(|slash| {
            let rest = &scoped[slash + 1..];
            slash + 2 + rest.find('/').unwrap_or(rest.len())
        })?,
        None => name.find('/').unwrap_or(name.len()),
    };
    let (package, inner) = name.split_at(end);
    let inner = inner.trim_start_matches('/');
    let place = folder
        .ancestors()
        .map(|ancestor| ancestor.join("node_modules").join(package))
        .find(|place| place.is_dir())?;
    let real = place.canonicalize().ok()?;
    if is_installed(&real) {
        return None;
    }
    let exported = manifest(&real).and_then(|manifest| {
        let key = if inner.is_empty() {
            ".".to_owned()
        } else {
            format!("./{inner}")
        };
        exported(&manifest["exports"], &key).map(str::to_owned)
    });
    match exported {
        Some(path) => file(&real.join(path)),
        None if inner.is_empty() => file_or_folder(&real),
        None => file_or_folder(&real.join(inner)),
    }
}

/// What `exports` of a package has under a key, for a program.
pub(crate) fn exported<'a>(exports: &'a Value, key: &str) -> Option<&'a str> {
    match exports {
        Value::String(path) if key == "." => Some(path),
        Value::Object(entries) if entries.keys().any(|entry| entry.starts_with('.')) => {
            condition(entries.get(key)?)
        }
        Value::Object(_) if key == "." => condition(exports),
        _ => None,
    }
}

fn condition(value: &Value) -> Option<&str> {
    match value {
        Value::String(path) => Some(path),
        Value::Object(conditions) => ["node", "require", "import", "default"]
            .iter()
            .find_map(|name| condition(conditions.get(*name)?)),
        _ => None,
    }
}
