//! What is deleted when a program has asked for everything it wants.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use nimbus_engine_model::{ResourceState, StateRef, StepOp, Urn};
use nimbus_engine_ports::Severity;

use super::{Dependent, Generator};
use crate::error::DeployError;
use crate::known::RecordedResource;
use crate::steps::{DeleteReason, DeleteStep, RemovePendingReplaceStep, SameStep, Step};

/// What happened to recorded resources in this operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    /// Replaced, and waiting for the delete.
    pub pending_delete: HashSet<StateRef>,
    /// Deleted, and waiting for the replacement.
    pub pending_replacement: HashSet<StateRef>,
}

/// Which resources may be deleted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deletable {
    All,
    Only(HashSet<Urn>),
    AllBut(HashSet<Urn>),
}

/// Deletes in the order in which they are carried out.
#[derive(Debug, Default)]
pub(crate) struct Deletes {
    /// Records of resources that take no part.
    pub carried: Vec<Step>,
    /// Group by group; within a group all at once. Each step with its place in the record.
    pub groups: Vec<Vec<(usize, Step)>>,
}

impl Deletes {
    /// How many resources go because nobody asked for them.
    pub(crate) fn unwanted(&self) -> usize {
        let unwanted = |step: &Step| matches!(step.op(), StepOp::Delete | StepOp::ReadDiscard);
        self.groups
            .iter()
            .flatten()
            .filter(|(_, step)| unwanted(step))
            .count()
    }
}

impl Deletable {
    fn allows(&self, urn: &Urn) -> bool {
        match self {
            Self::All => true,
            Self::Only(urns) => urns.contains(urn),
            Self::AllBut(urns) => !urns.contains(urn),
        }
    }
}

impl Generator {
    /// Targets and everything that depends on them, children included. `None` without targets.
    pub(crate) fn deletion_targets(&self) -> Option<Vec<RecordedResource>> {
        let targets = &self.selection.targets;
        if !targets.is_constrained() {
            return None;
        }
        let mut frontier: Vec<usize> = self.positions(|urn| targets.contains(urn));
        let mut reached: HashSet<Urn> = HashSet::new();
        let mut at = 0;
        while at < frontier.len() {
            let index = frontier[at];
            at += 1;
            if reached.insert(self.base.resources[index].urn.clone()) {
                // With children: a record must not name a parent that is gone.
                frontier.extend(self.base.graph.dependents_of(index, &reached, true));
            }
        }
        let all = self.positions(|urn| reached.contains(urn));
        Some(all.into_iter().map(|index| self.base.at(index)).collect())
    }

    /// Which resources may go, given what would have to be deleted along with the targets.
    pub(crate) fn deletable(
        &self,
        targets: Option<&[RecordedResource]>,
        along: &[Dependent],
    ) -> Deletable {
        if let Some(targets) = targets {
            let targets = targets.iter().map(|known| known.state.urn.clone());
            let along = along
                .iter()
                .map(|dependent| dependent.known.state.urn.clone());
            return Deletable::Only(targets.chain(along).collect());
        }
        if self.selection.excludes.is_constrained() {
            return Deletable::AllBut(self.spared());
        }
        Deletable::All
    }

    /// Excluded resources and everything that they need: a resource that stays without what it needs would
    /// be recorded as sound and be broken. Their dependants stay only if asked for, for those can go first.
    fn spared(&self) -> HashSet<Urn> {
        let graph = &self.base.graph;
        let mut frontier = self.positions(|urn| self.selection.excludes.contains(urn));
        let mut spared = HashSet::new();
        while let Some(index) = frontier.pop() {
            if spared.insert(self.base.resources[index].urn.clone()) {
                frontier.extend(graph.dependencies_of(index));
                if self.selection.exclude_dependents {
                    frontier.extend(graph.dependents_of(index, &spared, true));
                }
            }
        }
        spared
    }

    fn positions(&self, chosen: impl Fn(&Urn) -> bool) -> Vec<usize> {
        let resources = self.base.resources.iter().enumerate();
        resources
            .filter(|(_, state)| chosen(&state.urn))
            .map(|(index, _)| index)
            .collect()
    }

