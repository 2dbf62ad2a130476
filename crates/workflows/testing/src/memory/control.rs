//! [`Control`] over the store.

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_core::Error;
use nimbus_workflows::{
    Control, FlowFilter, FlowId, FlowPage, FlowRecord, FlowSchedule, FlowState, NewFlow,
    ScheduleView, Started,
};
use serde_json::Value;

use super::store::{Flow, MemorySchedule, MemoryStore};

/// The way to a store's workflows.
#[derive(Clone, Debug)]
pub struct MemoryControl {
    store: MemoryStore,
}

impl MemoryControl {
    pub fn new(store: &MemoryStore) -> Self {
        Self {
            store: store.clone(),
        }
    }
}

fn view(flow: &Flow) -> FlowRecord {
    FlowRecord {
        id: flow.new.id.clone(),
        flow: flow.new.flow.clone(),
        state: flow.state.clone(),
        created: flow.created,
        ended: flow.ended,
    }
}

fn fits(filter: &FlowFilter, flow: &Flow) -> bool {
    let prefix = filter.id_prefix.as_deref().unwrap_or_default();
    flow.new.id.as_str().starts_with(prefix)
        && filter
            .flow
            .as_ref()
            .is_none_or(|name| *name == flow.new.flow)
        && filter
            .ended
            .is_none_or(|ended| ended == flow.state.is_ended())
}

#[async_trait]
impl Control for MemoryControl {
    async fn start(&self, new: NewFlow) -> Result<Started, Error> {
        self.store.change(|state| match state.flows.get(&new.id) {
            Some(flow) if flow.new == new => Ok(Started::Before),
            Some(_) => Err(FlowRecord::taken(&new.id)),
            None => {
                state.insert(new);
                Ok(Started::New)
            }
        })
    }

    async fn signal(
        &self,
        id: &FlowId,
        topic: &str,
        payload: Value,
        key: Option<&str>,
    ) -> Result<(), Error> {
        self.store.change(|state| {
            let flow = state
                .flows
                .get_mut(id)
                .ok_or_else(|| FlowRecord::unknown(id))?;
            if key.is_none_or(|key| flow.signal_keys.insert(key.to_owned())) {
                flow.signals.push((topic.to_owned(), payload));
            }
            Ok(())
        })
    }

    async fn cancel(&self, id: &FlowId) -> Result<(), Error> {
        self.store.change(|state| {
            if !state.flows.contains_key(id) {
                return Err(FlowRecord::unknown(id));
            }
            let children = id.children_prefix();
            for (other, flow) in &mut state.flows {
                if other == id || other.as_str().starts_with(&children) {
                    flow.cancelled = true;
                }
            }
            Ok(())
        })
    }

    async fn status(&self, id: &FlowId) -> Result<FlowRecord, Error> {
        let found = self.store.read(|state| state.flows.get(id).map(view));
        found.ok_or_else(|| FlowRecord::unknown(id))
    }

    async fn query(&self, id: &FlowId, query: &str) -> Result<Option<Value>, Error> {
        let found = self.store.read(|state| {
            let flow = state.flows.get(id)?;
            Some(flow.answers.get(query).cloned())
        });
        found.ok_or_else(|| FlowRecord::unknown(id))
    }

    async fn result(&self, id: &FlowId) -> Result<FlowState, Error> {
        self.status(id).await?;
        let ended = self.store.until(|state| {
            let state = &state.flows.get(id)?.state;
            state.is_ended().then(|| state.clone())
        });
        Ok(ended.await)
    }

    async fn list(
        &self,
        filter: &FlowFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<FlowPage, Error> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.store.read(|state| {
            let order = state.order.iter();
            let rest = order.skip_while(|id| cursor.is_some_and(|cursor| id.as_str() != cursor));
            let rest = rest.skip(usize::from(cursor.is_some()));
            let found = rest
                .filter_map(|id| state.flows.get(id))
                .filter(|flow| fits(filter, flow));
            let mut flows: Vec<_> = found.take(limit + 1).map(view).collect();
            let more = flows.len() > limit;
            flows.truncate(limit);
            let next = flows
                .last()
                .filter(|_| more)
                .map(|last| last.id.to_string());
            FlowPage { flows, next }
        }))
    }

    async fn put_schedule(&self, schedule: &FlowSchedule) -> Result<(), Error> {
        schedule.check()?;
        let next = schedule.next_after(Timestamp::now())?;
        self.store.change(|state| {
            let last = state
                .schedules
                .remove(&schedule.name)
                .and_then(|old| old.last);
            let planned = MemorySchedule {
                schedule: schedule.clone(),
                next: (!schedule.paused).then_some(next),
                last,
            };
            state.schedules.insert(schedule.name.clone(), planned);
        });
        Ok(())
    }

    async fn schedules(&self) -> Result<Vec<ScheduleView>, Error> {
        let view = |planned: &MemorySchedule| ScheduleView {
            schedule: planned.schedule.clone(),
            next: planned.next,
            last: planned.last.clone(),
        };
        Ok(self
            .store
            .read(|state| state.schedules.values().map(view).collect()))
    }

    async fn delete_schedule(&self, name: &str) -> Result<(), Error> {
        self.store.change(|state| state.schedules.remove(name));
        Ok(())
    }
}
