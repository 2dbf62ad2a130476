//! How many workflows a runtime starts and ends per second: the same workflow of one step that does nothing, on each.

use std::time::{Duration, Instant};

use nimbus_core::Error;
use nimbus_workflows::{
    Control, Definitions, Durable, Fail, FlowDef, FlowId, FlowState, NewFlow, StepDef, StepOptions,
};
use serde_json::{Value, json};

struct NoOpStep;

impl StepDef for NoOpStep {
    const NAME: &'static str = "nothing";
    type In = u32;
    type Out = u32;
}

struct NoOpFlow;

impl FlowDef for NoOpFlow {
    const NAME: &'static str = "nothing-at-all";
    type In = u32;
    type Out = u32;

    async fn run(durable: &dyn Durable, number: u32) -> Result<u32, Fail> {
        durable
            .step::<NoOpStep>(&number, StepOptions::default())
            .await
    }
}

/// What a worker needs to know for [`rate`].
pub fn rate_definitions() -> Definitions {
    let mut definitions = Definitions::default();
    definitions.flow::<NoOpFlow>();
    definitions.step::<NoOpStep, _, _>(|_, number| async move { Ok(number) });
    definitions
}

/// Starts so many, sixteen at once, waits for all of them, and says how fast both were.
///
/// # Errors
///
/// When one cannot be started, or does not succeed.
pub async fn rate(control: &dyn Control, count: u32) -> Result<Value, Error> {
    let id = |number: u32| FlowId::new(format!("rate-{number}"));
    let begun = Instant::now();
    let starts = (0..count).map(async |number| {
        let flow = NoOpFlow::NAME.to_owned();
        let input = json!(number);
        let new = NewFlow {
            id: id(number)?,
            flow,
            input,
        };
        control.start(new).await.map(|_| ())
    });
    all(starts).await?;
    let started = begun.elapsed();
    let ends = (0..count).map(async |number| {
        let end = control.result(&id(number)?).await?;
        if end == FlowState::Succeeded(json!(number)) {
            return Ok(());
        }
        let code = nimbus_core::ErrorCode::INTERNAL;
        Err(Error::new(code, format!("workflow {number}: {end:?}")))
    });
    all(ends).await?;
    let ended = begun.elapsed();
    let per_second = |time: Duration| (f64::from(count) / time.as_secs_f64()).round();
    Ok(json!({
        "workflows": count,
        "started_per_second": per_second(started),
        "ended_per_second": per_second(ended),
    }))
}

async fn all<F: Future<Output = Result<(), Error>>>(
    asked: impl Iterator<Item = F>,
) -> Result<(), Error> {
    use futures::stream::{self, StreamExt as _, TryStreamExt as _};
    let answers = stream::iter(asked).buffer_unordered(16);
    answers.try_collect::<Vec<()>>().await.map(|_| ())
}
