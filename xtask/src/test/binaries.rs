//! Builds the tests of the whole workspace and says which programs they are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::linted;
use crate::process;
use crate::repo::Repo;

/// A program with tests in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestBinary {
    /// Where its source begins, such as `crates/cli/tests/engine`.
    pub(super) name: String,
    pub(super) program: PathBuf,
    /// The folder of its package: tests run there and find their files below it.
    pub(super) package: PathBuf,
}

/// What a build of all tests came to.
#[derive(Debug, Default)]
pub(super) struct BuiltTests {
    pub(super) binaries: Vec<TestBinary>,
    /// What the compiler and clippy said against our code.
    pub(super) complaints: usize,
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
    message: Option<CompilerMessage>,
}

#[derive(Deserialize)]
struct CargoTarget {
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct CargoProfile {
    test: bool,
}

#[derive(Deserialize)]
struct CompilerMessage {
    rendered: Option<String>,
    /// Where in the sources; a count of warnings at the end has no place.
    #[serde(default)]
    spans: Vec<serde::de::IgnoredAny>,
}

/// Builds every test of the workspace with clippy as the compiler, and shows what it complains about.
///
/// Clippy beside the build would look at every dependency and every crate of ours a second time: ten minutes
/// of a first run on two processors. Its driver is the compiler with more lints, so one pass does for both.
pub(super) fn build(repo: &Repo) -> Result<BuiltTests> {
    let mut cargo = linted::cargo()?;
    cargo
        .args(["test", "--workspace", "--all-targets", "--no-run"])
        .args(["--quiet", "--message-format=json"])
        .current_dir(repo.root());
    let mut built = BuiltTests::default();
    let mut unread = None;
    let status = process::run_watched(&mut cargo, |line| {
        if let Err(error) = built.read(line, repo.root()) {
            unread = Some(error);
        }
    })?;
    anyhow::ensure!(status.success(), "the tests were not built, see above");
    match unread {
        Some(error) => Err(error.context("what cargo says is not understood")),
        None => Ok(built),
    }
}

impl BuiltTests {
    fn read(&mut self, line: &str, root: &Path) -> Result<()> {
        let message: CargoMessage = serde_json::from_str(line)?;
        if message.reason == "compiler-message" {
            self.complain(message.message.as_ref());
        } else if let Some(found) = test_binary(message, root)? {
            self.binaries.push(found);
        }
        Ok(())
    }

    fn complain(&mut self, message: Option<&CompilerMessage>) {
        let Some(message) = message else { return };
        self.complaints += usize::from(!message.spans.is_empty());
        eprint!("{}", message.rendered.as_deref().unwrap_or_default());
    }
}

fn test_binary(message: CargoMessage, root: &Path) -> Result<Option<TestBinary>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> BuiltTests {
        let mut built = BuiltTests::default();
        for line in lines {
            built.read(line, Path::new("/r")).unwrap();
        }
        built
    }

    fn named(source: &str, test: bool) -> Option<String> {
        let line = format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/r/crates/cli/Cargo.toml","target":{{"src_path":"/r/{source}"}},"profile":{{"test":{test}}},"executable":"/t/x-1"}}"#
        );
        let mut found = read(&[&line]).binaries;
        found.pop().map(|binary| binary.name)
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
        assert_eq!(read(&[other]).binaries, []);
    }

    #[test]
    fn complaints_with_a_place_count() {
        let said =
            r#"{"reason":"compiler-message","message":{"rendered":"","spans":[{"line_start":1}]}}"#;
        let total = r#"{"reason":"compiler-message","message":{"rendered":"","spans":[]}}"#;
        assert_eq!(read(&[said, total, said]).complaints, 2);
    }
}
