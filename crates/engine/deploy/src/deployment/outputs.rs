//! Outputs that components and the stack register for themselves.

use std::sync::Arc;

use nimbus_engine_model::diff::maps_equal;
use nimbus_engine_model::{
    HookKind, JournalChange, PropertyMap, ROOT_STACK_TYPE, ResourceState, StateRef, StepOp, Urn,
};
use nimbus_engine_ports::{EngineEvent, StepEvent};

use super::Deployment;
use super::register::NoAnswer;
use crate::error::DeployError;
use crate::executor::{AwaitedOutputs, Views};
use crate::known::RecordedResource;

impl Deployment {
    pub(super) async fn register_outputs(
        &self,
        urn: Urn,
        outputs: PropertyMap,
    ) -> Result<(), NoAnswer> {
        if self.failures.is_stopped() {
            return Err(NoAnswer::Stopped);
        }
        if !self.operation.follows_program() {
            // The program is only listened to: what it computes is not for the record.
            return Ok(());
        }
        if urn.qualified_type() == ROOT_STACK_TYPE {
            *self.root_outputs.lock() = Some(outputs);
            return Ok(());
        }
        self.take_outputs(urn, outputs)
            .await
            .map_err(NoAnswer::Error)?;
        self.judge_late_failures();
        Ok(())
    }

    /// Whether the program said what the stack's outputs are, as it does at its very end.
    pub(super) fn has_root_outputs(&self) -> bool {
        self.root_outputs.lock().is_some()
    }

    /// Records the stack's outputs. After a failure the absence of one means nothing, so the old
    /// ones stay beside the new.
    pub(crate) async fn finish_root_outputs(&self) -> Result<(), DeployError> {
        let Some(mut outputs) = self.root_outputs.lock().take() else {
            return Ok(());
        };
        let failed = self.failures.has_any() || self.generator.lock().await.has_failed();
        if failed && let Some(old) = self.base().live(&self.root) {
            for (key, value) in &old.state.outputs {
                outputs.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        self.take_outputs(self.root.clone(), outputs).await
    }

    async fn take_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), DeployError> {
        let (op, known, old) = match self.executor.states.take_registered(&urn) {
            Some(AwaitedOutputs::Made { op, known, old }) => (op, known, old),
            Some(AwaitedOutputs::Skipped) => return Ok(()),
            None => {
                return Err(DeployError::InvalidGoal {
                    message: format!("{urn} registers outputs but is not registered itself"),
                    urn: Some(urn),
                });
            }
        };
        let nothing = PropertyMap::new();
        let old_outputs = old.as_ref().map_or(&nothing, |old| &old.outputs);
        self.decide(|generator| generator.plan.outputs(&urn, old_outputs, &outputs))
            .await?;
        let state = self.record_outputs(&known, outputs).await?;
        self.run_component_hooks(op, old.as_deref(), &state).await;
        self.tell_outputs(op, old, state);
        Ok(())
    }

    async fn record_outputs(
        &self,
        known: &RecordedResource,
        outputs: PropertyMap,
    ) -> Result<Arc<ResourceState>, DeployError> {
        if maps_equal(&known.state.outputs, &outputs) {
            return Ok(Arc::clone(&known.state));
        }
        let mut state = ResourceState::clone(&known.state);
        state.outputs = outputs;
        let state = Arc::new(state);
        let change = JournalChange {
            remove: Some(known.key),
            state: Some(Arc::clone(&state)),
            ..JournalChange::default()
        };
        let act = self.executor.recorder.change(change).await?;
        self.executor.states.put(RecordedResource {
            key: StateRef::New(act),
            state: Arc::clone(&state),
        });
        Ok(state)
    }

    /// A component is complete once its outputs are: its hooks run now.
    async fn run_component_hooks(
        &self,
        op: StepOp,
        old: Option<&ResourceState>,
        state: &ResourceState,
    ) {
        let views = |old| Views {
            old,
            new: Some(state),
            new_outputs: Some(&state.outputs),
        };
        match op {
            _ if state.custom => {}
            StepOp::Create => {
                self.executor
                    .run_after(HookKind::AfterCreate, views(None))
                    .await;
            }
            StepOp::Update => {
                self.executor
                    .run_after(HookKind::AfterUpdate, views(old))
                    .await;
            }
            _ => {}
        }
    }

    fn tell_outputs(&self, op: StepOp, old: Option<Arc<ResourceState>>, new: Arc<ResourceState>) {
        let step = StepEvent {
            op,
            urn: new.urn.clone(),
            type_: new.type_.clone(),
            provider: new.provider.clone(),
            old,
            new: Some(new),
            replace_keys: Vec::new(),
            changed_keys: Vec::new(),
            detailed_diff: None,
            logical: true,
        };
        let planning = self.options.dry_run;
        self.executor
            .emit(EngineEvent::ResourceOutputs { step, planning });
    }
}
