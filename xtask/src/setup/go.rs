//! Third-party tools built from Go modules: the official command line and a provider plugin.
//!
//! `tools/go` has a module for each, with every dependency pinned. Each tool has a cache entry of its
//! own, because the command line takes minutes and the others change more often. A group of them is
//! there as a whole or not at all: the command line without its language hosts is of no use. A module
//! proxy may lack a module, and there may be no Go: neither is a failure here, the tests that need
//! the tools say that they were skipped.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::InstalledTool;
use crate::cache::{DownloadCache, Recipe};
use crate::process::{self, InstallFailure};
use crate::repo::Repo;

const FOLDER: &str = "tools/go";
const PINS: &str = "tools/go/tools.toml";

pub(crate) struct GoTools {
    pub(crate) pulumi: InstalledTool,
    pub(crate) plugins: InstalledTool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pins {
    #[serde(default)]
    tool: Vec<GoProgram>,
    #[serde(default)]
    script: Vec<GoScripts>,
}

/// A program to build in the module of its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GoProgram {
    binary: String,
    package: String,
    group: GoModuleGroup,
    #[serde(default)]
    ldflags: String,
    /// What it is called where it is used; without any, as it was built.
    #[serde(default)]
    names: Vec<String>,
}

impl GoProgram {
    fn names(&self) -> &[String] {
        if self.names.is_empty() {
            std::slice::from_ref(&self.binary)
        } else {
            &self.names
        }
    }
}

/// Files to take as they are out of a module that the program `binary` requires.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GoScripts {
    binary: String,
    module: String,
    paths: Vec<String>,
    group: GoModuleGroup,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum GoModuleGroup {
    CommandLine,
    ProviderPlugins,
}

impl GoModuleGroup {
    fn name(self) -> &'static str {
        match self {
            Self::CommandLine => "pulumi-cli",
            Self::ProviderPlugins => "provider-plugins",
        }
    }
}

/// What is built, and from what.
struct ToolBuilder {
    pins: Pins,
    text: String,
    /// The toolchain, which says the platform as well.
    go: String,
    /// The files of each tool's module by name.
    modules: BTreeMap<String, BTreeMap<String, String>>,
}

pub(crate) fn install(repo: &Repo, cache: &DownloadCache) -> Result<GoTools> {
    provide(repo, |builder, group| match builder.install(group, cache) {
        Ok(entry) => Ok(InstalledTool::Ready(entry)),
        Err(error) if process::interrupted() => Err(error),
        Err(error) => Ok(InstalledTool::Missing(reason(&error))),
    })
}

pub(crate) fn find(repo: &Repo, cache: &DownloadCache) -> Result<GoTools> {
    provide(repo, |builder, group| {
        let entry = builder.with_group_recipe(group, |recipe| cache.entry(recipe));
        Ok(if entry.is_dir() {
            InstalledTool::Ready(entry)
        } else {
            InstalledTool::Missing("run `cargo xtask setup --integration`".into())
        })
    })
}

fn provide(
    repo: &Repo,
    each: impl Fn(&ToolBuilder, GoModuleGroup) -> Result<InstalledTool>,
) -> Result<GoTools> {
    let Ok(go) = process::capture(Command::new("go").arg("version")) else {
        let missing =
            || InstalledTool::Missing("there is no Go toolchain: install Go and run again".into());
        return Ok(GoTools {
            pulumi: missing(),
            plugins: missing(),
        });
    };
    let builder = ToolBuilder::open(repo, go)?;
    Ok(GoTools {
        pulumi: each(&builder, GoModuleGroup::CommandLine)?
            .map_ready(|entry| entry.join("bin").join("pulumi")),
        plugins: each(&builder, GoModuleGroup::ProviderPlugins)?
            .map_ready(|entry| entry.join("bin")),
    })
}

impl ToolBuilder {
    fn open(repo: &Repo, go: String) -> Result<Self> {
        let text = repo.read(PINS)?;
        let pins: Pins =
            toml::from_str(&text).with_context(|| format!("{PINS} is not understood"))?;
        let mut modules = BTreeMap::new();
        for tool in &pins.tool {
            modules.insert(
                tool.binary.clone(),
                texts(&repo.join(FOLDER).join(&tool.binary))?,
            );
        }
        Ok(Self {
            pins,
            text,
            go,
            modules,
        })
    }

