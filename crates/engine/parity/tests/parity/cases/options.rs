//! Resource options.

use crate::case::{handover, preview, typescript, up};
use crate::runner::check;

#[test]
fn keeping() {
    let [no_op, gone] = handover(3);
    let steps = vec![up(1), preview(2), up(2), up(3).swapped(), no_op, gone];
    check(&typescript("keeping", steps));
}

#[test]
fn ignoring() {
    let [no_op, gone] = handover(2);
    let steps = vec![up(1), preview(2), up(2), no_op, gone];
    check(&typescript("ignoring", steps));
}

#[test]
fn ordering() {
    let [no_op, gone] = handover(2);
    let steps = vec![up(1), preview(2), up(2), no_op, gone];
    check(&typescript("ordering", steps));
}
