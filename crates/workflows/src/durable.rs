//! What the code of a workflow asks of its runtime: five raw operations that a runtime implements, and
//! typed forms of them that workflows use.

use std::time::Duration;

use futures::future::BoxFuture;
use nimbus_core::ErrorCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fail::{Fail, FlowFailure};
use crate::id::FlowId;
use crate::step::StepOptions;

/// A step's name and types. The name is recorded: renaming breaks workflows that run.
pub trait StepDef: 'static {
    const NAME: &'static str;
    type In: Serialize + DeserializeOwned + Send + Sync;
    type Out: Serialize + DeserializeOwned + Send;
}

/// A workflow's name, types and code. The name is recorded too.
pub trait FlowDef: 'static {
    const NAME: &'static str;
    type In: Serialize + DeserializeOwned + Send + Sync;
    type Out: Serialize + DeserializeOwned + Send;

    /// The code, which is run again after a crash: see the rules in the crate's description.
    fn run(
        durable: &dyn Durable,
        input: Self::In,
    ) -> impl Future<Output = Result<Self::Out, Fail>> + Send;
}

/// A step to be carried out.
#[derive(Clone, Debug)]
pub struct StepCall {
    pub step: &'static str,
    pub input: Value,
    pub options: StepOptions,
}

impl StepCall {
    pub fn of<S: StepDef>(input: &S::In, options: StepOptions) -> Result<Self, Fail> {
        Ok(Self {
            step: S::NAME,
            input: encode(S::NAME, input)?,
            options,
        })
    }
}

/// What a runtime answers, some time.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Fail>>;

/// What a runtime gives to a workflow. Calls take their place in the record when they are made, not
/// when they are awaited; everything is awaited in the workflow itself.
pub trait Durable: Send + Sync {
    fn id(&self) -> &FlowId;

    /// Carries out a step.
    fn call(&self, call: StepCall) -> Answer<'_, Value>;

    /// Carries out steps side by side; answers in the order of the calls, when all have ended.
    fn call_all(&self, calls: Vec<StepCall>) -> BoxFuture<'_, Vec<Result<Value, Fail>>>;

    /// Waits, over restarts too.
    fn sleep(&self, time: Duration) -> Answer<'_, ()>;

    /// The next signal of a topic, also one that came before; nothing when the time is over.
    fn receive_raw<'a>(
        &'a self,
        topic: &'a str,
        timeout: Option<Duration>,
    ) -> Answer<'a, Option<Value>>;

    /// From now on queries of this name are answered with this. It takes no place in the record: a workflow that is run
    /// again says again what it said.
    fn publish(&self, query: &'static str, answer: Value) -> Answer<'_, ()>;

    /// Starts a child, named by this workflow and `suffix`, and waits for its end. Cancelling this
    /// workflow cancels it.
    fn child_raw<'a>(
        &'a self,
        flow: &'static str,
        suffix: &'a str,
        input: Value,
    ) -> Answer<'a, Value>;
}

impl dyn Durable + '_ {
    /// Carries out a step.
    pub async fn step<S: StepDef>(
        &self,
        input: &S::In,
        options: StepOptions,
    ) -> Result<S::Out, Fail> {
        decode(
            S::NAME,
            self.call(StepCall::of::<S>(input, options)?).await?,
        )
    }

    /// Carries out one step for each input, side by side.
    pub async fn step_each<S: StepDef>(
        &self,
        inputs: &[S::In],
        options: &StepOptions,
    ) -> Result<Vec<Result<S::Out, Fail>>, Fail> {
        let calls = inputs
            .iter()
            .map(|input| StepCall::of::<S>(input, options.clone()));
        let answers = self.call_all(calls.collect::<Result<_, _>>()?).await;
        Ok(answers
            .into_iter()
            .map(|answer| answer.and_then(|value| decode(S::NAME, value)))
            .collect())
    }

    /// The next signal of a topic; nothing when the time is over. A signal that has another form is a
    /// failure that names the topic.
    pub async fn receive<T: DeserializeOwned>(
        &self,
        topic: &str,
        timeout: Option<Duration>,
    ) -> Result<Option<T>, Fail> {
        match self.receive_raw(topic, timeout).await? {
            None => Ok(None),
            Some(value) => serde_json::from_value(value).map(Some).map_err(|error| {
                Fail::App(FlowFailure::new(
                    ErrorCode::WORKFLOW_INVALID,
                    format!("a signal `{topic}` was not understood: {error}"),
                ))
            }),
        }
    }

    /// Runs a child to its end.
    pub async fn child<F: FlowDef>(&self, suffix: &str, input: &F::In) -> Result<F::Out, Fail> {
        let input = encode(F::NAME, input)?;
        decode(F::NAME, self.child_raw(F::NAME, suffix, input).await?)
    }
}

pub(crate) fn encode<T: Serialize>(name: &str, value: &T) -> Result<Value, Fail> {
    serde_json::to_value(value).map_err(|error| {
        Fail::App(
            FlowFailure::new(
                ErrorCode::WORKFLOW_INVALID,
                format!("what {name} is given cannot be written down: {error}"),
            )
            .lasting(),
        )
    })
}

/// A recorded value of another form was written by other code: nothing failed, this code is wrong.
pub(crate) fn decode<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, Fail> {
    serde_json::from_value(value).map_err(|error| {
        Fail::Stop(format!(
            "what was recorded for {name} has another form: {error}"
        ))
    })
}
