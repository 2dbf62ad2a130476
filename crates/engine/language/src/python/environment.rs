//! Which Python runs a program.
//!
//! The project may name a virtual environment or the tool that makes one; otherwise one beside the
//! program is used, and failing that the Python on the PATH. Nothing is created or updated here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nimbus_engine_files::{ProjectFiles, is_outside};
use nimbus_engine_process::{CodeIsolation, CodeOrigin, run};
use nimbus_engine_sandbox::{Interpreter, Sandbox, readable_by_program};
use tokio::process::Command;

use crate::error::LaunchError;
use crate::inquiry;
use crate::options::RuntimeOptions;
use crate::trust::ProjectTrust;

/// What an interpreter is asked is answered in a line.
const MOST_BYTES: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// An interpreter, and the virtual environment that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonEnvironment {
    interpreter: PathBuf,
    virtualenv: Option<PathBuf>,
    /// The command that installs packages into it.
    install: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Toolchain {
    Pip,
    Uv,
    Poetry,
}

/// The Python of a program, from the options of its runtime.
pub async fn python_environment(
    root: &Path,
    program_dir: &Path,
    options: &RuntimeOptions,
    trust: &ProjectTrust,
) -> Result<PythonEnvironment, LaunchError> {
    let files = trust.files();
    let virtualenv = options.text("virtualenv")?.map(|path| root.join(path));
    match (toolchain(files, program_dir, options)?, virtualenv) {
        (Toolchain::Poetry, _) => poetry(files, program_dir).await,
        (Toolchain::Uv, given) => uv(files, program_dir, given),
        (Toolchain::Pip, Some(given)) => pip(files, root, program_dir, &given),
        (Toolchain::Pip, None) => ambient(files, root, program_dir),
    }
}

/// What the project says, else what the lock files say.
fn toolchain(
    files: &ProjectFiles,
    program_dir: &Path,
    options: &RuntimeOptions,
) -> Result<Toolchain, LaunchError> {
    Ok(match options.text("toolchain")? {
        Some("pip") => Toolchain::Pip,
        Some("uv") => Toolchain::Uv,
        Some("poetry") => Toolchain::Poetry,
        Some(_) => {
            return Err(LaunchError::BadOption {
                option: "toolchain",
                expected: "one of pip, uv and poetry",
            });
        }
        None if above(files, program_dir, "uv.lock").is_some() => Toolchain::Uv,
        None if above(files, program_dir, "poetry.lock").is_some() => Toolchain::Poetry,
        None => Toolchain::Pip,
    })
}

/// The nearest directory upwards that has the file.
fn above<'a>(files: &ProjectFiles, directory: &'a Path, file: &str) -> Option<&'a Path> {
    directory
        .ancestors()
        .find(|ancestor| files.is_file(&ancestor.join(file)))
}

/// A virtual environment that a project names and that is not there, and what it is made from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Or nothing that could be made from a list.
    Nothing,
    Pip {
        environment: PathBuf,
        requirements: PathBuf,
    },
    Uv {
        project: PathBuf,
    },
}

pub(crate) fn missing_environment(
    root: &Path,
    program_dir: &Path,
    options: &RuntimeOptions,
) -> Result<Missing, LaunchError> {
    // Nothing is made for a stranger's project.
    let files = &ProjectFiles::UNRESTRICTED;
    let given = options.text("virtualenv")?.map(|path| root.join(path));
    Ok(match toolchain(files, program_dir, options)? {
        Toolchain::Pip => match (given, requirements(files, root, program_dir)) {
            (Some(environment), Some(requirements)) if !environment.exists() => Missing::Pip {
                environment,
                requirements,
            },
            _ => Missing::Nothing,
        },
        Toolchain::Uv => match above(files, program_dir, "uv.lock") {
            Some(project) if uv(files, program_dir, given).is_err() => Missing::Uv {
                project: project.to_owned(),
            },
            _ => Missing::Nothing,
        },
        Toolchain::Poetry => Missing::Nothing,
    })
}

fn requirements(files: &ProjectFiles, root: &Path, program_dir: &Path) -> Option<PathBuf> {
    let places = [program_dir, root].map(|directory| directory.join("requirements.txt"));
    places.into_iter().find(|path| files.is_file(path))
}

fn pip(
    files: &ProjectFiles,
    root: &Path,
    program_dir: &Path,
    path: &Path,
) -> Result<PythonEnvironment, LaunchError> {
    let packages = match requirements(files, root, program_dir) {
        Some(file) => format!("-r {}", file.display()),
        None => "pulumi".to_owned(),
    };
    let install = format!("{} install {packages}", path.join("bin/pip").display());
    let create = format!("python3 -m venv {} && {install}", path.display());
    in_virtualenv(files, path, create, install)
}

