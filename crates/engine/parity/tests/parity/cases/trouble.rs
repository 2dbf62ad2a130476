//! Targets, drift, and everything that goes wrong.

use crate::case::Disturbance::Gone;
use crate::case::{destroy, handover, preview, python, refresh, up, world};
use crate::runner::check;

const A1: &str = "urn:pulumi:dev::targeting::parity:index:Thing::a1";
const A2: &str = "urn:pulumi:dev::targeting::parity:index:Thing::a2";
const B1: &str = "urn:pulumi:dev::targeting::demo:index:Group$parity:index:Thing::b1";
const LATE: &str = "urn:pulumi:dev::targeting::parity:index:Thing::late";
const NOBODY: &str = "urn:pulumi:dev::targeting::parity:index:Thing::nobody";
const LONER: &str = "urn:pulumi:dev::targeting::parity:index:Thing::loner";

#[test]
fn targeting() {
    check(&python(
        "targeting",
        vec![
            up(1).flags(&["--target", A1]),
            up(1),
            preview(2).flags(&["--target", A1]),
            up(2).flags(&["--target", A1]),
            up(2)
                .flags(&["--target", A2, "--target-dependents"])
                .swapped(),
            up(2).flags(&["--target", LATE, "--target", LONER]),
            up(2).flags(&["--target", "**nobody**"]).unchanged(),
            up(2).flags(&["--target", NOBODY]).fails(),
            up(2).flags(&["--exclude", B1]),
            up(2).flags(&["--replace", B1]).swapped(),
            refresh(2).flags(&["--target", A1]),
            destroy(2).flags(&["--target", A2]).fails(),
            destroy(2).flags(&["--target", A2, "--target-dependents"]),
            destroy(2).flags(&["--exclude", A1]),
            destroy(2),
        ],
    ));
}

const CHANGED: &str =
    r#"{"label":"moved","size":9,"shout":"MOVED","serial":7,"arn":"parity:changed-1"}"#;

#[test]
fn refreshing() {
    let [no_op, gone] = handover(1);
    check(&python(
        "refreshing",
        vec![
            up(1),
            refresh(1).unchanged(),
            refresh(1)
                .after(world("things/changed-1.json", CHANGED))
                .after(Gone("things/removed-1.json"))
                .loses_many(),
            preview(1).swapped(),
            up(1),
            up(1)
                .flags(&["--refresh"])
                .after(world("things/changed-1.json", CHANGED))
                .after(Gone("things/removed-2.json"))
                .loses_many(),
            refresh(1).after(world("fail", "read:steady")).fails(),
            no_op.after(Gone("fail")),
            gone,
        ],
    ));
}

#[test]
fn failures() {
    check(&python(
        "failures",
        vec![
            up(1).after(world("fail", "create:second")).fails(),
            up(1).after(world("fail", "start:third")).fails(),
            preview(1).after(Gone("fail")),
            up(1).swapped(),
            up(2).after(world("fail", "update:first")).fails(),
            up(4)
                .flags(&["--continue-on-error"])
                .after(world("fail", "update:first"))
                .fails(),
            up(3).after(Gone("fail")).fails(),
            preview(3).fails(),
            up(2).swapped(),
            destroy(2).after(world("fail", "delete:third")).fails(),
            destroy(2)
                .flags(&["--continue-on-error"])
                .after(world("fail", "delete:second"))
                .fails(),
            destroy(2).after(Gone("fail")).swapped(),
        ],
    ));
}

#[test]
fn pending() {
    let [no_op, gone] = handover(3);
    check(&python(
        "pending",
        vec![
            up(1),
            up(2).after(world("fail", "create:delete-first")).fails(),
            up(2)
                .after(world("fail", "delete:delete-later"))
                .swapped()
                .fails(),
            preview(2).after(Gone("fail")),
            up(3).swapped(),
            no_op,
            gone,
        ],
    ));
}

#[test]
fn broken() {
    check(&python(
        "broken",
        vec![
            up(1),
            preview(2).fails(),
            up(2).fails(),
            up(3).fails(),
            up(4).fails(),
            up(5).swapped(),
            destroy(5),
        ],
    ));
}
