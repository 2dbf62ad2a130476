//! What programs can do beyond registering resources.

use crate::case::{handover, preview, program, refresh, typescript, up, world};
use crate::runner::check;

#[test]
fn dynamic_node() {
    let [no_op, gone] = handover(2);
    check(&typescript(
        "dynamic-node",
        vec![
            preview(1),
            up(1),
            preview(2),
            up(2).swapped(),
            up(3).fails(),
            refresh(2).after(world("a-note", "somebody wrote here")),
            up(2),
            no_op,
            gone,
        ],
    ));
}

#[test]
fn plugin_tally() {
    let [no_op, gone] = handover(2);
    let steps = vec![
        preview(1),
        up(1),
        up(1).swapped().unchanged(),
        refresh(1),
        preview(2),
        up(2),
        up(3).fails(),
        no_op,
        gone,
    ];
    let case = typescript("plugin-tally", steps).needs_plugin("tally", "0.1.0");
    check(&case.config(&["tally:prefix: '# '"]).unrecorded());
}

#[test]
fn references() {
    let steps = vec![
        up(1).stack("base"),
        preview(2),
        up(2),
        up(2).swapped().unchanged(),
    ];
    check(&typescript("references", steps));
}

#[test]
fn transforms() {
    let [no_op, gone] = handover(1);
    check(&typescript(
        "transforms",
        vec![preview(1), up(1), no_op, gone],
    ));
}

#[test]
fn hooks() {
    check(&typescript(
        "hooks",
        vec![
            preview(1),
            up(1),
            up(2),
            up(2).swapped().unchanged(),
            up(3).fails(),
            up(4).fails(),
        ],
    ));
}

#[test]
fn assets() {
    let [no_op, gone] = handover(1);
    check(&typescript(
        "assets",
        vec![
            preview(1),
            up(1),
            up(1).swapped().unchanged(),
            up(1).after(program("data/file.txt", "second\n")),
            no_op,
            gone,
        ],
    ));
}

#[test]
fn invokes() {
    let [no_op, gone] = handover(2);
    check(&typescript(
        "invokes",
        vec![preview(1), up(1), up(2), no_op, gone],
    ));
}

#[test]
fn remote() {
    let [no_op, gone] = handover(2);
    check(&typescript(
        "remote",
        vec![preview(1), up(1), up(2).swapped(), no_op, gone],
    ));
}
