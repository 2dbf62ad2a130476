//! Policy packs, unmodified, through the command line.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{Site, finish, node_sdk};

fn with_pack(sdk: &Path) -> (Site, String) {
    let site = Site::notes(sdk);
    site.write(
        "pack/PulumiPolicy.yaml",
        "runtime: nodejs\nversion: 1.2.0\n",
    );
    site.write(
        "pack/package.json",
        r#"{"name": "house-rules", "version": "1.2.0", "main": "index.ts"}"#,
    );
    site.write("pack/index.ts", include_str!("../fixtures/house-rules.ts"));
    symlink(sdk.join("node_modules"), site.path("pack/node_modules")).unwrap();
    let pack = site.path("pack").display().to_string();
    (site, pack)
}

#[test]
fn a_mandatory_violation_stops_before_any_change() {
    let Some(sdk) = node_sdk("a_mandatory_violation_stops_before_any_change") else {
        return;
    };
    let (site, pack) = with_pack(&sdk);
    site.config(&["set", "greeting", "forbidden words"]).ok();
    let up = ["up", "--yes", "--policy-pack", &pack];
    let refused = site.program(&up).failed(6);
    assert!(
        refused
            .stdout
            .contains("[mandatory] house-rules@1.2.0: no-forbidden-words"),
        "{}",
        refused.stdout
    );
    assert!(refused.stderr.contains("NIM-0504"), "{}", refused.stderr);
    assert!(site.cloud().is_empty(), "nothing was made");

    let json = site
        .program(&["up", "--yes", "--json", "--policy-pack", &pack])
        .failed(6);
    let events = json.events();
    assert!(
        events
            .iter()
            .any(|event| event["policyEvent"]["enforcementLevel"] == "mandatory")
    );
    assert_eq!(events.last().unwrap()["summaryEvent"]["result"], "failed");
    assert!(site.cloud().is_empty());

    site.config(&["set", "greeting", "kind words"]).ok();
    let up = site.program(&up).ok();
    assert!(
        up.stdout
            .contains("[advisory] house-rules@1.2.0: short-texts"),
        "{}",
        up.stdout
    );
    assert_eq!(site.cloud().len(), 2);
}

/// A pack that writes down when it was asked and what it was told of the stack.
const WITNESS: &str = r#"import * as fs from "fs";
import { PolicyPack } from "@pulumi/policy";

new PolicyPack("witness", {
    policies: [
        {
            name: "writes-down",
            description: "Says what it sees.",
            enforcementLevel: "advisory",
            validateResource: (args) => {
                if (args.type.includes("Stack")) {
                    const file = process.env.PULUMI_POLICY_WITNESS as string;
                    fs.appendFileSync(file, `tags ${JSON.stringify([...args.stackTags])}\n`);
                }
            },
        },
    ],
});
"#;

#[test]
fn packs_see_the_tags_of_the_stack_and_are_asked_once_without_a_preview() {
    let test = "packs_see_the_tags_of_the_stack_and_are_asked_once_without_a_preview";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let (site, pack) = with_pack(&sdk);
    site.up().ok();
    site.write("pack/index.ts", WITNESS);
    site.write(
        "backend/.pulumi/stacks/notes/dev.pulumi-tags",
        r#"{"version":1,"tags":{"owner":"me"}}"#,
    );
    let witness = site.path("witness");
    let asked = |arguments: &[&str]| {
        let _ = std::fs::remove_file(&witness);
        let arguments = [
            &["program", "up", "--yes", "--policy-pack", &pack],
            arguments,
        ]
        .concat();
        let mut command = site.command(&arguments);
        let output = command.env("PULUMI_POLICY_WITNESS", &witness).output();
        finish(output.unwrap()).ok();
        std::fs::read_to_string(&witness).unwrap()
    };
    assert_eq!(asked(&["--skip-preview"]), "tags [[\"owner\",\"me\"]]\n");
    assert_eq!(
        asked(&[]).lines().count(),
        2,
        "in the preview and in the update"
    );
}
