//! Databases of every kind as a running production changes them, and what is left of an account.

use std::collections::BTreeSet;
use std::path::Path;

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::Value;

use crate::place::{ID, LibrarySite, QUICK};
use crate::stacks::exported;
use crate::steps::{ResourceSteps, STATEFUL, Statuses};

const STACK: &str = "database-rds";
const NO_RESTORE: &str = "restoreFromSnapshot: \"\"";
const FROM_LAST: &str = "restoreFromSnapshot: \"last\"";

/// Production of `data-platform`, with some settings changed before it is first deployed.
fn production(library: &Path, edits: &[(&str, &str, &str)]) -> LibrarySite {
    let place = LibrarySite::new(library, "data-platform");
    place.ok(&["enable-environment", ID, "prod"]);
    for (stack, from, to) in edits {
        place.edit_stack(stack, "prod", &[(*from, *to)]);
    }
    deploys(&place, "prod");
    place
}

/// Deploys and returns what was lost that holds data.
fn deploys(place: &LibrarySite, environment: &str) -> BTreeSet<String> {
    let events = place.events("deploy", environment, QUICK);
    let ended = Statuses::read(&events);
    assert!(ended.with("failed").is_empty(), "{:?}", ended.0);
    ResourceSteps::read(&events).losses(STATEFUL)
}

/// Servers that the simulated cloud has.
fn servers(place: &LibrarySite, environment: &str) -> BTreeSet<String> {
    let server = |one: &String| one.contains(":Instance\"") || one.contains("rds/cluster:");
    let objects = place.objects(environment).into_iter();
    objects.filter(server).collect()
}

/// Deploys what must fail, and leaves it as it is; returns what was said.
fn fails(place: &LibrarySite, environment: &str, more: &[&str]) -> String {
    let deploy = [
        "deploy",
        ID,
        "--environment",
        environment,
        "--rehearse",
        "--json",
    ];
    let gate = ["--skip-gate", "tried alone", "--on-failure", "hold"];
    let (code, stdout, stderr) = place.run(&[&deploy[..], &gate[..], QUICK, more].concat());
    assert_ne!(code, 0, "{stdout}\n{stderr}");
    format!("{stdout}{stderr}")
}

