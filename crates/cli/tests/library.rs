//! The shipped library, whole, on the simulated cloud: sixteen real programs with the real AWS SDK.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::Value;
use tempfile::TempDir;

const ID: &str = "D1LIB";

/// A workspace with the shipped library, its packages and one deployment.
struct Place {
    home: TempDir,
}

impl Place {
    /// Everything but packages: programs cannot run.
    fn bare(template: &str) -> Self {
        let place = Self {
            home: TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        };
        place.ok(&["new"]);
        let init = [
            "init",
            ID,
            "--template",
            template,
            "--org",
            "Example",
            "--project",
            "shop",
            "--domain",
            "shop.example.com",
            "--account-dev",
            "111111111111",
            "--account-stage",
            "222222222222",
            "--account-prod",
            "333333333333",
        ];
        place.ok(&init);
        place
    }

    /// `library` has the packages; they are hard links here, so that this costs no space.
    fn new(library: &Path, template: &str) -> Self {
        let place = Self::bare(template);
        for (from, to) in [
            (library.join("node_modules"), "cloud/stacks/node_modules"),
            (
                library.join("../policies/baseline/node_modules"),
                "cloud/policies/baseline/node_modules",
            ),
        ] {
            link_tree(&from, &place.path(to));
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn deployment(&self) -> PathBuf {
        self.path(&format!("cloud/deploy/{ID}-Example-shop"))
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::cargo_bin("nimbus")
            .unwrap()
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap_or(-1),
            text(output.stdout),
            text(output.stderr),
        )
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let (code, stdout, stderr) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}\n{stdout}\n{stderr}");
        stdout
    }

    /// Runs a command on every stack; returns how each of them ended.
    fn every_stack(&self, command: &str, environment: &str, more: &[&str]) -> Statuses {
        Statuses::read(&self.events(command, environment, more))
    }

    /// Runs a command on every stack; returns the events of the run.
    fn events(&self, command: &str, environment: &str, more: &[&str]) -> String {
        let usual = [
            command,
            ID,
            "--environment",
            environment,
            "--rehearse",
            "--json",
        ];
        self.ok(&[&usual[..], more].concat())
    }

    fn edit_manifest(&self, edits: &[(&str, &str)]) {
        let path = self.deployment().join("Deployment_Manifest.yaml");
        let mut text = fs::read_to_string(&path).unwrap();
        for (from, to) in edits {
            assert!(text.contains(from), "the manifest has no {from}");
            text = text.replacen(from, to, 1);
        }
        fs::write(path, text).unwrap();
    }

    /// Changes the configuration of one stack in one environment, once.
    fn edit_stack(&self, stack: &str, environment: &str, edits: &[(&str, &str)]) {
        let path = self.deployment().join("Deployment_Manifest.yaml");
        let mut text = fs::read_to_string(&path).unwrap();
        let after = |at: usize, text: &str, what: &str| {
            at + text[at..]
                .find(what)
                .unwrap_or_else(|| panic!("no {what:?} for {stack} in {environment}"))
        };
        let start = after(0, &text, &format!("\n    {stack}:\n"));
        let start = after(start, &text, &format!("\n        {environment}:\n"));
        for (from, to) in edits {
            let at = after(start, &text, from);
            text.replace_range(at..at + from.len(), to);
        }
        fs::write(path, text).unwrap();
    }

    /// Resources that the engine's records know, over all units of an environment.
    fn recorded(&self, environment: &str) -> usize {
        let mut count = 0;
        let mut open = vec![self.deployment().join(".nimbus/rehearsal/.pulumi/stacks")];
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(&next).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else if path
                    .to_string_lossy()
                    .ends_with(&format!("-{environment}.json"))
                {
                    let state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                    let latest = &state["checkpoint"]["latest"]["resources"];
                    count += latest.as_array().map_or(0, Vec::len);
                }
            }
        }
        count
    }
}

/// How each stack ended.
struct Statuses(BTreeMap<String, String>);

impl Statuses {
    /// From the last event of a run, which sums it up.
    fn read(stdout: &str) -> Self {
        let last = stdout.lines().last().unwrap_or_default();
        let summary: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{stdout}"));
        let units = summary["units"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let status = |unit: &Value| (text(&unit["name"]), text(&unit["status"]));
        Self(units.iter().map(status).collect())
    }

    fn with(&self, wanted: &str) -> BTreeSet<&str> {
        let all = self.0.iter();
        all.filter(|(_, status)| *status == wanted)
            .map(|(stack, _)| stack.as_str())
            .collect()
    }
}

/// What was done to resources, in the order in which it was written down.
struct ResourceSteps(Vec<Value>);

impl ResourceSteps {
    fn read(stdout: &str) -> Self {
        let lines = stdout.lines().map(serde_json::from_str::<Value>);
        let steps = lines
            .filter_map(Result::ok)
            .filter(|event| event["event"] == "resource");
        Self(steps.collect())
    }

