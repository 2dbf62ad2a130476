//! A plan while an operation is held to it, and a plan in the making.

use std::collections::BTreeMap;

use nimbus_engine_model::{Goal, PropertyMap, ResourceState, StepOp, Urn};

use super::{DeploymentPlan, GoalPlan, PlannedDiff, ResourcePlan, allows};
use crate::error::DeployError;

/// Steps are struck off the plan as they are decided, so that what was planned and never came can
/// be told at the end.
#[derive(Default)]
pub(crate) struct Constraint {
    /// `None`: everything is allowed.
    planned: Option<BTreeMap<Urn, ResourcePlan>>,
    /// `None`: nobody wants a new plan.
    made: Option<BTreeMap<Urn, ResourcePlan>>,
}

impl Constraint {
    pub(crate) fn new(plan: Option<DeploymentPlan>, generate: bool) -> Self {
        Self {
            planned: plan.map(|plan| plan.resources),
            made: generate.then(BTreeMap::new),
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.planned.is_some()
    }

    pub(crate) fn seed(&self, urn: &Urn) -> Option<[u8; 32]> {
        self.planned.as_ref()?.get(urn)?.seed
    }

    /// A resource as the program wants it, with inputs as its provider completed them.
    pub(crate) fn goal(
        &mut self,
        urn: &Urn,
        goal: &Goal,
        old: Option<&ResourceState>,
        old_inputs: &PropertyMap,
        inputs: &PropertyMap,
        seed: [u8; 32],
    ) -> Result<(), DeployError> {
        if let Some(made) = &mut self.made {
            let entry = made.entry(urn.clone()).or_default();
            entry.seed = Some(seed);
            entry.goal = Some(GoalPlan::new(
                goal,
                PlannedDiff::between(old_inputs, inputs),
            ));
        }
        let Some(planned) = &self.planned else {
            return Ok(());
        };
        let checked = match (planned.get(urn), old) {
            (
                Some(ResourcePlan {
                    goal: Some(planned),
                    ..
                }),
                _,
            ) => planned.check(goal, old_inputs, inputs),
            (Some(ResourcePlan { goal: None, .. }), _) => {
                Err("it was planned to be deleted".to_owned())
            }
            (None, Some(old)) => unchanged(old).check(goal, old_inputs, inputs),
            // Creating it will be refused as a step.
            (None, None) => Ok(()),
        };
        checked.map_err(|difference| violated(urn, &difference))
    }

    /// A step that is about to be done.
    pub(crate) fn step(&mut self, urn: &Urn, op: StepOp) -> Result<(), DeployError> {
        if let Some(made) = &mut self.made {
            match made.get_mut(urn) {
                Some(entry) => entry.ops.push(op),
                None if op == StepOp::Same => {}
                None => made.entry(urn.clone()).or_default().ops.push(op),
            }
        }
        let Some(planned) = &mut self.planned else {
            return Ok(());
        };
        let next = match planned.get_mut(urn) {
            Some(entry) if entry.ops.is_empty() => None,
            Some(entry) => Some(entry.ops.remove(0)),
            None => Some(StepOp::Same),
        };
        match next {
            Some(planned) if allows(planned, op) => Ok(()),
            Some(planned) => Err(violated(urn, &format!("{op} instead of {planned}"))),
            None => Err(violated(urn, &format!("{op} after all planned steps"))),
        }
    }

    /// Outputs of a component or of the stack.
    pub(crate) fn outputs(
        &mut self,
        urn: &Urn,
        old: &PropertyMap,
        new: &PropertyMap,
    ) -> Result<(), DeployError> {
        if let Some(entry) = self.made.as_mut().and_then(|made| made.get_mut(urn)) {
            entry.outputs.clone_from(new);
            if let Some(goal) = &mut entry.goal {
                goal.outputs = PlannedDiff::between(old, new);
            }
        }
        let planned = self.planned.as_ref().and_then(|planned| planned.get(urn));
        let goal = planned.and_then(|entry| entry.goal.as_ref());
        match (self.is_active(), goal) {
            (true, Some(goal)) => goal
                .outputs
                .check(old, new)
                .map_err(|difference| violated(urn, &difference)),
            (true, None) => Err(violated(urn, "it registers outputs and was not planned")),
            (false, _) => Ok(()),
        }
    }

    /// Outputs of a resource that its provider made.
    pub(crate) fn made_outputs(&mut self, urn: &Urn, outputs: &PropertyMap) {
        if let Some(entry) = self.made.as_mut().and_then(|made| made.get_mut(urn)) {
            entry.outputs.clone_from(outputs);
        }
    }

    /// Steps that were planned and did not come. A delete of what is gone already is no loss.
    pub(crate) fn check_complete(
        &self,
        recorded: impl Fn(&Urn) -> bool,
    ) -> Result<(), DeployError> {
        for (urn, entry) in self.planned.iter().flatten() {
            let needless = entry.ops == [StepOp::Delete] && !recorded(urn);
            if !entry.ops.is_empty() && !needless {
                return Err(violated(urn, "planned steps did not happen"));
            }
        }
        Ok(())
    }

    pub(crate) fn take_plan(&mut self, base_serial: &str) -> Option<DeploymentPlan> {
        let resources = self.made.take()?;
        Some(DeploymentPlan {
            base_serial: base_serial.to_owned(),
            resources,
        })
    }
}

/// The plan for a resource that a plan does not mention: it stays as it is.
fn unchanged(old: &ResourceState) -> GoalPlan {
    GoalPlan {
        type_: old.type_.clone(),
        name: old.urn.name().to_owned(),
        custom: old.custom,
        inputs: PlannedDiff::default(),
        outputs: PlannedDiff::default(),
        parent: old.parent.clone(),
        protect: old.protect,
        dependencies: old.dependencies.clone(),
        provider: old.provider.clone(),
        property_dependencies: old.property_dependencies.clone(),
        delete_before_replace: None,
        ignore_changes: Vec::new(),
        additional_secret_outputs: old.additional_secret_outputs.clone(),
        aliases: Vec::new(),
        import_id: None,
        custom_timeouts: old.custom_timeouts,
    }
}

fn violated(urn: &Urn, difference: &str) -> DeployError {
    DeployError::PlanViolated {
        message: format!("{urn} is not as planned: {difference}"),
    }
}
