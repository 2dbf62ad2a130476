//! The virtual environment of a Python program, made once per list of requirements.
//!
//! A project that names a virtual environment which is not there gets one: it is made in a folder of
//! the cache that is named by the digest of everything it depends on, and linked into place, so that
//! the next project with the same requirements only links. Projects of `uv` are brought up to date by
//! `uv` itself, which has such a cache of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use nimbus_engine_ports::EventSink;
use nimbus_engine_transpile::CacheKey;
use tokio::process::Command;

use super::{forget_old, last_lines, link_tree, tell, touch, turn};
use crate::error::LaunchError;
use crate::options::RuntimeOptions;
use crate::python::{Missing, missing_environment};
use nimbus_engine_process::{CodeIsolation, CodeOrigin};

/// What somebody would do by hand.
const INSTALL: &str = "pip install -r requirements.txt";
const SYNC: &str = "uv sync";

/// What pip and uv say when they cannot reach an index.
const OFFLINE: [&str; 5] = [
    "NewConnectionError",
    "Name or service not known",
    "Temporary failure in name resolution",
    "Connection refused",
    "dns error",
];

/// Makes the virtual environment that a program's project names, unless it is there.
/// Returns whether anything was done.
pub async fn install_python_dependencies(
    root: &Path,
    program: &Path,
    options: &RuntimeOptions,
    cache: &Path,
    events: &dyn EventSink,
) -> Result<bool, LaunchError> {
    let missing = missing_environment(root, program, options)?;
    match missing {
        Missing::Nothing => Ok(false),
        Missing::Pip {
            environment,
            requirements,
        } => {
            let Some(list) = Requirements::read(&requirements) else {
                return Ok(false);
            };
            let python = tool("python3")?;
            list.provide(&python, &environment, cache, events).await?;
            Ok(true)
        }
        Missing::Uv { project } => {
            let uv = tool("uv")?;
            sync(&uv, &project, cache, events).await?;
            Ok(true)
        }
    }
}

fn tool(name: &'static str) -> Result<PathBuf, LaunchError> {
    which::which(name).map_err(|_| LaunchError::ToolMissing { tool: name })
}

/// One at a time for each project.
async fn sync(
    uv: &Path,
    project: &Path,
    cache: &Path,
    events: &dyn EventSink,
) -> Result<(), LaunchError> {
    let told = |error: io::Error| failed(project, SYNC, &error.to_string());
    let store = cache.join("environments");
    fs::create_dir_all(&store).map_err(told)?;
    let key = CacheKey::of([b"uv".as_slice(), project.as_os_str().as_encoded_bytes()]);
    let _turn = turn(store.join(format!("{}.lock", key.as_str())))
        .await
        .map_err(told)?;
    tell(
        events,
        &format!("installing packages in {} with uv sync", project.display()),
    );
    let mut command = Command::new(uv);
    command
        .args(["sync", "--frozen", "--quiet"])
        .current_dir(project);
    finished(project, SYNC, run(command).await.map_err(told)?)
}

/// What pip is told to install.
struct Requirements {
    file: PathBuf,
    /// Everything that the list says, lists that it names included.
    texts: Vec<String>,
}

impl Requirements {
    /// `None` for lists that name folders: what is in them is no part of the list.
    fn read(file: &Path) -> Option<Self> {
        let mut texts = Vec::new();
        let mut open = vec![file.to_owned()];
        while let Some(path) = open.pop() {
            const MOST_FILES: usize = 32;
            let text = fs::read_to_string(&path).ok()?;
            let folder = path.parent()?;
            for line in text.lines().map(str::trim) {
                if let Some(other) = included(line) {
                    open.push(folder.join(other));
                } else if names_folder(line) {
                    return None;
                }
            }
            texts.push(text);
            if texts.len() > MOST_FILES {
                return None;
            }
        }
        Some(Self {
            file: file.to_owned(),
            texts,
        })
    }

