//! Node.js programs: TypeScript and JavaScript.
//!
//! The SDK brings its own entry point, which reads flags, connects and runs the program. What is
//! TypeScript in it was translated before, or is compiled by the SDK while it is loaded: see
//! `typescript`.

mod inside;
mod typescript;
mod words;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nimbus_engine_files::{ProjectFiles, is_outside};
use nimbus_engine_ports::DeploymentContext;
use nimbus_engine_process::{CodeIsolation, CodeOrigin, run};
use tokio::process::Command;

use crate::check::TypeCheckRequest;
use crate::entry::ProgramEntry;
use crate::error::LaunchError;
use crate::spec::{ProgramEnvironment, ProgramSpec, json};
use crate::warm::WarmProcessKey;
pub use inside::translate_if_asked;
pub(crate) use typescript::CODE;
use typescript::{TypeScript, TypeScriptProject};

/// How a Node.js program is run; everything that could be missing was found.
#[derive(Clone, Debug)]
pub(crate) struct NodeLaunch {
    node: PathBuf,
    run_module: PathBuf,
    node_args: Vec<String>,
    /// Whether the project wants TypeScript at all.
    wants_typescript: bool,
    typescript: TypeScript,
    tsconfig: Option<String>,
}

impl NodeLaunch {
    pub(crate) async fn prepare(
        spec: &ProgramSpec,
        entry: &ProgramEntry,
    ) -> Result<Self, LaunchError> {
        let options = &spec.options;
        let node_args = options.text("nodeargs")?.unwrap_or_default();
        let node_args = words::split(node_args).ok_or(LaunchError::BadOption {
            option: "nodeargs",
            expected: "a command line with closed quotes",
        })?;
        let package_manager = PackageManager::parse(options.text("packagemanager")?)?;
        let node = node_binary()?;
        let run_module = resolve(&spec.files, &entry.directory, "cmd/run", package_manager).await?;
        let project = TypeScriptProject {
            spec,
            entry,
            node: &node,
            node_args: &node_args,
            run_module: &run_module,
        };
        let typescript = project.typescript().await?;
        Ok(Self {
            node,
            run_module,
            node_args,
            wants_typescript: options.flag("typescript")?.unwrap_or(true),
            typescript,
            tsconfig: options.text("tsconfig")?.map(str::to_owned),
        })
    }

    /// The same program, compiled by the SDK.
    pub(crate) fn by_sdk(&self, reason: &str) -> Self {
        Self {
            typescript: TypeScript::BySdk {
                reason: reason.to_owned(),
            },
            ..self.clone()
        }
    }

    /// Why the SDK compiles the program, if it does.
    pub(crate) fn left_to_sdk(&self) -> Option<&str> {
        match &self.typescript {
            TypeScript::Ours(_) => None,
            TypeScript::BySdk { reason } => Some(reason),
        }
    }

    /// The check of types that this program depends on.
    pub(crate) fn check(&self) -> Option<&TypeCheckRequest> {
        match &self.typescript {
            TypeScript::Ours(prepared) => prepared.check.as_ref(),
            TypeScript::BySdk { .. } => None,
        }
    }

    pub(crate) fn node(&self) -> &Path {
        &self.node
    }

    /// What the process reads besides the program and what is installed for it.
    pub(crate) fn reads(&self) -> Vec<PathBuf> {
        let TypeScript::Ours(prepared) = &self.typescript else {
            return Vec::new();
        };
        let scripts = prepared.start.parent().map(Path::to_owned);
        scripts
            .into_iter()
            .chain(prepared.program.clone())
            .collect()
    }

    /// What a process for this program has in common with others. `None` when it is to be started
    /// for this program alone.
    pub(crate) fn kind(&self, spec: &ProgramSpec) -> Option<WarmProcessKey> {
        let TypeScript::Ours(prepared) = &self.typescript else {
            return None;
        };
        let (None, ProgramEnvironment::Only(all)) = (&spec.sandbox, &spec.environment) else {
            return None;
        };
        let mut flags = self.node_args.clone();
        flags.extend(["--require".to_owned(), prepared.start.to_str()?.to_owned()]);
        let mut variables = all.clone();
        variables.extend(code_variable(spec));
        Some(WarmProcessKey {
            node: self.node.clone(),
            flags,
            main: self.run_module.clone(),
            variables,
        })
    }

