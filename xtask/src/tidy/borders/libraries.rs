//! Which crates may name a library at all.
//!
//! A library that only a few crates know can be replaced there. A new user of one is a decision: change the table and
//! say why in the same commit.

use super::{BrokenRule, Package};

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
    ("dbos", &["nimbus-workflows-embedded"], ONLY_ADAPTERS),
    ("temporalio-client", TEMPORAL, ONLY_ADAPTERS),
    ("temporalio-common", TEMPORAL, ONLY_ADAPTERS),
    ("temporalio-macros", TEMPORAL, ONLY_ADAPTERS),
    ("temporalio-sdk", TEMPORAL, ONLY_ADAPTERS),
    ("temporalio-sdk-core", TEMPORAL, ONLY_ADAPTERS),
    ("temporalio-workflow", TEMPORAL, ONLY_ADAPTERS),
    (
        "cel",
        &["nimbus-catalog"],
        "the library has no limits; the crate that counts before it evaluates is the only one to call it",
    ),
    (
        "prometheus-client",
        &["nimbus-control-metrics"],
        "what is counted, and under which labels, is decided in one place",
    ),
    (
        "redis",
        &["nimbus-control-valkey"],
        "what stands between servers is behind a port",
    ),
    (
        "lettre",
        &["nimbus-control-delivery"],
        "mail is sent in one place",
    ),
    (
        "socketioxide",
        &["nimbus-control-api"],
        "a protocol is known only to the crate that serves it",
    ),
    (
        "async-graphql",
        &["nimbus-control-graphql"],
        "GraphQL is known only to the crate that has its schema",
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
            "nimbus-outbound",
        ],
        "only the AWS client, assets at web addresses, downloads of plugins, the client of our own API and calls to addresses that somebody gave ask over HTTP",
    ),
];

const TEMPORAL: &[&str] = &["nimbus-workflows-temporal"];
const ONLY_ADAPTERS: &str = "only the adapters name a workflow engine";

const WIRE: &[&str] = &[
    "nimbus-engine-proto",
    "nimbus-engine-wire",
    "nimbus-engine-monitor",
    "nimbus-engine-plugin",
    "nimbus-engine-language",
    "nimbus-engine-serve",
];

pub(super) fn check(package: &Package) -> Vec<BrokenRule> {
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
