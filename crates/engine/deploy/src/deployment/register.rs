//! One registration, from the program's wish to the answer.

use std::sync::Arc;

use nimbus_engine_model::{Goal, PropertyMap, ResourceState, StepOp, UNKNOWN_ID, Urn};
use nimbus_engine_ports::{ReadGoal, RegisterResult, RegisterStatus, Severity};

use super::Deployment;
use super::ask::Asker;
use super::chain::ChainEnd;
use crate::error::DeployError;
use crate::executor::{AwaitedOutputs, Done};
use crate::generator::{
    ComparisonMode, PendingRegistration, RegistrationDecision, ReplaceVerdict, Replacing,
};
use crate::known::RecordedResource;
use crate::steps::Step;

/// Why a registration got no answer of its own.
pub(crate) enum NoAnswer {
    /// The operation ends.
    Stopped,
    /// This registration ends it.
    Error(DeployError),
}

impl From<DeployError> for NoAnswer {
    fn from(error: DeployError) -> Self {
        Self::Error(error)
    }
}

/// How a registration came out before its steps run.
enum RegistrationOutcome {
    Steps(Vec<Step>),
    /// Nothing more to do.
    Known(RecordedResource),
}

impl Deployment {
    /// Whether the operation stops is asked before each stage that asks somebody or decides something: each
    /// of those may take minutes, and a step that is decided after the stop would still be carried out.
    pub(super) async fn register(&self, goal: Goal) -> Result<RegisterResult, NoAnswer> {
        self.refuse_when_stopped()?;
        let seed = self.ids.seed();
        let mut registration = self.decide(|generator| generator.begin(goal, seed)).await?;
        if let Some(rules) = &self.options.naming {
            registration.name_by(rules);
        }
        // Before anybody asks for a provider that is recorded under its earlier name.
        if let Some(recorded) = registration.new.aliases.first() {
            self.executor
                .registry
                .register_alias(&registration.urn, recorded);
        }
        // What stays as it is whatever the program says needs no provider, which may not even load.
        if let Some(steps) = self
            .decide(|generator| generator.without_goals(&registration))
            .await?
        {
            return self.answer(registration.urn, steps).await;
        }
        // Before the import, which reads through this provider: one that does not load is refused with the
        // resource's name, and not from the middle of a step.
        let asker = self.asker(&registration).await?;
        // An import comes before the check: what it finds is what the goal is compared with.
        if let Some(steps) = self
            .decide(|generator| generator.import(&registration))
            .await?
        {
            let urn = registration.urn.clone();
            match self.run_chain(steps).await {
                ChainEnd::Done(ended) => {
                    let Some(known) = state_of(&ended) else {
                        return Err(nothing_came(&urn).into());
                    };
                    registration = self
                        .decide(|generator| generator.imported(registration, known))
                        .await;
                }
                end => return self.not_done(&urn, &end),
            }
        }
        self.refuse_when_stopped()?;
        let to_check = self
            .decide(|generator| generator.inputs_to_check(&mut registration))
            .await;
        let checked = self.check(&registration, &asker, to_check).await?;
        let inputs = self
            .decide(|generator| generator.checked(&mut registration, checked))
            .await?;
        // Policies see inputs as the provider completes them, before anything is decided by them.
        let inputs = self.apply_policies(&mut registration, inputs).await?;
        self.refuse_when_stopped()?;
        let decision = self.decide(|generator| {
            generator.refuse_invalid(&registration)?;
            generator.decide(&registration, &inputs)
        });
        let settled = match decision.await? {
            RegistrationDecision::Steps(steps) => RegistrationOutcome::Steps(steps),
            RegistrationDecision::Compare(comparison) => {
                self.settle_comparison(&mut registration, &asker, comparison, &inputs)
                    .await?
            }
        };
        match settled {
            RegistrationOutcome::Known(known) => {
                Ok(self.registered_as(StepKind::of_import(), known))
            }
            RegistrationOutcome::Steps(steps) => self.answer(registration.urn, steps).await,
        }
    }

    pub(super) async fn read(&self, goal: ReadGoal) -> Result<RegisterResult, NoAnswer> {
        self.refuse_when_stopped()?;
        let (urn, steps) = self.decide(|generator| generator.read(goal)).await?;
        self.answer(urn, steps).await
    }

    /// Compares, and turns the verdict into steps. From the verdict on nothing else is decided, so
    /// that nobody registers what is being deleted.
    async fn settle_comparison(
        &self,
        registration: &mut PendingRegistration,
        asker: &Asker,
        comparison: ComparisonMode,
        inputs: &PropertyMap,
    ) -> Result<RegistrationOutcome, DeployError> {
        let (diff, trigger) = self.diff(registration, asker, comparison, inputs).await?;
        let mut generator = self.generator.lock().await;
        let verdict = generator.compared(registration, diff, trigger);
        self.tell_findings(&mut generator);
        let replacing = match verdict? {
            ReplaceVerdict::Done(known) => return Ok(RegistrationOutcome::Known(known)),
            ReplaceVerdict::Steps(steps) => return Ok(RegistrationOutcome::Steps(steps)),
            ReplaceVerdict::Replace(replacing) => replacing,
        };
        if replacing.check_again {
            self.check_again(registration, asker).await?;
        }
        let dependents = if replacing.delete_first {
            self.prepare_delete(registration, &replacing).await?;
            self.dependents(&generator, &replacing.old).await?
        } else {
            Vec::new()
        };
        let steps = generator.replace_steps(registration, replacing, dependents);
        self.tell_findings(&mut generator);
        steps.map(RegistrationOutcome::Steps)
    }