    /// Position of an event of one resource.
    fn position(&self, name: &str, kind: &str, status: &str) -> usize {
        let found = self.0.iter().position(|event| {
            event["name"] == name
                && event["status"] == status
                && event["type"].as_str().is_some_and(|t| t.ends_with(kind))
        });
        found.unwrap_or_else(|| panic!("no {kind} {name} {status}"))
    }

    /// One resource was finished before the other was begun.
    fn assert_before(&self, first: (&str, &str), second: (&str, &str)) {
        let (done, begun) = (
            self.position(first.0, first.1, "done"),
            self.position(second.0, second.1, "started"),
        );
        assert!(done < begun, "{first:?} must be done before {second:?}");
    }

    /// Resources of these types with which something else was done than make, change and read.
    fn losses(&self, types: &[&str]) -> BTreeSet<String> {
        let lost = self.0.iter().filter_map(|event| {
            let text = |key: &str| event[key].as_str().unwrap_or_default();
            let counts = types.iter().any(|kind| text("type").ends_with(kind))
                && (text("op").contains("replace") || text("op").contains("delete"));
            counts.then(|| format!("{} {}", text("op"), text("name")))
        });
        lost.collect()
    }
}

/// What holds data, or what others know by its name or address.
const STATEFUL: &[&str] = &[
    ":Vpc",
    ":Subnet",
    "rds/instance:Instance",
    "rds/cluster:Cluster",
    "rds/proxy:Proxy",
    "dynamodb/table:Table",
    ":ReplicationGroup",
    ":LoadBalancer",
    ":Bucket",
    ":FileSystem",
    "efs/accessPoint:AccessPoint",
    "kms/key:Key",
    ":Secret",
    ":UserPool",
    ":Repository",
    "eks/cluster:Cluster",
    "ecs/cluster:Cluster",
    ":Zone",
    ":Queue",
    "apigatewayv2/api:Api",
];

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

fn link_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            link_tree(&entry.path(), &target);
        } else if kind.is_symlink() {
            // Links between packages are relative: here they lead to the copies.
            std::os::unix::fs::symlink(fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else {
            fs::hard_link(entry.path(), target).unwrap();
        }
    }
}

/// Types are checked by the library's own tests.
const QUICK: &[&str] = &["--no-typecheck"];

