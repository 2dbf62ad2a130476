//! Hooks, as the deployment runs them.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::HookKind;
use nimbus_engine_monitor::{ErrorHookCallback, Hook, HookCallback, HookRegistry};
use nimbus_engine_ports::{HookError, HookRequest, HookRunner, Severity};
use nimbus_engine_testing::RecordingSink;

use crate::support::urn;

struct Answering(Result<(), String>);

#[async_trait]
impl HookCallback for Answering {
    async fn run(&self, _: &HookRequest) -> Result<(), String> {
        self.0.clone()
    }
}

#[async_trait]
impl ErrorHookCallback for Answering {
    async fn retry(&self, _: &HookRequest, errors: &[String]) -> Result<bool, String> {
        self.0.clone().map(|()| errors.len() < 3)
    }
}

fn hook(answer: Result<(), &str>, ignore_errors: bool) -> Hook {
    Hook {
        callback: Arc::new(Answering(answer.map_err(str::to_owned))),
        on_dry_run: false,
        ignore_errors,
    }
}

fn request(hook: &str) -> HookRequest {
    HookRequest {
        hook: hook.to_owned(),
        kind: HookKind::BeforeCreate,
        urn: urn("bucket"),
        id: None,
        name: "bucket".to_owned(),
        type_: "aws:s3:Bucket".to_owned(),
        new_inputs: None,
        old_inputs: None,
        new_outputs: None,
        old_outputs: None,
    }
}

fn registry() -> (HookRegistry, Arc<RecordingSink>) {
    let events = Arc::new(RecordingSink::default());
    (HookRegistry::new(events.clone()), events)
}

#[tokio::test]
async fn hooks_run_by_name_and_say_why_they_fail() {
    let (hooks, _events) = registry();
    hooks
        .register("good", hook(Ok(()), false))
        .expect("a free name");
    hooks
        .register("bad", hook(Err("no"), false))
        .expect("a free name");
    assert!(hooks.run(request("good")).await.is_ok());
    let failed = hooks.run(request("bad")).await.expect_err("it fails");
    assert_eq!(failed.to_string(), "hook bad failed: no");
    let absent = hooks.run(request("absent")).await;
    assert!(matches!(absent, Err(HookError::NotFound { .. })));
    assert_eq!(hooks.runs_on_dry_run("good"), Some(false));
    assert_eq!(hooks.runs_on_dry_run("absent"), None);
}

#[tokio::test]
async fn an_ignored_failure_is_a_warning() {
    let (hooks, events) = registry();
    hooks
        .register("lenient", hook(Err("no"), true))
        .expect("a free name");
    assert!(hooks.run(request("lenient")).await.is_ok());
    assert_eq!(
        events.messages(Severity::Warning),
        ["hook lenient failed: no"]
    );
}

#[tokio::test]
async fn an_error_hook_decides_about_another_try() {
    let (hooks, _events) = registry();
    hooks
        .register_error_hook("again", Arc::new(Answering(Ok(()))))
        .expect("a free name");
    let errors = vec!["e".to_owned()];
    assert!(
        hooks
            .retry(request("again"), &errors)
            .await
            .expect("an answer")
    );
    let errors = vec!["e".to_owned(); 3];
    assert!(
        !hooks
            .retry(request("again"), &errors)
            .await
            .expect("an answer")
    );
    let wrong_kind = hooks.run(request("again")).await;
    assert!(matches!(wrong_kind, Err(HookError::NotFound { .. })));
}

#[test]
fn a_name_is_taken_once() {
    let (hooks, _events) = registry();
    hooks
        .register("h", hook(Ok(()), false))
        .expect("a free name");
    assert!(hooks.register("h", hook(Ok(()), false)).is_err());
    assert!(
        hooks
            .register_error_hook("h", Arc::new(Answering(Ok(()))))
            .is_err()
    );
    assert!(hooks.register("", hook(Ok(()), false)).is_err());
}
