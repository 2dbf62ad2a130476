//! The suite over the runtime in memory, and a workflow ended at every write.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use nimbus_workflows::{FlowState, NewFlow};
use nimbus_workflows_testing::{
    Act, Code, Effects, MemoryRig, Scripted, Work, behaviours, definitions, every_crash, suite,
};
use serde_json::json;

async fn memory(_behaviour: &str) -> Option<MemoryRig> {
    Some(MemoryRig::new())
}

suite!(memory);

#[tokio::test]
async fn a_crash_at_any_write_changes_nothing_but_repeats() {
    let acts = vec![
        Act::Work(Work::named("a")),
        Act::Sleep { millis: 1 },
        Act::All(vec![Work::named("b"), Work::named("c")]),
        Act::Child {
            suffix: "x".to_owned(),
            acts: vec![Act::Work(Work::named("d"))],
        },
    ];
    let new = NewFlow::of::<Scripted>(behaviours::id("crash"), &acts).unwrap();
    let folders = std::cell::RefCell::new(Vec::new());
    let ends = every_crash(&new, |_| {
        let folder = tempfile::tempdir().unwrap();
        let effects = Effects::at(folder.path());
        folders.borrow_mut().push(folder);
        definitions(&effects, Code::Original)
    })
    .await;
    assert!(ends.len() >= 14, "{}", ends.len());
    for (point, state) in ends {
        let expected = json!(["a", null, ["b", "c"], ["d"]]);
        assert_eq!(state, FlowState::Succeeded(expected), "{point:?}");
    }
    for folder in folders.borrow().iter() {
        for step in ["a", "b", "c", "d"] {
            let times = Effects::at(folder.path()).count(&format!("begin {step}"));
            assert!((1..=2).contains(&times), "{step} began {times} times");
        }
    }
}

#[tokio::test]
async fn a_crash_while_undoing_leaves_nothing_behind() {
    let acts = vec![
        Act::Work(Work::named("net")),
        Act::Work(Work::named("disk")),
        Act::Work(Work::failing("vm", 9, 2)),
    ];
    let new = NewFlow::of::<Scripted>(behaviours::id("undo"), &acts).unwrap();
    let folders = std::cell::RefCell::new(Vec::new());
    let ends = every_crash(&new, |_| {
        let folder = tempfile::tempdir().unwrap();
        let effects = Effects::at(folder.path());
        folders.borrow_mut().push(folder);
        definitions(&effects, Code::Original)
    })
    .await;
    assert!(
        ends.iter()
            .all(|(_, state)| matches!(state, FlowState::Failed(_))),
        "{ends:?}"
    );
    for folder in folders.borrow().iter() {
        let mut undone = Effects::at(folder.path()).of("undo");
        undone.dedup();
        assert_eq!(undone, ["vm", "disk", "net"]);
    }
}
