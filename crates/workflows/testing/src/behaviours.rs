//! The suite: what every runtime does. One function is one behaviour; [`suite!`](crate::suite) makes
//! tests of them.

mod cancelling;
mod crowds;
mod restarts;

use std::sync::Arc;
use std::time::Duration;

use nimbus_core::ErrorCode;
use nimbus_workflows::{
    Control, FlowDef as _, FlowFilter, FlowId, FlowSchedule, FlowState, NewFlow, Started, When,
};
use serde_json::{Value, json};

use crate::rig::{Code, Rig, eventually};
use crate::script::{Act, SAID, Scripted, Work};

pub use cancelling::{
    cancelling_a_wait_undoes, cancelling_parallel_steps_undoes_them, cancelling_reaches_children,
};
pub use crowds::{fifty_in_flight_go_on_with_the_next_worker, poison_does_not_starve_others};
pub use restarts::{
    a_worker_that_is_killed_in_a_step_repeats_only_that,
    a_worker_that_is_killed_while_waiting_goes_on,
    changed_code_is_noticed_and_the_right_code_goes_on,
};

/// One test for each behaviour. `$rig` is an async function that gets the behaviour's name and returns
/// a rig, or nothing where the runtime's tools are missing.
#[macro_export]
macro_rules! suite {
    ($rig:path) => {
        $crate::suite!($rig:
            steps_follow_each_other_and_have_keys_of_their_own,
            parallel_steps_run_side_by_side,
            a_failure_after_all_attempts_undoes_in_reverse,
            a_lasting_failure_is_not_tried_again,
            an_undo_that_fails_needs_attention,
            a_panic_is_a_failure_and_harms_nobody,
            an_approval_is_waited_for_and_times_out,
            a_signal_that_comes_early_is_kept,
            cancelling_a_wait_undoes,
            cancelling_parallel_steps_undoes_them,
            children_give_their_results_and_failures,
            cancelling_reaches_children,
            a_name_starts_once,
            lists_go_on_where_they_ended,
            queries_are_answered_with_what_was_said_last,
            schedules_start_pause_and_go,
            a_worker_that_is_killed_while_waiting_goes_on,
            a_worker_that_is_killed_in_a_step_repeats_only_that,
            fifty_in_flight_go_on_with_the_next_worker,
            poison_does_not_starve_others,
            changed_code_is_noticed_and_the_right_code_goes_on);
    };
    ($rig:path: $($behaviour:ident),*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                if let Some(rig) = $rig(stringify!($behaviour)).await {
                    $crate::behaviours::$behaviour(&rig).await;
                }
            }
        )*
    };
}

fn work(name: &str) -> Act {
    Act::Work(Work::named(name))
}

fn receive(topic: &str, millis: Option<u64>) -> Act {
    Act::Receive {
        topic: topic.to_owned(),
        millis,
    }
}

/// # Panics
/// If the name is not one.
pub fn id(text: &str) -> FlowId {
    FlowId::new(text).expect("a name")
}

/// # Panics
/// If it is not started.
pub async fn start(control: &Arc<dyn Control>, name: &str, acts: &[Act]) -> FlowId {
    let new = NewFlow::of::<Scripted>(id(name), &acts.to_vec()).expect("acts can be written");
    control.start(new).await.expect("it starts");
    id(name)
}

async fn ended(control: &Arc<dyn Control>, id: &FlowId) -> FlowState {
    let waiting = tokio::time::timeout(Duration::from_secs(60), control.result(id));
    waiting
        .await
        .expect("it ends within a minute")
        .expect("it is known")
}

fn failure(state: FlowState) -> nimbus_workflows::FlowFailure {
    match state {
        FlowState::Failed(failure) | FlowState::NeedsAttention(failure) => failure,
        other => unreachable!("not failed: {other:?}"),
    }
}

async fn begun(rig: &dyn Rig, name: &str, times: usize) {
    let line = format!("begin {name}");
    eventually(&line, async || rig.effects().count(&line) >= times).await;
}

