//! Sealed plans of a whole environment: what was looked at is what is done, or nothing is.
//!
//! A plan names everything that its outcome depends on: code, configuration, answers of resolvers,
//! versions of tools, and the state that each unit starts from. What was not known yet (outputs of
//! units that do not exist) may become known; everything else must be as it was. Digests of private
//! values are keyed, so a plan gives no secret away. A preview writes nothing down, so what it made up goes with
//! the plan, secrets encrypted, and the deploy keeps it.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, DeploymentId, EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{
    EarlierAttempt, Fingerprint, FingerprintInput, InputChange, InputDifference, UnitGraph,
    UnitState,
};
use serde::{Deserialize, Serialize};

use crate::context::RunContext;
use crate::leases::ShownLease;
use crate::planning;
use crate::record::EngineChoice;

const SCHEMA: &str = "nimbus/deployment-plan/2";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedPlan {
    schema: String,
    pub made: String,
    pub deployment: DeploymentId,
    pub environment: EnvironmentName,
    pub rehearsal: bool,
    /// What showed it. Not an input of units: those move between engines without being deployed again.
    #[serde(default, skip_serializing_if = "EngineChoice::is_embedded")]
    engine: EngineChoice,
    pub units: BTreeMap<ComponentName, SealedUnit>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedUnit {
    /// The state that it starts from; `None` when there is none.
    pub state: Option<String>,
    pub inputs: Fingerprint,
    pub needs: BTreeSet<ComponentName>,
    /// What would be done to which resource, by URN.
    pub steps: BTreeMap<String, String>,
    /// What resolvers leased to it; that the values are still the same is said by `inputs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<ShownLease>,
    /// What was made up for it and is kept nowhere else yet, as its memory will have it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, String>,
}

impl SealedPlan {
    pub(crate) fn new(
        made: String,
        deployment: DeploymentId,
        environment: EnvironmentName,
        rehearsal: bool,
        engine: EngineChoice,
        units: BTreeMap<ComponentName, SealedUnit>,
    ) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            made,
            deployment,
            environment,
            rehearsal,
            engine,
            units,
        }
    }

    /// As it is kept in a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// From what [`to_bytes`](Self::to_bytes) gave. `name` is what complaints call it.
    ///
    /// # Errors
    ///
    /// When it is no plan of this version.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        let not_a_plan = |problem: String| {
            let message = format!("{name} is not a plan: {problem}");
            Error::new(ErrorCode::PLAN_UNREADABLE, message)
                .with_help("give a file that `nimbus preview --save` wrote")
        };
        let plan: Self =
            serde_json::from_slice(bytes).map_err(|error| not_a_plan(error.to_string()))?;
        if plan.schema != SCHEMA {
            return Err(not_a_plan(format!("its schema is {:?}", plan.schema)));
        }
        Ok(plan)
    }

    /// Refuses the plan unless it is one of this deployment.
    pub(crate) fn refuse_other(
        &self,
        deployment: &DeploymentId,
        environment: EnvironmentName,
        rehearsal: bool,
    ) -> Result<()> {
        let same = self.deployment == *deployment
            && self.environment == environment
            && self.rehearsal == rehearsal;
        if same {
            return Ok(());
        }
        let kind = if self.rehearsal {
            "a rehearsal of "
        } else {
            ""
        };
        Err(moved(&[format!(
            "it was made for {kind}{} {}",
            self.deployment, self.environment
        )]))
    }

    /// Refuses the plan when another engine would carry it out than showed it: what one of them would do
    /// says little of the other.
    pub(crate) fn refuse_other_engine(&self, engine: EngineChoice) -> Result<()> {
        if self.engine == engine {
            return Ok(());
        }
        let by = match self.engine {
            EngineChoice::Embedded => "the embedded engine",
            EngineChoice::Official => "an installed pulumi (--engine pulumi)",
        };
        Err(moved(&[format!("it was made by {by}")]))
    }

    /// Refuses the plan when something that it was made from is not what it was.
    pub(crate) fn refuse_moved(&self, component: &ComponentName, now: &Fingerprint) -> Result<()> {
        let Some(sealed) = self.units.get(component) else {
            return Err(moved(&[format!("{component} is not in it")]));
        };
        let reasons = self.moved_inputs(component, sealed, now);
        if reasons.is_empty() {
            return Ok(());
        }
        Err(moved(&reasons))
    }

    /// What moved of one unit's inputs, in words.
    pub(crate) fn moved_inputs(
        &self,
        component: &ComponentName,
        sealed: &SealedUnit,
        now: &Fingerprint,
    ) -> Vec<String> {
        let differences = now.changes_since(&sealed.inputs).into_iter();
        differences
            .filter(|difference| {
                !sealed.inputs.is_unknown(&difference.input) && !now.is_unknown(&difference.input)
            })
            .map(|difference| format!("{} of {component}", word(&difference)))
            .collect()
    }

    /// Refuses a unit that would now do something that was not shown.
    pub(crate) fn refuse_other_steps(
        &self,
        component: &ComponentName,
        steps: &BTreeMap<String, String>,
    ) -> Result<()> {
        let planned = self.units.get(component).map(|sealed| &sealed.steps);
        let more: Vec<String> = steps
            .iter()
            .filter_map(|(urn, op)| {
                let shown = planned.and_then(|planned| planned.get(urn));
                match shown {
                    Some(shown) if shown == op => None,
                    Some(shown) => Some(format!("{component} would {op} {urn}, not {shown} it")),
                    None => Some(format!("{component} would {op} {urn}, which was not shown")),
                }
            })
            .collect();
        if more.is_empty() {
            Ok(())
        } else {
            Err(moved(&more))
        }
    }
}

