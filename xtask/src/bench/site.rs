//! Workspaces of small programs, for runs of the real command in rehearsal.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::measure::{self, Sample};
use crate::process;
use crate::repo::Repo;

const ID: &str = "D1BENCH";

/// The shipped platform: name, minutes as its templates guess, needs. The last one is needed by none.
pub(super) const PLATFORM: &[(&str, u32, &[&str])] = &[
    ("dns", 2, &[]),
    ("network", 8, &[]),
    ("security", 6, &["network"]),
    ("secrets", 3, &["security"]),
    ("authentication", 5, &["security"]),
    ("storage", 4, &["security"]),
    ("database-rds", 15, &["network", "security", "secrets"]),
    ("containers-images", 4, &["security"]),
    (
        "containers-apps",
        10,
        &["network", "security", "containers-images"],
    ),
    ("services-ecr", 2, &[]),
    ("services-ecs", 9, &["network", "security", "services-ecr"]),
    ("services-eks", 18, &["network", "security"]),
    ("services-api", 6, &["authentication", "services-ecs"]),
    ("compute-ec2", 7, &["network", "security"]),
    ("compute-lambda", 5, &["network", "security"]),
    (
        "monitoring",
        5,
        &["services-ecs", "compute-ec2", "database-rds"],
    ),
];

/// A unit to make: its name and what it needs.
type Unit = (String, Vec<String>);

/// What the programs of a workspace are like.
#[derive(Clone, Copy)]
enum ProgramKind {
    /// JavaScript that loads nothing but the SDK.
    Plain,
    /// TypeScript with the AWS package, as programs of the library are.
    Aws,
}

pub(super) struct Site {
    folder: PathBuf,
    nimbus: PathBuf,
}

impl Site {
    pub(super) fn empty(repo: &Repo, nimbus: &Path) -> Result<Self> {
        let folder = repo.join("target/bench/orchestrator");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(folder.join("tmp"))?;
        Ok(Self {
            folder,
            nimbus: nimbus.to_owned(),
        })
    }