pub async fn steps_follow_each_other_and_have_keys_of_their_own(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let acts = [work("a"), Act::Sleep { millis: 20 }, work("b")];
    let flow = start(&control, "happy", &acts).await;
    assert_eq!(
        ended(&control, &flow).await,
        FlowState::Succeeded(json!(["a", null, "b"]))
    );
    let log = rig.effects();
    let order: Vec<_> = log
        .lines()
        .into_iter()
        .filter(|line| !line.starts_with("key"))
        .collect();
    assert_eq!(order, ["begin a", "end a", "begin b", "end b"]);
    assert_eq!(
        (log.of("key a"), log.of("key b")),
        (vec!["happy#0".into()], vec!["happy#1".into()])
    );
    let record = control.status(&flow).await.expect("it is known");
    assert_eq!(record.flow, Scripted::NAME);
    assert!(record.ended.is_some_and(|ended| ended >= record.created));
}

pub async fn queries_are_answered_with_what_was_said_last(rig: &dyn Rig) {
    let say = |answer: &str| Act::Say {
        answer: answer.to_owned(),
    };
    let control = rig.control();
    let worker = rig.worker(Code::Original).await;
    let acts = [
        say("first"),
        receive("go", None),
        say("second"),
        receive("end", None),
    ];
    let flow = start(&control, "asked", &acts).await;
    let said = async |wanted: Option<Value>| {
        eventually("the answer", async || {
            control.query(&flow, SAID).await.ok() == Some(wanted.clone())
        })
        .await;
    };
    said(Some(json!("first"))).await;
    let other = control.query(&flow, "other").await.expect("it is asked");
    assert_eq!(other, None);
    let sent = control.signal(&flow, "go", Value::Null, None);
    sent.await.expect("it is sent");
    said(Some(json!("second"))).await;
    // Another worker says what the one before said, and not the first of it.
    worker.kill().await;
    let _worker = rig.worker(Code::Original).await;
    said(Some(json!("second"))).await;
    let sent = control.signal(&flow, "end", Value::Null, None);
    sent.await.expect("it is sent");
    ended(&control, &flow).await;
    said(Some(json!("second"))).await;
    let unknown = control.query(&id("nobody"), SAID).await;
    let unknown = unknown.expect_err("there is none");
    assert_eq!(unknown.code(), ErrorCode::WORKFLOW_UNKNOWN);
}

pub async fn parallel_steps_run_side_by_side(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let works = ["a", "b", "c"].map(|name| Work::gated(name, "go"));
    let flow = start(&control, "parallel", &[Act::All(works.to_vec())]).await;
    for name in ["a", "b", "c"] {
        begun(rig, name, 1).await;
    }
    assert_eq!(rig.effects().of("end"), Vec::<String>::new());
    rig.effects().open("go");
    assert_eq!(
        ended(&control, &flow).await,
        FlowState::Succeeded(json!([["a", "b", "c"]]))
    );
}

pub async fn a_failure_after_all_attempts_undoes_in_reverse(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let cured = start(&control, "cured", &[Act::Work(Work::failing("x", 2, 3))]).await;
    assert_eq!(
        ended(&control, &cured).await,
        FlowState::Succeeded(json!(["x"]))
    );
    let acts = [
        work("net"),
        work("disk"),
        Act::Work(Work::failing("vm", 9, 3)),
        work("never"),
    ];
    let flow = start(&control, "failing", &acts).await;
    let failure = failure(ended(&control, &flow).await);
    assert!(failure.message.contains("vm failed"), "{failure:?}");
    let log = rig.effects();
    assert_eq!((log.count("begin vm"), log.count("begin never")), (3, 0));
    // The step that failed may have half happened: it is undone too, and first.
    assert_eq!(log.of("undo"), ["vm", "disk", "net"]);
    let keys = log.of("key vm");
    assert!(keys.iter().all(|key| key == "failing#2"), "{keys:?}");
}

pub async fn a_lasting_failure_is_not_tried_again(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let work = Work {
        lasting: true,
        ..Work::failing("quota", 9, 3)
    };
    let flow = start(&control, "lasting", &[Act::Work(work)]).await;
    assert!(failure(ended(&control, &flow).await).lasting);
    assert_eq!(rig.effects().count("begin quota"), 1);
}

