//! A new component from the scaffold in `tools/templates`: program, tests, documents and stack
//! template.

use std::fs;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::{unreadable, unwritable};

use crate::files;
use crate::registration::check_name;
use crate::workspace::Workspace;

/// What the scaffold's variables stand for.
#[derive(Clone, Debug)]
pub struct ComponentScaffold {
    pub name: String,
    pub description: String,
    /// `2026-01-02`.
    pub date: String,
}

impl Workspace {
    /// Makes a component, all of it or nothing. Returns the files, below the workspace's root.
    pub fn scaffold(&self, component: &ComponentScaffold) -> Result<Vec<PathBuf>> {
        let name = &check_name(&component.name)?;
        check_description(&component.description)?;
        let directory = self.root().join("stacks").join(name.as_str());
        let template = self.stack_template(name);
        for taken in [&directory, &template] {
            if taken.exists() {
                let message = format!("the stack {name} exists: {}", taken.display());
                return Err(Error::new(ErrorCode::STACK_REGISTERED, message)
                    .with_help("choose another name"));
            }
        }
        let draft = self.root().join("stacks").join(format!(".{name}.new"));
        let written = self.write_scaffold(component, &draft);
        let (made, text) = written.inspect_err(|_| {
            // Only the draft is there, and it is ours.
            let _ = fs::remove_dir_all(&draft);
        })?;
        nimbus_disk::place_folder(&draft, &directory)
            .map_err(|error| unwritable(&directory, error))?;
        files::replace(&template, &text).inspect_err(|_| {
            let _ = fs::remove_dir_all(&directory);
        })?;
        let mut all: Vec<PathBuf> = made
            .into_iter()
            .map(|file| Path::new("stacks").join(name.as_str()).join(file))
            .collect();
        all.push(Path::new("tools/templates/config").join(format!("{name}.yaml")));
        all.sort();
        Ok(all)
    }

    /// Files of the stack's directory, and the text of its template.
    fn write_scaffold(
        &self,
        component: &ComponentScaffold,
        draft: &Path,
    ) -> Result<(Vec<PathBuf>, String)> {
        let templates = self.root().join("tools/templates");
        let mut made = Vec::new();
        let mut stack_template = None;
        for (folder, file) in template_files(&templates)? {
            let path = templates.join(folder).join(&file);
            let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
            let text = filled_in(&text, component);
            let Some(target) = destination(folder, &file, &component.name) else {
                stack_template = Some(text);
                continue;
            };
            let place = draft.join(&target);
            files::replace(&place, &text)?;
            made.push(target);
        }
        let missing = || {
            let path = templates.join("stack/template.yaml.template");
            let message = format!("the scaffold is incomplete: {} is missing", path.display());
            Error::new(ErrorCode::FILE_UNREADABLE, message)
                .with_help("`nimbus new` writes what is missing")
        };
        Ok((made, stack_template.ok_or_else(missing)?))
    }
}

/// Becomes a line of YAML, JSON and TypeScript comments, so it must be one line of plain text.
fn check_description(text: &str) -> Result<()> {
    let fits = |c: char| !c.is_control() && !matches!(c, '"' | '\\' | ':' | '#' | '{' | '}' | '*');
    if !text.trim().is_empty() && text.len() <= 200 && text.chars().all(fits) {
        return Ok(());
    }
    let message = "the description is not one short line of plain text";
    Err(Error::new(ErrorCode::USAGE, message)
        .with_help("at most 200 characters, without quotes, colons, braces, # and *"))
}

