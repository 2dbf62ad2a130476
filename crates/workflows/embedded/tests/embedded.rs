//! The suite over real PostgreSQL, with workers in processes of their own where they are killed.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_control_testing::TestDatabase;
use nimbus_core::ErrorCode;
use nimbus_test_tools::{Tool, tool_or_skip};
use nimbus_workflows::{Control, FlowState};
use nimbus_workflows_embedded::{EmbeddedOptions, EmbeddedRuntime, EmbeddedWorker};
use nimbus_workflows_testing::{
    Act, Code, Effects, Rig, Work, WorkerHandle, behaviours, definitions, eventually, suite,
};
use secrecy::SecretString;
use tempfile::TempDir;

const URL: &str = "NIMBUS_WORKFLOWS_URL";
const FOLDER: &str = "NIMBUS_WORKFLOWS_FOLDER";
const CHANGED: &str = "NIMBUS_WORKFLOWS_CHANGED";

struct EmbeddedRig {
    runtime: EmbeddedRuntime,
    url: String,
    effects: Effects,
    _folder: TempDir,
}

async fn embedded(behaviour: &str) -> Option<EmbeddedRig> {
    let binaries = Tool::Postgres.find_or_record_skip(behaviour)?;
    let url = database(&binaries, behaviour).await;
    let options = EmbeddedOptions::new(SecretString::from(url.clone()));
    let folder = tempfile::tempdir().unwrap();
    Some(EmbeddedRig {
        runtime: EmbeddedRuntime::open(options).await.unwrap(),
        url,
        effects: Effects::at(folder.path()),
        _folder: folder,
    })
}

async fn database(binaries: &Path, behaviour: &str) -> String {
    let socket = nimbus_control_testing::shared_cluster(binaries);
    let name: String = behaviour.chars().take(50).collect();
    let config = TestDatabase::vacant(binaries, nimbus_control_store::Isolation::Shared);
    let mut postgres = config.clone();
    postgres.address.database = "postgres".to_owned();
    TestDatabase::run_on(&postgres, &format!("CREATE DATABASE {name}")).await;
    let user = &config.administrator.user;
    format!(
        "postgres://{user}@localhost/{name}?host={}",
        socket.display()
    )
}

struct Inside(EmbeddedWorker);

#[async_trait]
impl WorkerHandle for Inside {
    async fn kill(self: Box<Self>) {
        self.0.stop().await;
    }
}

struct Outside(Child);

#[async_trait]
impl WorkerHandle for Outside {
    async fn kill(mut self: Box<Self>) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[async_trait]
impl Rig for EmbeddedRig {
    fn effects(&self) -> &Effects {
        &self.effects
    }

    fn control(&self) -> Arc<dyn Control> {
        Arc::new(self.runtime.clone())
    }

    async fn worker(&self, code: Code) -> Box<dyn WorkerHandle> {
        Box::new(Inside(self.runtime.work(definitions(&self.effects, code))))
    }

    /// This test program again, as the test below.
    async fn process(&self, code: Code) -> Box<dyn WorkerHandle> {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_worker_of_another_test"])
            .env(URL, &self.url)
            .env(FOLDER, self.effects.folder())
            .env(CHANGED, if code == Code::Changed { "1" } else { "" })
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Box::new(Outside(child))
    }
}

suite!(embedded);

/// Runs for ever when another test starts it, and does nothing otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_another_test() {
    let Ok(url) = std::env::var(URL) else {
        return;
    };
    let effects = Effects::at(Path::new(&std::env::var(FOLDER).unwrap()));
    let changed = std::env::var(CHANGED).is_ok_and(|value| !value.is_empty());
    let code = if changed {
        Code::Changed
    } else {
        Code::Original
    };
    let options = EmbeddedOptions::new(SecretString::from(url));
    let runtime = EmbeddedRuntime::open(options).await.unwrap();
    let _worker = runtime.work(definitions(&effects, code));
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_executes_and_the_next_takes_over() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let url = database(&binaries, "one_owner").await;
    let folder = tempfile::tempdir().unwrap();
    let effects = Effects::at(folder.path());
    let options = EmbeddedOptions::new(SecretString::from(url));
    let runtime = EmbeddedRuntime::open(options).await.unwrap();
    let first = runtime.work(definitions(&effects, Code::Original));
    first.owns().wait_for(|owns| *owns).await.unwrap();
    let second = runtime.work(definitions(&effects, Code::Original));
    let mut owns = second.owns();
    assert!(!*owns.borrow(), "two own at once");
    first.stop().await;
    owns.wait_for(|owns| *owns).await.unwrap();
    second.stop().await;
}

/// A runtime on a database of its own, with other options than usual.
async fn tuned(
    name: &str,
    binaries: &Path,
    adjust: impl FnOnce(&mut EmbeddedOptions),
) -> (EmbeddedRig, EmbeddedRuntime) {
    let url = database(binaries, name).await;
    let folder = tempfile::tempdir().unwrap();
    let mut options = EmbeddedOptions::new(SecretString::from(url.clone()));
    let usual = EmbeddedRuntime::open(options.clone()).await.unwrap();
    adjust(&mut options);
    let runtime = EmbeddedRuntime::open(options).await.unwrap();
    let rig = EmbeddedRig {
        runtime: usual,
        url,
        effects: Effects::at(folder.path()),
        _folder: folder,
    };
    (rig, runtime)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_that_ends_its_process_again_and_again_is_given_up() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let (rig, runtime) = tuned("given_up", &binaries, |options| {
        options.fruitless_begins = 2;
    })
    .await;
    let control = rig.control();
    let acts = [Act::Work(Work::gated("a", "never"))];
    let flow = behaviours::start(&control, "poison", &acts).await;
    for times in 1..=3 {
        let process = rig.process(Code::Original).await;
        eventually("begin a", async || rig.effects().count("begin a") >= times).await;
        process.kill().await;
    }
    let worker = runtime.work(definitions(&rig.effects, Code::Original));
    let waiting = tokio::time::timeout(Duration::from_secs(60), control.result(&flow));
    match waiting.await.unwrap().unwrap() {
        FlowState::Failed(failure) | FlowState::NeedsAttention(failure) => {
            let poisoned = ErrorCode::WORKFLOW_POISONED.to_string();
            assert_eq!(failure.code, poisoned, "{failure:?}");
        }
        other => panic!("{other:?}"),
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_that_ended_are_deleted_after_their_time_and_not_before() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let (rig, runtime) = tuned("retention", &binaries, |options| {
        options.retention = Duration::ZERO;
    })
    .await;
    let control = rig.control();
    let acts = [Act::Work(Work::named("a"))];
    let flow = behaviours::start(&control, "short", &acts).await;
    let usual = rig.worker(Code::Original).await;
    control.result(&flow).await.unwrap();
    usual.kill().await;
    assert!(
        control.status(&flow).await.is_ok(),
        "thirty days are not over"
    );
    let worker = runtime.work(definitions(&rig.effects, Code::Original));
    eventually("it is gone", async || control.status(&flow).await.is_err()).await;
    worker.stop().await;
}
