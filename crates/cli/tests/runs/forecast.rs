//! A rehearsal of a deployment says how long a real run would take, and keeps out of real ones.

use std::fs;

use crate::support::{DIAMOND, ID, Site, node_sdk};

#[test]
fn the_duration_of_a_real_run_is_predicted_by_stack_and_in_total() {
    let Some(sdk) = node_sdk("the_duration_of_a_real_run_is_predicted_by_stack_and_in_total")
    else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    // Two resources that follow each other in every stack; those of `c` are the slow ones.
    site.write(
        "slow.yaml",
        "scale: 0\ncreate: 1h\ndelete: 30m\ntypes: {'demo:*': {create: 2h}}\n",
    );
    let latencies = site.path("slow.yaml").display().to_string();
    let orders = site.orders("orders: [{on: create, name: c-first, do: stall, seconds: 10h}]\n");
    let flags = ["--latencies", &latencies, "--orders", &orders, "--json"];
    let summary = site.rehearse("deploy", &flags).ok().summary();
    let prediction = &summary["prediction"];
    let hours = |value: &serde_json::Value| (value.as_f64().unwrap() / 3600.0).floor();
    let path = |value: &serde_json::Value| {
        let steps = value["critical_path"].as_array().unwrap().iter();
        let names = steps.map(|step| step["name"].as_str().unwrap());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(hours(&prediction["seconds"]), 4.0 + 14.0 + 4.0);
    assert_eq!(path(prediction), "a c d");
    assert_eq!(hours(&prediction["units"]["b"]["seconds"]), 4.0);
    assert_eq!(hours(&prediction["units"]["c"]["seconds"]), 14.0);
    assert_eq!(path(&prediction["units"]["c"]), "c-first c-second");

    // One after the other takes the sum of all.
    let destroyed = ["--latencies", &latencies, "--json", "--parallel", "1"];
    let summary = site.rehearse("destroy", &destroyed).ok().summary();
    let prediction = &summary["prediction"];
    assert_eq!(hours(&prediction["seconds"]), 4.0);
    assert!(path(prediction).starts_with("d "), "{prediction}");
    assert!(path(prediction).ends_with(" a"), "{prediction}");

    let told = site.rehearse("deploy", &["--latency", "0"]).ok();
    assert!(!told.stdout.contains("redicted"), "{}", told.stdout);
    let told = ["--latencies", &latencies, "--force"];
    site.set_size("b", "9");
    let told = site.rehearse("deploy", &told).ok();
    assert!(!told.stdout.contains("critical path: a"), "{}", told.stdout);
}

#[test]
fn the_plan_of_a_rehearsal_says_what_the_cloud_takes_and_how_that_is_known() {
    let test = "the_plan_of_a_rehearsal_says_what_the_cloud_takes_and_how_that_is_known";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let template = site.path("cloud/tools/templates/config/a.yaml");
    let text = fs::read_to_string(&template).unwrap();
    fs::write(&template, format!("{text}estimate: {{minutes: 7}}\n")).unwrap();
    // A program that needs no cloud.
    site.write(
        "cloud/stacks/a/src/index.js",
        "exports.first = 'x';\nexports.ids = [];\n",
    );
    let plan = || site.rehearse("deploy", &["--force"]).ok().stderr;
    let first = plan();
    let said = "Estimated Time: 7 minutes in the cloud, as templates say";
    assert!(first.contains(said), "{first}");
    site.run(&["deploy", ID, "--environment", "dev", "--yes"])
        .ok();
    let second = plan();
    let took = "Estimated Time: 1 minutes in the cloud, as it took last time";
    assert!(second.contains(took), "{second}");
    assert!(second.contains("Rehearsal Time: ~"), "{second}");
}

#[test]
fn a_real_run_refuses_the_state_of_rehearsals() {
    let Some(sdk) = node_sdk("a_real_run_refuses_the_state_of_rehearsals") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    site.rehearse("deploy", &[]).ok();
    let before = site.resources();
    let folder = format!("file://{}", site.rehearsal("").display());
    for verb in ["deploy", "destroy"] {
        let flags = ["--environment", "dev", "--yes", "--backend", &folder];
        let refused = site.run(&[&[verb, ID][..], &flags].concat());
        assert_ne!(refused.code, 0);
        assert!(refused.stderr.contains("NIM-0614"), "{}", refused.stderr);
    }
    assert_eq!(site.resources(), before);
    let both = ["--backend", "file:///nowhere"];
    assert_eq!(site.rehearse("deploy", &both).code, 2);
}

#[test]
fn what_real_runs_took_becomes_a_file_for_rehearsals() {
    let Some(sdk) = node_sdk("what_real_runs_took_becomes_a_file_for_rehearsals") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let none = site.run(&["latencies", ID]).with(3);
    assert!(none.stderr.contains("--example"), "{}", none.stderr);
    site.rehearse("deploy", &["--latency", "0.6"]).ok();
    site.run(&["latencies", ID]).with(3);
    // Records of real runs look the same, and are elsewhere.
    fs::create_dir_all(site.deployment(".nimbus")).unwrap();
    let from = site.rehearsal(".nimbus/runs");
    fs::rename(from, site.deployment(".nimbus/runs")).unwrap();
    let told = site.run(&["latencies", ID, "--environment", "dev", "--json"]);
    let measured = &told.ok().summary()["measured"][0];
    assert_eq!(measured["type"], "demo:index:Thing");
    assert_eq!(measured["call"], "create");
    assert_eq!(measured["count"], 2);
    assert!(measured["p50"].as_f64().unwrap() >= 0.6, "{measured}");
    let file = site.run(&["latencies", ID]).ok().stdout;
    site.write("measured.yaml", &file);
    let again = Site::new(&sdk, &[("a", &[])]);
    let path = site.path("measured.yaml").display().to_string();
    let flags = ["--latencies", &path, "--time-scale", "0", "--json"];
    let summary = again.rehearse("deploy", &flags).ok().summary();
    let predicted = summary["prediction"]["units"]["a"]["seconds"].as_f64();
    let predicted = predicted.unwrap();
    assert!(predicted >= 1.2, "two that follow each other: {predicted}");

    // Without the file the same is known: what real runs of the environment took.
    fs::remove_dir_all(site.rehearsal("")).unwrap();
    let told = site.rehearse("deploy", &[]).ok();
    let text = "Predicted duration of a real run: ";
    assert!(told.stdout.contains(text), "{}", told.stdout);
    assert!(!told.stderr.contains("Estimated Time"), "{}", told.stderr);

    let example = site.run(&["latencies", "--example"]).ok().stdout;
    assert!(example.starts_with("# An example"), "{example}");
    site.run(&["latencies"]).with(2);
}
