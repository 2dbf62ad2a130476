//! Deploy, look, roll back, destroy: what is recorded and told on the way.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use regex::Regex;
use serde_json::Value;

use crate::support::{DIAMOND, ID, Site, node_sdk, wait_until};

#[test]
fn a_run_is_recorded_logged_and_told_event_by_event() {
    let Some(sdk) = node_sdk("a_run_is_recorded_logged_and_told_event_by_event") else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    let sources = files_below(&site.path("cloud/stacks/a"));
    let first = site.rehearse("deploy", &["--json"]).ok();
    assert_eq!(files_below(&site.path("cloud/stacks/a")), sources);
    let events = first.events();
    assert_eq!(events[0]["event"], "run");
    assert_eq!(events[0]["status"], "started");
    assert_eq!(events[1]["event"], "plan");
    assert_eq!(events[1]["layers"].as_array().unwrap().len(), 3);
    for unit in ["a", "b", "c", "d"] {
        let told = |event: &&Value| event["unit"] == unit && event["event"] == "unit";
        let statuses: Vec<_> = events.iter().filter(told).map(|e| &e["status"]).collect();
        assert_eq!(statuses, ["running", "succeeded"], "{unit}");
        let resource = |e: &Value| e["event"] == "resource" && e["unit"] == unit;
        assert!(events.iter().any(resource), "{unit}");
    }
    let summary = first.summary();
    assert_eq!(summary["event"], "summary");
    assert_eq!(summary["result"], "succeeded");
    assert_eq!(summary["run"], "R0001");
    assert_eq!(summary["version"], 1);

    // Nothing changed: nothing runs and no version is made.
    let second = site.rehearse("deploy", &["--json"]).ok();
    assert_eq!(second.summary()["version"], Value::Null);
    for unit in ["a", "b", "c", "d"] {
        assert_eq!(second.status(unit), "skipped");
    }

    // The record and the logs say the same.
    let record = fs::read_to_string(site.rehearsal(".nimbus/runs/R0001/events.jsonl")).unwrap();
    assert_eq!(
        record.lines().count(),
        events.len() - 1,
        "all but the summary"
    );
    let asked = fs::read_to_string(site.rehearsal(".nimbus/runs/R0001/run.json")).unwrap();
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(asked["kind"], "deploy");
    let logs = fs::read_dir(site.rehearsal("logs")).unwrap();
    let names: Vec<String> = logs
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let starts = |prefix: &str| names.iter().any(|name| name.starts_with(prefix));
    assert!(starts("deploy-dev-") && starts("a-dev-"), "{names:?}");

    // Each stack has a log of its own: its resources with their ids, when they were made and how long it took.
    let made = Regex::new(
        r"(?m)^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\] \[INFO\] \[[a-d]\] create demo:index:Thing [a-d]-(first|second) done id=thing-[0-9a-f]+ in \d+\.\ds$",
    )
    .unwrap();
    for unit in ["a", "b", "c", "d"] {
        let prefix = format!("{unit}-dev-");
        let own = names.iter().filter(|name| name.starts_with(&prefix));
        let read = |name: &String| fs::read_to_string(site.rehearsal("logs").join(name)).unwrap();
        let text: String = own.map(read).collect();
        assert_eq!(made.find_iter(&text).count(), 2, "{unit}: {text}");
    }

    let logs = site.rehearse("logs", &["--run", "R0001"]).ok().stdout;
    assert!(
        logs.contains("[INFO] [plan] Total Stacks: 4 enabled"),
        "{logs}"
    );
    assert!(
        logs.contains("[INFO] [a] create demo:index:Thing a-first done"),
        "{logs}"
    );
    assert!(logs.contains("Run R0001 ended: succeeded"), "{logs}");
    let planned = logs.find("[plan] Total Stacks").unwrap();
    let begun = logs.find("[INFO] [a] ").unwrap();
    assert!(
        planned < begun,
        "the plan comes before anything starts: {logs}"
    );
    let json = site
        .rehearse("logs", &["--run", "1", "--stack", "b", "--json"])
        .ok();
    assert!(json.events().iter().all(|line| line["component"] == "b"));
    let none = site
        .rehearse("logs", &["--run", "1", "--level", "error"])
        .ok();
    assert_eq!(none.stdout, "");
    let unknown = site.rehearse("logs", &["--run", "R0077", "--json"]).with(3);
    assert_eq!(unknown.summary()["error"]["code"], "NIM-0753");

    let status = site
        .run(&["status", ID, "--rehearse", "--json"])
        .ok()
        .summary();
    let dev = &status["environments"][0];
    assert_eq!(dev["last_run"]["result"], "succeeded");
    assert_eq!(dev["version"], 1);
    assert!(
        dev["stacks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|s| s["state"] == "deployed")
    );
    assert_eq!(status["environments"][1]["last_run"], Value::Null);

    // What is deployed, as a list and as states that others can read.
    let found = site
        .run(&["discover-resources", ID, "--rehearse", "--json"])
        .ok();
    let found = found.summary()["resources"].to_string();
    for stack in ["a", "b", "c", "d"] {
        for name in ["first", "second"] {
            assert!(found.contains(&format!("{stack}-{name}")), "{found}");
        }
    }
    let file = ["--output", "states.json"];
    site.rehearse("export-state", &file).ok();
    let states = fs::read_to_string(site.path("states.json")).unwrap();
    let states: Value = serde_json::from_str(&states).unwrap();
    let told = site.rehearse("export-state", &["--json"]).ok().stdout;
    for stack in ["a", "b", "c", "d"] {
        let urn = format!("::{stack}-first\"");
        assert!(states.to_string().contains(&urn), "{stack}: {states}");
    }
    assert!(told.contains("D1RUNS"), "{told}");
    assert!(!states.to_string().contains("::zzz"), "{states}");
    // One alone is what Pulumi reads.
    let alone = site.rehearse("export-state", &["--stack", "b"]).ok();
    let alone: Value = serde_json::from_str(&alone.stdout).unwrap();
    assert_eq!(alone, states["stacks"]["b"]);
    assert_eq!(alone["version"], 3, "{alone}");
    assert!(alone["deployment"]["resources"].is_array(), "{alone}");
    let none = site.rehearse("export-state", &["--stack", "zzz", "--json"]);
    let none = none.with(3).summary()["error"].clone();
    assert_eq!(none["code"], "NIM-0707", "{none}");
    assert!(none["help"].to_string().contains("a, b, c, d"), "{none}");
}

/// Paths below a folder, with their contents.
fn files_below(folder: &std::path::Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            match entry.path().is_dir() {
                true => open.push(entry.path()),
                false => drop(found.insert(entry.path(), fs::read(entry.path()).unwrap())),
            }
        }
    }
    found
}

