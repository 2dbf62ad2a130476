//! Runs and approvals as durable workflows over the real use cases: the same story on PostgreSQL and on a Temporal server.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nimbus_control_app::App;
use nimbus_control_flows::{
    GET_APPROVAL_STATUS, GET_DEPLOYMENT_PROGRESS, PlatformWork, RunRows, approval_flow_of,
    definitions, ensure_platform_schedules,
};
use nimbus_test_tools::{Tool, tool_or_skip};
use nimbus_workflows::{Control, Definitions, FlowFilter, FlowId, FlowState, When};
use nimbus_workflows_embedded::{EmbeddedOptions, EmbeddedRuntime, EmbeddedWorker};
use nimbus_workflows_temporal::{TemporalOptions, TemporalRuntime, TemporalWorker};
use serde_json::{Value, json};

use crate::approvals::{Site, site, step, user};
use crate::support::{Installation, installation, text};

/// Waits for something that is going to be.
pub(crate) async fn eventually(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let watch = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(50)).await; // tidy-allow(sleep): nothing rings for rows
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(120), watch).await;
    assert!(ended.is_ok(), "not after two minutes: {what}");
}

fn all(app: &App) -> Definitions {
    let platform: Arc<dyn PlatformWork> = Arc::new(app.clone());
    let runs: Arc<dyn RunRows> = Arc::new(app.clone());
    definitions(&platform, &runs)
}

/// What executes, and how it is ended without a word and begun again.
pub(crate) enum Runtime {
    Embedded(EmbeddedRuntime, Option<EmbeddedWorker>),
    Temporal(TemporalRuntime, Option<TemporalWorker>),
}

impl Runtime {
    pub(crate) async fn embedded(app: &App) -> Self {
        let mut options = EmbeddedOptions::new(app.store().workflow_address());
        options.connections = 4;
        let runtime = EmbeddedRuntime::open(options).await.unwrap();
        let worker = runtime.work(all(app));
        Self::Embedded(runtime, Some(worker))
    }

    async fn temporal(app: &App, server: &DevServer) -> Self {
        let options = TemporalOptions::new(server.address(), "default");
        let mut opened = None;
        eventually("the Temporal server answers", async || {
            opened = TemporalRuntime::open(options.clone()).await.ok();
            opened.is_some()
        })
        .await;
        let runtime = opened.unwrap();
        let worker = runtime.work(all(app)).unwrap();
        Self::Temporal(runtime, Some(worker))
    }

    pub(crate) fn control(&self) -> Arc<dyn Control> {
        match self {
            Self::Embedded(runtime, _) => Arc::new(runtime.clone()),
            Self::Temporal(runtime, _) => Arc::new(runtime.clone()),
        }
    }

    /// Nobody executes for a while, then somebody does again.
    pub(crate) async fn restart(&mut self, app: &App) {
        match self {
            Self::Embedded(runtime, worker) => {
                worker.take().unwrap().stop().await;
                *worker = Some(runtime.work(all(app)));
            }
            Self::Temporal(runtime, worker) => {
                worker.take().unwrap().stop().await;
                *worker = Some(runtime.work(all(app)).unwrap());
            }
        }
    }
}

struct DevServer {
    port: u16,
    starter: Child,
}

