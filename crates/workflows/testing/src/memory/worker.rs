//! Executes the workflows of a store until it is stopped or killed.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use nimbus_workflows::{Definitions, Fail, FlowId, FlowState, NewFlow};
use tokio::task::{JoinHandle, JoinSet};

use super::durable::MemoryDurable;
use super::store::MemoryStore;
use crate::crash::Fuse;

/// A process that executes workflows, as far as memory can be one. Dropping it is a kill: nothing is
/// recorded any more.
#[derive(Debug)]
pub struct MemoryWorker {
    task: JoinHandle<()>,
}

impl MemoryWorker {
    pub fn start(store: &MemoryStore, definitions: Definitions) -> Self {
        Self::start_with(store, definitions, Fuse::never())
    }

    pub(crate) fn start_with(store: &MemoryStore, definitions: Definitions, fuse: Fuse) -> Self {
        let store = store.clone();
        let task = tokio::spawn(execute(store, Arc::new(definitions), fuse));
        Self { task }
    }

    /// Ends it where it stands.
    pub async fn kill(mut self) {
        self.task.abort();
        // Its workflows end with it; the wait makes sure that they have.
        let _ = (&mut self.task).await;
    }
}

impl Drop for MemoryWorker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn execute(store: MemoryStore, definitions: Arc<Definitions>, fuse: Fuse) {
    let mut changes = store.changes();
    let mut begun: BTreeSet<FlowId> = BTreeSet::new();
    let mut running = JoinSet::new();
    loop {
        for new in waiting(&store, &begun) {
            begun.insert(new.id.clone());
            running.spawn(run(
                store.clone(),
                Arc::clone(&definitions),
                fuse.clone(),
                new,
            ));
        }
        let next = start_due(&store);
        let tick = async {
            match next {
                Some(next) => {
                    let left = next.duration_since(Timestamp::now());
                    tokio::time::sleep(left.try_into().unwrap_or_default()).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tick => {}
        }
    }
}

fn waiting(store: &MemoryStore, begun: &BTreeSet<FlowId>) -> Vec<NewFlow> {
    store.read(|state| {
        let open = state.flows.values().filter(|flow| !flow.state.is_ended());
        let new = open.filter(|flow| !begun.contains(&flow.new.id));
        new.map(|flow| flow.new.clone()).collect()
    })
}

async fn run(store: MemoryStore, definitions: Arc<Definitions>, fuse: Fuse, new: NewFlow) {
    let durable = MemoryDurable::new(
        new.id.clone(),
        store.clone(),
        Arc::clone(&definitions),
        fuse.clone(),
    );
    let outcome = definitions.run_flow(&new.flow, &durable, new.input).await;
    let stopped = matches!(outcome, Err(Fail::Stop(_)));
    fuse.before_write().await;
    store.change(|state| {
        if let Some(flow) = state.flows.get_mut(&new.id) {
            flow.state = FlowState::ended(outcome);
            flow.ended = (!stopped).then(Timestamp::now);
        }
    });
    fuse.after_write().await;
}

/// Starts what is due; the time of the next one.
fn start_due(store: &MemoryStore) -> Option<Timestamp> {
    let now = Timestamp::now();
    let due = store.read(|state| {
        let due = state
            .schedules
            .values()
            .any(|planned| planned.next.is_some_and(|next| next <= now));
        let next = state
            .schedules
            .values()
            .filter_map(|planned| planned.next)
            .min();
        (due, next)
    });
    if !due.0 {
        return due.1;
    }
    store.change(|state| {
        let mut starts = Vec::new();
        for planned in state.schedules.values_mut() {
            let Some(time) = planned.next.filter(|next| *next <= now) else {
                continue;
            };
            planned.next = planned.schedule.next_after(now).ok();
            let running = planned.last.as_ref().and_then(|last| state.flows.get(last));
            if running.is_some_and(|flow| !flow.state.is_ended()) {
                continue;
            }
            let Ok(id) = planned.schedule.id_at(time) else {
                continue;
            };
            planned.last = Some(id.clone());
            starts.push(NewFlow {
                id,
                flow: planned.schedule.flow.clone(),
                input: planned.schedule.input.clone(),
            });
        }
        for new in starts {
            state.insert(new);
        }
        state
            .schedules
            .values()
            .filter_map(|planned| planned.next)
            .min()
    })
}
