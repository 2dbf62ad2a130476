//! Last looks at steps before they are carried out: records that must go ahead of them, the plan,
//! and the targets.

use nimbus_engine_model::{ProviderRef, ResourceState, Urn};
use nimbus_engine_ports::Severity;

use super::Generator;
use crate::error::DeployError;
use crate::steps::{SameStep, Step};

impl Generator {
    pub(super) fn validate(&mut self, steps: Vec<Step>) -> Result<Vec<Step>, DeployError> {
        let steps = self.with_carried(steps);
        for step in &steps {
            // A plan has a renamed resource under its new name; what takes no part keeps the old.
            let urn = self
                .names
                .taken
                .get(step.urn())
                .unwrap_or_else(|| step.urn())
                .clone();
            self.plan.step(&urn, step.op())?;
        }
        if self.selection.targets.is_constrained()
            || self.selection.replace_targets.is_constrained()
        {
            self.refuse_skipped_dependencies(&steps)?;
        }
        Ok(steps)
    }

    /// Queues the records of recorded resources that a targeted one needs and that the program does
    /// not register, so that they come before it.
    pub(super) fn carry_dependencies(&mut self, new: &ResourceState) -> Result<(), DeployError> {
        if !self.selection.targets.is_constrained() {
            return Ok(());
        }
        let provider = ProviderRef::parse(&new.provider)
            .ok()
            .map(|provider| provider.urn);
        for urn in new.all_dependencies() {
            if provider.as_ref() != Some(&urn) {
                self.carry(&urn)?;
            }
        }
        Ok(())
    }

    fn carry(&mut self, urn: &Urn) -> Result<(), DeployError> {
        if self.seen.has_steps(urn) || self.carried_urns.contains(urn) {
            return Ok(());
        }
        let Some(old) = self.base.live(urn) else {
            return Ok(());
        };
        self.carried_urns.insert(urn.clone());
        for needed in old.state.all_dependencies() {
            self.carry(&needed)?;
        }
        self.carried.push(Step::Same(SameStep::untargeted(old)?));
        Ok(())
    }

    /// What was queued may have been registered, and got steps of its own, in the meantime.
    fn with_carried(&mut self, steps: Vec<Step>) -> Vec<Step> {
        let mut all = Vec::new();
        for step in std::mem::take(&mut self.carried) {
            let urn = step.urn().clone();
            if self.seen.has_steps(&urn) || self.is_kept(&urn) {
                continue;
            }
            self.seen.registered.insert(urn.clone());
            self.seen.sames.insert(urn);
            all.push(step);
        }
        all.extend(steps);
        all
    }

    /// A step must not rely on a resource whose create was left out: its values are unknown, and a
    /// record would name what does not exist.
    fn refuse_skipped_dependencies(&mut self, steps: &[Step]) -> Result<(), DeployError> {
        for step in steps {
            let Some(new) = step.new_state() else {
                continue;
            };
            if matches!(step, Step::SkippedCreate(_)) {
                continue;
            }
            let needed: Vec<Urn> = new.all_dependencies().collect();
            for urn in needed {
                // Told once for each resource that is missing.
                if !self.skipped_creates.remove(&urn) {
                    continue;
                }
                let message = format!(
                    "{} needs {urn}, which would have to be created and is not among the targets",
                    step.urn()
                );
                self.report(Severity::Error, Some(step.urn()), message);
                self.fail(DeployError::OutsideTargets {
                    resources: vec![urn],
                })?;
            }
        }
        Ok(())
    }

    /// Whether a recorded resource lives on under its own or a new name.
    pub(super) fn is_kept(&self, urn: &Urn) -> bool {
        self.seen.is_kept(self.names.taken.get(urn).unwrap_or(urn))
    }
}
