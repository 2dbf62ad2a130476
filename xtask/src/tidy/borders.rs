//! Which crate may depend on which, and which crates may name a library at all.
//!
//! This table is the architecture. A new edge is a decision: change the table and ARCHITECTURE.md in
//! the same commit. Development dependencies are free, because tests may assemble anything.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::BrokenRule;
use crate::process;
use crate::repo::Repo;

/// A crate and the crates of ours that it may build on.
const EDGES: &[(&str, &[&str])] = &[
    ("nimbus-core", &[]),
    ("nimbus-disk", &["nimbus-core"]),
    ("nimbus-document", &["nimbus-core"]),
    ("nimbus-config", &["nimbus-core", "nimbus-document"]),
    ("nimbus-telemetry", &["nimbus-core"]),
    ("nimbus-engine-files", &[]),
    ("nimbus-engine-model", &["nimbus-core"]),
    (
        "nimbus-engine-sandbox",
        &["nimbus-core", "nimbus-engine-files"],
    ),
    ("nimbus-engine-install", &["nimbus-core"]),
    ("nimbus-engine-process", &[]),
    ("nimbus-engine-proto", &[]),
    ("nimbus-engine-transpile", &["nimbus-disk"]),
    (
        "nimbus-engine-wire",
        &["nimbus-engine-model", "nimbus-engine-proto"],
    ),
    (
        "nimbus-engine-ports",
        &["nimbus-core", "nimbus-engine-model"],
    ),
    (
        "nimbus-engine-display",
        &["nimbus-core", "nimbus-engine-model", "nimbus-engine-ports"],
    ),
    (
        "nimbus-engine-deploy",
        &["nimbus-core", "nimbus-engine-model", "nimbus-engine-ports"],
    ),
    ("nimbus-engine-monitor", ON_THE_WIRE),
    (
        "nimbus-engine-plugin",
        &[
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-engine-files",
            "nimbus-engine-model",
            "nimbus-engine-ports",
            "nimbus-engine-process",
            "nimbus-engine-proto",
            "nimbus-engine-sandbox",
            "nimbus-engine-wire",
        ],
    ),
    (
        "nimbus-engine-serve",
        &[
            "nimbus-engine-model",
            "nimbus-engine-ports",
            "nimbus-engine-proto",
            "nimbus-engine-wire",
        ],
    ),
    // A launcher serves the monitor that its program talks to.
    (
        "nimbus-engine-language",
        &[
            "nimbus-core",
            "nimbus-engine-files",
            "nimbus-engine-model",
            "nimbus-engine-monitor",
            "nimbus-engine-ports",
            "nimbus-engine-process",
            "nimbus-engine-sandbox",
            "nimbus-engine-transpile",
        ],
    ),
    ("nimbus-aws", &["nimbus-core"]),
    (
        "nimbus-engine-backend",
        &[
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-engine-files",
            "nimbus-engine-model",
            "nimbus-engine-ports",
            "nimbus-aws",
        ],
    ),
    (
        "nimbus-rehearsal",
        &[
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-engine-model",
            "nimbus-engine-ports",
        ],
    ),
    (
        "nimbus-engine-testing",
        &[
            "nimbus-core",
            "nimbus-engine-deploy",
            "nimbus-engine-model",
            "nimbus-engine-monitor",
            "nimbus-engine-ports",
        ],
    ),
    (
        "nimbus-engine-operations",
        &[
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-engine-backend",
            "nimbus-engine-deploy",
            "nimbus-engine-display",
            "nimbus-engine-language",
            "nimbus-engine-files",
            "nimbus-engine-model",
            "nimbus-engine-monitor",
            "nimbus-engine-plugin",
            "nimbus-engine-ports",
            "nimbus-engine-process",
            "nimbus-engine-sandbox",
            "nimbus-engine-serve",
            "nimbus-telemetry",
        ],
    ),
    ("nimbus-orchestrator", &["nimbus-core", "nimbus-document"]),
    (
        "nimbus-workspace",
        &[
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-engine-files",
            "nimbus-orchestrator",
        ],
    ),
    // A run's use cases know no files, no engine and no database: these come through their ports.
    (
        "nimbus-runs",
        &[
            "nimbus-core",
            "nimbus-document",
            "nimbus-orchestrator",
            "nimbus-telemetry",
        ],
    ),
    (
        "nimbus-local",
        &[
            "nimbus-aws",
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-engine-backend",
            "nimbus-engine-files",
            "nimbus-engine-model",
            "nimbus-engine-operations",
            "nimbus-engine-ports",
            "nimbus-engine-process",
            "nimbus-orchestrator",
            "nimbus-rehearsal",
            "nimbus-runs",
            "nimbus-workspace",
        ],
    ),
    (
        "nimbus-runs-testing",
        &[
            "nimbus-core",
            "nimbus-document",
            "nimbus-orchestrator",
            "nimbus-runs",
        ],
    ),
    // Workflows know no engine: the runtimes do, each one.
    ("nimbus-workflows", &["nimbus-core"]),
    (
        "nimbus-workflows-embedded",
        &["nimbus-core", "nimbus-workflows"],
    ),
    (
        "nimbus-workflows-testing",
        &["nimbus-core", "nimbus-workflows"],
    ),
    ("nimbus-library", &[]),
    ("nimbus-control-audit", &["nimbus-core"]),
    ("nimbus-control-auth", &["nimbus-core"]),
    ("nimbus-control-metrics", &[]),
    ("nimbus-control-vault", &["nimbus-core"]),
    ("nimbus-control-postgres", &["nimbus-core"]),
    ("nimbus-control-console", &[]),
    (
        "nimbus-control-store",
        &[
            "nimbus-control-audit",
            "nimbus-control-metrics",
            "nimbus-control-vault",
            "nimbus-core",
            "nimbus-disk",
        ],
    ),
    // Asks for runs and knows their requests; carries none out.
    ("nimbus-control-wire", &[]),
    (
        "nimbus-control-app",
        &[
            "nimbus-control-audit",
            "nimbus-control-auth",
            "nimbus-control-store",
            "nimbus-control-vault",
            "nimbus-control-wire",
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-library",
            "nimbus-orchestrator",
            "nimbus-runs",
        ],
    ),
    // The ports of runs on the database, and the workers of a server.
    (
        "nimbus-control-runs",
        &[
            "nimbus-control-metrics",
            "nimbus-control-store",
            "nimbus-control-vault",
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-engine-backend",
            "nimbus-engine-operations",
            "nimbus-library",
            "nimbus-local",
            "nimbus-orchestrator",
            "nimbus-rehearsal",
            "nimbus-runs",
            "nimbus-telemetry",
            "nimbus-workspace",
        ],
    ),
    // Types of requests and answers, for servers and clients.
    (
        "nimbus-control-api",
        &[
            "nimbus-control-app",
            "nimbus-control-auth",
            "nimbus-control-metrics",
            "nimbus-control-wire",
            "nimbus-core",
        ],
    ),
    (
        "nimbus-control-server",
        &[
            "nimbus-control-api",
            "nimbus-control-app",
            "nimbus-control-console",
            "nimbus-control-metrics",
            "nimbus-control-postgres",
            "nimbus-control-runs",
            "nimbus-control-store",
            "nimbus-core",
            "nimbus-disk",
            "nimbus-library",
        ],
    ),
    ("nimbus-control-testing", ON_THE_DATABASE),
    (
        "nimbus-control-client",
        &["nimbus-control-wire", "nimbus-core", "nimbus-disk"],
    ),
    (
        "nimbus-cli",
        &[
            "nimbus-aws",
            "nimbus-config",
            "nimbus-control-client",
            "nimbus-control-server",
            "nimbus-control-store",
            "nimbus-control-wire",
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-engine-backend",
            "nimbus-engine-display",
            "nimbus-engine-install",
            "nimbus-engine-model",
            "nimbus-engine-operations",
            "nimbus-engine-ports",
            "nimbus-engine-sandbox",
            "nimbus-library",
            "nimbus-local",
            "nimbus-orchestrator",
            "nimbus-rehearsal",
            "nimbus-runs",
            "nimbus-telemetry",
            "nimbus-workspace",
        ],
    ),
    // A test can run only programs of its own package.
    ("nimbus-engine-parity", &["nimbus-cli"]),
    ("nimbus-test-tools", &[]),
    ("xtask", &[]),
];

