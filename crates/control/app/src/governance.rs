//! Rules about components: set for a tenant and everything below it, held when a run is queued.
//!
//! Every rule on the way to the operator holds. At each tenant the rule of a component's own name stands before the one
//! for all (`*`), so that `*` denied and some allowed is a list of what may be used. Whoever is refused is told which
//! rule it was, whose it is, who set it and what the limit is.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_catalog::{ParameterRules, check_rules, rule_facts, violations};
use nimbus_control_auth::operation;
use nimbus_control_store::{
    EnvironmentKey, NewInstance, NewRule, StoreError, StoredRule, TenantTx, rules_in_force,
};
use nimbus_core::{ComponentName, Error, ErrorCode, TenantId};
use nimbus_orchestrator::{Manifest, RunAction};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::component_rows::contract_of;
use crate::environments::recorded_versions;
use crate::failure::{Failure, FieldProblem, Result};
use crate::input;
use crate::versions::ChosenVersions;
use crate::wiring::is_open;

/// The rule for every component that has none of its own.
const ALL: &str = "*";
const MOST_CONSTRAINT_BYTES: usize = 64 * 1024;

/// A rule to be set.
#[derive(Clone, Debug)]
pub struct RuleInput {
    pub allowed: bool,
    pub constraints: ParameterRules,
    pub max_instances: Option<u32>,
    pub reason: String,
}

/// What a run is about, for whoever holds it to rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GovernedRun<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) environment: nimbus_core::EnvironmentName,
    pub(crate) rehearsal: bool,
    pub(crate) action: RunAction,
    /// Only these; all of them when absent.
    pub(crate) chosen: Option<&'a [ComponentName]>,
    /// The version that a rollback returns to; decided by the run when absent.
    pub(crate) to_version: Option<u32>,
}

impl GovernedRun<'_> {
    /// Stacks that the run is about.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = &ComponentName> {
        let chosen = self.chosen;
        self.manifest
            .enabled()
            .map(|(name, _)| name)
            .filter(move |name| chosen.is_none_or(|chosen| chosen.contains(name)))
    }

    /// What the manifest gives a stack, by the names that rules and contracts have.
    pub(crate) fn config(&self, stack: &ComponentName) -> Result<Map<String, Value>> {
        let named = self.manifest.parameters_of(stack, self.environment);
        named.map_err(|repeated| {
            let place = format!("manifest.spec.stacks.{stack}.config.{}", self.environment);
            Failure::field(place, repeated.to_string())
        })
    }
}

