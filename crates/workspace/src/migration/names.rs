//! Renaming an environment in all manifests, and the entry file of all stacks.

use std::fs;
use std::path::{Path, PathBuf};

use nimbus_core::{EnvironmentName, Error, ErrorCode, Malformed, Result};
use nimbus_disk::unreadable;
use nimbus_document::{Document, Node, Span};
use nimbus_orchestrator::{FILE_NAME, account_variable};

use super::changes::{MigrationChange, WorkspaceMigration};
use crate::workspace::Workspace;

/// Renames an environment in manifests, templates and the names of config files.
pub fn rename_environment(
    workspace: &Workspace,
    from: &str,
    to: &str,
) -> Result<WorkspaceMigration> {
    let to: EnvironmentName = to
        .parse()
        .map_err(|error: Malformed| Error::new(ErrorCode::MALFORMED_ID, error.to_string()))?;
    if from.is_empty() || from == to.as_str() {
        return Err(Error::new(
            ErrorCode::USAGE,
            format!("`{from}` and `{to}` are not two names"),
        ));
    }
    let mut migration = WorkspaceMigration::default();
    for directory in workspace.deployment_directories()? {
        rewrite(
            &mut migration,
            workspace.root(),
            &directory.join(FILE_NAME),
            from,
            to,
        )?;
        rename_configs(
            &mut migration,
            workspace.root(),
            &directory.join("config"),
            from,
            to,
        )?;
    }
    let templates = workspace.root().join("tools/templates");
    for kind in ["config", "default", "custom"] {
        for path in sorted(&templates.join(kind)) {
            if path
                .extension()
                .is_some_and(|extension| extension == "yaml")
            {
                rewrite(&mut migration, workspace.root(), &path, from, to)?;
            }
        }
    }
    Ok(migration)
}

/// Renames the entry file of every stack, and what its package files say of it.
pub fn rename_scripts(workspace: &Workspace, from: &str, to: &str) -> Result<WorkspaceMigration> {
    for name in [from, to] {
        if name.is_empty() || name.contains(['/', '\\']) || name == ".." || name == "." {
            let message = format!("`{name}` is not the name of a file");
            return Err(Error::new(ErrorCode::USAGE, message));
        }
    }
    let mut migration = WorkspaceMigration::default();
    for stack in sorted(&workspace.root().join("stacks")) {
        let source = stack.join("src");
        if !source.join(from).is_file() {
            continue;
        }
        migration.changes.push(MigrationChange::Move {
            from: below(workspace.root(), &source.join(from)),
            to: below(workspace.root(), &source.join(to)),
        });
        for name in ["package.json", "tsconfig.json"] {
            let path = source.join(name);
            let Ok(before) = fs::read_to_string(&path) else {
                continue;
            };
            let after = before.replace(from, to);
            if after != before {
                let path = below(workspace.root(), &path);
                migration.changes.push(MigrationChange::Rewrite {
                    path,
                    before,
                    after,
                });
            }
        }
    }
    Ok(migration)
}

fn rewrite(
    migration: &mut WorkspaceMigration,
    root: &Path,
    path: &Path,
    from: &str,
    to: EnvironmentName,
) -> Result<()> {
    let before = fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
    let document = Document::parse(&path.display().to_string(), &before)?;
    if let Some(after) = renamed(&document, from, to)? {
        let path = below(root, path);
        migration.changes.push(MigrationChange::Rewrite {
            path,
            before,
            after,
        });
    }
    Ok(())
}

/// The text with the environment renamed, wherever a manifest or template names one; `None` if it
/// does not.
fn renamed(document: &Document, from: &str, to: EnvironmentName) -> Result<Option<String>> {
    let mut spans = Vec::new();
    let mut accounts = Vec::new();
    let root = document.root();
    let spec = root.get("spec").unwrap_or(root);
    if let Some(environments) = spec.get("environments") {
        key(document, environments, from, to, &mut spans)?;
        values(document, environments, from, &mut spans);
        accounts.extend(account(document, environments, from));
    }
    // Every environment must be in the list, under its name.
    let promotion = spec.get("promotion").and_then(Node::as_sequence);
    let named = promotion.into_iter().flatten();
    for item in named.filter(|item| item.as_str() == Some(from)) {
        spans.push(inside(document, item, from));
    }
    let stacks = spec.get("stacks").and_then(Node::as_mapping);
    for (_, entry) in stacks.into_iter().flat_map(|stacks| stacks.iter()) {
        if let Some(config) = entry.value.get("config") {
            key(document, config, from, to, &mut spans)?;
            values(document, config, from, &mut spans);
        }
    }
    if spans.is_empty() {
        return Ok(None);
    }
    let variable = account_variable(to);
    let mut changes: Vec<(Span, &str)> = spans.iter().map(|span| (*span, to.as_str())).collect();
    changes.extend(accounts.iter().map(|span| (*span, variable.as_str())));
    changes.sort_by_key(|(span, _)| span.start);
    let mut text = document.text().to_owned();
    // From the back, so that the places of those before stay what they are.
    for (span, new) in changes.into_iter().rev() {
        text.replace_range(span.start..span.end, new);
    }
    Ok(Some(text))
}

/// The variable in a template that is named after the environment: rendering knows it by the new
/// name only.
fn account(document: &Document, environments: &Node, from: &str) -> Option<Span> {
    let variable = account_variable(from.parse().ok()?);
    let account = environments.get(from)?.get("account")?;
    let used = account.as_str()? == format!("{{{{{variable}}}}}");
    used.then(|| inside(document, account, &variable))
}

