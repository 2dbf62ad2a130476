//! The control plane's workflows in memory, over ports that a test moves by hand.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_control_flows::{
    APPROVAL_DECISION, ApprovalStanding, ExportedStates, PlatformWork, RUN_CHANGED, RemovedRecords,
    RunFlowInput, RunRows, RunStanding, TokenCleanupWorkflow, approval_flow_of, definitions,
    ensure_platform_schedules, new_run_flow, platform_schedules,
};
use nimbus_core::{Error, ErrorCode, Result, TenantId};
use nimbus_workflows::{Control, FlowDef as _, FlowId, FlowState, NewFlow};
use nimbus_workflows_testing::{MemoryControl, MemoryStore, MemoryWorker, eventually};
use parking_lot::Mutex;
use serde_json::{Value, json};
use uuid::Uuid;

/// A control plane of one run.
#[derive(Debug, Default)]
struct Plane {
    run: Mutex<Option<RunStanding>>,
    approval: Mutex<Option<ApprovalStanding>>,
    stopped: Mutex<u32>,
    failures: Mutex<u32>,
    called: Mutex<BTreeMap<&'static str, u32>>,
}

impl Plane {
    fn call(&self, name: &'static str) -> Result<()> {
        *self.called.lock().entry(name).or_default() += 1;
        let mut failures = self.failures.lock();
        if *failures == 0 {
            return Ok(());
        }
        *failures -= 1;
        Err(Error::new(ErrorCode::INTERNAL, "not now"))
    }

    fn run_is(&self, status: &str, result: Option<&str>, approval: Option<Uuid>) {
        *self.run.lock() = Some(RunStanding {
            status: status.to_owned(),
            result: result.map(str::to_owned),
            approval,
            problem: None,
        });
    }

    fn approval_is(&self, status: &str) {
        *self.approval.lock() = Some(ApprovalStanding {
            status: status.to_owned(),
            seconds_left: Some(3600),
        });
    }
}

#[async_trait]
impl PlatformWork for Plane {
    async fn remove_ended_sessions(&self) -> Result<u64> {
        self.call("sessions").map(|()| 7)
    }
    async fn remove_old_records(&self) -> Result<RemovedRecords> {
        self.call("records").map(|()| RemovedRecords::default())
    }
    async fn archive_audit(&self) -> Result<u64> {
        self.call("audit").map(|()| 0)
    }
    async fn gather_digests(&self) -> Result<u64> {
        self.call("digests").map(|()| 0)
    }
    async fn export_states(&self) -> Result<ExportedStates> {
        let off = ExportedStates {
            off: true,
            ..ExportedStates::default()
        };
        self.call("states").map(|()| off)
    }
}

#[async_trait]
impl RunRows for Plane {
    async fn run_standing(&self, _: TenantId, _: Uuid, _: i32) -> Result<Option<RunStanding>> {
        self.call("run")?;
        Ok(self.run.lock().clone())
    }
    async fn approval_standing(&self, _: TenantId, _: Uuid) -> Result<Option<ApprovalStanding>> {
        self.call("approval")?;
        Ok(self.approval.lock().clone())
    }
    async fn stop_run(&self, _: TenantId, _: Uuid) -> Result<()> {
        *self.stopped.lock() += 1;
        self.run_is("ended", Some("cancelled"), None);
        Ok(())
    }
}

/// Does everything twice, as whoever was told that nothing came of the first time.
#[derive(Debug)]
struct Repeated(Arc<Plane>);

#[async_trait]
impl PlatformWork for Repeated {
    async fn remove_ended_sessions(&self) -> Result<u64> {
        self.0.remove_ended_sessions().await?;
        self.0.remove_ended_sessions().await
    }
    async fn remove_old_records(&self) -> Result<RemovedRecords> {
        self.0.remove_old_records().await?;
        self.0.remove_old_records().await
    }
    async fn archive_audit(&self) -> Result<u64> {
        self.0.archive_audit().await?;
        self.0.archive_audit().await
    }
    async fn gather_digests(&self) -> Result<u64> {
        self.0.gather_digests().await?;
        self.0.gather_digests().await
    }
    async fn export_states(&self) -> Result<ExportedStates> {
        self.0.export_states().await?;
        self.0.export_states().await
    }
}

#[async_trait]
impl RunRows for Repeated {
    async fn run_standing(&self, t: TenantId, r: Uuid, l: i32) -> Result<Option<RunStanding>> {
        self.0.run_standing(t, r, l).await?;
        self.0.run_standing(t, r, l).await
    }
    async fn approval_standing(&self, t: TenantId, a: Uuid) -> Result<Option<ApprovalStanding>> {
        self.0.approval_standing(t, a).await?;
        self.0.approval_standing(t, a).await
    }
    async fn stop_run(&self, t: TenantId, r: Uuid) -> Result<()> {
        self.0.stop_run(t, r).await?;
        self.0.stop_run(t, r).await
    }
}

struct World {
    plane: Arc<Plane>,
    control: MemoryControl,
    _worker: MemoryWorker,
}

