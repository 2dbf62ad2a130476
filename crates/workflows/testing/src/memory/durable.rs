//! [`Durable`] over the store: answers what was recorded, else asks and records.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use nimbus_workflows::{
    Answer, CancelSignal, Definitions, Durable, Fail, FlowFailure, FlowId, FlowState, NewFlow,
    StepCall, StepOutcome, StepScope, Timer,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::store::{Flow, MemoryStore, Recorded};
use crate::crash::Fuse;

pub(super) struct MemoryDurable {
    pub(super) id: FlowId,
    pub(super) store: MemoryStore,
    pub(super) definitions: Arc<Definitions>,
    pub(super) fuse: Fuse,
    places: AtomicU32,
    steps: AtomicU32,
    cancelled: AtomicBool,
}

/// An answer as it is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Kept {
    Value(Value),
    Failed(FlowFailure),
    Cancelled,
}

impl From<Kept> for Result<Value, Fail> {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Value(value) => Ok(value),
            Kept::Failed(failure) => Err(Fail::App(failure)),
            Kept::Cancelled => Err(Fail::Cancelled),
        }
    }
}

impl From<StepOutcome> for Kept {
    fn from(outcome: StepOutcome) -> Self {
        match outcome {
            StepOutcome::Done(value) => Self::Value(value),
            StepOutcome::Failed(failure) => Self::Failed(failure),
            StepOutcome::Cancelled => Self::Cancelled,
        }
    }
}

impl MemoryDurable {
    pub(super) fn new(
        id: FlowId,
        store: MemoryStore,
        definitions: Arc<Definitions>,
        fuse: Fuse,
    ) -> Self {
        Self {
            id,
            store,
            definitions,
            fuse,
            places: AtomicU32::new(0),
            steps: AtomicU32::new(0),
            cancelled: AtomicBool::new(false),
        }
    }

    fn flow<T>(&self, look: impl FnOnce(&Flow) -> T) -> Option<T> {
        self.store.read(|state| state.flows.get(&self.id).map(look))
    }

    /// What was recorded at a place, if it was the same question.
    fn recorded(&self, place: u32, asked: &str) -> Result<Option<Recorded>, Fail> {
        match self.flow(|flow| flow.record.get(&place).cloned()).flatten() {
            Some(found) if found.asked != asked => Err(Fail::Stop(format!(
                "place {place} was recorded as {}, but {asked} was expected",
                found.asked
            ))),
            found => Ok(found),
        }
    }

    async fn write(&self, place: u32, line: Recorded) {
        self.fuse.before_write().await;
        self.store.change(|state| {
            if let Some(flow) = state.flows.get_mut(&self.id) {
                flow.record.insert(place, line);
            }
        });
        self.fuse.after_write().await;
    }

    /// The recorded answer, or the one that `ask` gives.
    async fn once(
        &self,
        place: u32,
        asked: String,
        shielded: bool,
        ask: impl Future<Output = Result<(Kept, Option<usize>), Fail>> + Send,
    ) -> Result<Value, Fail> {
        let kept = match self.recorded(place, &asked)? {
            Some(Recorded {
                answer: Some(answer),
                ..
            }) => serde_json::from_value(answer).map_err(|error| Fail::Stop(error.to_string()))?,
            _ => {
                let refused = !shielded && self.is_cancelled();
                let (kept, taken) = if refused {
                    (Kept::Cancelled, None)
                } else {
                    ask.await?
                };
                let answer = serde_json::to_value(&kept).ok();
                self.write(
                    place,
                    Recorded {
                        asked,
                        answer,
                        until: None,
                        taken,
                    },
                )
                .await;
                kept
            }
        };
        if matches!(kept, Kept::Cancelled) {
            self.cancelled.store(true, Ordering::Relaxed);
        }
        kept.into()
    }

    fn is_cancelled(&self) -> bool {
        self.flow(|flow| flow.cancelled).unwrap_or(false)
    }

    async fn cancelled(&self) {
        let id = self.id.clone();
        let look = move |state: &super::store::State| {
            state
                .flows
                .get(&id)
                .filter(|flow| flow.cancelled)
                .map(|_| ())
        };
        self.store.until(look).await;
    }

    async fn carry_out(&self, call: StepCall, step: u32) -> Result<(Kept, Option<usize>), Fail> {
        let signal = CancelSignal::default();
        let scope = StepScope {
            flow: self.id.clone(),
            step,
            attempt: 1,
            cancelled: signal.clone(),
        };
        let work = self.definitions.run_step(&call, scope, &MemoryTimer);
        let watch = async {
            self.cancelled().await;
            signal.fire();
            std::future::pending::<()>().await;
        };
        let outcome = tokio::select! {
            outcome = work => outcome?,
            () = watch => StepOutcome::Cancelled,
        };
        Ok((outcome.into(), None))
    }

