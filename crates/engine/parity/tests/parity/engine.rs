//! The two engines behind one face: run an operation on a side, tell what happened.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use nimbus_test_tools::compile_cache;
use serde_json::Value;

use crate::case::{Operation, Step};
use crate::side::{PASSPHRASE, Side};
use crate::tools::Tools;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Official,
    Embedded,
}

/// What an engine said and did in a step.
pub(crate) struct Told {
    pub(crate) succeeded: bool,
    pub(crate) events: Vec<Value>,
    /// What a person would have seen, for messages of this suite.
    pub(crate) output: String,
}

impl Engine {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Official => Self::Embedded,
            Self::Embedded => Self::Official,
        }
    }

    /// In messages of this suite.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::Embedded => "nimbus",
        }
    }

    pub(crate) fn run(self, step: &Step, side: &Side, tools: &Tools) -> Told {
        match self {
            Self::Official => official(step, side, tools),
            Self::Embedded => embedded(step, side, tools),
        }
    }

    /// The state in the export form, secrets in the clear.
    pub(crate) fn export(self, stack: &str, side: &Side, tools: &Tools) -> Value {
        let mut command = match self {
            Self::Official => {
                let mut command = pulumi(side, tools);
                command.args(["stack", "export", "--stack", stack]);
                command
            }
            Self::Embedded => {
                let mut command = nimbus(side, tools);
                command.args(["state", "export", "--stack", stack]);
                command
                    .args(["--dir", "."])
                    .arg("--backend")
                    .arg(address(side));
                command
            }
        };
        let output = command.arg("--show-secrets").output().unwrap();
        assert!(
            output.status.success(),
            "{self:?}: no export: {}",
            shown(&output)
        );
        parsed(&output.stdout)
    }

    /// Why the official reader refuses the state of the usual stack, if it does. Whether resources
    /// contradict each other is not asked.
    pub(crate) fn official_refusal(side: &Side, tools: &Tools) -> Option<String> {
        let mut command = pulumi(side, tools);
        command.args(["stack", "export", "--stack", "dev"]);
        command.arg("--disable-integrity-checking");
        let output = command.output().unwrap();
        (!output.status.success()).then(|| shown(&output))
    }

    /// Puts a state in place of that of the usual stack.
    pub(crate) fn import_state(self, file: &Path, side: &Side, tools: &Tools) {
        let mut command = match self {
            Self::Official => {
                let mut command = pulumi(side, tools);
                command.args(["stack", "import", "--stack", "dev", "--file"]);
                command.arg(file);
                command
            }
            Self::Embedded => {
                let mut command = nimbus(side, tools);
                command.args(["state", "import", "--file"]).arg(file);
                command
                    .args(["--yes", "--stack", "dev", "--dir", ".", "--backend"])
                    .arg(address(side));
                command
            }
        };
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{self:?}: no import: {}",
            shown(&output)
        );
    }
}

fn official(step: &Step, side: &Side, tools: &Tools) -> Told {
    let log = side.root.join("events.json");
    let _ = fs::remove_file(&log);
    let mut command = pulumi(side, tools);
    command
        .args([step.operation.verb(), "--stack", step.stack])
        .args(["--non-interactive", "--color", "never", "--parallel", "1"])
        .arg("--event-log")
        .arg(&log);
    if step.operation != Operation::Preview {
        command.args(["--yes", "--skip-preview"]);
    }
    if step.operation == Operation::Import {
        command.args(["--generate-code=false"]);
    }
    let output = command.args(&step.flags).output().unwrap();
    Told {
        succeeded: output.status.success(),
        events: read_events(&fs::read(&log).unwrap_or_default()),
        output: shown(&output),
    }
}

fn embedded(step: &Step, side: &Side, tools: &Tools) -> Told {
    let mut command = nimbus(side, tools);
    command
        .args(["--json", "program", step.operation.verb()])
        .args(["--dir", ".", "--stack", step.stack, "--parallel", "1"])
        .arg("--backend")
        .arg(address(side));
    if step.operation != Operation::Preview {
        command.args(["--yes", "--skip-preview"]);
    }
    if step.runs_program() {
        // Types of these programs are checked by whoever writes them; here it costs seconds.
        command.arg("--no-typecheck");
    }
    if step.loses_many {
        command.arg("--allow-mass-removal");
    }
    let output = command.args(&step.flags).output().unwrap();
    Told {
        succeeded: output.status.success(),
        events: read_events(&output.stdout),
        output: shown(&output),
    }
}

fn read_events(bytes: &[u8]) -> Vec<Value> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(parsed)
        .collect()
}

/// Keys in one order, whatever order the writer had: they are compared as text.
fn parsed(bytes: &[u8]) -> Value {
    let mut value: Value = serde_json::from_slice(bytes).unwrap();
    value.sort_all_objects();
    value
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn address(side: &Side) -> String {
    format!("file://{}", side.backend().display())
}

fn pulumi(side: &Side, tools: &Tools) -> Command {
    let program = tools
        .official
        .as_deref()
        .expect("only called where it is present");
    let mut command = prepared(program, side, tools);
    command
        .env("PULUMI_BACKEND_URL", address(side))
        .env("PULUMI_SKIP_UPDATE_CHECK", "true")
        // Nothing of a test comes from the network.
        .env("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true")
        // Shows --event-log.
        .env("PULUMI_DEBUG_COMMANDS", "true");
    command
}

fn nimbus(side: &Side, tools: &Tools) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_nimbus-compared"));
    let mut command = prepared(program, side, tools);
    command.env("XDG_CACHE_HOME", compile_cache(program));
    command
}

/// What both engines and everything below them get to see.
fn prepared(program: &Path, side: &Side, tools: &Tools) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(side.program())
        .env_clear()
        .env("PATH", tools.path_variable())
        .env("HOME", side.home())
        .env("LANG", "C.UTF-8")
        .env("PARITY_WORLD", side.world())
        .env("PARITY_GIVEN", "given to the engine")
        .env("PULUMI_HOME", &tools.home)
        .env("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
        // What `--no-typecheck` is to Nimbus.
        .env("PULUMI_NODEJS_TRANSPILE_ONLY", "true");
    command
}
