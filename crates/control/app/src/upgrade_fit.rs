//! Whether an instance fits a version of its component: the way there, its parameters, those who take its outputs, and rules.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_catalog::{
    ComponentContract, ContractChanges, UpgradeWorkflow, VersionOnPath, compare,
    validate_upgrade_path,
};
use nimbus_control_store::{
    DeployedComponent, StoredComponent, StoredRule, StoredVersion, TenantTx,
};
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode};
use nimbus_orchestrator::{Manifest, RunAction};

use crate::component_rows::{contract_of, seen};
use crate::failure::{Failure, FieldProblem, Result};
use crate::governance::{GovernedRun, refusals};
use crate::instances::name_of;
use crate::library::own_paths;
use crate::versions;
use crate::wiring::{broken_wires, input_words};

/// Why an instance can go to a version, or cannot.
#[derive(Clone, Debug, Default)]
pub struct UpgradeVerdict {
    /// The instance cannot be upgraded as it is: it is not deployed, or an upgrade is under way.
    pub standing: Option<String>,
    /// There is no way to the version.
    pub path: Option<String>,
    /// Parameters that do not fit the version's contract.
    pub parameters: Vec<String>,
    /// What takes outputs that change or go.
    pub dependents: Vec<String>,
    /// Rules that would refuse it.
    pub rules: Vec<String>,
    /// Upgrade workflows on the way, with the version that names each.
    pub workflows: Vec<(i32, UpgradeWorkflow)>,
}

impl UpgradeVerdict {
    pub fn fits(&self) -> bool {
        self.reasons().is_empty()
    }

    /// Everything in the way.
    pub fn reasons(&self) -> Vec<String> {
        let single = self.standing.iter().chain(&self.path);
        let many = self.parameters.iter().chain(&self.dependents);
        single.chain(many).chain(&self.rules).cloned().collect()
    }
}

/// The versions of a component that instances may go along.
#[derive(Clone, Debug)]
pub(crate) struct KnownVersions {
    pub(crate) component: StoredComponent,
    /// Oldest first, without code.
    all: Vec<StoredVersion>,
}

impl KnownVersions {
    pub(crate) async fn read(tx: &mut TenantTx, name: &str) -> Result<Self> {
        let component = seen(tx, name).await?.component;
        let all = tx.versions_known(&component).await?;
        Ok(Self { component, all })
    }

    /// The version that is asked for, or the newest that can be used.
    pub(crate) fn target(&self, asked: Option<i32>) -> Result<i32> {
        let usable = |one: &&StoredVersion| one.deprecated_at.is_none();
        let newest = self.all.iter().rev().find(usable);
        match (asked, newest) {
            (Some(version), _) => Ok(version),
            (None, Some(newest)) => Ok(newest.version),
            (None, None) => {
                let name = &self.component.name;
                let message = format!("{name} has no version that can be used");
                Err(Failure::new(ErrorCode::UPGRADE_PATH, message))
            }
        }
    }

    pub(crate) fn find(&self, version: i32) -> Option<&StoredVersion> {
        self.all.iter().find(|one| one.version == version)
    }

    fn path(&self) -> Result<Vec<VersionOnPath>> {
        let on_path = |one: &StoredVersion| {
            let changes = serde_json::from_value(one.changes.clone())
                .map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
            // One that this server does not know says nothing to it.
            let workflow = one.upgrade_workflow.as_deref();
            Ok(VersionOnPath {
                version: one.version,
                changes: ContractChanges { changes },
                workflow: workflow.and_then(|text| text.parse().ok()),
                deprecation: one.deprecation.clone(),
            })
        };
        self.all.iter().map(on_path).collect()
    }
}

/// What decides about all instances of a tenant: its rules, and files of its own.
#[derive(Clone, Debug)]
pub(crate) struct TenantFacts {
    rules: Vec<StoredRule>,
    own: BTreeSet<String>,
}

impl TenantFacts {
    pub(crate) async fn read(tx: &mut TenantTx) -> Result<Self> {
        let tenant = tx.tenant();
        Ok(Self {
            rules: tx.governance_rules(tenant).await?,
            own: own_paths(tx).await?,
        })
    }
}

/// An instance with the manifest of its deployment.
pub(crate) struct PlacedInstance<'a> {
    pub(crate) instance: &'a DeployedComponent,
    pub(crate) manifest: &'a Manifest,
    pub(crate) environment: EnvironmentName,
    pub(crate) stack: ComponentName,
}

impl<'a> PlacedInstance<'a> {
    pub(crate) fn new(instance: &'a DeployedComponent, manifest: &'a Manifest) -> Result<Self> {
        let broken = |words: String| Failure::new(ErrorCode::INTERNAL, words);
        let environment = instance.environment.parse::<EnvironmentName>();
        let stack = instance.stack.parse::<ComponentName>();
        Ok(Self {
            instance,
            manifest,
            environment: environment.map_err(|error| broken(error.to_string()))?,
            stack: stack.map_err(|error| broken(error.to_string()))?,
        })
    }

