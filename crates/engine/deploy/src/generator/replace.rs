//! What a comparison means: nothing, an update or a replacement.

use nimbus_engine_ports::{DiffResponse, Diffs, Severity};

use super::decide::create_first;
use super::dependents::Dependent;
use super::register::PendingRegistration;
use super::{Generator, diff};
use crate::error::DeployError;
use crate::known::RecordedResource;
use crate::steps::{
    CreateStep, DeleteReason, DeleteStep, Reasons, ReplaceStep, Replacement, SameStep, Step,
    UpdateStep,
};

/// What follows from a comparison.
#[derive(Clone, Debug)]
pub(crate) enum ReplaceVerdict {
    /// The import was all that was needed.
    Done(RecordedResource),
    Steps(Vec<Step>),
    Replace(Replacing),
}

/// A replacement on its way to steps. Its inputs have to be checked once more, without the old
/// ones: a replacement gets names and defaults of its own.
#[derive(Clone, Debug)]
pub(crate) struct Replacing {
    pub old: RecordedResource,
    pub diff: DiffResponse,
    pub check_again: bool,
    pub delete_first: bool,
}

impl Generator {
    pub(crate) fn compared(
        &mut self,
        registration: &PendingRegistration,
        diff: DiffResponse,
        trigger: bool,
    ) -> Result<ReplaceVerdict, DeployError> {
        let PendingRegistration { urn, new, goal, .. } = registration;
        // While the provider compared, another decision may have deleted this resource.
        if let Some(steps) = self.recreate(registration)? {
            return self.validate(steps).map(ReplaceVerdict::Steps);
        }
        let Some(old) = registration.old.clone() else {
            return Err(DeployError::Internal {
                message: format!("{urn} was compared with nothing"),
            });
        };
        // What was made and did not come up is tried again, even if nothing else changed.
        let half_made = !old.state.init_errors.is_empty();
        let diff = diff::replace_on_changes(diff, &goal.replace_on_changes, half_made).map_err(
            |message| DeployError::InvalidGoal {
                urn: Some(urn.clone()),
                message,
            },
        )?;
        let changed = diff.changes == Diffs::Some;
        // What waits for its replacement is gone: there is nothing that could stay or be updated.
        if old.state.pending_replacement || (changed && (diff.replaces() || trigger)) {
            return self
                .replace(registration, old, diff)
                .map(ReplaceVerdict::Replace);
        }
        if changed || half_made {
            self.seen.updates.insert(urn.clone());
            let update = Step::Update(UpdateStep::new(old, new.clone(), &diff)?);
            return self.validate(vec![update]).map(ReplaceVerdict::Steps);
        }
        if registration.imported {
            return Ok(ReplaceVerdict::Done(old));
        }
        self.seen.sames.insert(urn.clone());
        let same = Step::Same(SameStep::new(old, new.clone())?);
        self.validate(vec![same]).map(ReplaceVerdict::Steps)
    }

    fn replace(
        &mut self,
        registration: &PendingRegistration,
        old: RecordedResource,
        diff: DiffResponse,
    ) -> Result<Replacing, DeployError> {
        let PendingRegistration { urn, new, goal, .. } = registration;
        // Protected before and after: one update may lift the protection and replace, and one that
        // it brings is meant for the replacement.
        if new.protect && old.state.protect && !self.rules.ignore_protect {
            let error = DeployError::Protected {
                urn: urn.clone(),
                cause: None,
            };
            self.report(Severity::Error, Some(urn), error.to_string());
            self.fail(error)?;
        }
        // The option says that the resource is one certain object; a replacement is another.
        if goal.import_id.is_some() {
            let message = format!(
                "{urn} was imported and its import option is still set, so it cannot be replaced; \
                 remove the option ({})",
                diff.replace_keys.join(", ")
            );
            if !self.rules.dry_run {
                return Err(DeployError::InvalidGoal {
                    urn: Some(urn.clone()),
                    message,
                });
            }
            self.report(Severity::Warning, Some(urn), message);
        }
        self.seen.replaces.insert(urn.clone());
        Ok(Replacing {
            // Whoever was chosen to be replaced was checked without old inputs in the first place.
            check_again: goal.custom && !self.must_be_replaced(urn, Some(&old.state)),
            // The program's word beats the provider's: it may know that both cannot be there at
            // once, or that both must.
            delete_first: goal
                .delete_before_replace
                .unwrap_or(diff.delete_before_replace),
            old,
            diff,
        })
    }

    /// Steps of a replacement whose inputs are final. `dependents` go first, if it deletes first.
    pub(crate) fn replace_steps(
        &mut self,
        registration: &PendingRegistration,
        replacing: Replacing,
        dependents: Vec<Dependent>,
    ) -> Result<Vec<Step>, DeployError> {
        let new = registration.new.clone();
        let Replacing {
            old,
            diff,
            delete_first,
            ..
        } = replacing;
        let reasons = Reasons::of(&diff);
        // What is gone already cannot be kept until its replacement is there.
        if !delete_first && !old.state.pending_replacement {
            let steps = create_first(old, new, &reasons)?;
            return self.validate(steps);
        }
        let mut deletes = self.delete_dependents(registration, dependents)?;
        // What was deleted before an interruption need not be deleted again.
        if !old.state.pending_replacement {
            self.seen.deletes.insert(old.state.urn.clone());
            deletes.push(DeleteStep::new(
                old.clone(),
                DeleteReason::BeforeReplacement,
            )?);
        }
        self.mark_deleted_together(&mut deletes);
        let mut steps: Vec<Step> = deletes.into_iter().map(Step::Delete).collect();
        let replacement = Replacement {
            old: old.clone(),
            delete_later: false,
            reasons: reasons.clone(),
        };
        steps.push(Step::Replace(ReplaceStep::new(old, new.clone(), reasons)?));
        steps.push(Step::Create(CreateStep::replacing(new, replacement)?));
        self.validate(steps)
    }

    /// Deletes of those that depend on a resource which is about to be deleted, last first.
    fn delete_dependents(
        &mut self,
        registration: &PendingRegistration,
        dependents: Vec<Dependent>,
    ) -> Result<Vec<DeleteStep>, DeployError> {
        let mut deletes = Vec::new();
        for Dependent { known, keys } in dependents.into_iter().rev() {
            // It went with another resource that it depends on too.
            if !self.condemned.insert(known.key) {
                continue;
            }
            let urn = known.state.urn.clone();
            self.dependent_keys.insert(urn.clone(), keys);
            // What was replaced before has its replacement: no record has to wait for one.
            let reason = if known.state.delete {
                DeleteReason::Unwanted
            } else {
                // In a preview too: without this delete, nothing that comes after it could happen.
                if known.state.protect && !self.rules.ignore_protect {
                    let cause = Some(registration.urn.clone());
                    let error = DeployError::Protected {
                        urn: urn.clone(),
                        cause,
                    };
                    self.report(Severity::Error, Some(&urn), error.to_string());
                    return Err(error);
                }
                DeleteReason::BeforeReplacement
            };
            deletes.push(DeleteStep::new(known, reason)?);
            self.seen.deletes.insert(urn);
        }
        Ok(deletes)
    }

    /// A resource that goes along with another one need not be deleted on its own.
    pub(super) fn mark_deleted_together(&self, deletes: &mut [DeleteStep]) {
        for delete in deletes {
            let owner = delete.old().state.deleted_with.clone();
            if owner.is_some_and(|owner| self.seen.deletes.contains(&owner)) {
                delete.set_goes_with_another();
            }
        }
    }
}
