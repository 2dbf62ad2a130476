//! Workers that are killed: another one goes on, with the right code, and repeats nothing that was done.

use nimbus_workflows::FlowState;
use serde_json::json;

use super::{begun, ended, receive, start, work};
use crate::rig::{Code, Rig, eventually};
use crate::script::{Act, Work};

pub async fn a_worker_that_is_killed_while_waiting_goes_on(rig: &dyn Rig) {
    let (control, worker) = (rig.control(), rig.process(Code::Original).await);
    let acts = [
        work("a"),
        work("mark"),
        receive("approval", Some(50_000)),
        Act::Sleep { millis: 100 },
        work("b"),
    ];
    let flow = start(&control, "waits", &acts).await;
    eventually("it waits", async || rig.effects().count("end mark") == 1).await;
    worker.kill().await;
    control
        .signal(&flow, "approval", json!("yes"), None)
        .await
        .expect("sent while nobody runs");
    let _worker = rig.process(Code::Original).await;
    let expected = json!(["a", "mark", "yes", null, "b"]);
    assert_eq!(ended(&control, &flow).await, FlowState::Succeeded(expected));
    assert_eq!(
        rig.effects().count("begin a"),
        1,
        "what was done is not done again"
    );
}

pub async fn a_worker_that_is_killed_in_a_step_repeats_only_that(rig: &dyn Rig) {
    let (control, worker) = (rig.control(), rig.process(Code::Original).await);
    let gated = |name: &str| Work {
        attempts: 3,
        ..Work::gated(name, "go")
    };
    let acts = [work("a"), Act::All(vec![gated("b"), gated("c")]), work("d")];
    let flow = start(&control, "killed", &acts).await;
    for name in ["b", "c"] {
        begun(rig, name, 1).await;
    }
    worker.kill().await;
    rig.effects().open("go");
    let _worker = rig.process(Code::Original).await;
    let expected = json!(["a", ["b", "c"], "d"]);
    assert_eq!(ended(&control, &flow).await, FlowState::Succeeded(expected));
    let log = rig.effects();
    let counts = ["begin a", "begin b", "begin c", "begin d"].map(|line| log.count(line));
    assert_eq!(counts, [1, 2, 2, 1]);
    let keys = log.of("key b");
    assert_eq!(
        keys,
        [keys[0].clone(), keys[0].clone()],
        "both attempts have one key"
    );
}

pub async fn changed_code_is_noticed_and_the_right_code_goes_on(rig: &dyn Rig) {
    let (control, worker) = (rig.control(), rig.process(Code::Original).await);
    let acts = [
        work("a"),
        work("mark"),
        receive("approval", None),
        work("b"),
    ];
    let flow = start(&control, "changed", &acts).await;
    eventually("it waits", async || rig.effects().count("end mark") == 1).await;
    worker.kill().await;
    control
        .signal(&flow, "approval", json!("yes"), None)
        .await
        .expect("sent");
    let changed = rig.process(Code::Changed).await;
    eventually("it is stuck", async || {
        let record = control.status(&flow).await.expect("it is known");
        matches!(record.state, FlowState::Stuck(_))
    })
    .await;
    changed.kill().await;
    let _worker = rig.process(Code::Original).await;
    assert_eq!(
        ended(&control, &flow).await,
        FlowState::Succeeded(json!(["a", "mark", "yes", "b"]))
    );
    assert_eq!(rig.effects().count("begin a"), 1);
    assert_eq!(
        rig.effects().of("undo"),
        Vec::<String>::new(),
        "nothing was undone"
    );
}
