//! Resolvers of a workspace without a server: `resolvers.yaml` beside the workspace's folders says which pools,
//! names and images there are, and one file in `.nimbus` has what they have given to whom.
//!
//! All deployments of a workspace share both, so whoever answers or settles holds the file's lock. A
//! rehearsal has leases of its own: trying something takes nothing away.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_disk::{FileMode, FolderFiles, layout, unreadable, unwritable};
use nimbus_document::Document;
use nimbus_engine_backend::Keyring;
use nimbus_orchestrator::RunId;
use nimbus_resolvers::register::LeaseAsker;
use nimbus_resolvers::secrets::SecretRules;
use nimbus_resolvers::{
    LeaseHolder, LeaseRegister, LeaseUnit, ResolverAnswer, ResolverError, ResolverKind,
    ResolverLease, ResolverQuestion, ResolverSettings, Settlement, UnitFacts,
};
use nimbus_runs::ports::ResolverPort;
use uuid::Uuid;

use crate::external_values::{open_secret, seal_secret};

/// What a workspace says about resolvers.
const SETTINGS: &str = "resolvers.yaml";

/// Leases of a workspace's deployments.
pub(crate) struct LeaseFiles {
    workspace: PathBuf,
    files: FolderFiles,
    deployment: String,
    rehearsal: bool,
    /// Secrets are kept under the passphrase of the units.
    keyring: Arc<Keyring>,
}

impl LeaseFiles {
    pub(crate) fn new(
        workspace: &Path,
        files: &FolderFiles,
        deployment: &str,
        rehearsal: bool,
        keyring: Arc<Keyring>,
    ) -> Self {
        Self {
            workspace: workspace.to_owned(),
            files: files.clone(),
            deployment: deployment.to_owned(),
            rehearsal,
            keyring,
        }
    }

    /// What is configured for an environment of a workspace; a file that is not there configures nothing.
    fn settings(&self, environment: &str) -> Result<ResolverSettings> {
        let path = self.workspace.join(SETTINGS);
        let bytes = match self.files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(ResolverSettings::default());
            }
            Err(error) => return Err(unreadable(&path, error)),
        };
        let document = Document::parse_bytes(SETTINGS, &bytes)?;
        let value = document.to_json(document.root())?;
        Ok(ResolverSettings::read(&value, environment)?)
    }

    fn path(&self) -> PathBuf {
        layout::leases(&self.workspace, self.rehearsal)
    }

    /// Changes the leases with nobody else at it, and writes them if they changed.
    fn change<T>(&self, change: impl FnOnce(&mut LeaseRegister) -> Result<T>) -> Result<T> {
        let path = self.path();
        let folder = layout::beside(&self.workspace);
        let made = self.files.create_folders(&folder);
        made.map_err(|error| unwritable(&folder, error))?;
        let lock_path = path.with_extension("lock");
        let lock = self.files.open_lock(&lock_path);
        let lock = lock.map_err(|error| unwritable(&lock_path, error))?;
        // Held for one small file's reading and writing; given back when it is closed.
        lock.lock().map_err(|error| unwritable(&lock_path, error))?;
        let before = self.read()?;
        let mut register = before.clone();
        let value = change(&mut register)?;
        if register != before {
            let text = serde_json::to_vec_pretty(&register).unwrap_or_default();
            let written = self.files.replace(&path, &text, FileMode::Private);
            written.map_err(|error| unwritable(&path, error))?;
        }
        Ok(value)
    }

    fn read(&self) -> Result<LeaseRegister> {
        let path = self.path();
        let bytes = match self.files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(LeaseRegister::default());
            }
            Err(error) => return Err(unreadable(&path, error)),
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            // Taking it as empty would give away what is in use.
            let message = format!("{} is damaged: {error}", path.display());
            Error::new(ErrorCode::MEMORY_DAMAGED, message).with_help("restore it from a backup")
        })
    }

    fn make_secret(&self, rules: SecretRules) -> Result<String, ResolverError> {
        let secret = rules.generate(&mut |bytes| rand::fill(bytes));
        seal_secret(&self.keyring, &secret).map_err(|error| ResolverError::Service {
            code: ErrorCode::RESOLUTION_FAILED,
            message: error.message,
            help: None,
        })
    }
}

