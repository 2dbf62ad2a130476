//! The suite over a real Temporal server, with workers in processes of their own where they are killed,
//! and what only this runtime has.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod dev_server;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_core::ErrorCode;
use nimbus_test_tools::{Tool, tool_or_skip};
use nimbus_workflows::{Control, Definitions, FlowState};
use nimbus_workflows_temporal::{TemporalOptions, TemporalRuntime, TemporalWorker};
use nimbus_workflows_testing::{
    Act, Code, Effects, Rig, Scripted, Work, WorkerHandle, behaviours, definitions, eventually,
    suite,
};
use serde_json::json;
use tempfile::TempDir;

use dev_server::DevServer;

const ADDRESS: &str = "NIMBUS_WORKFLOWS_ADDRESS";
const NAMESPACE: &str = "NIMBUS_WORKFLOWS_NAMESPACE";
const FOLDER: &str = "NIMBUS_WORKFLOWS_FOLDER";
const CHANGED: &str = "NIMBUS_WORKFLOWS_CHANGED";

struct TemporalRig {
    runtime: TemporalRuntime,
    options: TemporalOptions,
    effects: Effects,
    _folder: TempDir,
}

/// What is usual takes longer than a test has time for when a process is lost.
fn hasty(address: &str, namespace: &str) -> TemporalOptions {
    TemporalOptions {
        heartbeat: Duration::from_millis(500),
        patience: Duration::from_secs(3),
        lost_attempts: 1,
        ..TemporalOptions::new(address, namespace)
    }
}

async fn temporal(behaviour: &str) -> Option<TemporalRig> {
    let program = Tool::Temporal.find_or_record_skip(behaviour)?;
    let server = dev_server::shared(&program).await;
    // Code that does not do the same again is noticed when nothing is kept: everything is replayed always.
    // Workers in processes of their own keep what they have.
    let options = TemporalOptions {
        kept_flows: 0,
        ..hasty(&server.address(), &dev_server::namespace())
    };
    Some(rig(options).await)
}

async fn rig(options: TemporalOptions) -> TemporalRig {
    let folder = tempfile::tempdir().unwrap();
    TemporalRig {
        runtime: TemporalRuntime::open(options.clone()).await.unwrap(),
        options,
        effects: Effects::at(folder.path()),
        _folder: folder,
    }
}

struct Inside(TemporalWorker);

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
impl Rig for TemporalRig {
    fn effects(&self) -> &Effects {
        &self.effects
    }

    fn control(&self) -> Arc<dyn Control> {
        Arc::new(self.runtime.clone())
    }

    async fn worker(&self, code: Code) -> Box<dyn WorkerHandle> {
        let definitions = definitions(&self.effects, code);
        Box::new(Inside(self.runtime.work(definitions).unwrap()))
    }

    /// This test program again, as the test below.
    async fn process(&self, code: Code) -> Box<dyn WorkerHandle> {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_worker_of_another_test"])
            .env(ADDRESS, &self.options.address)
            .env(NAMESPACE, &self.options.namespace)
            .env(FOLDER, self.effects.folder())
            .env(CHANGED, if code == Code::Changed { "1" } else { "" })
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Box::new(Outside(child))
    }
}

suite!(temporal);

/// Runs for ever when another test starts it, and does nothing otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_another_test() {
    let Ok(address) = std::env::var(ADDRESS) else {
        return;
    };
    let effects = Effects::at(Path::new(&std::env::var(FOLDER).unwrap()));
    let changed = std::env::var(CHANGED).is_ok_and(|value| !value.is_empty());
    let code = if changed {
        Code::Changed
    } else {
        Code::Original
    };
    let options = hasty(&address, &std::env::var(NAMESPACE).unwrap());
    let runtime = TemporalRuntime::open(options).await.unwrap();
    let _worker = runtime.work(definitions(&effects, code)).unwrap();
    std::future::pending::<()>().await;
}

async fn ended(control: &Arc<dyn Control>, id: &nimbus_workflows::FlowId) -> FlowState {
    let waiting = tokio::time::timeout(Duration::from_secs(90), control.result(id));
    waiting.await.unwrap().unwrap()
}