    /// The end of a wait that may have begun before a crash.
    async fn until(
        &self,
        place: u32,
        asked: &str,
        time: Option<Duration>,
    ) -> Result<Option<tokio::time::Instant>, Fail> {
        if let Some(begun) = self.recorded(place, asked)? {
            return Ok(begun.until);
        }
        let until = time.map(|time| tokio::time::Instant::now() + time);
        let line = Recorded {
            asked: asked.to_owned(),
            answer: None,
            until,
            taken: None,
        };
        self.write(place, line).await;
        Ok(until)
    }

    async fn receive(
        &self,
        place: u32,
        asked: &str,
        wait: Wait<'_>,
    ) -> Result<(Kept, Option<usize>), Fail> {
        let until = self.until(place, asked, wait.time).await?;
        let timeout = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let signal = async {
            let Some(topic) = wait.topic else {
                return std::future::pending().await;
            };
            let id = self.id.clone();
            // That it was taken is part of the answer's record, so no crash comes in between.
            self.store
                .until(|state| state.flows.get(&id)?.untaken(topic))
                .await
        };
        Ok(tokio::select! {
            biased;
            () = self.cancelled() => (Kept::Cancelled, None),
            (index, payload) = signal => (Kept::Value(serde_json::json!([payload])), Some(index)),
            () = timeout => (Kept::Value(serde_json::json!([])), None),
        })
    }
}

struct Wait<'a> {
    topic: Option<&'a str>,
    time: Option<Duration>,
}

pub(super) struct MemoryTimer;

impl Timer for MemoryTimer {
    fn after(&self, time: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(time).boxed()
    }
}

impl Durable for MemoryDurable {
    fn id(&self) -> &FlowId {
        &self.id
    }

    fn call(&self, call: StepCall) -> Answer<'_, Value> {
        let place = self.places.fetch_add(1, Ordering::Relaxed);
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        let (asked, shielded) = (format!("step {}", call.step), call.options.shielded);
        let refused = !shielded && self.cancelled.load(Ordering::Relaxed);
        Box::pin(async move {
            if refused {
                return Err(Fail::Cancelled);
            }
            self.once(place, asked, shielded, self.carry_out(call, step))
                .await
        })
    }

    fn call_all(&self, calls: Vec<StepCall>) -> BoxFuture<'_, Vec<Result<Value, Fail>>> {
        let calls: Vec<_> = calls.into_iter().map(|call| self.call(call)).collect();
        join_all(calls).boxed()
    }

    fn sleep(&self, time: Duration) -> Answer<'_, ()> {
        let place = self.places.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(Fail::Cancelled);
            }
            let wait = Wait {
                topic: None,
                time: Some(time),
            };
            let ask = self.receive(place, "sleep", wait);
            self.once(place, "sleep".to_owned(), false, ask)
                .await
                .map(|_| ())
        })
    }

    fn receive_raw<'a>(
        &'a self,
        topic: &'a str,
        timeout: Option<Duration>,
    ) -> Answer<'a, Option<Value>> {
        let place = self.places.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(Fail::Cancelled);
            }
            let asked = format!("receive {topic}");
            let wait = Wait {
                topic: Some(topic),
                time: timeout,
            };
            let ask = self.receive(place, &asked, wait);
            let taken = self.once(place, asked.clone(), false, ask).await?;
            Ok(taken.as_array().and_then(|taken| taken.first()).cloned())
        })
    }

    fn publish(&self, query: &'static str, answer: Value) -> Answer<'_, ()> {
        self.store.change(|state| {
            if let Some(flow) = state.flows.get_mut(&self.id) {
                flow.answers.insert(query, answer);
            }
        });
        async { Ok(()) }.boxed()
    }

    fn child_raw<'a>(
        &'a self,
        flow: &'static str,
        suffix: &'a str,
        input: Value,
    ) -> Answer<'a, Value> {
        let place = self.places.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(Fail::Cancelled);
            }
            let id = self
                .id
                .child(suffix)
                .map_err(|error| Fail::App(error.into()))?;
            let new = NewFlow {
                id: id.clone(),
                flow: flow.to_owned(),
                input,
            };
            let ask = async {
                self.store.change(|state| {
                    state.insert(new);
                });
                let ended = self
                    .store
                    .until(|state| {
                        let state = &state.flows.get(&id)?.state;
                        state.is_ended().then(|| state.clone())
                    })
                    .await;
                let kept = match ended {
                    FlowState::Succeeded(value) => Kept::Value(value),
                    FlowState::Failed(failure) | FlowState::NeedsAttention(failure) => {
                        Kept::Failed(failure)
                    }
                    FlowState::Cancelled | FlowState::Running | FlowState::Stuck(_) => {
                        Kept::Cancelled
                    }
                };
                Ok((kept, None))
            };
            self.once(place, format!("child {suffix}"), false, ask)
                .await
        })
    }
}
