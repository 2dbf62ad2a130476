//! Packages of Node.js programs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nimbus_engine_files::ProjectFiles;
use serde::Deserialize;

use super::{PluginInfo, RequiredPackages, parse};

#[derive(Deserialize)]
struct PackageJson {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
    pulumi: Option<PluginInfo>,
}

/// Looks through everything that the program could load: its `node_modules` and those above it.
pub(super) fn search(files: &ProjectFiles, program_dir: &Path) -> RequiredPackages {
    let mut search = Search {
        files,
        found: RequiredPackages::default(),
        visited: BTreeSet::new(),
    };
    for ancestor in program_dir.ancestors() {
        search.modules(&ancestor.join("node_modules"));
    }
    search.found
}

struct Search<'a> {
    files: &'a ProjectFiles,
    found: RequiredPackages,
    /// Real paths: packages may be linked to in circles.
    visited: BTreeSet<PathBuf>,
}

impl Search<'_> {
    /// A directory of packages, and of scopes that are directories of packages.
    fn modules(&mut self, directory: &Path) {
        for path in self.children(directory) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('@') {
                self.children(&path)
                    .iter()
                    .for_each(|package| self.package(package));
            } else if !name.starts_with('.') {
                self.package(&path);
            }
        }
        // One package manager keeps the real packages here and links to them.
        let store = directory.join(".pnpm");
        self.children(&store)
            .iter()
            .for_each(|package| self.modules(&package.join("node_modules")));
    }

    fn package(&mut self, directory: &Path) {
        let Ok(real) = self.files.canonicalize(directory) else {
            return;
        };
        if !self.visited.insert(real.clone()) {
            return;
        }
        let manifest = real.join("package.json");
        if let Ok(text) = self.files.read(&manifest)
            && let Err(problem) = self.manifest(&text)
        {
            let problem = format!("{}: {problem}", manifest.display());
            self.found.problems.push(problem);
        }
        self.modules(&real.join("node_modules"));
    }

    fn children(&self, directory: &Path) -> Vec<PathBuf> {
        let mut paths = self.files.entries(directory).unwrap_or_default();
        paths.retain(|path| self.files.is_dir(path));
        paths
    }

    fn manifest(&mut self, text: &[u8]) -> Result<(), String> {
        let json: PackageJson = match serde_json::from_slice(text) {
            Ok(json) => json,
            // Packages carry broken manifests as test data; only those that speak of us matter.
            Err(_) if !mentions_plugin(text) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let Some(info) = json.pulumi.filter(|info| info.resource) else {
            return Ok(());
        };
        let name = plugin_name(&info, &json.name)?;
        let version = match json.version.as_str() {
            "" => None,
            text => Some(parse(text)?),
        };
        self.found.packages.extend(info.describe(&name, version)?);
        Ok(())
    }
}

fn mentions_plugin(text: &[u8]) -> bool {
    text.windows(br#""pulumi":"#.len())
        .any(|part| part == br#""pulumi":"#)
}

/// Only the official packages may leave their plugin's name out.
fn plugin_name(info: &PluginInfo, package: &str) -> Result<String, String> {
    if let Some(name) = info.name.as_ref().filter(|name| !name.is_empty()) {
        return Ok(name.clone());
    }
    let official = package.strip_prefix("@pulumi/").map(str::to_owned);
    official.ok_or_else(|| "its pulumi section names no plugin".to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use semver::Version;

    use super::*;

    fn search(program_dir: &Path) -> RequiredPackages {
        super::search(&ProjectFiles::unrestricted(), program_dir)
    }

    fn install(root: &Path, path: &str, manifest: &str) {
        let directory = root.join(path);
        fs::create_dir_all(&directory).expect("directories");
        fs::write(directory.join("package.json"), manifest).expect("a file");
    }

    #[test]
    fn plugins_are_found_wherever_packages_can_be() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let root = root.path();
        let aws = r#"{"name":"@pulumi/aws","version":"7.48.0","pulumi":{"resource":true}}"#;
        install(root, "node_modules/@pulumi/aws", aws);
        install(
            root,
            "node_modules/left-pad",
            r#"{"name":"left-pad","version":"1.0.0"}"#,
        );
        let nested = r#"{"name":"@pulumi/random","version":"4.21.2",
            "pulumi":{"resource":true,"name":"random","version":"v4.21.0","server":"https://x"}}"#;
        install(root, "node_modules/lib/node_modules/@pulumi/random", nested);
        install(
            root,
            "node_modules/lib",
            r#"{"name":"lib","version":"1.0.0"}"#,
        );
        let own = root.join("infra");
        let parameterised = r#"{"name":"@pulumi/netlify","version":"0.9.0","pulumi":{"resource":true,
            "name":"terraform-provider","version":"1.0.0",
            "parameterization":{"name":"netlify","version":"0.9.0","value":"bg=="}}}"#;
        install(&own, "node_modules/@pulumi/netlify", parameterised);

        let found = search(&own);
        assert_eq!(found.problems, Vec::<String>::new());
        let mut names: Vec<_> = found
            .packages
            .iter()
            .map(|p| (p.package(), p.name.as_str(), p.version.clone()))
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                ("aws", "aws", Some(Version::new(7, 48, 0))),
                ("netlify", "terraform-provider", Some(Version::new(1, 0, 0))),
                ("random", "random", Some(Version::new(4, 21, 0))),
            ]
        );
    }

    #[test]
    fn links_in_circles_end() {
        let root = tempfile::tempdir().expect("a temporary directory");
        install(
            root.path(),
            "node_modules/a",
            r#"{"name":"a","version":"1.0.0"}"#,
        );
        let inner = root.path().join("node_modules/a/node_modules");
        fs::create_dir(&inner).expect("a directory");
        std::os::unix::fs::symlink(root.path().join("node_modules/a"), inner.join("a"))
            .expect("a link");
        assert_eq!(search(root.path()), RequiredPackages::default());
    }

    #[test]
    fn what_cannot_be_understood_is_reported_and_passed_over() {
        let root = tempfile::tempdir().expect("a temporary directory");
        install(root.path(), "node_modules/junk", "{ not json");
        install(
            root.path(),
            "node_modules/third-party",
            r#"{"name":"third-party","version":"1.0.0","pulumi":{"resource":true}}"#,
        );
        let found = search(root.path());
        assert!(found.packages.is_empty());
        assert_eq!(found.problems.len(), 1);
        assert!(
            found.problems[0].contains("third-party"),
            "{:?}",
            found.problems
        );
    }
}
