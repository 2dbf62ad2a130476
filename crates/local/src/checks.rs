//! Checks of what was deployed: commands of the manifest, each with a time limit.
//!
//! A check is a command for a shell in the deployment's directory. Everything that it starts ends
//! with it. It is told what it looks at by variables, and finds the outputs of all stacks in a file;
//! secret ones are left out, so a check cannot give them away.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_process::{Exit, Process, Pump, Signal, Started};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::manifest::Check;
use nimbus_orchestrator::resolve::Answer;
use tokio_util::sync::CancellationToken;

/// How long a check that is asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(5);

/// What checks are told.
#[derive(Clone, Debug)]
pub struct CheckScene {
    pub deployment: String,
    pub environment: Environment,
    pub rehearsal: bool,
    /// Where they run.
    pub directory: PathBuf,
    /// File with the outputs of all stacks.
    pub outputs: PathBuf,
}

/// Hears every line that a check writes.
pub type Line = Arc<dyn Fn(String) + Send + Sync>;

/// Runs one check to its end.
///
/// # Errors
///
/// When it does not exit with zero, takes too long, or cannot be started.
pub async fn run_check(
    name: &str,
    check: &Check,
    scene: &CheckScene,
    cancel: &CancellationToken,
    line: &Line,
) -> Result<Duration> {
    let started = Instant::now();
    let failed = |what: String| {
        Error::new(ErrorCode::CHECK_FAILED, format!("check {name} {what}"))
            .with_help("its output is above and in the run's log")
    };
    let child = Process::start(command(check, scene)).await;
    let Started {
        process,
        stdout,
        stderr,
    } = child.map_err(|error| failed(format!("cannot be started: {error}")))?;
    let show = |line: &Line| {
        let line = Arc::clone(line);
        move |text| line(text)
    };
    let mut pumps = (
        Pump::start(stdout, show(line)),
        Pump::start(stderr, show(line)),
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

fn command(check: &Check, scene: &CheckScene) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &check.command])
        .current_dir(&scene.directory)
        .env("NIMBUS_DEPLOYMENT", &scene.deployment)
        .env("NIMBUS_ENVIRONMENT", scene.environment.as_str())
        .env("NIMBUS_REHEARSAL", if scene.rehearsal { "1" } else { "" })
        .env("NIMBUS_OUTPUTS", &scene.outputs)
        // Whoever checks has no business with secrets of states.
        .env_remove(nimbus_engine_backend::PASSPHRASE);
    command
}

/// Writes the outputs that are known and not secret, by stack.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_outputs(
    path: &Path,
    outputs: &BTreeMap<String, BTreeMap<String, Answer>>,
) -> Result<()> {
    let plain = |answers: &BTreeMap<String, Answer>| {
        let shown = answers.iter().filter_map(|(name, answer)| match answer {
            Answer::Known {
                value,
                secret: false,
            } => Some((name.clone(), value.clone())),
            Answer::Known { .. } | Answer::Unknown | Answer::Absent => None,
        });
        shown.collect::<BTreeMap<_, _>>()
    };
    let stacks: BTreeMap<_, _> = outputs
        .iter()
        .map(|(stack, all)| (stack, plain(all)))
        .collect();
    let text = serde_json::to_vec_pretty(&stacks).unwrap_or_default();
    crate::before::write_private(path, &text).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;

    struct Ran {
        result: Result<Duration>,
        lines: Vec<String>,
    }

    async fn run(folder: &Path, command: &str, seconds: u64, cancel: &CancellationToken) -> Ran {
        let check = Check {
            command: command.to_owned(),
            seconds,
            needed: true,
            rehearse: true,
        };
        let scene = CheckScene {
            deployment: "D1".to_owned(),
            environment: Environment::Stage,
            rehearsal: false,
            directory: folder.to_owned(),
            outputs: folder.join("outputs.json"),
        };
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&lines);
        let line: Line = Arc::new(move |text| heard.lock().push(text));
        let result = run_check("smoke", &check, &scene, cancel, &line).await;
        let lines = lines.lock().clone();
        Ran { result, lines }
    }

    #[tokio::test]
    async fn a_check_is_told_what_it_looks_at_and_its_output_is_heard() {
        let temp = tempfile::tempdir().unwrap();
        let secret = Answer::Known {
            value: json!("hush"),
            secret: true,
        };
        let network = BTreeMap::from([
            ("vpcId".to_owned(), Answer::open("vpc-1")),
            ("password".to_owned(), secret),
        ]);
        let outputs = BTreeMap::from([("network".to_owned(), network)]);
        write_outputs(&temp.path().join("outputs.json"), &outputs).unwrap();
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
        let state = fs::read_to_string(status).unwrap_or_default();
        assert!(
            state.is_empty() || state.contains("State:\tZ"),
            "the child is alive: {state}"
        );
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
