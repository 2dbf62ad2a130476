//! Executes workflows in this process. The library's worker cannot leave its thread, so it has one, with
//! a runtime that does nothing else; steps run on the runtime of whoever started it.

use std::sync::Arc;
use std::time::Duration;

use nimbus_core::Error;
use nimbus_workflows::Definitions;
use temporalio_common::worker::WorkerDeploymentOptions;
use temporalio_sdk::runtime::RuntimeOptions;
use temporalio_sdk::runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder};
use temporalio_sdk::{Runtime, Worker, WorkerOptions};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::flow::{FlowShared, TemporalFlow};
use crate::options::{TemporalOptions, invalid, unavailable};
use crate::step::StepRunner;

/// How long after a failure the server is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a worker may take to shut down.
const SHUTDOWN: Duration = Duration::from_secs(10);
/// How many workflows are worked on at once.
const FLOW_SLOTS: usize = 100;

/// A process that executes workflows, beside others. Ends with the value; [`Self::stop`] ends it in
/// order.
#[derive(Debug)]
pub struct TemporalWorker {
    stop: CancellationToken,
    runs: watch::Receiver<bool>,
    ended: CancellationToken,
}

impl TemporalWorker {
    pub(crate) fn start(options: TemporalOptions, definitions: Definitions) -> Result<Self, Error> {
        let steps = Handle::try_current().map_err(unavailable)?;
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let (running, runs) = watch::channel(false);
        let process = WorkerProcess {
            options,
            definitions: Arc::new(definitions),
            steps,
            running,
            stop: stop.clone(),
        };
        let done = ended.clone().drop_guard();
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(unavailable)?;
        let thread = std::thread::Builder::new().name("temporal-worker".to_owned());
        let thread = thread.spawn(move || {
            let _done = done;
            runtime.block_on(process.supervise());
            runtime.shutdown_background();
        });
        thread.map_err(unavailable)?;
        Ok(Self { stop, runs, ended })
    }

    /// Whether this process executes; it does not while it looks for the server.
    pub fn runs(&self) -> watch::Receiver<bool> {
        self.runs.clone()
    }

    /// Stops executing. Workflows stay where they are and go on in another process; steps that run are
    /// ended, and tried again there.
    pub async fn stop(self) {
        self.stop.cancel();
        self.ended.cancelled().await;
    }
}

impl Drop for TemporalWorker {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct WorkerProcess {
    options: TemporalOptions,
    definitions: Arc<Definitions>,
    steps: Handle,
    running: watch::Sender<bool>,
    stop: CancellationToken,
}

impl WorkerProcess {
    /// Until somebody says stop. A server that is away is looked for again.
    async fn supervise(self) {
        while !self.stop.is_cancelled() {
            if let Err(error) = self.work().await {
                tracing::warn!(%error, "the workflows cannot be executed");
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = self.stop.cancelled() => {}
                }
            }
            self.running.send_replace(false);
        }
    }

    async fn work(&self) -> Result<(), Error> {
        let client = tokio::select! {
            client = self.options.connect() => client?,
            () = self.stop.cancelled() => return Ok(()),
        };
        let runtime = RuntimeOptions::builder().build().map_err(unavailable)?;
        let runtime = Runtime::from_current_tokio(runtime).map_err(unavailable)?;
        let worker = Worker::new(&runtime, client, self.worker_options()?);
        let mut worker = worker.map_err(unavailable)?;
        let shut_down = worker.shutdown_handle();
        self.running.send_replace(true);
        let overdue = async {
            self.stop.cancelled().await;
            shut_down();
            tokio::time::sleep(SHUTDOWN).await;
        };
        tokio::select! {
            ended = worker.run() => ended.map_err(unavailable),
            () = overdue => {
                tracing::warn!("the worker took too long to shut down");
                Ok(())
            }
        }
    }

    fn worker_options(&self) -> Result<WorkerOptions, Error> {
        let ours = &self.options;
        let slots = TunerHolder::builder()
            .workflow_task_slot_supplier(FixedSizeSlotSupplier::new(FLOW_SLOTS))
            .activity_task_slot_supplier(FixedSizeSlotSupplier::new(ours.step_slots.max(1)))
            .local_activity_task_slot_supplier(FixedSizeSlotSupplier::new(1))
            .nexus_task_slot_supplier(FixedSizeSlotSupplier::new(1))
            .build();
        let steps = StepRunner {
            definitions: Arc::clone(&self.definitions),
            heartbeat: ours.heartbeat,
            runtime: self.steps.clone(),
            stop: self.stop.clone(),
        };
        let mut options = WorkerOptions::new(ours.queue.clone())
            .register_activities(steps)
            .deployment_options(WorkerDeploymentOptions::from_build_id(ours.version.clone()))
            .max_cached_workflows(ours.kept_flows)
            .tuner(slots)
            .sticky_queue_schedule_to_start_timeout(ours.patience)
            .max_heartbeat_throttle_interval(ours.heartbeat)
            .default_heartbeat_throttle_interval(ours.heartbeat)
            .build();
        let shared = Arc::new(FlowShared {
            options: ours.clone(),
            definitions: Arc::clone(&self.definitions),
        });
        for name in self.definitions.flow_names() {
            let shared = Arc::clone(&shared);
            let registered = TemporalFlow::named(name, || {
                options
                    .register_workflow_with_factory(move || TemporalFlow::new(name, &shared))
                    .map(|_| ())
            });
            registered.map_err(|error| invalid(error.to_string()))?;
        }
        Ok(options)
    }
}