    fn install(&self, group: GoModuleGroup, cache: &DownloadCache) -> Result<PathBuf> {
        self.with_group_recipe(group, |recipe| {
            cache.install(recipe, |folder| {
                let bin = folder.join("bin");
                fs::create_dir(&bin)?;
                for tool in self.pins.tool.iter().filter(|tool| tool.group == group) {
                    let built = self.build(tool, cache)?.join(&tool.binary);
                    for target in tool.names().iter().map(|name| bin.join(name)) {
                        // Across file systems there are no links.
                        fs::hard_link(&built, &target)
                            .or_else(|_| fs::copy(&built, &target).map(|_| ()))?;
                    }
                }
                let scripts = self.pins.script.iter();
                for scripts in scripts.filter(|scripts| scripts.group == group) {
                    self.copy_scripts(scripts, folder, &bin)?;
                }
                Ok(())
            })
        })
    }

    fn build(&self, tool: &GoProgram, cache: &DownloadCache) -> Result<PathBuf> {
        let name = format!("go-tools/{}", tool.binary);
        let mut inputs = vec![&*self.go, &tool.package, &tool.ldflags];
        for (file, text) in &self.modules[&tool.binary] {
            inputs.extend([file.as_str(), text]);
        }
        let recipe = Recipe {
            name: &name,
            inputs: &inputs,
            megabytes: 5000,
        };
        cache.install(&recipe, |folder| {
            let begun = Instant::now();
            println!("setup: building {} from Go modules", tool.binary);
            let module = self.write_module(&tool.binary, folder)?;
            let log = folder.join("install.log");
            let mut command = go(&module);
            command
                .args(["build", "-v", "-ldflags"])
                .arg(format!("-s -w {}", tool.ldflags))
                .arg("-o")
                .arg(folder.join(&tool.binary))
                .arg(&tool.package);
            with_progress(&tool.binary, &log, || {
                process::run_logged(&mut command, &log)
            })
            .with_context(|| format!("{} was not built", tool.binary))?;
            println!(
                "setup: built {} in {} s",
                tool.binary,
                begun.elapsed().as_secs()
            );
            Ok(())
        })
    }