    pub(crate) fn command(
        &self,
        spec: &ProgramSpec,
        entry: &ProgramEntry,
        context: &DeploymentContext,
    ) -> Command {
        let mut command = spec.environment.command(&self.node);
        command.args(&self.node_args);
        if let TypeScript::Ours(prepared) = &self.typescript {
            command.arg("--require").arg(&prepared.start);
        }
        command.arg(&self.run_module);
        let mut flag = |name: &str, value: &dyn AsRef<std::ffi::OsStr>| {
            if !value.as_ref().is_empty() {
                command.arg(name).arg(value.as_ref());
            }
        };
        flag("--monitor", &context.monitor_endpoint);
        flag("--engine", &context.monitor_endpoint);
        flag("--organization", &context.organization);
        flag("--project", &context.project);
        flag("--root-directory", &spec.root);
        flag("--stack", &context.stack);
        flag("--pwd", &entry.directory);
        flag("--parallel", &context.parallel.to_string());
        if context.dry_run {
            command.arg("--dry-run");
        }
        command.arg(&entry.name).args(&spec.args);
        command.envs(self.variables(spec, context));
        command
    }

    fn variables(
        &self,
        spec: &ProgramSpec,
        context: &DeploymentContext,
    ) -> Vec<(&'static str, OsString)> {
        let mut variables: Vec<(&'static str, OsString)> = vec![
            ("PULUMI_CONFIG", config(context).into()),
            (
                "PULUMI_CONFIG_SECRET_KEYS",
                json(&context.config_secret_keys).into(),
            ),
        ];
        match &self.typescript {
            TypeScript::Ours(prepared) => {
                let program = prepared.program.iter();
                variables.extend(program.map(|file| (PROGRAM, file.into())));
                let code = code_variable(spec);
                variables.extend(code.map(|(_, folder)| (KEPT_CODE, folder)));
                return variables;
            }
            TypeScript::BySdk { .. } => {}
        }
        if self.wants_typescript {
            variables.push(("PULUMI_NODEJS_TYPESCRIPT", "true".into()));
        }
        if let Some(path) = &self.tsconfig {
            variables.push(("PULUMI_NODEJS_TSCONFIG_PATH", path.into()));
        }
        if spec.transpile_only {
            variables.push(("PULUMI_NODEJS_TRANSPILE_ONLY", "true".into()));
        }
        // A cache that several programs write to would be a way from one to the other.
        if let Some(directory) = &spec.typescript_cache
            && spec.sandbox.is_none()
        {
            variables.push(("TS_NODE_CACHE_DIRECTORY", directory.into()));
        }
        variables
    }
}

/// Where compiled modules are kept. What several programs write to would be a way from one to the
/// other, so there is nothing for those in sandboxes.
fn code_variable(spec: &ProgramSpec) -> Option<(OsString, OsString)> {
    let cache = spec.typescript_cache.as_ref()?;
    let folder = || (KEPT_CODE.into(), cache.join("code").into());
    spec.sandbox.is_none().then(folder)
}

/// Tells our script in the process where the translated program is.
const PROGRAM: &str = "NIMBUS_PROGRAM";
/// Tells our scripts where compiled modules are kept.
pub(crate) const KEPT_CODE: &str = "NIMBUS_CODE";

/// Configuration under keys of the form `namespace:config:name`, which every SDK understands.
fn config(context: &DeploymentContext) -> String {
    let entries = context.config.iter().map(|(key, value)| {
        let key = match key.split_once(':') {
            Some((namespace, name)) => format!("{namespace}:config:{name}"),
            None => key.clone(),
        };
        (key, value.as_str())
    });
    json(&entries.collect::<std::collections::BTreeMap<_, _>>())
}

pub(crate) fn node_binary() -> Result<PathBuf, LaunchError> {
    which::which("node").map_err(|_| LaunchError::ToolMissing { tool: "node" })
}

/// Who installs the packages of a program; it decides what to tell those who forgot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackageManager {
    /// Whichever left its lock file.
    Auto,
    Npm,
    Yarn,
    Pnpm,
    Bun,
}

impl PackageManager {
    fn parse(option: Option<&str>) -> Result<Self, LaunchError> {
        Ok(match option {
            None | Some("auto") => Self::Auto,
            Some("npm") => Self::Npm,
            Some("yarn") => Self::Yarn,
            Some("pnpm") => Self::Pnpm,
            Some("bun") => Self::Bun,
            Some(_) => {
                return Err(LaunchError::BadOption {
                    option: "packagemanager",
                    expected: "one of auto, npm, yarn, pnpm and bun",
                });
            }
        })
    }

    /// The command that installs the packages of a program.
    fn install_command(self, directory: &Path) -> String {
        let has = |lock: &str| directory.join(lock).exists();
        let tool = match self {
            Self::Npm => "npm",
            Self::Yarn => "yarn",
            Self::Pnpm => "pnpm",
            Self::Bun => "bun",
            Self::Auto if has("yarn.lock") => "yarn",
            Self::Auto if has("pnpm-lock.yaml") => "pnpm",
            Self::Auto if has("bun.lock") || has("bun.lockb") => "bun",
            Self::Auto => "npm",
        };
        format!("cd {} && {tool} install", directory.display())
    }
}

