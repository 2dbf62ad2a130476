//! Builds the tests of the whole workspace and says which programs they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process;
use crate::repo::{Repo, RepoFile};

/// A program with tests in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestBinary {
    /// Where its source begins, such as `crates/cli/tests/engine`.
    pub(super) name: String,
    pub(super) program: PathBuf,
    /// The folder of its package: tests run there and find their files below it.
    pub(super) package: PathBuf,
}

/// A line of `cargo --message-format=json`, as far as it matters here.
#[derive(Deserialize)]
struct CargoMessage {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    target: Option<CargoTarget>,
    profile: Option<CargoProfile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CargoTarget {
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct CargoProfile {
    test: bool,
}

/// Builds every test of the workspace; complaints of the compiler go to our own terminal.
pub(super) fn build(repo: &Repo) -> Result<Vec<TestBinary>> {
    let mut cargo = process::cargo();
    cargo
        .args(["test", "--workspace", "--no-run", "--quiet"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(repo.root());
    let mut binaries = Vec::new();
    let mut unread = None;
    let status = process::run_watched(&mut cargo, |line| match read(line, repo.root()) {
        Ok(found) => binaries.extend(found),
        Err(error) => unread = Some(error),
    })?;
    anyhow::ensure!(status.success(), "the tests were not built, see above");
    match unread {
        Some(error) => Err(error.context("what cargo says is not understood")),
        None => Ok(binaries),
    }
}

fn read(line: &str, root: &Path) -> Result<Option<TestBinary>> {
    let message: CargoMessage = serde_json::from_str(line)?;
    let is_test = message.profile.is_some_and(|profile| profile.test);
    if message.reason != "compiler-artifact" || !is_test {
        return Ok(None);
    }
    let (Some(program), Some(target)) = (message.executable, message.target) else {
        return Ok(None);
    };
    let package = message.manifest_path.parent().context("no folder")?;
    let source = target.src_path.with_extension("");
    let source = test_folder(&source).unwrap_or(source);
    let name = source.strip_prefix(root).unwrap_or(&source);
    Ok(Some(TestBinary {
        name: name.to_string_lossy().replace('\\', "/"),
        program,
        package: package.to_path_buf(),
    }))
}

/// `tests/engine/main` is the test `tests/engine`; `src/main` is a program.
fn test_folder(source: &Path) -> Option<PathBuf> {
    let folder = source.parent()?;
    let is_test = source.file_name()? == "main" && folder.parent()?.file_name()? == "tests";
    is_test.then(|| folder.to_path_buf())
}

/// Packages whose comments have examples that are tests. Cargo would start rustdoc for every other
/// package too, to find none.
pub(super) fn packages_with_examples(repo: &Repo) -> Result<Vec<String>> {
    let files = repo.text_files()?;
    let with_example = files
        .iter()
        .filter(|file| is_source(file) && has_example(&file.text));
    let packages: BTreeSet<String> = with_example
        .map(|file| package_of(repo, &file.path))
        .collect::<Result<_>>()?;
    Ok(packages.into_iter().collect())
}

fn is_source(file: &RepoFile) -> bool {
    file.path.starts_with("crates/") && file.path.contains("/src/") && file.path.ends_with(".rs")
}

/// Whether a comment has a block of code that rustdoc would take for Rust.
fn has_example(text: &str) -> bool {
    let mut inside = false;
    for line in text.lines().map(str::trim_start) {
        let comment = line
            .strip_prefix("//!")
            .or_else(|| line.strip_prefix("///"));
        let Some(info) = comment.and_then(|text| text.trim().strip_prefix("```")) else {
            continue;
        };
        if !inside && is_rust(info) {
            return true;
        }
        inside = !inside;
    }
    false
}

fn is_rust(info: &str) -> bool {
    const WORDS: &[&str] = &["rust", "no_run", "should_panic", "compile_fail", "edition"];
    info.is_empty() || WORDS.iter().any(|word| info.starts_with(word))
}

fn package_of(repo: &Repo, source: &str) -> Result<String> {
    let (folder, _) = source.split_once("/src/").context("no source")?;
    let manifest: toml::Table = repo.read(&format!("{folder}/Cargo.toml"))?.parse()?;
    let name = manifest["package"]["name"].as_str();
    Ok(name.context("a package without a name")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(source: &str, test: bool) -> Option<String> {
        let line = format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/r/crates/cli/Cargo.toml","target":{{"src_path":"/r/{source}"}},"profile":{{"test":{test}}},"executable":"/t/x-1"}}"#
        );
        read(&line, Path::new("/r"))
            .unwrap()
            .map(|found| found.name)
    }

    #[test]
    fn binaries_are_named_by_their_sources() {
        let name = |source| named(source, true).unwrap();
        assert_eq!(
            name("crates/cli/tests/engine/main.rs"),
            "crates/cli/tests/engine"
        );
        assert_eq!(
            name("crates/cli/tests/doctor.rs"),
            "crates/cli/tests/doctor"
        );
        assert_eq!(name("crates/cli/src/main.rs"), "crates/cli/src/main");
        assert_eq!(named("crates/cli/src/main.rs", false), None);
        let other = r#"{"reason":"build-finished","success":true}"#;
        assert_eq!(read(other, Path::new("/r")).unwrap(), None);
    }

    #[test]
    fn examples_are_told_from_other_texts() {
        assert!(has_example("//! ```\n//! let a = 1;\n//! ```\n"));
        assert!(has_example("    /// ```no_run\n    /// ```\n"));
        assert!(!has_example("//! ```text\n//! a\n//! ```\n"));
        assert!(!has_example("let fence = \"```\";\n// ```\n"));
    }

    #[test]
    fn the_example_of_workflows_is_found() {
        let packages = packages_with_examples(&Repo::locate().unwrap()).unwrap();
        assert!(
            packages.contains(&"nimbus-workflows".to_owned()),
            "{packages:?}"
        );
    }
}
