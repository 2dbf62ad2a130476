//! One deployment in one environment, for as long as a run lasts: its manifest as it was read under
//! the lock, the ports, and what its units tell each other.
//!
//! Here a unit's operation is handed to the engine, and what came of it is remembered. What the unit
//! is given (`inputs.rs`) comes from units that ran in this run, or else as recorded.

mod inputs;
mod restore;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{
    ComponentName, DeploymentId, EnvironmentName, Error, ErrorCode, Result, UnitName,
};
use nimbus_document::Document;
use nimbus_orchestrator::{
    ConfigOverrides, EnvironmentTarget, LastOutcome, LookupValue, Manifest, ManifestSpot,
    RememberedRun, RunId, RunReason, UnitConfigValue, UnitMemory,
};
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;
use uuid::Uuid;

use self::inputs::refuse_unknown;
use crate::leases::{ShownLease, TakenLeases};
use crate::ports::{LoadedManifest, RunPorts};
use crate::unit::{
    DeployedUnit, PreparedUnit, PreviewedUnit, Recovery, UnitAddress, UnitFailure, UnitJob,
    UnitOperation, UnitReport,
};

/// What a deployment's units share during a run.
pub struct RunContext {
    pub(crate) ports: Arc<RunPorts>,
    pub manifest: Manifest,
    document: Document,
    overrides: ConfigOverrides,
    pub environment: EnvironmentName,
    /// The run that units are touched for; `None` while only looking.
    run: Option<RunId>,
    recovery: Recovery,
    look_first: bool,
    /// How long a deploy of each component may take.
    limits: BTreeMap<ComponentName, Duration>,
    /// Outputs by component, of this run or as recorded.
    pub(crate) outputs: Mutex<BTreeMap<ComponentName, BTreeMap<String, LookupValue>>>,
    /// Components whose outputs are not known before they have run.
    pub(crate) expected: Mutex<BTreeSet<ComponentName>>,
    /// What resolvers answered each component.
    shown: SyncMutex<BTreeMap<ComponentName, BTreeMap<String, ShownLease>>>,
    /// Leases that were taken since it was loaded, to be given back if nothing comes of it.
    taken: Arc<SyncMutex<Vec<Uuid>>>,
    /// What is made up for components and no memory keeps yet, in the form in which memories do.
    made: SyncMutex<BTreeMap<ComponentName, BTreeMap<String, String>>>,
}

impl RunContext {
    /// Reads the deployment as it is now.
    ///
    /// # Errors
    ///
    /// When the manifest cannot be read, or the environment may not be deployed.
    pub async fn load(ports: Arc<RunPorts>, environment: EnvironmentName) -> Result<Self> {
        let context = Self::load_any(ports, environment).await?;
        allow(&context.manifest, environment)?;
        Ok(context)
    }

    /// Reads the deployment as it is now, for what may be done to an environment that is switched off
    /// too: to look at it, and to take it away.
    ///
    /// # Errors
    ///
    /// When the manifest cannot be read, or has no such environment.
    pub async fn load_any(ports: Arc<RunPorts>, environment: EnvironmentName) -> Result<Self> {
        let LoadedManifest {
            manifest,
            document,
            overrides,
        } = ports.deployment.load().await?;
        if !manifest.environments.contains_key(&environment) {
            return Err(manifest.unknown_environment(environment));
        }
        Ok(Self {
            ports,
            manifest,
            document,
            overrides,
            environment,
            run: None,
            recovery: Recovery::default(),
            look_first: false,
            limits: BTreeMap::new(),
            outputs: Mutex::default(),
            expected: Mutex::default(),
            shown: SyncMutex::default(),
            taken: Arc::default(),
            made: SyncMutex::default(),
        })
    }