pub async fn an_undo_that_fails_needs_attention(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let stuck = Work {
        stuck_undo: true,
        ..Work::named("disk")
    };
    let acts = [
        work("net"),
        Act::Work(stuck),
        Act::Work(Work::failing("vm", 1, 1)),
    ];
    let flow = start(&control, "attention", &acts).await;
    let state = ended(&control, &flow).await;
    assert!(matches!(state, FlowState::NeedsAttention(_)), "{state:?}");
    assert_eq!(failure(state).attention, ["undo: disk cannot be undone"]);
    assert_eq!(
        rig.effects().of("undo"),
        ["vm", "net"],
        "the others are undone"
    );
}

pub async fn a_panic_is_a_failure_and_harms_nobody(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let panics = Work {
        panics: true,
        ..Work::failing("p", 0, 2)
    };
    let mut poisoned = Vec::new();
    for number in 0..10 {
        let name = format!("poison-{number}");
        let act = if number % 2 == 0 {
            Act::Panic
        } else {
            Act::Work(panics.clone())
        };
        poisoned.push(start(&control, &name, &[act]).await);
    }
    let flow = start(&control, "healthy", &[work("a")]).await;
    assert_eq!(
        ended(&control, &flow).await,
        FlowState::Succeeded(json!(["a"]))
    );
    for flow in poisoned {
        let failure = failure(ended(&control, &flow).await);
        assert_eq!(failure.code, ErrorCode::WORKFLOW_PANICKED.to_string());
        assert!(failure.message.contains("is poison"), "{failure:?}");
    }
    assert_eq!(
        rig.effects().count("begin p"),
        10,
        "two attempts each, then no more"
    );
}

pub async fn an_approval_is_waited_for_and_times_out(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let acts = [work("before"), receive("approval", None), work("after")];
    let flow = start(&control, "approved", &acts).await;
    eventually("it waits", async || rig.effects().count("end before") == 1).await;
    // Another topic is none of its business, and a key makes a repetition harmless.
    control
        .signal(&flow, "other", json!(0), None)
        .await
        .expect("sent");
    for _ in 0..2 {
        let sent = control
            .signal(&flow, "approval", json!({"by": "ann"}), Some("1"))
            .await;
        sent.expect("sent");
    }
    let expected = json!(["before", {"by": "ann"}, "after"]);
    assert_eq!(ended(&control, &flow).await, FlowState::Succeeded(expected));
    let flow = start(&control, "late", &[receive("approval", Some(300))]).await;
    assert_eq!(
        ended(&control, &flow).await,
        FlowState::Succeeded(json!([null]))
    );
    let nobody = control
        .signal(&id("nobody"), "approval", Value::Null, None)
        .await;
    assert_eq!(
        nobody.expect_err("nobody").code(),
        ErrorCode::WORKFLOW_UNKNOWN
    );
}

pub async fn a_signal_that_comes_early_is_kept(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let acts = [
        Act::Work(Work::gated("slow", "go")),
        receive("b", Some(20_000)),
        receive("a", Some(20_000)),
        receive("a", Some(20_000)),
    ];
    let flow = start(&control, "early", &acts).await;
    begun(rig, "slow", 1).await;
    for (topic, payload) in [("a", 1), ("b", 2), ("a", 3)] {
        control
            .signal(&flow, topic, json!(payload), None)
            .await
            .expect("sent");
    }
    rig.effects().open("go");
    assert_eq!(
        ended(&control, &flow).await,
        FlowState::Succeeded(json!(["slow", 2, 1, 3]))
    );
}

pub async fn children_give_their_results_and_failures(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let child = |suffix: &str, acts: &[Act]| Act::Child {
        suffix: suffix.to_owned(),
        acts: acts.to_vec(),
    };
    let flow = start(&control, "parent", &[child("one", &[work("a")])]).await;
    assert_eq!(
        ended(&control, &flow).await,
        FlowState::Succeeded(json!([["a"]]))
    );
    let one = flow.child("one").expect("a name");
    assert_eq!(
        ended(&control, &one).await,
        FlowState::Succeeded(json!(["a"]))
    );
    let failing = child("two", &[work("inner"), Act::Work(Work::failing("x", 1, 1))]);
    let flow = start(&control, "unlucky", &[work("outer"), failing]).await;
    assert!(
        failure(ended(&control, &flow).await)
            .message
            .contains("x failed")
    );
    assert_eq!(rig.effects().of("undo"), ["x", "inner", "outer"]);
}

