//! The control plane's workflows in memory, over ports that a test moves by hand.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_control_flows::{
    APPROVAL_DECISION, ApprovalStanding, BootstrapInput, BootstrapStanding, ExportedStates,
    GET_APPROVAL_STATUS, GET_DEPLOYMENT_PROGRESS, PlatformWork, RUN_CHANGED, RemovedRecords,
    RunFlowInput, RunProgress, RunRows, RunStanding, ScheduledRun, ScheduledRunInput,
    TokenCleanupWorkflow, approval_flow_of, definitions, ensure_platform_schedules,
    ensure_tenant_schedules, new_run_flow, platform_schedules, tenant_schedule,
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
    bootstrap: Mutex<Option<BootstrapStanding>>,
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
            progress: Some(RunProgress {
                created: 3,
                ..RunProgress::default()
            }),
        });
    }

    fn bootstrap_is(&self, status: &str) {
        *self.bootstrap.lock() = Some(BootstrapStanding {
            status: status.to_owned(),
            run: Some(Uuid::new_v4()),
        });
    }

    fn approval_is(&self, status: &str) {
        *self.approval.lock() = Some(ApprovalStanding {
            status: status.to_owned(),
            seconds_left: Some(3600),
            approved: vec!["ana".to_owned()],
            pending: Vec::new(),
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
    async fn start_scheduled(&self, input: &ScheduledRunInput, key: &str) -> Result<ScheduledRun> {
        self.call("scheduled")?;
        Ok(ScheduledRun {
            run: None,
            refused: Some(format!("{} {key}", input.schedule)),
        })
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
    async fn bootstrap_standing(
        &self,
        _: TenantId,
        _: Uuid,
        _: i32,
    ) -> Result<Option<BootstrapStanding>> {
        self.call("bootstrap")?;
        Ok(self.bootstrap.lock().clone())
    }
    async fn configure_resolvers(&self, _: TenantId, _: Uuid) -> Result<()> {
        self.call("configure")?;
        self.bootstrap_is("active");
        Ok(())
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
    async fn start_scheduled(&self, input: &ScheduledRunInput, key: &str) -> Result<ScheduledRun> {
        self.0.start_scheduled(input, key).await?;
        self.0.start_scheduled(input, key).await
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
    async fn bootstrap_standing(
        &self,
        t: TenantId,
        e: Uuid,
        a: i32,
    ) -> Result<Option<BootstrapStanding>> {
        self.0.bootstrap_standing(t, e, a).await?;
        self.0.bootstrap_standing(t, e, a).await
    }
    async fn configure_resolvers(&self, t: TenantId, e: Uuid) -> Result<()> {
        self.0.configure_resolvers(t, e).await?;
        self.0.configure_resolvers(t, e).await
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
    let said = world.control.query(&chain, GET_APPROVAL_STATUS).await;
    assert_eq!(
        said.unwrap(),
        Some(json!({"status": "approved", "approved": ["ana"], "pending": []}))
    );
    eventually("how far the run is", async || {
        let said = world.control.query(&id, GET_DEPLOYMENT_PROGRESS).await;
        said.unwrap()
            .is_some_and(|said| said["progress"]["created"] == 3)
    })
    .await;
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

#[tokio::test]
async fn an_upgrade_has_a_workflow_of_its_name() {
    let world = world();
    world.plane.run_is("ended", Some("succeeded"), None);
    let id = world.begin("upgrade").await;
    let ended = world.control.result(&id).await.unwrap();
    assert_eq!(ended, FlowState::Succeeded(json!({"result": "succeeded"})));
    let record = world.control.status(&id).await.unwrap();
    assert_eq!(record.flow, "ComponentUpgradeWorkflow");
}

#[tokio::test]
async fn a_zone_waits_for_its_services_and_then_configures_resolvers() {
    let world = world();
    let begin = async |attempt| {
        let input = BootstrapInput {
            tenant: TenantId::random(),
            environment: Uuid::new_v4(),
            attempt,
        };
        world
            .control
            .start(input.new_flow().unwrap())
            .await
            .unwrap();
        input.flow_id().unwrap()
    };
    world.plane.bootstrap_is("provisioning");
    let id = begin(1).await;
    eventually("it looked", async || {
        world.plane.called.lock().get("bootstrap") == Some(&1)
    })
    .await;
    // A step that fails is tried again, and nothing is configured before services are there.
    assert_eq!(world.plane.called.lock().get("configure"), None);
    world.plane.bootstrap_is("configuring");
    *world.plane.failures.lock() = 2;
    world.tell(&id, RUN_CHANGED).await;
    let ended = world.control.result(&id).await.unwrap();
    assert_eq!(ended, FlowState::Succeeded(json!("active")));
    world.plane.bootstrap_is("failed");
    let ended = world.control.result(&begin(2).await).await.unwrap();
    let FlowState::Failed(failure) = ended else {
        unreachable!("it failed");
    };
    assert_eq!(failure.code, "NIM-0909");
    *world.plane.bootstrap.lock() = None;
    let gone = world.control.result(&begin(3).await).await.unwrap();
    assert_eq!(gone, FlowState::Succeeded(Value::Null));
}

#[tokio::test]
async fn schedules_of_tenants_follow_what_tenants_say_and_ask_for_a_run() {
    let world = world();
    ensure_platform_schedules(&world.control).await.unwrap();
    let (one, two) = (TenantId::random(), TenantId::random());
    let nightly = tenant_schedule(one, "nightly", "0 2 * * *", "UTC", false);
    let weekly = tenant_schedule(two, "nightly", "0 2 * * 1", "Europe/Vienna", false);
    let both = [nightly.clone(), weekly.clone()];
    let ensure = async |wanted: &[_]| {
        ensure_tenant_schedules(&world.control, wanted)
            .await
            .unwrap()
    };
    assert_eq!(ensure(&both).await, 2);
    assert_eq!(ensure(&both).await, 0, "nothing is put again");
    let mut paused = nightly.clone();
    paused.paused = true;
    assert_eq!(ensure(&[paused]).await, 2, "one changed, one is gone");
    let there = world.control.schedules().await.unwrap();
    let own: Vec<_> = there
        .iter()
        .filter(|view| view.schedule.name.starts_with("tenant."))
        .collect();
    assert!(own.len() == 1 && own[0].schedule.paused);
    assert_eq!(there.len(), platform_schedules().len() + 1);
    let id = FlowId::new(format!("{}now", nightly.id_prefix())).unwrap();
    let new = NewFlow {
        id: id.clone(),
        flow: nightly.flow,
        input: nightly.input,
    };
    *world.plane.failures.lock() = 1;
    world.control.start(new).await.unwrap();
    let ended = world.control.result(&id).await.unwrap();
    let said = format!("nightly {id}#0");
    assert_eq!(
        ended,
        FlowState::Succeeded(json!({"run": null, "refused": said}))
    );
    assert_eq!(world.plane.called.lock().get("scheduled"), Some(&2));
}
