//! How the official command line is driven, with a stand-in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nimbus_core::{ErrorCode, StackOperation};
use nimbus_engine_backend::{EnvironmentVariables, KeyServices, Keyring};
use nimbus_engine_model::StepOp;
use nimbus_engine_operations::{Cancellation, Engine as _, GivenConfig, OfficialEngine};
use nimbus_engine_ports::{EngineEvent, EventSink};
use serde_json::json;

use crate::support::{Listener, OfficialSite, run};

const SUMMARY: &str = r#"{"summaryEvent":{"maybeCorrupt":false,"durationSeconds":1,"resourceChanges":{"create":2},"PolicyPacks":{},"isPreview":false,"result":"succeeded"}}
{"cancelEvent":{}}
"#;

fn stand_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/official/stand-in")
}

/// A stand-in that ends with this code after these events and errors.
async fn prepared(events: &str, errors: &str, exit: u8) -> (OfficialSite, EnvironmentVariables) {
    let place = OfficialSite::new("");
    place.write("home/version", "v3.260.0\n");
    place.write("home/events", events);
    place.write("home/errors", errors);
    place.write("home/exit", &exit.to_string());
    let environment = place.environment(&stand_in());
    place.make_stack("dev", &environment).await;
    (place, environment)
}

#[tokio::test]
async fn without_the_command_line_or_with_an_old_one_nothing_is_done() {
    let place = OfficialSite::new("");
    let home = place.path("home").display().to_string();
    let nowhere = EnvironmentVariables::fixed([("PATH", &home), ("PULUMI_CONFIG_PASSPHRASE", "x")]);
    let request = place.request("dev", StackOperation::Update);
    let engine = OfficialEngine::with_keys(Keyring::new(nowhere, KeyServices::Any));
    let (report, _) = run(&engine, &request).await;
    let error = report.expect_err("there is none");
    assert_eq!(error.code(), ErrorCode::OFFICIAL_CLI_UNUSABLE);
    assert!(error.message().contains("no `pulumi` on $PATH"));
    assert!(
        error
            .help()
            .is_some_and(|help| help.contains("--engine pulumi"))
    );

    let (place, environment) = prepared("", "", 0).await;
    place.write("home/version", "v3.100.0\n");
    let request = place.request("dev", StackOperation::Update);
    let (report, _) = run(
        &OfficialEngine::with_keys(Keyring::new(environment, KeyServices::Any)),
        &request,
    )
    .await;
    let error = report.expect_err("it is too old");
    assert_eq!(error.code(), ErrorCode::OFFICIAL_CLI_UNUSABLE);
    assert!(error.message().contains("3.100.0"), "{}", error.message());
    assert!(
        place.read("home/arguments").is_empty(),
        "it was not asked to do anything"
    );
}

#[tokio::test]
async fn events_are_passed_on_and_the_exit_code_has_the_last_word() {
    let warning = r#"{"diagnosticEvent":{"message":"careful\n","severity":"warning"}}"#;
    let events = format!("{warning}\n{SUMMARY}");
    for (exit, succeeded) in [(0, true), (1, false)] {
        let (place, environment) = prepared(&events, "error: something else", exit).await;
        let request = place.request("dev", StackOperation::Update);
        let (report, events) = run(
            &OfficialEngine::with_keys(Keyring::new(environment, KeyServices::Any)),
            &request,
        )
        .await;
        let report = report.expect("it was started");
        assert_eq!(report.changes[&StepOp::Create], 2);
        let code = report.result.err().map(|error| error.code());
        assert_eq!(code, (!succeeded).then_some(ErrorCode::OFFICIAL_CLI_FAILED));
        assert!(matches!(&events[0], EngineEvent::Diagnostic(said) if said.message == "careful"));
        let last = events.last().expect("events");
        assert!(matches!(last, EngineEvent::Summary(end) if end.succeeded == succeeded));
        let cancelled = |event: &EngineEvent| matches!(event, EngineEvent::Cancelled);
        assert!(
            !events.iter().any(cancelled),
            "the end of its log is no cancellation"
        );
    }
}

#[tokio::test]
async fn causes_that_we_know_become_our_errors() {
    let failed = r#"{"resOpFailedEvent":{"metadata":{"op":"create","urn":"urn:pulumi:dev::own::a:b:C::n","type":"a:b:C","old":null,"new":null,"detailedDiff":null,"provider":""},"status":0,"steps":0}}"#;
    let failed = format!("{failed}\n{SUMMARY}");
    for (events, errors, exit, code) in [
        (failed.as_str(), "", 4, ErrorCode::STEPS_FAILED),
        (
            "",
            "error: the stack is currently locked by 1 lock(s)",
            255,
            ErrorCode::STACK_LOCKED,
        ),
        ("", "", 5, ErrorCode::POLICY_VIOLATED),
        ("", "error: unknown flag", 2, ErrorCode::OFFICIAL_CLI_FAILED),
    ] {
        let (place, environment) = prepared(events, errors, exit).await;
        let request = place.request("dev", StackOperation::Destroy);
        let (report, _) = run(
            &OfficialEngine::with_keys(Keyring::new(environment, KeyServices::Any)),
            &request,
        )
        .await;
        let error = report
            .expect("it was started")
            .result
            .expect_err("it failed");
        assert_eq!(error.code(), code, "{}", error.message());
    }
}

