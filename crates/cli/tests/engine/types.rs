//! Types of TypeScript programs, through the real binary: checked beside the start, and before the
//! first change.

use std::path::Path;

use crate::support::{ProgramRunOutput, Site, node_sdk};

fn site(sdk: &Path, size: &str) -> Site {
    let source = format!(
        r#"import * as pulumi from "@pulumi/pulumi";

class Thing extends pulumi.ComponentResource {{
    constructor(name: string) {{
        super("test:index:Thing", name);
        this.registerOutputs({{}});
    }}
}}

new Thing("one");
const size: number = {size};
export const answer = size;
"#
    );
    Site::typescript(sdk, &source)
}

/// Whether any step was begun.
fn has_steps(ran: &ProgramRunOutput) -> bool {
    let mut events = ran.events().into_iter();
    events.any(|event| event.get("resourcePreEvent").is_some())
}

#[test]
fn a_type_error_fails_the_run_before_its_first_change() {
    let Some(sdk) = node_sdk("a_type_error_fails_the_run_before_its_first_change") else {
        return;
    };
    let site = site(&sdk, r#""three""#);
    for arguments in [
        ["preview", "--diff"].as_slice(),
        &["up", "--yes"],
        &["up", "--yes", "--skip-preview"],
    ] {
        let failed = site.program(arguments).failed(1);
        let said = format!("{}{}", failed.stdout, failed.stderr);
        let place = format!(
            "{}:11:7 - error TS2322",
            site.path("program/index.ts").display()
        );
        assert!(said.contains(&place), "{said}");
        assert!(
            said.contains("'string' is not assignable to type 'number'"),
            "{said}"
        );
    }
    let failed = site.program(&["up", "--yes", "--json"]).failed(1);
    assert!(!has_steps(&failed), "{}", failed.stdout);
    let listed = site.state(&["ls", "--json"]);
    assert!(!listed.stdout.contains("Thing"), "{}", listed.stdout);
}

#[test]
fn whoever_wants_no_check_gets_none() {
    let Some(sdk) = node_sdk("whoever_wants_no_check_gets_none") else {
        return;
    };
    let site = site(&sdk, r#""three""#);
    let up = site
        .program(&["up", "--yes", "--no-typecheck", "--json"])
        .ok();
    assert!(has_steps(&up));
    let answer = site.program(&["outputs", "answer"]).ok();
    assert_eq!(answer.stdout, "three\n");
    // What went unchecked once is checked as soon as nobody says otherwise.
    site.program(&["up", "--yes", "--skip-preview"]).failed(1);
}

#[test]
fn right_types_pass_and_a_verdict_is_no_excuse_for_a_changed_file() {
    let Some(sdk) = node_sdk("right_types_pass_and_a_verdict_is_no_excuse_for_a_changed_file")
    else {
        return;
    };
    let site = site(&sdk, "3");
    site.up().ok();
    site.up().ok();
    let wrong = site
        .read("program/index.ts")
        .replace("= 3;", "= [3].map(String);");
    site.write("program/index.ts", &wrong);
    let failed = site.up().failed(1);
    assert!(failed.stdout.contains("index.ts:11:7"), "{}", failed.stdout);
}
