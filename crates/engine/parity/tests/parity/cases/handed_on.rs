//! A stack that goes back and forth between the engines while a program drawn at random changes.
//!
//! `NIMBUS_PARITY_SEED` draws another sequence. Every step is a hand-over. The whole sequence follows
//! from the seed, which every failure names.

use nimbus_test_tools::short_or_long;

use crate::case::{Step, destroy, preview, program, python, refresh, typescript, up};
use crate::plan::{Draws, Plan, seed};
use crate::runner::check;

/// At least this many steps, each of which the other engine does.
fn steps(seed: u64, project: &str, hand_overs: usize) -> Vec<Step> {
    let draws = &mut Draws::new(seed);
    let mut plan = Plan::first(draws);
    let mut steps = Vec::new();
    while steps.len() + 2 < hand_overs {
        let text = plan.text();
        let with = |step: Step| step.swapped().after(program("plan.json", text.clone()));
        match (draws.below(6), plan.some_urn(draws, project)) {
            (0, Some(urn)) => steps.push(with(up(1)).flags(&["--target", &urn])),
            (1, _) => steps.push(with(preview(1))),
            (2, _) => steps.push(with(up(1)).flags(&["--refresh"])),
            _ => {}
        }
        steps.push(with(up(1)));
        steps.push(if draws.happens(30) {
            refresh(1).swapped()
        } else {
            up(1).swapped().unchanged()
        });
        plan.change(draws);
    }
    plan.release();
    steps.push(up(1).swapped().after(program("plan.json", plan.text())));
    steps.push(destroy(1).swapped());
    steps
}

#[test]
fn handed_on() {
    let steps = steps(seed(14), "handed-on", short_or_long(20, 60));
    check(&typescript("handed-on", steps).unrecorded());
}

#[test]
fn python_handed_on() {
    let steps = steps(seed(41), "python-handed-on", short_or_long(10, 30));
    check(&python("python-handed-on", steps).unrecorded());
}
