//! The library's side of a workflow: its code is run over a bridge, and what it orders becomes commands
//! to the server, one after the other in the order of the orders.
//!
//! The library's macros make one type per name; here one type runs every workflow, and a factory knows
//! which. So its traits are implemented by hand.

use std::any::Any;
use std::cell::Cell;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, LocalBoxFuture};
use nimbus_core::ErrorCode;
use nimbus_workflows::{Definitions, Fail, FlowFailure, FlowId};
use serde_json::Value;
use temporalio_common::UntypedWorkflow;
use temporalio_common::data_converters::{PayloadConverter, RawValue};
use temporalio_common::protos::temporal::api::common::v1::Payloads;
use temporalio_workflow::workflow_interceptors::WorkflowOutputValue;
use temporalio_workflow::workflows::{
    WorkflowDefinitionDescriptor, WorkflowError, WorkflowImplementation,
};
use temporalio_workflow::{
    ChildWorkflowOptions, ChildWorkflowStartError, ParentClosePolicy, TimerOptions, TimerResult,
    WorkflowCancellationToken, WorkflowContext, WorkflowContextView, WorkflowIdReusePolicy,
    WorkflowTermination,
};

use crate::bridge::{BodyWaker, Bridge, Order, Place, TemporalDurable};
use crate::options::TemporalOptions;
use crate::payload::{RecordedFailure, read_failure, terminated, to_failure, to_raw, to_value};
use crate::step;

/// Longer waits than this end no sooner than the server's own clock does.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// What the workflows of one worker share.
#[derive(Debug)]
pub(crate) struct FlowShared {
    pub(crate) options: TemporalOptions,
    pub(crate) definitions: Arc<Definitions>,
}

/// One execution.
pub(crate) struct TemporalFlow {
    name: &'static str,
    shared: Arc<FlowShared>,
    bridge: Bridge,
    waker: Arc<BodyWaker>,
}

thread_local! {
    /// The library asks the type for its name while it is registered, and has no other way to be told.
    static REGISTERING: Cell<&'static str> = const { Cell::new("") };
}

impl TemporalFlow {
    pub(crate) fn new(name: &'static str, shared: &Arc<FlowShared>) -> Self {
        Self {
            name,
            shared: Arc::clone(shared),
            bridge: Bridge::default(),
            waker: BodyWaker::new(),
        }
    }

    /// Whatever is registered in `register` gets this name.
    pub(crate) fn named<T>(name: &'static str, register: impl FnOnce() -> T) -> T {
        REGISTERING.set(name);
        register()
    }
}

impl WorkflowImplementation for TemporalFlow {
    type Run = UntypedWorkflow;
    const HAS_INIT: bool = false;
    const INIT_TAKES_INPUT: bool = false;

