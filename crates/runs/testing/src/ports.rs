//! The stores in memory. Reading costs nothing; every write may be the last.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{
    CheckCommand, Fingerprint, FingerprintInput, LookupValue, RunEvent, RunId, TemplateLibrary,
    UnitMemory, ValueLookupError, VersionRecord, progress_of,
};
use nimbus_resolvers::register::LeaseAsker;
use nimbus_resolvers::{
    LeaseHolder, LeaseUnit, ResolverAnswer, ResolverKind, ResolverLease, ResolverQuestion,
    Settlement, UnitFacts,
};
use nimbus_runs::ports::{
    CheckOutput, CheckRunner, CheckSubject, CloudAccounts, CloudIdentity, ComponentSource,
    DeploymentSource, EnvironmentGuard, EnvironmentLocks, ExternalValues, GateSignature, GateStore,
    LoadedManifest, LockAttempt, LockHolder, ResolverPort, RunLog, RunLogs, RunStore, UnitContract,
    UnitMemories, VersionStore,
};
use nimbus_runs::{RunRecord, RunRequest};
use tokio_util::sync::CancellationToken;

use crate::crash::Crash;
use crate::world::{RecordedWorld, WorldContents};

pub(crate) struct MemoryPort {
    pub(crate) world: RecordedWorld,
    pub(crate) crash: Crash,
}

#[async_trait]
impl DeploymentSource for MemoryPort {
    async fn load(&self) -> Result<LoadedManifest> {
        self.world.manifest()
    }
}

#[async_trait]
impl ComponentSource for MemoryPort {
    async fn templates(&self) -> Result<TemplateLibrary> {
        Ok(self.world.read(|contents| contents.templates.clone()))
    }

    async fn require_program(&self, _: &ComponentName) -> Result<()> {
        Ok(())
    }

    async fn add_program(&self, component: &ComponentName, to: &mut Fingerprint) -> Result<()> {
        let code = self
            .world
            .read(|contents| contents.programs.get(component).cloned());
        let code = code.unwrap_or_default();
        to.add(FingerprintInput::ProgramFile("index.ts".to_owned()), code);
        Ok(())
    }

    async fn mentions(&self, _: &ComponentName, _: &[&str]) -> bool {
        self.world.read(|contents| contents.account.is_some())
    }
}

#[async_trait]
impl RunStore for MemoryPort {
    async fn begin(&self, request: RunRequest) -> Result<RunRecord> {
        self.crash.write().await;
        Ok(self.world.change(|contents| {
            let last = contents.runs.keys().next_back();
            let run = RunId(last.map_or(1, |last| last.0 + 1));
            let record = RunRecord {
                run,
                started: "1970-01-01T00:00:00Z".to_owned(),
                stamp: "19700101-000000".to_owned(),
                request,
            };
            contents.runs.insert(run, (record.clone(), Vec::new()));
            record
        }))
    }

    async fn find(&self, run: RunId) -> Result<RunRecord> {
        let record = |contents: &WorldContents| Some(contents.runs.get(&run)?.0.clone());
        self.world
            .read(record)
            .ok_or_else(|| Error::new(ErrorCode::RUN_UNKNOWN, format!("there is no run {run}")))
    }

    async fn of_environment(&self, environment: EnvironmentName) -> Result<Vec<RunRecord>> {
        Ok(self.world.read(|contents| {
            let records = contents.runs.values().rev().map(|(record, _)| record);
            records
                .filter(|record| record.request.environment == environment)
                .cloned()
                .collect()
        }))
    }

    async fn events(&self, run: RunId) -> Result<Vec<RunEvent>> {
        let events = |contents: &WorldContents| Some(contents.runs.get(&run)?.1.clone());
        Ok(self.world.read(events).unwrap_or_default())
    }

    /// Written one by one: a crash may leave some of them.
    async fn append(&self, run: RunId, events: &[RunEvent], _: bool) -> Result<()> {
        for event in events {
            self.crash.write().await;
            self.world.change(|contents| {
                if let Some((_, recorded)) = contents.runs.get_mut(&run) {
                    recorded.push(event.clone());
                }
            });
        }
        Ok(())
    }

