//! A workspace to deploy in, and what is left of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use nimbus_test_tools::compile_cache;
use serde_json::Value;
use tempfile::TempDir;

use crate::steps::Statuses;

pub(crate) const ID: &str = "D1LIB";
/// What fails stays as it is, to be looked at.
pub(crate) const DEPLOY_AND_HOLD: &[&str] = &[
    "deploy",
    ID,
    "--environment",
    "dev",
    "--rehearse",
    "--on-failure",
    "hold",
];

/// A workspace with the shipped library, its packages and one deployment.
pub(crate) struct LibrarySite {
    home: TempDir,
}

impl LibrarySite {
    /// Everything but packages: programs cannot run.
    pub(crate) fn bare(template: &str) -> Self {
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
        ];
        let others = [
            "--account-stage",
            "222222222222",
            "--account-prod",
            "333333333333",
        ];
        // `minimal` has one environment, and an account for another is refused.
        let others = others.iter().filter(|_| template != "minimal");
        place.ok(&init.iter().chain(others).copied().collect::<Vec<_>>());
        place
    }

    /// `library` has the packages; here are links to them.
    pub(crate) fn new(library: &Path, template: &str) -> Self {
        let place = Self::bare(template);
        for (from, to) in [
            (library.join("node_modules"), "cloud/stacks/node_modules"),
            (
                library.join("../policies/baseline/node_modules"),
                "cloud/policies/baseline/node_modules",
            ),
        ] {
            link_packages(&from, &place.path(to));
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn deployment(&self) -> PathBuf {
        self.path(&format!("cloud/deploy/{ID}-Example-shop"))
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::cargo_bin("nimbus")
            .unwrap()
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env(
                "XDG_CACHE_HOME",
                compile_cache(Path::new(env!("CARGO_BIN_EXE_nimbus"))),
            )
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

    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let (code, stdout, stderr) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}\n{stdout}\n{stderr}");
        stdout
    }

    /// Runs a command on every stack; returns how each of them ended.
    pub(crate) fn every_stack(&self, command: &str, environment: &str, more: &[&str]) -> Statuses {
        Statuses::read(&self.events(command, environment, more))
    }

    /// Runs a command on every stack; returns the events of the run.
    pub(crate) fn events(&self, command: &str, environment: &str, more: &[&str]) -> String {
        let usual = [
            command,
            ID,
            "--environment",
            environment,
            "--rehearse",
            "--json",
        ];
        // Environments are tried one by one here, in no order.
        let gate = ["--skip-gate", "tried alone"];
        let gate = if command == "deploy" { &gate[..] } else { &[] };
        self.ok(&[&usual[..], gate, more].concat())
    }

    pub(crate) fn edit_manifest(&self, edits: &[(&str, &str)]) {
        let path = self.deployment().join("Deployment_Manifest.yaml");
        let mut text = fs::read_to_string(&path).unwrap();
        for (from, to) in edits {
            assert!(text.contains(from), "the manifest has no {from}");
            text = text.replacen(from, to, 1);
        }
        fs::write(path, text).unwrap();
    }

    /// Changes the configuration of one stack in one environment, once.
    pub(crate) fn edit_stack(&self, stack: &str, environment: &str, edits: &[(&str, &str)]) {
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

    /// One zone more than the simulated region has.
    pub(crate) fn add_zone(&self) {
        let answers = "\"aws:index/getAvailabilityZones:getAvailabilityZones\":\n  \
                       names: [\"{region}a\", \"{region}b\", \"{region}c\", \"{region}d\"]\n  \
                       zoneIds: [use1-az1, use1-az2, use1-az4, use1-az6]\n";
        fs::create_dir_all(self.path("cloud/rehearsal")).unwrap();
        fs::write(self.path("cloud/rehearsal/invokes.yaml"), answers).unwrap();
    }

    /// Takes the protection off whatever an environment refuses to delete.
    pub(crate) fn unprotect(&self, environment: &str) {
        if environment == "prod" {
            for stack in PROTECTED {
                let edit = [("deletionProtection: true", "deletionProtection: false")];
                self.edit_stack(stack, environment, &edit);
            }
        }
        let files = [("forceDestroy: false", "forceDestroy: true")];
        self.edit_stack("storage", environment, &files);
    }

    /// Asserts that a destroy left nothing but the key to snapshots and backups.
    pub(crate) fn assert_only_the_data_key_is_left(&self, environment: &str) {
        let left: Vec<String> = self.objects(environment).into_iter().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left[0].contains("aws:kms/key:Key"), "{left:?}");
    }

    /// Asserts that what was rehearsed is in the environment's account, and nothing in the one that is made up.
    pub(crate) fn assert_account(&self, environment: &str, account: &str) {
        let states: Vec<String> = self
            .resources(environment)
            .iter()
            .map(ToString::to_string)
            .collect();
        let own = states
            .iter()
            .filter(|state| state.contains(&format!(":{account}:")));
        assert!(own.count() > 50, "ARNs have the account of {environment}");
        let made_up = states.iter().find(|state| state.contains(":123456789012:"));
        assert_eq!(made_up, None);
    }

    /// Resources that the engine's records know, over all units of an environment.
    pub(crate) fn recorded(&self, environment: &str) -> usize {
        self.resources(environment).len()
    }

    /// URNs of recorded resources, each with what it needs: dependencies and its parent.
    pub(crate) fn needs(&self, environment: &str) -> BTreeMap<String, BTreeSet<String>> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let needs = |resource: &Value| -> BTreeSet<String> {
            let listed = resource["dependencies"].as_array().into_iter().flatten();
            let all = listed.chain([&resource["parent"]]).map(text);
            all.filter(|urn| !urn.is_empty()).collect()
        };
        let resources = self.resources(environment);
        let needs = resources.iter().map(|one| (text(&one["urn"]), needs(one)));
        needs.collect()
    }

    /// Recorded resources of every unit of an environment.
    pub(crate) fn resources(&self, environment: &str) -> Vec<Value> {
        let mut found = Vec::new();
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
                    found.extend(latest.as_array().cloned().unwrap_or_default());
                }
            }
        }
        found
    }

    /// What the simulated cloud still has, whether or not the engine knows of it. The schedule of a
    /// secret that RDS made is left to RDS, which takes both away with the database.
    pub(crate) fn objects(&self, environment: &str) -> BTreeSet<String> {
        let file = format!(".nimbus/rehearsal/world-{environment}.jsonl");
        let text = fs::read_to_string(self.deployment().join(file)).unwrap();
        let mut objects = BTreeSet::new();
        let key = |type_: &Value, id: &Value| format!("{type_} {id}");
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if let Some(put) = line.get("put") {
                objects.insert(key(&put["object"]["type"], &put["id"]));
            } else if let Some(gone) = line.get("gone") {
                objects.remove(&key(&gone["type"], &gone["id"]));
            }
        }
        objects.retain(|object| !object.contains(":SecretRotation\""));
        objects
    }
}

/// Stacks with something that production refuses to delete.
const PROTECTED: &[&str] = &[
    "authentication",
    "compute-ec2",
    "database-rds",
    "services-ecs",
    "services-eks",
];

fn link_packages(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (name, target) = (entry.file_name(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_symlink() {
            // Links between packages of the library are relative: here they lead to the copies.
            symlink(fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else if name.to_string_lossy().starts_with('@') {
            link_packages(&entry.path(), &target);
        } else {
            symlink(entry.path(), target).unwrap();
        }
    }
}

/// Types are checked by the library's own tests.
pub(crate) const QUICK: &[&str] = &["--no-typecheck"];