    pub(crate) fn deletes(
        &mut self,
        deletable: &Deletable,
        marks: &Marks,
    ) -> Result<Deletes, DeployError> {
        let base = Arc::clone(&self.base);
        let mut deletes = BTreeMap::new();
        let mut removals = BTreeMap::new();
        let mut carried = Vec::new();
        for index in 0..base.resources.len() {
            let known = current(base.at(index), marks);
            let urn = known.state.urn.clone();
            if !deletable.allows(&urn) {
                if !self.is_kept(&urn) {
                    carried.push(Step::Same(SameStep::untargeted(known)?));
                }
            } else if known.state.delete {
                // Asked before who is kept: its replacement has the same URN and is.
                if !self.condemned.contains(&known.key) {
                    self.seen.deletes.insert(urn);
                    deletes.insert(index, DeleteStep::new(known, DeleteReason::Replaced)?);
                }
            } else if !self.is_kept(&urn) {
                self.seen.deletes.insert(urn);
                // Its object was deleted ahead of a replacement that nobody asks for any more.
                if known.state.pending_replacement {
                    removals.insert(index, RemovePendingReplaceStep::new(known)?);
                } else {
                    deletes.insert(index, DeleteStep::new(known, DeleteReason::Unwanted)?);
                }
            }
        }
        // Only now is it known who goes: an owner may come before or after what goes with it.
        self.mark_deleted_together_in(&mut deletes);
        let deletes = deletes
            .into_iter()
            .map(|(index, step)| (index, Step::Delete(step)));
        let removals = removals
            .into_iter()
            .map(|(index, step)| (index, Step::RemovePendingReplace(step)));
        let steps: BTreeMap<usize, Step> = deletes.chain(removals).collect();
        self.hold_to_plan(&carried, &steps)?;
        self.refuse_untargeted(&steps)?;
        Ok(Deletes {
            carried,
            groups: self.grouped(steps),
        })
    }

    fn mark_deleted_together_in(&self, deletes: &mut BTreeMap<usize, DeleteStep>) {
        for delete in deletes.values_mut() {
            self.mark_deleted_together(std::slice::from_mut(delete));
        }
    }

    fn hold_to_plan(
        &mut self,
        carried: &[Step],
        steps: &BTreeMap<usize, Step>,
    ) -> Result<(), DeployError> {
        for step in carried.iter().chain(steps.values()) {
            self.plan.step(step.urn(), step.op())?;
        }
        Ok(())
    }

    /// Nothing is deleted that was not asked for, even if a target cannot go without it.
    fn refuse_untargeted(&mut self, steps: &BTreeMap<usize, Step>) -> Result<(), DeployError> {
        let selection = &self.selection;
        if !selection.targets.is_constrained() || selection.target_dependents {
            return Ok(());
        }
        let outside: Vec<Urn> = steps
            .values()
            .map(|step| step.urn().clone())
            .filter(|urn| !selection.targets.contains(urn))
            .collect();
        if outside.is_empty() {
            return Ok(());
        }
        for urn in &outside {
            let message = format!("{urn} depends on a target and would have to be deleted too");
            self.report(Severity::Error, Some(urn), message);
        }
        self.fail(DeployError::OutsideTargets { resources: outside })
    }

    fn grouped(&self, mut steps: BTreeMap<usize, Step>) -> Vec<Vec<(usize, Step)>> {
        let condemned: BTreeSet<usize> = steps.keys().copied().collect();
        let groups = self.base.graph.deletion_order(&condemned);
        let take = |index: usize, steps: &mut BTreeMap<usize, Step>| {
            steps.remove(&index).map(|step| (index, step))
        };
        groups
            .into_iter()
            .map(|group| {
                group
                    .into_iter()
                    .filter_map(|index| take(index, &mut steps))
                    .collect()
            })
            .collect()
    }
}

/// A recorded resource as it is after what happened in this operation.
fn current(known: RecordedResource, marks: &Marks) -> RecordedResource {
    let pending_delete = marks.pending_delete.contains(&known.key);
    let pending_replacement = marks.pending_replacement.contains(&known.key);
    if !pending_delete && !pending_replacement {
        return known;
    }
    let mut state = ResourceState::clone(&known.state);
    state.delete |= pending_delete;
    state.pending_replacement |= pending_replacement;
    RecordedResource {
        key: known.key,
        state: Arc::new(state),
    }
}