    async fn prune(&self, environment: EnvironmentName, keep: usize) -> Result<usize> {
        let mut gone = 0;
        for record in self
            .of_environment(environment)
            .await?
            .into_iter()
            .skip(keep)
        {
            let over = progress_of(&self.events(record.run).await?)
                .result
                .is_some();
            if over {
                self.crash.write().await;
                self.world
                    .change(|contents| contents.runs.remove(&record.run));
                gone += 1;
            }
        }
        Ok(gone)
    }
}

#[async_trait]
impl UnitMemories for MemoryPort {
    async fn load(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
    ) -> Result<UnitMemory> {
        let key = (environment, component.clone());
        let found = self
            .world
            .read(|contents| contents.memories.get(&key).cloned());
        Ok(found.unwrap_or_default())
    }

    async fn save(
        &self,
        component: &ComponentName,
        environment: EnvironmentName,
        memory: &UnitMemory,
    ) -> Result<()> {
        self.crash.write().await;
        self.world.change(|contents| {
            let key = (environment, component.clone());
            contents.memories.insert(key, memory.clone());
        });
        Ok(())
    }
}

struct MemoryGuard {
    world: RecordedWorld,
    environment: EnvironmentName,
}

#[async_trait]
impl EnvironmentGuard for MemoryGuard {
    async fn name_run(&mut self, _: RunId) -> Result<()> {
        Ok(())
    }
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        let environment = self.environment;
        self.world
            .change(|contents| contents.locked.remove(&environment));
    }
}

#[async_trait]
impl EnvironmentLocks for MemoryPort {
    async fn try_lock(&self, environment: EnvironmentName, command: &str) -> Result<LockAttempt> {
        if self
            .world
            .change(|contents| contents.locked.insert(environment))
        {
            let world = self.world.clone();
            return Ok(LockAttempt::Taken(Box::new(MemoryGuard {
                world,
                environment,
            })));
        }
        Ok(LockAttempt::HeldBy(Box::new(LockHolder {
            user: "ann".to_owned(),
            host: "here".to_owned(),
            process: 1,
            command: command.to_owned(),
            run: None,
            since: jiff::Timestamp::UNIX_EPOCH,
            silence: std::time::Duration::ZERO,
        })))
    }
}

#[async_trait]
impl VersionStore for MemoryPort {
    async fn all(&self, environment: EnvironmentName) -> Result<Vec<VersionRecord>> {
        let versions = self
            .world
            .read(|contents| contents.versions.get(&environment).cloned());
        Ok(versions.unwrap_or_default())
    }

    async fn add(&self, environment: EnvironmentName, version: &VersionRecord) -> Result<()> {
        self.crash.write().await;
        self.world.change(|contents| {
            let versions = contents.versions.entry(environment).or_default();
            versions.push(version.clone());
        });
        Ok(())
    }
}

#[async_trait]
impl GateStore for MemoryPort {
    async fn signatures(
        &self,
        environment: EnvironmentName,
    ) -> Result<BTreeMap<String, GateSignature>> {
        let read = |contents: &WorldContents| contents.signatures.get(&environment).cloned();
        let signatures = self.world.read(read);
        Ok(signatures.unwrap_or_default())
    }

    async fn sign(
        &self,
        environment: EnvironmentName,
        item: &str,
        signature: GateSignature,
    ) -> Result<()> {
        self.crash.write().await;
        self.world.change(|contents| {
            let signatures = contents.signatures.entry(environment).or_default();
            signatures.insert(item.to_owned(), signature);
        });
        Ok(())
    }
}

struct NoLog;

impl RunLog for NoLog {
    fn event(&mut self, _: &RunEvent) -> std::io::Result<()> {
        Ok(())
    }

    fn text(&mut self, _: &str, _: &str) -> std::io::Result<()> {
        Ok(())
    }
}

impl RunLogs for MemoryPort {
    fn open(&self, _: &RunRecord) -> Result<Box<dyn RunLog>> {
        Ok(Box::new(NoLog))
    }
}

#[async_trait]
impl ExternalValues for MemoryPort {
    async fn aws(&self, _: &str, _: &str, _: &[String]) -> Result<LookupValue, ValueLookupError> {
        Ok(LookupValue::Absent)
    }

    async fn env(&self, _: &str) -> Result<LookupValue, ValueLookupError> {
        Ok(LookupValue::Absent)
    }