fn receive(topic: &str, millis: Option<u64>) -> Act {
    Act::Receive {
        topic: topic.to_owned(),
        millis,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_loses_nothing() {
    let program = tool_or_skip!(Tool::Temporal);
    let mut server = DevServer::with_files(&program);
    server.answers().await;
    let rig = rig(hasty(&server.address(), "default")).await;
    let (control, worker) = (rig.control(), rig.worker(Code::Original).await);
    let gated = Work {
        attempts: 3,
        ..Work::gated("b", "go")
    };
    let acts = [
        Act::Work(Work::named("a")),
        Act::Work(gated),
        receive("approval", Some(60_000)),
        Act::Work(Work::named("c")),
    ];
    let flow = behaviours::start(&control, "outage", &acts).await;
    eventually("begin b", async || rig.effects.count("begin b") == 1).await;
    server.kill();
    let away = control.status(&flow).await.unwrap_err();
    assert_eq!(away.code(), ErrorCode::WORKFLOW_RUNTIME);
    // The step ends while there is nobody to tell.
    rig.effects.open("go");
    eventually("end b", async || rig.effects.count("end b") == 1).await;
    server.resume();
    server.answers().await;
    control
        .signal(&flow, "approval", json!("yes"), None)
        .await
        .unwrap();
    let expected = json!(["a", "b", "yes", "c"]);
    assert_eq!(ended(&control, &flow).await, FlowState::Succeeded(expected));
    let counts = ["begin a", "begin c"].map(|line| rig.effects.count(line));
    assert_eq!(counts, [1, 1]);
    assert!(
        rig.effects.count("begin b") <= 2,
        "at least once, and not for ever"
    );
    worker.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_ends_its_process_again_and_again_is_given_up_and_undone() {
    let Some(rig) = temporal("a_step_is_given_up").await else {
        return;
    };
    let control = rig.control();
    let acts = [
        Act::Work(Work::named("before")),
        Act::Work(Work::gated("poison", "never")),
    ];
    let flow = behaviours::start(&control, "poison", &acts).await;
    // One attempt of its own, and one that may be lost.
    for times in 1..=2 {
        let process = rig.process(Code::Original).await;
        eventually("begin poison", async || {
            rig.effects.count("begin poison") >= times
        })
        .await;
        process.kill().await;
    }
    let _worker = rig.worker(Code::Original).await;
    match ended(&control, &flow).await {
        FlowState::Failed(failure) => {
            let poisoned = ErrorCode::WORKFLOW_POISONED.to_string();
            assert_eq!(failure.code, poisoned, "{failure:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(rig.effects.count("begin poison"), 2);
    assert_eq!(rig.effects.of("undo"), ["poison", "before"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_does_not_know_a_step_waits_for_one_that_does() {
    let Some(rig) = temporal("an_unknown_step").await else {
        return;
    };
    let control = rig.control();
    let mut older = Definitions::default();
    older.flow::<Scripted>();
    let older = rig.runtime.work(older).unwrap();
    let flow = behaviours::start(&control, "newer", &[Act::Work(Work::named("a"))]).await;
    eventually("it is stuck", async || {
        let record = control.status(&flow).await.unwrap();
        matches!(record.state, FlowState::Stuck(reason) if reason.contains("no step work"))
    })
    .await;
    older.stop().await;
    let _worker = rig.worker(Code::Original).await;
    let expected = FlowState::Succeeded(json!(["a"]));
    assert_eq!(ended(&control, &flow).await, expected);
}

/// Two workers at once, signals from the server's own tools, and an end by force.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_share_the_work_and_the_servers_own_tools_are_understood() {
    let Some(rig) = temporal("workers_share").await else {
        return;
    };
    let (control, first) = (rig.control(), rig.worker(Code::Original).await);
    let _second = rig.worker(Code::Original).await;
    let program = Tool::Temporal.find().unwrap();
    let tool = |arguments: &[&str]| {
        let address = rig.options.address.strip_prefix("http://").unwrap();
        let done = Command::new(&program)
            .args(["workflow", arguments[0]])
            .args(["--address", address, "--namespace", &rig.options.namespace])
            .args(&arguments[1..])
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    };
    let acts = [
        receive("go", None),
        receive("go", Some(300)),
        Act::Work(Work::named("x")),
    ];
    let mut flows = Vec::new();
    for name in ["one", "two", "three"] {
        flows.push(behaviours::start(&control, name, &acts).await);
    }
    // A key makes it one signal; what is no JSON is no signal.
    for _ in 0..2 {
        control
            .signal(&flows[0], "go", json!(1), Some("k"))
            .await
            .unwrap();
    }
    let go = ["signal", "--name", "go", "--input"];
    let raw = [
        "{",
        "--input-meta",
        "encoding=binary/plain",
        "--workflow-id",
        "two",
    ];
    tool(&[&go[..], &raw[..]].concat());
    tool(&[&go[..], &["1", "--workflow-id", "two"]].concat());
    for flow in &flows[..2] {
        let expected = json!([1, null, "x"]);
        assert_eq!(ended(&control, flow).await, FlowState::Succeeded(expected));
    }
    assert_eq!(rig.effects.count("begin x"), 2);
    control
        .signal(&flows[0], "go", json!(1), None)
        .await
        .expect("it has ended");
    // One that stops leaves its work to the other.
    first.kill().await;
    let flow = behaviours::start(&control, "four", &[Act::Work(Work::named("y"))]).await;
    assert_eq!(
        ended(&control, &flow).await,
        FlowState::Succeeded(json!(["y"]))
    );
    tool(&["terminate", "--workflow-id", "three"]);
    match ended(&control, &flows[2]).await {
        FlowState::NeedsAttention(failure) => {
            assert_eq!(failure.code, ErrorCode::WORKFLOW_CANCELLED.to_string());
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_and_a_namespace_that_is_not_are_told_apart() {
    let nowhere = TemporalRuntime::open(TemporalOptions::new("http://127.0.0.1:9", "default"));
    assert_eq!(
        nowhere.await.unwrap_err().code(),
        ErrorCode::WORKFLOW_RUNTIME
    );
    let program = tool_or_skip!(Tool::Temporal);
    let server = dev_server::shared(&program).await;
    let missing = TemporalRuntime::open(TemporalOptions::new(server.address(), "missing"));
    let missing = missing.await.unwrap_err();
    assert_eq!(missing.code(), ErrorCode::WORKFLOW_RUNTIME);
    assert!(missing.to_string().contains("missing"), "{missing}");
}
