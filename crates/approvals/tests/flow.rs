//! The workflow of a request over the runtime in memory: decisions, deadlines, and a crash at every write.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::sync::Arc;

use jiff::Timestamp;
use nimbus_approvals::{
    AnnounceApprovalEnd, ApprovalChain, ApprovalChainWorkflow, ApprovalFlowInput, ApprovalNeed,
    ApprovalNotice, ApprovalProgress, ApprovalState, ApprovalStatus, ApprovalStep, ApprovalVerdict,
    Approver, CheckApprovalStatus, DECISION_SIGNAL, Decider, SendApprovalRequest, TimeOutApproval,
};
use nimbus_core::{TenantId, UserId};
use nimbus_workflows::{Control as _, Definitions, FlowId, FlowState, NewFlow};
use nimbus_workflows_testing::{MemoryControl, MemoryStore, MemoryWorker, eventually, every_crash};
use parking_lot::Mutex;
use serde_json::json;

/// What a database would have of one request.
#[derive(Clone)]
struct Record {
    chain: Arc<ApprovalChain>,
    progress: Arc<Mutex<ApprovalProgress>>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Record {
    fn new(steps: Vec<ApprovalStep>) -> Self {
        let chain = ApprovalChain {
            steps,
            own_requests: false,
        };
        chain.check().unwrap();
        Self {
            chain: Arc::new(chain),
            progress: Arc::new(Mutex::new(ApprovalProgress::begin(Timestamp::now()))),
            told: Arc::default(),
        }
    }

    fn status(&self) -> ApprovalStatus {
        let progress = self.progress.lock();
        match &progress.state {
            ApprovalState::Pending {
                step, escalated, ..
            } => {
                let deadline = progress.deadline(&self.chain).unwrap();
                let left = deadline
                    .duration_since(Timestamp::now())
                    .as_secs_f64()
                    .ceil();
                ApprovalStatus::Pending {
                    step: *step,
                    escalated: *escalated,
                    seconds_left: left.max(0.0) as u64,
                }
            }
            ended => ApprovalStatus::Ended(ended.word().to_owned()),
        }
    }

    fn decide(&self, who: UserId, verdict: ApprovalVerdict) {
        let decider = Decider {
            user: who,
            groups: Vec::new(),
            delegators: Vec::new(),
        };
        let mut progress = self.progress.lock();
        let requester = UserId::random();
        let now = Timestamp::now();
        *progress = progress
            .decide(&self.chain, requester, &decider, verdict, "seen", now)
            .unwrap();
    }

    fn definitions(&self) -> Definitions {
        let mut definitions = Definitions::default();
        let record = self.clone();
        definitions.step::<CheckApprovalStatus, _, _>(move |_, _| {
            let status = record.status();
            async move { Ok(status) }
        });
        let told = Arc::clone(&self.told);
        definitions.step::<SendApprovalRequest, _, _>(move |_, notice: ApprovalNotice| {
            told.lock()
                .push(format!("{} {}", notice.step, notice.escalated));
            async { Ok(()) }
        });
        let record = self.clone();
        definitions.step::<TimeOutApproval, _, _>(move |_, _| {
            let mut progress = record.progress.lock();
            if let Some(next) = progress.time_out(&record.chain, Timestamp::now()) {
                *progress = next;
            }
            async { Ok(()) }
        });
        let told = Arc::clone(&self.told);
        definitions.step::<AnnounceApprovalEnd, _, _>(move |_, _| {
            told.lock().push("end".to_owned());
            async { Ok(()) }
        });
        definitions.flow::<ApprovalChainWorkflow>();
        definitions
    }
}

fn step(approver: UserId, seconds: u64, escalate_to: Vec<Approver>) -> ApprovalStep {
    ApprovalStep {
        name: format!("of {approver}"),
        approvers: vec![Approver::User(approver)],
        needs: ApprovalNeed::Any,
        timeout_seconds: seconds,
        escalate_to,
    }
}

fn new_flow() -> NewFlow {
    let input = ApprovalFlowInput {
        tenant: TenantId::random(),
        request: uuid::Uuid::new_v4(),
    };
    let id = FlowId::new(format!("approval-{}", input.request)).unwrap();
    NewFlow::of::<ApprovalChainWorkflow>(id, &input).unwrap()
}

#[tokio::test]
async fn each_step_is_told_once_and_decisions_are_waited_for() {
    let (first, second) = (UserId::random(), UserId::random());
    let record = Record::new(vec![step(first, 600, vec![]), step(second, 600, vec![])]);
    let store = MemoryStore::default();
    let control = MemoryControl::new(&store);
    let worker = MemoryWorker::start(&store, record.definitions());
    let new = new_flow();
    control.start(new.clone()).await.unwrap();
    for (count, who) in [(1, first), (2, second)] {
        eventually("the step is told", async || {
            record.told.lock().len() == count
        })
        .await;
        record.decide(who, ApprovalVerdict::Approve);
        control
            .signal(&new.id, DECISION_SIGNAL, json!({}), None)
            .await
            .unwrap();
    }
    let state = control.result(&new.id).await.unwrap();
    assert_eq!(state, FlowState::Succeeded(json!("approved")));
    assert_eq!(*record.told.lock(), ["0 false", "1 false", "end"]);
    worker.kill().await;
}

#[tokio::test]
async fn time_escalates_and_then_ends_it() {
    let other = Approver::User(UserId::random());
    let record = Record::new(vec![step(UserId::random(), 1, vec![other])]);
    let store = MemoryStore::default();
    let control = MemoryControl::new(&store);
    let worker = MemoryWorker::start(&store, record.definitions());
    let new = new_flow();
    control.start(new.clone()).await.unwrap();
    let state = control.result(&new.id).await.unwrap();
    assert_eq!(state, FlowState::Succeeded(json!("expired")));
    assert_eq!(*record.told.lock(), ["0 false", "0 true", "end"]);
    worker.kill().await;
}

#[tokio::test]
async fn a_crash_at_any_write_loses_no_decision() {
    let records = Mutex::new(Vec::new());
    let ends = every_crash(&new_flow(), |_| {
        let approver = UserId::random();
        let record = Record::new(vec![step(approver, 600, vec![])]);
        // Decided before the workflow looks for the first time: its signal may have gone to the one that crashed.
        record.decide(approver, ApprovalVerdict::Approve);
        records.lock().push(record.clone());
        record.definitions()
    })
    .await;
    assert!(ends.len() >= 4, "{ends:?}");
    for (point, state) in ends {
        assert_eq!(state, FlowState::Succeeded(json!("approved")), "{point:?}");
    }
    for record in records.lock().iter() {
        assert!(record.told.lock().iter().any(|line| line == "end"));
    }
}
