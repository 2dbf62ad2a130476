//! Creates that nobody saw the end of: looked for by their names, asked about where that finds nothing, and never
//! taken for undone.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{DeployOutput, ID, Site, node_sdk, wait_until};

const ASKS: &str = "nobody knows whether these were created";

/// Starts a deploy and kills it while it creates this resource for the first time.
fn kill_in_create(site: &Site, resource: &str) {
    let order = format!("orders: [{{on: create, name: {resource}, do: stall, seconds: 600}}]\n");
    let orders = site.orders(&order);
    let mut run = site.start("deploy", &["--json", "--orders", &orders]);
    let journal = format!(".nimbus/journal/p/{ID}-{}-dev.jsonl", &resource[..1]);
    let (journal, name) = (site.rehearsal(&journal), format!("::{resource}\""));
    wait_until("the create is in the journal", || {
        let bytes = fs::read(&journal).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let begins = |line: &str| line.contains("\"creating\"") && line.contains(&name);
        text.lines().any(begins)
    });
    let pid = Pid::from_raw(i32::try_from(run.id()).unwrap());
    kill(pid, Signal::SIGKILL).unwrap();
    run.wait().unwrap();
}

fn asks(output: DeployOutput) {
    let output = output.with(1);
    assert!(output.stdout.contains(ASKS), "{}", output.stdout);
    let next = output.summary()["next"].to_string();
    assert!(next.contains("--forget-creates"), "{next}");
}

/// Nothing is recorded of such a stack but its journal, and what goes back or takes away must not take that for
/// nothing.
#[test]
fn a_first_create_that_was_killed_is_asked_about_by_whatever_undoes_it() {
    let test = "a_first_create_that_was_killed_is_asked_about_by_whatever_undoes_it";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    for verb in ["rollback", "destroy"] {
        let site = Site::new(&sdk, &[("a", &[])]);
        kill_in_create(&site, "a-first");
        asks(site.rehearse(verb, &["--json"]));
        site.rehearse("resume", &["--json", "--forget-creates"])
            .ok();
        assert_eq!(site.resources(), [""; 0], "{verb}");
        site.rehearse("deploy", &["--json"]).ok();
    }
}

/// An object that is known by its name is found, so nobody is asked. It was made, or there would be none to find;
/// left behind, its name would be taken when it is made again.
#[test]
fn a_create_whose_answer_was_lost_is_found_by_its_name_and_undone_or_gone_on_with() {
    let test = "a_create_whose_answer_was_lost_is_found_by_its_name_and_undone_or_gone_on_with";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let program = "const pulumi = require('@pulumi/pulumi');\n\
        const args = { bucket: 'ours-alone' };\n\
        const first = new pulumi.CustomResource('aws:s3/bucket:Bucket', 'a-first', args);\n\
        exports.first = first.id;\n\
        exports.ids = [first.id];\n";
    site.write("cloud/stacks/a/src/index.js", program);
    let orders = site.orders("orders: [{on: create, name: a-first, do: lose}]\n");
    let deploy = |policy: &str| {
        let flags = ["--json", "--orders", &orders, "--on-failure", policy];
        site.rehearse("deploy", &flags).with(1)
    };
    let undone = deploy("rollback");
    assert_eq!(
        undone.summary()["result"],
        "rolled_back",
        "{}",
        undone.stdout
    );
    assert!(!undone.stdout.contains(ASKS), "{}", undone.stdout);
    assert_eq!(site.resources(), [""; 0]);

    let held = deploy("hold");
    assert_eq!(held.summary()["result"], "failed", "{}", held.stdout);
    site.rehearse("resume", &["--json"]).ok();
    let left = site.resources();
    let buckets = left.iter().filter(|line| line.contains("ours-alone"));
    assert_eq!(buckets.count(), 1, "{left:?}");
    assert!(!left.iter().any(|line| line.starts_with("pending")));
}

/// A run that fails before it touches a stack has no state of it to go back to. What an earlier run left open of
/// that stack is open all the same, so the run is not rolled back either.
#[test]
fn a_stack_that_an_earlier_run_left_open_is_not_called_rolled_back() {
    let test = "a_stack_that_an_earlier_run_left_open_is_not_called_rolled_back";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    kill_in_create(&site, "b-first");
    // `b` has no value any more for what it needs of `a`, which is found out when it is its turn.
    let program = "cloud/stacks/a/src/index.js";
    let text = fs::read_to_string(site.path(program)).unwrap();
    let without = text.replace("exports.first = first.id;\n", "");
    assert_ne!(without, text);
    site.write(program, &without);
    let failed = site.rehearse("deploy", &["--json", "--on-failure", "rollback"]);
    let failed = failed.with(1);
    let summary = failed.summary();
    assert_eq!(summary["result"], "needs_attention", "{summary}");
    let words = "which an earlier run left open";
    assert!(failed.stdout.contains(words), "{}", failed.stdout);

    // The way out that it names.
    site.write(program, &text);
    asks(site.rehearse("rollback", &["--json"]));
    site.rehearse("resume", &["--json", "--forget-creates"])
        .ok();
    assert_eq!(site.resources(), [""; 0]);
    site.rehearse("deploy", &["--json"]).ok();
}
