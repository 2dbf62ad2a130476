//! What a run leaves, as configuration items: the states of its environment's units, those that were written since.
//!
//! Read before the run is given back and written with it, in one transaction. Whoever has the run has its environment,
//! so between the two nobody writes these states.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_control_cmdb::{UnitSnapshot, items_of};
use nimbus_control_store::{CmdbSync, EnvironmentKey, KnownSync, StoreError, StoredRun};
use nimbus_control_vault::FieldPath;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result, TenantId};
use nimbus_document::Document;
use nimbus_orchestrator::{FILE_NAME, Manifest};
use sha2::{Digest as _, Sha256};
use tracing::warn;
use uuid::Uuid;

use crate::tenant_run::{TenantRuns, state_root};
use crate::vault::TenantVault;

/// A state that was written since items were last made from it.
struct WrittenState {
    unit: String,
    key: String,
    tag: Uuid,
}

impl TenantRuns {
    /// What the states of a run's environment say that items do not say yet.
    ///
    /// # Errors
    ///
    /// When the manifest cannot be read, or the database does not answer. A state that cannot be read is named in what is
    /// returned, and keeps no other unit from it.
    pub(crate) async fn read_inventory(
        &self,
        tenant: TenantId,
        run: &StoredRun,
    ) -> Result<CmdbSync> {
        let environment: EnvironmentName = run.environment.parse().map_err(|_| {
            let message = format!("`{}` is not the name of an environment", run.environment);
            Error::new(ErrorCode::INTERNAL, message)
        })?;
        let of = EnvironmentKey {
            deployment: run.deployment.clone(),
            environment: run.environment.clone(),
            rehearsal: run.rehearsal,
        };
        let root = format!(
            "{}/.pulumi/stacks/",
            state_root(&run.deployment, run.rehearsal)
        );
        let found = self.store().tenant_tx(tenant, async |tx| {
            let deployment = tx.deployment_get(&of.deployment).await?;
            let states = tx.state_tags(&root).await?;
            Ok::<_, StoreError>((deployment, states, tx.syncs_of(&of).await?))
        });
        let (deployment, states, known) = found.await?;
        let document = Document::parse_bytes(FILE_NAME, deployment.manifest.as_bytes())?;
        let manifest = Manifest::read(&document)?;
        let names = unit_names(&manifest, environment);
        let mut there = Vec::new();
        for (key, tag) in states {
            let stack = key
                .strip_prefix(&root)
                .and_then(|rest| rest.strip_suffix(".json"));
            let unit =
                stack
                    .and_then(|stack| stack.split_once('/'))
                    .and_then(|(project, stack)| {
                        unit_of(&manifest, &names, environment, project, stack)
                    });
            if let Some(unit) = unit {
                there.push(WrittenState { unit, key, tag });
            }
        }
        let (written, gone) = news(there, &known);
        let mut sync = CmdbSync {
            needs: needs(&manifest, environment),
            project: manifest.metadata.project.clone(),
            run: run.id,
            units: gone.into_iter().map(without_state).collect(),
            unreadable: Vec::new(),
            of,
        };
        if written.is_empty() {
            return Ok(sync);
        }
        let vault = TenantVault::open(self.store(), self.ring(), tenant).await?;
        for state in written {
            match self.snapshot(&vault, &state).await {
                Ok(snapshot) => sync.units.push(snapshot),
                Err(error) => {
                    let unit = state.unit;
                    warn!(%tenant, %unit, error = %error.log_text(), "a state makes no items");
                    let problem = format!("{}: the state cannot be read", error.code());
                    sync.unreadable.push((unit, problem));
                }
            }
        }
        Ok(sync)
    }

