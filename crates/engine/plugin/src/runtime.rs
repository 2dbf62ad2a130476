//! How plugins written in Node or Python are run.
//!
//! A dynamic provider is part of the program's own SDK, so it runs with the program's interpreter
//! and finds the SDK from the program's folder. A source plugin or a policy pack is a folder with
//! a manifest and brings its own SDK. Everything is started directly, without a shell in between
//! that could be left behind.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use nimbus_engine_files::{ProjectFiles, is_outside};

use crate::error::PluginError;
use crate::manifest::PluginManifest;
use crate::process::{LaunchProgram, PluginLaunch};

type PluginEnvironment = BTreeMap<OsString, OsString>;

/// A dynamic provider's language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dynamic {
    Node,
    Python,
}

impl Dynamic {
    /// The packages that stand for dynamic providers.
    pub(crate) fn of_package(package: &str) -> Option<Self> {
        match package {
            "pulumi-nodejs" => Some(Self::Node),
            "pulumi-python" => Some(Self::Python),
            _ => None,
        }
    }
}

/// What to run a folder of source as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PluginSource {
    Provider,
    PolicyPack,
}

/// Everything that a command line depends on.
pub(crate) struct Runtimes<'a> {
    /// The interpreter of a Python program; the one on the search path when there is none.
    pub(crate) python: Option<&'a Path>,
    /// The address at which plugins find the engine.
    pub(crate) engine: &'a str,
    /// Where the program is.
    pub(crate) program_folder: &'a Path,
    /// Where plugins run.
    pub(crate) directory: &'a Path,
    pub(crate) environment: &'a PluginEnvironment,
    /// Reads the folder of source: a stranger's only as far as it is its own.
    pub(crate) files: &'a ProjectFiles,
}