/// What a crate that runs a database may build on.
const ON_THE_DATABASE: &[&str] = &[
    "nimbus-control-postgres",
    "nimbus-control-store",
    "nimbus-core",
];

/// What a crate that talks to programs or plugins may build on.
const ON_THE_WIRE: &[&str] = &[
    "nimbus-core",
    "nimbus-document",
    "nimbus-engine-files",
    "nimbus-engine-model",
    "nimbus-engine-ports",
    "nimbus-engine-proto",
    "nimbus-engine-wire",
];

/// A library, the crates that may name it, and why nobody else may.
const LIBRARIES: &[(&str, &[&str], &str)] = &[
    (
        "tonic",
        WIRE,
        "gRPC is known only to the crates that speak to programs and plugins",
    ),
    (
        "prost",
        WIRE,
        "protocol messages stay in the crates that speak to programs and plugins",
    ),
    (
        "prost-types",
        WIRE,
        "protocol messages stay in the crates that speak to programs and plugins",
    ),
    (
        "object_store",
        &["nimbus-engine-backend", "nimbus-control-app"],
        "storage is reached through the backend crate, and by the audit trail's archive",
    ),
    (
        "clap",
        &["nimbus-cli", "xtask"],
        "only the command line knows about flags",
    ),
    (
        "miette",
        &["nimbus-cli"],
        "errors are rendered at the edge; inside they are typed",
    ),
    ("indicatif", &["nimbus-cli"], "only the command line draws"),
    (
        "sqlx",
        &[
            "nimbus-control-store",
            "nimbus-control-testing",
            "nimbus-workflows-embedded",
        ],
        "every query is in the store, where a transaction belongs to one tenant; workflows have a schema of their own",
    ),
    (
        "dbos",
        &["nimbus-workflows-embedded"],
        "only the adapters name a workflow engine",
    ),
    (
        "prometheus-client",
        &["nimbus-control-metrics"],
        "what is counted, and under which labels, is decided in one place",
    ),
    (
        "axum",
        &["nimbus-control-api", "nimbus-control-server"],
        "HTTP is known only to the crates that serve it",
    ),
    (
        "reqwest",
        &[
            "nimbus-control-client",
            "nimbus-engine-install",
            "nimbus-aws",
            "nimbus-engine-operations",
        ],
        "only the AWS client, assets at web addresses, downloads of plugins and the client of our own API ask over HTTP",
    ),
];

