//! Units of a deployment: what runs, what is skipped, and what they tell each other.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::sync::Arc;

use nimbus_core::{ComponentName, EnvironmentName, ErrorCode};
use nimbus_orchestrator::{RunReason, UnitConfigValue};
use nimbus_runs::{
    DeployedUnit, RestorePoint, RestoreTarget, RotateRequest, RunContext, rotate, take_environment,
};
use nimbus_runs_testing::{Crash, RecordedWorld, UnitFault};
use serde_json::json;

/// `app` uses what `network` outputs, and a value that is made up once.
fn manifest(size: u32) -> String {
    format!(
        "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {{deploymentId: D1, organization: \
         o, project: p, template: t}}\nspec:\n  environments: {{dev: {{enabled: true, account: \
         '111111111111', region: eu-west-1}}}}\n  stacks:\n    network: {{enabled: true, config: \
         {{dev: {{size: {size}}}}}}}\n    app: {{enabled: true, dependencies: [network], config: \
         {{dev: {{vpc: '{{{{RUNTIME:network:out}}}}', id: '{{{{RUNTIME:calculate:uuid}}}}'}}}}}}\n"
    )
}

struct Platform(RecordedWorld);

impl Platform {
    fn new() -> Self {
        let programs = [("network", "out=vpc-1"), ("app", "v1")];
        Self(RecordedWorld::with_manifest(&manifest(10), &programs))
    }

    /// A new run of the same deployment.
    async fn context(&self) -> RunContext {
        let ports = Arc::new(self.0.ports(&Crash::never()));
        let loaded = RunContext::load(ports, EnvironmentName::DEV).await;
        loaded.unwrap()
    }

    /// Deploys both; returns which ran.
    async fn deploy(&self) -> Vec<&'static str> {
        let context = self.context().await;
        let mut ran = Vec::new();
        for name in ["network", "app"] {
            let deployed = context.deploy(&component(name), false).await;
            if let DeployedUnit::Ran { .. } = deployed.unwrap() {
                ran.push(name);
            }
        }
        ran
    }

    fn program(&self, name: &str, code: &str) {
        self.0.change(|contents| {
            contents.programs.insert(component(name), code.to_owned());
        });
    }
}

fn component(name: &str) -> ComponentName {
    name.parse().unwrap()
}

fn known(value: serde_json::Value) -> UnitConfigValue {
    UnitConfigValue::Known {
        value,
        secret: false,
    }
}

#[tokio::test]
async fn the_first_run_does_everything_and_the_second_nothing() {
    let platform = Platform::new();
    assert_eq!(platform.deploy().await, ["network", "app"]);
    assert_eq!(platform.deploy().await, Vec::<&str>::new());
    let jobs = platform.0.contents().jobs;
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[1].unit.unit, "D1-app-dev");
    assert_eq!(jobs[1].config["app:vpc"], known(json!("vpc-1")));
    assert_eq!(jobs[1].config["aws:region"], known(json!("eu-west-1")));
}

#[tokio::test]
async fn a_change_runs_its_unit_and_others_only_if_the_values_they_use_changed() {
    let platform = Platform::new();
    platform.deploy().await;
    platform
        .0
        .change(|contents| contents.manifest = manifest(15));
    assert_eq!(
        platform.deploy().await,
        ["network"],
        "the output is the same"
    );
    platform.program("network", "out=vpc-2");
    assert_eq!(platform.deploy().await, ["network", "app"]);
}

#[tokio::test]
async fn code_counts_and_only_that_of_the_unit() {
    let platform = Platform::new();
    platform.deploy().await;
    platform.program("app", "v2");
    let context = platform.context().await;
    let reason = context.why(&component("app")).await.unwrap().unwrap();
    assert_eq!(reason.to_string(), "file index.ts changed");
    assert_eq!(context.why(&component("network")).await.unwrap(), None);
    assert_eq!(platform.deploy().await, ["app"]);
}

