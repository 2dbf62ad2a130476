//! One program on a simulated cloud, through the real binary.

mod apart;
mod cloud;
mod forecast;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{ProgramRunOutput, Site, node_sdk, python};

const PROGRAM: &str = r#"
import * as pulumi from "@pulumi/pulumi";

class Thing extends pulumi.CustomResource {
    constructor(name: string, size: number) {
        super("cloud:index:Thing", name, { size });
    }
}

const size = new pulumi.Config().getNumber("size") ?? 1;
const first = new Thing("first", size);
new Thing("second", size);
export const id = first.id;
export const hidden = pulumi.secret(first.urn);
"#;

fn site(sdk: &Path) -> Site {
    Site::typescript(sdk, PROGRAM)
}

fn rehearse(site: &Site, verb: &str, flags: &[&str]) -> ProgramRunOutput {
    let common = [verb, "--rehearse", "--yes", "--skip-preview"];
    let typed: &[&str] = if verb == "up" {
        &["--no-typecheck"]
    } else {
        &[]
    };
    site.program(&[&common, typed, flags].concat())
}

fn up(site: &Site, flags: &[&str]) -> ProgramRunOutput {
    site.program(&[&["up", "--rehearse", "--yes", "--no-typecheck"], flags].concat())
}

#[test]
fn an_operation_of_a_program_is_traced_down_to_the_provider_call() {
    let Some(sdk) = node_sdk("an_operation_of_a_program_is_traced_down_to_the_provider_call")
    else {
        return;
    };
    let site = site(&sdk);
    let file = site.path("trace.json").display().to_string();
    rehearse(&site, "up", &["--trace", &file]).ok();
    let text = fs::read_to_string(&file).unwrap();
    let spans: Vec<Value> = serde_json::from_str(&text).unwrap();
    let parent = |span: &Value| {
        let of = span["args"]["parent"].clone();
        let mut all = spans.iter();
        all.find(|one| !of.is_null() && one["args"]["span"] == of)
    };
    let creates: Vec<_> = spans
        .iter()
        .filter(|span| span["args"]["method"] == "Create")
        .collect();
    assert_eq!(creates.len(), 2, "{text}");
    for create in creates {
        let step = parent(create).unwrap();
        assert_eq!(step["name"], "step", "{step}");
        let operation = parent(step).unwrap();
        assert_eq!(operation["name"], "operation", "{operation}");
        assert!(parent(operation).is_none(), "{operation}");
    }
}