fn word(difference: &InputDifference) -> String {
    let kind = match &difference.input {
        FingerprintInput::ProgramFile(name) => format!("code ({name})"),
        FingerprintInput::Config(name) => format!("configuration ({name})"),
        FingerprintInput::Environment(name) => format!("environment variable ({name})"),
        FingerprintInput::UpstreamOutput(name) => format!("output ({name})"),
        FingerprintInput::Resolved(name) => format!("resolved value ({name})"),
        FingerprintInput::Version(name) => format!("version ({name})"),
    };
    match difference.change {
        InputChange::Added => format!("new {kind}"),
        InputChange::Removed => format!("missing {kind}"),
        InputChange::Modified => format!("other {kind}"),
    }
}

/// Refuses a sealed plan when anything that it was made from has moved. What an earlier attempt of
/// the same run did moved on purpose: units that it touched start from another state now, and those
/// that it finished are not looked at again.
pub(crate) async fn refuse_moved(
    context: &RunContext,
    plan: &SealedPlan,
    chosen: &UnitGraph,
    earlier: Option<&EarlierAttempt>,
) -> Result<()> {
    let (mut finished, mut touched) = (BTreeSet::new(), BTreeSet::new());
    for (name, state) in earlier.into_iter().flat_map(|earlier| &earlier.units) {
        if state.is_done() {
            finished.insert(name.clone());
        }
        if !matches!(state, UnitState::Waiting | UnitState::NotStarted { .. }) {
            touched.insert(name.clone());
        }
    }
    // A plan of chosen units is held against these: the others are not new, they are not in it.
    let whole = planning::graph(context, None)?;
    let of_chosen = chosen.names().all(|name| plan.units.contains_key(name))
        && plan
            .units
            .keys()
            .all(|name| chosen.priority(name).is_some());
    let graph = if of_chosen { chosen } else { &whole };
    let mut reasons = Vec::new();
    for name in graph.layers().into_iter().flatten() {
        let Some(sealed) = plan.units.get(name) else {
            reasons.push(format!("{name} is new"));
            continue;
        };
        if finished.contains(name) {
            continue;
        }
        if !touched.contains(name) && context.state_version(name).await? != sealed.state {
            reasons.push(format!("other start state of {name}"));
        }
        let needs: BTreeSet<ComponentName> = graph.needs(name).cloned().collect();
        if sealed.needs != needs {
            reasons.push(format!("{name} has other dependencies"));
        }
        // What a memory keeps by now goes before the plan's own: another value does not fit.
        context.make_up(name, sealed.made.clone());
        let prepared = context.prepare(name).await?;
        reasons.extend(plan.moved_inputs(name, sealed, &prepared.fingerprint));
        if !sealed.steps.is_empty() {
            // What its outputs will be is compared once it has them.
            context.expect_outputs(name).await;
        }
    }
    // When a unit's turn comes, those before it have run: what they left is known then.
    context.trust_outputs().await;
    let gone = plan.units.keys();
    let gone = gone.filter(|name| graph.priority(name).is_none());
    reasons.extend(gone.map(|name| format!("{name} is gone")));
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(moved(&reasons))
    }
}

