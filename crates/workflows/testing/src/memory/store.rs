//! What survives the end of a worker: workflows, what was recorded for them, signals and schedules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nimbus_workflows::{FlowId, FlowSchedule, FlowState, NewFlow};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

/// Shared by workers and controls; a clone is the same store.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<u64>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) flows: BTreeMap<FlowId, Flow>,
    pub(super) schedules: BTreeMap<String, MemorySchedule>,
    /// In the order of their start.
    pub(super) order: Vec<FlowId>,
}

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) new: NewFlow,
    pub(super) created: Timestamp,
    pub(super) ended: Option<Timestamp>,
    pub(super) state: FlowState,
    pub(super) cancelled: bool,
    /// What was asked and answered, by place.
    pub(super) record: BTreeMap<u32, Recorded>,
    pub(super) signals: Vec<(String, Value)>,
    pub(super) signal_keys: BTreeSet<String>,
    /// What it said to queries.
    pub(super) answers: BTreeMap<&'static str, Value>,
}

/// One line of a workflow's record.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub(super) asked: String,
    /// Nothing yet: a wait that has begun, with its end.
    pub(super) answer: Option<Value>,
    pub(super) until: Option<tokio::time::Instant>,
    /// Which signal the answer is.
    pub(super) taken: Option<usize>,
}

impl Flow {
    /// The oldest signal of a topic that no answer has taken.
    pub(super) fn untaken(&self, topic: &str) -> Option<(usize, Value)> {
        let taken: BTreeSet<_> = self.record.values().filter_map(|line| line.taken).collect();
        let mut signals = self.signals.iter().enumerate();
        signals
            .find(|(index, (about, _))| about == topic && !taken.contains(index))
            .map(|(index, (_, payload))| (index, payload.clone()))
    }
}

#[derive(Debug)]
pub(super) struct MemorySchedule {
    pub(super) schedule: FlowSchedule,
    pub(super) next: Option<Timestamp>,
    pub(super) last: Option<FlowId>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            changed: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl MemoryStore {
    pub(super) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state.lock());
        self.changed.send_modify(|version| *version += 1);
        result
    }

    /// Tells of every change from now on.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Waits until something is there.
    pub(super) async fn until<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        let mut changes = self.changes();
        loop {
            if let Some(found) = self.read(&look) {
                return found;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl State {
    /// Adds a workflow unless it is there.
    pub(super) fn insert(&mut self, new: NewFlow) -> &Flow {
        let id = new.id.clone();
        if !self.flows.contains_key(&id) {
            self.order.push(id.clone());
        }
        // A child of a cancelled workflow is cancelled from the beginning.
        let cancelled = id.lineage().any(|ancestor| {
            let ancestor = FlowId::parse(ancestor).ok();
            ancestor.is_some_and(|id| self.flows.get(&id).is_some_and(|flow| flow.cancelled))
        });
        self.flows.entry(id).or_insert_with(|| Flow {
            new,
            created: Timestamp::now(),
            ended: None,
            state: FlowState::Running,
            cancelled,
            record: BTreeMap::new(),
            signals: Vec::new(),
            signal_keys: BTreeSet::new(),
            answers: BTreeMap::new(),
        })
    }
}
