//! Checks after a deploy: declared in the manifest, run, told, recorded and held against promotion.

use std::fs;

use crate::support::{ID, Site, node_sdk};

/// Declares checks of `dev` in the manifest.
fn declare(site: &Site, checks: &str) {
    let path = site.deployment("Deployment_Manifest.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let at = text.find("\n    dev:").unwrap() + "\n    dev:".len();
    let (head, tail) = text.split_at(at);
    // What an earlier call declared goes.
    let tail = match (tail.find("\n      checks:"), tail.find("\n    stage:")) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &tail[..from], &tail[to..]),
        _ => tail.to_owned(),
    };
    fs::write(&path, format!("{head}\n      checks: {{{checks}}}{tail}")).unwrap();
}

#[test]
fn checks_run_after_the_deploy_with_its_outputs_and_are_recorded() {
    let Some(sdk) = node_sdk("checks_run_after_the_deploy_with_its_outputs_and_are_recorded")
    else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    declare(
        &site,
        "smoke: {command: 'grep first $NIMBUS_OUTPUTS; echo $NIMBUS_ENVIRONMENT is up', rehearse: true}, \
         real: {command: 'exit 1'}",
    );
    let ran = site.rehearse("deploy", &["--json"]).ok();
    let checks = ran.summary()["checks"].clone();
    let statuses: Vec<String> = checks
        .as_array()
        .unwrap()
        .iter()
        .map(|check| format!("{} {}", check["name"], check["status"]).replace('"', ""))
        .collect();
    assert_eq!(
        statuses,
        ["resources passed", "real skipped", "smoke passed"],
        "{checks}"
    );
    let said =
        |event: &serde_json::Value| event["event"] == "check" && event["message"] == "dev is up";
    assert!(ran.events().iter().any(said), "{}", ran.stdout);
    let log = site.rehearse("logs", &[]).ok().stdout;
    assert!(log.contains("check smoke: dev is up"), "{log}");
    assert!(log.contains("check smoke passed"), "{log}");
}

#[test]
fn an_output_that_a_stack_promises_and_does_not_have_is_warned_of() {
    let test = "an_output_that_a_stack_promises_and_does_not_have_is_warned_of";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let warnings = |site: &Site| {
        let summary = site
            .rehearse("deploy", &["--json", "--force"])
            .ok()
            .summary();
        summary["warnings"].to_string()
    };
    assert_eq!(warnings(&site), "[]");
    let program = "cloud/stacks/a/src/index.js";
    let text = fs::read_to_string(site.path(program)).unwrap();
    site.write(program, &text.replace("exports.ids", "exports.others"));
    let warned = warnings(&site);
    assert!(warned.contains("a has no output ids"), "{warned}");
}

#[test]
fn a_failed_check_fails_the_run_and_undoes_it_only_when_told() {
    let Some(sdk) = node_sdk("a_failed_check_fails_the_run_and_undoes_it_only_when_told") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    declare(
        &site,
        "smoke: {command: 'test -e fine', rehearse: true}, \
         soft: {command: 'exit 3', rehearse: true, needed: false}",
    );
    let rolled = ["--json", "--on-failure", "rollback"];
    let ran = site.rehearse("deploy", &rolled).with(1);
    assert_eq!(ran.summary()["result"], "rolled_back");
    assert_eq!(ran.status("a"), "rolled_back");
    assert!(site.resources().is_empty(), "{:?}", site.resources());

    let ran = site.rehearse("deploy", &["--json"]).with(1);
    assert_eq!(ran.summary()["result"], "failed", "{}", ran.stdout);
    assert_eq!(ran.status("a"), "succeeded", "what was deployed stays");
    let checks = ran.summary()["checks"].to_string();
    assert!(
        checks.contains("NIM-0758 check smoke ended with 1"),
        "{checks}"
    );
    assert!(checks.contains("\"warned\""), "{checks}");
    assert!(!site.resources().is_empty());

    // The gate of the next environment is closed by it.
    let stage = [
        "deploy",
        ID,
        "--environment",
        "stage",
        "--rehearse",
        "--json",
    ];
    let closed = site.run(&stage).with(6).summary()["error"].clone();
    assert_eq!(closed["code"], "NIM-0757", "{closed}");
    let message = closed["message"].as_str().unwrap();
    assert!(
        message.contains("stage comes after dev, and its last run failed"),
        "{message}"
    );

    // Once it works, going on with the run is enough: no unit runs again.
    fs::write(site.rehearsal("fine"), "").unwrap();
    let ran = site.rehearse("resume", &["--json"]).ok();
    assert_eq!(ran.summary()["result"], "succeeded");
    let again = |e: &serde_json::Value| e["unit"] == "a" && e["status"] == "running";
    assert!(!ran.events().iter().any(again), "{}", ran.stdout);
}