fn world() -> World {
    let plane = Arc::new(Plane::default());
    let store = MemoryStore::default();
    let platform: Arc<dyn PlatformWork> = plane.clone();
    let runs: Arc<dyn RunRows> = plane.clone();
    World {
        control: MemoryControl::new(&store),
        _worker: MemoryWorker::start(&store, definitions(&platform, &runs)),
        plane,
    }
}

/// As [`world`], with every step done twice.
fn repeating_world() -> World {
    let plane = Arc::new(Plane::default());
    let store = MemoryStore::default();
    let repeated = Arc::new(Repeated(Arc::clone(&plane)));
    let platform: Arc<dyn PlatformWork> = repeated.clone();
    let runs: Arc<dyn RunRows> = repeated;
    World {
        control: MemoryControl::new(&store),
        _worker: MemoryWorker::start(&store, definitions(&platform, &runs)),
        plane,
    }
}

impl World {
    /// Starts the workflow of a run.
    async fn begin(&self, action: &str) -> FlowId {
        let input = RunFlowInput {
            tenant: TenantId::random(),
            run: Uuid::new_v4(),
            life: 1,
        };
        let new = new_run_flow(action, &input).unwrap().unwrap();
        let id = new.id.clone();
        self.control.start(new).await.unwrap();
        id
    }

    async fn tell(&self, id: &FlowId, topic: &str) {
        let told = self.control.signal(id, topic, Value::Null, None);
        told.await.unwrap();
    }
}

#[tokio::test]
async fn a_run_waits_for_people_then_for_its_row_and_ends_as_it_does() {
    let world = world();
    world.plane.approval_is("pending");
    world.plane.run_is("queued", None, Some(Uuid::new_v4()));
    let id = world.begin("deploy").await;
    let chain = approval_flow_of(&id).unwrap();
    eventually("the chain waits", async || {
        world.control.status(&chain).await.is_ok()
            && world.plane.called.lock().get("approval") == Some(&1)
    })
    .await;
    // A signal decides nothing by itself.
    world.tell(&chain, APPROVAL_DECISION).await;
    eventually("it looked again", async || {
        world.plane.called.lock().get("approval") == Some(&2)
    })
    .await;
    assert_eq!(
        world.control.status(&chain).await.unwrap().state,
        FlowState::Running
    );
    world.plane.approval_is("approved");
    world.plane.run_is("running", None, None);
    world.tell(&chain, APPROVAL_DECISION).await;
    let approved = world.control.result(&chain).await.unwrap();
    assert_eq!(approved, FlowState::Succeeded(json!("approved")));
    world.plane.run_is("ended", Some("succeeded"), None);
    world.tell(&id, RUN_CHANGED).await;
    let ended = world.control.result(&id).await.unwrap();
    assert_eq!(ended, FlowState::Succeeded(json!({"result": "succeeded"})));
    assert_eq!(*world.plane.stopped.lock(), 0);
}

/// Every step twice, every signal twice, and the start itself: the same end, and one of it.
#[tokio::test]
async fn steps_and_signals_that_come_twice_end_as_those_that_come_once() {
    let world = repeating_world();
    world.plane.approval_is("pending");
    world.plane.run_is("queued", None, Some(Uuid::new_v4()));
    let input = RunFlowInput {
        tenant: TenantId::random(),
        run: Uuid::new_v4(),
        life: 1,
    };
    let start = || new_run_flow("deploy", &input).unwrap().unwrap();
    let id = start().id;
    world.control.start(start()).await.unwrap();
    // Whether the second start is told of or not, there is one workflow of this name.
    let _ = world.control.start(start()).await;
    let chain = approval_flow_of(&id).unwrap();
    let twice = async |id: &FlowId, topic: &str| {
        for _ in 0..2 {
            // To one that has ended meanwhile nothing can be said any more.
            let _ = world.control.signal(id, topic, Value::Null, None).await;
        }
    };
    eventually("the chain waits", async || {
        world.control.status(&chain).await.is_ok()
            && world.plane.called.lock().get("approval") >= Some(&2)
    })
    .await;
    twice(&chain, APPROVAL_DECISION).await;
    assert_eq!(
        world.control.status(&chain).await.unwrap().state,
        FlowState::Running,
        "a signal decides nothing, twice neither"
    );
    world.plane.approval_is("approved");
    world.plane.run_is("running", None, None);
    twice(&chain, APPROVAL_DECISION).await;
    let approved = world.control.result(&chain).await.unwrap();
    assert_eq!(approved, FlowState::Succeeded(json!("approved")));
    world.plane.run_is("ended", Some("succeeded"), None);
    twice(&id, RUN_CHANGED).await;
    let ended = world.control.result(&id).await.unwrap();
    assert_eq!(ended, FlowState::Succeeded(json!({"result": "succeeded"})));
    assert_eq!(*world.plane.stopped.lock(), 0);

    // Cancelled twice, stopped by a step that runs twice: it has stopped, and says so once.
    world.plane.run_is("running", None, None);
    let id = world.begin("refresh").await;
    eventually("it follows the run", async || {
        world.plane.called.lock().get("run") >= Some(&4)
    })
    .await;
    world.control.cancel(&id).await.unwrap();
    let _ = world.control.cancel(&id).await;
    let ended = world.control.result(&id).await.unwrap();
    assert_eq!(ended, FlowState::Cancelled);
    let run = world.plane.run.lock().clone().unwrap();
    assert_eq!(run.result.as_deref(), Some("cancelled"));
    for schedule in platform_schedules() {
        let id = FlowId::new(format!("{}twice", schedule.id_prefix())).unwrap();
        let new = NewFlow {
            id: id.clone(),
            flow: schedule.flow,
            input: schedule.input,
        };
        world.control.start(new).await.unwrap();
        let ended = world.control.result(&id).await.unwrap();
        assert!(matches!(ended, FlowState::Succeeded(_)), "{id}: {ended:?}");
    }
}