    /// The shape of the shipped platform; a minute of a unit is `minute` seconds of its resource.
    pub(super) fn platform(repo: &Repo, nimbus: &Path, minute: f64) -> Result<Self> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let units: Vec<Unit> = PLATFORM
            .iter()
            .map(|(name, _, needs)| ((*name).to_owned(), owned(needs)))
            .collect();
        let site = Self::with(repo, nimbus, &units, ProgramKind::Plain)?;
        let latencies = PLATFORM.iter().map(|(name, minutes, _)| {
            let seconds = f64::from(*minutes) * minute;
            format!("    'demo:index:{name}': {{create: {seconds}, update: {seconds}}}\n")
        });
        let orders = format!("latency:\n  types:\n{}", latencies.collect::<String>());
        site.write("orders.yaml", &orders)?;
        Ok(site)
    }

    /// Rows of twenty units, each of which needs up to three of rows before it.
    pub(super) fn wide(repo: &Repo, nimbus: &Path, size: usize) -> Result<Self> {
        let name = |at: usize| format!("u{at:04}");
        let needs = |at: usize| {
            [20, 140, 620]
                .into_iter()
                .filter_map(move |back| at.checked_sub(back))
        };
        let unit = |at: usize| (name(at), needs(at).map(name).collect());
        let units: Vec<Unit> = (0..size).map(unit).collect();
        let site = Self::with(repo, nimbus, &units, ProgramKind::Plain)?;
        site.write("orders.yaml", "latency: {create: 0}\n")?;
        Ok(site)
    }

    /// Units of which none needs another, so that nothing but the parallelism holds them up.
    pub(super) fn aws(repo: &Repo, nimbus: &Path, size: usize) -> Result<Self> {
        let unit = |at: usize| (format!("u{at:04}"), Vec::new());
        let units: Vec<Unit> = (0..size).map(unit).collect();
        let site = Self::with(repo, nimbus, &units, ProgramKind::Aws)?;
        site.write("orders.yaml", "latency: {create: 0}\n")?;
        Ok(site)
    }

    fn with(repo: &Repo, nimbus: &Path, units: &[Unit], kind: ProgramKind) -> Result<Self> {
        let packages = repo.join("library/stacks/node_modules");
        anyhow::ensure!(
            packages.is_dir(),
            "the library's packages are missing: run `cargo xtask setup`"
        );
        let site = Self::empty(repo, nimbus)?;
        for (name, needs) in units {
            site.add_stack(name, needs, kind)?;
        }
        let list: Vec<String> = units.iter().map(|(name, _)| format!("{name}: ")).collect();
        let template = format!(
            "name: bench\nenvironments:\n  dev: {{enabled: true, account: '111111111111', region: eu-west-1}}\n\
             stacks: {{{}}}\n",
            list.join(", ")
        );
        site.write("cloud/tools/templates/default/bench.yaml", &template)?;
        symlink(packages, site.folder.join("cloud/stacks/node_modules"))?;
        let init = [
            "init",
            ID,
            "--org",
            "o",
            "--project",
            "p",
            "--template",
            "bench",
        ];
        process::capture(&mut site.command(&init))?;
        Ok(site)
    }

    fn add_stack(&self, name: &str, needs: &[String], kind: ProgramKind) -> Result<()> {
        let mut config = String::from("  size: '1'\n");
        let mut upstream = String::new();
        for need in needs {
            config.push_str(&format!("  from-{need}: '{{{{RUNTIME:{need}:first}}}}'\n"));
            upstream.push_str(&format!("'{need}': config.require('from-{need}'), "));
        }
        let template = format!(
            "name: {name}\ndependencies: [{}]\nconfig:\n{config}outputs: {{first: }}\n",
            needs.join(", ")
        );
        self.write(
            &format!("cloud/tools/templates/config/{name}.yaml"),
            &template,
        )?;
        let source = format!("cloud/stacks/{name}/src");
        let project = format!("name: {name}\nruntime: nodejs\ndescription: {name}\n");
        self.write(&format!("{source}/Pulumi.yaml"), &project)?;
        let (main, program) = match kind {
            ProgramKind::Plain => ("index.js", plain_program(name, &upstream)),
            ProgramKind::Aws => ("index.ts", AWS_PROGRAM.to_owned()),
        };
        self.write(
            &format!("{source}/package.json"),
            &format!("{{\"main\":\"{main}\"}}\n"),
        )?;
        if main.ends_with(".ts") {
            self.write(&format!("{source}/tsconfig.json"), TYPESCRIPT)?;
        }
        self.write(&format!("{source}/{main}"), &program)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        let folder = path.parent().context("a file has a folder")?;
        fs::create_dir_all(folder)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.nimbus);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("HOME", &self.folder)
            .env("TMPDIR", self.folder.join("tmp"))
            .env_remove("XDG_CACHE_HOME");
        command
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub(super) fn deploy(&self, more: &[&str]) -> Result<Sample> {
        self.deploy_with(more, |_| ())
    }

    /// Lets the caller have a last word on the command.
    pub(super) fn deploy_with(
        &self,
        more: &[&str],
        choose: impl FnOnce(&mut Command),
    ) -> Result<Sample> {
        let usual = ["deploy", ID, "--environment", "dev", "--rehearse", "--json"];
        let mut command = self.command(&usual);
        command.args(["--orders", "orders.yaml"]).args(more);
        choose(&mut command);
        measure::sample(&command, &self.log())
    }

    /// Gives a unit another size, so that its resource is updated.
    pub(super) fn change(&self, unit: &str) -> Result<()> {
        let path = self
            .folder
            .join(format!("cloud/deploy/{ID}-o-p/Deployment_Manifest.yaml"));
        let text = fs::read_to_string(&path)?;
        let at = text
            .find(&format!("\n    {unit}:"))
            .context("the unit is in the manifest")?;
        let (head, tail) = text.split_at(at);
        fs::write(
            &path,
            format!("{head}{}", tail.replacen("size: \"1\"", "size: \"2\"", 1)),
        )?;
        Ok(())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Thousands of files; the next round would remove them too.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

const TYPESCRIPT: &str = r#"{
  "compilerOptions": {
    "target": "es2022", "module": "commonjs", "moduleResolution": "node", "types": ["node"],
    "strict": true, "esModuleInterop": true, "skipLibCheck": true, "noEmit": true
  },
  "files": ["index.ts"]
}
"#;

fn plain_program(name: &str, upstream: &str) -> String {
    format!(
        "const pulumi = require('@pulumi/pulumi');\n\
         const config = new pulumi.Config('{name}');\n\
         class Thing extends pulumi.CustomResource {{\n\
         \x20 constructor(name, args) {{ super('demo:index:{name}', name, args); }}\n\
         }}\n\
         exports.first = new Thing('{name}', {{ size: config.require('size'), {upstream}}}).id;\n"
    )
}

/// The same text for every unit: what is compiled once is compiled for all.
const AWS_PROGRAM: &str = "import * as aws from '@pulumi/aws';
import * as pulumi from '@pulumi/pulumi';
const name = pulumi.getStack();
const bucket = new aws.s3.Bucket(name, { tags: { unit: name } });
const queue = new aws.sqs.Queue(name, { tags: { unit: name } });
export const first = pulumi.interpolate`${bucket.id} ${queue.url}`;
";
