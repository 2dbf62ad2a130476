//! What somebody in front of a terminal sees and is asked.

use crate::support::{DIAMOND, ID, Site, Stack, node_sdk};
use crate::terminal_session::Session;

#[test]
fn a_person_sees_the_plan_then_all_stacks_on_one_screen() {
    let Some(sdk) = node_sdk("a_person_sees_the_plan_then_all_stacks_on_one_screen") else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    let arguments = ["deploy", ID, "--environment", "dev", "--rehearse"];
    let mut session = Session::start_wide(&site.command(&arguments), 80);
    session.wait_for("Total Stacks: 4 enabled");
    session.wait_for("REHEARSAL Deploying D1RUNS dev");
    session.wait_for("waiting for b, c");
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("\u{1b}["), "the picture is redrawn in place");
    assert!(seen.contains("4 done"), "{seen}");
    assert_fits(&seen);

    // Nothing to do is told in three lines at most.
    let (code, seen) = Session::start_wide(&site.command(&arguments), 80).end();
    assert_eq!(code, 0, "{seen}");
    let shown = shown_lines(&seen);
    assert!(shown.len() <= 3, "{shown:#?}");
    assert!(seen.contains("nothing to do: 4 skipped"), "{seen}");

    // Whatever else there is to read on eighty columns: its words are whole.
    site.set_size("a", "a-value-that-is-rather-long");
    let long = "a message of somebody who explains in many more words than fit on one line why this was done";
    for (more, whole) in [
        (
            &["why", ID, "a", "--environment", "dev", "--rehearse"][..],
            "config a:size changed",
        ),
        (&["status", ID, "--rehearse"], "D1RUNS"),
        (&["graph", ID], "Layer 3"),
        (
            &["deploy", ID, "--environment", "nowhere", "--rehearse"],
            "environment",
        ),
        (
            &[
                "deploy",
                ID,
                "--environment",
                "dev",
                "--rehearse",
                "--message",
                long,
            ],
            "succeeded",
        ),
        (
            &[
                "rollback",
                ID,
                "--environment",
                "dev",
                "--rehearse",
                "--list",
            ],
            "VERSION",
        ),
        (&["validate", ID], "D1RUNS"),
    ] {
        let (_, seen) = Session::start_wide(&site.command(more), 80).end();
        assert!(seen.contains(whole), "{more:?}: {seen}");
        assert_fits(&seen);
    }
}

/// Lines as they are on the screen at some time, without colours and other signs for the terminal.
fn shown_lines(seen: &str) -> Vec<String> {
    let plain = console::strip_ansi_codes(seen);
    let lines = plain.split(['\r', '\n']).map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// A word that is wider than the terminal alone may stick out.
fn assert_fits(seen: &str) {
    for line in shown_lines(seen) {
        let width = console::measure_text_width(&line);
        let one_word = line.trim_start().split(' ').count() == 1;
        assert!(width <= 80 || one_word, "{width} columns: {line}\n{seen}");
    }
}

/// Whoever is asked about 64 stacks has read on eighty columns what is asked, and whatever else is said of them fits, too.
#[test]
fn sixty_four_stacks_are_read_on_eighty_columns() {
    let Some(sdk) = node_sdk("sixty_four_stacks_are_read_on_eighty_columns") else {
        return;
    };
    let name = |at: usize| format!("payments-service-{at:02}");
    let names: Vec<String> = (0..64).map(name).collect();
    let named = |at: usize| names[at].as_str();
    // Sixteen begin, and each of the others needs two of the layer before it.
    let needs: Vec<Vec<&str>> = (0..64)
        .map(|at| match at {
            0..16 => Vec::new(),
            _ => vec![named(at - 16), named((at - 16) / 16 * 16 + (at + 1) % 16)],
        })
        .collect();
    let stacks: Vec<Stack<'_>> = names
        .iter()
        .zip(&needs)
        .map(|(name, needs)| (name.as_str(), needs.as_slice()))
        .collect();
    let site = Site::new(&sdk, &stacks);
    let deploy = ["deploy", ID, "--environment", "dev"];
    let mut session = Session::start_wide(&site.command(&deploy), 80);
    session.wait_for("Deploy 64 stacks to dev? [y/N/details]");
    session.answer("n\n");
    let (code, seen) = session.end();
    assert_eq!(code, 130, "{seen}");
    assert_fits(&seen);
    let shown = shown_lines(&seen);
    // A line for each stack that runs, three for each of four layers, and what is around them.
    let listed = shown.iter().filter(|line| line.contains("[Priority: "));
    assert_eq!(listed.count(), 64, "{seen}");
    for name in &names {
        let of = format!("- {name} [Priority: ");
        assert!(seen.contains(&of), "{name}: {seen}");
    }
    assert!(seen.contains("Layer 4 (Parallel - Depends on Layers 1-3)"));
    for (more, whole) in [
        (&["graph", ID][..], "Layer 4"),
        (&["status", ID], "payments-service-63"),
        (&["validate", ID], ID),
        (&["list-stacks"], "payments-service-63"),
    ] {
        let (code, seen) = Session::start_wide(&site.command(more), 80).end();
        assert_eq!(code, 0, "{more:?}: {seen}");
        assert!(seen.contains(whole), "{more:?}: {seen}");
        assert_fits(&seen);
    }
}

#[test]
fn a_person_is_asked_before_something_real_changes() {
    let Some(sdk) = node_sdk("a_person_is_asked_before_something_real_changes") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let deploy = ["deploy", ID, "--environment", "dev"];
    for (answer, code) in [("n\n", 130), ("\u{3}", 130)] {
        let mut session = Session::start(&site.command(&deploy));
        session.wait_for("Deploy 1 stack to dev? [y/N/details]");
        session.answer(answer);
        let (ended, seen) = session.end();
        assert_eq!(ended, code, "{seen}");
    }
    // Whoever wants to know more is shown what would happen, and asked again.
    site.write(
        "cloud/stacks/a/src/index.js",
        "const pulumi = require('@pulumi/pulumi');\n\
         class Box extends pulumi.ComponentResource {\n\
         \x20 constructor(name) { super('demo:index:Box', name, {}, {}); this.registerOutputs({}); }\n\
         }\n\
         new Box('a');\nexports.first = 'x';\nexports.ids = [];\n",
    );
    let mut session = Session::start(&site.command(&deploy));
    session.wait_for("Deploy 1 stack to dev? [y/N/details]");
    session.seen.clear();
    session.answer("details\n");
    session.wait_for("Resources: 2 create");
    session.wait_for("Deploy 1 stack to dev? [y/N/details]");
    session.answer("n\n");
    let (ended, seen) = session.end();
    assert_eq!(ended, 130, "{seen}");
    assert!(
        !site.deployment(".nimbus/runs").exists(),
        "nothing was begun"
    );
    let destroy = ["destroy", ID, "--environment", "dev"];
    let mut session = Session::start(&site.command(&destroy));
    session.wait_for("Delete everything of D1RUNS in dev? [y/N]");
    session.answer("no\n");
    assert_eq!(session.end().0, 130);
}