impl App {
    /// Every rule that holds for a tenant, from the operator's down.
    pub async fn governance_list(&self, call: &Call, tenant: TenantId) -> Result<Vec<StoredRule>> {
        let operation = operation::LIST_GOVERNANCE;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let rules = tx.governance_rules(tenant).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(rules)
            })
            .await
    }

    /// Sets the rule about a component for a tenant and everything below it.
    pub async fn governance_put(
        &self,
        call: &Call,
        tenant: TenantId,
        component: &str,
        input: RuleInput,
    ) -> Result<StoredRule> {
        let operation = operation::PUT_GOVERNANCE;
        let permit = self.permit(call, operation, tenant).await?;
        if component != ALL {
            component
                .parse::<ComponentName>()
                .map_err(|error| Failure::field("component", error.to_string()))?;
        }
        let constraints = kept(&input.constraints)?;
        let max_instances = input
            .max_instances
            .map(i32::try_from)
            .transpose()
            .map_err(|_| Failure::field("max_instances", "it is too large"))?;
        let new = NewRule {
            component: component.to_owned(),
            is_allowed: input.allowed,
            parameter_constraints: constraints,
            max_instances,
            reason: input::text("reason", &input.reason, 500)?,
            set_by: call.who.user,
            set_by_name: self.name_of(call).await?,
            set_from: call.who.home,
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let before = own_rule(tx, tenant, component).await?;
                refuse_from_above(call, &permit.resource.path, before.as_ref())?;
                tx.governance_put(&new).await?;
                let rule = own_rule(tx, tenant, component).await?;
                let rule = rule.ok_or_else(Failure::not_found)?;
                let record = permit
                    .record()
                    .on(component)
                    .before(before.as_ref().map_or(Value::Null, told))
                    .after(told(&rule));
                self.audit(tx, &call.context, record).await?;
                Ok(rule)
            })
            .await
    }

    pub async fn governance_delete(
        &self,
        call: &Call,
        tenant: TenantId,
        component: &str,
    ) -> Result<()> {
        let operation = operation::DELETE_GOVERNANCE;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let before = own_rule(tx, tenant, component).await?;
                refuse_from_above(call, &permit.resource.path, before.as_ref())?;
                tx.governance_delete(component).await?;
                let record = permit
                    .record()
                    .on(component)
                    .before(before.as_ref().map_or(Value::Null, told));
                self.audit(tx, &call.context, record).await?;
                Ok(())
            })
            .await
    }

    /// Whoever calls, by a name that stays when they are gone.
    async fn name_of(&self, call: &Call) -> Result<String> {
        let user = call.who.user;
        let found = self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| tx.user_get(user).await)
            .await?;
        Ok(found.email)
    }

    /// Holds a run that is about to be queued to the rules, and puts its instances down. Nothing of it stays when the
    /// transaction fails.
    pub(crate) async fn govern(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        run: GovernedRun<'_>,
        versions: &ChosenVersions,
    ) -> Result<()> {
        match run.action {
            RunAction::Deploy | RunAction::Preview => {}
            RunAction::Rollback => return self.govern_return(tx, run).await,
            // What is there may always be taken away, and looked at.
            RunAction::Destroy | RunAction::Refresh => return Ok(()),
        }
        let tenant = tx.tenant();
        let rules = tx.governance_rules(tenant).await?;
        for stack in run.stacks() {
            let bound = bound_inputs(versions, stack)?;
            for rule in rules_in_force(&rules, stack.as_str()) {
                allowed(rule, stack)?;
                within(rule, stack, &run, &bound)?;
            }
        }
        if run.action == RunAction::Deploy {
            self.reserve(tx, call, run, versions, &rules).await?;
        }
        Ok(())
    }

    /// Refuses a rollback to a version with a component that is denied by now: it would make again what nobody may
    /// make. Values are those of the version, which were held to the rules of their time.
    async fn govern_return(&self, tx: &mut TenantTx, run: GovernedRun<'_>) -> Result<()> {
        let tenant = tx.tenant();
        let rules = tx.governance_rules(tenant).await?;
        let of = EnvironmentKey {
            deployment: run.manifest.metadata.id.to_string(),
            environment: run.environment.to_string(),
            rehearsal: run.rehearsal,
        };
        let versions = recorded_versions(tx, &of).await?;
        // Without a number it is the version before the newest, or the newest if a run after it failed; that one is
        // there already.
        let newest = versions.last().map_or(0, |one| one.version);
        let number = run.to_version.unwrap_or_else(|| newest.saturating_sub(1));
        let target = versions.into_iter().find(|one| one.version == number);
        let returned = target.map(|version| version.units).unwrap_or_default();
        let returned = returned.into_keys();
        let chosen = |stack: &ComponentName| run.chosen.is_none_or(|only| only.contains(stack));
        for stack in returned.filter(chosen) {
            for rule in rules_in_force(&rules, stack.as_str()) {
                allowed(rule, &stack)?;
            }
        }
        Ok(())
    }

    /// Puts the instances of a run down, and refuses those that a rule has no room for.
    async fn reserve(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        run: GovernedRun<'_>,
        versions: &ChosenVersions,
        rules: &[StoredRule],
    ) -> Result<()> {
        let deployment = run.manifest.metadata.id.to_string();
        let environment = run.environment.to_string();
        let mut added: BTreeMap<&ComponentName, i64> = BTreeMap::new();
        for stack in run.stacks() {
            let chosen = versions.get(stack);
            tx.instance_reserve(&NewInstance {
                deployment: deployment.clone(),
                environment: environment.clone(),
                rehearsal: run.rehearsal,
                stack: stack.to_string(),
                component: stack.to_string(),
                version: chosen.map(|one| (one.tenant_id, one.version)),
                pulumi_stack: format!("{deployment}-{stack}-{environment}"),
                // Secrets of a manifest are placeholders; what they stand for is never kept here.
                parameters: Value::Object(run.config(stack)?),
                by: call.who.user,
            })
            .await?;
            *added.entry(stack).or_default() += 1;
        }
        for (stack, added) in added {
            let checked = tx.instances_check(stack.as_str(), run.rehearsal, added);
            checked.await.map_err(|error| exhausted(error, rules))?;
        }
        Ok(())
    }
}

/// Every rule that would refuse one stack of a run, in words.
pub(crate) fn refusals(
    rules: &[StoredRule],
    run: &GovernedRun<'_>,
    versions: &ChosenVersions,
    stack: &ComponentName,
) -> Result<Vec<String>> {
    let bound = bound_inputs(versions, stack)?;
    let in_force = rules_in_force(rules, stack.as_str());
    let refused = in_force.filter_map(|rule| {
        let held = allowed(rule, stack).and_then(|()| within(rule, stack, run, &bound));
        held.err().map(|failure| failure.error.to_string())
    });
    Ok(refused.collect())
}