    fn copy_scripts(&self, scripts: &GoScripts, folder: &Path, bin: &Path) -> Result<()> {
        let module = self.write_module(&scripts.binary, folder)?;
        // The binary may be kept from a time when the module was here.
        process::capture(go(&module).args(["mod", "download", &scripts.module]))?;
        let found =
            process::capture(go(&module).args(["list", "-m", "-f", "{{.Dir}}", &scripts.module]))?;
        for path in &scripts.paths {
            let name = path.rsplit('/').next().unwrap_or(path);
            let target = bin.join(name);
            fs::copy(Path::new(found.trim()).join(path), &target)
                .with_context(|| format!("{} has no {path}", scripts.module))?;
            fs::set_permissions(&target, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// The module is built where it may be written to; the tree stays as it is.
    fn write_module(&self, binary: &str, folder: &Path) -> Result<PathBuf> {
        let module = folder.join("module");
        fs::create_dir_all(&module)?;
        let files = self.modules.get(binary);
        for (name, text) in files.with_context(|| format!("{PINS} has no tool {binary}"))? {
            fs::write(module.join(name), text)?;
        }
        Ok(module)
    }

    fn with_group_recipe<T>(
        &self,
        group: GoModuleGroup,
        use_it: impl FnOnce(&Recipe<'_>) -> T,
    ) -> T {
        let mut inputs = vec![&*self.go, &self.text];
        for tool in self.pins.tool.iter().filter(|tool| tool.group == group) {
            for (file, text) in &self.modules[&tool.binary] {
                inputs.extend([file.as_str(), text]);
            }
        }
        use_it(&Recipe {
            name: group.name(),
            inputs: &inputs,
            megabytes: 300,
        })
    }
}

fn texts(folder: &Path) -> Result<BTreeMap<String, String>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    entries
        .map(|entry| {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            Ok((name, fs::read_to_string(entry.path())?))
        })
        .collect()
}

fn go(folder: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(folder)
        // Versions and checksums are those of the module's files and no others.
        .env("GOFLAGS", "-mod=readonly -buildvcs=false")
        .env("GOWORK", "off")
        // Never fetch another toolchain or ask for a password on the way.
        .env("GOTOOLCHAIN", "local")
        .env("GIT_TERMINAL_PROMPT", "0");
    command
}

/// How often a build that takes minutes says how far it is.
const TELLS_EVERY: Duration = Duration::from_secs(30);

/// Says now and then how many packages were compiled: `go build -v` writes a line for each.
fn with_progress<T>(name: &str, log: &Path, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let teller = scope.spawn(|| {
            let mut told = Instant::now();
            while !over.load(Ordering::SeqCst) {
                thread::park_timeout(TELLS_EVERY);
                if told.elapsed() >= TELLS_EVERY && !over.load(Ordering::SeqCst) {
                    told = Instant::now();
                    let text = fs::read_to_string(log).unwrap_or_default();
                    println!("setup: {name}: {}", progress(&text));
                }
            }
        });
        let outcome = work();
        over.store(true, Ordering::SeqCst);
        teller.thread().unpark();
        outcome
    })
}

fn progress(log: &str) -> String {
    let is_download = |line: &&str| line.starts_with("go: downloading ");
    let downloaded = log.lines().filter(is_download).count();
    let compiled = log.lines().count() - downloaded;
    format!("{downloaded} modules downloaded, {compiled} packages compiled")
}

/// One line for the summary: the proxy's whole answer is in the error, not in the line.
fn reason(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let what = text.split(": ").next().unwrap_or_default().to_owned();
    match process::diagnose(&text) {
        InstallFailure::Unclear => text,
        cause => format!("{what}: {}", cause.advice()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> ToolBuilder {
        ToolBuilder::open(&Repo::locate().unwrap(), "go version go1.0".into()).unwrap()
    }

    #[test]
    fn every_tool_has_a_module_with_its_checksums() {
        let builder = builder();
        let named = |group| {
            let tools = builder.pins.tool.iter();
            tools.filter(move |tool| tool.group == group).count()
        };
        assert_eq!(named(GoModuleGroup::CommandLine), 2);
        assert_eq!(named(GoModuleGroup::ProviderPlugins), 1);
        for (name, files) in &builder.modules {
            assert!(files.contains_key("go.mod"), "{name}");
            assert!(files.contains_key("go.sum"), "{name}");
        }
    }

    #[test]
    fn a_group_is_another_when_a_file_of_one_of_its_tools_changes() {
        let cache = DownloadCache::at(Path::new("cache"));
        let mut builder = builder();
        let entries = |builder: &ToolBuilder| {
            [GoModuleGroup::CommandLine, GoModuleGroup::ProviderPlugins]
                .map(|group| builder.with_group_recipe(group, |recipe| cache.entry(recipe)))
        };
        let before = entries(&builder);
        let host = builder.modules.get_mut("pulumi-language-host").unwrap();
        host.get_mut("main.go").unwrap().push_str("// changed\n");
        let after = entries(&builder);
        assert_ne!(before[0], after[0]);
        assert_eq!(before[1], after[1]);
    }

    #[test]
    fn one_binary_is_the_host_of_both_languages() {
        let builder = builder();
        let named = |binary: &str| {
            let mut tools = builder.pins.tool.iter();
            let tool = tools.find(|tool| tool.binary == binary).unwrap();
            tool.names().to_vec()
        };
        assert_eq!(named("pulumi"), ["pulumi"]);
        assert_eq!(
            named("pulumi-language-host"),
            ["pulumi-language-nodejs", "pulumi-language-python"]
        );
    }

    #[test]
    fn a_refused_module_gives_one_plain_line() {
        let error = anyhow::anyhow!(
            "m@v1: reading p/v1.zip: 403 Forbidden\n\tserver response: not available"
        );
        assert_eq!(
            reason(&error),
            "m@v1: the package registry does not offer this version here"
        );
    }

    #[test]
    fn progress_counts_downloads_and_packages_apart() {
        let log = "go: downloading a v1\ngo: downloading b v1\ngolang.org/x/sys\n";
        assert_eq!(progress(log), "2 modules downloaded, 1 packages compiled");
    }
}