    async fn calculate(
        &self,
        function: &str,
        _: &[String],
        _: bool,
        memory: &mut UnitMemory,
    ) -> Result<LookupValue, ValueLookupError> {
        let next = self.world.change(|contents| {
            contents.made_up += 1;
            contents.made_up
        });
        let made = memory.made.entry(function.to_owned());
        Ok(LookupValue::open(
            made.or_insert_with(|| next.to_string()).clone(),
        ))
    }
}

#[async_trait]
impl CloudAccounts for MemoryPort {
    async fn aws(&self, _: &str) -> Result<CloudIdentity> {
        let account = self.world.read(|contents| contents.account.clone());
        Ok(CloudIdentity {
            account: account.unwrap_or_default(),
            caller: "ann".to_owned(),
        })
    }
}

#[async_trait]
impl CheckRunner for MemoryPort {
    async fn hand_over(
        &self,
        _: &CheckSubject,
        _: &BTreeMap<ComponentName, BTreeMap<String, LookupValue>>,
    ) -> Result<()> {
        Ok(())
    }

    /// `false` fails; everything else works.
    async fn run(
        &self,
        name: &str,
        check: &CheckCommand,
        _: &CheckSubject,
        _: &CancellationToken,
        _: Arc<CheckOutput>,
    ) -> Result<()> {
        if check.command == "false" {
            let message = format!("check {name} ended with 1");
            return Err(Error::new(ErrorCode::CHECK_FAILED, message));
        }
        Ok(())
    }
}

impl MemoryPort {
    fn lease_unit(&self, environment: EnvironmentName, component: &ComponentName) -> LeaseUnit {
        let deployment = self.world.manifest();
        let deployment = deployment.map(|loaded| loaded.manifest.metadata.id.to_string());
        LeaseUnit {
            deployment: deployment.unwrap_or_default(),
            environment: environment.to_string(),
            component: component.to_string(),
        }
    }
}

#[async_trait]
impl ResolverPort for MemoryPort {
    async fn answer(
        &self,
        facts: &UnitFacts,
        holder: LeaseHolder,
        question: &ResolverQuestion,
    ) -> Result<ResolverAnswer> {
        self.crash.write().await;
        let answer = self.world.change(|contents| {
            let asker = LeaseAsker {
                facts,
                holder,
                now: 0,
            };
            let mut made = |rules: nimbus_resolvers::secrets::SecretRules| {
                contents.made_up += 1;
                Ok(format!("secret {} of {}", contents.made_up, rules.length))
            };
            let mut answer =
                contents
                    .leases
                    .answer(&contents.resolvers, question, &asker, &mut made)?;
            let sealed = answer
                .lease
                .and_then(|id| contents.leases.find(id)?.sealed.clone());
            if question.resolver == ResolverKind::Secret {
                answer.outputs.insert("value".to_owned(), sealed.into());
            }
            Ok::<_, nimbus_resolvers::ResolverError>(answer)
        });
        Ok(answer?)
    }

    async fn settle(
        &self,
        environment: EnvironmentName,
        run: RunId,
        units: &BTreeMap<ComponentName, Settlement>,
    ) -> Result<()> {
        for (component, settlement) in units {
            let unit = self.lease_unit(environment, component);
            let has_some =
                |contents: &WorldContents| contents.leases.of_unit(&unit).next().is_some();
            if !self.world.read(has_some) {
                continue;
            }
            self.crash.write().await;
            self.world
                .change(|contents| contents.leases.settle(&unit, run.0.into(), *settlement));
        }
        Ok(())
    }

    async fn give_back(
        &self,
        _: EnvironmentName,
        holder: LeaseHolder,
        leases: &[uuid::Uuid],
    ) -> Result<()> {
        self.crash.write().await;
        self.world
            .change(|contents| contents.leases.give_back(holder, leases));
        Ok(())
    }

    async fn contract(
        &self,
        _: EnvironmentName,
        component: &ComponentName,
    ) -> Result<Option<UnitContract>> {
        let contract = self
            .world
            .read(|contents| contents.contracts.get(component).cloned());
        Ok(contract.map(|parameters| UnitContract {
            parameters,
            rules: Vec::new(),
        }))
    }

    async fn held(&self, environment: EnvironmentName) -> Result<Vec<ResolverLease>> {
        let environment = environment.to_string();
        Ok(self.world.read(|contents| {
            let live = contents.leases.live();
            live.filter(|one| one.unit.environment == environment)
                .cloned()
                .collect()
        }))
    }
}
