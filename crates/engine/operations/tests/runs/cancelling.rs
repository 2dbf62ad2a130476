//! Operations that were asked to stop.

use nimbus_core::{ErrorCode, StackOperation};
use nimbus_engine_operations::{Cancellation, OperationOptions};
use nimbus_engine_ports::EngineEvent;

use crate::support::{RanOperation, Site, bucket};

/// Asks so many times to stop when the step for `a` is about to run.
async fn stopped(site: &Site, requests: usize) -> RanOperation {
    let cancellation = Cancellation::new();
    let asked = cancellation.clone();
    let on_event = move |event: &EngineEvent| {
        if let EngineEvent::ResourcePre { step, .. } = event
            && step.urn.name() == "a"
        {
            for _ in 0..requests {
                asked.request();
            }
        }
    };
    let on_event = Box::new(on_event);
    let options = OperationOptions::default();
    site.watched(
        StackOperation::Update,
        options,
        &cancellation,
        Some(on_event),
    )
    .await
}

#[tokio::test]
async fn the_first_request_lets_running_steps_end_and_records_them() {
    let site = Site::new();
    site.program([bucket("a"), bucket("b")]);
    let ran = stopped(&site, 1).await;
    assert_eq!(ran.error().code(), ErrorCode::CANCELLED);
    assert!(
        ran.events
            .iter()
            .any(|event| matches!(event, EngineEvent::Cancelled))
    );
    let stack = site.stack().await;
    assert_eq!(stack.interrupted().await.unwrap(), None);
    let state = stack.load_unverified().await.unwrap().snapshot.unwrap();
    let made = site.launcher.cloud.ids().len();
    let recorded = state
        .resources
        .iter()
        .filter(|resource| resource.id.is_some() && resource.urn.type_() == "pkg:index:Bucket");
    assert_eq!(recorded.count(), made, "what was made is recorded");
    assert!(made < 2, "nothing new was started");
    assert!(state.pending_operations.is_empty());
    site.up().await.succeeded();
    assert_eq!(site.launcher.cloud.ids().len(), 2);
}

#[tokio::test]
async fn the_second_request_leaves_the_journal_to_the_next_run() {
    let site = Site::new();
    site.program([bucket("a"), bucket("b")]);
    let ran = stopped(&site, 2).await;
    assert_eq!(ran.error().code(), ErrorCode::CANCELLED);
    let stack = site.stack().await;
    assert_eq!(
        stack.holder().await.unwrap(),
        None,
        "the lease was given back"
    );
    let options = OperationOptions {
        allow_unknown: true,
        ..OperationOptions::default()
    };
    let ran = site.run(StackOperation::Update, options).await;
    assert_eq!(ran.succeeded().recovered.len(), 1);
}
