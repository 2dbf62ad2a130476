//! The simulated cloud behaves as a cloud does, through the real binary.

use std::path::Path;

use super::rehearse;
use crate::support::{Site, node_sdk};

/// Types of AWS without its SDK: the cloud knows them by their names.
const PROGRAM: &str = r#"
import * as pulumi from "@pulumi/pulumi";

class Thing extends pulumi.CustomResource {
    constructor(type: string, name: string, args: any, options?: any) {
        super(type, name, args, options);
    }
}

const config = new pulumi.Config();
const bucket = new Thing("aws:s3/bucket:Bucket", "files", { bucket: "mine" }, { protect: false });
const role = new Thing("aws:iam/role:Role", "role", { name: "fixed", path: config.get("path") ?? "/a/" });
if (config.get("lookup")) {
    pulumi.runtime.invoke("demo:index/getThing:getThing", {}).then((found: any) => console.log(`found ${found.size}`));
}
export const ids = [bucket.id, role.id];
"#;

fn site(sdk: &Path) -> Site {
    Site::typescript(sdk, PROGRAM)
}

#[test]
fn names_are_taken_quotas_end_and_what_is_there_can_be_imported() {
    let Some(sdk) = node_sdk("names_are_taken_quotas_end_and_what_is_there_can_be_imported") else {
        return;
    };
    let site = site(&sdk);
    site.write(
        "program/orders.yaml",
        "quotas: {'aws:iam/role:Role': 0}\nobjects:\n- {type: 'aws:s3/bucket:Bucket', id: mine, properties: {bucket: mine}}\n",
    );
    let flags = ["--orders", "orders.yaml", "--continue-on-error"];
    let failed = rehearse(&site, "up", &flags).failed(1);
    for said in ["AlreadyExists: mine is taken", "LimitExceeded"] {
        assert!(failed.stdout.contains(said), "{said}: {}", failed.stdout);
    }
    let nobody = ["aws:s3/bucket:Bucket", "files", "nobodys"];
    rehearse(&site, "import", &nobody).failed(1);
    let mine = ["aws:s3/bucket:Bucket", "files", "mine"];
    let imported = rehearse(&site, "import", &mine).ok();
    assert!(
        imported.stdout.starts_with("REHEARSAL "),
        "{}",
        imported.stdout
    );
    let up = rehearse(&site, "up", &[]).ok();
    assert!(!up.stdout.contains("is taken"), "{}", up.stdout);
}

#[test]
fn a_fixed_name_is_deleted_before_it_is_replaced() {
    let Some(sdk) = node_sdk("a_fixed_name_is_deleted_before_it_is_replaced") else {
        return;
    };
    let site = site(&sdk);
    rehearse(&site, "up", &[]).ok();
    site.config(&["set", "path", "/b/"]).ok();
    let replaced = rehearse(&site, "up", &["--json"]).ok();
    let events = replaced.events();
    let steps: Vec<String> = events
        .iter()
        .filter_map(|event| {
            let metadata = &event["resourcePreEvent"]["metadata"];
            let urn = metadata["urn"].as_str()?;
            urn.ends_with("::role")
                .then(|| metadata["op"].as_str().unwrap().to_owned())
        })
        .collect();
    let at = |op: &str| steps.iter().position(|step| step == op);
    assert!(at("delete-replaced").is_some(), "{steps:?}");
    assert!(
        at("delete-replaced") < at("create-replacement"),
        "{steps:?}"
    );
}

#[test]
fn drift_is_found_by_a_refresh_and_mended_by_an_update() {
    let Some(sdk) = node_sdk("drift_is_found_by_a_refresh_and_mended_by_an_update") else {
        return;
    };
    let site = site(&sdk);
    rehearse(&site, "up", &[]).ok();
    let vanish = "on: read, name: files, do: vanish";
    let flags = ["--order", vanish, "--allow-mass-removal"];
    let refresh = rehearse(&site, "refresh", &flags).ok();
    assert!(refresh.stdout.contains("- 1 deleted"), "{}", refresh.stdout);
    let up = rehearse(&site, "up", &[]).ok();
    assert!(up.stdout.contains("+ 1 created"), "{}", up.stdout);
}

#[test]
fn what_is_half_made_is_recorded_and_finished_by_the_next_run() {
    let Some(sdk) = node_sdk("what_is_half_made_is_recorded_and_finished_by_the_next_run") else {
        return;
    };
    let site = site(&sdk);
    let half = "on: create, name: files, do: half, message: not ready yet";
    let failed = rehearse(&site, "up", &["--order", half]).failed(1);
    assert!(failed.stdout.contains("not ready yet"), "{}", failed.stdout);
    let again = rehearse(&site, "up", &[]).ok();
    assert!(again.stdout.contains("~ 1 updated"), "{}", again.stdout);
}

#[test]
fn an_unknown_function_names_a_file_that_can_answer_it() {
    let Some(sdk) = node_sdk("an_unknown_function_names_a_file_that_can_answer_it") else {
        return;
    };
    let site = site(&sdk);
    site.config(&["set", "lookup", "true"]).ok();
    let failed = rehearse(&site, "up", &[]);
    assert_ne!(failed.code, 0);
    let file = site.path("program/rehearsal/invokes.yaml");
    let named = file.canonicalize().unwrap_or(file).display().to_string();
    assert!(
        failed.stdout.contains("rehearsal/invokes.yaml"),
        "{named}: {}",
        failed.stdout
    );
    site.write(
        "program/rehearsal/invokes.yaml",
        "'demo:index/getThing:getThing': {size: 'large in {region}'}\n",
    );
    let found = rehearse(&site, "up", &[]).ok();
    assert!(
        found.stdout.contains("found large in us-east-1"),
        "{}",
        found.stdout
    );
}

#[test]
fn every_verb_says_rehearsal_to_programs_too() {
    let Some(sdk) = node_sdk("every_verb_says_rehearsal_to_programs_too") else {
        return;
    };
    let site = site(&sdk);
    for command in [
        ["preview", "--no-typecheck"].as_slice(),
        &["up", "--yes", "--no-typecheck"],
        &["refresh", "--yes"],
        &["import", "--yes", "aws:s3/bucket:Bucket", "again", "mine"],
        &["destroy", "--yes"],
    ] {
        let ran = site.program(&[command, &["--rehearse", "--json"]].concat());
        let first = ran.events().into_iter().next().unwrap();
        let said = first["diagnosticEvent"]["message"].as_str();
        assert!(
            said.is_some_and(|text| text.starts_with("REHEARSAL")),
            "{command:?}: {first}"
        );
    }
}