/// What production recorded of a resource.
fn recorded(place: &LibrarySite, name: &str, kind: &str) -> Value {
    let mut resources = place.resources("prod").into_iter();
    let found = resources.find(|one| {
        let has = |key: &str, end: &str| one[key].as_str().is_some_and(|text| text.ends_with(end));
        has("urn", &format!("::{name}")) && has("type", kind)
    });
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// The secret that `secrets` made for applications is the one that is rotated, by the function that
/// made the user at the beginning.
fn assert_credentials_are_made_and_rotated(place: &LibrarySite) {
    let function = recorded(place, "database-rds-credentials", ":Function");
    let rotation = recorded(
        place,
        "database-rds-credentials-rotation",
        ":SecretRotation",
    );
    assert_eq!(
        rotation["inputs"]["secretId"],
        exported(place, "prod")["secrets"]["databaseSecretArn"]
    );
    assert!(function["outputs"]["arn"].is_string(), "{function}");
    assert_eq!(
        rotation["inputs"]["rotationLambdaArn"],
        function["outputs"]["arn"]
    );
    let prepared = recorded(place, "database-rds-credentials-prepared", ":Invocation");
    assert_eq!(
        prepared["inputs"]["functionName"],
        function["inputs"]["name"]
    );
}

/// Settings that are refused: no server is made or goes.
fn refuses(place: &LibrarySite, environment: &str, edits: &[(&str, &str)], reason: &str) {
    let before = servers(place, environment);
    place.edit_stack(STACK, environment, edits);
    let said = fails(place, environment, &[]);
    assert!(said.contains(reason), "{edits:?}: {said}");
    assert_eq!(servers(place, environment), before, "{edits:?}");
}

/// The same, and taking the settings back leaves nothing to do with a server.
fn refuses_and_goes_on(
    place: &LibrarySite,
    environment: &str,
    edits: &[(&str, &str)],
    reason: &str,
) {
    refuses(place, environment, edits, reason);
    let back: Vec<(&str, &str)> = edits.iter().map(|(from, to)| (*to, *from)).collect();
    place.edit_stack(STACK, environment, &back);
    let lost = deploys(place, environment);
    assert_eq!(lost, BTreeSet::new(), "{edits:?}, taken back");
}

#[test]
fn aurora_is_upgraded_in_place_and_never_becomes_another_database() {
    let library = tool_or_skip!(Tool::Library);
    let place = production(&library, &[(STACK, "kind: instance", "kind: aurora")]);
    for (from, to, reason) in [
        (
            "kind: aurora",
            "kind: instance",
            "the database is of kind aurora",
        ),
        (
            "masterUsername: nimbus_admin",
            "masterUsername: postgres",
            "the database has the masterUsername nimbus_admin",
        ),
        (
            "databaseName: app",
            "databaseName: shop",
            "the database has the databaseName app",
        ),
        (NO_RESTORE, FROM_LAST, "is there already and began empty"),
    ] {
        refuses_and_goes_on(&place, "prod", &[(from, to)], reason);
    }
    let nothing = BTreeSet::new();
    for edits in [
        &[("engineVersion: \"17.6\"", "engineVersion: \"17.7\"")][..],
        &[
            ("allowMajorUpgrade: false", "allowMajorUpgrade: true"),
            ("engineVersion: \"17.7\"", "engineVersion: \"18.1\""),
        ],
        &[("auroraClass: db.r6g.large", "auroraClass: db.serverless")],
        &[("readReplicas: 0", "readReplicas: 3")],
    ] {
        place.edit_stack(STACK, "prod", edits);
        assert_eq!(deploys(&place, "prod"), nothing, "{edits:?}");
    }
    let fourth = "\"d1lib-prod-database-rds-aurora-3\"";
    assert!(place.objects("prod").iter().any(|one| one.contains(fourth)));
}

#[test]
fn another_kind_begins_with_a_restore_and_one_that_failed_is_forgotten() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "data-platform");
    deploys(&place, "dev");
    let instance = servers(&place, "dev");
    let (one, cluster) = ("kind: instance", "kind: aurora");
    refuses(
        &place,
        "dev",
        &[(one, cluster)],
        "the database is of kind instance",
    );

    // As the refusal says, but with a snapshot that is not there: the first database stays.
    let mistyped = "restoreFromSnapshot: \"lsat\"";
    place.edit_stack(STACK, "dev", &[(NO_RESTORE, mistyped)]);
    let order = "on: create, name: database-rds-aurora, do: fail, message: no snapshot lsat";
    let said = fails(&place, "dev", &["--order", order]);
    assert!(said.contains("no snapshot lsat"), "{said}");
    assert_eq!(servers(&place, "dev"), instance);
    // There is a way back, and a way on.
    let back = [(cluster, one), (mistyped, NO_RESTORE)];
    place.edit_stack(STACK, "dev", &back);
    assert_eq!(deploys(&place, "dev"), BTreeSet::new(), "the way back");
    place.edit_stack(STACK, "dev", &[(one, cluster), (NO_RESTORE, mistyped)]);
    fails(&place, "dev", &["--order", order]);
    place.edit_stack(STACK, "dev", &[(mistyped, FROM_LAST)]);
    let gone = format!("delete {STACK}-postgres");
    assert_eq!(deploys(&place, "dev"), BTreeSet::from([gone]));

    let aurora = servers(&place, "dev");
    assert!(aurora.is_disjoint(&instance), "{aurora:?}");
    let edits = [(cluster, one), (FROM_LAST, NO_RESTORE)];
    refuses_and_goes_on(&place, "dev", &edits, "the database is of kind aurora");
    place.edit_stack(STACK, "dev", &[(FROM_LAST, NO_RESTORE)]);
    assert_eq!(
        deploys(&place, "dev"),
        BTreeSet::new(),
        "the setting may go"
    );
    assert_eq!(servers(&place, "dev"), aurora);
}