#[test]
fn a_failed_create_is_rolled_back_and_a_held_run_can_be_gone_on_with() {
    let Some(sdk) = node_sdk("a_failed_create_is_rolled_back_and_a_held_run_can_be_gone_on_with")
    else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    let fails = "orders: [{on: create, name: c-second, do: fail, message: no room}]\n";
    let orders = site.orders(fails);
    let ran = site
        .rehearse("deploy", &["--json", "--orders", &orders])
        .with(1);
    let summary = ran.summary();
    assert_eq!(summary["result"], "rolled_back", "{summary}");
    assert!(summary["trigger"].as_str().unwrap().contains("created"));
    assert_eq!(ran.status("a"), "rolled_back");
    assert_eq!(ran.status("c"), "rolled_back");
    assert_eq!(ran.status("d"), "not_started");
    assert!(site.resources().is_empty(), "{:?}", site.resources());

    let held = ["--json", "--orders", &orders, "--on-failure", "hold"];
    let ran = site.rehearse("deploy", &held).with(1);
    assert_eq!(ran.summary()["result"], "failed");
    assert_eq!(ran.status("a"), "succeeded");
    assert_eq!(ran.status("c"), "failed");

    let ran = site.rehearse("resume", &["--json"]).ok();
    assert_eq!(ran.summary()["run"], "R0002");
    let again = |e: &Value| e["unit"] == "a" && e["status"] == "running";
    assert!(!ran.events().iter().any(again), "a was done");
    assert_eq!(ran.status("d"), "succeeded");
    let over = site.rehearse("resume", &["--json"]).with(6);
    assert_eq!(over.summary()["error"]["code"], "NIM-0754");
}

