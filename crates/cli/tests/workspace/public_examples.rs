//! Projects of others, as they are published: a checkout of `github.com/pulumi/examples`, named by the variable
//! `NIMBUS_TEST_PULUMI_EXAMPLES`. They are not ours to keep here; `examples/adopt` has what every run of the tests adopts.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::adopt::{copy, files, json_of, ok};
use crate::support::{WorkspaceOutput, WorkspaceSite};

/// TypeScript without references, Python, and three of TypeScript of which the last reads the stacks of the others.
const PROJECTS: [&str; 5] = [
    "stack-readme-ts",
    "aws-py-stackreference/company",
    "aws-ts-stackreference/company",
    "aws-ts-stackreference/department",
    "aws-ts-stackreference/team",
];
const MANIFEST: &str = "cloud/deploy/D1PUB-organization-pub/Deployment_Manifest.yaml";

struct PublicProjects(WorkspaceSite);

impl PublicProjects {
    fn new(checkout: &Path, library: &Path, python: &Path) -> Self {
        let place = WorkspaceSite::empty();
        for project in PROJECTS {
            copy(&checkout.join(project), &place.path(project));
            let (installed, name) = match project.contains("-py-") {
                true => (
                    python.parent().unwrap().parent().unwrap().to_owned(),
                    "venv",
                ),
                false => (library.join("node_modules"), "node_modules"),
            };
            symlink(installed, place.path(project).join(name)).unwrap();
        }
        Self(place)
    }

    /// What whoever has the projects has configured.
    fn set(&self, project: &str, stack: &str, key: &str, value: &str, more: &[&str]) {
        let set = ["stack-config", "set", key, "--stack", stack];
        let mut command = self.0.command(&[&set, more].concat());
        command.current_dir(self.0.path(project));
        command.write_stdin(format!("{value}\n"));
        ok(self.0.finish(command));
    }

    fn run(&self, verb: &str, environment: &str, more: &[&str]) -> WorkspaceOutput {
        let usual = [verb, "D1PUB", "--environment", environment, "--rehearse"];
        self.0.run(&[&usual, more].concat())
    }
}

#[test]
fn public_examples_become_one_deployment_with_a_gate_secrets_and_a_rollback() {
    let test = "public_examples_become_one_deployment_with_a_gate_secrets_and_a_rollback";
    let Some(checkout) = std::env::var_os("NIMBUS_TEST_PULUMI_EXAMPLES").map(PathBuf::from) else {
        nimbus_test_tools::record_skip("no checkout of Pulumi's examples", test);
        return;
    };
    let (library, python) = (tool_or_skip!(Tool::Library), tool_or_skip!(Tool::Python));
    let public = PublicProjects::new(&checkout, &library, &python);
    let place = &public.0;
    for stack in ["dev", "prod"] {
        fs::write(
            place.path(&format!("stack-readme-ts/Pulumi.{stack}.yaml")),
            "config: {}\n",
        )
        .unwrap();
        let named = |kind: &str| format!("organization/aws-ts-stackreference-{kind}/{stack}");
        for company in [PROJECTS[1], PROJECTS[2]] {
            public.set(company, stack, "companyName", "Acme", &[]);
        }
        public.set(PROJECTS[3], stack, "departmentName", "Tools", &[]);
        let team = PROJECTS[4];
        public.set(team, stack, "companyStack", &named("company"), &[]);
        public.set(team, stack, "departmentStack", &named("department"), &[]);
        public.set(team, stack, "teamName", "hunter2-team", &["--secret"]);
        public.set(team, stack, "aws:region", "eu-west-1", &[]);
    }
    let before: Vec<_> = PROJECTS.map(|one| files(&place.path(one))).into();
    let usual = [
        "--id",
        "D1PUB",
        "--project",
        "pub",
        "--no-state",
        "--no-typecheck",
    ];
    let maps = ["--map", "dev=test", "--map", "prod=live"];
    let adopted = ok(place.run(&[&["adopt"][..], &PROJECTS, &usual, &maps].concat()));
    for needed in ["company", "department"] {
        let edge = format!("aws-ts-stackreference-team needs aws-ts-stackreference-{needed}");
        assert!(adopted.stdout.contains(&edge), "{adopted:?}");
    }

    let deploy = ["--no-typecheck", "--json"];
    let first = json_of(&ok(public.run("deploy", "test", &deploy)));
    assert_eq!(first["units"].as_array().unwrap().len(), 5, "{first}");
    let closed = public.run("deploy", "live", &deploy);
    assert_eq!(json_of(&closed)["error"]["code"], "NIM-0757", "{closed:?}");
    for item in ["smoke-tests", "monitoring"] {
        ok(public.run("gate", "test", &["--pass", item, "--note", "seen"]));
    }
    ok(public.run("deploy", "live", &deploy));

    // A name reaches who reads it through a reference, and goes back.
    let manifest = place.read(MANIFEST);
    let test_of_department = manifest.rfind("departmentName\": Tools").unwrap();
    let (head, tail) = manifest.split_at(test_of_department);
    place.write(
        MANIFEST,
        &format!("{head}{}", tail.replacen("Tools", "Services", 1)),
    );
    let changed = json_of(&ok(public.run("deploy", "test", &deploy)));
    let units = changed["units"].as_array().unwrap().iter();
    let ran: Vec<_> = units
        .filter(|unit| unit["status"] == "succeeded")
        .map(|unit| unit["name"].as_str().unwrap())
        .collect();
    let reading = [
        "aws-ts-stackreference-department",
        "aws-ts-stackreference-team",
    ];
    assert_eq!(ran, reading, "{changed}");
    let back = ["--to-version", "1", "--yes", "--json", "--no-typecheck"];
    let back = json_of(&ok(public.run("rollback", "test", &back)));
    assert_eq!(back["result"], "succeeded", "{back}");

    let after: Vec<_> = PROJECTS.map(|one| files(&place.path(one))).into();
    assert!(before == after, "the projects stay as they are");
    for (path, content) in files(place.root()) {
        let text = String::from_utf8_lossy(&content);
        assert!(!text.contains("hunter2-team"), "{}", path.display());
    }
}