    async fn snapshot(&self, vault: &TenantVault, state: &WrittenState) -> Result<UnitSnapshot> {
        let found = vault.tx(async |tx| tx.state_get(&state.key).await).await?;
        let Some(object) = found else {
            return Ok(without_state(state.unit.clone()));
        };
        let field = FieldPath::new("state_objects", &state.key, "sealed");
        let bytes = vault.open_sealed(&field, &object.sealed)?;
        let mut checkpoint = serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(
                ErrorCode::INTERNAL,
                format!("{} cannot be read: {error}", state.key),
            )
        })?;
        // Programs name files by where the server has them.
        self.texts().places(&mut checkpoint);
        let (items, edges) = items_of(&state.unit, &checkpoint);
        Ok(UnitSnapshot {
            unit: state.unit.clone(),
            // Of what was read, which may be newer than what was listed.
            tag: Some(object.tag),
            state_version: hex::encode(Sha256::digest(&bytes)),
            items,
            edges,
        })
    }
}

/// A unit that has no state any more has no items.
fn without_state(unit: String) -> UnitSnapshot {
    UnitSnapshot {
        unit,
        ..UnitSnapshot::default()
    }
}

/// States that were written since, and units that had one and have none.
fn news(there: Vec<WrittenState>, known: &[KnownSync]) -> (Vec<WrittenState>, Vec<String>) {
    let recorded: BTreeMap<&str, Option<Uuid>> = known
        .iter()
        .map(|one| (one.unit.as_str(), one.tag))
        .collect();
    let present: BTreeSet<String> = there.iter().map(|state| state.unit.clone()).collect();
    let written = there.into_iter().filter(|state| {
        let last = recorded.get(state.unit.as_str()).copied().flatten();
        last != Some(state.tag)
    });
    let gone = known
        .iter()
        .filter(|one| one.tag.is_some() && !present.contains(&one.unit))
        .map(|one| one.unit.clone());
    (written.collect(), gone.collect())
}

type UnitsByStack = BTreeMap<(String, String), String>;

fn unit_names(manifest: &Manifest, environment: EnvironmentName) -> UnitsByStack {
    let components = manifest.stacks.keys();
    components
        .map(|component| {
            let unit = manifest.pulumi_stack(component, environment);
            ((unit.project, unit.stack), component.to_string())
        })
        .collect()
}

/// The unit that a stack is of, if it is one of the environment; also one that the manifest no longer has.
fn unit_of(
    manifest: &Manifest,
    names: &UnitsByStack,
    environment: EnvironmentName,
    project: &str,
    stack: &str,
) -> Option<String> {
    let known = names.get(&(project.to_owned(), stack.to_owned()));
    if known.is_some() {
        return known.cloned();
    }
    if !manifest.has_unit_in(environment, project, stack) {
        return None;
    }
    let inner = stack
        .strip_prefix(manifest.metadata.id.as_str())
        .and_then(|rest| rest.strip_prefix('-'))
        .and_then(|rest| rest.strip_suffix(environment.as_str()))
        .and_then(|rest| rest.strip_suffix('-'));
    Some(inner.unwrap_or(stack).to_owned())
}

/// Which unit needs which. A manifest whose graph does not hold together says nothing about it here.
fn needs(manifest: &Manifest, environment: EnvironmentName) -> BTreeSet<(String, String)> {
    let Ok(graph) = manifest.graph(environment) else {
        return BTreeSet::new();
    };
    let mut pairs = BTreeSet::new();
    for unit in graph.names() {
        let needed = graph.needs(unit.as_str());
        pairs.extend(needed.map(|needed| (unit.to_string(), needed.to_string())));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_states_that_were_written_since_are_read_and_units_without_one_are_gone() {
        let (old, new) = (Uuid::new_v4(), Uuid::new_v4());
        let state = |unit: &str, tag| WrittenState {
            unit: unit.to_owned(),
            key: unit.to_owned(),
            tag,
        };
        let sync = |unit: &str, tag| KnownSync {
            unit: unit.to_owned(),
            tag,
        };
        let there = vec![
            state("same", old),
            state("moved", new),
            state("first", new),
            state("failed", old),
        ];
        let known = [
            sync("same", Some(old)),
            sync("moved", Some(old)),
            sync("gone", Some(old)),
            sync("long-gone", None),
            sync("failed", None),
        ];
        let (written, gone) = news(there, &known);
        let units: Vec<_> = written.iter().map(|one| one.unit.as_str()).collect();
        assert_eq!(units, ["moved", "first", "failed"]);
        assert_eq!(gone, ["gone"]);
    }
}