pub async fn a_name_starts_once(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let new = |acts: &[Act]| NewFlow::of::<Scripted>(id("once"), &acts.to_vec()).expect("acts");
    let same = || control.start(new(&[work("a")]));
    let starts = futures::future::join_all((0..5).map(|_| same())).await;
    let starts: Vec<_> = starts
        .into_iter()
        .map(|started| started.expect("started"))
        .collect();
    assert_eq!(
        starts
            .iter()
            .filter(|started| **started == Started::New)
            .count(),
        1,
        "{starts:?}"
    );
    assert_eq!(
        ended(&control, &id("once")).await,
        FlowState::Succeeded(json!(["a"]))
    );
    assert_eq!(
        same().await.expect("the same"),
        Started::Before,
        "also after its end"
    );
    assert_eq!(rig.effects().count("begin a"), 1);
    let other = control
        .start(new(&[work("b")]))
        .await
        .expect_err("another input");
    assert_eq!(other.code(), ErrorCode::WORKFLOW_CONFLICT);
}

pub async fn lists_go_on_where_they_ended(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    for number in 0..5 {
        let flow = start(&control, &format!("list-{number}"), &[work("a")]).await;
        ended(&control, &flow).await;
    }
    let waiting = start(&control, "list-open", &[receive("x", None)]).await;
    start(&control, "another", &[receive("x", None)]).await;
    let filter = |ended| FlowFilter {
        id_prefix: Some("list-".to_owned()),
        flow: Some(Scripted::NAME.to_owned()),
        ended,
    };
    // An index may be a moment behind.
    let found = async |filter: &FlowFilter, limit| {
        let (mut ids, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = control
                .list(filter, cursor.as_deref(), limit)
                .await
                .expect("a page");
            assert!(page.flows.len() <= usize::try_from(limit).expect("small"));
            ids.extend(page.flows.into_iter().map(|flow| flow.id.to_string()));
            cursor = page.next;
            if cursor.is_none() {
                return ids;
            }
        }
    };
    let all = [
        "list-0",
        "list-1",
        "list-2",
        "list-3",
        "list-4",
        "list-open",
    ];
    for limit in [2, 3, 100] {
        eventually("all are listed", async || {
            found(&filter(None), limit).await == all
        })
        .await;
    }
    eventually("the open one", async || {
        found(&filter(Some(false)), 10).await == ["list-open"]
    })
    .await;
    eventually("those that ended", async || {
        found(&filter(Some(true)), 10).await == all[..5]
    })
    .await;
    control.cancel(&waiting).await.expect("cancelled");
}

pub async fn schedules_start_pause_and_go(rig: &dyn Rig) {
    let (control, _worker) = (rig.control(), rig.worker(Code::Original).await);
    let input = json!([work("tick")]);
    let every = When::Every(Duration::from_secs(1));
    let mut schedule = FlowSchedule::new("tick", every, Scripted::NAME, input);
    control.put_schedule(&schedule).await.expect("put");
    eventually("it starts twice", async || {
        rig.effects().count("end tick") >= 2
    })
    .await;
    schedule.paused = true;
    control.put_schedule(&schedule).await.expect("paused");
    let views = control.schedules().await.expect("a list");
    let [view] = &views[..] else {
        unreachable!("one schedule: {views:?}")
    };
    assert_eq!((&view.schedule, view.next), (&schedule, None));
    let last = view.last.clone().expect("it started something");
    assert!(last.as_str().starts_with(&schedule.id_prefix()), "{last}");
    ended(&control, &last).await;
    let paused = rig.effects().count("begin tick");
    schedule.paused = false;
    control.put_schedule(&schedule).await.expect("resumed");
    eventually("it starts again", async || {
        rig.effects().count("end tick") > paused
    })
    .await;
    control.delete_schedule("tick").await.expect("deleted");
    assert_eq!(control.schedules().await.expect("a list"), []);
    let wrong = FlowSchedule::new("w", When::cron("61 * * * *"), Scripted::NAME, Value::Null);
    let refused = control
        .put_schedule(&wrong)
        .await
        .expect_err("no such minute");
    assert_eq!(refused.code(), ErrorCode::WORKFLOW_INVALID);
}
