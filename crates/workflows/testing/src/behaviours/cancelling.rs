//! Workflows that are cancelled: what they did is undone, wherever they were.

use nimbus_core::ErrorCode;
use nimbus_workflows::FlowState;

use super::{begun, ended, id, receive, start, work};
use crate::rig::{Code, Rig, eventually};
use crate::script::{Act, Work};

pub async fn cancelling_a_wait_undoes(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let mut flows = Vec::new();
    for (name, wait) in [
        ("waits", receive("approval", None)),
        ("sleeps", Act::Sleep { millis: 600_000 }),
    ] {
        let acts = [work(name), wait, work("never")];
        let flow = start(&control, name, &acts).await;
        eventually("it waits", async || {
            rig.effects().count(&format!("end {name}")) == 1
        })
        .await;
        control.cancel(&flow).await.expect("cancelled");
        control.cancel(&flow).await.expect("twice is once");
        flows.push(flow);
    }
    for flow in flows {
        assert_eq!(ended(&control, &flow).await, FlowState::Cancelled);
        control
            .cancel(&flow)
            .await
            .expect("nothing happens to one that ended");
    }
    assert_eq!(rig.effects().count("begin never"), 0);
    let mut undone = rig.effects().of("undo");
    undone.sort();
    assert_eq!(undone, ["sleeps", "waits"]);
    let nobody = control.cancel(&id("nobody")).await;
    assert_eq!(
        nobody.expect_err("nobody").code(),
        ErrorCode::WORKFLOW_UNKNOWN
    );
}

pub async fn cancelling_parallel_steps_undoes_them(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let works = ["a", "b"].map(|name| Work {
        listens: true,
        ..Work::gated(name, "never")
    });
    let acts = [work("first"), Act::All(works.to_vec()), work("never")];
    let flow = start(&control, "parallel", &acts).await;
    for name in ["a", "b"] {
        begun(rig, name, 1).await;
    }
    control.cancel(&flow).await.expect("cancelled");
    assert_eq!(ended(&control, &flow).await, FlowState::Cancelled);
    let mut told = rig.effects().of("told");
    told.sort();
    assert_eq!(told, ["a", "b"], "running steps learn of it");
    assert_eq!(rig.effects().of("undo"), ["b", "a", "first"]);
    assert_eq!(rig.effects().count("begin never"), 0);
}

pub async fn cancelling_reaches_children(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let grandchild = Act::Child {
        suffix: "b".to_owned(),
        acts: vec![work("inner"), receive("approval", None)],
    };
    let child = Act::Child {
        suffix: "a".to_owned(),
        acts: vec![grandchild, work("never")],
    };
    let flow = start(&control, "family", &[work("outer"), child, work("never")]).await;
    eventually("the grandchild waits", async || {
        rig.effects().count("end inner") == 1
    })
    .await;
    control.cancel(&flow).await.expect("cancelled");
    assert_eq!(ended(&control, &flow).await, FlowState::Cancelled);
    let inner = flow
        .child("a")
        .and_then(|child| child.child("b"))
        .expect("a name");
    assert_eq!(ended(&control, &inner).await, FlowState::Cancelled);
    assert_eq!(rig.effects().of("undo"), ["inner", "outer"]);
    assert_eq!(rig.effects().count("begin never"), 0);
}
