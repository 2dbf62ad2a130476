//! What a program has to see to run: its code, its packages, its interpreter.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Everything that a program needs to read beside what the system has. `root` is where its
/// `Pulumi.yaml` is, `directory` where its code is.
pub fn readable_by_program(root: &Path, directory: &Path, interpreter: &Path) -> Vec<PathBuf> {
    let mut paths = BTreeSet::from_iter(code_of_program(root, directory));
    paths.extend(interpreter_paths(interpreter));
    paths.retain(|path| path.is_absolute());
    paths.into_iter().collect()
}

/// The program itself and its packages, without what interprets them.
pub fn code_of_program(root: &Path, directory: &Path) -> Vec<PathBuf> {
    let mut paths = BTreeSet::new();
    for own in [root, directory] {
        paths.insert(real(own));
        // Tools look at files by the name that they were called with.
        paths.insert(own.to_owned());
    }
    let modules: Vec<PathBuf> = directory
        .ancestors()
        .map(|ancestor| ancestor.join("node_modules"))
        .filter(|modules| modules.is_dir())
        .collect();
    for modules in modules {
        paths.extend(linked_packages(&modules));
        paths.insert(real(&modules));
        paths.insert(modules);
    }
    paths.retain(|path| path.is_absolute());
    paths.into_iter().collect()
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Packages that lie elsewhere and are linked in, as in workspaces.
fn linked_packages(modules: &Path) -> Vec<PathBuf> {
    let entries = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let (scopes, packages): (Vec<_>, Vec<_>) = entries(modules).into_iter().partition(|path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with('@') && !path.is_symlink()
    });
    let scoped = scopes.iter().flat_map(|scope| entries(scope));
    packages
        .into_iter()
        .chain(scoped)
        .filter(|path| path.is_symlink())
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect()
}

/// An interpreter is a chain of links that ends in an installation. Each place on the way is seen,
/// as little of it as will do.
fn interpreter_paths(interpreter: &Path) -> Vec<PathBuf> {
    const LONGEST: usize = 16;
    let mut paths = Vec::new();
    let mut next = Some(interpreter.to_owned());
    for _ in 0..LONGEST {
        let Some(path) = next else { break };
        paths.push(installation(&path));
        next = fs::read_link(&path).ok().map(|target| {
            let directory = path.parent().unwrap_or_else(|| Path::new("/"));
            directory.join(target)
        });
    }
    paths.push(installation(&real(interpreter)));
    // Directories may be links too.
    let reals: Vec<PathBuf> = paths.iter().map(|path| real(path)).collect();
    paths
        .into_iter()
        .chain(reals)
        .filter(|path| !is_system(path))
        .collect()
}

/// The directory that an interpreter and its libraries are in, or the interpreter alone: with
/// `~/bin/node` the directory above would be somebody's home.
fn installation(interpreter: &Path) -> PathBuf {
    let prefix = interpreter.parent().and_then(Path::parent);
    match prefix {
        Some(prefix) if is_installation(prefix) => prefix.to_owned(),
        _ => interpreter.to_owned(),
    }
}

fn is_installation(prefix: &Path) -> bool {
    if prefix.join("pyvenv.cfg").is_file() || prefix.join("lib/node_modules").is_dir() {
        return true;
    }
    let libraries = fs::read_dir(prefix.join("lib"))
        .into_iter()
        .flatten()
        .flatten();
    let mut names = libraries.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with("python3"))
}

/// Seen by every program already.
fn is_system(path: &Path) -> bool {
    path.starts_with("/usr") || path.starts_with("/bin")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().expect("a temporary directory");
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, "").expect("a file");
        }
        let path = real(root.path());
        (root, path)
    }

    #[test]
    fn a_program_sees_its_code_and_the_packages_above_it() {
        let (_guard, root) = tree(&["work/node_modules/x/i.js", "work/app/infra/index.ts", "me"]);
        let app = root.join("work/app");
        let paths = readable_by_program(&app, &app.join("infra"), Path::new("/usr/bin/node"));
        assert!(paths.contains(&app) && paths.contains(&app.join("infra")));
        assert!(paths.contains(&root.join("work/node_modules")));
        assert!(!paths.iter().any(|path| root.join("me").starts_with(path)));
    }

    #[test]
    fn packages_that_are_linked_in_are_seen_where_they_are() {
        let (_guard, root) = tree(&["app/node_modules/@own/x", "shared/a/i.js", "shared/b/i.js"]);
        let modules = root.join("app/node_modules");
        symlink(root.join("shared/a"), modules.join("a")).expect("a link");
        symlink(root.join("shared/b"), modules.join("@own/b")).expect("a link");
        let app = root.join("app");
        let paths = readable_by_program(&app, &app, Path::new("/usr/bin/node"));
        assert!(paths.contains(&root.join("shared/a")), "{paths:?}");
        assert!(paths.contains(&root.join("shared/b")), "{paths:?}");
        assert!(!paths.contains(&root.join("shared")));
    }

    #[test]
    fn a_virtual_environment_is_seen_with_the_installation_behind_it() {
        let (_guard, root) = tree(&[
            "venv/pyvenv.cfg",
            "venv/bin/x",
            "py/bin/python3.11",
            "py/lib/python3.11/os.py",
        ]);
        let python = root.join("venv/bin/python");
        symlink(root.join("py/bin/python3.11"), &python).expect("a link");
        let paths = interpreter_paths(&python);
        assert!(paths.contains(&root.join("venv")) && paths.contains(&root.join("py")));
    }

    #[test]
    fn an_interpreter_in_somebodys_home_does_not_open_the_home() {
        let (_guard, home) = tree(&["bin/node", ".ssh/id"]);
        let paths = interpreter_paths(&home.join("bin/node"));
        assert!(
            paths.iter().all(|path| path.ends_with("bin/node")),
            "{paths:?}"
        );
    }
}
