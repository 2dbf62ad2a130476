//! A process that was started ahead does what one does that is started for its program.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_language::{ProgramEnvironment, WarmStarts};
use nimbus_engine_ports::{ProgramError, Severity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Bench, LIMIT, Ready, node_sdk, typescript};

/// What a program can find out about its process.
const CURIOUS: &str = r#"
import * as fs from "fs";
import * as pulumi from "@pulumi/pulumi";
const config = new pulumi.Config();
export const argv = process.argv.slice(1).join(" ");
export const flags = process.execArgv.join(" ");
export const variables = JSON.stringify(Object.entries(process.env).sort()).replace(/127.0.0.1:\d+/g, "address");
export const folder = process.cwd() === fs.realpathSync(__dirname);
export const stdin = fs.readFileSync(0, "utf8");
export const files = fs.readdirSync("/proc/self/fd").some((name) => {
    try { return fs.readlinkSync(`/proc/self/fd/${name}`).endsWith("/orders"); } catch { return false; }
});
export const word = config.require("word");
export const hidden = config.requireSecret("hidden");
export const main = require.main?.filename.endsWith("cmd/run/index.js");
export const loaded = require.cache[require.resolve("@pulumi/pulumi")]?.exports === pulumi;
export const listeners = ["uncaughtException", "unhandledRejection", "exit", "beforeExit"].map((name) => process.listenerCount(name as any)).join();
export const group = fs.readFileSync("/proc/self/stat", "utf8").split(" ")[4] === `${process.pid}`;
console.log("printed");
console.error("complained");
"#;

fn program(sdk: &Path, index: &str, warm: Option<&Arc<WarmStarts>>) -> Bench {
    let mut bench = typescript(sdk, index).config(
        &[("shop:word", "w"), ("shop:hidden", "h")],
        &["shop:hidden"],
    );
    bench.spec.args = vec!["--own".to_owned(), "argument with spaces".to_owned()];
    let variable = |name: &str| std::env::var_os(name).map(|value| (name.into(), value));
    let mut variables: std::collections::BTreeMap<_, _> = ["PATH", "HOME"]
        .iter()
        .filter_map(|name| variable(name))
        .collect();
    variables.insert("GREETING".into(), "grüß dich\nand goodbye".into());
    bench.spec.environment = ProgramEnvironment::Only(variables);
    bench.spec.warm = warm.cloned();
    bench
}

/// Runs programs of its kind until one is there for the next.
async fn spare(bench: &Bench, warm: &Arc<WarmStarts>) -> i32 {
    for _ in 0..2 {
        let _ = bench.again().await.run().await;
    }
    seen("a spare process", || warm.ready().first().copied()).await
}

async fn gone(process: i32) {
    let is_gone = || kill(Pid::from_raw(process), None).is_err().then_some(());
    seen("nothing is left", is_gone).await;
}

/// Looks until there is something to see.
async fn seen<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            // tidy-allow(sleep): nothing tells what another process has done
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(LIMIT, looking).await;
    found.unwrap_or_else(|_| unreachable!("never seen: {what}"))
}

fn told(ready: &Ready) -> (String, Vec<String>) {
    let mut printed = ready.audience.messages(Severity::Info);
    printed.sort();
    (format!("{:?}", ready.stack_outputs()), printed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_cannot_tell_that_its_process_was_started_ahead() {
    let Some(sdk) = node_sdk("a_program_cannot_tell_that_its_process_was_started_ahead") else {
        return;
    };
    let warm = Arc::<WarmStarts>::default();
    let mut bench = program(&sdk, CURIOUS, Some(&warm));
    spare(&bench, &warm).await;
    let ahead = bench.again().await;
    ahead.succeed().await;
    assert_eq!(warm.taken(), 1);
    bench.spec.warm = None;
    let fresh = bench.again().await;
    fresh.succeed().await;
    assert_eq!(told(&ahead), told(&fresh));
    let (outputs, _) = told(&ahead);
    for expected in [
        "--own argument with spaces",
        "grüß dich",
        "\"word\": \"w\"",
        "\"folder\": true",
        "\"group\": true",
    ] {
        assert!(outputs.contains(expected), "{expected}: {outputs}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_program_alone_starts_nothing_ahead_and_others_share_nothing() {
    let Some(sdk) = node_sdk("one_program_alone_starts_nothing_ahead") else {
        return;
    };
    let warm = Arc::<WarmStarts>::default();
    let mut bench = program(&sdk, CURIOUS, Some(&warm));
    bench.again().await.succeed().await;
    assert_eq!(warm.ready(), [0_i32; 0]);
    spare(&bench, &warm).await;
    let taken = warm.taken();
    // With another variable it is a process of another kind.
    if let ProgramEnvironment::Only(variables) = &mut bench.spec.environment {
        variables.insert("TZ".into(), "Asia/Tokyo".into());
    }
    bench.again().await.succeed().await;
    assert_eq!(warm.taken(), taken);
    assert_eq!(warm.ready().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_process_that_has_ended_is_replaced_and_none_outlives_us() {
    let Some(sdk) = node_sdk("a_spare_process_that_has_ended_is_replaced") else {
        return;
    };
    let warm = Arc::<WarmStarts>::default();
    let bench = program(&sdk, CURIOUS, Some(&warm));
    let first = spare(&bench, &warm).await;
    kill(Pid::from_raw(first), Signal::SIGKILL).expect("it runs");
    gone(first).await;
    bench.again().await.succeed().await;
    assert_eq!(warm.taken(), 0);
    let second = spare(&bench, &warm).await;
    assert_ne!(first, second);
    drop(bench);
    drop(warm);
    gone(second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_told_as_by_any_other_process() {
    let Some(sdk) = node_sdk("failures_are_told_as_by_any_other_process") else {
        return;
    };
    for index in [
        "throw new Error(\"at once\");",
        "Promise.reject(new Error(\"nobody listens\"));",
        "process.exit(7);",
        "import * as absent from \"./absent\"; export const a = absent;",
    ] {
        let warm = Arc::<WarmStarts>::default();
        let mut bench = program(&sdk, index, Some(&warm));
        spare(&bench, &warm).await;
        let ahead = bench.again().await;
        let ended = ahead.run().await;
        assert_eq!(warm.taken(), 1);
        bench.spec.warm = None;
        let fresh = bench.again().await;
        let expected = fresh.run().await;
        assert!(expected.is_err(), "{index}");
        assert_eq!(text(&ended), text(&expected), "{index}");
        assert_eq!(ahead.audience.errors(), fresh.audience.errors(), "{index}");
    }
}

fn text(ended: &Result<(), ProgramError>) -> String {
    format!("{ended:?}")
}
