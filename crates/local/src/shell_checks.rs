//! Checks of what was deployed: commands of the manifest, each with a time limit.
//!
//! A check is a command for a shell in the deployment's directory. Everything that it starts ends
//! with it. It is told what it looks at by variables, and finds the outputs of all stacks in a file;
//! secret ones are left out, so a check cannot give them away. Where programs run in a sandbox, checks do
//! too: a manifest is as much a stranger's as a program is.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_disk::{FileMode, FolderFiles, layout, unwritable};
use nimbus_engine_operations::{EnclosedCommand, SandboxSettings, enclose};
use nimbus_engine_process::{
    ChildProcess, CodeIsolation, CodeOrigin, Exit, OutputLines, Signal, Started,
};
use nimbus_orchestrator::{CheckCommand, LookupValue};
use nimbus_runs::ports::{CheckOutput, CheckRunner, CheckSubject};
use tokio_util::sync::CancellationToken;

use crate::place::Records;

/// How long a check that is asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(5);

/// Runs checks as commands of a shell on this machine.
#[derive(Clone, Debug)]
pub(crate) struct ShellChecks {
    /// Where they run.
    directory: PathBuf,
    runs: PathBuf,
    files: FolderFiles,
    sandbox: Option<SandboxedChecks>,
}

/// How checks are kept from everything else.
#[derive(Clone, Debug)]
struct SandboxedChecks {
    settings: SandboxSettings,
    /// The workspace: nothing outside of it is shown because a deployment's folder is a link.
    root: PathBuf,
}

/// Variables that a check is told things by.
const TOLD: [&str; 4] = [
    "NIMBUS_DEPLOYMENT",
    "NIMBUS_ENVIRONMENT",
    "NIMBUS_REHEARSAL",
    "NIMBUS_OUTPUTS",
];

impl ShellChecks {
    pub(crate) fn new(records: &Records) -> Self {
        Self {
            directory: records.directory().to_owned(),
            runs: layout::runs(records.directory()),
            files: records.files().clone(),
            sandbox: None,
        }
    }

    /// Runs checks in the sandbox of programs.
    pub(crate) fn sandboxed(mut self, settings: Option<SandboxSettings>, root: &Path) -> Self {
        self.sandbox = settings.map(|settings| SandboxedChecks {
            settings,
            root: root.to_owned(),
        });
        self
    }

    /// File with the outputs of all components, in the folder of the run.
    fn outputs(&self, subject: &CheckSubject) -> PathBuf {
        self.runs.join(subject.run.to_string()).join("outputs.json")
    }
}

#[async_trait]
impl CheckRunner for ShellChecks {
    async fn hand_over(
        &self,
        subject: &CheckSubject,
        outputs: &BTreeMap<ComponentName, BTreeMap<String, LookupValue>>,
    ) -> Result<()> {
        write_outputs(&self.files, &self.outputs(subject), outputs)
    }

    async fn run(
        &self,
        name: &str,
        check: &CheckCommand,
        subject: &CheckSubject,
        stop: &CancellationToken,
        output: Arc<CheckOutput>,
    ) -> Result<()> {
        let command = self.command(check, subject);
        let Some(sandbox) = &self.sandbox else {
            let origin = CodeOrigin::Tenants(CodeIsolation::OwnProject);
            return run_check(name, check, (command, origin), stop, output)
                .await
                .map(drop);
        };
        let shown = [self.directory.clone(), self.outputs(subject)];
        let shown: Vec<PathBuf> = shown.into_iter().filter(|path| path.exists()).collect();
        let EnclosedCommand { command, session } =
            enclose(&sandbox.settings, &sandbox.root, &command, &shown, &TOLD).await?;
        let origin = CodeOrigin::Tenants(CodeIsolation::Sandbox);
        let ran = run_check(name, check, (command, origin), stop, output).await;
        drop(session);
        ran.map(drop)
    }
}

