//! Units of a deployment: what runs, what is skipped, and what they tell each other.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::fingerprint::{DigestKey, Reason};
use nimbus_orchestrator::memory::Memory;
use nimbus_orchestrator::render::{Answers, render};
use nimbus_orchestrator::resolve::{Answer, LookupError, Resolved};
use nimbus_orchestrator::unit::{
    Board, Deployed, Job, JobAction, JobError, JobReport, Outside, UnitEngine,
};
use nimbus_orchestrator::workspace::Workspace;
use serde_json::json;
use tempfile::TempDir;

/// Deploys into memory. Networks of the same size class have the same `vpcId`.
#[derive(Default)]
struct FakeEngine {
    jobs: Mutex<Vec<Job>>,
    state: Mutex<BTreeMap<String, BTreeMap<String, Answer>>>,
    fails: Mutex<Vec<String>>,
}

#[async_trait]
impl UnitEngine for FakeEngine {
    async fn run(&self, job: &Job) -> Result<JobReport, JobError> {
        self.jobs.lock().unwrap().push(job.clone());
        if self.fails.lock().unwrap().contains(&job.stack) {
            return Err(Error::new(ErrorCode::INTERNAL, "no").into());
        }
        let size = match job.config.get("network:size") {
            Some(Resolved::Known { value, .. }) => value.as_i64().unwrap_or_default(),
            _ => 0,
        };
        let vpc = match job.action {
            JobAction::Preview => Answer::Unknown,
            _ => Answer::open(format!("vpc-{}", size / 10)),
        };
        let outputs = BTreeMap::from([("vpcId".to_owned(), vpc)]);
        if job.action == JobAction::Deploy {
            self.state
                .lock()
                .unwrap()
                .insert(job.unit.clone(), outputs.clone());
        }
        Ok(JobReport {
            outputs,
            ..JobReport::default()
        })
    }

    async fn outputs(&self, _: &str, unit: &str) -> Result<Option<BTreeMap<String, Answer>>> {
        Ok(self.state.lock().unwrap().get(unit).cloned())
    }

    async fn state_version(&self, _: &str, unit: &str) -> Result<Option<String>> {
        let state = self.state.lock().unwrap();
        Ok(state.get(unit).map(|outputs| format!("{outputs:?}")))
    }

    async fn history_length(&self, _: &str, _: &str) -> Result<usize> {
        Ok(0)
    }

    fn versions(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("engine".to_owned(), "1".to_owned())])
    }
}

struct Nothing;

#[async_trait]
impl Outside for Nothing {
    async fn aws(&self, _: &str, _: &str, _: &[String]) -> Result<Answer, LookupError> {
        Ok(Answer::Absent)
    }

    async fn env(&self, _: &str) -> Result<Answer, LookupError> {
        Ok(Answer::Absent)
    }

    async fn calculate(
        &self,
        _: &str,
        _: &[String],
        memory: &mut Memory,
    ) -> Result<Answer, LookupError> {
        let made = memory.made.len() + 1;
        let value = memory
            .made
            .entry("one".to_owned())
            .or_insert_with(|| made.to_string());
        Ok(Answer::open(value.clone()))
    }
}

struct Place {
    temp: TempDir,
    engine: Arc<FakeEngine>,
    size: i64,
}

const NETWORK: &str =
    "name: network\nconfig: {size: '{{SIZE}}'}\nvariables: {SIZE: {default: 10}}\n";
const APP: &str = "name: app\ndependencies: [network]\n\
    config: {vpc: '{{RUNTIME:network:vpcId}}', id: '{{RUNTIME:calculate:uuid}}'}\n";
const TWO: &str = "name: two\nenvironments: {dev: {region: eu-west-1, account: '1'}}\n\
    stacks: {network: , app: }\n";

