//! Operations that were cut off, and what the next one makes of it.

use std::fs;
use std::sync::Arc;

use nimbus_core::{ErrorCode, StackOperation};
use nimbus_engine_model::{
    ActId, JournalEntry, OperationKind, PendingOperation, ResourceState, Urn,
};
use nimbus_engine_operations::OperationOptions;

use crate::support::{Site, bucket};

/// An operation that began to create an object and was never heard of again.
async fn interrupted() -> Site {
    let site = Site::new();
    site.program([bucket("a")]);
    site.up().await.succeeded();
    let session = site.hold().await;
    let urn = Urn::new("test", "proj", None, "pkg:index:Bucket", "lost");
    let entry = JournalEntry::Begin {
        act: ActId(1),
        operation: PendingOperation {
            kind: OperationKind::Creating,
            resource: Arc::new(ResourceState::new(urn, true)),
        },
    };
    let appended = session.journal().append(entry).await;
    appended.expect("the journal can be written");
    drop(session);
    site
}

#[tokio::test]
async fn a_preview_tells_and_touches_nothing() {
    let site = interrupted().await;
    let ran = site.preview().await;
    ran.succeeded();
    let told = ran.messages()[0];
    assert!(
        told.contains("creating") && told.contains("::lost"),
        "{told}"
    );
    assert!(site.stack().await.interrupted().await.unwrap().is_some());
}

#[tokio::test]
async fn an_unknown_outcome_stops_the_next_update_until_somebody_decides() {
    let site = interrupted().await;
    let ran = site.up().await;
    assert_eq!(ran.error().code(), ErrorCode::OUTCOMES_UNKNOWN);
    assert!(ran.error().message().contains("::lost"), "{}", ran.error());
    assert!(
        ran.messages()[0].contains("did not finish"),
        "{:?}",
        ran.messages()
    );
    let stack = site.stack().await;
    assert_eq!(
        stack.holder().await.unwrap(),
        None,
        "the lease was given back"
    );
    assert_eq!(
        stack.interrupted().await.unwrap(),
        None,
        "the journal is part of the state"
    );

    let options = OperationOptions {
        allow_unknown: true,
        ..OperationOptions::default()
    };
    site.run(StackOperation::Update, options).await.succeeded();
    let state = stack.load_unverified().await.unwrap().snapshot.unwrap();
    assert_eq!(state.pending_operations.len(), 1, "the question stays open");
}

#[tokio::test]
async fn a_refresh_keeps_unknown_creates_until_somebody_has_looked() {
    let site = interrupted().await;
    let refresh = |clear| OperationOptions {
        clear_pending_creates: clear,
        ..OperationOptions::default()
    };
    let ran = site.run(StackOperation::Refresh, refresh(false)).await;
    assert_eq!(ran.succeeded().recovered.len(), 1);
    let stack = site.stack().await;
    let pending = async || {
        let state = stack.load_unverified().await.unwrap().snapshot.unwrap();
        state.pending_operations.len()
    };
    assert_eq!(pending().await, 1);
    site.run(StackOperation::Refresh, refresh(true))
        .await
        .succeeded();
    assert_eq!(pending().await, 0);
    site.up().await.succeeded();
}

#[tokio::test]
async fn a_state_that_cannot_be_saved_is_rebuilt_from_its_journal() {
    let site = Site::new();
    site.program([bucket("a")]);
    site.up().await.succeeded();
    site.program([bucket("a"), bucket("b")]);
    let folder = site.state_folder().join(".pulumi/stacks/proj");
    let aside = site.state_folder().join("aside");
    let (from, to) = (folder.clone(), aside.clone());
    // A file where the folder was: nothing can be written there.
    site.before_saving(move || {
        fs::rename(&from, &to).unwrap();
        fs::write(&from, "").unwrap();
    });
    let ran = site.up().await;
    assert_eq!(ran.error().code(), ErrorCode::STATE_NOT_SAVED);
    assert_eq!(site.launcher.cloud.ids().len(), 2, "the object was made");
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();

    let ran = site.up().await;
    let report = ran.succeeded();
    assert_eq!(report.recovered.len(), 1);
    assert!(
        report.recovered[0].unknown.is_empty(),
        "every outcome was recorded"
    );
    assert!(!report.has_changes(), "nothing had to be made again");
    assert_eq!(site.launcher.cloud.ids().len(), 2);
}
