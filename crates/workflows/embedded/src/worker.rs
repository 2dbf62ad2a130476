//! Executes workflows while this process owns them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nimbus_core::ErrorCode;
use nimbus_workflows::{Definitions, Fail, FlowFailure, FlowId};
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::chores;
use crate::durable::EmbeddedDurable;
use crate::options::{APPLICATION, EmbeddedOptions};
use crate::owner::{OwnerLock, Regained};
use crate::store::{RecordedEnd, WorkflowStore};

type EngineFlow = dbos::WorkflowRef<Value, Value, RecordedEnd>;

/// What the workflows of one launch share.
pub(crate) struct Shared {
    pub(crate) store: WorkflowStore,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) slots: Semaphore,
    pub(crate) cancelled: watch::Sender<BTreeSet<String>>,
    fruitless_begins: u32,
    /// They hold the library's instance, which holds the workflows, which hold this: emptied at the end.
    flows: Mutex<BTreeMap<&'static str, EngineFlow>>,
}

impl Shared {
    pub(crate) fn flow(&self, name: &str) -> Option<EngineFlow> {
        self.flows.lock().get(name).cloned()
    }

    /// Returns when a workflow, or one that it is a child of, was cancelled.
    pub(crate) async fn cancelled(&self, id: &FlowId) {
        let mut known = self.cancelled.subscribe();
        let is = known.wait_for(|ids| id.lineage().any(|id| ids.contains(id)));
        if is.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A process that executes workflows, or waits until it may. Ends with the value; [`Self::stop`] ends it
/// in order.
#[derive(Debug)]
pub struct EmbeddedWorker {
    stop: CancellationToken,
    owns: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl EmbeddedWorker {
    pub(crate) fn start(
        options: EmbeddedOptions,
        store: WorkflowStore,
        client: dbos::Client,
        definitions: Definitions,
    ) -> Self {
        let stop = CancellationToken::new();
        let (owning, owns) = watch::channel(false);
        let process = Process {
            options,
            store,
            client,
            definitions: Arc::new(definitions),
            owning,
            stop: stop.clone(),
        };
        let task = tokio::spawn(process.supervise());
        Self { stop, owns, task }
    }

    /// Whether this process executes; changes when another takes over.
    pub fn owns(&self) -> watch::Receiver<bool> {
        self.owns.clone()
    }

    /// Stops executing. Workflows stay where they are and go on in the process that owns them next.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // It ends by itself; a panic of it was logged.
        let _ = (&mut self.task).await;
    }
}

impl Drop for EmbeddedWorker {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Process {
    options: EmbeddedOptions,
    store: WorkflowStore,
    client: dbos::Client,
    definitions: Arc<Definitions>,
    owning: watch::Sender<bool>,
    stop: CancellationToken,
}

/// Why a launch ended.
enum Ended {
    Stopped(OwnerLock),
    LostOwnership,
}

impl Process {
    async fn supervise(self) {
        loop {
            let lock = tokio::select! {
                lock = OwnerLock::acquire(&self.store) => lock,
                () = self.stop.cancelled() => return,
            };
            match self.own(lock).await {
                Ended::Stopped(lock) => {
                    if let Err(error) = self.store.forgive(true).await {
                        tracing::warn!(%error, "the count of begun workflows stays");
                    }
                    lock.release().await;
                    return;
                }
                Ended::LostOwnership => {
                    tracing::warn!("another process owns the workflows now; waiting");
                }
            }
        }
    }

    /// Executes until the lock is lost or somebody says stop.
    async fn own(&self, mut lock: OwnerLock) -> Ended {
        let shared = Arc::new(Shared {
            store: self.store.clone(),
            definitions: Arc::clone(&self.definitions),
            slots: Semaphore::new(self.options.step_slots),
            cancelled: watch::Sender::default(),
            fruitless_begins: self.options.fruitless_begins,
            flows: Mutex::default(),
        });
        let engine = dbos::DBOS::new(self.config());
        let mut launched = false;
        loop {
            if !launched {
                launched = self.launch(&engine, &shared).await;
            }
            let lost = tokio::select! {
                () = lock.lost() => true,
                () = self.stop.cancelled() => false,
                () = chores::run(&shared, &self.client, &self.options), if launched => false,
                () = tokio::time::sleep(std::time::Duration::from_secs(1)), if !launched => continue,
            };
            if !lost {
                self.end(&engine, &shared).await;
                return Ended::Stopped(lock);
            }
            tracing::warn!("the session that holds the ownership was lost");
            let regained = tokio::select! {
                regained = lock.regain(&self.store) => regained,
                () = self.stop.cancelled() => Regained::Lost,
            };
            match regained {
                Regained::Same(again) => lock = again,
                Regained::Lost => {
                    self.end(&engine, &shared).await;
                    return Ended::LostOwnership;
                }
            }
        }
    }

    async fn end(&self, engine: &dbos::DBOS, shared: &Shared) {
        self.owning.send_replace(false);
        engine.shutdown().await;
        shared.flows.lock().clear();
    }

    fn config(&self) -> dbos::Config {
        dbos::Config {
            schema: self.options.schema.clone(),
            executor_id: Some(APPLICATION.to_owned()),
            app_version: Some(self.options.version.clone()),
            max_connections: self.options.connections,
            outcome_poll_interval: Some(self.options.poll),
            migrate: false,
            ..dbos::Config::new(APPLICATION, self.options.url.expose_secret())
        }
    }

    /// Whether it executes now.
    async fn launch(&self, engine: &dbos::DBOS, shared: &Arc<Shared>) -> bool {
        if shared.flows.lock().is_empty()
            && let Err(error) = register(engine, shared)
        {
            tracing::error!(%error, "the workflows cannot be registered");
            return false;
        }
        if let Err(error) = self.store.forgive(false).await {
            tracing::warn!(%error, "the database of the workflows does not answer");
            return false;
        }
        match engine.launch().await {
            Ok(()) => {
                self.owning.send_replace(true);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the workflows cannot be executed yet");
                false
            }
        }
    }
}

fn register(engine: &dbos::DBOS, shared: &Arc<Shared>) -> Result<(), dbos::Error> {
    for name in shared.definitions.flow_names() {
        let for_flow = Arc::clone(shared);
        let flow = engine.register_workflow(name, move |input: Value| {
            let shared = Arc::clone(&for_flow);
            async move { run(name, shared, input).await }
        })?;
        shared.flows.lock().insert(name, flow);
    }
    Ok(())
}

async fn run(
    name: &'static str,
    shared: Arc<Shared>,
    input: Value,
) -> Result<Value, dbos::Error<RecordedEnd>> {
    let text = dbos::workflow_id().unwrap_or_default();
    let stop = |reason: &str| {
        tracing::error!(workflow = text, reason, "a workflow cannot go on");
        dbos::Error::Interrupted {
            workflow_id: text.clone(),
        }
    };
    let id = FlowId::parse(text.clone()).map_err(|error| stop(&error.to_string()))?;
    let outcome = match shared.store.begin(&text).await {
        Ok(times) if i64::from(times) > i64::from(shared.fruitless_begins) => {
            Err(Fail::App(poisoned(name, times)))
        }
        Ok(_) => {
            let durable = EmbeddedDurable::new(id, Arc::clone(&shared));
            shared.definitions.run_flow(name, &durable, input).await
        }
        Err(error) => Err(Fail::Stop(error.to_string())),
    };
    match outcome {
        Ok(value) => Ok(value),
        Err(Fail::App(failure)) => Err(dbos::Error::Application(RecordedEnd::Failed(failure))),
        Err(Fail::Cancelled) => Err(dbos::Error::Application(RecordedEnd::Cancelled)),
        Err(Fail::Stop(reason)) => {
            if let Err(error) = shared.store.stuck(&text, &reason).await {
                tracing::warn!(%error, "that a workflow is stuck cannot be recorded");
            }
            Err(stop(&reason))
        }
    }
}

fn poisoned(name: &str, times: i32) -> FlowFailure {
    let message = format!("workflow {name} was begun {times} times and did not get any further");
    let mut failure = FlowFailure::new(ErrorCode::WORKFLOW_POISONED, message).lasting();
    failure
        .attention
        .push("what its steps did was not undone".to_owned());
    failure
}