#[test]
fn an_environment_returns_to_an_earlier_version() {
    let Some(sdk) = node_sdk("an_environment_returns_to_an_earlier_version") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    site.rehearse("deploy", &[]).ok();
    let first = site.resources();
    site.set_size("b", "2");
    let ran = site.rehearse("deploy", &["--json"]).ok();
    assert_eq!(ran.status("a"), "skipped");
    assert_ne!(site.resources(), first);

    let listed = site
        .rehearse("rollback", &["--list", "--json"])
        .ok()
        .summary();
    assert_eq!(listed["versions"].as_array().unwrap().len(), 2);
    let ran = site
        .rehearse("rollback", &["--to-version", "1", "--json"])
        .ok();
    assert_eq!(ran.summary()["version"], 3);
    assert_eq!(
        ran.summary()["units"].as_array().unwrap().len(),
        1,
        "a is as it was"
    );
    assert_eq!(site.resources(), first);

    // What the manifest says is not what is there now, so the next deploy runs.
    let ran = site.rehearse("deploy", &["--json"]).ok();
    assert_eq!(ran.status("b"), "succeeded");
    let unknown = site.rehearse("rollback", &["--to", "9", "--json"]).with(3);
    assert_eq!(unknown.summary()["error"]["code"], "NIM-0756");

    // What was deleted is not counted among what is there.
    let index = "cloud/stacks/b/src/index.js";
    let code = fs::read_to_string(site.path(index)).unwrap();
    let gone = code.lines().filter(|line| !line.contains("second"));
    site.write(index, &gone.collect::<Vec<_>>().join("\n"));
    site.rehearse("deploy", &[]).ok();
    let status = site.run(&["status", ID, "--rehearse", "--json"]).ok();
    let stacks = &status.summary()["environments"][0]["stacks"];
    assert_eq!(stacks[1]["resources"], 2, "{stacks}");

    site.rehearse("destroy", &[]).ok();
    assert!(site.resources().is_empty());
    site.rehearse("rollback", &["--to", "1"]).ok();
    assert_eq!(
        site.resources(),
        first,
        "even what was destroyed comes back"
    );
}

#[test]
fn two_runs_at_once_are_refused_with_the_owner_or_wait() {
    let Some(sdk) = node_sdk("two_runs_at_once_are_refused_with_the_owner_or_wait") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let slow = site.orders("latency: {create: 4}\n");
    let first = site.start("deploy", &["--orders", &slow, "--json"]);
    let lock = site.rehearsal(".nimbus/locks/dev.lock");
    wait_until("the run names itself in its lock", || {
        fs::read_to_string(&lock).is_ok_and(|text| text.contains("R0001"))
    });
    let refused = site.rehearse("deploy", &["--json"]).with(4);
    let error = &refused.summary()["error"];
    assert_eq!(error["code"], "NIM-0751");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("State locked by"), "{message}");
    assert!(message.contains("run R0001"), "{message}");
    let locks = site
        .run(&["locks", ID, "--rehearse", "--json"])
        .ok()
        .summary();
    assert_eq!(locks["locks"][0]["run"], "R0001");
    assert_eq!(locks["locks"][0]["process"], first.id());
    let alive = site.rehearse("unlock", &["--yes", "--json"]).with(6);
    assert_eq!(alive.summary()["error"]["code"], "NIM-0752");

    let waited = site.rehearse("deploy", &["--wait", "5m"]).ok();
    assert!(
        waited.stderr.contains("State locked by"),
        "{}",
        waited.stderr
    );
    assert!(
        waited
            .stderr
            .contains("Waiting for lock release... (timeout: 5 minutes)")
    );
    assert!(waited.stdout.contains("1 skipped"), "{}", waited.stdout);
    assert!(first.wait_with_output().unwrap().status.success());
}

#[test]
fn one_stack_is_deployed_when_its_needs_are_there() {
    let Some(sdk) = node_sdk("one_stack_is_deployed_when_its_needs_are_there") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let one = |verb: &str, stack: &str, more: &[&str]| {
        let usual = [
            verb,
            ID,
            stack,
            "--environment",
            "dev",
            "--rehearse",
            "--json",
        ];
        site.run(&[&usual, more].concat())
    };
    let refused = one("deploy-stack", "b", &[]).with(6);
    assert_eq!(refused.summary()["error"]["code"], "NIM-0760");
    one("deploy-stack", "a", &[]).ok();
    let before = site.resources();
    one("deploy-stack", "b", &["--preview"]).with(8);
    assert_eq!(site.resources(), before, "a preview changes nothing");
    assert_eq!(one("deploy-stack", "b", &[]).ok().status("b"), "succeeded");
    one("deploy-stack", "b", &["--preview"]).ok();
    assert_eq!(
        one("deploy-stack", "b", &["--force"]).ok().status("b"),
        "succeeded"
    );
    one("destroy-stack", "b", &[]).ok();
    assert_eq!(site.resources(), before, "what is not asked for stays");
    assert!(
        site.resources()
            .iter()
            .all(|line| !line.contains("b-first"))
    );
    let unknown = one("deploy-stack", "zzz", &[]).with(3);
    assert_eq!(unknown.summary()["error"]["code"], "NIM-0707");
}

