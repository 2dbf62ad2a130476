//! The second half of a registration: from checked inputs to steps, or to a comparison.

use nimbus_engine_model::diff::maps_equal;
use nimbus_engine_model::provider_inputs::configuration;
use nimbus_engine_model::{PropertyMap, ProviderRef, Urn};
use nimbus_engine_ports::{DiffRequest, DiffResponse, Diffs, Severity};

use super::register::PendingRegistration;
use super::{Generator, diff};
use crate::error::DeployError;
use crate::known::RecordedResource;
use crate::steps::{
    CreateStep, Reasons, ReplaceStep, Replacement, SameStep, SkippedCreateStep, Step,
};

/// What follows from a registration's checked inputs.
#[derive(Clone, Debug)]
pub(crate) enum RegistrationDecision {
    Steps(Vec<Step>),
    /// The recorded resource has to be compared with the wanted one.
    Compare(ComparisonMode),
}

/// How to compare.
#[derive(Clone, Debug)]
pub(crate) enum ComparisonMode {
    /// The answer is known.
    Known { diff: DiffResponse, trigger: bool },
    /// Ask the resource's provider.
    Ask,
    /// Another provider serves the resource now. If it says that it cannot take over, the resource
    /// is replaced; otherwise go on asking it about the resource.
    AskNewProvider {
        provider: ProviderRef,
        request: Box<DiffRequest>,
    },
}

impl Generator {
    /// Decides by what is recorded. `inputs` are the checked ones.
    pub(crate) fn decide(
        &mut self,
        registration: &PendingRegistration,
        inputs: &PropertyMap,
    ) -> Result<RegistrationDecision, DeployError> {
        let PendingRegistration {
            urn,
            old,
            new,
            targeted,
            ..
        } = registration;
        // First what leaves nothing to compare with: an object that this operation deleted, and one
        // that was never ours.
        if let Some(steps) = self.recreate(registration)? {
            return self.validate(steps).map(RegistrationDecision::Steps);
        }
        if let Some(old) = old.as_ref().filter(|old| old.state.external) {
            // A read object becomes a managed one. It is not ours, so a new one is made.
            self.seen.creates.insert(urn.clone());
            let steps = create_first(old.clone(), new.clone(), &Reasons::default())?;
            return self.validate(steps).map(RegistrationDecision::Steps);
        }
        // After those two, which take part whoever was chosen, and before any step: dependants that are
        // registered next ask whether this one takes part.
        self.reach(new, *targeted);
        match (old, targeted) {
            (None, true) => {
                self.seen.creates.insert(urn.clone());
                let create = Step::Create(CreateStep::new(new.clone())?);
                self.validate(vec![create]).map(RegistrationDecision::Steps)
            }
            (None, false) => {
                self.seen.sames.insert(urn.clone());
                self.skipped_creates.insert(urn.clone());
                let skipped = Step::SkippedCreate(SkippedCreateStep::new(new.clone())?);
                self.validate(vec![skipped])
                    .map(RegistrationDecision::Steps)
            }
            (Some(old), false) => {
                let steps = self.carry_over(urn, old)?;
                self.validate(steps).map(RegistrationDecision::Steps)
            }
            (Some(old), true) => self
                .compare(registration, old, inputs)
                .map(RegistrationDecision::Compare),
        }
    }

    /// A resource that was deleted ahead of one that it depends on is registered after all: then it
    /// was replaced.
    pub(super) fn recreate(
        &mut self,
        registration: &PendingRegistration,
    ) -> Result<Option<Vec<Step>>, DeployError> {
        let PendingRegistration { urn, old, new, .. } = registration;
        let Some(old) = old.as_ref().filter(|old| self.was_deleted(urn, Some(old))) else {
            return Ok(None);
        };
        // Under both names: a resource may be renamed in the update that drags it along.
        self.seen.deletes.remove(urn);
        self.seen.deletes.remove(&old.state.urn);
        self.seen.replaces.insert(urn.clone());
        let keys = self.dependent_keys.get(&old.state.urn).cloned();
        let keys = keys.unwrap_or_default();
        let replacement = Replacement {
            old: old.clone(),
            delete_later: false,
            reasons: Reasons::replacing(keys),
        };
        Ok(Some(vec![
            Step::Replace(ReplaceStep::new(
                old.clone(),
                new.clone(),
                Reasons::default(),
            )?),
            Step::Create(CreateStep::replacing(new.clone(), replacement)?),
        ]))
    }

