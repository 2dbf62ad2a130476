//! Which resources an operation is about.

use nimbus_engine_model::{ProviderRef, ROOT_STACK_TYPE, ResourceState, Urn, provider_package};

use super::Generator;
use crate::spec::DeploymentOptions;
use crate::targets::TargetSet;

pub(super) struct Selection {
    pub(super) targets: TargetSet,
    pub(super) target_dependents: bool,
    pub(super) excludes: TargetSet,
    pub(super) exclude_dependents: bool,
    pub(super) replace_targets: TargetSet,
    /// Targets and what was found to depend on them.
    reached: TargetSet,
    /// Excludes and what was found to depend on them.
    avoided: TargetSet,
}

impl Selection {
    pub(super) fn new(options: &DeploymentOptions) -> Self {
        let targets = TargetSet::new(&options.targets.patterns);
        let excludes = TargetSet::new(&options.excludes.patterns);
        Self {
            reached: targets.clone(),
            avoided: excludes.clone(),
            targets,
            target_dependents: options.targets.dependents,
            excludes,
            exclude_dependents: options.excludes.dependents,
            replace_targets: TargetSet::new(&options.replace_targets),
        }
    }

    fn is_target(&self, state: &ResourceState) -> bool {
        self.targets.contains(&state.urn)
            || (self.target_dependents && needs_any(state, &self.reached))
    }

    fn is_excluded(&self, state: &ResourceState) -> bool {
        self.excludes.contains(&state.urn)
            || (self.exclude_dependents && needs_any(state, &self.avoided))
    }

    fn includes(&self, state: &ResourceState) -> bool {
        if self.targets.is_constrained() {
            return self.is_target(state);
        }
        !self.excludes.is_constrained() || !self.is_excluded(state)
    }
}

impl Generator {
    /// Whether a registered resource takes part. Providers and the stack always do: everything
    /// else needs them, and nobody sees them.
    pub(super) fn takes_part(&self, state: &ResourceState) -> bool {
        provider_package(&state.type_).is_some()
            || state.urn.qualified_type() == ROOT_STACK_TYPE
            || self.selection.includes(state)
    }

    /// Remembers whether dependants of this resource take part. Dependencies are registered before
    /// their dependants, so one look at each is enough. Only resources that were chosen themselves, or
    /// through one that was, pass it on: whoever takes part for another reason, such as a provider that
    /// everything needs, would drag in the whole stack.
    pub(super) fn reach(&mut self, state: &ResourceState, takes_part: bool) {
        let selection = &mut self.selection;
        if selection.excludes.is_constrained() && !takes_part && selection.is_excluded(state) {
            selection.avoided.add(&state.urn);
        } else if takes_part && selection.targets.is_constrained() && selection.is_target(state) {
            selection.reached.add(&state.urn);
        }
    }

    /// Whether somebody asked to replace the resource whatever its inputs.
    pub(super) fn must_be_replaced(&self, urn: &Urn, old: Option<&ResourceState>) -> bool {
        self.selection.replace_targets.contains(urn) || old.is_some_and(|old| old.taint)
    }

    pub(crate) fn targets(&self) -> &TargetSet {
        &self.selection.targets
    }

    pub(crate) fn excludes(&self) -> &TargetSet {
        &self.selection.excludes
    }

    pub(crate) fn replace_targets(&self) -> &TargetSet {
        &self.selection.replace_targets
    }
}

/// Whether the resource uses anything chosen, as provider, parent or otherwise.
fn needs_any(state: &ResourceState, choice: &TargetSet) -> bool {
    state.all_dependencies().any(|urn| choice.contains(&urn))
}

/// Which recorded resources a refresh is about, in order.
pub(crate) fn refreshed<'a>(
    options: &DeploymentOptions,
    resources: impl IntoIterator<Item = &'a ResourceState>,
) -> Vec<bool> {
    let mut targets = TargetSet::new(&options.targets.patterns);
    let mut excludes = TargetSet::new(&options.excludes.patterns);
    let others = |state: &ResourceState, choice: &TargetSet| {
        let provider = ProviderRef::parse(&state.provider)
            .ok()
            .map(|provider| provider.urn);
        state
            .all_dependencies()
            .any(|urn| Some(&urn) != provider.as_ref() && choice.contains(&urn))
    };
    let decide = |state: &ResourceState| {
        if excludes.is_constrained() {
            let excluded = excludes.contains(&state.urn)
                || (options.excludes.dependents && others(state, &excludes));
            if excluded {
                excludes.add(&state.urn);
            }
            return !excluded;
        }
        if !targets.is_constrained() {
            return true;
        }
        let targeted =
            targets.contains(&state.urn) || (options.targets.dependents && others(state, &targets));
        if targeted {
            targets.add(&state.urn);
        }
        targeted
    };
    resources.into_iter().map(decide).collect()
}
