//! What the names of the official conformance list ask for and no other case has.
//! `conformance.toml` says which name is where.

use crate::case::Disturbance::Gone;
use crate::case::{Case, Step, destroy, handover, preview, python, refresh, typescript, up, world};
use crate::runner::check;

/// Made, changed by the other engine, taken over by the first again, deleted.
fn changed() -> Vec<Step> {
    let [no_op, gone] = handover(2);
    vec![preview(1), up(1), up(2).swapped(), no_op, gone]
}

/// The same with a preview of the change, and a hand-over before it.
fn changed_after_a_handover() -> Vec<Step> {
    let [no_op, gone] = handover(2);
    vec![
        preview(1),
        up(1),
        up(1).swapped().unchanged(),
        preview(2),
        up(2),
        no_op,
        gone,
    ]
}

#[test]
fn components_python() {
    check(&python("components-python", changed_after_a_handover()));
}

const FOREIGN_1: &str =
    r#"{"label":"far","size":1,"shout":"FAR","serial":1,"arn":"parity:foreign-1"}"#;
const FOREIGN_2: &str =
    r#"{"label":"far","size":1,"shout":"FAR","serial":1,"arn":"parity:foreign-2"}"#;

#[test]
fn python_adopting() {
    let mut steps = changed_after_a_handover();
    steps[0] = preview(1)
        .after(world("things/foreign-1.json", FOREIGN_1))
        .after(world("things/foreign-2.json", FOREIGN_2));
    check(&python("python-adopting", steps));
}

/// A program without resources in a folder below its project; at first it is empty.
fn speaking(case: impl Fn(Vec<Step>) -> Case, config: &'static [&'static str]) {
    let mut steps = changed();
    steps.insert(1, up(3));
    check(&case(steps).in_folder("app").config(config));
}

#[test]
fn language() {
    speaking(
        |steps| typescript("language", steps),
        &[
            "language:texts: [alpha, beta, gamma]",
            "language:tags: {first: one, second: two}",
            "language:anything: {a: {b: deep}}",
            "language:number: 3.5",
            "language:word: hello",
            "language:flag: true",
            "language:optional: [null, there, null]",
        ],
    );
}

#[test]
fn python_language() {
    speaking(
        |steps| python("python-language", steps),
        &[
            "python-language:texts: [alpha, beta, gamma]",
            "python-language:tags: {first: one, second: two}",
            "python-language:anything: {a: {b: deep}}",
            "python-language:number: 3.5",
            "python-language:word: hello",
            "python-language:flag: true",
            "python-language:optional: [null, there, null]",
        ],
    );
}

#[test]
fn values() {
    check(&typescript("values", changed()).config(&["values:object: {some: [thing, 1]}"]));
}

#[test]
fn python_values() {
    let config = &["python-values:object: {some: [thing, 1]}"];
    check(&python("python-values", changed()).config(config));
}

#[test]
fn functions() {
    check(&typescript("functions", changed()).config(&["parity:prefix: from-config"]));
}

#[test]
fn python_functions() {
    check(&python("python-functions", changed()).config(&["parity:prefix: from-config"]));
}

#[test]
fn shapes() {
    check(&typescript("shapes", changed()).config(&[
        "shapes:words: [a, b, c]",
        "shapes:tags: {first: one, second: two}",
        "shapes:count: 2",
        "shapes:word: hello",
        "shapes:flag: true",
    ]));
}

#[test]
fn python_shapes() {
    check(&python("python-shapes", changed()).config(&[
        "python-shapes:words: [a, b, c]",
        "python-shapes:tags: {first: one, second: two}",
        "python-shapes:count: 2",
        "python-shapes:word: hello",
        "python-shapes:flag: true",
    ]));
}

#[test]
fn remote_references() {
    check(&typescript("remote-references", changed()));
}

#[test]
fn python_remote() {
    check(&python("python-remote", changed()));
}