impl Place {
    fn new() -> Self {
        let place = Self {
            temp: TempDir::new().unwrap(),
            engine: Arc::default(),
            size: 10,
        };
        place.write("tools/templates/config/network.yaml", NETWORK);
        place.write("tools/templates/config/app.yaml", APP);
        place.write("tools/templates/default/two.yaml", TWO);
        place.write("stacks/network/src/index.ts", "network");
        place.write("stacks/app/src/index.ts", "app");
        fs::create_dir_all(place.temp.path().join("deployment")).unwrap();
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.temp.path().join("cloud").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A new run of the same deployment.
    fn board(&self) -> Board {
        let workspace = Workspace::find(self.temp.path()).unwrap();
        let answers = Answers {
            organization: "o".to_owned(),
            project: "p".to_owned(),
            template: "two".to_owned(),
            variables: BTreeMap::from([("SIZE".to_owned(), self.size.to_string())]),
            ..Answers::default()
        };
        let library = workspace.library().unwrap();
        let manifest = render(&library, &"D1".parse().unwrap(), &answers)
            .unwrap()
            .manifest;
        let directory = self.temp.path().join("deployment");
        let engine = Arc::clone(&self.engine) as Arc<dyn UnitEngine>;
        Board::new(
            workspace,
            directory,
            manifest,
            Environment::Dev,
            engine,
            Arc::new(Nothing),
            DigestKey::new([7; DigestKey::LENGTH]),
        )
    }

    /// Deploys both; returns which ran.
    async fn deploy(&self) -> Vec<&'static str> {
        let board = self.board();
        let mut ran = Vec::new();
        for stack in ["network", "app"] {
            if let Deployed::Ran { .. } = board.deploy(stack, false).await.unwrap() {
                ran.push(stack);
            }
        }
        ran
    }
}

fn known(value: serde_json::Value) -> Resolved {
    Resolved::Known {
        value,
        secret: false,
    }
}

#[tokio::test]
async fn the_first_run_does_everything_and_the_second_nothing() {
    let place = Place::new();
    assert_eq!(place.deploy().await, ["network", "app"]);
    assert_eq!(place.deploy().await, Vec::<&str>::new());
    let jobs = place.engine.jobs.lock().unwrap().clone();
    assert_eq!(jobs[1].unit, "D1-app-dev");
    assert_eq!(jobs[1].config["app:vpc"], known(json!("vpc-1")));
    assert_eq!(jobs[1].config["aws:region"], known(json!("eu-west-1")));
}

#[tokio::test]
async fn a_change_runs_its_unit_and_others_only_if_the_values_they_use_changed() {
    let mut place = Place::new();
    place.deploy().await;
    place.size = 15;
    assert_eq!(place.deploy().await, ["network"], "the output is the same");
    place.size = 25;
    assert_eq!(place.deploy().await, ["network", "app"]);
}

#[tokio::test]
async fn code_counts_and_only_that_of_the_unit() {
    let place = Place::new();
    place.deploy().await;
    place.write("stacks/app/src/index.ts", "other");
    let reason = place.board().why("app").await.unwrap().unwrap();
    assert_eq!(reason.to_string(), "file index.ts changed");
    assert_eq!(place.board().why("network").await.unwrap(), None);
    assert_eq!(place.deploy().await, ["app"]);
}

#[tokio::test]
async fn a_failed_unit_runs_again_although_nothing_changed() {
    let place = Place::new();
    place.deploy().await;
    place.write("stacks/app/src/index.ts", "other");
    place.engine.fails.lock().unwrap().push("app".to_owned());
    let board = place.board();
    board.deploy("network", false).await.unwrap();
    assert!(board.deploy("app", false).await.is_err());
    place.engine.fails.lock().unwrap().clear();
    assert_eq!(
        place.board().why("app").await.unwrap(),
        Some(Reason::LastRunFailed)
    );
    assert_eq!(place.deploy().await, ["app"]);
}

#[tokio::test]
async fn made_up_values_stay_the_same() {
    let place = Place::new();
    place.deploy().await;
    place.board().deploy("app", true).await.unwrap();
    let jobs = place.engine.jobs.lock().unwrap();
    let ids: Vec<_> = jobs
        .iter()
        .filter_map(|job| job.config.get("app:id"))
        .collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_preview_hands_planned_outputs_on_and_unknown_stays_unknown() {
    let place = Place::new();
    let board = place.board();
    board.preview("network").await.unwrap();
    board.preview("app").await.unwrap();
    let jobs = place.engine.jobs.lock().unwrap();
    assert_eq!(jobs[1].config["app:vpc"], Resolved::Unknown);
}

#[tokio::test]
async fn a_unit_whose_need_was_never_deployed_says_so() {
    let place = Place::new();
    let error = place.board().deploy("app", false).await.unwrap_err();
    assert_eq!(error.error.code(), ErrorCode::RESOLUTION_FAILED);
    assert!(
        error
            .error
            .message()
            .contains("{{RUNTIME:network:vpcId}} does not exist"),
        "{error}"
    );
}

#[tokio::test]
async fn destroying_and_rolling_back_make_the_next_deploy_run() {
    let place = Place::new();
    place.deploy().await;
    place.board().destroy("app").await.unwrap();
    assert_eq!(place.deploy().await, ["app"]);
    place.board().roll_back("network").await.unwrap();
    assert_eq!(place.deploy().await, ["network"]);
}