    fn name() -> &'static str {
        "nimbus"
    }

    fn definition() -> WorkflowDefinitionDescriptor {
        WorkflowDefinitionDescriptor {
            workflow_type: REGISTERING.get().to_owned(),
            has_init: Self::HAS_INIT,
            init_takes_input: Self::INIT_TAKES_INPUT,
            signals: Vec::new(),
            queries: Vec::new(),
            updates: Vec::new(),
        }
    }

    /// Executions come from a factory; this one is never asked.
    fn init(_: WorkflowContextView, _: Option<RawValue>) -> Self {
        let shared = FlowShared {
            options: TemporalOptions::new("", ""),
            definitions: Arc::default(),
        };
        Self::new("", &Arc::new(shared))
    }

    fn run(
        context: WorkflowContext<Self>,
        input: Option<RawValue>,
    ) -> LocalBoxFuture<'static, Result<Box<dyn WorkflowOutputValue>, WorkflowTermination>> {
        async move {
            let drive = match Drive::new(context.clone(), input.unwrap_or_default()) {
                Ok(drive) => drive,
                Err(failure) => return Err(WorkflowTermination::from(to_failure(&failure, true))),
            };
            match drive.await {
                Ok(value) => Ok(Box::new(to_raw(&value)) as Box<dyn WorkflowOutputValue>),
                Err(Fail::App(failure)) => Err(to_failure(&failure, true).into()),
                Err(Fail::Cancelled) => Err(WorkflowTermination::cancelled()),
                Err(Fail::Stop(reason)) => {
                    // The server asks again, this process or another one.
                    context.force_task_fail(reason);
                    std::future::pending().await
                }
            }
        }
        .boxed_local()
    }

    /// A signal's name is its topic, so that people can send one with the server's own tools. One that is
    /// not JSON is not for us: failing here would hold up the workflow for ever.
    fn decode_signal_input(
        name: &str,
        payloads: Payloads,
        _: &PayloadConverter,
    ) -> Result<Option<Box<dyn Any>>, WorkflowError> {
        Ok(match to_value(&payloads.payloads) {
            Ok(value) => Some(Box::new(value)),
            Err(error) => {
                tracing::warn!(topic = name, %error, "a signal was not understood and is ignored");
                None
            }
        })
    }

    fn dispatch_signal(
        context: WorkflowContext<Self>,
        name: &str,
        input: Box<dyn Any>,
    ) -> LocalBoxFuture<'static, Result<(), WorkflowError>> {
        if let Ok(payload) = input.downcast::<Value>() {
            context.state(|flow| {
                let deliver = || flow.bridge.deliver(name.to_owned(), *payload);
                flow.waker.driving(deliver);
            });
        }
        ready(Ok(())).boxed_local()
    }

    /// Queries take nothing; what somebody gives all the same is not looked at.
    fn decode_query_input(
        _: &str,
        _: &Payloads,
        _: &PayloadConverter,
    ) -> Result<Option<Box<dyn Any>>, WorkflowError> {
        Ok(Some(Box::new(())))
    }

    fn dispatch_query(
        &self,
        _: WorkflowContextView,
        name: &str,
        _: Box<dyn Any>,
    ) -> Result<Box<dyn WorkflowOutputValue>, WorkflowError> {
        match self.bridge.answer_to(name) {
            Some(answer) => Ok(Box::new(to_raw(&answer))),
            None => Err(no_such("query", name)),
        }
    }

    fn dispatch_update(
        _: WorkflowContext<Self>,
        name: &str,
        _: Box<dyn Any>,
    ) -> LocalBoxFuture<'static, Result<Box<dyn WorkflowOutputValue>, WorkflowError>> {
        ready(Err(no_such("update", name))).boxed_local()
    }

    fn validate_update(
        &self,
        _: WorkflowContextView,
        name: &str,
        _: Box<dyn Any>,
    ) -> Result<(), WorkflowError> {
        Err(no_such("update", name))
    }
}

fn no_such(what: &str, name: &str) -> WorkflowError {
    WorkflowError::Execution(format!("there is no {what} {name}").into())
}

/// Something under way on the server.
struct Operation {
    place: Place,
    work: LocalBoxFuture<'static, Result<Value, Fail>>,
    /// Ends a timer.
    token: Option<WorkflowCancellationToken>,
}

/// Runs a workflow's code to its end.
struct Drive {
    context: WorkflowContext<TemporalFlow>,
    shared: Arc<FlowShared>,
    bridge: Bridge,
    body: BoxFuture<'static, Result<Value, Fail>>,
    waker: Arc<BodyWaker>,
    operations: Vec<Operation>,
}

impl Drive {
    fn new(context: WorkflowContext<TemporalFlow>, input: RawValue) -> Result<Self, FlowFailure> {
        let (name, shared, bridge, waker) = context.state(|flow| {
            let (shared, waker) = (Arc::clone(&flow.shared), Arc::clone(&flow.waker));
            (flow.name, shared, flow.bridge.clone(), waker)
        });
        let input = to_value(&input.payloads).map_err(|error| {
            let message = format!("what {name} is given is not understood: {error}");
            FlowFailure::new(ErrorCode::WORKFLOW_INVALID, message).lasting()
        })?;
        let durable = TemporalDurable {
            id: FlowId::parse(context.workflow_id()).map_err(FlowFailure::from)?,
            bridge: bridge.clone(),
            definitions: Arc::clone(&shared.definitions),
        };
        let definitions = Arc::clone(&shared.definitions);
        let body = async move { definitions.run_flow(name, &durable, input).await };
        Ok(Self {
            context,
            shared,
            bridge,
            body: body.boxed(),
            waker,
            operations: Vec::new(),
        })
    }

    /// Looks at everything that is under way, in the order in which it began.
    fn look(&mut self, context: &mut Context<'_>) {
        let bridge = &self.bridge;
        self.operations
            .retain_mut(|operation| match operation.work.as_mut().poll(context) {
                Poll::Ready(answer) => {
                    bridge.settle(operation.place, answer);
                    false
                }
                Poll::Pending => true,
            });
    }