    /// How the recorded resource is compared with the wanted one. The reasons that settle the matter come
    /// first, so that no provider is asked in vain: a trigger replaces whatever else is the same; a resource
    /// that is bound to a replaced one cannot outlive it; and only then does it matter who serves the
    /// resource, because a provider that cannot take over makes its answer about inputs meaningless.
    fn compare(
        &mut self,
        registration: &PendingRegistration,
        old: &RecordedResource,
        inputs: &PropertyMap,
    ) -> Result<ComparisonMode, DeployError> {
        let PendingRegistration { urn, new, .. } = registration;
        let trigger = &new.replacement_trigger;
        // What is unknown counts as changed. A preview may show that; an update would replace the
        // resource although nobody knows of a change.
        if trigger.contains_unknowns() && !self.rules.dry_run {
            return Err(DeployError::InvalidGoal {
                message: format!("the replacement trigger of {urn} is not known"),
                urn: Some(urn.clone()),
            });
        }
        if diff::trigger_fires(trigger, &old.state.replacement_trigger) {
            let diff = DiffResponse {
                changes: Diffs::Some,
                ..DiffResponse::default()
            };
            return Ok(ComparisonMode::Known {
                diff,
                trigger: true,
            });
        }
        if let Some(reason) = self.replaced_for(registration, old) {
            return Ok(replace_because(reason));
        }
        if old.state.provider != new.provider {
            return self.compare_providers(registration, old);
        }
        Ok(ask_or_compare(registration, old, inputs))
    }

