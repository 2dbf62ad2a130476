//! Many at once: a worker that is replaced under fifty workflows, and poison beside others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use nimbus_workflows::{Control, FlowId, FlowState};
use serde_json::json;

use super::{ended, failure, receive, start, work};
use crate::rig::{Code, Rig, eventually};
use crate::script::Act;

/// As many as are promised.
const IN_FLIGHT: usize = 50;
const CROWD: usize = 20;

/// A worker is upgraded: the next one reads the histories of everything that is under way, and goes on with all of them.
pub async fn fifty_in_flight_go_on_with_the_next_worker(rig: &dyn Rig) {
    let (control, worker) = (rig.control(), rig.process(Code::Original).await);
    let acts = |number: usize| {
        [
            work(&format!("before-{number}")),
            receive("approval", Some(50_000)),
            work(&format!("after-{number}")),
        ]
    };
    let mut flows = Vec::new();
    for number in 0..IN_FLIGHT {
        flows.push(start(&control, &format!("flight-{number}"), &acts(number)).await);
    }
    eventually("all of them are under way", async || {
        rig.effects().of("end before-").len() == IN_FLIGHT
    })
    .await;
    worker.kill().await;
    // Half of them hear something while nobody executes.
    let (early, late) = flows.split_at(IN_FLIGHT / 2);
    approve(&control, early).await;
    let _worker = rig.process(Code::Original).await;
    approve(&control, late).await;
    for (number, flow) in flows.iter().enumerate() {
        let expected = json!([format!("before-{number}"), "yes", format!("after-{number}")]);
        assert_eq!(ended(&control, flow).await, FlowState::Succeeded(expected));
    }
    let after = rig.effects().of("end after-");
    assert_eq!(after.len(), IN_FLIGHT, "each went on once: {after:?}");
}

async fn approve(control: &Arc<dyn Control>, flows: &[FlowId]) {
    for flow in flows {
        let sent = control.signal(flow, "approval", json!("yes"), None).await;
        sent.expect("a workflow that waits can be told");
    }
}

/// Workflows that panic each time end as failures and take no turn from others: a crowd with as much poison in it does not
/// take much longer than one without. On a machine that does other things at the same time the bound is a wide one.
pub async fn poison_does_not_starve_others(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let alone = crowd(&control, "alone").await;
    let mut poisoned = Vec::new();
    for number in 0..CROWD {
        poisoned.push(start(&control, &format!("poison-{number}"), &[Act::Panic]).await);
    }
    let beside = crowd(&control, "beside").await;
    let bound = alone * 5 + Duration::from_secs(2);
    assert!(beside < bound, "{beside:?} beside poison, {alone:?} alone");
    for flow in &poisoned {
        failure(ended(&control, flow).await);
    }
}

/// How long it took until nineteen of twenty had ended well.
async fn crowd(control: &Arc<dyn Control>, name: &str) -> Duration {
    let mut flows = Vec::new();
    let begun = Instant::now();
    for number in 0..CROWD {
        flows.push(start(control, &format!("{name}-{number}"), &[work(name)]).await);
    }
    let times = flows.iter().map(async |flow| {
        let state = ended(control, flow).await;
        assert_eq!(state, FlowState::Succeeded(json!([name])));
        begun.elapsed()
    });
    let mut times = join_all(times).await;
    times.sort_unstable();
    times.get(CROWD - 2).copied().unwrap_or_default()
}
