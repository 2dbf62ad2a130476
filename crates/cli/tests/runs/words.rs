//! What runs say to people, and how their summaries look, word for word.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::support::{ID, Site, node_sdk};

/// What differs from run to run.
static VARIES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let pattern = |text: &str| Regex::new(text).unwrap();
    vec![
        (pattern(r" *\b\d+s\b"), " Ns"),
        (pattern(r"~\d+ seconds"), "~N seconds"),
        (pattern(r"thing-[0-9a-f]{8}"), "thing-ID"),
        (pattern(r"\d{8}-\d{6}"), "STAMP"),
        (pattern(r"\d+ files"), "N files"),
        (
            pattern(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?"),
            "TIME",
        ),
    ]
});

fn told(site: &Site, arguments: &[&str]) -> String {
    let ran = site.run(arguments);
    let folder = site.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    let text = format!(
        "exit {}\n--- err\n{}--- out\n{}",
        ran.code, ran.stderr, ran.stdout
    );
    let mut text = text.replace(folder, "HOME");
    for (pattern, instead) in VARIES.iter() {
        text = pattern.replace_all(&text, *instead).into_owned();
    }
    // Blanks at the end of a line are nobody's words.
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// The summary without what differs from run to run.
fn summary(site: &Site, arguments: &[&str]) -> Value {
    let mut summary = site.run(&[arguments, &["--json"]].concat()).summary();
    summary["seconds"] = Value::Null;
    for check in summary["checks"].as_array_mut().into_iter().flatten() {
        check["seconds"] = Value::Null;
    }
    summary
}

#[test]
fn runs_are_told_in_these_words() {
    let Some(sdk) = node_sdk("runs_are_told_in_these_words") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let of = |verb: &'static str| [verb, ID, "--environment", "dev", "--rehearse"];
    insta::assert_snapshot!("preview", told(&site, &of("preview")));
    insta::assert_snapshot!("deploy", told(&site, &of("deploy")));
    insta::assert_snapshot!("deploy_again", told(&site, &of("deploy")));
    insta::assert_json_snapshot!("deploy_again_json", summary(&site, &of("deploy")));
    site.set_size("b", "2");
    insta::assert_snapshot!("deploy_change", told(&site, &of("deploy")));
    let back = [&of("rollback")[..], &["--to-version", "1"]].concat();
    insta::assert_snapshot!("rollback", told(&site, &back));
    let orders = site.orders("orders: [{on: update, name: b-first, do: fail, message: no room}]\n");
    let failing = [&of("deploy")[..], &["--orders", &orders]].concat();
    let failed = told(&site, &failing);
    assert_eq!(failed.matches("no room").count(), 1, "{failed}");
    insta::assert_snapshot!("deploy_failed", failed);
    insta::assert_json_snapshot!("deploy_failed_json", summary(&site, &failing));
    insta::assert_snapshot!("resume", told(&site, &of("resume")));
    insta::assert_snapshot!("destroy", told(&site, &of("destroy")));
    insta::assert_json_snapshot!("destroy_json", summary(&site, &of("destroy")));
    let end = ["decommission", ID];
    insta::assert_snapshot!("decommission_unanswered", told(&site, &end));
    insta::assert_snapshot!(
        "decommission",
        told(&site, &[&end[..], &["--yes"]].concat())
    );
}