    async fn provide(
        &self,
        python: &Path,
        environment: &Path,
        cache: &Path,
        events: &dyn EventSink,
    ) -> Result<(), LaunchError> {
        let folder = self.file.parent().unwrap_or_else(|| Path::new("."));
        let told = |error: io::Error| failed(folder, INSTALL, &error.to_string());
        let key = self.key(&version(python).await.map_err(told)?);
        let store = cache.join("environments");
        fs::create_dir_all(&store).map_err(told)?;
        let lock = store.join(format!("{}.lock", key.as_str()));
        let _turn = turn(lock).await.map_err(told)?;
        let made = store.join(key.as_str());
        // A virtual environment knows where it is, so it is made in place and marked when complete.
        let complete = made.join(".complete");
        if !complete.is_file() {
            let shown = self.file.display();
            tell(events, &format!("installing packages of {shown} with pip"));
            forget_old(&store);
            let _ = fs::remove_dir_all(&made);
            self.make(python, &made).await?;
            fs::write(&complete, "").map_err(told)?;
        }
        touch(&made).map_err(told)?;
        let to = environment.to_owned();
        let link = move || place(&made, &to);
        let linked = tokio::task::spawn_blocking(link).await;
        linked
            .map_err(|error| told(io::Error::other(error)))?
            .map_err(told)
    }

    fn key(&self, python: &str) -> CacheKey {
        let system = [std::env::consts::OS, std::env::consts::ARCH, python];
        let texts = self.texts.iter().map(String::as_str);
        CacheKey::of(system.into_iter().chain(texts).map(str::as_bytes))
    }

    async fn make(&self, python: &Path, to: &Path) -> Result<(), LaunchError> {
        let folder = self.file.parent().unwrap_or_else(|| Path::new("."));
        let told = |error: io::Error| failed(folder, INSTALL, &error.to_string());
        let mut create = Command::new(python);
        create.args(["-m", "venv"]).arg(to);
        finished(folder, INSTALL, run(create).await.map_err(told)?)?;
        let mut install = Command::new(to.join("bin/python"));
        install
            .args(["-m", "pip", "install", "--quiet", "--no-input"])
            .args(["--disable-pip-version-check", "--requirement"])
            .arg(&self.file)
            .current_dir(folder);
        finished(folder, INSTALL, run(install).await.map_err(told)?)
    }
}

/// The file that a line of a list refers to.
fn included(line: &str) -> Option<&str> {
    let prefixes = ["-r ", "--requirement ", "-c ", "--constraint "];
    let mut rest = prefixes.iter().filter_map(|word| line.strip_prefix(word));
    rest.next().map(str::trim)
}

fn names_folder(line: &str) -> bool {
    let signs = ["-e", "--editable", ".", "/", "file:"];
    signs.iter().any(|sign| line.starts_with(sign)) || line.contains("@ file:")
}

