//! Programs that are only listened to, before everything is deleted or looked at.

use super::Generator;
use super::register::PendingRegistration;
use crate::error::DeployError;
use crate::steps::{SameStep, SkippedCreateStep, Step};
use nimbus_core::StackOperation;

impl Generator {
    /// Steps of a resource that stays as it is whatever the program says; `None` if the program's
    /// wish counts. What is not there is not made, and neither is what would need it.
    pub(crate) fn without_goals(
        &mut self,
        registration: &PendingRegistration,
    ) -> Result<Option<Vec<Step>>, DeployError> {
        let PendingRegistration { new, old, .. } = registration;
        let obeyed = match self.rules.operation {
            StackOperation::Update | StackOperation::Import | StackOperation::Restore => {
                return Ok(None);
            }
            // Everything is going to be deleted: providers and components become what the program
            // asks for, and other resources only take over its options, of which hooks are one.
            StackOperation::Destroy => !new.custom || registration.is_provider(),
            // Everything is going to be looked at: providers become what the program asks for, and
            // nothing else.
            StackOperation::Refresh => registration.is_provider(),
        };
        let incomplete = new
            .all_dependencies()
            .any(|urn| self.skipped_creates.contains(&urn));
        let step = match old {
            Some(old) if !obeyed && !incomplete => {
                self.seen.sames.insert(registration.urn.clone());
                Step::Same(self.left_alone(registration, old.clone())?)
            }
            _ if obeyed && !incomplete => return Ok(None),
            _ => {
                self.skipped_creates.insert(registration.urn.clone());
                Step::SkippedCreate(SkippedCreateStep::new(new.clone())?)
            }
        };
        self.validate(vec![step]).map(Some)
    }

    fn left_alone(
        &self,
        registration: &PendingRegistration,
        old: crate::known::RecordedResource,
    ) -> Result<SameStep, DeployError> {
        if self.rules.operation == StackOperation::Refresh {
            return SameStep::untargeted(old);
        }
        let mut new = registration.new.clone();
        new.inputs.clone_from(&old.state.inputs);
        SameStep::new(old, new)
    }
}
