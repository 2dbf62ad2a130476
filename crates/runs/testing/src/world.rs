//! What outlives a process: records, memories, versions, and what is deployed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nimbus_core::{ComponentName, EnvironmentName, UnitName};
use nimbus_document::Document;
use nimbus_orchestrator::{
    ConfigOverrides, DigestKey, Manifest, RollbackTrigger, RunEvent, RunId, TemplateLibrary,
    UnitMemory, VersionRecord,
};
use nimbus_resolvers::{LeaseRegister, ParameterContract, ResolverSettings};
use nimbus_runs::ports::{GateSignature, LoadedManifest, RunClock, RunPorts};
use nimbus_runs::{RunRecord, UnitJob};
use parking_lot::Mutex;

use crate::crash::Crash;
use crate::engine::MemoryEngine;
use crate::ports::MemoryPort;

/// Manifests that were parsed, by their text. Tests of every crash point load the same few for every attempt.
static PARSED: Mutex<BTreeMap<String, LoadedManifest>> = Mutex::new(BTreeMap::new());

/// Everything that is recorded or deployed.
#[derive(Clone, Debug, Default)]
pub struct RecordedWorld(Arc<Mutex<WorldContents>>);

/// See [`RecordedWorld`].
#[derive(Clone, Debug, Default)]
pub struct WorldContents {
    /// The manifest's text.
    pub manifest: String,
    pub templates: TemplateLibrary,
    /// What a component's program consists of. After `out=` stands what it outputs; otherwise that
    /// is everything that it was made from.
    pub programs: BTreeMap<ComponentName, String>,
    pub runs: BTreeMap<RunId, (RunRecord, Vec<RunEvent>)>,
    pub memories: BTreeMap<(EnvironmentName, ComponentName), UnitMemory>,
    pub versions: BTreeMap<EnvironmentName, Vec<VersionRecord>>,
    pub signatures: BTreeMap<EnvironmentName, BTreeMap<String, GateSignature>>,
    pub units: BTreeMap<UnitName, RecordedUnit>,
    /// Units whose resources are others than is recorded, as a look finds them.
    pub drifted: BTreeMap<UnitName, BTreeMap<String, String>>,
    /// What units were before a run touched them.
    pub kept: BTreeMap<(RunId, UnitName), RecordedUnit>,
    /// Components whose work goes wrong.
    pub faults: BTreeMap<ComponentName, UnitFault>,
    pub locked: BTreeSet<EnvironmentName>,
    /// What engines were asked to do, in order.
    pub jobs: Vec<UnitJob>,
    /// How many values were made up.
    pub made_up: u64,
    /// How resolvers are configured, and what they have leased.
    pub resolvers: ResolverSettings,
    pub leases: LeaseRegister,
    /// What components say of their parameters.
    pub contracts: BTreeMap<ComponentName, ParameterContract>,
    /// The account of the credentials at hand. Programs talk to AWS if there is one.
    pub account: Option<String>,
}

/// What is deployed of a unit, and what it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedUnit {
    /// Resources by name, with what they were made from.
    pub resources: BTreeMap<String, String>,
    pub history: Vec<BTreeMap<String, String>>,
}

/// How a component's work goes wrong, every time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitFault {
    /// Its deploy fails in the middle.
    pub deploy: bool,
    /// The failure undoes a run by itself.
    pub trigger: Option<RollbackTrigger>,
    /// It cannot be returned to where it was.
    pub rollback: bool,
    /// What it is returned to has something that was made anew, and something that names what it was.
    pub stale: bool,
    /// Its destroy fails in the middle.
    pub destroy: bool,
    /// Its deploy takes so long.
    pub takes: Option<std::time::Duration>,
}

impl RecordedWorld {
    /// A deployment with this manifest, and a program for each of its components.
    pub fn with_manifest(text: &str, programs: &[(&str, &str)]) -> Self {
        let world = Self::default();
        world.change(|contents| {
            contents.manifest = text.to_owned();
            for (name, code) in programs {
                let name: ComponentName = name.parse().expect("a name of a component");
                let template = format!("name: {name}\nestimate: {{minutes: 5}}\n");
                let document = Document::parse("template", &template).expect("a document");
                let template = nimbus_orchestrator::ComponentTemplate::read(&document);
                let template = template.expect("a template");
                contents.templates.stacks.insert(name.clone(), template);
                contents.programs.insert(name, (*code).to_owned());
            }
        });
        world
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut WorldContents) -> T) -> T {
        change(&mut self.0.lock())
    }

    pub fn read<T>(&self, read: impl FnOnce(&WorldContents) -> T) -> T {
        read(&self.0.lock())
    }

    /// A copy that goes its own way.
    pub fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.contents())))
    }

    pub fn contents(&self) -> WorldContents {
        self.0.lock().clone()
    }

    pub(crate) fn manifest(&self) -> nimbus_core::Result<LoadedManifest> {
        let text = self.read(|contents| contents.manifest.clone());
        let known = PARSED.lock().get(&text).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let document = Document::parse("Deployment_Manifest.yaml", &text)?;
        let manifest = Manifest::read(&document)?;
        let loaded = LoadedManifest {
            manifest,
            document,
            overrides: ConfigOverrides::default(),
        };
        PARSED.lock().insert(text, loaded.clone());
        Ok(loaded)
    }

    /// The ports of a process over this world. Locks of a process that crashed are free.
    pub fn ports(&self, crash: &Crash) -> RunPorts {
        self.change(|contents| contents.locked.clear());
        let port = || MemoryPort {
            world: self.clone(),
            crash: crash.clone(),
        };
        RunPorts {
            deployment: Box::new(port()),
            components: Box::new(port()),
            runs: Arc::new(port()),
            memories: Box::new(port()),
            locks: Box::new(port()),
            versions: Box::new(port()),
            gates: Box::new(port()),
            logs: Box::new(port()),
            engine: Box::new(MemoryEngine {
                world: self.clone(),
                crash: crash.clone(),
            }),
            values: Box::new(port()),
            resolvers: Box::new(port()),
            accounts: Box::new(port()),
            checks: Box::new(port()),
            clock: Box::new(FixedRunClock),
            key: DigestKey::new([7; DigestKey::LENGTH]),
        }
    }
}

struct FixedRunClock;

impl RunClock for FixedRunClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}
