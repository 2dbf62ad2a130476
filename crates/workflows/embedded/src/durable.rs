//! [`Durable`] on the library: each operation becomes one or two of its recorded steps.
//!
//! The library takes a step's number when the step is built, and only inside the workflow's own task,
//! so steps are built in the call and nothing is spawned. Its errors are not failures of the
//! application: they stop the workflow where it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use jiff::Timestamp;
use nimbus_workflows::{
    Answer, CancelSignal, Durable, Fail, FlowId, Mailbox, Post, StepCall, StepOutcome, StepScope,
    Timer,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::options::INBOX;
use crate::store::RecordedEnd;
use crate::worker::Shared;

type EngineError = dbos::Error<RecordedEnd>;

/// A wait without an end is made of waits of this length.
const LONG: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(crate) struct EmbeddedDurable {
    id: FlowId,
    shared: Arc<Shared>,
    steps: AtomicU32,
    mailbox: Mutex<Mailbox>,
}

/// Recorded before a wait: whether to wait at all, and since when.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Turn {
    /// In milliseconds.
    Since(i64),
    Cancelled,
}

impl EmbeddedDurable {
    pub(crate) fn new(id: FlowId, shared: Arc<Shared>) -> Self {
        Self {
            id,
            shared,
            steps: AtomicU32::new(0),
            mailbox: Mutex::default(),
        }
    }

    fn refused(&self) -> bool {
        self.mailbox.lock().is_cancelled()
    }

    fn cancelled(&self) -> Fail {
        self.mailbox.lock().cancel();
        Fail::Cancelled
    }

    async fn carry_out(&self, call: &StepCall, step: u32) -> Result<StepOutcome, EngineError> {
        let shared = &self.shared;
        if !call.options.shielded && shared.store.is_cancelled(&self.id).await {
            return Ok(StepOutcome::Cancelled);
        }
        let slot = shared.slots.acquire().await;
        let signal = CancelSignal::default();
        let scope = StepScope {
            flow: self.id.clone(),
            step,
            attempt: 1,
            cancelled: signal.clone(),
        };
        let work = shared.definitions.run_step(call, scope, &EmbeddedTimer);
        let watch = async {
            shared.cancelled(&self.id).await;
            signal.fire();
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            ended = work => ended,
            () = watch => Ok(StepOutcome::Cancelled),
        };
        drop(slot);
        // A step that this version does not know is not recorded: another version may know it.
        ended.map_err(|fail| {
            tracing::error!(workflow = %self.id, %fail, "a step cannot be carried out");
            EngineError::Interrupted {
                workflow_id: self.id.to_string(),
            }
        })
    }

    /// Asks whether to wait, and records the answer.
    async fn turn(&self, what: &str) -> Result<Timestamp, Fail> {
        if self.refused() {
            return Err(Fail::Cancelled);
        }
        let turn = dbos::step::<Turn, RecordedEnd, _, _>(what, || async {
            Ok(if self.shared.store.is_cancelled(&self.id).await {
                Turn::Cancelled
            } else {
                Turn::Since(Timestamp::now().as_millisecond())
            })
        });
        match turn.await.map_err(stopped)? {
            Turn::Cancelled => Err(self.cancelled()),
            Turn::Since(time) => {
                Timestamp::from_millisecond(time).map_err(|error| Fail::Stop(error.to_string()))
            }
        }
    }

    /// The next delivery; nothing when the time is over.
    async fn delivery(&self, until: Option<Timestamp>) -> Result<Option<Post>, Fail> {
        loop {
            let left = until.map_or(LONG, |until| {
                let left = until.duration_since(Timestamp::now());
                Duration::try_from(left).unwrap_or_default().min(LONG)
            });
            let post = dbos::recv::<Post, RecordedEnd>(Some(INBOX), left).await;
            match post.map_err(stopped)? {
                Some(post) => return Ok(Some(post)),
                None if until.is_some() => return Ok(None),
                None => {}
            }
        }
    }

