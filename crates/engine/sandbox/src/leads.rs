//! Where a stranger's project leads beyond its links: what its interpreters look up by themselves. All
//! of it lies in the project or in the operator's roots, and nothing else of a root is shown.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nimbus_engine_files::ProjectFiles;

/// More files of settings than this no project has in a chain.
const MOST_SETTINGS: usize = 64;

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
            let linked = links_among_packages(files, &modules).into_iter();
            // A link that leads elsewhere is the operator's here, and shows nothing.
            let reals = linked
                .chain([modules])
                .map(|path| files.canonicalize(&path));
            for real in reals.flatten() {
                if found.insert(real.clone()) {
                    next.push(real);
                }
            }
        }
    }
    found
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
        let Ok(text) = files.read_to_string(&file) else {
            continue;
        };
        let folder = file.parent().unwrap_or_else(|| Path::new("/"));
        for base in extended(&text) {
            let whole = folder.join(base);
            let with_ending = folder.join(format!("{base}.json"));
            let candidates = [whole.clone(), with_ending, whole.join("tsconfig.json")];
            let there = candidates.iter().find(|path| files.is_file(path));
            let real = there.and_then(|path| files.canonicalize(path).ok());
            if let Some(real) = real
                && found.len() < MOST_SETTINGS
                && found.insert(real.clone())
            {
                next.push(real);
            }
        }
    }
    found
}

fn is_tsconfig(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("tsconfig") && path.extension().is_some_and(|ending| ending == "json")
}

/// The paths after `"extends"`, one or a list. Packages are found where packages are. The text may have
/// comments, so it is not read as JSON; what is taken too much can still only lead into the roots.
fn extended(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for after in text.split("\"extends\"").skip(1) {
        let Some(value) = after.trim_start().strip_prefix(':') else {
            continue;
        };
        let value = value.trim_start();
        let (list, most) = match value.strip_prefix('[') {
            Some(list) => (list.split(']').next().unwrap_or_default(), usize::MAX),
            None if value.starts_with('"') => (value, 1),
            None => continue,
        };
        let words = list.split('"').skip(1).step_by(2).take(most);
        found.extend(words.filter(|word| word.starts_with('.') || word.starts_with('/')));
    }
    found
}

/// What a virtual environment names in its files: the folder of the interpreter that it was made with,
/// as `home`, and folders of code in its `.pth` files.
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
            code.extend(folders.filter_map(|folder| files.canonicalize(&folder).ok()));
        }
    }
    EnvironmentLeads {
        home: home.filter(|home| home.is_absolute()),
        code,
    }
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
            ("work/secret.json", ""),
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
        assert_eq!(found.code, BTreeSet::from([root.join("shared/src")]));
    }
}
