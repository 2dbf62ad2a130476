//! The first half of a registration: who the resource is, what is recorded of it and which inputs
//! its provider must check.

use std::sync::Arc;

use nimbus_engine_model::{
    Goal, Naming, NamingRules, PropertyMap, ResourceState, Urn, provider_package,
};
use nimbus_engine_ports::{CheckFailure, Severity};

use super::aliases::ResourceIdentity;
use super::{Generator, diff};
use crate::error::DeployError;
use crate::known::RecordedResource;
use crate::steps::{ImportOrigin, ImportStep, Reasons, ReplaceStep, Step};

/// A registration on its way to steps.
#[derive(Clone, Debug)]
pub(crate) struct PendingRegistration {
    pub goal: Goal,
    pub urn: Urn,
    pub old: Option<RecordedResource>,
    pub new: ResourceState,
    /// Makes generated names reproducible.
    pub seed: [u8; 32],
    /// What the provider is told about the name of the object.
    pub naming: Option<Naming>,
    /// The old resource was just imported on this registration's behalf.
    pub imported: bool,
    /// Takes part in the operation.
    pub targeted: bool,
    /// Deleted earlier in this operation, ahead of a resource that it depends on.
    pub recreating: bool,
    invalid: bool,
}

/// What to check.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToCheck {
    /// Ask the provider.
    Ask {
        olds: Option<PropertyMap>,
        news: PropertyMap,
    },
    /// Nothing to ask; these are the inputs.
    Settled(PropertyMap),
}

/// What came of the check.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checked {
    pub inputs: PropertyMap,
    pub failures: Vec<CheckFailure>,
}

impl PendingRegistration {
    /// Takes over what the stack's rules say of the name. What always has the same name cannot
    /// exist beside its replacement.
    pub(crate) fn name_by(&mut self, rules: &NamingRules) {
        if !self.goal.custom {
            return;
        }
        if let Some((naming, fixed)) = rules.for_resource(&self.urn, &self.seed) {
            self.naming = Some(naming);
            if fixed {
                self.goal.delete_before_replace = Some(true);
            }
        }
    }

    pub(crate) fn is_provider(&self) -> bool {
        provider_package(&self.goal.type_).is_some()
    }

    fn was_external(&self) -> bool {
        self.old.as_ref().is_some_and(|old| old.state.external)
    }
}

impl Generator {
    /// Names a resource; its parent must be there and nobody else may have the name. The parent's
    /// type is part of the URN, and a record lists parents before their children. Two resources of
    /// one URN would both be looked up as the same record.
    pub(super) fn register_urn(
        &mut self,
        parent: Option<&Urn>,
        type_: &str,
        name: &str,
    ) -> Result<Urn, DeployError> {
        let urn = self.urn(parent, type_, name);
        // Before anything is created: what cannot be recorded could never be deleted.
        if let Some(problem) = unrecordable(type_, name) {
            return Err(DeployError::InvalidGoal {
                message: format!("the resource {name:?} of type {type_:?} {problem}"),
                urn: None,
            });
        }
        let missing = parent.filter(|parent| !self.seen.registered.contains(parent));
        if let Some(parent) = missing {
            return Err(DeployError::InvalidGoal {
                message: format!("the parent {parent} of {urn} is not registered"),
                urn: Some(urn),
            });
        }
        if !self.seen.registered.insert(urn.clone()) {
            return Err(DeployError::InvalidGoal {
                message: format!("there are two resources {urn}; give one another name"),
                urn: Some(urn),
            });
        }
        Ok(urn)
    }

    pub(crate) fn urn(&self, parent: Option<&Urn>, type_: &str, name: &str) -> Urn {
        let parent_type = parent.map(Urn::qualified_type);
        Urn::new(&self.stack, &self.project, parent_type, type_, name)
    }

    /// Finds out who the resource is. `seed` is used unless a plan has one.
    pub(crate) fn begin(
        &mut self,
        goal: Goal,
        seed: [u8; 32],
    ) -> Result<PendingRegistration, DeployError> {
        let urn = self.register_urn(goal.parent.as_ref(), &goal.type_, &goal.name)?;
        let identity = ResourceIdentity {
            urn: &urn,
            type_: &goal.type_,
            name: &goal.name,
            parent: goal.parent.as_ref(),
        };
        let found = self.find_old(&identity, &goal.aliases);
        let old_state = found.old.as_ref().map(|old| &*old.state);
        let new = wanted_state(&goal, urn.clone(), old_state, found.alias.clone());
        if provider_package(&goal.type_).is_some() {
            self.remember_provider(&new, found.alias.as_ref());
        }
        Ok(PendingRegistration {
            seed: self.plan.seed(&urn).unwrap_or(seed),
            recreating: self.was_deleted(&urn, found.old.as_ref()),
            naming: None,
            old: found.old,
            new,
            imported: false,
            targeted: true,
            invalid: found.conflict,
            goal,
            urn,
        })
    }