fn uv(
    files: &ProjectFiles,
    program_dir: &Path,
    given: Option<PathBuf>,
) -> Result<PythonEnvironment, LaunchError> {
    let project = above(files, program_dir, "uv.lock")
        .or_else(|| above(files, program_dir, "pyproject.toml"))
        .unwrap_or(program_dir);
    let path = given.unwrap_or_else(|| {
        let configured = std::env::var_os("UV_PROJECT_ENVIRONMENT");
        let name = configured.unwrap_or_else(|| ".venv".into());
        project.join(name)
    });
    let sync = format!("cd {} && uv sync", project.display());
    in_virtualenv(files, &path, sync.clone(), sync)
}

async fn poetry(
    files: &ProjectFiles,
    program_dir: &Path,
) -> Result<PythonEnvironment, LaunchError> {
    let project = above(files, program_dir, "pyproject.toml").unwrap_or(program_dir);
    let install = format!("cd {} && poetry install", project.display());
    let beside = project.join(".venv");
    if is_virtualenv(files, &beside) {
        return in_virtualenv(files, &beside, install.clone(), install);
    }
    // It loads plugins that the project names, and would do so as us.
    if files.is_restricted() {
        return Err(LaunchError::PoetryNotAsked {
            directory: project.to_owned(),
        });
    }
    let tool = which::which("poetry").map_err(|_| LaunchError::ToolMissing { tool: "poetry" })?;
    let mut command = Command::new(tool);
    command
        .args(["env", "info", "--path"])
        .current_dir(project)
        .kill_on_drop(true);
    let answer = run(&mut command, CodeOrigin::Tenants(CodeIsolation::OwnProject))
        .await
        .map_err(|source| LaunchError::NotStarted {
            what: "poetry".to_owned(),
            source,
        })?;
    let path = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    if !answer.status.success() || path.is_empty() {
        return Err(LaunchError::PoetryEnvironment {
            directory: project.to_owned(),
            message: String::from_utf8_lossy(&answer.stderr).trim().to_owned(),
        });
    }
    in_virtualenv(files, Path::new(&path), install.clone(), install)
}

/// Nothing was said: a virtual environment beside the program, else whatever is on the PATH.
fn ambient(
    files: &ProjectFiles,
    root: &Path,
    program_dir: &Path,
) -> Result<PythonEnvironment, LaunchError> {
    let places = [program_dir, root];
    let beside = places
        .iter()
        .flat_map(|directory| [".venv", "venv"].map(|name| directory.join(name)))
        .find(|path| is_virtualenv(files, path));
    if let Some(path) = beside {
        return pip(files, root, program_dir, &path);
    }
    let found = which::which("python3").or_else(|_| which::which("python"));
    let interpreter = found.map_err(|_| LaunchError::ToolMissing { tool: "python3" })?;
    let venv = program_dir.join("venv");
    let install = format!(
        "python3 -m venv {0} && {0}/bin/pip install pulumi",
        venv.display()
    );
    Ok(PythonEnvironment {
        interpreter,
        virtualenv: None,
        install,
    })
}

fn in_virtualenv(
    files: &ProjectFiles,
    path: &Path,
    create: String,
    install: String,
) -> Result<PythonEnvironment, LaunchError> {
    if !is_virtualenv(files, path) {
        if let Err(error) = files.canonicalize(path)
            && is_outside(&error)
        {
            return Err(LaunchError::outside(error));
        }
        return Err(LaunchError::VirtualenvMissing {
            path: path.to_owned(),
            create,
        });
    }
    Ok(PythonEnvironment {
        interpreter: path.join("bin/python"),
        virtualenv: Some(path.to_owned()),
        install,
    })
}

fn is_virtualenv(files: &ProjectFiles, path: &Path) -> bool {
    let python = path.join("bin/python");
    // Where it leads is looked at when it is shown to the program.
    files.exists(&python) || (files.is_restricted() && files.symlink_metadata(&python).is_ok())
}

impl PythonEnvironment {
    /// An interpreter that is used as it is.
    pub fn of_interpreter(interpreter: PathBuf) -> Self {
        let pip = interpreter.with_file_name("pip");
        Self {
            install: format!("{} install pulumi", pip.display()),
            virtualenv: None,
            interpreter,
        }
    }

    pub fn interpreter(&self) -> &Path {
        &self.interpreter
    }

    pub fn virtualenv(&self) -> Option<&Path> {
        self.virtualenv.as_deref()
    }

    /// Programs that the command starts find this Python first, as after `source activate`. The
    /// command's PATH, if it has one, must have been set before.
    pub fn activate(&self, command: &mut Command) {
        let Some(virtualenv) = &self.virtualenv else {
            return;
        };
        let mut path = virtualenv.join("bin").into_os_string();
        if let Some(rest) = configured_path(command) {
            path.push(":");
            path.push(rest);
        }
        command
            .env("VIRTUAL_ENV", virtualenv)
            .env("PATH", path)
            .env_remove("PYTHONHOME");
    }

