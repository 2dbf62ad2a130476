//! Deployments on local files, through the real binary.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A workspace with three small stacks, in a home of its own.
struct StackSite {
    home: TempDir,
}

impl StackSite {
    fn new() -> Self {
        let place = Self {
            home: TempDir::new().unwrap(),
        };
        let templates = [
            (
                "config/dns.yaml",
                "name: dns\npriority: 10\noutputs: {zoneId: }\n",
            ),
            (
                "config/network.yaml",
                "name: network\npriority: 20\noutputs: {vpcId: , subnetIds: }\n\
                 variables: {VPC_CIDR_DEV: {default: 10.0.0.0/16}, VPC_CIDR_PROD: {default: 10.2.0.0/16}}\n\
                 environments:\n  dev: {vpcCidr: '{{VPC_CIDR_DEV}}'}\n  prod: {vpcCidr: '{{VPC_CIDR_PROD}}'}\n",
            ),
            (
                "config/security.yaml",
                "name: security\npriority: 30\ndependencies: [network]\nconfig: {vpcId: '{{RUNTIME:network:vpcId}}'}\n",
            ),
            (
                "default/small.yaml",
                "name: small\ndescription: Three stacks\nenvironments:\n\
                 \x20 dev: {enabled: true, account: '{{AWS_ACCOUNT_DEV}}', region: '{{PRIMARY_REGION}}'}\n\
                 \x20 prod: {enabled: false, account: '{{AWS_ACCOUNT_PROD}}', region: '{{PRIMARY_REGION}}'}\n\
                 stacks: {dns: , network: , security: }\n",
            ),
        ];
        for (name, text) in templates {
            place.write(&format!("cloud/tools/templates/{name}"), text);
        }
        for stack in ["dns", "network", "security"] {
            place.write(
                &format!("cloud/stacks/{stack}/src/Pulumi.yaml"),
                &format!("name: {stack}\nruntime: nodejs\n"),
            );
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("cloud").unwrap();
        command
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .args(arguments);
        command
    }

    /// Exit code and standard output.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )
    }

    fn stderr(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.command(arguments).output().unwrap().stderr).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (_, stdout) = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&stdout).unwrap()
    }

    fn init(&self, more: &[&str]) -> (i32, String) {
        let usual = [
            "init",
            "D1BRV40",
            "--org",
            "Company-A",
            "--project",
            "ecommerce",
            "--template",
            "small",
        ];
        self.run(&[&usual, more].concat())
    }

    fn manifest(&self) -> String {
        fs::read_to_string(
            self.path("cloud/deploy/D1BRV40-Company-A-ecommerce/Deployment_Manifest.yaml"),
        )
        .unwrap()
    }
}

#[test]
fn init_reports_what_it_made_in_the_words_that_users_know() {
    let place = StackSite::new();
    let (code, stdout) = place.init(&["--account-dev", "111111111111"]);
    assert_eq!(code, 0, "{stdout}");
    assert_eq!(
        stdout,
        "Generated deployment ID: D1BRV40\n\
         Created: ./cloud/deploy/D1BRV40-Company-A-ecommerce/\n\
         Generated manifest from template: small\n\
         Resolved dependencies from stack templates\n\
         Created 6 config files (3 stacks × 2 environments)\n\n\
         Next steps:\n  \
         1. Review manifest: ./cloud/deploy/D1BRV40-Company-A-ecommerce/Deployment_Manifest.yaml\n  \
         2. Deploy to dev: cloud deploy D1BRV40 --environment dev\n"
    );
    let config = place.path("cloud/deploy/D1BRV40-Company-A-ecommerce/config");
    let files = fs::read_dir(&config)
        .unwrap()
        .map(|one| one.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    assert_eq!(files.count(), 6);
    let log = fs::read_to_string(config.join("../logs/init.log")).unwrap();
    let messages: Vec<_> = log
        .lines()
        .map(|line| line.rsplit("] ").next().unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            "Starting deployment initialization",
            "Given deployment ID: D1BRV40",
            "Loading template: small",
            "Resolving dependencies from templates",
            "Rendering manifest with variables",
            "Generated 6 config files",
            "Initialization complete",
        ]
    );
}

#[test]
fn inits_at_the_same_time_get_ids_of_their_own() {
    let place = StackSite::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let started = names.map(|project| {
        let arguments = [
            "init",
            "--org",
            "o",
            "--project",
            project,
            "--template",
            "small",
        ];
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nimbus"));
        command
            .args(arguments)
            .arg("--json")
            .current_dir(place.home.path())
            .env("HOME", place.home.path())
            .stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    });
    let ids = started.map(|child| {
        let output = child.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["id"].as_str().unwrap().to_owned()
    });
    let apart: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(apart.len(), names.len(), "{ids:?}");
}