/// Every file of the scaffold: its folder and its path in there.
fn template_files(templates: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut found = Vec::new();
    for folder in ["stack", "docs"] {
        let root = templates.join(folder);
        let mut open = vec![root.clone()];
        while let Some(directory) = open.pop() {
            let entries =
                fs::read_dir(&directory).map_err(|error| unreadable(&directory, error))?;
            for entry in entries {
                let path = entry.map_err(|error| unreadable(&directory, error))?.path();
                if path.is_dir() {
                    open.push(path);
                } else if path
                    .extension()
                    .is_some_and(|extension| extension == "template")
                {
                    let inside = path.strip_prefix(&root).unwrap_or(&path).to_owned();
                    found.push((folder, inside));
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Where a file belongs below the stack's directory; `None` for the stack template.
fn destination(folder: &str, file: &Path, stack: &str) -> Option<PathBuf> {
    let name = file.file_stem()?;
    if folder == "docs" {
        return Some(Path::new("docs").join(name));
    }
    if file == Path::new("template.yaml.template") {
        return None;
    }
    if file.starts_with("tests") {
        return Some(Path::new("tests").join(format!("{stack}.test.ts")));
    }
    Some(Path::new("src").join(name))
}

/// Variables of a deployment stay: they are filled in at init.
fn filled_in(text: &str, component: &ComponentScaffold) -> String {
    text.replace("{{STACK_NAME}}", &component.name)
        .replace("{{STACK_DESCRIPTION}}", &component.description)
        .replace("{{DATE}}", &component.date)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("cloud");
        for (file, text) in [
            ("stack/index.ts.template", "// {{STACK_DESCRIPTION}}\n"),
            (
                "stack/Pulumi.yaml.template",
                "name: {{STACK_NAME}}\nruntime: nodejs\n",
            ),
            (
                "stack/src/config.ts.template",
                "export const STACK = '{{STACK_NAME}}';\n",
            ),
            ("stack/tests/stack.test.ts.template", "{{STACK_NAME}}\n"),
            (
                "stack/template.yaml.template",
                "name: {{STACK_NAME}}\nconfig: {id: '{{DEPLOYMENT_ID}}'}\n",
            ),
            ("docs/Stack_History.md.template", "{{DATE}}\n"),
        ] {
            files::replace(&root.join("tools/templates").join(file), text).unwrap();
        }
        fs::create_dir_all(root.join("stacks")).unwrap();
        (temp, Workspace::find(&root).unwrap())
    }

    fn component(name: &str) -> ComponentScaffold {
        ComponentScaffold {
            name: name.to_owned(),
            description: "Queues of the shop".to_owned(),
            date: "2026-01-02".to_owned(),
        }
    }

    #[test]
    fn a_component_gets_program_tests_documents_and_template() {
        let (_temp, workspace) = workspace();
        let made = workspace.scaffold(&component("queue")).unwrap();
        let made: Vec<_> = made.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(
            made,
            [
                "stacks/queue/docs/Stack_History.md",
                "stacks/queue/src/Pulumi.yaml",
                "stacks/queue/src/config.ts",
                "stacks/queue/src/index.ts",
                "stacks/queue/tests/queue.test.ts",
                "tools/templates/config/queue.yaml",
            ]
        );
        assert!(workspace.library().unwrap().stacks.contains_key("queue"));
        assert!(workspace.project_file(&"queue".parse().unwrap()).is_ok());
        let template =
            fs::read_to_string(workspace.stack_template(&"queue".parse().unwrap())).unwrap();
        assert!(template.contains("{{DEPLOYMENT_ID}}"));
        let again = workspace.scaffold(&component("queue")).unwrap_err();
        assert_eq!(again.code(), ErrorCode::STACK_REGISTERED);
    }

    #[test]
    fn a_scaffold_that_cannot_be_finished_leaves_nothing() {
        let (_temp, workspace) = workspace();
        fs::remove_file(
            workspace
                .root()
                .join("tools/templates/stack/template.yaml.template"),
        )
        .unwrap();
        workspace.scaffold(&component("queue")).unwrap_err();
        assert_eq!(
            fs::read_dir(workspace.root().join("stacks"))
                .unwrap()
                .count(),
            0
        );
        let mut odd = component("queue");
        odd.description = "a\nb".to_owned();
        assert_eq!(
            workspace.scaffold(&odd).unwrap_err().code(),
            ErrorCode::USAGE
        );
    }
}