/// Runs one check to its end.
///
/// # Errors
///
/// When it does not exit with zero, takes too long, or cannot be started.
async fn run_check(
    name: &str,
    check: &CheckCommand,
    (command, origin): (Command, CodeOrigin),
    cancel: &CancellationToken,
    output: Arc<CheckOutput>,
) -> Result<Duration> {
    let started = Instant::now();
    let failed = |what: String| {
        Error::new(ErrorCode::CHECK_FAILED, format!("check {name} {what}"))
            .with_help("its output is above and in the run's log")
    };
    let child = ChildProcess::start(command, origin).await;
    let Started {
        process,
        stdout,
        stderr,
    } = child.map_err(|error| failed(format!("cannot be started: {error}")))?;
    let show = || {
        let output = Arc::clone(&output);
        move |text| output(text)
    };
    let mut pumps = (
        OutputLines::start(stdout, show()),
        OutputLines::start(stderr, show()),
    );
    let limit = Duration::from_secs(check.seconds);
    let ended = tokio::select! {
        exit = process.ended() => Ok(exit),
        () = tokio::time::sleep(limit) => Err(format!("took longer than {}s", check.seconds)),
        () = cancel.cancelled() => Err("was stopped".to_owned()),
    };
    if ended.is_err() {
        process.end(Signal::SIGTERM, GRACE).await;
    }
    pumps.0.drain(GRACE).await;
    pumps.1.drain(GRACE).await;
    match ended.map_err(failed)? {
        Exit::Code(0) => Ok(started.elapsed()),
        Exit::Code(code) => Err(failed(format!("ended with {code}"))),
        Exit::Signal(signal) => Err(failed(format!("was ended by signal {signal}"))),
        Exit::Unknown => Err(failed("ended, and nobody knows how".to_owned())),
    }
}

impl ShellChecks {
    fn command(&self, check: &CheckCommand, subject: &CheckSubject) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &check.command])
            .current_dir(&self.directory)
            .env("NIMBUS_DEPLOYMENT", subject.deployment.as_str())
            .env("NIMBUS_ENVIRONMENT", subject.environment.as_str())
            .env("NIMBUS_REHEARSAL", if subject.rehearsal { "1" } else { "" })
            .env("NIMBUS_OUTPUTS", self.outputs(subject))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // Whoever checks has no business with secrets of states, nor with our own settings.
        for (name, _) in std::env::vars_os() {
            if is_ours(&name) {
                command.env_remove(name);
            }
        }
        command
    }
}

/// Whether a variable is about Nimbus itself, or opens states.
fn is_ours(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let told = TOLD.contains(&&*name);
    name.starts_with("PULUMI_") || (name.starts_with("NIMBUS_") && !told)
}

