//! Third-party tools built from Go modules: the official command line and provider plugins.
//!
//! The pins are in `tools/go/tools.toml`. A group is installed as a whole or not at all, because the
//! command line without its language hosts is of no use. A module proxy may lack a module, and there
//! may be no Go: neither is a failure here, the tests that need the tools say that they were skipped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::InstalledTool;
use crate::cache::{DownloadCache, Recipe};
use crate::process::{self, InstallFailure};
use crate::repo::Repo;

const PINS: &str = "tools/go/tools.toml";

pub(crate) struct GoTools {
    pub(crate) pulumi: InstalledTool,
    pub(crate) plugins: InstalledTool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pins {
    #[serde(default)]
    tool: Vec<Build>,
    #[serde(default)]
    file: Vec<Extra>,
}

/// A program to build.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Build {
    binary: String,
    module: String,
    version: String,
    package: String,
    group: GoModuleGroup,
    #[serde(default)]
    ldflags: String,
    #[serde(default)]
    replace: Vec<String>,
}

/// A file to take out of a module as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Extra {
    name: String,
    module: String,
    version: String,
    path: String,
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

pub(crate) fn install(repo: &Repo, cache: &DownloadCache) -> Result<GoTools> {
    provide(repo, |group, pins, text, go| {
        let built = with_recipe(group, text, go, |recipe| {
            cache.install(recipe, |folder| build_group(group, pins, folder))
        });
        match built {
            Ok(entry) => Ok(InstalledTool::Ready(entry)),
            Err(error) if process::interrupted() => Err(error),
            Err(error) => Ok(InstalledTool::Missing(reason(&error))),
        }
    })
}

pub(crate) fn find(repo: &Repo, cache: &DownloadCache) -> Result<GoTools> {
    provide(repo, |group, _, text, go| {
        with_recipe(group, text, go, |recipe| {
            let entry = cache.entry(recipe);
            Ok(if entry.is_dir() {
                InstalledTool::Ready(entry)
            } else {
                InstalledTool::Missing("run `cargo xtask setup --integration`".into())
            })
        })
    })
}

fn provide(
    repo: &Repo,
    each: impl Fn(GoModuleGroup, &Pins, &str, &str) -> Result<InstalledTool>,
) -> Result<GoTools> {
    let text = repo.read(PINS)?;
    let pins: Pins = toml::from_str(&text).with_context(|| format!("{PINS} is not understood"))?;
    let Ok(go) = process::capture(Command::new("go").arg("version")) else {
        let missing =
            || InstalledTool::Missing("there is no Go toolchain: install Go and run again".into());
        return Ok(GoTools {
            pulumi: missing(),
            plugins: missing(),
        });
    };
    let pulumi = match each(GoModuleGroup::CommandLine, &pins, &text, &go)? {
        InstalledTool::Ready(entry) => InstalledTool::Ready(entry.join("bin").join("pulumi")),
        missing @ InstalledTool::Missing(_) => missing,
    };
    let plugins = match each(GoModuleGroup::ProviderPlugins, &pins, &text, &go)? {
        InstalledTool::Ready(entry) => InstalledTool::Ready(entry.join("bin")),
        missing @ InstalledTool::Missing(_) => missing,
    };
    Ok(GoTools { pulumi, plugins })
}

fn with_recipe<T>(
    group: GoModuleGroup,
    pins: &str,
    go: &str,
    use_it: impl FnOnce(&Recipe<'_>) -> Result<T>,
) -> Result<T> {
    use_it(&Recipe {
        name: group.name(),
        inputs: &[pins, go],
        megabytes: 4000,
    })
}

fn build_group(group: GoModuleGroup, pins: &Pins, folder: &Path) -> Result<()> {
    let bin = folder.join("bin");
    fs::create_dir(&bin)?;
    let log = folder.join("install.log");
    // Ask for every module before compiling any: a refusal should cost seconds, not minutes.
    let tools: Vec<_> = pins
        .tool
        .iter()
        .filter(|tool| tool.group == group)
        .collect();
    for tool in &tools {
        fetch(&tool.module, &tool.version, folder, &log)?;
    }
    for extra in pins.file.iter().filter(|file| file.group == group) {
        let module = fetch(&extra.module, &extra.version, folder, &log)?;
        let target = bin.join(&extra.name);
        fs::copy(module.join(&extra.path), &target)
            .with_context(|| format!("{} has no {}", extra.module, extra.path))?;
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755))?;
    }
    for tool in tools {
        println!("setup: building {} {} (minutes)", tool.binary, tool.version);
        tool.build(&bin, folder, &log)?;
    }
    Ok(())
}

