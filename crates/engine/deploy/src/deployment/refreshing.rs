//! Looking at what is really there, and putting it in place of what was recorded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::future::join_all;
use nimbus_engine_model::{JournalChange, OperationKind, PendingOperation, ResourceState, Urn};
use nimbus_engine_ports::Severity;

use super::Deployment;
use super::chain::ChainEnd;
use crate::error::DeployError;
use crate::executor::{Done, Refreshed};
use crate::generator::refreshed;
use crate::known::Base;
use crate::steps::{RefreshStep, Step};

/// More objects than this gone at once are not believed.
const MANY: usize = 5;
/// Neither is more than one in so many.
const ONE_IN: usize = 10;

/// Which resources to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefreshScope {
    Chosen,
    /// Those whose provider wants to look before every update.
    Flagged,
}

impl Deployment {
    /// Refreshes and rebuilds the base. An error about one resource does not keep the others from
    /// being looked at, but then nothing is removed: who could not look has seen nothing.
    pub(crate) async fn refresh_base(&self, scope: RefreshScope) -> Result<(), DeployError> {
        let base = self.base();
        self.refuse_unknown_targets(KnownTargets::CHOSEN).await?;
        let states = base.resources.iter().map(|state| &**state);
        let chosen = refreshed(&self.options, states);
        let selected: Vec<usize> = (0..base.resources.len())
            .filter(|index| chosen[*index])
            .filter(|index| {
                scope == RefreshScope::Chosen || base.resources[*index].refresh_before_update
            })
            .collect();
        for index in &selected {
            let state = &base.resources[*index];
            self.ensure(&base, &state.urn, &state.provider).await?;
        }
        let mut found = self.look_at(&base, &selected).await;
        let complete = found.len() == selected.len();
        if !complete {
            self.keep_what_vanished(&base, &mut found);
        }
        self.refuse_mass_removal(&base, &found)?;
        let mut resources = rebuilt(&base, &found);
        let created = if scope == RefreshScope::Chosen {
            self.find_created(&base).await
        } else {
            Vec::new()
        };
        resources.extend(created.iter().cloned());
        if resources != base.resources {
            self.executor.recorder.rebase(resources.clone()).await?;
            self.replace_base(resources).await?;
        }
        // Looking at those that a provider flagged is no answer about anything else.
        if scope == RefreshScope::Chosen {
            let selected = if complete { selected } else { Vec::new() };
            self.settle_pending(&base, &selected, &created).await?;
        }
        Ok(())
    }

    /// The objects of interrupted creates, where their providers find them.
    async fn find_created(&self, base: &Base) -> Vec<Arc<ResourceState>> {
        let pending = &self.snapshot.pending_operations;
        let chosen = refreshed(&self.options, pending.iter().map(|op| &*op.resource));
        let mut created: Vec<Arc<ResourceState>> = Vec::new();
        for (operation, chosen) in pending.iter().zip(chosen) {
            let resource = &operation.resource;
            // Where something is recorded under this URN, what is found by name may be that.
            let is_recorded = base.resources.iter().any(|known| known.urn == resource.urn)
                || created.iter().any(|known| known.urn == resource.urn);
            let may_be_there = operation.kind == OperationKind::Creating && resource.custom;
            if !chosen || !may_be_there || is_recorded || self.failures.is_cancelled() {
                continue;
            }
            // A provider that is not there cannot look; the create stays unknown.
            if self
                .executor
                .registry
                .ensure(base, &resource.provider)
                .await
                .is_ok()
            {
                created.extend(self.executor.find_created(resource).await);
            }
        }
        created
    }

    /// What was found, by position; nothing where looking failed.
    async fn look_at(&self, base: &Base, selected: &[usize]) -> HashMap<usize, Refreshed> {
        let chains = selected.iter().map(|index| {
            let step = Step::Refresh(RefreshStep::new(base.at(*index)));
            async move { (*index, self.run_refresh(step).await) }
        });
        let found = join_all(chains).await.into_iter();
        found
            .filter_map(|(index, refreshed)| Some((index, refreshed?)))
            .collect()
    }

