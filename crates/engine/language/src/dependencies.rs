//! The packages of a Node.js program, installed once per lock file and shared by hard links.
//!
//! A program whose packages are missing, with a lock file that says which, gets them: `npm ci` runs
//! in a folder of the cache that is named by the digest of everything it depends on, and the result
//! is linked into place. Whoever comes with the same lock file links too. An installation appears
//! under its name when it is complete and everything that the lock file names is there, and so do the
//! packages at the program. Packages that are there already, however they came, are left alone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use nimbus_disk::place_folder;
use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use nimbus_engine_process::{CodeIsolation, CodeOrigin, run};
use nimbus_engine_transpile::CacheKey;
use nix::fcntl::{Flock, FlockArg};
use serde_json::Value;
use tokio::process::Command;

use crate::error::LaunchError;

mod python;

pub use python::install_python_dependencies;

/// Installations that nobody has used for so long go when another one comes.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const LOCK_FILE: &str = "package-lock.json";
/// What npm says when it cannot reach a registry.
const OFFLINE: [&str; 6] = [
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ENETUNREACH",
    "ETIMEDOUT",
    "ENOTCACHED",
];

/// Installs what the lock file above a program's folder says, unless something is installed there.
/// Returns whether anything was done.
pub async fn install_dependencies(
    folder: &Path,
    cache: &Path,
    events: &dyn EventSink,
) -> Result<bool, LaunchError> {
    let Some(project) = MissingDependencies::find(folder) else {
        return Ok(false);
    };
    let npm = which::which("npm").map_err(|_| LaunchError::ToolMissing { tool: "npm" })?;
    project.provide(&npm, cache, events).await?;
    Ok(true)
}

/// A folder with a lock file and without packages.
struct MissingDependencies {
    root: PathBuf,
    lock: Value,
}

impl MissingDependencies {
    fn find(folder: &Path) -> Option<Self> {
        let has_packages = |ancestor: &Path| ancestor.join("node_modules").exists();
        let mut ancestors = folder.ancestors();
        let root = ancestors
            .find(|ancestor| has_packages(ancestor) || ancestor.join(LOCK_FILE).is_file())?;
        if has_packages(root) {
            return None;
        }
        let lock = serde_json::from_slice(&fs::read(root.join(LOCK_FILE)).ok()?).ok()?;
        Some(Self {
            root: root.to_owned(),
            lock,
        })
    }

    /// Installs unless that was done before, and links.
    async fn provide(
        &self,
        npm: &Path,
        cache: &Path,
        events: &dyn EventSink,
    ) -> Result<(), LaunchError> {
        let told = |error: io::Error| self.failed(&error.to_string());
        let key = self.key(&version(npm).await).map_err(told)?;
        let store = cache.join("packages");
        fs::create_dir_all(&store).map_err(told)?;
        let lock = store.join(format!("{}.lock", key.as_str()));
        let _turn = turn(lock).await.map_err(told)?;
        let installed = store.join(key.as_str());
        if !installed.is_dir() {
            let root = self.root.display();
            tell(
                events,
                &format!("installing packages in {root} with npm ci"),
            );
            forget_old(&store);
            self.install(npm, &store, &installed).await?;
            let count = self.required().count();
            tell(
                events,
                &format!(
                    "packages are installed in {root}: all {count} of the lock file are there"
                ),
            );
        }
        touch(&installed).map_err(told)?;
        let (root, members) = (self.root.clone(), self.members());
        let link = move || place(&installed, &root, &members);
        let linked = tokio::task::spawn_blocking(link).await;
        linked
            .map_err(|error| told(io::Error::other(error)))?
            .map_err(told)
    }

    /// Places of all packages of the lock file, below the root.
    fn packages(&self) -> impl Iterator<Item = (&str, &Value)> {
        let packages = self.lock["packages"].as_object().into_iter().flatten();
        packages.map(|(place, package)| (place.as_str(), package))
    }

    /// Folders of the workspace's members, below the root.
    fn members(&self) -> Vec<PathBuf> {
        self.packages()
            .map(|(place, _)| place)
            .filter(|place| !place.is_empty() && !place.contains("node_modules"))
            .filter(|place| !place.contains("..") && !place.starts_with('/'))
            .map(PathBuf::from)
            .collect()
    }

    /// Places of packages that are there after a good installation, whatever machine this is.
    fn required(&self) -> impl Iterator<Item = &str> {
        let may_be_left_out = |package: &Value| {
            [
                "link",
                "dev",
                "optional",
                "devOptional",
                "peer",
                "inBundle",
                "extraneous",
            ]
            .iter()
            .any(|key| package[key] == true)
        };
        self.packages()
            .filter(move |(place, package)| {
                place.contains("node_modules/") && !may_be_left_out(package)
            })
            .map(|(place, _)| place)
    }

