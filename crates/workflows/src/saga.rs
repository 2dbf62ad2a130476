//! Undoing: what was done is undone in reverse order when the workflow fails or is cancelled.
//!
//! The undo of a step is registered before the step begins, because a step that was cancelled or lost
//! its process may have half happened. So an undo must bear that there is nothing to undo.

use nimbus_core::ErrorCode;

use crate::durable::{Durable, StepCall, StepDef};
use crate::fail::{Fail, FlowFailure};
use crate::step::StepOptions;

/// Steps with their undos.
pub struct Saga<'d> {
    durable: &'d dyn Durable,
    undos: Vec<StepCall>,
    undo_options: StepOptions,
}

impl<'d> Saga<'d> {
    /// Undos are tried three times.
    pub fn new(durable: &'d dyn Durable) -> Self {
        Self {
            durable,
            undos: Vec::new(),
            undo_options: StepOptions::default().attempts(3),
        }
    }

    /// How undos are carried out; they are shielded from cancelling in any case.
    pub fn undo_options(mut self, options: StepOptions) -> Self {
        self.undo_options = options;
        self
    }

    /// Registers the undo, then carries out the step.
    pub async fn step<S: StepDef, U: StepDef>(
        &mut self,
        input: &S::In,
        undo: &U::In,
        options: StepOptions,
    ) -> Result<S::Out, Fail> {
        self.register::<U>(undo)?;
        self.durable.step::<S>(input, options).await
    }

    /// Registers an undo alone, for steps that run side by side or in a child.
    pub fn register<U: StepDef>(&mut self, undo: &U::In) -> Result<(), Fail> {
        let options = self.undo_options.clone().shielded();
        self.undos.push(StepCall::of::<U>(undo, options)?);
        Ok(())
    }

    /// The outcome as it is, after everything was undone if it is a failure or a cancellation. An undo
    /// that fails does not keep the others from running; what it left behind is named in the failure.
    pub async fn finish<T>(self, outcome: Result<T, Fail>) -> Result<T, Fail> {
        let why = match outcome {
            Ok(value) => return Ok(value),
            Err(stop @ Fail::Stop(_)) => return Err(stop),
            Err(why) => why,
        };
        let mut attention = Vec::new();
        for undo in self.undos.into_iter().rev() {
            let name = undo.step;
            match self.durable.call(undo).await {
                Ok(_) => {}
                Err(stop @ Fail::Stop(_)) => return Err(stop),
                Err(Fail::App(failure)) => attention.push(format!("{name}: {}", failure.message)),
                Err(Fail::Cancelled) => attention.push(format!("{name}: was cancelled")),
            }
        }
        if attention.is_empty() {
            return Err(why);
        }
        let mut failure = match why {
            Fail::App(failure) => failure,
            other @ (Fail::Cancelled | Fail::Stop(_)) => {
                FlowFailure::new(ErrorCode::WORKFLOW_CANCELLED, other.to_string())
            }
        };
        failure.attention.extend(attention);
        Err(Fail::App(failure))
    }
}

impl std::fmt::Debug for Saga<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let undos: Vec<_> = self.undos.iter().map(|undo| undo.step).collect();
        f.debug_struct("Saga").field("undos", &undos).finish()
    }
}
