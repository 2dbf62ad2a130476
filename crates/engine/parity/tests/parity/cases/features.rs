//! What programs can do beyond registering resources.

use crate::case::Disturbance::{Program, World};
use crate::case::{handover, preview, refresh, typescript, up};
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
            refresh(2).after(World("a-note", "somebody wrote here")),
            up(2),
            no_op,
            gone,
        ],
    ));
}

#[test]
fn plugin_command() {
    let [no_op, gone] = handover(3);
    let steps = vec![preview(1), up(1), up(2), up(3).swapped(), no_op, gone];
    let case = typescript("plugin-command", steps).needs_plugin("command", "1.2.1");
    check(&case.random(&["command:local:Command/id"]));
}

#[test]
fn plugin_random() {
    let [no_op, gone] = handover(2);
    let steps = vec![preview(1), up(1), up(2).swapped(), no_op, gone];
    let case = typescript("plugin-random", steps).needs_plugin("random", "4.21.2");
    check(&case.random(&[
        "random:index/randomPet:RandomPet/id",
        "random:index/randomPassword:RandomPassword/bcryptHash",
        "random:index/randomPassword:RandomPassword/result",
        "random:index/randomId:RandomId/id",
        "random:index/randomId:RandomId/b64Std",
        "random:index/randomId:RandomId/b64Url",
        "random:index/randomId:RandomId/dec",
        "random:index/randomId:RandomId/hex",
        "pulumi:pulumi:Stack/name",
        "pulumi:pulumi:Stack/hidden",
    ]));
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
            up(1).after(Program("data/file.txt", "second\n")),
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