    async fn wait(
        &self,
        topic: Option<&str>,
        time: Option<Duration>,
    ) -> Result<Option<Value>, Fail> {
        let what = topic.map_or_else(|| "sleep".to_owned(), |topic| format!("receive {topic}"));
        let since = self.turn(&what).await?;
        let until = time.map(|time| since.checked_add(time).unwrap_or(Timestamp::MAX));
        loop {
            let kept = topic.and_then(|topic| self.mailbox.lock().take(topic));
            if kept.is_some() {
                return Ok(kept);
            }
            match self.delivery(until).await? {
                None => return Ok(None),
                Some(Post::Cancel) => return Err(self.cancelled()),
                Some(signal @ Post::Signal { .. }) => self.mailbox.lock().deliver(signal),
            }
        }
    }
}

/// The library speaks: nothing failed, the workflow goes on later.
fn stopped(error: EngineError) -> Fail {
    Fail::Stop(error.to_string())
}

pub(crate) struct EmbeddedTimer;

impl Timer for EmbeddedTimer {
    fn after(&self, time: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(time).boxed()
    }
}

impl Durable for EmbeddedDurable {
    fn id(&self) -> &FlowId {
        &self.id
    }

    fn call(&self, call: StepCall) -> Answer<'_, Value> {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        if !call.options.shielded && self.refused() {
            return async { Err(Fail::Cancelled) }.boxed();
        }
        let name = call.step;
        let call = Arc::new(call);
        let step = dbos::step::<StepOutcome, RecordedEnd, _, _>(name, move || {
            let call = Arc::clone(&call);
            async move { self.carry_out(&call, step).await }
        });
        Box::pin(async move {
            match step.await.map_err(stopped)? {
                StepOutcome::Done(value) => Ok(value),
                StepOutcome::Failed(failure) => Err(Fail::App(failure)),
                StepOutcome::Cancelled => Err(self.cancelled()),
            }
        })
    }

    fn call_all(&self, calls: Vec<StepCall>) -> BoxFuture<'_, Vec<Result<Value, Fail>>> {
        let calls: Vec<_> = calls.into_iter().map(|call| self.call(call)).collect();
        join_all(calls).boxed()
    }

    fn sleep(&self, time: Duration) -> Answer<'_, ()> {
        Box::pin(async move { self.wait(None, Some(time)).await.map(|_| ()) })
    }

    fn receive_raw<'a>(
        &'a self,
        topic: &'a str,
        timeout: Option<Duration>,
    ) -> Answer<'a, Option<Value>> {
        Box::pin(self.wait(Some(topic), timeout))
    }

    /// Not a step of the library: workflows that run were recorded without it. One that is said again changes nothing.
    fn publish(&self, query: &'static str, answer: Value) -> Answer<'_, ()> {
        Box::pin(async move {
            let said = self.shared.store.publish(&self.id, query, &answer).await;
            if let Err(error) = said {
                tracing::warn!(workflow = %self.id, query, %error, "an answer to a query was not kept");
            }
            Ok(())
        })
    }

    fn child_raw<'a>(
        &'a self,
        flow: &'static str,
        suffix: &'a str,
        input: Value,
    ) -> Answer<'a, Value> {
        Box::pin(async move {
            let id = self
                .id
                .child(suffix)
                .map_err(|error| Fail::App(error.into()))?;
            self.turn(&format!("child {suffix}")).await?;
            let Some(child) = self.shared.flow(flow) else {
                return Err(Fail::Stop(format!("this version knows no workflow {flow}")));
            };
            let options = dbos::StartOptions {
                workflow_id: Some(id.as_str()),
                ..dbos::StartOptions::default()
            };
            let handle = child.start_with(input, options).await.map_err(stopped)?;
            handle.result().await.map_err(|error| match error {
                EngineError::Application(RecordedEnd::Failed(failure)) => Fail::App(failure),
                EngineError::Application(RecordedEnd::Cancelled)
                | EngineError::AwaitedWorkflowCancelled { .. } => self.cancelled_child(),
                other => stopped(other),
            })
        })
    }
}

impl EmbeddedDurable {
    /// Somebody may have cancelled the child alone; then this workflow is not cancelled, and decides.
    fn cancelled_child(&self) -> Fail {
        Fail::Cancelled
    }
}
