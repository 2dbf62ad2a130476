//! How long a real run would take, foretold by a rehearsal through the real binary.

use std::path::Path;
use std::time::{Duration, Instant};

use super::rehearse;
use crate::support::{ProgramRunOutput, Site, node_sdk};

/// `last` needs `middle`, which needs `first`; `beside` needs nobody.
const PROGRAM: &str = r#"
import * as pulumi from "@pulumi/pulumi";

class Thing extends pulumi.CustomResource {
    constructor(name: string, needs: pulumi.CustomResource[]) {
        super("cloud:index:Thing", name, { needs: needs.map(thing => thing.id) });
    }
}

const first = new Thing("first", []);
const middle = new Thing("middle", [first]);
new Thing("last", [middle]);
new Thing("beside", []);
"#;

fn site(sdk: &Path) -> Site {
    Site::typescript(sdk, PROGRAM)
}

/// What is said before the summary.
fn sentence(ran: &ProgramRunOutput) -> String {
    let mut lines = ran.stdout.lines().map(str::trim);
    let found = lines.find(|line| line.starts_with("REHEARSAL: predicted duration"));
    found.unwrap_or_else(|| panic!("{}", ran.stdout)).to_owned()
}

#[test]
fn a_rehearsal_that_waits_for_nothing_foretells_hours_and_names_the_critical_path() {
    let name = "a_rehearsal_that_waits_for_nothing_foretells_hours_and_names_the_critical_path";
    let Some(sdk) = node_sdk(name) else { return };
    let site = site(&sdk);
    site.write(
        "program/latencies.yaml",
        "scale: 0\ncreate: 1h\ndelete: {min: 1h, max: 2h}\ntypes: {'cloud:*': {create: 2h}}\n",
    );
    let began = Instant::now();
    let up = rehearse(&site, "up", &["--latencies", "latencies.yaml"]).ok();
    let said = sentence(&up);
    assert!(said.contains("a real run: 6 h"), "{said}");
    assert!(
        said.ends_with("(critical path: first 2 h → middle 2 h → last 2 h)"),
        "{said}"
    );
    // Nothing changes: nothing is called, and nothing foretold.
    let same = rehearse(&site, "up", &["--latencies", "latencies.yaml"]).ok();
    assert!(!same.stdout.contains("predicted"), "{}", same.stdout);
    let destroy = rehearse(&site, "destroy", &["--latencies", "latencies.yaml"]).ok();
    let said = sentence(&destroy);
    let path: Vec<_> = said.split(['(', '→']).skip(1).collect();
    assert_eq!(path.len(), 3, "{said}");
    assert!(
        path[1].contains("middle") && path[2].contains("first"),
        "{said}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(3600),
        "nobody waited for an hour"
    );
}

#[test]
fn the_same_seed_foretells_the_same_and_another_another() {
    let Some(sdk) = node_sdk("the_same_seed_foretells_the_same_and_another_another") else {
        return;
    };
    let foretold = |seed: &str| {
        let site = site(&sdk);
        site.write(
            "program/orders.yaml",
            "latency: {scale: 0, create: {p50: 20h, p95: 40h}}\n",
        );
        let ran = rehearse(&site, "up", &["--orders", "orders.yaml", "--seed", seed]).ok();
        let said = sentence(&ran);
        said.split_once("(critical").unwrap().1.to_owned()
    };
    assert_eq!(foretold("1"), foretold("1"));
    assert_ne!(foretold("1"), foretold("2"));
}

/// The engine's own work is counted as it is, so a rehearsal that waits in full takes what it
/// foretells on any machine.
#[test]
fn a_rehearsal_that_waits_in_full_takes_what_it_foretells() {
    let Some(sdk) = node_sdk("a_rehearsal_that_waits_in_full_takes_what_it_foretells") else {
        return;
    };
    let site = site(&sdk);
    let ran = rehearse(&site, "up", &["--latency", "0.7", "--json"]).ok();
    let events = ran.events();
    let summary = events.last().unwrap();
    let took = summary["summaryEvent"]["durationSeconds"].as_f64().unwrap();
    let said = events.iter().find_map(|event| {
        let text = event["diagnosticEvent"]["message"].as_str()?;
        text.contains("predicted duration").then(|| text.to_owned())
    });
    let said = said.unwrap();
    let foretold = said.split("a real run: ").nth(1).unwrap();
    let foretold = foretold.split(" (").next().unwrap();
    // Whole seconds on one side, tenths on the other.
    let (number, unit) = foretold.split_once(' ').unwrap();
    let seconds = number.parse::<f64>().unwrap() * if unit == "s" { 1.0 } else { 60.0 };
    let slack = if unit == "s" { 1.1 } else { 61.0 };
    assert!((seconds - took).abs() <= slack, "{said}: took {took}");
    assert!(took >= 2.0, "three calls follow each other: {took}");
}

#[test]
fn wrong_latencies_are_refused_with_their_place() {
    let Some(sdk) = node_sdk("wrong_latencies_are_refused_with_their_place") else {
        return;
    };
    let site = site(&sdk);
    site.write(
        "program/latencies.yaml",
        "create: 1s\ntypes:\n  'aws:rds/*':\n    create: {p50: 9m, p95: 6m}\n",
    );
    let refused = rehearse(&site, "up", &["--latencies", "latencies.yaml"]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("latencies.yaml:4"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("less than p50"),
        "{}",
        refused.stderr
    );
    for wrong in [
        ["--time-scale", "-1"],
        ["--time-scale", "NaN"],
        ["--seed", "x"],
        ["--latencies", "nowhere.yaml"],
    ] {
        let refused = rehearse(&site, "up", &wrong);
        assert_ne!(refused.code, 0, "{wrong:?}");
    }
    // The shipped example is one word away.
    let example = ["--latencies", "example", "--time-scale", "0"];
    sentence(&rehearse(&site, "up", &example).ok());
}
