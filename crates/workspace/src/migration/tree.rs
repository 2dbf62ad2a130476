//! A whole tree of version 2.3: directories move, programs and manifests are brought up to date,
//! stacks are registered with what they need.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use nimbus_core::{ComponentName, Error, ErrorCode, Malformed, Result, UnitName};
use nimbus_document::Document;
use nimbus_orchestrator::{FILE_NAME, Manifest, configs, naming, yaml};
use serde_json::{Map, json};

use super::changes::{MigrationChange, WorkspaceMigration};
use super::legacy::LegacyManifest;
use super::names::{below, sorted};
use super::paths::rewritten;
use crate::registration::exports;

/// A Pulumi stack that gets another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateMove {
    /// `<project>/<stack>` as 2.3 named it: the stack and the environment.
    pub from: (String, String),
    /// Business project and unit.
    pub to: (String, String),
}

impl StateMove {
    /// All units of a deployment, under their old and new names. An environment may have been
    /// called otherwise; each spelling is a candidate.
    pub fn of_deployment(manifest: &Manifest) -> Vec<Self> {
        let mut moves = Vec::new();
        for stack in manifest.stacks.keys() {
            for environment in manifest.environments.keys() {
                let old: &[&str] = match environment.as_str() {
                    "stage" => &["staging", "stage"],
                    "dev" => &["dev", "development"],
                    "prod" => &["prod", "production"],
                    other => &[other],
                };
                for name in old {
                    moves.push(Self {
                        from: (stack.to_string(), (*name).to_owned()),
                        to: (
                            naming::sanitize(&manifest.metadata.project),
                            UnitName::new(&manifest.metadata.id, stack, *environment).to_string(),
                        ),
                    });
                }
            }
        }
        moves
    }
}

/// Decides on everything that has to change below `root`, which holds `aws/` and `admin/`.
pub fn plan_tree(root: &Path) -> Result<WorkspaceMigration> {
    let old = ["aws/deploy", "aws/build", "admin/v2"];
    if !old.iter().any(|path| root.join(path).is_dir()) {
        let message = format!("{} holds no tree of version 2.3", root.display());
        return Err(Error::new(ErrorCode::MIGRATION_UNKNOWN, message)
            .with_help("it has aws/deploy, aws/build and admin/v2; give its place with -C DIR"));
    }
    let mut plan = TreePlan {
        root,
        changes: Vec::new(),
    };
    plan.back_up();
    plan.tools();
    let programs = plan.programs();
    let manifests = plan.deployments()?;
    plan.registry(&programs, &manifests)?;
    Ok(WorkspaceMigration {
        changes: plan.changes,
    })
}

struct TreePlan<'a> {
    root: &'a Path,
    changes: Vec<MigrationChange>,
}

/// A stack's name and what its entry file exports.
type Programs = BTreeMap<String, BTreeSet<String>>;

