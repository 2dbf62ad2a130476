//! Creating, changing, deleting, replacing.

use crate::case::{handover, preview, typescript, up};
use crate::runner::check;

#[test]
fn basics() {
    let [no_op, gone] = handover(2);
    check(&typescript(
        "basics",
        vec![preview(1), up(1), preview(2), up(2), no_op, gone],
    ));
}

#[test]
fn replacing() {
    let [no_op, gone] = handover(3);
    let steps = vec![up(1), preview(2), up(2), up(3).swapped(), no_op, gone];
    check(&typescript("replacing", steps).ordered());
}

#[test]
fn exclusive() {
    let [no_op, gone] = handover(2);
    let steps = vec![up(1), preview(2), up(2), no_op, gone];
    check(&typescript("exclusive", steps));
}

#[test]
fn aliases() {
    let [no_op, gone] = handover(3);
    let steps = vec![up(1), preview(2), up(2), up(3).swapped(), no_op, gone];
    check(&typescript("aliases", steps));
}