    /// Files that `npm ci` reads: those of the project itself and of its workspace's members.
    fn files(&self) -> Vec<PathBuf> {
        let members = self.members().into_iter();
        let members = members.map(|place| place.join("package.json"));
        let own = ["package.json", LOCK_FILE, ".npmrc"].map(PathBuf::from);
        own.into_iter()
            .chain(members)
            .filter(|file| self.root.join(file).is_file())
            .collect()
    }

    fn key(&self, tools: &str) -> io::Result<CacheKey> {
        let mut parts = vec![
            tools.as_bytes().to_vec(),
            std::env::consts::OS.into(),
            std::env::consts::ARCH.into(),
        ];
        for file in self.files() {
            parts.push(file.as_os_str().as_encoded_bytes().to_vec());
            parts.push(fs::read(self.root.join(file))?);
        }
        Ok(CacheKey::of(parts.iter().map(Vec::as_slice)))
    }

    async fn install(&self, npm: &Path, store: &Path, to: &Path) -> Result<(), LaunchError> {
        let told = |error: io::Error| self.failed(&error.to_string());
        let work = tempfile::Builder::new()
            .prefix(".installing-")
            .tempdir_in(store)
            .map_err(told)?;
        for file in self.files() {
            let copy = work.path().join(&file);
            let parent = copy.parent().unwrap_or_else(|| work.path());
            fs::create_dir_all(parent).map_err(told)?;
            fs::copy(self.root.join(&file), &copy).map_err(told)?;
        }
        let mut command = Command::new(npm);
        command
            .args(["ci", "--no-audit", "--no-fund", "--prefer-offline"])
            .current_dir(work.path())
            .stdin(Stdio::null());
        // Packages run scripts of theirs when they are installed.
        let origin = CodeOrigin::Tenants(CodeIsolation::OwnProject);
        let output = run(&mut command, origin).await.map_err(told)?;
        if !output.status.success() {
            return Err(self.failed(&String::from_utf8_lossy(&output.stderr)));
        }
        let is_there = |place: &str| work.path().join(place).join("package.json").is_file();
        if let Some(missing) = self.required().find(|place| !is_there(place)) {
            return Err(self.failed(&format!("it ended well, and {missing} is not there")));
        }
        // Found by its name alone from now on, so everything in it is on disk before.
        place_folder(&work.keep(), to).map_err(told)
    }

    fn failed(&self, message: &str) -> LaunchError {
        LaunchError::PackagesNotInstalled {
            directory: self.root.clone(),
            command: "npm ci",
            offline: OFFLINE.iter().any(|sign| message.contains(sign)),
            message: last_lines(message),
        }
    }
}

fn last_lines(message: &str) -> String {
    let lines: Vec<&str> = message
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

/// Compiled packages depend on it.
async fn version(npm: &Path) -> String {
    let node = which::which("node").unwrap_or_else(|_| npm.to_owned());
    let mut command = Command::new(node);
    let output = run(command.arg("--version"), CodeOrigin::Operators).await;
    let output = output.map(|output| output.stdout).unwrap_or_default();
    let version = String::from_utf8_lossy(&output);
    version.split('.').next().unwrap_or_default().to_owned()
}

/// One at a time for each lock file, whichever process it is in.
async fn turn(path: PathBuf) -> io::Result<Flock<File>> {
    let wait = move || {
        let file = File::create(path)?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| io::Error::from(error))
    };
    tokio::task::spawn_blocking(wait)
        .await
        .map_err(io::Error::other)?
}

/// What is in use is not old.
fn touch(installed: &Path) -> io::Result<()> {
    File::open(installed).and_then(|file| file.set_modified(SystemTime::now()))
}

fn forget_old(store: &Path) {
    for entry in fs::read_dir(store).into_iter().flatten().flatten() {
        let used = entry.metadata().and_then(|metadata| metadata.modified());
        let old = used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > KEPT));
        if old && entry.path().is_dir() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Puts the packages into the project. Those of members come first: the folder at the root says that
/// everything is there.
fn place(installed: &Path, root: &Path, members: &[PathBuf]) -> io::Result<()> {
    for member in members {
        let packages = installed.join(member).join("node_modules");
        if packages.is_dir() {
            place_one(&packages, &root.join(member))?;
        }
    }
    place_one(&installed.join("node_modules"), root)
}

