//! Programs that fail, in every way they can: reported, never hanging, never taken for complete.

use std::time::{Duration, Instant};

use nimbus_engine_language::LaunchError;
use nimbus_engine_ports::{ProgramError, RegisterError, RegisterStatus, Severity};
use nimbus_engine_testing::RegistrationAnswer;

use crate::support::{LifeLine, all_gone, node_sdk, typescript};

const TWO: &str = r#"
import { Thing } from "./thing";
const first = new Thing("first", 1);
new Thing("second", first.id);
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_registration_is_a_failed_program() {
    let Some(sdk) = node_sdk("a_failed_registration_is_a_failed_program") else {
        return;
    };
    let ready = typescript(&sdk, TWO)
        .answering(|goal| match goal.name.as_str() {
            "first" => RegistrationAnswer::Status(RegisterStatus::Failed),
            _ => RegistrationAnswer::Usual,
        })
        .ready()
        .await;
    assert!(matches!(
        ready.run().await,
        Err(ProgramError::AlreadyReported)
    ));
    assert!(ready.registrar.goal("second").is_none());
    assert!(ready.finish().await.is_ok(), "it is gone already");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_registration_ends_the_program_quickly() {
    let Some(sdk) = node_sdk("a_refused_registration_ends_the_program_quickly") else {
        return;
    };
    let ready = typescript(&sdk, TWO)
        .answering(|goal| match goal.name.as_str() {
            "first" => RegistrationAnswer::Error(RegisterError::Invalid {
                message: "the name is taken".to_owned(),
            }),
            _ => RegistrationAnswer::Usual,
        })
        .ready()
        .await;
    let started = Instant::now();
    let run = ready.run().await;
    assert!(matches!(run, Err(ProgramError::AlreadyReported)), "{run:?}");
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
    assert!(ready.audience.errors().contains("the name is taken"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_throws_says_so_itself() {
    let Some(sdk) = node_sdk("a_program_that_throws_says_so_itself") else {
        return;
    };
    let ready = typescript(
        &sdk,
        r#"import { Thing } from "./thing"; new Thing("thing"); throw new Error("boom");"#,
    )
    .ready()
    .await;
    let run = ready.run().await;
    assert!(matches!(run, Err(ProgramError::AlreadyReported)), "{run:?}");
    assert!(
        ready.audience.errors().contains("boom"),
        "{}",
        ready.audience.errors()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_error_is_reported_when_types_are_checked() {
    let Some(sdk) = node_sdk("a_type_error_is_reported_when_types_are_checked") else {
        return;
    };
    let mut bench = typescript(&sdk, r#"const n: number = "text"; export const x = n;"#);
    bench.spec.transpile_only = false;
    let ready = bench.ready().await;
    let run = ready.run().await;
    assert!(matches!(run, Err(ProgramError::AlreadyReported)), "{run:?}");
    assert!(
        ready.audience.errors().contains("not assignable"),
        "{}",
        ready.audience.errors()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_exits_early_is_not_complete() {
    let Some(sdk) = node_sdk("a_program_that_exits_early_is_not_complete") else {
        return;
    };
    let ready = typescript(
        &sdk,
        r#"
import { Thing } from "./thing";
const first = new Thing("first");
first.id.apply(() => (process as any).reallyExit(0));
"#,
    )
    .ready()
    .await;
    let Err(ProgramError::Failed { message }) = ready.run().await else {
        panic!("it must not count as complete");
    };
    assert!(
        message.contains("before it had asked for everything"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ends_before_its_stack_is_named() {
    let Some(sdk) = node_sdk("a_program_that_ends_before_its_stack_is_named") else {
        return;
    };
    let mut bench = typescript(&sdk, "");
    let exit = bench.directory.path().join("exit.js");
    std::fs::write(&exit, "process.exit(0)").expect("a file");
    let arguments = format!("--require '{}'", exit.display());
    bench.spec.options =
        nimbus_engine_language::RuntimeOptions::new([("nodeargs".to_owned(), arguments.into())]);
    let ready = bench.ready().await;
    let Err(ProgramError::Failed { message }) = ready.run().await else {
        panic!("it must not count as complete");
    };
    assert!(
        message.contains("without registering its stack"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_death_is_explained_by_what_was_printed() {
    let Some(sdk) = node_sdk("a_silent_death_is_explained_by_what_was_printed") else {
        return;
    };
    let ready = typescript(&sdk, r#"console.error("out of luck"); process.exit(7);"#)
        .ready()
        .await;
    let Err(ProgramError::Failed { message }) = ready.run().await else {
        panic!("it failed");
    };
    assert!(
        message.contains("exit code 7") && message.contains("out of luck"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_program_leaves_nothing_behind() {
    let Some(sdk) = node_sdk("a_cancelled_program_leaves_nothing_behind") else {
        return;
    };
    let mut bench = typescript(
        &sdk,
        r#"
import * as fs from "fs";
import { spawn } from "child_process";
const line = fs.openSync("alive", "w");
spawn("sleep", ["1000"], { stdio: ["ignore", "ignore", "ignore", line] });
process.on("SIGINT", () => console.log("asked to end, and refusing"));
setInterval(() => {}, 1000);
console.log("up and running");
"#,
    );
    bench.spec.grace = Duration::from_millis(500);
    let line = LifeLine::new(bench.directory.path());
    let line = line.open();
    let ready = bench.ready().await;
    ready
        .cancelled_at(ready.audience.heard("up and running"))
        .await;
    let info = ready.audience.messages(Severity::Info);
    assert!(
        info.contains(&"asked to end, and refusing".to_owned()),
        "{info:?}"
    );
    all_gone(line).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_waits_for_an_answer_is_ended_when_cancelled() {
    let Some(sdk) = node_sdk("a_program_that_waits_for_an_answer_is_ended_when_cancelled") else {
        return;
    };
    let ready = typescript(
        &sdk,
        r#"import { Thing } from "./thing"; new Thing("stuck");"#,
    )
    .answering(|goal| match goal.name.as_str() {
        "stuck" => RegistrationAnswer::Hang,
        _ => RegistrationAnswer::Usual,
    })
    .ready()
    .await;
    ready.cancelled_at(ready.registrar.asked_for("stuck")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_running_program_ends_it() {
    let Some(sdk) = node_sdk("dropping_a_running_program_ends_it") else {
        return;
    };
    let bench = typescript(
        &sdk,
        r#"
import * as fs from "fs";
const line = fs.openSync("alive", "w");
setInterval(() => fs.fstatSync(line), 1000);
console.log("up and running");
"#,
    );
    let line = LifeLine::new(bench.directory.path());
    let line = line.open();
    let ready = bench.ready().await;
    {
        let run = ready.run();
        tokio::select! {
            _ = run => panic!("it runs for ever"),
            () = ready.audience.heard("up and running") => {}
        }
    }
    all_gone(line).await;
}

#[tokio::test]
async fn a_program_without_its_sdk_is_refused_with_the_command_to_run() {
    let empty = tempfile::tempdir().expect("a temporary directory");
    let bench = typescript(empty.path(), "");
    let directory = bench.directory.path().canonicalize().expect("it exists");
    let Err(error) = bench.prepare().await else {
        panic!("there is no SDK");
    };
    if matches!(error, LaunchError::ToolMissing { .. }) {
        eprintln!("SKIPPED: there is no node either");
        return;
    }
    assert_eq!(
        error.help(),
        format!("run: cd {} && npm install", directory.display())
    );
}