#[test]
fn an_environment_waits_for_the_one_before_it() {
    let Some(sdk) = node_sdk("an_environment_waits_for_the_one_before_it") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let real = ["deploy", ID, "--environment", "stage", "--json"];
    let refused = site.run(&real).summary();
    assert_eq!(
        refused["error"]["code"], "NIM-0010",
        "the last of several environments is not deployed by accident: {refused}"
    );
    let refused = site.run(&[&real[..], &["--confirm"]].concat()).with(6);
    assert_eq!(refused.summary()["error"]["code"], "NIM-0757");
    assert!(
        !site.deployment(".nimbus/runs").exists(),
        "nothing was begun"
    );
    // A rehearsal has gates too, of what was rehearsed.
    let stage = |more: &[&str]| {
        let usual = [
            "deploy",
            ID,
            "--environment",
            "stage",
            "--rehearse",
            "--json",
        ];
        site.run(&[&usual, more].concat())
    };
    let closed = |words: &str| {
        let refused = stage(&[]).with(6).summary()["error"].clone();
        assert_eq!(refused["code"], "NIM-0757", "{refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
        refused["help"].as_str().unwrap().to_owned()
    };
    closed("never deployed");
    // Whoever goes around it says why, and that is recorded with the run.
    let skipped = stage(&["--skip-gate", "it burns"]).ok().summary();
    assert!(
        skipped["warnings"].to_string().contains("it burns"),
        "{skipped}"
    );
    let run = skipped["run"].as_str().unwrap();
    let record = site.rehearsal(&format!(".nimbus/runs/{run}/run.json"));
    assert!(fs::read_to_string(record).unwrap().contains("it burns"));

    // What is open stops, until somebody has recorded it.
    site.rehearse("deploy", &[]).ok();
    let help = closed("open in the gate of dev: smoke-tests");
    assert!(help.contains("--pass smoke-tests"), "{help}");
    for item in ["smoke-tests", "resource-validation", "monitoring"] {
        site.rehearse("gate", &["--pass", item, "--note", "seen"])
            .ok();
    }
    stage(&[]).ok();
    // An environment that is switched off is no way around its gate.
    site.run(&["disable-environment", ID, "dev"]).ok();
    closed("it is not enabled");
    site.run(&["enable-environment", ID, "dev"]).ok();
    site.rehearse("destroy", &[]).ok();
    closed("it was destroyed");
}

#[test]
fn a_log_is_followed_until_the_run_ends() {
    let Some(sdk) = node_sdk("a_log_is_followed_until_the_run_ends") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let slow = site.orders("latency: {create: 2}\n");
    let run = site.start("deploy", &["--orders", &slow, "--json"]);
    wait_until("the run is recorded", || {
        site.rehearsal(".nimbus/runs/R0001/run.json").exists()
    });
    let follow = ["logs", ID, "--environment", "dev", "--rehearse", "--follow"];
    let followed = site
        .command(&follow)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let text = String::from_utf8(followed.stdout).unwrap();
    assert!(text.contains("Run R0001 ended: succeeded"), "{text}");
    assert!(run.wait_with_output().unwrap().status.success());
}

#[test]
fn a_run_goes_on_by_its_number_alone_and_is_held_to_its_manifest() {
    let Some(sdk) = node_sdk("a_run_goes_on_by_its_number_alone_and_is_held_to_its_manifest")
    else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let orders = site.orders("orders: [{on: create, name: b-first, do: fail, message: no}]\n");
    let held = ["--json", "--orders", &orders, "--on-failure", "hold"];
    site.rehearse("deploy", &held).with(1);

    let path = site.deployment("Deployment_Manifest.yaml");
    let manifest = fs::read_to_string(&path).unwrap();
    let region = manifest.replacen("region: eu-west-1", "region: eu-west-2", 1);
    assert_ne!(region, manifest);
    fs::write(&path, region).unwrap();
    let moved = site.run(&["resume", "R0001", "--json"]);
    let error = &moved.summary()["error"];
    assert_eq!(error["code"], "NIM-0601", "{error}");
    assert!(
        error["message"]
            .to_string()
            .contains("environment dev is another")
    );
    fs::write(&path, manifest).unwrap();

    // No deployment, no environment, no --rehearse, no orders.
    let ran = site.run(&["resume", "R0001", "--json"]).ok();
    assert_eq!(ran.summary()["result"], "succeeded");
    let unknown = site.run(&["resume", "R0009", "--json"]);
    assert_eq!(unknown.summary()["error"]["code"], "NIM-0753");
}
