//! Components as a folder has them: templates, programs, and what they are in a catalog.
//!
//! The folder is a workspace, the shipped library, or a repository of the same shape. It may be a stranger's: nothing
//! outside of it is read, links are not followed, and what is too large is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_document::Document;
use nimbus_orchestrator::ComponentTemplate;
use serde_json::{Map, Value};

const TEMPLATES: &str = "tools/templates/config";
const CATALOG: &str = "tools/catalog.yaml";
/// One file.
const MOST_BYTES: u64 = 512 * 1024;
/// Files of one program.
const MOST_FILES: usize = 500;
/// What a build or an editor leaves behind.
const LEFT_OUT: &[&str] = &[
    "node_modules",
    "bin",
    "dist",
    "coverage",
    "__pycache__",
    "venv",
];

/// A component that a folder has.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundComponent {
    pub name: ComponentName,
    /// Its stack template.
    pub template: Map<String, Value>,
    pub provider: Option<String>,
    pub semantic_type: Option<String>,
    pub display_name: Option<String>,
    /// Inputs that a resolver answers.
    pub resolvers: Map<String, Value>,
    /// `typescript` or `python`.
    pub language: &'static str,
    /// Texts by path below the component's folder.
    pub files: BTreeMap<String, String>,
}

/// Every component of a folder, by name.
///
/// # Errors
///
/// When there is none, or one of them cannot be read.
pub fn found_components(root: &Path) -> Result<Vec<FoundComponent>> {
    let templates = root.join(TEMPLATES);
    let entries = fs::read_dir(&templates).map_err(|error| {
        unreadable(&templates, &error.to_string())
            .with_help("give a workspace, or a folder with tools/templates/config and stacks")
    })?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    paths.sort();
    let catalog = catalog(root)?;
    let found = paths
        .iter()
        .map(|path| one(root, path, &catalog))
        .collect::<Result<Vec<_>>>()?;
    match found.is_empty() {
        true => Err(unreadable(&templates, "there is no component")),
        false => Ok(found),
    }
}

fn one(root: &Path, path: &Path, catalog: &Map<String, Value>) -> Result<FoundComponent> {
    let text = text_of(path)?;
    let document = Document::parse_bytes(&path.display().to_string(), text.as_bytes())?;
    let template = ComponentTemplate::read(&document)?;
    let Value::Object(whole) = document.to_json(document.root())? else {
        return Err(unreadable(path, "it is no mapping"));
    };
    let name = template.name;
    let folder = root.join("stacks").join(name.as_str());
    let mut files = BTreeMap::new();
    collect(&folder.join("src"), "src", &mut files)?;
    let python = files.contains_key("src/__main__.py");
    let entry = catalog.get(name.as_str());
    let text = |key: &str| entry.and_then(|entry| entry[key].as_str().map(str::to_owned));
    let resolvers = entry.and_then(|entry| entry["resolvers"].as_object().cloned());
    Ok(FoundComponent {
        template: whole,
        provider: text("provider"),
        semantic_type: text("type"),
        display_name: text("displayName"),
        resolvers: resolvers.unwrap_or_default(),
        language: if python { "python" } else { "typescript" },
        files,
        name,
    })
}

/// What components are in a catalog, by name; a folder need not say.
fn catalog(root: &Path) -> Result<Map<String, Value>> {
    let path = root.join(CATALOG);
    if !path.is_file() {
        return Ok(Map::new());
    }
    let text = text_of(&path)?;
    let document = Document::parse_bytes(CATALOG, text.as_bytes())?;
    let view = document.view();
    view.only_keys(&["components"])?;
    let components = view.required("components")?;
    for (_, entry) in components.entries()? {
        entry.only_keys(&["provider", "type", "displayName", "resolvers"])?;
    }
    Ok(match document.to_json(components.node())? {
        Value::Object(entries) => entries,
        _ => Map::new(),
    })
}

fn collect(folder: &Path, below: &str, files: &mut BTreeMap<String, String>) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error.to_string()))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(folder, &error.to_string()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{below}/{name}");
        let kind = entry
            .file_type()
            .map_err(|error| unreadable(&entry.path(), &error.to_string()))?;
        if kind.is_symlink() {
            return Err(unreadable(
                &entry.path(),
                "it is a link, and links are not followed",
            ));
        }
        if kind.is_dir() {
            if !LEFT_OUT.contains(&name.as_str()) {
                collect(&entry.path(), &path, files)?;
            }
        } else {
            files.insert(path, text_of(&entry.path())?);
        }
        if files.len() > MOST_FILES {
            let message = format!("the program has more than {MOST_FILES} files");
            return Err(unreadable(folder, &message));
        }
    }
    Ok(())
}

fn text_of(path: &Path) -> Result<String> {
    let size = fs::symlink_metadata(path).map_err(|error| unreadable(path, &error.to_string()))?;
    // A pipe would be waited for until somebody writes into it.
    if !size.is_symlink() && !size.is_file() {
        return Err(unreadable(path, "it is no regular file"));
    }
    if size.is_symlink() || size.len() > MOST_BYTES {
        let message = format!("it is a link, or has more than {MOST_BYTES} bytes");
        return Err(unreadable(path, &message));
    }
    fs::read_to_string(path).map_err(|error| unreadable(path, &error.to_string()))
}

fn unreadable(path: &Path, why: &str) -> Error {
    Error::new(
        ErrorCode::FILE_UNREADABLE,
        format!("{} cannot be read: {why}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().to_owned();
        write(&root, "tools/templates/config/a.yaml", "name: a\n");
        write(&root, "stacks/a/src/index.ts", "export {};\n");
        let pipe = root.join("stacks/a/src/pipe.ts");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(found_components(&root)));
        let found = receive.recv_timeout(std::time::Duration::from_secs(30));
        let refused = found.expect("it waits for the pipe").unwrap_err();
        assert!(refused.to_string().contains("no regular file"), "{refused}");
    }

    #[test]
    fn a_folder_has_components_with_their_programs_and_what_they_are() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        write(
            root,
            "tools/templates/config/a.yaml",
            "name: a\ndescription: A\n",
        );
        write(root, "tools/templates/config/b.yaml", "name: b\n");
        write(
            root,
            CATALOG,
            "components:\n  a: { provider: aws, type: Database, displayName: The A }\n",
        );
        write(root, "stacks/a/src/index.ts", "export {};\n");
        write(root, "stacks/a/src/node_modules/x/index.ts", "no\n");
        write(root, "stacks/a/tests/a.test.ts", "no\n");
        write(root, "stacks/b/src/__main__.py", "\n");
        let found = found_components(root).unwrap();
        let told: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    one.name.as_str(),
                    one.language,
                    one.provider.as_deref(),
                    one.files.len(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("a", "typescript", Some("aws"), 1),
                ("b", "python", None, 1)
            ]
        );
    }

    #[test]
    fn links_and_strange_folders_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        assert!(found_components(root).is_err());
        write(root, "tools/templates/config/a.yaml", "name: a\n");
        write(root, "stacks/a/src/index.ts", "export {};\n");
        std::os::unix::fs::symlink("/etc/passwd", root.join("stacks/a/src/more.ts")).unwrap();
        let error = found_components(root).unwrap_err();
        assert!(error.message().contains("link"), "{error}");
    }
}