impl Runtimes<'_> {
    pub(crate) fn dynamic(
        &self,
        language: Dynamic,
        plugin: &str,
    ) -> Result<PluginLaunch, PluginError> {
        let (program, arguments) = match language {
            Dynamic::Node => {
                let script =
                    self.node_module(self.program_folder, "cmd/dynamic-provider", plugin)?;
                (self.node(plugin)?, vec![script.into(), self.engine.into()])
            }
            Dynamic::Python => {
                let arguments = ["-u", "-m", "pulumi.dynamic", self.engine];
                (self.python(plugin)?, arguments.map(OsString::from).into())
            }
        };
        Ok(self.launch(program, arguments, self.directory, PluginEnvironment::new()))
    }

    pub(crate) fn source(
        &self,
        what: PluginSource,
        folder: &Path,
        manifest: &PluginManifest,
        plugin: &str,
    ) -> Result<PluginLaunch, PluginError> {
        match manifest.runtime.as_str() {
            "nodejs" => self.node_source(what, folder, manifest, plugin),
            "python" => self.python_source(what, folder, manifest, plugin),
            other => Err(PluginError::Runtime {
                plugin: plugin.to_owned(),
                missing: format!("its runtime is {other:?}, which Nimbus cannot run"),
                help: "use a plugin written for nodejs or python, or a compiled one".to_owned(),
            }),
        }
    }

    fn node_source(
        &self,
        what: PluginSource,
        folder: &Path,
        manifest: &PluginManifest,
        plugin: &str,
    ) -> Result<PluginLaunch, PluginError> {
        let module = match what {
            PluginSource::Provider => "cmd/run-plugin",
            PluginSource::PolicyPack => "cmd/run-policy-pack",
        };
        let script = self.node_module(folder, module, plugin)?;
        let flags = manifest.options.get("nodeargs").map_or("", String::as_str);
        let mut arguments: Vec<OsString> = flags.split_whitespace().map(OsString::from).collect();
        arguments.push(script.into());
        arguments.extend(self.operands(what, folder));
        let mut environment = PluginEnvironment::new();
        if manifest
            .options
            .get("typescript")
            .is_none_or(|value| value != "false")
        {
            environment.insert("PULUMI_NODEJS_TYPESCRIPT".into(), "true".into());
        }
        if let Some(path) = manifest.options.get("tsconfig") {
            environment.insert("PULUMI_NODEJS_TSCONFIG_PATH".into(), path.into());
        }
        let directory = self.directory_for(what, folder);
        Ok(self.launch(self.node(plugin)?, arguments, directory, environment))
    }

    fn python_source(
        &self,
        what: PluginSource,
        folder: &Path,
        manifest: &PluginManifest,
        plugin: &str,
    ) -> Result<PluginLaunch, PluginError> {
        let virtualenv = self.virtualenv(what, folder, manifest, plugin)?;
        let mut environment = PluginEnvironment::new();
        let program = match &virtualenv {
            Some(virtualenv) => {
                environment.insert("VIRTUAL_ENV".into(), virtualenv.into());
                LaunchProgram::Named(virtualenv.join("bin/python"))
            }
            None => LaunchProgram::OnPath(self.on_path("python3", plugin)?),
        };
        let mut arguments: Vec<OsString> = match what {
            PluginSource::PolicyPack => ["-u", "-m", "pulumi.policy"].map(OsString::from).into(),
            PluginSource::Provider if self.files.is_file(&folder.join("__main__.py")) => {
                vec!["-u".into()]
            }
            PluginSource::Provider => {
                let name = self.pyproject_name(folder, plugin)?;
                let module = ["-u", "-m", "pulumi.run.plugin", &name].map(OsString::from);
                let arguments = module.into_iter().chain([self.engine.into()]).collect();
                return Ok(self.launch(program, arguments, self.directory, environment));
            }
        };
        arguments.extend(self.operands(what, folder));
        Ok(self.launch(
            program,
            arguments,
            self.directory_for(what, folder),
            environment,
        ))
    }

    /// Policy packs get their folder last, everything else first.
    fn operands(&self, what: PluginSource, folder: &Path) -> [OsString; 2] {
        match what {
            PluginSource::Provider => [folder.into(), self.engine.into()],
            PluginSource::PolicyPack => [self.engine.into(), folder.into()],
        }
    }

    fn directory_for<'b>(&'b self, what: PluginSource, folder: &'b Path) -> &'b Path {
        match what {
            PluginSource::Provider => self.directory,
            PluginSource::PolicyPack => folder,
        }
    }

    /// A plugin must have a virtual environment; a policy pack may do without.
    fn virtualenv(
        &self,
        what: PluginSource,
        folder: &Path,
        manifest: &PluginManifest,
        plugin: &str,
    ) -> Result<Option<PathBuf>, PluginError> {
        let named = manifest
            .options
            .get("virtualenv")
            .map(|name| folder.join(name));
        let missing = |folder: &Path| PluginError::Runtime {
            plugin: plugin.to_owned(),
            missing: format!("there is no virtual environment in {}", folder.display()),
            help: "create it and install the plugin's requirements into it".to_owned(),
        };
        if let Some(named) = named {
            return match self.has_interpreter(&named, plugin)? {
                true => Ok(Some(named)),
                false => Err(missing(&named)),
            };
        }
        for candidate in ["venv", ".venv"].map(|name| folder.join(name)) {
            if self.has_interpreter(&candidate, plugin)? {
                return Ok(Some(candidate));
            }
        }
        match what {
            PluginSource::PolicyPack => Ok(None),
            PluginSource::Provider => Err(missing(folder)),
        }
    }

    /// Whether a folder is a virtual environment. A stranger's has to be one of its own or of the
    /// operator's roots; where its interpreter leads from there is checked when it is shown.
    fn has_interpreter(&self, folder: &Path, plugin: &str) -> Result<bool, PluginError> {
        let interpreter = folder.join("bin/python");
        if !self.files.is_restricted() {
            return Ok(interpreter.is_file());
        }
        match self.files.symlink_metadata(&interpreter) {
            Ok(_) => Ok(true),
            Err(error) if is_outside(&error) => Err(PluginError::Runtime {
                plugin: plugin.to_owned(),
                missing: error.to_string(),
                help: "put the virtual environment into the folder".to_owned(),
            }),
            Err(_) => Ok(false),
        }
    }

    fn node(&self, plugin: &str) -> Result<LaunchProgram, PluginError> {
        self.on_path("node", plugin).map(LaunchProgram::OnPath)
    }

    /// The program's interpreter is the project's choice, unless it is the one that the search path
    /// has.
    fn python(&self, plugin: &str) -> Result<LaunchProgram, PluginError> {
        let Some(python) = self.python else {
            return self.on_path("python3", plugin).map(LaunchProgram::OnPath);
        };
        let name = python
            .file_name()
            .and_then(OsStr::to_str)
            .unwrap_or_default();
        let operators = self
            .on_path(name, plugin)
            .is_ok_and(|found| found == python);
        Ok(match operators {
            true => LaunchProgram::OnPath(python.to_owned()),
            false => LaunchProgram::Named(python.to_owned()),
        })
    }

    fn on_path(&self, program: &str, plugin: &str) -> Result<PathBuf, PluginError> {
        let path = self.environment.get(OsStr::new("PATH"));
        let found = which::which_in_global(program, path)
            .ok()
            .and_then(|mut all| all.next());
        found.ok_or_else(|| PluginError::Runtime {
            plugin: plugin.to_owned(),
            missing: format!("there is no {program} on the search path"),
            help: format!("install {program} and put it on $PATH"),
        })
    }

    fn launch(
        &self,
        program: LaunchProgram,
        arguments: Vec<OsString>,
        directory: &Path,
        additions: PluginEnvironment,
    ) -> PluginLaunch {
        let mut environment = self.environment.clone();
        environment.extend(additions);
        PluginLaunch {
            program,
            arguments,
            directory: directory.to_owned(),
            environment,
        }
    }

    /// The folder of a module of the Node SDK, as Node itself would find it from `start`.
    fn node_module(
        &self,
        start: &Path,
        module: &str,
        plugin: &str,
    ) -> Result<PathBuf, PluginError> {
        let sdk = Path::new("node_modules/@pulumi/pulumi");
        let mut candidates = start
            .ancestors()
            .map(|folder| folder.join(sdk).join(module));
        let found = candidates.find(|candidate| self.files.is_file(&candidate.join("index.js")));
        found.ok_or_else(|| PluginError::Runtime {
            plugin: plugin.to_owned(),
            missing: format!(
                "@pulumi/pulumi/{module} is not installed for {}",
                start.display()
            ),
            // Of a stranger's project, what is installed runs scripts as whoever installs it.
            help: match self.files.is_restricted() {
                true => "install it with scripts off: npm ci --ignore-scripts".to_owned(),
                false => format!("run npm install in {}", start.display()),
            },
        })
    }

    /// The name under which a Python plugin's own package is installed.
    fn pyproject_name(&self, folder: &Path, plugin: &str) -> Result<String, PluginError> {
        let name = self
            .files
            .read_to_string(&folder.join("pyproject.toml"))
            .ok()
            .and_then(|text| text.parse::<toml::Table>().ok())
            .and_then(|table| Some(table.get("project")?.get("name")?.as_str()?.to_owned()));
        name.ok_or_else(|| PluginError::Runtime {
            plugin: plugin.to_owned(),
            missing: "it has neither __main__.py nor a pyproject.toml with a project name"
                .to_owned(),
            help: format!("complete the plugin in {}", folder.display()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A folder with these (empty) files, and the search path that finds its programs.
    fn folder(files: &[&str]) -> (TempDir, PluginEnvironment) {
        use std::os::unix::fs::PermissionsExt;
        let folder = TempDir::new().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let environment = [("PATH".into(), folder.path().join("bin").into())].into();
        (folder, environment)
    }

    fn manifest(runtime: &str, options: &[(&str, &str)]) -> PluginManifest {
        let options = options
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        PluginManifest {
            runtime: runtime.to_owned(),
            options,
            version: None,
        }
    }

    fn run(
        what: PluginSource,
        place: &(TempDir, PluginEnvironment),
        manifest: &PluginManifest,
    ) -> Result<(String, PathBuf, PluginEnvironment), PluginError> {
        let (folder, environment) = place;
        let runtimes = Runtimes {
            python: None,
            engine: "engine:1",
            program_folder: Path::new("/program"),
            directory: Path::new("/project"),
            environment,
            files: &ProjectFiles::UNRESTRICTED,
        };
        let launch = runtimes.source(what, folder.path(), manifest, "it")?;
        let words = [launch.program.path().to_owned().into_os_string()]
            .into_iter()
            .chain(launch.arguments);
        let line = words
            .map(|word| word.into_string().unwrap())
            .collect::<Vec<_>>()
            .join(" ");
        let root = folder.path().display().to_string();
        Ok((
            line.replace(&root, "~"),
            launch.directory,
            launch.environment,
        ))
    }

    const RUN_PLUGIN: &str = "node_modules/@pulumi/pulumi/cmd/run-plugin/index.js";
    const RUN_PACK: &str = "node_modules/@pulumi/pulumi/cmd/run-policy-pack/index.js";

    #[test]
    fn a_node_plugin_gets_its_folder_first_and_runs_in_the_project() {
        let place = folder(&["bin/node", RUN_PLUGIN]);
        let options = [
            ("nodeargs", "--trace-warnings  --no-deprecation"),
            ("typescript", "false"),
        ];
        let (line, directory, environment) = run(
            PluginSource::Provider,
            &place,
            &manifest("nodejs", &options),
        )
        .unwrap();
        let script = "~/node_modules/@pulumi/pulumi/cmd/run-plugin";
        let expected = format!("~/bin/node --trace-warnings --no-deprecation {script} ~ engine:1");
        assert_eq!(line, expected);
        assert_eq!(directory, Path::new("/project"));
        assert!(!environment.contains_key(OsStr::new("PULUMI_NODEJS_TYPESCRIPT")));
    }

    #[test]
    fn a_node_policy_pack_gets_its_folder_last_and_runs_in_it() {
        let place = folder(&["bin/node", RUN_PACK]);
        let (line, directory, environment) =
            run(PluginSource::PolicyPack, &place, &manifest("nodejs", &[])).unwrap();
        assert_eq!(
            line,
            "~/bin/node ~/node_modules/@pulumi/pulumi/cmd/run-policy-pack engine:1 ~"
        );
        assert_eq!(directory, place.0.path());
        assert_eq!(environment[OsStr::new("PULUMI_NODEJS_TYPESCRIPT")], "true");
    }

    #[test]
    fn a_python_plugin_runs_in_its_virtual_environment() {
        let place = folder(&["venv/bin/python", "__main__.py"]);
        let (line, _, environment) =
            run(PluginSource::Provider, &place, &manifest("python", &[])).unwrap();
        assert_eq!(line, "~/venv/bin/python -u ~ engine:1");
        assert!(environment.contains_key(OsStr::new("VIRTUAL_ENV")));

        let place = folder(&["env/bin/python", "pyproject.toml"]);
        fs::write(
            place.0.path().join("pyproject.toml"),
            "[project]\nname = \"mine\"\n",
        )
        .unwrap();
        let options = manifest("python", &[("virtualenv", "env")]);
        let (line, ..) = run(PluginSource::Provider, &place, &options).unwrap();
        assert_eq!(
            line,
            "~/env/bin/python -u -m pulumi.run.plugin mine engine:1"
        );
    }

    #[test]
    fn a_python_policy_pack_may_use_the_python_on_the_path() {
        let place = folder(&["bin/python3"]);
        let (line, ..) = run(PluginSource::PolicyPack, &place, &manifest("python", &[])).unwrap();
        assert_eq!(line, "~/bin/python3 -u -m pulumi.policy engine:1 ~");
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = |files: &[&str], manifest: PluginManifest| match run(
            PluginSource::Provider,
            &folder(files),
            &manifest,
        ) {
            Err(PluginError::Runtime { missing, .. }) => missing,
            other => format!("{other:?}"),
        };
        let node = || manifest("nodejs", &[]);
        let python = || manifest("python", &[]);
        assert!(missing(&[RUN_PLUGIN], node()).starts_with("there is no node"));
        assert!(missing(&["bin/node"], node()).starts_with("@pulumi/pulumi/cmd/run-plugin"));
        assert!(missing(&[], python()).starts_with("there is no virtual environment"));
        let named = manifest("python", &[("virtualenv", "env")]);
        assert!(missing(&["venv/bin/python"], named).ends_with("/env"));
        assert!(missing(&["venv/bin/python"], python()).starts_with("it has neither __main__.py"));
        assert!(missing(&[], manifest("go", &[])).contains("\"go\""));
    }
}
