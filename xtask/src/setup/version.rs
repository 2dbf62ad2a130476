//! Which versions of the machine's own tools are good enough.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// A version as far as comparisons here need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ToolVersionNumber(pub(crate) u32, pub(crate) u32);

impl std::fmt::Display for ToolVersionNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// What builds and tests this repository. Programs of users are promised [`PROMISED_NODE`], which is what its packages
/// support; that they still run with an older one is nobody's promise, and lets older machines build.
pub(crate) const NODE: ToolVersionNumber = ToolVersionNumber(20, 0);
/// What users are told to have, everywhere.
const PROMISED_NODE: u32 = 22;
pub(crate) const PYTHON: ToolVersionNumber = ToolVersionNumber(3, 10);

/// Finds `X.Y` in what a tool prints about itself: `v20.20.2`, `Python 3.11.7`, `go1.26.8`.
pub(crate) fn parse(text: &str) -> Option<ToolVersionNumber> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let mut numbers = text[start..].split(|c: char| !c.is_ascii_digit());
    Some(ToolVersionNumber(
        numbers.next()?.parse().ok()?,
        numbers.next()?.parse().ok()?,
    ))
}

/// The version of an installed tool; `None` when there is no such tool.
pub(crate) fn of(program: &str, arguments: &[&str]) -> Option<ToolVersionNumber> {
    process::capture(Command::new(program).args(arguments))
        .ok()
        .and_then(|text| parse(&text))
}

/// Fails with the way to get Node when it is missing or too old.
pub(crate) fn check_node() -> Result<ToolVersionNumber> {
    let how =
        format!("install Node.js {PROMISED_NODE} or later from nodejs.org or your package manager");
    let node =
        of("node", &["--version"]).with_context(|| format!("node is not installed: {how}"))?;
    if node < NODE {
        bail!("node is {node}, and {NODE} or later is needed: {how}");
    }
    of("npm", &["--version"]).context("npm is not installed: it comes with Node.js")?;
    Ok(node)
}

/// Cargo runs us, so only its age is in question, and cargo checks `rust-version` itself as soon as
/// it builds; the message here comes first and says what to do.
pub(crate) fn check_cargo() -> Result<()> {
    const NEEDED: &str = env!("CARGO_PKG_RUST_VERSION");
    let needed = parse(NEEDED).context("rust-version in Cargo.toml is not a version")?;
    let cargo = of("cargo", &["--version"]).context("cargo is not on the PATH")?;
    if cargo < needed {
        bail!("cargo is {cargo}, and {needed} or later is needed: run `rustup update stable`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_tools_print() {
        for (text, version) in [
            ("v20.20.2\n", Some(ToolVersionNumber(20, 20))),
            ("Python 3.11.7", Some(ToolVersionNumber(3, 11))),
            (
                "go version go1.26.8 linux/amd64",
                Some(ToolVersionNumber(1, 26)),
            ),
            ("11.19.1", Some(ToolVersionNumber(11, 19))),
            ("no digits", None),
            ("7", None),
        ] {
            assert_eq!(parse(text), version, "{text}");
        }
        assert!(ToolVersionNumber(3, 9) < PYTHON);
        assert!(ToolVersionNumber(18, 20) < NODE);
    }

    #[test]
    fn users_are_told_one_version_of_node_everywhere() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for (file, words) in [
            ("README.md", "Node.js {} or newer"),
            ("docs/tutorial.md", "Node.js {} or later"),
            ("docs/adopt.md", "Node.js {} or later"),
            ("docs/control-plane.md", "Node.js {}\nor later"),
            ("library/stacks/package.json", "\"node\": \">={}\""),
            (
                "library/policies/baseline/package.json",
                "\"node\": \">={}\"",
            ),
            (
                "crates/cli/src/commands/doctor/tools.rs",
                "minimum: ({}, 0)",
            ),
            ("deploy/Dockerfile", "ARG NODE_IMAGE=node:{}."),
            (".github/workflows/ci.yml", "node-version: {}\n"),
            (".github/workflows/long.yml", "node-version: {}\n"),
        ] {
            let text = std::fs::read_to_string(root.join(file)).expect(file);
            let wanted = words.replace("{}", &PROMISED_NODE.to_string());
            assert!(text.contains(&wanted), "{file} does not say {wanted:?}");
        }
        const { assert!(NODE.0 <= PROMISED_NODE) };
    }

    #[test]
    fn a_tool_that_does_not_exist_has_no_version() {
        assert_eq!(of("no-such-program-anywhere", &["--version"]), None);
    }
}
