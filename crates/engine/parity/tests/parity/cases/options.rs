//! Resource options.

use crate::case::{destroy, handover, preview, typescript, up};
use crate::runner::check;

#[test]
fn protecting() {
    let [no_op, gone] = handover(4);
    check(&typescript(
        "protecting",
        vec![
            up(1),
            preview(2).fails(),
            up(2).fails(),
            up(3).fails(),
            destroy(1).fails(),
            up(4),
            no_op,
            gone,
        ],
    ));
}

#[test]
fn keeping() {
    let [no_op, gone] = handover(3);
    let steps = vec![up(1), preview(2), up(2), up(3).swapped(), no_op, gone];
    check(&typescript("keeping", steps).official_since(260));
}

#[test]
fn ignoring() {
    let [no_op, gone] = handover(2);
    let steps = vec![up(1), preview(2), up(2), no_op, gone];
    check(&typescript("ignoring", steps));
}

#[test]
fn secrets() {
    let [no_op, gone] = handover(2);
    let steps = vec![preview(1), up(1), up(1).swapped(), up(2), no_op, gone];
    // Before, it shows one item more of a list with a secret in it.
    let case = typescript("secrets", steps).official_since(260);
    check(&case.config(&[
        "secrets:count: 2",
        "secrets:password:",
        "  secure: v1:k27bI6vjaT8LJkGF:liyaXirPqOwsj+6k4wBxq6oGR/G62XI=",
        "secrets:settings:",
        "  depth: 3",
        "  list:",
        "    - secure: v1:Effkp+bwk8VqP3NG:Vx5KVe5K+mFFKSjgqKB+9akj36E=",
    ]));
}

/// A provider that refuses its settings harms only what uses it.
#[test]
fn misconfigured() {
    check(&typescript(
        "misconfigured",
        vec![
            preview(1),
            up(1),
            up(1).swapped().unchanged(),
            up(2).fails(),
            up(3).swapped(),
            destroy(3),
        ],
    ));
}

#[test]
fn providers() {
    let [no_op, gone] = handover(2);
    let steps = vec![preview(1), up(1), preview(2), up(2), no_op, gone];
    check(&typescript("providers", steps).config(&["parity:prefix: from-config"]));
}

#[test]
fn ordering() {
    let [no_op, gone] = handover(2);
    let steps = vec![up(1), preview(2), up(2), no_op, gone];
    check(&typescript("ordering", steps));
}

#[test]
fn naming() {
    let [no_op, gone] = handover(2);
    let steps = vec![preview(1), up(1), preview(2), up(2), no_op, gone];
    check(&typescript("naming", steps).config(&[
        "pulumi:autonaming:",
        "  pattern: ${project}-${stack}-${name}",
        "  providers:",
        "    parity:",
        "      resources:",
        "        parity:index:Plain:",
        "          mode: verbatim",
        "        parity:index:Blind:",
        "          mode: disabled",
    ]));
}