#[tokio::test]
async fn a_failed_unit_runs_again_although_nothing_changed() {
    let platform = Platform::new();
    platform.deploy().await;
    platform.program("app", "v2");
    let fault = UnitFault {
        deploy: true,
        ..UnitFault::default()
    };
    platform
        .0
        .change(|contents| contents.faults.insert(component("app"), fault));
    let context = platform.context().await;
    context.deploy(&component("network"), false).await.unwrap();
    assert!(context.deploy(&component("app"), false).await.is_err());
    platform.0.change(|contents| contents.faults.clear());
    let why = platform.context().await.why(&component("app")).await;
    assert_eq!(why.unwrap(), Some(RunReason::LastRunFailed));
    assert_eq!(platform.deploy().await, ["app"]);
}

#[tokio::test]
async fn made_up_values_stay_the_same() {
    let platform = Platform::new();
    platform.deploy().await;
    let context = platform.context().await;
    context.deploy(&component("app"), true).await.unwrap();
    let jobs = platform.0.contents().jobs;
    let ids: Vec<_> = jobs
        .iter()
        .filter_map(|job| job.config.get("app:id"))
        .collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_preview_hands_planned_outputs_on_and_unknown_stays_unknown() {
    let platform = Platform::new();
    let context = platform.context().await;
    context.preview(&component("network")).await.unwrap();
    context.preview(&component("app")).await.unwrap();
    let jobs = platform.0.contents().jobs;
    assert_eq!(jobs[1].config["app:vpc"], UnitConfigValue::Unknown);
}

#[tokio::test]
async fn a_unit_whose_need_was_never_deployed_says_so() {
    let platform = Platform::new();
    let context = platform.context().await;
    let failure = context.deploy(&component("app"), false).await.unwrap_err();
    assert_eq!(failure.error.code(), ErrorCode::RESOLUTION_FAILED);
    let message = failure.error.message();
    assert!(
        message.contains("{{RUNTIME:network:out}} does not exist"),
        "{message}"
    );
}

#[tokio::test]
async fn destroying_and_rolling_back_make_the_next_deploy_run() {
    let platform = Platform::new();
    platform.deploy().await;
    let context = platform.context().await;
    context.destroy(&component("app")).await.unwrap();
    assert_eq!(platform.deploy().await, ["app"]);
    let context = platform.context().await;
    // Nothing is recorded of what that state was made from, so nothing can be proved.
    let unknown = RestoreTarget::of(RestorePoint::Version(1));
    context
        .restore(&component("network"), unknown)
        .await
        .unwrap();
    assert_eq!(platform.deploy().await, ["network"]);
}

#[tokio::test]
async fn values_are_forgotten_only_while_nobody_deploys() {
    let platform = Platform::new();
    platform.deploy().await;
    let ports = platform.0.ports(&Crash::never());
    let app = component("app");
    let request = RotateRequest {
        component: &app,
        environment: EnvironmentName::DEV,
        only: Some("uuid"),
    };
    let forget = || {
        rotate(
            ports.memories.as_ref(),
            ports.locks.as_ref(),
            request,
            "test",
        )
    };
    // A deploy holds the environment, and would write its own memory afterwards.
    let deploying = take_environment(ports.locks.as_ref(), EnvironmentName::DEV, "deploy", None);
    let deploying = deploying.await.unwrap();
    assert_eq!(
        forget().await.unwrap_err().code(),
        ErrorCode::ENVIRONMENT_LOCKED
    );
    drop(deploying);
    assert_eq!(forget().await.unwrap(), ["uuid"]);
    assert_eq!(
        forget().await.unwrap_err().code(),
        ErrorCode::CONFIG_NOT_SET
    );
}

#[tokio::test]
async fn a_destroy_that_failed_half_way_leaves_nothing_to_skip() {
    let platform = Platform::new();
    platform.deploy().await;
    let fault = |destroy| UnitFault {
        destroy,
        ..UnitFault::default()
    };
    let set = |fault| {
        platform
            .0
            .change(|contents| contents.faults.insert(component("app"), fault));
    };
    set(fault(true));
    let failed = platform.context().await.destroy(&component("app")).await;
    assert!(failed.is_err());
    set(fault(false));
    assert_eq!(platform.deploy().await, ["app"], "half of it is gone");
}