    /// Its environment's place in the order of promotion.
    pub(crate) fn rank(&self) -> usize {
        let place = self.manifest.environments.get_index_of(&self.environment);
        place.unwrap_or(usize::MAX)
    }

    /// How many stacks its deployment has.
    pub(crate) fn size(&self) -> usize {
        self.manifest.enabled().count()
    }

    /// Why it could not take a contract as it is.
    fn misfits(&self, contract: &ComponentContract) -> Result<Vec<String>> {
        let values = self.manifest.parameters_of(&self.stack, self.environment);
        match values {
            Ok(values) => Ok(input_words(contract, &values)),
            Err(repeated) => Ok(vec![repeated.to_string()]),
        }
    }

    /// What stands between it and a version.
    pub(crate) fn assess(
        &self,
        facts: &TenantFacts,
        known: &KnownVersions,
        to: i32,
    ) -> Result<UpgradeVerdict> {
        let mut verdict = UpgradeVerdict::default();
        if self.instance.upgrade_run.is_some() {
            verdict.standing = Some("an upgrade of it is under way".to_owned());
        } else if !matches!(self.instance.status.as_str(), "deployed" | "failed") {
            verdict.standing = Some(format!("it is {}", self.instance.status));
        } else if self
            .manifest
            .stacks
            .get(&self.stack)
            .is_none_or(|one| !one.enabled)
        {
            verdict.standing = Some("its deployment does not use it any more".to_owned());
        } else if versions::is_own(&facts.own, &self.stack) {
            let words = "a program of its tenant's workspace stands before the catalog";
            verdict.standing = Some(words.to_owned());
        }
        let from = self.instance.component_version.unwrap_or_default();
        let old = known.find(from).map(contract_of).transpose()?;
        let old = old.unwrap_or_default();
        let mut unreadable = None;
        let path = validate_upgrade_path(&known.path()?, from, to, |step| {
            let contract = known.find(step.version).map(contract_of);
            let misfits = contract.transpose().and_then(|contract| {
                let contract = contract.unwrap_or_default();
                let mut words = self.misfits(&contract)?;
                words.extend(self.broken(&old, &contract));
                Ok(words)
            });
            misfits.unwrap_or_else(|failure| {
                unreadable = Some(failure);
                vec!["its contract cannot be read".to_owned()]
            })
        });
        if let Some(failure) = unreadable {
            return Err(failure);
        }
        match path {
            Ok(path) => verdict.workflows = path.workflows,
            Err(refusal) => verdict.path = Some(refusal.to_string()),
        }
        let Some(target) = known.find(to) else {
            return Ok(verdict);
        };
        let contract = contract_of(target)?;
        verdict.parameters = self.misfits(&contract)?;
        verdict.dependents = self.broken(&old, &contract);
        let only = [self.stack.clone()];
        let run = GovernedRun {
            manifest: self.manifest,
            environment: self.environment,
            rehearsal: self.instance.rehearsal,
            action: RunAction::Deploy,
            chosen: Some(&only),
            to_version: None,
        };
        let chosen = BTreeMap::from([(self.stack.clone(), target.clone())]);
        verdict.rules = refusals(&facts.rules, &run, &chosen, &self.stack)?;
        Ok(verdict)
    }

    fn broken(&self, old: &ComponentContract, new: &ComponentContract) -> Vec<String> {
        let changes = compare(old, new);
        broken_wires(self.manifest, self.environment, &self.stack, &changes)
    }
}

/// The versions of an instance's component. One that a program of the workspace made has none.
pub(crate) async fn known_of(
    tx: &mut TenantTx,
    instance: &DeployedComponent,
) -> Result<KnownVersions> {
    let known = KnownVersions::read(tx, &instance.component).await?;
    if instance.component_owner != Some(known.component.tenant_id) {
        let name = name_of(instance);
        let message = format!("{name} is not of the component that is in the catalog now");
        return Err(Failure::new(ErrorCode::UPGRADE_PATH, message));
    }
    Ok(known)
}

/// Refuses what stands in the way of an instance, all of it at once.
pub(crate) fn refuse_unfit(
    instance: &DeployedComponent,
    to: i32,
    verdict: &UpgradeVerdict,
) -> Result<()> {
    let name = name_of(instance);
    if let Some(path) = &verdict.path {
        let message = format!("{name} cannot go to version {to}: {path}");
        return Err(Error::new(ErrorCode::UPGRADE_PATH, message)
            .with_help("`nimbus component impact` says what stands in the way of every instance")
            .into());
    }
    let reasons = verdict.reasons();
    if reasons.is_empty() {
        return Ok(());
    }
    let message = format!("{name} cannot take version {to}: {}", reasons.join("; "));
    let error = Error::new(ErrorCode::UPGRADE_UNFIT, message)
        .with_help("change what the manifest gives it, and what takes its outputs, then ask again");
    let details = reasons.into_iter().map(|message| FieldProblem {
        field: instance.stack.clone().into(),
        message,
    });
    Err(Failure {
        details: details.collect(),
        ..error.into()
    })
}
