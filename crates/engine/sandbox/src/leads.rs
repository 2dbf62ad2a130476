//! Where a stranger's project leads in the operator's roots: to what its interpreters look up.
//!
//! A link, a line of a `.pth` file or the name of a setting is the stranger's, and could name anything in a
//! root. So what it names is shown only if it is what such a thing leads to in an honest project: a package
//! with its manifest, a folder `node_modules`, modules that can be imported, settings of TypeScript. What
//! the operator's own links lead to within the roots is the operator's word.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nimbus_engine_files::{ProjectFiles, TsConfig, extended_file};

/// More files of settings than this no project has in a chain.
const MOST_SETTINGS: usize = 64;
/// Manifests of packages have some kilobytes.
const LARGEST_MANIFEST: u64 = 4 << 20;

/// Folders of packages that Node.js searches for what these paths load, and packages that are linked
/// into them: the stores of package managers, and folders that packages are hoisted to.
pub(crate) fn packages_behind(files: &ProjectFiles, from: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut searched = BTreeSet::new();
    let mut next: Vec<PathBuf> = from.iter().cloned().collect();
    while let Some(path) = next.pop() {
        for folder in path.ancestors() {
            let modules = match folder.file_name() {
                Some(name) if name == "node_modules" => folder.to_owned(),
                _ => folder.join("node_modules"),
            };
            if !searched.insert(modules.clone()) || !files.is_dir(&modules) {
                continue;
            }
            // A link that leads elsewhere is the operator's here, and shows nothing.
            let Ok(real) = files.canonicalize(&modules) else {
                continue;
            };
            let is_own = files.is_own(&real);
            let linked = links_among_packages(files, &modules).into_iter();
            let linked = linked.filter_map(|path| files.canonicalize(&path).ok());
            let linked = linked.filter(|package| !is_own || may_be_linked(files, package));
            for real in linked.chain([real]) {
                if found.insert(real.clone()) {
                    next.push(real);
                }
            }
        }
    }
    found
}

/// Whether a project's own link may lead here: to its own files, to what is installed in a root, or to a package
/// there. The root of a workspace is none, because it has everybody's projects in it.
pub(crate) fn may_be_linked(files: &ProjectFiles, real: &Path) -> bool {
    let installed = real.iter().any(|part| part == "node_modules");
    if files.is_own(real) || installed {
        return true;
    }
    let manifest = files.read_at_most(&real.join("package.json"), LARGEST_MANIFEST);
    let manifest = manifest
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    let Some(serde_json::Value::Object(manifest)) = manifest else {
        return false;
    };
    manifest.contains_key("name")
        && !manifest.contains_key("workspaces")
        && !["pnpm-workspace.yaml", "lerna.json"]
            .iter()
            .any(|name| files.exists(&real.join(name)))
}

/// Packages in a folder of them, with scopes or without, that are links.
pub(crate) fn links_among_packages(files: &ProjectFiles, modules: &Path) -> Vec<PathBuf> {
    let is_link = |path: &Path| {
        let itself = files.symlink_metadata(path);
        itself.is_ok_and(|itself| itself.is_symlink())
    };
    let entries = files.entries(modules).unwrap_or_default().into_iter();
    let packages = entries.flat_map(|path| {
        let name = path.file_name().unwrap_or_default();
        match name.as_encoded_bytes().starts_with(b"@") && !is_link(&path) {
            true => files.entries(&path).unwrap_or_default(),
            false => vec![path],
        }
    });
    packages.filter(|path| is_link(path)).collect()
}

/// Settings of TypeScript that those in these folders extend, wherever they may be read.
pub(crate) fn settings_behind(files: &ProjectFiles, folders: &[&Path]) -> BTreeSet<PathBuf> {
    let entries = folders
        .iter()
        .flat_map(|folder| files.entries(folder).unwrap_or_default());
    let mut next: Vec<PathBuf> = entries.filter(|path| is_tsconfig(path)).collect();
    let mut found = BTreeSet::new();
    while let Some(file) = next.pop() {
        let Some(settings) = settings_in(files, &file) else {
            continue;
        };
        for name in settings.extends().unwrap_or_default() {
            let there = extended_file(files, &file, name);
            let Some(real) = there.and_then(|path| files.canonicalize(&path).ok()) else {
                continue;
            };
            let shown = settings_in(files, &real).is_some_and(|read| read.is_plausible());
            if shown && found.len() < MOST_SETTINGS && found.insert(real.clone()) {
                next.push(real);
            }
        }
    }
    found
}

fn settings_in(files: &ProjectFiles, file: &Path) -> Option<TsConfig> {
    let text = files.read_at_most(file, LARGEST_MANIFEST).ok()?;
    TsConfig::parse(str::from_utf8(&text).ok()?)
}

