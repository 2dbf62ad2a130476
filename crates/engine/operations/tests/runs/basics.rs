//! What each operation reads, does, writes and says.

use std::fs;

use nimbus_core::{ErrorCode, StackOperation};
use nimbus_engine_backend::{UpdateKind, UpdateResult};
use nimbus_engine_model::{PropertyValue, StepOp};
use nimbus_engine_monitor::StackReadError;
use nimbus_engine_operations::{ImportItem, OperationOptions};
use nimbus_engine_ports::{Diagnostic, EngineEvent, Severity};
use nimbus_engine_testing::ScriptedResource;

use crate::support::{Site, bucket, files};

#[tokio::test]
async fn a_preview_writes_nothing_at_all() {
    let site = Site::new();
    site.program([bucket("a")]);
    let ran = site.preview().await;
    assert_eq!(ran.succeeded().changes[&StepOp::Create], 2);
    assert!(ran.report().has_changes());
    assert!(ran.messages()[0].contains("organization/proj/test does not exist yet"));
    assert_eq!(files(&site.state_folder()), [] as [&str; 0]);
    assert!(site.launcher.cloud.ids().is_empty());
}

#[tokio::test]
async fn an_update_leaves_a_state_a_history_and_no_traces() {
    let site = Site::new();
    site.program([bucket("a")]);
    let ran = site.up().await;
    assert_eq!(ran.succeeded().changes[&StepOp::Create], 2);
    assert!(ran.report().version.is_some());
    assert!(matches!(
        ran.events.first(),
        Some(EngineEvent::Prelude { .. })
    ));
    assert!(matches!(ran.events.last(), Some(EngineEvent::Summary(_))));

    let stack = site.stack().await;
    assert_eq!(
        stack.holder().await.unwrap(),
        None,
        "the lease was given back"
    );
    assert_eq!(
        stack.interrupted().await.unwrap(),
        None,
        "the journal is compacted"
    );
    let history = stack.history().await.unwrap();
    assert_eq!(history.len(), 1);
    assert_eq!(history[0].update.kind, UpdateKind::Update);
    assert_eq!(history[0].update.result, UpdateResult::Succeeded);
    let changes = history[0].update.resource_changes.clone().unwrap();
    assert_eq!(changes["create"], 2);

    let again = site.up().await;
    assert!(!again.succeeded().has_changes());
    assert_eq!(site.launcher.cloud.ids().len(), 1);
}

#[tokio::test]
async fn what_was_done_before_a_failure_is_kept() {
    let site = Site::new();
    site.program([bucket("a"), bucket("b").depends_on("a")]);
    site.launcher.faults.lock().create_fails = vec!["b".into()];
    let ran = site.up().await;
    assert_eq!(ran.error().code(), ErrorCode::STEPS_FAILED);
    let stack = site.stack().await;
    let state = stack.load_unverified().await.unwrap().snapshot.unwrap();
    assert!(
        state
            .resources
            .iter()
            .any(|resource| resource.urn.name() == "a")
    );
    let history = stack.history().await.unwrap();
    assert_eq!(history[0].update.result, UpdateResult::Failed);
}

#[tokio::test]
async fn destroy_and_refresh_need_no_program_and_miss_a_missing_stack() {
    let site = Site::new();
    for operation in [StackOperation::Destroy, StackOperation::Refresh] {
        let ran = site.run(operation, OperationOptions::default()).await;
        assert_eq!(ran.error().code(), ErrorCode::STACK_NOT_FOUND);
    }
    site.program([bucket("a")]);
    site.up().await.succeeded();
    // Whatever the program says now, nobody asks it.
    site.program([bucket("a"), bucket("b")]);
    let id = site.launcher.cloud.ids().remove(0);
    site.launcher.cloud.vanish(&id);
    let options = OperationOptions {
        allow_mass_removal: true,
        ..OperationOptions::default()
    };
    let ran = site.run(StackOperation::Refresh, options).await;
    assert_eq!(ran.succeeded().changes[&StepOp::Delete], 1);
    let ran = site
        .run(StackOperation::Destroy, OperationOptions::default())
        .await;
    ran.succeeded();
    let state = site
        .stack()
        .await
        .load_unverified()
        .await
        .unwrap()
        .snapshot
        .unwrap();
    assert!(state.resources.is_empty());
}

