//! A workspace with three small stacks, in a home of its own.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct WorkspaceSite {
    home: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct WorkspaceOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) const MANIFEST: &str =
    "cloud/deploy/D1BRV40-Company-A-ecommerce/Deployment_Manifest.yaml";

impl WorkspaceSite {
    /// Nothing in it yet.
    pub(crate) fn empty() -> Self {
        Self {
            home: TempDir::new().unwrap(),
        }
    }

    pub(crate) fn new() -> Self {
        let place = Self::empty();
        let templates = [
            (
                "config/network.yaml",
                "name: network\ndescription: Networks\npriority: 20\noutputs: {vpcId: }\n\
                 variables: {VPC_CIDR_DEV: {default: 10.0.0.0/16}}\nconfig: {vpcCidr: '{{VPC_CIDR_DEV}}'}\n",
            ),
            (
                "config/web.yaml",
                "name: web\ndescription: Sites\ndependencies: [network]\n\
                 config: {vpcId: '{{RUNTIME:network:vpcId}}', size: 1}\n",
            ),
            (
                "default/small.yaml",
                "name: small\ndescription: Two stacks\nenvironments:\n\
                 \x20 dev: {enabled: true, account: '{{AWS_ACCOUNT_DEV}}', region: '{{PRIMARY_REGION}}'}\n\
                 \x20 prod: {enabled: false, account: '{{AWS_ACCOUNT_PROD}}', region: '{{PRIMARY_REGION}}'}\n\
                 stacks:\n  network: # first\n  web: { enabled: true }\n",
            ),
        ];
        for (name, text) in templates {
            place.write(&format!("cloud/tools/templates/{name}"), text);
        }
        for stack in ["network", "web", "queue"] {
            place.write(
                &format!("cloud/stacks/{stack}/src/Pulumi.yaml"),
                &format!("name: {stack}\nruntime: nodejs\ndescription: The {stack}\n"),
            );
            place.write(
                &format!("cloud/stacks/{stack}/src/index.ts"),
                "export const url = 'x';\n",
            );
        }
        place
    }

    pub(crate) fn with_deployment() -> Self {
        let place = Self::new();
        let ran = place.init(&["--account-dev", "111111111111"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        place
    }

    pub(crate) fn root(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("nimbus").unwrap();
        command
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env(
                "XDG_CACHE_HOME",
                nimbus_test_tools::compile_cache(Path::new(env!("CARGO_BIN_EXE_nimbus"))),
            )
            .env("PULUMI_CONFIG_PASSPHRASE", "test")
            // A machine that tests run on may be an instance with an identity of its own.
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> WorkspaceOutput {
        self.finish(self.command(arguments))
    }

    /// Output without what differs from run to run: the directory and the trace.
    pub(crate) fn finish(&self, mut command: Command) -> WorkspaceOutput {
        let output = command.output().unwrap();
        let home = self.home.path().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&home, "HOME");
        WorkspaceOutput {
            code: output.status.code().unwrap(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&ran.stdout).unwrap()
    }

    pub(crate) fn init(&self, more: &[&str]) -> WorkspaceOutput {
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
}

impl WorkspaceOutput {
    /// Code and both outputs, for goldens.
    pub(crate) fn shown(&self) -> String {
        let Self {
            code,
            stdout,
            stderr,
        } = self;
        format!("exit {code}\n--- out\n{stdout}--- err\n{stderr}")
    }
}

/// A report without the trace, which differs from run to run, and in order of the alphabet.
pub(crate) fn without_trace(document: Value) -> Value {
    match document {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(key, _)| key != "trace_id");
            let sorted: BTreeMap<String, Value> = kept
                .map(|(key, value)| (key, without_trace(value)))
                .collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(without_trace).collect(),
        scalar => scalar,
    }
}
