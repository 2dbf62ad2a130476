//! What stands between a workflow's code and the library. The code may move between threads, what the
//! library gives to workflows may not; so the code leaves orders here and waits for answers, and the
//! library's side takes the orders in turn and brings the answers. Both run in one poll of one thread.
//!
//! Nothing here decides by time, chance or thread: the same answers in the same order give the same
//! orders, which is what replaying a workflow needs.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use nimbus_workflows::{Answer, Definitions, Durable, Fail, FlowId, Mailbox, Post, StepCall};
use parking_lot::Mutex;
use serde_json::Value;

/// What a workflow's code wants to be done.
#[derive(Debug)]
pub(crate) enum Order {
    Step {
        number: u32,
        call: StepCall,
    },
    Timer(Duration),
    Child {
        flow: &'static str,
        id: FlowId,
        input: Value,
    },
}

/// The place of an order and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(usize);

#[derive(Debug)]
enum AnswerSlot {
    Open(Option<Waker>),
    Settled(Result<Value, Fail>),
    Taken,
}

#[derive(Debug, Default)]
struct BridgeState {
    orders: VecDeque<(Place, Order)>,
    answers: Vec<AnswerSlot>,
    /// Timers that nobody waits for any more.
    abandoned: Vec<Place>,
    mailbox: Mailbox,
    /// What the code said to queries.
    said: BTreeMap<&'static str, Value>,
    /// Who waits for signals.
    waiting: Vec<Waker>,
    steps: u32,
}

/// One workflow's bridge. A clone is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bridge(Arc<Mutex<BridgeState>>);

/// The side of the library.
impl Bridge {
    pub(crate) fn deliver(&self, topic: String, payload: Value) {
        let mut state = self.0.lock();
        state.mailbox.deliver(Post::Signal { topic, payload });
        wake_all(&mut state);
    }

    pub(crate) fn cancel(&self) {
        let mut state = self.0.lock();
        if !state.mailbox.is_cancelled() {
            state.mailbox.cancel();
            wake_all(&mut state);
        }
    }

    pub(crate) fn answer_to(&self, query: &str) -> Option<Value> {
        self.0.lock().said.get(query).cloned()
    }

    pub(crate) fn take_orders(&self) -> VecDeque<(Place, Order)> {
        std::mem::take(&mut self.0.lock().orders)
    }

    pub(crate) fn take_abandoned(&self) -> Vec<Place> {
        std::mem::take(&mut self.0.lock().abandoned)
    }

    pub(crate) fn settle(&self, place: Place, answer: Result<Value, Fail>) {
        let mut state = self.0.lock();
        let Some(slot) = state.answers.get_mut(place.0) else {
            return;
        };
        if let AnswerSlot::Open(waker) = std::mem::replace(slot, AnswerSlot::Settled(answer))
            && let Some(waker) = waker
        {
            waker.wake();
        }
    }
}

fn wake_all(state: &mut BridgeState) {
    for waker in state.waiting.drain(..) {
        waker.wake();
    }
}

/// The side of the code.
impl Bridge {
    fn is_cancelled(&self) -> bool {
        self.0.lock().mailbox.is_cancelled()
    }

    fn order(&self, order: Order) -> Place {
        let mut state = self.0.lock();
        let place = Place(state.answers.len());
        state.answers.push(AnswerSlot::Open(None));
        state.orders.push_back((place, order));
        place
    }

    fn poll_answer(&self, place: Place, context: &Context<'_>) -> Poll<Result<Value, Fail>> {
        let mut state = self.0.lock();
        let Some(slot) = state.answers.get_mut(place.0) else {
            return Poll::Ready(Err(Fail::Stop("an answer without an order".to_owned())));
        };
        match std::mem::replace(slot, AnswerSlot::Taken) {
            AnswerSlot::Settled(answer) => Poll::Ready(answer),
            AnswerSlot::Open(_) => {
                *slot = AnswerSlot::Open(Some(context.waker().clone()));
                Poll::Pending
            }
            AnswerSlot::Taken => Poll::Ready(Err(Fail::Stop("an answer taken twice".to_owned()))),
        }
    }

    async fn answer(&self, place: Place) -> Result<Value, Fail> {
        poll_fn(|context| self.poll_answer(place, context)).await
    }

    /// The timer ends too, or never begins.
    fn abandon(&self, place: Place) {
        let mut state = self.0.lock();
        let before = state.orders.len();
        state.orders.retain(|(waiting, _)| *waiting != place);
        if state.orders.len() == before {
            state.abandoned.push(place);
        }
    }

