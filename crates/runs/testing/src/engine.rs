//! Units in memory: a deploy makes two resources out of a unit's configuration and program, one write
//! each, so that a crash or a fault leaves a unit half done.

use std::collections::BTreeMap;

use async_trait::async_trait;
use nimbus_core::{Error, ErrorCode, Result, UnitName};
use nimbus_orchestrator::{LookupValue, UnitConfigValue};
use nimbus_runs::ports::UnitEngine;
use nimbus_runs::{RestorePoint, UnitAddress, UnitFailure, UnitJob, UnitOperation, UnitReport};

use crate::crash::Crash;
use crate::world::{RecordedUnit, RecordedWorld, WorldContents};

pub(crate) struct MemoryEngine {
    pub(crate) world: RecordedWorld,
    pub(crate) crash: Crash,
}

type UnitResources = BTreeMap<String, String>;

impl MemoryEngine {
    fn recorded(&self, unit: &UnitName) -> Option<RecordedUnit> {
        self.world
            .read(|contents| contents.units.get(unit).cloned())
    }

    /// What a deploy would make.
    fn wanted(&self, job: &UnitJob) -> UnitResources {
        let component = &job.unit.component;
        let code = self
            .world
            .read(|contents| contents.programs.get(component).cloned());
        let config: Vec<String> = job
            .config
            .iter()
            .map(|(key, value)| match value {
                UnitConfigValue::Known { value, .. } => format!("{key}={value}"),
                UnitConfigValue::Unknown => format!("{key}=?"),
            })
            .collect();
        let made = format!("{} {}", code.unwrap_or_default(), config.join(" "));
        let resources = ["first", "second"].map(|name| (name.to_owned(), made.clone()));
        resources.into_iter().collect()
    }

    /// Changes one resource after the other. With `stops` it fails before the second, every time.
    async fn change(
        &self,
        job: &UnitJob,
        wanted: &UnitResources,
        stops: bool,
    ) -> Result<(), Error> {
        let now = self.recorded(&job.unit.unit).unwrap_or_default().resources;
        let mut names: Vec<&String> = wanted.keys().chain(now.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            if stops && name == "second" {
                return Err(Error::new(ErrorCode::INTERNAL, "the cloud said no"));
            }
            if wanted.get(name) == now.get(name) {
                continue;
            }
            // As engines do: what was begun is finished, and nothing more is.
            if self.crash.stop_token().is_cancelled() {
                return Err(Error::new(ErrorCode::CANCELLED, "asked to stop"));
            }
            self.crash.write().await;
            self.world.change(|contents| {
                let unit = contents.units.entry(job.unit.unit.clone()).or_default();
                match wanted.get(name) {
                    Some(value) => drop(unit.resources.insert(name.clone(), value.clone())),
                    None => drop(unit.resources.remove(name)),
                }
            });
        }
        self.crash.write().await;
        self.world.change(|contents| {
            let unit = contents.units.entry(job.unit.unit.clone()).or_default();
            if unit.history.last() != Some(&unit.resources) {
                unit.history.push(unit.resources.clone());
            }
        });
        Ok(())
    }

    async fn keep(&self, job: &UnitJob) {
        let Some(run) = job.run else {
            return;
        };
        let key = (run, job.unit.unit.clone());
        if self.world.read(|contents| contents.kept.contains_key(&key)) {
            return;
        }
        let before = self.recorded(&job.unit.unit).unwrap_or_default();
        self.crash.write().await;
        self.world
            .change(|contents| contents.kept.insert(key, before));
    }

    fn target(&self, job: &UnitJob, point: RestorePoint) -> Option<UnitResources> {
        let recorded = self.recorded(&job.unit.unit).unwrap_or_default();
        match point {
            RestorePoint::Nothing => Some(UnitResources::new()),
            RestorePoint::Version(number) => recorded.history.get(number.checked_sub(1)?).cloned(),
            RestorePoint::BeforeRun(run) => {
                let key = (run, job.unit.unit.clone());
                let kept = self.world.read(|contents| contents.kept.get(&key).cloned());
                kept.map(|unit| unit.resources)
            }
        }
    }
}