#[async_trait]
impl ResolverPort for LeaseFiles {
    async fn answer(
        &self,
        facts: &UnitFacts,
        holder: LeaseHolder,
        question: &ResolverQuestion,
    ) -> Result<ResolverAnswer> {
        let settings = self.settings(&facts.environment)?;
        let asker = LeaseAsker {
            facts,
            holder,
            now: Timestamp::now().as_second(),
        };
        self.change(|register| {
            let mut make = |rules| self.make_secret(rules);
            let mut answer = register.answer(&settings, question, &asker, &mut make)?;
            let lease = answer.lease.and_then(|id| register.find(id));
            if question.resolver == ResolverKind::Secret
                && let Some(sealed) = lease.and_then(|lease| lease.sealed.as_deref())
            {
                let opened = open_secret(&self.keyring, sealed);
                let opened = opened
                    .map_err(|error| Error::new(ErrorCode::RESOLUTION_FAILED, error.message))?;
                answer.outputs.insert("value".to_owned(), opened.into());
            }
            Ok(answer)
        })
    }

    async fn settle(
        &self,
        environment: EnvironmentName,
        run: RunId,
        units: &BTreeMap<ComponentName, Settlement>,
    ) -> Result<()> {
        // Most workspaces have no resolvers at all.
        if !self.files.exists(&self.path()) {
            return Ok(());
        }
        self.change(|register| {
            for (component, settlement) in units {
                let unit = LeaseUnit {
                    deployment: self.deployment.clone(),
                    environment: environment.to_string(),
                    component: component.to_string(),
                };
                register.settle(&unit, run.0.into(), *settlement);
            }
            Ok(())
        })
    }

    async fn give_back(
        &self,
        _environment: EnvironmentName,
        holder: LeaseHolder,
        leases: &[Uuid],
    ) -> Result<()> {
        self.change(|register| {
            register.give_back(holder, leases);
            Ok(())
        })
    }