/// Writes the outputs that are known and not secret, by stack.
///
/// # Errors
///
/// When the file cannot be written.
fn write_outputs(
    files: &FolderFiles,
    path: &Path,
    outputs: &BTreeMap<ComponentName, BTreeMap<String, LookupValue>>,
) -> Result<()> {
    let plain = |answers: &BTreeMap<String, LookupValue>| {
        let shown = answers.iter().filter_map(|(name, answer)| match answer {
            LookupValue::Known {
                value,
                secret: false,
            } => Some((name.clone(), value.clone())),
            LookupValue::Known { .. } | LookupValue::Unknown | LookupValue::Absent => None,
        });
        shown.collect::<BTreeMap<_, _>>()
    };
    let stacks: BTreeMap<_, _> = outputs
        .iter()
        .map(|(stack, all)| (stack, plain(all)))
        .collect();
    let text = serde_json::to_vec_pretty(&stacks).unwrap_or_default();
    let written = files.replace(path, &text, FileMode::Private);
    written.map_err(|error| unwritable(path, error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nimbus_core::EnvironmentName;
    use nimbus_orchestrator::RunId;
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;

    struct CheckRun {
        result: Result<Duration>,
        lines: Vec<String>,
    }

    fn subject() -> CheckSubject {
        CheckSubject {
            deployment: "D1".parse().unwrap(),
            environment: EnvironmentName::STAGE,
            rehearsal: false,
            run: RunId(1),
        }
    }

    async fn run(
        folder: &Path,
        command: &str,
        seconds: u64,
        cancel: &CancellationToken,
    ) -> CheckRun {
        let check = CheckCommand {
            command: command.to_owned(),
            seconds,
            needed: true,
            rehearse: true,
        };
        let checks = ShellChecks::new(&Records::real(folder));
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&lines);
        let output: Arc<CheckOutput> = Arc::new(move |text| heard.lock().push(text));
        let command = checks.command(&check, &subject());
        let origin = CodeOrigin::Tenants(CodeIsolation::OwnProject);
        let result = run_check("smoke", &check, (command, origin), cancel, output).await;
        let lines = lines.lock().clone();
        CheckRun { result, lines }
    }

    #[tokio::test]
    async fn a_check_is_told_what_it_looks_at_and_its_output_is_heard() {
        let temp = tempfile::tempdir().unwrap();
        let secret = LookupValue::Known {
            value: json!("hush"),
            secret: true,
        };
        let network = BTreeMap::from([
            ("vpcId".to_owned(), LookupValue::open("vpc-1")),
            ("password".to_owned(), secret),
        ]);
        let outputs = BTreeMap::from([("network".parse().unwrap(), network)]);
        let checks = ShellChecks::new(&Records::real(temp.path()));
        checks.hand_over(&subject(), &outputs).await.unwrap();
        let command = "echo $NIMBUS_DEPLOYMENT $NIMBUS_ENVIRONMENT; cat $NIMBUS_OUTPUTS";
        let ran = run(temp.path(), command, 300, &CancellationToken::new()).await;
        ran.result.unwrap();
        assert_eq!(ran.lines[0], "D1 stage");
        let text = ran.lines.join("\n");
        assert!(text.contains("vpc-1") && !text.contains("hush"), "{text}");
    }

    #[tokio::test]
    async fn a_check_that_fails_says_how() {
        let temp = tempfile::tempdir().unwrap();
        let ran = run(
            temp.path(),
            "echo no >&2; exit 7",
            300,
            &CancellationToken::new(),
        )
        .await;
        let error = ran.result.unwrap_err();
        assert_eq!(error.code(), ErrorCode::CHECK_FAILED);
        assert_eq!(error.message(), "check smoke ended with 7");
        assert_eq!(ran.lines, ["no"]);
    }

    #[tokio::test]
    async fn a_check_that_takes_too_long_ends_with_everything_it_started() {
        let temp = tempfile::tempdir().unwrap();
        let command = "sleep 600 & echo $! > child; sleep 600";
        let ran = run(temp.path(), command, 2, &CancellationToken::new()).await;
        let message = ran.result.unwrap_err().message().to_owned();
        assert_eq!(message, "check smoke took longer than 2s");
        let child = fs::read_to_string(temp.path().join("child")).unwrap();
        let status = Path::new("/proc").join(child.trim()).join("status");
        // It was told to end before the check was over; the kernel may need a moment to do so.
        let told = Instant::now();
        loop {
            let state = fs::read_to_string(&status).unwrap_or_default();
            if state.is_empty() || state.contains("State:\tZ") {
                break;
            }
            assert!(told.elapsed().as_secs() < 30, "the child is alive: {state}");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_check_ends_when_the_run_is_stopped() {
        let temp = tempfile::tempdir().unwrap();
        let cancel = CancellationToken::new();
        cancel.cancel();
        let ran = run(temp.path(), "sleep 600", 3600, &cancel).await;
        assert_eq!(ran.result.unwrap_err().message(), "check smoke was stopped");
    }
}
