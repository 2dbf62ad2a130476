//! What somebody in front of a terminal sees and is asked.

use crate::support::{DIAMOND, ID, Site, node_sdk};
use crate::terminal_session::Session;

#[test]
fn a_person_sees_the_plan_then_all_stacks_on_one_screen() {
    let Some(sdk) = node_sdk("a_person_sees_the_plan_then_all_stacks_on_one_screen") else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    let arguments = ["deploy", ID, "--environment", "dev", "--rehearse"];
    let mut session = Session::start(&site.command(&arguments));
    session.wait_for("Total Stacks: 4 enabled");
    session.wait_for("REHEARSAL Deploying D1RUNS dev");
    session.wait_for("waiting for b, c");
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("\u{1b}["), "the picture is redrawn in place");
    assert!(seen.contains("4 done"), "{seen}");
}

#[test]
fn a_person_is_asked_before_something_real_changes() {
    let Some(sdk) = node_sdk("a_person_is_asked_before_something_real_changes") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let deploy = ["deploy", ID, "--environment", "dev"];
    for (answer, code) in [("n\n", 130), ("\u{3}", 130)] {
        let mut session = Session::start(&site.command(&deploy));
        session.wait_for("Deploy 1 stack to dev? [y/N/details]");
        session.answer(answer);
        let (ended, seen) = session.end();
        assert_eq!(ended, code, "{seen}");
    }
    assert!(
        !site.deployment(".nimbus/runs").exists(),
        "nothing was begun"
    );
    let destroy = ["destroy", ID, "--environment", "dev"];
    let mut session = Session::start(&site.command(&destroy));
    session.wait_for("Delete everything of D1RUNS in dev? [y/N]");
    session.answer("no\n");
    assert_eq!(session.end().0, 130);
}