    fn remember_provider(&mut self, new: &ResourceState, alias: Option<&Urn>) {
        let provider = Arc::new(new.clone());
        if let Some(alias) = alias {
            self.providers.insert(alias.clone(), Arc::clone(&provider));
        }
        self.providers.insert(new.urn.clone(), provider);
    }

    /// The steps of an import, when the goal names an object that is not managed yet.
    pub(crate) fn import(
        &mut self,
        registration: &PendingRegistration,
    ) -> Result<Option<Vec<Step>>, DeployError> {
        let PendingRegistration {
            goal,
            urn,
            old,
            new,
            recreating,
            ..
        } = registration;
        let Some(id) = goal.import_id.as_ref().filter(|_| goal.custom) else {
            return Ok(None);
        };
        let managed = old.as_ref().filter(|old| !old.state.external);
        // Some objects are imported by another id than they have.
        let managed_id =
            managed.and_then(|old| old.state.import_id.as_ref().or(old.state.id.as_ref()));
        if managed_id == Some(id) {
            return Ok(None);
        }
        self.plan_goal(registration, &PropertyMap::new(), &PropertyMap::new())?;
        self.seen.imports.insert(urn.clone());
        // What was deleted ahead of a resource that it needs does not have to be deleted again.
        let original = old.clone().filter(|_| !recreating);
        let import = ImportStep::new(
            new.clone(),
            ImportOrigin::Program {
                original: original.clone(),
            },
        )?;
        let mut steps = vec![Step::Import(import)];
        if let Some(original) = original {
            let replace = ReplaceStep::new(original, new.clone(), Reasons::default())?;
            steps.push(Step::Replace(replace));
        }
        self.validate(steps).map(Some)
    }

    /// Goes on after an import: what was imported is now what is recorded.
    pub(crate) fn imported(
        &self,
        registration: PendingRegistration,
        imported: RecordedResource,
    ) -> PendingRegistration {
        let mut new = registration.new;
        new.created = imported.state.created;
        new.modified = imported.state.modified;
        new.refresh_before_update = imported.state.refresh_before_update;
        PendingRegistration {
            old: Some(imported),
            new,
            imported: true,
            ..registration
        }
    }

    /// What the provider has to check, now that it is known whether the resource takes part.
    pub(crate) fn inputs_to_check(&mut self, registration: &mut PendingRegistration) -> ToCheck {
        registration.targeted = self.takes_part(&registration.new);
        // Asked again: while an import ran, another decision may have deleted this resource.
        registration.recreating = self.was_deleted(&registration.urn, registration.old.as_ref());
        let goal_inputs = &registration.goal.properties;
        let Some(old) = registration.old.as_ref().map(|old| Arc::clone(&old.state)) else {
            return self.check_anew(registration);
        };
        // Before the check: what is ignored reaches neither check nor comparison nor update, and
        // defaults are completed around the values that stay.
        let (inputs, impossible) =
            diff::ignore_changes(goal_inputs, &old.inputs, &registration.goal.ignore_changes);
        if !impossible.is_empty() {
            let message = format!(
                "changes of {} cannot be ignored: something was added or removed there",
                impossible.join(", ")
            );
            self.report(Severity::Info, Some(&registration.urn), message);
        }
        if !registration.goal.custom {
            return ToCheck::Settled(inputs);
        }
        // What takes no part stays as it is recorded, whatever its provider thinks of it now.
        if !registration.targeted {
            return ToCheck::Settled(old.inputs.clone());
        }
        // A new object has no old values to keep, not even ignored ones.
        if self.starts_over(registration) {
            return self.check_anew(registration);
        }
        ToCheck::Ask {
            olds: Some(old.inputs.clone()),
            news: inputs,
        }
    }

    fn check_anew(&self, registration: &PendingRegistration) -> ToCheck {
        let news = registration.goal.properties.clone();
        match (registration.goal.custom, registration.targeted) {
            (true, true) => ToCheck::Ask { olds: None, news },
            (true, false) => ToCheck::Settled(PropertyMap::new()),
            (false, _) => ToCheck::Settled(news),
        }
    }

    /// Whether the resource was deleted in this operation, ahead of one that it depends on.
    pub(super) fn was_deleted(&self, urn: &Urn, old: Option<&RecordedResource>) -> bool {
        self.seen.deletes.contains(urn) || old.is_some_and(|old| self.condemned.contains(&old.key))
    }

    /// Whether recorded inputs say nothing about the inputs to be: the object is another one.
    fn starts_over(&self, registration: &PendingRegistration) -> bool {
        let old = registration.old.as_ref().map(|old| &*old.state);
        registration.recreating
            || registration.was_external()
            || self.must_be_replaced(&registration.urn, old)
    }