impl TreePlan<'_> {
    fn deployment_directories(&self) -> Vec<PathBuf> {
        let is_backup = |path: &Path| path.to_string_lossy().ends_with(".v2.3.backup");
        let all = sorted(&self.root.join("aws/deploy"));
        all.into_iter()
            .filter(|path| path.is_dir() && !is_backup(path))
            .collect()
    }

    fn back_up(&mut self) {
        for directory in self.deployment_directories() {
            let from = below(self.root, &directory);
            let to = PathBuf::from(format!("{}.v2.3.backup", from.display()));
            if !self.root.join(&to).exists() {
                self.changes.push(MigrationChange::Copy { from, to });
            }
        }
    }

    /// Moves a directory whole, or what is in it if its place exists already.
    fn merge(&mut self, from: &Path, to: &Path) {
        if !self.root.join(to).exists() {
            let (from, to) = (from.to_owned(), to.to_owned());
            self.changes.push(MigrationChange::Move { from, to });
            return;
        }
        for path in sorted(&self.root.join(from)) {
            let name = path.file_name().unwrap_or_default();
            self.merge(&from.join(name), &to.join(name));
        }
    }

    /// Rewrites path references in the text files of a directory that moves from one place to another.
    fn rewrite_texts(&mut self, from: &Path, to: &Path) {
        for file in text_files(&self.root.join(from)) {
            let Ok(before) = fs::read_to_string(&file) else {
                continue;
            };
            let after = rewritten(&before);
            if after != before {
                let path = to.join(below(&self.root.join(from), &file));
                self.changes.push(MigrationChange::Rewrite {
                    path,
                    before,
                    after,
                });
            }
        }
    }

    fn tools(&mut self) {
        let (from, to) = (Path::new("admin/v2"), Path::new("cloud/tools"));
        if self.root.join(from).is_dir() {
            self.merge(from, to);
            self.rewrite_texts(from, to);
        }
    }

    fn programs(&mut self) -> Programs {
        let mut programs = BTreeMap::new();
        for path in sorted(&self.root.join("aws/build")) {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if !path.is_dir() {
                let to = Path::new("cloud/stacks").join(&name);
                self.move_file(&below(self.root, &path), &to, |text| {
                    rewritten(text)
                        .replace("/v2/src", "/src")
                        .replace("/v2/resources", "/src")
                });
                continue;
            }
            if let Some(outputs) = self.program(&name, &path) {
                programs.insert(name, outputs);
            }
        }
        programs
    }

    fn program(&mut self, name: &str, path: &Path) -> Option<BTreeSet<String>> {
        let inner = path.join("v2");
        let source = ["src", "resources"]
            .into_iter()
            .map(|folder| inner.join(folder))
            .find(|p| p.is_dir())?;
        let target = Path::new("cloud/stacks").join(name);
        for other in sorted(&inner).into_iter().filter(|other| *other != source) {
            let to = target.join(other.file_name().unwrap_or_default());
            let from = below(self.root, &other);
            self.merge(&from, &to);
            self.rewrite_texts(&from, &to);
        }
        let (from, to) = (below(self.root, &source), target.join("src"));
        self.merge(&from, &to);
        let old_entry = "index.2.2.ts";
        if source.join(old_entry).is_file() {
            self.changes.push(MigrationChange::Move {
                from: to.join(old_entry),
                to: to.join("index.ts"),
            });
        }
        let mut outputs = BTreeSet::new();
        for file in text_files(&source) {
            let Ok(before) = fs::read_to_string(&file) else {
                continue;
            };
            let file_name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let mut place = to.join(below(&source, &file));
            let after = match file_name.as_str() {
                "Pulumi.yaml" => minimal_project(name, &before),
                "package.json" | "tsconfig.json" => {
                    rewritten(&before).replace(old_entry, "index.ts")
                }
                _ => rewritten(&before),
            };
            if file_name == old_entry {
                place = to.join("index.ts");
            }
            if [old_entry, "index.ts", "index.js", "__main__.py"].contains(&file_name.as_str()) {
                outputs.extend(exports(&before));
            }
            if after != before {
                self.changes.push(MigrationChange::Rewrite {
                    path: place,
                    before,
                    after,
                });
            }
        }
        if !source.join("Pulumi.yaml").is_file() {
            let path = to.join("Pulumi.yaml");
            self.changes.push(MigrationChange::Create {
                path,
                text: minimal_project(name, ""),
            });
        }
        Some(outputs)
    }

    fn deployments(&mut self) -> Result<Vec<Manifest>> {
        let mut manifests = Vec::new();
        for directory in self.deployment_directories() {
            let name = directory
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let Some(file) = [FILE_NAME.to_owned(), format!("src/{FILE_NAME}")]
                .into_iter()
                .find(|file| directory.join(file).is_file())
            else {
                continue;
            };
            let document = Document::read(&directory.join(&file))?;
            let LegacyManifest(manifest) = LegacyManifest::read(&document, &name)?;
            self.deployment(&directory, &name, &file, document.text(), &manifest);
            manifests.push(manifest);
        }
        Ok(manifests)
    }

    fn deployment(
        &mut self,
        directory: &Path,
        name: &str,
        file: &str,
        before: &str,
        manifest: &Manifest,
    ) {
        let metadata = &manifest.metadata;
        let new = naming::directory(&metadata.id, &metadata.organization, &metadata.project);
        let target =
            Path::new("cloud/deploy").join(if naming::belongs_to(name, metadata.id.as_str()) {
                name
            } else {
                &new
            });
        let from = below(self.root, directory);
        self.changes.push(MigrationChange::Move {
            from,
            to: target.clone(),
        });
        let place = target.join(FILE_NAME);
        if file != FILE_NAME {
            self.changes.push(MigrationChange::Move {
                from: target.join(file),
                to: place.clone(),
            });
        }
        let (before, after) = (before.to_owned(), manifest.write());
        self.changes.push(MigrationChange::Rewrite {
            path: place,
            before,
            after,
        });
        let old_configs = sorted(&directory.join("config"));
        for (config, text) in configs(manifest) {
            let path = target.join("config").join(&config);
            match old_configs
                .iter()
                .find(|old| old.file_name().is_some_and(|name| *name == *config))
            {
                Some(old) => {
                    let before = fs::read_to_string(old).unwrap_or_default();
                    if before != text {
                        self.changes.push(MigrationChange::Rewrite {
                            path,
                            before,
                            after: text,
                        });
                    }
                }
                None => self.changes.push(MigrationChange::Create { path, text }),
            }
        }
        let log = target.join("logs/migrate.log");
        let text = "Migrated from version 2.3; the tree before is in aws/deploy as *.v2.3.backup\n"
            .to_owned();
        self.changes
            .push(MigrationChange::Create { path: log, text });
    }

    /// A template for every program that has none.
    fn registry(&mut self, programs: &Programs, manifests: &[Manifest]) -> Result<()> {
        let entries = |stack: &str| {
            manifests
                .iter()
                .filter_map(|manifest| manifest.stacks.get(stack))
                .collect::<Vec<_>>()
        };
        for (stack, outputs) in programs {
            let old = self
                .root
                .join("admin/v2/templates/config")
                .join(format!("{stack}.yaml"));
            let new = Path::new("cloud/tools/templates/config").join(format!("{stack}.yaml"));
            if old.exists() || self.root.join(&new).exists() {
                continue;
            }
            // A template that cannot be read would take the whole workspace with it.
            stack.parse::<ComponentName>().map_err(|error: Malformed| {
                Error::new(ErrorCode::MALFORMED_ID, error.to_string()).with_help(format!(
                    "rename aws/build/{stack}, and the stack in the manifests that use it"
                ))
            })?;
            let entries = entries(stack);
            let needs: BTreeSet<&ComponentName> = entries
                .iter()
                .flat_map(|entry| &entry.dependencies)
                .collect();
            let priority = entries
                .iter()
                .map(|entry| entry.priority)
                .min()
                .unwrap_or(100);
            let outputs: Map<_, _> = outputs
                .iter()
                .map(|name| (name.clone(), json!({})))
                .collect();
            let root = Map::from_iter([
                ("name".to_owned(), json!(stack)),
                (
                    "description".to_owned(),
                    json!(format!("The component {stack}")),
                ),
                ("priority".to_owned(), json!(priority)),
                ("dependencies".to_owned(), json!(needs)),
                ("outputs".to_owned(), json!(outputs)),
            ]);
            let header = [
                "yaml-language-server: $schema=../../schemas/stack-template.schema.json".to_owned(),
            ];
            let text = yaml::write(&header, &root);
            self.changes
                .push(MigrationChange::Create { path: new, text });
        }
        Ok(())
    }

    fn move_file(&mut self, from: &Path, to: &Path, edit: impl Fn(&str) -> String) {
        self.changes.push(MigrationChange::Move {
            from: from.to_owned(),
            to: to.to_owned(),
        });
        if let Ok(before) = fs::read_to_string(self.root.join(from)) {
            let after = edit(&before);
            if after != before {
                self.changes.push(MigrationChange::Rewrite {
                    path: to.to_owned(),
                    before,
                    after,
                });
            }
        }
    }
}