#[test]
fn everything_deploys_in_dev_and_a_change_runs_only_what_it_concerns() {
    let library = tool_or_skip!(Tool::Library);
    let place = Place::new(&library, "default");
    let first = place.every_stack("deploy", "dev", QUICK);
    assert_eq!(first.with("succeeded").len(), 16, "{:?}", first.0);
    assert!(place.recorded("dev") > 250);

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
        ("          team: infrastructure", "          team: platform"),
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

#[test]
fn what_is_half_made_can_be_destroyed() {
    let library = tool_or_skip!(Tool::Library);
    let place = Place::new(&library, "minimal");
    let program = place.path("cloud/stacks/security/src/index.ts");
    let whole = fs::read_to_string(&program).unwrap();
    let half = whole.replacen(
        "export const albSecurityGroupId",
        "if (config.databasePort > 0) {\n  throw new Error(\"half way\");\n}\nexport const albSecurityGroupId",
        1,
    );
    assert_ne!(half, whole);
    fs::write(&program, half).unwrap();
    let deploy = [
        "deploy",
        ID,
        "--environment",
        "dev",
        "--rehearse",
        "--on-failure",
        "hold",
    ];
    let (code, stdout, stderr) = place.run(&[&deploy[..], QUICK].concat());
    assert_ne!(code, 0, "{stdout}\n{stderr}");
    let made = place.recorded("dev");
    assert!(made > 45, "network whole and security in part, not {made}");
    place.every_stack("destroy", "dev", &["--yes"]);
    assert_eq!(place.recorded("dev"), 0);
    // And the other way round: what is half made can be finished.
    place.run(&[&deploy[..], QUICK].concat());
    fs::write(&program, whole).unwrap();
    let finished = place.every_stack("deploy", "dev", QUICK);
    assert!(finished.with("failed").is_empty(), "{:?}", finished.0);
    assert!(place.recorded("dev") > made);
}

/// What the first edition did not say of a cluster.
const SECOND_EDITION: &str = "        bootstrapSelfManagedAddons: false,
        computeConfig: { enabled: true, nodePools: NODE_POOLS, nodeRoleArn: nodeRole.arn },
        kubernetesNetworkConfig: { elasticLoadBalancing: { enabled: true } },
        storageConfig: { blockStorage: { enabled: true } },
";

/// One change at a time, in production: what holds data, or is known by name, stays what it is.
fn upgrades_one_by_one(place: &Place) {
    let lost = |what: &str| {
        let events = place.events("deploy", "prod", QUICK);
        let failed = Statuses::read(&events);
        assert!(failed.with("failed").is_empty(), "{what}: {:?}", failed.0);
        ResourceSteps::read(&events).losses(STATEFUL)
    };
    let nothing = BTreeSet::new();
    let version = [
        ("allowMajorUpgrade: false", "allowMajorUpgrade: true"),
        ("engineVersion: \"17.6\"", "engineVersion: \"18.1\""),
    ];
    place.edit_stack("database-rds", "prod", &version);
    assert_eq!(lost("another major version"), nothing);

    let zones = |from: u8, to: u8| {
        let key = "availabilityZoneCount";
        let edit = (format!("{key}: {from}"), format!("{key}: {to}"));
        place.edit_stack("network", "prod", &[(&edit.0, &edit.1)]);
    };
    zones(3, 2);
    let third = ["data", "private", "public"].map(|tier| format!("delete network-{tier}-subnet-2"));
    assert_eq!(lost("a zone less"), BTreeSet::from(third));
    zones(2, 3);
    assert_eq!(lost("a zone more"), nothing);

    place.edit_stack("containers-apps", "prod", &[("name: api", "name: shop")]);
    assert_eq!(lost("another name of an application"), nothing);
}

fn deploys_and_goes_away(environment: &str) {
    let library = tool_or_skip!(Tool::Library);
    let place = Place::new(&library, "default");
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
    if environment == "prod" {
        fs::write(&program, second).unwrap();
        let renewed = ResourceSteps::read(&place.events("deploy", "prod", QUICK));
        renewed.position("services-eks-cluster", ":Cluster", "done");
        assert_eq!(renewed.losses(STATEFUL), BTreeSet::new());
        upgrades_one_by_one(&place);
    }
    let down = place.events("destroy", environment, &["--yes"]);
    assert_eq!(place.recorded(environment), 0);
    if environment == "prod" {
        let (up, down) = (ResourceSteps::read(&up), ResourceSteps::read(&down));
        for (needed, user) in WAITS {
            up.assert_before(*needed, *user);
            down.assert_before(*user, *needed);
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

#[test]
fn every_template_initialises_and_validates() {
    for (template, stacks, environments) in [
        ("default", 16, 3),
        ("minimal", 3, 1),
        ("microservices", 9, 3),
        ("data-platform", 6, 3),
    ] {
        let place = Place::bare(template);
        place.ok(&["validate-template", template]);
        place.ok(&["validate", ID]);
        place.ok(&["validate-dependencies", ID]);
        place.ok(&["graph", ID]);
        let files = fs::read_dir(place.deployment().join("config")).unwrap();
        assert_eq!(files.count(), stacks * environments, "{template}");
    }
}

#[test]
fn the_policy_pack_passes_the_library_and_stops_what_breaks_a_rule() {
    let library = tool_or_skip!(Tool::Library);
    let place = Place::new(&library, "minimal");
    let held = [QUICK, &["--policy-pack", "cloud/policies/baseline"]].concat();
    let deployed = place.every_stack("deploy", "dev", &held);
    assert_eq!(deployed.with("succeeded").len(), 3, "{:?}", deployed.0);

    let program = place.path("cloud/stacks/network/src/index.ts");
    let mut text = fs::read_to_string(&program).unwrap();
    text.push_str(
        "\nimport * as awsForAll from \"@pulumi/aws\";\n\
         new awsForAll.vpc.SecurityGroupIngressRule(\"network-door\", {\n\
         securityGroupId: \"sg-1\", ipProtocol: \"tcp\", fromPort: 22, toPort: 22,\n\
         cidrIpv4: \"0.0.0.0/0\" });\n",
    );
    fs::write(&program, text).unwrap();
    let before = place.recorded("dev");
    let deploy = [
        "deploy",
        ID,
        "--environment",
        "dev",
        "--rehearse",
        "--on-failure",
        "hold",
    ];
    let (code, stdout, stderr) = place.run(&[&deploy[..], &held].concat());
    assert_ne!(code, 0, "{stdout}\n{stderr}");
    assert!(
        format!("{stdout}{stderr}").contains("open-ports"),
        "{stdout}\n{stderr}"
    );
    assert_eq!(place.recorded("dev"), before, "nothing was made");
}
