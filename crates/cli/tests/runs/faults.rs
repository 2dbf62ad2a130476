//! What goes wrong around a run: it is killed, interrupted, its files are edited, its disk fills.

use std::collections::BTreeMap;
use std::fs;
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{DIAMOND, Site, Stack, node_sdk, wait_until};

/// Sixteen units, as many as the platform has.
const SIXTEEN: &[Stack<'_>] = &[
    ("u01", &[]),
    ("u02", &[]),
    ("u03", &["u01"]),
    ("u04", &["u01", "u02"]),
    ("u05", &["u03"]),
    ("u06", &["u03", "u04"]),
    ("u07", &["u04"]),
    ("u08", &[]),
    ("u09", &["u08"]),
    ("u10", &["u05", "u09"]),
    ("u11", &["u06"]),
    ("u12", &["u07", "u10"]),
    ("u13", &["u11"]),
    ("u14", &["u12"]),
    ("u15", &["u13", "u14"]),
    ("u16", &["u02"]),
];

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

fn events(site: &Site) -> Vec<Value> {
    let path = site.rehearsal(".nimbus/runs/R0001/events.jsonl");
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Everything that is written below a folder.
fn journals(folder: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&journals(&path));
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    text
}

/// Ids are made by the simulated cloud; everything else must be equal.
fn shape(site: &Site) -> Vec<String> {
    let strip = |line: &String| {
        let (urn, inputs) = line.split_once(' ').unwrap();
        let mut inputs: Value = serde_json::from_str(inputs).unwrap_or_default();
        if let Some(map) = inputs.as_object_mut() {
            map.retain(|key, _| !key.starts_with("from_") && key != "first");
        }
        format!("{urn} {inputs}")
    };
    site.resources().iter().map(strip).collect()
}

/// No unit is started again before it has ended or the run was resumed.
fn assert_never_twice_at_once(events: &[Value]) {
    let mut running: BTreeMap<String, bool> = BTreeMap::new();
    for event in events {
        if event["event"] == "run" && event["status"] == "resumed" {
            running.clear();
        }
        if event["event"] == "unit" {
            let unit = event["unit"].as_str().unwrap().to_owned();
            let starts = event["status"] == "running";
            if starts {
                assert_ne!(running.get(&unit), Some(&true), "{unit} twice at once");
            }
            running.insert(unit, starts);
        }
    }
}

#[test]
fn a_killed_run_of_sixteen_units_goes_on_to_the_same_end() {
    let Some(sdk) = node_sdk("a_killed_run_of_sixteen_units_goes_on_to_the_same_end") else {
        return;
    };
    let whole = Site::new(&sdk, SIXTEEN);
    whole
        .rehearse("deploy", &["--parallel", "8", "--json"])
        .ok();
    let expected = shape(&whole);
    assert!(expected.len() > 32);

    // Each seed kills after another number of recorded events.
    for seed in [4_usize, 23, 61] {
        let site = Site::new(&sdk, SIXTEEN);
        let slow = site.orders("latency: {create: 0.3}\n");
        let mut run = site.start("deploy", &["--parallel", "8", "--json", "--orders", &slow]);
        wait_until("the run is under way", || events(&site).len() >= seed);
        send(&run, Signal::SIGKILL);
        run.wait().unwrap();
        let status = site.run(&["status", crate::support::ID, "--rehearse", "--json"]);
        let status = status.ok().summary();
        let last = &status["environments"][0]["last_run"];
        assert_eq!(last["result"], "interrupted", "seed {seed}: {last}");

        let resumed = site.rehearse("resume", &["--forget-creates", "--json", "--parallel", "8"]);
        let resumed = resumed.ok();
        assert_eq!(resumed.summary()["result"], "succeeded", "seed {seed}");
        assert_eq!(shape(&site), expected, "seed {seed}");
        assert_never_twice_at_once(&events(&site));
        let again = site.rehearse("deploy", &["--json"]).ok();
        assert_eq!(again.summary()["changes"], false, "seed {seed}");
    }
}

#[test]
fn a_create_of_unknown_outcome_is_asked_about_and_not_guessed() {
    let Some(sdk) = node_sdk("a_create_of_unknown_outcome_is_asked_about_and_not_guessed") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let slow = site.orders("latency: {create: 60}\n");
    let mut run = site.start("deploy", &["--json", "--orders", &slow]);
    wait_until("a create is in the journal", || {
        journals(&site.rehearsal(".nimbus/journal")).contains("a-first")
    });
    send(&run, Signal::SIGKILL);
    run.wait().unwrap();
    let asked = site.rehearse("resume", &["--json"]).with(1);
    let summary = asked.summary();
    assert_eq!(summary["result"], "failed");
    let message = summary["units"][0]["message"].to_string();
    assert!(message.contains("a-first"), "{summary}");
    // What it names next must be another command than the one that was just tried.
    assert!(message.contains("--forget-creates"), "{summary}");
    assert!(!message.contains("looks them up"), "{summary}");
    let open = |event: &Value| event["unit"] == "a" && event["open_creates"] == true;
    assert!(asked.events().iter().any(open), "{}", asked.stdout);
    assert!(
        summary["next"].to_string().contains("--forget-creates"),
        "{summary}"
    );
    site.rehearse("resume", &["--json", "--forget-creates"])
        .ok();
    assert!(
        site.resources()
            .iter()
            .all(|line| !line.starts_with("pending"))
    );
}

