//! Deployments that stop half way, in several stacks at once, and what is left of them.

use std::collections::BTreeSet;
use std::fs;

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::place::{DEPLOY_AND_HOLD, ID, LibrarySite, QUICK};
use crate::steps::{ResourceSteps, Statuses};

/// Every way of ending half way: refused, made but not ready, refused after much was made.
const ORDERS: &str = "orders:
- {on: create, name: services-eks-cluster, do: fail, message: 'ResourceLimitExceeded: no more'}
- {on: create, name: database-rds-postgres, do: half, message: not ready}
- {on: create, name: services-ecs-internal-https-listener, do: fail, message: 'NotFound: none'}
- {on: create, name: compute-ec2-group, do: fail, message: 'AccessDenied: no'}
- {on: create, name: authentication-web-client, do: fail, message: 'AccessDenied: no'}
";

const FAILED: [&str; 5] = [
    "authentication",
    "compute-ec2",
    "database-rds",
    "services-ecs",
    "services-eks",
];

fn fails_half_way(place: &LibrarySite) -> Statuses {
    let orders = place.path("orders.yaml");
    fs::write(&orders, ORDERS).unwrap();
    let deploy = [
        "deploy",
        ID,
        "--environment",
        "dev",
        "--rehearse",
        "--json",
        "--on-failure",
        "continue",
        "--orders",
        orders.to_str().unwrap(),
    ];
    let (code, stdout, stderr) = place.run(&[&deploy[..], QUICK].concat());
    assert_ne!(code, 0, "{stdout}\n{stderr}");
    Statuses::read(&stdout)
}

#[test]
fn five_stacks_that_are_half_made_are_destroyed_in_order_and_leave_nothing() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "default");
    let ended = fails_half_way(&place);
    assert_eq!(
        ended.with("failed"),
        BTreeSet::from(FAILED),
        "{:?}",
        ended.0
    );
    assert_eq!(ended.with("succeeded").len(), 7, "{:?}", ended.0);
    let needs = place.needs("dev");
    assert!(needs.len() > 180, "much is there, not {}", needs.len());

    let down = place.events("destroy", "dev", &["--yes"]);
    assert_eq!(place.recorded("dev"), 0);
    assert_eq!(place.objects("dev"), BTreeSet::new());
    let steps = ResourceSteps::read(&down);
    steps.assert_deleted_in_order(&needs);
    for user in FAILED {
        for needed in ["security", "network"] {
            steps.assert_stack_before(user, needed);
        }
    }

    // And the other way round: what is half made is finished by the next deployment.
    fails_half_way(&place);
    let finished = place.every_stack("deploy", "dev", QUICK);
    assert!(finished.with("failed").is_empty(), "{:?}", finished.0);
    assert!(place.recorded("dev") > 250);
}

#[test]
fn a_destroy_that_stops_half_way_is_finished_by_the_next_one() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "data-platform");
    place.every_stack("deploy", "dev", QUICK);
    let whole = place.needs("dev");
    // In the middle of one stack, and at the end of another: each keeps what is left in its records.
    let orders = "orders:
- {on: delete, name: storage-data, do: fail, message: 'BucketNotEmpty: somebody writes'}
- {on: delete, name: database-rds-postgres, do: fail, message: 'InvalidDBInstanceState: it is backed up'}
";
    let file = place.path("orders.yaml");
    fs::write(&file, orders).unwrap();
    let destroy = [
        "destroy",
        ID,
        "--environment",
        "dev",
        "--rehearse",
        "--json",
        "--yes",
        "--orders",
        file.to_str().unwrap(),
    ];
    let (code, stdout, stderr) = place.run(&destroy);
    assert_ne!(code, 0, "{stdout}\n{stderr}");
    let left = place.needs("dev");
    assert!(!left.is_empty() && left.len() < whole.len());
    for name in ["::storage-data", "::database-rds-postgres"] {
        assert!(left.keys().any(|urn| urn.ends_with(name)), "{name} is lost");
    }
    // What they stand in is still there: nobody took the network away from under a database.
    let network = |urn: &&String| urn.contains("-network-dev::");
    assert_eq!(
        left.keys().filter(network).count(),
        whole.keys().filter(network).count()
    );

    place.every_stack("destroy", "dev", &["--yes"]);
    assert_eq!(place.recorded("dev"), 0);
    assert_eq!(place.objects("dev"), BTreeSet::new());
}

#[test]
fn what_is_half_made_can_be_destroyed() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "minimal");
    let program = place.path("cloud/stacks/security/src/index.ts");
    let whole = fs::read_to_string(&program).unwrap();
    let half = whole.replacen(
        "export const albSecurityGroupId",
        "if (config.databasePort > 0) {\n  throw new Error(\"half way\");\n}\nexport const albSecurityGroupId",
        1,
    );
    assert_ne!(half, whole);
    fs::write(&program, half).unwrap();
    let (code, stdout, stderr) = place.run(&[DEPLOY_AND_HOLD, QUICK].concat());
    assert_ne!(code, 0, "{stdout}\n{stderr}");
    let made = place.recorded("dev");
    assert!(made > 45, "network whole and security in part, not {made}");
    place.every_stack("destroy", "dev", &["--yes"]);
    assert_eq!(place.recorded("dev"), 0);
    // And the other way round: what is half made can be finished.
    place.run(&[DEPLOY_AND_HOLD, QUICK].concat());
    fs::write(&program, whole).unwrap();
    let finished = place.every_stack("deploy", "dev", QUICK);
    assert!(finished.with("failed").is_empty(), "{:?}", finished.0);
    assert!(place.recorded("dev") > made);
}
