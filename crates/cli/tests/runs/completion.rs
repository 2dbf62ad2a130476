//! What a shell is told of runs.

use crate::support::{ID, Site, node_sdk};

#[test]
fn a_shell_is_told_the_runs_that_there_are_newest_first() {
    let Some(sdk) = node_sdk("a_shell_is_told_the_runs_that_there_are_newest_first") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let complete = |words: &[&str]| {
        let mut command = site.command(&[&["--", "nimbus"], words].concat());
        let output = command.env("NIMBUS_COMPLETE", "fish").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| line.replace('\t', ": "));
        lines.collect::<Vec<String>>()
    };
    assert_eq!(complete(&["run", "view", "R"]), [""; 0]);
    site.rehearse("deploy", &[]).ok();
    site.rehearse("destroy", &[]).ok();
    let runs = [
        format!("R0002: destroy of {ID} in dev, rehearsed"),
        format!("R0001: deploy of {ID} in dev, rehearsed"),
    ];
    for words in [&["run", "view", "R"][..], &["resume", "R"]] {
        let mut found = complete(words);
        // Both may have begun in the same second.
        found.sort();
        found.reverse();
        assert_eq!(found, runs, "{words:?}");
    }
    let named = complete(&["resume", ID, "--run", "R"]);
    assert_eq!(named.len(), 2, "{named:?}");
}