    /// From now on units are touched for this run.
    pub(crate) fn within(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// An error that points to its place in the manifest, or in the file that overrides it.
    pub(crate) fn pointed(
        &self,
        spot: Option<&ManifestSpot>,
        code: ErrorCode,
        message: String,
    ) -> Error {
        match spot {
            Some(spot) => self.overrides.point(spot, &self.document, code, message),
            None => Error::new(code, message),
        }
    }

    pub(crate) fn recovering(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// From now on deploys look at what is there before they decide.
    pub(crate) fn looking_first(mut self, look_first: bool) -> Self {
        self.look_first = look_first;
        self
    }

    /// From now on deploys may take so long.
    pub(crate) fn limited(mut self, limits: BTreeMap<ComponentName, Duration>) -> Self {
        self.limits = limits;
        self
    }

    pub fn id(&self) -> &DeploymentId {
        &self.manifest.metadata.id
    }

    /// What resolvers answered a component, in the order of the questions.
    pub(crate) fn shown_leases(&self, component: &ComponentName) -> Vec<ShownLease> {
        let shown = self.shown.lock();
        let of_unit = shown.get(component);
        of_unit
            .into_iter()
            .flat_map(|of_unit| of_unit.values().cloned())
            .collect()
    }

    /// The leases that are taken through this context, to be given back if nothing comes of it.
    pub(crate) fn taken_leases(&self) -> TakenLeases {
        TakenLeases {
            ports: Arc::clone(&self.ports),
            environment: self.environment,
            leases: Arc::clone(&self.taken),
        }
    }

    /// What is made up for a component and no memory keeps yet, by name and parameters.
    pub(crate) fn made_up(&self, component: &ComponentName) -> BTreeMap<String, String> {
        self.made.lock().get(component).cloned().unwrap_or_default()
    }

    /// From now on a component has these values where its memory keeps none.
    pub(crate) fn make_up(&self, component: &ComponentName, made: BTreeMap<String, String>) {
        self.made.lock().insert(component.clone(), made);
    }

    pub(crate) fn target(&self) -> Option<&EnvironmentTarget> {
        self.manifest.environments.get(&self.environment)
    }

    /// Deploys a unit unless nothing that concerns it has changed.
    pub async fn deploy(
        &self,
        component: &ComponentName,
        force: bool,
    ) -> Result<DeployedUnit, UnitFailure> {
        let prepared = self.prepare(component).await?;
        match prepared.reason(force) {
            None => Ok(DeployedUnit::Skipped),
            Some(reason) => self.deploy_prepared(prepared, reason).await,
        }
    }

    /// What a deploy of this unit would be given now.
    pub async fn prepare(&self, component: &ComponentName) -> Result<PreparedUnit> {
        let mut memory = self.memory(component).await?;
        let kept: BTreeSet<String> = memory.made.keys().cloned().collect();
        for (name, made) in self.made_up(component) {
            memory.made.entry(name).or_insert(made);
        }
        let resolution = self.resolve(component, &mut memory).await?;
        let mut made = memory.made.clone();
        made.retain(|name, _| !kept.contains(name));
        self.make_up(component, made);
        let fingerprint = self.fingerprint(component, &resolution).await?;
        let state = self.state_version(component).await?;
        Ok(PreparedUnit {
            component: component.clone(),
            memory,
            state,
            fingerprint,
            config: resolution.config,
        })
    }

    /// Deploys a unit with what it was prepared with.
    pub async fn deploy_prepared(
        &self,
        prepared: PreparedUnit,
        reason: RunReason,
    ) -> Result<DeployedUnit, UnitFailure> {
        let PreparedUnit {
            component,
            mut memory,
            state: _,
            fingerprint,
            config,
        } = prepared;
        refuse_unknown(&component, &config)?;
        // Saved before the engine starts: made-up values must survive even if the run does not, and
        // a run that is cut off must not be taken for the good one before it.
        let prior = memory.last_run.take();
        let begun = RememberedRun {
            outcome: LastOutcome::Unfinished,
            drifted: false,
            seconds: prior.as_ref().map_or(0, |last| last.seconds),
            resources: prior.as_ref().map_or(0, |last| last.resources),
            fingerprint,
            state: None,
            stack: Some(self.address(&component).stack.to_string()),
            run: self.run,
            before: before_run(prior, self.run),
        };
        memory.last_run = Some(begun.clone());
        self.remember(&component, &memory).await?;
        let parameters = self.parameters(&component, &config);
        self.ports
            .resolvers
            .keep_parameters(self.environment, &component, &parameters)
            .await?;
        let job = self.job(&component, UnitOperation::Deploy, config);
        let report = match self.ports.engine.run(&job).await {
            Ok(report) => report,
            Err(failed) => return Err(self.remember_left(&component, memory, failed).await),
        };
        memory.last_run = Some(RememberedRun {
            outcome: LastOutcome::Succeeded,
            seconds: report.seconds,
            resources: report.resources,
            state: self.left_state(&component).await,
            ..begun
        });
        self.remember(&component, &memory).await?;
        let mut outputs = self.outputs.lock().await;
        outputs.insert(component, report.outputs.clone());
        drop(outputs);
        Ok(DeployedUnit::Ran { reason, report })
    }

    /// Shows what a deploy would do, with the outputs that units before it would have.
    pub async fn preview(&self, component: &ComponentName) -> Result<PreviewedUnit, UnitFailure> {
        let prepared = self.prepare(component).await?;
        let reason = prepared.reason(false);
        let mut job = self.job(component, UnitOperation::Preview, prepared.config);
        job.neighbours = self.neighbours().await;
        let report = self.ports.engine.run(&job).await?;
        let mut outputs = self.outputs.lock().await;
        outputs.insert(component.clone(), report.outputs.clone());
        drop(outputs);
        Ok(PreviewedUnit {
            reason,
            fingerprint: prepared.fingerprint,
            report,
        })
    }

    /// What a deploy would do with what was prepared, without handing anything on.
    pub(crate) async fn preview_prepared(
        &self,
        prepared: &PreparedUnit,
    ) -> Result<UnitReport, UnitFailure> {
        let config = prepared.config.clone();
        let mut job = self.job(&prepared.component, UnitOperation::Preview, config);
        job.neighbours = self.neighbours().await;
        self.ports.engine.run(&job).await
    }

    /// Deletes what a unit has and forgets its last run.
    pub async fn destroy(&self, component: &ComponentName) -> Result<UnitReport, UnitFailure> {
        let mut memory = self.distrust(component).await?;
        let job = self.job(component, UnitOperation::Destroy, BTreeMap::new());
        let report = match self.ports.engine.run(&job).await {
            Ok(report) => report,
            Err(failed) => return Err(self.remember_left(component, memory, failed).await),
        };
        memory.last_run = None;
        self.remember(component, &memory).await?;
        Ok(report)
    }

    /// Keeps how much there is of a unit that failed half way: it counts what was there before it, until somebody looks.
    /// The failure is what is told, whatever becomes of the number.
    async fn remember_left(
        &self,
        component: &ComponentName,
        mut memory: UnitMemory,
        failed: UnitFailure,
    ) -> UnitFailure {
        if let (Some(last), Some(resources)) = (memory.last_run.as_mut(), failed.resources) {
            last.resources = resources;
            if let Err(error) = self.remember(component, &memory).await {
                tracing::warn!(%component, %error, "what a failed unit left was not counted");
            }
        }
        failed
    }

    /// Looks at what a unit really has and records it. A unit that is not as its last run left it is
    /// remembered as drifted, so that the next deploy runs it.
    pub async fn refresh(&self, component: &ComponentName) -> Result<UnitReport, UnitFailure> {
        let mut memory = self.memory(component).await?;
        let moved = memory.last(self.state_version(component).await?.as_deref());
        let job = self.job(component, UnitOperation::Refresh, BTreeMap::new());
        let report = self.ports.engine.run(&job).await?;
        let Some(last) = memory
            .last_run
            .as_mut()
            .filter(|last| last.outcome.is_whole())
        else {
            return Ok(report);
        };
        last.drifted |= report.has_changes();
        // A look leaves a new state. One that was somebody else's before it still is.
        if !moved.is_some_and(|last| last.state_moved) {
            last.state = self.left_state(component).await;
        }
        self.remember(component, &memory).await?;
        Ok(report)
    }

    /// The state that an operation left, to be remembered. One that cannot be read is remembered as
    /// one that there never is, so that the next deploy runs the unit.
    async fn left_state(&self, component: &ComponentName) -> Option<String> {
        let state = self.state_version(component).await;
        Some(state.ok().flatten().unwrap_or_default())
    }

    /// Voids what would let the next deploy skip a unit, before the engine starts: neither a crash
    /// nor a failure in the middle may leave a memory that calls what is half gone good.
    async fn distrust(&self, component: &ComponentName) -> Result<UnitMemory> {
        let mut memory = self.memory(component).await?;
        let whole = |last: &&mut RememberedRun| last.outcome.is_whole();
        if let Some(last) = memory.last_run.as_mut().filter(whole) {
            last.outcome = LastOutcome::Unfinished;
            self.remember(component, &memory).await?;
        }
        Ok(memory)
    }

    /// Why a deploy would run this unit now; `None` if it would be skipped.
    pub async fn why(&self, component: &ComponentName) -> Result<Option<RunReason>> {
        // Before anything is resolved: what a new unit refers to may not exist yet either.
        if self.memory(component).await?.last_run.is_none() {
            return Ok(Some(RunReason::NeverDeployed));
        }
        Ok(self.prepare(component).await?.reason(false))
    }

    /// From now on the outputs of a component count as unknown, whatever is recorded of it.
    pub(crate) async fn expect_outputs(&self, component: &ComponentName) {
        self.expected.lock().await.insert(component.clone());
    }

    /// From now on outputs count as they are recorded, or as a unit of this run left them.
    pub(crate) async fn trust_outputs(&self) {
        self.expected.lock().await.clear();
    }

    /// Refuses a manifest under which a unit's state would no longer be found.
    pub(crate) async fn refuse_lost_states(&self) -> Result<()> {
        for component in self.manifest.stacks.keys() {
            let last = self.memory(component).await?.last_run;
            let now = self.address(component).stack.to_string();
            let Some(then) = last.and_then(|last| last.stack).filter(|then| *then != now) else {
                continue;
            };
            let message = format!(
                "the state of {component} in {} is that of {then}, and the manifest says {now}",
                self.environment
            );
            return Err(Error::new(ErrorCode::PROJECT_MOVED, message).with_help(
                "put `metadata.project` (or the stack's `pulumi` names) back as it was; to rename a \
                 project, destroy its environments first",
            ));
        }
        // Only where names are given can one be that of another environment.
        let stacks = &self.manifest.stacks;
        match stacks.values().any(|entry| entry.pulumi.is_some()) {
            true => self.refuse_taken_states().await,
            false => Ok(()),
        }
    }

    /// Refuses a manifest under which this environment would work on the state of another one: who may change this
    /// one may have no word in the other.
    async fn refuse_taken_states(&self) -> Result<()> {
        let components = || self.manifest.stacks.keys();
        let ours: BTreeMap<String, &ComponentName> = components()
            .map(|component| (self.address(component).stack.to_string(), component))
            .collect();
        let environments = self.manifest.environments.keys().copied();
        for environment in environments.filter(|other| *other != self.environment) {
            for other in components() {
                let memory = self.ports.memories.load(other, environment).await?;
                let stack = memory.last_run.and_then(|last| last.stack);
                let taken = stack.and_then(|stack| Some((*ours.get(&stack)?, stack)));
                let Some((component, stack)) = taken else {
                    continue;
                };
                let message = format!(
                    "the manifest says {stack} of {component} in {}, and that is the state of {other} in \
                     {environment}",
                    self.environment
                );
                return Err(Error::new(ErrorCode::PROJECT_MOVED, message).with_help(
                    "put the stack's `pulumi` names back as they were, or destroy the other environment first",
                ));
            }
        }
        Ok(())
    }

    /// What is remembered of a unit.
    pub async fn memory(&self, component: &ComponentName) -> Result<UnitMemory> {
        self.ports.memories.load(component, self.environment).await
    }

    async fn remember(&self, component: &ComponentName, memory: &UnitMemory) -> Result<()> {
        let memories = &self.ports.memories;
        memories.save(component, self.environment, memory).await
    }

    /// Where a unit's state is.
    pub fn address(&self, component: &ComponentName) -> UnitAddress {
        UnitAddress {
            component: component.clone(),
            stack: self.manifest.pulumi_stack(component, self.environment),
            unit: UnitName::new(self.id(), component, self.environment),
        }
    }

    /// Refuses a run over these components that would find out in the middle that it cannot go on.
    pub(crate) async fn ready<'a>(
        &self,
        components: impl Iterator<Item = &'a ComponentName>,
    ) -> Result<()> {
        let units: Vec<_> = components.map(|one| self.address(one)).collect();
        self.ports.engine.ready(&units).await
    }

    /// The recorded state of a unit, so that it can be told from any other.
    pub async fn state_version(&self, component: &ComponentName) -> Result<Option<String>> {
        self.ports
            .engine
            .state_version(&self.address(component))
            .await
    }

    fn job(
        &self,
        component: &ComponentName,
        operation: UnitOperation,
        config: BTreeMap<String, UnitConfigValue>,
    ) -> UnitJob {
        let entry = self.manifest.stacks.get(component);
        UnitJob {
            unit: self.address(component),
            config,
            neighbours: BTreeMap::new(),
            network: entry.and_then(|entry| entry.network),
            operation,
            run: self.run,
            recovery: self.recovery,
            look_first: self.look_first,
            limit: match operation {
                UnitOperation::Deploy => self.limits.get(component).copied(),
                UnitOperation::Preview
                | UnitOperation::Destroy
                | UnitOperation::Refresh
                | UnitOperation::Restore(_) => None,
            },
        }
    }
}

/// What is remembered of the time before a run. An attempt that goes on with the same run finds its
/// own mark; what was there before it is in that mark.
fn before_run(prior: Option<RememberedRun>, run: Option<RunId>) -> Option<Box<RememberedRun>> {
    let prior = prior?;
    if run.is_some() && prior.run == run {
        return prior.before;
    }
    Some(Box::new(RememberedRun {
        before: None,
        ..prior
    }))
}

/// Whether an environment may be deployed.
///
/// # Errors
///
/// When the deployment has no such environment, or it is not enabled.
pub(crate) fn allow(manifest: &Manifest, environment: EnvironmentName) -> Result<()> {
    let id = &manifest.metadata.id;
    match manifest.environments.get(&environment) {
        Some(target) if target.enabled => Ok(()),
        Some(_) => {
            let message = format!("environment {environment} of {id} is not enabled");
            Err(Error::new(ErrorCode::ENVIRONMENT_DISABLED, message)
                .with_help(format!("nimbus enable-environment {id} {environment}")))
        }
        None => Err(manifest.unknown_environment(environment)),
    }
}
