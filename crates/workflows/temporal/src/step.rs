//! A step is an activity: ordered by a workflow, carried out by any worker that knows it.
//!
//! The server counts the attempts and waits between them. An attempt that loses its process counts too,
//! but never ends the step by itself: there are [`TemporalOptions::lost_attempts`] of them beyond those
//! that the step asked for.
//!
//! [`TemporalOptions::lost_attempts`]: crate::TemporalOptions::lost_attempts

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use nimbus_core::ErrorCode;
use nimbus_workflows::{
    CancelSignal, Definitions, Fail, FlowFailure, FlowId, StepCall, StepOptions, StepOutcome,
    StepScope, Timer,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use temporalio_common::ActivityDefinition;
use temporalio_common::data_converters::RawValue;
use temporalio_common::error::ApplicationFailure;
use temporalio_sdk::activities::{
    ActivityContext, ActivityDefinitions, ActivityError, ActivityImplementer, ExecutableActivity,
};
use temporalio_workflow::{
    ActivityCancellationType, ActivityOptions, RetryPolicy, WorkflowCancellationToken,
    WorkflowContext,
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::flow::{FlowShared, TemporalFlow};
use crate::payload::{RecordedFailure, UNKNOWN_STEP, read_failure, to_failure, to_raw, to_value};

/// What the server may add to a step's own limit: the step ends first.
const SLACK: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// What a worker is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StepOrder {
    step: String,
    number: u32,
    input: Value,
    options: StepOptions,
}

/// Has a step carried out; in a workflow.
pub(crate) async fn order(
    context: &WorkflowContext<TemporalFlow>,
    shared: &FlowShared,
    number: u32,
    call: StepCall,
) -> Result<Value, Fail> {
    let order = StepOrder {
        step: call.step.to_owned(),
        number,
        input: call.input,
        options: call.options,
    };
    let shielded = order.options.shielded;
    for round in 1.. {
        // With the name in it, code that calls another step here is noticed.
        let id = format!("{number}.{round}-{}", order.step);
        let options = options(&order, shared, id);
        let ended = context
            .execute_activity(RunStep, order.clone(), options)
            .await;
        let failure = match ended {
            Ok(output) => {
                return to_value(&output.payloads).map_err(|error| Fail::Stop(error.to_string()));
            }
            Err(error) => match error.failure() {
                Some(failure) => read_failure(failure),
                None => return Err(Fail::Stop(error.to_string())),
            },
        };
        let cancelled = !shielded && context.cancellation_token().is_cancelled();
        return Err(match failure {
            RecordedFailure::Cancelled => Fail::Cancelled,
            // It was told to end, and nobody is left to say that it did.
            RecordedFailure::Lost if cancelled => Fail::Cancelled,
            RecordedFailure::Failed(failure) => Fail::App(failure),
            RecordedFailure::Lost | RecordedFailure::Terminated => Fail::App(lost(&order)),
            RecordedFailure::UnknownStep if cancelled => Fail::Cancelled,
            // Workers of an older version were asked. The newer ones are on their way.
            RecordedFailure::UnknownStep => continue,
        });
    }
    Err(Fail::Stop("there are no more numbers".to_owned()))
}

fn options(order: &StepOrder, shared: &FlowShared, id: String) -> ActivityOptions {
    let (step, ours) = (&order.options, &shared.options);
    let limit = step.timeout.saturating_add(step.grace).min(LONGEST);
    let retry = RetryPolicy::builder()
        .initial_interval(step.backoff.max(Duration::from_millis(1)))
        .backoff_coefficient(2.0)
        .maximum_interval(
            step.longest_backoff
                .max(step.backoff)
                .max(Duration::from_millis(1)),
        )
        .maximum_attempts(step.attempts.saturating_add(ours.lost_attempts))
        .build();
    ActivityOptions::with_start_to_close_timeout(limit + SLACK)
        .activity_id(id)
        .heartbeat_timeout(ours.heartbeat_timeout())
        .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
        // One of its own is not cancelled with the workflow.
        .maybe_cancellation_token(step.shielded.then(WorkflowCancellationToken::new))
        .retry_policy(retry)
        .summary(order.step.clone())
        .build()
}

fn lost(order: &StepOrder) -> FlowFailure {
    let message = format!(
        "step {} lost its process in every attempt and was given up",
        order.step
    );
    FlowFailure::new(ErrorCode::WORKFLOW_POISONED, message).lasting()
}

/// The one activity.
pub(crate) struct RunStep;

impl ActivityDefinition for RunStep {
    type Input = StepOrder;
    type Output = RawValue;

    fn name(&self) -> &str {
        "nimbus.step"
    }
}

/// What carries out steps in this process.
pub(crate) struct StepRunner {
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) heartbeat: Duration,
    /// Steps run where whoever started the worker runs: what they use belongs there.
    pub(crate) runtime: Handle,
    pub(crate) stop: CancellationToken,
}