/// The refusal of a plan, with everything that moved.
fn moved(reasons: &[String]) -> Error {
    let message = format!("the plan no longer fits: {}", reasons.join(", "));
    Error::new(ErrorCode::PLAN_MOVED, message)
        .with_help("make a new one with `nimbus preview --save FILE` and look at it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> DeploymentId {
        text.parse().unwrap()
    }

    fn component(name: &str) -> ComponentName {
        name.parse().unwrap()
    }

    fn plan(inputs: Fingerprint) -> SealedPlan {
        let unit = SealedUnit {
            state: None,
            inputs,
            needs: BTreeSet::new(),
            steps: BTreeMap::from([
                ("urn:1".to_owned(), "create".to_owned()),
                ("urn:2".to_owned(), "update".to_owned()),
            ]),
            leases: Vec::new(),
            made: BTreeMap::new(),
        };
        let units = BTreeMap::from([("app".parse().unwrap(), unit)]);
        let engine = EngineChoice::Embedded;
        SealedPlan::new(
            "t".into(),
            id("D1"),
            EnvironmentName::DEV,
            true,
            engine,
            units,
        )
    }

    fn inputs(code: &str) -> Fingerprint {
        let mut inputs = Fingerprint::default();
        inputs.add(FingerprintInput::ProgramFile("index.ts".into()), code);
        inputs
    }

    #[test]
    fn what_moved_is_named_and_what_was_unknown_may_become_known() {
        let mut before = inputs("1");
        before.add_unknown(FingerprintInput::Config("app:vpc".into()));
        let plan = plan(before);
        let mut now = inputs("1");
        now.add(FingerprintInput::Config("app:vpc".into()), "vpc-1");
        assert!(plan.refuse_moved(&component("app"), &now).is_ok());
        let mut now = inputs("2");
        now.add(FingerprintInput::Config("app:vpc".into()), "vpc-1");
        let error = plan.refuse_moved(&component("app"), &now).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PLAN_MOVED);
        assert_eq!(
            error.message(),
            "the plan no longer fits: other code (index.ts) of app"
        );
        assert!(plan.refuse_moved(&component("other"), &now).is_err());
        assert!(
            plan.refuse_other(&id("D2"), EnvironmentName::DEV, true)
                .is_err()
        );
        assert!(
            plan.refuse_other(&id("D1"), EnvironmentName::DEV, false)
                .is_err()
        );
    }

    #[test]
    fn a_plan_is_carried_out_by_the_engine_that_showed_it() {
        let mut plan = plan(inputs("1"));
        let (embedded, official) = (EngineChoice::Embedded, EngineChoice::Official);
        assert!(plan.refuse_other_engine(embedded).is_ok());
        let error = plan.refuse_other_engine(official).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PLAN_MOVED);
        plan.engine = official;
        let plan = SealedPlan::from_bytes("plan", &plan.to_bytes()).unwrap();
        assert!(plan.refuse_other_engine(official).is_ok());
        let error = plan.refuse_other_engine(embedded).unwrap_err();
        assert!(error.message().contains("--engine pulumi"), "{error}");
    }

    #[test]
    fn fewer_steps_are_fine_and_others_are_not() {
        let plan = plan(inputs("1"));
        let steps = |urn: &str, op: &str| BTreeMap::from([(urn.to_owned(), op.to_owned())]);
        let allowed = |urn, op| plan.refuse_other_steps(&component("app"), &steps(urn, op));
        assert!(allowed("urn:1", "create").is_ok());
        assert!(
            plan.refuse_other_steps(&component("app"), &BTreeMap::new())
                .is_ok()
        );
        let other = allowed("urn:2", "replace").unwrap_err();
        assert!(
            other
                .message()
                .contains("app would replace urn:2, not update it"),
            "{other}"
        );
        // As many as were shown, but another one.
        let more = allowed("urn:3", "create").unwrap_err();
        assert!(more.message().contains("which was not shown"), "{more}");
    }
}