    async fn held(&self, environment: EnvironmentName) -> Result<Vec<ResolverLease>> {
        let environment = environment.to_string();
        let register = self.read()?;
        let own = |one: &&ResolverLease| {
            one.unit.deployment == self.deployment && one.unit.environment == environment
        };
        Ok(register.live().filter(own).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nimbus_resolvers::LeaseStatus;
    use serde_json::{Value, json};

    use nimbus_engine_backend::KeyServices;

    use super::*;
    use crate::passphrase::environment;

    const FILE: &str = "pools:\n  - {name: lan, cidr: 10.0.0.0/30}\nresolvers:\n  ipam: {pool: lan, \
        prefix_length: 32}\n  naming: {pattern: '{env}-{type}-{seq:03d}'}\n";

    fn files(workspace: &Path, deployment: &str) -> LeaseFiles {
        let files = FolderFiles::own(workspace);
        let keyring = Keyring::new(environment(true), KeyServices::Any);
        LeaseFiles::new(workspace, &files, deployment, true, keyring)
    }

    fn facts(deployment: &str) -> UnitFacts {
        UnitFacts {
            deployment: deployment.to_owned(),
            environment: "dev".to_owned(),
            component: "app".to_owned(),
            ..UnitFacts::default()
        }
    }

    async fn ask(
        files: &LeaseFiles,
        resolver: ResolverKind,
        inputs: Value,
    ) -> Result<ResolverAnswer> {
        let inputs = inputs.as_object().unwrap().clone();
        let question = ResolverQuestion::new(resolver, inputs)?;
        files
            .answer(&facts(&files.deployment), LeaseHolder::Run(1), &question)
            .await
    }

    #[tokio::test]
    async fn deployments_of_a_workspace_never_get_the_same_and_rehearsals_take_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SETTINGS), FILE).unwrap();
        let mut asked = tokio::task::JoinSet::new();
        for number in 0..4 {
            let files = files(folder.path(), &format!("D{number}"));
            asked.spawn(async move { ask(&files, ResolverKind::Ipam, json!({})).await.unwrap() });
        }
        let mut given: Vec<_> = asked
            .join_all()
            .await
            .into_iter()
            .map(|one| one.outputs["cidr"].clone())
            .collect();
        given.sort_by_key(ToString::to_string);
        given.dedup();
        assert_eq!(given.len(), 4, "{given:?}");
        let full = ask(&files(folder.path(), "D9"), ResolverKind::Ipam, json!({})).await;
        assert_eq!(full.unwrap_err().code(), ErrorCode::POOL_EXHAUSTED);
        let real = LeaseFiles {
            rehearsal: false,
            ..files(folder.path(), "D9")
        };
        assert_eq!(
            ask(&real, ResolverKind::Ipam, json!({}))
                .await
                .unwrap()
                .outputs["cidr"],
            "10.0.0.0/32"
        );
    }

    #[tokio::test]
    async fn leases_outlive_the_process_and_follow_their_unit() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SETTINGS), FILE).unwrap();
        let vm = || json!({"resource_type": "vm"});
        let first = ask(&files(folder.path(), "D1"), ResolverKind::Naming, vm())
            .await
            .unwrap();
        assert_eq!(first.outputs["name"], "dev-vm-001");
        let again = files(folder.path(), "D1");
        let second = ask(&again, ResolverKind::Naming, vm()).await.unwrap();
        assert!(!second.fresh);
        assert_eq!(second.outputs, first.outputs);
        let settle = async |settlement| {
            let units = BTreeMap::from([("app".parse().unwrap(), settlement)]);
            again
                .settle(EnvironmentName::DEV, RunId(1), &units)
                .await
                .unwrap();
            again.held(EnvironmentName::DEV).await.unwrap()
        };
        assert_eq!(
            settle(Settlement::Deployed).await[0].status,
            LeaseStatus::Committed
        );
        assert_eq!(settle(Settlement::Undone).await.len(), 1);
        assert!(settle(Settlement::Destroyed).await.is_empty());
    }

    #[tokio::test]
    async fn a_secret_is_kept_sealed_and_is_the_same_for_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let made = async || {
            let files = files(folder.path(), "D1");
            let answer = ask(&files, ResolverKind::Secret, json!({"name": "db"}))
                .await
                .unwrap();
            answer.outputs["value"].as_str().unwrap().to_owned()
        };
        let value = made().await;
        assert_eq!(made().await, value);
        let kept = fs::read_to_string(layout::leases(folder.path(), true)).unwrap();
        assert!(
            !kept.contains(&value) && kept.contains("nimbus-secret:"),
            "{kept}"
        );
    }

    #[tokio::test]
    async fn a_wrong_file_is_told_and_a_damaged_one_is_never_taken_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join(SETTINGS),
            "pools: [{name: a, cidr: 10.0.0.0/8}, {name: b, cidr: 10.1.0.0/16}]",
        )
        .unwrap();
        let overlap = ask(
            &files(folder.path(), "D1"),
            ResolverKind::Ipam,
            json!({"prefix_length": 24}),
        )
        .await;
        assert_eq!(overlap.unwrap_err().code(), ErrorCode::POOL_OVERLAP);
        fs::write(folder.path().join(SETTINGS), FILE).unwrap();
        ask(&files(folder.path(), "D1"), ResolverKind::Ipam, json!({}))
            .await
            .unwrap();
        fs::write(layout::leases(folder.path(), true), "{").unwrap();
        let damaged = ask(&files(folder.path(), "D2"), ResolverKind::Ipam, json!({})).await;
        assert_eq!(damaged.unwrap_err().code(), ErrorCode::MEMORY_DAMAGED);
    }
}
