//! Objects that were there before: imported, read, changed behind the engine's back.

use crate::case::{handover, import, preview, typescript, up, world};
use crate::runner::check;

const FOUND_1: &str = r#"{"label":"old","size":5,"shout":"OLD","serial":1,"arn":"parity:found-1"}"#;
const FOUND_2: &str =
    r#"{"label":"other","size":5,"shout":"OTHER","serial":1,"arn":"parity:found-2"}"#;
const FOUND_3: &str =
    r#"{"label":"third","size":5,"shout":"THIRD","serial":1,"arn":"parity:found-3"}"#;

#[test]
fn importing() {
    let [no_op, gone] = handover(6);
    check(&typescript(
        "importing",
        vec![
            up(1)
                .after(world("things/found-1.json", FOUND_1))
                .after(world("things/found-2.json", FOUND_2))
                .after(world("things/found-3.json", FOUND_3)),
            preview(2),
            up(2),
            up(2).swapped().unchanged(),
            up(3),
            up(4).fails(),
            import(1).flags(&["parity:index:Thing", "asked-for", "found-3"]),
            import(1)
                .flags(&["parity:index:Thing", "absent", "nowhere-1"])
                .fails(),
            up(5).swapped(),
            up(6),
            no_op,
            gone,
        ],
    ));
}

#[test]
fn reading() {
    let [no_op, gone] = handover(2);
    let foreign = r#"{"label":"far","size":1,"shout":"FAR","serial":1,"arn":"parity:foreign-1"}"#;
    let another = r#"{"label":"near","size":1,"shout":"NEAR","serial":1,"arn":"parity:foreign-2"}"#;
    check(&typescript(
        "reading",
        vec![
            preview(1)
                .after(world("things/foreign-1.json", foreign))
                .after(world("things/foreign-2.json", another)),
            up(1),
            up(1).swapped(),
            preview(2),
            up(2),
            up(3).fails(),
            no_op,
            gone,
        ],
    ));
}
