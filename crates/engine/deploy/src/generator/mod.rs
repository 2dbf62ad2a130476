//! Decisions: from what a program asks for and what is recorded, to steps.
//!
//! Everything here is a function of values. Where a decision needs a provider's word, it is split:
//! one function says what to ask, another goes on with the answer, and the deployment asks in
//! between. The sets below are the memory of what was decided so far; they are changed only while
//! the deployment holds the generator, one decision at a time.

mod aliases;
mod decide;
mod deletes;
mod dependents;
mod diff;
mod read;
mod register;
mod replace;
mod run_program;
mod selection;
mod validate;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nimbus_core::StackOperation;
use nimbus_engine_model::{ProviderRef, ResourceState, StateRef, Urn};
use nimbus_engine_ports::{Diagnostic, Severity};

use crate::error::DeployError;
use crate::known::Base;
use crate::plan::Constraint;
use crate::spec::DeploymentOptions;
use crate::steps::{SameStep, Step};
use crate::targets::TargetSet;

pub(crate) use decide::{ComparisonMode, RegistrationDecision, replace_because};
pub(crate) use deletes::{Deletes, Marks};
pub(crate) use dependents::Dependent;
pub(crate) use diff::{complete, invert};
pub(crate) use register::{Checked, PendingRegistration, ToCheck, unrecordable};
pub(crate) use replace::{ReplaceVerdict, Replacing};
pub(crate) use selection::refreshed;

pub(crate) struct Generator {
    project: String,
    stack: String,
    rules: GeneratorRules,
    pub(crate) base: Arc<Base>,
    seen: DecidedUrns,
    selection: selection::Selection,
    pub(crate) plan: Constraint,
    /// Recorded resources whose delete is decided already. By key: a resource and the one that it
    /// replaced share a URN, and one of them may be gone while the other stays.
    condemned: HashSet<StateRef>,
    /// Resources that would be created, had they been chosen.
    skipped_creates: HashSet<Urn>,
    /// Records to carry over before the next steps, because these refer to them.
    carried: Vec<Step>,
    carried_urns: HashSet<Urn>,
    /// Providers as registered, under present and earlier names: what is recorded of a resource
    /// names its provider as that was called then.
    providers: HashMap<Urn, Arc<ResourceState>>,
    /// Why dependants of a resource that is deleted before its replacement are replaced too.
    dependent_keys: HashMap<Urn, Vec<String>>,
    names: aliases::Names,
    findings: Vec<Diagnostic>,
    /// An error was found that ends the operation in failure, though it goes on to find more.
    failure: Option<DeployError>,
}

/// What the operation allows.
#[derive(Clone, Copy, Debug)]
struct GeneratorRules {
    dry_run: bool,
    ignore_protect: bool,
    operation: StackOperation,
}

/// URNs by what was decided for them.
#[derive(Default)]
struct DecidedUrns {
    registered: HashSet<Urn>,
    reads: HashSet<Urn>,
    creates: HashSet<Urn>,
    sames: HashSet<Urn>,
    updates: HashSet<Urn>,
    deletes: HashSet<Urn>,
    replaces: HashSet<Urn>,
    imports: HashSet<Urn>,
}

impl DecidedUrns {
    /// Whether steps were decided for this URN.
    fn has_steps(&self, urn: &Urn) -> bool {
        self.creates.contains(urn) || self.deletes.contains(urn) || self.is_kept(urn)
    }

    /// Whether the recorded resource lives on, so that it must not be deleted at the end. A delete
    /// does not count: the record may have more than one resource of a name to delete.
    fn is_kept(&self, urn: &Urn) -> bool {
        self.sames.contains(urn)
            || self.updates.contains(urn)
            || self.replaces.contains(urn)
            || self.reads.contains(urn)
    }