    fn begin(&self, place: Place, order: Order) -> Operation {
        let context = self.context.clone();
        match order {
            Order::Step { number, call } => {
                let shared = Arc::clone(&self.shared);
                let work = async move { step::order(&context, &shared, number, call).await };
                Operation {
                    place,
                    work: work.boxed_local(),
                    token: None,
                }
            }
            Order::Timer(time) => {
                let token = context.cancellation_token().child_token();
                // A timer without any time is refused by the server.
                let time = time.clamp(Duration::from_millis(1), LONGEST);
                let timer = TimerOptions::builder(time).cancellation_token(token.clone());
                let timer = timer.build();
                let work = async move {
                    match context.timer(timer).await {
                        TimerResult::Fired => Ok(Value::Null),
                        TimerResult::Cancelled => Err(Fail::Cancelled),
                    }
                };
                Operation {
                    place,
                    work: work.boxed_local(),
                    token: Some(token),
                }
            }
            Order::Child { flow, id, input } => {
                let patience = self.shared.options.patience;
                let work = async move { child(&context, flow, &id, &input, patience).await };
                Operation {
                    place,
                    work: work.boxed_local(),
                    token: None,
                }
            }
        }
    }

    fn step(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, Fail>> {
        loop {
            if self.waker.is_foreign() {
                let reason = "its code waits for something that is not recorded";
                return Poll::Ready(Err(Fail::Stop(reason.to_owned())));
            }
            if self.context.cancellation_token().is_cancelled() {
                self.bridge.cancel();
            }
            self.look(context);
            if self.waker.take_woken() {
                let waker = Waker::from(Arc::clone(&self.waker));
                let ended = self.body.as_mut().poll(&mut Context::from_waker(&waker));
                if ended.is_ready() {
                    return ended;
                }
            }
            for place in self.bridge.take_abandoned() {
                let mut timers = self.operations.iter();
                let timer = timers.find(|operation| operation.place == place);
                if let Some(token) = timer.and_then(|operation| operation.token.as_ref()) {
                    token.cancel();
                }
            }
            let orders = self.bridge.take_orders();
            if orders.is_empty() && !self.waker.is_woken() {
                return Poll::Pending;
            }
            for (place, order) in orders {
                let operation = self.begin(place, order);
                self.operations.push(operation);
            }
        }
    }
}

impl Future for Drive {
    type Output = Result<Value, Fail>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = Arc::clone(&self.waker);
        waker.driving(|| self.step(context))
    }
}

/// Starts a child and waits for its end.
async fn child(
    context: &WorkflowContext<TemporalFlow>,
    flow: &'static str,
    id: &FlowId,
    input: &Value,
    patience: Duration,
) -> Result<Value, Fail> {
    let options = ChildWorkflowOptions::builder()
        .workflow_id(id.to_string())
        .id_reuse_policy(WorkflowIdReusePolicy::RejectDuplicate)
        // Somebody who ends the parent by force does not mean to leave behind what the child did.
        .parent_close_policy(ParentClosePolicy::RequestCancel)
        .task_timeout(patience)
        .build();
    let started = context.start_child_workflow(UntypedWorkflow::new(flow), to_raw(input), options);
    let started = started.await.map_err(|error| match error {
        ChildWorkflowStartError::Cancelled(_) => Fail::Cancelled,
        ChildWorkflowStartError::StartFailed { .. } => Fail::App(
            FlowFailure::new(
                ErrorCode::WORKFLOW_CONFLICT,
                format!("{id} was started before"),
            )
            .lasting(),
        ),
        other => Fail::Stop(other.to_string()),
    })?;
    let failure = match started.result().await {
        Ok(output) => {
            return to_value(&output.payloads).map_err(|error| Fail::Stop(error.to_string()));
        }
        Err(error) => match error.failure() {
            Some(failure) => read_failure(failure),
            None => return Err(Fail::Stop(error.to_string())),
        },
    };
    Err(match failure {
        RecordedFailure::Failed(failure) => Fail::App(failure),
        RecordedFailure::Cancelled => Fail::Cancelled,
        RecordedFailure::Terminated | RecordedFailure::Lost | RecordedFailure::UnknownStep => {
            Fail::App(terminated(id.as_str()))
        }
    })
}
