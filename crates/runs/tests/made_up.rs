//! Values that are made up once: a deploy that is held to a plan has those that the plan was made with.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod shared;

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_core::{ComponentName, Error, ErrorCode};
use nimbus_orchestrator::{OnFailure, RunAction, RunResult, UnitConfigValue, UnitMemory};
use nimbus_runs::{RunRequest, RunSession, SealedPlan};
use nimbus_runs_testing::{Crash, RecordedWorld};

use crate::shared::interrupting::{interrupted_everywhere, sealed_request};
use crate::shared::{DEV, request, start};

/// `web` has a value that is made up.
fn world() -> RecordedWorld {
    let manifest = "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {deploymentId: D1, organization: o, \
        project: p, template: t}\nspec:\n  environments: {dev: {enabled: true, account: '111111111111', region: \
        eu-west-1}}\n  stacks:\n    web: {enabled: true, config: {dev: {id: '{{RUNTIME:calculate:uuid}}'}}}\n";
    RecordedWorld::with_manifest(manifest, &[("web", "v1")])
}

fn web() -> ComponentName {
    "web".parse().unwrap()
}

/// What the engine was given, job by job.
fn ids(world: &RecordedWorld) -> Vec<UnitConfigValue> {
    let jobs = world.contents().jobs;
    let ids = jobs.iter().map(|job| job.config["web:id"].clone());
    ids.collect()
}

/// Another value than any that is made up in these tests.
fn other() -> UnitMemory {
    UnitMemory {
        made: BTreeMap::from([("uuid".to_owned(), "other".to_owned())]),
        ..UnitMemory::default()
    }
}

async fn refusal(world: &RecordedWorld, asked: RunRequest) -> Error {
    let ports = Arc::new(world.ports(&Crash::never()));
    let session = RunSession::open(ports, asked, "test", None).await.unwrap();
    match session.plan().await {
        Ok(_) => panic!("the plan was taken"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_first_deploy_has_what_its_plan_made_up() {
    let world = world();
    let mut asked = sealed_request(&world, OnFailure::Hold).await;
    assert!(
        world.contents().memories.is_empty(),
        "a preview keeps nothing"
    );
    // By way of a file, or of a table.
    let bytes = asked.choices.sealed_plan.unwrap().to_bytes();
    asked.choices.sealed_plan = Some(SealedPlan::from_bytes("plan", &bytes).unwrap());
    let done = start(&world, asked, &Crash::never()).await.unwrap();
    assert_eq!(done.result, RunResult::Succeeded);
    let shown = ids(&world)[0].clone();
    assert!(ids(&world).iter().all(|id| *id == shown), "{shown:?}");
    // And keeps it.
    world.change(|contents| contents.programs.insert(web(), "v2".to_owned()));
    let next = request(RunAction::Deploy, OnFailure::Hold, None);
    start(&world, next, &Crash::never()).await.unwrap();
    assert_eq!(ids(&world).last(), Some(&shown));
}

#[tokio::test]
async fn a_value_that_somebody_else_kept_meanwhile_is_not_replaced() {
    let world = world();
    let asked = sealed_request(&world, OnFailure::Hold).await;
    world.change(|contents| contents.memories.insert((DEV, web()), other()));
    let error = refusal(&world, asked).await;
    assert_eq!(error.code(), ErrorCode::PLAN_MOVED);
    let message = error.message();
    assert!(message.contains("configuration (web:id)"), "{message}");
    assert_eq!(world.contents().memories[&(DEV, web())], other());
}

#[tokio::test]
async fn a_plan_with_a_value_that_was_kept_does_not_fit_once_it_is_forgotten() {
    let world = world();
    world.change(|contents| contents.memories.insert((DEV, web()), other()));
    let asked = sealed_request(&world, OnFailure::Hold).await;
    let sealed = asked.choices.sealed_plan.as_ref().unwrap();
    assert!(sealed.units["web"].made.is_empty(), "it is kept elsewhere");
    world.change(|contents| contents.memories.clear());
    let error = refusal(&world, asked).await;
    assert_eq!(error.code(), ErrorCode::PLAN_MOVED);
}

#[tokio::test]
async fn whoever_goes_on_with_a_planned_deploy_has_what_the_plan_made_up() {
    let world = world();
    let asked = sealed_request(&world, OnFailure::Hold).await;
    interrupted_everywhere(&world, &asked, "made up").await;
}