#[test]
fn a_rehearsal_says_so_and_keeps_to_itself() {
    let Some(sdk) = node_sdk("a_rehearsal_says_so_and_keeps_to_itself") else {
        return;
    };
    let site = site(&sdk);
    site.config(&["set", "size", "2"]).ok();
    let settings = site.read("program/Pulumi.dev.yaml");

    let preview = site
        .program(&["preview", "--rehearse", "--no-typecheck"])
        .ok();
    assert!(
        preview.stdout.starts_with("REHEARSAL Previewing"),
        "{}",
        preview.stdout
    );
    let up_ran = up(&site, &[]).ok();
    assert!(
        up_ran.stdout.contains("REHEARSAL Updating"),
        "{}",
        up_ran.stdout
    );
    assert!(up_ran.stdout.contains("+ 3 created"), "{}", up_ran.stdout);
    assert!(!site.path("backend").exists(), "real state was touched");
    assert_eq!(
        site.read("program/Pulumi.dev.yaml"),
        settings,
        "the stack's settings were written to"
    );
    // Secrets of a rehearsal are under its own passphrase.
    let mut no_passphrase = site.command(&[
        "program",
        "up",
        "--rehearse",
        "--yes",
        "--json",
        "--no-typecheck",
    ]);
    let again = no_passphrase
        .env_remove("PULUMI_CONFIG_PASSPHRASE")
        .output();
    let again = String::from_utf8(again.unwrap().stdout).unwrap();
    assert!(again.contains("REHEARSAL"), "{again}");
    assert!(again.contains(r#""same":3"#), "{again}");

    let folder = site.path("program/.nimbus/rehearsal");
    let world = fs::read_to_string(folder.join("world-dev.jsonl")).unwrap();
    assert!(world.contains("cloud:index:Thing"), "{world}");
    for verb in ["refresh", "destroy"] {
        let ran = site
            .program(&[verb, "--rehearse", "--yes", "--skip-preview"])
            .ok();
        assert!(ran.stdout.starts_with("REHEARSAL "), "{}", ran.stdout);
    }
    let asked = site
        .program(&["up", "--rehearse", "--no-typecheck"])
        .failed(6);
    assert!(
        asked.stderr.contains("REHEARSAL Update dev?"),
        "{}",
        asked.stderr
    );
}

#[test]
fn a_rehearsal_takes_orders_from_flags_and_from_a_file() {
    let Some(sdk) = node_sdk("a_rehearsal_takes_orders_from_flags_and_from_a_file") else {
        return;
    };
    let site = site(&sdk);
    let order = "on: create, name: second, do: fail, message: the cloud is full";
    let failed = up(&site, &["--skip-preview", "--order", order]).failed(1);
    assert!(
        failed.stdout.contains("the cloud is full"),
        "{}",
        failed.stdout
    );
    site.write(
        "program/orders.yaml",
        "orders: [{on: update, name: first, do: fail, message: not today}]\n",
    );
    up(&site, &["--orders", "orders.yaml", "--latency", "0.01"]).ok();
    site.config(&["set", "size", "3"]).ok();
    let failed = up(&site, &["--skip-preview", "--orders", "orders.yaml"]).failed(1);
    assert!(failed.stdout.contains("not today"), "{}", failed.stdout);

    for wrong in [
        ["--order", "on: never, do: fail"].as_slice(),
        &["--latency", "-1"],
        &["--backend", "file:///nowhere"],
    ] {
        let refused = up(&site, wrong);
        assert_ne!(refused.code, 0, "{wrong:?}");
    }
    site.program(&["up", "--yes", "--order", order]).failed(2);
}

#[test]
fn outputs_of_a_python_program_follow_the_annotations_of_its_sdk() {
    let Some(interpreter) = python("outputs_of_a_python_program_follow_the_annotations_of_its_sdk")
    else {
        return;
    };
    let site = Site::new();
    let virtualenv = interpreter.parent().unwrap().parent().unwrap();
    site.write(
        "program/Pulumi.yaml",
        &format!(
            "name: notes\nruntime:\n  name: python\n  options:\n    virtualenv: {}\n",
            virtualenv.display()
        ),
    );
    site.write(
        "program/__main__.py",
        r#"
import pulumi
import pulumi_random as random

number = random.RandomInteger("number", min=1, max=9)
words = random.RandomShuffle("words", inputs=["a", "b"])
token = random.RandomId("token", byte_length=8)
# What does not have the declared type fails here.
pulumi.export("twice", number.result.apply(lambda n: n + n))
pulumi.export("first", words.results.apply(lambda list: list[0].upper()))
pulumi.export("hex", token.hex.apply(lambda text: text + "!"))
"#,
    );
    let up = site.program(&["up", "--rehearse", "--yes", "--json"]).ok();
    let outputs = up.events().into_iter().rev().find_map(|event| {
        let outputs = event["resOutputsEvent"]["metadata"]["new"]["outputs"].clone();
        outputs.get("twice").is_some().then_some(outputs)
    });
    let outputs = outputs.expect("the stack has outputs");
    // What was asked for by range, list and length is in it.
    let twice = outputs["twice"].as_f64().unwrap();
    assert!((2.0..=18.0).contains(&twice), "{outputs}");
    assert!(["A", "B"].contains(&outputs["first"].as_str().unwrap()));
    assert_eq!(outputs["hex"].as_str().map(str::len), Some(17), "{outputs}");
    let same = site
        .program(&["preview", "--rehearse", "--expect-no-changes", "--json"])
        .ok();
    let summary: Value = same.events().pop().unwrap();
    assert_eq!(summary["summaryEvent"]["resourceChanges"]["same"], 4);
}