#[tokio::test]
async fn secrets_are_encrypted_in_a_private_file_and_never_arguments() {
    let (place, environment) = prepared(SUMMARY, "", 0).await;
    let mut config = GivenConfig::default();
    config.set("own:password", json!("hunter2-hunter2"), true);
    config.set("own:zones", json!(["a", "b"]), false);
    config.set("own:size", json!("large"), false);
    let stack = "organization/business/D1-network-dev";
    let request = place.request(stack, StackOperation::Update);
    let engine =
        OfficialEngine::with_keys(Keyring::new(environment, KeyServices::Any)).given(config);
    let (report, _) = run(&engine, &request).await;
    report
        .expect("it was started")
        .result
        .expect("it succeeded");

    let settings = place.read("home/settings");
    assert!(settings.contains("encryptionsalt:"), "{settings}");
    assert!(settings.contains("secure:"), "{settings}");
    assert!(settings.contains("large"), "{settings}");
    for file in ["arguments", "environment", "settings", "project"] {
        let text = place.read(&format!("home/{file}"));
        assert!(!text.is_empty(), "{file}");
        assert!(!text.contains("hunter2"), "{file} gives the secret away");
    }
    assert!(!place.read("home/arguments").contains("correct horse"));
    assert!(place.read("home/project").contains(r#""name":"business""#));
    let copy = place.read("home/arguments");
    let copy = copy
        .lines()
        .find_map(|line| line.strip_prefix("--cwd="))
        .expect("a folder");
    assert!(!Path::new(copy).exists(), "the copy is gone");
    let beside = place.path("program/Pulumi.D1-network-dev.yaml");
    assert!(!beside.exists(), "nothing is written beside the program");
}

#[tokio::test]
async fn a_preview_of_a_stack_that_does_not_exist_leaves_none_behind() {
    let (place, environment) = prepared(SUMMARY, "", 0).await;
    let request = place.preview("new");
    let (report, _) = run(
        &OfficialEngine::with_keys(Keyring::new(environment.clone(), KeyServices::Any)),
        &request,
    )
    .await;
    report
        .expect("it was started")
        .result
        .expect("it succeeded");
    assert!(!place.exists("new", &environment).await);
}

/// Waits for something that must come, however slow the machine is.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        // tidy-allow(sleep): files of another process are only found by looking again.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} did not happen");
}

/// Whether a process runs; one that has only not been reaped does not.
fn runs(number: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", number.trim()));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

#[tokio::test]
async fn a_request_to_stop_is_one_interrupt_and_a_second_one_ends_everything() {
    let (place, environment) = prepared(SUMMARY, "", 0).await;
    place.write("home/lingers", "");
    let place = Arc::new(place);
    let cancellation = Cancellation::new();
    let listener = Arc::new(Listener::default());
    let running = tokio::spawn({
        let (place, cancellation) = (Arc::clone(&place), cancellation.clone());
        let sink = Arc::clone(&listener) as Arc<dyn EventSink>;
        async move {
            let request = place.request("dev", StackOperation::Update);
            let engine = OfficialEngine::with_keys(Keyring::new(environment, KeyServices::Any));
            engine.run(&request, sink, &cancellation).await
        }
    });
    until("the start", || place.path("home/started").exists()).await;
    cancellation.request();
    until("the interrupt", || !place.read("home/signals").is_empty()).await;
    let plugin = place.read("home/plugin");
    assert!(
        !running.is_finished() && runs(&plugin),
        "it lets its steps end"
    );

    cancellation.request();
    let report = running.await.expect("no panic").expect("it was started");
    assert_eq!(
        report.result.expect_err("stopped").code(),
        ErrorCode::CANCELLED
    );
    assert_eq!(
        place.read("home/signals").lines().count(),
        1,
        "one interrupt"
    );
    assert!(
        place
            .read("home/cancelled")
            .contains("--stack organization/own/dev")
    );
    until("the end of its plugin", || !runs(&plugin)).await;
    let cancelled = |event: &EngineEvent| matches!(event, EngineEvent::Cancelled);
    assert!(listener.events().iter().any(cancelled));
}

#[tokio::test]
async fn a_command_line_that_obeys_the_interrupt_is_not_killed() {
    let (place, environment) = prepared(SUMMARY, "", 0).await;
    place.write("home/lingers", "");
    place.write("home/obeys", "");
    let place = Arc::new(place);
    let cancellation = Cancellation::new();
    let running = tokio::spawn({
        let (place, cancellation) = (Arc::clone(&place), cancellation.clone());
        async move {
            let request = place.request("dev", StackOperation::Update);
            let engine = OfficialEngine::with_keys(Keyring::new(environment, KeyServices::Any));
            let sink = Arc::new(Listener::default());
            engine.run(&request, sink, &cancellation).await
        }
    });
    until("the start", || place.path("home/started").exists()).await;
    cancellation.request();
    let report = running.await.expect("no panic").expect("it was started");
    assert_eq!(
        report.result.expect_err("stopped").code(),
        ErrorCode::CANCELLED
    );
    assert!(
        place.read("home/cancelled").is_empty(),
        "it freed the stack itself"
    );
}
