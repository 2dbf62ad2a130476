//! Which versions of components a run is made of.
//!
//! An instance stays with the version that it was made from. A stack that comes to an environment for the first time
//! takes the version that the environment before it has, and else the newest one. A program that the tenant registered
//! itself stands before the catalog.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_control_store::{DeployedComponent, StoredVersion, TenantTx};
use nimbus_core::{ComponentName, Error, ErrorCode};
use serde_json::{Value, json};

use crate::failure::Result;
use crate::governance::GovernedRun;
use crate::library::{STACK_TEMPLATES, own_paths, shipped};

/// Versions of the catalog by stack. A stack that is not among them is of the workspace.
pub(crate) type ChosenVersions = BTreeMap<ComponentName, StoredVersion>;

/// As a run keeps them.
pub(crate) fn record(versions: &ChosenVersions) -> Value {
    let entries = versions.iter().map(|(stack, one)| {
        let entry = json!({"owner": one.tenant_id, "name": one.name, "version": one.version});
        (stack.to_string(), entry)
    });
    Value::Object(entries.collect())
}

/// Chooses a version for every stack of a manifest, whichever of them a run is about: stacks wire to each other.
pub(crate) async fn choose(tx: &mut TenantTx, run: &GovernedRun<'_>) -> Result<ChosenVersions> {
    let deployment = run.manifest.metadata.id.to_string();
    let known = tx.instances_of(&deployment).await?;
    let own = own_paths(tx).await?;
    let mut chosen = BTreeMap::new();
    for (stack, _) in run.manifest.enabled() {
        if is_own(&own, stack) {
            continue;
        }
        let version = match kept(&known, run, stack) {
            Some((owner, version)) => tx.version_of(owner, stack.as_str(), version).await?,
            None => tx.version_newest(stack.as_str()).await?,
        };
        match version {
            Some(version) => {
                chosen.insert(stack.clone(), version);
            }
            None => refuse_unpublished(tx, stack).await?,
        }
    }
    Ok(chosen)
}

/// The version that an instance has: in this environment, in the one before it, or in any.
fn kept(
    known: &[DeployedComponent],
    run: &GovernedRun<'_>,
    stack: &ComponentName,
) -> Option<(uuid::Uuid, i32)> {
    let before = run.manifest.promoted_from(run.environment);
    let rank = |one: &DeployedComponent| {
        let here = one.environment == run.environment.as_str() && one.rehearsal == run.rehearsal;
        let promoted = before.is_some_and(|before| before.as_str() == one.environment);
        (here, promoted, one.rehearsal == run.rehearsal)
    };
    let live = known
        .iter()
        .filter(|one| one.stack == stack.as_str() && one.status != "destroyed");
    let one = live.max_by_key(|one| rank(one))?;
    one.component_owner.zip(one.component_version)
}

/// Whether the tenant has a program of its own for a stack.
pub(crate) fn is_own(paths: &BTreeSet<String>, stack: &ComponentName) -> bool {
    let folder = format!("stacks/{stack}/");
    paths.contains(&format!("{STACK_TEMPLATES}{stack}.yaml"))
        || paths.iter().any(|path| path.starts_with(&folder))
}

/// A draft is no version: nobody deploys it.
async fn refuse_unpublished(tx: &mut TenantTx, stack: &ComponentName) -> Result<()> {
    let is_shipped = shipped(&format!("{STACK_TEMPLATES}{stack}.yaml"));
    if is_shipped || tx.component_find(stack.as_str()).await?.is_none() {
        return Ok(());
    }
    let message = format!("nothing of the component {stack} is published");
    Err(Error::new(ErrorCode::COMPONENT_UNPUBLISHED, message)
        .with_help("publish it first")
        .into())
}
