//! F6 for runs: the database goes away under a server that carries one out. The run may fail of it; nothing is
//! lost, doubled or left hanging, and the next one goes on from there.

use nimbus_test_tools::{Tool, tool_or_skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::deployments::{ApiCaller, register};
use crate::support::{Site, is_alive, wait_for};

/// PostgreSQL is killed while a unit is at work.
#[test]
fn a_run_whose_database_ended_is_over_or_goes_on_and_the_next_one_succeeds() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::of_programs(&postgres, &sdk);
    let server = site.up();
    site.set_up(&server);
    let caller = ApiCaller::new(&server);
    register(&caller, "slow", "", 3000);
    let template = "name: one\ndescription: One stack\nenvironments:\n  dev: {enabled: true, \
                    account: '111111111111', region: eu-west-1}\nstacks: {slow: }\n";
    caller.post("/templates", &json!({"content": template}));
    let wanted = json!({"id": "D1ONE", "organization": "o", "project": "p", "template": "one"});
    caller.post("/deployments", &wanted);
    let rehearse = json!({"environment": "dev", "rehearsal": true, "transpile_only": true});
    let run = caller.post("/deployments/D1ONE/deploy", &rehearse);
    caller.watch(&run, |event| {
        event["event"] == "unit" && event["unit"] == "slow" && event["status"] == "running"
    });
    let database = site.postmaster().unwrap();
    kill(Pid::from_raw(database), Signal::SIGKILL).unwrap();
    wait_for("another PostgreSQL is there", || {
        site.postmaster()
            .is_some_and(|now| now != database && is_alive(now))
    });
    wait_for("the server answers again", || {
        caller.ask("GET", "/runs", "", &serde_json::Value::Null).0 == 200
    });
    // Events are numbered without a gap, which is looked at while they are read.
    let (ended, events) = caller.finish(&run);
    let result = ended["result"].as_str().unwrap_or_default();
    assert!(
        ["succeeded", "failed"].contains(&result),
        "{ended} {events:?}"
    );
    let next = caller.post("/deployments/D1ONE/deploy", &rehearse);
    let (ended, events) = caller.finish(&next);
    assert_eq!(ended["result"], "succeeded", "{ended} {events:?}");
    assert_eq!(server.stop(), 0);
}