#[async_trait]
impl UnitEngine for MemoryEngine {
    async fn run(&self, job: &UnitJob) -> Result<UnitReport, UnitFailure> {
        let component = &job.unit.component;
        let fault = self
            .world
            .read(|contents| contents.faults.get(component).copied());
        let fault = fault.unwrap_or_default();
        self.world
            .change(|contents| contents.jobs.push(job.clone()));
        let mut report = UnitReport::default();
        match job.operation {
            UnitOperation::Preview => {
                let now = self.recorded(&job.unit.unit).unwrap_or_default().resources;
                let wanted = self.wanted(job);
                let changed = wanted
                    .iter()
                    .filter(|(name, value)| now.get(*name) != Some(*value));
                let step = |(name, _): (&String, &String)| (name.clone(), "update".to_owned());
                report.steps = changed.map(step).collect();
                if !report.steps.is_empty() {
                    // What it will be is known when it is.
                    report
                        .outputs
                        .insert("out".to_owned(), LookupValue::Unknown);
                    return Ok(report);
                }
            }
            UnitOperation::Deploy => {
                self.keep(job).await;
                let wanted = self.wanted(job);
                if let Some(time) = fault.takes {
                    tokio::time::sleep(time).await;
                }
                let changed = self.change(job, &wanted, fault.deploy).await;
                changed.map_err(|error| UnitFailure {
                    trigger: fault
                        .trigger
                        .filter(|_| error.code() != ErrorCode::CANCELLED),
                    ..UnitFailure::from(error)
                })?;
                report.resources = wanted.len() as u64;
            }
            UnitOperation::Destroy => {
                self.change(job, &UnitResources::new(), fault.destroy)
                    .await?;
            }
            UnitOperation::Refresh => {
                let seen = |contents: &WorldContents| contents.drifted.get(&job.unit.unit).cloned();
                if let Some(seen) = self.world.read(seen) {
                    self.change(job, &seen, false).await?;
                }
            }
            UnitOperation::Restore(point) => {
                if let Some(target) = self.target(job, point) {
                    self.change(job, &target, false).await?;
                }
                if fault.rollback {
                    let error = Error::new(ErrorCode::ROLLBACK_UNPROVED, "it will not go back");
                    return Err(error.into());
                }
                if fault.stale {
                    report.stale = vec!["second names what first was".to_owned()];
                }
            }
        }
        report.outputs = self.outputs(&job.unit).await?.unwrap_or_default();
        Ok(report)
    }

    async fn outputs(&self, unit: &UnitAddress) -> Result<Option<BTreeMap<String, LookupValue>>> {
        let value = |resources: &UnitResources| {
            let made = resources.get("second").cloned().unwrap_or_default();
            let said = made.split_once("out=").map(|(_, said)| said.to_owned());
            let said = said.and_then(|said| said.split(' ').next().map(str::to_owned));
            let value = said.unwrap_or(made);
            BTreeMap::from([("out".to_owned(), LookupValue::open(value))])
        };
        Ok(self.recorded(&unit.unit).map(|unit| value(&unit.resources)))
    }

    async fn state_version(&self, unit: &UnitAddress) -> Result<Option<String>> {
        let recorded = self.recorded(&unit.unit);
        let text = |unit: RecordedUnit| {
            let resources = unit.resources.iter();
            let parts: Vec<_> = resources
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            parts.join(";")
        };
        Ok(recorded.map(text))
    }

    async fn history_length(&self, unit: &UnitAddress) -> Result<usize> {
        Ok(self
            .recorded(&unit.unit)
            .map_or(0, |unit| unit.history.len()))
    }

    fn versions(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("engine".to_owned(), "1".to_owned())])
    }
}