fn allowed(rule: &StoredRule, stack: &ComponentName) -> Result<()> {
    if rule.is_allowed {
        return Ok(());
    }
    let message = format!("{stack} is denied by {}", rule.whose());
    Err(Error::new(ErrorCode::COMPONENT_DENIED, message)
        .with_help("leave it out, or ask whoever set the rule")
        .into())
}

/// Inputs that resolvers answer while the run goes on, whatever the manifest gives for them.
fn bound_inputs(versions: &ChosenVersions, stack: &ComponentName) -> Result<BTreeSet<String>> {
    let Some(version) = versions.get(stack) else {
        return Ok(BTreeSet::new());
    };
    Ok(contract_of(version)?.resolvers.into_keys().collect())
}

/// Holds the manifest's values to a rule. What the rule says of bound inputs is held once they are answered.
fn within(
    rule: &StoredRule,
    stack: &ComponentName,
    run: &GovernedRun<'_>,
    bound: &BTreeSet<String>,
) -> Result<()> {
    let rules = serde_json::from_value::<ParameterRules>(rule.parameter_constraints.clone());
    let rules = rules.map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
    let rules = rules.without(bound);
    if rules.is_empty() {
        return Ok(());
    }
    let params = run.config(stack)?;
    let unknown: BTreeSet<String> = params
        .iter()
        .filter(|(_, value)| is_open(value))
        .map(|(key, _)| key.clone())
        .collect();
    let facts = rule_facts(run.environment.as_str(), stack.as_str(), run.rehearsal);
    let found = violations(&rules, &params, &unknown, &facts);
    if found.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = found.iter().map(ToString::to_string).collect();
    let message = format!("{stack}: {}; by {}", words.join("; "), rule.whose());
    let error = Error::new(ErrorCode::PARAMETER_REFUSED, message)
        .with_help("change the value in the manifest, or ask whoever set the rule");
    Err(Failure {
        details: found
            .into_iter()
            .map(|one| FieldProblem {
                field: format!("{stack}.{}", one.place).into(),
                message: one.message,
            })
            .collect(),
        ..error.into()
    })
}

/// Names the rule that has no room.
fn exhausted(error: StoreError, rules: &[StoredRule]) -> Failure {
    let StoreError::InstancesExceeded {
        component,
        limit,
        used,
        rule,
    } = &error
    else {
        return error.into();
    };
    let Some(rule) = rules.iter().find(|one| one.id == *rule) else {
        return error.into();
    };
    let message = format!(
        "{limit} instances of {component} are allowed, and {used} are there or about to be; by {}",
        rule.whose()
    );
    Error::new(ErrorCode::INSTANCES_EXHAUSTED, message)
        .with_help("destroy one, or ask whoever set the rule")
        .into()
}

async fn own_rule(
    tx: &mut TenantTx,
    tenant: TenantId,
    component: &str,
) -> Result<Option<StoredRule>> {
    let rules = tx.governance_rules(tenant).await?.into_iter();
    let own = |rule: &StoredRule| rule.owner == Uuid::from(tenant) && rule.component == component;
    Ok(rules.into_iter().find(own))
}

/// A rule that somebody from further up set is not for those whom it is about to change.
fn refuse_from_above(call: &Call, path: &[TenantId], rule: Option<&StoredRule>) -> Result<()> {
    let Some(rule) = rule else {
        return Ok(());
    };
    let place = |tenant: TenantId| path.iter().position(|one| *one == tenant);
    let (from, home) = (place(rule.set_from.into()), place(call.who.home));
    // Whoever set it has moved elsewhere in the tree when it is not on the way any more.
    if from.is_none() || home <= from {
        return Ok(());
    }
    let message = format!("{} stands", rule.whose());
    Err(Error::new(ErrorCode::RULE_FROM_ABOVE, message)
        .with_help("ask whoever set it; a rule of a tenant below can only allow less")
        .into())
}

fn told(rule: &StoredRule) -> Value {
    json!({
        "allowed": rule.is_allowed,
        "constraints": rule.parameter_constraints,
        "max_instances": rule.max_instances,
        "reason": rule.reason,
    })
}

fn kept(rules: &ParameterRules) -> Result<Value> {
    let problems = check_rules(rules);
    if !problems.is_empty() {
        let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let message = format!("the rule cannot be kept: {}", words.join("; "));
        return Err(Failure {
            details: problems
                .into_iter()
                .map(|problem| FieldProblem {
                    field: problem.place.into(),
                    message: problem.message,
                })
                .collect(),
            ..Failure::new(ErrorCode::RULE_INVALID, message)
        });
    }
    let value = json!(rules);
    if value.to_string().len() > MOST_CONSTRAINT_BYTES {
        let message = format!("they have more than {MOST_CONSTRAINT_BYTES} bytes");
        return Err(Failure::field("constraints", message));
    }
    Ok(value)
}
