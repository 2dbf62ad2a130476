//! What Python programs do that others do in TypeScript.

use crate::case::{handover, preview, python, refresh, up, world};
use crate::runner::check;

#[test]
fn python_basics() {
    let [no_op, gone] = handover(2);
    let steps = vec![
        preview(1),
        up(1),
        up(1).swapped().unchanged(),
        up(2),
        no_op,
        gone,
    ];
    check(&python("python-basics", steps).config(&[
        "python-basics:greeting: hello",
        "python-basics:password:",
        "  secure: v1:k27bI6vjaT8LJkGF:liyaXirPqOwsj+6k4wBxq6oGR/G62XI=",
        "parity:prefix: from-config",
    ]));
}

#[test]
fn python_options() {
    let [no_op, gone] = handover(2);
    let steps = vec![up(1), preview(2), up(2), no_op, gone];
    check(&python("python-options", steps));
}

#[test]
fn dynamic_python() {
    let [no_op, gone] = handover(2);
    check(&python(
        "dynamic-python",
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
