//! A workspace of small JavaScript programs that depend on each other.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// No wait of a test may take longer.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);

pub(crate) const ID: &str = "D1RUNS";

/// What a command left behind.
pub(crate) struct DeployOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl DeployOutput {
    pub(crate) fn ok(self) -> Self {
        self.with(0)
    }

    pub(crate) fn with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}\n{}", self.stderr))
        };
        self.stdout.lines().map(parse).collect()
    }

    /// The last line.
    pub(crate) fn summary(&self) -> Value {
        let events = self.events();
        events
            .last()
            .cloned()
            .unwrap_or_else(|| panic!("{}", self.stderr))
    }

    /// Status of a unit in the summary.
    pub(crate) fn status(&self, unit: &str) -> String {
        let summary = self.summary();
        let units = summary["units"]
            .as_array()
            .unwrap_or_else(|| panic!("{summary}"));
        let found = units.iter().find(|one| one["name"] == unit);
        found.unwrap()["status"].as_str().unwrap().to_owned()
    }
}

/// A stack: its name and what it needs.
pub(crate) type Stack<'a> = (&'a str, &'a [&'a str]);

pub(crate) const DIAMOND: &[Stack<'_>] =
    &[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])];

pub(crate) struct Site {
    folder: TempDir,
}

/// The Node SDK, or `None` after telling that the test is skipped.
pub(crate) fn node_sdk(test: &str) -> Option<PathBuf> {
    nimbus_test_tools::Tool::NodeSdk.find_or_record_skip(test)
}

impl Site {
    /// A deployment of these stacks.
    pub(crate) fn new(sdk: &Path, stacks: &[Stack<'_>]) -> Self {
        let site = Self::without_sdk(stacks);
        symlink(
            sdk.join("node_modules"),
            site.path("cloud/stacks/node_modules"),
        )
        .unwrap();
        site
    }

    /// For commands that run no program.
    pub(crate) fn without_sdk(stacks: &[Stack<'_>]) -> Self {
        let site = Self {
            folder: TempDir::new().unwrap(),
        };
        let mut list = String::new();
        for (name, needs) in stacks {
            let mut config = String::new();
            for need in *needs {
                config.push_str(&format!("  from-{need}: '{{{{RUNTIME:{need}:first}}}}'\n"));
            }
            let template = format!(
                "name: {name}\ndependencies: [{}]\nconfig:\n{config}environments: {{dev: {{size: '1'}}, \
                 stage: {{size: '1'}}}}\noutputs: {{first: , ids: }}\n",
                needs.join(", ")
            );
            site.write(
                &format!("cloud/tools/templates/config/{name}.yaml"),
                &template,
            );
            list.push_str(&format!("{name}: , "));
            let source = format!("cloud/stacks/{name}/src");
            let project = format!("name: {name}\nruntime: nodejs\ndescription: {name}\n");
            site.write(&format!("{source}/Pulumi.yaml"), &project);
            site.write(
                &format!("{source}/package.json"),
                "{\"main\":\"index.js\"}\n",
            );
            site.write(&format!("{source}/index.js"), &program(name, needs));
        }
        let template = format!(
            "name: graph\ndescription: A graph\nenvironments:\n\
             \x20 dev: {{enabled: true, account: '111111111111', region: eu-west-1}}\n\
             \x20 stage: {{enabled: true, account: '222222222222', region: eu-west-1}}\n\
             stacks: {{{}}}\n",
            list.trim_end_matches(", ")
        );
        site.write("cloud/tools/templates/default/graph.yaml", &template);
        site.run(&[
            "init",
            ID,
            "--org",
            "o",
            "--project",
            "p",
            "--template",
            "graph",
        ])
        .ok();
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A path below the deployment's directory.
    pub(crate) fn deployment(&self, name: &str) -> PathBuf {
        self.path(&format!("cloud/deploy/{ID}-o-p")).join(name)
    }

    /// A path below the directory of its rehearsals.
    pub(crate) fn rehearsal(&self, name: &str) -> PathBuf {
        self.deployment(".nimbus/rehearsal").join(name)
    }

    /// Changes a stack's configuration in the manifest.
    pub(crate) fn set_size(&self, stack: &str, size: &str) {
        let path = self.deployment("Deployment_Manifest.yaml");
        let text = fs::read_to_string(&path).unwrap();
        let at = text.find(&format!("\n    {stack}:")).unwrap();
        let (head, tail) = text.split_at(at);
        let tail = match tail.find("size: ") {
            Some(place) => {
                let end = place + tail[place..].find('\n').unwrap();
                format!("{}size: \"{size}\"{}", &tail[..place], &tail[end..])
            }
            None => panic!("no size in {tail}"),
        };
        fs::write(&path, format!("{head}{tail}")).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nimbus"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env(
                "XDG_CACHE_HOME",
                nimbus_test_tools::compile_cache(Path::new(env!("CARGO_BIN_EXE_nimbus"))),
            )
            .env("PULUMI_CONFIG_PASSPHRASE", "correct horse")
            // A machine that tests run on may be an instance with an identity of its own.
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> DeployOutput {
        let output = self.command(arguments).output().unwrap();
        DeployOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// A command about the rehearsal of `dev`.
    pub(crate) fn rehearse(&self, verb: &str, more: &[&str]) -> DeployOutput {
        let usual = [verb, ID, "--environment", "dev", "--rehearse"];
        self.run(&[&usual, more].concat())
    }

    pub(crate) fn start(&self, verb: &str, more: &[&str]) -> Child {
        let usual = [verb, ID, "--environment", "dev", "--rehearse"];
        self.command(&[&usual, more].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub(crate) fn orders(&self, text: &str) -> String {
        self.write("orders.yaml", text);
        self.path("orders.yaml").display().to_string()
    }

    /// Resources of every unit: URN, inputs and whether something is pending.
    pub(crate) fn resources(&self) -> Vec<String> {
        let folder = self.rehearsal(".pulumi/stacks/p");
        let mut found = Vec::new();
        let entries = fs::read_dir(&folder).into_iter().flatten();
        for entry in entries {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "json") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let state: Value = serde_json::from_str(&text).unwrap();
            let latest = &state["checkpoint"]["latest"];
            for resource in latest["resources"].as_array().into_iter().flatten() {
                found.push(format!("{} {}", resource["urn"], resource["inputs"]));
            }
            let pending = latest["pending_operations"].as_array();
            found.extend(
                pending
                    .into_iter()
                    .flatten()
                    .map(|one| format!("pending {one}")),
            );
        }
        found.sort();
        found
    }
}

fn program(name: &str, needs: &[&str]) -> String {
    let upstream: String = needs
        .iter()
        .map(|need| format!("from_{need}: config.require('from-{need}'), "))
        .collect();
    format!(
        "const pulumi = require('@pulumi/pulumi');\n\
         const config = new pulumi.Config('{name}');\n\
         class Thing extends pulumi.CustomResource {{\n\
         \x20 constructor(name, args, options) {{ super('demo:index:Thing', name, args, options); }}\n\
         }}\n\
         const size = config.require('size');\n\
         const first = new Thing('{name}-first', {{ size, {upstream}}});\n\
         const second = new Thing('{name}-second', {{ size, first: first.id }});\n\
         exports.first = first.id;\n\
         exports.ids = [first.id, second.id];\n"
    )
}

/// Watches for something that another process does.
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < LIMIT, "{what}: waited in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}