    /// As a chain of one, except that a failure does not stop the others.
    async fn run_refresh(&self, step: Step) -> Option<Refreshed> {
        if self.failures.is_cancelled() {
            return None;
        }
        let _permit = self.steps.acquire().await;
        if self.failures.is_cancelled() {
            return None;
        }
        match self.executor.execute(&step).await {
            Ok(Done::Refreshed(refreshed)) => Some(*refreshed),
            Ok(_) => None,
            Err(error) => {
                self.failures.step_failed(&step, &error);
                None
            }
        }
    }

    fn keep_what_vanished(&self, base: &Base, found: &mut HashMap<usize, Refreshed>) {
        found.retain(|index, refreshed| {
            if refreshed.new.is_none() {
                let urn = &base.resources[*index].urn;
                let message = "reported as gone, but kept: not everything could be looked at";
                self.executor
                    .diagnose(Severity::Warning, Some(urn), message.to_owned());
            }
            refreshed.new.is_some()
        });
    }

    fn refuse_mass_removal(
        &self,
        base: &Base,
        found: &HashMap<usize, Refreshed>,
    ) -> Result<(), DeployError> {
        let looked_up = found
            .keys()
            .filter(|index| RefreshStep::new(base.at(**index)).has_object())
            .count();
        let gone: Vec<Urn> = (0..base.resources.len())
            .filter(|index| {
                found
                    .get(index)
                    .is_some_and(|refreshed| refreshed.new.is_none())
            })
            .map(|index| base.resources[index].urn.clone())
            .collect();
        let many = gone.len() > MANY || gone.len() * ONE_IN > looked_up;
        if many && !gone.is_empty() && !self.options.allow_mass_removal {
            return Err(DeployError::MassRemoval { gone, looked_up });
        }
        Ok(())
    }

    async fn replace_base(&self, resources: Vec<Arc<ResourceState>>) -> Result<(), DeployError> {
        let rebuilt = Arc::new(Base::new(resources)?);
        *self.base.write() = Arc::clone(&rebuilt);
        self.generator.lock().await.base = rebuilt;
        Ok(())
    }

    /// Takes what was recorded so far for the beginning: nothing counts as registered any more.
    pub(crate) async fn start_over(&self) -> Result<(), DeployError> {
        let recorder = &self.executor.recorder;
        let entries = recorder.so_far().await?;
        let (snapshot, _) = crate::outcome::replayed(&self.snapshot, &entries);
        let resources = snapshot
            .map_err(|message| DeployError::Internal { message })?
            .resources;
        recorder.rebase(resources.clone()).await?;
        self.executor.states.forget_marks();
        self.replace_base(resources).await?;
        self.generator.lock().await.start_over();
        Ok(())
    }

    /// Interrupted acts on resources that were just looked at are no longer unknown. A create is,
    /// unless its object was found.
    async fn settle_pending(
        &self,
        base: &Base,
        selected: &[usize],
        created: &[Arc<ResourceState>],
    ) -> Result<(), DeployError> {
        let pending = &self.snapshot.pending_operations;
        let seen: HashSet<&Urn> = selected
            .iter()
            .map(|index| &base.resources[*index].urn)
            .collect();
        let settled = |operation: &PendingOperation| match operation.kind {
            OperationKind::Creating => created
                .iter()
                .any(|state| state.urn == operation.resource.urn),
            _ => seen.contains(&operation.resource.urn),
        };
        let recorder = &self.executor.recorder;
        if !pending.is_empty() && pending.iter().all(settled) {
            recorder.clear_pending().await?;
            return Ok(());
        }
        for state in created {
            // In the journal this is an import, which is what settles a create by itself.
            let operation = PendingOperation {
                kind: OperationKind::Importing,
                resource: Arc::clone(state),
            };
            let act = recorder.begin(operation).await?;
            recorder.success(act, JournalChange::default()).await?;
        }
        Ok(())
    }

