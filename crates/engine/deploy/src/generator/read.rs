//! Objects that a program reads.

use nimbus_engine_model::{ResourceState, Urn};
use nimbus_engine_ports::ReadGoal;

use super::Generator;
use super::aliases::ResourceIdentity;
use crate::error::DeployError;
use crate::steps::{ReadStep, Reasons, ReplaceStep, Step};

impl Generator {
    pub(crate) fn read(&mut self, goal: ReadGoal) -> Result<(Urn, Vec<Step>), DeployError> {
        let urn = self.register_urn(goal.parent.as_ref(), &goal.type_, &goal.name)?;
        let identity = ResourceIdentity {
            urn: &urn,
            type_: &goal.type_,
            name: &goal.name,
            parent: goal.parent.as_ref(),
        };
        let found = self.find_old(&identity, &[]);
        let new = read_state(urn.clone(), goal, found.alias)?;
        let steps = match found.old {
            // A managed resource gives way to another object; it is deleted at the end.
            Some(old) if !old.state.external && old.state.id != new.id => {
                self.seen.replaces.insert(urn.clone());
                let read = ReadStep::replacing(old.clone(), new.clone())?;
                let replace = ReplaceStep::new(old, new, Reasons::default())?;
                vec![Step::Read(read), Step::Replace(replace)]
            }
            // The same object, or one that was only read before: nothing is given up.
            old => {
                self.seen.reads.insert(urn.clone());
                vec![Step::Read(ReadStep::new(old, new)?)]
            }
        };
        Ok((urn, self.validate(steps)?))
    }
}

fn read_state(urn: Urn, goal: ReadGoal, alias: Option<Urn>) -> Result<ResourceState, DeployError> {
    if goal.id.is_empty() {
        return Err(DeployError::InvalidGoal {
            message: format!("{urn} is to be read but has no id"),
            urn: Some(urn),
        });
    }
    let mut state = ResourceState::new(urn, true);
    state.external = true;
    state.id = Some(goal.id);
    state.inputs = goal.properties;
    state.parent = goal.parent;
    state.dependencies = goal.dependencies;
    state.provider = goal.provider;
    state.additional_secret_outputs = goal.additional_secret_outputs;
    state.aliases = alias.into_iter().collect();
    state.source_position = goal.source_position;
    state.stack_trace = goal.stack_trace;
    Ok(state)
}
