//! The policy pack over what the library makes, and over ways around its rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::Value;

use crate::place::{DEPLOY_AND_HOLD, ID, LibrarySite};

const HELD: &[&str] = &["--no-typecheck", "--policy-pack", "cloud/policies/baseline"];

#[test]
fn all_sixteen_pass_the_policy_pack_in_production() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "default");
    place.ok(&["enable-environment", ID, "prod"]);
    // With everything that is off unless somebody wants it, too.
    for (stack, off, on) in [
        ("network", "dualStack: false", "dualStack: true"),
        (
            "services-ecs",
            "publicLoadBalancer: false",
            "publicLoadBalancer: true",
        ),
        ("storage", "dataLake: false", "dataLake: true"),
        (
            "security",
            "manageAccountBaseline: false",
            "manageAccountBaseline: true",
        ),
    ] {
        place.edit_stack(stack, "prod", &[(off, on)]);
    }
    let deployed = place.every_stack("deploy", "prod", HELD);
    assert_eq!(deployed.with("succeeded").len(), 16, "{:?}", deployed.0);
    assert!(place.recorded("prod") > 350);
}

/// Each evasion is a resource that carries the name of the rule it tries to get around.
const EVADE: &str = r#"
import * as anything from "@pulumi/pulumi";
import { EVASIONS } from "./evasions";
import { THIRD_EVASIONS } from "./evasions-third";

class Evasion extends anything.CustomResource {}
[...EVASIONS, ...THIRD_EVASIONS].forEach(([rule, , type, props], index) => {
  new Evasion(type, `network-evasion-${index}-of-${rule}`, { ...props });
});
"#;

/// The name of an evasion and the rule that should see it.
fn evasion(text: &str) -> Option<(&str, &str)> {
    let name = text.split([':', ' ']).next()?;
    let (start, rule) = name.split_once("-of-")?;
    start
        .starts_with("network-evasion-")
        .then_some((name, rule))
}

#[test]
fn every_way_around_a_rule_is_seen_in_a_preview_and_nothing_is_made() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "minimal");
    let (pack, source) = (
        place.path("cloud/policies/baseline"),
        place.path("cloud/stacks/network/src"),
    );
    for file in ["evasions.ts", "evasions-third.ts"] {
        let ways = fs::read_to_string(pack.join("tests").join(file)).unwrap();
        fs::write(source.join(file), ways.replace("../src/", "./")).unwrap();
    }
    for file in ["rule.ts", "tags.ts"] {
        fs::copy(pack.join("src").join(file), source.join(file)).unwrap();
    }
    let program = source.join("index.ts");
    let text = fs::read_to_string(&program).unwrap();
    fs::write(&program, text + EVADE).unwrap();
    let preview = [
        "preview",
        ID,
        "--environment",
        "dev",
        "--rehearse",
        "--json",
    ];
    let (code, stdout, stderr) = place.run(&[&preview[..], HELD].concat());
    assert_ne!(code, 0, "{stdout}\n{stderr}");

    let mut tried = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for line in stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_default();
        if let Some((name, rule)) = event["name"].as_str().and_then(evasion) {
            tried.insert(name.to_owned(), rule.to_owned());
        }
        let message = event["message"].as_str().unwrap_or_default();
        let (head, body) = message.split_once('\n').unwrap_or_default();
        if let Some((name, rule)) = evasion(body)
            && head.starts_with(&format!("policy {rule}:"))
        {
            seen.insert(name.to_owned());
        }
    }
    assert!(tried.len() >= 140, "{} ways were tried", tried.len());
    let missed: Vec<_> = tried.keys().filter(|name| !seen.contains(*name)).collect();
    assert!(missed.is_empty(), "not seen: {missed:?}");
    assert_eq!(place.recorded("dev"), 0);
}

#[test]
fn what_breaks_a_rule_is_stopped_before_anything_is_made() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "minimal");
    let deployed = place.every_stack("deploy", "dev", HELD);
    assert_eq!(deployed.with("succeeded").len(), 3, "{:?}", deployed.0);

    let program = place.path("cloud/stacks/network/src/index.ts");
    let mut text = fs::read_to_string(&program).unwrap();
    text.push_str(
        "\nimport * as awsForAll from \"@pulumi/aws\";\n\
         new awsForAll.vpc.SecurityGroupIngressRule(\"network-door\", {\n\
         securityGroupId: \"sg-1\", ipProtocol: \"tcp\", fromPort: 22, toPort: 22,\n\
         cidrIpv4: \"0.0.0.0/0\" });\n",
    );
    fs::write(&program, text).unwrap();
    let before = place.recorded("dev");
    let (code, stdout, stderr) = place.run(&[DEPLOY_AND_HOLD, HELD].concat());
    assert_ne!(code, 0, "{stdout}\n{stderr}");
    assert!(
        format!("{stdout}{stderr}").contains("open-ports"),
        "{stdout}\n{stderr}"
    );
    assert_eq!(place.recorded("dev"), before, "nothing was made");
}