    /// A reason to replace the resource that has nothing to do with its inputs. Whom it is bound to
    /// is registered before it, so whether that one is replaced is decided by now.
    fn replaced_for(
        &self,
        registration: &PendingRegistration,
        old: &RecordedResource,
    ) -> Option<&'static str> {
        let new = &registration.new;
        let replaced = |urn: &Urn| self.seen.replaces.contains(urn);
        if self.must_be_replaced(&registration.urn, Some(&old.state)) {
            Some("id")
        } else if new.replace_with.iter().any(replaced) {
            Some("replaceWith")
        } else if new.deleted_with.as_ref().is_some_and(replaced) {
            Some("deletedWith")
        } else {
            None
        }
    }

    fn compare_providers(
        &self,
        registration: &PendingRegistration,
        old: &RecordedResource,
    ) -> Result<ComparisonMode, DeployError> {
        let new = &registration.new;
        if old.state.provider.is_empty() || new.provider.is_empty() {
            // A component became a custom resource or the other way round.
            return Ok(replace_because("provider"));
        }
        let parse = |text: &str| {
            ProviderRef::parse(text).map_err(|error| DeployError::BadState {
                message: format!("provider of {}: {error}", registration.urn),
            })
        };
        let (was, is) = (parse(&old.state.provider)?, parse(&new.provider)?);
        // The same provider, renamed.
        if self.names.taken.get(&was.urn) == Some(&is.urn) {
            return Ok(ask_or_compare(registration, old, &new.inputs));
        }
        let missing = || DeployError::BadState {
            message: format!("the providers of {} are not recorded", registration.urn),
        };
        let recorded = self
            .base
            .live(&was.urn)
            .map(|known| known.state)
            .ok_or_else(missing)?;
        let wanted = self.providers.get(&is.urn).ok_or_else(missing)?;
        // The new provider is asked, for it would have to manage the object from now on. That the
        // configurations differ is not enough: replacing everything is the dearest answer.
        let request = DiffRequest {
            urn: Some(is.urn.clone()),
            name: is.urn.name().to_owned(),
            type_: is.urn.type_().to_owned(),
            id: is.id.clone(),
            old_inputs: configuration(&recorded.inputs),
            old_outputs: recorded.outputs.clone(),
            new_inputs: configuration(&wanted.inputs),
            allow_unknowns: true,
            ignore_changes: Vec::new(),
        };
        Ok(ComparisonMode::AskNewProvider {
            provider: is,
            request: Box::new(request),
        })
    }

    /// The comparison once it is settled that the provider may stay or take over.
    pub(crate) fn compare_resource(
        &self,
        registration: &PendingRegistration,
        inputs: &PropertyMap,
    ) -> ComparisonMode {
        match &registration.old {
            Some(old) => ask_or_compare(registration, old, inputs),
            None => ComparisonMode::Ask,
        }
    }

    /// The resource takes no part: its record is carried over, after the records that it needs and
    /// that nobody else brings.
    fn carry_over(&mut self, urn: &Urn, old: &RecordedResource) -> Result<Vec<Step>, DeployError> {
        let mut steps = Vec::new();
        self.carry_with_dependencies(urn, old.clone(), &mut steps)?;
        self.seen.sames.insert(urn.clone());
        Ok(steps)
    }

    fn carry_with_dependencies(
        &mut self,
        urn: &Urn,
        old: RecordedResource,
        steps: &mut Vec<Step>,
    ) -> Result<(), DeployError> {
        if old.state.delete {
            // It stays where it is, after everything that replaces it.
            return Ok(());
        }
        self.seen.registered.insert(old.state.urn.clone());
        self.seen.sames.insert(old.state.urn.clone());
        let provider = ProviderRef::parse(&old.state.provider).ok();
        for needed in old.state.all_dependencies() {
            let is_provider = provider
                .as_ref()
                .is_some_and(|provider| provider.urn == needed);
            if self.seen.has_steps(&needed) || self.is_kept(&needed) {
                continue;
            }
            match self.base.live(&needed) {
                Some(next) => self.carry_with_dependencies(urn, next, steps)?,
                // It may be one that was replaced and waits for its delete, which comes after that
                // of its last user.
                None if is_provider => {}
                None => {
                    return Err(DeployError::BadState {
                        message: format!("{urn} needs {needed}, which is not recorded"),
                    });
                }
            }
        }
        steps.push(Step::Same(SameStep::untargeted(old)?));
        Ok(())
    }

    /// Says that a preview cannot know what its provider would say.
    pub(crate) fn warn_unconfigured(&mut self, urn: &Urn) {
        let message = "the provider's configuration is not known yet, so this preview may differ \
                       from what an update will do";
        self.report(Severity::Warning, Some(urn), message);
    }
}

/// Components are compared by their inputs; everything else by its provider.
fn ask_or_compare(
    registration: &PendingRegistration,
    old: &RecordedResource,
    inputs: &PropertyMap,
) -> ComparisonMode {
    if registration.goal.custom {
        return ComparisonMode::Ask;
    }
    let same = maps_equal(&old.state.inputs, inputs);
    let changes = if same { Diffs::None } else { Diffs::Some };
    ComparisonMode::Known {
        diff: DiffResponse {
            changes,
            ..DiffResponse::default()
        },
        trigger: false,
    }
}

pub(crate) fn replace_because(key: &str) -> ComparisonMode {
    let diff = DiffResponse {
        changes: Diffs::Some,
        replace_keys: vec![key.to_owned()],
        ..DiffResponse::default()
    };
    ComparisonMode::Known {
        diff,
        trigger: false,
    }
}

/// The replacement is made before what it replaces is deleted, at the end.
pub(super) fn create_first(
    old: RecordedResource,
    new: nimbus_engine_model::ResourceState,
    reasons: &Reasons,
) -> Result<Vec<Step>, DeployError> {
    let replacement = Replacement {
        old: old.clone(),
        delete_later: true,
        reasons: reasons.clone(),
    };
    Ok(vec![
        Step::Create(CreateStep::replacing(new.clone(), replacement)?),
        Step::Replace(ReplaceStep::new(old, new, reasons.clone())?),
    ])
}