/// A module of the SDK that a program in this directory uses, such as `cmd/dynamic-provider`.
pub async fn node_module_path(
    files: &ProjectFiles,
    directory: &Path,
    module: &str,
) -> Result<PathBuf, LaunchError> {
    resolve(files, directory, module, PackageManager::Auto).await
}

async fn resolve(
    files: &ProjectFiles,
    directory: &Path,
    module: &str,
    package_manager: PackageManager,
) -> Result<PathBuf, LaunchError> {
    if let Some(found) = in_node_modules(files, directory, module)? {
        return Ok(found);
    }
    // Whoever is asked runs in the project's folder and loads what lies there, so for strangers'
    // projects nobody is.
    let asked = match files.is_restricted() {
        true => None,
        false => ask_node(directory, module).await?,
    };
    asked.ok_or_else(|| LaunchError::NodeSdkMissing {
        directory: directory.to_owned(),
        install: package_manager.install_command(directory),
    })
}

/// What Node.js itself would find in the usual places. Starting it to ask costs a tenth of a
/// second.
fn in_node_modules(
    files: &ProjectFiles,
    directory: &Path,
    module: &str,
) -> Result<Option<PathBuf>, LaunchError> {
    for ancestor in directory.ancestors() {
        let package = ancestor.join("node_modules/@pulumi/pulumi");
        let path = package.join(module).join("index.js");
        // Modules are known by their real path, so that one linked in twice is loaded once.
        match files.canonicalize(&path) {
            Ok(found) if files.is_file(&found) => return Ok(Some(found)),
            // A link of the project's own that leads out of it, or what merely lies above it.
            Err(error) if is_outside(&error) && files.exists(ancestor) => {
                return Err(LaunchError::outside(error));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Some package managers keep packages elsewhere and teach Node.js to find them.
async fn ask_node(directory: &Path, module: &str) -> Result<Option<PathBuf>, LaunchError> {
    let script = format!("process.stdout.write(require.resolve('@pulumi/pulumi/{module}'))");
    let mut command = Command::new(node_binary()?);
    command
        .arg("-e")
        .arg(script)
        .current_dir(directory)
        .kill_on_drop(true);
    let answer = run(&mut command, CodeOrigin::Tenants(CodeIsolation::OwnProject))
        .await
        .map_err(|source| LaunchError::NotStarted {
            what: "node".to_owned(),
            source,
        })?;
    let path = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    Ok((answer.status.success() && !path.is_empty()).then(|| PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(config: &[(&str, &str)]) -> DeploymentContext {
        let config = config.iter();
        DeploymentContext {
            config: config
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            ..DeploymentContext::default()
        }
    }

    #[test]
    fn configuration_keys_have_the_form_that_every_sdk_reads() {
        let context = context(&[("shop:size", "3"), ("aws:region", "eu"), ("shop:a:b", "c")]);
        assert_eq!(
            config(&context),
            r#"{"aws:config:region":"eu","shop:config:a:b":"c","shop:config:size":"3"}"#
        );
    }

    #[test]
    fn the_sdk_is_found_from_below_its_node_modules() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let module = root.path().join("node_modules/@pulumi/pulumi/cmd/run");
        let program = root.path().join("packages/infra");
        std::fs::create_dir_all(&module).expect("directories");
        std::fs::create_dir_all(&program).expect("directories");
        let found = || {
            let files = ProjectFiles::unrestricted();
            in_node_modules(&files, &program, "cmd/run").expect("nothing is refused")
        };
        assert_eq!(found(), None);
        std::fs::write(module.join("index.js"), "").expect("a file");
        let expected = module.join("index.js").canonicalize().expect("it exists");
        assert_eq!(found(), Some(expected));
    }

    #[test]
    fn the_advice_names_the_package_manager_in_use() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let advice = |option| {
            let manager = PackageManager::parse(option).expect("a known manager");
            manager.install_command(root.path())
        };
        let in_root = |tool: &str| format!("cd {} && {tool} install", root.path().display());
        assert_eq!(advice(None), in_root("npm"));
        assert_eq!(advice(Some("pnpm")), in_root("pnpm"));
        std::fs::write(root.path().join("yarn.lock"), "").expect("a file");
        assert_eq!(advice(Some("auto")), in_root("yarn"));
        assert!(PackageManager::parse(Some("cargo")).is_err());
    }
}