impl ActivityImplementer for StepRunner {
    fn register_all(self: Arc<Self>, definitions: &mut ActivityDefinitions) {
        definitions.register_activity::<RunStep>(self);
    }
}

impl ExecutableActivity for RunStep {
    type Implementer = StepRunner;
    const REQUIRES_INSTANCE: bool = true;

    fn definition() -> Self {
        Self
    }

    fn execute(
        runner: Option<Arc<StepRunner>>,
        context: ActivityContext,
        order: StepOrder,
    ) -> BoxFuture<'static, Result<RawValue, ActivityError>> {
        async move {
            let runner = runner.ok_or_else(|| again("the worker has no steps"))?;
            runner.carry_out(context, order).await
        }
        .boxed()
    }
}

impl StepRunner {
    async fn carry_out(
        &self,
        context: ActivityContext,
        order: StepOrder,
    ) -> Result<RawValue, ActivityError> {
        let info = context.info();
        let flow = FlowId::parse(info.workflow_id.clone().unwrap_or_default());
        let flow =
            flow.map_err(|error| ActivityError::application(to_failure(&error.into(), true)))?;
        let (attempt, signal) = (info.attempt, CancelSignal::default());
        let scope = StepScope {
            flow,
            step: order.number,
            attempt,
            cancelled: signal.clone(),
        };
        let definitions = Arc::clone(&self.definitions);
        let attempts = order.options.attempts;
        let work = async move {
            let StepOrder {
                step,
                input,
                options,
                ..
            } = order;
            definitions
                .run_attempt(&step, scope, input, &options, &StepTimer)
                .await
        };
        let work = AbortOnDropHandle::new(self.runtime.spawn(work));
        let beat = async {
            loop {
                // The next one is soon enough.
                let _ = context.record_heartbeat(()).await;
                tokio::time::sleep(self.heartbeat).await;
            }
        };
        let told = async {
            context.cancelled().await;
            signal.fire();
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            ended = work => ended,
            () = self.stop.cancelled() => return Err(again("the worker stops").into()),
            () = beat => return Err(again("the heartbeat ended").into()),
            () = told => return Err(ActivityError::cancelled()),
        };
        match ended {
            Ok(Ok(StepOutcome::Done(value))) => Ok(to_raw(&value)),
            Ok(Ok(StepOutcome::Cancelled)) => Err(ActivityError::cancelled()),
            Ok(Ok(StepOutcome::Failed(failure))) => {
                let last = failure.lasting || attempt >= attempts;
                Err(ActivityError::application(to_failure(&failure, last)))
            }
            Ok(Err(fail)) => Err(ActivityError::application(
                ApplicationFailure::builder(fail.to_string())
                    .type_name(UNKNOWN_STEP.to_owned())
                    .build(),
            )),
            // The runtime that the steps run on is going away.
            Err(_) => Err(again("the process ends").into()),
        }
    }
}

/// The step did not fail: another worker is to try.
fn again(why: &'static str) -> ApplicationFailure {
    ApplicationFailure::new(why)
}

pub(crate) struct StepTimer;

impl Timer for StepTimer {
    fn after(&self, time: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(time).boxed()
    }
}
