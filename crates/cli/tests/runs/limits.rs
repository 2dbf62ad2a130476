//! A stack that takes longer than planned is stopped.

use std::fs;

use crate::support::{Site, node_sdk};

#[test]
fn a_stack_that_exceeds_its_time_is_stopped_and_the_run_undone() {
    let test = "a_stack_that_exceeds_its_time_is_stopped_and_the_run_undone";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let estimate = |stack: &str, minutes: u32| {
        let template = site.path(&format!("cloud/tools/templates/config/{stack}.yaml"));
        let text = fs::read_to_string(&template).unwrap();
        let text = text.split("estimate:").next().unwrap();
        let estimate = format!("estimate: {{minutes: {minutes}, resources: 2}}\n");
        fs::write(&template, format!("{text}{estimate}")).unwrap();
    };
    estimate("a", 120);
    estimate("b", 1);
    // Two creates of three minutes each, where two minutes are allowed, sixty times as fast.
    let orders = site.orders("latency: {create: 180}\n");
    let scale = "0.0166";
    let late = site.rehearse(
        "deploy",
        &["--json", "--orders", &orders, "--time-scale", scale],
    );
    let late = late.with(1);
    let summary = late.summary();
    assert_eq!(summary["result"], "rolled_back", "{summary}");
    let words = "b took longer than 2 seconds, twice what was planned";
    assert!(late.stdout.contains(words), "{}", late.stdout);
    let trigger = summary["trigger"].as_str().unwrap();
    assert!(trigger.contains("twice its estimate"), "{summary}");
    assert_eq!(site.resources(), [""; 0]);

    // With an estimate that fits it goes through.
    estimate("b", 120);
    site.rehearse("deploy", &["--orders", &orders, "--time-scale", scale])
        .ok();
}