    /// The interpreter, and who chose it: one of a virtual environment is what the project says.
    pub(crate) fn choice(&self) -> Interpreter<'_> {
        match self.virtualenv {
            Some(_) => Interpreter::Projects(&self.interpreter),
            None => Interpreter::Operators(&self.interpreter),
        }
    }

    /// Directories that hold the environment's packages, each with who may read them.
    pub(crate) async fn package_directories(
        &self,
        root: &Path,
        trust: &ProjectTrust,
    ) -> Vec<(ProjectFiles, PathBuf)> {
        let files = trust.files();
        if let Some(virtualenv) = &self.virtualenv {
            let found = site_packages(files, virtualenv);
            if !found.is_empty() {
                let found = found.into_iter();
                return found.map(|path| (files.clone(), path)).collect();
            }
        }
        // Isolated: what lies in the folder that it is asked in would be part of the answer.
        let script = "import json, sys; print(json.dumps([p for p in sys.path if p]))";
        let answer = self
            .ask(&["-I", "-c", script], root, Path::new("/"), trust)
            .await;
        let directories: Vec<PathBuf> = answer
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let directories = directories.into_iter();
        if files.is_restricted() && self.virtualenv.is_none() {
            // The operator's interpreter has its packages where the operator put them.
            let beneath = directories.filter_map(|path| {
                let files = ProjectFiles::beneath(&path, &[]).ok()?;
                Some((files, path))
            });
            return beneath.collect();
        }
        directories
            .filter(|path| files.is_dir(path))
            .map(|path| (files.clone(), path))
            .collect()
    }

    pub(crate) async fn require_sdk(
        &self,
        root: &Path,
        program_dir: &Path,
        trust: &ProjectTrust,
    ) -> Result<(), LaunchError> {
        let files = trust.files();
        let installed = |directory: &PathBuf| files.is_file(&directory.join("pulumi/__init__.py"));
        let in_place = self
            .virtualenv
            .as_deref()
            .map(|virtualenv| site_packages(files, virtualenv))
            .unwrap_or_default();
        if in_place.iter().any(installed) {
            return Ok(());
        }
        // It may be installed in a way that only the interpreter understands, which is asked where
        // it finds what the program finds.
        let script = "import importlib.util as u; print('yes' if u.find_spec('pulumi') else '')";
        if self
            .ask(&["-c", script], root, program_dir, trust)
            .await
            .is_some_and(|text| text == "yes")
        {
            return Ok(());
        }
        Err(LaunchError::PythonSdkMissing {
            interpreter: self.interpreter.clone(),
            install: self.install.clone(),
        })
    }

    /// What the interpreter answers in a folder. In the program's it finds what the program finds.
    async fn ask(
        &self,
        arguments: &[&str],
        root: &Path,
        folder: &Path,
        trust: &ProjectTrust,
    ) -> Option<String> {
        let mut command = Command::new(&self.interpreter);
        command.args(arguments).current_dir(folder);
        match trust {
            ProjectTrust::Own => {
                command.stdin(Stdio::null());
                let origin = CodeOrigin::Tenants(CodeIsolation::OwnProject);
                let answer = run(&mut command, origin).await.ok()?;
                let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
                answer.status.success().then_some(text)
            }
            ProjectTrust::Stranger { files, sandbox } => {
                let readable = readable_by_program(files, root, root, self.choice());
                let readable = readable.ok()?;
                let mut room = Sandbox::open(sandbox).ok()?;
                let enclosed = room.enclose(command.as_std(), &readable, &[]).ok()?;
                let origin = CodeOrigin::Tenants(CodeIsolation::Sandbox);
                let answer = inquiry::answer(enclosed, origin, MOST_BYTES, PATIENCE).await;
                let text = String::from_utf8_lossy(&answer.ok()?).trim().to_owned();
                (!text.is_empty()).then_some(text)
            }
        }
    }
}

fn configured_path(command: &Command) -> Option<OsString> {
    let mut set = command.as_std().get_envs();
    let (_, value) = set.find(|(name, _)| *name == "PATH")?;
    value.map(ToOwned::to_owned)
}

fn site_packages(files: &ProjectFiles, virtualenv: &Path) -> Vec<PathBuf> {
    let versions = files.entries(&virtualenv.join("lib")).unwrap_or_default();
    let directories = versions
        .into_iter()
        .map(|version| version.join("site-packages"));
    directories.filter(|path| files.is_dir(path)).collect()
}

#[cfg(test)]
mod tests;
