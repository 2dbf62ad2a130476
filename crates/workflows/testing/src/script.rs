//! The workflow of the suite: it does what its input says, so that one definition shows everything.

use std::time::Duration;

use nimbus_core::ErrorCode;
use nimbus_workflows::{
    Definitions, Durable, Fail, FlowDef, FlowFailure, Saga, StepDef, StepOptions,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::effects::Effects;
use crate::rig::Code;

/// The query that [`Act::Say`] answers.
pub(crate) const SAID: &str = "said";

/// One thing to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Act {
    Work(Work),
    All(Vec<Work>),
    Sleep { millis: u64 },
    Receive { topic: String, millis: Option<u64> },
    Say { answer: String },
    Child { suffix: String, acts: Vec<Act> },
    Panic,
}

/// A step that logs that it began and ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Work {
    pub name: String,
    /// It fails in so many attempts.
    pub failures: u32,
    /// The failure is one that no further attempt cures.
    pub lasting: bool,
    /// It waits until somebody opens this.
    pub gate: Option<String>,
    /// It panics.
    pub panics: bool,
    /// It logs that it was told to end, and ends.
    pub listens: bool,
    /// Its undo fails always.
    pub stuck_undo: bool,
    pub attempts: u32,
}

impl Work {
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            attempts: 1,
            ..Self::default()
        }
    }

    pub fn gated(name: &str, gate: &str) -> Self {
        Self {
            gate: Some(gate.to_owned()),
            ..Self::named(name)
        }
    }

    pub fn failing(name: &str, failures: u32, attempts: u32) -> Self {
        Self {
            failures,
            attempts,
            ..Self::named(name)
        }
    }

    fn options(&self) -> StepOptions {
        let grace = if self.listens { 30 } else { 0 };
        StepOptions::default()
            .attempts(self.attempts)
            .backoff(Duration::from_millis(10))
            .grace(Duration::from_secs(grace))
    }
}

struct DoWork;

impl StepDef for DoWork {
    const NAME: &'static str = "work";
    type In = Work;
    type Out = String;
}

struct UndoWork;

impl StepDef for UndoWork {
    const NAME: &'static str = "undo";
    type In = Work;
    type Out = ();
}

/// See the module.
#[derive(Debug)]
pub struct Scripted;

impl FlowDef for Scripted {
    const NAME: &'static str = "scripted";
    type In = Vec<Act>;
    type Out = Vec<Value>;

    async fn run(durable: &dyn Durable, acts: Vec<Act>) -> Result<Vec<Value>, Fail> {
        let options = StepOptions::default()
            .attempts(2)
            .backoff(Duration::from_millis(10));
        let mut saga = Saga::new(durable).undo_options(options);
        let outcome = play(durable, &mut saga, acts).await;
        saga.finish(outcome).await
    }
}

/// The same workflow after somebody put a step in front.
struct Changed;

impl FlowDef for Changed {
    const NAME: &'static str = Scripted::NAME;
    type In = Vec<Act>;
    type Out = Vec<Value>;

    async fn run(durable: &dyn Durable, mut acts: Vec<Act>) -> Result<Vec<Value>, Fail> {
        acts.insert(0, Act::Sleep { millis: 1 });
        Scripted::run(durable, acts).await
    }
}

async fn play(
    durable: &dyn Durable,
    saga: &mut Saga<'_>,
    acts: Vec<Act>,
) -> Result<Vec<Value>, Fail> {
    let mut answers = Vec::new();
    for act in acts {
        answers.push(match act {
            Act::Work(work) => {
                json!(
                    saga.step::<DoWork, UndoWork>(&work, &work, work.options())
                        .await?
                )
            }
            Act::All(works) => {
                for work in &works {
                    saga.register::<UndoWork>(work)?;
                }
                let options = works.first().map(Work::options).unwrap_or_default();
                let ends = durable.step_each::<DoWork>(&works, &options).await?;
                json!(ends.into_iter().collect::<Result<Vec<_>, _>>()?)
            }
            Act::Sleep { millis } => {
                durable.sleep(Duration::from_millis(millis)).await?;
                Value::Null
            }
            Act::Receive { topic, millis } => {
                let timeout = millis.map(Duration::from_millis);
                json!(durable.receive::<Value>(&topic, timeout).await?)
            }
            Act::Say { answer } => {
                durable.publish(SAID, json!(answer)).await?;
                Value::Null
            }
            Act::Child { suffix, acts } => json!(durable.child::<Scripted>(&suffix, &acts).await?),
            #[expect(clippy::panic, reason = "the suite shows what becomes of it")]
            Act::Panic => panic!("the workflow is poison"),
        });
    }
    Ok(answers)
}

/// The workflow and its steps over a folder, in one of their versions.
pub fn definitions(effects: &Effects, code: Code) -> Definitions {
    let mut definitions = Definitions::default();
    match code {
        Code::Original => definitions.flow::<Scripted>(),
        Code::Changed => definitions.flow::<Changed>(),
    }
    let world = effects.clone();
    definitions.step::<DoWork, _, _>(move |scope, work| {
        let world = world.clone();
        async move {
            let Work { name, gate, .. } = &work;
            world.log(&format!("begin {name}"));
            world.log(&format!("key {name} {}", scope.key()));
            assert!(!work.panics, "{name} is poison");
            if let Some(gate) = gate {
                tokio::select! {
                    () = world.pass(gate) => {}
                    () = scope.cancelled.fired(), if work.listens => {
                        world.log(&format!("told {name}"));
                        return Err(FlowFailure::new(ErrorCode::WORKFLOW_CANCELLED, "told"));
                    }
                }
            }
            if scope.attempt <= work.failures {
                let failure = FlowFailure::new(ErrorCode::INTERNAL, format!("{name} failed"));
                return Err(if work.lasting {
                    failure.lasting()
                } else {
                    failure
                });
            }
            world.log(&format!("end {name}"));
            Ok(work.name)
        }
    });
    let world = effects.clone();
    definitions.step::<UndoWork, _, _>(move |_, work| {
        let world = world.clone();
        async move {
            if work.stuck_undo {
                let message = format!("{} cannot be undone", work.name);
                return Err(FlowFailure::new(ErrorCode::INTERNAL, message));
            }
            world.log(&format!("undo {}", work.name));
            Ok(())
        }
    });
    definitions
}
