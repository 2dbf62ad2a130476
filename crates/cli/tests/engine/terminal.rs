//! What somebody in front of a terminal sees and is asked.

use crate::support::{Site, node_sdk};
use crate::terminal_session::Session;

#[test]
fn a_person_sees_a_tree_is_asked_and_decides() {
    let Some(sdk) = node_sdk("a_person_sees_a_tree_is_asked_and_decides") else {
        return;
    };
    let site = Site::notes(&sdk);
    let mut session = Session::start(&site.command(&["program", "up"]));
    session.wait_for("Update dev? [y/N/details]");
    assert!(session.seen.contains("└─"), "{}", session.seen);
    session.answer("n\n");
    let (code, seen) = session.end();
    assert_eq!(code, 130, "{seen}");
    assert!(seen.contains("nothing was changed"), "{seen}");

    // Ctrl-C is an answer too.
    let mut session = Session::start(&site.command(&["program", "up"]));
    session.wait_for("Update dev? [y/N/details]");
    session.answer("\u{3}");
    let (code, seen) = session.end();
    assert_eq!(code, 130, "{seen}");
    assert!(site.cloud().is_empty());

    let mut session = Session::start(&site.command(&["program", "up"]));
    session.wait_for("Update dev? [y/N/details]");
    session.answer("y\n");
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("\u{1b}["), "the tree is redrawn in place");
    assert!(seen.contains("4 created"), "{seen}");
    assert_eq!(site.cloud().len(), 2);
}
