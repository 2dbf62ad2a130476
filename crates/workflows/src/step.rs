//! A step: what it is given, how often it is tried, and how an attempt ends. Time comes from the
//! runtime, because this crate has none.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Either, select};
use nimbus_core::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cancel::CancelSignal;
use crate::fail::FlowFailure;
use crate::id::FlowId;

/// How a step is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepOptions {
    /// How often it is tried; 1 at least.
    pub attempts: u32,
    /// The pause before the second attempt; doubled before each further one.
    pub backoff: Duration,
    /// The longest pause.
    pub longest_backoff: Duration,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// It runs although the workflow is cancelled: for undoing.
    pub shielded: bool,
    /// How long a cancelled attempt may take to end by itself before it is dropped.
    pub grace: Duration,
}

impl Default for StepOptions {
    fn default() -> Self {
        Self {
            attempts: 1,
            backoff: Duration::from_millis(500),
            longest_backoff: Duration::from_secs(60),
            timeout: Duration::from_secs(24 * 60 * 60),
            shielded: false,
            grace: Duration::ZERO,
        }
    }
}

impl StepOptions {
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.backoff = backoff;
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub fn shielded(mut self) -> Self {
        self.shielded = true;
        self
    }

    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The pause after an attempt that failed.
    fn pause(&self, attempt: u32) -> Duration {
        let factor = 1_u32 << attempt.saturating_sub(1).min(16);
        self.backoff
            .saturating_mul(factor)
            .min(self.longest_backoff)
    }
}

/// What a step knows about itself.
#[derive(Clone, Debug)]
pub struct StepScope {
    /// The workflow.
    pub flow: FlowId,
    /// The place among the workflow's steps, from 0.
    pub step: u32,
    /// From 1. Begins anew when the process was ended in between.
    pub attempt: u32,
    /// Fires when the workflow is cancelled; a step that can end early should.
    pub cancelled: CancelSignal,
}

impl StepScope {
    /// The same in every attempt of this step and in no other step: give it to whatever must not act
    /// twice.
    pub fn key(&self) -> String {
        format!("{}#{}", self.flow, self.step)
    }
}

/// How a step ended; what a runtime records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    Done(Value),
    Failed(FlowFailure),
    Cancelled,
}

/// A runtime's time.
pub trait Timer: Send + Sync {
    fn after(&self, time: Duration) -> BoxFuture<'static, ()>;
}

pub(crate) type StepBody =
    dyn Fn(StepScope, Value) -> BoxFuture<'static, Result<Value, FlowFailure>> + Send + Sync;

/// One attempt, with its time limit; a panic is a failure.
pub(crate) async fn attempt(
    name: &str,
    body: &StepBody,
    scope: StepScope,
    input: Value,
    options: &StepOptions,
    timer: &dyn Timer,
) -> StepOutcome {
    let signal = scope.cancelled.clone();
    // The body is called inside, so that a panic before its first wait is caught too.
    let work = AssertUnwindSafe(async { body(scope, input).await }).catch_unwind();
    let work = pin!(work);
    let limit = timer.after(options.timeout);
    let dropped = async {
        if options.shielded {
            std::future::pending::<()>().await;
        }
        signal.fired().await;
        timer.after(options.grace).await;
    };
    let ended = match select(work, pin!(select(limit, pin!(dropped)))).await {
        Either::Left((ended, _)) => ended,
        Either::Right((Either::Left(_), _)) => {
            return StepOutcome::Failed(FlowFailure::new(
                ErrorCode::WORKFLOW_TIMEOUT,
                format!("step {name} took longer than {:?}", options.timeout),
            ));
        }
        Either::Right((Either::Right(_), _)) => return StepOutcome::Cancelled,
    };
    match ended {
        Ok(Ok(value)) => StepOutcome::Done(value),
        // It was told to end, and did: that is no failure of its own.
        Ok(Err(_)) if signal.is_fired() && !options.shielded => StepOutcome::Cancelled,
        Ok(Err(failure)) => StepOutcome::Failed(failure),
        Err(panic) => StepOutcome::Failed(FlowFailure::panicked(&format!("step {name}"), &*panic)),
    }
}

/// All attempts of a step, with pauses between them.
pub(crate) async fn attempts(
    name: &str,
    body: &StepBody,
    mut scope: StepScope,
    (input, options): (&Value, &StepOptions),
    timer: &dyn Timer,
    told: &(dyn Fn(&StepOutcome) + Sync),
) -> StepOutcome {
    loop {
        let outcome = attempt(name, body, scope.clone(), input.clone(), options, timer).await;
        told(&outcome);
        match outcome {
            StepOutcome::Failed(failure)
                if !failure.lasting && scope.attempt < options.attempts =>
            {
                let pause = timer.after(options.pause(scope.attempt));
                if options.shielded {
                    pause.await;
                } else if race(pause, scope.cancelled.fired()).await {
                    return StepOutcome::Cancelled;
                }
                scope.attempt += 1;
            }
            ended => return ended,
        }
    }
}

/// Whether the second one came first.
async fn race(first: impl Future<Output = ()>, second: impl Future<Output = ()>) -> bool {
    matches!(select(pin!(first), pin!(second)).await, Either::Right(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let options = StepOptions {
            backoff: Duration::from_secs(1),
            longest_backoff: Duration::from_secs(5),
            ..StepOptions::default()
        };
        let pauses: Vec<_> = (1..6).map(|n| options.pause(n).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 5, 5]);
        assert_eq!(options.pause(u32::MAX).as_secs(), 5);
    }

    #[test]
    fn keys_differ_by_workflow_and_step_and_not_by_attempt() {
        let scope = |flow: &str, step, attempt| StepScope {
            flow: FlowId::parse(flow).unwrap(),
            step,
            attempt,
            cancelled: CancelSignal::default(),
        };
        assert_eq!(scope("a/b", 3, 1).key(), scope("a/b", 3, 2).key());
        assert_ne!(scope("a", 3, 1).key(), scope("a", 4, 1).key());
        assert_ne!(scope("a", 3, 1).key(), scope("b", 3, 1).key());
    }
}
