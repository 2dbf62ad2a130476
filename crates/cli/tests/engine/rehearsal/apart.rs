//! A rehearsal and real runs never meet, and a world that cannot be trusted is not used.

use std::fs;

use crate::support::node_sdk;

use super::{site, up};

#[test]
fn real_runs_refuse_the_state_of_rehearsals_however_they_are_pointed_at_it() {
    let name = "real_runs_refuse_the_state_of_rehearsals_however_they_are_pointed_at_it";
    let Some(sdk) = node_sdk(name) else { return };
    let site = site(&sdk);
    up(&site, &[]).ok();
    let folder = site.path("program/.nimbus/rehearsal");
    let address = format!("file://{}", folder.display());
    for verb in ["preview", "up", "destroy", "refresh"] {
        let command = ["program", verb, "--backend", &address];
        let output = site.command(&command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("NIM-0614"), "{verb}: {said}");
    }
    let mut by_variable = site.command(&["program", "destroy", "--yes"]);
    by_variable.env("PULUMI_BACKEND_URL", &address);
    let output = by_variable.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("NIM-0614"), "{said}");
    // And the variable does not lead a rehearsal anywhere else.
    let elsewhere = site.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let flags = ["program", "up", "--rehearse", "--yes", "--no-typecheck"];
    let mut rehearsed = site.command(&flags);
    rehearsed.env(
        "PULUMI_BACKEND_URL",
        format!("file://{}", elsewhere.display()),
    );
    assert!(rehearsed.output().unwrap().status.success());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_damaged_or_newer_world_is_named_and_left_alone() {
    let Some(sdk) = node_sdk("a_damaged_or_newer_world_is_named_and_left_alone") else {
        return;
    };
    let site = site(&sdk);
    up(&site, &[]).ok();
    let world = site.path("program/.nimbus/rehearsal/world-dev.jsonl");
    let good = fs::read_to_string(&world).unwrap();
    for (bad, code) in [
        (good.replacen("\"put\"", "\"pit\"", 1), "NIM-0612"),
        (
            good.replacen("\"version\":1", "\"version\":7", 1),
            "NIM-0613",
        ),
    ] {
        assert_ne!(bad, good);
        fs::write(&world, &bad).unwrap();
        let refused = up(&site, &[]).failed(if code == "NIM-0612" { 2 } else { 6 });
        assert!(refused.stderr.contains(code), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("world-dev.jsonl"),
            "{}",
            refused.stderr
        );
        assert_eq!(fs::read_to_string(&world).unwrap(), bad);
    }
    fs::write(&world, &good).unwrap();
    up(&site, &[]).ok();
}
