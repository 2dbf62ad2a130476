//! Manifests: workspace lints everywhere, and versions in one place only.

use toml::{Table, Value};

use super::BrokenRule;
use crate::repo::RepoFile;

pub(super) fn check(file: &RepoFile) -> Vec<BrokenRule> {
    let member = file.path.ends_with("/Cargo.toml");
    if !member {
        return Vec::new();
    }
    let Ok(manifest) = file.text.parse::<Table>() else {
        return vec![BrokenRule::file(
            &file.path,
            "is not TOML",
            "fix the syntax",
        )];
    };
    // A workspace of its own, such as the fuzz targets, cannot take anything from ours.
    if manifest.contains_key("workspace") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if !is_true(
        manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace")),
    ) {
        findings.push(BrokenRule::file(
            &file.path,
            "does not take the workspace's lints",
            "add `[lints]` with `workspace = true`",
        ));
    }
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let Some(Value::Table(dependencies)) = manifest.get(section) else {
            continue;
        };
        for (name, value) in dependencies {
            if !is_true(value.get("workspace")) {
                findings.push(BrokenRule::at(
                    &file.path,
                    line_of(&file.text, name),
                    format!("{name} does not take its version from the workspace"),
                    "name the version in [workspace.dependencies] and write `workspace = true` here",
                ));
            }
        }
    }
    findings
}

fn is_true(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool) == Some(true)
}

fn line_of(text: &str, key: &str) -> usize {
    text.lines()
        .position(|line| line.trim_start().starts_with(key))
        .map_or(0, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn a_manifest_that_takes_all_from_the_workspace_passes() {
        let manifest = "[lints]\nworkspace = true\n[dependencies]\nserde = { workspace = true }\n";
        assert_eq!(check(&file("crates/x/Cargo.toml", manifest)), []);
    }

    #[test]
    fn missing_lints_and_own_versions_are_found() {
        let manifest =
            "[dependencies]\nserde = \"1\"\n[dev-dependencies]\ninsta = { version = \"1\" }\n";
        let findings = check(&file("crates/x/Cargo.toml", manifest));
        let lines: Vec<_> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [0, 2, 4]);
    }

    #[test]
    fn the_workspace_manifest_is_not_a_member() {
        assert_eq!(check(&file("Cargo.toml", "[workspace]\n")), []);
        assert_eq!(
            check(&file(
                "fuzz/Cargo.toml",
                "[workspace]\n[dependencies]\nx = \"1\"\n"
            )),
            []
        );
    }
}