#[test]
fn replicas_come_follow_an_upgrade_and_go() {
    let library = tool_or_skip!(Tool::Library);
    let place = production(&library, &[]);
    let nothing = BTreeSet::new();
    // RDS keeps the master's password, and no state ever has one.
    let server = recorded(&place, "database-rds-postgres", "rds/instance:Instance");
    assert_eq!(server["inputs"]["manageMasterUserPassword"], true);
    assert!(server["inputs"]["password"].is_null(), "{server}");
    assert_credentials_are_made_and_rotated(&place);
    place.edit_stack(STACK, "prod", &[("readReplicas: 0", "readReplicas: 1")]);
    assert_eq!(deploys(&place, "prod"), nothing, "the first replica");
    // With a replica there is a first one, encrypted, which is rotated away at once.
    let server = recorded(&place, "database-rds-postgres", "rds/instance:Instance");
    assert!(
        server["inputs"]["password"]["ciphertext"].is_string(),
        "{server}"
    );
    let master = recorded(&place, "database-rds-master-rotation", ":SecretRotation");
    assert_eq!(master["inputs"]["rotateImmediately"], true);
    assert!(
        master["inputs"]["rotationLambdaArn"].is_string(),
        "{master}"
    );
    assert_credentials_are_made_and_rotated(&place);
    let edits = [
        ("allowMajorUpgrade: false", "allowMajorUpgrade: true"),
        ("engineVersion: \"17.6\"", "engineVersion: \"18.1\""),
    ];
    place.edit_stack(STACK, "prod", &edits);
    assert_eq!(deploys(&place, "prod"), nothing, "another major version");
    place.edit_stack(STACK, "prod", &[("readReplicas: 1", "readReplicas: 0")]);
    let gone = ["replica-0", "master"].map(|name| format!("delete {STACK}-{name}"));
    assert_eq!(deploys(&place, "prod"), BTreeSet::from(gone));
}

#[test]
fn a_restored_database_stays_and_a_destroyed_baseline_leaves_the_account_protected() {
    let library = tool_or_skip!(Tool::Library);
    let baseline = (
        "security",
        "manageAccountBaseline: false",
        "manageAccountBaseline: true",
    );
    let unprotected = [
        baseline,
        (
            STACK,
            "deletionProtection: true",
            "deletionProtection: false",
        ),
        ("storage", "forceDestroy: false", "forceDestroy: true"),
    ];
    let place = production(&library, &unprotected);
    for stack in ["compute-lambda", STACK] {
        let destroy = ["destroy-stack", ID, stack, "--environment", "prod"];
        place.ok(&[&destroy[..], &["--rehearse", "--yes"]].concat());
    }
    place.edit_stack(STACK, "prod", &[(NO_RESTORE, FROM_LAST)]);
    deploys(&place, "prod");
    let again = place.every_stack("deploy", "prod", QUICK);
    assert_eq!(again.with("skipped").len(), 6, "{:?}", again.0);
    // Another kind is refused together with the end of the restore, and with the restore as it is.
    let other = ("kind: instance", "kind: aurora");
    for edits in [&[other, (FROM_LAST, NO_RESTORE)][..], &[other][..]] {
        refuses_and_goes_on(&place, "prod", edits, "the database is of kind instance");
    }
    place.edit_stack(STACK, "prod", &[(FROM_LAST, NO_RESTORE)]);
    assert_eq!(
        deploys(&place, "prod"),
        BTreeSet::new(),
        "the setting may go"
    );

    place.every_stack("destroy", "prod", &["--yes"]);
    assert_eq!(place.recorded("prod"), 0);
    let left = place.objects("prod");
    let has = |kind: &str| left.iter().any(|one| one.contains(kind));
    for kind in [
        ":AccountPublicAccessBlock\"",
        ":Trail\"",
        ":Recorder\"",
        ":RecorderStatus\"",
        ":DeliveryChannel\"",
        ":Detector\"",
        ":Analyzer\"",
        ":Bucket\"",
        ":BucketPolicy\"",
        ":RolePolicyAttachment\"",
    ] {
        assert!(has(kind), "{kind} is gone: {left:?}");
    }
    // Nothing that runs, costs by the hour or leads anywhere.
    for kind in [
        ":Vpc\"",
        ":Instance\"",
        ":Function\"",
        ":Topic\"",
        ":EventRule\"",
    ] {
        assert!(!has(kind), "{kind} is left: {left:?}");
    }
}
