//! Which resources have to go before one that they depend on can be deleted.
//!
//! A dependant must be deleted first if losing what it depends on would replace it. To find out, the
//! inputs that come from condemned resources are made unknown and the dependant's provider is asked
//! for a comparison. A dependant that would only be updated stays, and so does what depends on it.

use std::collections::{HashSet, VecDeque};

use nimbus_engine_model::{PropertyMap, PropertyValue, ProviderRef, ResourceState, StateRef, Urn};
use nimbus_engine_ports::DiffResponse;

use super::{Generator, diff};
use crate::error::DeployError;
use crate::known::{Base, RecordedResource};

/// A resource that must be deleted first, and the inputs that are the reason.
#[derive(Clone, Debug)]
pub(crate) struct Dependent {
    pub known: RecordedResource,
    pub keys: Vec<String>,
}

/// A comparison that the walk needs before it can go on.
#[derive(Clone, Debug)]
pub(crate) struct DependentComparison {
    pub known: RecordedResource,
    pub inputs: PropertyMap,
}

pub(crate) struct DependentWalk {
    candidates: VecDeque<usize>,
    condemned: HashSet<Urn>,
    asked: Option<RecordedResource>,
    found: Vec<Dependent>,
}

enum DependentVerdict {
    Stays,
    Goes,
    Ask(PropertyMap),
}

impl Generator {
    /// Looks at everything that is recorded to depend on `root`. What is registered already cannot
    /// depend on it any more: dependencies are registered before their dependants.
    pub(crate) fn walk_dependents(&self, root: &RecordedResource) -> DependentWalk {
        let candidates = match root.key {
            StateRef::Base(index) => {
                // Without children: to be one hands no value over.
                self.base
                    .graph
                    .dependents_of(index, &self.seen.decided(), false)
            }
            // Made by this operation: nothing recorded depends on it.
            StateRef::New(_) => Vec::new(),
        };
        DependentWalk {
            candidates: candidates.into(),
            condemned: HashSet::from([root.state.urn.clone()]),
            asked: None,
            found: Vec::new(),
        }
    }

    /// Recorded resources that asked to be replaced or deleted along with `urn`.
    pub(crate) fn bound_to(&self, urn: &Urn) -> Vec<Dependent> {
        let live = (0..self.base.resources.len())
            .map(|index| self.base.at(index))
            .filter(|known| {
                let state = &known.state;
                !state.delete
                    && !self.seen.has_steps(&state.urn)
                    && (state.replace_with.contains(urn)
                        || state.deleted_with.as_ref() == Some(urn))
            });
        live.map(|known| Dependent {
            known,
            keys: Vec::new(),
        })
        .collect()
    }
}

impl DependentWalk {
    /// Goes on until a comparison is needed; `None` at the end.
    pub(crate) fn next(&mut self, base: &Base) -> Option<DependentComparison> {
        while let Some(index) = self.candidates.pop_front() {
            let known = base.at(index);
            match self.verdict(&known.state) {
                DependentVerdict::Stays => {}
                DependentVerdict::Goes => self.condemn(known, Vec::new()),
                DependentVerdict::Ask(inputs) => {
                    self.asked = Some(known.clone());
                    return Some(DependentComparison { known, inputs });
                }
            }
        }
        None
    }

    /// The answer to the last question.
    pub(crate) fn answer(&mut self, answer: DiffResponse) -> Result<(), DeployError> {
        let Some(known) = self.asked.take() else {
            return Ok(());
        };
        let answer = diff::replace_on_changes(answer, &known.state.replace_on_changes, false)
            .map_err(|message| DeployError::BadState {
                message: format!("{}: {message}", known.state.urn),
            })?;
        if answer.replaces() {
            self.condemn(known, answer.replace_keys);
        }
        Ok(())
    }

    /// All that must go, dependencies before dependants.
    pub(crate) fn finish(self) -> Vec<Dependent> {
        self.found
    }

    fn condemn(&mut self, known: RecordedResource, keys: Vec<String>) {
        self.condemned.insert(known.state.urn.clone());
        self.found.push(Dependent { known, keys });
    }

    fn verdict(&self, state: &ResourceState) -> DependentVerdict {
        // A component has no object of its own, and what was only read is not ours to delete.
        if !state.custom || state.external {
            return DependentVerdict::Stays;
        }
        let provider = ProviderRef::parse(&state.provider).ok();
        let loses_provider = provider.is_some_and(|p| self.condemned.contains(&p.urn));
        let goes_along = state
            .deleted_with
            .as_ref()
            .is_some_and(|w| self.condemned.contains(w));
        // Without its provider nobody could delete it later.
        if loses_provider || goes_along {
            return DependentVerdict::Goes;
        }
        // A dependency that hands no value over changes no input, so it cannot be a reason to
        // replace anything.
        let affected = |key: &String| {
            let from = state.property_dependencies.get(key);
            from.into_iter()
                .flatten()
                .any(|urn| self.condemned.contains(urn))
        };
        if !state.inputs.keys().any(affected) {
            return DependentVerdict::Stays;
        }
        let inputs = state.inputs.iter().map(|(key, value)| {
            let value = if affected(key) {
                PropertyValue::Computed
            } else {
                value.clone()
            };
            (key.clone(), value)
        });
        DependentVerdict::Ask(inputs.collect())
    }
}