    /// Warns of what an interrupted operation left open.
    pub(crate) fn warn_pending(&self) {
        let pending = &self.snapshot.pending_operations;
        if pending.is_empty() {
            return;
        }
        let mut message = String::from(
            "an earlier operation was interrupted, and nobody knows what became of:\n",
        );
        for operation in pending {
            let kind = match operation.kind {
                OperationKind::Creating => "create",
                OperationKind::Updating => "update",
                OperationKind::Deleting => "delete",
                OperationKind::Reading => "read",
                OperationKind::Importing => "import",
            };
            message.push_str(&format!("  {kind} {}\n", operation.resource.urn));
        }
        message.push_str(
            "a refresh finds out, of a create only where its object is known by its name; a create \
             that it does not find has to be looked up by hand, and then `nimbus program refresh \
             --clear-pending-creates` forgets it or `nimbus program import` takes the object in",
        );
        self.executor.diagnose(Severity::Warning, None, message);
    }

    /// Targets, excludes and replace targets that are named exactly must exist.
    pub(crate) async fn refuse_unknown_targets(
        &self,
        known: KnownTargets,
    ) -> Result<(), DeployError> {
        let generator = self.generator.lock().await;
        let choices = [
            (known.targets, generator.targets()),
            (known.excludes, generator.excludes()),
            (known.replace_targets, generator.replace_targets()),
        ];
        let asked = choices.into_iter().filter(|(asked, _)| *asked);
        let targets: Vec<String> = asked
            .flat_map(|(_, choice)| generator.unknown_targets(choice))
            .collect();
        if targets.is_empty() {
            Ok(())
        } else {
            Err(DeployError::UnknownTargets { targets })
        }
    }

    /// Steps that ended without failing, for operations that run chains directly.
    pub(super) fn all_done(ends: &[ChainEnd]) -> bool {
        ends.iter().all(|end| matches!(end, ChainEnd::Done(_)))
    }
}

/// Which of the names that the operation was given must be in the record. A target of an update may
/// be a resource that the program is about to register, so not every operation asks for all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownTargets {
    targets: bool,
    excludes: bool,
    replace_targets: bool,
}

impl KnownTargets {
    pub(crate) const TARGETS: Self = Self {
        targets: true,
        excludes: false,
        replace_targets: false,
    };
    /// What limits the operation: targets and excludes.
    pub(crate) const CHOSEN: Self = Self {
        targets: true,
        excludes: true,
        replace_targets: false,
    };
    pub(crate) const REPLACED: Self = Self {
        targets: false,
        excludes: false,
        replace_targets: true,
    };
}

/// The record with what was found in place of what was. References to what is gone are dropped;
/// children of a parent that is gone move up to its parent.
fn rebuilt(base: &Base, found: &HashMap<usize, Refreshed>) -> Vec<Arc<ResourceState>> {
    let mut resources = Vec::new();
    let mut there: HashSet<Urn> = HashSet::new();
    let mut parents: HashMap<Urn, Option<Urn>> = HashMap::new();
    for (index, old) in base.resources.iter().enumerate() {
        let refreshed = found.get(&index);
        parents.insert(old.urn.clone(), old.parent.clone());
        let Some(state) = refreshed.map_or(Some(old), |refreshed| refreshed.new.as_ref()) else {
            continue;
        };
        there.insert(state.urn.clone());
        resources.push(without_dangling(state, &there, &parents));
    }
    resources
}

fn without_dangling(
    state: &Arc<ResourceState>,
    there: &HashSet<Urn>,
    parents: &HashMap<Urn, Option<Urn>>,
) -> Arc<ResourceState> {
    let mut fixed = ResourceState::clone(state);
    fixed.dependencies.retain(|urn| there.contains(urn));
    for urns in fixed.property_dependencies.values_mut() {
        urns.retain(|urn| there.contains(urn));
    }
    fixed.property_dependencies.retain(|key, urns| {
        !urns.is_empty()
            || state
                .property_dependencies
                .get(key)
                .is_some_and(Vec::is_empty)
    });
    fixed.replace_with.retain(|urn| there.contains(urn));
    fixed.deleted_with = fixed.deleted_with.filter(|urn| there.contains(urn));
    while let Some(parent) = fixed
        .parent
        .clone()
        .filter(|parent| !there.contains(parent))
    {
        fixed.parent = parents.get(&parent).cloned().flatten();
    }
    if fixed == **state {
        Arc::clone(state)
    } else {
        Arc::new(fixed)
    }
}

#[cfg(test)]
mod tests;