impl DevServer {
    fn start(program: &Path) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let starter = Command::new("sh")
            .args([
                "-c",
                r#""$@" & server=$!; cat > /dev/null; kill -9 $server; wait"#,
                "sh",
            ])
            .arg(program)
            .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1"])
            .args(["--port", &port.to_string(), "--log-level", "never"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { port, starter }
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for DevServer {
    fn drop(&mut self) {
        drop(self.starter.stdin.take());
        let _ = self.starter.wait();
    }
}

struct Story {
    site: Site,
    runtime: Runtime,
    control: Arc<dyn Control>,
}

impl Story {
    async fn begin(nimbus: Installation, runtime: Runtime) -> Self {
        let control = runtime.control();
        nimbus.app.tell_workflows(Arc::clone(&control));
        let site = site(nimbus).await;
        site.needs(json!([step(&[user(&site.ana)], json!("any"))]))
            .await;
        Self {
            site,
            runtime,
            control,
        }
    }

    fn flow(&self, run: &str) -> FlowId {
        FlowId::new(format!("run:{}:{run}:1", self.site.acme)).unwrap()
    }

    async fn state(&self, id: &FlowId) -> Option<FlowState> {
        self.control.status(id).await.ok().map(|found| found.state)
    }

    async fn waits(&self, id: &FlowId) {
        eventually("it waits for people", async || {
            self.state(id).await == Some(FlowState::Running)
        })
        .await;
    }

    async fn ended_when_there(&self, id: &FlowId) -> FlowState {
        eventually("it was started", async || self.state(id).await.is_some()).await;
        self.ended(id).await
    }

    async fn ended(&self, id: &FlowId) -> FlowState {
        let ended = tokio::time::timeout(Duration::from_secs(120), self.control.result(id));
        ended.await.unwrap().unwrap()
    }
}

/// A run with approval to its end, over a runtime that is gone in between; one that is denied; one that is cancelled; one
/// that was queued while there was no runtime; a schedule that runs, is paused and goes on.
async fn tell(mut story: Story) {
    let result = |word: &str| FlowState::Succeeded(json!({"result": word}));
    let (run, approval) = story.site.waiting().await;
    let (flow, chain) = {
        let flow = story.flow(&run);
        let chain = approval_flow_of(&flow).unwrap();
        (flow, chain)
    };
    story.waits(&chain).await;
    let owner = story.site.owner.clone();
    let asked = async |id: &FlowId, query: &str| {
        let id = id.as_str().replace('/', "%2F");
        let path = format!("/api/v1/workflows/{id}/queries/{query}");
        story.site.nimbus.get(&path, &owner).await
    };
    eventually("who is waited for", async || {
        let said = asked(&chain, "get_approval_status").await;
        said.status.is_success() && {
            let answer = &said.json()["answer"];
            let waited = json!([format!("user:{}", story.site.ana.1)]);
            answer["pending"] == waited && answer["approved"] == json!([])
        }
    })
    .await;
    let unknown = asked(&chain, "no_such_query").await;
    assert_eq!(unknown.status, axum::http::StatusCode::NOT_FOUND);
    // Workflows are the operator's.
    let path = format!("/api/v1/workflows/{flow}/queries/get_deployment_progress");
    let hidden = story.site.nimbus.get(&path, &story.site.ana.0).await;
    assert!(!hidden.status.is_success(), "{}", hidden.text);
    let app = story.site.nimbus.app.clone();
    story.runtime.restart(&app).await;
    story.site.grant(&story.site.ana, &approval).await.ok();
    assert_eq!(
        story.ended(&chain).await,
        FlowState::Succeeded(json!("approved"))
    );
    assert_eq!(story.state(&flow).await, Some(FlowState::Running));
    let taken = story.site.take().await.unwrap();
    story.site.end(&taken, None).await;
    app.flow_hears(story.site.acme, taken.id);
    assert_eq!(story.ended(&flow).await, result("succeeded"));
    let said = story.control.query(&chain, GET_APPROVAL_STATUS).await;
    let approved = json!({"status": "approved", "approved": [story.site.ana.1], "pending": []});
    assert_eq!(said.unwrap(), Some(approved));
    let said = story.control.query(&flow, GET_DEPLOYMENT_PROGRESS).await;
    let said = said.unwrap().unwrap_or_default();
    assert_eq!(
        (&said["result"], &said["progress"]["created"]),
        (&json!("succeeded"), &json!(0)),
        "{said}"
    );

    let (run, approval) = story.site.waiting().await;
    let flow = story.flow(&run);
    story.waits(&approval_flow_of(&flow).unwrap()).await;
    let words = "not today";
    story
        .site
        .deny(&story.site.ana, &approval, words)
        .await
        .ok();
    assert_eq!(story.ended(&flow).await, result("cancelled"));

    let (run, _) = story.site.waiting().await;
    let flow = story.flow(&run);
    story.waits(&flow).await;
    let path = story.site.at(&format!("runs/{run}/cancel"));
    let cancelled = story.site.nimbus.post(&path, &story.site.dev.0, json!({}));
    cancelled.await.ok();
    assert_eq!(story.ended(&flow).await, result("cancelled"));

    let previews = FlowFilter {
        flow: Some("ComponentPreviewWorkflow".to_owned()),
        ..FlowFilter::default()
    };
    eventually("previews have their workflows", async || {
        let found = story.control.list(&previews, None, 100).await.unwrap();
        found.flows.len() == 3
    })
    .await;
    // Nothing that has ended is begun again.
    assert_eq!(app.begin_open_flows().await.unwrap(), 0);
    schedules(&*story.control).await;
}

async fn schedules(control: &dyn Control) {
    ensure_platform_schedules(control).await.unwrap();
    let find = async |name: &str| {
        let all = control.schedules().await.unwrap();
        all.into_iter().find(|one| one.schedule.name == name)
    };
    let name = "cleanup-expired-tokens";
    eventually("the schedules are there", async || {
        find(name).await.is_some()
    })
    .await;
    let mut schedule = find(name).await.unwrap().schedule;
    assert_eq!(schedule.when, When::cron("*/15 * * * *"));
    schedule.when = When::Every(Duration::from_secs(1));
    control.put_schedule(&schedule).await.unwrap();
    let history = FlowFilter {
        id_prefix: Some(schedule.id_prefix()),
        ended: Some(true),
        ..FlowFilter::default()
    };
    eventually("it ran twice, and the history has it", async || {
        let found = control.list(&history, None, 100).await.unwrap().flows;
        let fine = |one: &&nimbus_workflows::FlowRecord| {
            one.flow == "TokenCleanupWorkflow" && matches!(one.state, FlowState::Succeeded(_))
        };
        found.iter().filter(fine).count() >= 2
    })
    .await;
    schedule.paused = true;
    control.put_schedule(&schedule).await.unwrap();
    let paused = find(name).await.unwrap();
    assert!(paused.schedule.paused && paused.next.is_none());
    // What another start of a server does to it: the time is the platform's again, the pause is the operator's.
    ensure_platform_schedules(control).await.unwrap();
    eventually("it is as it should be", async || {
        let kept = find(name).await.unwrap().schedule;
        kept.paused && kept.when == When::cron("*/15 * * * *")
    })
    .await;
}

#[tokio::test]
async fn runs_approvals_and_schedules_are_workflows_on_postgresql() {
    let nimbus = installation!();
    let runtime = Runtime::embedded(&nimbus.app).await;
    let story = Box::pin(Story::begin(nimbus, runtime)).await;
    Box::pin(tell(story)).await;
}

#[tokio::test]
async fn runs_approvals_and_schedules_are_workflows_on_temporal() {
    let program = tool_or_skip!(Tool::Temporal);
    let nimbus = installation!();
    let server = DevServer::start(&program);
    let runtime = Runtime::temporal(&nimbus.app, &server).await;
    let story = Box::pin(Story::begin(nimbus, runtime)).await;
    Box::pin(tell(story)).await;
}

/// A deadline is a timer of the chain, and so is the escalation: nobody sweeps and nobody says anything.
#[tokio::test]
async fn time_escalates_and_ends_a_run_that_nobody_approved_without_a_sweep() {
    let nimbus = installation!();
    let runtime = Runtime::embedded(&nimbus.app).await;
    let story = Box::pin(Story::begin(nimbus, runtime)).await;
    let mut soon = step(&[user(&story.site.ana)], json!("any"));
    soon["timeout_seconds"] = json!(1);
    soon["escalate_to"] = json!([user(&story.site.ben)]);
    story.site.needs(json!([soon])).await;
    let (run, approval) = story.site.waiting().await;
    let flow = story.flow(&run);
    assert_eq!(
        story.ended_when_there(&flow).await,
        FlowState::Succeeded(json!({"result": "cancelled"}))
    );
    let shown: Value = story.site.show(&approval).await;
    assert_eq!(text(&shown["status"]), "expired");
    let recorded = story.site.nimbus.database.texts(
        "SELECT action FROM nimbus_core.audit_logs WHERE action LIKE 'approvals.e%' ORDER BY 1",
    );
    assert_eq!(recorded.await, ["approvals.escalate", "approvals.expire"]);
    let chain = story.ended(&approval_flow_of(&flow).unwrap()).await;
    assert_eq!(chain, FlowState::Succeeded(json!("expired")));
}

/// Runs that were queued while there was no runtime have their workflows when there is one.
#[tokio::test]
async fn a_run_that_was_queued_without_a_runtime_has_its_workflow_later() {
    let nimbus = installation!();
    let site = site(nimbus).await;
    site.needs(json!([step(&[user(&site.ana)], json!("any"))]))
        .await;
    let (run, approval) = site.waiting().await;
    let app = site.nimbus.app.clone();
    let runtime = Runtime::embedded(&app).await;
    let control = runtime.control();
    app.tell_workflows(Arc::clone(&control));
    assert_eq!(app.begin_open_flows().await.unwrap(), 1);
    let story = Story {
        site,
        runtime,
        control,
    };
    let flow = story.flow(&run);
    story.waits(&approval_flow_of(&flow).unwrap()).await;
    story.site.grant(&story.site.ana, &approval).await.ok();
    let taken = story.site.take().await.unwrap();
    story.site.end(&taken, None).await;
    app.flow_hears(story.site.acme, taken.id);
    assert_eq!(
        story.ended(&flow).await,
        FlowState::Succeeded(json!({"result": "succeeded"}))
    );
}
