//! Where the SDK begins to run a program.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::resolve::{file_or_folder, manifest};

/// The file that is run for an entry: `name` is a file of the folder, or `.` for the folder itself.
pub fn entry_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let entry = if name == "." {
        packaged(folder).unwrap_or_else(|| folder.to_owned())
    } else {
        folder.join(name)
    };
    file_or_folder(&entry)?.canonicalize().ok()
}

/// What the nearest package says about itself, if it is there.
fn packaged(folder: &Path) -> Option<PathBuf> {
    let root = folder
        .ancestors()
        .find(|ancestor| ancestor.join("package.json").is_file())?;
    let manifest = manifest(root)?;
    let named = match &manifest["exports"] {
        Value::String(path) => Some(path.as_str()),
        Value::Object(entries) => match &entries.get(".")? {
            Value::String(path) => Some(path.as_str()),
            Value::Object(conditions) => ["default", "require", "import"]
                .iter()
                .find_map(|name| conditions.get(*name)?.as_str()),
            _ => None,
        },
        _ => manifest["main"].as_str(),
    };
    named
        .map(|path| root.join(path))
        .filter(|path| path.exists())
}