fn is_tsconfig(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("tsconfig") && path.extension().is_some_and(|ending| ending == "json")
}

/// What a virtual environment names in its files: the folder of the interpreter that it was made with,
/// as `home`, and the code in folders that its `.pth` files name.
#[derive(Debug, Default)]
pub(crate) struct EnvironmentLeads {
    pub(crate) home: Option<PathBuf>,
    pub(crate) code: BTreeSet<PathBuf>,
}

pub(crate) fn environment_behind(files: &ProjectFiles, environment: &Path) -> EnvironmentLeads {
    let Ok(settings) = files.read_to_string(&environment.join("pyvenv.cfg")) else {
        return EnvironmentLeads::default();
    };
    let mut pairs = settings.lines().filter_map(|line| line.split_once('='));
    let home = pairs.find(|(name, _)| name.trim() == "home");
    let home = home.map(|(_, home)| PathBuf::from(home.trim()));
    let versions = files.entries(&environment.join("lib")).unwrap_or_default();
    let mut code = BTreeSet::new();
    for version in versions {
        let packages = version.join("site-packages");
        for file in files.entries(&packages).unwrap_or_default() {
            if file.extension().is_none_or(|ending| ending != "pth") {
                continue;
            }
            let text = files.read_to_string(&file).unwrap_or_default();
            let lines = text.lines().map(str::trim);
            let folders = lines.filter(|line| {
                !line.is_empty() && !line.starts_with('#') && !line.starts_with("import")
            });
            let folders = folders.map(|line| packages.join(line));
            let folders = folders.filter(|folder| files.is_dir(folder));
            let folders = folders.filter_map(|folder| files.canonicalize(&folder).ok());
            code.extend(folders.flat_map(|folder| importable(files, folder)));
        }
    }
    EnvironmentLeads {
        home: home.filter(|home| home.is_absolute()),
        code,
    }
}

/// What of a folder can be imported: all of it where packages are installed, in other places of the
/// operator's only modules, packages and what is known about them.
fn importable(files: &ProjectFiles, folder: PathBuf) -> Vec<PathBuf> {
    let name = folder.file_name().unwrap_or_default();
    if files.is_own(&folder) || name == "site-packages" || name == "dist-packages" {
        return vec![folder];
    }
    let entries = files.entries(&folder).unwrap_or_default().into_iter();
    let entries = entries.filter(|path| match files.is_dir(path) {
        true => is_metadata(path) || is_python_package(files, path),
        false => is_module(path),
    });
    entries
        .filter_map(|path| files.canonicalize(&path).ok())
        .collect()
}

fn is_module(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ["py", "pyi", "so"].iter().any(|module| ending == *module)
}

fn is_metadata(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ending == "dist-info" || ending == "egg-info"
}

