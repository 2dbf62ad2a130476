//! What a program has to see to run: its code, its packages, its interpreter.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use nimbus_engine_files::{PathNotAllowed, ProjectFiles, is_outside};

use crate::error::SandboxError;
use crate::leads::{
    environment_behind, links_among_packages, may_be_linked, packages_behind, settings_behind,
};

/// An interpreter, and who chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpreter<'a> {
    /// Ours, or found on the operator's search path.
    Operators(&'a Path),
    /// Named by the project, such as that of its virtual environment. It leads where the project
    /// says.
    Projects(&'a Path),
}

/// What a program is shown to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readable {
    /// By these names, links followed: ours, the operator's, and those of one's own project.
    pub named: Vec<PathBuf>,
    /// Exactly these, which have no links in them: those of a stranger's project.
    pub exact: Vec<PathBuf>,
}

impl Readable {
    /// One more thing of ours.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = PathBuf>) -> Self {
        self.named.extend(more);
        self
    }

    fn chosen_by(files: &ProjectFiles, paths: BTreeSet<PathBuf>) -> Self {
        let paths = paths
            .into_iter()
            .filter(|path| path.is_absolute())
            .collect();
        match files.is_restricted() {
            true => Self {
                exact: paths,
                named: Vec::new(),
            },
            false => Self {
                named: paths,
                exact: Vec::new(),
            },
        }
    }
}

/// Everything that a program needs to read beside what the system has. `root` is where its
/// `Pulumi.yaml` is, `directory` where its code is. What a stranger's project leads to and may not
/// have is an error: a program that lacks it would fail later, and nobody would know why.
pub fn readable_by_program(
    files: &ProjectFiles,
    root: &Path,
    directory: &Path,
    interpreter: Interpreter<'_>,
) -> Result<Readable, SandboxError> {
    let mut paths = BTreeSet::from_iter(code_of_program(files, root, directory)?);
    let path = match interpreter {
        Interpreter::Projects(path) if files.is_restricted() => {
            paths.extend(named_interpreter(files, path)?);
            if let Some(environment) = path.parent().and_then(Path::parent) {
                let leads = environment_behind(files, environment);
                paths.extend(leads.code);
                // One that was copied has no link to the installation that it needs.
                let home = leads.home.filter(|home| !is_system(home));
                let base = home.map(|home| shown_installation(files, &home.join("python3")));
                paths.extend(base.into_iter().flatten());
            }
            return Ok(Readable::chosen_by(files, paths));
        }
        Interpreter::Operators(path) | Interpreter::Projects(path) => path,
    };
    let interpreter = interpreter_paths(path).into_iter();
    let interpreter = interpreter.filter(|path| path.is_absolute());
    Ok(Readable::chosen_by(files, paths).and(interpreter))
}

/// The program itself and its packages, without what interprets them.
pub fn code_of_program(
    files: &ProjectFiles,
    root: &Path,
    directory: &Path,
) -> Result<Vec<PathBuf>, SandboxError> {
    let mut paths = BTreeSet::new();
    if files.is_restricted() {
        refuse_pipes(files, root)?;
    }
    for own in [root, directory] {
        // A root of the operator has packages for a program, and never the program itself.
        let real = files.own().canonicalize(own);
        paths.insert(real.or_else(|error| {
            if files.is_restricted() {
                return Err(unreadable(own, error));
            }
            Ok(own.to_owned())
        })?);
        // Tools look at files by the name that they were called with.
        if !files.is_restricted() {
            paths.insert(own.to_owned());
        }
    }
    for ancestor in directory.ancestors() {
        let modules = ancestor.join("node_modules");
        if !files.is_dir(&modules) {
            refuse_link_out(files, &modules)?;
            continue;
        }
        let real = files.canonicalize(&modules);
        let real = real.unwrap_or_else(|_| modules.clone());
        // Under another name it is somebody's folder, and not one of packages.
        if !files.is_own(&real) && real.file_name() != modules.file_name() {
            return Err(not_shared(&modules));
        }
        paths.extend(linked_packages(files, &modules)?);
        paths.insert(real);
        if !files.is_restricted() {
            paths.insert(modules);
        }
    }
    // Of the operator's roots no more is shown than what is found from here.
    if files.is_restricted() {
        let behind = packages_behind(files, &paths);
        paths.extend(behind);
        paths.extend(settings_behind(files, &[root, directory]));
    }
    paths.retain(|path| path.is_absolute());
    Ok(paths.into_iter().collect())
}

fn unreadable(path: &Path, source: io::Error) -> SandboxError {
    match source.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(outside) => SandboxError::Outside(PathNotAllowed::clone(outside)),
        None => SandboxError::Unreadable {
            path: path.to_owned(),
            source,
        },
    }
}

