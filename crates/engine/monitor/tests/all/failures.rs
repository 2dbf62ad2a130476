//! How failures end a program: shown once, everybody turned away, never forgotten.

use std::sync::Arc;

use nimbus_engine_monitor::{Completion, Ending, InvokeCall, InvokeError, ReadCall, Registration};
use nimbus_engine_ports::{RegisterError, RegisterStatus};
use nimbus_engine_testing::RegistrationAnswer;

use crate::support::{component, custom, registrar, rig, rig_with, settings, urn};

fn failing(name: &'static str, answer: RegistrationAnswer) -> nimbus_engine_testing::FakeRegistrar {
    registrar().answering(move |goal| {
        if goal.name == name {
            answer.clone()
        } else {
            RegistrationAnswer::Usual
        }
    })
}

#[tokio::test]
async fn a_failed_registration_is_reported_to_sdks_that_take_it() {
    let rig = rig_with(
        failing("bad", RegistrationAnswer::Status(RegisterStatus::Failed)),
        settings(),
    );
    let bad = rig.register(custom("bad")).await;
    assert_eq!(bad.status, RegisterStatus::Failed);
    // The program goes on, but it will never count as complete.
    let good = rig.register(custom("good")).await;
    assert_eq!(good.status, RegisterStatus::Succeeded);
    assert_eq!(rig.monitor.completion(), Completion::Failed);
}

#[tokio::test]
async fn a_failed_registration_ends_sdks_that_cannot_take_it() {
    let rig = rig_with(
        failing("bad", RegistrationAnswer::Status(RegisterStatus::Failed)),
        settings(),
    );
    let bad = Registration {
        takes_failures: false,
        ..custom("bad")
    };
    assert_eq!(rig.monitor.register(bad).await, Err(Ending));
    assert_eq!(rig.monitor.register(custom("later")).await, Err(Ending));
    assert!(
        rig.errors().is_empty(),
        "the deployment has shown it already"
    );
}

#[tokio::test]
async fn a_skipped_registration_counts_as_failure() {
    let rig = rig_with(
        failing("s", RegistrationAnswer::Status(RegisterStatus::Skipped)),
        settings(),
    );
    assert_eq!(
        rig.register(custom("s")).await.status,
        RegisterStatus::Skipped
    );
    assert_eq!(rig.monitor.completion(), Completion::Failed);
}

#[tokio::test]
async fn a_refused_request_is_shown_and_ends_everything() {
    let refusal = RegisterError::Invalid {
        message: "duplicate resource".to_owned(),
    };
    let rig = rig_with(
        failing("twice", RegistrationAnswer::Error(refusal)),
        settings(),
    );
    assert_eq!(rig.monitor.register(custom("twice")).await, Err(Ending));
    let shown = rig.events.diagnostics();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].message, "duplicate resource");
    assert_eq!(shown[0].urn, Some(urn("twice")));
    assert_eq!(rig.monitor.completion(), Completion::Failed);
    assert_eq!(
        rig.monitor
            .register_outputs(urn("x"), Default::default())
            .await,
        Err(Ending)
    );
    assert_eq!(rig.monitor.read(ReadCall::default()).await, Err(Ending));
    let invoke = rig.monitor.invoke(InvokeCall::default()).await;
    assert_eq!(invoke, Err(InvokeError::Ending(Ending)));
    assert_eq!(rig.monitor.announce_end().await, Err(Ending));
    assert_eq!(rig.events.diagnostics().len(), 1, "shown once");
}

#[tokio::test]
async fn whoever_waits_is_turned_away_when_another_request_fails() {
    let refusal = RegisterError::Invalid {
        message: "no".to_owned(),
    };
    let registrar = registrar().answering(move |goal| match goal.name.as_str() {
        "waits" => RegistrationAnswer::Hang,
        "fails" => RegistrationAnswer::Error(refusal.clone()),
        _ => RegistrationAnswer::Usual,
    });
    let rig = rig_with(registrar, settings());
    let waiting = tokio::spawn({
        let monitor = Arc::clone(&rig.monitor);
        async move { monitor.register(component("waits")).await }
    });
    rig.registrar.asked_for("waits").await;
    assert_eq!(rig.monitor.register(component("fails")).await, Err(Ending));
    assert_eq!(waiting.await.expect("the task does not panic"), Err(Ending));
    rig.monitor.aborted().await;
}

#[tokio::test]
async fn a_deployment_that_shuts_down_has_said_why_itself() {
    let rig = rig();
    rig.registrar.shut_down();
    assert_eq!(rig.monitor.register(component("late")).await, Err(Ending));
    assert!(rig.errors().is_empty());
    assert_eq!(rig.monitor.completion(), Completion::Failed);
}

#[tokio::test]
async fn nonsense_is_named() {
    for (request, expected) in [
        (
            Registration {
                type_: "bucket".to_owned(),
                ..custom("x")
            },
            "\"bucket\" is not a resource type",
        ),
        (
            Registration {
                package_reference: "nowhere".to_owned(),
                ..custom("x")
            },
            "\"nowhere\" was not registered",
        ),
    ] {
        let rig = rig();
        assert_eq!(rig.monitor.register(request).await, Err(Ending));
        assert!(rig.errors()[0].contains(expected), "{:?}", rig.errors());
    }
}
