//! Which crate may depend on which; which crates may name a library at all is in `libraries`.
//!
//! This table is the architecture. A new edge is a decision: change the table and ARCHITECTURE.md in
//! the same commit. Development dependencies are free, because tests may assemble anything.

mod libraries;
mod metadata;

use std::collections::BTreeSet;

use super::BrokenRule;

pub(super) use metadata::packages;

/// A crate and the crates of ours that it may build on.
const EDGES: &[(&str, &[&str])] = &[
    ("nimbus-core", &[]),
    ("nimbus-disk", &["nimbus-core"]),
    ("nimbus-document", &["nimbus-core"]),
    ("nimbus-config", &["nimbus-core", "nimbus-document"]),
    ("nimbus-outbound", &["nimbus-core"]),
    ("nimbus-telemetry", &["nimbus-core"]),
    ("nimbus-engine-files", &[]),
    ("nimbus-engine-model", &["nimbus-core"]),
    (
        "nimbus-engine-sandbox",
        &["nimbus-core", "nimbus-engine-files"],
    ),
    ("nimbus-engine-install", &["nimbus-core", "nimbus-disk"]),
    ("nimbus-engine-process", &[]),
    ("nimbus-engine-proto", &[]),
    (
        "nimbus-engine-transpile",
        &["nimbus-disk", "nimbus-engine-files"],
    ),
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
            "nimbus-disk",
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
    // Decides what resolvers answer; who keeps leases is somebody else.
    ("nimbus-resolvers", &["nimbus-core"]),
    (
        "nimbus-orchestrator",
        &["nimbus-core", "nimbus-document", "nimbus-resolvers"],
    ),
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
            "nimbus-resolvers",
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
            "nimbus-resolvers",
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
            "nimbus-resolvers",
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
        "nimbus-workflows-temporal",
        &["nimbus-core", "nimbus-workflows"],
    ),
    (
        "nimbus-workflows-testing",
        &["nimbus-core", "nimbus-workflows"],
    ),
    ("nimbus-approvals", &["nimbus-core"]),
    ("nimbus-library", &[]),
    ("nimbus-catalog", &["nimbus-core", "nimbus-resolvers"]),
    (
        "nimbus-catalog-programs",
        &[
            "nimbus-catalog",
            "nimbus-engine-process",
            "nimbus-engine-transpile",
        ],
    ),
    ("nimbus-control-audit", &["nimbus-core"]),
    ("nimbus-control-auth", &["nimbus-core"]),
    // Decides what items are and say; the store keeps them.
    (
        "nimbus-control-cmdb",
        &["nimbus-control-audit", "nimbus-core"],
    ),
    ("nimbus-control-metrics", &[]),
    ("nimbus-control-events", &["nimbus-core"]),
    // Names no engine: what it does outside are steps over ports.
    ("nimbus-control-flows", &["nimbus-core", "nimbus-workflows"]),
    (
        "nimbus-control-valkey",
        &["nimbus-control-events", "nimbus-core"],
    ),
    (
        "nimbus-control-delivery",
        &["nimbus-core", "nimbus-outbound"],
    ),
    ("nimbus-control-vault", &["nimbus-core"]),
    ("nimbus-control-postgres", &["nimbus-core", "nimbus-disk"]),
    ("nimbus-control-console", &[]),
    (
        "nimbus-control-store",
        &[
            "nimbus-control-audit",
            "nimbus-control-cmdb",
            "nimbus-control-events",
            "nimbus-control-metrics",
            "nimbus-control-vault",
            "nimbus-core",
            "nimbus-disk",
            "nimbus-resolvers",
        ],
    ),
    // Asks for runs and knows their requests; carries none out.
    ("nimbus-control-wire", &[]),
    (
        "nimbus-control-app",
        &[
            "nimbus-approvals",
            "nimbus-catalog",
            "nimbus-control-audit",
            "nimbus-control-auth",
            "nimbus-control-delivery",
            "nimbus-control-cmdb",
            "nimbus-control-events",
            "nimbus-control-flows",
            "nimbus-control-store",
            "nimbus-control-vault",
            "nimbus-control-wire",
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-library",
            "nimbus-orchestrator",
            "nimbus-outbound",
            "nimbus-resolvers",
            "nimbus-runs",
            "nimbus-workflows",
        ],
    ),
    // The ports of runs on the database, and the workers of a server.
    (
        "nimbus-control-runs",
        &[
            "nimbus-catalog",
            "nimbus-control-cmdb",
            "nimbus-control-metrics",
            "nimbus-control-store",
            "nimbus-control-vault",
            "nimbus-control-wire",
            "nimbus-core",
            "nimbus-disk",
            "nimbus-document",
            "nimbus-engine-backend",
            "nimbus-engine-model",
            "nimbus-engine-operations",
            "nimbus-library",
            "nimbus-local",
            "nimbus-orchestrator",
            "nimbus-resolvers",
            "nimbus-runs",
            "nimbus-telemetry",
            "nimbus-workspace",
        ],
    ),
    // Types of requests and answers, for servers and clients.
    (
        "nimbus-control-graphql",
        &[
            "nimbus-control-app",
            "nimbus-control-auth",
            "nimbus-control-wire",
            "nimbus-core",
        ],
    ),
    (
        "nimbus-control-api",
        &[
            "nimbus-control-app",
            "nimbus-control-auth",
            "nimbus-control-graphql",
            "nimbus-control-metrics",
            "nimbus-control-wire",
            "nimbus-core",
        ],
    ),
    (
        "nimbus-control-server",
        &[
            "nimbus-catalog-programs",
            "nimbus-control-api",
            "nimbus-control-app",
            "nimbus-control-console",
            "nimbus-control-flows",
            "nimbus-control-metrics",
            "nimbus-control-postgres",
            "nimbus-control-runs",
            "nimbus-control-store",
            "nimbus-control-valkey",
            "nimbus-control-wire",
            "nimbus-core",
            "nimbus-disk",
            "nimbus-library",
            "nimbus-workflows",
            "nimbus-workflows-embedded",
            "nimbus-workflows-temporal",
        ],
    ),
    ("nimbus-control-testing", ON_THE_DATABASE),
    (
        "nimbus-control-client",
        &["nimbus-control-wire", "nimbus-core", "nimbus-disk"],
    ),
    // Runs of a server, on another machine: no database, only the API.
    (
        "nimbus-control-worker",
        &[
            "nimbus-control-client",
            "nimbus-control-metrics",
            "nimbus-control-runs",
            "nimbus-control-store",
            "nimbus-control-wire",
            "nimbus-core",
        ],
    ),
    (
        "nimbus-cli",
        &[
            "nimbus-aws",
            "nimbus-catalog",
            "nimbus-config",
            "nimbus-control-client",
            "nimbus-control-server",
            "nimbus-control-store",
            "nimbus-control-wire",
            "nimbus-control-worker",
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
        .flat_map(|package| {
            let own = own_edges(package).into_iter();
            own.chain(libraries::check(package))
        })
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

#[cfg(test)]
mod tests;