/// A link of the project into a root that names no package there.
fn not_shared(link: &Path) -> SandboxError {
    SandboxError::NotShared {
        link: link.to_owned(),
    }
}

/// Whoever opens a pipe waits for somebody to write into it, and nobody says for what. Packages are the
/// program's own to read.
fn refuse_pipes(files: &ProjectFiles, root: &Path) -> Result<(), SandboxError> {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = files.entries(&folder);
        for entry in entries.map_err(|error| unreadable(&folder, error))? {
            let found = files.symlink_metadata(&entry);
            let found = found.map_err(|error| unreadable(&entry, error))?;
            let is_packages = entry
                .file_name()
                .is_some_and(|name| name == "node_modules" || name == ".git");
            if found.is_dir() {
                folders.extend((!is_packages).then_some(entry));
            } else if !found.is_file() && !found.is_symlink() {
                let source = io::Error::other("it is neither a file nor a folder");
                return Err(unreadable(&entry, source));
            }
        }
    }
    Ok(())
}

/// What is not there may be a link of the project that leads out of it. What lies above the project
/// is not the project's, and only looked for.
fn refuse_link_out(files: &ProjectFiles, path: &Path) -> Result<(), SandboxError> {
    let is_link = files
        .symlink_metadata(path)
        .is_ok_and(|found| found.is_symlink());
    match files.metadata(path) {
        Err(error) if is_link && is_outside(&error) => Err(unreadable(path, error)),
        _ => Ok(()),
    }
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Packages that lie elsewhere and are linked in, as in workspaces.
fn linked_packages(files: &ProjectFiles, modules: &Path) -> Result<Vec<PathBuf>, SandboxError> {
    let mut linked = Vec::new();
    let real = files.canonicalize(modules);
    let is_own = real.is_ok_and(|real| files.is_own(&real));
    for path in links_among_packages(files, modules) {
        match files.canonicalize(&path) {
            Ok(real) if is_own && !may_be_linked(files, &real) => return Err(not_shared(&path)),
            Ok(real) => linked.push(real),
            Err(error) if is_outside(&error) => return Err(unreadable(&path, error)),
            // A link to nothing shows nothing.
            Err(_) => {}
        }
    }
    Ok(linked)
}

/// An interpreter is a chain of links that ends in an installation. Each place on the way is seen,
/// as little of it as will do.
fn interpreter_paths(interpreter: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut next = Some(interpreter.to_owned());
    for _ in 0..LONGEST_CHAIN {
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

const LONGEST_CHAIN: usize = 16;

/// The same chain where a stranger laid it: it may lead through the project, through the operator's
/// roots and to the system's own programs, which everybody sees.
fn named_interpreter(
    files: &ProjectFiles,
    interpreter: &Path,
) -> Result<Vec<PathBuf>, SandboxError> {
    let mut paths = Vec::new();
    let mut next = interpreter.to_owned();
    for _ in 0..LONGEST_CHAIN {
        // By the folder's real name, which is the one that the program will see.
        let folder = next.parent().unwrap_or_else(|| Path::new("/"));
        let name = next.file_name().unwrap_or_default();
        if is_system(&real(folder)) {
            return Ok(paths);
        }
        let folder = files
            .canonicalize(folder)
            .map_err(|error| unreadable(&next, error))?;
        let path = folder.join(name);
        let itself = files
            .symlink_metadata(&path)
            .map_err(|error| unreadable(&next, error))?;
        paths.extend(shown_installation(files, &path));
        if !itself.is_symlink() {
            return Ok(paths);
        }
        let target = fs::read_link(&path).map_err(|error| unreadable(&path, error))?;
        next = folder.join(target);
    }
    let source = io::Error::from(nix::errno::Errno::ELOOP);
    Err(unreadable(interpreter, source))
}

/// As much of the installation as may be read.
fn shown_installation(files: &ProjectFiles, interpreter: &Path) -> Vec<PathBuf> {
    let wide = installation(interpreter);
    let real = files.canonicalize(&wide);
    let real = real.or_else(|_| files.canonicalize(interpreter));
    // A file alone is an interpreter only if it can be run.
    let runs = |path: &PathBuf| {
        let found = files.metadata(path);
        found.is_ok_and(|found| found.is_dir() || found.permissions().mode() & 0o111 != 0)
    };
    real.ok().filter(runs).into_iter().collect()
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

    fn own(root: &Path, directory: &Path) -> Vec<PathBuf> {
        let node = Interpreter::Operators(Path::new("/usr/bin/node"));
        readable_by_program(&ProjectFiles::unrestricted(), root, directory, node)
            .expect("everything may be read")
            .named
    }

    fn strangers(root: &Path, roots: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxError> {
        let files = ProjectFiles::beneath(root, roots).expect("a kernel with openat2");
        let node = Interpreter::Operators(Path::new("/usr/bin/node"));
        readable_by_program(&files, root, root, node).map(|readable| readable.exact)
    }

    #[test]
    fn a_strangers_packages_are_the_projects_or_the_operators() {
        let (_guard, root) = tree(&[
            "repo/node_modules/hoisted/i.js",
            "repo/app/node_modules/own/i.js",
            "shared/a/i.js",
            "stranger/secret",
        ]);
        let app = root.join("repo/app");
        let modules = app.join("node_modules");
        assert_eq!(
            strangers(&app, &[]).expect("its own"),
            [app.clone(), modules.clone()],
            "what lies above was not named by the operator"
        );
        let repo = [root.join("repo")];
        let paths = strangers(&app, &repo).expect("a workspace");
        assert!(paths.contains(&root.join("repo/node_modules")), "{paths:?}");
        symlink(root.join("shared/a"), modules.join("a")).expect("a link");
        let refused = strangers(&app, &[]).expect_err("it leads out");
        assert!(refused.to_string().contains("shared/a"), "{refused}");
        let shared = [root.join("shared")];
        let refused = strangers(&app, &shared).expect_err("it is no package");
        assert!(
            matches!(refused, SandboxError::NotShared { .. }),
            "{refused}"
        );
        let manifest = root.join("shared/a/package.json");
        fs::write(manifest, r#"{"name": "a"}"#).expect("a file");
        let paths = strangers(&app, &shared).expect("the operator's");
        assert!(paths.contains(&root.join("shared/a")), "{paths:?}");
        fs::remove_file(modules.join("a")).expect("a link");
        symlink(root.join("shared"), modules.join("a")).expect("a link");
        strangers(&app, &shared).expect_err("all of a root is no package");
        for out in [root.join("stranger"), "/etc".into()] {
            fs::remove_file(modules.join("a")).expect("a link");
            symlink(&out, modules.join("a")).expect("a link");
            strangers(&app, &[root.join("shared")]).expect_err("it leads out");
        }
        fs::remove_dir_all(&modules).expect("its packages");
        symlink(root.join("stranger"), &modules).expect("a link");
        strangers(&app, &[]).expect_err("all of it leads out");
        strangers(&app, &[root.join("stranger")]).expect_err("it is no folder of packages");
        // Nor is the code of a program anywhere but in its project.
        let files = ProjectFiles::beneath(&app, &[root.join("stranger")]);
        let files = files.expect("a kernel with openat2");
        fs::remove_file(&modules).expect("a link");
        code_of_program(&files, &app, &root.join("stranger")).expect_err("not its own");
    }

    #[test]
    fn a_strangers_interpreter_leads_to_the_system_or_to_the_operators_roots() {
        let (_guard, root) = tree(&[
            "app/venv/pyvenv.cfg",
            "app/venv/bin/x",
            "py/bin/python3.11",
            "py/lib/python3.11/os.py",
            "home/bin/python",
            "home/lib/python3.1/secret",
        ]);
        let app = root.join("app");
        let python = app.join("venv/bin/python");
        let seen = |roots: &[PathBuf], target: &Path| {
            let _ = fs::remove_file(&python);
            symlink(target, &python).expect("a link");
            let files = ProjectFiles::beneath(&app, roots).expect("a kernel with openat2");
            named_interpreter(&files, &python)
        };
        let installed = root.join("py/bin/python3.11");
        assert!(seen(&[], &installed).is_err());
        let paths = seen(&[root.join("py")], &installed).expect("the operator's");
        assert!(paths.contains(&app.join("venv")) && paths.contains(&root.join("py")));
        // Of a root that is narrower, no more than the root.
        let paths = seen(&[root.join("py/bin")], &installed).expect("the operator's");
        assert!(!paths.contains(&root.join("py")), "{paths:?}");
        let paths = seen(&[], Path::new("/usr/bin/env")).expect("the system's");
        assert_eq!(paths, [app.join("venv")]);
        assert!(seen(&[], &root.join("home/bin/python")).is_err());
        assert!(seen(&[], Path::new("python")).is_err(), "a circle");
    }

    #[test]
    fn a_program_sees_its_code_and_the_packages_above_it() {
        let (_guard, root) = tree(&["work/node_modules/x/i.js", "work/app/infra/index.ts", "me"]);
        let app = root.join("work/app");
        let paths = own(&app, &app.join("infra"));
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
        let paths = own(&app, &app);
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
