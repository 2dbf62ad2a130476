//! A stack that takes longer than planned is stopped.

use std::fs;
use std::time::Instant;

use crate::support::{Site, node_sdk};

/// Sixty times as fast as the cloud.
const SCALE: &str = "0.0166";

/// Says how long a stack should take.
fn estimate(site: &Site, stack: &str, minutes: u32) {
    let template = site.path(&format!("cloud/tools/templates/config/{stack}.yaml"));
    let text = fs::read_to_string(&template).unwrap();
    let text = text.split("estimate:").next().unwrap();
    let estimate = format!("estimate: {{minutes: {minutes}, resources: 2}}\n");
    fs::write(&template, format!("{text}{estimate}")).unwrap();
}

#[test]
fn a_stack_that_exceeds_its_time_is_stopped_and_the_run_undone() {
    let test = "a_stack_that_exceeds_its_time_is_stopped_and_the_run_undone";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    estimate(&site, "a", 120);
    estimate(&site, "b", 3);
    // Two creates of four minutes each, where six minutes are allowed, sixty times as fast: together they are always too
    // late, and whichever is under way when they are has time to end before it would be killed.
    let slow = |name: &str| format!("{{on: create, name: {name}, do: stall, seconds: 240}}");
    let orders = format!("orders: [{}, {}]\n", slow("b-first"), slow("b-second"));
    let orders = site.orders(&orders);
    let late = site.rehearse(
        "deploy",
        &["--json", "--orders", &orders, "--time-scale", SCALE],
    );
    let late = late.with(1);
    let summary = late.summary();
    assert_eq!(summary["result"], "rolled_back", "{summary}");
    let words = "b took longer than 6 seconds, twice what was planned";
    assert!(late.stdout.contains(words), "{}", late.stdout);
    let trigger = summary["trigger"].as_str().unwrap();
    assert!(trigger.contains("twice its estimate"), "{summary}");
    assert_eq!(site.resources(), [""; 0]);

    // With an estimate that fits it goes through.
    estimate(&site, "b", 120);
    site.rehearse("deploy", &["--orders", &orders, "--time-scale", SCALE])
        .ok();
}

/// Of a create that is killed nobody knows whether it was done, the first of a stack no less than any other, and what is
/// not known is not undone.
#[test]
fn a_first_create_that_is_killed_is_not_called_rolled_back() {
    let Some(sdk) = node_sdk("a_first_create_that_is_killed_is_not_called_rolled_back") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    estimate(&site, "a", 120);
    // Ten seconds, so that the create has begun by then on any machine.
    estimate(&site, "b", 5);
    let orders = "orders: [{on: create, name: b-first, do: stall, seconds: 36000}]\n";
    let orders = site.orders(orders);
    let killed = site.rehearse(
        "deploy",
        &["--json", "--orders", &orders, "--time-scale", SCALE],
    );
    let killed = killed.with(1);
    let summary = killed.summary();
    assert_eq!(summary["result"], "needs_attention", "{summary}");
    for words in [
        "b took longer than 10 seconds",
        "nobody knows whether these were created",
    ] {
        assert!(killed.stdout.contains(words), "{}", killed.stdout);
    }
    let next = summary["next"].to_string();
    assert!(next.contains("nimbus rollback"), "{next}");
    assert!(next.contains("--forget-creates"), "{next}");

    // The way out that it names.
    site.rehearse("rollback", &["--json", "--forget-creates"])
        .ok();
    assert_eq!(site.resources(), [""; 0]);
    estimate(&site, "b", 120);
    site.rehearse("deploy", &["--json"]).ok();
}

#[test]
fn a_stack_that_does_not_stop_when_it_is_asked_is_killed_and_looked_up() {
    let test = "a_stack_that_does_not_stop_when_it_is_asked_is_killed_and_looked_up";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    site.rehearse("deploy", &[]).ok();
    let before = site.resources();
    site.set_size("b", "2");
    estimate(&site, "a", 120);
    estimate(&site, "b", 1);
    // An update that hangs for longer than its limit, and than it has to stop.
    let orders = "orders: [{on: update, name: b-first, nth: 1, do: stall, seconds: 36000}]\n";
    let orders = site.orders(orders);
    let began = Instant::now();
    let killed = site.rehearse(
        "deploy",
        &["--json", "--orders", &orders, "--time-scale", SCALE],
    );
    let killed = killed.with(1);
    assert!(began.elapsed().as_secs() < 300, "it was not waited for");
    let summary = killed.summary();
    // Nobody saw the end of the update. It was looked up, or it could not have been undone.
    assert_eq!(summary["result"], "rolled_back", "{summary}");
    assert!(
        killed.stdout.contains("b took longer than 2 seconds"),
        "{}",
        killed.stdout
    );
    assert_eq!(site.resources(), before);
}