#[tokio::test]
async fn existing_objects_are_imported_by_type_name_and_id() {
    let site = Site::new();
    let size = [("size".to_owned(), 4.0.into())];
    site.launcher
        .cloud
        .plant("b-7", "pkg:index:Bucket", size.into());
    let item = ImportItem {
        type_: "pkg:index:Bucket".into(),
        name: "old".into(),
        id: "b-7".into(),
        protect: true,
        ..ImportItem::default()
    };
    let ran = site
        .run(
            StackOperation::Import,
            OperationOptions {
                imports: vec![item],
                ..OperationOptions::default()
            },
        )
        .await;
    assert_eq!(ran.succeeded().changes[&StepOp::Import], 1);
    let state = site
        .stack()
        .await
        .load_unverified()
        .await
        .unwrap()
        .snapshot
        .unwrap();
    let imported = state
        .resources
        .iter()
        .find(|resource| resource.urn.name() == "old")
        .unwrap();
    assert_eq!(imported.id.as_deref(), Some("b-7"));
    assert!(imported.protect);
}

#[tokio::test]
async fn secrets_are_encrypted_and_the_first_one_brings_the_salt() {
    let site = Site::new();
    let secret = PropertyValue::secret("hunter2".into());
    site.program([ScriptedResource::custom("pkg:index:Bucket", "a").prop("password", secret)]);
    site.up().await.succeeded();
    let text =
        fs::read_to_string(site.state_folder().join(".pulumi/stacks/proj/test.json")).unwrap();
    assert!(
        !text.contains("hunter2") && text.contains("ciphertext"),
        "{text}"
    );
    let settings = fs::read_to_string(site.path("Pulumi.test.yaml")).unwrap();
    assert!(settings.starts_with("encryptionsalt: v1:"), "{settings}");
    // The next run opens them with the salt in the file.
    assert!(!site.up().await.succeeded().has_changes());
}

#[tokio::test]
async fn configured_secrets_are_hidden_wherever_they_turn_up() {
    let site = Site::new();
    site.program([]);
    let mut settings =
        nimbus_engine_backend::project::StackSettings::read(&site.path("Pulumi.test.yaml"), "proj")
            .unwrap();
    let keyring = nimbus_engine_backend::Keyring::new(
        site.environment(),
        nimbus_engine_backend::KeyServices::Any,
    );
    let secrets = nimbus_engine_backend::StackSecrets::with_salt(&keyring, None);
    let key = nimbus_engine_backend::project::ConfigKey::parse("proj:token").unwrap();
    settings
        .set_secret(&key, &[], "sesame-open-up", &secrets)
        .unwrap();
    settings.save().unwrap();
    site.says(Diagnostic {
        severity: Severity::Info,
        urn: None,
        message: "connecting with sesame-open-up".into(),
        stream_id: 0,
        ephemeral: false,
    });
    let ran = site.preview().await;
    assert!(
        ran.messages().contains(&"connecting with [secret]"),
        "{:?}",
        ran.messages()
    );
    let Some(EngineEvent::Prelude { config }) = ran
        .events
        .iter()
        .find(|event| matches!(event, EngineEvent::Prelude { .. }))
    else {
        panic!("every operation starts with its configuration");
    };
    assert_eq!(config["proj:token"], "[secret]");
}

#[tokio::test]
async fn other_stacks_can_be_read_by_every_spelling_of_their_name() {
    let site = Site::new();
    site.program([bucket("a")]);
    site.up().await.succeeded();
    let stacks = site.stacks();
    for name in ["test", "organization/test", "organization/proj/test"] {
        assert!(stacks.outputs(name).await.unwrap().is_empty(), "{name}");
        let resources = stacks.resource_outputs(name).await.unwrap();
        assert!(
            resources.keys().any(|urn| urn.ends_with("::a")),
            "{resources:?}"
        );
    }
    assert!(matches!(
        stacks.outputs("nobody").await,
        Err(StackReadError::NotFound { .. })
    ));
    assert!(matches!(
        stacks.outputs("a/b/c/d").await,
        Err(StackReadError::Unreadable { .. })
    ));
}

#[tokio::test]
async fn a_stack_that_somebody_holds_is_refused_with_the_holder_s_name() {
    let site = Site::new();
    site.program([bucket("a")]);
    site.up().await.succeeded();
    let session = site.hold().await;
    let ran = site.up().await;
    assert_eq!(ran.error().code(), ErrorCode::STACK_LOCKED);
    assert!(
        ran.error().message().contains("somebody else"),
        "{}",
        ran.error()
    );
    // Looking is allowed, and says who is at work.
    let ran = site.preview().await;
    ran.succeeded();
    assert!(
        ran.messages()[0].contains("somebody else"),
        "{:?}",
        ran.messages()
    );
    session.end().await.unwrap();
    site.up().await.succeeded();
}

#[tokio::test]
async fn a_restore_without_its_state_is_refused_and_deletes_nothing() {
    let site = Site::new();
    site.program([bucket("a")]);
    site.up().await.succeeded();
    let ran = site
        .run(StackOperation::Restore, OperationOptions::default())
        .await;
    assert_eq!(ran.error().code(), ErrorCode::INTERNAL);
    assert_eq!(site.launcher.cloud.ids().len(), 1);
}