    fn poll_signal(
        &self,
        topic: &str,
        timer: Option<Place>,
        context: &Context<'_>,
    ) -> Poll<Result<Option<Value>, Fail>> {
        {
            let mut state = self.0.lock();
            let ended = if state.mailbox.is_cancelled() {
                Some(Err(Fail::Cancelled))
            } else {
                state.mailbox.take(topic).map(|payload| Ok(Some(payload)))
            };
            match ended {
                Some(ended) => {
                    drop(state);
                    if let Some(timer) = timer {
                        self.abandon(timer);
                    }
                    return Poll::Ready(ended);
                }
                None => state.waiting.push(context.waker().clone()),
            }
        }
        match timer.map(|timer| self.poll_answer(timer, context)) {
            Some(Poll::Ready(over)) => Poll::Ready(over.map(|_| None)),
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }
}

/// Runs the code only when something it waits for has come. It does not use the library's own waker,
/// which takes whatever else wakes it for a fault of the workflow.
#[derive(Debug, Default)]
pub(crate) struct BodyWaker {
    woken: AtomicBool,
    /// The library's side is at work; nothing else may wake the code.
    driven: AtomicBool,
    foreign: AtomicBool,
}

impl BodyWaker {
    /// The code has to run at least once.
    pub(crate) fn new() -> Arc<Self> {
        let waker = Self::default();
        waker.woken.store(true, Ordering::Relaxed);
        Arc::new(waker)
    }

    /// Whatever wakes the code meanwhile is the library's side.
    pub(crate) fn driving<T>(&self, work: impl FnOnce() -> T) -> T {
        self.driven.store(true, Ordering::Relaxed);
        let done = work();
        self.driven.store(false, Ordering::Relaxed);
        done
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Relaxed)
    }

    pub(crate) fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::Relaxed)
    }

    /// The code waits for something that is not recorded.
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign.load(Ordering::Relaxed)
    }
}

impl Wake for BodyWaker {
    fn wake(self: Arc<Self>) {
        if !self.driven.load(Ordering::Relaxed) {
            self.foreign.store(true, Ordering::Relaxed);
        }
        self.woken.store(true, Ordering::Relaxed);
    }
}

/// What a workflow's code is given.
pub(crate) struct TemporalDurable {
    pub(crate) id: FlowId,
    pub(crate) bridge: Bridge,
    pub(crate) definitions: Arc<Definitions>,
}

impl TemporalDurable {
    fn refuse<T: Send + 'static>(&self, fail: Fail) -> Answer<'_, T> {
        async move { Err(fail) }.boxed()
    }
}

impl Durable for TemporalDurable {
    fn id(&self) -> &FlowId {
        &self.id
    }

