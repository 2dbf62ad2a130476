//! From the first deployment to the last destroy, in every environment.

use std::collections::BTreeSet;
use std::fs;

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::place::{ID, LibrarySite, QUICK};
use crate::stacks;
use crate::steps::{ResourceSteps, STATEFUL, Statuses};
use crate::upgrades;

/// A resource: its stack or name, and the end of its type.
type Named = (&'static str, &'static str);

/// Users and what they use, each with the end of its type.
const WAITS: &[(Named, Named)] = &[
    (
        (
            "services-eks-cluster-role-managed-4",
            ":RolePolicyAttachment",
        ),
        ("services-eks-cluster", ":Cluster"),
    ),
    (
        ("services-eks-cluster-role-policy", ":RolePolicy"),
        ("services-eks-cluster", ":Cluster"),
    ),
    (
        ("services-ecs-internal-access-logs-policy", ":BucketPolicy"),
        ("services-ecs-internal-load-balancer", ":LoadBalancer"),
    ),
    (
        ("compute-lambda-processor-role-policy", ":RolePolicy"),
        ("compute-lambda-processor", ":Function"),
    ),
    (
        ("database-rds-credentials-prepared", ":Invocation"),
        ("database-rds-proxy", ":Proxy"),
    ),
];

#[test]
fn everything_deploys_in_dev_and_a_change_runs_only_what_it_concerns() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "default");
    // Before anything is there: what one stack will give to another is unknown, and no mistake.
    let preview = [
        "preview",
        ID,
        "--environment",
        "dev",
        "--rehearse",
        "--json",
        "--save",
        "plan.json",
    ];
    let (code, stdout, stderr) = place.run(&[&preview[..], QUICK].concat());
    // It would change something.
    assert_eq!(code, 8, "{stdout}\n{stderr}");
    // Every stack is as its plan said, also those whose texts are made of what nobody knew.
    let planned = [QUICK, &["--plan", "plan.json"]].concat();
    let first = place.every_stack("deploy", "dev", &planned);
    assert_eq!(first.with("succeeded").len(), 16, "{:?}", first.0);
    assert!(place.recorded("dev") > 250);
    place.assert_account("dev", "111111111111");

    let second = place.every_stack("deploy", "dev", QUICK);
    assert_eq!(second.with("skipped").len(), 16, "{:?}", second.0);

    // A NAT gateway in every zone: of all stacks only monitoring asks which ones there are.
    place.edit_manifest(&[("natStrategy: single", "natStrategy: perZone")]);
    let third = place.every_stack("deploy", "dev", QUICK);
    let ran = BTreeSet::from(["monitoring", "network"]);
    assert_eq!(third.with("succeeded"), ran);
    assert_eq!(third.with("skipped").len(), 14, "{:?}", third.0);

    // Versions, sizes, zones and names change: nothing that holds data is replaced.
    place.edit_manifest(&[
        ("kubernetesVersion: \"1.35\"", "kubernetesVersion: \"1.36\""),
        ("engineVersion: \"17.6\"", "engineVersion: \"17.7\""),
        ("instanceClass: db.t3.micro", "instanceClass: db.t3.small"),
        ("allocatedStorageGb: 20", "allocatedStorageGb: 40"),
        ("availabilityZoneCount: 2", "availabilityZoneCount: 3"),
        ("hostName: apps", "hostName: services"),
        ("imageRelease: \"1\"", "imageRelease: \"2\""),
        (
            "    team: infrastructure\n  environments:",
            "    team: platform\n  environments:",
        ),
    ]);
    let upgrade = place.events("deploy", "dev", QUICK);
    let upgraded = Statuses::read(&upgrade);
    assert!(upgraded.with("failed").is_empty(), "{:?}", upgraded.0);
    let steps = ResourceSteps::read(&upgrade);
    assert_eq!(steps.losses(STATEFUL), BTreeSet::new());
    for (name, kind) in [
        ("database-rds-postgres", ":Instance"),
        ("services-eks-cluster", ":Cluster"),
        ("network-private-subnet-2", ":Subnet"),
    ] {
        steps.position(name, kind, "done");
    }

    place.every_stack("destroy", "dev", &["--yes"]);
    assert_eq!(place.recorded("dev"), 0);
}

/// What the first edition did not say of a cluster.
const SECOND_EDITION: &str = "        bootstrapSelfManagedAddons: false,
        computeConfig: { enabled: true, nodePools: NODE_POOLS, nodeRoleArn: nodeRole.arn },
        kubernetesNetworkConfig: { elasticLoadBalancing: { enabled: true } },
        storageConfig: { blockStorage: { enabled: true } },
";

fn deploys_and_goes_away(environment: &str) {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "default");
    place.ok(&["enable-environment", ID, environment]);
    // Production begins with a cluster as the first edition made it.
    let program = place.path("cloud/stacks/shared/components/kubernetes/cluster.ts");
    let second = fs::read_to_string(&program).unwrap();
    let first = second.replacen(SECOND_EDITION, "", 1);
    assert_ne!(first, second);
    if environment == "prod" {
        fs::write(&program, first).unwrap();
    }
    let up = place.events("deploy", environment, QUICK);
    let deployed = Statuses::read(&up);
    assert_eq!(deployed.with("succeeded").len(), 16, "{:?}", deployed.0);
    assert!(place.recorded(environment) > 250);
    let account = if environment == "prod" {
        "333333333333"
    } else {
        "222222222222"
    };
    place.assert_account(environment, account);
    stacks::assert_outputs_are_exported_and_used(&place, environment);
    if environment == "prod" {
        fs::write(&program, second).unwrap();
        let renewed = ResourceSteps::read(&place.events("deploy", "prod", QUICK));
        renewed.position("services-eks-cluster", ":Cluster", "done");
        assert_eq!(renewed.losses(STATEFUL), BTreeSet::new());
        upgrades::one_by_one(&place);
    }
    // What is protected goes only when somebody has said so first.
    place.unprotect(environment);
    place.events("deploy", environment, QUICK);
    let needs = place.needs(environment);
    let events = place.events("destroy", environment, &["--yes"]);
    assert_eq!(place.recorded(environment), 0);
    place.assert_only_the_data_key_is_left(environment);
    let down = ResourceSteps::read(&events);
    down.assert_deleted_in_order(&needs);
    if environment == "prod" {
        let up = ResourceSteps::read(&up);
        for (needed, user) in WAITS {
            up.assert_before(*needed, *user);
            down.assert_before(*user, *needed);
        }
        // Monitoring comes after whatever is there, and goes first.
        for other in stacks::SIXTEEN.iter().filter(|one| **one != "monitoring") {
            up.assert_stack_before(other, "monitoring");
            down.assert_stack_before("monitoring", other);
        }
    }
}

#[test]
fn everything_deploys_in_stage_and_goes_away() {
    deploys_and_goes_away("stage");
}

#[test]
fn everything_deploys_in_prod_and_goes_away() {
    deploys_and_goes_away("prod");
}