/// Name, runtime and description; a stack's project file says no more.
fn minimal_project(stack: &str, before: &str) -> String {
    let document = Document::parse("Pulumi.yaml", before).ok();
    let text = |key: &str| {
        let node = document.as_ref()?.root().get(key)?;
        let node = node.get("name").unwrap_or(node);
        node.as_str().map(str::to_owned)
    };
    let runtime = text("runtime").unwrap_or_else(|| "nodejs".to_owned());
    let description = text("description").unwrap_or_else(|| format!("The component {stack}"));
    let line = |key: &str, value: String| format!("{key}: {}\n", yaml::scalar(&json!(value)));
    line("name", stack.to_owned()) + &line("runtime", runtime) + &line("description", description)
}

/// Files that people write, below a directory or the file itself.
fn text_files(path: &Path) -> Vec<PathBuf> {
    let endings = [
        "ts", "js", "mjs", "json", "yaml", "yml", "md", "sh", "py", "txt", "template",
    ];
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(next) = open.pop() {
        if next.is_dir() {
            if next
                .file_name()
                .is_some_and(|name| name == "node_modules" || name == ".git")
            {
                continue;
            }
            open.extend(sorted(&next));
        } else if next
            .extension()
            .is_some_and(|ending| endings.iter().any(|known| ending == *known))
        {
            found.push(next);
        }
    }
    found.sort();
    found
}