/// Packages that were compiled depend on it.
async fn version(python: &Path) -> io::Result<String> {
    let mut command = Command::new(python);
    command.args(["-c", "import sys; print(sys.version, sys.base_prefix)"]);
    let output = run(command).await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn run(mut command: Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    nimbus_engine_process::run(&mut command, CodeOrigin::Tenants(CodeIsolation::OwnProject)).await
}

fn finished(folder: &Path, command: &'static str, output: Output) -> Result<(), LaunchError> {
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(failed(folder, command, &errors))
}

fn failed(folder: &Path, command: &'static str, message: &str) -> LaunchError {
    LaunchError::PackagesNotInstalled {
        directory: folder.to_owned(),
        command,
        offline: OFFLINE.iter().any(|sign| message.contains(sign)),
        message: last_lines(message),
    }
}

/// Puts the environment where the project wants it, all of it or nothing.
fn place(made: &Path, to: &Path) -> io::Result<()> {
    let parent = to.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(parent)?;
    let work = tempfile::Builder::new()
        .prefix(".virtualenv-")
        .tempdir_in(parent)?;
    link_tree(made, work.path())?;
    fs::remove_file(work.path().join(".complete"))?;
    rename_inside(work.path(), made, to)?;
    match nimbus_disk::place_folder(work.path(), to) {
        Ok(()) => {
            let _ = work.keep();
            Ok(())
        }
        // Somebody else was faster.
        Err(_) if to.join("bin/python").exists() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Scripts begin with the place of their environment. They are written anew: what is linked is
/// shared with others.
fn rename_inside(environment: &Path, from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (from.display().to_string(), to.display().to_string());
    let scripts = fs::read_dir(environment.join("bin"))?.flatten();
    let scripts = scripts.map(|entry| entry.path());
    for file in scripts.chain([environment.join("pyvenv.cfg")]) {
        if file.is_symlink() || !file.is_file() {
            continue;
        }
        // What is not text is a program, and knows no place.
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        if text.contains(&from) {
            let rights = fs::metadata(&file)?.permissions();
            fs::remove_file(&file)?;
            fs::write(&file, text.replace(&from, &to))?;
            fs::set_permissions(&file, rights)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use nimbus_engine_testing::RecordingSink;
    use tempfile::TempDir;

    use super::*;

    /// Stands for Python: makes an environment whose own Python installs one package.
    const PYTHON: &str = r#"#!/bin/sh
here="$(dirname "$0")"
if [ "$1" = -c ]; then echo 3.12; exit 0; fi
echo run >> "$here/runs"
mkdir -p "$3/bin" "$3/lib/python3.12/site-packages"
cat > "$3/bin/python" <<END
#!/bin/sh
[ -f "$here/offline" ] && echo "NewConnectionError: no way" >&2 && exit 1
mkdir -p "$3/lib/python3.12/site-packages/pulumi"
echo 1 > "$3/lib/python3.12/site-packages/pulumi/__init__.py"
END
printf '#!%s/bin/python\n' "$3" > "$3/bin/tool"
chmod +x "$3/bin/python" "$3/bin/tool"
echo "command = $3" > "$3/pyvenv.cfg"
"#;

    struct Machine {
        tools: TempDir,
        cache: TempDir,
    }

    impl Machine {
        fn new() -> Self {
            let [tools, cache] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
            let python = tools.path().join("python3");
            fs::write(&python, PYTHON).expect("a script");
            fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("a script");
            Self { tools, cache }
        }

        async fn provide(&self, root: &Path) -> Result<(), LaunchError> {
            let list = Requirements::read(&root.join("requirements.txt")).expect("a list");
            let python = self.tools.path().join("python3");
            let events = RecordingSink::default();
            let environment = root.join("venv");
            list.provide(&python, &environment, self.cache.path(), &events)
                .await
        }

        fn runs(&self) -> usize {
            let runs = fs::read_to_string(self.tools.path().join("runs"));
            runs.unwrap_or_default().lines().count()
        }
    }

    fn project(requirements: &str) -> TempDir {
        let root = tempfile::tempdir().expect("a folder");
        fs::write(root.path().join("requirements.txt"), requirements).expect("a file");
        root
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_environment_serves_everybody_with_the_same_requirements() {
        let machine = Machine::new();
        let roots = [(); 3].map(|()| project("pulumi==3.1\n"));
        let [a, b, c] = roots.each_ref().map(|root| machine.provide(root.path()));
        let ended = tokio::join!(a, b, c);
        assert!(matches!(ended, (Ok(()), Ok(()), Ok(()))), "{ended:?}");
        assert_eq!(machine.runs(), 1);
        for root in &roots {
            let venv = root.path().join("venv");
            let package = "lib/python3.12/site-packages/pulumi/__init__.py";
            assert!(venv.join(package).is_file());
            let script = fs::read_to_string(venv.join("bin/tool")).expect("a script");
            assert_eq!(script, format!("#!{}/bin/python\n", venv.display()));
            let mode = fs::metadata(venv.join("bin/tool"))
                .expect("a file")
                .permissions();
            assert_eq!(mode.mode() & 0o111, 0o111, "it can be run");
        }
        machine
            .provide(project("pulumi==3.2\n").path())
            .await
            .expect("another list");
        assert_eq!(machine.runs(), 2);
    }

    #[tokio::test]
    async fn a_failed_installation_leaves_nothing_and_is_tried_again() {
        let machine = Machine::new();
        let offline = machine.tools.path().join("offline");
        fs::write(&offline, "").expect("a file");
        let root = project("pulumi==3.1\n");
        let failed = machine.provide(root.path()).await;
        let Err(LaunchError::PackagesNotInstalled { offline: true, .. }) = failed else {
            unreachable!("{failed:?}");
        };
        assert!(!root.path().join("venv").exists());
        fs::remove_file(offline).expect("it was there");
        machine.provide(root.path()).await.expect("now it works");
        assert!(root.path().join("venv/bin/python").exists());
    }

    #[test]
    fn lists_that_name_lists_are_followed_and_those_that_name_folders_are_not_kept() {
        let root = project("-r more.txt\npulumi\n");
        let file = root.path().join("requirements.txt");
        assert!(Requirements::read(&file).is_none(), "more.txt is missing");
        let key = |more: &str| {
            fs::write(root.path().join("more.txt"), more).expect("a file");
            Requirements::read(&file).map(|list| list.key("3.12").as_str().to_owned())
        };
        assert_ne!(key("requests==1\n"), key("requests==2\n"));
        for folder in ["-e .", "./local", "/opt/x", "thing @ file:///opt/x"] {
            assert_eq!(key(folder), None, "{folder}");
        }
    }
}