    /// Every URN with decided steps. What is registered later cannot be among its dependencies.
    fn decided(&self) -> HashSet<Urn> {
        let sets = [
            &self.reads,
            &self.creates,
            &self.sames,
            &self.updates,
            &self.deletes,
            &self.replaces,
        ];
        sets.into_iter().flatten().cloned().collect()
    }
}

impl Generator {
    pub(crate) fn new(
        project: &str,
        stack: &str,
        options: &DeploymentOptions,
        operation: StackOperation,
        base: Arc<Base>,
    ) -> Self {
        Self {
            project: project.to_owned(),
            stack: stack.to_owned(),
            rules: GeneratorRules {
                dry_run: options.dry_run,
                ignore_protect: options.ignore_protect,
                operation,
            },
            base,
            seen: DecidedUrns::default(),
            selection: selection::Selection::new(options),
            plan: Constraint::new(options.plan.clone(), options.generate_plan),
            condemned: HashSet::new(),
            skipped_creates: HashSet::new(),
            carried: Vec::new(),
            carried_urns: HashSet::new(),
            providers: HashMap::new(),
            dependent_keys: HashMap::new(),
            names: aliases::Names::default(),
            findings: Vec::new(),
            failure: None,
        }
    }

    /// Forgets what was decided so far; what was found out about targets and plans stays. What a
    /// program registers that is only listened to must not count as kept: the destroy that follows
    /// would delete nothing.
    pub(crate) fn start_over(&mut self) {
        self.seen = DecidedUrns::default();
        self.condemned.clear();
        self.skipped_creates.clear();
        self.carried.clear();
        self.carried_urns.clear();
        self.dependent_keys.clear();
        self.names = aliases::Names::default();
    }

    /// What was found since the last time, for the audience.
    pub(crate) fn take_findings(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.findings)
    }

    /// The error that ends the operation, if one was found.
    pub(crate) fn take_failure(&mut self) -> Option<DeployError> {
        self.failure.take()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Literal targets that neither the record nor the program has.
    pub(crate) fn unknown_targets(&self, choice: &TargetSet) -> Vec<String> {
        choice
            .literals()
            .filter(|text| {
                Urn::parse(text).map_or(true, |urn| {
                    !self.base.has(&urn) && !self.seen.registered.contains(&urn)
                })
            })
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn is_registered(&self, urn: &Urn) -> bool {
        self.seen.registered.contains(urn)
    }

    /// The provider of a resource, as registered or as recorded.
    pub(crate) fn provider_of(&self, state: &ResourceState) -> Option<Arc<ResourceState>> {
        let reference = ProviderRef::parse(&state.provider).ok()?;
        let registered = self.providers.get(&reference.urn).cloned();
        registered.or_else(|| self.base.provider(&reference).cloned())
    }

    /// A provider that only the record knows is needed: its record goes ahead of its users, for a
    /// record names nobody whom it has not listed yet.
    pub(crate) fn carry_provider(&mut self, reference: &ProviderRef) -> Result<(), DeployError> {
        let Some(provider) = self.base.live(&reference.urn) else {
            return Ok(());
        };
        if self.carried_urns.insert(reference.urn.clone()) {
            self.carried
                .push(Step::Same(SameStep::untargeted(provider)?));
        }
        Ok(())
    }

    /// Policies forbid something.
    pub(crate) fn violate(&mut self, violations: usize) -> Result<(), DeployError> {
        self.fail(DeployError::PolicyViolated { violations })
    }

    fn report(&mut self, severity: Severity, urn: Option<&Urn>, message: impl Into<String>) {
        self.findings.push(Diagnostic {
            severity,
            urn: urn.cloned(),
            message: message.into(),
            stream_id: 0,
            ephemeral: false,
        });
    }

    /// Notes a failure. In previews the operation goes on so that everything wrong is seen at once.
    fn fail(&mut self, error: DeployError) -> Result<(), DeployError> {
        if !self.rules.dry_run {
            return Err(error);
        }
        self.failure.get_or_insert(error);
        Ok(())
    }
}