/// All of them or none.
fn place_one(packages: &Path, folder: &Path) -> io::Result<()> {
    let work = tempfile::Builder::new()
        .prefix(".node_modules-")
        .tempdir_in(folder)?;
    link_tree(packages, work.path())?;
    let target = folder.join("node_modules");
    // Links to what is on disk in the store.
    match nimbus_disk::rename(work.path(), &target) {
        Ok(()) => {
            let _ = work.keep();
            Ok(())
        }
        // Somebody else was faster.
        Err(_) if target.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            link_tree(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            // Links to members of the workspace are relative, and lead to them from here.
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else if fs::hard_link(entry.path(), &target).is_err() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

fn tell(events: &dyn EventSink, message: &str) {
    events.emit(EngineEvent::Diagnostic(Diagnostic {
        severity: Severity::Notice,
        urn: None,
        message: message.to_owned(),
        stream_id: 0,
        ephemeral: false,
    }));
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use nimbus_engine_testing::RecordingSink;
    use tempfile::TempDir;

    use super::*;

    /// Stands for npm: notes that it was run, and installs one package and a link to a member.
    const NPM: &str = "#!/bin/sh\necho run >> \"$(dirname \"$0\")/runs\"\nmkdir -p node_modules/one member/node_modules/two\n\
                       echo 1 > node_modules/one/index.js\necho '{}' | tee node_modules/one/package.json > member/node_modules/two/package.json\nln -s ../member node_modules/member\n";
    const LOCK: &str = r#"{"packages": {"": {}, "member": {}, "node_modules/one": {}, "node_modules/member": {"link": true},
        "member/node_modules/two": {}, "node_modules/other-system": {"optional": true}}}"#;

    fn npm(folder: &TempDir, script: &str) -> PathBuf {
        let path = folder.path().join("npm");
        fs::write(&path, script).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script");
        path
    }

    fn project(lock: &str) -> TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(root.path().join("member")).expect("a folder");
        for (name, text) in [
            ("package.json", "{}"),
            ("member/package.json", "{}"),
            (LOCK_FILE, lock),
        ] {
            fs::write(root.path().join(name), text).expect("a file");
        }
        root
    }

    async fn provide(root: &TempDir, npm: &Path, cache: &TempDir) -> Result<(), LaunchError> {
        let member = root.path().join("member");
        let project = MissingDependencies::find(&member).expect("a lock file and no packages");
        let events = RecordingSink::default();
        project.provide(npm, cache.path(), &events).await
    }

    fn runs(tools: &TempDir) -> usize {
        let runs = fs::read_to_string(tools.path().join("runs"));
        runs.unwrap_or_default().lines().count()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_installation_serves_everybody_with_the_same_lock_file() {
        let (tools, cache) = (
            tempfile::tempdir().expect("a"),
            tempfile::tempdir().expect("b"),
        );
        let npm = npm(&tools, NPM);
        let roots = [project(LOCK), project(LOCK), project(LOCK)];
        let all = roots.each_ref().map(|root| provide(root, &npm, &cache));
        let [a, b, c] = all;
        let ended = tokio::join!(a, b, c);
        assert!(matches!(ended, (Ok(()), Ok(()), Ok(()))), "{ended:?}");
        assert_eq!(runs(&tools), 1);
        for root in &roots {
            let packages = root.path().join("node_modules");
            assert!(packages.join("one/index.js").is_file());
            let own = root.path().join("member/node_modules/two/package.json");
            assert!(own.is_file(), "a member has packages of its own");
            let member = packages.join("member").canonicalize().expect("a member");
            let expected = root.path().join("member").canonicalize().expect("it");
            assert_eq!(member, expected);
            assert!(
                MissingDependencies::find(root.path()).is_none(),
                "what is there is left alone"
            );
        }
        let other = project(r#"{"packages": {"": {"version": "2"}, "member": {}}}"#);
        provide(&other, &npm, &cache)
            .await
            .expect("another lock file");
        assert_eq!(runs(&tools), 2);
    }

    #[tokio::test]
    async fn a_failed_installation_leaves_nothing_and_says_whether_the_network_was_missing() {
        let (tools, cache) = (
            tempfile::tempdir().expect("a"),
            tempfile::tempdir().expect("b"),
        );
        for (message, expected, code) in [
            ("npm error ENOTFOUND registry", true, 1),
            ("npm error broken", false, 1),
            (
                "it ended well, and member/node_modules/two is not there",
                false,
                0,
            ),
        ] {
            let script = format!(
                "#!/bin/sh\nmkdir -p node_modules/one\necho '{{}}' > node_modules/one/package.json\n\
                 echo '{message}' >&2\nexit {code}\n"
            );
            let npm = npm(&tools, &script);
            let root = project(LOCK);
            let Err(LaunchError::PackagesNotInstalled {
                offline,
                message: told,
                ..
            }) = provide(&root, &npm, &cache).await
            else {
                unreachable!("it cannot have succeeded");
            };
            assert_eq!((offline, told.as_str()), (expected, message));
            assert!(!root.path().join("node_modules").exists());
            let left = fs::read_dir(cache.path().join("packages")).expect("a folder");
            let left = left.flatten().filter(|entry| entry.path().is_dir());
            assert_eq!(left.count(), 0);
        }
    }
}
