//! Two requests to stop, through the real binary.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{Site, node_sdk, wait_until};

#[test]
fn the_second_request_to_stop_ends_everything_and_what_is_unknown_is_said() {
    let Some(sdk) =
        node_sdk("the_second_request_to_stop_ends_everything_and_what_is_unknown_is_said")
    else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let slow = site.orders("latency: {create: 3000}\n");
    let run = site.start("deploy", &["--json", "--orders", &slow]);
    let record = site.rehearsal(".nimbus/runs/R0001/events.jsonl");
    let said = |what: &str| fs::read_to_string(&record).is_ok_and(|text| text.contains(what));
    wait_until("a create is under way", || said("\"a-first\""));
    let pid = Pid::from_raw(i32::try_from(run.id()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    wait_until("the first request is heard", || {
        said("stopping: running steps finish")
    });
    kill(pid, Signal::SIGINT).unwrap();
    let output = run.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["result"], "interrupted", "{last}");
    assert!(!text.contains("\"b-first\""), "nothing more was started");
    // Nobody waited for the create, so nobody knows; the next attempt asks instead of guessing.
    let asked = site.rehearse("resume", &["--json"]).with(1);
    assert!(
        asked.summary()["units"].to_string().contains("a-first"),
        "{}",
        asked.stdout
    );
    site.rehearse("resume", &["--json", "--forget-creates"])
        .ok();
    assert_eq!(
        site.rehearse("deploy", &["--json"]).ok().summary()["changes"],
        false
    );
}