/// A folder of modules, or one of such folders.
fn is_python_package(files: &ProjectFiles, folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_identifier = name
        .chars()
        .all(|char| char.is_alphanumeric() || char == '_');
    let entries = files.entries(folder).unwrap_or_default();
    is_identifier
        && entries.iter().any(|path| {
            is_module(path) && files.is_file(path) || files.is_file(&path.join("__init__.py"))
        })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        }
        let path = root.path().canonicalize().expect("a folder");
        (root, path)
    }

    #[test]
    fn a_package_in_a_store_is_seen_with_what_it_needs() {
        let (_guard, root) = tree(&[
            ("app/node_modules/own/i.js", ""),
            ("store/links/a/1/node_modules/a/i.js", ""),
            (
                "store/links/a/1/node_modules/a/package.json",
                r#"{"name": "a"}"#,
            ),
            ("store/links/b/1/node_modules/b/i.js", ""),
            ("store/secret/key", ""),
        ]);
        let (a, b) = (root.join("store/links/a/1"), root.join("store/links/b/1"));
        let modules = root.join("app/node_modules");
        symlink(a.join("node_modules/a"), modules.join("a")).expect("a link");
        symlink(b.join("node_modules/b"), a.join("node_modules/b")).expect("a link");
        let files = ProjectFiles::beneath(&root.join("app"), &[root.join("store")]);
        let files = files.expect("a kernel with openat2");
        let found = packages_behind(&files, &BTreeSet::from([modules]));
        for needed in [a.join("node_modules"), b.join("node_modules")] {
            assert!(found.contains(&needed), "{found:?}");
        }
        let secret = root.join("store/secret/key");
        assert!(!found.iter().any(|path| secret.starts_with(path)));
    }

    #[test]
    fn settings_are_followed_as_far_as_they_may_be_read() {
        let (_guard, root) = tree(&[
            (
                "work/app/tsconfig.json",
                "{ // ours\n\"extends\": [\"../base\", \"a-package\"] }",
            ),
            ("work/base.json", r#"{"extends": "../out.json"}"#),
            ("work/secret.json", r#"{"password": "x"}"#),
            ("work/key", "-----BEGIN PRIVATE KEY-----"),
            (
                "work/app/tsconfig.build.json",
                r#"{"extends": ["../secret.json", "../key", "../../work/secret"]}"#,
            ),
            ("out.json", "{}"),
        ]);
        let app = root.join("work/app");
        let files = ProjectFiles::beneath(&app, &[root.join("work")]);
        let files = files.expect("a kernel with openat2");
        let found = settings_behind(&files, &[&app]);
        assert_eq!(found, BTreeSet::from([root.join("work/base.json")]));
    }

    #[test]
    fn an_environment_names_its_interpreter_and_code() {
        let (_guard, root) = tree(&[
            ("app/venv/pyvenv.cfg", "home = /opt/py/bin\nversion = 3\n"),
            (
                "app/venv/lib/python3.11/site-packages/x.pth",
                "import os\nROOT/shared/src\nROOT/other\n# no\n",
            ),
            ("shared/src/x.py", ""),
            ("other/y.py", ""),
        ]);
        let pth = root.join("app/venv/lib/python3.11/site-packages/x.pth");
        let text = fs::read_to_string(&pth).expect("a file");
        let text = text.replace("ROOT", &root.display().to_string());
        fs::write(&pth, text).expect("a file");
        let files = ProjectFiles::beneath(&root.join("app"), &[root.join("shared")]);
        let files = files.expect("a kernel with openat2");
        let found = environment_behind(&files, &root.join("app/venv"));
        assert_eq!(found.home, Some("/opt/py/bin".into()));
        assert_eq!(found.code, BTreeSet::from([root.join("shared/src/x.py")]));
    }

    /// Whatever a stranger's link names in a root, nothing is seen that is no package.
    #[test]
    fn a_link_into_a_root_leads_to_a_package_or_to_nothing() {
        let (_guard, root) = tree(&[
            ("app/node_modules/own/i.js", ""),
            (
                "share/package.json",
                r#"{"name": "all", "workspaces": ["*"]}"#,
            ),
            ("share/lib/package.json", r#"{"name": "lib"}"#),
            ("share/data/secret.json", "{}"),
            ("share/odd/package.json", "[]"),
            ("share/odd/node_modules/@scope/a/i.js", ""),
            ("share/pnpm/package.json", r#"{"name": "x"}"#),
            ("share/pnpm/pnpm-workspace.yaml", ""),
        ]);
        let files = ProjectFiles::beneath(&root.join("app"), &[root.join("share")]);
        let files = files.expect("a kernel with openat2");
        let may = |path: &str| may_be_linked(&files, &root.join(path));
        assert!(may("app/node_modules/own") && may("share/lib"));
        assert!(may("share/odd/node_modules/@scope"));
        for path in [
            "share",
            "share/data",
            "share/data/secret.json",
            "share/odd",
            "share/pnpm",
        ] {
            assert!(!may(path), "{path}");
        }
        let modules = root.join("app/node_modules");
        for name in ["", "data", "lib"] {
            let link = modules.join(format!("x{name}"));
            symlink(root.join("share").join(name), link).expect("a link");
        }
        let found = packages_behind(&files, &BTreeSet::from([modules.clone()]));
        assert_eq!(found, BTreeSet::from([modules, root.join("share/lib")]));
    }

    #[test]
    fn of_a_folder_with_code_only_the_code_is_seen() {
        let (_guard, root) = tree(&[
            ("app/x", ""),
            ("share/module.py", ""),
            ("share/secret.txt", ""),
            ("share/.env", ""),
            ("share/package/__init__.py", ""),
            ("share/space/inner/__init__.py", ""),
            ("share/data/key.pem", ""),
            ("share/a-b/x.py", ""),
            ("share/package-1.dist-info/METADATA", ""),
            ("share/venv/site-packages/any.txt", ""),
        ]);
        let files = ProjectFiles::beneath(&root.join("app"), &[root.join("share")]);
        let files = files.expect("a kernel with openat2");
        let share = root.join("share");
        let names = ["module.py", "package", "package-1.dist-info", "space"];
        let expected = names.map(|name| share.join(name));
        assert_eq!(importable(&files, share.clone()), expected);
        let installed = share.join("venv/site-packages");
        assert_eq!(importable(&files, installed.clone()), [installed]);
    }
}