#[tokio::test]
async fn a_run_that_failed_fails_its_workflow_and_one_that_is_gone_does_not() {
    let world = world();
    world.plane.run_is("ended", Some("failed"), None);
    let id = world.begin("destroy").await;
    let FlowState::Failed(failure) = world.control.result(&id).await.unwrap() else {
        unreachable!("it failed");
    };
    assert_eq!(failure.code, "NIM-0909");
    *world.plane.run.lock() = None;
    let id = world.begin("preview").await;
    let gone = world.control.result(&id).await.unwrap();
    assert_eq!(gone, FlowState::Succeeded(json!({"result": null})));
}

#[tokio::test]
async fn a_workflow_that_is_cancelled_takes_its_run_along() {
    let world = world();
    world.plane.run_is("running", None, None);
    let id = world.begin("refresh").await;
    eventually("it follows the run", async || {
        world.plane.called.lock().get("run") >= Some(&2)
    })
    .await;
    world.control.cancel(&id).await.unwrap();
    assert_eq!(
        world.control.result(&id).await.unwrap(),
        FlowState::Cancelled
    );
    assert_eq!(*world.plane.stopped.lock(), 1);
}

#[tokio::test(start_paused = true)]
async fn scheduled_work_that_fails_is_tried_again_and_its_history_has_the_end() {
    let world = world();
    *world.plane.failures.lock() = 3;
    let id = FlowId::new("schedule:cleanup-expired-tokens:now").unwrap();
    let new = NewFlow::of::<TokenCleanupWorkflow>(id.clone(), &()).unwrap();
    world.control.start(new).await.unwrap();
    let ended = world.control.result(&id).await.unwrap();
    assert_eq!(ended, FlowState::Succeeded(json!(7)));
    assert_eq!(world.plane.called.lock().get("sessions"), Some(&4));
}

#[tokio::test]
async fn schedules_are_made_once_and_a_paused_one_stays_paused() {
    let world = world();
    ensure_platform_schedules(&world.control).await.unwrap();
    let mut paused = platform_schedules().remove(0);
    paused.paused = true;
    world.control.put_schedule(&paused).await.unwrap();
    let mut earlier = platform_schedules().remove(1);
    earlier.flow = "OlderWorkflow".to_owned();
    world.control.put_schedule(&earlier).await.unwrap();
    ensure_platform_schedules(&world.control).await.unwrap();
    let found: BTreeMap<_, _> = world
        .control
        .schedules()
        .await
        .unwrap()
        .into_iter()
        .map(|view| (view.schedule.name.clone(), view.schedule))
        .collect();
    assert_eq!(found.len(), platform_schedules().len());
    assert!(found[&paused.name].paused);
    assert_eq!(found[&earlier.name].flow, TokenCleanupWorkflow::NAME);
}

#[tokio::test]
async fn every_schedule_starts_its_work() {
    let world = world();
    for schedule in platform_schedules() {
        let id = FlowId::new(format!("{}now", schedule.id_prefix())).unwrap();
        let new = NewFlow {
            id: id.clone(),
            flow: schedule.flow,
            input: schedule.input,
        };
        world.control.start(new).await.unwrap();
        let ended = world.control.result(&id).await.unwrap();
        assert!(matches!(ended, FlowState::Succeeded(_)), "{id}: {ended:?}");
    }
    let called: Vec<_> = world.plane.called.lock().keys().copied().collect();
    assert_eq!(
        called,
        ["audit", "digests", "records", "sessions", "states"]
    );
}

#[tokio::test]
async fn earlier_names_start_the_same() {
    let world = world();
    world.plane.run_is("ended", Some("succeeded"), None);
    let input = RunFlowInput {
        tenant: TenantId::random(),
        run: Uuid::new_v4(),
        life: 1,
    };
    for flow in [
        "PulumiDeployWorkflow",
        "PulumiDestroyWorkflow",
        "PulumiPreviewWorkflow",
    ] {
        let new = NewFlow {
            id: FlowId::new(flow).unwrap(),
            flow: flow.to_owned(),
            input: serde_json::to_value(&input).unwrap(),
        };
        let id = new.id.clone();
        world.control.start(new).await.unwrap();
        let ended = world.control.result(&id).await.unwrap();
        assert_eq!(ended, FlowState::Succeeded(json!({"result": "succeeded"})));
    }
}