    /// Generated names and defaults of a replacement are its own.
    async fn check_again(
        &self,
        registration: &mut PendingRegistration,
        asker: &Asker,
    ) -> Result<(), DeployError> {
        let news = registration.goal.properties.clone();
        let checked = self.ask_check(registration, asker, None, news).await?;
        if !checked.failures.is_empty() {
            for failure in &checked.failures {
                let message = format!("{}: {}", failure.property, failure.reason);
                self.executor
                    .diagnose(Severity::Error, Some(&registration.urn), message);
            }
            return Err(DeployError::CheckFailed {
                urn: registration.urn.clone(),
            });
        }
        registration.new.inputs = checked.inputs;
        Ok(())
    }

    async fn prepare_delete(
        &self,
        registration: &PendingRegistration,
        replacing: &Replacing,
    ) -> Result<(), DeployError> {
        let base = self.base();
        self.ensure(&base, &registration.urn, &replacing.old.state.provider)
            .await
    }

    fn refuse_when_stopped(&self) -> Result<(), NoAnswer> {
        if self.failures.is_stopped() {
            Err(NoAnswer::Stopped)
        } else {
            Ok(())
        }
    }

    /// Runs the steps of a registration and answers the program.
    async fn answer(&self, urn: Urn, steps: Vec<Step>) -> Result<RegisterResult, NoAnswer> {
        let kind = StepKind::of(&steps, &urn);
        let ended = match self.run_chain(steps).await {
            ChainEnd::Done(ended) => ended,
            end => return self.not_done(&urn, &end),
        };
        if let Some(known) = state_of(&ended) {
            let mut generator = self.generator.lock().await;
            generator.plan.made_outputs(&urn, &known.state.outputs);
            return Ok(self.registered_as(kind, known));
        }
        // A create that was left out: everything about it is unknown.
        self.executor
            .states
            .registered(urn.clone(), AwaitedOutputs::Skipped);
        Ok(RegisterResult {
            elided: true,
            ..empty_result(urn, RegisterStatus::Succeeded)
        })
    }

    fn registered_as(&self, kind: StepKind, known: RecordedResource) -> RegisterResult {
        let state = Arc::clone(&known.state);
        let urn = state.urn.clone();
        let made = AwaitedOutputs::Made {
            op: kind.op,
            known,
            old: kind.old,
        };
        self.executor.states.registered(urn.clone(), made);
        RegisterResult {
            id: state.id.clone().filter(|id| id != UNKNOWN_ID),
            // A component's outputs may refer to what the program has not registered yet.
            outputs: if state.custom {
                state.outputs.clone()
            } else {
                PropertyMap::new()
            },
            stable: kind.stable,
            ..empty_result(urn, RegisterStatus::Succeeded)
        }
    }

    fn not_done(&self, urn: &Urn, end: &ChainEnd) -> Result<RegisterResult, NoAnswer> {
        let goes_on = !self.failures.is_stopped();
        match end {
            ChainEnd::Failed if goes_on => Ok(empty_result(urn.clone(), RegisterStatus::Failed)),
            ChainEnd::Skipped if goes_on => Ok(empty_result(urn.clone(), RegisterStatus::Skipped)),
            _ => Err(NoAnswer::Stopped),
        }
    }
}

/// The step that users see as the registration's.
struct StepKind {
    op: StepOp,
    stable: Vec<String>,
    /// The resource before the step, whatever it was called then.
    old: Option<Arc<ResourceState>>,
}

impl StepKind {
    fn of(steps: &[Step], urn: &Urn) -> Self {
        let own = steps
            .iter()
            .filter(|step| step.urn() == urn && step.new_state().is_some());
        let shown = own
            .clone()
            .find(|step| step.is_logical())
            .or_else(|| own.clone().next_back());
        let stable = match shown {
            Some(Step::Update(update)) => update.stable_keys().to_vec(),
            _ => Vec::new(),
        };
        Self {
            op: shown.map_or(StepOp::Same, Step::op),
            stable,
            old: shown.and_then(Step::old).map(|old| Arc::clone(&old.state)),
        }
    }

    fn of_import() -> Self {
        Self {
            op: StepOp::Import,
            stable: Vec::new(),
            old: None,
        }
    }
}

/// The resource that a chain was about, as it left it; `None` when its create was left out. What
/// takes no part keeps its recorded name, so the name does not tell.
fn state_of(ended: &[(Step, Done)]) -> Option<RecordedResource> {
    if ended
        .iter()
        .any(|(step, _)| matches!(step, Step::SkippedCreate(_)))
    {
        return None;
    }
    ended.iter().rev().find_map(|(_, done)| match done {
        Done::State(known) => Some(known.clone()),
        Done::Gone | Done::Refreshed(_) | Done::Told => None,
    })
}

fn nothing_came(urn: &Urn) -> DeployError {
    DeployError::Internal {
        message: format!("the steps of {urn} left nothing"),
    }
}

fn empty_result(urn: Urn, status: RegisterStatus) -> RegisterResult {
    RegisterResult {
        status,
        urn,
        id: None,
        outputs: PropertyMap::new(),
        stable: Vec::new(),
        property_dependencies: std::collections::BTreeMap::new(),
        elided: false,
    }
}