#[test]
fn generated_ids_never_collide() {
    let place = StackSite::new();
    let ids: Vec<_> = (0..3)
        .map(|_| {
            place.json(&[
                "init",
                "--org",
                "o",
                "--project",
                "p",
                "--template",
                "small",
            ])
        })
        .map(|report| report["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(ids[0] < ids[1] && ids[1] < ids[2], "{ids:?}");
    assert!(ids.iter().all(|id| id.len() == 7));
    assert_eq!(
        place.json(&["list"])["deployments"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn a_taken_or_malformed_id_is_refused_and_nothing_is_left() {
    let place = StackSite::new();
    place.init(&[]);
    let before = place.manifest();
    assert_eq!(place.init(&[]).0, 4);
    assert_eq!(place.manifest(), before);
    for id in ["../x", "d1", "D1BRV40-x", "DÄ"] {
        let (code, _) = place.run(&[
            "init",
            id,
            "--org",
            "o",
            "--project",
            "p",
            "--template",
            "small",
        ]);
        assert_eq!(code, 2, "{id}");
    }
    assert_eq!(fs::read_dir(place.path("cloud/deploy")).unwrap().count(), 1);
}

#[test]
fn flags_reach_the_manifest_and_the_config_files() {
    let place = StackSite::new();
    place.init(&[
        "--vpc-cidr",
        "10.50.0.0/16",
        "--vpc-cidr-prod",
        "10.60.0.0/16",
        "--region",
        "eu-west-1",
    ]);
    let config = |name: &str| {
        fs::read_to_string(place.path(&format!(
            "cloud/deploy/D1BRV40-Company-A-ecommerce/config/{name}"
        )))
        .unwrap()
    };
    assert!(config("network.dev.yaml").contains("\"network:vpcCidr\": \"10.50.0.0/16\""));
    assert!(config("network.prod.yaml").contains("10.60.0.0/16"));
    assert!(config("dns.dev.yaml").contains("eu-west-1"));
    assert!(place.manifest().contains("10.50.0.0/16"));
}

#[test]
fn a_file_and_an_interview_give_the_same_manifest_as_flags() {
    let by_flags = StackSite::new();
    by_flags.init(&["--account-dev", "111111111111", "--domain", "x.example"]);
    let by_file = StackSite::new();
    by_file.write(
        "answers.yaml",
        "id: D1BRV40\norg: Company-A\nproject: ecommerce\ntemplate: small\ndomain: x.example\n\
         accounts: {dev: '111111111111'}\n",
    );
    assert_eq!(by_file.run(&["init", "--from-file", "answers.yaml"]).0, 0);
    let by_interview = StackSite::new();
    by_interview
        .command(&["init", "--interactive"])
        .write_stdin("D1BRV40\nCompany-A\necommerce\nx.example\nsmall\n\n111111111111\n\nn\n")
        .assert()
        .success();
    let without_time = |place: &StackSite| {
        let text = place.manifest();
        let lines = text.lines().filter(|line| !line.contains("createdAt"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let manifest = by_flags.manifest();
    for given in ["x.example", "111111111111", "Company-A", "ecommerce"] {
        assert!(manifest.contains(given), "{given}: {manifest}");
    }
    assert_eq!(without_time(&by_flags), without_time(&by_file));
    assert_eq!(without_time(&by_flags), without_time(&by_interview));
}

#[test]
fn an_environment_is_switched_without_touching_the_rest_of_the_manifest() {
    let place = StackSite::new();
    place.init(&[]);
    let path = place.path("cloud/deploy/D1BRV40-Company-A-ecommerce/Deployment_Manifest.yaml");
    fs::write(&path, format!("# mine\n{}", place.manifest())).unwrap();
    let before = place.manifest();
    assert_eq!(place.run(&["enable-environment", "d1brv40", "prod"]).0, 0);
    let after = place.manifest();
    assert!(after.starts_with("# mine\n"));
    let changed: Vec<_> = before
        .lines()
        .zip(after.lines())
        .filter(|(a, b)| a != b)
        .collect();
    assert_eq!(changed, [("      enabled: false", "      enabled: true")]);
    let listed = |name: &str| {
        let report = place.json(&["list-environments", "D1BRV40"]);
        let environments = report["environments"].as_array().unwrap().clone();
        let one = environments.into_iter().find(|one| one["name"] == name);
        one.unwrap()["enabled"].clone()
    };
    assert_eq!((listed("dev"), listed("prod")), (true.into(), true.into()));
    assert_eq!(place.run(&["enable-environment", "D1BRV40", "stage"]).0, 3);
    assert!(
        place
            .stderr(&["enable-environment", "D1BRV40", "staging"])
            .contains("called stage")
    );
    place.run(&["disable-environment", "D1BRV40", "prod"]);
    assert_eq!(place.manifest(), before);
    assert_eq!((listed("dev"), listed("prod")), (true.into(), false.into()));
}

#[test]
fn validation_names_every_problem_and_ends_with_its_own_code() {
    let place = StackSite::new();
    place.init(&["--account-dev", "111111111111"]);
    let (code, stdout) = place.run(&["validate", "D1BRV40", "--environment", "dev"]);
    assert_eq!((code, stdout.as_str()), (0, "✓ D1BRV40 is valid\n"));

    let path = place.path("cloud/deploy/D1BRV40-Company-A-ecommerce/Deployment_Manifest.yaml");
    let broken = place.manifest().replace("network:vpcId", "network:vpcIdd");
    fs::write(&path, broken.replace("\"111111111111\"", "\"12\"")).unwrap();
    let (code, stdout) = place.run(&["validate", "D1BRV40", "--environment", "dev"]);
    assert_eq!(code, 2);
    for text in [
        "Invalid AWS account",
        "'security' references 'network:vpcIdd'",
        "did you mean `vpcId`?",
    ] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
    assert_eq!(place.run(&["validate-dependencies", "D1BRV40"]).0, 2);
    assert_eq!(
        place
            .run(&["validate-stack", "D1BRV40", "dns", "--environment", "dev"])
            .0,
        0
    );
    let (code, stdout) = place.run(&[
        "validate-stack",
        "D1BRV40",
        "security",
        "--environment",
        "dev",
    ]);
    assert_eq!(code, 2, "{stdout}");
    assert!(stdout.contains("vpcIdd"), "{stdout}");
    let report = place.json(&["validate", "D1BRV40"]);
    assert_eq!(report["valid"], false);
}

#[test]
fn the_graph_has_four_forms() {
    let place = StackSite::new();
    place.init(&[]);
    let (_, text) = place.run(&["graph", "D1BRV40"]);
    assert_eq!(
        text,
        "Layer 1\n  dns\n  network\nLayer 2\n  security  ← network\n"
    );
    let form = |form: &str| place.run(&["graph", "D1BRV40", "--format", form]).1;
    // Ids of its own, for a stack may be called like a word of Mermaid's.
    let mermaid = form("mermaid");
    for line in ["n2[\"network\"]", "n3[\"security\"]", "n2 --> n3"] {
        assert!(mermaid.contains(line), "{line}: {mermaid}");
    }
    assert!(form("dot").contains("\"network\" -> \"security\";"));
    let svg = form("svg");
    assert!(svg.starts_with("<svg"));
    assert_eq!(
        svg.matches("marker-end=\"url(#arrow)\"").count(),
        1,
        "{svg}"
    );
}

/// Environments have any names: which one a picture shows by default is the manifest's order.
#[test]
fn the_graph_is_of_the_manifests_first_environment() {
    let place = StackSite::new();
    let manifest = "apiVersion: nimbus/v1\nkind: DeploymentManifest\n\
        metadata: {deploymentId: D1QA, organization: o, project: p, template: small}\nspec:\n\
        \x20 environments:\n\
        \x20   qa: {enabled: true, account: '111111111111', region: eu-west-1}\n\
        \x20   live: {enabled: true, account: '222222222222', region: eu-west-1}\n\
        \x20 stacks:\n\
        \x20   dns: {enabled: true, config: {qa: {x: '{{RUNTIME:network:vpcId}}'}}}\n\
        \x20   network: {enabled: true}\n";
    place.write("cloud/deploy/D1QA-o-p/Deployment_Manifest.yaml", manifest);
    let (code, first) = place.run(&["graph", "D1QA"]);
    assert_eq!(code, 0, "{first}");
    assert!(first.contains("dns  ← network"), "{first}");
    let (code, other) = place.run(&["graph", "D1QA", "--environment", "live"]);
    assert_eq!(code, 0, "{other}");
    assert!(!other.contains("← network"), "{other}");
}

#[test]
fn unknown_things_are_answered_with_what_there_is() {
    let place = StackSite::new();
    assert!(
        place
            .stderr(&["show-template", "smal"])
            .contains("did you mean `small`?")
    );
    assert_eq!(place.run(&["validate", "DNOPE"]).0, 3);
    assert_eq!(place.run(&["validate-template", "small"]).0, 0);
    let small = "cloud/tools/templates/default/small.yaml";
    let text = fs::read_to_string(place.path(small)).unwrap();
    place.write(small, &text.replace("dns: ,", "dns: , sdn: ,"));
    assert_eq!(place.run(&["validate-template", "small"]).0, 2);
    let told = place.stderr(&["validate-template", "small"]);
    assert!(told.contains("sdn"), "{told}");
    let elsewhere = TempDir::new().unwrap();
    let mut command = Command::cargo_bin("nimbus").unwrap();
    let output = command
        .current_dir(elsewhere.path())
        .arg("list")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("nimbus new")
    );
}
