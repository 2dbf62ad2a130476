//! Everything that goes wrong.

use crate::case::Disturbance::{Gone, World};
use crate::case::{destroy, handover, preview, python, up};
use crate::runner::check;

#[test]
fn failures() {
    check(&python(
        "failures",
        vec![
            up(1).after(World("fail", "create:second")).fails(),
            up(1).after(World("fail", "start:third")).fails(),
            preview(1).after(Gone("fail")),
            up(1).swapped(),
            up(2).after(World("fail", "update:first")).fails(),
            up(4)
                .flags(&["--continue-on-error"])
                .after(World("fail", "update:first"))
                .fails(),
            up(3).after(Gone("fail")).fails(),
            preview(3).fails(),
            up(2).swapped(),
            destroy(2).after(World("fail", "delete:third")).fails(),
            destroy(2)
                .flags(&["--continue-on-error"])
                .after(World("fail", "delete:second"))
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
            up(2).after(World("fail", "create:delete-first")).fails(),
            up(2)
                .after(World("fail", "delete:delete-later"))
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