    /// Takes the checked inputs, reports what the provider refuses and holds the goal to the plan.
    pub(crate) fn checked(
        &mut self,
        registration: &mut PendingRegistration,
        checked: Checked,
    ) -> Result<PropertyMap, DeployError> {
        if !checked.failures.is_empty() {
            registration.invalid = true;
            for failure in &checked.failures {
                let message = describe(failure, &registration.new);
                self.report(Severity::Error, Some(&registration.urn), message);
            }
        }
        if registration.goal.custom {
            registration.new.inputs.clone_from(&checked.inputs);
        }
        // Before any step of this resource is decided: they go ahead of the first one.
        if registration.targeted {
            self.carry_dependencies(&registration.new)?;
        }
        if !registration.invalid {
            let nothing = PropertyMap::new();
            let old = registration
                .old
                .as_ref()
                .filter(|_| !self.starts_over(registration));
            let old_inputs = old.map_or(&nothing, |old| &old.state.inputs).clone();
            self.plan_goal(registration, &old_inputs, &checked.inputs)?;
        }
        Ok(checked.inputs)
    }

    fn plan_goal(
        &mut self,
        registration: &PendingRegistration,
        old_inputs: &PropertyMap,
        inputs: &PropertyMap,
    ) -> Result<(), DeployError> {
        let PendingRegistration {
            urn,
            goal,
            old,
            seed,
            ..
        } = registration;
        let old = old.as_ref().map(|old| &*old.state);
        self.plan.goal(urn, goal, old, old_inputs, inputs, *seed)
    }

    /// Ends a registration that its provider does not accept, or that claims a record which is
    /// another's. Late, so that policies have had their say about the same inputs.
    pub(crate) fn refuse_invalid(
        &self,
        registration: &PendingRegistration,
    ) -> Result<(), DeployError> {
        if registration.invalid {
            return Err(DeployError::CheckFailed {
                urn: registration.urn.clone(),
            });
        }
        Ok(())
    }
}

/// Why no state could hold a resource of this type and name.
pub(crate) fn unrecordable(type_: &str, name: &str) -> Option<&'static str> {
    if type_.is_empty() {
        return Some("has no type");
    }
    let recordable = Urn::is_recordable(type_) && Urn::is_recordable(name);
    (!recordable).then_some("cannot be recorded: there is a NUL character in it")
}

fn describe(failure: &CheckFailure, new: &ResourceState) -> String {
    match new.inputs.get(&failure.property) {
        _ if failure.property.is_empty() => failure.reason.clone(),
        Some(value) => format!("{}: {} (it is {value:?})", failure.property, failure.reason),
        None => format!("{}: {}", failure.property, failure.reason),
    }
}

/// The record of a resource as the program wants it, before anything happened.
fn wanted_state(
    goal: &Goal,
    urn: Urn,
    old: Option<&ResourceState>,
    alias: Option<Urn>,
) -> ResourceState {
    let mut state = ResourceState::new(urn, goal.custom);
    state.type_.clone_from(&goal.type_);
    state.inputs.clone_from(&goal.properties);
    state.parent.clone_from(&goal.parent);
    state.protect = goal.protect.unwrap_or(false);
    state.dependencies.clone_from(&goal.dependencies);
    state.provider.clone_from(&goal.provider);
    state
        .property_dependencies
        .clone_from(&goal.property_dependencies);
    state
        .additional_secret_outputs
        .clone_from(&goal.additional_secret_outputs);
    state.aliases = alias.into_iter().collect();
    state.custom_timeouts = goal.custom_timeouts;
    state.import_id.clone_from(&goal.import_id);
    state.retain_on_delete = goal.retain_on_delete.unwrap_or(false);
    state.deleted_with.clone_from(&goal.deleted_with);
    state.replace_with.clone_from(&goal.replace_with);
    state.source_position.clone_from(&goal.source_position);
    state.stack_trace.clone_from(&goal.stack_trace);
    state.ignore_changes.clone_from(&goal.ignore_changes);
    state.hide_diff.clone_from(&goal.hide_diff);
    state
        .replace_on_changes
        .clone_from(&goal.replace_on_changes);
    state
        .replacement_trigger
        .clone_from(&goal.replacement_trigger);
    state.hooks.clone_from(&goal.hooks);
    state.extension_ref = goal
        .extension
        .as_ref()
        .map(|extension| extension.reference());
    // What no program says: times, the provider's own wish, and fields of engines that know more.
    if let Some(old) = old {
        state.created = old.created;
        state.modified = old.modified;
        state.refresh_before_update = old.refresh_before_update;
        state.extra.clone_from(&old.extra);
    }
    state
}