    fn call(&self, call: StepCall) -> Answer<'_, Value> {
        let number = {
            let mut state = self.bridge.0.lock();
            let number = state.steps;
            state.steps += 1;
            number
        };
        if !call.options.shielded && self.bridge.is_cancelled() {
            return self.refuse(Fail::Cancelled);
        }
        // Another version of the code may know it, so the workflow waits for that one.
        if !self.definitions.has_step(call.step) {
            let reason = format!("this version knows no step {}", call.step);
            return self.refuse(Fail::Stop(reason));
        }
        let place = self.bridge.order(Order::Step { number, call });
        self.bridge.answer(place).boxed()
    }

    fn call_all(&self, calls: Vec<StepCall>) -> BoxFuture<'_, Vec<Result<Value, Fail>>> {
        let calls: Vec<_> = calls.into_iter().map(|call| self.call(call)).collect();
        join_all(calls).boxed()
    }

    fn sleep(&self, time: Duration) -> Answer<'_, ()> {
        if self.bridge.is_cancelled() {
            return self.refuse(Fail::Cancelled);
        }
        let place = self.bridge.order(Order::Timer(time));
        async move { self.bridge.answer(place).await.map(|_| ()) }.boxed()
    }

    fn receive_raw<'a>(
        &'a self,
        topic: &'a str,
        timeout: Option<Duration>,
    ) -> Answer<'a, Option<Value>> {
        if self.bridge.is_cancelled() {
            return self.refuse(Fail::Cancelled);
        }
        let kept = self.bridge.0.lock().mailbox.take(topic);
        if kept.is_some() {
            return async move { Ok(kept) }.boxed();
        }
        let timer = timeout.map(|time| self.bridge.order(Order::Timer(time)));
        poll_fn(move |context| self.bridge.poll_signal(topic, timer, context)).boxed()
    }

    fn publish(&self, query: &'static str, answer: Value) -> Answer<'_, ()> {
        self.bridge.0.lock().said.insert(query, answer);
        async { Ok(()) }.boxed()
    }

    fn child_raw<'a>(
        &'a self,
        flow: &'static str,
        suffix: &'a str,
        input: Value,
    ) -> Answer<'a, Value> {
        if self.bridge.is_cancelled() {
            return self.refuse(Fail::Cancelled);
        }
        let id = match self.id.child(suffix) {
            Ok(id) => id,
            Err(error) => return self.refuse(Fail::App(error.into())),
        };
        if !self.definitions.has_flow(flow) {
            let reason = format!("this version knows no workflow {flow}");
            return self.refuse(Fail::Stop(reason));
        }
        let place = self.bridge.order(Order::Child { flow, id, input });
        self.bridge.answer(place).boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn durable() -> TemporalDurable {
        TemporalDurable {
            id: FlowId::new("f").unwrap(),
            bridge: Bridge::default(),
            definitions: Arc::default(),
        }
    }

    #[test]
    fn a_signal_ends_the_timer_of_its_wait() {
        let durable = durable();
        let bridge = durable.bridge.clone();
        let mut waits = durable.receive_raw("a", Some(Duration::from_secs(9)));
        assert!((&mut waits).now_or_never().is_none());
        let orders = Vec::from(bridge.take_orders());
        let [(timer, Order::Timer(_))] = &orders[..] else {
            unreachable!("one timer: {orders:?}")
        };
        bridge.deliver("b".to_owned(), json!(1));
        assert!((&mut waits).now_or_never().is_none());
        bridge.deliver("a".to_owned(), json!(2));
        assert_eq!(waits.now_or_never(), Some(Ok(Some(json!(2)))));
        assert_eq!(bridge.take_abandoned(), [*timer]);
        // What came before is found without any timer.
        let kept = durable.receive_raw("b", Some(Duration::from_secs(9)));
        assert_eq!(kept.now_or_never(), Some(Ok(Some(json!(1)))));
        assert!(bridge.take_orders().is_empty());
    }

    #[test]
    fn cancelling_ends_waits_and_refuses_what_follows() {
        let durable = durable();
        let mut waits = durable.receive_raw("a", None);
        assert!((&mut waits).now_or_never().is_none());
        durable.bridge.cancel();
        assert_eq!(waits.now_or_never(), Some(Err(Fail::Cancelled)));
        // tidy-allow(sleep): an order for a timer, which nobody carries out
        let sleep = durable.sleep(Duration::from_secs(1));
        assert_eq!(sleep.now_or_never(), Some(Err(Fail::Cancelled)));
        assert!(durable.bridge.take_orders().is_empty());
    }

    #[test]
    fn what_this_version_does_not_know_stops_and_fails_nothing() {
        let durable = durable();
        let call = StepCall {
            step: "unknown",
            input: Value::Null,
            options: Default::default(),
        };
        let stopped = durable.call(call).now_or_never();
        assert!(matches!(stopped, Some(Err(Fail::Stop(_)))), "{stopped:?}");
        let stopped = durable
            .child_raw("unknown", "c", Value::Null)
            .now_or_never();
        assert!(matches!(stopped, Some(Err(Fail::Stop(_)))), "{stopped:?}");
    }

    #[test]
    fn more_answers_than_a_handful_are_awaited_too() {
        let durable = durable();
        let bridge = durable.bridge.clone();
        let sleeps: Vec<_> = (0..100)
            // tidy-allow(sleep): as above
            .map(|n| durable.sleep(Duration::from_secs(n)))
            .collect();
        let waker = BodyWaker::new();
        waker.take_woken();
        let waking = Waker::from(Arc::clone(&waker));
        let mut all = join_all(sleeps);
        let mut context = Context::from_waker(&waking);
        // So many take turns, and wake whoever polls them.
        assert!(waker.driving(|| all.poll_unpin(&mut context).is_pending()));
        waker.take_woken();
        waker.driving(|| {
            for (place, _) in bridge.take_orders() {
                bridge.settle(place, Ok(Value::Null));
            }
        });
        assert!(waker.is_woken() && !waker.is_foreign());
        let ready = || (0..9).any(|_| all.poll_unpin(&mut context).is_ready());
        assert!(waker.driving(ready));
        assert!(!waker.is_foreign());
        waking.wake();
        assert!(waker.is_foreign());
    }
}