/// Downloads one module and tells where its files are.
fn fetch(module: &str, version: &str, folder: &Path, log: &Path) -> Result<PathBuf> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Downloaded {
        dir: Option<PathBuf>,
        error: Option<String>,
    }

    let wanted = format!("{module}@{version}");
    // `-json` reports a refusal in its output and fails as well, so the status adds nothing.
    let output = go(folder)
        .args(["mod", "download", "-json", &wanted])
        .output()?;
    let answer: Downloaded = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())?;
    if let Some(error) = answer.error {
        fs::write(log, &error)?;
        anyhow::bail!("{wanted}: {error}");
    }
    answer
        .dir
        .with_context(|| format!("{wanted} was not downloaded"))
}

fn go(folder: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(folder)
        // Checksums are verified against the public database; `-mod=mod` lets go record them.
        .env("GOFLAGS", "-mod=mod -buildvcs=false -p=2")
        .env("GOWORK", "off")
        // Never fetch another toolchain or ask for a password on the way.
        .env("GOTOOLCHAIN", "local")
        .env("GIT_TERMINAL_PROMPT", "0");
    command
}

impl Build {
    fn build(&self, bin: &Path, folder: &Path, log: &Path) -> Result<()> {
        let module = folder.join("build").join(&self.binary);
        fs::create_dir_all(&module)?;
        fs::write(module.join("go.mod"), self.module_file())?;
        process::run_logged(go(&module).args(["get", &self.package]), log)?;
        process::run_logged(
            go(&module)
                .args([
                    "build",
                    "-trimpath",
                    "-ldflags",
                    &format!("-s -w {}", self.ldflags),
                    "-o",
                ])
                .arg(bin.join(&self.binary))
                .arg(&self.package),
            log,
        )
    }

    /// The `go.mod` of a module that exists only to build this tool at its pinned version.
    fn module_file(&self) -> String {
        let mut text = format!(
            "module nimbus.invalid/tools/{}\n\nrequire {} {}\n",
            self.binary, self.module, self.version
        );
        for line in &self.replace {
            text.push_str(&format!("\nreplace {line}\n"));
        }
        text
    }
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

    const TOOL: &str = r#"
        [[tool]]
        binary = "thing"
        module = "example.invalid/thing/v2"
        version = "v2.1.0"
        package = "example.invalid/thing/v2/cmd/thing"
        group = "provider-plugins"
        replace = ["a.invalid/b => c.invalid/d v1.0.0"]
    "#;

    #[test]
    fn the_build_module_requires_the_pin_and_repeats_replacements() {
        let pins: Pins = toml::from_str(TOOL).unwrap();
        assert_eq!(
            pins.tool[0].module_file(),
            "module nimbus.invalid/tools/thing\n\n\
             require example.invalid/thing/v2 v2.1.0\n\n\
             replace a.invalid/b => c.invalid/d v1.0.0\n"
        );
    }

    #[test]
    fn the_shipped_pins_are_read() {
        let pins: Pins = toml::from_str(include_str!("../../../tools/go/tools.toml")).unwrap();
        let named = |group| {
            pins.tool
                .iter()
                .filter(move |tool| tool.group == group)
                .count()
        };
        assert!(named(GoModuleGroup::CommandLine) >= 3);
        assert!(named(GoModuleGroup::ProviderPlugins) >= 1);
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
}