/// Where a text is in a value; quotes around it are not part of it.
fn inside(document: &Document, node: &Node, text: &str) -> Span {
    let start = node.span.start + document.source(node.span).find(text).unwrap_or(0);
    Span::new(start, start + text.len())
}

fn key(
    document: &Document,
    node: &Node,
    from: &str,
    to: EnvironmentName,
    spans: &mut Vec<Span>,
) -> Result<()> {
    let Some(mapping) = node.as_mapping() else {
        return Ok(());
    };
    let Some(entry) = mapping.entry(from) else {
        return Ok(());
    };
    if mapping.entry(to.as_str()).is_some() {
        let message = format!("{} has both {from} and {to}", document.name());
        return Err(document.error(
            ErrorCode::MIGRATION_CONFLICT,
            entry.key_span,
            message,
            "this one would replace the other",
        ));
    }
    spans.push(entry.key_span);
    Ok(())
}

/// Settings called `environment` whose value is the old name.
fn values(document: &Document, node: &Node, from: &str, spans: &mut Vec<Span>) {
    let mapping = node.as_mapping();
    for (_, entry) in mapping.into_iter().flat_map(|mapping| mapping.iter()) {
        let Some(setting) = entry.value.get("environment") else {
            continue;
        };
        if setting.as_str() == Some(from) {
            spans.push(inside(document, setting, from));
        }
    }
}

fn rename_configs(
    migration: &mut WorkspaceMigration,
    root: &Path,
    directory: &Path,
    from: &str,
    to: EnvironmentName,
) -> Result<()> {
    let ending = format!(".{from}.yaml");
    for path in sorted(directory) {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if let Some(stack) = name.strip_suffix(&ending) {
            migration.changes.push(MigrationChange::Move {
                to: below(root, &directory.join(format!("{stack}.{to}.yaml"))),
                from: below(root, &path),
            });
        }
    }
    Ok(())
}

pub(super) fn sorted(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "# Ours\nspec:\n  environments:\n    staging: {enabled: true} # soon\n  stacks:\n    web:\n      \
                            config:\n        staging: {environment: \"staging\", note: staging area}\n";

    #[test]
    fn names_change_and_words_do_not() {
        let document = Document::parse("m.yaml", MANIFEST).unwrap();
        let text = renamed(&document, "staging", EnvironmentName::STAGE)
            .unwrap()
            .unwrap();
        assert_eq!(
            text,
            "# Ours\nspec:\n  environments:\n    stage: {enabled: true} # soon\n  stacks:\n    web:\n      \
             config:\n        stage: {environment: \"stage\", note: staging area}\n"
        );
        let document = Document::parse("m.yaml", &text).unwrap();
        assert_eq!(
            renamed(&document, "staging", EnvironmentName::STAGE).unwrap(),
            None
        );
    }

    #[test]
    fn the_order_and_the_variable_of_a_template_follow() {
        let text = "environments:\n  test: {account: '{{AWS_ACCOUNT_TEST}}'}\n  live: {account: '{{AWS_ACCOUNT_LIVE}}'}\n\
                    promotion: [\"test\", live]\n";
        let document = Document::parse("t.yaml", text).unwrap();
        let after = renamed(&document, "test", "pre-live".parse().unwrap());
        assert_eq!(
            after.unwrap().unwrap(),
            "environments:\n  pre-live: {account: '{{AWS_ACCOUNT_PRE_LIVE}}'}\n  live: {account: '{{AWS_ACCOUNT_LIVE}}'}\n\
             promotion: [\"pre-live\", live]\n"
        );
    }

    #[test]
    fn a_name_that_no_environment_can_have_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("cloud/tools/templates")).unwrap();
        let workspace = Workspace::find(temp.path()).unwrap();
        let error = rename_environment(&workspace, "staging", "Pre Live").unwrap_err();
        assert_eq!(error.code(), ErrorCode::MALFORMED_ID);
        assert!(
            error.message().contains("name of an environment"),
            "{error}"
        );
    }

    #[test]
    fn two_environments_are_never_merged() {
        let text = "environments: {stage: {}, staging: {}}\n";
        let document = Document::parse("m.yaml", text).unwrap();
        let error = renamed(&document, "staging", EnvironmentName::STAGE).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MIGRATION_CONFLICT);
    }

    #[test]
    fn scripts_are_renamed_with_what_names_them() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("cloud");
        fs::create_dir_all(root.join("tools/templates")).unwrap();
        let source = root.join("stacks/web/src");
        fs::create_dir_all(&source).unwrap();
        fs::write(source.join("index.2.2.ts"), "x").unwrap();
        fs::write(source.join("package.json"), "{\"main\": \"index.2.2.ts\"}").unwrap();
        let workspace = Workspace::find(&root).unwrap();
        let migration = rename_scripts(&workspace, "index.2.2.ts", "index.ts").unwrap();
        migration.apply(&root, "test", "now").unwrap();
        assert_eq!(fs::read_to_string(source.join("index.ts")).unwrap(), "x");
        assert_eq!(
            fs::read_to_string(source.join("package.json")).unwrap(),
            "{\"main\": \"index.ts\"}"
        );
        assert!(
            rename_scripts(&workspace, "index.2.2.ts", "index.ts")
                .unwrap()
                .is_empty()
        );
        assert!(rename_scripts(&workspace, "../x", "index.ts").is_err());
    }
}
