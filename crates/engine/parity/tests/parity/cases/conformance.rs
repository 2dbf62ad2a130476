//! What the names of the official conformance list ask for and no other case has.
//! `conformance.toml` says which name is where.

use crate::case::Disturbance::World;
use crate::case::{Step, handover, preview, python, up};
use crate::runner::check;

/// Made, taken over by the other engine, changed, taken over again, deleted.
fn changed() -> Vec<Step> {
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
    check(&python("components-python", changed()));
}

const FOREIGN_1: &str =
    r#"{"label":"far","size":1,"shout":"FAR","serial":1,"arn":"parity:foreign-1"}"#;
const FOREIGN_2: &str =
    r#"{"label":"far","size":1,"shout":"FAR","serial":1,"arn":"parity:foreign-2"}"#;

#[test]
fn python_adopting() {
    let mut steps = changed();
    steps[0] = preview(1)
        .after(World("things/foreign-1.json", FOREIGN_1))
        .after(World("things/foreign-2.json", FOREIGN_2));
    check(&python("python-adopting", steps));
}
