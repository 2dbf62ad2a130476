//! The workflow runtime of a server: opened in the background, so that a server starts without waiting for it, and looked
//! for again while it is away.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use nimbus_control_app::App;
use nimbus_control_flows::{PlatformWork, RunRows, definitions, ensure_platform_schedules};
use nimbus_core::Result;
use nimbus_workflows::{Control, Definitions};
use nimbus_workflows_embedded::{EmbeddedOptions, EmbeddedRuntime, EmbeddedWorker};
use nimbus_workflows_temporal::{TemporalOptions, TemporalRuntime, TemporalTls, TemporalWorker};
use secrecy::SecretString;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use zeroize::Zeroizing;

use crate::flow_counts::{KnownControl, flow_counts};

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often runs without a workflow are looked for.
const LOOK: Duration = Duration::from_secs(60);
/// Nobody waits for a workflow to begin: workers find runs by their rows. So the database is asked less often.
const POLL: Duration = Duration::from_millis(500);
const CONNECTIONS: u32 = 4;

/// What an operator may set about workflows.
#[derive(Clone, Debug, Default)]
pub struct WorkflowOptions {
    pub engine: WorkflowEngine,
}

/// Who runs them.
#[derive(Clone, Debug, Default)]
pub enum WorkflowEngine {
    /// This server, in its database.
    #[default]
    Embedded,
    Temporal(TemporalAddress),
}

/// Where a Temporal server is.
#[derive(Clone)]
pub struct TemporalAddress {
    /// `http://host:port`, or `https://…` for one that speaks TLS.
    pub address: String,
    pub namespace: String,
    pub queue: String,
    /// Who signed its certificate, in PEM, if not one of the system's roots.
    pub root: Option<Zeroizing<String>>,
    /// Our certificate and its key, in PEM.
    pub identity: Option<(Zeroizing<String>, Zeroizing<String>)>,
    pub api_key: Option<Zeroizing<String>>,
}

impl fmt::Debug for TemporalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemporalAddress")
            .field("address", &self.address)
            .field("namespace", &self.namespace)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

/// The runtime, until it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Workflows {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Workflows {
    /// Executes nothing more. Workflows stay where they are and go on where one executes next.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        if let Err(error) = (&mut self.task).await {
            warn!(%error, "the workflow runtime went wrong");
        }
    }
}

impl Drop for Workflows {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Begins to execute workflows, now or as soon as their runtime is there.
pub(crate) fn start(app: &App, options: &WorkflowOptions) -> Workflows {
    let stop = CancellationToken::new();
    let process = FlowProcess {
        app: app.clone(),
        options: options.clone(),
        control: KnownControl::default(),
    };
    let stopped = stop.clone();
    let task = tokio::spawn(async move {
        let working = tokio::select! {
            working = process.open() => working,
            () = stopped.cancelled() => return,
        };
        tokio::select! {
            () = process.look_after() => {}
            () = stopped.cancelled() => {}
        }
        working.stop().await;
    });
    Workflows { stop, task }
}

struct FlowProcess {
    app: App,
    options: WorkflowOptions,
    control: KnownControl,
}

/// A runtime that executes.
struct Working {
    control: Arc<dyn Control>,
    worker: RuntimeWorker,
}

enum RuntimeWorker {
    Embedded(Box<EmbeddedRuntime>, EmbeddedWorker),
    Temporal(TemporalWorker),
}

impl Working {
    async fn stop(self) {
        match self.worker {
            RuntimeWorker::Embedded(runtime, worker) => {
                worker.stop().await;
                runtime.close().await;
            }
            RuntimeWorker::Temporal(worker) => worker.stop().await,
        }
    }
}

impl FlowProcess {
    async fn open(&self) -> Working {
        let mut pause = FIRST_PAUSE;
        loop {
            match Box::pin(self.try_open()).await {
                Ok(working) => {
                    // An error is one that is there already.
                    let _ = self.control.set(Arc::clone(&working.control));
                    self.app.tell_workflows(Arc::clone(&working.control));
                    return working;
                }
                Err(error) => {
                    let error = error.log_text();
                    warn!(%error, "the workflow runtime is not there; trying again");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn try_open(&self) -> Result<Working> {
        match &self.options.engine {
            WorkflowEngine::Embedded => {
                let mut options = EmbeddedOptions::new(self.app.store().workflow_address());
                options.poll = POLL;
                options.connections = CONNECTIONS;
                let runtime = EmbeddedRuntime::open(options).await?;
                ensure_platform_schedules(&runtime).await?;
                let worker = runtime.work(self.definitions());
                Ok(Working {
                    control: Arc::new(runtime.clone()),
                    worker: RuntimeWorker::Embedded(Box::new(runtime), worker),
                })
            }
            WorkflowEngine::Temporal(server) => {
                let runtime = TemporalRuntime::open(temporal_options(server)).await?;
                ensure_platform_schedules(&runtime).await?;
                let worker = runtime.work(self.definitions())?;
                info!(address = server.address, "workflows run on Temporal");
                Ok(Working {
                    control: Arc::new(runtime),
                    worker: RuntimeWorker::Temporal(worker),
                })
            }
        }
    }

    fn definitions(&self) -> Definitions {
        let platform: Arc<dyn PlatformWork> = Arc::new(self.app.clone());
        let runs: Arc<dyn RunRows> = Arc::new(self.app.clone());
        let mut definitions = definitions(&platform, &runs);
        let metrics = self.app.store().metrics();
        definitions.observe(flow_counts(metrics, Arc::clone(&self.control)));
        definitions
    }

    /// Never returns.
    async fn look_after(&self) {
        loop {
            if let Err(failure) = self.app.begin_open_flows().await {
                let error = failure.error.log_text();
                warn!(%error, "runs without a workflow were not looked for");
            }
            if let Err(failure) = self.app.sync_tenant_schedules().await {
                let error = failure.error.log_text();
                warn!(%error, "schedules of tenants were not looked for");
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn temporal_options(server: &TemporalAddress) -> TemporalOptions {
    let secret = |text: &Zeroizing<String>| SecretString::from(text.as_str().to_owned());
    let mut options = TemporalOptions::new(server.address.clone(), server.namespace.clone());
    options.queue = server.queue.clone();
    options.api_key = server.api_key.as_ref().map(secret);
    if server.root.is_some() || server.identity.is_some() {
        options.tls = Some(TemporalTls {
            root: server.root.as_ref().map(|text| text.as_str().to_owned()),
            identity: server
                .identity
                .as_ref()
                .map(|(certificate, key)| (certificate.as_str().to_owned(), secret(key))),
        });
    }
    options
}