#[test]
fn going_back_keeps_what_a_killed_run_had_made() {
    let Some(sdk) = node_sdk("going_back_keeps_what_a_killed_run_had_made") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    site.rehearse("deploy", &[]).ok();
    let program = "cloud/stacks/a/src/index.js";
    let text = fs::read_to_string(site.path(program)).unwrap();
    let more = text.replace("const first =", "new Thing('a-third', {});\nconst first =");
    assert_ne!(text, more);
    site.write(program, &more);
    site.set_size("a", "2");
    let slow = site.orders("latency: {update: 60}\n");
    let mut run = site.start("deploy", &["--json", "--orders", &slow]);
    let record = site.rehearsal(".nimbus/runs/R0002/events.jsonl");
    wait_until("something is made while an update is under way", || {
        let made = |line: &str| line.contains("a-third") && line.contains("\"done\"");
        fs::read_to_string(&record).is_ok_and(|text| text.lines().any(made))
            && journals(&site.rehearsal(".nimbus/journal")).contains("a-first")
    });
    send(&run, Signal::SIGKILL);
    run.wait().unwrap();

    // Refused, for nobody knows what became of the update; then back to what was there before.
    let again = ["--json", "--on-failure", "rollback"];
    let ran = site.rehearse("deploy", &again).with(1);
    assert_eq!(ran.summary()["result"], "rolled_back", "{}", ran.stdout);
    let left = site.resources();
    assert!(left.iter().any(|line| line.contains("a-third")), "{left:?}");
}

#[test]
fn the_first_request_to_stop_finishes_what_runs_and_the_run_can_go_on() {
    let Some(sdk) = node_sdk("the_first_request_to_stop_finishes_what_runs_and_the_run_can_go_on")
    else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    let slow = site.orders("latency: {create: 3}\n");
    let run = site.start("deploy", &["--json", "--orders", &slow]);
    wait_until("a create is under way", || {
        let begun = |e: &Value| e["event"] == "resource" && e["name"] == "a-first";
        events(&site).iter().any(begun)
    });
    send(&run, Signal::SIGINT);
    let output = run.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["result"], "interrupted");
    // The step that was running has ended, and its outcome is known.
    let resources = site.resources();
    assert!(
        resources.iter().any(|line| line.contains("a-first")),
        "{resources:?}"
    );
    assert!(!resources.iter().any(|line| line.starts_with("pending")));
    assert!(!resources.iter().any(|line| line.contains("b-first")));

    site.rehearse("resume", &["--json"]).ok();
    assert_eq!(
        site.rehearse("deploy", &["--json"]).ok().summary()["changes"],
        false
    );
}

#[test]
fn a_manifest_that_is_edited_during_a_run_counts_for_the_next_one() {
    let Some(sdk) = node_sdk("a_manifest_that_is_edited_during_a_run_counts_for_the_next_one")
    else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let slow = site.orders("latency: {create: 1}\n");
    let run = site.start("deploy", &["--json", "--orders", &slow]);
    wait_until("the first unit is under way", || {
        events(&site).iter().any(|e| e["status"] == "running")
    });
    site.set_size("b", "9");
    assert!(run.wait_with_output().unwrap().status.success());
    assert!(
        site.resources().iter().all(|line| !line.contains("\"9\"")),
        "as planned"
    );
    let next = site.rehearse("deploy", &["--json"]).ok();
    assert_eq!(next.status("a"), "skipped");
    assert_eq!(next.status("b"), "succeeded");
}

#[test]
fn a_full_disk_is_an_error_and_nothing_is_lost() {
    let Some(sdk) = node_sdk("a_full_disk_is_an_error_and_nothing_is_lost") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    site.rehearse("deploy", &[]).ok();
    let before = site.resources();
    site.set_size("a", "2");
    // No file may grow: every write fails as on a full disk.
    let nimbus = env!("CARGO_BIN_EXE_nimbus");
    let script = format!(
        "trap '' XFSZ; ulimit -f 0; exec {nimbus} deploy {} --environment dev --rehearse --json",
        crate::support::ID
    );
    let mut command = site.command(&[]);
    let plain: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(std::ffi::OsStr::to_owned)))
        .collect();
    command = std::process::Command::new("sh");
    command.arg("-c").arg(script).env_clear();
    for (name, value) in plain {
        command.env(name, value.unwrap_or_default());
    }
    let output = command.current_dir(site.path("")).output().unwrap();
    assert!(!output.status.success());
    assert_eq!(site.resources(), before);
    site.rehearse("deploy", &["--json"]).ok();
    assert!(site.resources().iter().any(|line| line.contains("\"2\"")));
}
