//! Keys to secrets that do not fit, or are not there when they are needed.

use std::fs;

use nimbus_core::{ErrorCode, StackOperation};
use nimbus_engine_model::PropertyValue;
use nimbus_engine_operations::OperationOptions;
use nimbus_engine_testing::ScriptedResource;

use crate::support::{Site, bucket};

/// Its provider answers with a secret that nobody gave it.
fn vault(name: &str) -> ScriptedResource {
    bucket(name).option(|goal| goal.additional_secret_outputs = vec!["size".into()])
}

/// A stack that has a salt, and no secret yet.
async fn salted() -> Site {
    let site = Site::new();
    let secret = PropertyValue::secret("hunter2".into());
    site.program([bucket("a").prop("password", secret)]);
    site.up().await.succeeded();
    site.program([bucket("a")]);
    site.up().await.succeeded();
    site
}

#[tokio::test]
async fn a_passphrase_that_does_not_fit_is_refused_before_anything_is_made() {
    let site = salted().await;
    let state = site.state_folder().join(".pulumi/stacks/proj/test.json");
    let before = fs::read(&state).unwrap();
    let ids = site.launcher.cloud.ids();
    site.program([bucket("a"), vault("b")]);
    for (passphrase, code) in [
        (Some("wrong horse"), ErrorCode::PASSPHRASE_WRONG),
        (None, ErrorCode::PASSPHRASE_MISSING),
    ] {
        site.passphrase(passphrase);
        assert_eq!(site.up().await.error().code(), code);
        let refresh = site.run(StackOperation::Refresh, OperationOptions::default());
        assert_eq!(refresh.await.error().code(), code);
        assert_eq!(site.launcher.cloud.ids(), ids, "nothing was made");
        assert_eq!(fs::read(&state).unwrap(), before, "nothing was written");
    }
    site.passphrase(Some("correct horse"));
    let ran = site.up().await;
    assert!(ran.succeeded().unknown.is_empty() && ran.report().recovered.is_empty());
}

#[tokio::test]
async fn what_has_no_secrets_can_be_taken_away_without_the_passphrase() {
    let site = salted().await;
    site.passphrase(None);
    let destroy = site.run(StackOperation::Destroy, OperationOptions::default());
    destroy.await.succeeded();
    assert!(site.launcher.cloud.ids().is_empty());
}

#[tokio::test]
async fn an_object_that_answers_with_the_first_secret_is_not_lost_without_a_passphrase() {
    let site = Site::new();
    site.passphrase(None);
    site.program([vault("a")]);
    let ran = site.up().await;
    assert!(ran.report.is_err() || ran.report().result.is_err());
    let made = site.launcher.cloud.ids();
    assert_eq!(made.len(), 1);

    site.passphrase(Some("correct horse"));
    let refresh = site.run(StackOperation::Refresh, OperationOptions::default());
    let refreshed = refresh.await;
    assert!(refreshed.succeeded().unknown.is_empty(), "its id is known");
    site.up().await.succeeded();
    assert_eq!(site.launcher.cloud.ids(), made, "it was not made twice");
}
