//! After the program has asked for everything: what nobody asked for is deleted.

use std::collections::BTreeSet;

use futures::future::join_all;
use nimbus_engine_model::ROOT_STACK_TYPE;

use super::Deployment;
use super::chain::ChainEnd;
use crate::error::DeployError;
use crate::generator::Deletes;
use crate::known::Base;
use crate::steps::Step;

impl Deployment {
    /// Deletes what was not asked for, dependants before what they depend on.
    pub(crate) async fn delete_unwanted(&self, program: ProgramEnd) -> Result<(), DeployError> {
        let base = self.base();
        if base.resources.is_empty() {
            return Ok(());
        }
        let mut deletes = self.decide_deletes().await?;
        self.refuse_incomplete(program, &deletes).await?;
        self.spare_dependents_of_failures(&base, &mut deletes);
        // All providers before the first delete: that one does not load must not be found out half
        // way.
        for (_, step) in deletes.groups.iter().flatten() {
            let state = step.subject();
            if matches!(step, Step::Delete(delete) if delete.needs_provider()) {
                self.ensure(&base, &state.urn, &state.provider).await?;
            }
        }
        if !deletes.carried.is_empty() {
            self.run_chain(std::mem::take(&mut deletes.carried)).await;
        }
        self.run_deletes(&base, deletes).await;
        Ok(())
    }

    async fn decide_deletes(&self) -> Result<Deletes, DeployError> {
        let mut generator = self.generator.lock().await;
        let targets = generator.deletion_targets();
        let mut along = Vec::new();
        for target in targets.iter().flatten() {
            along.extend(self.dependents(&generator, target).await?);
        }
        let deletable = generator.deletable(targets.as_deref(), &along);
        let deletes = generator.deletes(&deletable, &self.executor.states.marks());
        self.tell_findings(&mut generator);
        deletes
    }

    /// A program that ended early looks like one that wants less. It is not believed.
    async fn refuse_incomplete(
        &self,
        program: ProgramEnd,
        deletes: &Deletes,
    ) -> Result<(), DeployError> {
        let orphans = deletes.unwanted();
        if program == ProgramEnd::NoProgram || orphans == 0 {
            return Ok(());
        }
        let registered = self
            .decide(|generator| generator.is_registered(&self.root))
            .await;
        let recorded = self
            .base()
            .resources
            .iter()
            .any(|state| state.type_ == ROOT_STACK_TYPE);
        let complete = if registered {
            self.has_root_outputs()
        } else {
            !recorded
        };
        if complete {
            Ok(())
        } else {
            Err(DeployError::ProgramIncomplete { orphans })
        }
    }

    /// A resource that depends on one that failed may be missing from the program only because of
    /// that failure.
    fn spare_dependents_of_failures(&self, base: &Base, deletes: &mut Deletes) {
        let failed = self.failures.failed();
        if failed.is_empty() {
            return;
        }
        let depends_on_failure = |index: usize| {
            let needed = base.graph.all_dependencies_of(index);
            needed
                .iter()
                .any(|needed| failed.contains(&base.resources[*needed].urn))
        };
        for group in &mut deletes.groups {
            group.retain(|(index, step)| {
                // What was replaced is not missing from the program: its replacement was asked for.
                matches!(step, Step::Delete(delete) if delete.old().state.delete)
                    || !depends_on_failure(*index)
            });
        }
    }

    /// What the record of a failed resource still depends on, whatever the program wants now.
    fn needed_by_failures(&self, base: &Base) -> BTreeSet<usize> {
        let failed = self.failures.failed();
        let resources = base.resources.iter().enumerate();
        resources
            .filter(|(_, state)| failed.contains(&state.urn))
            .flat_map(|(index, _)| base.graph.all_dependencies_of(index))
            .collect()
    }

    /// Group by group. What a resource depends on stays as long as the resource does.
    async fn run_deletes(&self, base: &Base, deletes: Deletes) {
        let mut needed = self.needed_by_failures(base);
        for group in deletes.groups {
            let runnable: Vec<_> = group
                .into_iter()
                .filter(|(index, _)| !needed.contains(index))
                .collect();
            let indices: Vec<usize> = runnable.iter().map(|(index, _)| *index).collect();
            let chains = runnable
                .into_iter()
                .map(|(_, step)| self.run_chain(vec![step]));
            let ends = join_all(chains).await;
            for (index, end) in indices.into_iter().zip(ends) {
                if !matches!(end, ChainEnd::Done(_)) {
                    needed.extend(base.graph.all_dependencies_of(index));
                }
            }
        }
    }
}

/// What is known about the program at this point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramEnd {
    /// There was none: everything is unwanted.
    NoProgram,
    Ended,
}
