//! Runs that are held to a saved plan.

use nimbus_core::{ErrorCode, StackOperation};
use nimbus_engine_model::StepOp;
use nimbus_engine_operations::OperationOptions;

use crate::support::{RanOperation, Site, bucket};

async fn save(site: &Site) -> RanOperation {
    let options = OperationOptions {
        dry_run: true,
        save_plan: Some(site.path("plan.json")),
        ..OperationOptions::default()
    };
    site.run(StackOperation::Update, options).await
}

async fn apply(site: &Site) -> RanOperation {
    let options = OperationOptions {
        plan: Some(site.path("plan.json")),
        ..OperationOptions::default()
    };
    site.run(StackOperation::Update, options).await
}

#[tokio::test]
async fn a_plan_is_carried_out_and_then_no_longer_fits() {
    let site = Site::new();
    site.program([bucket("a")]);
    site.up().await.succeeded();
    site.program([bucket("a"), bucket("b")]);
    save(&site).await.succeeded();
    let ran = apply(&site).await;
    assert_eq!(ran.succeeded().changes[&StepOp::Create], 1);
    let again = apply(&site).await;
    assert_eq!(again.error().code(), ErrorCode::PLAN_MOVED);
    assert!(
        again.error().message().contains("state has changed"),
        "{}",
        again.error()
    );
    let stack = site.stack().await;
    assert_eq!(
        stack.holder().await.unwrap(),
        None,
        "a refused plan holds nothing"
    );
}

#[tokio::test]
async fn another_program_or_configuration_is_another_plan() {
    let site = Site::new();
    site.program([bucket("a")]);
    site.up().await.succeeded();
    save(&site).await.succeeded();
    site.write("index.ts", "export {}");
    let ran = apply(&site).await;
    assert!(
        ran.error().message().contains("program's files"),
        "{}",
        ran.error()
    );
    save(&site).await.succeeded();
    site.write("Pulumi.test.yaml", "config:\n  proj:size: 3\n");
    let ran = apply(&site).await;
    assert!(
        ran.error().message().contains("configuration has changed"),
        "{}",
        ran.error()
    );
    save(&site).await.succeeded();
    apply(&site).await.succeeded();
}

#[tokio::test]
async fn a_program_that_asks_for_more_than_planned_is_stopped() {
    let site = Site::new();
    site.program([bucket("a")]);
    site.up().await.succeeded();
    save(&site).await.succeeded();
    site.program([bucket("a"), bucket("b")]);
    let ran = apply(&site).await;
    assert_eq!(
        ran.error().code(),
        ErrorCode::PLAN_VIOLATED,
        "{}",
        ran.error()
    );
    assert_eq!(site.launcher.cloud.ids().len(), 1);
}
