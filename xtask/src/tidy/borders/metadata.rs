//! The crates of the workspace and what they name, as cargo sees them.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Package;
use crate::process;
use crate::repo::Repo;

/// The crates of the workspace as cargo sees them.
pub(in crate::tidy) fn packages(repo: &Repo) -> Result<Vec<Package>> {
    let text = process::capture(
        process::cargo()
            .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
            .current_dir(repo.root()),
    )?;
    parse(&text, &repo.root().to_string_lossy())
}

fn parse(metadata: &str, root: &str) -> Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct CargoMetadata {
        packages: Vec<CargoPackage>,
    }
    #[derive(Deserialize)]
    struct CargoPackage {
        name: String,
        manifest_path: String,
        dependencies: Vec<Dependency>,
    }
    #[derive(Deserialize)]
    struct Dependency {
        name: String,
        kind: Option<String>,
    }

    let metadata: CargoMetadata =
        serde_json::from_str(metadata).context("cargo metadata is not understood")?;
    Ok(metadata
        .packages
        .into_iter()
        .map(|package| Package {
            manifest: package
                .manifest_path
                .trim_start_matches(root)
                .trim_matches('/')
                .to_owned(),
            depends_on: package
                .dependencies
                .into_iter()
                .filter(|dependency| dependency.kind.as_deref() != Some("dev"))
                .map(|dependency| dependency.name)
                .collect(),
            name: package.name,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_may_depend_on_anything() {
        let metadata = r#"{"packages":[{"name":"nimbus-core","manifest_path":"/r/crates/core/Cargo.toml",
            "dependencies":[{"name":"tonic","kind":"dev"},{"name":"serde","kind":null},
                            {"name":"cc","kind":"build"}]}]}"#;
        let packages = parse(metadata, "/r").unwrap();
        assert_eq!(packages[0].manifest, "crates/core/Cargo.toml");
        assert_eq!(
            packages[0].depends_on.iter().collect::<Vec<_>>(),
            ["cc", "serde"]
        );
    }
}