const WIRE: &[&str] = &[
    "nimbus-engine-proto",
    "nimbus-engine-wire",
    "nimbus-engine-monitor",
    "nimbus-engine-plugin",
    "nimbus-engine-language",
    "nimbus-engine-serve",
];

/// A workspace crate and everything it names outside its tests.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) manifest: String,
    pub(super) depends_on: BTreeSet<String>,
}

/// The map in ARCHITECTURE.md names every crate.
pub(super) fn check_map(packages: &[Package], architecture: &str) -> Vec<BrokenRule> {
    packages
        .iter()
        .filter(|package| {
            let folder = package.manifest.trim_end_matches("/Cargo.toml");
            !architecture.contains(&format!("`{folder}`"))
        })
        .map(|package| {
            BrokenRule::file(
                "ARCHITECTURE.md",
                format!(
                    "the map does not name {}",
                    package.manifest.trim_end_matches("/Cargo.toml")
                ),
                "add a line that says what the crate is",
            )
        })
        .collect()
}

pub(super) fn check(packages: &[Package]) -> Vec<BrokenRule> {
    packages
        .iter()
        .flat_map(|package| own_edges(package).into_iter().chain(libraries(package)))
        .collect()
}

fn own_edges(package: &Package) -> Vec<BrokenRule> {
    let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == package.name) else {
        return vec![BrokenRule::file(
            &package.manifest,
            format!(
                "the crate {} has no place in the dependency table",
                package.name
            ),
            "add it to EDGES in xtask/src/tidy/borders.rs and to the map in ARCHITECTURE.md",
        )];
    };
    let ours = |name: &&String| EDGES.iter().any(|(own, _)| own == name);
    package
        .depends_on
        .iter()
        .filter(ours)
        .filter(|name| !allowed.contains(&name.as_str()))
        .map(|name| {
            BrokenRule::file(
                &package.manifest,
                format!("{} may not depend on {name}", package.name),
                "depend on a trait in nimbus-engine-ports, or argue the new edge in docs/adr",
            )
        })
        .collect()
}

fn libraries(package: &Package) -> Vec<BrokenRule> {
    LIBRARIES
        .iter()
        .filter(|(library, users, _)| {
            package.depends_on.contains(*library) && !users.contains(&package.name.as_str())
        })
        .map(|(library, _, why)| {
            BrokenRule::file(
                &package.manifest,
                format!("{} may not name {library}: {why}", package.name),
                "put the call behind a trait that an allowed crate implements",
            )
        })
        .collect()
}

/// The crates of the workspace as cargo sees them.
pub(super) fn packages(repo: &Repo) -> Result<Vec<Package>> {
    let text = process::capture(
        Command::new("cargo")
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

    fn package(name: &str, depends_on: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            manifest: format!("{name}/Cargo.toml"),
            depends_on: depends_on.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn allowed_edges_pass() {
        let packages = [
            package("nimbus-engine-deploy", &["nimbus-engine-ports", "serde"]),
            package("nimbus-engine-plugin", &["nimbus-engine-proto", "tonic"]),
        ];
        assert_eq!(check(&packages), []);
    }

    #[test]
    fn an_edge_that_points_upwards_is_found() {
        let findings = check(&[package("nimbus-engine-deploy", &["nimbus-engine-plugin"])]);
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0]
                .what
                .contains("may not depend on nimbus-engine-plugin")
        );
    }

    #[test]
    fn a_library_outside_its_crates_is_found() {
        for (name, library) in [
            ("nimbus-engine-deploy", "tonic"),
            ("nimbus-engine-model", "sqlx"),
            ("nimbus-engine-ports", "reqwest"),
            ("nimbus-engine-operations", "clap"),
        ] {
            let findings = check(&[package(name, &[library])]);
            assert_eq!(findings.len(), 1, "{name} {library}");
        }
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        let findings = check(&[package("nimbus-new", &[])]);
        assert!(findings[0].what.contains("no place"), "{findings:?}");
    }

    #[test]
    fn a_crate_that_the_map_lacks_is_found() {
        let packages = [package("a", &[]), package("b", &[])];
        let findings = check_map(&packages, "| `a` | does a |");
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].what, "the map does not name b");
    }

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

    #[test]
    fn the_table_itself_has_no_cycle_and_no_stranger() {
        for (position, (name, allowed)) in EDGES.iter().enumerate() {
            for edge in *allowed {
                let target = EDGES.iter().position(|(own, _)| own == edge);
                assert!(
                    target.is_some_and(|target| target < position),
                    "{name} -> {edge}"
                );
            }
        }
    }
}