#[test]
fn hook_errors() {
    check(&typescript(
        "hook-errors",
        vec![
            up(1).after(world("fail", "once-create:flaky")),
            up(2).swapped().fails(),
            up(3).after(world("fail", "update:careless")).fails(),
            up(3).after(Gone("fail")).swapped(),
            destroy(3),
        ],
    ));
}

#[test]
fn python_hooks() {
    check(&python(
        "python-hooks",
        vec![
            preview(1),
            up(1).after(world("fail", "once-create:flaky")),
            up(2).swapped(),
            up(3).fails(),
            up(4).swapped().fails(),
        ],
    ));
}

/// Versions of a plugin besides the one that programs ask for.
const MORE_VERSIONS: &[&str] = &["2.0.0", "3.0.0-alpha.1"];

#[test]
fn details() {
    check(&typescript("details", changed()).provider_versions(MORE_VERSIONS));
}

#[test]
fn python_details() {
    check(&python("python-details", changed()).provider_versions(MORE_VERSIONS));
}

#[test]
fn parameters() {
    check(&typescript("parameters", changed()));
}

#[test]
fn python_parameters() {
    check(&python("python-parameters", changed()));
}

/// Extensions are needed again for what the program no longer has, and by whoever takes over.
fn extended() -> Vec<Step> {
    let [no_op, gone] = handover(3);
    vec![
        preview(1),
        up(1),
        up(1).swapped().unchanged(),
        refresh(1),
        up(2),
        up(3).swapped(),
        no_op,
        gone,
    ]
}

#[test]
fn extensions() {
    check(&typescript("extensions", extended()));
}

#[test]
fn python_extensions() {
    check(&python("python-extensions", extended()));
}

#[test]
fn python_references() {
    let steps = vec![
        up(1).stack("base"),
        preview(2),
        up(2),
        up(2).swapped().unchanged(),
    ];
    check(&python("python-references", steps));
}

const SECOND: &str = "urn:pulumi:dev::failing::parity:index:Thing::second";
const NEIGHBOUR: &str = "urn:pulumi:dev::failing::parity:index:Thing::neighbour";

#[test]
fn failing() {
    check(&typescript(
        "failing",
        vec![
            up(1).after(world("fail", "create:second")).fails(),
            up(1)
                .flags(&["--continue-on-error"])
                .after(world("fail", "start:third"))
                .swapped()
                .fails(),
            up(1).after(Gone("fail")),
            up(2).flags(&["--target", SECOND]).swapped(),
            up(2).flags(&["--target", NEIGHBOUR]),
            up(2).swapped(),
            destroy(2),
        ],
    ));
}

/// What a pack says about a program, under the settings that each step gives to the pack.
fn judged() -> Vec<Step> {
    let under = |settings: &'static str| {
        let pack = ["--policy-pack", "pack", "--policy-pack-config"];
        [&pack[..], &[settings]].concat()
    };
    vec![
        preview(1).flags(&["--policy-pack", "pack"]),
        up(1).flags(&["--policy-pack", "pack"]),
        up(1).flags(&under("wrong.json")).fails(),
        preview(2).flags(&["--policy-pack", "pack"]).fails(),
        up(2).flags(&["--policy-pack", "pack"]).swapped().fails(),
        up(2).flags(&["--policy-pack", "broken-pack"]).fails(),
        up(2).flags(&under("off.json")),
        up(3).flags(&under("strict.json")).fails(),
        up(3).flags(&["--policy-pack", "pack"]).swapped(),
        destroy(3),
    ]
}

#[test]
fn judged_by_policies() {
    let case = typescript("judged", judged());
    check(
        &case
            .tags(&[("owner", "me")])
            .config(&["judged:greeting: hi"]),
    );
}

/// What a pack judges does not depend on the language; that it is asked and told its settings does
/// not either.
#[test]
fn python_judged_by_policies() {
    let case = python("python-judged", judged()).packs_of("judged");
    check(
        &case
            .tags(&[("owner", "me")])
            .config(&["judged:greeting: hi"]),
    );
}
